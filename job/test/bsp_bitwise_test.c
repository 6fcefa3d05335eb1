// Goal: under BSP the model is a function of the job alone: not of the number of workers, of moves,
// or of knobs that touch no arithmetic. Method: whole jobs on generated data, models compared byte
// by byte.
#include "job_test_util.h"

static const char job_text[] =
    "job: bitwise\n"
    "seed: 5\n"
    "data: {format: clicklog, rows: 6000, columns: 3000, fields: 11}\n"
    "model: {kind: logistic_regression, l2: 1e-4, bias: on}\n"
    "optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 96, averaging: on}\n"
    "stop: {max_epochs: 3}\n"
    "cluster: {driver: messages, nodes: 6}\n"
    "consistency: bsp\n"
    "tuner: {enabled: off}\n";

static const char moves[] = "tuner.script=[{iteration: 10, servers: 3}, {iteration: 25, servers: "
                            "1, chunk_bytes: 4KiB}, {iteration: 40, move: 9}, "
                            "{iteration: 50, servers: 5, in_flight: 1}, {iteration: 70, servers: "
                            "2, prefetch: 4, spin: 0, move: 5}, "
                            "{iteration: 90, servers: 4, pinning: on}, {iteration: 110, servers: "
                            "1, in_flight: 16}, {iteration: 130, servers: 3}]";

static void
train(const char *const *overrides, char **model, size_t *bytes, tt_job_result *result)
{
    tt_error err = {0};
    if (run_job(job_text, overrides, result, model, bytes, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    assert_non_null(*model);
    assert_true(result->loss > 0.1 && result->loss < 0.65);
}

static void
expect_equal_models(const char *const *a, const char *const *b, uint64_t generations_min)
{
    static tt_job_result result;
    char *first, *second;
    size_t first_bytes, second_bytes;
    train(a, &first, &first_bytes, &result);
    train(b, &second, &second_bytes, &result);
    assert_true(result.generations >= generations_min);
    assert_int_equal(first_bytes, second_bytes);
    assert_memory_equal(first, second, first_bytes);
    tt_mem_free(first);
    tt_mem_free(second);
}

static void
workers_do_not_change_the_model(void **state)
{
    TT_UNUSED(state);
    const char *const few[] = {"cluster.nodes=2", NULL}, *const many[] = {"setting.servers=1",
                                                                          "cluster.nodes=8", NULL};
    expect_equal_models(few, many, 1);
    const char *const threads[] = {"setting.servers=4", "setting.prefetch=6", NULL};
    expect_equal_models(few, threads, 1);
}

static void
moves_do_not_change_the_model(void **state)
{
    TT_UNUSED(state);
    const char *const still[] = {NULL}, *const moving[] = {moves, NULL};
    expect_equal_models(still, moving, 9);
}

static void
optimiser_state_moves_along(void **state)
{
    TT_UNUSED(state);
    static const char *const kinds[] = {"optimizer.kind=momentum", "optimizer.kind=adam",
                                        "optimizer.kind=ftrl"};
    for (size_t i = 0; i < TT_COUNT_OF(kinds); i++) {
        const char *table = i % 2 ? "model.table=sparse" : "model.table=dense";
        const char *const still[] = {kinds[i], table, "optimizer.clip_norm=0.5", NULL};
        const char *const moving[] = {kinds[i], table, "optimizer.clip_norm=0.5", moves, NULL};
        expect_equal_models(still, moving, 9);
    }
}

static void
moves_do_not_change_a_whole_or_sparse_model(void **state)
{
    TT_UNUSED(state);
    const char *const whole[] = {"model.pull=whole", NULL}, *const whole_moving[] = {
                                                                "model.pull=whole", moves, NULL};
    expect_equal_models(whole, whole_moving, 9);
    const char *const sparse[] = {"model.table=sparse", NULL}, *const sparse_moving[] = {
                                                                   "model.table=sparse", moves,
                                                                   NULL};
    expect_equal_models(sparse, sparse_moving, 9);
}

static void
in_place_repeats_itself(void **state)
{
    TT_UNUSED(state);
    const char *const one[] = {"cluster.driver=in_place", "cluster.nodes=1", NULL};
    const char *const five[] = {"cluster.driver=in_place", "cluster.nodes=5", NULL};
    expect_equal_models(one, five, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_do_not_change_the_model),
        cmocka_unit_test(moves_do_not_change_the_model),
        cmocka_unit_test(optimiser_state_moves_along),
        cmocka_unit_test(moves_do_not_change_a_whole_or_sparse_model),
        cmocka_unit_test(in_place_repeats_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
