// Goal: a trial that was broken off leaves a row that lasts only until the setting is measured to
// the end of a window: that takes its place, and later windows join it. Method: rows entered by
// hand, and made-up jobs with hiccups (job_model.h), whose settings at the end must be known as
// their last windows left them.
#include "tuner_fixture.h"

enum { JOBS = 12 };

static void
enter(tt_tuner *t, double log_t, double weight, int broken_off)
{
    tt_error err = {0};
    const tti_measured m = {
        .log_t = log_t, .var = 0.01, .weight = weight, .broken_off = broken_off};
    assert_int_equal(tti_tuner_add_row(t, &m, &err), TT_OK);
    t->tried[t->current].abandoned = broken_off;
}

static void
a_full_window_takes_the_place_of_a_broken_off_one(void **state)
{
    TT_UNUSED(state);
    fixture f;
    const tt_tuner_options options = job_options(1);
    fixture_open(&f, &options);
    tt_tuner *t = f.tuner;
    const tti_tried *s = &t->tried[0];
    enter(t, -3, 40, 1);
    assert_int_equal(tt_gp_rows(t->gp), 1);
    enter(t, -5, 100, 0);
    assert_int_equal(tt_gp_rows(t->gp), 1);
    assert_true(s->log_t == -5 && s->row_weight == 100 && s->row_windows == 1);
    for (int i = 0; i < 3; i++)
        enter(t, -5.4, 100, 0);
    assert_int_equal(tt_gp_rows(t->gp), 1);
    assert_true(fabs(s->log_t + 5.3) < 1e-12 && s->row_windows == 4);
    fixture_close(&f);
}

// Of every setting: whether the last of its windows that counts was broken off.
typedef struct witness {
    int broken_off[JOB_MEMORY_MAX];
    uint32_t recovered; // measured to the end later
} witness;

static void
on_window(void *self, const tt_tuner_window_record *record)
{
    witness *w = self;
    const int counts =
        !record->overlaps_transition && isfinite(record->estimate.seconds_per_iteration);
    if (record->setting_id >= JOB_MEMORY_MAX || !(record->abandoned || counts))
        return;
    w->recovered += w->broken_off[record->setting_id] && !record->abandoned;
    w->broken_off[record->setting_id] = record->abandoned;
}

static void
settings_are_known_as_their_last_windows_left_them(void **state)
{
    TT_UNUSED(state);
    uint32_t recovered = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        static job_memory memory;
        job_model job;
        job_result r;
        witness w = {.recovered = 0};
        (void)job_make(&job, 1000 + seed, JOB_START_DEFAULT, 40);
        memory = (job_memory){.count = 0};
        job.memory = &memory;
        job.hiccup_s = 0.3;
        const tt_tuner_callbacks callbacks = {&w, on_window, NULL, NULL};
        const tt_tuner_options options = job_options(seed);
        assert_int_equal(job_execute(&job, &options, &callbacks, seed, &r), TT_OK);
        for (uint32_t i = 0; i < memory.count; i++)
            assert_int_equal(memory.row[i].abandoned, w.broken_off[i]);
        recovered += w.recovered;
    }
    print_message("%u settings were broken off and measured to the end later\n", recovered);
    assert_true(recovered > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_window_takes_the_place_of_a_broken_off_one),
        cmocka_unit_test(settings_are_known_as_their_last_windows_left_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
