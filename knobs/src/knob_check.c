// The rules a description must keep (tt/knob.h), checked once when a plugin is loaded.
#include "knobs_internal.h"
#include <math.h>
#include <string.h>

enum { ID_LENGTH_MAX = 40 };
static const double INT_MAGNITUDE_MAX = 9007199254740992.0; // 2^53: exact in a double

static tt_status
refuse(const tt_knob *knob, const char *where, tt_error *err, const char *fault)
{
    return tt_error_set(err, TT_INVALID, where, "tell the author of the knob (rules: tt/knob.h)",
                        "knob '%.*s': %s", ID_LENGTH_MAX, knob->id, fault);
}

static const char *
id_fault(const tt_knob *knob)
{
    if (knob->id == NULL)
        return "has no id";
    if (!tt_text_is_word(knob->id, 0))
        return "the id must be [a-z][a-z0-9_]*";
    return strlen(knob->id) > ID_LENGTH_MAX ? "the id is longer than 40 characters" : NULL;
}

static const char *
life_fault(const tt_knob *knob)
{
    if (knob->help == NULL || knob->help[0] == '\0')
        return "has no help line";
    if (strchr(knob->help, '\n') != NULL)
        return "help must be one line";
    if (knob->open == NULL || knob->prepare == NULL || knob->commit == NULL ||
        knob->rollback == NULL || knob->close == NULL)
        return "needs all of open, prepare, commit, rollback and close";
    if ((knob->effect & ~(uint32_t)(TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL)) != 0)
        return "effect has unknown flags";
    if (knob->changes_statistics > TT_KNOB_LOSSY)
        return "changes_statistics must be one of tt_knob_statistics";
    return NULL;
}

static const char *
enum_fault(tt_knob *knob)
{
    if (knob->values == NULL || knob->values[0] == NULL)
        return "is an enum without values";
    uint32_t count = 0;
    for (; count <= TT_KNOB_VALUES_MAX && knob->values[count] != NULL; count++) {
        if (!tt_text_is_word(knob->values[count], 1))
            return "names of enum values must be [a-z0-9_]+";
        for (uint32_t i = 0; i < count; i++)
            if (strcmp(knob->values[i], knob->values[count]) == 0)
                return "two enum values have the same name";
    }
    if (count > TT_KNOB_VALUES_MAX)
        return "has more than 16 enum values";
    knob->min = 0;
    knob->max = count - 1;
    return NULL;
}

static int
is_power_of_two(double value)
{
    int exponent;
    return value >= 1 && frexp(value, &exponent) == 0.5;
}

static const char *
grid_fault(const tt_knob *knob)
{
    if (knob->grid == TT_KNOB_EVERY)
        return NULL;
    if (knob->grid != TT_KNOB_POWERS_OF_TWO || knob->kind != TT_KNOB_INT)
        return "has a grid that its kind does not know";
    if (!is_power_of_two(knob->min) || !is_power_of_two(knob->max) ||
        !is_power_of_two(knob->default_value))
        return "min, max and default must be powers of two, as its grid says";
    return NULL;
}

static const char *
scale_fault(const tt_knob *knob)
{
    if (knob->scale == TT_KNOB_LINEAR)
        return NULL;
    if (knob->scale != TT_KNOB_LOG2 || knob->kind == TT_KNOB_BOOL || knob->kind == TT_KNOB_ENUM)
        return "has a scale that its kind does not know";
    if (knob->kind == TT_KNOB_REAL && !(knob->min > 0))
        return "a real on a log scale needs min above 0";
    if (knob->min < 0)
        return "an int on a log scale needs min of at least 0";
    return NULL;
}

static const char *
range_fault(const tt_knob *knob)
{
    double ends[3] = {knob->min, knob->max, knob->default_value};
    for (int i = 0; i < 3; i++) {
        if (!isfinite(ends[i]))
            return "min, max and default must be finite";
        if (knob->kind != TT_KNOB_REAL &&
            (ends[i] != nearbyint(ends[i]) || fabs(ends[i]) > INT_MAGNITUDE_MAX))
            return "min, max and default must be whole numbers up to 2^53";
    }
    if (knob->min > knob->max)
        return "min is above max";
    if (knob->default_value < knob->min || knob->default_value > knob->max)
        return "the default is out of range";
    return NULL;
}

tt_status
tti_knob_check(tt_knob *knob, const char *where, tt_error *err)
{
    const char *fault = id_fault(knob);
    if (knob->id == NULL)
        knob->id = "(no id)";
    if (fault == NULL)
        fault = life_fault(knob);
    if (fault == NULL && (knob->kind < TT_KNOB_BOOL || knob->kind > TT_KNOB_ENUM))
        fault = "has an unknown kind";
    if (fault == NULL && knob->kind == TT_KNOB_ENUM)
        fault = enum_fault(knob);
    if (knob->kind == TT_KNOB_BOOL) {
        knob->min = 0;
        knob->max = 1;
    }
    if (fault == NULL)
        fault = scale_fault(knob);
    if (fault == NULL)
        fault = range_fault(knob);
    if (fault == NULL)
        fault = grid_fault(knob);
    if (knob->unit == NULL)
        knob->unit = "";
    return fault == NULL ? TT_OK : refuse(knob, where, err, fault);
}
