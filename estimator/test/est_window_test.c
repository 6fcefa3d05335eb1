// Goal: a window of a setting counts the pushes that are its own, once, in their order, and one
// that is taken back leaves nothing of its losses.
// Method: samples made by hand through the public interface.
#include "est_feed.h"

static void
window_of_under_eight_pushes_has_no_slope(void **state)
{
    TT_UNUSED(state);
    assert_int_equal(tt_est_full_window(1), 12);
    assert_int_equal(tt_est_full_window(35), 105);
    assert_int_equal(tt_est_time_window(2), 12);
    assert_int_equal(tt_est_time_window(35), 39);
    feed f = feed_of(open_with(0.5), 2);
    begin(&f, 1);
    push_noisy(&f, 7, 0.9, 0.8, 0.02);
    const tt_est_window window = end(&f, 1);
    assert_int_not_equal(window.flags & TT_EST_TIME_ONLY, 0);
    assert_true(isnan(window.slope) && isnan(window.noise) && isnan(window.seconds_per_iteration));
    assert_true(isnan(window.loss) && isnan(tt_estimator_loss(f.est)));
    tt_estimator_close(f.est);
}

static void
pushes_pulled_before_the_generation_are_dropped(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    f.generation = 6;
    begin(&f, 1);
    push_noisy(&f, 100, 0.9, 0.8, 0.01);
    (void)end(&f, 1);
    f.generation = 7;
    begin(&f, 2);
    f.generation = 6;
    for (int i = 0; i < 9; i++)
        push(&f, 55.5); // computed under the old setting
    f.generation = 7;
    push_noisy(&f, 60, 0.8, 0.75, 0.01);
    const tt_est_window window = end(&f, 1);
    assert_int_equal(window.kept, 60);
    assert_int_equal(window.dropped, 9);
    assert_true(window.loss < 0.85);
    assert_true(window.mean_loss > 0.76 && window.mean_loss < 0.79); // of all 60, none of the 9
    assert_int_equal(window.flags & TT_EST_RISING, 0);
    assert_int_equal(tt_estimator_iterations(f.est), 169); // they were applied all the same
    // 4 workers with cycles of 0.11 s
    assert_true(fabs(window.seconds_per_iteration / 0.0275 - 1) < 0.03);
    tt_estimator_close(f.est);
}

static void
suspended_process_counts_as_wall_time_only(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    push_noisy(&f, 40, 0.9, 0.88, 0.01);
    f.now_s += 3600;
    const tt_est_sample late = {.sequence = f.sequence++,
                                .worker = 1,
                                .examples = 64,
                                .loss = 0.88,
                                .time_s = f.now_s,
                                .cycle_s = 3600.1};
    tt_estimator_add(f.est, &late);
    push_noisy(&f, 40, 0.88, 0.86, 0.01);
    const tt_est_window window = end(&f, 1);
    assert_int_equal(window.kept, 80);
    assert_int_equal(window.dropped, 1);
    assert_true(window.duration_s > 3600);
    assert_true(fabs(window.seconds_per_iteration / 0.0275 - 1) < 0.03);
    tt_estimator_close(f.est);
}

// The same losses, once in order and once with neighbours swapped on arrival.
static void
losses_are_ordered_by_apply_sequence(void **state)
{
    TT_UNUSED(state);
    tt_est_window windows[2];
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        tt_estimator *est = open_with(0.2);
        tt_rng rng;
        tt_rng_init(&rng, 8, TT_RNG_TEST, 0);
        tt_est_sample samples[200];
        for (uint32_t i = 0; i < 200; i++)
            samples[i] = (tt_est_sample){.sequence = 5000 + i,
                                         .worker = i % 5,
                                         .loss = 0.9 - 1e-3 * i,
                                         .time_s = 0.02 * i,
                                         .cycle_s = 0.1};
        for (uint32_t i = 0; shuffled && i < 25 * 8; i += 25)
            for (uint32_t j = 24; j > 0; j--) {
                const uint32_t k = (uint32_t)tt_rng_below(&rng, j + 1);
                const tt_est_sample t = samples[i + j];
                samples[i + j] = samples[i + k];
                samples[i + k] = t;
            }
        tt_estimator_begin(est, 1, 0, 5, features, 2);
        for (int i = 0; i < 200; i++)
            tt_estimator_add(est, &samples[i]);
        tt_estimator_end(est, 1, &windows[shuffled]);
        assert_int_equal(tt_estimator_iterations(est), 200);
        tt_estimator_close(est);
    }
    assert_true(fabs(windows[0].slope / -1e-3 - 1) < 1e-9);
    assert_true(fabs(windows[1].slope / windows[0].slope - 1) < 1e-3);
}

static void
blocks_run_on_over_windows_of_one_setting(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    tt_est_window window;
    for (int w = 0; w < 7; w++) {
        begin(&f, 1);
        for (int i = 0; i < 12; i++)
            push(&f, 0.9 - 1e-3 * (double)f.sequence);
        window = end(&f, 1);
        // 84 pushes are three blocks; six windows of 12 are two and a bit
        assert_int_equal(isnan(window.slope), w < 6);
    }
    assert_true(fabs(window.slope / -1e-3 - 1) < 1e-9);
    begin(&f, 2); // another setting starts over
    for (int i = 0; i < 40; i++)
        push(&f, 0.8);
    assert_true(isnan(end(&f, 1).slope));
    tt_estimator_close(f.est);
}

static void
abandoned_trial_leaves_its_time_row_only(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.3), 4), g = feed_of(open_with(0.3), 4);
    feed *both[2] = {&f, &g};
    for (int i = 0; i < 2; i++) {
        begin(both[i], 1);
        for (int j = 0; j < 1000; j++)
            push(both[i], 0.2 + 0.8 * exp(-1e-3 * j) + 0.01 * tt_rng_normal(&both[i]->rng));
        (void)end(both[i], 1);
    }
    begin(&f, 2);
    push_noisy(&f, 60, 0.9, 1.4, 0.01);
    const tt_est_window trial = end(&f, 0);
    assert_int_not_equal(trial.flags & TT_EST_RISING, 0);
    assert_true(isfinite(trial.seconds_per_iteration));
    const tt_est_remaining with = remaining(&f), without = remaining(&g);
    assert_true(with.iterations_median == without.iterations_median);
    assert_int_equal(tt_estimator_iterations(f.est), 1060);
    tt_estimator_close(f.est);
    tt_estimator_close(g.est);
}

// A job that resumes without what the estimator learned may be in a trial: all losses there are go
// with it, after they were asked about.
static void
first_window_may_be_taken_back(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.3), 4), fresh = feed_of(open_with(0.3), 4);
    begin(&f, 1);
    push_noisy(&f, 200, 0.9, 0.8, 0.01);
    (void)remaining(&f);
    (void)end(&f, 0);
    assert_int_equal(remaining(&f).flags, remaining(&fresh).flags);
    begin(&f, 2);
    push_noisy(&f, 400, 0.8, 0.6, 0.01);
    (void)end(&f, 1);
    assert_true(isfinite(remaining(&f).iterations_median));
    tt_estimator_close(f.est);
    tt_estimator_close(fresh.est);
}

static void
rounds_count_once_under_bsp(void **state)
{
    TT_UNUSED(state);
    const tt_est_options options = {
        .target_loss = NAN, .budget_iterations = 1000, .bulk_synchronous = 1};
    tt_estimator *est;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 1, 0, 8, features, 2);
    for (uint32_t round = 0; round < 30; round++)
        for (uint32_t w = 0; w < 8; w++) {
            const tt_est_sample sample = {.sequence = round,
                                          .worker = w,
                                          .loss = 0.7,
                                          .time_s = 0.31 * round,
                                          .cycle_s = 0.31};
            tt_estimator_add(est, &sample);
        }
    tt_est_window window;
    tt_estimator_end(est, 1, &window);
    assert_int_equal(tt_estimator_iterations(est), 30);
    assert_true(fabs(window.seconds_per_iteration / 0.31 - 1) < 1e-12);
    tt_estimator_close(est);
}

static void
time_needs_its_pushes_and_fifty_milliseconds(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 10);
    tt_est_window window;
    begin(&f, 1);
    push_noisy(&f, 13, 0.9, 0.9, 0.01);
    tt_estimator_window(f.est, &window);
    assert_true(isnan(window.seconds_per_iteration)); // W + 4 = 14
    push_noisy(&f, 1, 0.9, 0.9, 0.01);
    tt_estimator_window(f.est, &window);
    assert_true(isfinite(window.seconds_per_iteration));
    assert_true(window.time_log_se > 0 && window.time_cv > 0);
    (void)end(&f, 1);
    tt_estimator_begin(f.est, 2, 0, 1, features, 2);
    for (uint32_t i = 0; i < 60; i++) {
        const tt_est_sample sample = {
            .sequence = 14 + i, .loss = 0.9, .time_s = 9 + 1e-3 * i, .cycle_s = 1e-3};
        tt_estimator_add(f.est, &sample);
        tt_estimator_window(f.est, &window);
        assert_int_equal(isnan(window.seconds_per_iteration), i < 50);
    }
    tt_estimator_close(f.est);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window_of_under_eight_pushes_has_no_slope),
        cmocka_unit_test(pushes_pulled_before_the_generation_are_dropped),
        cmocka_unit_test(suspended_process_counts_as_wall_time_only),
        cmocka_unit_test(losses_are_ordered_by_apply_sequence),
        cmocka_unit_test(blocks_run_on_over_windows_of_one_setting),
        cmocka_unit_test(abandoned_trial_leaves_its_time_row_only),
        cmocka_unit_test(first_window_may_be_taken_back),
        cmocka_unit_test(rounds_count_once_under_bsp),
        cmocka_unit_test(time_needs_its_pushes_and_fifty_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
