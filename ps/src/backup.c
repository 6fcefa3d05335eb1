// Replicas, the other side: a copy of another node's partition that applies what the owner applies,
// and becomes the partition when the owner dies or hands it over. See copies.c.
#include "server_core.h"
#include "table_state.h"
#include <string.h>

int
tti_is_target(const tt_ps_server *server, const tti_slot *slot)
{
    const tt_ps_view *view = server->view;
    uint32_t p = tti_slot_index(server, slot);
    return view->owner[p] != server->node &&
           (view->backup[p] == server->node || view->spare[p] == server->node);
}

// ---- coming and going --------------------------------------------------------------------------

static void
open_copy(tt_ps_server *server, tti_slot *slot)
{
    tti_slot_clear(server, slot);
    tt_status status = tti_slot_open(server, slot);
    TT_ASSERT(status == TT_OK); // the plan was made for memory that is there
    slot->state = TTI_BACKUP;
}

void
tti_backup_adopt(tt_ps_server *server, tti_slot *slot)
{
    uint32_t p = tti_slot_index(server, slot);
    if (!tti_is_target(server, slot)) {
        if (slot->state != TTI_BACKUP)
            return;
        tti_slot_clear(server, slot);
        return;
    }
    if (slot->state == TTI_BACKUP)
        slot->moved_at = server->view->moved_at[p];
    if (slot->state != TTI_ABSENT && slot->state != TTI_RETIRED)
        return; // sealed: it stays when the new owner has everything
    open_copy(server, slot);
    slot->moved_at = server->view->moved_at[p];
}

static void
begin_rounds(tt_ps_server *server, tti_slot *slot)
{
    if (server->table->consistency != TT_PS_BSP || slot->collecting.slice != NULL)
        return;
    tt_status status = tti_round_init(&slot->collecting, server->table->slice_count);
    TT_ASSERT(status == TT_OK); // as large as what it had
}

void
tti_backup_stay(tt_ps_server *server, tti_slot *slot)
{
    tti_server_end_rows_loan(server, slot);
    tt_mem_free(slot->departure.licensed);
    slot->departure = (tti_departure){0};
    tti_copies_clear(&slot->copies);
    begin_rounds(server, slot);
    slot->state = TTI_BACKUP;
    slot->copies.has_copy = 1;
}

static void
serve(tt_ps_server *server, tti_slot *slot)
{
    slot->state = TTI_SERVING;
    if (!slot->is_shared)
        tti_server_share(server, slot);
    slot->copies.takes_over = 0;
    slot->news = 1;
    if (tti_slot_index(server, slot) == 0)
        tt_store_relaxed(&server->counters.iterations, slot->partition->iterations);
}

// Requests that waited here are for another now.
static void
turn_away(tt_ps_server *server, const tti_slot *slot, tti_held *requests)
{
    for (tti_held *held = requests; held != NULL; held = held->next)
        tti_server_answer_moved(server, slot, &held->frame);
    tti_release_list(&requests);
}

// Whoever has a part of it that is not all that was acknowledged forgets it.
static void
forget(tt_ps_server *server, tti_slot *slot, uint32_t generation)
{
    tti_held *answers = tti_copies_take_answers(slot), *held = slot->held, *parked = slot->parked;
    // Sealed or served, it is all: a copy, if one is wanted here.
    int stays =
        tti_is_target(server, slot) && slot->state != TTI_ARRIVING && slot->partition != NULL;
    slot->held = slot->parked = NULL;
    slot->held_count = 0;
    slot->pending_seal = 0;
    if (stays) {
        tti_backup_stay(server, slot);
    } else {
        tti_slot_clear(server, slot);
        slot->state = TTI_RETIRED;
    }
    slot->moved_at = generation;
    slot->peer = server->view->owner[tti_slot_index(server, slot)];
    tti_copies_turn_away(server, slot, answers);
    turn_away(server, slot, held);
    turn_away(server, slot, parked);
}

// The copy stays one, if it is still wanted.
static void
step_back(tt_ps_server *server, tti_slot *slot, uint32_t generation)
{
    tti_held *held = slot->held;
    slot->held = NULL;
    slot->held_count = 0;
    slot->moved_at = generation;
    slot->copies.takes_over = 0;
    turn_away(server, slot, held);
}

void
tti_backup_forget_the_past(tt_ps_server *server, tti_slot *slot, uint32_t generation)
{
    const tt_ps_view *view = server->view;
    uint32_t p = tti_slot_index(server, slot);
    if (slot->state == TTI_BACKUP && view->owner[p] != server->node)
        step_back(server, slot, generation);
    else if (slot->state == TTI_SEALED || slot->state == TTI_ARRIVING ||
             (slot->state == TTI_SERVING && view->previous[p] != server->node))
        forget(server, slot, generation);
}

void
tti_backup_promote(tt_ps_server *server, tti_slot *slot, uint32_t generation)
{
    if (server->view->owner[tti_slot_index(server, slot)] != server->node) {
        if (slot->state == TTI_BACKUP)
            step_back(server, slot, generation);
        else
            forget(server, slot, generation);
        return;
    }
    int was_sealed = slot->state == TTI_SEALED, was_backup = slot->state == TTI_BACKUP;
    TT_ASSERT(was_sealed || slot->state == TTI_SERVING || (was_backup && slot->copies.has_copy));
    if (was_sealed) {
        tti_held *answers = tti_copies_take_answers(slot);
        tti_backup_stay(server, slot);
        tti_copies_give_answers(slot, answers);
    }
    slot->moved_at = generation;
    slot->pending_seal = 0;
    serve(server, slot);
    if (server->hooks.retired != NULL)
        server->hooks.retired(server->hooks.self, tti_slot_index(server, slot), generation);
}

void
tti_backup_await(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t source)
{
    if (slot->state != TTI_BACKUP)
        open_copy(server, slot);
    slot->moved_at = generation;
    slot->peer = source;
    slot->arrival.from_round = server->view->effective_round;
    slot->copies.takes_over = 1;
}

void
tti_backup_request(tt_ps_server *server,
                   tti_slot *slot,
                   const tt_frame *frame,
                   const uint8_t *payload)
{
    // A round before the move is collected at the old owner.
    if (!slot->copies.takes_over || frame->clock < slot->arrival.from_round)
        tti_server_answer_moved(server, slot, frame);
    else
        tti_server_hold(server, slot, frame, payload, 0);
}

// ---- what the owner sends ----------------------------------------------------------------------

static void
acknowledge(tt_ps_server *server, const tti_slot *slot, const tt_frame *frame, uint32_t flags)
{
    tt_frame out = {.kind = TT_FRAME_COPY_ACK,
                    .flags = (uint16_t)flags,
                    .attempt = server->attempt,
                    .generation = server->view->generation,
                    .partition = frame->partition,
                    .sequence = slot->copies.number,
                    .count =
                        (uint32_t)(slot->copies.has_copy && slot->copies.reign == frame->extra),
                    .extra = frame->extra};
    server->outbox.send(server->outbox.self, frame->sender, &out, NULL, 0);
}

// Behind how many there are; NULL: none.
static const uint8_t *
borrow_batches(const tt_ps_server *server, tt_archive *in)
{
    uint32_t count = 0;
    TT_ARCHIVE(in, count);
    if (count != 0 && count != server->node_count)
        tt_archive_damaged(in);
    return count > 0 ? tt_archive_borrow(in, count * sizeof(tt_ps_batch)) : NULL;
}

// errors TT_CORRUPT, TT_NOMEM: the slot is as it was
static tt_status
read_copy(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    uint32_t slices = server->table->slice_count;
    tti_partition *partition;
    tti_round round = {0};
    tt_archive in;
    tt_archive_read(&in, payload, frame->payload_bytes);
    TT_TRY(tti_partition_alloc(server->table, frame->partition, server->outbox.pool, &partition));
    uint32_t applied = 0;
    tt_status status = tti_partition_read(partition, &in, &applied);
    const uint8_t *records = tt_archive_borrow(&in, tti_server_records_bytes(server));
    const uint8_t *batches = borrow_batches(server, &in);
    if (status == TT_OK && server->table->consistency == TT_PS_BSP)
        status = tti_round_init(&round, slices);
    if (status == TT_OK)
        status = round.slice != NULL ? tti_round_load(&round, partition, slices, &in) : in.status;
    if (status != TT_OK) {
        tti_round_fini(&round, slices);
        tti_partition_free(partition);
        return status;
    }
    tti_server_drop_partition(server, slot);
    tti_round_fini(&slot->collecting, slices);
    tti_past_fini(&slot->past);
    slot->partition = partition;
    slot->collecting = round;
    slot->round = applied;
    for (uint32_t n = 0; n < server->node_count; n++)
        slot->sequence[n] = tti_sequence_base(slot->restored_at);
    memset(slot->clock, 0, server->node_count * sizeof *slot->clock);
    tti_server_install_records(server, slot, records);
    tt_mem_free(slot->batches);
    slot->batches = NULL;
    if (batches != NULL)
        tti_server_install_batches(server, slot, batches);
    return TT_OK;
}

// The one before is heard until the new one has spoken: under BSP it still ends a round that others
// wait for, and that nobody is told of before it is here.
static int
is_from_owner(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    const tt_ps_view *view = server->view;
    const tti_copies *copies = &slot->copies;
    uint32_t p = tti_slot_index(server, slot);
    if (frame->sender == view->previous[p] && frame->extra < view->moved_at[p] &&
        (!copies->has_copy || copies->reign <= frame->extra) &&
        (copies->takes_over || tti_is_target(server, slot)))
        return 1;
    return frame->sender == view->owner[p] && frame->extra == view->moved_at[p] &&
           tti_is_target(server, slot);
}

static void
count_drained(tt_ps_server *server, const tti_slot *slot)
{
    uint64_t rows = slot->partition->rows;
    size_t row_bytes = tti_partition_cell_floats(slot->partition) * sizeof(float);
    tti_count(&server->counters.bytes_drained, rows * row_bytes);
    tti_count(&server->counters.rows_installed, rows);
}

// It is the owner's, from now on.
static void
take_over(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    if (slot->state == TTI_SERVING && frame->sender == slot->peer &&
        frame->extra == slot->moved_at) {
        tti_server_say_complete(server, slot); // ours was lost
        return;
    }
    if (slot->state != TTI_BACKUP || !slot->copies.takes_over || frame->extra != slot->moved_at ||
        read_copy(server, slot, frame, payload) != TT_OK)
        return;
    slot->copies.number = frame->sequence;
    count_drained(server, slot);
    serve(server, slot);
    tti_server_say_complete(server, slot);
    tti_copies_aim(server, slot);
}

void
tti_backup_handle_copy(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    tti_copies *copies = &slot->copies;
    if ((frame->flags & TT_FRAME_LAST) != 0) {
        take_over(server, slot, frame, payload);
        return;
    }
    if (!is_from_owner(server, slot, frame))
        return;
    if (slot->state == TTI_SEALED && frame->extra == slot->moved_at)
        tti_server_handle_complete(server, slot, frame); // which says so, too
    if (slot->state != TTI_BACKUP)
        return;
    int is_new =
        !copies->has_copy || copies->reign != frame->extra || frame->sequence > copies->number;
    if (is_new && read_copy(server, slot, frame, payload) != TT_OK)
        return; // without memory for it now: it is sent again
    if (is_new) {
        copies->number = frame->sequence;
        copies->reign = frame->extra;
        copies->has_copy = 1;
        tti_server_count_bytes(server);
    }
    acknowledge(server, slot, frame, 0);
}

// The push as it came to the owner; NULL: nonsense.
static const tt_frame *
push_inside(const tt_ps_server *server, const tt_frame *frame, const uint8_t *payload)
{
    const tt_frame *push = (const tt_frame *)(const void *)payload;
    if (frame->payload_bytes < sizeof *push || push->kind != TT_FRAME_PUSH ||
        push->partition != frame->partition || push->sender >= server->node_count ||
        push->payload_bytes != frame->payload_bytes - sizeof *push ||
        (push->flags & (TT_FRAME_PROBE | TT_FRAME_CARRY | TT_FRAME_LENT | TT_FRAME_NAMED)) != 0 ||
        !tti_server_frame_is_sound(server->table, push, payload + sizeof *push))
        return NULL;
    return push;
}

void
tti_backup_handle_push(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    tti_copies *copies = &slot->copies;
    const tt_frame *push = push_inside(server, frame, payload);
    if (slot->state != TTI_BACKUP || push == NULL || !is_from_owner(server, slot, frame))
        return;
    tt_frame bare = *push;
    int is_next =
        copies->has_copy && copies->reign == frame->extra && frame->sequence == copies->number + 1;
    if (is_next && tti_server_take_batch(server, &bare, payload + sizeof *push) &&
        tti_server_apply_copy(server, slot, &bare, payload + sizeof *push))
        copies->number++;
    acknowledge(server, slot, frame, frame->sequence > copies->number ? TT_FRAME_LOST : 0);
}
