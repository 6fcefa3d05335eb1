// Goal: a loss that has stopped falling above the target under a lag near what is borne goes on
// under a shorter one; a lag far from it, or a loss that still falls, is left alone. Method: the
// losses of a made-up job under a setting of a known lag, entered by hand.
#include "tuner_fixture.h"
#include <math.h>

enum { STEP = 500, MOST = 60000 };
static const double BORNE = 40;

typedef struct stall {
    fixture f;
    double loss, share; // share: of the borne lag
    uint64_t done;      // iterations
} stall;

// The start setting's loss bends, then a setting that merges four iterations is in force.
static void
begin(stall *s, double share)
{
    tt_tuner_options options = job_options(1);
    options.learning_rate = 1;
    *s = (stall){.loss = 0.5, .share = share};
    fixture_open(&s->f, &options);
    tt_tuner *t = s->f.tuner;
    tt_setting longer = t->own.setting;
    longer.value[JOB_AGGREGATION] = 4;
    t->current = tti_tuner_adopt(t, &longer);
    tti_tried *x = &t->tried[t->current];
    tt_estimator_begin(s->f.estimator, t->current, 0, x->workers, x->feature, x->feature_count);
}

// Trains until the tuner finds that the loss does not fall; what it means to do about it.
static const char *
train(stall *s, double fall)
{
    tt_tuner *t = s->f.tuner;
    const char *remedy = NULL;
    while (s->done < MOST && remedy == NULL) {
        for (int i = 0; i < STEP; i++, s->done++, s->loss -= fall) {
            const tt_est_sample sample = {.sequence = s->done,
                                          .worker = (uint32_t)(s->done % t->own.workers),
                                          .examples = 64,
                                          .loss = s->loss + 0.01 * sin(2.0 * (double)s->done),
                                          .time_s = 1e-3 * (double)s->done,
                                          .cycle_s = 1e-3 * t->own.workers,
                                          .curvature = JOB_CURVATURE(BORNE)};
            tt_estimator_add(s->f.estimator, &sample);
        }
        t->iterations = s->done;
        t->tried[t->current].lag = s->share * tti_tuner_lag_borne(t);
        remedy = tti_tuner_stalls(t);
    }
    return remedy;
}

static void
near_the_edge_the_lag_becomes_shorter(void **state)
{
    TT_UNUSED(state);
    stall s;
    begin(&s, 0.9);
    tt_tuner *t = s.f.tuner;
    const char *remedy = train(&s, 0);
    assert_non_null(remedy);
    assert_string_equal(remedy, "a shorter lag");
    print_message("after %llu iterations: %s, %.2f of what is borne\n", (unsigned long long)s.done,
                  remedy, t->lag_share);
    const double borne = tti_tuner_lag_borne(t);
    tti_tried *current = &t->tried[t->current];
    assert_true(fabs(borne - BORNE) < 1);
    assert_false(tti_tuner_is_stable(t, current));
    current->lag = 0.80 * borne; // nine tenths of what it was, and a little less
    assert_true(tti_tuner_is_stable(t, current));
    fixture_close(&s.f);
}

static void
no_lag_is_to_blame_far_from_it(void **state)
{
    TT_UNUSED(state);
    stall s;
    begin(&s, 0.75);
    assert_null(train(&s, 0));
    assert_true(s.f.tuner->lag_share == 1);
    fixture_close(&s.f);
}

static void
nor_while_the_loss_falls(void **state)
{
    TT_UNUSED(state);
    stall s;
    begin(&s, 0.9);
    assert_null(train(&s, 0.35 / MOST));
    assert_true(s.f.tuner->lag_share == 1);
    fixture_close(&s.f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_edge_the_lag_becomes_shorter),
        cmocka_unit_test(no_lag_is_to_blame_far_from_it),
        cmocka_unit_test(nor_while_the_loss_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
