// Going on with a run from its newest checkpoint.
#ifndef TTI_JOB_RESUME_H
#define TTI_JOB_RESUME_H

#include "checkpoint_file.h"
#include "job_internal.h"
#include "journal.h"
#include "tt/core_archive.h"

typedef struct tti_resume {
    tti_checkpoint file;
    int found; // 0: there is no checkpoint, the run begins again
    // What another master has left (training_succession.h), with its nodes: `file` is from there.
    // NULL: nothing.
    tti_journal *journal;
    struct tti_runtime *left; // the nodes themselves, where they are simulated
    uint32_t damaged;         // newer ones that were left out
    char changes[400];        // keys that --set changed: "stop.max_epochs 3 -> 10"
    int touches_nodes;        // some of them mean something to nodes
} tti_resume;

// Finds the newest whole checkpoint of the run and compares job and data with what it was written
// for. Faults of the configuration are printed to standard error, all of them.
// errors TT_INVALID another job or other data; TT_UNSUPPORTED; TT_IO; TT_NOMEM
TT_NODISCARD tt_status tti_resume_open(const tt_job *job,
                                       const char *run_dir,
                                       tti_resume *resume,
                                       tt_error *err);
// The same from what another master has left. errors also TT_NOTFOUND it is not enough, or this job
// is not altogether the same
TT_NODISCARD tt_status tti_resume_inherit(const tt_job *job,
                                          tti_journal *journal,
                                          tti_resume *resume,
                                          tt_error *err);
void tti_resume_close(tti_resume *resume);
// An archive that reads one section; empty when there is none.
void tti_resume_section(const tti_resume *resume, const char *name, tt_archive *in);

// Equal: a setting and its number mean the same in both jobs (tt_tuner_print).
uint64_t tti_resume_space_print(const tt_job *job);
// Whether they do in the checkpoint and this job.
int tti_resume_same_space(const tt_job *job, const tti_resume *resume);

// A print of the training data: rows, labels, values, in order.
uint64_t tti_data_print(const tt_dataset *data);

#endif
