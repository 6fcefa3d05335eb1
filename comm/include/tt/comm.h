// comm: frames and the meshes that carry them. One transport is here: single-producer
// single-consumer memory rings between the nodes of one process, or of several on one host; another
// room brings another (tt/cluster.h), with the same frames and the same protocol.
//
// Caveats: a mesh loses nothing and keeps the order of each pair of nodes; the protocol above does
// not rely on either. A frame handed to a receiver lives in the mesh: it is valid during the call
// and not after.
#ifndef TT_COMM_H
#define TT_COMM_H

#include "tt/comm_pack.h"
#include "tt/comm_pool.h"
#include "tt/core.h"

// ---- frames -----------------------------------------------------------------------------------

enum { TT_FRAME_MAGIC = 0x31465454, TT_FRAME_VERSION = 1, TT_FRAME_PAYLOAD_MAX = 1 << 30 };

typedef enum tt_frame_kind {
    TT_FRAME_NONE,
    TT_FRAME_PULL,       // worker -> server: give me these rows
    TT_FRAME_PULL_REPLY, // server -> worker
    TT_FRAME_PUSH,       // worker -> server: apply these gradients
    TT_FRAME_PUSH_ACK,   // server -> worker: applied (or was applied before)
    TT_FRAME_MOVED,      // server -> anyone: not here, ask the owner named in `detail`
    TT_FRAME_FETCH,      // new owner -> old owner: send these rows of the seal, ahead of the drain
    TT_FRAME_PIECE,      // old owner -> new owner: rows of the seal
    TT_FRAME_SEAL,       // old owner -> new owner: the sealed header
    TT_FRAME_COMPLETE,   // new owner -> old owner: everything is here, free yours
    TT_FRAME_SAVE,       // keeper of checkpoints -> server: send a copy of this partition
    TT_FRAME_SAVED,      // server -> keeper
    TT_FRAME_RESTORE,    // server -> keeper: send this partition as it was in the last checkpoint
    TT_FRAME_RESTORED,   // keeper -> server
    TT_FRAME_COPY,       // owner -> backup: the whole partition; LAST: it is yours
    TT_FRAME_COPY_PUSH,  // owner -> backup: a push that is applied, its frame before its payload
    TT_FRAME_COPY_ACK,   // backup -> owner
    TT_FRAME_HEARTBEAT,  // node -> master: this process lives (tt/cluster_members.h)
    TT_FRAME_HEARTBEAT_REPLY, // master -> node
    TT_FRAME_ORDER,           // master -> node's agent: how things stand and what to do
    TT_FRAME_REPORT,          // agent -> master: how the node stands and what it has done
    TT_FRAME_HOST_STATUS,     // host -> master: which nodes' processes it has
    TT_FRAME_HOST_HEARD,      // master -> host
    TT_FRAME_HOST_START,      // master -> host: start a node's process
    TT_FRAME_HOST_KILL,       // master -> host: end it, at once
    TT_FRAME_HOST_STOP,       // master -> host: end all, and yourself
    TT_FRAME_WANT_KEYS,       // server -> worker: that list is not known here, send its keys
    TT_FRAME_KIND_COUNT
} tt_frame_kind;

enum tt_frame_flag {
    TT_FRAME_WHOLE = 1 << 0, // every row of the partition in order; no key list
    TT_FRAME_BF16 = 1 << 1,  // values are bf16
    TT_FRAME_SEALED =
        1 << 2,              // PULL_REPLY: a copy of the seal, with optimiser state; may be carried
    TT_FRAME_CARRY = 1 << 3, // PUSH: originals of the seal come along
    TT_FRAME_READONLY =
        1 << 4,             // PULL: evaluation: the model that would be saved, never to be carried
    TT_FRAME_LAST = 1 << 5, // PIECE: the drain has sent everything that nobody was to carry
    TT_FRAME_ALL = 1 << 6,  // FETCH: everything
    TT_FRAME_HEADER = 1 << 7,  // FETCH: the sealed header
    TT_FRAME_BATCH = 1 << 7,   // PUSH: the payload ends with the name of the batch it is a part of
    TT_FRAME_WELCOME = 1 << 8, // HEARTBEAT_REPLY: work under the attempt in `detail`
    TT_FRAME_REFUSED = 1 << 9, // HEARTBEAT_REPLY: you were declared dead
    TT_FRAME_PROBE = 1 << 10,  // PUSH, BSP: only asks whether this slice of this round is in
    TT_FRAME_BEFORE = 1 << 11, // PUSH_ACK to a probe: it is
    // PULL_REPLY, BSP: the parameters of that round are not kept any more; COPY_ACK: something
    // before what came is missing
    TT_FRAME_LOST = 1 << 12,
    // PUSH, PULL_REPLY: the payload says where the values lie (tt/comm_pool.h). PULL: that will do.
    TT_FRAME_LENT = 1 << 13,
    TT_FRAME_NAMED = 1 << 14, // PULL, PUSH: a list of keys by its number, and the keys if need be
    // On its way between hosts: the payload is packed (tt/comm_pack.h). Nobody above a mesh sees
    // it.
    TT_FRAME_PACKED = 1 << 15,
};

// 64 bytes, little-endian. `clock`, `detail` and `extra` are explained where the protocol uses them
// (ps/README.md).
typedef struct tt_frame {
    uint32_t magic;
    uint16_t version, kind;
    uint16_t flags, sender;
    uint32_t attempt;
    uint64_t job;
    uint32_t generation;
    uint16_t table, partition;
    uint64_t sequence;
    uint32_t clock, detail;
    uint32_t count, payload_bytes;
    uint32_t extra, checksum;
} tt_frame;
_Static_assert(sizeof(tt_frame) == 64 && offsetof(tt_frame, sequence) == 32,
               "the wire format is fixed");
_Static_assert(offsetof(tt_frame, payload_bytes) == 52 && offsetof(tt_frame, checksum) == 60,
               "the wire format is fixed");

// Whether `size` bytes hold a well-formed frame with its payload; survives any bytes. thread [any]
TT_NODISCARD tt_status tt_frame_check(const void *bytes, size_t size);

// A piece of a payload that is sent from where it lies.
struct tt_span {
    const void *bytes;
    size_t size;
};

// Fills in what every transport does (all but kind and what the kind says) before `sender` sends
// the frame with these pieces as its payload. Returns the bytes of frame and payload together.
// thread [any]
size_t
tt_frame_complete(tt_frame *frame, uint32_t sender, const tt_span *spans, uint32_t span_count);

// Where protocol cores put what they want sent. `send` copies before it returns and never blocks;
// magic, version and payload_bytes are filled in by it.
typedef struct tt_outbox {
    void *self;
    void (*send)(
        void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count);
    tt_pool *pool;         // memory that other processes on this mesh see, or NULL
    const uint8_t *shares; // which ends see it; NULL: all
} tt_outbox;

// The pool, if `to` sees it, else NULL: a message can say where its bytes lie instead of bringing
// them. thread: the node's
static inline tt_pool *
tt_outbox_pool(const tt_outbox *outbox, uint32_t to)
{
    return outbox->shares == NULL || outbox->shares[to] ? outbox->pool : NULL;
}

// ---- meshes -----------------------------------------------------------------------------------

typedef struct tt_mesh tt_mesh;

// Counters of one node; each written by its node, read by any (relaxed).
typedef struct tt_mesh_counters {
    uint64_t frames, bytes, chunks; // sent
    uint64_t waits, sleeps; // times the node had nothing to do; times it went as far as the futex
    uint64_t full;          // sends that found the ring full and were queued
    uint64_t refused;       // connections: of strangers, and cut because of what came over them
} tt_mesh_counters;

typedef void tt_mesh_handler(void *self, const tt_frame *frame, const uint8_t *payload);

// What a transport implements; the functions of the same names below say what each does, and on
// which thread.
typedef struct tt_mesh_verbs {
    void (*set_chunk)(tt_mesh *mesh, uint32_t node, uint32_t chunk_bytes);
    void (*set_spin)(tt_mesh *mesh, uint32_t node, uint32_t spin);
    void (*set_packing)(tt_mesh *mesh, uint32_t node, uint32_t is_on);
    tt_outbox (*outbox)(tt_mesh *mesh, uint32_t node);
    void (*flush)(tt_mesh *mesh, uint32_t node);
    uint32_t (*receive)(
        tt_mesh *mesh, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *self);
    void (*wait)(tt_mesh *mesh, uint32_t node, uint64_t timeout_ns);
    void (*wake)(tt_mesh *mesh, uint32_t node);
    void (*drop)(tt_mesh *mesh, uint32_t node, uint32_t peer); // NULL: nothing to do
    void (*read_counters)(const tt_mesh *mesh, uint32_t node, tt_mesh_counters *out);
    void (*close)(tt_mesh *mesh);
} tt_mesh_verbs;

struct tt_mesh {
    const tt_mesh_verbs *verbs;
};

// Of memory rings: node_count ends, each connected to each, itself included (a node that changes
// role has both parts). Rings use memory only as far as they are filled.
TT_NODISCARD tt_status tt_mesh_open(uint32_t node_count, tt_mesh **out, tt_error *err);

// The same between processes of one host. tt_mesh_share makes the memory, of which *fd is the
// caller's to close and to hand to other processes; each of them attaches it and uses the ends that
// are its own, which no other process uses at the same time. One that dies harms nobody: what it
// had not sent whole never was, and who attaches it anew goes on at its ends. errors TT_IO,
// TT_NOMEM; TT_CORRUPT the descriptor is of something else
TT_NODISCARD tt_status tt_mesh_share(uint32_t node_count, int *fd, tt_error *err);
TT_NODISCARD tt_status tt_mesh_attach(int fd, tt_mesh **out, tt_error *err);

static inline void
tt_mesh_close(tt_mesh *mesh)
{
    if (mesh != NULL)
        mesh->verbs->close(mesh);
}

// Sizes of this node's sends from now on: messages travel in chunks of at most chunk_bytes (4 KiB
// .. 1 MiB). thread: the node's
static inline void
tt_mesh_set_chunk(tt_mesh *mesh, uint32_t node, uint32_t chunk_bytes)
{
    mesh->verbs->set_chunk(mesh, node, chunk_bytes);
}

// Pauses before the futex in this node's waits. thread: the node's
static inline void
tt_mesh_set_spin(tt_mesh *mesh, uint32_t node, uint32_t spin)
{
    mesh->verbs->set_spin(mesh, node, spin);
}

// Whether this node's sends to other hosts are packed from now on; those within a host never are.
// thread: the node's
static inline void
tt_mesh_set_packing(tt_mesh *mesh, uint32_t node, int is_on)
{
    mesh->verbs->set_packing(mesh, node, is_on != 0);
}

// The peer's process is dead: what this node sent there and is still under way is given up, and the
// next message goes to whoever is in its place by then, not into a connection whose other end is
// gone. thread: the node's
static inline void
tt_mesh_drop(tt_mesh *mesh, uint32_t node, uint32_t peer)
{
    if (mesh->verbs->drop != NULL)
        mesh->verbs->drop(mesh, node, peer);
}

// An outbox that sends as `node`. Only that node's thread may use it.
static inline tt_outbox
tt_mesh_outbox(tt_mesh *mesh, uint32_t node)
{
    return mesh->verbs->outbox(mesh, node);
}

// Hands over what was sent since the last flush: rings the bells. thread: the node's
static inline void
tt_mesh_flush(tt_mesh *mesh, uint32_t node)
{
    mesh->verbs->flush(mesh, node);
}

// Calls `handle` for every message that has arrived, at most `limit`; returns how many. thread: the
// node's
static inline uint32_t
tt_mesh_receive(tt_mesh *mesh, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *self)
{
    return mesh->verbs->receive(mesh, node, limit, handle, self);
}

// Flushes, then waits until something may have arrived, someone called tt_mesh_wake, or timeout_ns
// passed. thread: the node's
static inline void
tt_mesh_wait(tt_mesh *mesh, uint32_t node, uint64_t timeout_ns)
{
    mesh->verbs->wait(mesh, node, timeout_ns);
}

// Ends that node's wait. thread [any]
static inline void
tt_mesh_wake(tt_mesh *mesh, uint32_t node)
{
    mesh->verbs->wake(mesh, node);
}

static inline void
tt_mesh_counters_read(const tt_mesh *mesh, uint32_t node, tt_mesh_counters *out)
{
    mesh->verbs->read_counters(mesh, node, out);
}

#endif
