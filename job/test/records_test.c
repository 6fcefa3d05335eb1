// Goal: records come out as they went in, what finds no room is counted, and whoever finds the ring
// of a process that died reads what nobody has heard, and nothing else. Method: rings that go round
// several times, against the numbers that went in.
#include "records.h"
#include "tt/core.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 5 };

static void
put(tti_records *records, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tti_records_put(records, &(tti_record){.sequence = first + i, .examples = 23});
}

static void
records_come_in_order_and_none_is_overwritten(void **state)
{
    TT_UNUSED(state);
    tti_records records;
    tti_record out[100];
    uint64_t next = 0, read = 0;
    assert_int_equal(tti_records_open(&records, NODES), TT_OK);
    uint32_t room = tti_records_room(&records);
    for (int i = 0; i < 1000; i++) {
        put(&records, next, 61);
        next += 61;
        while (read < next) {
            uint32_t count = tti_records_take(&records, out, 100);
            for (uint32_t k = 0; k < count; k++)
                assert_int_equal(out[k].sequence, read++);
        }
    }
    put(&records, next, room + 7);
    assert_int_equal(tti_records_room(&records), 0);
    assert_int_equal(records.ring->lost, 7);
    assert_int_equal(tti_records_take(&records, out, 1), 1);
    assert_int_equal(out[0].sequence, next);
    tti_records_close(&records);
}

static void
what_a_process_left_is_read_from_where_it_was_heard(void **state)
{
    TT_UNUSED(state);
    tti_records records;
    tti_record out[64];
    void *memory = tt_mem_zalloc_vector(1, tti_records_bytes(NODES));
    tti_records_place(&records, memory, NODES);
    const tti_record_ring *ring = memory;
    uint32_t capacity = tti_records_room(&records);
    assert_false(tti_records_left(ring, NODES, 0, out));
    for (uint64_t first = 0; first < 5 * (uint64_t)capacity; first += 64) {
        put(&records, first, 64);
        for (uint64_t n = first + 40; n < first + 64; n++) { // 40 of them were heard
            assert_true(tti_records_left(ring, NODES, n, out));
            assert_int_equal(out[0].sequence, n);
            assert_int_equal(out[0].examples, 23);
        }
        assert_false(tti_records_left(ring, NODES, first + 64, out));
        assert_int_equal(tti_records_take(&records, out, 64), 64); // reported, perhaps not heard
    }
    uint64_t end = ring->written;
    assert_true(tti_records_left(ring, NODES, end - capacity, out));
    assert_false(tti_records_left(ring, NODES, end - capacity - 1, out)); // another is in its place
    assert_false(tti_records_left(ring, 4000, end - 1, out));             // a ring of another job
    tti_records_forget(&records);
    assert_false(tti_records_left(ring, NODES, end - 1, out));
    tti_records_close(&records); // the memory is the caller's
    tt_mem_free(memory);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_in_order_and_none_is_overwritten),
        cmocka_unit_test(what_a_process_left_is_read_from_where_it_was_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
