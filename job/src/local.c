// Engine local: processes of this host, which share the memory of two meshes and what the job had
// opened before it began: data, model, search space.
#include "node_task.h"
#include "runtime.h"
#include <unistd.h>

// The starter's own.
typedef struct local {
    tt_host *host;
    int mesh, control; // the descriptors of their memory
} local;

// What is left to a successor.
enum { ESTATE_MESH, ESTATE_CONTROL, ESTATE_JOURNAL, ESTATE_COUNT };

static void
close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        (void)close(*descriptor);
    *descriptor = -1;
}

// ---- the node's process ------------------------------------------------------------------------

static tt_status
run(const tt_job *job, uint32_t n, const int *descriptors, tt_error *err)
{
    tt_mesh *mesh = NULL, *control = NULL;
    uint8_t *begin = NULL;
    size_t size = 0;
    tt_status status = tt_mesh_attach(descriptors[0], &mesh, err);
    if (status == TT_OK)
        status = tt_mesh_attach(descriptors[1], &control, err);
    if (status == TT_OK)
        status = tti_task_read(descriptors[2], &begin, &size, err);
    for (uint32_t i = 0; i < 3; i++)
        (void)close(descriptors[i]);
    if (status == TT_OK)
        status = tti_node_run(job, n, mesh, control, begin, size, err);
    tt_mem_free(begin);
    tt_mesh_close(control);
    tt_mesh_close(mesh);
    return status;
}

// self: the job (tt_host_task).
static int
node_task(void *self, uint32_t task, const int *descriptors, uint32_t count)
{
    tt_error err = {0};
    TT_ASSERT(count == 3);
    if (run(self, task, descriptors, &err) == TT_OK)
        return 0;
    tt_log(TT_LOG_ERROR, "node %u: %s", task, err.what);
    return TTI_TASK_FAILED;
}

// ---- the master's side -------------------------------------------------------------------------

static tt_status
open_meshes(tti_runtime *rt, tt_error *err)
{
    uint32_t ends = rt->node_count + 1;
    local *here = rt->job->starter->self;
    if (!rt->inherits)
        TT_TRY(tt_mesh_share(ends, &here->mesh, err));
    TT_TRY(tt_mesh_attach(here->mesh, &rt->mesh, err));
    if (!rt->inherits)
        TT_TRY(tt_mesh_share(ends, &here->control, err));
    return tt_mesh_attach(here->control, &rt->membership.control, err);
}

static void
close_meshes(tti_starter *starter)
{
    local *here = starter->self;
    close_descriptor(&here->mesh);
    close_descriptor(&here->control);
}

static tt_status
start(tti_runtime *rt, uint32_t n, const uint8_t *begin, size_t size, tt_error *err)
{
    local *here = rt->job->starter->self;
    const tt_span piece = {begin, size};
    int file = tti_task_write(&piece, 1);
    if (file < 0)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to start node %u", n);
    const int descriptors[] = {here->mesh, here->control, file};
    tt_status status = tt_host_start(here->host, n, descriptors, 3, err);
    (void)close(file);
    return status;
}

static void
kill_node(tti_starter *starter, uint32_t n)
{
    local *here = starter->self;
    tt_host_kill(here->host, n);
}

static const char *
host_of(const tti_starter *starter, uint32_t n)
{
    TT_UNUSED(starter);
    TT_UNUSED(n);
    return "this host";
}

static int
next(tti_starter *starter, tt_host_news *out)
{
    local *here = starter->self;
    return tt_host_next(here->host, out);
}

static void
close_starter(tti_starter *starter)
{
    local *here = starter->self;
    tt_host_close(here->host);
    close_meshes(starter);
    tt_mem_free(here);
}

// ---- successors --------------------------------------------------------------------------------

static tt_status
bequeath(
    tti_starter *starter, const char *run_dir, int journal, uint64_t patience_ns, tt_error *err)
{
    char name[80];
    const local *here = starter->self;
    const int descriptors[ESTATE_COUNT] = {here->mesh, here->control, journal};
    TT_TRY(tti_processes_name(run_dir, name, sizeof name, err));
    return tt_host_bequeath(here->host, name, patience_ns, descriptors, ESTATE_COUNT, err);
}

static void
forget(tti_starter *starter)
{
    const local *here = starter->self;
    tt_host_forget(here->host);
}

static void
release(tti_starter *starter)
{
    local *here = starter->self;
    tt_host_release(here->host);
    here->host = NULL;
}

static tt_status
inherit(tt_job *job, const char *run_dir, tti_starter *starter, tt_error *err)
{
    char name[80];
    local *here = starter->self;
    tt_host_estate estate = {.pid = starter->pid};
    TT_TRY(tti_processes_name(run_dir, name, sizeof name, err));
    TT_TRY(tt_host_inherit(name, job->node_count, &estate, &here->host, err));
    if (estate.count == ESTATE_COUNT && estate.task_count == job->node_count) {
        here->mesh = estate.descriptors[ESTATE_MESH];
        here->control = estate.descriptors[ESTATE_CONTROL];
        starter->inherits = 1;
        return tti_journal_map(estate.descriptors[ESTATE_JOURNAL], &starter->journal, err);
    }
    for (uint32_t i = 0; i < estate.count; i++)
        (void)close(estate.descriptors[i]);
    if (estate.task_count != job->node_count)
        tt_log(TT_LOG_WARN,
               "the nodes of this run cannot be taken over: there are %u of them, the job has %u",
               estate.task_count, job->node_count);
    return tt_error_set(err, TT_NOTFOUND, NULL, NULL, "nothing of this run is left");
}

// Of no use: its nodes end.
static void
close_inheritance(tti_starter *starter)
{
    local *here = starter->self;
    tt_host_close(here->host);
    here->host = NULL;
    close_meshes(starter);
    tti_journal_close(&starter->journal);
    starter->inherits = 0;
}

tt_status
tti_local_open(tt_job *job, const char *run_dir, tti_starter *out, tt_error *err)
{
    static const tti_starter_verbs verbs = {.open_meshes = open_meshes,
                                            .start = start,
                                            .kill = kill_node,
                                            .host_of = host_of,
                                            .next = next,
                                            .bequeath = bequeath,
                                            .forget = forget,
                                            .release = release,
                                            .close_meshes = close_meshes,
                                            .close = close_starter};
    local *here = tt_mem_alloc(sizeof *here);
    if (here == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to start nodes");
    *here = (local){NULL, -1, -1};
    out->verbs = &verbs;
    out->self = here;
    if (run_dir != NULL && inherit(job, run_dir, out, err) == TT_OK)
        return TT_OK;
    close_inheritance(out);
    TT_TRY(tt_model_prepare(job->model, err)); // nodes share it
    return tt_host_open(job->node_count, node_task, job, &here->host, err);
}
