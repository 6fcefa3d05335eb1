// Samples to blocks to windows: everything that is O(1) a push, and what happens at a window's
// ends.
#include "est_robust.h"
#include "est_state.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// A loss rises when it is clear by so many s.e. and does harm: more than so many s.d. of the
// batches' own losses.
static const double CLEAR_SE = 4, HARM_SD = 1;
enum { LAG_SAMPLES = 200 };
// It stays high when so much of the later half of a window is.
static const double HIGH_SHARE = 0.75;

uint32_t
tt_est_full_window(uint32_t workers)
{
    return TT_MAX(3 * workers, 12u);
}

uint32_t
tt_est_time_window(uint32_t workers)
{
    return TT_MAX(workers + 4, 12u);
}

double
tti_clock_at(const tt_estimator *est, double position)
{
    return est->clock_base + exp(est->run.log_rate) * (position - est->position_base);
}

double
tti_clock_now(const tt_estimator *est)
{
    return tti_clock_at(est, (double)est->iterations);
}

// The last `count` valid losses (as many as there are), newest first.
static uint32_t
recent_losses(const tt_estimator *est, uint32_t count, double *out)
{
    count = TT_MIN(count, est->recent_count);
    for (uint32_t i = 0; i < count; i++)
        out[i] = est->recent[(est->recent_next + TTI_RECENT_LOSSES - 1 - i) % TTI_RECENT_LOSSES];
    return count;
}

// The same of the batches' own losses.
static double
winsorise_own(const tt_estimator *est, double *own, uint32_t n)
{
    double low, high;
    tti_winsor_bounds(est->recent_own, TT_MIN(est->own_count, (uint64_t)TTI_RECENT_OWN), &low,
                      &high);
    return tti_winsorise(own, n, low, high);
}

// Winsorises losses[0..n), the newest ones, by bounds from the last hundred: in 25 losses of which
// most are 0 the few others would all look wild. Returns their mean.
static double
winsorise_newest(const tt_estimator *est, double *losses, uint32_t n)
{
    double last[100], low, high;
    const uint32_t count = recent_losses(est, TT_COUNT_OF(last), last);
    TT_ASSERT(count > 0 && n > 0);
    tti_winsor_bounds(last, count, &low, &high);
    return tti_winsorise(losses, n, low, high);
}

double
tti_recent_loss(const tt_estimator *est, double *variance, double *n)
{
    const uint32_t workers = est->options.bulk_synchronous ? 1 : est->run.workers;
    const uint32_t wanted = TT_MIN(TT_MAX(25u, 3 * workers), (uint32_t)TTI_RECENT_LOSSES);
    double losses[TTI_RECENT_LOSSES];
    const uint32_t count = recent_losses(est, wanted, losses);
    *variance = *n = NAN;
    if (count < TTI_BLOCK_LOSSES)
        return NAN;
    double squares = 0;
    const double mean = winsorise_newest(est, losses, count);
    for (uint32_t i = 0; i < count; i++)
        squares += (losses[i] - mean) * (losses[i] - mean);
    *variance = squares / (count - 1);
    *n = count;
    return mean;
}

int
tti_series_line(const tti_series *series, tti_course *out)
{
    tti_block blocks[TTI_SERIES_BLOCKS + 1];
    double x[TTI_SERIES_BLOCKS + 1], y[TTI_SERIES_BLOCKS + 1], w[TTI_SERIES_BLOCKS + 1];
    const uint32_t count = tti_series_view(series, blocks);
    double variance = 0, spread = 0, n = 0;
    for (uint32_t i = 0; i < count; i++) {
        x[i] = blocks[i].position;
        y[i] = blocks[i].mean;
        w[i] = blocks[i].n / TTI_BLOCK_LOSSES;
        variance += blocks[i].n * blocks[i].variance;
        spread += blocks[i].n * blocks[i].spread;
        n += blocks[i].n;
    }
    tti_line line;
    *out = (tti_course){NAN, NAN, NAN, NAN, NAN};
    if (!tti_huber_line(x, y, w, count, &line))
        return 0;
    out->slope = line.slope;
    out->se = fmax(line.slope_se, sqrt(variance / n / TTI_BLOCK_LOSSES / line.sum_xx));
    out->own_se = fmax(line.slope_se, sqrt(spread / n / TTI_BLOCK_LOSSES / line.sum_xx));
    out->own_sd = sqrt(spread / n);
    out->span = x[count - 1] - x[0];
    return 1;
}

// Counts the sample and returns its place in the apply order. Iterations done: by apply order where
// the job gives one, else by counting. Under BSP samples with the sequence of their predecessor
// belong to the same round.
static double
count_iteration(tt_estimator *est, const tt_est_sample *sample)
{
    const int same_round =
        est->options.bulk_synchronous && est->samples > 0 && sample->sequence == est->last_sequence;
    if (est->span == 0)
        est->first_sequence = sample->sequence;
    est->last_sequence = sample->sequence;
    if (!same_round)
        est->samples++;
    if (sample->sequence < est->first_sequence) { // apply order and arrival differ at the start
        est->span += est->first_sequence - sample->sequence;
        est->first_sequence = sample->sequence;
    }
    est->span = TT_MAX(est->span, sample->sequence - est->first_sequence + 1);
    est->iterations = TT_MAX(est->samples, est->span);
    // a count beyond the span means that sequences repeat or are not given: go by arrival
    if (est->samples > est->span)
        return (double)(est->first_sequence + est->iterations - 1);
    return (double)sample->sequence;
}

static void
note_block(tt_estimator *est, const tti_block *block)
{
    est->window.blocks_closed++;
    if (isnan(est->first_loss))
        est->first_loss = block->mean;
    if (block->n >= TTI_BLOCK_LOSSES)
        est->under_row = block->mean <= tt_estimator_target_level(est) ? est->under_row + 1 : 0;
}

// The open block, full or partial, goes to the window, the run and the history.
static void
close_block(tt_estimator *est)
{
    if (est->filled == 0)
        return;
    const double n = est->filled;
    tti_block block = {.n = n, .mean = winsorise_newest(est, est->losses, est->filled)};
    const double own_mean = winsorise_own(est, est->own, est->filled);
    for (uint32_t i = 0; i < est->filled; i++) {
        const double d = est->losses[i] - block.mean, own = est->own[i] - own_mean;
        block.position += est->positions[i] / n; // in apply order, whatever the arrival
        block.variance += est->filled > 1 ? d * d / (n - 1) : 0;
        block.spread += est->filled > 1 ? own * own / (n - 1) : 0;
    }
    for (uint32_t i = est->flushed; i < est->filled; i++)
        tti_detrend_add(&est->window.detrend, est->positions[i], est->own[i]);
    block.position -= (double)est->first_sequence - 1;
    const double end = tti_clock_now(est);
    block.clock = tti_clock_at(est, block.position);
    block.width = fmax(end - est->block_start, 0);
    est->block_start = end;
    est->filled = est->flushed = 0;
    note_block(est, &block);
    (void)tti_series_append(&est->window.blocks, &block);
    (void)tti_series_append(&est->run.blocks, &block);
    (void)tti_series_append(&est->history, &block);
    tti_swing_add(&est->swing, &block, est->window.examples / est->window.kept);
}

static void
take_loss(tt_estimator *est, double loss, double own, double position)
{
    est->recent[est->recent_next] = loss;
    est->recent_next = (est->recent_next + 1) % TTI_RECENT_LOSSES;
    est->recent_count = TT_MIN(est->recent_count + 1, (uint32_t)TTI_RECENT_LOSSES);
    est->recent_own[est->own_count++ % TTI_RECENT_OWN] = own;
    est->losses[est->filled] = loss;
    est->own[est->filled] = own;
    est->positions[est->filled] = position;
    if (++est->filled == TTI_BLOCK_LOSSES)
        close_block(est);
}

// What is known of the loss where the iteration was. The paper's method is that of the batches'
// own.
static double
loss_of(const tt_estimator *est, const tt_est_sample *sample)
{
    const int known = isfinite(sample->level) && sample->level != 0;
    return known && est->options.method != TT_EST_PAPER ? sample->level : sample->loss;
}

void
tt_estimator_add(tt_estimator *est, const tt_est_sample *sample)
{
    tti_window *window = &est->window;
    est->changes++;
    const double position = count_iteration(est, sample);
    tti_bend_add(&est->bend, sample->curvature, (double)est->iterations);
    if (!window->open)
        return;
    if (isfinite(sample->time_s)) {
        est->last_time_s = sample->time_s;
        if (isnan(window->start_s))
            window->start_s = sample->time_s;
    }
    if (sample->generation < est->run.generation) {
        window->dropped++;
        return;
    }
    tti_cycles_add(&est->cycles, sample->worker, sample->cycle_s);
    if (!isfinite(sample->loss)) {
        window->dropped++;
        window->invalid++;
        if (++window->invalid_row >= 3)
            window->invalid_burst = 1;
        return;
    }
    window->invalid_row = 0;
    window->kept++;
    if (isfinite(sample->time_s)) {
        if (isnan(window->first_kept_s))
            window->first_kept_s = sample->time_s;
        window->last_kept_s = sample->time_s;
    }
    if (isfinite(sample->staleness)) {
        window->staleness += sample->staleness;
        window->stale++;
        est->lag_samples = TT_MIN(est->lag_samples + 1, (uint32_t)LAG_SAMPLES);
        est->lag += (sample->staleness - est->lag) / est->lag_samples;
    }
    window->examples += sample->examples;
    const double loss = loss_of(est, sample);
    window->losses += loss;
    if (!(est->base_examples > 0))
        est->base_examples = sample->examples;
    take_loss(est, loss, sample->loss, position);
    tti_looks_hear(&est->looks, loss);
}

// --- begin and end

static void
open_window(tt_estimator *est)
{
    tti_window *window = &est->window;
    memset(window, 0, sizeof *window);
    window->open = 1;
    window->start_s = est->last_time_s;
    window->first_kept_s = window->last_kept_s = NAN;
    tti_detrend_reset(&window->detrend, est->run.workers);
    tti_series_reset(&window->blocks);
    window->mark = tti_series_remember(&est->history);
    window->clock_mark = tti_clock_now(est);
    tti_cycles_reset(&est->cycles);
    est->method->begin(est);
}

// Of one of the batches' own losses, of late; NAN: too few of them.
static double
own_variance(const tt_estimator *est)
{
    double own[TTI_RECENT_OWN], squares = 0;
    const uint32_t n = (uint32_t)TT_MIN(est->own_count, (uint64_t)TTI_RECENT_OWN);
    memcpy(own, est->recent_own, sizeof own);
    if (n < TTI_BLOCK_LOSSES)
        return NAN;
    const double mean = winsorise_own(est, own, n);
    for (uint32_t i = 0; i < n; i++)
        squares += (own[i] - mean) * (own[i] - mean);
    return squares / (n - 1);
}

// The last run's partial block and its slope go where they belong.
static void
close_run(tt_estimator *est)
{
    tti_run *run = &est->run;
    if (!run->alive)
        return;
    close_block(est);
    tti_current_rate(est, &est->rate);
    run->have_evidence = 0;
    run->alive = 0;
}

static void
open_run(tt_estimator *est, uint32_t setting, const double *features, uint32_t feature_count)
{
    tti_run *run = &est->run;
    const double clock = tti_clock_now(est);
    double variance, n;
    const double level = tti_recent_loss(est, &variance, &n);
    memset(run, 0, sizeof *run);
    run->alive = 1;
    run->setting = setting;
    run->level = level;
    run->level_spread = own_variance(est);
    run->level_n = n;
    run->feature_count = TT_MIN(feature_count, (uint32_t)TT_EST_FEATURES_MAX);
    if (run->feature_count > 0)
        memcpy(run->features, features, run->feature_count * sizeof *features);
    tti_series_reset(&run->blocks);
    tti_swing_restart(&est->swing);
    tti_refresh(est);
    tti_mix_snapshot_take(est->mix, &run->foretold);
    for (uint32_t i = 0; i < est->history.count; i++)
        run->history_losses += est->history.blocks[i].n;
    double sd, theta;
    const double nu = tti_noise_ratio(&est->noise, run->features, TT_EST_FEATURES_MAX);
    tti_rate_predict(&est->rate, run->features, nu, &run->log_rate, &sd);
    tti_rate_predict(&est->rate, run->features, 0, &theta, &sd);
    run->penalty = theta - run->log_rate;
    est->clock_base = clock;
    est->position_base = (double)est->iterations;
    est->block_start = clock;
}

void
tt_estimator_begin(tt_estimator *est,
                   uint32_t setting,
                   uint64_t generation,
                   uint32_t workers,
                   const double *features,
                   uint32_t feature_count)
{
    est->changes++;
    if (est->window.open) {
        tt_est_window ignored;
        tt_estimator_end(est, 1, &ignored);
    }
    if (!est->run.alive || est->run.setting != setting) {
        close_run(est);
        open_run(est, setting, features, feature_count);
    }
    est->run.generation = generation;
    est->run.workers = TT_MAX(workers, 1u);
    open_window(est);
}

// How the run's slope compares with what the pooled curve had foretold for it. Only while the run
// is at most half as long as what was known before: beyond that the forecast is the weaker side.
static void
weigh_run(tt_estimator *est)
{
    tti_run *run = &est->run;
    tti_block blocks[TTI_SERIES_BLOCKS + 1];
    const uint32_t count = tti_series_view(&run->blocks, blocks);
    double losses = 0, foretold, disagreement;
    tti_course own;
    for (uint32_t i = 0; i < count; i++)
        losses += blocks[i].n;
    if (losses > 0.5 * run->history_losses || !tti_series_line(&run->blocks, &own) ||
        !tti_mix_slope(&run->foretold, &est->families, blocks, count, &foretold, &disagreement))
        return;
    const double pooled = fmax(-foretold, 1e-9);
    const double ratio = tti_clamp(-own.slope / pooled, 0.2, 5);
    // the forecast counts as no better known than the run itself
    const double variance =
        2 * own.se * own.se / (pooled * pooled) + disagreement * disagreement / (pooled * pooled);
    run->have_evidence = isfinite(variance) && variance > 0;
    run->evidence = run->log_rate + run->penalty + ratio - 1;
    run->evidence_variance = variance;
}

// An abandoned trial leaves no block behind. What it did to the loss is unknown when it rose: the
// clock stands still for it then.
static void
forget_window(tt_estimator *est, unsigned flags)
{
    const double clock =
        flags & (TT_EST_RISING | TT_EST_DIVERGING) ? est->window.clock_mark : tti_clock_now(est);
    tti_series_restore(&est->history, &est->window.mark);
    est->filled = est->flushed = 0;
    est->run.alive = 0;
    est->run.have_evidence = 0;
    est->clock_base = clock;
    est->position_base = (double)est->iterations;
    est->block_start = clock;
    est->under_row = 0;
}

static void
flush_partial_block(tt_estimator *est)
{
    double own[TTI_BLOCK_LOSSES];
    if (est->flushed == est->filled)
        return;
    memcpy(own, est->own, sizeof own);
    (void)winsorise_own(est, own, est->filled);
    for (uint32_t i = est->flushed; i < est->filled; i++)
        tti_detrend_add(&est->window.detrend, est->positions[i], own[i]);
    est->flushed = est->filled;
}

void
tt_estimator_end(tt_estimator *est, int keep_slope, tt_est_window *out)
{
    tt_estimator_window(est, out);
    if (!est->window.open)
        return;
    est->changes++;
    est->window.open = 0;
    if (!keep_slope) {
        forget_window(est, out->flags);
        tti_refresh(est);
        return;
    }
    flush_partial_block(est);
    est->method->end(est);
    const int rising = (out->flags & (TT_EST_RISING | TT_EST_DIVERGING)) != 0;
    est->run.windows++;
    est->run.rising_windows = rising ? est->run.rising_windows + 1 : 0;
    tti_refresh(est);
    if (rising)
        return; // no change of rate, and its spread is no noise
    if (isfinite(out->noise))
        tti_noise_add(&est->noise, est->run.setting, out->noise, out->loss,
                      est->window.detrend.losses, est->run.features);
    weigh_run(est);
}

// --- the window as it stands

// Whether the line through the blocks rises: clearly, and by more than the batches' own losses
// differ. The level of many thousand iterations is known well enough to tell any of its wanderings
// from no slope; they do no harm.
static int
rises(const tti_course *course)
{
    return course->slope > CLEAR_SE * course->own_se &&
           course->slope * course->span > HARM_SD * course->own_sd;
}

// The later half of a window, two blocks at least, against the level before the run.
typedef struct later_half {
    double mean;
    int stays_high; // most of its blocks are clearly above it
} later_half;

// However well the level is known: it swings, and a rise that drowns in the noise of the batches
// does no harm. Nor does one that is over: near the edge of stability the loss of long windows goes
// up for some dozen iterations every now and then, and comes down again by itself.
static int
is_high(const tti_run *run, const tti_block *block)
{
    const double variance = fmax(block->spread, run->level_spread);
    const double se = sqrt(variance / block->n + run->level_spread / run->level_n);
    return block->mean > run->level + CLEAR_SE * se;
}

static later_half
look_at_later_half(const tt_estimator *est)
{
    tti_block blocks[TTI_SERIES_BLOCKS + 1];
    uint32_t next = tti_series_view(&est->window.blocks, blocks);
    double all = 0, n = 0, sum = 0, high = 0;
    for (uint32_t i = 0; i < next; i++)
        all += blocks[i].n;
    const double half = floor(all / TTI_BLOCK_LOSSES / 2) * TTI_BLOCK_LOSSES;
    const double wanted = fmax(half, 2 * TTI_BLOCK_LOSSES);
    while (next > 0 && n < wanted) {
        const tti_block *block = &blocks[--next];
        n += block->n;
        sum += block->n * block->mean;
        high += is_high(&est->run, block) ? block->n : 0;
    }
    return (later_half){sum / n, n >= wanted && high >= HIGH_SHARE * n};
}

// Whether the loss of the window rises along a line, and, where it is the first under its setting,
// to above the level before it: a line also rises that comes out of a trough.
static int
window_rises(const tt_estimator *est, const later_half *later)
{
    const double level = est->run.windows == 0 ? est->run.level : NAN;
    tti_course own;
    return tti_series_line(&est->window.blocks, &own) && rises(&own) &&
           !(later->mean <= level + HARM_SD * own.own_sd);
}

static unsigned
window_flags(const tt_estimator *est, const tt_est_window *out, const tti_course *of_run)
{
    const tti_window *window = &est->window;
    const tti_run *run = &est->run;
    const later_half later = look_at_later_half(est);
    unsigned flags = 0;
    const uint32_t received = window->kept + window->invalid;
    if (out->kept < 8)
        flags |= TT_EST_TIME_ONLY;
    if (isnan(out->slope))
        flags |= TT_EST_FALLBACK;
    if (later.stays_high || window_rises(est, &later))
        flags |= TT_EST_RISING;
    if (run->windows > 0 && window->blocks_closed > 0 && rises(of_run)) // NAN does not
        flags |= TT_EST_RISING;
    if (window->invalid_burst || (window->invalid >= 3 && 5 * window->invalid > received))
        flags |= TT_EST_DIVERGING;
    if ((flags & TT_EST_RISING) && run->rising_windows > 0)
        flags |= TT_EST_DIVERGING;
    if (est->under_row >= 2)
        flags |= TT_EST_REACHED;
    return flags;
}

static double
window_noise(const tt_estimator *est)
{
    tti_detrend whole = est->window.detrend;
    double own[TTI_BLOCK_LOSSES];
    if (est->flushed < est->filled) {
        memcpy(own, est->own, sizeof own);
        (void)winsorise_own(est, own, est->filled);
        for (uint32_t i = est->flushed; i < est->filled; i++)
            tti_detrend_add(&whole, est->positions[i], own[i]);
    }
    const double examples = est->window.examples / est->window.kept;
    const double batches = examples > 0 && est->base_examples > 0 ? examples / est->base_examples
                                                                  : 1; // the job does not say
    return tti_detrend_sd(&whole) * sqrt(batches);
}

void
tt_estimator_window(const tt_estimator *est, tt_est_window *out)
{
    const tti_window *window = &est->window;
    double variance, n;
    tti_course of_run;
    tti_cycles_answer cycles;
    memset(out, 0, sizeof *out);
    tti_cycles_solve(&est->cycles, est->options.bulk_synchronous, &cycles);
    const uint32_t suspended = (uint32_t)TT_MIN(cycles.suspended, (uint64_t)window->kept);
    out->setting = est->run.setting;
    out->workers = est->run.workers;
    out->kept = window->kept - suspended;
    out->dropped = window->dropped + suspended;
    const uint32_t rounds = est->options.bulk_synchronous ? 1 : est->run.workers;
    const int timed = out->kept >= tt_est_time_window(rounds) &&
                      window->last_kept_s - window->first_kept_s >= TT_EST_TIME_SECONDS_MIN;
    out->seconds_per_iteration = timed ? cycles.seconds_per_iteration : NAN;
    out->time_cv = timed ? cycles.cv : NAN;
    out->time_log_se = timed ? cycles.log_se : NAN;
    out->loss = tti_recent_loss(est, &variance, &n);
    out->mean_loss = window->kept > 0 ? window->losses / window->kept : NAN;
    out->noise = window->kept >= 8 ? window_noise(est) : NAN;
    (void)tti_series_line(&est->run.blocks, &of_run);
    out->slope = of_run.slope;
    out->slope_se = of_run.se;
    out->duration_s = isfinite(window->start_s) ? est->last_time_s - window->start_s : 0;
    out->flags = window_flags(est, out, &of_run);
    out->staleness = window->stale > 0 ? window->staleness / window->stale : NAN;
}
