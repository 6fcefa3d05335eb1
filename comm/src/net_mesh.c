// The end of a mesh that reaches other hosts: see net.h.
#include "net.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SPANS_MAX = 8, EVENTS_MAX = 64 };

#define TICK_NS    UINT64_C(5000000)
#define GOODBYE_NS UINT64_C(200000000)

void
tti_net_count(uint64_t *counter, uint64_t amount)
{
    tt_store_relaxed(counter, *counter + amount); // one writer
}

int
tti_net_flags(const tti_net *net)
{
    return (net->options.is_open ? 0 : TTI_HELLO_SEALED) |
           (tti_cipher_has_aes() ? TTI_HELLO_AES : 0);
}

tt_status
tti_net_watch(tti_net *net, int action, int fd, uint32_t events, tti_net_kind kind, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)kind << 32 | index};
    return epoll_ctl(net->ready, action, fd, &event) == 0 ? TT_OK : TT_IO;
}

// A socket that cannot be tuned works all the same.
void
tti_net_tune(const tti_net *net, int fd)
{
    const int on = 1;
    const unsigned timeout_ms = (unsigned)TT_MAX(net->options.timeout_ns / 1000000, UINT64_C(1));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

// ---- sending -----------------------------------------------------------------------------------

static void
send_frame(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    tti_net *net = self;
    TT_ASSERT(to < net->options.node_count && span_count < SPANS_MAX);
    if (net->is_here[to]) {
        net->ring_outbox.send(net->ring_outbox.self, to, frame, spans, span_count);
        return;
    }
    tt_span packed, all[SPANS_MAX];
    tt_frame packed_frame;
    if (net->packs && tt_packer_pack(&net->packer, spans, span_count, &packed)) {
        packed_frame = *frame;
        packed_frame.flags |= TT_FRAME_PACKED;
        frame = &packed_frame;
        spans = &packed;
        span_count = 1;
    }
    all[0] = (tt_span){frame, sizeof *frame};
    for (uint32_t i = 0; i < span_count; i++)
        all[i + 1] = spans[i];
    const size_t total = tt_frame_complete(frame, net->options.node, spans, span_count);
    tti_net_count(&net->counters.frames, 1);
    tti_net_count(&net->counters.bytes, total);
    tti_net_out_send(net, to, all, span_count + 1, total);
}

static tt_outbox
outbox(tt_mesh *self, uint32_t node)
{
    tti_net *net = (tti_net *)self;
    TT_ASSERT(node == net->options.node);
    return (tt_outbox){net, send_frame, net->ring_outbox.pool, net->is_here};
}

static void
flush(tt_mesh *self, uint32_t node)
{
    tti_net *net = (tti_net *)self;
    tt_mesh_flush(net->options.rings, node);
    for (uint32_t to = 0; to < net->options.node_count; to++)
        if (net->out[to].is_dirty)
            tti_net_out_flush(net, to);
}

// ---- receiving ---------------------------------------------------------------------------------

static void
tick(tti_net *net)
{
    uint64_t now_ns = tt_clock_monotonic_ns();
    if (now_ns - net->tick_ns < TICK_NS)
        return;
    net->tick_ns = now_ns;
    for (uint32_t to = 0; to < net->options.node_count; to++)
        tti_net_out_tick(net, to, now_ns);
    if (net->unsettled > 0)
        tti_net_in_tick(net, now_ns);
}

static uint32_t
take_backlog(tti_net *net, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    uint32_t handled = 0;
    for (uint32_t n = 0; net->backlog > 0 && n < net->options.node_count && handled < limit; n++)
        if (net->in[n] != NULL && net->in[n]->has_more)
            handled += tti_net_in_read(net, n, limit - handled, handle, handler);
    return handled;
}

static uint32_t
take_events(tti_net *net, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    struct epoll_event events[EVENTS_MAX];
    uint32_t handled = 0;
    int count = epoll_wait(net->ready, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        uint32_t index = (uint32_t)events[i].data.u64;
        switch ((tti_net_kind)(events[i].data.u64 >> 32)) {
        case TTI_NET_LISTENER:
            tti_net_in_accept(net);
            break;
        case TTI_NET_PENDING:
            tti_net_in_greet(net, index);
            break;
        case TTI_NET_IN:
            if (handled < limit) // else it is told again
                handled += tti_net_in_read(net, index, limit - handled, handle, handler);
            break;
        case TTI_NET_OUT:
            tti_net_out_event(net, index, events[i].events);
            break;
        }
    }
    return handled;
}

static uint32_t
receive(tt_mesh *self, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    tti_net *net = (tti_net *)self;
    TT_ASSERT(node == net->options.node);
    // First, because it looks at the bell: what the watcher rings for later ends the next wait.
    uint32_t handled = tt_mesh_receive(net->options.rings, node, limit, handle, handler);
    if (handled < limit)
        handled += take_backlog(net, limit - handled, handle, handler);
    // However many messages wait: who greets has a deadline. And before deadlines are looked at:
    // where this end was busy, what they ask for may have come.
    handled += take_events(net, limit - handled, handle, handler);
    tick(net);
    return handled;
}

// ---- waiting -----------------------------------------------------------------------------------

// A thread of its own: rings the end's bell when something can be read or written, once each time
// that it was armed.
static void *
watch(void *self)
{
    tti_net *net = self;
    for (;;) {
        struct epoll_event events[2];
        int count = epoll_wait(net->asleep, events, 2, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == net->stop)
                return NULL;
        if (count > 0)
            tt_mesh_wake(net->options.rings, net->options.node);
    }
}

static void
wait_node(tt_mesh *self, uint32_t node, uint64_t timeout_ns)
{
    tti_net *net = (tti_net *)self;
    flush(self, node);
    if (net->backlog > 0)
        return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = net->ready};
    int is_armed = epoll_ctl(net->asleep, EPOLL_CTL_MOD, net->ready, &event) == 0;
    if (net->unsettled > 0 || !is_armed)
        timeout_ns = TT_MIN(timeout_ns, TICK_NS);
    tt_mesh_wait(net->options.rings, node, timeout_ns);
}

static void
wake(tt_mesh *self, uint32_t node)
{
    tti_net *net = (tti_net *)self;
    if (net->is_here[node])
        tt_mesh_wake(net->options.rings, node);
}

static void
drop(tt_mesh *self, uint32_t node, uint32_t peer)
{
    tti_net *net = (tti_net *)self;
    TT_ASSERT(node == net->options.node && peer < net->options.node_count);
    if (!net->is_here[peer])
        tti_net_out_drop(net, peer);
}

// ---- settings and counters ---------------------------------------------------------------------

static void
set_chunk(tt_mesh *self, uint32_t node, uint32_t chunk_bytes)
{
    tt_mesh_set_chunk(((tti_net *)self)->options.rings, node, chunk_bytes);
}

static void
set_spin(tt_mesh *self, uint32_t node, uint32_t spin)
{
    tt_mesh_set_spin(((tti_net *)self)->options.rings, node, spin);
}

static void
set_packing(tt_mesh *self, uint32_t node, uint32_t is_on)
{
    tti_net *net = (tti_net *)self;
    TT_ASSERT(node == net->options.node);
    net->packs = is_on != 0;
}

static void
read_counters(const tt_mesh *self, uint32_t node, tt_mesh_counters *out)
{
    const tti_net *net = (const tti_net *)self;
    tt_mesh_counters_read(net->options.rings, node, out);
    out->frames += tt_load_relaxed(&net->counters.frames);
    out->bytes += tt_load_relaxed(&net->counters.bytes);
    out->chunks += tt_load_relaxed(&net->counters.chunks);
    out->refused = tt_load_relaxed(&net->net_counters.refused) +
                   tt_load_relaxed(&net->net_counters.damaged);
}

void
tt_net_mesh_counters(const tt_mesh *mesh, tt_net_counters *out)
{
    const tt_net_counters *counters = &((const tti_net *)mesh)->net_counters;
    *out = (tt_net_counters){.opened = tt_load_relaxed(&counters->opened),
                             .broken = tt_load_relaxed(&counters->broken),
                             .accepted = tt_load_relaxed(&counters->accepted),
                             .refused = tt_load_relaxed(&counters->refused),
                             .damaged = tt_load_relaxed(&counters->damaged),
                             .dropped = tt_load_relaxed(&counters->dropped),
                             .received_frames = tt_load_relaxed(&counters->received_frames),
                             .received_bytes = tt_load_relaxed(&counters->received_bytes)};
}

void
tt_net_mesh_set_address(tt_mesh *mesh, uint32_t node, const tt_net_address *address)
{
    tti_net *net = (tti_net *)mesh;
    TT_ASSERT(node < net->options.node_count);
    net->address[node] = *address;
}

// ---- opening and closing -----------------------------------------------------------------------

static void
close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

// What was sent last is with the system, if it takes it soon.
static void
say_goodbye(tti_net *net)
{
    uint64_t begin_ns = tt_clock_monotonic_ns();
    for (uint32_t to = 0; to < net->options.node_count; to++) {
        tti_net_out *out = &net->out[to];
        tti_net_out_flush(net, to);
        while (out->state == TTI_NET_OPEN && !tti_net_out_is_empty(out) &&
               tt_clock_monotonic_ns() - begin_ns < GOODBYE_NS) {
            struct pollfd room = {.fd = out->fd, .events = POLLOUT};
            (void)poll(&room, 1, 10);
            tti_net_out_event(net, to, EPOLLOUT);
        }
    }
}

static void
close_mesh(tt_mesh *self)
{
    tti_net *net = (tti_net *)self;
    if (net->watcher.running) {
        say_goodbye(net);
        (void)eventfd_write(net->stop, 1);
        tt_thread_join(&net->watcher);
    }
    for (uint32_t n = 0; n < net->options.node_count; n++) {
        if (net->out != NULL)
            tti_net_out_close(&net->out[n]);
        if (net->in != NULL)
            tti_net_in_close(net->in[n]);
    }
    for (uint32_t i = 0; i < TTI_NET_PENDING_MAX; i++)
        tti_net_in_close(net->pending[i]);
    close_fd(net->ready);
    close_fd(net->asleep);
    close_fd(net->stop);
    close_fd(net->options.listener);
    tt_packer_free(&net->packer);
    tt_packer_free(&net->unpacker);
    tt_mem_free(net->out);
    tt_mem_free(net->in);
    tt_mem_free(net->address);
    tt_mem_free(net->is_here);
    tt_mesh_close(net->options.rings);
    tt_net_key_forget(&net->options.key);
    tt_mem_free(net);
}

static tt_status
open_tables(tti_net *net, const tt_net_options *options)
{
    uint32_t count = options->node_count;
    net->out = tt_mem_zalloc_vector(count, sizeof *net->out);
    net->in = tt_mem_zalloc(count, sizeof(tti_net_in *));
    net->address = tt_mem_zalloc(count, sizeof *net->address);
    net->is_here = tt_mem_zalloc(count, sizeof *net->is_here);
    if (net->out == NULL || net->in == NULL || net->address == NULL || net->is_here == NULL)
        return TT_NOMEM;
    for (uint32_t n = 0; n < count; n++) {
        net->out[n].fd = -1;
        net->address[n] = options->address[n];
        net->is_here[n] = options->is_here[n];
    }
    net->options.is_here = NULL;
    net->options.address = NULL;
    return TT_OK;
}

static tt_status
open_sockets(tti_net *net)
{
    net->ready = epoll_create1(EPOLL_CLOEXEC);
    net->asleep = epoll_create1(EPOLL_CLOEXEC);
    net->stop = eventfd(0, EFD_CLOEXEC);
    struct epoll_event stop = {.events = EPOLLIN, .data.fd = net->stop},
                       ready = {.events = 0, .data.fd = net->ready};
    if (net->ready < 0 || net->asleep < 0 || net->stop < 0 ||
        epoll_ctl(net->asleep, EPOLL_CTL_ADD, net->stop, &stop) != 0 ||
        epoll_ctl(net->asleep, EPOLL_CTL_ADD, net->ready, &ready) != 0)
        return TT_IO;
    if (net->options.listener < 0)
        return TT_OK;
    return tti_net_watch(net, EPOLL_CTL_ADD, net->options.listener, EPOLLIN, TTI_NET_LISTENER, 0);
}

tt_status
tt_net_mesh_open(const tt_net_options *options, tt_mesh **out, tt_error *err)
{
    static const tt_mesh_verbs verbs = {.set_chunk = set_chunk,
                                        .set_packing = set_packing,
                                        .set_spin = set_spin,
                                        .outbox = outbox,
                                        .flush = flush,
                                        .receive = receive,
                                        .wait = wait_node,
                                        .wake = wake,
                                        .drop = drop,
                                        .read_counters = read_counters,
                                        .close = close_mesh};
    *out = NULL;
    TT_ASSERT(options->node < options->node_count && options->is_here[options->node]);
    tti_net *net = tt_mem_zalloc_vector(1, sizeof *net);
    if (net == NULL || sodium_init() < 0) {
        tt_mem_free(net);
        tt_mesh_close(options->rings);
        close_fd(options->listener);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for connections");
    }
    net->mesh.verbs = &verbs;
    net->options = *options;
    net->ready = net->asleep = net->stop = -1;
    net->ring_outbox = tt_mesh_outbox(options->rings, options->node);
    tt_status status = open_tables(net, options);
    if (status == TT_OK)
        status = open_sockets(net);
    int fault = errno;
    if (status == TT_OK)
        status = tt_thread_start(&net->watcher, "trimtab-net", watch, net, err);
    else
        (void)tt_error_set(err, status, NULL, "raise the limit of open files (ulimit -n)",
                           "cannot open connections: %s", tt_errno_text(fault));
    if (status != TT_OK)
        close_mesh(&net->mesh);
    else
        *out = &net->mesh;
    return status;
}
