// Goal: the report says what the store says, in a run that converged, is running, failed, or wrote
// nothing; the JSON holds its documented keys.
// Method: stores with invented rows whose verdicts can be worked out by hand; the text is searched
// for its sentences, the JSON is parsed.
#include "tt/core.h"
#include "tt/core_store.h"
#include "tt/report.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = P_tmpdir "/tt-report-XXXXXX";
static char path[sizeof directory + 32], lock_path[sizeof directory + 32];
static char text[65536];

#define OK(call)                                                                                   \
    do {                                                                                           \
        tt_error err_ = {0}, *err = &err_;                                                         \
        tt_status status_ = (call);                                                                \
        if (status_ != TT_OK)                                                                      \
            fail_msg("%s: %s; %s", #call, err_.what, err_.advice);                                 \
    } while (0)

static int
make_directory(void **state)
{
    TT_UNUSED(state);
    int made = mkdtemp(directory) != NULL;
    (void)snprintf(path, sizeof path, "%s/run.db", directory);
    (void)snprintf(lock_path, sizeof lock_path, "%s/lock", directory);
    return made ? 0 : -1;
}

static int
remove_directory(void **state)
{
    TT_UNUSED(state);
    return rmdir(directory);
}

static int
remove_store(void **state)
{
    TT_UNUSED(state);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < TT_COUNT_OF(suffixes); i++) {
        char name[sizeof path + 16];
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
    return 0;
}

// ---- invented runs
// -------------------------------------------------------------------------------

// Iterations 0..999 under setting 0 at 4 ms (2 windows, cv 0.2), a trial of setting 1 at 5 ms that
// is abandoned after 100, then setting 2 at 2.5 ms from 1100 to 8000: 4 + 0.5 + 17.25 s and 0.05 s
// between.
static const double rates[] = {0.004, 0.005, 0.0025};

static void
fill_run(tt_store_run *run)
{
    tt_store_run_init(run);
    run->id = "20261121-1412-fashion-mlr";
    run->name = "fashion-mlr";
    run->status = "running";
    run->started_at = 1795270320;
    run->seed = 42;
    run->engine = "threads";
    run->tuner = "model paper, estimator paper";
    run->driver = "messages";
    run->consistency = "asp";
    run->nodes = 8;
    run->model = "softmax_regression";
    run->data_rows = 60000;
    run->data_features = 784;
    run->target_loss = 0.4;
    run->start_setting = 0;
}

static void
put_knobs(tt_store *store)
{
    static const tt_store_knob knobs[] = {
        {.ordinal = 0, .id = "servers", .kind = "int", .unit = "", .min = 1, .max = 7, .start = 2},
        {.ordinal = 1,
         .id = "chunk_bytes",
         .kind = "int",
         .unit = "bytes",
         .min = 16384,
         .max = 1 << 20,
         .start = 65536,
         .scale = "log2"},
        {.ordinal = 2,
         .id = "bf16_transfer",
         .kind = "bool",
         .max = 1,
         .fixed = 1,
         .reason = "by you (quickstart.yaml:14)"},
        {.ordinal = 3, .id = "kernel", .kind = "enum", .max = 2, .values = "portable,avx2,avx512"},
        {.ordinal = 4, .id = "threads", .kind = "int", .unit = "threads", .min = 1, .max = 4},
    };
    for (size_t i = 0; i < TT_COUNT_OF(knobs); i++)
        OK(tt_store_put_knob(store, &knobs[i], err));
    const double settings[][5] = {
        {2, 65536, 0, 1, 1}, {7, 65536, 0, 0, 2}, {1, 262144, 0, 1, 3}, {4, 65536, 0, 2, 1}};
    for (int i = 0; i < 4; i++)
        OK(tt_store_put_setting(store, i, settings[i], 5, err));
}

static void
put_window(tt_store *store,
           int ordinal,
           int setting,
           tt_store_phase phase,
           int64_t first,
           int64_t last,
           double start,
           double end)
{
    const tt_store_window window = {.ordinal = ordinal,
                                    .generation = setting,
                                    .setting = setting,
                                    .phase = phase,
                                    .first_iteration = first,
                                    .last_iteration = last,
                                    .start_s = start,
                                    .end_s = end,
                                    .kept = phase == TT_STORE_TRANSITION ? 0 : last - first + 1,
                                    .seconds_per_iteration = rates[setting],
                                    .time_cv = 0.2,
                                    .abandoned = setting == 1};
    OK(tt_store_put_window(store, &window, err));
}

static void
put_losses(tt_store *store)
{
    for (int64_t i = 0; i < 8000; i++) {
        const tt_store_sample sample = {.iteration = i,
                                        .time_s = 0.002725 * (double)(i + 1),
                                        .loss = 0.4 + 1.9 * exp(-(double)i / 2000),
                                        .setting = i < 1000   ? 0
                                                   : i < 1100 ? 1
                                                              : 2};
        OK(tt_store_put_sample(store, &sample, err));
    }
    const tt_store_progress progress = {
        .time_s = 21.8, .iteration = 7999, .epoch = 8.5, .loss = 0.3998, .objective = (double)NAN};
    OK(tt_store_put_progress(store, &progress, err));
    OK(tt_store_put_event(store, 4.5, "info", "moved to setting 2 while training", err));
    OK(tt_store_put_event(store, 4.2, "warning",
                          "setting 1 abandoned after 100 iterations:\n1.25x slower than setting 0",
                          err));
}

static void
put_training(tt_store *store)
{
    put_window(store, 0, 0, TT_STORE_START, 0, 499, 0, 2);
    put_window(store, 1, 0, TT_STORE_START, 500, 999, 2, 4);
    put_window(store, 2, 1, TT_STORE_EXPLORE, 1000, 1099, 4, 4.5);
    put_window(store, 3, 2, TT_STORE_TRANSITION, 1100, 1109, 4.5, 4.55);
    put_window(store, 4, 2, TT_STORE_SETTLED, 1110, 7999, 4.55, 21.8);
    const tt_store_reconfiguration moves[] = {
        {.ordinal = 0,
         .generation = 1,
         .from_setting = 0,
         .to_setting = 1,
         .kind = "model",
         .method = "on demand",
         .start_s = 4,
         .duration_s = 0.011,
         .lost_s = 0.02,
         .partitions_moved = 4,
         .bytes_carried = 31000,
         .bytes_drained = 1000,
         .longest_wait_s = 0.0008},
        {.ordinal = 1,
         .generation = 2,
         .from_setting = 1,
         .to_setting = 2,
         .kind = "model",
         .method = "on demand",
         .start_s = 4.5,
         .duration_s = 0.021,
         .lost_s = 0.03,
         .partitions_moved = 6,
         .bytes_carried = 41000,
         .bytes_drained = 0,
         .longest_wait_s = 0.0031},
    };
    for (size_t i = 0; i < TT_COUNT_OF(moves); i++)
        OK(tt_store_put_reconfiguration(store, &moves[i], err));
    const tt_store_proposal proposals[] = {
        {.ordinal = 0,
         .time_s = 4,
         .phase = "explore",
         .decision = "try",
         .setting = 1,
         .current_setting = 0,
         .ei_seconds = 3.2,
         .cost_seconds = 0.9,
         .reason = "trying servers 7: expected to save 3.2 s, costs 0.9 s to find out",
         .realised_ratio = 1.25,
         .realised_gain_s = -0.1},
        {.ordinal = 1,
         .time_s = 4.5,
         .phase = "explore",
         .decision = "move",
         .setting = 2,
         .current_setting = 1,
         .ei_seconds = 5.1,
         .cost_seconds = 0.05,
         .realised_gain_s = (double)NAN},
    };
    for (size_t i = 0; i < TT_COUNT_OF(proposals); i++)
        OK(tt_store_put_proposal(store, &proposals[i], err));
    put_losses(store);
}

static tt_store *
begin_run(tt_store_run *run)
{
    tt_store *store;
    OK(tt_store_create(path, &store, err));
    OK(tt_store_begin(store, err));
    fill_run(run);
    OK(tt_store_put_run(store, run, err));
    put_knobs(store);
    return store;
}

static void
end_run(tt_store *store, tt_store_run *run, const char *status)
{
    run->status = status;
    run->loss = 0.3998;
    run->iterations = 8000;
    run->epochs = 8.5;
    run->train_seconds = 21.8;
    run->examples_per_second = 71300;
    run->final_setting = 2;
    run->explore_seconds = 0.5;
    OK(tt_store_put_run(store, run, err));
    OK(tt_store_put_metric(store, "accuracy", 0.848, err));
}

static const char *
report_with(const tt_report_options *options, const char *run)
{
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    OK(tt_report_text(run, out, options, err));
    assert_int_equal(fclose(out), 0);
    return text;
}

static const char *
report(void)
{
    const tt_report_options options = {.width = 500};
    return report_with(&options, directory);
}

static json_t *
report_json(void)
{
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    OK(tt_report_json(path, out, err));
    assert_int_equal(fclose(out), 0);
    json_error_t fault;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
    if (object == NULL)
        fail_msg("line %d: %s", fault.line, fault.text);
    return object;
}

#define SAYS(report, words)                                                                        \
    do {                                                                                           \
        if (strstr(report, words) == NULL)                                                         \
            fail_msg("'%s' is not in:\n%s", words, report);                                        \
    } while (0)
#define SAYS_NOT(report, words) assert_null(strstr(report, words))

// ---- tests
// ---------------------------------------------------------------------------------------

static void
measured_gain_comes_first(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    run.untuned_seconds = 30.52;
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r, "run 20261121-1412-fashion-mlr   fashion-mlr\n");
    SAYS(r, "softmax_regression, 60,000 rows, 784 features, 8 nodes on engine threads, driver "
            "messages");
    SAYS(r,
         "converged: loss 0.3998 (target 0.4) after 21.8 s, 8.5 epochs, 8,000 iterations, 71,300 "
         "examples/s. Test accuracy 0.848\n");
    SAYS(r,
         "Was tuning worth it\n  Yes: 8.7 s saved, 1.40x. Training took 21.8 s, without tuning it "
         "takes 30.5 s (measured).\n");
    SAYS(r, "Its price, included above: 0.10 s of the 0.50 s spent trying settings, for those were "
            "slower; 50 ms moving.");
    SAYS(r,
         "It ended in setting 2. Changed from the start: servers 2 -> 1, chunk_bytes 64 KiB -> 256 "
         "KiB, threads 1 -> 3.\n");
    SAYS(r, "  start                       4.0 s   18 %  ####\n");
    SAYS(r, "  exploring                  0.50 s    2 %\n");
    SAYS(r, "  settled                    17.2 s   79 %  ################\n");
    SAYS(r, "  between two settings        50 ms   <1 %\n");
    SAYS_NOT(r, "not measured  ");
    SAYS(r, "reconfiguring lost 50 ms of this, in 2 moves");
    SAYS(r, "Settings tried: 3\n");
    SAYS(r, "        0        2         4 ms   1.00x       4.0 s  the start\n");
    SAYS(r, "        1        1         5 ms   0.80x      0.50 s  abandoned; servers 2 -> 7, "
            "kernel avx2 "
            "-> portable, threads 1 -> 2\n");
    SAYS(r, "        2        1       2.5 ms   1.60x      17.2 s  the end; servers 2 -> 1");
    SAYS(r, "Decisions: 2\n");
    SAYS(r, "     4.0 s  try             1  trying servers 7: expected to save 3.2 s, costs 0.9 s "
            "to find "
            "out (measured: 0.10 s lost)\n");
    SAYS(r, "     4.5 s  move            2  expected to save about 5.1 s, cost about 50 ms\n");
    SAYS(r, "  model          on demand      2     16 ms     21 ms     50 ms    3.1"
            " ms  10 partitions, 71.3 KiB\n");
    SAYS(r, "Loss over time: 2.2");
    SAYS(r, "^ moved to another setting");
    SAYS(r, "warning  setting 1 abandoned after 100 iterations: 1.25x slower than setting 0\n");
    SAYS_NOT(r, "moved to setting 2 while training");
    char next[300];
    (void)snprintf(next, sizeof next,
                   "trimtab run %s/job.yaml --set knobs.servers.start=1 --set "
                   "knobs.chunk_bytes.start=256KiB --set knobs.threads.start=3\n",
                   directory);
    SAYS(r, next);
    SAYS_NOT(r, "\033");
    // the file is as good as its directory
    const tt_report_options options = {.width = 500};
    char again[sizeof text];
    memcpy(again, text, sizeof text);
    assert_string_equal(report_with(&options, path), again);
}

static void
without_a_measurement_the_start_rate_speaks(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    const char *r = report();
    // 8,000 x 4 ms = 32 s; relative standard error 0.2 / sqrt(1000), twice that is 1.26 %
    SAYS(r, "Probably yes: about 10.2 s saved, about 1.47x. Training took 21.8 s (measured); at "
            "the start "
            "setting's own measured rate of 4 ms an iteration the same 8,000 iterations take about "
            "32.0 "
            "s (31.6 s to 32.4 s). This was not measured");
    SAYS(r, "--set tuner.enabled=off\n");
}

static void
a_loss_is_called_one(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    run.untuned_seconds = 20.1;
    end_run(store, &run, "stopped");
    run.stop_reason = "600 s are over (stop.max_time)";
    OK(tt_store_put_run(store, &run, err));
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r, "stopped: 600 s are over (stop.max_time); loss 0.3998");
    SAYS(r, "  No: 1.7 s lost, 0.92x.");
    assert_int_equal(unlink(path), 0);
    store = begin_run(&run);
    put_training(store);
    run.untuned_seconds = 21.9;
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    SAYS(report(), "It made no difference: 0.10 s saved, 1.00x.");
}

static void
a_running_run_is_reported_so_far(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    OK(tt_store_commit(store, err));
    // while the writer still has it open, and the run's process holds its directory
    int held;
    OK(tt_lock_take(lock_path, &held, err));
    tt_report_options options = {.width = 500};
    const char *r = report_with(&options, directory);
    SAYS(r, "running: loss 0.3998 (target 0.4) after 21.8 s, 8,000 iterations\n");
    SAYS(r, "Probably yes, so far: about 10.2 s saved");
    SAYS(r, "It is in setting 2. Changed from the start: servers 2 -> 1");
    SAYS(r, "in force; servers 2 -> 1");
    SAYS(r, "look again:");
    SAYS_NOT(r, "may have been killed");
    options.now_at = tt_clock_wall_seconds() + 312;
    SAYS(report_with(&options, directory), "wrote nothing for 5:1");
    SAYS(text, "it may have been killed");
    json_t *object = report_json();
    assert_true(json_is_true(json_object_get(json_object_get(object, "verdict"), "in_progress")));
    json_decref(object);
    (void)close(held); // killed
    options.now_at = 0;
    r = report_with(&options, directory);
    SAYS(r, "killed: its process is gone; `trimtab run --resume ");
    SAYS_NOT(r, "running:");
    (void)unlink(lock_path);
    OK(tt_store_close(store, err));
}

static void
a_failed_run_says_why(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_window(store, 0, 0, TT_STORE_START, 0, 211, 0, 0.85);
    for (int i = 0; i < 9; i++)
        OK(tt_store_put_event(store, 0.1 * i, "warning", "the loss rises", err));
    OK(tt_store_put_event(store, 0.85, "error", "loss became NaN at iteration 212 under setting 0",
                          err));
    const tt_store_sample bad = {.iteration = 211, .time_s = 0.85, .loss = (double)NAN};
    OK(tt_store_put_sample(store, &bad, err));
    run.status = "failed";
    run.stop_reason = "loss became NaN at iteration 212";
    OK(tt_store_put_run(store, &run, err));
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r,
         "failed: loss became NaN at iteration 212; loss not measured (target 0.4) after 0.85 s");
    SAYS(r, "No verdict: The run failed before it was done, so there is nothing to compare.");
    SAYS(r,
         "It ended in the start setting (setting 0): servers 2, chunk_bytes 64 KiB, kernel avx2, "
         "threads 1.");
    SAYS(r, "error    loss became NaN at iteration 212 under setting 0\n");
    SAYS(r, "and 4 before these");
    SAYS(r, "run it again:");
    SAYS_NOT(r, "Loss over time");
}

static void
an_empty_run_is_no_riddle(void **state)
{
    TT_UNUSED(state);
    tt_store *store;
    OK(tt_store_create(path, &store, err));
    OK(tt_store_close(store, err));
    SAYS(report(), "this run wrote nothing down");
    json_t *object = report_json();
    assert_true(json_is_null(json_object_get(object, "run")));
    assert_int_equal(json_array_size(json_object_get(object, "settings")), 0);
    json_decref(object);
    assert_int_equal(unlink(path), 0);
    // only the first row
    tt_store_run run;
    tt_store_run_init(&run);
    run.id = "x";
    OK(tt_store_create(path, &store, err));
    OK(tt_store_put_run(store, &run, err));
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r, "status not known: loss not measured after ?");
    SAYS(r, "No verdict: No window was measured.");
}

static void
untuned_runs_are_not_judged(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_window(store, 0, 0, TT_STORE_FIXED, 0, 7999, 0, 32);
    end_run(store, &run, "converged");
    run.final_setting = 0;
    run.train_seconds = 32;
    OK(tt_store_put_run(store, &run, err));
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r, "No verdict: Tuning was off.");
    SAYS(r, "  tuning off                 32.0 s  100 %  ####################\n");
}

static void
json_has_its_keys(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    run.untuned_seconds = 30.52;
    run.seed = 0xfedcba9876543210u;
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    json_t *o = report_json();
    const char *id, *basis, *worth, *kernel, *decision;
    double saved, speedup, start_s, lost, ratio, accuracy;
    json_int_t servers, chunk, iterations, seed;
    json_error_t fault;
    int bf16;
    if (json_unpack_ex(o, &fault, 0, "{s:{s:s,s:I,s:I,s:{s:F}},s:{s:s,s:s,s:F,s:F},s:{s:F,s:F}}",
                       "run", "id", &id, "iterations", &iterations, "seed", &seed, "test",
                       "accuracy", &accuracy, "verdict", "basis", &basis, "worth", &worth,
                       "saved_seconds", &saved, "speedup", &speedup, "time", "start_seconds",
                       &start_s, "lost_reconfiguring_seconds", &lost) != 0)
        fail_msg("%s", fault.text);
    assert_string_equal(id, "20261121-1412-fashion-mlr");
    assert_string_equal(basis, "measured");
    assert_string_equal(worth, "yes");
    assert_int_equal(iterations, 8000);
    assert_true((uint64_t)seed == 0xfedcba9876543210u);
    assert_true(accuracy == 0.848);
    // printed with 15 digits: relative error below 1e-14, sums of two above it
    assert_true(fabs(saved - 8.72) < 1e-12 && fabs(speedup - 1.4) < 1e-12);
    assert_true(fabs(start_s - 4) < 1e-12 && fabs(lost - 0.05) < 1e-12);
    if (json_unpack_ex(o, &fault, 0, "{s:{s:I,s:I,s:b,s:s},s:[{},{s:F}],s:[{},{s:s}]}", "final",
                       "servers", &servers, "chunk_bytes", &chunk, "bf16_transfer", &bf16, "kernel",
                       &kernel, "settings", "speed_ratio", &ratio, "proposals", "decision",
                       &decision) != 0)
        fail_msg("%s", fault.text);
    assert_int_equal(servers, 1);
    assert_int_equal(chunk, 262144);
    assert_int_equal(bf16, 0);
    assert_string_equal(kernel, "avx2");
    assert_true(fabs(ratio - 0.8) < 1e-12);
    assert_string_equal(decision, "move");
    assert_int_equal(json_array_size(json_object_get(o, "settings")), 4);
    assert_int_equal(json_array_size(json_object_get(o, "windows")), 5);
    assert_int_equal(json_array_size(json_object_get(o, "reconfigurations")), 2);
    assert_int_equal(json_array_size(json_object_get(o, "events")), 2);
    json_t *loss = json_object_get(o, "loss");
    assert_int_equal(json_array_size(json_object_get(loss, "minibatch")), 120);
    assert_int_equal(json_array_size(json_object_get(loss, "evaluations")), 1);
    // a setting that was never run has no rate
    json_t *unused = json_array_get(json_object_get(o, "settings"), 3);
    assert_true(json_is_null(json_object_get(unused, "seconds_per_iteration")));
    json_decref(o);
}

static void
lines_fit_and_colours_obey(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    run.untuned_seconds = 30.52;
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    const tt_report_options plain = {.width = 100};
    const char *r = report_with(&plain, directory);
    for (const char *line = r; *line != '\0'; line += strcspn(line, "\n") + 1)
        // commands may be longer: they are there to be copied
        if (strcspn(line, "\n") > 100 && strncmp(line, "  begin there", 13) != 0)
            fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
    for (const char *c = r; *c != '\0'; c++)
        assert_true((unsigned char)*c < 0x80);
    const tt_report_options rich = {.width = 100, .color = 1, .utf8 = 1};
    r = report_with(&rich, directory);
    SAYS(r, "\033[32mYes\033[0m");
    SAYS(r, "█");
    assert_int_equal(setenv("LC_ALL", "de_DE.UTF-8", 1), 0);
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    tt_report_options detected;
    tt_report_options_detect(stdout, &detected);
    assert_int_equal(detected.color, 0);
    assert_int_equal(detected.utf8, 1);
    assert_int_equal(setenv("LC_ALL", "C", 1), 0);
    tt_report_options_detect(stdout, &detected);
    assert_int_equal(detected.utf8, 0);
}

static void
long_lists_are_cut_unless_asked(void **state)
{
    TT_UNUSED(state);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    const double values[] = {3, 65536, 0, 1, 1};
    for (int i = 4; i < 40; i++) {
        OK(tt_store_put_setting(store, i, values, 5, err));
        const tt_store_window window = {.ordinal = i + 10,
                                        .setting = i,
                                        .phase = TT_STORE_EXPLORE,
                                        .kept = 10,
                                        .seconds_per_iteration = 0.0041};
        OK(tt_store_put_window(store, &window, err));
        const tt_store_proposal proposal = {.ordinal = i,
                                            .decision = "try",
                                            .setting = i,
                                            .reason = "a reason of some length that is folded"};
        OK(tt_store_put_proposal(store, &proposal, err));
    }
    end_run(store, &run, "converged");
    OK(tt_store_close(store, err));
    const char *r = report();
    SAYS(r, "Settings tried: 39\n");
    SAYS(r, "and 25 more (all: trimtab report --all)");
    SAYS(r, "Decisions: the last 8 of 38\n");
    const tt_report_options all = {.width = 120, .all = 1};
    r = report_with(&all, directory);
    SAYS_NOT(r, "--all");
    SAYS(r, "Decisions: 38\n");
}

static void
faults_are_passed_on(void **state)
{
    TT_UNUSED(state);
    const tt_report_options options = {0};
    tt_error fault = {0};
    assert_int_equal(tt_report_text(path, stdout, &options, &fault), TT_NOTFOUND);
    assert_string_equal(fault.where, path);
    assert_int_equal(tt_report_json(directory, stdout, &fault), TT_NOTFOUND);
    tt_store_run run;
    tt_store *store = begin_run(&run);
    put_training(store);
    OK(tt_store_close(store, err));
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        assert_int_equal(tt_report_text(path, full, &options, &fault), TT_IO);
        (void)fclose(full);
        full = fopen("/dev/full", "w");
        assert_non_null(full);
        assert_int_equal(tt_report_json(path, full, &fault), TT_IO);
        (void)fclose(full);
    }
    FILE *nothing = fopen("/dev/null", "w");
    assert_non_null(nothing);
    int failures = 0;
    for (uint64_t nth = 1; nth < 500; nth++) {
        tt_mem_fail_nth(nth);
        tt_status status = tt_report_text(path, nothing, &options, &fault);
        int pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        if (pending)
            break;
        assert_int_equal(status, TT_NOMEM);
        failures++;
    }
    assert_true(failures > 10);
    (void)fclose(nothing);
}

#define REPORT_TEST(test) cmocka_unit_test_setup_teardown(test, remove_store, remove_store)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        REPORT_TEST(measured_gain_comes_first),
        REPORT_TEST(without_a_measurement_the_start_rate_speaks),
        REPORT_TEST(a_loss_is_called_one),
        REPORT_TEST(a_running_run_is_reported_so_far),
        REPORT_TEST(a_failed_run_says_why),
        REPORT_TEST(an_empty_run_is_no_riddle),
        REPORT_TEST(untuned_runs_are_not_judged),
        REPORT_TEST(json_has_its_keys),
        REPORT_TEST(lines_fit_and_colours_obey),
        REPORT_TEST(long_lists_are_cut_unless_asked),
        REPORT_TEST(faults_are_passed_on),
    };
    return cmocka_run_group_tests_name("report", tests, make_directory, remove_directory);
}
