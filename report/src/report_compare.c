// Two runs side by side: what differs in the job, what came out, and which was faster to the same
// loss.
#include "report_model.h"
#include <math.h>
#include <string.h>

enum { LABEL_COLUMNS = 22, VALUE_COLUMNS = 28 };

typedef struct pair {
    tti_report run[2];
    double common_loss; // the worse of both ends; NAN: not known
    double seconds[2];  // until it was reached; NAN
} pair;

// ---- the same loss ----------------------------------------------------------------------------

static double
best_loss(const tti_report *r)
{
    double best = isfinite(r->run.loss) ? r->run.loss : INFINITY;
    for (size_t i = 0; i < r->progress.count; i++)
        best = fmin(best, TTI_AT(r->progress, tt_store_progress, i)->loss);
    return isfinite(best) ? best : (double)NAN;
}

// When a full evaluation first showed the loss: an upper bound, for they are some time apart.
static double
seconds_until(const tti_report *r, double loss)
{
    for (size_t i = 0; i < r->progress.count; i++) {
        const tt_store_progress *row = TTI_AT(r->progress, tt_store_progress, i);
        if (row->loss <= loss)
            return row->time_s;
    }
    return r->run.loss <= loss ? r->elapsed_s : (double)NAN;
}

static void
find_common(pair *p)
{
    p->common_loss = fmax(best_loss(&p->run[0]), best_loss(&p->run[1]));
    if (isnan(best_loss(&p->run[0])) || isnan(best_loss(&p->run[1])))
        p->common_loss = (double)NAN;
    for (int i = 0; i < 2; i++)
        p->seconds[i] =
            isnan(p->common_loss) ? p->common_loss : seconds_until(&p->run[i], p->common_loss);
}

// ---- text -------------------------------------------------------------------------------------

static void
print_row(FILE *out, const char *label, const char *a, const char *b, double ratio)
{
    (void)fprintf(out, "  %-*s%-*s%-*s", LABEL_COLUMNS, label, VALUE_COLUMNS, a, VALUE_COLUMNS, b);
    if (isfinite(ratio))
        (void)fprintf(out, "%.2f", ratio);
    (void)fputc('\n', out);
}

static void
words_row(FILE *out, const char *label, const char *a, const char *b)
{
    print_row(out, label, a != NULL ? a : "?", b != NULL ? b : "?", (double)NAN);
}

static void
counts_row(FILE *out, const char *label, double a, double b)
{
    char x[40], y[40];
    print_row(out, label, tti_format_count(a, x, sizeof x), tti_format_count(b, y, sizeof y),
              b / a);
}

static void
times_row(FILE *out, const char *label, double a, double b)
{
    char x[40], y[40];
    print_row(out, label, tti_format_time(a, x, sizeof x), tti_format_time(b, y, sizeof y), b / a);
}

static void
numbers_row(FILE *out, const char *label, double a, double b)
{
    char x[40], y[40];
    (void)snprintf(x, sizeof x, isnan(a) ? "?" : "%.5g", a);
    (void)snprintf(y, sizeof y, isnan(b) ? "?" : "%.5g", b);
    print_row(out, label, x, y, b / a);
}

// A count that is part of the job: its ratio means nothing.
static void
same_row(FILE *out, const char *label, double a, double b)
{
    char x[40], y[40];
    print_row(out, label, tti_format_count(a, x, sizeof x), tti_format_count(b, y, sizeof y),
              (double)NAN);
}

static void
print_job(FILE *out, const pair *p)
{
    const tt_store_run *a = &p->run[0].run, *b = &p->run[1].run;
    words_row(out, "job", a->name, b->name);
    words_row(out, "model", a->model, b->model);
    same_row(out, "rows", (double)a->data_rows, (double)b->data_rows);
    same_row(out, "features", (double)a->data_features, (double)b->data_features);
    same_row(out, "nodes", (double)a->nodes, (double)b->nodes);
    words_row(out, "driver", a->driver, b->driver);
    words_row(out, "consistency", a->consistency, b->consistency);
    same_row(out, "seed", (double)a->seed, (double)b->seed);
    char x[40], y[40];
    (void)snprintf(x, sizeof x, isnan(a->target_loss) ? "none" : "%.5g", a->target_loss);
    (void)snprintf(y, sizeof y, isnan(b->target_loss) ? "none" : "%.5g", b->target_loss);
    words_row(out, "target loss", x, y);
}

static double
metric_of(const tti_report *r, const char *name)
{
    for (size_t i = 0; i < r->metrics.count; i++) {
        const tti_metric *metric = TTI_AT(r->metrics, tti_metric, i);
        if (strcmp(metric->name, name) == 0)
            return metric->value;
    }
    return (double)NAN;
}

static double
per_iteration(const tti_report *r)
{
    return r->iterations > 0 ? r->elapsed_s / (double)r->iterations : (double)NAN;
}

static void
print_result(FILE *out, const pair *p)
{
    const tti_report *a = &p->run[0], *b = &p->run[1];
    words_row(out, "status", a->run.status, b->run.status);
    times_row(out, "time", a->elapsed_s, b->elapsed_s);
    counts_row(out, "iterations", (double)a->iterations, (double)b->iterations);
    numbers_row(out, "epochs", a->run.epochs, b->run.epochs);
    times_row(out, "time an iteration", per_iteration(a), per_iteration(b));
    counts_row(out, "examples a second", a->run.examples_per_second, b->run.examples_per_second);
    numbers_row(out, "training loss", a->run.loss, b->run.loss);
    for (size_t i = 0; i < a->metrics.count; i++) {
        const tti_metric *metric = TTI_AT(a->metrics, tti_metric, i);
        char label[80];
        (void)snprintf(label, sizeof label, "test %.60s", metric->name);
        numbers_row(out, label, metric->value, metric_of(b, metric->name));
    }
    counts_row(out, "settings tried", (double)a->settings.count, (double)b->settings.count);
    times_row(out, "lost exploring", a->lost_exploring_s, b->lost_exploring_s);
    times_row(out, "lost moving", a->lost_moving_s, b->lost_moving_s);
}

static double
knob_value(const tti_report *r, const char *id, const tt_store_knob **knob)
{
    const tti_setting *setting = tti_report_setting(r, r->current_setting);
    for (size_t i = 0; setting != NULL && i < r->knobs.count; i++) {
        *knob = TTI_AT(r->knobs, tt_store_knob, i);
        if (strcmp((*knob)->id, id) == 0)
            return setting->values[i];
    }
    return (double)NAN;
}

static void
print_setting(FILE *out, const pair *p)
{
    const tti_report *a = &p->run[0];
    for (size_t i = 0; i < a->knobs.count; i++) {
        const tt_store_knob *knob = NULL;
        const char *id = TTI_AT(a->knobs, tt_store_knob, i)->id;
        char text[2][64] = {"-", "-"};
        for (int k = 0; k < 2; k++) {
            double value = knob_value(&p->run[k], id, &knob);
            if (!isnan(value))
                (void)tti_format_value(knob, value, 0, text[k], sizeof text[k]);
        }
        print_row(out, id, text[0], text[1], (double)NAN);
    }
}

static int
is_other_job(const pair *p)
{
    const tt_store_run *a = &p->run[0].run, *b = &p->run[1].run;
    int same_model = a->model != NULL && b->model != NULL && strcmp(a->model, b->model) == 0;
    return !same_model || a->data_rows != b->data_rows || a->data_features != b->data_features;
}

static void
print_verdict(FILE *out, const pair *p)
{
    char x[40], y[40];
    if (is_other_job(p)) {
        (void)fputs(
            "The two trained different models or data: their times and losses do not compare.\n",
            out);
        return;
    }
    if (!(p->seconds[0] > 0) || !(p->seconds[1] > 0)) {
        (void)fputs("It is not known when both had the same loss.\n", out);
        return;
    }
    (void)fprintf(out, "Loss %.4g was first seen after %s in A and after %s in B: ", p->common_loss,
                  tti_format_time(p->seconds[0], x, sizeof x),
                  tti_format_time(p->seconds[1], y, sizeof y));
    double ratio = p->seconds[0] / p->seconds[1];
    if (fabs(log(ratio)) < 0.02)
        (void)fputs("no difference worth the name.\n", out);
    else
        (void)fprintf(out, "%s was %.2f times as fast.\n", ratio > 1 ? "B" : "A",
                      fmax(ratio, 1 / ratio));
    (void)fputs(
        "Two runs of one job differ by some percent; compare several before believing a small "
        "difference.\n",
        out);
}

static void
print_text(FILE *out, const pair *p, const char *const *runs)
{
    (void)fprintf(out, "A  %s\nB  %s\n\n", runs[0], runs[1]);
    print_verdict(out, p);
    (void)fprintf(out, "\n  %-*s%-*s%-*sB/A\n", LABEL_COLUMNS, "Result", VALUE_COLUMNS, "A",
                  VALUE_COLUMNS, "B");
    print_result(out, p);
    (void)fputs("\n  Job\n", out);
    print_job(out, p);
    (void)fputs("\n  Setting at the end\n", out);
    print_setting(out, p);
}

tt_status
tt_report_compare(const char *const runs[2], FILE *out, tt_error *err)
{
    pair p;
    tt_status status = tti_report_load(&p.run[0], runs[0], err);
    if (status != TT_OK) {
        tti_report_fini(&p.run[0]);
        return status;
    }
    status = tti_report_load(&p.run[1], runs[1], err);
    for (int i = 0; status == TT_OK && i < 2; i++)
        if (!p.run[i].has_run)
            status = tt_error_set(err, TT_INVALID, runs[i], "compare runs that got further",
                                  "this run wrote nothing down");
    if (status == TT_OK) {
        find_common(&p);
        print_text(out, &p, runs);
        if (fflush(out) != 0 || ferror(out))
            status = tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                                  "cannot write the comparison");
    }
    tti_report_fini(&p.run[0]);
    tti_report_fini(&p.run[1]);
    return status;
}
