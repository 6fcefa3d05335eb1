// Values and settings as people write them.
#include "knobs_internal.h"
#include "tt/core_config.h" // tt_config_nearest
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct byte_unit {
    const char *name;
    double factor;
};
// The first four, largest first, are also what values are printed in.
static const struct byte_unit byte_units[] = {
    {"GiB", 1073741824}, {"MiB", 1048576}, {"KiB", 1024}, {"B", 1},    {"GB", 1e9},
    {"MB", 1e6},         {"kB", 1e3},      {"KB", 1e3},   {"bytes", 1}};
enum { PRINTED_BYTE_UNITS = 4 };

static const char *const switch_words[] = {"off", "on", "false", "true", "no",
                                           "yes", "0",  "1",     NULL};

static int
is_bytes(const tt_knob *knob)
{
    return strcmp(knob->unit, "bytes") == 0;
}

// ---- format ----------------------------------------------------------------------------------

// "requests" -> "request", "batches" -> "batch"; abbreviations ("ms") stay.
static void
singular(const char *unit, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", unit);
    size_t length = strlen(out);
    if (length < 4 || out[length - 1] != 's')
        return;
    int es = length > 4 &&
             (strcmp(out + length - 4, "ches") == 0 || strcmp(out + length - 4, "shes") == 0 ||
              strcmp(out + length - 3, "xes") == 0);
    out[length - (es ? 2 : 1)] = '\0';
}

static int
ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// The shortest of 6, 15 and 17 digits that reads back to the same number.
static void
format_number(double value, char *out, size_t size)
{
    static const int digits[] = {6, 15, 17};
    for (size_t i = 0; i < TT_COUNT_OF(digits); i++) {
        (void)snprintf(out, size, "%.*g", digits[i], value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static char *
format_bytes(double value, char *out, size_t size)
{
    size_t i = 0;
    while (i + 1 < PRINTED_BYTE_UNITS &&
           (value < byte_units[i].factor || fmod(value, byte_units[i].factor) != 0))
        i++;
    char number[40];
    if (value == nearbyint(value))
        (void)snprintf(number, sizeof number, "%.0f", value / byte_units[i].factor);
    else
        format_number(value, number, sizeof number);
    (void)snprintf(out, size, "%s %s", number, byte_units[i].name);
    return out;
}

char *
tt_space_format(const tt_space_knob *space_knob, double value, char *out, size_t size)
{
    const tt_knob *knob = space_knob->knob;
    if (knob->kind == TT_KNOB_BOOL && (value == 0 || value == 1)) {
        (void)snprintf(out, size, "%s", switch_words[(int)value]);
        return out;
    }
    if (knob->kind == TT_KNOB_ENUM && value >= 0 && value <= knob->max &&
        value == nearbyint(value)) {
        (void)snprintf(out, size, "%s", knob->values[(int)value]);
        return out;
    }
    if (is_bytes(knob) && isfinite(value))
        return format_bytes(value, out, size);
    char number[40], unit[64];
    if (value == nearbyint(value) && fabs(value) < 1e15)
        (void)snprintf(number, sizeof number, "%.0f", value);
    else
        format_number(value, number, sizeof number);
    (void)snprintf(unit, sizeof unit, "%s", knob->unit);
    if (value == 1)
        singular(knob->unit, unit, sizeof unit);
    int silent = knob->unit[0] == '\0' || ends_with(knob->id, knob->unit);
    (void)snprintf(out, size, "%s%s%s", number, silent ? "" : " ", silent ? "" : unit);
    return out;
}

char *
tt_setting_format(
    const tt_space *space, const tt_setting *a, const tt_setting *b, char *out, size_t size)
{
    size_t used = 0;
    if (size > 0)
        out[0] = '\0';
    for (uint32_t i = 0; i < space->count; i++) {
        const tt_space_knob *knob = &space->knob[i];
        if (b != NULL ? a->value[i] == b->value[i] : knob->fixed)
            continue;
        char value[96], item[160];
        int length = snprintf(item, sizeof item, "%s%s %s", used > 0 ? ", " : "", knob->knob->id,
                              tt_space_format(knob, a->value[i], value, sizeof value));
        if (length < 0 || used + (size_t)length + sizeof ", ..." > size) {
            if (used + sizeof ", ..." <= size)
                (void)snprintf(out + used, size - used, "%s...", used > 0 ? ", " : "");
            return out;
        }
        memcpy(out + used, item, (size_t)length + 1);
        used += (size_t)length;
    }
    return out;
}

// ---- parse -----------------------------------------------------------------------------------

static tt_status
parse_word(const tt_knob *knob,
           const char *const *words,
           const char *expected,
           const char *text,
           const char *where,
           double *out,
           tt_error *err)
{
    for (uint32_t i = 0; words[i] != NULL; i++)
        if (strcasecmp(words[i], text) == 0) {
            *out = i;
            return TT_OK;
        }
    char advice[96] = "";
    const char *nearest = tt_config_nearest(text, words);
    if (nearest != NULL)
        (void)snprintf(advice, sizeof advice, "did you mean '%s'?", nearest);
    return tt_error_set(err, TT_INVALID, where, advice, "%s must be %s, not '%.60s'", knob->id,
                        expected, text);
}

static tt_status
parse_enum(const tt_knob *knob, const char *text, const char *where, double *out, tt_error *err)
{
    char expected[256] = "one of";
    size_t used = strlen(expected);
    for (uint32_t i = 0; knob->values[i] != NULL && used < sizeof expected; i++)
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s %s", i > 0 ? "," : "",
                                 knob->values[i]);
    return parse_word(knob, knob->values, expected, text, where, out, err);
}

// The factor of what follows the number, or NAN.
static double
unit_factor(const tt_knob *knob, const char *unit)
{
    if (*unit == '\0' || strcmp(unit, knob->unit) == 0)
        return 1;
    char one[64];
    singular(knob->unit, one, sizeof one);
    if (strcmp(unit, one) == 0)
        return 1;
    for (size_t i = 0; is_bytes(knob) && i < TT_COUNT_OF(byte_units); i++)
        if (strcmp(unit, byte_units[i].name) == 0)
            return byte_units[i].factor;
    return (double)NAN;
}

static tt_status
parse_number(const tt_knob *knob, const char *text, const char *where, double *out, tt_error *err)
{
    const char *digits = text + strspn(text, " \t+-");
    char *rest = NULL;
    double number = 0;
    // strtod would also take "inf", "nan" and "0x10"
    int numeric = strspn(digits, "0123456789.") > 0 && digits[1] != 'x' && digits[1] != 'X';
    if (numeric)
        number = strtod(text, &rest);
    if (!numeric || rest == text)
        return tt_error_set(err, TT_INVALID, where, NULL, "%s must be a number%s%s, not '%.60s'",
                            knob->id, knob->unit[0] != '\0' ? " of " : "", knob->unit, text);
    char unit[64];
    (void)snprintf(unit, sizeof unit, "%s", rest + strspn(rest, " \t"));
    for (size_t n = strlen(unit); n > 0 && (unit[n - 1] == ' ' || unit[n - 1] == '\t'); n--)
        unit[n - 1] = '\0';
    double factor = unit_factor(knob, unit);
    if (isnan(factor)) {
        char advice[96] = "write the bare number";
        if (is_bytes(knob))
            (void)snprintf(advice, sizeof advice, "use B, KiB, MiB or GiB");
        else if (knob->unit[0] != '\0')
            (void)snprintf(advice, sizeof advice, "its unit is %s", knob->unit);
        return tt_error_set(err, TT_INVALID, where, advice, "%s: '%s' is not a unit it has",
                            knob->id, unit);
    }
    *out = number * factor;
    return TT_OK;
}

tt_status
tt_space_parse(const tt_space_knob *space_knob,
               const char *text,
               const char *where,
               double *out,
               tt_error *err)
{
    const tt_knob *knob = space_knob->knob;
    double value = 0;
    switch (knob->kind) {
    case TT_KNOB_BOOL:
        TT_TRY(parse_word(knob, switch_words, "on or off", text, where, &value, err));
        value = (int)value % 2;
        break;
    case TT_KNOB_ENUM:
        TT_TRY(parse_enum(knob, text, where, &value, err));
        break;
    default:
        TT_TRY(parse_number(knob, text, where, &value, err));
        break;
    }
    TT_TRY(tti_space_check(space_knob, value, where, err));
    *out = value;
    return TT_OK;
}
