// Goal: patience counts evaluations without improvement by more than min_delta, small improvements
// add up, and the lowest loss is the best whatever min_delta. Method: sequences of losses worked
// out by hand.
#include "early_stopping.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Notes losses until patience is over; how many it took, 0: never.
static uint32_t
notes_until_over(tti_early_stopping *state,
                 const double *losses,
                 size_t count,
                 double min_delta,
                 int64_t patience)
{
    tti_early_stopping_init(state);
    for (size_t i = 0; i < count; i++) {
        (void)tti_early_stopping_note(state, losses[i], min_delta, 100 * (i + 1),
                                      0.5 * (double)(i + 1));
        if (tti_early_stopping_over(state, patience))
            return (uint32_t)i + 1;
    }
    return 0;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
patience_counts_from_the_best(void **state)
{
    (void)state;
    static const double losses[] = {0.71, 0.62, 0.57, 0.59, 0.58, 0.60, 0.55};
    tti_early_stopping s;
    assert_int_equal(notes_until_over(&s, losses, COUNT(losses), 0, 3), 6);
    assert_int_equal(s.best_evaluation, 3);
    assert_int_equal(s.best_iteration, 300);
    assert_true(s.best_loss == 0.57 && s.best_epoch == 1.5);
    assert_int_equal(notes_until_over(&s, losses, COUNT(losses), 0, 4), 0);
    assert_int_equal(s.best_evaluation, 7);
    assert_int_equal(s.without_improvement, 0);
    assert_int_equal(notes_until_over(&s, losses, COUNT(losses), 0, 0), 0);
}

static void
small_improvements_add_up(void **state)
{
    (void)state;
    // Each step is below min_delta, two together are above it.
    static const double slow[] = {0.500, 0.494, 0.488, 0.482, 0.476, 0.470};
    static const double slower[] = {0.500, 0.498, 0.496, 0.494, 0.492, 0.491};
    tti_early_stopping s;
    assert_int_equal(notes_until_over(&s, slow, COUNT(slow), 0.01, 2), 0);
    assert_int_equal(notes_until_over(&s, slower, COUNT(slower), 0.01, 2), 3);
    assert_int_equal(s.best_evaluation, 3); // the lowest all the same
    assert_true(s.best_loss == 0.496 && s.reference_loss == 0.500);
}

static void
losses_that_are_not_finite_are_no_improvement(void **state)
{
    (void)state;
    const double losses[] = {(double)NAN, (double)INFINITY, 2.385, (double)NAN, (double)NAN};
    tti_early_stopping s;
    assert_int_equal(notes_until_over(&s, losses, COUNT(losses), 0, 2), 2);
    assert_int_equal(s.best_evaluation, 0);
    assert_int_equal(notes_until_over(&s, losses, COUNT(losses), 0, 3), 0);
    assert_int_equal(s.best_evaluation, 3);
    assert_int_equal(s.without_improvement, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patience_counts_from_the_best),
        cmocka_unit_test(small_improvements_add_up),
        cmocka_unit_test(losses_that_are_not_finite_are_no_improvement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
