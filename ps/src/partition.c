// Storage of one partition.
#include "partition.h"
#include "lend.h"
#include <string.h>

enum { FIND_BLOCK = 64 };

static void
cell_arrays(tti_cells *cells, float **arrays[TTI_CELL_ARRAYS])
{
    arrays[0] = &cells->w;
    arrays[1] = &cells->first;
    arrays[2] = &cells->second;
    arrays[3] = &cells->average;
}

// In memory that others see, if there is such and room in it.
static void *
take_array(const tti_partition *partition, size_t count, size_t size)
{
    void *array = NULL;
    if (partition->pool != NULL && count * size >= TTI_LEND_MIN_BYTES)
        array = tt_pool_take(partition->pool, count * size);
    return array != NULL ? array : tt_mem_zalloc_vector(count, size);
}

static void
drop_array(const tti_partition *partition, void *array)
{
    uint64_t offset;
    if (array != NULL && partition->pool != NULL &&
        tt_pool_find(partition->pool, array, 1, &offset))
        tt_pool_give_back(partition->pool, array);
    else
        tt_mem_free(array);
}

// NULL: no memory, and it stays as it is.
static void *
grow_array(const tti_partition *partition, void *array, uint32_t capacity, size_t row_bytes)
{
    void *grown = take_array(partition, capacity, row_bytes);
    if (grown == NULL)
        return NULL;
    if (array != NULL)
        memcpy(grown, array, partition->rows * row_bytes);
    drop_array(partition, array);
    return grown;
}

static tt_status
grow_rows(tti_partition *partition, uint32_t capacity)
{
    float **arrays[TTI_CELL_ARRAYS];
    cell_arrays(&partition->cells, arrays);
    for (int i = 0; i < TTI_CELL_ARRAYS; i++) {
        if (!tti_cells_wanted(partition->table, i))
            continue;
        float *grown =
            grow_array(partition, *arrays[i], capacity, partition->width * sizeof(float));
        if (grown == NULL)
            return TT_NOMEM;
        *arrays[i] = grown;
    }
    if (partition->table->kind == TT_PS_SPARSE) {
        uint64_t *keys = grow_array(partition, partition->row_key, capacity, sizeof *keys);
        if (keys == NULL)
            return TT_NOMEM;
        partition->row_key = keys;
    }
    partition->row_capacity = capacity;
    return TT_OK;
}

static uint32_t
hash_slot(uint64_t key)
{
    uint64_t x = key * 0x9E3779B97F4A7C15u;
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static void
insert_slot(tti_partition *partition, uint64_t key, uint32_t row)
{
    uint32_t slot = hash_slot(key) & partition->slot_mask;
    while (partition->slots[slot] != 0)
        slot = (slot + 1) & partition->slot_mask;
    partition->slots[slot] = row + 1;
}

static tt_status
grow_slots(tti_partition *partition, uint32_t slot_count)
{
    uint32_t *slots = tt_mem_zalloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return TT_NOMEM;
    tt_mem_free(partition->slots);
    partition->slots = slots;
    partition->slot_mask = slot_count - 1;
    for (uint32_t row = 0; row < partition->rows; row++)
        insert_slot(partition, partition->row_key[row], row);
    return TT_OK;
}

tt_status
tti_partition_alloc(const tt_ps_table *table, uint32_t id, tt_pool *pool, tti_partition **out)
{
    *out = NULL;
    tti_partition *partition = tt_mem_zalloc(1, sizeof *partition);
    if (partition == NULL)
        return TT_NOMEM;
    *partition = (tti_partition){.table = table,
                                 .id = id,
                                 .pool = pool,
                                 .width = table->width,
                                 .state_count = tt_ps_state_count(table)};
    tt_status status;
    if (table->kind == TT_PS_DENSE) {
        partition->first = tt_ps_partition_first(table, id);
        uint32_t rows = (uint32_t)(tt_ps_partition_first(table, id + 1) - partition->first);
        status = grow_rows(partition, rows);
        partition->rows = rows;
    } else {
        status = grow_rows(partition, 64);
        if (status == TT_OK)
            status = grow_slots(partition, 256);
    }
    if (status != TT_OK) {
        tti_partition_free(partition);
        return status;
    }
    *out = partition;
    return TT_OK;
}

void
tti_partition_free(tti_partition *partition)
{
    if (partition == NULL)
        return;
    float **arrays[TTI_CELL_ARRAYS];
    cell_arrays(&partition->cells, arrays);
    for (int i = 0; i < TTI_CELL_ARRAYS; i++)
        drop_array(partition, *arrays[i]);
    drop_array(partition, partition->row_key);
    tt_mem_free(partition->slots);
    tt_mem_free(partition);
}

uint64_t
tti_partition_bytes(const tti_partition *partition)
{
    uint64_t bytes = (uint64_t)partition->row_capacity * partition->width *
                     (1 + partition->state_count) * sizeof(float);
    if (partition->table->kind == TT_PS_SPARSE)
        bytes += (uint64_t)partition->row_capacity * sizeof(uint64_t) +
                 ((uint64_t)partition->slot_mask + 1) * sizeof(uint32_t);
    return bytes;
}

// Where the key's row stands, from `slot` on.
static uint32_t
probe(const tti_partition *partition, uint64_t key, uint32_t slot)
{
    for (;; slot = (slot + 1) & partition->slot_mask) {
        uint32_t row = partition->slots[slot];
        if (row == 0)
            return TTI_NO_ROW;
        if (partition->row_key[row - 1] == key)
            return row - 1;
    }
}

uint32_t
tti_partition_find(const tti_partition *partition, uint64_t key)
{
    if (partition->table->kind == TT_PS_DENSE)
        return key < partition->rows ? (uint32_t)key : TTI_NO_ROW;
    return probe(partition, key, hash_slot(key) & partition->slot_mask);
}

uint32_t
tti_partition_find_or_create(tti_partition *partition, uint64_t key)
{
    uint32_t row = tti_partition_find(partition, key);
    if (row != TTI_NO_ROW || partition->table->kind == TT_PS_DENSE)
        return row;
    if (partition->rows == partition->row_capacity &&
        grow_rows(partition, 2 * partition->row_capacity) != TT_OK)
        return TTI_NO_ROW;
    // At most half full: a probe is short.
    if (2 * (partition->rows + 1) > partition->slot_mask &&
        grow_slots(partition, 2 * (partition->slot_mask + 1)) != TT_OK)
        return TTI_NO_ROW;
    row = partition->rows++;
    partition->row_key[row] = key;
    insert_slot(partition, key, row);
    return row;
}

static void
find_all_dense(const tti_partition *partition, const uint8_t *keys, uint32_t count, uint32_t *rows)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row;
        memcpy(&row, keys + i * sizeof row, sizeof row);
        rows[i] = row < partition->rows ? row : TTI_NO_ROW;
    }
}

// Three loads that each miss the caches follow one another for every key: those of many keys are
// under way together.
static void
find_block(const tti_partition *partition, const uint64_t *keys, uint32_t count, uint32_t *rows)
{
    uint32_t slot[FIND_BLOCK];
    for (uint32_t i = 0; i < count; i++) {
        slot[i] = hash_slot(keys[i]) & partition->slot_mask;
        __builtin_prefetch(&partition->slots[slot[i]]);
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = partition->slots[slot[i]];
        __builtin_prefetch(&partition->row_key[rows[i] == 0 ? 0 : rows[i] - 1]);
    }
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = probe(partition, keys[i], slot[i]);
        if (rows[i] != TTI_NO_ROW)
            __builtin_prefetch(partition->cells.w + (size_t)rows[i] * partition->width);
    }
}

void
tti_partition_find_all(const tti_partition *partition,
                       const uint8_t *keys,
                       uint32_t count,
                       uint32_t *rows)
{
    uint64_t block[FIND_BLOCK];
    if (partition->table->kind == TT_PS_DENSE) {
        find_all_dense(partition, keys, count, rows);
        return;
    }
    for (uint32_t begin = 0; begin < count; begin += FIND_BLOCK) {
        uint32_t part = TT_MIN(count - begin, (uint32_t)FIND_BLOCK);
        memcpy(block, keys + begin * sizeof *block, part * sizeof *block);
        find_block(partition, block, part, rows + begin);
    }
}

uint32_t
tti_partition_find_or_create_all(tti_partition *partition,
                                 const uint8_t *keys,
                                 uint32_t count,
                                 uint32_t *rows)
{
    tti_partition_find_all(partition, keys, count, rows);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key;
        if (rows[i] != TTI_NO_ROW)
            continue;
        if (partition->table->kind == TT_PS_DENSE)
            return i;
        memcpy(&key, keys + i * sizeof key, sizeof key);
        rows[i] = tti_partition_find_or_create(partition, key);
        if (rows[i] == TTI_NO_ROW)
            return i;
    }
    return count;
}

tt_status
tti_partition_reserve(tti_partition *partition, uint64_t rows)
{
    uint32_t capacity = partition->row_capacity, slot_count = partition->slot_mask + 1;
    if (partition->table->kind == TT_PS_DENSE)
        return TT_OK;
    while (capacity < rows && capacity <= UINT32_MAX / 8)
        capacity *= 2;
    while (2 * rows > slot_count - 1 && slot_count <= UINT32_MAX / 4)
        slot_count *= 2;
    if (capacity > partition->row_capacity)
        TT_TRY(grow_rows(partition, capacity));
    return slot_count > partition->slot_mask + 1 ? grow_slots(partition, slot_count) : TT_OK;
}

void
tti_partition_touch(tti_partition *partition, uint64_t rows)
{
    (void)tti_partition_reserve(partition, rows); // without memory it is seen when they come
    rows = TT_MIN(rows, partition->row_capacity);
    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {
        size_t row_bytes;
        void *array = tti_partition_array(partition, i, &row_bytes);
        if (array != NULL)
            memset(array, 0, rows * row_bytes);
    }
    if (partition->slots != NULL)
        memset(partition->slots, 0, ((size_t)partition->slot_mask + 1) * sizeof *partition->slots);
}

void *
tti_partition_array(const tti_partition *partition, int array, size_t *row_bytes)
{
    tti_cells cells = partition->cells;
    float **arrays[TTI_CELL_ARRAYS];
    *row_bytes = array < TTI_CELL_ARRAYS ? partition->width * sizeof(float) : sizeof(uint64_t);
    if (array == TTI_CELL_ARRAYS)
        return partition->row_key;
    cell_arrays(&cells, arrays);
    return *arrays[array];
}

void
tti_partition_adopt_rows(tti_partition *partition, uint32_t rows)
{
    TT_ASSERT(partition->rows == 0 && rows <= partition->row_capacity &&
              2 * (uint64_t)rows <= partition->slot_mask);
    for (uint32_t row = 0; row < rows; row++) {
        uint64_t ahead = partition->row_key[TT_MIN(row + FIND_BLOCK, rows - 1)];
        __builtin_prefetch(&partition->slots[hash_slot(ahead) & partition->slot_mask], 1);
        insert_slot(partition, partition->row_key[row], row);
    }
    partition->rows = rows;
}

void
tti_partition_gather(const tti_partition *partition,
                     const uint32_t *rows,
                     uint32_t count,
                     float *out)
{
    size_t width = partition->width;
    if (rows == NULL) {
        memcpy(out, partition->cells.w, count * width * sizeof(float));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i] == TTI_NO_ROW)
            memset(out + i * width, 0, width * sizeof(float));
        else if (width == 1)
            out[i] = partition->cells.w[rows[i]];
        else
            memcpy(out + i * width, partition->cells.w + rows[i] * width, width * sizeof(float));
    }
}

void
tti_partition_gather_saved(const tti_partition *partition,
                           const uint32_t *rows,
                           uint32_t count,
                           float *out)
{
    tti_partition_gather(partition, rows, count, out);
    if (partition->cells.average == NULL || partition->steps == 0)
        return;
    double total = tti_average_total(partition->steps);
    size_t width = partition->width;
    for (uint32_t i = 0; i < count; i++) {
        if (rows != NULL && rows[i] == TTI_NO_ROW)
            continue;
        const float *average = partition->cells.average + (rows != NULL ? rows[i] : i) * width;
        for (size_t j = 0; j < width; j++)
            out[i * width + j] = (float)((double)out[i * width + j] - (double)average[j] / total);
    }
}

tti_cells
tti_partition_cells(const tti_partition *partition, uint32_t row)
{
    return tti_cells_at(&partition->cells, (size_t)row * partition->width);
}

void
tti_partition_step(tti_partition *partition,
                   const tt_vec_ops *ops,
                   const uint32_t *rows,
                   uint32_t count,
                   const float *g,
                   uint32_t iterations)
{
    tti_step step = tti_step_at(partition->table, partition->steps, partition->iterations);
    partition->steps++;
    partition->iterations += iterations;
    size_t width = partition->width;
    if (rows == NULL) {
        tti_step_apply(&step, ops, &partition->cells, g, count * width);
        return;
    }
    if (width == 1) {
        tti_step_apply_each(&step, &partition->cells, rows, g, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        TT_DASSERT(rows[i] < partition->rows);
        tti_cells cells = tti_partition_cells(partition, rows[i]);
        tti_step_apply(&step, ops, &cells, g + i * width, width);
    }
}

uint32_t
tti_partition_cell_floats(const tti_partition *partition)
{
    return partition->width * (1 + partition->state_count);
}

void
tti_partition_export(const tti_partition *partition, uint32_t row, float *cell)
{
    size_t width = partition->width;
    tti_cells cells = tti_partition_cells(partition, row);
    float **arrays[TTI_CELL_ARRAYS];
    cell_arrays(&cells, arrays);
    for (int i = 0; i < TTI_CELL_ARRAYS; i++) {
        if (*arrays[i] == NULL)
            continue;
        memcpy(cell, *arrays[i], width * sizeof(float));
        cell += width;
    }
}

void
tti_partition_import(tti_partition *partition, uint32_t row, const float *cell)
{
    size_t width = partition->width;
    tti_cells cells = tti_partition_cells(partition, row);
    float **arrays[TTI_CELL_ARRAYS];
    cell_arrays(&cells, arrays);
    for (int i = 0; i < TTI_CELL_ARRAYS; i++) {
        if (*arrays[i] == NULL)
            continue;
        memcpy(*arrays[i], cell, width * sizeof(float));
        cell += width;
    }
}
