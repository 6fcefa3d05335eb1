// What is to be expected of a setting: time left against the best known one, what a window under it
// may cost, whether the loss will bear it.
#include "tuner_internal.h"
#include <math.h>

// Reach of a diverged setting over those alike in what can change statistics, in unit coordinates.
static const double DIVERGENCE_REACH = 0.15;
// Rows that the belief about the spread of settings is worth.
static const double SCALE_ROWS = 4;

// Probability that the loss does not rise under a setting: low near settings under which it did.
static double
soundness(const tt_tuner *t, const tti_tried *x)
{
    double sound = 1;
    for (uint32_t i = 0; i < t->tried_count; i++) {
        const tti_tried *bad = &t->tried[i];
        double apart = 0;
        if (!(bad->not_borne > 0 && tti_tuner_is_out(t, bad)) || bad->is_alone_to_blame)
            continue;
        for (uint32_t k = 0; k < x->feature_count; k++) {
            double difference = (x->feature[k] - bad->feature[k]) / DIVERGENCE_REACH;
            apart += difference * difference;
        }
        sound *= 1 - exp(-0.5 * apart);
    }
    return fmax(sound, 1e-6);
}

tti_statistics
tti_tuner_statistics(const tt_tuner *t, const tti_frame *f, const tti_tried *x, uint32_t id)
{
    return (tti_statistics){tti_tuner_log_rate(t, x, id, NULL) - f->best_rate, soundness(t, x)};
}

// What is not known of the rate does not count as hope: a window is too short to tell, so that the
// same settings would be tried again and again.
tti_outlook
tti_tuner_outlook_from(const tti_frame *f, double t_mean, double t_var, const tti_statistics *s)
{
    return (tti_outlook){.mean = t_mean - s->log_rate,
                         .sd = sqrt(t_var),
                         .told = tt_ei_told(t_var, f->noise_var, NULL),
                         .sound = s->sound,
                         .t_mean = t_mean};
}

// 97.5 % quantile of what a Gaussian process says whose scale is itself a belief: of Student's t,
// by the first terms of its Cornish-Fisher expansion. 1.96 with many rows, 2.5 with one.
static double
caution(const tt_tuner *t)
{
    double freedom = SCALE_ROWS + tt_gp_rows(t->gp);
    return 1.96 + 2.37 / freedom + 2.82 / (freedom * freedom);
}

double
tti_tuner_worst_cost(const tt_tuner *t,
                     const tti_frame *f,
                     const tti_tried *x,
                     const tti_outlook *o)
{
    double worst = f->best_t * exp(o->t_mean + caution(t) * o->sd);
    // What counts is what is lost against the start setting; when it is broken off, against the
    // best.
    double loss = tti_tuner_window_loss(t, x, f->best_t, worst / f->best_t);
    loss -= (f->start_t - f->best_t) * loss / fmax(worst - f->best_t, 1e-12);
    return tti_tuner_switch_s(t, f->from, &x->setting) +
           tti_tuner_switch_s(t, f->best, &x->setting) + fmax(loss, 0);
}

tti_outlook
tti_tuner_outlook(const tt_tuner *t, const tti_frame *f, const tti_tried *x, uint32_t id)
{
    double mean, var;
    tti_statistics statistics = tti_tuner_statistics(t, f, x, id);
    tt_gp_slice_eval(f->slice, x->x, 1, &mean, &var);
    mean += x->trend - t->tried[f->best].trend;
    return tti_tuner_outlook_from(f, mean, var, &statistics);
}

// E[window lost against best], over 15 equally likely values of log t.
double
tti_tuner_expected_loss(const tt_tuner *t,
                        const tti_frame *f,
                        const tti_tried *x,
                        const tti_outlook *o)
{
    static const double z[15] = {-1.834, -1.282, -0.967, -0.728, -0.524, -0.341, -0.168, 0,
                                 0.168,  0.341,  0.524,  0.728,  0.967,  1.282,  1.834};
    double sum = 0;
    for (int i = 0; i < 15; i++)
        sum += tti_tuner_window_loss(t, x, f->best_t, exp(o->t_mean + z[i] * o->sd)) / 15;
    return sum;
}
