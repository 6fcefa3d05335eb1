#include "est_blocks.h"
#include "tt/core.h"
#include <string.h>

void
tti_series_reset(tti_series *series)
{
    memset(series, 0, sizeof *series);
    series->nominal = TTI_BLOCK_LOSSES;
}

tti_block
tti_block_merge(const tti_block *a, const tti_block *b)
{
    if (a->n <= 0)
        return *b;
    if (b->n <= 0)
        return *a;
    const double n = a->n + b->n, share = b->n / n;
    return (tti_block){
        .clock = a->clock + share * (b->clock - a->clock),
        .position = a->position + share * (b->position - a->position),
        .width = a->width + b->width,
        .mean = a->mean + share * (b->mean - a->mean),
        // within, not between: the fall of the loss from a to b is signal
        .variance = a->variance + share * (b->variance - a->variance),
        .spread = a->spread + share * (b->spread - a->spread),
        .n = n,
    };
}

static void
merge_neighbours(tti_series *series)
{
    TT_ASSERT(series->count % 2 == 0);
    for (uint32_t i = 0; i < series->count / 2; i++)
        series->blocks[i] = tti_block_merge(&series->blocks[2 * i], &series->blocks[2 * i + 1]);
    series->count /= 2;
    series->nominal *= 2;
    series->doublings++;
}

static void
push(tti_series *series, const tti_block *block)
{
    TT_ASSERT(series->count < TTI_SERIES_BLOCKS);
    series->blocks[series->count++] = *block;
    if (series->count == TTI_SERIES_BLOCKS)
        merge_neighbours(series);
}

int
tti_series_append(tti_series *series, const tti_block *block)
{
    series->pending = tti_block_merge(&series->pending, block);
    if (series->pending.n < series->nominal)
        return 0;
    const tti_block full = series->pending;
    series->pending = (tti_block){0};
    push(series, &full);
    return 1;
}

void
tti_series_close(tti_series *series)
{
    if (series->pending.n <= 0)
        return;
    const tti_block partial = series->pending;
    series->pending = (tti_block){0};
    push(series, &partial);
}

tti_series_mark
tti_series_remember(const tti_series *series)
{
    return (tti_series_mark){series->count, series->doublings, series->pending};
}

void
tti_series_restore(tti_series *series, const tti_series_mark *mark)
{
    uint32_t count = mark->count;
    for (uint32_t i = mark->doublings; i < series->doublings; i++)
        count /= 2;
    if (count < series->count)
        series->count = count;
    series->pending = mark->pending;
}

uint32_t
tti_series_view(const tti_series *series, tti_block *out)
{
    memcpy(out, series->blocks, series->count * sizeof *out);
    uint32_t count = series->count;
    if (series->pending.n >= TTI_BLOCK_LOSSES || (count < 3 && series->pending.n > 0))
        out[count++] = series->pending;
    return count;
}
