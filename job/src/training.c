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

const tt_knob_host *
tti_checker_host(void)
{
    static const tt_knob_host host = {.struct_size = sizeof host,
                                      .get_extension = checker_extension};
    return &host;
}

static double
target_of(const tti_spec *spec)
{
    return isfinite(spec->stop_objective) ? spec->stop_objective : spec->stop_loss;
}

// As training_watch.c and training_stop.c do.
static void
say_how_looked_at(const tt_job *job, tt_est_options *options)
{
    const tti_spec *spec = &job->spec;
    if (job->sim != NULL && spec->simulation.evaluate_pushes > 0) {
        options->look_every = (double)spec->simulation.evaluate_pushes;
        options->looks_held = 2;
    } else if (isfinite(spec->stop_objective) || spec->averaging) {
        options->look_every = tti_job_epoch_iterations(job);
        options->looks_held = 1;
    }
}

static tt_status
open_estimator(tti_training *tr, tt_error *err)
{
    const tt_job *job = tr->job;
    tt_est_options options = {.target_loss = target_of(&job->spec),
                              .budget_iterations =
                                  job->spec.stop_epochs * tti_job_epoch_iterations(job),
                              .bulk_synchronous = job->table.consistency == TT_PS_BSP,
                              .method = tti_job_estimator(job)};
    say_how_looked_at(job, &options);
    if (job->curves != NULL) {
        options.curves = tt_curves_list(job->curves);
        options.curve_count = tt_curves_count(job->curves);
    }
    return tt_estimator_open(&options, &tr->estimator, err);
}

// The setting that was in force, if it still means the same; else the start setting, and a tuner
// that begins anew.
static tt_status
recall_setting(tti_training *tr, const tti_resume *resume, tt_error *err)
{
    tt_archive in;
    if (tr->same_space && tr->tuner != NULL) {
        tti_resume_section(resume, "tuner", &in);
        tt_status status = tt_tuner_load(tr->tuner, &in, err);
        tr->tuner_resumed = status == TT_OK;
        if (status != TT_OK && status != TT_INVALID)
            return status;
    }
    if (tr->tuner_resumed)
        tr->setting_id = tt_tuner_current(tr->tuner, &tr->setting);
    if (tr->tuner_resumed || (tr->same_space && tr->tuner == NULL))
        return TT_OK;
    tti_warm_begin(tr->job, tr->tuned, &tr->setting);
    tr->setting_id = tr->recorded_settings = 0;
    return TT_OK;
}

// Everything but the nodes' own.
static tt_status
recall(tti_training *tr, const tti_resume *resume, tt_error *err)
{
    tt_archive in;
    const tt_job *job = tr->job;
    tti_resume_section(resume, "training", &in);
    tti_training_visit(tr, &in);
    if (in.status != TT_OK || (tr->same_space && !tti_job_setting_fits(job, &tr->setting)))
        return tt_error_set(err, TT_UNSUPPORTED, resume->file.path,
                            "resume with the trimtab that wrote it",
                            "the checkpoint was written by another version of trimtab");
    tr->resumed_s = resume->file.time_s;
    tr->next_script = 0;
    while (tr->next_script < job->script_count &&
           job->script[tr->next_script].iteration <= tr->iterations)
        tr->next_script++;
    tti_resume_section(resume, "estimator", &in);
    if (tt_estimator_load(tr->estimator, &in) != TT_OK)
        tt_log(TT_LOG_WARN, "what the estimator learned is of another build or other curve "
                            "families: it learns anew");
    tti_resume_section(resume, "best", &in);
    size_t bytes = tti_training_model_floats(tr) * sizeof(float);
    if (tr->best_model != NULL && in.count == bytes)
        tt_archive_field(&in, tr->best_model, bytes);
    else if (tr->best_model != NULL) // patience is new: what was the best before is not known
        tti_early_stopping_init(&tr->early);
    return recall_setting(tr, resume, err);
}

static tt_status
open_runtime(tti_training *tr, const tti_resume *resume, tt_error *err)
{
    if (resume == NULL || !resume->found)
        return tti_runtime_open(tr->job, &tr->setting, NULL, &tr->rt, err);
    if (resume->journal != NULL)
        return tti_training_inherit(tr, resume, err);
    tt_archive in;
    tti_resume_section(resume, "runtime", &in);
    const tti_restore restore = {.bytes = in.bytes,
                                 .count = in.count,
                                 .elapsed_s = tr->resumed_s,
                                 .generation = tr->first_generation};
    tt_status status = tti_runtime_open(tr->job, &tr->setting, &restore, &tr->rt, err);
    if (status != TT_OK && err != NULL && err->where[0] == '\0')
        (void)snprintf(err->where, sizeof err->where, "%.300s", resume->file.path);
    return status;
}

tt_status
tti_training_open(tti_training *tr,
                  const tt_job *job,
                  const tt_job_run_options *options,
                  int tuned,
                  tt_store *store,
                  const tti_resume *resume,
                  tt_error *err)
{
    memset(tr, 0, sizeof *tr);
    tr->succession.journal.descriptor = -1;
    tr->job = job;
    tr->options = options;
    tr->store = store;
    tr->tuned = tuned && job->spec.tuner_enabled;
    tr->method = (tt_reconfig_method)job->spec.method;
    tr->good_loss = NAN;
    tr->last_loss = NAN;
    tr->snapshot_gap_s = 0.25;
    tr->next_epoch_evaluation = 1;
    tti_warm_begin(job, tr->tuned, &tr->setting);
    TT_TRY(tt_knob_set_open(&job->space, tti_checker_host(), &tr->checker, err));
    size_t floats = (size_t)job->table.rows * job->table.width;
    tr->drained = tt_mem_zalloc(TTI_DRAIN_MAX, sizeof *tr->drained);
    tr->model = tt_mem_zalloc_vector(floats, sizeof(float));
    tr->good_model = tt_mem_zalloc_vector(floats, sizeof(float));
    if (tr->drained == NULL || tr->model == NULL || tr->good_model == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a copy of the model");
    TT_TRY(tti_training_open_validation(tr, err));
    TT_TRY(tti_training_open_watch(tr, err));
    TT_TRY(open_estimator(tr, err));
    if (job->script_count == 0 || !tuned)
        TT_TRY(tti_training_open_tuner(tr, err));
    if (resume != NULL && resume->found)
        TT_TRY(recall(tr, resume, err));
    TT_TRY(tt_knob_set_prepare(tr->checker, &tr->setting, err));
    tt_knob_set_commit(tr->checker);
    (void)tt_setting_format(&job->space, &tr->setting, NULL, tr->setting_text,
                            sizeof tr->setting_text);
    TT_TRY(open_runtime(tr, resume, err));
    tti_training_join_members(tr);
    tti_training_join_watch(tr);
    return TT_OK;
}

// The run store may be a new one.
static void
record_known_settings(tti_training *tr)
{
    uint32_t known = tr->recorded_settings;
    tr->recorded_settings = 0;
    for (uint32_t id = 0; id < known && tt_tuner_setting(tr->tuner, id) != NULL; id++)
        tti_training_record_setting(tr, id, tt_tuner_setting(tr->tuner, id));
    tr->recorded_settings = known;
}

static void
begin(tti_training *tr)
{
    tt_error err = {0};
    if (tr->store != NULL && tt_store_begin(tr->store, &err) != TT_OK)
        tti_record_failed(tr, &err);
    uint32_t generation = tr->rt->newest->view->generation;
    tr->next_commit_s = tr->resumed_s + 1;
    tr->tuner_s = tr->resumed_s;
    if (tr->tuner_resumed)
        record_known_settings(tr);
    tti_training_record_setting(tr, tr->setting_id, &tr->setting);
    if (tr->tuner_resumed)
        tt_tuner_resume(tr->tuner, tr->resumed_s, generation);
    else if (tr->tuner != NULL)
        tt_tuner_begin(tr->tuner, tr->resumed_s, generation);
    else
        tt_estimator_begin(tr->estimator, tr->setting_id, generation, tti_runtime_workers(tr->rt),
                           NULL, 0);
}

// What is recorded goes to the store once a second, in one batch.
static void
save_records(tti_training *tr)
{
    tt_error err = {0};
    double now = tti_training_now(tr);
    int is_due = now >= tr->next_commit_s || tti_journal_is_long(&tr->succession.journal);
    if (tr->store == NULL || !is_due)
        return;
    tr->next_commit_s = now + 1;
    tti_training_write_status(tr);
    tti_record_running(tr);
    if (tr->store == NULL)
        return;
    if (tt_store_commit(tr->store, &err) != TT_OK || tt_store_begin(tr->store, &err) != TT_OK)
        tti_record_failed(tr, &err);
    tti_training_leave(tr); // what the disk has now, or will have in a moment
}

static tt_status
turn(tti_training *tr, tt_error *err)
{
    save_records(tr);
    TT_TRY(tti_training_follow_members(tr, err));
    tti_training_drain(tr);
    tti_training_follow_transition(tr);
    if (!tti_training_has_left(tr))
        tti_training_leave(tr); // as soon as it can be
    TT_TRY(tti_training_check_stop(tr, err));
    if (tr->finished)
        return TT_OK;
    tti_training_checkpoint(tr);
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
    int inherits = tr->rt->inherits;
    if (!inherits) {
        begin(tr);
        tti_training_leave(tr);
    }
    tt_status status = tti_runtime_start(tr->rt, err);
    if (inherits) {
        if (status == TT_OK)
            status = tti_training_return_to_setting(tr, err);
        begin(tr);
    }
    if (tr->resumed_s > 0)
        tr->last_round_ns = tt_clock_now(&tr->rt->clock);
    else
        tti_warm_say(tr);
    while (status == TT_OK && !tr->finished) {
        uint32_t seen = tt_event_read(&tr->rt->board.bell);
        if (tti_training_must_die(tr)) {
            tr->has_died = 1;
            return TT_OK;
        }
        status = turn(tr, err);
        if (status == TT_OK && !tr->finished)
            tti_runtime_wait(tr->rt, seen, tti_membership_wait_ns(tr->rt, TURN_NS));
    }
    tti_training_leave_nothing(tr);
    if (tr->rt == NULL)
        return status; // a restart failed
    if (status == TT_OK)
        tti_training_last_checkpoint(tr);
    tti_runtime_stop(tr->rt);
    tti_training_drain(tr);
    if (tr->train_seconds == 0)
        tr->train_seconds = tr->last_push_s;
    tti_training_progress_clear(tr);
    if (tr->tuner != NULL)
        tt_tuner_end(tr->tuner, tti_training_now(tr), tr->iterations);
    if (status != TT_OK)
        return status;
    tti_training_say_curves(tr);
    return tti_training_conclude(tr, err);
}

void
tti_training_close(tti_training *tr)
{
    tti_training_remove_status(tr);
    tti_training_close_checkpoints(tr);
    tti_training_leave_nothing(tr);
    tti_runtime_close(tr->rt);
    tti_training_close_succession(tr);
    tti_training_close_watch(tr);
    tt_tuner_close(tr->tuner);
    tt_estimator_close(tr->estimator);
    tt_knob_set_close(tr->checker);
    tt_mem_free(tr->drained);
    tt_mem_free(tr->model);
    tt_mem_free(tr->good_model);
    tt_mem_free(tr->best_model);
}
