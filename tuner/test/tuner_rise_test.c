// Goal: a rise of the loss is held against the strain under which it came, unless that was borne
// for long before, and where it is known how far delays may go not for the rest of the job. Method:
// a made-up job under settings that merge four iterations, iterations and rises entered by hand.
#include "tuner_fixture.h"

enum { CALM = 2000, MERGED = 4, FAR = 1000 };

// Settings that merge four iterations and differ in a knob that changes no statistics.
typedef struct rise {
    fixture f;
    tt_tuner *t;
} rise;

static uint32_t
nth(rise *r, int n)
{
    tt_setting setting = r->t->own.setting;
    setting.value[JOB_AGGREGATION] = MERGED;
    setting.value[JOB_IN_FLIGHT] = 1 + n;
    return tti_tuner_adopt(r->t, &setting);
}

static int
is_open(rise *r, int n)
{
    const tti_tried *x = &r->t->tried[nth(r, n)];
    return tti_tuner_is_borne(r->t, x) && !tti_tuner_is_out(r->t, x);
}

// A window under the n-th setting, that many delays long.
static void
window(rise *r, int n, double delays)
{
    tt_tuner *t = r->t;
    t->current = nth(r, n);
    tti_tried *x = &t->tried[t->current];
    const uint64_t iterations = (uint64_t)(delays * x->delay);
    t->window_iterations = t->iterations;
    t->iterations += iterations;
    x->iterations += iterations;
}

static void
borne(rise *r, int n, double delays)
{
    window(r, n, delays);
    r->t->tried[r->t->current].borne = r->t->tried[r->t->current].delay * r->t->step;
}

static void
rises(rise *r, int n)
{
    window(r, n, 5);
    tti_tuner_rose(r->t);
    assert_true(tti_tuner_is_out(r->t, &r->t->tried[nth(r, n)]));
}

static void
begin(rise *r, int lag_is_known)
{
    tt_tuner_options options = job_options(1);
    options.learning_rate = 1;
    fixture_open(&r->f, &options);
    r->t = r->f.tuner;
    r->t->step = 1;
    for (uint64_t i = 0; i < CALM; i++) {
        const tt_est_sample sample = {.sequence = i,
                                      .worker = (uint32_t)(i % r->t->own.workers),
                                      .examples = 64,
                                      .loss = 0.5,
                                      .time_s = 1e-3 * (double)i,
                                      .cycle_s = 1e-3 * r->t->own.workers,
                                      .curvature = lag_is_known ? JOB_CURVATURE(FAR) : 0};
        tt_estimator_add(r->f.estimator, &sample);
    }
    r->t->iterations = CALM;
    assert_int_equal(lag_is_known, isfinite(tti_tuner_lag_borne(r->t)));
    assert_true(is_open(r, 0) && nth(r, 0) != nth(r, 1));
}

static void
a_rise_is_held_against_its_strain(void **state)
{
    TT_UNUSED(state);
    for (int known = 0; known < 2; known++) {
        rise r;
        begin(&r, known);
        borne(&r, 0, 20); // not for long
        rises(&r, 1);
        assert_false(is_open(&r, 0) || is_open(&r, 2));
        fixture_close(&r.f);
    }
}

static void
but_for_one_that_was_borne_for_long(void **state)
{
    TT_UNUSED(state);
    rise r;
    begin(&r, 1);
    borne(&r, 0, 150);
    borne(&r, 1, 150);
    rises(&r, 2);
    assert_true(is_open(&r, 0) && is_open(&r, 3));
    // Nor is what came before another rise.
    borne(&r, 0, 50);
    rises(&r, 3);
    assert_false(is_open(&r, 0) || is_open(&r, 4));
    fixture_close(&r.f);
}

// What the setting in force bore itself counts as well, but for the window in which it rises.
static void
by_itself_or_by_others(void **state)
{
    TT_UNUSED(state);
    for (int before = 0; before < 2; before++) {
        rise r;
        begin(&r, 1);
        borne(&r, 0, 300);
        if (before)
            window(&r, 0, 5);
        tti_tuner_rose(r.t);
        assert_int_equal(is_open(&r, 1), before);
        assert_false(is_open(&r, 0));
        fixture_close(&r.f);
    }
}

static void
and_not_for_ever_where_the_lag_is_known(void **state)
{
    TT_UNUSED(state);
    for (int known = 0; known < 2; known++) {
        rise r;
        begin(&r, known);
        rises(&r, 1);
        r.t->iterations *= 3;
        assert_false(is_open(&r, 1) || is_open(&r, 2));
        r.t->iterations *= 2;
        assert_int_equal(is_open(&r, 1), known);
        assert_int_equal(is_open(&r, 2), known);
        fixture_close(&r.f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rise_is_held_against_its_strain),
        cmocka_unit_test(but_for_one_that_was_borne_for_long),
        cmocka_unit_test(by_itself_or_by_others),
        cmocka_unit_test(and_not_for_ever_where_the_lag_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
