// Reconfiguring by checkpoint and restart: every worker rests, everything the nodes hold is written
// to a file and synced, the nodes are torn down and started under the new setting, and load the
// file. What systems without relocation do, to compare with; each part is timed. Source: Towards
// Self-Tuning Parameter Servers, Section VI (checkpoint CKP, system setting recovery SSR, model
// data recovery MDR, training data recovery TDR).
#include "training.h"
#include <math.h>

// The job's clock goes on: what a restart takes is training time.
tt_status
tti_training_open_and_start(tti_training *tr,
                            const tt_setting *setting,
                            const tti_restore *restore,
                            uint64_t start_ns,
                            tt_error *err)
{
    TT_TRY(tti_runtime_open(tr->job, setting, restore, &tr->rt, err));
    tti_training_join_members(tr);
    tti_training_join_watch(tr);
    tt_status status = tti_runtime_start(tr->rt, err);
    if (status != TT_OK) {
        tti_runtime_close(tr->rt);
        tr->rt = NULL;
        return status;
    }
    tr->rt->start_ns = start_ns;
    tr->last_round_ns = tt_clock_now(&tr->rt->clock);
    return TT_OK;
}

static double
since(const tt_clock *clock, uint64_t begin)
{
    return (double)(tt_clock_now(clock) - begin) * 1e-9;
}

// Ends the runtime and begins one from the file. If there is no beginning it under the new setting
// it is begun under the old one: then *refused is set.
static tt_status
replace_runtime(tti_training *tr,
                const char *path,
                const tt_reconfig_plan *plan,
                double *read_s,
                int *refused,
                tt_error *err)
{
    tt_clock clock = tr->rt->clock;
    uint64_t start_ns = tr->rt->start_ns;
    uint32_t generation = tr->rt->newest->view->generation;
    tti_training_leave_nothing(tr);
    tti_runtime_traffic(tr->rt, &tr->traffic);
    tti_runtime_abandon(tr->rt);
    tr->rt = NULL;
    tti_checkpoint file;
    uint64_t begin = tt_clock_now(&clock);
    const tti_checkpoint *from = &file;
    if (tti_checkpoint_read(path, &file, err) != TT_OK) {
        tt_log(TT_LOG_WARN, "%s: %s; the nodes go on from its copy in memory", path, err->what);
        from = &tr->checkpoint.file;
    }
    *read_s = since(&clock, begin);
    tti_restore restore = {
        .elapsed_s = from->time_s, .generation = generation + 1, .placement = plan->view};
    uint64_t count;
    restore.bytes = tti_checkpoint_find(from, "runtime", &count);
    restore.count = count;
    tt_status status = tti_training_open_and_start(tr, &plan->to, &restore, start_ns, err);
    if (status != TT_OK) {
        *refused = 1;
        restore.generation = generation;
        restore.placement = NULL;
        status = tti_training_open_and_start(tr, &tr->setting, &restore, start_ns, NULL);
    }
    tti_checkpoint_fini(&file);
    return status;
}

tt_status
tti_training_restart(tti_training *tr, const tt_reconfig_plan *plan, int *refused, tt_error *err)
{
    char path[700];
    double read_s = 0, start_s = tti_training_now(tr);
    uint64_t iterations = tti_runtime_iterations(tr->rt);
    *refused = tti_training_checkpoint_and_rest(tr, path, sizeof path, err) != TT_OK;
    if (*refused)
        return TT_OK;
    double checkpoint_s = tti_training_now(tr) - start_s;
    tt_status status = replace_runtime(tr, path, plan, &read_s, refused, err);
    if (status != TT_OK)
        return status;
    if (!*refused) {
        tt_reconfig_begin(&tr->transition, plan, tr->rt->newest->view->generation,
                          tr->rt->node_count, 0, start_s, iterations, 0, 0);
        tt_reconfig_restarted(&tr->transition, checkpoint_s, read_s + tr->rt->load_model_s,
                              tr->rt->load_data_s);
    }
    tti_training_restarted(tr);
    return TT_OK;
}
