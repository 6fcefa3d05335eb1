// What commands that take a job file have in common.
#ifndef TTI_CLI_JOB_H
#define TTI_CLI_JOB_H

#include "tt/job.h"

enum { TTI_LIST_MAX = 256 };

typedef struct tti_job_arguments {
    const char *files[TTI_LIST_MAX], *overrides[TTI_LIST_MAX];
    tt_job_source source;
    const char *runs_dir, *resume, *seeds;
    char resume_dir[512], resume_file[560];
    int json, quiet, verbose, simulate;
} tti_job_arguments;

// Of run, plan or doctor. Returns 0, or the exit code after a message.
int tti_job_parse(const char *command, int argc, char **argv, tti_job_arguments *out);
// Prints what is wrong and returns its exit code, or 0.
int tti_job_open(const tti_job_arguments *arguments, tt_job **job);

#endif
