// The progress line: loss, rate, how far, how long still and how sure that is, the phase and the
// setting in force. What is said of the time left is recorded, for people to see what it was worth.
#include "training.h"
#include <math.h>

static void
format_seconds(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds))
        (void)snprintf(out, size, "unknown");
    else if (seconds < 60)
        (void)snprintf(out, size, "%.0f s", seconds);
    else
        (void)snprintf(out, size, "%.0f:%02.0f", floor(seconds / 60), fmod(seconds, 60));
}

tt_est_eta
tti_training_eta(const tti_training *tr)
{
    const double t = tti_training_iteration_s(tr);
    tt_est_eta eta = {.seconds_p10 = NAN, .seconds_median = NAN, .seconds_p90 = NAN};
    if (isfinite(t) && t > 0)
        tt_estimator_eta(tr->estimator, log(t), 0.05, 0, 0, &eta);
    return eta;
}

static void
record_eta(tti_training *tr)
{
    const tt_est_eta eta = tti_training_eta(tr);
    const tt_store_eta row = {.time_s = tr->last_push_s,
                              .iteration = (int64_t)tr->iterations,
                              .seconds_p10 = eta.seconds_p10,
                              .seconds_median = eta.seconds_median,
                              .seconds_p90 = eta.seconds_p90,
                              .flags = eta.flags};
    tt_error err = {0};
    tr->next_eta_iteration = tr->iterations + TT_MAX(tr->iterations / 32, UINT64_C(32));
    if (tr->store != NULL && tt_store_put_eta(tr->store, &row, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

static void
format_eta(const tti_training *tr, char *out, size_t size)
{
    const tt_est_eta eta = tti_training_eta(tr);
    char median[24], low[24], high[24];
    double left = isfinite(tr->job->spec.stop_time) ? tr->job->spec.stop_time - tti_training_now(tr)
                                                    : INFINITY;
    format_seconds(TT_MIN(eta.seconds_median, left), median, sizeof median);
    format_seconds(TT_MIN(eta.seconds_p10, left), low, sizeof low);
    format_seconds(TT_MIN(eta.seconds_p90, left), high, sizeof high);
    if ((eta.flags & TT_EST_UNREACHABLE) != 0)
        (void)snprintf(out, size, "ETA: the target looks out of reach");
    else if ((eta.flags & TT_EST_PLATEAU) != 0)
        (void)snprintf(out, size, "ETA: no progress to be seen");
    else if (!isfinite(eta.seconds_median) && !isfinite(left))
        (void)snprintf(out, size, "ETA not known yet");
    else
        (void)snprintf(out, size, "ETA %s (%s .. %s)", median, low, high);
}

static void
format_phase(const tti_training *tr, char *out, size_t size)
{
    if (!tr->tuned || tr->tuner == NULL) {
        (void)snprintf(out, size, "not tuning");
        return;
    }
    tt_tuner_summary summary;
    tt_tuner_summarize(tr->tuner, &summary);
    if (summary.phase == TT_TUNER_START)
        (void)snprintf(out, size, "exploring %u/%u", summary.start_done, summary.start_planned);
    else
        (void)snprintf(out, size, "%s, %u settings tried",
                       summary.phase == TT_TUNER_EXPLORE ? "exploring" : "settled",
                       summary.settings_tried);
}

static double
share_done(const tti_training *tr)
{
    double by_epochs = tti_training_epochs(tr) / tr->job->spec.stop_epochs;
    double by_time =
        isfinite(tr->job->spec.stop_time) ? tti_training_now(tr) / tr->job->spec.stop_time : 0;
    double by_loss = isfinite(tr->job->spec.stop_loss) ? tt_estimator_stage(tr->estimator) : 0;
    double share = fmax(by_epochs, fmax(by_time, by_loss));
    return fmin(fmax(share, 0), 1);
}

// "  val 0.3412 (best 0.3398)" once there is a validation loss.
static void
format_validation(const tti_training *tr, char *out, size_t size)
{
    out[0] = '\0';
    if (tr->early.evaluations > 0)
        (void)snprintf(out, size, "  val %.4f (best %.4f)", tr->validation.loss,
                       tr->early.best_loss);
}

void
tti_training_progress(tti_training *tr)
{
    double now = tti_training_now(tr);
    if (tr->iterations >= tr->next_eta_iteration)
        record_eta(tr);
    if (!tr->options->progress || now < tr->next_line_s)
        return;
    tr->next_line_s = now + 0.25;
    char eta[96], phase[64], bar[11], validation[64];
    format_validation(tr, validation, sizeof validation);
    format_eta(tr, eta, sizeof eta);
    format_phase(tr, phase, sizeof phase);
    int filled = (int)(10 * share_done(tr));
    for (int i = 0; i < 10; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[10] = '\0';
    double rate =
        (double)tti_runtime_iterations(tr->rt) * (double)tr->job->spec.batch_size / fmax(now, 1e-3);
    (void)fprintf(stderr, "\r\033[Kloss %.4f%s  %.0f ex/s  epoch %.1f  [%s]  %s  %s: %.60s",
                  tr->last_loss, validation, rate, tti_training_epochs(tr), bar, eta, phase,
                  tr->setting_text);
    (void)fflush(stderr);
    tr->line_shown = 1;
}

void
tti_training_progress_clear(tti_training *tr)
{
    if (tr->line_shown)
        (void)fprintf(stderr, "\r\033[K");
    tr->line_shown = 0;
}
