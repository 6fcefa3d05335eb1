// Goal: losses come out as they went in, in order, whatever the sizes of the batches; what finds no
// room is left out whole; what is skipped is gone and no more. Method: a worker and an agent at a
// time on a small ring that goes round hundreds of times, against the numbers that went in.
#include "loss_ring.h"
#include "tt/core.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MANY_NODES = 1 << 16, BATCHES = 20000, LARGEST = 999 };

// Of a batch: nobody else's are the same.
static uint32_t
rows_of(uint32_t batch)
{
    return 1 + batch * 7919 % LARGEST;
}

static float
loss_of(uint32_t batch, uint32_t row)
{
    return (float)((batch * 31 + row) % 16777213);
}

static void
fill(uint32_t batch, float *losses)
{
    for (uint32_t i = 0; i < rows_of(batch); i++)
        losses[i] = loss_of(batch, i);
}

static void
all_or_none_find_room(void **state)
{
    TT_UNUSED(state);
    tti_loss_ring ring;
    float losses[LARGEST], out[LARGEST];
    uint32_t put = 0, held = 0;
    assert_int_equal(tti_loss_ring_open(&ring, MANY_NODES), TT_OK);
    for (fill(put, losses); tti_loss_ring_put(&ring, losses, rows_of(put)); fill(put, losses))
        held += rows_of(put++);
    assert_true(put > 2 && held <= ring.capacity && held + rows_of(put) > ring.capacity);
    tti_loss_ring_skip(&ring, rows_of(0));
    for (uint32_t batch = 1; batch < put; batch++) {
        tti_loss_ring_take(&ring, out, rows_of(batch));
        for (uint32_t i = 0; i < rows_of(batch); i++)
            assert_true(out[i] == loss_of(batch, i));
    }
    assert_int_equal(ring.written, ring.read);
    assert_int_equal(ring.written, held);
    tti_loss_ring_forget(&ring);
    assert_int_equal(tti_loss_ring_put(&ring, losses, 1), 1);
    tti_loss_ring_take(&ring, out, 1);
    assert_true(out[0] == losses[0]);
    tti_loss_ring_close(&ring);
}

typedef struct stage {
    tti_loss_ring ring;
    uint32_t ready; // batches put; release
} stage;

static void *
work(void *self)
{
    stage *s = self;
    float losses[LARGEST];
    for (uint32_t batch = 0; batch < BATCHES;) {
        fill(batch, losses);
        if (tti_loss_ring_put(&s->ring, losses, rows_of(batch)))
            tt_store_release(&s->ready, ++batch); // acquired in worker_and_agent_at_a_time
    }
    return NULL;
}

static void
worker_and_agent_at_a_time(void **state)
{
    TT_UNUSED(state);
    stage s = {.ready = 0};
    tt_thread worker;
    float out[LARGEST];
    uint32_t wrong = 0;
    assert_int_equal(tti_loss_ring_open(&s.ring, MANY_NODES), TT_OK);
    assert_int_equal(tt_thread_start(&worker, "tt-test", work, &s, NULL), TT_OK);
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        while (tt_load_acquire(&s.ready) <= batch) // released in work
            continue;
        if (batch % 5 == 0) {
            tti_loss_ring_skip(&s.ring, rows_of(batch));
            continue;
        }
        tti_loss_ring_take(&s.ring, out, rows_of(batch));
        for (uint32_t i = 0; i < rows_of(batch); i++)
            wrong += out[i] != loss_of(batch, i);
    }
    tt_thread_join(&worker);
    assert_int_equal(wrong, 0);
    assert_true(s.ring.written > 100 * (uint64_t)s.ring.capacity);
    tti_loss_ring_close(&s.ring);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_or_none_find_room),
                                       cmocka_unit_test(worker_and_agent_at_a_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
