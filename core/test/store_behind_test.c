// Goal: a store that writes behind holds the same rows as one that writes at once; whoever puts
// them is not kept by a file that cannot be written, and is told in the end what was lost. Method:
// another connection holds the file's write lock; page limits; rows read back by a second store.
#include "store_fixture.h"
#include "store_private.h"
#include <string.h>

static tt_store *
open_behind(void)
{
    tt_store *store;
    OK(tt_store_create(store_path, &store, err));
    OK(tt_store_write_behind(store, err));
    return store;
}

static void
expect_events(int64_t count)
{
    tt_store *reader;
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT count(*) FROM event") == (double)count);
    OK(tt_store_close(reader, err));
}

static void
rows_are_the_same(void **state)
{
    TT_UNUSED(state);
    tt_store *store = open_behind(), *reader;
    assert_false(tt_store_in_transaction(store));
    store_put_everything(store);
    OK(tt_store_close(store, err));
    OK(tt_store_open_read(store_path, &reader, err));
    store_check_everything(reader);
    OK(tt_store_close(reader, err));
}

// Rows without a batch, a batch that is not committed, a setting of its own: all are there once the
// store is closed.
static void
close_writes_what_waits(void **state)
{
    TT_UNUSED(state);
    tt_store *store = open_behind(), *reader;
    const double values[] = {65536, 2.5};
    store_put_events(store, 3);
    OK(tt_store_put_setting(store, 4, values, 2, err));
    OK(tt_store_commit(store, err)); // without begin: nothing
    OK(tt_store_begin(store, err));
    store_put_events(store, 2);
    assert_true(tt_store_in_transaction(store));
    OK(tt_store_close(store, err));
    expect_events(5);
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT sum(value) FROM setting_value") == 65538.5);
    OK(tt_store_close(reader, err));
}

static sqlite3 *
hold_file(void)
{
    sqlite3 *other;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

static void
release_file(sqlite3 *other)
{
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

static void
put_batches(tt_store *store, int batches)
{
    for (int i = 0; i < batches; i++) {
        OK(tt_store_begin(store, err));
        store_put_events(store, 10);
        OK(tt_store_commit(store, err));
    }
}

// The file cannot be written, and nobody who puts rows gets to know it.
static void
nobody_waits_for_the_file(void **state)
{
    TT_UNUSED(state);
    tt_store *store = open_behind();
    sqlite3 *other = hold_file();
    put_batches(store, 20);
    expect_events(0);
    release_file(other);
    OK(tt_store_close(store, err));
    expect_events(200);
}

// It never can: the batch is lost when the store has waited long enough, and close says so.
static void
a_file_that_stays_held_is_told(void **state)
{
    TT_UNUSED(state);
    tt_store *store = open_behind();
    tt_error error = {0};
    sqlite3 *other = hold_file();
    put_batches(store, 2);
    assert_int_equal(tt_store_close(store, &error), TT_BUSY);
    assert_string_equal(error.where, store_path);
    assert_non_null(strstr(error.what, "another program holds the run store"));
    release_file(other);
    expect_events(0);
}

static void
a_full_disk_loses_one_batch(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    tt_error error = {0};
    OK(tt_store_create(store_path, &store, err));
    store_put_events(store, 7);
    store_set_page_limit(store, 40);
    OK(tt_store_write_behind(store, err));
    OK(tt_store_begin(store, err));
    store_put_events(store, 20000);
    OK(tt_store_commit(store, err));
    assert_int_equal(tt_store_catch_up(store, &error), TT_IO);
    assert_non_null(strstr(error.what, "disk is full"));
    assert_non_null(strstr(error.advice, "df -h"));
    assert_false(tt_store_in_transaction(store));
    expect_events(7);
    // told once, and what comes next fits
    put_batches(store, 3);
    OK(tt_store_catch_up(store, err));
    OK(tt_store_catch_up(store, err));
    expect_events(37);
    OK(tt_store_close(store, err));
    expect_events(37);
}

// A row that does not go in takes no other with it.
static void
a_row_that_is_refused_is_told(void **state)
{
    TT_UNUSED(state);
    tt_store *store = open_behind();
    tt_error error = {0};
    OK(tt_store_begin(store, err));
    store_put_events(store, 2);
    const tti_store_cell sample[] = {TTI_INT(1),  TTI_INT(1), TTI_REAL(0), TTI_REAL(0),
                                     TTI_REAL(0), TTI_INT(0), TTI_REAL(0), TTI_INT(0)};
    OK(tti_store_write(store, TTI_STORE_SAMPLE, sample, 8, err));
    OK(tti_store_write(store, TTI_STORE_SAMPLE, sample, 8, err));
    store_put_events(store, 2);
    OK(tt_store_commit(store, err));
    assert_int_equal(tt_store_close(store, &error), TT_EXISTS);
    assert_non_null(strstr(error.what, "writing SAMPLE"));
    expect_events(4);
}

static void
samples_are_thinned_as_at_once(void **state)
{
    TT_UNUSED(state);
    enum { SAMPLES = 300000 };
    tt_store *store = open_behind(), *reader;
    tt_error error = {0};
    tt_store_sample sample = {0};
    for (; sample.iteration < SAMPLES; sample.iteration++) {
        if (sample.iteration % 10000 == 0) {
            OK(tt_store_commit(store, err));
            OK(tt_store_begin(store, err));
        }
        sample.loss = (double)(sample.iteration % 3);
        OK(tt_store_put_sample(store, &sample, err));
    }
    sample.iteration = 299999;
    assert_int_equal(tt_store_put_sample(store, &sample, &error), TT_INVALID);
    assert_non_null(strstr(error.what, "iteration 299999 after 299999"));
    OK(tt_store_close(store, err));
    OK(tt_store_open_read(store_path, &reader, err));
    double rows = store_number(reader, "SELECT count(*) FROM sample");
    assert_true(rows <= TT_STORE_SAMPLE_ROWS_MAX && rows > TT_STORE_SAMPLE_ROWS_MAX / 3);
    assert_true(store_number(reader, "SELECT sum(count) FROM sample") == SAMPLES);
    double mean = store_number(reader, "SELECT sum(loss_mean * count) / sum(count) FROM sample");
    assert_true(mean > 1 - 1e-9 && mean < 1 + 1e-9);
    OK(tt_store_close(reader, err));
}

// More than may wait: some of the batch is written before its commit, and nothing is lost.
static void
a_batch_of_any_size_goes_in(void **state)
{
    TT_UNUSED(state);
    enum { TEXT_BYTES = 1 << 20, ROWS = 150 };
    char *text = tt_mem_alloc(TEXT_BYTES);
    assert_non_null(text);
    memset(text, 'x', TEXT_BYTES - 1);
    text[TEXT_BYTES - 1] = '\0';
    tt_store *store = open_behind(), *reader;
    OK(tt_store_begin(store, err));
    for (int i = 0; i < ROWS; i++)
        OK(tt_store_put_event(store, i, "info", text, err));
    OK(tt_store_commit(store, err));
    OK(tt_store_close(store, err));
    tt_mem_free(text);
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT sum(length(text)) FROM event") ==
                (double)ROWS * (TEXT_BYTES - 1));
    OK(tt_store_close(reader, err));
}

static void
short_memory_loses_one_row(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    tt_error error = {0};
    OK(tt_store_create(store_path, &store, err));
    tt_mem_fail_nth(1);
    assert_int_equal(tt_store_write_behind(store, &error), TT_NOMEM);
    tt_mem_fail_nth(0);
    OK(tt_store_write_behind(store, err));
    OK(tt_store_begin(store, err));
    tt_mem_fail_nth(1); // the first row makes the buffer
    assert_int_equal(tt_store_put_event(store, 0, "info", "a line", &error), TT_NOMEM);
    tt_mem_fail_nth(0);
    store_put_events(store, 4);
    OK(tt_store_close(store, err));
    expect_events(4);
}

// A setting without its values means nothing; and who comes next may begin a batch.
static void
short_memory_loses_a_setting_as_a_whole(void **state)
{
    TT_UNUSED(state);
    const double values[] = {65536, 2.5};
    tt_store *store = open_behind(), *reader;
    for (uint64_t nth = 1; nth <= 2; nth++) { // its own row, its first value
        tt_mem_fail_nth(nth);
        assert_int_equal(tt_store_put_setting(store, 7, values, 2, NULL), TT_NOMEM);
        tt_mem_fail_nth(0);
        assert_false(tt_store_in_transaction(store));
    }
    put_batches(store, 1);
    OK(tt_store_put_setting(store, 8, values, 2, err));
    OK(tt_store_close(store, err));
    expect_events(10);
    OK(tt_store_open_read(store_path, &reader, err));
    assert_true(store_number(reader, "SELECT sum(id) FROM setting") == 8);
    assert_true(store_number(reader, "SELECT count(*) FROM setting_value") == 2);
    OK(tt_store_close(reader, err));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(rows_are_the_same),
        STORE_TEST(close_writes_what_waits),
        STORE_TEST(nobody_waits_for_the_file),
        STORE_TEST(a_file_that_stays_held_is_told),
        STORE_TEST(a_full_disk_loses_one_batch),
        STORE_TEST(a_row_that_is_refused_is_told),
        STORE_TEST(samples_are_thinned_as_at_once),
        STORE_TEST(a_batch_of_any_size_goes_in),
        STORE_TEST(short_memory_loses_one_row),
        STORE_TEST(short_memory_loses_a_setting_as_a_whole),
    };
    return cmocka_run_group_tests_name("store behind", tests, store_make_directory,
                                       store_remove_directory);
}
