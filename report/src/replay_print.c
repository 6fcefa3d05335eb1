// trimtab replay: each variant of the tuner over several seeds, beside what was recorded.
#include "replay_world.h"
#include "report_json.h"
#include "tt/report_replay.h"
#include <inttypes.h>
#include <math.h>

enum { NAME_COLUMNS = 40 };

typedef struct outcome {
    const tt_replay_variant *variant;
    double *seconds; // ascending, one a seed
    double median, tried, switches;
    int64_t *final; // setting ids
} outcome;

typedef struct session {
    tti_replay_world *world;
    uint32_t seeds, count;
    outcome *outcomes;
    FILE *out;
} session;

// ---- running ---------------------------------------------------------------------------------

static tt_status
run_variant(session *s, const tt_replay_variant *v, outcome *o, tt_error *err)
{
    tt_arena *arena = &s->world->world_arena;
    *o = (outcome){.variant = v};
    o->seconds = tt_arena_alloc(arena, s->seeds * sizeof *o->seconds);
    o->final = tt_arena_alloc(arena, s->seeds * sizeof *o->final);
    if (o->seconds == NULL || o->final == NULL)
        return tt_error_set(err, TT_NOMEM, "report", NULL, "no memory for a replay");
    for (uint32_t i = 0; i < s->seeds; i++) {
        tt_tuner_options options = {.enabled = v->enabled,
                                    .model = v->model,
                                    .initial_settings = v->initial_settings,
                                    .window = v->window,
                                    .guard = v->guard,
                                    .without = v->without,
                                    .seed = i + 1};
        tt_replay_result result;
        tti_replay_world_options(s->world, &options);
        TT_TRY(tt_replay_run(&s->world->world, &options, NULL, &result, err));
        o->seconds[i] = result.seconds;
        o->final[i] = s->world->ids[result.final];
        o->tried += (double)result.summary.settings_tried / s->seeds;
        o->switches += (double)result.summary.switches / s->seeds;
    }
    o->median = tti_report_median(o->seconds, s->seeds);
    return TT_OK;
}

// ---- text ------------------------------------------------------------------------------------

static void
print_fixed(const session *s, const char *what, double seconds)
{
    char time[40];
    (void)fprintf(s->out, "  %-*s %10s\n", NAME_COLUMNS, what,
                  tti_format_time(seconds, time, sizeof time));
}

static void
print_outcome(const session *s, const outcome *o)
{
    char median[40], low[40], high[40];
    (void)fprintf(s->out, "  %-*.*s %10s  %9s to %-9s %5.0f %9.0f\n", NAME_COLUMNS, NAME_COLUMNS,
                  o->variant->name, tti_format_time(o->median, median, sizeof median),
                  tti_format_time(o->seconds[0], low, sizeof low),
                  tti_format_time(o->seconds[s->seeds - 1], high, sizeof high), o->tried,
                  o->switches);
}

static void
print_text(const session *s)
{
    const tti_replay_world *w = s->world;
    char what[120], count[40];
    (void)fprintf(s->out, "replay of %s: %u settings, %s iterations, %u seed%s a tuner\n\n",
                  w->report->run.id != NULL ? w->report->run.id : "?", w->world.setting_count,
                  tti_format_count(w->world.iterations, count, sizeof count), s->seeds,
                  s->seeds == 1 ? "" : "s");
    (void)fprintf(s->out, "  %-*s %10s  %-22s %5s %9s\n", NAME_COLUMNS, "", "median",
                  "least to most", "tried", "switches");
    print_fixed(s, "as it was recorded", w->report->elapsed_s);
    (void)snprintf(what, sizeof what, "setting %" PRId64 ", the start, throughout",
                   w->ids[w->world.start]);
    print_fixed(s, what, w->start_s);
    (void)snprintf(what, sizeof what, "setting %" PRId64 ", the fastest, throughout",
                   w->ids[w->best]);
    print_fixed(s, what, w->best_s);
    for (uint32_t i = 0; i < s->count; i++)
        print_outcome(s, &s->outcomes[i]);
    (void)fputs("\nOnly settings that were measured, each as fast as it was; an iteration is taken "
                "to be worth the\nsame under all of them (docs/report.md).\n",
                s->out);
}

// ---- JSON ------------------------------------------------------------------------------------

static json_t *
outcome_json(const session *s, const outcome *o)
{
    json_t *seconds = json_array(), *final = json_array();
    for (uint32_t i = 0; i < s->seeds; i++) {
        (void)json_array_append_new(seconds, tti_json_real(o->seconds[i]));
        (void)json_array_append_new(final, json_integer((json_int_t)o->final[i]));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "tuner", o->variant->name, "seconds", seconds,
                     "final_settings", final, "tried", tti_json_real(o->tried), "switches",
                     tti_json_real(o->switches));
}

static tt_status
print_json(const session *s, tt_error *err)
{
    const tti_replay_world *w = s->world;
    json_t *variants = json_array();
    for (uint32_t i = 0; i < s->count; i++)
        (void)json_array_append_new(variants, outcome_json(s, &s->outcomes[i]));
    json_t *object =
        json_pack("{s:i, s:s?, s:i, s:o, s:o, s:I, s:o, s:I, s:o, s:o}", "replay_version", 1, "run",
                  w->report->run.id, "settings", (int)w->world.setting_count, "recorded_seconds",
                  tti_json_real(w->report->elapsed_s), "start_seconds", tti_json_real(w->start_s),
                  "start_setting", (json_int_t)w->ids[w->world.start], "best_seconds",
                  tti_json_real(w->best_s), "best_setting", (json_int_t)w->ids[w->best],
                  "iterations", tti_json_real(w->world.iterations), "tuners", variants);
    if (object == NULL)
        return tt_error_set(err, TT_NOMEM, "report", NULL, "no memory for the replay");
    (void)json_dumpf(object, s->out, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    (void)fputc('\n', s->out);
    json_decref(object);
    return TT_OK;
}

// ---- the whole -------------------------------------------------------------------------------

static tt_status
run_all(session *s, const tt_replay_variant *variants, int json, tt_error *err)
{
    s->outcomes = tt_arena_alloc(&s->world->world_arena, (s->count + 1) * sizeof *s->outcomes);
    if (s->outcomes == NULL)
        return tt_error_set(err, TT_NOMEM, "report", NULL, "no memory for a replay");
    for (uint32_t i = 0; i < s->count; i++)
        TT_TRY(run_variant(s, &variants[i], &s->outcomes[i], err));
    if (json)
        TT_TRY(print_json(s, err));
    else
        print_text(s);
    if (fflush(s->out) != 0 || ferror(s->out))
        return tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                            "cannot write the replay");
    return TT_OK;
}

tt_status
tt_report_replay(const char *run,
                 const tt_replay_variant *variants,
                 uint32_t variant_count,
                 uint32_t seeds,
                 int json,
                 FILE *out,
                 tt_error *err)
{
    tti_report report;
    tti_replay_world *world = tt_mem_zalloc(1, sizeof *world);
    if (world == NULL)
        return tt_error_set(err, TT_NOMEM, "report", NULL, "no memory for a replay");
    tt_status status = tti_report_load(&report, run, err);
    if (status == TT_OK)
        status = tti_replay_world_open(&report, world, err);
    if (status == TT_OK) {
        session s = {
            .world = world, .seeds = TT_MAX(seeds, 1u), .count = variant_count, .out = out};
        status = run_all(&s, variants, json, err);
        tti_replay_world_close(world);
    }
    tti_report_fini(&report);
    tt_mem_free(world);
    return status;
}
