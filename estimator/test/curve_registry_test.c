// Goal: the registry takes good curve plugins whole and refuses bad ones with a sentence, leaving
// nothing behind; what it loaded works in an estimator. Method: plugins built as their authors
// would build them.
#include "est_family.h"
#include "tt/core.h"
#include "tt/estimator_curves.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static tt_curves *
open_empty(void)
{
    tt_curves *curves = NULL;
    tt_error err = {0};
    assert_int_equal(tt_curves_open(&curves, &err), TT_OK);
    assert_int_equal(tt_curves_count(curves), 0);
    return curves;
}

static void
a_plugin_brings_its_families(void **state)
{
    TT_UNUSED(state);
    tt_curves *curves = open_empty();
    tt_error err = {0};
    const char *path = TT_CURVE_PLUGINS "/stretched.ttc";
    assert_int_equal(tt_curves_load(curves, path, &err), TT_OK);
    assert_int_equal(tt_curves_count(curves), 2);
    assert_string_equal(tt_curves_list(curves)[0]->name, "stretched");
    assert_null(tt_curves_list(curves)[1]->floor);
    assert_string_equal(tt_curves_origin(curves, 1), path);
    assert_non_null(strstr(tt_curves_build(curves, 0), "header 1.0"));
    // the same plugin again: its names are taken, and by whom
    assert_int_equal(tt_curves_load(curves, path, &err), TT_EXISTS);
    assert_non_null(strstr(err.what, "'stretched' exists already"));
    assert_non_null(strstr(err.what, "stretched.ttc"));
    assert_int_equal(tt_curves_count(curves), 2);
    tt_curves_close(curves);
}

static void
bad_plugins_are_refused_whole(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *path;
        tt_status status;
        const char *says;
    } cases[] = {
        {TT_CURVE_PLUGINS "/no_such.ttc", TT_NOTFOUND,
         "cannot open the curve plugin: No such file"},
        {TT_SOURCE_DIR "/estimator", TT_INVALID, "not a file"},
        {TT_SOURCE_DIR "/estimator/README.md", TT_INVALID, "not a loadable curve plugin"},
        {TT_CURVE_PLUGINS "/bad_curve_0.ttc", TT_INVALID, "does not export tt_curve_plugin_abi1"},
        {TT_CURVE_PLUGINS "/bad_curve_1.ttc", TT_INVALID, "version 7 of the curve interface"},
        {TT_CURVE_PLUGINS "/bad_curve_2.ttc", TT_INVALID, "'without_numbers': parameters must be"},
        {TT_CURVE_PLUGINS "/bad_curve_3.ttc", TT_EXISTS, "'power' exists already (built in)"},
        {TT_CURVE_PLUGINS "/bad_curve_4.ttc", TT_INVALID, "curve 1 of this plugin"},
        {TT_CURVE_PLUGINS "/bad_curve_5.ttc", TT_RANGE, "more than 5 curves"},
        {TT_CURVE_PLUGINS "/bad_curve_6.ttc", TT_INVALID, "'formless': needs both guess and loss"},
    };
    tt_curves *curves = open_empty();
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_error err = {0};
        assert_int_equal(tt_curves_load(curves, cases[i].path, &err), cases[i].status);
        if (strstr(err.what, cases[i].says) == NULL)
            fail_msg("%s: says '%s', not '%s'", cases[i].path, err.what, cases[i].says);
        assert_string_equal(err.where, cases[i].path);
        assert_int_equal(tt_curves_count(curves), 0);
    }
    // and it still takes a good one
    assert_int_equal(tt_curves_load(curves, TT_CURVE_PLUGINS "/stretched.ttc", NULL), TT_OK);
    assert_string_equal(tt_curves_list(curves)[0]->name, "stretched");
    tt_curves_close(curves);
}

static void
short_memory_is_an_error_not_a_crash(void **state)
{
    TT_UNUSED(state);
    tt_curves *curves = NULL;
    tt_error err = {0};
    tt_mem_fail_nth(1);
    assert_int_equal(tt_curves_open(&curves, &err), TT_NOMEM);
    assert_null(curves);
    curves = open_empty();
    tt_mem_fail_nth(1);
    assert_int_equal(tt_curves_load(curves, TT_CURVE_PLUGINS "/stretched.ttc", &err), TT_NOMEM);
    assert_false(tt_mem_fail_pending());
    assert_int_equal(tt_curves_count(curves), 0);
    tt_curves_close(curves);
    tt_curves_close(NULL);
}

// From the file to an answer.
static void
what_was_loaded_is_used(void **state)
{
    TT_UNUSED(state);
    tt_curves *curves = open_empty();
    assert_int_equal(tt_curves_load(curves, TT_CURVE_PLUGINS "/stretched.ttc", NULL), TT_OK);
    const tt_est_options options = {.target_loss = 0.4,
                                    .budget_iterations = INFINITY,
                                    .curves = tt_curves_list(curves),
                                    .curve_count = tt_curves_count(curves)};
    tt_estimator *est;
    tt_rng rng;
    tt_rng_init(&rng, 11, TT_RNG_TEST, 0);
    assert_int_equal(tt_estimator_open(&options, &est, NULL), TT_OK);
    tt_estimator_begin(est, 1, 0, 2, NULL, 0);
    for (uint32_t i = 0; i < 2500; i++) {
        const double mean = 0.3 + 1.7 * exp(-pow(i / 800.0, 0.6));
        const tt_est_sample sample = {.sequence = i,
                                      .worker = i % 2,
                                      .examples = 32,
                                      .loss = mean * (1 + 0.02 * tt_rng_normal(&rng)),
                                      .time_s = 1e-3 * i,
                                      .cycle_s = 2e-3};
        tt_estimator_add(est, &sample);
    }
    tt_est_window window;
    tt_estimator_end(est, 1, &window);
    tt_est_family_state families[TT_EST_FAMILIES_MAX];
    assert_int_equal(tt_estimator_families(est, families, TT_EST_FAMILIES_MAX), TTI_FAMILIES + 2);
    const tt_est_family_state *own = &families[TTI_FAMILIES];
    assert_string_equal(own[0].name, "stretched");
    assert_true(fabs(own[0].floor - 0.3) < 0.1 && own[0].weight > 0);
    // exp(-(k / 800)^0.6) = 0.1 / 1.7
    const double left = 800 * pow(log(17), 1 / 0.6) - 2500;
    assert_true(fabs(own[0].log_iterations - log(left)) < 3 * own[0].log_iterations_sd);
    assert_string_equal(own[1].name, "straight");
    assert_true(isnan(own[1].floor));
    tt_estimator_close(est);
    tt_curves_close(curves);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_brings_its_families),
        cmocka_unit_test(bad_plugins_are_refused_whole),
        cmocka_unit_test(short_memory_is_an_error_not_a_crash),
        cmocka_unit_test(what_was_loaded_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
