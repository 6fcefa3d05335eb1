// Goal: a machine that becomes slower or faster midway is noticed soon and said so, exploring
// begins again, and a noisy machine that does not change is not taken for one that does. Method:
// made-up jobs in virtual time (job_model.h) whose machine changes by a factor at a given second;
// false alarms are counted over stationary jobs, with and without bursts of other load.
// `tuner_drift_test JOBS` counts over so many jobs and checks nothing.
#include "tuner_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct witness {
    double first_s; // when a change was first reported; NAN = never
    double factor;  // that it spoke of
    uint32_t events;
    uint64_t tries_after;
    double change_s; // windows that begin later, until it is reported
    uint32_t windows;
    uint32_t doubts_before, doubts_after; // known settings measured for what trials took
} witness;

static void
on_window(void *self, const tt_tuner_window_record *record)
{
    witness *w = self;
    w->windows += record->begin_s >= w->change_s && w->events == 0;
}

static void
on_event(void *self, double now_s, const char *text)
{
    witness *w = self;
    const char *takes = strstr(text, "takes ");
    if (strncmp(text, TT_TUNER_CHANGED, strlen(TT_TUNER_CHANGED)) != 0)
        return;
    assert_non_null(takes);
    if (w->events++ == 0) {
        w->first_s = now_s;
        w->factor = strtod(takes + 6, NULL);
    }
}

static void
on_proposal(void *self, const tt_tuner_proposal *p)
{
    witness *w = self;
    const int asked = isnan(p->realised_ratio);
    const int doubts = asked && strstr(p->reason, "did not take what was expected") != NULL;
    w->tries_after += asked && p->decision == TT_TUNER_TRY && w->events > 0;
    w->doubts_before += doubts && p->now_s < w->change_s;
    w->doubts_after += doubts && p->now_s >= w->change_s && w->events == 0;
}

static void
run(const job_model *job, uint64_t seed, witness *w, job_result *result)
{
    tt_tuner_callbacks callbacks = {w, on_window, on_proposal, on_event};
    tt_tuner_options options = job_options(seed);
    *w = (witness){.first_s = NAN, .change_s = job->slow_from_s > 0 ? job->slow_from_s : INFINITY};
    assert_int_equal(job_execute(job, &options, &callbacks, seed, result), TT_OK);
    assert_int_equal(result->summary.drifts, w->events);
}

// Alarms per job over stationary jobs of `seconds` (untuned).
static double
false_alarms(uint32_t jobs, double seconds, double burst_s, double hiccup_s)
{
    uint32_t alarmed = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < jobs; seed++) {
        job_model job;
        job_result r;
        witness w;
        (void)job_make(&job, 1000 + seed, JOB_START_DEFAULT, seconds);
        job.burst_s = burst_s;
        job.hiccup_s = hiccup_s;
        run(&job, seed, &w, &r);
        alarmed += w.events > 0;
        sum += log(r.seconds);
    }
    print_message(
        "stationary jobs of %.0f s untuned, bursts of %.2f s, hiccups of %.2f s: %u of %u raised "
        "an alarm; they took %.3f s (geometric mean)\n",
        seconds, burst_s, hiccup_s, alarmed, jobs, exp(sum / jobs));
    return (double)alarmed / jobs;
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct outcome {
    uint32_t seen, jobs;
    double delay[400]; // seconds until it was said
    double windows[400];
    double factor[400];
    uint32_t doubted, doubts_before; // jobs in which trials had a known setting measured; times
} outcome;

// Jobs whose machine changes by `factor` at `share` of what the tuned job takes.
static void
changes(uint32_t jobs, double factor, double share, outcome *out)
{
    *out = (outcome){0};
    for (uint64_t seed = 0; seed < jobs && out->jobs < 400; seed++) {
        job_model job;
        job_result r;
        witness w;
        (void)job_make(&job, 2000 + seed, JOB_START_DEFAULT, 40);
        run(&job, seed, &w, &r);
        job.slow_from_s = share * r.seconds;
        job.slow_factor = factor;
        run(&job, seed, &w, &r);
        out->jobs++;
        out->doubted += w.doubts_after > 0;
        out->doubts_before += w.doubts_before;
        if (isnan(w.first_s) || w.first_s < job.slow_from_s)
            continue;
        out->factor[out->seen] = w.factor;
        out->windows[out->seen] = w.windows;
        out->delay[out->seen++] = w.first_s - job.slow_from_s;
    }
    qsort(out->delay, out->seen, sizeof(double), ascending);
    qsort(out->factor, out->seen, sizeof(double), ascending);
    qsort(out->windows, out->seen, sizeof(double), ascending);
    if (out->seen > 0)
        print_message(
            "machine %.2gx at %.2g: noticed in %u of %u jobs, after %.2f s (median), "
            "%.2f s (p90), %.0f and %.0f windows; said %.2fx (median); doubts in %u (%u)\n",
            factor, share, out->seen, out->jobs, out->delay[out->seen / 2],
            out->delay[out->seen * 9 / 10], out->windows[out->seen / 2],
            out->windows[out->seen * 9 / 10], out->factor[out->seen / 2], out->doubted,
            out->doubts_before);
}

static void
stationary_machines_raise_few_alarms(void **state)
{
    TT_UNUSED(state);
    assert_true(false_alarms(200, 10, 0, 0) <= 0.02);
    assert_true(false_alarms(200, 5, 0.05, 0) <= 0.10);
    // A trial that is broken off for what something else did: later windows look three times as
    // fast.
    assert_true(false_alarms(40, 10, 0, 0.1) <= 0.05);
}

static void
slower_machine_is_noticed(void **state)
{
    TT_UNUSED(state);
    static outcome o;
    changes(24, 2, 0.4, &o);
    assert_true(o.seen >= 0.9 * o.jobs);
    // Where it changes among trials: what they should have taken gives it away, also where nothing
    // is known well yet (in 19 jobs when this was written), and seldom if not.
    assert_true(o.doubted >= 14 && o.doubts_before <= 3);
    assert_true(o.windows[o.seen * 9 / 10] <= 5);
    assert_true(o.delay[o.seen / 2] < 2);
    assert_true(o.factor[o.seen / 2] > 1.8 && o.factor[o.seen / 2] < 2.2);
    changes(24, 0.5, 0.4, &o);
    // While trial follows trial a faster machine looks like better settings, and is seen only when
    // an old one is measured again: 15 of 24 when this was written, and none with a wrong factor.
    assert_true(o.seen >= 11);
    assert_true(o.factor[0] > 0.4 && o.factor[o.seen - 1] < 0.6);
}

// A setting of one window that ended at `seen_s`.
static void
enter_seen(fixture *f, double in_flight, double log_t, double seen_s)
{
    tt_error err = {0};
    tt_tuner *t = f->tuner;
    tt_setting setting = t->own.setting;
    const tti_measured m = {.log_t = log_t, .var = 1e-4, .weight = 1000};
    setting.value[JOB_IN_FLIGHT] = in_flight;
    t->current = tti_tuner_adopt(t, &setting);
    assert_int_equal(tti_tuner_add_row(t, &m, &err), TT_OK);
    t->tried[t->current].pace.n = 1;
    t->tried[t->current].seen_s = seen_s;
}

// Trials that were faster than promised are the best known then: what was seen before them is
// measured.
static void
surprising_trials_do_not_speak_for_themselves(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    fixture f;
    tt_tuner_options options = job_options(1);
    fixture_open(&f, &options);
    enter_seen(&f, 1, -4, 1);
    enter_seen(&f, 4, -5, 2);
    const uint32_t best_before = f.tuner->current;
    enter_seen(&f, 8, -6, 4);
    enter_seen(&f, 16, -7, 5);
    assert_int_equal(tti_tuner_refit(f.tuner, &err), TT_OK);
    assert_int_equal(tti_tuner_incumbent(f.tuner, 0), f.tuner->current);
    f.tuner->drift.off_since_s = 3;
    f.tuner->drift.off_sum = -5.5;
    f.tuner->drift.off_trials = -1;
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), TTI_TUNER_NOBODY);
    f.tuner->drift.off_trials = -2;
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), best_before);
    f.tuner->drift.off_sum = -4.5;
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), TTI_TUNER_NOBODY);
    f.tuner->drift.off_sum = -5.5;
    f.tuner->drift.off_since_s = 0.5; // nothing was seen before
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), TTI_TUNER_NOBODY);
    fixture_close(&f);
}

// A setting that is known well is asked instead of the best one only if it is about as fast.
static void
slow_settings_are_not_asked(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    fixture f;
    tt_tuner_options options = job_options(1);
    fixture_open(&f, &options);
    enter_seen(&f, 1, -4, 1);
    const uint32_t slow = f.tuner->current;
    f.tuner->tried[slow].pace = (tti_pace){.n = 3, .mean = -4};
    enter_seen(&f, 4, -5, 2);
    const uint32_t best = f.tuner->current;
    f.tuner->tried[best].pace = (tti_pace){.n = 1, .mean = -5};
    assert_int_equal(tti_tuner_refit(f.tuner, &err), TT_OK);
    f.tuner->drift = (tti_drift){.off_trials = 2, .off_sum = 5.5, .off_since_s = 3};
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), best);
    f.tuner->tried[slow].pace.mean = -4.95;
    assert_int_equal(tti_tuner_drift_recheck(f.tuner, 0), slow);
    fixture_close(&f);
}

// A trial that takes e^z of what was promised, with an s.d. of 1.
static void
note(fixture *f, double z, int broken_off)
{
    tt_tuner *t = f->tuner;
    const tti_measured m = {.log_t = z, .var = 1e-12, .weight = 1000, .broken_off = broken_off};
    t->trial = 1;
    t->ref_t = 1;
    t->expected_t = 0;
    t->expected_sd = sqrt(1 - 0.01); // and windows' spread before any was compared, .1
    assert_int_equal(tti_tuner_drift_watch(t, &m), 0);
}

static void
assert_sum(const fixture *f, int trials, double sum)
{
    assert_int_equal(f->tuner->drift.off_trials, trials);
    assert_true(fabs(f->tuner->drift.off_sum - sum) < 1e-9);
}

static void
trials_add_up_to_one_side(void **state)
{
    TT_UNUSED(state);
    fixture f;
    tt_tuner_options options = job_options(1);
    fixture_open(&f, &options);
    enter_seen(&f, 4, -5, 1);
    enter_seen(&f, 8, -5, 2);
    note(&f, 0.9, 0); // within the allowance
    assert_sum(&f, 0, 0);
    note(&f, 2, 0);
    assert_sum(&f, 1, 2);
    note(&f, 3, 0);
    assert_sum(&f, 2, 5);
    note(&f, -0.5, 0); // 2 and this, less 1, are left: it goes on
    assert_sum(&f, 3, 4.5);
    note(&f, -1.5, 0); // nothing is left of 1.5: anew, to the other side
    assert_sum(&f, -1, -1.5);
    note(&f, -3, 1); // broken off, and yet fast: says nothing
    assert_sum(&f, 0, 0);
    fixture_close(&f);
}

// After a change settings are tried again, and the ledger prices each part at its own speed.
static void
exploring_begins_again(void **state)
{
    TT_UNUSED(state);
    uint64_t tries = 0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        job_model job;
        job_result r, still;
        witness w;
        (void)job_make(&job, 3000 + seed, JOB_START_DEFAULT, 40);
        run(&job, seed, &w, &still);
        job.slow_from_s = 0.5 * still.seconds;
        job.slow_factor = 2;
        run(&job, seed, &w, &r);
        tries += w.tries_after;
        // the second half takes twice as long, and some is lost to trying again
        print_message("changed at half: %.2fx the time, %u changes seen, ledger %.2f s\n",
                      r.seconds / still.seconds, w.events, r.summary.ledger_s);
        assert_true(r.seconds < 1.85 * still.seconds);
        // tuned against the start setting, which would have felt the change too
        assert_true(r.summary.ledger_s < 0.1 * r.seconds);
    }
    assert_true(tries >= 3);
}

// What is suspected and what was found goes through checkpoints, and what a setting did before the
// change is still told of it.
static void
change_is_noticed_across_restarts(void **state)
{
    TT_UNUSED(state);
    static job_memory memory;
    uint32_t seen = 0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        job_model job;
        job_result r;
        witness w;
        uint64_t told = 0;
        (void)job_make(&job, 4000 + seed, JOB_START_DEFAULT, 30);
        job.restart_every_s = 1;
        job.slow_from_s = 4;
        job.slow_factor = 2;
        job.memory = &memory;
        run(&job, seed, &w, &r);
        seen += w.events > 0 && w.first_s > job.slow_from_s;
        for (uint32_t i = 0; i < memory.count; i++)
            told += memory.row[i].iterations;
        assert_true(r.restarts >= 6);
        assert_int_equal(told, r.iterations);
    }
    assert_true(seen >= 2);
}

int
main(int argc, char **argv)
{
    if (argc > 1) {
        static outcome o;
        const uint32_t jobs = (uint32_t)strtoul(argv[1], NULL, 10);
        (void)false_alarms(jobs, 40, 0, 0);
        (void)false_alarms(jobs, 40, 0.05, 0);
        (void)false_alarms(jobs, 40, 0.3, 0);
        for (uint32_t i = 1; i <= 2; i++) {
            changes(jobs, 2, 0.2 * i, &o);
            changes(jobs, 1.3, 0.2 * i, &o);
            changes(jobs, 0.5, 0.2 * i, &o);
        }
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stationary_machines_raise_few_alarms),
        cmocka_unit_test(slower_machine_is_noticed),
        cmocka_unit_test(surprising_trials_do_not_speak_for_themselves),
        cmocka_unit_test(slow_settings_are_not_asked),
        cmocka_unit_test(trials_add_up_to_one_side),
        cmocka_unit_test(exploring_begins_again),
        cmocka_unit_test(change_is_noticed_across_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
