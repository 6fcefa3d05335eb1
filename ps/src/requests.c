// What a server does with pulls and pushes of workers.
#include "server_core.h"
#include <string.h>

// BSP: rounds applied. SSP: the slowest worker's clock. ASP: nothing waits.
uint32_t
tti_server_clock(const tt_ps_server *server, const tti_slot *slot)
{
    if (server->table->consistency == TT_PS_BSP)
        return slot->round;
    uint32_t clock = UINT32_MAX;
    if (server->table->consistency == TT_PS_SSP)
        for (uint32_t n = 0; n < server->view->node_count; n++)
            if (server->view->is_worker[n])
                clock = TT_MIN(clock, slot->clock[n]);
    return clock;
}

static tt_frame
answer(const tt_ps_server *server,
       const tti_slot *slot,
       const tt_frame *request,
       tt_frame_kind kind)
{
    return (tt_frame){.kind = (uint16_t)kind,
                      .attempt = request->attempt, // another process's answer is not ours
                      .generation = server->view->generation,
                      .partition = request->partition,
                      .sequence = request->sequence,
                      .extra = slot->moved_at};
}

void
tti_server_answer_moved(tt_ps_server *server, const tti_slot *slot, const tt_frame *request)
{
    // Whoever gave it away knows where it went; whoever never had it says what the view says.
    uint16_t owner = server->view->owner[request->partition];
    if (slot->state == TTI_ARRIVING || slot->copies.takes_over)
        owner = slot->peer;
    else if (slot->state == TTI_SEALED || slot->state == TTI_RETIRED)
        owner = slot->moved_at >= server->view->moved_at[request->partition] ? slot->peer : owner;
    tt_frame frame = answer(server, slot, request, TT_FRAME_MOVED);
    frame.detail = owner;
    frame.clock =
        request->kind; // names what it answers: a late refusal of a pull must not redirect a push
    frame.extra = TT_MAX(slot->moved_at, server->view->moved_at[request->partition]);
    frame.count = slot->restored_at; // from there on pushes are numbered anew
    tti_count(&server->counters.moved_answers, 1);
    server->outbox.send(server->outbox.self, request->sender, &frame, NULL, 0);
}

void
tti_server_ack(tt_ps_server *server, tti_slot *slot, const tt_frame *request)
{
    tt_frame frame = answer(server, slot, request, TT_FRAME_PUSH_ACK);
    frame.detail = (uint32_t)slot->partition->iterations;
    tti_copies_answer(server, slot, request->sender, &frame);
}

void
tti_server_want_keys(tt_ps_server *server, const tti_slot *slot, const tt_frame *request)
{
    tt_frame frame = answer(server, slot, request, TT_FRAME_WANT_KEYS);
    frame.clock = request->kind;
    server->outbox.send(server->outbox.self, request->sender, &frame, NULL, 0);
}

// ---- pull -------------------------------------------------------------------------------------

static const uint32_t *
find_rows(tt_ps_server *server, const tti_slot *slot, const tt_frame *frame, const uint8_t *keys)
{
    if ((frame->flags & TT_FRAME_WHOLE) != 0)
        return NULL;
    uint32_t *rows = tti_server_rows(server, frame->count);
    tti_partition_find_all(slot->partition, keys, frame->count, rows);
    return rows;
}

static uint32_t
row_count(const tti_slot *slot, const tt_frame *frame)
{
    return (frame->flags & TT_FRAME_WHOLE) != 0 ? slot->partition->rows : frame->count;
}

static void
send_values(tt_ps_server *server,
            const tt_frame *request,
            tt_frame *out,
            const float *values,
            size_t floats)
{
    tt_span span = {values, floats * sizeof(float)};
    if ((request->flags & TT_FRAME_BF16) != 0) {
        tt_bf16 *halves = (tt_bf16 *)(void *)tti_server_bytes(server, floats * sizeof(tt_bf16));
        server->ops->bf16_encode(values, halves, floats);
        span = (tt_span){halves, floats * sizeof(tt_bf16)};
    }
    server->outbox.send(server->outbox.self, request->sender, out, &span, 1);
}

void
tti_server_reply(tt_ps_server *server,
                 const tti_slot *slot,
                 const tt_frame *frame,
                 const uint8_t *payload)
{
    uint32_t rows_wanted = row_count(slot, frame);
    size_t floats = (size_t)rows_wanted * server->table->width;
    tti_place place;
    tt_frame out = answer(server, slot, frame, TT_FRAME_PULL_REPLY);
    out.count = rows_wanted;
    out.clock = tti_server_clock(server, slot);
    out.detail = (uint32_t)slot->partition->iterations;
    out.flags = frame->flags & (TT_FRAME_WHOLE | TT_FRAME_BF16 | TT_FRAME_READONLY);
    if (tti_server_place(server, slot, frame, &place)) {
        tt_span span = {&place, sizeof place};
        out.flags |= TT_FRAME_LENT;
        server->outbox.send(server->outbox.self, frame->sender, &out, &span, 1);
        return;
    }
    size_t name_bytes;
    int is_named = (frame->flags & TT_FRAME_NAMED) != 0;
    const uint32_t *rows = is_named
                               ? tti_server_named_rows(server, slot, frame, payload, &name_bytes)
                               : find_rows(server, slot, frame, payload);
    if (is_named && rows == NULL)
        return;
    const float *values = NULL;
    if (rows == NULL && (frame->flags & TT_FRAME_READONLY) == 0) {
        values = slot->partition->cells.w; // sent from where it lies
    } else {
        float *gathered = tti_server_values(server, floats);
        if ((frame->flags & TT_FRAME_READONLY) != 0)
            tti_partition_gather_saved(slot->partition, rows, rows_wanted, gathered);
        else
            tti_partition_gather(slot->partition, rows, rows_wanted, gathered);
        values = gathered;
    }
    send_values(server, frame, &out, values, floats);
}

// The values of one round before, or that they are not kept.
static void
answer_past(tt_ps_server *server, const tti_slot *slot, const tt_frame *frame, const uint32_t *rows)
{
    const tti_past *past = &slot->past;
    tt_frame out = answer(server, slot, frame, TT_FRAME_PULL_REPLY);
    out.count = row_count(slot, frame);
    out.clock = frame->clock;
    out.flags = frame->flags & (TT_FRAME_WHOLE | TT_FRAME_BF16);
    if (!past->kept || past->round != frame->clock || slot->round != frame->clock + 1) {
        out.flags |= TT_FRAME_LOST;
        server->outbox.send(server->outbox.self, frame->sender, &out, NULL, 0);
        return;
    }
    size_t floats = (size_t)out.count * server->table->width;
    float *values = tti_server_values(server, floats);
    tti_partition_gather(slot->partition, rows, out.count, values);
    tti_past_restore(past, slot->partition, rows, out.count, values);
    send_values(server, frame, &out, values, floats);
}

void
tti_server_past_pull(tt_ps_server *server,
                     const tti_slot *slot,
                     const tt_frame *frame,
                     const uint8_t *payload)
{
    tt_frame spelt;
    if (tti_server_spell_out(server, slot, frame, &payload, &spelt))
        answer_past(server, slot, &spelt, find_rows(server, slot, &spelt, payload));
}

static void
park(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    for (tti_held *held = slot->parked; held != NULL; held = held->next)
        if (held->frame.sender == frame->sender && held->frame.sequence == frame->sequence)
            return; // asked again while it waits
    tti_held *held = tti_hold(frame, payload);
    if (held == NULL)
        return; // it will be asked again
    tti_count(&server->counters.parked, 1);
    held->next = slot->parked;
    slot->parked = held;
}

void
tti_server_unpark(tt_ps_server *server, tti_slot *slot)
{
    uint32_t clock = tti_server_clock(server, slot);
    for (tti_held **link = &slot->parked; *link != NULL;) {
        tti_held *held = *link;
        if (held->frame.clock > clock) {
            link = &held->next;
            continue;
        }
        *link = held->next;
        tti_server_reply(server, slot, &held->frame, held->payload);
        tt_mem_free(held);
    }
}

// BSP: of a round that is over here, from a worker that does a dead one's part of it again.
static int
is_past(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    return server->table->consistency == TT_PS_BSP && (frame->flags & TT_FRAME_READONLY) == 0 &&
           frame->clock < slot->round;
}

void
tti_server_handle_pull(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    tti_count(&server->counters.pulls, 1);
    switch (slot->state) {
    case TTI_SERVING:
        if (is_past(server, slot, frame))
            tti_server_past_pull(server, slot, frame, payload);
        else if (frame->clock > tti_server_clock(server, slot))
            park(server, slot, frame, payload);
        else
            tti_server_reply(server, slot, frame, payload);
        break;
    case TTI_SEALED:
        if (is_past(server, slot, frame))
            tti_server_past_pull(server, slot, frame, payload);
        else
            tti_server_sealed_pull(server, slot, frame, payload);
        break;
    case TTI_ARRIVING:
        tti_server_arriving(server, slot, frame, payload);
        break;
    case TTI_BACKUP:
        tti_backup_request(server, slot, frame, payload);
        break;
    case TTI_ABSENT:
    case TTI_RETIRED:
        tti_server_answer_moved(server, slot, frame);
        break;
    }
}

// ---- push -------------------------------------------------------------------------------------

const float *
tti_server_decode(tt_ps_server *server, const tt_frame *frame, const uint8_t *values, size_t floats)
{
    if ((frame->flags & TT_FRAME_BF16) == 0)
        return (const float *)(const void *)values;
    float *decoded = tti_server_values(server, floats);
    server->ops->bf16_decode((const tt_bf16 *)(const void *)values, decoded, floats);
    return decoded;
}

// Under BSP only the last slice of a round changes parameters.
static int
changes_now(const tt_ps_server *server, const tti_slot *slot, uint32_t rows_pushed)
{
    return server->table->consistency == TT_PS_BSP
               ? slot->collecting.arrived + 1 == server->table->slice_count
               : rows_pushed > 0;
}

void
tti_server_apply(tt_ps_server *server,
                 tti_slot *slot,
                 const tt_frame *frame,
                 const uint32_t *rows,
                 const float *gradients)
{
    uint32_t rows_pushed =
        rows == NULL && (frame->flags & TT_FRAME_WHOLE) != 0 ? slot->partition->rows : frame->count;
    // A backup may know already of a death that the owner has not heard of when it applied this.
    int counts = frame->attempt == server->attempts[frame->sender];
    if (counts)
        slot->sequence[frame->sender] = frame->sequence;
    tti_server_note_batch(server, slot);
    tti_count(&server->counters.pushes, slot->state != TTI_BACKUP);
    int round_done = 0, changes = changes_now(server, slot, rows_pushed);
    if (changes)
        tti_server_change(server, slot);
    if (server->table->consistency == TT_PS_BSP) {
        TT_ASSERT(frame->clock ==
                  slot->round); // nobody computes a round before the one before it is complete
        tti_past *past = server->table->keeps_past ? &slot->past : NULL;
        if (tti_round_add(&slot->collecting, past, slot->partition, server->ops,
                          server->table->slice_count, frame->detail, rows, rows_pushed, gradients))
            round_done = 1;
    } else {
        if (counts)
            slot->clock[frame->sender] = TT_MAX(slot->clock[frame->sender], frame->clock);
        if (rows_pushed > 0)
            tti_partition_step(slot->partition, server->ops, rows, rows_pushed, gradients,
                               frame->detail);
    }
    if (changes)
        tti_server_changed(server, slot);
    if (frame->partition == 0 && slot->state != TTI_BACKUP)
        tt_store_relaxed(&server->counters.iterations, slot->partition->iterations);
    if (round_done)
        slot->past.round = slot->round;
    slot->round += (uint32_t)round_done;
    slot->news |= round_done;
    if (slot->state == TTI_BACKUP)
        return;
    // When everything is as it says: who hears it may rest, and what is here be saved.
    tti_server_ack(server, slot, frame);
    if (round_done && tti_server_seal_if_due(server, slot))
        return;
    if (slot->parked != NULL)
        tti_server_unpark(server, slot);
}

// BSP: a slice that is in, whoever it came from: a worker may have died after it sent it, and
// another have done it again.
static int
is_in(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    if (server->table->consistency != TT_PS_BSP)
        return 0;
    return frame->clock < slot->round ||
           (frame->clock == slot->round && tti_round_has(&slot->collecting, frame->detail));
}

static void
answer_probe(tt_ps_server *server, tti_slot *slot, const tt_frame *request)
{
    tt_frame frame = answer(server, slot, request, TT_FRAME_PUSH_ACK);
    frame.flags = is_in(server, slot, request) ? TT_FRAME_BEFORE : 0;
    // What is in here must be so at the backup, for whoever hears it does not send it again.
    tti_copies_answer(server, slot, request->sender, &frame);
}

// The rows of a push, created where they are not there; false without memory for one, or when its
// keys are not known and were asked for. *rows NULL: all of them. *values: where its gradients
// begin.
static int
rows_of_push(tt_ps_server *server,
             const tti_slot *slot,
             const tt_frame *frame,
             const uint8_t *payload,
             const uint32_t **rows,
             const uint8_t **values)
{
    size_t name_bytes;
    *rows = NULL;
    *values = payload;
    if ((frame->flags & TT_FRAME_WHOLE) != 0)
        return 1;
    if ((frame->flags & TT_FRAME_NAMED) != 0) {
        *rows = tti_server_named_rows(server, slot, frame, payload, &name_bytes);
        *values += name_bytes;
        return *rows != NULL;
    }
    uint32_t *found = tti_server_rows(server, frame->count + 1);
    *values += tti_padded(frame->count * tti_key_bytes(server->table));
    *rows = found;
    return tti_partition_find_or_create_all(slot->partition, payload, frame->count, found) ==
           frame->count;
}

int
tti_server_apply_copy(tt_ps_server *server,
                      tti_slot *slot,
                      const tt_frame *frame,
                      const uint8_t *payload)
{
    const uint32_t *rows;
    const uint8_t *values;
    size_t floats = (size_t)row_count(slot, frame) * server->table->width;
    int is_next_round = server->table->consistency != TT_PS_BSP ||
                        (frame->clock == slot->round && !is_in(server, slot, frame));
    if (!is_next_round || !rows_of_push(server, slot, frame, payload, &rows, &values))
        return 0;
    tti_server_apply(server, slot, frame, rows, tti_server_decode(server, frame, values, floats));
    return 1;
}

// Its sequence and clock, and no rows.
static tt_frame
empty_push(const tt_frame *frame)
{
    tt_frame empty = *frame;
    empty.flags &= (uint16_t) ~(TT_FRAME_WHOLE | TT_FRAME_BF16 | TT_FRAME_CARRY | TT_FRAME_NAMED);
    empty.count = empty.payload_bytes = 0;
    return empty;
}

static void
apply_here(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    tt_frame empty;
    if ((frame->flags & TT_FRAME_PROBE) != 0) {
        answer_probe(server, slot, frame);
        return;
    }
    if (frame->sequence <= slot->sequence[frame->sender] || is_in(server, slot, frame)) {
        slot->sequence[frame->sender] = TT_MAX(slot->sequence[frame->sender], frame->sequence);
        tti_count(&server->counters.duplicates, 1);
        tti_server_ack(server, slot, frame);
        return;
    }
    if (server->table->consistency == TT_PS_BSP && frame->clock > slot->round) {
        // A worker whose slices touch few partitions may be a round ahead of this one.
        tti_server_hold(server, slot, frame, payload, 0);
        return;
    }
    const uint32_t *rows;
    const uint8_t *values;
    if (tti_server_has_batch(server, slot, frame)) {
        tti_count(&server->counters.duplicates, 1);
        empty = empty_push(frame);
        frame = &empty;
    }
    if (!rows_of_push(server, slot, frame, payload, &rows, &values))
        return; // not applied, not acknowledged: it will be sent again
    size_t floats = (size_t)row_count(slot, frame) * server->table->width;
    tti_copies_forward(server, slot, frame, rows, payload, values);
    tti_server_apply(server, slot, frame, rows, tti_server_decode(server, frame, values, floats));
}

static void
answer_sealed(tt_ps_server *server, tti_slot *slot, const tt_frame *frame)
{
    if ((frame->flags & TT_FRAME_PROBE) != 0)
        answer_probe(server, slot, frame);
    else
        tti_server_ack(server, slot, frame);
}

void
tti_server_handle_push(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    if (frame->sequence < tti_sequence_base(slot->restored_at)) {
        // Of a state that is lost, and so is whatever became of it there: it is to be sent anew.
        tti_server_answer_moved(server, slot, frame);
        return;
    }
    switch (slot->state) {
    case TTI_SERVING:
        apply_here(server, slot, frame, payload);
        break;
    case TTI_ARRIVING:
        tti_server_arriving(server, slot, frame, payload);
        break;
    case TTI_SEALED:
        // What a round before the seal contains is in it, and stays so.
        if (server->table->consistency == TT_PS_BSP && frame->clock < slot->round)
            answer_sealed(server, slot, frame);
        else
            tti_server_answer_moved(server, slot, frame);
        break;
    case TTI_BACKUP:
        tti_backup_request(server, slot, frame, payload);
        break;
    case TTI_ABSENT:
    case TTI_RETIRED:
        tti_server_answer_moved(server, slot, frame);
        break;
    }
}
