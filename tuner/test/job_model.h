// A made-up training job in virtual time: eleven knobs that interact, a loss curve, workers with
// noisy cycles, and the ticks of a master that drives the real estimator and the real manager.
// Nothing here is tuned to the tuner: constants are drawn anew for each job.
#ifndef TT_JOB_MODEL_H
#define TT_JOB_MODEL_H

#include "problem_space.h"
#include "tt/tuner.h"
#include "tt/tuner_search.h"

#include <math.h>
#include <string.h>

enum {
    JOB_SERVERS,
    JOB_THREADS,
    JOB_BF16,
    JOB_CHUNK,
    JOB_SPIN,
    JOB_IN_FLIGHT,
    JOB_PREFETCH,
    JOB_AGGREGATION,
    JOB_STALENESS,
    JOB_KERNEL,
    JOB_PINNING,
    JOB_KNOBS
};
enum { JOB_NODES = 8, JOB_WORKERS_MAX = JOB_NODES - 1 };

typedef struct job_model {
    problem_space problem;
    // cost of one minibatch, relative
    double compute, kernel[3], transfer, message, wake, load, server, crowd, pin, stale_wait;
    double chunk_best, chunk_width, flight_best, bf16_cost, cv;
    // statistics
    double stale_cost, merge_cost;
    // loss: floor + (first - floor) / (1 + k / scale)^power
    double first, floor, scale, power, target, loss_noise;
    double iterations; // to the target at rate 1
    double unit;       // seconds of one unit of cost
    // Provocations: every so many-th switch is refused (0 = none); losses are NaN where staleness
    // is above this (0 = nowhere); what the job says a switch lost (0 = the truth).
    uint32_t refuse_every;
    double nan_staleness, claimed_loss_s;
    // Losses are NaN where workers x merged iterations x step is above this (0 = nowhere). step: 1
    // / (1 + decay iterations).
    double nan_strain, decay;
    // The loss bends so that SGD bears gradients which lag by this many iterations at the first
    // step, and its curvature is measured (0 = it is not); losses are NaN beyond.
    double lag_borne;
    // The machine takes slow_factor times as long from slow_from_s on (0 = it never changes); other
    // processes slow it by half for burst_s, every ten times that on average (0 = none).
    double slow_from_s, slow_factor, burst_s;
    double hiccup_s;        // a worker's first push after every fifth switch takes longer by this
    double restart_every_s; // tuner and estimator are saved, closed and restored; 0 = never
    struct job_memory *memory; // filled at the end of a run; NULL = not wanted
    tt_est_method estimator;   // that the job has; drawn by nobody
} job_model;

// What a run measured.
enum { JOB_MEMORY_MAX = 400 };
typedef struct job_memory {
    tt_tuner_measurement row[JOB_MEMORY_MAX];
    uint32_t count, best;
} job_memory;

// With a learning rate of 1: that under which SGD bears this lag.
#define JOB_CURVATURE(lag) (3.14159265358979323846 / (2 * (lag) + 1))

static const char *const job_kernels[] = {"portable", "avx2", "avx512", NULL};

static inline void
job_space(job_model *job)
{
    problem_space *p = &job->problem;
    problem_add(p, "servers", TT_KNOB_INT, 1, JOB_NODES - 1, 2, 0, 0)->effect =
        TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL;
    problem_add(p, "compute_threads", TT_KNOB_INT, 1, 4, 1, 0, 0);
    problem_add(p, "bf16_transfer", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
    problem_add(p, "chunk_bytes", TT_KNOB_INT, 4096, 1 << 20, 65536, 1, 1);
    problem_add(p, "spin", TT_KNOB_INT, 0, 4096, 256, 1, 0);
    problem_add(p, "in_flight", TT_KNOB_INT, 1, 16, 2, 1, 0);
    problem_add(p, "prefetch", TT_KNOB_INT, 0, 8, 2, 0, 0);
    problem_add(p, "aggregation", TT_KNOB_INT, 1, 16, 1, 1, 0)->changes_statistics = 1;
    problem_add(p, "staleness", TT_KNOB_INT, 0, 64, 16, 1, 0)->changes_statistics = 1;
    problem_add(p, "kernel", TT_KNOB_ENUM, 0, 2, 0, 0, 0)->values = job_kernels;
    problem_add(p, "pinning", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
}

static inline double
job_draw(tt_rng *rng, double low, double high)
{
    return low * exp(tt_rng_uniform(rng) * log(high / low));
}

static inline uint32_t
job_workers(const tt_setting *s)
{
    return JOB_NODES - (uint32_t)s->value[JOB_SERVERS];
}

static inline uint32_t
job_workers_of(void *self, const tt_setting *setting)
{
    TT_UNUSED(self);
    return job_workers(setting);
}

static inline uint32_t
job_merged_of(void *self, const tt_setting *setting)
{
    TT_UNUSED(self);
    return (uint32_t)setting->value[JOB_AGGREGATION];
}

static inline tt_tuner_options
job_options(uint64_t seed)
{
    return (tt_tuner_options){.enabled = 1,
                              .seed = seed,
                              .nodes = JOB_NODES,
                              .workers_of = job_workers_of,
                              .merged_of = job_merged_of};
}

// Seconds per iteration (minibatch) of the whole job under a setting.
static inline double
job_time(const job_model *j, const tt_setting *s)
{
    const double *v = s->value, cores = 2;
    double workers = job_workers(s), servers = v[JOB_SERVERS], threads = v[JOB_THREADS];
    double merged = v[JOB_AGGREGATION];
    // Everything runs on two cores: beyond them runnable threads get in each other's way, more so
    // when they spin.
    double runnable = (workers * threads + 0.5 * servers) / cores;
    double spinning = v[JOB_SPIN] / (v[JOB_SPIN] + 200);
    double crowd = 1 + j->crowd * fmax(runnable - 1, 0) * (0.25 + 2 * spinning);
    double pin = v[JOB_PINNING] == 0 ? 1
                 : runnable <= 1.5   ? 1 - 0.4 * j->pin
                                     : 1 + 0.5 * j->pin * runnable;
    double compute = j->compute * j->kernel[(int)v[JOB_KERNEL]] * (1 + 0.15 * (threads - 1));
    double chunk = (log2(v[JOB_CHUNK]) - j->chunk_best) / j->chunk_width;
    double flight = log2(v[JOB_IN_FLIGHT]) - j->flight_best;
    double bytes = v[JOB_BF16] != 0 ? 0.55 : 1;
    double transfer = j->transfer * bytes * (1 + chunk * chunk) * (1 + 0.25 * flight * flight) +
                      (v[JOB_BF16] != 0 ? j->bf16_cost : 0);
    double messages =
        j->message * servers * (1 + 65536 / v[JOB_CHUNK] * 0.2) + j->wake * (1 - spinning);
    double load = j->load / (1 + v[JOB_PREFETCH]) + 0.01 * v[JOB_PREFETCH] * j->load;
    double wait = j->stale_wait / (1 + v[JOB_STALENESS]) * sqrt(workers);
    double per_worker = (compute + load) * crowd * pin * fmax(workers / cores, 1) / workers;
    double communication = (transfer + messages) / merged * (1 + crowd) / 2;
    double serving = j->server * bytes / merged / servers;
    return j->unit * (per_worker + communication / fmin(workers, 3) + serving + wait / workers);
}

static inline double
job_rate(const job_model *j, const tt_setting *s)
{
    double stale = s->value[JOB_STALENESS] / 64 * job_workers(s) / JOB_WORKERS_MAX;
    return 1 /
           ((1 + j->stale_cost * stale) * (1 + j->merge_cost * (s->value[JOB_AGGREGATION] - 1)));
}

static inline double
job_loss(const job_model *j, double progress)
{
    return j->floor + (j->first - j->floor) * pow(1 + progress / j->scale, -j->power);
}

// Seconds of the whole job under one setting for ever.
static inline double
job_duration(const job_model *j, const tt_setting *s)
{
    return job_time(j, s) * j->iterations / job_rate(j, s);
}

static inline void
job_random_setting(const job_model *j, tt_rng *rng, tt_setting *s)
{
    s->count = JOB_KNOBS;
    for (uint32_t k = 0; k < JOB_KNOBS; k++)
        s->value[k] = tt_space_decode(&j->problem.space.knob[k], tt_rng_uniform(rng));
}

// Where the job starts: its defaults, a random setting, or the best of the 40 it is judged by.
typedef enum job_start { JOB_START_DEFAULT, JOB_START_RANDOM, JOB_START_BEST } job_start;

// Draws the constants; `seconds` is what the start setting takes. Returns the duration of the best
// of 40 random settings.
static inline double
job_make(job_model *j, uint64_t seed, job_start kind, double seconds)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 1);
    *j = (job_model){.unit = 1, .first = 2.3, .loss_noise = job_draw(&rng, 0.03, 0.12)};
    job_space(j);
    j->compute = job_draw(&rng, 0.3, 3);
    double slow[3] = {1, job_draw(&rng, 0.3, 0.9), job_draw(&rng, 0.2, 1.1)};
    memcpy(j->kernel, slow, sizeof slow);
    j->transfer = job_draw(&rng, 0.1, 2);
    j->message = job_draw(&rng, 0.01, 0.2);
    j->wake = job_draw(&rng, 0.05, 0.5);
    j->load = job_draw(&rng, 0.02, 1);
    j->server = job_draw(&rng, 0.05, 1.5);
    j->crowd = job_draw(&rng, 0.02, 0.4);
    j->pin = job_draw(&rng, 0.02, 0.4);
    j->stale_wait = job_draw(&rng, 0.05, 1);
    j->chunk_best = 13 + 6 * tt_rng_uniform(&rng);
    j->chunk_width = 2 + 3 * tt_rng_uniform(&rng);
    j->flight_best = 4 * tt_rng_uniform(&rng);
    j->bf16_cost = job_draw(&rng, 0.02, 0.6);
    j->cv = 0.10 + 0.10 * tt_rng_uniform(&rng);
    j->stale_cost = job_draw(&rng, 0.01, 0.2);
    j->merge_cost = job_draw(&rng, 0.001, 0.015);
    j->power = 0.5 + tt_rng_uniform(&rng);
    j->iterations = job_draw(&rng, 5000, 20000);
    j->scale = j->iterations * job_draw(&rng, 0.01, 0.3);
    j->floor = 0.05 + 0.2 * tt_rng_uniform(&rng);
    j->target = job_loss(j, j->iterations);
    tt_setting best = {0}, trial, start;
    double least = INFINITY;
    for (int i = 0; i < 40; i++) {
        job_random_setting(j, &rng, &trial);
        if (job_duration(j, &trial) < least) {
            least = job_duration(j, &trial);
            best = trial;
        }
    }
    job_random_setting(j, &rng, &start);
    if (kind == JOB_START_DEFAULT)
        tt_space_start(&j->problem.space, &start);
    if (kind == JOB_START_BEST)
        start = best;
    for (uint32_t k = 0; k < JOB_KNOBS; k++)
        j->problem.space.knob[k].start = start.value[k];
    j->unit = seconds / job_duration(j, &start);
    return least * j->unit;
}

// Another job of the same kind: all constants of its cost differ by a factor of about e^spread.
static inline void
job_resemble(job_model *j, uint64_t seed, double spread)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 3);
    double *const costs[] = {&j->compute,    &j->kernel[1],  &j->kernel[2],  &j->transfer,
                             &j->message,    &j->wake,       &j->load,       &j->server,
                             &j->crowd,      &j->pin,        &j->stale_wait, &j->bf16_cost,
                             &j->stale_cost, &j->merge_cost, &j->iterations, &j->unit};
    double target = j->iterations / j->scale;
    for (size_t i = 0; i < TT_COUNT_OF(costs); i++)
        *costs[i] *= exp(spread * tt_rng_normal(&rng));
    j->chunk_best += 2 * spread * tt_rng_normal(&rng);
    j->flight_best += 2 * spread * tt_rng_normal(&rng);
    j->scale = j->iterations / target;
    j->target = job_loss(j, j->iterations);
}

// ---- the run ---------------------------------------------------------------------------------

typedef struct job_worker {
    int active;
    uint64_t generation;    // adopted
    tt_setting setting;     // under which it works now
    double began_s, ends_s; // its push in progress
} job_worker;

typedef struct job_run {
    const job_model *model;
    tt_estimator *estimator;
    tt_tuner *tuner;
    tt_rng rng;
    double now_s, progress;
    uint64_t iterations, generation;
    tt_setting setting;
    job_worker worker[JOB_NODES];
    double moving_until_s;
    double start_s_lost; // when the last switch was published
    uint32_t from_id, to_id, class_flags;
    int reconfiguring;
    uint64_t digest; // of everything proposed, to compare runs
} job_run;

// Bursts are a function of time alone: one in ten stretches of burst_s, by a hash.
static inline int
job_in_burst(const job_model *j, double now)
{
    if (!(j->burst_s > 0))
        return 0;
    uint64_t x = (uint64_t)(now / j->burst_s) + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (x ^ (x >> 31)) % 10 == 0;
}

static inline void
job_start_push(job_run *r, uint32_t w, double now)
{
    job_worker *k = &r->worker[w];
    const int hiccup = k->generation != r->generation && r->generation % 5 == 0;
    k->active = w < job_workers(&r->setting);
    k->generation = r->generation;
    k->setting = r->setting;
    double cycle = job_time(r->model, &r->setting) * job_workers(&r->setting);
    const job_model *j = r->model;
    cycle *= j->slow_from_s > 0 && now >= j->slow_from_s ? j->slow_factor : 1;
    cycle *= job_in_burst(j, now) ? 1.5 : 1;
    double cv = r->model->cv;
    cycle *= exp(cv * tt_rng_normal(&r->rng) - cv * cv / 2);
    if (tt_rng_uniform(&r->rng) < 0.01)
        cycle *= 3; // something else ran
    k->began_s = now;
    k->ends_s = now + cycle * r->setting.value[JOB_AGGREGATION] + (hiccup ? j->hiccup_s : 0);
}

static inline double
job_step(const job_model *j, uint64_t iterations)
{
    return 1 / (1 + j->decay * (double)iterations);
}

static inline double
job_delay(const tt_setting *s)
{
    return job_workers(s) * s->value[JOB_AGGREGATION];
}

// Of a cycle this share passes between reading parameters and applying their gradient.
static inline double
job_staleness(const tt_setting *s)
{
    return 0.6 * job_delay(s);
}

static inline double
job_lag(const tt_setting *s)
{
    return job_staleness(s) + (s->value[JOB_AGGREGATION] - 1) / 2;
}

static inline int
job_is_nan(const job_model *j, const tt_setting *s, uint64_t iterations)
{
    if (j->lag_borne > 0 && job_lag(s) * job_step(j, iterations) > j->lag_borne)
        return 1;
    return (j->nan_staleness > 0 && s->value[JOB_STALENESS] > j->nan_staleness) ||
           (j->nan_strain > 0 && job_delay(s) * job_step(j, iterations) > j->nan_strain);
}

static inline void
job_finish_push(job_run *r, uint32_t w)
{
    job_worker *k = &r->worker[w];
    uint32_t merged = (uint32_t)k->setting.value[JOB_AGGREGATION];
    for (uint32_t i = 0; i < merged; i++) {
        r->progress += job_rate(r->model, &k->setting);
        double noise = exp(r->model->loss_noise * tt_rng_normal(&r->rng));
        tt_est_sample sample = {.generation = k->generation,
                                .sequence = r->iterations++,
                                .worker = w,
                                .examples = 64,
                                .loss = job_is_nan(r->model, &k->setting, r->iterations)
                                            ? NAN
                                            : job_loss(r->model, r->progress) * noise,
                                .time_s = k->ends_s,
                                .cycle_s = (k->ends_s - k->began_s) / merged,
                                .staleness = job_staleness(&k->setting)};
        if (r->model->lag_borne > 0 && r->iterations % 32 == 0)
            sample.curvature = JOB_CURVATURE(r->model->lag_borne);
        tt_estimator_add(r->estimator, &sample);
    }
    job_start_push(r, w, k->ends_s);
}

// Runs the workers until `until` or until the target is reached.
static inline int
job_advance(job_run *r, double until)
{
    for (;;) {
        uint32_t next = JOB_NODES;
        for (uint32_t w = 0; w < JOB_NODES; w++)
            if (r->worker[w].active &&
                (next == JOB_NODES || r->worker[w].ends_s < r->worker[next].ends_s))
                next = w;
        if (r->worker[next].ends_s > until)
            break;
        r->now_s = r->worker[next].ends_s;
        job_finish_push(r, next);
        if (r->progress >= r->model->iterations)
            return 1;
    }
    r->now_s = until;
    return 0;
}

static inline void
job_stall(job_run *r, double seconds)
{
    for (uint32_t w = 0; w < JOB_NODES; w++)
        r->worker[w].ends_s += seconds;
}

static inline void
job_publish(job_run *r, const tt_tuner_action *action)
{
    tt_search_space search;
    tt_search_space_init(&search, &r->model->problem.space);
    r->class_flags = tt_search_class(&search, &r->setting, &action->setting);
    r->setting = action->setting;
    r->generation++;
    r->to_id = action->setting_id;
    r->reconfiguring = 1;
    // Moving parameters slows everybody down for a moment; a worker that was a server begins at
    // once.
    double cost = r->class_flags != 0 ? 0.02 : 0.0005;
    r->moving_until_s = r->class_flags != 0 ? r->now_s + 0.04 : r->now_s;
    job_stall(r, cost);
    for (uint32_t w = 0; w < JOB_NODES; w++)
        if (!r->worker[w].active)
            job_start_push(r, w, r->now_s + cost);
    for (size_t i = 0; i < sizeof action->setting; i++)
        r->digest = (r->digest ^ ((const unsigned char *)&action->setting)[i]) * 0x100000001b3u;
    tt_tuner_applied(r->tuner, r->generation, r->now_s, r->iterations);
}

static inline tt_tuner_view
job_view(const job_run *r)
{
    uint64_t oldest = r->generation;
    for (uint32_t w = 0; w < JOB_NODES; w++)
        if (r->worker[w].active)
            oldest = TT_MIN(oldest, r->worker[w].generation);
    return (tt_tuner_view){.now_s = r->now_s,
                           .generation = oldest,
                           .in_transition = r->now_s < r->moving_until_s,
                           .iterations = r->iterations,
                           .step = job_step(r->model, r->iterations)};
}

typedef struct job_result {
    double seconds, explore_s, settled_s;
    tt_tuner_summary summary;
    uint64_t digest;
    uint32_t refused;
    double nan_s; // seconds spent where losses are NaN
    uint32_t restarts;
    uint64_t iterations;
    tt_setting last; // in force at the end
} job_result;

// As a job that is stopped and resumed: all that is known goes through bytes into a new estimator
// and a new tuner. Parameters and workers are as they were.
static inline tt_status
job_restart(job_run *r,
            const tt_est_options *est,
            const tt_tuner_options *options,
            const tt_tuner_callbacks *callbacks)
{
    tt_archive saved = {0}, in;
    tt_error err = {0};
    tt_setting setting;
    tt_tuner_summary was, is;
    tt_tuner_summarize(r->tuner, &was);
    tt_estimator_save(r->estimator, &saved);
    tt_tuner_save(r->tuner, &saved);
    TT_ASSERT(saved.status == TT_OK);
    tt_tuner_close(r->tuner);
    tt_estimator_close(r->estimator);
    r->tuner = NULL;
    TT_TRY(tt_estimator_open(est, &r->estimator, &err));
    TT_TRY(
        tt_tuner_open(&r->model->problem.space, r->estimator, options, callbacks, &r->tuner, &err));
    tt_archive_read(&in, saved.bytes, saved.count);
    tt_status status = tt_estimator_load(r->estimator, &in);
    if (status == TT_OK)
        status = tt_tuner_load(r->tuner, &in, &err);
    TT_ASSERT(status != TT_OK || in.cursor == in.count);
    tt_archive_fini(&saved);
    if (status != TT_OK)
        return status;
    (void)tt_tuner_current(r->tuner, &setting);
    TT_ASSERT(tt_setting_equal(&setting, &r->setting));
    tt_tuner_summarize(r->tuner, &is);
    TT_ASSERT(is.settings_tried == was.settings_tried && is.start_done == was.start_done &&
              is.proposals == was.proposals && is.drifts == was.drifts && is.phase == was.phase);
    tt_tuner_resume(r->tuner, r->now_s, r->generation);
    return TT_OK;
}

// One run to the target. fit_s: what a decision costs one of the two cores.
static inline tt_status
job_execute(const job_model *model,
            const tt_tuner_options *options,
            const tt_tuner_callbacks *callbacks,
            uint64_t seed,
            job_result *out)
{
    job_run r = {.model = model, .digest = 0xcbf29ce484222325u};
    tt_est_options est = {
        .target_loss = model->target, .budget_iterations = INFINITY, .method = model->estimator};
    tt_error err = {0};
    TT_TRY(tt_estimator_open(&est, &r.estimator, &err));
    tt_status opened =
        tt_tuner_open(&model->problem.space, r.estimator, options, callbacks, &r.tuner, &err);
    if (opened != TT_OK) {
        tt_estimator_close(r.estimator);
        return opened;
    }
    tt_rng_init(&r.rng, seed, TT_RNG_TEST, 2);
    tt_space_start(&model->problem.space, &r.setting);
    if (options->start != NULL)
        r.setting = *options->start;
    tt_tuner_begin(r.tuner, 0, 0);
    for (uint32_t w = 0; w < JOB_NODES; w++)
        job_start_push(&r, w, 0);
    tt_status status = TT_OK;
    uint32_t proposals = 0, asked = 0;
    *out = (job_result){0};
    for (double tick = 0.02; status == TT_OK && !job_advance(&r, tick); tick += 0.02) {
        tt_tuner_action action;
        tt_tuner_view view = job_view(&r);
        if (r.reconfiguring && view.generation == r.generation && !view.in_transition) {
            double lost = r.class_flags ? 0.02 : 0.0005;
            lost = model->claimed_loss_s > 0 ? model->claimed_loss_s : lost;
            tt_tuner_reconfigured(r.tuner, r.from_id, r.to_id, r.class_flags, lost);
            r.reconfiguring = 0;
        }
        status = tt_tuner_step(r.tuner, &view, &action, &err);
        tt_tuner_summarize(r.tuner, &out->summary);
        if (out->summary.proposals != proposals) {
            proposals = out->summary.proposals;
            job_stall(&r, 0.004); // a fit of 8 ms on one of two cores
        }
        out->nan_s += job_is_nan(model, &r.setting, r.iterations) ? 0.02 : 0;
        if (model->restart_every_s > 0 && action.kind != TT_TUNER_SWITCH && !r.reconfiguring &&
            !view.in_transition && r.now_s >= (out->restarts + 1) * model->restart_every_s) {
            out->restarts++;
            status = job_restart(&r, &est, options, callbacks);
        }
        if (action.kind != TT_TUNER_SWITCH)
            continue;
        if (model->refuse_every > 0 && ++asked % model->refuse_every == 0) {
            tt_tuner_refused(r.tuner, r.now_s, "made to refuse");
            out->refused++;
        } else {
            job_publish(&r, &action);
        }
    }
    tt_tuner_end(r.tuner, r.now_s, r.iterations);
    tt_tuner_summarize(r.tuner, &out->summary);
    for (uint32_t i = 0; model->memory != NULL && i < JOB_MEMORY_MAX; i++) {
        tt_setting best;
        model->memory->best = tt_tuner_best(r.tuner, &best);
        if (!tt_tuner_measured(r.tuner, i, &model->memory->row[i]))
            break;
        model->memory->count = i + 1;
    }
    out->seconds = r.now_s;
    out->last = r.setting;
    out->iterations = r.iterations;
    out->digest = r.digest;
    tt_tuner_close(r.tuner);
    tt_estimator_close(r.estimator);
    return status;
}

#endif
