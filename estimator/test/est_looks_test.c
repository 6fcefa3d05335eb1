// Goal: by how much minibatch losses say too much is told from the looks at all rows, near the
// truth soon, whatever the falls at the beginning were, and not at all where it is noise; with it a
// job's end is foretold where without it it is not. Method: made-up losses with a known offset
// about falls that bend, many seeds; a whole estimator on a known curve whose target is met an
// offset earlier than its minibatches say.
#include "est_looks.h"
#include "est_state.h"
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

enum { EPOCH = 50, SEEDS = 100 };

// After `epochs` looks at a loss that falls as 1 / k, seen with noise.
static double
offset_after(uint64_t seed, int epochs, double truth, double noise)
{
    tti_looks looks = {.count = 0};
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    for (int i = 0; i < epochs * EPOCH; i++) {
        const double course = 0.3 + 20.0 / (i + 20);
        tti_looks_hear(&looks, course + truth + noise * tt_rng_normal(&rng));
        if ((i + 1) % EPOCH == 0)
            tti_looks_add(&looks, course);
    }
    return tti_looks_offset(&looks);
}

static void
the_offset_is_found(void **state)
{
    TT_UNUSED(state);
    for (int epochs = 20; epochs <= 320; epochs *= 2) {
        double mean = 0, squares = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const double offset = offset_after(seed, epochs, 0.01, 0.02);
            mean += offset / SEEDS;
            squares += (offset - 0.01) * (offset - 0.01) / SEEDS;
        }
        print_message("%d looks: %.4f, off by %.4f\n", epochs, mean, sqrt(squares));
        assert_true(fabs(mean - 0.01) < 0.001);
        assert_true(sqrt(squares) < 0.002);
    }
}

static void
noise_is_no_offset(void **state)
{
    TT_UNUSED(state);
    double squares = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const double offset = offset_after(seed, 160, 0, 0.02);
        squares += offset * offset / SEEDS;
    }
    // A median of 64 means of 50 has a s.d. of 0.00044.
    print_message("without one: %.5f\n", sqrt(squares));
    assert_true(sqrt(squares) < 0.0004);
}

static void
little_is_nothing(void **state)
{
    TT_UNUSED(state);
    tti_looks looks = {.count = 0};
    assert_true(tti_looks_offset(&looks) == 0);
    tti_looks_add(&looks, 1); // nothing was heard before
    tti_looks_add(&looks, 1);
    tti_looks_hear(&looks, 3);
    tti_looks_add(&looks, NAN); // is not heard, and loses nothing
    tti_looks_add(&looks, 1);
    assert_int_equal(looks.offsets, 1);
    assert_true(looks.offset[0] == 2);
    assert_true(tti_looks_offset(&looks) == 0);
}

// Iterations left, over those that are, when half of them are gone.
static double
told(int with_looks)
{
    trace t = {.curve = TRACE_INVERSE, .start = 1.0, .floor = 0.1, .constant = 1000, .noise = 0.01};
    t.workers = 4;
    t.examples = 64;
    t.generation = 1;
    t.cycle_s = 0.1;
    const double offset = 0.01, target = 0.14, end = trace_clock_of(&t, target);
    const tt_est_options options = {.target_loss = target - offset,
                                    .budget_iterations = INFINITY,
                                    .look_every = 100,
                                    .looks_held = 1};
    tt_estimator *est;
    tt_est_remaining left;
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    trace_begin(&t, 1);
    tt_estimator_begin(est, 0, 1, t.workers, NULL, 0);
    for (int i = 0; i < end / 2; i++) {
        const tt_est_sample sample = trace_next(&t);
        tt_estimator_add(est, &sample);
        if (with_looks && i % 100 == 99)
            tt_estimator_look(est, trace_mean_loss(&t, i + 1) - offset);
    }
    tt_estimator_remaining(est, &left);
    tt_estimator_close(est);
    return left.iterations_median / (end / 2);
}

static void
the_end_is_foretold(void **state)
{
    TT_UNUSED(state);
    const double with = told(1), without = told(0);
    print_message("left / truth with looks %.2f, without %.2f\n", with, without);
    assert_true(with > 0.8 && with < 1.25);
    assert_true(without > 1.4);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_offset_is_found), cmocka_unit_test(noise_is_no_offset),
        cmocka_unit_test(little_is_nothing), cmocka_unit_test(the_end_is_foretold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
