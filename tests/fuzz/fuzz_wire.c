// Target: whatever a peer writes to his connection, plain or in records, in pieces of any size; a
// message that is handed on is whole, its own, and lies where it may be read as what it is.
//
// Input: a byte that chooses the cipher, then steps: a byte of what to do, a byte of size, bytes.
#include "fake_socket.h"
#include "fuzz.h"
#include "net.h"
#include <string.h>

enum { PEER = 1, NODES = 3, STEPS_MAX = 64 };

typedef enum step_kind {
    TEXT,     // bytes as they are (in a record, where there are records)
    RAW,      // beside all records
    TAMPERED, // a record of which one bit is another
    FRAME,    // a header in order, of a kind, with a payload's size and flags from the bytes
    STEP_KIND_COUNT
} step_kind;

static tti_net net;
static uint32_t sum;

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(self);
    TT_ASSERT(tt_frame_check(frame, sizeof *frame + frame->payload_bytes) == TT_OK);
    TT_ASSERT(frame->sender == PEER && (uintptr_t)payload % 16 == 0);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        sum += payload[i];
}

static void
open_all(void)
{
    static tti_net_in *in[NODES];
    if (net.in != NULL)
        return;
    tt_net_key key;
    tt_net_key_draw(&key); // prepares the ciphers
    net.options.node_count = NODES;
    net.in = in;
}

static void
connect_peer(tti_cipher_kind kind, tti_cipher *out)
{
    static const uint8_t key[32] = {23, 85};
    tti_net_in *in = tt_mem_zalloc_vector(1, sizeof *in);
    TT_ASSERT(in != NULL);
    tti_cipher_open(out, kind, key);
    in->cipher = *out;
    in->state = TTI_NET_OPEN;
    in->peer = PEER;
    in->fd = FAKE_SOCKET;
    net.in[PEER] = in;
}

static void
put_text(tti_cipher *cipher, const uint8_t *text, uint32_t size, int tampers)
{
    uint8_t record[512 + TTI_RECORD_EXTRA];
    if (cipher->kind == TTI_CIPHER_NONE || size == 0) {
        fake_socket_put(FAKE_SOCKET, text, size);
        return;
    }
    tti_record_seal(cipher, record, text, size);
    record[text[0] % (size + TTI_RECORD_EXTRA)] ^= (uint8_t)(tampers << text[0] % 8);
    fake_socket_put(FAKE_SOCKET, record, size + TTI_RECORD_EXTRA);
}

static void
put_frame(tti_cipher *cipher, const uint8_t *bytes, uint32_t size)
{
    tt_frame frame = {.magic = TT_FRAME_MAGIC,
                      .version = TT_FRAME_VERSION,
                      .kind = size > 0 ? bytes[0] : TT_FRAME_PULL,
                      .sender = PEER};
    memcpy(&frame.payload_bytes, bytes + 1, size > 1 ? TT_MIN(size - 1, 4u) : 0);
    if (size > 5)
        frame.flags = (uint16_t)(bytes[5] << 8); // TT_FRAME_PACKED among them
    put_text(cipher, (const uint8_t *)&frame, sizeof frame, 0);
}

static void
take_step(tti_cipher *cipher, uint8_t what, const uint8_t *bytes, uint32_t size)
{
    switch ((step_kind)(what % STEP_KIND_COUNT)) {
    case TEXT:
    case TAMPERED:
        put_text(cipher, bytes, size, what % STEP_KIND_COUNT == TAMPERED);
        break;
    case RAW:
        fake_socket_put(FAKE_SOCKET, bytes, size);
        break;
    case FRAME:
        put_frame(cipher, bytes, size);
        break;
    case STEP_KIND_COUNT:
        break;
    }
    (void)tti_net_in_read(&net, PEER, 1 + what / STEP_KIND_COUNT % 8, on_frame, NULL);
}

static void
disconnect(void)
{
    tti_net_in_close(net.in[PEER]);
    net.in[PEER] = NULL;
    net.backlog = 0;
    fake_socket_reset();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tti_cipher_kind kinds[] = {TTI_CIPHER_NONE, TTI_CIPHER_CHACHA, TTI_CIPHER_AES};
    tti_cipher cipher;
    open_all();
    sum += tt_frame_check(data, size) == TT_OK;
    if (size < 1)
        return 0;
    tti_cipher_kind kind = kinds[data[0] % TT_COUNT_OF(kinds)];
    if (kind == TTI_CIPHER_AES && !tti_cipher_has_aes())
        kind = TTI_CIPHER_CHACHA;
    connect_peer(kind, &cipher);
    size_t at = 1;
    for (int steps = 0; at + 2 <= size && steps < STEPS_MAX && net.in[PEER] != NULL; steps++) {
        uint32_t count = (uint32_t)TT_MIN((size_t)data[at + 1], size - at - 2);
        take_step(&cipher, data[at], data + at + 2, count);
        at += 2 + count;
    }
    disconnect();
    return 0;
}
