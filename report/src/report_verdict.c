// Was tuning worth it: against the untuned job when that was measured, else against what the start
// setting's own measured rate says about as many iterations.
#include "report_model.h"
#include <math.h>
#include <string.h>

// Below this share of the whole nobody would notice, and two runs of one job differ by more.
static const double noticeable = 0.02;

static const char *
reason_for_none(const tti_report *r)
{
    if (!r->has_run)
        return "The run wrote nothing down before it ended.";
    if (tti_is(r->run.status, "failed"))
        return "The run failed before it was done, so there is nothing to compare.";
    size_t tuned = 0;
    for (size_t i = 0; i < r->windows.count; i++)
        tuned += TTI_AT(r->windows, tt_store_window, i)->phase != TT_STORE_FIXED;
    if (r->windows.count == 0)
        return "No window was measured.";
    if (tuned == 0)
        return "Tuning was off.";
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    if (start == NULL || !(start->seconds_per_iteration > 0))
        return "The start setting was not measured.";
    if (!(r->elapsed_s > 0) || r->iterations <= 0)
        return "It is not known how long training took.";
    return NULL;
}

static void
compare(tti_verdict *v)
{
    v->saved_s = v->untuned_s - v->tuned_s;
    v->speedup = v->untuned_s / v->tuned_s;
    if (fabs(v->saved_s) < noticeable * v->untuned_s ||
        (v->tuned_s > v->untuned_low_s && v->tuned_s < v->untuned_high_s))
        v->worth = TTI_WORTH_EVEN;
    else
        v->worth = v->saved_s > 0 ? TTI_WORTH_YES : TTI_WORTH_NO;
}

void
tti_report_judge(const tti_report *r, tti_verdict *v)
{
    double unknown = (double)NAN;
    *v = (tti_verdict){.basis = TTI_BASIS_NONE,
                       .in_progress = tti_is(r->run.status, "running"),
                       .tuned_s = r->elapsed_s,
                       .untuned_s = unknown,
                       .untuned_low_s = unknown,
                       .untuned_high_s = unknown,
                       .saved_s = unknown,
                       .speedup = unknown};
    v->why_none = reason_for_none(r);
    // A measured time is for the whole job: it says nothing about half of one.
    int whole = !v->in_progress && !tti_is(r->run.status, "failed");
    if (r->has_run && whole && r->run.untuned_seconds > 0 && r->elapsed_s > 0) {
        v->basis = TTI_BASIS_MEASURED;
        v->untuned_s = r->run.untuned_seconds;
        v->why_none = NULL;
        compare(v);
        return;
    }
    if (v->why_none != NULL)
        return;
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    v->basis = TTI_BASIS_START_RATE;
    v->untuned_s = (double)r->iterations * start->seconds_per_iteration;
    if (isfinite(start->log_se)) {
        v->untuned_low_s = v->untuned_s * exp(-2 * start->log_se);
        v->untuned_high_s = v->untuned_s * exp(2 * start->log_se);
    }
    compare(v);
}
