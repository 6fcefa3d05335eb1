// Goal: a family that foretells times wrong knows that it does, and by how much, however often it
// is asked; one that is right does not think so for noise; and a target is met in a swing when the
// loss really meets it. Method: histories of known curves, exact and noisy; and a loss that swings
// about a known course, up more than down, played to the end many times over.
#include "est_mix.h"
#include "estimator_traces.h"

#include <setjmp.h>

#include <cmocka.h>

enum { BLOCKS = 60, SEEDS = 40, PLAYS = 2001, EVERY = 40, ROW = 2 };
static const trace exponential = {
    .curve = TRACE_EXPONENTIAL, .start = 1.3, .floor = 0.3, .constant = 5e-4};

static tti_families families;
static tti_mix mix; // large: not for the stack
static tti_series history;

static const tti_fit *
fit_of(const tti_family *family)
{
    const tti_fit *fit = tti_mix_fit(&mix, &families, family);
    assert_non_null(fit);
    return fit;
}

// A history along the curve, handed over block by block; sd: of a block's mean.
static void
live(const trace *t, double sd, double target, uint64_t seed)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    tti_families_init(&families);
    tti_mix_reset(&mix, &families);
    tti_series_reset(&history);
    for (int i = 0; i < BLOCKS; i++) {
        const double clock = (i + 0.5) * TTI_BLOCK_LOSSES;
        const tti_block block = {.clock = clock,
                                 .position = clock,
                                 .width = TTI_BLOCK_LOSSES,
                                 .mean = trace_mean_loss(t, clock) + sd * tt_rng_normal(&rng),
                                 .variance = TTI_BLOCK_LOSSES * sd * sd,
                                 .n = TTI_BLOCK_LOSSES};
        (void)tti_series_append(&history, &block);
        tti_mix_sync(&mix, &families, &history, target);
    }
}

// Root mean square of log(time it took / time foretold), as far as it was learned: what is added to
// it by chance is no part of that.
static double
learned_error(const tti_family *family)
{
    for (uint32_t f = 0; f < families.count; f++)
        if (families.list[f] == family)
            return sqrt(fmax(mix.error_squares[f], 0));
    return NAN;
}

static void
families_learn_how_wrong_they_are(void **state)
{
    TT_UNUSED(state);
    const trace inverse = {.curve = TRACE_INVERSE, .start = 1.3, .floor = 0.3, .constant = 200};
    live(&exponential, 1e-6, 0.4, 1);
    const double right = learned_error(&tti_family_expfloor);
    live(&inverse, 1e-6, 0.4, 1);
    const double wrong = learned_error(&tti_family_expfloor);
    const double also_right = learned_error(&tti_family_sublinear);
    print_message("error of expfloor on its curve %.4f, on 1/k %.3f; of sublinear on that %.4f\n",
                  right, wrong, also_right);
    assert_true(right < 0.02 && also_right < 0.02);
    assert_true(wrong > 0.1 && wrong < 1);
    assert_true(fit_of(&tti_family_expfloor)->misfit > wrong);
}

static void
noise_is_no_misfit(void **state)
{
    TT_UNUSED(state);
    double sum = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        live(&exponential, 0.02, 0.4, seed);
        sum += learned_error(&tti_family_expfloor) / SEEDS;
    }
    print_message("error of expfloor on its curve with noise: %.3f in the mean\n", sum);
    assert_true(sum < 0.05);
}

static double
median_left(double now, double target, double swing_sd)
{
    tti_mixture mixture;
    const tti_swings swings = {.sd = swing_sd, .every = EVERY, .row = ROW};
    tti_mix_left(&mix, &families, now, target, &swings, &mixture);
    assert_true(mixture.count > 0);
    return exp(tti_mixture_quantile(&mixture, 0.5, 0, 0));
}

// Half the sum of squares of eight normals, which has the mean and the variance 4: in s.d. from the
// mean.
static double
swing(tt_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        const double x = tt_rng_normal(rng);
        sum += 0.5 * x * x;
    }
    return (sum - 4) / 2;
}

// Iterations until so many looks in a row find the target held.
static double
play(const trace *t, double now, double target, double swing_sd, tt_rng *rng)
{
    int under = 0;
    double clock = now;
    while (under < ROW) {
        clock += EVERY;
        const double mean = trace_mean_loss(t, clock);
        under = mean + swing_sd * swing(rng) <= target ? under + 1 : 0;
    }
    return clock - now;
}

static void
targets_are_met_in_swings(void **state)
{
    TT_UNUSED(state);
    const double now = BLOCKS * TTI_BLOCK_LOSSES, target = 0.32;
    static double left[PLAYS];
    tt_rng rng;
    tt_rng_init(&rng, 7, TT_RNG_TEST, 0);
    live(&exponential, 1e-6, target, 1);
    const double course = trace_clock_of(&exponential, target) - now;
    print_message("told without a swing: %.3f of it\n", median_left(now, target, 0) / course);
    assert_true(fabs(median_left(now, target, 0) / course - 1) < 0.05);
    for (double sd = 0.005; sd < 0.1; sd *= 2) {
        for (int i = 0; i < PLAYS; i++)
            left[i] = play(&exponential, now, target, sd, &rng);
        const double truth = trace_quantile(left, PLAYS, 0.5);
        const double told = median_left(now, target, sd);
        print_message("swing of s.d. %.3f: met after %.0f, told %.0f; the course %.0f\n", sd, truth,
                      told, course);
        assert_true(fabs(log(told / truth)) < log(1.1));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_learn_how_wrong_they_are),
        cmocka_unit_test(noise_is_no_misfit),
        cmocka_unit_test(targets_are_met_in_swings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
