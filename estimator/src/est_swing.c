#include "est_swing.h"
#include <math.h>

// Measured anew every so many blocks.
enum { EVERY = 16 };

void
tti_swing_restart(tti_swing *swing)
{
    swing->count = 0;
}

// Variance of the means about the parabola through them, equally spaced: the course may bend.
static double
about_course(const tti_swing *swing)
{
    enum { N = TTI_SWING_BLOCKS };
    const double spacing = (N * N - 1) / 12.0; // mean square of the distance to the middle
    double y[N], sum = 0, first = 0, second = 0, first_2 = 0, second_2 = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        const double x = i - 0.5 * (N - 1), q = x * x - spacing;
        y[i] = swing->mean[(swing->count + (uint32_t)i) % N]; // the oldest first
        sum += y[i];
        first += x * y[i];
        first_2 += x * x;
        second += q * y[i];
        second_2 += q * q;
    }
    for (int i = 0; i < N; i++) {
        const double x = i - 0.5 * (N - 1), q = x * x - spacing;
        const double d = y[i] - sum / N - x * first / first_2 - q * second / second_2;
        squares += d * d;
    }
    return squares / (N - 3);
}

// What noise explains is no swing, nor what it explains within two standard errors.
static void
measure(tti_swing *swing)
{
    double noise = 0;
    for (int i = 0; i < TTI_SWING_BLOCKS; i++)
        noise += swing->noise[i] / TTI_SWING_BLOCKS;
    const double doubt = 2 * sqrt(2.0 / TTI_SWING_BLOCKS);
    swing->excess[swing->measured++ % 3] = fmax(about_course(swing) - (1 + doubt) * noise, 0);
}

void
tti_swing_add(tti_swing *swing, const tti_block *block, double examples)
{
    if (block->n < TTI_BLOCK_LOSSES)
        return;
    const uint32_t at = swing->count++ % TTI_SWING_BLOCKS;
    swing->mean[at] = block->mean;
    swing->noise[at] = block->variance / block->n;
    swing->jitter[at] = block->variance < 0.25 * block->spread ? examples * block->variance / 4 : 0;
    if (swing->count >= TTI_SWING_BLOCKS && swing->count % EVERY == 0)
        measure(swing);
}

double
tti_swing_sd(const tti_swing *swing)
{
    double excess = swing->measured < 3 ? 0 : INFINITY, jitter = 0;
    const uint32_t known = swing->count < TTI_SWING_BLOCKS ? swing->count : TTI_SWING_BLOCKS;
    for (int i = 0; i < 3; i++)
        excess = fmin(excess, swing->excess[i]);
    for (uint32_t i = 0; i < known; i++)
        jitter += swing->jitter[i] / known;
    return fmax(sqrt(excess), jitter);
}
