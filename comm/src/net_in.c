// Connections of others: see net.h. Nothing is known of who connects, and nothing but a greeting is
// kept of him, until he has shown that he has the job's key.
#include "net.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 128 << 10, READS_MAX = 16 };
// Bytes of a long message that are waited for at a time, and the least rest that is worth it.
enum { LOW_BYTES = 512 << 10, LOW_LEAST = 128 << 10 };

void
tti_net_in_close(tti_net_in *in)
{
    if (in == NULL)
        return;
    if (in->fd >= 0)
        (void)close(in->fd);
    tti_handshake_forget(&in->handshake);
    tti_cipher_forget(&in->cipher);
    tti_bytes_free(&in->records);
    tti_bytes_free(&in->text);
    tt_mem_free(in);
}

// ---- strangers ---------------------------------------------------------------------------------

static void
refuse(tti_net *net, uint32_t slot)
{
    tti_net_count(&net->net_counters.refused, 1);
    tti_net_in_close(net->pending[slot]);
    net->pending[slot] = NULL;
    net->unsettled--;
}

// One that is free, or else of who has been silent longest.
static uint32_t
slot_for_one_more(tti_net *net)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < TTI_NET_PENDING_MAX; i++) {
        if (net->pending[i] == NULL)
            return i;
        if (net->pending[i]->deadline_ns < net->pending[oldest]->deadline_ns)
            oldest = i;
    }
    refuse(net, oldest);
    return oldest;
}

void
tti_net_in_accept(tti_net *net)
{
    for (uint32_t taken = 0; taken < TTI_NET_PENDING_MAX; taken++) {
        int fd = accept4(net->options.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        uint32_t slot = slot_for_one_more(net);
        tti_net_in *in = tt_mem_zalloc_vector(1, sizeof *in);
        if (in == NULL ||
            tti_net_watch(net, EPOLL_CTL_ADD, fd, EPOLLIN, TTI_NET_PENDING, slot) != TT_OK) {
            (void)close(fd);
            tt_mem_free(in);
            return;
        }
        tti_net_tune(net, fd);
        in->fd = fd;
        in->state = TTI_NET_GREETING;
        in->deadline_ns = tt_clock_monotonic_ns() + TTI_NET_GREETING_NS;
        net->pending[slot] = in;
        net->unsettled++;
    }
}

static int
answer(tti_net *net, tti_net_in *in)
{
    const tti_introduction who = {net->options.job, net->options.mesh, 0, net->options.node};
    tti_hello theirs;
    memcpy(&theirs, in->greeting, sizeof theirs);
    if (tti_handshake_answer(&in->handshake, &net->options.key, who, net->options.node_count,
                             tti_net_flags(net), &theirs) != TT_OK ||
        net->is_here[theirs.from])
        return 0;
    const tti_hello *mine = &in->handshake.mine;
    in->peer = theirs.from;
    in->has_answered = 1;
    in->greeting_count = 0;
    // He may wait as long for this, and is not to speak to who has given him up by then.
    in->deadline_ns = tt_clock_monotonic_ns() + TTI_NET_GREETING_NS;
    return send(in->fd, mine, sizeof *mine, MSG_NOSIGNAL) == (ssize_t)sizeof *mine;
}

// A peer that connects anew is another process, or has lost the connection he had.
static void
admit(tti_net *net, uint32_t slot)
{
    tti_net_in *in = net->pending[slot], *before = net->in[in->peer];
    if (tti_handshake_check(&in->handshake, in->greeting, &in->cipher) != TT_OK ||
        tti_net_watch(net, EPOLL_CTL_MOD, in->fd, EPOLLIN, TTI_NET_IN, in->peer) != TT_OK) {
        refuse(net, slot);
        return;
    }
    net->backlog -= before != NULL && before->has_more;
    tti_net_in_close(before);
    tti_handshake_forget(&in->handshake);
    in->state = TTI_NET_OPEN;
    net->in[in->peer] = in;
    net->pending[slot] = NULL;
    net->unsettled--;
    tti_net_count(&net->net_counters.accepted, 1);
}

void
tti_net_in_greet(tti_net *net, uint32_t slot)
{
    tti_net_in *in = net->pending[slot];
    if (in == NULL)
        return;
    uint32_t wanted = in->has_answered ? TTI_CONFIRM_BYTES : (uint32_t)sizeof in->greeting;
    ssize_t got = recv(in->fd, in->greeting + in->greeting_count, wanted - in->greeting_count, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    in->greeting_count += got > 0 ? (uint32_t)got : 0;
    if (got <= 0)
        refuse(net, slot);
    else if (in->greeting_count < wanted)
        return;
    else if (in->has_answered)
        admit(net, slot);
    else if (!answer(net, in))
        refuse(net, slot);
}

void
tti_net_in_tick(tti_net *net, uint64_t now_ns)
{
    for (uint32_t i = 0; i < TTI_NET_PENDING_MAX; i++)
        if (net->pending[i] != NULL && now_ns > net->pending[i]->deadline_ns)
            refuse(net, i);
}

// ---- peers -------------------------------------------------------------------------------------

static void
cut(tti_net *net, uint32_t peer, int is_damaged)
{
    tti_net_in *in = net->in[peer];
    tti_net_count(&net->net_counters.damaged, is_damaged != 0);
    net->backlog -= in->has_more != 0;
    net->in[peer] = NULL;
    tti_net_in_close(in);
}

// Bytes of the message at the front, as far as that is known; 0: nonsense.
static size_t
message_bytes(const tti_byte_queue *text)
{
    tt_frame frame;
    if (tti_bytes_waiting(text) < sizeof frame)
        return sizeof frame;
    memcpy(&frame, text->bytes + text->begin, sizeof frame);
    size_t size = sizeof frame + frame.payload_bytes;
    return tt_frame_check(&frame, size) == TT_OK ? tti_net_padded(size) : 0;
}

// What has come, decrypted, as messages. errors TT_CORRUPT; TT_NOMEM
static tt_status
read_records(tti_net_in *in)
{
    tti_byte_queue *records = &in->records;
    while (tti_bytes_waiting(records) >= TTI_RECORD_HEAD) {
        const uint8_t *record = records->bytes + records->begin;
        uint32_t size = tti_record_size(record);
        if (size == 0)
            return TT_CORRUPT;
        if (tti_bytes_waiting(records) < (size_t)size + TTI_RECORD_EXTRA)
            break;
        TT_TRY(tti_bytes_reserve(&in->text, size));
        TT_TRY(tti_record_read(&in->cipher, in->text.bytes + in->text.end, record, size));
        in->text.end += size;
        records->begin += (size_t)size + TTI_RECORD_EXTRA;
    }
    return TT_OK;
}

// Reads once: of a long message no more than its rest, so that it need not be moved, and no more
// than is here of it or was ever, so that a length that is only said costs nothing.
// 1: there is more to hand on; 0: nothing came; -1: the connection has ended; -2: nonsense came
static int
read_once(tti_net_in *in)
{
    int is_plain = in->cipher.kind == TTI_CIPHER_NONE;
    tti_byte_queue *to = is_plain ? &in->text : &in->records;
    size_t whole = message_bytes(&in->text), here = tti_bytes_waiting(&in->text);
    if (whole == 0)
        return -2;
    size_t rest = whole > here ? whole - here : 0;
    tti_bytes_pack(&in->text);
    size_t most = TT_MAX((size_t)READ_BYTES, TT_MAX(here, in->text.capacity - here));
    size_t room = is_plain && rest > READ_BYTES ? TT_MIN(rest, most) : (size_t)READ_BYTES;
    if (!is_plain)
        tti_bytes_pack(to);
    if (tti_bytes_reserve(to, room) != TT_OK)
        return -2;
    ssize_t got = recv(in->fd, to->bytes + to->end, room, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (got == 0)
        return -1;
    to->end += (size_t)got;
    return is_plain || read_records(in) == TT_OK ? 1 : -2;
}

// errors TT_CORRUPT; TT_NOMEM
static tt_status
hand_on_packed(tti_net *net, const tt_frame *packed, tt_mesh_handler *handle, void *self)
{
    tt_span payload;
    tt_frame frame = *packed;
    TT_TRY(tt_packer_unpack(&net->unpacker, (const uint8_t *)packed + sizeof *packed,
                            packed->payload_bytes, &payload));
    frame.flags = (uint16_t)(frame.flags & ~TT_FRAME_PACKED);
    frame.payload_bytes = (uint32_t)payload.size;
    handle(self, &frame, payload.bytes);
    return TT_OK;
}

// Hands on messages that are whole; -1: nonsense.
static int
hand_on(tti_net *net, tti_net_in *in, uint32_t limit, tt_mesh_handler *handle, void *self)
{
    int handled = 0;
    tti_byte_queue *text = &in->text;
    while ((uint32_t)handled < limit && tti_bytes_waiting(text) >= sizeof(tt_frame)) {
        size_t whole = message_bytes(text);
        if (whole == 0)
            return -1;
        if (tti_bytes_waiting(text) < whole)
            break;
        const uint8_t *message = text->bytes + text->begin;
        const tt_frame *frame = (const tt_frame *)(const void *)message;
        if (frame->sender != in->peer)
            return -1;
        tti_net_count(&net->net_counters.received_frames, 1);
        tti_net_count(&net->net_counters.received_bytes, whole);
        if ((frame->flags & TT_FRAME_PACKED) == 0)
            handle(self, frame, message + sizeof *frame);
        else if (hand_on_packed(net, frame, handle, self) != TT_OK)
            return -1;
        text->begin += whole;
        handled++;
    }
    return handled;
}

static void
set_more(tti_net *net, tti_net_in *in, int has_more)
{
    net->backlog += (uint32_t)has_more - (uint32_t)in->has_more;
    in->has_more = has_more;
}

// Of a message that has begun the rest will come: until a good part of it is there, or the
// connection ends, the socket keeps quiet. Each time that it wakes somebody is the sender's time:
// where both ends are on one host, a third of it (1 MiB messages: 5.3 instead of 4.5 GB/s). Never
// for more than is still to come, or nobody would be woken: part of the rest may be here already,
// as a record that is not whole.
static void
set_low(tti_net_in *in)
{
    const size_t whole = message_bytes(&in->text);
    const size_t here = tti_bytes_waiting(&in->text) + tti_bytes_waiting(&in->records);
    const size_t rest = whole > here ? whole - here : 0;
    const int low = rest < LOW_LEAST ? 0 : (int)TT_MIN(rest, (size_t)LOW_BYTES);
    if (low != in->low && setsockopt(in->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low) == 0)
        in->low = low;
}

uint32_t
tti_net_in_read(tti_net *net, uint32_t peer, uint32_t limit, tt_mesh_handler *handle, void *self)
{
    tti_net_in *in = net->in[peer];
    uint32_t handled = 0;
    int state = in != NULL;
    for (uint32_t reads = 0; state > 0; reads++) {
        int part = hand_on(net, in, limit - handled, handle, self);
        if (part < 0)
            state = -2;
        else
            handled += (uint32_t)part;
        if (handled >= limit || reads >= READS_MAX)
            break;
        if (state > 0)
            state = read_once(in);
    }
    if (state < 0)
        cut(net, peer, state == -2);
    else if (in != NULL) {
        set_more(net, in, handled >= limit && tti_bytes_waiting(&in->text) > 0);
        set_low(in);
    }
    return handled;
}
