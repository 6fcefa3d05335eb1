// What only a whole job tells: the price of sleeping and waking among threads that do something,
// and how far the model is off. A small job with keyed pulls, on threads and on one simulated host
// with the cores of this machine.
#include "calibrate.h"
#include <math.h>
#include <stdlib.h>

static const double REAL_S = 0.5, SIMULATED_S = 0.15;
enum { CHECKED = 12, TRIALS = 3, CHECK_SEED = 5 };

static tt_status
open_job(int simulated, tt_job **out, tt_error *err)
{
    static const char *const overrides[] = {
        "data={format: clicklog, rows: 30000, columns: 50000, fields: 37}",
        "model={kind: logistic_regression, pull: keyed}",
        "optimizer={kind: sgd, learning_rate: 0.1}",
        "stop={max_epochs: 1e6}",
        "cluster.nodes=8",
        "repository=off",
        "cluster.engine=simulated",
    };
    const tt_job_source source = {.overrides = overrides,
                                  .override_count = TT_COUNT_OF(overrides) - (simulated ? 0u : 1u),
                                  .cold = 1};
    TT_TRY(tt_job_open(&source, stderr, out, err));
    (*out)->spec.stop_time = simulated ? SIMULATED_S : REAL_S;
    return TT_OK;
}

// Where the job begins, and, untuned, stays.
static void
begin_with(tt_job *job, const char *id, double value)
{
    int k = tt_space_find(&job->space, id);
    if (k < 0 || job->space.knob[k].absent)
        return;
    tt_space_knob *knob = &job->space.knob[k];
    knob->start = fmin(fmax(value, knob->min), knob->max);
}

// Processor seconds of an iteration, and how often a node sleeps in it.
static tt_status
measure_iteration(tt_job *job, double *processor_s, double *sleeps, tt_error *err)
{
    static tt_job_result result;
    const tt_job_run_options options = {0};
    uint64_t begin = tt_clock_cpu_ns();
    TT_TRY(tti_job_train(job, &options, 0, &result, err));
    double iterations = fmax((double)result.iterations, 1);
    *processor_s = 1e-9 * (double)(tt_clock_cpu_ns() - begin) / iterations;
    *sleeps = (double)result.sleeps / iterations;
    return TT_OK;
}

// Many requests in flight spare sleeps and change nothing else. The time of processors, which other
// programs do not take away.
tt_status
tti_calibrate_sleep(tti_simulation_spec *out, tt_error *err)
{
    tt_job *job;
    double processor_s[2] = {INFINITY, INFINITY}, sleeps[2] = {0, 0};
    TT_TRY(open_job(0, &job, err));
    begin_with(job, "spin", 0);
    tt_status status = TT_OK;
    for (int trial = 0; trial < 2 * TRIALS && status == TT_OK; trial++) {
        double seconds, often;
        begin_with(job, "in_flight", trial % 2 == 0 ? 1 : 16);
        status = measure_iteration(job, &seconds, &often, err);
        if (status == TT_OK && seconds < processor_s[trial % 2]) {
            processor_s[trial % 2] = seconds;
            sleeps[trial % 2] = often;
        }
    }
    tt_job_close(job);
    if (status == TT_OK && sleeps[0] > 1.5 * sleeps[1])
        out->change =
            fmax(out->change, (processor_s[0] - processor_s[1]) / (sleeps[0] - sleeps[1]));
    return status;
}

// ---- how far it is off -------------------------------------------------------------------------

// A random value of each knob, the same in both jobs.
static void
draw_setting(tt_job *simulated, tt_job *real, tt_rng *rng)
{
    for (uint32_t k = 0; k < simulated->space.count; k++) {
        const tt_space_knob *knob = &simulated->space.knob[k];
        if (knob->absent || knob->fixed)
            continue;
        double value = tt_space_decode(knob, tt_rng_uniform(rng));
        begin_with(simulated, knob->knob->id, value);
        begin_with(real, knob->knob->id, value);
    }
}

static tt_status
seconds_per_iteration(tt_job *job, double *out, tt_error *err)
{
    static tt_job_result result;
    const tt_job_run_options options = {0};
    TT_TRY(tti_job_train(job, &options, 0, &result, err));
    *out = result.train_seconds / fmax((double)result.iterations, 1);
    return TT_OK;
}

// What else the machine does makes a real run slower: the faster of two counts.
static tt_status
error_of_setting(tt_job *simulated, tt_job *real, double *out, tt_error *err)
{
    double predicted, first, second;
    TT_TRY(seconds_per_iteration(real, &first, err));
    TT_TRY(seconds_per_iteration(simulated, &predicted, err));
    TT_TRY(seconds_per_iteration(real, &second, err));
    *out = fabs(predicted / fmin(first, second) - 1);
    return TT_OK;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

tt_status
tti_calibrate_check(tti_simulation_spec *spec, tt_error *err)
{
    tt_job *real = NULL, *simulated = NULL;
    double errors[CHECKED];
    tt_rng rng;
    tt_rng_init(&rng, CHECK_SEED, TT_RNG_SIMULATION, 5);
    tt_status status = open_job(0, &real, err);
    if (status == TT_OK)
        status = open_job(1, &simulated, err);
    if (status == TT_OK)
        simulated->spec.simulation = *spec;
    for (uint32_t i = 0; i < CHECKED && status == TT_OK; i++) {
        draw_setting(simulated, real, &rng);
        status = error_of_setting(simulated, real, &errors[i], err);
    }
    tt_job_close(simulated);
    tt_job_close(real);
    if (status != TT_OK)
        return status;
    qsort(errors, CHECKED, sizeof *errors, ascending);
    spec->error_median = 0.5 * (errors[(CHECKED - 1) / 2] + errors[CHECKED / 2]);
    spec->error_p90 = errors[(CHECKED * 9 - 1) / 10];
    spec->error_settings = CHECKED;
    return TT_OK;
}
