// A forecast for people and for programs (docs/plan.md).
#include "forecast.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const row_names[TTI_FORECAST_ROWS] = {"start", "tuned", "best"};

// Keys that decide how long things take, and that a job seldom has.
static const struct {
    const char *key, *what;
} cluster_keys[] = {
    {"simulation.hosts", "a host a node"},
    {"simulation.cores", "4 cores a host"},
    {"simulation.network.rate", "1.25 GB/s"},
    {"simulation.network.latency", "50 us"},
};

static int
costs_are_given(const tt_job *job)
{
    return tt_config_given(job->config, "simulation.costs");
}

// ---- figures over the seeds --------------------------------------------------------------------

typedef struct figures {
    uint32_t reached;
    double least, middle, most; // seconds to the target; NAN: none got there
    double iterations, seconds_per_iteration, loss, cores, network;
} figures;

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
middle_of(double *values, uint32_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, ascending);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

static figures
figures_of(const tti_forecast *f, uint32_t row)
{
    double seconds[TTI_FORECAST_SEEDS_MAX], iterations[TTI_FORECAST_SEEDS_MAX],
        each[TTI_FORECAST_SEEDS_MAX], loss[TTI_FORECAST_SEEDS_MAX];
    figures all = {0};
    for (uint32_t i = 0; i < f->seeds; i++) {
        const tti_forecast_run *run = &f->run[i][row];
        if (run->reached)
            seconds[all.reached++] = run->seconds;
        iterations[i] = (double)run->iterations;
        each[i] = run->seconds / fmax((double)run->iterations, 1);
        loss[i] = run->loss;
        all.cores += run->load.cores / f->seeds;
        all.network += run->load.network / f->seeds;
    }
    all.middle = middle_of(seconds, all.reached);
    all.least = all.reached > 0 ? seconds[0] : NAN;
    all.most = all.reached > 0 ? seconds[all.reached - 1] : NAN;
    all.iterations = middle_of(iterations, f->seeds);
    all.seconds_per_iteration = middle_of(each, f->seeds);
    all.loss = middle_of(loss, f->seeds);
    return all;
}

// ---- for people --------------------------------------------------------------------------------

static const char *
seconds_text(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds))
        (void)snprintf(out, size, "not reached");
    else if (seconds < 1e-3)
        (void)snprintf(out, size, "%.1f us", 1e6 * seconds);
    else if (seconds < 1)
        (void)snprintf(out, size, "%.1f ms", 1e3 * seconds);
    else if (seconds < 60)
        (void)snprintf(out, size, "%.1f s", seconds);
    else
        (void)snprintf(out, size, "%.0f:%02.0f", floor(seconds / 60), floor(fmod(seconds, 60)));
    return out;
}

static const char *
target_text(const tt_job *job, char *out, size_t size)
{
    const tti_spec *spec = &job->spec;
    if (isfinite(spec->stop_loss))
        (void)snprintf(out, size, "training loss <= %g", spec->stop_loss);
    else if (isfinite(spec->stop_objective))
        (void)snprintf(out, size, "objective <= %g", spec->stop_objective);
    else if (spec->patience > 0)
        (void)snprintf(out, size, "%lld validations without improvement",
                       (long long)spec->patience);
    else
        (void)snprintf(out, size, "%g epochs", spec->stop_epochs);
    return out;
}

static void
print_cluster(const tt_job *job, FILE *out)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    char latency[32];
    const char *sign = "";
    (void)fprintf(out,
                  "cluster     %u nodes on %u hosts of %g cores, %.4g MB/s and %s between them\n",
                  job->node_count, tti_job_simulated_hosts(job), s->cores, 1e-6 * (double)s->rate,
                  seconds_text(s->latency, latency, sizeof latency));
    for (size_t i = 0; i < TT_COUNT_OF(cluster_keys); i++)
        if (!tt_config_given(job->config, cluster_keys[i].key)) {
            (void)fprintf(out, "%s%s", sign[0] == '\0' ? "            assumed: " : sign,
                          cluster_keys[i].what);
            sign = ", ";
        }
    if (sign[0] != '\0')
        (void)fprintf(out, " (simulation.* says otherwise)\n");
}

static void
print_row(const tti_forecast *f, uint32_t row, FILE *out)
{
    static const char *const titles[TTI_FORECAST_ROWS] = {
        "start setting, fixed", "tuned while it trains", "what it ended in, fixed"};
    char middle[32], least[32], most[32], each[32], all[96];
    figures x = figures_of(f, row);
    (void)seconds_text(x.middle, middle, sizeof middle);
    if (f->seeds > 1 && x.reached > 0)
        (void)snprintf(all, sizeof all, "%s (%s .. %s)", middle,
                       seconds_text(x.least, least, sizeof least),
                       seconds_text(x.most, most, sizeof most));
    else
        (void)snprintf(all, sizeof all, "%s", middle);
    (void)fprintf(out, "  %-24s %-*s %12.0f  %11s  %8.4f    cores %3.0f %%, network %3.0f %%\n",
                  titles[row], f->seeds > 1 ? 28 : 12, all, x.iterations,
                  seconds_text(x.seconds_per_iteration, each, sizeof each), x.loss, 100 * x.cores,
                  100 * x.network);
}

static void
print_unreached(const tti_forecast *f, FILE *out)
{
    for (uint32_t i = 0; i < f->seeds; i++)
        for (uint32_t r = 0; r < TTI_FORECAST_ROWS; r++)
            if (!f->run[i][r].reached)
                (void)fprintf(out, "  not reached: %s, seed %lld: %s\n", row_names[r],
                              (long long)(f->first_seed + i), f->run[i][r].stop_reason);
}

static void
print_changes(const tti_forecast *f, const tt_job *job, FILE *out)
{
    for (uint32_t i = 0; i < f->seeds; i++) {
        const tt_setting *ended = &f->run[i][TTI_FORECAST_TUNED].setting;
        uint32_t count = 0;
        (void)fprintf(out, "%s", i == 0 ? "tuner       changed " : "            ");
        if (f->seeds > 1)
            (void)fprintf(out, "with seed %lld: ", (long long)(f->first_seed + i));
        for (uint32_t k = 0; k < job->space.count; k++) {
            const tt_space_knob *knob = &job->space.knob[k];
            char from[48], to[48];
            if (knob->absent || ended->value[k] == f->start.value[k])
                continue;
            (void)fprintf(out, "%s%s %s -> %s", count++ > 0 ? ", " : "", knob->knob->id,
                          tt_space_format(knob, f->start.value[k], from, sizeof from),
                          tt_space_format(knob, ended->value[k], to, sizeof to));
        }
        (void)fprintf(out, "%s\n", count == 0 ? "nothing" : "");
    }
}

static void
print_error(const tt_job *job, FILE *out)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    const char *at = s->measured_at != NULL ? s->measured_at : "an unknown day";
    const char *machine = s->machine != NULL ? s->machine : "an unknown machine";
    if (!costs_are_given(job))
        (void)fprintf(out,
                      "error       unknown: the costs are the defaults, no machine's. Measure: "
                      "trimtab bench calibrate machine.yaml --check\n");
    else if (!isfinite(s->error_median) || s->error_settings == 0)
        (void)fprintf(out,
                      "error       unknown: the costs (measured %s on %s) were not checked: "
                      "trimtab bench calibrate machine.yaml --check\n",
                      at, machine);
    else
        (void)fprintf(
            out,
            "error       the model was off by %.0f %% (median; %.0f %% in nine of ten) in "
            "%lld settings of a small job on the machine it was calibrated on (%s, %s)\n",
            100 * s->error_median, 100 * s->error_p90, (long long)s->error_settings, machine, at);
}

tt_status
tti_forecast_text(const tti_forecast *f, const tt_job *job, FILE *out)
{
    char target[96], wall[32];
    (void)fprintf(out, "%s, predicted: nothing was trained for good, nothing is kept\n", job->name);
    print_cluster(job, out);
    (void)fprintf(out, "  %-24s %-*s %12s  %11s  %8s    busiest host\n", "", f->seeds > 1 ? 28 : 12,
                  "time", "iterations", "s/iteration", "loss");
    for (uint32_t r = 0; r < TTI_FORECAST_ROWS; r++)
        print_row(f, r, out);
    (void)fprintf(out, "            time: to %s%s\n", target_text(job, target, sizeof target),
                  f->seeds > 1 ? "; median (least .. most) of the seeds" : "");
    print_unreached(f, out);
    print_changes(f, job, out);
    print_error(job, out);
    (void)fprintf(out, "simulated   in %s\n", seconds_text(f->wall_s, wall, sizeof wall));
    return ferror(out) ? TT_IO : TT_OK;
}

// ---- for programs ------------------------------------------------------------------------------

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
text(const char *value)
{
    return value != NULL ? json_string(value) : json_null();
}

static json_t *
row_json(const tti_forecast *f, const tt_job *job, uint32_t row)
{
    figures x = figures_of(f, row);
    json_t *runs = json_array();
    for (uint32_t i = 0; i < f->seeds; i++) {
        const tti_forecast_run *run = &f->run[i][row];
        (void)json_array_append_new(
            runs, json_pack("{s:I, s:b, s:o, s:I, s:o, s:s, s:o}", "seed",
                            (json_int_t)(f->first_seed + i), "reached", run->reached, "seconds",
                            number(run->seconds), "iterations", (json_int_t)run->iterations, "loss",
                            number(run->loss), "stop_reason", run->stop_reason, "setting",
                            tti_setting_json(job, &run->setting)));
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reached",
                     (json_int_t)x.reached, "seconds", number(x.middle), "seconds_least",
                     number(x.least), "seconds_most", number(x.most), "iterations",
                     number(x.iterations), "seconds_per_iteration", number(x.seconds_per_iteration),
                     "loss", number(x.loss), "cores_busy", number(x.cores), "network_busy",
                     number(x.network), "runs", runs);
}

static json_t *
cluster_json(const tt_job *job)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    json_t *assumed = json_array();
    for (size_t i = 0; i < TT_COUNT_OF(cluster_keys); i++)
        if (!tt_config_given(job->config, cluster_keys[i].key))
            (void)json_array_append_new(assumed, json_string(cluster_keys[i].key));
    if (!costs_are_given(job))
        (void)json_array_append_new(assumed, json_string("simulation.costs"));
    return json_pack("{s:i, s:i, s:f, s:I, s:f, s:o}", "nodes", (int)job->node_count, "hosts",
                     (int)tti_job_simulated_hosts(job), "cores", s->cores, "rate",
                     (json_int_t)s->rate, "latency", s->latency, "assumed", assumed);
}

static json_t *
error_json(const tt_job *job)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    int known = costs_are_given(job) && isfinite(s->error_median) && s->error_settings > 0;
    return json_pack("{s:b, s:o, s:o, s:I, s:o, s:o}", "known", known, "median",
                     number(known ? s->error_median : NAN), "p90",
                     number(known ? s->error_p90 : NAN), "settings", (json_int_t)s->error_settings,
                     "machine", text(s->machine), "at", text(s->measured_at));
}

tt_status
tti_forecast_json(const tti_forecast *f, const tt_job *job, FILE *out)
{
    char target[96];
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "job", job->name, "target",
                  target_text(job, target, sizeof target), "seeds", (json_int_t)f->seeds, "cluster",
                  cluster_json(job), "start_setting", tti_setting_json(job, &f->start), "start",
                  row_json(f, job, TTI_FORECAST_START), "tuned",
                  row_json(f, job, TTI_FORECAST_TUNED), "best", row_json(f, job, TTI_FORECAST_BEST),
                  "model_error", error_json(job), "wall_seconds", number(f->wall_s));
    if (object == NULL)
        return TT_NOMEM;
    int failed = json_dumpf(object, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
    json_decref(object);
    return failed ? TT_IO : TT_OK;
}
