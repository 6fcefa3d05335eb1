// The paper's own estimator, for comparisons (`tuner.estimator: paper`): iterations left from the
// losses of one window, k = (A / e) log(B / e) with B held fixed and A fitted. arXiv 1810.02935,
// Section IV. What the text leaves open, and what stands here instead:
//   B        max(kappa l_i, ...) with kappa = 10, which ranked best of 1, 2 and 10 at short windows
//   outliers studentised residuals beyond 3, at most twice, never below half of the window
//   a window longer than 4,095 iterations counts from its last 4,095
//   a fit of no use (A not positive, too few losses): the pooled estimate, flagged FALLBACK
//   between two windows every iteration that passes is one less
// It gives no interval, so 10, 50 and 90 % are one number.
#include "est_family.h"
#include "est_robust.h"
#include "est_state.h"
#include "tt/core.h"
#include "tt/estimator.h"
#include <math.h>
#include <string.h>

static const double KAPPA = 10;

// --- the paper's estimator

// A = sum j z / sum z^2 over the points not dropped.
static double
paper_scale(const double *z, const unsigned char *drop, uint32_t count)
{
    double jz = 0, zz = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (drop[i])
            continue;
        jz += (i + 1.0) * z[i];
        zz += z[i] * z[i];
    }
    return jz / zz;
}

// Drops points whose externally studentised residual passes 3, never below half of them. Returns
// how many this pass dropped.
static uint32_t
paper_drop(const double *z, double scale, unsigned char *drop, uint32_t count, uint32_t dropped)
{
    double zz = 0, squares = 0;
    const double kept = (double)(count - dropped);
    for (uint32_t i = 0; i < count; i++) {
        if (drop[i])
            continue;
        const double r = i + 1.0 - scale * z[i];
        zz += z[i] * z[i];
        squares += r * r;
    }
    uint32_t now = 0;
    for (uint32_t i = 0; i < count && kept > 3; i++) {
        if (drop[i] || 2 * (dropped + now + 1) > count)
            continue;
        const double r = i + 1.0 - scale * z[i], stay = 1 - z[i] * z[i] / zz;
        if (!(stay > 1e-9))
            continue;
        // s_(j)^2; a millionth of the window's length is as good as exact
        const double others = fmax((squares - r * r / stay) / (kept - 2), 1e-12 * kept * kept);
        if (r * r > 9 * others * stay) {
            drop[i] = 1;
            now++;
        }
    }
    return now;
}

void
tt_est_paper_fit(const double *losses,
                 uint32_t count,
                 double loss_before,
                 double target,
                 double kappa,
                 double bound,
                 double fallback,
                 tt_est_paper *out)
{
    enum { MOST = 4096 };
    *out = (tt_est_paper){NAN, bound, fallback, 0, TT_EST_FALLBACK};
    if (loss_before <= target)
        out->flags |= TT_EST_REACHED;
    const uint32_t n = TT_MIN(count, (uint32_t)MOST);
    double z[MOST], loss_max = 0;
    unsigned char drop[MOST];
    uint32_t invalid = 0, dropped = 0;
    for (uint32_t i = 0; i < n; i++) {
        drop[i] = !isfinite(losses[i]) || losses[i] <= 0;
        invalid += drop[i];
        loss_max = drop[i] ? loss_max : fmax(loss_max, losses[i]);
    }
    if (!(target > 0) || !isfinite(loss_before) || n - invalid < 3)
        return;
    // an injected bound still may not lie under a loss: a log would turn negative
    out->bound = bound > 0 ? fmax(bound, (1 + 1e-3) * fmax(loss_max < bound ? 0 : loss_max, target))
                           : tti_hogwild_bound(loss_before, loss_max, target, kappa);
    for (uint32_t i = 0; i < n; i++) {
        z[i] = drop[i] ? 0 : tti_hogwild_z(losses[i], out->bound);
        TT_ASSERT(drop[i] || z[i] > 0);
    }
    double scale = paper_scale(z, drop, n);
    for (int pass = 0; pass < 2 && isfinite(scale); pass++) {
        const uint32_t now = paper_drop(z, scale, drop, n, invalid + dropped);
        if (now == 0)
            break;
        dropped += now;
        scale = paper_scale(z, drop, n);
    }
    out->outliers = dropped;
    if (!isfinite(scale) || scale <= 0)
        return;
    out->flags &= ~(unsigned)TT_EST_FALLBACK;
    out->scale = scale;
    out->iterations =
        tti_clamp(scale * tti_hogwild_z(target, out->bound) - (double)count, 1, TTI_ITERATIONS_MAX);
}

// --- as a method of the estimator

static void
paper_begin(tt_estimator *est)
{
    est->paper.loss_before = tt_estimator_last_loss(est);
}

// The window's losses in apply order, without those that do not fit; the one before them.
static uint32_t
window_losses(const tt_estimator *est, double *out, double *before)
{
    const uint32_t most = TTI_RECENT_LOSSES - 1;
    const uint32_t count = TT_MIN(TT_MIN(est->window.kept, most), est->recent_count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t age = count - i;
        out[i] = est->recent[(est->recent_next + TTI_RECENT_LOSSES - age) % TTI_RECENT_LOSSES];
    }
    *before = est->paper.loss_before;
    if (est->window.kept > most && est->recent_count > count)
        *before =
            est->recent[(est->recent_next + TTI_RECENT_LOSSES - count - 1) % TTI_RECENT_LOSSES];
    // the very first window has nothing before it
    if (!isfinite(*before) && count > 0)
        *before = out[0];
    return count;
}

static void
paper_end(tt_estimator *est)
{
    double losses[TTI_RECENT_LOSSES], before;
    if (isnan(est->options.target_loss))
        return;
    const uint32_t count = window_losses(est, losses, &before);
    if (count == 0)
        return;
    tti_answer pooled = {.kind = TTI_ANSWER_CURVE};
    double mean, sd;
    tti_method_pooled.answer(est, &pooled);
    tti_mixture_moments(&pooled.mixture, &mean, &sd);
    tt_est_paper_fit(losses, count, before, est->options.target_loss, KAPPA, 0,
                     pooled.mixture.count > 0 ? exp(mean) : TTI_ITERATIONS_MAX, &est->paper.fit);
    est->paper.fitted = 1;
    est->paper.at_iterations = est->iterations;
}

static void
paper_answer(const tt_estimator *est, tti_answer *out)
{
    if (!est->paper.fitted) {
        tti_method_pooled.answer(est, out);
        out->flags |= TT_EST_FALLBACK;
        return;
    }
    const double since = (double)(est->iterations - est->paper.at_iterations);
    out->kind = TTI_ANSWER_CURVE;
    out->flags |= est->paper.fit.flags & (TT_EST_FALLBACK | TT_EST_REACHED);
    out->mixture = (tti_mixture){.count = 1, .weight = {1}};
    out->mixture.mean[0] = tti_log_iterations(est->paper.fit.iterations - since);
}

static int
paper_reached(const tt_estimator *est)
{
    if (!est->paper.fitted)
        return tti_method_pooled.reached(est);
    return (est->paper.fit.flags & TT_EST_REACHED) != 0;
}

const tti_method tti_method_paper = {"paper", paper_begin, paper_end, paper_answer, paper_reached};
