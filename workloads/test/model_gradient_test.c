// Goal: loss and gradient of every model, layout, pull and kernel variant are right.
// Method: a double reference of the loss, its central differences against the gradient, values
// worked out by hand, parts against the whole, keyed against whole, provoked errors.
#include "model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PARAMS_MAX = (CASE_FEATURES + 1) * CASE_CLASSES, BATCH_MAX = 300 };

static void
close_to(double actual, double expected, double bound)
{
    if (!(fabs(actual - expected) <= bound))
        fail_msg("%.9g is not within %.3g of %.9g", actual, bound, expected);
}

// A model with its batch, and parameters in double and float.
typedef struct bench_of {
    tt_model *model;
    tt_batch *batch;
    tt_model_scratch *scratch;
    uint32_t rows[BATCH_MAX], count, width, table_rows;
    int bias;
    double params[PARAMS_MAX];
    float pulled[PARAMS_MAX], gradient[PARAMS_MAX];
} bench_of;

static void
setup(bench_of *b, const model_case *c, const tt_model_config *config, uint32_t count, tt_rng *rng)
{
    memset(b, 0, sizeof *b);
    b->count = count;
    b->bias = config->bias;
    assert_int_equal(tt_model_open(config, &c->data, &b->model, NULL), TT_OK);
    assert_int_equal(tt_batch_alloc(b->model, &c->data, BATCH_MAX, &b->batch), TT_OK);
    assert_int_equal(tt_model_scratch_alloc(b->model, BATCH_MAX, &b->scratch), TT_OK);
    b->width = tt_model_width(b->model);
    b->table_rows = tt_model_rows(b->model);
    assert_int_equal(b->table_rows, CASE_FEATURES + (config->bias ? 1 : 0));
    for (uint32_t i = 0; i < count; i++)
        b->rows[i] = (uint32_t)tt_rng_below(rng, CASE_ROWS);
    for (size_t i = 0; i < b->table_rows * b->width; i++)
        b->params[i] = (double)(float)(0.7 * tt_rng_normal(rng));
    tt_batch_fill(b->batch, b->rows, count);
    assert_int_equal(tt_batch_rows(b->batch), count);
}

static void
teardown(bench_of *b)
{
    tt_model_scratch_free(b->scratch);
    tt_batch_free(b->batch);
    tt_model_close(b->model);
}

// The table row of row j of the batch's shape.
static uint32_t
table_row(const bench_of *b, uint32_t j, uint32_t *count)
{
    const uint32_t *keys = tt_batch_keys(b->batch, count);
    return keys != NULL ? keys[j] : j;
}

// Parameters in the batch's shape; the gradient starts at 0.5 everywhere.
static void
pull(bench_of *b)
{
    uint32_t count;
    (void)table_row(b, 0, &count);
    for (uint32_t j = 0; j < count; j++)
        for (size_t k = 0; k < b->width; k++) {
            const size_t at = table_row(b, j, &count) * (size_t)b->width + k;
            b->pulled[j * b->width + k] = (float)b->params[at];
            b->gradient[j * b->width + k] = 0.5F;
        }
}

// The gradient as a table, the 0.5 taken off; rows that were not pulled are 0.
static void
push(const bench_of *b, double *table)
{
    uint32_t count;
    (void)table_row(b, 0, &count);
    for (size_t i = 0; i < PARAMS_MAX; i++)
        table[i] = 0;
    for (uint32_t j = 0; j < count; j++)
        for (size_t k = 0; k < b->width; k++)
            table[table_row(b, j, &count) * (size_t)b->width + k] =
                (double)b->gradient[j * b->width + k] - 0.5;
}

static double
reference_loss(const bench_of *b, const model_case *c, const double *params)
{
    double loss = 0, score[CASE_CLASSES];
    for (uint32_t i = 0; i < b->count; i++)
        loss += model_case_loss(tt_model_kind(b->model), c, b->rows[i], params, b->width, b->bias,
                                score);
    return loss;
}

// Distance of the nearest margin to the hinge's corner, where there is no derivative.
static double
corner_distance(const bench_of *b, const model_case *c)
{
    double nearest = 1, score[CASE_CLASSES];
    for (uint32_t i = 0; i < b->count; i++) {
        const size_t r = b->rows[i];
        (void)model_case_loss(tt_model_kind(b->model), c, r, b->params, b->width, b->bias, score);
        nearest = fmin(nearest, fabs(1 - score[0] * (c->label[r] != 0 ? 1 : -1)));
    }
    return nearest;
}

// Central differences of the reference for every parameter; their error is some h^2 and 1e-16 loss
// / h.
static void
differences(const bench_of *b, const model_case *c, double *slope)
{
    double moved[PARAMS_MAX];
    memcpy(moved, b->params, sizeof moved);
    const double h = 1e-5;
    for (size_t i = 0; i < b->table_rows * b->width; i++) {
        moved[i] = b->params[i] + h;
        const double up = reference_loss(b, c, moved);
        moved[i] = b->params[i] - h;
        slope[i] = (up - reference_loss(b, c, moved)) / (2 * h);
        moved[i] = b->params[i];
    }
}

static void
check_gradient(bench_of *b, const model_case *c, const double *slope, const tt_vec_ops *ops)
{
    const double scale = (double)(1.0F / 64);
    double table[PARAMS_MAX];
    pull(b);
    const double loss = tt_model_loss_gradient(b->model, ops, b->batch, 0, b->count, (float)scale,
                                               b->pulled, b->gradient, NULL, b->scratch);
    // margins in float: 30 terms of size about 1 err by some 1e-6, the loss by no more
    close_to(loss, reference_loss(b, c, b->params), 1e-6 * (loss + b->count));
    push(b, table);
    for (size_t i = 0; i < b->table_rows * b->width; i++)
        close_to(table[i], scale * slope[i], 2e-6 * (1 + scale * b->count));
}

static void
check_parts(bench_of *b, const tt_vec_ops *ops)
{
    double whole[PARAMS_MAX], parts[PARAMS_MAX];
    pull(b);
    const double loss = tt_model_loss_gradient(b->model, ops, b->batch, 0, b->count, 0.01F,
                                               b->pulled, b->gradient, NULL, b->scratch);
    push(b, whole);
    pull(b);
    const uint32_t cut[] = {0, 1, b->count / 3, b->count / 3, b->count};
    float each[BATCH_MAX + 1];
    double sum = 0;
    each[b->count] = -7.25F;
    for (size_t p = 0; p + 1 < TT_COUNT_OF(cut); p++) {
        const double part = tt_model_loss_gradient(b->model, ops, b->batch, cut[p], cut[p + 1],
                                                   0.01F, b->pulled, b->gradient, each, b->scratch);
        double mine = 0;
        for (uint32_t i = cut[p]; i < cut[p + 1]; i++)
            mine += (double)each[i];
        close_to(mine, part, 1e-6 * (part + 1));
        sum += part;
    }
    assert_true(each[b->count] == -7.25F);
    push(b, parts);
    close_to(sum, loss, 1e-6 * loss); // the same float operations in other vector lanes
    for (size_t i = 0; i < PARAMS_MAX; i++)
        close_to(parts[i], whole[i], 2e-6);
}

typedef struct layout_case {
    tt_data_layout layout;
    int ones, pull;
} layout_case;

static const layout_case layouts[] = {
    {TT_DATA_SPARSE, 0, TT_MODEL_PULL_WHOLE},  {TT_DATA_SPARSE, 1, TT_MODEL_PULL_WHOLE},
    {TT_DATA_SPARSE, 0, TT_MODEL_PULL_KEYED},  {TT_DATA_SPARSE, 1, TT_MODEL_PULL_KEYED},
    {TT_DATA_DENSE_U8, 0, TT_MODEL_PULL_AUTO}, {TT_DATA_DENSE_F32, 0, TT_MODEL_PULL_AUTO},
};

static void
gradients_agree_at(const char *kind, const layout_case *layout, int bias, uint32_t count)
{
    tt_rng rng;
    tt_rng_init(&rng, 41, TT_RNG_TEST, count);
    static model_case c;
    static bench_of b;
    const int binary = strcmp(kind, "softmax_regression") != 0;
    for (uint32_t classes = 2; classes <= (binary ? 2 : CASE_CLASSES); classes++) {
        model_case_make(&c, &rng, layout->layout, classes, layout->ones);
        const tt_model_config config = {.kind = kind, .bias = bias, .pull = layout->pull};
        setup(&b, &c, &config, count, &rng);
        assert_int_equal(tt_model_keyed(b.model), layout->pull == TT_MODEL_PULL_KEYED);
        assert_int_equal(b.width, binary ? 1 : classes);
        while (strcmp(kind, "linear_svm") == 0 && corner_distance(&b, &c) < 1e-4)
            for (size_t i = 0; i < b.table_rows; i++)
                b.params[i] = (double)(float)(0.7 * tt_rng_normal(&rng));
        double slope[PARAMS_MAX];
        differences(&b, &c, slope);
        for (int v = 0; v < TT_VEC_VARIANT_COUNT; v++) {
            check_gradient(&b, &c, slope, tt_vec_ops_for((tt_vec_variant)v));
            check_parts(&b, tt_vec_ops_for((tt_vec_variant)v));
        }
        teardown(&b);
    }
}

static void
gradients_agree_with_differences(void **state)
{
    TT_UNUSED(state);
    for (size_t kind = 0; tt_model_kind_name(kind) != NULL; kind++)
        for (size_t l = 0; l < TT_COUNT_OF(layouts); l++)
            for (int bias = 0; bias < 2; bias++) {
                gradients_agree_at(tt_model_kind_name(kind), &layouts[l], bias, 21);
                // more than a block of rows, with rows more than once
                gradients_agree_at(tt_model_kind_name(kind), &layouts[l], bias, 290);
            }
}

static void
keyed_equals_whole(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 42, TT_RNG_TEST, 0);
    static model_case c;
    static bench_of whole, keyed;
    model_case_make(&c, &rng, TT_DATA_SPARSE, 3, 0);
    tt_model_config config = {.kind = "softmax_regression", .bias = 1, .pull = TT_MODEL_PULL_WHOLE};
    setup(&whole, &c, &config, 3, &rng);
    config.pull = TT_MODEL_PULL_KEYED;
    setup(&keyed, &c, &config, 3, &rng);
    memcpy(keyed.params, whole.params, sizeof keyed.params);
    memcpy(keyed.rows, whole.rows, sizeof keyed.rows);
    tt_batch_fill(keyed.batch, keyed.rows, 3);
    uint32_t count, all;
    const uint32_t *keys = tt_batch_keys(keyed.batch, &count);
    assert_null(tt_batch_keys(whole.batch, &all));
    assert_int_equal(all, CASE_FEATURES + 1);
    assert_true(count > 3 && count < all && count <= tt_batch_key_capacity(keyed.batch));
    assert_int_equal(tt_batch_key_capacity(whole.batch), all);
    assert_int_equal(keys[count - 1], CASE_FEATURES);
    assert_int_equal(tt_batch_nonzeros(keyed.batch), tt_batch_nonzeros(whole.batch));
    double a[PARAMS_MAX], b[PARAMS_MAX];
    pull(&whole), pull(&keyed);
    const double x = tt_model_loss_gradient(whole.model, tt_vec_best(), whole.batch, 0, 3, 0.1F,
                                            whole.pulled, whole.gradient, NULL, whole.scratch);
    const double y = tt_model_loss_gradient(keyed.model, tt_vec_best(), keyed.batch, 0, 3, 0.1F,
                                            keyed.pulled, keyed.gradient, NULL, keyed.scratch);
    push(&whole, a), push(&keyed, b);
    assert_true(x == y);
    assert_memory_equal(a, b, sizeof a);
    teardown(&whole), teardown(&keyed);
}

// Two features, rows (1, 2) with label +1, (0, -1) with label -1 and an empty one with label -1.
static void
losses_equal_hand_calculation(void **state)
{
    TT_UNUSED(state);
    uint64_t begin[] = {0, 2, 3, 3};
    uint32_t index[] = {0, 1, 1};
    float value[] = {1, 2, -1};
    uint16_t label[] = {1, 0, 0};
    const tt_dataset data = {.layout = TT_DATA_SPARSE,
                             .row_count = 3,
                             .feature_count = 2,
                             .nonzero_count = 3,
                             .class_count = 2,
                             .class_label = {-1, 1},
                             .label = label,
                             .row_begin = begin,
                             .index = index,
                             .value = value};
    const float w[] = {0.5F, -1.0F};
    const uint32_t rows[] = {0, 1, 2};
    // margins y m: -1.5, -1, 0. log(1 + e^1.5) = 1.7014132780, log(1 + e) = 1.3132616875
    static const double sums[] = {1.7014132780 + 1.3132616875 + 0.6931471806, 2.5 + 2 + 1};
    // slopes of the scores: -sigmoid(1.5) = -0.8175744762, sigmoid(1) = 0.7310585786
    static const double slopes[][2] = {{-0.8175744762, 2 * -0.8175744762 - 0.7310585786},
                                       {-1, -2 - 1}};
    for (size_t kind = 0; kind < 2; kind++) {
        const tt_model_config config = {.kind = tt_model_kind_name(kind),
                                        .pull = TT_MODEL_PULL_WHOLE};
        tt_model *model;
        tt_batch *batch;
        tt_model_scratch *scratch;
        assert_int_equal(tt_model_open(&config, &data, &model, NULL), TT_OK);
        assert_int_equal(tt_batch_alloc(model, &data, 3, &batch), TT_OK);
        assert_int_equal(tt_model_scratch_alloc(model, 3, &scratch), TT_OK);
        tt_batch_fill(batch, rows, 3);
        float g[2] = {0, 0};
        close_to(tt_model_loss_gradient(model, tt_vec_best(), batch, 0, 3, 1, w, g, NULL, scratch),
                 sums[kind], 1e-6);
        close_to(g[0], slopes[kind][0], 1e-6);
        close_to(g[1], slopes[kind][1], 1e-6);
        tt_model_scratch_free(scratch);
        tt_batch_free(batch);
        tt_model_close(model);
    }
}

static void
regulariser_adds_l2_times_weights(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 43, TT_RNG_TEST, 0);
    static model_case c;
    static bench_of b;
    model_case_make(&c, &rng, TT_DATA_SPARSE, 3, 0);
    const tt_model_config config = {
        .kind = "softmax_regression", .l2 = 0.03, .bias = 1, .pull = TT_MODEL_PULL_WHOLE};
    setup(&b, &c, &config, 7, &rng);
    double table[PARAMS_MAX];
    pull(&b);
    tt_model_regularise(b.model, b.batch, b.pulled, b.gradient);
    push(&b, table);
    for (size_t i = 0; i < CASE_FEATURES * 3; i++)
        close_to(table[i], 0.03 * b.params[i], 2e-7); // added to 0.5 in float
    for (size_t i = CASE_FEATURES * 3; i < (CASE_FEATURES + 1) * 3; i++)
        assert_true(table[i] == 0);
    teardown(&b);
}

// Over an epoch cut into equal batches the lazy regulariser averages to l2 w exactly, but for
// rounding: sum over batches of count_j / (batch f_j) is the number of batches.
static void
lazy_regulariser_is_unbiased(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 44, TT_RNG_TEST, 0);
    static model_case c;
    static bench_of b;
    for (int bias = 0; bias < 2; bias++) {
        model_case_make(&c, &rng, TT_DATA_SPARSE, 2, 0);
        const tt_model_config config = {
            .kind = "logistic_regression", .l2 = 0.03, .bias = bias, .pull = TT_MODEL_PULL_KEYED};
        setup(&b, &c, &config, 0, &rng);
        uint32_t order[CASE_ROWS];
        for (uint32_t i = 0; i < CASE_ROWS; i++)
            order[i] = i;
        tt_rng_shuffle_u32(&rng, order, CASE_ROWS);
        double sum[PARAMS_MAX] = {0}, one[PARAMS_MAX];
        enum { BATCH = 5, BATCHES = CASE_ROWS / BATCH };
        for (uint32_t i = 0; i < BATCHES; i++) {
            tt_batch_fill(b.batch, order + (size_t)i * BATCH, BATCH);
            pull(&b);
            tt_model_regularise(b.model, b.batch, b.pulled, b.gradient);
            push(&b, one);
            for (size_t j = 0; j < PARAMS_MAX; j++)
                sum[j] += one[j];
        }
        for (size_t j = 0; j < CASE_FEATURES; j++)
            close_to(sum[j] / BATCHES, 0.03 * b.params[j], 1e-6);
        if (bias)
            assert_true(sum[CASE_FEATURES] == 0);
        teardown(&b);
    }
}

static void
empty_batch_does_nothing(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 45, TT_RNG_TEST, 0);
    static model_case c;
    static bench_of b;
    for (size_t l = 0; l < TT_COUNT_OF(layouts); l++) {
        model_case_make(&c, &rng, layouts[l].layout, 2, layouts[l].ones);
        const tt_model_config config = {
            .kind = "logistic_regression", .l2 = 0.1, .pull = layouts[l].pull};
        setup(&b, &c, &config, 0, &rng);
        pull(&b);
        assert_true(tt_model_loss_gradient(b.model, tt_vec_best(), b.batch, 0, 0, 1, b.pulled,
                                           b.gradient, NULL, b.scratch) == 0);
        tt_model_regularise(b.model, b.batch, b.pulled, b.gradient);
        double table[PARAMS_MAX];
        push(&b, table);
        for (size_t i = 0; i < PARAMS_MAX; i++)
            assert_true(table[i] == 0);
        teardown(&b);
    }
}

static void
auto_pull_looks_at_the_table(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 46, TT_RNG_TEST, 0);
    static model_case c;
    model_case_make(&c, &rng, TT_DATA_SPARSE, 2, 0);
    const double a_row = (double)c.data.nonzero_count / CASE_ROWS;
    for (uint32_t batch = 0; batch < 3; batch++) { // 29 rows against 4 * batch * about 7 entries
        tt_model_config config = {.kind = "linear_svm", .batch_hint = batch};
        tt_model *model;
        assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
        const double touched = (batch == 0 ? 64 : batch) * a_row;
        assert_int_equal(tt_model_keyed(model), CASE_FEATURES > 4 * touched);
        tt_model_close(model);
        c.data.feature_count = 3000; // now larger than any of these batches
        assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
        assert_true(tt_model_keyed(model));
        tt_model_close(model);
        c.data.feature_count = CASE_FEATURES;
    }
}

static void
refused(const tt_model_config *config,
        const tt_dataset *data,
        tt_status expected,
        const char *what,
        const char *advice)
{
    tt_error err = {0};
    tt_model *model;
    assert_int_equal(tt_model_open(config, data, &model, &err), expected);
    assert_null(model);
    assert_int_equal(err.status, expected);
    if (strstr(err.what, what) == NULL || strstr(err.advice, advice) == NULL)
        fail_msg("'%s' and '%s' lack '%s' or '%s'", err.what, err.advice, what, advice);
}

static void
errors_say_what_to_do(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 47, TT_RNG_TEST, 0);
    static model_case c, dense;
    model_case_make(&c, &rng, TT_DATA_SPARSE, 3, 0);
    model_case_make(&dense, &rng, TT_DATA_DENSE_U8, 2, 0);
    refused(&(tt_model_config){.kind = "logistic_regresion"}, &c.data, TT_INVALID,
            "logistic_regresion", "did you mean 'logistic_regression'");
    refused(&(tt_model_config){.kind = "perceptron"}, &c.data, TT_INVALID, "perceptron",
            "softmax_regression");
    refused(&(tt_model_config){.kind = NULL}, &c.data, TT_INVALID, "unknown", "linear_svm");
    refused(&(tt_model_config){.kind = "linear_svm"}, &c.data, TT_INVALID, "3",
            "softmax_regression");
    refused(&(tt_model_config){.kind = "softmax_regression", .l2 = -1}, &c.data, TT_RANGE, "-1",
            "0");
    refused(&(tt_model_config){.kind = "softmax_regression", .l2 = (double)NAN}, &c.data, TT_RANGE,
            "l2", "0");
    refused(&(tt_model_config){.kind = "linear_svm", .pull = TT_MODEL_PULL_KEYED}, &dense.data,
            TT_INVALID, "dense", "whole");
    tt_dataset odd = c.data;
    odd.class_count = 0;
    refused(&(tt_model_config){.kind = "softmax_regression"}, &odd, TT_INVALID, "real-valued",
            "labels");
    odd = c.data;
    odd.feature_count = 2147483646U;
    refused(&(tt_model_config){.kind = "softmax_regression"}, &odd, TT_RANGE, "2^31", "hash");
    odd = c.data;
    odd.row_count = 0;
    refused(&(tt_model_config){.kind = "softmax_regression"}, &odd, TT_INVALID, "empty", "check");
}

static void
batches_fit_their_model(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 48, TT_RNG_TEST, 0);
    static model_case c, dense;
    model_case_make(&c, &rng, TT_DATA_SPARSE, 2, 0);
    model_case_make(&dense, &rng, TT_DATA_DENSE_U8, 2, 0);
    tt_model *model;
    tt_batch *batch;
    const tt_model_config config = {.kind = "linear_svm"};
    assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
    assert_int_equal(tt_batch_alloc(model, &dense.data, 4, &batch), TT_INVALID);
    tt_dataset odd = c.data;
    odd.feature_count++;
    assert_int_equal(tt_batch_alloc(model, &odd, 4, &batch), TT_INVALID);
    odd = c.data;
    odd.class_label[1] = 7.5;
    assert_int_equal(tt_batch_alloc(model, &odd, 4, &batch), TT_INVALID);
    assert_null(batch);
    tt_model_close(model);
}

static void
expect_equal_batches(const tt_model *model, const tt_batch *a, const tt_batch *b)
{
    float params[PARAMS_MAX], gradients[2][PARAMS_MAX] = {{0}};
    uint32_t counts[2];
    const uint32_t *keys[] = {tt_batch_keys(a, &counts[0]), tt_batch_keys(b, &counts[1])};
    const tt_batch *batches[] = {a, b};
    assert_int_equal(counts[0], counts[1]);
    if (keys[0] != NULL)
        assert_memory_equal(keys[0], keys[1], counts[0] * sizeof *keys[0]);
    for (size_t i = 0; i < PARAMS_MAX; i++)
        params[i] = (float)sin((double)i);
    for (int i = 0; i < 2; i++) {
        tt_model_scratch *scratch;
        assert_int_equal(tt_model_scratch_alloc(model, 9, &scratch), TT_OK);
        (void)tt_model_loss_gradient(model, tt_vec_best(), batches[i], 0, tt_batch_rows(a), 1,
                                     params, gradients[i], NULL, scratch);
        tt_model_scratch_free(scratch);
    }
    assert_memory_equal(gradients[0], gradients[1], sizeof gradients[0]);
}

// Batches beside each other share memory, and nothing of what they are filled with.
static void
batches_beside_each_other_are_batches(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 50, TT_RNG_TEST, 0);
    static model_case c;
    for (size_t l = 0; l < TT_COUNT_OF(layouts); l++) {
        model_case_make(&c, &rng, layouts[l].layout, 3, layouts[l].ones);
        const tt_model_config config = {
            .kind = "softmax_regression", .l2 = 0.5, .pull = layouts[l].pull};
        uint32_t rows[2][9];
        tt_model *model;
        tt_batch *alone[2], *together[2];
        assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(tt_batch_alloc(model, &c.data, 9, &alone[i]), TT_OK);
        assert_int_equal(tt_batch_alloc(model, &c.data, 9, &together[0]), TT_OK);
        assert_int_equal(tt_batch_alloc_beside(together[0], &together[1]), TT_OK);
        for (int i = 0; i < 2; i++)
            for (uint32_t r = 0; r < 9; r++)
                rows[i][r] = (uint32_t)tt_rng_below(&rng, CASE_ROWS);
        for (int i = 0; i < 2; i++)
            tt_batch_fill(alone[i], rows[i], 9);
        for (int i = 0; i < 2; i++)
            tt_batch_fill(together[i], rows[i], 9);
        for (int i = 0; i < 2; i++)
            expect_equal_batches(model, alone[i], together[i]);
        tt_batch_free(together[0]);
        tt_batch_fill(together[1], rows[0], 9);
        expect_equal_batches(model, alone[0], together[1]);
        tt_batch_free(together[1]);
        for (int i = 0; i < 2; i++)
            tt_batch_free(alone[i]);
        tt_model_close(model);
    }
}

static void
memory_may_be_short(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 49, TT_RNG_TEST, 0);
    static model_case c;
    for (size_t l = 0; l < TT_COUNT_OF(layouts); l++) {
        model_case_make(&c, &rng, layouts[l].layout, 3, layouts[l].ones);
        const tt_model_config config = {
            .kind = "softmax_regression", .l2 = 0.5, .pull = layouts[l].pull};
        for (uint64_t n = 1;; n++) {
            tt_model *model = NULL;
            tt_batch *batch = NULL, *beside = NULL;
            tt_model_scratch *scratch = NULL;
            tt_mem_fail_nth(n);
            tt_status status = tt_model_open(&config, &c.data, &model, NULL);
            if (status == TT_OK)
                status = tt_batch_alloc(model, &c.data, 9, &batch);
            if (status == TT_OK)
                status = tt_batch_alloc_beside(batch, &beside);
            if (status == TT_OK)
                status = tt_model_scratch_alloc(model, 9, &scratch);
            const int waiting = tt_mem_fail_pending();
            tt_mem_fail_nth(0);
            tt_model_scratch_free(scratch);
            tt_batch_free(batch); // before the one beside it
            tt_batch_free(beside);
            tt_model_close(model);
            if (waiting) {
                assert_int_equal(status, TT_OK);
                assert_true(n > 5);
                break;
            }
            assert_int_equal(status, TT_NOMEM);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_differences),
        cmocka_unit_test(keyed_equals_whole),
        cmocka_unit_test(losses_equal_hand_calculation),
        cmocka_unit_test(regulariser_adds_l2_times_weights),
        cmocka_unit_test(lazy_regulariser_is_unbiased),
        cmocka_unit_test(empty_batch_does_nothing),
        cmocka_unit_test(auto_pull_looks_at_the_table),
        cmocka_unit_test(errors_say_what_to_do),
        cmocka_unit_test(batches_fit_their_model),
        cmocka_unit_test(batches_beside_each_other_are_batches),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
