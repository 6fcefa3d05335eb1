// Loss and gradient of a part of a batch, and the regulariser.
#include "model_internal.h"

tt_status
tt_model_scratch_alloc(const tt_model *model, uint32_t max_rows, tt_model_scratch **out)
{
    *out = NULL;
    tt_model_scratch *scratch = tt_mem_zalloc(1, sizeof *scratch);
    if (scratch == NULL)
        return TT_NOMEM;
    const int dense = model->train->layout != TT_DATA_SPARSE;
    const uint32_t block = dense ? TTI_BLOCK_DENSE : TTI_BLOCK_SPARSE;
    scratch->block_rows = max_rows > 0 && max_rows < block ? max_rows : block;
    scratch->scores =
        tt_mem_zalloc_vector((size_t)scratch->block_rows * model->width, sizeof(float));
    if (dense && model->width > 1)
        scratch->workspace =
            tt_mem_zalloc_vector((size_t)model->features * model->width, sizeof(float));
    if (scratch->scores == NULL || (dense && model->width > 1 && scratch->workspace == NULL)) {
        tt_model_scratch_free(scratch);
        return TT_NOMEM;
    }
    *out = scratch;
    return TT_OK;
}

void
tt_model_scratch_free(tt_model_scratch *scratch)
{
    if (scratch == NULL)
        return;
    tt_mem_free(scratch->scores);
    tt_mem_free(scratch->workspace);
    tt_mem_free(scratch);
}

void
tti_model_add_bias(
    const tt_model *model, const float *params, uint32_t bias_row, float *scores, size_t n)
{
    if (!model->bias)
        return;
    const size_t width = model->width;
    const float *bias = params + (size_t)bias_row * width;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++)
            scores[i * width + k] += bias[k];
}

// gradient of the bias row += column sums of the coefficients, summed in double.
static void
add_bias_gradient(const tt_model *model, const float *coefficient, size_t n, float *gradient)
{
    const size_t width = model->width;
    for (size_t k = 0; k < width; k++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)coefficient[i * width + k];
        gradient[k] += (float)sum;
    }
}

// What the blocks of one call have in common.
typedef struct part {
    const tt_model *model;
    const tt_vec_ops *ops;
    const tt_batch *batch;
    float scale;
    const float *params;
    float *gradient;
    float *each; // of the batch's first row; NULL: not wanted
    tt_model_scratch *scratch;
    uint32_t bias_row;
} part;

static double
block_loss(const part *p, uint32_t begin, size_t n)
{
    const tt_batch *batch = p->batch;
    float *scores = p->scratch->scores;
    tti_model_add_bias(p->model, p->params, p->bias_row, scores, n);
    const float *sign = batch->sign != NULL ? batch->sign + begin : NULL;
    const uint16_t *label = batch->label != NULL ? batch->label + begin : NULL;
    const size_t width = p->model->width;
    float *each = p->each != NULL ? p->each + begin : NULL;
    const double loss = p->model->kind->loss(p->ops, scores, sign, label, p->scale, each, n, width);
    if (p->model->bias)
        add_bias_gradient(p->model, scores, n, p->gradient + (size_t)p->bias_row * width);
    return loss;
}

static double
sparse_block(const part *p, uint32_t begin, size_t n)
{
    const tt_batch *batch = p->batch;
    const tt_dataset *data = batch->data;
    tt_vec_csr rows = {data->row_begin, data->index, data->value, batch->rows + begin, 0, n};
    if (p->model->keyed)
        rows = (tt_vec_csr){batch->begin, batch->index, batch->value, NULL, begin, n};
    p->ops->csr_dot(&rows, p->params, p->model->width, p->scratch->scores);
    const double loss = block_loss(p, begin, n);
    p->ops->csr_axpy(&rows, p->scratch->scores, p->model->width, p->gradient);
    return loss;
}

static double
dense_block(const part *p, uint32_t begin, size_t n)
{
    const tt_dataset *data = p->batch->data;
    const tt_vec_dense rows = {data->layout == TT_DATA_DENSE_U8 ? data->bytes : NULL,
                               data->floats,
                               data->scale,
                               data->feature_count,
                               p->batch->rows + begin,
                               0,
                               n};
    tt_model_scratch *scratch = p->scratch;
    p->ops->dense_dot(&rows, p->params, p->model->width, scratch->scores, scratch->workspace);
    const double loss = block_loss(p, begin, n);
    p->ops->dense_axpy(&rows, scratch->scores, p->model->width, p->gradient, scratch->workspace);
    return loss;
}

double
tt_model_loss_gradient(const tt_model *model,
                       const tt_vec_ops *ops,
                       const tt_batch *batch,
                       uint32_t row_begin,
                       uint32_t row_end,
                       float scale,
                       const float *params,
                       float *gradient,
                       float *each,
                       tt_model_scratch *scratch)
{
    TT_ASSERT(batch->model == model && row_begin <= row_end && row_end <= batch->row_count);
    const part p = {model, ops,     batch,
                    scale, params,  gradient,
                    each,  scratch, (model->keyed ? batch->key_count : model->rows) - 1};
    const int sparse = model->train->layout == TT_DATA_SPARSE;
    double loss = 0;
    for (uint32_t begin = row_begin; begin < row_end;) {
        const uint32_t n = TT_MIN(scratch->block_rows, row_end - begin);
        loss += sparse ? sparse_block(&p, begin, n) : dense_block(&p, begin, n);
        begin += n;
    }
    return loss;
}

void
tt_model_regularise(const tt_model *model,
                    const tt_batch *batch,
                    const float *params,
                    float *gradient)
{
    const size_t width = model->width;
    if (!(model->l2 > 0) || batch->row_count == 0)
        return;
    if (!model->keyed) {
        tt_vec_best()->axpy((float)model->l2, params, gradient, model->features * width);
        return;
    }
    const double unit = model->l2 / batch->row_count;
    const double train_rows = (double)model->train->row_count;
    const uint32_t *rows_with = tti_shares_rows_with(model->shares);
    const uint32_t count = batch->key_count - (model->bias ? 1 : 0);
    for (uint32_t j = 0; j < count; j++) {
        const uint32_t with = rows_with[batch->keys[j]];
        if (with == 0) // a feature that no training row has, in other data
            continue;
        const float weight = (float)(unit * batch->key_rows[j] * (train_rows / with));
        for (size_t k = 0; k < width; k++)
            gradient[j * width + k] += weight * params[j * width + k];
    }
}
