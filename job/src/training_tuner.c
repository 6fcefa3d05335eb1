// Between the tuner and the job: options, steps, and what the tuner says to the run store.
#include "training.h"
#include <math.h>
#include <string.h>

// Seconds a restart loses whatever changes, before any was measured: what it takes with a small
// model.
static const double RESTART_PRIOR_S = 0.1;

static uint32_t
workers_of(void *self, const tt_setting *setting)
{
    const tti_training *tr = self;
    uint32_t servers = tr->job->spec.driver == TTI_DRIVER_MESSAGES
                           ? tt_reconfig_servers(&tr->job->space, setting)
                           : 0;
    return tr->job->node_count - servers;
}

static uint32_t
merged_of(void *self, const tt_setting *setting)
{
    const tti_training *tr = self;
    int knob = tt_space_find(&tr->job->space, "push_aggregation");
    return knob >= 0 && !tr->job->space.knob[knob].absent ? (uint32_t)setting->value[knob] : 1;
}

static tt_store_phase
store_phase(const tti_training *tr, const tt_tuner_window_record *record)
{
    if (!tr->tuned || record->phase == TT_TUNER_OFF || record->phase == TT_TUNER_IDLE)
        return TT_STORE_FIXED;
    if (record->overlaps_transition)
        return TT_STORE_TRANSITION;
    if (record->setting_id == 0 && record->phase == TT_TUNER_START)
        return TT_STORE_START;
    return record->phase == TT_TUNER_SETTLED ? TT_STORE_SETTLED : TT_STORE_EXPLORE;
}

static void
on_window(void *self, const tt_tuner_window_record *record)
{
    tti_training *tr = self;
    const tt_est_window *estimate = &record->estimate;
    tti_training_record_setting(tr, record->setting_id, record->setting);
    if (isfinite(estimate->seconds_per_iteration) &&
        tr->iteration_time_count < TT_COUNT_OF(tr->iteration_times))
        tr->iteration_times[tr->iteration_time_count++] = estimate->seconds_per_iteration;
    tt_store_window row = {.ordinal = (int64_t)record->index,
                           .generation = (int64_t)record->generation,
                           .setting = record->setting_id,
                           .phase = store_phase(tr, record),
                           .first_iteration = (int64_t)tr->iterations - (int64_t)estimate->kept,
                           .last_iteration = (int64_t)tr->iterations,
                           .start_s = record->begin_s,
                           .end_s = record->end_s,
                           .kept = estimate->kept,
                           .seconds_per_iteration = estimate->seconds_per_iteration,
                           .time_cv = estimate->time_cv,
                           .loss_before = NAN,
                           .loss_after = estimate->loss,
                           .noise = estimate->noise,
                           .slope = estimate->slope,
                           .slope_se = estimate->slope_se,
                           .flags = estimate->flags,
                           .abandoned = record->abandoned,
                           .staleness = estimate->staleness,
                           .lag_borne = record->lag_borne};
    tt_error err = {0};
    if (tr->store != NULL && tt_store_put_window(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static void
on_proposal(void *self, const tt_tuner_proposal *proposal)
{
    tti_training *tr = self;
    tt_error err = {0};
    if (tr->store == NULL)
        return;
    if (isfinite(proposal->realised_ratio)) { // reported a second time: what it brought
        // By what was said to be left when it was proposed: to ask anew after each trial keeps a
        // processor from the workers.
        double ratio = proposal->realised_ratio;
        double left = tr->proposed_left_s - (tti_training_now(tr) - tr->proposed_at_s);
        double gain = isfinite(left) ? fmax(left, 0) * (1 / ratio - 1) : (double)NAN;
        if (tt_store_set_realised(tr->store, (int64_t)proposal->id, proposal->setting_id, gain,
                                  ratio, &err) != TT_OK)
            tti_record_failed(tr, &err);
        return;
    }
    tr->proposed_left_s = tti_training_eta(tr).seconds_median;
    tr->proposed_at_s = tti_training_now(tr);
    // A setting is recorded when it is first in force; a proposal that was only considered has none
    // of its own.
    int known = proposal->setting_id != UINT32_MAX;
    char difference[512] = "";
    const tt_setting *about =
        proposal->considered != NULL ? proposal->considered : proposal->setting;
    if (about != NULL && about->count > 0)
        (void)tt_setting_format(&tr->job->space, about, &tr->setting, difference,
                                sizeof difference);
    if (known && proposal->setting != NULL)
        tti_training_record_setting(tr, proposal->setting_id, proposal->setting);
    tt_store_proposal row = {.ordinal = (int64_t)proposal->id,
                             .time_s = proposal->now_s,
                             .phase = tt_tuner_phase_name(proposal->phase),
                             .setting = known ? (int64_t)proposal->setting_id : -1,
                             .current_setting = proposal->from_id,
                             .log_ratio = proposal->log_ratio_mean,
                             .log_ratio_sd = proposal->log_ratio_sd,
                             .ei_seconds = proposal->ei_s,
                             .cost_seconds = proposal->cost_s,
                             .remaining_s = tr->proposed_left_s,
                             .predicted_s = proposal->predicted_s,
                             .guard_left_s = proposal->guard_left_s,
                             .proposed = difference[0] != '\0' ? difference : NULL,
                             .realised_ratio = NAN,
                             .decision = tt_tuner_decision_name(proposal->decision),
                             .reason = proposal->reason,
                             .realised_gain_s = NAN};
    if (tt_store_put_proposal(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static void
on_event(void *self, double now_s, const char *text)
{
    TT_UNUSED(now_s);
    int changed = strncmp(text, TT_TUNER_CHANGED, strlen(TT_TUNER_CHANGED)) == 0;
    tti_training_event(self, changed ? "warning" : "info", "%s", text);
}

tt_est_method
tti_job_estimator(const tt_job *job)
{
    enum { AUTO, POOLED, PAPER }; // values of tuner.estimator
    int chosen = job->spec.tuner_estimator;
    if (chosen == AUTO)
        return job->spec.tuner_model == TT_TUNER_MODEL_PAPER ? TT_EST_PAPER : TT_EST_POOLED;
    return chosen == PAPER ? TT_EST_PAPER : TT_EST_POOLED;
}

const char *
tti_job_tuner_text(const tt_job *job, char *out, size_t size)
{
    if (job->script_count > 0)
        (void)snprintf(out, size, "script");
    else if (!job->spec.tuner_enabled || tt_space_free_count(&job->space) == 0)
        (void)snprintf(out, size, "off");
    else
        (void)snprintf(out, size, "model %s, estimator %s%s%s",
                       tt_tuner_model_name((tt_tuner_model)job->spec.tuner_model),
                       tt_est_method_name(tti_job_estimator(job)),
                       job->spec.without != 0 ? ", without " : "",
                       job->spec.without != 0 ? job->spec.tuner_without : "");
    tti_job_curves_text(job, out, size);
    return out;
}

tt_status
tti_training_open_tuner(tti_training *tr, tt_error *err)
{
    const tti_spec *spec = &tr->job->spec;
    tt_tuner_options options = {
        .enabled = tr->tuned,
        .model = (tt_tuner_model)spec->tuner_model,
        .initial_settings = (uint32_t)spec->initial_settings,
        .window = (uint32_t)spec->window,
        .guard = spec->guard,
        .without = spec->without,
        .seed = (uint64_t)spec->seed,
        .nodes = tr->job->node_count,
        .budget_s = isfinite(spec->stop_time) ? spec->stop_time : 0,
        .workers_of = workers_of,
        .merged_of = merged_of,
        .bulk_synchronous = tr->job->table.consistency == TT_PS_BSP,
        .processors = (uint32_t)tt_thread_processor_count(),
        .learning_rate = tr->job->table.optimizer == TT_PS_SGD ? tr->job->table.learning_rate : 0,
        .callback_self = tr};
    const tti_warm *warm = &tr->job->warm;
    if (tr->tuned) {
        options.start = warm->begins ? &warm->start : NULL;
        options.warm = warm->others;
        options.warm_count = warm->other_count;
        options.prior = warm->prior;
        options.prior_count = warm->prior_count;
    }
    for (uint32_t c = 0; c < TT_TUNER_CLASSES && spec->method == TT_RECONFIG_CHECKPOINT; c++)
        options.switch_s_prior[c] = RESTART_PRIOR_S;
    tr->proposed_left_s = NAN;
    tt_tuner_callbacks callbacks = {tr, on_window, on_proposal, on_event};
    return tt_tuner_open(&tr->job->space, tr->estimator, &options, &callbacks, &tr->tuner, err);
}

// Where measurements take a while to come, the tuner lives in the past: what is not there yet has
// not taken longer. Never before the last switch, and never back.
static double
tuner_now(tti_training *tr)
{
    const tti_runtime *rt = tr->rt;
    uint64_t measured_ns = tti_runtime_measured_ns(rt), begin_ns = rt->start_ns + tr->paused_ns;
    if (measured_ns > begin_ns)
        tr->tuner_s = fmax(tr->tuner_s, (double)(measured_ns - begin_ns) * 1e-9);
    return tr->tuner_s;
}

tt_status
tti_training_step_tuner(tti_training *tr, tt_error *err)
{
    tti_runtime *rt = tr->rt;
    uint64_t adopted = UINT64_MAX;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!rt->newest->view->is_gone[n])
            adopted =
                TT_MIN(adopted,
                       tt_load_acquire(
                           &rt->standings[n].adopted_generation)); // released in tti_node_adopt
    int moving = tr->transition.active || !tti_runtime_settled(rt);
    const tt_ps_table *table = &tr->job->table;
    tt_tuner_view view = {.now_s = tuner_now(tr),
                          .generation = adopted,
                          .in_transition = moving,
                          .iterations = tr->iterations,
                          .step =
                              tt_ps_learning_rate(table, tr->iterations) / table->learning_rate};
    tt_tuner_action action;
    TT_TRY(tt_tuner_step(tr->tuner, &view, &action, err));
    if (action.kind != TT_TUNER_SWITCH || moving)
        return TT_OK;
    int refused;
    TT_TRY(tti_training_switch(tr, &action.setting, action.setting_id, 0, &refused, err));
    if (refused == TTI_SWITCH_LATER)
        return TT_OK; // it is proposed again
    if (refused) {
        tt_tuner_refused(tr->tuner, tti_training_now(tr), err->what);
        tti_training_event(tr, "warning", "setting %u is refused: %s", action.setting_id,
                           err->what);
    } else {
        // A restart has put another runtime in the place of rt.
        tr->tuner_s = tti_training_now(tr);
        tt_tuner_applied(tr->tuner, tr->rt->newest->view->generation, tr->tuner_s, tr->iterations);
    }
    return TT_OK;
}
