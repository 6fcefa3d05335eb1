// A run store of a job whose law is known: the seconds per iteration are a product of one factor a
// knob, with noise of a known size; fourteen settings, each trial with what was predicted of it.
#ifndef KNOWN_LAW_H
#define KNOWN_LAW_H

#include "tt/core_rng.h"
#include "tt/core_store.h"

enum { KNOWN_SERVERS, KNOWN_CHUNK, KNOWN_HALF, KNOWN_KERNEL, KNOWN_PINNED, KNOWN_KNOBS };
enum { KNOWN_SETTINGS = 14 };
static const double KNOWN_LAG_BORNE = 2; // less than nodes have, in every window

// Creates the store FILE of the whole run, which ended in `status` and in the last setting.
TT_NODISCARD tt_status known_run_write(const char *file, const char *status, tt_error *err);

// Its pieces, for runs that have less. `iteration` is moved on.
TT_NODISCARD tt_status known_put_knobs(tt_store *store, tt_error *err);
TT_NODISCARD tt_status known_put_measured(tt_store *store,
                                          tt_rng *rng,
                                          int setting,
                                          const double *values,
                                          int64_t *iteration,
                                          tt_error *err);
TT_NODISCARD tt_status known_put_run(tt_store *store,
                                     const char *status,
                                     int64_t end,
                                     tt_error *err);

#endif
