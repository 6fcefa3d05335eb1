// Settings of a search space as JSON objects, and back.
#include "tt/core_config.h" // tt_config_nearest
#include "tune.h"
#include <math.h>
#include <string.h>

json_t *
tti_tune_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
value_json(const tt_knob *knob, double value)
{
    switch (knob->kind) {
    case TT_KNOB_BOOL:
        return json_boolean(value != 0);
    case TT_KNOB_ENUM:
        return json_string(knob->values[(int)value]);
    case TT_KNOB_INT:
        return json_integer((json_int_t)value);
    default:
        return json_real(value);
    }
}

json_t *
tti_tune_setting_json(const tt_space *space, const tt_setting *setting)
{
    json_t *object = json_object();
    for (uint32_t k = 0; k < space->count; k++)
        (void)json_object_set_new(object, space->knob[k].knob->id,
                                  value_json(space->knob[k].knob, setting->value[k]));
    return object;
}

static tt_status
wrong_kind(const tt_knob *knob, const char *expected, tt_error *err)
{
    return tt_error_set(err, TT_INVALID, NULL, NULL, "%s must be %s", knob->id, expected);
}

static tt_status
read_value(const tt_space_knob *knob, const json_t *value, double *out, tt_error *err)
{
    int is_word = knob->knob->kind == TT_KNOB_ENUM, is_switch = knob->knob->kind == TT_KNOB_BOOL;
    if (is_word && !json_is_string(value))
        return wrong_kind(knob->knob, "the name of a value, a string", err);
    if (is_word)
        return tt_space_parse(knob, json_string_value(value), NULL, out, err);
    if (is_switch && !json_is_boolean(value))
        return wrong_kind(knob->knob, "true or false", err);
    if (!is_switch && !json_is_number(value))
        return wrong_kind(knob->knob, "a number", err);
    *out = is_switch ? json_is_true(value) : json_number_value(value);
    if (*out >= knob->min && *out <= knob->max && tt_space_snap(knob, *out) == *out)
        return TT_OK;
    char low[48], high[48];
    return tt_error_set(err, TT_INVALID, NULL, NULL, "%s must be %s from %s to %s, not %.17g",
                        knob->knob->id,
                        knob->knob->kind == TT_KNOB_INT ? "a whole number" : "a number",
                        tt_space_format(knob, knob->min, low, sizeof low),
                        tt_space_format(knob, knob->max, high, sizeof high), *out);
}

static tt_status
check_names(const tt_space *space, const json_t *object, tt_error *err)
{
    const char *known[TT_KNOBS_MAX + 1] = {NULL};
    for (uint32_t k = 0; k < space->count; k++)
        known[k] = space->knob[k].knob->id;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (tt_space_find(space, name) >= 0)
            continue;
        const char *near = tt_config_nearest(name, known);
        return tt_error_set(err, TT_INVALID, NULL, NULL, "no knob is called '%.60s'%s%s%s", name,
                            near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                            near != NULL ? "'?" : "");
    }
    return TT_OK;
}

tt_status
tti_tune_setting_read(const tt_space *space, const json_t *object, tt_setting *out, tt_error *err)
{
    if (!json_is_object(object))
        return tt_error_set(err, TT_INVALID, NULL, NULL,
                            "a setting is an object: {\"%s\": ..., ...}", space->knob[0].knob->id);
    TT_TRY(check_names(space, object, err));
    *out = (tt_setting){.count = space->count};
    for (uint32_t k = 0; k < space->count; k++) {
        const json_t *value = json_object_get(object, space->knob[k].knob->id);
        if (value == NULL)
            return tt_error_set(err, TT_INVALID, NULL, NULL, "the setting lacks %s",
                                space->knob[k].knob->id);
        TT_TRY(read_value(&space->knob[k], value, &out->value[k], err));
    }
    return TT_OK;
}
