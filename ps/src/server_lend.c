// A server and memory that it shares with workers of its host: a dense partition's parameters lie
// there, for workers to read; gradients that lie there are applied from where they are.
#include "lend.h"
#include "server_core.h"
#include <string.h>

// ---- parameters --------------------------------------------------------------------------------

static size_t
value_bytes(const tti_partition *partition)
{
    return (size_t)partition->rows * partition->width * sizeof(float);
}

// Values that found no room there are sent.
void
tti_server_share(tt_ps_server *server, tti_slot *slot)
{
    uint32_t index = tti_slot_index(server, slot);
    const tti_partition *partition = slot->partition;
    uint64_t offset;
    if (server->outbox.pool == NULL || server->table->kind != TT_PS_DENSE ||
        index >= TT_POOL_WORDS ||
        !tt_pool_find(server->outbox.pool, partition->cells.w, value_bytes(partition), &offset))
        return;
    slot->is_shared = 1;
    tt_pool_guard_begin(server->outbox.pool, index);
}

void
tti_server_unshare(tt_ps_server *server, tti_slot *slot)
{
    if (!slot->is_shared)
        return;
    tt_pool_guard_end(server->outbox.pool, tti_slot_index(server, slot));
    slot->is_shared = 0;
}

void
tti_server_change(tt_ps_server *server, const tti_slot *slot)
{
    if (slot->is_shared)
        tt_pool_guard_change(server->outbox.pool, tti_slot_index(server, slot));
}

void
tti_server_changed(tt_ps_server *server, const tti_slot *slot)
{
    if (slot->is_shared)
        tt_pool_guard_changed(server->outbox.pool, tti_slot_index(server, slot));
}

int
tti_server_place(const tt_ps_server *server,
                 const tti_slot *slot,
                 const tt_frame *request,
                 tti_place *out)
{
    tt_pool *pool = server->outbox.pool;
    const tti_partition *partition = slot->partition;
    const uint32_t as_stored = TT_FRAME_LENT | TT_FRAME_WHOLE,
                   otherwise = TT_FRAME_BF16 | TT_FRAME_READONLY;
    uint32_t index = tti_slot_index(server, slot);
    if (!slot->is_shared || (request->flags & (as_stored | otherwise)) != as_stored)
        return 0;
    *out = (tti_place){
        .size = value_bytes(partition), .mark = tt_pool_guard(pool, index), .index = index};
    return tt_pool_find(pool, partition->cells.w, out->size, &out->offset);
}

// ---- gradients ---------------------------------------------------------------------------------

static uint64_t
gradient_bytes(const tt_ps_table *table, uint32_t partition)
{
    uint64_t rows =
        tt_ps_partition_first(table, partition + 1) - tt_ps_partition_first(table, partition);
    return rows * table->width * sizeof(float);
}

void
tti_server_receive_lent(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload)
{
    tt_pool *pool = tt_outbox_pool(&server->outbox, frame->sender);
    tti_place place;
    if (pool == NULL || frame->kind != TT_FRAME_PUSH || frame->payload_bytes != sizeof place ||
        server->table->kind != TT_PS_DENSE || (frame->flags & TT_FRAME_WHOLE) == 0)
        return; // nothing of ours sends it
    memcpy(&place, payload, sizeof place);
    const uint8_t *gradients = tt_pool_see(pool, frame->sender, place.offset, place.size);
    if (gradients == NULL || place.size != gradient_bytes(server->table, frame->partition) ||
        !tt_pool_borrow(pool, frame->sender, place.index, place.mark))
        return; // recalled: it never was
    // What is answered was applied, or refused; what waits for its time is kept as a copy. So
    // whoever has the answer knows that nobody reads any more.
    tt_frame whole = *frame;
    whole.flags &= (uint16_t)~TT_FRAME_LENT;
    whole.payload_bytes = (uint32_t)place.size;
    tti_server_handle(server, &whole, gradients);
    tt_pool_return(pool, frame->sender, place.index, place.mark);
}
