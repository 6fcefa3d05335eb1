// Views: who serves, who works, which partition and which slice is whose.
#include "tt/ps.h"
#include <string.h>

static tt_ps_view *
alloc_view(uint32_t partition_count)
{
    tt_ps_view *view = tt_mem_zalloc(
        1, sizeof *view + partition_count * (sizeof(uint32_t) + 2 * sizeof(uint16_t) + 1));
    if (view == NULL)
        return NULL;
    view->partition_count = partition_count;
    view->moved_at = (uint32_t *)(view + 1);
    view->owner = (uint16_t *)(view->moved_at + partition_count);
    view->previous = view->owner + partition_count;
    view->moved_by = (uint8_t *)(view->previous + partition_count);
    return view;
}

// Gives `count` things, each with a present owner, to the members so that each has floor or ceiling
// of the mean and as few as possible change hands. Deterministic: lowest index first.
static void
balance(uint16_t *owner, uint32_t count, const uint8_t *member, uint32_t node_count)
{
    if (count == 0)
        return;
    uint32_t members = 0, held[TT_PS_NODES_MAX] = {0}, quota[TT_PS_NODES_MAX] = {0};
    for (uint32_t n = 0; n < node_count; n++)
        members += member[n] != 0;
    TT_ASSERT(members > 0);
    for (uint32_t i = 0; i < count; i++)
        if (owner[i] < node_count && member[owner[i]])
            held[owner[i]]++;
    // Those who hold most keep the extra ones: fewest moves.
    uint32_t extra = count % members;
    for (uint32_t n = 0; n < node_count; n++)
        quota[n] = member[n] ? count / members : 0;
    for (; extra > 0; extra--) {
        uint32_t best = node_count;
        for (uint32_t n = 0; n < node_count; n++)
            if (member[n] && quota[n] == count / members &&
                (best == node_count || held[n] > held[best]))
                best = n;
        quota[best]++;
    }
    uint32_t kept[TT_PS_NODES_MAX] = {0}, next = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (owner[i] < node_count && member[owner[i]] && kept[owner[i]] < quota[owner[i]])
            kept[owner[i]]++;
        else
            owner[i] = UINT16_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (owner[i] != UINT16_MAX)
            continue;
        while (kept[next] >= quota[next])
            next++;
        owner[i] = (uint16_t)next;
        kept[next]++;
    }
}

static void
place(tt_ps_view *view, const uint8_t *is_server)
{
    uint8_t server[TT_PS_NODES_MAX];
    for (uint32_t n = 0; n < view->node_count; n++) {
        server[n] = is_server[n] != 0;
        view->is_worker[n] = !server[n];
    }
    balance(view->owner, view->partition_count, server, view->node_count);
    if (view->slice_count > 0)
        balance(view->slice_owner, view->slice_count, view->is_worker, view->node_count);
}

tt_status
tt_ps_view_first(const tt_ps_table *table,
                 uint32_t node_count,
                 const uint8_t *is_server,
                 tt_ps_view **out)
{
    TT_ASSERT(node_count <= TT_PS_NODES_MAX && table->slice_count <= TT_PS_SLICES_MAX);
    tt_ps_view *view = *out = alloc_view(table->partition_count);
    if (view == NULL)
        return TT_NOMEM;
    view->generation = 1;
    view->node_count = node_count;
    view->slice_count = table->consistency == TT_PS_BSP ? table->slice_count : 0;
    memset(view->owner, 0xff, table->partition_count * sizeof *view->owner);
    memset(view->slice_owner, 0xff, sizeof view->slice_owner);
    place(view, is_server);
    memcpy(view->previous, view->owner, table->partition_count * sizeof *view->owner);
    for (uint32_t n = 0; n < node_count; n++)
        view->joined_at[n] = view->is_worker[n];
    return TT_OK;
}

tt_status
tt_ps_view_next(const tt_ps_view *view, const uint8_t *is_server, tt_ps_view **out)
{
    tt_ps_view *next = *out = alloc_view(view->partition_count);
    if (next == NULL)
        return TT_NOMEM;
    uint32_t *moved_at = next->moved_at;
    uint16_t *owner = next->owner, *previous = next->previous;
    uint8_t *moved_by = next->moved_by;
    *next = *view;
    next->moved_at = moved_at;
    next->owner = owner;
    next->previous = previous;
    next->moved_by = moved_by;
    next->generation = view->generation + 1;
    next->effective_round = 0;
    memcpy(owner, view->owner, view->partition_count * sizeof *owner);
    memcpy(previous, view->previous, view->partition_count * sizeof *previous);
    memcpy(moved_at, view->moved_at, view->partition_count * sizeof *moved_at);
    memcpy(moved_by, view->moved_by, view->partition_count * sizeof *moved_by);
    if (is_server == NULL)
        return TT_OK;
    place(next, is_server);
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (owner[p] != view->owner[p]) {
            previous[p] = view->owner[p];
            moved_at[p] = next->generation;
            moved_by[p] = TT_PS_MOVE_ON_DEMAND;
        }
    for (uint32_t n = 0; n < view->node_count; n++)
        if (next->is_worker[n] && !view->is_worker[n])
            next->joined_at[n] = next->generation;
    return TT_OK;
}

void
tt_ps_view_move_by(tt_ps_view *view, tt_ps_move move)
{
    for (uint32_t p = 0; p < view->partition_count; p++)
        if (view->moved_at[p] == view->generation)
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

void
tt_ps_view_free(tt_ps_view *view)
{
    tt_mem_free(view);
}
