// Goal: seconds per iteration follows tuner-math's online rules, in any window length.
// Method: workers of known cycles against the formula worked out here, provoked suspensions, a
// short supply of memory, and simulated asynchronous workers of unequal speed.
#include "est_cycles.h"
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

static tti_cycles cycles; // 12 KiB: not for the stack

static double
solve(int bulk_synchronous)
{
    tti_cycles_answer answer;
    tti_cycles_solve(&cycles, bulk_synchronous, &answer);
    return answer.seconds_per_iteration;
}

static void
rates_of_workers_add_up(void **state)
{
    TT_UNUSED(state);
    tti_cycles_reset(&cycles);
    assert_true(isnan(solve(0)));
    const double cycle[4] = {0.131, 0.172, 0.218, 0.391};
    double rate = 0;
    for (uint32_t w = 0; w < 4; w++) {
        for (int i = 0; i < 5 + (int)w; i++)
            tti_cycles_add(&cycles, 7 * w, cycle[w]);
        rate += 1 / cycle[w];
    }
    assert_true(fabs(solve(0) * rate - 1) < 1e-12);
    tti_cycles_fini(&cycles);
}

static void
cycles_are_winsorised_at_three_medians(void **state)
{
    TT_UNUSED(state);
    tti_cycles_reset(&cycles);
    for (int i = 0; i < 9; i++)
        tti_cycles_add(&cycles, 3, 0.11);
    tti_cycles_add(&cycles, 3, 1.43); // 13 medians: counts as 0.33
    for (int i = 0; i < 9; i++)
        tti_cycles_add(&cycles, 5, 0.11);
    const double expected = 1 / (1 / ((9 * 0.11 + 0.33) / 10) + 1 / 0.11);
    assert_true(fabs(solve(0) / expected - 1) < 1e-12);
    tti_cycles_fini(&cycles);
}

static void
suspended_cycles_are_left_out(void **state)
{
    TT_UNUSED(state);
    tti_cycles_reset(&cycles);
    for (int i = 0; i < 15; i++)
        tti_cycles_add(&cycles, 2, i == 6 ? 0.2 * 21 : 0.2);
    tti_cycles_answer answer;
    tti_cycles_solve(&cycles, 0, &answer);
    assert_true(fabs(answer.seconds_per_iteration / 0.2 - 1) < 1e-12);
    assert_int_equal(answer.suspended, 1);
    tti_cycles_add(&cycles, 2, NAN);
    tti_cycles_add(&cycles, 2, -1);
    tti_cycles_add(&cycles, 2, 0);
    assert_true(fabs(solve(0) / 0.2 - 1) < 1e-12);
    tti_cycles_fini(&cycles);
}

static void
rounds_take_their_median(void **state)
{
    TT_UNUSED(state);
    tti_cycles_reset(&cycles);
    for (int i = 0; i < 31; i++)
        tti_cycles_add(&cycles, 0, 0.5 + 0.01 * i + (i > 25 ? 2 : 0));
    assert_true(fabs(solve(1) / 0.65 - 1) < 1e-12);
    tti_cycles_fini(&cycles);
}

static void
long_windows_fold_to_the_same_answer(void **state)
{
    TT_UNUSED(state);
    enum { WORKERS = 300, PUSHES = 60000 };
    tt_rng rng;
    tt_rng_init(&rng, 91, TT_RNG_TEST, 0);
    tti_cycles_reset(&cycles);
    static double sum[WORKERS], count[WORKERS];
    memset(sum, 0, sizeof sum);
    memset(count, 0, sizeof count);
    for (int i = 0; i < PUSHES; i++) {
        const uint32_t w = (uint32_t)tt_rng_below(&rng, WORKERS);
        const double c = (0.1 + 0.0003 * w) * (1 + 0.2 * tt_rng_uniform(&rng));
        tti_cycles_add(&cycles, w * 1000003u, c);
        sum[w] += c;
        count[w] += 1;
    }
    double rate = 0;
    for (int w = 0; w < WORKERS; w++)
        rate += count[w] / sum[w];
    assert_true(fabs(solve(0) * rate - 1) < 1e-9); // nothing to winsorise: only rounding differs
    const double first = solve(0);
    assert_true(solve(0) == first); // asking changes nothing
    tti_cycles_reset(&cycles);
    assert_true(isnan(solve(0)));
    tti_cycles_fini(&cycles);
}

static void
short_memory_leaves_new_workers_out(void **state)
{
    TT_UNUSED(state);
    tti_cycles_reset(&cycles);
    for (uint32_t w = 0; w < 32; w++)
        tti_cycles_add(&cycles, w, 0.25);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        tt_mem_fail_nth(nth);
        for (int i = 0; i < 40; i++)
            tti_cycles_add(&cycles, 5, 0.25);
        tti_cycles_add(&cycles, 1000 + (uint32_t)nth, 0.25); // asks for a larger table, in vain
        assert_int_equal(tt_mem_fail_pending(), 0);
        tt_mem_fail_nth(0);
    }
    tti_cycles_answer answer;
    tti_cycles_solve(&cycles, 0, &answer);
    assert_true(isfinite(answer.seconds_per_iteration));
    tti_cycles_fini(&cycles);
    tt_mem_fail_nth(1);
    tti_cycles_add(&cycles, 1, 0.25);
    tt_mem_fail_nth(0);
    assert_true(isnan(solve(0)));
    tti_cycles_fini(&cycles);
}

// The standard error is what repeated windows scatter by, and the mean is right although workers
// are jittered: the median gap between pushes is not asked.
static void
windows_scatter_by_their_standard_error(void **state)
{
    TT_UNUSED(state);
    enum { ROUNDS = 400, WORKERS = 12, PUSHES = 40 * WORKERS };
    double mean = 0, squares = 0, claimed = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        trace t = {.curve = TRACE_CONSTANT, .start = 1, .cycle_s = 0.3, .jitter = 0.4};
        t.workers = WORKERS;
        trace_begin(&t, round);
        for (int i = 0; i < 3 * WORKERS; i++)
            (void)trace_next(&t);
        tti_cycles_reset(&cycles);
        for (int i = 0; i < PUSHES; i++) {
            const tt_est_sample sample = trace_next(&t);
            tti_cycles_add(&cycles, sample.worker, sample.cycle_s);
        }
        tti_cycles_answer answer;
        tti_cycles_solve(&cycles, 0, &answer);
        const double x = log(answer.seconds_per_iteration * WORKERS / 0.3);
        mean += x / ROUNDS;
        squares += x * x / ROUNDS;
        claimed += answer.log_se * answer.log_se / ROUNDS;
    }
    tti_cycles_fini(&cycles);
    const double spread = sqrt(squares - mean * mean);
    assert_true(fabs(mean) < 0.01);
    // winsorising and the fixed count of pushes both narrow the spread a little
    assert_true(sqrt(claimed) > 0.85 * spread && sqrt(claimed) < 1.35 * spread);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_of_workers_add_up),
        cmocka_unit_test(cycles_are_winsorised_at_three_medians),
        cmocka_unit_test(suspended_cycles_are_left_out),
        cmocka_unit_test(rounds_take_their_median),
        cmocka_unit_test(long_windows_fold_to_the_same_answer),
        cmocka_unit_test(short_memory_leaves_new_workers_out),
        cmocka_unit_test(windows_scatter_by_their_standard_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
