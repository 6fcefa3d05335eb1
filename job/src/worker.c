// A worker: pull, loss and gradient, push, one measurement record an iteration.
#include "simulated.h"
#include <math.h>

static int
is_bsp(const tti_node *node)
{
    return node->board->job->table.consistency == TT_PS_BSP;
}

// ---- parameters -------------------------------------------------------------------------------

static tt_ps_keys
keys_of(const tt_batch *batch)
{
    tt_ps_keys keys = {0};
    keys.rows = tt_batch_keys(batch, &keys.count);
    return keys;
}

// BSP: a push waits where the slices of the round before are not all in. They are on their way,
// unless a worker died and the others stop before they have done his again: then for ever.
static int
may_wait_for_ever(const tti_node *node)
{
    return is_bsp(node) && tt_load_acquire(&node->board->current)->view->lost_at > 0;
}

// What is under way is of no use any more.
static int
in_vain(const tti_node *node, int pulling)
{
    const tti_board *board = node->board;
    return tti_node_is_expelled(node) ||
           (tti_stopping(board) && (pulling || may_wait_for_ever(node))) ||
           tt_load_acquire(&board->discard); // released in tti_runtime_abandon
}

// Somebody died: who pulls takes note of it at the next boundary, and asks again after that; who
// pushes sends to the dead one's successors what it has not heard of.
static int
take_note_of_deaths(tti_node *node, int pulling)
{
    const tt_ps_view *view =
        tt_load_acquire(&node->board->current)->view; // released in tti_runtime_publish
    if (view->lost_at == node->lost_seen || tt_load_acquire(&node->board->discard))
        return 0;
    // Under BSP a slice counts once, however often it is pushed: its worker comes back to it.
    if (pulling || is_bsp(node))
        return 1;
    node->lost_seen = view->lost_at;
    tt_ps_client_lose(node->client, view);
    tt_mesh_flush(node->board->mesh, node->index);
    return 0;
}

// Until the operation under way is done; batches are prepared meanwhile. False when it was given
// up.
static int
await(tti_node *node, int pulling)
{
    tti_board *board = node->board;
    tt_mesh_flush(board->mesh, node->index);
    while (!tt_ps_client_done(node->client)) {
        if (in_vain(node, pulling) || take_note_of_deaths(node, pulling)) {
            tt_ps_client_abandon(node->client);
            return 0;
        }
        if (pulling)
            tti_node_rest(node);
        if (node->batch_count < node->now.prefetch + 1 && !tti_stopping(board) &&
            tti_worker_prepare(node)) {
            tti_node_serve(node, 0);
            continue;
        }
        tti_node_serve(node, 20000000);
        // Between threads nothing is lost: a lost message would be a bug that this outlives.
        tt_ps_client_tick(node->client, board->retry_ns);
    }
    return !tti_node_is_expelled(node); // what it did was given to others
}

static int
pull(tti_node *node, tt_ps_keys keys, uint32_t need)
{
    tti_board *board = node->board;
    if (board->store == NULL) {
        tt_ps_client_time(node->client, tt_clock_now(&board->clock));
        tt_ps_client_pull(node->client, keys, need, 0, node->params);
        return await(node, 1);
    }
    while (!tt_ps_store_pull(board->store, node->index, keys, need, node->now.spin,
                             &board->interrupt, node->params)) {
        if (tti_stopping(board))
            return 0;
        tti_node_rest(node);
    }
    return 1;
}

static int
push(tti_node *node, tt_ps_keys keys, uint32_t clock, uint32_t detail)
{
    tti_board *board = node->board;
    if (board->store != NULL) {
        tt_ps_store_push(board->store, node->now.ops, node->index, keys, node->gradient, clock,
                         detail);
        return 1;
    }
    tt_ps_client_time(node->client, tt_clock_now(&board->clock));
    tt_ps_client_push(node->client, node->gradient, clock, detail);
    return await(node, 0);
}

static void
name_batch(const tti_node *node, uint32_t slot)
{
    const tti_again *name = &node->batch_name[slot];
    if (node->board->lease != NULL && !is_bsp(node))
        tt_ps_client_name_batch(node->client, name->worker, name->batch);
}

// ---- one iteration ----------------------------------------------------------------------------

// Shortens the mean gradient to the norm the job allows.
static void
clip(tti_node *node, size_t floats)
{
    double limit = node->board->job->spec.clip_norm;
    if (!isfinite(limit))
        return;
    double norm = sqrt(node->now.ops->sum_squares(node->gradient, floats));
    if (norm > limit)
        node->now.ops->scale((float)(limit / norm), node->gradient, floats);
}

static void
compute(tti_node *node, uint32_t slot, tti_compute_task *task)
{
    const tt_job *job = node->board->job;
    const tt_batch *batch = node->batches[slot];
    uint32_t key_count, rows = tt_batch_rows(batch), micro = node->batch_micro[slot];
    (void)tt_batch_keys(batch, &key_count);
    if (node->client != NULL) // a server may still be reading the last one
        node->gradient = tt_ps_client_gradients(node->client);
    *task = (tti_compute_task){.model = job->model,
                               .ops = node->now.ops,
                               .batch = batch,
                               .micro_rows = (rows + micro - 1) / micro,
                               .micro_count = micro,
                               .scale = 1.0f / (float)rows,
                               .params = node->params,
                               .gradient = node->gradient,
                               .each = node->each,
                               .floats = (size_t)key_count * job->table.width};
    tti_compute_run(node->compute, task);
    tti_simulated_gradient(node, task);
    tt_model_regularise(job->model, batch, node->params, node->gradient);
    clip(node, task->floats);
    // A merged push is the sum of its iterations' mean gradients; a slice is its share of the
    // round's mean.
    float weight = (float)micro;
    if (is_bsp(node))
        weight = (float)rows / (float)job->spec.batch_size;
    if (weight != 1.0f)
        node->now.ops->scale(weight, node->gradient, task->floats);
}

// Counts it, where that is done here; returns how many were before.
static uint64_t
count_iterations(const tti_node *node, uint32_t micro, uint32_t rows)
{
    tti_work *work = node->board->work;
    return work != NULL ? tti_work_count(work, micro, rows) : 0;
}

// The losses of rows [begin, end) of the batch, to where those of all rows are: here, or with the
// master. Their record will find room (tti_worker_iterate waits), so that the two rings keep in
// step.
static void
note_losses(const tti_node *node, uint32_t slot, uint32_t begin, uint32_t end, tti_record *record)
{
    const tti_board *board = node->board;
    const float *losses = node->each + begin;
    record->level = NAN;
    record->losses = 0;
    if (board->work != NULL)
        record->level = (float)tti_row_losses_note(
            &board->work->row_losses, tti_worker_rows(node, slot) + begin, losses, end - begin);
    else if (!is_bsp(node) && tti_loss_ring_put(board->losses, losses, end - begin))
        record->losses = end - begin;
}

static void
put_records(tti_node *node,
            uint32_t slot,
            const tti_compute_task *task,
            uint64_t sequence,
            tti_record record)
{
    uint32_t micro = task->micro_count, rows = tt_batch_rows(node->batches[slot]);
    uint64_t done_ns = record.done_ns;
    for (uint32_t piece = 0; piece < micro; piece++, record.curvature = 0) {
        uint32_t begin = piece * task->micro_rows, end = TT_MIN(begin + task->micro_rows, rows);
        if (end <= begin)
            continue;
        record.sequence = is_bsp(node) ? node->batch_round[slot] : sequence + piece;
        record.done_ns = done_ns - record.cycle_ns * (micro - 1 - piece);
        record.examples = end - begin;
        record.loss = (float)(task->losses[piece] / (double)(end - begin));
        note_losses(node, slot, begin, end, &record);
        tti_records_put(&node->standing->records, &record);
    }
}

// Iterations applied between the pull and the push that is done; NAN: nobody knows.
static float
staleness(const tti_node *node, uint64_t applied_at_pull, uint64_t applied)
{
    if (is_bsp(node))
        return 0;
    return node->client != NULL ? (float)tt_ps_client_staleness(node->client)
                                : (float)(applied - applied_at_pull);
}

static void
measure(tti_node *node, uint32_t slot, const tti_compute_task *task, uint64_t applied_at_pull)
{
    tti_board *board = node->board;
    uint32_t micro = task->micro_count, rows = tt_batch_rows(node->batches[slot]);
    uint64_t now = tt_clock_now(&board->clock);
    int64_t ahead_ns = tt_load_relaxed(&node->ahead_ns);
    uint64_t cycle = now - node->boundary_ns - TT_MIN(node->paused_ns, now - node->boundary_ns);
    node->boundary_ns = now;
    node->paused_ns = 0;
    node->cycle_ns = cycle;
    uint64_t sequence = count_iterations(node, micro, rows);
    put_records(node, slot, task, sequence,
                (tti_record){.generation = node->adopted->view->generation,
                             .done_ns = now - (uint64_t)ahead_ns, // on the master's clock
                             .cycle_ns = cycle / micro,
                             .worker = node->index,
                             .slice = is_bsp(node) ? node->batch_slice[slot] : 0,
                             .curvature = tti_probe_take(node),
                             .staleness = staleness(node, applied_at_pull, sequence)});
    tt_store_relaxed(&node->standing->iterations, node->standing->iterations + micro);
    tti_simulated_applied(node, slot);
    if (node->client == NULL)
        return;
    uint64_t waited = tt_ps_client_take_longest_wait(node->client);
    if (waited > tt_load_relaxed(&node->standing->wait_max_ns))
        tt_store_relaxed(&node->standing->wait_max_ns, waited);
}

// BSP: a generation holds from a round that nobody has begun. Announces this round, then looks
// whether the master was choosing one since the last boundary; the master closes the gate, then
// looks at what was announced. One of the two sees the other.
static int
may_begin_round(tti_node *node, uint32_t round)
{
    tti_board *board = node->board;
    if (round < node->standing->round_begun ||
        (node->round_open && round == node->standing->round_begun))
        return 1; // begun before
    tt_store_seq(&node->standing->round_begun, round);
    node->round_open = tt_load_seq(&board->gate) == node->gate_seen && node->gate_seen % 2 == 0;
    return node->round_open;
}

// Without data its clock stands still: the others, who may have batches left, must not wait for it.
// Should it get orphans later, nobody waits for it either.
static void
end_clock(tti_node *node)
{
    if (node->clock_ended)
        return;
    node->clock_ended = 1;
    if (node->board->store != NULL) {
        tt_ps_store_end(node->board->store, node->index);
        return;
    }
    tt_ps_client_time(node->client, tt_clock_now(&node->board->clock));
    tt_ps_client_end(node->client);
    (void)await(node, 0);
}

// SSP: a server that took a partition from a checkpoint waits for the clock of every worker.
static void
announce_clock(tti_node *node)
{
    node->clock_unknown = 0;
    node->clock_ended = 0; // who has ended says so again
    tt_ps_client_time(node->client, tt_clock_now(&node->board->clock));
    tt_ps_client_announce(node->client, node->clock);
    (void)await(node, 0);
}

static void
drop_batch(tti_node *node)
{
    node->batch_head = (node->batch_head + 1) % TTI_BATCHES_MAX;
    node->batch_count--;
}

// It counts once, whoever says so.
static void
put_unmeasured(tti_node *node, uint32_t slot)
{
    tti_record record = {.sequence = node->batch_round[slot],
                         .generation = node->adopted->view->generation,
                         .worker = node->index,
                         .slice = node->batch_slice[slot],
                         .examples = tt_batch_rows(node->batches[slot]),
                         .loss = NAN,
                         .level = NAN};
    tti_records_put(&node->standing->records, &record);
}

// BSP, after the death of a worker: whether the slice that comes next is in already, everywhere.
// What it is worth was not measured then, or was lost with who measured it.
static int
is_in_already(tti_node *node, uint32_t slot)
{
    tti_board *board = node->board;
    if (tti_slice_has(&node->acknowledged[node->batch_slice[slot]], node->batch_round[slot])) {
        drop_batch(node);
        return 1;
    }
    tt_ps_client_time(node->client, tt_clock_now(&board->clock));
    tt_ps_client_probe(node->client, node->batch_round[slot], node->batch_slice[slot]);
    if (!await(node, 0) || !tt_ps_client_had(node->client))
        return 0;
    put_unmeasured(node, slot);
    tti_simulated_applied(node, slot);
    drop_batch(node);
    return 1;
}

// Nobody keeps the parameters of a round for ever: then all go back to the last checkpoint.
static void
give_up_round(const tti_node *node)
{
    tt_store_release(&node->standing->round_lost, 1); // acquired in tti_membership_watch
    tti_board_ring(node->board);
}

int
tti_worker_iterate(tti_node *node)
{
    tti_board *board = node->board;
    if (node->clock_unknown) {
        announce_clock(node);
        return 1; // to the boundary: somebody may have died meanwhile
    }
    // Who counts them does not hear of this process: it waits.
    if (board->lease != NULL && tti_records_room(&node->standing->records) < TTI_AGGREGATION_MAX) {
        tti_node_serve(node, 5000000);
        return 1;
    }
    uint64_t *found =
        node->batch_count > 0 ? &node->standing->batches_ready : &node->standing->batches_waited;
    if (node->batch_count == 0 && !tti_worker_prepare(node)) {
        if (node->rows_to_come) {
            tti_node_serve(node, 5000000);
            return 1;
        }
        end_clock(node);
        return 0;
    }
    uint32_t slot = node->batch_head, micro = node->batch_micro[slot];
    if (is_bsp(node) && !may_begin_round(node, node->batch_round[slot])) {
        if (board->control != NULL) // till all have heard of it, the gate stays closed
            tti_node_serve(node, 1000000);
        return 1; // back to the boundary: there may be a new generation
    }
    if (is_bsp(node) && node->batch_round[slot] < node->redo_until && is_in_already(node, slot))
        return 1;
    tt_store_relaxed(found, *found + 1);
    tt_ps_keys keys = keys_of(node->batches[slot]);
    uint32_t need = 0;
    if (is_bsp(node))
        need = node->batch_round[slot];
    else if (board->job->table.consistency == TT_PS_SSP)
        need = node->clock > node->now.staleness ? node->clock - node->now.staleness : 0;
    if (!pull(node, keys, need))
        return 1; // stopping: the batch stays prepared
    if (board->store == NULL && tt_ps_client_is_late(node->client)) {
        give_up_round(node);
        return 1;
    }
    tti_node_rest(node);
    if (tt_load_acquire(&board->discard)) // released in tti_runtime_abandon
        return 1;
    uint64_t applied = board->work != NULL ? tt_load_relaxed(&board->work->applied) : 0;
    tti_compute_task task;
    compute(node, slot, &task);
    node->clock += micro;
    name_batch(node, slot);
    int pushed = is_bsp(node) ? push(node, keys, node->batch_round[slot], node->batch_slice[slot])
                              : push(node, keys, node->clock, micro);
    if (!pushed)
        return 1; // given up, with all that this process has
    if (is_bsp(node))
        tti_slice_mark(&node->acknowledged[node->batch_slice[slot]], node->batch_round[slot]);
    drop_batch(node);
    tt_store_relaxed(&node->standing->clock_seen, node->clock);
    measure(node, slot, &task, applied);
    tti_probe_pushed(node, &task);
    return 1;
}

// ---- roles ------------------------------------------------------------------------------------

// The round whose work comes next (BSP); none for a worker without a slice.
uint32_t
tti_worker_next_round(const tti_node *node)
{
    if (!is_bsp(node))
        return 0;
    if (node->batch_count > 0)
        return node->batch_round[node->batch_head];
    if (node->adopted == NULL || tti_worker_next_slice(node, 0) < 0)
        return UINT32_MAX;
    return node->round + (tti_worker_next_slice(node, node->slice) < 0);
}

static void
leave_to_others(tti_node *node)
{
    tti_board *board = node->board;
    if (board->lease != NULL) { // the master knows them
        node->leased_before += board->lease->taken - tti_worker_untrained(node);
        tti_lease_give_back(board->lease);
        tti_board_ring(node->board);
        return;
    }
    for (uint32_t i = 0; i < node->batch_count; i++) {
        uint32_t slot = (node->batch_head + i) % TTI_BATCHES_MAX;
        tti_work_return(board->work, tti_worker_rows(node, slot),
                        tt_batch_rows(node->batches[slot]));
    }
    tti_work_return(board->work, node->kept + node->kept_first, node->kept_count);
    tt_ledger_release(board->work->ledger, node->index);
}

void
tti_worker_rewind(tti_node *node, uint32_t effective_round)
{
    uint32_t next = tti_worker_next_round(node);
    if (!is_bsp(node))
        return;
    // It is at the beginning of a round: under the new generation other slices may be its own.
    node->round = next == UINT32_MAX ? effective_round : TT_MAX(next, effective_round);
    node->slice = 0;
    node->batch_count = 0;
}

void
tti_worker_go_back(tti_node *node, const tt_ps_view *view)
{
    uint32_t next = tti_worker_next_round(node);
    node->redo_until = TT_MAX(view->redo_until, next == UINT32_MAX ? 0 : next + 1);
    node->round = view->redo_from;
    node->slice = 0;
    node->batch_count = 0;
}

void
tti_worker_retire(tti_node *node)
{
    if (is_bsp(node))
        tti_worker_rewind(node, 0);
    else
        leave_to_others(node);
    node->batch_count = node->kept_count = 0;
}

void
tti_worker_join(tti_node *node)
{
    const tt_ps_view *view = node->adopted->view;
    node->clock = view->join_clock[node->index];
    node->clock_ended = 0;
    node->round = view->effective_round;
    node->slice = 0;
    node->boundary_ns = tt_clock_now(&node->board->clock);
    node->paused_ns = node->cycle_ns = 0;
    tt_store_relaxed(&node->standing->clock_seen, node->clock);
    tt_store_seq(&node->standing->round_begun, node->round);
    node->round_open = 0;
    node->redo_until = 0;
    tt_store_release(&node->standing->finished, 0);
}

static tt_status
open_batches(tti_node *node, uint32_t max_rows)
{
    const tt_job *job = node->board->job;
    const tt_batch *beside = node->beside;
    for (uint32_t i = 0; i < TTI_BATCHES_MAX; i++) {
        tt_batch **batch = &node->batches[i];
        TT_TRY(beside != NULL ? tt_batch_alloc_beside(beside, batch)
                              : tt_batch_alloc(job->model, job->train, max_rows, batch));
        beside = *batch;
    }
    return TT_OK;
}

tt_status
tti_worker_open(tti_node *node, tt_error *err)
{
    const tt_job *job = node->board->job;
    uint32_t max_rows = tti_worker_rows_max(job), keys_max = 0;
    tt_status status = open_batches(node, max_rows);
    if (status == TT_OK) {
        keys_max = tt_batch_key_capacity(node->batches[0]);
        size_t floats = (size_t)keys_max * job->table.width;
        node->params = tt_mem_zalloc_vector(floats, sizeof(float));
        if (node->board->mesh == NULL) // else it is the client's
            node->gradient = tt_mem_zalloc_vector(floats, sizeof(float));
        node->each = tt_mem_zalloc(max_rows, sizeof *node->each);
        node->rows = tt_mem_zalloc((size_t)max_rows * TTI_BATCHES_MAX, sizeof *node->rows);
        node->kept = tt_mem_zalloc((size_t)max_rows * TTI_BATCHES_MAX, sizeof *node->kept);
        node->acknowledged =
            tt_mem_zalloc(TT_MAX((size_t)job->spec.slices, (size_t)1), sizeof *node->acknowledged);
        status = node->params != NULL && (node->gradient != NULL || node->board->mesh != NULL) &&
                         node->each != NULL && node->rows != NULL && node->kept != NULL &&
                         node->acknowledged != NULL
                     ? TT_OK
                     : TT_NOMEM;
        if (status == TT_OK)
            status = tti_compute_open(job->model, max_rows, floats, &node->compute);
        if (status == TT_OK)
            status = tti_probe_open(node, floats);
    }
    if (status == TT_OK)
        status = tt_shard_cache_init(&node->cache, job->shards);
    if (status == TT_OK && node->board->mesh != NULL) {
        TT_TRY(tt_ps_client_open(&job->table, node->index, node->board->node_count + 1, keys_max,
                                 node->outbox, tti_node_hooks(node), &node->client, err));
        node->gradient = tt_ps_client_gradients(node->client);
        status = node->gradient != NULL ? TT_OK : TT_NOMEM;
    }
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, "lower cluster.nodes or optimizer.batch_size",
                            "no memory for worker %u", node->index);
    return TT_OK;
}

void
tti_worker_close(tti_node *node)
{
    for (uint32_t i = 0; i < TTI_BATCHES_MAX; i++) {
        tt_batch_free(node->batches[i]);
        node->batches[i] = NULL;
    }
    tti_compute_close(node->compute);
    if (node->client == NULL)
        tt_mem_free(node->gradient);
    tt_ps_client_close(node->client);
    tt_shard_cache_fini(&node->cache);
    tt_mem_free(node->params);
    tt_mem_free(node->each);
    node->each = NULL;
    tti_probe_close(node);
    tt_mem_free(node->rows);
    tt_mem_free(node->kept);
    tt_mem_free(node->acknowledged);
    node->acknowledged = NULL;
    node->compute = NULL;
    node->client = NULL;
    node->cache = (tt_shard_cache){0};
    node->params = node->gradient = NULL;
    node->rows = node->kept = NULL;
    node->batch_head = node->batch_count = node->kept_first = node->kept_count = 0;
}
