// trimtab eval and predict: a saved model in use.
#include "cli_internal.h"
#include "tt/core_config.h"
#include "tt/job.h"
#include "tt/workloads.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 1024 };

typedef struct model_arguments {
    const char *command, *model, *files[FILES_MAX], *labels[FILES_MAX];
    size_t file_count, label_count;
    const char *format, *output, *runs_dir;
    int json, joined, proba, scores, threads;
} model_arguments;

// ---- arguments --------------------------------------------------------------------------------

static int
check_format(const char *command, const char *format)
{
    const char *known[8] = {NULL};
    for (size_t i = 0; i + 1 < TT_COUNT_OF(known) && tt_data_format_name(i) != NULL; i++) {
        known[i] = tt_data_format_name(i);
        if (format == NULL || strcmp(format, known[i]) == 0)
            return 0;
    }
    const char *near = tt_config_nearest(format, known);
    return tti_cli_bad_usage(command, "--format is one of libsvm, csv and idx, not '%s'%s%s%s",
                             format, near != NULL ? "; did you mean '" : "",
                             near != NULL ? near : "", near != NULL ? "'?" : "");
}

static int
check_threads(model_arguments *out, const char *text)
{
    char *end;
    long value = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL)
        return 0;
    if (end == text || *end != '\0' || value < 1 || value > 256)
        return tti_cli_bad_usage(out->command, "--threads needs a number from 1 to 256, not '%s'",
                                 text);
    out->threads = (int)value;
    return 0;
}

static int
add(const model_arguments *out, const char **list, size_t *count, const char *word)
{
    if (*count == FILES_MAX)
        return tti_cli_bad_usage(out->command, "more than %d files", FILES_MAX);
    list[(*count)++] = word;
    return 0;
}

static int
add_file(model_arguments *out, const char *word)
{
    if (out->model == NULL) {
        out->model = word;
        return 0;
    }
    if (strcmp(word, "-") == 0)
        word = tt_data_standard_input;
    for (size_t i = 0; i < out->file_count && word == tt_data_standard_input; i++)
        if (out->files[i] == word)
            return tti_cli_bad_usage(out->command, "standard input (-) can be read once only");
    return add(out, out->files, &out->file_count, word);
}

static int
parse(const char *command, int argc, char **argv, model_arguments *out)
{
    int eval = strcmp(command, "eval") == 0;
    const char *threads = NULL, *label = NULL;
    memset(out, 0, sizeof *out);
    out->command = command;
    out->runs_dir = "runs";
    const struct {
        const char *name, **value;
        int has;
    } valued[] = {{"--format", &out->format, 1}, {"--runs", &out->runs_dir, 1},
                  {"--threads", &threads, 1},    {"--labels", &label, eval},
                  {"-o", &out->output, !eval},   {"--output", &out->output, !eval}},
      switches[] = {{"--json", NULL, eval},
                    {"--joined", NULL, eval},
                    {"--proba", NULL, !eval},
                    {"--scores", NULL, !eval}};
    int *const flags[] = {&out->json, &out->joined, &out->proba, &out->scores};
    int code = 0;
    for (int i = 0; i < argc && code == 0; i++) {
        int taken = 0;
        label = NULL;
        for (size_t k = 0; k < TT_COUNT_OF(valued) && !taken; k++)
            if (valued[k].has && strcmp(argv[i], valued[k].name) == 0) {
                if (i + 1 == argc)
                    return tti_cli_bad_usage(command, "%s needs a value", argv[i]);
                *valued[k].value = argv[++i];
                taken = 1;
            }
        for (size_t k = 0; k < TT_COUNT_OF(switches) && !taken; k++)
            if (switches[k].has && strcmp(argv[i], switches[k].name) == 0)
                *flags[k] = taken = 1;
        if (label != NULL)
            code = add(out, out->labels, &out->label_count, label);
        if (taken)
            continue;
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            return tti_cli_unknown_option(command, argv[i]);
        code = add_file(out, argv[i]);
    }
    if (code == 0 && out->model == NULL)
        return tti_cli_bad_usage(command, "which model? name a run or its model.safetensors");
    if (code == 0)
        code = check_format(command, out->format);
    return code != 0 ? code : check_threads(out, threads);
}

// ---- the model --------------------------------------------------------------------------------

static int
is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// A model file, or a run directory or its name.
static int
open_model(const model_arguments *arguments, tt_job_model **out)
{
    char run[1024], path[1100];
    struct stat info;
    tt_error err = {0};
    (void)snprintf(path, sizeof path, "%s", arguments->model);
    (void)snprintf(run, sizeof run, "%s", arguments->model);
    if (stat(path, &info) != 0 && strchr(arguments->model, '/') == NULL)
        (void)snprintf(run, sizeof run, "%.700s/%.255s", arguments->runs_dir, arguments->model);
    if (is_directory(run)) {
        (void)snprintf(path, sizeof path, "%s/model.safetensors", run);
        if (stat(path, &info) != 0) {
            (void)tt_error_set(&err, TT_NOTFOUND, run,
                               "a run saves its model when it ends; trimtab report says how it is",
                               "there is no model here");
            return tti_cli_fail(&err);
        }
    }
    return tt_job_model_open(path, out, &err) == TT_OK ? 0 : tti_cli_fail(&err);
}

// What liblinear's predict leaves out as well, but in silence.
static void
say_unknown(const tt_job_model *model,
            const char *file,
            uint64_t rows,
            const tt_job_unknown *unknown)
{
    if (unknown->entries > 0)
        (void)fprintf(stderr,
                      "%s: %llu of %llu rows have features beyond the %u of the model; these %llu "
                      "entries weigh nothing\n",
                      file, (unsigned long long)unknown->rows, (unsigned long long)rows,
                      tt_job_model_features(model), (unsigned long long)unknown->entries);
    if (unknown->columns > 0)
        (void)fprintf(stderr, "%s: %u column%s that the training data had not %s ignored: %s\n",
                      file, unknown->columns, unknown->columns == 1 ? "" : "s",
                      unknown->columns == 1 ? "is" : "are", unknown->names);
}

enum { SHOWN_BYTES = 320 };

static void
show(const tt_job_use *use, char out[SHOWN_BYTES])
{
    int length = snprintf(out, SHOWN_BYTES, "%.280s", use->files[0]);
    if (use->file_count > 1)
        (void)snprintf(out + length, SHOWN_BYTES - (size_t)length, " and %zu more file%s",
                       use->file_count - 1, use->file_count > 2 ? "s" : "");
}

// Files [first, first + count) as one data set.
static tt_job_use
use_of(const model_arguments *arguments, size_t first, size_t count)
{
    int labelled = arguments->label_count > 0;
    return (tt_job_use){.files = arguments->files + first,
                        .file_count = count,
                        .labels = arguments->labels + first,
                        .label_count = labelled ? count : 0,
                        .format = arguments->format,
                        .threads = arguments->threads};
}

// ---- eval -------------------------------------------------------------------------------------

static json_t *
evaluation_json(const char *file, const tt_job_evaluation *evaluation)
{
    json_t *object = json_pack("{s:s, s:I}", "file", file, "rows", (json_int_t)evaluation->rows);
    for (uint32_t i = 0; i < evaluation->metric_count; i++)
        (void)json_object_set_new(object, evaluation->metric[i].name,
                                  json_real(evaluation->metric[i].value));
    (void)json_object_set_new(object, "objective",
                              isfinite(evaluation->objective) ? json_real(evaluation->objective)
                                                              : json_null());
    (void)json_object_set_new(object, "unknown_entries",
                              json_integer((json_int_t)evaluation->unknown.entries));
    (void)json_object_set_new(object, "unknown_rows",
                              json_integer((json_int_t)evaluation->unknown.rows));
    return object;
}

static void
print_evaluation(const char *file, const tt_job_evaluation *evaluation)
{
    (void)printf("%s: %llu rows", file, (unsigned long long)evaluation->rows);
    for (uint32_t i = 0; i < evaluation->metric_count; i++)
        (void)printf("%s %s %.4f", i == 0 ? " " : ",", evaluation->metric[i].name,
                     evaluation->metric[i].value);
    (void)printf("\n");
}

static int
evaluate_files(const model_arguments *arguments, const tt_job_model *model)
{
    json_t *files = json_array();
    const size_t count = arguments->joined ? arguments->file_count : 1;
    int code = 0;
    for (size_t i = 0; i < arguments->file_count && code == 0; i += count) {
        char file[SHOWN_BYTES];
        tt_job_use use = use_of(arguments, i, count);
        tt_job_evaluation evaluation;
        show(&use, file);
        tt_error err = {0};
        if (tt_job_model_evaluate(model, &use, &evaluation, &err) != TT_OK) {
            code = tti_cli_fail(&err);
            continue;
        }
        say_unknown(model, file, evaluation.rows, &evaluation.unknown);
        if (arguments->json)
            (void)json_array_append_new(files, evaluation_json(file, &evaluation));
        else
            print_evaluation(file, &evaluation);
    }
    if (arguments->json && code == 0) {
        json_t *object = json_pack("{s:s, s:s, s:I, s:O}", "model", arguments->model, "kind",
                                   tt_job_model_kind(model), "features",
                                   (json_int_t)tt_job_model_features(model), "files", files);
        (void)json_dumpf(object, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(object);
    }
    json_decref(files);
    int flushed = tti_cli_flush();
    return code != 0 ? code : flushed;
}

int
tti_cli_eval(int argc, char **argv)
{
    static model_arguments arguments;
    tt_job_model *model;
    int code = parse("eval", argc, argv, &arguments);
    if (code == 0 && arguments.file_count == 0)
        return tti_cli_bad_usage("eval", "on which data? name a file");
    if (code == 0 && arguments.label_count > 0 && arguments.label_count != arguments.file_count)
        return tti_cli_bad_usage("eval", "--labels is given %zu time%s for %zu file%s",
                                 arguments.label_count, arguments.label_count == 1 ? "" : "s",
                                 arguments.file_count, arguments.file_count == 1 ? "" : "s");
    if (code == 0)
        code = open_model(&arguments, &model);
    if (code != 0)
        return code;
    code = evaluate_files(&arguments, model);
    tt_job_model_close(model);
    return code;
}

// ---- predict ----------------------------------------------------------------------------------

int
tti_cli_predict(int argc, char **argv)
{
    static model_arguments arguments;
    tt_job_model *model;
    int code = parse("predict", argc, argv, &arguments);
    if (code == 0 && arguments.file_count == 0)
        code = add_file(&arguments, "-");
    if (code == 0 && arguments.proba && arguments.scores)
        return tti_cli_bad_usage("predict", "--proba and --scores exclude each other");
    if (code == 0)
        code = open_model(&arguments, &model);
    if (code != 0)
        return code;
    tt_job_use use = use_of(&arguments, 0, arguments.file_count);
    tt_job_prediction what = arguments.proba    ? TT_JOB_PREDICT_PROBABILITIES
                             : arguments.scores ? TT_JOB_PREDICT_SCORES
                                                : TT_JOB_PREDICT_LABEL;
    int to_stdout = arguments.output == NULL || strcmp(arguments.output, "-") == 0;
    char files[SHOWN_BYTES];
    tt_job_unknown unknown;
    uint64_t rows;
    tt_error err = {0};
    tt_status status = tt_job_model_predict(model, &use, what, to_stdout ? NULL : arguments.output,
                                            &rows, &unknown, &err);
    show(&use, files);
    say_unknown(model, files, rows, &unknown);
    tt_job_model_close(model);
    return status == TT_OK ? 0 : tti_cli_fail(&err);
}
