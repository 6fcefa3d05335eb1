// trimtab explain for a terminal: whether to trust the setting, how the tuner came to it, what
// mattered and what was left out, in sentences.
#include "explain.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 1600, STEPS_SHOWN = 8, LIST_BYTES = 1200, VALUES_COUNTED = 100 };
static const double TWO_SIDED = 1.96, SURE = 0.975, LIKELY = 0.8;
enum { FEW_WINDOWS = 3 };

static void
paragraph(const tti_printer *p, const char *text)
{
    if (text[0] == '\0')
        return;
    (void)fputs("  ", p->out);
    tti_print_folded(p, 2, 2, text);
}

// "1.41x as fast as" with its interval, of a ratio of times given as a logarithm.
static void
add_speed(char *out, size_t size, double log_ratio, double sd)
{
    tti_append(out, size, "%.3gx as fast (95 %%: %.3g to %.3g)", exp(log_ratio),
               exp(log_ratio - TWO_SIDED * sd), exp(log_ratio + TWO_SIDED * sd));
}

// ---- should I trust it -----------------------------------------------------------------------

static const char *
trust_word(const tti_explanation *e, tti_style *style)
{
    double p = isnan(e->end_beats_start) ? e->end_beats_rival : e->end_beats_start;
    *style = TTI_YELLOW;
    if (isnan(p) || e->end->windows < FEW_WINDOWS)
        return "Not on its own";
    if (p >= SURE)
        *style = TTI_GREEN;
    return p >= SURE ? "Yes" : p >= LIKELY ? "Probably" : "It may as well be noise";
}

static void
say_measured(const tti_explanation *e, char *text, size_t size)
{
    char a[40], b[40];
    const tti_measured_setting *m = e->end;
    tti_append(text, size, "an iteration takes %s under setting %" PRId64,
               tti_format_time(exp(m->log_t), a, sizeof a), m->setting->id);
    if (e->start != NULL && e->start != m && !isnan(e->start->log_t)) {
        tti_append(text, size, ", ");
        add_speed(text, size, e->start->log_t - m->log_t, hypot(m->se, e->start->se));
        tti_append(text, size, " as under the start setting");
    } else if (e->start == m) {
        tti_append(text, size, ", where the job started");
    }
    tti_append(
        text, size, ". Measured in %" PRId64 " window%s, %s iterations, on %" PRId64 " occasion%s.",
        m->windows, m->windows == 1 ? "" : "s",
        tti_format_count((double)m->iterations, b, sizeof b), m->stays, m->stays == 1 ? "" : "s");
}

static void
say_rival(const tti_explanation *e, char *text, size_t size)
{
    if (e->rival == NULL || isnan(e->end->log_t)) {
        tti_append(text, size, " No other setting was measured.");
        return;
    }
    double log_ratio = e->rival->log_t - e->end->log_t, sd = hypot(e->end->se, e->rival->se);
    // At most the probability that one of so many looks as fast by luck (Bonferroni).
    const double by_luck = e->end_beats_rival * (double)e->rivals;
    tti_append(text, size,
               " Of the others the likeliest to be faster, setting %" PRId64
               ", took %.3gx the time in %" PRId64 " window%s (95 %%: %.3g to "
               "%.3g), so it is %s.",
               e->rival->setting->id, exp(log_ratio), e->rival->windows,
               e->rival->windows == 1 ? "" : "s", exp(log_ratio - TWO_SIDED * sd),
               exp(log_ratio + TWO_SIDED * sd),
               e->end_beats_rival >= SURE     ? "slower"
               : e->end_beats_rival >= LIKELY ? "probably slower"
               : by_luck > 1 - LIKELY         ? "as good as can be told"
               : by_luck > 1 - SURE           ? "probably faster an iteration"
                                              : "faster an iteration");
}

static void
say_predictions(const tti_explanation *e, char *text, size_t size)
{
    if (e->judged == 0) {
        tti_append(text, size, "No prediction of the tuner was followed by a measurement.");
        return;
    }
    tti_append(
        text, size,
        "The tuner predicted %" PRId64 " settings before it tried them: %" PRId64
        " turned out within the predicted 80 %% interval, and the typical error was %.0f %%.",
        e->judged, e->inside, 100 * expm1(e->typical_error));
}

static void
print_trust(const tti_printer *p, const tti_explanation *e)
{
    char text[TEXT_BYTES] = ": ";
    tti_style style;
    tti_print_heading(p, "Should I trust this setting");
    if (e->end == NULL || isnan(e->end->log_t)) {
        paragraph(p, "No setting was measured in a whole window.");
        return;
    }
    const char *word = trust_word(e, &style);
    (void)fputs("  ", p->out);
    tti_print_styled(p, style, word);
    say_measured(e, text, sizeof text);
    say_rival(e, text, sizeof text);
    tti_print_folded(p, 2 + (int)strlen(word), 2, text);
    text[0] = '\0';
    say_predictions(e, text, sizeof text);
    paragraph(p, text);
}

// ---- the time left ---------------------------------------------------------------------------

static void
say_half(const tti_eta_judgement *j, char *text, size_t size)
{
    char was[40], said[40], low[40], high[40];
    tti_append(text, size,
               " Half-way it was %s: ", tti_format_time(j->half_left_s, was, sizeof was));
    if (isinf(j->half->seconds_median)) {
        tti_append(text, size, "no end was to be seen.");
        return;
    }
    tti_append(text, size, "%s was expected (80 %%: %s to %s).",
               tti_format_time(j->half->seconds_median, said, sizeof said),
               tti_format_time(j->half->seconds_p10, low, sizeof low),
               isinf(j->half->seconds_p90)
                   ? "no end"
                   : tti_format_time(j->half->seconds_p90, high, sizeof high));
}

static void
print_eta(const tti_printer *p, const tti_explanation *e)
{
    char text[TEXT_BYTES] = "";
    const tti_eta_judgement *j = &e->eta;
    if (j->asked == 0)
        return;
    tti_print_heading(p, "How well the time left was known");
    tti_append(text, sizeof text,
               "Asked when 20, 30, ... 90 %% of the iterations were done, it was right within a "
               "factor of two %" PRId64 " of %" PRId64 " times, and in its 80 %% interval %" PRId64
               " times.",
               j->good, j->asked, j->inside);
    if (j->half != NULL)
        say_half(j, text, sizeof text);
    paragraph(p, text);
}

// ---- how it came to it -----------------------------------------------------------------------

// "servers 2 -> 1" against the setting that was in force.
static void
add_change(const tti_report *r, const tt_store_proposal *p, char *text, size_t size)
{
    char difference[700] = "";
    const tti_setting *from = tti_report_setting(r, p->current_setting);
    const tti_setting *to = tti_report_setting(r, p->setting);
    if (p->proposed != NULL)
        (void)snprintf(difference, sizeof difference, "%.680s", p->proposed);
    else if (from != NULL && to != NULL)
        (void)tti_format_difference(r, from, to, difference, sizeof difference);
    if (difference[0] != '\0')
        tti_append(text, size, " (%s)", difference);
}

// From a step to the end of the job, or to what is known of it so far.
static double
time_since(const tti_report *r, const tt_store_proposal *t)
{
    const double since_s = r->elapsed_s - t->time_s;
    return since_s > 0 ? since_s : 0; // nor where either is not known
}

static void
print_trial(const tti_printer *p, const tt_store_proposal *t)
{
    char text[TEXT_BYTES] = "", clock[40], a[40], b[40];
    if (t->setting >= 0)
        tti_append(text, sizeof text, "tried setting %" PRId64, t->setting);
    else
        tti_append(text, sizeof text, "tried another setting");
    add_change(p->report, t, text, sizeof text);
    if (isfinite(t->log_ratio) && t->log_ratio_sd > 0)
        tti_append(text, sizeof text, ": expected %.2gx the time left (80 %%: %.2g to %.2g)",
                   exp(t->log_ratio), exp(t->log_ratio - 1.28 * t->log_ratio_sd),
                   exp(t->log_ratio + 1.28 * t->log_ratio_sd));
    if (isfinite(t->ei_seconds) && isfinite(t->cost_seconds))
        tti_append(text, sizeof text, ", worth %s on average for a price of %s",
                   tti_format_time(t->ei_seconds, a, sizeof a),
                   tti_format_time(t->cost_seconds, b, sizeof b));
    if (t->realised_ratio > 0)
        tti_append(text, sizeof text, "; it was %.3gx", t->realised_ratio);
    const double since_s = time_since(p->report, t);
    if (t->realised_ratio > 0 && t->realised_ratio < 1 && since_s > 0)
        tti_append(text, sizeof text, ": without it the %s since then would have been %s",
                   tti_format_time(since_s, a, sizeof a),
                   tti_format_time(since_s / t->realised_ratio, b, sizeof b));
    tti_append(text, sizeof text, ".");
    (void)fprintf(p->out, "  %8s  ", tti_format_clock(t->time_s, clock, sizeof clock));
    tti_print_folded(p, 12, 12, text);
}

static void
print_other_step(const tti_printer *p, const tt_store_proposal *t)
{
    char text[TEXT_BYTES] = "", clock[40];
    tti_append(text, sizeof text, "%s%s%s", tti_is(t->decision, "abandon") ? "broke off; " : "",
               t->reason != NULL ? t->reason : "moved", ".");
    (void)fprintf(p->out, "  %8s  ", tti_format_clock(t->time_s, clock, sizeof clock));
    tti_print_folded(p, 12, 12, text);
}

static int
is_better(const tt_store_proposal *t)
{
    return tti_is(t->decision, "try") && t->realised_ratio > 0 && t->realised_ratio < 1;
}

// What a better trial brought: how much longer the time since then would have been without it. Not
// what it was said to save when it was measured, which goes by what was then expected to be left.
static double
brought(const tti_report *r, const tt_store_proposal *t)
{
    return time_since(r, t) * (1 / t->realised_ratio - 1);
}

// Of two that brought as much the earlier one did more.
static int
brought_more(const tti_report *r, const tt_store_proposal *a, const tt_store_proposal *b)
{
    const double gain_a = brought(r, a), gain_b = brought(r, b);
    return gain_a > gain_b || (gain_a == gain_b && a->ordinal < b->ordinal);
}

// Every step with --all; else the trials that brought most.
static int
is_told(const tti_printer *p, const tt_store_proposal *t)
{
    if (p->options.all)
        return tti_is(t->decision, "try") || tti_is(t->decision, "move") ||
               tti_is(t->decision, "abandon");
    size_t above = 0;
    for (size_t i = 0; i < p->report->proposals.count && is_better(t); i++) {
        const tt_store_proposal *other = TTI_AT(p->report->proposals, tt_store_proposal, i);
        above += is_better(other) && brought_more(p->report, other, t);
    }
    return is_better(t) && above < STEPS_SHOWN;
}

static void
print_story(const tti_printer *p, const tti_explanation *e)
{
    const tti_report *r = p->report;
    char text[TEXT_BYTES] = "", difference[1000];
    tti_print_heading(p, "Why this setting");
    if (e->start != NULL && e->end != NULL && e->start != e->end)
        tti_append(text, sizeof text, "Changed from the start: %s. ",
                   tti_format_difference(r, e->start->setting, e->end->setting, difference,
                                         sizeof difference));
    tti_append(text, sizeof text,
               "%" PRId64 " setting%s tried, %" PRId64 " of them better than the best known then%s",
               e->trials, e->trials == 1 ? " was" : "s were", e->better,
               e->better == 0   ? "."
               : p->options.all ? "; every step:"
                                : "; those that brought most:");
    paragraph(p, text);
    for (size_t i = 0; i < r->proposals.count; i++) {
        const tt_store_proposal *t = TTI_AT(r->proposals, tt_store_proposal, i);
        if (!is_told(p, t))
            continue;
        if (tti_is(t->decision, "try"))
            print_trial(p, t);
        else
            print_other_step(p, t);
    }
    if (!p->options.all && r->proposals.count > 0)
        (void)fprintf(p->out, "  every step: trimtab explain --all\n");
}

static void
print_stop(const tti_printer *p, const tti_explanation *e)
{
    const tti_report *r = p->report;
    char text[TEXT_BYTES] = "", clock[40];
    tti_print_heading(p, "Why it stopped exploring");
    size_t count = r->proposals.count;
    const tt_store_proposal *newest =
        count > 0 ? TTI_AT(r->proposals, tt_store_proposal, count - 1) : NULL;
    if (newest == NULL)
        tti_append(text, sizeof text, "It never began: nothing was proposed.");
    else if (e->last == NULL || tti_is(newest->decision, "try"))
        tti_append(text, sizeof text,
                   "It did not: it was still trying settings when the job ended.");
    if (e->last != NULL)
        tti_append(text, sizeof text, "%sIts last word, at %s: %s.", text[0] != '\0' ? " " : "",
                   tti_format_clock(e->last->time_s, clock, sizeof clock),
                   e->last->reason != NULL ? e->last->reason : e->last->decision);
    paragraph(p, text);
}

// ---- knobs -----------------------------------------------------------------------------------

static void
print_effect(const tti_printer *p, const tti_knob_effect *k)
{
    char text[TEXT_BYTES] = "", from[64], to[64];
    (void)fprintf(p->out, "  %-17s ", k->knob->id);
    const tti_setting *end = tti_report_setting(p->report, p->report->current_setting);
    (void)tti_format_value(k->knob, end->values[k->index], 0, to, sizeof to);
    if (k->changed) {
        tti_append(text, sizeof text,
                   "%s -> %s: ", tti_format_value(k->knob, k->from, 1, from, sizeof from), to);
        add_speed(text, sizeof text, k->gain, k->gain_sd);
    } else {
        tti_append(text, sizeof text, "%s, as at the start", to);
    }
    if (isfinite(k->other_gain))
        tti_append(text, sizeof text, "; at %s it would take %.3gx the time (95 %%: %.3g to %.3g)",
                   tti_format_value(k->knob, k->other, 0, from, sizeof from), exp(k->other_gain),
                   exp(k->other_gain - TWO_SIDED * k->other_sd),
                   exp(k->other_gain + TWO_SIDED * k->other_sd));
    tti_append(text, sizeof text, ".");
    tti_print_folded(p, 20, 20, text);
}

static void
list_knobs(const tti_explanation *e, tti_knob_verdict verdict, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < e->knob_count; i++)
        if (e->knobs[i].verdict == verdict)
            tti_append(out, size, "%s%s", out[0] != '\0' ? ", " : "", e->knobs[i].knob->id);
}

static void
print_knobs(const tti_printer *p, const tti_explanation *e)
{
    char names[LIST_BYTES], text[LIST_BYTES + 200];
    int shown = 0;
    tti_print_heading(p, "Which knobs mattered, everything else as it ended");
    for (size_t i = 0; i < e->knob_count; i++)
        if (e->knobs[i].verdict == TTI_KNOB_MATTERS) {
            print_effect(p, &e->knobs[i]);
            shown++;
        }
    if (shown == 0)
        paragraph(p, "Of no knob can it be told from what was measured.");
    list_knobs(e, TTI_KNOB_FLAT, names, sizeof names);
    if (names[0] != '\0') {
        (void)snprintf(text, sizeof text, "No value would change the time by 1 %% (95 %%): %s.",
                       names);
        paragraph(p, text);
    }
    list_knobs(e, TTI_KNOB_NOT_TOLD, names, sizeof names);
    if (names[0] != '\0') {
        (void)snprintf(text, sizeof text, "Not told apart from no effect by what was measured: %s.",
                       names);
        paragraph(p, text);
    }
}

static void
print_untried(const tti_printer *p, const tti_explanation *e)
{
    char text[TEXT_BYTES] = "";
    tti_print_heading(p, "What was never tried");
    for (size_t i = 0; i < e->knob_count; i++) {
        const tti_knob_effect *k = &e->knobs[i];
        if (k->verdict == TTI_KNOB_FIXED || (k->values > 0 && k->tried >= k->values))
            continue;
        tti_append(text, sizeof text, "%s%s %" PRId64,
                   text[0] != '\0' ? ", " : "Values tried: ", k->knob->id, k->tried);
        if (k->values > 0 && k->values <= VALUES_COUNTED)
            tti_append(text, sizeof text, " of %" PRId64, k->values);
    }
    if (text[0] != '\0') {
        tti_append(text, sizeof text,
                   ". The rest was passed over: the model expected less of it than a trial costs.");
        paragraph(p, text);
    }
    if (isfinite(e->lag_borne)) {
        (void)snprintf(text, sizeof text,
                       "Left out were settings whose gradients would lag by more than about %.0f "
                       "iterations: as much as the loss bends or will bend, it does not bear them.",
                       e->lag_borne);
        paragraph(p, text);
    }
    text[0] = '\0';
    if (e->last != NULL && e->last->proposed != NULL && e->last->ei_seconds > 0) {
        char a[40], b[40];
        tti_append(
            text, sizeof text,
            "The best untried setting in its last look: %s; worth %s on average for a price of %s.",
            e->last->proposed, tti_format_time(e->last->ei_seconds, a, sizeof a),
            tti_format_time(e->last->cost_seconds, b, sizeof b));
        paragraph(p, text);
    }
    for (size_t i = 0; i < e->knob_count; i++) {
        const tt_store_knob *k = e->knobs[i].knob;
        if (e->knobs[i].verdict != TTI_KNOB_FIXED)
            continue;
        (void)snprintf(text, sizeof text, "%s is fixed%s%.300s.", k->id,
                       k->reason != NULL && k->reason[0] != '\0' ? ": " : "",
                       k->reason != NULL ? k->reason : "");
        paragraph(p, text);
    }
}

// ---- the whole -------------------------------------------------------------------------------

void
tti_print_explanation(const tti_printer *p, const tti_explanation *e)
{
    tti_print_head(p);
    tti_print_worth(p);
    print_trust(p, e);
    print_eta(p, e);
    print_story(p, e);
    print_stop(p, e);
    print_knobs(p, e);
    print_untried(p, e);
    tti_print_next(p);
}
