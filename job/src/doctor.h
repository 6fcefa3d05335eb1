// The checks of tt_job_examine (tt/job.h).
#ifndef TTI_DOCTOR_H
#define TTI_DOCTOR_H

#include "tt/job.h"

typedef struct tti_examination {
    tt_job *job;
    tt_job_check *checks;
    uint32_t count;
} tti_examination;

// Adds one. advice may be NULL.
void tti_examine(tti_examination *e,
                 tt_job_health health,
                 const char *what,
                 const char *advice,
                 const char *format,
                 ...) TT_PRINTF(5, 6);
// Bytes that `nodes` of the job's nodes take on one host, beside the data: parameters with the
// optimiser's state, and each worker's copy.
uint64_t tti_examine_node_bytes(const tt_job *job, uint32_t nodes);

// doctor_hosts.c: the hosts of engine ssh.
void tti_examine_hosts(tti_examination *e);

#endif
