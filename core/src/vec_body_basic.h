// Body of a vector variant, part 1: element-wise loops, reductions, bf16. Included once by each
// vec_<variant>.c after its lane definitions (LANES, vf, load, store, ...); element-wise loops are
// left to the compiler, which vectorises them with the file's target flags.

static double
dot(const float *x, const float *y, size_t n)
{
    vd low = {0}, high = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf a = load(x + i), b = load(y + i);
        low += low_half(a) * low_half(b);
        high += high_half(a) * high_half(b);
    }
    double sum = sum_doubles(low + high);
    for (; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double
sum_squares(const float *x, size_t n)
{
    return dot(x, x, n);
}

static void
axpy(float a, const float *restrict x, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static void
scale_by(float a, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= a;
}

static void
add(const float *restrict x, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void
sgd_step(float *restrict w, const float *restrict g, size_t n, float lr)
{
    for (size_t i = 0; i < n; i++)
        w[i] -= lr * g[i];
}

static void
adagrad_step(
    float *restrict w, float *restrict acc, const float *restrict g, size_t n, float lr, float eps)
{
    for (size_t i = 0; i < n; i++) {
        acc[i] += g[i] * g[i];
        w[i] -= lr * g[i] / (__builtin_sqrtf(acc[i]) + eps);
    }
}

// Lanes of a where the mask is all ones, else of b.
static inline vf
select_lanes(vi mask, vf a, vf b)
{
    return (vf)(((vu)a & (vu)mask) | ((vu)b & ~(vu)mask));
}

// The upper halves of the result are the encoding: rounded to nearest even, subnormals to zero, NaN
// quiet.
static inline vu
bf16_round(vu u)
{
    vu bits = u + ((u >> 16) & 1U) + 0x7fffU;
    vi tiny = (u & 0x7f800000U) == 0U;
    vi nan = (vi)(u & 0x7fffffffU) > 0x7f800000;
    bits = (vu)select_lanes(tiny, (vf)(u & 0x80000000U), (vf)bits);
    return (vu)select_lanes(nan, (vf)(u | 0x00400000U), (vf)bits);
}

__attribute__((unused)) static void
bf16_encode(const float *source, tt_bf16 *target, size_t n)
{
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        store_upper(target + i, bf16_round((vu)load(source + i)),
                    bf16_round((vu)load(source + i + LANES)));
    if (i == n)
        return;
    float rest[2 * LANES] = {0};
    tt_bf16 halves[2 * LANES];
    memcpy(rest, source + i, (n - i) * sizeof *rest);
    store_upper(halves, bf16_round((vu)load(rest)), bf16_round((vu)load(rest + LANES)));
    memcpy(target + i, halves, (n - i) * sizeof *halves);
}

static void
bf16_decode(const tt_bf16 *restrict source, float *restrict target, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)source[i].bits << 16;
        memcpy(target + i, &u, sizeof u);
    }
}

static void
u8_to_float(const uint8_t *restrict source, float *restrict target, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        target[i] = (float)source[i] * scale;
}

#define VEC_TABLE(name_, variant_, encode_)                                                        \
    .name = (name_), .variant = (variant_), .dot = dot, .sum_squares = sum_squares, .axpy = axpy,  \
    .scale = scale_by, .add = add, .sparse_dot = sparse_dot, .sparse_axpy = sparse_axpy,           \
    .sgd_step = sgd_step, .adagrad_step = adagrad_step, .bf16_encode = (encode_),                  \
    .bf16_decode = bf16_decode, .u8_to_float = u8_to_float, .exp = exp_all, .logistic = logistic,  \
    .hinge = hinge, .softmax = softmax, .csr_dot = csr_dot, .csr_axpy = csr_axpy,                  \
    .dense_dot = dense_dot, .dense_axpy = dense_axpy
