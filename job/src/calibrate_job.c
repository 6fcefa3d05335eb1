// What only a whole job tells: the price of sleeping and waking among threads that do something,
// how much more code costs where others use the caches, and how far the model is off. A small job
// with keyed pulls, on threads and on one simulated host with the cores of this machine.
#include "calibrate.h"
#include <math.h>
#include <stdlib.h>

static const double REAL_S = 0.5, SIMULATED_S = 0.15;
// Code in a job does not take so many times as long as alone, or as little: that is a mistake.
static const double MOST = 3;
enum { CHECKED = 12, TRIALS = 3, CHECK_SEED = 5, MANY_IN_FLIGHT = 16, MERGED = 4 };

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

// Of an iteration: processor seconds, and how often a node sleeps.
typedef struct spent {
    double processor_s, sleeps;
} spent;

static tt_status
measure_iteration(tt_job *job, spent *out, tt_error *err)
{
    static tt_job_result result;
    const tt_job_run_options options = {0};
    uint64_t begin = tt_clock_cpu_ns();
    TT_TRY(tti_job_train(job, &options, 0, &result, err));
    double iterations = fmax((double)result.iterations, 1);
    double seconds = 1e-9 * (double)(tt_clock_cpu_ns() - begin);
    if (job->spec.engine == TTI_ENGINE_SIMULATED) // of the simulated processors, not of ours
        seconds = job->load.cores * job->spec.simulation.cores * result.train_seconds;
    *out = (spent){seconds / iterations, (double)result.sleeps / iterations};
    return TT_OK;
}

// The least of TRIALS runs of settings that differ in how many requests are in flight, nothing
// else; on threads.
static tt_status
measure_in_turns(const double *in_flight, uint32_t merged, spent least[2], tt_error *err)
{
    tt_job *job;
    TT_TRY(open_job(0, &job, err));
    begin_with(job, "spin", 0);
    begin_with(job, "push_aggregation", merged);
    least[0].processor_s = least[1].processor_s = INFINITY;
    tt_status status = TT_OK;
    for (int trial = 0; trial < 2 * TRIALS && status == TT_OK; trial++) {
        spent one;
        begin_with(job, "in_flight", in_flight[trial % 2]);
        status = measure_iteration(job, &one, err);
        if (status == TT_OK && one.processor_s < least[trial % 2].processor_s)
            least[trial % 2] = one;
    }
    tt_job_close(job);
    return status;
}

// Many requests in flight spare sleeps and change nothing else. The time of processors, which other
// programs do not take away.
tt_status
tti_calibrate_sleep(tti_simulation_spec *out, tt_error *err)
{
    static const double in_flight[] = {1, MANY_IN_FLIGHT};
    spent real[2];
    TT_TRY(measure_in_turns(in_flight, 1, real, err));
    if (real[0].sleeps > 1.5 * real[1].sleeps)
        out->change = fmax(out->change, (real[0].processor_s - real[1].processor_s) /
                                            (real[0].sleeps - real[1].sleeps));
    return TT_OK;
}

// All that code costs: not waiting, and not the share that more threads leave.
static void
multiply_costs(tti_simulation_spec *s, double factor)
{
    double *const costs[] = {&s->example, &s->dense,  &s->prepare, &s->apply,   &s->whole,
                             &s->key,     &s->value,  &s->bf16,    &s->message, &s->chunk,
                             &s->byte,    &s->helper, &s->pack,    &s->unpack};
    for (size_t i = 0; i < TT_COUNT_OF(costs); i++)
        *costs[i] *= factor;
    for (int kernel = 0; kernel < 3; kernel++) {
        s->nonzero[kernel] *= factor;
        s->cell[kernel] *= factor;
    }
}

static tt_status
simulate_iteration(const tti_simulation_spec *spec, uint32_t merged, spent *out, tt_error *err)
{
    tt_job *job;
    TT_TRY(open_job(1, &job, err));
    job->spec.simulation = *spec;
    begin_with(job, "spin", 0);
    begin_with(job, "push_aggregation", merged);
    begin_with(job, "in_flight", MANY_IN_FLIGHT);
    tt_status status = measure_iteration(job, out, err);
    tt_job_close(job);
    return status;
}

// A setting that sleeps seldom, as it is and as the constants have it.
tt_status
tti_calibrate_caches(tti_simulation_spec *out, tt_error *err)
{
    static const double in_flight[] = {MANY_IN_FLIGHT, MANY_IN_FLIGHT};
    spent real[2], simulated;
    TT_TRY(measure_in_turns(in_flight, MERGED, real, err));
    TT_TRY(simulate_iteration(out, MERGED, &simulated, err));
    double code_s = simulated.processor_s - simulated.sleeps * out->change;
    const spent *least = &real[real[1].processor_s < real[0].processor_s];
    double real_s = least->processor_s - least->sleeps * out->change;
    if (code_s > 0 && real_s > 0)
        multiply_costs(out, fmax(fmin(real_s / code_s, MOST), 1 / MOST));
    return TT_OK;
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
