// Data and model of a job, and the shape of its parameter table.
#include "job_internal.h"
#include <math.h>
#include <string.h>
#include <xxhash.h>

static tt_status
generate(tt_job *job, tt_error *err)
{
    const tti_spec *spec = &job->spec;
    tt_clicklog_truth truth;
    tt_clicklog_spec clicklog = {
        .row_count = (uint64_t)spec->generate_rows,
        .feature_count = (uint32_t)spec->generate_features,
        .field_count = (uint32_t)spec->generate_fields,
        .seed = (uint64_t)(spec->generate_seed > 0 ? spec->generate_seed : spec->seed)};
    TT_TRY(tt_generate_clicklog_dataset(&clicklog, &job->train, &truth, err));
    job->bayes_loss = truth.bayes_loss;
    if (spec->generate_test_rows == 0)
        return TT_OK;
    // The test rows are those that follow the training rows: the same truth, other rows.
    clicklog.first_row = clicklog.row_count;
    clicklog.row_count = (uint64_t)spec->generate_test_rows;
    return tt_generate_clicklog_dataset(&clicklog, &job->test, &truth, err);
}

static tt_csv_spec
csv_of(const tti_spec *spec)
{
    static const char delimiters[] = {0,   '\t', ',',
                                      ';', '|',  ' '}; // in the order of the key's names
    return (tt_csv_spec){.label = spec->csv_label,
                         .numeric = spec->csv_numeric,
                         .categorical = spec->csv_categorical,
                         .ignore = spec->csv_ignore,
                         .delimiter = delimiters[spec->csv_delimiter],
                         .header = spec->csv_header == 0   ? TT_CSV_HEADER_AUTO
                                   : spec->csv_header == 1 ? TT_CSV_HEADER_YES
                                                           : TT_CSV_HEADER_NO,
                         .hash_bits = (uint32_t)spec->csv_hash_bits,
                         .log_numeric = spec->csv_log_numeric};
}

static tt_status
read_some(const tti_spec *spec,
          const tt_config_paths *files,
          const tt_config_paths *labels,
          const tt_dataset *like,
          tt_dataset **out,
          tt_error *err)
{
    tt_csv_spec csv = csv_of(spec);
    tt_data_spec data = {.format = tti_format_names[spec->format],
                         .csv = &csv,
                         .paths = files->path,
                         .path_count = files->count,
                         .label_paths = labels != NULL ? labels->path : NULL,
                         .label_path_count = labels != NULL ? labels->count : 0,
                         .feature_count = (uint32_t)spec->features,
                         .threads = (int)spec->data_threads,
                         .like = like};
    return tt_dataset_open(&data, out, err);
}

static tt_status
read_files(tt_job *job, tt_error *err)
{
    const tti_spec *spec = &job->spec;
    TT_TRY(read_some(spec, spec->train, spec->labels, NULL, &job->train, err));
    if (spec->validation_file != NULL)
        TT_TRY(read_some(spec, spec->validation_file, spec->validation_labels, job->train,
                         &job->validation, err));
    if (spec->test_file == NULL)
        return TT_OK;
    return read_some(spec, spec->test_file, spec->test_labels, job->train, &job->test, err);
}

// Puts an error where a key of the job file stands.
static void
place_at(const tt_job *job, const char *key, tt_error *err)
{
    const tt_config_node *node = tt_config_find(job->config, NULL, key);
    if (err != NULL && node != NULL)
        (void)snprintf(err->where, sizeof err->where, "%.310s", tt_config_node_place(node));
}

static tt_status
hold_out(tt_job *job, tt_error *err)
{
    const tti_spec *spec = &job->spec;
    if (!(spec->validation_fraction > 0))
        return TT_OK;
    TT_TRY(tt_dataset_split(job->train, spec->validation_fraction, (uint64_t)spec->seed,
                            &job->validation, err));
    uint64_t left = job->train->row_count, held = job->validation->row_count;
    if (left > 0 && held > 0)
        return TT_OK;
    tt_status status = tt_error_set(
        err, TT_INVALID, NULL,
        held == 0 ? "hold out a larger share, or name files to validate on"
                  : "hold out a smaller share, or name files to validate on",
        "holding out %g %% of %llu rows leaves none to %s", 100 * spec->validation_fraction,
        (unsigned long long)(left + held), held == 0 ? "validate on" : "train on");
    place_at(job, "data.validation.fraction", err);
    return status;
}

static void
shape_table(tt_job *job)
{
    // in the order of tti_optimizer_names
    static const tt_ps_optimizer_kind rules[] = {TT_PS_SGD, TT_PS_ADAGRAD, TT_PS_MOMENTUM,
                                                 TT_PS_ADAM, TT_PS_FTRL};
    const tti_spec *spec = &job->spec;
    uint32_t rows = tt_model_rows(job->model);
    job->table = (tt_ps_table){.kind = spec->table == TT_PS_SPARSE ? TT_PS_SPARSE : TT_PS_DENSE,
                               .rows = rows,
                               .width = tt_model_width(job->model),
                               .consistency = (tt_ps_consistency)spec->consistency,
                               .slice_count = (uint32_t)spec->slices,
                               .optimizer = rules[spec->optimizer],
                               .learning_rate = spec->learning_rate,
                               .schedule = (tt_ps_schedule)spec->schedule,
                               .decay = spec->decay,
                               .epsilon = spec->epsilon,
                               .momentum = spec->momentum,
                               .nesterov = spec->nesterov,
                               .beta1 = spec->beta1,
                               .beta2 = spec->beta2,
                               .l1 = spec->l1,
                               .ftrl_beta = spec->ftrl_beta,
                               .averaging = spec->averaging,
                               .keeps_past = spec->engine != TTI_ENGINE_THREADS,
                               .replicas = (int)spec->replicas};
    if (spec->decay_per_epoch)
        job->table.decay /= tti_job_epoch_iterations(job);
    // At least 32, so that the number of partitions is the same for any small number of nodes. In
    // place there is nothing to place: one partition.
    uint32_t servers_max = TT_MAX(job->node_count - 1, 8u);
    job->table.partition_count =
        spec->driver == TTI_DRIVER_IN_PLACE && job->table.kind == TT_PS_DENSE
            ? 1
            : tt_ps_partition_count_for(rows, servers_max);
    if (spec->driver == TTI_DRIVER_IN_PLACE && spec->consistency == TT_PS_BSP)
        job->table.partition_count = 1;
}

static tt_status
check_rows(const tt_job *job, tt_error *err)
{
    uint64_t rows = job->train->row_count;
    if (job->spec.consistency == TT_PS_BSP && rows < (uint64_t)job->spec.slices)
        return tt_error_set(err, TT_INVALID,
                            job->spec.train != NULL ? job->spec.train->path[0] : NULL,
                            "lower bsp_slices", "%llu rows cannot be dealt to %lld slices",
                            (unsigned long long)rows, (long long)job->spec.slices);
    return TT_OK;
}

static uint32_t
shard_count(const tt_job *job)
{
    uint64_t rows = job->train->row_count;
    uint64_t shards =
        job->spec.shards > 0 ? (uint64_t)job->spec.shards : TT_MIN(96u, rows / 16 + 1);
    shards = TT_MIN(shards, rows);
    uint64_t slices = (uint64_t)job->spec.slices;
    if (job->spec.consistency == TT_PS_BSP) // every slice has the same number of shards
        shards = TT_MAX(shards / slices, 1u) * slices;
    return (uint32_t)shards;
}

// The model says what does not fit the data; the line to change is in the job file.
static void
place_at_model(const tt_job *job, tt_error *err)
{
    int pull = job->spec.pull == TT_MODEL_PULL_KEYED && job->train->layout != TT_DATA_SPARSE;
    place_at(job, pull ? "model.pull" : "model.kind", err);
}

tt_status
tti_job_data(tt_job *job, tt_error *err)
{
    const tti_spec *spec = &job->spec;
    job->bayes_loss = job->prior_loss = NAN;
    TT_TRY(spec->format == TTI_FORMAT_CLICKLOG ? generate(job, err) : read_files(job, err));
    TT_TRY(hold_out(job, err));
    TT_TRY(check_rows(job, err));
    tt_model_config model = {.kind = tti_model_names[spec->model],
                             .l2 = spec->l2,
                             .bias = spec->bias,
                             .pull = spec->table == TT_PS_SPARSE ? TT_MODEL_PULL_KEYED : spec->pull,
                             .batch_hint = (uint32_t)spec->batch_size};
    tt_status status = tt_model_open(&model, job->train, &job->model, err);
    if (status != TT_OK) {
        place_at_model(job, err);
        return status;
    }
    if (job->validation != NULL)
        job->prior_loss = tt_model_prior_loss(job->model, job->train, job->validation);
    shape_table(job);
    return tt_shards_open(job->train, shard_count(job), (uint64_t)spec->seed, &job->shards, err);
}

uint32_t
tti_job_slice_rows(const tt_job *job, uint32_t slice)
{
    uint32_t batch = (uint32_t)job->spec.batch_size, slices = (uint32_t)job->spec.slices;
    return batch / slices + (slice < batch % slices);
}

double
tti_job_epoch_iterations(const tt_job *job)
{
    return TT_MAX((double)job->train->row_count / (double)job->spec.batch_size, 1.0);
}

// ---- digest ------------------------------------------------------------------------------------

static uint64_t
mix(uint64_t digest, const void *bytes, uint64_t size)
{
    return bytes != NULL && size > 0 ? XXH3_64bits_withSeed(bytes, size, digest) : digest;
}

uint64_t
tti_job_data_digest(const tt_job *job)
{
    const tt_dataset *data = job->train;
    uint64_t rows = data->row_count, entries = data->nonzero_count;
    const uint64_t shape[] = {(uint64_t)data->layout, rows, data->feature_count, entries,
                              data->class_count};
    uint64_t digest = mix(0, shape, sizeof shape);
    digest = mix(digest, data->label, rows * sizeof *data->label);
    digest = mix(digest, data->row_begin, (rows + 1) * sizeof *data->row_begin);
    digest = mix(digest, data->index, entries * sizeof *data->index);
    digest = mix(digest, data->value, entries * sizeof *data->value);
    digest = mix(digest, data->bytes, entries * sizeof *data->bytes);
    return mix(digest, data->floats, entries * sizeof *data->floats);
}
