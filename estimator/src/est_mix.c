#include "est_mix.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// No real curve is of a family's form, and its fit does not know. Errors of times that it foretold
// are remembered over some ten blocks, none counts more than ERROR_MOST, and they have a share of
// what there is by chance even if they were small so far. They are errors of foretelling as far as
// the way was long, and grow with its logarithm.
static const double ERROR_KEPT = 0.9, ERROR_MOST = 1, ERROR_LEAST = 0.1;
// What noise gives this s.d. tells half as much as what has none.
static const double ERROR_NOISE = 0.2;
// What all told together is stretched by how far out of it the times came; narrowed by little, for
// curves turn corners.
static const double STRETCH_LEAST = 0.9;
static const double REACH_LEAST = 0.3, REACH_MOST = 3;
// Forecasts of neighbouring blocks by one fit err together: they count less.
static const double TRUST = 0.7;
enum { LEAST_KNOWN = 4 }; // blocks

void
tti_mix_reset(tti_mix *mix, const tti_families *families)
{
    memset(mix, 0, sizeof *mix);
    double total = 0;
    for (uint32_t f = 0; f < families->count; f++)
        total += families->list[f]->prior;
    for (uint32_t f = 0; f < families->count; f++)
        mix->weight[f] = families->list[f]->prior / total;
}

// Of times as long as the way gone.
static double
misfit_of(const tti_mix *mix, uint32_t f)
{
    return sqrt(fmax(mix->error_squares[f], 0) + ERROR_LEAST * ERROR_LEAST);
}

// The ring must reach back to half of the way, however often a fit is made.
static void
keep(tti_mix *mix, const tti_curve_data *data, uint32_t count)
{
    const uint32_t newest =
        mix->older_blocks[(mix->older_next + TTI_MIX_OLDER - 1) % TTI_MIX_OLDER];
    if (count < newest + TT_MAX(count / 16, 1u))
        return;
    memcpy(mix->older[mix->older_next], mix->fits, sizeof mix->fits);
    memcpy(mix->older_weight[mix->older_next], mix->weight, sizeof mix->weight);
    mix->older_blocks[mix->older_next] = count;
    mix->older_clock[mix->older_next] = data->x[count - 1];
    mix->older_next = (mix->older_next + 1) % TTI_MIX_OLDER;
}

// The place of the newest fits that knew half of `count` blocks at most; -1: none.
static int
known_at_half(const tti_mix *mix, uint32_t count)
{
    int best = -1;
    for (int i = 0; i < TTI_MIX_OLDER; i++) {
        const uint32_t blocks = mix->older_blocks[i];
        if (blocks >= LEAST_KNOWN && blocks <= count / 2 &&
            (best < 0 || blocks > mix->older_blocks[best]))
            best = i;
    }
    return best;
}

// Noise explains the variance `noise` of an error.
static void
note_error(tti_mix *mix, uint32_t f, double error, double noise)
{
    const double told = 1 / (1 + pow(noise / (ERROR_NOISE * ERROR_NOISE), 2));
    const double gain = (1 - ERROR_KEPT) * told;
    mix->error_squares[f] += gain * (error * error - noise - mix->error_squares[f]);
}

// How far `left` looks ahead, beside the half of the way that errors are known of.
static double
reach_of(const tti_left *left, double now)
{
    const double ahead = log1p(exp(left->log_mean) / fmax(now, 1)) / log(2);
    return tti_clamp(ahead, REACH_LEAST, REACH_MOST);
}

// What `fits`, weighed so, say together.
static void
tell(const tti_families *families,
     const tti_fit *fits,
     const double *weight,
     double now,
     double target,
     const tti_swings *swings,
     tti_mixture *out)
{
    memset(out, 0, sizeof *out);
    double total = 0, reachable = 0;
    for (uint32_t f = 0; f < families->count; f++) {
        tti_left left = {0};
        if (!fits[f].ok || !(weight[f] > 0))
            continue;
        tti_family_inverse(families->list[f], &fits[f], now, target, &left);
        if (left.ok && (swings->sd > 0 || swings->above > 0))
            tti_passage_meet(families->list[f], &fits[f], now, target, swings, &left);
        if (!left.ok || !isfinite(left.log_mean) || !isfinite(left.log_sd))
            continue;
        total += weight[f];
        out->unreachable += weight[f] * left.unreachable;
        const double w = weight[f] * (1 - left.unreachable);
        if (!(w > 0))
            continue;
        out->weight[out->count] = w;
        const double reach = reach_of(&left, now);
        out->mean[out->count] = left.log_mean;
        out->sd[out->count] = hypot(left.log_sd, reach * fits[f].misfit);
        out->count++;
        reachable += w;
    }
    if (total > 0)
        out->unreachable /= total;
    for (uint32_t i = 0; i < out->count; i++)
        out->weight[i] /= reachable;
}

// A fit that misses the blocks it knows takes that for noise: no excuse for missing more.
static double
noise_of(const tti_left *told, const tti_fit *fit)
{
    return told->log_sd * told->log_sd / fmax(fit->noise_factor, 1);
}

// The loss at `clock` is known to an s.d. of the fit: variance of the logarithm of `took`
// iterations for that, by how fast the fit falls there.
static double
level_noise(const tti_family *family, const tti_fit *fit, double clock, double took)
{
    const double MOST = 10, step = 0.01; // s.d., share of `took`
    double sd, ignored;
    const double level = tti_family_predict(family, fit, clock, &sd);
    const double fall = level - tti_family_predict(family, fit, clock + step * took, &ignored);
    const double log_sd = fall > 0 ? fmin(step * sd / fall, MOST) : MOST;
    return log_sd * log_sd / fmax(fit->noise_factor, 1);
}

// How long it would take to where the loss is now, by what was known when half of the way was gone,
// beside how long it took. Where the loss is the family itself says: blocks are noisy.
static void
note_errors(tti_mix *mix, const tti_families *families, const tti_curve_data *data, uint32_t count)
{
    const int at = known_at_half(mix, count);
    if (at < 0)
        return;
    const double now = data->x[count - 1], then = mix->older_clock[at];
    for (uint32_t f = 0; f < families->count; f++) {
        tti_left left = {0};
        double sd;
        if (!mix->fits[f].ok || !mix->older[at][f].ok || !(now > then))
            continue;
        const double level = tti_family_predict(families->list[f], &mix->fits[f], now, &sd);
        tti_family_inverse(families->list[f], &mix->older[at][f], then, level, &left);
        const double error = log(now - then) - left.log_mean;
        if (!left.ok || !isfinite(error))
            continue;
        const double noise = noise_of(&left, &mix->older[at][f]) +
                             level_noise(families->list[f], &mix->fits[f], now, now - then);
        note_error(mix, f, tti_clamp(error, -ERROR_MOST, ERROR_MOST), noise);
    }
}

// As all of them told it together.
static void
note_score(tti_mix *mix, const tti_families *families, double now)
{
    const int at = known_at_half(mix, mix->blocks);
    double level = 0, total = 0, sd;
    for (uint32_t f = 0; f < families->count; f++) {
        if (!mix->fits[f].ok || !(mix->weight[f] > 0))
            continue;
        const double y = tti_family_predict(families->list[f], &mix->fits[f], now, &sd);
        if (!isfinite(y))
            continue;
        level += mix->weight[f] * y;
        total += mix->weight[f];
    }
    tti_mixture told;
    if (at < 0 || !(total > 0) || !(now > mix->older_clock[at]))
        return;
    const double then = mix->older_clock[at];
    tell(families, mix->older[at], mix->older_weight[at], then, level / total, &(tti_swings){0},
         &told);
    if (told.count == 0)
        return;
    const double score = tti_mixture_score(&told, log(now - then));
    mix->score_squares_over += (1 - ERROR_KEPT) * (score * score - 1 - mix->score_squares_over);
}

static void
fit_all(tti_mix *mix, const tti_families *families, const tti_curve_data *data, uint32_t count)
{
    for (uint32_t f = 0; f < families->count; f++)
        tti_family_fit(families->list[f], data, count, &mix->fits[f]);
    mix->blocks = count;
    if (count == 0) // all there was has been taken back
        return;
    note_errors(mix, families, data, count);
    note_score(mix, families, data->x[count - 1]);
    for (uint32_t f = 0; f < families->count; f++)
        mix->fits[f].misfit = misfit_of(mix, f);
    keep(mix, data, count);
}

// Log density of point i under `fits`, per family. A family that could not fit scores as the worst
// of the others, so that silence never pays. 0: nobody could say anything.
static int
predictive(const tti_families *families,
           const tti_fit *fits,
           const tti_curve_data *data,
           uint32_t i,
           double *out)
{
    double worst = INFINITY;
    int silent[TT_EST_FAMILIES_MAX] = {0}; // a plug-in's curve that is no number there
    for (uint32_t f = 0; f < families->count; f++) {
        const tti_family *family = families->list[f];
        if (!fits[f].ok || family->prior <= 0)
            continue;
        out[f] =
            tti_family_log_predictive(family, &fits[f], data->x[i], data->y[i], data->variance[i]);
        silent[f] = family->curve && !isfinite(out[f]);
        if (!silent[f])
            worst = fmin(worst, out[f]);
    }
    if (isinf(worst) || isnan(worst))
        return 0;
    for (uint32_t f = 0; f < families->count; f++)
        if (!fits[f].ok || families->list[f]->prior <= 0 || silent[f])
            out[f] = worst;
    return 1;
}

static void
weigh(tti_mix *mix, const tti_families *families)
{
    double best = -INFINITY, total = 0;
    for (uint32_t f = 0; f < families->count; f++)
        if (families->list[f]->prior > 0)
            best = fmax(best, mix->score[f]);
    for (uint32_t f = 0; f < families->count; f++) {
        mix->weight[f] = families->list[f]->prior * exp(TRUST * (mix->score[f] - best));
        total += mix->weight[f];
    }
    for (uint32_t f = 0; f < families->count; f++)
        mix->weight[f] /= total;
}

static void
score_block(tti_mix *mix, const tti_families *families, const tti_curve_data *data, uint32_t i)
{
    double density[TT_EST_FAMILIES_MAX];
    if (!predictive(families, mix->fits, data, i, density))
        return;
    for (uint32_t f = 0; f < families->count; f++)
        mix->score[f] = 0.9 * mix->score[f] + density[f];
    mix->scored++;
    weigh(mix, families);
}

// The points were merged pairwise: counts halve, a half-known one counts as known.
static void
follow_doublings(tti_mix *mix, uint32_t doublings)
{
    for (; mix->doublings < doublings; mix->doublings++) {
        mix->blocks = (mix->blocks + 1) / 2;
        for (int i = 0; i < TTI_MIX_OLDER; i++)
            mix->older_blocks[i] = (mix->older_blocks[i] + 1) / 2;
    }
}

int
tti_mix_is_behind(tti_mix *mix, uint32_t count, uint32_t doublings)
{
    follow_doublings(mix, doublings);
    return count != mix->blocks;
}

void
tti_mix_learn(tti_mix *mix, const tti_families *families, const tti_curve_data *data)
{
    if (data->count < mix->blocks) {
        memset(mix->older_blocks, 0, sizeof mix->older_blocks);
        fit_all(mix, families, data, data->count);
        return;
    }
    // one fit for every 6 % more blocks, at most two a call: the weights need no more
    const uint32_t fresh = data->count - mix->blocks;
    const uint32_t stride = TT_MAX(TT_MAX(data->count / 16, (fresh + 1) / 2), 1u);
    while (mix->blocks < data->count) {
        const uint32_t end = TT_MIN(mix->blocks + stride, data->count);
        for (uint32_t i = mix->blocks; i < end; i++)
            score_block(mix, families, data, i);
        fit_all(mix, families, data, end);
    }
}

void
tti_mix_sync(tti_mix *mix, const tti_families *families, const tti_series *history, double target)
{
    tti_curve_data data;
    if (!tti_mix_is_behind(mix, history->count, history->doublings))
        return;
    tti_history_data(history, target, &data);
    tti_mix_learn(mix, families, &data);
}

const tti_fit *
tti_mix_fit(const tti_mix *mix, const tti_families *families, const tti_family *family)
{
    for (uint32_t f = 0; f < families->count; f++)
        if (families->list[f] == family)
            return mix->fits[f].ok ? &mix->fits[f] : NULL;
    return NULL;
}

void
tti_mix_snapshot_take(const tti_mix *mix, tti_mix_snapshot *out)
{
    memcpy(out->fits, mix->fits, sizeof out->fits);
    memcpy(out->weight, mix->weight, sizeof out->weight);
    out->ok = 0;
    for (int f = 0; f < TT_EST_FAMILIES_MAX; f++) // those that are not there are 0
        out->ok |= out->fits[f].ok && out->weight[f] > 0;
}

static double
predicted_slope(const tti_family *family,
                const tti_fit *fit,
                const tti_block *blocks,
                uint32_t count)
{
    double n = 0, x_mean = 0, xx = 0, xy = 0, sd;
    for (uint32_t i = 0; i < count; i++) {
        n += blocks[i].n;
        x_mean += blocks[i].n * blocks[i].position;
    }
    x_mean /= n;
    for (uint32_t i = 0; i < count; i++) {
        const double dx = blocks[i].position - x_mean;
        xx += blocks[i].n * dx * dx;
        xy += blocks[i].n * dx * tti_family_predict(family, fit, blocks[i].clock, &sd);
    }
    return xy / xx;
}

int
tti_mix_slope(const tti_mix_snapshot *snapshot,
              const tti_families *families,
              const tti_block *blocks,
              uint32_t count,
              double *slope,
              double *disagreement)
{
    double weight = 0, sum = 0, squares = 0;
    if (!snapshot->ok || count < 2)
        return 0;
    for (uint32_t f = 0; f < families->count; f++) {
        if (!snapshot->fits[f].ok || !(snapshot->weight[f] > 0))
            continue;
        const double s = predicted_slope(families->list[f], &snapshot->fits[f], blocks, count);
        if (!isfinite(s))
            continue;
        weight += snapshot->weight[f];
        sum += snapshot->weight[f] * s;
        squares += snapshot->weight[f] * s * s;
    }
    if (!(weight > 0))
        return 0;
    *slope = sum / weight;
    *disagreement = sqrt(fmax(squares / weight - *slope * *slope, 0));
    return 1;
}

void
tti_mix_left(const tti_mix *mix,
             const tti_families *families,
             double now,
             double target,
             const tti_swings *swings,
             tti_mixture *out)
{
    tell(families, mix->fits, mix->weight, now, target, swings, out);
    if (out->count > 0)
        tti_mixture_stretch(out, fmax(sqrt(fmax(1 + mix->score_squares_over, 0)), STRETCH_LEAST));
}
