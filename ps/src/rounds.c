// BSP: one round of a partition is collected slice by slice and reduced in slice order into one
// optimiser step, so that the result does not depend on who computed a slice or which arrived
// first.
#include "server_core.h"
#include <string.h>

tt_status
tti_round_init(tti_round *round, uint32_t slice_count)
{
    *round = (tti_round){0};
    round->slice = tt_mem_zalloc(slice_count, sizeof *round->slice);
    return round->slice != NULL ? TT_OK : TT_NOMEM;
}

void
tti_round_fini(tti_round *round, uint32_t slice_count)
{
    for (uint32_t k = 0; round->slice != NULL && k < slice_count; k++) {
        tt_mem_free(round->slice[k].rows);
        tt_mem_free(round->slice[k].gradients);
    }
    tt_mem_free(round->slice);
    tt_mem_free(round->sum);
    tt_mem_free(round->touched);
    tt_mem_free(round->list);
    *round = (tti_round){0};
}

// Buffers grow to what a slice brings and are kept; without memory for one message there is no
// going on.
static void
reserve(void **memory, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return;
    tt_mem_free(*memory);
    *capacity = count + count / 4;
    *memory = tt_mem_zalloc(*capacity, size);
    TT_ASSERT(*memory != NULL);
}

static void
reserve_sum(tti_round *round, const tti_partition *partition)
{
    if (round->sum_rows >= partition->rows)
        return;
    tt_mem_free(round->sum);
    tt_mem_free(round->touched);
    tt_mem_free(round->list);
    round->sum_rows = partition->row_capacity;
    round->sum = tt_mem_zalloc_vector(round->sum_rows * partition->width, sizeof(float));
    round->touched = tt_mem_zalloc(round->sum_rows, 1);
    round->list = tt_mem_zalloc(round->sum_rows, sizeof *round->list);
    TT_ASSERT(round->sum != NULL && round->touched != NULL && round->list != NULL);
}

static void
add_rows(float *sum, const float *gradients, size_t width)
{
    for (size_t j = 0; j < width; j++)
        sum[j] += gradients[j];
}

// Adds one slice; returns the number of touched rows now.
static uint32_t
add_slice(tti_round *round, const tti_contribution *part, uint32_t width, uint32_t touched)
{
    for (uint32_t i = 0; i < part->count; i++) {
        uint32_t row = part->rows[i];
        if (!round->touched[row]) {
            round->touched[row] = 1;
            round->list[touched++] = row;
        }
        add_rows(round->sum + (size_t)row * width, part->gradients + (size_t)i * width, width);
    }
    return touched;
}

// ---- the round before --------------------------------------------------------------------------

void
tti_past_fini(tti_past *past)
{
    tt_mem_free(past->rows);
    tt_mem_free(past->values);
    *past = (tti_past){0};
}

static void
keep_all(tti_past *past, const tti_partition *partition)
{
    size_t floats = (size_t)partition->rows * partition->width;
    reserve((void **)&past->values, &past->value_capacity, floats, sizeof(float));
    memcpy(past->values, partition->cells.w, floats * sizeof(float));
    past->kept = past->whole = 1;
    past->count = partition->rows;
}

static void
keep_rows(tti_past *past, const tti_partition *partition, const uint32_t *rows, uint32_t count)
{
    size_t width = partition->width;
    reserve((void **)&past->values, &past->value_capacity, count * width, sizeof(float));
    reserve((void **)&past->rows, &past->row_capacity, count, sizeof *past->rows);
    for (uint32_t i = 0; i < count; i++) {
        past->rows[i] = rows[i];
        memcpy(past->values + i * width, partition->cells.w + rows[i] * width,
               width * sizeof(float));
    }
    past->kept = 1;
    past->whole = 0;
    past->count = count;
}

static void
restore_whole(const tti_past *past,
              const tti_partition *partition,
              const uint32_t *rows,
              uint32_t count,
              float *values)
{
    size_t width = partition->width;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = rows != NULL ? rows[i] : i;
        if (row < past->count)
            memcpy(values + i * width, past->values + row * width, width * sizeof(float));
        else if (row != TTI_NO_ROW) // created since
            memset(values + i * width, 0, width * sizeof(float));
    }
}

void
tti_past_restore(const tti_past *past,
                 const tti_partition *partition,
                 const uint32_t *rows,
                 uint32_t count,
                 float *values)
{
    size_t width = partition->width;
    if (past->whole) {
        restore_whole(past, partition, rows, count, values);
        return;
    }
    // Rare: by looking at each for each.
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < past->count; k++)
            if (past->rows[k] == (rows != NULL ? rows[i] : i))
                memcpy(values + i * width, past->values + k * width, width * sizeof(float));
}

int
tti_round_has(const tti_round *round, uint32_t slice)
{
    return round->slice[slice].present;
}

// ---- reducing ----------------------------------------------------------------------------------

static void
reduce(tti_round *round,
       tti_past *past,
       tti_partition *partition,
       const tt_vec_ops *ops,
       uint32_t slice_count)
{
    uint32_t width = partition->width, touched = 0;
    int whole = 0;
    reserve_sum(round, partition);
    for (uint32_t k = 0; k < slice_count; k++) {
        tti_contribution *part = &round->slice[k];
        whole |= part->whole;
        if (part->whole)
            add_rows(round->sum, part->gradients, (size_t)part->count * width);
        else
            touched = add_slice(round, part, width, touched);
        part->present = 0;
    }
    round->arrived = 0;
    if (past != NULL && whole)
        keep_all(past, partition);
    else if (past != NULL)
        keep_rows(past, partition, round->list, touched);
    if (whole) {
        tti_partition_step(partition, ops, NULL, partition->rows, round->sum, 1);
        memset(round->sum, 0, (size_t)partition->rows * width * sizeof(float));
        memset(round->touched, 0, partition->rows);
        return;
    }
    // The rows' gradients, packed; the step is per row, so the order of the list does not matter.
    float *packed = round->sum;
    static _Thread_local float row_sum[4096];
    TT_ASSERT(width <= TT_COUNT_OF(row_sum));
    tti_step step = tti_step_at(partition->table, partition->steps, partition->iterations);
    partition->steps++;
    partition->iterations++;
    for (uint32_t i = 0; i < touched; i++) {
        size_t at = (size_t)round->list[i] * width;
        memcpy(row_sum, packed + at, width * sizeof(float));
        tti_cells cells = tti_cells_at(&partition->cells, at);
        tti_step_apply(&step, ops, &cells, row_sum, width);
        memset(packed + at, 0, width * sizeof(float));
        round->touched[round->list[i]] = 0;
    }
}

void
tti_round_save(const tti_round *round, uint32_t slice_count, uint32_t width, tt_archive *out)
{
    uint32_t arrived = round->arrived;
    TT_ARCHIVE(out, arrived);
    for (uint32_t k = 0; round->slice != NULL && k < slice_count; k++) {
        const tti_contribution *part = &round->slice[k];
        uint32_t head[3] = {k, (uint32_t)part->whole, part->count};
        if (!part->present)
            continue;
        TT_ARCHIVE(out, head);
        if (!part->whole && part->count > 0)
            tt_archive_field(out, part->rows, part->count * sizeof *part->rows);
        tt_archive_field(out, part->gradients, (size_t)part->count * width * sizeof(float));
    }
}

static tt_status
load_contribution(tti_round *round,
                  const tti_partition *partition,
                  uint32_t slice_count,
                  tt_archive *in)
{
    uint32_t head[3] = {0};
    TT_ARCHIVE(in, head);
    if (in->status != TT_OK || head[0] >= slice_count || round->slice[head[0]].present ||
        head[2] > partition->rows)
        return TT_CORRUPT;
    tti_contribution *part = &round->slice[head[0]];
    size_t floats = (size_t)head[2] * partition->width;
    reserve((void **)&part->gradients, &part->gradient_capacity, floats, sizeof(float));
    reserve((void **)&part->rows, &part->row_capacity, head[2], sizeof *part->rows);
    if (head[1] == 0 && head[2] > 0)
        tt_archive_field(in, part->rows, head[2] * sizeof *part->rows);
    tt_archive_field(in, part->gradients, floats * sizeof(float));
    for (uint32_t i = 0; head[1] == 0 && in->status == TT_OK && i < head[2]; i++)
        if (part->rows[i] >= partition->rows)
            return TT_CORRUPT;
    part->whole = head[1] != 0;
    part->count = head[2];
    part->present = 1;
    round->arrived++;
    return in->status;
}

tt_status
tti_round_load(tti_round *round,
               const tti_partition *partition,
               uint32_t slice_count,
               tt_archive *in)
{
    uint32_t arrived = 0;
    TT_ARCHIVE(in, arrived);
    for (uint32_t i = 0; in->status == TT_OK && i < arrived; i++)
        TT_TRY(load_contribution(round, partition, slice_count, in));
    return in->status;
}

int
tti_round_add(tti_round *round,
              tti_past *past,
              tti_partition *partition,
              const tt_vec_ops *ops,
              uint32_t slice_count,
              uint32_t slice,
              const uint32_t *rows,
              uint32_t count,
              const float *gradients)
{
    TT_ASSERT(slice < slice_count);
    tti_contribution *part = &round->slice[slice];
    TT_ASSERT(!part->present); // the sequence records let each slice in once
    size_t floats = (size_t)count * partition->width;
    reserve((void **)&part->gradients, &part->gradient_capacity, floats, sizeof(float));
    if (floats > 0)
        memcpy(part->gradients, gradients, floats * sizeof(float));
    part->whole = rows == NULL && count > 0;
    if (rows != NULL && count > 0) {
        reserve((void **)&part->rows, &part->row_capacity, count, sizeof *rows);
        memcpy(part->rows, rows, count * sizeof *rows);
    }
    part->count = count;
    part->present = 1;
    if (++round->arrived < slice_count)
        return 0;
    reduce(round, past, partition, ops, slice_count);
    return 1;
}
