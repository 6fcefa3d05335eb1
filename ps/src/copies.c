// Replicas, the owner's side: every push is sent on to the partition's targets (its backup, and the
// node that was so before while the backup has no copy yet) in the order in which it is applied
// here, and acknowledged when all of them have it. Whoever has no copy yet is sent the whole
// partition first, records, clocks and the contributions to an open round included.
//
// So a target has at any time all that was acknowledged, and what it has besides its sender still
// asks for; it goes on from there when the owner dies, and nothing is applied twice, for it has the
// owner's sequence records, too. Source: primary-backup replication (Alsberg, Day 1976), with the
// update order of state machine replication (Schneider 1990).
#include "server_core.h"
#include "table_state.h"
#include <string.h>

enum { PATIENCE = 8, PATIENCE_MAX = 128 }; // ticks

static void
append(tti_held **list, tti_held ***end, tti_held *held)
{
    *(*list != NULL ? *end : list) = held;
    *end = &held->next;
}

void
tti_copies_clear(tti_copies *copies)
{
    tti_release_list(&copies->log);
    tti_release_list(&copies->answers);
    *copies = (tti_copies){0};
}

// ---- what is sent ------------------------------------------------------------------------------

static void
write_copy(const tt_ps_server *server, const tti_slot *slot, tt_archive *out)
{
    size_t nodes = server->node_count;
    uint32_t batches = slot->batches != NULL ? server->node_count : 0;
    tti_partition_save(slot->partition, slot->round, out);
    tt_archive_field(out, slot->sequence, nodes * sizeof *slot->sequence);
    tt_archive_field(out, slot->clock, nodes * sizeof *slot->clock);
    tt_archive_field(out, server->attempts, nodes * sizeof *server->attempts);
    TT_ARCHIVE(out, batches);
    if (batches > 0)
        tt_archive_field(out, slot->batches, nodes * sizeof *slot->batches);
    tti_round_save(&slot->collecting, server->table->slice_count, slot->partition->width, out);
}

// False without memory for it now.
static int
send_copy(tt_ps_server *server, const tti_slot *slot, uint16_t to, uint32_t reign, uint32_t flags)
{
    tt_archive bytes = {0};
    write_copy(server, slot, &bytes);
    tt_frame frame = {.kind = TT_FRAME_COPY,
                      .flags = (uint16_t)flags,
                      .attempt = server->attempt,
                      .generation = server->view->generation,
                      .partition = (uint16_t)tti_slot_index(server, slot),
                      .sequence = slot->copies.number,
                      .extra = reign};
    tt_span span = {bytes.bytes, bytes.count};
    int fine = bytes.status == TT_OK;
    if (fine)
        server->outbox.send(server->outbox.self, to, &frame, &span, 1);
    tt_archive_fini(&bytes);
    return fine;
}

static void
send_push(tt_ps_server *server, const tti_slot *slot, uint16_t to, const tti_held *push)
{
    tt_frame frame = {.kind = TT_FRAME_COPY_PUSH,
                      .attempt = server->attempt,
                      .generation = server->view->generation,
                      .partition = push->frame.partition,
                      .sequence = push->number,
                      .extra = slot->copies.reign};
    tt_span spans[] = {{&push->frame, sizeof push->frame},
                       {push->payload, push->frame.payload_bytes}};
    server->outbox.send(server->outbox.self, to, &frame, spans, 2);
}

void
tti_copies_hand_over(tt_ps_server *server, tti_slot *slot)
{
    // Without memory for it now at a later tick.
    (void)send_copy(server, slot, slot->peer, slot->moved_at, TT_FRAME_LAST);
}

// ---- who waits for what ------------------------------------------------------------------------

static int
has_all(const tti_copies *copies, const tti_target *target)
{
    return target->synced && target->acked >= copies->number;
}

int
tti_copies_wait(const tti_slot *slot)
{
    for (uint32_t i = 0; i < slot->copies.target_count; i++)
        if (!has_all(&slot->copies, &slot->copies.target[i]))
            return 1;
    return 0;
}

// The last push that all targets have; without targets the last one.
static uint64_t
least_acked(const tti_copies *copies)
{
    uint64_t least = copies->number;
    for (uint32_t i = 0; i < copies->target_count; i++)
        least = TT_MIN(least, copies->target[i].synced ? copies->target[i].acked : 0);
    return least;
}

static void
send_answers(tt_ps_server *server, tti_copies *copies)
{
    uint64_t acked = least_acked(copies);
    int all_synced = 1;
    for (uint32_t i = 0; i < copies->target_count; i++)
        all_synced &= copies->target[i].synced;
    while (all_synced && copies->answers != NULL && copies->answers->number <= acked) {
        tti_held *held = copies->answers;
        copies->answers = held->next;
        server->outbox.send(server->outbox.self, held->to, &held->frame, NULL, 0);
        tt_mem_free(held);
    }
}

// A target that was not sent its copy does not need what comes before that.
static void
trim_log(tti_copies *copies)
{
    uint64_t needed = UINT64_MAX;
    for (uint32_t i = 0; i < copies->target_count; i++)
        if (copies->target[i].stated)
            needed = TT_MIN(needed, copies->target[i].acked);
    while (copies->log != NULL && copies->log->number <= needed) {
        tti_held *held = copies->log;
        copies->log = held->next;
        tt_mem_free(held);
    }
}

void
tti_copies_answer(tt_ps_server *server, tti_slot *slot, uint16_t to, tt_frame *answer)
{
    tti_held *held = NULL;
    if (!tti_copies_wait(slot)) {
        server->outbox.send(server->outbox.self, to, answer, NULL, 0);
        return;
    }
    answer->payload_bytes = 0;
    held = tti_hold(answer, NULL);
    if (held == NULL)
        return; // it will be asked again
    held->to = to;
    held->number = slot->copies.number;
    append(&slot->copies.answers, &slot->copies.answers_end, held);
}

void
tti_copies_turn_away(tt_ps_server *server, const tti_slot *slot, tti_held *answers)
{
    while (answers != NULL) {
        tti_held *next = answers->next;
        tt_frame push = answers->frame;
        push.kind = TT_FRAME_PUSH;
        push.sender = answers->to;
        tti_server_answer_moved(server, slot, &push);
        tt_mem_free(answers);
        answers = next;
    }
}

tti_held *
tti_copies_take_answers(tti_slot *slot)
{
    tti_held *answers = slot->copies.answers;
    slot->copies.answers = NULL;
    return answers;
}

void
tti_copies_give_answers(tti_slot *slot, tti_held *answers)
{
    while (answers != NULL) {
        tti_held *next = answers->next;
        answers->next = NULL;
        answers->number = slot->copies.number;
        append(&slot->copies.answers, &slot->copies.answers_end, answers);
        answers = next;
    }
}

// ---- targets -----------------------------------------------------------------------------------

static void
state_whole(tt_ps_server *server, tti_slot *slot, tti_target *target)
{
    target->stated = send_copy(server, slot, target->node, slot->copies.reign, 0);
    target->acked = target->stated ? slot->copies.number : 0;
    target->synced = 0;
    target->repeated = target->ticks = 0;
}

// Once for each time that somebody is made the backup.
static void
tell_backed(tt_ps_server *server, tti_slot *slot)
{
    const tt_ps_view *view = server->view;
    uint32_t p = tti_slot_index(server, slot);
    for (uint32_t i = 0; view->owner[p] == server->node && i < slot->copies.target_count; i++) {
        tti_target *target = &slot->copies.target[i];
        if (target->node != view->backup[p] || !target->synced ||
            target->told_at >= view->backup_at[p])
            continue;
        target->told_at = view->generation;
        if (server->hooks.backed != NULL)
            server->hooks.backed(server->hooks.self, p, view->generation);
    }
}

void
tti_copies_advance(tt_ps_server *server, tti_slot *slot)
{
    tti_copies *copies = &slot->copies;
    server->may_move |= copies->target_count > 0;
    for (uint32_t i = 0; slot->state == TTI_SERVING && i < copies->target_count; i++)
        if (!copies->target[i].stated)
            state_whole(server, slot, &copies->target[i]);
    trim_log(copies);
    send_answers(server, copies);
    tell_backed(server, slot);
}

typedef struct wanted {
    uint16_t node;
    uint32_t since;
} wanted;

static int
is_still(const tt_ps_view *view, const tti_target *target, wanted w)
{
    return target->node == w.node && target->attempt == view->attempt[w.node] &&
           target->since == w.since;
}

static tti_target
target_for(const tt_ps_view *view, const tti_copies *before, uint32_t reign, wanted w)
{
    for (uint32_t i = 0; before->reign == reign && i < before->target_count; i++)
        if (is_still(view, &before->target[i], w))
            return before->target[i];
    return (tti_target){
        .node = w.node, .attempt = view->attempt[w.node], .since = w.since, .patience = PATIENCE};
}

// Of a partition that is still to leave: targets that keep their copies for the new owner.
static void
narrow(tt_ps_server *server, tti_slot *slot, const wanted *w)
{
    tti_copies *copies = &slot->copies;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < copies->target_count; i++) {
        int stays = 0;
        for (uint32_t k = 0; k < TTI_TARGETS_MAX; k++)
            stays |= w[k].node != TT_PS_NOBODY && is_still(server->view, &copies->target[i], w[k]);
        if (stays)
            copies->target[kept++] = copies->target[i];
    }
    copies->target_count = kept;
    tti_copies_advance(server, slot);
}

void
tti_copies_aim(tt_ps_server *server, tti_slot *slot)
{
    const tt_ps_view *view = server->view;
    const uint32_t p = tti_slot_index(server, slot);
    const wanted w[TTI_TARGETS_MAX] = {{view->backup[p], view->backup_since[p]},
                                       {view->spare[p], view->spare_since[p]}};
    tti_copies *copies = &slot->copies, before = *copies;
    if (view->replicas == 0)
        return;
    if (view->owner[p] != server->node) {
        narrow(server, slot, w);
        return;
    }
    if (slot->state != TTI_SERVING && slot->state != TTI_ARRIVING)
        return;
    copies->reign = view->moved_at[p];
    copies->target_count = 0;
    for (uint32_t i = 0; i < TTI_TARGETS_MAX; i++)
        if (w[i].node != TT_PS_NOBODY && w[i].node != server->node)
            copies->target[copies->target_count++] = target_for(view, &before, copies->reign, w[i]);
    tti_copies_advance(server, slot);
}

// ---- pushes out, acknowledgements in -----------------------------------------------------------

// A push as all understand it, its keys spelt out: those of a list that only this server knows are
// keys of its rows, its batch named. NULL without memory for it.
static tti_held *
spell_out(const tt_ps_server *server,
          const tti_slot *slot,
          const tt_frame *frame,
          const uint32_t *rows,
          const uint8_t *payload,
          const uint8_t *values)
{
    size_t value_bytes = frame->payload_bytes - (size_t)(values - payload);
    int named = (frame->flags & TT_FRAME_NAMED) != 0;
    size_t key_bytes = named ? frame->count * sizeof(uint64_t) : (size_t)(values - payload);
    int has_batch = server->pushed.batch.rows > 0;
    size_t batch_bytes = has_batch ? sizeof server->pushed : 0;
    tti_held *held = tt_mem_alloc(sizeof *held + key_bytes + value_bytes + batch_bytes);
    if (held == NULL)
        return NULL;
    *held = (tti_held){.number = slot->copies.number, .frame = *frame};
    held->frame.flags &= (uint16_t)~TT_FRAME_NAMED;
    held->frame.flags |= has_batch ? TT_FRAME_BATCH : 0;
    held->frame.payload_bytes = (uint32_t)(key_bytes + value_bytes + batch_bytes);
    for (uint32_t i = 0; named && i < frame->count; i++)
        memcpy(held->payload + i * sizeof(uint64_t), &slot->partition->row_key[rows[i]],
               sizeof(uint64_t));
    // One that only tells of a clock has no payload.
    if (!named && key_bytes > 0)
        memcpy(held->payload, payload, key_bytes);
    if (value_bytes > 0)
        memcpy(held->payload + key_bytes, values, value_bytes);
    if (has_batch)
        memcpy(held->payload + key_bytes + value_bytes, &server->pushed, batch_bytes);
    return held;
}

void
tti_copies_forward(tt_ps_server *server,
                   tti_slot *slot,
                   const tt_frame *frame,
                   const uint32_t *rows,
                   const uint8_t *payload,
                   const uint8_t *values)
{
    tti_copies *copies = &slot->copies;
    int stated = 0;
    if (copies->target_count == 0)
        return;
    copies->number++;
    server->may_move = 1;
    for (uint32_t i = 0; i < copies->target_count; i++)
        stated |= copies->target[i].stated;
    tti_held *push = stated ? spell_out(server, slot, frame, rows, payload, values) : NULL;
    for (uint32_t i = 0; i < copies->target_count; i++) {
        tti_target *target = &copies->target[i];
        if (push == NULL) // the whole will be said instead
            target->stated = target->synced = 0;
        else if (target->stated)
            send_push(server, slot, target->node, push);
    }
    if (push != NULL)
        append(&copies->log, &copies->log_end, push);
}

// What came after its last one, once for each time that it is found missing.
static void
repeat_pushes(tt_ps_server *server, const tti_slot *slot, tti_target *target)
{
    if (target->repeated > target->acked)
        return;
    for (const tti_held *held = slot->copies.log; held != NULL; held = held->next)
        if (held->number > target->acked)
            send_push(server, slot, target->node, held);
    target->repeated = slot->copies.number;
}

void
tti_copies_handle_ack(tt_ps_server *server, tti_slot *slot, const tt_frame *frame)
{
    tti_copies *copies = &slot->copies;
    for (uint32_t i = 0; frame->extra == copies->reign && i < copies->target_count; i++) {
        tti_target *target = &copies->target[i];
        // Who has not heard yet that a copy is wanted again may be about to forget what it has.
        if (target->node != frame->sender || !target->stated || frame->sequence > copies->number ||
            frame->generation < target->since)
            continue;
        int has_copy = frame->count != 0;
        if (!has_copy) {
            if (target->synced) // it is another process, or begins again; else its copy is coming
                target->stated = target->synced = 0;
            continue;
        }
        if (!target->synced && frame->sequence < target->acked)
            continue; // of a copy it had before
        if (!target->synced || frame->sequence > target->acked) {
            target->patience = PATIENCE;
            target->ticks = 0;
        }
        target->synced = 1;
        target->acked = TT_MAX(target->acked, frame->sequence);
        if ((frame->flags & TT_FRAME_LOST) != 0)
            repeat_pushes(server, slot, target);
    }
    tti_copies_advance(server, slot);
}

void
tti_copies_tick(tt_ps_server *server, tti_slot *slot)
{
    tti_copies *copies = &slot->copies;
    // What is sealed is still acknowledged, to those whom the seal answers.
    int speaks = slot->state == TTI_SERVING || slot->state == TTI_SEALED;
    for (uint32_t i = 0; speaks && i < copies->target_count; i++) {
        tti_target *target = &copies->target[i];
        if (has_all(copies, target) || ++target->ticks < target->patience)
            continue;
        target->ticks = 0;
        target->patience = TT_MIN(2 * target->patience, (uint32_t)PATIENCE_MAX);
        target->repeated = 0;
        if (target->synced)
            repeat_pushes(server, slot, target);
        else
            state_whole(server, slot, target);
    }
}
