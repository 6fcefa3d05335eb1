// trimtab knobs list.
#include "cli_internal.h"
#include "tt/knobs.h"
#include <jansson.h>
#include <string.h>

static const char *const kinds[] = {"bool", "int", "real", "enum"};

static const char *
effect_text(const tt_knob *knob)
{
    static const char *const texts[] = {"setting only", "moves data", "moves parameters",
                                        "moves parameters and data"};
    return texts[knob->effect & (TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL)];
}

static const char *
statistics_text(const tt_knob *knob)
{
    static const char *const texts[] = {"", ", may change iterations needed",
                                        ", may need more iterations"};
    return texts[knob->changes_statistics];
}

static void
print_knob(const tt_space_knob *knob, const char *origin)
{
    char low[48], high[48], start[48], range[112];
    (void)tt_space_format(knob, knob->min, low, sizeof low);
    (void)tt_space_format(knob, knob->max, high, sizeof high);
    (void)tt_space_format(knob, knob->knob->default_value, start, sizeof start);
    (void)snprintf(range, sizeof range, "%s .. %s", low, high);
    (void)printf("%-17s %-5s %-28s default %-14s %s%s\n", knob->knob->id, kinds[knob->knob->kind],
                 range, start, effect_text(knob->knob), statistics_text(knob->knob));
    (void)printf(
        "%17s %s%s%s%s\n", "", knob->knob->help, strcmp(origin, "built in") == 0 ? "" : " (from ",
        strcmp(origin, "built in") == 0 ? "" : origin, strcmp(origin, "built in") == 0 ? "" : ")");
}

static json_t *
knob_json(const tt_space_knob *knob, const char *origin)
{
    json_t *values = json_array();
    for (size_t i = 0; knob->knob->values != NULL && knob->knob->values[i] != NULL; i++)
        (void)json_array_append_new(values, json_string(knob->knob->values[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:s, s:b, s:b, s:o, s:s}", "id", knob->knob->id,
        "kind", kinds[knob->knob->kind], "help", knob->knob->help, "unit", knob->knob->unit, "min",
        knob->min, "max", knob->max, "default", knob->knob->default_value, "scale",
        knob->log_scale ? "log2" : "linear", "effect", effect_text(knob->knob),
        "changes_statistics", knob->knob->changes_statistics != TT_KNOB_TIME_ONLY, "lossy",
        knob->knob->changes_statistics == TT_KNOB_LOSSY, "values", values, "origin", origin);
}

static int
list(const tt_knob_registry *registry, int json)
{
    static tt_space space;
    tt_space_init(&space, registry);
    json_t *all = json_array();
    for (uint32_t k = 0; k < space.count; k++) {
        const char *origin = tt_knob_registry_origin(registry, k);
        if (json)
            (void)json_array_append_new(all, knob_json(&space.knob[k], origin));
        else
            print_knob(&space.knob[k], origin);
    }
    if (json) {
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        (void)printf("\n");
    } else {
        (void)printf("\nA job narrows ranges (servers: 1 to nodes - 1) and drops what it does not "
                     "have: trimtab plan JOB.yaml\n");
    }
    json_decref(all);
    return tti_cli_flush();
}

int
tti_cli_knobs(int argc, char **argv)
{
    if (argc < 1 || strcmp(argv[0], "list") != 0)
        return tti_cli_expected("knobs", argc > 0 ? argv[0] : NULL, "list");
    tt_knob_registry *registry;
    tt_error err = {0};
    int json = 0, code = 0;
    if (tt_knob_registry_open(&registry, &err) != TT_OK)
        return tti_cli_fail(&err);
    for (int i = 1; i < argc && code == 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (argv[i][0] == '-')
            code = tti_cli_unknown_option("knobs", argv[i]);
        else if (tt_knob_registry_load(registry, argv[i], &err) != TT_OK)
            code = tti_cli_fail(&err);
    }
    if (code == 0)
        code = list(registry, json);
    tt_knob_registry_close(registry);
    return code;
}
