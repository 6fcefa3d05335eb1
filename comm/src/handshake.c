// The handshake: see handshake.h. Proofs and keys are BLAKE2b keyed with what must be known.
#include "handshake.h"
#include <sodium.h>
#include <string.h>

enum { MAGIC = 0x6f6c6c48, VERSION = 1 }; // "Hllo"

_Static_assert(crypto_scalarmult_BYTES == 32 && crypto_generichash_BYTES == 32, "sizes of keys");

// BLAKE2b of `label`, then of the parts, keyed.
typedef struct part {
    const void *bytes;
    size_t size;
} part;

static void
hash(uint8_t out[32], const uint8_t key[32], const char *label, const part *parts, uint32_t count)
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, key, 32, 32);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    for (uint32_t i = 0; i < count; i++)
        (void)crypto_generichash_update(&state, parts[i].bytes, parts[i].size);
    (void)crypto_generichash_final(&state, out, 32);
    sodium_memzero(&state, sizeof state);
}

static size_t
proven_bytes(void)
{
    return offsetof(tti_hello, proof);
}

static void
begin(tti_handshake *h, tti_introduction who, int flags)
{
    *h = (tti_handshake){.mine = {.magic = MAGIC,
                                  .version = VERSION,
                                  .flags = (uint16_t)flags,
                                  .job = who.job,
                                  .mesh = who.mesh,
                                  .from = who.from,
                                  .to = who.to}};
    randombytes_buf(h->secret, sizeof h->secret);
    randombytes_buf(h->mine.random, sizeof h->mine.random);
    (void)crypto_scalarmult_base(h->mine.ephemeral, h->secret);
}

// errors TT_PEER the other side's ephemeral key is none
static tt_status
agree(tti_handshake *h, const tt_net_key *key, const tti_hello *call, const tti_hello *answer)
{
    uint8_t shared[32];
    const tti_hello *theirs = call == &h->mine ? answer : call;
    if (crypto_scalarmult(shared, h->secret, theirs->ephemeral) != 0)
        return TT_PEER;
    const part parts[] = {{call, sizeof *call}, {answer, sizeof *answer}, {shared, sizeof shared}};
    hash(h->connection, key->bytes, "trimtab connection", parts, 3);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(h->secret, sizeof h->secret);
    return TT_OK;
}

static void
open_cipher(const tti_handshake *h, int flags, tti_cipher *cipher)
{
    uint8_t key[32];
    hash(key, h->connection, "trimtab records", NULL, 0);
    tti_cipher_open(cipher,
                    (flags & TTI_HELLO_SEALED) == 0 ? TTI_CIPHER_NONE
                    : (flags & TTI_HELLO_AES) != 0  ? TTI_CIPHER_AES
                                                    : TTI_CIPHER_CHACHA,
                    key);
    sodium_memzero(key, sizeof key);
}

static int
is_hello(const tti_hello *hello, tti_introduction who)
{
    return hello->magic == MAGIC && hello->version == VERSION && hello->job == who.job &&
           hello->mesh == who.mesh && hello->zero == 0;
}

void
tti_handshake_call(tti_handshake *h, const tt_net_key *key, tti_introduction who, int flags)
{
    begin(h, who, flags);
    const part parts[] = {{&h->mine, proven_bytes()}};
    hash(h->mine.proof, key->bytes, "trimtab call", parts, 1);
}

tt_status
tti_handshake_answer(tti_handshake *h,
                     const tt_net_key *key,
                     tti_introduction who,
                     uint32_t end_count,
                     int flags,
                     const tti_hello *theirs)
{
    uint8_t proof[32];
    const part call[] = {{theirs, proven_bytes()}};
    if (!is_hello(theirs, who))
        return TT_PEER;
    hash(proof, key->bytes, "trimtab call", call, 1);
    if (sodium_memcmp(proof, theirs->proof, sizeof proof) != 0)
        return TT_PEER;
    if (theirs->to != who.to || theirs->from >= end_count || theirs->from == who.to)
        return TT_PEER;
    // Encrypted when either side wants it, with AES when both have it.
    int sealed = (flags | theirs->flags) & TTI_HELLO_SEALED,
        aes = flags & theirs->flags & TTI_HELLO_AES;
    who.from = who.to;
    who.to = theirs->from;
    begin(h, who, sealed | aes);
    const part both[] = {{theirs, sizeof *theirs}, {&h->mine, proven_bytes()}};
    hash(h->mine.proof, key->bytes, "trimtab answer", both, 2);
    return agree(h, key, theirs, &h->mine);
}

tt_status
tti_handshake_confirm(tti_handshake *h,
                      const tt_net_key *key,
                      const tti_hello *theirs,
                      uint8_t out[TTI_CONFIRM_BYTES],
                      tti_cipher *cipher)
{
    const tti_hello *mine = &h->mine;
    uint8_t proof[32];
    const part both[] = {{mine, sizeof *mine}, {theirs, proven_bytes()}};
    if (!is_hello(theirs, (tti_introduction){.job = mine->job, .mesh = mine->mesh}))
        return TT_PEER;
    hash(proof, key->bytes, "trimtab answer", both, 2);
    if (sodium_memcmp(proof, theirs->proof, sizeof proof) != 0)
        return TT_PEER;
    int wants = mine->flags & TTI_HELLO_SEALED;
    if (theirs->from != mine->to || theirs->to != mine->from || (theirs->flags & wants) != wants ||
        ((theirs->flags & TTI_HELLO_AES) != 0 && (mine->flags & TTI_HELLO_AES) == 0))
        return TT_PEER;
    TT_TRY(agree(h, key, mine, theirs));
    hash(out, h->connection, "trimtab confirmation", NULL, 0);
    open_cipher(h, theirs->flags, cipher);
    return TT_OK;
}

tt_status
tti_handshake_check(tti_handshake *h,
                    const uint8_t confirmation[TTI_CONFIRM_BYTES],
                    tti_cipher *cipher)
{
    uint8_t expected[TTI_CONFIRM_BYTES];
    hash(expected, h->connection, "trimtab confirmation", NULL, 0);
    if (sodium_memcmp(expected, confirmation, sizeof expected) != 0)
        return TT_PEER;
    open_cipher(h, h->mine.flags, cipher);
    return TT_OK;
}

void
tti_handshake_forget(tti_handshake *h)
{
    sodium_memzero(h, sizeof *h);
}

// ---- keys --------------------------------------------------------------------------------------

void
tt_net_key_draw(tt_net_key *key)
{
    TT_ASSERT(sodium_init() >= 0);
    randombytes_buf(key->bytes, sizeof key->bytes);
}

void
tt_net_key_forget(tt_net_key *key)
{
    sodium_memzero(key, sizeof *key);
}
