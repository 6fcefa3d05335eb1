// Fibers in turns on virtual time: threads, events and clocks of a simulation.
#include "sim.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

// Deep enough for SQLite and the tuner's fit; touched only as far as it is used.
enum { STACK_BYTES = 1 << 20 };

static _Thread_local tt_sim *entered; // of a fiber's first step

uint64_t
tti_sim_after(const tt_sim *sim, double seconds)
{
    return sim->now_ns + (uint64_t)llround(fmax(seconds, 0) * 1e9);
}

// ---- fibers ------------------------------------------------------------------------------------

static void
change_to(tt_sim *sim, tti_fiber *fiber)
{
    TT_ASSERT(sim->running == NULL && !fiber->done);
    sim->counters.switches++;
    sim->running = fiber;
    entered = sim;
    tti_fiber_change(&sim->loop, &fiber->stack, 0);
}

void
tti_fiber_rest(tti_fiber *fiber)
{
    tt_sim *sim = fiber->sim;
    TT_ASSERT(sim->running == fiber);
    sim->running = NULL;
    tti_fiber_change(&fiber->stack, &sim->loop, 0);
}

static void
body_of_fibers(void)
{
    tt_sim *sim = entered;
    tti_fiber *fiber = sim->running;
    tti_fiber_entered(&sim->loop);
    (void)fiber->body(fiber->argument);
    tti_fiber_settle(fiber);
    fiber->done = 1;
    tt_event_signal(&fiber->ended);
    sim->running = NULL;
    tti_fiber_change(&fiber->stack, &sim->loop, 1);
    TT_ASSERT(0); // nobody changes over to what is done
}

static tti_fiber **
bucket_of(tt_sim *sim, const tt_event *event)
{
    uint64_t mixed = (uint64_t)(uintptr_t)event * 0x9e3779b97f4a7c15u;
    return &sim->buckets[mixed >> (64 - TTI_BUCKET_BITS)];
}

static void
forget_wait(tti_fiber *fiber)
{
    tti_fiber **link = bucket_of(fiber->sim, fiber->waiting_on);
    while (*link != fiber)
        link = &(*link)->next_waiting;
    *link = fiber->next_waiting;
    fiber->waiting_on = NULL;
}

void
tti_fiber_wake(void *self, uint64_t wait)
{
    tti_fiber *fiber = self;
    tt_sim *sim = fiber->sim;
    if (wait != fiber->waits)
        return; // that wait is over
    uint64_t paused_until_ns =
        fiber->host != TT_SIM_NOWHERE ? sim->hosts[fiber->host].paused_until_ns : 0;
    if (paused_until_ns > sim->now_ns) { // it is ready; its host stands still
        tti_agenda_put(&sim->agenda, paused_until_ns, tti_fiber_wake, fiber, wait);
        return;
    }
    if (fiber->waiting_on != NULL)
        forget_wait(fiber);
    fiber->waits++;
    fiber->timed = NULL;
    change_to(sim, fiber);
}

// Everyone who waits for it goes on, at this time, in the order in which they came.
void
tti_event_raise(tt_sim *sim, tt_event *event)
{
    tti_fiber **link = bucket_of(sim, event);
    while (*link != NULL) {
        tti_fiber *fiber = *link;
        if (fiber->waiting_on != event) {
            link = &fiber->next_waiting;
            continue;
        }
        *link = fiber->next_waiting;
        fiber->waiting_on = NULL;
        if (fiber->spins)
            tti_processors_spin_over(&sim->hosts[fiber->host], fiber);
        else
            tti_agenda_put(&sim->agenda, sim->now_ns, tti_fiber_wake, fiber, fiber->waits);
    }
}

static void on_alarm(void *self, uint64_t order);

static void
enter_alarm(tti_alarm *alarm)
{
    if (alarm->entered && alarm->entered_ns <= alarm->until_ns)
        return; // older, so it comes first when they are equal
    alarm->entered = 1;
    alarm->entered_ns = alarm->until_ns;
    alarm->entered_order = alarm->until_order;
    tti_agenda_put_as(&alarm->fiber->sim->agenda, &(tti_item){alarm->until_ns, alarm->until_order,
                                                              alarm, on_alarm, alarm->until_order});
}

static void
on_alarm(void *self, uint64_t order)
{
    tti_alarm *alarm = self;
    tti_fiber *fiber = alarm->fiber;
    if (!alarm->entered || order != alarm->entered_order)
        return; // an earlier one was entered meanwhile
    alarm->entered = 0;
    if (fiber->timed == alarm && order == alarm->until_order)
        tti_fiber_wake(fiber, fiber->waits);
    else if (fiber->timed == alarm)
        enter_alarm(alarm);
}

// Until then, unless something else wakes it.
static void
rest_until(tti_fiber *fiber, tti_alarm *alarm, uint64_t until_ns)
{
    alarm->fiber = fiber;
    alarm->until_ns = until_ns;
    alarm->until_order = tti_agenda_order(&fiber->sim->agenda);
    fiber->timed = alarm;
    enter_alarm(alarm);
    tti_fiber_rest(fiber);
}

static void
enter_wait(tti_fiber *fiber, tt_event *event)
{
    tti_fiber **last = bucket_of(fiber->sim, event);
    while (*last != NULL)
        last = &(*last)->next_waiting;
    *last = fiber;
    fiber->next_waiting = NULL;
    fiber->waiting_on = event;
}

// Until the event or the time; whichever comes first.
static void
rest_for(tti_fiber *fiber, tt_event *event, tti_alarm *alarm, uint64_t until_ns)
{
    enter_wait(fiber, event);
    rest_until(fiber, alarm, until_ns);
}

// Likewise, but on a core, as long as it has one.
static void
spin_for(tti_fiber *fiber, tt_event *event, double seconds)
{
    enter_wait(fiber, event);
    fiber->timed = NULL;
    fiber->spins = 1;
    fiber->spin_over = 0;
    tti_processors_begin(&fiber->sim->hosts[fiber->host], fiber, seconds, 1, TTI_TASK_SPIN);
    tti_fiber_rest(fiber);
    fiber->spins = 0;
}

static void
work(tti_fiber *fiber, double seconds, uint32_t threads, tti_task_kind kind)
{
    if (!(seconds > 0) || fiber->host == TT_SIM_NOWHERE)
        return;
    tti_processors_begin(&fiber->sim->hosts[fiber->host], fiber, seconds, threads, kind);
    tti_fiber_rest(fiber);
}

void
tti_fiber_settle(tti_fiber *fiber)
{
    double owed = fiber->owed_s;
    fiber->owed_s = 0;
    work(fiber, owed, 1, TTI_TASK_WORK);
}

// ---- threads and events ------------------------------------------------------------------------

static void
add_fiber(tt_sim *sim, tti_fiber *fiber)
{
    fiber->next = sim->first;
    if (sim->first != NULL)
        sim->first->previous = fiber;
    sim->first = fiber;
    sim->counters.fibers++;
}

static void
remove_fiber(tti_fiber *fiber)
{
    if (fiber->next != NULL)
        fiber->next->previous = fiber->previous;
    if (fiber->previous != NULL)
        fiber->previous->next = fiber->next;
    else
        fiber->sim->first = fiber->next;
    tti_fiber_close(&fiber->stack);
    fiber->done = 1;
    fiber->waits++; // entries of the agenda may still name it
    fiber->timed = NULL;
    fiber->next = fiber->sim->buried;
    fiber->sim->buried = fiber;
}

static tti_fiber *
make_fiber(tt_sim *sim, void *(*body)(void *argument), void *argument)
{
    tti_fiber *fiber = tt_mem_zalloc(1, sizeof *fiber);
    if (fiber == NULL || tti_fiber_open(&fiber->stack, STACK_BYTES, body_of_fibers) != TT_OK) {
        tt_mem_free(fiber);
        return NULL;
    }
    fiber->sim = sim;
    fiber->body = body;
    fiber->argument = argument;
    fiber->host = sim->running != NULL ? sim->running->host : TT_SIM_NOWHERE;
    add_fiber(sim, fiber);
    tti_agenda_put(&sim->agenda, sim->now_ns, tti_fiber_wake, fiber, fiber->waits);
    return fiber;
}

static tt_status
start_thread(void *self,
             tt_thread *thread,
             const char *name,
             void *(*body)(void *argument),
             void *argument,
             tt_error *err)
{
    tti_fiber *fiber = make_fiber(self, body, argument);
    if (fiber == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, "simulate fewer nodes",
                            "no memory for the fiber '%s'", name);
    thread->turn = fiber;
    thread->running = 1;
    return TT_OK;
}

static void
join_thread(void *self, tt_thread *thread)
{
    tti_fiber *fiber = thread->turn, *caller = ((tt_sim *)self)->running;
    while (!fiber->done)
        rest_for(caller, &fiber->ended, &caller->sleeping, UINT64_MAX);
    remove_fiber(fiber);
    thread->turn = NULL;
}

// Its stack stays until it is joined; nobody changes over to it any more.
void
tti_fiber_kill(tti_fiber *fiber)
{
    tt_sim *sim = fiber->sim;
    TT_ASSERT(fiber != sim->running);
    if (fiber->done)
        return;
    if (fiber->waiting_on != NULL)
        forget_wait(fiber);
    if (fiber->sleeps_on != NULL)
        fiber->sleeps_on->waiters--;
    if (fiber->works)
        tti_processors_drop(&sim->hosts[fiber->host], fiber);
    fiber->waiting_on = NULL;
    fiber->sleeps_on = NULL;
    fiber->works = 0;
    fiber->spins = fiber->spin_over = 0;
    fiber->owed_s = 0;
    fiber->waits++; // entries of the agenda still name the wait it was in
    fiber->timed = NULL;
    fiber->done = 1;
    fiber->ended.word++;
    tti_event_raise(sim, &fiber->ended);
}

void
tt_sim_kill(tt_sim *sim, tt_thread *thread)
{
    TT_UNUSED(sim);
    if (thread->running)
        tti_fiber_kill(thread->turn);
}

void
tti_sim_crash(tt_sim *sim, uint32_t host)
{
    for (tti_fiber *fiber = sim->first; fiber != NULL; fiber = fiber->next)
        if (fiber->host == host)
            tti_fiber_kill(fiber);
    tti_processors_clear(&sim->hosts[host]);
    tti_mesh_crash(sim->meshes, host);
    sim->counters.crashes++;
}

// ---- waking ------------------------------------------------------------------------------------

// Whether the core is idle on which the fiber will go on.
static int
wakes_on_idle_core(const tti_fiber *fiber)
{
    return tti_processors_would_be_idle(&fiber->sim->hosts[fiber->host], fiber);
}

// Who sleeps on it on a host that costs something; NULL: nobody.
static const tti_fiber *
sleeper_on(tt_sim *sim, const tt_event *event)
{
    const tti_fiber *fiber = *bucket_of(sim, event);
    while (fiber != NULL && (fiber->sleeps_on != event || fiber->host == TT_SIM_NOWHERE))
        fiber = fiber->next_waiting;
    return fiber;
}

static void
signal_event(void *self, tt_event *event)
{
    tt_sim *sim = self;
    const tti_fiber *sleeper = event->waiters > 0 ? sleeper_on(sim, event) : NULL;
    if (sim->running != NULL && sleeper != NULL && wakes_on_idle_core(sleeper))
        sim->running->owed_s += sim->options.signal_s;
    tti_event_raise(sim, event);
}

// It looks at what woke it when it has a core.
static void
wake_up(tti_fiber *fiber)
{
    const tt_sim_options *options = &fiber->sim->options;
    if (fiber->host == TT_SIM_NOWHERE)
        return;
    if (wakes_on_idle_core(fiber))
        work(fiber, options->wake_s, 1, TTI_TASK_WAKE);
    else
        work(fiber, options->change_s, 1, TTI_TASK_WORK);
}

static int
wait_for_event(void *self, tt_event *event, uint32_t seen, uint32_t spin_count, uint64_t timeout_ns)
{
    tt_sim *sim = self;
    tti_fiber *fiber = sim->running;
    tti_fiber_settle(fiber);
    if (tt_event_read(event) == seen && spin_count > 0 && fiber->host != TT_SIM_NOWHERE)
        spin_for(fiber, event, spin_count * sim->options.pause_s);
    if (tt_event_read(event) != seen || timeout_ns == 0)
        return tt_event_read(event) != seen;
    event->waiters++;
    fiber->sleeps_on = event;
    rest_for(fiber, event, &fiber->sleeping, sim->now_ns + timeout_ns);
    fiber->sleeps_on = NULL;
    event->waiters--;
    wake_up(fiber);
    return tt_event_read(event) != seen;
}

// ---- the simulation ----------------------------------------------------------------------------

static void
free_simulation(tt_sim *sim)
{
    if (sim == NULL)
        return;
    for (uint32_t h = 0; sim->hosts != NULL && h < sim->options.host_count; h++)
        tti_processors_close(&sim->hosts[h]);
    tt_mem_free(sim->hosts);
    tt_mem_free(sim->faults);
    tt_mem_free(sim->fault_count);
    tti_heap_free(&sim->agenda.heap);
    tt_mem_free(sim);
}

static tt_status
open_hosts(tt_sim *sim, const tt_sim_host *hosts)
{
    for (uint32_t h = 0; h < sim->options.host_count; h++) {
        TT_ASSERT(hosts[h].cores > 0 && hosts[h].speed > 0);
        TT_TRY(tti_processors_open(&sim->hosts[h], sim, &hosts[h]));
    }
    return TT_OK;
}

tt_status
tt_sim_open(const tt_sim_options *options, tt_sim **out, tt_error *err)
{
    *out = NULL;
    tt_sim *sim = tt_mem_zalloc(1, sizeof *sim);
    if (sim != NULL)
        sim->hosts = tt_mem_zalloc(TT_MAX(options->host_count, 1u), sizeof *sim->hosts);
    if (sim != NULL)
        sim->faults = tt_mem_zalloc(TT_MAX(options->fault_count, 1u), sizeof *sim->faults);
    if (sim != NULL)
        sim->fault_count = tt_mem_zalloc(TT_MAX(options->fault_count, 1u), sizeof(uint64_t));
    int there =
        sim != NULL && sim->hosts != NULL && sim->faults != NULL && sim->fault_count != NULL;
    if (there)
        sim->options = *options;
    if (!there || open_hosts(sim, options->hosts) != TT_OK) {
        free_simulation(sim);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for %u simulated hosts",
                            options->host_count);
    }
    if (options->fault_count > 0)
        memcpy(sim->faults, options->faults, options->fault_count * sizeof *sim->faults);
    sim->options.hosts = NULL;
    sim->options.faults = sim->faults;
    double cores = 1;
    for (uint32_t h = 0; h < options->host_count; h++)
        cores = fmax(cores, options->hosts[h].cores);
    sim->turns = (tt_thread_turns){.self = sim,
                                   .start = start_thread,
                                   .join = join_thread,
                                   .signal = signal_event,
                                   .wait = wait_for_event,
                                   .processor_count = (int)cores};
    tti_faults_begin(sim);
    *out = sim;
    return TT_OK;
}

void
tt_sim_close(tt_sim *sim)
{
    if (sim == NULL)
        return;
    TT_ASSERT(sim->first == NULL && sim->meshes == NULL);
    while (sim->buried != NULL) {
        tti_fiber *next = sim->buried->next;
        tt_mem_free(sim->buried);
        sim->buried = next;
    }
    free_simulation(sim);
}

typedef struct first_body {
    void (*body)(void *argument);
    void *argument;
} first_body;

static void *
run_first(void *self)
{
    first_body *first = self;
    first->body(first->argument);
    return NULL;
}

// What is left of a simulation that stands still; its fibers' memory is not to be had back.
static tt_status
stands_still(tt_sim *sim, tt_error *err)
{
    uint32_t count = 0;
    while (sim->first != NULL) {
        remove_fiber(sim->first);
        count++;
    }
    return tt_error_set(err, TT_PEER, NULL, NULL,
                        "the simulation stands still at %.6f s: %u fibers wait for each other",
                        1e-9 * (double)sim->now_ns, count);
}

tt_status
tt_sim_run(tt_sim *sim, void (*body)(void *argument), void *argument, tt_error *err)
{
    first_body first = {body, argument};
    tti_item next;
    tti_fiber_adopt(&sim->loop);
    tti_fiber *fiber = make_fiber(sim, run_first, &first);
    if (fiber == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the first fiber");
    tt_thread_take_turns(&sim->turns);
    while (!fiber->done && tti_agenda_take(&sim->agenda, &next)) {
        // Stands still: waits without an end are entered for the end of time.
        if (next.key == UINT64_MAX)
            break;
        sim->now_ns = next.key;
        sim->counters.events++;
        next.act(next.self, next.tag);
    }
    tt_thread_take_turns(NULL);
    if (!fiber->done)
        return stands_still(sim, err);
    remove_fiber(fiber);
    TT_ASSERT(sim->first == NULL); // all joined
    return TT_OK;
}

static uint64_t
read_true_clock(void *self)
{
    return ((const tt_sim *)self)->now_ns;
}

static uint64_t
read_clock(void *self)
{
    const tt_sim *sim = self;
    if (!sim->skews_clocks || sim->running == NULL || sim->running->host == TT_SIM_NOWHERE)
        return sim->now_ns;
    return sim->now_ns + tti_faults_skew_ns(sim, sim->running->host);
}

tt_clock
tt_sim_clock(tt_sim *sim)
{
    return (tt_clock){read_clock, sim};
}

tt_clock
tt_sim_true_clock(tt_sim *sim)
{
    return (tt_clock){read_true_clock, sim};
}

void
tt_sim_settle_on(tt_sim *sim, uint32_t host)
{
    TT_ASSERT(sim->running != NULL && (host < sim->options.host_count || host == TT_SIM_NOWHERE));
    tti_fiber_settle(sim->running);
    sim->running->host = host;
    sim->running->core = NULL;
}

void
tt_sim_owe(tt_sim *sim, double seconds)
{
    if (sim->running != NULL)
        sim->running->owed_s += seconds;
}

void
tt_sim_work(tt_sim *sim, double seconds, uint32_t threads)
{
    tti_fiber_settle(sim->running);
    work(sim->running, seconds, threads, TTI_TASK_WORK);
}

void
tt_sim_watch_hosts(tt_sim *sim, void (*on_host)(void *self, uint32_t host, int up), void *self)
{
    sim->on_host = on_host;
    sim->on_host_self = self;
}

int
tt_sim_host_is_up(const tt_sim *sim, uint32_t host)
{
    return !sim->hosts[host].is_down;
}

void
tt_sim_counters_read(const tt_sim *sim, tt_sim_counters *out)
{
    *out = sim->counters;
}

void
tt_sim_load_read(const tt_sim *sim, tt_sim_load *out)
{
    double now_s = fmax(1e-9 * (double)sim->now_ns, 1e-9);
    *out = (tt_sim_load){0};
    for (uint32_t h = 0; h < sim->options.host_count; h++) {
        const tti_processors *host = &sim->hosts[h];
        out->cores = fmax(out->cores, tti_processors_busy_s(host) / host->core_count / now_s);
        out->network = fmax(out->network, fmax(host->sent_s, host->received_s) / now_s);
    }
    out->network = fmin(out->network, 1); // what was sent last may still be on its way
}

void
tt_sim_trace(tt_sim *sim, const char *format, ...)
{
    if (sim->options.trace == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(sim->options.trace, "%.9f ", 1e-9 * (double)sim->now_ns);
    (void)vfprintf(sim->options.trace, format, arguments);
    (void)fputc('\n', sim->options.trace);
    va_end(arguments);
}
