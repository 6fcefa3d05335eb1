// What the manager knows: tried settings, their rows in the process, posteriors.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

// The user chose what can change statistics; windows cannot tell whether leaving that costs
// iterations. Who leaves it must win this many s.d. of the rate more in time.
static const double STATISTICS_CAUTION = 1;
// Of the noise of windows: new against old ones.
static const double NEWER = 0.1;
static const double STAGE_MERGE = 0.1, REFIT_GROWTH = 1.1;
enum { REFIT_ALWAYS_ROWS = 30, REFIT_EVALUATIONS = 40 };
// Pushes beyond one a worker in a window in which a push brings several iterations: all workers
// must have been heard, or the sum of their paces lacks some.
enum { PUSHES_MORE = 4 };

// Log of seconds per iteration, but for a constant, before anything is measured. Where workers are
// the bottleneck it is as 1 / workers, where servers are as 1 / servers; which of them it is, is
// not known beforehand. Merged iterations share a pull and a push, which take what a worker does
// not compute of its cycle, as the start setting's first window tells. About half of each is
// believed: the process has what is left to learn.
static double
trend_of(const tt_tuner *t, const tti_tried *x, uint32_t workers)
{
    const uint32_t nodes = t->options.nodes;
    const uint32_t servers = nodes > workers ? nodes - workers : 1; // that serve alone
    const double waits = isfinite(t->busy) ? 1 - t->busy : 0;
    return -0.5 * log(TT_MAX(workers, 1u)) - 0.25 * log(servers) - 0.5 * waits * log(x->merged);
}

static tt_knob_statistics
statistics_of(const tt_tuner *t, uint32_t dim)
{
    return t->space->knob[t->search.knob[dim]].knob->changes_statistics;
}

// As tti_tuner_describe lists them.
void
tti_tuner_tell_lossy(const tt_tuner *t)
{
    uint32_t lossy = 0, at = 1; // the first is about workers
    for (uint32_t d = 0; d < t->search.dims && at < TT_EST_FEATURES_MAX; d++)
        if (statistics_of(t, d) != TT_KNOB_TIME_ONLY)
            lossy |= (uint32_t)(statistics_of(t, d) == TT_KNOB_LOSSY) << at++;
    tt_estimator_lossy(t->estimator, lossy);
}

static void
describe(const tt_tuner *t, tti_tried *out)
{
    const tt_tuner_options *o = &t->options;
    const tt_setting *setting = &out->setting;
    uint32_t workers = o->workers_of != NULL ? o->workers_of(o->callback_self, setting) : o->nodes;
    out->feature[out->feature_count++] = o->nodes > 0 ? (double)workers / o->nodes : 1;
    for (uint32_t d = 0; d < t->search.dims; d++)
        if (statistics_of(t, d) != TT_KNOB_TIME_ONLY && out->feature_count < TT_EST_FEATURES_MAX)
            out->feature[out->feature_count++] = out->x[d];
    out->workers = o->bulk_synchronous ? 1 : TT_MAX(workers, 1u);
    uint32_t merged = o->merged_of != NULL ? o->merged_of(o->callback_self, setting) : 1;
    out->merged = TT_MAX(merged, 1u);
    out->trend = tti_tuner_follows(t, TT_TUNER_RULE_TREND) ? trend_of(t, out, workers) : 0;
    out->delay = (double)out->workers * out->merged;
    uint32_t full = o->window > 0 ? o->window : tt_est_full_window(out->workers);
    full = TT_MAX(full, tt_est_time_window(out->workers));
    uint32_t heard = (out->workers + PUSHES_MORE) * out->merged;
    out->full_window = out->merged > 1 ? TT_MAX(full, heard) : full;
}

void
tti_tuner_describe(const tt_tuner *t, const tt_setting *setting, tti_tried *out)
{
    *out = (tti_tried){.setting = *setting, .row = -1, .lag = NAN};
    tt_search_encode(&t->search, setting, out->x);
    describe(t, out);
}

void
tti_tuner_describe_at(const tt_tuner *t, const double *x, tti_tried *out)
{
    *out = (tti_tried){.row = -1, .lag = NAN};
    memcpy(out->x, x, t->search.dims * sizeof *x);
    tt_search_decode(&t->search, x, &out->setting);
    describe(t, out);
}

static void
set_trend(const tt_tuner *t, const tt_setting *setting, double *trend)
{
    tti_tried described;
    tti_tuner_describe(t, setting, &described);
    *trend = described.trend;
}

void
tti_tuner_trend_changed(tt_tuner *t)
{
    TT_ASSERT(tt_gp_rows(t->gp) == 0);
    set_trend(t, &t->own.setting, &t->own.trend);
    for (size_t i = 0; i < t->tried_count; i++)
        set_trend(t, &t->tried[i].setting, &t->tried[i].trend);
    for (uint32_t i = 0; i < t->prior_count; i++)
        set_trend(t, &t->prior[i].told.setting, &t->prior[i].trend);
}

uint32_t
tti_tuner_adopt(tt_tuner *t, const tt_setting *setting)
{
    for (uint32_t i = 0; i < t->tried_count; i++)
        if (tt_setting_equal(&t->tried[i].setting, setting))
            return i;
    void *tried = t->tried, *taken = t->taken;
    tt_status grown = tt_mem_grow(&tried, &t->tried_capacity, t->tried_count, sizeof *t->tried);
    t->tried = tried;
    if (grown == TT_OK)
        grown = tt_mem_grow(&taken, &t->taken_capacity, t->tried_count, sizeof *t->taken);
    t->taken = taken;
    if (grown != TT_OK)
        return TTI_TUNER_NOBODY;
    tti_tuner_describe(t, setting, &t->tried[t->tried_count]);
    t->taken[t->tried_count] = *setting;
    return (uint32_t)t->tried_count++;
}

tt_status
tti_tuner_add_row(tt_tuner *t, const tti_measured *m, tt_error *err)
{
    tti_tried *s = &t->tried[t->current];
    if (!m->broken_off)
        t->window_var += (t->window_var > 0 ? NEWER : 1) * (m->var - t->window_var);
    if (s->abandoned && !m->broken_off && s->row >= 0) {
        // Broken off for being slow, which may have been bad luck; this window takes its place.
        s->row_weight = 0;
        s->row_windows = 0;
        s->row_stage = m->stage;
    }
    if (s->row >= 0 && fabs(m->stage - s->row_stage) <= STAGE_MERGE) {
        double total = s->row_weight + m->weight, share = m->weight / total;
        s->log_t += share * (m->log_t - s->log_t);
        s->row_weight = total;
        s->row_windows++;
        // var is that of the newest window; all of them together know it better by their number.
        tt_gp_row row = {s->row_stage, s->log_t - s->trend, m->var * m->weight / total,
                         s->row_windows};
        return tt_gp_replace(t->gp, (uint32_t)s->row, &row, err);
    }
    tt_gp_row row = {m->stage, m->log_t - s->trend, m->var, 1};
    TT_TRY(tt_gp_add(t->gp, s->x, &row, err));
    s->row = (int)tt_gp_rows(t->gp) - 1;
    s->row_weight = m->weight;
    s->row_stage = m->stage;
    s->row_windows = 1;
    s->log_t = m->log_t;
    return TT_OK;
}

tt_status
tti_tuner_refit(tt_tuner *t, tt_error *err)
{
    TT_TRY(tti_tuner_prior_enter(t, err));
    uint32_t rows = tt_gp_rows(t->gp);
    if (rows <= REFIT_ALWAYS_ROWS || rows > REFIT_GROWTH * t->fit_rows) {
        t->fit_rows = rows;
        return tt_gp_fit(t->gp, REFIT_EVALUATIONS, err);
    }
    return tt_gp_update(t->gp, err);
}

// Measured on one core at 11 knobs: 1.2 ms at 5 rows, 2.3 ms at 25, 3.4 ms at 45, 5.4 ms at 85.
double
tti_tuner_fit_seconds(const tt_tuner *t)
{
    double rows = tt_gp_rows(t->gp) / 50.0;
    return 1e-3 + 2.4e-3 * rows + 0.2e-3 * rows * rows;
}

double
tti_tuner_log_rate(const tt_tuner *t, const tti_tried *setting, uint32_t id, double *sd)
{
    double mean = 0, spread = 0, moved = 0, size = 0;
    if (sd != NULL)
        *sd = 0;
    if (!tti_tuner_follows(t, TT_TUNER_RULE_RATE))
        return 0;
    tt_estimator_log_rate(t->estimator, id, setting->feature, setting->feature_count, &mean,
                          &spread);
    mean = isfinite(mean) ? mean : 0;
    spread = isfinite(spread) ? spread : 0;
    if (sd != NULL)
        *sd = spread;
    const tti_tried *start = &t->own; // what the user chose, wherever a warm start began
    for (uint32_t i = 0; i < setting->feature_count; i++) {
        double difference = setting->feature[i] - start->feature[i];
        moved += difference * difference;
        size += setting->feature[i] * setting->feature[i];
    }
    // s.d. of the rate's difference to the start setting: of the features in which they differ.
    return mean - STATISTICS_CAUTION * spread * (size > 0 ? sqrt(moved / size) : 0);
}

void
tti_tuner_log_t(const tt_tuner *t, const tti_tried *s, double *mean, double *sd)
{
    double stage = tt_estimator_stage(t->estimator), var;
    tt_gp_predict(t->gp, s->x, isfinite(stage) ? stage : 0, mean, &var);
    *mean += s->trend;
    *sd = sqrt(var);
}

double
tti_tuner_noise_var(const tt_tuner *t)
{
    return tti_tuner_follows(t, TT_TUNER_RULE_NOISE) ? tt_gp_noise_var(t->gp) + t->window_var : 0;
}

uint32_t
tti_tuner_best_known(const tt_tuner *t, double stage, double windows, double by_s)
{
    uint32_t best = TTI_TUNER_NOBODY;
    double least = INFINITY;
    tt_gp_slice *slice = NULL;
    if (t->gp == NULL || tt_gp_slice_open(t->gp, stage, NULL, &slice, NULL) != TT_OK)
        return best;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        const tti_tried *s = &t->tried[i];
        if (s->row < 0 || s->pace.n < windows || s->seen_s > by_s || tti_tuner_is_out(t, s) ||
            !tti_tuner_is_borne(t, s))
            continue;
        double mean = tt_gp_slice_mean(slice, s->x) + s->trend;
        mean -= tti_tuner_log_rate(t, s, i, NULL);
        if (mean < least) {
            least = mean;
            best = i;
        }
    }
    tt_gp_slice_close(slice);
    return best;
}

uint32_t
tti_tuner_incumbent(const tt_tuner *t, double stage)
{
    const uint32_t best = tti_tuner_best_known(t, stage, 0, INFINITY);
    return best != TTI_TUNER_NOBODY ? best : 0;
}
