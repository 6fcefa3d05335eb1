// What a training does when nodes die or come back: it says so, and where parameters of different
// moments do not go together (BSP) everything goes back to the last checkpoint.
#include "training.h"
#include <math.h>
#include <string.h>

static tt_status
find_checkpoint(void *self, tti_checkpoint *out, tt_error *err)
{
    tti_training *tr = self;
    uint32_t skipped;
    if (!tr->checkpoint.enabled)
        return TT_NOTFOUND;
    tti_training_finish_checkpoint(tr); // the one that is being written may be the last
    return tti_checkpoint_newest(tr->checkpoint.directory, out, &skipped, err);
}

static void
on_event(void *self, const char *text)
{
    tti_training_event(self, "warning", "%s", text);
}

void
tti_training_join_members(tti_training *tr)
{
    tti_membership *m = &tr->rt->membership;
    m->find_checkpoint = find_checkpoint;
    m->on_event = on_event;
    m->self = tr;
    m->tally = &tr->tally;
}

static void
forget_unfinished(tti_training *tr)
{
    tr->transition.active = 0;
    tr->cost_pending = 0;
    memset(tr->rounds, 0, sizeof tr->rounds);
}

// The nodes begin anew from the last checkpoint, or from the beginning, without those that are not
// there. What the estimator and the tuner have learned of time and loss stays true.
static tt_status
go_back(tti_training *tr, tt_error *err)
{
    tti_checkpoint file = {0};
    tt_error none = {0};
    int found = find_checkpoint(tr, &file, &none) == TT_OK;
    tti_restore restore = {.generation = tr->rt->newest->view->generation + 1};
    if (found) {
        restore.elapsed_s = file.time_s;
        restore.bytes = tti_checkpoint_find(&file, "runtime", &restore.count);
    }
    int too_few = tr->rt->membership.too_few;
    tti_training_drain(tr);
    tti_training_leave_nothing(tr);
    tti_runtime_traffic(tr->rt, &tr->traffic);
    uint64_t start_ns = tr->rt->start_ns;
    tti_runtime_abandon(tr->rt);
    tr->rt = NULL;
    tt_status status = tti_training_open_and_start(tr, &tr->setting, &restore, start_ns, err);
    tti_checkpoint_fini(&file);
    if (status != TT_OK)
        return status;
    forget_unfinished(tr);
    tti_training_restarted(tr);
    tti_training_event(tr, "warning", "all nodes go back to %s %llu: %s",
                       found ? "the checkpoint of iteration" : "iteration",
                       (unsigned long long)tti_runtime_iterations(tr->rt),
                       too_few ? "too few were left" : "rounds of different ages do not add up");
    return TT_OK;
}

tt_status
tti_training_follow_members(tti_training *tr, tt_error *err)
{
    tti_membership *m = &tr->rt->membership;
    tti_membership_watch(tr->rt);
    if (m->must_fail)
        return tti_runtime_deserted(err);
    return m->must_go_back ? go_back(tr, err) : TT_OK;
}
