// The runtime of a job: its nodes opened, started and closed.
#include "runtime.h"
#include <math.h>
#include <string.h>

// Of a move that was overtaken by a restore nobody wants to hear.
static void
partition_retired(void *self, uint32_t partition, uint32_t generation)
{
    tti_runtime *rt = self;
    uint32_t expected = generation;
    if (generation != 0 && tt_cas_acq_rel(&rt->moving[partition], &expected, 0u))
        (void)tt_sub_acq_rel(&rt->unretired, 1u);
    tti_board_ring(&rt->board);
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
    // To the servers, a successor's is another process than the one before.
    uint32_t masters = TT_MAX(rt->books.masters, 1u);
    rt->reading = (tti_node){.board = &rt->board, .index = rt->node_count, .attempt = masters};
    tt_ps_hooks hooks = tti_node_hooks(&rt->reading);
    TT_TRY(
        tt_ps_client_open(&rt->job->table, rt->node_count, rt->node_count + 1,
                          rt->job->table.kind == TT_PS_SPARSE ? (uint32_t)rt->job->table.rows : 1,
                          tt_mesh_outbox(rt->mesh, rt->node_count), hooks, &rt->reader, err));
    if (rt->apart && tt_ps_copier_open(&rt->job->table, tt_mesh_outbox(rt->mesh, rt->node_count),
                                       masters, &rt->copier) != TT_OK)
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
    tt_status status = tt_ps_view_without(whole, is_gone, moving, NULL, servers, &rest);
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
    uint8_t is_server[TT_PS_NODES_MAX] = {0}, is_gone[TT_PS_NODES_MAX] = {0};
    uint16_t host[TT_PS_NODES_MAX];
    if (rt->engine != NULL)
        rt->engine->list_gone(rt, is_gone);
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
    if (status == TT_OK && tti_processes_hosts(rt, host))
        tt_ps_view_set_hosts(rt->newest->view, host);
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
    tt_ps_view_place_as(view, restore->placement);
}

// That of the nodes, which are at work.
static tt_status
inherited_generation(tti_runtime *rt, tt_archive *books, tt_error *err)
{
    tt_status status = tti_generation_read(books, &rt->newest);
    if (status == TT_OK && !tti_generation_fits(rt->job, rt->newest))
        status = TT_CORRUPT;
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, NULL, "what the last master left makes no sense");
    tt_store_release(&rt->board.current, rt->newest); // acquired by nodes
    return TT_OK;
}

// So many epochs of every example, not as many examples of any epoch: the last one is whole.
static void
set_limits(tti_runtime *rt)
{
    const tt_job *job = rt->job;
    double examples = job->spec.stop_epochs * (double)job->train->row_count;
    rt->work.example_limit = examples < 9e18 ? (uint64_t)ceil(examples) : UINT64_MAX;
    if (examples < 9e18)
        tt_ledger_set_limit(rt->work.ledger, (uint64_t)ceil(job->spec.stop_epochs));
    double rounds = ceil(examples / (double)job->spec.batch_size);
    rt->board.round_limit = rounds < 4e9 ? (uint32_t)rounds : UINT32_MAX;
}

// Each worker's shards.
static tt_status
deal_shards(tti_runtime *rt, tt_error *err)
{
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(rt->job->shards), sizeof *owner);
    if (owner == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    if (tti_runtime_workers(rt) > 0) {
        (void)tt_ledger_plan(rt->work.ledger, rt->newest->view->is_worker, owner);
        (void)tt_ledger_assign(rt->work.ledger, owner);
    }
    tt_mem_free(owner);
    return TT_OK;
}

static tt_status
open_parts(tti_runtime *rt, const tt_setting *start, const tti_restore *restore, tt_error *err)
{
    const tt_job *job = rt->job;
    tt_archive books;
    rt->inherits = restore != NULL && restore->books != NULL;
    if (rt->inherits) {
        rt->left = restore->left;
        tt_archive_read(&books, restore->books, restore->book_bytes);
        rt->books.journal = restore->journal;
        TT_TRY(inherited_generation(rt, &books, err));
    } else
        TT_TRY(first_generation(rt, start, err));
    if (restore != NULL && !rt->inherits)
        continue_generations(rt->newest->view, restore);
    size_t rows = (size_t)rt->node_count * TTI_BATCHES_MAX * (size_t)job->spec.batch_size *
                  TTI_AGGREGATION_MAX;
    TT_TRY(tti_work_open(job->shards, rt->node_count, rows, &rt->work, err));
    if (job->spec.driver == TTI_DRIVER_MESSAGES)
        TT_TRY(rt->engine != NULL ? rt->engine->open(rt, err)
                                  : tt_mesh_open(rt->node_count + 1, &rt->mesh, err));
    else
        TT_TRY(tt_ps_store_open(&job->table, rt->node_count, &rt->store, err));
    rt->board.mesh = rt->mesh;
    rt->board.store = rt->store;
    set_limits(rt);
    TT_TRY(tti_membership_open(rt, rt->inherits ? &books : NULL, err));
    int loads = restore != NULL && restore->bytes != NULL;
    if (loads && rt->apart)
        TT_TRY(tti_runtime_load(rt, restore, err));
    if (rt->apart && !rt->inherits)
        tti_runtime_note_moves(rt, rt->newest->view);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        TT_TRY(tti_records_open(&rt->standings[n].records, rt->node_count));
        if (!rt->apart)
            TT_TRY(open_node(rt, n, err));
        else if (rt->engine->open_node != NULL && !rt->inherits)
            TT_TRY(rt->engine->open_node(rt, n, err));
    }
    if (rt->mesh != NULL)
        TT_TRY(open_reader(rt, err));
    if (loads && !rt->apart)
        TT_TRY(tti_runtime_load(rt, restore, err));
    if (!rt->inherits)
        TT_TRY(deal_shards(rt, err));
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, rt->newest->view);
    return TT_OK;
}

static tt_status
open_nodes(tti_runtime *rt, tt_error *err)
{
    rt->processes = tt_mem_zalloc_vector(rt->node_count, sizeof *rt->processes);
    rt->standings = tt_mem_zalloc_vector(rt->node_count, sizeof *rt->standings);
    rt->moving = tt_mem_zalloc(TT_MAX(rt->job->table.partition_count, 1u), sizeof *rt->moving);
    rt->backed = tt_mem_zalloc(TT_MAX(rt->job->table.partition_count, 1u), sizeof *rt->backed);
    if (rt->processes == NULL || rt->standings == NULL || rt->moving == NULL || rt->backed == NULL)
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
    rt->engine = tti_engine_of(job);
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
    if (rt->inherits)
        rt->elapsed_ns = tt_clock_now(&rt->clock) - rt->books.job_begin_ns;
    rt->start_ns = tt_clock_now(&rt->clock) - rt->elapsed_ns; // until it starts
    *out = rt;
    return TT_OK;
}

static tt_status
start_threads(tti_runtime *rt, tt_error *err)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        TT_TRY(tti_node_start(&rt->processes[n].node, err));
    return TT_OK;
}

tt_status
tti_runtime_start(tti_runtime *rt, tt_error *err)
{
    rt->start_ns =
        rt->inherits ? rt->books.job_begin_ns : tt_clock_now(&rt->clock) - rt->elapsed_ns;
    tti_membership_begin(rt);
    tt_status status = rt->apart ? rt->engine->start(rt, err) : start_threads(rt, err);
    if (status != TT_OK)
        tti_runtime_stop(rt);
    return status;
}

void
tti_runtime_forget(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->standings != NULL && n < rt->node_count; n++)
        tti_records_close(&rt->standings[n].records);
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
    tt_mem_free(rt->backed);
    tt_mem_free(rt);
}

void
tti_runtime_close(tti_runtime *rt)
{
    if (rt == NULL)
        return;
    if (rt->processes != NULL && rt->newest != NULL && rt->newest->view != NULL) {
        tti_runtime_stop(rt);
        tti_runtime_join(rt);
    }
    if (rt->engine != NULL)
        rt->engine->close(rt);
    for (uint32_t n = 0; rt->processes != NULL && rt->engine == NULL && n < rt->node_count; n++)
        tti_node_close(&rt->processes[n].node);
    tti_runtime_forget(rt);
}

void
tti_runtime_abandon(tti_runtime *rt)
{
    tt_store_release(&rt->board.discard, 1); // acquired in tti_worker_iterate
    tti_runtime_close(rt);
}
