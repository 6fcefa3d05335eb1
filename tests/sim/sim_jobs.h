// Job files made up by a test, run through the library, with their models in memory afterwards.
#ifndef TT_SIM_JOBS_H
#define TT_SIM_JOBS_H

#include "tt/job.h"
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 16384, SECONDS_MAX = 60 };

typedef struct text {
    char bytes[TEXT_MAX];
    size_t used;
} text;

static inline void add(text *t, const char *format, ...) TT_PRINTF(2, 3);

static inline void
add(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(t->bytes + t->used, TEXT_MAX - t->used, format, arguments);
    va_end(arguments);
    TT_ASSERT(written >= 0 && (size_t)written < TEXT_MAX - t->used);
    t->used += (size_t)written;
}

static char alarmed_for[200];
static const text *alarmed_about[2]; // the job, where there is one to show

static inline void
on_alarm(int signal)
{
    TT_UNUSED(signal);
    (void)!write(STDOUT_FILENO, alarmed_for, strlen(alarmed_for));
    for (size_t i = 0; i < TT_COUNT_OF(alarmed_about); i++)
        if (alarmed_about[i] != NULL)
            (void)!write(STDOUT_FILENO, alarmed_about[i]->bytes, alarmed_about[i]->used);
    _exit(1);
}

// What runs from here on ends the program after SECONDS_MAX seconds, with a line that names it.
static inline void set_alarm_for(const char *format, ...) TT_PRINTF(1, 2);

static inline void
set_alarm_for(const char *format, ...)
{
    va_list arguments;
    (void)alarm(0);
    va_start(arguments, format);
    int length = vsnprintf(alarmed_for, sizeof alarmed_for - 20, format, arguments);
    va_end(arguments);
    TT_ASSERT(length > 0);
    strcat(alarmed_for, ": no end\n");
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(SECONDS_MAX);
}

typedef struct outcome {
    tt_status status;
    tt_error err;
    tt_job_result result;
    char *model;
    size_t bytes;
} outcome;

static inline int
write_file(const char *path, const text *t)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 0;
    int good = fwrite(t->bytes, 1, t->used, file) == t->used;
    return fclose(file) == 0 && good;
}

static inline void
read_model(outcome *out)
{
    char path[700];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/model.safetensors", out->result.run_dir);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return;
    if (fstat(fileno(file), &info) == 0 && info.st_size > 0) {
        out->bytes = (size_t)info.st_size;
        out->model = malloc(out->bytes);
        if (out->model == NULL || fread(out->model, 1, out->bytes, file) != out->bytes)
            out->bytes = 0;
    }
    (void)fclose(file);
}

static inline void
run(const tt_job_source source, const char *runs_dir, const char *resume, outcome *out)
{
    *out = (outcome){0};
    const tt_job_run_options options = {.runs_dir = runs_dir, .resume = resume};
    tt_job *job;
    out->status = tt_job_open(&source, stderr, &job, &out->err);
    if (out->status != TT_OK)
        return;
    out->status = tt_job_run(job, &options, &out->result, &out->err);
    tt_job_close(job);
    read_model(out);
}

static inline int
remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    TT_UNUSED(info);
    TT_UNUSED(type);
    TT_UNUSED(where);
    return remove(path);
}

// A fresh one, in memory where there is a place for that.
static inline int
make_directory(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/swarm-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir);
    return mkdtemp(path) != NULL;
}

static inline void
remove_directory(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
