// job: one training job, from a YAML file to a model. Reads the configuration, opens data and
// model, builds the search space, runs servers and workers as threads, measures, tunes,
// reconfigures, evaluates, saves.
//
// Caveats: one job at a time in a process (signals and the log are process-wide). docs/engines.md
// says where nodes live.
#ifndef TT_JOB_H
#define TT_JOB_H

#include "tt/core.h"
#include "tt/job_saved.h"
#include "tt/knobs.h"

typedef struct tt_job tt_job;

typedef struct tt_job_source {
    const char *const *files; // job files, later ones laid over earlier ones
    size_t file_count;
    const char *const *overrides; // "a.b=c"
    size_t override_count;
    const char *text, *text_name; // a job file's content, instead of files; its name in messages
    int cold;                     // begin with nothing that earlier runs learned
} tt_job_source;

// Reads and checks the whole configuration and opens data, model and search space. Faults of the
// configuration are printed to `errors`, all of them; *err then says that there were some. errors
// TT_INVALID and the other codes of bad input
TT_NODISCARD tt_status tt_job_open(const tt_job_source *source,
                                   FILE *errors,
                                   tt_job **out,
                                   tt_error *err);
void tt_job_close(tt_job *job);

// The resolved job and its search space, for people or as one JSON object (docs/plan.md).
tt_status tt_job_plan_text(tt_job *job, FILE *out);
tt_status tt_job_plan_json(tt_job *job, FILE *out);
// What the job would take on the simulated hosts it describes, whatever its engine is: trained in
// memory, on virtual time, at its start setting, tuned, and at the setting that the tuner ended in;
// with `seeds` (0: one) seeds from the job's own on. For people or as one JSON object
// (docs/plan.md). Nothing is written, and nothing is learned.
typedef struct tt_job_forecast_options {
    uint32_t seeds;
    int json;
    int progress; // as in tt_job_run_options
} tt_job_forecast_options;
// *reached: some training got to the job's target. errors as tt_job_open; TT_INVALID the job has no
// target; TT_DIVERGED; TT_CANCELLED tt_job_interrupt
TT_NODISCARD tt_status tt_job_forecast(const tt_job_source *source,
                                       const tt_job_forecast_options *options,
                                       FILE *errors,
                                       FILE *out,
                                       int *reached,
                                       tt_error *err);
// The JSON Schema (draft 2020-12) of whole job files. errors TT_IO
tt_status tt_job_schema_json(FILE *out);
// Measures for some seconds what the code of a job costs on this machine, and writes it as a job
// file for cluster.engine: simulated (docs/simulation.md). check: runs a small job under some
// settings besides, simulates them, and writes how far that was off. errors TT_NOMEM, TT_IO
TT_NODISCARD tt_status tt_job_calibrate(FILE *out, int check, tt_error *err);

typedef struct tt_job_run_options {
    const char *runs_dir; // NULL: the job's own (run.dir, ./runs)
    const char *resume;   // directory of a run to go on with; NULL: a new run
    int progress;         // a progress line on standard error, redrawn (a terminal)
    int events;           // one line an event on standard error
    int color;
} tt_job_run_options;

typedef enum tt_job_outcome {
    TT_JOB_CONVERGED,
    TT_JOB_STOPPED,
    TT_JOB_INTERRUPTED,
    TT_JOB_FAILED
} tt_job_outcome;

// Reconfigurations of one method and kind.
typedef struct tt_job_reconfigurations {
    const char *method; // in force: "on demand", "drain"
    const char *kind;   // what moved: "setting", "data", "model", "data and model"
    uint64_t count;
    double lost_seconds, duration_seconds; // sums; lost: duration less iterations done at the rate
                                           // after it, not floored
} tt_job_reconfigurations;

enum { TT_JOB_RECONFIGURATIONS_MAX = 16 };

// What simulating took, with the engine of that name; zeros elsewhere.
typedef struct tt_job_simulation {
    uint64_t events, switches, fibers;     // acted upon; turns given; turn takers started
    uint64_t dropped, duplicated, delayed; // messages, by faults
    uint64_t crashes;                      // of hosts
    double wall_seconds, virtual_seconds;
} tt_job_simulation;

typedef struct tt_job_result {
    char run_id[160];
    char run_dir[512];
    int64_t started_at;         // seconds since 1970; of the first process when it was resumed
    double wall_seconds_before; // of earlier processes of the run
    tt_job_outcome outcome;
    char stop_reason[320];
    double loss, objective;
    uint64_t iterations, examples; // trained, an example once an epoch
    double epochs, train_seconds, wall_seconds, examples_per_second;
    uint64_t generations;
    uint32_t setting_changes;
    uint32_t deaths, returns, takeovers; // of nodes; the last from a master that had died
    uint32_t restored; // partitions that went back to a checkpoint while others went on
    double reconfigure_seconds, explore_seconds;
    double untuned_seconds; // NAN: not measured
    tt_setting setting, start_setting;
    uint32_t final_setting_id;
    const char *started_from[5]; // ids of the runs it began with, the first first; the job's
    uint32_t started_from_count;
    tt_job_metric test[4];
    uint32_t test_count;
    // of the model that is saved; empty without validation rows
    tt_job_metric validation[4];
    uint32_t validation_count;
    uint32_t validations, best_validation; // evaluations; the best of them, from 1 (0: none)
    double best_validation_loss, best_epoch, prior_loss;
    int saved_best; // the saved model is that of the best evaluation, not the last one
    // counters over all nodes, for benches
    uint64_t frames, bytes, chunks, sleeps, pushes, batches_ready, batches_waited;
    double staleness_mean;
    uint64_t moving_wait_count;
    double moving_wait_p99_s, iteration_median_s;
    uint64_t partitions_moved;
    tt_job_reconfigurations reconfigurations[TT_JOB_RECONFIGURATIONS_MAX];
    uint32_t reconfiguration_kinds;
    int simulated;
    tt_job_simulation simulation;
} tt_job_result;

// Trains. On engines local and ssh it forks: the caller has one thread then. A first
// SIGINT (tt_job_interrupt) finishes the iteration, saves and reports. Fills *result as far as it
// got, also on failure. errors TT_DIVERGED the last good model is saved; TT_IO the run directory;
// ...
tt_status
tt_job_run(tt_job *job, const tt_job_run_options *options, tt_job_result *result, tt_error *err);
// ---- before a run ------------------------------------------------------------------------------

typedef enum tt_job_health {
    TT_JOB_FINE,
    TT_JOB_DOUBTFUL, // it will run, and not as it could
    TT_JOB_FAULTY,   // it will not run, or not to its end
} tt_job_health;

typedef struct tt_job_check {
    char what[40]; // that was looked at: "memory", "host alpha"
    tt_job_health health;
    char found[512], advice[320];
} tt_job_check;

enum { TT_JOB_CHECKS_MAX = 512 };

// Looks whether the job can run here, and on the hosts it names: there `trimtab node` is started
// and ended again. runs_dir: as in tt_job_run_options. Returns how many checks[TT_JOB_CHECKS_MAX]
// there are. thread: the process's only one
uint32_t tt_job_examine(tt_job *job, const char *runs_dir, tt_job_check *checks);

// What `trimtab node` does, on a host of a job with engine ssh, until the job ends. Its job comes
// over standard input. thread: the process's only one. errors of tt_job_open; TT_IO, TT_PEER
TT_NODISCARD tt_status tt_job_serve_host(tt_error *err);
// From a signal handler: asks the running job to stop after this iteration. async-signal-safe
void tt_job_interrupt(void);
// One JSON object: what `trimtab run --json` prints.
tt_status tt_job_result_json(const tt_job *job, const tt_job_result *result, FILE *out);

const char *tt_job_version(void);

#endif
