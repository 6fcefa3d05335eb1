// The process of a node: its agent is the main thread, its node another one. See node_task.h.
#include "node_task.h"
#include "process.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- what it begins with -----------------------------------------------------------------------

tt_status
tti_task_read(int descriptor, uint8_t **bytes, size_t *size, tt_error *err)
{
    struct stat file;
    *bytes = NULL;
    *size = fstat(descriptor, &file) == 0 ? (size_t)file.st_size : 0;
    if (*size > 0)
        *bytes = tt_mem_alloc(*size);
    if (*bytes != NULL && pread(descriptor, *bytes, *size, 0) == (ssize_t)*size)
        return TT_OK;
    tt_mem_free(*bytes);
    *bytes = NULL;
    return tt_error_set(err, TT_IO, NULL, NULL, "what the node begins with cannot be read");
}

static int
write_all(int descriptor, const tt_span *piece)
{
    for (size_t done = 0; done < piece->size;) {
        ssize_t part = write(descriptor, (const uint8_t *)piece->bytes + done, piece->size - done);
        if (part < 0 && errno != EINTR)
            return 0;
        done += part > 0 ? (size_t)part : 0;
    }
    return 1;
}

int
tti_task_write(const tt_span *pieces, uint32_t count)
{
    int descriptor = memfd_create("trimtab-start", MFD_CLOEXEC);
    for (uint32_t i = 0; descriptor >= 0 && i < count; i++)
        if (!write_all(descriptor, &pieces[i])) {
            (void)close(descriptor);
            descriptor = -1;
        }
    return descriptor;
}

typedef struct start {
    uint32_t attempt;
    tti_order_parts parts; // with an attempt
} start;

static tt_status
read_start(const tt_job *job, const uint8_t *bytes, size_t size, start *out, tt_error *err)
{
    tt_status status = TT_CORRUPT;
    *out = (start){0};
    if (size >= sizeof out->attempt) {
        memcpy(&out->attempt, bytes, sizeof out->attempt);
        bytes += sizeof out->attempt;
        size -= sizeof out->attempt;
        status = out->attempt == 0 ? TT_OK : tti_order_read(bytes, size, &out->parts);
    }
    if (status == TT_OK && out->attempt != 0 &&
        (out->parts.generation == NULL || !tti_order_fits(job, &out->parts))) {
        tti_generations_free(out->parts.generation);
        status = TT_CORRUPT;
    }
    return status == TT_OK
               ? TT_OK
               : tt_error_set(err, status, NULL, NULL, "what the node begins with makes no sense");
}

// ---- its life ----------------------------------------------------------------------------------

// A process that was declared dead makes way for a new one, with everything it holds.
static void
end_node(tti_process *process)
{
    if (process->begun)
        _exit(TTI_TASK_EXPELLED);
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

tt_status
tti_node_run(const tt_job *job,
             uint32_t n,
             tt_mesh *mesh,
             tt_mesh *control,
             const uint8_t *begin,
             size_t size,
             tt_error *err)
{
    start first;
    TT_TRY(read_start(job, begin, size, &first, err));
    tti_process *process = tt_mem_zalloc_vector(1, sizeof *process);
    tt_clock clock = tt_clock_monotonic();
    if (process == NULL) {
        tti_generations_free(first.parts.generation);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a node");
    }
    process->is_alone = 1;
    process->end_node = end_node;
    tt_status status = tti_process_open(process, job, n, clock, mesh, control, err);
    process->pulse = tt_pulse_begin(n, first.attempt, (uint64_t)(1e9 * job->spec.heartbeat),
                                    tt_clock_now(&clock));
    forget_messages(mesh, n);
    forget_messages(control, n);
    if (status == TT_OK && first.attempt != 0)
        status = begin_work(process, &first, err);
    if (status == TT_OK)
        (void)tti_agent_main(process);
    tt_thread_join(&process->node.thread);
    tti_process_close(process);
    tt_mem_free(process);
    tti_generations_free(first.parts.generation);
    return status;
}
