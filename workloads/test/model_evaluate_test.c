// Goal: evaluation measures what it says, the same whatever the number of threads.
// Method: a double reference on small data, AUC against counting all pairs, large random data with
// 1 to 5 threads compared bit by bit, strange test sets, provoked errors.
#include "model_auc.h"
#include "model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
close_to(double actual, double expected, double bound)
{
    if (!(fabs(actual - expected) <= bound))
        fail_msg("%.9g is not within %.3g of %.9g", actual, bound, expected);
}

static double
auc_by_pairs(const float *score, const uint8_t *positive, size_t n)
{
    double pairs = 0, won = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (positive[i] && !positive[j]) {
                pairs++;
                won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
            }
    return won / pairs;
}

static void
auc_counts_pairs(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 51, TT_RNG_TEST, 0);
    float score[200];
    uint8_t positive[200];
    double auc;
    for (int round = 0; round < 40; round++) {
        const size_t n = 2 + (size_t)tt_rng_below(&rng, 198);
        for (size_t i = 0; i < n; i++) {
            positive[i] = i == 0 || (i > 1 && tt_rng_below(&rng, 3) == 0);
            score[i] = (float)tt_rng_normal(&rng) + (positive[i] ? 0.4F : 0.0F);
            if (round % 2 == 0) // many ties, both zeros among them
                score[i] = copysignf(floorf(fabsf(score[i]) * 2), score[i]);
        }
        assert_int_equal(tti_model_auc(score, positive, n, &auc), TT_OK);
        close_to(auc, auc_by_pairs(score, positive, n), 1e-12);
    }
    positive[0] = 1, positive[1] = 1;
    assert_int_equal(tti_model_auc(score, positive, 2, &auc), TT_OK);
    assert_true(isnan(auc));
    positive[1] = 0, score[1] = NAN;
    assert_int_equal(tti_model_auc(score, positive, 2, &auc), TT_OK);
    assert_true(isnan(auc));
    score[0] = INFINITY, score[1] = -INFINITY;
    assert_int_equal(tti_model_auc(score, positive, 2, &auc), TT_OK);
    assert_true(auc == 1);
    tt_mem_fail_nth(1);
    assert_int_equal(tti_model_auc(score, positive, 2, &auc), TT_NOMEM);
}

enum { PARAMS_MAX = (CASE_FEATURES + 1) * CASE_CLASSES };

static void
draw_params(tt_rng *rng, float *params, double *exact)
{
    for (size_t i = 0; i < PARAMS_MAX; i++) {
        params[i] = (float)tt_rng_normal(rng);
        exact[i] = (double)params[i];
    }
}

// Without the AUC and by one thread, everything else is the same to the last bit.
static void
loss_alone_is_the_same(const tt_model *model,
                       const tt_dataset *data,
                       const float *params,
                       const tt_model_metrics *metrics)
{
    tt_model_metrics alone;
    assert_int_equal(tt_model_evaluate_loss(model, data, params, &alone, NULL), TT_OK);
    assert_true(isnan(alone.auc));
    assert_true(alone.loss == metrics->loss && alone.objective == metrics->objective);
    assert_true(alone.accuracy == metrics->accuracy && alone.finite == metrics->finite);
    close_to(tt_model_regulariser(model, params), metrics->objective - metrics->loss, 1e-9);
}

static void
metrics_agree_at(const char *kind, tt_data_layout layout, uint32_t classes, int bias)
{
    tt_rng rng;
    tt_rng_init(&rng, 52, TT_RNG_TEST, (uint64_t)layout);
    static model_case c;
    float params[PARAMS_MAX], scores[CASE_ROWS];
    double exact[PARAMS_MAX], score[CASE_CLASSES], loss = 0, squares = 0;
    uint8_t positive[CASE_ROWS];
    int correct = 0;
    draw_params(&rng, params, exact);
    model_case_make(&c, &rng, layout, classes, 0);
    const size_t width = strcmp(kind, "softmax_regression") == 0 ? classes : 1;
    for (size_t r = 0; r < CASE_ROWS; r++) {
        loss += model_case_loss(kind, &c, r, exact, width, bias, score);
        size_t best = width == 1 ? score[0] > 0 : 0;
        for (size_t k = 1; k < width; k++)
            if (score[k] > score[best])
                best = k;
        correct += best == c.label[r];
        scores[r] = (float)score[0];
        positive[r] = c.label[r] != 0;
    }
    for (size_t i = 0; i < CASE_FEATURES * width; i++)
        squares += exact[i] * exact[i];
    const tt_model_config config = {.kind = kind, .l2 = 0.02, .bias = bias};
    tt_model *model;
    tt_model_metrics metrics;
    assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
    assert_int_equal(tt_model_evaluate(model, &c.data, params, 2, &metrics, NULL), TT_OK);
    assert_int_equal(metrics.rows, CASE_ROWS);
    assert_true(metrics.finite);
    close_to(metrics.loss, loss / CASE_ROWS, 1e-6 * (1 + loss / CASE_ROWS)); // float margins
    close_to(metrics.objective - metrics.loss, 0.01 * squares, 1e-12 * squares);
    close_to(metrics.accuracy, (double)correct / CASE_ROWS, 1e-12);
    if (width == 1)
        close_to(metrics.auc, auc_by_pairs(scores, positive, CASE_ROWS), 0.002);
    else
        assert_true(isnan(metrics.auc));
    loss_alone_is_the_same(model, &c.data, params, &metrics);
    params[CASE_FEATURES * width - 1] = NAN;
    assert_int_equal(tt_model_evaluate(model, &c.data, params, 1, &metrics, NULL), TT_OK);
    assert_false(metrics.finite);
    tt_model_close(model);
}

static void
metrics_agree_with_the_reference(void **state)
{
    TT_UNUSED(state);
    for (int layout = TT_DATA_SPARSE; layout <= TT_DATA_DENSE_F32; layout++)
        for (int bias = 0; bias < 2; bias++) {
            metrics_agree_at("logistic_regression", (tt_data_layout)layout, 2, bias);
            metrics_agree_at("linear_svm", (tt_data_layout)layout, 2, bias);
            metrics_agree_at("softmax_regression", (tt_data_layout)layout, 2, bias);
            metrics_agree_at("softmax_regression", (tt_data_layout)layout, 5, bias);
        }
}

// Many chunks: 20,011 sparse rows of 1 to 9 entries.
enum { MANY = 20011, LONGEST = 9, WIDE = 501 };

static void
threads_change_nothing(void **state)
{
    TT_UNUSED(state);
    static uint64_t begin[MANY + 1];
    static uint32_t index[MANY * LONGEST];
    static uint16_t label[MANY];
    float params[WIDE];
    tt_rng rng;
    tt_rng_init(&rng, 53, TT_RNG_TEST, 0);
    for (size_t r = 0; r < MANY; r++) {
        const uint64_t n = 1 + tt_rng_below(&rng, LONGEST);
        for (uint32_t i = 0; i < n; i++)
            index[begin[r] + i] = i * (WIDE / LONGEST) + (uint32_t)tt_rng_below(&rng, 50);
        begin[r + 1] = begin[r] + n;
        label[r] = (uint16_t)tt_rng_below(&rng, 2);
    }
    for (size_t i = 0; i < WIDE; i++)
        params[i] = (float)tt_rng_normal(&rng);
    const tt_dataset data = {.layout = TT_DATA_SPARSE,
                             .row_count = MANY,
                             .feature_count = WIDE,
                             .nonzero_count = begin[MANY],
                             .class_count = 2,
                             .class_label = {0, 1},
                             .label = label,
                             .row_begin = begin,
                             .index = index};
    const tt_model_config config = {.kind = "logistic_regression", .l2 = 1e-4};
    tt_model *model;
    tt_model_metrics first, other;
    assert_int_equal(tt_model_open(&config, &data, &model, NULL), TT_OK);
    assert_int_equal(tt_model_evaluate(model, &data, params, 1, &first, NULL), TT_OK);
    for (int threads = 2; threads <= 5; threads++) {
        assert_int_equal(tt_model_evaluate(model, &data, params, threads, &other, NULL), TT_OK);
        assert_true(first.loss == other.loss && first.objective == other.objective &&
                    first.accuracy == other.accuracy && first.auc == other.auc);
    }
    tt_model_close(model);
}

static void
test_sets_may_differ(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 54, TT_RNG_TEST, 0);
    static model_case c;
    float params[PARAMS_MAX];
    double exact[PARAMS_MAX];
    draw_params(&rng, params, exact);
    model_case_make(&c, &rng, TT_DATA_SPARSE, 3, 0);
    tt_model *model;
    tt_model_metrics plain, other;
    tt_error err = {0};
    // a model with fewer features than the rows have: the others weigh nothing
    tt_dataset narrow = c.data;
    narrow.feature_count = CASE_FEATURES - 6;
    const tt_model_config config = {.kind = "softmax_regression", .bias = 1};
    assert_int_equal(tt_model_open(&config, &narrow, &model, NULL), TT_OK);
    assert_int_equal(tt_model_evaluate(model, &c.data, params, 1, &plain, &err), TT_OK);
    float full[PARAMS_MAX] = {0};
    memcpy(full, params, sizeof(float) * (CASE_FEATURES - 6) * 3);
    memcpy(full + CASE_FEATURES * 3, params + (CASE_FEATURES - 6) * 3, 3 * sizeof(float));
    tt_model_close(model);
    assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
    assert_int_equal(tt_model_evaluate(model, &c.data, full, 1, &other, &err), TT_OK);
    assert_true(plain.loss == other.loss && plain.accuracy == other.accuracy);
    // only the upper two of the three labels: matched by their value
    tt_dataset two = c.data;
    uint16_t label[CASE_ROWS];
    for (size_t r = 0; r < CASE_ROWS; r++) {
        c.label[r] = (uint16_t)(1 + r % 2);
        label[r] = (uint16_t)(r % 2);
    }
    two.label = label, two.class_count = 2;
    two.class_label[0] = c.data.class_label[1], two.class_label[1] = c.data.class_label[2];
    assert_int_equal(tt_model_evaluate(model, &c.data, full, 1, &plain, &err), TT_OK);
    assert_int_equal(tt_model_evaluate(model, &two, full, 1, &other, &err), TT_OK);
    assert_true(plain.loss == other.loss && plain.accuracy == other.accuracy);
    // a label the model does not know
    two.class_label[1] = 99.5;
    assert_int_equal(tt_model_evaluate(model, &two, full, 1, &other, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "99.5"));
    tt_dataset dense = c.data;
    dense.layout = TT_DATA_DENSE_F32, dense.floats = c.floats;
    assert_int_equal(tt_model_evaluate(model, &dense, full, 1, &other, &err), TT_INVALID);
    tt_dataset none = c.data;
    none.row_count = 0;
    assert_int_equal(tt_model_evaluate(model, &none, full, 1, &other, &err), TT_INVALID);
    tt_model_close(model);
    assert_int_equal(tt_model_open(&config, &dense, &model, NULL), TT_OK);
    dense.feature_count--;
    assert_int_equal(tt_model_evaluate(model, &dense, full, 1, &other, &err), TT_INVALID);
    tt_model_close(model);
}

static void
memory_may_be_short(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 55, TT_RNG_TEST, 0);
    static model_case c;
    const float params[PARAMS_MAX] = {0.25F};
    for (int sparse = 0; sparse < 2; sparse++) {
        model_case_make(&c, &rng, sparse ? TT_DATA_SPARSE : TT_DATA_DENSE_U8, 2, 0);
        const tt_model_config config = {.kind = sparse ? "linear_svm" : "softmax_regression"};
        tt_model *model;
        assert_int_equal(tt_model_open(&config, &c.data, &model, NULL), TT_OK);
        for (uint64_t n = 1;; n++) {
            tt_model_metrics metrics;
            tt_error err = {0};
            tt_mem_fail_nth(n);
            const tt_status status = tt_model_evaluate(model, &c.data, params, 2, &metrics, &err);
            const int waiting = tt_mem_fail_pending();
            tt_mem_fail_nth(0);
            if (waiting) {
                assert_int_equal(status, TT_OK);
                assert_true(n > 3);
                break;
            }
            assert_int_equal(status, TT_NOMEM);
            assert_int_equal(err.status, TT_NOMEM);
        }
        tt_model_close(model);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auc_counts_pairs),
        cmocka_unit_test(metrics_agree_with_the_reference),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(test_sets_may_differ),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
