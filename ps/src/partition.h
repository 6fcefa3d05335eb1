// One partition's parameters: rows of weights and optimiser state, found by row number (dense) or
// key (sparse).
#ifndef TTI_PARTITION_H
#define TTI_PARTITION_H

#include "optimizer.h"
#include "tt/comm_pool.h"
#include "tt/ps.h"

enum { TTI_NO_ROW = UINT32_MAX };
// Arrays in which each row has a place: those of its cell, then sparse tables' keys.
enum { TTI_ROW_ARRAYS = TTI_CELL_ARRAYS + 1 };

typedef struct tti_partition {
    const tt_ps_table *table;
    uint32_t id;
    tt_pool *pool;         // where its arrays lie if there is room, or NULL. Borrowed
    uint64_t first;        // dense: key of row 0
    uint32_t rows;         // rows in use
    uint32_t row_capacity; // dense: == rows
    uint32_t width, state_count;
    tti_cells cells; // [row_capacity][width] each
    // sparse: open addressing with linear probing, slot -> row + 1; row -> key
    uint32_t *slots; // [slot_mask + 1]
    uint32_t slot_mask;
    uint64_t *row_key;   // [row_capacity]
    uint64_t steps;      // optimiser steps taken
    uint64_t iterations; // iterations these stood for (merged pushes count as many)
} tti_partition;

TT_NODISCARD tt_status tti_partition_alloc(const tt_ps_table *table,
                                           uint32_t id,
                                           tt_pool *pool,
                                           tti_partition **out);
void tti_partition_free(tti_partition *partition);
uint64_t tti_partition_bytes(const tti_partition *partition);

// Row of a key (dense: the row number inside the partition is the key on the wire), or TTI_NO_ROW.
uint32_t tti_partition_find(const tti_partition *partition, uint64_t key);
// The same, created at zero when it is not there; TTI_NO_ROW when memory is short or a dense row is
// out of range.
uint32_t tti_partition_find_or_create(tti_partition *partition, uint64_t key);

// The same for the keys of a request, as they travel (4 bytes each of a dense table, 8 of a sparse
// one), with what is looked up first on its way while others are: rows[count]. Of those created,
// the first that finds no memory ends it; returns how many were found or created.
void tti_partition_find_all(const tti_partition *partition,
                            const uint8_t *keys,
                            uint32_t count,
                            uint32_t *rows);
uint32_t tti_partition_find_or_create_all(tti_partition *partition,
                                          const uint8_t *keys,
                                          uint32_t count,
                                          uint32_t *rows);

// Sparse: room for so many rows, so that they come in without growing step by step. TT_NOMEM leaves
// it as it was: rows then grow when they come.
tt_status tti_partition_reserve(tti_partition *partition, uint64_t rows);

// Takes the memory of so many rows, none of which is in use yet, so that it is there when they
// come.
void tti_partition_touch(tti_partition *partition, uint64_t rows);

// The i-th of its arrays, or NULL: its rows have none such. *row_bytes: of one row in it.
void *tti_partition_array(const tti_partition *partition, int array, size_t *row_bytes);
// Sparse, without rows as yet: what stands in the arrays are `rows` rows. There is room for them.
void tti_partition_adopt_rows(tti_partition *partition, uint32_t rows);

// out[count][width] = weights of rows[i]; zero where TTI_NO_ROW. rows NULL: all rows in order.
void tti_partition_gather(const tti_partition *partition,
                          const uint32_t *rows,
                          uint32_t count,
                          float *out);
// The averaged weights instead (the weights when averaging is off).
void tti_partition_gather_saved(const tti_partition *partition,
                                const uint32_t *rows,
                                uint32_t count,
                                float *out);
// The arrays from a row on.
tti_cells tti_partition_cells(const tti_partition *partition, uint32_t row);
// One optimiser step along g[count][width]; rows as above, none missing. Counts `iterations`.
void tti_partition_step(tti_partition *partition,
                        const tt_vec_ops *ops,
                        const uint32_t *rows,
                        uint32_t count,
                        const float *g,
                        uint32_t iterations);

// Floats of one row with its state, and moving them: cell = weights, then the arrays of state there
// are.
uint32_t tti_partition_cell_floats(const tti_partition *partition);
void tti_partition_export(const tti_partition *partition, uint32_t row, float *cell);
void tti_partition_import(tti_partition *partition, uint32_t row, const float *cell);

#endif
