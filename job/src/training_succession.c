// Masters and their successors, the training's side: see training_succession.h.
#include "training.h"
#include <math.h>
#include <string.h>

int
tti_training_is_bequeathable(const tti_training *tr)
{
    const tti_starter *starter = tr->job->starter;
    if (tr->store == NULL)
        return 0;
    return starter != NULL ? tr->job->spec.master_timeout > 0 && starter->verbs->bequeath != NULL
                           : tr->job->sim != NULL && tr->job->master_death_count > 0;
}

// A moment that a successor could go on from: what is under way, nodes can end without a master,
// and partitions are not being sent from here.
static int
is_moment(const tti_training *tr)
{
    const tti_membership *m = &tr->rt->membership;
    return !tr->transition.active && m->state == NULL && !m->must_go_back && !m->must_fail &&
           !m->too_few && !tr->finished;
}

static tt_status
write_base(tti_training *tr, tt_error *err)
{
    tti_succession *s = &tr->succession;
    tti_checkpoint file = {.iteration = tr->iterations, .time_s = tti_training_now(tr)};
    tti_checkpoint_head head;
    tt_span pieces[TTI_CHECKPOINT_PIECES_MAX];
    tt_archive_rewind(&s->books);
    tti_books_save(tr->rt, tr->rt->start_ns + tr->paused_ns, &s->books);
    tti_training_save_knowledge(tr, &s->knowledge);
    if (tti_training_describe(tr, "books", &s->books, &s->knowledge, &file) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for what a successor needs");
    uint32_t count = tti_checkpoint_pieces(&file, &head, pieces);
    return tti_journal_begin(&s->journal, pieces, count, err);
}

static tt_status
leave(tti_training *tr, tt_error *err)
{
    tti_succession *s = &tr->succession;
    tti_starter *starter = tr->job->starter;
    if (s->journal.head == NULL)
        TT_TRY(tti_journal_open(&s->journal, err));
    TT_TRY(write_base(tr, err));
    tr->rt->books.journal = &s->journal;
    if (s->is_bequeathed || starter == NULL)
        return TT_OK;
    uint64_t patience_ns = (uint64_t)(1e9 * tr->job->spec.master_timeout);
    TT_TRY(starter->verbs->bequeath(starter, tr->identity->run_dir, s->journal.descriptor,
                                    patience_ns, err));
    s->is_bequeathed = 1;
    return TT_OK;
}

int
tti_training_has_left(const tti_training *tr)
{
    const tti_succession *s = &tr->succession;
    int is_whole = tr->rt->books.journal != NULL && tti_journal_is_whole(&s->journal);
    return is_whole || s->failed || !tti_training_is_bequeathable(tr);
}

void
tti_training_leave(tti_training *tr)
{
    tti_succession *s = &tr->succession;
    tt_error err = {0};
    if (!tti_training_is_bequeathable(tr) || !is_moment(tr))
        return;
    int failed = leave(tr, &err) != TT_OK;
    if (failed && !s->failed)
        tti_training_event(tr, "warning",
                           "%s; if this process dies the run goes back to its last checkpoint",
                           err.what);
    s->failed = failed;
}

void
tti_training_leave_nothing(tti_training *tr)
{
    tti_succession *s = &tr->succession;
    if (s->is_bequeathed)
        tr->job->starter->verbs->forget(tr->job->starter);
    s->is_bequeathed = 0;
    if (tr->rt != NULL)
        tr->rt->books.journal = NULL;
}

void
tti_training_close_succession(tti_training *tr)
{
    tti_succession *s = &tr->succession;
    tti_journal_close(&s->journal);
    tt_archive_fini(&s->books);
    tti_knowledge_fini(&s->knowledge);
}

void
tti_training_say_resumed(tti_training *tr, const tti_resume *resume)
{
    if (!resume->found) {
        tti_training_event(tr, "info", "no checkpoint was written yet: the run begins again");
        return;
    }
    if (resume->journal != NULL) {
        tti_training_event(
            tr, "info",
            "took over from a process that died: the nodes are at iteration %llu; of "
            "the last %.1f s the report knows nothing",
            (unsigned long long)tr->iterations, tr->succession.alone_s);
        return;
    }
    tti_training_event(tr, "info", "resumed from the checkpoint at iteration %llu, %.1f s%s",
                       (unsigned long long)resume->file.iteration, resume->file.time_s,
                       resume->damaged > 0 ? " (newer ones are damaged)" : "");
    if (resume->changes[0] != '\0')
        tti_training_event(tr, "info", "changed: %s", resume->changes);
    if (tr->tuner != NULL && tr->tuned && !tr->tuner_resumed)
        tti_training_event(
            tr, "info",
            "the search space or the way to tune is another one now: the tuner begins anew");
}

// ---- a successor -------------------------------------------------------------------------------

tt_status
tti_training_inherit(tti_training *tr, const tti_resume *resume, tt_error *err)
{
    tti_succession *s = &tr->succession;
    tt_archive in;
    s->journal = *resume->journal;
    *resume->journal = (tti_journal){.descriptor = -1};
    tti_resume_section(resume, "books", &in);
    const tti_restore restore = {
        .books = in.bytes, .book_bytes = in.count, .journal = &s->journal, .left = resume->left};
    TT_TRY(tti_runtime_open(tr->job, &tr->setting, &restore, &tr->rt, err));
    s->is_bequeathed = tr->job->starter != NULL;
    tr->takeovers++;
    s->returns = memcmp(&tr->setting, &tr->rt->newest->setting, sizeof tr->setting) != 0;
    tr->iterations = TT_MAX(tr->iterations, tti_runtime_iterations(tr->rt));
    s->alone_s = (double)tr->rt->elapsed_ns * 1e-9 - tr->resumed_s;
    tr->resumed_s = (double)tr->rt->elapsed_ns * 1e-9;
    return TT_OK;
}

static int
is_settled(tti_training *tr)
{
    const double PATIENCE_S = 60; // as for workers that are to rest
    double begin_s = tti_training_now(tr);
    while (!tti_runtime_settled(tr->rt)) {
        const tti_membership *m = &tr->rt->membership;
        if (m->must_go_back || m->must_fail || tti_training_now(tr) > begin_s + PATIENCE_S)
            return 0;
        tti_runtime_wait(tr->rt, 0, 1000000);
        tti_membership_watch(tr->rt);
    }
    return 1;
}

// The last master changed the setting after it had last left what it knew.
tt_status
tti_training_return_to_setting(tti_training *tr, tt_error *err)
{
    tti_succession *s = &tr->succession;
    tt_setting wanted = tr->setting;
    int refused = TTI_SWITCH_LATER;
    if (!s->returns)
        return TT_OK;
    s->returns = 0;
    tr->setting = tr->rt->newest->setting;
    while (refused == TTI_SWITCH_LATER && is_settled(tr))
        TT_TRY(tti_training_switch(tr, &wanted, tr->setting_id, 0, &refused, err));
    if (refused == TTI_SWITCH_LATER) // all go back, and begin under it
        tr->setting = wanted;
    return refused == 1 ? err->status : TT_OK;
}

// ---- simulated deaths --------------------------------------------------------------------------

// When there is nothing to go on from it would be the run's last checkpoint: that is another
// matter.
int
tti_training_must_die(const tti_training *tr)
{
    const tt_job *job = tr->job;
    const tti_journal *journal = &tr->succession.journal;
    return tr->store != NULL && tr->master_deaths < job->master_death_count &&
           tti_training_now(tr) >= job->master_deaths[tr->master_deaths].at_s &&
           tr->rt->books.journal == journal && tti_journal_is_whole(journal);
}

// Nobody is master, and nodes go on.
static void
pass(tti_training *tr, double seconds)
{
    const tti_runtime *rt = tr->rt;
    uint64_t until_ns = tt_clock_now(&rt->clock) + (uint64_t)(1e9 * seconds);
    tt_event never = {0};
    for (uint64_t now_ns; (now_ns = tt_clock_now(&rt->clock)) < until_ns;)
        (void)tt_event_wait(&never, tt_event_read(&never), 0, until_ns - now_ns);
}

// All of its memory but what it has left; closing it again does no harm.
static void
die(tti_training *tr, tti_journal *journal, tti_runtime **left)
{
    tt_error err = {0};
    const tt_job *job = tr->job;
    const tt_job_result *identity = tr->identity;
    uint32_t deaths = tr->master_deaths + 1, takeovers = tr->takeovers;
    tti_tally tally = tr->tally;
    *journal = tr->succession.journal;
    *left = tr->rt;
    tr->succession.journal = (tti_journal){.descriptor = -1};
    tr->rt = NULL;
    if (tt_store_commit(tr->store, &err) != TT_OK)
        tti_record_failed(tr, &err);
    tti_training_close(tr);
    memset(tr, 0, sizeof *tr);
    tr->succession.journal.descriptor = -1;
    tr->job = job;
    tr->identity = identity;
    tr->master_deaths = deaths;
    tr->takeovers = takeovers;
    tr->tally = tally;
}

// Opens the next one where this one was.
static tt_status
open_next(tti_training *tr,
          const tti_resume *resume,
          const tt_job_run_options *options,
          int tuned,
          tt_store *store,
          tt_error *err)
{
    const tt_job *job = tr->job;
    const tt_job_result *identity = tr->identity;
    uint32_t deaths = tr->master_deaths, takeovers = tr->takeovers;
    tti_tally tally = tr->tally;
    tt_status status =
        tt_store_forget_after(store, resume->file.time_s, (int64_t)resume->file.iteration, err);
    if (status == TT_OK)
        status = tti_training_open(tr, job, options, tuned, store, resume, err);
    tr->identity = identity;
    tr->master_deaths = deaths;
    tr->takeovers += takeovers;
    tr->tally = tally;
    if (status == TT_OK)
        status = tti_training_enable_checkpoints(tr, err);
    if (status == TT_OK)
        tti_training_say_resumed(tr, resume);
    return status;
}

tt_status
tti_training_succeed(tti_training *tr, int tuned, tt_error *err)
{
    const tt_job_run_options *options = tr->options;
    tt_store *store = tr->store;
    tti_journal journal;
    tti_resume resume;
    tti_runtime *left;
    pass(tr, tr->job->master_deaths[tr->master_deaths].for_s);
    die(tr, &journal, &left);
    tt_status status = tti_resume_inherit(tr->job, &journal, &resume, err);
    resume.left = left;
    if (status == TT_OK)
        status = open_next(tr, &resume, options, tuned, store, err);
    if (left->mesh == NULL) // the next one has its nodes
        tti_runtime_forget(left);
    else
        tti_runtime_abandon(left);
    tti_resume_close(&resume);
    tti_journal_close(&journal); // unless it was taken
    return status == TT_OK ? tti_training_run(tr, err) : status;
}
