// The run store's life: schema, opening with every way it can be the wrong file, transactions,
// close.
#include "store_private.h"
#include "tt/core_clock.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION_ID = 0x7472746d, BUSY_MS = 2000 }; // "trtm"

#define TABLE_ETA                                                                                  \
    "CREATE TABLE IF NOT EXISTS eta (time_s REAL, iteration INTEGER, seconds_p10 REAL,"            \
    " seconds_median REAL, seconds_p90 REAL, flags INTEGER);"

// Columns in the order of the kept INSERTs; documented in docs/run-store.md.
static const char schema[] =
    "CREATE TABLE run (id TEXT PRIMARY KEY, name TEXT, program_version TEXT, started_at INTEGER,"
    " updated_at INTEGER, seed INTEGER, driver TEXT, consistency TEXT, nodes INTEGER, model TEXT,"
    " data_rows INTEGER, data_features INTEGER, target_loss REAL, status TEXT, stop_reason TEXT,"
    " loss REAL, objective REAL, iterations INTEGER, epochs REAL, train_seconds REAL,"
    " wall_seconds REAL, examples_per_second REAL, generations INTEGER, reconfigure_seconds REAL,"
    " explore_seconds REAL, start_setting INTEGER, final_setting INTEGER, untuned_seconds REAL,"
    " engine TEXT, started_from TEXT, tuner TEXT);"
    "CREATE TABLE run_metric (name TEXT PRIMARY KEY, value REAL);"
    "CREATE TABLE knob (ordinal INTEGER PRIMARY KEY, id TEXT UNIQUE, kind TEXT, unit TEXT, min "
    "REAL,"
    " max REAL, start REAL, fixed INTEGER, reason TEXT, effect TEXT, scale TEXT, value_names TEXT);"
    "CREATE TABLE setting (id INTEGER PRIMARY KEY);"
    "CREATE TABLE setting_value (setting INTEGER, knob INTEGER, value REAL,"
    " PRIMARY KEY (setting, knob)) WITHOUT ROWID;"
    "CREATE TABLE window (ordinal INTEGER PRIMARY KEY, generation INTEGER, setting INTEGER, phase "
    "TEXT,"
    " first_iteration INTEGER, last_iteration INTEGER, start_s REAL, end_s REAL, kept INTEGER,"
    " seconds_per_iteration REAL, time_cv REAL, loss_before REAL, loss_after REAL, noise REAL,"
    " slope REAL, slope_se REAL, flags INTEGER, abandoned INTEGER, staleness REAL,"
    " lag_borne REAL);"
    "CREATE TABLE reconfiguration (ordinal INTEGER PRIMARY KEY, generation INTEGER,"
    " from_setting INTEGER, to_setting INTEGER, kind TEXT, method TEXT, start_s REAL, duration_s "
    "REAL,"
    " lost_s REAL, partitions_moved INTEGER, bytes_carried INTEGER, bytes_drained INTEGER,"
    " last_key_live_s REAL, iterations_during INTEGER, longest_wait_s REAL, checkpoint_s REAL,"
    " restart_s REAL, model_s REAL, data_s REAL);"
    "CREATE TABLE proposal (ordinal INTEGER PRIMARY KEY, time_s REAL, phase TEXT, setting INTEGER,"
    " current_setting INTEGER, log_ratio REAL, log_ratio_sd REAL, ei_seconds REAL, cost_seconds "
    "REAL,"
    " remaining_s REAL, decision TEXT, reason TEXT, realised_gain_s REAL,"
    " predicted_seconds REAL, guard_left_s REAL, proposed TEXT, realised_ratio REAL);"
    "CREATE TABLE event (time_s REAL, level TEXT, text TEXT);"
    "CREATE TABLE progress (time_s REAL, iteration INTEGER, epoch REAL, loss REAL, objective "
    "REAL);" TABLE_ETA
    "CREATE TABLE validation (ordinal INTEGER PRIMARY KEY, time_s REAL, iteration INTEGER, epoch "
    "REAL,"
    " loss REAL, accuracy REAL, auc REAL, prior_loss REAL, saved INTEGER);"
    "CREATE TABLE sample (iteration_first INTEGER PRIMARY KEY, count INTEGER, time_s REAL,"
    " loss_mean REAL, loss_sd REAL, setting INTEGER, staleness_mean REAL, not_finite INTEGER);";

// ---- errors
// --------------------------------------------------------------------------------------

typedef struct fault {
    int code;
    tt_status status;
    const char *what, *advice;
} fault;

static const fault faults[] = {
    {SQLITE_FULL, TT_IO, "the disk is full",
     "free some space (df -h); what was stored before is kept"},
    {SQLITE_IOERR, TT_IO, "the disk failed or is full",
     "check it (df -h, dmesg); what was stored before is kept"},
    {SQLITE_CORRUPT, TT_CORRUPT, "the file is damaged",
     "`sqlite3 run.db .recover` may save most rows into a new file"},
    {SQLITE_NOTADB, TT_INVALID, "this is not a run store",
     "give a run's directory or its run.db, for example runs/ID"},
    {SQLITE_BUSY, TT_BUSY, "another program holds the run store",
     "close the program that writes it (fuser run.db)"},
    {SQLITE_NOMEM, TT_NOMEM, "out of memory", NULL},
    {SQLITE_CANTOPEN, TT_IO, "cannot open", "check that you may read and write its directory"},
    {SQLITE_PERM, TT_IO, "not permitted", "check the owner of the file"},
    {SQLITE_READONLY, TT_IO, "the file may only be read", "check the owner of the file"},
    {SQLITE_CONSTRAINT, TT_EXISTS, "the row is there already", NULL},
};

tt_status
tti_store_fail(tt_store *store, int code, const char *doing, tt_error *err)
{
    const char *detail = store->db != NULL ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
    int primary = code & 0xff;
    for (size_t i = 0; i < TT_COUNT_OF(faults); i++)
        if (faults[i].code == primary)
            return tt_error_set(err, faults[i].status, store->path, faults[i].advice,
                                "%s while %s (%.200s)", faults[i].what, doing, detail);
    return tt_error_set(err, TT_IO, store->path, NULL, "the run store failed while %s: %.200s (%d)",
                        doing, detail, code);
}

tt_status
tti_store_exec(tt_store *store, const char *sql, tt_error *err)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TT_OK : tti_store_fail(store, code, "setting it up", err);
}

// ---- opening
// -------------------------------------------------------------------------------------

static void
release(tt_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < TT_COUNT_OF(store->statements); i++)
        (void)sqlite3_finalize(store->statements[i]);
    // A query its owner forgot would keep the file open for ever: that is a bug.
    int code = sqlite3_close(store->db);
    TT_ASSERT(code == SQLITE_OK);
    tt_mem_free(store->path);
    tt_mem_free(store);
}

static tt_status
new_store(const char *path, int writable, tt_store **out, tt_error *err)
{
    tt_store *store = tt_mem_zalloc(1, sizeof *store);
    char *copy = tt_mem_strdup(path);
    if (store == NULL || copy == NULL) {
        tt_mem_free(store);
        tt_mem_free(copy);
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for the run store");
    }
    store->path = copy;
    store->writable = writable;
    store->block_size = 1;
    store->last_iteration = -1;
    *out = store;
    return TT_OK;
}

static tt_status
connect_store(tt_store *store, int flags, tt_error *err)
{
    int code = sqlite3_open_v2(store->path, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return tti_store_fail(store, code, "opening it", err);
    (void)sqlite3_extended_result_codes(store->db, 1);
    (void)sqlite3_busy_timeout(store->db, BUSY_MS);
    return TT_OK;
}

static tt_status
write_schema(tt_store *store, tt_error *err)
{
    char sql[160];
    TT_TRY(connect_store(store, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err));
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                   (int)APPLICATION_ID, (int)TT_STORE_SCHEMA_VERSION);
    TT_TRY(tti_store_exec(store, "BEGIN", err));
    TT_TRY(tti_store_exec(store, sql, err));
    TT_TRY(tti_store_exec(store, schema, err));
    return tti_store_exec(store, "COMMIT", err);
}

static tt_status
set_journal(tt_store *store, tt_error *err)
{
    return tti_store_exec(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", err);
}

static void
unlink_all(const char *path)
{
    char other[4096];
    (void)unlink(path);
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < TT_COUNT_OF(suffixes); i++) {
        (void)snprintf(other, sizeof other, "%s%s", path, suffixes[i]);
        (void)unlink(other);
    }
}

// The store with its tables and nothing in them, at `path`.
static tt_status
make_empty(const char *path, tt_error *err)
{
    tt_store *store;
    unlink_all(path); // what a killed process left
    TT_TRY(new_store(path, 1, &store, err));
    tt_status status = write_schema(store, err);
    release(store);
    return status;
}

static tt_status
cannot_make(const char *path, int cause, tt_error *err)
{
    if (cause == EEXIST)
        return tt_error_set(err, TT_EXISTS, path, "give the run another name or directory",
                            "there is a run store already");
    return tt_error_set(err, TT_IO, path, "check that its directory exists and you may write in it",
                        "cannot make the run store: %s", tt_errno_text(cause));
}

// Made beside its place and linked there: whoever is killed meanwhile leaves a whole store or none.
tt_status
tt_store_create(const char *path, tt_store **out, tt_error *err)
{
    *out = NULL;
    tt_store *store;
    char beside[4096];
    struct stat info;
    if ((size_t)snprintf(beside, sizeof beside, "%s.new", path) >= sizeof beside)
        return cannot_make(path, ENAMETOOLONG, err);
    if (stat(path, &info) == 0)
        return cannot_make(path, EEXIST, err);
    int file = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return cannot_make(path, errno, err);
    (void)close(file);
    tt_status status = make_empty(beside, err);
    if (status == TT_OK && link(beside, path) != 0)
        status = cannot_make(path, errno, err);
    unlink_all(beside);
    if (status != TT_OK) {
        // The place is what the reader knows.
        if (err != NULL && strcmp(err->where, beside) == 0)
            (void)snprintf(err->where, sizeof err->where, "%.310s", path);
        return status;
    }
    TT_TRY(new_store(path, 1, &store, err));
    status = connect_store(store, SQLITE_OPEN_READWRITE, err);
    if (status == TT_OK)
        status = set_journal(store, err);
    if (status != TT_OK) {
        release(store);
        unlink_all(path);
        return status;
    }
    *out = store;
    return TT_OK;
}

// One number or word from a PRAGMA. `text` may be NULL.
static tt_status
ask(tt_store *store, const char *sql, int64_t *number, char *text, size_t text_bytes, tt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW && number != NULL)
        *number = sqlite3_column_int64(statement, 0);
    if (code == SQLITE_ROW && text != NULL) {
        const char *value = (const char *)sqlite3_column_text(statement, 0);
        (void)snprintf(text, text_bytes, "%s", value != NULL ? value : "");
    }
    tt_status status = TT_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = tti_store_fail(store, code, "reading it", err);
    (void)sqlite3_finalize(statement);
    return status;
}

static tt_status
check_identity(tt_store *store, tt_error *err)
{
    int64_t application = 0, version = 0;
    TT_TRY(ask(store, "PRAGMA application_id", &application, NULL, 0, err));
    if (application != APPLICATION_ID)
        return tt_error_set(err, TT_INVALID, store->path,
                            "give a run's directory or its run.db, for example runs/ID",
                            "this is not a run store");
    TT_TRY(ask(store, "PRAGMA user_version", &version, NULL, 0, err));
    if (version == TT_STORE_SCHEMA_VERSION)
        return TT_OK;
    int newer = version > TT_STORE_SCHEMA_VERSION;
    return tt_error_set(err, TT_UNSUPPORTED, store->path,
                        newer ? "update trimtab" : "read it with the trimtab that wrote it",
                        "this run store has schema %" PRId64 ", this trimtab reads schema %d",
                        version, (int)TT_STORE_SCHEMA_VERSION);
}

static tt_status
check_pages(tt_store *store, tt_error *err)
{
    char answer[300] = "ok";
    TT_TRY(ask(store, "PRAGMA quick_check(1)", NULL, answer, sizeof answer, err));
    if (strcmp(answer, "ok") == 0)
        return TT_OK;
    for (char *c = answer; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return tt_error_set(err, TT_CORRUPT, store->path,
                        "`sqlite3 run.db .recover` may save most rows into a new file",
                        "the file is damaged: %s", answer);
}

static tt_status
open_to_read(const char *path, tt_store **out, tt_error *err)
{
    tt_store *store;
    TT_TRY(new_store(path, 0, &store, err));
    tt_status status = connect_store(store, SQLITE_OPEN_READONLY, err);
    if (status == TT_OK)
        status = check_identity(store, err);
    if (status == TT_OK)
        status = check_pages(store, err);
    if (status == TT_OK)
        *out = store;
    else
        release(store);
    return status;
}

static int
recover(const char *path)
{
    tt_store *store;
    if (new_store(path, 1, &store, NULL) != TT_OK)
        return 0;
    tt_status status = connect_store(store, SQLITE_OPEN_READWRITE, NULL);
    if (status == TT_OK)
        status = check_identity(store, NULL); // any reading rolls back
    release(store);
    return status == TT_OK;
}

tt_status
tt_store_open_read(const char *path, tt_store **out, tt_error *err)
{
    *out = NULL;
    struct stat info;
    if (stat(path, &info) != 0)
        return tt_error_set(err, errno == ENOENT || errno == ENOTDIR ? TT_NOTFOUND : TT_IO, path,
                            "check the run's name; `ls runs` shows what there is",
                            "there is no run store here: %s", tt_errno_text(errno));
    if (!S_ISREG(info.st_mode))
        return tt_error_set(err, TT_INVALID, path, "give the run.db inside it",
                            "this is not a file");
    tt_store *store;
    tt_status status = open_to_read(path, &store, err);
    // A process that was killed may leave a journal to be rolled back, which a reader cannot do.
    if (status == TT_IO && recover(path))
        status = open_to_read(path, &store, err);
    if (status != TT_OK)
        return status;
    *out = store;
    return TT_OK;
}

// What came after the first stores were written: a store that goes on gets it as well.
static tt_status
add_what_is_newer(tt_store *store, tt_error *err)
{
    static const char *const added[][3] = {
        {"run", "started_from", "TEXT"},
        {"run", "tuner", "TEXT"},
        {"reconfiguration", "checkpoint_s", "REAL"},
        {"reconfiguration", "restart_s", "REAL"},
        {"reconfiguration", "model_s", "REAL"},
        {"reconfiguration", "data_s", "REAL"},
        {"proposal", "predicted_seconds", "REAL"},
        {"proposal", "guard_left_s", "REAL"},
        {"proposal", "proposed", "TEXT"},
        {"proposal", "realised_ratio", "REAL"},
        {"window", "staleness", "REAL"},
        {"window", "lag_borne", "REAL"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(added); i++) {
        char sql[200];
        int64_t there = 0;
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'",
                       added[i][0], added[i][1]);
        TT_TRY(ask(store, sql, &there, NULL, 0, err));
        if (there > 0)
            continue;
        (void)snprintf(sql, sizeof sql, "ALTER TABLE %s ADD COLUMN %s %s", added[i][0], added[i][1],
                       added[i][2]);
        TT_TRY(tti_store_exec(store, sql, err));
    }
    return tti_store_exec(store, TABLE_ETA, err);
}

tt_status
tt_store_open_again(const char *path, tt_store **out, tt_error *err)
{
    *out = NULL;
    tt_store *store;
    struct stat info;
    if (stat(path, &info) != 0)
        return tt_error_set(err, TT_NOTFOUND, path, NULL, "there is no run store here: %s",
                            tt_errno_text(errno));
    TT_TRY(new_store(path, 1, &store, err));
    tt_status status = connect_store(store, SQLITE_OPEN_READWRITE, err);
    if (status == TT_OK)
        status = check_identity(store, err);
    if (status == TT_OK)
        status = check_pages(store, err);
    if (status == TT_OK)
        status = set_journal(store, err);
    if (status == TT_OK)
        status = add_what_is_newer(store, err);
    int64_t largest = 1;
    if (status == TT_OK)
        status = ask(store, "SELECT max(count) FROM sample", &largest, NULL, 0, err);
    if (status != TT_OK) {
        release(store);
        return status;
    }
    while (store->block_size < largest)
        store->block_size *= 2;
    store->sample_rows = -1;
    *out = store;
    return TT_OK;
}

tt_status
tt_store_forget_after(tt_store *store, double time_s, int64_t iteration, tt_error *err)
{
    char sql[640];
    TT_ASSERT(store->writable && !store->in_transaction && store->behind == NULL);
    (void)snprintf(sql, sizeof sql,
                   "BEGIN IMMEDIATE;"
                   "DELETE FROM window WHERE end_s > %.9f;"
                   "DELETE FROM reconfiguration WHERE start_s > %.9f;"
                   "DELETE FROM proposal WHERE time_s > %.9f;"
                   "DELETE FROM progress WHERE time_s > %.9f;"
                   "DELETE FROM eta WHERE time_s > %.9f;"
                   "DELETE FROM validation WHERE time_s > %.9f;"
                   "DELETE FROM sample WHERE iteration_first > %" PRId64 ";"
                   "COMMIT;",
                   time_s, time_s, time_s, time_s, time_s, time_s, iteration);
    store->last_iteration = iteration;
    return tti_store_exec(store, sql, err);
}

// ---- transactions
// --------------------------------------------------------------------------------

tt_status
tt_store_begin(tt_store *store, tt_error *err)
{
    if (store->behind == NULL)
        return tti_store_begin_now(store, err);
    tti_store_begin_behind(store);
    return TT_OK;
}

tt_status
tt_store_commit(tt_store *store, tt_error *err)
{
    if (store->behind == NULL)
        return tti_store_commit_now(store, err);
    return tti_store_commit_behind(store, err);
}

tt_status
tti_store_begin_now(tt_store *store, tt_error *err)
{
    TT_ASSERT(!store->in_transaction);
    TT_TRY(tti_store_write_now(store, TTI_STORE_BEGIN, NULL, 0, err));
    store->in_transaction = 1;
    return TT_OK;
}

tt_status
tti_store_commit_now(tt_store *store, tt_error *err)
{
    if (!store->in_transaction)
        return TT_OK;
    int64_t now = tt_clock_wall_seconds();
    if (now != store->touched_at) {
        const tti_store_cell cell = TTI_INT(now);
        TT_TRY(tti_store_write_now(store, TTI_STORE_TOUCH, &cell, 1, err));
        store->touched_at = now;
    }
    TT_TRY(tti_store_write_now(store, TTI_STORE_COMMIT, NULL, 0, err));
    store->in_transaction = 0;
    store->samples_off = 0;
    return TT_OK;
}

void
tti_store_abandon(tt_store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->in_transaction = 0;
    store->sample_rows = -1;
    store->block.count = 0; // or closing would try what has just failed
    store->samples_off = 1;
}

int
tt_store_in_transaction(const tt_store *store)
{
    return store->behind != NULL ? tti_store_is_in_batch(store) : store->in_transaction;
}

tt_status
tt_store_close(tt_store *store, tt_error *err)
{
    if (store == NULL)
        return TT_OK;
    tt_status status = tti_store_end_behind(store, err);
    if (store->writable) {
        tt_status flushed = tti_store_flush_samples(store, status == TT_OK ? err : NULL);
        status = status == TT_OK ? flushed : status;
        tt_status committed = tt_store_commit(store, status == TT_OK ? err : NULL);
        status = status == TT_OK ? committed : status;
        for (size_t i = 0; i < TT_COUNT_OF(store->statements); i++) {
            (void)sqlite3_finalize(store->statements[i]);
            store->statements[i] = NULL;
        }
        // One plain file that can be copied and read anywhere. A reader may hold the journal; then
        // it stays beside the file, which is complete all the same.
        (void)sqlite3_busy_timeout(store->db, 50);
        (void)sqlite3_exec(store->db,
                           "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;", NULL,
                           NULL, NULL);
    }
    release(store);
    return status;
}
