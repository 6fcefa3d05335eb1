// What earlier runs of like jobs measured, as rows of the process.
//
// A run's rows are put onto this job's scale by the settings that both were in:
//
//     offset = sum w_i (log t_i here - log t_i there) / sum w_i,  w_i = 1 / (variances of both)
//
// and enter with var = var_i + unlike_i f^2, where f >= 1 says how badly predictions made with them
// failed so far: f = (2 + sum (error / s.d.)^2) / (2 + n) over n trials. The square, because the
// errors of a wrong memory go together: many of its rows must not outvote a few of this job's. At
// f = 4 memory has failed, for good: its rows, which cannot be taken out, then say nothing (the
// level of the start setting with a variance of 4). So it has when the job's own start setting
// clearly beats all it led to: once its predictions are doubted they are too wide to be wrong.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

enum { TRUST_ROWS = 2, FAIL_FACTOR = 4, NOTHING_VAR = 4 };
// A single surprise counts at most so much, that memory may be believed again.
static const double SURPRISE_MOST = 100;
// Log of how much faster the own start setting is when it clearly is, and in s.d.
static const double BEATEN_LEAST = 0.25, BEATEN_SD = 3;
// A row is entered anew when it moves by so much; below, a new factor is not worth it.
static const double MOVE_LEAST = 0.005, VAR_LEAST = 0.2;

tt_status
tti_tuner_prior_open(tt_tuner *t, tt_error *err)
{
    const tt_tuner_options *o = &t->options;
    if (o->prior_count == 0 || o->prior == NULL || t->search.dims == 0)
        return TT_OK;
    uint32_t wanted = TT_MIN(o->prior_count, (uint32_t)TT_TUNER_PRIOR_ROWS);
    t->prior = tt_mem_zalloc(wanted, sizeof *t->prior);
    if (t->prior == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for earlier measurements");
    for (uint32_t i = 0; i < wanted; i++) {
        const tt_tuner_prior *told = &o->prior[i];
        int usable = isfinite(told->log_s) && told->var >= 0 && told->unlike_var >= 0 &&
                     isfinite(told->var + told->unlike_var) && told->run < TT_TUNER_PRIOR_RUNS &&
                     tt_space_valid(t->space, &told->setting);
        if (!usable)
            continue;
        tti_prior *p = &t->prior[t->prior_count++];
        *p = (tti_prior){.told = *told, .row = -1};
        tti_tried described;
        tti_tuner_describe(t, &told->setting, &described);
        memcpy(p->x, described.x, sizeof p->x);
        p->trend = described.trend;
    }
    return TT_OK;
}

static double
inflation(const tt_tuner *t)
{
    double factor = fmax((TRUST_ROWS + t->surprise) / (TRUST_ROWS + t->judged), 1);
    return factor * factor;
}

// Seconds per iteration here as measured, not as bounded or modelled.
static const tti_tried *
measured_here(const tt_tuner *t, const tt_setting *setting)
{
    for (uint32_t i = 0; i < t->tried_count; i++)
        if (t->tried[i].weight_all > 0 && tt_setting_equal(&t->tried[i].setting, setting))
            return &t->tried[i];
    return NULL;
}

// How much slower than in each run everything is here, in log; NAN: no setting in common yet.
static void
find_offsets(const tt_tuner *t, double offset[TT_TUNER_PRIOR_RUNS])
{
    double sum[TT_TUNER_PRIOR_RUNS] = {0}, weight[TT_TUNER_PRIOR_RUNS] = {0};
    for (uint32_t i = 0; i < t->prior_count; i++) {
        const tt_tuner_prior *told = &t->prior[i].told;
        const tti_tried *here = measured_here(t, &told->setting);
        if (here == NULL)
            continue;
        double w = 1 / (told->var + told->unlike_var + here->var_all + 1e-4);
        sum[told->run] += w * (here->log_t_all - told->log_s);
        weight[told->run] += w;
    }
    for (int r = 0; r < TT_TUNER_PRIOR_RUNS; r++)
        offset[r] = weight[r] > 0 ? sum[r] / weight[r] : NAN;
}

tt_status
tti_tuner_prior_enter(tt_tuner *t, tt_error *err)
{
    double offset[TT_TUNER_PRIOR_RUNS], inflate = inflation(t);
    double stage = tt_estimator_stage(t->estimator);
    if (t->prior_count == 0)
        return TT_OK;
    find_offsets(t, offset);
    for (uint32_t i = 0; i < t->prior_count; i++) {
        tti_prior *p = &t->prior[i];
        double y = p->told.log_s + offset[p->told.run] - p->trend;
        double var = p->told.var + p->told.unlike_var * inflate;
        if (t->memory_fails) {
            const tti_tried *start = &t->tried[tti_tuner_yardstick(t)];
            y = start->log_t_all - start->trend;
            var = NOTHING_VAR;
        }
        if (isnan(y))
            continue;
        int new =
            p->row<0, moved = fabs(y - p->y)> MOVE_LEAST || fabs(var - p->var) > VAR_LEAST * p->var;
        if (!new && !moved)
            continue;
        p->stage = new ? isfinite(stage) ? stage : 0 : p->stage;
        tt_gp_row row = {p->stage, y, var, 1};
        if (new)
            TT_TRY(tt_gp_add(t->gp, p->x, &row, err));
        else
            TT_TRY(tt_gp_replace(t->gp, (uint32_t)p->row, &row, err));
        p->row = new ? (int)tt_gp_rows(t->gp) - 1 : p->row;
        p->y = y;
        p->var = var;
    }
    return TT_OK;
}

void
tti_tuner_prior_shift(tt_tuner *t, double shift, double extra_var)
{
    for (uint32_t i = 0; i < t->prior_count; i++) {
        tti_prior *p = &t->prior[i];
        p->told.unlike_var += extra_var;
        p->y += shift;
        p->var += extra_var;
    }
}

static void
memory_failed(tt_tuner *t)
{
    t->memory_fails = 1;
    t->fit_rows = 0; // hyperparameters that a wrong memory taught must go as well
}

void
tti_tuner_prior_judge_own(tt_tuner *t, double log_ratio, double sd)
{
    if (t->prior_count > 0 && !t->memory_fails && -log_ratio > fmax(BEATEN_SD * sd, BEATEN_LEAST))
        memory_failed(t);
}

void
tti_tuner_prior_judge(tt_tuner *t, double error, double sd)
{
    if (t->prior_count == 0 || !isfinite(error) || !(sd > 0))
        return;
    double share = error / sd;
    t->surprise += fmin(share * share, SURPRISE_MOST);
    t->judged++;
    if (!t->memory_fails && inflation(t) >= FAIL_FACTOR * FAIL_FACTOR)
        memory_failed(t);
}
