// Goal: every edge case that estimator-math, section 5, names is met by its rule; those of windows
// are in est_window_test.c.
// Method: one test a row, named after it, driving the public interface with samples made by hand or
// by a simulated job.
#include "est_family.h"
#include "est_feed.h"
#include "estimator_traces.h"

static void
nan_or_inf_is_dropped_and_counted(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    for (int i = 0; i < 60; i++)
        push(&f, i % 11 == 5 ? (i % 2 ? NAN : INFINITY) : 0.731 - 1e-3 * i);
    const tt_est_window window = end(&f, 1);
    assert_int_equal(window.kept, 55);
    assert_int_equal(window.dropped, 5);
    assert_int_equal(window.flags & TT_EST_DIVERGING, 0);
    assert_true(isfinite(window.loss));
    assert_int_equal(tt_estimator_iterations(f.est), 60);
    tt_estimator_close(f.est);
}

// What was saved answers as the original does, and goes on learning as it does.
static void
saved_and_restored(void **state)
{
    TT_UNUSED(state);
    tt_archive saved = {0}, in;
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    for (int i = 0; i < 9000; i++)
        push(&f, 0.25 + 0.6 * exp(-1.1e-4 * i) + 0.02 * tt_rng_normal(&f.rng));
    (void)end(&f, 1);
    begin(&f, 2);
    push_noisy(&f, 500, 0.47, 0.46, 0.02);
    tt_estimator_save(f.est, &saved);
    (void)end(&f, 1); // which the restored one finds done
    feed g = f;
    g.est = open_with(0.2);
    tt_archive_read(&in, saved.bytes, saved.count - 1);
    assert_int_equal(tt_estimator_load(g.est, &in), TT_CORRUPT);
    assert_int_equal(tt_estimator_iterations(g.est), 0); // as it was opened
    tt_archive_read(&in, saved.bytes, saved.count);
    assert_int_equal(tt_estimator_load(g.est, &in), TT_OK);
    for (int k = 0; k < 2; k++) {
        tt_est_remaining a = remaining(&f), b = remaining(&g);
        assert_int_equal(tt_estimator_iterations(f.est), tt_estimator_iterations(g.est));
        // Without the padding behind the last field.
        assert_memory_equal(&a, &b, offsetof(tt_est_remaining, flags) + sizeof a.flags);
        begin(&f, 2);
        begin(&g, 2);
        push_noisy(&f, 3000, 0.46, 0.41, 0.02);
        push_noisy(&g, 3000, 0.46, 0.41, 0.02);
    }
    tt_archive_fini(&saved);
    tt_estimator_close(f.est);
    tt_estimator_close(g.est);
}

static void
three_invalid_in_a_row_mark_diverged(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    push_noisy(&f, 97, 0.9, 0.9, 0.01);
    push(&f, NAN);
    push(&f, INFINITY);
    tt_est_window window;
    tt_estimator_window(f.est, &window);
    assert_int_equal(window.flags & TT_EST_DIVERGING, 0);
    push(&f, -INFINITY);
    tt_estimator_window(f.est, &window);
    assert_int_not_equal(window.flags & TT_EST_DIVERGING, 0);
    tt_estimator_close(f.est);
}

static void
over_a_fifth_invalid_marks_diverged(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.2), 4);
    begin(&f, 1);
    for (int i = 0; i < 60; i++)
        push(&f, i % 4 == 1 ? NAN : 0.8);
    assert_int_not_equal(end(&f, 1).flags & TT_EST_DIVERGING, 0);
    begin(&f, 1);
    for (int i = 0; i < 60; i++)
        push(&f, i % 6 == 1 ? NAN : 0.8);
    assert_int_equal(end(&f, 1).flags & TT_EST_DIVERGING, 0);
    tt_estimator_close(f.est);
}

// Shifted losses: from 0.4 down to -0.6; the target is negative too.
static void
loss_at_or_below_zero_is_never_logged(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(-0.55), 4);
    for (int w = 0; w < 20; w++) {
        begin(&f, 1);
        for (int i = 0; i < 100; i++)
            push(&f, -0.6 + exp(-(double)f.sequence / 900) + 0.02 * tt_rng_normal(&f.rng));
        const tt_est_window window = end(&f, 1);
        assert_true(isfinite(window.noise) && isfinite(window.loss));
        const double stage = tt_estimator_stage(f.est);
        assert_true(stage >= 0 && stage <= 1.2);
    }
    const tt_est_remaining left = remaining(&f);
    assert_int_equal(left.flags, 0);
    const double truth = 900 * log(1 / 0.05) - 2000;
    assert_true(left.iterations_p10 < 1.5 * truth && left.iterations_p90 > truth / 1.5);
    assert_true(fabs(tt_estimator_stage(f.est) - (1 - exp(-2000 / 900.0)) / 0.95) < 0.06);
    tt_estimator_close(f.est);
}

static void
smoothed_loss_at_target_leaves_nothing_to_do(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.5), 4);
    begin(&f, 1);
    push_noisy(&f, 200, 0.9, 0.52, 0.02);
    push_noisy(&f, 25, 0.45, 0.45, 0.02);
    (void)end(&f, 1);
    tt_est_remaining left = remaining(&f);
    assert_true(left.log_iterations == 0 && left.iterations_median == 0);
    assert_true(left.iterations_p90 == 0 && left.log_iterations_sd < 0.1);
    assert_int_equal(left.flags & TT_EST_REACHED, 0); // one block is not enough
    begin(&f, 1);
    push_noisy(&f, 25, 0.45, 0.45, 0.02);
    assert_int_not_equal(end(&f, 1).flags & TT_EST_REACHED, 0);
    left = remaining(&f);
    assert_int_not_equal(left.flags & TT_EST_REACHED, 0);
    tt_est_eta eta;
    tt_estimator_eta(f.est, log(0.03), 0.1, 0, 0.05, &eta);
    assert_true(eta.seconds_median == 0);
    begin(&f, 1);
    push_noisy(&f, 25, 0.53, 0.53, 0.02); // and up again
    assert_int_equal(end(&f, 1).flags & TT_EST_REACHED, 0);
    tt_estimator_close(f.est);
}

static void
doubt_about_the_target_shows_in_the_interval(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.5), 1);
    begin(&f, 1);
    for (int i = 0; i < 25; i++) // mean just under the target, s.d. 0.1, and nothing else known
        push(&f, 0.499 + (i % 2 ? 0.1 : -0.1) * (i < 24));
    (void)end(&f, 1);
    tt_est_remaining left = remaining(&f);
    assert_true(left.iterations_median == 0);
    assert_true(left.iterations_p90 > 0 && left.log_iterations_sd > 0.5);
    tt_estimator_close(f.est);
    // the same dip at the end of a curve that has some way to go: noise, the curve answers
    f = feed_of(open_with(0.5), 1);
    begin(&f, 1);
    push_noisy(&f, 600, 1.0, 0.55, 0.1);
    for (int i = 0; i < 25; i++)
        push(&f, 0.499 + (i % 2 ? 0.1 : -0.1) * (i < 24));
    (void)end(&f, 1);
    left = remaining(&f);
    assert_true(left.iterations_median > 5 && left.iterations_median < 200);
    tt_estimator_close(f.est);
}

static void
single_loss_under_target_is_noise(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.5), 4);
    begin(&f, 1);
    for (int i = 0; i < 300; i++)
        push(&f, i % 30 == 17 ? 0.4 : 0.9 - 5e-4 * i);
    const tt_est_window window = end(&f, 1);
    assert_int_equal(window.kept, 300);
    assert_int_equal(window.flags & TT_EST_REACHED, 0);
    assert_true(remaining(&f).iterations_median > 1);
    tt_estimator_close(f.est);
}

static void
bound_is_raised_above_losses_and_target(void **state)
{
    TT_UNUSED(state);
    double losses[20];
    for (int i = 0; i < 20; i++)
        losses[i] = 1.37 - 0.01 * i;
    tt_est_paper paper;
    tt_est_paper_fit(losses, 20, 0.9, 0.4, 1, 0, 777, &paper); // kappa l = 0.9 < 1.37
    assert_true(fabs(paper.bound / (1.001 * 1.37) - 1) < 1e-12);
    assert_int_equal(paper.flags, 0);
    assert_true(paper.scale > 0);
    tt_est_paper_fit(losses, 20, 0.9, 3.1, 1, 0, 777, &paper); // target above everything
    assert_true(fabs(paper.bound / (1.001 * 3.1) - 1) < 1e-12);
    assert_true(isfinite(paper.iterations) && paper.iterations >= 1);
    assert_int_not_equal(paper.flags & TT_EST_REACHED, 0);
    tt_est_paper_fit(losses, 20, 0.9, 0.4, 10, 0, 777, &paper);
    assert_true(fabs(paper.bound / 9 - 1) < 1e-12);
    tt_est_paper_fit(losses, 20, 0.9, 0.4, 10, 1.1, 777, &paper); // injected, but under a loss
    assert_true(paper.bound > 1.37 || paper.flags == 0);
    assert_true(isfinite(paper.iterations));
}

static void
useless_fit_falls_back_to_the_pooled_estimate(void **state)
{
    TT_UNUSED(state);
    double losses[20];
    tt_est_paper paper;
    for (int i = 0; i < 20; i++)
        losses[i] = NAN;
    tt_est_paper_fit(losses, 20, 0.9, 0.4, 1, 0, 777, &paper);
    assert_int_not_equal(paper.flags & TT_EST_FALLBACK, 0);
    assert_true(paper.iterations == 777);
    for (int i = 0; i < 20; i++)
        losses[i] = -0.3 + (i == 4);
    tt_est_paper_fit(losses, 20, 0.9, 0.4, 1, 0, 777, &paper);
    assert_true(paper.iterations == 777);
    losses[7] = losses[8] = losses[9] = 0.5;
    tt_est_paper_fit(losses, 20, NAN, 0.4, 1, 0, 777, &paper);
    assert_true(paper.iterations == 777);
    tt_est_paper_fit(losses, 20, 0.9, 0, 1, 0, 777, &paper);
    assert_true(paper.iterations == 777);
    // and before anything is known at all
    feed f = feed_of(open_with(0.5), 4);
    const tt_est_remaining left = remaining(&f);
    assert_int_not_equal(left.flags & TT_EST_FALLBACK, 0);
    assert_true(left.log_iterations_sd >= 1.5 && isfinite(left.iterations_median));
    tt_estimator_close(f.est);
}

static void
plateau_makes_the_time_left_infinite(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.5), 4);
    for (int w = 0; w < 120; w++) {
        begin(&f, 1);
        for (int i = 0; i < 100; i++)
            push(&f, fmax(1.4 - 4e-4 * (double)f.sequence, 0.7) * trace_factor(&f.rng, 0.1));
        (void)end(&f, 1);
        if (f.sequence == 1500)
            assert_true(isfinite(remaining(&f).iterations_p90));
    }
    const tt_est_remaining left = remaining(&f);
    assert_int_not_equal(left.flags & (TT_EST_PLATEAU | TT_EST_UNREACHABLE), 0);
    assert_int_not_equal(left.flags & TT_EST_PLATEAU, 0);
    assert_true(isinf(left.iterations_median) && isfinite(left.log_iterations));
    tt_est_eta eta;
    tt_estimator_eta(f.est, log(0.03), 0.1, 0, 0.05, &eta);
    assert_true(isinf(eta.seconds_median) && isinf(eta.seconds_p10));
    tt_estimator_close(f.est);
}

static void
target_below_the_floor_is_unreachable(void **state)
{
    TT_UNUSED(state);
    trace t = {.curve = TRACE_EXPONENTIAL, .start = 2.1, .floor = 0.6, .constant = 1e-3};
    t.noise = 0.05;
    t.workers = 8;
    t.cycle_s = 0.1;
    t.jitter = 0.2;
    trace_begin(&t, 5);
    tt_estimator *est = open_with(0.4);
    uint32_t unreachable = 0, finite = 0;
    for (int w = 0; w < 60; w++) {
        tt_est_window window;
        tt_estimator_begin(est, 1, 0, 8, features, 2);
        for (int i = 0; i < 100; i++) {
            const tt_est_sample sample = trace_next(&t);
            tt_estimator_add(est, &sample);
        }
        tt_estimator_end(est, 1, &window);
        tt_est_remaining left;
        tt_estimator_remaining(est, &left);
        unreachable += (left.flags & TT_EST_UNREACHABLE) != 0;
        finite += isfinite(left.iterations_median) ? 1 : 0;
        if (left.flags & TT_EST_UNREACHABLE)
            assert_true(isinf(left.iterations_p10) && isinf(left.iterations_p90));
    }
    assert_true(finite >= 5); // early on nobody can know
    assert_true(unreachable >= 20);
    tt_estimator_close(est);
}

static void
constant_loss_gives_finite_answers(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.5), 2);
    for (int w = 0; w < 30; w++) {
        begin(&f, (uint32_t)w % 2);
        for (int i = 0; i < 100; i++)
            push(&f, 0.693147);
        const tt_est_window window = end(&f, 1);
        assert_true(window.slope == 0 && window.slope_se > 0 && window.slope_se < 1e-6);
        const tt_est_remaining left = remaining(&f);
        assert_false(isnan(left.iterations_median) || isnan(left.log_iterations));
        double mean, sd;
        tt_estimator_log_rate(f.est, 1, features, 2, &mean, &sd);
        assert_true(isfinite(mean) && sd > 0);
    }
    assert_int_not_equal(remaining(&f).flags & TT_EST_PLATEAU, 0);
    tt_estimator_close(f.est);
}

static void
tiny_losses_do_not_overflow(void **state)
{
    TT_UNUSED(state);
    assert_true(isfinite(tti_hogwild_z(1e-300, 2.3)));
    assert_true(tti_hogwild_z(0, 2.3) == tti_hogwild_z(2.3e-9, 2.3));
    feed f = feed_of(open_with(1e-200), 2);
    for (int w = 0; w < 30; w++) {
        begin(&f, 1);
        for (int i = 0; i < 100; i++)
            push(&f, 3 * exp(-0.2 * (double)f.sequence));
        (void)end(&f, 1);
        const tt_est_remaining left = remaining(&f);
        assert_false(isnan(left.iterations_median) || isnan(left.log_iterations));
    }
    tt_estimator_close(f.est);
}

static void
iterations_left_stay_in_range(void **state)
{
    TT_UNUSED(state);
    assert_true(tti_log_iterations(1e40) == log(1e9));
    assert_true(tti_log_iterations(-3) == 0);
    assert_true(tti_log_iterations(NAN) == log(1e9));
    feed f = feed_of(open_with(1e-7), 4); // at this pace some 1e10 iterations
    begin(&f, 1);
    for (int i = 0; i < 600; i++)
        push(&f, 1.9 - 1.6e-10 * i);
    (void)end(&f, 1);
    const tt_est_remaining left = remaining(&f);
    assert_true(left.log_iterations <= log(1e9) && left.log_iterations >= 0);
    assert_true(left.log_iterations_sd >= 0);
    tt_estimator_close(f.est);
}

// --- the contract beyond section 5

static void
budget_rules_without_a_target(void **state)
{
    TT_UNUSED(state);
    tt_est_options options = {.target_loss = NAN, .budget_iterations = 500};
    tt_estimator *est;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    feed f = feed_of(est, 4);
    begin(&f, 1);
    push_noisy(&f, 125, 0.9, 0.8, 0.01);
    (void)end(&f, 1);
    const tt_est_remaining left = remaining(&f);
    assert_int_equal(left.flags, TT_EST_NO_TARGET);
    assert_true(left.iterations_median == 375 && left.log_iterations == log(375));
    assert_true(fabs(tt_estimator_stage(est) - 0.25) < 1e-12);
    tt_est_eta eta;
    tt_estimator_eta(est, log(0.02), 0, log(0.5), 0.3, &eta); // the rate does not matter
    assert_true(fabs(eta.seconds_median / 7.5 - 1) < 1e-12);
    assert_true(fabs(eta.seconds_p90 / 7.5 - 1) < 1e-12);
    tt_estimator_close(est);
    options.budget_iterations = INFINITY;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_est_remaining endless;
    tt_estimator_remaining(est, &endless);
    assert_true(isinf(endless.iterations_median) && endless.flags == TT_EST_NO_TARGET);
    assert_true(tt_estimator_stage(est) == 0);
    double mean, sd; // a job may have no statistical knob at all
    tt_estimator_begin(est, 1, 0, 4, NULL, 0);
    tt_estimator_log_rate(est, 1, NULL, 0, &mean, &sd);
    assert_true(mean == 0 && sd == 0);
    tt_estimator_close(est);
}

static void
stage_runs_from_zero_to_one(void **state)
{
    TT_UNUSED(state);
    feed f = feed_of(open_with(0.25), 1);
    assert_true(tt_estimator_stage(f.est) == 0);
    begin(&f, 1);
    for (int i = 0; i < 25; i++)
        push(&f, 1.9);
    for (int i = 0; i < 25; i++)
        push(&f, 0.7);
    const double expected = log(1.9 / 0.7) / log(1.9 / 0.25);
    assert_true(fabs(tt_estimator_stage(f.est) - expected) < 1e-12);
    for (int i = 0; i < 25; i++)
        push(&f, 0.01);
    assert_true(tt_estimator_stage(f.est) == 1.2);
    tt_estimator_close(f.est);
}

static void
noise_is_normalised_to_the_base_batch(void **state)
{
    TT_UNUSED(state);
    tt_estimator *est = open_with(0.2);
    tt_rng rng;
    tt_rng_init(&rng, 12, TT_RNG_TEST, 0);
    double noise[2];
    for (uint32_t w = 0; w < 2; w++) {
        tt_estimator_begin(est, w, 0, 4, features, 2);
        for (uint32_t i = 0; i < 4000; i++) {
            const uint32_t examples = w ? 256 : 64;
            const tt_est_sample sample = {.sequence = 4000 * w + i,
                                          .worker = i % 4,
                                          .examples = examples,
                                          .loss = 0.8 + 0.4 * tt_rng_normal(&rng) /
                                                            sqrt((double)examples),
                                          .time_s = 0.1 * i,
                                          .cycle_s = 0.4};
            tt_estimator_add(est, &sample);
        }
        tt_est_window window;
        tt_estimator_end(est, 1, &window);
        noise[w] = window.noise;
    }
    assert_true(fabs(noise[0] / 0.05 - 1) < 0.06); // 5 s.e. of 1/sqrt(2 n)
    assert_true(fabs(noise[1] / noise[0] - 1) < 0.06);
    tt_estimator_close(est);
}

static void
opening_refuses_nonsense_and_survives_short_memory(void **state)
{
    TT_UNUSED(state);
    tt_estimator *est;
    tt_error err = {0};
    tt_est_options options = {.target_loss = INFINITY, .budget_iterations = 100};
    assert_int_equal(tt_estimator_open(&options, &est, &err), TT_INVALID);
    assert_null(est);
    assert_true(err.advice[0] != '\0');
    options = (tt_est_options){.target_loss = 0.3, .budget_iterations = NAN};
    assert_int_equal(tt_estimator_open(&options, &est, &err), TT_INVALID);
    options.budget_iterations = INFINITY;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        tt_mem_fail_nth(nth);
        assert_int_equal(tt_estimator_open(&options, &est, &err), TT_NOMEM);
        assert_null(est);
        assert_int_equal(tt_mem_fail_pending(), 0);
        tt_mem_fail_nth(0);
    }
    tt_estimator_close(NULL);
}

static void
equal_samples_give_equal_answers(void **state)
{
    TT_UNUSED(state);
    tt_est_remaining left[2];
    for (int asked = 0; asked < 2; asked++) {
        feed f = feed_of(open_with(0.3), 4);
        for (int w = 0; w < 40; w++) {
            begin(&f, (uint32_t)w / 8);
            for (int i = 0; i < 50; i++) {
                push(&f,
                     0.2 + 0.8 * exp(-1e-3 * (double)f.sequence) + 0.02 * tt_rng_normal(&f.rng));
                tt_est_window window;
                if (asked) // looking must not change anything
                    tt_estimator_window(f.est, &window);
            }
            (void)end(&f, 1);
        }
        left[asked] = remaining(&f);
        tt_estimator_close(f.est);
    }
    assert_true(left[0].log_iterations == left[1].log_iterations);
    assert_true(left[0].log_iterations_sd == left[1].log_iterations_sd);
    assert_true(left[0].iterations_p10 == left[1].iterations_p10);
    assert_true(left[0].iterations_p90 == left[1].iterations_p90);
    assert_int_equal(left[0].flags, left[1].flags);
}

// Losses of batches drawn without replacement: 160 an epoch, whose noise sums to nothing.
static double
drawn_noise(tt_rng *rng, uint32_t i)
{
    enum { EPOCH = 160 };
    static double noise[EPOCH];
    if (i % EPOCH == 0) {
        double mean = 0;
        for (int b = 0; b < EPOCH; b++) {
            noise[b] = 0.035 * tt_rng_normal(rng);
            mean += noise[b] / EPOCH;
        }
        for (int b = 0; b < EPOCH; b++)
            noise[b] -= mean;
    }
    return noise[i % EPOCH];
}

// The noise of a batch is a hundred times what is still to fall: neither a plateau nor an end, and
// the time left is of use all the same.
static void
slow_fall_under_much_noise_is_no_plateau(void **state)
{
    TT_UNUSED(state);
    enum { END = 90000 };
    const tt_est_options options = {.target_loss = 0.32 + 0.1 / (1 + END / 2000.0)};
    tt_estimator *est;
    tt_est_remaining left;
    tt_rng rng;
    uint32_t asked = 0, good = 0;
    tt_rng_init(&rng, 5, TT_RNG_TEST, 12);
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 1, 0, 8, NULL, 0);
    for (uint32_t i = 0; i < END * 9 / 10; i++) {
        const tt_est_sample sample = {.sequence = i,
                                      .worker = i % 8,
                                      .examples = 200,
                                      .loss = 0.32 + 0.1 / (1 + i / 2000.0) + drawn_noise(&rng, i),
                                      .time_s = 1e-3 * i,
                                      .cycle_s = 8e-3};
        tt_estimator_add(est, &sample);
        if (i % 1000 != 999)
            continue;
        tt_estimator_remaining(est, &left);
        if (i < END / 5)
            continue;
        assert_int_equal(left.flags & (TT_EST_PLATEAU | TT_EST_UNREACHABLE), 0);
        assert_true(left.iterations_median > 0);
        asked++;
        good += fabs(log(left.iterations_median / (END - i))) < log(2);
    }
    print_message("slow fall: within 2x %u of %u\n", good, asked);
    assert_true(good >= 0.8 * asked);
    tt_estimator_close(est);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_or_inf_is_dropped_and_counted),
        cmocka_unit_test(saved_and_restored),
        cmocka_unit_test(three_invalid_in_a_row_mark_diverged),
        cmocka_unit_test(over_a_fifth_invalid_marks_diverged),
        cmocka_unit_test(loss_at_or_below_zero_is_never_logged),
        cmocka_unit_test(smoothed_loss_at_target_leaves_nothing_to_do),
        cmocka_unit_test(doubt_about_the_target_shows_in_the_interval),
        cmocka_unit_test(single_loss_under_target_is_noise),
        cmocka_unit_test(bound_is_raised_above_losses_and_target),
        cmocka_unit_test(useless_fit_falls_back_to_the_pooled_estimate),
        cmocka_unit_test(plateau_makes_the_time_left_infinite),
        cmocka_unit_test(slow_fall_under_much_noise_is_no_plateau),
        cmocka_unit_test(target_below_the_floor_is_unreachable),
        cmocka_unit_test(constant_loss_gives_finite_answers),
        cmocka_unit_test(tiny_losses_do_not_overflow),
        cmocka_unit_test(iterations_left_stay_in_range),
        cmocka_unit_test(budget_rules_without_a_target),
        cmocka_unit_test(stage_runs_from_zero_to_one),
        cmocka_unit_test(noise_is_normalised_to_the_base_batch),
        cmocka_unit_test(opening_refuses_nonsense_and_survives_short_memory),
        cmocka_unit_test(equal_samples_give_equal_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
