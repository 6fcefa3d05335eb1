// What a mesh that reaches other hosts is made of (tt/comm_net.h): connections to others
// (net_out.c), of others (net_in.c), and the end they belong to (net_mesh.c).
//
// All of it is touched by the end's thread alone, and nothing there blocks. While that thread
// sleeps at its bell, a second one waits at the sockets for it and rings the bell.
#ifndef TTI_NET_H
#define TTI_NET_H

#include "byte_queue.h"
#include "handshake.h"
#include <sys/epoll.h>
#include <sys/socket.h>

enum { TTI_NET_PENDING_MAX = 32 };

// How long a peer may take to connect and greet.
#define TTI_NET_GREETING_NS UINT64_C(3000000000)

typedef enum tti_net_state {
    TTI_NET_CLOSED,
    TTI_NET_CONNECTING,
    TTI_NET_GREETING,
    TTI_NET_OPEN,
} tti_net_state;

// To a peer.
typedef struct tti_net_out {
    tti_net_state state;
    int fd;
    int is_dirty, is_blocked;         // something to send at the next flush; the socket is full
    uint32_t failures;                // to connect, in a row
    uint64_t next_ns;                 // not tried again before
    uint64_t dialled_ns, deadline_ns; // of connecting and greeting
    uint64_t took_ns;                 // to connect, the last time it did; 0: never
    tti_handshake handshake;
    tti_hello theirs;
    uint32_t theirs_count; // bytes of it that are here
    tti_cipher cipher;
    tti_byte_queue text, wire; // whole messages to send; records of them
} tti_net_out;

// Of a peer, or of somebody who has not shown who he is.
typedef struct tti_net_in {
    tti_net_state state;
    int fd;
    uint32_t peer;
    uint64_t deadline_ns; // of greeting
    tti_handshake handshake;
    uint8_t greeting[sizeof(tti_hello)];
    uint32_t greeting_count;
    int has_answered;
    int has_more; // messages are here that were not handed on
    int low;      // bytes without which the socket says nothing; 0: any
    tti_cipher cipher;
    tti_byte_queue records, text; // received; messages, of which the last may be incomplete
} tti_net_in;

typedef struct tti_net {
    tt_mesh mesh; // first
    tt_net_options options;
    tt_net_address *address; // [node_count]
    uint8_t *is_here;        // [node_count]
    tt_outbox ring_outbox;
    int packs; // messages of this end
    tt_packer packer, unpacker;
    tti_net_out *out; // [node_count]
    tti_net_in **in;  // [node_count] NULL: not connected
    tti_net_in *pending[TTI_NET_PENDING_MAX];
    int ready;        // epoll of all sockets
    int asleep, stop; // epoll of `ready`, which the watcher waits at; an eventfd that ends it
    tt_thread watcher;
    uint64_t tick_ns; // of the last look at deadlines
    tt_mesh_counters counters;
    tt_net_counters net_counters;
    uint32_t unsettled; // connections that deadlines or another try wait for
    uint32_t backlog;   // incoming connections with has_more
} tti_net;

// What an event of `ready` is about: a kind and an index.
typedef enum tti_net_kind {
    TTI_NET_LISTENER,
    TTI_NET_PENDING,
    TTI_NET_IN,
    TTI_NET_OUT,
} tti_net_kind;
// fd is added (EPOLL_CTL_ADD) or changed (EPOLL_CTL_MOD). errors TT_IO
tt_status
tti_net_watch(tti_net *net, int action, int fd, uint32_t events, tti_net_kind kind, uint32_t index);
void tti_net_count(uint64_t *counter, uint64_t amount);
int tti_net_flags(const tti_net *net); // of greetings
void tti_net_tune(const tti_net *net, int fd);
socklen_t tti_net_socket_address(const tt_net_address *address, struct sockaddr_storage *out);

// Bytes of a message on a connection: messages begin at multiples of 16.
static inline size_t
tti_net_padded(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

// ---- net_out.c ---------------------------------------------------------------------------------

// spans[0] is the frame.
void tti_net_out_send(
    tti_net *net, uint32_t to, const tt_span *spans, uint32_t span_count, size_t total);
void tti_net_out_flush(tti_net *net, uint32_t to);
void tti_net_out_event(tti_net *net, uint32_t to, uint32_t events);
// Deadlines, and another try.
void tti_net_out_tick(tti_net *net, uint32_t to, uint64_t now_ns);
// Whether all that it was given is with the system, or lost.
int tti_net_out_is_empty(const tti_net_out *out);
// What waits for this one is lost, and it is dialled anew when there is something for it.
void tti_net_out_drop(tti_net *net, uint32_t to);
void tti_net_out_close(tti_net_out *out);

// ---- net_in.c ----------------------------------------------------------------------------------

void tti_net_in_accept(tti_net *net);
void tti_net_in_greet(tti_net *net, uint32_t slot);
// Hands on at most `limit` messages; how many.
uint32_t
tti_net_in_read(tti_net *net, uint32_t peer, uint32_t limit, tt_mesh_handler *handle, void *self);
void tti_net_in_tick(tti_net *net, uint64_t now_ns);
void tti_net_in_close(tti_net_in *in);

#endif
