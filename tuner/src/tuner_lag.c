// How far settings may go in what the loss has to bear, where it is known beforehand.
//
// Plain SGD is unstable from a lag on that depends on its step and on how much the loss bends
// (tt_estimator_lag_borne): by how many iterations gradients lag behind the parameters they are
// applied to. Servers count the staleness of each push, and a push of m merged iterations adds to
// it as if its own came one after the other:
//
//     lag(X) = staleness(X) + (m(X) - 1) / 2
//
// Before a setting was in force its lag is what it should be in a cycle of pulling, computing m
// gradients and pushing, of which the last measured setting has told how they share the time:
//
//     lag(X) = workers(X) m(X) share(m(X)),   share(m) = (u / 2 + m) / (u + m)
//
// u is the time of pull and push in gradients; half of each lies between the reading of parameters
// and the application of their gradient.
//
// Where the curvature is known, this takes the place of raising delays by steps
// (tuner_stability.c); what the loss did not bear in fact is left out all the same.
#include "tuner_internal.h"
#include <math.h>

// Of the lag that can be borne: that may be expected of a setting to be tried; that may be measured
// under one to be used; at which the setting in force is left.
static const double TRIED_SHARE = 0.85, USED_SHARE = 0.95, LEFT_SHARE = 1;
// New against old measurements of a setting.
static const double NEWER = 0.5;
// No less of a cycle than this lies between pull and push.
static const double LEAST_SHARE = 0.55;
// A loss that bears a lag so many times as long as that of the start setting has not begun to bend.
static const double UNBENT = 100;

void
tti_tuner_note_lag(tt_tuner *t, const tt_est_window *w)
{
    tti_tried *s = &t->tried[t->current];
    if (!isfinite(w->staleness) || t->options.bulk_synchronous)
        return;
    const double lag = w->staleness + (s->merged - 1) / 2.0;
    s->lag = isfinite(s->lag) ? s->lag + NEWER * (lag - s->lag) : lag;
}

// A worker that computes for the share c of its cycle has pulled and pushed for the rest, half of
// which lies between the reading of parameters and the application: lag / delay = (1 + c) / 2.
// Merging is only hoped for where it is known how far it may go: a hinge loss bends for the first
// time when examples reach the margin, and longer delays explode there.
void
tti_tuner_note_busy(tt_tuner *t)
{
    const tti_tried *s = &t->tried[t->current];
    if (isfinite(t->busy) || t->gp == NULL || tt_gp_rows(t->gp) > 0 || t->current != t->own_id ||
        !isfinite(s->lag) || !(tti_tuner_lag_borne(t) < UNBENT * s->lag))
        return;
    t->busy = fmin(fmax(2 * s->lag / s->delay - 1, 0), 1);
    tti_tuner_trend_changed(t);
}

double
tti_tuner_lag_borne(const tt_tuner *t)
{
    if (!tti_tuner_follows(t, TT_TUNER_RULE_CURVATURE) || !(t->options.learning_rate > 0))
        return INFINITY;
    return tt_estimator_lag_borne(t->estimator, t->options.learning_rate * t->step);
}

double
tti_tuner_lag(const tt_tuner *t, const tti_tried *x)
{
    const tti_tried *known = &t->tried[t->current];
    double share = 1;
    if (isfinite(x->lag))
        return x->lag;
    if (isfinite(known->lag)) {
        share = fmin(fmax(known->lag / known->delay, LEAST_SHARE), 1);
        const double moving = known->merged * (1 - share) / (share - 0.5);
        share = (moving / 2 + x->merged) / (moving + x->merged);
    }
    return x->delay * share;
}

int
tti_tuner_is_stable(const tt_tuner *t, const tti_tried *x)
{
    const double share = isfinite(x->lag) ? USED_SHARE : TRIED_SHARE;
    return !(tti_tuner_lag(t, x) > t->lag_share * share * tti_tuner_lag_borne(t));
}

void
tti_tuner_lag_less(tt_tuner *t, double most)
{
    t->lag_share = fmin(t->lag_share, most / (USED_SHARE * tti_tuner_lag_borne(t)));
}

int
tti_tuner_lags_too_far(const tt_tuner *t)
{
    const tti_tried *current = &t->tried[t->current];
    return current->delay > t->own.delay &&
           tti_tuner_lag(t, current) > t->lag_share * LEFT_SHARE * tti_tuner_lag_borne(t);
}
