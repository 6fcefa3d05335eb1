// Rows handed out and iterations counted.
#include "work.h"
#include <string.h>

tt_status
tti_work_open(const tt_shards *shards,
              uint32_t node_count,
              size_t reserved_rows,
              tti_work *out,
              tt_error *err)
{
    *out = (tti_work){.example_limit = UINT64_MAX};
    (void)pthread_mutex_init(&out->lock, NULL);
    TT_TRY(tt_ledger_open(shards, node_count, &out->ledger, err));
    if (tti_row_losses_open(&out->row_losses, (uint32_t)tt_shards_row_count(shards)) != TT_OK)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the losses of the rows");
    out->orphan_capacity = reserved_rows;
    out->orphans = tt_mem_zalloc(TT_MAX(reserved_rows, (size_t)1), sizeof *out->orphans);
    if (out->orphans == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    return TT_OK;
}

void
tti_work_close(tti_work *work)
{
    if (work->ledger == NULL)
        return; // never opened
    tt_ledger_close(work->ledger);
    tt_mem_free(work->orphans);
    tti_row_losses_close(&work->row_losses);
    (void)pthread_mutex_destroy(&work->lock);
    *work = (tti_work){0};
}

// ---- rows --------------------------------------------------------------------------------------

static uint32_t
take_orphans(tti_work *work, uint32_t count, uint32_t *rows)
{
    if (tt_load_relaxed(&work->orphans_there) == 0)
        return 0;
    pthread_mutex_lock(&work->lock);
    uint32_t taken = (uint32_t)TT_MIN(work->orphan_count, count);
    work->orphan_count -= taken;
    memcpy(rows, work->orphans + work->orphan_count, taken * sizeof *rows);
    tt_store_relaxed(&work->orphans_there, (uint32_t)(work->orphan_count > 0));
    pthread_mutex_unlock(&work->lock);
    return taken;
}

uint32_t
tti_work_take(tti_work *work, uint32_t node, uint32_t count, uint32_t *rows)
{
    uint32_t taken = take_orphans(work, count, rows);
    if (taken < count && tt_ledger_examples(work->ledger) < tt_load_relaxed(&work->example_limit))
        taken += tt_ledger_take(work->ledger, node, count - taken, rows + taken);
    return taken;
}

// Room for what all nodes can hold was there from the beginning; nodes that come and go may leave
// more behind.
static void
reserve(tti_work *work, size_t more)
{
    if (work->orphan_count + more <= work->orphan_capacity)
        return;
    size_t wanted = 2 * (work->orphan_count + more);
    uint32_t *grown = tt_mem_realloc(work->orphans, wanted * sizeof *grown);
    TT_ASSERT(grown != NULL); // without it examples would be lost
    work->orphans = grown;
    work->orphan_capacity = wanted;
}

void
tti_work_return(tti_work *work, const uint32_t *rows, size_t count)
{
    pthread_mutex_lock(&work->lock);
    reserve(work, count);
    if (count > 0)
        memcpy(work->orphans + work->orphan_count, rows, count * sizeof *rows);
    work->orphan_count += count;
    tt_store_relaxed(&work->orphans_there, (uint32_t)(work->orphan_count > 0));
    pthread_mutex_unlock(&work->lock);
}

// ---- iterations --------------------------------------------------------------------------------

uint64_t
tti_work_count(tti_work *work, uint32_t merged, uint32_t examples)
{
    (void)tt_add_relaxed(&work->examples_trained, examples);
    return tt_add_relaxed(&work->applied, merged);
}

int
tti_slice_has(const tti_slice_count *count, uint32_t round)
{
    if (round >= count->next)
        return 0;
    uint32_t age = count->next - 1 - round;
    return age >= 64 || (count->counted >> age & 1) != 0;
}

void
tti_slice_mark(tti_slice_count *count, uint32_t round)
{
    if (round >= count->next) {
        uint32_t ahead = round + 1 - count->next;
        count->counted = ahead < 64 ? count->counted << ahead : 0;
        count->next = round + 1;
    }
    count->counted |= (uint64_t)1 << (count->next - 1 - round);
}

uint64_t
tti_work_count_slice(tti_work *work, uint32_t slice, uint32_t round, uint32_t examples)
{
    if (tti_slice_has(&work->slice_counts[slice], round))
        return tt_load_relaxed(&work->applied);
    tti_slice_mark(&work->slice_counts[slice], round);
    return tti_work_count(work, 1, examples);
}

void
tti_work_count_slice_before(tti_work *work, uint32_t slice, uint32_t round, uint32_t examples)
{
    enum { KNOWN = 64 }; // rounds that a tti_slice_count tells apart; those before were counted
    uint32_t next = work->slice_counts[slice].next;
    for (uint32_t r = next > KNOWN ? next - KNOWN : 0; r < round; r++)
        (void)tti_work_count_slice(work, slice, r, examples);
}

void
tti_work_begin_at_round(tti_work *work, uint32_t round)
{
    for (uint32_t k = 0; k < TT_PS_SLICES_MAX; k++)
        work->slice_counts[k] = (tti_slice_count){.next = round, .counted = UINT64_MAX};
}
