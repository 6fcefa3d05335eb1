// Holding rows out of a data set: a draw for each row, then both parts closed up.
#include "data_internal.h"
#include <string.h>

static int
held_out(uint64_t row, double share, uint64_t seed)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_VALIDATION, row);
    return tt_rng_uniform(&rng) < share;
}

static uint64_t
entries_of(const tt_dataset *data, uint64_t row)
{
    return data->layout == TT_DATA_SPARSE ? data->row_begin[row + 1] - data->row_begin[row]
                                          : data->feature_count;
}

// Room for what will be held out.
static int
reserve(tt_dataset *out, const tt_dataset *data)
{
    uint64_t entries = TT_MAX(out->nonzero_count, 1u);
    out->label = tt_mem_alloc(TT_MAX(out->row_count, 1u) * sizeof *out->label);
    if (data->row_begin != NULL)
        out->row_begin = tt_mem_zalloc(out->row_count + 1, sizeof *out->row_begin);
    if (data->index != NULL)
        out->index = tt_mem_alloc(entries * sizeof *out->index);
    if (data->value != NULL)
        out->value = tt_mem_alloc(entries * sizeof *out->value);
    if (data->bytes != NULL)
        out->bytes = tt_mem_alloc(entries);
    if (data->floats != NULL)
        out->floats = tt_mem_alloc(entries * sizeof *out->floats);
    return out->label != NULL && !out->row_begin == !data->row_begin &&
           !out->index == !data->index && !out->value == !data->value &&
           !out->bytes == !data->bytes && !out->floats == !data->floats;
}

// Appends row `row` of `from`, whose entries begin at `begin`; `to` may be `from` itself, then the
// row moves down or stays.
static void
append(tt_dataset *to, const tt_dataset *from, uint64_t row, uint64_t begin, uint64_t entries)
{
    uint64_t end = to->nonzero_count;
    to->label[to->row_count] = from->label[row];
    if (from->index != NULL)
        memmove(to->index + end, from->index + begin, entries * sizeof *to->index);
    if (from->value != NULL)
        memmove(to->value + end, from->value + begin, entries * sizeof *to->value);
    if (from->bytes != NULL)
        memmove(to->bytes + end, from->bytes + begin, entries);
    if (from->floats != NULL)
        memmove(to->floats + end, from->floats + begin, entries * sizeof *to->floats);
    to->nonzero_count += entries;
    to->row_count++;
    if (to->row_begin != NULL)
        to->row_begin[to->row_count] = to->nonzero_count;
}

tt_status
tt_dataset_split(tt_dataset *data, double share, uint64_t seed, tt_dataset **out, tt_error *err)
{
    *out = NULL;
    tt_dataset *held = tt_mem_zalloc(1, sizeof *held);
    if (held == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the rows held out");
    uint64_t rows = data->row_count, begin = 0;
    for (uint64_t row = 0; row < rows; row++)
        if (held_out(row, share, seed)) {
            held->row_count++;
            held->nonzero_count += entries_of(data, row);
        }
    if (!reserve(held, data)) {
        tt_dataset_close(held);
        return tt_error_set(err, TT_NOMEM, NULL, "hold out a smaller share",
                            "no memory for the rows held out");
    }
    held->layout = data->layout;
    held->feature_count = data->feature_count;
    held->class_count = data->class_count;
    held->scale = data->scale;
    memcpy(held->class_label, data->class_label, sizeof held->class_label);
    held->row_count = held->nonzero_count = data->row_count = data->nonzero_count = 0;
    for (uint64_t row = 0; row < rows; row++) {
        // Rows move down only: the end of this one is not overwritten before it is asked for.
        uint64_t end =
            data->layout == TT_DATA_SPARSE ? data->row_begin[row + 1] : begin + data->feature_count;
        append(held_out(row, share, seed) ? held : data, data, row, begin, end - begin);
        begin = end;
    }
    *out = held;
    return TT_OK;
}
