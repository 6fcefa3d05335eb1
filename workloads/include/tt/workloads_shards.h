// Who reads which rows. `tt_shards` cuts a data set into shards of random rows and gives every
// shard an order per epoch; `tt_ledger` hands rows to nodes under ASP and SSP so that every example
// is taken exactly once per epoch, whoever owns, leases or loses a shard meanwhile.
//
// Caveats: at most 2^32 - 2 rows and 65,535 shards. Everything is a function of (seed, data set's
// row count, shard count): the number of workers and their speed never change what a shard holds
// or its order in an epoch.
#ifndef TT_WORKLOADS_SHARDS_H
#define TT_WORKLOADS_SHARDS_H

#include "tt/core_archive.h"
#include "tt/workloads_data.h"

// ---- Shards: immutable once open, shared by all threads ----

typedef struct tt_shards tt_shards;

// Permutes the rows (stream TT_RNG_DATA_ORDER, rank 0) and cuts them into `shard_count` contiguous
// pieces whose sizes differ by at most 1. Reads data->row_count only; `data` is not kept.
//
// errors   TT_RANGE shard_count is 0, more than the rows or more than 65,535; TT_NOMEM
// owns     `*out` belongs to the caller, release with tt_shards_close; NULL on failure
TT_NODISCARD tt_status tt_shards_open(
    const tt_dataset *data, uint32_t shard_count, uint64_t seed, tt_shards **out, tt_error *err);
void tt_shards_close(tt_shards *shards);
uint32_t tt_shards_count(const tt_shards *shards);
uint64_t tt_shards_row_count(const tt_shards *shards);
// Rows of one shard; at least 1.
uint32_t tt_shards_size(const tt_shards *shards, uint32_t shard);

// Scratch of one thread: the shuffled order of the last (shard, epoch) asked for, so that a run of
// calls on one shard shuffles once. A zeroed cache is valid for _fini only.
typedef struct tt_shard_cache {
    uint32_t *order; // [largest shard]
    uint32_t shard;
    uint64_t epoch;
    int filled;
    uint32_t *group;     // shards of the last slice in the order of its epoch, [shard_count]
    uint64_t *group_end; // rows of group[0..i] together, [shard_count]
    uint32_t group_count;
    uint32_t slice_count, slice;
    uint64_t group_epoch;
    int group_filled;
} tt_shard_cache;

// Allocates once for all later calls with these shards; nothing below allocates.
TT_NODISCARD tt_status tt_shard_cache_init(tt_shard_cache *cache, const tt_shards *shards);
void tt_shard_cache_fini(tt_shard_cache *cache);

// rows[0..count) = positions [begin, begin + count) of `shard` in its order of `epoch`:
// Fisher-Yates with stream (seed, TT_RNG_SHARD_ORDER, epoch * shard_count + shard). begin + count
// is at most tt_shards_size. thread [worker], one cache per thread; costs a shuffle when (shard,
// epoch) changes.
void tt_shards_rows(const tt_shards *shards,
                    tt_shard_cache *cache,
                    uint32_t shard,
                    uint64_t epoch,
                    uint32_t begin,
                    uint32_t count,
                    uint32_t *rows);

// For BSP: slice k of `slice_count` owns the shards s with s % slice_count == k and goes through
// them epoch after epoch, in a seeded order of shards per epoch. Position p of a slice means the
// p-th example of that endless walk: rows[0..count) = positions [first_position, first_position +
// count), which may cross shards and epochs. Deterministic whoever asks, and each example of the
// slice occurs exactly once in every tt_shards_slice_size positions.
// 1 <= slice_count <= shard_count, slice < slice_count. thread [worker], one cache per thread.
void tt_shards_slice_rows(const tt_shards *shards,
                          tt_shard_cache *cache,
                          uint32_t slice_count,
                          uint32_t slice,
                          uint64_t first_position,
                          uint32_t count,
                          uint32_t *rows);
// Examples of one slice = positions of one of its epochs.
uint64_t tt_shards_slice_size(const tt_shards *shards, uint32_t slice_count, uint32_t slice);

// ---- Ledger: who works on which shard under ASP and SSP ----
//
// Each shard has an owner (a node), a position (epoch, cursor: the rows before it are taken) and at
// most one leaseholder. A node holds at most one lease and keeps it until the shard's epoch is
// finished, it releases, or the shard was assigned to somebody else. With E the epoch of the
// slowest shard, a node that needs rows picks the first shard of this list:
//   1. its own, in epoch E, not leased by another
//   2. another's (or nobody's), in epoch E, not leased          counted as stolen if it has an
//   owner
//   3. its own, in epoch E + 1, not leased by another
//   4. another's, in epoch E + 1, not leased                    counted as stolen
//   5. any in epoch E although another leases it: both draw from its one cursor, counted as stolen
// One of them always exists until a limit is reached, hence: nobody ever waits, no shard is ever
// more than one epoch ahead of the slowest, and every example is taken exactly once in every epoch.
// A node that stops for good without a release holds up nobody (5). Rows taken and not yet trained
// are the caller's concern.

typedef struct tt_ledger tt_ledger;

#define TT_LEDGER_NOBODY ((uint16_t)0xffff)

typedef struct tt_ledger_stats {
    uint64_t examples_taken;
    uint64_t examples_stolen; // of these, taken from shards that another node owned (rules 2, 4, 5)
    uint64_t epochs_finished; // every example was taken this many times
    double epochs;            // examples_taken / rows
} tt_ledger_stats;

// Nodes are 0 .. node_count - 1 (at most 65,534). Every shard starts without owner; assign before
// training. Keeps `shards`, which must outlive the ledger. Memory: node_count shuffled shards.
TT_NODISCARD tt_status tt_ledger_open(const tt_shards *shards,
                                      uint32_t node_count,
                                      tt_ledger **out,
                                      tt_error *err);
void tt_ledger_close(tt_ledger *ledger);

// Training-data relocation: owner[shard] is a node or TT_LEDGER_NOBODY, [shard_count]. Takes effect
// without stopping anybody: a shard under lease by a node that is not its new owner passes on, with
// its cursor, when the holder next asks. Returns the number of shards that changed owner.
// thread [any]
uint32_t tt_ledger_assign(tt_ledger *ledger, const uint16_t *owner);

// Balanced owners with the fewest moves from the present ones: is_worker[node] is non-zero for the
// nodes to share the shards, at least one of them; each gets floor or ceiling of the mean. Writes
// owner_out[shard_count], changes nothing, returns how many shards would change owner.
// thread [any]
uint32_t tt_ledger_plan(tt_ledger *ledger, const uint8_t *is_worker, uint16_t *owner_out);

// No example is taken more than `epochs` times from here on, nor those that were already. At first
// there is no limit. thread [any]
void tt_ledger_set_limit(tt_ledger *ledger, uint64_t epochs);

// rows[0..count) = the next examples for `node`, from as many shards as needed; returns `count`, or
// how many there were before the limit.
// thread [worker], one caller per node at a time; takes the ledger's mutex once for each 32 shards
// touched (that is, once).
uint32_t tt_ledger_take(tt_ledger *ledger, uint32_t node, uint32_t count, uint32_t *rows);

// The node stops working: its lease, if any, returns with its cursor. It may take again later.
// thread [any]
void tt_ledger_release(tt_ledger *ledger, uint32_t node);

// thread [any]
tt_ledger_stats tt_ledger_read(tt_ledger *ledger);
uint64_t tt_ledger_examples(tt_ledger *ledger);
double tt_ledger_epochs(tt_ledger *ledger);

// Positions in all shards, for a checkpoint: who owns and leases what is not part of it. Load into
// a ledger just opened over the same shards, then assign. Rows that were taken and not yet trained
// are the caller's to remember. errors TT_CORRUPT also: of other shards; TT_NOMEM is in the
// archive. thread [any]
void tt_ledger_save(tt_ledger *ledger, tt_archive *out);
TT_NODISCARD tt_status tt_ledger_load(tt_ledger *ledger, tt_archive *in);
// The rest, for whoever goes on where this ledger stands: who owns and leases what. Load behind the
// positions, without assigning.
void tt_ledger_save_owners(tt_ledger *ledger, tt_archive *out);
TT_NODISCARD tt_status tt_ledger_load_owners(tt_ledger *ledger, tt_archive *in);

#endif
