// Evaluating and predicting with a saved model.
#include "model_file.h"
#include "tt/job_saved.h"
#include <math.h>
#include <string.h>

struct tt_job_model {
    char where[320];
    tti_saved_model saved;
    tt_dataset *shape, *sparse; // of the training data; of LIBSVM text with the same features
};

tt_status
tt_job_model_open(const char *path, tt_job_model **out, tt_error *err)
{
    *out = NULL;
    tt_job_model *model = tt_mem_zalloc(1, sizeof *model);
    if (model == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for the model");
    (void)snprintf(model->where, sizeof model->where, "%s", path);
    tt_status status = tti_saved_model_open(path, &model->saved, err);
    if (status == TT_OK)
        status = tt_dataset_shape_open(&model->saved.shape, path, &model->shape, err);
    if (status == TT_OK && model->saved.shape.layout != TT_DATA_SPARSE) {
        tt_data_shape sparse = model->saved.shape;
        sparse.layout = TT_DATA_SPARSE;
        status = tt_dataset_shape_open(&sparse, path, &model->sparse, err);
    }
    if (status != TT_OK) {
        tt_job_model_close(model);
        return status;
    }
    *out = model;
    return TT_OK;
}

void
tt_job_model_close(tt_job_model *model)
{
    if (model == NULL)
        return;
    tt_dataset_close(model->shape);
    tt_dataset_close(model->sparse);
    tti_saved_model_close(&model->saved);
    tt_mem_free(model);
}

const char *
tt_job_model_kind(const tt_job_model *model)
{
    return model->saved.kind;
}

uint32_t
tt_job_model_features(const tt_job_model *model)
{
    return model->saved.shape.feature_count;
}

// ---- one use ----------------------------------------------------------------------------------

typedef struct model_use {
    const char *format;
    const tt_dataset *like;
    tt_model *model;
} model_use;

// Data of the format that the model was trained on. LIBSVM text has the features of any but CSV,
// whose features nobody but its columns tells.
static tt_status
choose_format(const tt_job_model *model, const char *format, model_use *out, tt_error *err)
{
    const char *own = model->saved.data_format;
    char advice[160];
    out->format = format != NULL ? format : own;
    out->like = model->shape;
    if (strcmp(out->format, own) == 0)
        return TT_OK;
    if (strcmp(out->format, "libsvm") == 0 && model->sparse != NULL) {
        out->like = model->sparse;
        return TT_OK;
    }
    (void)snprintf(advice, sizeof advice, "give it %s data%s", own,
                   model->sparse != NULL ? ", or libsvm text of the same features" : "");
    return tt_error_set(err, TT_INVALID, model->where, advice,
                        "the model was trained on %s data and cannot read %.40s", own, out->format);
}

static tt_status
open_use(const tt_job_model *model, const char *format, model_use *out, tt_error *err)
{
    const tti_saved_model *saved = &model->saved;
    *out = (model_use){0};
    TT_TRY(choose_format(model, format, out, err));
    tt_model_config config = {
        .kind = saved->kind, .l2 = saved->l2, .bias = saved->bias, .trained = 1};
    TT_TRY(tt_model_open(&config, out->like, &out->model, err));
    if (tt_model_width(out->model) == saved->width)
        return TT_OK;
    tt_model_close(out->model);
    return tt_error_set(err, TT_CORRUPT, model->where, "train again: trimtab run RUN/job.yaml",
                        "the model is damaged: %u columns of weights for %u classes", saved->width,
                        saved->shape.class_count);
}

static tt_status
check_labels(const model_use *opened, const tt_job_use *use, tt_error *err)
{
    int idx = strcmp(opened->format, "idx") == 0;
    if (idx == (use->label_count > 0))
        return TT_OK;
    return tt_error_set(err, TT_INVALID, use->files[0], idx ? "name it with --labels FILE" : NULL,
                        idx ? "idx data need a second file with the labels"
                            : "--labels is for idx data: %s carries its labels",
                        opened->format);
}

// Readers advise for a job file.
static tt_status
no_job_here(tt_status status, tt_error *err)
{
    if (status == TT_NOTFOUND && err != NULL)
        (void)snprintf(err->advice, sizeof err->advice, "check the path");
    return status;
}

static void
add_metric(tt_job_evaluation *out, const char *name, double value)
{
    if (isfinite(value))
        out->metric[out->metric_count++] = (tt_job_metric){name, value};
}

static tt_status
evaluate(const tt_job_model *model,
         const model_use *use,
         const tt_data_spec *spec,
         tt_job_evaluation *out,
         tt_error *err)
{
    tt_dataset *data;
    tt_model_metrics metrics;
    TT_TRY(tt_dataset_open(spec, &data, err));
    int threads = spec->threads > 0 ? spec->threads : tt_thread_processor_count();
    tt_status status =
        tt_model_evaluate(use->model, data, model->saved.params, threads, &metrics, err);
    if (status == TT_OK) {
        const char *names;
        out->rows = metrics.rows;
        out->objective = metrics.objective;
        add_metric(out, "loss", metrics.loss);
        add_metric(out, "accuracy", metrics.accuracy);
        add_metric(out, "auc", metrics.auc);
        out->unknown.entries = data->unknown_entries;
        out->unknown.rows = data->unknown_rows;
        out->unknown.columns = tt_dataset_unknown_columns(data, &names);
        (void)snprintf(out->unknown.names, sizeof out->unknown.names, "%s", names);
    }
    tt_dataset_close(data);
    return status;
}

tt_status
tt_job_model_evaluate(const tt_job_model *model,
                      const tt_job_use *use,
                      tt_job_evaluation *out,
                      tt_error *err)
{
    *out = (tt_job_evaluation){0};
    model_use opened;
    TT_TRY(open_use(model, use->format, &opened, err));
    tt_status fits = check_labels(&opened, use, err);
    if (fits != TT_OK) {
        tt_model_close(opened.model);
        return fits;
    }
    tt_data_spec spec = {.format = opened.format,
                         .paths = use->files,
                         .path_count = use->file_count,
                         .label_paths = use->labels,
                         .label_path_count = use->label_count,
                         .threads = use->threads,
                         .like = opened.like,
                         .ignore_unknown = 1};
    tt_status status = evaluate(model, &opened, &spec, out, err);
    tt_model_close(opened.model);
    return no_job_here(status, err);
}

tt_status
tt_job_model_predict(const tt_job_model *model,
                     const tt_job_use *use,
                     tt_job_prediction what,
                     const char *output_path,
                     uint64_t *rows,
                     tt_job_unknown *unknown,
                     tt_error *err)
{
    *rows = 0;
    *unknown = (tt_job_unknown){0};
    if (what == TT_JOB_PREDICT_PROBABILITIES && strcmp(model->saved.kind, "linear_svm") == 0)
        return tt_error_set(err, TT_INVALID, model->where, "ask for decision values: --scores",
                            "%s has no probabilities", model->saved.kind);
    model_use opened;
    TT_TRY(open_use(model, use->format, &opened, err));
    tt_predict_spec spec = {.model = opened.model,
                            .params = model->saved.params,
                            .like = opened.like,
                            .format = opened.format,
                            .paths = use->files,
                            .path_count = use->file_count,
                            .output_path = output_path,
                            .columns = what == TT_JOB_PREDICT_LABEL ? TT_PREDICT_LABEL
                                       : what == TT_JOB_PREDICT_PROBABILITIES
                                           ? TT_PREDICT_PROBABILITIES
                                           : TT_PREDICT_SCORES,
                            .threads = use->threads};
    tt_predict_result result;
    tt_status status = tt_predict(&spec, &result, err);
    *rows = result.rows;
    unknown->entries = result.unknown_entries;
    unknown->rows = result.unknown_rows;
    unknown->columns = result.unknown_columns;
    (void)snprintf(unknown->names, sizeof unknown->names, "%s", result.unknown_names);
    tt_model_close(opened.model);
    return no_job_here(status, err);
}
