// A worker measures the curvature of the loss now and then, and with it the delays that the loss
// bears (estimator: tt_estimator_stable_delay).
//
// Only where a parameter's step depends on its last gradient alone (plain SGD), and where there are
// delays (not BSP). On the scale on which parameters move within a delay, so that a loss with kinks
// (hinge) has one, too: the last push's step, times the pushes that are under way.
#include "node.h"
#include "simulated.h"
#include <math.h>

// Pushes of a worker until its first measurement, which is 8 gradients' work; the number doubles
// with each up to EVERY_MAX. Not of models that take more memory than a cache has.
enum { FIRST = 4, EVERY_MAX = 2048, FLOATS_MAX = 1 << 18 };
// Workers do not all measure at once.
static const double GOLDEN = 0.6180339887498949;

tt_status
tti_probe_open(tti_node *node, size_t floats)
{
    const tt_ps_table *table = &node->board->job->table;
    node->probe = (tti_probe){.every = FIRST, .pushes_left = FIRST};
    if (table->optimizer != TT_PS_SGD || table->consistency == TT_PS_BSP || floats > FLOATS_MAX)
        return TT_OK;
    node->probe.work = tt_mem_zalloc_vector(3 * floats, sizeof(float));
    return node->probe.work != NULL ? TT_OK : TT_NOMEM;
}

void
tti_probe_close(tti_node *node)
{
    tt_mem_free(node->probe.work);
    node->probe = (tti_probe){0};
}

static uint32_t
worker_count(const tti_node *node)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < node->board->node_count; n++)
        count += node->adopted->view->is_worker[n];
    return count;
}

static int
is_due(tti_node *node)
{
    tti_probe *probe = &node->probe;
    if (probe->work == NULL || --probe->pushes_left > 0)
        return 0;
    probe->every = TT_MIN(2 * probe->every, (uint32_t)EVERY_MAX);
    double turn = GOLDEN * node->index;
    probe->pushes_left = (uint32_t)((0.5 + turn - floor(turn)) * probe->every);
    return 1;
}

void
tti_probe_pushed(tti_node *node, const tti_compute_task *task)
{
    if (!is_due(node))
        return;
    const tt_job *job = node->board->job;
    const uint64_t begin_ns = tt_clock_now(&node->board->clock);
    const double workers = worker_count(node), iteration = workers * node->clock;
    const double length = sqrt(node->now.ops->sum_squares(task->gradient, task->floats));
    const double moved = tt_ps_learning_rate(&job->table, (uint64_t)iteration) * length * workers;
    if (!isfinite(moved) || !(moved > 0))
        return;
    tti_simulated_probe(node, task);
    const double found = tti_compute_curvature(node->compute, task, moved, node->probe.work);
    if (found > 0)
        node->probe.found = (float)(found + job->spec.l2);
    node->paused_ns += tt_clock_now(&node->board->clock) - begin_ns; // no part of an iteration
}

float
tti_probe_take(tti_node *node)
{
    float found = node->probe.found;
    node->probe.found = 0;
    return found;
}
