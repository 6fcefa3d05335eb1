// What a run leaves in the repository.
#include "training.h"
#include <math.h>
#include <string.h>

// The values of a setting, for all knobs the job has. Returns how many.
static uint32_t
list_values(const tt_space *space, const tt_setting *setting, tt_repository_value *out)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < space->count; k++) {
        const tt_space_knob *knob = &space->knob[k];
        if (knob->absent)
            continue;
        int named = knob->knob->kind == TT_KNOB_ENUM;
        out[count++] = (tt_repository_value){
            .knob = knob->knob->id,
            .value = setting->value[k],
            .name = named ? knob->knob->values[(size_t)setting->value[k]] : NULL};
    }
    return count;
}

static void
fill_row(const tt_tuner_measurement *m, uint32_t id, tt_repository_setting *out)
{
    *out = (tt_repository_setting){.id = id,
                                   .seconds_per_iteration = exp(m->log_s),
                                   .log_se = m->log_se,
                                   .windows = m->windows,
                                   .iterations = (int64_t)m->iterations,
                                   .log_rate = m->log_rate,
                                   .log_rate_sd = m->log_rate_sd,
                                   .abandoned = m->abandoned,
                                   .refused = m->refused,
                                   .diverged = m->diverged};
}

typedef struct lesson {
    tt_repository_row *rows;
    tt_repository_value *values; // [count][TT_KNOBS_MAX]
    uint32_t count, measured;
} lessons;

static tt_status
gather(const tti_training *tr, lessons *out)
{
    uint32_t settings = 0;
    tt_tuner_measurement m;
    while (tt_tuner_setting(tr->tuner, settings) != NULL)
        settings++;
    out->rows = tt_mem_zalloc(settings, sizeof *out->rows);
    out->values = tt_mem_zalloc((size_t)settings * TT_KNOBS_MAX, sizeof *out->values);
    if (out->rows == NULL || out->values == NULL)
        return TT_NOMEM;
    for (uint32_t id = 0; id < settings; id++) {
        if (!tt_tuner_measured(tr->tuner, id, &m) || (m.windows == 0 && !m.refused))
            continue;
        tt_repository_value *values = out->values + (size_t)out->count * TT_KNOBS_MAX;
        tt_repository_row *row = &out->rows[out->count++];
        fill_row(&m, id, &row->setting);
        row->values = values;
        row->value_count = list_values(&tr->job->space, &m.setting, values);
        out->measured += m.windows > 0;
    }
    return TT_OK;
}

static void
describe_run(const tti_training *tr,
             const lessons *lesson,
             const char *status,
             char space[24],
             char from[900],
             tt_repository_run *out)
{
    const tti_warm *warm = &tr->job->warm;
    tt_tuner_summary summary;
    tt_tuner_summarize(tr->tuner, &summary);
    tti_warm_describe(tr->job, out, space);
    out->id = tr->identity->run_id;
    out->run_dir = tr->identity->run_dir;
    out->status = status;
    // Where the paper's tuner ended is no setting to begin with.
    out->tuned = tr->tuned && tr->job->spec.tuner_model != TT_TUNER_MODEL_PAPER;
    out->train_seconds = tr->train_seconds;
    out->iterations = (int64_t)tr->iterations;
    out->settings = lesson->measured;
    out->start_setting = 0;
    out->own_setting = summary.own_id != UINT32_MAX ? (int64_t)summary.own_id : -1;
    out->best_setting = summary.best_id;
    from[0] = '\0';
    for (uint32_t i = 0; i < warm->run_count && tti_warm_used(tr->job); i++)
        (void)snprintf(from + strlen(from), 900 - strlen(from), "%s%s", i > 0 ? " " : "",
                       warm->runs[i].id);
    out->started_from = from[0] != '\0' ? from : NULL;
}

static tt_status
store(const tti_training *tr, const lessons *lesson, const char *status, tt_error *err)
{
    tt_repository *repository;
    tt_repository_run run;
    char space[24], from[900];
    describe_run(tr, lesson, status, space, from, &run);
    TT_TRY(tt_repository_open_write(tr->job->warm.path, &repository, err));
    tt_status stored = tt_repository_put(repository, &run, lesson->rows, lesson->count, err);
    tt_repository_close(repository);
    return stored;
}

void
tti_warm_warn(tti_training *tr, const char *text)
{
    tt_error err = {0};
    tti_training_progress_clear(tr);
    tt_log(TT_LOG_WARN, "%s", text);
    if (tr->store != NULL &&
        tt_store_put_event(tr->store, tti_training_now(tr), "warning", text, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

void
tti_warm_say(tti_training *tr)
{
    const tti_warm *warm = &tr->job->warm;
    if (!tr->tuned || tr->store == NULL)
        return;
    if (warm->trouble[0] != '\0')
        tti_warm_warn(tr, warm->trouble);
    if (!tti_warm_used(tr->job))
        return;
    tti_training_event(tr, "info", "%s", warm->reason);
    if (warm->begins)
        tti_training_event(tr, "info", "it begins with %.200s%s%.200s", tr->setting_text,
                           warm->clipped[0] != '\0' ? "; outside this job's ranges, so " : "",
                           warm->clipped);
}

void
tti_warm_learn(tti_training *tr, const char *status)
{
    const tti_warm *warm = &tr->job->warm;
    lessons lesson = {0};
    tt_error err = {0};
    // What was wrong at the start was said then; only a lock may be gone by now.
    int hopeless = warm->trouble[0] != '\0' && warm->trouble_status != TT_BUSY;
    if (warm->path[0] == '\0' || hopeless || tr->tuner == NULL)
        return;
    if (gather(tr, &lesson) == TT_OK && lesson.measured > 0) {
        if (store(tr, &lesson, status, &err) == TT_OK)
            tti_training_event(tr, "info", "what was measured under %u setting%s is kept in %s",
                               lesson.measured, lesson.measured == 1 ? "" : "s", warm->path);
        else if (warm->trouble[0] == '\0') {
            char text[1400];
            (void)snprintf(text, sizeof text, "later runs cannot learn from this one: %s: %s%s%s",
                           err.where, err.what, err.advice[0] != '\0' ? "; " : "", err.advice);
            tti_warm_warn(tr, text);
        }
    }
    tt_mem_free(lesson.rows);
    tt_mem_free(lesson.values);
}
