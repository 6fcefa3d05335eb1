// How two processes of a job find out that both hold its key, and agree on a key for their
// connection: two greetings of one size, and a confirmation by the caller.
//
//     caller -> answerer   hello: who speaks to whom, ephemeral public key, authenticated by the
//     job's key answerer -> caller   the same, and authenticated together with the caller's caller
//     -> answerer   proof that it has the connection's key, so that a greeting that is said
//                          again by somebody else opens nothing
//
// The connection's key comes from the job's key, both greetings and X25519 of both ephemeral keys:
// who learns the job's key later cannot read what was sent before. Nothing here does input or
// output.
#ifndef TTI_HANDSHAKE_H
#define TTI_HANDSHAKE_H

#include "record.h"
#include "tt/comm_net.h"

enum { TTI_CONFIRM_BYTES = 32 };
enum { TTI_HELLO_SEALED = 1, TTI_HELLO_AES = 2 }; // flags: records are encrypted; with AES-256-GCM

// Who speaks to whom, and of what.
typedef struct tti_introduction {
    uint64_t job;
    uint32_t mesh, from, to;
} tti_introduction;

typedef struct tti_hello {
    uint32_t magic;
    uint16_t version, flags;
    uint64_t job;
    uint32_t mesh, from, to, zero;
    uint8_t ephemeral[32], random[32];
    uint8_t proof[32]; // of all before
} tti_hello;
_Static_assert(sizeof(tti_hello) == 128, "the wire format is fixed");

typedef struct tti_handshake {
    tti_hello mine;
    uint8_t secret[32];
    uint8_t connection[32]; // its key, once both greetings are known
} tti_handshake;

// The caller's greeting is in `mine` then.
void tti_handshake_call(tti_handshake *h, const tt_net_key *key, tti_introduction who, int flags);
// The answerer's; `flags` are what it can and wants. who: this end is `to`; the caller is told in
// `from`, and must be below end_count. errors TT_PEER: not of this job, or without its key
TT_NODISCARD tt_status tti_handshake_answer(tti_handshake *h,
                                            const tt_net_key *key,
                                            tti_introduction who,
                                            uint32_t end_count,
                                            int flags,
                                            const tti_hello *theirs);
// The caller's last word. errors TT_PEER
TT_NODISCARD tt_status tti_handshake_confirm(tti_handshake *h,
                                             const tt_net_key *key,
                                             const tti_hello *theirs,
                                             uint8_t out[TTI_CONFIRM_BYTES],
                                             tti_cipher *cipher);
// What the answerer makes of it. errors TT_PEER
TT_NODISCARD tt_status tti_handshake_check(tti_handshake *h,
                                           const uint8_t confirmation[TTI_CONFIRM_BYTES],
                                           tti_cipher *cipher);
void tti_handshake_forget(tti_handshake *h);

#endif
