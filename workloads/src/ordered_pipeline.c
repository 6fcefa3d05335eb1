// The pipeline's one lock guards its state; the three callbacks run without it.
#include "ordered_pipeline.h"
#include <pthread.h>

enum slot_state { EMPTY = 0, FILLED, DONE };

struct pipeline {
    const tti_pipeline_ops *ops;
    void *self;
    char *slots;
    size_t slot_size;
    uint32_t slot_count;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    // guarded by mu
    enum slot_state *state;         // [slot_count]
    uint64_t next_fill, next_drain; // item numbers
    int filling, draining, no_more;
    tt_status status;
};

static void *
slot_of(const struct pipeline *pipe, uint64_t item)
{
    return pipe->slots + (item % pipe->slot_count) * pipe->slot_size;
}

static void
drain_one(struct pipeline *pipe)
{
    uint64_t item = pipe->next_drain;
    pipe->draining = 1;
    (void)pthread_mutex_unlock(&pipe->mu);
    tt_status status = pipe->ops->drain(pipe->self, slot_of(pipe, item));
    (void)pthread_mutex_lock(&pipe->mu);
    pipe->draining = 0;
    pipe->state[item % pipe->slot_count] = EMPTY;
    pipe->next_drain++;
    if (pipe->status == TT_OK)
        pipe->status = status;
    (void)pthread_cond_broadcast(&pipe->changed);
}

static void
fill_and_work(struct pipeline *pipe)
{
    uint64_t item = pipe->next_fill;
    void *slot = slot_of(pipe, item);
    pipe->filling = 1;
    (void)pthread_mutex_unlock(&pipe->mu);
    int some = pipe->ops->fill(pipe->self, slot);
    (void)pthread_mutex_lock(&pipe->mu);
    pipe->filling = 0;
    (void)pthread_cond_broadcast(&pipe->changed);
    if (!some) {
        pipe->no_more = 1;
        return;
    }
    pipe->state[item % pipe->slot_count] = FILLED;
    pipe->next_fill++;
    (void)pthread_mutex_unlock(&pipe->mu);
    pipe->ops->work(pipe->self, slot);
    (void)pthread_mutex_lock(&pipe->mu);
    pipe->state[item % pipe->slot_count] = DONE;
    (void)pthread_cond_broadcast(&pipe->changed);
}

static void *
run(void *self)
{
    struct pipeline *pipe = self;
    (void)pthread_mutex_lock(&pipe->mu);
    while (pipe->status == TT_OK && !(pipe->no_more && pipe->next_drain == pipe->next_fill)) {
        if (!pipe->draining && pipe->state[pipe->next_drain % pipe->slot_count] == DONE)
            drain_one(pipe);
        else if (!pipe->filling && !pipe->no_more &&
                 pipe->state[pipe->next_fill % pipe->slot_count] == EMPTY)
            fill_and_work(pipe);
        else
            (void)pthread_cond_wait(&pipe->changed, &pipe->mu);
    }
    (void)pthread_mutex_unlock(&pipe->mu);
    return NULL;
}

tt_status
tti_pipeline_run(const tti_pipeline_ops *ops,
                 void *self,
                 void *slots,
                 size_t slot_size,
                 uint32_t slot_count,
                 int threads)
{
    TT_ASSERT(slot_count >= 1 && threads >= 1);
    struct pipeline pipe = {
        .ops = ops, .self = self, .slots = slots, .slot_size = slot_size, .slot_count = slot_count};
    tt_thread *others = tt_mem_zalloc((size_t)threads, sizeof *others);
    pipe.state = tt_mem_zalloc(slot_count, sizeof *pipe.state);
    if (others == NULL || pipe.state == NULL) {
        tt_mem_free(others);
        tt_mem_free(pipe.state);
        return TT_NOMEM;
    }
    int rc = pthread_mutex_init(&pipe.mu, NULL) | pthread_cond_init(&pipe.changed, NULL);
    TT_ASSERT(rc == 0);
    // A thread that cannot be had costs speed only.
    for (int i = 0; i < threads - 1; i++)
        if (tt_thread_start(&others[i], "tt-data", run, &pipe, NULL) != TT_OK)
            break;
    (void)run(&pipe);
    for (int i = 0; i < threads - 1; i++)
        tt_thread_join(&others[i]);
    (void)pthread_mutex_destroy(&pipe.mu);
    (void)pthread_cond_destroy(&pipe.changed);
    tt_mem_free(others);
    tt_mem_free(pipe.state);
    return pipe.status;
}
