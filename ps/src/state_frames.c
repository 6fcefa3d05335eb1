// Partitions at rest on their way between servers and whoever keeps the checkpoints: copies out
// (SAVE, SAVED), and the state of a partition whose server died back in (RESTORE, RESTORED). As
// bytes they are what a checkpoint holds (tt/ps_state.h).
//
// Both are asked for until they come: who asks keeps the clock, who answers keeps nothing.
#include "server_core.h"
#include "table_state.h"
#include <string.h>

static void
send_partition(tt_outbox outbox,
               const tti_partition *partition,
               uint32_t round,
               const tt_frame *request,
               tt_frame_kind kind,
               tt_archive *bytes)
{
    tt_archive_rewind(bytes);
    tti_partition_save(partition, round, bytes);
    if (bytes->status != TT_OK)
        return; // without memory for it now: it will be asked again
    tt_frame frame = {.kind = (uint16_t)kind,
                      .attempt = request->attempt,
                      .generation = request->generation,
                      .partition = request->partition,
                      .sequence = request->sequence,
                      .count = partition->rows,
                      .extra = request->extra};
    tt_span span = {bytes->bytes, bytes->count};
    outbox.send(outbox.self, request->sender, &frame, &span, 1);
}

// ---- copies out, the server's side -------------------------------------------------------------

// Not in the middle of a round, nor while it is on its way.
void
tti_server_handle_save(tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    if (slot->state != TTI_SERVING || slot->collecting.arrived > 0)
        return;
    tt_archive bytes = {0};
    send_partition(server->outbox, slot->partition, slot->round, frame, TT_FRAME_SAVED, &bytes);
    tt_archive_fini(&bytes);
}

// ---- copies out, the other side ----------------------------------------------------------------

struct tt_ps_copier {
    const tt_ps_table *table;
    tt_outbox outbox;
    const tt_ps_view *view; // while copies are under way
    uint64_t operation, asked_ns;
    uint32_t missing;
    tt_archive *parts; // [partition_count]
};

tt_status
tt_ps_copier_open(const tt_ps_table *table, tt_outbox outbox, uint32_t attempt, tt_ps_copier **out)
{
    tt_ps_copier *copier = *out = tt_mem_zalloc(1, sizeof *copier);
    if (copier == NULL)
        return TT_NOMEM;
    copier->table = table;
    copier->outbox = outbox;
    copier->operation = (uint64_t)attempt << 32; // answers to another one's questions are not ours
    copier->parts = tt_mem_zalloc(table->partition_count, sizeof *copier->parts);
    if (copier->parts != NULL)
        return TT_OK;
    tt_mem_free(copier);
    *out = NULL;
    return TT_NOMEM;
}

void
tt_ps_copier_close(tt_ps_copier *copier)
{
    if (copier == NULL)
        return;
    for (uint32_t p = 0; p < copier->table->partition_count; p++)
        tt_archive_fini(&copier->parts[p]);
    tt_mem_free(copier->parts);
    tt_mem_free(copier);
}

static void
ask(tt_ps_copier *copier, uint64_t now_ns)
{
    copier->asked_ns = now_ns;
    for (uint32_t p = 0; p < copier->table->partition_count; p++) {
        tt_frame frame = {.kind = TT_FRAME_SAVE,
                          .generation = copier->view->generation,
                          .partition = (uint16_t)p,
                          .sequence = copier->operation};
        if (copier->parts[p].count == 0)
            copier->outbox.send(copier->outbox.self, copier->view->owner[p], &frame, NULL, 0);
    }
}

void
tt_ps_copier_begin(tt_ps_copier *copier, const tt_ps_view *view, uint64_t now_ns)
{
    copier->view = view;
    copier->operation++;
    copier->missing = copier->table->partition_count;
    for (uint32_t p = 0; p < copier->table->partition_count; p++)
        tt_archive_rewind(&copier->parts[p]);
    ask(copier, now_ns);
}

void
tt_ps_copier_receive(tt_ps_copier *copier, const tt_frame *frame, const uint8_t *payload)
{
    if (copier->view == NULL || frame->sequence != copier->operation ||
        frame->partition >= copier->table->partition_count || frame->payload_bytes == 0)
        return;
    tt_archive *part = &copier->parts[frame->partition];
    if (part->count > 0)
        return; // asked twice
    void *room = tt_archive_room(part, frame->payload_bytes);
    if (room == NULL) { // without memory for it now: asked again
        tt_archive_fini(part);
        return;
    }
    memcpy(room, payload, frame->payload_bytes);
    copier->missing--;
}

void
tt_ps_copier_tick(tt_ps_copier *copier, uint64_t now_ns, uint64_t retry_ns)
{
    if (copier->view != NULL && copier->missing > 0 && now_ns - copier->asked_ns >= retry_ns)
        ask(copier, now_ns);
}

int
tt_ps_copier_done(const tt_ps_copier *copier)
{
    return copier->missing == 0;
}

uint64_t
tt_ps_copier_bytes(const tt_ps_copier *copier)
{
    uint64_t bytes = sizeof(uint64_t);
    for (uint32_t p = 0; p < copier->table->partition_count; p++)
        bytes += copier->parts[p].count;
    return bytes;
}

void
tt_ps_copier_take(tt_ps_copier *copier, tt_archive *out)
{
    uint64_t count = copier->table->partition_count;
    TT_ASSERT(tt_ps_copier_done(copier));
    TT_ARCHIVE(out, count);
    for (uint32_t p = 0; p < count; p++)
        tt_archive_field(out, copier->parts[p].bytes, copier->parts[p].count);
    copier->view = NULL;
}

void
tt_ps_copier_abandon(tt_ps_copier *copier)
{
    copier->view = NULL;
    copier->missing = 0;
}

// ---- back in, the server's side ----------------------------------------------------------------

void
tti_server_ask_restore(tt_ps_server *server, tti_slot *slot)
{
    tt_frame frame = {.kind = TT_FRAME_RESTORE,
                      .attempt = server->attempt,
                      .generation = server->view->generation,
                      .partition = (uint16_t)(slot - server->slots),
                      .extra = slot->moved_at};
    server->outbox.send(server->outbox.self, server->hooks.keeper, &frame, NULL, 0);
}

void
tti_server_await_restore(tt_ps_server *server, tti_slot *slot)
{
    server->may_move = 1;
    slot->state = TTI_ARRIVING;
    slot->arrival = (tti_arrival){.restores = 1};
    slot->peer = (uint16_t)server->hooks.keeper;
    slot->ticks = 0;
    tti_server_ask_restore(server, slot);
}

void
tti_server_handle_restored(tt_ps_server *server,
                           tti_slot *slot,
                           const tt_frame *frame,
                           const uint8_t *payload)
{
    if (slot->state != TTI_ARRIVING || !slot->arrival.restores ||
        frame->attempt != server->attempt || frame->extra != slot->moved_at)
        return; // it came before, or is of an earlier restore
    tt_archive in;
    tt_archive_read(&in, payload, frame->payload_bytes);
    if (tti_partition_read(slot->partition, &in, &slot->round) != TT_OK)
        return; // without memory for it now: asked again
    slot->arrival.restores = 0;
    slot->state = TTI_SERVING;
    slot->news = 1;
    tti_copies_advance(server, slot);
    if (frame->partition == 0)
        tt_store_relaxed(&server->counters.iterations, slot->partition->iterations);
    if (server->hooks.retired != NULL)
        server->hooks.retired(server->hooks.self, frame->partition, slot->moved_at);
}

// ---- back in, the other side -------------------------------------------------------------------

void
tt_ps_state_answer(const tt_ps_table *table,
                   const tt_ps_state *state,
                   const tt_frame *request,
                   tt_outbox outbox)
{
    tti_partition *partition;
    tt_archive bytes = {0};
    if (request->partition >= table->partition_count ||
        tti_partition_alloc(table, request->partition, NULL, &partition) != TT_OK)
        return;
    if (state == NULL || tti_partition_load(partition, state) == TT_OK)
        send_partition(outbox, partition, state != NULL ? tt_ps_state_round(state) : 0, request,
                       TT_FRAME_RESTORED, &bytes);
    tt_archive_fini(&bytes);
    tti_partition_free(partition);
}
