// Goal: no update is lost or applied twice, whatever moves, role flips, losses, duplicates and
// reorderings happen meanwhile, and whichever way partitions travel. Method: servers and clients
// stepped in one thread over a bag of messages with a seeded schedule; integer additive updates
// whose exact sum is known. A failing seed is printed; TT_SEED=n runs that one alone (by every way
// of moving), TT_SEEDS=n sets how many. Each process hears of a new view at a time of its own;
// under BSP before it begins the round from which it holds.
//
// With deaths, processes end anywhere, or are declared dead and go on for a while, and come back
// under the next attempt. What a server held begins at zero again, as there is no checkpoint; from
// there on the sum of what was acknowledged is exact. With replicas it goes on from its backup, if
// that was known to have a copy, and the sum is exact from the beginning. The last batch of a
// worker that died that any server tells of is done again by another, under its name, and counts
// once everywhere; what no server tells of is in nowhere. At the end every copy is what it is a
// copy of.
//
// In two worlds of three some processes see memory of each other, as those of one host do, and
// servers among them lend what they have sealed instead of sending it. What a process that ended
// had lent is there still, or is not; in some worlds nobody can take what is lent.
#include "client_core.h"
#include "table_state.h"
#include "tt/ps.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    NODES_MAX = 6,
    ROWS = 90,
    SPARSE_KEYS = 120,
    NET_MAX = 4096,
    BATCH_MAX = 24,
    SLICES = 6,
    LISTS = 3
};

typedef struct letter {
    uint32_t to;
    tt_frame frame;
    uint8_t *payload;
} letter;

typedef enum move_way { CARRIED, DRAINED, EITHER } move_way; // EITHER: each partition its own
static const char *const way_names[] = {"on demand", "drained", "either way"};

typedef struct world world;

typedef struct actor {
    world *world;
    uint32_t index;
    tt_ps_server *server;
    tt_ps_client *client;
    uint32_t heard;            // the newest of the world's views that it knows
    const tt_ps_view *adopted; // by the node (the server core may be ahead)
    int working;               // acts as a worker now
    int pushing;
    uint32_t round, slice; // BSP position
    uint32_t clock;        // SSP
    int ended_data;        // SSP: has said that it has no more data
    uint32_t merged;
    uint32_t keys32[ROWS];
    uint64_t keys64[SPARSE_KEYS];
    uint64_t lists[LISTS][SPARSE_KEYS]; // sparse: some that it had
    uint32_t list_count[LISTS];
    tt_ps_keys keys;
    float values[SPARSE_KEYS * 2], gradients[SPARSE_KEYS * 2];
    // with deaths
    uint32_t attempt, lost_seen;
    int ended;             // the process; nothing is delivered to it
    int unannounced;       // SSP: some server does not know its clock
    uint64_t given;        // batches this process was given
    int again;             // the batch under way is that of worker again - 1, who died; 0: its own
    tt_ps_server *remains; // of the process before: what it had lent is there still
} actor;

// One partition's part of a push, as it was first sent.
typedef struct part {
    uint32_t worker, attempt, partition, count;
    uint64_t sequence;
    int acknowledged;
    tti_push_batch batch;
    uint64_t keys[SPARSE_KEYS];
    float gradients[SPARSE_KEYS * 2];
} part;

// A batch as it was pushed.
typedef struct batch {
    tti_push_batch name;
    uint32_t count;
    uint32_t keys32[ROWS];
    uint64_t keys64[SPARSE_KEYS];
    float gradients[SPARSE_KEYS * 2];
} batch;

// What a dead worker's process has left.
typedef enum left_state { NOTHING_LEFT, IN_DOUBT, BEGUN, HELD } left_state;
typedef struct left {
    left_state state;
    uint32_t attempt;
    uint32_t holder, holder_attempt;
    tt_ps_batch last;
} left;

struct world {
    uint64_t seed;
    move_way way;
    tt_rng rng, memory_rng; // the latter of what follows from seeing memory of others
    tt_ps_table table;
    uint32_t node_count, drop_percent, duplicate_percent;
    int whole, lossy, mortal;
    uint8_t backed[8]; // the partition's backup is known to have a copy
    uint64_t promotions, restores;
    actor actors[NODES_MAX];
    tt_ps_view *views[128];
    uint32_t view_count;
    letter net[NET_MAX];
    uint32_t net_count;
    uint64_t now;
    uint32_t unretired, moves, flips, deaths, host_deaths, returns;
    uint32_t moving[8];      // generation of the partition's move under way, or 0
    uint32_t restored_at[8]; // acknowledgements of before are of a state that is lost
    uint32_t attempts[NODES_MAX];
    part *parts;
    uint32_t part_count, part_capacity;
    batch *batches;
    uint32_t batch_count, batch_capacity;
    left left[NODES_MAX];
    uint64_t agains;
    int shares, in_vain; // some see memory of each other; nobody can take what is lent there
    uint8_t sees[NODES_MAX][NODES_MAX + 1];
    uint64_t lent;
    double expected[SPARSE_KEYS * 2]; // exact: small integers
    uint64_t pushes, carried;
};

// The memory that they see, by one end of a mesh each. thread: the test's
static struct {
    int fd;
    tt_mesh *mesh[NODES_MAX];
} memory = {.fd = -1};

static uint32_t
pick(world *w, uint32_t bound)
{
    return (uint32_t)tt_rng_below(&w->rng, bound);
}

// ---- what was acknowledged ---------------------------------------------------------------------

static uint64_t
key_on_wire(const world *w, const tt_frame *frame, const uint8_t *keys, uint32_t i)
{
    if (w->table.kind == TT_PS_SPARSE) {
        uint64_t key;
        memcpy(&key, keys + i * sizeof key, sizeof key);
        return key / 0x1234567u;
    }
    uint32_t row = i;
    if ((frame->flags & TT_FRAME_WHOLE) == 0)
        memcpy(&row, keys + i * sizeof row, sizeof row);
    return tt_ps_partition_first(&w->table, frame->partition) + row;
}

static part *
find_part(world *w, uint32_t worker, const tt_frame *frame)
{
    for (uint32_t i = w->part_count; i-- > 0;) {
        part *p = &w->parts[i];
        if (p->worker == worker && p->attempt == frame->attempt &&
            p->partition == frame->partition && p->sequence == frame->sequence)
            return p;
    }
    return NULL;
}

static const uint8_t *
keys_named(const tt_ps_client *client, uint32_t partition)
{
    const tti_request *request = &client->requests[client->routes[partition].request];
    return client->list->wire_keys + request->begin * tti_key_bytes(client->table);
}

static void
note_push(world *w, const actor *from, const tt_frame *frame, const tt_span *spans)
{
    if (find_part(w, from->index, frame) != NULL)
        return; // sent again
    if (w->part_count == w->part_capacity) {
        w->part_capacity = 2 * w->part_capacity + 64;
        w->parts = realloc(w->parts, w->part_capacity * sizeof *w->parts);
        assert_non_null(w->parts);
    }
    part *p = &w->parts[w->part_count++];
    *p = (part){.worker = from->index,
                .attempt = frame->attempt,
                .partition = frame->partition,
                .count = frame->count,
                .sequence = frame->sequence,
                .batch = from->client->batch};
    const uint8_t *keys = spans[1].bytes;
    if ((frame->flags & TT_FRAME_NAMED) != 0 && keys == NULL) // not sent
        keys = keys_named(from->client, frame->partition);
    for (uint32_t i = 0; i < frame->count; i++)
        p->keys[i] = key_on_wire(w, frame, keys, i);
    if (spans[2].size > 0)
        memcpy(p->gradients, spans[2].bytes, spans[2].size);
}

static int
is_same_batch(const tti_push_batch *a, const tti_push_batch *b)
{
    return a->worker == b->worker && a->batch.attempt == b->batch.attempt &&
           a->batch.end == b->batch.end && a->batch.rows > 0 && b->batch.rows > 0;
}

// Another has pushed it, and was told that it is in, in the state that there is now.
static int
was_acknowledged(const world *w, const part *p)
{
    for (const part *other = w->parts; other < w->parts + w->part_count; other++)
        if (other->acknowledged && other->partition == p->partition &&
            other->sequence >> 32 == w->restored_at[p->partition] &&
            is_same_batch(&other->batch, &p->batch))
            return 1;
    return 0;
}

static void
note_acknowledgement(world *w, uint32_t to, const tt_frame *frame)
{
    part *p = find_part(w, to, frame);
    assert_non_null(p);
    if (p->acknowledged || frame->sequence >> 32 != w->restored_at[frame->partition])
        return;
    int counts = !was_acknowledged(w, p);
    p->acknowledged = 1;
    for (uint32_t i = 0; counts && i < p->count; i++)
        for (uint32_t j = 0; j < w->table.width; j++)
            w->expected[p->keys[i] * w->table.width + j] +=
                (double)p->gradients[i * w->table.width + j];
}

static void
keep_account(world *w, const actor *from, uint32_t to, const tt_frame *frame, const tt_span *spans)
{
    if (frame->kind == TT_FRAME_PUSH)
        note_push(w, from, frame, spans);
    else if (frame->kind == TT_FRAME_PUSH_ACK)
        note_acknowledgement(w, to, frame);
}

// Its guard will never have said so.
static void
spoil_loan(const world *w, const letter *item)
{
    tti_lent_rows *lent = (tti_lent_rows *)(void *)(item->payload + item->frame.payload_bytes) - 1;
    if (w->in_vain)
        lent->mark += 2;
}

static void
post(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    actor *from = self;
    world *w = from->world;
    size_t size = 0;
    for (uint32_t i = 0; i < span_count; i++)
        size += spans[i].size;
    frame->magic = TT_FRAME_MAGIC;
    frame->version = TT_FRAME_VERSION;
    frame->sender = (uint16_t)from->index;
    frame->payload_bytes = (uint32_t)size;
    if (w->mortal)
        keep_account(w, from, to, frame, spans);
    assert_true(w->net_count < NET_MAX);
    letter *item = &w->net[w->net_count++];
    item->to = to;
    item->frame = *frame;
    item->payload = size > 0 ? malloc(size) : NULL;
    for (uint32_t i = 0, at = 0; i < span_count; i++) {
        if (spans[i].size > 0)
            memcpy(item->payload + at, spans[i].bytes, spans[i].size);
        at += (uint32_t)spans[i].size;
    }
    if (frame->kind == TT_FRAME_SEAL && (frame->flags & TT_FRAME_LENT) != 0) {
        w->lent++;
        spoil_loan(w, item);
    }
}

static const tt_ps_view *
newest(void *self)
{
    const actor *a = self;
    return a->world->views[a->heard];
}

// What was published reaches each process at some time, of which the others know nothing.
static void
hear(actor *a)
{
    if (a->ended || pick(a->world, 4) > 0)
        return;
    a->heard = a->world->view_count - 1;
    tt_ps_server_hear(a->server);
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    world *w = ((actor *)self)->world;
    if (w->moving[partition] != generation) {
        assert_true(w->mortal); // overtaken by a restore
        return;
    }
    w->moving[partition] = 0;
    assert_true(w->unretired > 0);
    w->unretired--;
}

static void
backed(void *self, uint32_t partition, uint32_t generation)
{
    const actor *a = self;
    world *w = a->world;
    const tt_ps_view *last = w->views[w->view_count - 1];
    if (last->owner[partition] == a->index && generation >= last->backup_at[partition])
        w->backed[partition] = 1;
}

static void
last_batch(void *self, uint32_t worker, const tt_ps_batch *last)
{
    left *l = &((actor *)self)->world->left[worker];
    if (l->state == IN_DOUBT && last->attempt == l->attempt && tti_batch_is_after(last, &l->last))
        l->last = *last;
}

// The end that keeps the checkpoints. There are none.
static void
answer_as_keeper(world *w, const tt_frame *frame)
{
    actor keeper = {.world = w, .index = w->node_count};
    tt_outbox outbox = {.self = &keeper, .send = post};
    if (frame->kind == TT_FRAME_RESTORE)
        tt_ps_state_answer(&w->table, NULL, frame, outbox);
}

// A server may drop what it knows of lists of keys whenever it likes.
static void
forget_lists(tt_ps_server *server, uint32_t partition)
{
    tti_lists_free(server->lists[partition], server->node_count);
    server->lists[partition] = NULL;
}

// What was lent is there with its state, as long as nothing was pushed to it.
static void
expect_taken(const world *w, const actor *to, const tt_frame *seal)
{
    const actor *from = &w->actors[seal->sender];
    const tti_slot *taken = &to->server->slots[seal->partition];
    const tti_slot *sealed = from->ended ? NULL : &from->server->slots[seal->partition];
    if (sealed == NULL || sealed->state != TTI_SEALED || sealed->moved_at != seal->extra ||
        taken->state != TTI_SERVING || taken->moved_at != seal->extra ||
        taken->partition->steps != sealed->partition->steps)
        return;
    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {
        size_t row_bytes;
        const void *a = tti_partition_array(sealed->partition, i, &row_bytes);
        const void *b = tti_partition_array(taken->partition, i, &row_bytes);
        if (a != NULL && memcmp(a, b, sealed->partition->rows * row_bytes) != 0)
            fail_msg("seed %llu, %s: partition %u is not what was sealed",
                     (unsigned long long)w->seed, way_names[w->way], seal->partition);
    }
}

static void
deliver(world *w)
{
    if (w->net_count == 0)
        return;
    uint32_t i = pick(w, w->net_count);
    letter item = w->net[i];
    int duplicate = w->lossy && pick(w, 100) < w->duplicate_percent;
    if (!duplicate)
        w->net[i] = w->net[--w->net_count];
    if (!(w->lossy && pick(w, 100) < w->drop_percent)) {
        actor *to = item.to < w->node_count ? &w->actors[item.to] : NULL;
        tt_frame_kind kind = (tt_frame_kind)item.frame.kind;
        if (to == NULL)
            answer_as_keeper(w, &item.frame);
        else if (to->ended)
            ; // nobody is there
        else if (kind == TT_FRAME_PULL_REPLY || kind == TT_FRAME_PUSH_ACK ||
                 kind == TT_FRAME_MOVED || kind == TT_FRAME_WANT_KEYS) {
            tt_ps_client_time(to->client, w->now);
            tt_ps_client_receive(to->client, &item.frame, item.payload);
        } else {
            if (pick(w, 50) == 0)
                forget_lists(to->server, item.frame.partition);
            tt_ps_server_receive(to->server, &item.frame, item.payload);
            if (kind == TT_FRAME_SEAL && (item.frame.flags & TT_FRAME_LENT) != 0)
                expect_taken(w, to, &item.frame);
        }
    }
    if (!duplicate)
        free(item.payload);
}

// ---- workers ----------------------------------------------------------------------------------

static void
choose_keys(actor *a)
{
    world *w = a->world;
    a->keys = (tt_ps_keys){0};
    if (w->whole) {
        a->keys.count = ROWS;
        return;
    }
    // Sparse: half of all lists come again.
    uint32_t list = w->table.kind == TT_PS_SPARSE ? pick(w, 2 * LISTS) : LISTS;
    if (list < LISTS && a->list_count[list] > 0) {
        a->keys.count = a->list_count[list];
        memcpy(a->keys64, a->lists[list], a->keys.count * sizeof *a->keys64);
        for (uint32_t i = 0; i < a->keys.count; i++)
            a->keys32[i] = (uint32_t)(a->keys64[i] / 0x1234567u);
        a->keys.keys = a->keys64;
        return;
    }
    uint32_t wanted = pick(w, BATCH_MAX), range = w->table.kind == TT_PS_DENSE ? ROWS : SPARSE_KEYS,
             count = 0;
    for (uint32_t key = 0; key < range; key++) {
        if (pick(w, range) >= wanted)
            continue;
        a->keys32[count] = key;
        a->keys64[count++] = (uint64_t)key * 0x1234567u;
    }
    a->keys.count = count;
    if (w->table.kind == TT_PS_DENSE)
        a->keys.rows = a->keys32;
    else
        a->keys.keys = a->keys64;
    if (list < LISTS) {
        memcpy(a->lists[list], a->keys64, count * sizeof *a->keys64);
        a->list_count[list] = count;
    }
}

// What worker `whose` had begun.
static const batch *
find_batch(const world *w, uint32_t whose)
{
    const tti_push_batch name = {.batch = w->left[whose].last, .worker = whose};
    for (const batch *b = w->batches; b < w->batches + w->batch_count; b++)
        if (is_same_batch(&b->name, &name))
            return b;
    fail_msg("seed %llu: a batch that nobody pushed", (unsigned long long)w->seed);
    return NULL;
}

static void
note_batch(world *w, const actor *a)
{
    if (w->batch_count == w->batch_capacity) {
        w->batch_capacity = 2 * w->batch_capacity + 64;
        w->batches = realloc(w->batches, w->batch_capacity * sizeof *w->batches);
        assert_non_null(w->batches);
    }
    batch *b = &w->batches[w->batch_count++];
    b->name = (tti_push_batch){.batch = {a->given, 1, a->attempt}, .worker = a->index};
    b->count = a->keys.count;
    memcpy(b->keys32, a->keys32, sizeof b->keys32);
    memcpy(b->keys64, a->keys64, sizeof b->keys64);
    memcpy(b->gradients, a->gradients, sizeof b->gradients);
}

// Keys of a batch that is done again.
static void
take_keys(actor *a, const batch *b)
{
    a->keys = (tt_ps_keys){.count = b->count};
    memcpy(a->keys32, b->keys32, sizeof a->keys32);
    memcpy(a->keys64, b->keys64, sizeof a->keys64);
    if (!a->world->whole && a->world->table.kind == TT_PS_DENSE)
        a->keys.rows = a->keys32;
    else if (!a->world->whole)
        a->keys.keys = a->keys64;
}

static int
next_slice(const actor *a, uint32_t from)
{
    for (uint32_t k = from; k < SLICES; k++)
        if (a->adopted->slice_owner[k] == a->index)
            return (int)k;
    return -1;
}

// At an iteration boundary: takes over the newest view when it is due. Under BSP that is the round
// it names.
static void
boundary(actor *a)
{
    world *w = a->world;
    int bsp = w->table.consistency == TT_PS_BSP;
    // The gate: nobody begins a round from which a view holds before he has heard of it.
    if (bsp && a->working && a->round >= w->views[w->view_count - 1]->effective_round)
        a->heard = w->view_count - 1;
    const tt_ps_view *view = newest(a);
    if (view->attempt[a->index] != a->attempt)
        return; // it was declared dead, and has not heard of it
    if (view != a->adopted && (!bsp || !a->working || a->round >= view->effective_round)) {
        int was_working = a->adopted->is_worker[a->index];
        a->unannounced |= view->lost_at > a->lost_seen && a->working;
        a->lost_seen = view->lost_at;
        a->adopted = view;
        tt_ps_server_adopt(a->server, view);
        tt_ps_client_adopt(a->client, view);
        if (!was_working && view->is_worker[a->index]) {
            a->round = view->effective_round;
            a->slice = 0;
            a->clock = view->join_clock[a->index];
        }
    }
    // A server that becomes a worker does so when everything it gave away is gone.
    a->working =
        a->adopted->is_worker[a->index] && (a->working || tt_ps_server_held(a->server) == 0);
}

static void
begin_pull(actor *a)
{
    world *w = a->world;
    uint32_t need = 0;
    if (w->table.consistency == TT_PS_BSP) {
        int slice = next_slice(a, a->slice);
        if (slice < 0) { // its part of the round is done
            a->round++;
            a->slice = 0;
            return;
        }
        a->slice = (uint32_t)slice;
        need = a->round;
    } else if (w->table.consistency == TT_PS_SSP) {
        uint32_t bound = pick(w, 4);
        need = a->clock > bound ? a->clock - bound : 0;
    }
    tt_ps_client_set(a->client, 1 + pick(w, 6), 0);
    if (a->again > 0)
        take_keys(a, find_batch(w, (uint32_t)a->again - 1));
    else
        choose_keys(a);
    tt_ps_client_pull(a->client, a->keys, need, 0, a->values);
    a->pushing = 0;
}

static void
name_push(actor *a)
{
    world *w = a->world;
    if (a->again > 0) {
        const batch *b = find_batch(w, (uint32_t)a->again - 1);
        memcpy(a->gradients, b->gradients, sizeof a->gradients);
        tt_ps_client_name_batch(a->client, b->name.worker, b->name.batch);
        w->agains++;
    } else if (w->mortal) {
        a->given++;
        note_batch(w, a);
        tt_ps_client_name_batch(a->client, a->index, (tt_ps_batch){a->given, 1, a->attempt});
    }
}

static void
begin_push(actor *a)
{
    world *w = a->world;
    uint32_t width = w->table.width;
    for (uint32_t i = 0; i < a->keys.count; i++) {
        uint32_t key = w->whole ? i : a->keys32[i];
        for (uint32_t j = 0; j < width; j++) {
            float g = (float)pick(w, 17) - 8;
            a->gradients[i * width + j] = g;
            w->expected[key * width + j] += w->mortal ? 0 : (double)g;
        }
    }
    name_push(a);
    uint32_t clock = w->table.consistency == TT_PS_BSP ? a->round : a->clock + 1;
    uint32_t detail = w->table.consistency == TT_PS_BSP ? a->slice : 1;
    tt_ps_client_push(a->client, a->gradients, clock, detail);
    a->pushing = 1;
    w->pushes++;
}

// ---- what the dead have begun ------------------------------------------------------------------

static int
has_begun(const world *w)
{
    for (uint32_t n = 0; n < w->node_count; n++)
        if (w->left[n].state == BEGUN)
            return 1;
    return 0;
}

static int
has_left(const world *w)
{
    for (uint32_t n = 0; n < w->node_count; n++)
        if (w->left[n].state != NOTHING_LEFT)
            return 1;
    return 0;
}

static void
take_begun(actor *a)
{
    world *w = a->world;
    int lives = w->attempts[a->index] == a->attempt; // else the master gives it nothing
    for (uint32_t n = 0; lives && n < w->node_count && a->again == 0; n++) {
        if (w->left[n].state != BEGUN)
            continue;
        w->left[n].state = HELD;
        w->left[n].holder = a->index;
        w->left[n].holder_attempt = a->attempt;
        a->again = (int)n + 1;
    }
}

// It is in everywhere, if the master has not given it to another meanwhile; or it was given up.
static void
end_again(actor *a, int done)
{
    left *l = a->again > 0 ? &a->world->left[a->again - 1] : NULL;
    a->again = 0;
    if (l != NULL && l->state == HELD && l->holder == a->index && l->holder_attempt == a->attempt)
        l->state = done ? NOTHING_LEFT : BEGUN;
}

// All who are there know of the last death: nothing is in doubt any more.
static void
end_doubts(world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    for (uint32_t n = 0; n < w->node_count; n++) {
        const actor *a = &w->actors[n];
        if (!last->is_gone[n] && (a->ended || a->adopted->lost_at < last->lost_at))
            return;
    }
    for (uint32_t n = 0; n < w->node_count; n++)
        if (w->left[n].state == IN_DOUBT)
            w->left[n].state = w->left[n].last.rows > 0 ? BEGUN : NOTHING_LEFT;
}

static void
leave(world *w, uint32_t n)
{
    for (uint32_t m = 0; m < w->node_count; m++)
        if (w->left[m].state == HELD && w->left[m].holder == n)
            w->left[m].state = BEGUN;
    if (w->table.consistency != TT_PS_BSP)
        w->left[n] = (left){.state = IN_DOUBT, .attempt = w->actors[n].attempt};
}

static void
worker_step(actor *a, int may_begin)
{
    if (a->ended)
        return;
    tt_ps_client_time(a->client, a->world->now);
    const tt_ps_view *view = newest(a);
    if (!tt_ps_client_done(a->client) && view->lost_at > a->lost_seen &&
        view->attempt[a->index] == a->attempt) {
        if (a->pushing == 0) { // asked again after the boundary
            tt_ps_client_abandon(a->client);
            a->pushing = 2;
            end_again(a, 0);
            return;
        }
        a->lost_seen = view->lost_at;
        tt_ps_client_lose(a->client, view);
        a->unannounced = 1;
    }
    if (!tt_ps_client_done(a->client)) {
        if (a->world->lossy) // without losses nothing may depend on asking again
            tt_ps_client_tick(a->client, 400);
        return;
    }
    if (a->pushing == 0) { // a pull has just ended
        begin_push(a);
        return;
    }
    if (a->pushing == 1) { // a push has just ended
        a->pushing = 2;
        end_again(a, 1);
        a->clock++;
        a->slice++;
        return;
    }
    boundary(a);
    if (a->working && a->unannounced) {
        a->unannounced = a->ended_data = 0;
        tt_ps_client_announce(a->client, a->clock);
    } else if (a->working && (may_begin || has_begun(a->world))) {
        take_begun(a);
        if (may_begin || a->again > 0)
            begin_pull(a);
    } else if (!may_begin && a->working && !a->ended_data) {
        // The others' last pulls must be answered although this clock stands still from now on.
        a->ended_data = 1;
        tt_ps_client_end(a->client);
    }
}

// ---- the master -------------------------------------------------------------------------------

static void
choose_ways(world *w, tt_ps_view *view)
{
    if (w->way == DRAINED)
        tt_ps_view_move_by(view, TT_PS_MOVE_DRAIN);
    for (uint32_t p = 0; w->way == EITHER && view->replicas == 0 && p < view->partition_count; p++)
        if (view->moved_at[p] == view->generation && pick(w, 2))
            view->moved_by[p] = TT_PS_MOVE_DRAIN;
}

static void
note_backups(world *w, const tt_ps_view *view)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    for (uint32_t p = 0; p < view->partition_count; p++) {
        w->backed[p] = (uint8_t)tt_ps_view_is_backed(last, view, p, w->backed[p]);
        if (view->moved_at[p] != view->generation)
            continue;
        w->promotions += view->moved_by[p] == TT_PS_MOVE_PROMOTE;
        w->restores += view->moved_by[p] == TT_PS_MOVE_RESTORE;
    }
}

static int
is_backed(const world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    for (uint32_t p = 0; p < last->partition_count; p++)
        if (last->backup[p] != TT_PS_NOBODY && !w->backed[p])
            return 0;
    return 1;
}

static void
put_in_force(world *w, tt_ps_view *view)
{
    note_backups(w, view);
    for (uint32_t p = 0; p < view->partition_count; p++) {
        if (view->moved_at[p] != view->generation)
            continue;
        w->unretired += w->moving[p] == 0;
        w->moving[p] = view->generation;
    }
    w->views[w->view_count++] = view;
}

static void
publish(world *w)
{
    if (w->unretired > 0 || !is_backed(w) || w->view_count == TT_COUNT_OF(w->views))
        return;
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint32_t max_round = 0, max_clock = 0;
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (last->is_gone[n])
            continue;
        if (w->actors[n].ended || w->actors[n].adopted != last)
            return; // the one before is still being adopted
        if (last->is_worker[n] && !w->actors[n].working)
            return;
        max_round = TT_MAX(max_round, w->actors[n].round);
        max_clock = TT_MAX(max_clock, w->actors[n].clock);
    }
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    uint32_t there = 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        there += !last->is_gone[n];
    uint32_t servers = 1 + pick(w, there - 1);
    for (uint32_t chosen = 0; chosen < servers;) {
        uint32_t n = pick(w, w->node_count);
        chosen += !is_server[n] && !last->is_gone[n];
        is_server[n] |= !last->is_gone[n];
    }
    tt_ps_view *view = NULL;
    if (pick(w, 2))
        assert_int_equal(tt_ps_view_protect(last, w->backed, &view), TT_OK);
    if (view == NULL)
        assert_int_equal(tt_ps_view_next(last, pick(w, 5) == 0 ? NULL : is_server, &view), TT_OK);
    view->effective_round = w->table.consistency == TT_PS_BSP ? max_round + 1 + pick(w, 2) : 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        if (view->joined_at[n] == view->generation)
            view->join_clock[n] = max_clock;
    choose_ways(w, view);
    w->moves += tt_ps_view_moves(last, view);
    w->flips++;
    put_in_force(w, view);
}

// ---- deaths ------------------------------------------------------------------------------------

// As a new process sees it: nothing that it has there is in use.
static tt_pool *
open_memory(actor *a)
{
    tt_error err;
    tt_mesh **mesh = &memory.mesh[a->index];
    tt_ps_server_close(a->remains);
    a->remains = NULL;
    if (memory.fd < 0)
        assert_int_equal(tt_mesh_share(NODES_MAX, &memory.fd, &err), TT_OK);
    if (*mesh != NULL && a->attempt > 1) {
        tt_mesh_close(*mesh);
        *mesh = NULL;
    }
    if (*mesh == NULL)
        assert_int_equal(tt_mesh_attach(memory.fd, mesh, &err), TT_OK);
    return tt_mesh_outbox(*mesh, a->index).pool;
}

static void
close_memory(void)
{
    for (uint32_t n = 0; n < NODES_MAX; n++)
        tt_mesh_close(memory.mesh[n]);
    if (memory.fd >= 0)
        (void)close(memory.fd);
}

static void
open_process(actor *a, const tt_ps_view *view)
{
    world *w = a->world;
    tt_error err;
    tt_outbox outbox = {.self = a, .send = post};
    if (w->shares) {
        outbox.pool = open_memory(a);
        outbox.shares = w->sees[a->index];
    }
    tt_ps_hooks hooks = {.self = a,
                         .newest = newest,
                         .retired = retired,
                         .backed = backed,
                         .last_batch = last_batch,
                         .keeper = w->node_count,
                         .attempt = a->attempt};
    assert_int_equal(
        tt_ps_server_open(&w->table, a->index, w->node_count + 1, outbox, hooks, &a->server, &err),
        TT_OK);
    assert_int_equal(tt_ps_server_start(a->server, view), TT_OK);
    assert_int_equal(tt_ps_client_open(&w->table, a->index, w->node_count, SPARSE_KEYS, outbox,
                                       hooks, &a->client, &err),
                     TT_OK);
    tt_ps_client_adopt(a->client, view);
    a->heard = w->view_count - 1;
    a->adopted = view;
    a->lost_seen = view->lost_at;
    a->pushing = 2;
    a->working = view->is_worker[a->index];
}

static void
end_process(actor *a)
{
    if (a->world->shares && tt_rng_below(&a->world->memory_rng, 2))
        a->remains = a->server;
    else
        tt_ps_server_close(a->server);
    tt_ps_client_close(a->client);
    a->server = NULL;
    a->client = NULL;
    a->ended = 1;
}

static uint32_t
living(const world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint32_t count = 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        count += !last->is_gone[n] && !w->actors[n].ended;
    return count;
}

static void
declare_dead(world *w, const uint8_t *is_dead)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint8_t moving[8];
    tt_ps_view *view;
    for (uint32_t p = 0; p < w->table.partition_count; p++)
        moving[p] = w->moving[p] != 0;
    assert_int_equal(tt_ps_view_without(last, is_dead, moving, w->backed, 1 + pick(w, 2), &view),
                     TT_OK);
    for (uint32_t n = 0; n < w->node_count; n++) {
        w->attempts[n] = view->attempt[n];
        if (is_dead[n])
            leave(w, n);
    }
    for (uint32_t key = 0; key < (w->table.kind == TT_PS_DENSE ? ROWS : SPARSE_KEYS); key++) {
        uint64_t wire = w->table.kind == TT_PS_DENSE ? key : (uint64_t)key * 0x1234567u;
        uint32_t p = tt_ps_partition_of(&w->table, wire);
        for (uint32_t j = 0; view->restored_at[p] == view->generation && j < w->table.width; j++)
            w->expected[key * w->table.width + j] = 0;
    }
    memcpy(w->restored_at, view->restored_at, w->table.partition_count * sizeof *w->restored_at);
    w->deaths++;
    put_in_force(w, view);
}

// With replicas hosts end, too: that of node n, when enough are left.
static void
end_host(world *w, uint32_t n)
{
    const uint16_t *host = w->views[0]->host;
    uint32_t there = 0;
    for (uint32_t m = 0; m < w->node_count; m++)
        there += host[m] == host[n] && !w->actors[m].ended;
    if (living(w) < there + 2)
        return;
    for (uint32_t m = 0; m < w->node_count; m++)
        if (host[m] == host[n] && !w->actors[m].ended)
            end_process(&w->actors[m]);
    w->host_deaths++;
}

// One process ends, or is only thought to have ended; the master hears of it sooner or later.
static void
die(world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint8_t is_dead[NODES_MAX] = {0};
    uint32_t n = pick(w, w->node_count);
    if (w->view_count + 2 >= TT_COUNT_OF(w->views))
        return;
    if (w->table.replicas && pick(w, 4) == 0)
        end_host(w, n);
    else if (!w->actors[n].ended && !last->is_gone[n] && living(w) > 3 && pick(w, 3) > 0)
        end_process(&w->actors[n]);
    for (uint32_t m = 0; m < w->node_count; m++)
        is_dead[m] = w->actors[m].ended && !last->is_gone[m];
    if (!last->is_gone[n] && living(w) > 3 && pick(w, 3) == 0)
        is_dead[n] = 1; // it goes on for a while
    if (memchr(is_dead, 1, w->node_count) != NULL && pick(w, 2))
        declare_dead(w, is_dead);
}

// Those that were declared dead hear of it, or are started anew, and get work.
static void
come_back(world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint8_t is_back[NODES_MAX] = {0}, is_server[NODES_MAX];
    uint32_t n = pick(w, w->node_count), clock = 0;
    tt_ps_view *view;
    if (!last->is_gone[n] || w->unretired > 0 || !is_backed(w) ||
        w->left[n].state != NOTHING_LEFT || w->view_count + 2 >= TT_COUNT_OF(w->views))
        return;
    if (!w->actors[n].ended)
        end_process(&w->actors[n]);
    for (uint32_t m = 0; m < w->node_count; m++) {
        is_server[m] = m == n ? pick(w, 2) == 0 : !last->is_gone[m] && !last->is_worker[m];
        clock = TT_MAX(clock, w->actors[m].clock);
    }
    is_back[n] = 1;
    w->actors[n].ended = 0;
    w->actors[n].attempt = w->attempts[n];
    w->actors[n].clock = 0;
    w->actors[n].given = 0;
    w->actors[n].again = 0;
    open_process(&w->actors[n], last);
    assert_int_equal(tt_ps_view_with(last, is_back, w->attempts, is_server, &view), TT_OK);
    for (uint32_t m = 0; m < w->node_count; m++)
        if (view->joined_at[m] == view->generation)
            view->join_clock[m] = clock;
    w->returns++;
    put_in_force(w, view);
}

// Who sees whose memory: all of one of two groups.
static void
choose_memory(world *w)
{
    uint32_t group[NODES_MAX];
    tt_rng_init(&w->memory_rng, w->seed, TT_RNG_SCHEDULE, 1);
    w->shares = tt_rng_below(&w->memory_rng, 3) > 0;
    w->in_vain = tt_rng_below(&w->memory_rng, 8) == 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        group[n] = tt_rng_below(&w->memory_rng, 3) > 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        for (uint32_t m = 0; m < w->node_count; m++)
            w->sees[n][m] = group[n] == group[m];
}

static void
open_world(world *w, uint64_t seed, move_way way, int mortal, int replicas)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->way = way;
    w->mortal = mortal;
    tt_rng_init(&w->rng, seed, TT_RNG_SCHEDULE, 0);
    w->node_count = 3 + pick(w, NODES_MAX - 2);
    w->lossy = pick(w, 3) > 0;
    w->drop_percent = pick(w, 15);
    w->duplicate_percent = pick(w, 15);
    tt_ps_table *table = &w->table;
    table->kind = pick(w, 2) ? TT_PS_DENSE : TT_PS_SPARSE;
    table->rows = ROWS;
    table->width = 1 + pick(w, 2);
    table->partition_count = 1 + pick(w, 7);
    table->consistency = (tt_ps_consistency)pick(w, mortal ? 2 : 3);
    table->slice_count = SLICES;
    table->optimizer = TT_PS_ADD;
    table->averaging = (int)pick(w, 2); // state must travel too
    table->replicas = replicas;
    w->whole = table->kind == TT_PS_DENSE && pick(w, 3) == 0;
    uint8_t is_server[TT_PS_NODES_MAX] = {1};
    assert_int_equal(tt_ps_view_first(table, w->node_count, is_server, &w->views[0]), TT_OK);
    w->view_count = 1;
    uint16_t host[NODES_MAX] = {0};
    for (uint32_t n = 0; replicas && n < w->node_count; n++)
        host[n] = (uint16_t)pick(w, 3);
    if (replicas)
        tt_ps_view_set_hosts(w->views[0], host);
    choose_memory(w);
    for (uint32_t n = 0; n < w->node_count; n++) {
        w->attempts[n] = 1;
        w->actors[n] = (actor){.world = w, .index = n, .attempt = 1};
        open_process(&w->actors[n], w->views[0]);
    }
}

static void
close_world(world *w)
{
    for (uint32_t i = 0; i < w->net_count; i++)
        free(w->net[i].payload);
    for (uint32_t n = 0; n < w->node_count; n++) {
        tt_ps_server_close(w->actors[n].server);
        tt_ps_server_close(w->actors[n].remains);
        tt_ps_client_close(w->actors[n].client);
    }
    for (uint32_t i = 0; i < w->view_count; i++)
        tt_ps_view_free(w->views[i]);
    free(w->parts);
    free(w->batches);
}

static void
step(world *w, int may_begin, int may_publish)
{
    w->now++;
    uint32_t what = pick(w, 100);
    actor *a = &w->actors[pick(w, w->node_count)];
    hear(a);
    end_doubts(w);
    if (what < 60)
        deliver(w);
    else if (what < 90)
        worker_step(a, may_begin);
    else if (what < 96 && a->ended)
        ;
    else if (what < 94)
        (void)tt_ps_server_background(a->server);
    else if (what < 96)
        tt_ps_server_tick(a->server);
    else if (may_publish && what < 98)
        publish(w);
    else if (w->mortal && what == 98 && pick(w, 4) == 0)
        die(w);
    else if (w->mortal && what == 99)
        come_back(w);
}

// True when no node has anything under way. Pulls that wait for clocks that will not come are
// forgotten.
static int
settled(world *w)
{
    uint32_t held = 0;
    for (uint32_t n = 0; n < w->node_count; n++) {
        actor *a = &w->actors[n];
        if (a->ended)
            continue;
        if (!tt_ps_client_done(a->client) || tt_ps_server_moving(a->server) > 0 ||
            a->pushing == 1 || a->adopted != w->views[w->view_count - 1])
            return 0;
        held += tt_ps_server_held(a->server);
        for (uint32_t p = 0; p < w->table.partition_count; p++)
            if (a->server->slots[p].collecting.arrived > 0)
                return 0;
    }
    return held == w->table.partition_count && w->unretired == 0 && is_backed(w);
}

// BSP: the same in every partition by now.
static uint32_t
rounds_done(const world *w)
{
    uint32_t round = 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        for (uint32_t p = 0; !w->actors[n].ended && p < w->table.partition_count; p++)
            if (w->actors[n].server->slots[p].state == TTI_SERVING)
                round = TT_MAX(round, w->actors[n].server->slots[p].round);
    return round;
}

static double
final_value(world *w, uint32_t key, uint32_t column)
{
    actor *a = &w->actors[0];
    while (a->ended)
        a++;
    uint64_t key64 = (uint64_t)key * 0x1234567u;
    tt_ps_keys keys = {.count = 1};
    if (w->table.kind == TT_PS_DENSE)
        keys.rows = &key;
    else
        keys.keys = &key64;
    float out[2];
    tt_ps_client_adopt(a->client, newest(a)); // nobody asks the dead
    tt_ps_client_pull(a->client, keys, rounds_done(w), 0, out);
    for (int guard = 0; !tt_ps_client_done(a->client) && guard < 100000; guard++) {
        w->now++;
        deliver(w);
        tt_ps_client_time(a->client, w->now);
        tt_ps_client_tick(a->client, 5000);
    }
    assert_true(tt_ps_client_done(a->client));
    return (double)out[column];
}

// Under BSP a round that not all slices reached stays open: its pushes count when it closes, so
// rounds are run to their end.
static int
rounds_level(const world *w)
{
    if (w->table.consistency != TT_PS_BSP)
        return 1;
    uint32_t round = UINT32_MAX;
    for (uint32_t n = 0; n < w->node_count; n++) {
        const actor *a = &w->actors[n];
        if (!a->adopted->is_worker[n] || next_slice(a, 0) < 0)
            continue;
        if (round == UINT32_MAX)
            round = a->round;
        if (a->round != round || a->slice != 0)
            return 0;
    }
    return 1;
}

static uint32_t
last_round(const world *w)
{
    uint32_t round = 0;
    for (uint32_t n = 0; n < w->node_count; n++)
        round = TT_MAX(round, w->actors[n].round + (w->actors[n].slice > 0));
    return TT_MAX(round, w->views[w->view_count - 1]->effective_round);
}

// From here on nobody dies: the living know who is not, and who is thought dead is.
static void
bury_all(world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    uint8_t is_dead[NODES_MAX] = {0};
    for (uint32_t n = 0; n < w->node_count; n++) {
        if (last->is_gone[n] && !w->actors[n].ended)
            end_process(&w->actors[n]);
        is_dead[n] = w->actors[n].ended && !last->is_gone[n];
    }
    if (memchr(is_dead, 1, w->node_count) != NULL)
        declare_dead(w, is_dead);
}

static int
has_worker(const world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    for (uint32_t n = 0; n < w->node_count; n++)
        if (!last->is_gone[n] && last->is_worker[n])
            return 1;
    return 0;
}

static void
finish(world *w)
{
    if (w->mortal)
        bury_all(w);
    for (uint32_t guard = 0;; guard++) {
        if (guard > 3000000)
            fail_msg("seed %llu, %s, does not come to rest", (unsigned long long)w->seed,
                     way_names[w->way]);
        if (settled(w) && rounds_level(w) && !has_left(w))
            return;
        if (has_left(w) && !has_worker(w)) // nobody but a worker can do it again
            publish(w);
        w->now++;
        actor *a = &w->actors[pick(w, w->node_count)];
        int bsp = w->table.consistency == TT_PS_BSP;
        hear(a);
        end_doubts(w);
        deliver(w);
        worker_step(a, bsp && a->round < last_round(w));
        if (a->ended)
            continue;
        (void)tt_ps_server_background(a->server);
        if (pick(w, 10) == 0)
            tt_ps_server_tick(a->server);
    }
}

// What workers carried and what they pulled of a seal, over all nodes.
static uint64_t
count_carried(const world *w)
{
    uint64_t carried = 0;
    for (uint32_t n = 0; n < w->node_count; n++) {
        tt_ps_server_counters server;
        tt_ps_client_counters client;
        if (w->actors[n].ended)
            continue;
        tt_ps_server_counters_read(w->actors[n].server, &server);
        tt_ps_client_counters_read(w->actors[n].client, &client);
        carried += server.bytes_carried + client.carried;
    }
    return carried;
}

static void
expect_sums(world *w)
{
    uint32_t keys = w->table.kind == TT_PS_DENSE ? ROWS : SPARSE_KEYS, width = w->table.width;
    for (uint32_t key = 0; key < keys; key++)
        for (uint32_t j = 0; j < width; j++)
            if (final_value(w, key, j) != w->expected[key * width + j])
                fail_msg("seed %llu, %s: row %u is not the sum of its pushes",
                         (unsigned long long)w->seed, way_names[w->way], key);
}

static void
expect_equal_slots(const world *w, uint32_t p, const tti_slot *owner, const tti_slot *backup)
{
    tt_archive a = {0}, b = {0};
    if (backup->state != TTI_BACKUP || !backup->copies.has_copy)
        fail_msg("seed %llu: no copy of partition %u", (unsigned long long)w->seed, p);
    tti_partition_save(owner->partition, owner->round, &a);
    tti_partition_save(backup->partition, backup->round, &b);
    assert_int_equal(a.count, b.count);
    size_t nodes = w->node_count;
    int batches = (owner->batches != NULL) == (backup->batches != NULL) &&
                  (owner->batches == NULL ||
                   memcmp(owner->batches, backup->batches, nodes * sizeof *owner->batches) == 0);
    if (memcmp(a.bytes, b.bytes, a.count) != 0 || !batches ||
        memcmp(owner->sequence, backup->sequence, nodes * sizeof *owner->sequence) != 0)
        fail_msg("seed %llu: the copy of partition %u differs", (unsigned long long)w->seed, p);
    tt_archive_fini(&a);
    tt_archive_fini(&b);
}

static void
expect_copies(const world *w)
{
    const tt_ps_view *last = w->views[w->view_count - 1];
    for (uint32_t p = 0; last->replicas > 0 && p < w->table.partition_count; p++) {
        int has_spare = last->spare[p] != TT_PS_NOBODY && last->spare[p] != last->owner[p];
        uint32_t copies = 0,
                 wanted = (last->backup[p] != TT_PS_NOBODY ? 1u : 0u) + (has_spare ? 1u : 0u);
        if (last->backup[p] != TT_PS_NOBODY)
            expect_equal_slots(w, p, &w->actors[last->owner[p]].server->slots[p],
                               &w->actors[last->backup[p]].server->slots[p]);
        for (uint32_t n = 0; n < w->node_count; n++)
            copies +=
                !w->actors[n].ended && w->actors[n].server->slots[p].state == TTI_BACKUP ? 1 : 0;
        if (copies != wanted)
            fail_msg("seed %llu: partition %u has %d copies instead of %d",
                     (unsigned long long)w->seed, p, copies, wanted);
    }
}

static void
run_seed(uint64_t seed, move_way way, int mortal, int replicas, world *w)
{
    open_world(w, seed, way, mortal, replicas);
    uint32_t steps = 2000 + pick(w, 4000);
    for (uint32_t i = 0; i < steps; i++)
        step(w, 1, 1);
    finish(w);
    w->lossy = 0;
    w->carried = count_carried(w);
    if (way == DRAINED)
        assert_int_equal(w->carried, 0);
    expect_copies(w);
    expect_sums(w);
    close_world(w);
}

static void
expect_exact_sums(move_way way, int mortal, int replicas)
{
    const char *one = getenv("TT_SEED"), *many = getenv("TT_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    // Among them 3572, either way: a repeated last piece that put off what the new owner had to ask
    // for.
#ifdef TT_TSAN
    uint64_t seeds = 1000;
#else
    uint64_t seeds = 4000;
#endif
    // And 2529, with replicas and deaths: requests that wait at a backup that is to become the
    // owner, and hears late that another did first.
    if (replicas)
        seeds = 3 * seeds / 4;
    seeds = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : seeds;
    static world w;
    uint64_t moves = 0, flips = 0, pushes = 0, carried = 0, deaths = 0, hosts = 0, returns = 0;
    uint64_t promotions = 0, restores = 0, agains = 0, lent = 0;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (getenv("TT_TRACE") != NULL)
            (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run_seed(seed, way, mortal, replicas, &w);
        promotions += w.promotions;
        restores += w.restores;
        agains += w.agains;
        lent += w.lent;
        deaths += w.deaths;
        hosts += w.host_deaths;
        returns += w.returns;
        moves += w.moves;
        flips += w.flips;
        pushes += w.pushes;
        carried += w.carried;
    }
    print_message("%s%s: %llu schedules, %llu pushes, %llu reconfigurations, %llu partitions "
                  "moved, %llu lent, %llu deaths, %llu whole hosts (%llu partitions went on from a "
                  "copy, %llu began "
                  "anew), %llu returns, %llu batches of the dead done again: all sums exact\n",
                  way_names[way], replicas ? " with replicas" : "", (unsigned long long)seeds,
                  (unsigned long long)pushes, (unsigned long long)flips, (unsigned long long)moves,
                  (unsigned long long)lent, (unsigned long long)deaths, (unsigned long long)hosts,
                  (unsigned long long)promotions, (unsigned long long)restores,
                  (unsigned long long)returns, (unsigned long long)agains);
    assert_true(one != NULL || !mortal || agains > seeds / 8);
    assert_true(one != NULL || (moves > seeds && lent > seeds / 2));
    assert_true(one != NULL || !replicas || !mortal || (promotions > seeds && hosts > seeds / 8));
    assert_true(one != NULL || (carried > 0) == (way != DRAINED));
}

static void
sums_are_exact_for_every_schedule(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(CARRIED, 0, 0);
}

static void
sums_are_exact_when_partitions_are_drained(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(DRAINED, 0, 0);
}

static void
sums_are_exact_when_ways_mix(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(EITHER, 0, 0);
}

static void
sums_are_exact_whoever_dies(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(EITHER, 1, 0);
}

static void
sums_are_exact_with_replicas(void **state)
{
    TT_UNUSED(state);
    expect_exact_sums(DRAINED, 0, 1);
}

static void
sums_are_exact_with_replicas_whoever_dies(void **state)
{
    TT_UNUSED(state);
    static world w;
    expect_exact_sums(DRAINED, 1, 1);
    // A worker waits for the new owner of what it is to hand over, and has not heard of it.
    run_seed(9798, DRAINED, 1, 1, &w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_for_every_schedule),
        cmocka_unit_test(sums_are_exact_when_partitions_are_drained),
        cmocka_unit_test(sums_are_exact_when_ways_mix),
        cmocka_unit_test(sums_are_exact_whoever_dies),
        cmocka_unit_test(sums_are_exact_with_replicas),
        cmocka_unit_test(sums_are_exact_with_replicas_whoever_dies),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_memory();
    return failed;
}
