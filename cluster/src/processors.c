// The cores of one host, as an ordinary kernel deals them out: who has one keeps it until it waits;
// the others queue, first come, first served; a slice of time ends the turn of who does not wait.
//
// A core stays with its fiber from one task to the next of the same instant, as a thread stays on
// its processor. A spinning wait is a task of as many pauses: while it spins nobody else has the
// core, and one that is not on a core does not see that it need not wait any longer.
#include "sim.h"
#include <math.h>

static const double SLICE_S = 3e-3; // of Linux's order

static double
rate_of(const tti_processors *p)
{
    if (p->paused_until_ns > 0)
        return 0;
    return p->speed / p->slowness * p->cores / p->core_count;
}

// ---- the queue ---------------------------------------------------------------------------------

static void
put_last(tti_processors *p, tti_task task)
{
    if (p->count == p->capacity) {
        uint32_t wanted = TT_MAX(2 * p->capacity, 8u);
        tti_task *grown = tt_mem_alloc(wanted * sizeof *grown);
        TT_ASSERT(grown != NULL);
        for (uint32_t i = 0; i < p->count; i++)
            grown[i] = p->queue[(p->first + i) % p->capacity];
        tt_mem_free(p->queue);
        p->queue = grown;
        p->capacity = wanted;
        p->first = 0;
    }
    p->queue[(p->first + p->count++) % p->capacity] = task;
}

static tti_task
take_first(tti_processors *p)
{
    tti_task task = p->queue[p->first];
    p->first = (p->first + 1) % p->capacity;
    p->count--;
    return task;
}

// ---- cores -------------------------------------------------------------------------------------

static void on_due(void *self, uint64_t version);

static void
bring_up_to_date(tti_core *core)
{
    double seconds = 1e-9 * (double)(core->host->sim->now_ns - core->updated_ns);
    core->updated_ns = core->host->sim->now_ns;
    if (!core->busy)
        return;
    core->task.left_s -= rate_of(core->host) * seconds;
    core->slice_s -= seconds;
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
    double left_s = fmax(core->task.left_s, 0) / rate_of(p);
    if (p->count > 0)
        left_s = fmin(left_s, fmax(core->slice_s, 0));
    tti_agenda_put(&p->sim->agenda, tti_sim_after(p->sim, left_s), on_due, core, core->version);
}

static void
occupy(tti_core *core, tti_task task)
{
    bring_up_to_date(core);
    if (!core->busy)
        core->host->running++;
    core->busy = 1;
    core->task = task;
    if (task.spins && task.fiber->spin_over)
        core->task.left_s = 0;
    plan(core);
}

static void
leave(tti_core *core)
{
    bring_up_to_date(core);
    core->busy = 0;
    core->version++;
    core->host->running--;
}

// Gives cores that are free to who waits for one.
static void
deal_out(tti_processors *p)
{
    for (uint32_t i = 0; i < p->core_count && p->count > 0 && p->running < p->core_count; i++) {
        tti_core *core = &p->core[i];
        if (core->busy || core->kept_for != NULL)
            continue;
        core->slice_s = SLICE_S;
        occupy(core, take_first(p));
    }
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
    deal_out(core->host);
}

static void
on_due(void *self, uint64_t version)
{
    tti_core *core = self;
    if (version != core->version)
        return; // things have changed since
    bring_up_to_date(core);
    // What rounding to nanoseconds left over does not count.
    if (core->task.left_s / rate_of(core->host) < 1e-9) {
        finish(core);
        return;
    }
    if (core->host->count > 0) {
        put_last(core->host, core->task);
        leave(core);
        deal_out(core->host);
        return;
    }
    plan(core);
}

static tti_core *
kept_core(tti_processors *p, const tti_fiber *fiber)
{
    for (uint32_t i = 0; i < p->core_count; i++)
        if (p->core[i].kept_for == fiber && !p->core[i].busy && p->core[i].slice_s > 0)
            return &p->core[i];
    return NULL;
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

void
tti_processors_begin(
    tti_processors *p, tti_fiber *fiber, double seconds, uint32_t threads, int spins)
{
    const tti_task task = {.left_s = seconds, .fiber = fiber, .spins = spins};
    tti_core *kept = kept_core(p, fiber);
    uint32_t waited = p->count;
    fiber->works = threads;
    if (kept != NULL)
        occupy(kept, task);
    for (uint32_t i = kept != NULL ? 1 : 0; i < threads; i++)
        put_last(p, task);
    deal_out(p);
    if (waited > 0 || p->count == 0)
        return;
    bring_all_up_to_date(p); // from here on their slices count
    plan_all(p);
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

int
tti_processors_idle(const tti_processors *p, uint32_t beside)
{
    return p->running + p->count + beside < p->core_count;
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
    uint32_t count = p->count;
    for (uint32_t i = 0; i < count; i++) { // once round
        tti_task task = take_first(p);
        if (task.fiber != fiber)
            put_last(p, task);
    }
    for (uint32_t i = 0; i < p->core_count; i++)
        if (p->core[i].busy && p->core[i].task.fiber == fiber)
            leave(&p->core[i]);
    deal_out(p);
}

void
tti_processors_clear(tti_processors *p)
{
    p->count = 0;
    for (uint32_t i = 0; i < p->core_count; i++)
        if (p->core[i].busy)
            leave(&p->core[i]);
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
    tt_mem_free(p->core);
    tt_mem_free(p->queue);
}
