// A node: one thread that is a server or a worker and changes role at iteration boundaries.
#include "simulated.h"
#include <string.h>

enum { SERVE_LIMIT = 64, TICK_NS = 2000000 };

int
tti_stopping(const tti_board *board)
{
    return tt_load_acquire(&board->stop); // released in tti_runtime_stop
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_node *node = self;
    switch ((tt_frame_kind)frame->kind) {
    case TT_FRAME_PULL_REPLY:
    case TT_FRAME_PUSH_ACK:
    case TT_FRAME_MOVED:
    case TT_FRAME_WANT_KEYS:
        tt_ps_client_receive(node->client, frame, payload);
        break;
    default:
        tt_ps_server_receive(node->server, frame, payload);
        break;
    }
}

void
tti_node_serve(tti_node *node, uint64_t timeout_ns)
{
    tti_board *board = node->board;
    tt_ps_server_hear(node->server);
    int moving = tt_ps_server_moving(node->server) > 0;
    if (moving || !tt_ps_client_done(node->client))
        tt_ps_client_time(node->client, tt_clock_now(&board->clock));
    uint32_t handled = tt_mesh_receive(board->mesh, node->index, SERVE_LIMIT, on_frame, node);
    int more = moving && tt_ps_server_background(node->server);
    if (handled > 0 || more) {
        tt_mesh_flush(board->mesh, node->index);
        return;
    }
    if (timeout_ns == 0)
        return;
    tt_mesh_wait(board->mesh, node->index, moving ? TICK_NS : timeout_ns);
    if (moving)
        tt_ps_server_tick(node->server);
}

int
tti_node_is_expelled(const tti_node *node)
{
    const tt_ps_view *view =
        tt_load_acquire(&node->board->current)->view; // released in tti_runtime_publish
    return view->attempt[node->index] != node->attempt;
}

// Commits the knobs that differ, on this thread.
static void
apply_setting(tti_node *node, const tt_setting *setting)
{
    tt_error err = {0};
    if (tt_knob_set_prepare(node->knobs, setting, &err) == TT_OK)
        tt_knob_set_commit(node->knobs);
    else // the master's instance accepted it, so this is memory: go on as before, and say so
        tt_log(TT_LOG_WARN, "node %u keeps its setting: %s", node->index, err.what);
}

static void
change_role(tti_node *node)
{
    int works = node->adopted->view->is_worker[node->index];
    if (node->working && !works) {
        tti_worker_retire(node);
        node->working = 0;
    } else if (!node->working && works &&
               (node->server == NULL || tt_ps_server_held(node->server) == 0)) {
        // A server that becomes a worker does so when everything it gave away has arrived.
        tti_worker_join(node);
        node->working = 1;
    }
    tt_store_release(&node->standing->working_seen,
                     (uint32_t)node->working); // acquired in note_progress
}

// Somebody has died since the generation that this node has adopted.
static int
is_of_a_death(const tti_node *node, const tt_ps_view *view)
{
    return node->adopted != NULL && view->lost_at > node->adopted->view->lost_at;
}

// Connections to processes that have died since the view that this node has adopted.
static void
drop_dead(const tti_node *node, const tt_ps_view *view)
{
    const tt_ps_view *before = node->adopted != NULL ? node->adopted->view : NULL;
    for (uint32_t n = 0; before != NULL && n < view->node_count; n++)
        if (n != node->index && !before->is_gone[n] &&
            (view->is_gone[n] || view->attempt[n] != before->attempt[n]))
            tt_mesh_drop(node->board->mesh, node->index, n);
}

static void
take_over(tti_node *node, const tti_generation *newest)
{
    const tt_ps_view *view = newest->view;
    tt_ps_consistency consistency = node->board->job->table.consistency;
    int died = is_of_a_death(node, view);
    if (node->working && died && consistency == TT_PS_BSP)
        tti_worker_go_back(node, view);
    else if (node->working)
        tti_worker_rewind(node, view->effective_round);
    node->clock_unknown |= node->working && died && consistency == TT_PS_SSP;
    drop_dead(node, view);
    node->lost_seen = view->lost_at;
    node->adopted = newest;
    if (node->server != NULL)
        tt_ps_server_adopt(node->server, view);
    if (node->client != NULL)
        tt_ps_client_adopt(node->client, view);
    uint32_t merged = node->now.aggregation;
    apply_setting(node, &newest->setting);
    if (node->now.aggregation != merged)
        tti_worker_regroup(node);
}

void
tti_node_adopt(tti_node *node)
{
    const tti_generation *newest =
        tt_load_acquire(&node->board->current); // released in tti_runtime_publish
    int worked = node->working;
    // Under BSP a worker changes over at the round that the generation names; after a death at
    // once, for no round may ever end without it.
    int due =
        newest != node->adopted && (!node->working || is_of_a_death(node, newest->view) ||
                                    tti_worker_next_round(node) >= newest->view->effective_round);
    if (due)
        take_over(node, newest);
    if (due || node->working != node->adopted->view->is_worker[node->index])
        change_role(node);
    if (due)
        tti_simulated_adopted(node);
    if (due) // after the role, so that the master never sees the new generation with the old role
        tt_store_release(&node->standing->adopted_generation, newest->view->generation);
    if (due || node->working != worked)
        tti_board_ring(node->board);
}

static int
must_rest(const tti_node *node)
{
    const tti_board *board = node->board;
    if (tt_load_acquire(&board->pause)) // released in tti_runtime_pause
        return 1;
    // Somebody has died: it may have to go back first.
    if (tt_load_acquire(&board->current)->view->lost_at > node->lost_seen)
        return 0;
    uint32_t hold = tt_load_acquire(&board->hold_round); // released in tti_runtime_hold
    return hold != UINT32_MAX && tti_worker_next_round(node) >= hold;
}

// A worker may sleep from one call to rest to the next: it rests for the call that it has seen and
// judged by, and the master counts it for no other.
void
tti_node_rest(tti_node *node)
{
    tti_board *board = node->board;
    if (!must_rest(node))
        return;
    uint64_t begin = tt_clock_now(&board->clock);
    while (!tti_stopping(board)) {
        uint32_t call = tt_load_acquire(&board->rest_call); // released in tti_runtime_call_to_rest
        uint32_t seen = tt_event_read(&board->resume);
        if (!must_rest(node))
            break;
        if (tt_load_relaxed(&node->standing->resting) != call) {
            tt_store_release(&node->standing->resting, call); // acquired in at_rest
            tti_board_ring(board);
        }
        if (node->server != NULL)
            tti_node_serve(node, 1000000);
        else if (must_rest(node))
            (void)tt_event_wait(&board->resume, seen, 0, 10000000);
    }
    tt_store_release(&node->standing->resting, 0u);
    node->paused_ns += tt_clock_now(&board->clock) - begin;
}

static void
server_turn(tti_node *node)
{
    tti_node_serve(node, 20000000);
}

static int
is_discarded(const tti_node *node)
{
    return node->server != NULL &&
           tt_load_acquire(&node->board->discard); // released in tti_runtime_abandon, bury
}

// ---- opening ----------------------------------------------------------------------------------

static const tt_ps_view *
newest_view(void *self)
{
    const tti_node *node = self;
    return tt_load_acquire(&node->board->current)->view; // released in tti_runtime_publish
}

static void
partition_retired(void *self, uint32_t partition, uint32_t generation)
{
    const tti_board *board = ((const tti_node *)self)->board;
    board->retired(board->self, partition, generation);
}

static void
partition_backed(void *self, uint32_t partition, uint32_t generation)
{
    const tti_board *board = ((const tti_node *)self)->board;
    if (board->backed != NULL)
        board->backed(board->self, partition, generation);
}

static void
last_batch(void *self, uint32_t worker, const tt_ps_batch *batch)
{
    const tti_board *board = ((const tti_node *)self)->board;
    if (board->last_batch != NULL)
        board->last_batch(board->self, worker, batch);
}

tt_ps_hooks
tti_node_hooks(tti_node *node)
{
    return (tt_ps_hooks){.self = node,
                         .newest = newest_view,
                         .retired = partition_retired,
                         .backed = partition_backed,
                         .last_batch = last_batch,
                         .keeper = node->board->node_count,
                         .attempt = node->attempt};
}

static tt_status
open_server(tti_node *node, const tt_ps_view *first, int joins, tt_error *err)
{
    const tti_board *board = node->board;
    node->outbox = tt_mesh_outbox(board->mesh, node->index);
    // The master's end counts as one more node for those who check senders.
    TT_TRY(tt_ps_server_open(&board->job->table, node->index, board->node_count + 1, node->outbox,
                             tti_node_hooks(node), &node->server, err));
    node->lost_seen = first->lost_at;
    if (joins) {
        tt_ps_server_join(node->server, first);
        return TT_OK;
    }
    tt_status status = tt_ps_server_start(node->server, first);
    if (status == TT_OK)
        return TT_OK;
    return tt_error_set(err, status, NULL, "the model does not fit",
                        "no memory for the partitions of node %u", node->index);
}

tt_status
tti_node_open(tti_node *node, const tt_ps_view *first, int joins, tt_error *err)
{
    node->now =
        (tti_node_setting){.compute_threads = 1, .in_flight = 4, .aggregation = 1, .spin = 100};
    node->now.ops = tt_vec_best();
    node->host = (tt_knob_host){
        .struct_size = sizeof node->host, .impl = node, .get_extension = tti_node_extension};
    if (node->board->mesh != NULL)
        TT_TRY(open_server(node, first, joins, err));
    TT_TRY(tti_worker_open(node, err));
    return tt_knob_set_open(&node->board->job->space, &node->host, &node->knobs, err);
}

void
tti_node_count(const tti_node *node, tti_counts *out)
{
    tt_ps_client_counters client;
    tt_ps_server_counters server;
    tt_mesh_counters mesh;
    *out = (tti_counts){.batches_ready = tt_load_relaxed(&node->standing->batches_ready),
                        .batches_waited = tt_load_relaxed(&node->standing->batches_waited)};
    if (node->server == NULL || node->client == NULL)
        return;
    tt_ps_client_counters_read(node->client, &client);
    tt_ps_server_counters_read(node->server, &server);
    tt_mesh_counters_read(node->board->mesh, node->index, &mesh);
    out->pushes = client.pushes;
    out->moving_wait_count = client.moving_wait_count;
    memcpy(out->moving_waits, client.moving_waits, sizeof out->moving_waits);
    out->carried = server.bytes_carried;
    out->drained = server.bytes_drained + server.bytes_fetched;
    out->frames = mesh.frames;
    out->bytes = mesh.bytes;
    out->chunks = mesh.chunks;
    out->sleeps = mesh.sleeps;
    out->refused = mesh.refused;
}

void
tti_node_close(tti_node *node)
{
    tt_knob_set_close(node->knobs);
    tti_worker_close(node);
    tt_ps_server_close(node->server);
    node->knobs = NULL;
    node->server = NULL;
}

// ---- running ----------------------------------------------------------------------------------

static void *
run(void *self)
{
    tti_node *node = self;
    tti_board *board = node->board;
    tti_simulated_enter(node);
    node->boundary_ns = tt_clock_now(&board->clock);
    while (!tti_stopping(board)) {
        // It waits for its end: what it does is not wanted any more.
        if (tti_node_is_expelled(node) || is_discarded(node)) {
            tti_node_serve(node, 20000000);
            continue;
        }
        node->gate_seen = tt_load_seq(&board->gate); // before the newest generation is looked for
        tti_node_adopt(node);
        if (!node->working) {
            if (node->server != NULL)
                server_turn(node);
            else
                break; // in place everybody works
            continue;
        }
        tti_node_rest(node);
        if (!tti_stopping(board) && !tti_worker_iterate(node)) {
            tt_store_release(&node->standing->finished, 1); // acquired by the master
            tti_board_ring(board);
            if (node->server == NULL)
                break;
            tti_node_serve(node, 5000000);
        }
    }
    tt_store_release(&node->standing->left, 1); // acquired in tti_runtime_stop
    tti_board_ring(board);
    // Others may still be waiting for an answer: serve until all have left.
    while (node->server != NULL &&
           !tt_load_acquire(&board->stop_servers)) // released in tti_runtime_stop
        tti_node_serve(node, 5000000);
    tt_store_release(&node->standing->ended, 1); // acquired in tti_runtime_close
    tti_board_ring(board);
    return NULL;
}

tt_status
tti_node_start(tti_node *node, tt_error *err)
{
    char name[24];
    (void)snprintf(name, sizeof name, "tt-node-%u", node->index);
    return tt_thread_start(&node->thread, name, run, node, err);
}
