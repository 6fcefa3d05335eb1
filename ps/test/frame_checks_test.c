// Goal: a server and a client take no frame whose payload is not what the frame says. Method:
// frames in order of every kind, dense and sparse, and of each what is shorter, longer or says
// something else, behind which the address sanitizer watches.
#include "server_core.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 3, WIDTH = 3 };

static tt_ps_table
table_of(tt_ps_table_kind kind)
{
    return (tt_ps_table){.kind = kind,
                         .rows = 23,
                         .width = WIDTH,
                         .partition_count = 4,
                         .consistency = TT_PS_BSP,
                         .slice_count = 2,
                         .optimizer = TT_PS_ADAGRAD};
}

// With a payload of zeros but for the flags, from byte `flags_at` on.
static int
is_sound(const tt_ps_table *table, tt_frame frame, size_t size, size_t flags_at, uint8_t flags)
{
    uint8_t *payload = tt_mem_zalloc(size, 1);
    assert_non_null(payload);
    if (flags != 0)
        memset(payload + flags_at, flags, COUNT);
    frame.payload_bytes = (uint32_t)size;
    int sound = frame.kind == TT_FRAME_PULL_REPLY
                    ? tti_reply_is_sound(table, &frame, payload)
                    : tti_server_frame_is_sound(table, &frame, payload);
    tt_mem_free(payload);
    return sound;
}

static void
only_this_size(
    const tt_ps_table *table, tt_frame frame, size_t size, size_t flags_at, uint8_t flags)
{
    assert_true(is_sound(table, frame, size, flags_at, flags));
    assert_false(is_sound(table, frame, size + 4, flags_at, flags));
    if (size > 0)
        assert_false(is_sound(table, frame, size - 1, flags_at, 0));
    frame.count = UINT32_MAX;
    if ((frame.flags & TT_FRAME_WHOLE) == 0)
        assert_false(is_sound(table, frame, size, flags_at, flags));
}

static void
frames_with_keys(const tt_ps_table *table)
{
    const size_t keys = COUNT * tti_key_bytes(table), values = (size_t)COUNT * WIDTH * 4;
    const size_t cells = 2 * values, flags = 4;
    const uint8_t exists = TTI_ROW_EXISTS, carried = TTI_ROW_EXISTS | TTI_ROW_LICENSED;
    tt_frame frame = {.kind = TT_FRAME_PULL, .count = COUNT};
    only_this_size(table, frame, keys, 0, 0);
    frame.kind = TT_FRAME_FETCH;
    only_this_size(table, frame, keys, 0, 0);
    frame.kind = TT_FRAME_PIECE;
    only_this_size(table, frame, keys + flags + cells, keys, exists);
    only_this_size(table, frame, keys + flags, keys, 0);
    frame.kind = TT_FRAME_PUSH;
    only_this_size(table, frame, keys + values, 0, 0);
    frame.flags = TT_FRAME_CARRY;
    only_this_size(table, frame, keys + values + flags + cells, keys + values, carried);
    only_this_size(table, frame, keys + values + flags, keys + values, exists);
    frame.flags = TT_FRAME_BF16;
    only_this_size(table, frame, keys + 20, 0, 0); // nine halves, padded
    frame.flags = TT_FRAME_PROBE;
    frame.count = 0;
    only_this_size(table, frame, 0, 0, 0);
    frame.detail = table->slice_count;
    assert_false(is_sound(table, frame, 0, 0, 0));
}

static void
frames_are_as_long_as_they_say(void **state)
{
    TT_UNUSED(state);
    const tt_ps_table dense = table_of(TT_PS_DENSE), sparse = table_of(TT_PS_SPARSE);
    frames_with_keys(&dense);
    frames_with_keys(&sparse);
    tt_frame whole = {.kind = TT_FRAME_PUSH, .flags = TT_FRAME_WHOLE, .partition = 1};
    size_t rows = tt_ps_partition_first(&dense, 2) - tt_ps_partition_first(&dense, 1);
    only_this_size(&dense, whole, rows * WIDTH * 4, 0, 0);
    assert_false(is_sound(&sparse, whole, rows * WIDTH * 4, 0, 0));
}

static void
replies_are_as_long_as_they_say(void **state)
{
    TT_UNUSED(state);
    const tt_ps_table table = table_of(TT_PS_DENSE);
    const size_t values = (size_t)COUNT * WIDTH * 4;
    tt_frame frame = {.kind = TT_FRAME_PULL_REPLY, .count = COUNT};
    only_this_size(&table, frame, values, 0, 0);
    frame.flags = TT_FRAME_BF16;
    only_this_size(&table, frame, values / 2, 0, 0);
    frame.flags = TT_FRAME_SEALED;
    only_this_size(&table, frame, values + 4, values, TTI_ROW_EXISTS);
    only_this_size(&table, frame, values + 4 + values, values, TTI_ROW_EXISTS | TTI_ROW_LICENSED);
    frame.flags = TT_FRAME_SEALED | TT_FRAME_BF16; // a seal is never rounded
    assert_false(is_sound(&table, frame, values + 4, values, TTI_ROW_EXISTS));
}

// What is asked for is sent as one message.
static void
what_no_answer_can_hold_is_not_asked_for(void **state)
{
    TT_UNUSED(state);
    tt_ps_table table = table_of(TT_PS_DENSE);
    table.rows = 1u << 30;
    table.partition_count = 1;
    assert_false(
        is_sound(&table, (tt_frame){.kind = TT_FRAME_PULL, .flags = TT_FRAME_WHOLE}, 0, 0, 0));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_as_long_as_they_say),
        cmocka_unit_test(replies_are_as_long_as_they_say),
        cmocka_unit_test(what_no_answer_can_hold_is_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
