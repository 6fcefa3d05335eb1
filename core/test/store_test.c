// Goal: what is put into a run store comes out again, whatever happens to the disk; a wrong or
// damaged file is told apart; samples stay bounded and keep their count, mean and spread. Method:
// rows read back through the query interface and a second connection; page limits, a file size
// limit and overwritten pages; 3,000,000 samples against sums kept beside.
#include "store_fixture.h"
#include "store_private.h"
#include "tt/core.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void
rows_come_back(void **state)
{
    TT_UNUSED(state);
    tt_store *store, *reader;
    OK(tt_store_create(store_path, &store, err));
    store_put_everything(store);
    assert_int_equal(tt_store_set_realised(store, 8, 1, 1, 1, NULL), TT_NOTFOUND);
    OK(tt_store_open_read(store_path, &reader, err));
    store_check_everything(reader);
    tt_store_query *query;
    int has_row;
    OK(tt_store_query_open(reader, "SELECT seed, id, name FROM run WHERE id LIKE ?1", &query, err));
    OK(tt_store_query_bind_text(query, 1, "%mlr", err));
    OK(tt_store_query_next(query, &has_row, err));
    assert_true(has_row);
    assert_true((uint64_t)tt_store_query_int(query, 0) == 0xfedcba9876543210u);
    assert_string_equal(tt_store_query_text(query, 1), "20261121-1412-fashion-mlr");
    assert_true(tt_store_query_is_null(query, 2));
    assert_null(tt_store_query_text(query, 2));
    OK(tt_store_query_next(query, &has_row, err));
    assert_false(has_row);
    tt_store_query_close(query);
    assert_int_equal(tt_store_query_open(reader, "SELECT nothing FROM run", &query, NULL), TT_IO);
    assert_null(query);
    OK(tt_store_close(reader, err));
    OK(tt_store_close(store, err));
    // closed, it is one plain file
    char wal[sizeof store_path + 8];
    (void)snprintf(wal, sizeof wal, "%s-wal", store_path);
    assert_int_not_equal(access(wal, F_OK), 0);
}

static void
readers_see_commits_only(void **state)
{
    TT_UNUSED(state);
    tt_store *store, *reader;
    OK(tt_store_create(store_path, &store, err));
    OK(tt_store_open_read(store_path, &reader, err));
    OK(tt_store_begin(store, err));
    store_put_events(store, 13);
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 0);
    assert_true(tt_store_in_transaction(store));
    OK(tt_store_commit(store, err));
    assert_false(tt_store_in_transaction(store));
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 13);
    store_put_events(store, 1);
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 14);
    OK(tt_store_commit(store, err));
    // closing under a reader's eyes must lose nothing
    OK(tt_store_close(store, err));
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 14);
    OK(tt_store_close(reader, err));
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 14);
    OK(tt_store_close(reader, err));
    OK(tt_store_close(NULL, err));
}

static void
expect_unreadable(const char *name, tt_status status, const char *what)
{
    tt_store *store;
    tt_error error = {0};
    assert_int_equal(tt_store_open_read(name, &store, &error), status);
    assert_null(store);
    assert_string_equal(error.where, name);
    if (strstr(error.what, what) == NULL)
        fail_msg("'%s' does not say '%s'", error.what, what);
    assert_true(error.advice[0] != '\0');
}

static void
write_file(const char *text, size_t bytes)
{
    FILE *file = fopen(store_path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void
wrong_files_are_told_apart(void **state)
{
    TT_UNUSED(state);
    expect_unreadable(store_path, TT_NOTFOUND, "there is no run store here");
    expect_unreadable(P_tmpdir, TT_INVALID, "not a file");
    write_file("", 0);
    expect_unreadable(store_path, TT_INVALID, "not a run store");
    char text[2000];
    memset(text, 'x', sizeof text);
    write_file(text, sizeof text);
    expect_unreadable(store_path, TT_INVALID, "not a run store");
    assert_int_equal(unlink(store_path), 0);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE run (x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    expect_unreadable(store_path, TT_INVALID, "not a run store");
    tt_store *store;
    tt_error error = {0};
    assert_int_equal(tt_store_create(store_path, &store, &error), TT_EXISTS);
    assert_null(store);
    assert_int_equal(tt_store_create("no/such/directory/run.db", &store, &error), TT_IO);
}

static void
set_version(int version)
{
    sqlite3 *db;
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
other_schemas_are_refused(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    OK(tt_store_create(store_path, &store, err));
    OK(tt_store_close(store, err));
    set_version(TT_STORE_SCHEMA_VERSION + 1);
    expect_unreadable(store_path, TT_UNSUPPORTED, "schema 2, this trimtab reads schema 1");
    set_version(0);
    expect_unreadable(store_path, TT_UNSUPPORTED, "schema 0");
    set_version(TT_STORE_SCHEMA_VERSION);
    OK(tt_store_open_read(store_path, &store, err));
    OK(tt_store_close(store, err));
}

static void
damage_is_told(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    OK(tt_store_create(store_path, &store, err));
    OK(tt_store_begin(store, err));
    store_put_events(store, 2000);
    OK(tt_store_commit(store, err));
    OK(tt_store_close(store, err));
    struct stat info;
    assert_int_equal(stat(store_path, &info), 0);
    assert_true(info.st_size > 10 * 4096);
    unsigned char page[4096], old[4096];
    memset(page, 0xa5, sizeof page);
    int file = open(store_path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    // every page behind the first two in turn: schema, data and inner pages
    for (off_t at = 0; at < info.st_size; at += 4096) {
        assert_int_equal(pread(file, old, sizeof old, at), 4096);
        assert_int_equal(pwrite(file, page, sizeof page, at), 4096);
        expect_unreadable(store_path, at == 0 ? TT_INVALID : TT_CORRUPT,
                          at == 0 ? "not a run store" : "damaged");
        assert_int_equal(pwrite(file, old, sizeof old, at), 4096);
    }
    assert_int_equal(ftruncate(file, info.st_size / 2), 0);
    assert_int_equal(close(file), 0);
    expect_unreadable(store_path, TT_CORRUPT, "damaged");
}

// Puts events until one is refused; returns how many went in.
static int
fill(tt_store *store, tt_error *error)
{
    for (int i = 0; i < 100000; i++)
        if (tt_store_put_event(store, i, "info", "a line of some length, as events are", error) !=
            TT_OK)
            return i;
    fail_msg("the limit was never reached");
    return -1;
}

static void
a_full_store_keeps_what_it_has(void **state)
{
    TT_UNUSED(state);
    tt_store *store, *reader;
    tt_error error = {0};
    OK(tt_store_create(store_path, &store, err));
    store_put_everything(store);
    store_set_page_limit(store, 40);
    OK(tt_store_begin(store, err));
    assert_true(fill(store, &error) > 100);
    assert_int_equal(error.status, TT_IO);
    assert_non_null(strstr(error.what, "disk is full"));
    assert_non_null(strstr(error.advice, "df -h"));
    assert_string_equal(error.where, store_path);
    // the batch is gone, what was committed is not, and the next commit is nothing
    assert_false(tt_store_in_transaction(store));
    OK(tt_store_commit(store, err));
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT count(*) FROM event") == 2);
    assert_true(store_number(reader, "SELECT loss FROM run") == 0.39984);
    OK(tt_store_close(reader, err));
    // space again
    store_set_page_limit(store, 100000);
    OK(tt_store_begin(store, err));
    store_put_events(store, 5000);
    OK(tt_store_commit(store, err));
    assert_true(store_number(store, "SELECT count(*) FROM event") == 5002);
    OK(tt_store_close(store, err));
}

static void
a_failing_disk_keeps_what_it_has(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    tt_error error = {0};
    OK(tt_store_create(store_path, &store, err));
    store_put_everything(store);
    // Writes past 256 KiB fail in the kernel, as on a full disk: the journal grows past that.
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){256 << 10, old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tt_status status = TT_OK;
    int commits = 0;
    for (; commits < 100 && status == TT_OK; commits++) {
        status = tt_store_begin(store, &error);
        for (int i = 0; i < 500 && status == TT_OK; i++)
            status = tt_store_put_event(store, i, "info", "a line of some length, as events are",
                                        &error);
        if (status == TT_OK)
            status = tt_store_commit(store, &error);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, TT_IO);
    assert_true(commits >= 2);
    assert_true(error.advice[0] != '\0');
    assert_false(tt_store_in_transaction(store));
    assert_true(store_number(store, "SELECT count(*) FROM event") == 2 + 500 * (commits - 1));
    store_put_events(store, 1);
    OK(tt_store_close(store, err));
    OK(tt_store_open_read(store_path, &store, err));
    assert_true(store_number(store, "SELECT count(*) FROM event") == 3 + 500 * (commits - 1));
    OK(tt_store_close(store, err));
}

// ---- samples
// -------------------------------------------------------------------------------------

static void
three_million_samples_are_thinned(void **state)
{
    TT_UNUSED(state);
    enum { SAMPLES = 3000000 };
    tt_store *store;
    tt_rng rng;
    tt_rng_init(&rng, 88, TT_RNG_TEST, 0);
    double sum = 0, sum_squares = 0, staleness = 0;
    int64_t not_finite = 0, setting_zero = 0;
    OK(tt_store_create(store_path, &store, err));
    OK(tt_store_begin(store, err));
    for (int64_t i = 0; i < SAMPLES; i++) {
        // settings change every 70,001 iterations, and interleave for 40 around each change
        int64_t setting = (i / 70001 + (i % 70001 < 40 ? i % 2 : 0)) % 7;
        double loss = 2.3 * exp(-(double)i / 900000.0) + 0.1 * tt_rng_uniform(&rng);
        if (i % 99991 == 7)
            loss = i % 2 ? (double)NAN : (double)INFINITY;
        if (isfinite(loss)) {
            sum += loss;
            sum_squares += loss * loss;
        } else
            not_finite++;
        staleness += (double)(i % 5);
        setting_zero += setting == 0;
        const tt_store_sample sample = {.iteration = i,
                                        .time_s = (double)i * 0.001,
                                        .loss = loss,
                                        .setting = setting,
                                        .staleness = (double)(i % 5)};
        OK(tt_store_put_sample(store, &sample, err));
        if (i % 250000 == 0) {
            OK(tt_store_commit(store, err));
            OK(tt_store_begin(store, err));
        }
    }
    OK(tt_store_close(store, err));
    OK(tt_store_open_read(store_path, &store, err));
    double rows = store_number(store, "SELECT count(*) FROM sample");
    assert_true(rows <= TT_STORE_SAMPLE_ROWS_MAX && rows > TT_STORE_SAMPLE_ROWS_MAX / 3);
    assert_true(store_number(store, "SELECT sum(count) FROM sample") == SAMPLES);
    assert_true(store_number(store, "SELECT sum(not_finite) FROM sample") == (double)not_finite);
    // settings are still known nearly everywhere
    assert_true(store_number(store, "SELECT sum(count) FROM sample WHERE setting IS NULL") <
                    SAMPLES / 100 ||
                isnan(store_number(store, "SELECT sum(count) FROM sample WHERE setting IS NULL")));
    double zero = store_number(store, "SELECT sum(count) FROM sample WHERE setting = 0");
    assert_true(zero <= (double)setting_zero && zero > 0.99 * (double)setting_zero);
    // sums of 3e6 doubles in another order: 1e-11 is far above their rounding
    double n = SAMPLES - (double)not_finite;
    double mean =
        store_number(store, "SELECT sum(loss_mean * (count - not_finite)) FROM sample") / n;
    assert_true(fabs(mean - sum / n) < 1e-11 * mean);
    double squares = store_number(store, "SELECT sum((loss_sd * loss_sd + loss_mean * loss_mean) *"
                                         " (count - not_finite)) FROM sample");
    assert_true(fabs(squares - sum_squares) < 1e-10 * squares);
    double stale = store_number(store, "SELECT sum(staleness_mean * count) FROM sample");
    assert_true(fabs(stale - staleness) < 1e-10 * staleness);
    assert_true(store_number(store,
                             "SELECT count(*) FROM sample a JOIN sample b ON b.iteration_first ="
                             " a.iteration_first + a.count") == rows - 1);
    assert_true(store_number(store, "SELECT max(time_s) FROM sample") == 2999999 * 0.001);
    OK(tt_store_close(store, err));
}

static void
merging_ends_whatever_the_settings(void **state)
{
    TT_UNUSED(state);
    enum { COUNT = 5000 };
    tti_store_block *blocks = tt_mem_zalloc(COUNT, sizeof *blocks);
    assert_non_null(blocks);
    for (int64_t i = 0; i < COUNT; i++)
        blocks[i] = (tti_store_block){
            .first = i, .count = 1, .finite = 1, .mean = (double)i, .setting = i % 2};
    int64_t size = 1;
    size_t count = tti_store_merge_blocks(blocks, COUNT, 3700, &size);
    assert_true(count <= 3700 && size == 2);
    count = tti_store_merge_blocks(blocks, count, 1, &size);
    assert_int_equal(count, 1);
    assert_int_equal(blocks[0].count, COUNT);
    assert_int_equal(blocks[0].setting, -1);
    assert_true(fabs(blocks[0].mean - (COUNT - 1) / 2.0) < 1e-9);
    // population variance of 0..n-1 is (n^2 - 1) / 12
    double variance = blocks[0].m2 / COUNT, expected = ((double)COUNT * COUNT - 1) / 12;
    assert_true(fabs(variance - expected) < 1e-9 * expected);
    tt_mem_free(blocks);
}

static void
samples_keep_their_order_and_survive_a_full_disk(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    tt_error error = {0};
    OK(tt_store_create(store_path, &store, err));
    tt_store_sample sample = {.iteration = 5, .loss = 1.25, .setting = 2};
    OK(tt_store_put_sample(store, &sample, err));
    assert_int_equal(tt_store_put_sample(store, &sample, &error), TT_INVALID);
    assert_non_null(strstr(error.what, "iteration 5 after 5"));
    store_set_page_limit(store, 40);
    OK(tt_store_begin(store, err));
    tt_status status = TT_OK;
    while (status == TT_OK && ++sample.iteration < 100000)
        status = tt_store_put_sample(store, &sample, &error);
    assert_int_equal(status, TT_IO);
    int64_t failed_at = sample.iteration;
    // skipped without a word until a commit succeeds
    for (int i = 0; i < 1000; i++) {
        sample.iteration++;
        OK(tt_store_put_sample(store, &sample, err));
    }
    assert_true(store_number(store, "SELECT sum(count) FROM sample") == 1);
    store_set_page_limit(store, 100000);
    OK(tt_store_begin(store, err));
    OK(tt_store_commit(store, err));
    sample.iteration++;
    OK(tt_store_put_sample(store, &sample, err));
    assert_true(store_number(store, "SELECT sum(count) FROM sample") == 2);
    assert_true(store_number(store, "SELECT max(iteration_first) FROM sample") ==
                (double)failed_at + 1001);
    OK(tt_store_close(store, err));
}

static void
short_memory_is_an_error(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        tt_mem_fail_nth(nth);
        assert_int_equal(tt_store_create(store_path, &store, NULL), TT_NOMEM);
        tt_mem_fail_nth(0);
        assert_null(store);
    }
    OK(tt_store_create(store_path, &store, err));
    tt_store_query *query;
    tt_mem_fail_nth(1);
    assert_int_equal(tt_store_query_open(store, "SELECT 1", &query, NULL), TT_NOMEM);
    tt_mem_fail_nth(0);
    // the one allocation on the way of samples: the table when it is halved
    tt_store_sample sample = {.loss = 1};
    OK(tt_store_begin(store, err));
    for (sample.iteration = 0; sample.iteration < TT_STORE_SAMPLE_ROWS_MAX; sample.iteration++)
        OK(tt_store_put_sample(store, &sample, err));
    OK(tt_store_commit(store, err));
    tt_mem_fail_nth(1);
    assert_int_equal(tt_store_put_sample(store, &sample, NULL), TT_NOMEM);
    tt_mem_fail_nth(0);
    assert_true(store_number(store, "SELECT sum(count) FROM sample") == TT_STORE_SAMPLE_ROWS_MAX);
    OK(tt_store_close(store, err));
}

// A store of before: what came later is not known when it is read, and is there when it goes on.
static void
an_older_store_gets_later_columns(void **state)
{
    TT_UNUSED(state);
    static const char *const later[][2] = {
        {"run", "tuner"},
        {"run", "started_from"},
        {"reconfiguration", "checkpoint_s"},
        {"reconfiguration", "restart_s"},
        {"reconfiguration", "model_s"},
        {"reconfiguration", "data_s"},
    };
    tt_store *store;
    OK(tt_store_create(store_path, &store, err));
    store_put_everything(store);
    for (size_t i = 0; i < TT_COUNT_OF(later); i++) {
        char sql[100];
        (void)snprintf(sql, sizeof sql, "ALTER TABLE %s DROP COLUMN %s", later[i][0], later[i][1]);
        OK(tti_store_exec(store, sql, err));
    }
    OK(tti_store_exec(store, "DROP TABLE eta", err));
    OK(tt_store_close(store, err));
    OK(tt_store_open_read(store_path, &store, err));
    tt_store_query *query;
    int has_row;
    OK(tt_store_query_open(store, "SELECT * FROM reconfiguration", &query, err));
    OK(tt_store_query_next(query, &has_row, err));
    assert_true(has_row && tt_store_query_real(query, 14) == 0.00083);
    assert_true(isnan(tt_store_query_real(query, 15)) && isnan(tt_store_query_real(query, 18)));
    assert_null(tt_store_query_text(query, 15));
    tt_store_query_close(query);
    OK(tt_store_query_open(store, "SELECT * FROM run", &query, err));
    OK(tt_store_query_next(query, &has_row, err));
    assert_true(has_row && strcmp(tt_store_query_text(query, 28), "threads") == 0);
    assert_null(tt_store_query_text(query, 29));
    assert_null(tt_store_query_text(query, 30));
    tt_store_query_close(query);
    OK(tt_store_close(store, err));
    for (int again = 0; again < 2; again++) {
        const tt_store_reconfiguration move = {
            .ordinal = 1 + again, .method = "checkpoint", .checkpoint_s = 0.0372, .data_s = 0.0011};
        OK(tt_store_open_again(store_path, &store, err));
        OK(tt_store_put_reconfiguration(store, &move, err));
        tt_store_run run;
        tt_store_run_init(&run);
        run.id = "20261121-1412-fashion-mlr";
        run.tuner = "off";
        OK(tt_store_put_run(store, &run, err));
        const tt_store_eta eta = {.iteration = again, .seconds_median = 3.5};
        OK(tt_store_put_eta(store, &eta, err));
        OK(tt_store_close(store, err));
    }
    OK(tt_store_open_read(store_path, &store, err));
    assert_true(store_number(store, "SELECT sum(seconds_median) FROM eta") == 7);
    assert_true(store_number(store, "SELECT sum(checkpoint_s) FROM reconfiguration") == 2 * 0.0372);
    assert_true(store_number(store, "SELECT data_s FROM reconfiguration WHERE ordinal = 2") ==
                0.0011);
    assert_true(store_number(store, "SELECT tuner = 'off' AND started_from IS NULL FROM run") == 1);
    OK(tt_store_close(store, err));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(rows_come_back),
        STORE_TEST(an_older_store_gets_later_columns),
        STORE_TEST(readers_see_commits_only),
        STORE_TEST(wrong_files_are_told_apart),
        STORE_TEST(other_schemas_are_refused),
        STORE_TEST(damage_is_told),
        STORE_TEST(a_full_store_keeps_what_it_has),
        STORE_TEST(a_failing_disk_keeps_what_it_has),
        STORE_TEST(three_million_samples_are_thinned),
        STORE_TEST(merging_ends_whatever_the_settings),
        STORE_TEST(samples_keep_their_order_and_survive_a_full_disk),
        STORE_TEST(short_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("store", tests, store_make_directory,
                                       store_remove_directory);
}
