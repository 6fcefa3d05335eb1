// A host of a job, `trimtab node`: reads the job as the master sent it, and starts the processes of
// nodes as the master asks, until it says stop, its remote shell closes standard input, or nothing
// was heard from it for long. See remote.h.
#include "job_internal.h"
#include "machine.h"
#include "node_task.h"
#include "remote.h"
#include "tt/job.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WAIT_NS = 10000000, SILENCE_S_MIN = 300, SILENCE_TIMEOUTS = 10 };
// A port that processes have which are about to be gone.
enum { PORT_TRIES = 400, PORT_PAUSE_MS = 5 };

typedef struct host_task {
    uint64_t start; // number of the last one
    int pid, wait_status;
    int listener, control_listener;
    uint16_t port, control_port;
} host_task;

typedef struct host {
    tti_invitation in;
    tt_job *job;
    tt_host *keeper;
    tt_mesh *mesh;
    host_task *task; // [node_count]
    uint32_t epoch;
    int rings;              // of the epoch's mesh of parameters; -1: none
    tt_net_address address; // of the mesh of hosts
    uint64_t data;          // digest
    uint64_t heard_ns, beat_ns;
    int has_news, must_stop;
} host;

// ---- the node's process ------------------------------------------------------------------------

// What a start says, in the memory of its file (remote.h: tti_start_call).
typedef struct task_begin {
    tti_start_call call;
    const tt_net_address *address; // [node_count + 1]
    const uint8_t *begin;
    size_t begin_size;
} task_begin;

static tt_status
read_begin(const host *h, const uint8_t *bytes, size_t size, task_begin *out)
{
    size_t addresses = (h->in.node_count + 1) * sizeof *out->address;
    if (size < sizeof out->call + addresses)
        return TT_CORRUPT;
    memcpy(&out->call, bytes, sizeof out->call);
    out->address = (const tt_net_address *)(const void *)(bytes + sizeof out->call);
    out->begin = bytes + sizeof out->call + addresses;
    out->begin_size = size - sizeof out->call - addresses;
    return TT_OK;
}

// rings and listener are taken.
static tt_status
open_net(const host *h,
         const task_begin *b,
         uint32_t mesh,
         tt_mesh *rings,
         const uint8_t *is_here,
         const tt_net_address *address,
         int listener,
         uint64_t timeout_ns,
         tt_mesh **out,
         tt_error *err)
{
    tt_net_options options = {.rings = rings,
                              .node_count = h->in.node_count + 1,
                              .node = b->call.node,
                              .is_here = is_here,
                              .address = address,
                              .listener = listener,
                              .job = h->in.job_id,
                              .mesh = mesh,
                              .key = h->in.key,
                              .is_open = h->in.is_open,
                              .timeout_ns = timeout_ns};
    tt_status status = tt_net_mesh_open(&options, out, err);
    tt_net_key_forget(&options.key);
    return status;
}

// Nodes of this host share rings; the master alone is reached for control.
static tt_status
open_task_meshes(const host *h,
                 const task_begin *b,
                 const int *descriptors,
                 tt_mesh **mesh,
                 tt_mesh **control,
                 tt_error *err)
{
    uint32_t count = h->in.node_count, n = b->call.node;
    uint8_t is_here[TT_PS_NODES_MAX + 1] = {0}, is_self[TT_PS_NODES_MAX + 1] = {0};
    tt_mesh *rings;
    tt_net_address *masters = tt_mem_zalloc(count + 1, sizeof *masters);
    if (masters == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a node");
    masters[count] = b->call.control;
    is_self[n] = 1;
    for (uint32_t i = 0; i < count; i++)
        is_here[i] = h->in.host_of[i] == h->in.host;
    tt_status status = tt_mesh_attach(descriptors[0], &rings, err);
    if (status == TT_OK)
        status = open_net(h, b, tti_mesh_of_parameters(b->call.epoch), rings, is_here, b->address,
                          descriptors[1], (uint64_t)(1e9 * h->in.timeout_s), mesh, err);
    if (status == TT_OK)
        status = tt_mesh_open(count + 1, &rings, err);
    if (status == TT_OK)
        status = open_net(h, b, tti_mesh_of_control(b->call.epoch), rings, is_self, masters,
                          descriptors[2], tti_control_timeout_ns(h->in.timeout_s), control, err);
    tt_mem_free(masters);
    return status;
}

// descriptors: rings, listeners for parameters and for control, what it begins with.
static tt_status
run_task(const host *h, uint32_t task, const int *descriptors, tt_error *err)
{
    tt_mesh *mesh = NULL, *control = NULL;
    uint8_t *bytes = NULL;
    size_t size;
    task_begin begin;
    tt_status status = tti_task_read(descriptors[3], &bytes, &size, err);
    if (status == TT_OK && (read_begin(h, bytes, size, &begin) != TT_OK || begin.call.node != task))
        status = tt_error_set(err, TT_CORRUPT, NULL, NULL, "what the node begins with is damaged");
    if (status == TT_OK)
        status = open_task_meshes(h, &begin, descriptors, &mesh, &control, err);
    if (status == TT_OK)
        status = tti_node_run(h->job, task, mesh, control, begin.begin, begin.begin_size, err);
    tt_mesh_close(control);
    tt_mesh_close(mesh);
    tt_mem_free(bytes);
    return status;
}

// self: the host (tt_host_task).
static int
node_task(void *self, uint32_t task, const int *descriptors, uint32_t count)
{
    tt_error err = {0};
    TT_ASSERT(count == 4);
    if (run_task(self, task, descriptors, &err) == TT_OK)
        return 0;
    tt_log(TT_LOG_ERROR, "node %u: %s", task, err.what);
    return TTI_TASK_FAILED;
}

// ---- what the master asks for ------------------------------------------------------------------

static void
hear_keeper(host *h)
{
    tt_host_news news;
    while (tt_host_next(h->keeper, &news)) {
        h->has_news = 1;
        switch (news.kind) {
        case TT_HOST_STARTED:
            h->task[news.task].pid = news.pid;
            break;
        case TT_HOST_ENDED:
            h->task[news.task].pid = 0;
            h->task[news.task].wait_status = news.wait_status;
            break;
        case TT_HOST_LOST:
            h->must_stop = 1;
            break;
        }
    }
}

// Processes of an earlier runtime that are still there end before the next one's begin.
static tt_status
begin_epoch(host *h, uint32_t epoch)
{
    tt_error err;
    uint32_t left = 1;
    for (uint32_t n = 0; n < h->in.node_count; n++)
        if (h->task[n].pid != 0)
            tt_host_kill(h->keeper, n);
    for (int tries = 0; left > 0 && tries < 2000 && !h->must_stop; tries++) {
        left = 0;
        hear_keeper(h);
        for (uint32_t n = 0; n < h->in.node_count; n++)
            left += h->task[n].pid != 0;
        if (left > 0)
            (void)poll(NULL, 0, 1);
    }
    if (h->rings >= 0)
        (void)close(h->rings);
    h->rings = -1;
    if (left > 0 || tt_mesh_share(h->in.node_count + 1, &h->rings, &err) != TT_OK)
        return TT_NOMEM;
    h->epoch = epoch;
    return TT_OK;
}

static void
start(host *h, const uint8_t *payload, size_t size)
{
    task_begin begin;
    tt_error err = {0};
    if (read_begin(h, payload, size, &begin) != TT_OK || begin.call.node >= h->in.node_count ||
        h->in.host_of[begin.call.node] != h->in.host)
        return;
    host_task *task = &h->task[begin.call.node];
    if (begin.call.number <= task->start || begin.call.epoch < h->epoch)
        return; // it was said before
    task->start = begin.call.number;
    task->pid = -1;
    task->wait_status = TTI_NOT_BEGUN;
    h->has_news = 1;
    if (begin.call.epoch > h->epoch) {
        task->pid = 0;
        if (begin_epoch(h, begin.call.epoch) != TT_OK)
            return;
        task->pid = -1;
    }
    const tt_span piece = {payload, size};
    int file = tti_task_write(&piece, 1);
    const int descriptors[] = {h->rings, task->listener, task->control_listener, file};
    if (file < 0 || tt_host_start(h->keeper, begin.call.node, descriptors, 4, &err) != TT_OK) {
        task->pid = 0;
        tt_log(TT_LOG_ERROR, "node %u cannot be started: %s", begin.call.node, err.what);
    }
    if (file >= 0)
        (void)close(file);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    host *h = self;
    uint32_t node;
    if (frame->sender != h->in.host_count)
        return;
    h->heard_ns = tt_clock_monotonic_ns();
    switch (frame->kind) {
    case TT_FRAME_HOST_START:
        start(h, payload, frame->payload_bytes);
        break;
    case TT_FRAME_HOST_KILL:
        if (frame->payload_bytes != sizeof node)
            break;
        memcpy(&node, payload, sizeof node);
        if (node < h->in.node_count)
            tt_host_kill(h->keeper, node);
        break;
    case TT_FRAME_HOST_STOP:
        h->must_stop = 1;
        break;
    default:
        break;
    }
}

// ---- what the master hears ---------------------------------------------------------------------

static void
say_status(host *h)
{
    tt_mesh_counters counters;
    tt_mesh_counters_read(h->mesh, h->in.host, &counters);
    tti_host_status status = {.data = h->data,
                              .refused = counters.refused,
                              .address = h->address,
                              .processors = (uint64_t)tt_thread_processor_count(),
                              .memory_bytes = tti_memory_available(),
                              .wall_ns = tt_clock_wall_ns()};
    tti_host_node nodes[TT_PS_NODES_MAX];
    for (uint32_t n = 0; n < h->in.node_count; n++)
        if (h->in.host_of[n] == h->in.host)
            nodes[status.node_count++] = (tti_host_node){.start = h->task[n].start,
                                                         .node = n,
                                                         .port = h->task[n].port,
                                                         .control_port = h->task[n].control_port,
                                                         .pid = h->task[n].pid,
                                                         .wait_status = h->task[n].wait_status};
    tt_frame frame = {.kind = TT_FRAME_HOST_STATUS};
    const tt_span spans[] = {{&status, sizeof status}, {nodes, status.node_count * sizeof *nodes}};
    tt_outbox outbox = tt_mesh_outbox(h->mesh, h->in.host);
    outbox.send(outbox.self, h->in.host_count, &frame, spans, 2);
    h->has_news = 0;
    h->beat_ns = tt_clock_monotonic_ns();
}

// The remote shell's other end is closed: whoever called is gone.
static int
caller_is_gone(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static tt_status
serve(host *h, tt_error *err)
{
    double silence_s = TT_MAX(SILENCE_TIMEOUTS * h->in.timeout_s, (double)SILENCE_S_MIN);
    h->heard_ns = tt_clock_monotonic_ns();
    while (!h->must_stop && !caller_is_gone()) {
        (void)tt_mesh_receive(h->mesh, h->in.host, 64, on_frame, h);
        hear_keeper(h);
        uint64_t now = tt_clock_monotonic_ns();
        if (h->has_news || now - h->beat_ns >= TTI_HOST_BEAT_NS)
            say_status(h);
        if (1e-9 * (double)(now - h->heard_ns) > silence_s)
            return tt_error_set(err, TT_PEER, NULL, NULL,
                                "nothing was heard from the job's master for %.3g s", silence_s);
        tt_mesh_wait(h->mesh, h->in.host, WAIT_NS);
    }
    return TT_OK;
}

// ---- opening -----------------------------------------------------------------------------------

static tt_status
open_job(host *h, tt_error *err)
{
    // The estimator is the master's: what it loads need not be on every host.
    static const char *const overrides[] = {"tuner.curves=null"};
    const tt_job_source source = {.text = h->in.text,
                                  .text_name = "job.yaml",
                                  .overrides = overrides,
                                  .override_count = TT_COUNT_OF(overrides),
                                  .cold = 1};
    if (chdir(h->in.directory) != 0)
        return tt_error_set(err, TT_NOTFOUND, h->in.directory,
                            "make it on this host, too, or start the job from a directory that all "
                            "hosts have",
                            "cannot go there: %s", tt_errno_text(errno));
    TT_TRY(tt_job_open(&source, stderr, &h->job, err));
    if (h->job->node_count != h->in.node_count)
        return tt_error_set(err, TT_CORRUPT, NULL, NULL, "the job has another number of nodes");
    h->data = tti_job_data_digest(h->job);
    return tt_model_prepare(h->job->model, err); // nodes share it
}

// The ports are those that the nodes of a host before this one had. These were killed with it, and
// it may take a moment until they are gone.
static tt_status
listen_at(tt_net_address *address, int *listener, tt_error *err)
{
    tt_status status = tt_net_listen(address, listener, err);
    for (int tries = 0; status != TT_OK && address->port != 0 && tries < PORT_TRIES; tries++) {
        (void)poll(NULL, 0, PORT_PAUSE_MS);
        status = tt_net_listen(address, listener, err);
    }
    return status;
}

static tt_status
open_listeners(host *h, tt_error *err)
{
    if (h->in.address.family == 0)
        TT_TRY(tt_net_route(&h->in.master, &h->in.address, err));
    h->task = tt_mem_zalloc(h->in.node_count, sizeof *h->task);
    if (h->task == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the nodes");
    for (uint32_t n = 0; n < h->in.node_count; n++)
        h->task[n].listener = h->task[n].control_listener = -1;
    for (uint32_t n = 0; n < h->in.node_count; n++) {
        tt_net_address address = h->in.address, control = h->in.address;
        if (h->in.host_of[n] != h->in.host)
            continue;
        address.port = h->in.port[n];
        control.port = h->in.port[h->in.node_count + n];
        TT_TRY(listen_at(&address, &h->task[n].listener, err));
        TT_TRY(listen_at(&control, &h->task[n].control_listener, err));
        h->task[n].port = address.port;
        h->task[n].control_port = control.port;
    }
    return TT_OK;
}

static tt_status
open_mesh(host *h, tt_error *err)
{
    uint32_t ends = h->in.host_count + 1;
    uint8_t is_here[TT_PS_NODES_MAX + 1] = {0};
    tt_net_address own = h->in.address;
    tt_net_address *address = tt_mem_zalloc(ends, sizeof *address);
    if (address == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the host");
    address[h->in.host_count] = h->in.master;
    is_here[h->in.host] = 1;
    tt_net_options options = {.node_count = ends,
                              .node = h->in.host,
                              .is_here = is_here,
                              .address = address,
                              .job = h->in.job_id,
                              .mesh = TTI_MESH_OF_HOSTS,
                              .key = h->in.key,
                              .is_open = h->in.is_open,
                              .timeout_ns = tti_control_timeout_ns(h->in.timeout_s)};
    tt_status status = tt_net_listen(&own, &options.listener, err);
    h->address = own;
    if (status == TT_OK) {
        status = tt_mesh_open(ends, &options.rings, err);
        if (status == TT_OK)
            status = tt_net_mesh_open(&options, &h->mesh, err);
        else
            (void)close(options.listener);
    }
    tt_mem_free(address);
    tt_net_key_forget(&options.key);
    return status;
}

static void
close_descriptor(int descriptor)
{
    if (descriptor >= 0)
        (void)close(descriptor);
}

static void
close_host(host *h)
{
    tt_host_close(h->keeper);
    tt_mesh_close(h->mesh);
    for (uint32_t n = 0; h->task != NULL && n < h->in.node_count; n++) {
        close_descriptor(h->task[n].listener);
        close_descriptor(h->task[n].control_listener);
    }
    close_descriptor(h->rings);
    tt_mem_free(h->task);
    tt_job_close(h->job);
    tti_invitation_fini(&h->in);
}

tt_status
tt_job_serve_host(tt_error *err)
{
    host h = {.rings = -1};
    (void)prctl(PR_SET_DUMPABLE, 0); // the key is in its memory
    (void)prctl(PR_SET_NAME, "trimtab-node");
    tt_status status = tti_invitation_read(STDIN_FILENO, &h.in, err);
    if (status == TT_OK)
        status = open_job(&h, err);
    if (status == TT_OK)
        status = open_listeners(&h, err);
    // While it has one thread, and knows what its nodes are to know.
    if (status == TT_OK)
        status = tt_host_open(h.in.node_count, node_task, &h, &h.keeper, err);
    if (status == TT_OK)
        status = open_mesh(&h, err);
    if (status == TT_OK)
        status = serve(&h, err);
    close_host(&h);
    return status;
}
