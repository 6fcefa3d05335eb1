// What the time left that a run told while it trained was worth. It is told under the setting in
// force, so that the trials of a tuner are part of what it could not know.
#include "explain.h"
#include <math.h>

enum { FIRST = 2, LAST = 9, HALF = 5 }; // tenths of the iterations

// The last that was said before; NULL: nothing.
static const tt_store_eta *
said_at(const tti_report *r, double iteration)
{
    const tt_store_eta *said = NULL;
    for (size_t i = 0; i < r->etas.count; i++) {
        const tt_store_eta *e = TTI_AT(r->etas, tt_store_eta, i);
        if ((double)e->iteration <= iteration && !isnan(e->seconds_median))
            said = e;
    }
    return said;
}

void
tti_explain_eta(tti_explanation *explanation)
{
    const tti_report *r = explanation->report;
    tti_eta_judgement *j = &explanation->eta;
    *j = (tti_eta_judgement){.half = NULL};
    if (!tti_is(r->run.status, "converged") || !(r->elapsed_s > 0))
        return;
    for (int tenth = FIRST; tenth <= LAST; tenth++) {
        const tt_store_eta *e = said_at(r, 0.1 * tenth * (double)r->iterations);
        if (e == NULL)
            continue;
        double left_s = r->elapsed_s - e->time_s;
        j->asked++;
        j->good += left_s <= 2 * e->seconds_median && e->seconds_median <= 2 * left_s;
        j->inside += e->seconds_p10 <= left_s && left_s <= e->seconds_p90;
        if (tenth != HALF)
            continue;
        j->half = e;
        j->half_left_s = left_s;
    }
}
