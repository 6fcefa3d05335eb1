// trimtab replay.
#include "cli_internal.h"
#include "tt/report_replay.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS_MAX = 16, SEEDS_DEFAULT = 5, SEEDS_MAX = 1000 };

typedef struct replay_arguments {
    const char *run, *runs_dir;
    tt_replay_variant variants[VARIANTS_MAX];
    uint32_t count, seeds;
    int json;
} replay_arguments;

static int
read_number(const char *text, double least, double most, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    int percent = *end == '%';
    *out /= percent ? 100 : 1;
    return end != text && end[percent] == '\0' && errno == 0 && *out >= least && *out <= most;
}

// One "key=value" of a variant. NULL, or what is wrong.
static const char *
read_pair(const char *key, const char *value, tt_replay_variant *out)
{
    static const char *const keys[] = {"model",   "enabled", "initial_settings", "window", "guard",
                                       "without", NULL};
    double number;
    size_t k = 0;
    while (keys[k] != NULL && strcmp(keys[k], key) != 0)
        k++;
    switch (k) {
    case 0:
        for (int m = 0; m <= TT_TUNER_MODEL_PAPER; m++)
            if (strcmp(value, tt_tuner_model_name((tt_tuner_model)m)) == 0) {
                out->model = (tt_tuner_model)m;
                return NULL;
            }
        return "model is time, sum, product or paper";
    case 1:
        out->enabled = strcmp(value, "on") == 0;
        return out->enabled || strcmp(value, "off") == 0 ? NULL : "enabled is on or off";
    case 2:
        if (!read_number(value, 1, 16, &number) || number != floor(number))
            return "initial_settings is a whole number from 1 to 16";
        out->initial_settings = (uint32_t)number;
        return NULL;
    case 3:
        if (!read_number(value, 12, 1e6, &number) || number != floor(number))
            return "window is a number of iterations from 12 on";
        out->window = (uint32_t)number;
        return NULL;
    case 4:
        return read_number(value, 1e-3, 10, &out->guard) ? NULL : "guard is a share such as 10%";
    case 5:
        return tt_tuner_rules_read(value, &out->without)
                   ? NULL
                   : "without is rules with + between them, such as guard+rest (docs/report.md)";
    default:
        return "a tuner has model, enabled, initial_settings, window, guard and without";
    }
}

// "model=time,guard=5%"
static int
read_variant(const char *text, tt_replay_variant *out)
{
    char copy[200], *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%s", text);
    *out = (tt_replay_variant){.name = text, .enabled = 1};
    for (char *pair = strtok_r(copy, ",", &rest); pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(pair, '=');
        if (value == NULL)
            return tti_cli_bad_usage("replay", "--tuner: '%s' is not key=value", pair);
        *value++ = '\0';
        const char *fault = read_pair(pair, value, out);
        if (fault != NULL)
            return tti_cli_bad_usage("replay", "--tuner %s: %s", text, fault);
    }
    return 0;
}

static int
parse(int argc, char **argv, replay_arguments *out)
{
    double number;
    *out = (replay_arguments){.runs_dir = "runs", .seeds = SEEDS_DEFAULT};
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        int takes = strcmp(word, "--tuner") == 0 || strcmp(word, "--seeds") == 0 ||
                    strcmp(word, "--runs") == 0;
        if (takes && (i + 1 == argc || argv[i + 1][0] == '\0'))
            return tti_cli_bad_usage("replay", "%s needs a value", word);
        if (strcmp(word, "--json") == 0) {
            out->json = 1;
        } else if (strcmp(word, "--runs") == 0) {
            out->runs_dir = argv[++i];
        } else if (strcmp(word, "--seeds") == 0) {
            if (!read_number(argv[++i], 1, SEEDS_MAX, &number) || number != floor(number))
                return tti_cli_bad_usage("replay", "--seeds is a whole number from 1 to 1000");
            out->seeds = (uint32_t)number;
        } else if (strcmp(word, "--tuner") == 0) {
            if (out->count == VARIANTS_MAX)
                return tti_cli_bad_usage("replay", "more than %d tuners", VARIANTS_MAX);
            int code = read_variant(argv[++i], &out->variants[out->count++]);
            if (code != 0)
                return code;
        } else if (word[0] == '-') {
            return tti_cli_unknown_option("replay", word);
        } else if (out->run != NULL) {
            return tti_cli_bad_usage("replay", "one run at a time, not '%s' and '%s'", out->run,
                                     word);
        } else {
            out->run = word;
        }
    }
    if (out->count == 0)
        return read_variant("model=time", &out->variants[out->count++]);
    return 0;
}

int
tti_cli_replay(int argc, char **argv)
{
    replay_arguments a;
    char run[1024];
    tt_error err = {0};
    int code = parse(argc, argv, &a);
    if (code == 0)
        code = tti_cli_find_run(a.run, a.runs_dir, run, sizeof run);
    if (code != 0)
        return code;
    if (tt_report_replay(run, a.variants, a.count, a.seeds, a.json, stdout, &err) != TT_OK)
        return tti_cli_fail(&err);
    return tti_cli_flush();
}
