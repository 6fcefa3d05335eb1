// Moving a partition while it is used: sealing at the old owner, arriving at the new one, fetch,
// drain, completion. The rules are numbered as in ps/README.md. Source: Towards Self-Tuning
// Parameter Servers, Section V (On-Demand Model Relocation), completed by rules that an exhaustive
// search of a model found necessary.
#include "server_core.h"
#include <string.h>

enum {
    RESERVED_BYTES_MAX = 4 << 20,
    RESTORE_PATIENCE_MAX = 256, // ticks
    SEALS_LENT_MAX = 4          // after that many, its rows are sent
};

static tt_frame
move_frame(const tt_ps_server *server, const tti_slot *slot, tt_frame_kind kind)
{
    return (tt_frame){.kind = (uint16_t)kind,
                      .attempt = server->attempt,
                      .generation = server->view->generation,
                      .partition = (uint16_t)tti_slot_index(server, slot),
                      .extra = slot->moved_at};
}

static int
is_drain(const tt_ps_server *server, const tti_slot *slot)
{
    return server->view->moved_by[tti_slot_index(server, slot)] == TT_PS_MOVE_DRAIN;
}

static void
send_to_peer(tt_ps_server *server,
             const tti_slot *slot,
             tt_frame *frame,
             const tt_span *spans,
             uint32_t span_count)
{
    server->outbox.send(server->outbox.self, slot->peer, frame, spans, span_count);
}

// ---- requests that wait -----------------------------------------------------------------------

void
tti_server_hold(tt_ps_server *server,
                tti_slot *slot,
                const tt_frame *frame,
                const uint8_t *payload,
                int fetched)
{
    for (tti_held *held = slot->held; held != NULL; held = held->next)
        if (held->frame.sender == frame->sender && held->frame.sequence == frame->sequence &&
            held->frame.kind == frame->kind)
            return; // asked again while it waits
    tti_held *held = slot->held_count < TTI_HELD_MAX ? tti_hold(frame, payload) : NULL;
    if (held == NULL)
        return; // dropped: it will be asked again (rule 3)
    held->fetched = fetched;
    held->pushed = server->pushed;
    *(slot->held != NULL ? slot->held_end : &slot->held) = held;
    slot->held_end = &held->next;
    slot->held_count++;
}

void
tti_server_retry_held(tt_ps_server *server, tti_slot *slot)
{
    while (slot->held != NULL && slot->news) {
        slot->news = 0;
        tti_held *waiting = slot->held;
        slot->held = NULL;
        slot->held_count = 0;
        while (waiting != NULL) {
            tti_held *next = waiting->next;
            slot->fetched = waiting->fetched;
            server->pushed = waiting->pushed;
            if (waiting->frame.kind == TT_FRAME_PULL)
                tti_server_handle_pull(server, slot, &waiting->frame, waiting->payload);
            else
                tti_server_handle_push(server, slot, &waiting->frame, waiting->payload);
            slot->fetched = 0;
            tt_mem_free(waiting);
            waiting = next;
        }
    }
}

// ---- the old owner ----------------------------------------------------------------------------

// Who asks again and again cannot take what it is lent.
static void
end_vain_loan(tt_ps_server *server, tti_slot *slot)
{
    if (!slot->departure.loan.is_out || ++slot->departure.stated <= SEALS_LENT_MAX)
        return;
    tti_server_end_rows_loan(server, slot);
    slot->departure.drained = 0;
}

static void
send_seal(tt_ps_server *server, tti_slot *slot)
{
    end_vain_loan(server, slot);
    const tti_rows_loan *loan = &slot->departure.loan;
    size_t nodes = server->node_count;
    tti_seal seal = {.steps = slot->partition->steps,
                     .iterations = slot->partition->iterations,
                     .key_count = slot->partition->rows,
                     .round = slot->round,
                     .node_count = server->node_count};
    tt_frame frame = move_frame(server, slot, TT_FRAME_SEAL);
    tt_span spans[6] = {{&seal, sizeof seal},
                        {slot->sequence, nodes * sizeof *slot->sequence},
                        {slot->clock, nodes * sizeof *slot->clock},
                        {server->attempts, nodes * sizeof *server->attempts},
                        {slot->batches, 0},
                        {&loan->rows, 0}};
    if (slot->batches != NULL)
        spans[4].size = nodes * sizeof *slot->batches;
    if (loan->is_out) {
        frame.flags = TT_FRAME_LENT;
        spans[5].size = sizeof loan->rows;
    }
    send_to_peer(server, slot, &frame, spans, 6);
}

// Rules 1 and 2. From here on nothing of this partition changes at this server; everything that
// leaves is a copy of it.
void
tti_server_seal(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t target)
{
    TT_ASSERT(slot->state == TTI_SERVING && slot->collecting.arrived == 0);
    slot->state = TTI_SEALED;
    slot->moved_at = generation;
    slot->peer = target;
    slot->drains = is_drain(server, slot);
    slot->pending_seal = 0;
    slot->ticks = 0;
    slot->departure = (tti_departure){0};
    slot->departure.licensed = tt_mem_zalloc(slot->partition->rows, 1);
    TT_ASSERT(slot->departure.licensed != NULL); // a byte for each row that was just held
    tti_round_fini(&slot->collecting, server->table->slice_count);
    uint32_t p = tti_slot_index(server, slot);
    slot->departure.by_copy = tti_ps_view_hands_over(server->view, p);
    if (!slot->departure.by_copy) {
        tti_server_lend_rows(server, slot);
        slot->departure.drained = slot->departure.loan.is_out;
        send_seal(server, slot);
    }
    // Parked pulls: those the seal can answer get it, the others must be judged where clocks
    // advance.
    tti_held *parked = slot->parked;
    slot->parked = NULL;
    while (parked != NULL) {
        tti_held *next = parked->next;
        tti_server_sealed_pull(server, slot, &parked->frame, parked->payload);
        tt_mem_free(parked);
        parked = next;
    }
    slot->news = 1; // held pushes of the next round: MOVED
}

int
tti_server_seal_if_due(tt_ps_server *server, tti_slot *slot)
{
    if (slot->pending_seal == 0 || slot->round < server->view->effective_round)
        return 0;
    tti_server_seal(server, slot, slot->pending_seal,
                    server->view->owner[tti_slot_index(server, slot)]);
    return 1;
}

// Values as stored, never rounded, with the licence to carry for rows nobody was given yet (rules 4
// and 13). payload: values[count][width] f32 | flags[count] padded to 4 | state of licensed
// existing rows, packed
static void
sealed_reply(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *keys)
{
    tti_partition *partition = slot->partition;
    int whole = (frame->flags & TT_FRAME_WHOLE) != 0;
    uint32_t rows_wanted = whole ? partition->rows : frame->count;
    uint32_t width = partition->width, cell_floats = tti_partition_cell_floats(partition);
    float *values = tti_server_values(server, (size_t)rows_wanted * (width + cell_floats));
    float *state = values + (size_t)rows_wanted * width;
    uint8_t *flags = tti_server_bytes(server, tti_padded(rows_wanted));
    size_t state_floats = 0;
    if (whole)
        tti_partition_gather(partition, NULL, rows_wanted, values);
    for (uint32_t i = 0; i < rows_wanted; i++) {
        uint32_t row =
            whole ? i : tti_partition_find(partition, tti_key_at(server->table, keys, i));
        flags[i] = row == TTI_NO_ROW ? TTI_ROW_LICENSED : TTI_ROW_EXISTS;
        if (row == TTI_NO_ROW) {
            memset(values + (size_t)i * width, 0, width * sizeof(float));
            continue;
        }
        if (!whole)
            tti_partition_gather(partition, &row, 1, values + (size_t)i * width);
        if (slot->departure.licensed[row])
            continue;
        slot->departure.licensed[row] = 1;
        flags[i] |= TTI_ROW_LICENSED;
        if (cell_floats == width)
            continue; // it has no state
        float *cell = state + state_floats;
        tti_partition_export(partition, row, cell);
        memmove(cell, cell + width, (cell_floats - width) * sizeof(float));
        state_floats += cell_floats - width;
    }
    tt_frame out = move_frame(server, slot, TT_FRAME_PULL_REPLY);
    out.flags = (uint16_t)(TT_FRAME_SEALED | (frame->flags & TT_FRAME_WHOLE));
    out.attempt = frame->attempt;
    out.sequence = frame->sequence;
    out.count = rows_wanted;
    out.clock = tti_server_clock(server, slot);
    out.detail = (uint32_t)slot->partition->iterations;
    tt_span spans[3] = {{values, (size_t)rows_wanted * width * sizeof(float)},
                        {flags, tti_padded(rows_wanted)},
                        {state, state_floats * sizeof(float)}};
    server->outbox.send(server->outbox.self, frame->sender, &out, spans, 3);
}

void
tti_server_sealed_pull(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    // Nobody need carry what the new owner takes where it lies.
    int carries = (frame->flags & TT_FRAME_READONLY) == 0 && !slot->departure.loan.is_out;
    tt_frame spelt;
    if (frame->clock > tti_server_clock(server, slot) ||
        (slot->drains && (frame->flags & TT_FRAME_READONLY) == 0))
        tti_server_answer_moved(server, slot, frame);
    else if (!carries)
        tti_server_reply(server, slot, frame, payload);
    else if (tti_server_spell_out(server, slot, frame, &payload, &spelt))
        sealed_reply(server, slot, &spelt, payload);
}

// One PIECE of the given rows (or of keys that may not exist, for a fetch).
// payload: keys[count] padded | flags[count] padded | cells of existing rows, packed
typedef struct seal_piece {
    uint8_t *keys, *flags;
    float *cells;
    uint32_t count, cell_count;
} seal_piece;

static seal_piece
piece_room(tt_ps_server *server, uint32_t rows, uint32_t cell_floats)
{
    seal_piece piece = {0};
    size_t key_bytes = tti_padded(rows * tti_key_bytes(server->table));
    piece.keys = tti_server_bytes(server, key_bytes + tti_padded(rows));
    piece.flags = piece.keys + key_bytes;
    piece.cells = tti_server_values(server, (size_t)rows * cell_floats);
    return piece;
}

static void
piece_add(tt_ps_server *server, tti_slot *slot, seal_piece *piece, uint64_t key, uint32_t row)
{
    if (server->table->kind == TT_PS_DENSE) {
        uint32_t key32 = (uint32_t)key;
        memcpy(piece->keys + piece->count * sizeof key32, &key32, sizeof key32);
    } else {
        memcpy(piece->keys + piece->count * sizeof key, &key, sizeof key);
    }
    piece->flags[piece->count++] = row == TTI_NO_ROW ? 0 : TTI_ROW_EXISTS;
    if (row == TTI_NO_ROW)
        return;
    uint32_t cell_floats = tti_partition_cell_floats(slot->partition);
    tti_partition_export(slot->partition, row,
                         piece->cells + (size_t)piece->cell_count++ * cell_floats);
    slot->departure.licensed[row] = 1;
}

static void
piece_send(tt_ps_server *server, tti_slot *slot, const seal_piece *piece, uint32_t flags)
{
    tt_frame frame = move_frame(server, slot, TT_FRAME_PIECE);
    frame.flags = (uint16_t)flags;
    frame.count = piece->count;
    tt_span spans[3] = {
        {piece->keys, tti_padded(piece->count * tti_key_bytes(server->table))},
        {piece->flags, tti_padded(piece->count)},
        {piece->cells,
         (size_t)piece->cell_count * tti_partition_cell_floats(slot->partition) * sizeof(float)}};
    send_to_peer(server, slot, &frame, spans, 3);
}

static uint32_t
rows_in_piece(const tti_slot *slot)
{
    uint32_t cell_bytes = tti_partition_cell_floats(slot->partition) * (uint32_t)sizeof(float);
    uint32_t limit = TT_MIN(TTI_PIECE_BYTES / (cell_bytes + 9), slot->partition->rows);
    return TT_MAX(limit, 1u);
}

static int
drain_piece(tt_ps_server *server, tti_slot *slot)
{
    uint32_t limit = rows_in_piece(slot);
    seal_piece piece = piece_room(server, limit, tti_partition_cell_floats(slot->partition));
    tti_departure *departure = &slot->departure;
    for (; departure->cursor < slot->partition->rows && piece.count < limit; departure->cursor++)
        if (!departure->licensed[departure->cursor])
            piece_add(server, slot, &piece, tti_row_key(slot->partition, departure->cursor),
                      departure->cursor);
    departure->drained = departure->cursor == slot->partition->rows;
    piece_send(server, slot, &piece, departure->drained ? TT_FRAME_LAST : 0);
    return !departure->drained;
}

// Rule 11: rows that nobody was given to carry. On demand one piece a call, so that requests come
// first; a drain has a partition sent at once, for requests wait for it at the new owner.
void
tti_server_drain(tt_ps_server *server, tti_slot *slot)
{
    if (slot->departure.by_copy) {
        tti_copies_hand_over(server, slot);
        slot->departure.drained = 1;
        return;
    }
    while (drain_piece(server, slot) && slot->drains)
        ; // as many pieces as the partition has
}

static void
send_everything(tt_ps_server *server, tti_slot *slot)
{
    uint32_t limit = rows_in_piece(slot);
    for (uint32_t row = 0; row < slot->partition->rows;) {
        seal_piece piece = piece_room(server, limit, tti_partition_cell_floats(slot->partition));
        for (; row < slot->partition->rows && piece.count < limit; row++)
            piece_add(server, slot, &piece, tti_row_key(slot->partition, row), row);
        piece_send(server, slot, &piece, TT_FRAME_ALL);
    }
}

void
tti_server_send_offer(tt_ps_server *server, const tti_slot *slot)
{
    tt_frame frame = move_frame(server, slot, TT_FRAME_PIECE);
    frame.extra = slot->pending_seal;
    frame.flags = TT_FRAME_HEADER;
    frame.detail = slot->partition->rows;
    uint16_t owner = server->view->owner[tti_slot_index(server, slot)];
    server->outbox.send(server->outbox.self, owner, &frame, NULL, 0);
}

static void
answer_fetch(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    if (slot->departure.by_copy)
        return; // it is on its way
    if ((frame->flags & TT_FRAME_HEADER) != 0)
        send_seal(server, slot);
    if ((frame->flags & TT_FRAME_ALL) != 0)
        send_everything(server, slot);
    if (frame->count == 0)
        return;
    seal_piece piece = piece_room(server, frame->count, tti_partition_cell_floats(slot->partition));
    for (uint32_t i = 0; i < frame->count; i++) {
        uint64_t key = tti_key_at(server->table, payload, i);
        piece_add(server, slot, &piece, key, tti_partition_find(slot->partition, key));
    }
    piece_send(server, slot, &piece, TT_FRAME_ALL);
}

// Rule 5: what the new owner needs at once.
void
tti_server_handle_fetch(tt_ps_server *server,
                        tti_slot *slot,
                        const tt_frame *frame,
                        const uint8_t *payload)
{
    if (slot->state == TTI_SERVING && slot->pending_seal == frame->extra)
        tti_server_asked(server, slot, frame);
    else if (slot->state == TTI_SEALED && frame->extra == slot->moved_at)
        answer_fetch(server, slot, frame, payload);
    // not adopted yet: it will be asked again; retired: the asker has everything
}

// Rule 9: freed when the new owner says so, never because everything was sent.
void
tti_server_handle_complete(tt_ps_server *server, tti_slot *slot, const tt_frame *frame)
{
    if (slot->state != TTI_SEALED || frame->extra != slot->moved_at)
        return;
    uint16_t owner = slot->peer;
    tti_held *answers = tti_copies_take_answers(slot);
    if (tti_is_target(server, slot)) {
        tti_backup_stay(server, slot);
    } else {
        tti_slot_clear(server, slot);
        slot->state = TTI_RETIRED;
    }
    slot->peer = owner;
    tti_copies_turn_away(server, slot, answers);
    tti_server_count_bytes(server);
    if (server->hooks.retired != NULL)
        server->hooks.retired(server->hooks.self, tti_slot_index(server, slot), slot->moved_at);
}

// ---- the new owner ----------------------------------------------------------------------------

void
tti_server_expect(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t source)
{
    TT_ASSERT(slot->state == TTI_ABSENT || slot->state == TTI_RETIRED);
    tt_status status = tti_slot_open(server, slot);
    slot->arrival = (tti_arrival){.from_round = server->view->effective_round};
    if (status == TT_OK && server->table->kind == TT_PS_DENSE) {
        slot->arrival.present = tt_mem_zalloc(slot->partition->rows, 1);
        status = slot->arrival.present != NULL ? TT_OK : TT_NOMEM;
    }
    TT_ASSERT(status == TT_OK); // the plan was made for memory that is there
    slot->state = TTI_ARRIVING;
    slot->moved_at = generation;
    slot->peer = source;
    slot->drains = is_drain(server, slot);
    slot->ticks = 0;
}

static int
is_here(const tti_slot *slot, uint64_t key)
{
    if (slot->arrival.present != NULL)
        return key < slot->partition->rows && slot->arrival.present[key];
    return tti_partition_find(slot->partition, key) != TTI_NO_ROW;
}

// Installs one row of the seal unless it is here. cell NULL: the key is not in the seal, it begins
// at zero.
static void
install(
    tt_ps_server *server, tti_slot *slot, uint64_t key, const float *cell, uint64_t *bytes_counter)
{
    if (slot->arrival.present != NULL && is_here(slot, key))
        return;
    uint32_t rows = slot->partition->rows, row = tti_partition_find_or_create(slot->partition, key);
    if (row == TTI_NO_ROW)
        return; // no memory or no such row: it stays missing and is asked for again
    if (slot->arrival.present != NULL)
        slot->arrival.present[key] = 1;
    else if (slot->partition->rows == rows)
        return; // sparse, and it was here
    slot->news = 1;
    if (cell == NULL)
        return;
    tti_partition_import(slot->partition, row, cell);
    slot->arrival.installed++;
    tti_count(bytes_counter, tti_partition_cell_floats(slot->partition) * sizeof(float));
    tti_count(&server->counters.rows_installed, 1);
}

void
tti_server_say_complete(tt_ps_server *server, const tti_slot *slot)
{
    tt_frame frame = move_frame(server, slot, TT_FRAME_COMPLETE);
    send_to_peer(server, slot, &frame, NULL, 0);
}

static void
finish_if_complete(tt_ps_server *server, tti_slot *slot)
{
    if (slot->state != TTI_ARRIVING || !slot->arrival.header_in ||
        slot->arrival.installed < slot->arrival.key_count)
        return;
    slot->state = TTI_SERVING;
    slot->news = 1;
    tt_mem_free(slot->arrival.present);
    slot->arrival.present = NULL;
    tti_server_say_complete(server, slot);
    tti_copies_advance(server, slot);
}

size_t
tti_server_records_bytes(const tt_ps_server *server)
{
    return server->node_count * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
}

// The seal may be of before a worker died or joined: its successor is counted anew.
void
tti_server_install_records(tt_ps_server *server, tti_slot *slot, const uint8_t *records)
{
    const tt_ps_view *view = server->view;
    size_t nodes = server->node_count;
    const uint8_t *clocks = records + nodes * sizeof(uint64_t);
    const uint8_t *attempts = clocks + nodes * sizeof(uint32_t);
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t attempt, clock;
        memcpy(&attempt, attempts + n * sizeof attempt, sizeof attempt);
        if (attempt == server->attempts[n]) {
            memcpy(&slot->sequence[n], records + n * sizeof(uint64_t), sizeof(uint64_t));
            memcpy(&clock, clocks + n * sizeof clock, sizeof clock);
            slot->clock[n] = clock;
        }
        if (n < view->node_count && view->joined_at[n] > 1)
            slot->clock[n] = TT_MAX(slot->clock[n], view->join_clock[n]);
    }
}

// Rule 2: applied to nothing, acknowledged to nobody before the header is in.
void
tti_server_handle_seal(tt_ps_server *server,
                       tti_slot *slot,
                       const tt_frame *frame,
                       const uint8_t *payload)
{
    tti_seal seal;
    size_t records = tti_server_records_bytes(server), without = sizeof seal + records;
    size_t with = without + server->node_count * sizeof(tt_ps_batch);
    int is_lent = (frame->flags & TT_FRAME_LENT) != 0;
    size_t bytes = frame->payload_bytes - (is_lent ? sizeof(tti_lent_rows) : 0);
    if (slot->state != TTI_ARRIVING || slot->arrival.header_in || frame->extra != slot->moved_at ||
        (bytes != without && bytes != with))
        return;
    memcpy(&seal, payload, sizeof seal);
    if (is_lent && !tti_server_take_rows(server, slot, payload + bytes, seal.key_count))
        return; // it will be asked for again
    slot->partition->steps = seal.steps;
    slot->partition->iterations = seal.iterations;
    slot->round = seal.round;
    tti_server_install_records(server, slot, payload + sizeof seal);
    if (bytes == with)
        tti_server_install_batches(server, slot, payload + without);
    slot->arrival.key_count = seal.key_count;
    // Room in advance, but not for whatever a few bytes may claim: more is made when rows come.
    size_t row_bytes =
        tti_partition_cell_floats(slot->partition) * sizeof(float) + 2 * sizeof(uint64_t);
    (void)tti_partition_reserve(slot->partition,
                                TT_MIN(seal.key_count, RESERVED_BYTES_MAX / row_bytes));
    slot->arrival.header_in = 1;
    slot->news = 1;
    slot->ticks = 0;
    finish_if_complete(server, slot);
}

void
tti_server_handle_piece(tt_ps_server *server,
                        tti_slot *slot,
                        const tt_frame *frame,
                        const uint8_t *payload)
{
    if (frame->extra != slot->moved_at)
        return;
    if ((frame->flags & TT_FRAME_HEADER) != 0) {
        tti_server_handle_offer(server, slot, frame);
        return;
    }
    if (slot->state == TTI_SERVING && (frame->flags & TT_FRAME_LAST) != 0 &&
        frame->sender == slot->peer)
        tti_server_say_complete(server, slot); // ours was lost
    if (slot->state != TTI_ARRIVING)
        return;
    const uint8_t *flags = payload + tti_padded(frame->count * tti_key_bytes(server->table));
    const float *cells = (const float *)(const void *)(flags + tti_padded(frame->count));
    uint32_t cell_floats = tti_partition_cell_floats(slot->partition), cell = 0;
    uint64_t *bytes = (frame->flags & TT_FRAME_ALL) != 0 ? &server->counters.bytes_fetched
                                                         : &server->counters.bytes_drained;
    for (uint32_t i = 0; i < frame->count; i++) {
        int exists = (flags[i] & TTI_ROW_EXISTS) != 0;
        const float *original = exists ? cells + (size_t)cell++ * cell_floats : NULL;
        install(server, slot, tti_key_at(server->table, payload, i), original, bytes);
    }
    slot->arrival.last_in |= (frame->flags & TT_FRAME_LAST) != 0;
    if (frame->count > 0)
        slot->ticks = 0; // the repeated word that all was sent is no reason to wait longer
    finish_if_complete(server, slot);
}

// Originals that a worker carried: installed only if they are of this very seal (rule 4).
static void
install_carried(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    uint32_t rows = (frame->flags & TT_FRAME_WHOLE) != 0 ? slot->partition->rows : frame->count;
    size_t key_bytes =
        (frame->flags & TT_FRAME_WHOLE) != 0 ? 0 : tti_padded(rows * tti_key_bytes(server->table));
    size_t float_bytes = (frame->flags & TT_FRAME_BF16) != 0 ? sizeof(tt_bf16) : sizeof(float);
    const uint8_t *flags =
        payload + key_bytes + tti_padded((size_t)rows * server->table->width * float_bytes);
    const float *cells = (const float *)(const void *)(flags + tti_padded(rows));
    uint32_t cell_floats = tti_partition_cell_floats(slot->partition), cell = 0;
    for (uint32_t i = 0; i < rows; i++) {
        if ((flags[i] & TTI_ROW_LICENSED) == 0)
            continue;
        const float *original =
            (flags[i] & TTI_ROW_EXISTS) != 0 ? cells + (size_t)cell++ * cell_floats : NULL;
        uint64_t key = key_bytes == 0 ? i : tti_key_at(server->table, payload, i);
        install(server, slot, key, original, &server->counters.bytes_carried);
    }
}

// Rows of the request that are not here yet, as wire keys in server->rows / bytes; returns how
// many.
static uint32_t
missing_keys(tt_ps_server *server,
             const tti_slot *slot,
             const tt_frame *frame,
             const uint8_t *payload,
             uint8_t **keys)
{
    int whole = (frame->flags & TT_FRAME_WHOLE) != 0;
    uint32_t rows = whole ? slot->partition->rows : frame->count, missing = 0;
    size_t key_bytes = tti_key_bytes(server->table);
    *keys = tti_server_bytes(server, rows * key_bytes + 8);
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t key = whole ? i : tti_key_at(server->table, payload, i);
        if (is_here(slot, key))
            continue;
        uint32_t key32 = (uint32_t)key;
        memcpy(*keys + missing++ * key_bytes,
               key_bytes == 4 ? (const void *)&key32 : (const void *)&key, key_bytes);
    }
    return missing;
}

static void
fetch(tt_ps_server *server, tti_slot *slot, const uint8_t *keys, uint32_t key_count, uint32_t flags)
{
    tt_frame frame = move_frame(server, slot, TT_FRAME_FETCH);
    frame.count = key_count;
    frame.flags = (uint16_t)flags;
    tt_span span = {keys, key_count * tti_key_bytes(server->table)};
    send_to_peer(server, slot, &frame, &span, 1);
}

void
tti_server_fetch_seal(tt_ps_server *server, tti_slot *slot, uint32_t room)
{
    tt_frame frame = move_frame(server, slot, TT_FRAME_FETCH);
    frame.flags = TT_FRAME_HEADER;
    frame.detail = room;
    send_to_peer(server, slot, &frame, NULL, 0);
}

// Rows of the whole partition are still to come, and were asked for or are on their way. Requests
// that wait are looked at whenever a piece comes: not at each of their rows.
static int
waits_for_the_rest(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    return server->table->kind == TT_PS_DENSE && (frame->flags & TT_FRAME_WHOLE) != 0 &&
           (slot->arrival.whole_asked || slot->drains) &&
           slot->arrival.installed < slot->arrival.key_count;
}

// All rows of a request are here: do it. A push is applied to all its keys or to none (rule 7).
static void
serve_arriving(tt_ps_server *server, tti_slot *slot, const tt_frame *frame, const uint8_t *payload)
{
    tti_slot_state arriving = slot->state;
    slot->state = TTI_SERVING; // for this request every row is as in a serving partition
    if (frame->kind == TT_FRAME_PULL)
        tti_server_handle_pull(server, slot, frame, payload);
    else
        tti_server_handle_push(server, slot, frame, payload);
    if (slot->state == TTI_SERVING)
        slot->state = arriving;
}

void
tti_server_arriving(tt_ps_server *server,
                    tti_slot *slot,
                    const tt_frame *frame,
                    const uint8_t *payload)
{
    if (frame->clock < slot->arrival.from_round) {
        // BSP: a request of a round before the move must be served where that round is still
        // collected: waiting here would wait for itself.
        tti_server_answer_moved(server, slot, frame);
        return;
    }
    if (!slot->arrival.header_in) {
        tti_server_hold(server, slot, frame, payload, 0);
        return;
    }
    if (frame->kind == TT_FRAME_PUSH && frame->sequence <= slot->sequence[frame->sender]) {
        tti_count(&server->counters.duplicates, 1);
        tti_server_ack(server, slot, frame);
        return;
    }
    tt_frame spelt;
    if (!tti_server_spell_out(server, slot, frame, &payload, &spelt))
        return;
    frame = &spelt;
    if ((frame->flags & TT_FRAME_CARRY) != 0 && frame->extra == slot->moved_at)
        install_carried(server, slot, frame, payload);
    if (waits_for_the_rest(server, slot, frame)) {
        tti_server_hold(server, slot, frame, payload, 1);
        return;
    }
    uint8_t *keys;
    uint32_t missing = missing_keys(server, slot, frame, payload, &keys);
    if (missing > 0) {
        if (!slot->fetched && !slot->drains) { // a drain is on its way already
            fetch(server, slot, keys, missing, 0);
            slot->arrival.whole_asked |= (frame->flags & TT_FRAME_WHOLE) != 0;
        }
        tti_server_hold(server, slot, frame, payload, 1);
        return;
    }
    serve_arriving(server, slot, frame, payload);
    finish_if_complete(server, slot);
}

// Asks again for what should have come by now; the numbers of ticks only set how soon.
void
tti_server_move_tick(tt_ps_server *server, tti_slot *slot)
{
    if (slot->state == TTI_SERVING && slot->pending_seal != 0 &&
        server->table->consistency != TT_PS_BSP && ++slot->ticks % 4 == 0)
        tti_server_send_offer(server, slot);
    // The old owner may not have heard of the move, and be waiting for this one as a worker.
    if (slot->state == TTI_BACKUP && slot->copies.takes_over && ++slot->ticks % 16 == 0)
        tti_server_fetch_seal(server, slot, 0);
    if (slot->state == TTI_SEALED && slot->departure.by_copy) {
        if (slot->departure.drained && ++slot->ticks % 16 == 0)
            tti_copies_hand_over(server, slot);
        return;
    }
    if (slot->state == TTI_SEALED && slot->departure.drained && ++slot->ticks % 4 == 0) {
        seal_piece nothing = piece_room(server, 1, tti_partition_cell_floats(slot->partition));
        piece_send(server, slot, &nothing,
                   TT_FRAME_LAST); // if its COMPLETE was lost the new owner says it again
    }
    // A whole partition takes longer to come than a row, and is not to be sent again meanwhile.
    uint32_t patience = slot->arrival.restores
                            ? TT_MIN(32u << slot->arrival.asked, (uint32_t)RESTORE_PATIENCE_MAX)
                            : 2u << slot->arrival.asked;
    if (slot->state != TTI_ARRIVING || ++slot->ticks < patience)
        return;
    slot->ticks = 0;
    if (slot->arrival.restores) {
        slot->arrival.asked = TT_MIN(slot->arrival.asked + 1, (uint32_t)TTI_ASKED_MAX);
        tti_server_ask_restore(server, slot);
        return;
    }
    if (!slot->arrival.header_in) {
        tti_server_fetch_seal(server, slot, slot->partition->row_capacity);
        return;
    }
    // Before its last piece the old owner is still sending and has more to say than we could ask:
    // a request for everything would only double its work (and did, over and over, on a busy
    // machine).
    if (!slot->arrival.last_in)
        return;
    slot->arrival.asked = TT_MIN(slot->arrival.asked + 1, (uint32_t)TTI_ASKED_MAX);
    if (server->table->kind == TT_PS_DENSE) {
        tt_frame everything = {.flags = TT_FRAME_WHOLE};
        uint8_t *keys;
        uint32_t missing = missing_keys(server, slot, &everything, NULL, &keys);
        fetch(server, slot, keys, missing, 0);
    } else {
        fetch(server, slot, NULL, 0, TT_FRAME_ALL);
    }
}
