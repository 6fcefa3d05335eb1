#include "est_looks.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>

enum { LEAST = 4 };

void
tti_looks_hear(tti_looks *looks, double level)
{
    looks->levels += level;
    looks->level_count += 1;
}

// Losses between two looks are compared with the mean of both: the course is nearly a straight line
// there.
void
tti_looks_add(tti_looks *looks, double loss)
{
    if (!isfinite(loss))
        return;
    if (looks->count > 0 && looks->level_count > 0)
        looks->offset[looks->offsets++ % TTI_LOOKS] =
            looks->levels / looks->level_count - 0.5 * (looks->last + loss);
    looks->levels = looks->level_count = 0;
    looks->last = loss;
    looks->count++;
}

// The median, of the newer half at most: the first falls are steep and bent.
double
tti_looks_offset(const tti_looks *looks)
{
    double newest[TTI_LOOKS], scratch[TTI_LOOKS];
    const uint32_t n = TT_MIN((looks->offsets + 1) / 2, (uint32_t)TTI_LOOKS);
    if (n < LEAST)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        newest[i] = looks->offset[(looks->offsets - 1 - i) % TTI_LOOKS];
    const double median = tti_median(newest, n), square = median * median;
    const double sd = 1.4826 * tti_mad(newest, n, median, scratch);
    const double doubt = 1.5708 * sd * sd / n; // pi / 2: variance of a median beside a mean's
    return square > 0 ? median * square / (square + doubt) : 0;
}
