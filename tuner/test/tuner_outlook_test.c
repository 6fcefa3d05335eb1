// Goal: of what a setting may save only that counts which a window can tell, and no progress that
// it cannot make. Method: a made-up tuner with measurements entered by hand.
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

enum { PUSHES = 200 };

// log of what an iteration brings with knob `k` at `value` over what the start setting's brings,
// after windows in which it brought twice as much.
static double
rate_seen(fixture *f, int k, double value)
{
    tt_setting setting = f->tuner->own.setting;
    tti_tried x;
    tt_est_window ignored;
    double loss = 2, mean, start, sd;
    setting.value[k] = value;
    tti_tuner_describe(f->tuner, &setting, &x);
    for (uint64_t window = 0, i = 0; window < 30; window++) {
        const tti_tried *s = window < 20 ? &f->tuner->own : &x;
        tt_estimator_begin(f->estimator, s == &x, 0, s->workers, s->feature, s->feature_count);
        for (int push = 0; push < PUSHES; push++, i++) {
            const tt_est_sample sample = {.sequence = i,
                                          .worker = (uint32_t)i % s->workers,
                                          .examples = 64,
                                          .loss = loss + 0.01 * sin(2.3 * (double)i),
                                          .time_s = 1e-3 * (double)i,
                                          .cycle_s = 1e-3 * s->workers,
                                          .staleness = NAN};
            tt_estimator_add(f->estimator, &sample);
            loss -= 2e-4 * (s == &x ? 2 : 1) * loss;
        }
        tt_estimator_end(f->estimator, 1, &ignored);
    }
    tt_estimator_log_rate(f->estimator, 1, x.feature, x.feature_count, &mean, &sd);
    tt_estimator_log_rate(f->estimator, 0, f->tuner->own.feature, x.feature_count, &start, &sd);
    return mean - start;
}

// Which of a tuner's features they are that only lose is told to the estimator.
static void
more_progress_is_not_expected_of_rounding(void **state)
{
    TT_UNUSED(state);
    static const int knob[] = {JOB_BF16, JOB_AGGREGATION, JOB_STALENESS, JOB_STALENESS};
    static const double value[] = {1, 16, 64, 64};
    for (size_t i = 0; i < TT_COUNT_OF(knob); i++) {
        fixture f;
        tt_tuner_options options = job_options(1);
        fixture_open(&f, &options);
        const int told = i < 3;
        f.job.problem.knob[JOB_BF16].changes_statistics = TT_KNOB_STATISTICS;
        f.job.problem.knob[knob[i]].changes_statistics = TT_KNOB_LOSSY;
        if (told)
            tti_tuner_tell_lossy(f.tuner);
        tti_tuner_describe(f.tuner, &f.tuner->own.setting, &f.tuner->own);
        const double rate = rate_seen(&f, knob[i], value[i]);
        print_message("knob %d, %s: %.3f\n", knob[i], told ? "told" : "not told", rate);
        assert_true(told ? fabs(rate) < 1e-9 : rate > 0.01);
        fixture_close(&f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_noise_of_windows_is_known),
        cmocka_unit_test(what_a_window_cannot_tell_does_not_count),
        cmocka_unit_test(more_progress_is_not_expected_of_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
