// Vector kernels: the loops that training spends its time in, in one variant per instruction set.
//
// A variant is a const table of functions chosen at run time, so that one program runs on any
// processor and the choice can be a knob. All variants compute the same thing; they differ in the
// order of additions (relative difference of the order of 1e-6 of the sum of absolute terms),
// except for bf16, whose bits are identical everywhere.
//
// Caveats: sizes are elements, n = 0 is fine, nothing needs alignment, source and target do not
// overlap unless a function says so. Indices are below 2^31. Nothing here allocates, locks or
// fails. Everything is thread [any]. Two threads on the same memory is a data race: Hogwild steps
// use tt_vec_racy_*.
#ifndef TT_CORE_VEC_H
#define TT_CORE_VEC_H

#include <stddef.h>
#include <stdint.h>

// The upper half of a float32: 8 exponent and 7 fraction bits. A struct so that it cannot slide
// into an integer.
typedef struct tt_bf16 {
    uint16_t bits;
} tt_bf16;

typedef enum tt_vec_variant {
    TT_VEC_PORTABLE, // any processor
    TT_VEC_AVX2,     // AVX2 and FMA
    TT_VEC_AVX512,   // AVX-512 F, BW, DQ, VL; avx512_bf16 where the processor has it
    TT_VEC_VARIANT_COUNT
} tt_vec_variant;

// `count` rows picked from a sparse matrix: row i of the operation is row rows[i] of the matrix, or
// row first + i when rows is NULL. Entries of row r are [begin[r], begin[r + 1]); indices within a
// row differ.
typedef struct tt_vec_csr {
    const uint64_t *begin;
    const uint32_t *index;
    const float *value;   // NULL: every value is 1
    const uint32_t *rows; // NULL: consecutive rows from `first` on
    uint64_t first;
    size_t count;
} tt_vec_csr;

// `count` rows picked from a dense matrix of `features` columns, of bytes (a feature is byte *
// scale) or, when bytes is NULL, of floats (scale is not looked at). rows and first as above.
typedef struct tt_vec_dense {
    const uint8_t *bytes;
    const float *floats;
    float scale;
    size_t features;
    const uint32_t *rows;
    uint64_t first;
    size_t count;
} tt_vec_dense;

typedef struct tt_vec_ops {
    const char *name; // "portable", "avx2", "avx512"
    tt_vec_variant variant;

    // sum of x[i] y[i] and of x[i]^2, products and sums in double
    double (*dot)(const float *x, const float *y, size_t n);
    double (*sum_squares)(const float *x, size_t n);
    // y += a x;  x *= a;  y += x
    void (*axpy)(float a, const float *x, float *y, size_t n);
    void (*scale)(float a, float *x, size_t n);
    void (*add)(const float *x, float *y, size_t n);

    // sum of values[i] w[index[i]], and y[index[i]] += a values[i]; values NULL: all ones
    float (*sparse_dot)(const float *values, const uint32_t *index, size_t n, const float *w);
    void (*sparse_axpy)(float a, const float *values, const uint32_t *index, size_t n, float *y);

    // w -= lr g
    void (*sgd_step)(float *w, const float *g, size_t n, float lr);
    // acc += g^2; w -= lr g / (sqrt(acc) + eps)  (Duchi, Hazan, Singer, JMLR 12, 2011, diagonal
    // form)
    void (*adagrad_step)(float *w, float *acc, const float *g, size_t n, float lr, float eps);

    // Round to nearest, ties to even. NaN stays a quiet NaN with its sign and upper fraction bits,
    // subnormals become zero with their sign. Same bits in all variants.
    void (*bf16_encode)(const float *source, tt_bf16 *target, size_t n);
    // Exact.
    void (*bf16_decode)(const tt_bf16 *source, float *target, size_t n);
    void (*u8_to_float)(const uint8_t *source, float *target, size_t n, float scale);

    // target[i] = exp(source[i]), relative error below 3e-7 for -87 < x < 88; below -87.3 it goes
    // to about 1e-38, above 88.3 it stays at exp(88.3); NaN stays NaN. In place is fine.
    void (*exp)(const float *source, float *target, size_t n);

    // Losses of margins m[i] with labels y[i] = +1 or -1. Return the sum of losses (in double) and
    // write coefficient[i] = scale * dloss/dm, and each row's loss to each[i] unless that is NULL.
    // In place (coefficient == margin) is fine.
    // logistic: log(1 + exp(-y m)); hinge: max(0, 1 - y m), subgradient 0 at the corner
    double (*logistic)(const float *margin,
                       const float *sign,
                       float scale,
                       float *coefficient,
                       float *each,
                       size_t n);
    double (*hinge)(const float *margin,
                    const float *sign,
                    float scale,
                    float *coefficient,
                    float *each,
                    size_t n);
    // logits [n][width], label [n] < width: returns the sum of -log softmax(logits)[label] and
    // replaces logits by scale * (softmax - onehot(label)). each: as above
    double (*softmax)(
        float *logits, const uint16_t *label, float scale, float *each, size_t n, size_t width);

    // out [count][width] = rows times w [.][width]
    void (*csr_dot)(const tt_vec_csr *rows, const float *w, size_t width, float *out);
    // y [.][width] += transposed rows times coefficient [count][width]
    void (*csr_axpy)(const tt_vec_csr *rows, const float *coefficient, size_t width, float *y);
    // The same for dense rows, w and y [features][width]. workspace: features * width floats when
    // width > 1, else not touched.
    void (*dense_dot)(
        const tt_vec_dense *rows, const float *w, size_t width, float *out, float *workspace);
    void (*dense_axpy)(const tt_vec_dense *rows,
                       const float *coefficient,
                       size_t width,
                       float *y,
                       float *workspace);
} tt_vec_ops;

// The table of `variant`, or of the best one below it that this processor can run. Never NULL.
const tt_vec_ops *tt_vec_ops_for(tt_vec_variant variant);
// The best that this processor can run.
const tt_vec_ops *tt_vec_best(void);

// Steps on memory that other threads change at the same time, on purpose (Hogwild: Niu, Recht, Re,
// Wright, NIPS 2011): an update may be lost, a value never torn. Plain vector code in production,
// relaxed atomics under the thread sanitizer. Only `source` of copy and w, acc and y are shared.
void tt_vec_racy_copy(const float *source, float *target, size_t n);
void tt_vec_racy_sgd(float *w, const float *g, size_t n, float lr);
void tt_vec_racy_adagrad(float *w, float *acc, const float *g, size_t n, float lr, float eps);
void tt_vec_racy_add(const float *x, float *y, size_t n);

#endif
