// Whether a job can run here: its machine, limits, and the place of its runs; hosts are in
// doctor_hosts.c.
#include "doctor.h"
#include "job_internal.h"
#include "machine.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { SIZE_TEXT = 24 };

void
tti_examine(tti_examination *e,
            tt_job_health health,
            const char *what,
            const char *advice,
            const char *format,
            ...)
{
    va_list arguments;
    if (e->count == TT_JOB_CHECKS_MAX)
        return;
    tt_job_check *check = &e->checks[e->count++];
    *check = (tt_job_check){.health = health};
    (void)snprintf(check->what, sizeof check->what, "%s", what);
    (void)snprintf(check->advice, sizeof check->advice, "%s", advice != NULL ? advice : "");
    va_start(arguments, format);
    (void)vsnprintf(check->found, sizeof check->found, format, arguments);
    va_end(arguments);
}

static uint64_t
data_bytes(const tt_dataset *data)
{
    if (data == NULL)
        return 0;
    uint64_t entry = data->layout == TT_DATA_SPARSE
                         ? sizeof *data->index + (data->value != NULL ? sizeof(float) : 0)
                     : data->bytes != NULL ? 1
                                           : sizeof(float);
    return data->nonzero_count * entry + data->row_count * (sizeof *data->label + sizeof(uint64_t));
}

uint64_t
tti_examine_node_bytes(const tt_job *job, uint32_t nodes)
{
    enum { STATES_MAX = 2 }; // of adam; others have fewer
    uint64_t model = job->table.rows * job->table.width * sizeof(float);
    return model * (1 + STATES_MAX) * (1 + (uint64_t)job->table.replicas) + model * nodes;
}

static void
examine_data(tti_examination *e)
{
    const tt_dataset *data = e->job->train;
    char size[SIZE_TEXT];
    tti_examine(e, TT_JOB_FINE, "data", NULL, "%llu rows, %u features, %s in memory",
                (unsigned long long)data->row_count, data->feature_count,
                tt_text_bytes((double)data_bytes(data), size, sizeof size));
}

static void
examine_memory(tti_examination *e)
{
    const tt_job *job = e->job;
    uint64_t there = tti_memory_available();
    char size[SIZE_TEXT], left[SIZE_TEXT];
    uint32_t nodes = job->spec.engine == TTI_ENGINE_SSH ? 1 : job->node_count;
    uint64_t wanted = tti_examine_node_bytes(job, nodes);
    if (there == 0)
        return;
    int is_short = wanted > there;
    tti_examine(e, is_short ? TT_JOB_FAULTY : TT_JOB_FINE, "memory",
                is_short ? "lower cluster.nodes, or take a machine with more memory" : NULL,
                "about %s are needed beside the data, %s are available",
                tt_text_bytes((double)wanted, size, sizeof size),
                tt_text_bytes((double)there, left, sizeof left));
}

static void
examine_processors(tti_examination *e)
{
    int processors = tt_thread_processor_count(), engine = e->job->spec.engine;
    uint32_t nodes = e->job->node_count;
    if (engine == TTI_ENGINE_SSH || engine == TTI_ENGINE_SIMULATED)
        return;
    int crowded = nodes > 4 * (uint32_t)processors;
    tti_examine(e, crowded ? TT_JOB_DOUBTFUL : TT_JOB_FINE, "processors",
                crowded ? "lower cluster.nodes: more nodes than processors wait for each other"
                        : NULL,
                "%d for %u nodes", processors, nodes);
}

static void
examine_limit(tti_examination *e, int resource, const char *what, uint64_t wanted, const char *how)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY) {
        tti_examine(e, TT_JOB_FINE, what, NULL, "about %llu are needed, there is no limit",
                    (unsigned long long)wanted);
        return;
    }
    int is_short = wanted > limit.rlim_cur;
    tti_examine(e, is_short ? TT_JOB_FAULTY : TT_JOB_FINE, what, is_short ? how : NULL,
                "about %llu are needed, the limit is %llu", (unsigned long long)wanted,
                (unsigned long long)limit.rlim_cur);
}

static void
examine_shared_memory(tti_examination *e)
{
    tt_error err = {0};
    int fd = -1;
    uint32_t ends = e->job->node_count + 1;
    if (tt_mesh_share(ends, &fd, &err) == TT_OK)
        tti_examine(e, TT_JOB_FINE, "shared memory", NULL, "the rings of %u nodes can be made",
                    ends - 1);
    else
        tti_examine(e, TT_JOB_FAULTY, "shared memory", err.advice, "%s", err.what);
    if (fd >= 0)
        (void)close(fd);
}

// A file is made and removed: permissions alone do not tell.
static void
examine_runs(tti_examination *e, const char *runs_dir)
{
    const char *directory = runs_dir != NULL ? runs_dir : e->job->spec.runs_dir;
    char place[600], name[640], size[SIZE_TEXT], left[SIZE_TEXT];
    struct statvfs system;
    (void)snprintf(place, sizeof place, "%.580s", directory);
    for (char *slash; access(place, F_OK) != 0; *slash = '\0') // it is made by the run
        if ((slash = strrchr(place, '/')) == NULL || slash == place) {
            (void)snprintf(place, sizeof place, "%s", slash == place ? "/" : ".");
            break;
        }
    (void)snprintf(name, sizeof name, "%s/.trimtab-doctor-XXXXXX", place);
    int fd = mkstemp(name);
    if (fd < 0) {
        tti_examine(e, TT_JOB_FAULTY, "runs", "choose another place with --runs DIR",
                    "nothing can be written to %s: %s", place, tt_errno_text(errno));
        return;
    }
    (void)close(fd);
    (void)unlink(name);
    uint64_t there = statvfs(place, &system) == 0 ? system.f_bavail * system.f_frsize : 0;
    uint64_t wanted =
        tti_examine_node_bytes(e->job, 1) * (uint64_t)(e->job->spec.checkpoint_keep + 2);
    int is_short = wanted > there;
    tti_examine(e, is_short ? TT_JOB_FAULTY : TT_JOB_FINE, "runs",
                is_short ? "make room, or choose another place with --runs DIR" : NULL,
                "%s can be written; model and checkpoints take about %s, %s are free", directory,
                tt_text_bytes((double)wanted, size, sizeof size),
                tt_text_bytes((double)there, left, sizeof left));
}

uint32_t
tt_job_examine(tt_job *job, const char *runs_dir, tt_job_check *checks)
{
    tti_examination e = {.job = job, .checks = checks};
    int engine = job->spec.engine;
    uint32_t nodes = job->node_count;
    tti_examine(&e, TT_JOB_FINE, "job", NULL, "%s, %u nodes on engine %s", job->name, nodes,
                tti_engine_names[engine]);
    examine_data(&e);
    examine_memory(&e);
    examine_processors(&e);
    examine_runs(&e, runs_dir);
    if (engine == TTI_ENGINE_LOCAL || engine == TTI_ENGINE_SSH) {
        examine_limit(&e, RLIMIT_NPROC, "processes", 4 * (uint64_t)nodes + 8,
                      "raise the limit (ulimit -u)");
        examine_limit(&e, RLIMIT_NOFILE, "open files", 4 * (uint64_t)nodes + 64,
                      "raise the limit (ulimit -n)");
        examine_shared_memory(&e);
    }
    if (engine == TTI_ENGINE_SSH)
        tti_examine_hosts(&e);
    return e.count;
}
