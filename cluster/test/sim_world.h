// A simulation for tests, and workers that sleep, work and note when they were done.
#ifndef TT_SIM_WORLD_H
#define TT_SIM_WORLD_H

#include "tt/cluster.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { FIBERS_MAX = 32 };

typedef struct world {
    tt_sim *sim;
    tt_clock clock;
    tt_mesh *mesh;
    tt_event event;
    double seconds[FIBERS_MAX]; // when each was done
    uint64_t print;
    uint64_t seed;
} world;

typedef struct worker {
    world *w;
    tt_thread thread;
    uint32_t index, host, threads;
    double begin_s, work_s;
} worker;

static inline double
now_s(const world *w)
{
    return 1e-9 * (double)tt_clock_now(&w->clock);
}

static inline void
sleep_s(world *w, double seconds)
{
    tt_event never = {0};
    TT_UNUSED(w);
    (void)tt_event_wait(&never, 0, 0, (uint64_t)llround(1e9 * seconds));
}

static inline void
run_world(world *w, const tt_sim_options *options, void (*body)(void *argument))
{
    tt_error err = {0};
    assert_int_equal(tt_sim_open(options, &w->sim, &err), TT_OK);
    w->clock = tt_sim_clock(w->sim);
    assert_int_equal(tt_sim_run(w->sim, body, w, &err), TT_OK);
    tt_sim_close(w->sim);
}

static inline void
start(worker *one, void *(*body)(void *argument))
{
    tt_error err = {0};
    assert_int_equal(tt_thread_start(&one->thread, "worker", body, one, &err), TT_OK);
}

static inline void *
work(void *self)
{
    worker *one = self;
    sleep_s(one->w, one->begin_s);
    tt_sim_settle_on(one->w->sim, one->host);
    tt_sim_work(one->w->sim, one->work_s, one->threads);
    one->w->seconds[one->index] = now_s(one->w);
    return NULL;
}

static const worker *plan;
static uint32_t planned;

static inline void
work_all(void *self)
{
    world *w = self;
    worker all[FIBERS_MAX];
    for (uint32_t i = 0; i < planned; i++) {
        all[i] = plan[i];
        all[i].w = w;
        all[i].index = i;
        start(&all[i], work);
    }
    for (uint32_t i = 0; i < planned; i++)
        tt_thread_join(&all[i].thread);
}

#endif
