// Opening and closing the parts of a process.
#include "process.h"

// The node's thread calls this (tt_ps_hooks).
static void
note_end(tti_process *process, tti_end end)
{
    tti_backlog *backlog = &process->backlog;
    pthread_mutex_lock(&backlog->lock);
    if (backlog->end_count == backlog->end_capacity) {
        uint32_t capacity = TT_MAX(2 * backlog->end_capacity, 64u);
        tti_end *grown = tt_mem_realloc(backlog->ends, capacity * sizeof *grown);
        TT_ASSERT(grown != NULL); // without it the master would wait for ever
        backlog->ends = grown;
        backlog->end_capacity = capacity;
    }
    backlog->ends[backlog->end_count++] = end;
    pthread_mutex_unlock(&backlog->lock);
    tti_board_ring(&process->board);
}

static void
partition_retired(void *self, uint32_t partition, uint32_t generation)
{
    note_end(self, (tti_end){TTI_END_MOVE, .partition = partition, .generation = generation});
}

static void
partition_backed(void *self, uint32_t partition, uint32_t generation)
{
    note_end(self, (tti_end){TTI_END_BACKED, .partition = partition, .generation = generation});
}

static void
batch_is_in(void *self, uint32_t worker, const tt_ps_batch *batch)
{
    note_end(self, (tti_end){TTI_END_BATCH, .worker = worker, .batch = *batch});
}

// Where the master can read what was not reported when the process dies: the first that this end
// takes of the mesh's memory, if it has some.
static tt_status
open_records(tti_process *process)
{
    const tti_board *board = &process->board;
    tt_pool *pool = tt_mesh_outbox(board->control, board->end).pool;
    uint64_t offset;
    size_t bytes = tti_records_bytes(board->node_count);
    void *memory = pool != NULL ? tt_pool_take(pool, bytes) : NULL;
    if (memory == NULL)
        return tti_records_open(&process->standing.records, board->node_count);
    TT_ASSERT(tt_pool_find(pool, memory, bytes, &offset) && offset == 0);
    tti_records_place(&process->standing.records, memory, board->node_count);
    return TT_OK;
}

tt_status
tti_process_open(tti_process *process,
                 const tt_job *job,
                 uint32_t index,
                 tt_clock clock,
                 tt_mesh *mesh,
                 tt_mesh *control,
                 tt_error *err)
{
    process->job = job;
    process->board = (tti_board){.job = job,
                                 .clock = clock,
                                 .node_count = job->node_count,
                                 .mesh = mesh,
                                 .lease = &process->lease,
                                 .losses = &process->losses,
                                 .retry_ns = (uint64_t)(1e9 * job->spec.retry),
                                 .retired = partition_retired,
                                 .backed = partition_backed,
                                 .last_batch = batch_is_in,
                                 .self = process,
                                 .round_limit = UINT32_MAX,
                                 .hold_round = UINT32_MAX,
                                 .control = control,
                                 .end = index};
    process->node =
        (tti_node){.board = &process->board, .standing = &process->standing, .index = index};
    // Of thousands each says less often what it has measured: the master hears as much in all.
    process->report_period_ns = TT_MAX(5000000u, 100000u * job->node_count);
    (void)pthread_mutex_init(&process->backlog.lock, NULL);
    process->backlog.records = tt_mem_zalloc(TTI_BACKLOG, sizeof(tti_record));
    process->backlog.losses = tt_mem_zalloc(TTI_LOSSES, sizeof(float));
    tt_status status =
        process->backlog.records != NULL && process->backlog.losses != NULL ? TT_OK : TT_NOMEM;
    if (status == TT_OK)
        status = tti_loss_ring_open(&process->losses, job->node_count);
    if (status == TT_OK)
        status = open_records(process);
    if (status == TT_OK)
        status = tti_lease_open(&process->lease, tti_worker_rows_max(job));
    return status == TT_OK ? TT_OK
                           : tt_error_set(err, status, NULL, NULL, "no memory for the job's nodes");
}

tt_status
tti_process_open_node(tti_process *process, int joins, tt_error *err)
{
    process->begun = 1;
    return tti_node_open(&process->node, process->newest->view, joins, err);
}

// Frees those that the node uses no more. Its server may have taken a newer view than the node.
static void
forget_old(tti_process *process)
{
    tti_generation *newest = process->newest;
    if (newest == NULL || tt_load_acquire(&process->standing.adopted_generation) <
                              newest->view->generation) // released in tti_node_adopt
        return;
    tti_generations_free(newest->previous);
    newest->previous = NULL;
}

void
tti_process_learn(tti_process *process, tti_generation *generation)
{
    forget_old(process);
    generation->previous = process->newest;
    process->newest = generation;
    tt_store_release(&process->board.current, generation); // acquired by the node
}

void
tti_process_close(tti_process *process)
{
    if (process->job == NULL)
        return; // never opened
    tti_node_close(&process->node);
    tti_generations_free(process->newest);
    process->newest = NULL;
    tti_records_close(&process->standing.records);
    tti_lease_close(&process->lease);
    tti_loss_ring_close(&process->losses);
    tt_mem_free(process->backlog.records);
    tt_mem_free(process->backlog.losses);
    tt_mem_free(process->backlog.ends);
    (void)pthread_mutex_destroy(&process->backlog.lock);
    tt_archive_fini(&process->out);
    process->job = NULL;
}
