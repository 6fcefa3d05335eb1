// Processor sharing on one host. All runnable threads are served alike, so a task is done when the
// host's service per thread has grown by its work: one number a host instead of one a task.
#include "sim.h"
#include <math.h>
#include <string.h>

static double
rate_of(const tti_processors *p)
{
    if (p->paused_until_ns > 0)
        return 0;
    return p->speed / p->slowness * fmin(1, p->cores / fmax(p->runnable, 1));
}

static void
bring_up_to_date(tti_processors *p)
{
    p->service += rate_of(p) * 1e-9 * (double)(p->sim->now_ns - p->updated_ns);
    p->updated_ns = p->sim->now_ns;
}

// Service is not negative, and such doubles are in the order of their bits.
static uint64_t
key_of(double finish)
{
    uint64_t key;
    TT_ASSERT(finish >= 0);
    finish += 0.0; // no sign of zero
    memcpy(&key, &finish, sizeof key);
    return key;
}

static double
finish_of(const tti_item *task)
{
    double finish;
    memcpy(&finish, &task->key, sizeof finish);
    return finish;
}

static void on_due(void *self, uint64_t version);

// When the first task will be done, as things are now.
static void
plan(tti_processors *p)
{
    p->version++;
    if (p->tasks.count == 0 || p->paused_until_ns > 0)
        return;
    double left_s = fmax(finish_of(&p->tasks.items[0]) - p->service, 0) / rate_of(p);
    tti_agenda_put(&p->sim->agenda, tti_sim_after(p->sim, left_s), on_due, p, p->version);
}

static void
on_due(void *self, uint64_t version)
{
    tti_processors *p = self;
    if (version != p->version)
        return; // things have changed since
    bring_up_to_date(p);
    tti_item done;
    tti_heap_take(&p->tasks, &done);
    tti_fiber *fiber = done.self;
    // What rounding to nanoseconds left over or took.
    p->service = fmax(p->service, finish_of(&done));
    p->runnable -= (uint32_t)done.tag;
    fiber->works = 0;
    plan(p);
    tti_fiber_wake(fiber, fiber->waits);
}

void
tti_processors_begin(tti_processors *p, tti_fiber *fiber, double seconds, uint32_t threads)
{
    bring_up_to_date(p);
    p->runnable += threads;
    fiber->works = 1;
    tti_item task = {
        .key = key_of(p->service + seconds), .order = p->order++, .self = fiber, .tag = threads};
    tti_heap_put(&p->tasks, &task);
    plan(p);
}

void
tti_processors_spin(tti_processors *p, int begins)
{
    bring_up_to_date(p);
    p->runnable += begins ? 1u : -1u;
    plan(p);
}

void
tti_processors_slow(tti_processors *p, double slowness)
{
    bring_up_to_date(p);
    p->slowness = slowness;
    plan(p);
}

static void
on_resume(void *self, uint64_t tag)
{
    tti_processors *p = self;
    TT_UNUSED(tag);
    if (p->sim->now_ns < p->paused_until_ns)
        return; // another pause lasts longer
    bring_up_to_date(p);
    p->paused_until_ns = 0;
    plan(p);
}

void
tti_processors_pause(tti_processors *p, uint64_t until_ns)
{
    bring_up_to_date(p);
    p->paused_until_ns = TT_MAX(p->paused_until_ns, until_ns);
    plan(p);
    tti_agenda_put(&p->sim->agenda, until_ns, on_resume, p, 0);
}

void
tti_processors_drop(tti_processors *p, const tti_fiber *fiber)
{
    bring_up_to_date(p);
    size_t count = p->tasks.count;
    p->tasks.count = 0;
    for (size_t i = 0; i < count; i++) { // what is read lies behind what is written
        tti_item task = p->tasks.items[i];
        if (task.self == fiber)
            p->runnable -= (uint32_t)task.tag;
        else
            tti_heap_put(&p->tasks, &task);
    }
    plan(p);
}

void
tti_processors_clear(tti_processors *p)
{
    bring_up_to_date(p);
    p->tasks.count = 0;
    p->runnable = 0;
    p->paused_until_ns = 0;
    plan(p);
}
