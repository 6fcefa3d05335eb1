// trimtab explain for programs: one JSON object whose keys are documented in docs/report.md.
#include "explain.h"
#include "report_json.h"
#include <math.h>

static json_t *
measured_json(const tti_measured_setting *m)
{
    if (m == NULL)
        return json_null();
    return json_pack("{s:I, s:o, s:o, s:I, s:I, s:I}", "setting", (json_int_t)m->setting->id,
                     "seconds_per_iteration", tti_json_real(exp(m->log_t)), "log_se",
                     tti_json_real(m->se), "windows", (json_int_t)m->windows, "iterations",
                     (json_int_t)m->iterations, "stays", (json_int_t)m->stays);
}

static json_t *
knob_json(const tti_knob_effect *k)
{
    static const char *const verdicts[] = {"fixed", "matters", "flat", "not told"};
    return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "id", k->knob->id,
                     "verdict", verdicts[k->verdict], "changed", k->changed, "gain_log",
                     tti_json_real(k->gain), "gain_sd", tti_json_real(k->gain_sd), "other",
                     tti_json_knob_value(k->knob, k->other), "other_log",
                     tti_json_real(k->other_gain), "other_sd", tti_json_real(k->other_sd), "tried",
                     (json_int_t)k->tried, "values",
                     k->values > 0 ? json_integer((json_int_t)k->values) : json_null());
}

static json_t *
last_json(const tt_store_proposal *p)
{
    if (p == NULL)
        return json_null();
    return json_pack("{s:o, s:s?, s:s?, s:s?, s:o, s:o}", "time_s", tti_json_real(p->time_s),
                     "decision", p->decision, "reason", p->reason, "proposed", p->proposed,
                     "ei_seconds", tti_json_real(p->ei_seconds), "cost_seconds",
                     tti_json_real(p->cost_seconds));
}

// NULL without memory, or when a text of the store is not UTF-8.
static json_t *
explanation_json(const tti_explanation *e)
{
    json_t *knobs = json_array();
    for (size_t i = 0; i < e->knob_count; i++)
        if (json_array_append_new(knobs, knob_json(&e->knobs[i])) != 0) {
            json_decref(knobs);
            return NULL;
        }
    return json_pack(
        "{s:i, s:s?, s:{s:o, s:o, s:o, s:o, s:o}, s:{s:I, s:I, s:I, s:I, s:o}, s:o, "
        "s:o, s:o, s:{s:I, s:I, s:I}}",
        "explain_version", 1, "run", e->report->run.id, "trust", "end", measured_json(e->end),
        "start", measured_json(e->start), "rival", measured_json(e->rival), "beats_start",
        tti_json_real(e->end_beats_start), "beats_rival", tti_json_real(e->end_beats_rival),
        "trials", "count", (json_int_t)e->trials, "better", (json_int_t)e->better, "judged",
        (json_int_t)e->judged, "inside80", (json_int_t)e->inside, "typical_log_error",
        tti_json_real(e->typical_error), "stopped", last_json(e->last), "knobs", knobs, "lag_borne",
        tti_json_real(e->lag_borne), "eta", "asked", (json_int_t)e->eta.asked, "within2x",
        (json_int_t)e->eta.good, "inside80", (json_int_t)e->eta.inside);
}

static tt_status
write_json(const tti_report *report, const char *run, FILE *out, tt_error *err)
{
    tti_explanation explanation;
    TT_TRY(tti_explain(report, &explanation, err));
    json_t *object = explanation_json(&explanation);
    tti_explain_fini(&explanation);
    if (object == NULL)
        return tt_error_set(err, TT_NOMEM, run, NULL, "no memory for the explanation");
    int failed = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0 ||
                 fputc('\n', out) == EOF || fflush(out) != 0;
    json_decref(object);
    if (failed)
        return tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                            "cannot write the explanation");
    return TT_OK;
}

tt_status
tt_report_explain_json(const char *run, FILE *out, tt_error *err)
{
    tti_report report;
    tt_status status = tti_report_load(&report, run, err);
    if (status == TT_OK)
        status = write_json(&report, run, out, err);
    tti_report_fini(&report);
    return status;
}
