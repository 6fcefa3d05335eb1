// Goal: quantiles, scores and moments of a mixture agree with each other and with one normal's, and
// stretching scales it about its median. Method: closed forms and one as the inverse of the other.
#include "est_mixture.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>

// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const tti_mixture two = {.count = 2, .weight = {0.3, 0.7}, .mean = {1, 4}, .sd = {0.5, 1.5}};

static int
is_near(double x, double y)
{
    return fabs(x - y) < 1e-6;
}

static void
of_one_is_a_normal(void **state)
{
    TT_UNUSED(state);
    const tti_mixture one = {.count = 1, .weight = {1}, .mean = {2}, .sd = {3}};
    double mean, sd;
    tti_mixture_moments(&one, &mean, &sd);
    assert_true(is_near(mean, 2) && is_near(sd, 3));
    assert_true(is_near(tti_mixture_quantile(&one, 0.5, 0, 0), 2));
    // 1.2815516: the normal quantile of .9; 5 = hypot(3, 4)
    assert_true(is_near(tti_mixture_quantile(&one, 0.9, 10, 4), 12 + 5 * 1.2815516));
    assert_true(is_near(tti_mixture_score(&one, 5), 1));
    assert_true(is_near(tti_mixture_score(&one, 1e9), 3.0902323)); // that of .999
    assert_true(is_near(tti_mixture_score(&one, -1e9), -3.0902323));
}

static void
of_two_has_scores_that_undo_quantiles(void **state)
{
    TT_UNUSED(state);
    double mean, sd;
    tti_mixture_moments(&two, &mean, &sd);
    assert_true(is_near(mean, 0.3 + 2.8));
    assert_true(is_near(sd * sd, 0.3 * 0.25 + 0.7 * 2.25 + 0.3 * 0.7 * 9));
    for (double p = 0.01; p < 1; p += 0.07)
        assert_true(is_near(
            tti_normal_cdf(tti_mixture_score(&two, tti_mixture_quantile(&two, p, 0, 0))), p));
}

static void
stretches_about_its_median(void **state)
{
    TT_UNUSED(state);
    const double by[] = {0.5, 1, 3}, median = tti_mixture_quantile(&two, 0.5, 0, 0);
    for (size_t i = 0; i < TT_COUNT_OF(by); i++) {
        tti_mixture stretched = two;
        tti_mixture_stretch(&stretched, by[i]);
        for (double p = 0.05; p < 1; p += 0.09)
            assert_true(is_near(tti_mixture_quantile(&stretched, p, 0, 0) - median,
                                by[i] * (tti_mixture_quantile(&two, p, 0, 0) - median)));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_is_a_normal),
        cmocka_unit_test(of_two_has_scores_that_undo_quantiles),
        cmocka_unit_test(stretches_about_its_median),
    };
    return cmocka_run_group_tests_name("mixture", tests, NULL, NULL);
}
