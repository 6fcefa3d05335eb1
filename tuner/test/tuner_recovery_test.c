// Goal: after a rise nothing is tried until the loss is where it was, and no longer than waiting
// for that makes sense. Method: the first setting of a made-up job after a rise, with losses that
// are entered by hand.
#include "tuner_fixture.h"
#include <math.h>

enum { WINDOW = 200 };
static const double CALM = 0.5, RISEN = 0.9;

typedef struct recovery {
    fixture f;
    uint64_t done; // iterations
    double loss;
} recovery;

// So many iterations in which the loss falls by `fall` each, with some noise.
static void
train(recovery *r, int iterations, double fall)
{
    const tti_tried *own = &r->f.tuner->own;
    for (int i = 0; i < iterations; i++, r->done++, r->loss -= fall) {
        const tt_est_sample sample = {.sequence = r->done,
                                      .worker = (uint32_t)(r->done % own->workers),
                                      .examples = 64,
                                      .loss = r->loss + 0.01 * sin(2.0 * (double)r->done),
                                      .time_s = 1e-3 * (double)r->done,
                                      .cycle_s = 1e-3 * own->workers,
                                      .staleness = own->delay};
        tt_estimator_add(r->f.estimator, &sample);
    }
}

// A window under the start setting.
static void
window(recovery *r, double fall)
{
    tt_error err = {0};
    train(r, WINDOW, fall);
    const tt_tuner_view view = {.now_s = 1e-3 * (double)r->done, .iterations = r->done, .step = 1};
    tt_tuner_action action;
    assert_int_equal(tt_tuner_step(r->f.tuner, &view, &action, &err), TT_OK);
    // What the tuner decides is not at issue: nothing is ever applied.
    r->f.tuner->state = TTI_RUNNING;
}

// The loss was at .5, has risen to .9 under another setting, and that was left.
static void
begin(recovery *r)
{
    const tt_tuner_options options = job_options(1);
    tt_est_window ignored;
    *r = (recovery){.loss = CALM};
    fixture_open(&r->f, &options);
    for (int i = 0; i < 4; i++)
        window(r, 0);
    tt_tuner *t = r->f.tuner;
    assert_true(fabs(t->rise.calm_loss - CALM) < 0.01);
    r->loss = RISEN;
    train(r, WINDOW / 2, 0);
    tti_tuner_rose(t);
    t->tried[0].not_borne = 0; // it was not this one
    assert_true(t->rise.recovering);
    tt_estimator_end(r->f.estimator, 0, &ignored);
    tt_estimator_begin(r->f.estimator, 0, 0, t->own.workers, t->own.feature, t->own.feature_count);
}

static void
waits_while_the_loss_comes_down(void **state)
{
    TT_UNUSED(state);
    recovery r;
    begin(&r);
    // Long beyond the patience below, and still falling.
    for (int i = 0; i < 100; i++) {
        window(&r, 0.35 / (100 * WINDOW));
        assert_true(r.f.tuner->rise.recovering);
    }
    for (int i = 0; i < 20; i++)
        window(&r, 0.06 / (20 * WINDOW));
    assert_false(r.f.tuner->rise.recovering);
    fixture_close(&r.f);
}

// What the job began with is no worse than the user wanted: waiting there brings nothing.
static void
does_not_wait_for_what_does_not_come(void **state)
{
    TT_UNUSED(state);
    recovery r;
    begin(&r);
    const uint64_t from = r.done;
    const double delay = r.f.tuner->own.delay;
    for (int i = 0; i < 100 && r.f.tuner->rise.recovering; i++)
        window(&r, 0);
    print_message("waited for %.0f delays\n", (double)(r.done - from) / delay);
    assert_false(r.f.tuner->rise.recovering);
    assert_true((double)(r.done - from) >= 32 * delay);
    assert_true((double)(r.done - from) <= 80 * delay + WINDOW);
    assert_true(fabs(r.f.tuner->rise.calm_loss - r.loss) < 0.01);
    fixture_close(&r.f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_while_the_loss_comes_down),
        cmocka_unit_test(does_not_wait_for_what_does_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
