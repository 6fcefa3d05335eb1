#include "est_bend.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// From note to note; nine of them span four times as many iterations.
static const double NOTED = 1.19;
static const double AHEAD = 2; // times the iterations done
enum { LEAST = 4 };

void
tti_bend_add(tti_bend *bend, double curvature, double iterations)
{
    if (!(curvature > 0) || !isfinite(curvature))
        return;
    bend->last[bend->count++ % TTI_BEND_LAST] = curvature;
    const double now = log(iterations);
    const uint32_t newest = (bend->notes + TTI_BEND_NOTES - 1) % TTI_BEND_NOTES;
    if (bend->count < TTI_BEND_LAST ||
        (bend->notes > 0 && now < bend->log_iterations[newest] + log(NOTED)))
        return;
    const uint32_t next = bend->notes++ % TTI_BEND_NOTES;
    bend->log_iterations[next] = now;
    bend->log_curvature[next] = log(tti_bend_now(bend));
}

double
tti_bend_now(const tti_bend *bend)
{
    double sorted[TTI_BEND_LAST];
    const size_t count = (size_t)TT_MIN(bend->count, (uint64_t)TTI_BEND_LAST);
    if (count == 0)
        return NAN;
    memcpy(sorted, bend->last, count * sizeof *sorted);
    return tti_median(sorted, count);
}

// p of curvature growing as iterations^p over the last three quarters of the job, less its standard
// error; 0 to 1. 0: it does not grow, or that is not known.
static double
growth_of(const tti_bend *bend)
{
    const uint32_t n = TT_MIN(bend->notes, (uint32_t)TTI_BEND_NOTES);
    const double *x = bend->log_iterations, *y = bend->log_curvature;
    double x_mean = 0, y_mean = 0, xx = 0, xy = 0, yy = 0;
    if (n < LEAST)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        x_mean += x[i] / n;
        y_mean += y[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
        yy += (y[i] - y_mean) * (y[i] - y_mean);
    }
    const double slope = xy / xx, rest = fmax(yy - slope * xy, 0);
    return fmin(fmax(slope - sqrt(rest / (n - 2) / xx), 0), 1);
}

double
tti_bend_ahead(const tti_bend *bend)
{
    return tti_bend_now(bend) * pow(AHEAD, growth_of(bend));
}
