// Goal: under SSP a job ends although its workers run out of data at different clocks, and every
// example is trained. Method: short whole jobs with little staleness and deep prefetch, both
// drivers, with moves near the end; a lost wake-up or a clock that nobody advances runs into the
// time-out.
#include "job_test_util.h"

static const char job_text[] = "job: ssp-end\n"
                               "seed: 5\n"
                               "data: {format: clicklog, rows: 4997, columns: 500, fields: 7}\n"
                               "model: {kind: logistic_regression}\n"
                               "optimizer: {kind: sgd, learning_rate: 0.1, batch_size: 16}\n"
                               "stop: {max_epochs: 2}\n"
                               "cluster: {driver: messages, nodes: 6}\n"
                               "consistency: ssp\n"
                               "setting: {staleness: 1}\n"
                               "tuner: {enabled: off}\n";

static void
train(unsigned seed, const char *driver, const char *more, const char *script)
{
    static tt_job_result result;
    tt_error err = {0};
    char seeded[32];
    (void)snprintf(seeded, sizeof seeded, "seed=%u", seed);
    const char *const overrides[] = {driver, seeded, more, script, NULL};
    if (run_job(job_text, overrides, &result, NULL, NULL, &err) != TT_OK)
        fail_msg("%s %s: %s", driver, err.where, err.what);
    assert_int_equal(result.examples, 2 * 4997); // the last batches are shorter
}

static void
workers_that_run_out_are_not_waited_for(void **state)
{
    TT_UNUSED(state);
    for (unsigned seed = 1; seed <= 40; seed++) {
        train(seed, "cluster.driver=messages", "setting.prefetch=8", NULL);
        train(seed, "cluster.driver=in_place", NULL, NULL);
    }
}

// What is left for the last push of a worker may be less than one of the batches it merges.
static void
merged_batches_are_cut_short(void **state)
{
    TT_UNUSED(state);
    for (unsigned seed = 1; seed <= 20; seed++) {
        train(seed, "cluster.driver=messages", "setting.push_aggregation=8", NULL);
        train(seed, "cluster.engine=local", "setting.push_aggregation=8", NULL);
    }
}

static void
moves_near_the_end_lose_no_example(void **state)
{
    TT_UNUSED(state);
    for (unsigned seed = 1; seed <= 40; seed++)
        train(seed, "cluster.driver=messages", "setting.prefetch=8",
              "tuner.script=[{iteration: 580, servers: 4}, {iteration: 600, servers: 1}, "
              "{iteration: 615, servers: 5}]");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_run_out_are_not_waited_for),
        cmocka_unit_test(merged_batches_are_cut_short),
        cmocka_unit_test(moves_near_the_end_lose_no_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
