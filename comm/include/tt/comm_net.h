// Meshes that reach other hosts: TCP connections beside the rings of this one. A process has one
// end of such a mesh; ends of its own host it reaches through rings, all others through a
// connection for each direction, which the sender opens when it has something to send and opens
// anew after it broke.
//
// Who connects must show that he holds the job's key, and is shown that the other side does;
// connections between hosts are encrypted with keys of their own. What a stranger sends costs a
// buffer of fixed size for a few seconds, and is counted.
//
// Caveats: what was on its way when a connection broke is lost, and what waits for a peer that
// cannot be reached is dropped when it becomes too much; the protocol above sends again. Order
// within a pair is kept.
#ifndef TT_COMM_NET_H
#define TT_COMM_NET_H

#include "tt/comm.h"

// ---- addresses ---------------------------------------------------------------------------------

enum { TT_NET_ADDRESS_TEXT = 64 };

// Of a listening socket. 24 bytes, as they travel.
typedef struct tt_net_address {
    uint8_t bytes[16]; // network byte order; of IPv4 the first four
    uint16_t port;
    uint8_t family; // 4 or 6; 0: nobody knows it
    uint8_t pad[5];
} tt_net_address;
_Static_assert(sizeof(tt_net_address) == 24, "the wire format is fixed");

// The first address of a host's name. errors TT_NOTFOUND
TT_NODISCARD tt_status tt_net_resolve(const char *host,
                                      uint16_t port,
                                      tt_net_address *out,
                                      tt_error *err);
// Listens there; port 0: some free port, which *address tells then. *fd is the caller's. errors
// TT_IO
TT_NODISCARD tt_status tt_net_listen(tt_net_address *address, int *fd, tt_error *err);
// The address by which this host would speak to that one, with port 0. errors TT_IO
TT_NODISCARD tt_status tt_net_route(const tt_net_address *to, tt_net_address *out, tt_error *err);
// "10.0.0.1:4000", "[::1]:4000"; returns `out`.
const char *tt_net_text(const tt_net_address *address, char out[TT_NET_ADDRESS_TEXT]);
// Whether it is an address of this host that others cannot reach.
int tt_net_is_loopback(const tt_net_address *address);

// ---- keys --------------------------------------------------------------------------------------

enum { TT_NET_KEY_BYTES = 32 };

typedef struct tt_net_key {
    uint8_t bytes[TT_NET_KEY_BYTES];
} tt_net_key;

// A new one. thread [any]
void tt_net_key_draw(tt_net_key *key);
// Leaves nothing of it in memory.
void tt_net_key_forget(tt_net_key *key);

// ---- meshes ------------------------------------------------------------------------------------

typedef struct tt_net_options {
    tt_mesh *rings;                // of the same ends; taken
    uint32_t node_count, node;     // ends; this process's
    const uint8_t *is_here;        // [node_count] reached by rings, this end among them
    const tt_net_address *address; // [node_count] where the others listen
    int listener;                  // where this one does; taken. -1: nobody connects
    uint64_t job;                  // who speaks of another job, or another mesh of it, is refused
    uint32_t mesh;
    tt_net_key key;
    int is_open;         // connections are not encrypted (they are authenticated all the same)
    uint64_t timeout_ns; // what was sent and is not acknowledged so long breaks the connection
} tt_net_options;

// Counters beside tt_mesh_counters; written by the end's thread, read by any (relaxed).
typedef struct tt_net_counters {
    uint64_t opened, broken; // connections to others
    uint64_t accepted;       // connections of others that were authenticated
    uint64_t refused;        // that were not: no key, another job, nonsense, silence
    uint64_t damaged;        // that were cut because of what came over them
    uint64_t dropped;        // messages to those who could not be reached
    uint64_t received_frames, received_bytes;
} tt_net_counters;

// On failure rings and listener are closed. The functions of tt/comm.h work on it as on any mesh,
// for this process's end alone. errors TT_NOMEM, TT_IO
TT_NODISCARD tt_status tt_net_mesh_open(const tt_net_options *options,
                                        tt_mesh **out,
                                        tt_error *err);
// Where that end listens, from now on. thread: the end's
void tt_net_mesh_set_address(tt_mesh *mesh, uint32_t node, const tt_net_address *address);
void tt_net_mesh_counters(const tt_mesh *mesh, tt_net_counters *out);

#endif
