// What each knob is worth at the setting a run ended in: a Gaussian process over the measured
// settings, asked what would become of the time per iteration if one knob alone stood elsewhere.
// Both times come from the joint posterior, so that what is not known of both cancels.
#include "explain.h"
#include "tt/tuner_gp.h"
#include <math.h>
#include <string.h>

enum { STEPS = 17, VALUES_LISTED = 32 };
static const double FLAT = 0.01;      // a change of the time that nobody would mind
static const double TWO_SIDED = 1.96; // 95 %
static const double UNKNOWN_SD = 0.2; // of a setting whose own standard error is not known

// The knobs that were tuned, as dimensions.
typedef struct plane {
    const tti_report *report;
    uint32_t dims;
    size_t knob[TT_GP_DIMS_MAX]; // index in the report
    tt_knob description[TT_GP_DIMS_MAX];
    tt_space_knob range[TT_GP_DIMS_MAX];
    tt_gp *gp;
    tt_gp_slice *slice;
    double end[TT_GP_DIMS_MAX];
} plane;

static int
is_tuned(const tt_store_knob *knob)
{
    return !knob->fixed && knob->max > knob->min;
}

static void
lay_out(plane *p)
{
    for (size_t i = 0; i < p->report->knobs.count && p->dims < TT_GP_DIMS_MAX; i++) {
        const tt_store_knob *k = TTI_AT(p->report->knobs, tt_store_knob, i);
        if (!is_tuned(k))
            continue;
        tti_report_space_knob(k, &p->description[p->dims], &p->range[p->dims]);
        p->knob[p->dims++] = i;
    }
}

static int
encode(const plane *p, const tti_setting *setting, double *x)
{
    for (uint32_t d = 0; d < p->dims; d++) {
        double value = setting->values[p->knob[d]];
        if (isnan(value))
            return 0;
        x[d] = tt_space_encode(&p->range[d], value);
    }
    return 1;
}

static tt_status
fit(plane *p, const tti_explanation *e, tt_error *err)
{
    tt_gp_options options = {.model = TT_GP_TIME, .dims = p->dims, .seed = 1};
    for (uint32_t d = 0; d < p->dims; d++) {
        tt_knob_kind kind = p->description[d].kind;
        options.kind[d] =
            kind == TT_KNOB_BOOL || kind == TT_KNOB_ENUM ? TT_GP_MISMATCH : TT_GP_LINE;
    }
    TT_TRY(tt_gp_open(&options, &p->gp, err));
    for (size_t i = 0; i < e->setting_count; i++) {
        const tti_measured_setting *m = &e->settings[i];
        double x[TT_GP_DIMS_MAX], se = isfinite(m->se) ? m->se : UNKNOWN_SD;
        if (isnan(m->log_t) || !encode(p, m->setting, x))
            continue;
        TT_TRY(tt_gp_add(p->gp, x, &(tt_gp_row){.y = m->log_t, .noise_var = se * se}, err));
    }
    TT_TRY(tt_gp_fit(p->gp, 0, err));
    return tt_gp_slice_open(p->gp, 0, p->end, &p->slice, err);
}

// log(time with knob d at `value` / time at the end).
static void
gain_at(const plane *p, uint32_t d, double value, double *gain, double *sd)
{
    double x[TT_GP_DIMS_MAX], var;
    memcpy(x, p->end, p->dims * sizeof *x);
    x[d] = tt_space_encode(&p->range[d], value);
    tt_gp_slice_eval(p->slice, x, 1, gain, &var);
    *sd = sqrt(fmax(var, 0));
}

// The i-th of the values that stand for a knob's range; 0 behind the last.
static int
value_at(const plane *p, uint32_t d, int i, double *value)
{
    const tt_space_knob *r = &p->range[d];
    double count = r->max - r->min + 1;
    if (p->description[d].kind != TT_KNOB_REAL && count <= VALUES_LISTED) {
        *value = r->min + i;
        return i < count;
    }
    *value = tt_space_decode(r, (double)i / (STEPS - 1));
    return i < STEPS;
}

static int64_t
values_tried(const tti_explanation *e, size_t index)
{
    int64_t count = 0;
    for (size_t i = 0; i < e->setting_count; i++) {
        double value = e->settings[i].setting->values[index];
        int fresh = !isnan(e->settings[i].log_t) && !isnan(value);
        for (size_t j = 0; j < i && fresh; j++)
            fresh = isnan(e->settings[j].log_t) || e->settings[j].setting->values[index] != value;
        count += fresh;
    }
    return count;
}

static void
weigh(const tti_explanation *e, const plane *p, uint32_t d, tti_knob_effect *k)
{
    double own = e->end->setting->values[k->index], largest = -1;
    k->from = k->knob->start;
    if (e->start != NULL && !isnan(e->start->setting->values[k->index]))
        k->from = e->start->setting->values[k->index];
    k->changed = k->from != own;
    if (k->changed)
        gain_at(p, d, k->from, &k->gain, &k->gain_sd);
    int flat = 1;
    double value;
    for (int i = 0; value_at(p, d, i, &value); i++) {
        double gain, sd;
        gain_at(p, d, value, &gain, &sd);
        flat = flat && fabs(gain) + TWO_SIDED * sd < FLAT;
        if (value != own && fabs(gain) > largest) {
            largest = fabs(gain);
            k->other = value;
            k->other_gain = gain;
            k->other_sd = sd;
        }
    }
    int told = (k->changed && fabs(k->gain) > TWO_SIDED * k->gain_sd) ||
               fabs(k->other_gain) > TWO_SIDED * k->other_sd;
    k->verdict = flat ? TTI_KNOB_FLAT : told ? TTI_KNOB_MATTERS : TTI_KNOB_NOT_TOLD;
}

static void
describe(const tti_explanation *e, size_t index, tti_knob_effect *k)
{
    const tt_store_knob *knob = TTI_AT(e->report->knobs, tt_store_knob, index);
    double count = knob->max - knob->min + 1;
    *k = (tti_knob_effect){.knob = knob,
                           .index = index,
                           .verdict = TTI_KNOB_FIXED,
                           .tried = values_tried(e, index),
                           .gain = (double)NAN,
                           .gain_sd = (double)NAN,
                           .other = (double)NAN,
                           .other_gain = (double)NAN,
                           .other_sd = (double)NAN};
    k->values = tti_report_knob_kind(knob) == TT_KNOB_REAL || count > 1e9 ? 0 : (int64_t)count;
}

static int
enough(const tti_explanation *e)
{
    int measured = 0;
    for (size_t i = 0; i < e->setting_count; i++)
        measured += !isnan(e->settings[i].log_t);
    return measured >= 2 && e->end != NULL && !isnan(e->end->log_t);
}

tt_status
tti_explain_knobs(tti_explanation *e, tt_error *err)
{
    size_t count = e->report->knobs.count;
    e->knobs = tt_mem_zalloc(count + 1, sizeof *e->knobs);
    plane *p = tt_mem_zalloc(1, sizeof *p);
    if (e->knobs == NULL || p == NULL) {
        tt_mem_free(p);
        return tt_error_set(err, TT_NOMEM, "report", NULL, "no memory to explain the knobs");
    }
    for (e->knob_count = 0; e->knob_count < count; e->knob_count++)
        describe(e, e->knob_count, &e->knobs[e->knob_count]);
    p->report = e->report;
    lay_out(p);
    for (uint32_t d = 0; d < p->dims; d++)
        e->knobs[p->knob[d]].verdict = TTI_KNOB_NOT_TOLD;
    tt_status status = TT_OK;
    if (p->dims > 0 && enough(e) && encode(p, e->end->setting, p->end)) {
        status = fit(p, e, err);
        for (uint32_t d = 0; d < p->dims && status == TT_OK; d++)
            weigh(e, p, d, &e->knobs[p->knob[d]]);
    }
    tt_gp_slice_close(p->slice);
    tt_gp_close(p->gp);
    tt_mem_free(p);
    return status;
}
