// Goal: virtual time is what the model of hosts and network says it is, and a simulation repeats to
// the last nanosecond. Method: small programs whose times are known in closed form; a random
// program run twice; a program that can never go on.
#include "sim_world.h"

static void
expect_times(const tt_sim_host *hosts,
             uint32_t host_count,
             const worker *workers,
             uint32_t count,
             const double *seconds)
{
    world w = {0};
    plan = workers;
    planned = count;
    run_world(&w, &(tt_sim_options){.host_count = host_count, .hosts = hosts}, work_all);
    for (uint32_t i = 0; i < count; i++)
        if (fabs(w.seconds[i] - seconds[i]) > 1e-7)
            fail_msg("worker %u was done at %.9f s instead of %.9f s", i, w.seconds[i], seconds[i]);
}

static void
cores_are_shared(void **state)
{
    TT_UNUSED(state);
    const tt_sim_host one = {1, 1}, two = {2, 1}, fast = {2, 2.5};
    const worker alike[] = {{.threads = 1, .work_s = 1}, {.threads = 1, .work_s = 1}};
    // In slices of 3 ms: the first one's last is 1 ms long, the other's, too.
    expect_times(&one, 1, alike, 2, (const double[]){1.999, 2});
    expect_times(&two, 1, alike, 2, (const double[]){1, 1});
    expect_times(&fast, 1, alike, 2, (const double[]){0.4, 0.4});
    const tt_sim_host apart[] = {{1, 1}, {1, 2}};
    const worker hosts[] = {{.threads = 1, .work_s = 1}, {.threads = 1, .work_s = 1, .host = 1}};
    expect_times(apart, 2, hosts, 2, (const double[]){1, 0.5});
    // One core, and no slice is cut short: the first works 0.5 alone, its turn is over at once; the
    // other has 100 slices of 3 ms and the first 99 between them.
    const worker staggered[] = {{.threads = 1, .work_s = 1},
                                {.threads = 1, .work_s = 0.3, .begin_s = 0.5}};
    expect_times(&one, 1, staggered, 2, (const double[]){1.3, 0.5 + 0.3 + 0.297});
    // Two cores, tasks shorter than a slice: first come, first served. The third thread of the one
    // waits for a core, the other behind it.
    const worker wide[] = {{.threads = 3, .work_s = 2e-3}, {.threads = 1, .work_s = 1e-3}};
    expect_times(&two, 1, wide, 2, (const double[]){4e-3, 3e-3});
}

static void *
spin(void *self)
{
    worker *one = self;
    tt_sim_settle_on(one->w->sim, 0);
    (void)tt_event_wait(&one->w->event, 0, 1000, 0);
    one->w->seconds[one->index] = now_s(one->w);
    return NULL;
}

static void
spin_beside_work(void *self)
{
    world *w = self;
    worker spinner = {.w = w, .index = 0};
    worker busy = {.w = w, .index = 1, .threads = 1, .work_s = 1};
    start(&spinner, spin);
    start(&busy, work);
    tt_thread_join(&spinner.thread);
    tt_thread_join(&busy.thread);
}

// A spinning wait of 1000 pauses of 1 us holds the core; its neighbour begins after it.
static void
spinning_takes_a_core(void **state)
{
    TT_UNUSED(state);
    world w = {0};
    const tt_sim_host host = {1, 1};
    run_world(&w, &(tt_sim_options){.host_count = 1, .hosts = &host, .pause_s = 1e-6},
              spin_beside_work);
    assert_true(fabs(w.seconds[0] - 1e-3) < 1e-7);
    assert_true(fabs(w.seconds[1] - 1.001) < 1e-7);
}

// ---- events ------------------------------------------------------------------------------------

static void *
wait_twice(void *self)
{
    worker *one = self;
    world *w = one->w;
    tt_sim_settle_on(w->sim, 0);
    uint32_t seen = tt_event_read(&w->event);
    assert_false(tt_event_wait(&w->event, seen, 0, 1000000)); // nobody rings within 1 ms
    assert_true(fabs(now_s(w) - 1e-3 - 1e-4) < 1e-9);         // and 100 us to wake
    assert_true(tt_event_wait(&w->event, seen, 0, 1000000000));
    one->w->seconds[one->index] = now_s(w);
    return NULL;
}

static void
ring_at_5_ms(void *self)
{
    world *w = self;
    worker waiting = {.w = w, .index = 0};
    start(&waiting, wait_twice);
    sleep_s(w, 5e-3);
    tt_event_signal(&w->event);
    tt_thread_join(&waiting.thread);
}

static void
waits_end_when_they_should(void **state)
{
    TT_UNUSED(state);
    world w = {0};
    const tt_sim_host host = {1, 1};
    run_world(&w, &(tt_sim_options){.host_count = 1, .hosts = &host, .wake_s = 1e-4}, ring_at_5_ms);
    assert_true(fabs(w.seconds[0] - 5.1e-3) < 1e-9);
}

static void
wait_for_ever(void *self)
{
    world *w = self;
    (void)tt_event_wait(&w->event, 0, 0, UINT64_MAX - tt_clock_now(&w->clock));
}

static void
a_standstill_is_an_error(void **state)
{
    TT_UNUSED(state);
    world w = {0};
    tt_error err = {0};
    const tt_sim_host host = {1, 1};
    assert_int_equal(tt_sim_open(&(tt_sim_options){.host_count = 1, .hosts = &host}, &w.sim, &err),
                     TT_OK);
    w.clock = tt_sim_clock(w.sim);
    assert_int_equal(tt_sim_run(w.sim, wait_for_ever, &w, &err), TT_PEER);
    assert_non_null(strstr(err.what, "stands still"));
    tt_sim_close(w.sim);
}

// ---- the network -------------------------------------------------------------------------------

static double
costs_a_millisecond(void *self, uint32_t node, const tt_frame *frame, uint32_t chunks, int sending)
{
    TT_UNUSED(self);
    TT_UNUSED(node);
    TT_UNUSED(frame);
    TT_UNUSED(chunks);
    TT_UNUSED(sending);
    return 1e-3;
}

static void
note_arrival(void *self, const tt_frame *frame, const uint8_t *payload)
{
    world *w = self;
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        assert_int_equal(payload[i], (uint8_t)(frame->sequence + i));
    w->seconds[frame->sequence] = now_s(w);
}

static void
receive_at(world *w, uint32_t node, uint32_t host, uint32_t count)
{
    tt_sim_settle_on(w->sim, host);
    for (uint32_t got = 0; got < count;) {
        uint32_t now = tt_mesh_receive(w->mesh, node, 8, note_arrival, w);
        got += now;
        if (now == 0)
            tt_mesh_wait(w->mesh, node, 1000000000);
    }
}

// Node i sends its work_s thousands of bytes to node 0 at begin_s.
static void *
send_one(void *self)
{
    worker *one = self;
    world *w = one->w;
    static uint8_t bytes[FIBERS_MAX][200000];
    size_t size = (size_t)llround(1000 * one->work_s) - sizeof(tt_frame) - 16;
    for (size_t i = 0; i < size; i++)
        bytes[one->index][i] = (uint8_t)(one->index + i);
    sleep_s(w, one->begin_s);
    tt_sim_settle_on(w->sim, one->host);
    tt_outbox out = tt_mesh_outbox(w->mesh, one->index);
    tt_mesh_set_chunk(w->mesh, one->index, 1 << 20);
    tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = one->index};
    tt_span span = {bytes[one->index], size};
    out.send(out.self, 0, &frame, &span, 1);
    tt_mesh_flush(w->mesh, one->index);
    return NULL;
}

static const tt_sim_network *network;

static void
send_all(void *self)
{
    world *w = self;
    worker all[FIBERS_MAX];
    tt_error err = {0};
    uint32_t host_of_node[FIBERS_MAX] = {0};
    for (uint32_t i = 0; i < planned; i++) {
        all[i] = plan[i];
        all[i].w = w;
        all[i].index = i;
        host_of_node[i] = plan[i].host;
    }
    assert_int_equal(tt_sim_mesh_open(w->sim, network, planned, host_of_node, &w->mesh, &err),
                     TT_OK);
    for (uint32_t i = 1; i < planned; i++)
        start(&all[i], send_one);
    receive_at(w, 0, plan[0].host, planned - 1);
    for (uint32_t i = 1; i < planned; i++)
        tt_thread_join(&all[i].thread);
    tt_mesh_close(w->mesh);
}

static void
expect_arrivals(const tt_sim_network *net,
                const worker *senders,
                uint32_t count,
                const double *seconds)
{
    world w = {0};
    const tt_sim_host hosts[] = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
    network = net;
    plan = senders;
    planned = count;
    run_world(&w, &(tt_sim_options){.host_count = 4, .hosts = hosts}, send_all);
    for (uint32_t i = 1; i < count; i++)
        if (fabs(w.seconds[i] - seconds[i]) > 1e-7)
            fail_msg("message %u came at %.9f s instead of %.9f s", i, w.seconds[i], seconds[i]);
}

static void
messages_take_their_time(void **state)
{
    TT_UNUSED(state);
    const tt_sim_network net = {
        .bytes_per_s = 1e6, .latency_s = 2e-3, .local_latency_s = 1e-6, .oversubscription = 1};
    // 100 kB at 1 MB/s: stored, forwarded 2 ms later, received.
    const worker alone[] = {{.host = 0}, {.host = 1, .work_s = 100}};
    expect_arrivals(&net, alone, 2, (const double[]){0, 0.202});
    const worker local[] = {{.host = 0}, {.host = 0, .work_s = 100}};
    expect_arrivals(&net, local, 2, (const double[]){0, 1e-6});
    // Two hosts send at once: the receiver's card takes one after the other.
    const worker incast[] = {{.host = 0}, {.host = 1, .work_s = 100}, {.host = 2, .work_s = 100}};
    expect_arrivals(&net, incast, 3, (const double[]){0, 0.202, 0.302});
    // One host sends both: its own card does; the receiver's is free again when the second comes.
    const worker fan[] = {{.host = 0}, {.host = 1, .work_s = 100}, {.host = 1, .work_s = 50}};
    expect_arrivals(&net, fan, 3, (const double[]){0, 0.202, 0.252});
    // A switch that carries an eighth of what four cards could: half a card's rate.
    tt_sim_network narrow = net;
    narrow.oversubscription = 8;
    const worker pair[] = {
        {.host = 0}, {.host = 1, .work_s = 100}, {.host = 2, .work_s = 100, .begin_s = 0.05}};
    expect_arrivals(&narrow, pair, 3, (const double[]){0, 0.202, 0.402});
    tt_sim_network costly = net;
    costly.cost_s = costs_a_millisecond;
    expect_arrivals(&costly, alone, 2, (const double[]){0, 0.203});
}

// ---- repeating ---------------------------------------------------------------------------------

static void
mix(world *w, uint64_t value)
{
    w->print = (w->print ^ value) * 1099511628211u;
}

static void
note_print(void *self, const tt_frame *frame, const uint8_t *payload)
{
    world *w = self;
    TT_UNUSED(payload);
    mix(w, frame->sequence ^ tt_clock_now(&w->clock));
}

static void *
act_at_random(void *self)
{
    worker *one = self;
    world *w = one->w;
    tt_rng rng;
    tt_rng_init(&rng, w->seed, TT_RNG_TEST, one->index);
    tt_sim_settle_on(w->sim, one->host);
    tt_outbox out = tt_mesh_outbox(w->mesh, one->index);
    static const uint8_t bytes[5000];
    for (uint32_t i = 0; i < 200; i++) {
        tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = i};
        tt_span span = {bytes, tt_rng_below(&rng, sizeof bytes)};
        out.send(out.self, (uint32_t)tt_rng_below(&rng, 8), &frame, &span, 1);
        tt_sim_owe(w->sim, 1e-5 * tt_rng_uniform(&rng));
        (void)tt_mesh_receive(w->mesh, one->index, 4, note_print, w);
        if (tt_rng_below(&rng, 3) == 0)
            tt_sim_work(w->sim, 1e-4 * tt_rng_uniform(&rng), 1 + (uint32_t)tt_rng_below(&rng, 3));
        else
            tt_mesh_wait(w->mesh, one->index, 1 + tt_rng_below(&rng, 200000));
        mix(w, tt_clock_now(&w->clock));
    }
    return NULL;
}

static void
act_all(void *self)
{
    world *w = self;
    worker all[8];
    uint32_t host_of_node[8];
    tt_error err = {0};
    const tt_sim_network net = {.bytes_per_s = 1e8,
                                .latency_s = 2e-5,
                                .local_latency_s = 1e-6,
                                .oversubscription = 2,
                                .jitter = 0.3};
    for (uint32_t i = 0; i < 8; i++) {
        all[i] = (worker){.w = w, .index = i, .host = i / 2};
        host_of_node[i] = i / 2;
    }
    assert_int_equal(tt_sim_mesh_open(w->sim, &net, 8, host_of_node, &w->mesh, &err), TT_OK);
    for (uint32_t i = 0; i < 8; i++)
        start(&all[i], act_at_random);
    for (uint32_t i = 0; i < 8; i++)
        tt_thread_join(&all[i].thread);
    tt_mesh_close(w->mesh); // with messages under way
    mix(w, tt_clock_now(&w->clock));
}

static uint64_t
print_of(uint64_t seed)
{
    world w = {.seed = seed};
    const tt_sim_host hosts[] = {{2, 1}, {1, 1.5}, {1, 1}, {4, 0.5}};
    run_world(
        &w,
        &(tt_sim_options){
            .host_count = 4, .hosts = hosts, .pause_s = 4e-8, .wake_s = 5e-6, .signal_s = 1e-6},
        act_all);
    return w.print;
}

static void
equal_seeds_give_equal_runs(void **state)
{
    TT_UNUSED(state);
    uint64_t first[20];
    for (uint64_t seed = 0; seed < 20; seed++)
        first[seed] = print_of(seed);
    for (uint64_t seed = 0; seed < 20; seed++)
        assert_int_equal(print_of(seed), first[seed]);
    assert_int_not_equal(first[0], first[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_shared),           cmocka_unit_test(spinning_takes_a_core),
        cmocka_unit_test(waits_end_when_they_should), cmocka_unit_test(a_standstill_is_an_error),
        cmocka_unit_test(messages_take_their_time),   cmocka_unit_test(equal_seeds_give_equal_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
