// Goal: the registry takes good plugins whole and refuses bad ones with a sentence, leaving nothing
// behind. Method: plugins built as their authors would build them, and one good description broken
// in one place at a time.
#include "knobs_internal.h"
#include "tt/core_plugin.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static const char *const builtin_ids[] = {
    "servers", "compute_threads", "kernel",   "pinning",          "bf16_transfer", "chunk_bytes",
    "spin",    "in_flight",       "prefetch", "push_aggregation", "staleness",     "compression"};

static tt_knob_registry *
open_registry(void)
{
    tt_knob_registry *registry = NULL;
    tt_error err = {0};
    assert_int_equal(tt_knob_registry_open(&registry, &err), TT_OK);
    return registry;
}

static void
builtins_are_described(void **state)
{
    TT_UNUSED(state);
    tt_knob_registry *registry = open_registry();
    assert_int_equal(tt_knob_registry_count(registry), TT_COUNT_OF(builtin_ids));
    for (uint32_t i = 0; i < TT_COUNT_OF(builtin_ids); i++) {
        assert_string_equal(tt_knob_registry_at(registry, i)->id, builtin_ids[i]);
        assert_string_equal(tt_knob_registry_origin(registry, i), "built in");
        assert_string_equal(tt_knob_registry_build(registry, i), "");
    }
    assert_null(tt_knob_registry_at(registry, TT_COUNT_OF(builtin_ids)));
    assert_null(tt_knob_registry_find(registry, "server"));
    const tt_knob *servers = tt_knob_registry_find(registry, "servers");
    assert_int_equal(servers->effect, TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL);
    assert_int_equal(servers->changes_statistics, TT_KNOB_STATISTICS);
    const tt_knob *bf16 = tt_knob_registry_find(registry, "bf16_transfer");
    assert_int_equal(bf16->changes_statistics, TT_KNOB_LOSSY);
    const tt_knob *kernel = tt_knob_registry_find(registry, "kernel");
    assert_true(kernel->max == 2.0);
    assert_string_equal(kernel->values[2], "avx512");
    tt_knob_registry_close(registry);
}

static void
a_plugin_brings_its_knobs(void **state)
{
    TT_UNUSED(state);
    tt_knob_registry *registry = open_registry();
    tt_error err = {0};
    const char *path = TT_KNOB_PLUGINS "/test_plugin.ttk";
    assert_int_equal(tt_knob_registry_load(registry, path, &err), TT_OK);
    assert_int_equal(tt_knob_registry_count(registry), TT_COUNT_OF(builtin_ids) + 4);
    const tt_knob *rate = tt_knob_registry_find(registry, "test_rate");
    assert_non_null(rate);
    assert_true(rate->min == 1e-4 && rate->max == 10 && rate->default_value == 0.037);
    assert_string_equal(tt_knob_registry_find(registry, "test_moody")->unit, ""); // NULL there
    assert_string_equal(tt_knob_registry_origin(registry, TT_COUNT_OF(builtin_ids)), path);
    assert_non_null(strstr(tt_knob_registry_build(registry, 12), "header 1.0"));
    // the same plugin again: its ids are taken, and by whom
    assert_int_equal(tt_knob_registry_load(registry, path, &err), TT_EXISTS);
    assert_non_null(strstr(err.what, "'test_rate' exists already"));
    assert_non_null(strstr(err.what, "test_plugin.ttk"));
    assert_int_equal(tt_knob_registry_count(registry), TT_COUNT_OF(builtin_ids) + 4);
    tt_knob_registry_close(registry);
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
        {TT_KNOB_PLUGINS "/no_such.ttk", TT_NOTFOUND, "No such file"},
        {TT_SOURCE_DIR "/knobs", TT_INVALID, "not a file"},
        {TT_SOURCE_DIR "/knobs/README.md", TT_INVALID, "not a loadable knob plugin"},
        {TT_KNOB_PLUGINS "/bad_plugin_0.ttk", TT_INVALID, "does not export tt_knob_plugin_abi1"},
        {TT_KNOB_PLUGINS "/bad_plugin_1.ttk", TT_INVALID, "version 7 of the knob interface"},
        {TT_KNOB_PLUGINS "/bad_plugin_2.ttk", TT_INVALID, "'upside_down': min is above max"},
        {TT_KNOB_PLUGINS "/bad_plugin_3.ttk", TT_EXISTS, "'spin' exists already (built in)"},
        {TT_KNOB_PLUGINS "/bad_plugin_4.ttk", TT_INVALID, "knob 1 of this plugin"},
    };
    tt_knob_registry *registry = open_registry();
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_error err = {0};
        assert_int_equal(tt_knob_registry_load(registry, cases[i].path, &err), cases[i].status);
        if (strstr(err.what, cases[i].says) == NULL)
            fail_msg("%s: says '%s', not '%s'", cases[i].path, err.what, cases[i].says);
        assert_string_equal(err.where, cases[i].path);
        assert_int_equal(tt_knob_registry_count(registry), TT_COUNT_OF(builtin_ids));
    }
    assert_null(tt_knob_registry_find(registry, "good_one"));
    // and it still takes a good one
    assert_int_equal(tt_knob_registry_load(registry, TT_KNOB_PLUGINS "/test_plugin.ttk", NULL),
                     TT_OK);
    tt_knob_registry_close(registry);
}

// ---- descriptions ----------------------------------------------------------------------------

static void *
open_any(const tt_knob_host *host)
{
    TT_UNUSED(host);
    return NULL;
}
static int
prepare_any(void *self, double value, char *reason, size_t size)
{
    TT_UNUSED(self);
    TT_UNUSED(reason);
    TT_UNUSED(size);
    return value > 0;
}
static void
act(void *self)
{
    TT_UNUSED(self);
}

static const char *const three[] = {"row", "col", "2d", NULL};
static const char *const none[] = {NULL};
static const char *const twice[] = {"row", "col", "row", NULL};
static const char *const spaced[] = {"row", "a col", NULL};
static const char *const many[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                   "j", "k", "l", "m", "n", "o", "p", "q", NULL};

static tt_knob
good(tt_knob_kind kind)
{
    return (tt_knob){.struct_size = sizeof(tt_knob),
                     .id = "good",
                     .help = "fine",
                     .kind = kind,
                     .min = 4,
                     .max = 1024,
                     .default_value = kind == TT_KNOB_BOOL || kind == TT_KNOB_ENUM ? 1 : 64,
                     .values = kind == TT_KNOB_ENUM ? three : NULL,
                     .open = open_any,
                     .prepare = prepare_any,
                     .commit = act,
                     .rollback = act,
                     .close = act};
}

static void
expect_fault(tt_knob knob, const char *fault)
{
    tt_error err = {0};
    assert_int_equal(tti_knob_check(&knob, "x.ttk", &err), TT_INVALID);
    if (strstr(err.what, fault) == NULL)
        fail_msg("says '%s', not '%s'", err.what, fault);
    assert_string_equal(err.where, "x.ttk");
}

#define EXPECT(fault_, kind_, change_)                                                             \
    do {                                                                                           \
        tt_knob knob = good(kind_);                                                                \
        change_;                                                                                   \
        expect_fault(knob, fault_);                                                                \
    } while (0)

static void
broken_texts_are_refused(void **state)
{
    TT_UNUSED(state);
    EXPECT("has no id", TT_KNOB_INT, knob.id = NULL);
    EXPECT("[a-z][a-z0-9_]*", TT_KNOB_INT, knob.id = "");
    EXPECT("[a-z][a-z0-9_]*", TT_KNOB_INT, knob.id = "2fast");
    EXPECT("[a-z][a-z0-9_]*", TT_KNOB_INT, knob.id = "Servers");
    EXPECT("[a-z][a-z0-9_]*", TT_KNOB_INT, knob.id = "a-b");
    EXPECT("40 characters", TT_KNOB_INT, knob.id = "a23456789_123456789_123456789_123456789_1");
    EXPECT("no help", TT_KNOB_INT, knob.help = NULL);
    EXPECT("one line", TT_KNOB_INT, knob.help = "two\nlines");
    EXPECT("without values", TT_KNOB_ENUM, knob.values = NULL);
    EXPECT("without values", TT_KNOB_ENUM, knob.values = none);
    EXPECT("same name", TT_KNOB_ENUM, knob.values = twice);
    EXPECT("[a-z0-9_]+", TT_KNOB_ENUM, knob.values = spaced);
    EXPECT("more than 16", TT_KNOB_ENUM, knob.values = many);
}

static void
broken_numbers_are_refused(void **state)
{
    TT_UNUSED(state);
    EXPECT("unknown kind", TT_KNOB_INT, knob.kind = (tt_knob_kind)9);
    EXPECT("min is above max", TT_KNOB_INT, knob.min = 1025);
    EXPECT("default is out of range", TT_KNOB_INT, knob.default_value = 3);
    EXPECT("default is out of range", TT_KNOB_ENUM, knob.default_value = 3);
    EXPECT("default is out of range", TT_KNOB_BOOL, knob.default_value = 2);
    EXPECT("whole numbers", TT_KNOB_INT, knob.min = 4.5);
    EXPECT("whole numbers", TT_KNOB_INT, knob.max = 1e17);
    EXPECT("finite", TT_KNOB_REAL, knob.max = HUGE_VAL);
    EXPECT("finite", TT_KNOB_REAL, knob.default_value = (double)NAN);
    EXPECT("unknown flags", TT_KNOB_INT, knob.effect = 4);
    EXPECT("changes_statistics", TT_KNOB_INT, knob.changes_statistics = 3);
    EXPECT("scale that its kind", TT_KNOB_BOOL, knob.scale = TT_KNOB_LOG2);
    EXPECT("scale that its kind", TT_KNOB_ENUM, knob.scale = TT_KNOB_LOG2);
    EXPECT("scale that its kind", TT_KNOB_INT, knob.scale = (tt_knob_scale)2);
    EXPECT("min above 0", TT_KNOB_REAL, (knob.scale = TT_KNOB_LOG2, knob.min = 0));
    EXPECT("at least 0", TT_KNOB_INT, (knob.scale = TT_KNOB_LOG2, knob.min = -1));
    EXPECT("grid that its kind", TT_KNOB_REAL, knob.grid = TT_KNOB_POWERS_OF_TWO);
    EXPECT("powers of two", TT_KNOB_INT, (knob.grid = TT_KNOB_POWERS_OF_TWO, knob.max = 1023));
    EXPECT("powers of two", TT_KNOB_INT, (knob.grid = TT_KNOB_POWERS_OF_TWO, knob.min = 0));
}

static void
a_missing_function_is_refused(void **state)
{
    TT_UNUSED(state);
    EXPECT("needs all of", TT_KNOB_INT, knob.open = NULL);
    EXPECT("needs all of", TT_KNOB_INT, knob.prepare = NULL);
    EXPECT("needs all of", TT_KNOB_INT, knob.commit = NULL);
    EXPECT("needs all of", TT_KNOB_INT, knob.rollback = NULL);
    EXPECT("needs all of", TT_KNOB_INT, knob.close = NULL);
}

static void
what_may_be_left_out_is_filled_in(void **state)
{
    TT_UNUSED(state);
    tt_knob choice = good(TT_KNOB_ENUM), onoff = good(TT_KNOB_BOOL), count = good(TT_KNOB_INT);
    count.scale = TT_KNOB_LOG2;
    count.min = 0; // allowed for ints: log2(1 + x)
    assert_int_equal(tti_knob_check(&choice, "x.ttk", NULL), TT_OK);
    assert_int_equal(tti_knob_check(&onoff, "x.ttk", NULL), TT_OK);
    assert_int_equal(tti_knob_check(&count, "x.ttk", NULL), TT_OK);
    assert_true(choice.min == 0 && choice.max == 2);
    assert_true(onoff.min == 0 && onoff.max == 1);
    assert_string_equal(count.unit, "");
}

// ---- versions and memory ---------------------------------------------------------------------

static void
structs_of_other_minors_are_understood(void **state)
{
    TT_UNUSED(state);
    struct {
        uint32_t struct_size, a, b;
    } ours = {0};
    const uint32_t older[] = {8, 71, 0xdead}, newer[] = {20, 72, 73, 74, 75}, broken[] = {4, 76};
    assert_true(tt_plugin_copy_struct(&ours, sizeof ours, older, 8));
    assert_int_equal(ours.struct_size, sizeof ours);
    assert_int_equal(ours.a, 71);
    assert_int_equal(ours.b, 0); // not 0xdead: the older side does not have it
    assert_true(tt_plugin_copy_struct(&ours, sizeof ours, newer, 8));
    assert_int_equal(ours.b, 73);
    assert_false(tt_plugin_copy_struct(&ours, sizeof ours, broken, 8));
}

static void
short_memory_is_an_error_not_a_crash(void **state)
{
    TT_UNUSED(state);
    tt_knob_registry *registry = NULL;
    tt_error err = {0};
    tt_mem_fail_nth(1);
    assert_int_equal(tt_knob_registry_open(&registry, &err), TT_NOMEM);
    assert_null(registry);
    registry = open_registry();
    tt_mem_fail_nth(1);
    assert_int_equal(tt_knob_registry_load(registry, TT_KNOB_PLUGINS "/test_plugin.ttk", &err),
                     TT_NOMEM);
    assert_false(tt_mem_fail_pending());
    assert_int_equal(tt_knob_registry_count(registry), TT_COUNT_OF(builtin_ids));
    tt_knob_registry_close(registry);
    tt_knob_registry_close(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builtins_are_described),
        cmocka_unit_test(a_plugin_brings_its_knobs),
        cmocka_unit_test(bad_plugins_are_refused_whole),
        cmocka_unit_test(broken_texts_are_refused),
        cmocka_unit_test(broken_numbers_are_refused),
        cmocka_unit_test(a_missing_function_is_refused),
        cmocka_unit_test(what_may_be_left_out_is_filled_in),
        cmocka_unit_test(structs_of_other_minors_are_understood),
        cmocka_unit_test(short_memory_is_an_error_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
