// Goal: messages of any size arrive whole, once and in order between all pairs (and from a node to
// itself), whatever chunk size and load. Method: threads that send each other numbered messages
// with checkable contents while they receive; random bytes for the frame check.
#include "tt/comm.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 4, MESSAGES = 600 };

struct node {
    tt_mesh *mesh;
    uint32_t index;
    uint32_t next[NODES]; // sequence expected from each peer
    uint32_t done;        // messages received
    uint32_t bad;
};

static uint32_t
size_of(uint32_t from, uint32_t to, uint32_t sequence)
{
    tt_rng rng;
    tt_rng_init(&rng, 77, TT_RNG_TEST, ((uint64_t)from << 40) | ((uint64_t)to << 32) | sequence);
    return (uint32_t)tt_rng_below(&rng, sequence % 50 == 0 ? 300000 : 3000) & ~3u;
}

static void
on_message(void *self, const tt_frame *frame, const uint8_t *payload)
{
    struct node *node = self;
    uint32_t from = frame->sender, sequence = node->next[from]++;
    uint32_t size = size_of(from, node->index, sequence);
    node->bad += frame->sequence != sequence || frame->payload_bytes != size;
    for (uint32_t i = 0; i < size && node->bad == 0; i += 97)
        node->bad += payload[i] != (uint8_t)(i + sequence + from);
    node->done++;
}

static void *
node_body(void *self)
{
    struct node *node = self;
    tt_outbox outbox = tt_mesh_outbox(node->mesh, node->index);
    static _Thread_local uint8_t bytes[300000];
    for (uint32_t sequence = 0; sequence < MESSAGES; sequence++) {
        tt_mesh_set_chunk(node->mesh, node->index, 4096u << (sequence % 7));
        for (uint32_t to = 0; to < NODES; to++) {
            uint32_t size = size_of(node->index, to, sequence);
            for (uint32_t i = 0; i < size; i++)
                bytes[i] = (uint8_t)(i + sequence + node->index);
            tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = sequence};
            tt_span spans[2] = {{bytes, size / 3}, {bytes + size / 3, size - size / 3}};
            outbox.send(outbox.self, to, &frame, spans, 2);
        }
        if (sequence % 3 == 0)
            tt_mesh_flush(node->mesh, node->index);
        if (sequence % 5 == 0)
            (void)tt_mesh_receive(node->mesh, node->index, 64, on_message, node);
    }
    // Every peer goes on receiving until its own count is full, so the queues empty.
    for (uint32_t guard = 0; guard < 1000000; guard++) {
        (void)tt_mesh_receive(node->mesh, node->index, 64, on_message, node);
        tt_mesh_wait(node->mesh, node->index, 1000000);
        if (node->done == MESSAGES * NODES) {
            tt_mesh_flush(node->mesh, node->index);
            tt_mesh_counters counters;
            tt_mesh_counters_read(node->mesh, node->index, &counters);
            if (counters.frames == MESSAGES * NODES && guard > 50)
                break;
        }
    }
    return NULL;
}

static void
everything_arrives_once_and_in_order(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    tt_mesh *mesh;
    assert_int_equal(tt_mesh_open(NODES, &mesh, &err), TT_OK);
    struct node nodes[NODES] = {0};
    tt_thread threads[NODES] = {0};
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i].mesh = mesh;
        nodes[i].index = i;
        assert_int_equal(tt_thread_start(&threads[i], "node", node_body, &nodes[i], &err), TT_OK);
    }
    for (uint32_t i = 0; i < NODES; i++)
        tt_thread_join(&threads[i]);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(nodes[i].bad, 0);
        assert_int_equal(nodes[i].done, MESSAGES * NODES);
    }
    tt_mesh_close(mesh);
}

static void
full_ring_queues_instead_of_blocking(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    tt_mesh *mesh;
    assert_int_equal(tt_mesh_open(2, &mesh, &err), TT_OK);
    static uint8_t bytes[1 << 20];
    tt_outbox outbox = tt_mesh_outbox(mesh, 0);
    for (uint32_t i = 0; i < 16; i++) { // 16 MiB into a ring of 4 MiB
        tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = i};
        tt_span span = {bytes, sizeof bytes};
        outbox.send(outbox.self, 1, &frame, &span, 1);
    }
    tt_mesh_counters counters;
    tt_mesh_counters_read(mesh, 0, &counters);
    assert_true(counters.full > 0);
    tt_mesh_close(mesh);
}

static void
frame_check_survives_any_bytes(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 5, TT_RNG_TEST, 0);
    uint8_t bytes[256];
    int accepted = 0;
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)tt_rng_below(&rng, sizeof bytes + 1);
        for (size_t j = 0; j < size; j++)
            bytes[j] = (uint8_t)tt_rng_u32(&rng);
        accepted += tt_frame_check(bytes, size) == TT_OK;
    }
    assert_int_equal(accepted, 0);
    tt_frame frame = {.magic = TT_FRAME_MAGIC,
                      .version = TT_FRAME_VERSION,
                      .kind = TT_FRAME_PULL,
                      .payload_bytes = 8};
    uint8_t good[72] = {0};
    memcpy(good, &frame, sizeof frame);
    assert_int_equal(tt_frame_check(good, 72), TT_OK);
    assert_int_equal(tt_frame_check(good, 71), TT_CORRUPT);
    frame.kind = TT_FRAME_KIND_COUNT;
    memcpy(good, &frame, sizeof frame);
    assert_int_equal(tt_frame_check(good, 72), TT_CORRUPT);
}

static void
every_failed_allocation_is_reported(void **state)
{
    TT_UNUSED(state);
    for (uint64_t n = 1;; n++) {
        tt_mesh *mesh;
        tt_error err = {0};
        tt_mem_fail_nth(n);
        tt_status status = tt_mesh_open(3, &mesh, &err);
        int failed = !tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        if (!failed) {
            assert_int_equal(status, TT_OK);
            tt_mesh_close(mesh);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(status, TT_NOMEM);
        assert_null(mesh);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives_once_and_in_order),
        cmocka_unit_test(full_ring_queues_instead_of_blocking),
        cmocka_unit_test(frame_check_survives_any_bytes),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
