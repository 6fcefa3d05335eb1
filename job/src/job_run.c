// Running a job from its run directory to its result: train, save, compare, say what happened.
#include "processes.h"
#include "run_record.h"
#include "simulated.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *
tt_job_version(void)
{
    return TT_VERSION;
}

void
tt_job_interrupt(void)
{
    tti_interrupted++;
}

static const char *
outcome_name(tt_job_outcome outcome)
{
    static const char *const names[] = {"converged", "stopped", "stopped", "failed"};
    return names[outcome];
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Of waits counted by length, the 99th percentile.
static double
wait_p99_s(const tti_counts *counts)
{
    uint64_t all = 0, seen = 0;
    uint32_t bucket = 0;
    for (uint32_t b = 0; b < TT_PS_WAIT_BUCKETS; b++)
        all += counts->moving_waits[b];
    if (all == 0)
        return 0;
    while (bucket + 1 < TT_PS_WAIT_BUCKETS &&
           (seen += counts->moving_waits[bucket]) <= (uint64_t)(0.99 * (double)(all - 1)))
        bucket++;
    return tt_ps_wait_bucket_s(bucket);
}

static void
add_node_counters(const tti_training *tr, tt_job_result *result)
{
    tti_counts traffic = tr->traffic;
    tti_runtime_traffic(tr->rt, &traffic);
    result->frames = traffic.frames;
    result->bytes = traffic.bytes;
    result->chunks = traffic.chunks;
    result->sleeps = traffic.sleeps;
    result->pushes = traffic.pushes;
    result->batches_ready = traffic.batches_ready;
    result->batches_waited = traffic.batches_waited;
    result->moving_wait_count = traffic.moving_wait_count;
    result->moving_wait_p99_s = wait_p99_s(&traffic);
}

static uint32_t
list_metrics(const tt_model_metrics *metrics, tt_job_metric out[4])
{
    const tt_job_metric all[] = {
        {"loss", metrics->loss}, {"accuracy", metrics->accuracy}, {"auc", metrics->auc}};
    uint32_t count = 0;
    for (size_t i = 0; i < TT_COUNT_OF(all); i++)
        if (isfinite(all[i].value))
            out[count++] = all[i];
    return count;
}

static void
add_validation(const tti_training *tr, tt_job_result *result)
{
    result->prior_loss = tr->job->prior_loss;
    result->validations = tr->early.evaluations;
    result->best_validation = tr->early.best_evaluation;
    result->best_validation_loss = tr->early.best_evaluation > 0 ? tr->early.best_loss : NAN;
    result->best_epoch = tr->early.best_epoch;
    result->saved_best = tr->saved_best;
    if (tr->early.evaluations > 0)
        result->validation_count =
            list_metrics(tti_training_saved_validation(tr), result->validation);
}

static void
add_reconfigurations(const tt_reconfig_costs *costs, tt_job_result *result)
{
    _Static_assert(TT_RECONFIG_METHODS * TT_RECONFIG_KINDS <= TT_JOB_RECONFIGURATIONS_MAX,
                   "every method and kind has its row");
    result->reconfiguration_kinds = 0;
    for (uint32_t m = 0; m < TT_RECONFIG_METHODS; m++)
        for (uint32_t k = 0; k < TT_RECONFIG_KINDS; k++) {
            const tt_reconfig_sum *sum = &costs->of[m][k];
            if (sum->count == 0)
                continue;
            result->reconfigurations[result->reconfiguration_kinds++] =
                (tt_job_reconfigurations){.method = tt_reconfig_method_name((tt_reconfig_method)m),
                                          .kind = tt_reconfig_kind(k),
                                          .count = sum->count,
                                          .lost_seconds = sum->lost_s,
                                          .duration_seconds = sum->duration_s};
        }
}

static void
fill_result(tti_training *tr, tt_job_result *result)
{
    const tt_job *job = tr->job;
    result->outcome = tr->outcome;
    (void)snprintf(result->stop_reason, sizeof result->stop_reason, "%s", tr->stop_reason);
    result->loss = tr->metrics.loss;
    result->objective = tr->metrics.objective;
    result->iterations = tr->iterations;
    result->examples = tt_load_relaxed(&tr->rt->work.examples_trained);
    result->epochs = tti_training_epochs(tr);
    result->train_seconds = tr->train_seconds;
    result->examples_per_second = (double)result->examples / fmax(tr->train_seconds, 1e-9);
    result->generations = tr->rt->newest->view->generation;
    result->setting_changes = tr->setting_changes;
    result->deaths = tr->tally.deaths;
    result->restored = tr->tally.restored;
    result->returns = tr->tally.returns;
    result->takeovers = tr->takeovers;
    result->reconfigure_seconds = tr->reconfigure_s;
    result->setting = tr->setting;
    result->final_setting_id = tr->setting_id;
    tti_warm_begin(job, tr->tuned, &result->start_setting);
    for (uint32_t i = 0; i < job->warm.run_count && tr->tuned && tti_warm_used(job); i++)
        result->started_from[result->started_from_count++] = job->warm.runs[i].id;
    result->staleness_mean = tr->staleness_sum / fmax((double)tr->iterations, 1);
    result->partitions_moved = tr->partitions_moved;
    if (tr->tuner != NULL) {
        tt_tuner_summary summary;
        tt_tuner_summarize(tr->tuner, &summary);
        result->explore_seconds = tr->tuned ? summary.explore_s : 0;
    }
    if (tr->iteration_time_count > 0) {
        qsort(tr->iteration_times, tr->iteration_time_count, sizeof(double), by_value);
        result->iteration_median_s = tr->iteration_times[tr->iteration_time_count / 2];
    }
    add_validation(tr, result);
    add_reconfigurations(&tr->costs, result);
    add_node_counters(tr, result);
}

static tt_status
evaluate_test(
    const tt_job *job, const float *model, tt_store *store, tt_job_result *result, tt_error *err)
{
    tt_model_metrics metrics;
    result->test_count = 0;
    if (job->test == NULL)
        return TT_OK;
    TT_TRY(tt_model_evaluate(job->model, job->test, model, tt_thread_processor_count(), &metrics,
                             err));
    result->test_count = list_metrics(&metrics, result->test);
    for (uint32_t i = 0; store != NULL && i < result->test_count; i++)
        TT_TRY(tt_store_put_metric(store, result->test[i].name, result->test[i].value, err));
    return TT_OK;
}

// The disk of the runs refuses the model: hours of work go to the temporary directory instead, and
// the error says where.
static void
rescue(const char *path, const tti_training *tr, const float *model, tt_error *err)
{
    char elsewhere[600], advice[320], what[512];
    const char *base = getenv("TMPDIR"), *slash = strrchr(tr->identity->run_dir, '/');
    (void)snprintf(elsewhere, sizeof elsewhere, "%.200s/trimtab-%.160s-model.safetensors",
                   base != NULL && base[0] != '\0' ? base : "/tmp",
                   slash != NULL ? slash + 1 : tr->identity->run_dir);
    if (tti_model_save(elsewhere, tr->job, model, NULL) != TT_OK)
        return;
    (void)snprintf(advice, sizeof advice, "it was saved as %.250s instead: move it", elsewhere);
    (void)snprintf(what, sizeof what, "%s", err->what);
    (void)tt_error_set(err, err->status, path, advice, "%s", what);
}

static tt_status
save(tti_training *tr, tt_job_result *result, tt_error *err)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/model.safetensors", result->run_dir);
    const float *model = tr->outcome == TT_JOB_FAILED ? tr->good_model : tr->model;
    tt_status status = tti_model_save(path, tr->job, model, err);
    if (status == TT_IO && err != NULL)
        rescue(path, tr, model, err);
    if (status != TT_OK)
        return status;
    TT_TRY(evaluate_test(tr->job, model, tr->store, result, err));
    if (!tr->job->spec.npz)
        return TT_OK;
    (void)snprintf(path, sizeof path, "%s/model.npz", result->run_dir);
    return tti_model_save_npz(path, tr->job, model, err);
}

// A blow-up that stays finite is no failure of the job, but must not pass in silence: with all
// weights zero the loss is 1 (hinge) or the logarithm of the number of classes.
static void
warn_if_useless(tti_training *tr)
{
    const tt_job *job = tr->job;
    int hinge = strcmp(tti_model_names[job->spec.model], "linear_svm") == 0;
    double untrained = hinge ? 1 : log((double)job->train->class_count);
    if (tr->outcome == TT_JOB_FAILED || tr->iterations == 0 || !(tr->metrics.loss > untrained))
        return;
    tti_training_event(tr, "warning",
                       "the model is worse than an untrained one: loss %.4g, with all weights zero "
                       "%.4g; try a learning rate 10 to 100 times smaller",
                       tr->metrics.loss, untrained);
}

static tt_status
diverged(const tti_training *tr, tt_error *err)
{
    char advice[320], saved[96] = "the model it began with";
    if (isfinite(tr->good_loss))
        (void)snprintf(saved, sizeof saved, "the %s (iteration %llu, %sloss %.4g)",
                       tr->saved_best ? "best model" : "model before it",
                       (unsigned long long)tr->good_iteration, tr->saved_best ? "validation " : "",
                       tr->good_loss);
    (void)snprintf(advice, sizeof advice,
                   "%s is saved; try a learning rate 10 to 100 times smaller", saved);
    return tt_error_set(err, TT_DIVERGED, "stopped", advice, "%s", tr->stop_reason);
}

static void
fail_result(tt_job_result *result, tt_status status, const tt_error *err)
{
    result->outcome = TT_JOB_FAILED;
    (void)snprintf(result->stop_reason, sizeof result->stop_reason, "%.300s",
                   err != NULL ? err->what : tt_status_text(status));
}

// The run's last row. Without it the model is there all the same, and worth more than its records.
static void
record_end(tti_training *tr, tt_store *store, const tt_job_result *result)
{
    tt_error err = {0};
    if (tr->store != NULL && tt_store_in_transaction(store) &&
        tt_store_commit(store, &err) != TT_OK)
        tti_record_failed(tr, &err);
    tt_status status =
        tti_run_update(store, tr->job, result, outcome_name(result->outcome), tr->setting_id, &err);
    tt_status written = tt_store_catch_up(store, status == TT_OK ? &err : NULL);
    if (status == TT_OK)
        status = written;
    if (status != TT_OK && tr->store != NULL)
        tti_record_failed(tr, &err);
}

// One training; result and model are filled as far as it got.
typedef struct training_call {
    tt_job *job;
    const tt_job_run_options *options;
    int tuned;
    tt_store *store;
    const tti_resume *resume;
    tt_job_result *result;
    tt_error *err;
    tt_status status;
} training_call;

static tt_status
train_here(const training_call *call)
{
    tt_job_result *result = call->result;
    tt_store *store = call->store;
    const tti_resume *resume = call->resume;
    tt_error *err = call->err;
    tti_training *tr = tt_mem_zalloc(1, sizeof *tr);
    if (tr == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to train");
    tt_status status =
        tti_training_open(tr, call->job, call->options, call->tuned, store, resume, err);
    tr->identity = result;
    if (status == TT_OK && store != NULL)
        status = tti_training_enable_checkpoints(tr, err);
    if (status == TT_OK && resume != NULL)
        tti_training_say_resumed(tr, resume);
    if (status == TT_OK)
        status = tti_training_run(tr, err);
    while (status == TT_OK && tr->has_died)
        status = tti_training_succeed(tr, call->tuned, err);
    if (tr->rt != NULL)
        fill_result(tr, result);
    if (status == TT_OK)
        warn_if_useless(tr);
    if (status == TT_OK && store != NULL)
        status = save(tr, result, err);
    if (status == TT_OK && tr->outcome == TT_JOB_FAILED)
        status = diverged(tr, err);
    if (status != TT_OK)
        fail_result(result, status, err);
    if (store != NULL)
        record_end(tr, store, result);
    if (store != NULL && tr->rt != NULL)
        tti_warm_learn(tr, outcome_name(result->outcome));
    tti_training_close(tr);
    tt_mem_free(tr);
    return status;
}

static void
train_as_called(void *self)
{
    training_call *call = self;
    call->status = train_here(call);
}

static tt_status
train(training_call call)
{
    TT_TRY(tti_processes_open(call.job, NULL, call.err));
    if (call.job->spec.engine != TTI_ENGINE_SIMULATED)
        return train_here(&call);
    call.result->simulated = 1;
    TT_TRY(tti_simulate(call.job, train_as_called, &call, &call.result->simulation, call.err));
    return call.status;
}

tt_status
tti_job_train(
    tt_job *job, const tt_job_run_options *options, int tuned, tt_job_result *result, tt_error *err)
{
    *result = (tt_job_result){
        .untuned_seconds = NAN, .loss = NAN, .objective = NAN, .outcome = TT_JOB_FAILED};
    return train((training_call){
        .job = job, .options = options, .tuned = tuned, .result = result, .err = err});
}

// The same job at its start setting throughout: what tuning is measured against.
static void
compare(tt_job *job, const tt_job_run_options *options, tt_store *store, tt_job_result *result)
{
    tt_job_result untuned = {0};
    tt_error err = {0};
    tt_job_run_options quiet = *options;
    quiet.events = 0;
    if (options->events)
        (void)fprintf(
            stderr, "now once more at the start setting, untuned, to see what tuning was worth\n");
    // What goes wrong here takes nothing away from the model that is saved.
    training_call call = {.job = job, .options = &quiet, .result = &untuned, .err = &err};
    if (train(call) != TT_OK) {
        tt_log(TT_LOG_WARN, "no comparison, the untuned run failed: %s", err.what);
        return;
    }
    if (untuned.outcome != result->outcome)
        return; // one of them did not get there: no comparison
    result->untuned_seconds = untuned.train_seconds;
    if (tti_run_update(store, job, result, outcome_name(result->outcome), result->final_setting_id,
                       &err) != TT_OK)
        tt_log(TT_LOG_WARN, "the report will not have the comparison: %s: %s", err.where, err.what);
}

// The master answers nodes and must not wait for a disk. A simulated one does not, on its clock.
static void
write_behind(const tt_job *job, tt_store *store)
{
    tt_error err = {0};
    if (job->spec.engine != TTI_ENGINE_SIMULATED && tt_store_write_behind(store, &err) != TT_OK)
        tt_log(TT_LOG_WARN, "training may wait for the run store's disk: %s", err.what);
}

tt_status
tt_job_run(tt_job *job, const tt_job_run_options *options, tt_job_result *result, tt_error *err)
{
    *result = (tt_job_result){.untuned_seconds = NAN,
                              .loss = NAN,
                              .objective = NAN,
                              .outcome = TT_JOB_FAILED,
                              .started_at = tt_clock_wall_seconds()};
    const char *runs_dir = options->runs_dir != NULL ? options->runs_dir : job->spec.runs_dir;
    tt_store *store = NULL;
    tt_clock clock = tt_clock_monotonic();
    uint64_t begin = tt_clock_now(&clock);
    tti_interrupted = 0;
    TT_TRY(
        tti_processes_open(job, options->resume, err)); // before this process opens what is its own
    tti_resume resume = {0};
    const tti_resume *resumed = options->resume != NULL ? &resume : NULL;
    tt_status status = resumed != NULL
                           ? tti_run_continue(job, options->resume, &resume, result, &store, err)
                           : tti_run_begin(job, runs_dir, result, &store, err);
    if (status == TT_OK && options->events)
        (void)fprintf(stderr, "run %s   (%s)\n", result->run_id, result->run_dir);
    if (status == TT_OK)
        write_behind(job, store);
    if (status == TT_OK)
        status = train((training_call){.job = job,
                                       .options = options,
                                       .tuned = 1,
                                       .store = store,
                                       .resume = resumed,
                                       .result = result,
                                       .err = err});
    if (status == TT_OK)
        status = tti_run_write_setting(job, result, err);
    if (status == TT_OK && job->spec.tuner_compare && job->spec.tuner_enabled &&
        result->outcome != TT_JOB_INTERRUPTED)
        compare(job, options, store, result);
    result->wall_seconds = (double)(tt_clock_now(&clock) - begin) * 1e-9;
    if (status != TT_OK)
        fail_result(result, status, err);
    tti_resume_close(&resume);
    tti_processes_close(job);
    tt_error closing = {0};
    if (tt_store_close(store, &closing) != TT_OK)
        tt_log(TT_LOG_WARN, "the run store is not complete: %s: %s", closing.where, closing.what);
    return status;
}

// ---- the result as JSON -----------------------------------------------------------------------

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *
tti_setting_json(const tt_job *job, const tt_setting *setting)
{
    json_t *object = json_object();
    for (uint32_t k = 0; k < job->space.count && k < setting->count; k++) {
        const tt_space_knob *knob = &job->space.knob[k];
        if (knob->absent)
            continue;
        double value = setting->value[k];
        json_t *item = NULL;
        switch (knob->knob->kind) {
        case TT_KNOB_BOOL:
            item = json_boolean(value != 0);
            break;
        case TT_KNOB_INT:
            item = json_integer((json_int_t)value);
            break;
        case TT_KNOB_REAL:
            item = number(value);
            break;
        case TT_KNOB_ENUM:
            item = json_string(knob->knob->values[(size_t)value]);
            break;
        }
        (void)json_object_set_new(object, knob->knob->id, item);
    }
    return object;
}

static json_t *
reconfigurations_json(const tt_job_result *result)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < result->reconfiguration_kinds; i++) {
        const tt_job_reconfigurations *row = &result->reconfigurations[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:I, s:o, s:o}", "method", row->method,
                                              "kind", row->kind, "count", (json_int_t)row->count,
                                              "lost_seconds", number(row->lost_seconds),
                                              "duration_seconds", number(row->duration_seconds)));
    }
    return list;
}

static json_t *
simulation_json(const tt_job_simulation *s)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "events",
                     (json_int_t)s->events, "switches", (json_int_t)s->switches, "fibers",
                     (json_int_t)s->fibers, "dropped", (json_int_t)s->dropped, "duplicated",
                     (json_int_t)s->duplicated, "delayed", (json_int_t)s->delayed, "crashes",
                     (json_int_t)s->crashes, "wall_seconds", number(s->wall_seconds),
                     "virtual_seconds", number(s->virtual_seconds));
}

static json_t *
counters_json(const tt_job_result *result)
{
    json_t *counters = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}",
        "frames", (json_int_t)result->frames, "bytes", (json_int_t)result->bytes, "chunks",
        (json_int_t)result->chunks, "sleeps", (json_int_t)result->sleeps, "pushes",
        (json_int_t)result->pushes, "batches_ready", (json_int_t)result->batches_ready,
        "batches_waited", (json_int_t)result->batches_waited, "staleness_mean",
        number(result->staleness_mean), "moving_waits", (json_int_t)result->moving_wait_count,
        "moving_wait_p99_s", number(result->moving_wait_p99_s), "iteration_median_s",
        number(result->iteration_median_s), "partitions_moved",
        (json_int_t)result->partitions_moved, "deaths", (json_int_t)result->deaths, "returns",
        (json_int_t)result->returns, "restored", (json_int_t)result->restored, "takeovers",
        (json_int_t)result->takeovers, "reconfigurations", reconfigurations_json(result));
    if (counters != NULL && result->simulated)
        (void)json_object_set_new(counters, "simulation", simulation_json(&result->simulation));
    return counters;
}

// null without validation rows.
static json_t *
validation_json(const tt_job_result *result)
{
    if (result->validations == 0)
        return json_null();
    json_t *object = json_object();
    for (uint32_t i = 0; i < result->validation_count; i++)
        (void)json_object_set_new(object, result->validation[i].name,
                                  number(result->validation[i].value));
    (void)json_object_set_new(object, "prior_loss", number(result->prior_loss));
    (void)json_object_set_new(object, "evaluations", json_integer(result->validations));
    (void)json_object_set_new(object, "best_evaluation", json_integer(result->best_validation));
    (void)json_object_set_new(object, "best_loss", number(result->best_validation_loss));
    (void)json_object_set_new(object, "best_epoch", number(result->best_epoch));
    (void)json_object_set_new(object, "saved_best", json_boolean(result->saved_best));
    return object;
}

tt_status
tt_job_result_json(const tt_job *job, const tt_job_result *result, FILE *out)
{
    json_t *test = json_object();
    for (uint32_t i = 0; i < result->test_count; i++)
        (void)json_object_set_new(test, result->test[i].name, number(result->test[i].value));
    json_t *from = json_array();
    for (uint32_t i = 0; i < result->started_from_count; i++)
        (void)json_array_append_new(from, json_string(result->started_from[i]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o}",
        "run", result->run_id, "run_dir", result->run_dir, "status", outcome_name(result->outcome),
        "stop_reason", result->stop_reason, "loss", number(result->loss), "objective",
        number(result->objective), "iterations", (json_int_t)result->iterations, "epochs",
        number(result->epochs), "train_seconds", number(result->train_seconds), "wall_seconds",
        number(result->wall_seconds), "examples_per_second", number(result->examples_per_second),
        "generations", (json_int_t)result->generations, "reconfigure_seconds",
        number(result->reconfigure_seconds), "explore_seconds", number(result->explore_seconds),
        "untuned_seconds", number(result->untuned_seconds), "setting",
        tti_setting_json(job, &result->setting), "start_setting",
        tti_setting_json(job, &result->start_setting), "started_from", from, "test", test,
        "counters", counters_json(result), "validation", validation_json(result));
    if (object == NULL)
        return TT_NOMEM;
    int failed = json_dumpf(object, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
    json_decref(object);
    return failed ? TT_IO : TT_OK;
}
