// Goal: what an earlier run of a like job measured makes a job shorter; what is wrong, be it of
// another job or the very opposite of the truth, costs little and is found out; nothing that is
// told breaks the manager. Method: made-up jobs in virtual time (job_model.h), cold and warm, with
// the memory of a job whose constants all differ somewhat, of an unrelated job, and made up.
// `tuner_warm_test JOBS [FIRST [SECONDS]]` is the long variant: it prints JSON lines and checks
// nothing.
#include "job_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOBS_MAX = 2000 };
// Of the like job's constants, and what is said of it.
static const double SPREAD = 0.15, UNLIKE_SD = 0.15;

typedef struct warm_start {
    tt_setting start;
    tt_tuner_prior prior[TT_TUNER_PRIOR_ROWS];
    uint32_t count;
} warm_start;

// The best setting and the measurements of a run, the most of what fits.
static void
recall(const job_memory *memory, warm_start *out)
{
    out->start = memory->row[memory->best].setting;
    out->count = 0;
    for (uint32_t i = 0; i < memory->count && out->count < TT_TUNER_PRIOR_ROWS; i++)
        if (isfinite(memory->row[i].log_s))
            out->prior[out->count++] =
                (tt_tuner_prior){.setting = memory->row[i].setting,
                                 .log_s = memory->row[i].log_s,
                                 .var = memory->row[i].log_se * memory->row[i].log_se,
                                 .unlike_var = UNLIKE_SD * UNLIKE_SD};
}

// A lie: the fast is slow and the slow fast, and the best of all is a setting that takes three
// times as long as the job's own start setting (or the slowest of 400, when there is none).
static void
invert(const job_model *job, uint64_t seed, warm_start *memory)
{
    tt_rng rng;
    tt_setting own, trial, chosen;
    double slowest = 0, least = INFINITY;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 4);
    tt_space_start(&job->problem.space, &own);
    chosen = own;
    for (int i = 0; i < 400 && slowest < 3; i++) {
        job_random_setting(job, &rng, &trial);
        double ratio = job_duration(job, &trial) / job_duration(job, &own);
        if (ratio > slowest) {
            slowest = ratio;
            chosen = trial;
        }
    }
    for (uint32_t i = 0; i < memory->count; i++) {
        memory->prior[i].log_s *= -1;
        least = fmin(least, memory->prior[i].log_s);
    }
    memory->start = chosen;
    memory->count = TT_MIN(memory->count, (uint32_t)TT_TUNER_PRIOR_ROWS - 1);
    memory->prior[memory->count++] = (tt_tuner_prior){
        .setting = chosen, .log_s = least - 0.3, .var = 1e-4, .unlike_var = UNLIKE_SD * UNLIKE_SD};
}

static void
run_cold(job_model *job, uint64_t seed, job_memory *memory, job_result *result)
{
    tt_tuner_options options = job_options(seed);
    job->memory = memory;
    assert_int_equal(job_execute(job, &options, NULL, seed, result), TT_OK);
    job->memory = NULL;
}

static void
run_warm(const job_model *job, uint64_t seed, const warm_start *memory, job_result *result)
{
    tt_tuner_options options = job_options(seed);
    options.start = &memory->start;
    options.prior = memory->prior;
    options.prior_count = memory->count;
    assert_int_equal(job_execute(job, &options, NULL, seed, result), TT_OK);
}

enum { GOOD, RANDOM, OPPOSITE, CASES };
static const char *const case_names[CASES] = {"good", "random", "opposite"};

typedef struct tally {
    uint32_t count, fails[CASES];
    double over_cold[CASES][JOBS_MAX], over_best[CASES][JOBS_MAX], over_start[CASES][JOBS_MAX],
        tries_over_cold[CASES][JOBS_MAX];
} tally;

static tally jobs;
static job_memory memory;

static void
note(tally *out, int which, const job_result *warm, const job_result *cold, double own, double best)
{
    out->over_cold[which][out->count] = warm->seconds / cold->seconds;
    out->over_start[which][out->count] = warm->seconds / own;
    out->over_best[which][out->count] = warm->seconds / best;
    out->tries_over_cold[which][out->count] =
        (double)warm->summary.settings_tried / cold->summary.settings_tried;
    out->fails[which] += (uint32_t)warm->summary.memory_fails;
}

static void
run_job(uint64_t seed, double seconds, tally *out)
{
    job_model job, like, other;
    job_result cold, warm;
    static warm_start told;
    double best =
        job_make(&job, seed, seed % 4 == 3 ? JOB_START_RANDOM : JOB_START_DEFAULT, seconds);
    like = job;
    job_resemble(&like, seed, SPREAD);
    run_cold(&like, seed + 77777, &memory, &cold); // the earlier run
    recall(&memory, &told);
    run_cold(&job, seed, NULL, &cold);
    run_warm(&job, seed, &told, &warm);
    note(out, GOOD, &warm, &cold, seconds, best);
    invert(&job, seed, &told);
    run_warm(&job, seed, &told, &warm);
    note(out, OPPOSITE, &warm, &cold, seconds, best);
    (void)job_make(&other, seed + 5000, JOB_START_DEFAULT, seconds);
    run_cold(&other, seed, &memory, &warm);
    recall(&memory, &told);
    run_warm(&job, seed, &told, &warm);
    note(out, RANDOM, &warm, &cold, seconds, best);
    out->count++;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
quantile(double *values, uint32_t count, double p)
{
    qsort(values, count, sizeof *values, ascending);
    return values[TT_MIN((uint32_t)(p * count), count - 1)];
}

static void
test_memories(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 0; seed < 4; seed++)
        run_job(seed, 40, &jobs);
    double good = quantile(jobs.over_cold[GOOD], jobs.count, 0.5);
    double random = quantile(jobs.over_cold[RANDOM], jobs.count, 0.5);
    double opposite = quantile(jobs.over_cold[OPPOSITE], jobs.count, 0.5);
    double worst = quantile(jobs.over_start[OPPOSITE], jobs.count, 1);
    print_message("warm/cold, medians: good %.3f, random %.3f, opposite %.3f (worst opposite/own "
                  "start %.3f)\n",
                  good, random, opposite, worst);
    assert_true(good < 1);
    assert_true(random <= 1.25 && opposite <= 1.5);
    assert_true(worst <= 1.1);
    assert_true(jobs.fails[OPPOSITE] == 4);
}

static void
remember(uint64_t seed, job_model *job, warm_start *told)
{
    job_result cold;
    (void)job_make(job, seed, JOB_START_DEFAULT, 20);
    run_cold(job, seed, &memory, &cold);
    recall(&memory, told);
}

static void
test_equal_seeds(void **state)
{
    TT_UNUSED(state);
    static job_model job;
    static warm_start told;
    job_result one, again;
    remember(5, &job, &told);
    run_warm(&job, 5, &told, &one);
    run_warm(&job, 5, &told, &again);
    assert_true(one.digest == again.digest && one.seconds == again.seconds);
}

// The loss is NaN under what was remembered: the job goes to its own start setting and ends well.
static void
test_diverging_start(void **state)
{
    TT_UNUSED(state);
    static job_model job;
    static warm_start told;
    job_result warm;
    remember(6, &job, &told);
    told.start.value[JOB_STALENESS] = 64;
    job.nan_staleness = 32;
    run_warm(&job, 6, &told, &warm);
    assert_true(warm.nan_s < 0.1 * warm.seconds);
    assert_true(warm.summary.own_id == 1 && warm.seconds <= 20 * 1.1);
    tt_tuner_options options = job_options(6); // the other way it can rise: nothing else is known
    options.start = &told.start;
    assert_int_equal(job_execute(&job, &options, NULL, 6, &warm), TT_OK);
    assert_true(warm.nan_s < 0.1 * warm.seconds);
}

// A knob refuses the way back to the job's own start setting, or every second one.
static void
test_refusals(void **state)
{
    TT_UNUSED(state);
    static job_model job;
    static warm_start told;
    job_result warm;
    remember(7, &job, &told);
    for (uint32_t every = 1; every <= 2; every++) {
        job.refuse_every = every;
        run_warm(&job, 7, &told, &warm);
        assert_true(warm.refused > 0);
        assert_true(every == 2 || warm.summary.settings_tried == 1);
    }
}

// What is of no use is not used, and a setting that is not of the space is refused.
static void
test_rubbish(void **state)
{
    TT_UNUSED(state);
    static job_model job;
    static warm_start told, rubbish;
    job_result clean, warm;
    remember(8, &job, &told);
    told.count = TT_MIN(told.count, (uint32_t)TT_TUNER_PRIOR_ROWS - 4);
    assert_true(told.count > 0);
    run_warm(&job, 8, &told, &clean);
    rubbish = told;
    tt_tuner_prior *more = &rubbish.prior[rubbish.count];
    for (int i = 0; i < 4; i++)
        more[i] = told.prior[0];
    more[0].log_s = NAN;
    more[1].var = -1;
    more[2].run = TT_TUNER_PRIOR_RUNS;
    more[3].setting.value[JOB_SERVERS] = JOB_NODES;
    rubbish.count += 4;
    run_warm(&job, 8, &rubbish, &warm);
    assert_true(clean.digest == warm.digest);
    tt_tuner_options options = job_options(8);
    options.start = &more[3].setting;
    assert_int_equal(job_execute(&job, &options, NULL, 8, &warm), TT_INVALID);
}

static void
test_no_memory(void **state)
{
    TT_UNUSED(state);
    static job_model job;
    static warm_start told;
    remember(9, &job, &told);
    tt_tuner_options options = job_options(9);
    options.start = &told.start;
    options.prior = told.prior;
    options.prior_count = told.count;
    int finished = 0;
    for (uint64_t n = 1; !finished; n++) {
        tt_est_options est = {.target_loss = 0.3, .budget_iterations = INFINITY};
        tt_estimator *estimator = NULL;
        tt_tuner *tuner = NULL;
        assert_true(n < 100);
        assert_int_equal(tt_estimator_open(&est, &estimator, NULL), TT_OK);
        tt_mem_fail_nth(n);
        tt_status status =
            tt_tuner_open(&job.problem.space, estimator, &options, NULL, &tuner, NULL);
        finished = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_int_equal(status, finished ? TT_OK : TT_NOMEM);
        tt_tuner_close(tuner);
        tt_estimator_close(estimator);
    }
}

static void
print_figures(uint32_t first)
{
    static const char *const names[] = {"warm_over_cold", "warm_over_start", "warm_over_best_of_40",
                                        "tried_over_cold"};
    for (int c = 0; c < CASES; c++) {
        double *values[] = {jobs.over_cold[c], jobs.over_start[c], jobs.over_best[c],
                            jobs.tries_over_cold[c]};
        for (int k = 0; k < 4; k++)
            printf("{\"bench\":\"tuner_warm\",\"case\":\"%s/%s\",\"seed\":%u,\"n\":%u,"
                   "\"median\":%.4f,\"p25\":%.4f,\"p75\":%.4f,\"p90\":%.4f,\"max\":%.4f,"
                   "\"unit\":\"ratio\",\"memory_failed\":%u}\n",
                   case_names[c], names[k], first, jobs.count, quantile(values[k], jobs.count, 0.5),
                   quantile(values[k], jobs.count, 0.25), quantile(values[k], jobs.count, 0.75),
                   quantile(values[k], jobs.count, 0.9), quantile(values[k], jobs.count, 1),
                   jobs.fails[c]);
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memories),        cmocka_unit_test(test_equal_seeds),
        cmocka_unit_test(test_diverging_start), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rubbish),         cmocka_unit_test(test_no_memory),
    };
    if (argc == 1)
        return cmocka_run_group_tests(tests, NULL, NULL);
    uint32_t count = (uint32_t)strtoul(argv[1], NULL, 10);
    uint32_t first = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 60;
    for (uint32_t i = 0; i < TT_MIN(count, (uint32_t)JOBS_MAX); i++)
        run_job(first + i, seconds, &jobs);
    print_figures(first);
    return 0;
}
