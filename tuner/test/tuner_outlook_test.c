// Goal: of what a setting may save only that counts which a window can tell. Method: a made-up
// tuner with measurements entered by hand.
#include "tuner_fixture.h"
#include <math.h>

enum { SETTINGS = 8 };

// Settings with so many requests in flight, measured windows times with this noise, are all alike.
static void
open_noisy(fixture *f, double var, int windows, unsigned without)
{
    tt_error err = {0};
    tt_tuner_options options = job_options(1);
    options.without = without;
    fixture_open(f, &options);
    tt_tuner *t = f->tuner;
    for (int i = 0; i < SETTINGS * windows; i++) {
        tt_setting setting = t->tried[0].setting;
        setting.value[JOB_IN_FLIGHT] = 1 + i % SETTINGS;
        t->current = tti_tuner_adopt(t, &setting);
        const double error = sqrt(var) * sin(3.7 * i);
        const tti_measured m = {.log_t = -5 + error, .var = var, .weight = 1000};
        assert_int_equal(tti_tuner_add_row(t, &m, &err), TT_OK);
    }
    assert_int_equal(tti_tuner_refit(t, &err), TT_OK);
}

static tti_outlook
outlook(const fixture *f, double var)
{
    const tti_frame frame = {.noise_var = tti_tuner_noise_var(f->tuner)};
    const tti_statistics same = {0, 1};
    return tti_tuner_outlook_from(&frame, 0, var, &same);
}

static void
the_noise_of_windows_is_known(void **state)
{
    TT_UNUSED(state);
    static const double var[] = {1e-6, 1e-3};
    for (size_t i = 0; i < TT_COUNT_OF(var); i++) {
        fixture f;
        open_noisy(&f, var[i], 3, 0);
        assert_true(fabs(f.tuner->window_var - var[i]) < 1e-9);
        assert_true(tt_gp_noise_var(f.tuner->gp) > 0);
        fixture_close(&f);
    }
}

static void
what_a_window_cannot_tell_does_not_count(void **state)
{
    TT_UNUSED(state);
    fixture quiet, noisy, without;
    open_noisy(&quiet, 1e-6, 1, 0);
    open_noisy(&noisy, 1e-3, 1, 0);
    open_noisy(&without, 1e-3, 1, 1u << TT_TUNER_RULE_NOISE);
    // far more than the noise: all of it; far less: hardly anything
    const tti_outlook large = outlook(&noisy, 0.25), small = outlook(&noisy, 1e-4);
    assert_true(large.told > 0.99 * large.sd && large.told < large.sd);
    assert_true(small.told < 0.4 * small.sd && small.told > 0);
    assert_true(outlook(&quiet, 1e-4).told > small.told);
    assert_true(outlook(&without, 1e-4).told == 0.01);
    assert_true(outlook(&noisy, 0).told == 0);
    // and what may be lost is not for the noise to hide
    assert_true(small.sd == 0.01);
    fixture_close(&quiet);
    fixture_close(&noisy);
    fixture_close(&without);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_noise_of_windows_is_known),
        cmocka_unit_test(what_a_window_cannot_tell_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
