// The simulated network: a mesh whose frames take time on the sender's card, through the switch and
// on the receiver's card, and cost both processors.
//
// A message of n bytes leaves when its sender's card is free and takes that card for n / rate. Its
// first chunk is stored and forwarded, the others stream behind it:
//
//     there = leaves + min(n, chunk) / rate + latency
//     arrives = max(there, receiver's card is free) + n / rate
//
// and the receiver's card is taken for that n / rate. The switch, where it carries less than all
// cards together, is one more queue before the latency.
#include "sim.h"
#include <math.h>
#include <string.h>

enum { CHUNK_MIN = 4 << 10, CHUNK_MAX = 1 << 20, CHUNK_START = 64 << 10, HEADER_BYTES = 16 };

typedef struct message {
    struct message *next;
    struct sim_mesh *mesh;
    uint32_t from, to;
    uint32_t chunks;
    size_t bytes;      // of the frame with its payload
    size_t wire_bytes; // of these, on the wire
    _Alignas(16) uint8_t frame[];
} message;

typedef struct message_queue {
    message *first, **last;
} message_queue;

typedef struct sim_end {
    struct sim_mesh *mesh;
    uint32_t index, host;
    uint32_t chunk_bytes, spin, bell_seen;
    int packs;
    tt_event bell;
    message_queue unsent, arrived;
    message *handled; // by the node, now
    tt_mesh_counters counters;
} sim_end;

typedef struct sim_card {
    uint64_t out_free_ns, in_free_ns;
} sim_card;

typedef struct sim_mesh {
    tt_mesh mesh;          // first
    struct sim_mesh *next; // of the simulation's
    tt_sim *sim;
    tt_sim_network network;
    uint32_t node_count;
    sim_end *ends;
    tt_packer packer;
    sim_card *cards; // of hosts
    uint64_t switch_free_ns;
    uint64_t *last_arrival_ns; // [from * node_count + to]: a pair's order is kept
    uint64_t under_way;
    tt_rng rng, fault_rng;
} sim_mesh;

static void
put(message_queue *queue, message *m)
{
    m->next = NULL;
    *queue->last = m;
    queue->last = &m->next;
}

static message *
take(message_queue *queue)
{
    message *m = queue->first;
    if (m == NULL)
        return NULL;
    queue->first = m->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return m;
}

static void
trace(const sim_mesh *mesh, const message *m, const char *arrow, const char *fate)
{
    static const char *const kinds[TT_FRAME_KIND_COUNT] = {
        "NONE",       "PULL",
        "PULL_REPLY", "PUSH",
        "PUSH_ACK",   "MOVED",
        "FETCH",      "PIECE",
        "SEAL",       "COMPLETE",
        "SAVE",       "SAVED",
        "RESTORE",    "RESTORED",
        "COPY",       "COPY_PUSH",
        "COPY_ACK",   "BEAT",
        "REPLY",      "ORDER",
        "REPORT",     [TT_FRAME_WANT_KEYS] = "WANT_KEYS"};
    const tt_frame *f = (const tt_frame *)(const void *)m->frame;
    if (mesh->sim->options.trace == NULL)
        return;
    tt_sim_trace(mesh->sim,
                 "%u %s %u %-10s partition %u generation %u sequence %llu clock %u detail %u "
                 "extra %u flags %02x rows %u, %zu bytes%s",
                 m->from, arrow, m->to, kinds[f->kind < TT_FRAME_KIND_COUNT ? f->kind : 0],
                 f->partition, f->generation, (unsigned long long)f->sequence, f->clock, f->detail,
                 f->extra, f->flags, f->count, m->bytes, fate);
}

static int
is_down(const sim_mesh *mesh, const sim_end *end)
{
    return end->host != TT_SIM_NOWHERE && mesh->sim->hosts[end->host].is_down;
}

// ---- on the wire -------------------------------------------------------------------------------

static void
on_arrival(void *self, uint64_t tag)
{
    TT_UNUSED(tag);
    message *m = self;
    sim_mesh *mesh = m->mesh;
    sim_end *end = &mesh->ends[m->to];
    mesh->under_way--;
    if (is_down(mesh, end)) {
        tt_mem_free(m);
        return;
    }
    put(&end->arrived, m);
    (void)tt_event_signal(&end->bell);
}

static uint64_t
ns_of(double seconds)
{
    return (uint64_t)llround(seconds * 1e9);
}

static double
latency_s(sim_mesh *mesh)
{
    double jitter = mesh->network.jitter;
    return mesh->network.latency_s * (jitter > 0 ? exp(jitter * tt_rng_normal(&mesh->rng)) : 1);
}

// When it has come through both cards and the switch.
static uint64_t
arrival_between_hosts(sim_mesh *mesh, const message *m, uint32_t from_host, uint32_t to_host)
{
    const tt_sim_network *network = &mesh->network;
    sim_card *from = &mesh->cards[from_host], *to = &mesh->cards[to_host];
    double bytes = (double)(m->wire_bytes + (size_t)m->chunks * HEADER_BYTES);
    double first = fmin(bytes, mesh->ends[m->from].chunk_bytes);
    double out_rate = network->bytes_per_s / tti_faults_narrowness(mesh->sim, from_host);
    double in_rate = network->bytes_per_s / tti_faults_narrowness(mesh->sim, to_host);
    uint64_t out_ns = ns_of(bytes / out_rate), in_ns = ns_of(bytes / fmin(in_rate, out_rate));
    uint64_t first_ns = ns_of(first / out_rate);
    mesh->sim->hosts[from_host].sent_s += 1e-9 * (double)out_ns;
    mesh->sim->hosts[to_host].received_s += 1e-9 * (double)ns_of(bytes / in_rate);
    uint64_t begin = TT_MAX(mesh->sim->now_ns, from->out_free_ns);
    from->out_free_ns = begin + out_ns;
    if (network->oversubscription > 1) {
        double share = network->oversubscription / mesh->sim->options.host_count;
        begin = TT_MAX(begin, mesh->switch_free_ns);
        mesh->switch_free_ns = begin + ns_of(bytes / network->bytes_per_s * share);
    }
    uint64_t first_there = begin + first_ns + ns_of(latency_s(mesh));
    uint64_t receive = TT_MAX(first_there, to->in_free_ns);
    to->in_free_ns = receive + in_ns;
    return receive + in_ns;
}

// A pair's order is kept, unless a fault lets others overtake.
static void
arrive_at(sim_mesh *mesh, message *m, uint64_t arrival_ns, int overtaken)
{
    uint64_t *last = &mesh->last_arrival_ns[(size_t)m->from * mesh->node_count + m->to];
    if (!overtaken)
        arrival_ns = *last = TT_MAX(*last, arrival_ns);
    mesh->under_way++;
    tti_agenda_put(&mesh->sim->agenda, arrival_ns, on_arrival, m, 0);
}

static message *
copy_of(const message *m)
{
    message *copy = tt_mem_alloc(sizeof *m + m->bytes);
    TT_ASSERT(copy != NULL);
    memcpy(copy, m, sizeof *m + m->bytes);
    return copy;
}

static void
send_between_hosts(sim_mesh *mesh, message *m, uint32_t from, uint32_t to)
{
    tt_sim *sim = mesh->sim;
    int on_wire = from != TT_SIM_NOWHERE && to != TT_SIM_NOWHERE;
    uint64_t arrival =
        on_wire ? arrival_between_hosts(mesh, m, from, to) : tti_sim_after(sim, latency_s(mesh));
    if (sim->options.fault_count == 0) {
        arrive_at(mesh, m, arrival, 0);
        return;
    }
    tti_fate fate = tti_faults_draw(sim, &mesh->fault_rng, from, to);
    sim->counters.dropped += (uint64_t)fate.dropped;
    sim->counters.duplicated += (uint64_t)fate.duplicated;
    sim->counters.delayed += fate.delay_s > 0;
    if (fate.duplicated)
        arrive_at(mesh, copy_of(m), arrival + ns_of(fate.duplicate_s), 1);
    if (fate.dropped || fate.duplicated || fate.delay_s > 0)
        trace(mesh, m, "~~",
              fate.dropped      ? ": lost"
              : fate.duplicated ? ": will come twice"
                                : ": will be late");
    if (fate.dropped)
        tt_mem_free(m);
    else
        arrive_at(mesh, m, arrival + ns_of(fate.delay_s), fate.overtaken);
}

static void
transmit(sim_mesh *mesh, message *m)
{
    uint32_t from = mesh->ends[m->from].host, to = mesh->ends[m->to].host;
    trace(mesh, m, "->", "");
    int nowhere = from == TT_SIM_NOWHERE || to == TT_SIM_NOWHERE;
    if (nowhere && !mesh->network.nowhere_is_far)
        arrive_at(mesh, m, mesh->sim->now_ns, 0);
    else if (from == to)
        arrive_at(mesh, m, tti_sim_after(mesh->sim, mesh->network.local_latency_s), 0);
    else
        send_between_hosts(mesh, m, from, to);
}

// ---- the mesh ----------------------------------------------------------------------------------

static double
cost_s(const sim_mesh *mesh, uint32_t node, const message *m, int sending)
{
    const tt_frame *frame = (const tt_frame *)(const void *)m->frame;
    const tt_sim_network *network = &mesh->network;
    return network->cost_s != NULL
               ? network->cost_s(network->cost_self, node, frame, m->chunks, sending)
               : 0;
}

// Packing is done to know how short it makes the message, which travels as it is. It costs its time
// whether it is worth it or not.
static void
pack(sim_mesh *mesh, message *m)
{
    tt_frame *frame = (tt_frame *)(void *)m->frame;
    const tt_span payload = {m->frame + sizeof *frame, frame->payload_bytes};
    tt_span packed;
    int shorter = tt_packer_pack(&mesh->packer, &payload, 1, &packed);
    frame->flags |= TT_FRAME_PACKED;
    tt_sim_owe(mesh->sim, cost_s(mesh, m->from, m, 1));
    if (shorter)
        m->wire_bytes = sizeof *frame + packed.size;
    else
        frame->flags = (uint16_t)(frame->flags & ~TT_FRAME_PACKED);
}

static void
send_frame(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    sim_end *from = self;
    sim_mesh *mesh = from->mesh;
    const size_t total = tt_frame_complete(frame, from->index, spans, span_count);
    message *m = tt_mem_alloc(sizeof *m + total);
    TT_ASSERT(m != NULL); // bounded by the requests in flight
    *m =
        (message){.mesh = mesh, .from = from->index, .to = to, .bytes = total, .wire_bytes = total};
    memcpy(m->frame, frame, sizeof *frame);
    uint8_t *at = m->frame + sizeof *frame;
    for (uint32_t i = 0; i < span_count; i++) {
        if (spans[i].size > 0)
            memcpy(at, spans[i].bytes, spans[i].size);
        at += spans[i].size;
    }
    m->chunks = (uint32_t)((total + from->chunk_bytes - 1) / from->chunk_bytes);
    if (from->packs && from->host != mesh->ends[to].host && frame->payload_bytes >= TT_PACK_LEAST)
        pack(mesh, m);
    else
        tt_sim_owe(mesh->sim, cost_s(mesh, from->index, m, 1));
    from->counters.frames++;
    from->counters.bytes += m->wire_bytes;
    from->counters.chunks += m->chunks;
    put(&from->unsent, m);
}

static tt_outbox
outbox(tt_mesh *self, uint32_t node)
{
    sim_mesh *mesh = (sim_mesh *)self;
    return (tt_outbox){.self = &mesh->ends[node], .send = send_frame};
}

static void
set_chunk(tt_mesh *self, uint32_t node, uint32_t chunk_bytes)
{
    sim_mesh *mesh = (sim_mesh *)self;
    mesh->ends[node].chunk_bytes = TT_MIN(TT_MAX(chunk_bytes, CHUNK_MIN), CHUNK_MAX);
}

static void
set_spin(tt_mesh *self, uint32_t node, uint32_t spin)
{
    sim_mesh *mesh = (sim_mesh *)self;
    mesh->ends[node].spin = spin;
}

static void
set_packing(tt_mesh *self, uint32_t node, uint32_t is_on)
{
    ((sim_mesh *)self)->ends[node].packs = is_on != 0;
}

static void
count_message(const sim_mesh *mesh, const sim_end *end)
{
    if (mesh->sim->counts_messages && end->host != TT_SIM_NOWHERE)
        tti_faults_count(mesh->sim, end->host);
}

// What was sent leaves when the work that made it is done.
static void
flush(tt_mesh *self, uint32_t node)
{
    sim_mesh *mesh = (sim_mesh *)self;
    tti_fiber_settle(mesh->sim->running);
    for (message *m = take(&mesh->ends[node].unsent); m != NULL;
         m = take(&mesh->ends[node].unsent)) {
        transmit(mesh, m);
        count_message(mesh, &mesh->ends[node]);
    }
}

static uint32_t
receive(tt_mesh *self, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    sim_mesh *mesh = (sim_mesh *)self;
    sim_end *end = &mesh->ends[node];
    uint32_t handled = 0;
    end->bell_seen = tt_event_read(&end->bell);
    for (; handled < limit; handled++) {
        message *m = take(&end->arrived);
        if (m == NULL)
            break;
        tt_frame *frame = (tt_frame *)(void *)m->frame;
        trace(mesh, m, "=>", "");
        tt_sim_owe(mesh->sim, cost_s(mesh, node, m, 0));
        frame->flags = (uint16_t)(frame->flags & ~TT_FRAME_PACKED);
        end->handled = m;
        handle(handler, frame, m->frame + sizeof *frame);
        end->handled = NULL;
        tt_mem_free(m);
        count_message(mesh, end);
        flush(self, node);
    }
    return handled;
}

static void
wait(tt_mesh *self, uint32_t node, uint64_t timeout_ns)
{
    sim_mesh *mesh = (sim_mesh *)self;
    sim_end *end = &mesh->ends[node];
    flush(self, node);
    end->counters.waits++;
    if (tt_event_read(&end->bell) != end->bell_seen)
        return;
    if (tt_event_wait(&end->bell, end->bell_seen, end->spin, 0))
        return;
    end->counters.sleeps++;
    (void)tt_event_wait(&end->bell, end->bell_seen, 0, timeout_ns);
}

static void
wake(tt_mesh *self, uint32_t node)
{
    tt_event_signal(&((sim_mesh *)self)->ends[node].bell);
}

static void
read_counters(const tt_mesh *self, uint32_t node, tt_mesh_counters *out)
{
    *out = ((const sim_mesh *)self)->ends[node].counters;
}

static void
drop_all(message_queue *queue)
{
    for (message *m = take(queue); m != NULL; m = take(queue))
        tt_mem_free(m);
}

void
tti_mesh_crash(sim_mesh *meshes, uint32_t host)
{
    for (sim_mesh *mesh = meshes; mesh != NULL; mesh = mesh->next)
        for (uint32_t i = 0; i < mesh->node_count; i++) {
            sim_end *end = &mesh->ends[i];
            if (end->host != host)
                continue;
            drop_all(&end->unsent);
            drop_all(&end->arrived);
            tt_mem_free(end->handled);
            end->handled = NULL;
        }
}

static void
leave_simulation(sim_mesh *mesh)
{
    sim_mesh **link = &mesh->sim->meshes;
    while (*link != NULL && *link != mesh)
        link = &(*link)->next;
    if (*link != NULL)
        *link = mesh->next;
}

// What is still under way arrives nowhere: its entries of the agenda are taken out.
static void
recall_under_way(sim_mesh *mesh)
{
    tti_heap *heap = &mesh->sim->agenda.heap;
    for (size_t i = 0; i < heap->count && mesh->under_way > 0; i++) {
        tti_item *item = &heap->items[i];
        if (item->act != on_arrival || ((message *)item->self)->mesh != mesh)
            continue;
        tt_mem_free(item->self);
        item->act = tti_agenda_nothing;
        item->self = NULL;
        mesh->under_way--;
    }
}

static void
close_mesh(tt_mesh *self)
{
    sim_mesh *mesh = (sim_mesh *)self;
    leave_simulation(mesh);
    recall_under_way(mesh);
    for (uint32_t i = 0; mesh->ends != NULL && i < mesh->node_count; i++) {
        drop_all(&mesh->ends[i].unsent);
        drop_all(&mesh->ends[i].arrived);
    }
    tt_packer_free(&mesh->packer);
    tt_mem_free(mesh->ends);
    tt_mem_free(mesh->cards);
    tt_mem_free(mesh->last_arrival_ns);
    tt_mem_free(mesh);
}

tt_status
tt_sim_mesh_open(tt_sim *sim,
                 const tt_sim_network *network,
                 uint32_t node_count,
                 const uint32_t *host_of_node,
                 tt_mesh **out,
                 tt_error *err)
{
    static const tt_mesh_verbs verbs = {.set_chunk = set_chunk,
                                        .set_packing = set_packing,
                                        .set_spin = set_spin,
                                        .outbox = outbox,
                                        .flush = flush,
                                        .receive = receive,
                                        .wait = wait,
                                        .wake = wake,
                                        .read_counters = read_counters,
                                        .close = close_mesh};
    *out = NULL;
    sim_mesh *mesh = tt_mem_zalloc(1, sizeof *mesh);
    if (mesh == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a simulated network");
    mesh->mesh.verbs = &verbs;
    mesh->sim = sim;
    mesh->network = *network;
    mesh->node_count = node_count;
    mesh->ends = tt_mem_zalloc(node_count, sizeof *mesh->ends);
    mesh->cards = tt_mem_zalloc(TT_MAX(sim->options.host_count, 1u), sizeof *mesh->cards);
    mesh->last_arrival_ns = tt_mem_zalloc((size_t)node_count * node_count, sizeof(uint64_t));
    if (mesh->ends == NULL || mesh->cards == NULL || mesh->last_arrival_ns == NULL) {
        close_mesh(&mesh->mesh);
        return tt_error_set(err, TT_NOMEM, NULL, "simulate fewer nodes",
                            "no memory for a simulated network of %u nodes", node_count);
    }
    // Luck of its own: one that is opened anew must not meet again what its predecessor ended of.
    tt_rng_init(&mesh->rng, sim->options.seed, TT_RNG_SIMULATION, 1 + 2 * sim->meshes_opened);
    tt_rng_init(&mesh->fault_rng, sim->options.seed, TT_RNG_SIMULATION, 2 + 2 * sim->meshes_opened);
    sim->meshes_opened++;
    for (uint32_t i = 0; i < node_count; i++) {
        sim_end *end = &mesh->ends[i];
        *end = (sim_end){.mesh = mesh,
                         .index = i,
                         .host = host_of_node[i],
                         .chunk_bytes = CHUNK_START,
                         .spin = 100};
        end->unsent.last = &end->unsent.first;
        end->arrived.last = &end->arrived.first;
    }
    mesh->next = sim->meshes;
    sim->meshes = mesh;
    *out = &mesh->mesh;
    return TT_OK;
}
