// What earlier runs of like jobs taught, and what this one leaves for later (docs/repository.md).
#ifndef TTI_WARM_START_H
#define TTI_WARM_START_H

#include "tt/core_repository.h"
#include "tt/knobs.h"
#include "tt/tuner.h"

enum { TTI_WARM_RUNS = 5, TTI_WARM_OTHERS = 2 };

typedef struct tti_warm_run {
    char id[160], name[96];
    double distance;
    char differs[200]; // in what it differs from this job; "" = in nothing that counts
    uint32_t settings; // of its measurements that are used
    int has_best;
    tt_setting best; // what it ended with, in this job's space
} tti_warm_run;

typedef struct tti_warm {
    char path[512]; // "" = the repository is off
    int cold;       // asked for
    tt_status trouble_status;
    char trouble[1200]; // what is wrong with it, and what to do; "" = nothing
    char reason[512];   // what it begins with and why, or why it begins cold
    char clipped[200];  // where the remembered setting does not fit this job
    uint32_t runs_there, run_count;
    tti_warm_run runs[TTI_WARM_RUNS]; // used, the first gives the start
    int begins;                       // with `start` instead of the space's
    tt_setting start;
    tt_setting others[TTI_WARM_OTHERS]; // what the other runs ended with
    uint32_t other_count;
    tt_tuner_prior prior[TT_TUNER_PRIOR_ROWS];
    uint32_t prior_count;
} tti_warm;

struct tt_job;
struct tti_training;

// What this job is, for the repository. Strings are the job's or static.
void tti_warm_describe(const struct tt_job *job, tt_repository_run *out, char space[24]);
// How unlike two jobs are, as a distance: 0 = the same, INFINITY = not to be compared. `differs`
// says in what.
double tti_warm_distance(const tt_repository_run *job,
                         const tt_repository_run *other,
                         char *differs,
                         size_t size);
// Looks for like runs and fills job->warm. Whatever is wrong with the repository is kept there: the
// job goes on cold.
void tti_warm_find(struct tt_job *job, int cold);
// The setting a training begins with.
void tti_warm_begin(const struct tt_job *job, int tuned, tt_setting *out);
// Whether anything of earlier runs is used.
int tti_warm_used(const struct tt_job *job);
// A warning of the run, said and recorded.
void tti_warm_warn(struct tti_training *tr, const char *text);
// Says what the run begins with, or what is wrong with the repository; nothing where there is no
// memory.
void tti_warm_say(struct tti_training *tr);
// Stores what the tuner of a finished training measured. Failing is said, and no fault of the job.
void tti_warm_learn(struct tti_training *tr, const char *status);

// A setting of an earlier run in the space of this job.
typedef struct tti_warm_projection {
    tt_setting setting;
    uint32_t missing;    // free knobs that the earlier run did not have
    uint32_t fixed;      // knobs fixed here to another value than there
    int usable, clipped; // usable: it is one of this space; clipped: but not where it was measured
    char clips[200];
} tti_warm_projection;
void
tti_warm_project(const tt_space *space, const tt_repository_row *row, tti_warm_projection *out);

#endif
