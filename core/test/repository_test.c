// Goal: what runs learned comes out of the repository as it went in, whoever else writes at the
// same time; a file that is damaged, foreign, of another schema or locked is told apart and left as
// it is. Method: values read back and compared, processes that write at once, overwritten pages, a
// second connection that holds the lock, allocations that fail one after the other.
#include "check_ok.h"
#include "repository_private.h"
#include "tt/core.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = P_tmpdir "/tt-repository-XXXXXX";
static char path[sizeof directory + 64], below[sizeof directory + 64];

static int
make_directory(void **state)
{
    TT_UNUSED(state);
    int made = mkdtemp(directory) != NULL;
    (void)snprintf(below, sizeof below, "%s/a", directory);
    (void)snprintf(path, sizeof path, "%s/a/b/repository.db", directory);
    return made ? 0 : -1;
}

static int
remove_file(void **state)
{
    TT_UNUSED(state);
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char name[sizeof path + 16];
    for (size_t i = 0; i < TT_COUNT_OF(suffixes); i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
    return 0;
}

static int
remove_directory(void **state)
{
    char name[sizeof path + 16];
    (void)remove_file(state);
    (void)snprintf(name, sizeof name, "%s/b", below);
    (void)rmdir(name);
    (void)rmdir(below);
    return rmdir(directory);
}

static tt_repository_run
some_run(const char *id)
{
    tt_repository_run run;
    tt_repository_run_init(&run);
    run.id = id;
    run.name = "clicks";
    run.model = "logistic_regression";
    run.nodes = 8;
    run.nonzeros = 36.75;
    run.cpu = "a processor";
    run.tuned = 1;
    run.best_setting = 2;
    return run;
}

static const tt_repository_value some_values[] = {
    {"chunk_bytes", 65536, NULL}, {"kernel", 2, "avx512"}, {"servers", 3, NULL}};

static tt_repository_row
some_row(int64_t id, double seconds)
{
    return (tt_repository_row){.setting = {.id = id,
                                           .seconds_per_iteration = seconds,
                                           .log_se = 0.0217,
                                           .windows = 5,
                                           .iterations = 1234,
                                           .log_rate = -0.031,
                                           .log_rate_sd = (double)NAN,
                                           .abandoned = id == 3},
                               .values = some_values,
                               .value_count = TT_COUNT_OF(some_values)};
}

static void
put(const char *id, uint32_t rows)
{
    tt_repository *r;
    tt_repository_run run = some_run(id);
    tt_repository_row row[8];
    for (uint32_t i = 0; i < rows; i++)
        row[i] = some_row(i + 1, 0.001 * (i + 1) + 0.000385);
    OK(tt_repository_open_write(path, &r, err));
    OK(tt_repository_put(r, &run, row, rows, err));
    tt_repository_close(r);
}

static tt_repository *
open_read(void)
{
    tt_repository *r;
    OK(tt_repository_open_read(path, &r, err));
    return r;
}

static void
test_round_trip(void **state)
{
    TT_UNUSED(state);
    put("one", 3);
    put("two", 0);
    const tt_repository_run *runs;
    const tt_repository_row *rows;
    uint32_t run_count, row_count;
    tt_repository *r = open_read();
    OK(tt_repository_runs(r, &runs, &run_count, err));
    assert_int_equal(run_count, 2);
    assert_string_equal(runs[0].id, "two"); // the newest first
    const tt_repository_run *one = &runs[1];
    assert_string_equal(one->name, "clicks");
    assert_string_equal(one->cpu, "a processor");
    assert_int_equal(one->nodes, 8);
    assert_true(one->nonzeros == 36.75 && isnan(one->train_seconds) && one->tuned);
    assert_true(one->rows == -1 && one->best_setting == 2 && one->engine == NULL);
    assert_true(llabs(one->ended_at - tt_clock_wall_seconds()) < 100);
    OK(tt_repository_rows(r, runs[1].key, &rows, &row_count, err));
    assert_int_equal(row_count, 3);
    assert_true(rows[1].setting.id == 2 && rows[1].setting.seconds_per_iteration == 0.002385);
    assert_true(rows[1].setting.windows == 5 && rows[1].setting.iterations == 1234);
    assert_true(rows[1].setting.log_rate == -0.031 && isnan(rows[1].setting.log_rate_sd));
    assert_true(rows[2].setting.abandoned && !rows[1].setting.abandoned);
    assert_int_equal(rows[2].value_count, 3);
    assert_string_equal(rows[2].values[1].knob, "kernel");
    assert_string_equal(rows[2].values[1].name, "avx512");
    assert_true(rows[2].values[0].value == 65536 && rows[2].values[0].name == NULL);
    OK(tt_repository_rows(r, runs[0].key, &rows, &row_count, err));
    assert_int_equal(row_count, 0);
    tt_repository_close(r);
    struct stat info;
    assert_int_equal(stat(below, &info), 0); // made on the way, for nobody but the user
    assert_int_equal(info.st_mode & 0777, 0700);
}

static uint32_t
runs_there(void)
{
    const tt_repository_run *runs;
    uint32_t count;
    tt_repository *r = open_read();
    OK(tt_repository_runs(r, &runs, &count, err));
    tt_repository_close(r);
    return count;
}

static void
test_forget(void **state)
{
    TT_UNUSED(state);
    tt_repository *r;
    uint32_t forgotten;
    put("one", 2);
    put("two", 2);
    put("one", 1);
    put("three", 1);
    OK(tt_repository_open_write(path, &r, err));
    OK(tt_repository_forget(r, "one", &forgotten, err));
    assert_int_equal(forgotten, 2);
    OK(tt_repository_forget(r, "one", &forgotten, err));
    assert_int_equal(forgotten, 0);
    tt_repository_close(r);
    assert_int_equal(runs_there(), 2);
    OK(tt_repository_open_write(path, &r, err));
    OK(tt_repository_forget(r, NULL, &forgotten, err));
    assert_int_equal(forgotten, 2);
    sqlite3_stmt *left;
    assert_int_equal(sqlite3_prepare_v2(r->db,
                                        "SELECT (SELECT count(*) FROM setting) + (SELECT count(*) "
                                        "FROM setting_value)",
                                        -1, &left, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(left), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(left, 0), 0);
    (void)sqlite3_finalize(left);
    tt_repository_close(r);
}

static void
test_bounded(void **state)
{
    TT_UNUSED(state);
    tt_repository *r;
    tt_repository_row row = some_row(0, 0.00317);
    OK(tt_repository_open_write(path, &r, err));
    OK(tti_repository_exec(r, "PRAGMA synchronous = OFF", "test", err)); // of 507 transactions
    for (int i = 0; i < TT_REPOSITORY_RUNS_MAX + 7; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "run %d", i);
        tt_repository_run run = some_run(id);
        OK(tt_repository_put(r, &run, &row, 1, err));
    }
    const tt_repository_run *runs;
    uint32_t count;
    OK(tt_repository_runs(r, &runs, &count, err));
    assert_int_equal(count, TT_REPOSITORY_RUNS_MAX);
    assert_string_equal(runs[count - 1].id, "run 7");
    tt_repository_close(r);
}

// Processes that make the file, write and read at the same time: every run of each is there.
static void
test_many_writers(void **state)
{
    TT_UNUSED(state);
    enum { PROCESSES = 4, EACH = 12 };
    pid_t children[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] > 0)
            continue;
        int failed = 0;
        for (int i = 0; i < EACH && !failed; i++) {
            tt_repository *r = NULL;
            tt_error err = {0};
            char id[48];
            (void)snprintf(id, sizeof id, "process %d run %d", p, i);
            tt_repository_run run = some_run(id);
            tt_repository_row rows[2] = {some_row(0, 0.1), some_row(1, 0.2)};
            const tt_repository_run *runs;
            uint32_t count;
            failed = tt_repository_open_write(path, &r, &err) != TT_OK ||
                     tt_repository_put(r, &run, rows, 2, &err) != TT_OK ||
                     tt_repository_runs(r, &runs, &count, &err) != TT_OK || count < (uint32_t)i + 1;
            if (failed)
                (void)fprintf(stderr, "%s: %s (%s)\n", id, err.what, err.where);
            tt_repository_close(r);
        }
        _exit(failed);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
    const tt_repository_run *runs;
    const tt_repository_row *rows;
    uint32_t count, row_count;
    tt_repository *r = open_read();
    OK(tt_repository_runs(r, &runs, &count, err));
    assert_int_equal(count, PROCESSES * EACH);
    for (uint32_t i = 0; i < count; i++) {
        OK(tt_repository_rows(r, runs[i].key, &rows, &row_count, err));
        assert_int_equal(row_count, 2);
        assert_int_equal(rows[0].value_count, 3);
    }
    tt_repository_close(r);
}

static void
write_file(const char *text, size_t bytes, off_t at)
{
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, text, bytes, at), (ssize_t)bytes);
    (void)close(file);
}

// Neither way of opening takes it, both with this status and some advice, and it stays as it is.
static void
refused(tt_status status, const char *what)
{
    tt_repository *r;
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    for (int writing = 0; writing < 2; writing++) {
        tt_error err = {0};
        tt_status is = writing ? tt_repository_open_write(path, &r, &err)
                               : tt_repository_open_read(path, &r, &err);
        if (is != status || strstr(err.what, what) == NULL || err.advice[0] == '\0')
            fail_msg("%s: %s; %s (expected %s: %s)", tt_status_name(is), err.what, err.advice,
                     tt_status_name(status), what);
        assert_null(r);
    }
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_size == after.st_size && before.st_ino == after.st_ino);
}

static void
test_wrong_files(void **state)
{
    tt_error err = {0};
    tt_repository *r;
    assert_int_equal(tt_repository_open_read(path, &r, &err), TT_NOTFOUND);
    put("one", 3);
    (void)remove_file(state);
    char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(17 + 31 * i * i);
    write_file(noise, sizeof noise, 0);
    refused(TT_INVALID, "not a repository of trimtab");
    (void)remove_file(state);

    sqlite3 *db; // a database of somebody else
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    refused(TT_INVALID, "not a repository of trimtab");
    (void)remove_file(state);

    put("one", 3);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    refused(TT_UNSUPPORTED, "has schema 9");
    (void)remove_file(state);

    put("one", 8);
    write_file(noise, sizeof noise, 4096); // a page in the middle
    refused(TT_CORRUPT, "damaged");
    (void)remove_file(state);

    put("one", 1); // the header alone is not ours to trust
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DROP TABLE setting", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    r = open_read();
    const tt_repository_row *rows;
    uint32_t count;
    assert_int_equal(tt_repository_rows(r, 1, &rows, &count, &err), TT_CORRUPT);
    tt_repository_close(r);
}

static void
test_locked(void **state)
{
    TT_UNUSED(state);
    put("one", 1);
    sqlite3 *db;
    tt_repository *r;
    tt_error fault = {0};
    tt_repository_run run = some_run("two");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(runs_there(), 1); // readers do not mind
    OK(tt_repository_open_write(path, &r, err));
    (void)sqlite3_busy_timeout(r->db, 30); // the test need not wait for as long as a run does
    assert_int_equal(tt_repository_put(r, &run, NULL, 0, &fault), TT_BUSY);
    assert_non_null(strstr(fault.advice, "fuser"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    OK(tt_repository_put(r, &run, NULL, 0, err)); // nothing is lost by having tried
    tt_repository_close(r);
    assert_int_equal(runs_there(), 2);
}

static void
test_no_memory(void **state)
{
    TT_UNUSED(state);
    put("one", 3);
    const tt_repository_run *runs;
    const tt_repository_row *rows;
    uint32_t count;
    int finished = 0;
    for (uint64_t n = 1; !finished; n++) {
        tt_repository *r = NULL;
        assert_true(n < 100);
        tt_mem_fail_nth(n);
        tt_status status = tt_repository_open_read(path, &r, NULL);
        if (status == TT_OK)
            status = tt_repository_runs(r, &runs, &count, NULL);
        if (status == TT_OK)
            status = tt_repository_rows(r, runs[0].key, &rows, &count, NULL);
        finished = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_int_equal(status, finished ? TT_OK : TT_NOMEM);
        tt_repository_close(r);
    }
}

static void
test_default_path(void **state)
{
    TT_UNUSED(state);
    char out[200], tiny[20];
    assert_int_equal(setenv("XDG_DATA_HOME", "/data", 1), 0);
    OK(tt_repository_default_path(out, sizeof out, err));
    assert_string_equal(out, "/data/trimtab/repository.db");
    assert_int_equal(tt_repository_default_path(tiny, sizeof tiny, NULL), TT_RANGE);
    assert_int_equal(setenv("XDG_DATA_HOME", "relative", 1), 0); // to be ignored
    assert_int_equal(setenv("HOME", "/home/somebody", 1), 0);
    OK(tt_repository_default_path(out, sizeof out, err));
    assert_string_equal(out, "/home/somebody/.local/share/trimtab/repository.db");
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(tt_repository_default_path(out, sizeof out, NULL), TT_NOTFOUND);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, remove_file),
        cmocka_unit_test_teardown(test_forget, remove_file),
        cmocka_unit_test_teardown(test_bounded, remove_file),
        cmocka_unit_test_teardown(test_many_writers, remove_file),
        cmocka_unit_test_teardown(test_wrong_files, remove_file),
        cmocka_unit_test_teardown(test_locked, remove_file),
        cmocka_unit_test_teardown(test_no_memory, remove_file),
        cmocka_unit_test(test_default_path),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
