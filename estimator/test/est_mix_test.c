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
median_left(double now, double target, tti_swings swings)
{
    tti_mixture mixture;
    swings.every = EVERY;
    swings.row = ROW;
    tti_mix_left(&mix, &families, now, target, &swings, &mixture);
    assert_true(mixture.count > 0);
    return exp(tti_mixture_quantile(&mixture, 0.5, 0, 0));
}

// Half the sum of squares of `squares` normals.
static double
sum_of_squares(int squares, tt_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < squares; i++) {
        const double x = tt_rng_normal(rng);
        sum += 0.5 * x * x;
    }
    return sum;
}

// About the course as far as is usual (that of eight squares has the mean and the variance 4), or
// above it.
static double
swing(const tti_swings *swings, tt_rng *rng)
{
    return swings->above > 0 ? swings->above * 2 * sum_of_squares(1, rng)
                             : swings->sd * (sum_of_squares(8, rng) - 4) / 2;
}

// Iterations until so many looks in a row find the target held.
static double
play(const trace *t, double now, double target, const tti_swings *swings, tt_rng *rng)
{
    int under = 0;
    double clock = now;
    while (under < ROW) {
        clock += EVERY;
        const double mean = trace_mean_loss(t, clock);
        under = mean + swing(swings, rng) <= target ? under + 1 : 0;
    }
    return clock - now;
}

// Over what is told.
static double
played(double now, double target, tti_swings swings, tt_rng *rng)
{
    static double left[PLAYS];
    for (int i = 0; i < PLAYS; i++)
        left[i] = play(&exponential, now, target, &swings, rng);
    const double truth = trace_quantile(left, PLAYS, 0.5);
    const double told = median_left(now, target, swings);
    print_message("swing %.3f about or %.3f above the course: met after %.0f, told %.0f\n",
                  swings.sd, swings.above, truth, told);
    return truth / told;
}

static void
targets_are_met_in_swings(void **state)
{
    TT_UNUSED(state);
    const double now = BLOCKS * TTI_BLOCK_LOSSES, target = 0.32;
    tt_rng rng;
    tt_rng_init(&rng, 7, TT_RNG_TEST, 0);
    live(&exponential, 1e-6, target, 1);
    const double course = trace_clock_of(&exponential, target) - now;
    const double without = median_left(now, target, (tti_swings){0});
    print_message("told without a swing: %.3f of it\n", without / course);
    assert_true(fabs(without / course - 1) < 0.05);
    for (double size = 0.005; size < 0.1; size *= 2) {
        assert_true(fabs(log(played(now, target, (tti_swings){.sd = size}, &rng))) < log(1.1));
        assert_true(fabs(log(played(now, target, (tti_swings){.above = size}, &rng))) < log(1.1));
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
