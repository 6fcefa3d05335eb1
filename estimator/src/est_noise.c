#include "est_noise.h"
#include "est_robust.h"
#include <math.h>
#include <string.h>

void
tti_detrend_reset(tti_detrend *detrend, uint32_t workers)
{
    // An oscillation through staleness has a period of about 4 W pushes: a segment must span it.
    *detrend = (tti_detrend){.segment = fmax(100, 6.0 * workers)};
}

static void
close_segment(tti_detrend *d)
{
    if (d->n > 2) {
        const double xx = d->sxx - d->sx * d->sx / d->n, xy = d->sxy - d->sx * d->sy / d->n;
        const double yy = d->syy - d->sy * d->sy / d->n;
        d->squares += fmax(yy - (xx > 0 ? xy * xy / xx : 0), 0);
        d->freedom += d->n - 2;
    }
    d->n = d->sx = d->sy = d->sxx = d->sxy = d->syy = 0;
}

void
tti_detrend_add(tti_detrend *d, double position, double loss)
{
    if (d->n <= 0) {
        d->x0 = position;
        d->y0 = loss;
    }
    const double x = position - d->x0, y = loss - d->y0;
    d->n += 1;
    d->losses += 1;
    d->sx += x;
    d->sy += y;
    d->sxx += x * x;
    d->sxy += x * y;
    d->syy += y * y;
    if (d->n >= d->segment)
        close_segment(d);
}

double
tti_detrend_sd(const tti_detrend *detrend)
{
    if (detrend->losses < 8)
        return NAN;
    tti_detrend whole = *detrend;
    close_segment(&whole);
    return whole.freedom > 0 ? sqrt(whole.squares / whole.freedom) : NAN;
}

// Index of the window to give up: the oldest of a setting that has its share, else the oldest.
static uint32_t
pick_victim(const tti_noise *noise, uint32_t setting)
{
    uint32_t same = 0, oldest_same = 0;
    for (uint32_t i = noise->count; i-- > 0;)
        if (noise->windows[i].setting == setting) {
            same++;
            oldest_same = i;
        }
    if (same >= TTI_NOISE_WINDOWS_PER_SETTING)
        return oldest_same;
    return noise->count == TTI_NOISE_WINDOWS ? 0 : noise->count;
}

// Reference: log sd = a + b log loss over the windows, b drawn towards 1/2 (s.d. 1/2). Where the
// losses hardly differ, or are not positive, the median alone.
static void
refit_reference(tti_noise *noise)
{
    double x[TTI_NOISE_WINDOWS], y[TTI_NOISE_WINDOWS], w[TTI_NOISE_WINDOWS];
    uint32_t usable = 0;
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < noise->count; i++) {
        x[i] = noise->windows[i].log_loss;
        y[i] = noise->windows[i].log_sd;
        w[i] = 2 * noise->windows[i].n;
        usable += isfinite(x[i]) ? 1 : 0;
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    tti_line line;
    double slope = 0;
    if (usable == noise->count && high - low > 0.05 &&
        tti_huber_line(x, y, w, noise->count, &line)) {
        const double evidence = 1 / (line.slope_se * line.slope_se + 1 / line.sum_xx);
        slope = (line.slope * evidence + 0.5 / 0.25) / (evidence + 1 / 0.25);
    }
    double scratch[TTI_NOISE_WINDOWS];
    for (uint32_t i = 0; i < noise->count; i++) {
        noise->excess[i] = y[i] - (slope != 0 ? slope * x[i] : 0);
        scratch[i] = noise->excess[i];
    }
    const double median = tti_median(scratch, noise->count);
    for (uint32_t i = 0; i < noise->count; i++)
        noise->excess[i] -= median;
}

void
tti_noise_add(
    tti_noise *noise, uint32_t setting, double sd, double loss, double n, const double *features)
{
    if (!(sd > 0) || !isfinite(sd))
        return;
    const uint32_t victim = pick_victim(noise, setting);
    if (victim < noise->count) {
        memmove(&noise->windows[victim], &noise->windows[victim + 1],
                (noise->count - victim - 1) * sizeof *noise->windows);
        noise->count--;
    }
    tti_noise_window *window = &noise->windows[noise->count++];
    window->setting = setting;
    window->log_sd = log(sd);
    window->log_loss = loss > 0 ? log(loss) : NAN;
    window->n = n;
    memcpy(window->features, features, sizeof window->features);
    refit_reference(noise);
}

double
tti_noise_ratio(const tti_noise *noise, const double *features, uint32_t width)
{
    enum { LEAST = 5 }; // under five windows there is no reference to speak of
    if (noise->count < LEAST)
        return 0;
    double weight = 0, sum = 0;
    for (uint32_t i = 0; i < noise->count; i++) {
        double distance = 0;
        for (uint32_t f = 0; f < width; f++) {
            const double d = (features[f] - noise->windows[i].features[f]) / 0.15;
            distance += d * d;
        }
        const double q = noise->windows[i].n * exp(-0.5 * distance);
        weight += q;
        sum += q * noise->excess[i];
    }
    if (!(weight >= 8))
        return 0;
    const double nu = sum / weight, se = 1 / sqrt(2 * weight);
    return nu > 3 * se ? nu : 0;
}

uint32_t
tti_noise_width(const tti_noise *noise)
{
    uint32_t width = 0;
    for (uint32_t i = 0; i < noise->count; i++)
        for (uint32_t f = width; f < TT_EST_FEATURES_MAX; f++)
            if (noise->windows[i].features[f] != 0)
                width = f + 1;
    return width;
}
