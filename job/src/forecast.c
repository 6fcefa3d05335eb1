// What a job would take on simulated hosts: the start setting fixed, the tuner at work, and the
// setting it ended in fixed from the beginning, for each seed, in memory.
#include "forecast.h"
#include "training.h"
#include <math.h>
#include <string.h>

enum { OVERRIDES_MAX = 1024 };

// The same job with another seed and on simulated hosts, whatever it says.
static tt_status
open_for_seed(
    const tt_job_source *source, const int64_t *seed, FILE *errors, tt_job **out, tt_error *err)
{
    static const char *overrides[OVERRIDES_MAX];
    char text[48];
    size_t count = source->override_count;
    if (count + 2 > OVERRIDES_MAX)
        return tt_error_set(err, TT_INVALID, NULL, "put them into a file", "too many overrides");
    if (count > 0)
        memcpy(overrides, source->overrides, count * sizeof *overrides);
    overrides[count++] = "cluster.engine=simulated";
    if (seed != NULL) {
        (void)snprintf(text, sizeof text, "seed=%lld", (long long)*seed);
        overrides[count++] = text;
    }
    tt_job_source simulated = *source;
    simulated.overrides = overrides;
    simulated.override_count = count;
    TT_TRY(tt_job_open(&simulated, errors, out, err));
    (*out)->spec.simulation.trace = NULL; // nothing is written
    return TT_OK;
}

static int
has_target(const tt_job *job)
{
    const tti_spec *spec = &job->spec;
    return isfinite(spec->stop_loss) || isfinite(spec->stop_objective) || spec->patience > 0 ||
           tt_config_given(job->config, "stop.max_epochs");
}

// Whether the job came to an end that says how far it had learned.
static int
is_reached(const tt_job *job, const tt_job_result *result)
{
    const tti_spec *spec = &job->spec;
    if (isfinite(spec->stop_loss) || isfinite(spec->stop_objective))
        return result->outcome == TT_JOB_CONVERGED;
    return result->outcome == TT_JOB_CONVERGED ||
           (result->outcome == TT_JOB_STOPPED &&
            strncmp(result->stop_reason, "max_time", strlen("max_time")) != 0);
}

static tt_status
train_row(tt_job *job, int tuned, int progress, tti_forecast_run *out, tt_error *err)
{
    const tt_job_run_options options = {.progress = progress};
    tt_job_result *result = tt_mem_zalloc(1, sizeof *result);
    if (result == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a forecast");
    tt_status status = tti_job_train(job, &options, tuned, result, err);
    if (status == TT_OK && result->outcome == TT_JOB_INTERRUPTED)
        status = tt_error_set(err, TT_CANCELLED, NULL, NULL, "interrupted, nothing was predicted");
    *out = (tti_forecast_run){.reached = is_reached(job, result),
                              .seconds = result->train_seconds,
                              .iterations = result->iterations,
                              .loss = result->loss,
                              .load = job->load,
                              .setting = result->setting};
    (void)snprintf(out->stop_reason, sizeof out->stop_reason, "%s", result->stop_reason);
    tt_mem_free(result);
    return status;
}

// Untuned runs are at the start of the space: from here on at this setting.
static void
begin_at(tt_job *job, const tt_setting *setting)
{
    for (uint32_t k = 0; k < job->space.count && k < setting->count; k++)
        if (!job->space.knob[k].fixed && !job->space.knob[k].absent)
            job->space.knob[k].start = setting->value[k];
}

static tt_status
train_rows(tt_job *job, int progress, tti_forecast_run rows[TTI_FORECAST_ROWS], tt_error *err)
{
    TT_TRY(train_row(job, 0, progress, &rows[TTI_FORECAST_START], err));
    rows[TTI_FORECAST_TUNED] = rows[TTI_FORECAST_BEST] = rows[TTI_FORECAST_START];
    if (!job->spec.tuner_enabled || tt_space_free_count(&job->space) == 0)
        return TT_OK; // the same run again
    TT_TRY(train_row(job, 1, progress, &rows[TTI_FORECAST_TUNED], err));
    const tt_setting *ended = &rows[TTI_FORECAST_TUNED].setting;
    if (memcmp(ended->value, rows[TTI_FORECAST_START].setting.value,
               ended->count * sizeof *ended->value) == 0)
        return TT_OK;
    begin_at(job, ended);
    return train_row(job, 0, progress, &rows[TTI_FORECAST_BEST], err);
}

static int
any_reached(const tti_forecast *f)
{
    int any = 0;
    for (uint32_t i = 0; i < f->seeds; i++)
        for (uint32_t r = 0; r < TTI_FORECAST_ROWS; r++)
            any |= f->run[i][r].reached;
    return any;
}

// Leaves the last seed's job in *job, for what is to be said of it.
static tt_status
forecast(const tt_job_source *source,
         const tt_job_forecast_options *options,
         FILE *errors,
         tti_forecast *f,
         tt_job **job,
         tt_error *err)
{
    for (uint32_t i = 0; i < f->seeds; i++) {
        int64_t seed = f->first_seed + i;
        tt_job_close(*job);
        TT_TRY(open_for_seed(source, i > 0 ? &seed : NULL, errors, job, err));
        if (!has_target(*job))
            return tt_error_set(err, TT_INVALID, NULL,
                                "set stop.loss, stop.objective or stop.max_epochs",
                                "the job has no end to predict the time to");
        if (i == 0) {
            f->first_seed = (*job)->spec.seed;
            tt_space_start(&(*job)->space, &f->start);
        }
        TT_TRY(train_rows(*job, options->progress, f->run[i], err));
    }
    return TT_OK;
}

tt_status
tt_job_forecast(const tt_job_source *source,
                const tt_job_forecast_options *options,
                FILE *errors,
                FILE *out,
                int *reached,
                tt_error *err)
{
    *reached = 0;
    tt_clock clock = tt_clock_monotonic();
    uint64_t begin = tt_clock_now(&clock);
    tt_job *job = NULL;
    tti_forecast *f = tt_mem_zalloc(1, sizeof *f);
    if (f == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a forecast");
    f->seeds = TT_MIN(TT_MAX(options->seeds, 1u), (uint32_t)TTI_FORECAST_SEEDS_MAX);
    tti_interrupted = 0;
    tt_status status = forecast(source, options, errors, f, &job, err);
    f->wall_s = 1e-9 * (double)(tt_clock_now(&clock) - begin);
    if (status == TT_OK) {
        *reached = any_reached(f);
        status = options->json ? tti_forecast_json(f, job, out) : tti_forecast_text(f, job, out);
        if (status != TT_OK)
            (void)tt_error_set(err, status, NULL, NULL, "cannot print the prediction");
    }
    tt_job_close(job);
    tt_mem_free(f);
    return status;
}
