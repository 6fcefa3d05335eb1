// Goal: a list of keys that is named instead of sent means the same rows, whatever a server has
// forgotten, whatever grew, moved or began anew meanwhile, and is sent once as long as nothing has.
// Method: one server and two workers on rings, stepped by the test, which looks at what is sent;
// two jobs with the same operations, of which one sends every list, compared bit by bit.
#include "client_core.h"
#include "tt/ps.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 3, WORKERS = 2, PARTITIONS = 3, KEYS = 500, KEYS_MAX = 20000 };

typedef struct world {
    tt_ps_table table;
    tt_ps_view *view;
    tt_mesh *mesh;
    tt_ps_server *server;
    tt_ps_client *client[WORKERS]; // ends 1 and 2
    uint64_t bytes;                // sent to the server since last asked
    float values[KEYS_MAX], gradients[KEYS_MAX];
} world;

static const tt_ps_view *
newest(void *self)
{
    return ((const world *)self)->view;
}

static void
on_frame_of_server(void *self, const tt_frame *frame, const uint8_t *payload)
{
    world *w = self;
    w->bytes += frame->payload_bytes;
    tt_ps_server_receive(w->server, frame, payload);
}

static void
on_frame_of_worker(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tt_ps_client_receive(self, frame, payload);
}

static void
settle(world *w)
{
    uint32_t handled = 1;
    for (uint32_t n = 0; n < NODES; n++)
        tt_mesh_flush(w->mesh, n);
    while (handled > 0) {
        handled = tt_mesh_receive(w->mesh, 0, 100, on_frame_of_server, w);
        for (uint32_t i = 0; i < WORKERS; i++)
            handled += tt_mesh_receive(w->mesh, 1 + i, 100, on_frame_of_worker, w->client[i]);
        for (uint32_t n = 0; n < NODES; n++)
            tt_mesh_flush(w->mesh, n);
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_true(tt_ps_client_done(w->client[i]));
}

static void
open_client(world *w, uint32_t i, uint32_t attempt)
{
    tt_error err = {0};
    tt_ps_hooks hooks = {.self = w, .newest = newest, .attempt = attempt};
    assert_int_equal(tt_ps_client_open(&w->table, 1 + i, NODES, KEYS_MAX,
                                       tt_mesh_outbox(w->mesh, 1 + i), hooks, &w->client[i], &err),
                     TT_OK);
    tt_ps_client_adopt(w->client[i], w->view);
}

static void
open_world(world *w, uint32_t width)
{
    static const uint8_t is_server[NODES] = {1, 0, 0};
    tt_error err = {0};
    memset(w, 0, sizeof *w);
    w->table = (tt_ps_table){.kind = TT_PS_SPARSE,
                             .width = width,
                             .partition_count = PARTITIONS,
                             .consistency = TT_PS_ASP,
                             .optimizer = TT_PS_ADAGRAD,
                             .learning_rate = 0.31,
                             .epsilon = 1e-6};
    assert_int_equal(tt_ps_view_first(&w->table, NODES, is_server, &w->view), TT_OK);
    assert_int_equal(tt_mesh_open(NODES, &w->mesh, &err), TT_OK);
    tt_ps_hooks hooks = {.self = w, .newest = newest};
    assert_int_equal(
        tt_ps_server_open(&w->table, 0, NODES, tt_mesh_outbox(w->mesh, 0), hooks, &w->server, &err),
        TT_OK);
    assert_int_equal(tt_ps_server_start(w->server, w->view), TT_OK);
    for (uint32_t i = 0; i < WORKERS; i++)
        open_client(w, i, 1);
}

static world *
opened(void)
{
    static world w;
    open_world(&w, 1);
    w.table.optimizer = TT_PS_ADD;
    return &w;
}

static void
close_world(world *w)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        tt_ps_client_close(w->client[i]);
    tt_ps_server_close(w->server);
    tt_mesh_close(w->mesh);
    tt_ps_view_free(w->view);
}

static uint64_t
bytes_of(world *w)
{
    uint64_t bytes = w->bytes;
    w->bytes = 0;
    return bytes;
}

static const uint64_t *
list_of(uint64_t number)
{
    static uint64_t keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = (number * 10007 + i * 31) * 977;
    return keys;
}

static void
pull(world *w, uint32_t worker, const uint64_t *keys)
{
    memset(w->values, 0xff, sizeof w->values);
    tt_ps_client_pull(w->client[worker], (tt_ps_keys){.keys = keys, .count = KEYS}, 0, 0,
                      w->values);
    settle(w);
}

static void
push(world *w, uint32_t worker, float value)
{
    for (uint32_t i = 0; i < KEYS_MAX; i++)
        w->gradients[i] = value + (float)i;
    tt_ps_client_push(w->client[worker], w->gradients, 1, 1);
    settle(w);
}

static void
values_are(const world *w, float value, float slope)
{
    for (uint32_t i = 0; i < KEYS; i++)
        assert_true(w->values[i] == value + slope * (float)i);
}

enum { NAMES = PARTITIONS * sizeof(tti_list_name), ALL_KEYS = KEYS * 8, GRADIENTS = KEYS * 4 };

static void
a_list_is_sent_once(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    pull(w, 0, list_of(1));
    assert_int_equal(bytes_of(w), NAMES + ALL_KEYS);
    push(w, 0, 2);
    assert_int_equal(bytes_of(w), NAMES + GRADIENTS);
    push(w, 0, 2);
    assert_int_equal(bytes_of(w), NAMES + GRADIENTS);
    pull(w, 0, list_of(1)); // now it is worth keeping
    assert_int_equal(bytes_of(w), NAMES + ALL_KEYS);
    values_are(w, 4, 2);
    pull(w, 0, list_of(1));
    assert_int_equal(bytes_of(w), NAMES);
    values_are(w, 4, 2);
    pull(w, 1, list_of(1)); // the other worker's numbers are its own
    assert_int_equal(bytes_of(w), NAMES + ALL_KEYS);
    values_are(w, 4, 2);
    close_world(w);
}

static void
forgotten_lists_are_sent_again(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    for (int i = 0; i < 3; i++)
        pull(w, 0, list_of(1));
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        tti_lists_free(w->server->lists[p], NODES);
        w->server->lists[p] = NULL;
    }
    (void)bytes_of(w);
    push(w, 0, 5);
    assert_int_equal(bytes_of(w), 2 * (NAMES + GRADIENTS) + ALL_KEYS);
    pull(w, 0, list_of(1));
    assert_int_equal(bytes_of(w), NAMES);
    values_are(w, 5, 1);
    close_world(w);
}

// More lists than are kept, round and round: both sides drop those that were not used for longest.
static void
many_lists_push_each_other_out(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    for (uint64_t round = 0; round < 4; round++)
        for (uint64_t i = 0; i < TTI_LISTS_KEPT + 8; i++) {
            pull(w, 0, list_of(i));
            values_are(w, (float)(round * (i + 1)), (float)round);
            push(w, 0, (float)(i + 1));
        }
    (void)bytes_of(w);
    for (uint64_t i = 8; i < TTI_LISTS_KEPT + 8; i++) // all of these are kept
        pull(w, 0, list_of(i));
    assert_int_equal(bytes_of(w), TTI_LISTS_KEPT * NAMES);
    pull(w, 0, list_of(0));
    assert_int_equal(bytes_of(w), NAMES + ALL_KEYS);
    values_are(w, 4, 4);
    close_world(w);
}

// What was not there when the list was named, and was created by another; and the table has grown
// and been hashed anew since.
static void
rows_are_found_when_they_come(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    static uint64_t many[KEYS_MAX];
    for (int i = 0; i < 3; i++)
        pull(w, 0, list_of(1));
    values_are(w, 0, 0);
    for (uint64_t i = 0; i < KEYS_MAX; i++)
        many[i] = (i << 40) + 17;
    tt_ps_client_pull(w->client[1], (tt_ps_keys){.keys = many, .count = KEYS_MAX}, 0, 0, w->values);
    settle(w);
    push(w, 1, 100);
    pull(w, 1, list_of(1));
    push(w, 1, 3);
    (void)bytes_of(w);
    pull(w, 0, list_of(1));
    assert_int_equal(bytes_of(w), NAMES);
    values_are(w, 3, 1);
    push(w, 0, 1);
    pull(w, 1, list_of(1));
    values_are(w, 4, 2);
    close_world(w);
}

static void
a_partition_that_begins_anew_knows_no_lists(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    for (int i = 0; i < 3; i++)
        pull(w, 0, list_of(1));
    push(w, 0, 9);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        tti_slot_clear(w->server, &w->server->slots[p]);
        assert_int_equal(tti_slot_open(w->server, &w->server->slots[p]), TT_OK);
        w->server->slots[p].state = TTI_SERVING;
    }
    pull(w, 0, list_of(1));
    values_are(w, 0, 0);
    push(w, 0, 2);
    pull(w, 0, list_of(1));
    values_are(w, 2, 1);
    close_world(w);
}

// Another process of the same number counts its lists anew.
static void
a_successor_has_lists_of_its_own(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    for (int i = 0; i < 3; i++)
        pull(w, 0, list_of(1));
    push(w, 0, 7);
    tt_ps_client_close(w->client[0]);
    open_client(w, 0, 2);
    w->server->attempts[1] = 2;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        w->server->slots[p].sequence[1] = 0;
    for (int i = 0; i < 3; i++) {
        pull(w, 0, list_of(2));
        values_are(w, 0, 0);
    }
    pull(w, 0, list_of(1));
    values_are(w, 7, 1);
    close_world(w);
}

// Two lists that differ where nobody takes a sample.
static void
lists_are_compared_by_every_key(void **state)
{
    TT_UNUSED(state);
    world *w = opened();
    static uint64_t like[KEYS];
    for (int i = 0; i < 4; i++)
        pull(w, 0, list_of(1));
    push(w, 0, 7);
    memcpy(like, list_of(1), sizeof like);
    like[3] = 12345;
    pull(w, 0, like);
    assert_true(w->values[2] == 9 && w->values[3] == 0 && w->values[4] == 11);
    close_world(w);
}

static void
one_step(world *w, uint64_t step)
{
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, step);
    uint32_t worker = (uint32_t)tt_rng_below(&rng, WORKERS), width = w->table.width;
    uint64_t list = tt_rng_below(&rng, 4) == 0 ? 1000 + step : tt_rng_below(&rng, 24);
    uint32_t partition = (uint32_t)tt_rng_below(&rng, PARTITIONS);
    if (tt_rng_below(&rng, 20) == 0) {
        tti_lists_free(w->server->lists[partition], NODES);
        w->server->lists[partition] = NULL;
    }
    tt_ps_client_set(w->client[worker], 1 + (uint32_t)tt_rng_below(&rng, 4),
                     tt_rng_below(&rng, 4) == 0);
    tt_ps_client_pull(w->client[worker], (tt_ps_keys){.keys = list_of(list), .count = KEYS}, 0, 0,
                      w->values);
    settle(w);
    for (uint64_t again = tt_rng_below(&rng, 3); again > 0; again--) {
        for (uint32_t i = 0; i < KEYS * width; i++)
            w->gradients[i] = w->values[i] * 0.1f + (float)tt_rng_uniform(&rng) - 0.5f;
        tt_ps_client_push(w->client[worker], w->gradients, 1, 1);
        settle(w);
    }
}

static void
values_are_those_of_lists_that_are_sent(void **state)
{
    TT_UNUSED(state);
    static world named, sent;
    for (uint32_t width = 1; width <= 3; width += 2) {
        open_world(&named, width);
        open_world(&sent, width);
        for (uint32_t i = 0; i < WORKERS; i++)
            sent.client[i]->lists.are_off = 1;
        for (uint64_t step = 0; step < 600; step++) {
            one_step(&named, step);
            one_step(&sent, step);
            assert_memory_equal(named.values, sent.values, KEYS * width * sizeof(float));
        }
        tt_ps_client_counters c;
        tt_ps_client_counters_read(named.client[0], &c);
        assert_true(c.lists_again > 100 && c.lists_unknown > 10 && named.bytes < sent.bytes);
        close_world(&named);
        close_world(&sent);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_sent_once),
        cmocka_unit_test(forgotten_lists_are_sent_again),
        cmocka_unit_test(many_lists_push_each_other_out),
        cmocka_unit_test(rows_are_found_when_they_come),
        cmocka_unit_test(a_partition_that_begins_anew_knows_no_lists),
        cmocka_unit_test(a_successor_has_lists_of_its_own),
        cmocka_unit_test(lists_are_compared_by_every_key),
        cmocka_unit_test(values_are_those_of_lists_that_are_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
