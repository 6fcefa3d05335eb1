// The inside of a server: one slot a partition, and what a move in either direction keeps.
#ifndef TTI_SERVER_CORE_H
#define TTI_SERVER_CORE_H

#include "key_lists.h"
#include "lend.h"
#include "partition.h"
#include "placement.h"
#include "push_batches.h"
#include "tt/ps.h"

typedef enum tti_slot_state {
    TTI_ABSENT,   // not here, never was
    TTI_ARRIVING, // ours from generation moved_at on; rows come one by one
    TTI_SERVING,
    TTI_SEALED,  // given away at moved_at; frozen, read until the new owner has everything
    TTI_RETIRED, // gone; answers MOVED
    TTI_BACKUP,  // somebody else's: applies what that one applies
} tti_slot_state;

// A message kept for later, with its payload behind it.
typedef struct tti_held {
    struct tti_held *next;
    int fetched;     // its missing rows were asked for
    uint16_t to;     // of an answer
    uint64_t number; // of the push that it is, or that a backup must have before it is sent
    tt_frame frame;
    tti_push_batch pushed; // of a push
    _Alignas(16) uint8_t payload[];
} tti_held;

// One slice's contribution to the round being collected (BSP).
typedef struct tti_contribution {
    int present, whole;
    uint32_t count;
    uint32_t *rows; // capacity floats-wise below
    float *gradients;
    size_t row_capacity, gradient_capacity;
} tti_contribution;

typedef struct tti_round {
    tti_contribution *slice; // [slice_count]
    uint32_t arrived;
    float *sum;       // [row_capacity][width], zero between rounds
    uint8_t *touched; // [row_capacity]
    uint32_t *list;   // touched rows
    size_t sum_rows;  // rows there is room for
} tti_round;

// BSP: what the rows that the last round changed were before it.
typedef struct tti_past {
    uint32_t round; // they were these when so many rounds were applied; only if `kept`
    int kept, whole;
    uint32_t count;
    uint32_t *rows;
    float *values; // [count][width], whole: [rows of the partition][width]
    size_t row_capacity, value_capacity;
} tti_past;

// What the new owner keeps while a partition arrives.
typedef struct tti_arrival {
    int header_in;
    uint32_t from_round; // BSP: the round from which it is ours
    uint64_t key_count;  // rows that exist in the seal
    uint64_t installed;  // of these, rows here
    uint8_t *present;    // dense: one byte a row
    int last_in;         // the drain has ended
    int whole_asked;     // for all rows that were missing, once
    uint32_t asked;      // times, since then, for what is missing; each time with more patience
    int restores;        // it comes from the last checkpoint
    int is_offered;      // the old owner waits until there is room for so many rows
    uint32_t offered;
} tti_arrival;

// Rows of a seal that the new owner reads where they lie (server_lend_rows.c).
typedef struct tti_rows_loan {
    int is_out;
    int has_guard; // that is there for this alone
    tti_lent_rows rows;
    void *copies[TTI_ROW_ARRAYS]; // of arrays that do not lie in the pool
} tti_rows_loan;

// What the old owner keeps while it is sealed.
typedef struct tti_departure {
    uint8_t *licensed; // one byte a row: promised to a worker that will carry it, or drained
    uint32_t cursor;   // next row to drain
    int drained;
    int by_copy;     // the new owner gets everything in one piece (tti_ps_view_hands_over)
    uint32_t offers; // times the new owner was told what it is to make room for, before the seal
    uint32_t stated; // times the seal was sent
    tti_rows_loan loan;
} tti_departure;

// A node that is to have all that the owner acknowledges.
typedef struct tti_target {
    uint16_t node;
    uint32_t attempt;
    uint32_t since;     // generation from which on a copy has been wanted there
    int stated, synced; // a copy of the whole was sent; has come
    uint64_t acked;     // number of the last push it has
    uint64_t repeated;  // since that was the last, so many were sent again
    uint32_t ticks, patience;
    uint32_t told_at; // generation in which the master was told that it is synced
} tti_target;

enum { TTI_TARGETS_MAX = 2 };

// Replicas: pushes to a partition are numbered in the order in which its owner applies them.
typedef struct tti_copies {
    uint32_t reign;  // generation in which the owner became that
    uint64_t number; // last push that was applied here
    // at the owner
    tti_target target[TTI_TARGETS_MAX];
    uint32_t target_count;
    tti_held *log, **log_end;         // pushes that some target may not have
    tti_held *answers, **answers_end; // that wait for the targets
    // at a backup
    int has_copy;
    int takes_over; // it is the owner of a partition that is still sealed at its old one
} tti_copies;

typedef struct tti_slot {
    tti_slot_state state;
    uint32_t moved_at; // generation of the last move
    uint16_t peer;     // the other end of that move
    int drains;        // that move is a drain: nobody carries, nobody fetches ahead
    tti_partition *partition;
    int is_shared;        // its weights lie where workers of this host see them
    uint32_t round;       // BSP: rounds applied
    uint32_t restored_at; // generation in which it was last taken from a checkpoint, or 0
    uint64_t *sequence;   // [node_count] last push applied, per worker; as long as it is here
    uint32_t *clock;      // [node_count] SSP: iterations of each worker applied here
    tt_ps_batch *batches; // [node_count] last batch in, per worker; NULL: none
    // Generation that takes it away, under BSP at effective_round, lent when it is asked for; or 0.
    uint32_t pending_seal;
    tti_held *parked;           // pulls that wait for a clock
    tti_held *held, **held_end; // requests that wait for rows, the header or their round
    uint32_t held_count;
    int news; // rows, the header, a round or another state have come: held requests may be possible
    int fetched;    // the request being tried again has asked for its rows before
    uint32_t ticks; // since something last arrived or was asked for
    tti_round collecting;
    tti_past past;
    tti_arrival arrival;
    tti_departure departure;
    tti_copies copies;
} tti_slot;

// What is known of the lists of keys of one partition (server_lists.c).
typedef struct tti_lists tti_lists;

struct tt_ps_server {
    const tt_ps_table *table;
    uint32_t node, node_count;
    uint32_t attempt;   // which process of this number it is
    uint32_t *attempts; // [node_count] of all, as last seen
    tt_outbox outbox;
    tt_ps_hooks hooks;
    const tt_vec_ops *ops;
    const tt_ps_view *view;
    tti_slot *slots;   // [partition_count]; of what never was here, nothing is written
    tti_lists **lists; // [partition_count] sparse tables; NULL where none was named
    int may_move;      // some slot may be arriving, sealed or about to leave; set with those
    tti_held *early, **early_end; // messages of a generation that was not heard of yet
    uint32_t early_count;
    tti_push_batch pushed; // the batch of the push that is being handled
    // [node_count] last batch in at any partition that was ever here; of those dead, as told last
    tt_ps_batch *last_batch, *told_batch;
    tt_ps_server_counters counters;
    // scratch, grown to the largest message
    uint32_t *rows;
    float *values;
    uint8_t *bytes;
    size_t rows_capacity, values_capacity, bytes_capacity;
};

// The sealed header as it travels; behind it, for each node: u64 sequence, u32 clock, u32 attempt
// that these are of; then, if there are some, the last batches; with TT_FRAME_LENT, tti_lent_rows.
typedef struct tti_seal {
    uint64_t steps, iterations, key_count;
    uint32_t round, node_count;
} tti_seal;

enum { TTI_ROW_EXISTS = 1, TTI_ROW_LICENSED = 2 };
enum { TTI_HELD_MAX = 4096, TTI_PIECE_BYTES = 64 << 10, TTI_ASKED_MAX = 6 };

// Written by one thread, read by any.
static inline void
tti_count(uint64_t *counter, uint64_t amount)
{
    tt_store_relaxed(counter, *counter + amount);
}

// The number of the slot's partition.
static inline uint32_t
tti_slot_index(const tt_ps_server *server, const tti_slot *slot)
{
    return (uint32_t)(slot - server->slots);
}

// Parts of a payload begin at multiples of four bytes.
static inline size_t
tti_padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

// scratch that is at least this large; aborts the process when there is no memory for one message
uint32_t *tti_server_rows(tt_ps_server *server, size_t count);
float *tti_server_values(tt_ps_server *server, size_t count);
uint8_t *tti_server_bytes(tt_ps_server *server, size_t count);

// frame_checks.c
// Whether the payload of what was sent to a server is as long as the frame says, and what it asks
// for fits into an answer.
int
tti_server_frame_is_sound(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload);
// The same of the answer to a pull.
int tti_reply_is_sound(const tt_ps_table *table, const tt_frame *frame, const uint8_t *payload);

// state_frames.c
void tti_server_handle_save(tt_ps_server *server, const tti_slot *slot, const tt_frame *frame);
// A slot just opened: its partition comes from the last checkpoint.
void tti_server_await_restore(tt_ps_server *server, tti_slot *slot);
void tti_server_ask_restore(tt_ps_server *server, tti_slot *slot);
void tti_server_handle_restored(tt_ps_server *server,
                                tti_slot *slot,
                                const tt_frame *frame,
                                const uint8_t *payload);

void tti_server_count_bytes(tt_ps_server *server);

size_t tti_key_bytes(const tt_ps_table *table);
uint64_t tti_key_at(const tt_ps_table *table, const uint8_t *keys, uint32_t index);
// The key under which a row travels.
uint64_t tti_row_key(const tti_partition *partition, uint32_t row);

// The sequence from which pushes count: those of before a restore are of a state that is lost.
uint64_t tti_sequence_base(uint32_t restored_at);
// Memory for a partition and what is kept about its workers. errors TT_NOMEM: the slot holds what
// was had
TT_NODISCARD tt_status tti_slot_open(tt_ps_server *server, tti_slot *slot);
// Frees the parameters, and what is known of their rows and of where they lie.
void tti_server_drop_partition(tt_ps_server *server, tti_slot *slot);
// Frees what the slot holds; it is ABSENT then, and knows when it moved.
void tti_slot_clear(tt_ps_server *server, tti_slot *slot);

tti_held *tti_hold(const tt_frame *frame, const uint8_t *payload);
void tti_release_list(tti_held **list);

// server.c
// A sound frame of the present, bare of the name of its batch.
void tti_server_handle(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload);

// requests.c
void tti_server_handle_pull(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
void tti_server_handle_push(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
// Answers parked pulls that can be answered now.
void tti_server_unpark(tt_ps_server *server, tti_slot *slot);
void tti_server_answer_moved(tt_ps_server *server, const tti_slot *slot, const tt_frame *request);
// Applies a push whose rows are all here, records it and acknowledges. rows NULL: whole.
void tti_server_apply(tt_ps_server *server,
                      tti_slot *slot,
                      const tt_frame *frame,
                      const uint32_t *rows,
                      const float *gradients);
void tti_server_want_keys(tt_ps_server *server, const tti_slot *slot, const tt_frame *request);
void tti_server_ack(tt_ps_server *server, tti_slot *slot, const tt_frame *frame);
void tti_server_reply(tt_ps_server *server,
                      const tti_slot *slot,
                      const tt_frame *frame,
                      const uint8_t *payload);
const float *
tti_server_decode(tt_ps_server *server, const tt_frame *frame, const uint8_t *values, size_t count);
uint32_t tti_server_clock(const tt_ps_server *server, const tti_slot *slot);

// copies.c: replicas, the owner's side
// Who is to have copies now.
void tti_copies_aim(tt_ps_server *server, tti_slot *slot);
// Sends what targets still lack and answers that need not wait any more.
void tti_copies_advance(tt_ps_server *server, tti_slot *slot);
// A push that is about to be applied here, to these rows (NULL: all). values: where in its payload
// its gradients begin.
void tti_copies_forward(tt_ps_server *server,
                        tti_slot *slot,
                        const tt_frame *frame,
                        const uint32_t *rows,
                        const uint8_t *payload,
                        const uint8_t *values);
// Sends the answer when all targets have what was applied here.
void tti_copies_answer(tt_ps_server *server, tti_slot *slot, uint16_t to, tt_frame *answer);
// Answers that wait, and that they will not be given here: who asked is told to whom the partition
// has gone, who knows what is in. Takes them.
tti_held *tti_copies_take_answers(tti_slot *slot);
void tti_copies_turn_away(tt_ps_server *server, const tti_slot *slot, tti_held *answers);
// They wait here again: what they are about is in.
void tti_copies_give_answers(tti_slot *slot, tti_held *answers);
// Answers wait, or a target does not have its copy.
int tti_copies_wait(const tti_slot *slot);
void tti_copies_handle_ack(tt_ps_server *server, tti_slot *slot, const tt_frame *frame);
void tti_copies_tick(tt_ps_server *server, tti_slot *slot);
// The whole of a sealed partition to its new owner.
void tti_copies_hand_over(tt_ps_server *server, tti_slot *slot);
// Forgets targets, and answers: they will be asked for again, and elsewhere.
void tti_copies_clear(tti_copies *copies);

// backup.c: replicas, the other side
// Whether the view wants a copy of another's partition here.
int tti_is_target(const tt_ps_server *server, const tti_slot *slot);
// What the view says of a partition that is another's.
void tti_backup_adopt(tt_ps_server *server, tti_slot *slot);
// The partition has become this node's; it goes on from what it has.
void tti_backup_promote(tt_ps_server *server, tti_slot *slot, uint32_t generation);
// A partition that has moved again although this node still has a part in a move before: that one
// was overtaken by a promotion which this node has not heard of.
void tti_backup_forget_the_past(tt_ps_server *server, tti_slot *slot, uint32_t generation);
// It will, when its old owner has sealed it and handed it over.
void tti_backup_await(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t source);
// The old owner of a partition goes on as its backup.
void tti_backup_stay(tt_ps_server *server, tti_slot *slot);
void tti_backup_handle_copy(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
void tti_backup_handle_push(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
// A request to one that takes over.
void tti_backup_request(tt_ps_server *server,
                        tti_slot *slot,
                        const tt_frame *frame,
                        const uint8_t *payload);
// Applies a push of the owner's. False: it could not be, for want of memory, or makes no sense.
int tti_server_apply_copy(tt_ps_server *server,
                          tti_slot *slot,
                          const tt_frame *frame,
                          const uint8_t *payload);

// server_lend.c
// Workers of this host may read the slot's parameters where they lie, if they lie where they can.
void tti_server_share(tt_ps_server *server, tti_slot *slot);
void tti_server_unshare(tt_ps_server *server, tti_slot *slot);
// Around all that changes the parameters of a partition that serves.
void tti_server_change(tt_ps_server *server, const tti_slot *slot);
void tti_server_changed(tt_ps_server *server, const tti_slot *slot);
// Whether the pull, which can be answered now, can be answered with where the values lie.
int tti_server_place(const tt_ps_server *server,
                     const tti_slot *slot,
                     const tt_frame *request,
                     tti_place *out);
// A push whose gradients lie in its sender's memory.
void tti_server_receive_lent(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload);

// server_lend_rows.c
// The old owner's: offers a partition to its new owner and goes on serving it until that one has
// made room for it and asks. False: that will not ask.
TT_NODISCARD int
tti_server_offer(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t target);
// It does.
void tti_server_asked(tt_ps_server *server, tti_slot *slot, const tt_frame *fetch);
// The new owner's.
void tti_server_handle_offer(tt_ps_server *server, tti_slot *slot, const tt_frame *offer);
// Makes room for what is offered, and asks for it. False: nothing is.
int tti_server_make_room(tt_ps_server *server, tti_slot *slot);
// The old owner's: lends all rows of a sealed partition, unless the new owner could not read them.
void tti_server_lend_rows(tt_ps_server *server, tti_slot *slot);
void tti_server_end_rows_loan(tt_ps_server *server, tti_slot *slot);
// The new owner's: takes `rows` rows from where a tti_lent_rows says that they lie, if none came
// before. False: nothing was taken.
TT_NODISCARD int
tti_server_take_rows(tt_ps_server *server, tti_slot *slot, const uint8_t *lent, uint64_t rows);

// server_batches.c
// Takes the name of its batch off a sound push. False: it makes no sense.
int tti_server_take_batch(tt_ps_server *server, tt_frame *frame, const uint8_t *payload);
// The push being handled is of a batch that another began, and that is in here.
int tti_server_has_batch(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame);
// It is applied here.
void tti_server_note_batch(tt_ps_server *server, tti_slot *slot);
// batches: tt_ps_batch[node_count], at any address.
void tti_server_install_batches(tt_ps_server *server, tti_slot *slot, const uint8_t *batches);
// Calls hooks.last_batch for each of the dead of whom there is something new.
void tti_server_tell_batches(tt_ps_server *server);

// server_lists.c
void tti_lists_free(tti_lists *lists, uint32_t node_count);
// Rows of the list that a pull or push names, in a partition that serves; those of a push are
// created. *name_bytes: what stands in the payload before the gradients. NULL: it is not known, and
// the keys were asked for; or there is no memory, and it will be sent again.
const uint32_t *tti_server_named_rows(tt_ps_server *server,
                                      const tti_slot *slot,
                                      const tt_frame *frame,
                                      const uint8_t *payload,
                                      size_t *name_bytes);
// The same request with its keys and without a name, for all who look at keys. False when they were
// not sent, and were asked for.
int tti_server_spell_out(tt_ps_server *server,
                         const tti_slot *slot,
                         const tt_frame *frame,
                         const uint8_t **payload,
                         tt_frame *out);

// rounds.c
// Contributions to the round that is being collected.
void tti_round_save(const tti_round *round, uint32_t slice_count, uint32_t width, tt_archive *out);
// Into a round without contributions. errors TT_CORRUPT; TT_NOMEM
TT_NODISCARD tt_status tti_round_load(tti_round *round,
                                      const tti_partition *partition,
                                      uint32_t slice_count,
                                      tt_archive *in);
TT_NODISCARD tt_status tti_round_init(tti_round *round, uint32_t slice_count);
void tti_round_fini(tti_round *round, uint32_t slice_count);
void tti_past_fini(tti_past *past);
// Of a gathered pull: rows[count] as they were before the last round; NULL: all rows in order.
void tti_past_restore(const tti_past *past,
                      const tti_partition *partition,
                      const uint32_t *rows,
                      uint32_t count,
                      float *values);
int tti_round_has(const tti_round *round, uint32_t slice);
// Stores a contribution; when it was the last one, reduces in slice order and steps. True then.
// past: keeps what the step changes; NULL: not.
int tti_round_add(tti_round *round,
                  tti_past *past,
                  tti_partition *partition,
                  const tt_vec_ops *ops,
                  uint32_t slice_count,
                  uint32_t slice,
                  const uint32_t *rows,
                  uint32_t count,
                  const float *gradients);

// moves.c
// Of each node u64 sequence, then u32 clocks, then u32 attempts that these are of.
size_t tti_server_records_bytes(const tt_ps_server *server);
void tti_server_install_records(tt_ps_server *server, tti_slot *slot, const uint8_t *records);
void tti_server_say_complete(tt_ps_server *server, const tti_slot *slot);
void tti_server_seal(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t target);
void tti_server_expect(tt_ps_server *server, tti_slot *slot, uint32_t generation, uint16_t source);
void tti_server_sealed_pull(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
void tti_server_arriving(tt_ps_server *server,
                         tti_slot *slot,
                         const tt_frame *frame,
                         const uint8_t *payload);
// BSP: a pull of a round that is over here.
void tti_server_past_pull(tt_ps_server *server,
                          const tti_slot *slot,
                          const tt_frame *frame,
                          const uint8_t *payload);
// Keeps a request until tti_server_retry_held.
// fetched: its missing rows were asked for.
void tti_server_hold(tt_ps_server *server,
                     tti_slot *slot,
                     const tt_frame *frame,
                     const uint8_t *payload,
                     int fetched);
// Tries held requests again as long as there is news.
void tti_server_retry_held(tt_ps_server *server, tti_slot *slot);
// BSP: seals if the round at which the partition leaves has come. True then.
int tti_server_seal_if_due(tt_ps_server *server, tti_slot *slot);
// Asks for the seal, and says that there is room for so many rows.
void tti_server_fetch_seal(tt_ps_server *server, tti_slot *slot, uint32_t room);
// Of a partition whose seal is pending: says how many rows there will be.
void tti_server_send_offer(tt_ps_server *server, const tti_slot *slot);
void tti_server_handle_fetch(tt_ps_server *server,
                             tti_slot *slot,
                             const tt_frame *frame,
                             const uint8_t *payload);
void tti_server_handle_piece(tt_ps_server *server,
                             tti_slot *slot,
                             const tt_frame *frame,
                             const uint8_t *payload);
void tti_server_handle_seal(tt_ps_server *server,
                            tti_slot *slot,
                            const tt_frame *frame,
                            const uint8_t *payload);
void tti_server_handle_complete(tt_ps_server *server, tti_slot *slot, const tt_frame *frame);
void tti_server_drain(tt_ps_server *server, tti_slot *slot);
void tti_server_move_tick(tt_ps_server *server, tti_slot *slot);

#endif
