// Connections to others: see net.h. A message is written from where it lies when it is long and
// nothing waits before it; else it is gathered, and written with others at the next flush.
#include "net.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SPANS_MAX = 9, DIRECT_BYTES = 16 << 10, GATHERED_MAX = 256 << 10 };
// Pauses between attempts double up to 1.28 s. Who was reached before is dialled hastily at first,
// for what is sent into a cut cable the system sends again after one second, three, seven: in
// attempts of little more than it took, and with pauses up to 80 ms.
enum { FAILURES_MAX = 7, HASTY_FAILURES = 3, HASTY_ATTEMPTS = 16 };

#define FIRST_PAUSE_NS UINT64_C(10000000)
#define HASTE_NS       UINT64_C(150000000)
// More is not kept for a peer, and newer messages are dropped.
#define WAITING_MAX ((size_t)512 << 20)

static void
forget(tti_net_out *out)
{
    if (out->fd >= 0)
        (void)close(out->fd);
    out->fd = -1;
    out->state = TTI_NET_CLOSED;
    out->is_blocked = out->is_dirty = 0;
    out->text.begin = out->text.end = out->wire.begin = out->wire.end = 0;
    tti_handshake_forget(&out->handshake);
    tti_cipher_forget(&out->cipher);
}

void
tti_net_out_close(tti_net_out *out)
{
    forget(out);
    tti_bytes_free(&out->text);
    tti_bytes_free(&out->wire);
}

static int
is_hasty(const tti_net_out *out)
{
    return out->took_ns > 0 && out->failures < HASTY_ATTEMPTS;
}

static uint64_t
pause_ns(const tti_net_out *out)
{
    uint32_t most = is_hasty(out) ? HASTY_FAILURES : FAILURES_MAX;
    return FIRST_PAUSE_NS << TT_MIN(out->failures, most);
}

static uint64_t
patience_ns(const tti_net_out *out)
{
    return is_hasty(out) ? TT_MIN(HASTE_NS + 4 * out->took_ns, TTI_NET_GREETING_NS)
                         : TTI_NET_GREETING_NS;
}

// What waited is lost; whoever sent it sends it again.
static void
fail(tti_net *net, tti_net_out *out)
{
    if (out->state == TTI_NET_OPEN)
        tti_net_count(&net->net_counters.broken, 1);
    else
        net->unsettled--;
    forget(out);
    out->next_ns = tt_clock_monotonic_ns() + pause_ns(out);
    out->failures = TT_MIN(out->failures + 1, (uint32_t)HASTY_ATTEMPTS);
}

void
tti_net_out_drop(tti_net *net, uint32_t to)
{
    tti_net_out *out = &net->out[to];
    if (out->state == TTI_NET_CONNECTING || out->state == TTI_NET_GREETING)
        net->unsettled--;
    forget(out);
    out->next_ns = 0;
    out->failures = 0;
}

// ---- connecting --------------------------------------------------------------------------------

static void
greet(tti_net *net, tti_net_out *out, uint32_t to)
{
    int fault = 0;
    socklen_t length = sizeof fault;
    const tti_introduction who = {net->options.job, net->options.mesh, net->options.node, to};
    tti_handshake_call(&out->handshake, &net->options.key, who, tti_net_flags(net));
    const tti_hello *hello = &out->handshake.mine;
    if (getsockopt(out->fd, SOL_SOCKET, SO_ERROR, &fault, &length) != 0 || fault != 0 ||
        send(out->fd, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello ||
        tti_net_watch(net, EPOLL_CTL_MOD, out->fd, EPOLLIN, TTI_NET_OUT, to) != TT_OK) {
        fail(net, out);
        return;
    }
    uint64_t now_ns = tt_clock_monotonic_ns();
    out->took_ns = TT_MAX(now_ns - out->dialled_ns, UINT64_C(1));
    out->deadline_ns = now_ns + TTI_NET_GREETING_NS; // the system connects, a busy process answers
    out->state = TTI_NET_GREETING;
    out->theirs_count = 0;
}

static void
dial(tti_net *net, tti_net_out *out, uint32_t to)
{
    struct sockaddr_storage where;
    const tt_net_address *address = &net->address[to];
    uint64_t now_ns = tt_clock_monotonic_ns();
    if (address->family == 0 || now_ns < out->next_ns)
        return;
    socklen_t length = tti_net_socket_address(address, &where);
    out->fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    out->state = TTI_NET_CONNECTING;
    out->dialled_ns = now_ns;
    out->deadline_ns = now_ns + patience_ns(out);
    net->unsettled++;
    if (out->fd >= 0)
        tti_net_tune(net, out->fd);
    if (out->fd < 0 ||
        (connect(out->fd, (struct sockaddr *)&where, length) != 0 && errno != EINPROGRESS) ||
        tti_net_watch(net, EPOLL_CTL_ADD, out->fd, EPOLLOUT, TTI_NET_OUT, to) != TT_OK)
        fail(net, out);
}

// The answer to the greeting.
static void
be_greeted(tti_net *net, tti_net_out *out, uint32_t to)
{
    uint8_t confirmation[TTI_CONFIRM_BYTES];
    ssize_t got = recv(out->fd, (uint8_t *)&out->theirs + out->theirs_count,
                       sizeof out->theirs - out->theirs_count, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    out->theirs_count += got > 0 ? (uint32_t)got : 0;
    if (got > 0 && out->theirs_count < sizeof out->theirs)
        return;
    if (got <= 0 ||
        tti_handshake_confirm(&out->handshake, &net->options.key, &out->theirs, confirmation,
                              &out->cipher) != TT_OK ||
        send(out->fd, confirmation, sizeof confirmation, MSG_NOSIGNAL) !=
            (ssize_t)sizeof confirmation) {
        fail(net, out);
        return;
    }
    tti_handshake_forget(&out->handshake);
    out->state = TTI_NET_OPEN;
    out->failures = 0;
    net->unsettled--;
    tti_net_count(&net->net_counters.opened, 1);
    tti_net_out_flush(net, to);
}

// ---- sending -----------------------------------------------------------------------------------

static tti_byte_queue *
bytes_to_write(tti_net_out *out)
{
    return out->cipher.kind == TTI_CIPHER_NONE ? &out->text : &out->wire;
}

int
tti_net_out_is_empty(const tti_net_out *out)
{
    return tti_bytes_waiting(&out->text) == 0 && tti_bytes_waiting(&out->wire) == 0;
}

static void
set_blocked(tti_net *net, tti_net_out *out, uint32_t to, int is_blocked)
{
    if (out->is_blocked == is_blocked)
        return;
    out->is_blocked = is_blocked;
    uint32_t events = EPOLLIN | EPOLLRDHUP | (is_blocked ? (uint32_t)EPOLLOUT : 0);
    if (tti_net_watch(net, EPOLL_CTL_MOD, out->fd, events, TTI_NET_OUT, to) != TT_OK)
        fail(net, out);
}

// Writes as much of the pieces as the socket takes; -1: the connection is broken.
static ssize_t
write_pieces(tti_net *net, tti_net_out *out, uint32_t to, struct iovec *pieces, uint32_t count)
{
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
    ssize_t sent;
    do
        sent = sendmsg(out->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) {
        fail(net, out);
        return -1;
    }
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += pieces[i].iov_len;
    tti_net_count(&net->counters.chunks, 1);
    sent = TT_MAX(sent, 0);
    set_blocked(net, out, to, (size_t)sent < total);
    return out->state == TTI_NET_OPEN ? sent : -1;
}

static tt_status
seal_text(tti_net_out *out)
{
    if (out->cipher.kind == TTI_CIPHER_NONE)
        return TT_OK;
    while (tti_bytes_waiting(&out->text) > 0) {
        uint32_t size =
            (uint32_t)TT_MIN(tti_bytes_waiting(&out->text), (size_t)TTI_RECORD_TEXT_MAX);
        TT_TRY(tti_bytes_reserve(&out->wire, size + TTI_RECORD_EXTRA));
        tti_record_seal(&out->cipher, out->wire.bytes + out->wire.end,
                        out->text.bytes + out->text.begin, size);
        out->wire.end += size + TTI_RECORD_EXTRA;
        out->text.begin += size;
    }
    return TT_OK;
}

void
tti_net_out_flush(tti_net *net, uint32_t to)
{
    tti_net_out *out = &net->out[to];
    if (out->state == TTI_NET_CLOSED && tti_bytes_waiting(&out->text) > 0)
        dial(net, out, to);
    if (out->state != TTI_NET_OPEN)
        return;
    out->is_dirty = 0;
    if (seal_text(out) != TT_OK) {
        fail(net, out); // without memory what waits is lost
        return;
    }
    tti_byte_queue *bytes = bytes_to_write(out);
    if (tti_bytes_waiting(bytes) == 0 || out->is_blocked)
        return;
    struct iovec piece = {bytes->bytes + bytes->begin, tti_bytes_waiting(bytes)};
    ssize_t sent = write_pieces(net, out, to, &piece, 1);
    bytes->begin += sent > 0 ? (size_t)sent : 0;
}

// Behind what waits, from byte `skip` of the message on. errors TT_NOMEM
static tt_status
gather(tti_net_out *out, const tt_span *spans, uint32_t span_count, size_t total, size_t skip)
{
    static const uint8_t zeros[16] = {0};
    size_t at = 0;
    TT_TRY(tti_bytes_reserve(&out->text, tti_net_padded(total)));
    for (uint32_t i = 0; i <= span_count; i++) {
        tt_span span = i < span_count ? spans[i] : (tt_span){zeros, tti_net_padded(total) - total};
        size_t done = skip > at ? TT_MIN(skip - at, span.size) : 0;
        if (span.size > done)
            TT_TRY(
                tti_bytes_append(&out->text, (const uint8_t *)span.bytes + done, span.size - done));
        at += span.size;
    }
    return TT_OK;
}

// What waits and the message, from where they lie; returns how much of the message was taken, -1
// when the connection broke.
static ssize_t
write_directly(tti_net *net,
               tti_net_out *out,
               uint32_t to,
               const tt_span *spans,
               uint32_t span_count,
               size_t total)
{
    static const uint8_t zeros[16] = {0};
    struct iovec pieces[SPANS_MAX + 2];
    uint32_t count = 0;
    size_t waiting = tti_bytes_waiting(&out->text);
    if (waiting > 0)
        pieces[count++] = (struct iovec){out->text.bytes + out->text.begin, waiting};
    for (uint32_t i = 0; i < span_count; i++)
        if (spans[i].size > 0)
            pieces[count++] = (struct iovec){(void *)(uintptr_t)spans[i].bytes, spans[i].size};
    if (tti_net_padded(total) > total)
        pieces[count++] = (struct iovec){(void *)(uintptr_t)zeros, tti_net_padded(total) - total};
    ssize_t sent = write_pieces(net, out, to, pieces, count);
    if (sent < 0)
        return -1;
    size_t of_waiting = TT_MIN((size_t)sent, waiting);
    out->text.begin += of_waiting;
    return sent - (ssize_t)of_waiting;
}

void
tti_net_out_send(tti_net *net, uint32_t to, const tt_span *spans, uint32_t span_count, size_t total)
{
    tti_net_out *out = &net->out[to];
    size_t skip = 0;
    TT_ASSERT(span_count <= SPANS_MAX);
    if (tti_bytes_waiting(&out->text) + tti_bytes_waiting(&out->wire) + total > WAITING_MAX ||
        (net->address[to].family == 0 && out->state == TTI_NET_CLOSED)) {
        tti_net_count(&net->net_counters.dropped, 1);
        return;
    }
    if (out->state == TTI_NET_OPEN && out->cipher.kind == TTI_CIPHER_NONE && !out->is_blocked &&
        total >= DIRECT_BYTES) {
        ssize_t sent = write_directly(net, out, to, spans, span_count, total);
        if (sent < 0 || (size_t)sent == tti_net_padded(total))
            return;
        skip = (size_t)sent;
    }
    out->is_dirty = 1;
    if (gather(out, spans, span_count, total, skip) != TT_OK) {
        tti_net_count(&net->net_counters.dropped, 1);
        if (out->state == TTI_NET_OPEN)
            fail(net, out); // half a message may be among what waits
        else
            out->text.begin = out->text.end = 0;
    } else if (tti_bytes_waiting(&out->text) > GATHERED_MAX)
        tti_net_out_flush(net, to);
}

// ---- events ------------------------------------------------------------------------------------

void
tti_net_out_event(tti_net *net, uint32_t to, uint32_t events)
{
    tti_net_out *out = &net->out[to];
    uint8_t byte;
    switch (out->state) {
    case TTI_NET_CLOSED:
        break;
    case TTI_NET_CONNECTING:
        greet(net, out, to);
        break;
    case TTI_NET_GREETING:
        be_greeted(net, out, to);
        break;
    case TTI_NET_OPEN:
        // Nothing comes over it but its end.
        if ((events & ~(uint32_t)EPOLLOUT) != 0 &&
            (recv(out->fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN))
            fail(net, out);
        else if ((events & EPOLLOUT) != 0) {
            set_blocked(net, out, to, 0);
            tti_net_out_flush(net, to);
        }
        break;
    }
}

void
tti_net_out_tick(tti_net *net, uint32_t to, uint64_t now_ns)
{
    tti_net_out *out = &net->out[to];
    if (out->state == TTI_NET_CONNECTING || out->state == TTI_NET_GREETING) {
        if (now_ns > out->deadline_ns)
            fail(net, out);
    } else if (out->state == TTI_NET_CLOSED && tti_bytes_waiting(&out->text) > 0)
        dial(net, out, to);
}
