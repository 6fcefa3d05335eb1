// What the nodes of a job have counted, and how far it is.
#include "runtime.h"

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

static uint64_t
refused_at(const tt_mesh *mesh, uint32_t end)
{
    tt_mesh_counters counters = {0};
    if (mesh != NULL)
        tt_mesh_counters_read(mesh, end, &counters);
    return counters.refused;
}

uint64_t
tti_runtime_refused(const tti_runtime *rt)
{
    tti_counts sum = {0};
    tti_runtime_traffic(rt, &sum);
    return sum.refused + refused_at(rt->mesh, rt->node_count) +
           refused_at(rt->membership.control, rt->node_count) + tti_processes_refused(rt);
}

void
tti_runtime_bytes(const tti_runtime *rt, uint64_t *carried, uint64_t *drained)
{
    tti_counts sum = {0};
    tti_runtime_traffic(rt, &sum);
    *carried = sum.carried;
    *drained = sum.drained;
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
