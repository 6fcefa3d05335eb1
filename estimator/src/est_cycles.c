#include "est_cycles.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

void
tti_cycles_reset(tti_cycles *cycles)
{
    if (cycles->used > 0)
        memset(cycles->slots, 0, cycles->capacity * sizeof *cycles->slots);
    cycles->waiting = 0;
    cycles->used = 0;
    cycles->medians = cycles->median_weights = cycles->deviations = 0;
    cycles->suspended = cycles->folded = 0;
}

void
tti_cycles_fini(tti_cycles *cycles)
{
    tt_mem_free(cycles->slots);
    tt_mem_free(cycles->scratch);
    memset(cycles, 0, sizeof *cycles);
}

static tti_worker_cycles *
find_slot(tti_worker_cycles *slots, size_t capacity, uint32_t worker)
{
    size_t at = (size_t)(worker * 2654435761u) & (capacity - 1);
    for (size_t probes = 0; probes < capacity; probes++) {
        if (!slots[at].used || slots[at].worker == worker)
            return &slots[at];
        at = (at + 1) & (capacity - 1);
    }
    return NULL;
}

// Doubles the table; what it holds stays when memory is short.
static void
grow_slots(tti_cycles *cycles)
{
    const size_t capacity = cycles->capacity ? 2 * cycles->capacity : 64;
    tti_worker_cycles *slots = tt_mem_zalloc(capacity, sizeof *slots);
    tti_worker_cycles *scratch = tt_mem_zalloc(capacity, sizeof *scratch);
    if (!slots || !scratch) {
        tt_mem_free(slots);
        tt_mem_free(scratch);
        return;
    }
    for (size_t i = 0; i < cycles->capacity; i++)
        if (cycles->slots[i].used)
            *find_slot(slots, capacity, cycles->slots[i].worker) = cycles->slots[i];
    tt_mem_free(cycles->slots);
    tt_mem_free(cycles->scratch);
    cycles->slots = slots;
    cycles->scratch = scratch;
    cycles->capacity = capacity;
}

// Gives the worker a slot; 0 when there is no memory for it.
static int
register_worker(tti_cycles *cycles, uint32_t worker)
{
    tti_worker_cycles *slot =
        cycles->capacity ? find_slot(cycles->slots, cycles->capacity, worker) : NULL;
    if (slot && slot->used)
        return 1;
    if (2 * (cycles->used + 1) > cycles->capacity) {
        grow_slots(cycles);
        slot = cycles->capacity ? find_slot(cycles->slots, cycles->capacity, worker) : NULL;
    }
    if (!slot)
        return 0;
    slot->used = 1;
    slot->worker = worker;
    cycles->used++;
    return 1;
}

typedef struct chunk_summary {
    double median, deviation;
    uint64_t kept, suspended;
} chunk_summary;

// Adds the waiting cycles, winsorised, to `slots`.
static chunk_summary
fold_into(const tti_cycles *cycles, tti_worker_cycles *slots)
{
    chunk_summary summary = {0};
    double scratch[TTI_CYCLES_CHUNK];
    memcpy(scratch, cycles->cycle, cycles->waiting * sizeof *scratch);
    summary.median = tti_median(scratch, cycles->waiting);
    summary.deviation = 1.4826 * tti_mad(cycles->cycle, cycles->waiting, summary.median, scratch);
    for (uint32_t i = 0; i < cycles->waiting; i++) {
        if (cycles->cycle[i] > 20 * summary.median) {
            summary.suspended++; // a stopped process or a clock step, not work
            continue;
        }
        summary.kept++;
        tti_worker_cycles *slot = find_slot(slots, cycles->capacity, cycles->worker[i]);
        const double c = TT_MIN(cycles->cycle[i], 3 * summary.median);
        TT_ASSERT(slot && slot->used);
        slot->n += 1;
        slot->sum += c;
        slot->sum_squares += c * c;
    }
    return summary;
}

static void
fold(tti_cycles *cycles)
{
    const chunk_summary s = fold_into(cycles, cycles->slots);
    const double weight = (double)s.kept;
    cycles->medians += weight * s.median;
    cycles->deviations += weight * s.deviation;
    cycles->median_weights += weight;
    cycles->suspended += s.suspended;
    cycles->folded += s.kept;
    cycles->waiting = 0;
}

void
tti_cycles_add(tti_cycles *cycles, uint32_t worker, double cycle_s)
{
    if (!(cycle_s > 0) || !isfinite(cycle_s) || !register_worker(cycles, worker))
        return;
    if (cycles->waiting == TTI_CYCLES_CHUNK)
        fold(cycles);
    cycles->cycle[cycles->waiting] = cycle_s;
    cycles->worker[cycles->waiting] = worker;
    cycles->waiting++;
}

static void
solve_asynchronous(const tti_worker_cycles *slots, size_t capacity, tti_cycles_answer *out)
{
    double rate = 0, relative = 0, n = 0, workers = 0;
    for (size_t i = 0; i < capacity; i++) {
        if (!(slots[i].n > 0))
            continue;
        const double mean = slots[i].sum / slots[i].n;
        rate += 1 / mean;
        relative += fmax(slots[i].sum_squares / (mean * mean) - slots[i].n, 0);
        n += slots[i].n;
        workers += 1;
    }
    if (!(rate > 0))
        return;
    out->seconds_per_iteration = 1 / rate;
    // With hardly more than one cycle a worker the spread within workers is unknown: stay careful.
    out->cv = n - workers >= 3 ? sqrt(relative / (n - workers)) : fmax(0.3, sqrt(relative / n));
    double variance = 0; // of log t: sum of (share of the rate)^2 cv^2 / n_w
    for (size_t i = 0; i < capacity; i++) {
        if (!(slots[i].n > 0))
            continue;
        const double share = slots[i].n / slots[i].sum / rate;
        variance += share * share * out->cv * out->cv / slots[i].n;
    }
    out->log_se = sqrt(variance);
}

void
tti_cycles_solve(const tti_cycles *cycles, int bulk_synchronous, tti_cycles_answer *out)
{
    *out = (tti_cycles_answer){NAN, NAN, NAN, cycles->suspended};
    if (cycles->waiting == 0 && cycles->folded == 0)
        return;
    chunk_summary last = {0};
    memcpy(cycles->scratch, cycles->slots, cycles->capacity * sizeof *cycles->slots);
    if (cycles->waiting > 0)
        last = fold_into(cycles, cycles->scratch);
    out->suspended += last.suspended;
    if (!bulk_synchronous) {
        solve_asynchronous(cycles->scratch, cycles->capacity, out);
        return;
    }
    const double weight = (double)last.kept, total = weight + cycles->median_weights;
    if (!(total > 0))
        return;
    out->seconds_per_iteration = (weight * last.median + cycles->medians) / total;
    out->cv = (weight * last.deviation + cycles->deviations) / total / out->seconds_per_iteration;
    out->log_se = 1.2533 * out->cv / sqrt(total); // of a median: sqrt(pi / 2) times the mean's
}
