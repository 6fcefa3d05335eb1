// What of a run store is a measurement, its middle, and its knobs as those of a search space.
#include "report_model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int
tti_is_measured(const tt_store_window *window)
{
    return window->phase != TT_STORE_TRANSITION && window->kept > 0 &&
           window->seconds_per_iteration > 0 && isfinite(window->seconds_per_iteration);
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
tti_report_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count > 0 ? values[count / 2] : (double)NAN;
}

// Pairs of windows that tell how far windows of one setting lie apart; the median of the squares of
// standard normal deviates.
enum { PAIRS_LEAST = 5 };
static const double MEDIAN_SQUARE = 0.45493642311957283;

tt_status
tti_report_window_variance(const tti_report *r, double *variance)
{
    double *squares = tt_mem_alloc((r->windows.count + 1) * sizeof *squares);
    double *last = tt_mem_zalloc(r->settings.count + 1, sizeof *last);
    size_t count = 0;
    for (size_t i = 0; i < r->windows.count && squares != NULL && last != NULL; i++) {
        const tt_store_window *w = TTI_AT(r->windows, tt_store_window, i);
        const tti_setting *setting = tti_report_setting(r, w->setting);
        if (setting == NULL || !tti_is_measured(w))
            continue;
        double *before = &last[setting - TTI_AT(r->settings, tti_setting, 0)];
        if (*before > 0)
            squares[count++] = pow(log(w->seconds_per_iteration / *before), 2) / 2;
        *before = w->seconds_per_iteration;
    }
    const tt_status status = squares != NULL && last != NULL ? TT_OK : TT_NOMEM;
    *variance = status == TT_OK && count >= PAIRS_LEAST
                    ? tti_report_median(squares, count) / MEDIAN_SQUARE
                    : 0;
    tt_mem_free(squares);
    tt_mem_free(last);
    return status;
}

tt_knob_kind
tti_report_knob_kind(const tt_store_knob *knob)
{
    static const char *const kinds[] = {"bool", "int", "real", "enum"};
    for (size_t i = 0; i < TT_COUNT_OF(kinds); i++)
        if (tti_is(knob->kind, kinds[i]))
            return (tt_knob_kind)i;
    return TT_KNOB_REAL;
}

static uint32_t
effect_of(const char *text)
{
    uint32_t effect = TT_KNOB_EFFECT_SETTING;
    if (text != NULL && strstr(text, "data") != NULL)
        effect |= TT_KNOB_MOVES_DATA;
    if (text != NULL && strstr(text, "model") != NULL)
        effect |= TT_KNOB_MOVES_MODEL;
    return effect;
}

void
tti_report_space_knob(const tt_store_knob *knob, tt_knob *description, tt_space_knob *out)
{
    int log_scale = tti_is(knob->scale, "log2");
    *description = (tt_knob){.struct_size = sizeof *description,
                             .id = knob->id,
                             .help = "of a run",
                             .unit = knob->unit != NULL ? knob->unit : "",
                             .kind = tti_report_knob_kind(knob),
                             .scale = log_scale ? TT_KNOB_LOG2 : TT_KNOB_LINEAR,
                             .effect = effect_of(knob->effect),
                             .min = knob->min,
                             .max = knob->max,
                             .default_value = knob->start};
    *out = (tt_space_knob){.knob = description,
                           .min = knob->min,
                           .max = knob->max,
                           .start = knob->start,
                           .log_scale = log_scale,
                           .fixed = knob->fixed};
}
