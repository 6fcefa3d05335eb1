// Target: whatever a peer of the job says to a server, to a worker's client, and to who keeps the
// checkpoints. Two servers, a client and a keeper speak with each other as ever, partitions move,
// a server dies; what they say is put out of order, said twice, damaged, cut, or made up. Nothing
// of it may do more than keep the job from going on.
//
// By some inputs they see each other's memory, as processes of one host do.
//
// Input: two bytes that choose the table, then steps: a byte of what to do and its arguments.
#include "client_core.h"
#include "fuzz.h"
#include <string.h>

enum {
    NODES = 4,
    CLIENT = 2,
    KEEPER = NODES,
    ROWS = 23,
    KEYS_MAX = 12,
    WIDTH_MAX = 5,
    VIEWS = 5,
    QUEUE_MAX = 96,
    STEPS_MAX = 160
};

typedef struct message {
    uint32_t to;
    tt_frame frame;
    uint8_t *payload; // of exactly its size
} message;

// Who sends, for an outbox.
typedef struct voice {
    struct world *world;
    uint32_t node;
} voice;

typedef struct world {
    tt_ps_table table;
    tt_ps_view *view[VIEWS];
    uint32_t newest;
    tt_ps_server *server[2];
    tt_ps_client *client;
    tt_ps_copier *copier;
    voice voice[NODES + 1];
    message queue[QUEUE_MAX];
    uint32_t queue_begin, queue_count;
    uint32_t round, slice;
    int can_push;
    uint64_t given;
    uint8_t backed[64];
    uint64_t now_ns;
    uint32_t rows[KEYS_MAX];
    uint64_t keys[KEYS_MAX];
    float *pulled, *gradients; // of the client's operation
    int shares;                // they see memory of each other
    // the input
    const uint8_t *at, *end;
} world;

static uint32_t
next_byte(world *w)
{
    return w->at < w->end ? *w->at++ : 0;
}

// ---- messages ----------------------------------------------------------------------------------

static void
queue_message(world *w, uint32_t to, const tt_frame *frame, const tt_span *spans, uint32_t count)
{
    if (w->queue_count == QUEUE_MAX)
        return; // lost
    message *m = &w->queue[(w->queue_begin + w->queue_count++) % QUEUE_MAX];
    *m = (message){.to = to, .frame = *frame};
    m->payload = tt_mem_alloc(frame->payload_bytes);
    TT_ASSERT(m->payload != NULL);
    size_t at = 0;
    for (uint32_t i = 0; i < count; at += spans[i].size, i++)
        if (spans[i].size > 0)
            memcpy(m->payload + at, spans[i].bytes, spans[i].size);
}

static void
send_message(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    const voice *from = self;
    TT_ASSERT(to <= KEEPER); // as a mesh does
    (void)tt_frame_complete(frame, from->node, spans, span_count);
    queue_message(from->world, to, frame, spans, span_count);
}

// One for all inputs: nothing is in it when a run has ended.
static tt_pool *
memory_of(uint32_t node)
{
    static tt_mesh *mesh[NODES + 1];
    static int fd = -1;
    if (fd < 0)
        TT_ASSERT(tt_mesh_share(NODES + 1, &fd, NULL) == TT_OK);
    if (mesh[node] == NULL)
        TT_ASSERT(tt_mesh_attach(fd, &mesh[node], NULL) == TT_OK);
    return tt_mesh_outbox(mesh[node], node).pool;
}

static tt_outbox
outbox_of(world *w, uint32_t node)
{
    w->voice[node] = (voice){w, node};
    return (tt_outbox){
        .self = &w->voice[node], .send = send_message, .pool = w->shares ? memory_of(node) : NULL};
}

static void
receive(world *w, message *m)
{
    const tt_frame *frame = &m->frame;
    m->frame.sender %= KEEPER + 1; // that it is one of the ends is what a mesh looks at
    int is_answer = frame->kind == TT_FRAME_PULL_REPLY || frame->kind == TT_FRAME_PUSH_ACK ||
                    frame->kind == TT_FRAME_MOVED;
    if (m->to == KEEPER && frame->kind == TT_FRAME_RESTORE)
        tt_ps_state_answer(&w->table, NULL, frame, outbox_of(w, KEEPER));
    else if (m->to == KEEPER)
        tt_ps_copier_receive(w->copier, frame, m->payload);
    else if (m->to == CLIENT && is_answer)
        tt_ps_client_receive(w->client, frame, m->payload);
    else if (m->to < 2 && w->server[m->to] != NULL && !is_answer)
        tt_ps_server_receive(w->server[m->to], frame, m->payload);
}

static int
take_message(world *w, message *out)
{
    if (w->queue_count == 0)
        return 0;
    *out = w->queue[w->queue_begin];
    w->queue_begin = (w->queue_begin + 1) % QUEUE_MAX;
    w->queue_count--;
    return 1;
}

static void
deliver(world *w, uint32_t count)
{
    message m;
    while (count-- > 0 && take_message(w, &m)) {
        receive(w, &m);
        tt_mem_free(m.payload);
    }
}

// As large as that, with the bytes that there are.
static void
resize_payload(message *m, uint32_t size)
{
    uint8_t *payload = tt_mem_zalloc(TT_MAX(size, 1u), 1);
    TT_ASSERT(payload != NULL);
    memcpy(payload, m->payload, TT_MIN(size, m->frame.payload_bytes));
    tt_mem_free(m->payload);
    m->payload = payload;
    m->frame.payload_bytes = size;
}

// The next message, not as it was sent.
static void
deliver_damaged(world *w, uint32_t how)
{
    message m;
    if (!take_message(w, &m))
        return;
    uint32_t where = next_byte(w), value = next_byte(w), size = m.frame.payload_bytes;
    uint8_t *header = (uint8_t *)&m.frame;
    if (how == 0 && where % 64 / 4 != offsetof(tt_frame, payload_bytes) / 4)
        header[where % 64] = (uint8_t)value;
    else if (how == 1 && size > 0)
        m.payload[where * 4 % size] ^= (uint8_t)value;
    else if (how == 2)
        resize_payload(&m, value < 128 ? TT_MIN(size, where) : size + where);
    receive(w, &m);
    if (value % 2 != 0)
        receive(w, &m);
    tt_mem_free(m.payload);
}

static void
deliver_made_up(world *w)
{
    message m = {.to = next_byte(w) % (KEEPER + 1)};
    uint32_t size = next_byte(w);
    size_t left = (size_t)(w->end - w->at), taken = TT_MIN(left, sizeof m.frame);
    memcpy(&m.frame, w->at, taken);
    w->at += taken;
    m.frame.magic = TT_FRAME_MAGIC;
    m.frame.version = TT_FRAME_VERSION;
    m.frame.kind = (uint16_t)(1 + m.frame.kind % (TT_FRAME_KIND_COUNT - 1));
    m.frame.payload_bytes = (uint32_t)TT_MIN((size_t)(w->end - w->at), (size_t)size);
    m.payload = tt_mem_alloc(m.frame.payload_bytes);
    TT_ASSERT(m.payload != NULL);
    memcpy(m.payload, w->at, m.frame.payload_bytes);
    w->at += m.frame.payload_bytes;
    receive(w, &m);
    tt_mem_free(m.payload);
}

// ---- what the worker does ----------------------------------------------------------------------

static void
choose_keys(world *w, tt_ps_keys *keys, uint32_t what)
{
    uint32_t step = 1 + what / KEYS_MAX % 4, count = 0;
    for (uint32_t row = what % 3; row < ROWS && count < KEYS_MAX; row += step) {
        w->rows[count] = row;
        w->keys[count++] = 1000003u * (uint64_t)row;
    }
    count = TT_MIN(count, 1 + what % KEYS_MAX);
    *keys = w->table.kind == TT_PS_DENSE ? (tt_ps_keys){.rows = w->rows, .count = count}
                                         : (tt_ps_keys){.keys = w->keys, .count = count};
}

static void
pull(world *w)
{
    uint32_t what = next_byte(w), need = next_byte(w);
    int is_whole = w->table.kind == TT_PS_DENSE && what % 4 == 0;
    int looks_on = what % 16 == 12;
    tt_ps_keys keys = {0};
    if (!tt_ps_client_done(w->client))
        return;
    if (!is_whole)
        choose_keys(w, &keys, what);
    size_t floats = (size_t)(is_whole ? ROWS : keys.count) * w->table.width;
    tt_mem_free(w->pulled);
    tt_mem_free(w->gradients);
    w->pulled = tt_mem_zalloc(floats, sizeof(float));
    w->gradients = tt_mem_zalloc(floats, sizeof(float));
    TT_ASSERT(w->pulled != NULL && w->gradients != NULL);
    w->gradients[what % floats] = 0.25f;
    uint32_t round = w->table.consistency == TT_PS_BSP ? w->round : 0;
    tt_ps_client_pull(w->client, keys, round + (need < 8 ? need : 0), looks_on, w->pulled);
    w->can_push = !looks_on;
}

static void
push(world *w)
{
    uint32_t clock = next_byte(w);
    if (!tt_ps_client_done(w->client) || !w->can_push)
        return;
    if (w->table.consistency != TT_PS_BSP) {
        // Now and then one that another began.
        const tt_ps_batch batch = {.end = ++w->given, .rows = clock % 4, .attempt = 1};
        tt_ps_client_name_batch(w->client, clock % 3 == 0 ? CLIENT - 1 : CLIENT, batch);
        tt_ps_client_push(w->client, w->gradients, clock, 1);
        return;
    }
    if (clock == 255)
        tt_ps_client_probe(w->client, w->round, w->slice);
    else
        tt_ps_client_push(w->client, w->gradients, w->round, w->slice);
    w->can_push = clock != 255;
    w->slice = (w->slice + 1) % w->table.slice_count;
    w->round += w->slice == 0;
}

// ---- what the master does ----------------------------------------------------------------------

static int
is_moving(const tt_ps_server *server, uint32_t p)
{
    const tti_slot *slot = server != NULL ? &server->slots[p] : NULL;
    return slot != NULL &&
           (slot->state == TTI_SEALED || slot->state == TTI_ARRIVING || slot->pending_seal != 0);
}

static void
bury_a_server(world *w, const uint8_t *moving)
{
    static const uint8_t is_dead[NODES] = {0, 1, 0, 0};
    tt_ps_server_close(w->server[1]);
    w->server[1] = NULL;
    TT_ASSERT(tt_ps_view_without(w->view[w->newest - 1], is_dead, moving, NULL, 1,
                                 &w->view[w->newest]) == TT_OK);
}

// The next view: partitions move only when those that moved before have arrived.
static void
publish(world *w, int drains)
{
    static const uint8_t is_server[VIEWS][NODES] = {
        {1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}};
    uint8_t moving[64] = {0};
    int some = 0;
    for (uint32_t p = 0; p < w->table.partition_count; p++)
        some |= moving[p] = is_moving(w->server[0], p) || is_moving(w->server[1], p) ||
                            (w->table.replicas && !w->backed[p]);
    // With replicas nobody is buried: an heir who does not have the copy that he said he has ends.
    uint32_t last = w->table.replicas ? VIEWS - 2 : VIEWS - 1;
    if (w->newest >= last || (some && w->newest + 2 < VIEWS))
        return;
    w->newest++;
    if (w->newest + 1 == VIEWS)
        bury_a_server(w, moving);
    else
        TT_ASSERT(tt_ps_view_next(w->view[w->newest - 1], is_server[w->newest],
                                  &w->view[w->newest]) == TT_OK);
    if (drains)
        tt_ps_view_move_by(w->view[w->newest], TT_PS_MOVE_DRAIN);
    if (w->table.consistency == TT_PS_BSP)
        w->view[w->newest]->effective_round = w->round + 1;
    for (uint32_t p = 0; p < w->table.partition_count; p++)
        w->backed[p] = (uint8_t)tt_ps_view_is_backed(w->view[w->newest - 1], w->view[w->newest], p,
                                                     w->backed[p]);
}

static void
backed(void *self, uint32_t partition, uint32_t generation)
{
    world *w = self;
    w->backed[partition] |= generation >= w->view[w->newest]->backup_at[partition];
}

static void
last_batch(void *self, uint32_t worker, const tt_ps_batch *batch)
{
    TT_UNUSED(self);
    TT_ASSERT(worker < NODES && batch->rows > 0);
}

static const tt_ps_view *
newest_view(void *self)
{
    const world *w = self;
    return w->view[w->newest];
}

static void
adopt(world *w, uint32_t who)
{
    if (who % 3 < 2 && w->server[who % 3] != NULL)
        tt_ps_server_adopt(w->server[who % 3], w->view[w->newest]);
    if (who % 3 == 2 && tt_ps_client_done(w->client))
        tt_ps_client_adopt(w->client, w->view[w->newest]);
}

static void
pass_time(world *w)
{
    w->now_ns += 1000000;
    for (int i = 0; i < 2; i++) {
        if (w->server[i] == NULL)
            continue;
        tt_ps_server_hear(w->server[i]);
        (void)tt_ps_server_background(w->server[i]);
        tt_ps_server_tick(w->server[i]);
    }
    tt_ps_client_time(w->client, w->now_ns);
    tt_ps_client_tick(w->client, 500000);
    tt_ps_copier_tick(w->copier, w->now_ns, 500000);
}

// Checkpoints are written from what came, whatever it is.
static void
copy_table(world *w)
{
    tt_archive out;
    if (!tt_ps_copier_done(w->copier)) {
        tt_ps_copier_begin(w->copier, w->view[w->newest], w->now_ns);
        return;
    }
    tt_archive_write(&out, 0);
    tt_ps_copier_take(w->copier, &out);
    tt_archive_fini(&out);
    tt_ps_copier_begin(w->copier, w->view[w->newest], w->now_ns);
}

// ---- a run -------------------------------------------------------------------------------------

static void
begin(world *w, uint32_t what, uint32_t more)
{
    static const uint8_t is_server[NODES] = {1, 0, 0, 0};
    w->table = (tt_ps_table){.kind = what % 2 == 0 ? TT_PS_DENSE : TT_PS_SPARSE,
                             .rows = ROWS,
                             .width = 1 + more % WIDTH_MAX,
                             .partition_count = 3,
                             .consistency = (tt_ps_consistency)(what / 2 % 3),
                             .slice_count = 2,
                             .optimizer = (tt_ps_optimizer_kind)(what / 6 % 6),
                             .learning_rate = 0.125,
                             .epsilon = 1e-8,
                             .momentum = 0.9,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .ftrl_beta = 1,
                             .averaging = what / 36 % 2,
                             .keeps_past = what / 72 % 2,
                             .replicas = more / WIDTH_MAX / 2 % 2};
    w->shares = more / WIDTH_MAX / 4 % 4 == 3;
    TT_ASSERT(tt_ps_view_first(&w->table, NODES, is_server, &w->view[0]) == TT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        tt_ps_hooks hooks = {.self = w,
                             .newest = newest_view,
                             .backed = backed,
                             .last_batch = last_batch,
                             .keeper = KEEPER};
        TT_ASSERT(tt_ps_server_open(&w->table, i, NODES, outbox_of(w, i), hooks, &w->server[i],
                                    NULL) == TT_OK);
        TT_ASSERT(tt_ps_server_start(w->server[i], w->view[0]) == TT_OK);
    }
    TT_ASSERT(tt_ps_client_open(&w->table, CLIENT, NODES, ROWS, outbox_of(w, CLIENT),
                                (tt_ps_hooks){0}, &w->client, NULL) == TT_OK);
    tt_ps_client_adopt(w->client, w->view[0]);
    tt_ps_client_set(w->client, 2, more / WIDTH_MAX % 2 != 0);
    TT_ASSERT(tt_ps_copier_open(&w->table, outbox_of(w, KEEPER), 1, &w->copier) == TT_OK);
}

static void
end(world *w)
{
    message m;
    while (take_message(w, &m))
        tt_mem_free(m.payload);
    tt_ps_server_close(w->server[0]);
    tt_ps_server_close(w->server[1]);
    tt_ps_client_close(w->client);
    tt_ps_copier_close(w->copier);
    for (int i = 0; i < VIEWS; i++)
        tt_ps_view_free(w->view[i]);
    tt_mem_free(w->pulled);
    tt_mem_free(w->gradients);
}

static void
take_step(world *w)
{
    message m;
    uint32_t what = next_byte(w), argument = what / 16;
    switch (what % 16) {
    case 0:
    case 1:
        pull(w);
        break;
    case 2:
    case 3:
        push(w);
        break;
    case 4:
    case 5:
    case 6:
        deliver(w, 1 + argument * (what % 16 - 3));
        break;
    case 7:
    case 8:
    case 9:
        deliver_damaged(w, what % 16 - 7);
        break;
    case 10:
        deliver_made_up(w);
        break;
    case 11:
        publish(w, argument % 2 != 0);
        break;
    case 12:
        adopt(w, argument);
        break;
    case 13:
        pass_time(w);
        break;
    case 14:
        copy_table(w);
        break;
    default: // the next message goes to the end of the queue
        if (take_message(w, &m))
            w->queue[(w->queue_begin + w->queue_count++) % QUEUE_MAX] = m;
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;
    if (size < 2)
        return 0;
    w = (world){.at = data + 2, .end = data + size};
    begin(&w, data[0], data[1]);
    for (int steps = 0; w.at < w.end && steps < STEPS_MAX; steps++)
        take_step(&w);
    end(&w);
    return 0;
}
