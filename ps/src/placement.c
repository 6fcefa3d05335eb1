// Views: who serves, who works, which partition and which slice is whose.
#include "placement.h"
#include <string.h>

static size_t
array_bytes(size_t p, size_t n)
{
    return p * (5 * sizeof(uint32_t) + 4 * sizeof(uint16_t) + 1) +
           n * (3 * sizeof(uint32_t) + sizeof(uint16_t) + 2);
}

// One piece of memory: the arrays lie behind the view, the widest elements first.
static tt_ps_view *
alloc_view(uint32_t partition_count, uint32_t node_count)
{
    size_t p = partition_count, n = node_count;
    tt_ps_view *view = tt_mem_zalloc(1, sizeof *view + array_bytes(p, n));
    if (view == NULL)
        return NULL;
    view->partition_count = partition_count;
    view->node_count = node_count;
    view->moved_at = (uint32_t *)(view + 1);
    view->restored_at = view->moved_at + p;
    view->backup_at = view->restored_at + p;
    view->backup_since = view->backup_at + p;
    view->spare_since = view->backup_since + p;
    view->join_clock = view->spare_since + p;
    view->joined_at = view->join_clock + n;
    view->attempt = view->joined_at + n;
    view->owner = (uint16_t *)(view->attempt + n);
    view->previous = view->owner + p;
    view->backup = view->previous + p;
    view->spare = view->backup + p;
    view->host = view->spare + p;
    view->moved_by = (uint8_t *)(view->host + n);
    view->is_worker = view->moved_by + p;
    view->is_gone = view->is_worker + n;
    return view;
}

static void
copy_view(const tt_ps_view *from, tt_ps_view *to)
{
    to->generation = from->generation;
    to->slice_count = from->slice_count;
    to->lost_at = from->lost_at;
    to->redo_from = from->redo_from;
    to->redo_until = from->redo_until;
    to->ended_before = from->ended_before;
    to->replicas = from->replicas;
    memcpy(to->slice_owner, from->slice_owner, sizeof to->slice_owner);
    memcpy(to + 1, from + 1, array_bytes(from->partition_count, from->node_count));
}

static void
set_backup(tt_ps_view *view, uint32_t p, uint16_t node)
{
    view->backup[p] = node;
    view->backup_at[p] = view->backup_since[p] = view->generation;
}

// Until another one has its copy.
static void
keep_as_spare(tt_ps_view *view, uint32_t p)
{
    view->spare[p] = view->backup[p];
    view->spare_since[p] = view->backup_since[p];
}

static void
make_spare_the_backup(tt_ps_view *view, uint32_t p)
{
    set_backup(view, p, view->spare[p]);
    view->backup_since[p] = view->spare_since[p];
    view->spare[p] = TT_PS_NOBODY;
}

typedef struct dealing {
    uint16_t *owner; // [count], UINT16_MAX: nobody yet
    uint32_t count;
    const uint8_t *member; // [node_count]
    uint32_t node_count;
    uint32_t *quota, *held; // [node_count]
} dealing;

static void
count_held(dealing *d)
{
    memset(d->held, 0, d->node_count * sizeof *d->held);
    for (uint32_t i = 0; i < d->count; i++)
        if (d->owner[i] < d->node_count && d->member[d->owner[i]])
            d->held[d->owner[i]]++;
}

// Floor or ceiling of the mean; those who hold most keep the extra ones: fewest moves.
static void
set_quotas(dealing *d, uint32_t members)
{
    uint32_t extra = d->count % members, share = d->count / members;
    for (uint32_t n = 0; n < d->node_count; n++)
        d->quota[n] = d->member[n] ? share : 0;
    for (; extra > 0; extra--) {
        uint32_t best = d->node_count;
        for (uint32_t n = 0; n < d->node_count; n++)
            if (d->member[n] && d->quota[n] == share &&
                (best == d->node_count || d->held[n] > d->held[best]))
                best = n;
        d->quota[best]++;
    }
}

// What is beyond a quota is given to who is below his.
static void
deal(dealing *d)
{
    uint32_t next = 0;
    memset(d->held, 0, d->node_count * sizeof *d->held);
    for (uint32_t i = 0; i < d->count; i++) {
        uint16_t owner = d->owner[i];
        if (owner < d->node_count && d->member[owner] && d->held[owner] < d->quota[owner])
            d->held[owner]++;
        else
            d->owner[i] = UINT16_MAX;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->owner[i] != UINT16_MAX)
            continue;
        while (d->held[next] >= d->quota[next])
            next++;
        d->owner[i] = (uint16_t)next;
        d->held[next]++;
    }
}

// Gives `count` things, each with a present owner, to the members so that each has floor or ceiling
// of the mean and as few as possible change hands. Deterministic: lowest index first.
static tt_status
balance(uint16_t *owner, uint32_t count, const uint8_t *member, uint32_t node_count)
{
    uint32_t members = 0;
    for (uint32_t n = 0; n < node_count; n++)
        members += member[n] != 0;
    if (count == 0)
        return TT_OK;
    TT_ASSERT(members > 0);
    uint32_t *scratch = tt_mem_zalloc(2 * (size_t)node_count, sizeof *scratch);
    if (scratch == NULL)
        return TT_NOMEM;
    dealing d = {.owner = owner,
                 .count = count,
                 .member = member,
                 .node_count = node_count,
                 .quota = scratch,
                 .held = scratch + node_count};
    count_held(&d);
    set_quotas(&d, members);
    deal(&d);
    tt_mem_free(scratch);
    return TT_OK;
}

// is_server[n] non-zero serves, everybody else who is there works.
static tt_status
place(tt_ps_view *view, const uint8_t *is_server)
{
    for (uint32_t n = 0; n < view->node_count; n++)
        view->is_worker[n] = !is_server[n] && !view->is_gone[n];
    uint8_t *server = tt_mem_zalloc(view->node_count, 1);
    if (server == NULL)
        return TT_NOMEM;
    for (uint32_t n = 0; n < view->node_count; n++)
        server[n] = is_server[n] != 0 && !view->is_gone[n];
    tt_status status = balance(view->owner, view->partition_count, server, view->node_count);
    tt_mem_free(server);
    if (status == TT_OK && view->slice_count > 0)
        status = balance(view->slice_owner, view->slice_count, view->is_worker, view->node_count);
    return status;
}

// ---- backups -----------------------------------------------------------------------------------

// How good a backup it is: on another host than the owner, for what takes a whole host is what
// nothing else helps against, and a server, which answers at once.
static int
merit(const tt_ps_view *view, uint32_t p, uint32_t node)
{
    return 2 * (view->host[node] != view->host[view->owner[p]]) + !view->is_worker[node];
}

// The best there is; of servers the one with the fewest copies, of workers the first, which would
// become a server first, so that one is enough for all.
static uint16_t
choose_backup(const tt_ps_view *view, uint32_t p, const uint32_t *copies)
{
    uint16_t best = TT_PS_NOBODY;
    for (uint32_t n = 0; n < view->node_count; n++) {
        if (view->is_gone[n] || n == view->owner[p])
            continue;
        int more = best == TT_PS_NOBODY ? 1 : merit(view, p, n) - merit(view, p, best);
        int fewer = best != TT_PS_NOBODY && !view->is_worker[n] && copies[n] < copies[best];
        if (more > 0 || (more == 0 && fewer))
            best = (uint16_t)n;
    }
    return best;
}

// Without memory for it now they stay without: another generation will have one.
static uint32_t *
count_copies(const tt_ps_view *view)
{
    uint32_t *copies = tt_mem_zalloc(view->node_count + 1u, sizeof *copies);
    for (uint32_t p = 0; copies != NULL && p < view->partition_count; p++)
        if (view->backup[p] != TT_PS_NOBODY)
            copies[view->backup[p]]++;
    return copies;
}

// For those that have none.
static void
choose_backups(tt_ps_view *view)
{
    uint32_t *copies = view->replicas > 0 ? count_copies(view) : NULL;
    for (uint32_t p = 0; copies != NULL && p < view->partition_count; p++) {
        if (view->backup[p] != TT_PS_NOBODY)
            continue;
        set_backup(view, p, choose_backup(view, p, copies));
        if (view->backup[p] != TT_PS_NOBODY)
            copies[view->backup[p]]++;
    }
    tt_mem_free(copies);
}

// Whether partition p is as well protected as it can be.
static int
is_well_backed(const tt_ps_view *view, uint32_t p, const uint32_t *copies)
{
    uint16_t better = choose_backup(view, p, copies), now = view->backup[p];
    if (better == TT_PS_NOBODY)
        return now == TT_PS_NOBODY;
    return now != TT_PS_NOBODY && merit(view, p, now) >= merit(view, p, better);
}

tt_status
tt_ps_view_protect(const tt_ps_view *view, const uint8_t *is_backed, tt_ps_view **out)
{
    uint32_t *copies, changes = 0;
    *out = NULL;
    if (view->replicas == 0)
        return TT_OK;
    tt_ps_view *next;
    TT_TRY(tt_ps_view_next(view, NULL, &next));
    copies = count_copies(next);
    for (uint32_t p = 0; copies != NULL && p < view->partition_count; p++) {
        if (next->spare[p] != TT_PS_NOBODY && is_backed[p]) {
            next->spare[p] = TT_PS_NOBODY;
            changes++;
        }
        if (next->spare[p] != TT_PS_NOBODY || is_well_backed(next, p, copies))
            continue;
        if (is_backed[p])
            keep_as_spare(next, p);
        set_backup(next, p, choose_backup(next, p, copies));
        copies[next->backup[p]]++;
        changes++;
    }
    tt_status status = copies != NULL ? TT_OK : TT_NOMEM;
    tt_mem_free(copies);
    if (changes > 0 && status == TT_OK)
        *out = next;
    else
        tt_ps_view_free(next);
    return status;
}

int
tt_ps_view_is_backed(const tt_ps_view *before, const tt_ps_view *after, uint32_t p, int was_backed)
{
    uint16_t backup = after->backup[p];
    if (backup == TT_PS_NOBODY || after->restored_at[p] == after->generation)
        return 0;
    if (backup == before->backup[p])
        return was_backed;
    // The old owner of a partition that is handed over keeps what it has (tt_ps_view_give).
    int stays = backup == before->owner[p] && after->moved_at[p] == after->generation &&
                tti_ps_view_hands_over(after, p);
    return stays || backup == before->spare[p];
}

// ---- generations -------------------------------------------------------------------------------

tt_status
tt_ps_view_first(const tt_ps_table *table,
                 uint32_t node_count,
                 const uint8_t *is_server,
                 tt_ps_view **out)
{
    TT_ASSERT(node_count <= TT_PS_NODES_MAX && table->slice_count <= TT_PS_SLICES_MAX);
    tt_ps_view *view = *out = alloc_view(table->partition_count, node_count);
    if (view == NULL)
        return TT_NOMEM;
    view->generation = 1;
    view->replicas = (uint32_t)table->replicas;
    view->slice_count = table->consistency == TT_PS_BSP ? table->slice_count : 0;
    memset(view->owner, 0xff, table->partition_count * sizeof *view->owner);
    memset(view->slice_owner, 0xff, sizeof view->slice_owner);
    if (place(view, is_server) != TT_OK) {
        tt_ps_view_free(view);
        *out = NULL;
        return TT_NOMEM;
    }
    memcpy(view->previous, view->owner, table->partition_count * sizeof *view->owner);
    for (uint32_t n = 0; n < node_count; n++) {
        view->joined_at[n] = view->is_worker[n];
        view->attempt[n] = 1;
        view->host[n] = (uint16_t)n;
    }
    memset(view->backup, 0xff, table->partition_count * sizeof *view->backup);
    memset(view->spare, 0xff, table->partition_count * sizeof *view->spare);
    choose_backups(view);
    return TT_OK;
}

void
tt_ps_view_set_hosts(tt_ps_view *view, const uint16_t *host)
{
    memcpy(view->host, host, view->node_count * sizeof *host);
    memset(view->backup, 0xff, view->partition_count * sizeof *view->backup);
    choose_backups(view);
}

void
tt_ps_view_place_as(tt_ps_view *view, const tt_ps_view *placement)
{
    TT_ASSERT(placement->partition_count == view->partition_count);
    memcpy(view->owner, placement->owner, view->partition_count * sizeof *view->owner);
    memcpy(view->previous, view->owner, view->partition_count * sizeof *view->owner);
    memset(view->backup, 0xff, view->partition_count * sizeof *view->backup);
    choose_backups(view);
}

void
tt_ps_view_restore(tt_ps_view *view)
{
    for (uint32_t p = 0; p < view->partition_count; p++) {
        view->moved_at[p] = view->restored_at[p] = view->generation;
        view->moved_by[p] = TT_PS_MOVE_RESTORE;
    }
}

int
tti_ps_view_hands_over(const tt_ps_view *view, uint32_t p)
{
    int stays = view->backup[p] == view->previous[p] && view->backup_at[p] == view->moved_at[p] &&
                view->moved_by[p] == TT_PS_MOVE_DRAIN;
    return stays || view->spare[p] == view->owner[p];
}

int
tti_ps_view_offers(const tt_ps_view *view, const tt_ps_table *table, uint32_t p)
{
    return table->consistency != TT_PS_BSP && view->replicas == 0 &&
           view->moved_by[p] == TT_PS_MOVE_ON_DEMAND;
}

// Where partition p goes its backup is lost with it, which it was not where it comes from.
static int
leaves_host_of_copy(const tt_ps_view *view, uint32_t p, uint16_t to)
{
    uint16_t backup = view->backup[p];
    return backup != TT_PS_NOBODY && view->host[backup] == view->host[to] &&
           view->host[view->owner[p]] != view->host[to];
}

void
tt_ps_view_give(tt_ps_view *view, uint32_t p, uint16_t to)
{
    uint16_t from = view->owner[p];
    int stays = view->backup[p] == to || leaves_host_of_copy(view, p, to);
    view->previous[p] = from;
    view->owner[p] = to;
    view->moved_at[p] = view->generation;
    // Whoever has replicas does not want to wait for what workers carry, for nothing is
    // acknowledged before the backup has it all.
    view->moved_by[p] = view->replicas > 0 ? TT_PS_MOVE_DRAIN : TT_PS_MOVE_ON_DEMAND;
    if (view->spare[p] == from) // of a move before
        view->spare[p] = TT_PS_NOBODY;
    if (!stays)
        return;
    keep_as_spare(view, p);
    set_backup(view, p, from);
}

// Those whose owner is another one than in `view` move.
static void
note_moves(const tt_ps_view *view, tt_ps_view *next)
{
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (next->owner[p] != view->owner[p]) {
            uint16_t to = next->owner[p];
            next->owner[p] = view->owner[p];
            tt_ps_view_give(next, p, to);
        }
    for (uint32_t n = 0; n < view->node_count; n++)
        if (next->is_worker[n] && !view->is_worker[n])
            next->joined_at[n] = next->generation;
}

tt_status
tt_ps_view_next(const tt_ps_view *view, const uint8_t *is_server, tt_ps_view **out)
{
    tt_ps_view *next = *out = alloc_view(view->partition_count, view->node_count);
    if (next == NULL)
        return TT_NOMEM;
    copy_view(view, next);
    next->generation = view->generation + 1;
    if (is_server == NULL)
        return TT_OK;
    if (place(next, is_server) != TT_OK) {
        tt_ps_view_free(next);
        *out = NULL;
        return TT_NOMEM;
    }
    note_moves(view, next);
    return TT_OK;
}

// ---- deaths and returns ------------------------------------------------------------------------

static uint32_t
living_servers(const tt_ps_view *view)
{
    uint32_t servers = 0;
    for (uint32_t n = 0; n < view->node_count; n++)
        servers += !view->is_gone[n] && !view->is_worker[n];
    return servers;
}

// False when there are not two nodes left to share the work. Servers become workers only by a
// generation of their own, for their partitions have to leave them first.
static int
promote(tt_ps_view *view, uint32_t wanted)
{
    uint32_t workers = 0, servers = living_servers(view);
    for (uint32_t n = 0; n < view->node_count; n++)
        workers += view->is_worker[n];
    if (workers + servers < 2)
        return 0;
    for (uint32_t n = 0; servers == 0 && n < view->node_count && wanted > 0 && workers > 1; n++) {
        if (!view->is_worker[n])
            continue;
        view->is_worker[n] = 0;
        wanted--;
        workers--;
    }
    return 1;
}

// To the member that holds least; the lowest index first.
static uint16_t
least_loaded(const uint16_t *owner, uint32_t count, const tt_ps_view *view, int workers)
{
    uint32_t best = UINT32_MAX, best_load = UINT32_MAX;
    for (uint32_t n = 0; n < view->node_count; n++) {
        if (view->is_gone[n] || view->is_worker[n] != workers)
            continue;
        uint32_t load = 0;
        for (uint32_t i = 0; i < count; i++)
            load += owner[i] == n;
        if (load < best_load) {
            best = n;
            best_load = load;
        }
    }
    return (uint16_t)best;
}

static void
hand_on(uint16_t *owner, uint32_t count, const tt_ps_view *view, int workers)
{
    for (uint32_t i = 0; i < count; i++)
        if (owner[i] < view->node_count && view->is_worker[owner[i]] != workers)
            owner[i] = UINT16_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (owner[i] == UINT16_MAX)
            owner[i] = least_loaded(owner, count, view, workers);
}

// One that a dead node has, or that was on its way from one.
static int
is_lost(const tt_ps_view *view, const uint8_t *moving, const tt_ps_view *next, uint32_t p)
{
    return next->is_gone[view->owner[p]] || (moving[p] && next->is_gone[view->previous[p]]);
}

static int
is_there(const tt_ps_view *view, uint16_t node)
{
    return node != TT_PS_NOBODY && !view->is_gone[node];
}

// Who has everything that was acknowledged of a lost partition; nobody: it is to be restored.
static uint16_t
heir(const tt_ps_view *view, const uint8_t *is_backed, const tt_ps_view *next, uint32_t p)
{
    if (is_there(next, view->backup[p]) && is_backed != NULL && is_backed[p])
        return view->backup[p];
    return is_there(next, view->spare[p]) ? view->spare[p] : TT_PS_NOBODY;
}

// Lost partitions of which there is a copy go on from it, be it the last worker's, who becomes a
// server until roles are dealt out anew; and of the others' copies those that died are gone.
static void
promote_backups(const tt_ps_view *view,
                const uint8_t *moving,
                const uint8_t *is_backed,
                tt_ps_view *next)
{
    for (uint32_t p = 0; p < view->partition_count; p++) {
        uint16_t to =
            is_lost(view, moving, next, p) ? heir(view, is_backed, next, p) : TT_PS_NOBODY;
        if (to != TT_PS_NOBODY) {
            next->owner[p] = next->previous[p] = to;
            next->is_worker[to] = 0;
            next->moved_at[p] = next->generation;
            next->moved_by[p] = TT_PS_MOVE_PROMOTE;
        }
        if (!is_there(next, view->backup[p]) || view->backup[p] == next->owner[p])
            next->backup[p] = TT_PS_NOBODY;
        if (!is_there(next, view->spare[p]) ||
            (view->spare[p] == next->owner[p] && view->owner[p] != next->owner[p]))
            next->spare[p] = TT_PS_NOBODY;
        // Where the owner is the spare, the partition is still on its way to it.
        if (next->backup[p] != TT_PS_NOBODY || next->spare[p] == next->owner[p])
            continue;
        make_spare_the_backup(next, p); // it has had everything all along
    }
}

// Those that a dead node has, or that were on their way from one.
static void
restore_lost(const tt_ps_view *view, const uint8_t *moving, tt_ps_view *next)
{
    for (uint32_t p = 0; p < view->partition_count; p++) {
        if (!is_lost(view, moving, next, p) ||
            (next->moved_at[p] == next->generation && next->moved_by[p] == TT_PS_MOVE_PROMOTE))
            continue;
        next->backup[p] = next->spare[p] = TT_PS_NOBODY;
        if (next->is_gone[view->owner[p]])
            next->owner[p] = UINT16_MAX;
        next->moved_at[p] = next->restored_at[p] = next->generation;
        next->moved_by[p] = TT_PS_MOVE_RESTORE;
    }
    hand_on(next->owner, view->partition_count, next, 0);
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (next->restored_at[p] == next->generation)
            next->previous[p] = next->owner[p];
}

tt_status
tt_ps_view_without(const tt_ps_view *view,
                   const uint8_t *is_dead,
                   const uint8_t *moving,
                   const uint8_t *is_backed,
                   uint32_t servers,
                   tt_ps_view **out)
{
    TT_TRY(tt_ps_view_next(view, NULL, out));
    tt_ps_view *next = *out;
    next->effective_round = view->effective_round;
    next->lost_at = next->generation;
    for (uint32_t n = 0; n < view->node_count; n++) {
        if (!is_dead[n] || view->is_gone[n])
            continue;
        next->is_gone[n] = 1;
        next->is_worker[n] = 0;
        next->attempt[n]++;
    }
    promote_backups(view, moving, is_backed, next);
    if (!promote(next, TT_MAX(servers, 1u))) {
        tt_ps_view_free(next);
        *out = NULL;
        return TT_PEER;
    }
    restore_lost(view, moving, next);
    choose_backups(next);
    if (memchr(next->is_worker, 1, view->node_count) != NULL)
        hand_on(next->slice_owner, view->slice_count, next, 1);
    return TT_OK;
}

tt_status
tt_ps_view_with(const tt_ps_view *view,
                const uint8_t *is_back,
                const uint32_t *attempt,
                const uint8_t *is_server,
                tt_ps_view **out)
{
    TT_TRY(tt_ps_view_next(view, NULL, out));
    tt_ps_view *next = *out;
    for (uint32_t n = 0; n < view->node_count; n++) {
        if (!view->is_gone[n] || !is_back[n])
            continue;
        next->is_gone[n] = 0;
        next->attempt[n] = attempt[n];
    }
    if (place(next, is_server) != TT_OK) {
        tt_ps_view_free(next);
        *out = NULL;
        return TT_NOMEM;
    }
    note_moves(view, next);
    return TT_OK;
}

void
tt_ps_view_move_by(tt_ps_view *view, tt_ps_move move)
{
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (view->moved_at[p] == view->generation && view->replicas == 0)
            view->moved_by[p] = (uint8_t)move;
}

uint32_t
tt_ps_view_moves(const tt_ps_view *from, const tt_ps_view *to)
{
    uint32_t moves = 0;
    for (uint32_t p = 0; p < from->partition_count; p++)
        moves += from->owner[p] != to->owner[p];
    return moves;
}

// ---- as bytes ---------------------------------------------------------------------------------

static void
visit(tt_ps_view *view, tt_archive *archive)
{
    TT_ARCHIVE(archive, view->generation);
    TT_ARCHIVE(archive, view->slice_count);
    TT_ARCHIVE(archive, view->effective_round);
    TT_ARCHIVE(archive, view->lost_at);
    TT_ARCHIVE(archive, view->redo_from);
    TT_ARCHIVE(archive, view->redo_until);
    TT_ARCHIVE(archive, view->ended_before);
    TT_ARCHIVE(archive, view->slice_owner);
    TT_ARCHIVE(archive, view->replicas);
    tt_archive_field(archive, view + 1, array_bytes(view->partition_count, view->node_count));
}

void
tt_ps_view_save(const tt_ps_view *view, tt_archive *out)
{
    tt_ps_view header = *view;
    TT_ARCHIVE(out, header.partition_count);
    TT_ARCHIVE(out, header.node_count);
    visit((tt_ps_view *)(uintptr_t)view, out); // which only reads it
}

static int
is_node_or_nobody(const tt_ps_view *view, uint16_t node)
{
    return node < view->node_count || node == TT_PS_NOBODY;
}

// Whoever it names is one of its nodes.
static int
makes_sense(const tt_ps_view *view)
{
    int fine = view->slice_count <= TT_PS_SLICES_MAX;
    for (uint32_t k = 0; fine && k < view->slice_count; k++)
        fine = view->slice_owner[k] < view->node_count || view->slice_owner[k] == UINT16_MAX;
    for (uint32_t p = 0; fine && p < view->partition_count; p++)
        fine = view->owner[p] < view->node_count && view->previous[p] < view->node_count &&
               is_node_or_nobody(view, view->backup[p]) && is_node_or_nobody(view, view->spare[p]);
    return fine;
}

tt_status
tt_ps_view_load(tt_archive *in, tt_ps_view **out)
{
    uint32_t partitions = 0, nodes = 0;
    *out = NULL;
    TT_ARCHIVE(in, partitions);
    TT_ARCHIVE(in, nodes);
    if (in->status != TT_OK || nodes > TT_PS_NODES_MAX ||
        array_bytes(partitions, nodes) > in->count)
        return TT_CORRUPT;
    tt_ps_view *view = alloc_view(partitions, nodes);
    if (view == NULL)
        return TT_NOMEM;
    visit(view, in);
    if (in->status != TT_OK || !makes_sense(view)) {
        tt_ps_view_free(view);
        return TT_CORRUPT;
    }
    *out = view;
    return TT_OK;
}

void
tt_ps_view_free(tt_ps_view *view)
{
    tt_mem_free(view);
}
