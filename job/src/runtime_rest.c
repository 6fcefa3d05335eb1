// Waiting for nodes: until they rest, until they have left.
#include "runtime.h"

// While partitions are being restored the master's end of the parameters' mesh is where the work
// is: a ring takes a piece of what is sent there at a time, and has room for the next when the
// other side has read it.
static int
is_sending(const tti_runtime *rt)
{
    return rt->membership.state != NULL && rt->mesh != NULL && rt->job->sim == NULL &&
           tt_load_acquire(&rt->unretired) > 0; // partition_retired
}

void
tti_runtime_wait(tti_runtime *rt, uint32_t seen, uint64_t timeout_ns)
{
    enum { SENDING_NS = 500000 }; // what comes by the other mesh is looked for meanwhile
    if (rt->apart && is_sending(rt))
        tt_mesh_wait(rt->mesh, rt->node_count, TT_MIN(timeout_ns, (uint64_t)SENDING_NS));
    else if (rt->apart)
        tt_mesh_wait(rt->board.control, rt->board.end, timeout_ns);
    else
        (void)tt_event_wait(&rt->board.bell, seen, 0, timeout_ns);
}

static int
at_rest(const tti_runtime *rt, uint32_t n)
{
    const tti_standing *node = &rt->standings[n];
    if (rt->newest->view->is_gone[n])
        return 1;
    if (!tt_load_acquire(&node->working_seen)) // released in change_role
        // One whose thread has not begun, or that is still giving partitions away, is about to
        // work. A server may have been a worker: what it trained then is to be known, too.
        return !rt->newest->view->is_worker[n] && (!rt->apart || node->told_all);
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

void
tti_runtime_join(tti_runtime *rt)
{
    tt_store_release(&rt->board.stop_servers, 1); // acquired by nodes
    tti_runtime_wake_all(rt);
    await_all(rt, has_ended);
    if (rt->apart)
        rt->engine->stop(rt);
    for (uint32_t n = 0; !rt->apart && n < rt->node_count; n++)
        tt_thread_join(&rt->processes[n].node.thread);
}
