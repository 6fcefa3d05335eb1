// The gate: expected seconds saved against the seconds it costs to find out.
//
// B: the best known setting; cur: the one in force; X: a candidate; R(a, b): seconds a switch
// loses. Delta: log of (time left under X / time left under B), mean m; s: the s.d. of what a
// window can tell of it, the seconds an iteration, of the joint posterior; s~: that of the change
// of m by a window of noise v (tt_ei_told, as if B were known). Where s is small against the noise,
// nearly all that may be saved is beyond what a window tells, and looking for it would never end.
//
//     s~    = s^2 / sqrt(s^2 + v)       d = -m / s~
//     EI(X) = left_B (Phi(d) - exp(m + s~^2 / 2) Phi(d - s~))
//     C(X)  = R(cur, X) + Phi(m / s) R(X, B) + E(window lost) + fit - R(cur, B)
//
// Where cur = B these are the formulas of the tuner's page. After a failed trial the page compares
// with the setting in force; here both ways lie open, "back to B" and "straight on to X", and going
// on spares R(cur, B). A window under a setting that is clearly slower is broken off, and is priced
// as such.
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

enum { BATCH = 64, MEMO = 256, HISTORY_WINDOWS = 10 };
// A search while training is a small one: it takes processors from the workers, and a large one
// (1500, 100, 8) finds nothing better where windows are as noisy as they are (docs/rationale.md).
enum { CANDIDATES = 300, AROUND = 40, STARTS = 2 };
static const double GAIN_RETURN = 0.02, GAIN_REVERSE = 0.05, SHARE_TO_STAY_OPEN = 0.5;
static const double START_STALE_SHARE = 0.1;

// Statistics of the feature vectors seen in one search: few, asked for often, and dear.
typedef struct memo {
    int used;
    double feature[TT_EST_FEATURES_MAX];
    tti_statistics statistics;
} memo;

typedef struct sight {
    tt_tuner *t;
    const tti_frame *frame;
    double least_worst_s; // least worst case among the points looked at
    memo memo[MEMO];
    tti_tried batch[BATCH];         // to be scored together
    double x[BATCH * TT_KNOBS_MAX]; // their coordinates, BATCH x dims
    uint32_t place[BATCH];          // of each among the points that were asked for
} sight;

static const tti_statistics *
remembered(sight *s, const tti_tried *x)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < x->feature_count; i++) {
        uint64_t bits;
        memcpy(&bits, &x->feature[i], sizeof bits);
        hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    }
    memo *m = &s->memo[(hash >> 32) % MEMO];
    if (!m->used || memcmp(m->feature, x->feature, sizeof m->feature) != 0) {
        m->used = 1;
        memcpy(m->feature, x->feature, sizeof m->feature);
        m->statistics = tti_tuner_statistics(s->t, s->frame, x, TTI_TUNER_NOBODY);
    }
    return &m->statistics;
}

static double
score_one(sight *s, const tti_tried *point, double t_mean, double t_var)
{
    t_mean += point->trend - s->t->tried[s->frame->best].trend;
    tti_outlook o = tti_tuner_outlook_from(s->frame, t_mean, t_var, remembered(s, point));
    double worst = tti_tuner_worst_cost(s->t, s->frame, point, &o);
    s->least_worst_s = fmin(s->least_worst_s, worst);
    return worst <= s->frame->trial_s ? tt_ei_log_saved(o.mean, o.told, NULL, NULL) + log(o.sound)
                                      : -INFINITY;
}

// Scores the first `count` of s->batch, which belong at out[s->place].
static void
score_batch(sight *s, uint32_t count, double *out)
{
    double mean[BATCH], var[BATCH];
    const uint32_t dims = s->t->search.dims;
    for (uint32_t i = 0; i < count; i++)
        memcpy(s->x + (size_t)i * dims, s->batch[i].x, dims * sizeof *s->x);
    tt_gp_slice_eval(s->frame->slice, s->x, count, mean, var);
    for (uint32_t i = 0; i < count; i++)
        out[s->place[i]] = score_one(s, &s->batch[i], mean[i], var[i]);
}

// What must not be tried is told apart first: it costs much less than to predict it.
static void
score(void *self, const double *x, uint32_t count, double *out)
{
    sight *s = self;
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++) {
        tti_tuner_describe_at(s->t, x + (size_t)i * s->t->search.dims, &s->batch[allowed]);
        out[i] = -INFINITY;
        if (!tti_tuner_may_try(s->t, &s->batch[allowed]))
            continue;
        s->place[allowed++] = i;
        if (allowed == BATCH) {
            score_batch(s, allowed, out);
            allowed = 0;
        }
    }
    if (allowed > 0)
        score_batch(s, allowed, out);
}

// For the reals. The rate's small slope is left out: only knobs that change statistics have one.
static double
score_gradient(void *self, const double *x, double *gradient)
{
    sight *s = self;
    double mean, var, dm[TT_KNOBS_MAX], dv[TT_KNOBS_MAX], by_mean, by_told, by_var, value;
    tti_tried point;
    tt_gp_slice_gradient(s->frame->slice, x, &mean, &var, dm, dv);
    tti_tuner_describe_at(s->t, x, &point);
    mean += point.trend - s->t->tried[s->frame->best].trend;
    score(self, x, 1, &value);
    const double told = tt_ei_told(var, s->frame->noise_var, &by_var);
    (void)tt_ei_log_saved(mean, told, &by_mean, &by_told);
    for (uint32_t d = 0; d < s->t->search.dims; d++)
        gradient[d] = by_mean * dm[d] + by_told * by_var * dv[d];
    return value;
}

// Fills ei_s and cost_s of a candidate, returns what it is worth on balance.
static double
weigh(const tt_tuner *t, const tti_frame *f, const tti_tried *x, tti_choice *c)
{
    const tti_outlook *o = &c->outlook;
    double worse = o->sd > 0 ? tt_ei_phi(o->mean / o->sd) : o->mean > 0;
    c->promise = exp(tt_ei_log_saved(o->mean, o->told, NULL, NULL)) * o->sound;
    c->ei_s = f->left_s * c->promise * tti_tuner_credit(t, c->promise);
    c->cost_s = tti_tuner_switch_s(t, f->from, &x->setting) +
                worse * tti_tuner_switch_s(t, f->best, &x->setting) +
                tti_tuner_expected_loss(t, f, x, o) +
                tti_tuner_fit_seconds(t) / t->options.processors;
    if (!tti_tuner_follows(t, TT_TUNER_RULE_COST))
        return c->ei_s;
    return c->ei_s - c->cost_s + tti_tuner_switch_s(t, f->from, &t->tried[f->best].setting);
}

typedef struct contest {
    tti_choice best; // highest value among the allowed
    double value, worst;
    tti_choice forbidden; // highest among those the guard forbids
    double forbidden_value, forbidden_cost;
    int all_forbidden; // the guard forbids every point that was looked at
} contest;

static void
enter(const tt_tuner *t, const tti_frame *f, const tti_tried *x, uint32_t id, contest *c)
{
    tti_choice choice = {
        .id = id, .setting = x->setting, .outlook = tti_tuner_outlook(t, f, x, id)};
    choice.decision = id == TTI_TUNER_NOBODY || t->tried[id].row < 0 ? TT_TUNER_TRY : TT_TUNER_MOVE;
    if (!tti_tuner_may_try(t, x))
        return;
    double value = weigh(t, f, x, &choice), worst = tti_tuner_worst_cost(t, f, x, &choice.outlook);
    if (worst <= f->trial_s) {
        if (value > c->value) {
            c->best = choice;
            c->value = value;
            c->worst = worst;
        }
    } else if (value > c->forbidden_value) {
        c->forbidden = choice;
        c->forbidden_value = value;
        c->forbidden_cost = worst;
    }
}

// The next points of the start phase that the gate lets pass: the first one.
static void
enter_planned(tt_tuner *t, const tti_frame *f, contest *c)
{
    for (uint32_t i = t->plan_done; i < t->plan_count && c->value <= 0; i++) {
        tti_tried x;
        tti_tuner_describe(t, &t->plan[i], &x);
        enter(t, f, &x, TTI_TUNER_NOBODY, c);
        if (c->value > 0) {
            tt_setting chosen = t->plan[i];
            memmove(&t->plan[t->plan_done + 1], &t->plan[t->plan_done],
                    (i - t->plan_done) * sizeof chosen);
            t->plan[t->plan_done++] = chosen;
        }
    }
}

static tt_status
enter_search(tt_tuner *t, const tti_frame *f, contest *c, tt_error *err)
{
    sight self = {.t = t, .frame = f, .least_worst_s = INFINITY};
    tt_search_target target = {&self, score, score_gradient};
    tt_setting anchors[5];
    uint32_t anchor_count = 0;
    // The best known setting, and the latest ones to have been it, in order of their rows' values.
    for (double above = -INFINITY; anchor_count < TT_COUNT_OF(anchors);) {
        double least = INFINITY;
        uint32_t at = TTI_TUNER_NOBODY;
        for (uint32_t i = 0; i < t->tried_count; i++) {
            const tti_tried *s = &t->tried[i];
            double value = s->log_t - tti_tuner_log_rate(t, s, i, NULL);
            if (s->row >= 0 && !tti_tuner_is_out(t, s) && value > above && value < least) {
                least = value;
                at = i;
            }
        }
        if (at == TTI_TUNER_NOBODY)
            break;
        anchors[anchor_count++] = t->tried[at].setting;
        above = least;
    }
    tt_search_options options = {.seed = t->options.seed * 0x9E3779B97F4A7C15u + t->proposals,
                                 .anchors = anchors,
                                 .anchor_count = anchor_count,
                                 .taken = t->taken,
                                 .taken_count = (uint32_t)t->tried_count,
                                 .from = &t->tried[f->from].setting,
                                 .candidates = CANDIDATES,
                                 .around = AROUND,
                                 .starts = STARTS};
    tt_search_result found;
    TT_TRY(tt_search_maximize(&t->search, &target, &options, &found, err));
    int any = 0;
    for (int k = 0; k < TT_SEARCH_CLASSES; k++) {
        tti_tried x;
        any |= found.found[k];
        if (!found.found[k])
            continue;
        tti_tuner_describe(t, &found.setting[k], &x);
        enter(t, f, &x, TTI_TUNER_NOBODY, c);
    }
    if (!any && isfinite(self.least_worst_s) && c->forbidden_value <= 0) {
        c->all_forbidden = 1;
        c->forbidden_cost = self.least_worst_s;
    }
    return TT_OK;
}

// Hysteresis: the setting in force stays the reference unless the other is clearly better.
static uint32_t
reference(const tt_tuner *t, double stage, int must_leave)
{
    uint32_t best = tti_tuner_incumbent(t, stage);
    const tti_tried *current = &t->tried[t->current];
    if (must_leave && best == t->current)
        return t->ref_id;
    if (must_leave || best == t->current || current->row < 0 || tti_tuner_is_out(t, current) ||
        !tti_tuner_follows(t, TT_TUNER_RULE_HYSTERESIS))
        return best;
    double mean, sd, mean_best;
    tti_tuner_log_t(t, current, &mean, &sd);
    tti_tuner_log_t(t, &t->tried[best], &mean_best, &sd);
    mean -= tti_tuner_log_rate(t, current, t->current, NULL);
    mean_best -= tti_tuner_log_rate(t, &t->tried[best], best, NULL);
    int reverse = best == t->previous && t->window_index - t->moved_window < HISTORY_WINDOWS &&
                  current->windows > 1;
    return mean - mean_best < (reverse ? GAIN_REVERSE : GAIN_RETURN) ? t->current : best;
}

static tt_status
open_frame(tt_tuner *t, int must_leave, tti_frame *f, tt_error *err)
{
    double left[3], mean, sd;
    *f = (tti_frame){
        .now_s = t->now_s, .stage = tt_estimator_stage(t->estimator), .from = t->current};
    f->stage = isfinite(f->stage) ? f->stage : 0;
    f->best = reference(t, f->stage, must_leave);
    const tti_tried *best = &t->tried[f->best];
    tti_tuner_log_t(t, best, &mean, &sd);
    f->best_t = exp(mean);
    f->yardstick = tti_tuner_yardstick(t);
    tti_tuner_log_t(t, &t->tried[f->yardstick], &mean, &sd);
    f->start_t = exp(mean);
    f->best_rate = tti_tuner_log_rate(t, best, f->best, NULL);
    tti_tuner_left(t, left);
    f->left_s = f->best_t * left[1] * exp(-f->best_rate);
    f->left_long_s = f->best_t * left[2] * exp(-f->best_rate);
    if (t->options.budget_s > 0) {
        double rest = fmax(t->options.budget_s - (t->now_s - t->begin_s), 0);
        f->left_s = fmin(f->left_s, rest);
        f->left_long_s = fmin(f->left_long_s, rest);
    }
    f->noise_var = tti_tuner_noise_var(t);
    f->guard_s = tti_tuner_guard_left(t);
    if (!tti_tuner_follows(t, TT_TUNER_RULE_GUARD))
        f->guard_s = INFINITY;
    f->trial_s = tti_tuner_switching_spent(t) ? -1 : fmax(f->guard_s, tti_tuner_trickle_left(t));
    return tt_gp_slice_open(t->gp, f->stage, best->x, &f->slice, err);
}

// Nothing to try: go back to the best known setting, or stay in it, and say why.
static void
settle(const tt_tuner *t, const tti_frame *f, const contest *c, tti_choice *out)
{
    char a[32], b[32], text[128];
    const tti_choice *near = c->value > c->forbidden_value ? &c->best : &c->forbidden;
    *out = (tti_choice){.id = f->best, .setting = t->tried[f->best].setting, .settles = 1};
    double cheapest = tti_tuner_window_loss(t, &t->tried[f->best], f->best_t, 1.6);
    int too_short = SHARE_TO_STAY_OPEN * f->left_long_s < cheapest;
    int held = c->forbidden_value > 0 || c->all_forbidden;
    out->decision = too_short ? TT_TUNER_QUIT : held ? TT_TUNER_HELD : TT_TUNER_STAY;
    if (near->setting.count > 0) {
        out->considered = near->setting;
        out->ei_s = near->ei_s;
        out->cost_s = near->cost_s;
    }
    if (t->rise.recovering)
        (void)snprintf(text, sizeof text, "the loss has to come down again first");
    else if (too_short)
        (void)snprintf(text, sizeof text, "at most about %s left: too short for another trial",
                       tti_tuner_seconds(f->left_long_s, a, sizeof a));
    else if (held && f->trial_s < 0 && f->guard_s >= 0)
        (void)snprintf(text, sizeof text,
                       "changing settings has cost %s, its share of the job for now",
                       tti_tuner_seconds(t->lost_s, a, sizeof a));
    else if (held)
        (void)snprintf(text, sizeof text, "a trial may lose %s and the guard allows %s now",
                       tti_tuner_seconds(c->forbidden_cost, a, sizeof a),
                       tti_tuner_seconds(fmax(f->trial_s, 0), b, sizeof b));
    else if (near->setting.count > 0)
        (void)snprintf(text, sizeof text, "the best untried setting would save %s and cost %s",
                       tti_tuner_seconds(near->ei_s, a, sizeof a),
                       tti_tuner_seconds(near->cost_s, b, sizeof b));
    else
        (void)snprintf(text, sizeof text, "no untried setting looks better");
    if (f->best != f->from) {
        out->decision = TT_TUNER_MOVE;
        out->considered = (tt_setting){.count = 0};
        out->outlook = tti_tuner_outlook(t, f, &t->tried[f->from], f->from);
        (void)snprintf(out->reason, sizeof out->reason,
                       "back to setting %u, %.2fx faster than setting %u; %s", f->best,
                       exp(out->outlook.mean), f->from, text);
        out->outlook = (tti_outlook){0};
    } else {
        char again[64] = "";
        const uint32_t seen = t->tried[f->best].row_windows;
        if (seen < tti_tuner_replicates(t) && out->decision != TT_TUNER_QUIT)
            (void)snprintf(again, sizeof again, " to measure it again (window %u of %d)", seen + 1,
                           (int)tti_tuner_replicates(t));
        (void)snprintf(out->reason, sizeof out->reason, "staying in setting %u%s: %s", f->best,
                       again, text);
    }
}

static void
explain(const tt_tuner *t, tti_choice *c)
{
    char ei[32], cost[32];
    (void)tti_tuner_seconds(c->ei_s, ei, sizeof ei);
    (void)tti_tuner_seconds(c->cost_s, cost, sizeof cost);
    if (c->decision == TT_TUNER_MOVE)
        (void)snprintf(c->reason, sizeof c->reason,
                       "once more to setting %u: expected to save %s, costs %s to find out", c->id,
                       ei, cost);
    else if (c->planned)
        (void)snprintf(c->reason, sizeof c->reason,
                       "start point %u of %u: expected to save %s, costs %s to find out",
                       t->plan_done, t->plan_count, ei, cost);
    else
        (void)snprintf(c->reason, sizeof c->reason, "expected to save %s, costs %s to find out", ei,
                       cost);
}

// The ledger is overdrawn outside the start setting, and that one was not seen for long: either it
// is better than what is now believed best, or the machine has changed. One window tells.
static int
start_is_stale(const tt_tuner *t, const tti_frame *f)
{
    double age = t->now_s - t->tried[f->yardstick].seen_s;
    return f->guard_s < 0 && f->from != f->yardstick && f->best != f->yardstick &&
           age > START_STALE_SHARE * (t->now_s - t->begin_s);
}

static void
recheck_start(const tt_tuner *t, const tti_frame *f, tti_choice *out)
{
    *out = (tti_choice){.decision = TT_TUNER_MOVE,
                        .id = f->yardstick,
                        .setting = t->tried[f->yardstick].setting,
                        .outlook = tti_tuner_outlook(t, f, &t->tried[f->yardstick], f->yardstick),
                        .settles = 1};
    (void)snprintf(out->reason, sizeof out->reason,
                   "back to the start setting to measure it again: tuning has cost more than the "
                   "guard allows");
}

// The last trials did not take what was expected of them: a known setting tells whether it is the
// machine that has changed, or the model that was wrong.
static void
measure_known(const tt_tuner *t, const tti_frame *f, uint32_t id, tti_choice *out)
{
    *out = (tti_choice){.decision = TT_TUNER_MOVE,
                        .id = id,
                        .setting = t->tried[id].setting,
                        .outlook = tti_tuner_outlook(t, f, &t->tried[id], id)};
    (void)snprintf(
        out->reason, sizeof out->reason,
        "measuring setting %u, last seen %llu windows ago, again: the last trials did not "
        "take what was expected of them",
        id, (unsigned long long)(t->window_index - t->tried[id].seen_window));
}

// After a warm start: one window under the job's own start setting, whatever the model expects of
// it. The model would never go there when memory says it is slow, and could not find out that
// memory is wrong. What it may cost is the guard's share of the job without the ledger: as long as
// the job stays where it began, that only tells how uneven the machine is.
static int
check_due(const tt_tuner *t, const tti_frame *f, tti_choice *out)
{
    if (!t->warm || t->own_id != TTI_TUNER_NOBODY)
        return 0;
    *out = (tti_choice){.decision = TT_TUNER_TRY,
                        .id = TTI_TUNER_NOBODY,
                        .setting = t->own.setting,
                        .outlook = tti_tuner_outlook(t, f, &t->own, TTI_TUNER_NOBODY),
                        .planned = 1};
    (void)weigh(t, f, &t->own, out);
    (void)snprintf(out->reason, sizeof out->reason,
                   "once under the job's own start setting, to find out whether what earlier runs "
                   "taught holds here");
    return out->cost_s <= f->guard_s + tti_tuner_ledger(t);
}

// What earlier runs measured and this one did not try is worth a look wherever the search went.
static void
enter_remembered(tt_tuner *t, const tti_frame *f, contest *c)
{
    for (uint32_t i = 0; i < t->prior_count; i++) {
        const tt_setting *setting = &t->prior[i].told.setting;
        int known = 0;
        for (uint32_t k = 0; k < t->tried_count && !known; k++)
            known = tt_setting_equal(&t->tried[k].setting, setting);
        tti_tried x;
        if (known)
            continue;
        tti_tuner_describe(t, setting, &x);
        enter(t, f, &x, TTI_TUNER_NOBODY, c);
    }
}

static tt_status
compete(tt_tuner *t, const tti_frame *f, tti_choice *out, tt_error *err)
{
    contest c = {.value = 0, .forbidden_value = 0};
    uint32_t planned = t->plan_done;
    if (t->rise.recovering) {
        settle(t, f, &c, out);
        return TT_OK;
    }
    if (check_due(t, f, out))
        return TT_OK;
    const uint32_t known = tti_tuner_drift_recheck(t, f->stage);
    if (known != TTI_TUNER_NOBODY && known != f->from) {
        measure_known(t, f, known, out);
        return TT_OK;
    }
    enter_planned(t, f, &c);
    if (t->plan_done == planned) {
        TT_TRY(enter_search(t, f, &c, err));
        enter_remembered(t, f, &c);
        for (uint32_t i = 0; i < t->tried_count; i++)
            if (i != f->from && i != f->best && t->tried[i].row >= 0 &&
                !tti_tuner_is_out(t, &t->tried[i]) && t->tried[i].row_windows < 3)
                enter(t, f, &t->tried[i], i, &c);
    }
    if (start_is_stale(t, f)) {
        recheck_start(t, f, out);
    } else if (c.value > 0) {
        if (c.best.decision == TT_TUNER_TRY && c.worst > f->guard_s) // not by the ledger alone
            t->trickled_s += c.worst;
        *out = c.best;
        out->planned = t->plan_done > planned;
        explain(t, out);
    } else {
        settle(t, f, &c, out);
    }
    return TT_OK;
}

tt_status
tti_tuner_decide(tt_tuner *t, int must_leave, tti_choice *out, tti_frame *frame, tt_error *err)
{
    TT_TRY(tti_tuner_refit(t, err));
    tti_tuner_credit_settle(t);
    TT_TRY(open_frame(t, must_leave, frame, err));
    tt_status status = compete(t, frame, out, err);
    tt_gp_slice_close(frame->slice);
    frame->slice = NULL;
    return status;
}
