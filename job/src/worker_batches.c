// Batches of a worker: which rows come next, and batches of them prepared ahead.
#include "simulated.h"
#include <string.h>

static int
is_bsp(const tti_node *node)
{
    return node->board->job->table.consistency == TT_PS_BSP;
}

// Iterations that may be merged into one push in this job.
static uint32_t
aggregation_max(const tt_job *job)
{
    int knob = tt_space_find(&job->space, "push_aggregation");
    if (knob < 0 || job->space.knob[knob].absent)
        return 1;
    return TT_MIN((uint32_t)job->space.knob[knob].max, (uint32_t)TTI_AGGREGATION_MAX);
}

uint32_t
tti_worker_rows_max(const tt_job *job)
{
    if (job->table.consistency == TT_PS_BSP)
        return tti_job_slice_rows(job, 0);
    return (uint32_t)job->spec.batch_size * aggregation_max(job);
}

uint32_t *
tti_worker_rows(const tti_node *node, uint32_t slot)
{
    return node->rows + (size_t)slot * tti_worker_rows_max(node->board->job);
}

uint64_t
tti_worker_untrained(const tti_node *node)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < node->batch_count; i++)
        rows += tt_batch_rows(node->batches[(node->batch_head + i) % TTI_BATCHES_MAX]);
    return rows + node->kept_count;
}

uint32_t
tti_worker_kept(const tti_node *node, uint32_t **rows)
{
    *rows = node->kept + node->kept_first;
    return node->kept_count;
}

int
tti_worker_next_slice(const tti_node *node, uint32_t from)
{
    const tt_ps_view *view = node->adopted->view;
    for (uint32_t k = from; k < view->slice_count; k++)
        if (view->slice_owner[k] == node->index)
            return (int)k;
    return -1;
}

void
tti_worker_regroup(tti_node *node)
{
    uint32_t count = 0;
    if (is_bsp(node) || node->batch_count == 0)
        return;
    // What was kept before is trained after what was prepared of it.
    for (uint32_t i = 0; i < node->batch_count; i++)
        count += tt_batch_rows(node->batches[(node->batch_head + i) % TTI_BATCHES_MAX]);
    memmove(node->kept + count, node->kept + node->kept_first,
            node->kept_count * sizeof *node->kept);
    node->kept_first = 0;
    node->kept_count += count;
    count = 0;
    for (uint32_t i = 0; i < node->batch_count; i++) {
        uint32_t slot = (node->batch_head + i) % TTI_BATCHES_MAX;
        uint32_t rows = tt_batch_rows(node->batches[slot]);
        memcpy(node->kept + count, tti_worker_rows(node, slot), rows * sizeof *node->kept);
        count += rows;
    }
    node->batch_count = 0;
}

static uint32_t
take_kept(tti_node *node, uint32_t wanted, uint32_t *rows)
{
    uint32_t count = TT_MIN(wanted, node->kept_count);
    memcpy(rows, node->kept + node->kept_first, count * sizeof *rows);
    node->kept_first += count;
    node->kept_count -= count;
    return count;
}

// What is asked of the master may be a millisecond on its way: so many batches as that takes, where
// they are short.
static uint32_t
batches_ahead(const tti_node *node)
{
    enum { ON_THE_WAY_NS = 1000000, MOST = 64 };
    uint64_t meanwhile = node->cycle_ns > 0 ? ON_THE_WAY_NS / node->cycle_ns : 0;
    return node->now.prefetch + 2 + (uint32_t)TT_MIN(meanwhile, (uint64_t)MOST);
}

// Of what the master has leased to this node; the batch's name goes with it.
static uint32_t
take_leased(tti_node *node, uint32_t slot, uint32_t wanted, uint32_t *rows)
{
    tti_lease *lease = node->board->lease;
    tti_again *name = &node->batch_name[slot];
    uint32_t taken;
    if (node->kept_count > 0) {
        uint64_t position = lease->taken - node->kept_count;
        taken = take_kept(node, tti_lease_cut(lease, position, wanted, name), rows);
    } else {
        tt_store_relaxed(&lease->ahead, batches_ahead(node));
        taken = tti_lease_take(lease, wanted, rows, &node->rows_to_come, name);
        if (tti_lease_is_low(lease))
            tti_board_ring(node->board); // the agent asks for more
    }
    if (name->batch.rows > 0 || taken == 0)
        return taken;
    uint64_t end = node->leased_before + lease->taken - node->kept_count;
    *name = (tti_again){.batch = {.end = end, .rows = taken, .attempt = node->attempt},
                        .worker = node->index};
    return taken;
}

static uint32_t
take_rows(tti_node *node, uint32_t slot, uint32_t wanted, uint32_t *rows)
{
    if (node->board->lease != NULL)
        return take_leased(node, slot, wanted, rows);
    if (node->kept_count > 0)
        return take_kept(node, wanted, rows);
    return tti_work_take(node->board->work, node->index, wanted, rows);
}

static uint32_t
choose_rows(tti_node *node, uint32_t slot, uint32_t *rows)
{
    tti_board *board = node->board;
    const tt_job *job = board->job;
    if (tti_node_is_expelled(node))
        return 0; // others train what it would take
    if (!is_bsp(node)) {
        uint32_t unit = (uint32_t)job->spec.batch_size, wanted = unit * node->now.aggregation;
        uint32_t taken = take_rows(node, slot, wanted, rows);
        // Of what is left over, or of the last epoch's end, there are fewer.
        node->batch_micro[slot] = (taken + unit - 1) / unit;
        return taken;
    }
    int slice = tti_worker_next_slice(node, node->slice);
    if (slice < 0) {
        node->round++;
        node->slice = 0;
        slice = tti_worker_next_slice(node, 0);
    }
    if (slice < 0 || node->round >= tt_load_relaxed(&board->round_limit))
        return 0;
    uint32_t count = tti_job_slice_rows(job, (uint32_t)slice);
    tt_shards_slice_rows(job->shards, &node->cache, (uint32_t)job->spec.slices, (uint32_t)slice,
                         (uint64_t)node->round * count, count, rows);
    node->batch_micro[slot] = 1;
    node->batch_round[slot] = node->round;
    node->batch_slice[slot] = (uint32_t)slice;
    node->slice = (uint32_t)slice + 1;
    return count;
}

int
tti_worker_prepare(tti_node *node)
{
    uint32_t slot = (node->batch_head + node->batch_count) % TTI_BATCHES_MAX;
    TT_ASSERT(node->batch_count < TTI_BATCHES_MAX);
    uint32_t *rows = tti_worker_rows(node, slot);
    uint32_t count = choose_rows(node, slot, rows);
    if (count == 0)
        return 0;
    tt_batch_fill(node->batches[slot], rows, count);
    tti_simulated_prepare(node, node->batches[slot]);
    node->batch_count++;
    return 1;
}
