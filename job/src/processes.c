// Nodes that are processes, the master's side: see processes.h. Whose process ends is dead at once;
// who is silent is killed, so that two processes are never one node; both are begun anew, a limited
// number of times.
#include "processes.h"
#include "runtime.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { STOP_MS = 5000 };

// What ends sooner after it began will do so again if begun at once; what has lived so long has not
// ended because of how it began.
#define SHORT_LIFE_NS UINT64_C(1000000000)
#define LONG_LIFE_NS  UINT64_C(10000000000)

// After it could not even be asked to begin.
#define NOBODY_THERE_NS UINT64_C(500000000)

// ---- opening -----------------------------------------------------------------------------------

tt_status
tti_processes_open(tt_job *job, const char *run_dir, tt_error *err)
{
    int engine = job->spec.engine;
    if ((engine != TTI_ENGINE_LOCAL && engine != TTI_ENGINE_SSH) || job->starter != NULL)
        return TT_OK;
    tti_starter *starter = tt_mem_zalloc(1, sizeof *starter);
    if (starter != NULL) {
        starter->journal.descriptor = -1;
        starter->deaths = tt_mem_zalloc(job->node_count, sizeof *starter->deaths);
        starter->pid = tt_mem_zalloc(job->node_count, sizeof *starter->pid);
    }
    job->starter = starter;
    tt_status status = TT_NOMEM;
    if (starter == NULL || starter->deaths == NULL || starter->pid == NULL)
        (void)tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the nodes");
    else if (engine == TTI_ENGINE_LOCAL)
        status = tti_local_open(job, run_dir, starter, err);
    else
        status = tti_remote_open(job, run_dir, starter, err);
    if (status != TT_OK)
        tti_processes_close(job);
    return status;
}

void
tti_processes_close(tt_job *job)
{
    tti_starter *starter = job->starter;
    if (starter == NULL)
        return;
    if (starter->verbs != NULL)
        starter->verbs->close(starter);
    tti_journal_close(&starter->journal);
    tt_mem_free(starter->deaths);
    tt_mem_free(starter->pid);
    tt_mem_free(starter);
    job->starter = NULL;
}

void
tti_processes_release(tt_job *job)
{
    if (job->starter != NULL && job->starter->inherits)
        job->starter->verbs->release(job->starter);
    tti_processes_close(job);
}

tt_status
tti_processes_name(const char *run_dir, char *name, size_t size, tt_error *err)
{
    struct stat directory;
    if (stat(run_dir, &directory) != 0)
        return tt_error_set(err, TT_NOTFOUND, run_dir, NULL, "there is no such run");
    (void)snprintf(name, size, "trimtab/%llx/%llx", (unsigned long long)directory.st_dev,
                   (unsigned long long)directory.st_ino);
    return TT_OK;
}

int
tti_processes_where(const tti_runtime *rt, uint32_t n, int *pid, char *host, size_t size)
{
    const tti_starter *starter = rt->job->starter;
    if (starter == NULL || rt->started == NULL)
        return 0;
    (void)snprintf(host, size, "%s", starter->verbs->host_of(starter, n));
    *pid = TT_MAX(rt->started->node[n].pid, 0);
    return 1;
}

uint64_t
tti_processes_refused(const tti_runtime *rt)
{
    const tti_starter *starter = rt->job->starter;
    return starter != NULL && starter->verbs->refused != NULL ? starter->verbs->refused(starter)
                                                              : 0;
}

int
tti_processes_hosts(const tti_runtime *rt, uint16_t *host)
{
    const tti_starter *starter = rt->job->starter;
    for (uint32_t n = 0; starter != NULL && n < rt->node_count; n++) {
        host[n] = 0;
        while (strcmp(starter->verbs->host_of(starter, host[n]),
                      starter->verbs->host_of(starter, n)) != 0)
            host[n]++;
    }
    return starter != NULL;
}

static tt_status
open_meshes(tti_runtime *rt, tt_error *err)
{
    tti_processes *started = tt_mem_zalloc(1, sizeof *started);
    if (started == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    rt->started = started;
    started->node = tt_mem_zalloc(rt->node_count, sizeof *started->node);
    if (started->node == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    return rt->job->starter->verbs->open_meshes(rt, err);
}

// They have ended so often that they are not begun any more, or nobody can start them now.
static void
list_gone(const tti_runtime *rt, uint8_t *is_gone)
{
    tti_starter *starter = rt->job->starter;
    if (starter->verbs->settle != NULL)
        starter->verbs->settle(starter);
    for (uint32_t n = 0; n < rt->node_count; n++)
        is_gone[n] = starter->deaths[n] > (uint32_t)rt->job->spec.restarts ||
                     (starter->verbs->can_start != NULL && !starter->verbs->can_start(starter, n));
}

// ---- starting ----------------------------------------------------------------------------------

// With attempt 0 it asks for what it is to do.
static tt_status
start_process(tti_runtime *rt, uint32_t n, uint32_t attempt, tt_error *err)
{
    tti_node_process *node = &rt->started->node[n];
    tt_archive bytes = {0};
    TT_ARCHIVE(&bytes, attempt);
    if (attempt != 0) {
        tti_order order = tti_command_first(rt, n);
        tti_order_write(&order, NULL, rt->newest, &bytes);
    }
    tt_status status = bytes.status;
    if (status == TT_OK)
        status = rt->job->starter->verbs->start(rt, n, bytes.bytes, bytes.count, err);
    else
        (void)tt_error_set(err, status, NULL, NULL, "no memory to start node %u", n);
    tt_archive_fini(&bytes);
    node->begun_ns = tt_clock_now(&rt->clock);
    node->is_fresh = attempt == 0;
    node->is_killed = 0;
    node->pid = status == TT_OK ? -1 : 0;
    if (status != TT_OK)
        node->next_ns = node->begun_ns + NOBODY_THERE_NS;
    return status;
}

// They are at work; who has ended since the last master heard of it is dead.
static void
take_nodes(tti_runtime *rt)
{
    const tti_starter *starter = rt->job->starter;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_node_process *node = &rt->started->node[n];
        node->begun_ns = tt_clock_now(&rt->clock);
        node->pid = starter->pid[n];
        if (node->pid != 0 || rt->newest->view->is_gone[n])
            continue;
        node->has_ended = 1;
        node->wait_status = TTI_UNSEEN;
        tt_members_lost(&rt->membership.members, n);
    }
}

static tt_status
start_nodes(tti_runtime *rt, tt_error *err)
{
    const tt_ps_view *view = rt->newest->view;
    if (rt->inherits) {
        take_nodes(rt);
        return TT_OK;
    }
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

// One that went with its host did not end by itself, and how often a host is launched anew is
// looked after where that is done (remote.c).
static void
count_death(tti_runtime *rt, uint32_t n)
{
    tti_node_process *node = &rt->started->node[n];
    if (node->wait_status == TTI_HOST_LOST)
        return;
    uint64_t now_ns = tt_clock_now(&rt->clock), lived_ns = now_ns - node->begun_ns;
    uint32_t *deaths = &rt->job->starter->deaths[n];
    *deaths = lived_ns < LONG_LIFE_NS ? *deaths + 1 : 1;
    node->next_ns = now_ns + (lived_ns < SHORT_LIFE_NS ? restart_pause_ns(*deaths) : 0);
}

static void
hear_end(tti_runtime *rt, const tt_host_news *news)
{
    tti_node_process *node = &rt->started->node[news->task];
    if (node->pid > 0 && news->pid > 0 && node->pid != news->pid)
        return; // of nodes that were before these
    node->pid = 0;
    node->wait_status = news->wait_status;
    node->has_ended = 1;
    tti_membership_exchange(rt); // what it said last
    if (tti_stopping(&rt->board))
        return;
    count_death(rt, news->task);
    tt_members_lost(&rt->membership.members, news->task);
}

// Nobody can start processes any more.
static void
lose_all(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    rt->started->is_lost = 1;
    m->must_fail = 1;
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tt_members_lost(&m->members, n);
        rt->started->node[n].pid = 0;
    }
    if (m->on_event != NULL)
        m->on_event(m->self, "the process that starts nodes has ended, and all nodes with it");
}

static void
hear_host(tti_runtime *rt)
{
    tt_host_news news;
    while (rt->job->starter->verbs->next(rt->job->starter, &news))
        switch (news.kind) {
        case TT_HOST_STARTED:
            rt->started->node[news.task].pid = news.pid;
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
    tti_node_process *node = &rt->started->node[n];
    tt_error err;
    const tti_starter *starter = rt->job->starter;
    if (rt->started->is_lost || tt_clock_now(&rt->clock) < node->next_ns ||
        starter->deaths[n] > (uint32_t)rt->job->spec.restarts ||
        (starter->verbs->can_start != NULL && !starter->verbs->can_start(starter, n)))
        return;
    node->has_ended = 0;
    if (start_process(rt, n, 0, &err) != TT_OK)
        tt_log(TT_LOG_WARN, "node %u does not begin anew: %s", n, err.what);
}

// One that was declared dead may still be there, or one that was invited never come.
static int
must_end(const tti_runtime *rt, uint32_t n)
{
    const tti_node_process *node = &rt->started->node[n];
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
        tti_node_process *node = &rt->started->node[n];
        tt_member_state state = rt->membership.members.member[n].state;
        if (state == TT_MEMBER_HERE || state == TT_MEMBER_BACK)
            node->is_fresh = 0;
        if (must_end(rt, n) && !node->is_killed) {
            node->is_killed = 1;
            rt->job->starter->verbs->kill(rt->job->starter, n);
        } else if (node->pid == 0 && state == TT_MEMBER_GONE)
            begin_anew(rt, n);
    }
}

static int
cause(const tti_runtime *rt, uint32_t n, char *out, size_t size)
{
    const tti_node_process *node = &rt->started->node[n];
    if (!node->has_ended)
        return 0;
    if (node->wait_status == TTI_UNSEEN)
        (void)snprintf(out, size, "its process ended while nobody looked after it");
    else if (node->wait_status == TTI_HOST_LOST)
        (void)snprintf(out, size, "its host is lost");
    else if (node->wait_status < 0)
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
        if (rt->started->node[n].pid != 0)
            return 1;
    return 0;
}

// Each ends when it has heard that the master knows that its node has ended.
static void
stop(tti_runtime *rt)
{
    uint64_t begin_ns = tt_clock_now(&rt->clock);
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->newest->view->is_gone[n] && rt->started->node[n].pid != 0)
            rt->job->starter->verbs->kill(rt->job->starter, n);
    for (int killed = 0; some_are_there(rt) && !rt->started->is_lost;) {
        hear_host(rt);
        tti_membership_exchange(rt);
        uint64_t waited_ns = tt_clock_now(&rt->clock) - begin_ns;
        // The process that starts them stands still: they end when it is closed.
        if (!some_are_there(rt) || waited_ns > 2 * STOP_MS * UINT64_C(1000000))
            break;
        if (!killed && waited_ns > STOP_MS * UINT64_C(1000000)) {
            killed = 1;
            for (uint32_t n = 0; n < rt->node_count; n++)
                rt->job->starter->verbs->kill(rt->job->starter, n);
        }
        tti_runtime_wait(rt, 0, 1000000);
    }
}

static void
close_nodes(tti_runtime *rt)
{
    if (rt->started == NULL)
        return;
    if (rt->job->starter->verbs->close_meshes != NULL)
        rt->job->starter->verbs->close_meshes(rt->job->starter);
    tt_mem_free(rt->started->node);
    tt_mem_free(rt->started);
    rt->started = NULL;
}

const tti_engine tti_engine_processes = {.open = open_meshes,
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
    return job->starter != NULL ? &tti_engine_processes : NULL;
}
