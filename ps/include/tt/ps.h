// ps: the parameter server. One table of parameters cut into partitions, a server core that owns
// partitions and applies pushes to them, a worker client core that pulls and pushes, and the rules
// by which a partition changes server while both go on.
//
// Server and client are state machines: (state, message) -> messages. They own no thread, no socket
// and no clock; a driver feeds them frames and carries what they put into their outbox. The
// in-place store at the end is the driver of its own kind: workers of one process touch the
// partitions directly, without a message.
//
// A partition has one owner. With replicas a second node, its backup, applies what the owner
// applies, and a push is acknowledged when both have it.
//
// Caveats: one table a job. The state at rest as bytes, for checkpoints, is in tt/ps_state.h.
// The protocol, field by field, is in ps/README.md.
#ifndef TT_PS_H
#define TT_PS_H

#include "tt/comm.h"
#include "tt/core.h"
#include "tt/core_vec.h"
#include "tt/ps_state.h"

enum { TT_PS_NODES_MAX = 4096, TT_PS_SLICES_MAX = 256 };

// ---- tables -----------------------------------------------------------------------------------

typedef enum tt_ps_table_kind {
    TT_PS_DENSE, // rows 0 .. rows - 1, partitions are ranges
    TT_PS_SPARSE // rows by 64-bit key, created when first pushed, zero before; partitions by hash
} tt_ps_table_kind;

typedef enum tt_ps_optimizer_kind {
    TT_PS_SGD,     // w -= lr(t) g
    TT_PS_ADAGRAD, // s += g^2; w -= lr(t) g / (sqrt(s) + epsilon)    Duchi, Hazan, Singer 2011
    TT_PS_ADD,     // w += g
    // v = momentum v + g; w -= lr(t) v, or with Nesterov's look-ahead w -= lr(t) (g + momentum v)
    // Polyak 1964; Sutskever, Martens, Dahl, Hinton 2013
    TT_PS_MOMENTUM,
    // m += (1 - beta1)(g - m); v += (1 - beta2)(g^2 - v); w -= lr(t) m' / (sqrt(v') + epsilon) with
    // the biases of m and v taken out; the state of rows that a push does not touch stands still
    // Kingma, Ba 2015, algorithm 1
    TT_PS_ADAM,
    // z += g - (sqrt(n + g^2) - sqrt(n)) w / lr; n += g^2;
    // w = 0 where |z| <= l1, else -(z - sign(z) l1) lr / (beta + sqrt(n))
    // McMahan et al. 2013, algorithm 1
    TT_PS_FTRL,
} tt_ps_optimizer_kind;

typedef enum tt_ps_schedule {
    TT_PS_CONSTANT,     // lr
    TT_PS_INVERSE,      // lr / (1 + decay t)
    TT_PS_INVERSE_SQRT, // lr / sqrt(1 + decay t)
    TT_PS_EXPONENTIAL,  // lr exp(-decay t)
} tt_ps_schedule;

typedef enum tt_ps_consistency { TT_PS_ASP, TT_PS_SSP, TT_PS_BSP } tt_ps_consistency;

typedef struct tt_ps_table {
    tt_ps_table_kind kind;
    uint64_t rows;  // dense
    uint32_t width; // floats a row
    uint32_t partition_count;
    tt_ps_consistency consistency;
    uint32_t slice_count; // BSP: contributions that make a round
    tt_ps_optimizer_kind optimizer;
    double learning_rate;
    tt_ps_schedule schedule;
    double decay;   // per iteration
    double epsilon; // AdaGrad, Adam
    double momentum;
    int nesterov;
    double beta1, beta2; // Adam
    double l1, ftrl_beta;
    // 1: keep the polynomial-decay average of the iterates, weights t^3 (Shamir and Zhang 2013, eq.
    // 4 with eta = 3): what read-only pulls return and what is saved. Kept lazily: avg_T = w_T -
    // (1/C_T) sum_s C_(s-1) delta_s, C_s = sum_(t<=s) t^3.
    int averaging;
    // BSP: servers keep the parameters of the round before, for workers that take over the slices
    // of one that died while it pushed.
    int keeps_past;
    // 1: every partition has a backup, as long as there are two nodes
    int replicas;
} tt_ps_table;

// Floats of optimiser state beside each weight.
uint32_t tt_ps_state_count(const tt_ps_table *table);
// Learning rate at iteration t (0, 1, ...).
double tt_ps_learning_rate(const tt_ps_table *table, uint64_t iteration);
// Partition of a key, and for dense tables its first row (partition_count gives rows).
uint32_t tt_ps_partition_of(const tt_ps_table *table, uint64_t key);
uint64_t tt_ps_partition_first(const tt_ps_table *table, uint32_t partition);
// A good partition count: about 4 for each server there can be, fewer when the table is small.
uint32_t tt_ps_partition_count_for(uint64_t rows, uint32_t servers_max);

// ---- placement --------------------------------------------------------------------------------

// How a partition gets to its new owner.
typedef enum tt_ps_move {
    TT_PS_MOVE_ON_DEMAND, // workers carry what they touch, the rest follows behind
    TT_PS_MOVE_DRAIN, // the old owner sends everything at once; workers carry nothing and ask only
                      // the new one, which holds their requests until the rows are there
    TT_PS_MOVE_RESTORE, // the old owner died; the new one takes it from the last checkpoint
    TT_PS_MOVE_PROMOTE, // the old owner died; the new one has a copy of all that was acknowledged
} tt_ps_move;

enum { TT_PS_NOBODY = UINT16_MAX }; // of a partition: no backup, no spare

// Who does what in one generation. Immutable once published; nodes adopt it at their next iteration
// boundary.
typedef struct tt_ps_view {
    uint32_t generation;
    uint32_t node_count, partition_count, slice_count;
    uint32_t effective_round; // BSP: the round from which it holds; else 0
    uint32_t lost_at;         // generation of the last death, or 0
    // BSP, after the death of a worker: from the first round on that may lack one of its slices,
    // and before the second, workers ask first what is in already.
    uint32_t redo_from, redo_until;
    uint32_t ended_before; // BSP: rounds before this one were over everywhere when it was published
    uint16_t slice_owner[TT_PS_SLICES_MAX];
    // [node_count]
    uint8_t *is_worker;
    uint8_t *is_gone;     // died and has not come back; neither serves nor works
    uint32_t *attempt;    // 1, 2, ...: which of the processes with this number it is
    uint32_t *join_clock; // SSP: where the clock of a worker that joins begins
    uint32_t *joined_at;  // generation in which the node became a worker
    uint16_t *host;       // nodes of one host are lost together: a backup is on another, if it can
    // [partition_count]
    uint16_t *owner;
    uint16_t *previous;    // owner before the last move
    uint32_t *moved_at;    // generation of the last move, or 0
    uint32_t *restored_at; // generation in which it was last taken from a checkpoint, or 0
    uint8_t *moved_by;     // tt_ps_move of the last move
    // Nodes that have, or are being given, what the owner acknowledges: all of them must have it
    // first. The spare has it for as long as it is not known that the backup does. It may be the
    // owner itself, of a partition that is moving to its backup. Of one that moves to its backup,
    // or to the host of that from another, the old owner becomes the backup.
    uint16_t *backup, *spare;
    uint32_t *backup_at; // generation in which the backup was made that
    // Generation from which on it has been, without a pause, the one or the other: a copy of before
    // a pause is not known of.
    uint32_t *backup_since, *spare_since;
    uint32_t replicas; // as the table's
} tt_ps_view;

// The first generation (1): is_server says who serves, everybody else works; partitions and slices
// dealt out evenly.
TT_NODISCARD tt_status tt_ps_view_first(const tt_ps_table *table,
                                        uint32_t node_count,
                                        const uint8_t *is_server,
                                        tt_ps_view **out);
// Of a first view: host[node_count], any numbers; without it every node has one of its own.
void tt_ps_view_set_hosts(tt_ps_view *view, const uint16_t *host);
// Partitions of a first view where `placement`, of the same table and nodes, has them.
void tt_ps_view_place_as(tt_ps_view *view, const tt_ps_view *placement);
// All partitions of a first view come from a checkpoint.
void tt_ps_view_restore(tt_ps_view *view);
// Generation + 1 with other servers: balanced with the fewest moves. is_server NULL: same
// placement, another setting.
TT_NODISCARD tt_status tt_ps_view_next(const tt_ps_view *view,
                                       const uint8_t *is_server,
                                       tt_ps_view **out);
// The partitions that move in this generation (on demand by default) move like this. Before it is
// published.
void tt_ps_view_move_by(tt_ps_view *view, tt_ps_move move);
// Generation + 1 without the nodes of is_dead[node_count] (and those that were gone before): their
// partitions, like those still on their way from or to one of them (moving[partition_count]
// non-zero), go on from the copy of their backup, where that is known to have one
// (is_backed[partition_count]; NULL: none), or of their spare. Where there is no copy they go to
// the other servers and back to the last checkpoint. Slices of the dead go to other workers. When
// no server is left the first workers become servers, so that there are `servers`, but at least one
// worker stays; when no worker is left there is none until the next generation. errors TT_NOMEM;
// TT_PEER fewer than two nodes are left
TT_NODISCARD tt_status tt_ps_view_without(const tt_ps_view *view,
                                          const uint8_t *is_dead,
                                          const uint8_t *moving,
                                          const uint8_t *is_backed,
                                          uint32_t servers,
                                          tt_ps_view **out);
// Generation + 1 with nodes that have come back (is_back[node_count]) under new attempts
// (attempt[node_count]); roles as in tt_ps_view_next. errors TT_NOMEM
TT_NODISCARD tt_status tt_ps_view_with(const tt_ps_view *view,
                                       const uint8_t *is_back,
                                       const uint32_t *attempt,
                                       const uint8_t *is_server,
                                       tt_ps_view **out);
// Gives a partition to another server in a view that is not yet published; its backup keeps its
// copy, and where that is the new owner, or on the new owner's host but not on the old one's, the
// old one becomes the backup.
void tt_ps_view_give(tt_ps_view *view, uint32_t partition, uint16_t to);
// Generation + 1 with backups for partitions that have none, or not the best there is (on another
// host, and a server), and without spares that are of no use any more. is_backed[partition_count]:
// the backup is known to have its copy. *out NULL: there is nothing to change. errors TT_NOMEM
TT_NODISCARD tt_status tt_ps_view_protect(const tt_ps_view *view,
                                          const uint8_t *is_backed,
                                          tt_ps_view **out);
// Whether the backup of a partition in `after`, the generation that follows `before`, is known to
// have a copy, when that is known of the one in `before` (was_backed).
int tt_ps_view_is_backed(const tt_ps_view *before,
                         const tt_ps_view *after,
                         uint32_t partition,
                         int was_backed);
// Partitions whose owner differs.
uint32_t tt_ps_view_moves(const tt_ps_view *from, const tt_ps_view *to);
// A view as bytes, for nodes that do not share the master's memory. Faults are in the archive's
// status.
void tt_ps_view_save(const tt_ps_view *view, tt_archive *out);
// errors TT_CORRUPT these are no bytes of a view; TT_NOMEM
TT_NODISCARD tt_status tt_ps_view_load(tt_archive *in, tt_ps_view **out);
void tt_ps_view_free(tt_ps_view *view);

// ---- server core ------------------------------------------------------------------------------

typedef struct tt_ps_server tt_ps_server;

// A batch by name (ASP, SSP), of a worker's: the last of its `rows` examples is the `end`-th that
// process `attempt` of this worker was given. rows 0: none.
typedef struct tt_ps_batch {
    uint64_t end;
    uint32_t rows, attempt;
} tt_ps_batch;

typedef struct tt_ps_hooks {
    void *self;
    // The newest view known here; asked when a message shows that there is a newer one than the
    // server's. If this is older still, the message waits.
    const tt_ps_view *(*newest)(void *self);
    // Partition `partition`, moved at `generation`, has left this server and its memory is free;
    // or, restored at `generation`, it is here.
    void (*retired)(void *self, uint32_t partition, uint32_t generation);
    // The backup of a partition that is owned here, as of `generation`, has all that is
    // acknowledged. NULL: nobody wants to know.
    void (*backed)(void *self, uint32_t partition, uint32_t generation);
    // Called while a view is adopted that tells of worker's death: the last of its batches that is
    // in at some partition that was ever here. Not called: none is. NULL: nobody wants to know.
    void (*last_batch)(void *self, uint32_t worker, const tt_ps_batch *batch);
    uint32_t keeper;  // the end that keeps the last checkpoint: asked for what is to be restored
    uint32_t attempt; // which process of its node's number this is (tt_ps_view); 0 is 1
} tt_ps_hooks;

// Each written by the server's thread, read by any (relaxed).
typedef struct tt_ps_server_counters {
    uint64_t pulls, pushes, duplicates, parked, moved_answers;
    uint64_t bytes_carried, bytes_drained,
        bytes_fetched; // parameter bytes (with state) installed here, by how they came
    uint64_t rows_installed;
    uint64_t partition_bytes; // memory of the partitions held now
    uint64_t iterations; // pushes applied to partition 0 held here, merged ones counted as many
} tt_ps_server_counters;

TT_NODISCARD tt_status tt_ps_server_open(const tt_ps_table *table,
                                         uint32_t node,
                                         uint32_t node_count,
                                         tt_outbox outbox,
                                         tt_ps_hooks hooks,
                                         tt_ps_server **out,
                                         tt_error *err);
// The first view: partitions owned by this node begin here at zero, or are restored from the last
// checkpoint where the view says so.
TT_NODISCARD tt_status tt_ps_server_start(tt_ps_server *server, const tt_ps_view *view);
// The first view of a process that begins while the job goes on: what it owns there is on its way
// from the previous owner.
void tt_ps_server_join(tt_ps_server *server, const tt_ps_view *view);
// A newer view: seals what leaves, awaits what comes. Older or equal ones are ignored.
void tt_ps_server_adopt(tt_ps_server *server, const tt_ps_view *view);
// A newer view may be known by now (hooks.newest): adopts it if messages wait for it, or somebody
// has died. The driver calls it whenever it lets messages in.
void tt_ps_server_hear(tt_ps_server *server);
void tt_ps_server_set_ops(tt_ps_server *server, const tt_vec_ops *ops);
// A frame for a server (PULL, PUSH, FETCH, PIECE, SEAL, COMPLETE, MOVED of a fetch).
void tt_ps_server_receive(tt_ps_server *server, const tt_frame *frame, const uint8_t *payload);
// Work that waits for a free moment: drains sealed partitions, one piece a call, or one partition
// when that is how it moves; makes room for those that are to come, one a call, and asks for them.
// True when there is more.
int tt_ps_server_background(tt_ps_server *server);
// Time passes: asks again for what has not come. The driver calls it every few milliseconds.
void tt_ps_server_tick(tt_ps_server *server);
// Partitions that are not yet settled here (sealed, arriving, or with answers that wait for a
// backup), and all that are held but the copies of a backup.
uint32_t tt_ps_server_moving(tt_ps_server *server);
uint32_t tt_ps_server_held(const tt_ps_server *server);
void tt_ps_server_counters_read(const tt_ps_server *server, tt_ps_server_counters *out);
// Copies what is here of the model that would be saved into out[rows][width], the whole table; the
// rest of it stays as it is. A partition on its way has rows in two places: all servers are asked
// for what they have sealed (sealed 1), and then for what they serve (sealed 0), which is newer.
// thread   [any], while no server runs: where they take turns, as on simulated hosts
void tt_ps_server_read(const tt_ps_server *server, int sealed, float *out);
void tt_ps_server_close(tt_ps_server *server);

// ---- worker client core -----------------------------------------------------------------------

typedef struct tt_ps_client tt_ps_client;

// The rows of one operation: ascending 32-bit rows (dense), any 64-bit keys (sparse), or every row
// of the table (both NULL).
typedef struct tt_ps_keys {
    const uint32_t *rows;
    const uint64_t *keys;
    uint32_t count;
} tt_ps_keys;

enum { TT_PS_WAIT_BUCKETS = 40 };

typedef struct tt_ps_client_counters {
    uint64_t pulls, pushes, resent, redirected, carried;
    uint64_t lists_again, lists_unknown; // lists of keys that were kept; that a server did not know
    uint64_t lent;                       // gradients that a server read where they were written
    uint64_t read, read_in_vain; // parameters read where a server keeps them, and changed meanwhile
    uint64_t moving_wait_count;  // answers waited for on a moving partition
    uint64_t moving_wait_max_ns;
    // The same by length: bucket b has those from 2^(b/2) to 2^((b+1)/2) microseconds, the first
    // and the last one all below and above.
    uint64_t moving_waits[TT_PS_WAIT_BUCKETS];
} tt_ps_client_counters;

// max_keys: rows of the largest operation. sequence_base: 0, or past what an earlier client of this
// node used.
TT_NODISCARD tt_status tt_ps_client_open(const tt_ps_table *table,
                                         uint32_t node,
                                         uint32_t node_count,
                                         uint32_t max_keys,
                                         tt_outbox outbox,
                                         tt_ps_hooks hooks,
                                         tt_ps_client **out,
                                         tt_error *err);
// At an iteration boundary only (no operation under way).
void tt_ps_client_adopt(tt_ps_client *client, const tt_ps_view *view);
// A view in which nodes have died was published while an operation is under way: requests to them
// go to who has their partitions now. The view itself is adopted at the boundary.
void tt_ps_client_lose(tt_ps_client *client, const tt_ps_view *view);
void tt_ps_client_set(tt_ps_client *client, uint32_t in_flight, int bf16);
// The time that goes with the calls that follow.
void tt_ps_client_time(tt_ps_client *client, uint64_t now_ns);
// Starts pulling `keys` into out[count][width]. need: rounds (BSP) or least worker clock (SSP) the
// answer must include, 0 under ASP. read_only: the model that would be saved (averaged when
// averaging is on), whole table only. Borrows keys and out until done, and keys until the push
// after it is done.
void
tt_ps_client_pull(tt_ps_client *client, tt_ps_keys keys, uint32_t need, int read_only, float *out);
// Memory for the gradients of the largest operation, where servers of this host can read it, so
// that a push need not copy. Ask for it before each gradient is written, with no push under way: a
// server may still be reading what was pushed there and then abandoned, and it is another piece of
// memory until it has. NULL without memory, the first time only. The client's, as long as it lives.
float *tt_ps_client_gradients(tt_ps_client *client);
// Starts pushing the gradients of the rows last pulled. clock: iterations of this worker so far,
// this one included (SSP), or the round (BSP); detail: iterations merged into this push (ASP, SSP)
// or the slice (BSP). Borrows gradients until done.
void
tt_ps_client_push(tt_ps_client *client, const float *gradients, uint32_t clock, uint32_t detail);
// ASP, SSP: the pushes that follow are parts of this batch, which `worker` was given first. Where
// it is in already a push of it by another, or by another process, counts as one of nothing.
void tt_ps_client_name_batch(tt_ps_client *client, uint32_t worker, tt_ps_batch batch);
// BSP: starts asking every partition whether `slice` of `round` is in; tt_ps_client_had tells when
// done.
void tt_ps_client_probe(tt_ps_client *client, uint32_t round, uint32_t slice);
int tt_ps_client_had(const tt_ps_client *client);
// BSP: some of what the last pull wanted are parameters of a round that is not kept any more.
int tt_ps_client_is_late(const tt_ps_client *client);
// SSP: starts telling every partition this worker's clock, for one that was restored knows
// nobody's. Nothing under ASP and BSP.
void tt_ps_client_announce(tt_ps_client *client, uint32_t clock);
// SSP: starts telling every partition that this worker has no more data, so that nobody waits for
// its clock (as if it stood at infinity; Ho et al. 2013). Nothing under ASP and BSP.
void tt_ps_client_end(tt_ps_client *client);
// A frame for a worker (PULL_REPLY, PUSH_ACK, MOVED).
void tt_ps_client_receive(tt_ps_client *client, const tt_frame *frame, const uint8_t *payload);
// Sends again what has had no answer for retry_ns (1 1/8 of it at most).
void tt_ps_client_tick(tt_ps_client *client, uint64_t retry_ns);
int tt_ps_client_done(const tt_ps_client *client);
// Forgets what is under way: a pull, because the job stops or somebody died; a push only with all
// that this client stands for, since nobody knows what became of it.
void tt_ps_client_abandon(tt_ps_client *client);
void tt_ps_client_counters_read(const tt_ps_client *client, tt_ps_client_counters *out);
// The longest wait on a moving partition since this was last asked, nanoseconds. thread: the
// worker's
uint64_t tt_ps_client_take_longest_wait(tt_ps_client *client);
// Iterations of others that were applied between the last push's pull and itself, as its servers
// counted them; mean over the partitions. NAN: not counted (BSP, or all came from a checkpoint
// meanwhile).
double tt_ps_client_staleness(const tt_ps_client *client);
// The middle of a bucket of moving_waits, seconds. thread [any]
double tt_ps_wait_bucket_s(uint32_t bucket);
void tt_ps_client_close(tt_ps_client *client);

// ---- in place ---------------------------------------------------------------------------------

// The table in the memory of one process, touched by all workers directly. Dense tables are read
// and written without locks (Hogwild, Niu et al. 2011): concurrent updates of one float may lose
// one of them. Sparse tables take a lock a partition. Consistency is kept as by servers: SSP waits
// for clocks, BSP reduces each round in slice order.
typedef struct tt_ps_store tt_ps_store;

TT_NODISCARD tt_status tt_ps_store_open(const tt_ps_table *table,
                                        uint32_t node_count,
                                        tt_ps_store **out,
                                        tt_error *err);
// Who works now (SSP clocks of others are ignored); join clocks as in a view. thread [control], or
// a worker adopting
void tt_ps_store_adopt(tt_ps_store *store, const tt_ps_view *view);
// False when `stop` was raised while waiting. spin: pauses before sleeping. thread [worker]
int tt_ps_store_pull(tt_ps_store *store,
                     uint32_t worker,
                     tt_ps_keys keys,
                     uint32_t need,
                     uint32_t spin,
                     const int *stop,
                     float *out);
void tt_ps_store_push(tt_ps_store *store,
                      const tt_vec_ops *ops,
                      uint32_t worker,
                      tt_ps_keys keys,
                      const float *gradients,
                      uint32_t clock,
                      uint32_t detail);
// SSP: this worker has no more data; nobody waits for its clock. thread [worker]
void tt_ps_store_end(tt_ps_store *store, uint32_t worker);
// The model that would be saved, whole dense table or the given keys. thread [any] (racy while
// workers push)
void tt_ps_store_read(tt_ps_store *store, tt_ps_keys keys, float *out);
// Wakes workers that wait, so that they see `stop`.
void tt_ps_store_wake(tt_ps_store *store);
void tt_ps_store_close(tt_ps_store *store);

#endif
