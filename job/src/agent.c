// What runs on a host beside a node's work: it says that the node lives, ends the work when the
// master has given the node up, and begins it anew when the master lets it. On simulated hosts a
// thread; between hosts it will be the process that outlives the tasks it runs.
#include "simulated.h"

// What the old process held is lost with it.
static void
end_process(tti_node *node)
{
    tt_sim_kill(node->rt->job->sim, &node->thread);
    tt_thread_join(&node->thread);
    if (node->server != NULL)
        tti_node_close(node);
    tt_store_release(&node->left, 1); // acquired in tti_runtime_stop
}

static void
forget(tti_node *node)
{
    node->adopted = NULL;
    node->working = 0;
    node->clock_ended = node->clock_unknown = 0;
    node->crashed = 0;
    tt_store_release(&node->working_seen, 0u);
    tt_store_release(&node->finished, 0);
    tt_store_release(&node->resting, 0u);
    tt_store_release(&node->left, 0);
}

static void
begin_process(tti_node *node)
{
    tti_runtime *rt = node->rt;
    tt_error err;
    end_process(node);
    forget(node);
    node->attempt = node->pulse.attempt;
    tt_status status = tti_node_open(node, &err);
    if (status == TT_OK)
        status = tt_thread_start(&node->thread, "tt-node", tti_node_main, node, &err);
    if (status == TT_OK)
        return;
    tt_log(TT_LOG_WARN, "node %u does not begin anew: %s", node->index, err.what);
    tt_store_release(&node->left, 1);
    node->pulse = tt_pulse_begin(node->index, 0, node->pulse.period_ns, tt_clock_now(&rt->clock));
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_node *node = self;
    TT_UNUSED(payload);
    switch (tt_pulse_receive(&node->pulse, frame, tt_clock_now(&node->rt->clock))) {
    case TT_PULSE_WELCOME:
        if (!tti_stopping(node->rt))
            begin_process(node);
        break;
    case TT_PULSE_REFUSED:
        end_process(node);
        break;
    case TT_PULSE_FINE:
        break;
    }
}

void *
tti_agent_main(void *self)
{
    tti_node *node = self;
    tti_runtime *rt = node->rt;
    tti_membership *m = &rt->membership;
    tti_simulated_enter(node);
    tt_mesh_set_spin(m->control, node->index, 0);
    tt_outbox outbox = tt_mesh_outbox(m->control, node->index);
    while (!tt_load_acquire(&m->stop_agents)) { // released in tti_membership_stop
        tt_frame beat;
        (void)tt_mesh_receive(m->control, node->index, 16, on_frame, node);
        tt_store_relaxed(&node->ahead_ns, tt_pulse_ahead_ns(&node->pulse));
        uint64_t now = tt_clock_now(&rt->clock);
        if (tt_pulse_due(&node->pulse, now, &beat))
            outbox.send(outbox.self, rt->node_count, &beat, NULL, 0);
        tt_mesh_flush(m->control, node->index);
        now = tt_clock_now(&rt->clock);
        if (node->pulse.next_ns > now)
            tt_mesh_wait(m->control, node->index, node->pulse.next_ns - now);
    }
    return NULL;
}
