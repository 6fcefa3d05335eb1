// What waiting costs: two threads on two processors that wake each other, where the one that sleeps
// leaves its processor idle; and a crowd that keeps every processor busy.
#include "calibrate.h"
#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 2001, WARM_UP = 100, ASLEEP_NS = 10000 };

static void
pause_once(void *self)
{
    tt_event *never = self;
    (void)tt_event_wait(never, 0, 63, 0); // 64 turns of a wait that spins
}

typedef struct ping {
    tt_event there, back;
    int asker_on, answerer_on; // processors
    double trip_s[ROUNDS], signal_s[ROUNDS];
} ping;

static void *
answer(void *self)
{
    ping *p = self;
    uint32_t seen = 0;
    (void)tt_thread_pin(p->answerer_on);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        while (!tt_event_wait(&p->there, seen, 0, 1000000000u))
            ; // the other side rings
        seen = tt_event_read(&p->there);
        tt_event_signal(&p->back);
    }
    return NULL;
}

static void *
ask(void *self)
{
    ping *p = self;
    tt_clock clock = tt_clock_monotonic();
    (void)tt_thread_pin(p->asker_on);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t seen = tt_event_read(&p->back);
        // Until it announces in tt_event_wait that it sleeps, and then as long as nodes do: its
        // processor is to be idle, and not on its way there.
        while (tt_load_acquire(&p->there.waiters) == 0)
            tt_cpu_pause();
        uint64_t begin = tt_clock_now(&clock);
        while (tt_clock_now(&clock) - begin < ASLEEP_NS)
            tt_cpu_pause();
        begin = tt_clock_now(&clock);
        tt_event_signal(&p->there);
        uint64_t sent = tt_clock_now(&clock);
        while (!tt_event_wait(&p->back, seen, 0, 1000000000u))
            ; // the other side answers
        p->trip_s[i] = 1e-9 * (double)(tt_clock_now(&clock) - begin);
        p->signal_s[i] = 1e-9 * (double)(sent - begin);
    }
    return NULL;
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The least of these is luck, not price: the middle counts.
static double
middle(double *seconds)
{
    qsort(seconds + WARM_UP, ROUNDS - WARM_UP, sizeof *seconds, ascending);
    return seconds[WARM_UP + (ROUNDS - WARM_UP) / 2];
}

static tt_status
play(ping *p, tt_error *err)
{
    tt_thread answerer = {0}, asker = {0};
    TT_TRY(tt_thread_start(&answerer, "tt-calibrate", answer, p, err));
    tt_status status = tt_thread_start(&asker, "tt-calibrate", ask, p, err);
    if (status != TT_OK)
        (void)ask(p); // nobody else would let the answerer go
    tt_thread_join(&answerer);
    if (status == TT_OK)
        tt_thread_join(&asker);
    return status;
}

// ---- every core busy ---------------------------------------------------------------------------

enum { CROWD_MAX = 64, CROWD_PER_CORE = 4, PASSES = 10000, CROWDS = 5 };

typedef struct crowd {
    uint32_t size, passes;
    tt_event called[CROWD_MAX];
    uint32_t passed; // relaxed
    int over;        // release
} crowd;

typedef struct member {
    crowd *crowd;
    uint32_t index;
    tt_rng rng;
    tt_thread thread;
} member;

// Whoever is called calls somebody else, as often as it was called.
static void *
call_each_other(void *self)
{
    member *me = self;
    crowd *all = me->crowd;
    uint32_t seen = 0;
    while (!tt_load_acquire(&all->over)) { // released below, by whoever passed last
        (void)tt_event_wait(&all->called[me->index], seen, 0, 10000000u);
        uint32_t calls = tt_event_read(&all->called[me->index]) - seen;
        seen += calls;
        for (uint32_t i = 0; i < calls; i++)
            tt_event_signal(&all->called[tt_rng_below(&me->rng, all->size)]);
        if (calls > 0 && tt_add_relaxed(&all->passed, calls) + calls >= all->passes)
            tt_store_release(&all->over, 1);
    }
    return NULL;
}

// Core seconds of one time that a thread sleeps and is woken, among so many that no core is ever
// idle.
static tt_status
measure_crowd(double *seconds, tt_error *err)
{
    static crowd all;
    static member members[CROWD_MAX];
    uint32_t cores = (uint32_t)tt_thread_processor_count();
    all = (crowd){.size = TT_MIN(CROWD_PER_CORE * cores, (uint32_t)CROWD_MAX)};
    all.passes = PASSES * cores;
    tt_clock clock = tt_clock_monotonic();
    uint32_t started = 0;
    tt_status status = TT_OK;
    for (; started < all.size && status == TT_OK; started += status == TT_OK) {
        members[started] = (member){.crowd = &all, .index = started};
        tt_rng_init(&members[started].rng, 1, TT_RNG_SIMULATION, 4 + started);
        status = tt_thread_start(&members[started].thread, "tt-calibrate", call_each_other,
                                 &members[started], err);
    }
    uint64_t begin = tt_clock_now(&clock);
    if (status != TT_OK)
        tt_store_release(&all.over, 1);
    for (uint32_t i = 0; i < TT_MIN(2 * cores, started); i++)
        tt_event_signal(&all.called[i]);
    for (uint32_t i = 0; i < started; i++)
        tt_thread_join(&members[i].thread);
    *seconds = 1e-9 * (double)(tt_clock_now(&clock) - begin) * cores / TT_MAX(all.passed, 1u);
    return status;
}

tt_status
tti_calibrate_waits(tti_simulation_spec *out, tt_error *err)
{
    static ping apart;
    tt_event never = {0};
    apart = (ping){.answerer_on = 1 % tt_thread_processor_count()};
    out->pause = tti_calibrate_call_s(pause_once, &never) / 64;
    out->change = INFINITY;
    for (int i = 0; i < CROWDS; i++) {
        double seconds;
        TT_TRY(measure_crowd(&seconds, err));
        out->change = fmin(out->change, seconds);
    }
    out->wake = out->change;
    if (apart.answerer_on == apart.asker_on)
        return TT_OK; // one processor: nobody sleeps elsewhere
    TT_TRY(play(&apart, err));
    out->signal = middle(apart.signal_s);
    out->wake = 0.5 * middle(apart.trip_s);
    return TT_OK;
}
