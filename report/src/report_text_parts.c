// The sections of the terminal report.
#include "report_model.h"
#include "tt/core_text.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 1200, DECISIONS_SHOWN = 8, SETTINGS_SHOWN = 14 };

// ---- verdict
// -------------------------------------------------------------------------------------

static const char *
headline(const tti_verdict *v)
{
    int measured = v->basis == TTI_BASIS_MEASURED;
    switch (v->worth) {
    case TTI_WORTH_YES:
        return measured ? "Yes" : "Probably yes";
    case TTI_WORTH_NO:
        return measured ? "No" : "Probably not";
    case TTI_WORTH_EVEN:
        return measured ? "It made no difference" : "It made no difference that can be told";
    case TTI_WORTH_UNKNOWN:
        break;
    }
    return "No verdict";
}

static tti_style
headline_style(tti_worth worth)
{
    return worth == TTI_WORTH_YES ? TTI_GREEN : worth == TTI_WORTH_NO ? TTI_RED : TTI_YELLOW;
}

static void
print_measured(const tti_printer *p, int column)
{
    const tti_verdict *v = &p->verdict;
    char text[TEXT_BYTES], a[40], b[40], c[40];
    (void)snprintf(text, sizeof text,
                   ": %s %s, %.2fx. Training took %s, without tuning it takes %s (measured).",
                   tti_format_time(fabs(v->saved_s), a, sizeof a),
                   v->saved_s >= 0 ? "saved" : "lost", v->speedup,
                   tti_format_time(v->tuned_s, b, sizeof b),
                   tti_format_time(v->untuned_s, c, sizeof c));
    tti_print_folded(p, column, 2, text);
}

static void
print_by_start_rate(const tti_printer *p, int column)
{
    const tti_report *r = p->report;
    const tti_verdict *v = &p->verdict;
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    char text[TEXT_BYTES], range[120] = "", a[40], b[40], c[40], d[40], e[40];
    if (isfinite(v->untuned_low_s))
        (void)snprintf(range, sizeof range, " (%s to %s)",
                       tti_format_time(v->untuned_low_s, a, sizeof a),
                       tti_format_time(v->untuned_high_s, b, sizeof b));
    (void)snprintf(
        text, sizeof text,
        "%s: about %s %s, about %.2fx. Training %s %s (measured); at the start setting's "
        "own measured rate of %s an iteration the same %s iterations take about %s%s. This "
        "was not measured: it supposes that as many iterations are needed.",
        v->in_progress ? ", so far" : "", tti_format_time(fabs(v->saved_s), a, sizeof a),
        v->saved_s >= 0 ? "saved" : "lost", v->speedup, v->in_progress ? "has taken" : "took",
        tti_format_time(v->tuned_s, b, sizeof b),
        tti_format_time(start->seconds_per_iteration, c, sizeof c),
        tti_format_count((double)r->iterations, d, sizeof d),
        tti_format_time(v->untuned_s, e, sizeof e), range);
    tti_print_folded(p, column, 2, text);
}

static void
print_price(const tti_printer *p)
{
    const tti_report *r = p->report;
    char text[TEXT_BYTES] = "", a[40], b[40], c[40];
    if (r->moves.count == 0 && !isfinite(r->lost_exploring_s))
        return;
    if (isfinite(r->lost_exploring_s))
        (void)snprintf(text, sizeof text,
                       "Its price, included above: %s of the %s spent trying settings, for those "
                       "were slower; %s moving.",
                       tti_format_time(r->lost_exploring_s, a, sizeof a),
                       tti_format_time(r->phase_s[TT_STORE_EXPLORE], b, sizeof b),
                       tti_format_time(r->lost_moving_s, c, sizeof c));
    else
        (void)snprintf(text, sizeof text, "Its price, included above: %s lost moving.",
                       tti_format_time(r->lost_moving_s, b, sizeof b));
    (void)fputs("  ", p->out);
    tti_print_folded(p, 2, 2, text);
}

static void
print_where_it_ended(const tti_printer *p)
{
    const tti_report *r = p->report;
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    const tti_setting *now = tti_report_setting(r, r->current_setting);
    if (now == NULL)
        return;
    char text[TEXT_BYTES], difference[1000];
    const char *verb = p->verdict.in_progress ? "It is in" : "It ended in";
    if (now == start)
        (void)snprintf(text, sizeof text, "%s the start setting (setting %" PRId64 "): %s.", verb,
                       now->id, tti_format_difference(r, NULL, now, difference, sizeof difference));
    else
        (void)snprintf(text, sizeof text, "%s setting %" PRId64 ". Changed from the start: %s.",
                       verb, now->id,
                       tti_format_difference(r, start, now, difference, sizeof difference));
    (void)fputs("  ", p->out);
    tti_print_folded(p, 2, 2, text);
}

static void
print_phase(const tti_printer *p, const char *name, double seconds, double total)
{
    if (!(seconds > 0))
        return;
    char time[40];
    double share = total > 0 ? TT_MIN(seconds / total, 1) : 0;
    int length = (int)lround(20 * share);
    (void)fprintf(p->out, "  %-22s %10s  ", name, tti_format_time(seconds, time, sizeof time));
    if (share < 0.005)
        (void)fputs(" <1 %", p->out);
    else
        (void)fprintf(p->out, "%3.0f %%", 100 * share);
    for (int i = 0; i < length; i++)
        (void)fputs(i == 0 ? "  #" : "#", p->out);
    (void)fputc('\n', p->out);
}

static void
print_phases(const tti_printer *p)
{
    const tti_report *r = p->report;
    double sum = 0;
    for (int i = 0; i < TTI_PHASES; i++)
        sum += r->phase_s[i];
    if (!(sum > 0))
        return;
    double total = isfinite(r->elapsed_s) ? TT_MAX(r->elapsed_s, sum) : sum;
    tti_print_heading(p, "Where the time went");
    print_phase(p, "start", r->phase_s[TT_STORE_START], total);
    print_phase(p, "exploring", r->phase_s[TT_STORE_EXPLORE], total);
    print_phase(p, "settled", r->phase_s[TT_STORE_SETTLED], total);
    print_phase(p, "tuning off", r->phase_s[TT_STORE_FIXED], total);
    print_phase(p, "between two settings", r->phase_s[TT_STORE_TRANSITION], total);
    // under a hundredth is the rounding of window ends
    if (total - sum > 0.01 * total)
        print_phase(p, "not measured", total - sum, total);
    if (r->moves.count > 0) {
        char time[40];
        (void)fprintf(p->out, "  reconfiguring lost %s of this, in %zu move%s\n",
                      tti_format_time(r->lost_moving_s, time, sizeof time), r->moves.count,
                      r->moves.count == 1 ? "" : "s");
    }
}

void
tti_print_worth(const tti_printer *p)
{
    const tti_verdict *v = &p->verdict;
    tti_print_heading(p, "Was tuning worth it");
    const char *words = headline(v);
    int column = 2 + (int)strlen(words);
    (void)fputs("  ", p->out);
    tti_print_styled(p, headline_style(v->worth), words);
    if (v->basis == TTI_BASIS_MEASURED)
        print_measured(p, column);
    else if (v->basis == TTI_BASIS_START_RATE)
        print_by_start_rate(p, column);
    else {
        char text[200];
        (void)snprintf(text, sizeof text, ": %s", v->why_none);
        tti_print_folded(p, column, 2, text);
    }
    print_price(p);
}

void
tti_print_verdict(const tti_printer *p)
{
    tti_print_worth(p);
    print_where_it_ended(p);
    print_phases(p);
}

// ---- settings
// ------------------------------------------------------------------------------------

static void
print_setting(const tti_printer *p, const tti_setting *s, const tti_setting *start)
{
    const tti_report *r = p->report;
    char rate[40] = "-", speed[40] = "-", time[40], note[1100], difference[1000];
    if (s->seconds_per_iteration > 0)
        (void)tti_format_time(s->seconds_per_iteration, rate, sizeof rate);
    if (s->seconds_per_iteration > 0 && start != NULL && start->seconds_per_iteration > 0)
        (void)snprintf(speed, sizeof speed, "%.2fx",
                       start->seconds_per_iteration / s->seconds_per_iteration);
    (void)fprintf(p->out, "  %7" PRId64 "  %7" PRId64 "  %11s  %6s  %10s  ", s->id, s->windows,
                  rate, speed, tti_format_time(s->seconds, time, sizeof time));
    const char *role = s == start ? "the start; " : "";
    const char *end = s->id != r->current_setting ? ""
                      : p->verdict.in_progress    ? "in force; "
                                                  : "the end; ";
    (void)snprintf(note, sizeof note, "%s%s%s%s", role, end, s->abandoned > 0 ? "abandoned; " : "",
                   s == start ? ""
                              : tti_format_difference(r, start, s, difference, sizeof difference));
    size_t length = strlen(note);
    if (length >= 2 && note[length - 2] == ';')
        note[length - 2] = '\0';
    tti_print_folded(p, 53, 53, note);
}

void
tti_print_settings(const tti_printer *p)
{
    const tti_report *r = p->report;
    size_t tried = 0, skipped = 0;
    for (size_t i = 0; i < r->settings.count; i++)
        tried += TTI_AT(r->settings, tti_setting, i)->windows > 0;
    if (tried == 0)
        return;
    char title[64];
    (void)snprintf(title, sizeof title, "Settings tried: %zu", tried);
    tti_print_heading(p, title);
    (void)fputs("  setting  windows  s/iteration   speed        time  against the start\n", p->out);
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    size_t row = 0;
    for (size_t i = 0; i < r->settings.count; i++) {
        const tti_setting *s = TTI_AT(r->settings, tti_setting, i);
        if (s->windows == 0)
            continue;
        int keep =
            p->options.all || row++ < SETTINGS_SHOWN || s == start || s->id == r->current_setting;
        if (keep)
            print_setting(p, s, start);
        skipped += !keep;
    }
    if (skipped > 0)
        (void)fprintf(p->out, "  and %zu more (all: trimtab report --all)\n", skipped);
}

// ---- decisions
// -----------------------------------------------------------------------------------

static void
print_decision(const tti_printer *p, const tt_store_proposal *d)
{
    char clock[40], gain[120] = "", setting[32] = "-", a[40], text[TEXT_BYTES];
    if (d->setting >= 0)
        (void)snprintf(setting, sizeof setting, "%" PRId64, d->setting);
    if (isfinite(d->realised_gain_s))
        (void)snprintf(gain, sizeof gain, " (measured: %s %s)",
                       tti_format_time(fabs(d->realised_gain_s), a, sizeof a),
                       d->realised_gain_s >= 0 ? "gained" : "lost");
    const char *reason = d->reason;
    char numbers[160] = "";
    if (reason == NULL || reason[0] == '\0') {
        char b[40];
        if (isfinite(d->ei_seconds))
            (void)snprintf(numbers, sizeof numbers, "expected to save about %s, cost about %s",
                           tti_format_time(d->ei_seconds, a, sizeof a),
                           tti_format_time(d->cost_seconds, b, sizeof b));
        reason = numbers;
    }
    (void)fprintf(p->out, "  %8s  %-9.9s %7s  ", tti_format_clock(d->time_s, clock, sizeof clock),
                  d->decision != NULL ? d->decision : "-", setting);
    (void)snprintf(text, sizeof text, "%.800s%s", reason, gain);
    tti_print_folded(p, 31, 31, text);
}

void
tti_print_decisions(const tti_printer *p)
{
    const tti_report *r = p->report;
    size_t count = r->proposals.count;
    if (count == 0)
        return;
    size_t first = p->options.all || count <= DECISIONS_SHOWN ? 0 : count - DECISIONS_SHOWN;
    char title[80];
    if (first > 0)
        (void)snprintf(title, sizeof title, "Decisions: the last %d of %zu", DECISIONS_SHOWN,
                       count);
    else
        (void)snprintf(title, sizeof title, "Decisions: %zu", count);
    tti_print_heading(p, title);
    (void)fputs("      time  decision  setting  why\n", p->out);
    for (size_t i = first; i < count; i++)
        print_decision(p, TTI_AT(r->proposals, tt_store_proposal, i));
}

// ---- moves
// ---------------------------------------------------------------------------------------

// Where the time of restarts went, on average.
static void
print_restarts(const tti_printer *p)
{
    const tti_report *r = p->report;
    double checkpoint = 0, restart = 0, model = 0, data = 0;
    int64_t count = 0;
    for (size_t i = 0; i < r->move_kinds.count; i++) {
        const tti_move_kind *k = TTI_AT(r->move_kinds, tti_move_kind, i);
        if (!(k->checkpoint_s > 0))
            continue;
        count += k->count;
        checkpoint += k->checkpoint_s;
        restart += k->restart_s;
        model += k->model_s;
        data += k->data_s;
    }
    char a[40], b[40], c[40], d[40];
    double n = (double)count;
    if (count > 0)
        (void)fprintf(
            p->out, "  a restart: checkpoint %s, nodes %s, parameters %s, place in the data %s\n",
            tti_format_time(checkpoint / n, a, sizeof a), tti_format_time(restart / n, b, sizeof b),
            tti_format_time(model / n, c, sizeof c), tti_format_time(data / n, d, sizeof d));
}

void
tti_print_moves(const tti_printer *p)
{
    const tti_report *r = p->report;
    if (r->moves.count == 0)
        return;
    tti_print_heading(p, "Reconfigurations");
    (void)fputs(
        "  what moved     how        times mean time   longest      lost  max wait  carried\n",
        p->out);
    for (size_t i = 0; i < r->move_kinds.count; i++) {
        const tti_move_kind *k = TTI_AT(r->move_kinds, tti_move_kind, i);
        char mean[40], longest[40], lost[40], wait[40], bytes[40], carried[100] = "nothing";
        if (k->partitions > 0 || k->bytes > 0)
            (void)snprintf(carried, sizeof carried, "%" PRId64 " partitions, %s", k->partitions,
                           tt_text_bytes((double)k->bytes, bytes, sizeof bytes));
        (void)fprintf(p->out, "  %-14.14s %-10.10s %5" PRId64 " %9s %9s %9s %9s  %s\n", k->kind,
                      k->method, k->count,
                      tti_format_time(k->duration_s / (double)k->count, mean, sizeof mean),
                      tti_format_time(k->longest_duration_s, longest, sizeof longest),
                      tti_format_time(k->lost_s, lost, sizeof lost),
                      tti_format_time(k->longest_wait_s, wait, sizeof wait), carried);
    }
    print_restarts(p);
}

// ---- curve
// ---------------------------------------------------------------------------------------

// Loss at `columns` equal steps of time, NAN where nothing is known. From samples; else from full
// evaluations.
static double
curve_columns(const tti_report *r, int columns, double *loss)
{
    for (int i = 0; i < columns; i++)
        loss[i] = (double)NAN;
    if (isfinite(r->curve_end_s) && r->curve_end_s > 0) {
        for (int i = 0; i < TTI_CURVE_BINS; i++)
            if (isfinite(r->curve_loss[i]))
                loss[i * columns / TTI_CURVE_BINS] = r->curve_loss[i];
        return r->curve_end_s;
    }
    size_t count = r->progress.count;
    double end = count > 0 ? TTI_AT(r->progress, tt_store_progress, count - 1)->time_s : 0;
    for (size_t i = 0; i < count && end > 0; i++) {
        const tt_store_progress *row = TTI_AT(r->progress, tt_store_progress, i);
        int column = (int)(row->time_s / end * (columns - 1));
        if (column >= 0 && column < columns && isfinite(row->loss))
            loss[column] = row->loss;
    }
    return end;
}

static void
print_marks(const tti_printer *p, int columns, double end)
{
    char marks[TTI_CURVE_BINS + 1];
    memset(marks, ' ', (size_t)columns);
    int last = -1;
    for (size_t i = 0; i < p->report->moves.count; i++) {
        double at = TTI_AT(p->report->moves, tt_store_reconfiguration, i)->start_s / end * columns;
        if (at >= 0 && at < columns) {
            marks[(int)at] = '^';
            last = TT_MAX(last, (int)at);
        }
    }
    marks[last + 1] = '\0';
    if (last >= 0)
        (void)fprintf(p->out, "  %s  ^ moved to another setting\n", marks);
}

void
tti_print_curve(const tti_printer *p)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    double loss[TTI_CURVE_BINS], low = INFINITY, high = -INFINITY, first = (double)NAN,
                                 last = first;
    int columns = TT_MIN(p->options.width - 4, 60), known = 0;
    double end = curve_columns(p->report, columns, loss);
    for (int i = 0; i < columns; i++)
        if (isfinite(loss[i])) {
            low = fmin(low, loss[i]);
            high = fmax(high, loss[i]);
            first = known++ == 0 ? loss[i] : first;
            last = loss[i];
        }
    if (known < 2)
        return;
    int logarithmic = low > 0;
    char title[160], time[40];
    (void)snprintf(title, sizeof title, "Loss over time: %.4g to %.4g in %s%s", first, last,
                   tti_format_time(end, time, sizeof time), logarithmic ? ", logarithmic" : "");
    tti_print_heading(p, title);
    (void)fputs("  ", p->out);
    double span = logarithmic ? log(high / low) : high - low;
    for (int i = 0; i < columns; i++) {
        double height = logarithmic ? log(loss[i] / low) : loss[i] - low;
        int level = span > 0 && isfinite(loss[i]) ? (int)(height / span * 7.999) : 0;
        (void)fputs(!isfinite(loss[i]) ? " "
                    : p->options.utf8  ? blocks[level]
                                       : ascii[level],
                    p->out);
    }
    (void)fputc('\n', p->out);
    print_marks(p, columns, end);
    if (p->report->not_finite > 0)
        (void)fprintf(p->out, "  %" PRId64 " iterations had a loss that was NaN or infinite\n",
                      p->report->not_finite);
}

// ---- next
// ----------------------------------------------------------------------------------------

// The directory of the run, as the user named it.
static void
run_directory(const tti_report *r, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", r->source);
    size_t length = strlen(out);
    const char *file = "/run.db";
    if (length > strlen(file) && strcmp(out + length - strlen(file), file) == 0)
        out[length - strlen(file)] = '\0';
    else if (strcmp(out, "run.db") == 0)
        (void)snprintf(out, size, ".");
    for (length = strlen(out); length > 1 && out[length - 1] == '/'; length--)
        out[length - 1] = '\0';
}

// " --set knobs.servers.start=1": where the last setting differs from the start.
static void
start_there(const tti_report *r, char *out, size_t size)
{
    const tti_setting *start = tti_report_setting(r, r->run.start_setting);
    const tti_setting *now = tti_report_setting(r, r->current_setting);
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; start != NULL && now != NULL && i < r->knobs.count; i++) {
        const tt_store_knob *knob = TTI_AT(r->knobs, tt_store_knob, i);
        char value[64];
        if (start->values[i] == now->values[i] || isnan(now->values[i]) || used >= size - 1)
            continue;
        int length = snprintf(out + used, size - used, " --set knobs.%s.start=%s", knob->id,
                              tti_format_value(knob, now->values[i], 1, value, sizeof value));
        used = TT_MIN(used + (size_t)TT_MAX(length, 0), size - 1);
    }
}

void
tti_print_next(const tti_printer *p)
{
    const tti_report *r = p->report;
    char directory[1024], start[1000];
    run_directory(r, directory, sizeof directory);
    const char *status = r->run.status != NULL ? r->run.status : "";
    tti_print_heading(p, "Next");
    if (p->verdict.in_progress) {
        (void)fprintf(p->out, "  look again:        trimtab report %s\n", directory);
        return;
    }
    if (strcmp(status, "failed") == 0) {
        (void)fprintf(p->out, "  run it again:      trimtab run %s/job.yaml\n", directory);
        return;
    }
    start_there(r, start, sizeof start);
    if (start[0] != '\0')
        (void)fprintf(p->out, "  begin there:       trimtab run %s/job.yaml%s\n", directory, start);
    else
        (void)fprintf(p->out, "  run it again:      trimtab run %s/job.yaml\n", directory);
    if (p->verdict.basis == TTI_BASIS_START_RATE)
        (void)fprintf(p->out,
                      "  without tuning:    trimtab run %s/job.yaml --set tuner.enabled=off\n",
                      directory);
}
