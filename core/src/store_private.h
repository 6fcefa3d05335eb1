// Private to the run store.
#ifndef TTI_STORE_PRIVATE_H
#define TTI_STORE_PRIVATE_H

#include "tt/core_mem.h"
#include "tt/core_store.h"
#include <sqlite3.h>

// One column of a row to write.
typedef struct tti_store_cell {
    enum { TTI_CELL_INT, TTI_CELL_REAL, TTI_CELL_TEXT } type;
    int64_t integer; // below 0 = NULL, unless `is_signed`
    double real;     // NAN = NULL
    const char *text;
    int is_signed;
} tti_store_cell;
#define TTI_INT(v)                                                                                 \
    {                                                                                              \
        .type = TTI_CELL_INT, .integer = (v)                                                       \
    }
#define TTI_SIGNED(v)                                                                              \
    {                                                                                              \
        .type = TTI_CELL_INT, .integer = (v), .is_signed = 1                                       \
    }
#define TTI_REAL(v)                                                                                \
    {                                                                                              \
        .type = TTI_CELL_REAL, .real = (v)                                                         \
    }
#define TTI_TEXT(v)                                                                                \
    {                                                                                              \
        .type = TTI_CELL_TEXT, .text = (v)                                                         \
    }

// Statements kept prepared: what, number of parameters, SQL up to the parameters.
#define TTI_STORE_STATEMENTS(X)                                                                    \
    X(RUN, 31, "INSERT OR REPLACE INTO run VALUES")                                                \
    X(METRIC, 2, "INSERT OR REPLACE INTO run_metric VALUES")                                       \
    X(KNOB, 12, "INSERT OR REPLACE INTO knob VALUES")                                              \
    X(SETTING, 1, "INSERT OR IGNORE INTO setting VALUES")                                          \
    X(SETTING_VALUE, 3, "INSERT OR IGNORE INTO setting_value VALUES")                              \
    X(WINDOW, 20, "INSERT OR REPLACE INTO window VALUES")                                          \
    X(RECONFIGURATION, 19, "INSERT OR REPLACE INTO reconfiguration VALUES")                        \
    X(PROPOSAL, 17, "INSERT OR REPLACE INTO proposal VALUES")                                      \
    X(EVENT, 3, "INSERT INTO event VALUES")                                                        \
    X(PROGRESS, 5, "INSERT INTO progress VALUES")                                                  \
    X(ETA, 6, "INSERT INTO eta VALUES")                                                            \
    X(VALIDATION, 9, "INSERT OR REPLACE INTO validation VALUES")                                   \
    X(SAMPLE, 8, "INSERT INTO sample VALUES")                                                      \
    X(GAIN, 0,                                                                                     \
      "UPDATE proposal SET realised_gain_s = ?2, realised_ratio = ?3, setting = ?4"                \
      " WHERE ordinal = ?1")                                                                       \
    X(TOUCH, 0, "UPDATE run SET updated_at = ?1")                                                  \
    X(BEGIN, 0, "BEGIN IMMEDIATE")                                                                 \
    X(COMMIT, 0, "COMMIT")                                                                         \
    X(ROLLBACK, 0, "ROLLBACK")

typedef enum tti_store_statement {
#define TTI_STORE_ENUM(name, parameters, sql) TTI_STORE_##name,
    TTI_STORE_STATEMENTS(TTI_STORE_ENUM)
#undef TTI_STORE_ENUM
        TTI_STORE_STATEMENT_COUNT
} tti_store_statement;

// Consecutive iterations as one row of table sample.
typedef struct tti_store_block {
    int64_t first, count;
    int64_t finite; // of count, those with a finite loss; mean and m2 are theirs
    double mean, m2;
    double time_s; // of the last iteration
    int64_t setting;
    double staleness_sum;
} tti_store_block;

// Writing behind (store_behind.c).
typedef struct tti_store_behind tti_store_behind;

struct tt_store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[TTI_STORE_STATEMENT_COUNT];
    int writable, in_transaction;
    int64_t touched_at;    // run.updated_at
    tti_store_block block; // being filled; count 0 = none
    int64_t block_size;    // 2^k
    int64_t sample_rows;   // in the table; -1 = to be counted (after a rollback)
    int64_t last_iteration;
    int samples_off;          // a block could not be written; on again after the next good commit
    tti_store_behind *behind; // NULL: whoever puts a row writes it
};

// Runs a kept statement with `count` cells, now or behind. On failure the error says what was being
// done, and a fault of the disk rolls the open batch back.
TT_NODISCARD tt_status tti_store_write(tt_store *store,
                                       tti_store_statement which,
                                       const tti_store_cell *cells,
                                       size_t count,
                                       tt_error *err);
TT_NODISCARD tt_status tti_store_write_now(tt_store *store,
                                           tti_store_statement which,
                                           const tti_store_cell *cells,
                                           size_t count,
                                           tt_error *err);
TT_NODISCARD tt_status tti_store_put_sample_now(tt_store *store,
                                                const tt_store_sample *sample,
                                                tt_error *err);
TT_NODISCARD tt_status tti_store_begin_now(tt_store *store, tt_error *err);
TT_NODISCARD tt_status tti_store_commit_now(tt_store *store, tt_error *err);
// TT_INVALID unless the sample's iteration is after *last, which it then becomes.
TT_NODISCARD tt_status tti_store_check_order(const tt_store *store,
                                             int64_t *last,
                                             const tt_store_sample *sample,
                                             tt_error *err);

// The same for a store that writes behind. They return what came of an earlier batch.
TT_NODISCARD tt_status tti_store_row_behind(tt_store *store,
                                            tti_store_statement which,
                                            const tti_store_cell *cells,
                                            size_t count,
                                            tt_error *err);
TT_NODISCARD tt_status tti_store_sample_behind(tt_store *store,
                                               const tt_store_sample *sample,
                                               tt_error *err);
void tti_store_begin_behind(tt_store *store);
// Forgets the open batch, but for what went to the thread already because it was too large to wait.
void tti_store_abandon_behind(tt_store *store);
TT_NODISCARD tt_status tti_store_commit_behind(tt_store *store, tt_error *err);
int tti_store_is_in_batch(const tt_store *store);
// Waits until everything is written, and writes no longer behind.
tt_status tti_store_end_behind(tt_store *store, tt_error *err);

TT_NODISCARD tt_status tti_store_exec(tt_store *store, const char *sql, tt_error *err);
// Rolls the open batch back, if there is one.
void tti_store_abandon(tt_store *store);
// Turns SQLite's code into a status with advice.
tt_status tti_store_fail(tt_store *store, int code, const char *doing, tt_error *err);
// Writes the unfinished sample block.
TT_NODISCARD tt_status tti_store_flush_samples(tt_store *store, tt_error *err);
// Merges neighbours until at most `keep` blocks remain, doubling *block_size on the way; blocks of
// different settings only where nothing else helps (their setting becomes unknown). Returns how
// many.
size_t
tti_store_merge_blocks(tti_store_block *blocks, size_t count, size_t keep, int64_t *block_size);

#endif
