// Goal: space files mean what they say, and say where they are wrong; constraints hold exactly
// where they should. Method: a file read and looked at; every fault with its message; constraints
// against the same condition in C over all settings of a small space; random texts of tokens, which
// must be refused or evaluated without harm; every allocation failing once.
#include "tt/knobs_file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

enum { SEED = 7041, RANDOM_TEXTS = 20000 };

static tt_space_file *
read_text(const char *text, tt_config **config)
{
    tt_space_file *file;
    assert_int_equal(tt_config_open(config, NULL), TT_OK);
    assert_int_equal(tt_config_load_text(*config, "s.yaml", text, NULL), TT_OK);
    (void)!tt_space_file_read(*config, &file);
    return file;
}

static tt_space_file *
read_good(const char *text)
{
    tt_config *config;
    tt_space_file *file = read_text(text, &config);
    if (file == NULL)
        tt_config_errors_print(config, stderr);
    tt_config_close(config);
    assert_non_null(file);
    return file;
}

static void
what_it_says(void **state)
{
    TT_UNUSED(state);
    tt_space_file *file =
        read_good("knobs:\n"
                  "  workers: {kind: int, range: [1, 24]}\n"
                  "  rate: {kind: real, range: [1e-4, 10], scale: log, start: 0.1}\n"
                  "  half: {kind: bool}\n"
                  "  layout: {kind: enum, values: [row, col, 2d-blocked]}\n"
                  "  chunks: {kind: int, range: [0, 1000], scale: log}\n"
                  "constraints: ['workers <= 16 or half']\n");
    const tt_space *space = tt_space_file_space(file);
    assert_int_equal(space->count, 5);
    assert_true(tt_space_file_has_start(file));
    assert_string_equal(space->knob[1].knob->id, "rate");
    assert_int_equal(space->knob[1].knob->kind, TT_KNOB_REAL);
    assert_true(space->knob[1].log_scale && space->knob[1].start == 0.1);
    assert_true(tt_space_encode(&space->knob[1], 0.0316227766016838) > 0.499 &&
                tt_space_encode(&space->knob[1], 0.0316227766016838) < 0.501);
    assert_true(space->knob[0].min == 1 && space->knob[0].max == 24);
    assert_true(space->knob[3].max == 2);
    assert_string_equal(space->knob[3].knob->values[2], "2d-blocked");
    tt_setting setting;
    tt_space_start(space, &setting);
    assert_true(setting.value[0] >= 12 && setting.value[0] <= 13);
    assert_true(tt_space_valid(space, &setting));
    setting.value[0] = 17;
    setting.value[2] = 0;
    assert_false(tt_space_valid(space, &setting));
    setting.value[2] = 1;
    assert_true(tt_space_valid(space, &setting));
    setting.value[0] = 16.5; // not on the grid
    assert_false(tt_space_valid(space, &setting));
    tt_space_file_close(file);
}

static void
prints(void **state)
{
    TT_UNUSED(state);
    tt_space_file *a = read_good("knobs: {a: {kind: int, range: [1, 8]}, b: {kind: bool}}\n");
    tt_space_file *same = read_good("# a comment\nknobs:\n  a: {range: [1, 8], kind: int}\n"
                                    "  b: {kind: bool}\n");
    tt_space_file *wider = read_good("knobs: {a: {kind: int, range: [1, 9]}, b: {kind: bool}}\n");
    tt_space_file *bound = read_good("knobs: {a: {kind: int, range: [1, 8]}, b: {kind: bool}}\n"
                                     "constraints: [a < 5 or b]\n");
    assert_true(tt_space_file_print(a) == tt_space_file_print(same));
    assert_true(tt_space_file_print(a) != tt_space_file_print(wider));
    assert_true(tt_space_file_print(a) != tt_space_file_print(bound));
    tt_space_file_close(a);
    tt_space_file_close(same);
    tt_space_file_close(wider);
    tt_space_file_close(bound);
}

static void
faults(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"knobs: {}\n", "there is no knob to tune"},
        {"nobs: {a: {kind: bool}}\n", "nobs"},
        {"knobs: {a: {kind: int}}\n", "needs a range"},
        {"knobs: {a: {kind: enum}}\n", "needs values"},
        {"knobs: {a: {kind: bool, range: [0, 1]}}\n", "has no range"},
        {"knobs: {a: {kind: bool, values: [x]}}\n", "has no values"},
        {"knobs: {a: {kind: int, range: [1, 2], values: [x]}}\n", "has no values"},
        {"knobs: {a: {kind: bool, scale: log}}\n", "has no scale"},
        {"knobs: {a: {range: [1, 2]}}\n", "kind"},
        {"knobs: {a: {kind: inte, range: [1, 2]}}\n", "kind"},
        {"knobs: {a: {kind: int, range: [1]}}\n", "two ends"},
        {"knobs: {a: {kind: int, range: [2, 1]}}\n", "the range is empty"},
        {"knobs: {a: {kind: int, range: [1, 2.5]}}\n", "is an int"},
        {"knobs: {a: {kind: real, range: [0, 2], scale: log}}\n", "positive"},
        {"knobs: {a: {kind: int, range: [-1, 2], scale: log}}\n", "non-negative"},
        {"knobs: {a: {kind: real, range: [1, .inf]}}\n", "a"},
        {"knobs: {a: {kind: enum, values: [x, y, x]}}\n", "twice"},
        {"knobs: {a: {kind: int, range: [1, 8], start: 9}}\n", "must be from 1 to 8"},
        {"knobs: {a b: {kind: bool}}\n", "cannot be a knob's name"},
        {"knobs: {or: {kind: bool}}\n", "cannot be a knob's name"},
        {"knobs: {a: 3}\n", "mapping"},
        {"knobs: {a: {kind: bool}}\nconstraints: a\n", "a list"},
        {"knobs: {a: {kind: bool}}\nconstraints: [b]\n", "no knob is called 'b'"},
        {"knobs: {workers: {kind: int, range: [1, 2]}}\nconstraints: [worker < 2]\n",
         "did you mean 'workers'"},
        {"knobs: {a: {kind: int, range: [1, 2]}}\nconstraints: ['a <']\n", "expected at the end"},
        {"knobs: {a: {kind: int, range: [1, 2]}}\nconstraints: ['a < 2 a']\n", "column 7"},
        {"knobs: {a: {kind: int, range: [1, 2]}}\nconstraints: ['a']\n", "one of < <="},
        {"knobs: {a: {kind: enum, values: [row, col]}}\nconstraints: ['a == rov']\n",
         "did you mean 'row'"},
        {"knobs: {a: {kind: enum, values: [row, col]}}\nconstraints: ['a < row']\n", "== or !="},
        {"knobs: {a: {kind: enum, values: [row, col]}}\nconstraints: ['1 < a']\n", "is an enum"},
        {"knobs: {a: {kind: int, range: [1, 4], start: 4}}\nconstraints: ['a < 3']\n",
         "the start breaks a constraint"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_config *config;
        tt_error err;
        tt_space_file *file = read_text(cases[i].text, &config);
        if (file != NULL || tt_config_error_get(config, 0, &err) != 0 ||
            (strstr(err.what, cases[i].fault) == NULL &&
             strstr(err.advice, cases[i].fault) == NULL))
            fail_msg("%s: expected '%s', got '%s; %s'", cases[i].text, cases[i].fault,
                     file == NULL ? err.what : "no fault", file == NULL ? err.advice : "");
        tt_config_close(config);
    }
}

static const char small_space[] = "knobs:\n  a: {kind: int, range: [0, 4]}\n"
                                  "  b: {kind: int, range: [0, 4]}\n  on: {kind: bool}\n"
                                  "  kind: {kind: enum, values: [row, col, 3d]}\n";

enum { A, B, ON, KIND };

static int
c0(const double *v)
{
    return v[A] <= 3 || v[ON] != 0;
}
static int
c1(const double *v)
{
    return 2 * v[A] + 1 < v[B] + 3;
}
static int
c2(const double *v)
{
    return !(v[A] > v[B] && v[ON] != 0);
}
static int
c3(const double *v)
{
    return v[KIND] != 0 || v[A] == v[B];
}
static int
c4(const double *v)
{
    return v[ON] != 0 || (v[A] < 2 && v[B] < 2) || v[KIND] == 2;
}
static int
c5(const double *v)
{
    return (v[ON] != 0 || v[A] < 2) && (v[B] < 2 || v[KIND] == 1);
}
static int
c6(const double *v)
{
    return v[A] + v[ON] >= 2 - v[B];
}
static int
c7(const double *v)
{
    return -v[A] * 0.5 + v[B] <= 1;
}

static void
constraints_hold_where_they_should(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *text;
        int (*truth)(const double *values);
    } cases[] = {
        {"a <= 3 or on", c0},
        {"2 * a + 1 < b + 3", c1},
        {"not (a > b and on)", c2},
        {"kind != row or a == b", c3},
        {"on or a < 2 and b < 2 or kind == 3d", c4},
        {"(on or a < 2) and (b < 2 or kind == \\\"col\\\")", c5},
        {"a + on >= 2 - b", c6},
        {"-a * 0.5 + b <= 1", c7},
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%sconstraints: [\"%s\"]\n", small_space, cases[i].text);
        tt_space_file *file = read_good(text);
        const tt_space *space = tt_space_file_space(file);
        for (int n = 0; n < 5 * 5 * 2 * 3; n++) {
            tt_setting setting = {.count = 4,
                                  .value = {n % 5, n / 5 % 5, n / 25 % 2, (double)(n / 50)}};
            if (tt_space_valid(space, &setting) != cases[i].truth(setting.value))
                fail_msg("%s at a %g b %g on %g kind %g", cases[i].text, setting.value[A],
                         setting.value[B], setting.value[ON], setting.value[KIND]);
        }
        tt_space_file_close(file);
    }
}

static void
random_texts_do_no_harm(void **state)
{
    TT_UNUSED(state);
    static const char *const words[] = {"a",   "b",  "on", "kind", "row", "3d", "and", "or", "not",
                                        "(",   ")",  "<",  "<=",   "==",  "!=", "+",   "-",  "*",
                                        "1.5", "7.", "'",  "col",  "=",   "!",  "2e9", "x"};
    tt_rng rng;
    tt_rng_init(&rng, SEED, TT_RNG_TEST, 0);
    int accepted = 0;
    for (int i = 0; i < RANDOM_TEXTS; i++) {
        char text[1024];
        size_t used = (size_t)snprintf(text, sizeof text, "%sconstraints: [\"", small_space);
        int count = 1 + (int)tt_rng_below(&rng, i % 100 == 0 ? 80 : 7);
        for (int w = 0; w < count; w++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ",
                                     words[tt_rng_below(&rng, TT_COUNT_OF(words))]);
        (void)snprintf(text + used, sizeof text - used, "\"]\n");
        tt_config *config;
        tt_space_file *file = read_text(text, &config);
        assert_true((file == NULL) == (tt_config_error_count(config) > 0));
        if (file != NULL) {
            tt_setting setting = {.count = 4, .value = {1, 2, 1, 0}};
            (void)tt_space_valid(tt_space_file_space(file), &setting);
            accepted++;
        }
        tt_space_file_close(file);
        tt_config_close(config);
    }
    assert_in_range(accepted, RANDOM_TEXTS / 200, RANDOM_TEXTS / 2); // both ways are walked
}

static void
deep_nesting_is_refused(void **state)
{
    TT_UNUSED(state);
    char text[4096];
    for (int depth = 30; depth <= 1000; depth += 970) {
        size_t used = (size_t)snprintf(text, sizeof text, "%sconstraints: [\"", small_space);
        for (int i = 0; i < depth; i++)
            text[used++] = '(';
        used += (size_t)snprintf(text + used, sizeof text - used, "on");
        for (int i = 0; i < depth; i++)
            text[used++] = ')';
        (void)snprintf(text + used, sizeof text - used, "\"]\n");
        tt_config *config;
        tt_space_file *file = read_text(text, &config);
        assert_true((file != NULL) == (depth == 30));
        tt_space_file_close(file);
        tt_config_close(config);
    }
}

static void
no_memory(void **state)
{
    TT_UNUSED(state);
    tt_config *config;
    tt_space_file *file = NULL;
    assert_int_equal(tt_config_open(&config, NULL), TT_OK);
    char text[512];
    (void)snprintf(text, sizeof text, "%sconstraints: ['a < 3 or on', 'b < 3']\n", small_space);
    assert_int_equal(tt_config_load_text(config, "s.yaml", text, NULL), TT_OK);
    for (uint64_t n = 1; file == NULL; n++) {
        assert_true(n < 200);
        tt_mem_fail_nth(n);
        tt_status status = tt_space_file_read(config, &file);
        int failed = !tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        if (failed)
            assert_true(status != TT_OK || file != NULL);
        if (status == TT_OK && failed) { // an allocation that it can do without
            tt_space_file_close(file);
            file = NULL;
        }
        if (status != TT_OK) { // faults stick to a configuration
            assert_null(file);
            tt_config_close(config);
            assert_int_equal(tt_config_open(&config, NULL), TT_OK);
            assert_int_equal(tt_config_load_text(config, "s.yaml", text, NULL), TT_OK);
        }
    }
    tt_space_file_close(file);
    tt_config_close(config);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says),
        cmocka_unit_test(prints),
        cmocka_unit_test(faults),
        cmocka_unit_test(constraints_hold_where_they_should),
        cmocka_unit_test(random_texts_do_no_harm),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
