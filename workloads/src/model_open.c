// The kinds of models; opening and closing.
#include "model_internal.h"
#include "tt/core_config.h"
#include <math.h>
#include <string.h>

static double
loss_logistic(const tt_vec_ops *ops,
              float *scores,
              const float *sign,
              const uint16_t *label,
              float scale,
              float *each,
              size_t n,
              size_t width)
{
    TT_UNUSED(label);
    TT_UNUSED(width);
    return ops->logistic(scores, sign, scale, scores, each, n);
}

static double
loss_hinge(const tt_vec_ops *ops,
           float *scores,
           const float *sign,
           const uint16_t *label,
           float scale,
           float *each,
           size_t n,
           size_t width)
{
    TT_UNUSED(label);
    TT_UNUSED(width);
    return ops->hinge(scores, sign, scale, scores, each, n);
}

static double
loss_softmax(const tt_vec_ops *ops,
             float *scores,
             const float *sign,
             const uint16_t *label,
             float scale,
             float *each,
             size_t n,
             size_t width)
{
    TT_UNUSED(sign);
    return ops->softmax(scores, label, scale, each, n, width);
}

static const tti_model_kind kinds[] = {
    {"logistic_regression", 1, loss_logistic},
    {"linear_svm", 1, loss_hinge},
    {"softmax_regression", 0, loss_softmax},
};

const char *
tt_model_kind_name(size_t index)
{
    return index < TT_COUNT_OF(kinds) ? kinds[index].name : NULL;
}

const tti_model_kind *
tti_model_kind_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < TT_COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static tt_status
refuse_kind(const char *name, tt_error *err)
{
    const char *names[TT_COUNT_OF(kinds) + 1] = {NULL};
    for (size_t i = 0; i < TT_COUNT_OF(kinds); i++)
        names[i] = kinds[i].name;
    char advice[160];
    const char *near = name != NULL ? tt_config_nearest(name, names) : NULL;
    if (near != NULL)
        (void)snprintf(advice, sizeof advice, "did you mean '%s'?", near);
    else
        (void)snprintf(advice, sizeof advice, "the kinds are %s, %s and %s", names[0], names[1],
                       names[2]);
    return tt_error_set(err, TT_INVALID, "model", advice, "unknown model kind '%s'",
                        name != NULL ? name : "");
}

static tt_status
check_labels(const tti_model_kind *kind, const tt_dataset *train, tt_error *err)
{
    if (train->class_count < 2)
        return tt_error_set(err, TT_INVALID, "model", "give training data with class labels",
                            "%s needs classes, the training data have %s", kind->name,
                            train->class_count == 0 ? "real-valued targets" : "one class only");
    if (kind->binary && train->class_count != 2)
        return tt_error_set(err, TT_INVALID, "model", "use softmax_regression",
                            "%s is for two classes, the training data have %u", kind->name,
                            train->class_count);
    return TT_OK;
}

static tt_status
check_config(const tt_model_config *config,
             const tti_model_kind *kind,
             const tt_dataset *train,
             tt_error *err)
{
    if ((train->row_count == 0 && !config->trained) || train->feature_count == 0)
        return tt_error_set(err, TT_INVALID, "model", "check the data",
                            "the training data are empty");
    if (!(config->l2 >= 0) || !isfinite(config->l2))
        return tt_error_set(err, TT_RANGE, "model", "give 0 for none",
                            "l2 is %g, it must be at least 0", config->l2);
    if (config->pull == TT_MODEL_PULL_KEYED && train->layout != TT_DATA_SPARSE)
        return tt_error_set(err, TT_INVALID, "model", "use pull auto or whole",
                            "keyed pulls are for sparse data; these are dense");
    return check_labels(kind, train, err);
}

// auto: keyed when the table is clearly larger than what a batch touches.
static int
choose_keyed(const tt_model_config *config, const tt_model *model)
{
    const tt_dataset *train = model->train;
    if (config->pull != TT_MODEL_PULL_AUTO || train->layout != TT_DATA_SPARSE || config->trained)
        return config->pull == TT_MODEL_PULL_KEYED;
    const double batch = config->batch_hint > 0 ? config->batch_hint : 64;
    const double touched = batch * (double)train->nonzero_count / (double)train->row_count;
    return (double)model->rows > 4 * touched;
}

static tt_status
open_checked(const tt_model_config *config,
             const tti_model_kind *kind,
             tt_model *model,
             tt_error *err)
{
    const tt_dataset *train = model->train;
    model->kind = kind;
    model->l2 = config->l2;
    model->bias = config->bias != 0;
    model->features = train->feature_count;
    model->width = kind->binary ? 1 : train->class_count;
    const uint64_t rows = (uint64_t)model->features + (model->bias ? 1 : 0);
    if (rows * model->width >= UINT64_C(1) << 31)
        return tt_error_set(err, TT_RANGE, "model", "hash the features to fewer",
                            "the table would have %llu rows of %u floats, 2^31 or more in all",
                            (unsigned long long)rows, model->width);
    model->rows = (uint32_t)rows;
    model->keyed = choose_keyed(config, model);
    if (model->keyed && model->l2 > 0 && tti_shares_open(&model->shares) != TT_OK)
        return tt_error_set(err, TT_NOMEM, "model", NULL, "no memory for the model");
    return TT_OK;
}

tt_status
tt_model_open(const tt_model_config *config, const tt_dataset *train, tt_model **out, tt_error *err)
{
    *out = NULL;
    const tti_model_kind *kind = tti_model_kind_find(config->kind);
    if (kind == NULL)
        return refuse_kind(config->kind, err);
    TT_TRY(check_config(config, kind, train, err));
    tt_model *model = tt_mem_zalloc(1, sizeof *model);
    if (model == NULL)
        return tt_error_set(err, TT_NOMEM, "model", NULL, "no memory for the model");
    model->train = train;
    tt_status status = open_checked(config, kind, model, err);
    if (status != TT_OK) {
        tt_model_close(model);
        return status;
    }
    *out = model;
    return TT_OK;
}

tt_status
tt_model_prepare(const tt_model *model, tt_error *err)
{
    if (model->shares == NULL || tti_shares_count(model->shares, model->train) == TT_OK)
        return TT_OK;
    return tt_error_set(err, TT_NOMEM, "model", NULL, "no memory for the feature counts");
}

void
tt_model_close(tt_model *model)
{
    if (model == NULL)
        return;
    tti_shares_close(model->shares);
    tt_mem_free(model);
}

const char *
tt_model_kind(const tt_model *model)
{
    return model->kind->name;
}

uint32_t
tt_model_rows(const tt_model *model)
{
    return model->rows;
}

uint32_t
tt_model_width(const tt_model *model)
{
    return model->width;
}

int
tt_model_keyed(const tt_model *model)
{
    return model->keyed;
}
