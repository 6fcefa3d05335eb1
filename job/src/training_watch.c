// Looking at the whole training set beside the job's clock, every so many iterations of a job on
// simulated hosts: the model is read out of the servers' memory, so that no message is sent and no
// time passes. The estimator hears of one an epoch, the tuner of none. A target is reached when two
// looks in a row hold it, at the time of the first. What is seen is kept by the worker that looks,
// and recorded by the master at its next turn.
#include "training.h"
#include <errno.h>
#include <math.h>
#include <string.h>

enum { ROWS_FIRST = 64 };

static int
holds(const tti_spec *spec, const tt_model_metrics *metrics)
{
    if (isfinite(spec->stop_objective))
        return metrics->objective <= spec->stop_objective;
    return isfinite(spec->stop_loss) && metrics->loss <= spec->stop_loss;
}

static tt_status
keep_row(tti_lookout *w, const tt_store_progress *row)
{
    if (w->row_count == w->row_capacity) {
        size_t wanted = TT_MAX(2 * w->row_capacity, (size_t)ROWS_FIRST);
        tt_store_progress *grown = tt_mem_realloc(w->rows, wanted * sizeof *grown);
        if (grown == NULL)
            return tt_error_set(&w->err, TT_NOMEM, NULL, "raise simulation.evaluate_pushes",
                                "no memory for evaluations");
        w->rows = grown;
        w->row_capacity = wanted;
    }
    w->rows[w->row_count++] = *row;
    return TT_OK;
}

// tti_training_now(), but not by the clock of the worker's host that calls.
static double
now_by_master(const tti_training *tr)
{
    tt_clock clock = tt_sim_true_clock(tr->job->sim);
    return (double)(tt_clock_now(&clock) - tr->rt->start_ns - tr->paused_ns) * 1e-9;
}

static tt_status
look_at(tti_training *tr, uint64_t iterations)
{
    tti_lookout *w = &tr->lookout;
    tt_model_metrics metrics;
    tti_runtime_peek_model(tr->rt, w->model);
    TT_TRY(tt_model_evaluate_loss(tr->job->model, tr->job->train, w->model, &metrics, &w->err));
    const tt_store_progress row = {.time_s = now_by_master(tr),
                                   .iteration = (int64_t)iterations,
                                   .epoch = tti_training_epochs(tr),
                                   .loss = metrics.loss,
                                   .objective = metrics.objective};
    TT_TRY(keep_row(w, &row));
    int held = holds(&tr->job->spec, &metrics);
    if (held && w->holding) {
        w->reached = 1;
        tti_board_ring(&tr->rt->board);
    } else if (held) {
        memcpy(w->held_model, w->model, tti_training_model_floats(tr) * sizeof *w->model);
        w->held = metrics;
        w->held_s = row.time_s;
        w->held_iteration = iterations;
    }
    w->holding = held;
    return TT_OK;
}

// [node]
static void
look(void *self, uint64_t iterations)
{
    tti_training *tr = self;
    tti_lookout *w = &tr->lookout;
    if (w->reached || w->status != TT_OK)
        return;
    w->status = look_at(tr, iterations);
    if (w->status != TT_OK)
        tti_board_ring(&tr->rt->board);
}

// The estimator hears as much as on real hosts, where the target is looked at once an epoch; a
// tenth more than one apart, for the loss may be another at an epoch's end than within.
static void
tell_look(tti_training *tr, const tt_store_progress *row)
{
    tti_lookout *w = &tr->lookout;
    if (row->epoch < w->next_told_epoch)
        return;
    w->next_told_epoch = row->epoch + 1.1;
    tti_training_tell_look(tr, row->loss, row->objective);
}

static void
record_rows(tti_training *tr)
{
    tti_lookout *w = &tr->lookout;
    tt_error err = {0};
    for (size_t i = 0; i < w->row_count && tr->store != NULL; i++)
        if (tt_store_put_progress(tr->store, &w->rows[i], &err) != TT_OK)
            tti_record_failed(tr, &err);
    for (size_t i = 0; i < w->row_count; i++)
        tell_look(tr, &w->rows[i]);
    w->row_count = 0;
}

tt_status
tti_training_follow_watch(tti_training *tr, tt_error *err)
{
    tti_lookout *w = &tr->lookout;
    if (!w->on)
        return TT_OK;
    record_rows(tr);
    if (w->status != TT_OK) {
        if (err != NULL)
            *err = w->err;
        return w->status;
    }
    if (!w->reached || tr->finished)
        return TT_OK;
    size_t bytes = tti_training_model_floats(tr) * sizeof(float);
    memcpy(tr->model, w->held_model, bytes);
    memcpy(tr->good_model, w->held_model, bytes);
    tr->metrics = w->held;
    tr->good_loss = w->held.loss;
    tr->good_iteration = w->held_iteration;
    tr->train_seconds = w->held_s;
    tr->evaluated = 1; // what was evaluated is what is saved
    int objective = isfinite(tr->job->spec.stop_objective);
    tti_training_finish(tr, TT_JOB_CONVERGED, "%s %.6g at iteration %llu, and at the next look",
                        objective ? "objective" : "training loss",
                        objective ? w->held.objective : w->held.loss,
                        (unsigned long long)w->held_iteration);
    return TT_OK;
}

void
tti_training_join_watch(tti_training *tr)
{
    tti_lookout *w = &tr->lookout;
    if (w->on)
        tr->rt->watch = (tti_watch){.seen = &tr->rt->seen,
                                    .every = (uint64_t)tr->job->spec.simulation.evaluate_pushes,
                                    .look = look,
                                    .self = tr};
    w->holding = 0; // it may have gone back to a checkpoint
    w->next_told_epoch = 0;
}

static tt_status
open_samples(tti_lookout *w, const char *path, tt_error *err)
{
    w->samples = fopen(path, "w");
    if (w->samples == NULL)
        return tt_error_set(err, TT_IO, path, "choose another file for simulation.samples",
                            "cannot write the samples: %s", tt_errno_text(errno));
    (void)fputs(
        "# iteration generation worker examples loss time_s cycle_s staleness curvature level\n",
        w->samples);
    return TT_OK;
}

void
tti_training_write_sample(tti_training *tr, const tt_est_sample *sample)
{
    (void)fprintf(tr->lookout.samples, "%llu %llu %u %u %.9g %.9f %.9f %g %g %.9g\n",
                  (unsigned long long)sample->sequence, (unsigned long long)sample->generation,
                  sample->worker, sample->examples, sample->loss, sample->time_s, sample->cycle_s,
                  sample->staleness, sample->curvature, sample->level);
}

tt_status
tti_training_open_watch(tti_training *tr, tt_error *err)
{
    tti_lookout *w = &tr->lookout;
    const tt_job *job = tr->job;
    if (job->sim != NULL && job->spec.simulation.samples != NULL)
        TT_TRY(open_samples(w, job->spec.simulation.samples, err));
    w->on = job->sim != NULL && job->spec.simulation.evaluate_pushes > 0;
    if (!w->on)
        return TT_OK;
    size_t floats = tti_training_model_floats(tr);
    w->model = tt_mem_zalloc_vector(floats, sizeof *w->model);
    w->held_model = tt_mem_zalloc_vector(floats, sizeof *w->held_model);
    if (w->model == NULL || w->held_model == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for copies of the model");
    return TT_OK;
}

void
tti_training_close_watch(tti_training *tr)
{
    tti_lookout *w = &tr->lookout;
    if (w->samples != NULL && fclose(w->samples) != 0)
        tt_log(TT_LOG_WARN, "%s: the samples are not all written: %s",
               tr->job->spec.simulation.samples, tt_errno_text(errno));
    tt_mem_free(w->model);
    tt_mem_free(w->held_model);
    tt_mem_free(w->rows);
}
