// Goal: what trimtab explain says of knobs, predictions and trust follows from the measurements and
// is honest about what they do not tell; a replay has what was measured; every kind of run is
// explained without harm. Method: a run store made from a known law,
// whose factors must lie in the intervals told; runs that are empty, untuned, of one setting, or
// still going; every allocation failing once.
#include "explain.h"
#include "known_law.h"
#include "replay_world.h"
#include "tt/core_rng.h"
#include "tt/report_replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call) assert_int_equal(call, TT_OK)

enum { TEXT_MAX = 1 << 16 };
static char path[64], text[TEXT_MAX];
static tt_error error_room, *const err = &error_room;

static int
set_up(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "/tmp/tt-explain-%d.db", (int)getpid());
    (void)unlink(path);
    return 0;
}

static int
tear_down(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    return 0;
}

static const char *
explained(int all)
{
    const tt_report_options options = {.width = 400, .all = all};
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    OK(tt_report_explain(path, out, &options, err));
    assert_int_equal(fclose(out), 0);
    return text;
}

#define SAYS(words)                                                                                \
    do {                                                                                           \
        if (strstr(text, words) == NULL)                                                           \
            fail_msg("'%s' is not in:\n%s", words, text);                                          \
    } while (0)

// ---- tests -----------------------------------------------------------------------------------

static void
numbers_follow_from_the_law(void **state)
{
    TT_UNUSED(state);
    tti_report report;
    tti_explanation e;
    OK(known_run_write(path, "converged", err));
    OK(tti_report_load(&report, path, err));
    OK(tti_explain(&report, &e, err));
    assert_int_equal(e.end->setting->id, KNOWN_SETTINGS - 1);
    assert_int_equal(e.end->windows, 6);
    assert_int_equal(e.end->iterations, 2400);
    assert_true(fabs(e.end->log_t - (log(0.002) - 0.5 + log(0.63))) < 4 * e.end->se);
    assert_true(e.end->se > 0.002 && e.end->se < 0.02);
    assert_true(e.end_beats_start > 0.999);
    // Thirteen trials, of which 4, 8 and 12 were mispredicted.
    assert_int_equal(e.trials, KNOWN_SETTINGS - 1);
    assert_int_equal(e.judged, KNOWN_SETTINGS - 1);
    assert_int_equal(e.inside, KNOWN_SETTINGS - 1 - 3);
    assert_true(fabs(e.typical_error - 0.02) < 1e-9);
    const tti_knob_effect *k = e.knobs;
    assert_int_equal(e.knob_count, KNOWN_KNOBS);
    assert_int_equal(k[KNOWN_SERVERS].verdict, TTI_KNOB_MATTERS);
    assert_true(k[KNOWN_SERVERS].changed &&
                fabs(k[KNOWN_SERVERS].gain - 0.5) < 3 * k[KNOWN_SERVERS].gain_sd + 0.02);
    assert_int_equal(k[KNOWN_HALF].verdict, TTI_KNOB_MATTERS);
    assert_true(fabs(k[KNOWN_HALF].gain + log(0.7)) < 3 * k[KNOWN_HALF].gain_sd + 0.02);
    assert_true(k[KNOWN_CHUNK].changed &&
                fabs(k[KNOWN_CHUNK].gain) < 3 * k[KNOWN_CHUNK].gain_sd + 0.01);
    assert_true(k[KNOWN_CHUNK].verdict != TTI_KNOB_MATTERS);
    assert_int_equal(k[KNOWN_PINNED].verdict, TTI_KNOB_FIXED);
    assert_int_equal(k[KNOWN_SERVERS].values, 4);
    assert_int_equal(k[KNOWN_SERVERS].tried, 4);
    assert_true(e.lag_borne == KNOWN_LAG_BORNE);
    assert_int_equal(e.eta.asked, 8);
    assert_int_equal(e.eta.good, 7);
    assert_int_equal(e.eta.inside, 6);
    assert_true(fabs(e.eta.half_left_s - 12.5) < 1e-9);
    tti_explain_fini(&e);
    tti_report_fini(&report);
}

static void
the_text_answers_its_questions(void **state)
{
    TT_UNUSED(state);
    OK(known_run_write(path, "converged", err));
    (void)explained(0);
    SAYS("Was tuning worth it\n  Yes: 15.0 s saved, 1.60x.");
    SAYS("Left out were settings whose gradients would lag by more than about 2 iterations: ");
    SAYS("Should I trust this setting\n  Yes: an iteration takes ");
    SAYS("x as fast (95 %: ");
    SAYS("Measured in 6 windows, 2,400 iterations, on 1 occasion.");
    SAYS("The tuner predicted 13 settings before it tried them: 10 turned out within the predicted "
         "80 % interval, and the typical error was 2 %.");
    SAYS("How well the time left was known\n  Asked when 20, 30, ... 90 % of the iterations were "
         "done, it was right within a factor of two 7 of 8 times, and in its 80 % interval 6 "
         "times. Half-way it was 12.5 s: 12.0 s was expected (80 %: 10.0 s to 15.0 s).");
    SAYS("Changed from the start: servers 2 -> 1, chunk_bytes 64 KiB -> 128 KiB, half off -> on, "
         "kernel plain -> wide.");
    SAYS(
        "Why it stopped exploring\n  Its last word, at 30.0 s: the best untried setting would save "
        "0.1 s.");
    SAYS("Which knobs mattered");
    SAYS("\n  servers           2 -> 1: 1.");
    SAYS("What was never tried");
    SAYS("The best untried setting in its last look: servers 1 -> 3; worth 0.10 s on average for a "
         "price of 0.40 s.");
    SAYS("pinned is fixed: by you (job.yaml:3).");
    size_t brief = strlen(text);
    (void)explained(1);
    assert_true(strlen(text) > brief); // every trial
}

static void
json_has_its_keys(void **state)
{
    TT_UNUSED(state);
    OK(known_run_write(path, "converged", err));
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    OK(tt_report_explain_json(path, out, err));
    assert_int_equal(fclose(out), 0);
    json_error_t fault;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
    assert_non_null(object);
    json_t *trust = json_object_get(object, "trust"), *knobs = json_object_get(object, "knobs");
    assert_int_equal(json_integer_value(json_object_get(object, "explain_version")), 1);
    assert_true(json_is_real(json_object_get(trust, "beats_start")));
    assert_int_equal(json_array_size(knobs), KNOWN_KNOBS);
    assert_string_equal(json_string_value(json_object_get(json_array_get(knobs, 0), "verdict")),
                        "matters");
    assert_true(json_is_string(json_object_get(json_array_get(knobs, KNOWN_KERNEL), "other")));
    const json_t *eta = json_object_get(object, "eta");
    assert_int_equal(json_integer_value(json_object_get(eta, "within2x")), 7);
    json_decref(object);
}

static void
empty_run(tt_store *store)
{
    TT_UNUSED(store);
}
static void
run_without_settings(tt_store *store)
{
    OK(known_put_run(store, "failed", -1, err));
}
static void
run_of_one_setting(tt_store *store)
{
    const double values[KNOWN_KNOBS] = {2, 65536, 0, 0, 0};
    tt_rng rng;
    int64_t iteration = 0;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 1);
    OK(known_put_knobs(store, err));
    OK(known_put_measured(store, &rng, 0, values, &iteration, err));
    OK(known_put_run(store, "running", -1, err));
}
static void
run_without_windows(tt_store *store)
{
    const double values[KNOWN_KNOBS] = {2, 65536, 0, 0, 0};
    OK(known_put_knobs(store, err));
    OK(tt_store_put_setting(store, 0, values, KNOWN_KNOBS, err));
    OK(known_put_run(store, "stopped", 0, err));
}

static void
any_run_is_explained(void **state)
{
    TT_UNUSED(state);
    static const struct {
        void (*make)(tt_store *store);
        const char *words;
    } runs[] = {{empty_run, "wrote nothing down"},
                {run_without_settings, "No setting was measured in a whole window."},
                {run_of_one_setting, "Not on its own: an iteration takes 2"},
                {run_without_windows, "No setting was measured in a whole window."}};
    for (size_t i = 0; i < TT_COUNT_OF(runs); i++) {
        tt_store *store;
        (void)unlink(path);
        OK(tt_store_create(path, &store, err));
        OK(tt_store_begin(store, err));
        runs[i].make(store);
        OK(tt_store_close(store, err));
        (void)explained(1);
        SAYS(runs[i].words);
    }
}

// Twenty settings as fast as the one it ended in, a window each, windows .1 apart: the fastest of
// them was lucky, however well each window knows its own mean.
static void
luck_is_not_speed(void **state)
{
    TT_UNUSED(state);
    enum { LUCKY = 21, WINDOWS = 12 };
    tt_store *store;
    tt_rng rng;
    tt_rng_init(&rng, 23, TT_RNG_TEST, 2);
    OK(tt_store_create(path, &store, err));
    OK(tt_store_begin(store, err));
    OK(known_put_knobs(store, err));
    for (int setting = 0, at = 0; setting <= LUCKY; setting++) {
        const double values[KNOWN_KNOBS] = {2, 65536.0 + setting, 0, 0, 0};
        OK(tt_store_put_setting(store, setting, values, KNOWN_KNOBS, err));
        for (int w = 0; w < (setting == 0 || setting == LUCKY ? WINDOWS : 1); w++, at++) {
            const double base = setting == 0 ? 0.004 : 0.002;
            const tt_store_window window = {
                .ordinal = at,
                .generation = setting,
                .setting = setting,
                .phase = setting == 0 ? TT_STORE_START : TT_STORE_EXPLORE,
                .first_iteration = 400 * at,
                .last_iteration = 400 * at + 399,
                .start_s = at,
                .end_s = at + 1,
                .kept = 400,
                .seconds_per_iteration = base * exp(0.1 * tt_rng_normal(&rng)),
                .time_cv = 0.2};
            OK(tt_store_put_window(store, &window, err));
        }
    }
    OK(known_put_run(store, "converged", LUCKY, err));
    OK(tt_store_close(store, err));
    (void)explained(0);
    SAYS("Should I trust this setting\n  Yes: an iteration takes ");
    SAYS(" in 1 window (95 %: ");
    SAYS("), so it is as good as can be told.");
}

static void
a_replay_has_what_was_measured(void **state)
{
    TT_UNUSED(state);
    static tti_replay_world w;
    tti_report report;
    OK(known_run_write(path, "converged", err));
    OK(tti_report_load(&report, path, err));
    OK(tti_replay_world_open(&report, &w, err));
    assert_int_equal(w.world.setting_count, KNOWN_SETTINGS);
    assert_int_equal(w.ids[w.world.start], 0);
    assert_int_equal(w.ids[KNOWN_SETTINGS - 1], KNOWN_SETTINGS - 1);
    assert_int_equal(w.world.settings[KNOWN_SETTINGS - 1].log_t_count, 6);
    double truth = log(0.002) - 0.5 + log(0.63); // the least of the law
    assert_true(fabs(log(w.best_s / w.world.iterations) - truth) < 0.02);
    assert_int_equal(w.servers, KNOWN_SERVERS);
    assert_true(w.space.knob[KNOWN_PINNED].fixed && !w.space.knob[KNOWN_HALF].fixed);
    assert_true(w.world.switch_s[0] > 0 && fabs(w.world.settings[0].cv - 0.2) < 1e-12);
    tti_replay_world_close(&w);
    tti_report_fini(&report);
    // Said the same every time.
    static const tt_replay_variant tuners[] = {{.name = "a", .enabled = 1}, {.name = "b"}};
    static char first[TEXT_MAX];
    for (int round = 0; round < 2; round++) {
        memset(text, 0, sizeof text);
        FILE *out = fmemopen(text, sizeof text, "w");
        OK(tt_report_replay(path, tuners, 2, 3, 0, out, err));
        assert_int_equal(fclose(out), 0);
        if (round == 0)
            memcpy(first, text, sizeof first);
    }
    assert_string_equal(first, text);
    SAYS("replay of 20261121-1412-known-law: 14 settings, 20,000 iterations, 3 seeds a tuner");
    SAYS("  as it was recorded                           25.0 s\n");
    SAYS(", the fastest, throughout");
}

static void
what_cannot_be_replayed_is_refused(void **state)
{
    TT_UNUSED(state);
    static const tt_replay_variant tuner = {.name = "a", .enabled = 1};
    static void (*const runs[])(tt_store * store) = {run_without_settings, run_of_one_setting,
                                                     run_without_windows};
    for (size_t i = 0; i < TT_COUNT_OF(runs); i++) {
        tt_store *store;
        (void)unlink(path);
        OK(tt_store_create(path, &store, err));
        OK(tt_store_begin(store, err));
        runs[i](store);
        OK(tt_store_close(store, err));
        assert_int_equal(tt_report_replay(path, &tuner, 1, 1, 0, stdout, err), TT_INVALID);
        assert_non_null(strstr(err->what, "cannot be replayed"));
    }
}

static void
no_memory(void **state)
{
    TT_UNUSED(state);
    tti_report report;
    tti_explanation e;
    OK(known_run_write(path, "converged", err));
    OK(tti_report_load(&report, path, err));
    uint64_t n = 1;
    for (int pending = 0; !pending; n++) {
        tt_mem_fail_nth(n);
        tt_status status = tti_explain(&report, &e, err);
        pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK || status == TT_NOMEM);
        if (status == TT_OK)
            tti_explain_fini(&e);
        assert_true(n < 2000);
    }
    assert_true(n > 5);
    tti_report_fini(&report);
}

#define EXPLAIN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        EXPLAIN_TEST(numbers_follow_from_the_law),
        EXPLAIN_TEST(the_text_answers_its_questions),
        EXPLAIN_TEST(json_has_its_keys),
        EXPLAIN_TEST(any_run_is_explained),
        EXPLAIN_TEST(luck_is_not_speed),
        EXPLAIN_TEST(a_replay_has_what_was_measured),
        EXPLAIN_TEST(what_cannot_be_replayed_is_refused),
        EXPLAIN_TEST(no_memory),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
