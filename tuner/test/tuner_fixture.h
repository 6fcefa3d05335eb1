// A tuner of a made-up job (job_model.h) with an estimator, at its beginning, for tests that enter
// by hand what a job would measure.
#ifndef TT_TUNER_FIXTURE_H
#define TT_TUNER_FIXTURE_H

#include "job_model.h"
#include "tuner_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct fixture {
    job_model job;
    tt_estimator *estimator;
    tt_tuner *tuner;
} fixture;

static inline void
fixture_open(fixture *f, const tt_tuner_options *options)
{
    tt_error err = {0};
    (void)job_make(&f->job, 1, JOB_START_DEFAULT, 10);
    const tt_est_options est = {.target_loss = 0.1, .budget_iterations = INFINITY};
    assert_int_equal(tt_estimator_open(&est, &f->estimator, &err), TT_OK);
    assert_int_equal(
        tt_tuner_open(&f->job.problem.space, f->estimator, options, NULL, &f->tuner, &err), TT_OK);
    tt_tuner_begin(f->tuner, 0, 0);
}

static inline void
fixture_close(fixture *f)
{
    tt_tuner_close(f->tuner);
    tt_estimator_close(f->estimator);
}

#endif
