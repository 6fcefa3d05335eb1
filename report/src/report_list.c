// Several runs, a line each.
#include "report_model.h"
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { NAME_COLUMNS = 44 };

static const char *
name_of(const char *run)
{
    const char *slash = strrchr(run, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : run;
}

// ---- text -------------------------------------------------------------------------------------

static void
print_heads(FILE *out)
{
    (void)fprintf(out, "%-*s  %-16s  %-11s  %9s  %9s  %s\n", NAME_COLUMNS, "run", "started",
                  "status", "time", "loss", "tuning");
}

static void
format_started(int64_t seconds, char *out, size_t size)
{
    time_t when = (time_t)seconds;
    struct tm local;
    if (seconds <= 0 || localtime_r(&when, &local) == NULL ||
        strftime(out, size, "%Y-%m-%d %H:%M", &local) == 0)
        (void)snprintf(out, size, "?");
}

static void
format_worth(const tti_verdict *v, char *out, size_t size)
{
    if (v->basis == TTI_BASIS_NONE)
        (void)snprintf(out, size, "-");
    else
        (void)snprintf(out, size, "%.2fx%s", v->speedup,
                       v->basis == TTI_BASIS_MEASURED ? " (measured)" : "");
}

static void
print_line(FILE *out, const char *run, const tti_report *r)
{
    char started[40], time[40], loss[32] = "?", worth[40];
    tti_verdict verdict;
    tti_report_judge(r, &verdict);
    format_started(r->has_run ? r->run.started_at : 0, started, sizeof started);
    if (isfinite(tti_report_last_loss(r)))
        (void)snprintf(loss, sizeof loss, "%.4g", tti_report_last_loss(r));
    format_worth(&verdict, worth, sizeof worth);
    (void)fprintf(out, "%-*s  %-16s  %-11s  %9s  %9s  %s\n", NAME_COLUMNS, name_of(run), started,
                  r->run.status != NULL ? r->run.status : "empty",
                  tti_format_time(r->elapsed_s, time, sizeof time), loss, worth);
}

// ---- JSON -------------------------------------------------------------------------------------

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
word(const char *text)
{
    return text != NULL ? json_stringn_nocheck(text, strlen(text)) : json_null();
}

static json_t *
entry_of(const char *run, const tti_report *r)
{
    tti_verdict v;
    tti_report_judge(r, &v);
    return json_pack("{s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:b}", "run", run, "name",
                     word(r->run.name), "status", word(r->run.status), "started_at",
                     (json_int_t)(r->has_run ? r->run.started_at : 0), "seconds",
                     number(r->elapsed_s), "loss", number(tti_report_last_loss(r)), "target_loss",
                     number(r->run.target_loss), "speedup", number(v.speedup), "speedup_measured",
                     v.basis == TTI_BASIS_MEASURED);
}

static json_t *
unreadable(const char *run, const tt_error *err)
{
    return json_pack("{s:s, s:s}", "run", run, "error", err->what);
}

static tt_status
print_json(json_t *list, FILE *out, tt_error *err)
{
    int failed = json_dumpf(list, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0 ||
                 fputc('\n', out) == EOF;
    return failed ? tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                                 "cannot write the list of runs")
                  : TT_OK;
}

tt_status
tt_report_list(const char *const *runs, size_t count, int json, FILE *out, tt_error *err)
{
    json_t *list = json ? json_array() : NULL;
    if (!json && count > 0)
        print_heads(out);
    for (size_t i = 0; i < count; i++) {
        tti_report report;
        tt_error fault = {0};
        tt_status status = tti_report_load(&report, runs[i], &fault);
        if (json)
            (void)json_array_append_new(list, status == TT_OK ? entry_of(runs[i], &report)
                                                              : unreadable(runs[i], &fault));
        else if (status == TT_OK)
            print_line(out, runs[i], &report);
        else
            (void)fprintf(out, "%-*s  not readable: %s\n", NAME_COLUMNS, name_of(runs[i]),
                          fault.what);
        tti_report_fini(&report);
    }
    tt_status status = json ? print_json(list, out, err) : TT_OK;
    json_decref(list);
    return status;
}
