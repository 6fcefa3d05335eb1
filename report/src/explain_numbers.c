// What the windows of each setting say together, which setting is how surely faster than which, and
// how good the tuner's predictions were.
#include "explain.h"
#include "tt/tuner_search.h" // tt_ei_phi
#include <math.h>

static const double INTERVAL_80 = 1.2815515655446004;

// ---- settings --------------------------------------------------------------------------------

// Mean of log t over the windows of one setting, weighted by iterations. Its standard error is the
// largest of what the cycles within windows, the windows among themselves, and those of all
// settings say: a machine that changes from minute to minute does not show in the first.
static void
measure(const tti_report *r, tti_measured_setting *m)
{
    double weight = 0, mean = 0, within = 0, between = 0, squares = 0;
    int64_t last = -1;
    m->log_t = m->se = (double)NAN;
    for (size_t i = 0; i < r->windows.count; i++) {
        const tt_store_window *w = TTI_AT(r->windows, tt_store_window, i);
        if (w->setting != m->setting->id || !tti_is_measured(w))
            continue;
        double cv = isfinite(w->time_cv) ? w->time_cv : 1, n = (double)w->kept;
        weight += n;
        mean += n * log(w->seconds_per_iteration);
        within += n * cv * cv;
        m->windows++;
        m->iterations += w->kept;
        m->stays += w->generation != last;
        last = w->generation;
    }
    if (!(weight > 0))
        return;
    mean /= weight;
    for (size_t i = 0; i < r->windows.count; i++) {
        const tt_store_window *w = TTI_AT(r->windows, tt_store_window, i);
        if (w->setting != m->setting->id || !tti_is_measured(w))
            continue;
        double off = log(w->seconds_per_iteration) - mean, share = (double)w->kept / weight;
        between += share * off * off;
        squares += share * share;
    }
    m->log_t = mean;
    m->se = fmax(sqrt(within) / weight, sqrt(r->window_variance * squares));
    if (m->windows > 1 && squares < 1)
        m->se = fmax(m->se, sqrt(between / (1 - squares) * squares));
}

static const tti_measured_setting *
find(const tti_explanation *e, int64_t id)
{
    for (size_t i = 0; i < e->setting_count; i++)
        if (e->settings[i].setting->id == id)
            return &e->settings[i];
    return NULL;
}

// By how many standard errors a takes less time than b.
static double
margin(const tti_measured_setting *a, const tti_measured_setting *b)
{
    if (a == NULL || b == NULL || isnan(a->log_t) || isnan(b->log_t))
        return (double)NAN;
    return (b->log_t - a->log_t) / fmax(hypot(a->se, b->se), 1e-12);
}

static double
beats(const tti_measured_setting *a, const tti_measured_setting *b)
{
    const double z = margin(a, b);
    return isnan(z) ? z : tt_ei_phi(z);
}

static void
compare(tti_explanation *e)
{
    const tti_report *r = e->report;
    e->start = find(e, r->run.start_setting);
    e->end = find(e, r->current_setting);
    double least = INFINITY;
    for (size_t i = 0; i < e->setting_count; i++) {
        const tti_measured_setting *m = &e->settings[i];
        const double z = margin(e->end, m);
        e->rivals += m != e->end && !isnan(z);
        if (m != e->end && z < least) {
            e->rival = m;
            least = z;
        }
    }
    e->end_beats_start = e->start != e->end ? beats(e->end, e->start) : (double)NAN;
    e->end_beats_rival = beats(e->end, e->rival);
}

// ---- predictions -----------------------------------------------------------------------------

static tt_status
judge(tti_explanation *e)
{
    const tti_report *r = e->report;
    double *errors = tt_mem_alloc((r->proposals.count + 1) * sizeof *errors);
    if (errors == NULL)
        return TT_NOMEM;
    for (size_t i = 0; i < r->proposals.count; i++) {
        const tt_store_proposal *p = TTI_AT(r->proposals, tt_store_proposal, i);
        if (tti_is(p->decision, "stay") || tti_is(p->decision, "held") ||
            tti_is(p->decision, "quit"))
            e->last = p;
        if (!tti_is(p->decision, "try"))
            continue;
        e->trials++;
        if (!(p->realised_ratio > 0))
            continue;
        e->better += p->realised_ratio < 1;
        if (!isfinite(p->log_ratio) || !(p->log_ratio_sd > 0))
            continue;
        double error = fabs(log(p->realised_ratio) - p->log_ratio);
        e->inside += error <= INTERVAL_80 * p->log_ratio_sd;
        errors[e->judged++] = error;
    }
    e->typical_error = tti_report_median(errors, (size_t)e->judged);
    tt_mem_free(errors);
    return TT_OK;
}

// The longest delay that the search space has: all but one node work, and merge as many iterations
// as they can.
static double
longest_delay(const tti_report *r)
{
    double merged = 1;
    for (size_t i = 0; i < r->knobs.count; i++) {
        const tt_store_knob *k = TTI_AT(r->knobs, tt_store_knob, i);
        if (tti_is(k->id, "push_aggregation"))
            merged = k->fixed ? k->start : k->max;
    }
    return fmax((double)r->run.nodes - 1, 1) * merged;
}

static double
lag_borne(const tti_report *r)
{
    for (size_t i = r->windows.count; i-- > 0;) {
        const double borne = TTI_AT(r->windows, tt_store_window, i)->lag_borne;
        if (borne > 0)
            return borne < longest_delay(r) ? borne : NAN;
    }
    return NAN;
}

// ---- the whole -------------------------------------------------------------------------------

tt_status
tti_explain(const tti_report *report, tti_explanation *out, tt_error *err)
{
    *out = (tti_explanation){.report = report};
    size_t count = report->settings.count;
    out->settings = tt_mem_zalloc(count + 1, sizeof *out->settings);
    tt_status status = out->settings != NULL ? TT_OK : TT_NOMEM;
    for (size_t i = 0; i < count && status == TT_OK; i++) {
        out->settings[i].setting = TTI_AT(report->settings, tti_setting, i);
        measure(report, &out->settings[i]);
        out->setting_count++;
    }
    if (status == TT_OK) {
        out->lag_borne = lag_borne(report);
        tti_explain_eta(out);
        compare(out);
        status = judge(out);
    }
    if (status != TT_OK)
        status = tt_error_set(err, status, "report", NULL, "no memory to explain the run");
    else
        status = tti_explain_knobs(out, err);
    if (status != TT_OK)
        tti_explain_fini(out);
    return status;
}

void
tti_explain_fini(tti_explanation *explanation)
{
    tt_mem_free(explanation->settings);
    tt_mem_free(explanation->knobs);
    *explanation = (tti_explanation){.report = NULL};
}
