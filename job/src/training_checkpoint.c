// Checkpoints of a running job. The workers rest while the nodes' state is copied in memory;
// encoding of what the master knows, checksums, writing and syncing go on beside training.
#include "run_record.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETTLE_NS = 2000000 };
static const double SETTLE_LIMIT_S = 10;

static void *
writer_main(void *self)
{
    tti_checkpointing *c = self;
    tt_thread_set_background();
    c->status = tti_checkpoint_write(c->directory, &c->file, &c->err);
    if (c->status == TT_OK)
        tti_checkpoint_prune(c->directory, c->keep);
    tt_store_release(&c->written, 1); // acquired in tti_training_checkpoint
    tti_board_ring(c->board);
    return NULL;
}

static int
may_restart(const tt_job *job)
{
    int found = job->spec.method == TT_RECONFIG_CHECKPOINT;
    for (uint32_t i = 0; !found && i < job->script_count; i++)
        found = job->script[i].method == TT_RECONFIG_CHECKPOINT;
    return found;
}

tt_status
tti_training_enable_checkpoints(tti_training *tr, tt_error *err)
{
    tti_checkpointing *c = &tr->checkpoint;
    if (tr->job->spec.checkpoint_keep == 0 && !may_restart(tr->job) &&
        !tti_training_is_bequeathable(tr))
        return TT_OK;
    TT_TRY(tti_job_resolved_text(tr->job, &c->config, &c->config_bytes, err));
    c->data_print = tti_data_print(tr->job->train);
    c->enabled = tr->job->spec.checkpoint_keep > 0;
    c->keep = (uint32_t)tr->job->spec.checkpoint_keep;
    c->board = &tr->rt->board;
    double every = tr->job->spec.checkpoint_every;
    c->next_s = every > 0 ? tti_training_now(tr) + every : INFINITY;
    (void)snprintf(c->directory, sizeof c->directory, "%.500s/checkpoints", tr->identity->run_dir);
    return TT_OK;
}

// ---- the copy ---------------------------------------------------------------------------------

static void
copy_runtime(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    uint64_t bytes = tti_runtime_save_bytes(tr->rt);
    if (c->runtime.capacity < bytes) {
        tt_archive_fini(&c->runtime);
        tt_archive_write(&c->runtime, bytes);
    }
    tt_archive_rewind(&c->runtime);
    tti_runtime_save(tr->rt, &c->runtime);
}

void
tti_training_save_knowledge(tti_training *tr, tti_knowledge *out)
{
    tt_archive_rewind(&out->training);
    tt_archive_rewind(&out->estimator);
    tt_archive_rewind(&out->tuner);
    tt_archive_rewind(&out->best);
    tti_training_visit(tr, &out->training);
    tt_estimator_save(tr->estimator, &out->estimator);
    if (tr->best_model != NULL && tr->early.best_evaluation > 0)
        tt_archive_field(&out->best, tr->best_model, tti_training_model_floats(tr) * sizeof(float));
    if (tr->tuner != NULL)
        tt_tuner_save(tr->tuner, &out->tuner);
}

tt_status
tti_training_describe(const tti_training *tr,
                      const char *nodes,
                      const tt_archive *state,
                      const tti_knowledge *knowledge,
                      tti_checkpoint *out)
{
    const tti_checkpointing *c = &tr->checkpoint;
    out->section_count = 0;
    out->written_at = tt_clock_wall_seconds();
    tti_checkpoint_add(out, "config", c->config, c->config_bytes);
    tti_checkpoint_add(out, "data", &c->data_print, sizeof c->data_print);
    tti_checkpoint_add(out, nodes, state->bytes, state->count);
    tti_checkpoint_add(out, "training", knowledge->training.bytes, knowledge->training.count);
    tti_checkpoint_add(out, "estimator", knowledge->estimator.bytes, knowledge->estimator.count);
    if (tr->tuner != NULL)
        tti_checkpoint_add(out, "tuner", knowledge->tuner.bytes, knowledge->tuner.count);
    if (knowledge->best.count > 0)
        tti_checkpoint_add(out, "best", knowledge->best.bytes, knowledge->best.count);
    const tt_archive *const parts[] = {state, &knowledge->training, &knowledge->estimator,
                                       &knowledge->tuner, &knowledge->best};
    for (size_t i = 0; i < TT_COUNT_OF(parts); i++)
        if (parts[i]->status != TT_OK)
            return parts[i]->status;
    return TT_OK;
}

void
tti_knowledge_fini(tti_knowledge *knowledge)
{
    tt_archive *const parts[] = {&knowledge->training, &knowledge->estimator, &knowledge->tuner,
                                 &knowledge->best};
    for (size_t i = 0; i < TT_COUNT_OF(parts); i++)
        tt_archive_fini(parts[i]);
}

// Copies everything at one moment. last: the workers are not let go again. False when they do not
// come to rest.
static int
copy_all(tti_training *tr, int last)
{
    tti_checkpointing *c = &tr->checkpoint;
    double begin = tti_training_now(tr);
    if (!tti_runtime_hold(tr->rt))
        return 0;
    if (!tti_runtime_copy(tr->rt)) {
        tti_runtime_go_on(tr->rt);
        return 0;
    }
    tti_training_drain(tr);
    copy_runtime(tr);
    c->file.iteration = tr->iterations;
    c->file.time_s = tti_training_now(tr);
    if (!last)
        tti_runtime_go_on(tr->rt);
    c->longest_rest_s = fmax(c->longest_rest_s, tti_training_now(tr) - begin);
    tti_training_save_knowledge(tr, &c->knowledge);
    c->status = tti_training_describe(tr, "runtime", &c->runtime, &c->knowledge, &c->file);
    if (c->status != TT_OK)
        (void)tt_error_set(&c->err, c->status, c->directory, NULL, "no memory for a checkpoint");
    return 1;
}

// ---- when -------------------------------------------------------------------------------------

static void
report(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    if (c->status == TT_OK) {
        c->count++;
        tti_training_event(tr, c->failed ? "info" : "debug",
                           "checkpoint at iteration %llu, workers rested %.1f ms at most",
                           (unsigned long long)c->file.iteration, 1e3 * c->longest_rest_s);
        c->failed = 0;
        return;
    }
    if (!c->failed) // training goes on, the next one may succeed
        tti_training_event(tr, "warning", "%s: %s; %s", c->err.where, c->err.what, c->err.advice);
    c->failed = 1;
}

void
tti_training_finish_checkpoint(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    if (!c->writing)
        return;
    tt_thread_join(&c->thread);
    c->writing = 0;
    report(tr);
}

void
tti_training_checkpoint(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    if (c->writing && tt_load_acquire(&c->written)) // released in writer_main
        tti_training_finish_checkpoint(tr);
    double now = tti_training_now(tr);
    // Parameters on their way are at rest nowhere; a move takes a moment.
    if (!c->enabled || c->writing || now < c->next_s || tr->transition.active ||
        !tti_runtime_settled(tr->rt))
        return;
    if (!copy_all(tr, 0))
        return;
    c->next_s = now + tr->job->spec.checkpoint_every;
    c->written = 0;
    c->writing = c->status == TT_OK &&
                 tt_thread_start(&c->thread, "tt-checkpoint", writer_main, c, &c->err) == TT_OK;
    if (!c->writing) {
        c->status = c->status != TT_OK ? c->status : TT_NOMEM;
        report(tr);
    }
}

static int
is_moving(const tti_training *tr)
{
    return tr->transition.active || !tti_runtime_is_whole(tr->rt) ||
           tt_load_acquire(&tr->rt->unretired) > 0; // partition_retired
}

static int
settle(tti_training *tr)
{
    double deadline = tti_training_now(tr) + SETTLE_LIMIT_S;
    while (is_moving(tr) && tti_training_now(tr) < deadline) {
        uint32_t seen = tt_event_read(&tr->rt->board.bell);
        tti_training_drain(tr);
        tti_membership_watch(tr->rt);
        tti_training_follow_transition(tr);
        if (is_moving(tr))
            tti_runtime_wait(tr->rt, seen, SETTLE_NS);
    }
    return !is_moving(tr);
}

void
tti_training_last_checkpoint(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    tti_training_finish_checkpoint(tr);
    if (!c->enabled || tr->outcome == TT_JOB_FAILED)
        return;
    if (!settle(tr) || !copy_all(tr, 1)) {
        tti_training_event(tr, "warning",
                           "no checkpoint of the end: the nodes do not come to rest");
        return;
    }
    if (c->status == TT_OK)
        c->status = tti_checkpoint_write(c->directory, &c->file, &c->err);
    if (c->status == TT_OK)
        tti_checkpoint_prune(c->directory, c->keep);
    report(tr);
}

// ---- restarting -------------------------------------------------------------------------------

tt_status
tti_training_checkpoint_and_rest(tti_training *tr, char *path, size_t path_size, tt_error *err)
{
    tti_checkpointing *c = &tr->checkpoint;
    TT_ASSERT(c->config != NULL && !tr->transition.active); // see may_restart
    tti_training_finish_checkpoint(tr);
    if (!copy_all(tr, 1))
        return tt_error_set(err, TT_BUSY, NULL, NULL, "the workers do not come to rest");
    tt_status status = c->status;
    if (status == TT_OK)
        status = tti_checkpoint_write(c->directory, &c->file, &c->err);
    if (status != TT_OK) {
        tti_runtime_go_on(tr->rt);
        if (err != NULL)
            *err = c->err;
        return status;
    }
    tti_checkpoint_path(c->directory, c->file.iteration, path, path_size);
    return TT_OK;
}

void
tti_training_restarted(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    c->board = &tr->rt->board;
    c->next_s = tr->job->spec.checkpoint_every > 0
                    ? tti_training_now(tr) + tr->job->spec.checkpoint_every
                    : INFINITY;
    tti_checkpoint_prune(c->directory, c->keep);
    if (c->keep == 0)
        (void)rmdir(c->directory);
}

void
tti_training_close_checkpoints(tti_training *tr)
{
    tti_checkpointing *c = &tr->checkpoint;
    if (c->writing)
        tt_thread_join(&c->thread);
    free(c->config); // of open_memstream
    tt_archive_fini(&c->runtime);
    tti_knowledge_fini(&c->knowledge);
}
