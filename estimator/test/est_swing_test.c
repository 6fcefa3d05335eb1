// Goal: noise is not taken for a swing, a swing is told by its s.d. whatever the course does, and
// where levels are told exactly their variance stands for what is to be expected.
// Method: made-up block means, a bending course with noise alone over many seeds, and with a sine
// of known amplitude.
#include "est_swing.h"
#include "tt/core.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { BLOCKS = 200, SEEDS = 200, EXAMPLES = 100 };
static const double NOISE = 0.02; // s.d. of a block's mean

static double
swing_of(uint64_t seed, double amplitude, double level_share)
{
    tti_swing swing = {.count = 0};
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    const double variance = TTI_BLOCK_LOSSES * NOISE * NOISE;
    for (int i = 0; i < BLOCKS; i++) {
        const tti_block block = {.mean = 1 + exp(-0.01 * i) + amplitude * sin(1.3 * i) +
                                         NOISE * tt_rng_normal(&rng),
                                 .variance = variance,
                                 .spread = variance / level_share,
                                 .n = TTI_BLOCK_LOSSES};
        tti_swing_add(&swing, &block, EXAMPLES);
    }
    return tti_swing_sd(&swing);
}

static void
noise_is_no_swing(void **state)
{
    TT_UNUSED(state);
    int seen = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const double sd = swing_of(seed, 0, 1);
        seen += sd > 0;
        assert_true(sd < 0.5 * NOISE);
    }
    print_message("noise taken for a swing: %d of %d\n", seen, SEEDS);
    assert_true(seen <= 0.05 * SEEDS);
}

// The quietest of three measurements less two standard errors of the noise: rather too little.
static void
a_swing_is_measured(void **state)
{
    TT_UNUSED(state);
    for (double amplitude = 0.06; amplitude < 1; amplitude *= 2) {
        double sum = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            sum += swing_of(seed, amplitude, 1) / SEEDS;
        print_message("sine of s.d. %.3f: %.3f\n", amplitude / sqrt(2), sum);
        assert_true(sum < 1.05 * amplitude / sqrt(2) && sum > 0.8 * amplitude / sqrt(2));
    }
}

static void
exact_levels_imply_a_swing(void **state)
{
    TT_UNUSED(state);
    const double variance = TTI_BLOCK_LOSSES * NOISE * NOISE;
    assert_true(fabs(swing_of(1, 0, 0.01) / (EXAMPLES * variance / 4) - 1) < 1e-9);
}

static void
little_is_nothing(void **state)
{
    TT_UNUSED(state);
    tti_swing swing = {.count = 0};
    assert_true(tti_swing_sd(&swing) == 0);
    const tti_block partial = {.mean = 1, .variance = 1, .spread = 100, .n = TTI_BLOCK_LOSSES - 1};
    tti_swing_add(&swing, &partial, EXAMPLES);
    assert_true(tti_swing_sd(&swing) == 0);
    for (int i = 0; i < TTI_SWING_BLOCKS; i++) {
        const tti_block block = {
            .mean = i % 2, .variance = 1e-4, .spread = 1e-4, .n = TTI_BLOCK_LOSSES};
        tti_swing_add(&swing, &block, EXAMPLES);
    }
    assert_true(tti_swing_sd(&swing) == 0); // one measurement may be a step
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_no_swing),
        cmocka_unit_test(a_swing_is_measured),
        cmocka_unit_test(exact_levels_imply_a_swing),
        cmocka_unit_test(little_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
