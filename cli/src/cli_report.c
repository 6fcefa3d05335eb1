// trimtab report, explain, runs and compare.
#include "cli_internal.h"
#include "tt/report.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int
is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// ---- finding runs -----------------------------------------------------------------------------

// The run directory that was last changed, below runs_dir.
static int
newest_run(const char *runs_dir, char *out, size_t size)
{
    DIR *directory = opendir(runs_dir);
    struct timespec newest = {0};
    int found = 0;
    if (directory == NULL)
        return 0;
    for (struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) { // NOLINT: one thread
        char path[1024];
        struct stat info;
        (void)snprintf(path, sizeof path, "%.700s/%.255s/run.db", runs_dir, entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &info) != 0)
            continue;
        path[strlen(path) - strlen("/run.db")] = '\0';
        if (found &&
            (info.st_mtim.tv_sec < newest.tv_sec ||
             (info.st_mtim.tv_sec == newest.tv_sec && info.st_mtim.tv_nsec <= newest.tv_nsec)))
            continue;
        newest = info.st_mtim;
        found = 1;
        (void)snprintf(out, size, "%s", path);
    }
    (void)closedir(directory);
    return found;
}

int
tti_cli_find_run(const char *name, const char *runs_dir, char *out, size_t size)
{
    if (name == NULL) {
        if (newest_run(runs_dir, out, size))
            return 0;
        (void)fprintf(stderr,
                      "%s: no run found here; train one first (trimtab run JOB.yaml) or name a run "
                      "directory\n",
                      runs_dir);
        return 2;
    }
    (void)snprintf(out, size, "%s", name);
    if (!is_directory(name) && strchr(name, '/') == NULL)
        (void)snprintf(out, size, "%s/%s", runs_dir, name);
    return 0;
}

// ---- report and explain -----------------------------------------------------------------------

typedef tt_status (*print_text)(const char *run,
                                FILE *out,
                                const tt_report_options *options,
                                tt_error *err);
typedef tt_status (*print_json)(const char *run, FILE *out, tt_error *err);

static int
about_one_run(const char *command, int argc, char **argv, print_text text, print_json as_json)
{
    const char *name = NULL, *runs_dir = "runs";
    int json = 0, all = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--all") == 0)
            all = 1;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 == argc)
            return tti_cli_bad_usage(command, "--runs needs a value");
        else if (strcmp(argv[i], "--runs") == 0)
            runs_dir = argv[++i];
        else if (argv[i][0] == '-')
            return tti_cli_unknown_option(command, argv[i]);
        else if (name != NULL)
            return tti_cli_bad_usage(command, "one run at a time, not '%s' and '%s'", name,
                                     argv[i]);
        else
            name = argv[i];
    }
    char run[1024];
    tt_error err = {0};
    int code = tti_cli_find_run(name, runs_dir, run, sizeof run);
    if (code != 0)
        return code;
    tt_report_options options = {0};
    tt_report_options_detect(stdout, &options);
    options.all = all;
    tt_status status = json ? as_json(run, stdout, &err) : text(run, stdout, &options, &err);
    if (status != TT_OK)
        return tti_cli_fail(&err);
    return tti_cli_flush();
}

int
tti_cli_report(int argc, char **argv)
{
    return about_one_run("report", argc, argv, tt_report_text, tt_report_json);
}

int
tti_cli_explain(int argc, char **argv)
{
    return about_one_run("explain", argc, argv, tt_report_explain, tt_report_explain_json);
}

// ---- runs -------------------------------------------------------------------------------------

static int
is_run(const char *runs_dir, const char *name)
{
    char path[1024];
    struct stat info;
    (void)snprintf(path, sizeof path, "%.700s/%.255s/run.db", runs_dir, name);
    return name[0] != '.' && stat(path, &info) == 0;
}

// Names begin with date and time: the newest first.
static int
newest_first(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

// The paths of all runs below the directory, to be freed one by one; their number.
static size_t
collect_runs(DIR *directory, const char *runs_dir, char ***out)
{
    size_t count = 0, capacity = 0;
    *out = NULL;
    for (struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) { // NOLINT: one thread
        if (!is_run(runs_dir, entry->d_name))
            continue;
        if (count == capacity) {
            capacity = 2 * capacity + 16;
            char **grown = tt_mem_realloc(*out, capacity * sizeof *grown);
            if (grown == NULL)
                break;
            *out = grown;
        }
        char path[1024];
        int length = snprintf(path, sizeof path, "%.700s/%.255s", runs_dir, entry->d_name);
        char *copy = tt_mem_alloc((size_t)length + 1);
        if (copy == NULL)
            break;
        memcpy(copy, path, (size_t)length + 1);
        (*out)[count++] = copy;
    }
    if (count > 0)
        qsort(*out, count, sizeof **out, newest_first);
    return count;
}

static int
list_runs(const char *runs_dir, int json)
{
    DIR *directory = opendir(runs_dir);
    char **runs = NULL;
    size_t count = directory != NULL ? collect_runs(directory, runs_dir, &runs) : 0;
    if (directory != NULL)
        (void)closedir(directory);
    if (count == 0 && !json)
        (void)fprintf(stderr, "%s: no run found here; train one first (trimtab run JOB.yaml)\n",
                      runs_dir);
    tt_error err = {0};
    tt_status status =
        tt_report_list((const char *const *)(const void *)runs, count, json, stdout, &err);
    for (size_t i = 0; i < count; i++)
        tt_mem_free(runs[i]);
    tt_mem_free(runs);
    if (status != TT_OK)
        return tti_cli_fail(&err);
    return tti_cli_flush();
}

int
tti_cli_runs(int argc, char **argv)
{
    const char *runs_dir = "runs";
    int json = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 == argc)
            return tti_cli_bad_usage("runs", "--runs needs a value");
        else if (strcmp(argv[i], "--runs") == 0)
            runs_dir = argv[++i];
        else if (argv[i][0] == '-')
            return tti_cli_unknown_option("runs", argv[i]);
        else
            return tti_cli_bad_usage("runs", "unexpected '%s'", argv[i]);
    }
    return list_runs(runs_dir, json);
}

// ---- compare ----------------------------------------------------------------------------------

int
tti_cli_compare(int argc, char **argv)
{
    const char *names[2] = {NULL, NULL}, *runs_dir = "runs";
    int count = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--runs") == 0 && i + 1 == argc)
            return tti_cli_bad_usage("compare", "--runs needs a value");
        if (strcmp(argv[i], "--runs") == 0)
            runs_dir = argv[++i];
        else if (argv[i][0] == '-')
            return tti_cli_unknown_option("compare", argv[i]);
        else if (count == 2)
            return tti_cli_bad_usage("compare", "two runs, not a third: '%s'", argv[i]);
        else
            names[count++] = argv[i];
    }
    if (count < 2)
        return tti_cli_bad_usage("compare", "expected two runs");
    char path[2][1024];
    for (int i = 0; i < 2; i++)
        (void)tti_cli_find_run(names[i], runs_dir, path[i], sizeof path[i]);
    const char *const runs[2] = {path[0], path[1]};
    tt_error err = {0};
    if (tt_report_compare(runs, stdout, &err) != TT_OK)
        return tti_cli_fail(&err);
    return tti_cli_flush();
}
