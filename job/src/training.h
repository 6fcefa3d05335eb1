// One training of a job from its start setting to its stop rule: the master's side.
#ifndef TTI_TRAINING_H
#define TTI_TRAINING_H

#include "early_stopping.h"
#include "job_resume.h"
#include "runtime.h"
#include "training_checkpoint.h"
#include "training_succession.h"
#include "tt/core_store.h"

enum { TTI_DRAIN_MAX = 65536 };

// Slices of one BSP round on their way to one iteration.
typedef struct tti_round_tally {
    tti_record round;
    uint32_t slices, examples;
    double loss, level;
    uint64_t done_ns;
} tti_round_tally;

// Full evaluations beside the job's clock (training_watch.c), on simulated hosts.
typedef struct tti_lookout {
    int on;
    float *model, *held_model; // [table floats] as last looked at; as it first held the target
    tt_store_progress *rows;   // not yet recorded
    size_t row_count, row_capacity;
    FILE *samples;          // NULL: not asked for
    int holding, reached;   // at the last look; at two in a row
    double next_told_epoch; // when the estimator hears of one again
    tt_model_metrics held;
    double held_s;
    uint64_t held_iteration;
    tt_status status;
    tt_error err;
} tti_lookout;

// The file that says how a run stands, while a thread writes it (training_status.c).
typedef struct tti_status_file {
    tt_thread thread;
    int writing;
    uint32_t written; // release: by the thread, acquire: the master
    char *text;       // of jansson
    char path[600], beside[620];
} tti_status_file;

typedef struct tti_training {
    const tt_job *job;
    const tt_job_run_options *options;
    tti_runtime *rt;
    tt_estimator *estimator;
    tt_tuner *tuner;               // NULL when a script rules
    double tuner_s;                // the tuner's time, on the job's clock
    tt_store *store;               // NULL: nothing is recorded
    const tt_job_result *identity; // run id and directory, for the run's row; set with the store
    tt_knob_set *checker;
    int tuned; // 0: the start setting throughout

    // clock of the job: monotonic time since the start less pauses
    uint64_t paused_ns;
    double last_push_s;

    // checkpoints; what a resumed training found in its own
    tti_checkpointing checkpoint;
    tti_status_file status_file;
    tti_succession succession;
    int same_space; // a setting means what it meant
    int tuner_resumed;
    uint32_t first_generation;
    double resumed_s; // on the job's clock; 0: from the beginning

    tti_record *drained; // [TTI_DRAIN_MAX]
    uint64_t iterations; // fed to the estimator
    double staleness_sum;
    uint32_t bad_losses; // in a row
    tti_round_tally rounds[4];
    uint64_t last_round_ns;
    double last_loss; // of the newest finite sample block, smoothed

    // setting in force
    tt_setting setting;
    uint32_t setting_id;
    uint32_t next_script, recorded_settings;
    char setting_text[256];

    // reconfiguration
    tt_reconfig_transition transition;
    tt_reconfig_cost pending_cost; // awaits the time per iteration after it
    int cost_pending;
    uint32_t cost_from, cost_to, reconfigurations;
    tt_reconfig_method method; // of the next one
    tt_reconfig_costs costs;
    tti_counts traffic; // of runtimes that were closed
    double reconfigure_s;
    uint64_t partitions_moved;

    // evaluation
    float *model;      // [table floats] as last read
    float *good_model; // the last one that was finite
    uint64_t good_iteration;
    double good_loss, next_snapshot_s, snapshot_gap_s;
    double next_evaluation_s, next_epoch_evaluation;
    tt_model_metrics metrics;
    double regulariser; // objective - loss at the last evaluation
    int evaluated;

    tti_lookout lookout;

    // validation
    tti_early_stopping early;
    float *best_model;                            // by validation loss; NULL without patience
    tt_model_metrics validation, best_validation; // newest; of the best model
    double next_validation_s, next_validation_epoch;
    double best_s;  // when the best one was evaluated
    int saved_best; // the model that is saved is best_model

    // the end
    tt_job_outcome outcome;
    char stop_reason[320];
    int finished;
    int has_died;           // of a simulated master: another one goes on
    uint32_t takeovers;     // of nodes, from masters that had died
    uint32_t master_deaths; // of the job, so far
    int model_is_last;      // `model` is that of the end
    double train_seconds;

    uint32_t windows;
    double next_commit_s;
    tti_tally tally;
    uint32_t setting_changes;
    double next_line_s;
    uint64_t next_eta_iteration; // when the ETA is recorded next
    int line_shown;
    double proposed_left_s, proposed_at_s; // said to be left when a setting was last proposed; when
    double iteration_times[4096];          // of windows, for the median
    uint32_t iteration_time_count;
} tti_training;

double tti_training_now(const tti_training *tr);
// training.c
TT_NODISCARD tt_status tti_training_open(tti_training *tr,
                                         const tt_job *job,
                                         const tt_job_run_options *options,
                                         int tuned,
                                         tt_store *store,
                                         const tti_resume *resume,
                                         tt_error *err);
tt_status tti_training_run(tti_training *tr, tt_error *err);
void tti_training_close(tti_training *tr);
void tti_training_finish(tti_training *tr, tt_job_outcome outcome, const char *format, ...)
    TT_PRINTF(3, 4);
void tti_training_event(tti_training *tr, const char *level, const char *format, ...)
    TT_PRINTF(3, 4);

// A host for knob instances that only say whether a value would do.
const tt_knob_host *tti_checker_host(void);

// training_state.c: the master's own numbers, written to or read from an archive.
void tti_training_visit(tti_training *tr, tt_archive *archive);
// training_checkpoint.c
TT_NODISCARD tt_status tti_training_enable_checkpoints(tti_training *tr, tt_error *err);
// Begins one when it is time.
void tti_training_checkpoint(tti_training *tr);
// The one of the end; the workers rest from there on.
void tti_training_last_checkpoint(tti_training *tr);
// Waits for the one that is being written.
void tti_training_finish_checkpoint(tti_training *tr);
void tti_training_close_checkpoints(tti_training *tr);
// Writes one at once for a restart, and its path. The workers rest from there on: the runtime is to
// be closed. On failure they are let go again.
tt_status
tti_training_checkpoint_and_rest(tti_training *tr, char *path, size_t path_size, tt_error *err);
// There is another runtime: what belonged to the old one, and the restart's checkpoint if none are
// kept.
void tti_training_restarted(tti_training *tr);

// training_measure.c
void tti_training_drain(tti_training *tr);
// training_restart.c
// Carries out a plan by stopping everything and starting anew from a checkpoint; takes what it
// needs of it. When no checkpoint can be written, or nothing be opened under the new setting,
// *refused is set, err says why, and training goes on as before.
TT_NODISCARD tt_status tti_training_restart(tti_training *tr,
                                            const tt_reconfig_plan *plan,
                                            int *refused,
                                            tt_error *err);
// Opens and starts the nodes in the place of those that were closed; the job's clock goes on.
TT_NODISCARD tt_status tti_training_open_and_start(tti_training *tr,
                                                   const tt_setting *setting,
                                                   const tti_restore *restore,
                                                   uint64_t start_ns,
                                                   tt_error *err);
// training_members.c
// Of the runtime just opened: where the last checkpoint is, and who is told what happens.
void tti_training_join_members(tti_training *tr);
// Deaths and returns. errors TT_PEER too few nodes are left; those of going back
TT_NODISCARD tt_status tti_training_follow_members(tti_training *tr, tt_error *err);
// training_switch.c
enum { TTI_SWITCH_LATER = 2 };
// move: partitions that change server besides. *refused: 0; 1, err says why; TTI_SWITCH_LATER,
// nodes have died just now.
tt_status tti_training_switch(tti_training *tr,
                              const tt_setting *to,
                              uint32_t to_id,
                              uint32_t move,
                              int *refused,
                              tt_error *err);
void tti_training_follow_transition(tti_training *tr);
tt_status tti_training_follow_script(tti_training *tr, tt_error *err);
void tti_training_record_setting(tti_training *tr, uint32_t id, const tt_setting *setting);
double tti_training_iteration_s(const tti_training *tr);
// training_succession.c: what a process that takes this one's place if it dies goes on from.
// Whether there can be one.
int tti_training_is_bequeathable(const tti_training *tr);
// Somebody could go on from what was left last; or there is no leaving anything.
int tti_training_has_left(const tti_training *tr);
// Leaves what is known now, if this is a moment for it, and the nodes with it.
void tti_training_leave(tti_training *tr);
// From here on all ends with this process: the nodes are about to end.
void tti_training_leave_nothing(tti_training *tr);
void tti_training_close_succession(tti_training *tr);
// Where it goes on from.
void tti_training_say_resumed(tti_training *tr, const tti_resume *resume);
// Of a simulated master: whether it dies now.
int tti_training_must_die(const tti_training *tr);
// It has, and run has returned: another one in its place, which has run to its end, too, or died.
// tuned: as this one was opened.
TT_NODISCARD tt_status tti_training_succeed(tti_training *tr, int tuned, tt_error *err);
// In place of opening a runtime: the one that another process has left.
TT_NODISCARD tt_status tti_training_inherit(tti_training *tr,
                                            const tti_resume *resume,
                                            tt_error *err);
// After its start: the setting that the training knows is in force.
TT_NODISCARD tt_status tti_training_return_to_setting(tti_training *tr, tt_error *err);
// training_stop.c
tt_status tti_training_evaluate(tti_training *tr, tt_error *err);
// To the estimator: what was found over all rows, if a target is about it.
void tti_training_tell_look(tti_training *tr, double loss, double objective);
tt_status tti_training_check_stop(tti_training *tr, tt_error *err);
// Values of the model.
size_t tti_training_model_floats(const tti_training *tr);
void tti_training_snapshot(tti_training *tr);
// After the last iteration: chooses the model to save and evaluates it, `model` holds it then.
TT_NODISCARD tt_status tti_training_conclude(tti_training *tr, tt_error *err);
double tti_training_epochs(const tti_training *tr);
// training_validate.c
TT_NODISCARD tt_status tti_training_open_validation(tti_training *tr, tt_error *err);
// Evaluates when it is due; may finish the training.
TT_NODISCARD tt_status tti_training_check_validation(tti_training *tr, tt_error *err);
// `model` is the last one: evaluates it, and unless it has to be saved as it is (keep) makes it the
// best one where patience asks for that.
TT_NODISCARD tt_status tti_training_choose_model(tti_training *tr, int keep, tt_error *err);
// The metrics of the model that is saved.
const tt_model_metrics *tti_training_saved_validation(const tti_training *tr);
// training_watch.c
TT_NODISCARD tt_status tti_training_open_watch(tti_training *tr, tt_error *err);
// Of the runtime just opened.
void tti_training_join_watch(tti_training *tr);
// One line of simulation.samples.
void tti_training_write_sample(tti_training *tr, const tt_est_sample *sample);
// Records what was seen; ends the training when the target was held at two looks in a row.
TT_NODISCARD tt_status tti_training_follow_watch(tti_training *tr, tt_error *err);
void tti_training_close_watch(tti_training *tr);
// progress.c
void tti_training_progress(tti_training *tr);
// Time left under the setting in force, as the estimator sees it.
tt_est_eta tti_training_eta(const tti_training *tr);
void tti_training_progress_clear(tti_training *tr);
// training_status.c: how the run stands, for others to read while it goes on.
void tti_training_write_status(tti_training *tr);
void tti_training_remove_status(tti_training *tr);
// training_tuner.c
TT_NODISCARD tt_status tti_training_open_tuner(tti_training *tr, tt_error *err);
// job_curves.c: with families of plug-ins, an event that says which ones foretold the loss.
void tti_training_say_curves(tti_training *tr);
tt_status tti_training_step_tuner(tti_training *tr, tt_error *err);
// run_record.c
// The run's row while it goes on.
void tti_record_running(tti_training *tr);
void tti_record_failed(tti_training *tr, const tt_error *err);

extern volatile int tti_interrupted; // number of SIGINTs

#endif
