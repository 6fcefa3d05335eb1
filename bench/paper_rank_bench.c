// What the estimators say of windows that all begin at the same model: for bench/run paper, whose
// paper_rank.py writes the input and ranks the answers. Standard input, words between blanks:
//
//   target T stretch S step A lossy MASK
//   history N WORKERS FEATURES f... N lines "generation worker examples loss time_s cycle_s
//   staleness curvature" window ID WORKERS MERGED LOSS_BEFORE FIT N FEATURES f... N such lines (any
//   number of windows)
//
// MASK: of the features that only lose something (tt_estimator_lossy). The default estimator sees
// the history and then all windows, in their order, each as one of its own. For each window one
// line on standard output: ID, seconds per iteration, log of the rate relative to the pooled one,
// its gradients' lag over the lag that the loss bears under a step of A as it bends in calm
// windows, and over that as it bends in this one, its loss at the end and its mean loss over those
// of calm windows, and the paper's iterations left with kappa 1, 2 and 10, from the first FIT
// losses of the window: its answer is of the order of their number, which must therefore be the
// same for all.
// Times are stretched by S before the estimator sees them: it has no use for less than 50 ms of a
// window, as on a real clock, while a virtual one is exact.
//
// Calm windows are the quarter whose gradients lag least; their medians count. What the loss bears
// as it bends at the end of a window says an estimator that has seen the history and this window
// alone. Where gradients lag by about as much as is borne, training follows the brink: the loss
// bends no more than is just borne, however far beyond that it is (Cohen et al., Gradient Descent
// on Neural Networks Typically Occurs at the Edge of Stability, 2021), and does not tell.
#include "tt/estimator.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 100000, WINDOWS_MAX = 10000 };

typedef struct asked {
    double target, stretch, step;
    unsigned lossy;
} asked;

typedef struct window {
    char id[64];
    double features[TT_EST_FEATURES_MAX], seconds, lag, paper[3];
    double borne, loss, mean_loss; // lag borne and loss at its end
    uint32_t feature_count, workers;
} window;

static tt_est_sample samples[SAMPLES_MAX]; // of the window that is being read
static double losses[SAMPLES_MAX];
static window windows[WINDOWS_MAX];
static uint64_t sequence; // of all samples read

static void
die(const char *what)
{
    (void)fprintf(stderr, "paper_rank_bench: %s\n", what);
    exit(2);
}

static double
number(void)
{
    char word[64], *end;
    if (scanf("%63s", word) != 1)
        die("the input ends in the middle");
    double value = strtod(word, &end);
    if (end == word || *end != '\0')
        die("there is a word where a number should be");
    return value;
}

static uint32_t
count_up_to(uint32_t most)
{
    double value = number();
    if (!(value >= 0 && value <= most))
        die("a count is out of range");
    return (uint32_t)value;
}

static uint32_t
read_features(double *features)
{
    uint32_t count = count_up_to(TT_EST_FEATURES_MAX);
    for (uint32_t i = 0; i < count; i++)
        features[i] = number();
    return count;
}

static void
read_samples(uint32_t count, double stretch, uint64_t generation, double begin_s)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)number(); // its generation: all are of the window's
        uint32_t worker = count_up_to(UINT32_MAX - 1), examples = count_up_to(UINT32_MAX - 1);
        tt_est_sample *sample = &samples[i];
        *sample = (tt_est_sample){.generation = generation,
                                  .sequence = sequence++,
                                  .worker = worker,
                                  .examples = examples,
                                  .loss = number()};
        sample->time_s = begin_s + stretch * number();
        sample->cycle_s = stretch * number();
        sample->staleness = number();
        sample->curvature = number();
        sample->level = number();
        losses[i] = sample->loss;
    }
}

// The samples that were read last, as a window that is then to be ended.
static void
feed(tt_estimator *est, uint32_t setting, uint32_t count, const window *w)
{
    tt_estimator_begin(est, setting, setting + 1, w->workers, w->features, w->feature_count);
    for (uint32_t i = 0; i < count; i++)
        tt_estimator_add(est, &samples[i]);
}

static tt_estimator *
open_estimator(double target)
{
    const tt_est_options options = {.target_loss = target};
    tt_estimator *est;
    tt_error err = {0};
    if (tt_estimator_open(&options, &est, &err) != TT_OK)
        die(err.what);
    return est;
}

static double
paper_iterations(
    const tt_estimator *est, uint32_t count, double loss_before, double target, double kappa)
{
    tt_est_remaining left;
    tt_est_paper fit;
    tt_estimator_remaining(est, &left);
    double pooled = isfinite(left.iterations_median) ? left.iterations_median : 1e9;
    tt_est_paper_fit(losses, count, loss_before, target, kappa, 0, pooled, &fit);
    return fit.iterations + count; // from the window's beginning
}

// What the loss bears at the end of the window that was read last, to one who has seen it after
// what `before` holds.
static double
lag_borne(const asked *of, const tt_archive *before, uint32_t count, const window *w)
{
    tt_estimator *est = open_estimator(of->target);
    tt_archive in;
    tt_archive_read(&in, before->bytes, before->count);
    if (tt_estimator_load(est, &in) != TT_OK)
        die("what the estimator has saved cannot be read again");
    feed(est, 1, count, w);
    const double borne = tt_estimator_lag_borne(est, of->step);
    tt_estimator_close(est);
    return borne;
}

static void
read_window(
    tt_estimator *est, const asked *of, const tt_archive *before, uint32_t index, double *time_s)
{
    static const double kappas[] = {1, 2, 10};
    window *w = &windows[index];
    tt_est_window estimate;
    if (scanf("%63s", w->id) != 1)
        die("a window has no name");
    w->workers = count_up_to(100000);
    uint32_t merged = count_up_to(100000);
    double loss_before = number();
    uint32_t fit = count_up_to(SAMPLES_MAX), count = count_up_to(SAMPLES_MAX);
    w->feature_count = read_features(w->features);
    read_samples(count, of->stretch, index + 2, *time_s);
    feed(est, index + 1, count, w);
    for (size_t k = 0; k < TT_COUNT_OF(kappas); k++)
        w->paper[k] = paper_iterations(est, TT_MIN(fit, count), loss_before, of->target, kappas[k]);
    tt_estimator_end(est, 1, &estimate);
    *time_s = count > 0 ? samples[count - 1].time_s : *time_s;
    w->seconds = estimate.seconds_per_iteration / of->stretch;
    w->lag = estimate.staleness + (merged - 1.0) / 2;
    w->borne = lag_borne(of, before, count, w);
    w->loss = estimate.loss;
    w->mean_loss = estimate.mean_loss;
}

static int
by_lag(const void *a, const void *b)
{
    const window *x = a, *y = b;
    return (x->lag > y->lag) - (x->lag < y->lag);
}

static int
ascend(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Median of what the first `calm` windows have at `offset`.
static double
calm_median(const window *sorted, uint32_t calm, size_t offset)
{
    static double values[WINDOWS_MAX];
    for (uint32_t i = 0; i < calm; i++)
        memcpy(&values[i], (const char *)&sorted[i] + offset, sizeof *values);
    qsort(values, calm, sizeof *values, ascend);
    return (values[(calm - 1) / 2] + values[calm / 2]) / 2;
}

static void
answer(const tt_estimator *est, uint32_t count)
{
    static window sorted[WINDOWS_MAX];
    const uint32_t calm = (count + 3) / 4;
    if (count == 0)
        return;
    memcpy(sorted, windows, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_lag);
    const double borne = calm_median(sorted, calm, offsetof(window, borne));
    const double loss = calm_median(sorted, calm, offsetof(window, loss));
    const double mean_loss = calm_median(sorted, calm, offsetof(window, mean_loss));
    for (uint32_t i = 0; i < count; i++) {
        const window *w = &windows[i];
        double mean, sd;
        tt_estimator_log_rate(est, i + 1, w->features, w->feature_count, &mean, &sd);
        (void)printf("%s %.9g %.9g %.9g %.9g %.9g %.9g %.9g %.9g %.9g\n", w->id, w->seconds, mean,
                     w->lag / borne, w->lag / w->borne, w->loss / loss, w->mean_loss / mean_loss,
                     w->paper[0], w->paper[1], w->paper[2]);
    }
}

// In windows of the usual size: 3 pushes a worker.
static void
read_history(tt_estimator *est, double stretch)
{
    char word[64];
    window reference = {0};
    if (scanf("%63s", word) != 1 || strcmp(word, "history") != 0)
        die("the history is missing");
    uint32_t count = count_up_to(UINT32_MAX - 1);
    reference.workers = count_up_to(100000);
    reference.feature_count = read_features(reference.features);
    const uint32_t size = TT_MAX(tt_est_full_window(reference.workers), 1u);
    while (count > 0) {
        const uint32_t piece = TT_MIN(TT_MIN(size, count), (uint32_t)SAMPLES_MAX);
        tt_est_window ignored;
        read_samples(piece, stretch, 1, 0);
        feed(est, 0, piece, &reference);
        tt_estimator_end(est, 1, &ignored);
        count -= piece;
    }
}

int
main(void)
{
    char word[64];
    asked of;
    double time_s = 0;
    uint32_t count = 0;
    tt_archive before = {0};
    if (scanf("target %lf stretch %lf step %lf lossy %u", &of.target, &of.stretch, &of.step,
              &of.lossy) != 4 ||
        !(of.stretch > 0))
        die("the input begins with: target T stretch S step A lossy MASK");
    tt_estimator *est = open_estimator(of.target);
    tt_estimator_lossy(est, of.lossy);
    read_history(est, of.stretch);
    tt_estimator_save(est, &before);
    while (scanf("%63s", word) == 1) {
        if (strcmp(word, "window") != 0 || count == WINDOWS_MAX)
            die("there is something else where a window should begin");
        read_window(est, &of, &before, count++, &time_s);
    }
    answer(est, count);
    tt_archive_fini(&before);
    tt_estimator_close(est);
    return 0;
}
