// Goal: likeness counts what it should, and an earlier run's setting lands in this job's space as
// the user left it. Method: descriptions that differ in one thing each, against the documented
// weights; spaces of the built-in knobs, narrowed, fixed and dropped.
#include "warm_start.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static tt_repository_run
some_job(void)
{
    tt_repository_run job;
    tt_repository_run_init(&job);
    job.engine = "threads";
    job.driver = "messages";
    job.consistency = "asp";
    job.model = "logistic_regression";
    job.optimizer = "sgd";
    job.pull = "keyed";
    job.table_kind = "dense";
    job.batch_size = 64;
    job.nodes = 8;
    job.rows = 32561;
    job.features = 123;
    job.classes = 2;
    job.nonzeros = 13.87;
    job.cpu = "a processor";
    job.processors = 2;
    return job;
}

static void
test_distance(void **state)
{
    TT_UNUSED(state);
    char differs[200];
    tt_repository_run job = some_job(), other = job;
    assert_true(tti_warm_distance(&job, &other, differs, sizeof differs) == 0);
    assert_string_equal(differs, "");
    other.nodes = 4;
    double nodes = tti_warm_distance(&job, &other, differs, sizeof differs);
    assert_true(fabs(nodes - 0.7 * log(2)) < 1e-12);
    assert_string_equal(differs, "nodes 4 there, 8 here");
    assert_true(tti_warm_distance(&other, &job, differs, sizeof differs) == nodes);
    other.cpu = "another";
    double both = tti_warm_distance(&job, &other, differs, sizeof differs);
    assert_true(fabs(both - hypot(nodes, 0.5)) < 1e-12);
    assert_non_null(strstr(differs, ", processor another there, a processor here"));
    other = job;
    other.rows *= 100;
    assert_true(tti_warm_distance(&job, &other, differs, sizeof differs) < 0.25);
    other = job;
    other.nonzeros = NAN; // as a damaged row may have it: far, but a number
    assert_true(fabs(tti_warm_distance(&job, &other, differs, sizeof differs) - 0.4) < 1e-12);
    const char **words[] = {&other.model, &other.engine, &other.driver, &other.consistency};
    for (size_t i = 0; i < TT_COUNT_OF(words); i++) {
        other = job;
        *words[i] = "something else";
        assert_true(isinf(tti_warm_distance(&job, &other, differs, sizeof differs)));
        *words[i] = NULL;
        assert_true(isinf(tti_warm_distance(&job, &other, differs, sizeof differs)));
    }
    char tiny[8]; // cut off, not overrun
    other = job;
    other.nodes = 3;
    other.batch_size = 128;
    (void)tti_warm_distance(&job, &other, tiny, sizeof tiny);
    assert_true(strlen(tiny) < sizeof tiny);
}

static double
value_at(const tt_space *space, const tt_setting *setting, const char *id)
{
    int at = tt_space_find(space, id);
    assert_true(at >= 0);
    return setting->value[at];
}

static tt_space *
open_space(tt_knob_registry **registry)
{
    static tt_space space;
    assert_int_equal(tt_knob_registry_open(registry, NULL), TT_OK);
    tt_space_init(&space, *registry);
    return &space;
}

static uint32_t
find(const tt_space *space, const char *id)
{
    int at = tt_space_find(space, id);
    assert_true(at >= 0);
    return (uint32_t)at;
}

static void
test_project(void **state)
{
    TT_UNUSED(state);
    tt_knob_registry *registry;
    tt_space *space = open_space(&registry);
    tti_warm_projection p;
    const tt_repository_value values[] = {{"servers", 3, NULL},
                                          {"prefetch", 5, NULL},
                                          {"kernel", 0, "avx2"}, // another order of names there
                                          {"nobody's", 7.5, NULL}};
    tt_repository_row row = {.values = values, .value_count = TT_COUNT_OF(values)};
    tti_warm_project(space, &row, &p);
    assert_true(p.usable && !p.clipped && p.fixed == 0);
    assert_int_equal(p.missing, space->count - 3);
    assert_true(value_at(space, &p.setting, "servers") == 3);
    assert_true(value_at(space, &p.setting, "prefetch") == 5);
    assert_true(value_at(space, &p.setting, "kernel") == 1);
    assert_true(value_at(space, &p.setting, "chunk_bytes") ==
                space->knob[find(space, "chunk_bytes")].start);
    // Outside of the range, fixed to another value, not part of the job.
    uint32_t servers = find(space, "servers"), prefetch = find(space, "prefetch");
    assert_int_equal(tt_space_narrow(space, servers, 1, 2, NULL, NULL, NULL), TT_OK);
    assert_int_equal(tt_space_start_at(space, prefetch, 1, "by a test", NULL, NULL), TT_OK);
    tt_space_drop(space, find(space, "spin"), "for a test");
    tti_warm_project(space, &row, &p);
    assert_true(p.usable && p.clipped);
    assert_int_equal(p.fixed, 1);
    assert_int_equal(p.missing, space->count - 4);
    assert_string_equal(p.clips, "servers 2 instead of 3");
    assert_true(value_at(space, &p.setting, "servers") == 2);
    assert_true(value_at(space, &p.setting, "prefetch") == 1);
    tt_knob_registry_close(registry);
}

static void
test_unknown_values(void **state)
{
    TT_UNUSED(state);
    tt_knob_registry *registry;
    tt_space *space = open_space(&registry);
    tti_warm_projection p;
    const tt_repository_value none[] = {{"kernel", 1, "avx1024"}},
                              unnamed[] = {{"kernel", 1, NULL}};
    tt_repository_row row = {.values = none, .value_count = 1};
    tti_warm_project(space, &row, &p);
    assert_true(!p.usable);
    row.values = unnamed;
    tti_warm_project(space, &row, &p);
    assert_true(!p.usable);
    // Off the grid: the nearest value that is on it.
    const tt_repository_value off[] = {{"chunk_bytes", 70000, NULL}};
    row.values = off;
    tti_warm_project(space, &row, &p);
    assert_true(p.usable && p.clipped && value_at(space, &p.setting, "chunk_bytes") == 65536);
    tt_knob_registry_close(registry);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_project),
        cmocka_unit_test(test_unknown_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
