// Jobs for fuzz targets: see fuzz_job.h.
#include "fuzz_job.h"
#include "tt/core.h"
#include "tt/job.h"

static tt_job *
open_job(const char *consistency)
{
    static const char form[] = "job: fuzz\n"
                               "data: {format: clicklog, rows: 101, columns: 64, fields: 3}\n"
                               "model: {kind: logistic_regression}\n"
                               "optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 16}\n"
                               "stop: {max_epochs: 2}\n"
                               "cluster: {driver: messages, nodes: 4, engine: local}\n"
                               "consistency: %s\n"
                               "tuner: {enabled: off}\n";
    char text[1024];
    tt_error err = {0};
    tt_job *job = NULL;
    (void)snprintf(text, sizeof text, form, consistency);
    const tt_job_source source = {.text = text, .text_name = "fuzz", .cold = 1};
    tt_status status = tt_job_open(&source, stderr, &job, &err);
    if (status != TT_OK)
        tt_error_print(stderr, &err);
    TT_ASSERT(status == TT_OK);
    return job;
}

struct tt_job *
fuzz_job(int kind)
{
    static const char *const consistency[FUZZ_JOB_KINDS] = {"asp", "ssp", "bsp"};
    static tt_job *jobs[FUZZ_JOB_KINDS];
    if (jobs[kind] == NULL)
        jobs[kind] = open_job(consistency[kind]);
    return jobs[kind];
}
