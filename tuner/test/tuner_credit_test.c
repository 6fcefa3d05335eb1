// Goal: what trials promise is believed as far as those before them kept it. Method: trials entered
// by hand. (That decisions heed it: tuner_job_test, every rule does something.)
#include "tuner_fixture.h"

// Measures the setting with so many requests in flight at log_t, well.
static uint32_t
measure(fixture *f, double in_flight, double log_t)
{
    tt_tuner *t = f->tuner;
    tt_error err = {0};
    tt_setting setting = t->tried[0].setting;
    setting.value[JOB_IN_FLIGHT] = in_flight;
    t->current = tti_tuner_adopt(t, &setting);
    assert_true(t->current != TTI_TUNER_NOBODY);
    const tti_measured m = {.log_t = log_t, .var = 1e-8, .weight = 1000};
    assert_int_equal(tti_tuner_add_row(t, &m, &err), TT_OK);
    assert_int_equal(tti_tuner_refit(t, &err), TT_OK);
    return t->current;
}

static void
open_without(fixture *f, unsigned rules)
{
    tt_tuner_options options = job_options(1);
    options.without = rules;
    fixture_open(f, &options);
    (void)measure(f, 2, -5); // what trials are to beat
}

// A trial that promises `share` against setting 0 and takes exp(log_ratio) times as long.
static void
trial(fixture *f, double in_flight, double share, double log_ratio)
{
    const uint32_t id = measure(f, in_flight, -5 + log_ratio);
    tti_tuner_credit_promise(f->tuner, id, 0, share);
    tti_tuner_credit_settle(f->tuner);
}

static void
broken_promises_are_believed_less_and_less(void **state)
{
    TT_UNUSED(state);
    fixture f;
    open_without(&f, 0);
    const tt_tuner *t = f.tuner;
    assert_true(tti_tuner_credit(t, 0.01) == 1 && tti_tuner_credit(t, 0.5) == 1);
    assert_true(tti_tuner_credit(t, 0) == 1);
    trial(&f, 3, 0.05, 0.2);
    // 2 + 20 x 0.9 trials like it are taken to have kept theirs
    assert_true(fabs(tti_tuner_credit(t, 0.05) - 20 / 21.0) < 1e-12);
    // a large promise is believed more than a small one
    assert_true(tti_tuner_credit(t, 0.2) > tti_tuner_credit(t, 0.05));
    assert_true(tti_tuner_credit(t, 0.001) < 0.3);
    double before = tti_tuner_credit(t, 0.05);
    for (int i = 4; i < 16; i++) {
        trial(&f, i, 0.05, 0.2);
        assert_true(tti_tuner_credit(t, 0.05) < before);
        before = tti_tuner_credit(t, 0.05);
    }
    assert_true(before < 0.5);
    fixture_close(&f);
}

static void
kept_promises_keep_the_credit(void **state)
{
    TT_UNUSED(state);
    fixture f;
    open_without(&f, 0);
    trial(&f, 3, 0.05, -0.01); // kept a part, as the process sees it
    const double part = tti_tuner_credit(f.tuner, 0.05);
    assert_true(part > 20 / 21.0 && part < 1);
    trial(&f, 16, 0.05, -0.5);
    assert_true(tti_tuner_credit(f.tuner, 0.05) == 1); // never more
    fixture_close(&f);
}

static void
what_was_not_measured_or_has_nothing_to_beat_is_no_evidence(void **state)
{
    TT_UNUSED(state);
    fixture f;
    open_without(&f, 0);
    tt_tuner *t = f.tuner;
    tt_setting setting = t->tried[0].setting;
    setting.value[JOB_IN_FLIGHT] = 5;
    const uint32_t refused = tti_tuner_adopt(t, &setting);
    tti_tuner_credit_promise(t, refused, 0, 0.05);
    tti_tuner_credit_settle(t);
    assert_true(tti_tuner_credit(t, 0.05) == 1);
    const uint32_t slow = measure(&f, 6, -4);
    t->tried[0].banned = 1;
    tti_tuner_credit_promise(t, slow, 0, 0.05);
    tti_tuner_credit_settle(t);
    assert_true(tti_tuner_credit(t, 0.05) == 1);
    t->tried[0].banned = 0;
    trial(&f, 7, 0.05, 0.2);
    const double once = tti_tuner_credit(t, 0.05);
    assert_true(once < 1);
    tti_tuner_credit_settle(t); // a promise is judged once
    assert_true(tti_tuner_credit(t, 0.05) == once);
    tti_tuner_credit_open(t);
    assert_true(tti_tuner_credit(t, 0.05) == 1);
    fixture_close(&f);
    open_without(&f, 1u << TT_TUNER_RULE_CREDIT);
    trial(&f, 3, 0.05, 0.2);
    assert_true(tti_tuner_credit(f.tuner, 0.05) == 1);
    fixture_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_promises_are_believed_less_and_less),
        cmocka_unit_test(kept_promises_keep_the_credit),
        cmocka_unit_test(what_was_not_measured_or_has_nothing_to_beat_is_no_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
