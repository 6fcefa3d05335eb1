// Processor sharing on one host. All runnable threads are served alike, so a task is done when the
// host's service per thread has grown by its work: one number a host instead of one a task.
#include "sim.h"
#include <math.h>

static int
before(const tti_task *a, const tti_task *b)
{
    return a->finish != b->finish ? a->finish < b->finish : a->order < b->order;
}

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

static void
push(tti_processors *p, tti_task task)
{
    if (p->count == p->capacity) {
        uint32_t wanted = TT_MAX(2 * p->capacity, 8u);
        tti_task *grown = tt_mem_realloc(p->heap, wanted * sizeof *grown);
        TT_ASSERT(grown != NULL);
        p->heap = grown;
        p->capacity = wanted;
    }
    uint32_t place = p->count++;
    while (place > 0 && before(&task, &p->heap[(place - 1) / 2])) {
        p->heap[place] = p->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    p->heap[place] = task;
}

static tti_task
pop(tti_processors *p)
{
    tti_task top = p->heap[0], last = p->heap[--p->count];
    uint32_t place = 0;
    for (;;) { // down to where `last` belongs
        uint32_t child = 2 * place + 1;
        if (child >= p->count)
            break;
        if (child + 1 < p->count && before(&p->heap[child + 1], &p->heap[child]))
            child++;
        if (!before(&p->heap[child], &last))
            break;
        p->heap[place] = p->heap[child];
        place = child;
    }
    p->heap[place] = last;
    return top;
}

static void on_due(void *self, uint64_t version);

// When the first task will be done, as things are now.
static void
plan(tti_processors *p)
{
    p->version++;
    if (p->count == 0 || p->paused_until_ns > 0)
        return;
    double left_s = fmax(p->heap[0].finish - p->service, 0) / rate_of(p);
    tti_agenda_put(&p->sim->agenda, tti_sim_after(p->sim, left_s), on_due, p, p->version);
}

static void
on_due(void *self, uint64_t version)
{
    tti_processors *p = self;
    if (version != p->version)
        return; // things have changed since
    bring_up_to_date(p);
    tti_task done = pop(p);
    // What rounding to nanoseconds left over or took.
    p->service = fmax(p->service, done.finish);
    p->runnable -= done.threads;
    done.fiber->works = 0;
    plan(p);
    tti_fiber_wake(done.fiber, done.fiber->waits);
}

void
tti_processors_begin(tti_processors *p, tti_fiber *fiber, double seconds, uint32_t threads)
{
    bring_up_to_date(p);
    p->runnable += threads;
    fiber->works = 1;
    push(p, (tti_task){p->service + seconds, p->order++, fiber, threads});
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
    uint32_t count = p->count;
    p->count = 0;
    for (uint32_t i = 0; i < count; i++) { // what is read lies behind what is written
        tti_task task = p->heap[i];
        if (task.fiber == fiber)
            p->runnable -= task.threads;
        else
            push(p, task);
    }
    plan(p);
}

void
tti_processors_clear(tti_processors *p)
{
    bring_up_to_date(p);
    p->count = p->runnable = 0;
    p->paused_until_ns = 0;
    plan(p);
}
