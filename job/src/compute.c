// Loss and gradient of a batch by one or several threads: each takes a share of every piece's rows
// into a gradient of its own, and the shares are added in order of thread.
#include "node.h"
#include <string.h>

typedef struct compute_helper {
    tti_compute *compute;
    uint32_t index; // 1 .. threads - 1
    tt_thread thread;
    float *gradient; // [floats_max]
    tt_model_scratch *scratch;
    double losses[TTI_AGGREGATION_MAX];
    uint32_t done; // ticket of the last finished task; release
    int leave;     // release
    int pin_to;
} compute_helper;

struct tti_compute {
    const tt_model *model;
    uint32_t max_rows;
    size_t floats_max;
    uint32_t threads;
    tti_compute_task *task; // set before the ticket is raised
    uint32_t ticket;
    tt_event work, finished;
    tt_model_scratch *scratch;
    compute_helper helpers[TTI_COMPUTE_MAX]; // [0] is the caller, unused
};

static void
run_share(tti_compute_task *task,
          uint32_t index,
          uint32_t threads,
          float *gradient,
          double *losses,
          tt_model_scratch *scratch)
{
    uint32_t rows = tt_batch_rows(task->batch);
    for (uint32_t piece = 0; piece < task->micro_count; piece++) {
        uint32_t begin = piece * task->micro_rows;
        uint32_t end = piece + 1 == task->micro_count ? rows : begin + task->micro_rows;
        uint32_t span = end > begin ? end - begin : 0;
        uint32_t from = begin + span * index / threads, to = begin + span * (index + 1) / threads;
        losses[piece] = to > from ? tt_model_loss_gradient(task->model, task->ops, task->batch,
                                                           from, to, task->scale, task->params,
                                                           gradient, task->each, scratch)
                                  : 0;
    }
}

static void *
helper_main(void *self)
{
    compute_helper *me = self;
    tti_compute *compute = me->compute;
    if (me->pin_to >= 0)
        (void)tt_thread_pin(me->pin_to);
    uint32_t seen = me->done; // set before the thread started
    for (;;) {                // ends with `leave`
        uint32_t bell = tt_event_read(&compute->work);
        if (tt_load_acquire(&me->leave)) // released in stop_helper
            return NULL;
        uint32_t ticket = tt_load_acquire(&compute->ticket); // released in tti_compute_run
        if (ticket == seen) {
            (void)tt_event_wait(&compute->work, bell, 200, 1000000000u);
            continue;
        }
        seen = ticket;
        tti_compute_task *task = compute->task;
        memset(me->gradient, 0, task->floats * sizeof(float));
        run_share(task, me->index, compute->threads, me->gradient, me->losses, me->scratch);
        tt_store_release(&me->done, ticket); // acquired in wait_for_helpers
        tt_event_signal(&compute->finished);
    }
}

tt_status
tti_compute_open(const tt_model *model, uint32_t max_rows, size_t floats_max, tti_compute **out)
{
    *out = NULL;
    tti_compute *compute = tt_mem_zalloc(1, sizeof *compute);
    if (compute == NULL)
        return TT_NOMEM;
    *compute =
        (tti_compute){.model = model, .max_rows = max_rows, .floats_max = floats_max, .threads = 1};
    if (tt_model_scratch_alloc(model, max_rows, &compute->scratch) != TT_OK) {
        tt_mem_free(compute);
        return TT_NOMEM;
    }
    *out = compute;
    return TT_OK;
}

static void
stop_helper(tti_compute *compute, compute_helper *helper)
{
    tt_store_release(&helper->leave, 1); // acquired in helper_main
    tt_event_signal(&compute->work);
    tt_thread_join(&helper->thread);
    tt_model_scratch_free(helper->scratch);
    tt_mem_free(helper->gradient);
    *helper = (compute_helper){0};
}

static tt_status
start_helper(tti_compute *compute, uint32_t index, int pin_to)
{
    compute_helper *helper = &compute->helpers[index];
    *helper = (compute_helper){
        .compute = compute, .index = index, .pin_to = pin_to, .done = compute->ticket};
    helper->gradient = tt_mem_zalloc_vector(compute->floats_max, sizeof(float));
    tt_status status =
        helper->gradient != NULL
            ? tt_model_scratch_alloc(compute->model, compute->max_rows, &helper->scratch)
            : TT_NOMEM;
    // A helper that starts late must not take the last finished task for a new one: no task runs
    // while the pool is resized, and tickets only grow.
    if (status == TT_OK)
        status = tt_thread_start(&helper->thread, "tt-compute", helper_main, helper, NULL);
    if (status == TT_OK)
        return TT_OK;
    tt_model_scratch_free(helper->scratch);
    tt_mem_free(helper->gradient);
    *helper = (compute_helper){0};
    return status;
}

tt_status
tti_compute_resize(tti_compute *compute, uint32_t threads, int pin_to)
{
    TT_ASSERT(threads >= 1 && threads <= TTI_COMPUTE_MAX);
    uint32_t before = compute->threads;
    for (uint32_t i = threads; i < before; i++)
        stop_helper(compute, &compute->helpers[i]);
    compute->threads = TT_MIN(threads, before);
    for (uint32_t i = before; i < threads; i++) {
        TT_TRY(start_helper(compute, i, pin_to >= 0 ? pin_to + (int)i : -1));
        compute->threads = i + 1;
    }
    return TT_OK;
}

static void
wait_for_helpers(tti_compute *compute)
{
    for (uint32_t i = 1; i < compute->threads; i++)
        for (;;) { // a helper always finishes its task
            uint32_t bell = tt_event_read(&compute->finished);
            if (tt_load_acquire(&compute->helpers[i].done) ==
                compute->ticket) // released in helper_main
                break;
            (void)tt_event_wait(&compute->finished, bell, 200, 1000000000u);
        }
}

void
tti_compute_run(tti_compute *compute, tti_compute_task *task)
{
    memset(task->gradient, 0, task->floats * sizeof(float));
    if (compute->threads > 1) {
        compute->task = task;
        tt_store_release(&compute->ticket, compute->ticket + 1); // acquired in helper_main
        tt_event_signal(&compute->work);
    }
    run_share(task, 0, compute->threads, task->gradient, task->losses, compute->scratch);
    if (compute->threads == 1)
        return;
    wait_for_helpers(compute);
    for (uint32_t i = 1; i < compute->threads; i++) {
        task->ops->add(compute->helpers[i].gradient, task->gradient, task->floats);
        for (uint32_t piece = 0; piece < task->micro_count; piece++)
            task->losses[piece] += compute->helpers[i].losses[piece];
    }
}

double
tti_compute_curvature(tti_compute *compute,
                      const tti_compute_task *task,
                      double distance,
                      float *work)
{
    return tt_model_curvature(task->model, task->ops, task->batch, task->params, task->gradient,
                              distance, work, compute->scratch);
}

void
tti_compute_close(tti_compute *compute)
{
    if (compute == NULL)
        return;
    for (uint32_t i = 1; i < compute->threads; i++)
        stop_helper(compute, &compute->helpers[i]);
    tt_model_scratch_free(compute->scratch);
    tt_mem_free(compute);
}
