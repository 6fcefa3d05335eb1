// The search space of a job: knobs that this driver and consistency have, the user's ranges, starts
// and fixed values, and the script of settings if there is one.
#include "job_internal.h"
#include <math.h>
#include <string.h>

static void
drop(tt_job *job, const char *id, const char *reason)
{
    int index = tt_space_find(&job->space, id);
    if (index >= 0)
        tt_space_drop(&job->space, (uint32_t)index, reason);
}

static void
drop_what_is_not_here(tt_job *job)
{
    const tti_spec *spec = &job->spec;
    if (spec->consistency != TT_PS_SSP)
        drop(job, "staleness",
             spec->consistency == TT_PS_ASP ? "asp bounds no staleness" : "bsp has none");
    if (spec->consistency == TT_PS_BSP)
        drop(job, "push_aggregation", "bsp: a round is one push of each slice");
    if (spec->engine == TTI_ENGINE_THREADS || spec->engine == TTI_ENGINE_LOCAL)
        drop(job, "compression", "one host: nothing goes from host to host");
    if (spec->engine == TTI_ENGINE_SIMULATED)
        drop(job, "pinning", "simulated hosts have no processors to pin to");
    if (spec->driver != TTI_DRIVER_IN_PLACE)
        return;
    static const char *const message_knobs[] = {"bf16_transfer", "chunk_bytes", "in_flight",
                                                "prefetch", "compression"};
    drop(job, "servers", "in_place has no servers");
    for (size_t i = 0; i < TT_COUNT_OF(message_knobs); i++)
        drop(job, message_knobs[i], "in_place has no messages");
    if (spec->consistency == TT_PS_ASP)
        drop(job, "spin", "in_place under asp never waits");
}

static tt_status
set_defaults(tt_job *job, tt_error *err)
{
    tt_space *space = &job->space;
    int servers = tt_space_find(space, "servers"), kernel = tt_space_find(space, "kernel");
    if (servers >= 0 && !space->knob[servers].absent) {
        char reason[96];
        (void)snprintf(reason, sizeof reason, "nodes is %u and at least one must work",
                       job->node_count);
        TT_TRY(
            tt_space_narrow(space, (uint32_t)servers, 1, job->node_count - 1, reason, NULL, err));
        TT_TRY(tt_space_start_at(space, (uint32_t)servers, TT_MAX(job->node_count / 4, 1u), NULL,
                                 NULL, err));
    }
    if (kernel >= 0) {
        double best = (double)tt_vec_best()->variant;
        TT_TRY(tt_space_narrow(space, (uint32_t)kernel, 0, best, "what this processor can run",
                               NULL, err));
        TT_TRY(tt_space_start_at(space, (uint32_t)kernel, best, NULL, NULL, err));
    }
    return TT_OK;
}

// The knob an entry names, or -1 after a complaint.
static int
knob_of_entry(tt_job *job, const tt_config_node *mapping, size_t index)
{
    int under_knobs = mapping == job->spec.knobs;
    const char *id = tt_config_node_key(mapping, index);
    int knob = tt_space_find(&job->space, id);
    if (knob < 0) {
        const char *known[TT_KNOBS_MAX + 3] = {NULL};
        for (uint32_t k = 0; k < job->space.count; k++)
            known[k] = job->space.knob[k].knob->id;
        if (under_knobs)
            known[job->space.count] = "plugins";
        tt_config_complain_unknown(job->config, mapping, index, known);
    } else if (job->space.knob[knob].absent) {
        tt_config_complain(job->config, tt_config_node_at(mapping, index), "take the line out",
                           "knob '%s' is not part of this job: %s", id,
                           job->space.knob[knob].reason);
        knob = -1;
    }
    return knob;
}

static const char *
scalar(tt_job *job, const tt_config_node *node, const char *what)
{
    const char *text = node != NULL ? tt_config_node_text(node) : NULL;
    if (text == NULL && node != NULL)
        tt_config_complain(job->config, node, NULL, "%s must be one value", what);
    return text;
}

// Complains with what went wrong at the node's place.
static void
complain_error(tt_job *job, const tt_config_node *node, const tt_error *err)
{
    tt_config_complain(job->config, node, err->advice[0] != '\0' ? err->advice : NULL, "%s",
                       err->what);
}

static int
parse_value(tt_job *job, int knob, const tt_config_node *node, double *out)
{
    tt_error err = {0};
    const char *text = scalar(job, node, "a knob's value");
    if (text == NULL)
        return 0;
    if (tt_space_parse(&job->space.knob[knob], text, NULL, out, &err) == TT_OK)
        return 1;
    complain_error(job, node, &err);
    return 0;
}

static void
read_range(tt_job *job, int knob, const tt_config_node *range)
{
    tt_error err = {0};
    double ends[2];
    if (tt_config_node_kind_of(range) != TT_CONFIG_SEQUENCE || tt_config_node_count(range) != 2) {
        tt_config_complain(job->config, range, "write range: [low, high]", "a range has two ends");
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (!parse_value(job, knob, tt_config_node_at(range, i), &ends[i]))
            return;
    char reason[120];
    (void)snprintf(reason, sizeof reason, "range by you (%.90s)", tt_config_node_place(range));
    if (ends[0] > ends[1])
        tt_config_complain(job->config, range, "write the lower end first", "the range is empty");
    else if (tt_space_narrow(&job->space, (uint32_t)knob, ends[0], ends[1], reason, NULL, &err) !=
             TT_OK)
        complain_error(job, range, &err);
}

static void
read_knob(tt_job *job, int knob, const tt_config_node *node)
{
    static const char *const known[] = {"start", "range", NULL};
    tt_error err = {0};
    if (tt_config_node_kind_of(node) != TT_CONFIG_MAPPING) {
        tt_config_complain(job->config, node, "to fix a value, put it under 'setting'",
                           "expected {start: ..., range: [..., ...]}");
        return;
    }
    const tt_config_node *range = tt_config_find(job->config, node, "range"),
                         *start = tt_config_find(job->config, node, "start");
    for (size_t i = 0; i < tt_config_node_count(node); i++)
        if (strcmp(tt_config_node_key(node, i), "start") != 0 &&
            strcmp(tt_config_node_key(node, i), "range") != 0)
            tt_config_complain_unknown(job->config, node, i, known);
    if (range != NULL)
        read_range(job, knob, range);
    double value;
    if (start == NULL || !parse_value(job, knob, start, &value))
        return;
    job->start_given[knob] = 1;
    if (tt_space_start_at(&job->space, (uint32_t)knob, value, NULL, NULL, &err) != TT_OK)
        complain_error(job, start, &err);
}

static void
read_knobs(tt_job *job)
{
    const tt_config_node *knobs = job->spec.knobs;
    if (knobs != NULL && tt_config_node_kind_of(knobs) != TT_CONFIG_MAPPING) {
        tt_config_complain(job->config, knobs, "for example knobs: {servers: {start: 2}}",
                           "knobs must be a mapping of knob ids");
        return;
    }
    for (size_t i = 0; knobs != NULL && i < tt_config_node_count(knobs); i++) {
        if (strcmp(tt_config_node_key(knobs, i), "plugins") == 0)
            continue;
        int knob = knob_of_entry(job, knobs, i);
        if (knob >= 0)
            read_knob(job, knob, tt_config_node_at(knobs, i));
    }
}

static void
load_plugins(tt_job *job)
{
    const tt_config_node *plugins =
        job->spec.knobs != NULL ? tt_config_find(job->config, job->spec.knobs, "plugins") : NULL;
    static const tt_config_key path_key = {
        .path = "plugins", .kind = TT_CONFIG_PATH, .help = "plugin file"};
    if (plugins != NULL && tt_config_node_kind_of(plugins) != TT_CONFIG_SEQUENCE) {
        tt_config_complain(job->config, plugins, "write plugins: [./my_knob.ttk]",
                           "knobs.plugins must be a list of files");
        return;
    }
    for (size_t i = 0; plugins != NULL && i < tt_config_node_count(plugins); i++) {
        const char *path = NULL;
        tt_error err = {0};
        const tt_config_node *node = tt_config_node_at(plugins, i);
        if (tt_config_read_one(job->config, node, &path_key, &path) != TT_OK || path == NULL)
            continue;
        if (tt_knob_registry_load(job->registry, path, &err) != TT_OK) {
            tt_config_complain(job->config, node, err.advice[0] != '\0' ? err.advice : NULL,
                               "%s: %s", path, err.what);
        }
    }
}

static void
read_fixed(tt_job *job)
{
    const tt_config_node *setting = job->spec.setting;
    if (setting != NULL && tt_config_node_kind_of(setting) != TT_CONFIG_MAPPING) {
        tt_config_complain(job->config, setting, "for example setting: {servers: 2}",
                           "setting must be a mapping of knob ids to values");
        return;
    }
    for (size_t i = 0; setting != NULL && i < tt_config_node_count(setting); i++) {
        int knob = knob_of_entry(job, setting, i);
        const tt_config_node *node = tt_config_node_at(setting, i);
        double value;
        tt_error err = {0};
        if (knob < 0 || !parse_value(job, knob, node, &value))
            continue;
        char reason[120];
        (void)snprintf(reason, sizeof reason, "by you (%.100s)", tt_config_node_place(node));
        if (tt_space_start_at(&job->space, (uint32_t)knob, value, reason, NULL, &err) != TT_OK)
            complain_error(job, node, &err);
    }
}

static void
read_step(tt_job *job, const tt_config_node *node, tti_script_step *step)
{
    for (size_t i = 0; i < tt_config_node_count(node); i++) {
        const tt_config_node *value = tt_config_node_at(node, i);
        if (strcmp(tt_config_node_key(node, i), "iteration") == 0) {
            static const tt_config_key key = {
                .path = "iteration", .kind = TT_CONFIG_INT, .min = 1, .max = 9e15};
            int64_t iteration = 0;
            if (tt_config_read_one(job->config, value, &key, &iteration) == TT_OK)
                step->iteration = (uint64_t)iteration;
            continue;
        }
        if (strcmp(tt_config_node_key(node, i), "move") == 0) {
            static const tt_config_key key = {
                .path = "move", .kind = TT_CONFIG_INT, .min = 1, .max = 1024};
            int64_t move = 0;
            if (tt_config_read_one(job->config, value, &key, &move) == TT_OK)
                step->move = (uint32_t)move;
            continue;
        }
        if (strcmp(tt_config_node_key(node, i), "method") == 0) {
            static const tt_config_key key = {
                .path = "method", .kind = TT_CONFIG_ENUM, .values = tti_method_names};
            int method = 0;
            if (tt_config_read_one(job->config, value, &key, &method) == TT_OK)
                step->method = (tt_reconfig_method)method;
            continue;
        }
        int knob = knob_of_entry(job, node, i);
        if (knob >= 0 && job->space.knob[knob].fixed)
            tt_config_complain(job->config, value, "take one of the two lines out",
                               "the script turns '%s', which is fixed %s",
                               job->space.knob[knob].knob->id, job->space.knob[knob].reason);
        else if (knob >= 0)
            (void)parse_value(job, knob, value, &step->setting.value[knob]);
    }
    if (step->iteration == 0)
        tt_config_complain(job->config, node, "add iteration: N",
                           "a step of the script needs its iteration");
    int servers = tt_space_find(&job->space, "servers");
    if (step->move > 0 && (servers < 0 || job->space.knob[servers].absent))
        tt_config_complain(job->config, node, "take 'move' out", "in place nothing can move");
    if (job->spec.driver == TTI_DRIVER_IN_PLACE && step->method == TT_RECONFIG_DRAIN &&
        job->spec.method != TT_RECONFIG_DRAIN)
        tt_config_complain(job->config, node, "take 'method' out", "in place nothing can move");
    if (!tt_space_valid(&job->space, &step->setting))
        tt_config_complain(job->config, node, NULL,
                           "this step's setting is outside the ranges of the knobs");
}

static tt_status
read_script(tt_job *job, tt_error *err)
{
    const tt_config_node *script = job->spec.script;
    if (script == NULL)
        return TT_OK;
    if (tt_config_node_kind_of(script) != TT_CONFIG_SEQUENCE || tt_config_node_count(script) == 0 ||
        tt_config_node_count(script) > TTI_SCRIPT_MAX) {
        tt_config_complain(job->config, script, "for example [{iteration: 100, servers: 3}]",
                           "tuner.script must be a list of 1 to %d steps", TTI_SCRIPT_MAX);
        return TT_OK;
    }
    size_t count = tt_config_node_count(script);
    job->script = tt_mem_zalloc(count, sizeof *job->script);
    if (job->script == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the script");
    tt_setting setting;
    tt_space_start(&job->space, &setting);
    for (size_t i = 0; i < count; i++) {
        const tt_config_node *node = tt_config_node_at(script, i);
        tti_script_step *step = &job->script[job->script_count++];
        step->setting = setting; // a step says what changes
        step->method = (tt_reconfig_method)TT_MAX(job->spec.method, 0);
        if (tt_config_node_kind_of(node) != TT_CONFIG_MAPPING)
            tt_config_complain(job->config, node, "for example {iteration: 100, servers: 3}",
                               "a step of the script must be a mapping");
        else
            read_step(job, node, step);
        if (i > 0 && step->iteration > 0 && step->iteration <= job->script[i - 1].iteration)
            tt_config_complain(job->config, node, "sort the steps",
                               "the steps' iterations must increase, not go from %llu to %llu",
                               (unsigned long long)job->script[i - 1].iteration,
                               (unsigned long long)step->iteration);
        setting = step->setting;
    }
    return TT_OK;
}

tt_status
tti_job_space(tt_job *job, tt_error *err)
{
    TT_TRY(tt_knob_registry_open(&job->registry, err));
    load_plugins(job);
    tt_space_init(&job->space, job->registry);
    drop_what_is_not_here(job);
    TT_TRY(set_defaults(job, err));
    read_knobs(job);
    read_fixed(job);
    return read_script(job, err);
}

int
tti_job_setting_fits(const tt_job *job, const tt_setting *setting)
{
    if (setting->count != job->space.count)
        return 0;
    for (uint32_t k = 0; k < setting->count; k++)
        if (!isfinite(setting->value[k]))
            return 0;
    return 1;
}
