// core: what every other folder stands on. Status and errors with place and advice, memory and
// arenas, log, clock, random numbers, atomics, threads, vector kernels, strict YAML configuration,
// the run store.
//
// Caveats: nothing here knows of training. A third-party type (libyaml, SQLite) never appears in
// these headers.
#ifndef TT_CORE_H
#define TT_CORE_H

#include "tt/atomic.h"
#include "tt/core_clock.h"
#include "tt/core_lock.h"
#include "tt/core_log.h"
#include "tt/core_mem.h"
#include "tt/core_rng.h"
#include "tt/core_status.h"
#include "tt/core_text.h"
#include "tt/core_thread.h"
#include "tt/core_vec.h"

#endif
