// Goal: the same promise as relocation_schedule_test with real threads over real memory rings:
// integer sums stay exact under random moves, flips of the server:worker split and changes of chunk
// size, spin and requests in flight, all under load, whichever way partitions travel. Method: each
// node is a thread with both protocol cores; a master publishes random generations while workers
// push. Each node may have a view of its own of shared memory, as processes have, so that gradients
// and parameters are lent. TT_SEEDS=n sets how many schedules (the thread sanitizer runs 50),
// TT_SEED=n runs one.
#include "tt/ps.h"

// cmocka wants setjmp.h before it
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODES = 5, ROWS = 400, WIDTH_MAX = 32, PUSHES = 60, GENERATIONS = 6 };

typedef struct world world;

typedef struct actor {
    world *world;
    uint32_t index;
    tt_thread thread;
    tt_rng rng;
    tt_mesh *mesh;
    tt_ps_server *server;
    tt_ps_client *client;
    const tt_ps_view *adopted;
    uint32_t adopted_generation; // release
    int working;
    int working_seen; // release
    uint32_t pushes;  // release
    uint32_t rows[ROWS];
    float values[ROWS * WIDTH_MAX];
    int64_t sums[ROWS]; // of what this worker pushed
} actor;

struct world {
    tt_ps_table table;
    int whole, drained, shared;
    uint64_t lent, read; // of all workers
    actor actors[NODES];
    const tt_ps_view *views[GENERATIONS + 1];
    uint32_t view_count;
    const tt_ps_view *current; // release; acquired by nodes
    uint32_t unretired;        // sub by servers
    int stop, stop_servers;    // release
    uint32_t left;             // nodes that have ended their last iteration; add
};

static const tt_ps_view *
newest(void *self)
{
    return tt_load_acquire(&((actor *)self)->world->current);
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    TT_UNUSED(partition);
    TT_UNUSED(generation);
    (void)tt_sub_acq_rel(&((actor *)self)->world->unretired, 1u);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    actor *a = self;
    if (frame->kind == TT_FRAME_PULL_REPLY || frame->kind == TT_FRAME_PUSH_ACK ||
        frame->kind == TT_FRAME_MOVED || frame->kind == TT_FRAME_WANT_KEYS)
        tt_ps_client_receive(a->client, frame, payload);
    else
        tt_ps_server_receive(a->server, frame, payload);
}

static void
serve(actor *a, int wait)
{
    int moving = tt_ps_server_moving(a->server) > 0;
    uint32_t handled = tt_mesh_receive(a->mesh, a->index, 32, on_frame, a);
    int more = moving && tt_ps_server_background(a->server);
    if (handled > 0 || more)
        tt_mesh_flush(a->mesh, a->index);
    else if (wait) {
        tt_mesh_wait(a->mesh, a->index, 500000);
        if (moving)
            tt_ps_server_tick(a->server);
    }
}

static void
boundary(actor *a)
{
    world *w = a->world;
    const tt_ps_view *view = tt_load_acquire(&w->current);
    int due = view != a->adopted;
    if (due) {
        a->adopted = view;
        tt_ps_server_adopt(a->server, view);
        tt_ps_client_adopt(a->client, view);
        tt_mesh_set_chunk(a->mesh, a->index, 4096u << tt_rng_below(&a->rng, 8));
        tt_mesh_set_spin(a->mesh, a->index, (uint32_t)tt_rng_below(&a->rng, 200));
        tt_ps_client_set(a->client, 1 + (uint32_t)tt_rng_below(&a->rng, 12), 0);
    }
    a->working = view->is_worker[a->index] && (a->working || tt_ps_server_held(a->server) == 0);
    tt_store_release(&a->working_seen, a->working);
    if (due)
        tt_store_release(&a->adopted_generation, view->generation);
}

static void
await(actor *a)
{
    tt_mesh_flush(a->mesh, a->index);
    while (!tt_ps_client_done(
        a->client)) // everything is answered sooner or later: nothing is lost here
        serve(a, 1);
}

static void
iterate(actor *a)
{
    world *w = a->world;
    tt_ps_keys keys = {.count = ROWS};
    if (!w->whole) {
        keys.count = 0;
        for (uint32_t row = 0; row < ROWS; row++)
            if (tt_rng_below(&a->rng, 6) == 0)
                a->rows[keys.count++] = row;
        keys.rows = a->rows;
    }
    tt_ps_client_pull(a->client, keys, 0, 0, a->values);
    await(a);
    float *gradients = tt_ps_client_gradients(a->client);
    for (uint32_t i = 0; i < keys.count; i++) {
        int g = (int)tt_rng_below(&a->rng, 9) - 4;
        for (uint32_t j = 0; j < w->table.width; j++)
            gradients[i * w->table.width + j] = (float)g;
        a->sums[w->whole ? i : a->rows[i]] += g;
    }
    tt_ps_client_push(a->client, gradients, a->pushes + 1, 1);
    await(a);
    tt_store_release(&a->pushes, a->pushes + 1); // acquired by the master
}

static void *
actor_main(void *self)
{
    actor *a = self;
    world *w = a->world;
    while (!tt_load_acquire(&w->stop)) {
        boundary(a);
        if (a->working)
            iterate(a);
        else
            serve(a, 1);
    }
    (void)tt_add_acq_rel(&w->left, 1u);
    while (!tt_load_acquire(&w->stop_servers))
        serve(a, 1);
    return NULL;
}

static int
settled(world *w)
{
    if (tt_load_acquire(&w->unretired) != 0)
        return 0;
    for (uint32_t n = 0; n < NODES; n++) {
        actor *a = &w->actors[n];
        if (tt_load_acquire(&a->adopted_generation) < w->view_count ||
            tt_load_acquire(&a->working_seen) != w->views[w->view_count - 1]->is_worker[n])
            return 0;
    }
    return 1;
}

static void
publish(world *w, tt_rng *rng)
{
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    for (uint32_t chosen = 0, servers = 1 + (uint32_t)tt_rng_below(rng, NODES - 1);
         chosen < servers;) {
        uint32_t n = (uint32_t)tt_rng_below(rng, NODES);
        chosen += !is_server[n];
        is_server[n] = 1;
    }
    const tt_ps_view *last = w->views[w->view_count - 1];
    tt_ps_view *view;
    assert_int_equal(tt_ps_view_next(last, is_server, &view), TT_OK);
    if (w->drained)
        tt_ps_view_move_by(view, TT_PS_MOVE_DRAIN);
    (void)tt_add_acq_rel(&w->unretired, tt_ps_view_moves(last, view));
    w->views[w->view_count++] = view;
    tt_store_release(&w->current, view);
    for (uint32_t n = 0; n < NODES; n++)
        tt_mesh_wake(w->actors[n].mesh, n);
}

static uint64_t
pushes_done(world *w)
{
    uint64_t pushes = 0;
    for (uint32_t n = 0; n < NODES; n++)
        pushes += tt_load_acquire(&w->actors[n].pushes);
    return pushes;
}

static void
open_meshes(world *w, int shared)
{
    tt_error err = {0};
    tt_mesh *mesh = NULL;
    int fd = -1;
    if (shared)
        assert_int_equal(tt_mesh_share(NODES, &fd, &err), TT_OK);
    else
        assert_int_equal(tt_mesh_open(NODES, &mesh, &err), TT_OK);
    for (uint32_t n = 0; n < NODES; n++) {
        if (shared)
            assert_int_equal(tt_mesh_attach(fd, &mesh, &err), TT_OK);
        w->actors[n].mesh = mesh;
    }
    if (shared)
        (void)close(fd);
}

static void
close_meshes(world *w)
{
    for (uint32_t n = 0; n < (w->shared ? NODES : 1); n++)
        tt_mesh_close(w->actors[n].mesh);
}

static void
open_world(world *w, uint64_t seed, int drained, int shared, tt_rng *rng)
{
    tt_error err = {0};
    memset(w, 0, sizeof *w);
    w->drained = drained;
    w->shared = shared;
    w->table = (tt_ps_table){.kind = shared || tt_rng_below(rng, 2) ? TT_PS_DENSE : TT_PS_SPARSE,
                             .rows = ROWS,
                             .width = shared ? WIDTH_MAX : 1,
                             .partition_count = 1 + (uint32_t)tt_rng_below(rng, 12),
                             .consistency = TT_PS_ASP,
                             .optimizer = TT_PS_ADD,
                             .averaging = (int)tt_rng_below(rng, 2)};
    w->whole = shared || (w->table.kind == TT_PS_DENSE && tt_rng_below(rng, 2));
    uint8_t is_server[TT_PS_NODES_MAX] = {1};
    tt_ps_view *view;
    assert_int_equal(tt_ps_view_first(&w->table, NODES, is_server, &view), TT_OK);
    w->views[w->view_count++] = view;
    w->current = view;
    open_meshes(w, shared);
    for (uint32_t n = 0; n < NODES; n++) {
        actor *a = &w->actors[n];
        a->world = w;
        a->index = n;
        a->adopted = view;
        a->adopted_generation = 1;
        a->working = a->working_seen = view->is_worker[n];
        tt_rng_init(&a->rng, seed, TT_RNG_TEST, n);
        tt_outbox outbox = tt_mesh_outbox(a->mesh, n);
        tt_ps_hooks hooks = {.self = a, .newest = newest, .retired = retired};
        assert_int_equal(tt_ps_server_open(&w->table, n, NODES, outbox, hooks, &a->server, &err),
                         TT_OK);
        assert_int_equal(tt_ps_server_start(a->server, view), TT_OK);
        assert_int_equal(
            tt_ps_client_open(&w->table, n, NODES, ROWS, outbox, hooks, &a->client, &err), TT_OK);
        tt_ps_client_adopt(a->client, view);
    }
}

// After the threads have ended: a push of node 0 has seen everything, so its pull gives the final
// table.
static void
check_sums(world *w, uint64_t seed)
{
    actor *reader = &w->actors[0];
    uint32_t rows[ROWS];
    static float out[ROWS * WIDTH_MAX];
    uint32_t width = w->table.width;
    for (uint32_t row = 0; row < ROWS; row++)
        rows[row] = row;
    tt_ps_client_pull(reader->client, (tt_ps_keys){.rows = rows, .count = ROWS}, 0, 0, out);
    for (int guard = 0; !tt_ps_client_done(reader->client) && guard < 100000; guard++)
        for (uint32_t n = 0; n < NODES; n++) {
            tt_mesh_flush(w->actors[n].mesh, n);
            serve(&w->actors[n], 0);
        }
    assert_true(tt_ps_client_done(reader->client));
    for (uint32_t row = 0; row < ROWS; row++) {
        int64_t expected = 0;
        for (uint32_t n = 0; n < NODES; n++)
            expected += w->actors[n].sums[row];
        for (uint32_t i = row * width; i < (row + 1) * width; i++)
            if ((int64_t)out[i] != expected)
                fail_msg("seed %llu: row %u is %g, must be %lld", (unsigned long long)seed, row,
                         (double)out[i], (long long)expected);
    }
}

static void
run_seed(uint64_t seed, int drained, int shared, uint64_t *moves)
{
    static world w;
    tt_rng rng;
    tt_error err = {0};
    tt_rng_init(&rng, seed, TT_RNG_SCHEDULE, 9);
    open_world(&w, seed, drained, shared, &rng);
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal(
            tt_thread_start(&w.actors[n].thread, "actor", actor_main, &w.actors[n], &err), TT_OK);
    tt_clock clock = tt_clock_monotonic();
    uint64_t deadline = tt_clock_now(&clock) + 60000000000u;
    for (uint32_t generation = 1; generation <= GENERATIONS; generation++) {
        uint64_t wanted = pushes_done(&w) + 1 + tt_rng_below(&rng, PUSHES);
        while ((!settled(&w) || pushes_done(&w) < wanted) && tt_clock_now(&clock) < deadline)
            (void)sched_yield();
        if (tt_clock_now(&clock) >= deadline)
            fail_msg("seed %llu does not get on", (unsigned long long)seed);
        if (generation < GENERATIONS)
            publish(&w, &rng);
        *moves += tt_load_acquire(&w.unretired);
    }
    tt_store_release(&w.stop, 1);
    // Workers end their iteration while everybody serves; the last to leave finds all requests
    // answered.
    for (uint32_t n = 0; n < NODES; n++)
        tt_mesh_wake(w.actors[n].mesh, n);
    while (tt_load_acquire(&w.left) < NODES)
        (void)sched_yield();
    tt_store_release(&w.stop_servers, 1);
    for (uint32_t n = 0; n < NODES; n++)
        tt_thread_join(&w.actors[n].thread);
    check_sums(&w, seed);
    for (uint32_t n = 0; n < NODES; n++) {
        tt_ps_client_counters counters;
        tt_ps_client_counters_read(w.actors[n].client, &counters);
        w.lent += counters.lent;
        w.read += counters.read;
        tt_ps_server_close(w.actors[n].server);
        tt_ps_client_close(w.actors[n].client);
    }
    assert_true((w.lent > 0) == shared && (w.read > 0) == shared);
    close_meshes(&w);
    for (uint32_t i = 0; i < w.view_count; i++)
        tt_ps_view_free((tt_ps_view *)(uintptr_t)w.views[i]);
}

static void
expect_exact_sums(int drained, int shared)
{
    const char *one = getenv("TT_SEED"), *many = getenv("TT_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1, moves = 0;
#ifdef TT_TSAN
    uint64_t seeds = 50;
#else
    uint64_t seeds = shared ? 300 : 1000;
#endif
    seeds = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : seeds;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run_seed(seed, drained, shared, &moves);
    print_message("%llu schedules of threads, partitions moved %s: all sums exact\n",
                  (unsigned long long)seeds, drained ? "by draining" : "on demand");
    assert_true(one != NULL || moves > 0);
}

static void
sums_are_exact_under_load(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(0, 0);
}

static void
sums_are_exact_when_drained_under_load(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(1, 0);
}

static void
sums_are_exact_where_memory_is_shared(void **state)
{
    TT_UNUSED(state);
#ifdef TT_TSAN
    skip(); // to read what another thread may be writing is a race, if one that is noticed
#endif
    expect_exact_sums(0, 1);
    expect_exact_sums(1, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_under_load),
        cmocka_unit_test(sums_are_exact_when_drained_under_load),
        cmocka_unit_test(sums_are_exact_where_memory_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
