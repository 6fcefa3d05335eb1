// Goal: threads of a simulated host are placed on its cores as Linux does it. Method: programs of
// three threads on two cores, and of two on one, whose times are known in closed form.
#include "sim_world.h"

enum { A, B, C, THREADS };

// What a thread does: so much work at once, and some from begin_s on.
typedef struct part {
    double first_s, begin_s, work_s;
} part;

typedef struct actor {
    world *w;
    tt_thread thread;
    uint32_t index;
    const part *part;
} actor;

static const part *parts;

static void
sleep_until(world *w, double seconds)
{
    if (seconds > now_s(w))
        sleep_s(w, seconds - now_s(w));
}

static void *
play(void *self)
{
    actor *one = self;
    const part *p = one->part;
    tt_sim_settle_on(one->w->sim, 0);
    tt_sim_work(one->w->sim, p->first_s, 1);
    sleep_until(one->w, p->begin_s);
    tt_sim_work(one->w->sim, p->work_s, 1);
    one->w->seconds[one->index] = now_s(one->w);
    return NULL;
}

// C comes first, and so is on the first core, B behind it; A is on the second.
static void
play_all(void *self)
{
    static const uint32_t order[THREADS] = {C, A, B};
    world *w = self;
    actor all[THREADS];
    tt_error err = {0};
    for (uint32_t i = 0; i < THREADS; i++) {
        actor *one = &all[order[i]];
        *one = (actor){.w = w, .index = order[i], .part = &parts[order[i]]};
        assert_int_equal(tt_thread_start(&one->thread, "actor", play, one, &err), TT_OK);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        tt_thread_join(&all[i].thread);
}

static void
expect_end_of_c(const part *program, double seconds)
{
    world w = {0};
    const tt_sim_host host = {2, 1};
    parts = program;
    run_world(&w, &(tt_sim_options){.host_count = 1, .hosts = &host}, play_all);
    if (fabs(w.seconds[C] - seconds) > 1e-7)
        fail_msg("C was done at %.9f s instead of %.9f s", w.seconds[C], seconds);
}

// B works on the first core from 50 to 52 ms, C wants it from 50.1 ms on, and the second is idle.
static void
a_busy_host_leaves_threads_where_they_were(void **state)
{
    TT_UNUSED(state);
    part program[THREADS] = {[A] = {.first_s = 40e-3},
                             [B] = {.first_s = 40e-3, .begin_s = 50e-3, .work_s = 2e-3},
                             [C] = {.first_s = 1e-6, .begin_s = 50.1e-3, .work_s = 1e-3}};
    expect_end_of_c(program, 53e-3);
    program[A].first_s = program[B].first_s = 1e-6;
    expect_end_of_c(program, 51.1e-3);
}

// The same, and A has been on the second core for a moment.
static void
an_idle_core_takes_who_has_waited_long(void **state)
{
    TT_UNUSED(state);
    part program[THREADS] = {[A] = {.first_s = 40e-3, .begin_s = 50.2e-3, .work_s = 0.1e-3},
                             [B] = {.first_s = 40e-3, .begin_s = 50e-3, .work_s = 2e-3},
                             [C] = {.first_s = 1e-6, .begin_s = 50.1e-3, .work_s = 1e-3}};
    expect_end_of_c(program, 53e-3); // for 0.2 ms
    program[A].begin_s = 50.7e-3;
    expect_end_of_c(program, 51.8e-3); // for 0.7 ms
}

// A slice of B's ends while the second core is idle.
static void
an_idle_core_takes_over_when_a_slice_ends(void **state)
{
    TT_UNUSED(state);
    const part program[THREADS] = {[A] = {.first_s = 40e-3},
                                   [B] = {.first_s = 40e-3, .begin_s = 50e-3, .work_s = 10e-3},
                                   [C] = {.first_s = 1e-6, .begin_s = 50.1e-3, .work_s = 4e-3}};
    // C has the first core from 53 ms on, B goes on on the second.
    expect_end_of_c(program, 57e-3);
}

static void *
wait_and_work(void *self)
{
    actor *one = self;
    world *w = one->w;
    tt_sim_settle_on(w->sim, 0);
    tt_sim_work(w->sim, 1e-6, 1);
    assert_true(tt_event_wait(&w->event, 0, 0, 1000000000));
    tt_sim_work(w->sim, 1e-3, 1);
    w->seconds[one->index] = now_s(w);
    return NULL;
}

static void
ring_for_two(void *self)
{
    world *w = self;
    actor all[2];
    tt_error err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        all[i] = (actor){.w = w, .index = i};
        assert_int_equal(tt_thread_start(&all[i].thread, "actor", wait_and_work, &all[i], &err),
                         TT_OK);
    }
    sleep_s(w, 5e-3);
    tt_event_signal(&w->event);
    for (uint32_t i = 0; i < 2; i++)
        tt_thread_join(&all[i].thread);
}

// The first has the core while it wakes, which takes 100 us; the other changes to it behind that.
static void
waking_takes_the_core(void **state)
{
    TT_UNUSED(state);
    world w = {0};
    const tt_sim_host host = {1, 1};
    run_world(
        &w, &(tt_sim_options){.host_count = 1, .hosts = &host, .wake_s = 100e-6, .change_s = 10e-6},
        ring_for_two);
    assert_true(fabs(w.seconds[0] - 6.1e-3) < 1e-7);
    assert_true(fabs(w.seconds[1] - 7.11e-3) < 1e-7);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_host_leaves_threads_where_they_were),
        cmocka_unit_test(an_idle_core_takes_who_has_waited_long),
        cmocka_unit_test(an_idle_core_takes_over_when_a_slice_ends),
        cmocka_unit_test(waking_takes_the_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
