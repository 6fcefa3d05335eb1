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

enum { OVERRIDES_MAX = 32 };

// The given ones, and the engine that the environment names (CMakeLists.txt); in place there is but
// one.
static inline size_t
add_engine(const char *const *overrides, const char **all)
{
    static char engine[64];
    const char *wanted = getenv("TT_ENGINE");
    size_t count = 0;
    int in_place = 0;
    for (; overrides != NULL && overrides[count] != NULL; count++) {
        assert_true(count + 1 < OVERRIDES_MAX);
        in_place |= strcmp(overrides[count], "cluster.driver=in_place") == 0;
        all[count] = overrides[count];
    }
    (void)snprintf(engine, sizeof engine, "cluster.engine=%s", wanted != NULL ? wanted : "");
    if (wanted == NULL || in_place)
        return count;
    all[count++] = engine;
    if (strcmp(wanted, "ssh") == 0) { // two hosts, both of them this one
        static char program[600];
        assert_non_null(getenv("TT_PROGRAM"));
        (void)snprintf(program, sizeof program, "cluster.program=%s", getenv("TT_PROGRAM"));
        assert_true(count + 4 < OVERRIDES_MAX);
        all[count++] = program;
        all[count++] = "cluster.hosts=[127.0.0.1, localhost]";
        all[count++] = "cluster.remote_shell=" TT_SOURCE_DIR "/tests/hosts/this_host.sh";
        all[count++] = "cluster.encryption=on";
    }
    return count;
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
    const char *all[OVERRIDES_MAX];
    size_t override_count = add_engine(overrides, all);
    // No test learns from another, or from the user.
    assert_int_equal(setenv("TRIMTAB_REPOSITORY", "off", 1), 0);
    tt_job_source source = {
        .files = files, .file_count = 1, .overrides = all, .override_count = override_count};
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
