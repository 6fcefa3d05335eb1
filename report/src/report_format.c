// Numbers as people read them, always with their unit.
#include "report_model.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

char *
tti_format_time(double seconds, char *out, size_t size)
{
    double magnitude = fabs(seconds);
    if (isnan(seconds))
        (void)snprintf(out, size, "?");
    else if (!isfinite(seconds))
        (void)snprintf(out, size, "for ever");
    else if (magnitude == 0)
        (void)snprintf(out, size, "0 s");
    else if (magnitude < 0.9995e-3)
        (void)snprintf(out, size, "%.3g us", seconds * 1e6);
    else if (magnitude < 0.0995)
        (void)snprintf(out, size, "%.3g ms", seconds * 1e3);
    else if (magnitude < 0.95)
        (void)snprintf(out, size, "%.2f s", seconds);
    else if (magnitude < 59.95)
        (void)snprintf(out, size, "%.1f s", seconds);
    else {
        long long whole = llround(magnitude);
        const char *sign = seconds < 0 ? "-" : "";
        if (whole < 3600)
            (void)snprintf(out, size, "%s%lld:%02lld min", sign, whole / 60, whole % 60);
        else
            (void)snprintf(out, size, "%s%lld:%02lld:%02lld h", sign, whole / 3600, whole / 60 % 60,
                           whole % 60);
    }
    return out;
}

char *
tti_format_clock(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds))
        (void)snprintf(out, size, "?");
    else if (seconds < 59.95)
        (void)snprintf(out, size, "%.1f s", seconds);
    else {
        long long whole = llround(seconds);
        if (whole < 3600)
            (void)snprintf(out, size, "%lld:%02lld", whole / 60, whole % 60);
        else
            (void)snprintf(out, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                           whole % 60);
    }
    return out;
}

char *
tti_format_count(double count, char *out, size_t size)
{
    char digits[40];
    if (!isfinite(count) || fabs(count) > 1e15) {
        (void)snprintf(out, size, isnan(count) ? "?" : "%.3g", count);
        return out;
    }
    int length = snprintf(digits, sizeof digits, "%lld", llround(count));
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

int
tti_is(const char *word, const char *other)
{
    return word != NULL && strcmp(word, other) == 0;
}

void
tti_append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
}

static const struct {
    const char *name;
    double bytes;
} sizes[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 1024}};

// Name number `index` of names joined by commas; 0 when there is none.
static int
value_name(const char *names, double index, char *out, size_t size)
{
    if (!(index >= 0 && index < 1000))
        return 0;
    for (int skip = (int)llround(index); skip > 0; skip--) {
        names = strchr(names, ',');
        if (names == NULL)
            return 0;
        names++;
    }
    (void)snprintf(out, size, "%.*s", (int)strcspn(names, ","), names);
    return 1;
}

char *
tti_format_value(const tt_store_knob *knob, double value, int plain, char *out, size_t size)
{
    if (isnan(value))
        (void)snprintf(out, size, "?");
    else if (tti_is(knob->kind, "bool"))
        (void)snprintf(out, size, "%s", value != 0 ? "on" : "off");
    else if (tti_is(knob->kind, "enum") && knob->values != NULL &&
             value_name(knob->values, value, out, size))
        return out;
    else if (knob->unit != NULL && strcmp(knob->unit, "bytes") == 0) {
        for (size_t i = 0; i < TT_COUNT_OF(sizes); i++)
            if (value >= sizes[i].bytes && fmod(value, sizes[i].bytes) == 0) {
                (void)snprintf(out, size, "%.10g%s%s", value / sizes[i].bytes, plain ? "" : " ",
                               sizes[i].name);
                return out;
            }
        (void)snprintf(out, size, "%.10g%s", value, plain ? "" : " bytes");
    } else if (plain)
        (void)snprintf(out, size, "%.10g", value);
    else {
        // "worker_threads 3", not "worker_threads 3 threads"
        int said = knob->unit == NULL || strstr(knob->id, knob->unit) != NULL;
        const char *unit = said ? "" : knob->unit;
        (void)snprintf(out, size, "%.6g%s%s", value, unit[0] != '\0' ? " " : "", unit);
    }
    return out;
}

// "servers 2 -> 1": the unit once, when both ends share it.
static void
format_change(const tt_store_knob *knob, double from, double to, char *out, size_t size)
{
    char before[64], after[64];
    int bytes = knob->unit != NULL && strcmp(knob->unit, "bytes") == 0;
    int plain = !bytes && knob->unit != NULL && knob->unit[0] != '\0';
    (void)tti_format_value(knob, from, plain, before, sizeof before);
    (void)tti_format_value(knob, to, 0, after, sizeof after);
    (void)snprintf(out, size, "%s %s -> %s", knob->id, before, after);
}

char *
tti_format_difference(const tti_report *report,
                      const tti_setting *from,
                      const tti_setting *to,
                      char *out,
                      size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; to != NULL && i < report->knobs.count; i++) {
        const tt_store_knob *knob = TTI_AT(report->knobs, tt_store_knob, i);
        char text[200], value[64];
        if (from == NULL) {
            if (knob->fixed)
                continue;
            (void)snprintf(text, sizeof text, "%s %s", knob->id,
                           tti_format_value(knob, to->values[i], 0, value, sizeof value));
        } else {
            int same = from->values[i] == to->values[i] ||
                       (isnan(from->values[i]) && isnan(to->values[i]));
            if (same)
                continue;
            format_change(knob, from->values[i], to->values[i], text, sizeof text);
        }
        int length = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", text);
        used = TT_MIN(used + (size_t)TT_MAX(length, 0), size - 1);
    }
    return out;
}
