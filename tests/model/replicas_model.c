// Goal: with replicas, whatever is lost, doubled or overtaken on the way, whoever of the servers
// dies or is thought dead, and whenever anybody hears of it: no push that was acknowledged is
// lost, none counts twice, nobody is promoted who has no copy, and all can come to an end; of a
// worker that dies or is thought dead, what the servers tell of it is done again by the other, and
// all that is in then is all it had sent till there, each once. Method:
// all states of a small world, breadth first, as ps/src/copies.c, backup.c, placement.c and
// server_batches.c have it;
// with a rule left out, the shortest way to a fault.
//
// The world: one partition, three servers of which one owns it and one is to be its backup, two
// workers with one push under way each, of which the first may be declared dead, a bag of messages.
// Not in it: partitions that move (with
// their spares; moves_model.c), rounds of BSP, processes that come back.
//
//     replicas_model [large | RULE]    large: larger worlds; a rule: the way to its fault
#include "state_search.h"
#include <stdio.h>
#include <string.h>

enum { SERVERS = 3, WORKERS = 2, PUSHES = 3, GENERATIONS = 4, BAG_MAX = 4, NOBODY = 3 };
// Of worker 0 the pushes 0 and 1, of worker 1 push 2.
static const uint8_t worker_of[PUSHES] = {0, 0, 1}, order_of[PUSHES] = {0, 1, 0};
static const uint8_t first_of[WORKERS] = {0, 2};

// ---- rules that can be left out ----------------------------------------------------------------

typedef enum rule {
    WAIT_FOR_BACKUP,    // an acknowledgement waits until the backup has the push
    COPY_RECORDS,       // a copy has the records of what counts already
    NO_GAPS,            // a backup applies the next push only
    ACKS_OF_THIS_REIGN, // what is said to have come under another owner does not count
    ACKS_OF_THE_COPY,   // nor does what came before the copy
    PROMOTE_THE_BACKED, // only who is known to have a copy is promoted
    REFUSE_THE_DEAD,    // who knows of a worker's death takes nothing of it any more
    ALL_TELL,           // its work is handed out when all who live have told what they have seen
    TELL_AGAIN,         // and that after the last death that there was
    SEEN_IN_COPIES,     // a server has seen what is in a copy that it was sent
    KNOW_WHAT_IS_IN,    // what is done again counts only where it is not in
    RULES
} rule;
static const char *const rule_names[RULES] = {
    "wait_for_backup",  "copy_records",       "no_gaps",         "acks_of_this_reign",
    "acks_of_the_copy", "promote_the_backed", "refuse_the_dead", "all_tell",
    "tell_again",       "seen_in_copies",     "know_what_is_in"};
static int has_rule[RULES];

// ---- states ------------------------------------------------------------------------------------

typedef enum role { ABSENT, BACKUP, SERVING } role;

typedef struct server {
    uint8_t alive, role, generation;
    uint8_t has_copy, reign, number; // of its copies, or of the copy it has
    uint8_t count, list[PUSHES + 1]; // pushes that it has applied, in order
    uint8_t record[WORKERS];         // of each worker, how many
    uint8_t target, stated, synced, acked;
    uint8_t told;         // 1 + generation in which its backup had a copy; 0: never
    uint8_t held[PUSHES]; // 1 + number that an answer waits for; 0: none waits
    uint8_t again;        // 1 + push whose answer is to who does it again; 0: none
    uint8_t seen;         // of worker 0's pushes, how many; has_told: that once
    uint8_t has_told;
} server;

typedef enum kind { NONE, PUSH, PUSH_ACK, COPY, COPY_PUSH, COPY_ACK } kind;

typedef struct message {
    uint8_t kind, from, to, push;
    uint8_t reign, number, has_copy, lost;
    uint8_t again; // a push of worker 0's by the other one
    uint8_t count, list[PUSHES + 1], record[WORKERS];
} message;

typedef struct view {
    uint8_t owner, backup, previous, gone; // gone: bits
    uint8_t moved_at, backup_at;
    uint8_t worker_gone; // worker 0
} view;

// What worker 0 has left: in doubt until it is settled; then the last push of which is told is done
// again.
typedef enum left { NOTHING_KNOWN, BEGUN, DONE } left;

typedef struct state {
    server server[SERVERS];
    view view[GENERATIONS];
    uint8_t newest, deaths, doubles; // doubles: of messages, so far
    uint8_t worker_done[WORKERS], worker_generation[WORKERS];
    uint8_t left, told;   // told: how many of its pushes servers have seen
    message bag[BAG_MAX]; // in order, so that equal bags are equal bytes
} state;

typedef struct limits {
    uint32_t bag, deaths, doubles; // messages under way; of servers; of messages
    uint8_t pushes[WORKERS];
    uint8_t worker_dies;
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

// ---- what is sent ------------------------------------------------------------------------------

static void
send(state *s, message m)
{
    search_bag_put(s->bag, BAG_MAX, sizeof *s->bag, most.bag, &m);
}

static void
send_copy(state *s, uint8_t n)
{
    server *o = &s->server[n];
    message m = {.kind = COPY, .from = n, .to = o->target, .reign = o->reign, .number = o->number};
    m.count = o->count;
    memcpy(m.list, o->list, sizeof m.list);
    memcpy(m.record, o->record, sizeof m.record);
    o->stated = 1;
    o->synced = 0;
    o->acked = o->number;
    send(s, m);
}

// Pushes after the last one that the target has: the last so many of the list.
static void
repeat_pushes(state *s, uint8_t n)
{
    const server *o = &s->server[n];
    for (uint8_t number = o->acked + 1; number <= o->number; number++) {
        uint8_t push = o->list[o->count - 1 - (o->number - number)];
        send(s, (message){.kind = COPY_PUSH,
                          .from = n,
                          .to = o->target,
                          .reign = o->reign,
                          .number = number,
                          .push = push});
    }
}

static int
has_all(const server *o)
{
    return o->target == NOBODY || (o->synced && o->acked >= o->number);
}

// tti_copies_advance
static void
advance(state *s, uint8_t n)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    if (o->target != NOBODY && !o->stated)
        send_copy(s, n);
    for (uint8_t p = 0; p < PUSHES; p++)
        if (o->held[p] > 0 && (o->target == NOBODY || (o->synced && o->held[p] - 1 <= o->acked))) {
            o->held[p] = 0;
            send(s, (message){.kind = PUSH_ACK, .from = n, .push = p, .again = o->again == p + 1});
        }
    if (o->target != NOBODY && o->target == v->backup && o->synced)
        o->told = o->generation + 1;
}

// tti_copies_aim
static void
aim(state *s, uint8_t n)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    if (o->target != v->backup || o->reign != v->moved_at)
        o->stated = o->synced = o->acked = 0;
    o->target = v->backup;
    o->reign = v->moved_at;
    advance(s, n);
}

// ---- what is heard -----------------------------------------------------------------------------

static void
see(server *o)
{
    if (o->record[0] > o->seen)
        o->seen = o->record[0];
}

static void
apply(server *o, uint8_t push)
{
    if (o->count <= PUSHES)
        o->list[o->count++] = push;
    o->record[worker_of[push]] = order_of[push] + 1;
    see(o);
}

static void
answer(state *s, uint8_t n, uint8_t push, uint8_t again)
{
    server *o = &s->server[n];
    if (again)
        o->again = push + 1;
    if (has_all(o) || !has_rule[WAIT_FOR_BACKUP])
        send(s, (message){.kind = PUSH_ACK, .from = n, .push = push, .again = again});
    else if (o->held[push] == 0)
        o->held[push] = o->number + 1;
}

static int
is_of_the_dead(const state *s, const message *m)
{
    const server *o = &s->server[m->to];
    return has_rule[REFUSE_THE_DEAD] && worker_of[m->push] == 0 && !m->again &&
           s->view[o->generation].worker_gone;
}

// tti_server_has_batch; records of sequences alone say nothing of another's push.
static int
is_in(const server *o, const message *m)
{
    return order_of[m->push] < o->record[worker_of[m->push]] &&
           (!m->again || has_rule[KNOW_WHAT_IS_IN]);
}

static void
hear_push(state *s, const message *m)
{
    server *o = &s->server[m->to];
    if (o->role != SERVING || is_of_the_dead(s, m))
        return; // it says so, and the worker hears of the new owner from others, too
    if (!is_in(o, m)) {
        apply(o, m->push);
        if (o->target != NOBODY) {
            o->number++;
            if (o->stated)
                send(s, (message){.kind = COPY_PUSH,
                                  .from = m->to,
                                  .to = o->target,
                                  .reign = o->reign,
                                  .number = o->number,
                                  .push = m->push});
        }
    }
    answer(s, m->to, m->push, m->again);
}

static int
is_from_owner(const state *s, const message *m)
{
    const server *b = &s->server[m->to];
    const view *v = &s->view[b->generation];
    if (m->from == v->previous && m->reign < v->moved_at &&
        (!b->has_copy || b->reign <= m->reign) && v->backup == m->to)
        return 1;
    return m->from == v->owner && m->reign == v->moved_at && v->backup == m->to;
}

static void
acknowledge(state *s, const message *m)
{
    const server *b = &s->server[m->to];
    send(s, (message){.kind = COPY_ACK,
                      .from = m->to,
                      .to = m->from,
                      .reign = m->reign,
                      .number = b->number,
                      .has_copy = b->has_copy && b->reign == m->reign,
                      .lost = m->kind == COPY_PUSH && m->number > b->number});
}

static void
hear_copy(state *s, const message *m)
{
    server *b = &s->server[m->to];
    if (b->role != BACKUP || !is_from_owner(s, m))
        return;
    if (!b->has_copy || b->reign != m->reign || m->number > b->number) {
        b->has_copy = 1;
        b->reign = m->reign;
        b->number = m->number;
        b->count = m->count;
        memcpy(b->list, m->list, sizeof b->list);
        memset(b->record, 0, sizeof b->record);
        if (has_rule[COPY_RECORDS])
            memcpy(b->record, m->record, sizeof b->record);
        if (has_rule[SEEN_IN_COPIES])
            see(b);
    }
    acknowledge(s, m);
}

static void
hear_copy_push(state *s, const message *m)
{
    server *b = &s->server[m->to];
    if (b->role != BACKUP || !is_from_owner(s, m))
        return;
    int is_next = has_rule[NO_GAPS] ? m->number == b->number + 1 : m->number > b->number;
    if (b->has_copy && b->reign == m->reign && is_next) {
        apply(b, m->push);
        b->number = m->number;
    }
    acknowledge(s, m);
}

static void
hear_copy_ack(state *s, const message *m)
{
    server *o = &s->server[m->to];
    int of_reign = m->reign == o->reign || !has_rule[ACKS_OF_THIS_REIGN];
    if (o->role != SERVING || !of_reign || o->target != m->from || !o->stated ||
        m->number > o->number)
        return;
    if (!m->has_copy && has_rule[ACKS_OF_THIS_REIGN]) {
        if (o->synced)
            o->stated = o->synced = 0;
    } else if (o->synced || m->number >= o->acked || !has_rule[ACKS_OF_THE_COPY]) {
        o->synced = 1;
        o->acked = m->number > o->acked ? m->number : o->acked;
        if (m->lost)
            repeat_pushes(s, m->to);
    }
    advance(s, m->to);
}

static void
hear(state *s, const message *m)
{
    if (m->kind == PUSH_ACK && m->again) {
        s->left = DONE;
        return;
    }
    if (m->kind == PUSH_ACK) {
        uint8_t w = worker_of[m->push];
        s->worker_done[w] += order_of[m->push] == s->worker_done[w];
        return;
    }
    if (!s->server[m->to].alive)
        return;
    if (m->kind == PUSH)
        hear_push(s, m);
    else if (m->kind == COPY)
        hear_copy(s, m);
    else if (m->kind == COPY_PUSH)
        hear_copy_push(s, m);
    else
        hear_copy_ack(s, m);
}

// ---- generations -------------------------------------------------------------------------------

// tti_server_tell_batches
static void
tell(state *s, uint8_t n)
{
    server *o = &s->server[n];
    if (!s->view[o->generation].worker_gone || (o->has_told && !has_rule[TELL_AGAIN]))
        return;
    o->has_told = 1;
    if (s->left == NOTHING_KNOWN && o->seen > s->told)
        s->told = o->seen;
}

static void
take_role(state *s, uint8_t n)
{
    server *o = &s->server[n];
    const view *v = &s->view[o->generation];
    if (v->gone >> n & 1) { // it ends, and whoever begins in its place is not in this world
        *o = (server){.target = NOBODY};
        return;
    }
    if (v->owner == n) {
        if (o->role != SERVING && !o->has_copy)
            search_fault("who has no copy is promoted");
        o->role = SERVING;
        aim(s, n);
    } else if (v->backup == n && o->role == ABSENT) {
        o->role = BACKUP;
    } else if (v->backup != n && o->role == BACKUP) {
        *o = (server){.alive = 1,
                      .generation = o->generation,
                      .target = NOBODY,
                      .seen = o->seen,
                      .has_told = o->has_told};
    }
}

static void
adopt(state *s, uint8_t n, uint8_t generation)
{
    s->server[n].generation = generation;
    take_role(s, n);
    if (s->server[n].alive)
        tell(s, n);
}

static uint8_t
another(const view *v, uint8_t owner)
{
    for (uint8_t n = 0; n < SERVERS; n++)
        if (n != owner && !(v->gone >> n & 1))
            return n;
    return NOBODY;
}

// 0: nobody has a copy, as far as the master knows; all goes back to a checkpoint, which ends this
// world, honestly.
static int
declare_dead(state *s, uint8_t n)
{
    view next = s->view[s->newest];
    const server *owner = &s->server[next.owner];
    uint8_t generation = ++s->newest;
    int is_backed = owner->told > next.backup_at || !has_rule[PROMOTE_THE_BACKED];
    next.gone |= (uint8_t)(1u << n);
    if (next.owner == n) {
        if (!is_backed || next.backup == NOBODY || next.gone >> next.backup & 1)
            return 0;
        next.previous = n;
        next.owner = next.backup;
        next.moved_at = generation;
    }
    if (next.owner == next.backup || next.gone >> next.backup & 1 || next.previous == n) {
        next.backup = another(&next, next.owner);
        next.backup_at = generation;
    }
    s->view[generation] = next;
    return 1;
}

// All who are there know of the last death.
static int
all_have_told(const state *s)
{
    const view *v = &s->view[s->newest];
    for (uint8_t n = 0; has_rule[ALL_TELL] && n < SERVERS; n++)
        if (!(v->gone >> n & 1) && (!s->server[n].alive || s->server[n].generation < s->newest))
            return 0;
    return v->worker_gone && s->left == NOTHING_KNOWN;
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
happen_to_workers(const state *s)
{
    for (uint8_t w = 0; w < WORKERS; w++) {
        state next = *s;
        if (s->worker_done[w] < most.pushes[w]) {
            uint8_t push = first_of[w] + s->worker_done[w];
            uint8_t to = s->view[s->worker_generation[w]].owner;
            send(&next, (message){.kind = PUSH, .to = to, .push = push});
            reach(&next);
        }
        for (uint8_t g = s->worker_generation[w] + 1; g <= s->newest; g++) {
            next = *s;
            next.worker_generation[w] = g;
            reach(&next);
        }
    }
}

// Worker 0 is declared dead; it may be, or go on for a while.
static void
happen_to_the_dead(const state *s)
{
    const view *v = &s->view[s->newest];
    state next = *s;
    if (most.worker_dies && !v->worker_gone) {
        next.view[++next.newest] = *v;
        next.view[next.newest].worker_gone = 1;
        reach(&next);
    }
    next = *s;
    if (all_have_told(s)) {
        next.left = s->told > 0 ? BEGUN : DONE;
        reach(&next);
    }
    if (s->left != BEGUN)
        return;
    uint8_t to = s->view[s->worker_generation[1]].owner, push = first_of[0] + s->told - 1;
    send(&next, (message){.kind = PUSH, .to = to, .push = push, .again = 1});
    reach(&next);
}

static void
happen_to_servers(const state *s)
{
    for (uint8_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        for (uint8_t g = o->generation + 1; o->alive && g <= s->newest; g++) {
            state next = *s;
            adopt(&next, n, g);
            reach(&next);
        }
        if (o->alive && o->role == SERVING && !has_all(o)) { // a tick
            state next = *s;
            if (o->synced)
                repeat_pushes(&next, n);
            else
                send_copy(&next, n);
            reach(&next);
        }
        const view *v = &s->view[s->newest];
        if (s->deaths < most.deaths && (n == v->owner || n == v->backup)) {
            state next = *s;
            next.deaths++;
            if (!declare_dead(&next, n))
                continue;
            reach(&next); // the master only thinks so
            next.server[n] = (server){.target = NOBODY};
            reach(&next);
        }
    }
}

static void
expand(const void *from)
{
    const state *s = from;
    happen_to_messages(s);
    happen_to_workers(s);
    happen_to_the_dead(s);
    happen_to_servers(s);
}

static int
is_finished(const void *of)
{
    const state *s = of;
    int first_done = most.worker_dies ? s->left == DONE : s->worker_done[0] == most.pushes[0];
    return first_done && s->worker_done[1] == most.pushes[1];
}

static const char *
look_for_faults(const void *in)
{
    const state *s = in;
    for (uint8_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        uint32_t times[PUSHES] = {0};
        for (uint8_t i = 0; i < o->count; i++)
            times[o->list[i]]++;
        int rules_now = o->alive && o->role == SERVING && o->generation == s->newest;
        for (uint8_t p = 0; p < PUSHES && rules_now; p++) {
            if (times[p] > 1)
                return "a push counts twice";
            if (times[p] == 0 && order_of[p] < s->worker_done[worker_of[p]])
                return "a push that was acknowledged is lost";
            if (worker_of[p] != 0 || s->left == NOTHING_KNOWN)
                continue;
            if (times[p] > 0 && order_of[p] >= s->told)
                return "of a dead worker something is in that nobody has told of";
            if (times[p] == 0 && order_of[p] + (s->left == BEGUN) < s->told)
                return "of a dead worker something is not in that was to be";
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
        s.server[n] = (server){.alive = 1, .target = NOBODY};
    for (uint32_t g = 0; g < GENERATIONS; g++)
        s.view[g] = (view){.owner = 0, .backup = 1, .previous = 0};
    s.server[0].role = SERVING;
    s.server[1].role = BACKUP;
    aim(&s, 0);
    reach(&s);
}

static void
print(const void *what)
{
    static const char *const kinds[] = {"-", "PUSH", "PUSH_ACK", "COPY", "COPY_PUSH", "COPY_ACK"};
    static const char *const roles[] = {"-", "backup", "serves"};
    const state *s = what;
    (void)printf("    generation %u, done %u %u, told %u%s |", s->newest, s->worker_done[0],
                 s->worker_done[1], s->told,
                 s->left == DONE    ? " done"
                 : s->left == BEGUN ? " begun"
                                    : "");
    for (uint32_t n = 0; n < SERVERS; n++) {
        const server *o = &s->server[n];
        (void)printf(" %s%s %u of %u:", o->alive ? "" : "dead ", roles[o->role], o->generation,
                     o->number);
        for (uint32_t i = 0; i < o->count; i++)
            (void)printf(" p%u", o->list[i]);
        (void)printf(" |");
    }
    for (uint32_t i = 0; i < BAG_MAX; i++)
        if (s->bag[i].kind != NONE)
            (void)printf(" %s %u>%u", kinds[s->bag[i].kind], s->bag[i].from, s->bag[i].to);
    (void)printf("\n");
}

// ---- worlds ------------------------------------------------------------------------------------

static const search_world replicas = {.state_bytes = sizeof(state),
                                      .begin = begin,
                                      .expand = expand,
                                      .look_for_faults = look_for_faults,
                                      .is_finished = is_finished,
                                      .print = print};

static void
set_limits(const void *limits_of_it, char *name, size_t size)
{
    most = *(const limits *)limits_of_it;
    (void)snprintf(name, size, "%u under way, %u twice, %u die%s, %u+%u pushes", most.bag,
                   most.doubles, most.deaths, most.worker_dies ? " and a worker" : "",
                   most.pushes[0], most.pushes[1]);
}

int
main(int argc, char **argv)
{
    static const limits small[] = {{2, 1, 1, {1, 1}, 0}, {2, 1, 0, {1, 0}, 1}},
                        large[] = {{2, 1, 0, {2, 1}, 0}, {3, 1, 0, {1, 1}, 0}, {2, 2, 0, {1, 1}, 0},
                                   {2, 1, 0, {1, 1}, 1}, {2, 1, 0, {2, 0}, 1}, {2, 1, 1, {1, 0}, 1},
                                   {3, 1, 0, {1, 0}, 1}};
    limits broken[RULES];
    for (uint32_t r = 0; r < RULES; r++)
        broken[r] = (limits){3, 2, 1, {1, 1}, r >= REFUSE_THE_DEAD};
    const search_plan plan = {.world = &replicas,
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
