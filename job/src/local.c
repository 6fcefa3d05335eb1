// Engine local, the master's side: see local.h. Whose process ends is dead at once; who is silent
// is killed, so that two processes are never one node; both are begun anew, a limited number of
// times.
#include "local.h"
#include "runtime.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_MS = 5000 };

// What ends sooner after it began will do so again if begun at once; what has lived so long has not
// ended because of how it began.
#define SHORT_LIFE_NS UINT64_C(1000000000)
#define LONG_LIFE_NS  UINT64_C(10000000000)

// ---- the host's process ------------------------------------------------------------------------

tt_status
tti_local_open(tt_job *job, tt_error *err)
{
    if (job->spec.engine != TTI_ENGINE_LOCAL || job->local != NULL)
        return TT_OK;
    tti_local_host *local = tt_mem_zalloc(1, sizeof *local);
    if (local != NULL)
        local->deaths = tt_mem_zalloc(job->node_count, sizeof *local->deaths);
    job->local = local;
    tt_status status = local != NULL && local->deaths != NULL
                           ? tt_host_open(job->node_count, tti_local_task, job, &local->host, err)
                           : tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the nodes");
    if (status != TT_OK)
        tti_local_close(job);
    return status;
}

void
tti_local_close(tt_job *job)
{
    if (job->local == NULL)
        return;
    tt_host_close(job->local->host);
    tt_mem_free(job->local->deaths);
    tt_mem_free(job->local);
    job->local = NULL;
}

// ---- opening -----------------------------------------------------------------------------------

static tt_status
open_meshes(tti_runtime *rt, tt_error *err)
{
    uint32_t ends = rt->node_count + 1;
    tti_local *local = tt_mem_zalloc(1, sizeof *local);
    if (local == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    rt->local = local;
    local->mesh = local->control = -1;
    local->node = tt_mem_zalloc(rt->node_count, sizeof *local->node);
    if (local->node == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    TT_TRY(tt_mesh_share(ends, &local->mesh, err));
    TT_TRY(tt_mesh_attach(local->mesh, &rt->mesh, err));
    TT_TRY(tt_mesh_share(ends, &local->control, err));
    return tt_mesh_attach(local->control, &rt->membership.control, err);
}

// They have ended so often that they are not begun any more.
static void
list_gone(const tti_runtime *rt, uint8_t *is_gone)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        is_gone[n] = rt->job->local->deaths[n] > (uint32_t)rt->job->spec.restarts;
}

// ---- starting ----------------------------------------------------------------------------------

static int
write_all(int descriptor, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t part = write(descriptor, (const uint8_t *)bytes + done, count - done);
        if (part < 0 && errno != EINTR)
            return 0;
        done += part > 0 ? (size_t)part : 0;
    }
    return 1;
}

// What a process reads when it begins: its attempt, and under which order it begins to work; with
// attempt 0 it asks for both.
static tt_status
write_start(tti_runtime *rt, uint32_t n, uint32_t attempt, int *descriptor, tt_error *err)
{
    tt_archive bytes = {0};
    if (attempt != 0) {
        tti_order order = tti_command_first(rt, n);
        tti_order_write(&order, NULL, rt->newest, &bytes);
    }
    *descriptor = bytes.status == TT_OK ? memfd_create("trimtab-start", MFD_CLOEXEC) : -1;
    int written = *descriptor >= 0 && write_all(*descriptor, &attempt, sizeof attempt) &&
                  write_all(*descriptor, bytes.bytes, bytes.count);
    tt_archive_fini(&bytes);
    if (written)
        return TT_OK;
    if (*descriptor >= 0)
        (void)close(*descriptor);
    return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to start node %u: %s", n,
                        tt_errno_text(errno));
}

static tt_status
start_process(tti_runtime *rt, uint32_t n, uint32_t attempt, tt_error *err)
{
    tti_local *local = rt->local;
    int start;
    TT_TRY(write_start(rt, n, attempt, &start, err));
    const int descriptors[] = {local->mesh, local->control, start};
    tt_status status = tt_host_start(rt->job->local->host, n, descriptors, 3, err);
    (void)close(start);
    local->node[n].begun_ns = tt_clock_now(&rt->clock);
    local->node[n].is_fresh = attempt == 0;
    local->node[n].is_killed = 0;
    local->node[n].pid = status == TT_OK ? -1 : 0; // till it is known
    return status;
}

static tt_status
start_nodes(tti_runtime *rt, tt_error *err)
{
    const tt_ps_view *view = rt->newest->view;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!view->is_gone[n])
            TT_TRY(start_process(rt, n, view->attempt[n], err));
    return TT_OK;
}

// ---- looking after them ------------------------------------------------------------------------

// After `deaths` short lives in a row.
static uint64_t
restart_pause_ns(uint32_t deaths)
{
    return (uint64_t)50000000 << TT_MIN(deaths, 6u);
}

static void
hear_end(tti_runtime *rt, const tt_host_news *news)
{
    tti_local_node *node = &rt->local->node[news->task];
    if (node->pid > 0 && news->pid > 0 && node->pid != news->pid)
        return; // of nodes that were before these
    node->pid = 0;
    node->wait_status = news->wait_status;
    node->has_ended = 1;
    tti_membership_exchange(rt); // what it said last
    if (tti_stopping(&rt->board))
        return;
    uint64_t now_ns = tt_clock_now(&rt->clock), lived_ns = now_ns - node->begun_ns;
    uint32_t *deaths = &rt->job->local->deaths[news->task];
    *deaths = lived_ns < LONG_LIFE_NS ? *deaths + 1 : 1;
    node->next_ns = now_ns + (lived_ns < SHORT_LIFE_NS ? restart_pause_ns(*deaths) : 0);
    tt_members_lost(&rt->membership.members, news->task);
}

// Nobody can start processes any more.
static void
lose_all(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    rt->local->is_lost = 1;
    m->must_fail = 1;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tt_members_lost(&m->members, n);
        rt->local->node[n].pid = 0;
    }
    if (m->on_event != NULL)
        m->on_event(m->self, "the process that starts nodes has ended, and all nodes with it");
}

static void
hear_host(tti_runtime *rt)
{
    tt_host_news news;
    while (tt_host_next(rt->job->local->host, &news))
        switch (news.kind) {
        case TT_HOST_STARTED:
            rt->local->node[news.task].pid = news.pid;
            break;
        case TT_HOST_ENDED:
            hear_end(rt, &news);
            break;
        case TT_HOST_LOST:
            lose_all(rt);
            break;
        }
}

static void
begin_anew(tti_runtime *rt, uint32_t n)
{
    tti_local_node *node = &rt->local->node[n];
    tt_error err;
    if (rt->local->is_lost || tt_clock_now(&rt->clock) < node->next_ns ||
        rt->job->local->deaths[n] > (uint32_t)rt->job->spec.restarts)
        return;
    node->has_ended = 0;
    if (start_process(rt, n, 0, &err) != TT_OK)
        tt_log(TT_LOG_WARN, "node %u does not begin anew: %s", n, err.what);
}

// One that was declared dead may still be there, or one that was invited never come.
static int
must_end(const tti_runtime *rt, uint32_t n)
{
    const tti_local_node *node = &rt->local->node[n];
    tt_member_state state = rt->membership.members.member[n].state;
    if (node->pid <= 0 || (state != TT_MEMBER_DEAD && state != TT_MEMBER_GONE))
        return 0;
    uint64_t age_ns = tt_clock_now(&rt->clock) - node->begun_ns;
    return !node->is_fresh || age_ns > rt->membership.members.timeout_ns;
}

static void
watch(tti_runtime *rt)
{
    hear_host(rt);
    if (tti_stopping(&rt->board))
        return;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_local_node *node = &rt->local->node[n];
        tt_member_state state = rt->membership.members.member[n].state;
        if (state == TT_MEMBER_HERE || state == TT_MEMBER_BACK)
            node->is_fresh = 0;
        if (must_end(rt, n) && !node->is_killed) {
            node->is_killed = 1;
            tt_host_kill(rt->job->local->host, n);
        } else if (node->pid == 0 && state == TT_MEMBER_GONE)
            begin_anew(rt, n);
    }
}

static int
cause(const tti_runtime *rt, uint32_t n, char *out, size_t size)
{
    const tti_local_node *node = &rt->local->node[n];
    if (!node->has_ended)
        return 0;
    if (node->wait_status < 0)
        (void)snprintf(out, size, "its process could not be started");
    else if (WIFSIGNALED(node->wait_status))
        (void)snprintf(out, size, "its process was ended by signal %d (SIG%s)",
                       WTERMSIG(node->wait_status), sigabbrev_np(WTERMSIG(node->wait_status)));
    else
        (void)snprintf(out, size, "its process ended with code %d", WEXITSTATUS(node->wait_status));
    return 1;
}

// ---- ending ------------------------------------------------------------------------------------

static int
some_are_there(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->local->node[n].pid != 0)
            return 1;
    return 0;
}

// Each ends when it has heard that the master knows that its node has ended.
static void
stop(tti_runtime *rt)
{
    uint64_t begin_ns = tt_clock_now(&rt->clock);
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->newest->view->is_gone[n] && rt->local->node[n].pid != 0)
            tt_host_kill(rt->job->local->host, n);
    for (int killed = 0; some_are_there(rt) && !rt->local->is_lost;) {
        hear_host(rt);
        tti_membership_exchange(rt);
        uint64_t waited_ns = tt_clock_now(&rt->clock) - begin_ns;
        // The process that starts them stands still: they end when it is closed.
        if (!some_are_there(rt) || waited_ns > 2 * STOP_MS * UINT64_C(1000000))
            break;
        if (!killed && waited_ns > STOP_MS * UINT64_C(1000000)) {
            killed = 1;
            for (uint32_t n = 0; n < rt->node_count; n++)
                tt_host_kill(rt->job->local->host, n);
        }
        tti_runtime_wait(rt, 0, 1000000);
    }
}

static void
close_nodes(tti_runtime *rt)
{
    tti_local *local = rt->local;
    if (local == NULL)
        return;
    if (local->mesh >= 0)
        (void)close(local->mesh);
    if (local->control >= 0)
        (void)close(local->control);
    tt_mem_free(local->node);
    tt_mem_free(local);
    rt->local = NULL;
}

const tti_engine tti_engine_local = {.open = open_meshes,
                                     .list_gone = list_gone,
                                     .goes_back = 1,
                                     .start = start_nodes,
                                     .watch = watch,
                                     .cause = cause,
                                     .stop = stop,
                                     .close = close_nodes};

const tti_engine *
tti_engine_of(const tt_job *job)
{
    if (job->spec.driver != TTI_DRIVER_MESSAGES)
        return NULL;
    if (job->sim != NULL)
        return &tti_engine_simulated;
    return job->local != NULL ? &tti_engine_local : NULL;
}
