// Whether a payload is what its frame says: looked at once, when it comes, so that everything
// behind it may take the frame's word. A peer of the job can be out of its mind, too.
#include "key_lists.h"
#include "lend.h"
#include "push_batches.h"
#include "server_core.h"
#include <string.h>

static uint32_t
rows_of(const tt_ps_table *table, const tt_frame *frame)
{
    if ((frame->flags & TT_FRAME_WHOLE) == 0)
        return frame->count;
    return (uint32_t)(tt_ps_partition_first(table, frame->partition + 1u) -
                      tt_ps_partition_first(table, frame->partition));
}

static size_t
cell_bytes(const tt_ps_table *table)
{
    return (size_t)table->width * (1 + tt_ps_state_count(table)) * sizeof(float);
}

// Of flags[rows], how many are of rows that exist, and that have all bits of `wanted`.
static size_t
rows_with(const uint8_t *flags, uint32_t rows, int wanted)
{
    size_t count = 0;
    for (uint32_t i = 0; i < rows; i++)
        count += (flags[i] & wanted) == wanted;
    return count;
}

// From `at` on: flags[rows], then the cells of those rows that have all bits of `wanted`.
static int
ends_with_cells(const tt_ps_table *table,
                const tt_frame *frame,
                const uint8_t *payload,
                size_t at,
                uint32_t rows,
                int wanted)
{
    size_t flag_bytes = tti_padded(rows);
    if (frame->payload_bytes < at + flag_bytes)
        return 0;
    return frame->payload_bytes ==
           at + flag_bytes + rows_with(payload + at, rows, wanted) * cell_bytes(table);
}

// The answer is a message, too.
static int
can_be_answered(uint32_t rows, size_t row_bytes)
{
    return rows <= TT_FRAME_PAYLOAD_MAX / row_bytes;
}

// What stands in the payload before values: keys, or the name of a list and its keys if it says so;
// SIZE_MAX: nonsense.
static size_t
bytes_of_keys(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload)
{
    tti_list_name name;
    if ((frame->flags & TT_FRAME_WHOLE) != 0)
        return (frame->flags & TT_FRAME_NAMED) == 0 ? 0 : SIZE_MAX;
    if ((frame->flags & TT_FRAME_NAMED) == 0)
        return frame->count * tti_key_bytes(table);
    if (table->kind != TT_PS_SPARSE || frame->payload_bytes < sizeof name)
        return SIZE_MAX;
    memcpy(&name, payload, sizeof name);
    return sizeof name + (name.has_keys ? frame->count * sizeof(uint64_t) : 0);
}

static int
is_sound_batch(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload)
{
    tti_push_batch pushed;
    if (table->consistency == TT_PS_BSP || (frame->flags & TT_FRAME_PROBE) != 0 ||
        frame->payload_bytes < sizeof pushed)
        return 0;
    memcpy(&pushed, payload + frame->payload_bytes - sizeof pushed, sizeof pushed);
    return pushed.batch.rows > 0;
}

// Without the name of its batch.
static int
is_sound_push(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload)
{
    uint32_t rows = rows_of(table, frame);
    size_t bytes = bytes_of_keys(table, frame, payload);
    if (table->consistency == TT_PS_BSP && frame->detail >= table->slice_count)
        return 0;
    if ((frame->flags & TT_FRAME_LENT) != 0)
        return frame->payload_bytes == sizeof(tti_place);
    if (bytes > frame->payload_bytes)
        return 0;
    size_t floats = (frame->flags & TT_FRAME_PROBE) != 0 ? 0 : (size_t)rows * table->width;
    bytes += tti_padded(floats *
                        ((frame->flags & TT_FRAME_BF16) != 0 ? sizeof(tt_bf16) : sizeof(float)));
    if ((frame->flags & TT_FRAME_CARRY) == 0)
        return frame->payload_bytes == bytes;
    return ends_with_cells(table, frame, payload, bytes, rows, TTI_ROW_EXISTS | TTI_ROW_LICENSED);
}

int
tti_server_frame_is_sound(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload)
{
    size_t key_bytes = frame->count * tti_key_bytes(table);
    int whole = (frame->flags & TT_FRAME_WHOLE) != 0;
    tt_frame bare = *frame;
    if (whole && table->kind == TT_PS_SPARSE)
        return 0; // its rows are in nobody's order
    switch (frame->kind) {
    case TT_FRAME_PULL:
        return frame->payload_bytes == bytes_of_keys(table, frame, payload) &&
               can_be_answered(rows_of(table, frame), table->width * sizeof(float));
    case TT_FRAME_PUSH:
        if ((frame->flags & TT_FRAME_BATCH) == 0)
            return is_sound_push(table, frame, payload);
        bare.payload_bytes -= (uint32_t)sizeof(tti_push_batch);
        return is_sound_batch(table, frame, payload) && is_sound_push(table, &bare, payload);
    case TT_FRAME_FETCH:
        return frame->payload_bytes == key_bytes &&
               can_be_answered(frame->count, cell_bytes(table) + sizeof(uint64_t) + 4);
    case TT_FRAME_PIECE:
        return ends_with_cells(table, frame, payload, key_bytes, frame->count, TTI_ROW_EXISTS);
    default: // has no rows, or is looked at where it is read
        return 1;
    }
}

int
tti_reply_is_sound(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload)
{
    size_t floats = (size_t)frame->count * table->width;
    if ((frame->flags & TT_FRAME_LOST) != 0)
        return 1;
    if ((frame->flags & TT_FRAME_LENT) != 0)
        return (frame->flags & TT_FRAME_SEALED) == 0 && frame->payload_bytes == sizeof(tti_place);
    if ((frame->flags & TT_FRAME_SEALED) == 0)
        return frame->payload_bytes ==
               floats * ((frame->flags & TT_FRAME_BF16) != 0 ? sizeof(tt_bf16) : sizeof(float));
    // values[count][width], flags[count], state of the rows that exist and may be carried
    size_t values = floats * sizeof(float), flags = tti_padded(frame->count);
    if ((frame->flags & TT_FRAME_BF16) != 0 || frame->payload_bytes < values + flags)
        return 0;
    size_t carried = rows_with(payload + values, frame->count, TTI_ROW_EXISTS | TTI_ROW_LICENSED);
    return frame->payload_bytes ==
           values + flags + carried * (cell_bytes(table) - table->width * sizeof(float));
}
