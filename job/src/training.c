// The master's loop: measure, tune, reconfigure, evaluate, stop.
#include "training.h"
#include <math.h>
#include <string.h>

enum { TURN_NS = 5000000 };

double
tti_training_now(const tti_training *tr)
{
    const tti_runtime *rt = tr->rt;
    return (double)(tt_clock_now(&rt->clock) - rt->start_ns - tr->paused_ns) * 1e-9;
}

void
tti_training_event(tti_training *tr, const char *level, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (tr->options->events &&
        (strcmp(level, "debug") != 0 || tt_log_get_level() >= TT_LOG_DEBUG)) {
        tti_training_progress_clear(tr);
        (void)fprintf(stderr, "%7.1f s  %s\n", tti_training_now(tr), text);
    }
    tt_error err = {0};
    if (tr->store != NULL &&
        tt_store_put_event(tr->store, tti_training_now(tr), level, text, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

void
tti_training_finish(tti_training *tr, tt_job_outcome outcome, const char *format, ...)
{
    if (tr->finished)
        return;
    tr->finished = 1;
    tr->outcome = outcome;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(tr->stop_reason, sizeof tr->stop_reason, format, arguments);
    va_end(arguments);
}

// A host for the master's own knob instances: they only say whether a value would do.
static int
checker_set(void *impl, const char *name, double value)
{
    TT_UNUSED(impl);
    TT_UNUSED(name);
    TT_UNUSED(value);
    return 0;
}

static int
checker_get(void *impl, const char *name, double *out)
{
    TT_UNUSED(impl);
    TT_UNUSED(name);
    *out = 0;
    return 0;
}

static const void *
checker_extension(const tt_knob_host *host, const char *name)
{
    static const tt_knob_runtime runtime = {
        .struct_size = sizeof runtime, .set = checker_set, .get = checker_get};
    TT_UNUSED(host);
    return strcmp(name, TT_KNOB_RUNTIME) == 0 ? &runtime : NULL;
}

static double
target_of(const tti_spec *spec)
{
    return isfinite(spec->stop_objective) ? spec->stop_objective : spec->stop_loss;
}

static tt_status
open_estimator(tti_training *tr, tt_error *err)
{
    const tt_job *job = tr->job;
    tt_est_options options = {.target_loss = target_of(&job->spec),
                              .budget_iterations =
                                  job->spec.stop_epochs * tti_job_epoch_iterations(job),
                              .bulk_synchronous = job->table.consistency == TT_PS_BSP};
    return tt_estimator_open(&options, &tr->estimator, err);
}

tt_status
tti_training_open(tti_training *tr,
                  const tt_job *job,
                  const tt_job_run_options *options,
                  int tuned,
                  tt_store *store,
                  tt_error *err)
{
    memset(tr, 0, sizeof *tr);
    tr->job = job;
    tr->options = options;
    tr->store = store;
    tr->tuned = tuned && job->spec.tuner_enabled;
    tr->good_loss = NAN;
    tr->last_loss = NAN;
    tr->snapshot_gap_s = 0.25;
    tr->next_epoch_evaluation = 1;
    tt_space_start(&job->space, &tr->setting);
    (void)tt_setting_format(&job->space, &tr->setting, NULL, tr->setting_text,
                            sizeof tr->setting_text);
    tr->checker_host =
        (tt_knob_host){.struct_size = sizeof tr->checker_host, .get_extension = checker_extension};
    TT_TRY(tt_knob_set_open(&job->space, &tr->checker_host, &tr->checker, err));
    TT_TRY(tt_knob_set_prepare(tr->checker, &tr->setting, err));
    tt_knob_set_commit(tr->checker);
    size_t floats = (size_t)job->table.rows * job->table.width;
    tr->drained = tt_mem_zalloc(TTI_DRAIN_MAX, sizeof *tr->drained);
    tr->model = tt_mem_zalloc_vector(floats, sizeof(float));
    tr->good_model = tt_mem_zalloc_vector(floats, sizeof(float));
    if (tr->drained == NULL || tr->model == NULL || tr->good_model == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a copy of the model");
    TT_TRY(open_estimator(tr, err));
    TT_TRY(tti_runtime_open(job, &tr->setting, NULL, &tr->rt, err));
    if (job->script_count == 0 || !tuned)
        TT_TRY(tti_training_open_tuner(tr, err));
    return TT_OK;
}

static void
set_limits(tti_training *tr)
{
    const tt_job *job = tr->job;
    double examples = job->spec.stop_epochs * (double)job->train->row_count;
    tr->rt->example_limit = examples < 9e18 ? (uint64_t)ceil(examples) : UINT64_MAX;
    double rounds = ceil(examples / (double)job->spec.batch_size);
    tr->rt->round_limit = rounds < 4e9 ? (uint32_t)rounds : UINT32_MAX;
}

static void
begin(tti_training *tr)
{
    tt_error err = {0};
    if (tr->store != NULL && tt_store_begin(tr->store, &err) != TT_OK)
        tti_record_failed(tr, &err);
    tr->next_commit_s = 1;
    tti_training_record_setting(tr, 0, &tr->setting);
    if (tr->tuner != NULL)
        tt_tuner_begin(tr->tuner, 0, 1);
    else
        tt_estimator_begin(tr->estimator, 0, 1, tti_runtime_workers(tr->rt), NULL, 0);
}

// What is recorded goes to the disk once a second, in one batch.
static void
save_records(tti_training *tr)
{
    tt_error err = {0};
    double now = tti_training_now(tr);
    if (tr->store == NULL || now < tr->next_commit_s)
        return;
    tr->next_commit_s = now + 1;
    tti_record_running(tr);
    if (tr->store == NULL)
        return;
    if (tt_store_commit(tr->store, &err) != TT_OK || tt_store_begin(tr->store, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static tt_status
turn(tti_training *tr, tt_error *err)
{
    save_records(tr);
    tti_training_drain(tr);
    tti_training_follow_transition(tr);
    TT_TRY(tti_training_check_stop(tr, err));
    if (tr->finished)
        return TT_OK;
    if (tr->tuner != NULL)
        TT_TRY(tti_training_step_tuner(tr, err));
    else
        TT_TRY(tti_training_follow_script(tr, err));
    tti_training_progress(tr);
    return TT_OK;
}

tt_status
tti_training_run(tti_training *tr, tt_error *err)
{
    set_limits(tr);
    begin(tr);
    tt_status status = tti_runtime_start(tr->rt, err);
    while (status == TT_OK && !tr->finished) {
        uint32_t seen = tt_event_read(&tr->rt->bell);
        status = turn(tr, err);
        if (status == TT_OK && !tr->finished)
            (void)tt_event_wait(&tr->rt->bell, seen, 0, TURN_NS);
    }
    tti_runtime_stop(tr->rt);
    tti_training_drain(tr);
    if (tr->train_seconds == 0)
        tr->train_seconds = tr->last_push_s;
    tti_training_progress_clear(tr);
    if (tr->tuner != NULL)
        tt_tuner_end(tr->tuner, tti_training_now(tr), tr->iterations);
    if (status != TT_OK)
        return status;
    return tr->evaluated ? TT_OK : tti_training_evaluate(tr, err);
}

void
tti_training_close(tti_training *tr)
{
    tti_runtime_close(tr->rt);
    tt_tuner_close(tr->tuner);
    tt_estimator_close(tr->estimator);
    tt_knob_set_close(tr->checker);
    tt_mem_free(tr->drained);
    tt_mem_free(tr->model);
    tt_mem_free(tr->good_model);
}
