// The runtime of a job: opening and closing nodes, publishing generations, pausing, stopping,
// reading the model.
#include "simulated.h"
#include <string.h>

static const tt_ps_view *
newest_view(void *self)
{
    const tti_node *node = self;
    return tt_load_acquire(&node->rt->current)->view; // released in tti_runtime_publish
}

static void
partition_retired(void *self, uint32_t partition, uint32_t generation)
{
    tti_node *node = self;
    TT_UNUSED(partition);
    TT_UNUSED(generation);
    (void)tt_sub_acq_rel(&node->rt->unretired, 1u);
    tt_event_signal(&node->rt->bell);
}

tt_ps_hooks
tti_node_hooks(tti_node *node)
{
    return (tt_ps_hooks){node, newest_view, partition_retired};
}

static tt_status
open_node(tti_runtime *rt, uint32_t index, tt_error *err)
{
    tti_node *node = &rt->nodes[index];
    node->rt = rt;
    node->index = index;
    node->now =
        (tti_node_setting){.compute_threads = 1, .in_flight = 4, .aggregation = 1, .spin = 100};
    node->now.ops = tt_vec_best();
    node->host = (tt_knob_host){
        .struct_size = sizeof node->host, .impl = node, .get_extension = tti_node_extension};
    if (rt->mesh != NULL) {
        node->outbox = tt_mesh_outbox(rt->mesh, index);
        // The master's end counts as one more node for those who check senders.
        TT_TRY(tt_ps_server_open(&rt->job->table, index, rt->node_count + 1, node->outbox,
                                 tti_node_hooks(node), &node->server, err));
        tt_status status = tt_ps_server_start(node->server, rt->newest->view);
        if (status != TT_OK)
            return tt_error_set(err, status, NULL, "the model does not fit",
                                "no memory for the partitions of node %u", index);
    }
    TT_TRY(tti_worker_open(node, err));
    return tt_knob_set_open(&rt->job->space, &node->host, &node->knobs, err);
}

static tt_status
open_reader(tti_runtime *rt, tt_error *err)
{
    tti_node *master = &rt->nodes[rt->node_count]; // an end of the mesh without a thread
    master->rt = rt;
    master->index = rt->node_count;
    tt_ps_hooks hooks = tti_node_hooks(master);
    TT_TRY(
        tt_ps_client_open(&rt->job->table, rt->node_count, rt->node_count + 1,
                          rt->job->table.kind == TT_PS_SPARSE ? (uint32_t)rt->job->table.rows : 1,
                          tt_mesh_outbox(rt->mesh, rt->node_count), hooks, &rt->reader, err));
    tt_ps_client_set(rt->reader, 16, 0);
    tt_ps_client_adopt(rt->reader, rt->newest->view);
    return TT_OK;
}

static tt_status
first_generation(tti_runtime *rt, const tt_setting *start, tt_error *err)
{
    const tt_job *job = rt->job;
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    rt->newest = tt_mem_zalloc(1, sizeof *rt->newest);
    if (rt->newest == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the first generation");
    rt->newest->setting = *start;
    tt_ps_table placed = job->table;
    uint32_t servers = tt_reconfig_servers(&job->space, start);
    if (job->spec.driver == TTI_DRIVER_MESSAGES)
        tt_reconfig_roles(servers, rt->node_count, is_server);
    else
        placed.partition_count = 0; // nobody serves
    tt_status status = tt_ps_view_first(&placed, rt->node_count, is_server, &rt->newest->view);
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, NULL, "no memory for the first generation");
    tt_store_release(&rt->current, rt->newest); // acquired by nodes
    return TT_OK;
}

static void
continue_generations(tt_ps_view *view, const tti_restore *restore)
{
    view->generation = restore->generation;
    if (restore->placement == NULL)
        return;
    TT_ASSERT(restore->placement->partition_count == view->partition_count);
    memcpy(view->owner, restore->placement->owner, view->partition_count * sizeof *view->owner);
    memcpy(view->previous, view->owner, view->partition_count * sizeof *view->owner);
}

static tt_status
open_parts(tti_runtime *rt, const tt_setting *start, const tti_restore *restore, tt_error *err)
{
    const tt_job *job = rt->job;
    TT_TRY(first_generation(rt, start, err));
    if (restore != NULL)
        continue_generations(rt->newest->view, restore);
    TT_TRY(tt_ledger_open(job->shards, rt->node_count, &rt->ledger, err));
    if (job->spec.driver == TTI_DRIVER_MESSAGES)
        TT_TRY(job->sim != NULL ? tti_simulated_mesh(rt, err)
                                : tt_mesh_open(rt->node_count + 1, &rt->mesh, err));
    else
        TT_TRY(tt_ps_store_open(&job->table, rt->node_count, &rt->store, err));
    for (uint32_t n = 0; n < rt->node_count; n++)
        TT_TRY(open_node(rt, n, err));
    if (rt->mesh != NULL)
        TT_TRY(open_reader(rt, err));
    rt->orphan_capacity = (size_t)rt->node_count * TTI_BATCHES_MAX * (size_t)job->spec.batch_size *
                          TTI_AGGREGATION_MAX;
    rt->orphans = tt_mem_zalloc(rt->orphan_capacity, sizeof *rt->orphans);
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(job->shards), sizeof *owner);
    if (rt->orphans == NULL || owner == NULL) {
        tt_mem_free(owner);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    }
    tt_status status = restore != NULL ? tti_runtime_load(rt, restore, err) : TT_OK;
    (void)tt_ledger_plan(rt->ledger, rt->newest->view->is_worker, owner);
    (void)tt_ledger_assign(rt->ledger, owner);
    tt_mem_free(owner);
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, rt->newest->view);
    return status;
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
    rt->retry_ns = (uint64_t)(1e9 * job->spec.retry);
    rt->example_limit = UINT64_MAX;
    rt->round_limit = rt->hold_round = UINT32_MAX;
    (void)pthread_mutex_init(&rt->orphans_lock, NULL);
    tt_status status = open_parts(rt, start, restore, err);
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
        char name[24];
        (void)snprintf(name, sizeof name, "tt-node-%u", n);
        tt_status status =
            tt_thread_start(&rt->nodes[n].thread, name, tti_node_main, &rt->nodes[n], err);
        if (status != TT_OK) {
            tti_runtime_stop(rt);
            return status;
        }
    }
    return TT_OK;
}

// ---- generations ------------------------------------------------------------------------------

void
tti_runtime_wake_all(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->mesh != NULL && n < rt->node_count; n++)
        tt_mesh_wake(rt->mesh, n);
    if (rt->store != NULL)
        tt_ps_store_wake(rt->store);
    tt_event_signal(&rt->resume);
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
    uint32_t moves = tt_ps_view_moves(rt->newest->view, view);
    int roles_change =
        memcmp(rt->newest->view->is_worker, view->is_worker, sizeof view->is_worker) != 0;
    (void)tt_add_acq_rel(&rt->unretired, moves);
    rt->newest = generation;
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, view);
    tt_store_release(&rt->current, generation); // acquired by nodes
    if (roles_change) {
        (void)tt_ledger_plan(rt->ledger, view->is_worker, owner);
        *shards_moved = tt_ledger_assign(rt->ledger, owner);
    }
    tt_mem_free(owner);
    if (rt->reader != NULL)
        tt_ps_client_adopt(rt->reader, view);
    tti_runtime_wake_all(rt);
    return TT_OK;
}

void
tti_runtime_collect(tti_runtime *rt)
{
    // Everyone has adopted the newest, so nobody looks at an older one.
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (tt_load_acquire(&rt->nodes[n].adopted_generation) <
            rt->newest->view->generation) // released in tti_node_adopt
            return;
    tti_generation *old = rt->newest->previous;
    rt->newest->previous = NULL;
    while (old != NULL) {
        tti_generation *previous = old->previous;
        tt_ps_view_free(old->view);
        tt_mem_free(old);
        old = previous;
    }
}

uint64_t
tti_runtime_iterations(const tti_runtime *rt)
{
    uint64_t applied = tt_load_relaxed(&rt->applied);
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

void
tti_runtime_bytes(const tti_runtime *rt, uint64_t *carried, uint64_t *drained)
{
    *carried = *drained = 0;
    for (uint32_t n = 0; rt->mesh != NULL && n < rt->node_count; n++) {
        tt_ps_server_counters counters;
        tt_ps_server_counters_read(rt->nodes[n].server, &counters);
        *carried += counters.bytes_carried;
        *drained += counters.bytes_drained + counters.bytes_fetched;
    }
}

// ---- pausing and stopping ---------------------------------------------------------------------

static int
at_rest(const tti_runtime *rt, const tti_node *node)
{
    if (!tt_load_acquire(&node->working_seen)) // released in change_role
        // One whose thread has not begun, or that is still giving partitions away, is about to
        // work.
        return !rt->newest->view->is_worker[node->index];
    // One that has finished comes to rest, too: it may still be given rows that another left
    // behind.
    return tt_load_acquire(&node->resting) == rt->rest_call || // released in tti_node_rest
           tt_load_acquire(&node->left);                       // released in tti_node_main
}

static int
all_at_rest(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!at_rest(rt, &rt->nodes[n]))
            return 0;
    return 1;
}

// After what makes workers rest was stored: whoever sees the call sees that, too.
void
tti_runtime_call_to_rest(tti_runtime *rt)
{
    uint32_t call = rt->rest_call + 1;
    tt_store_release(&rt->rest_call, call != 0 ? call : 1u); // acquired in tti_node_rest
    tti_runtime_wake_all(rt);
}

int
tti_runtime_await_rest(tti_runtime *rt)
{
    uint64_t deadline = tt_clock_now(&rt->clock) + 60000000000u;
    while (!all_at_rest(rt)) {
        uint32_t seen = tt_event_read(&rt->bell);
        if (all_at_rest(rt))
            break;
        (void)tt_event_wait(&rt->bell, seen, 0, 1000000);
        if (tt_clock_now(&rt->clock) > deadline) // an iteration of more than a minute
            return 0;
    }
    return 1;
}

int
tti_runtime_pause(tti_runtime *rt)
{
    tt_store_release(&rt->pause, 1); // acquired in must_rest
    tt_store_release(&rt->interrupt, 1);
    tti_runtime_call_to_rest(rt);
    if (tti_runtime_await_rest(rt))
        return 1;
    tti_runtime_resume(rt); // go on without
    return 0;
}

void
tti_runtime_resume(tti_runtime *rt)
{
    tt_store_release(&rt->interrupt, tt_load_acquire(&rt->stop));
    tt_store_release(&rt->pause, 0); // acquired in tti_node_rest
    tti_runtime_wake_all(rt);
}

void
tti_runtime_stop(tti_runtime *rt)
{
    tt_store_release(&rt->stop, 1); // acquired in tti_stopping
    tt_store_release(&rt->interrupt, 1);
    tti_runtime_wake_all(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        while (rt->nodes[n].thread.running &&
               !tt_load_acquire(&rt->nodes[n].left)) { // released in tti_node_main
            uint32_t seen = tt_event_read(&rt->bell);
            if (!tt_load_acquire(&rt->nodes[n].left))
                (void)tt_event_wait(&rt->bell, seen, 0, 1000000);
        }
}

// After tti_runtime_stop: lets the servers go and joins all.
static void
join_all(tti_runtime *rt)
{
    tt_store_release(&rt->stop_servers, 1); // acquired in tti_node_main
    tti_runtime_wake_all(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        tt_thread_join(&rt->nodes[n].thread);
}

void
tti_runtime_close(tti_runtime *rt)
{
    if (rt == NULL)
        return;
    tti_runtime_stop(rt);
    join_all(rt);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_node *node = &rt->nodes[n];
        tt_knob_set_close(node->knobs);
        tti_worker_close(node);
        tt_ps_server_close(node->server);
    }
    tt_ps_client_close(rt->reader);
    tt_ps_store_close(rt->store);
    tt_mesh_close(rt->mesh);
    tt_ledger_close(rt->ledger);
    while (rt->newest != NULL) {
        tti_generation *previous = rt->newest->previous;
        tt_ps_view_free(rt->newest->view);
        tt_mem_free(rt->newest);
        rt->newest = previous;
    }
    tt_mem_free(rt->orphans);
    (void)pthread_mutex_destroy(&rt->orphans_lock);
    tt_mem_free(rt);
}

void
tti_runtime_abandon(tti_runtime *rt)
{
    tt_store_release(&rt->discard, 1); // acquired in tti_worker_iterate
    tti_runtime_close(rt);
}

void
tti_runtime_traffic(const tti_runtime *rt, tti_traffic *sum)
{
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_node *node = &rt->nodes[n];
        sum->batches_ready += tt_load_relaxed(&node->batches_ready);
        sum->batches_waited += tt_load_relaxed(&node->batches_waited);
        if (rt->mesh == NULL)
            continue;
        tt_mesh_counters mesh;
        tt_ps_client_counters client;
        tt_mesh_counters_read(rt->mesh, n, &mesh);
        tt_ps_client_counters_read(node->client, &client);
        sum->frames += mesh.frames;
        sum->bytes += mesh.bytes;
        sum->chunks += mesh.chunks;
        sum->sleeps += mesh.sleeps;
        sum->pushes += client.pushes;
        sum->moving_wait_count += client.moving_wait_count;
    }
}

// ---- reading the model ------------------------------------------------------------------------

static void
on_reader_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_runtime *rt = self;
    tt_ps_client_receive(rt->reader, frame, payload);
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
tti_runtime_read_model(tti_runtime *rt, float *out)
{
    tt_ps_keys keys = {.count = (uint32_t)rt->job->table.rows};
    uint32_t *rows = rt->job->table.kind == TT_PS_SPARSE ? every_row(rt) : NULL;
    keys.rows = rows;
    if (rt->store != NULL) {
        tt_ps_store_read(rt->store, keys, out);
    } else {
        tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
        tt_ps_client_pull(rt->reader, keys, 0, 1, out);
        while (!tt_ps_client_done(
            rt->reader)) { // servers answer as long as they run, and they outlive this call
            if (tt_mesh_receive(rt->mesh, rt->node_count, 64, on_reader_frame, rt) == 0)
                tt_mesh_wait(rt->mesh, rt->node_count, 5000000);
            tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
            tt_ps_client_tick(rt->reader, rt->retry_ns);
            tt_mesh_flush(rt->mesh, rt->node_count);
        }
    }
    tt_mem_free(rows);
}
