// How much of what trials promise is believed: as much as those before them have kept.
//
// The process takes settings that were not tried for as various as those that were, to both sides;
// but the longer a search has lasted, the less is left to be found, and what it goes on promising
// it does not keep. A trial's promise and what it brought are both shares of the time left,
//
//     promised = EI / left,   kept = max(0, 1 - exp(log t(X) - log t(B)))
//
// log t less each setting's log rate of progress, as the process sees it after the trial; B is the
// best known setting before it. Each weighs the less the more trials came after it, and so does the
// belief before the first one, that N trials like the one at hand have kept what they promised; K
// more are always taken to have done so. A candidate that promises p is believed by
//
//     credit = (n p + sum of kept) / (n p + sum of promised), at most 1,   n = K + N aged
#include "tuner_internal.h"
#include <math.h>

// Of a trial's weight is left at each one after it; N; K.
static const double AGING = 0.9, KEPT_AT_FIRST = 20, KEPT_ALWAYS = 2;

void
tti_tuner_credit_open(tt_tuner *t)
{
    t->credit = (tti_credit){.before = KEPT_AT_FIRST};
}

void
tti_tuner_credit_promise(tt_tuner *t, uint32_t trial, uint32_t best, double share)
{
    t->credit.open = 1;
    t->credit.trial = trial;
    t->credit.best = best;
    t->credit.share = share;
}

static double
log_time(const tt_tuner *t, uint32_t id)
{
    double mean, sd;
    tti_tuner_log_t(t, &t->tried[id], &mean, &sd);
    return mean - tti_tuner_log_rate(t, &t->tried[id], id, NULL);
}

void
tti_tuner_credit_settle(tt_tuner *t)
{
    tti_credit *c = &t->credit;
    const int judged = c->open && t->tried[c->trial].row >= 0 &&
                       !tti_tuner_is_out(t, &t->tried[c->best]); // else nothing was measured, or
    c->open = 0;                                                 // there is nothing to beat
    if (!judged)
        return;
    const int bad = tti_tuner_is_out(t, &t->tried[c->trial]);
    const double kept = bad ? 0 : fmax(-expm1(log_time(t, c->trial) - log_time(t, c->best)), 0);
    c->before *= AGING;
    c->promised = AGING * c->promised + c->share;
    c->kept = AGING * c->kept + kept;
}

double
tti_tuner_credit(const tt_tuner *t, double share)
{
    const double before = (KEPT_ALWAYS + t->credit.before) * share;
    if (!tti_tuner_follows(t, TT_TUNER_RULE_CREDIT) || !(before > 0))
        return 1;
    return fmin((before + t->credit.kept) / (before + t->credit.promised), 1);
}
