// Goal: every variant of every vector kernel computes what its header says.
// Method: random inputs at odd lengths and unaligned addresses against plain double loops, with
// bounds from the number of float operations; guard values around targets.
#include "tt/core.h"
#include "tt/core_vec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH_MAX = 70, ROOM = LENGTH_MAX + 24 };

// One float operation errs by 2^-24; a sum of n terms in any order by n 2^-24 of the absolute sum.
static const double unit_error = 1.0 / 16777216.0;

static void
fill_normal(tt_rng *rng, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)tt_rng_normal(rng);
}

static void
close_to(double actual, double expected, double bound)
{
    if (!(fabs(actual - expected) <= bound))
        fail_msg("%.9g is not within %.3g of %.9g", actual, bound, expected);
}

#define FOR_EACH_VARIANT(ops)                                                                      \
    for (int v_ = 0; v_ < TT_VEC_VARIANT_COUNT; v_++)                                              \
        for (const tt_vec_ops *ops = tt_vec_ops_for((tt_vec_variant)v_); ops != NULL; ops = NULL)

static void
tables_fall_back_and_are_whole(void **state)
{
    TT_UNUSED(state);
    assert_string_equal(tt_vec_ops_for(TT_VEC_PORTABLE)->name, "portable");
    FOR_EACH_VARIANT(ops)
    {
        assert_true((int)ops->variant <= v_);
        void *slots[(sizeof *ops - offsetof(tt_vec_ops, dot)) / sizeof(void *)];
        memcpy(slots, (const char *)ops + offsetof(tt_vec_ops, dot), sizeof slots);
        for (size_t i = 0; i < TT_COUNT_OF(slots); i++)
            assert_non_null(slots[i]);
    }
    assert_ptr_equal(tt_vec_best(), tt_vec_ops_for(TT_VEC_AVX512));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_string_equal(tt_vec_ops_for(TT_VEC_AVX2)->name, "avx2");
#endif
}

static void
reductions_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 11, TT_RNG_TEST, 0);
    float x[ROOM], y[ROOM];
    for (size_t n = 0; n <= LENGTH_MAX; n++) {
        size_t shift = n % 5;
        fill_normal(&rng, x, ROOM);
        fill_normal(&rng, y, ROOM);
        double dot = 0, squares = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            dot += (double)x[i + shift] * (double)y[i];
            squares += (double)x[i + shift] * (double)x[i + shift];
            size += fabs((double)x[i + shift] * (double)y[i]);
        }
        FOR_EACH_VARIANT(ops)
        {
            // products of floats are exact in double; only the order differs
            close_to(ops->dot(x + shift, y, n), dot, 1e-14 * size);
            close_to(ops->sum_squares(x + shift, n), squares, 1e-14 * squares);
        }
    }
}

// What an element-wise kernel does to element i, in double.
typedef struct elementwise {
    float w[ROOM], acc[ROOM], g[ROOM];
} elementwise;

static void
check_elements(const float *actual, const double *expected, const float *before, size_t n)
{
    for (size_t i = 0; i < n; i++)
        close_to(actual[i], expected[i], 4 * unit_error * (fabs(expected[i]) + 8));
    for (size_t i = n; i < ROOM - 5; i++)
        assert_true(actual[i] == before[i]); // nothing behind the end is touched
}

static void
steps_agree_at(const tt_vec_ops *ops, tt_rng *rng, size_t n)
{
    const size_t shift = n % 5;
    elementwise start;
    fill_normal(rng, start.w, ROOM);
    fill_normal(rng, start.g, ROOM);
    for (size_t i = 0; i < ROOM; i++)
        start.acc[i] = (float)tt_rng_uniform(rng);
    const float *g = start.g + shift;
    double axpy[ROOM], scaled[ROOM], added[ROOM], sgd[ROOM], ada[ROOM], acc[ROOM];
    for (size_t i = 0; i < n; i++) {
        const double w = start.w[i + shift], gi = g[i];
        acc[i] = (double)start.acc[i + shift] + gi * gi;
        axpy[i] = w + (double)-1.7F * gi;
        scaled[i] = w * (double)0.37F;
        added[i] = w + gi;
        sgd[i] = w - (double)0.13F * gi;
        ada[i] = w - (double)0.13F * gi / (sqrt(acc[i]) + (double)1e-3F);
    }
    elementwise now = start;
    ops->axpy(-1.7F, g, now.w + shift, n);
    check_elements(now.w + shift, axpy, start.w + shift, n);
    now = start;
    ops->scale(0.37F, now.w + shift, n);
    check_elements(now.w + shift, scaled, start.w + shift, n);
    now = start;
    ops->add(g, now.w + shift, n);
    check_elements(now.w + shift, added, start.w + shift, n);
    now = start;
    ops->sgd_step(now.w + shift, g, n, 0.13F);
    check_elements(now.w + shift, sgd, start.w + shift, n);
    now = start;
    ops->adagrad_step(now.w + shift, now.acc + shift, g, n, 0.13F, 1e-3F);
    check_elements(now.w + shift, ada, start.w + shift, n);
    check_elements(now.acc + shift, acc, start.acc + shift, n);
}

static void
steps_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 12, TT_RNG_TEST, 0);
    for (size_t n = 0; n <= LENGTH_MAX; n++)
        FOR_EACH_VARIANT(ops)
    steps_agree_at(ops, &rng, n);
}

static void
bytes_become_floats(void **state)
{
    TT_UNUSED(state);
    uint8_t bytes[256 + 3];
    float out[256 + 3];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    FOR_EACH_VARIANT(ops)
    for (size_t n = 0; n <= 256; n += n < 70 ? 1 : 31) {
        out[n] = -7.5F;
        ops->u8_to_float(bytes + 3, out, n, 0.00392156886F);
        for (size_t i = 0; i < n; i++)
            assert_true(out[i] == (float)bytes[i + 3] * 0.00392156886F);
        assert_true(out[n] == -7.5F);
    }
}

static void
exp_is_accurate(void **state)
{
    TT_UNUSED(state);
    enum { STEPS = 350003, BLOCK = 1013 };
    static float x[BLOCK], y[BLOCK];
    FOR_EACH_VARIANT(ops)
    {
        double worst = 0;
        for (size_t start = 0; start < STEPS; start += BLOCK) {
            for (size_t i = 0; i < BLOCK; i++)
                x[i] = (float)(-87.0 + 175.0 * (double)(start + i) / (STEPS + BLOCK));
            ops->exp(x, y, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) {
                const double exact = exp((double)x[i]);
                worst = fmax(worst, fabs((double)y[i] - exact) / exact);
            }
        }
        if (!(worst < 3e-7))
            fail_msg("%s: exp errs by %.3g", ops->name, worst);
        float special[5] = {-INFINITY, INFINITY, NAN, 0.0F, -1e30F};
        ops->exp(special, special, 5);
        assert_true(special[0] > 0 && special[0] < 2e-38F && special[4] == special[0]);
        assert_true(special[1] > 1e38F && isfinite(special[1]));
        assert_true(isnan(special[2]));
        assert_true(special[3] == 1.0F);
    }
}

static void
binary_losses_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 13, TT_RNG_TEST, 0);
    float m[ROOM], y[ROOM], c[ROOM], each[ROOM];
    for (size_t n = 0; n <= LENGTH_MAX; n++)
        FOR_EACH_VARIANT(ops)
    for (int kind = 0; kind < 2; kind++) {
        double loss = 0, slope[ROOM], of_row[ROOM];
        const double scale = (double)0.037F;
        for (size_t i = 0; i < ROOM; i++) {
            m[i] = (float)(tt_rng_normal(&rng) * (i % 7 == 0 ? 30 : 2));
            y[i] = tt_rng_below(&rng, 2) == 0 ? -1.0F : 1.0F;
            c[i] = each[i] = -7.25F;
        }
        for (size_t i = 0; i < n; i++) {
            const double yi = y[i + 1], z = yi * (double)m[i + 1];
            of_row[i] = kind == 0 ? fmax(-z, 0) + log1p(exp(-fabs(z))) : fmax(0, 1 - z);
            loss += of_row[i];
            slope[i] = kind == 0 ? -scale * yi / (1 + exp(z)) : z < 1 ? -scale * yi : 0;
        }
        double got = (kind == 0 ? ops->logistic : ops->hinge)(m + 1, y + 1, 0.037F, c, each, n);
        // each loss within a few float roundings; the sum is in double
        close_to(got, loss, 1e-6 * loss);
        for (size_t i = 0; i < n; i++)
            close_to(c[i], slope[i], 1e-6 * fabs(slope[i]) + 1e-38);
        for (size_t i = 0; i < n; i++)
            close_to(each[i], of_row[i], 1e-6 * of_row[i] + 1e-7);
        for (size_t i = n; i < ROOM; i++)
            assert_true(c[i] == -7.25F && each[i] == -7.25F);
    }
}

static void
losses_show_what_is_not_finite(void **state)
{
    TT_UNUSED(state);
    FOR_EACH_VARIANT(ops)
    {
        float m[3] = {1.5F, NAN, -0.5F}, c[3];
        const float y[3] = {1, -1, 1};
        const uint16_t label[1] = {2};
        assert_true(!isfinite(ops->logistic(m, y, 1, c, NULL, 3)));
        assert_true(!isfinite(ops->hinge(m, y, 1, c, NULL, 3)));
        assert_true(!isfinite(ops->softmax(m, label, 1, NULL, 1, 3)));
        m[0] = -INFINITY, m[1] = 0, m[2] = 0;
        assert_true(!isfinite(ops->logistic(m, y, 1, c, NULL, 3)));
        assert_true(!isfinite(ops->hinge(m, y, 1, c, NULL, 3)));
    }
}

static void
softmax_agrees_at(const tt_vec_ops *ops, tt_rng *rng, size_t n, size_t width)
{
    float logits[8 * 40 + 1], before[8 * 40 + 1];
    uint16_t label[8];
    float each[8];
    fill_normal(rng, logits, n * width + 1);
    for (size_t i = 0; i < n; i++) {
        label[i] = (uint16_t)tt_rng_below(rng, width);
        for (size_t k = 0; k < width && i % 2 == 1; k++)
            logits[i * width + k] = logits[i * width + k] * 20 + 500; // only the top survives
    }
    memcpy(before, logits, sizeof logits);
    double expected = 0;
    const double got = ops->softmax(logits, label, 0.25F, each, n, width);
    for (size_t i = 0; i < n; i++) {
        const float *row = before + i * width;
        double top = -INFINITY, sum = 0;
        for (size_t k = 0; k < width; k++)
            top = fmax(top, row[k]);
        for (size_t k = 0; k < width; k++)
            sum += exp(row[k] - top);
        const double of_row = log(sum) + top - (double)row[label[i]];
        close_to(each[i], of_row, 1e-6 * (of_row + 1));
        expected += of_row;
        for (size_t k = 0; k < width; k++) {
            const double p = exp(row[k] - top) / sum, hit = k == label[i] ? 1 : 0;
            close_to(logits[i * width + k], 0.25 * (p - hit), 2e-7);
        }
    }
    close_to(got, expected, 1e-6 * (expected + (double)n)); // log of a float sum near 1
    assert_true(logits[n * width] == before[n * width]);
}

static void
softmax_agrees(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 14, TT_RNG_TEST, 0);
    for (size_t width = 2; width <= 40; width++)
        FOR_EACH_VARIANT(ops)
    for (size_t n = 0; n <= 8; n += 4)
        softmax_agrees_at(ops, &rng, n, width);
}

enum { SPARSE_ROWS = 23, SPARSE_FEATURES = 90, WIDTH_MAX = 24 };

typedef struct sparse_case {
    uint64_t begin[SPARSE_ROWS + 1];
    uint32_t index[SPARSE_ROWS * SPARSE_FEATURES];
    float value[SPARSE_ROWS * SPARSE_FEATURES];
    float dense[SPARSE_ROWS][SPARSE_FEATURES];
    uint8_t bytes[SPARSE_ROWS][SPARSE_FEATURES];
    uint32_t rows[SPARSE_ROWS];
} sparse_case;

// Rows of every length from 0 to 70; the same matrix also dense (ones: all values 1).
static void
make_sparse(tt_rng *rng, sparse_case *c, int ones)
{
    memset(c, 0, sizeof *c);
    uint64_t at = 0;
    for (size_t r = 0; r < SPARSE_ROWS; r++) {
        size_t wanted = r * 3 + tt_rng_below(rng, 3), left = SPARSE_FEATURES;
        for (uint32_t f = 0; f < SPARSE_FEATURES; f++, left--) {
            if (tt_rng_below(rng, left) >= wanted)
                continue;
            wanted--;
            c->bytes[r][f] = (uint8_t)(1 + tt_rng_below(rng, 255));
            c->index[at] = f;
            c->value[at] = ones ? 1.0F : (float)tt_rng_normal(rng);
            c->dense[r][f] = c->value[at++];
        }
        c->begin[r + 1] = at;
        c->rows[r] = (uint32_t)r;
    }
    tt_rng_shuffle_u32(rng, c->rows, SPARSE_ROWS);
}

static void
sparse_vectors_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 15, TT_RNG_TEST, 0);
    static sparse_case c;
    float w[SPARSE_FEATURES], y[SPARSE_FEATURES];
    for (int ones = 0; ones < 2; ones++)
        FOR_EACH_VARIANT(ops)
        {
            make_sparse(&rng, &c, ones);
            fill_normal(&rng, w, SPARSE_FEATURES);
            for (size_t r = 0; r < SPARSE_ROWS; r++) {
                const size_t n = (size_t)(c.begin[r + 1] - c.begin[r]);
                const float *value = ones ? NULL : c.value + c.begin[r];
                double sum = 0, size = 0;
                for (size_t f = 0; f < SPARSE_FEATURES; f++) {
                    sum += (double)c.dense[r][f] * (double)w[f];
                    size += fabs((double)c.dense[r][f] * (double)w[f]);
                }
                close_to(ops->sparse_dot(value, c.index + c.begin[r], n, w), sum,
                         (double)(n + 1) * unit_error * size);
                memcpy(y, w, sizeof y);
                ops->sparse_axpy(0.6F, value, c.index + c.begin[r], n, y);
                for (size_t f = 0; f < SPARSE_FEATURES; f++)
                    close_to(y[f], (double)w[f] + (double)0.6F * (double)c.dense[r][f],
                             2 * unit_error * (fabs((double)w[f]) + 4));
            }
        }
}

// Reference products of the picked rows in double, with the sums of absolute terms as bounds.
typedef struct products {
    double out[SPARSE_ROWS * WIDTH_MAX], out_size[SPARSE_ROWS * WIDTH_MAX];
    double y[SPARSE_FEATURES * WIDTH_MAX], y_size[SPARSE_FEATURES * WIDTH_MAX];
} products;

static void
multiply(const float (*matrix)[SPARSE_FEATURES],
         const uint32_t *rows,
         size_t count,
         size_t features,
         size_t width,
         const float *w,
         const float *coefficient,
         products *p)
{
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < count; i++)
        for (size_t f = 0; f < features; f++)
            for (size_t k = 0; k < width; k++) {
                const double x = matrix[rows[i]][f];
                const double a = x * (double)w[f * width + k];
                const double b = x * (double)coefficient[i * width + k];
                p->out[i * width + k] += a, p->out_size[i * width + k] += fabs(a);
                p->y[f * width + k] += b, p->y_size[f * width + k] += fabs(b);
            }
}

static float weights[SPARSE_FEATURES * WIDTH_MAX], coefficients[SPARSE_ROWS * WIDTH_MAX],
    out_actual[SPARSE_ROWS * WIDTH_MAX + 1], y_actual[SPARSE_FEATURES * WIDTH_MAX + 1],
    workspace[SPARSE_FEATURES * WIDTH_MAX];

static void
check_products(const products *p, size_t count, size_t features, size_t width)
{
    const double many = SPARSE_FEATURES + 4;
    for (size_t i = 0; i < count * width; i++)
        close_to(out_actual[i], p->out[i], many * unit_error * p->out_size[i]);
    for (size_t i = 0; i < features * width; i++) // started at 0.5
        close_to(y_actual[i], 0.5 + p->y[i], many * unit_error * (p->y_size[i] + 0.5));
    assert_true(out_actual[count * width] == 0.5F && y_actual[features * width] == 0.5F);
}

static void
reset_targets(void)
{
    for (size_t i = 0; i < TT_COUNT_OF(out_actual); i++)
        out_actual[i] = 0.5F;
    for (size_t i = 0; i < TT_COUNT_OF(y_actual); i++)
        y_actual[i] = 0.5F;
}

static void
sparse_products_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 16, TT_RNG_TEST, 0);
    static sparse_case c;
    static products p;
    for (size_t width = 1; width <= WIDTH_MAX; width += width < 4 ? 1 : 10)
        for (int ones = 0; ones < 2; ones++)
            FOR_EACH_VARIANT(ops)
            {
                make_sparse(&rng, &c, ones);
                fill_normal(&rng, weights, TT_COUNT_OF(weights));
                fill_normal(&rng, coefficients, TT_COUNT_OF(coefficients));
                const float *value = ones ? NULL : c.value;
                tt_vec_csr m = {c.begin, c.index, value, c.rows, 0, SPARSE_ROWS};
                multiply(c.dense, c.rows, SPARSE_ROWS, SPARSE_FEATURES, width, weights,
                         coefficients, &p);
                reset_targets();
                ops->csr_dot(&m, weights, width, out_actual);
                ops->csr_axpy(&m, coefficients, width, y_actual);
                check_products(&p, SPARSE_ROWS, SPARSE_FEATURES, width);
                // consecutive rows from the sixth on
                const uint32_t consecutive[4] = {5, 6, 7, 8};
                tt_vec_csr part = {c.begin, c.index, value, NULL, 5, 4};
                multiply(c.dense, consecutive, 4, SPARSE_FEATURES, width, weights, coefficients,
                         &p);
                reset_targets();
                ops->csr_dot(&part, weights, width, out_actual);
                ops->csr_axpy(&part, coefficients, width, y_actual);
                check_products(&p, 4, SPARSE_FEATURES, width);
            }
}

static void
dense_products_agree_at(
    const tt_vec_ops *ops, tt_rng *rng, size_t features, size_t width, size_t count, int bytes)
{
    static sparse_case c;
    static products p;
    static float floats[SPARSE_ROWS * SPARSE_FEATURES];
    static uint8_t packed[SPARSE_ROWS * SPARSE_FEATURES];
    make_sparse(rng, &c, 0);
    fill_normal(rng, weights, TT_COUNT_OF(weights));
    fill_normal(rng, coefficients, TT_COUNT_OF(coefficients));
    const float unit = 0.00392156886F;
    for (size_t r = 0; r < SPARSE_ROWS; r++)
        for (size_t f = 0; f < features; f++) {
            floats[r * features + f] = c.dense[r][f];
            packed[r * features + f] = c.bytes[r][f];
            if (bytes)
                c.dense[r][f] = (float)((double)c.bytes[r][f] * (double)unit);
        }
    tt_vec_dense m = {
        bytes ? packed : NULL, bytes ? NULL : floats, unit, features, c.rows, 0, count};
    multiply(c.dense, c.rows, count, features, width, weights, coefficients, &p);
    reset_targets();
    ops->dense_dot(&m, weights, width, out_actual, width > 1 ? workspace : NULL);
    ops->dense_axpy(&m, coefficients, width, y_actual, width > 1 ? workspace : NULL);
    check_products(&p, count, features, width);
    const uint32_t consecutive[3] = {2, 3, 4};
    m.rows = NULL, m.first = 2, m.count = 3;
    multiply(c.dense, consecutive, 3, features, width, weights, coefficients, &p);
    reset_targets();
    ops->dense_dot(&m, weights, width, out_actual, workspace);
    ops->dense_axpy(&m, coefficients, width, y_actual, workspace);
    check_products(&p, 3, features, width);
}

static void
dense_products_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 17, TT_RNG_TEST, 0);
    static const size_t features[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 47, 70, 90};
    static const size_t widths[] = {1, 2, 3, 4, 5, 6, 9, 10, 11, 13, 16, 21, 24};
    for (size_t f = 0; f < TT_COUNT_OF(features); f++)
        for (size_t k = 0; k < TT_COUNT_OF(widths); k++)
            FOR_EACH_VARIANT(ops)
    for (int bytes = 0; bytes < 2; bytes++)
        dense_products_agree_at(ops, &rng, features[f], widths[k], (f * 5 + k * 3) % SPARSE_ROWS,
                                bytes);
}

static void
racy_steps_agree(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 18, TT_RNG_TEST, 0);
    // the racy kernels in a table, so that the same checks apply; the other slots are the portable
    // ones
    tt_vec_ops racy = *tt_vec_ops_for(TT_VEC_PORTABLE);
    racy.sgd_step = tt_vec_racy_sgd;
    racy.adagrad_step = tt_vec_racy_adagrad;
    racy.add = tt_vec_racy_add;
    float copy[ROOM], source[ROOM];
    for (size_t n = 0; n <= LENGTH_MAX; n++) {
        steps_agree_at(&racy, &rng, n);
        fill_normal(&rng, source, ROOM);
        copy[n] = 0.25F;
        tt_vec_racy_copy(source + n % 3, copy, n);
        assert_memory_equal(copy, source + n % 3, n * sizeof *copy);
        assert_true(copy[n] == 0.25F);
    }
}

enum { RACERS = 2, RACE_ROUNDS = 2000, RACE_SIZE = 37 };
static float race_memory[RACE_SIZE], race_sums[RACE_SIZE];

static void *
race(void *self)
{
    TT_UNUSED(self);
    float ones[RACE_SIZE], seen[RACE_SIZE];
    for (size_t i = 0; i < RACE_SIZE; i++)
        ones[i] = 1.0F;
    for (int round = 0; round < RACE_ROUNDS; round++) {
        tt_vec_racy_add(ones, race_memory, RACE_SIZE);
        tt_vec_racy_copy(race_memory, seen, RACE_SIZE);
        for (size_t i = 0; i < RACE_SIZE; i++) // whole numbers: a torn value would not be one
            if (!(seen[i] >= 1 && seen[i] <= RACERS * RACE_ROUNDS && seen[i] == floorf(seen[i])))
                return self;
        tt_vec_racy_sgd(race_sums, ones, RACE_SIZE, -1.0F);
    }
    return NULL;
}

static void
races_lose_updates_but_tear_nothing(void **state)
{
    TT_UNUSED(state);
    pthread_t threads[RACERS];
    for (size_t t = 0; t < RACERS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, race, race_memory), 0);
    for (size_t t = 0; t < RACERS; t++) {
        void *result;
        assert_int_equal(pthread_join(threads[t], &result), 0);
        assert_null(result);
    }
    for (size_t i = 0; i < RACE_SIZE; i++) {
        assert_true(race_memory[i] >= 1 && race_memory[i] <= RACERS * RACE_ROUNDS);
        assert_true(race_sums[i] >= 1 && race_sums[i] <= RACERS * RACE_ROUNDS);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_fall_back_and_are_whole),
        cmocka_unit_test(reductions_agree),
        cmocka_unit_test(steps_agree),
        cmocka_unit_test(bytes_become_floats),
        cmocka_unit_test(exp_is_accurate),
        cmocka_unit_test(binary_losses_agree),
        cmocka_unit_test(losses_show_what_is_not_finite),
        cmocka_unit_test(softmax_agrees),
        cmocka_unit_test(sparse_vectors_agree),
        cmocka_unit_test(sparse_products_agree),
        cmocka_unit_test(dense_products_agree),
        cmocka_unit_test(racy_steps_agree),
        cmocka_unit_test(races_lose_updates_but_tear_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
