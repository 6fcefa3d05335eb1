// What the master knows of a training besides the nodes, the estimator and the tuner, visited in
// one order for writing and reading.
#include "training.h"
#include <math.h>

enum { STATE_VERSION = 1 };

static void
visit_progress(tti_training *tr, tt_archive *archive)
{
    TT_ARCHIVE(archive, tr->iterations);
    TT_ARCHIVE(archive, tr->staleness_sum);
    TT_ARCHIVE(archive, tr->last_push_s);
    TT_ARCHIVE(archive, tr->last_loss);
    TT_ARCHIVE(archive, tr->good_iteration);
    TT_ARCHIVE(archive, tr->good_loss);
    TT_ARCHIVE(archive, tr->next_epoch_evaluation);
    TT_ARCHIVE(archive, tr->regulariser);
}

static void
visit_setting(tti_training *tr, tt_archive *archive)
{
    TT_ARCHIVE(archive, tr->setting);
    TT_ARCHIVE(archive, tr->setting_id);
    TT_ARCHIVE(archive, tr->next_script);
    TT_ARCHIVE(archive, tr->recorded_settings);
    TT_ARCHIVE(archive, tr->reconfigurations);
    TT_ARCHIVE(archive, tr->reconfigure_s);
    TT_ARCHIVE(archive, tr->partitions_moved);
    TT_ARCHIVE(archive, tr->windows);
}

static void
visit_validation(tti_training *tr, tt_archive *archive)
{
    TT_ARCHIVE(archive, tr->early);
    TT_ARCHIVE(archive, tr->best_validation);
    TT_ARCHIVE(archive, tr->best_s);
    TT_ARCHIVE(archive, tr->next_validation_epoch);
}

void
tti_training_visit(tti_training *tr, tt_archive *archive)
{
    uint64_t own = tti_resume_space_print(tr->job), print = own;
    TT_ARCHIVE(archive, print); // first, see tti_resume_same_space
    tr->same_space = print == own;
    tt_archive_tag(archive, STATE_VERSION);
    tt_archive_tag(archive, sizeof tr->setting);
    uint32_t generation = tr->rt != NULL ? tr->rt->newest->view->generation : 0;
    TT_ARCHIVE(archive, generation);
    tr->first_generation = generation + 1;
    visit_progress(tr, archive);
    visit_setting(tr, archive);
    visit_validation(tr, archive);
}
