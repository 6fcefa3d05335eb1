// From the workers' records to the estimator and the run store, in apply order.
#include "training.h"
#include <math.h>
#include <stdlib.h>

enum { TURN_NS = 10000000 };

static int
by_sequence(const void *a, const void *b)
{
    uint64_t x = ((const tti_record *)a)->sequence, y = ((const tti_record *)b)->sequence;
    return (x > y) - (x < y);
}

static void
feed(tti_training *tr, const tti_record *record)
{
    const tti_runtime *rt = tr->rt;
    double time_s = (double)(int64_t)(record->done_ns - rt->start_ns - tr->paused_ns) * 1e-9;
    tt_est_sample sample = {.generation = record->generation,
                            .sequence = tr->iterations, // apply order, closed up
                            .worker = record->worker,
                            .examples = record->examples,
                            .loss = (double)record->loss + tr->regulariser,
                            .level = (double)record->level + tr->regulariser,
                            .time_s = time_s,
                            .cycle_s = (double)record->cycle_ns * 1e-9,
                            .curvature = (double)record->curvature,
                            .staleness = (double)record->staleness};
    tt_estimator_add(tr->estimator, &sample);
    if (tr->lookout.samples != NULL)
        tti_training_write_sample(tr, &sample);
    tr->iterations++;
    if (!isnan(record->staleness))
        tr->staleness_sum += (double)record->staleness;
    tr->last_push_s = time_s > tr->last_push_s ? time_s : tr->last_push_s;
    tr->bad_losses = isfinite(record->loss) ? 0 : tr->bad_losses + 1;
    if (isfinite(record->loss))
        tr->last_loss = isfinite(tr->last_loss) ? 0.98 * tr->last_loss + 0.02 * (double)record->loss
                                                : (double)record->loss;
    tt_store_sample row = {.iteration = (int64_t)tr->iterations,
                           .time_s = time_s,
                           .loss = (double)record->loss,
                           .setting = tr->setting_id,
                           .staleness = (double)record->staleness};
    tt_error err = {0};
    if (tr->store != NULL && tt_store_put_sample(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

// BSP: an iteration is a round; its slices are put together here. Slices of at most two rounds mix.
static void
feed_slice(tti_training *tr, const tti_record *record)
{
    tti_round_tally *tally = &tr->rounds[record->sequence % TT_COUNT_OF(tr->rounds)];
    // What is left of an older round lacks a slice whose worker died before it could tell.
    if (tally->slices == 0 || tally->round.sequence != record->sequence)
        *tally = (tti_round_tally){.round = *record};
    tally->slices++;
    tally->loss += (double)record->loss * record->examples;
    tally->level += (double)record->level * record->examples;
    tally->examples += record->examples;
    tally->done_ns = TT_MAX(tally->done_ns, record->done_ns);
    if (tally->slices < (uint32_t)tr->job->spec.slices)
        return;
    tti_record round = tally->round;
    uint64_t since = tr->last_round_ns > 0 ? tr->last_round_ns : tr->rt->start_ns;
    round.worker = 0;
    round.loss = (float)(tally->loss / tally->examples);
    round.level = (float)(tally->level / tally->examples);
    round.examples = tally->examples;
    round.done_ns = tally->done_ns;
    round.cycle_ns = round.done_ns > since ? round.done_ns - since : 1;
    tr->last_round_ns = round.done_ns;
    tally->slices = 0;
    feed(tr, &round);
}

void
tti_training_drain(tti_training *tr)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < tr->rt->node_count; n++)
        count += tti_records_take(&tr->rt->standings[n].records, tr->drained + count,
                                  TTI_DRAIN_MAX - count);
    qsort(tr->drained, count, sizeof *tr->drained, by_sequence);
    uint64_t now_ns = tt_clock_now(&tr->rt->clock);
    for (uint32_t i = 0; i < count; i++) {
        // Later than now, by a host's clock that has not been compared since it jumped. Of one that
        // was, times are right to about a turn of the master.
        if (tr->drained[i].done_ns > now_ns + TURN_NS)
            tr->drained[i].done_ns = now_ns;
        (tr->job->table.consistency == TT_PS_BSP ? feed_slice : feed)(tr, &tr->drained[i]);
    }
}
