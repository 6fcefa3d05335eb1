// The job file as a JSON Schema (draft 2020-12), made from the same list as everything else, for
// editors.
#include "job_internal.h"
#include <jansson.h>
#include <string.h>

static const char duration_pattern[] = "^([0-9.]+([eE][-+]?[0-9]+)? *(ns|us|ms|s|min|m|h|d)? *)+$";
static const char bytes_pattern[] = "^[0-9.]+ *([kKMGT]i?B|B|bytes)?$";

// {"type": [name, "null"]}: null takes a key of an earlier file back.
static json_t *
typed(const char *name)
{
    return json_pack("{s:[s, s]}", "type", name, "null");
}

static json_t *
choice_of(const tt_config_key *key)
{
    static const char *const switches[] = {"on", "off", "true", "false", "yes", "no", NULL};
    const char *const *values = key->kind == TT_CONFIG_BOOL ? switches : key->values;
    json_t *list = json_array();
    for (size_t i = 0; values[i] != NULL; i++)
        (void)json_array_append_new(list, json_string(values[i]));
    if (key->kind == TT_CONFIG_BOOL) { // what a YAML 1.1 editor makes of on and off
        (void)json_array_append_new(list, json_true());
        (void)json_array_append_new(list, json_false());
    }
    (void)json_array_append_new(list, json_null());
    return json_pack("{s:o}", "enum", list);
}

static json_t *
quantity_of(const char *pattern)
{
    return json_pack("{s:[{s:[s, s]}, {s:s, s:s}]}", "anyOf", "type", "number", "null", "type",
                     "string", "pattern", pattern);
}

static json_t *
number_of(const tt_config_key *key)
{
    json_t *schema = typed(key->kind == TT_CONFIG_INT ? "integer" : "number");
    if (key->min < key->max) {
        int above = (key->flags & TT_CONFIG_ABOVE_MIN) != 0,
            below = (key->flags & TT_CONFIG_BELOW_MAX) != 0;
        (void)json_object_set_new(schema, above ? "exclusiveMinimum" : "minimum",
                                  json_real(key->min));
        (void)json_object_set_new(schema, below ? "exclusiveMaximum" : "maximum",
                                  json_real(key->max));
    }
    if (key->kind == TT_CONFIG_REAL) // 1e-5 is a text to YAML 1.1
        return json_pack("{s:[o, {s:s, s:s}]}", "anyOf", schema, "type", "string", "pattern",
                         (key->flags & TT_CONFIG_PERCENT) != 0 ? "^[0-9.]+([eE][-+]?[0-9]+| *%)$"
                                                               : "^[-+]?[0-9.]+[eE][-+]?[0-9]+$");
    if ((key->flags & TT_CONFIG_AUTO) != 0)
        return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "const", "auto");
    return schema;
}

static json_t *
schema_of(const tt_config_key *key)
{
    switch (key->kind) {
    case TT_CONFIG_BOOL:
    case TT_CONFIG_ENUM:
        return choice_of(key);
    case TT_CONFIG_INT:
    case TT_CONFIG_REAL:
        return number_of(key);
    case TT_CONFIG_BYTES:
        return quantity_of(bytes_pattern);
    case TT_CONFIG_DURATION:
        return quantity_of(duration_pattern);
    case TT_CONFIG_PATH:
        return typed("string");
    case TT_CONFIG_PATHS:
        return json_pack("{s:[s, s, s], s:{s:s}}", "type", "string", "array", "null", "items",
                         "type", "string");
    case TT_CONFIG_STRING: // any scalar is a text
        return json_pack("{s:[s, s, s]}", "type", "string", "number", "null");
    case TT_CONFIG_NODE:
        break;
    }
    return json_object();
}

static json_t *
new_mapping(void)
{
    return json_pack("{s:s, s:b, s:{}}", "type", "object", "additionalProperties", 0, "properties");
}

// The mapping that holds the last part of the key's path, made where it is missing; *name: that
// part.
static json_t *
parent_of(json_t *root, const char *path, const char **name)
{
    json_t *mapping = root;
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        char part[64];
        (void)snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        json_t *properties = json_object_get(mapping, "properties");
        if (json_object_get(properties, part) == NULL)
            (void)json_object_set_new(properties, part, new_mapping());
        mapping = json_object_get(properties, part);
    }
    *name = path;
    return mapping;
}

// The mapping may also be one value, a list or null: {"type": ["object", "string", ...]}.
static void
allow_short_form(json_t *mapping)
{
    json_t *types = json_pack("[s, s, s, s, s]", "object", "string", "number", "array", "null");
    (void)json_object_set_new(mapping, "type", types);
    (void)json_object_set_new(mapping, "items", json_pack("{s:s}", "type", "string"));
}

// Numbers as numbers, words as words.
static json_t *
default_of(const tt_config_key *key)
{
    json_t *value = key->kind == TT_CONFIG_INT || key->kind == TT_CONFIG_REAL
                        ? json_loads(key->default_text, JSON_DECODE_ANY, NULL)
                        : NULL;
    return value != NULL ? value : json_string(key->default_text);
}

static void
add_key(json_t *root, const tt_config_key *key)
{
    const char *name;
    json_t *mapping = parent_of(root, key->path, &name), *schema = schema_of(key);
    (void)json_object_set_new(schema, "description", json_string(key->help));
    if (key->default_text != NULL)
        (void)json_object_set_new(schema, "default", default_of(key));
    (void)json_object_set_new(json_object_get(mapping, "properties"), name, schema);
    if ((key->flags & TT_CONFIG_SHORTHAND) != 0)
        allow_short_form(mapping);
    if ((key->flags & TT_CONFIG_REQUIRED) == 0)
        return;
    if (json_object_get(mapping, "required") == NULL)
        (void)json_object_set_new(mapping, "required", json_array());
    (void)json_array_append_new(json_object_get(mapping, "required"), json_string(name));
}

tt_status
tt_job_schema_json(FILE *out)
{
    json_t *root = new_mapping();
    (void)json_object_set_new(root, "$schema",
                              json_string("https://json-schema.org/draft/2020-12/schema"));
    (void)json_object_set_new(root, "title", json_string("trimtab job file"));
    for (size_t i = 0; i < tti_job_key_count; i++)
        add_key(root, &tti_job_keys[i]);
    int failed = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0 ||
                 fputc('\n', out) == EOF;
    json_decref(root);
    return failed ? TT_IO : TT_OK;
}
