// A job in virtual time made from what a run measured, with the real estimator and the real tuner.
#include "tt/tuner_replay.h"
#include "tuner_internal.h"
#include <math.h>
#include <string.h>

static const double TICK_S = 0.02; // a master looks after its tuner that often
// What moves is on its way for so many times as long as the seconds that are lost by it.
static const double MOVE_TIMES = 2;

typedef struct replay_worker {
    int active;
    uint64_t generation;    // adopted
    uint32_t setting;       // under which it works now
    double began_s, ends_s; // its push in progress
} replay_worker;

typedef struct replay {
    const tt_replay_world *world;
    const tt_tuner_options *options;
    tt_space space; // that begins where the world does
    tt_estimator *estimator;
    tt_tuner *tuner;
    tt_search_space search;
    tt_rng rng;
    replay_worker *workers;
    uint32_t worker_count;
    double now_s, moving_until_s, switch_s;
    uint64_t iterations, generation;
    uint32_t setting; // in force
    unsigned class_flags;
    uint32_t from_id, to_id;
    int reconfiguring;
} replay;

// ---- the world -------------------------------------------------------------------------------

// Linear between points, level beyond them.
static double
curve_at(const tt_replay_point *points, uint32_t count, double iteration)
{
    uint32_t low = 0, high = count; // the first point at or behind it
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (points[middle].iteration < iteration)
            low = middle + 1;
        else
            high = middle;
    }
    if (high == 0 || high == count)
        return points[high == 0 ? 0 : count - 1].value;
    const tt_replay_point *a = &points[high - 1], *b = &points[high];
    double share = (iteration - a->iteration) / (b->iteration - a->iteration);
    return a->value + share * (b->value - a->value);
}

static uint32_t
workers_under(const replay *r, uint32_t setting)
{
    const tt_tuner_options *o = r->options;
    const tt_setting *s = &r->world->settings[setting].setting;
    if (o->bulk_synchronous)
        return 1; // an iteration is a round of all
    uint32_t workers = o->workers_of != NULL ? o->workers_of(o->callback_self, s) : r->worker_count;
    return TT_MIN(TT_MAX(workers, 1u), r->worker_count);
}

static uint32_t
merged_under(const replay *r, uint32_t setting)
{
    const tt_tuner_options *o = r->options;
    const tt_setting *s = &r->world->settings[setting].setting;
    return o->merged_of != NULL ? TT_MAX(o->merged_of(o->callback_self, s), 1u) : 1;
}

static void
begin_push(replay *r, uint32_t w, double now_s)
{
    replay_worker *k = &r->workers[w];
    uint32_t workers = workers_under(r, r->setting);
    const tt_replay_setting *s = &r->world->settings[r->setting];
    *k = (replay_worker){.active = w < workers,
                         .generation = r->generation,
                         .setting = r->setting,
                         .began_s = now_s};
    double cycle = exp(curve_at(s->log_t, s->log_t_count, (double)r->iterations)) * workers;
    cycle *= exp(s->cv * tt_rng_normal(&r->rng) - s->cv * s->cv / 2);
    k->ends_s = now_s + cycle * merged_under(r, r->setting);
}

static void
end_push(replay *r, uint32_t w)
{
    const tt_replay_world *world = r->world;
    replay_worker *k = &r->workers[w];
    uint32_t merged = merged_under(r, k->setting);
    for (uint32_t i = 0; i < merged; i++) {
        double loss = curve_at(world->loss, world->loss_count, (double)r->iterations);
        tt_est_sample sample = {.generation = k->generation,
                                .sequence = r->iterations++,
                                .worker = w,
                                .examples = 64,
                                .loss = loss * exp(world->loss_noise * tt_rng_normal(&r->rng)),
                                .time_s = k->ends_s,
                                .cycle_s = (k->ends_s - k->began_s) / merged};
        tt_estimator_add(r->estimator, &sample);
    }
    begin_push(r, w, k->ends_s);
}

// Until `until`, or until all iterations are done: 1 then.
static int
advance(replay *r, double until)
{
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t w = 0; w < r->worker_count; w++)
            if (r->workers[w].active &&
                (next == UINT32_MAX || r->workers[w].ends_s < r->workers[next].ends_s))
                next = w;
        if (r->workers[next].ends_s > until)
            break;
        r->now_s = r->workers[next].ends_s;
        end_push(r, next);
        if ((double)r->iterations >= r->world->iterations)
            return 1;
    }
    r->now_s = until;
    return 0;
}

// ---- switches --------------------------------------------------------------------------------

static uint32_t
index_of(const tt_replay_world *world, const tt_setting *setting)
{
    for (uint32_t i = 0; i < world->setting_count; i++)
        if (tt_setting_equal(&world->settings[i].setting, setting))
            return i;
    return UINT32_MAX;
}

static void
publish(replay *r, const tt_tuner_action *action)
{
    uint32_t to = index_of(r->world, &action->setting);
    TT_ASSERT(to != UINT32_MAX); // the tuner was told to keep to them
    const tt_setting *from = &r->world->settings[r->setting].setting;
    r->class_flags = tt_search_class(&r->search, from, &action->setting);
    r->from_id = r->to_id;
    r->to_id = action->setting_id;
    r->setting = to;
    r->generation++;
    r->reconfiguring = 1;
    r->switch_s = r->world->switch_s[r->class_flags];
    r->moving_until_s = r->now_s + (r->class_flags != 0 ? MOVE_TIMES * r->switch_s : 0);
    for (uint32_t w = 0; w < r->worker_count; w++) {
        r->workers[w].ends_s += r->switch_s;
        if (!r->workers[w].active)
            begin_push(r, w, r->now_s + r->switch_s);
    }
    tt_tuner_applied(r->tuner, r->generation, r->now_s, r->iterations);
}

static tt_tuner_view
look(const replay *r)
{
    uint64_t oldest = r->generation;
    for (uint32_t w = 0; w < r->worker_count; w++)
        if (r->workers[w].active)
            oldest = TT_MIN(oldest, r->workers[w].generation);
    return (tt_tuner_view){.now_s = r->now_s,
                           .generation = oldest,
                           .in_transition = r->now_s < r->moving_until_s,
                           .iterations = r->iterations};
}

static tt_status
run(replay *r, tt_error *err)
{
    tt_tuner_begin(r->tuner, 0, 0);
    for (uint32_t w = 0; w < r->worker_count; w++)
        begin_push(r, w, 0);
    for (double tick = TICK_S; !advance(r, tick); tick += TICK_S) {
        tt_tuner_action action;
        tt_tuner_view view = look(r);
        if (r->reconfiguring && view.generation == r->generation && !view.in_transition) {
            tt_tuner_reconfigured(r->tuner, r->from_id, r->to_id, r->class_flags, r->switch_s);
            r->reconfiguring = 0;
        }
        TT_TRY(tt_tuner_step(r->tuner, &view, &action, err));
        if (action.kind == TT_TUNER_SWITCH)
            publish(r, &action);
    }
    tt_tuner_end(r->tuner, r->now_s, r->iterations);
    return TT_OK;
}

// ---- the whole -------------------------------------------------------------------------------

static tt_status
open_parts(replay *r, const tt_tuner_callbacks *callbacks, tt_setting *only, tt_error *err)
{
    const tt_replay_world *world = r->world;
    tt_est_options est = {
        .target_loss = world->target_loss,
        .budget_iterations = isnan(world->target_loss) ? world->iterations : INFINITY,
        .bulk_synchronous = r->options->bulk_synchronous,
        .method = r->options->model == TT_TUNER_MODEL_PAPER ? TT_EST_PAPER : TT_EST_POOLED};
    tt_tuner_options options = *r->options;
    for (uint32_t i = 0; i < world->setting_count; i++)
        only[i] = world->settings[i].setting;
    options.only = only;
    options.only_count = world->setting_count;
    TT_TRY(tt_estimator_open(&est, &r->estimator, err));
    return tt_tuner_open(&r->space, r->estimator, &options, callbacks, &r->tuner, err);
}

tt_status
tt_replay_run(const tt_replay_world *world,
              const tt_tuner_options *options,
              const tt_tuner_callbacks *callbacks,
              tt_replay_result *out,
              tt_error *err)
{
    *out = (tt_replay_result){0};
    replay r = {.world = world,
                .options = options,
                .setting = world->start,
                .worker_count = TT_MAX(options->nodes, 1u)};
    r.space = *world->space;
    for (uint32_t k = 0; k < r.space.count; k++)
        r.space.knob[k].start = world->settings[world->start].setting.value[k];
    tt_search_space_init(&r.search, &r.space);
    tt_rng_init(&r.rng, options->seed, TT_RNG_SIMULATION, 0);
    tt_setting *only = tt_mem_zalloc(world->setting_count, sizeof *only);
    r.workers = tt_mem_zalloc(r.worker_count, sizeof *r.workers);
    tt_status status = TT_OK;
    if (only == NULL || r.workers == NULL)
        status = tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a replay");
    if (status == TT_OK)
        status = open_parts(&r, callbacks, only, err);
    if (status == TT_OK)
        status = run(&r, err);
    if (status == TT_OK) {
        out->seconds = r.now_s;
        out->final = r.setting;
        tt_tuner_summarize(r.tuner, &out->summary);
        (void)tt_tuner_best(r.tuner, &out->best);
    }
    tt_tuner_close(r.tuner);
    tt_estimator_close(r.estimator);
    tt_mem_free(r.workers);
    tt_mem_free(only);
    return status;
}
