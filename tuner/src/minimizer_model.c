// The model behind ask and tell: a Gaussian process over warped values, and the setting with the
// highest expected improvement under it.
#include "minimizer_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVALUATIONS_MAX = 90, EVALUATIONS_MIN = 4, WARP_ROWS_MIN = 8, ANCHORS = 5 };
enum { SAMPLE_EVERY = 2, SAMPLE_STEPS_MAX = 10 };
// Evaluations of the posterior that a fit may take, times rows cubed: about 0.1 s at 500 rows.
static const double FIT_WORK = 6e8;
static const double INTERVAL_80 = 1.2815515655446004;
// Priors for functions that may be without any noise and of any height. What a job measures is
// known better, and the online tuner's are narrower. The constant keeps what was not looked at
// from seeming as good as the many settings around the best.
static const double SIGNAL_SD = 2, NOISE_SD = 3, MEAN_VAR = 3;
// With longer length scales few results seem to tell all, and the second best of two valleys is
// looked at alone. Shorter ones of bools and enums leave little that one value tells of another.
static const double LENGTH_MEDIAN = 0.43, LENGTH_GROWTH = 0.25, LENGTH_SD = 0.6;
static const double MISMATCH_MEDIAN = 1.2;
// Most of what one tunes has a valley as wide as its ranges, which few results show long before
// they show its bottom. Of the log of its variance.
static const double TREND_MEAN = -2, TREND_SD = 2;
// A warped minimum is found less exactly: a straight line must be clearly worse. Above 1 the worst
// values would be drawn apart.
static const double LAMBDA_SD = 0.2;

// ---- rows ------------------------------------------------------------------------------------

typedef struct row_set {
    uint32_t count;
    double *y; // warped; of a setting that only failed: the worst of the others
    double worst, variance;
} row_set;

static int
has_y(const tti_minimizer_row *row)
{
    return row->evaluations > 0;
}

// Warped values of all rows.
static void
warp_rows(const tt_minimizer *o, const tti_warp *warp, row_set *set)
{
    double mean = 0, squares = 0;
    uint32_t measured = 0;
    set->count = (uint32_t)o->row_count;
    set->worst = -INFINITY;
    for (size_t i = 0; i < o->row_count; i++)
        if (has_y(&o->rows[i])) {
            set->y[i] = tti_warp_forward(warp, o->rows[i].y);
            set->worst = fmax(set->worst, set->y[i]);
            mean += set->y[i];
            measured++;
        }
    mean /= measured;
    for (size_t i = 0; i < o->row_count; i++) {
        if (!has_y(&o->rows[i]))
            set->y[i] = set->worst;
        squares += (set->y[i] - mean) * (set->y[i] - mean);
    }
    set->variance = squares / TT_MAX(set->count - 1, 1u);
}

static double
log_slopes(const tt_minimizer *o, const tti_warp *warp)
{
    double sum = 0;
    for (size_t i = 0; i < o->row_count; i++)
        if (has_y(&o->rows[i]))
            sum += tti_warp_log_slope(warp, o->rows[i].y);
    return sum;
}

static tt_gp_row
gp_row(const tt_minimizer *o, const tti_warp *warp, const row_set *set, size_t i)
{
    const tti_minimizer_row *row = &o->rows[i];
    if (!has_y(row)) // known to be bad, not how bad
        return (tt_gp_row){.y = set->y[i], .noise_var = set->variance, .repeats = 1};
    double slope = exp(tti_warp_log_slope(warp, row->y));
    double noise = row->noise_var > 0 ? row->noise_var * slope * slope : 0;
    return (tt_gp_row){.y = set->y[i], .noise_var = noise, .repeats = row->evaluations};
}

// ---- fit -------------------------------------------------------------------------------------

static tt_status
open_gp(tt_minimizer *o, uint64_t seed, tt_error *err)
{
    tt_gp_options options = {.model = TT_GP_TIME,
                             .dims = o->search.dims,
                             .seed = seed,
                             .signal_sd = SIGNAL_SD,
                             .noise_mean = log(1e-6),
                             .noise_sd = NOISE_SD,
                             .noise_min = log(1e-10),
                             .length_median = LENGTH_MEDIAN,
                             .length_growth = LENGTH_GROWTH,
                             .length_sd = LENGTH_SD,
                             .mismatch_median = MISMATCH_MEDIAN,
                             .mean_var = MEAN_VAR,
                             .trend_mean = TREND_MEAN,
                             .trend_sd = TREND_SD};
    for (uint32_t d = 0; d < o->search.dims; d++) {
        tt_knob_kind kind = o->space->knob[o->search.knob[d]].knob->kind;
        options.kind[d] =
            kind == TT_KNOB_BOOL || kind == TT_KNOB_ENUM ? TT_GP_MISMATCH : TT_GP_LINE;
    }
    return tt_gp_open(&options, &o->gp, err);
}

// The process with these rows, and nothing else of what it was told before.
static tt_status
begin_gp(tt_minimizer *o, const tti_warp *warp, const row_set *set, tt_error *err)
{
    const uint64_t seed = o->options.seed + o->asked_count;
    if (o->gp == NULL)
        TT_TRY(open_gp(o, seed, err));
    else
        tt_gp_restart(o->gp, seed);
    for (size_t i = 0; i < o->row_count; i++) {
        double x[TT_KNOBS_MAX];
        tt_gp_row row = gp_row(o, warp, set, i);
        tt_search_encode(&o->search, &o->rows[i].setting, x);
        TT_TRY(tt_gp_add(o->gp, x, &row, err));
    }
    return TT_OK;
}

static uint32_t
fit_evaluations(size_t rows)
{
    double n = (double)rows, affordable = FIT_WORK / (n * n * n);
    return (uint32_t)TT_MAX((double)EVALUATIONS_MIN, TT_MIN((double)EVALUATIONS_MAX, affordable));
}

// A step takes some four evaluations of the posterior. None where they take as long as the fit: so
// many results tell the hyperparameters.
static uint32_t
sample_steps(size_t rows)
{
    const uint32_t evaluations = fit_evaluations(rows);
    return evaluations < 2 * EVALUATIONS_MIN ? 0
                                             : TT_MIN(evaluations / 4, (uint32_t)SAMPLE_STEPS_MAX);
}

static tt_status
fit(tt_minimizer *o, int learn, tt_gp *gp, tt_error *err)
{
    if (o->memory.fitted && !learn)
        return tt_gp_set_params(gp, &o->memory.params, err);
    if (o->memory.fitted)
        tt_gp_start_at(gp, &o->memory.params);
    TT_TRY(tt_gp_fit(gp, fit_evaluations(o->row_count), err));
    tt_gp_get_params(gp, &o->memory.params);
    o->memory.fitted = 1;
    return TT_OK;
}

// The warping of the highest density, hyperparameters as they are; a straight line is preferred.
static void
choose_warp(tt_minimizer *o, const tt_gp *gp, const double *ascending, uint32_t count, row_set *set)
{
    static const double shares[] = {0.1, 0.25, 0.5};
    tt_minimizer_memory *m = &o->memory;
    double highest = -INFINITY;
    for (size_t s = 0; s < TT_COUNT_OF(shares); s++)
        for (int step = -8; step <= 4; step++) {
            tti_warp warp = {.lambda = step * 0.25};
            tti_warp_suit(&warp, ascending, count, shares[s]);
            warp_rows(o, &warp, set);
            double off = (warp.lambda - 1) / LAMBDA_SD;
            double density = tt_gp_log_density(gp, set->y) + log_slopes(o, &warp) - 0.5 * off * off;
            if (density > highest) {
                highest = density;
                m->lambda = warp.lambda;
                m->share = shares[s];
            }
        }
}

static int
ascend(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tt_status
fit_warped(tt_minimizer *o,
           int learn,
           row_set *set,
           double *ascending,
           tti_minimizer_model *out,
           tt_error *err)
{
    uint32_t count = 0;
    for (size_t i = 0; i < o->row_count; i++)
        if (has_y(&o->rows[i]))
            ascending[count++] = o->rows[i].y;
    qsort(ascending, count, sizeof *ascending, ascend);
    for (int round = 0; round < 2; round++) {
        tt_minimizer_memory before = o->memory;
        out->warp.lambda = before.lambda;
        tti_warp_suit(&out->warp, ascending, count, before.share);
        warp_rows(o, &out->warp, set);
        TT_TRY(begin_gp(o, &out->warp, set, err));
        TT_TRY(fit(o, learn, o->gp, err));
        if (!learn || count < WARP_ROWS_MIN || round > 0)
            break;
        choose_warp(o, o->gp, ascending, count, set);
        if (o->memory.lambda == before.lambda && o->memory.share == before.share)
            break;
    }
    return TT_OK;
}

void
tti_minimizer_expect(const tt_minimizer *o,
                     const tti_minimizer_model *model,
                     const tt_setting *setting,
                     double *mean,
                     double *sd)
{
    double x[TT_KNOBS_MAX], var;
    tt_search_encode(&o->search, setting, x);
    tt_gp_slice_eval(model->slice, x, 1, mean, &var);
    *sd = sqrt(fmax(var, 0));
}

double
tti_minimizer_chance(const tt_minimizer *o,
                     const tti_minimizer_model *model,
                     const tt_setting *setting)
{
    double mean, sd;
    tti_minimizer_expect(o, model, setting, &mean, &sd);
    return tt_ei_phi((model->best - mean) / fmax(sd, 1e-300));
}

// The measured setting that the model expects least of.
static void
find_best(const tt_minimizer *o, tti_minimizer_model *model)
{
    model->best = INFINITY;
    for (size_t i = 0; i < o->row_count; i++) {
        double x[TT_KNOBS_MAX], mean;
        if (!has_y(&o->rows[i]))
            continue;
        tt_search_encode(&o->search, &o->rows[i].setting, x);
        tt_gp_slice_eval(model->slice, x, 1, &mean, NULL);
        if (mean < model->best) {
            model->best = mean;
            model->best_i = (uint32_t)i;
        }
    }
}

// Where an answer is still out, the model is told what it expects there, so that the next proposal
// goes elsewhere (Ginsbourger, Le Riche & Carraro 2010: the kriging believer). That changes no
// mean, so all can be read off before the first is told.
static tt_status
believe_pending(const tt_minimizer *o, tti_minimizer_model *model, tt_error *err)
{
    int any = 0;
    for (size_t i = 0; i < o->asked_count; i++) {
        double x[TT_KNOBS_MAX], mean, sd;
        if (o->asked[i].told)
            continue;
        tti_minimizer_expect(o, model, &o->asked[i].setting, &mean, &sd);
        tt_search_encode(&o->search, &o->asked[i].setting, x);
        TT_TRY(tt_gp_add(o->gp, x, &(tt_gp_row){.y = mean}, err));
        any = 1;
    }
    if (!any)
        return TT_OK;
    TT_TRY(tt_gp_update(o->gp, err));
    tt_gp_slice_close(model->slice);
    model->slice = NULL;
    return tt_gp_slice_open(o->gp, 0, NULL, &model->slice, err);
}

tt_status
tti_minimizer_model_open(tt_minimizer *o, int learn, tti_minimizer_model *out, tt_error *err)
{
    *out = (tti_minimizer_model){.slice = NULL};
    row_set set = {.y = tt_mem_zalloc_vector(2 * o->row_count, sizeof *set.y)};
    if (set.y == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for %zu results",
                            o->row_count);
    tt_status status = fit_warped(o, learn, &set, set.y + o->row_count, out, err);
    tt_mem_free(set.y);
    // Every other proposal is made under hyperparameters drawn from their posterior instead of the
    // most probable ones. Where those are wrong, which few results cannot tell, they would be wrong
    // again and again, for what they take for hopeless is never looked at.
    const uint32_t steps =
        learn && o->asked_count % SAMPLE_EVERY == 0 ? sample_steps(o->row_count) : 0;
    if (status == TT_OK && steps > 0)
        status = tt_gp_sample(o->gp, steps, o->asked_count, err);
    if (status == TT_OK)
        status = tt_gp_slice_open(o->gp, 0, NULL, &out->slice, err);
    if (status == TT_OK) {
        find_best(o, out);
        status = believe_pending(o, out, err);
    }
    if (status != TT_OK)
        tti_minimizer_model_close(out);
    return status;
}

void
tti_minimizer_model_close(tti_minimizer_model *model)
{
    tt_gp_slice_close(model->slice);
    *model = (tti_minimizer_model){.slice = NULL};
}

// ---- expected improvement --------------------------------------------------------------------

typedef struct acquisition {
    tt_gp_slice *slice;
    double best, noise_var;
    uint32_t dims;
} acquisition;

static void
score(void *self, const double *x, uint32_t count, double *out)
{
    acquisition *a = self;
    double mean[64], var[64];
    for (uint32_t at = 0; at < count; at += 64) {
        uint32_t n = TT_MIN(count - at, 64u);
        tt_gp_slice_eval(a->slice, x + (size_t)at * a->dims, n, mean, var);
        for (uint32_t i = 0; i < n; i++)
            out[at + i] =
                tt_ei_log(mean[i], tt_ei_told(var[i], a->noise_var, NULL), a->best, NULL, NULL);
    }
}

static double
gradient(void *self, const double *x, double *grad)
{
    acquisition *a = self;
    double mean, var, by_mean, by_told, by_var, d_mean[TT_KNOBS_MAX], d_var[TT_KNOBS_MAX];
    tt_gp_slice_gradient(a->slice, x, &mean, &var, d_mean, d_var);
    const double told = tt_ei_told(var, a->noise_var, &by_var);
    const double value = tt_ei_log(mean, told, a->best, &by_mean, &by_told);
    for (uint32_t d = 0; d < a->dims; d++)
        grad[d] = by_mean * d_mean[d] + by_told * by_var * d_var[d];
    return value;
}

// All settings that must not be proposed, told and asked; NULL without memory.
static tt_setting *
list_taken(const tt_minimizer *o, uint32_t *count)
{
    tt_setting *taken = tt_mem_alloc((o->row_count + o->asked_count) * sizeof *taken);
    *count = 0;
    for (size_t i = 0; i < o->row_count && taken != NULL; i++)
        taken[(*count)++] = o->rows[i].setting;
    for (size_t i = 0; i < o->asked_count && taken != NULL; i++)
        if (!o->asked[i].told)
            taken[(*count)++] = o->asked[i].setting;
    return taken;
}

// The measured settings of the least y, best first.
static uint32_t
list_anchors(const tt_minimizer *o, tt_setting *anchors)
{
    double y[ANCHORS];
    uint32_t count = 0;
    for (size_t i = 0; i < o->row_count; i++) {
        const tti_minimizer_row *row = &o->rows[i];
        if (!has_y(row) || (count == ANCHORS && row->y >= y[ANCHORS - 1]))
            continue;
        uint32_t at = count < ANCHORS ? count++ : ANCHORS - 1;
        for (; at > 0 && y[at - 1] > row->y; at--) {
            y[at] = y[at - 1];
            anchors[at] = anchors[at - 1];
        }
        y[at] = row->y;
        anchors[at] = row->setting;
    }
    return count;
}

static void
describe(const tt_minimizer *o, const tti_minimizer_model *model, tt_minimizer_proposal *out)
{
    double mean, sd;
    tti_minimizer_expect(o, model, &out->setting, &mean, &sd);
    out->predicted = tti_warp_inverse(&model->warp, mean);
    out->low = tti_warp_inverse(&model->warp, mean - INTERVAL_80 * sd);
    out->high = tti_warp_inverse(&model->warp, mean + INTERVAL_80 * sd);
    (void)snprintf(out->reason, sizeof out->reason,
                   "highest expected improvement: %.4g expected (80 %%: %.4g to %.4g), below the "
                   "best of %.4g with probability %.2g",
                   out->predicted, out->low, out->high, tti_warp_inverse(&model->warp, model->best),
                   tti_minimizer_chance(o, model, &out->setting));
}

tt_status
tti_minimizer_improve(tt_minimizer *o,
                      tti_minimizer_model *model,
                      tt_minimizer_proposal *out,
                      tt_error *err)
{
    acquisition self = {.slice = model->slice,
                        .best = model->best,
                        .noise_var = tt_gp_noise_var(o->gp),
                        .dims = o->search.dims};
    tt_setting anchors[ANCHORS];
    uint32_t taken_count;
    tt_setting *taken = list_taken(o, &taken_count);
    if (taken == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a proposal");
    tt_search_target target = {&self, score, gradient};
    tt_search_options options = {.seed = o->options.seed * 1000003 + o->asked_count,
                                 .anchors = anchors,
                                 .anchor_count = list_anchors(o, anchors),
                                 .taken = taken,
                                 .taken_count = taken_count};
    tt_search_result found = {.evaluations = 0};
    tt_status status = tt_search_maximize(&o->search, &target, &options, &found, err);
    if (status == TT_OK && found.found[0]) {
        out->phase = TT_MINIMIZER_MODEL;
        out->setting = found.setting[0];
        out->log_ei = found.score[0];
        describe(o, model, out);
    }
    tt_mem_free(taken);
    return status;
}
