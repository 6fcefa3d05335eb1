#include "est_plateau.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>

enum { LEAST_BLOCKS = 6 };

// Line over blocks [first, count); its s.e. is at least what the noise within blocks implies.
static int
line_from(const tti_series *history, uint32_t first, double variance, tti_line *line)
{
    double x[TTI_SERIES_BLOCKS], y[TTI_SERIES_BLOCKS], w[TTI_SERIES_BLOCKS];
    const uint32_t n = history->count - first;
    for (uint32_t i = 0; i < n; i++) {
        const tti_block *b = &history->blocks[first + i];
        x[i] = b->clock;
        y[i] = b->mean;
        w[i] = b->n;
    }
    if (!tti_huber_line(x, y, w, n, line))
        return 0;
    line->slope_se = fmax(line->slope_se, sqrt(variance / line->sum_xx));
    return 1;
}

int
tti_trend(const tti_series *history, double since, double *slope, double *slope_se, double *last)
{
    double x[TTI_SERIES_BLOCKS], y[TTI_SERIES_BLOCKS], w[TTI_SERIES_BLOCKS];
    double variance = 0, losses = 0;
    uint32_t n = 0;
    tti_line line;
    for (uint32_t i = 0; i < history->count; i++) {
        const tti_block *b = &history->blocks[i];
        if (b->position < since)
            continue;
        x[n] = b->position;
        y[n] = b->mean;
        w[n++] = b->n;
        variance += b->n * b->variance;
        losses += b->n;
    }
    if (n < LEAST_BLOCKS || !tti_huber_line(x, y, w, n, &line))
        return 0;
    *slope = line.slope;
    *slope_se = fmax(line.slope_se, sqrt(variance / losses / line.sum_xx));
    *last = line.intercept + line.slope * (x[n - 1] - line.x_mean);
    return 1;
}

void
tti_plateau_check(tti_plateau *plateau, const tti_series *history, double target)
{
    const int suspected = plateau->suspected;
    plateau->now = plateau->suspected = 0;
    if (history->count < LEAST_BLOCKS)
        return;
    double variance = 0, n = 0;
    for (uint32_t i = history->count / 2; i < history->count; i++) {
        variance += history->blocks[i].n * history->blocks[i].variance;
        n += history->blocks[i].n;
    }
    variance /= n;
    tti_line line;
    if (!(plateau->fall > 0)) {
        if (!line_from(history, 0, variance, &line))
            return;
        const tti_block *last = &history->blocks[history->count - 1];
        if (-line.slope > 4 * line.slope_se)
            plateau->fall = -line.slope;
        else if (history->count >= 40 && last->mean > target)
            plateau->now =
                2 * line.slope_se - line.slope < (last->mean - target) / 20 / last->clock;
        return;
    }
    const double needed = 4 * cbrt(12 * variance / (plateau->fall * plateau->fall));
    uint32_t first = history->count;
    double held = 0;
    while (first > 0 && (held < needed || history->count - first < LEAST_BLOCKS))
        held += history->blocks[--first].n;
    if (held < needed || !line_from(history, first, variance, &line))
        return;
    if (-line.slope < 2 * line.slope_se) {
        plateau->suspected = 1;
        plateau->now = suspected;
    } else {
        plateau->fall = -line.slope;
    }
}
