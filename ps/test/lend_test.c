// Goal: what is lent instead of sent gives what sending gives, whatever becomes of a push or of a
// partition meanwhile: no server applies a gradient that its worker has begun to overwrite, no
// worker takes parameters that changed while it read them. Method: servers and workers that each
// have their own view of one shared memory, as processes have; what one has sent lies in its ring
// until the test lets the other have it.
#include "lend.h"
#include "server_core.h"
#include "tt/ps.h"
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERVERS = 2, WORKERS = 2, NODES = SERVERS + WORKERS, PARTITIONS = 2, ROWS = 8192 };

typedef struct actor {
    struct world *w;
    uint32_t index;
    tt_mesh *mesh;
    tt_pool *pool;
    tt_ps_server *server;
    tt_ps_client *client;
    tt_frame seen; // the last
    uint64_t lent_frames;
    float values[ROWS];
} actor;

typedef struct world {
    tt_ps_table table;
    tt_ps_view *view, *after; // the latter: server 0 has died
    int fd, has_heard;
    actor actor[NODES];
} world;

static const tt_ps_view *
newest(void *self)
{
    const actor *a = self;
    return a->w->has_heard ? a->w->after : a->w->view;
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    TT_UNUSED(self);
    TT_UNUSED(partition);
    TT_UNUSED(generation);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    actor *a = self;
    a->seen = *frame;
    a->lent_frames += (frame->flags & TT_FRAME_LENT) != 0 && frame->kind != TT_FRAME_PULL;
    if (frame->kind == TT_FRAME_PULL || frame->kind == TT_FRAME_PUSH)
        tt_ps_server_receive(a->server, frame, payload);
    else if (a->client != NULL)
        tt_ps_client_receive(a->client, frame, payload);
}

// Lets it have what was sent to it; returns how many messages.
static uint32_t
let(actor *a)
{
    uint32_t handled = tt_mesh_receive(a->mesh, a->index, 1000, on_frame, a);
    tt_mesh_flush(a->mesh, a->index);
    return handled;
}

static void
keep_place(void *self, const tt_frame *frame, const uint8_t *payload)
{
    assert_true(frame->kind == TT_FRAME_PUSH && frame->payload_bytes == sizeof(tti_place));
    memcpy(self, payload, sizeof(tti_place));
}

// It begins to read what was lent to it, and does not get further.
static tti_place
begin_to_read(actor *server, const actor *from)
{
    tti_place place = {0};
    assert_int_equal(tt_mesh_receive(server->mesh, server->index, 1, keep_place, &place), 1);
    assert_true(tt_pool_borrow(server->pool, from->index, place.index, place.mark));
    return place;
}

static void
settle(world *w)
{
    uint32_t handled = 1;
    while (handled > 0) {
        handled = 0;
        for (uint32_t n = 0; n < NODES; n++)
            handled += let(&w->actor[n]);
    }
}

static void
open_actor(world *w, uint32_t n)
{
    actor *a = &w->actor[n];
    tt_error err = {0};
    *a = (actor){.w = w, .index = n};
    assert_int_equal(tt_mesh_attach(w->fd, &a->mesh, &err), TT_OK);
    tt_outbox outbox = tt_mesh_outbox(a->mesh, n);
    tt_ps_hooks hooks = {.self = a, .newest = newest, .retired = retired, .keeper = NODES - 1};
    a->pool = outbox.pool;
    assert_int_equal(tt_ps_server_open(&w->table, n, NODES, outbox, hooks, &a->server, &err),
                     TT_OK);
    assert_int_equal(tt_ps_server_start(a->server, w->view), TT_OK);
    if (n < SERVERS)
        return;
    assert_int_equal(tt_ps_client_open(&w->table, n, NODES, ROWS, outbox, hooks, &a->client, &err),
                     TT_OK);
    tt_ps_client_adopt(a->client, w->view);
}

static world *
open_world(tt_ps_consistency consistency)
{
    static world w;
    static const uint8_t is_server[NODES] = {1, 1, 0, 0}, is_dead[NODES] = {1, 0, 0, 0},
                         moving[PARTITIONS] = {0};
    tt_error err = {0};
    w = (world){.table = {.kind = TT_PS_DENSE,
                          .rows = ROWS,
                          .width = 1,
                          .partition_count = PARTITIONS,
                          .consistency = consistency,
                          .slice_count = consistency == TT_PS_BSP ? WORKERS : 0,
                          .optimizer = TT_PS_ADD}};
    assert_int_equal(tt_ps_view_first(&w.table, NODES, is_server, &w.view), TT_OK);
    assert_int_equal(tt_ps_view_without(w.view, is_dead, moving, NULL, SERVERS, &w.after), TT_OK);
    assert_int_equal(tt_mesh_share(NODES, &w.fd, &err), TT_OK);
    for (uint32_t n = 0; n < NODES; n++)
        open_actor(&w, n);
    return &w;
}

static void
close_world(world *w)
{
    for (uint32_t n = 0; n < NODES; n++) {
        tt_ps_client_close(w->actor[n].client);
        tt_ps_server_close(w->actor[n].server);
        tt_mesh_close(w->actor[n].mesh);
    }
    tt_ps_view_free(w->view);
    tt_ps_view_free(w->after);
    (void)close(w->fd);
}

static float *
fill(float *values, float value)
{
    for (uint32_t i = 0; i < ROWS; i++)
        values[i] = value;
    return values;
}

static float *
gradient_of(actor *a, float value)
{
    return fill(tt_ps_client_gradients(a->client), value);
}

static void
begin_pull(actor *a, uint32_t need)
{
    tt_ps_client_pull(a->client, (tt_ps_keys){.count = ROWS}, need, 0, fill(a->values, -1));
    tt_mesh_flush(a->mesh, a->index);
}

static void
begin_push(actor *a, const float *gradient, uint32_t clock, uint32_t detail)
{
    tt_ps_client_push(a->client, gradient, clock, detail);
    tt_mesh_flush(a->mesh, a->index);
}

static void
pull(actor *a)
{
    begin_pull(a, 0);
    settle(a->w);
    assert_true(tt_ps_client_done(a->client));
}

static tt_ps_client_counters
counters_of(const actor *a)
{
    tt_ps_client_counters counters;
    tt_ps_client_counters_read(a->client, &counters);
    return counters;
}

static void
all_are(const float *values, float value, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        assert_true(values[i] == value);
}

static void
values_come_without_being_sent(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    for (uint32_t round = 1; round <= 3; round++) {
        pull(a);
        all_are(a->values, (float)(round - 1) * 2.5f, 0, ROWS);
        begin_push(a, gradient_of(a, 2.5f), round, 1);
        settle(w);
        assert_true(tt_ps_client_done(a->client));
    }
    tt_ps_client_counters c = counters_of(a);
    assert_int_equal(c.lent, 3 * PARTITIONS);
    assert_int_equal(c.read, 3 * PARTITIONS);
    assert_int_equal(c.read_in_vain, 0);
    assert_int_equal(w->actor[0].lent_frames, 3);
    close_world(w);
}

// By ASP what a partition was changed to will do; if it is changing just now, it is sent.
static void
asp_reads_what_came_later(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS], *other = &w->actor[SERVERS + 1];
    pull(other);
    begin_pull(a, 0);
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    begin_push(other, gradient_of(other, 3), 1, 1);
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    tt_pool_guard_change(w->actor[1].pool, 1); // as if in the middle of the next push
    (void)let(a);
    assert_false(tt_ps_client_done(a->client));
    tt_pool_guard_changed(w->actor[1].pool, 1);
    settle(w);
    assert_true(tt_ps_client_done(a->client));
    all_are(a->values, 3, 0, ROWS);
    assert_int_equal(counters_of(a).read, 1);
    assert_int_equal(counters_of(a).read_in_vain, 1);
    // That partition is pulled by copy once, then is read again.
    pull(a);
    assert_int_equal(counters_of(a).read, 2);
    pull(a);
    assert_int_equal(counters_of(a).read, 4);
    close_world(w);
}

// Under BSP values are those of a round: here of one that is over when they are read, and not kept.
static void
bsp_reads_one_round_only(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_BSP);
    w->table.keeps_past = 1;
    actor *a = &w->actor[SERVERS], *other = &w->actor[SERVERS + 1];
    pull(a);
    pull(other);
    begin_push(a, gradient_of(a, 1), 0, 0);
    settle(w);
    begin_pull(a, 0); // of the round that is being collected
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    begin_push(other, gradient_of(other, 1), 0, 1);
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    settle(w);
    assert_true(tt_ps_client_done(a->client) && !tt_ps_client_is_late(a->client));
    all_are(a->values, 0, 0, ROWS);
    assert_int_equal(counters_of(a).read_in_vain, PARTITIONS);
    begin_pull(a, 1);
    settle(w);
    assert_true(tt_ps_client_done(a->client));
    all_are(a->values, 2, 0, ROWS);
    close_world(w);
}

static void
a_push_sent_again_counts_once(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    pull(a);
    begin_push(a, gradient_of(a, 4), 1, 1);
    tt_ps_client_time(a->client, 1000000000);
    tt_ps_client_tick(a->client, 1);
    tt_mesh_flush(a->mesh, a->index);
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    assert_int_equal(w->actor[0].lent_frames, 1); // the second time it came by copy
    assert_int_equal(w->actor[0].seen.flags & TT_FRAME_LENT, 0);
    settle(w);
    assert_true(tt_ps_client_done(a->client));
    fill(tt_ps_client_gradients(a->client), 1000);
    pull(a);
    all_are(a->values, 4, 0, ROWS);
    close_world(w);
}

static void
an_abandoned_push_is_not_read(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    pull(a);
    float *first = gradient_of(a, 4);
    begin_push(a, first, 1, 1);
    tt_ps_client_abandon(a->client);
    assert_ptr_equal(gradient_of(a, 1000), first);
    settle(w);
    pull(a);
    all_are(a->values, 0, 0, ROWS);
    begin_push(a, gradient_of(a, 6), 2, 1);
    settle(w);
    pull(a);
    all_are(a->values, 6, 0, ROWS);
    close_world(w);
}

// A server that lives is in the middle of it: the memory stays as it is until it is done.
static void
an_abandoned_push_that_is_read_stays(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS], *server = &w->actor[0];
    pull(a);
    float *first = gradient_of(a, 4);
    begin_push(a, first, 1, 1);
    tti_place place = begin_to_read(server, a);
    tt_ps_client_abandon(a->client);
    float *second = gradient_of(a, 1000);
    assert_ptr_not_equal(second, first);
    assert_true(first[0] == 4 && first[ROWS - 1] == 4);
    begin_push(a, gradient_of(a, 1), 2, 1); // by copy
    settle(w);
    assert_true(tt_ps_client_done(a->client));
    uint64_t lent = counters_of(a).lent;
    tt_pool_return(server->pool, a->index, place.index, place.mark);
    assert_ptr_equal(gradient_of(a, 1), first);
    begin_push(a, first, 3, 1);
    settle(w);
    assert_int_equal(counters_of(a).lent, lent + PARTITIONS);
    pull(a);
    all_are(a->values, 2, 0, ROWS); // nothing of what was abandoned
    close_world(w);
}

// Server 0 is stopped, declared dead, and wakes when its push has been redirected and the memory is
// written to again: it finds nothing to read.
static void
a_server_that_wakes_reads_nothing(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS], *zombie = &w->actor[0];
    pull(a);
    float *first = gradient_of(a, 4);
    begin_push(a, first, 1, 1);
    (void)let(&w->actor[1]);
    (void)let(a);
    w->has_heard = 1;
    tt_ps_client_lose(a->client, w->after);
    assert_ptr_equal(gradient_of(a, 1000), first);
    w->has_heard = 0; // the zombie has not
    (void)let(zombie);
    all_are(zombie->server->slots[0].partition->cells.w, 0, 0, ROWS / PARTITIONS);
    close_world(w);
}

// The same when it was stopped in the middle of reading: its state is lost, and nobody waits for
// it.
static void
a_dead_reader_keeps_no_memory(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS], *zombie = &w->actor[0];
    pull(a);
    float *first = gradient_of(a, 4);
    begin_push(a, first, 1, 1);
    (void)begin_to_read(zombie, a);
    tt_ps_client_lose(a->client, w->after);
    assert_ptr_equal(tt_ps_client_gradients(a->client), first);
    close_world(w);
}

static void
without_room_values_are_sent(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    while (tt_pool_take(a->pool, TT_POOL_BYTES / 8) != NULL)
        ; // 8 times
    pull(a);
    float *gradient = gradient_of(a, 2);
    uint64_t offset;
    assert_false(tt_pool_find(a->pool, gradient, 4, &offset));
    begin_push(a, gradient, 1, 1);
    settle(w);
    pull(a);
    all_are(a->values, 2, 0, ROWS);
    assert_int_equal(counters_of(a).lent, 0);
    close_world(w);
}

// A partition that has left its server is not read where it was.
static void
a_partition_that_left_is_not_read(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    begin_pull(a, 0);
    (void)let(&w->actor[0]);
    (void)let(&w->actor[1]);
    tti_slot *slot = &w->actor[0].server->slots[0];
    tti_slot_clear(w->actor[0].server, slot);
    assert_int_equal(tti_slot_open(w->actor[0].server, slot), TT_OK);
    slot->state = TTI_SERVING;
    fill(slot->partition->cells.w, 0)[0] = 9;
    settle(w);
    assert_true(tt_ps_client_done(a->client));
    assert_true(a->values[0] == 9 && a->values[1] == 0);
    assert_int_equal(counters_of(a).read_in_vain, 1);
    close_world(w);
}

// Nonsense in place of a place is dropped.
static void
nonsense_is_dropped(void **state)
{
    TT_UNUSED(state);
    world *w = open_world(TT_PS_ASP);
    actor *a = &w->actor[SERVERS];
    tt_outbox outbox = tt_mesh_outbox(a->mesh, a->index);
    const tti_place places[] = {{0, ROWS / PARTITIONS * 4, 5, 0, 0},
                                {0, 4, 5, 0, 0},
                                {UINT64_MAX, ROWS / PARTITIONS * 4, 5, 0, 0},
                                {0, ROWS / PARTITIONS * 4, 5, UINT32_MAX, 0}};
    for (size_t i = 0; i < 2 * TT_COUNT_OF(places); i++) {
        tt_frame frame = {.kind = TT_FRAME_PUSH,
                          .attempt = 1,
                          .generation = 1,
                          .flags = TT_FRAME_LENT | TT_FRAME_WHOLE,
                          .sequence = 1};
        tt_span span = {&places[i / 2], i % 2 == 0 ? sizeof places[0] : 7};
        outbox.send(outbox.self, 0, &frame, &span, 1);
    }
    tt_mesh_flush(a->mesh, a->index);
    assert_int_equal(let(&w->actor[0]), 8);
    pull(a);
    all_are(a->values, 0, 0, ROWS);
    close_world(w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_without_being_sent),
        cmocka_unit_test(asp_reads_what_came_later),
        cmocka_unit_test(bsp_reads_one_round_only),
        cmocka_unit_test(a_push_sent_again_counts_once),
        cmocka_unit_test(an_abandoned_push_is_not_read),
        cmocka_unit_test(an_abandoned_push_that_is_read_stays),
        cmocka_unit_test(a_server_that_wakes_reads_nothing),
        cmocka_unit_test(a_dead_reader_keeps_no_memory),
        cmocka_unit_test(without_room_values_are_sent),
        cmocka_unit_test(a_partition_that_left_is_not_read),
        cmocka_unit_test(nonsense_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
