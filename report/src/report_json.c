// The report for programs: one JSON object whose keys are documented in docs/report.md.
#include "report_json.h"
#include <math.h>
#include <string.h>

// jansson answers NULL when memory runs out and passes NULL on, so one check at the end is enough:
// `failed` is set by the first member that could not be made or added.
typedef struct builder {
    const tti_report *report;
    int failed;
} builder;

static void
put(builder *b, json_t *object, const char *key, json_t *value)
{
    b->failed |= json_object_set_new(object, key, value) != 0;
}

static void
push(builder *b, json_t *array, json_t *value)
{
    b->failed |= json_array_append_new(array, value) != 0;
}

json_t *
tti_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
integer(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

// Text that is not UTF-8 (from a foreign hand in the store) becomes null rather than a failure.
static json_t *
string(const char *value)
{
    if (value == NULL)
        return json_null();
    json_t *made = json_string(value);
    return made != NULL ? made : json_null();
}

static void
put_real(builder *b, json_t *object, const char *key, double value)
{
    put(b, object, key, tti_json_real(value));
}

static void
put_integer(builder *b, json_t *object, const char *key, int64_t value)
{
    put(b, object, key, integer(value));
}

static void
put_string(builder *b, json_t *object, const char *key, const char *value)
{
    put(b, object, key, string(value));
}

// ---- parts
// ---------------------------------------------------------------------------------------

json_t *
tti_json_knob_value(const tt_store_knob *knob, double value)
{
    char text[64];
    if (isnan(value))
        return json_null();
    const char *kind = knob->kind != NULL ? knob->kind : "";
    if (strcmp(kind, "bool") == 0)
        return json_boolean(value != 0);
    if (strcmp(kind, "int") == 0 && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    if (strcmp(kind, "enum") == 0)
        return string(tti_format_value(knob, value, 1, text, sizeof text));
    return tti_json_real(value);
}

static json_t *
setting_object(builder *b, const tti_setting *setting)
{
    if (setting == NULL)
        return json_null();
    json_t *object = json_object();
    for (size_t i = 0; i < b->report->knobs.count; i++) {
        const tt_store_knob *knob = TTI_AT(b->report->knobs, tt_store_knob, i);
        put(b, object, knob->id, tti_json_knob_value(knob, setting->values[i]));
    }
    return object;
}

// Of the model that is saved; null without validation rows.
static json_t *
validation_object(builder *b)
{
    const tti_report *r = b->report;
    const tt_store_validation *row = tti_report_validation(r),
                              *best = tti_report_best_validation(r);
    if (row == NULL)
        return json_null();
    json_t *o = json_object();
    put_real(b, o, "loss", row->loss);
    put_real(b, o, "accuracy", row->accuracy);
    put_real(b, o, "auc", row->auc);
    put_real(b, o, "prior_loss", row->prior_loss);
    put_real(b, o, "epoch", row->epoch);
    put_integer(b, o, "evaluations", (int64_t)r->validations.count);
    put_real(b, o, "best_loss", best != NULL ? best->loss : (double)NAN);
    put_real(b, o, "best_epoch", best != NULL ? best->epoch : (double)NAN);
    return o;
}

static json_t *
run_object(builder *b)
{
    const tti_report *r = b->report;
    const tt_store_run *run = &r->run;
    if (!r->has_run)
        return json_null();
    json_t *o = json_object();
    put_string(b, o, "id", run->id);
    put_string(b, o, "name", run->name);
    put_string(b, o, "program_version", run->program_version);
    put_integer(b, o, "started_at", run->started_at);
    put_integer(b, o, "updated_at", r->updated_at);
    put(b, o, "seed", json_integer((json_int_t)run->seed));
    put_string(b, o, "engine", run->engine);
    put_string(b, o, "tuner", run->tuner);
    put_string(b, o, "driver", run->driver);
    put_string(b, o, "consistency", run->consistency);
    put_integer(b, o, "nodes", run->nodes);
    put_string(b, o, "model", run->model);
    put_integer(b, o, "data_rows", run->data_rows);
    put_integer(b, o, "data_features", run->data_features);
    put_real(b, o, "target_loss", run->target_loss);
    put_string(b, o, "status", run->status);
    put_string(b, o, "stop_reason", run->stop_reason);
    put_string(b, o, "started_from", run->started_from);
    put_real(b, o, "loss", run->loss);
    put_real(b, o, "objective", run->objective);
    put_integer(b, o, "iterations", r->iterations);
    put_real(b, o, "epochs", run->epochs);
    put_real(b, o, "train_seconds", r->elapsed_s);
    put_real(b, o, "wall_seconds", run->wall_seconds);
    put_real(b, o, "examples_per_second", run->examples_per_second);
    put_integer(b, o, "generations", run->generations);
    json_t *test = json_object();
    for (size_t i = 0; i < r->metrics.count; i++) {
        const tti_metric *metric = TTI_AT(r->metrics, tti_metric, i);
        put_real(b, test, metric->name, metric->value);
    }
    put(b, o, "test", test);
    put(b, o, "validation", validation_object(b));
    return o;
}

static json_t *
verdict_object(builder *b)
{
    static const char *const bases[] = {"none", "measured", "start_rate"};
    static const char *const worths[] = {"unknown", "yes", "no", "even"};
    tti_verdict v;
    tti_report_judge(b->report, &v);
    json_t *o = json_object();
    put_string(b, o, "basis", bases[v.basis]);
    put_string(b, o, "worth", worths[v.worth]);
    put(b, o, "in_progress", json_boolean(v.in_progress));
    put_real(b, o, "tuned_seconds", v.tuned_s);
    put_real(b, o, "untuned_seconds", v.untuned_s);
    put_real(b, o, "untuned_seconds_low", v.untuned_low_s);
    put_real(b, o, "untuned_seconds_high", v.untuned_high_s);
    put_real(b, o, "saved_seconds", v.saved_s);
    put_real(b, o, "speedup", v.speedup);
    put_string(b, o, "why_none", v.why_none);
    return o;
}

static json_t *
time_object(builder *b)
{
    const tti_report *r = b->report;
    json_t *o = json_object();
    for (int i = 0; i < TTI_PHASES; i++) {
        char key[40];
        (void)snprintf(key, sizeof key, "%s_seconds", tt_store_phase_text((tt_store_phase)i));
        put_real(b, o, key, r->phase_s[i]);
    }
    put_real(b, o, "lost_exploring_seconds", r->lost_exploring_s);
    put_real(b, o, "lost_reconfiguring_seconds", r->lost_moving_s);
    return o;
}

static json_t *
knobs_array(builder *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->report->knobs.count; i++) {
        const tt_store_knob *k = TTI_AT(b->report->knobs, tt_store_knob, i);
        json_t *o = json_object();
        put_string(b, o, "id", k->id);
        put_string(b, o, "kind", k->kind);
        put_string(b, o, "unit", k->unit);
        put(b, o, "min", tti_json_knob_value(k, k->min));
        put(b, o, "max", tti_json_knob_value(k, k->max));
        put(b, o, "start", tti_json_knob_value(k, k->start));
        put(b, o, "fixed", json_boolean(k->fixed));
        put_string(b, o, "reason", k->reason);
        put_string(b, o, "effect", k->effect);
        put_string(b, o, "scale", k->scale);
        push(b, array, o);
    }
    return array;
}

static json_t *
settings_array(builder *b)
{
    const tti_report *r = b->report;
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    json_t *array = json_array();
    for (size_t i = 0; i < r->settings.count; i++) {
        const tti_setting *s = TTI_AT(r->settings, tti_setting, i);
        json_t *o = json_object();
        put_integer(b, o, "id", s->id);
        put(b, o, "values", setting_object(b, s));
        put_integer(b, o, "windows", s->windows);
        put(b, o, "abandoned", json_boolean(s->abandoned > 0));
        put_real(b, o, "seconds", s->seconds);
        put_real(b, o, "seconds_per_iteration", s->seconds_per_iteration);
        put_real(b, o, "speed_ratio",
                 start != NULL ? start->seconds_per_iteration / s->seconds_per_iteration
                               : (double)NAN);
        push(b, array, o);
    }
    return array;
}

static json_t *
proposals_array(builder *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->report->proposals.count; i++) {
        const tt_store_proposal *p = TTI_AT(b->report->proposals, tt_store_proposal, i);
        json_t *o = json_object();
        put_real(b, o, "time_s", p->time_s);
        put_string(b, o, "phase", p->phase);
        put_string(b, o, "decision", p->decision);
        put_integer(b, o, "setting", p->setting);
        put_integer(b, o, "current_setting", p->current_setting);
        put_real(b, o, "log_ratio", p->log_ratio);
        put_real(b, o, "log_ratio_sd", p->log_ratio_sd);
        put_real(b, o, "ei_seconds", p->ei_seconds);
        put_real(b, o, "cost_seconds", p->cost_seconds);
        put_real(b, o, "remaining_seconds", p->remaining_s);
        put_string(b, o, "reason", p->reason);
        put_real(b, o, "realised_gain_seconds", p->realised_gain_s);
        put_real(b, o, "predicted_seconds", p->predicted_s);
        put_real(b, o, "guard_left_seconds", p->guard_left_s);
        put_string(b, o, "proposed", p->proposed);
        put_real(b, o, "realised_ratio", p->realised_ratio);
        push(b, array, o);
    }
    return array;
}

static json_t *
moves_array(builder *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->report->moves.count; i++) {
        const tt_store_reconfiguration *m = TTI_AT(b->report->moves, tt_store_reconfiguration, i);
        json_t *o = json_object();
        put_integer(b, o, "generation", m->generation);
        put_integer(b, o, "from_setting", m->from_setting);
        put_integer(b, o, "to_setting", m->to_setting);
        put_string(b, o, "kind", m->kind);
        put_string(b, o, "method", m->method);
        put_real(b, o, "start_s", m->start_s);
        put_real(b, o, "duration_seconds", m->duration_s);
        put_real(b, o, "lost_seconds", m->lost_s);
        put_integer(b, o, "partitions_moved", m->partitions_moved);
        put_integer(b, o, "bytes_carried", m->bytes_carried);
        put_integer(b, o, "bytes_drained", m->bytes_drained);
        put_real(b, o, "last_key_live_seconds", m->last_key_live_s);
        put_integer(b, o, "iterations_during", m->iterations_during);
        put_real(b, o, "longest_wait_seconds", m->longest_wait_s);
        put_real(b, o, "checkpoint_seconds", m->checkpoint_s);
        put_real(b, o, "restart_seconds", m->restart_s);
        put_real(b, o, "model_seconds", m->model_s);
        put_real(b, o, "data_seconds", m->data_s);
        push(b, array, o);
    }
    return array;
}

static json_t *
windows_array(builder *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->report->windows.count; i++) {
        const tt_store_window *w = TTI_AT(b->report->windows, tt_store_window, i);
        json_t *o = json_object();
        put_integer(b, o, "setting", w->setting);
        put_integer(b, o, "generation", w->generation);
        put_string(b, o, "phase", tt_store_phase_text(w->phase));
        put_integer(b, o, "first_iteration", w->first_iteration);
        put_integer(b, o, "last_iteration", w->last_iteration);
        put_real(b, o, "start_s", w->start_s);
        put_real(b, o, "end_s", w->end_s);
        put_integer(b, o, "kept", w->kept);
        put_real(b, o, "seconds_per_iteration", w->seconds_per_iteration);
        put_real(b, o, "loss_before", w->loss_before);
        put_real(b, o, "loss_after", w->loss_after);
        put(b, o, "abandoned", json_boolean(w->abandoned));
        push(b, array, o);
    }
    return array;
}

static json_t *
loss_object(builder *b)
{
    const tti_report *r = b->report;
    json_t *o = json_object(), *evaluations = json_array(), *samples = json_array(),
           *validation = json_array();
    for (size_t i = 0; i < r->progress.count; i++) {
        const tt_store_progress *row = TTI_AT(r->progress, tt_store_progress, i);
        json_t *point = json_object();
        put_real(b, point, "time_s", row->time_s);
        put_integer(b, point, "iteration", row->iteration);
        put_real(b, point, "epoch", row->epoch);
        put_real(b, point, "loss", row->loss);
        put_real(b, point, "objective", row->objective);
        push(b, evaluations, point);
    }
    for (size_t i = 0; i < r->validations.count; i++) {
        const tt_store_validation *row = TTI_AT(r->validations, tt_store_validation, i);
        json_t *point = json_object();
        put_real(b, point, "time_s", row->time_s);
        put_integer(b, point, "iteration", row->iteration);
        put_real(b, point, "epoch", row->epoch);
        put_real(b, point, "loss", row->loss);
        push(b, validation, point);
    }
    for (int i = 0; i < TTI_CURVE_BINS; i++) {
        if (!isfinite(r->curve_loss[i]))
            continue;
        json_t *point = json_object();
        put_real(b, point, "time_s", r->curve_end_s * (i + 0.5) / TTI_CURVE_BINS);
        put_real(b, point, "loss", r->curve_loss[i]);
        push(b, samples, point);
    }
    put(b, o, "evaluations", evaluations);
    put(b, o, "validation", validation);
    put(b, o, "minibatch", samples);
    put_integer(b, o, "not_finite", r->not_finite);
    return o;
}

static json_t *
events_array(builder *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->report->events.count; i++) {
        const tti_event_row *event = TTI_AT(b->report->events, tti_event_row, i);
        json_t *o = json_object();
        put_real(b, o, "time_s", event->time_s);
        put_string(b, o, "level", event->level);
        put_string(b, o, "text", event->text);
        push(b, array, o);
    }
    return array;
}

static json_t *
report_object(builder *b)
{
    const tti_report *r = b->report;
    json_t *o = json_object();
    put(b, o, "report_version", json_integer(1));
    put(b, o, "run", run_object(b));
    put(b, o, "verdict", verdict_object(b));
    put(b, o, "time", time_object(b));
    put_integer(b, o, "start_setting", r->run.start_setting);
    put_integer(b, o, "final_setting", r->current_setting);
    put(b, o, "start", setting_object(b, tti_report_setting(r, r->run.start_setting)));
    put(b, o, "final", setting_object(b, tti_report_setting(r, r->current_setting)));
    put(b, o, "knobs", knobs_array(b));
    put(b, o, "settings", settings_array(b));
    put(b, o, "windows", windows_array(b));
    put(b, o, "proposals", proposals_array(b));
    put(b, o, "reconfigurations", moves_array(b));
    put(b, o, "loss", loss_object(b));
    put(b, o, "events", events_array(b));
    return o;
}

tt_status
tt_report_json(const char *run, FILE *out, tt_error *err)
{
    tti_report report;
    tt_status status = tti_report_load(&report, run, err);
    if (status == TT_OK) {
        builder b = {.report = &report};
        json_t *object = report_object(&b);
        if (b.failed || object == NULL)
            status = tt_error_set(err, TT_NOMEM, run, NULL, "no memory for the report");
        else if (json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0 ||
                 fputc('\n', out) == EOF || fflush(out) != 0)
            status = tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                                  "cannot write the report");
        json_decref(object);
    }
    tti_report_fini(&report);
    return status;
}
