#include "est_troughs.h"
#include "tt/core.h"
#include <math.h>

// Looks a trough is of, before any merging; troughs that swings are measured on, the newest.
enum { LOOKS = 4, NEWEST = 8 };
// S.d. of a lowest look about its course, as a share of what the looks are above it in the mean: a
// first guess, the scatter about the curve tells.
static const double SD_SHARE = 0.02;
// The course falls, ever slower: a lowest look above the lower convex hull of all was one of a
// swing, and is worth no more than so many times how far it is above.
static const double ABOVE_SD = 2;

static tti_trough
merge(const tti_trough *a, const tti_trough *b)
{
    tti_trough both = a->looks > 0 && a->loss <= b->loss ? *a : *b;
    both.sum = a->sum + b->sum;
    both.looks = a->looks + b->looks;
    return both;
}

static void
merge_neighbours(tti_troughs *troughs)
{
    for (uint32_t i = 0; i < TTI_TROUGHS / 2; i++)
        troughs->list[i] = merge(&troughs->list[2 * i], &troughs->list[2 * i + 1]);
    troughs->count = TTI_TROUGHS / 2;
    troughs->doublings++;
}

void
tti_troughs_add(tti_troughs *troughs, double clock, double loss)
{
    if (!isfinite(loss))
        return;
    troughs->newest = fmax(troughs->newest, clock);
    const tti_trough look = {troughs->newest, loss, loss, 1};
    troughs->pending = merge(&troughs->pending, &look);
    if (troughs->pending.looks < (uint32_t)LOOKS << troughs->doublings)
        return;
    troughs->list[troughs->count++] = troughs->pending;
    troughs->pending = (tti_trough){0};
    if (troughs->count == TTI_TROUGHS)
        merge_neighbours(troughs);
}

// Whether b is on or above the line from a to c.
static int
is_above(const tti_trough *a, const tti_trough *b, const tti_trough *c)
{
    return (b->loss - a->loss) * (c->clock - a->clock) >=
           (c->loss - a->loss) * (b->clock - a->clock);
}

// The falling part of the lower convex hull (Andrew's monotone chain): the corners' places.
static uint32_t
lower_hull(const tti_troughs *troughs, uint32_t *corners)
{
    const tti_trough *list = troughs->list;
    uint32_t n = 0;
    for (uint32_t i = 0; i < troughs->count; i++) {
        while (n >= 2 && is_above(&list[corners[n - 2]], &list[corners[n - 1]], &list[i]))
            n--;
        corners[n++] = i;
    }
    while (n >= 2 && list[corners[n - 1]].loss >= list[corners[n - 2]].loss)
        n--;
    return n;
}

// The hull at each trough; behind its last corner as low as there.
static void
feet(const tti_troughs *troughs, double *out)
{
    uint32_t corners[TTI_TROUGHS], k = 0;
    const uint32_t n = lower_hull(troughs, corners);
    for (uint32_t i = 0; i < troughs->count; i++) {
        while (k + 1 < n && corners[k + 1] <= i)
            k++;
        const tti_trough *a = &troughs->list[corners[k]];
        out[i] = a->loss;
        if (k + 1 == n)
            continue;
        const tti_trough *b = &troughs->list[corners[k + 1]];
        const double share = (troughs->list[i].clock - a->clock) / (b->clock - a->clock);
        out[i] += isfinite(share) ? share * (b->loss - a->loss) : 0; // not without training
    }
}

static double
mean_of(const tti_trough *trough)
{
    return trough->sum / trough->looks;
}

// Points, of no width.
void
tti_troughs_data(const tti_troughs *troughs, double target, tti_curve_data *out)
{
    double foot[TTI_TROUGHS];
    feet(troughs, foot);
    out->count = troughs->count;
    out->target = target;
    for (uint32_t i = 0; i < troughs->count; i++) {
        const tti_trough *t = &troughs->list[i];
        const double least = 1e-12 + 1e-9 * fabs(t->loss);
        const double sd = hypot(SD_SHARE * (mean_of(t) - t->loss), ABOVE_SD * (t->loss - foot[i]));
        out->x[i] = t->clock;
        out->y[i] = t->loss;
        out->width[i] = 0;
        out->variance[i] = sd * sd + least * least;
    }
}

double
tti_troughs_above(const tti_troughs *troughs)
{
    double foot[TTI_TROUGHS], sum = 0;
    const uint32_t n = TT_MIN(troughs->count, (uint32_t)NEWEST);
    feet(troughs, foot);
    for (uint32_t i = troughs->count - n; i < troughs->count; i++)
        sum += mean_of(&troughs->list[i]) - foot[i];
    return n > 0 ? sum / n : 0;
}
