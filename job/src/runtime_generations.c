// What is in force: generations published, the gate in front of a round, who has heard.
#include "runtime.h"
#include <string.h>

void
tti_runtime_wake_all(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->mesh != NULL && !rt->apart && n < rt->node_count; n++)
        tt_mesh_wake(rt->mesh, n);
    if (rt->store != NULL)
        tt_ps_store_wake(rt->store);
    tt_event_signal(&rt->board.resume);
    if (rt->apart)
        tti_command_send(rt);
}

void
tti_runtime_note_moves(tti_runtime *rt, const tt_ps_view *view)
{
    uint32_t more = 0;
    for (uint32_t p = 0; p < view->partition_count; p++) {
        if (view->moved_at[p] != view->generation)
            continue;
        more += tt_load_relaxed(&rt->moving[p]) == 0;
        tt_store_relaxed(&rt->moving[p], view->generation);
    }
    (void)tt_add_acq_rel(&rt->unretired, more);
}

tt_status
tti_runtime_take_generation(tti_runtime *rt, tti_generation *generation, uint32_t *shards_moved)
{
    const tt_ps_view *view = generation->view, *before = rt->newest->view;
    *shards_moved = 0;
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(rt->job->shards), sizeof *owner);
    if (owner == NULL)
        return TT_NOMEM;
    for (uint32_t p = 0; p < view->partition_count; p++)
        rt->backed[p] = (uint8_t)tt_ps_view_is_backed(before, view, p, rt->backed[p]);
    int roles_change = memcmp(before->is_worker, view->is_worker, view->node_count) != 0;
    tti_runtime_note_moves(rt, view);
    generation->previous = rt->newest;
    rt->newest = generation;
    if (rt->store != NULL)
        tt_ps_store_adopt(rt->store, view);
    tt_store_release(&rt->board.current, generation); // acquired by nodes
    if (roles_change && tti_runtime_workers(rt) > 0) {
        (void)tt_ledger_plan(rt->work.ledger, view->is_worker, owner);
        *shards_moved = tt_ledger_assign(rt->work.ledger, owner);
    }
    tt_mem_free(owner);
    return TT_OK;
}

// BSP: who has begun a round has seen the one three before it end everywhere. Who has just come
// gives as begun what it will begin with, which is up to two rounds ahead of what the others have.
static uint32_t
ended_before(const tti_runtime *rt)
{
    const tt_ps_view *now = rt->newest->view;
    uint32_t least = UINT32_MAX;
    for (uint32_t k = 0; k < now->slice_count; k++) {
        uint16_t owner = now->slice_owner[k];
        least = TT_MIN(least,
                       owner < rt->node_count ? tt_load_seq(&rt->standings[owner].round_begun) : 0);
    }
    return now->slice_count > 0 && least > 4 ? least - 4 : 0;
}

tt_status
tti_runtime_publish(tti_runtime *rt,
                    tt_ps_view *view,
                    const tt_setting *setting,
                    uint32_t *shards_moved)
{
    *shards_moved = 0;
    tti_generation *generation = tt_mem_zalloc(1, sizeof *generation);
    if (generation == NULL)
        return TT_NOMEM;
    view->ended_before = TT_MAX(view->ended_before, ended_before(rt));
    *generation = (tti_generation){.view = view, .setting = *setting};
    if (tti_runtime_take_generation(rt, generation, shards_moved) != TT_OK) {
        tt_mem_free(generation);
        return TT_NOMEM;
    }
    tti_books_enter_generation(rt);
    if (rt->reader != NULL && tt_ps_client_done(rt->reader))
        tt_ps_client_adopt(rt->reader, view);
    else if (rt->reader != NULL) // in the middle of reading
        tt_ps_client_lose(rt->reader, view);
    tti_runtime_wake_all(rt);
    return TT_OK;
}

int
tti_runtime_settled(const tti_runtime *rt)
{
    const tt_ps_view *view = rt->newest->view;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_standing *node = &rt->standings[n];
        if (view->is_gone[n])
            continue;
        // One that is to work begins when what it held has left it; till then its slices wait for
        // it, and the next generation must not pass them by.
        if (tt_load_acquire(&node->adopted_generation) <
                view->generation || // released in tti_node_adopt
            tt_load_acquire(&node->working_seen) != view->is_worker[n]) // change_role
            return 0;
    }
    return tt_load_acquire(&rt->unretired) == 0 && // partition_retired
           tti_runtime_unbacked(rt) == 0;
}

int
tti_runtime_is_whole(const tti_runtime *rt)
{
    return !rt->apart || !tti_left_some(rt);
}

void
tti_runtime_backed(tti_runtime *rt, uint32_t n, uint32_t partition, uint32_t generation)
{
    const tt_ps_view *view = rt->newest->view;
    if (view->owner[partition] == n && view->backup[partition] != TT_PS_NOBODY &&
        generation >= view->backup_at[partition])
        rt->backed[partition] = 1;
}

uint32_t
tti_runtime_unbacked(const tti_runtime *rt)
{
    const tt_ps_view *view = rt->newest->view;
    uint32_t unbacked = 0;
    for (uint32_t p = 0; view->replicas > 0 && p < view->partition_count; p++)
        unbacked += view->backup[p] != TT_PS_NOBODY && !rt->backed[p];
    return unbacked;
}

void
tti_runtime_horizon(const tti_runtime *rt, uint32_t *clock, uint32_t *round)
{
    *clock = *round = 0;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_standing *node = &rt->standings[n];
        if (!tt_load_relaxed(&node->working_seen))
            continue;
        *clock = TT_MAX(*clock, tt_load_relaxed(&node->clock_seen));
        *round = TT_MAX(*round, tt_load_seq(&node->round_begun));
    }
    // What a dead one may have begun, others have to end first.
    *round = TT_MAX(*round + 1, rt->newest->view->redo_until);
    if (rt->job->table.consistency != TT_PS_BSP)
        *round = 0;
}

static int
all_heard_the_gate(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!rt->newest->view->is_gone[n] && rt->standings[n].gate_heard != rt->board.gate)
            return 0;
    return 1;
}

int
tti_runtime_close_gate(tti_runtime *rt)
{
    (void)tt_add_seq(&rt->board.gate, 1u);
    if (!rt->apart || rt->job->table.consistency != TT_PS_BSP)
        return 1;
    rt->membership.at_the_gate++;
    tti_command_send(rt);
    while (!all_heard_the_gate(rt) && !rt->membership.must_go_back && !rt->membership.must_fail) {
        tti_runtime_wait(rt, 0, 1000000);
        tti_membership_watch(rt);
    }
    rt->membership.at_the_gate--;
    return !rt->membership.must_go_back && !rt->membership.must_fail;
}

void
tti_runtime_open_gate(tti_runtime *rt)
{
    (void)tt_add_seq(&rt->board.gate, 1u);
    if (rt->apart)
        tti_command_send(rt);
}

void
tti_runtime_collect(tti_runtime *rt)
{
    // Everyone has adopted the newest, so nobody looks at an older one.
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!rt->newest->view->is_gone[n] &&
            tt_load_acquire(&rt->standings[n].adopted_generation) <
                rt->newest->view->generation) // released in tti_node_adopt
            return;
    tti_generations_free(rt->newest->previous);
    rt->newest->previous = NULL;
}

void
tti_generations_free(tti_generation *newest)
{
    while (newest != NULL) {
        tti_generation *previous = newest->previous;
        tt_ps_view_free(newest->view);
        tt_mem_free(newest);
        newest = previous;
    }
}
