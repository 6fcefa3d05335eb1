// SPDX-License-Identifier: MIT
//
// malloc_keep: a knob that says how large a block of memory may be before malloc asks the system
// for it each time and gives it back at each free.
//
// glibc serves blocks from M_MMAP_THRESHOLD on with mmap: every use costs a system call, zeroed
// pages and page faults, and free returns them at once. Below it, freed memory is kept until more
// than M_TRIM_THRESHOLD is free at the top of the heap. Setting one of the two by hand switches
// glibc's own adaptation off for both, so they are raised together. (mallopt(3).)
#include "tt/knob.h"
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// glibc refuses a larger M_MMAP_THRESHOLD on 64-bit systems (HEAP_MAX_SIZE / 2).
static const double keep_bytes_min = 131072, keep_bytes_max = 33554432;

struct malloc_keep {
    int prepared_bytes;
};

static void *
keep_open(const tt_knob_host *host)
{
    (void)host; // acts through the C library alone
    return calloc(1, sizeof(struct malloc_keep));
}

static int
keep_prepare(void *self, double value, char *reason, size_t reason_size)
{
    if (!(value >= keep_bytes_min && value <= keep_bytes_max) || value != floor(value)) {
        (void)snprintf(reason, reason_size, "%g is not a number of bytes from %.0f to %.0f", value,
                       keep_bytes_min, keep_bytes_max);
        return 1;
    }
    ((struct malloc_keep *)self)->prepared_bytes = (int)value;
    return 0;
}

// The thresholds belong to the process: nodes that share one set the same values one after another,
// which is harmless (mallopt takes malloc's own lock).
static void
keep_commit(void *self)
{
    int bytes = ((struct malloc_keep *)self)->prepared_bytes;
    (void)mallopt(M_MMAP_THRESHOLD, bytes);
    (void)mallopt(M_TRIM_THRESHOLD, bytes);
}

static void
keep_rollback(void *self)
{
    (void)self; // prepare changed nothing outside prepared_bytes
}

static const tt_knob malloc_keep = {.struct_size = sizeof(tt_knob),
                                    .id = "malloc_keep_bytes",
                                    .help = "blocks up to this size are kept by malloc for reuse",
                                    .unit = "bytes",
                                    .kind = TT_KNOB_INT,
                                    .scale = TT_KNOB_LOG2,
                                    .grid = TT_KNOB_POWERS_OF_TWO,
                                    .min = 131072,
                                    .max = 33554432,
                                    .default_value = 131072,
                                    .open = keep_open,
                                    .prepare = keep_prepare,
                                    .commit = keep_commit,
                                    .rollback = keep_rollback,
                                    .close = free};

TT_KNOB_PLUGIN(&malloc_keep)
