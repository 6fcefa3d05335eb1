// What the estimator answers about the whole job: rate, iterations and time left, stage.
#include "tt/estimator.h"
#include "est_robust.h"
#include "est_state.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// A curve of the lowest looks needs so many.
enum { LEAST_TROUGHS = 8 };
// The target is called so from this probability on.
static const double UNREACHABLE = 0.9;

static const tti_method *const methods[] = {
    [TT_EST_POOLED] = &tti_method_pooled,
    [TT_EST_PAPER] = &tti_method_paper,
};

static tt_status
add_families(tt_estimator *est, tt_error *err)
{
    const tt_est_options *options = &est->options;
    tti_families_init(&est->families);
    for (uint32_t c = 0; c < options->curve_count; c++)
        TT_TRY(tti_families_add(&est->families, options->curves[c], "estimator curves", err));
    return TT_OK;
}

tt_status
tt_estimator_open(const tt_est_options *options, tt_estimator **out, tt_error *err)
{
    *out = NULL;
    if (isinf(options->target_loss))
        return tt_error_set(err, TT_INVALID, "estimator target_loss",
                            "give a finite loss, or NAN for a job that ends by its budget",
                            "the target loss must be finite, it is %g", options->target_loss);
    if (!(options->budget_iterations >= 0))
        return tt_error_set(err, TT_INVALID, "estimator budget_iterations",
                            "give a count of iterations, or INFINITY for none",
                            "the iteration budget must be at least 0, it is %g",
                            options->budget_iterations);
    if ((size_t)options->method >= TT_COUNT_OF(methods))
        return tt_error_set(err, TT_INVALID, "estimator method", NULL, "there is no method %d",
                            (int)options->method);
    tt_estimator *est = tt_mem_zalloc(1, sizeof *est);
    if (est) {
        est->recent = tt_mem_zalloc(TTI_RECENT_LOSSES, sizeof *est->recent);
        est->mix = tt_mem_zalloc(1, sizeof *est->mix);
        est->low_mix = tt_mem_zalloc(1, sizeof *est->low_mix);
        est->plateau = tt_mem_zalloc(1, sizeof *est->plateau);
        est->told = tt_mem_zalloc(2, sizeof *est->told);
        est->rate_now = tt_mem_zalloc(1, sizeof *est->rate_now);
    }
    if (!est || !est->recent || !est->mix || !est->low_mix || !est->plateau || !est->told ||
        !est->rate_now) {
        tt_estimator_close(est);
        return tt_error_set(err, TT_NOMEM, "estimator", NULL, "no memory for the estimator");
    }
    est->options = *options;
    if (!(est->options.look_every > 0)) {
        est->options.look_every = TTI_BLOCK_LOSSES;
        est->options.looks_held = 2;
    }
    tt_status status = add_families(est, err);
    if (status != TT_OK) {
        tt_estimator_close(est);
        return status;
    }
    est->method = methods[options->method];
    est->first_loss = NAN;
    est->last_time_s = NAN;
    tti_series_reset(&est->history);
    tti_mix_reset(est->mix, &est->families);
    tti_mix_reset(est->low_mix, &est->families);
    tti_rate_init(&est->rate);
    *out = est;
    return TT_OK;
}

void
tt_estimator_close(tt_estimator *est)
{
    if (!est)
        return;
    tti_cycles_fini(&est->cycles);
    tt_mem_free(est->recent);
    tt_mem_free(est->mix);
    tt_mem_free(est->low_mix);
    tt_mem_free(est->plateau);
    tt_mem_free(est->told);
    tt_mem_free(est->rate_now);
    tt_mem_free(est);
}

double
tt_estimator_target_level(const tt_estimator *est)
{
    const int pooled = est->options.method == TT_EST_POOLED;
    return est->options.target_loss + (pooled ? tti_looks_offset(&est->looks) : 0);
}

void
tt_estimator_look(tt_estimator *est, double loss)
{
    est->changes++;
    tti_looks_add(&est->looks, loss);
    tti_troughs_add(&est->troughs, tti_clock_now(est), loss);
}

void
tti_refresh(const tt_estimator *est)
{
    const double target = tt_estimator_target_level(est);
    const uint32_t before = est->mix->blocks;
    tti_mix_sync(est->mix, &est->families, &est->history, target);
    if (est->mix->blocks != before)
        tti_plateau_check(est->plateau, &est->history, target);
}

// Asked for only by answers: after a push the history's are enough.
static void
refresh_low(const tt_estimator *est)
{
    tti_curve_data data;
    if (!tti_mix_is_behind(est->low_mix, est->troughs.count, est->troughs.doublings))
        return;
    tti_troughs_data(&est->troughs, est->options.target_loss, &data);
    tti_mix_learn(est->low_mix, &est->families, &data);
}

// --- rate

void
tt_estimator_lossy(tt_estimator *est, uint32_t features)
{
    est->rate.lossy = features;
    est->changes++;
}

void
tti_current_rate(const tt_estimator *est, tti_rate *out)
{
    *out = est->rate;
    if (est->run.have_evidence)
        tti_rate_update(out, est->run.features, est->run.evidence, est->run.evidence_variance);
}

static const tti_rate_now *
rate_now(const tt_estimator *est)
{
    tti_rate_now *now = est->rate_now;
    if (!now->known || now->changes != est->changes) {
        now->known = 1;
        now->changes = est->changes;
        tti_current_rate(est, &now->rate);
        tti_rate_allowed(&now->rate, now->theta);
        now->noise_width = tti_noise_width(&est->noise);
    }
    return now;
}

void
tt_estimator_log_rate(const tt_estimator *est,
                      uint32_t setting,
                      const double *features,
                      uint32_t feature_count,
                      double *mean,
                      double *sd)
{
    // Settings that agree in every statistical knob have the same rate: the id must not matter.
    TT_UNUSED(setting);
    const tti_rate_now *now = rate_now(est);
    const uint32_t count = TT_MIN(feature_count, (uint32_t)TT_EST_FEATURES_MAX);
    double u[TT_EST_FEATURES_MAX] = {0};
    if (count > 0)
        memcpy(u, features, count * sizeof *u);
    const double nu = tti_noise_ratio(&est->noise, u, TT_MAX(count, now->noise_width));
    tti_rate_predict_allowed(&now->rate, now->theta, u, nu, mean, sd);
}

double
tt_estimator_lag_borne(const tt_estimator *est, double step)
{
    const double HALF_TURN = 3.14159265358979323846;
    const double rate = step * tti_bend_ahead(&est->bend);
    return rate > 0 ? fmax(HALF_TURN / rate - 1, 0) / 2 : INFINITY;
}

int
tt_estimator_trend(const tt_estimator *est, double since, tt_est_trend *out)
{
    double last;
    if (!tti_trend(&est->history, since, &out->slope, &out->slope_se, &last))
        return 0;
    out->gap = last - tt_estimator_target_level(est);
    return 1;
}

// --- iterations and time left

static void
fall_back(const tt_estimator *est, tti_mixture *out)
{
    // ten times what was done so far, give or take a factor of seven
    out->count = 1;
    out->weight[0] = 1;
    out->mean[0] = log(fmax(1000, 10 * (double)est->iterations));
    out->sd[0] = 2;
}

// The loss now, its s.d., from the newest losses and from the line through the newest blocks, if it
// is of one mind with them.
static double
level_now(const tt_estimator *est, double *sd)
{
    double variance, n, line_sd;
    const double recent = tti_recent_loss(est, &variance, &n);
    const tti_fit *line = tti_mix_fit(est->mix, &est->families, &tti_family_locallin);
    *sd = sqrt(variance / n);
    if (line == NULL)
        return recent;
    const double at = tti_family_locallin.predict(line, tti_clock_now(est), &line_sd);
    if (fabs(at - recent) > 3 * hypot(*sd, line_sd) || !(line_sd > 0))
        return recent;
    const double share = *sd * *sd / (*sd * *sd + line_sd * line_sd);
    *sd = *sd * line_sd / hypot(*sd, line_sd);
    return recent + share * (at - recent);
}

// No fall of the loss is to be seen, and the curve has no end in sight either: more than ten times
// as far as it came.
static int
is_plateau(const tt_estimator *est, const tti_mixture *mixture)
{
    return est->plateau->now && (mixture->count == 0 || tti_mixture_quantile(mixture, 0.5, 0, 0) >
                                                            log(10 * (double)est->iterations));
}

static int
pooled_reached(const tt_estimator *est)
{
    return est->under_row >= 2;
}

// Where more than one look in a row must hold the target, iterations until there is another chance
// of that. Near the stable limit of a lag the parameters swing by an angle of pi / (2 lag + 1) an
// iteration (Levin and May, Theor. Population Biology 1976), the loss with a period of 2 lag + 1;
// and a swing is much like the one before it, in which looks as far apart did not hold either.
static double
chance_every(const tt_estimator *est)
{
    const double every = est->options.look_every, SWINGS = 2;
    return est->options.looks_held > 1 ? fmax(every, SWINGS * (2 * est->lag + 1)) : every;
}

// By the course of the losses and the swings about it.
static void
left_by_losses(const tt_estimator *est, tti_mixture *out)
{
    const tti_swings swings = {.sd = tti_swing_sd(&est->swing),
                               .every = est->options.look_every,
                               .row = est->options.looks_held};
    tti_mix_left(est->mix, &est->families, tti_clock_now(est), tt_estimator_target_level(est),
                 &swings, out);
}

// By the slow course of the lowest looks and the swings above it, where enough of them are known.
static void
left_by_looks(const tt_estimator *est, tti_mixture *out)
{
    if (est->troughs.count < LEAST_TROUGHS)
        return;
    refresh_low(est);
    const tti_swings swings = {.above = tti_troughs_above(&est->troughs),
                               .every = chance_every(est),
                               .row = est->options.looks_held};
    tti_mix_left(est->low_mix, &est->families, tti_clock_now(est), est->options.target_loss,
                 &swings, out);
}

// The looks know better. There is no end only where neither sees one.
static void
mixture_left(const tt_estimator *est, int with_looks, tti_mixture *out)
{
    tti_mixture low = {0};
    if (with_looks)
        left_by_looks(est, &low);
    if (low.count == 0 || low.unreachable > UNREACHABLE)
        left_by_losses(est, out);
    if (low.count > 0 && (low.unreachable <= UNREACHABLE || out->unreachable > UNREACHABLE))
        *out = low;
}

static void
answer_by_curves(const tt_estimator *est, int with_looks, tti_answer *a)
{
    const double target = tt_estimator_target_level(est);
    tti_refresh(est);
    mixture_left(est, with_looks, &a->mixture);
    const double unreachable = a->mixture.unreachable;
    if (pooled_reached(est))
        a->flags |= TT_EST_REACHED;
    double sd;
    const double loss = level_now(est, &sd);
    if (loss <= target) {
        a->confidence = tti_normal_cdf((target - loss) / fmax(sd, 1e-300));
        // A doubtful dip under the target is the noise of few losses: the curve knows better.
        if (a->confidence > 0.9 || a->mixture.count == 0) {
            a->kind = TTI_ANSWER_REACHED;
            return;
        }
    }
    if (is_plateau(est, &a->mixture))
        a->flags |= TT_EST_PLATEAU;
    if (unreachable > UNREACHABLE)
        a->flags |= TT_EST_UNREACHABLE;
    if (a->flags & (TT_EST_PLATEAU | TT_EST_UNREACHABLE))
        a->kind = TTI_ANSWER_NEVER;
    if (a->mixture.count == 0) {
        fall_back(est, &a->mixture);
        a->flags |= TT_EST_FALLBACK;
        if (a->kind == TTI_ANSWER_CURVE)
            a->kind = TTI_ANSWER_FALLBACK;
    }
}

static void
pooled_answer(const tt_estimator *est, tti_answer *a)
{
    answer_by_curves(est, 1, a);
}

// The pool learns from every window whatever the method: nothing more to do at its ends.
static void
pooled_window(tt_estimator *est)
{
    TT_UNUSED(est);
}

const tti_method tti_method_pooled = {"pooled", pooled_window, pooled_window, pooled_answer,
                                      pooled_reached};

// By the losses alone where that is asked for, and the method tells it apart; while looks are few
// they say nothing, and both are the same.
static tti_answer
find_answer(const tt_estimator *est, int with_looks)
{
    tti_answer a = {.kind = TTI_ANSWER_CURVE};
    if (isnan(est->options.target_loss)) {
        a.kind = TTI_ANSWER_BUDGET;
        a.flags = TT_EST_NO_TARGET;
        a.budget = fmax(est->options.budget_iterations - (double)est->iterations, 0);
        return a;
    }
    const int apart =
        !with_looks && est->method == &tti_method_pooled && est->troughs.count >= LEAST_TROUGHS;
    tti_told *told = &est->told[apart];
    if (!told->known || told->changes != est->changes) {
        if (apart)
            answer_by_curves(est, 0, &a);
        else
            est->method->answer(est, &a);
        *told = (tti_told){1, est->changes, a};
    }
    return told->answer;
}

int
tt_estimator_reached(const tt_estimator *est)
{
    if (isnan(est->options.target_loss))
        return 0;
    tti_refresh(est);
    return est->method->reached(est);
}

// Quantile p of the answer times exp(shift + N(0, extra_sd^2)).
static double
answer_quantile(const tti_answer *a, double p, double shift, double extra_sd)
{
    switch (a->kind) {
    case TTI_ANSWER_BUDGET:
        return a->budget * exp(shift + extra_sd * tti_normal_quantile(p));
    case TTI_ANSWER_NEVER:
        return INFINITY;
    case TTI_ANSWER_REACHED:
        if (p <= fmax(a->confidence, 0.5))
            return 0;
        // not sure yet: one more block tells
        return TTI_BLOCK_LOSSES * exp(shift);
    case TTI_ANSWER_CURVE:
    case TTI_ANSWER_FALLBACK:
        break;
    }
    return exp(tti_mixture_quantile(&a->mixture, p, shift, extra_sd));
}

static void
tell_remaining(const tt_estimator *est, int with_looks, tt_est_remaining *out)
{
    const tti_answer a = find_answer(est, with_looks);
    out->flags = a.flags;
    out->iterations_p10 = answer_quantile(&a, 0.1, 0, 0);
    out->iterations_median = answer_quantile(&a, 0.5, 0, 0);
    out->iterations_p90 = answer_quantile(&a, 0.9, 0, 0);
    if (a.kind == TTI_ANSWER_BUDGET) {
        out->log_iterations = tti_log_iterations(a.budget);
        out->log_iterations_sd = 0;
    } else if (a.kind == TTI_ANSWER_REACHED) {
        out->log_iterations = 0;
        out->log_iterations_sd = 2 * (1 - a.confidence);
    } else {
        tti_mixture_moments(&a.mixture, &out->log_iterations, &out->log_iterations_sd);
    }
}

void
tt_estimator_remaining(const tt_estimator *est, tt_est_remaining *out)
{
    tell_remaining(est, 1, out);
}

void
tt_estimator_left_by_losses(const tt_estimator *est, tt_est_remaining *out)
{
    tell_remaining(est, 0, out);
}

void
tt_estimator_eta(const tt_estimator *est,
                 double log_t,
                 double log_t_sd,
                 double log_r,
                 double log_r_sd,
                 tt_est_eta *out)
{
    const tti_answer a = find_answer(est, 1);
    // A budget counts iterations as they come: their statistical rate does not matter.
    const int paced = a.kind != TTI_ANSWER_BUDGET;
    const double shift = log_t - (paced ? log_r : 0);
    const double sd = hypot(log_t_sd, paced ? log_r_sd : 0);
    out->flags = a.flags;
    out->seconds_p10 = answer_quantile(&a, 0.1, shift, sd);
    out->seconds_median = answer_quantile(&a, 0.5, shift, sd);
    out->seconds_p90 = answer_quantile(&a, 0.9, shift, sd);
}

double
tt_estimator_stage(const tt_estimator *est)
{
    const double target = tt_estimator_target_level(est), first = est->first_loss;
    if (isnan(target)) {
        const double budget = est->options.budget_iterations;
        if (isinf(budget))
            return 0;
        return budget > 0 ? tti_clamp((double)est->iterations / budget, 0, 1.2) : 1.2;
    }
    const double loss = tt_estimator_loss(est);
    if (isnan(loss) || isnan(first))
        return 0;
    if (first <= target)
        return loss <= target ? 1 : 0;
    // logs where they exist, else the plain share of the way
    const double c = target > 0 && loss > 0 && first > 0
                         ? (log(first) - log(loss)) / (log(first) - log(target))
                         : (first - loss) / (first - target);
    return tti_clamp(c, 0, 1.2);
}

double
tt_estimator_loss(const tt_estimator *est)
{
    double variance, n;
    return tti_recent_loss(est, &variance, &n);
}

double
tt_estimator_last_loss(const tt_estimator *est)
{
    return est->recent_count > 0
               ? est->recent[(est->recent_next + TTI_RECENT_LOSSES - 1) % TTI_RECENT_LOSSES]
               : NAN;
}

uint64_t
tt_estimator_iterations(const tt_estimator *est)
{
    return est->iterations;
}

tt_est_method
tt_estimator_method(const tt_estimator *est)
{
    return est->options.method;
}

const char *
tt_est_method_name(tt_est_method method)
{
    return (size_t)method < TT_COUNT_OF(methods) ? methods[method]->name : "unknown";
}

uint32_t
tt_estimator_families(const tt_estimator *est, tt_est_family_state *out, uint32_t capacity)
{
    const uint32_t count = TT_MIN(capacity, est->families.count);
    tti_refresh(est);
    for (uint32_t f = 0; f < count; f++) {
        const tti_family *family = est->families.list[f];
        const tti_fit *fit = &est->mix->fits[f];
        out[f] = (tt_est_family_state){family->name, est->mix->weight[f], NAN, NAN, NAN};
        if (!fit->ok)
            continue;
        out[f].floor = tti_family_floor(family, fit);
        if (isnan(est->options.target_loss))
            continue;
        tti_left left;
        tti_family_inverse(family, fit, tti_clock_now(est), tt_estimator_target_level(est), &left);
        out[f].log_iterations = left.log_mean;
        out[f].log_iterations_sd = left.log_sd;
    }
    return count;
}
