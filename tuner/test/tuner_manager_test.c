// Goal: the manager keeps its promises to the job whatever the job does: it says why, it survives
// refusals, NaN losses, short jobs and missing memory, and what it reports is consistent. Method:
// made-up jobs in virtual time (job_model.h) with provocations; callbacks that check every record.
#include "job_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

// What the callbacks saw.
typedef struct witness {
    const job_model *job;
    uint64_t windows, proposals, tries, realised, events, abandoned_windows;
    double last_s;
    uint64_t planned; // points of the start phase
    tt_setting first_try_setting;
    char last_reason[TT_TUNER_REASON_MAX], last_event[256];
} witness;

static void
on_window(void *self, const tt_tuner_window_record *record)
{
    witness *w = self;
    assert_true(record->index >= w->windows); // an empty one, cut by a switch, is not told
    w->windows = record->index + 1;
    assert_true(record->end_s >= record->begin_s && record->begin_s >= w->last_s);
    assert_int_equal(record->estimate.setting, record->setting_id);
    assert_true(tt_space_valid(&w->job->problem.space, record->setting));
    assert_true(!record->abandoned || record->setting_id != 0);
    w->abandoned_windows += (uint64_t)record->abandoned;
    w->last_s = record->begin_s;
}

static void
on_proposal(void *self, const tt_tuner_proposal *p)
{
    witness *w = self;
    assert_true(p->reason[0] != '\0');
    if (!isnan(p->realised_ratio)) {
        assert_true(p->realised_ratio > 0 && p->decision == TT_TUNER_TRY);
        w->realised++;
        return;
    }
    assert_int_equal(p->id, w->proposals);
    w->proposals++;
    assert_true(isfinite(p->predicted_s) && p->predicted_s > 0 && isfinite(p->cost_s));
    if (p->decision == TT_TUNER_TRY) {
        assert_true(p->ei_s > 0 && p->log_ratio_sd > 0);
        assert_true(tt_space_valid(&w->job->problem.space, p->setting));
        assert_non_null(strstr(p->reason, "to find out"));
        w->planned += strstr(p->reason, "start point") != NULL;
        if (w->tries++ == 0)
            w->first_try_setting = *p->setting;
    }
    (void)snprintf(w->last_reason, sizeof w->last_reason, "%s", p->reason);
}

static void
on_event(void *self, double now_s, const char *text)
{
    witness *w = self;
    assert_true(now_s > 0);
    w->events++;
    (void)snprintf(w->last_event, sizeof w->last_event, "%s", text);
}

static void
on_paper_window(void *self, const tt_tuner_window_record *record)
{
    witness *w = self;
    w->windows = record->index + 1;
    w->abandoned_windows += (uint64_t)record->abandoned;
    assert_true(tt_space_valid(&w->job->problem.space, record->setting));
}

static void
on_paper_proposal(void *self, const tt_tuner_proposal *p)
{
    witness *w = self;
    if (!isnan(p->realised_ratio))
        return;
    w->proposals++;
    w->planned += strstr(p->reason, "initial setting") != NULL;
    assert_true(isfinite(p->cost_s) && isfinite(p->ei_s));
    if (p->decision == TT_TUNER_STAY)
        assert_true(p->ei_s <= p->cost_s && p->setting_id == p->from_id);
    else if (strstr(p->reason, "initial setting") == NULL)
        assert_true(p->ei_s > p->cost_s && p->setting_id != p->from_id);
    assert_true(p->decision != TT_TUNER_HELD && p->decision != TT_TUNER_QUIT);
    assert_non_null(strstr(p->reason, "the paper's"));
}

static tt_status
run(const job_model *job, const tt_tuner_options *options, witness *w, job_result *result)
{
    tt_tuner_callbacks callbacks = {w, on_window, on_proposal, on_event};
    *w = (witness){.job = job};
    return job_execute(job, options, &callbacks, 9, result);
}

static void
test_records(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(5);
    (void)job_make(&job, 5, JOB_START_DEFAULT, 30);
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(w.tries > 5 && w.windows > w.tries);
    // Every trial but one that the end of the job cut off told what it brought.
    assert_true(w.realised == w.tries || w.realised + 1 == w.tries);
    assert_int_equal(w.proposals, r.summary.proposals);
    assert_int_equal(w.abandoned_windows, r.summary.settings_abandoned);
    assert_true(w.events >= r.summary.settings_abandoned);
    assert_true(w.planned >= 1 && r.summary.start_planned == 5);
    assert_true(r.summary.settings_tried <= w.tries + 1);
    // All time is accounted for, by phase.
    double phases = r.summary.start_s + r.summary.explore_s + r.summary.settled_s;
    assert_true(fabs(phases - r.seconds) < 0.05);
    // The ledger agrees with what only the model of the job knows: the start setting needs 30 s.
    // Rates of up to 20 % that nobody can measure in 30 s, and a few per cent of noise in the start
    // setting's pace, stand between them.
    assert_true(r.seconds < 20);
    assert_true(fabs(r.summary.ledger_s - (r.seconds - 30)) < 0.3 * 30);
    assert_true(r.summary.best_iteration_s < r.summary.start_iteration_s);
}

static void
test_disabled_and_empty(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(6);
    (void)job_make(&job, 6, JOB_START_DEFAULT, 10);
    options.enabled = 0;
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(w.windows > 10 && w.proposals == 0 && r.summary.switches == 0);
    assert_int_equal(r.summary.phase, TT_TUNER_OFF);
    assert_string_equal(r.summary.note, "tuning is turned off");
    assert_true(isfinite(r.summary.start_iteration_s));
    double untuned = r.seconds;
    options.enabled = 1;
    for (uint32_t k = 0; k < JOB_KNOBS; k++)
        job.problem.space.knob[k].fixed = 1;
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(r.summary.switches == 0 && fabs(r.seconds / untuned - 1) < 1e-9);
    assert_string_equal(r.summary.note, "no knob is free to be tuned");
}

// A job that is stopped and resumed every other second loses nothing of what its tuner knew: it
// tries no more settings and takes no longer. (The window that is open is cut each time.)
static void
compare_restarts(tt_tuner_model model, double seconds, uint32_t jobs, double longer_most)
{
    double log_ratio = 0, worst = 0;
    uint32_t tried[2] = {0, 0}, restarts = 0;
    for (uint64_t seed = 1; seed <= jobs; seed++) {
        job_model job;
        job_result r[2];
        tt_tuner_options options = job_options(seed);
        (void)job_make(&job, seed, JOB_START_DEFAULT, seconds);
        options.model = model;
        job.estimator = model == TT_TUNER_MODEL_PAPER ? TT_EST_PAPER : TT_EST_POOLED;
        for (int k = 0; k < 2; k++) {
            job.restart_every_s = k == 0 ? 0 : 2;
            assert_int_equal(job_execute(&job, &options, NULL, 9, &r[k]), TT_OK);
            tried[k] += r[k].summary.settings_tried;
            assert_int_equal(r[k].summary.start_planned, r[0].summary.start_planned);
        }
        restarts += r[1].restarts;
        log_ratio += log(r[1].seconds / r[0].seconds) / jobs;
        worst = fmax(worst, r[1].seconds / r[0].seconds);
    }
    print_message("%s, %u restarts: time ratio %.3f, worst %.2f; settings tried %u, without %u\n",
                  tt_tuner_model_name(model), restarts, exp(log_ratio), worst, tried[1], tried[0]);
    assert_true(restarts > 3 * jobs);
    assert_true(exp(log_ratio) < longer_most);
    assert_true(tried[1] < 1.2 * tried[0]);
}

static void
test_restarts(void **state)
{
    TT_UNUSED(state);
    compare_restarts(TT_TUNER_MODEL_TIME, 30, 24, 1.10);
    // Every window may send it elsewhere, so single jobs differ by a half either way.
    compare_restarts(TT_TUNER_MODEL_PAPER, 8, 16, 1.25);
}

// Of another way to tune, or where its rows hold what another estimator said: the tuner that
// refuses is as it was.
static void
refuse_of(const job_model *job, const tt_archive *saved, tt_tuner_model model, tt_est_method method)
{
    tt_estimator *estimator;
    tt_tuner *tuner;
    tt_archive in;
    tt_est_options est = {.target_loss = 0.2, .budget_iterations = INFINITY, .method = method};
    tt_tuner_options options = job_options(3);
    options.model = model;
    assert_int_equal(tt_estimator_open(&est, &estimator, NULL), TT_OK);
    assert_int_equal(tt_tuner_open(&job->problem.space, estimator, &options, NULL, &tuner, NULL),
                     TT_OK);
    tt_archive_read(&in, saved->bytes, saved->count);
    assert_int_equal(tt_tuner_load(tuner, &in, NULL), TT_INVALID);
    tt_tuner_begin(tuner, 0, 0);
    tt_tuner_close(tuner);
    tt_estimator_close(estimator);
}

static void
test_archive_of_another_way(void **state)
{
    TT_UNUSED(state);
    job_model job;
    tt_estimator *estimator;
    (void)job_make(&job, 3, JOB_START_DEFAULT, 30);
    for (int model = TT_TUNER_MODEL_TIME; model <= TT_TUNER_MODEL_PAPER; model++) {
        tt_tuner *tuner;
        tt_archive saved = {0};
        tt_est_options est = {.target_loss = 0.2, .budget_iterations = INFINITY};
        tt_tuner_options options = job_options(3);
        options.model = (tt_tuner_model)model;
        assert_int_equal(tt_estimator_open(&est, &estimator, NULL), TT_OK);
        assert_int_equal(tt_tuner_open(&job.problem.space, estimator, &options, NULL, &tuner, NULL),
                         TT_OK);
        tt_tuner_begin(tuner, 0, 0);
        tt_tuner_save(tuner, &saved);
        for (int other = TT_TUNER_MODEL_TIME; other <= TT_TUNER_MODEL_PAPER; other++)
            if (other != model)
                refuse_of(&job, &saved, (tt_tuner_model)other, TT_EST_POOLED);
        if (model == TT_TUNER_MODEL_PAPER)
            refuse_of(&job, &saved, TT_TUNER_MODEL_PAPER, TT_EST_PAPER);
        tt_archive_fini(&saved);
        tt_tuner_close(tuner);
        tt_estimator_close(estimator);
    }
}

// What was saved is refused by a tuner of another space, and damage is found; neither crashes.
static void
test_archive_refusals(void **state)
{
    TT_UNUSED(state);
    job_model job;
    tt_estimator *estimator;
    tt_tuner *tuner, *other;
    tt_archive saved = {0}, in;
    tt_est_options est = {.target_loss = 0.2, .budget_iterations = INFINITY};
    tt_tuner_options options = job_options(3), fewer = options;
    fewer.nodes = JOB_NODES - 1;
    (void)job_make(&job, 3, JOB_START_DEFAULT, 30);
    assert_int_equal(tt_estimator_open(&est, &estimator, NULL), TT_OK);
    assert_int_equal(tt_tuner_open(&job.problem.space, estimator, &options, NULL, &tuner, NULL),
                     TT_OK);
    tt_tuner_begin(tuner, 0, 0);
    tt_tuner_save(tuner, &saved);
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_tuner_open(&job.problem.space, estimator, &fewer, NULL, &other, NULL),
                     TT_OK);
    assert_int_equal(tt_tuner_load(other, &in, NULL), TT_INVALID);
    tt_tuner_begin(other, 0, 0); // it is as it was
    tt_tuner_close(other);
    for (size_t cut = 0; cut < saved.count; cut += 1 + saved.count / 97) {
        tt_archive_read(&in, saved.bytes, cut);
        assert_int_equal(tt_tuner_open(&job.problem.space, estimator, &options, NULL, &other, NULL),
                         TT_OK);
        assert_int_not_equal(tt_tuner_load(other, &in, NULL), TT_OK);
        tt_tuner_close(other);
    }
    tt_archive_fini(&saved);
    tt_tuner_close(tuner);
    tt_estimator_close(estimator);
}

static void
test_too_short(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(7);
    (void)job_make(&job, 7, JOB_START_DEFAULT, 60);
    job.iterations = 150; // seven windows
    job.scale = 30;
    job.target = job_loss(&job, job.iterations);
    tt_setting start;
    tt_space_start(&job.problem.space, &start);
    double alone = job_duration(&job, &start), cycle = job_time(&job, &start) * job_workers(&start);
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    // The first pushes take a full cycle that the mean pace does not know of.
    assert_true(w.proposals > 0 && r.seconds < 1.10 * alone + cycle);
    // When time is up after the first window, nothing is tried, and it says why.
    options.budget_s = 45 * job_time(&job, &start);
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_int_equal(r.summary.switches, 0);
    assert_non_null(strstr(r.summary.note, "too short for another trial"));
    assert_int_equal(r.summary.phase, TT_TUNER_OFF);
}

static void
test_refusals(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(8);
    (void)job_make(&job, 8, JOB_START_DEFAULT, 30);
    job.refuse_every = 3;
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(r.refused > 3 && r.seconds < 30);
    job.refuse_every = 1; // nothing ever changes
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(r.summary.switches == 0 && r.refused > 3);
    assert_true(strstr(w.last_event, "was refused: made to refuse") != NULL);
    assert_true(r.seconds < 1.10 * 30);
}

static void
test_nan_losses(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(12);
    (void)job_make(&job, 12, JOB_START_DEFAULT, 30);
    job.nan_staleness = 24;
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    // Each such trial ends with its window, and the setting is not used again.
    assert_true(r.nan_s < 0.25 * r.seconds);
    job.nan_staleness = 1; // the start setting itself: the tuner must only survive it
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
}

static void
test_dear_switches(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness cheap, dear;
    job_result r;
    tt_tuner_options options = job_options(13);
    (void)job_make(&job, 13, JOB_START_DEFAULT, 30);
    assert_int_equal(run(&job, &options, &cheap, &r), TT_OK);
    uint32_t switches = r.summary.switches;
    job.claimed_loss_s = 8;
    assert_int_equal(run(&job, &options, &dear, &r), TT_OK);
    // Once a switch is said to lose 8 of 30 s, few can pay; the first of each class could not know.
    assert_true(r.summary.switches < switches / 3);
    assert_true(r.summary.lost_s >= 8 || r.summary.switches == 0);
}

static void
test_warm_start(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(14);
    (void)job_make(&job, 14, JOB_START_DEFAULT, 30);
    tt_setting warm[2];
    tt_space_start(&job.problem.space, &warm[0]);
    warm[0].value[JOB_IN_FLIGHT] = 4;
    warm[0].value[JOB_PREFETCH] = 4;
    warm[1] = warm[0];
    warm[1].value[JOB_CHUNK] = 5; // not on the grid: ignored
    options.warm = warm;
    options.warm_count = 2;
    assert_int_equal(run(&job, &options, &w, &r), TT_OK);
    assert_true(tt_setting_equal(&w.first_try_setting, &warm[0]));
    assert_int_equal(r.summary.start_planned, 1);
}

static void
test_models_and_rounds(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    for (int model = TT_TUNER_MODEL_SUM; model <= TT_TUNER_MODEL_PRODUCT; model++) {
        tt_tuner_options options = job_options(16);
        (void)job_make(&job, 16, JOB_START_DEFAULT, 15);
        options.model = (tt_tuner_model)model;
        options.bulk_synchronous = model == TT_TUNER_MODEL_SUM; // W = 1 in all rules
        assert_int_equal(run(&job, &options, &w, &r), TT_OK);
        assert_true(w.tries > 3 && r.seconds < 1.10 * 15);
    }
}

// The paper's tuner: ten random settings whatever they cost, then its gate alone; no words of ours.
static void
test_paper(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r, again;
    tt_tuner_options options = job_options(17);
    tt_tuner_callbacks callbacks = {&w, on_paper_window, on_paper_proposal, NULL};
    (void)job_make(&job, 17, JOB_START_DEFAULT, 5);
    job.estimator = TT_EST_PAPER;
    options.model = TT_TUNER_MODEL_PAPER;
    w = (witness){.job = &job};
    assert_int_equal(job_execute(&job, &options, &callbacks, 9, &r), TT_OK);
    assert_int_equal(r.summary.start_planned, 10);
    assert_int_equal(w.planned, 10);
    assert_true(w.windows > 11 && w.proposals > 10);
    assert_int_equal(w.abandoned_windows, 0);
    w = (witness){.job = &job};
    assert_int_equal(job_execute(&job, &options, &callbacks, 9, &again), TT_OK);
    assert_true(r.digest == again.digest && r.seconds == again.seconds);
    // with the pooled estimate of what is left, and where every third switch is refused
    job.estimator = TT_EST_POOLED;
    job.refuse_every = 3;
    w = (witness){.job = &job};
    assert_int_equal(job_execute(&job, &options, &callbacks, 9, &r), TT_OK);
    assert_true(r.refused > 0);
}

// Where losses are no numbers a window never fills: the trial must end all the same.
static void
test_paper_nan_losses(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w = {0};
    job_result r;
    tt_tuner_options options = job_options(18);
    tt_tuner_callbacks callbacks = {&w, on_paper_window, NULL, NULL};
    (void)job_make(&job, 18, JOB_START_DEFAULT, 5);
    job.nan_staleness = 20; // the start setting has 16
    job.estimator = TT_EST_PAPER;
    options.model = TT_TUNER_MODEL_PAPER;
    w.job = &job;
    assert_int_equal(job_execute(&job, &options, &callbacks, 9, &r), TT_OK);
    assert_true(r.summary.settings_abandoned > 0 && w.abandoned_windows > 0);
    assert_int_equal(w.abandoned_windows, r.summary.settings_abandoned);
    assert_true(r.nan_s < 0.5 * r.seconds);
}

static void
test_refused_options(void **state)
{
    TT_UNUSED(state);
    job_model job;
    witness w;
    job_result r;
    tt_tuner_options options = job_options(1);
    (void)job_make(&job, 1, JOB_START_DEFAULT, 10);
    options.guard = -0.1;
    assert_int_equal(run(&job, &options, &w, &r), TT_INVALID);
    options.guard = 0.1;
    options.model = (tt_tuner_model)7;
    assert_int_equal(run(&job, &options, &w, &r), TT_INVALID);
    options.model = TT_TUNER_MODEL_TIME;
    options.budget_s = NAN;
    assert_int_equal(run(&job, &options, &w, &r), TT_INVALID);
    options.budget_s = 0;
    tt_setting start;
    tt_space_start(&job.problem.space, &start);
    options.model = TT_TUNER_MODEL_PAPER;
    options.warm = &start;
    options.warm_count = 1; // of which it takes nothing
    assert_int_equal(run(&job, &options, &w, &r), TT_INVALID);
    options.warm_count = 0;
    options.model = TT_TUNER_MODEL_TIME;
    job.problem.space.knob[JOB_CHUNK].start = 5000; // not a power of two
    assert_int_equal(run(&job, &options, &w, &r), TT_INVALID);
}

static void
test_out_of_memory(void **state)
{
    TT_UNUSED(state);
    job_model job;
    job_result r;
    witness w;
    tt_tuner_options options = job_options(3);
    (void)job_make(&job, 3, JOB_START_DEFAULT, 4);
    int finished = 0;
    // The first allocations one by one, later ones further and further apart.
    for (uint64_t n = 1; n < 100000 && !finished; n += 1 + n / 3) {
        tt_mem_fail_nth(n);
        tt_status status = run(&job, &options, &w, &r);
        finished = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        // Reports swallow a failure: a prediction is then not known.
        assert_true(status == TT_NOMEM || status == TT_OK);
        assert_true(!finished || status == TT_OK);
    }
    assert_true(finished);
}

static void
test_names(void **state)
{
    TT_UNUSED(state);
    assert_string_equal(tt_tuner_phase_name(TT_TUNER_SETTLED), "settled");
    assert_string_equal(tt_tuner_phase_name((tt_tuner_phase)99), "unknown");
    assert_string_equal(tt_tuner_decision_name(TT_TUNER_HELD), "held");
    assert_string_equal(tt_tuner_decision_name((tt_tuner_decision)99), "unknown");
    assert_string_equal(tt_tuner_model_name(TT_TUNER_MODEL_PAPER), "paper");
    assert_string_equal(tt_tuner_model_name((tt_tuner_model)99), "unknown");
    tt_tuner_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_disabled_and_empty),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_archive_refusals),
        cmocka_unit_test(test_archive_of_another_way),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nan_losses),
        cmocka_unit_test(test_dear_switches),
        cmocka_unit_test(test_warm_start),
        cmocka_unit_test(test_models_and_rounds),
        cmocka_unit_test(test_paper),
        cmocka_unit_test(test_paper_nan_losses),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
