// The table's state as bytes and back: one section a partition, whoever holds it.
#include "table_state.h"
#include "server_core.h"
#include <stdlib.h>
#include <string.h>

// A partition as it lies in the archive; nothing there is aligned.
typedef struct saved_partition {
    uint32_t id, rows, width, arrays, round, unused;
    uint64_t steps, iterations;
    const uint8_t *keys, *cells[TTI_CELL_ARRAYS]; // as many as `arrays`
} saved_partition;

struct tt_ps_state {
    const tt_ps_table *table;
    uint32_t count;
    saved_partition *partitions; // [count]
    uint64_t steps, iterations;  // the most of any
};

static uint32_t
array_count(const tt_ps_table *table)
{
    return 1 + tt_ps_state_count(table);
}

static void
visit_head(tt_archive *archive, saved_partition *p)
{
    TT_ARCHIVE(archive, p->id);
    TT_ARCHIVE(archive, p->rows);
    TT_ARCHIVE(archive, p->width);
    TT_ARCHIVE(archive, p->arrays);
    TT_ARCHIVE(archive, p->round);
    TT_ARCHIVE(archive, p->unused);
    TT_ARCHIVE(archive, p->steps);
    TT_ARCHIVE(archive, p->iterations);
}

// ---- saving -----------------------------------------------------------------------------------

uint64_t
tti_partition_save_bytes(const tti_partition *partition)
{
    uint64_t floats = (uint64_t)partition->rows * partition->width * array_count(partition->table);
    return 64 + floats * sizeof(float) + (uint64_t)partition->rows * sizeof(uint64_t);
}

void
tti_partition_save(const tti_partition *partition, uint32_t round, tt_archive *out)
{
    saved_partition head = {.id = partition->id,
                            .rows = partition->rows,
                            .width = partition->width,
                            .arrays = array_count(partition->table),
                            .round = round,
                            .steps = partition->steps,
                            .iterations = partition->iterations};
    visit_head(out, &head);
    if (partition->table->kind == TT_PS_SPARSE)
        tt_archive_field(out, partition->row_key, partition->rows * sizeof(uint64_t));
    tti_cells cells = partition->cells;
    float *const arrays[TTI_CELL_ARRAYS] = {cells.w, cells.first, cells.second, cells.average};
    for (int i = 0; i < TTI_CELL_ARRAYS; i++)
        if (arrays[i] != NULL)
            tt_archive_field(out, arrays[i],
                             (size_t)partition->rows * partition->width * sizeof(float));
}

uint32_t
tt_ps_server_save_count(const tt_ps_server *server, uint64_t *bytes)
{
    uint32_t count = 0;
    *bytes = 0;
    for (uint32_t p = 0; p < server->table->partition_count; p++)
        if (server->slots[p].state == TTI_SERVING) {
            count++;
            *bytes += tti_partition_save_bytes(server->slots[p].partition);
        }
    return count;
}

void
tt_ps_server_save(const tt_ps_server *server, tt_archive *out)
{
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        const tti_slot *slot = &server->slots[p];
        TT_ASSERT(slot->state != TTI_SEALED && slot->state != TTI_ARRIVING);
        if (slot->state != TTI_SERVING)
            continue;
        TT_ASSERT(slot->collecting.arrived == 0);
        tti_partition_save(slot->partition, slot->round, out);
    }
}

// ---- reading ----------------------------------------------------------------------------------

static tt_status
damaged(tt_error *err)
{
    return tt_error_set(err, TT_CORRUPT, NULL, NULL, "the parameters are damaged");
}

static tt_status
check_shape(const tt_ps_table *table, const saved_partition *p, tt_error *err)
{
    if (p->width != table->width || p->arrays != array_count(table))
        return tt_error_set(
            err, TT_INVALID, NULL, NULL,
            "the parameters are of another model or optimizer: %u values a row with "
            "%u arrays of state, this job has %u with %u",
            p->width, p->arrays - 1, table->width, array_count(table) - 1);
    return TT_OK;
}

static tt_status
read_partition(const tt_ps_table *table, tt_archive *in, saved_partition *p, tt_error *err)
{
    visit_head(in, p);
    if (in->status != TT_OK)
        return damaged(err);
    TT_TRY(check_shape(table, p, err));
    if (table->kind == TT_PS_SPARSE)
        p->keys = tt_archive_borrow(in, (size_t)p->rows * sizeof(uint64_t));
    for (uint32_t i = 0; i < p->arrays; i++)
        p->cells[i] = tt_archive_borrow(in, (size_t)p->rows * p->width * sizeof(float));
    return in->status == TT_OK ? TT_OK : damaged(err);
}

// Every partition once, and a dense table's rows add up.
static tt_status
check_whole(const tt_ps_state *state, tt_error *err)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < state->count; i++) {
        rows += state->partitions[i].rows;
        for (uint32_t j = 0; j < i; j++)
            if (state->partitions[j].id == state->partitions[i].id)
                return damaged(err);
    }
    if (state->table->kind == TT_PS_DENSE && rows != state->table->rows)
        return tt_error_set(err, TT_INVALID, NULL, NULL,
                            "the parameters have %llu rows, this job's model has %llu",
                            (unsigned long long)rows, (unsigned long long)state->table->rows);
    return TT_OK;
}

static int
by_id(const void *a, const void *b)
{
    uint32_t x = ((const saved_partition *)a)->id, y = ((const saved_partition *)b)->id;
    return (x > y) - (x < y);
}

static tt_status
read_all(tt_ps_state *state, tt_archive *in, tt_error *err)
{
    for (uint32_t i = 0; i < state->count; i++) {
        saved_partition *p = &state->partitions[i];
        TT_TRY(read_partition(state->table, in, p, err));
        state->steps = TT_MAX(state->steps, p->steps);
        state->iterations = TT_MAX(state->iterations, p->iterations);
        if (p->id >= state->count || p->round != state->partitions[0].round)
            return damaged(err);
    }
    TT_TRY(check_whole(state, err));
    qsort(state->partitions, state->count, sizeof *state->partitions, by_id);
    return TT_OK;
}

tt_status
tt_ps_state_open(const tt_ps_table *table, tt_archive *in, tt_ps_state **out, tt_error *err)
{
    *out = NULL;
    uint64_t count = 0;
    TT_ARCHIVE(in, count);
    if (in->status != TT_OK || count == 0 || count > UINT16_MAX)
        return damaged(err);
    tt_ps_state *state = tt_mem_zalloc(1, sizeof *state);
    saved_partition *partitions = tt_mem_zalloc(count, sizeof *partitions);
    if (state == NULL || partitions == NULL) {
        tt_mem_free(state);
        tt_mem_free(partitions);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to restore the parameters");
    }
    *state = (tt_ps_state){.table = table, .count = (uint32_t)count, .partitions = partitions};
    tt_status status = read_all(state, in, err);
    if (status != TT_OK) {
        tt_ps_state_close(state);
        return status;
    }
    *out = state;
    return TT_OK;
}

void
tt_ps_state_close(tt_ps_state *state)
{
    if (state == NULL)
        return;
    tt_mem_free(state->partitions);
    tt_mem_free(state);
}

uint32_t
tt_ps_state_round(const tt_ps_state *state)
{
    return state->partitions[0].round;
}

// ---- restoring --------------------------------------------------------------------------------

// `count` saved rows from i on into rows of the partition. scale: what the averaging term is
// multiplied with, as the partition's step count differs from the one it was saved with.
static void
load_rows(tti_partition *partition,
          uint32_t row,
          const saved_partition *p,
          uint32_t i,
          uint32_t count,
          double scale)
{
    size_t floats = (size_t)count * partition->width, at = (size_t)i * partition->width;
    tti_cells cells = tti_partition_cells(partition, row);
    float *const arrays[TTI_CELL_ARRAYS] = {cells.w, cells.first, cells.second, cells.average};
    uint32_t from = 0;
    for (int k = 0; k < TTI_CELL_ARRAYS; k++) {
        if (arrays[k] == NULL)
            continue;
        memcpy(arrays[k], p->cells[from++] + at * sizeof(float), floats * sizeof(float));
        for (size_t j = 0; k == TTI_CELL_ARRAYS - 1 && scale != 1 && j < floats; j++)
            arrays[k][j] = (float)(scale * (double)arrays[k][j]);
    }
}

static double
average_scale(const tti_partition *partition, const saved_partition *p)
{
    return p->steps == 0 || p->steps == partition->steps
               ? 1
               : tti_average_total(partition->steps) / tti_average_total(p->steps);
}

static tt_status
load_sparse(tti_partition *partition, const saved_partition *p, int same_cut)
{
    double scale = average_scale(partition, p);
    for (uint32_t i = 0; i < p->rows; i++) {
        uint64_t key;
        memcpy(&key, p->keys + i * sizeof key, sizeof key);
        if (!same_cut && tt_ps_partition_of(partition->table, key) != partition->id)
            continue;
        uint32_t row = tti_partition_find_or_create(partition, key);
        if (row == TTI_NO_ROW)
            return TT_NOMEM;
        load_rows(partition, row, p, i, 1, scale);
    }
    return TT_OK;
}

// The rows that the partition and the saved one, whose first row is `first`, have in common.
static void
load_dense(tti_partition *partition, const saved_partition *p, uint64_t first)
{
    double scale = average_scale(partition, p);
    uint64_t begin = TT_MAX(first, partition->first);
    uint64_t end = TT_MIN(first + p->rows, partition->first + partition->rows);
    if (begin < end)
        load_rows(partition, (uint32_t)(begin - partition->first), p, (uint32_t)(begin - first),
                  (uint32_t)(end - begin), scale);
}

tt_status
tti_partition_load(tti_partition *partition, const tt_ps_state *state)
{
    int same_cut = state->count == partition->table->partition_count;
    const saved_partition *own = same_cut ? &state->partitions[partition->id] : NULL;
    partition->steps = same_cut ? own->steps : state->steps;
    partition->iterations = same_cut ? own->iterations : state->iterations;
    uint64_t first = 0;
    for (uint32_t i = 0; i < state->count; i++) {
        const saved_partition *p = &state->partitions[i];
        if (partition->table->kind == TT_PS_DENSE)
            load_dense(partition, p, first);
        else if (!same_cut || p == own)
            TT_TRY(load_sparse(partition, p, same_cut));
        first += p->rows;
    }
    return TT_OK;
}

tt_status
tti_partition_read(tti_partition *partition, tt_archive *in, uint32_t *round)
{
    saved_partition p;
    int dense = partition->table->kind == TT_PS_DENSE;
    if (read_partition(partition->table, in, &p, NULL) != TT_OK || p.id != partition->id ||
        (dense && p.rows != partition->rows))
        return TT_CORRUPT;
    partition->steps = p.steps;
    partition->iterations = p.iterations;
    *round = p.round;
    if (!dense)
        return load_sparse(partition, &p, 1);
    load_dense(partition, &p, partition->first);
    return TT_OK;
}

tt_status
tt_ps_server_load(tt_ps_server *server, const tt_ps_state *state)
{
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        tti_slot *slot = &server->slots[p];
        if (slot->state != TTI_SERVING)
            continue;
        TT_TRY(tti_partition_load(slot->partition, state));
        slot->round = tt_ps_state_round(state);
        if (p == 0)
            tt_store_relaxed(&server->counters.iterations, slot->partition->iterations);
    }
    tti_server_count_bytes(server);
    return TT_OK;
}
