// Goal: the time left is of use on real stochastic gradients too, whose curve is of no family's
// form. Method: asynchronous logistic regression with stale workers on generated data of random
// conditioning, batch and step; the target is the full loss at the end of a run that is still
// falling. What must hold is looser than on synthetic curves and was measured first.
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

enum { ROWS = 2000, COLUMNS = 30, PUSHES_MOST = 16000, EVERY = 20, CHECKPOINTS = 6 };

static struct {
    double x[ROWS][COLUMNS], y[ROWS];
    double weights[COLUMNS], pulled[TRACE_WORKERS_MAX][COLUMNS];
    double full_loss[PUSHES_MOST / EVERY + 1];
    tt_est_sample samples[PUSHES_MOST];
    uint32_t pushes, workers, batch;
    double step;
    int decaying;
} job;

static double
log_loss(double margin)
{
    return margin > 0 ? log1p(exp(-margin)) : -margin + log1p(exp(margin));
}

static double
margin_of(uint32_t row, const double *weights)
{
    double sum = 0;
    for (int c = 0; c < COLUMNS; c++)
        sum += job.x[row][c] * weights[c];
    return sum * job.y[row];
}

static double
full_loss(void)
{
    double sum = 0;
    for (uint32_t r = 0; r < ROWS; r++)
        sum += log_loss(margin_of(r, job.weights));
    return sum / ROWS;
}

static void
make_job(tt_rng *rng)
{
    const double decay = 1.5 * tt_rng_uniform(rng), noise = 0.2 + tt_rng_uniform(rng);
    double truth[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        truth[c] = 0.8 * tt_rng_normal(rng);
    for (uint32_t r = 0; r < ROWS; r++) {
        double z = noise * tt_rng_normal(rng);
        for (int c = 0; c < COLUMNS; c++) {
            job.x[r][c] = tt_rng_normal(rng) * pow(c + 1, -decay);
            z += job.x[r][c] * truth[c];
        }
        job.y[r] = z > 0 ? 1 : -1;
    }
    job.workers = 1 + (uint32_t)tt_rng_below(rng, 24);
    job.batch = 8u << tt_rng_below(rng, 4);
    job.step = 0.03 * exp(2.5 * tt_rng_uniform(rng) - 3 * tt_rng_uniform(rng));
    job.pushes = (uint32_t)(3000 * exp(1.6 * tt_rng_uniform(rng)));
    job.decaying = tt_rng_uniform(rng) < 0.3;
    memset(job.weights, 0, sizeof job.weights);
    memset(job.pulled, 0, sizeof job.pulled);
}

// One push of `worker`: gradient at what it pulled, applied to the weights of now. Returns the
// loss.
static double
step_worker(uint32_t worker, uint32_t push, tt_rng *rng)
{
    double gradient[COLUMNS] = {0}, loss = 0;
    for (uint32_t b = 0; b < job.batch; b++) {
        const uint32_t row = (uint32_t)tt_rng_below(rng, ROWS);
        const double margin = margin_of(row, job.pulled[worker]);
        loss += log_loss(margin) / job.batch;
        for (int c = 0; c < COLUMNS; c++)
            gradient[c] -= job.y[row] * job.x[row][c] / (1 + exp(margin)) / job.batch;
    }
    const double step = job.decaying ? job.step * 3.3 / sqrt(10 + push / 100.0) : job.step;
    for (int c = 0; c < COLUMNS; c++)
        job.weights[c] -= step * gradient[c];
    memcpy(job.pulled[worker], job.weights, sizeof job.weights);
    return loss;
}

// Trains; returns the push at which the (smoothed) full loss meets *target, or 0 when the end of
// the run is flat.
static uint32_t
train(uint64_t seed, double *target)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 99);
    make_job(&rng);
    trace t = {.curve = TRACE_CONSTANT, .start = 1, .cycle_s = 0.1, .jitter = 0.3};
    t.workers = job.workers;
    trace_begin(&t, seed);
    for (uint32_t push = 0; push < job.pushes; push++) {
        if (push % EVERY == 0)
            job.full_loss[push / EVERY] = full_loss();
        job.samples[push] = trace_next(&t);
        job.samples[push].examples = job.batch;
        job.samples[push].loss = step_worker(job.samples[push].worker, push, &rng);
    }
    const uint32_t last = (job.pushes - 1) / EVERY - 4;
    double smooth[PUSHES_MOST / EVERY + 1] = {0};
    for (uint32_t i = 4; i <= last; i++)
        for (uint32_t j = i - 4; j <= i + 4; j++)
            smooth[i] += job.full_loss[j] / 9;
    *target = smooth[last];
    uint32_t end = 4;
    while (smooth[end] > *target)
        end++;
    const double late = smooth[end * 4 / 5] - *target;
    return late < 0.015 * (smooth[4] - *target) ? 0 : end * EVERY;
}

static void
logistic_regression(void **state)
{
    TT_UNUSED(state);
    enum { SEEDS = 60 };
    static double error[SEEDS * CHECKPOINTS];
    double within = 0, held = 0, infinite = 0;
    uint32_t asked = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tt_est_options options = {.target_loss = NAN, .budget_iterations = INFINITY};
        const uint32_t end = train(seed, &options.target_loss);
        if (end < 1500)
            continue;
        tt_estimator *est;
        tt_est_window window;
        assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
        const double features[1] = {0.5};
        const uint32_t full = TT_MAX(tt_est_full_window(job.workers), 100u);
        uint32_t push = 0;
        for (int c = 0; c < CHECKPOINTS;) {
            tt_estimator_begin(est, 1, 0, job.workers, features, 1);
            for (uint32_t i = 0; i < full && push < end; i++)
                tt_estimator_add(est, &job.samples[push++]);
            tt_estimator_end(est, 1, &window);
            if (push < (0.3 + 0.1 * c) * end)
                continue;
            c++;
            tt_est_remaining left;
            tt_estimator_remaining(est, &left);
            const double truth = end - push;
            error[asked++] = fabs(log(left.iterations_median / truth));
            infinite += isinf(left.iterations_median) ? 1 : 0;
            within += left.iterations_median < 2 * truth && left.iterations_median > truth / 2;
            held += left.iterations_p10 <= truth && truth <= left.iterations_p90;
        }
        tt_estimator_close(est);
    }
    print_message("logistic regression, %u questions: within 2x %.3f, interval holds %.3f, "
                  "infinite %.3f; error median x%.3f, p90 x%.3f\n",
                  asked, within / asked, held / asked, infinite / asked,
                  exp(trace_quantile(error, asked, 0.5)), exp(trace_quantile(error, asked, 0.9)));
    assert_true(asked >= 120);
    assert_true(within >= 0.65 * asked);
    assert_true(held >= 0.75 * asked);
    assert_true(infinite <= 0.08 * asked);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(logistic_regression)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
