// A run store as a world to replay: its knobs, the settings with whole windows, how the loss fell
// by iterations, what switches lost.
#include "replay_world.h"
#include <math.h>
#include <string.h>

enum { ARENA_BYTES = 1 << 16 };
// Of classes of switches that the run did not make: what the tuner supposes.
static const double SWITCH_S[TT_TUNER_CLASSES] = {0.002, 0.05, 0.05, 0.1};
static const double NOISE_UNKNOWN = 0.1, CV_UNKNOWN = 0.3;

// ---- knobs -----------------------------------------------------------------------------------

static void
lay_out(tti_replay_world *w)
{
    const tti_report *r = w->report;
    w->servers = w->aggregation = -1;
    for (size_t i = 0; i < r->knobs.count && i < TT_KNOBS_MAX; i++) {
        const tt_store_knob *k = TTI_AT(r->knobs, tt_store_knob, i);
        tti_report_space_knob(k, &w->knobs[i], &w->space.knob[i]);
        int messages = r->run.driver == NULL || strcmp(r->run.driver, "in_place") != 0;
        if (strcmp(k->id, "servers") == 0 && messages)
            w->servers = (int)i;
        if (strcmp(k->id, "push_aggregation") == 0 && !k->fixed)
            w->aggregation = (int)i;
        w->space.count++;
    }
}

// ---- settings --------------------------------------------------------------------------------

// Values of one setting as the space has them; 0 when one is not known.
static int
copy_values(const tti_replay_world *w, const tti_setting *from, tt_setting *to)
{
    *to = (tt_setting){.count = w->space.count};
    for (uint32_t k = 0; k < w->space.count; k++) {
        if (isnan(from->values[k]))
            return 0;
        to->value[k] = from->values[k];
    }
    return tt_space_valid(&w->space, to);
}

// Times of one setting by iteration, and the mean cv of its windows.
static tt_status
read_times(tti_replay_world *w, int64_t id, tt_replay_setting *out)
{
    const tti_report *r = w->report;
    uint32_t count = 0, with_cv = 0;
    for (size_t i = 0; i < r->windows.count; i++) {
        const tt_store_window *row = TTI_AT(r->windows, tt_store_window, i);
        count += row->setting == id && tti_is_measured(row);
    }
    tt_replay_point *points = tt_arena_alloc(&w->world_arena, (count + 1) * sizeof *points);
    if (points == NULL)
        return TT_NOMEM;
    for (size_t i = 0; i < r->windows.count; i++) {
        const tt_store_window *row = TTI_AT(r->windows, tt_store_window, i);
        if (row->setting != id || !tti_is_measured(row))
            continue;
        double middle = ((double)row->first_iteration + (double)row->last_iteration) / 2;
        points[out->log_t_count++] = (tt_replay_point){middle, log(row->seconds_per_iteration)};
        if (isfinite(row->time_cv)) {
            out->cv += row->time_cv;
            with_cv++;
        }
    }
    out->cv = with_cv > 0 ? out->cv / with_cv : CV_UNKNOWN;
    out->log_t = points;
    return TT_OK;
}

static double
mean_log_t(const tt_replay_setting *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->log_t_count; i++)
        sum += s->log_t[i].value / s->log_t_count;
    return sum;
}

static tt_status
read_settings(tti_replay_world *w)
{
    const tti_report *r = w->report;
    tt_replay_setting *settings =
        tt_arena_alloc(&w->world_arena, (r->settings.count + 1) * sizeof *settings);
    w->ids = tt_arena_alloc(&w->world_arena, (r->settings.count + 1) * sizeof *w->ids);
    if (settings == NULL || w->ids == NULL)
        return TT_NOMEM;
    double least = INFINITY;
    w->world.start = UINT32_MAX;
    for (size_t i = 0; i < r->settings.count; i++) {
        const tti_setting *from = TTI_AT(r->settings, tti_setting, i);
        uint32_t at = w->world.setting_count;
        settings[at] = (tt_replay_setting){.cv = 0};
        TT_TRY(read_times(w, from->id, &settings[at]));
        if (settings[at].log_t_count == 0 || !copy_values(w, from, &settings[at].setting))
            continue;
        if (from->id == r->run.start_setting)
            w->world.start = at;
        if (mean_log_t(&settings[at]) < least) {
            least = mean_log_t(&settings[at]);
            w->best = at;
        }
        w->ids[at] = from->id;
        w->world.setting_count++;
    }
    w->world.settings = settings;
    return TT_OK;
}

// ---- loss and switches -----------------------------------------------------------------------

static tt_status
read_loss(tti_replay_world *w)
{
    const tti_report *r = w->report;
    size_t room = (r->windows.count + 1) * sizeof(tt_replay_point);
    tt_replay_point *points = tt_arena_alloc(&w->world_arena, room);
    double *noise = tt_arena_alloc(&w->world_arena, (r->windows.count + 1) * sizeof *noise);
    uint32_t count = 0, noises = 0;
    if (points == NULL || noise == NULL)
        return TT_NOMEM;
    for (size_t i = 0; i < r->windows.count; i++) {
        const tt_store_window *row = TTI_AT(r->windows, tt_store_window, i);
        double at = (double)row->last_iteration;
        if (!isfinite(row->loss_after) || (count > 0 && at <= points[count - 1].iteration))
            continue;
        points[count++] = (tt_replay_point){at, row->loss_after};
        if (isfinite(row->noise) && row->loss_after > 0)
            noise[noises++] = row->noise / row->loss_after;
    }
    w->world.loss = points;
    w->world.loss_count = count;
    w->world.loss_noise = noises > 0 ? fmin(tti_report_median(noise, noises), 1) : NOISE_UNKNOWN;
    return TT_OK;
}

static void
read_switches(tti_replay_world *w)
{
    static const char *const kinds[TT_TUNER_CLASSES] = {"setting", "data", "model",
                                                        "data and model"};
    const tti_report *r = w->report;
    for (int c = 0; c < TT_TUNER_CLASSES; c++) {
        double sum = 0, count = 0;
        for (size_t i = 0; i < r->moves.count; i++) {
            const tt_store_reconfiguration *m = TTI_AT(r->moves, tt_store_reconfiguration, i);
            if (m->kind == NULL || strcmp(m->kind, kinds[c]) != 0 || !isfinite(m->lost_s))
                continue;
            sum += fmax(m->lost_s, 0);
            count++;
        }
        w->world.switch_s[c] = count > 0 ? sum / count : SWITCH_S[c];
    }
}

// ---- the whole -------------------------------------------------------------------------------

static tt_status
check(const tti_replay_world *w, tt_error *err)
{
    const char *what = NULL;
    if (w->world.setting_count < 2)
        what = "it measured fewer than two settings";
    else if (w->world.start == UINT32_MAX)
        what = "its start setting was not measured in a whole window";
    else if (w->world.loss_count == 0 || !(w->world.iterations > 0))
        what = "it did not write down how its loss fell";
    if (what == NULL)
        return TT_OK;
    return tt_error_set(err, TT_INVALID, w->report->source, "name a run that was tuned",
                        "this run cannot be replayed: %s", what);
}

static double
job_seconds(const tti_replay_world *w, uint32_t setting)
{
    return w->world.iterations * exp(mean_log_t(&w->world.settings[setting]));
}

tt_status
tti_replay_world_open(const tti_report *report, tti_replay_world *out, tt_error *err)
{
    const tt_store_run *run = &report->run;
    *out = (tti_replay_world){.report = report};
    tt_arena_init(&out->world_arena, ARENA_BYTES);
    lay_out(out);
    out->nodes = run->nodes > 0 ? (uint32_t)run->nodes : 1;
    out->bulk_synchronous = run->consistency != NULL && strcmp(run->consistency, "bsp") == 0;
    out->world.space = &out->space;
    out->world.target_loss = run->target_loss;
    out->world.iterations = (double)report->iterations;
    tt_status status = read_settings(out);
    if (status == TT_OK)
        status = read_loss(out);
    if (status != TT_OK)
        status = tt_error_set(err, status, "report", NULL, "no memory for a replay");
    read_switches(out);
    if (status == TT_OK)
        status = check(out, err);
    if (status != TT_OK) {
        tti_replay_world_close(out);
        return status;
    }
    out->start_s = job_seconds(out, out->world.start);
    out->best_s = job_seconds(out, out->best);
    return TT_OK;
}

void
tti_replay_world_close(tti_replay_world *world)
{
    tt_arena_fini(&world->world_arena);
}

static uint32_t
workers_of(void *self, const tt_setting *setting)
{
    const tti_replay_world *w = self;
    uint32_t servers = w->servers >= 0 ? (uint32_t)setting->value[w->servers] : 0;
    return w->nodes > servers ? w->nodes - servers : 1;
}

static uint32_t
merged_of(void *self, const tt_setting *setting)
{
    const tti_replay_world *w = self;
    return w->aggregation >= 0 ? (uint32_t)fmax(setting->value[w->aggregation], 1) : 1;
}

void
tti_replay_world_options(tti_replay_world *world, tt_tuner_options *options)
{
    options->nodes = world->nodes;
    options->bulk_synchronous = world->bulk_synchronous;
    options->workers_of = workers_of;
    options->merged_of = merged_of;
    options->callback_self = world;
}
