// Goal: a window says that the loss rises when it does so clearly, does harm and lasts, and not
// when it swings. Method: made-up losses through the public interface.
#include "est_feed.h"

static void
rising_slope_is_flagged_and_changes_no_rate(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    push_noisy(&f, 400, 0.9, 0.7, 0.02);
    assert_int_equal(end(&f, 1).flags, 0);
    double mean, sd, mean_after, sd_after;
    tt_estimator_log_rate(f.est, 2, features, 2, &mean, &sd);
    begin(&f, 2);
    push_noisy(&f, 150, 0.70, 0.72, 0.01);
    const tt_est_window window = end(&f, 1);
    assert_int_not_equal(window.flags & TT_EST_RISING, 0);
    assert_int_equal(window.flags & TT_EST_DIVERGING, 0);
    tt_estimator_log_rate(f.est, 2, features, 2, &mean_after, &sd_after);
    assert_true(mean == mean_after && sd == sd_after);
    tt_estimator_close(f.est);
}

static void
two_blocks_above_the_level_before_are_rising(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 8);
    begin(&f, 1);
    push_noisy(&f, 400, 0.8, 0.7, 0.05);
    (void)end(&f, 1);
    begin(&f, 2);
    push_noisy(&f, 25, 0.80, 0.80, 0.05);
    tt_est_window window;
    tt_estimator_window(f.est, &window);
    assert_int_equal(window.flags & TT_EST_RISING, 0); // one block
    push_noisy(&f, 25, 0.80, 0.80, 0.05);
    tt_estimator_window(f.est, &window);
    assert_int_not_equal(window.flags & TT_EST_RISING, 0);
    tt_estimator_close(f.est);
}

// In thousands of iterations a slope is clear that adds a fraction of what batches differ by.
static void
a_clear_slope_that_does_no_harm_is_no_rise(void **state)
{
    TT_UNUSED(state);
    const double sd = 0.05;
    for (int harmful = 0; harmful < 2; harmful++) {
        feed f = feed_of(open_with(0.2), 4);
        begin(&f, 1);
        push_noisy(&f, 600, 0.7, 0.7, sd);
        (void)end(&f, 1);
        begin(&f, 2);
        push_noisy(&f, 4000, 0.7, 0.7 + (harmful ? 2 : 0.5) * sd, sd);
        const tt_est_window window = end(&f, 1);
        assert_true(window.slope > 4 * window.slope_se); // clear
        assert_int_equal(window.flags & TT_EST_RISING, harmful ? TT_EST_RISING : 0);
        tt_estimator_close(f.est);
    }
}

// Near the edge of stability the loss goes up now and then, and comes down again by itself. What
// does not is flagged when it has lasted for the later half of the window.
static void
a_burst_is_no_rise(void **state)
{
    TT_UNUSED(state);
    const double calm = 0.5, high = 0.8, sd = 0.05;
    feed f = feed_of(open_with(0.2), 2);
    begin(&f, 1);
    push_noisy(&f, 600, calm, calm, sd);
    (void)end(&f, 1);
    begin(&f, 2);
    tt_est_window window;
    for (int burst = 0; burst < 8; burst++) {
        push_noisy(&f, 200, calm, calm, sd);
        push_noisy(&f, 75, high, high, sd);
        tt_estimator_window(f.est, &window);
        assert_int_equal(window.flags & (TT_EST_RISING | TT_EST_DIVERGING), 0);
    }
    uint32_t more = 0;
    for (; more < 4000 && (window.flags & TT_EST_RISING) == 0; more += 25) {
        push_noisy(&f, 25, high, high, sd);
        tt_estimator_window(f.est, &window);
    }
    print_message("after 2200 losses a rise that stays is flagged after %u\n", more);
    assert_true(more >= 200 && more <= 2200);
    tt_estimator_close(f.est);
}

// A trial that begins in a trough of the loss is not to blame for the way out of it; a later window
// of the same setting is compared with what came before under itself.
static void
a_way_out_of_a_trough_is_no_rise(void **state)
{
    TT_UNUSED(state);
    const double level = 0.5, trough = 0.3, sd = 0.05;
    for (int later = 0; later < 2; later++) {
        feed f = feed_of(open_with(0.1), 2);
        begin(&f, 1);
        push_noisy(&f, 600, level, level, sd);
        (void)end(&f, 1);
        begin(&f, 2);
        if (later) {
            push_noisy(&f, 400, trough, trough, sd);
            assert_int_equal(end(&f, 1).flags & TT_EST_RISING, 0);
            begin(&f, 2);
        }
        push_noisy(&f, 400, trough, level, sd);
        const tt_est_window window = end(&f, 1);
        assert_true(window.slope > 4 * window.slope_se);
        assert_int_equal(window.flags & TT_EST_RISING, later ? TT_EST_RISING : 0);
        tt_estimator_close(f.est);
    }
}

static void
rising_again_is_diverging(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    push_noisy(&f, 400, 0.9, 0.7, 0.02);
    (void)end(&f, 1);
    begin(&f, 1);
    push_noisy(&f, 150, 0.70, 0.80, 0.01);
    tt_est_window window = end(&f, 1);
    assert_int_not_equal(window.flags & TT_EST_RISING, 0);
    assert_int_equal(window.flags & TT_EST_DIVERGING, 0);
    begin(&f, 1);
    push_noisy(&f, 150, 0.80, 0.95, 0.01);
    window = end(&f, 1);
    assert_int_not_equal(window.flags & TT_EST_DIVERGING, 0);
    // another setting starts with a clean record
    begin(&f, 2);
    push_noisy(&f, 150, 0.95, 0.90, 0.01);
    assert_int_equal(end(&f, 1).flags & (TT_EST_RISING | TT_EST_DIVERGING), 0);
    tt_estimator_close(f.est);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_slope_is_flagged_and_changes_no_rate),
        cmocka_unit_test(two_blocks_above_the_level_before_are_rising),
        cmocka_unit_test(a_clear_slope_that_does_no_harm_is_no_rise),
        cmocka_unit_test(a_burst_is_no_rise),
        cmocka_unit_test(a_way_out_of_a_trough_is_no_rise),
        cmocka_unit_test(rising_again_is_diverging),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
