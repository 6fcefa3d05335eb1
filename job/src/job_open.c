// Opening a job: configuration, checks across keys, search space, data, model.
#include "job_internal.h"
#include "processes.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
name_job(tt_job *job, const tt_job_source *source)
{
    const char *name = job->spec.name;
    char stem[96] = "job";
    if (name == NULL && source->file_count > 0) {
        const char *path = source->files[0], *slash = strrchr(path, '/');
        (void)snprintf(stem, sizeof stem, "%s", slash != NULL ? slash + 1 : path);
        char *dot = strrchr(stem, '.');
        if (dot != NULL && dot != stem)
            *dot = '\0';
        name = stem;
    }
    (void)snprintf(job->name, sizeof job->name, "%s", name != NULL ? name : "job");
    // The name becomes part of a directory's name.
    for (char *c = job->name; *c != '\0'; c++)
        if (*c == '/' || (unsigned char)*c <= ' ')
            *c = '-';
}

static void
need(tt_job *job, const char *path, const tt_config_paths *value, const char *format)
{
    // A key that is there without a usable value was complained about when it was read.
    if (value == NULL && !tt_config_given(job->config, path))
        tt_config_complain_key(job->config, path, "name the file",
                               "%s is needed with data.format %s", path, format);
}

static int
is_default(const tti_spec *spec, const tt_config_key *key)
{
    const char *given = (const char *)spec + key->offset,
               *text = key->default_text != NULL ? key->default_text : "0";
    if (key->kind == TT_CONFIG_INT) {
        int64_t value = strtoll(text, NULL, 10);
        return memcmp(given, &value, sizeof value) == 0;
    }
    if (key->kind == TT_CONFIG_REAL)
        return *(const double *)(const void *)given == strtod(text, NULL);
    if (key->kind == TT_CONFIG_STRING)
        return key->default_text != NULL &&
               strcmp(*(const char *const *)(const void *)given, key->default_text) == 0;
    int choice = *(const int *)(const void *)given;
    if (key->kind == TT_CONFIG_BOOL)
        return choice == (strcmp(text, "on") == 0);
    return key->kind == TT_CONFIG_ENUM && choice >= 0 && strcmp(key->values[choice], text) == 0;
}

// Whether the job file says something with this key: what is not its default. The resolved job.yaml
// of a run has every default written out and is a job file as well.
static int
says_something(const tt_job *job, const char *path)
{
    for (size_t i = 0; i < tti_job_key_count; i++)
        if (strcmp(tti_job_keys[i].path, path) == 0)
            return tt_config_given(job->config, path) && !is_default(&job->spec, &tti_job_keys[i]);
    return 0;
}

// Complains about a key that would have no effect.
static void
refuse(tt_job *job, const char *path, const char *why, const char *advice)
{
    if (says_something(job, path))
        tt_config_complain_key(job->config, path, advice, "%s %s", path, why);
}

static void
check_data_kind(tt_job *job)
{
    static const char *const generated[] = {"data.rows", "data.columns", "data.fields",
                                            "data.test.rows"};
    static const char *const read[] = {"data.train",           "data.labels",
                                       "data.test.file",       "data.test.labels",
                                       "data.validation.file", "data.validation.labels"};
    int format = job->spec.format;
    for (size_t i = 0; format >= 0 && i < TT_COUNT_OF(generated); i++)
        if (format != TTI_FORMAT_CLICKLOG)
            refuse(job, generated[i], "is for generated data only",
                   "take the line out, or set data.format: clicklog");
    for (size_t i = 0; format == TTI_FORMAT_CLICKLOG && i < TT_COUNT_OF(read); i++)
        refuse(job, read[i], "is for data in files, clicklog is generated",
               "take the line out, or set data.format to what the file holds");
    if (format == TTI_FORMAT_LIBSVM || format == TTI_FORMAT_CSV) {
        refuse(job, "data.labels", "is for idx data: text carries its labels", "take the line out");
        refuse(job, "data.test.labels", "is for idx data: text carries its labels",
               "take the line out");
        refuse(job, "data.validation.labels", "is for idx data: text carries its labels",
               "take the line out");
    }
    static const char *const csv[] = {
        "data.csv.label",     "data.csv.numeric", "data.csv.categorical", "data.csv.ignore",
        "data.csv.delimiter", "data.csv.header",  "data.csv.hash_bits",   "data.csv.log_numeric"};
    for (size_t i = 0; format >= 0 && format != TTI_FORMAT_CSV && i < TT_COUNT_OF(csv); i++)
        refuse(job, csv[i], "is for csv data", "take the line out, or set data.format: csv");
    if (format == TTI_FORMAT_CSV)
        refuse(job, "data.features", "does not apply: columns make the features",
               "take the line out, or set data.csv.hash_bits");
    if (format == TTI_FORMAT_CLICKLOG)
        refuse(job, "data.features", "is for data in files", "set data.columns");
    if (format == TTI_FORMAT_IDX && !tt_config_given(job->config, "data.test.file"))
        refuse(job, "data.test.labels", "is given without data.test.file", "name the test file");
    if (format == TTI_FORMAT_IDX && !tt_config_given(job->config, "data.validation.file"))
        refuse(job, "data.validation.labels", "is given without data.validation.file",
               "name the validation file");
}

// Files of labels belong to files of items by order.
static void
pair_labels(tt_job *job,
            const tt_config_paths *items,
            const tt_config_paths *labels,
            const char *items_key,
            const char *labels_key)
{
    if (items == NULL)
        return;
    need(job, labels_key, labels, "idx");
    if (labels != NULL && labels->count != items->count)
        tt_config_complain_key(
            job->config, labels_key, "name one file of labels for each file, in the same order",
            "%zu files of labels for %zu files in %s", labels->count, items->count, items_key);
}

static void
check_validation(tt_job *job)
{
    const tti_spec *spec = &job->spec;
    int given = tt_config_given(job->config, "data.validation.fraction") ||
                tt_config_given(job->config, "data.validation.file");
    if (spec->validation_file != NULL && spec->validation_fraction > 0)
        tt_config_complain_key(job->config, "data.validation.fraction",
                               "keep one of them, or set the other one to null",
                               "data.validation.fraction and data.validation.file exclude each "
                               "other");
    if (!given && spec->patience > 0)
        tt_config_complain_key(job->config, "stop.patience",
                               "add data.validation: 10%, or the files to validate on",
                               "stop.patience needs rows to validate on");
    if (!given)
        refuse(job, "stop.evaluate_every", "has no effect without data.validation",
               "take the line out, or add data.validation: 10%");
    if (!tt_config_given(job->config, "stop.patience"))
        refuse(job, "stop.min_delta", "has no effect without stop.patience",
               "take the line out, or set stop.patience");
}

static void
check_data(tt_job *job)
{
    tti_spec *spec = &job->spec;
    int clicklog = spec->format == TTI_FORMAT_CLICKLOG;
    check_data_kind(job);
    if (spec->format >= 0 && !clicklog)
        need(job, "data.train", spec->train, tti_format_names[spec->format]);
    if (spec->format == TTI_FORMAT_IDX) {
        need(job, "data.labels", spec->labels, "idx");
        pair_labels(job, spec->train, spec->labels, "data.train", "data.labels");
        pair_labels(job, spec->test_file, spec->test_labels, "data.test.file", "data.test.labels");
        pair_labels(job, spec->validation_file, spec->validation_labels, "data.validation.file",
                    "data.validation.labels");
    }
    check_validation(job);
    if (clicklog && spec->generate_fields > spec->generate_features)
        tt_config_complain_key(
            job->config, "data.fields", "lower data.fields or raise data.columns",
            "a row cannot have %lld non-zeros of %lld features", (long long)spec->generate_fields,
            (long long)spec->generate_features);
}

static void
check_hosts(tt_job *job)
{
    const tt_config_node *hosts = job->spec.hosts;
    if (hosts == NULL || tt_config_node_kind_of(hosts) != TT_CONFIG_SEQUENCE ||
        tt_config_node_count(hosts) == 0) {
        tt_config_complain_key(job->config, "cluster.hosts", "for example [alpha, beta]",
                               "engine ssh needs a list of hosts");
        return;
    }
    for (size_t i = 0; i < tt_config_node_count(hosts); i++) {
        const tt_config_node *host = tt_config_node_at(hosts, i);
        const char *name = tt_config_node_text(host);
        if (name == NULL || name[0] == '\0' || name[0] == '-')
            tt_config_complain(job->config, host, "for example alpha, or user@alpha",
                               "a host is a name that the remote shell knows");
    }
}

static void
check_cluster(tt_job *job)
{
    static const char *const of_ssh[] = {"cluster.hosts", "cluster.remote_shell", "cluster.program",
                                         "cluster.address", "cluster.encryption"};
    tti_spec *spec = &job->spec;
    if (spec->driver == TTI_DRIVER_MESSAGES && spec->nodes < 2)
        tt_config_complain_key(
            job->config, "cluster.nodes", "set nodes to 2 or more, or cluster.driver: in_place",
            "driver messages needs a server and a worker, that is 2 nodes, not %lld",
            (long long)spec->nodes);
    if (spec->engine == TTI_ENGINE_SIMULATED && spec->driver == TTI_DRIVER_IN_PLACE)
        tt_config_complain_key(job->config, "cluster.driver", "set cluster.driver: messages",
                               "simulated hosts have no memory in common");
    if ((spec->engine == TTI_ENGINE_LOCAL || spec->engine == TTI_ENGINE_SSH) &&
        spec->driver == TTI_DRIVER_IN_PLACE)
        tt_config_complain_key(job->config, "cluster.driver",
                               "set cluster.driver: messages, or cluster.engine: threads",
                               "processes have no memory in common");
    if (spec->engine == TTI_ENGINE_THREADS && spec->replicas > 0)
        tt_config_complain_key(job->config, "cluster.replicas",
                               "take the line out, or set cluster.engine: local",
                               "threads of one process die together: a copy would be of no use");
    if (spec->engine == TTI_ENGINE_SSH)
        check_hosts(job);
    for (size_t i = 0; spec->engine != TTI_ENGINE_SSH && i < TT_COUNT_OF(of_ssh); i++)
        refuse(job, of_ssh[i], "is for nodes on other hosts",
               "take the line out, or set cluster.engine: ssh");
    if (spec->engine != TTI_ENGINE_SIMULATED)
        refuse(job, "simulation.evaluate_pushes", "is for simulated hosts, whose clock can wait",
               "take the line out, or set cluster.engine: simulated");
    if (spec->engine != TTI_ENGINE_SIMULATED)
        refuse(job, "simulation.samples", "is for simulated hosts",
               "take the line out, or set cluster.engine: simulated");
    if (spec->consistency == TT_PS_BSP && spec->batch_size < spec->slices)
        tt_config_complain_key(job->config, "optimizer.batch_size",
                               "raise batch_size or lower bsp_slices",
                               "a round of %lld examples cannot be cut into %lld slices",
                               (long long)spec->batch_size, (long long)spec->slices);
    if (spec->driver == TTI_DRIVER_IN_PLACE && spec->method == TT_RECONFIG_DRAIN)
        refuse(job, "reconfig.method", "is for driver messages: in place nothing can move",
               "take the line out, or set cluster.driver: messages");
    if (spec->model == 2 && spec->driver == TTI_DRIVER_IN_PLACE && spec->table == TT_PS_SPARSE)
        tt_config_complain_key(job->config, "model.table", "set model.table: dense",
                               "softmax in place needs a dense table");
    if (spec->table == TT_PS_SPARSE && spec->pull == TT_MODEL_PULL_WHOLE)
        tt_config_complain_key(job->config, "model.pull", "set model.pull: keyed",
                               "a sparse table cannot be pulled whole");
    if (spec->script != NULL && spec->tuner_enabled &&
        tt_config_given(job->config, "tuner.enabled"))
        tt_config_complain_key(job->config, "tuner.script", "set tuner.enabled: off",
                               "a script and the tuner exclude each other");
    if (spec->script != NULL)
        spec->tuner_enabled = 0;
}

// A key of another optimiser has no effect.
static void
check_optimizer(tt_job *job)
{
    static const struct {
        const char *key, *of;
    } keys[] = {
        {"optimizer.momentum", "momentum"}, {"optimizer.nesterov", "momentum"},
        {"optimizer.beta1", "adam"},        {"optimizer.beta2", "adam"},
        {"optimizer.l1", "ftrl"},           {"optimizer.beta", "ftrl"},
    };
    const tti_spec *spec = &job->spec;
    const char *kind = tti_optimizer_names[TT_MAX(spec->optimizer, 0)];
    for (size_t i = 0; i < TT_COUNT_OF(keys); i++)
        if (strcmp(kind, keys[i].of) != 0 && says_something(job, keys[i].key))
            tt_config_complain_key(job->config, keys[i].key, "take the line out",
                                   "%s is for optimizer.kind %s, this one is %s", keys[i].key,
                                   keys[i].of, kind);
    if (strcmp(kind, "adagrad") != 0 && strcmp(kind, "adam") != 0)
        refuse(job, "optimizer.epsilon", "is for optimizer.kind adagrad and adam",
               "take the line out");
    if (spec->schedule != TT_PS_CONSTANT && spec->decay == 0)
        tt_config_complain_key(job->config, "optimizer.schedule",
                               "set optimizer.decay, for instance 1e-3",
                               "a schedule without decay is constant");
    if (spec->schedule == TT_PS_CONSTANT && spec->decay > 0)
        tt_config_complain_key(job->config, "optimizer.decay",
                               "set optimizer.schedule: inverse, or take the line out",
                               "optimizer.decay has no effect on a constant rate");
    if (spec->schedule == TT_PS_CONSTANT)
        refuse(job, "optimizer.decay_per", "has no effect on a constant rate", "take the line out");
}

static void
check_tuner(tt_job *job)
{
    tti_spec *spec = &job->spec;
    if (spec->tuner_without == NULL)
        return;
    if (!tt_tuner_rules_read(spec->tuner_without, &spec->without))
        tt_config_complain_key(job->config, "tuner.without",
                               "write names with + between them, such as guard+rest; "
                               "docs/report.md lists them",
                               "'%s' names a rule that the tuner does not have",
                               spec->tuner_without);
    else if (spec->tuner_model == TT_TUNER_MODEL_PAPER)
        refuse(job, "tuner.without", "is of the tuner's own way", "take the line out");
}

static void
check_stop(tt_job *job)
{
    tti_spec *spec = &job->spec;
    int target = spec->stop_loss == spec->stop_loss || spec->stop_objective == spec->stop_objective;
    if (spec->stop_loss == spec->stop_loss && spec->stop_objective == spec->stop_objective)
        tt_config_complain_key(job->config, "stop.objective", "keep one of them",
                               "stop.loss and stop.objective exclude each other");
    // Something must end every job: 100 epochs, or 1,000 as a backstop behind a target or a time.
    if (spec->stop_epochs != spec->stop_epochs)
        spec->stop_epochs =
            target || spec->stop_time == spec->stop_time || spec->patience > 0 ? 1000 : 100;
}

static tt_status
read_configuration(tt_job *job, const tt_job_source *source, FILE *errors, tt_error *err)
{
    for (size_t i = 0; i < source->file_count; i++)
        (void)tt_config_load_file(job->config, source->files[i], NULL); // faults are in the list
    if (source->text != NULL)
        (void)tt_config_load_text(job->config, source->text_name, source->text, NULL);
    (void)tt_config_spell_out(job->config, tti_job_keys, tti_job_key_count);
    if (tt_config_error_count(job->config) == 0) {
        for (size_t i = 0; i < source->override_count; i++)
            (void)tt_config_override(job->config, source->overrides[i], NULL);
        (void)tt_config_read(job->config, tti_job_keys, tti_job_key_count, &job->spec);
        name_job(job, source);
        job->node_count = (uint32_t)job->spec.nodes;
        check_data(job);
        check_cluster(job);
        check_optimizer(job);
        check_stop(job);
        check_tuner(job);
        if (job->node_count > 1 || job->spec.driver == TTI_DRIVER_IN_PLACE)
            TT_TRY(tti_job_space(job, err));
        TT_TRY(tti_job_curves(job, err));
        TT_TRY(tti_job_faults(job, err));
    }
    if (tt_config_error_count(job->config) == 0)
        return TT_OK;
    tt_config_errors_print(job->config, errors);
    return tt_error_set(err, TT_INVALID, NULL, NULL, "%zu errors in the configuration",
                        tt_config_error_count(job->config));
}

tt_status
tt_job_open(const tt_job_source *source, FILE *errors, tt_job **out, tt_error *err)
{
    *out = NULL;
    tt_job *job = tt_mem_zalloc(1, sizeof *job);
    if (job == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a job");
    job->run_lock = -1;
    tt_status status = tt_config_open(&job->config, err);
    if (status == TT_OK)
        status = read_configuration(job, source, errors, err);
    if (status == TT_OK)
        status = tti_job_data(job, err);
    if (status == TT_OK)
        tti_warm_find(job, source->cold);
    if (status != TT_OK) {
        tt_job_close(job);
        return status;
    }
    *out = job;
    return TT_OK;
}

void
tt_job_close(tt_job *job)
{
    if (job == NULL)
        return;
    tti_processes_close(job);
    if (job->run_lock >= 0)
        (void)close(job->run_lock);
    tt_shards_close(job->shards);
    tt_model_close(job->model);
    tt_dataset_close(job->test);
    tt_dataset_close(job->validation);
    tt_dataset_close(job->train);
    tt_mem_free(job->script);
    tt_mem_free(job->faults);
    tt_mem_free(job->master_deaths);
    tt_curves_close(job->curves);
    tt_knob_registry_close(job->registry);
    tt_config_close(job->config);
    tt_mem_free(job);
}
