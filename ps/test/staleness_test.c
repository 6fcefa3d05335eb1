// Goal: a client knows how many iterations of others were applied between its pull and its push,
// merged ones as many as they stand for, whatever moves meanwhile; it says so when it does not
// know. Method: two clients and two servers, one partition or two, every message by hand.
#include "server_core.h"
#include "tt/ps.h"
#include <math.h>

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 4, SERVERS = 2, A = 2, B = 3, ROWS = 8, LETTERS_MAX = 256 };

typedef struct letter {
    uint32_t to;
    tt_frame frame;
    uint8_t *payload;
} letter;

typedef struct world world;
typedef struct end {
    world *world;
    uint32_t node;
} end;

struct world {
    tt_ps_table table;
    tt_ps_view *views[3]; // by generation
    const tt_ps_view *newest;
    end ends[NODES];
    tt_ps_server *servers[SERVERS];
    tt_ps_client *clients[NODES];
    letter letters[LETTERS_MAX];
    uint32_t letter_count;
    float out[ROWS], gradients[ROWS];
};

static void
post(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    const end *from = self;
    world *w = from->world;
    assert_true(w->letter_count < LETTERS_MAX);
    letter *l = &w->letters[w->letter_count++];
    const size_t bytes = tt_frame_complete(frame, from->node, spans, span_count);
    *l = (letter){.to = to, .frame = *frame, .payload = malloc(bytes)};
    assert_non_null(l->payload);
    for (uint32_t i = 0, at = 0; i < span_count; at += (uint32_t)spans[i].size, i++)
        if (spans[i].size > 0)
            memcpy(l->payload + at, spans[i].bytes, spans[i].size);
}

static int
is_for_a_client(const tt_frame *frame)
{
    return frame->kind == TT_FRAME_PULL_REPLY || frame->kind == TT_FRAME_PUSH_ACK ||
           (frame->kind == TT_FRAME_MOVED && frame->clock != TT_FRAME_FETCH);
}

static void
deliver_all(world *w)
{
    for (uint32_t i = 0; i < w->letter_count; i++) {
        const letter l = w->letters[i]; // more may come
        if (l.to < NODES && is_for_a_client(&l.frame) && w->clients[l.to] != NULL)
            tt_ps_client_receive(w->clients[l.to], &l.frame, l.payload);
        else if (l.to < SERVERS)
            tt_ps_server_receive(w->servers[l.to], &l.frame, l.payload);
        free(l.payload);
    }
    w->letter_count = 0;
}

static const tt_ps_view *
newest(void *self)
{
    return ((const end *)self)->world->newest;
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    TT_UNUSED(self);
    TT_UNUSED(partition);
    TT_UNUSED(generation);
}

static void
setup(world *w, tt_ps_consistency consistency, uint32_t partitions)
{
    static const uint8_t is_server[TT_PS_NODES_MAX] = {1, 1};
    tt_error err;
    memset(w, 0, sizeof *w);
    w->table = (tt_ps_table){.kind = TT_PS_DENSE,
                             .rows = ROWS,
                             .width = 1,
                             .partition_count = partitions,
                             .consistency = consistency,
                             .slice_count = 2,
                             .optimizer = TT_PS_SGD,
                             .learning_rate = 1};
    assert_int_equal(tt_ps_view_first(&w->table, NODES, is_server, &w->views[1]), TT_OK);
    w->newest = w->views[1];
    for (uint32_t n = 0; n < NODES; n++) {
        w->ends[n] = (end){w, n};
        tt_outbox outbox = {.self = &w->ends[n], .send = post};
        tt_ps_hooks hooks = {.self = &w->ends[n],
                             .newest = newest,
                             .retired = retired,
                             .keeper = NODES,
                             .attempt = w->views[1]->attempt[n]};
        if (n < SERVERS) {
            assert_int_equal(
                tt_ps_server_open(&w->table, n, NODES + 1, outbox, hooks, &w->servers[n], &err),
                TT_OK);
            assert_int_equal(tt_ps_server_start(w->servers[n], w->views[1]), TT_OK);
            continue;
        }
        assert_int_equal(
            tt_ps_client_open(&w->table, n, NODES + 1, ROWS, outbox, hooks, &w->clients[n], &err),
            TT_OK);
        tt_ps_client_adopt(w->clients[n], w->views[1]);
        tt_ps_client_set(w->clients[n], partitions, 0);
    }
}

static void
teardown(world *w)
{
    for (uint32_t n = 0; n < NODES; n++) {
        if (n < SERVERS)
            tt_ps_server_close(w->servers[n]);
        tt_ps_client_close(w->clients[n]);
    }
    for (uint32_t i = 0; i < w->letter_count; i++)
        free(w->letters[i].payload);
    for (uint32_t g = 1; g <= 2; g++)
        tt_ps_view_free(w->views[g]);
}

static void
pull(world *w, uint32_t worker)
{
    tt_ps_client_pull(w->clients[worker], (tt_ps_keys){.count = ROWS}, 0, 0, w->out);
    deliver_all(w);
    assert_true(tt_ps_client_done(w->clients[worker]));
}

static double
push(world *w, uint32_t worker, uint32_t clock, uint32_t merged)
{
    tt_ps_client_push(w->clients[worker], w->gradients, clock, merged);
    deliver_all(w);
    assert_true(tt_ps_client_done(w->clients[worker]));
    return tt_ps_client_staleness(w->clients[worker]);
}

static void
counts_what_others_applied(void **state)
{
    TT_UNUSED(state);
    static const tt_ps_consistency kinds[] = {TT_PS_ASP, TT_PS_SSP};
    for (size_t k = 0; k < TT_COUNT_OF(kinds); k++)
        for (uint32_t partitions = 1; partitions <= 2; partitions++) {
            world w;
            setup(&w, kinds[k], partitions);
            assert_true(isnan(tt_ps_client_staleness(w.clients[A]))); // nothing was pushed
            pull(&w, A);
            pull(&w, B);
            assert_true(push(&w, B, 1, 1) == 0);
            pull(&w, B);
            assert_true(push(&w, B, 4, 3) == 0);
            assert_true(push(&w, A, 2, 2) == 4);
            pull(&w, B);
            pull(&w, A);
            assert_true(push(&w, A, 3, 1) == 0);
            assert_true(push(&w, B, 5, 1) == 1);
            teardown(&w);
        }
}

// What one partition saw and the other did not counts half.
static void
is_the_mean_over_partitions(void **state)
{
    TT_UNUSED(state);
    static const uint32_t first_half[] = {0, 1, 2};
    world w;
    setup(&w, TT_PS_ASP, 2);
    assert_true(tt_ps_partition_first(&w.table, 1) >= TT_COUNT_OF(first_half));
    pull(&w, A);
    for (uint32_t i = 1; i <= 3; i++) {
        tt_ps_client_pull(w.clients[B],
                          (tt_ps_keys){.rows = first_half, .count = TT_COUNT_OF(first_half)}, 0, 0,
                          w.out);
        deliver_all(&w);
        assert_true(push(&w, B, i, 1) == 0);
    }
    assert_true(push(&w, A, 1, 1) == 1.5);
    teardown(&w);
}

static void
goes_with_a_partition_that_moves(void **state)
{
    TT_UNUSED(state);
    world w;
    setup(&w, TT_PS_ASP, 1);
    const uint16_t from = w.views[1]->owner[0], to = (uint16_t)(1 - from);
    pull(&w, A);
    pull(&w, B);
    assert_true(push(&w, B, 2, 2) == 0);
    assert_int_equal(tt_ps_view_next(w.views[1], NULL, &w.views[2]), TT_OK);
    w.views[2]->owner[0] = to;
    w.views[2]->previous[0] = from;
    w.views[2]->moved_at[0] = w.views[2]->generation;
    w.newest = w.views[2];
    for (uint32_t n = 0; n < SERVERS; n++)
        tt_ps_server_adopt(w.servers[n], w.views[2]);
    tt_ps_client_adopt(w.clients[B], w.views[2]);
    for (int turn = 0; turn < 8; turn++) {
        deliver_all(&w);
        for (uint32_t n = 0; n < SERVERS; n++)
            (void)tt_ps_server_background(w.servers[n]);
    }
    pull(&w, B);
    assert_true(push(&w, B, 3, 1) == 0);
    assert_true(push(&w, A, 1, 1) == 3); // two before the move, one behind it
    assert_int_equal(tt_ps_server_held(w.servers[to]), 1);
    teardown(&w);
}

// Rounds have none, and of a pull that the partition's state does not go back to nothing is known.
static void
says_when_it_does_not_know(void **state)
{
    TT_UNUSED(state);
    world w;
    setup(&w, TT_PS_BSP, 1);
    pull(&w, A);
    assert_true(isnan(push(&w, A, 0, 0)));
    teardown(&w);
    setup(&w, TT_PS_ASP, 1);
    pull(&w, A);
    assert_true(push(&w, A, 1, 1) == 0);
    pull(&w, A);
    w.servers[w.views[1]->owner[0]]->slots[0].partition->iterations = 0; // as from a checkpoint
    assert_true(isnan(push(&w, A, 2, 1)));
    teardown(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_others_applied),
        cmocka_unit_test(is_the_mean_over_partitions),
        cmocka_unit_test(goes_with_a_partition_that_moves),
        cmocka_unit_test(says_when_it_does_not_know),
    };
    return cmocka_run_group_tests_name("staleness", tests, NULL, NULL);
}
