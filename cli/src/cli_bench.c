// trimtab bench calibrate.
#include "cli_internal.h"
#include "tt/job.h"
#include <errno.h>
#include <string.h>

static int
calibrate(const char *path, int check)
{
    tt_error err = {0};
    FILE *out = path != NULL ? fopen(path, "w") : stdout;
    if (out == NULL) {
        (void)tt_error_set(&err, errno == ENOENT || errno == ENOTDIR ? TT_NOTFOUND : TT_IO, path,
                           "choose another file", "cannot write it: %s", tt_errno_text(errno));
        return tti_cli_fail(&err);
    }
    tt_log_set_level(TT_LOG_ERROR); // of the small jobs that are run
    tt_status status = tt_job_calibrate(out, check, &err);
    if (path == NULL)
        return status == TT_OK ? tti_cli_flush() : tti_cli_fail(&err);
    if (fclose(out) != 0 && status == TT_OK)
        status = tt_error_set(&err, TT_IO, path, "free some space (df -h)", "cannot write it: %s",
                              tt_errno_text(errno));
    return status == TT_OK ? 0 : tti_cli_fail(&err);
}

int
tti_cli_bench(int argc, char **argv)
{
    const char *action = NULL, *path = NULL;
    int check = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0) {
            check = 1;
            continue;
        }
        if (argv[i][0] == '-')
            return tti_cli_unknown_option("bench", argv[i]);
        if (action != NULL && path != NULL)
            return tti_cli_bad_usage("bench", "unexpected '%s'", argv[i]);
        *(action == NULL ? &action : &path) = argv[i];
    }
    if (action == NULL || strcmp(action, "calibrate") != 0)
        return tti_cli_expected("bench", action, "calibrate");
    return calibrate(path, check);
}
