// trimtab data make.
#include "cli_internal.h"
#include "tt/workloads.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct number_option {
    const char *name;
    double value, min, max;
    int whole;
} number_option;

enum { ROWS, FEATURES, FIELDS, SEED, POSITIVE, NOISE, THREADS, FIRST_ROW, OPTION_COUNT };

static int
read_number(number_option *option, const char *text)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value) ||
        (option->whole && value != floor(value)))
        return tti_cli_bad_usage("data", "%s needs a%s number, not '%s'", option->name,
                                 option->whole ? " whole" : "", text);
    if (value < option->min || value > option->max)
        return tti_cli_bad_usage("data", "%s must be from %.10g to %.10g, not %s", option->name,
                                 option->min, option->max, text);
    option->value = value;
    return 0;
}

static int
make(const char *path, const number_option *options)
{
    tt_clicklog_spec spec = {.row_count = (uint64_t)options[ROWS].value,
                             .first_row = (uint64_t)options[FIRST_ROW].value,
                             .feature_count = (uint32_t)options[FEATURES].value,
                             .field_count = (uint32_t)options[FIELDS].value,
                             .seed = (uint64_t)options[SEED].value,
                             .positive_rate = options[POSITIVE].value,
                             .label_noise = options[NOISE].value,
                             .threads = (int)options[THREADS].value,
                             .path = path};
    tt_clicklog_truth truth;
    tt_error err = {0};
    if (tt_generate_clicklog(&spec, &truth, &err) != TT_OK)
        return tti_cli_fail(&err);
    (void)printf("%s: %llu rows, %llu non-zeros, %.1f %% positive, truth's own loss %.4f (no model "
                 "can do much better)\n",
                 path, (unsigned long long)spec.row_count, (unsigned long long)truth.nonzero_count,
                 100 * truth.positive_rate, truth.true_loss);
    return tti_cli_flush();
}

int
tti_cli_data(int argc, char **argv)
{
    number_option options[OPTION_COUNT] = {
        [ROWS] = {"--rows", 100000, 1, 4294967294.0, 1},
        [FEATURES] = {"--features", 100000, 1, 2147483646, 1},
        [FIELDS] = {"--fields", 37, 1, 1024, 1},
        [SEED] = {"--seed", 1, 0, 9e15, 1},
        [POSITIVE] = {"--positive", 0.25, 1e-6, 1 - 1e-6, 0},
        [NOISE] = {"--noise", 0, 0, 0.499, 0},
        [THREADS] = {"--threads", 0, 0, 256, 1},
        [FIRST_ROW] = {"--first-row", 0, 0, 4294967294.0, 1},
    };
    const char *path = NULL;
    if (argc < 1 || strcmp(argv[0], "make") != 0)
        return tti_cli_expected("data", argc > 0 ? argv[0] : NULL, "make");
    for (int i = 1; i < argc; i++) {
        number_option *option = NULL;
        for (size_t k = 0; k < OPTION_COUNT; k++)
            if (strcmp(argv[i], options[k].name) == 0)
                option = &options[k];
        if (option != NULL) {
            if (i + 1 == argc)
                return tti_cli_bad_usage("data", "%s needs a value", argv[i]);
            int code = read_number(option, argv[++i]);
            if (code != 0)
                return code;
        } else if (argv[i][0] == '-') {
            return tti_cli_unknown_option("data", argv[i]);
        } else if (path != NULL) {
            return tti_cli_bad_usage("data", "one file at a time, not '%s' and '%s'", path,
                                     argv[i]);
        } else {
            path = argv[i];
        }
    }
    return path != NULL ? make(path, options)
                        : tti_cli_bad_usage("data", "which file is to be written?");
}
