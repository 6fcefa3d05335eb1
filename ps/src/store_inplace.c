// The in-place store: workers of one process touch the table directly. Dense tables without locks
// (Hogwild), sparse ones with a lock a partition; SSP and BSP waits as servers would impose them.
#include "server_core.h"
#include "table_state.h"
#include <string.h>

struct tt_ps_store {
    tt_ps_table table;
    uint32_t node_count;
    tti_partition **partitions;         // [partition_count]
    pthread_mutex_t *locks;             // [partition_count], sparse: guards the partition
    tt_event progress;                  // a clock or a round moved
    uint32_t clock[TT_PS_NODES_MAX];    // written by its worker (release), read by any (acquire)
    uint8_t is_worker[TT_PS_NODES_MAX]; // relaxed
    pthread_mutex_t round_lock;         // guards collecting
    tti_round *collecting;              // [partition_count]
    uint32_t slices_arrived;            // of the present round; guarded by round_lock
    uint32_t round; // rounds applied; release after the step, acquire before reading
};

tt_status
tt_ps_store_open(const tt_ps_table *table, uint32_t node_count, tt_ps_store **out, tt_error *err)
{
    *out = NULL;
    tt_ps_store *store = tt_mem_zalloc(1, sizeof *store);
    if (store == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the parameter store");
    store->table = *table;
    store->node_count = node_count;
    (void)pthread_mutex_init(&store->round_lock, NULL);
    uint32_t count = table->partition_count;
    store->partitions = tt_mem_zalloc(count, sizeof(tti_partition *));
    store->locks = tt_mem_zalloc(count, sizeof *store->locks);
    store->collecting = tt_mem_zalloc(count, sizeof *store->collecting);
    tt_status status =
        store->partitions != NULL && store->locks != NULL && store->collecting != NULL ? TT_OK
                                                                                       : TT_NOMEM;
    for (uint32_t p = 0; status == TT_OK && p < count; p++) {
        (void)pthread_mutex_init(&store->locks[p], NULL);
        status = tti_partition_alloc(&store->table, p, NULL, &store->partitions[p]);
        if (status == TT_OK && table->consistency == TT_PS_BSP)
            status = tti_round_init(&store->collecting[p], table->slice_count);
    }
    if (status != TT_OK) {
        tt_ps_store_close(store);
        return tt_error_set(err, status, NULL, NULL, "no memory for a table of %llu rows",
                            (unsigned long long)table->rows);
    }
    *out = store;
    return TT_OK;
}

void
tt_ps_store_close(tt_ps_store *store)
{
    if (store == NULL)
        return;
    for (uint32_t p = 0; p < store->table.partition_count; p++) {
        if (store->partitions != NULL)
            tti_partition_free(store->partitions[p]);
        if (store->collecting != NULL)
            tti_round_fini(&store->collecting[p], store->table.slice_count);
        if (store->locks != NULL)
            (void)pthread_mutex_destroy(&store->locks[p]);
    }
    (void)pthread_mutex_destroy(&store->round_lock);
    tt_mem_free(store->partitions);
    tt_mem_free(store->locks);
    tt_mem_free(store->collecting);
    tt_mem_free(store);
}

void
tt_ps_store_adopt(tt_ps_store *store, const tt_ps_view *view)
{
    for (uint32_t n = 0; n < store->node_count; n++) {
        uint32_t clock = tt_load_relaxed(&store->clock[n]);
        if (view->joined_at[n] > 1 && clock < view->join_clock[n])
            tt_store_relaxed(&store->clock[n], view->join_clock[n]);
        tt_store_relaxed(&store->is_worker[n], view->is_worker[n]);
    }
    tt_event_signal(&store->progress);
}

void
tt_ps_store_wake(tt_ps_store *store)
{
    tt_event_signal(&store->progress);
}

// ---- waiting for the others -------------------------------------------------------------------

static uint32_t
store_clock(const tt_ps_store *store)
{
    if (store->table.consistency == TT_PS_BSP)
        return tt_load_acquire(&store->round); // released in complete_round
    uint32_t clock = UINT32_MAX;
    if (store->table.consistency == TT_PS_SSP)
        for (uint32_t n = 0; n < store->node_count; n++)
            if (tt_load_relaxed(&store->is_worker[n]))
                clock = TT_MIN(clock,
                               tt_load_acquire(&store->clock[n])); // released in tt_ps_store_push
    return clock;
}

static int
wait_for(tt_ps_store *store, uint32_t need, uint32_t spin, const int *stop)
{
    for (;;) { // ends when the clock is reached or the job stops
        uint32_t seen = tt_event_read(&store->progress);
        if (store_clock(store) >= need)
            return 1;
        if (tt_load_acquire(stop))
            return 0;
        (void)tt_event_wait(&store->progress, seen, spin, 100000000u);
    }
}

// ---- reading ----------------------------------------------------------------------------------

static void
read_dense(tt_ps_store *store, tt_ps_keys keys, float *out)
{
    size_t width = store->table.width;
    if (keys.rows == NULL) {
        for (uint32_t p = 0; p < store->table.partition_count; p++) {
            const tti_partition *partition = store->partitions[p];
            tt_vec_racy_copy(partition->cells.w, out + partition->first * width,
                             partition->rows * width);
        }
        return;
    }
    uint32_t i = 0;
    while (i < keys.count) {
        const tti_partition *partition =
            store->partitions[tt_ps_partition_of(&store->table, keys.rows[i])];
        uint64_t end = partition->first + partition->rows;
        for (; i < keys.count && keys.rows[i] < end; i++) {
            const float *w = partition->cells.w + (keys.rows[i] - partition->first) * width;
            for (size_t j = 0; j < width; j++)
                out[i * width + j] = TT_RACY_LOAD(&w[j]);
        }
    }
}

static uint64_t
store_key(tt_ps_keys keys, uint32_t i)
{
    return keys.keys != NULL ? keys.keys[i] : keys.rows[i];
}

// Sparse: the keys one partition after the other, each under its lock.
static void
for_each_locked(tt_ps_store *store,
                tt_ps_keys keys,
                void (*visit)(void *self, tti_partition *partition, uint64_t key, uint32_t i),
                void *self)
{
    for (uint32_t i = 0; i < keys.count; i++) {
        uint64_t key = store_key(keys, i);
        uint32_t p = tt_ps_partition_of(&store->table, key);
        pthread_mutex_lock(&store->locks[p]);
        visit(self, store->partitions[p], key, i);
        pthread_mutex_unlock(&store->locks[p]);
    }
}

struct read_visit {
    float *out;
    int saved;
};

static void
read_row(void *self, tti_partition *partition, uint64_t key, uint32_t i)
{
    struct read_visit *visit = self;
    uint32_t row = tti_partition_find(partition, key);
    float *out = visit->out + (size_t)i * partition->width;
    if (visit->saved)
        tti_partition_gather_saved(partition, &row, 1, out);
    else
        tti_partition_gather(partition, &row, 1, out);
}

int
tt_ps_store_pull(tt_ps_store *store,
                 uint32_t worker,
                 tt_ps_keys keys,
                 uint32_t need,
                 uint32_t spin,
                 const int *stop,
                 float *out)
{
    TT_UNUSED(worker);
    if (need > 0 && !wait_for(store, need, spin, stop))
        return 0;
    if (store->table.kind == TT_PS_DENSE) {
        read_dense(store, keys, out);
        return 1;
    }
    struct read_visit visit = {out, 0};
    for_each_locked(store, keys, read_row, &visit);
    return 1;
}

// Averaged weights of one dense partition, read while others may write.
static void
read_saved_dense(const tti_partition *partition, uint32_t row, float *out)
{
    uint64_t steps = tt_load_relaxed(&partition->steps);
    double total = tti_average_total(steps);
    size_t width = partition->width, at = (size_t)row * width;
    for (size_t j = 0; j < width; j++) {
        double w = TT_RACY_LOAD(&partition->cells.w[at + j]);
        if (partition->cells.average != NULL && steps > 0)
            w -= (double)TT_RACY_LOAD(&partition->cells.average[at + j]) / total;
        out[j] = (float)w;
    }
}

static void
read_saved(tt_ps_store *store, tt_ps_keys keys, float *out)
{
    if (store->table.kind == TT_PS_SPARSE) {
        struct read_visit visit = {out, 1};
        for_each_locked(store, keys, read_row, &visit);
        return;
    }
    uint64_t count = keys.rows != NULL ? keys.count : store->table.rows;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = keys.rows != NULL ? keys.rows[i] : i;
        const tti_partition *partition = store->partitions[tt_ps_partition_of(&store->table, key)];
        read_saved_dense(partition, (uint32_t)(key - partition->first),
                         out + i * store->table.width);
    }
}

void
tt_ps_store_read(tt_ps_store *store, tt_ps_keys keys, float *out)
{
    // Under BSP the last worker of a round writes with plain stores, holding this lock.
    int bsp = store->table.consistency == TT_PS_BSP;
    if (bsp)
        pthread_mutex_lock(&store->round_lock);
    read_saved(store, keys, out);
    if (bsp)
        pthread_mutex_unlock(&store->round_lock);
}

// ---- writing ----------------------------------------------------------------------------------

// The step of one push; counters are shared and exact, the weights are racy on purpose.
static tti_step
shared_step(tti_partition *partition, uint32_t iterations)
{
    uint64_t steps = tt_add_relaxed(&partition->steps, 1u);
    uint64_t iteration = tt_add_relaxed(&partition->iterations, iterations);
    return tti_step_at(partition->table, steps, iteration);
}

static void
step_whole(tt_ps_store *store, const float *gradients, uint32_t iterations)
{
    for (uint32_t p = 0; p < store->table.partition_count; p++) {
        tti_partition *partition = store->partitions[p];
        tti_step step = shared_step(partition, iterations);
        size_t floats = (size_t)partition->rows * partition->width;
        const float *g = gradients + partition->first * partition->width;
        const tti_cells *cells = &partition->cells;
        if (step.kind == TT_PS_SGD && !step.averaging)
            tt_vec_racy_sgd(cells->w, g, floats, step.learning_rate);
        else if (step.kind == TT_PS_ADAGRAD && !step.averaging)
            tt_vec_racy_adagrad(cells->w, cells->first, g, floats, step.learning_rate,
                                step.epsilon);
        else
            tti_step_apply_racy(&step, cells, g, floats);
    }
}

static void
step_rows(tt_ps_store *store, tt_ps_keys keys, const float *gradients, uint32_t iterations)
{
    size_t width = store->table.width;
    uint32_t i = 0;
    while (i < keys.count) {
        tti_partition *partition =
            store->partitions[tt_ps_partition_of(&store->table, keys.rows[i])];
        tti_step step = shared_step(partition, iterations);
        uint64_t end = partition->first + partition->rows;
        for (; i < keys.count && keys.rows[i] < end; i++) {
            tti_cells cells =
                tti_partition_cells(partition, (uint32_t)(keys.rows[i] - partition->first));
            tti_step_apply_racy(&step, &cells, gradients + i * width, width);
        }
    }
}

struct step_visit {
    const float *gradients;
    tti_step step;
    const tt_vec_ops *ops;
};

static void
step_row(void *self, tti_partition *partition, uint64_t key, uint32_t i)
{
    struct step_visit *visit = self;
    uint32_t row = tti_partition_find_or_create(partition, key);
    TT_ASSERT(row != TTI_NO_ROW); // out of memory for a row: the process cannot train on
    tti_cells cells = tti_partition_cells(partition, row);
    tti_step_apply(&visit->step, visit->ops, &cells,
                   visit->gradients + (size_t)i * partition->width, partition->width);
}

static void
step_sparse(tt_ps_store *store,
            const tt_vec_ops *ops,
            tt_ps_keys keys,
            const float *gradients,
            uint32_t iterations)
{
    // One step number for the push in all partitions: they advance together.
    tti_step step = {0};
    for (uint32_t p = 0; p < store->table.partition_count; p++) {
        pthread_mutex_lock(&store->locks[p]);
        tti_step own = tti_step_at(&store->table, store->partitions[p]->steps,
                                   store->partitions[p]->iterations);
        store->partitions[p]->steps++;
        store->partitions[p]->iterations += iterations;
        pthread_mutex_unlock(&store->locks[p]);
        if (p == 0)
            step = own;
    }
    struct step_visit visit = {gradients, step, ops};
    for_each_locked(store, keys, step_row, &visit);
}

// Each slice lands in the buffers of the partitions; the last one of a round reduces them all.
static void
push_slice(tt_ps_store *store,
           const tt_vec_ops *ops,
           tt_ps_keys keys,
           const float *gradients,
           uint32_t round,
           uint32_t slice)
{
    TT_ASSERT(tt_load_relaxed(&store->round) == round);
    static _Thread_local uint32_t rows[1 << 12];
    size_t width = store->table.width;
    int whole = keys.rows == NULL && keys.keys == NULL;
    int complete = 0;
    pthread_mutex_lock(&store->round_lock);
    for (uint32_t p = 0; p < store->table.partition_count; p++) {
        tti_partition *partition = store->partitions[p];
        tti_round *collecting = &store->collecting[p];
        if (whole) {
            complete =
                tti_round_add(collecting, NULL, partition, ops, store->table.slice_count, slice,
                              NULL, partition->rows, gradients + partition->first * width);
            continue;
        }
        TT_ASSERT(store->table.partition_count == 1 && p == 0);
        uint32_t *found =
            keys.count <= TT_COUNT_OF(rows) ? rows : tt_mem_alloc(keys.count * sizeof *found);
        TT_ASSERT(found != NULL);
        for (uint32_t i = 0; i < keys.count; i++)
            found[i] =
                tti_partition_find_or_create(partition, store_key(keys, i) - partition->first);
        complete = tti_round_add(collecting, NULL, partition, ops, store->table.slice_count, slice,
                                 found, keys.count, gradients);
        if (found != rows)
            tt_mem_free(found);
    }
    if (complete)
        tt_store_release(&store->round, round + 1); // acquired in store_clock
    pthread_mutex_unlock(&store->round_lock);
    if (complete)
        tt_event_signal(&store->progress);
}

void
tt_ps_store_push(tt_ps_store *store,
                 const tt_vec_ops *ops,
                 uint32_t worker,
                 tt_ps_keys keys,
                 const float *gradients,
                 uint32_t clock,
                 uint32_t detail)
{
    if (store->table.consistency == TT_PS_BSP) {
        push_slice(store, ops, keys, gradients, clock, detail);
        return;
    }
    if (store->table.kind == TT_PS_SPARSE)
        step_sparse(store, ops, keys, gradients, detail);
    else if (keys.rows == NULL)
        step_whole(store, gradients, detail);
    else
        step_rows(store, keys, gradients, detail);
    if (store->table.consistency == TT_PS_SSP) {
        tt_store_release(&store->clock[worker], clock); // acquired in store_clock
        tt_event_signal(&store->progress);
    }
}

void
tt_ps_store_end(tt_ps_store *store, uint32_t worker)
{
    if (store->table.consistency != TT_PS_SSP)
        return;
    tt_store_release(&store->clock[worker], UINT32_MAX); // acquired in store_clock
    tt_event_signal(&store->progress);
}

// ---- the state at rest ------------------------------------------------------------------------

uint64_t
tt_ps_store_save_bytes(const tt_ps_store *store)
{
    uint64_t bytes = sizeof(uint64_t);
    for (uint32_t p = 0; p < store->table.partition_count; p++)
        bytes += tti_partition_save_bytes(store->partitions[p]);
    return bytes;
}

void
tt_ps_store_save(tt_ps_store *store, tt_archive *out)
{
    uint64_t count = store->table.partition_count;
    TT_ARCHIVE(out, count);
    for (uint32_t p = 0; p < store->table.partition_count; p++)
        tti_partition_save(store->partitions[p], tt_load_acquire(&store->round), out);
}

tt_status
tt_ps_store_load(tt_ps_store *store, const tt_ps_state *state)
{
    for (uint32_t p = 0; p < store->table.partition_count; p++)
        TT_TRY(tti_partition_load(store->partitions[p], state));
    tt_store_release(&store->round, tt_ps_state_round(state)); // acquired in store_clock
    return TT_OK;
}
