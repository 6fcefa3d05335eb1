// Goal: log expected improvement is right from the middle to the far tails, with its derivatives.
// Method: values from mpmath (ei_reference.h), central differences, limits at sd = 0.
#include "ei_reference.h"
#include "tt/tuner_search.h"
#include <gsl/gsl_errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
close_to(double value, double expected, double relative)
{
    if (!(fabs(value - expected) <= relative * (fabs(expected) + 1)))
        fail_msg("%.17g is not within %g of %.17g", value, relative, expected);
}

static void
test_log_h(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT_OF(ei_log_h_reference); i++)
        close_to(tt_ei_log_h(ei_log_h_reference[i].z), ei_log_h_reference[i].log_h, 1e-10);
    assert_true(isinf(tt_ei_log_h(-INFINITY)) && tt_ei_log_h(-INFINITY) < 0);
    // No step where one form hands over to the next: h'/h is about |z| there, so 2e-9 of z moves
    // log h by 2e-9 |z|.
    for (int i = 0; i < 2; i++) {
        double z = i == 0 ? -1 : -200;
        double jump = tt_ei_log_h(z + 1e-9) - tt_ei_log_h(z - 1e-9);
        assert_true(fabs(jump) < 2e-9 * (fabs(z) + 1) + 1e-10);
    }
}

static void
test_told(void **state)
{
    (void)state;
    static const double noise[] = {0, 1e-6, 0.04, 30};
    double slope;
    for (size_t i = 0; i < TT_COUNT_OF(noise); i++)
        for (double var = 1e-5; var < 100; var *= 7) {
            const double h = 1e-5 * var, told = tt_ei_told(var, noise[i], &slope);
            const double up = tt_ei_told(var + h, noise[i], NULL);
            const double down = tt_ei_told(var - h, noise[i], NULL);
            // What is left after the measurement: var noise / (var + noise).
            close_to(told * told, var - var * noise[i] / (var + noise[i]), 1e-12);
            close_to(slope, (up - down) / (2 * h), 1e-6);
        }
    assert_true(tt_ei_told(0, 0, &slope) == 0 && slope == 0);
    assert_true(tt_ei_told(0, 1, &slope) == 0 && slope == 0);
}

static void
test_log_saved(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_COUNT_OF(ei_log_saved_reference); i++) {
        double mean = ei_log_saved_reference[i].mean, sd = ei_log_saved_reference[i].sd;
        double d = fabs(mean / sd), value = tt_ei_log_saved(mean, sd, NULL, NULL);
        // The small-s form drops terms of the order s max(1, |d|) < 1e-4.
        double tolerance = sd * fmax(1, d) < 1e-4 ? 1e-4 : 1e-8;
        close_to(value, ei_log_saved_reference[i].log_saved, tolerance / (d > 2 ? d : 1));
    }
    close_to(tt_ei_log_saved(-0.3, 0, NULL, NULL), log(1 - exp(-0.3)), 1e-13);
    assert_true(isinf(tt_ei_log_saved(0.3, 0, NULL, NULL)));
    close_to(tt_ei_log(1.7, 0, 2.4, NULL, NULL), log(0.7), 1e-13);
    assert_true(isinf(tt_ei_log(2.4, 0, 1.7, NULL, NULL)));
}

typedef double (*two)(double mean, double sd, double *d_mean, double *d_sd);
static double
under_one(double mean, double sd, double *d_mean, double *d_sd)
{
    return tt_ei_log(mean, sd, 1.137, d_mean, d_sd);
}

static void
test_derivatives(void **state)
{
    (void)state;
    static const double at[][2] = {{0.31, 0.77},  {1.9, 0.23},  {-2.7, 0.61}, {3.3, 0.11},
                                   {0.013, 0.37}, {5.1, 0.013}, {-0.9, 2.9},  {1.137, 1e-2}};
    two functions[] = {under_one, tt_ei_log_saved};
    for (size_t f = 0; f < 2; f++)
        for (size_t i = 0; i < TT_COUNT_OF(at); i++) {
            double m = at[i][0], s = at[i][1], dm, ds, h = 1e-5 * s;
            (void)functions[f](m, s, &dm, &ds);
            double fm = functions[f](m + h, s, NULL, NULL) - functions[f](m - h, s, NULL, NULL);
            double fs = functions[f](m, s + h, NULL, NULL) - functions[f](m, s - h, NULL, NULL);
            // Central differences of a function known to 1e-11 or so: 1e-11 / 1e-5 and a little.
            close_to(dm * s, fm / (2 * h) * s, 1e-5);
            close_to(ds * s, fs / (2 * h) * s, 1e-5);
        }
}

int
main(void)
{
    (void)gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_h),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_log_saved),
        cmocka_unit_test(test_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
