// The runtime as bytes and back: where the workers are in the data, what they took and have not
// trained, the parameters. Between the two lies a checkpoint, or a restart under another setting.
#include "runtime.h"
#include <string.h>

enum { STATE_VERSION = 1 };

static int
is_bsp(const tti_runtime *rt)
{
    return rt->job->table.consistency == TT_PS_BSP;
}

// ---- coming to rest ---------------------------------------------------------------------------

// Nobody begins a round while the gate is closed: the first that nobody has begun is where all
// stop.
static int
hold_at_next_round(tti_runtime *rt)
{
    uint32_t clock, round;
    int closed = tti_runtime_close_gate(rt);
    tti_runtime_horizon(rt, &clock, &round);
    // Nobody comes to a round beyond the last.
    round = TT_MIN(round, tt_load_relaxed(&rt->board.round_limit));
    if (closed)
        tt_store_release(&rt->board.hold_round, round); // acquired in must_rest
    tti_runtime_open_gate(rt);
    return closed;
}

static int
has_all_partitions(const tti_runtime *rt)
{
    return tt_load_acquire(&rt->unretired) == 0; // partition_retired
}

static int
await(tti_runtime *rt, int (*is_so)(const tti_runtime *rt))
{
    uint64_t deadline = tt_clock_now(&rt->clock) + 10000000000u;
    while (!is_so(rt)) {
        uint32_t seen = tt_event_read(&rt->board.bell);
        if (rt->membership.must_go_back || rt->membership.must_fail ||
            tt_clock_now(&rt->clock) > deadline)
            return 0;
        tti_runtime_wait(rt, seen, 1000000);
        tti_membership_watch(rt);
    }
    return 1;
}

static int
hold_once(tti_runtime *rt)
{
    if (!is_bsp(rt)) {
        if (!tti_runtime_pause(rt))
            return 0;
    } else {
        if (!hold_at_next_round(rt))
            return 0;
        tti_runtime_call_to_rest(rt);
    }
    // Somebody may have died on the way to rest, and partitions be on their way since: they arrive
    // without the workers.
    if (tti_runtime_await_rest(rt) && await(rt, has_all_partitions))
        return 1;
    tti_runtime_go_on(rt);
    return 0;
}

int
tti_runtime_hold(tti_runtime *rt)
{
    while (hold_once(rt)) {
        if (tti_runtime_is_whole(rt))
            return 1;
        // What the dead one had begun is done again first, and that only workers can.
        tti_runtime_go_on(rt);
        if (!await(rt, tti_runtime_is_whole))
            return 0;
    }
    return 0;
}

void
tti_runtime_go_on(tti_runtime *rt)
{
    tt_store_release(&rt->board.hold_round, UINT32_MAX); // acquired in must_rest
    tti_runtime_resume(rt);
}

// ---- saving -----------------------------------------------------------------------------------

// What a dead node had was given to others.
static int
is_gone(const tti_runtime *rt, uint32_t n)
{
    return rt->processes[n].node.server != NULL && rt->newest->view->is_gone[n];
}

// Rows that were taken from the ledger and not trained: prepared batches, and what nodes that
// became servers left behind; the next batch comes last, for it is taken first (take_orphans), so
// that one worker goes on in its order. Under BSP batches are prepared again from the round's
// number.
static void
save_prepared(const tti_node *node, tt_archive *out)
{
    uint32_t *kept;
    uint32_t unit = (uint32_t)node->board->job->spec.batch_size * node->now.aggregation;
    for (uint32_t end = tti_worker_kept(node, &kept); end > 0;) {
        uint32_t begin = (end - 1) / unit * unit;
        tt_archive_field(out, kept + begin, (end - begin) * sizeof *kept);
        end = begin;
    }
    for (uint32_t i = node->batch_count; i-- > 0;) {
        uint32_t slot = (node->batch_head + i) % TTI_BATCHES_MAX;
        tt_archive_field(out, tti_worker_rows(node, slot),
                         tt_batch_rows(node->batches[slot]) * sizeof(uint32_t));
    }
}

static void
save_untrained(tti_runtime *rt, tt_archive *out)
{
    tti_work *work = &rt->work;
    pthread_mutex_lock(&work->lock);
    uint64_t count = work->orphan_count;
    for (uint32_t n = 0; !rt->apart && !is_bsp(rt) && n < rt->node_count; n++)
        count += tti_worker_untrained(&rt->processes[n].node);
    if (rt->apart)
        count += tti_books_untrained_count(rt);
    TT_ARCHIVE(out, count);
    tt_archive_field(out, work->orphans, work->orphan_count * sizeof *work->orphans);
    for (uint32_t n = 0; !rt->apart && !is_bsp(rt) && n < rt->node_count; n++)
        save_prepared(&rt->processes[n].node, out);
    if (rt->apart)
        tti_books_save_untrained(rt, out);
    pthread_mutex_unlock(&work->lock);
}

static int
holds(const tti_runtime *rt, uint32_t n)
{
    return rt->processes[n].node.server != NULL && !is_gone(rt, n);
}

static void
save_table(tti_runtime *rt, tt_archive *out)
{
    uint64_t count = 0, bytes;
    if (rt->store != NULL) {
        tt_ps_store_save(rt->store, out);
        return;
    }
    if (rt->apart) {
        tt_ps_copier_take(rt->copier, out);
        return;
    }
    for (uint32_t n = 0; n < rt->node_count; n++)
        count += holds(rt, n) ? tt_ps_server_save_count(rt->processes[n].node.server, &bytes) : 0;
    TT_ARCHIVE(out, count);
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (holds(rt, n))
            tt_ps_server_save(rt->processes[n].node.server, out);
}

int
tti_runtime_copy(tti_runtime *rt)
{
    uint32_t generation = rt->newest->view->generation;
    if (!rt->apart)
        return 1;
    tt_ps_copier_begin(rt->copier, rt->newest->view, tt_clock_now(&rt->clock));
    tt_mesh_flush(rt->mesh, rt->node_count);
    while (!tt_ps_copier_done(rt->copier)) {
        if (tti_runtime_receive(rt) == 0)
            tt_mesh_wait(rt->mesh, rt->node_count, 1000000);
        tti_membership_watch(rt);
        if (rt->newest->view->generation != generation || rt->membership.must_fail ||
            rt->membership.must_go_back) {
            tt_ps_copier_abandon(rt->copier);
            return 0;
        }
        tt_ps_copier_tick(rt->copier, tt_clock_now(&rt->clock), rt->board.retry_ns);
    }
    return 1;
}

uint64_t
tti_runtime_save_bytes(const tti_runtime *rt)
{
    uint64_t bytes = 4096 + 16 * (uint64_t)tt_shards_count(rt->job->shards), part;
    if (rt->store != NULL)
        return bytes + tt_ps_store_save_bytes(rt->store);
    if (rt->apart)
        return bytes + tt_ps_copier_bytes(rt->copier);
    for (uint32_t n = 0; n < rt->node_count; n++) {
        if (!holds(rt, n))
            continue;
        (void)tt_ps_server_save_count(rt->processes[n].node.server, &part);
        bytes += part;
    }
    return bytes;
}

void
tti_runtime_save(tti_runtime *rt, tt_archive *out)
{
    uint64_t applied = tt_load_relaxed(&rt->work.applied);
    uint64_t trained = tt_load_relaxed(&rt->work.examples_trained);
    // The number of slices is the job's and does not change.
    uint64_t iterations = is_bsp(rt) ? applied / (uint64_t)rt->job->spec.slices : applied;
    tt_archive_tag(out, STATE_VERSION);
    TT_ARCHIVE(out, iterations);
    TT_ARCHIVE(out, trained);
    tt_ledger_save(rt->work.ledger, out);
    save_untrained(rt, out);
    save_table(rt, out);
}

// ---- restoring --------------------------------------------------------------------------------

static tt_status
damaged(tt_error *err)
{
    return tt_error_set(err, TT_CORRUPT, NULL, NULL, "the position in the data is damaged");
}

static tt_status
load_untrained(tti_runtime *rt, tt_archive *in, tt_error *err)
{
    uint64_t count = 0;
    TT_ARCHIVE(in, count);
    const uint8_t *rows = NULL;
    if (in->status == TT_OK && count < SIZE_MAX / sizeof *rt->work.orphans)
        rows = tt_archive_borrow(in, (size_t)count * sizeof *rt->work.orphans);
    if (rows == NULL)
        return damaged(err);
    uint32_t *grown = tt_mem_realloc(rt->work.orphans,
                                     (rt->work.orphan_capacity + count) * sizeof *rt->work.orphans);
    if (grown == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    rt->work.orphans = grown;
    rt->work.orphan_capacity += count;
    memcpy(rt->work.orphans, rows, count * sizeof *rt->work.orphans);
    for (uint64_t i = 0; i < count; i++)
        if (rt->work.orphans[i] >= rt->job->train->row_count)
            return damaged(err);
    rt->work.orphan_count = count;
    rt->work.orphans_there = count > 0;
    return TT_OK;
}

static void
begin_at_round(tti_runtime *rt, uint32_t round)
{
    rt->newest->view->effective_round = rt->newest->view->ended_before = round;
    tti_work_begin_at_round(&rt->work, round);
    tti_work_begin_at_round(&rt->seen, round);
}

// Servers that do not share the master's memory ask for their partitions: what is saved stays here
// till they have them.
static tt_status
keep_table(tti_runtime *rt, const tt_archive *in, uint64_t iterations, tt_error *err)
{
    tti_membership *m = &rt->membership;
    tt_archive copy;
    size_t count = in->count - in->cursor;
    m->saved = tt_mem_alloc(TT_MAX(count, (size_t)1));
    if (m->saved == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to restore the parameters");
    memcpy(m->saved, in->bytes + in->cursor, count);
    tt_archive_read(&copy, m->saved, count);
    TT_TRY(tt_ps_state_open(&rt->job->table, &copy, &m->state, err));
    m->file.iteration = iterations;
    tt_ps_view_restore(rt->newest->view);
    if (is_bsp(rt)) // where all workers begin
        begin_at_round(rt, tt_ps_state_round(m->state));
    return TT_OK;
}

static tt_status
load_table(tti_runtime *rt, tt_archive *in, tt_error *err)
{
    tt_ps_state *state;
    TT_TRY(tt_ps_state_open(&rt->job->table, in, &state, err));
    tt_status status = TT_OK;
    if (rt->store != NULL)
        status = tt_ps_store_load(rt->store, state);
    for (uint32_t n = 0; rt->store == NULL && status == TT_OK && n < rt->node_count; n++)
        status = tt_ps_server_load(rt->processes[n].node.server, state);
    if (is_bsp(rt)) // where all workers begin
        begin_at_round(rt, tt_ps_state_round(state));
    tt_ps_state_close(state);
    return status == TT_OK
               ? TT_OK
               : tt_error_set(err, status, NULL, NULL, "no memory to restore the parameters");
}

// The positions before the parameters are read and left alone.
tt_status
tti_runtime_open_saved(
    tti_runtime *rt, const uint8_t *bytes, uint64_t count, tt_ps_state **out, tt_error *err)
{
    tt_archive in;
    tt_ledger *ledger;
    uint64_t iterations = 0, trained = 0, rows = 0;
    *out = NULL;
    if (bytes == NULL)
        return damaged(err);
    TT_TRY(tt_ledger_open(rt->job->shards, rt->node_count, &ledger, err));
    tt_archive_read(&in, bytes, count);
    tt_archive_tag(&in, STATE_VERSION);
    TT_ARCHIVE(&in, iterations);
    TT_ARCHIVE(&in, trained);
    tt_status status = in.status == TT_OK ? tt_ledger_load(ledger, &in) : in.status;
    tt_ledger_close(ledger);
    TT_ARCHIVE(&in, rows);
    if (status != TT_OK || in.status != TT_OK || rows > SIZE_MAX / sizeof *rt->work.orphans ||
        (rows > 0 && tt_archive_borrow(&in, (size_t)rows * sizeof *rt->work.orphans) == NULL))
        return damaged(err);
    return tt_ps_state_open(&rt->job->table, &in, out, err);
}

tt_status
tti_runtime_load(tti_runtime *rt, const tti_restore *restore, tt_error *err)
{
    tt_archive in;
    uint64_t iterations = 0, begin = tt_clock_now(&rt->clock);
    tt_archive_read(&in, restore->bytes, restore->count);
    tt_archive_tag(&in, STATE_VERSION);
    TT_ARCHIVE(&in, iterations);
    TT_ARCHIVE(&in, rt->work.examples_trained);
    if (in.status != TT_OK || tt_ledger_load(rt->work.ledger, &in) != TT_OK)
        return damaged(err);
    rt->work.applied = is_bsp(rt) ? iterations * (uint64_t)rt->job->spec.slices : iterations;
    rt->seen.applied = rt->work.applied;
    rt->elapsed_ns = (uint64_t)(restore->elapsed_s * 1e9);
    TT_TRY(load_untrained(rt, &in, err));
    uint64_t middle = tt_clock_now(&rt->clock);
    TT_TRY(rt->apart ? keep_table(rt, &in, iterations, err) : load_table(rt, &in, err));
    rt->load_data_s = (double)(middle - begin) * 1e-9;
    rt->load_model_s = (double)(tt_clock_now(&rt->clock) - middle) * 1e-9;
    return TT_OK;
}
