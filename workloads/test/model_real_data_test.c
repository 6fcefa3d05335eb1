// Goal: on real data the objective is liblinear's, and stochastic gradients learn.
// Method: a9a's optimum found with Newton's method (LogR) and dual coordinate descent (SVM) in
// double, evaluated by the model; one epoch of softmax on Fashion-MNIST's test images. Skipped
// without the data.
#include "tt/workloads_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA_DIR TT_SOURCE_DIR "/../shared/data/"

enum { FEATURES_MAX = 128 };

static tt_dataset *
open_or_skip(const tt_data_spec *spec)
{
    if (access(spec->path, R_OK) != 0) {
        print_message("SKIP: no %s\n", spec->path);
        skip();
    }
    tt_dataset *data = NULL;
    tt_error err = {0};
    if (tt_dataset_open(spec, &data, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    return data;
}

static void
solve_cholesky(double (*a)[FEATURES_MAX], double *b, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = a[i][j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(sum) : sum / a[j][j];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
}

// Hessian of the mean logistic loss at w, all values 1.
static void
hessian(const tt_dataset *data, const float *w, double (*h)[FEATURES_MAX])
{
    for (uint64_t r = 0; r < data->row_count; r++) {
        double m = 0;
        for (uint64_t i = data->row_begin[r]; i < data->row_begin[r + 1]; i++)
            m += (double)w[data->index[i]];
        const double s = 1 / (1 + exp(-m)), weight = s * (1 - s) / (double)data->row_count;
        for (uint64_t i = data->row_begin[r]; i < data->row_begin[r + 1]; i++)
            for (uint64_t j = data->row_begin[r]; j <= i; j++)
                h[data->index[i]][data->index[j]] += weight;
    }
}

// One step of Newton's method with the model's gradient over all rows.
static void
newton_step(const tt_model *model,
            const tt_dataset *data,
            tt_batch *batch,
            tt_model_scratch *scratch,
            double l2,
            float *w)
{
    static double h[FEATURES_MAX][FEATURES_MAX];
    const size_t n = data->feature_count;
    float gradient[FEATURES_MAX] = {0};
    double step[FEATURES_MAX];
    const uint32_t rows = tt_batch_rows(batch);
    (void)tt_model_loss_gradient(model, tt_vec_best(), batch, 0, rows, 1.0F / (float)rows, w,
                                 gradient, NULL, scratch);
    tt_model_regularise(model, batch, w, gradient);
    memset(h, 0, sizeof h);
    hessian(data, w, h);
    for (size_t i = 0; i < n; i++) {
        h[i][i] += l2;
        step[i] = (double)gradient[i];
    }
    solve_cholesky(h, step, n);
    for (size_t i = 0; i < n; i++)
        w[i] = (float)((double)w[i] - step[i]);
}

static void
logistic_optimum_is_liblinears(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data =
        open_or_skip(&(tt_data_spec){.format = "libsvm", .path = DATA_DIR "a9a.xz", .threads = 1});
    assert_true(data->feature_count <= FEATURES_MAX && data->value == NULL);
    const double n = (double)data->row_count, l2 = 1 / n;
    const tt_model_config config = {
        .kind = "logistic_regression", .l2 = l2, .pull = TT_MODEL_PULL_WHOLE};
    tt_model *model;
    tt_batch *batch;
    tt_model_scratch *scratch;
    const uint32_t rows = (uint32_t)data->row_count;
    uint32_t *all = tt_mem_alloc(rows * sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < rows; i++)
        all[i] = i;
    assert_int_equal(tt_model_open(&config, data, &model, NULL), TT_OK);
    assert_int_equal(tt_batch_alloc(model, data, rows, &batch), TT_OK);
    assert_int_equal(tt_model_scratch_alloc(model, rows, &scratch), TT_OK);
    tt_batch_fill(batch, all, rows);
    float w[FEATURES_MAX] = {0};
    for (int i = 0; i < 9; i++)
        newton_step(model, data, batch, scratch, l2, w);
    tt_model_metrics metrics;
    assert_int_equal(tt_model_evaluate(model, data, w, 2, &metrics, NULL), TT_OK);
    // the reference has four decimals; float margins add some 1e-7 of the loss
    if (!(fabs(n * metrics.objective - 10529.5626) < 5e-3))
        fail_msg("objective %.6f", n * metrics.objective);
    assert_true(fabs(metrics.accuracy - 0.8491) < 1e-3 && metrics.auc > 0.89);
    tt_model_scratch_free(scratch);
    tt_batch_free(batch);
    tt_model_close(model);
    tt_mem_free(all);
    tt_dataset_close(data);
}

// Dual coordinate descent for the hinge loss (Hsieh et al., ICML 2008, algorithm 1), C = 1,
// values 1.
static void
dual_descent(const tt_dataset *data, int epochs, double *w)
{
    const size_t rows = (size_t)data->row_count;
    double *alpha = tt_mem_zalloc(rows, sizeof *alpha);
    uint32_t *order = tt_mem_alloc(rows * sizeof *order);
    assert_true(alpha != NULL && order != NULL);
    for (uint32_t i = 0; i < rows; i++)
        order[i] = i;
    tt_rng rng;
    tt_rng_init(&rng, 61, TT_RNG_TEST, 0);
    for (int epoch = 0; epoch < epochs; epoch++) {
        tt_rng_shuffle_u32(&rng, order, rows);
        for (size_t o = 0; o < rows; o++) {
            const uint32_t r = order[o];
            const uint64_t begin = data->row_begin[r], end = data->row_begin[r + 1];
            const double y = data->label[r] != 0 ? 1 : -1;
            double m = 0;
            for (uint64_t i = begin; i < end; i++)
                m += w[data->index[i]];
            if (begin == end)
                continue;
            const double moved = alpha[r] - (y * m - 1) / (double)(end - begin);
            const double clipped = fmin(fmax(moved, 0), 1);
            for (uint64_t i = begin; i < end; i++)
                w[data->index[i]] += (clipped - alpha[r]) * y;
            alpha[r] = clipped;
        }
    }
    tt_mem_free(alpha);
    tt_mem_free(order);
}

static void
hinge_optimum_is_liblinears(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data =
        open_or_skip(&(tt_data_spec){.format = "libsvm", .path = DATA_DIR "a9a.xz", .threads = 1});
    const double n = (double)data->row_count;
    double exact[FEATURES_MAX] = {0};
    dual_descent(data, 500, exact);
    float w[FEATURES_MAX];
    for (size_t i = 0; i < FEATURES_MAX; i++)
        w[i] = (float)exact[i];
    const tt_model_config config = {.kind = "linear_svm", .l2 = 1 / n};
    tt_model *model;
    tt_model_metrics metrics;
    assert_int_equal(tt_model_open(&config, data, &model, NULL), TT_OK);
    assert_int_equal(tt_model_evaluate(model, data, w, 2, &metrics, NULL), TT_OK);
    // the primal comes down to the optimum from above; never below it
    if (!(n * metrics.objective > 11434.0 && n * metrics.objective < 11434.04 * 1.0005))
        fail_msg("objective %.4f", n * metrics.objective);
    tt_model_close(model);
    tt_dataset_close(data);
}

static void
softmax_learns_clothes(void **state)
{
    TT_UNUSED(state);
    const tt_data_spec spec = {.format = "idx",
                               .path = DATA_DIR "fashion-mnist/t10k-images-idx3-ubyte.gz",
                               .labels = DATA_DIR "fashion-mnist/t10k-labels-idx1-ubyte.gz",
                               .threads = 1};
    tt_dataset *data = open_or_skip(&spec);
    enum { BATCH = 64, WIDTH = 10 };
    const tt_model_config config = {.kind = "softmax_regression", .l2 = 1e-4, .bias = 1};
    tt_model *model;
    tt_batch *batch;
    tt_model_scratch *scratch;
    assert_int_equal(tt_model_open(&config, data, &model, NULL), TT_OK);
    assert_int_equal(tt_batch_alloc(model, data, BATCH, &batch), TT_OK);
    assert_int_equal(tt_model_scratch_alloc(model, BATCH, &scratch), TT_OK);
    const size_t size = (size_t)tt_model_rows(model) * tt_model_width(model);
    float *w = tt_mem_zalloc_vector(size, sizeof *w), *g = tt_mem_zalloc_vector(size, sizeof *g);
    assert_true(w != NULL && g != NULL && tt_model_width(model) == WIDTH);
    const tt_vec_ops *ops = tt_vec_best();
    double loss = 0;
    for (uint32_t first = 0; first + BATCH <= data->row_count; first += BATCH) {
        uint32_t rows[BATCH];
        for (uint32_t i = 0; i < BATCH; i++)
            rows[i] = first + i;
        tt_batch_fill(batch, rows, BATCH);
        memset(g, 0, size * sizeof *g);
        loss +=
            tt_model_loss_gradient(model, ops, batch, 0, BATCH, 1.0F / BATCH, w, g, NULL, scratch);
        tt_model_regularise(model, batch, w, g);
        ops->sgd_step(w, g, size, 0.05F);
    }
    tt_model_metrics metrics;
    assert_int_equal(tt_model_evaluate(model, data, w, 2, &metrics, NULL), TT_OK);
    // from log 10 = 2.303 at the start; a linear model reaches about 0.45 here after many epochs
    if (!(metrics.finite && metrics.loss < 0.80 && metrics.accuracy > 0.74))
        fail_msg("loss %.4f, accuracy %.4f", metrics.loss, metrics.accuracy);
    assert_true(metrics.loss < loss / (double)data->row_count);
    tt_mem_free(w);
    tt_mem_free(g);
    tt_model_scratch_free(scratch);
    tt_batch_free(batch);
    tt_model_close(model);
    tt_dataset_close(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_optimum_is_liblinears),
        cmocka_unit_test(hinge_optimum_is_liblinears),
        cmocka_unit_test(softmax_learns_clothes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
