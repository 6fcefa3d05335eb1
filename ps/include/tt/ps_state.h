// The state of a whole table at rest, as bytes: parameters, optimiser state, step counts. It does
// not depend on who held a partition, so that it is restored on any number of servers, in place or
// not, and on another cut into partitions (a cluster of another size).
//
// Layout, little-endian: u64 number of partitions; for each u32 id, rows, width, arrays, round, 0;
// u64 steps, iterations; sparse: u64 keys[rows]; then `arrays` times f32 [rows][width] in the order
// weights, optimiser state (its first and second array), averaging term, as far as the table has
// them.
//
// Caveats: nobody may write to the table meanwhile: all workers rest, no partition is on its way.
// Sequence records and staleness clocks are not part of it: whoever restores begins them anew.
#ifndef TT_PS_STATE_H
#define TT_PS_STATE_H

#include "tt/comm.h"
#include "tt/core_archive.h"

typedef struct tt_ps_state tt_ps_state;
struct tt_ps_table;
struct tt_ps_server;
struct tt_ps_store;

// How many partitions tt_ps_server_save will write, and about how many bytes they take.
uint32_t tt_ps_server_save_count(const struct tt_ps_server *server, uint64_t *bytes);
// Appends the partitions that are served here. thread [control], with the server at rest
void tt_ps_server_save(const struct tt_ps_server *server, tt_archive *out);
// Appends the count and all partitions.
void tt_ps_store_save(struct tt_ps_store *store, tt_archive *out);
uint64_t tt_ps_store_save_bytes(const struct tt_ps_store *store);

// Reads what was saved, for `table`, which may be cut otherwise. Borrows the archive's bytes until
// closed.
// errors TT_CORRUPT damaged; TT_INVALID of another table (rows, width or optimiser differ);
// TT_NOMEM
TT_NODISCARD tt_status tt_ps_state_open(const struct tt_ps_table *table,
                                        tt_archive *in,
                                        tt_ps_state **out,
                                        tt_error *err);
void tt_ps_state_close(tt_ps_state *state);
// BSP: rounds applied.
uint32_t tt_ps_state_round(const tt_ps_state *state);
// Fills the partitions of a server that was just started, or of a store just opened. With another
// cut, rows go where they belong; step counts are the largest of any, and averages keep their
// values. errors TT_NOMEM
TT_NODISCARD tt_status tt_ps_server_load(struct tt_ps_server *server, const tt_ps_state *state);
TT_NODISCARD tt_status tt_ps_store_load(struct tt_ps_store *store, const tt_ps_state *state);

// ---- over the network --------------------------------------------------------------------------

struct tt_ps_view;

// Copies of all partitions, asked for from their servers and put together as tt_ps_server_save and
// the count before it would write them. A state machine like client and server (tt/ps.h); at rest
// as above. attempt: of the process that asks; what an earlier one asked for it does not hear.
// thread: the caller's
typedef struct tt_ps_copier tt_ps_copier;
TT_NODISCARD tt_status tt_ps_copier_open(const struct tt_ps_table *table,
                                         tt_outbox outbox,
                                         uint32_t attempt,
                                         tt_ps_copier **out);
void tt_ps_copier_close(tt_ps_copier *copier);
// view: who has what; borrowed until the copies are taken or abandoned.
void tt_ps_copier_begin(tt_ps_copier *copier, const struct tt_ps_view *view, uint64_t now_ns);
// A frame SAVED.
void tt_ps_copier_receive(tt_ps_copier *copier, const tt_frame *frame, const uint8_t *payload);
// Asks again for what has not come for retry_ns.
void tt_ps_copier_tick(tt_ps_copier *copier, uint64_t now_ns, uint64_t retry_ns);
int tt_ps_copier_done(const tt_ps_copier *copier);
uint64_t tt_ps_copier_bytes(const tt_ps_copier *copier);
// Appends the count and all partitions, when done.
void tt_ps_copier_take(tt_ps_copier *copier, tt_archive *out);
void tt_ps_copier_abandon(tt_ps_copier *copier);

// Answers a frame RESTORE. state NULL: there is no checkpoint, everything begins at zero.
void tt_ps_state_answer(const struct tt_ps_table *table,
                        const tt_ps_state *state,
                        const tt_frame *request,
                        tt_outbox outbox);

#endif
