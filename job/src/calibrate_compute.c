// What gradients cost: sparse rows of few and of many stored values, dense rows; what a batch costs
// to put together; what more compute threads bring.
#include "calibrate.h"
#include "node.h"
#include <math.h>
#include <string.h>

enum {
    ROWS = 4096,
    FEATURES = 100000,
    DENSE_FEATURES = 784,
    BATCH = 64,
    LARGE_BATCH = 2048,
    CLASSES = 10,
    FEW = 5,
    MANY = 40
};

typedef struct bench {
    tt_dataset *data;
    tt_model *model;
    tt_batch *batch;
    tti_compute *compute;
    float *params, *gradient;
    tti_compute_task task;
    uint32_t rows[LARGE_BATCH];
    uint32_t row_count, filled; // of a batch; batches so far
} bench;

static void
close_bench(bench *b)
{
    tti_compute_close(b->compute);
    tt_batch_free(b->batch);
    tt_model_close(b->model);
    tt_dataset_close(b->data);
    tt_mem_free(b->params);
    tt_mem_free(b->gradient);
}

// Of data that are there.
static tt_status
open_bench(bench *b, uint32_t batch_rows, tt_error *err)
{
    const tt_model_config config = {
        .kind = b->data->class_count > 2 ? "softmax_regression" : "logistic_regression",
        .l2 = 1e-5,
        .pull = b->data->layout == TT_DATA_SPARSE ? TT_MODEL_PULL_KEYED : TT_MODEL_PULL_WHOLE};
    TT_TRY(tt_model_open(&config, b->data, &b->model, err));
    tt_status status = tt_batch_alloc(b->model, b->data, batch_rows, &b->batch);
    uint32_t width = b->data->class_count > 2 ? b->data->class_count : 1;
    size_t floats = status == TT_OK ? (size_t)tt_batch_key_capacity(b->batch) * width : 1;
    b->params = tt_mem_zalloc_vector(floats, sizeof(float));
    b->gradient = tt_mem_zalloc_vector(floats, sizeof(float));
    if (status == TT_OK)
        status = tti_compute_open(b->model, batch_rows, floats, &b->compute);
    if (status != TT_OK || b->params == NULL || b->gradient == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to measure gradients");
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_SIMULATION, 3);
    b->row_count = batch_rows;
    for (uint32_t i = 0; i < LARGE_BATCH; i++)
        b->rows[i] = (uint32_t)tt_rng_below(&rng, b->data->row_count);
    tt_batch_fill(b->batch, b->rows, batch_rows);
    uint32_t keys;
    (void)tt_batch_keys(b->batch, &keys);
    b->task = (tti_compute_task){.model = b->model,
                                 .ops = tt_vec_best(),
                                 .batch = b->batch,
                                 .micro_rows = batch_rows,
                                 .micro_count = 1,
                                 .scale = 1.0f / (float)batch_rows,
                                 .params = b->params,
                                 .gradient = b->gradient,
                                 .floats = (size_t)keys * width};
    return TT_OK;
}

static tt_status
open_sparse(bench *b, uint32_t fields, uint32_t batch_rows, tt_error *err)
{
    *b = (bench){0};
    const tt_clicklog_spec spec = {
        .row_count = ROWS, .feature_count = FEATURES, .field_count = fields, .seed = 1};
    TT_TRY(tt_generate_clicklog_dataset(&spec, &b->data, NULL, err));
    return open_bench(b, batch_rows, err);
}

// Rows of a generated click log, spread out: the values do not matter, only that there are some;
// nor that some classes have no row.
static tt_status
open_dense(bench *b, uint32_t classes, tt_error *err)
{
    *b = (bench){0};
    const tt_clicklog_spec spec = {
        .row_count = ROWS / 4, .feature_count = FEATURES, .field_count = FEW, .seed = 1};
    TT_TRY(tt_generate_clicklog_dataset(&spec, &b->data, NULL, err));
    tt_dataset *data = b->data;
    data->floats = tt_mem_alloc(data->row_count * DENSE_FEATURES * sizeof(float));
    if (data->floats == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to measure gradients");
    for (uint64_t i = 0; i < data->row_count * DENSE_FEATURES; i++)
        data->floats[i] = (float)(i % 17) / 17;
    tt_mem_free(data->index);
    tt_mem_free(data->value);
    tt_mem_free(data->row_begin);
    data->index = NULL;
    data->value = NULL;
    data->row_begin = NULL;
    data->layout = TT_DATA_DENSE_F32;
    data->feature_count = DENSE_FEATURES;
    data->class_count = classes;
    data->nonzero_count = data->row_count * DENSE_FEATURES;
    return open_bench(b, BATCH, err);
}

static void
gradient(void *self)
{
    bench *b = self;
    tti_compute_run(b->compute, &b->task);
    tt_model_regularise(b->model, b->batch, b->params, b->gradient);
}

// Another batch each time, as in a job: the same one again would find its keys where they were.
static void
fill(void *self)
{
    bench *b = self;
    uint32_t from = b->filled++ * b->row_count % LARGE_BATCH;
    tt_batch_fill(b->batch, b->rows + from, b->row_count);
}

// One gradient of the batch with each kernel this processor has; others as the best of them.
static void
gradient_by_kernel(bench *b, double seconds[3])
{
    tt_vec_variant best = tt_vec_best()->variant;
    for (uint32_t k = 0; k < 3; k++) {
        if (k > (uint32_t)best) {
            seconds[k] = seconds[k - 1];
            continue;
        }
        b->task.ops = tt_vec_ops_for((tt_vec_variant)k);
        seconds[k] = tti_calibrate_call_s(gradient, b);
    }
    b->task.ops = tt_vec_best();
}

// Two lengths of rows give the price of a row and of a stored value.
static tt_status
measure_sparse(tti_simulation_spec *out, tt_error *err)
{
    double seconds[2][3], nonzeros[2];
    for (int i = 0; i < 2; i++) {
        bench b;
        tt_status status = open_sparse(&b, i == 0 ? FEW : MANY, BATCH, err);
        if (status == TT_OK) {
            gradient_by_kernel(&b, seconds[i]);
            nonzeros[i] = (double)tt_batch_nonzeros(b.batch);
            if (i == 1)
                out->prepare = tti_calibrate_call_s(fill, &b) / nonzeros[i];
        }
        close_bench(&b);
        TT_TRY(status);
    }
    for (int k = 0; k < 3; k++)
        out->nonzero[k] = fmax((seconds[1][k] - seconds[0][k]) / (nonzeros[1] - nonzeros[0]), 0);
    out->example = fmax((seconds[0][2] - out->nonzero[2] * nonzeros[0]) / BATCH, 0);
    return TT_OK;
}

// Two classes have one column of weights, more have one each: a value is read once and multiplied
// by each.
static tt_status
measure_dense(tti_simulation_spec *out, tt_error *err)
{
    double one[3], each[3];
    for (int i = 0; i < 2; i++) {
        bench b;
        tt_status status = open_dense(&b, i == 0 ? 2 : CLASSES, err);
        if (status == TT_OK)
            gradient_by_kernel(&b, i == 0 ? one : each);
        close_bench(&b);
        TT_TRY(status);
    }
    const double values = BATCH * DENSE_FEATURES;
    for (int k = 0; k < 3; k++)
        out->cell[k] = fmax(each[k] - one[k], 0) / (values * (CLASSES - 1));
    out->dense = fmax((one[2] - BATCH * out->example) / values - out->cell[2], 0);
    return TT_OK;
}

// t(2) = t(1) (serial + (1 - serial) / 2) + helper, for a batch that hardly takes any time and for
// one that takes long.
static tt_status
measure_threads(tti_simulation_spec *out, tt_error *err)
{
    double seconds[2][2];
    for (int i = 0; i < 2; i++) {
        bench b;
        tt_status status = open_sparse(&b, i == 0 ? FEW : MANY, i == 0 ? 8 : LARGE_BATCH, err);
        for (uint32_t t = 0; t < 2 && status == TT_OK; t++) {
            status = tti_compute_resize(b.compute, t + 1, -1);
            seconds[i][t] = status == TT_OK ? tti_calibrate_call_s(gradient, &b) : 0;
        }
        close_bench(&b);
        TT_TRY(status);
    }
    out->helper = fmax(seconds[0][1] - 0.5 * seconds[0][0], 0);
    out->serial = (seconds[1][1] - out->helper) / seconds[1][0] * 2 - 1;
    return TT_OK;
}

tt_status
tti_calibrate_compute(tti_simulation_spec *out, tt_error *err)
{
    TT_TRY(measure_sparse(out, err));
    TT_TRY(measure_dense(out, err));
    return measure_threads(out, err);
}
