// Goal: what the search proposes is valid, new, on the grid, and good; the same seed gives the
// same. Method: functions with known maxima over small spaces, a safe set, exhaustive enumeration.
#include "problem_space.h"
#include "tt/tuner_search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const three[] = {"row", "col", "blocked", NULL};

static void
make_mixed(problem_space *p)
{
    *p = (problem_space){0};
    problem_add(p, "servers", TT_KNOB_INT, 1, 7, 2, 0, 0)->effect =
        TT_KNOB_MOVES_MODEL | TT_KNOB_MOVES_DATA;
    problem_add(p, "chunk", TT_KNOB_INT, 4096, 1 << 20, 65536, 1, 1);
    problem_add(p, "spin", TT_KNOB_INT, 0, 4096, 100, 1, 0);
    problem_add(p, "half", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
    problem_add(p, "layout", TT_KNOB_ENUM, 0, 2, 0, 0, 0)->values = three;
    problem_add(p, "rate", TT_KNOB_REAL, 1e-4, 10, 0.1, 1, 0);
    problem_add(p, "pinned_by_hand", TT_KNOB_INT, 0, 9, 4, 0, 0);
    p->space.knob[6].fixed = 1;
}

static int
few_servers_or_half(void *self, const tt_setting *setting)
{
    TT_UNUSED(self);
    return setting->value[0] <= 4 || setting->value[3] == 1;
}

static void
test_spread(void **state)
{
    TT_UNUSED(state);
    problem_space p;
    tt_search_space search;
    make_mixed(&p);
    p.space.accept = few_servers_or_half;
    tt_search_space_init(&search, &p.space);
    assert_int_equal(search.dims, 6);
    tt_setting start, points[10], again[10];
    tt_space_start(&p.space, &start);
    assert_int_equal(tt_search_spread(&search, 9, &start, 1, 10, points), 10);
    assert_int_equal(tt_search_spread(&search, 9, &start, 1, 10, again), 10);
    assert_memory_equal(points, again, sizeof points);
    assert_int_equal(tt_search_spread(&search, 10, &start, 1, 10, again), 10);
    assert_memory_not_equal(points, again, sizeof points);
    unsigned layouts = 0, halves = 0;
    for (int i = 0; i < 10; i++) {
        assert_true(tt_space_valid(&p.space, &points[i]));
        assert_true(points[i].value[6] == 4); // fixed
        assert_false(tt_setting_equal(&points[i], &start));
        for (int j = 0; j < i; j++)
            assert_false(tt_setting_equal(&points[i], &points[j]));
        layouts |= 1u << (int)points[i].value[4];
        halves |= 1u << (int)points[i].value[3];
    }
    assert_true(layouts == 7 && halves == 3); // it reaches all names within 10
}

static int
nothing_goes(void *self, const tt_setting *setting)
{
    TT_UNUSED(self);
    TT_UNUSED(setting);
    return 0;
}

// Peak at a chosen setting, in unit coordinates.
typedef struct peak {
    const tt_search_space *search;
    double x[TT_KNOBS_MAX];
    uint32_t calls;
} peak;

static double
peak_value(void *self, const double *x, double *gradient)
{
    peak *p = self;
    double value = 0;
    for (uint32_t d = 0; d < p->search->dims; d++) {
        double off = x[d] - p->x[d];
        value -= off * off;
        if (gradient != NULL)
            gradient[d] = -2 * off;
    }
    return value;
}

static void
peak_score(void *self, const double *x, uint32_t count, double *out)
{
    peak *p = self;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = peak_value(self, x + i * p->search->dims, NULL);
        p->calls++;
    }
}

static void
test_maximum(void **state)
{
    TT_UNUSED(state);
    problem_space p;
    tt_search_space search;
    make_mixed(&p);
    tt_search_space_init(&search, &p.space);
    tt_setting top, taken[1], start;
    tt_space_start(&p.space, &start);
    top = start;
    top.value[0] = 6;
    top.value[1] = 1 << 18;
    top.value[2] = 1733;
    top.value[3] = 1;
    top.value[4] = 2;
    top.value[5] = 0.0371;
    peak target_self = {.search = &search};
    tt_search_encode(&search, &top, target_self.x);
    tt_search_target target = {&target_self, peak_score, peak_value};
    tt_search_options options = {.seed = 3};
    tt_search_result result, again;
    assert_int_equal(tt_search_maximize(&search, &target, &options, &result, NULL), TT_OK);
    assert_true(result.found[0] && !result.found[1]);
    for (int k = 0; k < 5; k++)
        assert_true(k == 2 || result.setting[0].value[k] == top.value[k]);
    // 1733 of 0..4096 on a log scale: the last step of the climb is 0.004 of it, 3.4 %.
    assert_true(fabs(log(result.setting[0].value[2] / 1733)) < 0.034);
    // The polish finds the real to its gradient tolerance.
    assert_true(fabs(log(result.setting[0].value[5] / 0.0371)) < 1e-4);
    assert_int_equal(result.evaluations >= target_self.calls, 1);
    assert_int_equal(tt_search_maximize(&search, &target, &options, &again, NULL), TT_OK);
    assert_memory_equal(&result, &again, sizeof result);

    // Taken: the best neighbour instead.
    p.space.knob[5].fixed = 1; // without the real
    tt_search_space_init(&search, &p.space);
    tt_search_encode(&search, &top, target_self.x);
    options.taken = taken;
    options.taken_count = 1;
    taken[0] = top;
    taken[0].value[5] = p.space.knob[5].start;
    assert_int_equal(tt_search_maximize(&search, &target, &options, &result, NULL), TT_OK);
    assert_false(tt_setting_equal(&result.setting[0], &taken[0]));
    assert_true(result.score[0] > -1e-4);
}

static void
test_classes_and_safe_set(void **state)
{
    TT_UNUSED(state);
    problem_space p;
    tt_search_space search;
    make_mixed(&p);
    p.space.accept = few_servers_or_half;
    tt_search_space_init(&search, &p.space);
    tt_setting start, top;
    tt_space_start(&p.space, &start);
    top = start;
    top.value[0] = 7; // with half = 0 not accepted
    peak target_self = {.search = &search};
    tt_search_encode(&search, &top, target_self.x);
    tt_search_target target = {&target_self, peak_score, NULL};
    tt_search_options options = {.seed = 4, .from = &start};
    tt_search_result result;
    assert_int_equal(tt_search_maximize(&search, &target, &options, &result, NULL), TT_OK);
    assert_true(result.found[0] && !result.found[1] && !result.found[2] && result.found[3]);
    assert_true(result.setting[0].value[0] == start.value[0]);
    assert_true(result.setting[3].value[0] == 4 && result.setting[3].value[3] == 0);
    assert_int_equal(tt_search_class(&search, &start, &result.setting[3]), 3);
    assert_true(tt_space_valid(&p.space, &result.setting[3]));

    p.space.accept = nothing_goes;
    tt_setting room[3];
    assert_int_equal(tt_search_spread(&search, 1, &start, 1, 3, room), 0);
    assert_int_equal(tt_search_maximize(&search, &target, &options, &result, NULL), TT_OK);
    assert_true(!result.found[0] && !result.found[3]);
    p.space.accept = NULL;
    tt_mem_fail_nth(1);
    assert_int_equal(tt_search_maximize(&search, &target, &options, &result, NULL), TT_NOMEM);
    tt_mem_fail_nth(0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_maximum),
        cmocka_unit_test(test_classes_and_safe_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
