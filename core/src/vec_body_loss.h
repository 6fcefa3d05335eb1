// Body of a vector variant, part 2: exp and the losses on a whole batch of margins.
#include <math.h>

// v in the lanes below `rest`, 0 in the others.
static inline vf
keep_part(vf v, size_t rest)
{
    float kept[LANES] = {0};
    store_part(kept, rest, v);
    return load(kept);
}

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2. The polynomial is the minimax
// one of its degree for relative error (Remez exchange, 3e-9); what is left is rounding.
static inline vf
exp_lanes(vf x)
{
    const vf low = splat(-87.3F), high = splat(88.3F);
    x = select_lanes(x < low, low, x);
    x = select_lanes(x > high, high, x);
    const vf round_bias = splat(12582912.0F); // 1.5 * 2^23: adding it leaves n in the low bits
    vf t = x * splat(1.44269504F) + round_bias;
    vf n = t - round_bias;
    // ln 2 in two parts; n times the first is exact
    vf r = x - n * splat(0.693359375F);
    r = r - n * splat(-2.12194440e-4F);
    vf q = r * splat(0.00138145987F) + splat(0.00836871688F);
    q = q * r + splat(0.0416683880F);
    q = q * r + splat(0.166665206F);
    q = q * r + splat(0.499999934F);
    vf p = (q * r) * r + r + splat(1.0F);
    vu power = ((vu)t << 23) + 0x3f800000U;
    return p * (vf)power;
}

static void
exp_all(const float *source, float *target, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(target + i, exp_lanes(load(source + i)));
    if (i < n)
        store_part(target + i, n - i, exp_lanes(load_part(source + i, n - i, 0.0F)));
}

// With z = y m and e = exp(-|z|): loss = max(-z, 0) + log1p(e), d loss / d m = -y sigmoid(-z).
// log1p(e) = 2 atanh(s), s = e / (2 + e) <= 1/3, as s times a minimax polynomial in s^2 (relative
// error 4e-9). One division serves both quotients.
static inline vf
logistic_lanes(vf m, vf y, vf scale, vf *coefficient)
{
    const vf one = splat(1.0F), zero = splat(0.0F);
    vf z = y * m;
    vi negative = z < zero;
    vf size = select_lanes(negative, -z, z);
    vf e = exp_lanes(-size);
    vf one_e = one + e, two_e = splat(2.0F) + e;
    vf both = one / (one_e * two_e);
    vf s = e * (both * one_e);
    vf u = s * s;
    vf q = u * splat(0.281783351F) + splat(0.279606027F);
    q = q * u + splat(0.400249103F);
    q = q * u + splat(0.666663147F);
    q = q * u + splat(2.0F);
    vf share = both * two_e; // 1 / (1 + e)
    *coefficient = -scale * y * select_lanes(negative, share, e * share);
    return select_lanes(negative, size, zero) + s * q;
}

// A margin that is not a number counts as inside the corner, so that the loss shows it.
static inline vf
hinge_lanes(vf m, vf y, vf scale, vf *coefficient)
{
    const vf zero = splat(0.0F);
    vf gap = splat(1.0F) - y * m;
    vi outside = gap <= zero;
    *coefficient = select_lanes(outside, zero, -scale * y);
    return select_lanes(outside, zero, gap);
}

static inline __attribute__((always_inline)) double
loss_all(vf (*loss)(vf, vf, vf, vf *),
         const float *margin,
         const float *sign,
         float scale,
         float *coefficient,
         float *each,
         size_t n)
{
    const vf s = splat(scale);
    vf slope;
    vd low = {0}, high = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf value = loss(load(margin + i), load(sign + i), s, &slope);
        low += low_half(value);
        high += high_half(value);
        store(coefficient + i, slope);
        if (each != NULL)
            store(each + i, value);
    }
    if (i < n) {
        size_t rest = n - i;
        vf value =
            loss(load_part(margin + i, rest, 0.0F), load_part(sign + i, rest, 1.0F), s, &slope);
        value = keep_part(value, rest);
        low += low_half(value);
        high += high_half(value);
        store_part(coefficient + i, rest, slope);
        if (each != NULL)
            store_part(each + i, rest, value);
    }
    return sum_doubles(low + high);
}

static double
logistic(
    const float *margin, const float *sign, float scale, float *coefficient, float *each, size_t n)
{
    return loss_all(logistic_lanes, margin, sign, scale, coefficient, each, n);
}

static double
hinge(
    const float *margin, const float *sign, float scale, float *coefficient, float *each, size_t n)
{
    return loss_all(hinge_lanes, margin, sign, scale, coefficient, each, n);
}

// One row of logits -> scale * softmax; returns log(sum exp) - logit of the label.
static inline double
softmax_row(float *row, size_t label, float scale, size_t width)
{
    vf top = splat(-INFINITY);
    for (size_t k = 0; k < width; k += LANES) {
        vf x = load_part(row + k, width - k, -INFINITY);
        top = select_lanes(x > top, x, top);
    }
    const float highest = max_lanes(top), of_label = row[label];
    vf sum = splat(0.0F);
    for (size_t k = 0; k < width; k += LANES) {
        vf e = exp_lanes(load_part(row + k, width - k, -INFINITY) - splat(highest));
        store_part(row + k, width - k, e);
        sum += load_part(row + k, width - k, 0.0F);
    }
    const float total = sum_lanes(sum);
    const vf share = splat(scale / total);
    for (size_t k = 0; k < width; k += LANES)
        store_part(row + k, width - k, load_part(row + k, width - k, 0.0F) * share);
    return log((double)total) - ((double)of_label - (double)highest);
}

static double
softmax(float *logits, const uint16_t *label, float scale, float *each, size_t n, size_t width)
{
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        float *row = logits + i * width;
        const double of_row = softmax_row(row, label[i], scale, width);
        loss += of_row;
        if (each != NULL)
            each[i] = (float)of_row;
        row[label[i]] -= scale;
    }
    return loss;
}
