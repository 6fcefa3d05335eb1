// The store of tests: see store_fixture.h.
#include "store_fixture.h"
#include "store_private.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = P_tmpdir "/tt-store-XXXXXX";
char store_path[STORE_PATH_BYTES];

int
store_make_directory(void **state)
{
    TT_UNUSED(state);
    int made = mkdtemp(directory) != NULL;
    (void)snprintf(store_path, sizeof store_path, "%s/run.db", directory);
    return made ? 0 : -1;
}

int
store_remove_directory(void **state)
{
    TT_UNUSED(state);
    return rmdir(directory);
}

int
store_remove(void **state)
{
    TT_UNUSED(state);
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < TT_COUNT_OF(suffixes); i++) {
        char name[sizeof store_path + 16];
        (void)snprintf(name, sizeof name, "%s%s", store_path, suffixes[i]);
        (void)unlink(name);
    }
    return 0;
}

void
store_set_page_limit(tt_store *store, int pages)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA max_page_count = %d", pages);
    assert_int_equal(sqlite3_exec(store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

double
store_number(tt_store *store, const char *sql)
{
    tt_store_query *query;
    int has_row;
    OK(tt_store_query_open(store, sql, &query, err));
    OK(tt_store_query_next(query, &has_row, err));
    assert_true(has_row);
    double value = tt_store_query_real(query, 0);
    tt_store_query_close(query);
    return value;
}

void
store_put_events(tt_store *store, int count)
{
    for (int i = 0; i < count; i++)
        OK(tt_store_put_event(store, 0.37 * i, "info", "moved to setting 5 while training", err));
}

static void
put_decision(tt_store *store)
{
    const tt_store_proposal proposal = {.ordinal = 7,
                                        .time_s = 1.7,
                                        .phase = "searching",
                                        .setting = 3,
                                        .current_setting = 0,
                                        .log_ratio = -0.31,
                                        .ei_seconds = 4.7,
                                        .decision = "moved",
                                        .reason = "expected gain above cost",
                                        .realised_gain_s = (double)NAN,
                                        .predicted_s = 0.0019,
                                        .guard_left_s = 2.25,
                                        .proposed = "servers 1",
                                        .realised_ratio = (double)NAN};
    OK(tt_store_put_proposal(store, &proposal, err));
    OK(tt_store_set_realised(store, 7, 4, 3.9, 0.71, err));
}

void
store_put_everything(tt_store *store)
{
    tt_store_run run;
    tt_store_run_init(&run);
    run.id = "20261121-1412-fashion-mlr";
    run.seed = 0xfedcba9876543210u;
    run.status = "running";
    run.loss = 0.39984;
    run.start_setting = 0;
    OK(tt_store_begin(store, err));
    OK(tt_store_put_run(store, &run, err));
    run.status = "converged";
    run.engine = "threads";
    run.started_from = "begins with the best setting of run 7";
    run.tuner = "model paper, estimator paper";
    OK(tt_store_put_run(store, &run, err));
    OK(tt_store_put_metric(store, "accuracy", 0.8481, err));
    const tt_store_knob knob = {.ordinal = 1,
                                .id = "servers",
                                .kind = "int",
                                .min = 1,
                                .max = 7,
                                .start = 2,
                                .effect = "moves model",
                                .scale = "linear"};
    OK(tt_store_put_knob(store, &knob, err));
    const double values[] = {65536, 2.5};
    OK(tt_store_put_setting(store, 3, values, 2, err));
    OK(tt_store_put_setting(store, 3, values, 2, err));
    const tt_store_window window = {.ordinal = 4,
                                    .generation = 2,
                                    .setting = 3,
                                    .phase = TT_STORE_EXPLORE,
                                    .first_iteration = 211,
                                    .last_iteration = 258,
                                    .start_s = 1.77,
                                    .end_s = 1.93,
                                    .kept = 41,
                                    .seconds_per_iteration = 0.00331,
                                    .slope = (double)NAN,
                                    .flags = 5};
    OK(tt_store_put_window(store, &window, err));
    const tt_store_reconfiguration move = {.ordinal = 0,
                                           .generation = 2,
                                           .from_setting = 0,
                                           .to_setting = 3,
                                           .kind = "model",
                                           .method = "on demand",
                                           .duration_s = 0.0112,
                                           .partitions_moved = 4,
                                           .bytes_carried = 31234,
                                           .longest_wait_s = 0.00083};
    OK(tt_store_put_reconfiguration(store, &move, err));
    put_decision(store);
    const tt_store_progress progress = {
        .time_s = 2.03, .iteration = 400, .epoch = 1.1, .loss = 0.71};
    OK(tt_store_put_progress(store, &progress, err));
    const tt_store_eta eta = {.time_s = 2.05,
                              .iteration = 403,
                              .seconds_p10 = 7.5,
                              .seconds_median = 9.25,
                              .seconds_p90 = (double)INFINITY,
                              .flags = 8};
    OK(tt_store_put_eta(store, &eta, err));
    store_put_events(store, 2);
    OK(tt_store_commit(store, err));
}

void
store_check_everything(tt_store *reader)
{
    assert_true(store_number(reader, "SELECT count(*) FROM run") == 1);
    assert_true(
        store_number(reader,
                     "SELECT status = 'converged' AND engine = 'threads' AND started_from LIKE "
                     "'begins %' AND tuner = 'model paper, estimator paper' FROM run") == 1);
    assert_true(store_number(reader, "SELECT loss FROM run") == 0.39984);
    assert_true(store_number(reader, "SELECT updated_at > 1700000000 FROM run") == 1);
    assert_true(store_number(reader, "SELECT start_setting FROM run") == 0);
    assert_true(isnan(store_number(reader, "SELECT final_setting FROM run")));
    assert_true(isnan(store_number(reader, "SELECT target_loss FROM run")));
    assert_true(store_number(reader, "SELECT value FROM run_metric WHERE name = 'accuracy'") ==
                0.8481);
    assert_true(
        store_number(reader, "SELECT max FROM knob WHERE id = 'servers' AND reason IS NULL") == 7);
    assert_true(
        store_number(reader, "SELECT value FROM setting_value WHERE setting = 3 AND knob = 1") ==
        2.5);
    assert_true(store_number(reader, "SELECT count(*) FROM setting_value") == 2);
    assert_true(store_number(reader,
                             "SELECT seconds_per_iteration FROM window WHERE phase = 'explore'"
                             " AND slope IS NULL AND last_iteration = 258 AND flags = 5") ==
                0.00331);
    assert_true(store_number(reader,
                             "SELECT longest_wait_s FROM reconfiguration WHERE to_setting = 3 AND"
                             " bytes_carried = 31234 AND method = 'on demand'") == 0.00083);
    assert_true(
        store_number(
            reader,
            "SELECT setting = 4 AND realised_ratio = 0.71 AND predicted_seconds = 0.0019 AND "
            "guard_left_s = 2.25 AND proposed = 'servers 1' FROM proposal") == 1);
    assert_true(
        store_number(reader, "SELECT realised_gain_s FROM proposal WHERE decision = 'moved'") ==
        3.9);
    assert_true(store_number(reader, "SELECT loss FROM progress WHERE iteration = 400") == 0.71);
    assert_true(store_number(reader,
                             "SELECT seconds_median FROM eta WHERE iteration = 403 AND flags = 8 "
                             "AND time_s = 2.05 AND seconds_p10 = 7.5 AND seconds_p90 = 9e999") ==
                9.25);
    assert_true(store_number(reader, "SELECT sum(time_s) FROM event WHERE level = 'info'") == 0.37);
}
