// Goal: a partition that moves between servers that see the same memory is at its new owner what it
// was at the old one, with its optimiser state, and none of it was sent; who pushes and pulls
// meanwhile is served; nothing is taken of memory whose owner has gone. Method: two servers and
// a worker that each have their own view of one shared memory, as processes have; what one has sent
// lies in its ring until the test lets the other have it.
#include "server_core.h"
#include "tt/ps.h"
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODES = 3, WORKER = 2, PARTITIONS = 2, ROWS = 4096, KEYS = 3000 };

typedef struct actor {
    struct world *w;
    uint32_t index;
    tt_mesh *mesh;
    tt_pool *pool;
    tt_ps_server *server;
    tt_ps_client *client;
    uint32_t seals_lent, pieces; // came; the latter with rows
} actor;

typedef struct world {
    tt_ps_table table;
    tt_ps_view *before, *after; // the latter: all partitions are server 1's
    int fd, has_moved;
    uint32_t retired;
    uint64_t keys[KEYS];
    float values[ROWS];
    actor actor[NODES];
} world;

static const tt_ps_view *
newest(void *self)
{
    const world *w = ((const actor *)self)->w;
    return w->has_moved ? w->after : w->before;
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    TT_UNUSED(partition);
    TT_UNUSED(generation);
    ((actor *)self)->w->retired++;
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    actor *a = self;
    tt_frame_kind kind = (tt_frame_kind)frame->kind;
    a->seals_lent += kind == TT_FRAME_SEAL && (frame->flags & TT_FRAME_LENT) != 0;
    a->pieces += kind == TT_FRAME_PIECE && frame->count > 0;
    if (kind == TT_FRAME_PULL_REPLY || kind == TT_FRAME_PUSH_ACK || kind == TT_FRAME_MOVED ||
        kind == TT_FRAME_WANT_KEYS)
        tt_ps_client_receive(a->client, frame, payload);
    else
        tt_ps_server_receive(a->server, frame, payload);
}

// Lets it have what was sent to it, and do what it has put off.
static uint32_t
let(actor *a)
{
    uint32_t handled = tt_mesh_receive(a->mesh, a->index, 1000, on_frame, a);
    handled += tt_ps_server_background(a->server) ? 1 : 0;
    tt_mesh_flush(a->mesh, a->index);
    return handled;
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
    tt_ps_hooks hooks = {.self = a, .newest = newest, .retired = retired, .keeper = NODES};
    a->pool = outbox.pool;
    assert_int_equal(tt_ps_server_open(&w->table, n, NODES, outbox, hooks, &a->server, &err),
                     TT_OK);
    assert_int_equal(tt_ps_server_start(a->server, w->before), TT_OK);
    assert_int_equal(tt_ps_client_open(&w->table, n, NODES, ROWS, outbox, hooks, &a->client, &err),
                     TT_OK);
    tt_ps_client_adopt(a->client, w->before);
}

static world *
open_world(tt_ps_table_kind kind, tt_ps_consistency consistency)
{
    static world w;
    static const uint8_t both[NODES] = {1, 1, 0}, second[NODES] = {0, 1, 0};
    tt_error err = {0};
    w = (world){.table = {.kind = kind,
                          .rows = ROWS,
                          .width = 1,
                          .partition_count = PARTITIONS,
                          .consistency = consistency,
                          .slice_count = 1,
                          .optimizer = TT_PS_ADAGRAD,
                          .learning_rate = 0.5f,
                          .epsilon = 1e-6f,
                          .averaging = 1}};
    for (uint32_t i = 0; i < KEYS; i++)
        w.keys[i] = UINT64_C(977) * i * i + i;
    assert_int_equal(tt_ps_view_first(&w.table, NODES, both, &w.before), TT_OK);
    assert_int_equal(tt_ps_view_next(w.before, second, &w.after), TT_OK);
    w.after->join_clock[0] = UINT32_MAX; // a worker then, for which nobody waits
    assert_int_equal(tt_mesh_share(NODES, &w.fd, &err), TT_OK);
    for (uint32_t n = 0; n < NODES; n++)
        open_actor(&w, n);
    return &w;
}

static void
close_actor(actor *a)
{
    tt_ps_client_close(a->client);
    tt_ps_server_close(a->server);
    tt_mesh_close(a->mesh);
    *a = (actor){.w = a->w, .index = a->index};
}

static void
close_world(world *w)
{
    for (uint32_t n = 0; n < NODES; n++)
        close_actor(&w->actor[n]);
    tt_ps_view_free(w->before);
    tt_ps_view_free(w->after);
    (void)close(w->fd);
}

static tt_ps_keys
keys_of(const world *w)
{
    return w->table.kind == TT_PS_DENSE ? (tt_ps_keys){.count = ROWS}
                                        : (tt_ps_keys){.keys = w->keys, .count = KEYS};
}

static void
begin_pull(world *w, uint32_t need)
{
    actor *a = &w->actor[WORKER];
    tt_ps_client_pull(a->client, keys_of(w), need, 0, w->values);
    tt_mesh_flush(a->mesh, a->index);
}

static void
pull(world *w, uint32_t need)
{
    begin_pull(w, need);
    settle(w);
    assert_true(tt_ps_client_done(w->actor[WORKER].client));
}

static void
begin_push(world *w, uint32_t clock)
{
    actor *a = &w->actor[WORKER];
    float *gradients = tt_ps_client_gradients(a->client);
    for (uint32_t i = 0; i < keys_of(w).count; i++)
        gradients[i] = (float)(i % 17) - 8;
    int is_bsp = w->table.consistency == TT_PS_BSP;
    tt_ps_client_push(a->client, gradients, is_bsp ? clock - 1 : clock, is_bsp ? 0 : 1);
    tt_mesh_flush(a->mesh, a->index);
}

static void
push(world *w, uint32_t clock)
{
    begin_push(w, clock);
    settle(w);
    assert_true(tt_ps_client_done(w->actor[WORKER].client));
}

static void
move(world *w)
{
    w->has_moved = 1;
    for (uint32_t n = 0; n < NODES; n++)
        tt_ps_server_adopt(w->actor[n].server, w->after);
    for (uint32_t n = 0; n < NODES; n++)
        tt_mesh_flush(w->actor[n].mesh, n);
}

// Asynchronous, after one push; server 1 is to have what server 0 has.
static world *
open_moving(int kind)
{
    world *w = open_world((tt_ps_table_kind)kind, TT_PS_ASP);
    pull(w, 0);
    push(w, 1);
    move(w);
    return w;
}

// What a slot has, whoever has it.
static void
expect_same(const tti_partition *a, const tti_partition *b)
{
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->steps, b->steps);
    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {
        size_t row_bytes;
        const void *x = tti_partition_array(a, i, &row_bytes);
        const void *y = tti_partition_array(b, i, &row_bytes);
        assert_true((x == NULL) == (y == NULL));
        if (x != NULL)
            assert_memory_equal(x, y, a->rows * row_bytes);
    }
    for (uint32_t row = 0; a->row_key != NULL && row < a->rows; row++)
        assert_int_equal(tti_partition_find(b, a->row_key[row]), row);
}

// Two worlds do the same; in one of them the partition moves in between.
static void
compare_with_one_that_stays(tt_ps_table_kind kind, tt_ps_consistency consistency)
{
    static float stays[ROWS];
    for (int moves = 0; moves < 2; moves++) {
        world *w = open_world(kind, consistency);
        for (uint32_t clock = 1; clock <= 3; clock++) {
            pull(w, clock - 1);
            push(w, clock);
        }
        if (moves) {
            move(w);
            settle(w);
            tt_ps_client_adopt(w->actor[WORKER].client, w->after);
            assert_int_equal(w->retired, 1);
            assert_null(w->actor[0].server->slots[0].partition);
            assert_int_equal(w->actor[1].seals_lent, 1);
        }
        for (uint32_t clock = 4; clock <= 6; clock++) {
            pull(w, clock - 1);
            push(w, clock);
        }
        pull(w, 6);
        if (!moves)
            memcpy(stays, w->values, sizeof stays);
        else
            assert_memory_equal(stays, w->values, keys_of(w).count * sizeof *stays);
        assert_int_equal(w->actor[1].pieces, 0);
        close_world(w);
    }
}

static void
a_partition_goes_on_where_it_was(void **state)
{
    TT_UNUSED(state);
    static const tt_ps_consistency all[] = {TT_PS_ASP, TT_PS_SSP, TT_PS_BSP};
    for (size_t i = 0; i < TT_COUNT_OF(all); i++) {
        compare_with_one_that_stays(TT_PS_DENSE, all[i]);
        compare_with_one_that_stays(TT_PS_SPARSE, all[i]);
    }
}

// The old owner serves until it is asked, and answers pulls until the new one has everything.
static void
nobody_waits_for_room(void **state)
{
    TT_UNUSED(state);
    for (int kind = TT_PS_DENSE; kind <= TT_PS_SPARSE; kind++) {
        world *w = open_moving(kind);
        actor *old = &w->actor[0], *new = &w->actor[1], *worker = &w->actor[WORKER];
        tt_ps_client_adopt(worker->client, w->after);
        tti_slot *slot = &old->server->slots[0];
        assert_int_equal(slot->state, TTI_SERVING);
        begin_push(w, 2); // as the new one has heard nothing yet, or is busy
        (void)let(old);
        assert_int_equal(slot->partition->steps, 2);
        while (slot->state == TTI_SERVING) {
            (void)let(new);
            (void)let(old);
        }
        (void)let(worker);
        assert_int_equal(slot->state, TTI_SEALED);
        assert_true(slot->departure.loan.is_out);
        begin_pull(w, 0);
        (void)let(old);
        assert_int_equal(new->server->slots[0].state, TTI_ARRIVING);
        (void)let(worker);
        settle(w);
        assert_true(tt_ps_client_done(worker->client));
        push(w, 3);
        tt_ps_server_counters counters;
        tt_ps_server_counters_read(new->server, &counters);
        assert_int_equal(counters.bytes_carried, 0);
        assert_true(counters.rows_installed > 0);
        assert_int_equal(new->server->slots[0].partition->steps, 3);
        close_world(w);
    }
}

static void
what_is_taken_is_what_was_sealed(void **state)
{
    TT_UNUSED(state);
    for (int kind = TT_PS_DENSE; kind <= TT_PS_SPARSE; kind++) {
        world *w = open_moving(kind);
        actor *old = &w->actor[0], *new = &w->actor[1];
        while (new->server->slots[0].state != TTI_SERVING) {
            (void)let(new);
            if (new->server->slots[0].state != TTI_SERVING)
                (void)let(old);
        }
        expect_same(old->server->slots[0].partition, new->server->slots[0].partition);
        settle(w);
        assert_int_equal(old->server->slots[0].state, TTI_RETIRED);
        close_world(w);
    }
}

// The old owner ends before the new one looks: nothing comes, and nothing is left of what was
// begun.
static void
nothing_is_taken_of_the_dead(void **state)
{
    TT_UNUSED(state);
    for (int kind = TT_PS_DENSE; kind <= TT_PS_SPARSE; kind++) {
        world *w = open_moving(kind);
        actor *old = &w->actor[0], *new = &w->actor[1];
        while (old->server->slots[0].state == TTI_SERVING) {
            (void)let(new);
            (void)let(old);
        }
        close_actor(old);
        open_actor(w, 0); // its memory is another's
        assert_non_null(tt_pool_take(old->pool, 1 << 20));
        const tti_slot *slot = &new->server->slots[0];
        (void)let(new);
        assert_int_equal(new->seals_lent, 1);
        assert_int_equal(slot->state, TTI_ARRIVING);
        assert_int_equal(slot->arrival.installed, 0);
        for (uint32_t row = 0; row < slot->partition->row_capacity; row++)
            assert_true(slot->partition->cells.w[row] == 0 &&
                        slot->partition->cells.first[row] == 0);
        assert_int_equal(slot->partition->rows, kind == TT_PS_DENSE ? ROWS / PARTITIONS : 0);
        close_world(w);
    }
}

// Who cannot take what it is lent asks again, and is sent it in the end.
static void
what_cannot_be_taken_is_sent(void **state)
{
    TT_UNUSED(state);
    for (int kind = TT_PS_DENSE; kind <= TT_PS_SPARSE; kind++) {
        world *w = open_moving(kind);
        actor *old = &w->actor[0], *new = &w->actor[1];
        tti_slot *slot = &old->server->slots[0];
        for (int i = 0; i < 100 && slot->state != TTI_RETIRED; i++) {
            if (slot->state == TTI_SEALED)
                slot->departure.loan.rows.mark += 2; // its guard has never said so
            settle(w);
            tt_ps_server_tick(new->server);
            tt_mesh_flush(new->mesh, new->index);
        }
        assert_int_equal(slot->state, TTI_RETIRED);
        assert_int_equal(new->server->slots[0].state, TTI_SERVING);
        close_world(w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partition_goes_on_where_it_was),
        cmocka_unit_test(nobody_waits_for_room),
        cmocka_unit_test(what_is_taken_is_what_was_sealed),
        cmocka_unit_test(nothing_is_taken_of_the_dead),
        cmocka_unit_test(what_cannot_be_taken_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
