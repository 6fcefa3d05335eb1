// Goal: coordinates, grids and ranges of the search space, and values as text.
// Method: properties over every value of the built-in knobs and over random ranges and coordinates
// (seed below); hand-computed coordinates; messages compared in full.
#include "tt/knobs.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 20318, DRAWS = 20000 };

struct fixture {
    tt_knob_registry *registry;
    tt_space space;
};

static int
set_up(void **state)
{
    static struct fixture fixture;
    if (tt_knob_registry_open(&fixture.registry, NULL) != TT_OK ||
        tt_knob_registry_load(fixture.registry, TT_KNOB_PLUGINS "/test_plugin.ttk", NULL) != TT_OK)
        return -1;
    tt_space_init(&fixture.space, fixture.registry);
    *state = &fixture;
    return 0;
}

static int
tear_down(void **state)
{
    tt_knob_registry_close(((struct fixture *)*state)->registry);
    return 0;
}

static tt_space_knob *
find(struct fixture *fixture, const char *id)
{
    int index = tt_space_find(&fixture->space, id);
    assert_true(index >= 0);
    return &fixture->space.knob[index];
}

static void
every_grid_value_keeps_its_coordinate(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t k = 0; k < fixture->space.count; k++) {
        const tt_space_knob *knob = &fixture->space.knob[k];
        double last = -1;
        if (knob->knob->kind == TT_KNOB_REAL)
            continue;
        for (double x = knob->min; x <= knob->max; x++) {
            if (tt_space_snap(knob, x) != x)
                continue;
            double unit = tt_space_encode(knob, x);
            assert_true(unit > last && unit >= 0 && unit <= 1);
            assert_true(tt_space_decode(knob, unit) == x);
            last = unit;
        }
        assert_true(last == 1);
    }
}

static void
every_coordinate_is_a_valid_value(void **state)
{
    struct fixture *fixture = *state;
    tt_rng rng;
    tt_rng_init(&rng, SEED, TT_RNG_TEST, 1);
    for (int i = 0; i < DRAWS; i++) {
        tt_setting setting = {.count = fixture->space.count};
        for (uint32_t k = 0; k < setting.count; k++)
            setting.value[k] =
                tt_space_decode(&fixture->space.knob[k], 1.2 * tt_rng_uniform(&rng) - 0.1);
        assert_true(tt_space_valid(&fixture->space, &setting));
    }
}

// Random ranges on one knob: ends are reached, snapping is idempotent and nearest.
static void
check_range(const tt_space_knob *knob, tt_rng *rng)
{
    double low = tt_space_decode(knob, 0), high = tt_space_decode(knob, 1);
    assert_true(low >= knob->min && high <= knob->max && low <= high);
    for (int i = 0; i < 20; i++) {
        double x = knob->min + (knob->max - knob->min) * (1.5 * tt_rng_uniform(rng) - 0.25);
        double snapped = tt_space_snap(knob, x);
        assert_true(snapped >= low && snapped <= high && tt_space_snap(knob, snapped) == snapped);
        double back = tt_space_decode(knob, tt_space_encode(knob, snapped));
        // reals pass through log2 and exp2: a few ulp times the exponent's size
        assert_true(fabs(back - snapped) <= 1e-12 * fabs(snapped));
    }
}

static void
random_ranges_hold_their_properties(void **state)
{
    struct fixture *fixture = *state;
    tt_rng rng;
    tt_rng_init(&rng, SEED, TT_RNG_TEST, 2);
    int narrowed = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t k = (uint32_t)tt_rng_below(&rng, fixture->space.count);
        tt_space space = fixture->space;
        tt_space_knob *knob = &space.knob[k];
        double a = tt_space_decode(knob, tt_rng_uniform(&rng)) * (0.7 + tt_rng_uniform(&rng));
        double b = tt_space_decode(knob, tt_rng_uniform(&rng)) * (0.7 + tt_rng_uniform(&rng));
        knob->log_scale ^= tt_rng_below(&rng, 2) == 0;
        if (tt_space_narrow(&space, k, TT_MIN(a, b), TT_MAX(a, b), "test", NULL, NULL) != TT_OK)
            continue;
        narrowed++;
        assert_true(knob->min >= TT_MIN(a, b) && knob->max <= TT_MAX(a, b));
        assert_true(knob->start >= knob->min && knob->start <= knob->max);
        check_range(knob, &rng);
    }
    assert_true(narrowed > 1500);
}

static void
coordinates_are_the_stated_ones(void **state)
{
    struct fixture *fixture = *state;
    assert_true(tt_space_encode(find(fixture, "chunk_bytes"), 65536) == 0.5); // (16-12)/(20-12)
    assert_true(tt_space_encode(find(fixture, "in_flight"), 4) == 0.5);       // 2/4
    assert_true(tt_space_encode(find(fixture, "prefetch"), 3) == 0.375);      // linear
    assert_true(tt_space_encode(find(fixture, "spin"), 0) == 0);              // log2(1 + 0)
    double spin = tt_space_encode(find(fixture, "spin"), 100);
    assert_true(fabs(spin - 0.5548346735) < 1e-9); // ln 101 / ln 4097
    double rate = tt_space_encode(find(fixture, "test_rate"), 0.037);
    assert_true(fabs(rate - 0.5136403448) < 1e-9); // (log10 0.037 + 4) / 5
    assert_true(fabs(tt_space_decode(find(fixture, "test_rate"), 0.4) - 0.01) < 1e-14);
    assert_true(tt_space_decode(find(fixture, "test_rate"), (double)NAN) == 1e-4);
    assert_true(tt_space_snap(find(fixture, "spin"), (double)NAN) == 0);
    assert_true(tt_space_snap(find(fixture, "chunk_bytes"), 90000) == 65536);  // log2: 16.46
    assert_true(tt_space_snap(find(fixture, "chunk_bytes"), 93000) == 131072); // log2: 16.505
}

static void
uniform_coordinates_are_fair_to_cells(void **state)
{
    struct fixture *fixture = *state;
    tt_rng rng;
    tt_rng_init(&rng, SEED, TT_RNG_TEST, 3);
    const tt_space_knob *kernel = find(fixture, "kernel"), *chunk = find(fixture, "chunk_bytes");
    int kernels[3] = {0}, chunks[9] = {0};
    for (int i = 0; i < DRAWS; i++) {
        kernels[(int)tt_space_decode(kernel, tt_rng_uniform(&rng))]++;
        chunks[(int)log2(tt_space_decode(chunk, tt_rng_uniform(&rng))) - 12]++;
    }
    for (int i = 0; i < 3; i++) // five standard errors of a binomial, p = 1/3 and 1/9
        assert_true(abs(kernels[i] - DRAWS / 3) < 5 * sqrt(DRAWS * 2.0 / 9));
    for (int i = 0; i < 9; i++)
        assert_true(abs(chunks[i] - DRAWS / 9) < 5 * sqrt(DRAWS * 8.0 / 81));
}

static void
size_counts_free_values(void **state)
{
    struct fixture *fixture = *state;
    tt_space space = {.count = 4};
    space.knob[0] = *find(fixture, "chunk_bytes"); // 9
    space.knob[1] = *find(fixture, "kernel");      // 3
    space.knob[2] = *find(fixture, "test_rate");   // 1000
    space.knob[3] = *find(fixture, "spin");        // 4097, fixed below
    assert_int_equal(tt_space_start_at(&space, 3, 17, "by you (job.yaml:14)", NULL, NULL), TT_OK);
    assert_int_equal(tt_space_free_count(&space), 3);
    assert_true(fabs(tt_space_log_size(&space) - log(27000)) < 1e-12);
    tt_space_drop(&space, 1, "no kernels in a test");
    assert_int_equal(tt_space_free_count(&space), 2);
    assert_true(space.knob[1].absent);
    assert_string_equal(space.knob[1].reason, "no kernels in a test");
}

static int
accept_few_in_flight(void *self, const tt_setting *setting)
{
    return setting->value[*(int *)self] < 8;
}

static void
validity_asks_range_grid_and_condition(void **state)
{
    struct fixture *fixture = *state;
    tt_space space = fixture->space;
    tt_setting setting, other;
    tt_space_start(&space, &setting);
    other = setting;
    assert_true(tt_space_valid(&space, &setting) && tt_setting_equal(&setting, &other));
    int chunk = tt_space_find(&space, "chunk_bytes"), flight = tt_space_find(&space, "in_flight");
    other.value[chunk] = 65537;
    assert_false(tt_space_valid(&space, &other) || tt_setting_equal(&setting, &other));
    other.value[chunk] = 2097152;
    assert_false(tt_space_valid(&space, &other));
    other.value[chunk] = (double)NAN;
    assert_false(tt_space_valid(&space, &other));
    other = setting;
    other.count--;
    assert_false(tt_space_valid(&space, &other) || tt_setting_equal(&setting, &other));
    space.accept = accept_few_in_flight;
    space.accept_self = &flight;
    assert_true(tt_space_valid(&space, &setting));
    setting.value[flight] = 8;
    assert_false(tt_space_valid(&space, &setting));
    assert_int_equal(tt_space_find(&space, "no_such"), -1);
}

static void
ranges_are_narrowed_onto_the_grid(void **state)
{
    struct fixture *fixture = *state;
    tt_space space = fixture->space;
    tt_error err = {0};
    uint32_t chunk = (uint32_t)tt_space_find(&space, "chunk_bytes");
    uint32_t servers = (uint32_t)tt_space_find(&space, "servers");
    assert_int_equal(tt_space_narrow(&space, chunk, 1e4, 3e4, NULL, "job.yaml:9:3", &err), TT_OK);
    assert_true(space.knob[chunk].min == 16384 && space.knob[chunk].max == 16384);
    assert_true(space.knob[chunk].start == 16384);
    assert_true(tt_space_encode(&space.knob[chunk], 16384) == 0);
    assert_int_equal(tt_space_narrow(&space, chunk, 5000, 8000, NULL, "job.yaml:9:3", &err),
                     TT_RANGE);
    assert_string_equal(err.where, "job.yaml:9:3");
    assert_string_equal(
        err.what, "chunk_bytes has no value from 5000 B to 8000 B; it goes from 16 KiB to 16 KiB");
    assert_int_equal(tt_space_narrow(&space, chunk, (double)NAN, 8000, NULL, NULL, &err), TT_RANGE);
    const char *reason = "nodes is 8 and at least one must work";
    assert_int_equal(tt_space_narrow(&space, servers, 1, 7, reason, NULL, &err), TT_OK);
    assert_int_equal(tt_space_start_at(&space, servers, 9, NULL, "job.yaml:12:18", &err), TT_RANGE);
    assert_string_equal(err.what, "servers must be from 1 to 7 (nodes is 8 and at least one must "
                                  "work), not 9");
    assert_int_equal(tt_space_start_at(&space, servers, 3, NULL, NULL, &err), TT_OK);
    assert_false(space.knob[servers].fixed);
    assert_true(space.knob[servers].start == 3);
}

// ---- text ------------------------------------------------------------------------------------

static void
printed_values_read_back(void **state)
{
    struct fixture *fixture = *state;
    tt_rng rng;
    tt_rng_init(&rng, SEED, TT_RNG_TEST, 4);
    for (int i = 0; i < DRAWS; i++) {
        const tt_space_knob *knob = &fixture->space.knob[tt_rng_below(&rng, fixture->space.count)];
        double value = tt_space_decode(knob, tt_rng_uniform(&rng)), back = -1;
        char text[96];
        (void)tt_space_format(knob, value, text, sizeof text);
        assert_int_equal(tt_space_parse(knob, text, NULL, &back, NULL), TT_OK);
        assert_true(back == value);
    }
}

static void
values_are_printed_with_their_unit(void **state)
{
    static const struct {
        const char *id, *text;
        double value;
    } cases[] = {
        {"chunk_bytes", "256 KiB", 262144},
        {"chunk_bytes", "1 MiB", 1048576},
        {"chunk_bytes", "1000 B", 1000},
        {"chunk_bytes", "3 GiB", 3221225472},
        {"servers", "3", 3},
        {"compute_threads", "2", 2},
        {"in_flight", "4 requests", 4},
        {"in_flight", "1 request", 1},
        {"prefetch", "1 batch", 1},
        {"spin", "0 pauses", 0},
        {"bf16_transfer", "on", 1},
        {"kernel", "avx2", 1},
        {"kernel", "7", 7},
        {"test_rate", "0.037 1/s", 0.037},
        {"test_rate", "0.333333333333333 1/s", 0.333333333333333},
        {"test_left", "1 ms", 1},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        char text[96];
        const tt_space_knob *knob = find(fixture, cases[i].id);
        assert_string_equal(tt_space_format(knob, cases[i].value, text, sizeof text),
                            cases[i].text);
    }
}

static void
people_may_write_values_their_way(void **state)
{
    static const struct {
        const char *id, *text;
        double value;
    } cases[] = {
        {"chunk_bytes", "64KiB", 65536},     {"chunk_bytes", "0.5 MiB", 524288},
        {"chunk_bytes", "65536", 65536},     {"chunk_bytes", "65.536 kB ", 65536},
        {"bf16_transfer", "On", 1},          {"bf16_transfer", "false", 0},
        {"bf16_transfer", "1", 1},           {"kernel", "avx512", 2},
        {"in_flight", "3 requests", 3},      {"in_flight", "1e1", 10},
        {"test_rate", ".25", 0.25},          {"test_rate", "+2 1/s", 2},
        {"compute_threads", "2 threads", 2}, {"spin", "0", 0},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        double value = -1;
        tt_error err = {0};
        const tt_space_knob *knob = find(fixture, cases[i].id);
        if (tt_space_parse(knob, cases[i].text, NULL, &value, &err) != TT_OK)
            fail_msg("%s %s: %s", cases[i].id, cases[i].text, err.what);
        assert_true(value == cases[i].value);
    }
}

static void
wrong_texts_get_a_helpful_sentence(void **state)
{
    static const struct {
        const char *id, *text;
        tt_status status;
        const char *what, *advice;
    } cases[] = {
        {"bf16_transfer", "onn", TT_INVALID, "bf16_transfer must be on or off, not 'onn'",
         "did you mean 'on'?"},
        {"kernel", "avx521", TT_INVALID,
         "kernel must be one of portable, avx2, avx512, not 'avx521'", "did you mean 'avx512'?"},
        {"kernel", "quantum", TT_INVALID, NULL, ""},
        {"chunk_bytes", "64 KiBi", TT_INVALID, "chunk_bytes: 'KiBi' is not a unit it has",
         "use B, KiB, MiB or GiB"},
        {"chunk_bytes", "64kB", TT_RANGE, "chunk_bytes must be a power of two, not 64000 B",
         "the nearest is 64 KiB"},
        {"chunk_bytes", "2MiB", TT_RANGE, "chunk_bytes must be from 4 KiB to 1 MiB, not 2 MiB", ""},
        {"in_flight", "4 pauses", TT_INVALID, NULL, "its unit is requests"},
        {"in_flight", "many", TT_INVALID, "in_flight must be a number of requests, not 'many'", ""},
        {"in_flight", "2.5", TT_RANGE, "in_flight must be a whole number, not 2.5 requests",
         "the nearest is 2 requests"},
        {"in_flight", "nan", TT_INVALID, NULL, ""},
        {"in_flight", "0x4", TT_INVALID, NULL, ""},
        {"in_flight", "", TT_INVALID, NULL, ""},
        {"in_flight", "-", TT_INVALID, NULL, ""},
        {"test_rate", "1e999", TT_RANGE, NULL, ""},
        {"test_rate", "0", TT_RANGE, "test_rate must be from 0.0001 1/s to 10 1/s, not 0 1/s", ""},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        double value = -7.25;
        tt_error err = {0};
        const tt_space_knob *knob = find(fixture, cases[i].id);
        assert_int_equal(tt_space_parse(knob, cases[i].text, "job.yaml:3:9", &value, &err),
                         cases[i].status);
        assert_true(value == -7.25);
        assert_string_equal(err.where, "job.yaml:3:9");
        if (cases[i].what != NULL)
            assert_string_equal(err.what, cases[i].what);
        assert_string_equal(err.advice, cases[i].advice);
    }
}

static void
settings_are_printed_by_difference(void **state)
{
    struct fixture *fixture = *state;
    tt_space space = fixture->space;
    tt_setting a, b;
    char text[400];
    tt_space_start(&space, &a);
    b = a;
    assert_string_equal(tt_setting_format(&space, &a, &b, text, sizeof text), "");
    b.value[tt_space_find(&space, "servers")] = 2;
    b.value[tt_space_find(&space, "chunk_bytes")] = 262144;
    assert_string_equal(tt_setting_format(&space, &b, &a, text, sizeof text),
                        "servers 2, chunk_bytes 256 KiB");
    assert_string_equal(tt_setting_format(&space, &b, &a, text, 24), "servers 2, ...");
    assert_string_equal(tt_setting_format(&space, &b, &a, text, 3), "");
    for (uint32_t i = 0; i < space.count; i++)
        space.knob[i].fixed = strcmp(space.knob[i].knob->id, "spin") != 0 &&
                              strcmp(space.knob[i].knob->id, "kernel") != 0;
    assert_string_equal(tt_setting_format(&space, &b, NULL, text, sizeof text),
                        "kernel portable, spin 100 pauses");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grid_value_keeps_its_coordinate),
        cmocka_unit_test(every_coordinate_is_a_valid_value),
        cmocka_unit_test(random_ranges_hold_their_properties),
        cmocka_unit_test(coordinates_are_the_stated_ones),
        cmocka_unit_test(uniform_coordinates_are_fair_to_cells),
        cmocka_unit_test(size_counts_free_values),
        cmocka_unit_test(validity_asks_range_grid_and_condition),
        cmocka_unit_test(ranges_are_narrowed_onto_the_grid),
        cmocka_unit_test(printed_values_read_back),
        cmocka_unit_test(values_are_printed_with_their_unit),
        cmocka_unit_test(people_may_write_values_their_way),
        cmocka_unit_test(wrong_texts_get_a_helpful_sentence),
        cmocka_unit_test(settings_are_printed_by_difference),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
