// Goal: faults do what they say: hosts stand still or slow down for so long, messages are lost,
// come late, twice, or out of order, at their rates. Method: times known in closed form; a thousand
// messages counted at their receiver.
#include "sim_world.h"

static void
expect_times_with(const tt_sim_fault *fault,
                  const worker *workers,
                  uint32_t count,
                  const double *seconds)
{
    world w = {0};
    const tt_sim_host hosts[] = {{1, 1}, {1, 1}};
    plan = workers;
    planned = count;
    run_world(&w,
              &(tt_sim_options){.host_count = 2, .hosts = hosts, .fault_count = 1, .faults = fault},
              work_all);
    for (uint32_t i = 0; i < count; i++)
        if (fabs(w.seconds[i] - seconds[i]) > 1e-7)
            fail_msg("worker %u was done at %.9f s instead of %.9f s", i, w.seconds[i], seconds[i]);
}

static void
hosts_pause_and_slow_down(void **state)
{
    TT_UNUSED(state);
    const worker both[] = {{.threads = 1, .work_s = 1}, {.threads = 1, .work_s = 1, .host = 1}};
    const tt_sim_fault pause = {
        .kind = TT_SIM_PAUSE, .from = 1, .to = 1, .begin_s = 0.25, .end_s = 1.5};
    expect_times_with(&pause, both, 2, (const double[]){1, 2.25});
    const tt_sim_fault slow = {
        .kind = TT_SIM_SLOW, .from = 0, .to = 0, .factor = 4, .begin_s = 0.5, .end_s = 0.9};
    expect_times_with(&slow, both, 2, (const double[]){1.3, 1});
    const tt_sim_fault from_then_on = {
        .kind = TT_SIM_SLOW, .from = 0, .to = 1, .factor = 4, .begin_s = 0.5, .end_s = INFINITY};
    expect_times_with(&from_then_on, both, 2, (const double[]){2.5, 2.5});
}

typedef struct tallies {
    uint32_t came, twice, out_of_order;
    uint64_t last, seen[1000];
} tallies;

static tallies tally;

static void
count_message(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(self);
    TT_UNUSED(payload);
    tally.came++;
    tally.twice += tally.seen[frame->sequence] > 0;
    tally.seen[frame->sequence]++;
    tally.out_of_order += frame->sequence < tally.last;
    tally.last = TT_MAX(tally.last, frame->sequence);
}

static void *
send_thousand(void *self)
{
    worker *one = self;
    tt_sim_settle_on(one->w->sim, 1);
    tt_outbox out = tt_mesh_outbox(one->w->mesh, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = i};
        out.send(out.self, 0, &frame, NULL, 0);
        tt_mesh_flush(one->w->mesh, 1);
        sleep_s(one->w, 1e-3);
    }
    return NULL;
}

static void
receive_thousand(void *self)
{
    world *w = self;
    worker sender = {.w = w};
    tt_error err = {0};
    const tt_sim_network net = {.bytes_per_s = 1e9, .latency_s = 1e-5, .oversubscription = 1};
    assert_int_equal(tt_sim_mesh_open(w->sim, &net, 2, (const uint32_t[]){0, 1}, &w->mesh, &err),
                     TT_OK);
    start(&sender, send_thousand);
    tt_sim_settle_on(w->sim, 0);
    while (now_s(w) < 2)
        if (tt_mesh_receive(w->mesh, 0, 64, count_message, NULL) == 0)
            tt_mesh_wait(w->mesh, 0, 10000000);
    tt_thread_join(&sender.thread);
    tt_mesh_close(w->mesh);
}

static void
run_with_fault(tt_sim_fault fault)
{
    world w = {0};
    const tt_sim_host hosts[] = {{1, 1}, {1, 1}};
    tally = (tallies){0};
    run_world(&w,
              &(tt_sim_options){
                  .host_count = 2, .hosts = hosts, .fault_count = 1, .faults = &fault, .seed = 5},
              receive_thousand);
}

static void
messages_suffer(void **state)
{
    TT_UNUSED(state);
    tt_sim_fault f = {
        .from = TT_SIM_ANY, .to = TT_SIM_ANY, .share = 0.1, .seconds = 5e-3, .end_s = 1};
    f.kind = TT_SIM_DROP;
    run_with_fault(f);
    assert_true(tally.came > 850 && tally.came < 950);
    assert_true(tally.twice == 0 && tally.out_of_order == 0);
    f.kind = TT_SIM_DUPLICATE;
    run_with_fault(f);
    assert_true(tally.came > 1050 && tally.came < 1150 && tally.twice == tally.came - 1000);
    f.kind = TT_SIM_DELAY; // the order is kept
    run_with_fault(f);
    assert_true(tally.came == 1000 && tally.twice == 0 && tally.out_of_order == 0);
    f.kind = TT_SIM_REORDER;
    run_with_fault(f);
    assert_true(tally.came == 1000 && tally.out_of_order > 50);
}

enum { SENT = 2, PAYLOAD = 10000 };
static double sent_s[SENT], came_s[SENT];

static void
note_arrival(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(payload);
    came_s[frame->sequence] = now_s(self);
}

static void *
send_before_and_after(void *self)
{
    static const uint8_t payload[PAYLOAD];
    worker *one = self;
    tt_sim_settle_on(one->w->sim, 1);
    tt_outbox out = tt_mesh_outbox(one->w->mesh, 1);
    const tt_span span = {payload, PAYLOAD};
    for (uint32_t i = 0; i < SENT; i++) {
        tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = i};
        sent_s[i] = now_s(one->w);
        out.send(out.self, 0, &frame, &span, 1);
        tt_mesh_flush(one->w->mesh, 1);
        sleep_s(one->w, 0.5);
    }
    return NULL;
}

static void
time_arrivals(void *self)
{
    world *w = self;
    worker sender = {.w = w};
    tt_error err = {0};
    const tt_sim_network net = {.bytes_per_s = 1e6, .oversubscription = 1};
    assert_int_equal(tt_sim_mesh_open(w->sim, &net, 2, (const uint32_t[]){0, 1}, &w->mesh, &err),
                     TT_OK);
    start(&sender, send_before_and_after);
    tt_sim_settle_on(w->sim, 0);
    while (now_s(w) < 1)
        if (tt_mesh_receive(w->mesh, 0, 64, note_arrival, w) == 0)
            tt_mesh_wait(w->mesh, 0, 10000000);
    tt_thread_join(&sender.thread);
    tt_mesh_close(w->mesh);
}

// A message is stored at each end: it takes two times its bytes / rate.
static void
cards_grow_narrow(void **state)
{
    TT_UNUSED(state);
    static const struct {
        uint32_t from, to;
        double times; // as long
    } cases[] = {
        {1, 1, 4}, {0, 0, 2.5}, {0, 1, 4}, {TT_SIM_ANY, TT_SIM_ANY, 4}}; // sender, receiver, both
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        const tt_sim_fault fault = {.kind = TT_SIM_NARROW,
                                    .from = cases[i].from,
                                    .to = cases[i].to,
                                    .factor = 4,
                                    .begin_s = 0.25,
                                    .end_s = INFINITY};
        const tt_sim_host hosts[] = {{1, 1}, {1, 1}};
        world w = {0};
        memset(came_s, 0, sizeof came_s);
        run_world(
            &w,
            &(tt_sim_options){.host_count = 2, .hosts = hosts, .fault_count = 1, .faults = &fault},
            time_arrivals);
        double wide = came_s[0] - sent_s[0], narrow = came_s[1] - sent_s[1];
        assert_true(wide > 2 * PAYLOAD / 1e6 && wide < 2.1 * PAYLOAD / 1e6);
        if (fabs(narrow / wide - cases[i].times) > 1e-3)
            fail_msg("case %zu: %g times as long instead of %g", i, narrow / wide, cases[i].times);
    }
}

static void
links_are_cut(void **state)
{
    TT_UNUSED(state);
    tt_sim_fault f = {
        .kind = TT_SIM_CUT_OFF, .from = 1, .to = 1, .begin_s = 0.2505, .end_s = 0.5005};
    run_with_fault(f);
    assert_int_equal(tally.came, 750);
    const tt_sim_fault other_way = {
        .kind = TT_SIM_DROP, .from = 0, .to = 1, .share = 1, .end_s = INFINITY};
    run_with_fault(other_way);
    assert_int_equal(tally.came, 1000);
}

static void *
read_clocks(void *self)
{
    worker *one = self;
    tt_clock master = tt_sim_true_clock(one->w->sim);
    uint64_t last_ns = 0;
    tt_sim_settle_on(one->w->sim, one->host);
    for (uint32_t i = 0; i < 400; i++) {
        double is_s = 1e-9 * (double)tt_clock_now(&master);
        double ahead_s = is_s < 1 ? 0 : 0.5 + 0.01 * (TT_MIN(is_s, 2.0) - 1);
        uint64_t shown_ns = tt_clock_now(&one->w->clock);
        assert_true(shown_ns >= last_ns);
        last_ns = shown_ns;
        assert_true(fabs(1e-9 * (double)shown_ns - is_s - (one->host == 1 ? ahead_s : 0)) < 1e-8);
        sleep_s(one->w, 1e-2);
    }
    return NULL;
}

static void
read_clocks_everywhere(void *self)
{
    world *w = self;
    worker readers[2] = {{.w = w, .host = 0}, {.w = w, .host = 1}};
    for (int i = 0; i < 2; i++)
        start(&readers[i], read_clocks);
    for (int i = 0; i < 2; i++)
        tt_thread_join(&readers[i].thread);
    assert_true(fabs(now_s(w) - 4) < 0.1); // who is nowhere has the right time
}

static void
clocks_are_skewed(void **state)
{
    world w = {0};
    const tt_sim_host hosts[] = {{1, 1}, {1, 1}};
    const tt_sim_fault fault = {.kind = TT_SIM_SKEW,
                                .from = 1,
                                .to = 1,
                                .seconds = 0.5,
                                .factor = 1.01,
                                .begin_s = 1,
                                .end_s = 2};
    TT_UNUSED(state);
    run_world(
        &w, &(tt_sim_options){.host_count = 2, .hosts = hosts, .fault_count = 1, .faults = &fault},
        read_clocks_everywhere);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_pause_and_slow_down), cmocka_unit_test(cards_grow_narrow),
        cmocka_unit_test(messages_suffer),           cmocka_unit_test(links_are_cut),
        cmocka_unit_test(clocks_are_skewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
