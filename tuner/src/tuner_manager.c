// Life of the online manager and what can be asked of it.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

const tti_way *const tti_ways[TTI_WAYS] = {
    [TT_TUNER_MODEL_SUM] = &tti_way_sum,
    [TT_TUNER_MODEL_TIME] = &tti_way_time,
    [TT_TUNER_MODEL_PRODUCT] = &tti_way_product,
    [TT_TUNER_MODEL_PAPER] = &tti_way_paper,
};
static const double switch_prior[TT_TUNER_CLASSES] = {0.002, 0.05, 0.05, 0.1};

static tt_status
check_options(const tt_space *space, const tt_tuner_options *o, tt_error *err)
{
    tt_setting start;
    tt_space_start(space, &start);
    if (!tt_space_valid(space, &start))
        return tt_error_set(err, TT_INVALID, "tuner", "set other start values for the knobs",
                            "the start setting is not a valid setting of the search space");
    if (o->start != NULL && !tt_space_valid(space, o->start))
        return tt_error_set(err, TT_INVALID, "tuner", NULL,
                            "the setting to begin with is not one of the search space");
    if (!(o->guard >= 0 && o->guard < 10))
        return tt_error_set(err, TT_INVALID, "tuner.guard", "10% is the default",
                            "the guard must be from 0 to 10, not %g", o->guard);
    if ((size_t)o->model >= TT_COUNT_OF(tti_ways))
        return tt_error_set(err, TT_INVALID, "tuner.model", NULL, "there is no model %d",
                            (int)o->model);
    if (tti_ways[o->model]->forget == NULL &&
        (o->start != NULL || o->warm_count > 0 || o->prior_count > 0))
        return tt_error_set(err, TT_INVALID, "tuner.model", NULL,
                            "model %s takes nothing of earlier runs", tti_ways[o->model]->name);
    if (tti_ways[o->model]->forget == NULL && o->without != 0)
        return tt_error_set(err, TT_INVALID, "tuner.without", NULL,
                            "model %s has no rules to leave out", tti_ways[o->model]->name);
    if (!(o->budget_s >= 0) || !(o->window_s_min >= 0))
        return tt_error_set(err, TT_INVALID, "tuner", NULL, "times must not be negative");
    return TT_OK;
}

static void
fill_defaults(tt_tuner *t)
{
    tt_tuner_options *o = &t->options;
    o->guard = o->guard > 0 ? o->guard : 0.10;
    o->window_s_min = o->window_s_min > 0 ? o->window_s_min : TT_EST_TIME_SECONDS_MIN;
    for (int c = 0; c < TT_TUNER_CLASSES; c++)
        if (!(o->switch_s_prior[c] > 0))
            o->switch_s_prior[c] = switch_prior[c];
    if (o->nodes == 0 && o->workers_of != NULL)
        o->nodes = o->workers_of(o->callback_self, &t->search.base);
    o->nodes = TT_MAX(o->nodes, 1u);
    o->processors = o->processors > 0 ? o->processors : 2;
}

static tt_status
open_process(tt_tuner *t, tt_error *err)
{
    if (t->search.dims == 0)
        return TT_OK;
    tt_gp_options options = {.model = t->way->model,
                             .dims = t->search.dims,
                             .seed = t->options.seed,
                             .scale = t->way->scale,
                             .scale_rows = t->way->scale_rows,
                             .signal_sd = t->way->signal_sd};
    for (uint32_t d = 0; d < t->search.dims; d++) {
        tt_knob_kind kind = t->space->knob[t->search.knob[d]].knob->kind;
        options.kind[d] =
            kind == TT_KNOB_BOOL || kind == TT_KNOB_ENUM ? TT_GP_MISMATCH : TT_GP_LINE;
    }
    return tt_gp_open(&options, &t->gp, err);
}

tt_status
tt_tuner_open(const tt_space *space,
              tt_estimator *estimator,
              const tt_tuner_options *options,
              const tt_tuner_callbacks *callbacks,
              tt_tuner **out,
              tt_error *err)
{
    *out = NULL;
    TT_TRY(check_options(space, options, err));
    tt_tuner *t = tt_mem_zalloc(1, sizeof *t);
    if (t == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for the tuner");
    t->space = space;
    t->estimator = estimator;
    t->options = *options;
    t->way = tti_ways[options->model];
    if (callbacks != NULL)
        t->callbacks = *callbacks;
    tt_search_space_init(&t->search, space);
    t->search.listed = options->only;
    t->search.listed_count = options->only_count;
    fill_defaults(t);
    const tt_setting *start = options->start != NULL ? options->start : &t->search.base;
    t->busy = NAN;
    t->lag_share = 1;
    tti_tuner_credit_open(t);
    tti_tuner_tell_lossy(t);
    tti_tuner_describe(t, &t->search.base, &t->own);
    t->warm = !tt_setting_equal(start, &t->search.base);
    t->step = 1;
    t->rise.promised = INFINITY;
    t->rise.calm_loss = t->rise.calm_loss_se = NAN;
    t->own_id = t->warm ? TTI_TUNER_NOBODY : 0;
    tt_status status = open_process(t, err);
    if (status == TT_OK)
        status = tti_tuner_prior_open(t, err);
    if (status == TT_OK && tti_tuner_adopt(t, start) == TTI_TUNER_NOBODY)
        status = tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for the tuner");
    // Only valid until open returns.
    if (status == TT_OK)
        t->way->plan(t);
    t->options.warm = NULL;
    t->options.start = NULL;
    t->options.prior = NULL;
    if (status != TT_OK) {
        tt_tuner_close(t);
        return status;
    }
    *out = t;
    return TT_OK;
}

const char *
tt_tuner_model_name(tt_tuner_model model)
{
    return (size_t)model < TT_COUNT_OF(tti_ways) ? tti_ways[model]->name : "unknown";
}

void
tt_tuner_close(tt_tuner *tuner)
{
    if (tuner == NULL)
        return;
    tt_gp_close(tuner->gp);
    tt_mem_free(tuner->tried);
    tt_mem_free(tuner->taken);
    tt_mem_free(tuner->prior);
    tt_mem_free(tuner);
}

void
tt_tuner_reconfigured(
    tt_tuner *tuner, uint32_t from_id, uint32_t to_id, unsigned class_flags, double lost_s)
{
    TT_UNUSED(from_id);
    TT_UNUSED(to_id);
    if (!isfinite(lost_s))
        return;
    unsigned class = class_flags % TT_TUNER_CLASSES;
    tuner->switch_lost_s[class] += fmax(lost_s, 0);
    tuner->switch_count[class]++;
    tuner->lost_s += fmax(lost_s, 0);
}

// ---- inspection ------------------------------------------------------------------------------

uint32_t
tt_tuner_best(const tt_tuner *tuner, tt_setting *out)
{
    uint32_t best = tuner->way->best(tuner);
    *out = tuner->tried[best].setting;
    return best;
}

const tt_setting *
tt_tuner_setting(const tt_tuner *tuner, uint32_t setting_id)
{
    return setting_id < tuner->tried_count ? &tuner->tried[setting_id].setting : NULL;
}

uint32_t
tt_tuner_current(const tt_tuner *tuner, tt_setting *out)
{
    *out = tuner->tried[tuner->current].setting;
    return tuner->current;
}

int
tt_tuner_measured(const tt_tuner *tuner, uint32_t id, tt_tuner_measurement *out)
{
    if (id >= tuner->tried_count)
        return 0;
    const tti_tried *s = &tuner->tried[id];
    const int diverged = s->not_borne > s->borne;
    *out = (tt_tuner_measurement){.setting = s->setting,
                                  .log_s = NAN,
                                  .log_se = NAN,
                                  .windows = s->windows,
                                  .iterations = s->iterations,
                                  .abandoned = s->abandoned,
                                  .refused = s->banned || diverged,
                                  .diverged = diverged};
    tt_estimator_log_rate(tuner->estimator, id, s->feature, s->feature_count, &out->log_rate,
                          &out->log_rate_sd);
    if (s->weight_all > 0) {
        out->log_s = s->log_t_all;
        out->log_se = sqrt(s->var_all);
    }
    return 1;
}

int
tt_tuner_predict(const tt_tuner *tuner, const tt_setting *setting, double *log_mean, double *log_sd)
{
    return tuner->way->predict(tuner, setting, log_mean, log_sd);
}

static double
iteration_seconds(const tt_tuner *tuner, uint32_t id)
{
    double mean, sd;
    if (!tt_tuner_predict(tuner, &tuner->tried[id].setting, &mean, &sd))
        return tuner->tried[id].windows > 0 ? exp(tuner->tried[id].log_t) : NAN;
    return exp(mean);
}

void
tt_tuner_summarize(const tt_tuner *tuner, tt_tuner_summary *out)
{
    tt_setting best;
    *out = (tt_tuner_summary){.phase = tuner->phase,
                              .settings_abandoned = tuner->abandoned,
                              .switches = tuner->switches,
                              .proposals = (uint32_t)tuner->proposals,
                              .start_done = tuner->plan_done,
                              .start_planned = tuner->plan_count,
                              .current_id = tuner->current,
                              .own_id = tuner->own_id,
                              .memory_fails = tuner->memory_fails,
                              .start_s = tuner->phase_s[TT_TUNER_START],
                              .explore_s = tuner->phase_s[TT_TUNER_EXPLORE],
                              .settled_s = tuner->phase_s[TT_TUNER_SETTLED],
                              .lost_s = tuner->lost_s,
                              .drifts = tuner->drifts};
    for (uint32_t i = 0; i < tuner->tried_count; i++)
        out->settings_tried += tuner->tried[i].windows > 0;
    out->best_id = tt_tuner_best(tuner, &best);
    out->ledger_s = tti_tuner_ledger(tuner);
    out->start_iteration_s = iteration_seconds(tuner, 0);
    out->best_iteration_s = iteration_seconds(tuner, out->best_id);
    (void)snprintf(out->note, sizeof out->note, "%s", tuner->note);
}
