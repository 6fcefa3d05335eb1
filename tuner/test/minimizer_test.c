// Goal: ask and tell always has a next setting, valid and new, whatever it is told; the same calls
// give the same proposals; what was restored goes on as if nothing had happened; it finds good
// settings of functions with and without noise.
// Method: random problems of all kinds of knobs and values (constant, duplicates, NaN, ranges of
// 10^6, failures, one knob, many); two minimizers side by side; known functions against random
// search. minimizer_test N: N random problems instead of 60.
#include "output_warp.h"
#include "problem_space.h"
#include "tt/tuner_minimizer.h"
#include "tt/tuner_search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 905 };
static uint32_t problems = 60;
static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                    "i", "j", "k", "l", "m", "n", "o", "p"};
static const char *const values[] = {"row", "col", "blocked", "tiled", NULL};

// ---- random problems -------------------------------------------------------------------------

typedef enum landscape { SMOOTH, CONSTANT, NOISE, STEEP, FAILING, KINDS } landscape;

static void
random_space(tt_rng *rng, problem_space *p)
{
    *p = (problem_space){0};
    uint32_t dims = tt_rng_below(rng, 6) == 0 ? 1 : 1 + (uint32_t)tt_rng_below(rng, 16);
    for (uint32_t d = 0; d < dims; d++) {
        uint32_t kind = (uint32_t)tt_rng_below(rng, 6);
        if (kind == 0)
            problem_add(p, names[d], TT_KNOB_BOOL, 0, 1, 0, 0, 0);
        else if (kind == 1)
            problem_add(p, names[d], TT_KNOB_ENUM, 0, 3, 1, 0, 0)->values = values;
        else if (kind == 2)
            problem_add(p, names[d], TT_KNOB_INT, 1, 1 + (double)tt_rng_below(rng, 30), 1, 0, 0);
        else if (kind == 3)
            problem_add(p, names[d], TT_KNOB_INT, 1, 1 << 20, 64, 1, 0);
        else if (kind == 4)
            problem_add(p, names[d], TT_KNOB_REAL, 1e-6, 10, 1, 1, 0);
        else
            problem_add(p, names[d], TT_KNOB_REAL, -5, 1e6, 0, 0, 0);
    }
}

// 0 when it failed.
static int
evaluate(tt_rng *rng, landscape kind, const tt_search_space *search, const tt_setting *s, double *y)
{
    double x[TT_KNOBS_MAX], sum = 0;
    tt_search_encode(search, s, x);
    for (uint32_t d = 0; d < search->dims; d++)
        sum += (x[d] - 0.3) * (x[d] - 0.3) / (1 + d);
    *y = kind == CONSTANT ? 7 : kind == NOISE ? tt_rng_normal(rng) : sum;
    if (kind == STEEP)
        *y = 1e-3 * exp(14 * sum) - 1;
    return kind != FAILING || x[0] < 0.6;
}

static void
tell_something_wrong(tt_minimizer *o, const tt_setting *setting)
{
    static const tt_minimizer_result wrong[] = {
        {.y = NAN}, {.y = INFINITY}, {.y = 1, .noise = -1}, {.y = 1, .noise = NAN}};
    tt_error err;
    for (size_t i = 0; i < TT_COUNT_OF(wrong); i++)
        assert_int_equal(tt_minimizer_tell(o, 0, setting, &wrong[i], &err), TT_INVALID);
    assert_int_equal(tt_minimizer_tell(o, 9999, NULL, &(tt_minimizer_result){.y = 1}, &err),
                     TT_NOTFOUND);
    tt_setting outside = *setting;
    outside.value[0] = 1e9;
    assert_int_equal(tt_minimizer_tell(o, 0, &outside, &(tt_minimizer_result){.y = 1}, &err),
                     TT_INVALID);
}

static void
check_new(const problem_space *p,
          const tt_minimizer_proposal *proposal,
          const tt_setting *seen,
          uint32_t seen_count)
{
    assert_true(tt_space_valid(&p->space, &proposal->setting));
    assert_true(proposal->reason[0] != '\0');
    for (uint32_t i = 0; i < seen_count && proposal->phase != TT_MINIMIZER_REPEAT; i++)
        assert_false(tt_setting_equal(&proposal->setting, &seen[i]));
}

static void
run_problem(uint64_t seed)
{
    enum { TELLS = 22 };
    problem_space p;
    tt_search_space search;
    tt_minimizer *o;
    tt_rng rng;
    tt_setting seen[TELLS];
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    random_space(&rng, &p);
    tt_search_space_init(&search, &p.space);
    landscape kind = (landscape)tt_rng_below(&rng, KINDS);
    tt_minimizer_options options = {.seed = seed, .use_start = (int)tt_rng_below(&rng, 2)};
    assert_int_equal(tt_minimizer_open(&p.space, &options, &o, NULL), TT_OK);
    for (uint32_t i = 0; i < TELLS; i++) {
        tt_minimizer_proposal proposal;
        tt_minimizer_best best;
        tt_minimizer_result result = {.noise = tt_rng_below(&rng, 3) == 0 ? 0.1 : 0};
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        check_new(&p, &proposal, seen, i);
        seen[i] = proposal.setting;
        if (i % 7 == 3)
            tell_something_wrong(o, &proposal.setting);
        result.failed = !evaluate(&rng, kind, &search, &proposal.setting, &result.y);
        if (i % 8 != 5) // an answer that never comes
            assert_int_equal(tt_minimizer_tell(o, proposal.id, NULL, &result, NULL), TT_OK);
        if (i % 5 == 4) // told twice under its setting
            assert_int_equal(tt_minimizer_tell(o, 0, &proposal.setting, &result, NULL), TT_OK);
        if (!result.failed && i % 8 != 5)
            assert_int_equal(tt_minimizer_best_setting(o, &best), 0);
    }
    tt_minimizer_close(o);
}

static void
random_problems(void **state)
{
    TT_UNUSED(state);
    for (uint32_t i = 0; i < problems; i++)
        run_problem(SEED + i);
}

// ---- the same again --------------------------------------------------------------------------

static void
mixed_space(problem_space *p)
{
    *p = (problem_space){0};
    problem_add(p, "servers", TT_KNOB_INT, 1, 7, 2, 0, 0);
    problem_add(p, "rate", TT_KNOB_REAL, 1e-4, 10, 0.1, 1, 0);
    problem_add(p, "half", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
    problem_add(p, "layout", TT_KNOB_ENUM, 0, 3, 0, 0, 0)->values = values;
}

static double
mixed(const tt_setting *s)
{
    double rate = log10(s->value[1]) + 1.5;
    return 2 + fabs(s->value[0] - 5) + rate * rate - 0.5 * s->value[2] + 0.3 * s->value[3];
}

// A second minimizer is given the proposals of the first one up to a point, and asks from there.
static void
restored_goes_on_alike(void **state)
{
    TT_UNUSED(state);
    enum { WHOLE = 24, CUT = 15 };
    problem_space p;
    tt_minimizer *one, *two;
    tt_minimizer_options options = {.seed = 3};
    mixed_space(&p);
    assert_int_equal(tt_minimizer_open(&p.space, &options, &one, NULL), TT_OK);
    assert_int_equal(tt_minimizer_open(&p.space, &options, &two, NULL), TT_OK);
    for (uint32_t i = 0; i < WHOLE; i++) {
        tt_minimizer_proposal first, second;
        assert_int_equal(tt_minimizer_ask(one, &first, NULL), TT_OK);
        if (i < CUT) {
            assert_int_equal(tt_minimizer_restore(two, &first, NULL), TT_OK);
        } else {
            assert_int_equal(tt_minimizer_ask(two, &second, NULL), TT_OK);
            assert_memory_equal(&first, &second, sizeof first);
        }
        tt_minimizer_result result = {.y = mixed(&first.setting)};
        tt_minimizer_best best;
        assert_int_equal(tt_minimizer_tell(one, first.id, NULL, &result, NULL), TT_OK);
        (void)tt_minimizer_best_setting(one, &best); // looking changes nothing
        assert_int_equal(tt_minimizer_tell(two, first.id, NULL, &result, NULL), TT_OK);
        assert_int_equal(tt_minimizer_tell(two, first.id, NULL, &result, NULL), TT_EXISTS);
    }
    tt_minimizer_proposal odd = {.id = WHOLE + 2};
    assert_int_equal(tt_minimizer_restore(two, &odd, NULL), TT_INVALID);
    tt_minimizer_close(one);
    tt_minimizer_close(two);
}

// Ten are out at once: all different, and away from each other.
static void
several_are_out(void **state)
{
    TT_UNUSED(state);
    enum { OUT = 10 };
    problem_space p;
    tt_minimizer *o;
    tt_minimizer_proposal proposal[OUT];
    uint64_t id = 0;
    uint32_t pending = 0;
    mixed_space(&p);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = 4}, &o, NULL),
                     TT_OK);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(tt_minimizer_ask(o, &proposal[0], NULL), TT_OK);
        tt_minimizer_result result = {.y = mixed(&proposal[0].setting)};
        assert_int_equal(tt_minimizer_tell(o, proposal[0].id, NULL, &result, NULL), TT_OK);
    }
    for (int i = 0; i < OUT; i++) {
        assert_int_equal(tt_minimizer_ask(o, &proposal[i], NULL), TT_OK);
        assert_int_equal(proposal[i].phase, TT_MINIMIZER_MODEL);
        for (int j = 0; j < i; j++)
            assert_false(tt_setting_equal(&proposal[i].setting, &proposal[j].setting));
    }
    while (tt_minimizer_next_pending(o, &id) != NULL)
        pending++;
    assert_int_equal(pending, OUT);
    // Told by its setting, it is no longer out either.
    assert_int_equal(tt_minimizer_tell(o, 0, &proposal[2].setting,
                                       &(tt_minimizer_result){.y = mixed(&proposal[2].setting)},
                                       NULL),
                     TT_OK);
    for (id = 0, pending = 0; tt_minimizer_next_pending(o, &id) != NULL; pending++)
        assert_true(id != proposal[2].id);
    assert_int_equal(pending, OUT - 1);
    tt_minimizer_close(o);
}

static void
all_settings_are_tried(void **state)
{
    TT_UNUSED(state);
    problem_space p = {0};
    tt_minimizer *o;
    tt_minimizer_best best;
    problem_add(&p, "a", TT_KNOB_INT, 1, 4, 1, 0, 0);
    problem_add(&p, "b", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = 1}, &o, NULL),
                     TT_OK);
    for (int i = 0; i < 14; i++) {
        tt_minimizer_proposal proposal;
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        assert_int_equal(proposal.phase == TT_MINIMIZER_REPEAT, i >= 8);
        double y = fabs(proposal.setting.value[0] - 3) + proposal.setting.value[1];
        assert_int_equal(
            tt_minimizer_tell(o, proposal.id, NULL, &(tt_minimizer_result){.y = y}, NULL), TT_OK);
    }
    assert_int_equal(tt_minimizer_best_setting(o, &best), 0);
    assert_true(best.setting.value[0] == 3 && best.setting.value[1] == 0 && best.y == 0);
    assert_true(best.evaluations > 1);
    tt_minimizer_close(o);
}

// Of 40 evaluations of a narrow valley among 200 settings, how many repeat one.
static uint32_t
repetitions(double noise, uint64_t seed, tt_minimizer_best *best)
{
    problem_space p = {0};
    tt_minimizer *o;
    tt_rng rng;
    uint32_t count = 0;
    problem_add(&p, "a", TT_KNOB_INT, 1, 200, 1, 0, 0);
    tt_rng_init(&rng, seed, TT_RNG_TEST, 2);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = seed}, &o, NULL),
                     TT_OK);
    for (int i = 0; i < 40; i++) {
        tt_minimizer_proposal proposal;
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        count += proposal.phase == TT_MINIMIZER_REPEAT;
        assert_true(proposal.phase != TT_MINIMIZER_REPEAT || isnan(proposal.predicted));
        const double off = fabs(proposal.setting.value[0] - 140);
        tt_minimizer_result result = {.y = fmin(off, 30) + off / 50 + noise * tt_rng_normal(&rng)};
        assert_int_equal(tt_minimizer_tell(o, proposal.id, NULL, &result, NULL), TT_OK);
    }
    assert_int_equal(tt_minimizer_best_setting(o, best), 0);
    tt_minimizer_close(o);
    return count;
}

// Where hardly anything new is hoped of, what was lucky is found out; where a repetition gives the
// very same there is nothing to find out.
static void
what_is_lucky_is_measured_again(void **state)
{
    TT_UNUSED(state);
    tt_minimizer_best best;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const uint32_t exact = repetitions(0, seed, &best);
        assert_true(exact <= 1 && best.setting.value[0] == 140);
        const uint32_t noisy = repetitions(2, seed, &best);
        print_message("seed %d: %u repetitions without noise, %u with; best %.0f, %u times\n",
                      (int)seed, exact, noisy, best.setting.value[0], best.evaluations);
        assert_true(noisy > 3 && noisy <= 20 && fabs(best.setting.value[0] - 140) <= 4);
    }
}

static int
never(void *self, const tt_setting *setting)
{
    TT_UNUSED(self);
    TT_UNUSED(setting);
    return 0;
}

static void
what_cannot_be_opened(void **state)
{
    TT_UNUSED(state);
    problem_space p;
    tt_minimizer *o;
    tt_minimizer_options options = {.seed = 1};
    mixed_space(&p);
    p.space.accept = never;
    assert_int_equal(tt_minimizer_open(&p.space, &options, &o, NULL), TT_INVALID);
    assert_null(o);
    mixed_space(&p);
    for (uint32_t k = 0; k < p.space.count; k++)
        p.space.knob[k].fixed = 1;
    assert_int_equal(tt_minimizer_open(&p.space, &options, &o, NULL), TT_INVALID);
}

// ---- without memory --------------------------------------------------------------------------

static void
no_memory(void **state)
{
    TT_UNUSED(state);
    problem_space p;
    tt_minimizer *o;
    tt_minimizer_proposal proposal;
    mixed_space(&p);
    tt_mem_fail_nth(1);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = 6}, &o, NULL),
                     TT_NOMEM);
    tt_mem_fail_nth(0);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = 6}, &o, NULL),
                     TT_OK);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        tt_minimizer_result result = {.y = mixed(&proposal.setting)};
        assert_int_equal(tt_minimizer_tell(o, proposal.id, NULL, &result, NULL), TT_OK);
    }
    int refused = 0;
    for (uint64_t n = 1;; n++) {
        tt_mem_fail_nth(n);
        tt_status status = tt_minimizer_ask(o, &proposal, NULL);
        int pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK || status == TT_NOMEM);
        refused += status != TT_OK;
        if (pending)
            break;
        assert_true(n < 500);
    }
    assert_true(refused > 5);
    tt_minimizer_close(o);
}

// ---- how good --------------------------------------------------------------------------------

static void
warp_is_its_own_inverse(void **state)
{
    TT_UNUSED(state);
    static const double y[] = {-4, -1, 0, 0.5, 2, 60};
    for (int step = -8; step <= 8; step++) {
        tti_warp warp = {.lambda = step * 0.25};
        tti_warp_suit(&warp, y, 6, 0.5);
        assert_true(warp.center == -4 && warp.scale == 4.5);
        warp.center = -2; // so that some are below it
        for (int i = 0; i < 6; i++) {
            double z = tti_warp_forward(&warp, y[i]), h = 1e-6 * fmax(fabs(y[i]), 1);
            assert_true(fabs(tti_warp_inverse(&warp, z) - y[i]) < 1e-6 * fmax(fabs(y[i]), 1));
            double slope =
                (tti_warp_forward(&warp, y[i] + h) - tti_warp_forward(&warp, y[i] - h)) / (2 * h);
            assert_true(fabs(log(slope) - tti_warp_log_slope(&warp, y[i])) < 1e-3);
            assert_true(i == 0 || z > tti_warp_forward(&warp, y[i - 1]));
        }
    }
    static const double same[] = {3, 3, 3};
    tti_warp flat = {.lambda = 0};
    tti_warp_suit(&flat, same, 3, 0.5);
    assert_true(isfinite(tti_warp_forward(&flat, 3)) && flat.scale == 1);
}

// True value of what is called best after some evaluations.
static double
found_value(uint64_t seed, double noise, uint32_t evaluations)
{
    problem_space p;
    tt_minimizer *o;
    tt_rng rng;
    tt_minimizer_best best;
    mixed_space(&p);
    tt_rng_init(&rng, seed, TT_RNG_TEST, 1);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = seed}, &o, NULL),
                     TT_OK);
    for (uint32_t i = 0; i < evaluations; i++) {
        tt_minimizer_proposal proposal;
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        tt_minimizer_result result = {.y = mixed(&proposal.setting) + noise * tt_rng_normal(&rng)};
        assert_int_equal(tt_minimizer_tell(o, proposal.id, NULL, &result, NULL), TT_OK);
    }
    assert_int_equal(tt_minimizer_best_setting(o, &best), 0);
    tt_minimizer_close(o);
    return mixed(&best.setting);
}

// The least value is 1.5; a random setting of 30 is below 2 in 2 % of all cases.
static void
finds_the_best_of_a_mixed_space(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        double exact = found_value(seed, 0, 30), noisy = found_value(seed, 0.2, 40);
        print_message("seed %d: %.4f, with noise of 0.2 %.4f (least 1.5)\n", (int)seed, exact,
                      noisy);
        assert_true(exact < 1.52);
        assert_true(noisy < 2.0);
    }
}

// ---- known functions, in unit coordinates, less their minimum
// ------------------------------------

static double
branin(const double *u)
{
    double x = 15 * u[0] - 5, y = 15 * u[1];
    double a = y - 5.1 / (4 * M_PI * M_PI) * x * x + 5 / M_PI * x - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * cos(x) + 10 - 0.397887357729738;
}

static double
hartmann3(const double *u)
{
    static const double alpha[4] = {1, 1.2, 3, 3.2};
    static const double a[4][3] = {{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}};
    static const double p[4][3] = {{0.3689, 0.1170, 0.2673},
                                   {0.4699, 0.4387, 0.7470},
                                   {0.1091, 0.8732, 0.5547},
                                   {0.03815, 0.5743, 0.8828}};
    double sum = 3.862779787332660;
    for (int i = 0; i < 4; i++) {
        double e = 0;
        for (int d = 0; d < 3; d++)
            e += a[i][d] * (u[d] - p[i][d]) * (u[d] - p[i][d]);
        sum -= alpha[i] * exp(-e);
    }
    return sum;
}

static double
hartmann6(const double *u)
{
    static const double alpha[4] = {1, 1.2, 3, 3.2};
    static const double a[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                   {0.05, 10, 17, 0.1, 8, 14},
                                   {3, 3.5, 1.7, 10, 17, 8},
                                   {17, 8, 0.05, 10, 0.1, 14}};
    static const double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    double sum = 3.322368011415512;
    for (int i = 0; i < 4; i++) {
        double e = 0;
        for (int d = 0; d < 6; d++)
            e += a[i][d] * (u[d] - p[i][d]) * (u[d] - p[i][d]);
        sum -= alpha[i] * exp(-e);
    }
    return sum;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Regret of the best observed value after 50 evaluations.
static double
regret(double (*function)(const double *), uint32_t dims, uint64_t seed)
{
    problem_space p = {0};
    tt_minimizer *o;
    double best = INFINITY;
    for (uint32_t d = 0; d < dims; d++)
        problem_add(&p, names[d], TT_KNOB_REAL, 0, 1, 0.5, 0, 0);
    assert_int_equal(tt_minimizer_open(&p.space, &(tt_minimizer_options){.seed = seed}, &o, NULL),
                     TT_OK);
    for (uint32_t i = 0; i < 50; i++) {
        tt_minimizer_proposal proposal;
        assert_int_equal(tt_minimizer_ask(o, &proposal, NULL), TT_OK);
        tt_minimizer_result result = {.y = function(proposal.setting.value)};
        best = fmin(best, result.y);
        assert_int_equal(tt_minimizer_tell(o, proposal.id, NULL, &result, NULL), TT_OK);
    }
    tt_minimizer_close(o);
    return best;
}

static double
median_regret(const char *name, double (*function)(const double *), uint32_t dims)
{
    enum { SEEDS = 5 };
    double result[SEEDS];
    for (uint32_t s = 0; s < SEEDS; s++)
        result[s] = regret(function, dims, 100 + s);
    qsort(result, SEEDS, sizeof *result, ascending);
    print_message("%s: median regret %.3g (%.3g .. %.3g) after 50\n", name, result[SEEDS / 2],
                  result[0], result[SEEDS - 1]);
    return result[SEEDS / 2];
}

static void
finds_known_minima(void **state)
{
    TT_UNUSED(state);
    // Bounds that a change of roundings does not reach; the targets, over 20 seeds with moved
    // ranges, are bench/run tune's.
    assert_true(median_regret("branin", branin, 2) < 1e-3);
    assert_true(median_regret("hartmann3", hartmann3, 3) < 1e-4);
    assert_true(median_regret("hartmann6", hartmann6, 6) < 0.15);
}

int
main(int argc, char **argv)
{
    if (argc > 1)
        problems = (uint32_t)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warp_is_its_own_inverse),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(restored_goes_on_alike),
        cmocka_unit_test(several_are_out),
        cmocka_unit_test(all_settings_are_tried),
        cmocka_unit_test(what_is_lucky_is_measured_again),
        cmocka_unit_test(what_cannot_be_opened),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(finds_the_best_of_a_mixed_space),
        cmocka_unit_test(finds_known_minima),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
