// Batches: which rows, their labels, and with keyed pulls their keys.
#include "model_internal.h"
#include <string.h>

// Rows ahead whose entries are prefetched while rows are copied.
enum { PREFETCH_ROWS = 8 };

static uint64_t
longest_row(const tt_dataset *data)
{
    uint64_t longest = 0;
    for (uint64_t r = 0; r < data->row_count; r++)
        longest = TT_MAX(longest, data->row_begin[r + 1] - data->row_begin[r]);
    return longest;
}

// beside: NULL, or one of the same size whose assigner it shares.
static tt_status
alloc_keyed(tt_batch *batch, const tt_batch *beside)
{
    const tt_model *model = batch->model;
    const uint64_t entries =
        beside != NULL ? beside->entries_max : batch->max_rows * longest_row(batch->data);
    if (entries >= UINT32_MAX)
        return TT_NOMEM;
    batch->entries_max = entries;
    batch->key_max = (uint32_t)TT_MIN(entries, model->features) + (model->bias ? 1 : 0);
    // Not zeroed: pages of rows that never come are not taken.
    batch->begin = tt_mem_zalloc((size_t)batch->max_rows + 1, sizeof *batch->begin);
    batch->index = tt_mem_alloc(entries * sizeof *batch->index);
    batch->keys = tt_mem_alloc(batch->key_max * sizeof *batch->keys);
    int failed = batch->begin == NULL || batch->index == NULL || batch->keys == NULL;
    if (batch->data->value != NULL) {
        batch->value = tt_mem_alloc(entries * sizeof *batch->value);
        failed |= batch->value == NULL;
    }
    if (model->shares != NULL) {
        TT_TRY(tti_shares_count(model->shares, model->train));
        batch->key_rows = tt_mem_alloc(batch->key_max * sizeof *batch->key_rows);
        failed |= batch->key_rows == NULL;
    }
    if (failed)
        return TT_NOMEM;
    if (beside == NULL)
        return tti_keys_alloc(model->features, entries, &batch->assigner);
    batch->assigner = tti_keys_share(beside->assigner);
    return TT_OK;
}

static tt_status
alloc_parts(tt_batch *batch, const tt_batch *beside)
{
    const tt_model *model = batch->model;
    batch->rows = tt_mem_zalloc(batch->max_rows, sizeof *batch->rows);
    if (model->kind->binary)
        batch->sign = tt_mem_zalloc_vector(batch->max_rows, sizeof *batch->sign);
    else
        batch->label = tt_mem_zalloc_vector(batch->max_rows, sizeof *batch->label);
    if (batch->rows == NULL || (batch->sign == NULL && batch->label == NULL))
        return TT_NOMEM;
    batch->key_max = model->rows;
    return model->keyed ? alloc_keyed(batch, beside) : TT_OK;
}

// Data a batch can be made of: the training data's shape and classes.
static int
fits(const tt_model *model, const tt_dataset *data)
{
    const tt_dataset *train = model->train;
    const int columns_fit = data->layout == TT_DATA_SPARSE ? data->feature_count <= model->features
                                                           : data->feature_count == model->features;
    return data->layout == train->layout && columns_fit &&
           data->class_count == train->class_count &&
           memcmp(data->class_label, train->class_label,
                  train->class_count * sizeof *train->class_label) == 0;
}

static tt_status
alloc_batch(const tt_model *model,
            const tt_dataset *data,
            uint32_t max_rows,
            const tt_batch *beside,
            tt_batch **out)
{
    tt_batch *batch = tt_mem_zalloc(1, sizeof *batch);
    if (batch == NULL)
        return TT_NOMEM;
    batch->model = model;
    batch->data = data;
    batch->max_rows = max_rows;
    tt_status status = alloc_parts(batch, beside);
    if (status != TT_OK) {
        tt_batch_free(batch);
        return status;
    }
    *out = batch;
    return TT_OK;
}

tt_status
tt_batch_alloc(const tt_model *model, const tt_dataset *data, uint32_t max_rows, tt_batch **out)
{
    *out = NULL;
    return fits(model, data) ? alloc_batch(model, data, max_rows, NULL, out) : TT_INVALID;
}

tt_status
tt_batch_alloc_beside(const tt_batch *beside, tt_batch **out)
{
    *out = NULL;
    return alloc_batch(beside->model, beside->data, beside->max_rows, beside, out);
}

void
tt_batch_free(tt_batch *batch)
{
    if (batch == NULL)
        return;
    tti_keys_free(batch->assigner);
    tt_mem_free(batch->rows);
    tt_mem_free(batch->sign);
    tt_mem_free(batch->label);
    tt_mem_free(batch->begin);
    tt_mem_free(batch->index);
    tt_mem_free(batch->value);
    tt_mem_free(batch->keys);
    tt_mem_free(batch->key_rows);
    tt_mem_free(batch);
}

static void
copy_labels(tt_batch *batch)
{
    const uint16_t *label = batch->data->label;
    if (batch->sign != NULL)
        for (uint32_t i = 0; i < batch->row_count; i++)
            batch->sign[i] = label[batch->rows[i]] != 0 ? 1.0F : -1.0F;
    else
        for (uint32_t i = 0; i < batch->row_count; i++)
            batch->label[i] = label[batch->rows[i]];
}

static void
prefetch_row(const tt_batch *batch, uint32_t i)
{
    const tt_dataset *data = batch->data;
    if (i + 2 * PREFETCH_ROWS < batch->row_count)
        __builtin_prefetch(data->row_begin + batch->rows[i + 2 * PREFETCH_ROWS]);
    if (i + PREFETCH_ROWS < batch->row_count) {
        const uint64_t at = data->row_begin[batch->rows[i + PREFETCH_ROWS]];
        __builtin_prefetch(data->index + at);
        __builtin_prefetch(data->index + at + 16);
        __builtin_prefetch(data->index + at + 32);
        if (data->value != NULL) {
            __builtin_prefetch(data->value + at);
            __builtin_prefetch(data->value + at + 16);
            __builtin_prefetch(data->value + at + 32);
        }
    }
}

static void
copy_entries(tt_batch *batch)
{
    const tt_dataset *data = batch->data;
    uint64_t at = 0;
    for (uint32_t i = 0; i < batch->row_count; i++) {
        prefetch_row(batch, i);
        const uint64_t begin = data->row_begin[batch->rows[i]];
        const uint64_t n = data->row_begin[batch->rows[i] + (uint64_t)1] - begin;
        memcpy(batch->index + at, data->index + begin, n * sizeof *batch->index);
        if (data->value != NULL)
            memcpy(batch->value + at, data->value + begin, n * sizeof *batch->value);
        at += n;
        batch->begin[i + 1] = at;
    }
    batch->nonzeros = at;
}

static void
find_keys(tt_batch *batch)
{
    const tt_model *model = batch->model;
    const size_t entries = (size_t)batch->nonzeros;
    batch->key_count = tti_keys_assign(batch->assigner, batch->index, entries, batch->keys);
    if (batch->key_rows != NULL) {
        memset(batch->key_rows, 0, batch->key_count * sizeof *batch->key_rows);
        for (size_t i = 0; i < entries; i++)
            batch->key_rows[batch->index[i]]++;
    }
    if (model->bias)
        batch->keys[batch->key_count++] = model->features;
    TT_ASSERT(batch->key_count <= batch->key_max);
}

void
tt_batch_fill(tt_batch *batch, const uint32_t *rows, uint32_t count)
{
    TT_ASSERT(count <= batch->max_rows);
    for (uint32_t i = 0; i < count; i++)
        TT_DASSERT(rows[i] < batch->data->row_count);
    if (count > 0)
        memcpy(batch->rows, rows, count * sizeof *rows);
    batch->row_count = count;
    copy_labels(batch);
    if (batch->model->keyed) {
        copy_entries(batch);
        find_keys(batch);
    } else if (batch->data->layout != TT_DATA_SPARSE) {
        batch->nonzeros = (uint64_t)count * batch->data->feature_count;
    } else {
        const uint64_t *begin = batch->data->row_begin;
        batch->nonzeros = 0;
        for (uint32_t i = 0; i < count; i++)
            batch->nonzeros += begin[rows[i] + (uint64_t)1] - begin[rows[i]];
    }
}

uint32_t
tt_batch_rows(const tt_batch *batch)
{
    return batch->row_count;
}

uint64_t
tt_batch_nonzeros(const tt_batch *batch)
{
    return batch->nonzeros;
}

const uint32_t *
tt_batch_keys(const tt_batch *batch, uint32_t *count)
{
    *count = batch->model->keyed ? batch->key_count : batch->model->rows;
    return batch->keys;
}

uint32_t
tt_batch_key_capacity(const tt_batch *batch)
{
    return batch->key_max;
}
