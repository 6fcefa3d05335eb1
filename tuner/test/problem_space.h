// Knobs and spaces made by hand for tests.
#ifndef TT_PROBLEM_SPACE_H
#define TT_PROBLEM_SPACE_H

#include "tt/knobs.h"

enum { PROBLEM_KNOBS_MAX = 16 };

typedef struct problem_space {
    tt_space space;
    tt_knob knob[PROBLEM_KNOBS_MAX];
} problem_space;

// Appends a knob; log_scale also makes ints powers of two when `powers` is set. Returns it for
// further changes.
static inline tt_knob *
problem_add(problem_space *p,
            const char *id,
            tt_knob_kind kind,
            double min,
            double max,
            double start,
            int log_scale,
            int powers)
{
    uint32_t at = p->space.count++;
    p->knob[at] = (tt_knob){.struct_size = sizeof(tt_knob),
                            .id = id,
                            .help = "made for a test",
                            .unit = "",
                            .kind = kind,
                            .scale = log_scale ? TT_KNOB_LOG2 : TT_KNOB_LINEAR,
                            .grid = powers ? TT_KNOB_POWERS_OF_TWO : TT_KNOB_EVERY,
                            .min = min,
                            .max = max,
                            .default_value = start};
    p->space.knob[at] = (tt_space_knob){
        .knob = &p->knob[at], .min = min, .max = max, .start = start, .log_scale = log_scale};
    return &p->knob[at];
}

#endif
