// The runtime of a job: opening and closing nodes, publishing generations, pausing, stopping,
// reading the model.
#include "runtime.h"
#include <string.h>

// ---- processes --------------------------------------------------------------------------------

// Of a move that was overtaken by a restore nobody wants to hear.
static void
partition_retired(void *self, uint32_t partition, uint32_t generation)
{
    tti_runtime *rt = self;
    uint32_t expected = generation;
    if (tt_cas_acq_rel(&rt->moving[partition], &expected, 0u))
        (void)tt_sub_acq_rel(&rt->unretired, 1u);
    tti_board_ring(&rt->board);
}

static void
add_counts(tti_counts *sum, const tti_counts *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

void
tti_runtime_lose_counts(tti_runtime *rt, uint32_t n)
{
    add_counts(&rt->lost, &rt->standings[n].counts);
    rt->standings[n].counts = (tti_counts){0};
}

// Nodes on simulated hosts have the first generation when they begin; later ones are sent.
static tt_status
learn_first(tti_runtime *rt, tti_process *process)
{
    tti_order order = {.has_generation = 1};
    tti_order_parts parts;
    tt_archive bytes = {0};
    tti_order_write(&order, NULL, rt->newest, &bytes);
    tt_status status = bytes.status;
    if (status == TT_OK)
        status = tti_order_read(bytes.bytes, bytes.count, &parts);
    if (status == TT_OK)
        tti_process_learn(process, parts.generation);
    tt_archive_fini(&bytes);
    return status;
}

// A process with its own copy of the board.
static tt_status
open_process(tti_runtime *rt, uint32_t n, tt_error *err)
{
    tti_process *process = &rt->processes[n];
    process->rt = rt;
    TT_TRY(tti_process_open(process, rt->job, n, rt->clock, rt->mesh, rt->membership.control, err));
    process->node.attempt = rt->newest->view->attempt[n];
    if (rt->newest->view->is_gone[n])
        return TT_OK; // it will be told when it comes
    if (learn_first(rt, process) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the first generation");
    rt->command.nodes[n].generation = rt->newest->view->generation;
    tti_simulated_share(process);
    return tti_process_open_node(process, 0, err);
}

// A node that shares the master's memory.
static tt_status
open_node(tti_runtime *rt, uint32_t n, tt_error *err)
{
    rt->processes[n].node = (tti_node){.board = &rt->board,
                                       .standing = &rt->standings[n],
                                       .index = n,
                                       .attempt = rt->newest->view->attempt[n]};
    return tti_node_open(&rt->processes[n].node, rt->newest->view, 0, err);
}

static tt_status
open_reader(tti_runtime *rt, tt_error *err)
{
    rt->reading = (tti_node){.board = &rt->board, .index = rt->node_count};
    tt_ps_hooks hooks = tti_node_hooks(&rt->reading);
    TT_TRY(
        tt_ps_client_open(&rt->job->table, rt->node_count, rt->node_count + 1,
                          rt->job->table.kind == TT_PS_SPARSE ? (uint32_t)rt->job->table.rows : 1,
                          tt_mesh_outbox(rt->mesh, rt->node_count), hooks, &rt->reader, err));
    if (rt->apart && tt_ps_copier_open(&rt->job->table, tt_mesh_outbox(rt->mesh, rt->node_count),
                                       &rt->copier) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for checkpoints");
    tt_ps_client_set(rt->reader, 16, 0);
    tt_ps_client_adopt(rt->reader, rt->newest->view);
    return TT_OK;
}

// Nodes whose host is not there when the job begins, or begins anew.
static tt_status
leave_out(tti_runtime *rt, const uint8_t *is_gone, uint32_t servers)
{
    tt_ps_view *whole = rt->newest->view, *rest;
    if (memchr(is_gone, 1, rt->node_count) == NULL)
        return TT_OK;
    uint8_t *moving = tt_mem_zalloc(TT_MAX(whole->partition_count, 1u), 1);
    if (moving == NULL)
        return TT_NOMEM;
    tt_status status = tt_ps_view_without(whole, is_gone, moving, servers, &rest);
    tt_mem_free(moving);
    if (status != TT_OK)
        return status;
    tt_ps_view_free(whole);
    rt->newest->view = rest;
    return TT_OK;
}

static tt_status
first_generation(tti_runtime *rt, const tt_setting *start, tt_error *err)
{
    const tt_job *job = rt->job;
    uint8_t is_server[TT_PS_NODES_MAX] = {0}, is_gone[TT_PS_NODES_MAX];
    tti_simulated_gone(rt, is_gone);
    rt->newest = tt_mem_zalloc(1, sizeof *rt->newest);
    if (rt->newest == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the first generation");
    rt->newest->setting = *start;
    tt_ps_table placed = job->table;
    uint32_t servers = tt_reconfig_servers(&job->space, start);
    if (job->spec.driver == TTI_DRIVER_MESSAGES)
        tt_reconfig_roles(servers, rt->node_count, is_gone, is_server);
    else
        placed.partition_count = 0; // nobody serves
    tt_status status = tt_ps_view_first(&placed, rt->node_count, is_server, &rt->newest->view);
    if (status == TT_OK)
        status = leave_out(rt, is_gone, servers);
    if (status == TT_PEER)
        return tt_error_set(err, status, NULL, "wait until its hosts are there again, and resume",
                            "there are not two nodes left for the job");
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, NULL, "no memory for the first generation");
    tt_store_release(&rt->board.current, rt->newest); // acquired by nodes
    return TT_OK;
}

// Not so when nodes died or came back since: who owns something there may not serve here.
static int
holds_here(const tt_ps_view *view, const tt_ps_view *placement)
{
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (view->is_worker[placement->owner[p]] || view->is_gone[placement->owner[p]])
            return 0;
    return view->lost_at == 0;
}

static void
continue_generations(tt_ps_view *view, const tti_restore *restore)
{
    view->generation = restore->generation;
    if (restore->placement == NULL || !holds_here(view, restore->placement))
        return;
    TT_ASSERT(restore->placement->partition_count == view->partition_count);
    memcpy(view->owner, restore->placement->owner, view->partition_count * sizeof *view->owner);
    memcpy(view->previous, view->owner, view->partition_count * sizeof *view->owner);
}

// Nobody takes back a move of this generation before it is published.
static void
note_moves(tti_runtime *rt, const tt_ps_view *view)
{
    uint32_t more = 0;
    for (uint32_t p = 0; p < view->partition_count; p++) {
        if (view->moved_at[p] != view->generation)
            continue;
        more += tt_load_relaxed(&rt->moving[p]) == 0;
        tt_store_relaxed(&rt->moving[p], view->generation);
    }
    (void)tt_add_acq_rel(&rt->unretired, more);
}

static tt_status
open_parts(tti_runtime *rt, const tt_setting *start, const tti_restore *restore, tt_error *err)
{
    const tt_job *job = rt->job;
    TT_TRY(first_generation(rt, start, err));
    if (restore != NULL)
        continue_generations(rt->newest->view, restore);
    size_t rows = (size_t)rt->node_count * TTI_BATCHES_MAX * (size_t)job->spec.batch_size *
                  TTI_AGGREGATION_MAX;
    TT_TRY(tti_work_open(job->shards, rt->node_count, rows, &rt->work, err));
    if (job->spec.driver == TTI_DRIVER_MESSAGES)
        TT_TRY(job->sim != NULL ? tti_simulated_mesh(rt, err)
                                : tt_mesh_open(rt->node_count + 1, &rt->mesh, err));
    else
        TT_TRY(tt_ps_store_open(&job->table, rt->node_count, &rt->store, err));
    rt->board.mesh = rt->mesh;
    rt->board.store = rt->store;
    TT_TRY(tti_membership_open(rt, err));
    int loads = restore != NULL && restore->bytes != NULL;
    if (loads && rt->apart)
        TT_TRY(tti_runtime_load(rt, restore, err));
    if (rt->apart)
        note_moves(rt, rt->newest->view);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        TT_TRY(tti_records_open(&rt->standings[n].records, rt->node_count));
        TT_TRY(rt->apart ? open_process(rt, n, err) : open_node(rt, n, err));
    }
    if (rt->mesh != NULL)
        TT_TRY(open_reader(rt, err));
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(job->shards), sizeof *owner);
    if (owner == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    tt_status status = loads && !rt->apart ? tti_runtime_load(rt, restore, err) : TT_OK;
    if (tti_runtime_workers(rt) > 0) {
        (void)tt_ledger_plan(rt->work.ledger, rt->newest->view->is_worker, owner);
        (void)tt_ledger_assign(rt->work.ledger, owner);
    }
    tt_mem_free(owner);
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, rt->newest->view);
    return status;
}

static tt_status
open_nodes(tti_runtime *rt, tt_error *err)
{
    rt->processes = tt_mem_zalloc_vector(rt->node_count, sizeof *rt->processes);
    rt->standings = tt_mem_zalloc_vector(rt->node_count, sizeof *rt->standings);
    rt->moving = tt_mem_zalloc(TT_MAX(rt->job->table.partition_count, 1u), sizeof *rt->moving);
    if (rt->processes == NULL || rt->standings == NULL || rt->moving == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    return TT_OK;
}

tt_status
tti_runtime_open(const tt_job *job,
                 const tt_setting *start,
                 const tti_restore *restore,
                 tti_runtime **out,
                 tt_error *err)
{
    *out = NULL;
    tti_runtime *rt = tt_mem_zalloc_vector(1, sizeof *rt);
    if (rt == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    rt->job = job;
    rt->clock = job->sim != NULL ? tt_sim_clock(job->sim) : tt_clock_monotonic();
    rt->node_count = job->node_count;
    rt->board = (tti_board){.job = job,
                            .clock = rt->clock,
                            .node_count = rt->node_count,
                            .work = &rt->work,
                            .retry_ns = (uint64_t)(1e9 * job->spec.retry),
                            .retired = partition_retired,
                            .self = rt,
                            .round_limit = UINT32_MAX,
                            .hold_round = UINT32_MAX};
    tt_status status = open_nodes(rt, err);
    if (status == TT_OK)
        status = open_parts(rt, start, restore, err);
    if (status != TT_OK) {
        tti_runtime_close(rt);
        return status;
    }
    rt->start_ns = tt_clock_now(&rt->clock) - rt->elapsed_ns; // until it starts
    *out = rt;
    return TT_OK;
}

tt_status
tti_runtime_start(tti_runtime *rt, tt_error *err)
{
    rt->start_ns = tt_clock_now(&rt->clock) - rt->elapsed_ns;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (rt->newest->view->is_gone[n])
            continue;
        if (rt->apart) // before the first order comes
            rt->processes[n].board.round_limit = rt->board.round_limit;
        tt_status status = tti_node_start(&rt->processes[n].node, err);
        if (status != TT_OK) {
            tti_runtime_stop(rt);
            return status;
        }
    }
    return tti_membership_start(rt, err);
}

// ---- generations ------------------------------------------------------------------------------

void
tti_runtime_wake_all(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->mesh != NULL && !rt->apart && n < rt->node_count; n++)
        tt_mesh_wake(rt->mesh, n);
    if (rt->store != NULL)
        tt_ps_store_wake(rt->store);
    tt_event_signal(&rt->board.resume);
    if (rt->apart)
        tti_command_send(rt);
}

tt_status
tti_runtime_publish(tti_runtime *rt,
                    tt_ps_view *view,
                    const tt_setting *setting,
                    uint32_t *shards_moved)
{
    *shards_moved = 0;
    tti_generation *generation = tt_mem_zalloc(1, sizeof *generation);
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(rt->job->shards), sizeof *owner);
    if (generation == NULL || owner == NULL) {
        tt_mem_free(generation);
        tt_mem_free(owner);
        return TT_NOMEM;
    }
    *generation = (tti_generation){.view = view, .setting = *setting, .previous = rt->newest};
    int roles_change = memcmp(rt->newest->view->is_worker, view->is_worker, view->node_count) != 0;
    note_moves(rt, view);
    rt->newest = generation;
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, view);
    tt_store_release(&rt->board.current, generation); // acquired by nodes
    if (roles_change && tti_runtime_workers(rt) > 0) {
        (void)tt_ledger_plan(rt->work.ledger, view->is_worker, owner);
        *shards_moved = tt_ledger_assign(rt->work.ledger, owner);
    }
    tt_mem_free(owner);
    if (rt->reader != NULL && tt_ps_client_done(rt->reader))
        tt_ps_client_adopt(rt->reader, view);
    else if (rt->reader != NULL) // in the middle of reading
        tt_ps_client_lose(rt->reader, view);
    tti_runtime_wake_all(rt);
    return TT_OK;
}

int
tti_runtime_settled(const tti_runtime *rt)
{
    const tt_ps_view *view = rt->newest->view;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_standing *node = &rt->standings[n];
        if (view->is_gone[n])
            continue;
        // One that is to work begins when what it held has left it; till then its slices wait for
        // it, and the next generation must not pass them by.
        if (tt_load_acquire(&node->adopted_generation) <
                view->generation || // released in tti_node_adopt
            tt_load_acquire(&node->working_seen) != view->is_worker[n]) // change_role
            return 0;
    }
    return tt_load_acquire(&rt->unretired) == 0; // partition_retired
}

void
tti_runtime_horizon(const tti_runtime *rt, uint32_t *clock, uint32_t *round)
{
    *clock = *round = 0;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_standing *node = &rt->standings[n];
        if (!tt_load_relaxed(&node->working_seen))
            continue;
        *clock = TT_MAX(*clock, tt_load_relaxed(&node->clock_seen));
        *round = TT_MAX(*round, tt_load_seq(&node->round_begun));
    }
    // What a dead one may have begun, others have to end first.
    *round = TT_MAX(*round + 1, rt->newest->view->redo_until);
    if (rt->job->table.consistency != TT_PS_BSP)
        *round = 0;
}

static int
all_heard_the_gate(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!rt->newest->view->is_gone[n] && rt->standings[n].gate_heard != rt->board.gate)
            return 0;
    return 1;
}

int
tti_runtime_close_gate(tti_runtime *rt)
{
    (void)tt_add_seq(&rt->board.gate, 1u);
    if (!rt->apart || rt->job->table.consistency != TT_PS_BSP)
        return 1;
    rt->membership.at_the_gate++;
    tti_command_send(rt);
    while (!all_heard_the_gate(rt) && !rt->membership.must_go_back && !rt->membership.must_fail) {
        tti_runtime_wait(rt, 0, 1000000);
        tti_membership_watch(rt);
    }
    rt->membership.at_the_gate--;
    return !rt->membership.must_go_back && !rt->membership.must_fail;
}

void
tti_runtime_open_gate(tti_runtime *rt)
{
    (void)tt_add_seq(&rt->board.gate, 1u);
    if (rt->apart)
        tti_command_send(rt);
}

void
tti_runtime_collect(tti_runtime *rt)
{
    // Everyone has adopted the newest, so nobody looks at an older one.
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!rt->newest->view->is_gone[n] &&
            tt_load_acquire(&rt->standings[n].adopted_generation) <
                rt->newest->view->generation) // released in tti_node_adopt
            return;
    tti_generations_free(rt->newest->previous);
    rt->newest->previous = NULL;
}

void
tti_generations_free(tti_generation *newest)
{
    while (newest != NULL) {
        tti_generation *previous = newest->previous;
        tt_ps_view_free(newest->view);
        tt_mem_free(newest);
        newest = previous;
    }
}

uint64_t
tti_runtime_iterations(const tti_runtime *rt)
{
    uint64_t applied = tt_load_relaxed(&rt->work.applied);
    return rt->job->table.consistency == TT_PS_BSP ? applied / (uint64_t)rt->job->spec.slices
                                                   : applied;
}

uint32_t
tti_runtime_workers(const tti_runtime *rt)
{
    uint32_t workers = 0;
    for (uint32_t n = 0; n < rt->node_count; n++)
        workers += rt->newest->view->is_worker[n];
    return workers;
}

uint64_t
tti_runtime_measured_ns(const tti_runtime *rt)
{
    uint64_t until_ns = tt_clock_now(&rt->clock);
    for (uint32_t n = 0; rt->apart && n < rt->node_count; n++)
        if (rt->newest->view->is_worker[n])
            until_ns = TT_MIN(until_ns, rt->standings[n].looked_ns);
    return until_ns;
}

void
tti_runtime_bytes(const tti_runtime *rt, uint64_t *carried, uint64_t *drained)
{
    tti_counts sum = {0};
    tti_runtime_traffic(rt, &sum);
    *carried = sum.carried;
    *drained = sum.drained;
}

// ---- pausing and stopping ---------------------------------------------------------------------

static int
at_rest(const tti_runtime *rt, uint32_t n)
{
    const tti_standing *node = &rt->standings[n];
    if (rt->newest->view->is_gone[n])
        return 1;
    if (!tt_load_acquire(&node->working_seen)) // released in change_role
        // One whose thread has not begun, or that is still giving partitions away, is about to
        // work.
        return !rt->newest->view->is_worker[n];
    // One that has finished comes to rest, too: it may still be given rows that another left
    // behind.
    return tt_load_acquire(&node->resting) == rt->board.rest_call || // released in tti_node_rest
           tt_load_acquire(&node->left);                             // released by the node
}

static int
all_at_rest(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!at_rest(rt, n))
            return 0;
    return 1;
}

// After what makes workers rest was stored: whoever sees the call sees that, too.
void
tti_runtime_call_to_rest(tti_runtime *rt)
{
    uint32_t call = rt->board.rest_call + 1;
    tt_store_release(&rt->board.rest_call, call != 0 ? call : 1u); // acquired in tti_node_rest
    tti_runtime_wake_all(rt);
}

int
tti_runtime_await_rest(tti_runtime *rt)
{
    uint64_t deadline = tt_clock_now(&rt->clock) + 60000000000u;
    while (!all_at_rest(rt)) {
        uint32_t seen = tt_event_read(&rt->board.bell);
        if (all_at_rest(rt))
            break;
        tti_runtime_wait(rt, seen, 1000000);
        tti_membership_watch(rt);
        // Then some will never rest.
        if (rt->membership.must_go_back || rt->membership.must_fail)
            return 0;
        if (tt_clock_now(&rt->clock) > deadline) // an iteration of more than a minute
            return 0;
    }
    return 1;
}

int
tti_runtime_pause(tti_runtime *rt)
{
    tt_store_release(&rt->board.pause, 1); // acquired in must_rest
    tt_store_release(&rt->board.interrupt, 1);
    tti_runtime_call_to_rest(rt);
    if (tti_runtime_await_rest(rt))
        return 1;
    tti_runtime_resume(rt); // go on without
    return 0;
}

void
tti_runtime_resume(tti_runtime *rt)
{
    tt_store_release(&rt->board.interrupt, tt_load_acquire(&rt->board.stop));
    tt_store_release(&rt->board.pause, 0); // acquired in tti_node_rest
    tti_runtime_wake_all(rt);
}

void
tti_runtime_wait(tti_runtime *rt, uint32_t seen, uint64_t timeout_ns)
{
    if (rt->apart)
        tt_mesh_wait(rt->board.control, rt->board.end, timeout_ns);
    else
        (void)tt_event_wait(&rt->board.bell, seen, 0, timeout_ns);
}

// Nobody waits for what has never begun, nor for the dead.
static int
is_awaited(const tti_runtime *rt, uint32_t n)
{
    if (!rt->apart)
        return rt->processes[n].node.thread.running;
    return !rt->newest->view->is_gone[n] && tti_membership_hears(rt, n);
}

static int
has_left(const tti_standing *standing)
{
    return tt_load_acquire(&standing->left); // released by the node
}

static int
has_ended(const tti_standing *standing)
{
    return tt_load_acquire(&standing->ended); // released by the node
}

static void
await_all(tti_runtime *rt, int (*is_so)(const tti_standing *standing))
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        while (is_awaited(rt, n) && !is_so(&rt->standings[n])) {
            uint32_t seen = tt_event_read(&rt->board.bell);
            if (!is_so(&rt->standings[n]))
                tti_runtime_wait(rt, seen, 1000000);
            tti_membership_watch(rt);
        }
}

void
tti_runtime_stop(tti_runtime *rt)
{
    tt_store_release(&rt->board.stop, 1); // acquired in tti_stopping
    tt_store_release(&rt->board.interrupt, 1);
    tti_runtime_wake_all(rt);
    await_all(rt, has_left);
}

// After tti_runtime_stop: lets the servers go and joins all.
static void
join_all(tti_runtime *rt)
{
    tt_store_release(&rt->board.stop_servers, 1); // acquired by nodes
    tti_runtime_wake_all(rt);
    await_all(rt, has_ended);
    tti_membership_stop(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        tt_thread_join(&rt->processes[n].node.thread);
}

void
tti_runtime_close(tti_runtime *rt)
{
    if (rt == NULL)
        return;
    if (rt->processes != NULL && rt->newest != NULL && rt->newest->view != NULL) {
        tti_runtime_stop(rt);
        join_all(rt);
    }
    for (uint32_t n = 0; rt->processes != NULL && n < rt->node_count; n++) {
        if (rt->apart)
            tti_process_close(&rt->processes[n]);
        else
            tti_node_close(&rt->processes[n].node);
        tti_records_close(&rt->standings[n].records);
    }
    tti_membership_close(rt);
    tt_ps_client_close(rt->reader);
    tt_ps_copier_close(rt->copier);
    tt_ps_store_close(rt->store);
    tt_mesh_close(rt->mesh);
    tti_work_close(&rt->work);
    tti_generations_free(rt->newest);
    tt_mem_free(rt->processes);
    tt_mem_free(rt->standings);
    tt_mem_free(rt->moving);
    tt_mem_free(rt);
}

void
tti_runtime_abandon(tti_runtime *rt)
{
    tt_store_release(&rt->board.discard, 1); // acquired in tti_worker_iterate
    tti_runtime_close(rt);
}

void
tti_runtime_traffic(const tti_runtime *rt, tti_counts *sum)
{
    add_counts(sum, &rt->lost);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_counts counts = rt->standings[n].counts;
        if (!rt->apart)
            tti_node_count(&rt->processes[n].node, &counts);
        add_counts(sum, &counts);
    }
}

// ---- reading the model ------------------------------------------------------------------------

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_runtime *rt = self;
    switch ((tt_frame_kind)frame->kind) {
    case TT_FRAME_SAVED:
        if (rt->copier != NULL)
            tt_ps_copier_receive(rt->copier, frame, payload);
        break;
    case TT_FRAME_RESTORE:
        tt_ps_state_answer(&rt->job->table, rt->membership.state, frame,
                           tt_mesh_outbox(rt->mesh, rt->node_count));
        break;
    default:
        tt_ps_client_receive(rt->reader, frame, payload);
        break;
    }
}

uint32_t
tti_runtime_receive(tti_runtime *rt)
{
    uint32_t handled = tt_mesh_receive(rt->mesh, rt->node_count, 64, on_frame, rt);
    tt_mesh_flush(rt->mesh, rt->node_count);
    return handled;
}

static uint32_t *
every_row(const tti_runtime *rt)
{
    uint32_t *rows = tt_mem_alloc(rt->job->table.rows * sizeof *rows);
    for (uint32_t i = 0; rows != NULL && i < rt->job->table.rows; i++)
        rows[i] = i;
    return rows;
}

void
tti_runtime_peek_model(const tti_runtime *rt, float *out)
{
    memset(out, 0, (size_t)rt->job->table.rows * rt->job->table.width * sizeof *out);
    for (int sealed = 1; sealed >= 0; sealed--)
        for (uint32_t n = 0; n < rt->node_count; n++)
            if (rt->processes[n].node.server != NULL && !rt->newest->view->is_gone[n])
                tt_ps_server_read(rt->processes[n].node.server, sealed, out);
}

tt_status
tti_runtime_deserted(tt_error *err)
{
    return tt_error_set(err, TT_PEER, NULL, "trimtab run --resume goes on from the last checkpoint",
                        "there are not two nodes left to train on");
}

tt_status
tti_runtime_read_model(tti_runtime *rt, float *out, tt_error *err)
{
    tt_ps_keys keys = {.count = (uint32_t)rt->job->table.rows};
    uint32_t *rows = rt->job->table.kind == TT_PS_SPARSE ? every_row(rt) : NULL;
    keys.rows = rows;
    if (rt->store != NULL) {
        tt_ps_store_read(rt->store, keys, out);
    } else {
        tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
        tt_ps_client_adopt(rt->reader, rt->newest->view);
        tt_ps_client_pull(rt->reader, keys, 0, 1, out);
        while (!tt_ps_client_done(
            rt->reader)) { // servers answer as long as they run, and they outlive this call
            if (tti_runtime_receive(rt) == 0)
                tt_mesh_wait(rt->mesh, rt->node_count, 5000000);
            tti_membership_watch(rt);
            if (rt->membership.must_fail || rt->membership.must_go_back)
                tt_ps_client_abandon(rt->reader);
            tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
            tt_ps_client_tick(rt->reader, rt->board.retry_ns);
            tt_mesh_flush(rt->mesh, rt->node_count);
        }
    }
    tt_mem_free(rows);
    if (rt->membership.must_go_back)
        return tt_error_set(err, TT_BUSY, NULL, NULL, "the nodes go back to a checkpoint");
    return rt->membership.must_fail ? tti_runtime_deserted(err) : TT_OK;
}
