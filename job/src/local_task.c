// The process of a node of engine local: its agent is the main thread, its node another one.
#include "local.h"
#include "process.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE_FAILED = 1, CODE_EXPELLED = 3 };

// What the process begins with (local.c).
typedef struct start {
    uint32_t attempt;
    tti_order_parts parts; // with an attempt
} start;

static tt_status
read_start(int descriptor, start *out, tt_error *err)
{
    struct stat file;
    *out = (start){0};
    uint8_t *bytes = NULL;
    size_t size = fstat(descriptor, &file) == 0 ? (size_t)file.st_size : 0;
    tt_status status = TT_CORRUPT;
    if (size >= sizeof out->attempt)
        bytes = tt_mem_alloc(size);
    if (bytes != NULL && pread(descriptor, bytes, size, 0) == (ssize_t)size) {
        memcpy(&out->attempt, bytes, sizeof out->attempt);
        size -= sizeof out->attempt;
        status = out->attempt == 0 ? TT_OK
                                   : tti_order_read(bytes + sizeof out->attempt, size, &out->parts);
    }
    tt_mem_free(bytes);
    return status == TT_OK
               ? TT_OK
               : tt_error_set(err, status, NULL, NULL, "what the node begins with cannot be read");
}

// A process that was declared dead makes way for a new one, with everything it holds.
static void
end_node(tti_process *process)
{
    if (process->begun)
        _exit(CODE_EXPELLED);
}

static void
forget_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(self);
    TT_UNUSED(frame);
    TT_UNUSED(payload);
}

// What was sent to the process before it.
static void
forget_messages(tt_mesh *mesh, uint32_t n)
{
    while (tt_mesh_receive(mesh, n, 1024, forget_frame, NULL) > 0)
        ;
}

static tt_status
begin_work(tti_process *process, start *begin, tt_error *err)
{
    process->node.attempt = begin->attempt;
    tti_process_learn(process, begin->parts.generation);
    begin->parts.generation = NULL;
    tti_agent_write_board(&process->board, &begin->parts.order);
    TT_TRY(tti_process_open_node(process, 0, err));
    return tti_node_start(&process->node, err);
}

static tt_status
run(const tt_job *job, uint32_t n, tt_mesh *mesh, tt_mesh *control, start *begin, tt_error *err)
{
    tti_process *process = tt_mem_zalloc_vector(1, sizeof *process);
    tt_clock clock = tt_clock_monotonic();
    if (process == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a node");
    process->is_alone = 1;
    process->end_node = end_node;
    tt_status status = tti_process_open(process, job, n, clock, mesh, control, err);
    process->pulse = tt_pulse_begin(n, begin->attempt, (uint64_t)(1e9 * job->spec.heartbeat),
                                    tt_clock_now(&clock));
    forget_messages(mesh, n);
    forget_messages(control, n);
    if (status == TT_OK && begin->attempt != 0)
        status = begin_work(process, begin, err);
    if (status == TT_OK)
        (void)tti_agent_main(process);
    tt_thread_join(&process->node.thread);
    tti_process_close(process);
    tt_mem_free(process);
    return status;
}

int
tti_local_task(void *self, uint32_t task, const int *descriptors, uint32_t count)
{
    const tt_job *job = self;
    tt_mesh *mesh = NULL, *control = NULL;
    tt_error err = {0};
    start begin = {0};
    tt_status status = count == 3 ? TT_OK : TT_INVALID;
    if (status == TT_OK)
        status = tt_mesh_attach(descriptors[0], &mesh, &err);
    if (status == TT_OK)
        status = tt_mesh_attach(descriptors[1], &control, &err);
    if (status == TT_OK)
        status = read_start(descriptors[2], &begin, &err);
    for (uint32_t i = 0; i < count; i++)
        (void)close(descriptors[i]);
    if (status == TT_OK)
        status = run(job, task, mesh, control, &begin, &err);
    if (status != TT_OK)
        tt_log(TT_LOG_ERROR, "node %u: %s", task, err.what);
    tti_generations_free(begin.parts.generation);
    tt_mesh_close(control);
    tt_mesh_close(mesh);
    return status == TT_OK ? 0 : CODE_FAILED;
}
