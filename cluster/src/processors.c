// The cores of one host, as an ordinary kernel deals them out: a thread goes back to the core it
// was on, for what it has in the caches; who has a core keeps it until it waits, the others queue
// there, first come, first served; a slice of time ends the turn of who does not wait.
//
// So a core may be idle while threads queue at another. They are helped out as Linux does it: at
// once where the host has little to do, and otherwise only who has waited so long that the caches
// are cold anyway, or when a slice ends (its select_idle_sibling, task_hot and tick).
//
// A core stays with its fiber from one task to the next of the same instant, as a thread stays on
// its processor. A spinning wait is a task of as many pauses: while it spins nobody else has the
// core, and one that is not on a core does not see that it need not wait any longer. Waking on an
// idle core is a task, too: nobody else has the core meanwhile, and it does nothing.
#include "sim.h"
#include <math.h>

static const double SLICE_S = 3e-3;             // of Linux's order
enum { HOT_NS = 500000, WINDOW_NS = 32000000 }; // likewise: sched_migration_cost, half-life of load
// Busy share of one core of very many above which nobody looks for an idle one; see has_much_to_do.
static const double MUCH = 0.85;

static double
rate_of(const tti_processors *p)
{
    if (p->paused_until_ns > 0)
        return 0;
    return p->speed / p->slowness * p->cores / p->core_count;
}

// ---- queues ------------------------------------------------------------------------------------

static void
put_last(tti_core *core, tti_task task)
{
    if (core->count == core->capacity) {
        uint32_t wanted = TT_MAX(2 * core->capacity, 8u);
        tti_task *grown = tt_mem_alloc(wanted * sizeof *grown);
        TT_ASSERT(grown != NULL);
        for (uint32_t i = 0; i < core->count; i++)
            grown[i] = core->queue[(core->first + i) % core->capacity];
        tt_mem_free(core->queue);
        core->queue = grown;
        core->capacity = wanted;
        core->first = 0;
    }
    task.queued_ns = core->host->sim->now_ns;
    core->queue[(core->first + core->count++) % core->capacity] = task;
    core->host->queued++;
}

static tti_task
take_first(tti_core *core)
{
    tti_task task = core->queue[core->first];
    core->first = (core->first + 1) % core->capacity;
    core->count--;
    core->host->queued--;
    return task;
}

// ---- cores -------------------------------------------------------------------------------------

static void on_due(void *self, uint64_t version);

// Waking takes its time whatever the host's speed.
static double
rate_on(const tti_core *core)
{
    if (core->task.kind != TTI_TASK_WAKE)
        return rate_of(core->host);
    return core->host->paused_until_ns > 0 ? 0 : 1;
}

static void
bring_up_to_date(tti_core *core)
{
    double seconds = 1e-9 * (double)(core->host->sim->now_ns - core->updated_ns);
    core->updated_ns = core->host->sim->now_ns;
    if (!core->busy)
        return;
    core->task.left_s -= rate_on(core) * seconds;
    core->slice_s -= seconds;
    if (core->task.kind != TTI_TASK_WAKE)
        core->host->busy_s += seconds;
}

// When the task will end, or the slice if others wait for it, as things are now.
static void
plan(tti_core *core)
{
    tti_processors *p = core->host;
    core->version++;
    if (!core->busy || p->paused_until_ns > 0)
        return;
    double left_s = fmax(core->task.left_s, 0) / rate_on(core);
    if (core->count > 0)
        left_s = fmin(left_s, fmax(core->slice_s, 0));
    tti_agenda_put(&p->sim->agenda, tti_sim_after(p->sim, left_s), on_due, core, core->version);
}

static void
occupy(tti_core *core, tti_task task)
{
    bring_up_to_date(core);
    core->busy = 1;
    core->task = task;
    task.fiber->core = core;
    if (task.kind == TTI_TASK_SPIN && task.fiber->spin_over)
        core->task.left_s = 0;
    plan(core);
}

static void
leave(tti_core *core)
{
    bring_up_to_date(core);
    core->busy = 0;
    core->version++;
}

static int
is_idle(const tti_core *core)
{
    return !core->busy && core->kept_for == NULL && core->count == 0;
}

// Whose first in the queue has waited longest; NULL: nobody waits.
static tti_core *
longest_waiting(tti_processors *p)
{
    tti_core *found = NULL;
    for (uint32_t i = 0; i < p->core_count; i++) {
        tti_core *core = &p->core[i];
        if (core->count > 0 && (found == NULL || core->queue[core->first].queued_ns <
                                                     found->queue[found->first].queued_ns))
            found = core;
    }
    return found;
}

// The next of its queue, or somebody who has waited elsewhere so long.
static void
go_on(tti_core *core, uint64_t waited_ns)
{
    tti_processors *p = core->host;
    if (core->busy || core->kept_for != NULL || p->queued == 0)
        return;
    tti_core *from = core->count > 0 ? core : longest_waiting(p);
    if (from != core && p->sim->now_ns - from->queue[from->first].queued_ns < waited_ns)
        return;
    core->slice_s = SLICE_S;
    occupy(core, take_first(from));
}

// Its fiber goes on, and keeps the core if it works on at once.
static void
finish(tti_core *core)
{
    tti_fiber *fiber = core->task.fiber;
    leave(core);
    fiber->works--;
    if (fiber->works == 0) {
        core->kept_for = fiber;
        tti_fiber_wake(fiber, fiber->waits);
        core->kept_for = NULL;
    }
    go_on(core, HOT_NS);
}

static void
end_turn(tti_core *core)
{
    tti_processors *p = core->host;
    put_last(core, core->task);
    leave(core);
    go_on(core, 0);
    for (uint32_t i = 0; i < p->core_count && p->queued > 0; i++)
        if (is_idle(&p->core[i]))
            go_on(&p->core[i], 0);
}

static void
on_due(void *self, uint64_t version)
{
    tti_core *core = self;
    if (version != core->version)
        return; // things have changed since
    bring_up_to_date(core);
    // What rounding to nanoseconds left over does not count.
    if (core->task.left_s / rate_on(core) < 1e-9)
        finish(core);
    else if (core->count > 0)
        end_turn(core);
    else
        plan(core);
}

static int
keeps(const tti_core *core, const tti_fiber *fiber)
{
    return core != NULL && core->kept_for == fiber && !core->busy &&
           (core->slice_s > 0 || core->count == 0);
}

static void
bring_all_up_to_date(tti_processors *p)
{
    for (uint32_t i = 0; i < p->core_count; i++)
        bring_up_to_date(&p->core[i]);
}

static void
plan_all(tti_processors *p)
{
    for (uint32_t i = 0; i < p->core_count; i++)
        plan(&p->core[i]);
}

// Whether nobody looks for an idle core: above 0.85 sqrt(1 - 1 / cores) busy, in the last window
// (Linux's update_idle_cpu_scan: one core or more is looked at below that).
static int
has_much_to_do(tti_processors *p)
{
    uint64_t elapsed_ns = p->sim->now_ns - p->window_ns;
    if (elapsed_ns >= WINDOW_NS) {
        bring_all_up_to_date(p);
        p->load = (p->busy_s - p->window_busy_s) / (1e-9 * (double)elapsed_ns * p->core_count);
        p->window_ns = p->sim->now_ns;
        p->window_busy_s = p->busy_s;
    }
    return p->load > MUCH * sqrt(1 - 1.0 / p->core_count);
}

static uint32_t
crowd_at(const tti_core *core)
{
    return core->count + (core->busy || core->kept_for != NULL);
}

static tti_core *
least_crowded(tti_processors *p)
{
    tti_core *found = &p->core[0];
    for (uint32_t i = 1; i < p->core_count && crowd_at(found) > 0; i++)
        if (crowd_at(&p->core[i]) < crowd_at(found))
            found = &p->core[i];
    return found;
}

// Where a fiber that has no core goes: where it was, if nobody is there; to an idle core, if
// somebody looks for one; where it was.
static tti_core *
core_for(tti_processors *p, const tti_fiber *fiber)
{
    if (fiber->core != NULL && (is_idle(fiber->core) || has_much_to_do(p)))
        return fiber->core;
    tti_core *found = least_crowded(p);
    return fiber->core == NULL || is_idle(found) ? found : fiber->core;
}

static void
enter(tti_core *core, tti_task task)
{
    if (is_idle(core)) {
        core->slice_s = SLICE_S;
        occupy(core, task);
        return;
    }
    put_last(core, task);
    task.fiber->core = core;
    if (core->count > 1)
        return;
    bring_up_to_date(core); // from here on its slice counts
    plan(core);
}

void
tti_processors_begin(
    tti_processors *p, tti_fiber *fiber, double seconds, uint32_t threads, tti_task_kind kind)
{
    const tti_task task = {.left_s = seconds, .fiber = fiber, .kind = kind};
    fiber->works = threads;
    if (keeps(fiber->core, fiber))
        occupy(fiber->core, task);
    else
        enter(core_for(p, fiber), task);
    tti_core *home = fiber->core;
    for (uint32_t i = 1; i < threads; i++)
        enter(least_crowded(p), task);
    fiber->core = home;
}

int
tti_processors_would_be_idle(tti_processors *p, const tti_fiber *fiber)
{
    return is_idle(core_for(p, fiber));
}

void
tti_processors_spin_over(tti_processors *p, tti_fiber *fiber)
{
    fiber->spin_over = 1;
    for (uint32_t i = 0; i < p->core_count; i++) {
        tti_core *core = &p->core[i];
        if (!core->busy || core->task.fiber != fiber)
            continue;
        bring_up_to_date(core);
        core->task.left_s = 0;
        plan(core);
    }
}

double
tti_processors_busy_s(const tti_processors *p)
{
    return p->busy_s;
}

// ---- what goes wrong ---------------------------------------------------------------------------

void
tti_processors_slow(tti_processors *p, double slowness)
{
    bring_all_up_to_date(p);
    p->slowness = slowness;
    plan_all(p);
}

static void
on_resume(void *self, uint64_t tag)
{
    tti_processors *p = self;
    TT_UNUSED(tag);
    if (p->sim->now_ns < p->paused_until_ns)
        return; // another pause lasts longer
    bring_all_up_to_date(p);
    p->paused_until_ns = 0;
    plan_all(p);
}

void
tti_processors_pause(tti_processors *p, uint64_t until_ns)
{
    bring_all_up_to_date(p);
    p->paused_until_ns = TT_MAX(p->paused_until_ns, until_ns);
    plan_all(p);
    tti_agenda_put(&p->sim->agenda, until_ns, on_resume, p, 0);
}

void
tti_processors_drop(tti_processors *p, const tti_fiber *fiber)
{
    for (uint32_t i = 0; i < p->core_count; i++) {
        tti_core *core = &p->core[i];
        for (uint32_t left = core->count; left > 0; left--) { // once round
            tti_task task = take_first(core);
            if (task.fiber != fiber)
                put_last(core, task);
        }
        if (core->busy && core->task.fiber == fiber)
            leave(core);
    }
    for (uint32_t i = 0; i < p->core_count; i++)
        go_on(&p->core[i], HOT_NS);
}

void
tti_processors_clear(tti_processors *p)
{
    p->queued = 0;
    for (uint32_t i = 0; i < p->core_count; i++) {
        p->core[i].count = 0;
        if (p->core[i].busy)
            leave(&p->core[i]);
    }
    p->paused_until_ns = 0;
}

tt_status
tti_processors_open(tti_processors *p, struct tt_sim *sim, const tt_sim_host *host)
{
    uint32_t count = (uint32_t)ceil(host->cores);
    *p = (tti_processors){.sim = sim,
                          .cores = host->cores,
                          .speed = host->speed,
                          .slowness = 1,
                          .core = tt_mem_zalloc(count, sizeof *p->core)};
    if (p->core == NULL)
        return TT_NOMEM;
    p->core_count = count;
    for (uint32_t i = 0; i < count; i++)
        p->core[i].host = p;
    return TT_OK;
}

void
tti_processors_close(tti_processors *p)
{
    for (uint32_t i = 0; p->core != NULL && i < p->core_count; i++)
        tt_mem_free(p->core[i].queue);
    tt_mem_free(p->core);
}
