// Goal: with replicas, wherever a partition moves meanwhile, whatever is lost, doubled or overtaken
// on the way, and whichever host dies, or is thought dead, with all servers on it: no push that was
// acknowledged is lost, nothing goes back to a checkpoint as long as there was a copy on another
// host before the move, and all can come to an end. Method: all states of a small world, breadth
// first, as ps/src/placement.c, moves.c, copies.c and backup.c have it; with a rule left out, the
// shortest way to a fault.
//
// The world: one partition, three servers on hosts, one of which owns it and one is its backup, one
// worker that pushes one thing after another and asks again; processes that die and come back. So a
// partition is how many pushes are in it. A push to a copy is said as a COPY of the whole; numbers,
// records and who counts twice are the matter of replicas_model.c. Not in it: rounds of BSP.
//
//     moves_model [large | RULE]    large: larger worlds; a rule: the way to its fault
#include "state_search.h"
#include <stdio.h>
#include <string.h>

enum { SERVERS = 3, GENERATIONS = 6, BAG_MAX = 3, NOBODY = 3, TARGETS = 2 };

// ---- rules that can be left out ----------------------------------------------------------------

typedef enum rule {
    BACKUP_WAITS,          // nothing is acknowledged before the backup has it
    SPARE_WAITS,           // nor before the spare has it
    SEALED_IS_FROZEN,      // what is sealed takes no pushes
    FREED_WHEN_COMPLETE,   // a copy is kept until the new owner has said that it has it
    HANDED_OVER_ONCE,      // what is handed over counts for the move it was sealed for only
    COPIES_OF_THIS_REIGN,  // a copy of an owner before does not replace one of the owner now
    COPIES_SINCE_THEN,     // nor is one known of from before a time when none was wanted there
    ACKS_SINCE_THEN,       // nor does what was acknowledged before that
    ACKS_OF_THE_COPY,      // nor what is less than the copy that was sent
    STAYS_ON_ANOTHER_HOST, // who moves to the host of its backup leaves a backup where it was
    RULES
} rule;
static const char *const rule_names[RULES] = {
    "backup_waits",     "spare_waits",          "sealed_is_frozen",  "freed_when_complete",
    "handed_over_once", "copies_of_this_reign", "copies_since_then", "acks_since_then",
    "acks_of_the_copy", "stays_on_another_host"};
static int has_rule[RULES];

// ---- states ------------------------------------------------------------------------------------

typedef enum role { ABSENT, BACKUP, ARRIVING, SERVING, SEALED } role;

typedef struct target {
    uint8_t node, stated, synced, acked;
    uint8_t since; // generation from which on a copy has been wanted there
} target;

typedef struct server {
    uint8_t alive, role, generation;
    uint8_t attempt; // which process of its number it is
    uint8_t moved_at, peer;
    uint8_t reign, count; // of what it has: who was the owner, how many pushes are in it
    uint8_t has_copy, takes_over;
    uint8_t told; // 1 + generation in which its backup had a copy; 0: never
    uint8_t left; // generation of the move after which it had nothing more to give; 0: none
    target target[TARGETS];
} server;

typedef enum kind { NONE, PUSH, PUSH_ACK, COPY, HAND_OVER, COPY_ACK, COMPLETE } kind;

typedef struct message {
    uint8_t kind, from, to, attempt, reign, count;
    uint8_t generation; // that its sender is in; of a COPY_ACK
} message;

typedef enum way { MOVE, PROMOTE } way;

typedef struct view {
    uint8_t owner, backup, spare, previous, gone; // gone: bits
    uint8_t moved_at, moved_by, backup_at;
    uint8_t attempt[SERVERS];
    uint8_t backup_since, spare_since; // it has been the one or the other without a pause
} view;

typedef struct state {
    server server[SERVERS];
    view view[GENERATIONS];
    uint8_t newest, moves, deaths, returns, doubles; // so far
    uint8_t backed, moving;                          // as the master knows it
    uint8_t worker_done, worker_generation;
    message bag[BAG_MAX]; // in order, so that equal bags are equal bytes
} state;

typedef struct limits {
    uint32_t bag, moves, deaths, returns, doubles, pushes;
    uint8_t host[SERVERS];
} limits;
static limits most;

// ---- messages ----------------------------------------------------------------------------------

static void
reach(state *s)
{
    for (uint32_t i = 0; i < BAG_MAX; i++) // nobody hears these
        if (s->bag[i].kind != NONE && s->bag[i].kind != PUSH_ACK && !s->server[s->bag[i].to].alive)
            s->bag[i] = (message){0};
    search_bag_order(s->bag, BAG_MAX, sizeof *s->bag);
    search_reach(s);
}

static void
send(state *s, message m)
{
    if (m.kind != PUSH && m.kind != PUSH_ACK)
        m.attempt = s->server[m.from].attempt;
    search_bag_put(s->bag, BAG_MAX, sizeof *s->bag, most.bag, &m);
}

// ---- views (placement.c) -----------------------------------------------------------------------

// tti_ps_view_hands_over: the new owner gets it in one piece, for the old one goes on as its
// backup.
static int
hands_over(const view *v)
{
    return v->spare == v->owner ||
           (v->backup == v->previous && v->backup_at == v->moved_at && v->moved_by == MOVE);
}

static void
set_backup(view *v, uint8_t node, uint8_t generation)
{
    v->backup = node;
    v->backup_at = v->backup_since = generation;
}

static void
keep_as_spare(view *v)
{
    v->spare = v->backup;
    v->spare_since = v->backup_since;
}

// tt_ps_view_give
static void
give(view *v, uint8_t to, uint8_t generation)
{
    uint8_t from = v->owner;
    int shares_host = v->backup != NOBODY && v->backup != to &&
                      most.host[v->backup] == most.host[to] && most.host[from] != most.host[to];
    v->previous = from;
    v->owner = to;
    v->moved_at = generation;
    v->moved_by = MOVE;
    if (v->spare == from)
        v->spare = NOBODY;
    if (v->backup == to || (shares_host && has_rule[STAYS_ON_ANOTHER_HOST])) {
        keep_as_spare(v);
        set_backup(v, from, generation);
    }
}

static int
is_there(const view *v, uint8_t node)
{
    return node != NOBODY && !(v->gone >> node & 1);
}

// choose_backup
static uint8_t
best_backup(const view *v)
{
    uint8_t best = NOBODY;
    for (uint8_t n = 0; n < SERVERS; n++)
        if (n != v->owner && is_there(v, n) &&
            (best == NOBODY ||
             (most.host[best] == most.host[v->owner] && most.host[n] != most.host[v->owner])))
            best = n;
    return best;
}

// tt_ps_view_protect. False: there is nothing to change.
static int
protect(view *v, int backed, uint8_t generation)
{
    uint8_t best = best_backup(v);
    int changes = 0;
    if (v->spare != NOBODY && backed) {
        v->spare = NOBODY;
        changes = 1;
    }
    int is_well_backed =
        best == NOBODY ? v->backup == NOBODY
                       : v->backup != NOBODY && (most.host[v->backup] != most.host[v->owner] ||
                                                 most.host[best] == most.host[v->owner]);
    if (v->spare != NOBODY || is_well_backed)
        return changes;
    if (backed)
        keep_as_spare(v);
    set_backup(v, best, generation);
    return 1;
}

// tt_ps_view_is_backed
static int
is_backed(const view *before, const view *after, int was_backed)
{
    if (after->backup == NOBODY)
        return 0;
    if (after->backup == before->backup)
        return was_backed;
    int stays =
        after->backup == before->owner && after->moved_at > before->moved_at && hands_over(after);
    return stays || after->backup == before->spare;
}

// tt_ps_view_without. False: nobody has it all.
static int
leave_out(view *v, uint8_t dead, int moving, int backed, uint8_t generation)
{
    v->gone |= dead;
    for (uint8_t n = 0; n < SERVERS; n++)
        v->attempt[n] += dead >> n & 1;
    int is_lost = v->gone >> v->owner & 1 || (moving && v->gone >> v->previous & 1);
    uint8_t was_owner = v->owner, heir = NOBODY;
    if (is_lost && is_there(v, v->backup) && backed)
        heir = v->backup;
    else if (is_lost && is_there(v, v->spare))
        heir = v->spare;
    if (is_lost && heir == NOBODY)
        return 0;
    if (is_lost) {
        v->owner = v->previous = heir;
        v->moved_at = generation;
        v->moved_by = PROMOTE;
    }
    if (!is_there(v, v->backup) || v->backup == v->owner)
        v->backup = NOBODY;
    if (!is_there(v, v->spare) || (v->spare == v->owner && was_owner != v->owner))
        v->spare = NOBODY;
    if (v->backup == NOBODY && v->spare != v->owner) {
        set_backup(v, v->spare, generation);
        v->backup_since = v->spare_since;
        v->spare = NOBODY;
    }
    if (v->backup == NOBODY)
        set_backup(v, best_backup(v), generation);
    return 1;
}

// ---- the owner of copies (copies.c) ------------------------------------------------------------

static int
has_all(const server *o)
{
    for (uint32_t i = 0; i < TARGETS; i++)
        if (o->target[i].node != NOBODY && (!o->target[i].synced || o->target[i].acked < o->count))
            return 0;
    return 1;
}

static void
tell_backed(state *s, uint8_t n)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    for (uint32_t i = 0; v->owner == n && i < TARGETS; i++)
        if (o->target[i].node != NOBODY && o->target[i].node == v->backup && o->target[i].synced)
            o->told = o->generation + 1;
}

static target
target_for(const server *before, uint8_t reign, uint8_t node, uint8_t since)
{
    for (uint32_t i = 0; before->reign == reign && i < TARGETS; i++)
        if (before->target[i].node == node &&
            (before->target[i].since == since || !has_rule[COPIES_SINCE_THEN]))
            return before->target[i];
    return (target){.node = node, .since = since};
}

// tti_copies_aim
static void
aim(state *s, uint8_t n)
{
    server *o = &s->server[n], before = *o;
    const view *v = &s->view[o->generation];
    uint8_t wanted[TARGETS] = {has_rule[BACKUP_WAITS] ? v->backup : NOBODY,
                               has_rule[SPARE_WAITS] ? v->spare : NOBODY},
            since[TARGETS] = {v->backup_since, v->spare_since};
    if (v->owner != n) { // narrow
        for (uint32_t i = 0; i < TARGETS; i++)
            if (o->target[i].node != v->backup && o->target[i].node != v->spare)
                o->target[i] = (target){.node = NOBODY};
        return;
    }
    if (o->role != SERVING && o->role != ARRIVING)
        return;
    o->reign = v->moved_at;
    for (uint32_t i = 0; i < TARGETS; i++)
        o->target[i] = wanted[i] != NOBODY && wanted[i] != n
                           ? target_for(&before, o->reign, wanted[i], since[i])
                           : (target){.node = NOBODY};
    tell_backed(s, n);
}

// ---- coming and going (server.c, backup.c) -----------------------------------------------------

static int
is_target(const state *s, uint8_t n)
{
    const view *v = &s->view[s->server[n].generation];
    return v->owner != n && (v->backup == n || v->spare == n);
}

static void
clear(server *o)
{
    *o = (server){.alive = 1,
                  .generation = o->generation,
                  .attempt = o->attempt,
                  .moved_at = o->moved_at,
                  .left = o->left,
                  .target = {{.node = NOBODY}, {.node = NOBODY}}};
}

// tti_backup_stay: what it has is all there was, and of no owner's any more.
static void
stay(server *o)
{
    uint8_t count = o->count;
    clear(o);
    o->role = BACKUP;
    o->has_copy = 1;
    o->count = count;
}

static void
forget(state *s, uint8_t n, uint8_t moved_at)
{
    server *o = &s->server[n];
    if (is_target(s, n) && (o->role == SERVING || o->role == SEALED))
        stay(o);
    else
        clear(o);
    o->moved_at = moved_at;
}

static void
promote(state *s, uint8_t n, uint8_t moved_at)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    if (v->owner != n && o->role == BACKUP) {
        o->moved_at = moved_at;
        o->takes_over = 0;
        return;
    }
    if (v->owner != n) {
        forget(s, n, moved_at);
        return;
    }
    if (o->role != SERVING && o->role != SEALED && !(o->role == BACKUP && o->has_copy))
        search_fault("who has no copy is promoted");
    if (o->role == SEALED)
        stay(o);
    o->moved_at = moved_at;
    o->role = SERVING;
    o->takes_over = 0;
    o->left = moved_at;
}

static void
adopt_move(state *s, uint8_t n, uint8_t moved_at)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    if (v->moved_by == PROMOTE) {
        promote(s, n, moved_at);
        return;
    }
    if (o->role == BACKUP && v->owner != n) { // tti_backup_forget_the_past
        o->moved_at = moved_at;
        o->takes_over = 0;
    } else if (o->role == SEALED || o->role == ARRIVING ||
               (o->role == SERVING && v->previous != n)) {
        forget(s, n, moved_at);
    }
    if (v->owner == n && o->role != SERVING) {
        if (o->role != BACKUP)
            o->role = hands_over(v) ? BACKUP : ARRIVING;
        o->takes_over = 1;
        o->moved_at = moved_at;
        o->peer = v->previous;
    } else if (v->owner != n && o->role == SERVING) {
        o->role = SEALED;
        o->moved_at = moved_at;
        o->peer = v->owner;
    }
}

static void
adopt(state *s, uint8_t n, uint8_t generation)
{
    server *o = &s->server[n];
    const view *v = &s->view[generation];
    o->generation = generation;
    if (v->gone >> n & 1) { // it ends, and whoever begins in its place is not in this world
        *o = (server){.target = {{.node = NOBODY}, {.node = NOBODY}}};
        return;
    }
    if (v->moved_at > o->moved_at)
        adopt_move(s, n, v->moved_at);
    if (v->owner != n) { // tti_backup_adopt
        if (!is_target(s, n) && o->role == BACKUP)
            clear(o);
        else if (is_target(s, n) && o->role == ABSENT)
            o->role = BACKUP;
        if (o->role == BACKUP)
            o->moved_at = v->moved_at;
    }
    aim(s, n);
}

// ---- what is heard -----------------------------------------------------------------------------

static void
hear_push(state *s, const message *m)
{
    server *o = &s->server[m->to];
    int takes = o->role == SERVING || (o->role == SEALED && !has_rule[SEALED_IS_FROZEN]);
    if (takes && m->count == o->count)
        o->count++;
    if ((o->role == SERVING || o->role == SEALED) && m->count < o->count && has_all(o))
        send(s, (message){.kind = PUSH_ACK, .count = m->count});
}

// tti_server_handle_complete
static void
complete(state *s, uint8_t n, uint8_t of)
{
    server *o = &s->server[n];
    if (o->role != SEALED || o->moved_at != of)
        return;
    if (is_target(s, n))
        stay(o);
    else
        clear(o);
    o->moved_at = o->left = of;
}

// take_over, and the last piece of a drain
static void
hear_hand_over(state *s, const message *m)
{
    server *o = &s->server[m->to];
    message done = {.kind = COMPLETE, .from = m->to, .to = m->from, .reign = m->reign};
    int is_mine = m->reign == o->moved_at || !has_rule[HANDED_OVER_ONCE];
    if (o->role == SERVING && m->from == o->peer && m->reign == o->moved_at)
        send(s, done);
    if (!is_mine || !o->takes_over || (o->role != BACKUP && o->role != ARRIVING))
        return;
    o->count = m->count;
    o->role = SERVING;
    o->takes_over = 0;
    send(s, done);
    aim(s, m->to);
}

static int
is_from_owner(const state *s, const message *m)
{
    const server *b = &s->server[m->to];
    const view *v = &s->view[b->generation];
    if (m->from == v->previous && m->reign < v->moved_at &&
        (!b->has_copy || b->reign <= m->reign || !has_rule[COPIES_OF_THIS_REIGN]) &&
        (b->takes_over || is_target(s, m->to)))
        return 1;
    return m->from == v->owner && m->reign == v->moved_at && is_target(s, m->to);
}

static void
hear_copy(state *s, const message *m)
{
    server *b = &s->server[m->to];
    if (!is_from_owner(s, m))
        return;
    if (b->role == SEALED && m->reign == b->moved_at)
        complete(s, m->to, m->reign);
    if (b->role != BACKUP)
        return;
    if (!b->has_copy || b->reign != m->reign || m->count > b->count) {
        b->has_copy = 1;
        b->reign = m->reign;
        b->count = m->count;
    }
    send(s, (message){.kind = COPY_ACK,
                      .from = m->to,
                      .to = m->from,
                      .reign = m->reign,
                      .count = b->count,
                      .generation = b->generation});
}

static void
hear_copy_ack(state *s, const message *m)
{
    server *o = &s->server[m->to];
    for (uint32_t i = 0; m->reign == o->reign && i < TARGETS; i++) {
        target *t = &o->target[i];
        if (t->node != m->from || !t->stated || m->count > o->count ||
            (m->generation < t->since && has_rule[ACKS_SINCE_THEN]) ||
            (!t->synced && m->count < t->acked && has_rule[ACKS_OF_THE_COPY]))
            continue;
        t->synced = 1;
        t->acked = m->count > t->acked ? m->count : t->acked;
    }
    if (o->role == SERVING)
        tell_backed(s, m->to);
}

static void
hear(state *s, const message *m)
{
    if (m->kind == PUSH_ACK) {
        s->worker_done += m->count == s->worker_done;
        return;
    }
    const server *hears = &s->server[m->to];
    if (!hears->alive)
        return;
    if (m->kind != PUSH && m->attempt < s->view[hears->generation].attempt[m->from])
        return; // from one that was declared dead
    if (m->kind == PUSH)
        hear_push(s, m);
    else if (m->kind == COPY)
        hear_copy(s, m);
    else if (m->kind == HAND_OVER)
        hear_hand_over(s, m);
    else if (m->kind == COPY_ACK)
        hear_copy_ack(s, m);
    else
        complete(s, m->to, m->reign);
}

// ---- what may happen ---------------------------------------------------------------------------

static void
happen_to_messages(const state *s)
{
    for (uint32_t i = 0; i < BAG_MAX; i++) {
        if (s->bag[i].kind == NONE)
            continue;
        state next = *s;
        next.bag[i] = (message){0};
        reach(&next); // it is lost
        next = *s;
        next.bag[i] = (message){0};
        hear(&next, &s->bag[i]);
        reach(&next);
        if (s->doubles >= most.doubles)
            continue;
        next = *s;
        next.doubles++;
        hear(&next, &s->bag[i]);
        reach(&next);
    }
}

static void
happen_to_the_worker(const state *s)
{
    state next = *s;
    if (s->worker_done < most.pushes) {
        uint8_t to = s->view[s->worker_generation].owner;
        send(&next, (message){.kind = PUSH, .to = to, .count = s->worker_done});
        reach(&next);
    }
    for (uint8_t g = s->worker_generation + 1; g <= s->newest; g++) {
        next = *s;
        next.worker_generation = g;
        reach(&next);
    }
}

// What an owner says when it has waited for long enough, or at once.
static void
speak(const state *s, uint8_t n)
{
    const server *o = &s->server[n];
    state next;
    for (uint32_t i = 0; (o->role == SERVING || o->role == SEALED) && i < TARGETS; i++) {
        const target *t = &o->target[i];
        if (t->node == NOBODY || (t->synced && t->acked >= o->count))
            continue;
        next = *s;
        next.server[n].target[i].stated = 1;
        if (!t->synced)
            next.server[n].target[i].acked = o->count;
        send(&next,
             (message){
                 .kind = COPY, .from = n, .to = t->node, .reign = o->reign, .count = o->count});
        reach(&next);
    }
    if (o->role != SEALED)
        return;
    next = *s;
    send(&next,
         (message){
             .kind = HAND_OVER, .from = n, .to = o->peer, .reign = o->moved_at, .count = o->count});
    if (!has_rule[FREED_WHEN_COMPLETE])
        complete(&next, n, o->moved_at);
    reach(&next);
}

static void
happen_to_servers(const state *s)
{
    for (uint8_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        if (!o->alive)
            continue;
        for (uint8_t g = o->generation + 1; g <= s->newest; g++) {
            state next = *s;
            adopt(&next, n, g);
            reach(&next);
        }
        speak(s, n);
    }
}

// ---- the master --------------------------------------------------------------------------------

static int
is_settled(const state *s)
{
    const view *v = &s->view[s->newest];
    for (uint8_t n = 0; n < SERVERS; n++)
        if (!(v->gone >> n & 1) && s->server[n].generation < s->newest)
            return 0;
    return !s->moving && (s->backed || v->backup == NOBODY);
}

static void
publish(state *s, const view *next)
{
    const view *last = &s->view[s->newest];
    s->backed = (uint8_t)is_backed(last, next, s->backed);
    s->moving |= next->moved_at > last->moved_at;
    s->view[++s->newest] = *next;
}

static void
happen_to_reports(const state *s)
{
    const view *v = &s->view[s->newest];
    for (uint8_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        state next = *s;
        if (s->moving && o->left == v->moved_at) {
            next.moving = 0;
            reach(&next);
        }
        next = *s;
        if (!s->backed && v->owner == n && o->told > v->backup_at) {
            next.backed = 1;
            reach(&next);
        }
    }
}

static void
happen_to_hosts(const state *s)
{
    const view *v = &s->view[s->newest];
    for (uint8_t dead = 1; dead < 1 << SERVERS; dead++) {
        int one_host = 1, one_server = (dead & (dead - 1)) == 0;
        for (uint8_t n = 0; n < SERVERS; n++)
            for (uint8_t m = 0; m < SERVERS; m++)
                if (dead >> n & 1)
                    one_host &= (dead >> m & 1) == (most.host[m] == most.host[n]);
        if (!(one_host || one_server) || (v->gone & dead) != 0 ||
            (v->gone | dead) == (1 << SERVERS) - 1)
            continue;
        state next = *s;
        view after = *v;
        next.deaths++;
        if (!leave_out(&after, dead, s->moving, s->backed, s->newest + 1)) {
            // After a death there may be no second copy yet, or none on another host.
            if (s->deaths == 0)
                search_fault("one host dies, and nobody has it all");
            continue;
        }
        publish(&next, &after);
        reach(&next); // the master only thinks so
        for (uint8_t n = 0; n < SERVERS; n++)
            if (dead >> n & 1)
                next.server[n] = (server){.target = {{.node = NOBODY}, {.node = NOBODY}}};
        reach(&next);
    }
}

// A process begins in the place of one that died, and is given the partition, or not.
static void
come_back(const state *s)
{
    for (uint8_t n = 0; s->returns < most.returns && n < SERVERS; n++)
        for (int gives = 0; gives < 2; gives++) {
            state next = *s;
            view after = s->view[s->newest];
            if (!(after.gone >> n & 1))
                continue;
            after.gone &= (uint8_t) ~(1u << n);
            next.returns++;
            if (gives)
                give(&after, n, s->newest + 1);
            publish(&next, &after);
            next.server[n] = (server){.alive = 1,
                                      .attempt = after.attempt[n],
                                      .target = {{.node = NOBODY}, {.node = NOBODY}}};
            adopt(&next, n, next.newest);
            reach(&next);
        }
}

static void
happen_to_the_master(const state *s)
{
    const view *v = &s->view[s->newest];
    happen_to_reports(s);
    if (s->newest + 1 == GENERATIONS)
        return;
    if (s->deaths < most.deaths)
        happen_to_hosts(s);
    if (!is_settled(s))
        return;
    come_back(s);
    state next = *s;
    view after = *v;
    if (protect(&after, s->backed, s->newest + 1)) {
        publish(&next, &after);
        reach(&next);
    }
    for (uint8_t n = 0; s->moves < most.moves && n < SERVERS; n++) {
        if (n == v->owner || v->gone >> n & 1)
            continue;
        next = *s;
        after = *v;
        next.moves++;
        give(&after, n, s->newest + 1);
        publish(&next, &after);
        reach(&next);
    }
}

// ---- the search --------------------------------------------------------------------------------

static void
expand(const void *from)
{
    happen_to_messages(from);
    happen_to_the_worker(from);
    happen_to_servers(from);
    happen_to_the_master(from);
}

static int
is_finished(const void *of)
{
    const state *s = of;
    uint32_t there = 0;
    for (uint8_t n = 0; n < SERVERS; n++)
        there += is_there(&s->view[s->newest], n);
    return s->worker_done == most.pushes && is_settled(s) &&
           (s->moves == most.moves || there < 2 || s->newest + 1 == GENERATIONS);
}

static const char *
look_for_faults(const void *in)
{
    const state *s = in;
    for (uint8_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        if (!o->alive || o->role != SERVING || o->generation < s->newest)
            continue;
        if (o->count < s->worker_done)
            return "a push that was acknowledged is lost";
        for (uint32_t i = 0; i < TARGETS; i++) {
            const target *t = &o->target[i];
            const server *b = &s->server[t->node % SERVERS];
            if (t->node != NOBODY && t->synced && b->role == BACKUP && b->has_copy &&
                b->count < t->acked)
                return "a copy lacks what its owner believes it has";
        }
    }
    return NULL;
}

static void
begin(void)
{
    state s;
    memset(&s, 0, sizeof s);
    for (uint8_t n = 0; n < SERVERS; n++)
        s.server[n] = (server){.alive = 1, .target = {{.node = NOBODY}, {.node = NOBODY}}};
    s.view[0] = (view){.owner = 0, .backup = 1, .spare = NOBODY, .previous = 0};
    s.server[0].role = SERVING;
    s.server[1].role = BACKUP;
    s.server[1].has_copy = 1;
    s.backed = 1;
    aim(&s, 0);
    s.server[0].target[0].stated = s.server[0].target[0].synced = 1;
    reach(&s);
}

static void
print(const void *what)
{
    static const char *const kinds[] = {"-",         "PUSH",     "PUSH_ACK", "COPY",
                                        "HAND_OVER", "COPY_ACK", "COMPLETE"};
    static const char *const roles[] = {"-", "backup", "arrives", "serves", "sealed"};
    const state *s = what;
    const view *v = &s->view[s->newest];
    (void)printf("    generation %u: %u, backup %u%s, spare %u%s; done %u |", s->newest, v->owner,
                 v->backup, s->backed ? "" : "?", v->spare, s->moving ? ", moving" : "",
                 s->worker_done);
    for (uint32_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        (void)printf(" %s%s %u: %u |", o->alive ? "" : "dead ", roles[o->role], o->generation,
                     o->count);
    }
    for (uint32_t i = 0; i < BAG_MAX; i++)
        if (s->bag[i].kind != NONE)
            (void)printf(" %s %u>%u", kinds[s->bag[i].kind], s->bag[i].from, s->bag[i].to);
    (void)printf("\n");
}

static const search_world moves = {.state_bytes = sizeof(state),
                                   .begin = begin,
                                   .expand = expand,
                                   .look_for_faults = look_for_faults,
                                   .is_finished = is_finished,
                                   .print = print};

static void
set_limits(const void *limits_of_it, char *name, size_t size)
{
    most = *(const limits *)limits_of_it;
    (void)snprintf(name, size,
                   "hosts %u%u%u, %u under way, %u twice, %u die, %u back, %u moves, %u pushes",
                   most.host[0], most.host[1], most.host[2], most.bag, most.doubles, most.deaths,
                   most.returns, most.moves, most.pushes);
}

int
main(int argc, char **argv)
{
    static const limits small[] = {{1, 1, 1, 0, 0, 1, {0, 1, 1}},
                                   {1, 1, 1, 0, 0, 1, {0, 1, 2}},
                                   {2, 1, 0, 0, 1, 1, {0, 1, 1}}},
                        large[] = {{1, 2, 1, 0, 0, 1, {0, 1, 1}}, {1, 1, 1, 1, 0, 1, {0, 1, 1}},
                                   {2, 1, 1, 0, 1, 2, {0, 1, 1}}, {2, 1, 1, 0, 0, 1, {0, 1, 2}},
                                   {1, 2, 2, 0, 0, 1, {0, 1, 1}}, {2, 1, 1, 1, 0, 1, {0, 1, 1}},
                                   {3, 2, 0, 0, 1, 1, {0, 1, 1}}},
                        broken[RULES] = {[BACKUP_WAITS] = {1, 1, 1, 0, 0, 1, {0, 1, 1}},
                                         [SPARE_WAITS] = {1, 1, 1, 0, 0, 1, {0, 1, 1}},
                                         [SEALED_IS_FROZEN] = {1, 1, 1, 0, 0, 1, {0, 1, 1}},
                                         [FREED_WHEN_COMPLETE] = {1, 1, 1, 0, 0, 1, {0, 1, 1}},
                                         [HANDED_OVER_ONCE] = {2, 3, 0, 0, 0, 1, {0, 1, 2}},
                                         [COPIES_OF_THIS_REIGN] = {2, 2, 0, 0, 0, 1, {0, 1, 1}},
                                         [COPIES_SINCE_THEN] = {2, 1, 1, 0, 0, 1, {0, 1, 1}},
                                         [ACKS_SINCE_THEN] = {1, 1, 2, 0, 0, 2, {0, 1, 1}},
                                         [ACKS_OF_THE_COPY] = {2, 1, 1, 0, 0, 2, {0, 1, 1}},
                                         [STAYS_ON_ANOTHER_HOST] = {1, 1, 1, 0, 0, 1, {0, 1, 1}}};
    const search_plan plan = {.world = &moves,
                              .limits_bytes = sizeof(limits),
                              .small = small,
                              .large = large,
                              .broken = broken,
                              .small_count = sizeof small / sizeof *small,
                              .large_count = sizeof large / sizeof *large,
                              .rule_count = RULES,
                              .set_limits = set_limits,
                              .rules = rule_names,
                              .has_rule = has_rule};
    return search_main(&plan, argc, argv);
}
