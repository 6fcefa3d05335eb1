// Changing the setting in force: plan, publish, follow the transition to its end, learn what it
// cost.
#include "training.h"
#include <math.h>

void
tti_training_record_setting(tti_training *tr, uint32_t id, const tt_setting *setting)
{
    tt_error err = {0};
    if (tr->store == NULL || id < tr->recorded_settings)
        return;
    tr->recorded_settings = id + 1;
    if (tt_store_put_setting(tr->store, id, setting->value, setting->count, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static void
take_setting(tti_training *tr, const tt_setting *to, uint32_t to_id)
{
    tr->cost_from = tr->setting_id;
    tr->cost_to = to_id;
    tr->setting = *to;
    tr->setting_id = to_id;
    tr->setting_changes++;
    tti_training_record_setting(tr, to_id, &tr->setting);
    (void)tt_setting_format(&tr->job->space, &tr->setting, NULL, tr->setting_text,
                            sizeof tr->setting_text);
}

static tt_status
publish(tti_training *tr, tt_reconfig_plan *plan, uint32_t to_id, tt_error *err)
{
    tti_runtime *rt = tr->rt;
    uint64_t carried, drained;
    uint32_t shards = 0, generation = plan->view->generation;
    tti_runtime_bytes(rt, &carried, &drained);
    for (uint32_t n = 0; n < rt->node_count; n++)
        tt_store_relaxed(&rt->standings[n].wait_max_ns, 0u);
    double now_s = tti_training_now(tr);
    if (tti_runtime_publish(rt, plan->view, &plan->to, &shards) != TT_OK) {
        tt_reconfig_plan_fini(plan);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for generation %u", generation);
    }
    (void)tt_reconfig_plan_take_view(plan);
    tt_reconfig_begin(&tr->transition, plan, generation, rt->node_count, shards, now_s,
                      tti_runtime_iterations(rt), carried, drained);
    take_setting(tr, &plan->to, to_id);
    return TT_OK;
}

static void report_cost(tti_training *tr, double seconds_per_iteration);

static tt_status
plan_switch(
    tti_training *tr, const tt_setting *to, uint32_t move, tt_reconfig_plan *plan, tt_error *err)
{
    uint32_t clock, round;
    const tt_ps_view *view = tr->rt->newest->view;
    tti_runtime_horizon(tr->rt, &clock, &round);
    TT_TRY(tt_reconfig_plan_make(&tr->job->space, tr->checker, &tr->setting, to, view, clock, round,
                                 plan, err));
    if (move > 0 && plan->servers_from == plan->servers_to)
        tt_reconfig_plan_rotate(plan, view, move);
    tt_reconfig_plan_by(plan, tr->method);
    return TT_OK;
}

// Nobody has to agree on a round: everything stops.
static tt_status
restart(tti_training *tr,
        const tt_setting *to,
        uint32_t to_id,
        uint32_t move,
        int *refused,
        tt_error *err)
{
    tt_reconfig_plan plan;
    tt_status status = plan_switch(tr, to, move, &plan, err);
    if (status == TT_OK) {
        status = tti_training_restart(tr, &plan, refused, err);
        tt_reconfig_plan_fini(&plan);
        if (status == TT_OK && !*refused)
            take_setting(tr, to, to_id);
    }
    *refused |= status == TT_INVALID;
    return *refused && tr->rt != NULL ? TT_OK : status;
}

tt_status
tti_training_switch(tti_training *tr,
                    const tt_setting *to,
                    uint32_t to_id,
                    uint32_t move,
                    int *refused,
                    tt_error *err)
{
    tt_reconfig_plan plan;
    *refused = 0;
    if (tr->cost_pending) // not measured long enough: what the model expects of it will do
        report_cost(tr, tti_training_iteration_s(tr));
    if (tr->method == TT_RECONFIG_CHECKPOINT)
        return restart(tr, to, to_id, move, refused, err);
    // Somebody may die while all are told.
    if (!tti_runtime_close_gate(tr->rt) || !tti_runtime_settled(tr->rt)) {
        tti_runtime_open_gate(tr->rt);
        *refused = TTI_SWITCH_LATER;
        return TT_OK;
    }
    tt_status status = plan_switch(tr, to, move, &plan, err);
    if (status == TT_OK)
        status = publish(tr, &plan, to_id, err);
    else if (status == TT_INVALID)
        *refused = 1;
    tti_runtime_open_gate(tr->rt);
    return *refused ? TT_OK : status;
}

// Seconds per iteration under the setting in force: measured, else predicted, else the average so
// far.
double
tti_training_iteration_s(const tti_training *tr)
{
    tt_est_window window;
    tt_estimator_window(tr->estimator, &window);
    if (isfinite(window.seconds_per_iteration))
        return window.seconds_per_iteration;
    double log_mean, log_sd;
    if (tr->tuner != NULL && tt_tuner_predict(tr->tuner, &tr->setting, &log_mean, &log_sd))
        return exp(log_mean);
    return tr->iterations > 0 ? tti_training_now(tr) / (double)tr->iterations : NAN;
}

static void
report_cost(tti_training *tr, double seconds_per_iteration)
{
    tt_reconfig_cost *cost = &tr->pending_cost;
    double lost =
        tt_reconfig_lost_s(cost, isfinite(seconds_per_iteration) ? seconds_per_iteration : 0);
    tr->cost_pending = 0;
    tt_reconfig_costs_add(&tr->costs, cost, lost);
    tr->reconfigure_s += lost > 0 ? lost : 0;
    if (tr->tuner != NULL)
        tt_tuner_reconfigured(tr->tuner, tr->cost_from, tr->cost_to, cost->effect,
                              lost > 0 ? lost : 0);
    tt_store_reconfiguration row = {.ordinal = tr->reconfigurations++,
                                    .generation = cost->generation,
                                    .from_setting = tr->cost_from,
                                    .to_setting = tr->cost_to,
                                    .kind = tt_reconfig_kind(cost->effect),
                                    .method = tt_reconfig_done_by(cost),
                                    .start_s = cost->start_s,
                                    .duration_s = cost->duration_s,
                                    .lost_s = lost,
                                    .partitions_moved = cost->partitions_moved,
                                    .bytes_carried = (int64_t)cost->bytes_carried,
                                    .bytes_drained = (int64_t)cost->bytes_drained,
                                    .last_key_live_s = cost->last_key_live_s,
                                    .iterations_during = (int64_t)cost->iterations_during,
                                    .longest_wait_s = cost->longest_wait_s,
                                    .checkpoint_s = cost->checkpoint_s,
                                    .restart_s = cost->restart_s,
                                    .model_s = cost->model_s,
                                    .data_s = cost->data_s};
    tt_error err = {0};
    if (tr->store != NULL && tt_store_put_reconfiguration(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static double
longest_wait(const tti_training *tr)
{
    uint64_t longest = 0;
    for (uint32_t n = 0; n < tr->rt->node_count; n++)
        longest = TT_MAX(longest, tt_load_relaxed(&tr->rt->standings[n].wait_max_ns));
    return (double)longest * 1e-9;
}

static void
note_progress(tti_training *tr)
{
    tti_runtime *rt = tr->rt;
    const tt_ps_view *view = rt->newest->view;
    uint32_t nodes = 0;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        // Adopted, and in its new role: a server that is to work begins when everything it gave
        // away has arrived. One that died meanwhile is not waited for.
        const tti_standing *node = &rt->standings[n];
        uint64_t adopted = tt_load_acquire(&node->adopted_generation); // released in tti_node_adopt
        nodes += view->is_gone[n] || (adopted >= tr->transition.cost.generation &&
                                      tt_load_acquire(&node->working_seen) ==
                                          view->is_worker[n]); // released in change_role
    }
    tt_reconfig_adopted(&tr->transition, nodes);
    uint32_t left = tt_load_acquire(&rt->unretired);
    while (tr->transition.active &&
           tr->transition.retired + left < tr->transition.cost.partitions_moved)
        tt_reconfig_retired(&tr->transition, tti_training_now(tr));
}

// Nodes that were started anew are still being sent what they are to hold; how long that takes is
// the model's part of the restart.
static int
is_loading(tti_training *tr)
{
    double since_s = tti_training_now(tr) - tr->transition.cost.start_s;
    if (tt_load_acquire(&tr->rt->unretired) == 0) // partition_retired
        return 0;
    tt_reconfig_cost *cost = &tr->transition.cost;
    cost->model_s = since_s - cost->checkpoint_s - cost->data_s;
    return 1;
}

void
tti_training_follow_transition(tti_training *tr)
{
    tti_runtime *rt = tr->rt;
    if (tr->transition.active) {
        uint64_t carried, drained;
        note_progress(tr);
        if (tr->transition.cost.method == TT_RECONFIG_CHECKPOINT && is_loading(tr))
            return;
        tti_runtime_bytes(rt, &carried, &drained);
        if (tt_reconfig_finished(&tr->transition, tti_training_now(tr), tti_runtime_iterations(rt),
                                 carried, drained, longest_wait(tr))) {
            const tt_reconfig_cost *cost = &tr->transition.cost;
            tr->pending_cost = *cost;
            tr->cost_pending = 1;
            tr->partitions_moved += cost->partitions_moved;
            tti_runtime_collect(rt);
            tti_training_leave(tr); // no successor changes the setting back
            if (cost->method == TT_RECONFIG_CHECKPOINT)
                tti_training_event(tr, "info",
                                   "restarted from a checkpoint in %.0f ms: %.0f ms to write it, "
                                   "%.0f ms for the nodes, %.0f ms for the parameters",
                                   1e3 * cost->duration_s, 1e3 * cost->checkpoint_s,
                                   1e3 * cost->restart_s, 1e3 * cost->model_s);
            else if (cost->partitions_moved > 0)
                tti_training_event(tr, "info",
                                   "%u of %u partitions changed server while training, in %.0f ms; "
                                   "no worker waited more than "
                                   "%.1f ms",
                                   cost->partitions_moved, tr->job->table.partition_count,
                                   1e3 * cost->duration_s, 1e3 * cost->longest_wait_s);
        }
    } else if (tr->cost_pending) {
        tt_est_window window;
        tt_estimator_window(tr->estimator, &window);
        if (isfinite(window.seconds_per_iteration))
            report_cost(tr, window.seconds_per_iteration);
    }
}

tt_status
tti_training_follow_script(tti_training *tr, tt_error *err)
{
    const tt_job *job = tr->job;
    if (tr->transition.active || tr->next_script >= job->script_count ||
        !tti_runtime_settled(tr->rt))
        return TT_OK;
    const tti_script_step *step = &job->script[tr->next_script];
    if (tti_runtime_iterations(tr->rt) < step->iteration)
        return TT_OK;
    int refused;
    tr->method = step->method;
    TT_TRY(tti_training_switch(tr, &step->setting, tr->next_script + 1, step->move, &refused, err));
    if (refused == TTI_SWITCH_LATER)
        return TT_OK;
    tr->next_script++;
    if (refused) {
        tti_training_event(tr, "warning", "step %u of the script is refused: %s", tr->next_script,
                           err->what);
        return TT_OK;
    }
    tt_est_window window;
    tt_estimator_end(tr->estimator, 1, &window);
    tt_estimator_begin(tr->estimator, tr->setting_id, tr->rt->newest->view->generation,
                       tti_runtime_workers(tr->rt), NULL, 0);
    return TT_OK;
}
