// A sealed partition that is not sent: where both of its owners see the same memory, the new one
// takes all rows from where they lie.
//
// Memory that was never used costs ten times what is then copied into it. So the new owner makes
// room first, and then asks for one partition after the other, which the old one has served until
// then: as if it had heard later of the generation. By a drain, and under BSP, it is sealed when
// that says.
//
// What is sealed does not change, so a lent seal is a header with every piece, in one message. The
// old owner keeps it as it is until the new one says that it is complete. Only a death can end it
// sooner; then the guard says so, and what was read counts as not having come.
#include "server_core.h"
#include <string.h>

enum { OFFERS_MAX = 2, ROOM_BYTES_MAX = 64 << 20 };

// Of a row, in all arrays together.
static size_t
row_bytes_of(const tti_partition *partition)
{
    size_t bytes = 0, row_bytes;
    for (int i = 0; i < TTI_ROW_ARRAYS; i++)
        if (tti_partition_array(partition, i, &row_bytes) != NULL)
            bytes += row_bytes;
    return bytes;
}

// ---- the old owner -----------------------------------------------------------------------------

int
tti_server_offer(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t target)
{
    uint32_t p = tti_slot_index(server, slot);
    if (!tti_ps_view_offers(server->view, server->table, p) ||
        tt_outbox_pool(&server->outbox, target) == NULL)
        return 0;
    slot->pending_seal = generation;
    slot->ticks = 0;
    slot->departure = (tti_departure){0};
    tti_server_send_offer(server, slot);
    return 1;
}

void
tti_server_asked(tt_ps_server *server, tti_slot *slot, const tt_frame *fetch)
{
    if (server->table->consistency == TT_PS_BSP)
        return; // at its round
    if (fetch->detail < slot->partition->rows && slot->departure.offers++ < OFFERS_MAX)
        tti_server_send_offer(server, slot);
    else
        tti_server_seal(server, slot, slot->pending_seal, fetch->sender);
}

static int
is_lendable(const tt_ps_server *server, const tti_slot *slot)
{
    return tt_outbox_pool(&server->outbox, slot->peer) != NULL && slot->partition->rows > 0 &&
           tti_slot_index(server, slot) < TT_POOL_WORDS;
}

// An array that does not lie there is copied to where it can be seen.
static int
lend_array(tt_ps_server *server, tti_slot *slot, int array, uint64_t *offset)
{
    tt_pool *pool = server->outbox.pool;
    size_t row_bytes;
    const void *rows = tti_partition_array(slot->partition, array, &row_bytes);
    size_t bytes = slot->partition->rows * row_bytes;
    *offset = 0;
    if (rows == NULL || tt_pool_find(pool, rows, bytes, offset))
        return 1;
    void *copy = tt_pool_take(pool, bytes);
    slot->departure.loan.copies[array] = copy;
    if (copy == NULL)
        return 0;
    memcpy(copy, rows, bytes);
    return tt_pool_find(pool, copy, bytes, offset);
}

void
tti_server_lend_rows(tt_ps_server *server, tti_slot *slot)
{
    tti_rows_loan *loan = &slot->departure.loan;
    if (!is_lendable(server, slot))
        return;
    loan->rows.guard = tti_slot_index(server, slot);
    for (int i = 0; i < TTI_ROW_ARRAYS; i++)
        if (!lend_array(server, slot, i, &loan->rows.offset[i])) {
            tti_server_end_rows_loan(server, slot);
            return;
        }
    if (!slot->is_shared) {
        tt_pool_guard_begin(server->outbox.pool, loan->rows.guard);
        loan->has_guard = 1;
    }
    loan->rows.mark = tt_pool_guard(server->outbox.pool, loan->rows.guard);
    loan->is_out = 1;
}

void
tti_server_end_rows_loan(tt_ps_server *server, tti_slot *slot)
{
    tti_rows_loan *loan = &slot->departure.loan;
    tt_pool *pool = server->outbox.pool;
    if (loan->has_guard)
        tt_pool_guard_end(pool, tti_slot_index(server, slot));
    for (int i = 0; i < TTI_ROW_ARRAYS; i++)
        if (loan->copies[i] != NULL)
            tt_pool_give_back(pool, loan->copies[i]);
    *loan = (tti_rows_loan){0};
}

// ---- the new owner -----------------------------------------------------------------------------

void
tti_server_handle_offer(tt_ps_server *server, tti_slot *slot, const tt_frame *offer)
{
    if (slot->state != TTI_ARRIVING || slot->arrival.header_in || offer->sender != slot->peer ||
        tt_outbox_pool(&server->outbox, slot->peer) == NULL)
        return;
    slot->arrival.is_offered = 1;
    slot->arrival.offered = offer->detail;
}

int
tti_server_make_room(tt_ps_server *server, tti_slot *slot)
{
    tti_arrival *arrival = &slot->arrival;
    if (!arrival->is_offered || arrival->header_in)
        return 0;
    arrival->is_offered = 0;
    uint64_t rows = (uint64_t)arrival->offered + arrival->offered / 8; // more are made meanwhile
    // A few bytes may claim anything.
    rows = TT_MIN(rows, ROOM_BYTES_MAX / row_bytes_of(slot->partition));
    if (slot->partition->rows == 0 || server->table->kind == TT_PS_DENSE)
        tti_partition_touch(slot->partition, rows);
    tti_server_fetch_seal(server, slot, slot->partition->row_capacity);
    return 1;
}

static int
has_room(tt_pool *pool, tti_slot *slot, const tti_lent_rows *lent, uint64_t rows)
{
    uint8_t first;
    int is_dense = slot->partition->table->kind == TT_PS_DENSE;
    int is_empty =
        is_dense ? slot->partition->rows == rows : slot->partition->rows == 0 && rows > 0;
    // Room is not made for what cannot be there.
    return slot->arrival.installed == 0 && is_empty &&
           rows <= TT_POOL_BYTES / row_bytes_of(slot->partition) &&
           tt_pool_copy(pool, slot->peer, lent->guard, lent->mark, lent->offset[0], 1, 0, &first) &&
           tti_partition_reserve(slot->partition, rows) == TT_OK;
}

static int
copy_arrays(tt_pool *pool, tti_slot *slot, const tti_lent_rows *lent, uint64_t rows)
{
    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {
        size_t row_bytes;
        void *array = tti_partition_array(slot->partition, i, &row_bytes);
        if (array != NULL && !tt_pool_copy(pool, slot->peer, lent->guard, lent->mark,
                                           lent->offset[i], rows * row_bytes, 0, array))
            return 0;
    }
    return 1;
}

// Rows that are made later begin at zero.
static void
clear_arrays(tti_slot *slot, uint64_t rows)
{
    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {
        size_t row_bytes;
        void *array = tti_partition_array(slot->partition, i, &row_bytes);
        if (array != NULL)
            memset(array, 0, rows * row_bytes);
    }
}

int
tti_server_take_rows(tt_ps_server *server, tti_slot *slot, const uint8_t *lent, uint64_t rows)
{
    tt_pool *pool = tt_outbox_pool(&server->outbox, slot->peer);
    tti_lent_rows places;
    memcpy(&places, lent, sizeof places);
    if (pool == NULL || !has_room(pool, slot, &places, rows))
        return 0;
    tti_server_change(server, slot);
    int is_taken = copy_arrays(pool, slot, &places, rows);
    if (!is_taken)
        clear_arrays(slot, rows);
    tti_server_changed(server, slot);
    if (!is_taken)
        return 0;
    if (server->table->kind == TT_PS_SPARSE)
        tti_partition_adopt_rows(slot->partition, (uint32_t)rows);
    slot->arrival.installed = rows;
    tti_count(&server->counters.bytes_drained,
              rows * tti_partition_cell_floats(slot->partition) * sizeof(float));
    tti_count(&server->counters.rows_installed, rows);
    return 1;
}
