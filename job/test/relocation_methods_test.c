// Goal: by whichever method a job is reconfigured, it trains the same model: under BSP, and with
// one worker under ASP and SSP, to the last bit; with many workers every example once and the same
// loss. Method: whole jobs on generated data with scripted changes of placement, roles and
// settings, compared with the same job left alone; one worker's pushes come in one order, so that
// an update lost or applied twice shows in the model's bytes.
#include "job_test_util.h"
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static const char *const methods[] = {"reconfig.method=on_demand", "reconfig.method=drain",
                                      "reconfig.method=checkpoint"};
static const char *const method_names[] = {"on demand", "drain", "checkpoint"};

static const char job_text[] = "job: methods\n"
                               "seed: 7\n"
                               "data: {format: clicklog, rows: 6000, columns: 3000, fields: 11}\n"
                               "model: {kind: logistic_regression, l2: 1e-4, bias: on}\n"
                               "optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 96}\n"
                               "stop: {max_epochs: 12}\n"
                               "cluster: {driver: messages, nodes: 6}\n"
                               "tuner: {enabled: off}\n";

// Every kind: roles (data and model), setting alone, placement alone, mixtures.
static const char roles_script[] =
    "tuner.script=[{iteration: 30, servers: 3}, {iteration: 75, servers: 1, chunk_bytes: 4KiB}, "
    "{iteration: 120, move: 9}, {iteration: 150, servers: 5, in_flight: 1}, "
    "{iteration: 210, servers: 2, prefetch: 4, spin: 0}, {iteration: 255, in_flight: 3}, "
    "{iteration: 285, servers: 4}, {iteration: 330, servers: 1, in_flight: 16}, "
    "{iteration: 390, servers: 3}]";
// What leaves the one worker its work.
static const char moves_script[] =
    "tuner.script=[{iteration: 30, move: 3}, {iteration: 75, move: 11, chunk_bytes: 4KiB}, "
    "{iteration: 120, move: 9}, {iteration: 150, in_flight: 1, move: 32}, "
    "{iteration: 210, prefetch: 4, spin: 0, move: 1}, {iteration: 255, in_flight: 3}, "
    "{iteration: 285, move: 17}, {iteration: 330, move: 8, in_flight: 16}, "
    "{iteration: 390, move: 20}]";
enum { STEPS = 9, ROWS = 6000, EPOCHS = 12 };

// The thread sanitizer looks at the nodes, not at every optimiser.
#ifdef TT_TSAN
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

static uint64_t jobs_moved, steps_done; // over all tests

static void
train(const char *const *overrides, char **model, size_t *bytes, tt_job_result *result)
{
    tt_error err = {0};
    if (run_job(job_text, overrides, result, model, bytes, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    assert_non_null(*model);
    assert_true(result->loss > 0.1 && result->loss < 0.65);
}

// A step waits for the end of the one before it, so a busy machine may be left with some at the
// end of the job; the last one's cost may still be waiting for the time per iteration after it.
static void
expect_reconfigured_by(const tt_job_result *result, const char *method)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < result->reconfiguration_kinds; i++) {
        const tt_job_reconfigurations *row = &result->reconfigurations[i];
        assert_string_equal(row->method, method);
        assert_true(isfinite(row->lost_seconds) && row->duration_seconds > 0);
        count += row->count;
    }
    uint64_t steps = result->generations - 1;
    assert_true(steps <= STEPS);
    assert_true(count == steps || count + 1 == steps);
    assert_true(result->partitions_moved > 0 || steps == 0);
    jobs_moved++;
    steps_done += steps;
}

// The same job, left alone and reconfigured by each method: the same bytes.
static void
expect_one_model(const char *const *shape, const char *script)
{
    static tt_job_result result;
    char *still, *moved;
    size_t still_bytes, moved_bytes;
    train(shape, &still, &still_bytes, &result);
    for (size_t m = 0; m < TT_COUNT_OF(methods); m++) {
        const char *overrides[8] = {script, methods[m]};
        for (size_t i = 0; shape[i] != NULL; i++)
            overrides[i + 2] = shape[i];
        train(overrides, &moved, &moved_bytes, &result);
        expect_reconfigured_by(&result, method_names[m]);
        assert_int_equal(still_bytes, moved_bytes);
        assert_memory_equal(still, moved, still_bytes);
        tt_mem_free(moved);
    }
    tt_mem_free(still);
}

static void
bsp_trains_one_model_by_every_method(void **state)
{
    TT_UNUSED(state);
    const char *const keyed[] = {"consistency=bsp", "optimizer.averaging=on", NULL};
    const char *const whole[] = {"consistency=bsp", "model.pull=whole", "optimizer.kind=adam",
                                 NULL};
    const char *const sparse[] = {"consistency=bsp", "model.table=sparse", "checkpoint.keep=0",
                                  NULL};
    expect_one_model(keyed, roles_script);
    if (SLOW)
        return;
    expect_one_model(whole, roles_script);
    expect_one_model(sparse, roles_script);
}

static void
one_worker_trains_one_model_by_every_method(void **state)
{
    TT_UNUSED(state);
    static const char *const consistencies[] = {"consistency=asp", "consistency=ssp"};
    for (size_t c = 0; c < TT_COUNT_OF(consistencies); c++) {
        const char *const keyed[] = {consistencies[c], "setting.servers=5",
                                     "optimizer.averaging=on", NULL};
        const char *const whole[] = {consistencies[c], "setting.servers=5", "model.pull=whole",
                                     "optimizer.kind=momentum", NULL};
        const char *const sparse[] = {consistencies[c], "setting.servers=5", "model.table=sparse",
                                      "optimizer.kind=ftrl", NULL};
        expect_one_model(keyed, moves_script);
        if (SLOW)
            continue;
        expect_one_model(whole, moves_script);
        expect_one_model(sparse, moves_script);
    }
}

static void
many_workers_train_every_example_by_every_method(void **state)
{
    TT_UNUSED(state);
    static const char *const shapes[][2] = {{"consistency=asp", "model.table=dense"},
                                            {"consistency=ssp", "model.table=sparse"},
                                            {"consistency=ssp", "model.pull=whole"},
                                            {"consistency=asp", "model.table=sparse"}};
    for (size_t s = 0; s < (SLOW ? 2 : TT_COUNT_OF(shapes)); s++) {
        static tt_job_result result;
        char *model;
        size_t bytes;
        const char *const alone[] = {shapes[s][0], shapes[s][1], NULL};
        train(alone, &model, &bytes, &result);
        tt_mem_free(model);
        double still = result.loss;
        for (size_t m = 0; m < TT_COUNT_OF(methods); m++) {
            const char *const moving[] = {shapes[s][0], shapes[s][1], roles_script, methods[m],
                                          NULL};
            train(moving, &model, &bytes, &result);
            tt_mem_free(model);
            expect_reconfigured_by(&result, method_names[m]);
            // The last batches may overshoot by one a worker, never fall short.
            assert_true(result.examples >= EPOCHS * ROWS &&
                        result.examples < EPOCHS * ROWS + 96 * 6);
            assert_true(fabs(result.loss - still) < 0.03 * still);
        }
    }
}

static void
a_step_may_choose_its_method(void **state)
{
    TT_UNUSED(state);
    static tt_job_result result;
    char *model;
    size_t bytes;
    const char *const mixed[] = {
        "tuner.script=[{iteration: 60, servers: 3}, {iteration: 180, servers: 2, method: drain}, "
        "{iteration: 300, move: 5, method: on_demand}, {iteration: 420, move: 5}]",
        "reconfig.method=drain", NULL};
    train(mixed, &model, &bytes, &result);
    tt_mem_free(model);
    uint64_t drained = 0, carried = 0;
    for (uint32_t i = 0; i < result.reconfiguration_kinds; i++) {
        const tt_job_reconfigurations *row = &result.reconfigurations[i];
        *(strcmp(row->method, "drain") == 0 ? &drained : &carried) += row->count;
    }
    assert_true(carried + drained + 2 >= result.generations);
    assert_true(drained >= 1 || result.generations < 3);
    assert_true(carried == 1 || result.generations < 5);
}

// Files may not grow beyond a megabyte, which the checkpoint of 200,000 rows with their state does,
// but also the memory that processes share.
static void
a_checkpoint_that_cannot_be_written_changes_nothing(void **state)
{
    TT_UNUSED(state);
    static tt_job_result result;
    char *model;
    size_t bytes;
    struct rlimit before, small;
    if (getenv("TT_ENGINE") != NULL)
        skip();
    const char *const wide[] = {
        "tuner.script=[{iteration: 30, servers: 3}, {iteration: 90, servers: 2}]",
        "reconfig.method=checkpoint", "checkpoint.keep=0", "data.columns=200000", NULL};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1 << 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    train(wide, &model, &bytes, &result);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    tt_mem_free(model);
    assert_int_equal(result.generations, 1);
    assert_true(result.examples >= EPOCHS * ROWS && result.examples < EPOCHS * ROWS + 96 * 6);
    train(wide, &model, &bytes, &result);
    tt_mem_free(model);
    assert_true(result.generations > 1);
}

// Whatever the tuner does, and whenever, a restart is one of its switches. Where little is computed
// in the time, because others use the machine, it needs more of it.
static void
the_tuner_may_restart(void **state)
{
    TT_UNUSED(state);
    static const char *const drivers[] = {"cluster.driver=messages", "cluster.driver=in_place"};
    uint64_t restarts = 0;
    for (uint32_t seconds = SLOW ? 16 : 4; restarts == 0 && seconds <= 64; seconds *= 2)
        for (size_t d = 0; d < TT_COUNT_OF(drivers); d++) {
            static tt_job_result result;
            char *model, time[40];
            size_t bytes;
            (void)snprintf(time, sizeof time, "stop.max_time=%us", seconds);
            const char *const tuned[] = {"tuner.enabled=on",
                                         "reconfig.method=checkpoint",
                                         "stop.max_epochs=1e6",
                                         time,
                                         drivers[d],
                                         NULL};
            train(tuned, &model, &bytes, &result);
            tt_mem_free(model);
            restarts += result.generations - 1;
            for (uint32_t i = 0; i < result.reconfiguration_kinds; i++)
                assert_string_equal(result.reconfigurations[i].method, "checkpoint");
        }
    print_message("%llu restarts by the tuner\n", (unsigned long long)restarts);
    assert_true(restarts > 0);
}

static void
most_steps_were_taken(void **state)
{
    TT_UNUSED(state);
    print_message("%llu jobs, %llu reconfigurations\n", (unsigned long long)jobs_moved,
                  (unsigned long long)steps_done);
    assert_true(steps_done > 4 * jobs_moved);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bsp_trains_one_model_by_every_method),
        cmocka_unit_test(one_worker_trains_one_model_by_every_method),
        cmocka_unit_test(many_workers_train_every_example_by_every_method),
        cmocka_unit_test(a_step_may_choose_its_method),
        cmocka_unit_test(a_checkpoint_that_cannot_be_written_changes_nothing),
        cmocka_unit_test(the_tuner_may_restart),
        cmocka_unit_test(most_steps_were_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
