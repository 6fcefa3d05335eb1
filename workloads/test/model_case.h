// Small random data sets and a reference loss in double, shared by the tests of the models.
#ifndef TTI_TEST_MODEL_CASE_H
#define TTI_TEST_MODEL_CASE_H

#include "tt/workloads_model.h"
#include <math.h>
#include <string.h>

enum { CASE_ROWS = 60, CASE_FEATURES = 29, CASE_CLASSES = 5 };

// A matrix kept in every layout at once; `data` shows one of them.
typedef struct model_case {
    tt_dataset data;
    double x[CASE_ROWS][CASE_FEATURES]; // what the layout says, exactly as floats
    uint16_t label[CASE_ROWS];
    uint64_t begin[CASE_ROWS + 1];
    uint32_t index[CASE_ROWS * CASE_FEATURES];
    float value[CASE_ROWS * CASE_FEATURES];
    uint8_t bytes[CASE_ROWS * CASE_FEATURES];
    float floats[CASE_ROWS * CASE_FEATURES];
} model_case;

// Every feature is in some row, and one row in seven is empty. ones: sparse values are all 1.
static void
model_case_make(model_case *c, tt_rng *rng, tt_data_layout layout, uint32_t classes, int ones)
{
    memset(c, 0, sizeof *c);
    const float unit = 0.00784313772F;
    uint64_t at = 0;
    for (size_t r = 0; r < CASE_ROWS; r++) {
        c->label[r] = (uint16_t)(r < classes ? r : tt_rng_below(rng, classes));
        for (uint32_t f = 0; f < CASE_FEATURES; f++) {
            const size_t cell = r * CASE_FEATURES + f;
            const int present = r % 7 != 6 && (f == r % CASE_FEATURES || tt_rng_below(rng, 4) == 0);
            const float drawn = ones ? 1.0F : (float)tt_rng_normal(rng);
            c->bytes[cell] = present ? (uint8_t)tt_rng_below(rng, 256) : 0;
            c->floats[cell] = present ? drawn : 0.0F;
            c->x[r][f] = layout == TT_DATA_DENSE_U8 ? (double)c->bytes[cell] * (double)unit
                                                    : (double)c->floats[cell];
            if (present) {
                c->index[at] = f;
                c->value[at++] = drawn;
            }
        }
        c->begin[r + 1] = at;
    }
    c->data = (tt_dataset){.layout = layout,
                           .row_count = CASE_ROWS,
                           .feature_count = CASE_FEATURES,
                           .class_count = classes,
                           .label = c->label,
                           .scale = unit};
    for (uint32_t k = 0; k < classes; k++)
        c->data.class_label[k] = (double)k * 2 - 1;
    c->data.nonzero_count = (uint64_t)CASE_ROWS * CASE_FEATURES;
    if (layout == TT_DATA_SPARSE) {
        c->data.row_begin = c->begin;
        c->data.index = c->index;
        c->data.value = ones ? NULL : c->value;
        c->data.nonzero_count = at;
    } else if (layout == TT_DATA_DENSE_U8) {
        c->data.bytes = c->bytes;
    } else {
        c->data.floats = c->floats;
    }
}

// Loss of one row by the definitions; params [features + bias][width].
static inline double
model_case_loss(const char *kind,
                const model_case *c,
                size_t r,
                const double *params,
                size_t width,
                int bias,
                double *score)
{
    for (size_t k = 0; k < width; k++) {
        score[k] = bias ? params[CASE_FEATURES * width + k] : 0;
        for (size_t f = 0; f < CASE_FEATURES; f++)
            score[k] += c->x[r][f] * params[f * width + k];
    }
    const double z = score[0] * (c->label[r] != 0 ? 1 : -1);
    if (strcmp(kind, "logistic_regression") == 0)
        return z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z;
    if (strcmp(kind, "linear_svm") == 0)
        return fmax(0, 1 - z);
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k < width; k++)
        top = fmax(top, score[k]);
    for (size_t k = 0; k < width; k++)
        sum += exp(score[k] - top);
    return log(sum) + top - score[c->label[r]];
}

#endif
