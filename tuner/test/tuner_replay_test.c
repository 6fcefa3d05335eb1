// Goal: a replay is a job: untuned it takes what its start setting takes, tuned it finds a good one
// of the settings there are and tries no other; the same options give the same replay, other ones
// another.
// Method: worlds made from a law of three knobs, some of whose settings were measured; all models;
// allocations that fail.
#include "problem_space.h"
#include "tt/tuner_replay.h"
#include "tt/tuner_search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SETTINGS = 24, NODES = 6, POINTS = 50 };
static const double ITERATIONS = 60000;

typedef struct world {
    problem_space problem;
    tt_replay_setting settings[SETTINGS];
    tt_replay_point log_t[SETTINGS][2], loss[POINTS];
    tt_replay_world replay;
    uint32_t best;
} world;

static double
law(const tt_setting *s)
{
    double servers = s->value[0] - 2, chunk = log2(s->value[1]) - 15;
    return log(2e-4) + 0.2 * servers * servers + 0.02 * chunk * chunk -
           (s->value[2] != 0 ? 0.4 : 0);
}

static void
make_world(world *w, uint64_t seed)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    *w = (world){.best = 0};
    problem_add(&w->problem, "servers", TT_KNOB_INT, 1, NODES - 1, 4, 0, 0)->effect =
        TT_KNOB_MOVES_MODEL;
    problem_add(&w->problem, "chunk", TT_KNOB_INT, 4096, 1 << 20, 1 << 20, 1, 0);
    problem_add(&w->problem, "half", TT_KNOB_BOOL, 0, 1, 0, 0, 0);
    for (uint32_t i = 0; i < SETTINGS; i++) {
        tt_setting *s = &w->settings[i].setting;
        s->count = 3;
        for (uint32_t k = 0; k < 3; k++)
            s->value[k] = tt_space_decode(&w->problem.space.knob[k], tt_rng_uniform(&rng));
        if (i == 0)
            tt_space_start(&w->problem.space, s);
        w->log_t[i][0] = (tt_replay_point){0, law(s)};
        w->log_t[i][1] = (tt_replay_point){ITERATIONS, law(s) + 0.05}; // the job grows slower
        w->settings[i].log_t = w->log_t[i];
        w->settings[i].log_t_count = 2;
        w->settings[i].cv = 0.15;
        w->best = law(s) < law(&w->settings[w->best].setting) ? i : w->best;
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        double at = ITERATIONS * i / (POINTS - 1);
        w->loss[i] = (tt_replay_point){at, 0.2 + 2 / (1 + at / 3000)};
    }
    w->replay = (tt_replay_world){.space = &w->problem.space,
                                  .settings = w->settings,
                                  .setting_count = SETTINGS,
                                  .loss = w->loss,
                                  .loss_count = POINTS,
                                  .loss_noise = 0.05,
                                  .target_loss = w->loss[POINTS - 1].value,
                                  .iterations = ITERATIONS,
                                  .switch_s = {0.001, 0.02, 0.02, 0.03}};
}

static tt_replay_result
replay(const world *w, tt_tuner_model model, int enabled, uint64_t seed)
{
    tt_tuner_options options = {.enabled = enabled, .model = model, .nodes = NODES, .seed = seed};
    tt_replay_result result;
    tt_error err = {0};
    if (tt_replay_run(&w->replay, &options, NULL, &result, &err) != TT_OK)
        fail_msg("%s", err.what);
    return result;
}

static void
untuned_it_takes_what_the_start_takes(void **state)
{
    TT_UNUSED(state);
    static world w;
    make_world(&w, 3);
    tt_replay_result r = replay(&w, TT_TUNER_MODEL_TIME, 0, 1);
    double expected = ITERATIONS * exp(law(&w.settings[0].setting) + 0.025);
    assert_true(fabs(r.seconds / expected - 1) < 0.02);
    assert_int_equal(r.final, 0);
    assert_int_equal(r.summary.switches, 0);
}

// Under BSP an iteration is a round: the estimator must see its time, not that of a worker's share.
static void
rounds_take_what_they_took(void **state)
{
    TT_UNUSED(state);
    static world w;
    make_world(&w, 3);
    for (int enabled = 0; enabled < 2; enabled++) {
        tt_tuner_options options = {
            .enabled = enabled, .nodes = NODES, .seed = 1, .bulk_synchronous = 1};
        tt_replay_result r;
        assert_int_equal(tt_replay_run(&w.replay, &options, NULL, &r, NULL), TT_OK);
        double start = exp(law(&w.settings[0].setting));
        assert_true(fabs(log(r.summary.start_iteration_s / start)) < 0.1);
        if (!enabled)
            assert_true(fabs(r.seconds / (ITERATIONS * start * exp(0.025)) - 1) < 0.02);
    }
}

static void
tuned_it_finds_a_good_one(void **state)
{
    TT_UNUSED(state);
    static world w;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        make_world(&w, seed);
        double start = replay(&w, TT_TUNER_MODEL_TIME, 0, 1).seconds;
        double best = ITERATIONS * exp(law(&w.settings[w.best].setting) + 0.025);
        tt_replay_result r = replay(&w, TT_TUNER_MODEL_TIME, 1, 1);
        print_message("world %d: start %.1f s, tuned %.2f s, best %.2f s, %u tried\n", (int)seed,
                      start, r.seconds, best, r.summary.settings_tried);
        assert_true(r.seconds < 1.3 * best && r.seconds < start);
        assert_true(law(&w.settings[r.final].setting) < law(&w.settings[w.best].setting) + 0.1);
        assert_true(r.summary.settings_tried <= SETTINGS && r.summary.settings_tried > 3);
    }
}

static void
the_same_again(void **state)
{
    TT_UNUSED(state);
    static world w;
    make_world(&w, 2);
    for (int model = TT_TUNER_MODEL_TIME; model <= TT_TUNER_MODEL_PAPER; model++) {
        tt_replay_result one = replay(&w, (tt_tuner_model)model, 1, 5);
        tt_replay_result two = replay(&w, (tt_tuner_model)model, 1, 5);
        assert_true(one.seconds == two.seconds && one.final == two.final);
        assert_int_equal(one.summary.switches, two.summary.switches);
        assert_true(one.seconds != replay(&w, (tt_tuner_model)model, 1, 6).seconds);
    }
}

static void
without_a_target_the_budget_rules(void **state)
{
    TT_UNUSED(state);
    static world w;
    make_world(&w, 4);
    w.replay.target_loss = (double)NAN;
    double start = replay(&w, TT_TUNER_MODEL_TIME, 0, 1).seconds;
    assert_true(replay(&w, TT_TUNER_MODEL_TIME, 1, 1).seconds < start);
}

static void
no_memory(void **state)
{
    TT_UNUSED(state);
    static world w;
    make_world(&w, 5);
    w.replay.iterations = 3000;
    tt_tuner_options options = {.enabled = 1, .nodes = NODES, .seed = 1};
    tt_replay_result result;
    for (uint64_t n = 1; n < 400; n = n < 20 ? n + 1 : n * 5 / 4) {
        tt_mem_fail_nth(n);
        tt_status status = tt_replay_run(&w.replay, &options, NULL, &result, NULL);
        int pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK || status == TT_NOMEM);
        if (pending)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untuned_it_takes_what_the_start_takes),
        cmocka_unit_test(rounds_take_what_they_took),
        cmocka_unit_test(tuned_it_finds_a_good_one),
        cmocka_unit_test(the_same_again),
        cmocka_unit_test(without_a_target_the_budget_rules),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
