// Target: what the master and the nodes of a job tell each other beside parameters: orders and
// heartbeats' answers to an agent; reports, heartbeats, copies and requests for what is restored to
// the master; what hosts say to it; and the invitation of a host. Whatever comes, an agent's rows
// are rows of the data, and its generation is one of the job.
//
// Input: a byte of the job and of who hears, then frames: kind, sender, attempt, flags (2), detail,
// clock, size (2), payload. Of an invitation all but its beginning.
#include "fuzz.h"
#include "fuzz_job.h"
#include "memory_file.h"
#include "net.h"
#include "remote.h"
#include "runtime.h"
#include <string.h>

enum { NODES = FUZZ_JOB_NODES, ROWS_TAKEN = 16, HEARERS = 4 };

// A mesh that has what the input says, once, and to which all can be sent.
typedef struct mesh_of_input {
    tti_net net; // as one that reaches hosts
    int of_parameters;
} mesh_of_input;

static mesh_of_input control_mesh, parameter_mesh;
static const uint8_t *input, *input_end;
static int *stop; // raised when all was received
static tti_process *listener;

// ---- the mesh ----------------------------------------------------------------------------------

static void
send_nowhere(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    static uint8_t sent[4096];
    TT_UNUSED(self);
    TT_ASSERT(to <= NODES);
    (void)tt_frame_complete(frame, 0, spans, span_count);
    for (uint32_t i = 0; i < span_count; i++)
        for (size_t at = 0; at < spans[i].size; at += sizeof sent) // as a sanitizer sees it
            memcpy(sent, (const uint8_t *)spans[i].bytes + at,
                   TT_MIN(sizeof sent, spans[i].size - at));
}

static tt_outbox
outbox(tt_mesh *mesh, uint32_t node)
{
    TT_UNUSED(node);
    return (tt_outbox){.self = mesh, .send = send_nowhere};
}

static void
set_nothing(tt_mesh *mesh, uint32_t node, uint32_t value)
{
    TT_UNUSED(mesh);
    TT_UNUSED(node);
    TT_UNUSED(value);
}

static void
do_nothing(tt_mesh *mesh, uint32_t node)
{
    TT_UNUSED(mesh);
    TT_UNUSED(node);
}

static void
wait_no_more(tt_mesh *self, uint32_t node, uint64_t timeout_ns)
{
    TT_UNUSED(self);
    TT_UNUSED(node);
    TT_UNUSED(timeout_ns);
    if (stop != NULL)
        *stop = 1;
}

static void
read_nothing(const tt_mesh *mesh, uint32_t node, tt_mesh_counters *out)
{
    TT_UNUSED(mesh);
    TT_UNUSED(node);
    *out = (tt_mesh_counters){0};
}

static void
read_header(const uint8_t *bytes, tt_frame *out)
{
    *out = (tt_frame){.magic = TT_FRAME_MAGIC,
                      .version = TT_FRAME_VERSION,
                      .kind = (uint16_t)(1 + bytes[0] % (TT_FRAME_KIND_COUNT - 1)),
                      .sender = bytes[1] % (NODES + 1),
                      .attempt = bytes[2],
                      .flags = (uint16_t)(bytes[3] | bytes[4] << 8),
                      .detail = bytes[5],
                      .clock = bytes[6],
                      .sequence = bytes[6],
                      .partition = bytes[5]};
}

// Where a frame of that kind comes to the master.
static int
is_of_parameters(int kind)
{
    return kind == TT_FRAME_SAVED || kind == TT_FRAME_RESTORE || kind == TT_FRAME_PULL_REPLY ||
           kind == TT_FRAME_PUSH_ACK || kind == TT_FRAME_MOVED;
}

static uint32_t
receive(tt_mesh *self, uint32_t node, uint32_t limit, tt_mesh_handler *handle, void *handler)
{
    enum { HEADER = 9 };
    const mesh_of_input *mesh = (mesh_of_input *)self;
    uint32_t handled = 0;
    TT_UNUSED(node);
    for (; handled < limit && input_end - input >= HEADER; handled++) {
        tt_frame frame;
        size_t said = input[7] | (size_t)input[8] << 8;
        read_header(input, &frame);
        if (listener == NULL && mesh->of_parameters != is_of_parameters(frame.kind))
            break;
        input += HEADER;
        frame.payload_bytes = (uint32_t)TT_MIN(said, (size_t)(input_end - input));
        uint8_t *payload = tt_mem_alloc(frame.payload_bytes); // aligned as it would be
        TT_ASSERT(payload != NULL);
        memcpy(payload, input, frame.payload_bytes);
        input += frame.payload_bytes;
        if (listener != NULL) // its node works already, so that no thread is started
            listener->begun = frame.kind == TT_FRAME_ORDER;
        handle(handler, &frame, payload);
        tt_mem_free(payload);
    }
    return handled;
}

static void
open_mesh(mesh_of_input *mesh)
{
    static const tt_mesh_verbs verbs = {.set_chunk = set_nothing,
                                        .set_spin = set_nothing,
                                        .set_packing = set_nothing,
                                        .outbox = outbox,
                                        .flush = do_nothing,
                                        .receive = receive,
                                        .wait = wait_no_more,
                                        .wake = do_nothing,
                                        .read_counters = read_nothing};
    static tt_net_address addresses[NODES + 1];
    mesh->net.mesh.verbs = &verbs;
    mesh->net.options.node_count = NODES + 1;
    mesh->net.address = addresses;
}

// ---- an agent ----------------------------------------------------------------------------------

static void
end_nothing(tti_process *process)
{
    process->begun = 0; // there is no node to be closed
}

static tti_process *
open_process(int kind)
{
    static tti_process *opened[FUZZ_JOB_KINDS];
    if (opened[kind] == NULL) {
        tti_process *p = opened[kind] = tt_mem_zalloc_vector(1, sizeof *p);
        TT_ASSERT(p != NULL && tti_process_open(p, fuzz_job(kind), 1, tt_clock_monotonic(),
                                                &parameter_mesh.net.mesh, &control_mesh.net.mesh,
                                                NULL) == TT_OK);
        p->end_node = end_nothing;
    }
    tti_process *p = opened[kind];
    tti_generations_free(p->newest);
    p->newest = NULL;
    p->board.current = NULL;
    p->order_heard = p->report_heard = p->news_number = p->reported_ns = 0;
    p->last = (tti_report){0};
    p->stop_agent = 0;
    p->pulse = tt_pulse_begin(1, 1, 1000, 0);
    tti_lease_forget(&p->lease);
    p->lease.ahead = 3;
    p->lease.unit = 16;
    return p;
}

static void
agent_hears(int kind)
{
    const tt_job *job = fuzz_job(kind);
    tti_process *p = open_process(kind);
    uint32_t rows[1024];
    tti_again again;
    int later;
    TT_ASSERT(tti_worker_rows_max(job) <= TT_COUNT_OF(rows) && ROWS_TAKEN <= TT_COUNT_OF(rows));
    stop = &p->stop_agent;
    listener = p;
    (void)tti_agent_main(p);
    uint32_t taken = tti_lease_take(&p->lease, ROWS_TAKEN, rows, &later, &again);
    for (uint32_t i = 0; i < taken; i++)
        TT_ASSERT(rows[i] < job->train->row_count);
    for (const tti_generation *g = p->newest; g != NULL; g = g->previous)
        TT_ASSERT(g->view->node_count == NODES &&
                  g->view->partition_count == job->table.partition_count);
}

// ---- the master --------------------------------------------------------------------------------

static void
note_retired(void *self, uint32_t partition, uint32_t generation)
{
    const tti_runtime *rt = self;
    TT_UNUSED(generation);
    TT_ASSERT(partition < rt->job->table.partition_count);
}

static void
open_master(tti_runtime *rt, const tt_job *job, uint64_t *now_ns)
{
    static const uint8_t is_server[NODES] = {1};
    static float model[1024];
    TT_ASSERT(job->table.rows * job->table.width <= TT_COUNT_OF(model));
    *rt = (tti_runtime){.job = job,
                        .clock = tt_clock_manual(now_ns),
                        .node_count = NODES,
                        .mesh = &parameter_mesh.net.mesh,
                        .apart = 1};
    rt->standings = tt_mem_zalloc_vector(NODES, sizeof *rt->standings);
    rt->newest = tt_mem_zalloc(1, sizeof *rt->newest);
    TT_ASSERT(rt->standings != NULL && rt->newest != NULL);
    TT_ASSERT(tt_ps_view_first(&job->table, NODES, is_server, &rt->newest->view) == TT_OK);
    tt_space_start(&job->space, &rt->newest->setting);
    rt->board = (tti_board){.job = job,
                            .clock = rt->clock,
                            .node_count = NODES,
                            .retry_ns = 1000,
                            .retired = note_retired,
                            .self = rt};
    rt->membership.control = &control_mesh.net.mesh;
    tti_membership *m = &rt->membership;
    TT_ASSERT(tt_members_open(NODES, 1000000, NULL, NULL, *now_ns, &m->members) == TT_OK);
    TT_ASSERT(tti_work_open(job->shards, NODES, 64, &rt->work, NULL) == TT_OK);
    rt->work.example_limit = 50;
    TT_ASSERT(tti_command_open(rt, NULL) == TT_OK);
    TT_ASSERT(tti_books_open(rt, NULL) == TT_OK);
    tt_outbox out = outbox(&control_mesh.net.mesh, NODES);
    TT_ASSERT(tt_ps_copier_open(&job->table, out, 1, &rt->copier) == TT_OK);
    tt_ps_copier_begin(rt->copier, rt->newest->view, 0);
    TT_ASSERT(tt_ps_client_open(&job->table, NODES, NODES + 1, (uint32_t)job->table.rows, out,
                                (tt_ps_hooks){0}, &rt->reader, NULL) == TT_OK);
    tt_ps_client_adopt(rt->reader, rt->newest->view);
    tt_ps_client_pull(rt->reader, (tt_ps_keys){0}, 0, 1, model);
}

static void
close_master(tti_runtime *rt)
{
    for (uint32_t n = 0; n < NODES; n++)
        tti_records_close(&rt->standings[n].records);
    tti_command_close(rt);
    tti_books_close(rt);
    tti_work_close(&rt->work);
    tt_members_close(&rt->membership.members);
    tt_ps_copier_close(rt->copier);
    tt_ps_client_close(rt->reader);
    tti_generations_free(rt->newest);
    tt_mem_free(rt->standings);
}

static tti_records
fresh(tti_records *records)
{
    if (records->ring == NULL)
        TT_ASSERT(tti_records_open(records, NODES) == TT_OK);
    tti_records_forget(records);
    return *records;
}

static void
master_hears(const tt_job *job)
{
    static tti_records records[NODES]; // opened once: they are large
    tti_runtime rt;
    uint64_t now_ns = 1000000;
    tt_archive out = {0};
    tti_counts counts = {0};
    open_master(&rt, job, &now_ns);
    for (uint32_t n = 0; n < NODES; n++)
        rt.standings[n].records = fresh(&records[n]);
    for (int turns = 0; turns < 8; turns++) {
        tti_membership_exchange(&rt);
        now_ns += 10000;
    }
    (void)tti_runtime_settled(&rt);
    tti_runtime_traffic(&rt, &counts);
    tti_books_save_untrained(&rt, &out);
    tt_archive_fini(&out);
    if (tt_members_tick(&rt.membership.members, now_ns) > 0)
        tt_members_buried(&rt.membership.members);
    for (uint32_t n = 0; n < NODES; n++)
        rt.standings[n].records = (tti_records){0};
    close_master(&rt);
}

// ---- the master, of hosts ----------------------------------------------------------------------

static void
master_hears_hosts(const tt_job *job)
{
    tti_remote_host host[2] = {{.name = "a"}, {.name = "b"}};
    tti_remote_node node[NODES] = {{.asked = 1, .is_asked = 1}, {.asked = 2, .is_asked = 1}};
    uint32_t host_of[NODES] = {0, 1, 0, 1};
    tt_net_address address[NODES + 1] = {0}, control[NODES + 1] = {0};
    tti_remote remote = {.job = job,
                         .host_count = 2,
                         .node_count = NODES,
                         .host = host,
                         .node = node,
                         .host_of = host_of,
                         .address = address,
                         .control = control,
                         .hosts = &control_mesh.net.mesh};
    tti_remote_listen(&remote);
    for (int n = 0; n < NODES; n++) {
        char text[TT_NET_ADDRESS_TEXT];
        struct sockaddr_storage where;
        (void)tt_net_text(&address[n], text);
        (void)tti_net_socket_address(&address[n], &where);
    }
}

// ---- a host ------------------------------------------------------------------------------------

static void
host_is_invited(const uint8_t *bytes, size_t size)
{
    struct {
        uint32_t magic, bytes;
        char version[32];
    } head = {0x6e747474, (uint32_t)size, ""};
    static uint8_t all[64 << 10];
    tti_invitation in;
    int file;
    (void)snprintf(head.version, sizeof head.version, "%s", tt_job_version());
    TT_ASSERT(sizeof head + size <= sizeof all);
    memcpy(all, &head, sizeof head);
    memcpy(all + sizeof head, bytes, size);
    memory_file_set(all, sizeof head + size);
    (void)memory_file(&file);
    if (tti_invitation_read(file, &in, NULL) != TT_OK)
        return;
    for (uint32_t n = 0; n < in.node_count; n++)
        TT_ASSERT(in.host_of[n] < in.host_count);
    TT_ASSERT(strlen(in.directory) < size && strlen(in.text) < size && in.timeout_s > 0);
    tti_invitation_fini(&in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const int kind = data[0] % FUZZ_JOB_KINDS;
    open_mesh(&control_mesh);
    open_mesh(&parameter_mesh);
    parameter_mesh.of_parameters = 1;
    input = data + 1;
    input_end = data + size;
    stop = NULL;
    listener = NULL;
    switch (data[0] / FUZZ_JOB_KINDS % HEARERS) {
    case 0:
        agent_hears(kind);
        break;
    case 1:
        master_hears(fuzz_job(kind));
        break;
    case 2:
        master_hears_hosts(fuzz_job(kind));
        break;
    default:
        host_is_invited(data + 1, size - 1);
        break;
    }
    return 0;
}
