// Goal: curvature that grows as a power of the iterations is foreseen at twice of them, one that
// does not grow is not, noise of its measurements or none. Method: measurements of known powers.
#include "est_bend.h"
#include "tt/core.h"
#include <math.h>

// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// 12,800 iterations, measured every 32 of them; each within `noise` of its power.
static tti_bend
bent(double power, double noise)
{
    enum { COUNT = 12800, EVERY = 32 };
    tti_bend bend = {0};
    for (double i = EVERY; i <= COUNT; i += EVERY)
        tti_bend_add(&bend, 0.1 * pow(i / COUNT, power) * (1 + noise * sin(12.9898 * i * i)), i);
    return bend;
}

static void
foresees_what_grows(void **state)
{
    TT_UNUSED(state);
    static const struct {
        double power, noise, least, most; // of the growth to twice the iterations
    } cases[] = {
        {0.5, 0, 1.40, 1.45}, {0.5, 0.2, 1.2, 1.5}, {0, 0, 1, 1},       {0, 0.2, 1, 1.1},
        {-0.5, 0, 1, 1},      {-0.5, 0.2, 1, 1},    {3, 0, 2.0, 2.001},
    }; // at most in proportion
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        const tti_bend bend = bent(cases[i].power, cases[i].noise);
        const double growth = tti_bend_ahead(&bend) / tti_bend_now(&bend);
        assert_true(growth >= cases[i].least - 1e-9 && growth <= cases[i].most + 1e-9);
    }
}

static void
is_the_median_of_the_last_nine(void **state)
{
    TT_UNUSED(state);
    tti_bend bend = {0};
    tti_bend_add(&bend, 5, 1);
    assert_true(tti_bend_now(&bend) == 5);
    for (int i = 0; i < 9; i++) // 1 to 9, in disorder
        tti_bend_add(&bend, 1 + (4 * i) % 9, 1);
    assert_true(tti_bend_now(&bend) == 5);
    for (int i = 0; i < 5; i++)
        tti_bend_add(&bend, 100, 1);
    assert_true(tti_bend_now(&bend) == 100);
}

static void
says_nothing_of_what_it_does_not_know(void **state)
{
    TT_UNUSED(state);
    tti_bend bend = {0};
    assert_true(isnan(tti_bend_now(&bend)) && isnan(tti_bend_ahead(&bend)));
    for (double i = 1; i < 10; i++) { // too few to be growing
        tti_bend_add(&bend, 0.01 * i, i);
        assert_true(tti_bend_ahead(&bend) == tti_bend_now(&bend));
    }
    const tti_bend before = bend;
    tti_bend_add(&bend, 0, 10);
    tti_bend_add(&bend, -1, 10);
    tti_bend_add(&bend, NAN, 10);
    tti_bend_add(&bend, INFINITY, 10);
    assert_memory_equal(&bend, &before, sizeof bend);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_median_of_the_last_nine),
        cmocka_unit_test(foresees_what_grows),
        cmocka_unit_test(says_nothing_of_what_it_does_not_know),
    };
    return cmocka_run_group_tests_name("bend", tests, NULL, NULL);
}
