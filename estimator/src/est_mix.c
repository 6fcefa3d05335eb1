#include "est_mix.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// Forecasts of neighbouring blocks by one fit err together: they count half.
static const double TRUST = 0.5;
// No real curve is of a family's form, and its fit does not know. How far falls that it foretold
// came out otherwise does: before any did, as if MISFIT_PRIOR_N of them had missed by MISFIT_PRIOR.
static const double MISFIT_PRIOR = 0.03, MISFIT_PRIOR_N = 2, MISS_KEPT = 0.9;
// A fall whose noise has this s.d., as a share of it, tells half as much as one without noise.
static const double MISS_NOISE = 0.2;

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

// Within-block variances are smoothed over nine neighbours: one of 25 losses is known to 30 %.
static void
fill_data(const tti_series *history, double target, tti_curve_data *out)
{
    enum { REACH = 4 };
    const uint32_t count = history->count;
    out->count = count;
    out->target = target;
    for (uint32_t i = 0; i < count; i++) {
        const tti_block *b = &history->blocks[i];
        const uint32_t from = i > REACH ? i - REACH : 0, to = TT_MIN(i + REACH, count - 1);
        double sum = 0, n = 0;
        for (uint32_t j = from; j <= to; j++) {
            sum += history->blocks[j].n * history->blocks[j].variance;
            n += history->blocks[j].n;
        }
        const double least = 1e-12 + 1e-9 * fabs(b->mean);
        out->x[i] = b->clock;
        out->width[i] = b->width;
        out->y[i] = b->mean;
        out->variance[i] = sum / n / b->n + least * least;
    }
}

static double
misfit_of(const tti_mix *mix, uint32_t f)
{
    const double prior = MISFIT_PRIOR_N * MISFIT_PRIOR * MISFIT_PRIOR;
    return sqrt(fmax(mix->miss_squares[f] + prior, 0) / (mix->misses[f] + MISFIT_PRIOR_N));
}

static void
fit_all(tti_mix *mix, const tti_families *families, const tti_curve_data *data, uint32_t count)
{
    for (uint32_t f = 0; f < families->count; f++) {
        tti_family_fit(families->list[f], data, count, &mix->fits[f]);
        mix->fits[f].misfit = misfit_of(mix, f);
    }
    mix->blocks = count;
    memcpy(mix->older[mix->older_next], mix->fits, sizeof mix->fits);
    mix->older_blocks[mix->older_next] = count;
    mix->older_next = (mix->older_next + 1) % TTI_MIX_OLDER;
}

// The newest fits that knew at most `most` blocks, and how many these knew; NULL: none.
static const tti_fit *
fits_before(const tti_mix *mix, uint32_t most, uint32_t *blocks)
{
    const tti_fit *best = NULL;
    uint32_t best_blocks = 0;
    for (int i = 0; i < TTI_MIX_OLDER; i++)
        if (mix->older_blocks[i] > best_blocks && mix->older_blocks[i] <= most) {
            best_blocks = mix->older_blocks[i];
            best = mix->older[i];
        }
    *blocks = best_blocks;
    return best;
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

// What was known when two thirds of the way to block i were gone, or by three blocks less; NULL:
// too little.
static const tti_fit *
known_from_afar(const tti_mix *mix, uint32_t i, uint32_t *blocks)
{
    return i > 3 ? fits_before(mix, TT_MIN(2 * i / 3, i - 3), blocks) : NULL;
}

// A fall was foretold and came out otherwise, by `error` of it; noise explains the variance `noise`
// of that. It counts twice: errors of neighbouring blocks are much the same error.
static void
note_miss(tti_mix *mix, uint32_t f, double error, double noise)
{
    const double told = 1 / (1 + pow(noise / (MISS_NOISE * MISS_NOISE), 2));
    mix->miss_squares[f] = MISS_KEPT * mix->miss_squares[f] + told * (error * error - 2 * noise);
    mix->misses[f] = MISS_KEPT * mix->misses[f] + told;
}

// Of the fall from block `from`, the last that `before` knew, to block i.
static void
note_misses(tti_mix *mix,
            const tti_families *families,
            const tti_fit *before,
            uint32_t from,
            const tti_curve_data *data,
            uint32_t i)
{
    for (uint32_t f = 0; f < families->count; f++) {
        const tti_family *family = families->list[f];
        const tti_fit *fit = &before[f];
        double sd, ignored;
        if (!fit->ok)
            continue;
        const double ahead = tti_family_predict(family, fit, data->x[i], &sd);
        const double fall = tti_family_predict(family, fit, data->x[from], &ignored) - ahead;
        // A fit that misses the blocks it knows takes that for noise: no excuse for missing more.
        const double variance =
            (sd * sd + fit->noise_factor * data->variance[i]) / fmax(fit->noise_factor, 1);
        if (isfinite(ahead) && isfinite(variance) && fall > 0)
            note_miss(mix, f, tti_clamp((data->y[i] - ahead) / fall, -1, 1),
                      variance / (fall * fall));
    }
}

// A block is foretold from one block ahead and from afar. It is from afar that the time left is
// told: one block ahead a straight line is as good as any curve.
static void
score_block(tti_mix *mix, const tti_families *families, const tti_curve_data *data, uint32_t i)
{
    double one[TT_EST_FAMILIES_MAX], far[TT_EST_FAMILIES_MAX];
    if (!predictive(families, mix->fits, data, i, one))
        return;
    uint32_t from = 0;
    const tti_fit *before = known_from_afar(mix, i, &from);
    const int have_far = before && predictive(families, before, data, i, far);
    // The mean of the two: both judge the same block, their sum would count it twice.
    for (uint32_t f = 0; f < families->count; f++)
        mix->score[f] = 0.9 * mix->score[f] + (have_far ? 0.5 * (one[f] + far[f]) : one[f]);
    if (have_far)
        note_misses(mix, families, before, from - 1, data, i);
    mix->scored++;
    weigh(mix, families);
}

// The history merged its blocks pairwise: counts halve, a half-known block counts as known.
static void
follow_doublings(tti_mix *mix, uint32_t doublings)
{
    for (; mix->doublings < doublings; mix->doublings++) {
        mix->blocks = (mix->blocks + 1) / 2;
        for (int i = 0; i < TTI_MIX_OLDER; i++)
            mix->older_blocks[i] = (mix->older_blocks[i] + 1) / 2;
    }
}

void
tti_mix_sync(tti_mix *mix, const tti_families *families, const tti_series *history, double target)
{
    follow_doublings(mix, history->doublings);
    if (history->count == mix->blocks)
        return;
    tti_curve_data data;
    fill_data(history, target, &data);
    if (history->count < mix->blocks) {
        memset(mix->older_blocks, 0, sizeof mix->older_blocks);
        fit_all(mix, families, &data, data.count);
        return;
    }
    // one fit for every 6 % more blocks, at most two a call: the weights need no more
    const uint32_t fresh = data.count - mix->blocks;
    const uint32_t stride = TT_MAX(TT_MAX(data.count / 16, (fresh + 1) / 2), 1u);
    while (mix->blocks < data.count) {
        const uint32_t end = TT_MIN(mix->blocks + stride, data.count);
        for (uint32_t i = mix->blocks; i < end; i++)
            score_block(mix, families, &data, i);
        fit_all(mix, families, &data, end);
    }
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

// When a swing meets the target. The course comes to z s.d. above it after k(z) iterations; two
// blocks in a row are below it then with about half the chance of one, so that by k(z) it was met
// with probability 1 - exp(-H),
//
//     H(z) = integral over k of Phi(-z) / (2 blocks)
//
// A course that ends above the target goes on with its last chance.
enum { SWING_STEPS = 16 };
static const double SWING_FROM = 2, SWING_STEP = 0.25;

typedef struct passage {
    double k[SWING_STEPS + 1], chance[SWING_STEPS + 1]; // chance: an iteration, before k
    int steps;                                          // that the course comes to
    int ends;                                           // above the next one
} passage;

// Iterations until H is `hazard`.
static double
passed_after(const passage *p, double hazard)
{
    for (int i = 1; i <= p->steps; i++) {
        const double more = (p->k[i] - p->k[i - 1]) * p->chance[i];
        if (more >= hazard && p->chance[i] > 0)
            return p->k[i - 1] + hazard / p->chance[i];
        hazard -= more;
    }
    const double next = p->chance[TT_MIN(p->steps + 1, SWING_STEPS)];
    return p->ends && next > 0 ? p->k[p->steps] + hazard / next : p->k[p->steps];
}

static void
meet_in_swing(const tti_family *family,
              const tti_fit *fit,
              double now,
              double target,
              double swing_sd,
              tti_left *out)
{
    passage p = {.steps = -1};
    tti_left left = *out;
    for (int i = 0; i <= SWING_STEPS; i++) {
        const double z = SWING_FROM - i * SWING_STEP;
        p.chance[i] = -expm1(fmin(z + 0.5 * SWING_STEP - 1, 0)) / (2 * TTI_BLOCK_LOSSES);
        if (p.ends)
            continue;
        tti_family_inverse(family, fit, now, target + z * swing_sd, &left);
        p.ends = !left.ok || left.unreachable > 0.5;
        if (p.ends)
            continue;
        p.k[i] = fmax(exp(left.log_mean), i > 0 ? p.k[i - 1] : 0);
        p.steps = i;
        out->log_sd = left.log_sd;
    }
    if (p.steps < 0)
        return; // even that is out of reach
    out->unreachable = 0;
    out->log_mean = tti_log_iterations(passed_after(&p, log(2)));
    const double early = tti_log_iterations(passed_after(&p, -log(0.9)));
    const double late = tti_log_iterations(passed_after(&p, -log(0.1)));
    out->log_sd = hypot(out->log_sd, (late - early) / 2.563);
}

void
tti_mix_left(const tti_mix *mix,
             const tti_families *families,
             double now,
             double target,
             double swing_sd,
             tti_mixture *out)
{
    memset(out, 0, sizeof *out);
    double total = 0, reachable = 0;
    for (uint32_t f = 0; f < families->count; f++) {
        tti_left left = {0};
        if (!mix->fits[f].ok || !(mix->weight[f] > 0))
            continue;
        tti_family_inverse(families->list[f], &mix->fits[f], now, target, &left);
        if (left.ok && swing_sd > 0)
            meet_in_swing(families->list[f], &mix->fits[f], now, target, swing_sd, &left);
        if (!left.ok || !isfinite(left.log_mean) || !isfinite(left.log_sd))
            continue;
        total += mix->weight[f];
        out->unreachable += mix->weight[f] * left.unreachable;
        const double w = mix->weight[f] * (1 - left.unreachable);
        if (!(w > 0))
            continue;
        out->weight[out->count] = w;
        out->mean[out->count] = left.log_mean;
        out->sd[out->count] = hypot(left.log_sd, mix->fits[f].misfit);
        out->count++;
        reachable += w;
    }
    if (total > 0)
        out->unreachable /= total;
    for (uint32_t i = 0; i < out->count; i++)
        out->weight[i] /= reachable;
}

void
tti_mixture_moments(const tti_mixture *mixture, double *mean, double *sd)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < mixture->count; i++) {
        const double m = mixture->mean[i], s = mixture->sd[i];
        sum += mixture->weight[i] * m;
        squares += mixture->weight[i] * (s * s + m * m);
    }
    *mean = sum;
    *sd = sqrt(fmax(squares - sum * sum, 0));
}

double
tti_mixture_quantile(const tti_mixture *mixture, double p, double shift, double extra_sd)
{
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < mixture->count; i++) {
        const double s = hypot(mixture->sd[i], extra_sd);
        low = fmin(low, mixture->mean[i] - 8 * s);
        high = fmax(high, mixture->mean[i] + 8 * s);
    }
    for (int step = 0; step < 60 && high > low; step++) {
        const double middle = 0.5 * (low + high);
        double below = 0;
        for (uint32_t i = 0; i < mixture->count; i++) {
            const double s = fmax(hypot(mixture->sd[i], extra_sd), 1e-12);
            below += mixture->weight[i] * tti_normal_cdf((middle - mixture->mean[i]) / s);
        }
        if (below < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high) + shift;
}
