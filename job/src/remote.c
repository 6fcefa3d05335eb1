// Engine ssh, the master's side: see remote.h.
#include "remote.h"
#include "runtime.h"
#include "training.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// How long a start may take to be heard of; before it is said again; and hosts to end.
#define UNHEARD_NS  UINT64_C(1000000000)
#define REPEAT_NS   UINT64_C(500000000)
#define FAREWELL_NS UINT64_C(3000000000)
// Of the failure timeout: how long the others wait for a host that is being launched anew.
static const double MOMENT = 0.1;

static void
send_to(const tti_remote *remote, uint32_t host, int kind, const tt_span *spans, uint32_t count)
{
    tt_frame frame = {.kind = (uint16_t)kind};
    tt_outbox outbox = tt_mesh_outbox(remote->hosts, remote->host_count);
    outbox.send(outbox.self, host, &frame, spans, count);
    tt_mesh_flush(remote->hosts, remote->host_count);
}

// ---- what hosts say ----------------------------------------------------------------------------

static void
hear_node(tti_remote *remote, const tti_host_node *said)
{
    tti_remote_node *node = &remote->node[said->node];
    const tti_remote_host *host = &remote->host[remote->host_of[said->node]];
    remote->address[said->node] = remote->control[said->node] = host->address;
    remote->address[said->node].port = said->port;
    remote->control[said->node].port = said->control_port;
    if (remote->takes_over) {
        node->asked = said->start;
        node->pid = said->pid;
        node->is_asked = said->pid != 0;
        return;
    }
    if (!node->is_asked)
        return;
    int is_lost =
        said->start < node->asked && tt_clock_monotonic_ns() - node->asked_ns > UNHEARD_NS;
    if (said->start != node->asked && !is_lost)
        return; // it has not heard of the last one yet
    if (!is_lost && said->pid > 0 && node->pid != said->pid) {
        node->pid = said->pid;
        node->has_begun = 1;
    }
    if (is_lost || said->pid == 0) {
        node->wait_status = is_lost ? TTI_NOT_BEGUN : said->wait_status;
        node->has_ended = 1;
        node->is_asked = 0;
    }
}

static void
hear_host(tti_remote *remote, uint32_t h, const uint8_t *payload, size_t size)
{
    tti_host_status status;
    tti_host_node node;
    if (size < sizeof status)
        return;
    memcpy(&status, payload, sizeof status);
    if (status.node_count > remote->node_count ||
        size != sizeof status + status.node_count * sizeof node)
        return;
    tt_net_mesh_set_address(remote->hosts, h, &status.address);
    remote->host[h].address = status.address;
    remote->host[h].heard_ns = tt_clock_monotonic_ns();
    remote->host[h].said = status;
    // Of whatever clock, which may be any number.
    remote->host[h].ahead_ns = (int64_t)((uint64_t)status.wall_ns - (uint64_t)tt_clock_wall_ns());
    int is_new = remote->host[h].presence == TTI_AWAY;
    remote->host[h].presence = status.data == remote->data ? TTI_HERE : TTI_OF_OTHER_DATA;
    for (uint64_t i = 0; i < status.node_count; i++) {
        memcpy(&node, payload + sizeof status + i * sizeof node, sizeof node);
        if (node.node < remote->node_count && remote->host_of[node.node] == h)
            hear_node(remote, &node);
    }
    if (is_new)
        tti_remote_keep(remote);
    send_to(remote, h, TT_FRAME_HOST_HEARD, NULL, 0);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_remote *remote = self;
    if (frame->kind == TT_FRAME_HOST_STATUS && frame->sender < remote->host_count)
        hear_host(remote, frame->sender, payload, frame->payload_bytes);
}

// Its nodes have ended with it, as far as the master can know.
static void
lose_host(tti_remote *remote, uint32_t h, const char *how)
{
    tti_remote_host *host = &remote->host[h];
    tt_log(TT_LOG_WARN, "host %s is lost: %s", host->name, how);
    host->presence = TTI_AWAY;
    host->losses =
        tt_clock_monotonic_ns() - host->launched_ns < UINT64_C(10000000000) ? host->losses + 1 : 1;
    host->next_ns = tt_clock_monotonic_ns() + (UINT64_C(100000000) << TT_MIN(host->losses, 8u));
    for (uint32_t n = 0; n < remote->node_count; n++) {
        tti_remote_node *node = &remote->node[n];
        if (remote->host_of[n] != h || !node->is_asked)
            continue;
        node->wait_status = TTI_HOST_LOST;
        node->has_ended = 1;
        node->is_asked = 0;
    }
}

static void
launch_anew(tti_remote *remote, uint32_t h)
{
    tti_remote_host *host = &remote->host[h];
    tt_error err = {0};
    if (tti_remote_launch(remote, h, &err) == TT_OK) {
        tti_remote_renew_legacy(remote);
        return;
    }
    tt_log(TT_LOG_WARN, "host %s is not launched anew: %s", host->name, err.what);
    tti_remote_abandon(host);
    host->next_ns = tt_clock_monotonic_ns() + UINT64_C(1000000000);
}

// Its remote shell may hang on a connection to a machine that is not there any more.
static int
is_given_up(const tti_remote *remote, uint32_t h)
{
    double limit_s = TT_MAX(10 * remote->job->spec.failure_timeout, 30.0);
    return 1e-9 * (double)(tt_clock_monotonic_ns() - remote->host[h].heard_ns) > limit_s;
}

// A host whose data differs stays out: its gradients would be of something else. One that is lost
// is launched again and again, for it may be away for long.
static void
look_after_hosts(tti_remote *remote)
{
    char how[120];
    while (tt_mesh_receive(remote->hosts, remote->host_count, 64, on_frame, remote) > 0)
        ;
    for (uint32_t h = 0; h < remote->host_count; h++) {
        tti_remote_host *host = &remote->host[h];
        if (tti_remote_has_ended(host, how, sizeof how))
            lose_host(remote, h, how);
        else if (host->presence == TTI_HERE && is_given_up(remote, h)) {
            tti_remote_abandon(host);
            lose_host(remote, h, "it has been silent for long");
        }
        if (host->shell == 0 && tt_clock_monotonic_ns() >= host->next_ns)
            launch_anew(remote, h);
    }
}

static void
say_kill(const tti_remote *remote, uint32_t n)
{
    const tt_span span = {&n, sizeof n};
    send_to(remote, remote->host_of[n], TT_FRAME_HOST_KILL, &span, 1);
}

// ---- verbs -------------------------------------------------------------------------------------

static int
tell(tti_remote *remote, tt_host_news *out)
{
    for (uint32_t n = 0; n < remote->node_count; n++) {
        tti_remote_node *node = &remote->node[n];
        if (node->has_begun) {
            node->has_begun = 0;
            *out = (tt_host_news){TT_HOST_STARTED, n, node->pid, 0};
            return 1;
        }
        if (node->has_ended) {
            node->has_ended = 0;
            *out = (tt_host_news){TT_HOST_ENDED, n, node->pid, node->wait_status};
            node->pid = 0;
            return 1;
        }
    }
    return 0;
}

static int
next(tti_starter *starter, tt_host_news *out)
{
    tti_remote *remote = starter->self;
    if (tell(remote, out))
        return 1;
    look_after_hosts(remote);
    for (uint32_t n = 0; n < remote->node_count; n++) {
        tti_remote_node *node = &remote->node[n];
        if (node->must_end && node->is_asked &&
            tt_clock_monotonic_ns() - node->killed_ns > REPEAT_NS) {
            node->killed_ns = tt_clock_monotonic_ns();
            say_kill(remote, n);
        }
    }
    return tell(remote, out);
}

static void
kill_node(tti_starter *starter, uint32_t n)
{
    tti_remote *remote = starter->self;
    tti_remote_node *node = &remote->node[n];
    node->must_end = 1;
    node->killed_ns = tt_clock_monotonic_ns();
    say_kill(remote, n);
}

// One that is silent may be cut off: what is sent there may come much later, or never.
static int
is_there(const tti_remote *remote, uint32_t h)
{
    uint64_t silent_ns = tt_clock_monotonic_ns() - remote->host[h].heard_ns;
    return remote->host[h].presence == TTI_HERE &&
           1e-9 * (double)silent_ns < 0.5 * remote->job->spec.failure_timeout;
}

// In the mesh of hosts, at this end and as the others have said.
static uint64_t
refused(const tti_starter *starter)
{
    const tti_remote *remote = starter->self;
    tt_mesh_counters counters;
    tt_mesh_counters_read(remote->hosts, remote->host_count, &counters);
    uint64_t all = counters.refused;
    for (uint32_t h = 0; h < remote->host_count; h++)
        all += remote->host[h].said.refused;
    return all;
}

static const char *
host_of(const tti_starter *starter, uint32_t n)
{
    const tti_remote *remote = starter->self;
    return remote->host[remote->host_of[n]].name;
}

static int
can_start(const tti_starter *starter, uint32_t n)
{
    const tti_remote *remote = starter->self;
    return is_there(remote, remote->host_of[n]);
}

static tt_status
start(tti_runtime *rt, uint32_t n, const uint8_t *begin, size_t size, tt_error *err)
{
    tti_remote *remote = rt->job->starter->self;
    tti_remote_node *node = &remote->node[n];
    uint32_t h = remote->host_of[n];
    if (!is_there(remote, h))
        return tt_error_set(err, TT_PEER, NULL, NULL, "host %s is not there", remote->host[h].name);
    *node = (tti_remote_node){
        .asked = ++remote->starts, .asked_ns = tt_clock_monotonic_ns(), .is_asked = 1};
    tti_remote_keep(remote);
    const tti_start_call call = {.number = node->asked,
                                 .node = n,
                                 .epoch = remote->epoch,
                                 .control = remote->control[rt->node_count]};
    const tt_span spans[] = {{&call, sizeof call},
                             {remote->address, (rt->node_count + 1) * sizeof *remote->address},
                             {begin, size}};
    send_to(remote, h, TT_FRAME_HOST_START, spans, 3);
    return TT_OK;
}

static tt_status
open_mesh(const tti_remote *remote,
          uint32_t mesh,
          const tt_net_address *address,
          int listener,
          uint64_t timeout_ns,
          tt_mesh **out,
          tt_error *err)
{
    uint32_t ends = remote->node_count + 1;
    uint8_t is_here[TT_PS_NODES_MAX + 1] = {0};
    is_here[remote->node_count] = 1;
    tt_net_options options = {.node_count = ends,
                              .node = remote->node_count,
                              .is_here = is_here,
                              .address = address,
                              .listener = dup(listener),
                              .job = remote->job_id,
                              .mesh = mesh,
                              .key = remote->key,
                              .is_open = remote->is_open,
                              .timeout_ns = timeout_ns};
    tt_status status = tt_mesh_open(ends, &options.rings, err);
    if (status == TT_OK)
        status = tt_net_mesh_open(&options, out, err);
    else
        (void)close(options.listener);
    tt_net_key_forget(&options.key);
    return status;
}

// A host that is being launched anew is worth a moment's wait, for it saves the others another
// change; one that does not answer may be off for hours. Too few hosts are worth a longer wait.
static void
settle(tti_starter *starter)
{
    tti_remote *remote = starter->self;
    uint64_t begin = tt_clock_monotonic_ns();
    double timeout_s = remote->job->spec.failure_timeout;
    for (double waited_s = 0; waited_s < 10 * timeout_s && !tti_interrupted;
         waited_s = 1e-9 * (double)(tt_clock_monotonic_ns() - begin)) {
        uint32_t nodes = 0, launching = 0;
        look_after_hosts(remote);
        for (uint32_t n = 0; n < remote->node_count; n++)
            nodes += (uint32_t)is_there(remote, remote->host_of[n]);
        for (uint32_t h = 0; h < remote->host_count; h++)
            launching += remote->host[h].presence == TTI_AWAY &&
                         remote->host[h].losses <= (uint32_t)remote->job->spec.restarts;
        if (nodes >= 2 && (launching == 0 || waited_s > MOMENT * timeout_s))
            return;
        tt_mesh_wait(remote->hosts, remote->host_count, 5000000);
    }
}

static tt_status
open_meshes(tti_runtime *rt, tt_error *err)
{
    tti_remote *remote = rt->job->starter->self;
    remote->epoch += !rt->inherits;
    tti_remote_keep(remote);
    double timeout_s = remote->job->spec.failure_timeout;
    TT_TRY(open_mesh(remote, tti_mesh_of_parameters(remote->epoch), remote->address,
                     remote->listener, (uint64_t)(1e9 * timeout_s), &rt->mesh, err));
    return open_mesh(remote, tti_mesh_of_control(remote->epoch), remote->control,
                     remote->control_listener, tti_control_timeout_ns(timeout_s),
                     &rt->membership.control, err);
}

static void
say_farewell(tti_remote *remote)
{
    uint64_t begin = tt_clock_monotonic_ns();
    uint32_t left = 1;
    char how[120];
    for (uint32_t h = 0; h < remote->host_count; h++)
        if (remote->host[h].presence != TTI_AWAY)
            send_to(remote, h, TT_FRAME_HOST_STOP, NULL, 0);
    for (uint32_t h = 0; h < remote->host_count; h++)
        if (remote->host[h].input >= 0) // it ends by this, too
            (void)shutdown(remote->host[h].input, SHUT_WR);
    while (left > 0 && tt_clock_monotonic_ns() - begin < FAREWELL_NS) {
        left = 0;
        for (uint32_t h = 0; h < remote->host_count; h++)
            left += remote->host[h].shell != 0 &&
                    !tti_remote_has_ended(&remote->host[h], how, sizeof how);
        (void)tt_mesh_receive(remote->hosts, remote->host_count, 64, on_frame, remote);
        tt_mesh_wait(remote->hosts, remote->host_count, 1000000);
    }
}

static void
close_listener(int listener)
{
    if (listener >= 0)
        (void)close(listener);
}

static void
free_remote(tti_remote *remote)
{
    tt_mesh_close(remote->hosts);
    close_listener(remote->hosts_listener);
    close_listener(remote->listener);
    close_listener(remote->control_listener);
    tti_remote_close_estate(remote);
    tt_host_close(remote->caretaker);
    tt_mem_free(remote->host);
    tt_mem_free(remote->node);
    tt_mem_free(remote->host_of);
    tt_mem_free(remote->address);
    tt_mem_free(remote->control);
    tt_net_key_forget(&remote->key);
    tt_mem_free(remote);
}

void
tti_remote_close(tti_remote *remote)
{
    if (remote == NULL)
        return;
    if (remote->hosts != NULL)
        say_farewell(remote);
    for (uint32_t h = 0; remote->host != NULL && h < remote->host_count; h++)
        tti_remote_abandon(&remote->host[h]);
    free_remote(remote);
}

static void
close_remote(tti_starter *starter)
{
    tti_remote_close(starter->self);
    starter->self = NULL;
}

// ---- successors --------------------------------------------------------------------------------

static tt_status
bequeath(
    tti_starter *starter, const char *run_dir, int journal, uint64_t patience_ns, tt_error *err)
{
    char name[80];
    TT_TRY(tti_processes_name(run_dir, name, sizeof name, err));
    return tti_remote_bequeath(starter->self, name, journal, patience_ns, err);
}

static void
forget(tti_starter *starter)
{
    tti_remote *remote = starter->self;
    remote->legacy.is_promised = 0;
    tt_host_forget(remote->caretaker);
}

// Hosts find their lines open: the caretaker has them, too.
static void
release(tti_starter *starter)
{
    tti_remote *remote = starter->self;
    tt_host_release(remote->caretaker);
    remote->caretaker = NULL;
    for (uint32_t h = 0; h < remote->host_count; h++)
        tti_remote_let_go(&remote->host[h]);
    free_remote(remote);
    starter->self = NULL;
}

// ---- opening -----------------------------------------------------------------------------------

void
tti_remote_listen(tti_remote *remote)
{
    (void)tt_mesh_receive(remote->hosts, remote->host_count, 64, on_frame, remote);
    tt_mesh_wait(remote->hosts, remote->host_count, 20000000);
}

// Those that can still be reached say how their nodes are.
static uint32_t
hear_hosts(tti_remote *remote)
{
    uint64_t begin = tt_clock_monotonic_ns();
    double patience_s = 2 * remote->job->spec.failure_timeout, waited_s = 0;
    uint32_t here = 0, silent = 1;
    char how[120];
    remote->takes_over = 1;
    while (silent > 0 && waited_s < patience_s && !tti_interrupted) {
        here = silent = 0;
        tti_remote_listen(remote);
        for (uint32_t h = 0; h < remote->host_count; h++) {
            tti_remote_host *host = &remote->host[h];
            if (tti_remote_has_ended(host, how, sizeof how))
                lose_host(remote, h, how);
            here += host->presence == TTI_HERE;
            silent += host->presence == TTI_AWAY && host->shell != 0;
        }
        waited_s = 1e-9 * (double)(tt_clock_monotonic_ns() - begin);
    }
    remote->takes_over = 0;
    return here;
}

static tt_status
inherit(tt_job *job, const char *run_dir, tti_starter *out, tt_error *err)
{
    char name[80];
    tti_remote *remote = NULL;
    tt_host *caretaker = NULL;
    tt_host_estate left = {.pid = out->pid};
    TT_TRY(tti_processes_name(run_dir, name, sizeof name, err));
    TT_TRY(tt_host_inherit(name, 0, &left, &caretaker, err));
    tt_status status = tti_remote_prepare(job, &left, &remote, err);
    if (status == TT_OK)
        remote->caretaker = caretaker;
    else
        tt_host_close(caretaker);
    if (status == TT_OK && hear_hosts(remote) == 0)
        status = tt_error_set(err, TT_NOTFOUND, NULL, NULL, "no host of this run answers");
    if (status == TT_OK)
        status = tti_journal_map(left.descriptors[0], &out->journal, err);
    else
        tti_remote_drop_legacy(&left);
    if (status == TT_OK) {
        remote->legacy =
            (tti_remote_legacy){.is_promised = 1,
                                .journal = out->journal.descriptor,
                                .patience_ns = (uint64_t)(1e9 * job->spec.master_timeout)};
        memcpy(remote->legacy.name, name, sizeof name);
    }
    for (uint32_t n = 0; status == TT_OK && n < job->node_count; n++)
        out->pid[n] = remote->node[n].pid;
    out->inherits = status == TT_OK;
    if (status == TT_OK)
        out->self = remote;
    else
        tti_remote_close(remote);
    return status;
}

static tt_status
launch_all(tt_job *job, tti_starter *out, tt_error *err)
{
    tt_host *caretaker = NULL;
    tti_remote *remote = NULL;
    // While this process has one thread. It has nothing to do before a master dies.
    TT_TRY(tt_host_open(0, NULL, NULL, &caretaker, err));
    tt_status status = tti_remote_prepare(job, NULL, &remote, err);
    if (status != TT_OK) {
        tt_host_close(caretaker);
        return status;
    }
    remote->caretaker = caretaker;
    out->self = remote;
    for (uint32_t h = 0; status == TT_OK && h < remote->host_count; h++)
        status = tti_remote_launch(remote, h, err);
    return status == TT_OK ? tti_remote_await(remote, err) : status;
}

tt_status
tti_remote_open(tt_job *job, const char *run_dir, tti_starter *out, tt_error *err)
{
    static const tti_starter_verbs verbs = {.open_meshes = open_meshes,
                                            .refused = refused,
                                            .start = start,
                                            .settle = settle,
                                            .can_start = can_start,
                                            .kill = kill_node,
                                            .host_of = host_of,
                                            .next = next,
                                            .bequeath = bequeath,
                                            .forget = forget,
                                            .release = release,
                                            .close = close_remote};
    tt_error none = {0};
    out->verbs = &verbs;
    if (run_dir != NULL && inherit(job, run_dir, out, &none) == TT_OK)
        return TT_OK;
    return launch_all(job, out, err);
}
