// Serial in, parallel work, serial out: items are filled in order by one thread at a time, worked
// on by all, and drained in order by one thread at a time. Every thread does whatever is due, so
// one thread alone simply goes round; the number of slots bounds the memory.
#ifndef TTI_ORDERED_PIPELINE_H
#define TTI_ORDERED_PIPELINE_H

#include "tt/core.h"

typedef struct tti_pipeline_ops {
    // Makes the next item in `slot`; 0 when there is none (then it is not called again). A failure
    // to fill is an item of its own, whose drain reports it in its turn.
    int (*fill)(void *self, void *slot);
    void (*work)(void *self, void *slot);
    // Anything but TT_OK stops the pipeline and is its result.
    tt_status (*drain)(void *self, void *slot);
} tti_pipeline_ops;

// A good number of slots for a number of threads.
static inline uint32_t
tti_pipeline_slots(int threads)
{
    return threads == 1 ? 1 : 2 * (uint32_t)threads;
}

// Runs to the end on the calling thread and `threads` - 1 others (fewer when the system has no more
// to give). slots[slot_count] is an array of items of `slot_size` bytes.
// errors   the first that drain returned, in item order; TT_NOMEM
TT_NODISCARD tt_status tti_pipeline_run(const tti_pipeline_ops *ops,
                                        void *self,
                                        void *slots,
                                        size_t slot_size,
                                        uint32_t slot_count,
                                        int threads);

#endif
