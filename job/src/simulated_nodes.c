// The nodes of a job on simulated hosts: each has a process with its own copy of the board and an
// agent, in the master's process and yet apart from it.
#include "runtime.h"

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

static void
end_node(tti_process *process)
{
    tt_sim_kill(process->job->sim, &process->node.thread);
    tt_thread_join(&process->node.thread);
}

static tt_status
open_node(tti_runtime *rt, uint32_t n, tt_error *err)
{
    tti_process *process = &rt->processes[n];
    process->rt = rt;
    TT_TRY(tti_process_open(process, rt->job, n, rt->clock, rt->mesh, rt->membership.control, err));
    process->end_node = end_node;
    process->node.attempt = rt->newest->view->attempt[n];
    if (rt->newest->view->is_gone[n])
        return TT_OK; // it will be told when it comes
    if (learn_first(rt, process) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the first generation");
    rt->command.nodes[n].generation = rt->newest->view->generation;
    tti_simulated_share(process);
    return tti_process_open_node(process, 0, err);
}

static tt_status
start_agent(tti_process *process, uint32_t attempt)
{
    tti_runtime *rt = process->rt;
    tt_error err;
    uint64_t period_ns = (uint64_t)(1e9 * rt->job->spec.heartbeat);
    process->pulse =
        tt_pulse_begin(process->node.index, attempt, period_ns, tt_clock_now(&rt->clock));
    return tt_thread_start(&process->agent, "tt-agent", tti_agent_main, process, &err);
}

// A host has crashed, with the processes of its nodes, or is there again, without any.
static void
on_host(void *self, uint32_t host, int up)
{
    tti_runtime *rt = self;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_process *process = &rt->processes[n];
        if (tti_simulated_host(rt->job, n) != host || !up)
            continue;                    // that it has crashed the master hears from nobody
        tt_thread_join(&process->agent); // it has ended with the host
        if (start_agent(process, 0) != TT_OK)
            tt_log(TT_LOG_WARN, "no memory to start node %u anew", n);
    }
}

// The nodes of a master that died, with all that lies between them and it.
static void
take_over(tti_runtime *rt, tti_runtime *left)
{
    tti_process *own = rt->processes;
    rt->processes = left->processes;
    left->processes = own;
    rt->mesh = left->mesh;
    rt->membership.control = left->membership.control;
    left->mesh = left->membership.control = NULL;
    rt->seen = left->seen;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        rt->processes[n].rt = rt;
        rt->processes[n].node.watch = &rt->watch;
    }
}

static tt_status
open_meshes(tti_runtime *rt, tt_error *err)
{
    if (rt->left != NULL) {
        take_over(rt, rt->left);
        return TT_OK;
    }
    TT_TRY(tti_simulated_mesh(rt, err));
    return tti_simulated_control(rt, &rt->membership.control, err);
}

static tt_status
start_nodes(tti_runtime *rt, tt_error *err)
{
    if (rt->inherits) {
        tt_sim_watch_hosts(rt->job->sim, on_host, rt);
        return TT_OK;
    }
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (rt->newest->view->is_gone[n])
            continue;
        rt->processes[n].board.round_limit = rt->board.round_limit; // before the first order comes
        TT_TRY(tti_node_start(&rt->processes[n].node, err));
    }
    tt_sim_watch_hosts(rt->job->sim, on_host, rt);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (rt->newest->view->is_gone[n])
            continue;
        if (start_agent(&rt->processes[n], rt->processes[n].node.attempt) != TT_OK)
            return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    }
    return TT_OK;
}

static void
stop(tti_runtime *rt)
{
    tt_sim_watch_hosts(rt->job->sim, NULL, NULL);
    // Whoever is thought dead and still stands somewhere is not waited for.
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->newest->view->is_gone[n]) {
            tt_sim_kill(rt->job->sim, &rt->processes[n].agent);
            tt_sim_kill(rt->job->sim, &rt->processes[n].node.thread);
        }
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tt_store_release(&rt->processes[n].stop_agent, 1); // acquired in tti_agent_main
        tt_mesh_wake(rt->membership.control, n);
    }
    for (uint32_t n = 0; n < rt->node_count; n++)
        tt_thread_join(&rt->processes[n].agent);
    for (uint32_t n = 0; n < rt->node_count; n++)
        tt_thread_join(&rt->processes[n].node.thread);
}

static void
close_nodes(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->processes != NULL && n < rt->node_count; n++)
        tti_process_close(&rt->processes[n]);
}

const tti_engine tti_engine_simulated = {.open = open_meshes,
                                         .list_gone = tti_simulated_gone,
                                         .open_node = open_node,
                                         .start = start_nodes,
                                         .stop = stop,
                                         .close = close_nodes};
