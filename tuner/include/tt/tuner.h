// tuner: finds faster settings for a job while it runs. This header is the online tuning manager:
// it watches windows of iterations through the estimator, models seconds per iteration with a
// Gaussian process, and tells the job when to switch to which setting and why. Its parts are
// tt/tuner_gp.h (the model) and tt/tuner_search.h (expected improvement and its maximum).
//
// The manager is a state machine: no clock, no thread, no files. The same seed, space and sequence
// of calls give byte-equal proposals. The job calls step every 10 to 50 ms from one thread; what
// step decides is returned as an action.
//
// Caveats: step may take up to about 20 ms when it fits the model; never call it from a training
// thread. An iteration is one minibatch gradient that reached the servers: a push that merges m of
// them should be told to the estimator as m samples of cycle / m, or merging would look like
// slowness. Not thread safe: one owner.
//
// A job's loop, in order:
//
//     tt_tuner_begin()           training starts under the start setting, which is setting 0
//     each tick:
//         tt_estimator_add()     for every sample drained since the last tick
//         tt_tuner_step()        on TT_TUNER_SWITCH publish the setting, then
//         tt_tuner_applied()     or, when a knob refuses, tt_tuner_refused()
//         tt_tuner_reconfigured()  once the transition of a switch has ended
//     tt_tuner_end()             closes the last window
#ifndef TT_TUNER_H
#define TT_TUNER_H

#include "tt/core.h"
#include "tt/core_archive.h"
#include "tt/estimator.h"
#include "tt/knobs.h"

// What the Gaussian process sees besides the setting (docs: tuner, "The model").
typedef enum tt_tuner_model {
    TT_TUNER_MODEL_TIME = 0, // setting only
    TT_TUNER_MODEL_SUM,      // setting + stage of the job + a little of both together
    TT_TUNER_MODEL_PRODUCT,  // the stage as one more input
    TT_TUNER_MODEL_PAPER,    // not a model alone: the paper's tuner as published, for comparisons
                             // (docs/paper-mode.md): no guard, no rests, trials are not broken off,
                             // nothing of earlier runs
} tt_tuner_model;

typedef enum tt_tuner_phase {
    TT_TUNER_IDLE = 0, // before begin
    TT_TUNER_START,    // measuring the start setting and the initial points
    TT_TUNER_EXPLORE,  // trying what the model proposes
    TT_TUNER_SETTLED,  // in the best known setting; proposals are rare
    TT_TUNER_OFF,      // not tuning: disabled, nothing to tune, or nothing can pay any more
} tt_tuner_phase;

typedef enum tt_tuner_action_kind { TT_TUNER_NONE = 0, TT_TUNER_SWITCH } tt_tuner_action_kind;

typedef enum tt_tuner_decision {
    TT_TUNER_STAY = 0, // nothing is worth a move
    TT_TUNER_TRY,      // a setting not seen before
    TT_TUNER_MOVE,     // to a setting already tried: the best known one
    TT_TUNER_ABANDON,  // a trial broken off early, back to the best known setting
    TT_TUNER_HELD,     // something is worth trying, but the guard forbids it now
    TT_TUNER_QUIT,     // tuning ends: nothing can pay any more
} tt_tuner_decision;

// Rules of the tuner's own way, each of which can be left out to see what it is worth.
typedef enum tt_tuner_rule {
    TT_TUNER_RULE_SPREAD = 0, // settings spread over the space before the model decides
    TT_TUNER_RULE_COST,       // what it costs to find out counts against what it may save
    TT_TUNER_RULE_ABANDON,    // a trial that is much slower is broken off
    TT_TUNER_RULE_GUARD,      // trials wait while tuning has cost what it may
    TT_TUNER_RULE_SHARE,      // trials wait while switching has cost its share of the job
    TT_TUNER_RULE_HYSTERESIS, // back to a known setting only when clearly better
    TT_TUNER_RULE_REPLICATE,  // the best is measured several times before a rest
    TT_TUNER_RULE_REST,       // pauses that grow while nothing is worth trying
    TT_TUNER_RULE_RATE,       // progress an iteration makes under a setting counts
    TT_TUNER_RULE_DELAY,      // delay x learning rate grows by steps from what was borne
    TT_TUNER_RULE_DRIFT,      // a change of the machine reopens exploring
    TT_TUNER_RULE_CURVATURE,  // staleness ends where the loss bends too much for it
    TT_TUNER_RULE_TREND,      // more workers, servers, merging: quicker until seen otherwise
    TT_TUNER_RULE_CREDIT,     // of what trials promise as much is believed as earlier ones kept
    TT_TUNER_RULE_NOISE,      // of what a setting may save as much counts as a window can tell
    TT_TUNER_RULES,
} tt_tuner_rule;

enum {
    TT_TUNER_REASON_MAX = 256,
    TT_TUNER_CLASSES = 4,
    TT_TUNER_PRIOR_RUNS = 8,  // earlier runs that priors may come from
    TT_TUNER_PRIOR_ROWS = 40, // of all of them together
};

// What an earlier run of a like job measured. Only differences within a run count: how much faster
// or slower than there everything is here is found from the settings that both were in.
typedef struct tt_tuner_prior {
    tt_setting setting;
    uint32_t run;      // 0 .. TT_TUNER_PRIOR_RUNS - 1
    double log_s;      // log of the seconds per iteration there
    double var;        // of that measurement
    double unlike_var; // what the difference of the jobs may make of it besides
} tt_tuner_prior;

typedef struct tt_tuner_options {
    int enabled; // 0: the manager only measures and never proposes
    tt_tuner_model model;
    uint32_t initial_settings; // points of the start phase besides the start setting; 0 = by the
                               // cost of a switch: 10, 5 or 2
    uint32_t window;           // iterations in a full window; 0 = tt_est_full_window(workers)
    double guard;              // never slower than (1 + guard) x the start setting; 0 = 0.10
    unsigned without;          // bits 1 << tt_tuner_rule: left out; not for MODEL_PAPER
    uint64_t seed;
    uint32_t
        nodes; // all nodes of the job, for the share that works; 0 = as many as workers_of(start)
    double budget_s;     // wall time the job may take in all (stop.max_time); 0 = unlimited
    uint32_t processors; // that the job and the tuner share: what a fit takes from training; 0 = 2
    double window_s_min; // a window lasts at least this long; 0 = 0.05
    // The step that each gradient makes at the beginning, where all make it alike (plain SGD): with
    // the curvature of the loss it limits the delay. 0 = not so.
    double learning_rate;
    // Seconds a switch loses, by class (flags of tt_knob_effect: 0 setting, 1 data, 2 model, 3
    // both), before any was measured; 0 = 0.002, 0.05, 0.05, 0.1.
    double switch_s_prior[TT_TUNER_CLASSES];
    // A warm start; not for TT_TUNER_MODEL_PAPER. All borrowed during open.
    // start: where training begins when that is not the space's start; NULL = there. The space's
    // start is then measured early: memory that does not hold here is found out, and the guard
    // keeps to the faster of the two. warm: further settings known to be good, best first; they
    // take the place of the start phase's points.
    const tt_setting *start;
    const tt_setting *warm;
    uint32_t warm_count;
    const tt_tuner_prior *prior; // at most TT_TUNER_PRIOR_ROWS are used
    uint32_t prior_count;
    // The only settings there are (a replay); count 0: all of the space. Borrowed until close.
    const tt_setting *only;
    uint32_t only_count;
    int bulk_synchronous; // BSP: an iteration is a round, W = 1 in all rules
    // Workers under a setting (nodes - servers); NULL = `nodes`. Pure.
    uint32_t (*workers_of)(void *self, const tt_setting *setting);
    // Iterations that a push brings at once under a setting (aggregation); NULL = 1. Pure.
    uint32_t (*merged_of)(void *self, const tt_setting *setting);
    void *callback_self;
} tt_tuner_options;

// One finished window, for the run store.
typedef struct tt_tuner_window_record {
    uint64_t index;      // 0, 1, ...
    uint32_t setting_id; // 0 = the start setting, then in order of first use
    uint64_t generation;
    const tt_setting *setting; // borrowed for the call
    tt_tuner_phase phase;
    double begin_s, end_s;   // job clock
    double stage;            // of the job at its end, 0 .. 1.2
    int abandoned;           // broken off: only its time counts
    int overlaps_fit;        // the model was fitted on the same cores meanwhile
    int overlaps_transition; // parameters or data were still moving, or it was cut short by a
                             // switch: no time row
    tt_est_window estimate;
    double lag_borne; // iterations that gradients may lag by, now and later; NAN: unknown
} tt_tuner_window_record;

// One proposal: what was considered best, what it should bring, what was decided and why. Reported
// when it is made (realised_ratio NAN) and again, with the same id, when its first window has shown
// what it brought.
typedef struct tt_tuner_proposal {
    uint64_t id;
    double now_s;
    tt_tuner_phase phase;
    tt_tuner_decision decision;
    uint32_t setting_id;          // UINT32_MAX: not tried (yet)
    uint32_t from_id;             // setting in force
    uint32_t best_id;             // best known setting, the one compared with
    const tt_setting *setting;    // borrowed for the call
    const tt_setting *considered; // STAY, HELD, QUIT: the best untried setting looked at, which
                                  // ei_s and cost_s are of; NULL: none. Borrowed for the call
    double predicted_s;           // seconds per iteration, median
    // log of (time left under it / under the best known one); the s.d. is that of the seconds an
    // iteration
    double log_ratio_mean, log_ratio_sd;
    double ei_s, cost_s;   // expected seconds saved; seconds it costs to find out
    double guard_left_s;   // what the guard still allows to be lost
    double realised_ratio; // measured: as log_ratio_mean, exponentiated; NAN until known
    char reason[TT_TUNER_REASON_MAX];
} tt_tuner_proposal;

// How an event begins that says so: the one kind that people should be warned of.
#define TT_TUNER_CHANGED "the machine has changed"

// All may be NULL. Called from inside begin, step, applied, refused and end.
typedef struct tt_tuner_callbacks {
    void *self;
    void (*on_window)(void *self, const tt_tuner_window_record *record);
    void (*on_proposal)(void *self, const tt_tuner_proposal *proposal);
    void (*on_event)(void *self,
                     double now_s,
                     const char *text); // one line for people, worth knowing
} tt_tuner_callbacks;

// What the job knows at a tick.
typedef struct tt_tuner_view {
    double now_s;        // job clock, the one of begin
    uint64_t generation; // adopted by all nodes
    int in_transition;   // parameters or training data of the newest generation are still moving
    uint64_t iterations; // applied since the job began, all of them
    double step;         // learning rate now / at the beginning; 0 = 1
} tt_tuner_view;

typedef struct tt_tuner_action {
    tt_tuner_action_kind kind;
    tt_tuner_phase phase;
    uint64_t proposal; // id
    uint32_t setting_id;
    tt_setting setting;
    char reason[TT_TUNER_REASON_MAX]; // "trying servers 1: expected to save 3.2 s, costs 0.9 s to
                                      // find out"
} tt_tuner_action;

typedef struct tt_tuner_summary {
    tt_tuner_phase phase;
    uint32_t settings_tried, settings_abandoned, switches, proposals;
    uint32_t start_done, start_planned; // points of the start phase, for "exploring 5/8"
    uint32_t current_id, best_id;
    uint32_t own_id;  // the space's start setting; UINT32_MAX: not tried (yet), after a warm start
    int memory_fails; // what earlier runs taught was found not to hold here
    double start_s, explore_s,
        settled_s;   // seconds spent in each phase (explore: windows of trials only)
    double lost_s;   // seconds lost by switching, as told by reconfigured
    double ledger_s; // elapsed - what the start setting would have taken for the same progress; < 0
                     // = saved
    double start_iteration_s,
        best_iteration_s;           // seconds per iteration, posterior median; NAN until measured
    char note[TT_TUNER_REASON_MAX]; // why tuning is off, or the last reason
    uint32_t drifts;                // changes of the machine seen
} tt_tuner_summary;

// What is known of a setting that was in force, all its windows together.
typedef struct tt_tuner_measurement {
    tt_setting setting;
    double log_s, log_se; // log of seconds per iteration, its standard error; NAN: not measured
    uint32_t windows;
    uint64_t iterations;          // applied under it
    double log_rate, log_rate_sd; // log of the progress an iteration makes, relative to the pooled
    int abandoned;                // its last window was broken off
    int refused, diverged;        // refused also when the loss rose
} tt_tuner_measurement;

typedef struct tt_tuner tt_tuner;

// "guard". Static.
const char *tt_tuner_rule_name(tt_tuner_rule rule);
// "guard+rest" as bits; 1, or 0 when a name is none.
int tt_tuner_rules_read(const char *text, unsigned *out);

// A tuner for one job. The tuner calls the estimator's begin and end, the job calls its add.
//
// errors   TT_INVALID the start setting is not valid in the space, an option is out of range or
//          not for this model; TT_NOMEM
// owns     `space` and `estimator` are borrowed until close, `callbacks` is copied (NULL = none);
//          release *out with tt_tuner_close
TT_NODISCARD tt_status tt_tuner_open(const tt_space *space,
                                     tt_estimator *estimator,
                                     const tt_tuner_options *options,
                                     const tt_tuner_callbacks *callbacks,
                                     tt_tuner **out,
                                     tt_error *err);

// Training starts under the start setting at `generation`. Once.
void tt_tuner_begin(tt_tuner *tuner, double now_s, uint64_t generation);

// Looks at the job and decides. Fills *action (kind NONE most of the time). While a switch is
// awaited (after SWITCH, before applied or refused) it only answers NONE. errors TT_NOMEM.
TT_NODISCARD tt_status tt_tuner_step(tt_tuner *tuner,
                                     const tt_tuner_view *view,
                                     tt_tuner_action *action,
                                     tt_error *err);

// All that was learned, for a checkpoint; to be taken between steps. A switch under way counts as
// not made.
// Loaded into a tuner just opened over the same search space, nodes and model (PAPER: and method of
// the estimator), instead of tt_tuner_begin; then tt_tuner_resume, with the setting that was in
// force. Memory images: only this build reads them. errors TT_INVALID another space, model or
// build: the tuner stays as it was opened; TT_CORRUPT, TT_NOMEM it must be closed
void tt_tuner_save(const tt_tuner *tuner, tt_archive *out);
TT_NODISCARD tt_status tt_tuner_load(tt_tuner *tuner, tt_archive *in, tt_error *err);
void tt_tuner_resume(tt_tuner *tuner, double now_s, uint64_t generation);
// Equal prints: what one tuner saved another one loads, and their settings have the same numbers.
// Of the search space, nodes, model (PAPER: and method of the estimator), and this build.
uint64_t
tt_tuner_print(const tt_space *space, uint32_t nodes, tt_tuner_model model, tt_est_method method);
// The setting in force.
uint32_t tt_tuner_current(const tt_tuner *tuner, tt_setting *out);

// The job has published the switch as `generation`. iterations: applied in the whole job at that
// moment.
void tt_tuner_applied(tt_tuner *tuner, uint64_t generation, double now_s, uint64_t iterations);

// The job could not publish it (a knob's prepare refused): the setting is never proposed again.
void tt_tuner_refused(tt_tuner *tuner, double now_s, const char *why);

// The transition of the last switch has ended. class_flags: flags of tt_knob_effect of the knobs
// that changed; lost_s: duration of the transition - (iterations done in it) x seconds per
// iteration after it, floored at 0. Feeds the cost of switching.
void tt_tuner_reconfigured(
    tt_tuner *tuner, uint32_t from_id, uint32_t to_id, unsigned class_flags, double lost_s);

// Closes the last window and reports it. After it only the inspection calls and close.
void tt_tuner_end(tt_tuner *tuner, double now_s, uint64_t iterations);

// The best known setting: tried, with the least posterior median of time left. Returns its id.
uint32_t tt_tuner_best(const tt_tuner *tuner, tt_setting *out);
// Setting by id; NULL when there is none. Borrowed until close.
const tt_setting *tt_tuner_setting(const tt_tuner *tuner, uint32_t setting_id);
// What was measured under setting `id`, for the repository. 0: there is no such setting.
int tt_tuner_measured(const tt_tuner *tuner, uint32_t id, tt_tuner_measurement *out);
// Posterior of log seconds per iteration of any setting now: mean and s.d.; 0 when nothing is known
// yet.
int tt_tuner_predict(const tt_tuner *tuner,
                     const tt_setting *setting,
                     double *log_mean,
                     double *log_sd);
void tt_tuner_summarize(const tt_tuner *tuner, tt_tuner_summary *out);
const char *tt_tuner_model_name(tt_tuner_model model); // "time", "sum", "product", "paper"
const char *
tt_tuner_phase_name(tt_tuner_phase phase); // "start", "explore", "settled", "off", "idle"
const char *tt_tuner_decision_name(
    tt_tuner_decision decision); // "stay", "try", "move", "abandon", "held", "quit"

void tt_tuner_close(tt_tuner *tuner);

#endif
