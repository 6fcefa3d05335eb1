// The search space: ranges, grids and the unit-cube coordinate of each knob.
#include "knobs_internal.h"
#include <math.h>
#include <string.h>

// Above this many values equal cells would no longer be told apart in double arithmetic.
static const double CELLS_MAX = 1e9;
enum { REAL_VALUES = 1000 };

void
tt_space_init(tt_space *space, const tt_knob_registry *registry)
{
    *space = (tt_space){.count = tt_knob_registry_count(registry)};
    for (uint32_t i = 0; i < space->count; i++) {
        const tt_knob *knob = tt_knob_registry_at(registry, i);
        space->knob[i] = (tt_space_knob){.knob = knob,
                                         .min = knob->min,
                                         .max = knob->max,
                                         .start = knob->default_value,
                                         .log_scale = knob->scale == TT_KNOB_LOG2};
    }
}

int
tt_space_find(const tt_space *space, const char *id)
{
    for (uint32_t i = 0; i < space->count; i++)
        if (strcmp(space->knob[i].knob->id, id) == 0)
            return (int)i;
    return -1;
}

uint32_t
tt_space_free_count(const tt_space *space)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < space->count; i++)
        count += !space->knob[i].fixed;
    return count;
}

void
tt_space_start(const tt_space *space, tt_setting *out)
{
    *out = (tt_setting){.count = space->count};
    for (uint32_t i = 0; i < space->count; i++)
        out->value[i] = space->knob[i].start;
}

// ---- one knob's values -----------------------------------------------------------------------

static int
is_real(const tt_space_knob *knob)
{
    return knob->knob->kind == TT_KNOB_REAL;
}

static int
is_powers_of_two(const tt_space_knob *knob)
{
    return knob->knob->kind == TT_KNOB_INT && knob->knob->grid == TT_KNOB_POWERS_OF_TWO;
}

// The steps of a grid: whole numbers, or exponents of two. first > last when the range holds none.
struct steps {
    double first, last;
};

static struct steps
steps_of(const tt_space_knob *knob)
{
    if (!is_powers_of_two(knob))
        return (struct steps){ceil(knob->min), floor(knob->max)};
    int low, high;
    double fraction = frexp(TT_MAX(knob->min, 1.0), &low);
    (void)frexp(knob->max, &high); // max = f 2^high with 1/2 <= f < 1
    return (struct steps){fraction > 0.5 ? low : low - 1, high - 1};
}

static double
value_of_step(const tt_space_knob *knob, double step)
{
    return is_powers_of_two(knob) ? exp2(step) : step;
}

static double
log_shift(const tt_space_knob *knob)
{
    return knob->knob->kind == TT_KNOB_INT && knob->knob->min < 1 ? 1 : 0;
}

// A job may ask for a log scale where the description has none; a range that cannot carry one stays
// linear.
static int
is_log(const tt_space_knob *knob)
{
    return knob->log_scale && knob->min + log_shift(knob) > 0;
}

double
tt_space_snap(const tt_space_knob *knob, double value)
{
    if (is_real(knob))
        return value > knob->min ? TT_MIN(value, knob->max) : knob->min; // NaN: min
    struct steps steps = steps_of(knob);
    double step = nearbyint(value);
    if (is_powers_of_two(knob))
        step = value >= 1 ? nearbyint(log2(value)) : 0;
    step = step > steps.first ? TT_MIN(step, steps.last) : steps.first;
    return value_of_step(knob, step);
}

double
tt_space_encode(const tt_space_knob *knob, double value)
{
    double shift = log_shift(knob);
    double x = value > knob->min ? TT_MIN(value, knob->max) : knob->min;
    if (!(knob->max > knob->min))
        return 0;
    if (is_powers_of_two(knob)) {
        struct steps steps = steps_of(knob);
        if (!(steps.last > steps.first))
            return 0;
        double unit = (log2(TT_MAX(x, 1.0)) - steps.first) / (steps.last - steps.first);
        return TT_MAX(0.0, TT_MIN(unit, 1.0));
    }
    if (is_log(knob))
        return log2((x + shift) / (knob->min + shift)) /
               log2((knob->max + shift) / (knob->min + shift));
    return (x - knob->min) / (knob->max - knob->min);
}

double
tt_space_decode(const tt_space_knob *knob, double unit)
{
    double u = unit > 0 ? TT_MIN(unit, 1.0) : 0; // NaN: 0
    double shift = log_shift(knob), width = knob->max - knob->min;
    struct steps steps = steps_of(knob);
    double cells = steps.last - steps.first + 1;
    if (is_powers_of_two(knob) || (!is_real(knob) && !is_log(knob) && cells <= CELLS_MAX))
        return value_of_step(knob, steps.first + TT_MIN(floor(u * cells), cells - 1));
    if (is_log(knob) && u < 1) {
        double ratio = (knob->max + shift) / (knob->min + shift);
        return tt_space_snap(knob, (knob->min + shift) * exp2(u * log2(ratio)) - shift);
    }
    return tt_space_snap(knob, u < 1 ? knob->min + u * width : knob->max); // 1: exactly max
}

double
tt_space_log_size(const tt_space *space)
{
    double sum = 0;
    for (uint32_t i = 0; i < space->count; i++) {
        const tt_space_knob *knob = &space->knob[i];
        if (knob->fixed)
            continue;
        struct steps steps = steps_of(knob);
        sum += is_real(knob) ? log(knob->max > knob->min ? REAL_VALUES : 1)
                             : log(TT_MAX(steps.last - steps.first + 1, 1));
    }
    return sum;
}

// ---- settings --------------------------------------------------------------------------------

tt_status
tti_space_check(const tt_space_knob *knob, double value, const char *where, tt_error *err)
{
    char low[64], high[64], given[64];
    (void)tt_space_format(knob, knob->min, low, sizeof low);
    (void)tt_space_format(knob, knob->max, high, sizeof high);
    (void)tt_space_format(knob, value, given, sizeof given);
    const char *why = knob->reason, *open = why[0] != '\0' ? " (" : "";
    const char *close = why[0] != '\0' ? ")" : "";
    if (!(value >= knob->min && value <= knob->max))
        return tt_error_set(err, TT_RANGE, where, NULL, "%s must be from %s to %s%s%s%s, not %s",
                            knob->knob->id, low, high, open, why, close, given);
    double near = tt_space_snap(knob, value);
    if (near == value)
        return TT_OK;
    char advice[96];
    (void)tt_space_format(knob, near, low, sizeof low);
    (void)snprintf(advice, sizeof advice, "the nearest is %s", low);
    return tt_error_set(err, TT_RANGE, where, advice, "%s must be a %s, not %s", knob->knob->id,
                        is_powers_of_two(knob) ? "power of two" : "whole number", given);
}

int
tt_space_valid(const tt_space *space, const tt_setting *setting)
{
    if (setting->count != space->count)
        return 0;
    for (uint32_t i = 0; i < space->count; i++) {
        const tt_space_knob *knob = &space->knob[i];
        double value = setting->value[i];
        if (!(value >= knob->min && value <= knob->max) || tt_space_snap(knob, value) != value)
            return 0;
    }
    return space->accept == NULL || space->accept(space->accept_self, setting);
}

int
tt_setting_equal(const tt_setting *a, const tt_setting *b)
{
    if (a->count != b->count)
        return 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->value[i] != b->value[i])
            return 0;
    return 1;
}

// ---- what a job says about its knobs ---------------------------------------------------------

static void
set_reason(tt_space_knob *knob, const char *reason)
{
    if (reason != NULL)
        (void)snprintf(knob->reason, sizeof knob->reason, "%s", reason);
}

tt_status
tt_space_narrow(tt_space *space,
                uint32_t index,
                double min,
                double max,
                const char *reason,
                const char *where,
                tt_error *err)
{
    TT_ASSERT(index < space->count);
    tt_space_knob *knob = &space->knob[index], narrowed = *knob;
    narrowed.min = TT_MAX(min, knob->min);
    narrowed.max = TT_MIN(max, knob->max);
    struct steps steps = steps_of(&narrowed);
    int empty = !(narrowed.max >= narrowed.min) || isnan(min) || isnan(max);
    if (empty || (!is_real(knob) && steps.first > steps.last)) {
        char low[64], high[64], own_low[64], own_high[64];
        return tt_error_set(err, TT_RANGE, where, "choose a range that overlaps",
                            "%s has no value from %s to %s; it goes from %s to %s", knob->knob->id,
                            tt_space_format(knob, min, low, sizeof low),
                            tt_space_format(knob, max, high, sizeof high),
                            tt_space_format(knob, knob->min, own_low, sizeof own_low),
                            tt_space_format(knob, knob->max, own_high, sizeof own_high));
    }
    if (!is_real(knob)) {
        narrowed.min = value_of_step(knob, steps.first);
        narrowed.max = value_of_step(knob, steps.last);
    }
    narrowed.start = tt_space_snap(&narrowed, knob->start);
    set_reason(&narrowed, reason);
    *knob = narrowed;
    return TT_OK;
}

tt_status
tt_space_start_at(tt_space *space,
                  uint32_t index,
                  double value,
                  const char *reason,
                  const char *where,
                  tt_error *err)
{
    TT_ASSERT(index < space->count);
    tt_space_knob *knob = &space->knob[index];
    TT_TRY(tti_space_check(knob, value, where, err));
    knob->start = value;
    knob->fixed = knob->fixed || reason != NULL;
    set_reason(knob, reason);
    return TT_OK;
}

void
tt_space_drop(tt_space *space, uint32_t index, const char *reason)
{
    TT_ASSERT(index < space->count);
    space->knob[index].fixed = space->knob[index].absent = 1;
    set_reason(&space->knob[index], reason);
}
