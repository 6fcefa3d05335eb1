// Nodes connected by rings: chunking, reassembly, the bell each node waits for.
#include "byte_queue.h"
#include "memory.h"
#include "pool.h"
#include "tt/comm.h"
#include <string.h>

enum { CHUNK_MIN = 4 << 10, CHUNK_MAX = 1 << 20, CHUNKS_IN_RING = 3, WORKING_SET = 512 << 10 };

// One direction of one pair.
typedef struct mesh_link {
    tti_ring ring;
    // producer
    tti_byte_queue
        queue; // whole messages that found the ring full: size word (16 bytes), then the message
    size_t queue_sent; // bytes of the front message already in the ring
    int dirty;         // sent since the last flush
    // consumer, on a line of its own: both sides write with every message
    _Alignas(64) tti_byte_queue partial; // a message of several chunks being put together
    int begun;                           // its first chunk was seen
} mesh_link;

typedef struct end {
    _Alignas(64) uint32_t spin;
    uint32_t chunk_bytes;
    uint32_t bell_seen;
    uint32_t next_peer; // receive goes round
    tt_mesh_counters counters;
    struct ring_mesh *mesh;
    uint32_t index;
    tt_pool pool; // of shared memory only
} end;

typedef struct ring_mesh {
    tt_mesh mesh; // first
    uint32_t node_count;
    tti_memory memory;
    end *ends;
    mesh_link *links; // [from * node_count + to]
} ring_mesh;

static mesh_link *
link_at(ring_mesh *mesh, uint32_t from, uint32_t to)
{
    return &mesh->links[(size_t)from * mesh->node_count + to];
}

static void
count(uint64_t *counter, uint64_t amount)
{
    tt_store_relaxed(counter, *counter + amount); // one writer
}

static void
close_mesh(tt_mesh *self)
{
    ring_mesh *mesh = (ring_mesh *)self;
    for (size_t i = 0; mesh->links != NULL && i < (size_t)mesh->node_count * mesh->node_count;
         i++) {
        tt_mem_free(mesh->links[i].queue.bytes);
        tt_mem_free(mesh->links[i].partial.bytes);
    }
    for (uint32_t i = 0; mesh->ends != NULL && i < mesh->node_count; i++)
        tti_pool_fini(&mesh->ends[i].pool);
    tt_mem_free(mesh->links);
    tt_mem_free(mesh->ends);
    tti_memory_close(&mesh->memory);
    tt_mem_free(mesh);
}

static void
ring_bell(ring_mesh *mesh, uint32_t node)
{
    tt_event_signal(tti_memory_bell(&mesh->memory, node));
}

static void
set_chunk(tt_mesh *self, uint32_t node, uint32_t chunk_bytes)
{
    ring_mesh *mesh = (ring_mesh *)self;
    uint32_t chunk = TT_MIN(TT_MAX(chunk_bytes, CHUNK_MIN), CHUNK_MAX);
    mesh->ends[node].chunk_bytes = chunk;
    // Small enough to stay in a core's cache, large enough that a long message in small chunks does
    // not go from hand to hand.
    uint32_t limit = TT_MAX(CHUNKS_IN_RING * (chunk + 64) & ~63u, (uint32_t)WORKING_SET);
    for (uint32_t to = 0; to < mesh->node_count; to++)
        link_at(mesh, node, to)->ring.wrap_limit = limit;
}

// Memory is faster than any packing.
static void
set_packing(tt_mesh *self, uint32_t node, uint32_t is_on)
{
    TT_UNUSED(self);
    TT_UNUSED(node);
    TT_UNUSED(is_on);
}

static void
set_spin(tt_mesh *self, uint32_t node, uint32_t spin)
{
    ring_mesh *mesh = (ring_mesh *)self;
    mesh->ends[node].spin = spin;
}

// ---- sending ----------------------------------------------------------------------------------

// Copies the next `size` bytes of the spans, of which `skip` are done, to `to`.
static void
gather(uint8_t *to, const tt_span *spans, uint32_t span_count, size_t skip, size_t size)
{
    for (uint32_t i = 0; i < span_count && size > 0; i++) {
        if (skip >= spans[i].size) {
            skip -= spans[i].size;
            continue;
        }
        size_t part = TT_MIN(spans[i].size - skip, size);
        memcpy(to, (const uint8_t *)spans[i].bytes + skip, part);
        to += part;
        size -= part;
        skip = 0;
    }
}

// Puts the message, of which `sent` bytes are in the ring, into the ring as far as there is room;
// returns the bytes now sent.
static size_t
write_chunks(end *from,
             mesh_link *link,
             const tt_span *spans,
             uint32_t span_count,
             size_t total,
             size_t sent)
{
    while (sent < total) {
        uint32_t part = (uint32_t)TT_MIN(total - sent, from->chunk_bytes);
        uint8_t *room = tti_ring_reserve(&link->ring, part);
        if (room == NULL)
            break;
        gather(room, spans, span_count, sent, part);
        uint32_t flags = sent == 0 ? TTI_RING_FIRST : 0;
        sent += part;
        tti_ring_commit(&link->ring, part, flags | (sent == total ? TTI_RING_LAST : 0));
        tti_ring_publish(&link->ring);
        count(&from->counters.chunks, 1);
    }
    link->dirty = 1;
    return sent;
}

static void
queue_message(end *from,
              mesh_link *link,
              const tt_span *spans,
              uint32_t span_count,
              size_t total,
              size_t sent)
{
    count(&from->counters.full, 1);
    if (link->queue.begin == link->queue.end)
        link->queue_sent = sent;
    uint64_t size_word[2] = {total, 0};
    tt_status status = tti_bytes_append(&link->queue, size_word, sizeof size_word);
    for (uint32_t i = 0; i < span_count && status == TT_OK; i++)
        status = tti_bytes_append(&link->queue, spans[i].bytes, spans[i].size);
    // What is queued is bounded by the requests in flight; without memory for that the process
    // cannot go on.
    TT_ASSERT(status == TT_OK);
    static const uint8_t zero[16] = {0};
    status = tti_bytes_append(&link->queue, zero, (16 - total % 16) % 16);
    TT_ASSERT(status == TT_OK);
}

static void
send_frame(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    end *from = self;
    enum { SPANS_MAX = 8 };
    TT_ASSERT(span_count < SPANS_MAX && to < from->mesh->node_count);
    tt_span all[SPANS_MAX] = {{frame, sizeof *frame}};
    for (uint32_t i = 0; i < span_count; i++)
        all[i + 1] = spans[i];
    const size_t total = tt_frame_complete(frame, from->index, spans, span_count);
    count(&from->counters.frames, 1);
    count(&from->counters.bytes, total);
    mesh_link *link = link_at(from->mesh, from->index, to);
    size_t sent = 0;
    if (link->queue.begin == link->queue.end)
        sent = write_chunks(from, link, all, span_count + 1, total, 0);
    if (sent < total)
        queue_message(from, link, all, span_count + 1, total, sent);
}

static tt_outbox
outbox(tt_mesh *self, uint32_t node)
{
    ring_mesh *mesh = (ring_mesh *)self;
    end *from = &mesh->ends[node];
    return (tt_outbox){from, send_frame, mesh->memory.is_shared ? &from->pool : NULL, NULL};
}

// Moves queued messages into the ring; true when some still wait.
static int
drain_queue(end *from, mesh_link *link)
{
    while (link->queue.begin < link->queue.end) {
        uint64_t total;
        memcpy(&total, link->queue.bytes + link->queue.begin, sizeof total);
        tt_span span = {link->queue.bytes + link->queue.begin + 16, total};
        link->queue_sent = write_chunks(from, link, &span, 1, total, link->queue_sent);
        if (link->queue_sent < total)
            return 1;
        link->queue.begin += 16 + ((total + 15) & ~(uint64_t)15);
        link->queue_sent = 0;
    }
    return 0;
}

static void
flush(tt_mesh *self, uint32_t node)
{
    ring_mesh *mesh = (ring_mesh *)self;
    end *from = &mesh->ends[node];
    for (uint32_t to = 0; to < mesh->node_count; to++) {
        mesh_link *link = link_at(mesh, node, to);
        if (link->queue.begin < link->queue.end && drain_queue(from, link)) {
            // Announce, then look again: the consumer clears the flag after it made room.
            tt_store_seq(&link->ring.ends->starved, 1u);
            (void)drain_queue(from, link);
        }
        if (link->dirty) {
            link->dirty = 0;
            ring_bell(mesh, to);
        }
    }
}

// ---- receiving --------------------------------------------------------------------------------

// The message that the chunk completes, or NULL. Of one whose sender died in the middle, or whose
// first part another process received, nothing is kept.
static const uint8_t *
take_chunk(mesh_link *link, const uint8_t *chunk, uint32_t size, uint32_t flags, size_t *total)
{
    if ((flags & TTI_RING_FIRST) != 0) {
        link->partial.end = 0;
        link->begun = (flags & TTI_RING_LAST) == 0;
        if (!link->begun) {
            *total = size;
            return chunk;
        }
    }
    if (!link->begun)
        return NULL;
    tt_status status = tti_bytes_append(&link->partial, chunk, size);
    TT_ASSERT(status == TT_OK); // bounded by the largest message
    if ((flags & TTI_RING_LAST) == 0)
        return NULL;
    *total = link->partial.end;
    link->partial.end = 0;
    link->begun = 0;
    return link->partial.bytes;
}

static uint32_t
receive_from(ring_mesh *mesh,
             uint32_t node,
             uint32_t peer,
             uint32_t limit,
             void (*handle)(void *self, const tt_frame *frame, const uint8_t *payload),
             void *self)
{
    mesh_link *link = link_at(mesh, peer, node);
    uint32_t handled = 0, popped = 0;
    while (handled < limit) {
        uint32_t size, flags;
        const uint8_t *chunk = tti_ring_peek(&link->ring, &size, &flags);
        if (chunk == NULL)
            break;
        size_t total;
        const uint8_t *message = take_chunk(link, chunk, size, flags, &total);
        if (message != NULL) {
            TT_DASSERT(tt_frame_check(message, total) == TT_OK);
            const tt_frame *frame = (const tt_frame *)(const void *)message;
            handle(self, frame, message + sizeof *frame);
            handled++;
        }
        tti_ring_pop(&link->ring);
        popped++;
    }
    if (popped == 0)
        return 0;
    // After making room, look whether the producer waits for it (it announces before it looks).
    tt_fence_seq();
    uint32_t *starved = &link->ring.ends->starved;
    if (tt_load_relaxed(starved) != 0 && tt_swap_seq(starved, 0u) != 0)
        ring_bell(mesh, peer);
    return handled;
}

static uint32_t
receive(tt_mesh *self, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    ring_mesh *mesh = (ring_mesh *)self;
    end *me = &mesh->ends[node];
    me->bell_seen = tt_event_read(tti_memory_bell(&mesh->memory, node));
    uint32_t handled = 0;
    for (uint32_t i = 0; i < mesh->node_count && handled < limit; i++) {
        uint32_t peer = me->next_peer;
        me->next_peer = peer + 1 < mesh->node_count ? peer + 1 : 0;
        handled += receive_from(mesh, node, peer, limit - handled, handle, handler);
    }
    return handled;
}

static void
wait_node(tt_mesh *self, uint32_t node, uint64_t timeout_ns)
{
    ring_mesh *mesh = (ring_mesh *)self;
    end *me = &mesh->ends[node];
    tt_event *bell = tti_memory_bell(&mesh->memory, node);
    flush(self, node);
    count(&me->counters.waits, 1);
    if (tt_event_wait(bell, me->bell_seen, me->spin, 0))
        return;
    count(&me->counters.sleeps, 1);
    (void)tt_event_wait(bell, me->bell_seen, 0, timeout_ns);
}

static void
wake(tt_mesh *self, uint32_t node)
{
    ring_bell((ring_mesh *)self, node);
}

static void
read_counters(const tt_mesh *self, uint32_t node, tt_mesh_counters *out)
{
    const ring_mesh *mesh = (const ring_mesh *)self;
    const tt_mesh_counters *counters = &mesh->ends[node].counters;
    *out = (tt_mesh_counters){.frames = tt_load_relaxed(&counters->frames),
                              .bytes = tt_load_relaxed(&counters->bytes),
                              .chunks = tt_load_relaxed(&counters->chunks),
                              .waits = tt_load_relaxed(&counters->waits),
                              .sleeps = tt_load_relaxed(&counters->sleeps),
                              .full = tt_load_relaxed(&counters->full)};
}

static tt_status
open_links(ring_mesh *mesh)
{
    uint32_t count = mesh->node_count;
    mesh->ends = tt_mem_zalloc_vector(count, sizeof *mesh->ends);
    mesh->links = tt_mem_zalloc_vector((size_t)count * count, sizeof *mesh->links);
    if (mesh->ends == NULL || mesh->links == NULL)
        return TT_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        mesh->ends[i].mesh = mesh;
        mesh->ends[i].index = i;
        if (mesh->memory.is_shared)
            tti_pool_init(&mesh->ends[i].pool, tti_memory_pool(&mesh->memory), count, i);
        for (uint32_t j = 0; j < count; j++)
            tti_memory_ring(&mesh->memory, i, j, &link_at(mesh, i, j)->ring);
    }
    for (uint32_t i = 0; i < count; i++) {
        set_chunk(&mesh->mesh, i, 64 << 10);
        set_spin(&mesh->mesh, i, 100);
    }
    return TT_OK;
}

// Takes the memory.
static tt_status
open_mesh(tti_memory memory, tt_mesh **out, tt_error *err)
{
    static const tt_mesh_verbs verbs = {.set_chunk = set_chunk,
                                        .set_packing = set_packing,
                                        .set_spin = set_spin,
                                        .outbox = outbox,
                                        .flush = flush,
                                        .receive = receive,
                                        .wait = wait_node,
                                        .wake = wake,
                                        .read_counters = read_counters,
                                        .close = close_mesh};
    ring_mesh *mesh = tt_mem_zalloc(1, sizeof *mesh);
    if (mesh == NULL) {
        tti_memory_close(&memory);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a mesh of %u nodes",
                            memory.node_count);
    }
    *mesh = (ring_mesh){.mesh = {&verbs}, .node_count = memory.node_count, .memory = memory};
    if (open_links(mesh) != TT_OK) {
        close_mesh(&mesh->mesh);
        return tt_error_set(err, TT_NOMEM, NULL, "lower cluster.nodes",
                            "no memory for the rings of %u nodes", memory.node_count);
    }
    *out = &mesh->mesh;
    return TT_OK;
}

tt_status
tt_mesh_open(uint32_t node_count, tt_mesh **out, tt_error *err)
{
    tti_memory memory;
    *out = NULL;
    if (tti_memory_open(node_count, &memory) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, "lower cluster.nodes",
                            "no memory for the rings of %u nodes", node_count);
    return open_mesh(memory, out, err);
}

tt_status
tt_mesh_share(uint32_t node_count, int *fd, tt_error *err)
{
    return tti_memory_create(node_count, fd, err);
}

tt_status
tt_mesh_attach(int fd, tt_mesh **out, tt_error *err)
{
    tti_memory memory;
    *out = NULL;
    TT_TRY(tti_memory_map(fd, &memory, err));
    return open_mesh(memory, out, err);
}
