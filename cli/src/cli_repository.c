// trimtab repository list, forget.
#include "cli_internal.h"
#include "tt/core_repository.h"
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

typedef struct repository_arguments {
    const char *action, *run, *file;
    int all, json;
} repository_arguments;

static int
parse(int argc, char **argv, repository_arguments *out)
{
    *out = (repository_arguments){.file = "auto"};
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--file") == 0) {
            if (i + 1 == argc || argv[i + 1][0] == '\0')
                return tti_cli_bad_usage("repository", "--file needs a value");
            out->file = argv[++i];
        } else if (strcmp(word, "--all") == 0) {
            out->all = 1;
        } else if (strcmp(word, "--json") == 0) {
            out->json = 1;
        } else if (word[0] == '-') {
            return tti_cli_unknown_option("repository", word);
        } else if (out->action == NULL) {
            out->action = word;
        } else if (out->run == NULL) {
            out->run = word;
        } else {
            return tti_cli_bad_usage("repository", "unexpected '%s'", word);
        }
    }
    int forget = out->action != NULL && strcmp(out->action, "forget") == 0;
    if (!forget && (out->action == NULL || strcmp(out->action, "list") != 0))
        return tti_cli_expected("repository", out->action, "list");
    if (!forget && (out->run != NULL || out->all))
        return tti_cli_bad_usage("repository", "list takes no %s",
                                 out->run != NULL ? "run" : "--all");
    if (forget && (out->run != NULL) == out->all)
        return tti_cli_bad_usage("repository", "forget which run? name one, or --all");
    return 0;
}

static json_t *
text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static json_t *
number_or_null(double value)
{
    return isfinite(value) && value >= 0 ? json_real(value) : json_null();
}

static json_t *
run_json(const tt_repository_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:o, s:o}", "run",
                     text_or_null(run->id), "job", text_or_null(run->name), "model",
                     text_or_null(run->model), "status", text_or_null(run->status), "run_dir",
                     text_or_null(run->run_dir), "ended_at", (json_int_t)run->ended_at, "settings",
                     (json_int_t)run->settings, "tuned", run->tuned, "train_seconds",
                     number_or_null(run->train_seconds), "started_from",
                     text_or_null(run->started_from));
}

static void
print_run(const tt_repository_run *run)
{
    char when[40] = "?", seconds[40] = "?";
    time_t ended = (time_t)run->ended_at;
    struct tm local;
    if (run->ended_at > 0 && localtime_r(&ended, &local) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    if (isfinite(run->train_seconds))
        (void)snprintf(seconds, sizeof seconds, "%.1f s", run->train_seconds);
    (void)printf("%-44s  %-16s  %-20s  %5lld  %8lld  %10s  %s\n", run->id != NULL ? run->id : "?",
                 when, run->model != NULL ? run->model : "?", (long long)run->nodes,
                 (long long)run->settings, seconds, run->started_from != NULL ? "warm" : "cold");
}

static int
list(tt_repository *repository, int json)
{
    const tt_repository_run *runs = NULL;
    uint32_t count = 0;
    tt_error err = {0};
    if (repository != NULL && tt_repository_runs(repository, &runs, &count, &err) != TT_OK)
        return tti_cli_fail(&err);
    if (json) {
        json_t *all = json_array();
        for (uint32_t i = 0; i < count; i++)
            (void)json_array_append_new(all, run_json(&runs[i]));
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        (void)printf("\n");
        json_decref(all);
        return tti_cli_flush();
    }
    if (count == 0)
        (void)printf("nothing was learned yet: train a model (trimtab run JOB.yaml)\n");
    else
        (void)printf("%-44s  %-16s  %-20s  %5s  %8s  %10s  %s\n", "run", "ended", "model", "nodes",
                     "settings", "time", "began");
    for (uint32_t i = 0; i < count; i++)
        print_run(&runs[i]);
    return tti_cli_flush();
}

static int
forget(const char *path, const char *run)
{
    tt_repository *repository;
    tt_error err = {0};
    uint32_t forgotten = 0;
    if (tt_repository_open_write(path, &repository, &err) != TT_OK)
        return tti_cli_fail(&err);
    tt_status status = tt_repository_forget(repository, run, &forgotten, &err);
    tt_repository_close(repository);
    if (status == TT_OK && run != NULL && forgotten == 0)
        status = tt_error_set(&err, TT_NOTFOUND, path, "trimtab repository list shows what it has",
                              "it knows no run '%s'", run);
    if (status != TT_OK)
        return tti_cli_fail(&err);
    (void)printf("%u run%s forgotten\n", forgotten, forgotten == 1 ? "" : "s");
    return tti_cli_flush();
}

int
tti_cli_repository(int argc, char **argv)
{
    repository_arguments arguments;
    char path[512];
    tt_error err = {0};
    tt_repository *repository = NULL;
    int code = parse(argc, argv, &arguments);
    if (code != 0)
        return code;
    if (tt_repository_choose_path(arguments.file, path, sizeof path, &err) != TT_OK)
        return tti_cli_fail(&err);
    if (path[0] == '\0')
        return tti_cli_bad_usage("repository", "the repository is off; name one with --file");
    tt_status status = tt_repository_open_read(path, &repository, &err);
    int listing = strcmp(arguments.action, "list") == 0;
    if (status == TT_NOTFOUND && !listing && arguments.run == NULL) {
        (void)printf("0 runs forgotten: nothing was learned yet\n");
        return tti_cli_flush();
    }
    if (status != TT_OK && !(listing && status == TT_NOTFOUND))
        return tti_cli_fail(&err);
    if (listing)
        code = list(repository, arguments.json);
    tt_repository_close(repository);
    return listing ? code : forget(path, arguments.run);
}
