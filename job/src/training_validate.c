// Evaluations of the validation rows while the job trains, early stopping, and which model is
// saved.
#include "training.h"
#include <math.h>
#include <string.h>

tt_status
tti_training_open_validation(tti_training *tr, tt_error *err)
{
    tti_early_stopping_init(&tr->early);
    tr->next_validation_epoch = tr->job->spec.evaluate_every;
    tr->validation.loss = tr->best_validation.loss = NAN;
    if (tr->job->validation == NULL || tr->job->spec.patience == 0)
        return TT_OK;
    tr->best_model = tt_mem_zalloc_vector(tti_training_model_floats(tr), sizeof(float));
    if (tr->best_model == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a copy of the best model");
    return TT_OK;
}

static void
record(tti_training *tr,
       uint32_t ordinal,
       const tt_model_metrics *metrics,
       uint64_t iteration,
       double epoch,
       int saved)
{
    tt_store_validation row = {.ordinal = ordinal,
                               .time_s =
                                   ordinal == tr->early.evaluations ? tr->last_push_s : tr->best_s,
                               .iteration = (int64_t)iteration,
                               .epoch = epoch,
                               .loss = metrics->loss,
                               .accuracy = metrics->accuracy,
                               .auc = metrics->auc,
                               .prior_loss = tr->job->prior_loss,
                               .saved = saved};
    tt_error err = {0};
    if (tr->store != NULL && tt_store_put_validation(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

// `model` on the validation rows; noted, recorded, kept when it is the best.
static tt_status
validate_model(tti_training *tr, tt_error *err)
{
    double epoch = tti_training_epochs(tr);
    TT_TRY(tt_model_evaluate(tr->job->model, tr->job->validation, tr->model,
                             tt_thread_processor_count(), &tr->validation, err));
    int best = tti_early_stopping_note(&tr->early, tr->validation.loss, tr->job->spec.min_delta,
                                       tr->iterations, epoch);
    record(tr, tr->early.evaluations, &tr->validation, tr->iterations, epoch, 0);
    if (!best)
        return TT_OK;
    tr->best_validation = tr->validation;
    tr->best_s = tr->last_push_s;
    if (tr->best_model != NULL)
        memcpy(tr->best_model, tr->model, tti_training_model_floats(tr) * sizeof(float));
    return TT_OK;
}

// Workers rest meanwhile and the job's clock stands still, as in full evaluations: the tuner's
// measurements are not disturbed.
static tt_status
validate(tti_training *tr, tt_error *err)
{
    tti_runtime *rt = tr->rt;
    int resting = !tti_stopping(&rt->board) && tti_runtime_pause(rt);
    tti_training_drain(tr);
    uint64_t begin = tt_clock_now(&rt->clock);
    tt_status status = tti_runtime_read_model(rt, tr->model, err);
    if (status == TT_OK)
        status = validate_model(tr, err);
    else if (status == TT_BUSY)
        status = TT_OK; // another time
    uint64_t spent = tt_clock_now(&rt->clock) - begin;
    if (resting) {
        tr->paused_ns += spent;
        tti_runtime_resume(rt);
    }
    tr->next_validation_s = tti_training_now(tr) + 5e-9 * (double)spent;
    return status;
}

tt_status
tti_training_check_validation(tti_training *tr, tt_error *err)
{
    const tti_spec *spec = &tr->job->spec;
    double epochs = tti_training_epochs(tr);
    if (tr->job->validation == NULL || epochs < tr->next_validation_epoch ||
        tr->transition.active || tti_training_now(tr) < tr->next_validation_s)
        return TT_OK;
    tr->next_validation_epoch = (floor(epochs / spec->evaluate_every) + 1) * spec->evaluate_every;
    TT_TRY(validate(tr, err));
    if (!tti_early_stopping_over(&tr->early, spec->patience))
        return TT_OK;
    char delta[48] = "";
    if (spec->min_delta > 0)
        (void)snprintf(delta, sizeof delta, " by more than %g", spec->min_delta);
    tti_training_finish(tr, TT_JOB_STOPPED,
                        "no better validation loss%s in %lld evaluations; the best, %.4f, was "
                        "evaluation %u of %u at epoch %.1f",
                        delta, (long long)spec->patience, tr->early.best_loss,
                        tr->early.best_evaluation, tr->early.evaluations, tr->early.best_epoch);
    return TT_OK;
}

const tt_model_metrics *
tti_training_saved_validation(const tti_training *tr)
{
    return tr->saved_best ? &tr->best_validation : &tr->validation;
}

tt_status
tti_training_choose_model(tti_training *tr, int keep, tt_error *err)
{
    if (tr->job->validation == NULL)
        return TT_OK;
    TT_TRY(validate_model(tr, err));
    const tti_early_stopping *early = &tr->early;
    tr->saved_best = !keep && tr->best_model != NULL && early->best_evaluation > 0 &&
                     early->best_evaluation < early->evaluations;
    if (!tr->saved_best) {
        record(tr, early->evaluations, &tr->validation, tr->iterations, tti_training_epochs(tr), 1);
        return TT_OK;
    }
    memcpy(tr->model, tr->best_model, tti_training_model_floats(tr) * sizeof(float));
    record(tr, early->best_evaluation, &tr->best_validation, early->best_iteration,
           early->best_epoch, 1);
    return TT_OK;
}
