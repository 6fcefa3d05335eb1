// trimtab report.
#include "cli_internal.h"
#include "tt/report.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static int
is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

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

static int
find_run(const char *name, const char *runs_dir, char *out, size_t size)
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

int
tti_cli_report(int argc, char **argv)
{
    const char *name = NULL, *runs_dir = "runs";
    int json = 0, all = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--all") == 0)
            all = 1;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 == argc)
            return tti_cli_bad_usage("report", "--runs needs a value");
        else if (strcmp(argv[i], "--runs") == 0)
            runs_dir = argv[++i];
        else if (argv[i][0] == '-')
            return tti_cli_unknown_option("report", argv[i]);
        else if (name != NULL)
            return tti_cli_bad_usage("report", "one run at a time, not '%s' and '%s'", name,
                                     argv[i]);
        else
            name = argv[i];
    }
    char run[1024];
    tt_error err = {0};
    int code = find_run(name, runs_dir, run, sizeof run);
    if (code != 0)
        return code;
    tt_report_options options = {0};
    tt_report_options_detect(stdout, &options);
    options.all = all;
    tt_status status =
        json ? tt_report_json(run, stdout, &err) : tt_report_text(run, stdout, &options, &err);
    if (status != TT_OK)
        return tti_cli_fail(&err);
    return tti_cli_flush();
}
