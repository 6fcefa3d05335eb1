// What runs on a host beside a node's work: it says that the node lives, ends the work when the
// master has given the node up, and begins it anew when the master lets it. On simulated hosts a
// thread; between hosts it will be the process that outlives the tasks it runs.
#include "runtime.h"

// What the old process held is lost with it.
static void
end_process(tti_process *process)
{
    tti_node *node = &process->node;
    tt_sim_kill(process->rt->job->sim, &node->thread);
    tt_thread_join(&node->thread);
    if (node->server != NULL)
        tti_process_close(process);
    tt_store_release(&node->standing->left, 1); // acquired in tti_runtime_stop
}

static void
forget(tti_process *process)
{
    tti_node *node = &process->node;
    tti_standing *standing = node->standing;
    node->adopted = NULL;
    node->working = 0;
    node->clock_ended = node->clock_unknown = 0;
    process->crashed = 0;
    tt_store_release(&standing->working_seen, 0u);
    tt_store_release(&standing->finished, 0);
    tt_store_release(&standing->resting, 0u);
    tt_store_release(&standing->left, 0);
}

static void
begin_process(tti_process *process)
{
    tti_runtime *rt = process->rt;
    tt_error err;
    tti_node *node = &process->node;
    end_process(process);
    forget(process);
    node->attempt = process->pulse.attempt;
    tt_status status = tti_process_open(process, &err);
    if (status == TT_OK)
        status = tt_thread_start(&node->thread, "tt-node", tti_node_main, node, &err);
    if (status == TT_OK)
        return;
    tt_log(TT_LOG_WARN, "node %u does not begin anew: %s", node->index, err.what);
    tt_store_release(&node->standing->left, 1);
    process->pulse =
        tt_pulse_begin(node->index, 0, process->pulse.period_ns, tt_clock_now(&rt->clock));
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_process *process = self;
    TT_UNUSED(payload);
    switch (tt_pulse_receive(&process->pulse, frame, tt_clock_now(&process->rt->clock))) {
    case TT_PULSE_WELCOME:
        if (!tti_stopping(&process->rt->board))
            begin_process(process);
        break;
    case TT_PULSE_REFUSED:
        end_process(process);
        break;
    case TT_PULSE_FINE:
        break;
    }
}

void *
tti_agent_main(void *self)
{
    tti_process *process = self;
    tti_runtime *rt = process->rt;
    tti_membership *m = &rt->membership;
    uint32_t index = process->node.index;
    tti_simulated_enter(&process->node);
    tt_mesh_set_spin(m->control, index, 0);
    tt_outbox outbox = tt_mesh_outbox(m->control, index);
    while (!tt_load_acquire(&m->stop_agents)) { // released in tti_membership_stop
        tt_frame beat;
        (void)tt_mesh_receive(m->control, index, 16, on_frame, process);
        tt_store_relaxed(&process->node.ahead_ns, tt_pulse_ahead_ns(&process->pulse));
        uint64_t now = tt_clock_now(&rt->clock);
        if (tt_pulse_due(&process->pulse, now, &beat))
            outbox.send(outbox.self, rt->node_count, &beat, NULL, 0);
        tt_mesh_flush(m->control, index);
        now = tt_clock_now(&rt->clock);
        if (process->pulse.next_ns > now)
            tt_mesh_wait(m->control, index, process->pulse.next_ns - now);
    }
    return NULL;
}
