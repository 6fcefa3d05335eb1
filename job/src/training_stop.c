// When to stop: full evaluations of the model that would be saved, limits, divergence,
// interruption.
#include "training.h"
#include <math.h>
#include <string.h>

volatile int tti_interrupted;

size_t
tti_training_model_floats(const tti_training *tr)
{
    return (size_t)tr->job->table.rows * tr->job->table.width;
}

static int
all_finite(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

double
tti_training_epochs(const tti_training *tr)
{
    if (tr->job->table.consistency == TT_PS_BSP)
        return (double)tti_runtime_iterations(tr->rt) / tti_job_epoch_iterations(tr->job);
    return tt_ledger_epochs(tr->rt->work.ledger);
}

static void
record_progress(tti_training *tr)
{
    tt_store_progress row = {.time_s = tr->last_push_s,
                             .iteration = (int64_t)tr->iterations,
                             .epoch = tti_training_epochs(tr),
                             .loss = tr->metrics.loss,
                             .objective = tr->metrics.objective};
    tt_error err = {0};
    if (tr->store != NULL && tt_store_put_progress(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

// Keeps the model as the last good one if it is finite.
static int
keep_if_good(tti_training *tr, double loss)
{
    size_t floats = tti_training_model_floats(tr);
    if (!all_finite(tr->model, floats) || !isfinite(loss))
        return 0;
    memcpy(tr->good_model, tr->model, floats * sizeof(float));
    tr->good_iteration = tr->iterations;
    tr->good_loss = loss;
    return 1;
}

void
tti_training_tell_look(tti_training *tr, double loss, double objective)
{
    const tti_spec *spec = &tr->job->spec;
    if (isfinite(spec->stop_objective))
        tt_estimator_look(tr->estimator, objective);
    else if (isfinite(spec->stop_loss))
        tt_estimator_look(tr->estimator, loss);
}

// `model` on the training rows.
static tt_status
measure(tti_training *tr, tt_error *err)
{
    TT_TRY(tt_model_evaluate(tr->job->model, tr->job->train, tr->model, tt_thread_processor_count(),
                             &tr->metrics, err));
    tr->evaluated = 1;
    tr->regulariser =
        isfinite(tr->job->spec.stop_objective) ? tr->metrics.objective - tr->metrics.loss : 0;
    (void)keep_if_good(tr, tr->metrics.loss);
    tti_training_tell_look(tr, tr->metrics.loss, tr->metrics.objective);
    record_progress(tr);
    return TT_OK;
}

// Workers rest meanwhile and the job's clock stands still.
tt_status
tti_training_evaluate(tti_training *tr, tt_error *err)
{
    tti_runtime *rt = tr->rt;
    int resting = !tti_stopping(&rt->board) && tti_runtime_pause(rt);
    tti_training_drain(tr);
    uint64_t begin = tt_clock_now(&rt->clock);
    tt_status status = tti_runtime_read_model(rt, tr->model, err);
    if (status == TT_OK)
        status = measure(tr, err);
    if (status == TT_BUSY) // another time
        tr->metrics.loss = tr->metrics.objective = NAN;
    else if (status != TT_OK)
        return status;
    uint64_t spent = tt_clock_now(&rt->clock) - begin;
    if (resting) {
        tr->paused_ns += spent;
        tti_runtime_resume(rt);
        tr->evaluated = 0; // of a model that trains on
    }
    // Evaluations take at most a sixth of the time, whatever the data's size.
    tr->next_evaluation_s = tti_training_now(tr) + 5e-9 * (double)spent;
    return TT_OK;
}

static int
target_held(const tti_training *tr)
{
    const tti_spec *spec = &tr->job->spec;
    if (isfinite(spec->stop_objective))
        return tr->metrics.objective <= spec->stop_objective;
    return tr->metrics.loss <= spec->stop_loss;
}

// Minibatch losses only suggest that the target is reached; the whole training set decides.
static tt_status
check_target(tti_training *tr, tt_error *err)
{
    const tti_spec *spec = &tr->job->spec;
    double target = isfinite(spec->stop_objective) ? spec->stop_objective : spec->stop_loss;
    if (tr->lookout.on) // which decides
        return TT_OK;
    if (!isfinite(target) || tr->transition.active || tti_training_now(tr) < tr->next_evaluation_s)
        return TT_OK;
    int reached = tt_estimator_reached(tr->estimator) ||
                  tt_estimator_loss(tr->estimator) <= tt_estimator_target_level(tr->estimator);
    // The average and the objective run ahead of the minibatch losses: they are looked at once an
    // epoch.
    double epochs = tti_training_epochs(tr);
    int epoch_due =
        (spec->averaging || isfinite(spec->stop_objective)) && epochs >= tr->next_epoch_evaluation;
    if (!reached && !epoch_due)
        return TT_OK;
    if (epoch_due)
        tr->next_epoch_evaluation = floor(epochs) + 1;
    double at = tti_training_now(tr);
    TT_TRY(tti_training_evaluate(tr, err));
    if (!target_held(tr))
        return TT_OK;
    tr->train_seconds = TT_MIN(at, tti_training_now(tr));
    tr->evaluated = 1; // what was evaluated is what is saved
    memcpy(tr->good_model, tr->model, tti_training_model_floats(tr) * sizeof(float));
    int objective = isfinite(spec->stop_objective);
    tti_training_finish(tr, TT_JOB_CONVERGED, "%s %.4f <= %g",
                        objective ? "objective" : "training loss",
                        objective ? tr->metrics.objective : tr->metrics.loss, target);
    return TT_OK;
}

// A copy of the model now and then, so that a job that diverges leaves a good one behind.
void
tti_training_snapshot(tti_training *tr)
{
    double now = tti_training_now(tr);
    if (now < tr->next_snapshot_s || tr->transition.active || tr->bad_losses > 0 ||
        !isfinite(tr->last_loss))
        return;
    if (tti_runtime_read_model(tr->rt, tr->model, NULL) == TT_OK)
        (void)keep_if_good(tr, tr->last_loss);
    // Without evaluations of its own the master knows it from the copies it takes.
    if (tr->lookout.on && isfinite(tr->job->spec.stop_objective))
        tr->regulariser = tt_model_regulariser(tr->job->model, tr->model);
    double spent = tti_training_now(tr) - now;
    tr->snapshot_gap_s = TT_MAX(TT_MIN(2 * tr->snapshot_gap_s, 4.0), 100 * spent);
    tr->next_snapshot_s = now + tr->snapshot_gap_s;
}

static void
check_divergence(tti_training *tr)
{
    if (tr->bad_losses < 3)
        return;
    tti_training_finish(
        tr, TT_JOB_FAILED,
        "loss became NaN or infinite by iteration %llu under setting %u%s, learning rate %g",
        (unsigned long long)tr->iterations, tr->setting_id,
        tr->setting_id == 0 ? " (the start setting)" : "", tr->job->spec.learning_rate);
}

// What was handed out is trained: not so while a batch waits for a worker that left to be replaced.
// Under BSP a worker without a slice has nothing to do, and may be given one later.
static int
everything_trained(const tti_training *tr)
{
    if (tr->job->table.consistency == TT_PS_BSP)
        return tti_runtime_iterations(tr->rt) >= tr->rt->board.round_limit;
    // Workers that nobody gave any more rows for a while, since no master was there, have finished,
    // too, and trained all they had.
    const tti_work *work = &tr->rt->work;
    uint64_t given = tt_ledger_examples(work->ledger);
    return given >= tt_load_relaxed(&work->example_limit) &&
           tt_load_relaxed(&work->examples_trained) == given;
}

static int
everyone_finished(const tti_training *tr)
{
    const tti_runtime *rt = tr->rt;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->newest->view->is_worker[n] &&
            (!tt_load_relaxed(&rt->standings[n].working_seen) ||
             !tt_load_acquire(&rt->standings[n].finished))) // by the node
            return 0;
    return everything_trained(tr);
}

// The model is read before anybody is told to end: a server may have died after the last push, and
// where all have to go back for it (BSP) they train on.
static tt_status
finish_trained(tti_training *tr, tt_error *err)
{
    tt_status status = tti_runtime_read_model(tr->rt, tr->model, err);
    if (status == TT_BUSY)
        return TT_OK;
    if (status != TT_OK)
        return status;
    tr->model_is_last = 1;
    tti_training_finish(tr, TT_JOB_STOPPED, "max_epochs %g reached", tr->job->spec.stop_epochs);
    return TT_OK;
}

tt_status
tti_training_check_stop(tti_training *tr, tt_error *err)
{
    const tti_spec *spec = &tr->job->spec;
    TT_TRY(tti_training_follow_watch(tr, err));
    check_divergence(tr);
    if (!tr->finished && tti_interrupted)
        tti_training_finish(tr, TT_JOB_INTERRUPTED, "interrupted");
    if (!tr->finished && isfinite(spec->stop_time) && tti_training_now(tr) >= spec->stop_time)
        tti_training_finish(tr, TT_JOB_STOPPED, "max_time %.6g s reached", spec->stop_time);
    if (!tr->finished && everyone_finished(tr))
        TT_TRY(finish_trained(tr, err));
    if (tr->finished)
        return TT_OK;
    tti_training_snapshot(tr);
    TT_TRY(check_target(tr, err));
    return tr->finished ? TT_OK : tti_training_check_validation(tr, err);
}

// The best model by validation loss is no worse a model to leave behind than the last finite one.
static void
fall_back_to_best(tti_training *tr)
{
    if (tr->best_model == NULL || tr->early.best_evaluation == 0)
        return;
    memcpy(tr->good_model, tr->best_model, tti_training_model_floats(tr) * sizeof(float));
    tr->good_iteration = tr->early.best_iteration;
    tr->good_loss = tr->early.best_loss;
    tr->saved_best = 1;
}

// The job was stopped in the middle of a death: the last copy of the model has to do.
static tt_status
read_last_model(tti_training *tr, tt_error *err)
{
    if (tr->model_is_last)
        return TT_OK;
    tt_status status = tti_runtime_read_model(tr->rt, tr->model, err);
    if (status != TT_BUSY)
        return status;
    memcpy(tr->model, tr->good_model, tti_training_model_floats(tr) * sizeof(float));
    return TT_OK;
}

tt_status
tti_training_conclude(tti_training *tr, tt_error *err)
{
    TT_TRY(tti_training_follow_watch(tr, err));
    if (tr->outcome == TT_JOB_FAILED) {
        fall_back_to_best(tr);
        return tr->evaluated ? TT_OK : tti_training_evaluate(tr, err);
    }
    // The model that held the target is the one to save, whatever came after it.
    int held = tr->outcome == TT_JOB_CONVERGED && tr->evaluated;
    if (!held)
        TT_TRY(read_last_model(tr, err));
    TT_TRY(tti_training_choose_model(tr, held, err));
    return held ? TT_OK : measure(tr, err);
}
