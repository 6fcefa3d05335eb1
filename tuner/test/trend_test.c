// Goal: what is expected of settings before anything else is measured follows from where the start
// setting's time goes. Method: a first window whose staleness says so, then the expectation of
// settings that differ in one knob, against the formula.
#include "tuner_fixture.h"

enum { WINDOW = 400 };

// One window in which a worker computes for the share `busy` of its cycle, and the loss bends so
// that it bears the lag `borne` (0: it does not bend).
static void
first_window(fixture *f, double busy, double borne)
{
    tt_error err = {0};
    tt_tuner_options options = job_options(1);
    options.learning_rate = 1;
    fixture_open(f, &options);
    const tti_tried *own = &f->tuner->own;
    const double staleness = own->delay * (1 + busy) / 2;
    for (uint64_t i = 0; i < WINDOW; i++) {
        const tt_est_sample sample = {.sequence = i,
                                      .worker = (uint32_t)(i % own->workers),
                                      .examples = 64,
                                      .loss = 1 - 1e-4 * (double)i,
                                      .time_s = 1e-3 * (double)i,
                                      .cycle_s = 1e-3 * own->workers,
                                      .staleness = staleness,
                                      .curvature = borne > 0 ? JOB_CURVATURE(borne) : 0};
        tt_estimator_add(f->estimator, &sample);
    }
    const tt_tuner_view view = {.now_s = 1e-3 * WINDOW, .iterations = WINDOW, .step = 1};
    tt_tuner_action action;
    assert_int_equal(tt_tuner_step(f->tuner, &view, &action, &err), TT_OK);
    assert_true(f->tuner->tried[0].row >= 0);
}

// log (seconds an iteration under the start setting with one knob at `value` / under it).
static double
expected(const fixture *f, int knob, double value)
{
    tt_setting setting = f->tuner->own.setting;
    tti_tried x;
    setting.value[knob] = value;
    tti_tuner_describe(f->tuner, &setting, &x);
    return x.trend - f->tuner->own.trend;
}

static void
check(const fixture *f, double by_merged)
{
    const double servers = f->tuner->own.setting.value[JOB_SERVERS], nodes = JOB_NODES;
    const double workers = (nodes - servers - 1) / (nodes - servers);
    assert_true(fabs(expected(f, JOB_SERVERS, servers + 1) + 0.5 * log(workers) +
                     0.25 * log((servers + 1) / servers)) < 1e-9);
    assert_true(fabs(expected(f, JOB_AGGREGATION, 4) + by_merged * log(4)) < 1e-9);
}

static void
merging_is_worth_what_workers_wait(void **state)
{
    TT_UNUSED(state);
    fixture f;
    first_window(&f, 1, 200); // workers that only compute
    check(&f, 0);
    fixture_close(&f);
    first_window(&f, 0.2, 200); // that mostly wait for pulls and pushes
    check(&f, 0.4);
    fixture_close(&f);
}

// A hinge loss before any example has reached the margin: how far merging may go is not known yet.
static void
merging_is_not_hoped_for_where_the_loss_has_not_bent(void **state)
{
    TT_UNUSED(state);
    fixture f;
    first_window(&f, 0.2, 0);
    check(&f, 0);
    fixture_close(&f);
    first_window(&f, 0.2, 1e6);
    check(&f, 0);
    fixture_close(&f);
}

// Rows hold what is left beside the trend: it must not become another one under them.
static void
later_windows_change_nothing(void **state)
{
    TT_UNUSED(state);
    fixture f;
    first_window(&f, 0.2, 200);
    f.tuner->tried[0].lag = f.tuner->own.delay;
    tti_tuner_note_busy(f.tuner);
    check(&f, 0.4);
    fixture_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_worth_what_workers_wait),
        cmocka_unit_test(merging_is_not_hoped_for_where_the_loss_has_not_bent),
        cmocka_unit_test(later_windows_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
