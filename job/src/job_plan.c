// The resolved job and its search space, without running anything.
#include "job_internal.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

static const char *
effect_text(const tt_knob *knob)
{
    switch (knob->effect & (TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL)) {
    case TT_KNOB_MOVES_DATA:
        return "moves data";
    case TT_KNOB_MOVES_MODEL:
        return "moves parameters";
    case TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL:
        return "moves parameters and data";
    default:
        return "setting only";
    }
}

static void
print_knob(FILE *out, const tt_space_knob *knob)
{
    char start[48], low[48], high[48], range[112];
    (void)tt_space_format(knob, knob->start, start, sizeof start);
    (void)tt_space_format(knob, knob->min, low, sizeof low);
    (void)tt_space_format(knob, knob->max, high, sizeof high);
    if (knob->fixed) {
        (void)fprintf(out, "  %-17s fixed %-22s %s\n", knob->knob->id, start, knob->reason);
        return;
    }
    (void)snprintf(range, sizeof range, "%s .. %s", low, high);
    (void)fprintf(out, "  %-17s %-28s start %-14s %s\n", knob->knob->id, range, start,
                  effect_text(knob->knob));
}

// The files in the order in which they are read.
static void
print_files(const char *what, const tt_config_paths *files, FILE *out)
{
    enum { SHOWN = 6 };
    if (files == NULL || files->count < 2)
        return;
    (void)fprintf(out, "              %s: %zu files, read in this order:\n", what, files->count);
    for (size_t i = 0; i < files->count; i++)
        if (files->count <= SHOWN || i < SHOWN - 2 || i == files->count - 1)
            (void)fprintf(out, "                %s\n", files->path[i]);
        else if (i == SHOWN - 2)
            (void)fprintf(out, "                ... %zu more ...\n", files->count - SHOWN + 1);
}

static void
print_validation(const tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    char every[48] = "epoch";
    if (job->validation == NULL)
        return;
    if (spec->evaluate_every != 1)
        (void)snprintf(every, sizeof every, "%g epochs", spec->evaluate_every);
    (void)fprintf(out, "validation    %llu rows", (unsigned long long)job->validation->row_count);
    if (spec->validation_file != NULL)
        (void)fprintf(out, " (%s)", spec->validation_file->path[0]);
    else
        (void)fprintf(out, " held out (%g %%, by seed and row number)",
                      100 * spec->validation_fraction);
    (void)fprintf(out, ", evaluated every %s; loss of the classes' shares alone %.4f\n", every,
                  job->prior_loss);
    print_files("validation", spec->validation_file, out);
}

static void
print_data(const tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    double bytes = job->train->layout == TT_DATA_SPARSE
                       ? (double)job->train->nonzero_count * (job->train->value != NULL ? 8 : 4)
                   : job->train->layout == TT_DATA_DENSE_U8
                       ? (double)job->train->nonzero_count
                       : 4.0 * (double)job->train->nonzero_count;
    (void)fprintf(out, "data          %llu train rows", (unsigned long long)job->train->row_count);
    if (job->test != NULL)
        (void)fprintf(out, ", %llu test rows", (unsigned long long)job->test->row_count);
    (void)fprintf(out, " (%s%s%s), %.1f non-zeros a row, %.0f MB, %u shards\n",
                  tti_format_names[spec->format], spec->train != NULL ? ", " : "",
                  spec->train != NULL ? spec->train->path[0] : "",
                  (double)job->train->nonzero_count / (double)job->train->row_count, bytes / 1e6,
                  tt_shards_count(job->shards));
    print_files("train", spec->train, out);
    print_files("test", spec->test_file, out);
    if (job->train->category_count > 0)
        (void)fprintf(
            out,
            "              %llu categories hashed to 2^%lld features, %llu of them (%.1f %%) "
            "to one that another has\n",
            (unsigned long long)job->train->category_count, (long long)spec->csv_hash_bits,
            (unsigned long long)job->train->category_collisions,
            100 * (double)job->train->category_collisions / (double)job->train->category_count);
    if (isfinite(job->bayes_loss))
        (void)fprintf(out,
                      "              generated; no model can have a mean loss below about %.4f on "
                      "fresh rows\n",
                      job->bayes_loss);
}

static void
print_end(const tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    (void)fprintf(out, "end           ");
    if (isfinite(spec->stop_loss))
        (void)fprintf(out, "training loss <= %g, or ", spec->stop_loss);
    if (isfinite(spec->stop_objective))
        (void)fprintf(out, "objective <= %g, or ", spec->stop_objective);
    if (isfinite(spec->stop_time))
        (void)fprintf(out, "%g s, or ", spec->stop_time);
    if (spec->patience > 0)
        (void)fprintf(out, "%lld validations without improvement by more than %g, or ",
                      (long long)spec->patience, spec->min_delta);
    (void)fprintf(out, "%g epochs\n", spec->stop_epochs);
}

static void
print_space(const tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    uint32_t free_knobs = tt_space_free_count(&job->space);
    char tuner[TTI_TUNER_TEXT_BYTES];
    if (job->script_count > 0)
        (void)fprintf(out, "tuning        off: a script of %u settings\n", job->script_count);
    else if (!spec->tuner_enabled || free_knobs == 0)
        (void)fprintf(out, "tuning        off%s\n", free_knobs == 0 ? ": every knob is fixed" : "");
    else
        (void)fprintf(out, "tuning        %u knobs, about %.1e settings; starts %s; %s\n",
                      free_knobs, exp(tt_space_log_size(&job->space)),
                      tti_warm_used(job) ? "warm" : "cold",
                      tti_job_tuner_text(job, tuner, sizeof tuner));
    for (uint32_t k = 0; k < job->space.count; k++)
        if (!job->space.knob[k].absent)
            print_knob(out, &job->space.knob[k]);
    for (uint32_t k = 0; k < job->space.count; k++)
        if (job->space.knob[k].absent)
            (void)fprintf(out, "  %-17s not in this job: %s\n", job->space.knob[k].knob->id,
                          job->space.knob[k].reason);
}

// What earlier runs would give this one, and why.
static void
print_warm(const tt_job *job, FILE *out)
{
    const tti_warm *warm = &job->warm;
    char text[512];
    tt_setting own;
    tt_space_start(&job->space, &own);
    (void)fprintf(out, "repository    %s: %s\n", warm->path[0] != '\0' ? warm->path : "none",
                  warm->reason);
    if (warm->trouble[0] != '\0')
        (void)fprintf(out, "              %s\n", warm->trouble);
    if (warm->begins)
        (void)fprintf(out, "              where that differs from the job's own start: %s\n",
                      tt_setting_format(&job->space, &warm->start, &own, text, sizeof text));
    if (warm->begins && warm->clipped[0] != '\0')
        (void)fprintf(out, "              outside this job's ranges, so %s\n", warm->clipped);
    for (uint32_t i = 0; i < warm->run_count; i++)
        (void)fprintf(out, "  %-44s distance %.2f, %u measurements; %s\n", warm->runs[i].id,
                      warm->runs[i].distance, warm->runs[i].settings,
                      warm->runs[i].differs[0] != '\0' ? warm->runs[i].differs : "same job");
}

static void
print_cluster(const tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    (void)fprintf(out, "cluster       %u nodes ", job->node_count);
    if (spec->engine == TTI_ENGINE_SIMULATED)
        (void)fprintf(out, "on %u simulated hosts of %g cores", tti_job_simulated_hosts(job),
                      spec->simulation.cores);
    else
        (void)fprintf(out, "as %s on this machine (%d processors)",
                      spec->engine == TTI_ENGINE_LOCAL ? "processes"
                      : spec->engine == TTI_ENGINE_SSH ? "processes of hosts"
                                                       : "threads",
                      tt_thread_processor_count());
    (void)fprintf(out, ", driver %s, %s%s\n", tti_driver_names[spec->driver],
                  tti_consistency_names[spec->consistency],
                  spec->replicas > 0 ? ", every partition on two nodes" : "");
}

tt_status
tt_job_plan_text(tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    (void)fprintf(out, "%s   %s, %u features", job->name, tti_model_names[spec->model],
                  job->train->feature_count);
    if (job->train->class_count > 2)
        (void)fprintf(out, ", %u classes", job->train->class_count);
    (void)fprintf(out, ", l2 %g%s\n", spec->l2, spec->bias ? ", bias" : "");
    print_data(job, out);
    print_validation(job, out);
    (void)fprintf(out,
                  "parameters    %llu x %u floats in %u partitions, %s table, workers pull %s\n",
                  (unsigned long long)job->table.rows, job->table.width, job->table.partition_count,
                  job->table.kind == TT_PS_SPARSE ? "sparse" : "dense",
                  tt_model_keyed(job->model) ? "the rows a batch touches" : "the whole table");
    (void)fprintf(out, "optimizer     %s, learning rate %g, %lld examples a %s%s\n",
                  tti_optimizer_names[spec->optimizer], spec->learning_rate,
                  (long long)spec->batch_size, spec->consistency == TT_PS_BSP ? "round" : "push",
                  spec->averaging ? ", averaged iterates" : "");
    print_cluster(job, out);
    print_end(job, out);
    print_warm(job, out);
    print_space(job, out);
    return ferror(out) ? TT_IO : TT_OK;
}

static json_t *
number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
files_json(const tt_config_paths *files)
{
    json_t *list = json_array();
    for (size_t i = 0; files != NULL && i < files->count; i++)
        (void)json_array_append_new(list, json_string(files->path[i]));
    return list;
}

static json_t *
knob_json(const tt_space_knob *knob)
{
    char start[64], low[64], high[64];
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s, s:s, s:s}", "id", knob->knob->id, "min",
                     tt_space_format(knob, knob->min, low, sizeof low), "max",
                     tt_space_format(knob, knob->max, high, sizeof high), "start",
                     tt_space_format(knob, knob->start, start, sizeof start), "fixed", knob->fixed,
                     "absent", knob->absent, "scale", knob->log_scale ? "log2" : "linear", "effect",
                     effect_text(knob->knob), "reason", knob->reason);
}

static json_t *
warm_json(const tt_job *job)
{
    const tti_warm *warm = &job->warm;
    json_t *runs = json_array();
    for (uint32_t i = 0; i < warm->run_count; i++)
        (void)json_array_append_new(
            runs, json_pack("{s:s, s:s, s:f, s:s, s:i}", "run", warm->runs[i].id, "job",
                            warm->runs[i].name, "distance", warm->runs[i].distance, "differs",
                            warm->runs[i].differs, "measurements", (int)warm->runs[i].settings));
    tt_setting start;
    tti_warm_begin(job, 1, &start);
    return json_pack("{s:s, s:b, s:s, s:s, s:s, s:i, s:o, s:o}", "path", warm->path, "used",
                     tti_warm_used(job), "reason", warm->reason, "clipped", warm->clipped,
                     "trouble", warm->trouble, "runs_there", (int)warm->runs_there, "runs", runs,
                     "start_setting", tti_setting_json(job, &start));
}

tt_status
tt_job_plan_json(tt_job *job, FILE *out)
{
    const tti_spec *spec = &job->spec;
    char tuner[TTI_TUNER_TEXT_BYTES];
    json_t *knobs = json_array();
    for (uint32_t k = 0; k < job->space.count; k++)
        (void)json_array_append_new(knobs, knob_json(&job->space.knob[k]));
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:b, s:s, s:i, "
        "s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:o}",
        "job", job->name, "model", tti_model_names[spec->model], "rows",
        (json_int_t)job->train->row_count, "test_rows",
        (json_int_t)(job->test != NULL ? job->test->row_count : 0), "features",
        (json_int_t)job->train->feature_count, "classes", (json_int_t)job->train->class_count,
        "partitions", (json_int_t)job->table.partition_count, "driver",
        tti_driver_names[spec->driver], "consistency", tti_consistency_names[spec->consistency],
        "nodes", (int)job->node_count, "stop_loss", number(spec->stop_loss), "stop_objective",
        number(spec->stop_objective), "max_epochs", number(spec->stop_epochs), "max_time",
        number(spec->stop_time), "tuned", spec->tuner_enabled, "tuner",
        tti_job_tuner_text(job, tuner, sizeof tuner), "free_knobs",
        (int)tt_space_free_count(&job->space), "log_settings",
        number(tt_space_log_size(&job->space)), "repository", warm_json(job), "knobs", knobs,
        "validation_rows", (json_int_t)(job->validation != NULL ? job->validation->row_count : 0),
        "prior_loss", number(job->prior_loss), "train_files", files_json(spec->train), "patience",
        (json_int_t)spec->patience, "test_files", files_json(spec->test_file));
    if (object == NULL)
        return TT_NOMEM;
    int failed = json_dumpf(object, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
    json_decref(object);
    return failed ? TT_IO : TT_OK;
}
