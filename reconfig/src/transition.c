// Transitions: from publication until the last node has adopted and the last partition has left its
// old server.
#include "tt/reconfig.h"
#include <math.h>

void
tt_reconfig_begin(tt_reconfig_transition *transition,
                  const tt_reconfig_plan *plan,
                  uint32_t generation,
                  uint32_t node_count,
                  uint32_t shards_moved,
                  double now_s,
                  uint64_t iterations,
                  uint64_t bytes_carried,
                  uint64_t bytes_drained)
{
    TT_ASSERT(!transition->active);
    *transition = (tt_reconfig_transition){.active = 1, .node_count = node_count};
    transition->iterations_start = iterations;
    transition->carried_start = bytes_carried;
    transition->drained_start = bytes_drained;
    transition->cost = (tt_reconfig_cost){.effect = plan->effect,
                                          .method = plan->method,
                                          .generation = generation,
                                          .partitions_moved = plan->partitions_moved,
                                          .shards_moved = shards_moved,
                                          .start_s = now_s,
                                          .checkpoint_s = NAN,
                                          .restart_s = NAN,
                                          .model_s = NAN,
                                          .data_s = NAN};
}

void
tt_reconfig_restarted(tt_reconfig_transition *transition,
                      double checkpoint_s,
                      double model_s,
                      double data_s)
{
    TT_ASSERT(transition->active && transition->cost.method == TT_RECONFIG_CHECKPOINT);
    transition->cost.checkpoint_s = checkpoint_s;
    transition->cost.model_s = model_s;
    transition->cost.data_s = data_s;
}

void
tt_reconfig_adopted(tt_reconfig_transition *transition, uint32_t nodes)
{
    if (transition->active)
        transition->adopted = TT_MAX(transition->adopted, nodes);
}

void
tt_reconfig_retired(tt_reconfig_transition *transition, double now_s)
{
    if (!transition->active)
        return;
    transition->retired++;
    transition->cost.last_key_live_s = now_s - transition->cost.start_s;
}

int
tt_reconfig_finished(tt_reconfig_transition *transition,
                     double now_s,
                     uint64_t iterations,
                     uint64_t bytes_carried,
                     uint64_t bytes_drained,
                     double longest_wait_s)
{
    if (!transition->active || transition->adopted < transition->node_count ||
        transition->retired < transition->cost.partitions_moved)
        return 0;
    tt_reconfig_cost *cost = &transition->cost;
    transition->active = 0;
    cost->duration_s = now_s - cost->start_s;
    cost->iterations_during = iterations - transition->iterations_start;
    cost->bytes_carried = bytes_carried - transition->carried_start;
    cost->bytes_drained = bytes_drained - transition->drained_start;
    cost->longest_wait_s = longest_wait_s;
    cost->restart_s = cost->duration_s - cost->checkpoint_s - cost->model_s - cost->data_s;
    return 1;
}

double
tt_reconfig_lost_s(const tt_reconfig_cost *cost, double seconds_per_iteration_after)
{
    return cost->duration_s - (double)cost->iterations_during * seconds_per_iteration_after;
}

const char *
tt_reconfig_done_by(const tt_reconfig_cost *cost)
{
    int moved = cost->partitions_moved > 0 || cost->method == TT_RECONFIG_CHECKPOINT;
    return moved ? tt_reconfig_method_name(cost->method) : "publish";
}

void
tt_reconfig_costs_add(tt_reconfig_costs *costs, const tt_reconfig_cost *cost, double lost_s)
{
    tt_reconfig_sum *sum = &costs->of[cost->method][cost->effect % TT_RECONFIG_KINDS];
    sum->count++;
    sum->lost_s += lost_s;
    sum->duration_s += cost->duration_s;
}
