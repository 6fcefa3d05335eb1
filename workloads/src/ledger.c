// Who works on which shard. The mutex guards everything but the caches, which belong to their
// nodes. Only positions are decided under it; rows are shuffled and copied outside.
#include "shards_internal.h"
#include <pthread.h>
#include <string.h>

#define SEGMENTS_MAX 32u // ranges decided under one lock
#define NO_SHARD     UINT32_MAX
#define NODES_MAX    65534u

struct entry {
    uint64_t epoch;  // of the next row to take
    uint32_t cursor; // rows taken in it, below the shard's size
    uint16_t owner, holder;
};

struct segment {
    uint64_t epoch;
    uint32_t shard, begin, count;
};

struct tt_ledger {
    const tt_shards *shards;
    uint32_t node_count;
    tt_shard_cache *cache; // [node_count], each used by its node's thread alone
    pthread_mutex_t mu;
    // guarded by mu
    struct entry *entry;  // [shard_count]
    uint32_t *lease;      // shard leased by a node or NO_SHARD, [node_count]
    uint32_t *held;       // scratch of the planner, [node_count]
    uint32_t *target;     // likewise
    uint64_t epoch;       // of the slowest shard
    uint64_t epoch_limit; // no shard enters this one
    uint32_t unfinished;  // shards in that epoch
    uint64_t taken, stolen;
};

static void
lock(tt_ledger *ledger)
{
    int rc = pthread_mutex_lock(&ledger->mu);
    TT_ASSERT(rc == 0);
}

static void
unlock(tt_ledger *ledger)
{
    int rc = pthread_mutex_unlock(&ledger->mu);
    TT_ASSERT(rc == 0);
}

static tt_status
allocate(tt_ledger *ledger)
{
    uint32_t nodes = ledger->node_count, shards = ledger->shards->shard_count;
    ledger->cache = tt_mem_zalloc(nodes, sizeof *ledger->cache);
    ledger->entry = tt_mem_zalloc(shards, sizeof *ledger->entry);
    ledger->lease = tt_mem_zalloc(nodes, sizeof *ledger->lease);
    ledger->held = tt_mem_zalloc(nodes, sizeof *ledger->held);
    ledger->target = tt_mem_zalloc(nodes, sizeof *ledger->target);
    if (ledger->cache == NULL || ledger->entry == NULL || ledger->lease == NULL ||
        ledger->held == NULL || ledger->target == NULL)
        return TT_NOMEM;
    for (uint32_t node = 0; node < nodes; node++) {
        ledger->lease[node] = NO_SHARD;
        // The order of a shard is all that is used of a cache here; slices are for BSP.
        uint32_t *order = tt_mem_alloc(ledger->shards->largest * sizeof *order);
        if (order == NULL)
            return TT_NOMEM;
        ledger->cache[node].order = order;
    }
    for (uint32_t shard = 0; shard < shards; shard++)
        ledger->entry[shard].owner = ledger->entry[shard].holder = TT_LEDGER_NOBODY;
    return TT_OK;
}

tt_status
tt_ledger_open(const tt_shards *shards, uint32_t node_count, tt_ledger **out, tt_error *err)
{
    *out = NULL;
    if (node_count == 0 || node_count > NODES_MAX)
        return tt_error_set(err, TT_RANGE, NULL, NULL,
                            "the number of nodes must be 1 to %u, not %u", NODES_MAX, node_count);
    tt_ledger *ledger = tt_mem_zalloc(1, sizeof *ledger);
    if (ledger != NULL) {
        ledger->shards = shards;
        ledger->node_count = node_count;
        ledger->unfinished = shards->shard_count;
        ledger->epoch_limit = UINT64_MAX;
        int rc = pthread_mutex_init(&ledger->mu, NULL);
        TT_ASSERT(rc == 0);
        if (allocate(ledger) == TT_OK) {
            *out = ledger;
            return TT_OK;
        }
        tt_ledger_close(ledger);
    }
    return tt_error_set(err, TT_NOMEM, NULL, "use fewer nodes or more shards",
                        "no memory for the order of one shard (%u rows) on each of %u nodes",
                        shards->largest, node_count);
}

void
tt_ledger_close(tt_ledger *ledger)
{
    if (ledger == NULL)
        return;
    for (uint32_t node = 0; ledger->cache != NULL && node < ledger->node_count; node++)
        tt_shard_cache_fini(&ledger->cache[node]);
    (void)pthread_mutex_destroy(&ledger->mu);
    tt_mem_free(ledger->cache);
    tt_mem_free(ledger->entry);
    tt_mem_free(ledger->lease);
    tt_mem_free(ledger->held);
    tt_mem_free(ledger->target);
    tt_mem_free(ledger);
}

static void
drop_lease(tt_ledger *ledger, uint32_t node)
{
    uint32_t shard = ledger->lease[node];
    if (shard == NO_SHARD)
        return;
    TT_ASSERT(ledger->entry[shard].holder == node);
    ledger->entry[shard].holder = TT_LEDGER_NOBODY;
    ledger->lease[node] = NO_SHARD;
}

uint32_t
tt_ledger_assign(tt_ledger *ledger, const uint16_t *owner)
{
    uint32_t changed = 0;
    lock(ledger);
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        struct entry *entry = &ledger->entry[shard];
        TT_ASSERT(owner[shard] == TT_LEDGER_NOBODY || owner[shard] < ledger->node_count);
        if (entry->owner == owner[shard])
            continue;
        changed++;
        entry->owner = owner[shard];
        // The holder has nothing of the shard but rows it already took, so the lease can end right
        // here: it finds out when it next asks.
        if (entry->holder != TT_LEDGER_NOBODY && entry->holder != owner[shard])
            drop_lease(ledger, entry->holder);
    }
    unlock(ledger);
    return changed;
}

void
tt_ledger_release(tt_ledger *ledger, uint32_t node)
{
    TT_ASSERT(node < ledger->node_count);
    lock(ledger);
    drop_lease(ledger, node);
    unlock(ledger);
}

void
tt_ledger_set_limit(tt_ledger *ledger, uint64_t epochs)
{
    lock(ledger);
    ledger->epoch_limit = epochs;
    unlock(ledger);
}

// The shard for `node` to draw from next, or NO_SHARD when all have reached the last epoch's end:
// the five rules of the header, as ranks 1 to 5. The first shard of the lowest rank, looked for
// from a place that differs between nodes so that those who steal do not crowd.
static uint32_t
choose(const tt_ledger *ledger, uint32_t node)
{
    uint32_t count = ledger->shards->shard_count, best = NO_SHARD;
    uint32_t start = (uint32_t)((uint64_t)node * count / ledger->node_count);
    int best_rank = 6;
    for (uint32_t i = 0; i < count && best_rank > 1; i++) {
        uint32_t shard = start + i < count ? start + i : start + i - count;
        const struct entry *entry = &ledger->entry[shard];
        if (entry->epoch > ledger->epoch + 1 || entry->epoch >= ledger->epoch_limit)
            continue;
        int ahead = entry->epoch != ledger->epoch,
            rank = (entry->owner == node ? 1 : 2) + 2 * ahead;
        if (entry->holder != TT_LEDGER_NOBODY)
            rank = ahead ? 6 : 5;
        if (rank < best_rank) {
            best_rank = rank;
            best = shard;
        }
    }
    TT_ASSERT(best != NO_SHARD || ledger->epoch >= ledger->epoch_limit);
    return best;
}

// A shard has left the slowest epoch; when it was the last, the next epoch is the slowest.
static void
finish_shard(tt_ledger *ledger, struct entry *entry)
{
    entry->cursor = 0;
    entry->epoch++;
    if (entry->epoch != ledger->epoch + 1 || --ledger->unfinished > 0)
        return;
    ledger->epoch++;
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++)
        ledger->unfinished += ledger->entry[shard].epoch == ledger->epoch;
    // Everybody was at most one epoch ahead, hence somebody is in this one unless all were ahead.
    TT_ASSERT(ledger->unfinished > 0);
}

// An empty one when there is nothing left to take.
static struct segment
take_segment(tt_ledger *ledger, uint32_t node, uint32_t wanted)
{
    uint32_t shard = ledger->lease[node];
    if (shard == NO_SHARD)
        shard = choose(ledger, node);
    if (shard == NO_SHARD)
        return (struct segment){0};
    struct entry *entry = &ledger->entry[shard];
    if (entry->holder == TT_LEDGER_NOBODY) {
        entry->holder = (uint16_t)node;
        ledger->lease[node] = shard;
    }
    uint32_t left = tt_shards_size(ledger->shards, shard) - entry->cursor;
    TT_ASSERT(left > 0);
    struct segment segment = {entry->epoch, shard, entry->cursor, TT_MIN(left, wanted)};
    ledger->taken += segment.count;
    if (entry->owner != node && entry->owner != TT_LEDGER_NOBODY)
        ledger->stolen += segment.count;
    entry->cursor += segment.count;
    if (segment.count == left) {
        if (entry->holder != TT_LEDGER_NOBODY)
            drop_lease(ledger, entry->holder);
        finish_shard(ledger, entry);
    }
    return segment;
}

uint32_t
tt_ledger_take(tt_ledger *ledger, uint32_t node, uint32_t count, uint32_t *rows)
{
    TT_ASSERT(node < ledger->node_count);
    struct segment segments[SEGMENTS_MAX];
    uint32_t done = 0;
    for (int more = 1; more && done < count;) {
        uint32_t decided = done, segment_count = 0;
        lock(ledger);
        while (more && decided < count && segment_count < SEGMENTS_MAX) {
            segments[segment_count] = take_segment(ledger, node, count - decided);
            more = segments[segment_count].count > 0;
            decided += segments[segment_count].count;
            segment_count += (uint32_t)more;
        }
        unlock(ledger);
        for (uint32_t i = 0; i < segment_count; i++) {
            const struct segment *s = &segments[i];
            tt_shards_rows(ledger->shards, &ledger->cache[node], s->shard, s->epoch, s->begin,
                           s->count, rows + done);
            done += s->count;
        }
    }
    return done;
}

tt_ledger_stats
tt_ledger_read(tt_ledger *ledger)
{
    lock(ledger);
    tt_ledger_stats stats = {
        .examples_taken = ledger->taken,
        .examples_stolen = ledger->stolen,
        .epochs_finished = ledger->epoch,
        .epochs = (double)ledger->taken / (double)ledger->shards->row_count,
    };
    unlock(ledger);
    return stats;
}

uint64_t
tt_ledger_examples(tt_ledger *ledger)
{
    return tt_ledger_read(ledger).examples_taken;
}

double
tt_ledger_epochs(tt_ledger *ledger)
{
    return tt_ledger_read(ledger).epochs;
}

// target[node] = shards a worker shall own. With floor and ceiling fixed by balance, moves are
// fewest when the ceilings go to those that own the most (any exchange argument shows it): a worker
// that owns more than floor keeps one more shard by having a ceiling, another does not.
static void
set_targets(tt_ledger *ledger, const uint8_t *is_worker)
{
    uint32_t workers = 0, shard_count = ledger->shards->shard_count;
    for (uint32_t node = 0; node < ledger->node_count; node++)
        workers += is_worker[node] != 0;
    TT_ASSERT(workers > 0);
    uint32_t base = shard_count / workers, extra = shard_count % workers;
    for (uint32_t node = 0; node < ledger->node_count; node++) {
        ledger->target[node] = is_worker[node] ? base : 0;
        if (is_worker[node] && ledger->held[node] > base && extra > 0) {
            ledger->target[node]++;
            extra--;
        }
    }
    for (uint32_t node = 0; node < ledger->node_count && extra > 0; node++)
        if (is_worker[node] && ledger->target[node] == base) {
            ledger->target[node]++;
            extra--;
        }
}

uint32_t
tt_ledger_plan(tt_ledger *ledger, const uint8_t *is_worker, uint16_t *owner_out)
{
    uint32_t shard_count = ledger->shards->shard_count, moved = 0, next = 0;
    lock(ledger);
    memset(ledger->held, 0, ledger->node_count * sizeof *ledger->held);
    for (uint32_t shard = 0; shard < shard_count; shard++)
        if (ledger->entry[shard].owner != TT_LEDGER_NOBODY)
            ledger->held[ledger->entry[shard].owner]++;
    set_targets(ledger, is_worker);
    memset(ledger->held, 0, ledger->node_count * sizeof *ledger->held);
    // Whoever is at work on its own shard keeps it, if it keeps any: pass 0 sees only those.
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t shard = 0; shard < shard_count; shard++) {
            const struct entry *entry = &ledger->entry[shard];
            int at_work = entry->holder == entry->owner;
            if (at_work != (pass == 0))
                continue;
            owner_out[shard] = TT_LEDGER_NOBODY;
            if (entry->owner == TT_LEDGER_NOBODY ||
                ledger->held[entry->owner] == ledger->target[entry->owner])
                continue;
            owner_out[shard] = entry->owner;
            ledger->held[entry->owner]++;
        }
    for (uint32_t shard = 0; shard < shard_count; shard++) {
        if (owner_out[shard] != TT_LEDGER_NOBODY)
            continue;
        while (ledger->held[next] == ledger->target[next])
            next++;
        owner_out[shard] = (uint16_t)next;
        ledger->held[next]++;
        moved++;
    }
    unlock(ledger);
    return moved;
}

// ---- the state at rest ------------------------------------------------------------------------

void
tt_ledger_save(tt_ledger *ledger, tt_archive *out)
{
    lock(ledger);
    tt_archive_tag(out, ledger->shards->shard_count);
    tt_archive_tag(out, ledger->shards->row_count);
    TT_ARCHIVE(out, ledger->taken);
    TT_ARCHIVE(out, ledger->stolen);
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        TT_ARCHIVE(out, ledger->entry[shard].epoch);
        TT_ARCHIVE(out, ledger->entry[shard].cursor);
    }
    unlock(ledger);
}

// The slowest epoch and how many shards are in it. False when no ledger can be in such a state.
static int
settle_epochs(tt_ledger *ledger)
{
    uint32_t count = ledger->shards->shard_count;
    ledger->epoch = UINT64_MAX;
    ledger->unfinished = 0;
    for (uint32_t shard = 0; shard < count; shard++)
        ledger->epoch = TT_MIN(ledger->epoch, ledger->entry[shard].epoch);
    for (uint32_t shard = 0; shard < count; shard++) {
        const struct entry *entry = &ledger->entry[shard];
        if (entry->cursor >= tt_shards_size(ledger->shards, shard))
            return 0;
        ledger->unfinished += entry->epoch == ledger->epoch;
    }
    return 1;
}

tt_status
tt_ledger_load(tt_ledger *ledger, tt_archive *in)
{
    lock(ledger);
    tt_archive_tag(in, ledger->shards->shard_count);
    tt_archive_tag(in, ledger->shards->row_count);
    TT_ARCHIVE(in, ledger->taken);
    TT_ARCHIVE(in, ledger->stolen);
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        TT_ARCHIVE(in, ledger->entry[shard].epoch);
        TT_ARCHIVE(in, ledger->entry[shard].cursor);
    }
    int sound = settle_epochs(ledger);
    unlock(ledger);
    if (!sound)
        tt_archive_damaged(in);
    return in->status;
}

// A lease is known by its shard's holder.
void
tt_ledger_save_owners(tt_ledger *ledger, tt_archive *out)
{
    lock(ledger);
    tt_archive_tag(out, ledger->node_count);
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        TT_ARCHIVE(out, ledger->entry[shard].owner);
        TT_ARCHIVE(out, ledger->entry[shard].holder);
    }
    unlock(ledger);
}

// False when no ledger can be in such a state.
static int
settle_leases(tt_ledger *ledger)
{
    for (uint32_t node = 0; node < ledger->node_count; node++)
        ledger->lease[node] = NO_SHARD;
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        struct entry *entry = &ledger->entry[shard];
        if ((entry->owner != TT_LEDGER_NOBODY && entry->owner >= ledger->node_count) ||
            (entry->holder != TT_LEDGER_NOBODY &&
             (entry->holder >= ledger->node_count || ledger->lease[entry->holder] != NO_SHARD))) {
            entry->owner = entry->holder = TT_LEDGER_NOBODY;
            return 0;
        }
        if (entry->holder != TT_LEDGER_NOBODY)
            ledger->lease[entry->holder] = shard;
    }
    return 1;
}

tt_status
tt_ledger_load_owners(tt_ledger *ledger, tt_archive *in)
{
    lock(ledger);
    tt_archive_tag(in, ledger->node_count);
    for (uint32_t shard = 0; shard < ledger->shards->shard_count; shard++) {
        TT_ARCHIVE(in, ledger->entry[shard].owner);
        TT_ARCHIVE(in, ledger->entry[shard].holder);
    }
    int sound = settle_leases(ledger);
    unlock(ledger);
    if (!sound)
        tt_archive_damaged(in);
    return in->status;
}
