// Nodes that die and come back while a job runs, the master's side: heartbeats in, and for each
// death and return a generation that says so. A worker's rows that were not trained go to others; a
// server's partitions go back to the last checkpoint (ps: rule 12). Under BSP the other workers do
// again what its slices lack; where a server died, or roles were changing, everything goes back to
// the last checkpoint, for rounds of different ages do not add up.
//
// Only where processes can die one by one.
#include "runtime.h"
#include <string.h>

// ---- opening and closing -----------------------------------------------------------------------

tt_status
tti_membership_open(tti_runtime *rt, tt_archive *books, tt_error *err)
{
    tti_membership *m = &rt->membership;
    if (rt->engine == NULL)
        return TT_OK;
    TT_TRY(tti_command_open(rt, err));
    TT_TRY(tti_books_open(rt, err));
    if (books != NULL)
        TT_TRY(tti_books_load(rt, books, err));
    tti_command_succeed(rt);
    const tt_ps_view *view = rt->newest->view; // the last one in the books
    tt_status status =
        tt_members_open(rt->node_count, (uint64_t)(1e9 * rt->job->spec.failure_timeout),
                        view->attempt, view->is_gone, tt_clock_now(&rt->clock), &m->members);
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, NULL, "no memory for the job's nodes");
    rt->board.control = m->control;
    rt->board.end = rt->node_count;
    rt->apart = 1;
    return TT_OK;
}

void
tti_membership_begin(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->apart && n < rt->node_count; n++)
        rt->membership.members.member[n].heard_at_ns = tt_clock_now(&rt->clock);
}

static void
close_last_checkpoint(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    tt_ps_state_close(m->state);
    m->state = NULL;
    tt_mem_free(m->saved);
    m->saved = NULL;
    tti_checkpoint_fini(&m->file);
    m->file = (tti_checkpoint){0};
}

void
tti_membership_close(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    close_last_checkpoint(rt);
    tti_command_close(rt);
    tti_books_close(rt);
    tt_members_close(&m->members);
    tt_mesh_close(m->control);
    m->control = NULL;
    rt->apart = 0;
}

// ---- deaths ------------------------------------------------------------------------------------

static void say(tti_runtime *rt, const char *format, ...) TT_PRINTF(2, 3);

static void
say(tti_runtime *rt, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (rt->membership.on_event != NULL)
        rt->membership.on_event(rt->membership.self, text);
}

static void
say_death(tti_runtime *rt, uint32_t n, const tt_ps_view *before)
{
    const tti_membership *m = &rt->membership;
    const char *role = before->is_worker[n] ? "worker" : "server";
    char cause[100];
    if (rt->engine->cause != NULL && rt->engine->cause(rt, n, cause, sizeof cause))
        say(rt, "node %u (%s) is dead: %s", n, role, cause);
    else if (m->members.member[n].replaced)
        say(rt, "node %u (%s) is dead: another process has begun in its place", n, role);
    else
        say(rt, "node %u (%s) is dead: nothing was heard from it for %.3g s", n, role,
            rt->job->spec.failure_timeout);
}

// The file is read while partitions are restored from it; several servers that die go back to the
// same moment. Without one everything begins at zero: err says why.
static tt_status
open_last_checkpoint(tti_runtime *rt, tt_error *err)
{
    tti_membership *m = &rt->membership;
    uint64_t count;
    if (m->state != NULL)
        return TT_OK;
    if (m->find_checkpoint == NULL)
        return TT_NOTFOUND;
    TT_TRY(m->find_checkpoint(m->self, &m->file, err));
    const uint8_t *bytes = tti_checkpoint_find(&m->file, "runtime", &count);
    return tti_runtime_open_saved(rt, bytes, count, &m->state, err);
}

static void
say_restore(tti_runtime *rt, tt_status opened, const tt_error *err)
{
    const char *what = rt->newest->view->replicas > 0 ? "parameters of which there was no copy yet"
                                                      : "its parameters";
    if (opened == TT_OK)
        say(rt, "%s go back to the checkpoint of iteration %llu", what,
            (unsigned long long)rt->membership.file.iteration);
    else
        say(rt, "%s begin anew: there is no checkpoint to go back to%s%s", what,
            opened == TT_NOTFOUND ? "" : ": ", opened == TT_NOTFOUND ? "" : err->what);
}

// Partitions that get to their owners like this in this generation.
static uint32_t
moved_now(const tt_ps_view *view, tt_ps_move by)
{
    uint32_t moved = 0;
    for (uint32_t p = 0; p < view->partition_count; p++)
        moved += view->moved_at[p] == view->generation && view->moved_by[p] == by;
    return moved;
}

static uint32_t
restored_now(const tt_ps_view *view)
{
    return moved_now(view, TT_PS_MOVE_RESTORE);
}

static void
say_promotions(tti_runtime *rt)
{
    uint32_t promoted = moved_now(rt->newest->view, TT_PS_MOVE_PROMOTE);
    if (promoted > 0)
        say(rt, "%u of its partitions go on from their backups", promoted);
}

static tt_status
view_without_dead(tti_runtime *rt, const uint8_t *is_dead, tt_ps_view **out)
{
    uint32_t partitions = rt->job->table.partition_count;
    uint8_t *moving = tt_mem_zalloc(TT_MAX(partitions, 1u), 1);
    if (moving == NULL)
        return TT_NOMEM;
    for (uint32_t p = 0; p < partitions; p++)
        moving[p] = tt_load_acquire(&rt->moving[p]) != 0; // partition_retired
    tt_status status =
        tt_ps_view_without(rt->newest->view, is_dead, moving, rt->backed,
                           tt_reconfig_servers(&rt->job->space, &rt->newest->setting), out);
    tt_mem_free(moving);
    return status;
}

// Whether the others can do again what the dead workers' slices lack: all parameters and roles are
// as they were, and nothing else is changing.
static int
can_do_again(const tti_runtime *rt, const uint8_t *is_dead, const tt_ps_view *next)
{
    const tt_ps_view *now = rt->newest->view;
    uint32_t workers = 0;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (now->is_gone[n] || is_dead[n])
            continue;
        const tti_standing *node = &rt->standings[n];
        int adopted = tt_load_acquire(&node->adopted_generation) >=
                      now->generation; // released in tti_node_adopt
        if (!adopted || next->is_worker[n] != now->is_worker[n] ||
            tt_load_acquire(&node->working_seen) != now->is_worker[n]) // change_role
            return 0;
        workers += now->is_worker[n];
    }
    return workers > 0 && restored_now(next) == 0 &&
           tt_load_acquire(&rt->unretired) == 0; // partition_retired
}

// A worker that has begun round r may have seen it without every partition having ended r - 2: rows
// it has never touched are elsewhere.
static void
choose_rounds_to_redo(const tti_runtime *rt, tt_ps_view *next)
{
    const tt_ps_view *now = rt->newest->view;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t k = 0; k < now->slice_count; k++) {
        uint32_t round = tt_load_seq(&rt->standings[now->slice_owner[k]].round_begun);
        least = TT_MIN(least, round);
        most = TT_MAX(most, round);
    }
    // Of who has just come, nothing has been heard: it is not the only one to know how far all are.
    next->redo_from = TT_MAX(least > 2 ? least - 2 : 0, now->ended_before);
    // What the dead one had begun may not have been heard: the round after what the others have,
    // at most, for that cannot end without theirs. One that had died before and had begun more is
    // none of the owners any more, and its slices may not have been done again yet.
    next->redo_until = TT_MAX(most + 2, now->redo_until);
}

// What the dead have trained in rounds that are over, and not told of: nobody does it again, who
// would.
static void
count_rounds_before(tti_runtime *rt, const uint8_t *is_dead, const tt_ps_view *before, uint32_t end)
{
    for (uint32_t k = 0; k < before->slice_count; k++) {
        uint16_t owner = before->slice_owner[k];
        if (owner < rt->node_count && is_dead[owner])
            tti_books_count_rounds(rt, k, end);
    }
}

// After the publication, never before: who takes over what the dead one had refuses by then what it
// still sends (ps: rule 8).
static void
hand_out(tti_runtime *rt, const uint8_t *is_dead, const tt_ps_view *before)
{
    const tti_membership *m = &rt->membership;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (!is_dead[n])
            continue;
        rt->membership.tally->deaths++;
        say_death(rt, n, before);
        tti_command_bury(rt, n);
        tt_mesh_drop(m->control, rt->node_count, n);
    }
    tti_runtime_call_to_rest(rt); // who rests may have to go back first
    tt_members_buried(&rt->membership.members);
}

// Too few are left to do the work: whoever waits gives up. Where nodes can be begun anew, all go
// back to the last checkpoint.
static void
desert(tti_runtime *rt, const uint8_t *is_dead)
{
    tti_membership *m = &rt->membership;
    if (m->too_few)
        return;
    m->too_few = 1;
    m->must_go_back |= rt->engine->goes_back;
    m->must_fail |= !rt->engine->goes_back;
    for (uint32_t n = 0; rt->engine->goes_back && n < rt->node_count; n++)
        if (is_dead[n]) {
            m->tally->deaths++;
            say_death(rt, n, rt->newest->view);
        }
    tt_store_release(&rt->board.discard, 1); // acquired in in_vain
}

static void
bury(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    const tt_ps_view *before = rt->newest->view;
    uint8_t is_dead[TT_PS_NODES_MAX];
    tt_ps_view *view;
    tt_error err = {0};
    uint32_t shards;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        is_dead[n] = m->members.member[n].state == TT_MEMBER_DEAD;
        if (is_dead[n])
            tti_command_hear_last(rt, n);
    }
    tt_status status = view_without_dead(rt, is_dead, &view);
    if (status == TT_PEER)
        desert(rt, is_dead);
    if (status != TT_OK)
        return; // without memory for it now: tried again
    int again = can_do_again(rt, is_dead, view), restores = restored_now(view) > 0;
    tt_status opened = restores ? open_last_checkpoint(rt, &err) : TT_OK;
    if (rt->job->table.consistency == TT_PS_BSP)
        choose_rounds_to_redo(rt, view);
    // A successor of this master is to know that, too, if it is to know of the generation.
    if (rt->job->table.consistency == TT_PS_BSP && again)
        count_rounds_before(rt, is_dead, before, view->redo_from);
    else if (rt->job->table.consistency == TT_PS_BSP)
        tti_books_go_back(rt);
    if (restores) // and what is restored it would not have
        tti_books_give_up(rt);
    if (tti_runtime_publish(rt, view, &rt->newest->setting, &shards) != TT_OK) {
        tt_ps_view_free(view);
        return;
    }
    hand_out(rt, is_dead, before);
    say_promotions(rt);
    m->tally->restored += restored_now(rt->newest->view);
    if (restores)
        say_restore(rt, opened, &err);
}

// ---- returns -----------------------------------------------------------------------------------

// Who is there from now on, and what each does; false when that is as it is.
static int
deal_roles(const tti_runtime *rt, uint8_t *is_back, uint32_t *attempt, uint8_t *is_server)
{
    const tt_ps_view *now = rt->newest->view;
    const tt_members *members = &rt->membership.members;
    uint8_t is_gone[TT_PS_NODES_MAX];
    int changes = 0;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        attempt[n] = members->member[n].attempt;
        // What it left is settled first: names of batches are of one process at a time.
        is_back[n] = members->member[n].state == TT_MEMBER_BACK &&
                     rt->books.left[n].state == TTI_LEFT_NOTHING;
        is_gone[n] = now->is_gone[n] && !is_back[n];
        changes |= is_back[n];
    }
    tt_reconfig_roles(tt_reconfig_servers(&rt->job->space, &rt->newest->setting), rt->node_count,
                      is_gone, is_server);
    for (uint32_t n = 0; n < rt->node_count; n++)
        changes |= !is_gone[n] && is_server[n] == now->is_worker[n];
    return changes;
}

static void
say_returns(tti_runtime *rt, const tt_ps_view *view, const uint8_t *is_back)
{
    for (uint32_t n = 0; n < rt->node_count; n++) {
        rt->membership.tally->returns += is_back[n];
        if (is_back[n])
            say(rt, "node %u is back, as a %s", n, view->is_worker[n] ? "worker" : "server");
    }
}

// As when servers change under a new setting.
static tt_status
publish_roles(tti_runtime *rt, tt_ps_view *view)
{
    uint32_t clock, round, shards;
    tti_runtime_horizon(rt, &clock, &round);
    view->effective_round = round;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (view->joined_at[n] == view->generation)
            view->join_clock[n] = clock;
    return tti_runtime_publish(rt, view, &rt->newest->setting, &shards);
}

static void
deal_anew(tti_runtime *rt, uint32_t *attempt)
{
    uint8_t is_back[TT_PS_NODES_MAX], is_server[TT_PS_NODES_MAX];
    tt_ps_view *view = NULL;
    if (!deal_roles(rt, is_back, attempt, is_server) ||
        tt_ps_view_with(rt->newest->view, is_back, attempt, is_server, &view) != TT_OK)
        return; // nothing to do, or no memory: tried again
    if (publish_roles(rt, view) != TT_OK) {
        tt_ps_view_free(view);
        return;
    }
    say_returns(rt, view, is_back);
    tt_members_taken_up(&rt->membership.members);
}

// Those who are back are given work, and who is there has the roles that the setting wants.
static void
reorganise(tti_runtime *rt)
{
    uint8_t is_back[TT_PS_NODES_MAX], is_server[TT_PS_NODES_MAX];
    uint32_t *attempt = tt_mem_zalloc(rt->node_count, sizeof *attempt);
    if (attempt == NULL || !deal_roles(rt, is_back, attempt, is_server)) {
        tt_mem_free(attempt);
        return;
    }
    // Others may have died meanwhile: all do first what that generation tells them.
    if (tti_runtime_close_gate(rt) && tti_runtime_settled(rt))
        deal_anew(rt, attempt);
    tti_runtime_open_gate(rt);
    tt_mem_free(attempt);
}

// ---- backups -----------------------------------------------------------------------------------

// After a death or a change of roles: as many partitions as can be have a backup on a server.
static void
protect(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    tt_ps_view *view = NULL;
    if (m->protected_at == rt->newest->view->generation)
        return;
    if (tt_ps_view_protect(rt->newest->view, rt->backed, &view) != TT_OK)
        return; // without memory for it now: tried again
    int is_fine = view == NULL;
    tt_ps_view_free(view);
    if (is_fine) {
        m->protected_at = rt->newest->view->generation;
        return;
    }
    if (tti_runtime_close_gate(rt) && tti_runtime_settled(rt) &&
        tt_ps_view_protect(rt->newest->view, rt->backed, &view) == TT_OK && view != NULL &&
        publish_roles(rt, view) != TT_OK)
        tt_ps_view_free(view);
    tti_runtime_open_gate(rt);
}

// ---- heartbeats --------------------------------------------------------------------------------

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_runtime *rt = self;
    tti_membership *m = &rt->membership;
    tt_frame answer;
    if (frame->kind == TT_FRAME_REPORT && frame->sender < rt->node_count) {
        tti_command_hear(rt, frame->sender, frame, payload);
        return;
    }
    if (!tt_members_receive(&m->members, frame, tt_clock_now(&rt->clock), &answer))
        return;
    answer.generation = rt->newest->view->generation;
    tt_outbox outbox = tt_mesh_outbox(m->control, rt->node_count);
    outbox.send(outbox.self, frame->sender, &answer, NULL, 0);
}

int
tti_membership_hears(const tti_runtime *rt, uint32_t n)
{
    const tt_members *members = &rt->membership.members;
    const tt_member *member = &members->member[n];
    uint64_t silent_ns = tt_clock_now(&rt->clock) - member->heard_at_ns;
    return member->state == TT_MEMBER_HERE && silent_ns <= members->timeout_ns;
}

uint64_t
tti_membership_wait_ns(const tti_runtime *rt, uint64_t most_ns)
{
    if (!rt->apart)
        return most_ns;
    uint64_t next_ns = tt_members_next_ns(&rt->membership.members);
    uint64_t now_ns = tt_clock_now(&rt->clock);
    return next_ns > now_ns ? TT_MIN(most_ns, next_ns - now_ns) : 1;
}

// What has come, and what is to be said to it.
void
tti_membership_exchange(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    while (tt_mesh_receive(m->control, rt->node_count, 256, on_frame, rt) > 0)
        ;
    tti_runtime_receive(rt);
    tti_command_count(rt);
    tti_command_grant(rt);
    tti_command_send(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        m->must_go_back |= rt->standings[n].round_lost;
}

void
tti_membership_watch(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    if (!rt->apart)
        return;
    if (rt->engine->watch != NULL)
        rt->engine->watch(rt);
    tti_membership_exchange(rt);
    if (m->must_fail)
        return;
    // Who has ended when told to has nothing more to say.
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (tt_load_acquire(&rt->standings[n].ended))
            tt_members_excuse(&m->members, n, tt_clock_now(&rt->clock));
    if (tt_members_tick(&m->members, tt_clock_now(&rt->clock)) > 0)
        bury(rt);
    int settled = tti_runtime_settled(rt);
    if (m->state != NULL && tt_load_acquire(&rt->unretired) == 0) // partition_retired
        close_last_checkpoint(rt);
    // Work is dealt out anew when nothing else is moving.
    if (!settled || m->must_go_back || m->at_the_gate > 0 || tti_stopping(&rt->board) ||
        rt->board.pause || rt->board.hold_round != UINT32_MAX)
        return;
    if (rt->newest->view->lost_at > 0)
        reorganise(rt);
    if (rt->newest->view->replicas > 0 && !m->must_go_back && tti_runtime_settled(rt))
        protect(rt);
}
