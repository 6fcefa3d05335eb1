// Goal: what the estimator keeps of an answer is never told after a change.
// Method: after every kind of change each answer is asked for twice, the second time with nothing
// kept.
#include "est_feed.h"
#include "est_state.h"
#include <string.h>

// What was told before the last change is told again to nobody, of rates neither.
static void
assert_told_anew(const tt_estimator *est)
{
    tt_est_remaining kept, kept_alone, anew, anew_alone;
    double rate[2][2];
    memset(&kept, 0, sizeof kept);
    memset(&kept_alone, 0, sizeof kept_alone);
    memset(&anew, 0, sizeof anew);
    memset(&anew_alone, 0, sizeof anew_alone);
    tt_estimator_remaining(est, &kept);
    tt_estimator_left_by_losses(est, &kept_alone);
    tt_estimator_log_rate(est, 1, features, 2, &rate[0][0], &rate[0][1]);
    est->told[0].known = est->told[1].known = est->rate_now->known = 0;
    tt_estimator_left_by_losses(est, &anew_alone); // the other one first
    tt_estimator_remaining(est, &anew);
    tt_estimator_log_rate(est, 1, features, 2, &rate[1][0], &rate[1][1]);
    assert_memory_equal(&kept, &anew, sizeof kept);
    assert_memory_equal(&kept_alone, &anew_alone, sizeof kept_alone);
    assert_memory_equal(rate[0], rate[1], sizeof rate[0]);
    assert_int_equal(tt_estimator_reached(est), (anew.flags & TT_EST_REACHED) != 0);
}

static void
answers_follow_every_change(void **state)
{
    TT_UNUSED(state);
    static const tt_est_method methods[] = {TT_EST_POOLED, TT_EST_PAPER};
    for (size_t m = 0; m < TT_COUNT_OF(methods); m++) {
        const tt_est_options options = {
            .target_loss = 0.4, .budget_iterations = INFINITY, .method = methods[m]};
        tt_estimator *est = NULL;
        assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
        feed f = feed_of(est, 4);
        int reached = 0;
        for (int window = 0; window < 20; window++) {
            begin(&f, (uint32_t)window / 3);
            assert_told_anew(est);
            for (int i = 0; i < 60; i++) {
                push(&f, 0.3 + 0.7 * exp(-0.004 * (60 * window + i)));
                assert_told_anew(est);
                reached |= tt_estimator_reached(est);
            }
            tt_estimator_look(est, 0.3 + 0.7 * exp(-0.24 * (window + 1)));
            assert_told_anew(est);
            (void)end(&f, window % 7 != 6);
            assert_told_anew(est);
            tt_estimator_lossy(est, window % 2 == 0 ? 2 : 0);
            assert_told_anew(est);
        }
        assert_true(reached);
        tt_estimator_close(est);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_follow_every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
