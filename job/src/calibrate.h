// Measuring what the code of a job costs on this machine: the constants of docs/simulation.md.
#ifndef TTI_CALIBRATE_H
#define TTI_CALIBRATE_H

#include "job_internal.h"

// Seconds of one call of body(self), the least of many measurements of half a millisecond each:
// whatever else the machine does only makes a call slower.
double tti_calibrate_call_s(void (*body)(void *self), void *self);

// Each fills its part of *out, seconds. errors TT_NOMEM
// calibrate_compute.c: gradients, batches, threads
TT_NODISCARD tt_status tti_calibrate_compute(tti_simulation_spec *out, tt_error *err);
// calibrate_messages.c: servers, frames
TT_NODISCARD tt_status tti_calibrate_messages(tti_simulation_spec *out, tt_error *err);
// calibrate_waits.c: pauses, sleeping and waking
TT_NODISCARD tt_status tti_calibrate_waits(tti_simulation_spec *out, tt_error *err);
// calibrate_job.c: sleeping and waking where every core is busy, in a job; after the waits
TT_NODISCARD tt_status tti_calibrate_sleep(tti_simulation_spec *out, tt_error *err);
// calibrate_job.c: code measured alone finds its data in the caches; all its costs are
// multiplied by what makes them add up to a job's processor time. After all others.
TT_NODISCARD tt_status tti_calibrate_caches(tti_simulation_spec *spec, tt_error *err);
// calibrate_job.c: runs random settings and simulates them on *spec, and fills in its errors.
TT_NODISCARD tt_status tti_calibrate_check(tti_simulation_spec *spec, tt_error *err);

#endif
