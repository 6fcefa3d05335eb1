// Goal: a set of knobs changes together or not at all, and the built-in knobs act through the
// runtime extension only.
// Method: a host that writes down every number that is set; a plugin whose knobs refuse on purpose;
// memory that runs out at every allocation in turn.
#include "fake_runtime.h"
#include "tt/knobs.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static const char *const names[] = {"servers",          "compute_threads", "kernel",    "pinning",
                                    "bf16_transfer",    "chunk_bytes",     "spin",      "in_flight",
                                    "prefetch",         "staleness",       "test_rate", "test_pair",
                                    "push_aggregation", "compression"};

struct fixture {
    tt_knob_registry *registry;
    tt_space space;
    fake_runtime node;
    tt_knob_set *set;
    tt_setting start;
};

static int
set_up(void **state)
{
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fake_init(&fixture.node, names, TT_COUNT_OF(names));
    if (tt_knob_registry_open(&fixture.registry, NULL) != TT_OK ||
        tt_knob_registry_load(fixture.registry, TT_KNOB_PLUGINS "/test_plugin.ttk", NULL) != TT_OK)
        return -1;
    tt_space_init(&fixture.space, fixture.registry);
    tt_space_start(&fixture.space, &fixture.start);
    if (tt_knob_set_open(&fixture.space, &fixture.node.host, &fixture.set, NULL) != TT_OK)
        return -1;
    *state = &fixture;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *fixture = *state;
    tt_knob_set_close(fixture->set);
    tt_knob_registry_close(fixture->registry);
    return 0;
}

static double *
value_of(struct fixture *fixture, tt_setting *setting, const char *id)
{
    int index = tt_space_find(&fixture->space, id);
    assert_true(index >= 0);
    return &setting->value[index];
}

static double
number_of(struct fixture *fixture, const char *name)
{
    double value = -1;
    assert_int_equal(fake_get(&fixture->node, name, &value), 0);
    return value;
}

static void
begin(struct fixture *fixture)
{
    tt_error err = {0};
    assert_null(tt_knob_set_current(fixture->set));
    assert_int_equal(tt_knob_set_prepare(fixture->set, &fixture->start, &err), TT_OK);
    assert_int_equal(fixture->node.set_count, 0);
    tt_knob_set_commit(fixture->set);
    assert_true(tt_setting_equal(tt_knob_set_current(fixture->set), &fixture->start));
}

static void
the_first_commit_sets_everything(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    assert_int_equal(fixture->node.set_count, 14); // 12 built in, test_rate, test_pair once
    assert_true(number_of(fixture, "chunk_bytes") == 65536);
    assert_true(number_of(fixture, "spin") == 100);
    assert_true(number_of(fixture, "test_rate") == 0.037);
    assert_true(number_of(fixture, "test_pair") == 1122); // both instances, in one call
}

static void
later_commits_set_what_differs(void **state)
{
    struct fixture *fixture = *state;
    tt_setting target = fixture->start;
    begin(fixture);
    fixture->node.set_count = 0;
    *value_of(fixture, &target, "chunk_bytes") = 262144;
    *value_of(fixture, &target, "test_right") = 33;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, NULL), TT_OK);
    tt_knob_set_commit(fixture->set);
    assert_int_equal(fixture->node.set_count, 2);
    assert_true(number_of(fixture, "chunk_bytes") == 262144);
    assert_true(number_of(fixture, "test_pair") == 33); // only the changed half of the pair
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, NULL), TT_OK);
    tt_knob_set_commit(fixture->set);
    assert_int_equal(fixture->node.set_count, 2); // nothing differed
}

static void
one_refusal_rolls_all_back(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    tt_setting target = fixture->start;
    begin(fixture);
    fixture->node.set_count = 0;
    *value_of(fixture, &target, "spin") = 2000;
    *value_of(fixture, &target, "test_rate") = 0.5;
    *value_of(fixture, &target, "test_moody") = 6;
    *value_of(fixture, &target, "test_left") = 44;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_INVALID);
    assert_string_equal(err.what, "knob 'test_moody' refuses 6: more than 5 is too much for me");
    assert_int_equal(fixture->node.set_count, 0);
    assert_true(tt_setting_equal(tt_knob_set_current(fixture->set), &fixture->start));
    // everything can be prepared again (the plugin aborts when it is still prepared)
    *value_of(fixture, &target, "test_moody") = 4;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_OK);
    tt_knob_set_rollback(fixture->set);
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_OK);
    tt_knob_set_commit(fixture->set);
    assert_true(number_of(fixture, "test_rate") == 0.5 && number_of(fixture, "spin") == 2000);
}

static void
rude_refusals_are_understood(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    tt_setting target = fixture->start;
    *value_of(fixture, &target, "test_moody") = 3;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "refuses 3: it gives no reason"));
    *value_of(fixture, &target, "test_moody") = 7;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "refuses 7: xxx")); // and no read beyond the buffer
    assert_int_equal(fixture->node.set_count, 0);
}

static void
a_setting_of_another_space_is_refused(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    tt_setting target = fixture->start;
    target.count--;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_RANGE);
    target = fixture->start;
    *value_of(fixture, &target, "in_flight") = 17;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_RANGE);
    assert_string_equal(err.what, "in_flight must be from 1 request to 16 requests, not 17 "
                                  "requests");
    *value_of(fixture, &target, "in_flight") = 2.5;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &target, &err), TT_RANGE);
    assert_int_equal(fixture->node.set_count, 0);
}

static void
what_a_node_does_not_have_is_refused_or_dropped(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    fake_runtime small;
    fake_init(&small, names, 5); // up to bf16_transfer; no chunk_bytes and what follows
    tt_knob_set *set = NULL;
    assert_int_equal(tt_knob_set_open(&fixture->space, &small.host, &set, &err), TT_OK);
    assert_int_equal(tt_knob_set_prepare(set, &fixture->start, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "this node has nothing called chunk_bytes"));
    assert_int_equal(small.set_count, 0);
    tt_knob_set_close(set);
    tt_space space = fixture->space;
    for (uint32_t i = 5; i < space.count; i++)
        tt_space_drop(&space, i, "in_place sends no messages");
    assert_int_equal(tt_knob_set_open(&space, &small.host, &set, &err), TT_OK);
    assert_int_equal(tt_knob_set_prepare(set, &fixture->start, &err), TT_OK);
    tt_knob_set_commit(set);
    assert_int_equal(small.set_count, 5);
    tt_knob_set_close(set);
}

static void
a_host_without_runtime_is_told_so(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    fake_runtime bare;
    fake_init(&bare, names, TT_COUNT_OF(names));
    bare.offers_runtime = 0;
    tt_knob_set *set = NULL;
    assert_int_equal(tt_knob_set_open(&fixture->space, &bare.host, &set, &err), TT_OK);
    assert_int_equal(tt_knob_set_prepare(set, &fixture->start, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "does not offer tt.runtime/1"));
    tt_knob_set_close(set);
}

// Built-in knobs are asked directly, as `trimtab knobs check` and a careless host would.
static void
builtins_refuse_nonsense_themselves(void **state)
{
    struct fixture *fixture = *state;
    char reason[128];
    for (uint32_t i = 0; i < 11; i++) {
        const tt_knob *knob = fixture->space.knob[i].knob;
        double wrong[] = {knob->min - 1, knob->max + 1, knob->min + 0.37,
                          -1e300,        1e300,         (double)__builtin_nan("")};
        void *self = knob->open(&fixture->node.host);
        assert_non_null(self);
        for (size_t k = 0; k < TT_COUNT_OF(wrong); k++) {
            reason[0] = '\0';
            assert_int_not_equal(knob->prepare(self, wrong[k], reason, sizeof reason), 0);
            assert_true(strlen(reason) > 10);
        }
        assert_int_equal(knob->prepare(self, knob->min, reason, sizeof reason), 0);
        knob->rollback(self);
        knob->close(self);
    }
    assert_int_equal(fixture->node.set_count, 0);
}

static void
kernel_asks_the_processor(void **state)
{
    struct fixture *fixture = *state;
    const tt_knob *kernel = tt_knob_registry_find(fixture->registry, "kernel");
    void *self = kernel->open(&fixture->node.host);
    char reason[128] = "";
    int refused = kernel->prepare(self, 2, reason, sizeof reason) != 0;
#if defined(__x86_64__)
    int has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    int has = 0;
#endif
    assert_int_equal(refused, !has);
    if (refused)
        assert_string_equal(reason, "this processor has no avx512");
    kernel->close(self);
}

static void
short_memory_opens_nothing(void **state)
{
    struct fixture *fixture = *state;
    tt_error err = {0};
    int failures = 0;
    for (uint64_t n = 1; n < 100; n++) {
        tt_knob_set *set = NULL;
        tt_mem_fail_nth(n);
        tt_status status = tt_knob_set_open(&fixture->space, &fixture->node.host, &set, &err);
        tt_mem_fail_nth(0);
        if (status == TT_OK) {
            tt_knob_set_close(set);
            break;
        }
        failures++;
        assert_int_equal(status, TT_NOMEM);
        assert_null(set);
    }
    assert_int_equal(failures, 13); // the set and twelve built-in instances
    tt_knob_set_close(NULL);
}

static void
close_rolls_back_what_is_prepared(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(tt_knob_set_prepare(fixture->set, &fixture->start, NULL), TT_OK);
    tt_knob_set_close(fixture->set);
    fixture->set = NULL;
    assert_int_equal(fixture->node.set_count, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_commit_sets_everything),
        TEST(later_commits_set_what_differs),
        TEST(one_refusal_rolls_all_back),
        TEST(rude_refusals_are_understood),
        TEST(a_setting_of_another_space_is_refused),
        TEST(what_a_node_does_not_have_is_refused_or_dropped),
        TEST(a_host_without_runtime_is_told_so),
        TEST(builtins_refuse_nonsense_themselves),
        TEST(kernel_asks_the_processor),
        TEST(short_memory_opens_nothing),
        TEST(close_rolls_back_what_is_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
