// Target: both sides of a handshake, with somebody between them who changes what they say, cuts it
// into pieces and ends it early; who may even hold the job's key and prove what he has made up.
// Without the key he opens nothing, and what nobody touched opens a connection of one key.
//
// Input: a byte of what both want, then for each of the three messages a byte of what happens to
// it, the size of its pieces, and pairs of place and byte.
#include "fake_socket.h"
#include "fuzz.h"
#include "net.h"
#include <sodium.h>
#include <string.h>

enum { CALL_SOCKET = FAKE_SOCKET, ANSWER_SOCKET = FAKE_SOCKET + 1 };
enum { CALLER = 2, ANSWERER = 1, NODES = 4, SLOT = 5, MESSAGE_MAX = sizeof(tti_hello) };

// What happens to a message: how many bytes are changed, in the low bits, and more.
enum { CHANGES_MASK = 31, PROVEN = 32, CUT = 64, RAW = 128 };

typedef struct middle {
    const uint8_t *at, *end; // the input
    int touched, proven;     // something was changed, something was proven anew
} middle;

static tti_net caller, answerer;

#ifdef TT_FUZZ_FAST
// Curve arithmetic is a hundred times what all the rest takes. A stand-in that is commutative, and
// refuses what the curve refuses; replay.c uses the true one.
int
crypto_scalarmult_base(uint8_t *q, const uint8_t *n)
{
    for (int i = 0; i < 32; i++)
        q[i] = (uint8_t)(n[i] ^ 0x5a);
    return 0;
}

int
crypto_scalarmult(uint8_t *q, const uint8_t *n, const uint8_t *p)
{
    for (int i = 0; i < 32; i++)
        q[i] = (uint8_t)(n[i] ^ p[i]);
    return sodium_is_zero(p, 32) ? -1 : 0;
}
#endif

// ---- randomness that can be repeated -----------------------------------------------------------

static uint64_t random_state;

static const char *
random_name(void)
{
    return "repeatable";
}

static uint32_t
random_number(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static void
random_fill(void *bytes, size_t size)
{
    uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)random_number();
}

static randombytes_implementation repeatable = {
    .implementation_name = random_name, .random = random_number, .buf = random_fill};

// ---- both sides --------------------------------------------------------------------------------

static void
open_end(tti_net *net, uint32_t node)
{
    static uint8_t is_here[NODES];
    net->options =
        (tt_net_options){.node_count = NODES, .node = node, .job = 0x1122334455667788, .mesh = 7};
    net->options.key.bytes[3] = 99;
    net->is_here = is_here;
    net->in = tt_mem_zalloc(NODES, sizeof(tti_net_in *));
    net->out = tt_mem_zalloc_vector(NODES, sizeof *net->out);
    TT_ASSERT(net->in != NULL && net->out != NULL);
}

static void
open_all(void)
{
    if (caller.in != NULL)
        return;
    (void)randombytes_set_implementation(&repeatable);
    TT_ASSERT(sodium_init() >= 0);
    open_end(&caller, CALLER);
    open_end(&answerer, ANSWERER);
}

static void
begin_call(void)
{
    tti_net_out *out = &caller.out[ANSWERER];
    const tti_introduction who = {caller.options.job, caller.options.mesh, CALLER, ANSWERER};
    tti_handshake_call(&out->handshake, &caller.options.key, who, tti_net_flags(&caller));
    out->fd = CALL_SOCKET;
    out->state = TTI_NET_GREETING;
    out->theirs_count = 0;
    caller.unsettled = 1;
}

static void
await_call(void)
{
    tti_net_in *in = tt_mem_zalloc_vector(1, sizeof *in);
    TT_ASSERT(in != NULL);
    in->fd = ANSWER_SOCKET;
    in->state = TTI_NET_GREETING;
    answerer.pending[SLOT] = in;
    answerer.unsettled = 1;
}

static void
forget_all(void)
{
    tti_net_out_close(&caller.out[ANSWERER]);
    tti_net_in_close(answerer.pending[SLOT]);
    answerer.pending[SLOT] = NULL;
    for (uint32_t n = 0; n < NODES; n++) {
        tti_net_in_close(answerer.in[n]);
        answerer.in[n] = NULL;
    }
    fake_socket_reset();
}

// ---- the one in the middle ---------------------------------------------------------------------

static uint32_t
next_byte(middle *m)
{
    return m->at < m->end ? *m->at++ : 0;
}

static void
prove(uint8_t *proof, const char *label, const tti_hello *before, const tti_hello *hello)
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, answerer.options.key.bytes, 32, 32);
    (void)crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    if (before != NULL)
        (void)crypto_generichash_update(&state, (const uint8_t *)before, sizeof *before);
    (void)crypto_generichash_update(&state, (const uint8_t *)hello, offsetof(tti_hello, proof));
    (void)crypto_generichash_final(&state, proof, 32);
}

// Changes a message of `size` bytes; call: the one before it, where this is the answer.
static void
change(middle *m, uint8_t *message, size_t size, uint32_t what, const tti_hello *call)
{
    uint8_t before[MESSAGE_MAX];
    memcpy(before, message, size);
    if ((what & RAW) != 0)
        for (size_t i = 0; i < size; i++)
            message[i] = (uint8_t)next_byte(m);
    for (uint32_t i = 0; i < (what & CHANGES_MASK); i++) {
        uint32_t place = next_byte(m);
        message[place % size] = (uint8_t)next_byte(m);
    }
    if ((what & PROVEN) != 0 && size == sizeof(tti_hello)) {
        tti_hello *hello = (tti_hello *)(void *)message;
        prove(hello->proof, call != NULL ? "trimtab answer" : "trimtab call", call, hello);
        m->proven = 1;
    }
    m->touched |= memcmp(before, message, size) != 0;
}

// In pieces; `hear` after each.
static void
hand_over(
    middle *m, int end, const uint8_t *message, size_t size, uint32_t what, void (*hear)(void))
{
    size_t piece = 1 + next_byte(m) % 160;
    if ((what & CUT) != 0) {
        m->touched |= piece < size;
        size = TT_MIN(size, piece);
    }
    for (size_t at = 0; at < size; at += piece) {
        fake_socket_put(end, message + at, TT_MIN(piece, size - at));
        hear();
    }
}

static void
answerer_hears(void)
{
    tti_net_in_greet(&answerer, SLOT);
}

static void
caller_hears(void)
{
    tti_net_out_event(&caller, ANSWERER, EPOLLIN);
}

static int
overhear(int end, void *message, size_t size)
{
    return fake_socket_take(end, message, size) == size;
}

static void
be_between(middle *m)
{
    _Alignas(8) uint8_t message[MESSAGE_MAX];
    tti_hello call = caller.out[ANSWERER].handshake.mine;
    memcpy(message, &call, sizeof call);
    uint32_t what = next_byte(m);
    change(m, message, sizeof call, what, NULL);
    hand_over(m, ANSWER_SOCKET, message, sizeof call, what, answerer_hears);
    if (overhear(ANSWER_SOCKET, message, sizeof(tti_hello))) {
        what = next_byte(m);
        change(m, message, sizeof(tti_hello), what, &call);
        hand_over(m, CALL_SOCKET, message, sizeof(tti_hello), what, caller_hears);
    }
    if (overhear(CALL_SOCKET, message, TTI_CONFIRM_BYTES)) {
        what = next_byte(m);
        change(m, message, TTI_CONFIRM_BYTES, what, NULL);
        hand_over(m, ANSWER_SOCKET, message, TTI_CONFIRM_BYTES, what, answerer_hears);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_all();
    if (size < 1)
        return 0;
    random_state = data[0];
    caller.options.is_open = data[0] % 2 != 0;
    answerer.options.is_open = data[0] / 2 % 2 != 0;
    middle m = {.at = data + 1, .end = data + size};
    begin_call();
    await_call();
    be_between(&m);
    const tti_net_in *in = answerer.in[CALLER];
    const tti_net_out *out = &caller.out[ANSWERER];
    if (m.touched && !m.proven)
        for (uint32_t n = 0; n < NODES; n++)
            TT_ASSERT(answerer.in[n] == NULL);
    if (!m.touched)
        TT_ASSERT(in != NULL && out->state == TTI_NET_OPEN &&
                  memcmp(&in->cipher, &out->cipher, sizeof in->cipher) == 0);
    forget_all();
    return 0;
}
