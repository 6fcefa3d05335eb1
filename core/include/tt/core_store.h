// The run store: run.db, one SQLite file a run, from which every report is made. Its tables are a
// public interface, described column by column in docs/run-store.md; the structs below are their
// rows.
//
// Rules for every row: strings are borrowed for the call, NULL = not known; a double NAN = not
// known; an int64_t id or count below 0 = not known. All three become NULL in the table. Times
// named _s are seconds on the job's clock (0 = first pull), durations in seconds; *_at are seconds
// since 1970.
//
// Caveats: one store is owned by one thread; other processes may read it while it is written. Rows
// become visible and durable at commit; without begin each put is its own transaction (slow: some
// milliseconds, and as long as the disk likes: see tt_store_write_behind). A failed put (full disk)
// loses the open transaction, never what was committed, and the store stays usable: the job should
// log the error and train on.
#ifndef TT_CORE_STORE_H
#define TT_CORE_STORE_H

#include "tt/core_status.h"
#include <stdint.h>

enum {
    TT_STORE_SCHEMA_VERSION = 1, // PRAGMA user_version of run.db
    TT_STORE_SAMPLE_ROWS_MAX = 65536,
};

typedef struct tt_store tt_store;

// ---- life
// ----------------------------------------------------------------------------------------

// Makes a new store. errors: TT_EXISTS there is a file already; TT_IO; TT_NOMEM
TT_NODISCARD tt_status tt_store_create(const char *path, tt_store **out, tt_error *err);
// Opens an existing one to read, also while another process writes it. errors: TT_NOTFOUND;
// TT_INVALID not a run store; TT_UNSUPPORTED made by a newer trimtab; TT_CORRUPT damaged; TT_IO;
// TT_NOMEM
TT_NODISCARD tt_status tt_store_open_read(const char *path, tt_store **out, tt_error *err);
// Opens an existing one to write on in it. errors as tt_store_open_read
TT_NODISCARD tt_status tt_store_open_again(const char *path, tt_store **out, tt_error *err);
// From now on puts and commits only reach memory, and a thread of the store's own writes batch
// after batch: whoever puts rows never waits for the disk, unless more than 64 MiB are waiting. A
// commit while it is still at the last batch goes with the next one. What fails is told by a later
// commit or by close, and the failed batch is lost; tt_store_set_realised does not tell of a
// proposal that is not there. Queries and tt_store_forget_after are not for a store that writes
// behind. errors: TT_NOMEM, and everything is as before
TT_NODISCARD tt_status tt_store_write_behind(tt_store *store, tt_error *err);
// Waits until all that was put is written, and tells what failed of it. Nothing for a store that
// writes at once.
TT_NODISCARD tt_status tt_store_catch_up(tt_store *store, tt_error *err);
// Takes out windows, samples, reconfigurations, proposals and evaluations later than a moment of
// the job, that is done again; events stay, they did happen.
TT_NODISCARD tt_status tt_store_forget_after(tt_store *store,
                                             double time_s,
                                             int64_t iteration,
                                             tt_error *err);
// Writes the last sample block, commits what is open, folds the journal into run.db; waits for what
// is written behind. On failure says so and releases everything all the same. NULL is fine.
tt_status tt_store_close(tt_store *store, tt_error *err);

// A batch of rows: commit about once a second. Nested begins are a bug (asserted). A commit after a
// failure rolled the batch back is nothing.
TT_NODISCARD tt_status tt_store_begin(tt_store *store, tt_error *err);
TT_NODISCARD tt_status tt_store_commit(tt_store *store, tt_error *err);
// 1 between begin and commit; 0 after a failure rolled the batch back.
int tt_store_in_transaction(const tt_store *store);

// ---- rows
// ----------------------------------------------------------------------------------------

typedef struct tt_store_run {
    const char *id, *name, *program_version;
    int64_t started_at;
    uint64_t seed;           // stored as the signed integer with the same bits
    const char *driver;      // "messages", "in_place"
    const char *consistency; // "bsp", "asp", "ssp"
    int64_t nodes;
    const char *model;
    int64_t data_rows, data_features;
    double target_loss;
    const char *status; // "running", "converged", "stopped", "failed"
    const char *stop_reason;
    double loss, objective;
    int64_t iterations;
    double epochs, train_seconds, wall_seconds, examples_per_second;
    int64_t generations;
    double reconfigure_seconds;           // training seconds lost
    double explore_seconds;               // training seconds under settings that were being tried
    int64_t start_setting, final_setting; // setting ids
    double untuned_seconds; // train_seconds of the start setting without tuning; NAN = not measured
    const char *engine;     // "threads", "simulated", ...
    const char *started_from; // what earlier runs gave it; NULL = nothing
    const char *tuner;        // how it was tuned: "model time, estimator pooled", "off", "script"
} tt_store_run;
// All "not known".
void tt_store_run_init(tt_store_run *run);
// The one row of table run: written at the start, replaced whenever more is known.
TT_NODISCARD tt_status tt_store_put_run(tt_store *store, const tt_store_run *run, tt_error *err);
// Test metric ("accuracy", 0.848); replaces one of the same name.
TT_NODISCARD tt_status tt_store_put_metric(tt_store *store,
                                           const char *name,
                                           double value,
                                           tt_error *err);

typedef struct tt_store_knob {
    int64_t ordinal; // index in the search space, from 0
    const char *id, *kind, *unit;
    double min, max, start;
    int fixed;
    const char *reason; // why it is fixed, or why its range shrank
    const char *effect; // "setting", "moves data", "moves model", "moves data and model"
    const char *scale;  // "linear", "log2"
    const char *values; // enum: names joined by commas
} tt_store_knob;
TT_NODISCARD tt_status tt_store_put_knob(tt_store *store, const tt_store_knob *knob, tt_error *err);

// Setting `id` with value[ordinal] for each knob. Putting the same id again is fine and changes
// nothing.
TT_NODISCARD tt_status tt_store_put_setting(
    tt_store *store, int64_t id, const double *values, uint32_t count, tt_error *err);

typedef enum tt_store_phase {
    TT_STORE_START,      // 'start': the start setting and the tuner's initial points
    TT_STORE_EXPLORE,    // 'explore': a setting on trial
    TT_STORE_SETTLED,    // 'settled': the setting chosen for now
    TT_STORE_FIXED,      // 'fixed': tuning is off
    TT_STORE_TRANSITION, // 'transition': iterations between two settings
} tt_store_phase;
const char *tt_store_phase_text(tt_store_phase phase);

typedef struct tt_store_window {
    int64_t ordinal, generation, setting;
    tt_store_phase phase;
    int64_t first_iteration, last_iteration;
    double start_s, end_s;
    int64_t kept; // iterations measured
    double seconds_per_iteration, time_cv;
    double loss_before, loss_after, noise, slope, slope_se;
    unsigned flags; // tt_est_flag
    int abandoned;
    double staleness; // iterations applied between pull and push, mean
    double lag_borne; // by which gradients may lag, as the loss bends then and will later
} tt_store_window;
TT_NODISCARD tt_status tt_store_put_window(tt_store *store,
                                           const tt_store_window *window,
                                           tt_error *err);

typedef struct tt_store_reconfiguration {
    int64_t ordinal, generation, from_setting, to_setting;
    const char *kind;   // what moved: "setting", "data", "model", "data and model"
    const char *method; // "on demand", "drain", "checkpoint", "publish"
    double start_s, duration_s;
    double lost_s;                                          // training seconds lost
    int64_t partitions_moved, bytes_carried, bytes_drained; // carried by workers, drained behind
    double last_key_live_s; // from start_s to the last key live at its new owner
    int64_t iterations_during;
    double longest_wait_s; // of any worker
    // Parts of duration_s when everything was restarted from a checkpoint, else NAN: writing it,
    // nodes and their setting, parameters, position in the data.
    double checkpoint_s, restart_s, model_s, data_s;
} tt_store_reconfiguration;
TT_NODISCARD tt_status tt_store_put_reconfiguration(tt_store *store,
                                                    const tt_store_reconfiguration *row,
                                                    tt_error *err);

typedef struct tt_store_proposal {
    int64_t ordinal;
    double time_s;
    const char *phase;                            // the tuner's own word
    int64_t setting, current_setting;             // proposed; in force
    double log_ratio, log_ratio_sd;               // predicted ln(time left, proposed / current)
    double ei_seconds, cost_seconds, remaining_s; // expected gain; price of moving; time left now
    const char *decision;                         // "moved", "stayed", "abandoned", "returned", ...
    const char *reason;
    double realised_gain_s; // measured later
    double predicted_s;     // seconds per iteration under it, median
    double guard_left_s;    // what might still be lost to trials then
    const char *proposed;   // where it differs from the setting in force: "servers 1, spin 20"
    double realised_ratio;  // as log_ratio, exponentiated: measured later
} tt_store_proposal;
TT_NODISCARD tt_status tt_store_put_proposal(tt_store *store,
                                             const tt_store_proposal *row,
                                             tt_error *err);
// What came of it, and the number its setting got. errors TT_NOTFOUND there is no such proposal
TT_NODISCARD tt_status tt_store_set_realised(
    tt_store *store, int64_t ordinal, int64_t setting, double gain_s, double ratio, tt_error *err);

// level: "info", "warning", "error".
TT_NODISCARD tt_status tt_store_put_event(
    tt_store *store, double time_s, const char *level, const char *text, tt_error *err);

typedef struct tt_store_progress {
    double time_s;
    int64_t iteration;
    double epoch, loss, objective;
} tt_store_progress;
// A full evaluation of the training set.
TT_NODISCARD tt_status tt_store_put_progress(tt_store *store,
                                             const tt_store_progress *row,
                                             tt_error *err);

// What was said of the time left, some twenty times while the iterations double; what became of it
// is known at the end.
typedef struct tt_store_eta {
    double time_s;
    int64_t iteration;
    double seconds_p10, seconds_median, seconds_p90; // INFINITY: no end to be seen
    unsigned flags;                                  // tt_est_flag
} tt_store_eta;
TT_NODISCARD tt_status tt_store_put_eta(tt_store *store, const tt_store_eta *row, tt_error *err);

typedef struct tt_store_validation {
    int64_t ordinal; // evaluations so far, from 1
    double time_s;
    int64_t iteration;
    double epoch, loss, accuracy, auc;
    double prior_loss; // of the classes' shares alone
    int saved;         // 1: of the model that was saved
} tt_store_validation;
// An evaluation of the validation rows; putting the same ordinal again replaces it.
TT_NODISCARD tt_status tt_store_put_validation(tt_store *store,
                                               const tt_store_validation *row,
                                               tt_error *err);

// One iteration, in the order of application. Rows hold blocks of 2^k iterations; when table sample
// reaches TT_STORE_SAMPLE_ROWS_MAX rows, neighbours are merged and k grows, so its size is bounded
// however long the run is. Merging takes some 0.1 s and happens about log2(iterations / 65536)
// times.
// After a failure samples are skipped until a commit succeeds.
typedef struct tt_store_sample {
    int64_t iteration;
    double time_s, loss; // a loss that is not finite is counted apart, not averaged
    int64_t setting;
    double staleness; // iterations between pull and push
} tt_store_sample;
TT_NODISCARD tt_status tt_store_put_sample(tt_store *store,
                                           const tt_store_sample *sample,
                                           tt_error *err);

// ---- reading
// -------------------------------------------------------------------------------------

// A prepared SELECT. Columns count from 0, parameters (?1, ?2) from 1. Close it before its store.
typedef struct tt_store_query tt_store_query;
TT_NODISCARD tt_status tt_store_query_open(tt_store *store,
                                           const char *sql,
                                           tt_store_query **out,
                                           tt_error *err);
TT_NODISCARD tt_status tt_store_query_bind_int(tt_store_query *query,
                                               int parameter,
                                               int64_t value,
                                               tt_error *err);
TT_NODISCARD tt_status tt_store_query_bind_text(tt_store_query *query,
                                                int parameter,
                                                const char *value,
                                                tt_error *err);
// *has_row 1: a row is there; 0: the end.
TT_NODISCARD tt_status tt_store_query_next(tt_store_query *query, int *has_row, tt_error *err);
int tt_store_query_is_null(const tt_store_query *query, int column);
int64_t tt_store_query_int(const tt_store_query *query, int column); // -1 for NULL
double tt_store_query_real(const tt_store_query *query, int column); // NAN for NULL
const char *tt_store_query_text(const tt_store_query *query,
                                int column); // NULL for NULL; until next
void tt_store_query_close(tt_store_query *query);

#endif
