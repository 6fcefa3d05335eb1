// Seconds per iteration from the workers' cycles (tuner-math: online rules).
#ifndef TT_EST_CYCLES_H
#define TT_EST_CYCLES_H

#include <stddef.h>
#include <stdint.h>

enum { TTI_CYCLES_CHUNK = 1024 };

typedef struct tti_worker_cycles {
    uint32_t worker;
    uint32_t used;
    double n, sum, sum_squares;
} tti_worker_cycles;

// Cycles of one window. The newest up to 1,024 wait raw; older ones are folded into per-worker
// sums, each chunk winsorised by its own pooled median, so a window of any length costs O(1) a
// push.
typedef struct tti_cycles {
    double cycle[TTI_CYCLES_CHUNK];
    uint32_t worker[TTI_CYCLES_CHUNK];
    uint32_t waiting;
    tti_worker_cycles *slots, *scratch; // open addressing, same capacity (a power of two)
    size_t capacity, used;
    double medians, median_weights; // of the folded chunks, for BSP
    double deviations;              // weighted 1.4826 MAD of the folded chunks
    uint64_t suspended;             // cycles beyond 20x the median, left out
    uint64_t folded;
} tti_cycles;

typedef struct tti_cycles_answer {
    double seconds_per_iteration; // NAN without a cycle
    double cv;                    // coefficient of variation of a worker's cycle
    double log_se;                // standard error of log t
    uint64_t suspended;
} tti_cycles_answer;

// Zeroed is valid. fini gives the memory back.
void tti_cycles_reset(tti_cycles *cycles);
void tti_cycles_fini(tti_cycles *cycles);
// O(1) amortised. When memory for a new worker is short its cycles are left out.
void tti_cycles_add(tti_cycles *cycles, uint32_t worker, double cycle_s);
// ASP: t = 1 / sum_w 1 / cbar_w, cbar_w = worker w's mean cycle winsorised at 3x the pooled median.
// BSP: the median cycle (the round time). Changes only scratch memory.
void tti_cycles_solve(const tti_cycles *cycles, int bulk_synchronous, tti_cycles_answer *out);

#endif
