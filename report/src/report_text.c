// The report for a terminal: verdict first, then what it rests on.
#include "explain.h"
#include "tt/core_clock.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 60, STALE_S = 60 };

// ---- how to print
// --------------------------------------------------------------------------------

static int
is_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < TT_COUNT_OF(names); i++) {
        const char *value = getenv(names[i]); // set before threads start
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return 0;
}

void
tt_report_options_detect(FILE *out, tt_report_options *options)
{
    *options = (tt_report_options){.utf8 = is_utf8_locale()};
    int descriptor = fileno(out);
    int terminal = descriptor >= 0 && isatty(descriptor);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    int dumb = term == NULL || strcmp(term, "dumb") == 0;
    options->color = terminal && !dumb && (no_color == NULL || no_color[0] == '\0');
    struct winsize window;
    if (terminal && ioctl(descriptor, TIOCGWINSZ, &window) == 0)
        options->width = window.ws_col;
}

static const char *
style_code(tti_style style)
{
    static const char *const codes[] = {"",         "\033[1m",  "\033[32m",
                                        "\033[33m", "\033[31m", "\033[2m"};
    return codes[style];
}

void
tti_print_styled(const tti_printer *p, tti_style style, const char *text)
{
    if (p->options.color && style != TTI_PLAIN)
        (void)fprintf(p->out, "%s%s\033[0m", style_code(style), text);
    else
        (void)fputs(text, p->out);
}

void
tti_print_heading(const tti_printer *p, const char *text)
{
    (void)fputc('\n', p->out);
    tti_print_styled(p, TTI_BOLD, text);
    (void)fputc('\n', p->out);
}

// Columns of a word: continuation bytes of UTF-8 take none.
static int
word_columns(const char *word, size_t bytes)
{
    int columns = 0;
    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

void
tti_print_folded(const tti_printer *p, int column, int indent, const char *text)
{
    int fresh = 1; // no space before the first word of a line
    while (*(text += strspn(text, " \n\t")) != '\0') {
        size_t length = strcspn(text, " \n\t");
        int columns = word_columns(text, length);
        if (!fresh && column + 1 + columns > p->options.width) {
            (void)fprintf(p->out, "\n%*s", indent, "");
            column = indent;
            fresh = 1;
        }
        // Control characters of a text from elsewhere must not reach the terminal.
        if (!fresh)
            (void)fputc(' ', p->out);
        for (size_t i = 0; i < length; i++)
            (void)fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], p->out);
        column += columns + !fresh;
        fresh = 0;
        text += length;
    }
    (void)fputc('\n', p->out);
}

// ---- head
// ----------------------------------------------------------------------------------------

static void
print_job(const tti_printer *p)
{
    const tt_store_run *run = &p->report->run;
    char line[512] = "", number[40];
    if (run->model != NULL)
        tti_append(line, sizeof line, "%s, ", run->model);
    if (run->data_rows >= 0)
        tti_append(line, sizeof line, "%s rows, ",
                   tti_format_count((double)run->data_rows, number, sizeof number));
    if (run->data_features >= 0)
        tti_append(line, sizeof line, "%s features, ",
                   tti_format_count((double)run->data_features, number, sizeof number));
    if (run->nodes >= 0)
        tti_append(line, sizeof line, "%lld nodes%s%s, ", (long long)run->nodes,
                   run->engine != NULL ? " on engine " : "",
                   run->engine != NULL ? run->engine : "");
    if (run->driver != NULL)
        tti_append(line, sizeof line, "driver %s, ", run->driver);
    if (run->consistency != NULL)
        tti_append(line, sizeof line, "%s, ", run->consistency);
    tti_append(line, sizeof line, "seed %llu", (unsigned long long)run->seed);
    if (run->tuner != NULL)
        tti_append(line, sizeof line, ", tuner: %s", run->tuner);
    (void)fputs("  ", p->out);
    tti_print_folded(p, 2, 2, line);
    if (run->engine != NULL && strcmp(run->engine, "simulated") == 0)
        (void)fputs("  all times are simulated seconds\n", p->out);
}

static tti_style
status_style(const char *status)
{
    if (strcmp(status, "converged") == 0)
        return TTI_GREEN;
    return strcmp(status, "failed") == 0 ? TTI_RED : TTI_YELLOW;
}

static void
append_validation(const tti_report *r, char *line, size_t size)
{
    const tt_store_validation *row = tti_report_validation(r),
                              *best = tti_report_best_validation(r);
    if (row == NULL)
        return;
    tti_append(line, size, ". Validation loss %.4g", row->loss);
    if (isfinite(row->accuracy))
        tti_append(line, size, ", accuracy %.4g", row->accuracy);
    tti_append(line, size, " at epoch %.1f (the classes' shares alone: loss %.4g)", row->epoch,
               row->prior_loss);
    if (best != NULL && best != row)
        tti_append(line, size, ", the best of %zu evaluations %.4g at epoch %.1f",
                   r->validations.count, best->loss, best->epoch);
    else
        tti_append(line, size, ", the best of %zu evaluations", r->validations.count);
}

static void
print_outcome(const tti_printer *p)
{
    const tti_report *r = p->report;
    const tt_store_run *run = &r->run;
    const char *status = run->status != NULL ? run->status : "status not known";
    char line[900] = ": ", number[40];
    if (run->stop_reason != NULL && run->stop_reason[0] != '\0')
        tti_append(line, sizeof line, "%.400s; ", run->stop_reason);
    if (isnan(tti_report_last_loss(r)))
        tti_append(line, sizeof line, "loss not measured");
    else
        tti_append(line, sizeof line, "loss %.4g", tti_report_last_loss(r));
    if (isfinite(run->target_loss))
        tti_append(line, sizeof line, " (target %.4g)", run->target_loss);
    tti_append(line, sizeof line, " after %s",
               tti_format_time(r->elapsed_s, number, sizeof number));
    if (isfinite(run->epochs))
        tti_append(line, sizeof line, ", %.3g epochs", run->epochs);
    if (r->iterations >= 0)
        tti_append(line, sizeof line, ", %s iterations",
                   tti_format_count((double)r->iterations, number, sizeof number));
    if (isfinite(run->examples_per_second))
        tti_append(line, sizeof line, ", %s examples/s",
                   tti_format_count(run->examples_per_second, number, sizeof number));
    for (size_t i = 0; i < r->metrics.count; i++) {
        const tti_metric *metric = TTI_AT(r->metrics, tti_metric, i);
        tti_append(line, sizeof line, "%s %s %.4g", i == 0 ? ". Test" : ",", metric->name,
                   metric->value);
    }
    append_validation(r, line, sizeof line);
    tti_print_styled(p, status_style(status), status);
    tti_print_folded(p, (int)strlen(status), 2, line);
}

// What earlier runs gave it.
static void
print_origin(const tti_printer *p)
{
    char line[700];
    if (p->report->run.started_from == NULL)
        return;
    (void)snprintf(line, sizeof line, "It %.600s.", p->report->run.started_from);
    (void)fputs("  ", p->out);
    tti_print_folded(p, 2, 2, line);
}

static void
print_silence(const tti_printer *p)
{
    const tti_report *r = p->report;
    int64_t now = p->options.now_at > 0 ? p->options.now_at : tt_clock_wall_seconds();
    int64_t age = r->updated_at > 0 ? now - r->updated_at : 0;
    if (!p->verdict.in_progress || age < STALE_S)
        return;
    char text[240], number[40];
    (void)snprintf(
        text, sizeof text,
        "It says it is running, but wrote nothing for %s: it may have been killed. What it "
        "wrote until then is below.",
        tti_format_time((double)age, number, sizeof number));
    tti_print_folded(p, 0, 2, text);
}

static void
print_faults(const tti_printer *p)
{
    const tti_report *r = p->report;
    enum { SHOWN = 6 };
    size_t total = 0, shown = 0;
    for (size_t i = 0; i < r->events.count; i++) {
        const tti_event_row *event = TTI_AT(r->events, tti_event_row, i);
        int serious = event->level != NULL && strcmp(event->level, "info") != 0;
        total += serious && event->text != NULL;
    }
    if (total == 0)
        return;
    tti_print_heading(p, "Warnings and errors");
    size_t skip = !p->options.all && total > SHOWN ? total - SHOWN : 0;
    for (size_t i = 0; i < r->events.count; i++) {
        const tti_event_row *event = TTI_AT(r->events, tti_event_row, i);
        if (event->level == NULL || strcmp(event->level, "info") == 0 || event->text == NULL)
            continue;
        if (shown++ < skip)
            continue;
        char clock[40];
        (void)fprintf(p->out, "  %8s  %-7s  ", tti_format_clock(event->time_s, clock, sizeof clock),
                      event->level);
        tti_print_folded(p, 21, 21, event->text);
    }
    if (skip > 0)
        (void)fprintf(p->out, "  and %zu before these (all: trimtab report --all)\n", skip);
}

// ---- the whole
// -----------------------------------------------------------------------------------

void
tti_print_head(const tti_printer *p)
{
    const tt_store_run *run = &p->report->run;
    (void)fputs("run ", p->out);
    tti_print_styled(p, TTI_BOLD, run->id != NULL ? run->id : "?");
    (void)fprintf(p->out, "   %s\n", run->name != NULL ? run->name : "");
    print_job(p);
    print_outcome(p);
    print_origin(p);
    print_silence(p);
}

static tt_status
print_report(const tti_printer *p, tt_error *err)
{
    TT_UNUSED(err);
    tti_print_head(p);
    tti_print_verdict(p);
    tti_print_settings(p);
    tti_print_decisions(p);
    tti_print_moves(p);
    tti_print_curve(p);
    print_faults(p);
    tti_print_next(p);
    return TT_OK;
}

static tt_status
print_explanation(const tti_printer *p, tt_error *err)
{
    tti_explanation explanation;
    TT_TRY(tti_explain(p->report, &explanation, err));
    tti_print_explanation(p, &explanation);
    tti_explain_fini(&explanation);
    return TT_OK;
}

// Loads the run and prints it with `print`.
static tt_status
print_run(const char *run,
          FILE *out,
          const tt_report_options *options,
          tt_status (*print)(const tti_printer *p, tt_error *err),
          tt_error *err)
{
    tti_report report;
    tt_status status = tti_report_load(&report, run, err);
    if (status == TT_OK) {
        tti_printer p = {.out = out, .report = &report, .options = *options};
        if (p.options.width == 0)
            p.options.width = WIDTH_DEFAULT;
        p.options.width = TT_MAX(p.options.width, WIDTH_MIN);
        tti_report_judge(&report, &p.verdict);
        if (report.has_run)
            status = print(&p, err);
        else
            (void)fprintf(out,
                          "%s: this run wrote nothing down: it ended before its first commit.\n"
                          "\nRun it again: trimtab run job.yaml\n",
                          run);
        if (status == TT_OK && (fflush(out) != 0 || ferror(out)))
            status = tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                                  "cannot write the report");
    }
    tti_report_fini(&report);
    return status;
}

tt_status
tt_report_text(const char *run, FILE *out, const tt_report_options *options, tt_error *err)
{
    return print_run(run, out, options, print_report, err);
}

tt_status
tt_report_explain(const char *run, FILE *out, const tt_report_options *options, tt_error *err)
{
    return print_run(run, out, options, print_explanation, err);
}
