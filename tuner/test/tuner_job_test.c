// Goal: over made-up jobs in virtual time the tuned run is never slower than 1.10 x the start
// setting, and near the best of 40 random settings; equal seeds give equal proposals. Method:
// job_model.h with the real estimator. `tuner_job_test JOBS [FIRST [SECONDS]]` is the long variant:
// it prints one JSON line and checks nothing. With a fourth argument `paper` it runs the paper's
// tuner and estimator instead; with another one, `guard+rest`, the tuner without these rules.
#include "job_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { JOBS_MAX = 2000 };

typedef struct tally {
    uint32_t count;
    double over_start[JOBS_MAX], over_best[JOBS_MAX];
} tally;

static int paper; // the long variant's
static unsigned without;

// A quarter of the jobs starts in a random setting, a quarter in the best of 40, the others in the
// defaults.
static void
run_job(uint64_t seed, double seconds, tally *out, job_result *result)
{
    static const job_start kinds[] = {JOB_START_DEFAULT, JOB_START_DEFAULT, JOB_START_RANDOM,
                                      JOB_START_BEST};
    job_model job;
    double best = job_make(&job, seed, kinds[seed % 4], seconds);
    tt_tuner_options options = job_options(seed);
    options.without = without;
    if (paper) {
        options.model = TT_TUNER_MODEL_PAPER;
        job.estimator = TT_EST_PAPER;
    }
    assert_int_equal(job_execute(&job, &options, NULL, seed, result), TT_OK);
    out->over_start[out->count] = result->seconds / seconds;
    out->over_best[out->count++] = result->seconds / best;
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

static tally jobs;

static void
test_jobs(void **state)
{
    TT_UNUSED(state);
    job_result result;
    for (uint64_t seed = 0; seed < 8; seed++)
        run_job(seed, 40, &jobs, &result);
    double worst = quantile(jobs.over_start, jobs.count, 1);
    double median = quantile(jobs.over_best, jobs.count, 0.5);
    print_message("worst tuned/start %.3f, median tuned/best of 40 %.3f\n", worst, median);
    assert_true(worst <= 1.10);
    assert_true(median <= 1.25);
}

static void
test_equal_seeds(void **state)
{
    TT_UNUSED(state);
    job_result one, again, other;
    tally scratch = {0};
    run_job(4, 20, &scratch, &one);
    run_job(4, 20, &scratch, &again);
    assert_true(one.digest == again.digest && one.seconds == again.seconds);
    run_job(8, 20, &scratch, &other);
    assert_true(one.digest != other.digest);
}

// A machine that changes, and delays that the loss does not bear, for the rules that need one.
static uint64_t
digest_without(unsigned rules, uint64_t seed)
{
    job_model job;
    job_result result;
    (void)job_make(&job, seed, JOB_START_DEFAULT, 20);
    job.slow_from_s = 4;
    job.slow_factor = 3;
    job.nan_staleness = 32;
    job.lag_borne = 24;
    tt_tuner_options options = job_options(seed);
    options.learning_rate = 1;
    options.without = rules;
    assert_int_equal(job_execute(&job, &options, NULL, seed, &result), TT_OK);
    return result.digest;
}

static void
test_every_rule_does_something(void **state)
{
    TT_UNUSED(state);
    enum { SEEDS = 6 };
    uint64_t all[SEEDS];
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        all[seed] = digest_without(0, seed);
    for (unsigned rule = 0; rule < TT_TUNER_RULES; rule++) {
        uint64_t seed = 0;
        while (seed < SEEDS && digest_without(1u << rule, seed) == all[seed])
            seed++;
        if (seed == SEEDS)
            fail_msg("nothing is different without %s", tt_tuner_rule_name(rule));
    }
}

// A job that merging makes much faster.
static void
merging_job(job_model *job, uint64_t seed)
{
    (void)job_make(job, seed, JOB_START_DEFAULT, 40);
    job->message = 1;
    job->merge_cost = 0.001;
}

// Such jobs, whose loss bears delays up to the limit at the first step. Returns in how many of them
// the last setting's delay was beyond that.
static uint32_t
beyond_the_first_limit(double limit, double decay, uint32_t count, double *nan_share)
{
    uint32_t beyond = 0;
    for (uint64_t seed = 0; seed < count; seed++) {
        job_model job;
        job_result result;
        merging_job(&job, seed);
        job.nan_strain = limit;
        job.decay = decay;
        tt_tuner_options options = job_options(seed);
        assert_int_equal(job_execute(&job, &options, NULL, seed, &result), TT_OK);
        beyond += job_delay(&result.last) > limit;
        *nan_share = fmax(*nan_share, result.nan_s / result.seconds);
    }
    return beyond;
}

static void
test_a_smaller_step_bears_longer_delays(void **state)
{
    TT_UNUSED(state);
    enum { JOBS = 8 };
    double lost = 0;
    uint32_t constant = beyond_the_first_limit(8, 0, JOBS, &lost);
    uint32_t falling = beyond_the_first_limit(8, 1e-3, JOBS, &lost);
    print_message("longer delays than the first step bears: %u of %d jobs with a constant step, "
                  "%u with one that falls; at most %.3f of the time where the loss rises\n",
                  constant, JOBS, falling, lost);
    assert_int_equal(constant, 0);
    assert_true(falling >= 3 * JOBS / 4);
    assert_true(lost < 0.05);
}

// Where the loss's curvature is known nothing is tried that it does not bear, and more than the
// start setting's delay is; where it is not, that has to be found out.
static void
test_curvature_ends_staleness(void **state)
{
    TT_UNUSED(state);
    enum { JOBS = 8 };
    double lost[2] = {0}, seconds[2] = {0};
    uint32_t longer = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++)
        for (int known = 0; known < 2; known++) {
            job_model job;
            job_result result;
            merging_job(&job, seed);
            job.lag_borne = 16;
            tt_tuner_options options = job_options(seed);
            options.learning_rate = known;
            assert_int_equal(job_execute(&job, &options, NULL, seed, &result), TT_OK);
            assert_true(job_lag(&result.last) <= job.lag_borne);
            lost[known] += result.nan_s;
            seconds[known] += result.seconds;
            if (known)
                longer += job_lag(&result.last) > 0.6 * job.lag_borne;
        }
    print_message("curvature unknown: %.2f of %.0f s where the loss rises; known: %.2f of %.0f s; "
                  "%u of %d jobs end near what is borne\n",
                  lost[0], seconds[0], lost[1], seconds[1], longer, JOBS);
    assert_true(lost[0] > 0);
    assert_true(lost[1] == 0);
    assert_true(longer >= JOBS / 2);
}

// A loss that has a long way to go looks for a while as if it fell no longer. Where the delays are
// known to be borne that is not their fault, and they stay.
static void
test_a_long_way_is_no_stall(void **state)
{
    TT_UNUSED(state);
    enum { JOBS = 6, ITERATIONS = 60000 };
    uint32_t longer = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        job_model job;
        job_result result;
        merging_job(&job, seed);
        job.lag_borne = 16;
        job.loss_noise = 0.3;
        job.power = 1;
        job.unit *= job.iterations / ITERATIONS;
        job.iterations = ITERATIONS;
        job.scale = ITERATIONS; // the loss halves from the first iteration to the last
        job.floor = 0;
        job.target = job_loss(&job, job.iterations);
        tt_tuner_options options = job_options(seed);
        options.learning_rate = 1;
        assert_int_equal(job_execute(&job, &options, NULL, seed, &result), TT_OK);
        longer += job_lag(&result.last) > 0.6 * job.lag_borne;
    }
    print_message("%u of %d jobs end near what is borne\n", longer, JOBS);
    assert_true(longer >= JOBS - 1);
}

// What is known of machines beforehand, that more workers and more servers are quicker, finds good
// settings sooner.
static void
test_trend_helps(void **state)
{
    TT_UNUSED(state);
    enum { JOBS = 30 };
    double log_ratio = 0;
    for (uint64_t seed = 0; seed < JOBS; seed++) {
        double seconds[2];
        for (int known = 0; known < 2; known++) {
            job_model job;
            job_result result;
            (void)job_make(&job, 100 + seed, JOB_START_DEFAULT, 10);
            tt_tuner_options options = job_options(seed);
            options.without = known ? 0 : 1u << TT_TUNER_RULE_TREND;
            assert_int_equal(job_execute(&job, &options, NULL, seed, &result), TT_OK);
            seconds[known] = result.seconds;
        }
        log_ratio += log(seconds[1] / seconds[0]) / JOBS;
    }
    print_message("with the trend known jobs take %.3f of the time\n", exp(log_ratio));
    assert_true(log_ratio < 0);
}

// A warm-up of the learning rate: what the loss bore under a setting that is long in force it bears
// no longer. Losses that are no numbers fill no window, which would be the end of the job.
static void
test_what_is_in_force_is_watched(void **state)
{
    TT_UNUSED(state);
    enum { JOBS = 8 };
    double lost = 0;
    uint32_t beyond = beyond_the_first_limit(24, -3e-5, JOBS, &lost);
    print_message("a step that grows: at most %.3f of the time where the loss rises\n", lost);
    assert_int_equal(beyond, 0);
    assert_true(lost < 0.05);
}

static void
test_rules_by_name(void **state)
{
    TT_UNUSED(state);
    unsigned bits;
    for (unsigned rule = 0; rule < TT_TUNER_RULES; rule++) {
        assert_true(tt_tuner_rules_read(tt_tuner_rule_name(rule), &bits));
        assert_int_equal(bits, 1u << rule);
    }
    assert_true(tt_tuner_rules_read("guard+drift", &bits));
    assert_int_equal(bits, 1u << TT_TUNER_RULE_GUARD | 1u << TT_TUNER_RULE_DRIFT);
    static const char *const wrong[] = {"",       "+",      "guards",     "guar",
                                        "guard+", "+guard", "guard,drift"};
    for (size_t i = 0; i < TT_COUNT_OF(wrong); i++)
        assert_false(tt_tuner_rules_read(wrong[i], &bits));
}

static int
long_variant(uint32_t count, uint32_t first, double seconds)
{
    job_result result;
    for (uint32_t i = 0; i < TT_MIN(count, (uint32_t)JOBS_MAX); i++)
        run_job(first + i, seconds, &jobs, &result);
    for (int k = 0; k < 2; k++) {
        double *values = k == 0 ? jobs.over_start : jobs.over_best;
        printf("{\"bench\":\"tuner_jobs\",\"case\":\"%s\",\"params\":\"%s\",\"seed\":%u,\"n\":%u,"
               "\"median\":%.4f,"
               "\"p25\":%.4f,\"p75\":%.4f,\"p90\":%.4f,\"max\":%.4f,\"unit\":\"ratio\"}\n",
               k == 0 ? "tuned_over_start" : "tuned_over_best_of_40", paper ? "paper" : "default",
               first, jobs.count, quantile(values, jobs.count, 0.5),
               quantile(values, jobs.count, 0.25), quantile(values, jobs.count, 0.75),
               quantile(values, jobs.count, 0.9), quantile(values, jobs.count, 1));
    }
    return 0;
}

int
main(int argc, char **argv)
{
    paper = argc > 4 && strcmp(argv[4], "paper") == 0;
    if (argc > 4 && !paper && !tt_tuner_rules_read(argv[4], &without))
        return 2;
    if (argc > 1)
        return long_variant((uint32_t)strtoul(argv[1], NULL, 10),
                            argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
                            argc > 3 ? strtod(argv[3], NULL) : 60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_equal_seeds),
        cmocka_unit_test(test_a_smaller_step_bears_longer_delays),
        cmocka_unit_test(test_curvature_ends_staleness),
        cmocka_unit_test(test_a_long_way_is_no_stall),
        cmocka_unit_test(test_trend_helps),
        cmocka_unit_test(test_what_is_in_force_is_watched),
        cmocka_unit_test(test_rules_by_name),
        cmocka_unit_test(test_every_rule_does_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
