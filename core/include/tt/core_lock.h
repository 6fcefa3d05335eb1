// A lock on a file: whose process holds it owns what the file stands for, and anyone may ask
// whether it is held without taking it, so that a question never gets in an owner's way. It goes
// with the process, however that ends.
//
// Caveats: advisory. Of the open file description (Linux): a second open of the same process is
// somebody else, a child of fork is not. Where a file system has no locks, nothing is locked, and
// nothing is held.
#ifndef TT_CORE_LOCK_H
#define TT_CORE_LOCK_H

#include "tt/core_status.h"

// Makes the file where there is none. *out is to be closed, which gives the lock back. TT_BUSY: it
// is held by another; TT_NOTFOUND: its directory is not there; TT_IO.
tt_status tt_lock_take(const char *path, int *out, tt_error *err);

typedef enum tt_lock_state {
    TT_LOCK_UNKNOWN, // no such file, or no locks on this file system
    TT_LOCK_FREE,
    TT_LOCK_HELD
} tt_lock_state;
tt_lock_state tt_lock_ask(const char *path);

#endif
