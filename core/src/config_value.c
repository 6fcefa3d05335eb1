// One scalar <-> one typed field: numbers, sizes, durations, words, and what a good message says.
#include "config_tree.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit byte_units[] = {
    {"", 1},         {"B", 1},    {"KiB", 1024}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
    {"TiB", 0x1p40}, {"K", 1024}, {"M", 0x1p20}, {"G", 0x1p30},   {"kB", 1e3},
    {"KB", 1e3},     {"MB", 1e6}, {"GB", 1e9},   {"TB", 1e12},
};
// Parts of a second are divided by, which rounds once: 50us is 5e-05 and nothing near it.
static const unit time_units[] = {
    {"ns", -1e9}, {"us", -1e6}, {"ms", -1e3}, {"s", 1},
    {"min", 60},  {"m", 60},    {"h", 3600},  {"d", 86400},
};

typedef struct message {
    char *what;   // 400 bytes
    char *advice; // 200 bytes
} message;
enum { WHAT_BYTES = 400, ADVICE_BYTES = 200 };

// ---- numbers
// -------------------------------------------------------------------------------------

// A decimal number at the start of `text`; NULL when there is none, else what follows. Not strtod's
// own idea of one: no hexadecimal, no nan, no inf.
static const char *
scan_number(const char *text, double *out)
{
    size_t i = strspn(text, "+-") > 0 ? 1 : 0;
    size_t digits = strspn(text + i, "0123456789");
    size_t end = i + digits;
    if (text[end] == '.') {
        size_t fraction = strspn(text + end + 1, "0123456789");
        digits += fraction;
        end += 1 + fraction;
    }
    if (digits == 0)
        return NULL;
    if (text[end] == 'e' || text[end] == 'E') {
        size_t sign = strspn(text + end + 1, "+-") > 0 ? 1 : 0;
        size_t exponent = strspn(text + end + 1 + sign, "0123456789");
        if (exponent > 0)
            end += 1 + sign + exponent;
    }
    char number[64];
    if (end >= sizeof number)
        return NULL;
    memcpy(number, text, end);
    number[end] = '\0';
    *out = strtod(number, NULL);
    return isfinite(*out) ? text + end : NULL;
}

static const char *
skip_spaces(const char *text)
{
    return text + strspn(text, " ");
}

static int
parse_real(const tt_config_key *key, const char *text, double *out)
{
    const char *rest = scan_number(text, out);
    if (rest != NULL && (key->flags & TT_CONFIG_PERCENT) && strcmp(skip_spaces(rest), "%") == 0) {
        *out /= 100;
        return 1;
    }
    return rest != NULL && *rest == '\0';
}

static int
parse_whole(const char *text, double *out)
{
    const char *rest = scan_number(text, out);
    // Above 2^53 a double no longer holds every whole number.
    return rest != NULL && *rest == '\0' && *out == floor(*out) && fabs(*out) <= 0x1p53;
}

static int
parse_bytes(const char *text, double *out)
{
    const char *rest = scan_number(text, out);
    if (rest == NULL)
        return 0;
    rest = skip_spaces(rest);
    for (size_t i = 0; i < TT_COUNT_OF(byte_units); i++)
        if (strcmp(rest, byte_units[i].name) == 0) {
            *out *= byte_units[i].factor;
            return *out == floor(*out) && fabs(*out) <= 0x1p53;
        }
    return 0;
}

static int
parse_duration(const char *text, double *out)
{
    double total = 0, part;
    const char *rest = scan_number(text, &part);
    if (rest != NULL && *rest == '\0') {
        *out = part;
        return 1;
    }
    while (rest != NULL) {
        rest = skip_spaces(rest);
        size_t length = strspn(rest, "abcdefghijklmnopqrstuvwxyz"), i = 0;
        while (i < TT_COUNT_OF(time_units) && (strlen(time_units[i].name) != length ||
                                               strncmp(rest, time_units[i].name, length) != 0))
            i++;
        if (i == TT_COUNT_OF(time_units))
            return 0;
        double factor = time_units[i].factor;
        total += factor < 0 ? part / -factor : part * factor;
        rest = skip_spaces(rest + length);
        if (*rest == '\0') {
            *out = total;
            return 1;
        }
        rest = scan_number(rest, &part);
    }
    return 0;
}

// ---- range
// ---------------------------------------------------------------------------------------

static const char *
bound_text(const tt_config_key *key, double bound, char *out, size_t size)
{
    static const unit sizes[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 1024}};
    if (key->kind == TT_CONFIG_BYTES)
        for (size_t i = 0; i < TT_COUNT_OF(sizes); i++)
            if (bound >= sizes[i].factor && fmod(bound, sizes[i].factor) == 0) {
                (void)snprintf(out, size, "%.10g %s", bound / sizes[i].factor, sizes[i].name);
                return out;
            }
    const char *suffix = key->kind == TT_CONFIG_DURATION ? " s"
                         : key->kind == TT_CONFIG_BYTES  ? " bytes"
                                                         : "";
    (void)snprintf(out, size, "%.10g%s", bound, suffix);
    return out;
}

static int
in_range(const tt_config_key *key, const char *text, double value, message m)
{
    if (key->min >= key->max)
        return 1;
    int above = (key->flags & TT_CONFIG_ABOVE_MIN) != 0;
    int below = (key->flags & TT_CONFIG_BELOW_MAX) != 0;
    if ((above ? value > key->min : value >= key->min) &&
        (below ? value < key->max : value <= key->max))
        return 1;
    char min[48], max[48], range[128];
    (void)bound_text(key, key->min, min, sizeof min);
    (void)bound_text(key, key->max, max, sizeof max);
    if (!isfinite(key->max))
        (void)snprintf(range, sizeof range, "%s %s", above ? "above" : "at least", min);
    else if (!isfinite(key->min))
        (void)snprintf(range, sizeof range, "%s %s", below ? "below" : "at most", max);
    else if (!above && !below)
        (void)snprintf(range, sizeof range, "from %s to %s", min, max);
    else
        (void)snprintf(range, sizeof range, "%s %s and %s %s", above ? "above" : "at least", min,
                       below ? "below" : "at most", max);
    (void)snprintf(m.what, WHAT_BYTES, "%s must be %s%s%s, not %.60s", key->path, range,
                   key->unit != NULL ? " " : "", key->unit != NULL ? key->unit : "", text);
    return 0;
}

static const char *
number_wanted(const tt_config_key *key)
{
    switch (key->kind) {
    case TT_CONFIG_INT:
        return "a whole number";
    case TT_CONFIG_BYTES:
        return "a size such as 64KiB";
    case TT_CONFIG_DURATION:
        return "a duration such as 90s or 1h30m";
    default:
        return key->flags & TT_CONFIG_PERCENT ? "a number or a percentage" : "a number";
    }
}

static int
parse_number(const tt_config_key *key, const char *text, double *out, message m)
{
    int ok = key->kind == TT_CONFIG_INT        ? parse_whole(text, out)
             : key->kind == TT_CONFIG_BYTES    ? parse_bytes(text, out)
             : key->kind == TT_CONFIG_DURATION ? parse_duration(text, out)
                                               : parse_real(key, text, out);
    if (!ok) {
        (void)snprintf(m.what, WHAT_BYTES, "%s must be %s%s, not '%.80s'", key->path,
                       number_wanted(key), key->flags & TT_CONFIG_AUTO ? " or auto" : "", text);
        return 0;
    }
    return in_range(key, text, *out, m);
}

// ---- words
// ---------------------------------------------------------------------------------------

static int
parse_bool(const tt_config_key *key, const char *text, int *out, message m)
{
    static const char *const yes[] = {"on", "true", "yes"}, *const no[] = {"off", "false", "no"};
    for (size_t i = 0; i < TT_COUNT_OF(yes); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return 1;
        }
    }
    (void)snprintf(m.what, WHAT_BYTES, "%s must be on or off%s, not '%.80s'", key->path,
                   key->flags & TT_CONFIG_AUTO ? " (or auto)" : "", text);
    return 0;
}

static int
parse_enum(const tt_config_key *key, const char *text, int *out, message m)
{
    char names[200];
    size_t used = 0, count = 0;
    for (; key->values[count] != NULL; count++) {
        if (strcmp(text, key->values[count]) == 0) {
            *out = (int)count;
            return 1;
        }
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     count > 0 ? ", " : "", key->values[count]);
    }
    (void)snprintf(m.what, WHAT_BYTES, "%s must be one of %s, not '%.60s'", key->path, names, text);
    int nearest = tti_config_nearest_index(text, key->values, count);
    if (nearest >= 0)
        (void)snprintf(m.advice, ADVICE_BYTES, "did you mean '%s'?", key->values[nearest]);
    return 0;
}

// Relative paths belong to the file that says them; ~/ is the home directory.
const char *
tti_config_resolve_path(tt_config *cfg, const char *directory, const char *text)
{
    const char *home = getenv("HOME"); // set before threads start
    if (text[0] == '~' && text[1] == '/' && home != NULL)
        return tti_config_printf(cfg, "%s%s", home, text + 1);
    if (text[0] == '/' || directory[0] == '\0')
        return tt_arena_strdup(&cfg->arena, text);
    return tti_config_printf(cfg, "%s%s", directory, text);
}

// ---- one field
// -----------------------------------------------------------------------------------

static void
set_absent(const tt_config_key *key, void *out)
{
    switch (key->kind) {
    case TT_CONFIG_STRING:
    case TT_CONFIG_PATH:
        *(const char **)out = NULL;
        break;
    case TT_CONFIG_BOOL:
        *(int *)out = 0;
        break;
    case TT_CONFIG_ENUM:
        *(int *)out = -1;
        break;
    case TT_CONFIG_INT:
    case TT_CONFIG_BYTES:
        *(int64_t *)out = 0;
        break;
    case TT_CONFIG_REAL:
    case TT_CONFIG_DURATION:
        *(double *)out = (double)NAN;
        break;
    case TT_CONFIG_NODE:
        *(const tt_config_node **)out = NULL;
        break;
    case TT_CONFIG_PATHS:
        *(const tt_config_paths **)out = NULL;
        break;
    }
}

static int
parse_text(
    tt_config *cfg, const tt_config_key *key, const tt_config_node *node, void *out, message m)
{
    const char *text = node->text;
    if (text[0] == '\0' && key->kind == TT_CONFIG_PATH) {
        (void)snprintf(m.what, WHAT_BYTES, "%s must be a path, not ''", key->path);
        return 0;
    }
    *(const char **)out =
        key->kind == TT_CONFIG_PATH ? tti_config_resolve_path(cfg, node->directory, text) : text;
    if (*(const char **)out != NULL)
        return 1;
    cfg->starved = 1;
    (void)snprintf(m.what, WHAT_BYTES, "no memory for %s", key->path);
    return 0;
}

int
tti_config_parse_value(tt_config *cfg,
                       const tt_config_key *key,
                       const tt_config_node *node,
                       void *out,
                       char what[400],
                       char advice[200])
{
    message m = {what, advice};
    what[0] = advice[0] = '\0';
    if ((key->flags & TT_CONFIG_AUTO) && strcmp(node->text, "auto") == 0) {
        set_absent(key, out);
        return 1;
    }
    double number = 0;
    switch (key->kind) {
    case TT_CONFIG_STRING:
    case TT_CONFIG_PATH:
        return parse_text(cfg, key, node, out, m);
    case TT_CONFIG_BOOL:
        return parse_bool(key, node->text, out, m);
    case TT_CONFIG_ENUM:
        return parse_enum(key, node->text, out, m);
    case TT_CONFIG_INT:
    case TT_CONFIG_BYTES:
        if (!parse_number(key, node->text, &number, m))
            return 0;
        *(int64_t *)out = (int64_t)number;
        return 1;
    case TT_CONFIG_REAL:
    case TT_CONFIG_DURATION:
        if (!parse_number(key, node->text, &number, m))
            return 0;
        *(double *)out = number;
        return 1;
    case TT_CONFIG_NODE:
        *(const tt_config_node **)out = node;
        return 1;
    case TT_CONFIG_PATHS: // not one scalar, see config_paths.c
        break;
    }
    tt_assert_fail("a key's kind is one of tt_config_kind", __FILE__, __LINE__);
}

void
tti_config_set_default(tt_config *cfg, const tt_config_key *key, void *out)
{
    set_absent(key, out);
    if (key->default_text == NULL || key->kind == TT_CONFIG_NODE || key->kind == TT_CONFIG_PATHS)
        return;
    char what[WHAT_BYTES], advice[ADVICE_BYTES];
    tt_config_node node = {.text = key->default_text, .directory = ""};
    // A default that its own key refuses is a fault in the caller's table (or memory ran out).
    int fits = tti_config_parse_value(cfg, key, &node, out, what, advice);
    TT_ASSERT(fits || cfg->starved);
}

int
tti_config_is_absent(const tt_config_key *key, const void *field)
{
    switch (key->kind) {
    case TT_CONFIG_STRING:
    case TT_CONFIG_PATH:
        return *(const char *const *)field == NULL;
    case TT_CONFIG_BOOL:
        return *(const int *)field == 0;
    case TT_CONFIG_ENUM:
        return *(const int *)field < 0;
    case TT_CONFIG_INT:
    case TT_CONFIG_BYTES:
        return *(const int64_t *)field == 0;
    case TT_CONFIG_REAL:
    case TT_CONFIG_DURATION:
        return !isfinite(*(const double *)field);
    case TT_CONFIG_NODE:
        return *(const tt_config_node *const *)field == NULL;
    case TT_CONFIG_PATHS:
        return *(const tt_config_paths *const *)field == NULL;
    }
    return 1;
}

// ---- back to text
// --------------------------------------------------------------------------------

static const char *
format_real(tt_config *cfg, double value, const char *suffix)
{
    char text[64];
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return tti_config_printf(cfg, "%s%s", text, suffix);
}

static const char *
format_bytes(tt_config *cfg, int64_t bytes)
{
    if (bytes != 0 && bytes % (1 << 20) == 0)
        return tti_config_printf(cfg, "%" PRId64 "MiB", bytes / (1 << 20));
    if (bytes != 0 && bytes % 1024 == 0)
        return tti_config_printf(cfg, "%" PRId64 "KiB", bytes / 1024);
    return tti_config_printf(cfg, "%" PRId64, bytes);
}

static const char *
format_path(tt_config *cfg, const char *path)
{
    if (path[0] == '/')
        return path;
    char here[4096];
    const char *directory = realpath(".", here);
    return directory != NULL ? tti_config_printf(cfg, "%s/%s", directory, path) : path;
}

const char *
tti_config_format_value(tt_config *cfg, const tt_config_key *key, const void *field)
{
    switch (key->kind) {
    case TT_CONFIG_STRING:
        return *(const char *const *)field;
    case TT_CONFIG_PATH:
        return format_path(cfg, *(const char *const *)field);
    case TT_CONFIG_BOOL:
        return *(const int *)field ? "on" : "off";
    case TT_CONFIG_ENUM:
        return key->values[*(const int *)field];
    case TT_CONFIG_INT:
        return tti_config_printf(cfg, "%" PRId64, *(const int64_t *)field);
    case TT_CONFIG_BYTES:
        return format_bytes(cfg, *(const int64_t *)field);
    case TT_CONFIG_REAL:
        return format_real(cfg, *(const double *)field, "");
    case TT_CONFIG_DURATION:
        return format_real(cfg, *(const double *)field, "s");
    case TT_CONFIG_NODE:
    case TT_CONFIG_PATHS:
        break;
    }
    return NULL;
}
