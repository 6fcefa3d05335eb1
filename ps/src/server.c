// The server core: life cycle, adoption of views, dispatch.
#include "server_core.h"
#include <string.h>

// ---- scratch and small helpers ----------------------------------------------------------------

// Of nothing, too, there is an array: no array means all rows.
static void *
grown(void **memory, size_t *capacity, size_t count, size_t size)
{
    if (*memory == NULL || count > *capacity) {
        tt_mem_free(*memory);
        *capacity = 2 * count;
        *memory = tt_mem_zalloc_vector(*capacity, size);
        TT_ASSERT(*memory != NULL); // as large as one message, which was just received
    }
    return *memory;
}

uint32_t *
tti_server_rows(tt_ps_server *server, size_t count)
{
    return grown((void **)&server->rows, &server->rows_capacity, count, sizeof *server->rows);
}

float *
tti_server_values(tt_ps_server *server, size_t count)
{
    return grown((void **)&server->values, &server->values_capacity, count, sizeof *server->values);
}

uint8_t *
tti_server_bytes(tt_ps_server *server, size_t count)
{
    return grown((void **)&server->bytes, &server->bytes_capacity, count, 1);
}

size_t
tti_key_bytes(const tt_ps_table *table)
{
    return table->kind == TT_PS_DENSE ? sizeof(uint32_t) : sizeof(uint64_t);
}

uint64_t
tti_key_at(const tt_ps_table *table, const uint8_t *keys, uint32_t index)
{
    if (table->kind == TT_PS_DENSE)
        return ((const uint32_t *)(const void *)keys)[index];
    uint64_t
        key; // payloads are 16-byte aligned, yet gradients of odd width may precede keys elsewhere
    memcpy(&key, keys + index * sizeof key, sizeof key);
    return key;
}

uint64_t
tti_row_key(const tti_partition *partition, uint32_t row)
{
    return partition->table->kind == TT_PS_DENSE ? row : partition->row_key[row];
}

tti_held *
tti_hold(const tt_frame *frame, const uint8_t *payload)
{
    tti_held *held = tt_mem_alloc(sizeof *held + frame->payload_bytes);
    if (held == NULL)
        return NULL;
    held->next = NULL;
    held->frame = *frame;
    held->pushed = (tti_push_batch){0};
    if (frame->payload_bytes > 0)
        memcpy(held->payload, payload, frame->payload_bytes);
    return held;
}

void
tti_release_list(tti_held **list)
{
    while (*list != NULL) {
        tti_held *next = (*list)->next;
        tt_mem_free(*list);
        *list = next;
    }
}

// ---- life cycle -------------------------------------------------------------------------------

tt_status
tt_ps_server_open(const tt_ps_table *table,
                  uint32_t node,
                  uint32_t node_count,
                  tt_outbox outbox,
                  tt_ps_hooks hooks,
                  tt_ps_server **out,
                  tt_error *err)
{
    *out = NULL;
    tt_ps_server *server = tt_mem_zalloc(1, sizeof *server);
    if (server == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for server %u", node);
    *server = (tt_ps_server){
        .table = table, .node = node, .node_count = node_count, .outbox = outbox, .hooks = hooks};
    server->early_end = &server->early;
    server->ops = tt_vec_best();
    server->attempt = TT_MAX(hooks.attempt, 1u);
    server->slots = tt_mem_zalloc(table->partition_count, sizeof *server->slots);
    server->attempts = tt_mem_zalloc(node_count, sizeof *server->attempts);
    server->lists = tt_mem_zalloc(table->partition_count, sizeof *server->lists);
    server->last_batch = tt_mem_zalloc(node_count, sizeof *server->last_batch);
    server->told_batch = tt_mem_zalloc(node_count, sizeof *server->told_batch);
    if (server->slots == NULL || server->lists == NULL || server->attempts == NULL ||
        server->last_batch == NULL || server->told_batch == NULL) {
        tt_ps_server_close(server);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the partitions of server %u",
                            node);
    }
    *out = server;
    return TT_OK;
}

void
tt_ps_server_close(tt_ps_server *server)
{
    if (server == NULL)
        return;
    for (uint32_t p = 0; server->slots != NULL && p < server->table->partition_count; p++)
        if (server->slots[p].sequence != NULL || server->slots[p].clock != NULL) // holds anything
            tti_slot_clear(server, &server->slots[p]);
    tti_release_list(&server->early);
    for (uint32_t p = 0; server->lists != NULL && p < server->table->partition_count; p++)
        tti_lists_free(server->lists[p], server->node_count);
    tt_mem_free(server->lists);
    tt_mem_free(server->slots);
    tt_mem_free(server->attempts);
    tt_mem_free(server->last_batch);
    tt_mem_free(server->told_batch);
    tt_mem_free(server->rows);
    tt_mem_free(server->values);
    tt_mem_free(server->bytes);
    tt_mem_free(server);
}

void
tt_ps_server_set_ops(tt_ps_server *server, const tt_vec_ops *ops)
{
    server->ops = ops;
}

void
tti_server_count_bytes(tt_ps_server *server)
{
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < server->table->partition_count; p++)
        if (server->slots[p].partition != NULL)
            bytes += tti_partition_bytes(server->slots[p].partition);
    tt_store_relaxed(&server->counters.partition_bytes, bytes);
}

uint64_t
tti_sequence_base(uint32_t restored_at)
{
    return (uint64_t)restored_at << 32;
}

tt_status
tti_slot_open(tt_ps_server *server, tti_slot *slot)
{
    uint32_t p = (uint32_t)(slot - server->slots);
    slot->sequence = tt_mem_alloc(server->node_count * sizeof *slot->sequence);
    slot->clock = tt_mem_zalloc(server->node_count, sizeof *slot->clock);
    if (slot->sequence == NULL || slot->clock == NULL)
        return TT_NOMEM;
    for (uint32_t n = 0; n < server->node_count; n++)
        slot->sequence[n] = tti_sequence_base(slot->restored_at);
    TT_TRY(tti_partition_alloc(server->table, p, server->outbox.pool, &slot->partition));
    tti_server_share(server, slot);
    return server->table->consistency == TT_PS_BSP
               ? tti_round_init(&slot->collecting, server->table->slice_count)
               : TT_OK;
}

void
tti_server_drop_partition(tt_ps_server *server, tti_slot *slot)
{
    tti_server_end_rows_loan(server, slot);
    tti_server_unshare(server, slot);
    tti_lists_free(server->lists[slot - server->slots], server->node_count);
    server->lists[slot - server->slots] = NULL;
    tti_partition_free(slot->partition);
    slot->partition = NULL;
}

void
tti_slot_clear(tt_ps_server *server, tti_slot *slot)
{
    tti_server_drop_partition(server, slot);
    tti_round_fini(&slot->collecting, server->table->slice_count);
    tti_past_fini(&slot->past);
    tti_release_list(&slot->parked);
    tti_release_list(&slot->held);
    tt_mem_free(slot->sequence);
    tt_mem_free(slot->clock);
    tt_mem_free(slot->batches);
    tt_mem_free(slot->arrival.present);
    tt_mem_free(slot->departure.licensed);
    tti_copies_clear(&slot->copies);
    *slot = (tti_slot){.moved_at = slot->moved_at, .restored_at = slot->restored_at};
}

tt_status
tt_ps_server_start(tt_ps_server *server, const tt_ps_view *view)
{
    server->view = view;
    memcpy(server->attempts, view->attempt, view->node_count * sizeof *view->attempt);
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        tti_slot *slot = &server->slots[p];
        // A slot is written to only where there is something to say: on 1,000 nodes most are never
        // touched, and their pages never taken.
        if (view->moved_at[p] != slot->moved_at || view->restored_at[p] != slot->restored_at) {
            slot->moved_at = view->moved_at[p];
            slot->restored_at = view->restored_at[p];
        }
        if (view->owner[p] != server->node) {
            tti_backup_adopt(server, slot);
            continue;
        }
        TT_TRY(tti_slot_open(server, slot));
        if (view->restored_at[p] == view->generation)
            tti_server_await_restore(server, slot);
        else
            slot->state = TTI_SERVING;
        tti_copies_aim(server, slot);
    }
    tti_server_count_bytes(server);
    return TT_OK;
}

static void
end_of_list(tti_slot *slot)
{
    slot->held_end = &slot->held;
    while (*slot->held_end != NULL)
        slot->held_end = &(*slot->held_end)->next;
}

// Its copy is of no use any more; requests that wait here are for this node still.
static void
clear_copy(tt_ps_server *server, tti_slot *slot)
{
    tti_held *held = slot->held;
    uint32_t count = slot->held_count;
    slot->held = NULL;
    tti_slot_clear(server, slot);
    slot->held = held;
    slot->held_count = count;
    end_of_list(slot);
}

// Partition p is coming here, in the way that its old owner will read from the view, too. A copy
// that is here is of no use to who sends rows: it may be one from before a generation that this
// server has not heard of.
static void
await_move(tt_ps_server *server, tti_slot *slot, uint32_t p)
{
    const tt_ps_view *view = server->view;
    if (tti_ps_view_hands_over(view, p)) {
        tti_backup_await(server, slot, view->moved_at[p], view->previous[p]);
        return;
    }
    if (slot->state == TTI_BACKUP)
        clear_copy(server, slot);
    tti_server_expect(server, slot, view->moved_at[p], view->previous[p]);
}

void
tt_ps_server_join(tt_ps_server *server, const tt_ps_view *view)
{
    server->view = view;
    memcpy(server->attempts, view->attempt, view->node_count * sizeof *view->attempt);
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        tti_slot *slot = &server->slots[p];
        slot->moved_at = view->moved_at[p];
        slot->restored_at = view->restored_at[p];
        if (view->owner[p] != server->node) {
            tti_backup_adopt(server, slot);
            continue;
        }
        server->may_move = 1;
        await_move(server, slot, p);
        tti_copies_aim(server, slot);
    }
    tti_server_count_bytes(server);
}

// ---- adoption ---------------------------------------------------------------------------------

// Rule 12 with a checkpoint only: a server that died took the newest state with it, and what any
// other has of the partition is no longer of use. Its owner takes it from the last checkpoint, and
// keeps requests until it is there.
static void
restore_slot(tt_ps_server *server, const tt_ps_view *view, uint32_t p)
{
    tti_slot *slot = &server->slots[p];
    uint32_t generation = view->restored_at[p];
    tti_slot_clear(server, slot);
    slot->moved_at = slot->restored_at = generation;
    slot->state = TTI_RETIRED;
    slot->peer = view->owner[p];
    if (view->moved_at[p] != generation || view->owner[p] != server->node)
        return; // another's; or it has moved on since, and comes from there
    tt_status status = tti_slot_open(server, slot);
    TT_ASSERT(status == TT_OK); // as large as what another host had of it
    tti_server_await_restore(server, slot);
}

// What a process that is gone has asked for is not answered to the one that follows it.
static void
forget_sender(tti_held **list, uint32_t sender, uint32_t *count)
{
    while (*list != NULL) {
        tti_held *held = *list;
        if (held->frame.sender != sender) {
            list = &held->next;
            continue;
        }
        *list = held->next;
        *count -= 1;
        tt_mem_free(held);
    }
}

// Rule 8: whoever knows of a death refuses that attempt, and counts the next one's pushes anew.
static void
adopt_attempts(tt_ps_server *server, const tt_ps_view *view)
{
    for (uint32_t n = 0; n < view->node_count; n++) {
        if (view->attempt[n] == server->attempts[n])
            continue;
        server->attempts[n] = view->attempt[n];
        for (uint32_t p = 0; p < server->table->partition_count; p++) {
            tti_slot *slot = &server->slots[p];
            uint32_t parked = 0;
            if (slot->sequence == NULL)
                continue;
            slot->sequence[n] = tti_sequence_base(slot->restored_at);
            slot->clock[n] = 0;
            forget_sender(&slot->parked, n, &parked);
            forget_sender(&slot->held, n, &slot->held_count);
            end_of_list(slot);
        }
    }
}

static void
adopt_move(tt_ps_server *server, const tt_ps_view *view, uint32_t p)
{
    tti_slot *slot = &server->slots[p];
    uint32_t moved_at = view->moved_at[p];
    server->may_move = 1;
    if (view->moved_by[p] == TT_PS_MOVE_PROMOTE) {
        tti_backup_promote(server, slot, moved_at);
        return;
    }
    if (view->replicas > 0)
        tti_backup_forget_the_past(server, slot, moved_at);
    if (view->owner[p] == server->node) {
        if (slot->state != TTI_SERVING)
            await_move(server, slot, p);
    } else if (slot->state == TTI_SERVING) {
        // Under BSP a partition leaves with an empty round buffer, at the round all agree on.
        if (slot->round < view->effective_round || slot->collecting.arrived > 0)
            slot->pending_seal = moved_at;
        else if (!tti_server_offer(server, slot, moved_at, view->owner[p]))
            tti_server_seal(server, slot, moved_at, view->owner[p]);
    }
}

static void
adopt_slot(tt_ps_server *server, const tt_ps_view *view, uint32_t p)
{
    tti_slot *slot = &server->slots[p];
    if (view->restored_at[p] > slot->restored_at)
        restore_slot(server, view, p);
    if (view->moved_at[p] > slot->moved_at)
        adopt_move(server, view, p);
    if (view->replicas == 0)
        return;
    if (view->owner[p] != server->node)
        tti_backup_adopt(server, slot);
    tti_copies_aim(server, slot);
}

// Who sent it has heard of a generation that this server has not. What it means depends on that.
static void
wait_for_view(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload)
{
    tti_held *held = server->early_count < TTI_HELD_MAX ? tti_hold(frame, payload) : NULL;
    if (held == NULL)
        return; // it will be asked again
    *server->early_end = held;
    server->early_end = &held->next;
    server->early_count++;
}

static void
receive_early(tt_ps_server *server)
{
    tti_held *waiting = server->early;
    server->early = NULL;
    server->early_end = &server->early;
    server->early_count = 0;
    while (waiting != NULL) {
        tti_held *next = waiting->next;
        tt_ps_server_receive(server, &waiting->frame, waiting->payload);
        tt_mem_free(waiting);
        waiting = next;
    }
}

void
tt_ps_server_adopt(tt_ps_server *server, const tt_ps_view *view)
{
    if (view->generation <= server->view->generation)
        return;
    server->view = view;
    adopt_attempts(server, view);
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        adopt_slot(server, view, p);
        // A worker that joined or left changes who is waited for.
        tti_slot *slot = &server->slots[p];
        for (uint32_t n = 0; slot->clock != NULL && n < view->node_count; n++)
            if (view->joined_at[n] > 1 && slot->clock[n] < view->join_clock[n])
                slot->clock[n] = view->join_clock[n];
        if (slot->state == TTI_SERVING)
            tti_server_unpark(server, slot);
        tti_server_retry_held(server, slot);
    }
    tti_server_tell_batches(server);
    tti_server_count_bytes(server);
    if (server->early != NULL)
        receive_early(server);
}

void
tt_ps_server_hear(tt_ps_server *server)
{
    const tt_ps_view *newest = server->hooks.newest(server->hooks.self);
    // Nobody's answer may wait for a backup that has died.
    if (server->early != NULL || newest->lost_at > server->view->lost_at)
        tt_ps_server_adopt(server, newest);
}

// ---- messages ---------------------------------------------------------------------------------

static void
dispatch(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    switch (frame->kind) {
    case TT_FRAME_PULL:
        tti_server_handle_pull(server, slot, frame, payload);
        break;
    case TT_FRAME_PUSH:
        tti_server_handle_push(server, slot, frame, payload);
        break;
    case TT_FRAME_FETCH:
        tti_server_handle_fetch(server, slot, frame, payload);
        break;
    case TT_FRAME_PIECE:
        tti_server_handle_piece(server, slot, frame, payload);
        break;
    case TT_FRAME_SEAL:
        tti_server_handle_seal(server, slot, frame, payload);
        break;
    case TT_FRAME_COMPLETE:
        tti_server_handle_complete(server, slot, frame);
        break;
    case TT_FRAME_SAVE:
        tti_server_handle_save(server, slot, frame);
        break;
    case TT_FRAME_RESTORED:
        tti_server_handle_restored(server, slot, frame, payload);
        break;
    case TT_FRAME_COPY:
        tti_backup_handle_copy(server, slot, frame, payload);
        break;
    case TT_FRAME_COPY_PUSH:
        tti_backup_handle_push(server, slot, frame, payload);
        break;
    case TT_FRAME_COPY_ACK:
        tti_copies_handle_ack(server, slot, frame);
        break;
    default:
        break;
    }
}

void
tti_server_handle(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload)
{
    tti_slot *slot = &server->slots[frame->partition];
    dispatch(server, slot, frame, payload);
    tti_server_retry_held(server, slot);
}

void
tt_ps_server_receive(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload)
{
    tt_frame bare;
    if (frame->partition >= server->table->partition_count || frame->sender >= server->node_count)
        return; // not of this job; nothing of ours sends it
    if (!tti_server_frame_is_sound(server->table, frame, payload))
        return;
    if (frame->generation > server->view->generation)
        tt_ps_server_adopt(server, server->hooks.newest(server->hooks.self));
    if (frame->generation > server->view->generation) {
        wait_for_view(server, frame, payload);
        return;
    }
    if (frame->attempt < server->attempts[frame->sender])
        return; // of a process that was declared dead (rule 8)
    if (frame->kind != TT_FRAME_PUSH) {
        tti_server_handle(server, frame, payload);
        return;
    }
    bare = *frame;
    if (!tti_server_take_batch(server, &bare, payload))
        return; // nothing of ours sends it
    if ((bare.flags & TT_FRAME_LENT) != 0)
        tti_server_receive_lent(server, &bare, payload);
    else
        tti_server_handle(server, &bare, payload);
}

int
tt_ps_server_background(tt_ps_server *server)
{
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        tti_slot *slot = &server->slots[p];
        if (slot->state == TTI_SEALED && !slot->departure.drained) {
            tti_server_drain(server, slot);
            return 1;
        }
        if (slot->state == TTI_ARRIVING && tti_server_make_room(server, slot))
            return 1;
    }
    return 0;
}

void
tt_ps_server_tick(tt_ps_server *server)
{
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        tti_server_move_tick(server, &server->slots[p]);
        tti_copies_tick(server, &server->slots[p]);
    }
}

// Asked at every turn of a node: slots are looked through only while something moves.
uint32_t
tt_ps_server_moving(tt_ps_server *server)
{
    uint32_t moving = 0;
    if (!server->may_move)
        return 0;
    for (uint32_t p = 0; p < server->table->partition_count; p++)
        moving += server->slots[p].state == TTI_SEALED || server->slots[p].state == TTI_ARRIVING ||
                  server->slots[p].pending_seal != 0 || server->slots[p].copies.takes_over ||
                  tti_copies_wait(&server->slots[p]);
    server->may_move = moving > 0;
    return moving;
}

uint32_t
tt_ps_server_held(const tt_ps_server *server)
{
    uint32_t held = 0;
    for (uint32_t p = 0; p < server->table->partition_count; p++)
        held += server->slots[p].partition != NULL && server->slots[p].state != TTI_BACKUP;
    return held;
}

static void
read_row(const tti_partition *partition, uint32_t row, float *out)
{
    const tt_ps_table *table = partition->table;
    uint64_t at = table->kind == TT_PS_DENSE ? partition->first + row : tti_row_key(partition, row);
    if (at < table->rows)
        tti_partition_gather_saved(partition, &row, 1, out + at * table->width);
}

static void
read_slot(const tti_slot *slot, float *out)
{
    const tti_partition *partition = slot->partition;
    const uint8_t *present = slot->state == TTI_ARRIVING ? slot->arrival.present : NULL;
    if (present == NULL && partition->table->kind == TT_PS_DENSE) {
        tti_partition_gather_saved(partition, NULL, partition->rows,
                                   out + partition->first * partition->width);
        return;
    }
    for (uint32_t row = 0; row < partition->rows; row++)
        if (present == NULL || present[row])
            read_row(partition, row, out);
}

void
tt_ps_server_read(const tt_ps_server *server, int sealed, float *out)
{
    for (uint32_t p = 0; p < server->table->partition_count; p++) {
        const tti_slot *slot = &server->slots[p];
        int serves = slot->state == TTI_SERVING || slot->state == TTI_ARRIVING;
        if (slot->partition != NULL && (sealed ? slot->state == TTI_SEALED : serves))
            read_slot(slot, out);
    }
}

void
tt_ps_server_counters_read(const tt_ps_server *server, tt_ps_server_counters *out)
{
    const uint64_t *source = (const uint64_t *)&server->counters;
    uint64_t *target = (uint64_t *)out;
    for (size_t i = 0; i < sizeof *out / sizeof *target; i++)
        target[i] = tt_load_relaxed(&source[i]);
}
