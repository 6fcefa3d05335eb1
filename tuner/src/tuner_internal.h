// Shared by the files of the online manager.
#ifndef TTI_TUNER_INTERNAL_H
#define TTI_TUNER_INTERNAL_H

#include "tt/tuner.h"
#include "tt/tuner_gp.h"
#include "tt/tuner_search.h"

enum { TTI_TUNER_NOBODY = 0xffffffffu };
// Windows of one setting that the paper's way keeps as rows: a fit costs the cube of the rows, and
// a job has thousands of windows.
enum { TTI_PAPER_ROWS = 8 };
// Windows in which a setting is measured before it is rested in as the best: one may be lucky.
enum { TTI_REPLICATES = 3 };

// Recent windows of one setting: how many (forgetting), mean log seconds per iteration.
typedef struct tti_pace {
    double n, mean;
} tti_pace;

// Watch for a change of the machine (tuner_drift.c).
typedef struct tti_drift {
    double squares, n; // of residuals
    uint32_t suspects; // consecutive windows out of line, to one side
    double sum, first; // of their residuals; the first one
    double since_s;    // when the first of them began
    uint64_t since_iterations;
    // Trials of late that took more (less: negative) than they were promised to, just now or before
    // the suspect windows; sum of by how many s.d.; when the first began.
    int off_trials;
    double off_sum, off_since_s;
    double burst_s;   // the longest that came and went
    double shift;     // the last change believed, in the logarithm; 0 = none
    double changed_s; // when it began
} tti_drift;

// What trials promised and what they brought (tuner_credit.c): shares of the time left.
typedef struct tti_credit {
    double before;         // trials that are believed to have kept their promise before the first
    double promised, kept; // sums, the older the less
    int open; // the last trial was not judged yet: it, what it was to beat, its promise
    uint32_t trial, best;
    double share;
} tti_credit;

// A rise of the loss, and the way back (tuner_stability.c).
typedef struct tti_rise {
    int recovering;
    double calm_loss, calm_loss_se; // of the last window in which it did not rise
    double loss, loss_se;           // before the rise: where it has to come back to
    double delay;                   // of the setting under which it rose last
    uint64_t from, left_at;         // iterations: when it began; when that setting was left
    double lost_iterations;         // of rises that are over
    uint32_t stalls;                // times the loss stopped falling above the target
    double reach;                   // longest delay since then
    int strict;           // and nothing may be asked of it that the start setting does not
    uint64_t plain_until; // iterations: until when transfer is as the start setting's
    uint64_t since;       // iterations: since when any of that is so
    double promised;      // iterations by which the target was to be reached
    uint64_t suspected;   // iterations: since when it looks so again; 0: it does not
} tti_rise;

// A setting that was in force, or stood in the start phase's plan.
typedef struct tti_tried {
    tt_setting setting;
    double x[TT_KNOBS_MAX];
    double feature[TT_EST_FEATURES_MAX];
    uint32_t feature_count, workers; // workers: 1 under BSP
    uint32_t full_window;            // iterations
    uint32_t merged;                 // iterations a push brings
    double trend; // log of seconds per iteration, but for a constant, before anything is measured
    double delay; // iterations from reading parameters to applying their gradient, at most
    double lag;   // what was measured of it, in the mean; NAN: nothing
    double borne,
        not_borne;         // largest strain under which the loss fell; the one under which it rose
    uint64_t rose_at;      // iterations: when it did
    int is_alone_to_blame; // others bore that strain
    int row;               // of the process, -1 = none yet
    double row_weight, row_stage; // iterations in it
    uint32_t row_windows;
    double log_t;                 // its value
    double log_t_all, weight_all; // over all windows
    double var_all;               // of log_t_all
    int banned;                   // refused by a knob
    int abandoned;                // its last window was broken off
    double seen_s;                // end of its last window
    uint64_t seen_window;
    uint32_t windows;
    uint64_t iterations;  // applied under it
    uint64_t before_rise; // of them, before the loss last rose, under whatever setting
    uint64_t priced;      // of them, before the last change of the machine: in worth_s
    tti_pace pace;
    uint32_t paper_row[TTI_PAPER_ROWS]; // of the process: its newest windows, round and round
    uint32_t paper_rows;                // ever entered
} tti_tried;

// What one (hypothetical) setting is compared with the reference.
typedef struct tti_outlook {
    // Of log (time left under it / under the reference); the s.d. is that of the seconds per
    // iteration alone. told: by how much a window under it is expected to move the mean, s.d.
    double mean, sd, told;
    double sound;  // probability that the loss does not rise
    double t_mean; // of log (seconds per iteration / those of the reference)
} tti_outlook;

// What statistics make of a setting against the reference.
typedef struct tti_statistics {
    double log_rate; // difference of log rates
    double sound;
} tti_statistics;

// Everything a decision looks at, fixed for its duration.
typedef struct tti_frame {
    double now_s, stage;
    uint32_t from, best; // setting in force; the one compared with
    double best_t;       // seconds per iteration of best
    double left_s;       // seconds the job still takes under best, median
    double left_long_s;  // and at most, 90 %
    double guard_s;      // what may still be lost
    double trial_s; // what a trial may lose: the guard, or nothing when switching has had its share
    uint32_t yardstick; // the start setting the guard keeps to
    double start_t;     // seconds per iteration of it
    double best_rate;   // log rate of best
    tt_gp_slice *slice; // differences to best
    double noise_var;   // of a window's log seconds per iteration
} tti_frame;

typedef struct tti_choice {
    tt_tuner_decision decision;
    uint32_t id; // NOBODY = a new setting
    tt_setting setting;
    tt_setting considered; // where nothing is tried: the best untried one; count 0: none
    tti_outlook outlook;
    double ei_s, cost_s;
    double promise; // share of the time left that it is expected to save, before it is credited
    int planned;    // a point of the start phase
    int settles;    // nothing to try: a move back to the best known setting
    char reason[TT_TUNER_REASON_MAX];
} tti_choice;

// A row of an earlier run.
typedef struct tti_prior {
    tt_tuner_prior told;
    double x[TT_KNOBS_MAX];
    int row; // of the process, -1 = not entered: its run is not on this job's scale yet
    double trend;
    double stage, y, var; // as entered
} tti_prior;

// What a window measured.
typedef struct tti_measured {
    const tt_est_window *window;
    double log_t, var; // seconds per iteration; variance of its own noise
    double weight;     // iterations
    double stage;
    int broken_off; // a trial that was abandoned
} tti_measured;

typedef enum tti_next {
    TTI_NEXT_WINDOW, // go on
    TTI_NEXT_DECIDE,
    TTI_NEXT_ABANDON,
    TTI_NEXT_LEAVE, // the setting in force is out of the question; ref_id: what it is compared with
} tti_next;

// A way to tune: what tuner_step.c asks, in the order of a job's life. The manager keeps windows,
// switches, phases and records for all of them.
typedef struct tti_way {
    const char *name;
    tt_gp_model model; // of the process, and what is known of the spread of its y beforehand
    double scale, scale_rows, signal_sd;
    int rows_of_left; // its rows hold iterations left: another estimator's method makes others
    void (*plan)(tt_tuner *t); // the points of the start phase
    int (*window_full)(const tt_tuner *t, const tt_est_window *w);
    // Of the window so far. ABANDON: the trial must be broken off (seen: seconds per iteration at
    // least; why: NULL = too slow). LEAVE: what is in force, and was no trial, is out of the
    // question.
    tti_next (*watch)(tt_tuner *t, const tt_est_window *w, double *seen, const char **why);
    // A window of the setting in force becomes a row.
    tt_status (*enter)(tt_tuner *t, const tti_measured *m, tt_error *err);
    // What earlier runs taught was just found not to hold here. NULL: the way takes nothing of
    // them.
    void (*forget)(tt_tuner *t);
    tti_next (*after_window)(tt_tuner *t, const tt_est_window *w, int was_trial);
    // What to do next. must_leave: the setting in force is out of the question. frame: what it was
    // based on, slice closed.
    tt_status (*decide)(
        tt_tuner *t, int must_leave, tti_choice *out, tti_frame *frame, tt_error *err);
    // The choice is to stay, or to go back: when to look again, and the phase until then.
    void (*rest)(tt_tuner *t, const tti_choice *c);
    uint32_t (*best)(const tt_tuner *t);
    int (*predict)(const tt_tuner *t, const tt_setting *setting, double *log_mean, double *log_sd);
} tti_way;

extern const tti_way tti_way_sum, tti_way_time, tti_way_product; // tuner_default.c
extern const tti_way tti_way_paper;                              // tuner_paper.c
enum { TTI_WAYS = TT_TUNER_MODEL_PAPER + 1 };
extern const tti_way *const tti_ways[TTI_WAYS]; // by tt_tuner_model; tuner_manager.c

typedef enum tti_state { TTI_NEW, TTI_RUNNING, TTI_SWITCHING, TTI_ENDED } tti_state;

struct tt_tuner {
    const tti_way *way;
    const tt_space *space;
    tt_estimator *estimator;
    tt_tuner_options options;
    tt_tuner_callbacks callbacks;
    tt_search_space search;
    tt_gp *gp;

    tti_tried *tried;
    size_t tried_count, tried_capacity;
    tt_setting *taken; // the settings of `tried`, for the search
    size_t taken_capacity;
    // The space's start setting, as a point and as an id. It has no id while a warm start has not
    // come to it: NOBODY. After a cold start it is 0.
    tti_tried own;
    uint32_t own_id;
    int warm; // began elsewhere
    tti_prior *prior;
    uint32_t prior_count;
    // Predictions made with them, judged: sum of (error / s.d.)^2, how many, and whether they were
    // found wanting.
    double surprise;
    uint32_t judged;
    int memory_fails;
    double trickled_s; // worst case of trials made while the ledger was overdrawn
    double forgiven_s; // that the first setting of a warm start lost, when memory failed

    tt_setting plan[16]; // points of the start phase
    uint32_t plan_count, plan_done;
    int plan_auto; // its length is for the manager to choose

    tti_state state;
    tt_tuner_phase phase;
    uint32_t current, next; // ids; next: while SWITCHING
    uint32_t previous;      // in force before current
    uint64_t moved_window;  // index of the window at which current was moved to
    uint64_t generation;
    double begin_s, now_s, window_begin_s, applied_s,
        adopted_s;       // adopted_s: NAN until all nodes have the generation
    uint64_t iterations; // of the last view
    double step;         // learning rate now / at the beginning
    uint64_t window_index;
    uint64_t proposals;
    int next_trial;
    int trial;           // current has not finished its first window
    int in_transition;   // parameters or data still move
    int transition_seen; // they moved within this window: no time row
    int fit_in_window;
    double lag_share;   // of what is used of the lag that can be borne: 1, less after stalls
    double busy;        // share of a worker's cycle that it computes, at the start; NAN: not known
    double window_var;  // of a window's log seconds per iteration by its cycles, of late
    double window_loss; // of the iteration just before the window
    double paper_worst_s; // largest y told so far
    double ref_t; // what a trial is compared with: seconds per iteration, log rate and its id
    double ref_rate;
    uint32_t ref_id;
    double expected_t, expected_sd; // log (seconds per iteration / ref_t) that a trial was promised
    tt_tuner_proposal pending;      // of the trial that runs
    int has_pending;

    uint32_t fit_rows;      // at the last fit of the hyperparameters
    double next_decision_s; // no decision before, when settled or off
    double rest_s;          // length of the last rest
    double switch_lost_s[TT_TUNER_CLASSES];
    uint32_t switch_count[TT_TUNER_CLASSES];
    // Of trials broken off for being slow: how many, and the sum of how many times as long as
    // foreseen they took.
    uint32_t broken_off;
    double broken_off_sum;

    tti_drift drift;
    tti_rise rise;
    tti_credit credit;
    double worth_s;             // of the iterations before the last change of the machine
    uint64_t window_iterations; // done when the window began
    uint32_t drifts;

    uint32_t switches, abandoned;
    double phase_s[5], phase_since_s, lost_s;
    char note[TT_TUNER_REASON_MAX];
};

// ---- tuner_model.c: rows, fit, what is known of a setting ------------------------------------

// Adds a setting, or finds it. TTI_TUNER_NOBODY when memory is short.
uint32_t tti_tuner_adopt(tt_tuner *t, const tt_setting *setting);
void tti_tuner_describe(const tt_tuner *t, const tt_setting *setting, tti_tried *out);
// The same of the setting at a point on the grid.
void tti_tuner_describe_at(const tt_tuner *t, const double *x, tti_tried *out);
// Tells the estimator which of the features are of knobs that only lose something.
void tti_tuner_tell_lossy(const tt_tuner *t);
// The trend has become another one; before there is any row.
void tti_tuner_trend_changed(tt_tuner *t);
// Enters a window's seconds per iteration as the row of the setting in force.
TT_NODISCARD tt_status tti_tuner_add_row(tt_tuner *t, const tti_measured *m, tt_error *err);
TT_NODISCARD tt_status tti_tuner_refit(tt_tuner *t, tt_error *err);
// About what a fit and a search cost, in seconds of one core.
double tti_tuner_fit_seconds(const tt_tuner *t);
double tti_tuner_log_rate(const tt_tuner *t, const tti_tried *setting, uint32_t id, double *sd);
// The tried setting with the least posterior median of time left, of those with so many recent
// windows, none of them later than by_s; TTI_TUNER_NOBODY: there is none.
uint32_t tti_tuner_best_known(const tt_tuner *t, double stage, double windows, double by_s);
// The same of all; the first one where there is none.
uint32_t tti_tuner_incumbent(const tt_tuner *t, double stage);
// Variance of a window's own noise, in log seconds per iteration; 0 where the rule is left out.
double tti_tuner_noise_var(const tt_tuner *t);
// Posterior of log seconds per iteration now.
void tti_tuner_log_t(const tt_tuner *t, const tti_tried *s, double *mean, double *sd);

// ---- tuner_prior.c: rows of earlier runs ------------------------------------------------------

TT_NODISCARD tt_status tti_tuner_prior_open(tt_tuner *t, tt_error *err);
// Brings them onto this job's scale and into the process, as well as they are believed.
TT_NODISCARD tt_status tti_tuner_prior_enter(tt_tuner *t, tt_error *err);
// The machine has changed: as tt_gp_shift did with their rows.
void tti_tuner_prior_shift(tt_tuner *t, double shift, double extra_var);
// A trial's log seconds per iteration were `error` from what was promised with s.d. `sd`.
void tti_tuner_prior_judge(tt_tuner *t, double error, double sd);
// The job's own start setting takes exp(log_ratio) times what the best setting that memory led to
// takes to the same progress.
void tti_tuner_prior_judge_own(tt_tuner *t, double log_ratio, double sd);

// ---- tuner_guard.c: time left, ledger, costs -------------------------------------------------

// The setting that nothing may be much slower than: the one the job began with, or after a warm
// start the job's own when that turned out to be the faster.
uint32_t tti_tuner_yardstick(const tt_tuner *t);

// Iterations of the pooled clock that are left: 10, 50, 90 %. finite always.
void tti_tuner_left(const tt_tuner *t, double out[3]);
double tti_tuner_ledger(const tt_tuner *t);
// The machine has changed by `shift` in log seconds per iteration: what passed until now is priced
// at the old speed, and at the new one from iteration `since` on, under the setting in force.
void tti_tuner_close_account(tt_tuner *t, uint64_t since, double shift);
double tti_tuner_guard_left(const tt_tuner *t);
// Beyond it.
double tti_tuner_trickle_left(const tt_tuner *t);
// Changing settings has cost its share of the job: no trial for now.
int tti_tuner_switching_spent(const tt_tuner *t);
double tti_tuner_switch_s(const tt_tuner *t, uint32_t from, const tt_setting *to);
// Seconds lost by one window under a setting `ratio` times as slow as the reference, broken off in
// time.
double
tti_tuner_window_loss(const tt_tuner *t, const tti_tried *setting, double t_ref, double ratio);
// A trial was broken off that was `ratio` times as slow and took `seconds`.
void tti_tuner_broke_off(tt_tuner *t, double ratio, double seconds);

// ---- tuner_rules.c ----------------------------------------------------------------------------

int tti_tuner_follows(const tt_tuner *t, tt_tuner_rule rule);
// Windows in which the best setting is measured before it is rested in.
uint32_t tti_tuner_replicates(const tt_tuner *t);

// ---- tuner_credit.c: how much of what trials promise is believed --------------------------------

// At the beginning, and when the machine has changed: what is left to be found is unknown.
void tti_tuner_credit_open(tt_tuner *t);
// A trial begins that promises `share` of the time left under `best`.
void tti_tuner_credit_promise(tt_tuner *t, uint32_t trial, uint32_t best, double share);
// The process knows what the last trial has shown.
void tti_tuner_credit_settle(tt_tuner *t);
// Of a promise of so much: 0 to 1.
double tti_tuner_credit(const tt_tuner *t, double share);

// ---- tuner_lag.c: what the loss bears, as much as it bends -------------------------------------

// A window has ended.
void tti_tuner_note_lag(tt_tuner *t, const tt_est_window *w);
// Iterations by which gradients may lag; INFINITY: not known.
double tti_tuner_lag_borne(const tt_tuner *t);
// The first window has ended: what it tells of where the time goes, for the trend.
void tti_tuner_note_busy(tt_tuner *t);
// By which they do under it, measured or expected.
double tti_tuner_lag(const tt_tuner *t, const tti_tried *x);
// Its lag can be borne.
int tti_tuner_is_stable(const tt_tuner *t, const tti_tried *x);
// From now on no setting is used whose lag is longer than that, of what is borne now.
void tti_tuner_lag_less(tt_tuner *t, double most);
// That of the setting in force, which is longer than the user's choice, can not.
int tti_tuner_lags_too_far(const tt_tuner *t);

// ---- tuner_stability.c: what the loss bears ---------------------------------------------------

// As far as is known the loss does not rise under it.
int tti_tuner_is_borne(const tt_tuner *t, const tti_tried *x);
// And its delay is no more than a step beyond what was borne.
int tti_tuner_may_try(const tt_tuner *t, const tti_tried *x);
// The loss never rose under it, or it has borne as large a strain since.
int tti_tuner_is_trusted(const tt_tuner *t, const tti_tried *x);
// If the loss rises now it is by the setting in force, and no longer by the one before it.
int tti_tuner_is_to_blame(const tt_tuner *t);
// The loss rises under the setting in force, which is about to be left.
void tti_tuner_rose(tt_tuner *t);
// Not to be used: refused, or the loss rose under it and the step is not small enough yet.
int tti_tuner_is_out(const tt_tuner *t, const tti_tried *x);
// A window has ended.
void tti_tuner_calm(tt_tuner *t, const tt_est_window *w);
// The loss rose, and does not come down under the setting in force either.
int tti_tuner_does_not_recover(const tt_tuner *t);
// The loss has stopped falling above the target under a setting that asks more of it than the start
// setting does: from now on delays are shorter, or, where they are known to be borne, transfer is
// as at the start for a while or, near the edge, lags are shorter. Returns what of that, for
// people; NULL: it has not.
const char *tti_tuner_stalls(tt_tuner *t);
// Iterations that rises took, until the loss was back where it had been.
double tti_tuner_lost_iterations(const tt_tuner *t);

// ---- tuner_outlook.c: what is to be expected of a setting -------------------------------------

// Of a setting against the best known one; depends on the features alone.
tti_statistics
tti_tuner_statistics(const tt_tuner *t, const tti_frame *f, const tti_tried *x, uint32_t id);
// From mean and variance of the difference in log seconds per iteration.
tti_outlook
tti_tuner_outlook_from(const tti_frame *f, double t_mean, double t_var, const tti_statistics *s);
tti_outlook
tti_tuner_outlook(const tt_tuner *t, const tti_frame *f, const tti_tried *x, uint32_t id);
// Seconds that trying it may lose against the start setting, 97.5 %: both switches and the window.
double tti_tuner_worst_cost(const tt_tuner *t,
                            const tti_frame *f,
                            const tti_tried *x,
                            const tti_outlook *o);
double tti_tuner_expected_loss(const tt_tuner *t,
                               const tti_frame *f,
                               const tti_tried *x,
                               const tti_outlook *o);

// ---- tuner_gate.c: what to do next -----------------------------------------------------------

// Fits, searches, and chooses. must_leave: the setting in force is out of the question. frame: what
// it was based on (slice closed).
TT_NODISCARD tt_status
tti_tuner_decide(tt_tuner *t, int must_leave, tti_choice *out, tti_frame *frame, tt_error *err);

// ---- tuner_drift.c: has the machine changed ---------------------------------------------------

// Compares a window with the recent ones of its setting. 1: the machine has changed; all rows were
// carried over, and it is time to decide.
int tti_tuner_drift_watch(tt_tuner *t, const tti_measured *m);
// A change is suspected: the setting in force should stay until it is known.
int tti_tuner_drift_suspected(const tt_tuner *t);
// The last trials all took more than they were promised to, or all less: the best setting that was
// known well before them to measure, or, where none was, the best one, lest the machine has
// changed. TTI_TUNER_NOBODY: they did not, or none was known.
uint32_t tti_tuner_drift_recheck(const tt_tuner *t, double stage);

// ---- tuner_words.c: reasons ------------------------------------------------------------------

// "0.9 s", "12 ms", "3:05".
char *tti_tuner_seconds(double seconds, char *out, size_t size);
void tti_tuner_event(const tt_tuner *t, const char *format, ...) TT_PRINTF(2, 3);

#endif
