// Search spaces written down as files: knobs that describe nothing of ours, and constraints.
#include "space_constraint.h"
#include "tt/knobs_file.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { NAME_MAX_BYTES = 40, CONSTRAINTS_MAX = 32, ARENA_BYTES = 4096 };

struct tt_space_file {
    tt_arena file_arena; // names
    tt_space space;
    tt_knob knob[TT_KNOBS_MAX];
    const char *values[TT_KNOBS_MAX][TT_KNOB_VALUES_MAX + 1];
    tti_constraint *constraint[CONSTRAINTS_MAX];
    uint32_t constraint_count;
    int has_start;
    uint64_t constraint_print;
};

// What a knob's mapping may say.
typedef struct knob_keys {
    int kind, scale;
    const tt_config_node *range, *values, *start;
} knob_keys;

static const char *const kinds[] = {"bool", "int", "real", "enum", NULL}; // as tt_knob_kind
static const char *const scales[] = {"linear", "log", NULL};
static const tt_config_key knob_table[] = {
    {.path = "kind",
     .kind = TT_CONFIG_ENUM,
     .offset = offsetof(knob_keys, kind),
     .values = kinds,
     .flags = TT_CONFIG_REQUIRED,
     .help = "what its values are"},
    {.path = "range",
     .kind = TT_CONFIG_NODE,
     .offset = offsetof(knob_keys, range),
     .help = "[low, high], both included (int, real)"},
    {.path = "values",
     .kind = TT_CONFIG_NODE,
     .offset = offsetof(knob_keys, values),
     .help = "names (enum)"},
    {.path = "scale",
     .kind = TT_CONFIG_ENUM,
     .offset = offsetof(knob_keys, scale),
     .values = scales,
     .default_text = "linear",
     .help = "log where ratios matter"},
    {.path = "start",
     .kind = TT_CONFIG_NODE,
     .offset = offsetof(knob_keys, start),
     .help = "the value that is tried first"},
};

static const uint64_t PRINT_SEED = 14695981039346656037u; // FNV-1a

static uint64_t
print_bytes(uint64_t print, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        print = (print ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return print;
}

static uint64_t
print_text(uint64_t print, const char *text)
{
    return print_bytes(print, text, strlen(text) + 1);
}

typedef struct reader {
    tt_config *cfg;
    tt_space_file *file;
    int starved;
} reader;

static const char *
keep(reader *r, const char *text)
{
    char *copy = tt_arena_strdup(&r->file->file_arena, text);
    r->starved = r->starved || copy == NULL;
    return copy != NULL ? copy : "";
}

static int
is_name(const char *text)
{
    if (!isalpha((unsigned char)text[0]) && text[0] != '_')
        return 0;
    for (const char *s = text; *s != '\0'; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return 0;
    return strlen(text) <= NAME_MAX_BYTES && strcmp(text, "and") != 0 && strcmp(text, "or") != 0 &&
           strcmp(text, "not") != 0;
}

// ---- one knob --------------------------------------------------------------------------------

static int
read_number(reader *r, const tt_config_node *node, const char *name, int whole, double *out)
{
    tt_config_key key = {.path = name, .kind = TT_CONFIG_REAL};
    if (tt_config_read_one(r->cfg, node, &key, out) != TT_OK)
        return 0;
    if (!isfinite(*out) || fabs(*out) > 1e300)
        tt_config_complain(r->cfg, node, NULL, "an end of a range must be finite");
    else if (whole && (*out != nearbyint(*out) || fabs(*out) > 9007199254740992.0))
        tt_config_complain(r->cfg, node, "use kind: real", "%s is an int, and %g is not", name,
                           *out);
    else
        return 1;
    return 0;
}

static int
read_range(reader *r, const tt_config_node *node, const char *name, int log_scale, tt_knob *knob)
{
    double ends[2];
    if (tt_config_node_kind_of(node) != TT_CONFIG_SEQUENCE || tt_config_node_count(node) != 2) {
        tt_config_complain(r->cfg, node, "write range: [low, high]", "a range has two ends");
        return 0;
    }
    for (size_t i = 0; i < 2; i++)
        if (!read_number(r, tt_config_node_at(node, i), name, knob->kind == TT_KNOB_INT, &ends[i]))
            return 0;
    double least = knob->kind == TT_KNOB_INT ? 0 : 5e-324;
    if (ends[0] > ends[1])
        tt_config_complain(r->cfg, node, "write the lower end first", "the range is empty");
    else if (log_scale && ends[0] < least)
        tt_config_complain(r->cfg, node, "use scale: linear",
                           "a log scale needs a range of %s numbers",
                           knob->kind == TT_KNOB_INT ? "non-negative" : "positive");
    else if (!isfinite(ends[1] - ends[0]))
        tt_config_complain(r->cfg, node, NULL, "the range is too wide");
    else {
        knob->min = ends[0];
        knob->max = ends[1];
        return 1;
    }
    return 0;
}

static int
read_values(reader *r, const tt_config_node *node, uint32_t at, tt_knob *knob)
{
    size_t count = tt_config_node_count(node);
    if (tt_config_node_kind_of(node) != TT_CONFIG_SEQUENCE || count == 0 ||
        count > TT_KNOB_VALUES_MAX) {
        tt_config_complain(r->cfg, node, "write values: [name, name, ...]",
                           "an enum has 1 to %d values", TT_KNOB_VALUES_MAX);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const tt_config_node *value = tt_config_node_at(node, i);
        const char *text = tt_config_node_text(value);
        if (text == NULL || text[0] == '\0' || strlen(text) > NAME_MAX_BYTES) {
            tt_config_complain(r->cfg, value, NULL, "a value is a name of at most %d bytes",
                               NAME_MAX_BYTES);
            return 0;
        }
        for (size_t j = 0; j < i; j++)
            if (strcmp(r->file->values[at][j], text) == 0) {
                tt_config_complain(r->cfg, value, NULL, "'%s' is there twice", text);
                return 0;
            }
        r->file->values[at][i] = keep(r, text);
    }
    knob->values = r->file->values[at];
    knob->max = (double)count - 1;
    return 1;
}

static void
read_start(reader *r, const tt_config_node *node, uint32_t at)
{
    tt_error err = {0};
    const char *text = tt_config_node_text(node);
    double value;
    if (text == NULL)
        tt_config_complain(r->cfg, node, NULL, "a start is one value");
    else if (tt_space_parse(&r->file->space.knob[at], text, NULL, &value, &err) != TT_OK)
        tt_config_complain(r->cfg, node, err.advice[0] != '\0' ? err.advice : NULL, "%s", err.what);
    else {
        r->file->space.knob[at].start = value;
        r->file->has_start = 1;
    }
}

// A key that this kind of knob has no use for, or that it misses.
static int
check_keys(reader *r, const tt_config_node *node, const knob_keys *keys, const tt_knob *knob)
{
    int ranged = knob->kind == TT_KNOB_INT || knob->kind == TT_KNOB_REAL;
    const tt_config_node *useless = ranged ? keys->values : keys->range;
    const tt_config_node *wanted = ranged ? keys->range : keys->values;
    if (knob->kind == TT_KNOB_BOOL && useless == NULL)
        useless = keys->values;
    if (useless != NULL)
        tt_config_complain(r->cfg, useless, "take it out", "a knob of kind %s has no %s",
                           kinds[knob->kind], useless == keys->range ? "range" : "values");
    else if (wanted == NULL && knob->kind != TT_KNOB_BOOL)
        tt_config_complain(
            r->cfg, node, ranged ? "add range: [low, high]" : "add values: [name, name, ...]",
            "a knob of kind %s needs %s", kinds[knob->kind], ranged ? "a range" : "values");
    else if (!ranged && keys->scale == 1)
        tt_config_complain(r->cfg, node, "take scale out", "a knob of kind %s has no scale",
                           kinds[knob->kind]);
    else
        return 1;
    return 0;
}

static void
read_knob(reader *r, const char *name, const tt_config_node *node)
{
    tt_space *space = &r->file->space;
    uint32_t at = space->count;
    tt_knob *knob = &r->file->knob[at];
    knob_keys keys = {0};
    if (tt_config_read_at(r->cfg, node, knob_table, TT_COUNT_OF(knob_table), &keys) != TT_OK)
        return;
    *knob = (tt_knob){.struct_size = sizeof *knob,
                      .id = keep(r, name),
                      .help = "of a space file",
                      .unit = "",
                      .kind = (tt_knob_kind)keys.kind,
                      .scale = keys.scale == 1 ? TT_KNOB_LOG2 : TT_KNOB_LINEAR,
                      .max = 1};
    if (!check_keys(r, node, &keys, knob))
        return;
    if (keys.range != NULL && !read_range(r, keys.range, name, keys.scale == 1, knob))
        return;
    if (keys.values != NULL && !read_values(r, keys.values, at, knob))
        return;
    space->knob[at] = (tt_space_knob){
        .knob = knob, .min = knob->min, .max = knob->max, .log_scale = keys.scale == 1};
    space->knob[at].start = tt_space_decode(&space->knob[at], 0.5);
    if (keys.start != NULL)
        read_start(r, keys.start, at);
    knob->default_value = space->knob[at].start;
    space->count++;
}

// ---- the file --------------------------------------------------------------------------------

static void
read_knobs(reader *r)
{
    const tt_config_node *knobs = tt_config_find(r->cfg, NULL, "knobs");
    if (knobs == NULL || tt_config_node_kind_of(knobs) != TT_CONFIG_MAPPING ||
        tt_config_node_count(knobs) == 0) {
        tt_config_complain(r->cfg, knobs, "write knobs: {name: {kind: int, range: [1, 8]}, ...}",
                           "there is no knob to tune");
        return;
    }
    for (size_t i = 0; i < tt_config_node_count(knobs); i++) {
        const char *name = tt_config_node_key(knobs, i);
        const tt_config_node *node = tt_config_node_at(knobs, i);
        if (!is_name(name)) {
            tt_config_complain(r->cfg, node, "use letters, digits and _",
                               "'%.40s' cannot be a knob's name", name);
        } else if (tt_config_node_kind_of(node) != TT_CONFIG_MAPPING) {
            tt_config_complain(r->cfg, node, "write {kind: ..., ...}",
                               "a knob is described by a mapping");
        } else if (i >= TT_KNOBS_MAX) {
            tt_config_complain(r->cfg, node, NULL, "there are more than %d knobs", TT_KNOBS_MAX);
            return;
        } else {
            read_knob(r, name, node);
        }
    }
}

static void
read_constraint(reader *r, const tt_config_node *node)
{
    tt_error err = {0};
    tt_space_file *file = r->file;
    const char *text = tt_config_node_text(node);
    if (text == NULL || file->constraint_count == CONSTRAINTS_MAX) {
        tt_config_complain(r->cfg, node, NULL,
                           text == NULL ? "a constraint is text, such as \"workers <= 16 or half\""
                                        : "there are too many constraints; join some by and");
        return;
    }
    tt_status status =
        tti_constraint_parse(&file->space, text, &file->constraint[file->constraint_count], &err);
    r->starved = r->starved || status == TT_NOMEM;
    if (status != TT_OK)
        tt_config_complain(r->cfg, node, "such as \"workers <= 16 or half\"", "constraint: %s",
                           err.what);
    else
        file->constraint_count++;
    file->constraint_print = print_text(file->constraint_print, text);
}

static void
read_constraints(reader *r)
{
    const tt_config_node *list = tt_config_find(r->cfg, NULL, "constraints");
    if (list == NULL)
        return;
    if (tt_config_node_kind_of(list) != TT_CONFIG_SEQUENCE) {
        tt_config_complain(r->cfg, list, "write constraints: [\"workers <= 16 or half\"]",
                           "constraints are a list");
        return;
    }
    for (size_t i = 0; i < tt_config_node_count(list); i++)
        read_constraint(r, tt_config_node_at(list, i));
}

static int
accept(void *self, const tt_setting *setting)
{
    const tt_space_file *file = self;
    for (uint32_t i = 0; i < file->constraint_count; i++)
        if (!tti_constraint_holds(file->constraint[i], setting))
            return 0;
    return 1;
}

static void
read_all(reader *r)
{
    typedef struct whole {
        const tt_config_node *knobs, *constraints;
    } whole;
    static const tt_config_key table[] = {
        {.path = "knobs", .kind = TT_CONFIG_NODE, .offset = offsetof(whole, knobs)},
        {.path = "constraints", .kind = TT_CONFIG_NODE, .offset = offsetof(whole, constraints)},
    };
    whole unused;
    (void)tt_config_read(r->cfg, table, TT_COUNT_OF(table), &unused); // for keys it has not
    read_knobs(r);
    // What names a knob with a fault of its own would only add noise.
    if (tt_config_error_count(r->cfg) == 0)
        read_constraints(r);
    tt_setting start;
    tt_space_start(&r->file->space, &start);
    if (tt_config_error_count(r->cfg) == 0 && r->file->has_start && !accept(r->file, &start))
        tt_config_complain(r->cfg, tt_config_find(r->cfg, NULL, "constraints"),
                           "start elsewhere, or in no place", "the start breaks a constraint");
}

tt_status
tt_space_file_read(tt_config *cfg, tt_space_file **out)
{
    *out = NULL;
    tt_space_file *file = tt_mem_zalloc(1, sizeof *file);
    if (file == NULL)
        return TT_NOMEM;
    tt_arena_init(&file->file_arena, ARENA_BYTES);
    file->constraint_print = PRINT_SEED;
    reader r = {.cfg = cfg, .file = file};
    read_all(&r);
    if (r.starved || tt_config_error_count(cfg) > 0) {
        tt_space_file_close(file);
        return r.starved ? TT_NOMEM : TT_INVALID;
    }
    if (file->constraint_count > 0) {
        file->space.accept = accept;
        file->space.accept_self = file;
    }
    *out = file;
    return TT_OK;
}

const tt_space *
tt_space_file_space(const tt_space_file *file)
{
    return &file->space;
}

int
tt_space_file_has_start(const tt_space_file *file)
{
    return file->has_start;
}

uint64_t
tt_space_file_print(const tt_space_file *file)
{
    uint64_t print = file->constraint_print;
    for (uint32_t k = 0; k < file->space.count; k++) {
        const tt_space_knob *knob = &file->space.knob[k];
        const double numbers[] = {knob->knob->kind, knob->min, knob->max, knob->start,
                                  knob->log_scale};
        print = print_text(print, knob->knob->id);
        print = print_bytes(print, numbers, sizeof numbers);
        for (size_t v = 0; knob->knob->values != NULL && knob->knob->values[v] != NULL; v++)
            print = print_text(print, knob->knob->values[v]);
    }
    return print_bytes(print, &file->has_start, sizeof file->has_start);
}

void
tt_space_file_close(tt_space_file *file)
{
    if (file == NULL)
        return;
    for (uint32_t i = 0; i < file->constraint_count; i++)
        tti_constraint_free(file->constraint[i]);
    tt_arena_fini(&file->file_arena);
    tt_mem_free(file);
}
