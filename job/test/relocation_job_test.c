// Goal: parameters move under a training job without being felt: a pull or push on a moving
// partition waits no longer than two ordinary iterations, the loss does not suffer, and moves, role
// flips and setting changes under load leave a working job. Method: whole jobs on generated data
// with scripted moves, two servers and one worker for the waits (they take turns on two cores);
// random scripts over all knobs and roles for the rest. TT_SCRIPTS=n sets how many.
#include "job_test_util.h"
#include <math.h>

static const char waits_job[] =
    "job: waits\n"
    "seed: 3\n"
    "data: {format: clicklog, rows: 40000, columns: 4000, fields: 30}\n"
    "model: {kind: logistic_regression, l2: 1e-5, pull: whole}\n"
    "optimizer: {kind: adagrad, learning_rate: 0.05, batch_size: 2048}\n"
    "stop: {max_epochs: 240}\n"
    "cluster: {driver: messages, nodes: 3}\n"
    "setting: {servers: 2, in_flight: 16}\n"
    "tuner: {enabled: off}\n";

static double
run_or_fail(const char *text, const char *const *overrides, tt_job_result *result)
{
    tt_error err = {0};
    if (run_job(text, overrides, result, NULL, NULL, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    return result->loss;
}

static void
nobody_waits_long_for_a_moving_partition(void **state)
{
    TT_UNUSED(state);
    static tt_job_result still, moving;
    static char script[1 << 16];
    size_t used = (size_t)snprintf(script, sizeof script, "tuner.script=[");
    for (int i = 1; i <= 900; i++)
        used += (size_t)snprintf(script + used, sizeof script - used, "%s{iteration: %d, move: 4}",
                                 i > 1 ? ", " : "", 5 * i);
    (void)snprintf(script + used, sizeof script - used, "]");
    double calm = run_or_fail(waits_job, NULL, &still);
    const char *const overrides[] = {script, NULL};
    double moved = run_or_fail(waits_job, overrides, &moving);
    print_message("%llu waits on moving partitions in %llu reconfigurations, p99 %.1f us; median "
                  "iteration without moves %.1f us; "
                  "loss %.5f against %.5f\n",
                  (unsigned long long)moving.moving_wait_count,
                  (unsigned long long)moving.generations - 1, 1e6 * moving.moving_wait_p99_s,
                  1e6 * still.iteration_median_s, moved, calm);
    assert_true(moving.moving_wait_count >= 1000);
    // A bound on time holds on a machine that has nothing else to do: asked for with TT_TIMING=1.
    if (getenv("TT_TIMING") != NULL)
        assert_true(moving.moving_wait_p99_s <= 2 * still.iteration_median_s);
    assert_true(fabs(moved - calm) < 0.02 * calm);
}

static const char *const consistencies[] = {"asp", "ssp", "bsp"};
static const char *const methods[] = {"on_demand", "drain", "checkpoint"};

static void
random_script(tt_rng *rng, int consistency, int mix, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "tuner.script=[");
    uint32_t at = 1;
    for (int i = 0; i < 8; i++) {
        at += 1 + (uint32_t)tt_rng_below(rng, 12);
        used += (size_t)snprintf(
            out + used, size - used,
            "%s{iteration: %u, servers: %u, in_flight: %u, chunk_bytes: %uKiB, "
            "spin: %u, prefetch: %u, compute_threads: %u, pinning: %s, bf16_transfer: %s",
            i > 0 ? ", " : "", at, 1 + (unsigned)tt_rng_below(rng, 4),
            1 + (unsigned)tt_rng_below(rng, 16), 4u << tt_rng_below(rng, 6),
            (unsigned)tt_rng_below(rng, 300), (unsigned)tt_rng_below(rng, 5),
            1 + (unsigned)tt_rng_below(rng, 2), tt_rng_below(rng, 2) ? "on" : "off",
            tt_rng_below(rng, 2) ? "on" : "off");
        if (consistency != 2)
            used += (size_t)snprintf(out + used, size - used, ", push_aggregation: %u",
                                     1 + (unsigned)tt_rng_below(rng, 4));
        if (consistency == 1)
            used += (size_t)snprintf(out + used, size - used, ", staleness: %u",
                                     (unsigned)tt_rng_below(rng, 6));
        if (tt_rng_below(rng, 2))
            used += (size_t)snprintf(out + used, size - used, ", move: %u",
                                     1 + (unsigned)tt_rng_below(rng, 9));
        if (mix)
            used += (size_t)snprintf(out + used, size - used, ", method: %s",
                                     methods[tt_rng_below(rng, TT_COUNT_OF(methods))]);
        used += (size_t)snprintf(out + used, size - used, "}");
    }
    (void)snprintf(out + used, size - used, "]");
}

// mix: each step by a method of its own, else on demand.
static void
run_random_scripts(int mix)
{
    const char *wanted = getenv("TT_SCRIPTS");
    uint64_t scripts = wanted != NULL ? strtoull(wanted, NULL, 10) : 60, changes = 0, moves = 0;
    for (uint64_t seed = 1; seed <= scripts; seed++) {
        static tt_job_result result;
        static char script[8192], text[1024];
        tt_rng rng;
        tt_rng_init(&rng, seed, TT_RNG_SCHEDULE, 1);
        int consistency = (int)tt_rng_below(&rng, 3);
        (void)snprintf(
            text, sizeof text,
            "job: moves\nseed: %llu\n"
            "data: {format: clicklog, rows: 3000, columns: 1500, fields: 9}\n"
            "model: {kind: logistic_regression, l2: 1e-4, pull: %s, table: %s}\n"
            "optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 32, averaging: %s}\n"
            "stop: {max_epochs: 6}\ncluster: {driver: messages, nodes: 5}\nconsistency: %s\n",
            (unsigned long long)seed, tt_rng_below(&rng, 2) ? "keyed" : "auto",
            tt_rng_below(&rng, 2) ? "sparse" : "dense", tt_rng_below(&rng, 2) ? "on" : "off",
            consistencies[consistency]);
        random_script(&rng, consistency, mix, script, sizeof script);
        const char *const overrides[] = {script, NULL};
        double loss = run_or_fail(text, overrides, &result);
        if (!(loss > 0 && loss < 0.66) || result.epochs < 5.9 || result.generations < 2)
            fail_msg("seed %llu: loss %g, %g epochs, %llu generations", (unsigned long long)seed,
                     loss, result.epochs, (unsigned long long)result.generations);
        changes += result.generations - 1;
        moves += result.partitions_moved;
    }
    print_message("%llu jobs, %llu reconfigurations under load, %llu partitions moved\n",
                  (unsigned long long)scripts, (unsigned long long)changes,
                  (unsigned long long)moves);
    assert_true(changes > 4 * scripts);
}

static void
random_scripts_leave_a_working_job(void **state)
{
    TT_UNUSED(state);
    run_random_scripts(0);
}

static void
random_methods_leave_a_working_job(void **state)
{
    TT_UNUSED(state);
    run_random_scripts(1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_long_for_a_moving_partition),
        cmocka_unit_test(random_scripts_leave_a_working_job),
        cmocka_unit_test(random_methods_leave_a_working_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
