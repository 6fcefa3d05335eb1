// What the whole-job tests share: jobs from a text, in a directory of their own that is removed
// afterwards.
#ifndef TTI_JOB_TEST_UTIL_H
#define TTI_JOB_TEST_UTIL_H

#include "tt/job.h"

// cmocka wants setjmp.h before it
#include <ftw.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static inline int
remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

// Runs the job with `overrides` (ended by NULL) and gives back its result and the bytes of the
// model, to be freed by tt_mem_free.
static inline tt_status
run_job(const char *text,
        const char *const *overrides,
        tt_job_result *result,
        char **model,
        size_t *model_bytes,
        tt_error *err)
{
    char directory[] = "/tmp/tt-job-test-XXXXXX", path[1200];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/job.yaml", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    const char *files[] = {path};
    size_t override_count = 0;
    while (overrides != NULL && overrides[override_count] != NULL)
        override_count++;
    // No test learns from another, or from the user.
    assert_int_equal(setenv("TRIMTAB_REPOSITORY", "off", 1), 0);
    tt_job_source source = {files, 1, overrides, override_count, 0};
    tt_job_run_options options = {.runs_dir = directory};
    tt_job *job;
    tt_status status = tt_job_open(&source, stderr, &job, err);
    if (status == TT_OK) {
        status = tt_job_run(job, &options, result, err);
        tt_job_close(job);
    }
    if (model != NULL && result->run_dir[0] != '\0') {
        (void)snprintf(path, sizeof path, "%s/model.safetensors", result->run_dir);
        struct stat info;
        *model = NULL;
        if (stat(path, &info) == 0) {
            *model_bytes = (size_t)info.st_size;
            *model = tt_mem_alloc(*model_bytes);
            file = fopen(path, "rb");
            assert_non_null(file);
            assert_int_equal(fread(*model, 1, *model_bytes, file), *model_bytes);
            assert_int_equal(fclose(file), 0);
        }
    }
    (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

#endif
