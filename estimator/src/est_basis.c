// Families of the form loss = floor + amplitude * g(clock; shape): linear in two parameters, one
// shape searched. expfloor: g = exp(-shape x), fixed-step SGD. sublinear: g = shape / (x + shape),
// Optimus' 1/(b0 k + b1) + b2. power: g = (shape / (x + shape))^p, p = 1/2: what real SGD with many
// time scales looks like. The late ones of the same forms begin where 45 % of the way was gone, and
// know nothing of before: a hinge loss falls in a straight line until the first margins are met,
// and turns a corner there that no such form has.
#include "est_family.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

// Letters: x clock, s log shape, g basis, c floor, A amplitude, w weight.
typedef struct basis basis;
struct basis {
    double power; // of the power laws
    double start; // share of the way gone where the family begins
    // g averaged over [x - width/2, x + width/2].
    double (*eval)(const basis *b, double shape, double x, double width);
    // d eval / d log shape, width ignored.
    double (*slope)(const basis *b, double shape, double x);
    // The x with g(x) = value, value > 0.
    double (*solve)(const basis *b, double shape, double value);
    // Search range of the shape for points up to `last` of width `width`.
    void (*range)(double last, double width, double *low, double *high);
};

static double
exp_eval(const basis *b, double shape, double x, double width)
{
    TT_UNUSED(b);
    const double u = shape * width;
    return exp(-shape * x) * (1 + u * u / 24);
}

static double
exp_slope(const basis *b, double shape, double x)
{
    TT_UNUSED(b);
    return -shape * x * exp(-shape * x);
}

static double
exp_solve(const basis *b, double shape, double value)
{
    TT_UNUSED(b);
    return -log(value) / shape;
}

static void
exp_range(double last, double width, double *low, double *high)
{
    *low = 0.005 / last; // all but straight: a loss that has fallen 1 % must be able to go on to 0
    *high = 2 / fmax(width, 1e-3 * last);
}

static double
raise_to(double base, double power)
{
    return power == 1 ? base : power == 0.5 ? sqrt(base) : pow(base, power);
}

// The mean of (shape / t)^p over a block that is wide beside t, from its integral.
static double
power_mean(double p, double shape, double from, double to)
{
    if (p == 1)
        return shape * log(to / from) / (to - from);
    const double rise = raise_to(to, 1 - p) - raise_to(from, 1 - p);
    return raise_to(shape, p) * rise / ((1 - p) * (to - from));
}

static double
power_eval(const basis *b, double shape, double x, double width)
{
    const double t = x + shape, u = width / t, p = b->power;
    if (u > 0.1)
        return power_mean(p, shape, t - 0.5 * width, t + 0.5 * width);
    return raise_to(shape / t, p) * (1 + p * (p + 1) * u * u / 24);
}

static double
power_slope(const basis *b, double shape, double x)
{
    const double t = x + shape;
    return b->power * raise_to(shape / t, b->power) * x / t;
}

static double
power_solve(const basis *b, double shape, double value)
{
    return shape * (pow(value, -1 / b->power) - 1);
}

static void
power_range(double last, double width, double *low, double *high)
{
    TT_UNUSED(width);
    *low = 1e-3 * last;
    *high = 200 * last;
}

static const basis expfloor_basis = {0, 0, exp_eval, exp_slope, exp_solve, exp_range};
static const basis sublinear_basis = {1, 0, power_eval, power_slope, power_solve, power_range};
static const basis power_basis = {0.5, 0, power_eval, power_slope, power_solve, power_range};
static const basis expfloor_late_basis = {0, 0.45, exp_eval, exp_slope, exp_solve, exp_range};
static const basis power_late_basis = {0.5,         0.45,        power_eval,
                                       power_slope, power_solve, power_range};
static const basis sublinear_late_basis = {1,           0.45,        power_eval,
                                           power_slope, power_solve, power_range};
static const basis steep_late_basis = {2, 0.45, power_eval, power_slope, power_solve, power_range};

// The points of one fit, with weights 1 / variance * Huber. x counts from the first block's
// beginning: a history that starts late must not make g underflow.
typedef struct problem {
    const basis *basis;
    uint32_t n;
    double x[TTI_CURVE_POINTS];
    const double *y, *width;
    double w[TTI_CURVE_POINTS];
    double floor_least;
} problem;

// Least squares for c and A at one shape.
typedef struct solution {
    double squares;          // with c >= floor_least and A >= 0
    double floor, amplitude; // likewise
    int floor_fixed;
    double free_floor, free_floor_variance; // without the bounds
    double free_amplitude, amplitude_per_floor;
} solution;

static void
solve_shape(const problem *p, double log_shape, solution *out)
{
    const double shape = exp(log_shape);
    double g[TTI_CURVE_POINTS], sum_w = 0, sum_g = 0, sum_y = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        g[i] = p->basis->eval(p->basis, shape, p->x[i], p->width[i]);
        sum_w += p->w[i];
        sum_g += p->w[i] * g[i];
        sum_y += p->w[i] * p->y[i];
    }
    const double g_mean = sum_g / sum_w, y_mean = sum_y / sum_w;
    double gg = 0, gy = 0, yy = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const double dg = g[i] - g_mean, dy = p->y[i] - y_mean;
        gg += p->w[i] * dg * dg;
        gy += p->w[i] * dg * dy;
        yy += p->w[i] * dy * dy;
    }
    *out = (solution){.squares = yy, .floor = y_mean};
    const double raw = gg + sum_w * g_mean * g_mean;
    if (!(gg > 1e-14 * raw) || !(gg > 0))
        return;
    out->free_amplitude = gy / gg;
    out->free_floor = y_mean - out->free_amplitude * g_mean;
    out->free_floor_variance = 1 / sum_w + g_mean * g_mean / gg;
    out->amplitude_per_floor = -sum_w * g_mean / raw;
    if (out->free_amplitude <= 0)
        return; // a rising curve: the constant is the best this family can say
    if (out->free_floor >= p->floor_least) {
        out->floor = out->free_floor;
        out->amplitude = out->free_amplitude;
        out->squares = fmax(yy - out->amplitude * gy, 0);
        return;
    }
    const double lift = y_mean - p->floor_least, cross = gy + sum_w * g_mean * lift;
    out->floor_fixed = 1;
    out->floor = p->floor_least;
    out->amplitude = fmax(cross / raw, 0);
    out->squares = fmax(yy + sum_w * lift * lift - out->amplitude * cross, 0);
}

static double
squares_at(const problem *p, double log_shape)
{
    solution s;
    solve_shape(p, log_shape, &s);
    return s.squares;
}

// Least squares over log shape in [low, high]: a grid of `points`, then golden section about its
// best point, then the parabola through the last three.
static double
search_shape(const problem *p, double low, double high, int points, double tolerance)
{
    const double step = (high - low) / (points - 1);
    double best = low, best_squares = INFINITY;
    for (int i = 0; i < points; i++) {
        const double s = low + step * i, squares = squares_at(p, s);
        if (squares < best_squares) {
            best_squares = squares;
            best = s;
        }
    }
    const double ratio = 0.61803398874989484820;
    double a = fmax(low, best - step), b = fmin(high, best + step);
    double c = b - ratio * (b - a), d = a + ratio * (b - a);
    double at_c = squares_at(p, c), at_d = squares_at(p, d);
    while (b - a > tolerance) {
        if (at_c < at_d) {
            b = d;
            d = c;
            at_d = at_c;
            c = b - ratio * (b - a);
            at_c = squares_at(p, c);
        } else {
            a = c;
            c = d;
            at_c = at_d;
            d = a + ratio * (b - a);
            at_d = squares_at(p, d);
        }
    }
    const double middle = 0.5 * (a + b), h = 0.5 * (b - a);
    const double at_a = squares_at(p, a), at_b = squares_at(p, b), at_m = squares_at(p, middle);
    const double bend = at_a - 2 * at_m + at_b;
    if (!(bend > 0))
        return middle;
    return middle + tti_clamp(0.5 * h * (at_a - at_b) / bend, -h, h);
}

// How far from `best` towards `bound` the squares stay within `rise` of `least`.
static double
reach_of(const problem *p, double best, double bound, double least, double rise)
{
    double step = bound > best ? 1e-3 : -1e-3;
    for (int i = 0; i < 16; i++, step *= 2) {
        const double s = best + step;
        if (step > 0 ? s >= bound : s <= bound)
            return bound;
        if (squares_at(p, s) > least + rise)
            return s;
    }
    return bound;
}

// The posterior of the shape as weighted nodes, each with its conditional floor.
static void
lay_nodes(const problem *p, double best, double low, double high, double least, tti_fit *out)
{
    const double rise = 7 * out->spread_factor;
    const double from = reach_of(p, best, low, least, rise);
    const double to = reach_of(p, best, high, least, rise);
    out->node_count = TTI_FIT_NODES;
    for (uint32_t i = 0; i < TTI_FIT_NODES; i++) {
        const double s = from + (to - from) * i / (TTI_FIT_NODES - 1);
        solution at;
        solve_shape(p, s, &at);
        tti_fit_node *node = &out->nodes[i];
        node->shape = exp(s);
        node->weight = exp(-0.5 * fmax(at.squares - least, 0) / out->spread_factor);
        node->floor = at.free_floor;
        node->floor_sd = sqrt(out->spread_factor * at.free_floor_variance);
        node->amplitude = at.free_amplitude;
        node->amplitude_per_floor = at.amplitude_per_floor;
        if (!(at.free_amplitude > 0))
            node->weight = 0;
    }
}

// covariance of (log shape, floor, amplitude) by the delta method; a bounded floor counts as known.
static int
fill_covariance(const problem *p, const solution *at, double shape, tti_fit *out)
{
    double a[3][3] = {{0}};
    a[0][0] = 1.0 / 9; // log shape is known to a factor of 20 before any data
    for (uint32_t i = 0; i < p->n; i++) {
        const double j[3] = {at->amplitude * p->basis->slope(p->basis, shape, p->x[i]),
                             at->floor_fixed ? 0 : 1, p->basis->eval(p->basis, shape, p->x[i], 0)};
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                a[r][c] += p->w[i] * j[r] * j[c] / out->spread_factor;
    }
    for (int r = 0; r < 3; r++)
        a[r][r] *= 1 + 1e-9;
    return tti_invert3((const double(*)[3])a, out->covariance);
}

// The points of data[0, count) that a late family fits.
static void
take_late(const tti_curve_data *data, uint32_t count, double start, tti_curve_data *out)
{
    const double from = data->x[0] + start * (data->x[count - 1] - data->x[0]);
    uint32_t first = 0;
    while (data->x[first] < from)
        first++;
    out->count = count - first;
    out->target = data->target;
    memcpy(out->x, &data->x[first], out->count * sizeof *out->x);
    memcpy(out->width, &data->width[first], out->count * sizeof *out->width);
    memcpy(out->y, &data->y[first], out->count * sizeof *out->y);
    memcpy(out->variance, &data->variance[first], out->count * sizeof *out->variance);
}

static void
basis_fit(const basis *b, const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count < 4 || !(data->x[count - 1] > data->x[0]))
        return;
    problem p = {.basis = b, .n = count, .y = data->y, .width = data->width};
    p.floor_least = tti_floor_least(data, count);
    const double origin = data->x[0] - 0.5 * data->width[0];
    for (uint32_t i = 0; i < count; i++)
        p.x[i] = data->x[i] - origin;
    enum { GRID = 18 };
    double low, high, h[TTI_CURVE_POINTS], r[TTI_CURVE_POINTS];
    b->range(p.x[count - 1], data->width[0], &low, &high);
    low = log(low);
    high = fmax(log(high), low + 0.1);
    double trust[TTI_CURVE_POINTS];
    if (b->start > 0) // all of it is late
        for (uint32_t i = 0; i < count; i++)
            trust[i] = 1 / data->variance[i];
    else
        tti_trust_weights(data, p.x, count, trust);
    memcpy(p.w, trust, count * sizeof *trust);
    double best = 0;
    solution at = {0};
    for (int pass = 0; pass < 2; pass++) {
        const double around = (high - low) / (GRID - 1);
        best = pass == 0 ? search_shape(&p, low, high, GRID, 0.1)
                         : search_shape(&p, fmax(low, best - around), fmin(high, best + around), 5,
                                        1e-2 * around);
        solve_shape(&p, best, &at);
        for (uint32_t i = 0; i < count; i++)
            r[i] = (data->y[i] - at.floor -
                    at.amplitude * b->eval(b, exp(best), p.x[i], data->width[i])) /
                   sqrt(data->variance[i]);
        out->noise_factor = tti_residual_factor(r, count, 3, h);
        if (pass == 0)
            for (uint32_t i = 0; i < count; i++)
                p.w[i] = h[i] * trust[i];
    }
    out->spread_factor = tti_spread_factor(r, h, count, 3, out->noise_factor);
    out->p[0] = exp(best);
    out->p[1] = at.floor;
    out->p[2] = at.amplitude;
    out->p[3] = origin;
    out->floor_least = p.floor_least;
    out->floor_most = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        out->floor_most = fmin(out->floor_most, data->y[i] + 2 * sqrt(data->variance[i]));
    lay_nodes(&p, best, low, high, at.squares, out);
    out->ok = fill_covariance(&p, &at, out->p[0], out);
}

static void
fit_whole_or_late(const basis *b, const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    enum { LEAST = 12 }; // with fewer points half of them are too few
    tti_curve_data late;
    if (!(b->start > 0)) {
        basis_fit(b, data, count, out);
        return;
    }
    memset(out, 0, sizeof *out);
    if (count < LEAST)
        return;
    take_late(data, count, b->start, &late);
    basis_fit(b, &late, late.count, out);
}

static double
basis_predict(const basis *b, const tti_fit *fit, double clock, double *sd)
{
    const double shape = fit->p[0], x = fmax(clock - fit->p[3], 0), g = b->eval(b, shape, x, 0);
    const double j[3] = {fit->p[2] * b->slope(b, shape, x), 1, g};
    double variance = 0;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            variance += j[r] * fit->covariance[r][c] * j[c];
    *sd = sqrt(fmax(variance, 0));
    return fit->p[1] + fit->p[2] * g;
}

// P(a < Z < b), accurate in both tails.
static double
normal_between(double a, double b)
{
    if (!(b > a))
        return 0;
    return a > 0 ? tti_normal_cdf(-a) - tti_normal_cdf(-b) : tti_normal_cdf(b) - tti_normal_cdf(a);
}

// Z given a < Z < b, on the side of the mean where rounding spares the tail.
typedef struct truncated {
    double a, b;
    int mirrored;     // -Z is meant
    double low, high; // P(Z < a), P(Z < b)
} truncated;

static truncated
normal_truncated(double a, double b)
{
    const int mirrored = a > 0;
    truncated t = {.a = mirrored ? -b : a, .b = mirrored ? -a : b, .mirrored = mirrored};
    t.low = tti_normal_cdf(t.a);
    t.high = tti_normal_cdf(t.b);
    return t;
}

static double
truncated_quantile(const truncated *t, double q)
{
    const double share = t->mirrored ? 1 - q : q;
    const double z = t->high - t->low > 1e-280
                         ? tti_normal_quantile(t->low + share * (t->high - t->low))
                         : 0; // so far out that the bound nearest to the mean has it all
    const double inside = tti_clamp(z, t->a, t->b);
    return t->mirrored ? -inside : inside;
}

typedef struct moments {
    double weight, mean, squares;
} moments;

// What a form lacks shows at its floor too: it is uncertain by this share of what it is below the
// losses.
static const double FLOOR_DOUBT = 0.04;

// Adds the log iterations left of one node, its floor spread by sd over [floor_least, target).
static void
add_node(const basis *b,
         const tti_fit_node *node,
         double now,
         double target,
         double least,
         double sd,
         double weight,
         moments *sum)
{
    static const double quantile[5] = {0.1, 0.3, 0.5, 0.7, 0.9};
    const truncated spread =
        normal_truncated((least - node->floor) / sd, (target - node->floor) / sd);
    for (int i = 0; i < 5; i++) {
        const double z = truncated_quantile(&spread, quantile[i]);
        const double floor = tti_clamp(node->floor + z * sd, least, target);
        const double amplitude =
            node->amplitude + (floor - node->floor) * node->amplitude_per_floor;
        const double e = target - floor;
        double left = TTI_ITERATIONS_MAX;
        if (amplitude > 0 && e > 0)
            left = b->solve(b, node->shape, fmin(e / amplitude, 1)) - now;
        // under half a per cent of the way gone "left" is noise of the fit
        const double x = tti_log_iterations(fmax(left, 0.005 * now)), w = weight / 5;
        sum->weight += w;
        sum->mean += w * x;
        sum->squares += w * x * x;
    }
}

// The floor is uniform a priori, four times as dense under the target as above it: a person who
// names a target believes in it, and little data must not overrule that.
static void
basis_inverse(const basis *b, const tti_fit *fit, double now, double target, tti_left *out)
{
    *out = (tti_left){.ok = fit->ok, .log_mean = log(TTI_ITERATIONS_MAX), .log_sd = 2};
    const double least = fit->floor_least, most = fit->floor_most;
    const double gone = now - fit->p[3];
    double low_mass = 0, high_mass = 0;
    moments sum = {0};
    for (uint32_t i = 0; i < fit->node_count && target > least; i++) {
        const tti_fit_node *node = &fit->nodes[i];
        if (!(node->weight > 0))
            continue;
        const double misfit = FLOOR_DOUBT * fmax(most - node->floor, 0);
        const double sd = fmax(hypot(node->floor_sd, misfit), 1e-12 + 1e-9 * fabs(node->floor));
        const double a = (least - node->floor) / sd, b_ = (target - node->floor) / sd;
        double under = normal_between(a, b_);
        double over = normal_between(b_, fmax((most - node->floor) / sd, b_));
        if (under + over < 1e-280) {
            under = node->floor < target ? 1 : 0;
            over = 1 - under;
        }
        const double share = node->weight / (under + over);
        low_mass += share * under;
        high_mass += share * over;
        if (under > 0)
            add_node(b, node, gone, target, least, sd, share * under, &sum);
    }
    if (!(low_mass > 0)) {
        out->unreachable = fit->p[2] > 0 || target <= least ? 1 : 0.5;
        return;
    }
    out->unreachable = high_mass / (TTI_REACHABLE_ODDS * low_mass + high_mass);
    out->log_mean = fmin(sum.mean / sum.weight, log(TTI_ITERATIONS_MAX));
    out->log_sd = sqrt(fmax(sum.squares / sum.weight - out->log_mean * out->log_mean, 0));
}

static double
basis_floor(const tti_fit *fit)
{
    return fit->p[1];
}

#define BASIS_FAMILY(name, weight)                                                                 \
    static void name##_fit(const tti_curve_data *data, uint32_t count, tti_fit *out)               \
    {                                                                                              \
        fit_whole_or_late(&name##_basis, data, count, out);                                        \
    }                                                                                              \
    static double name##_predict(const tti_fit *fit, double clock, double *sd)                     \
    {                                                                                              \
        return basis_predict(&name##_basis, fit, clock, sd);                                       \
    }                                                                                              \
    static void name##_inverse(const tti_fit *fit, double now, double target, tti_left *out)       \
    {                                                                                              \
        basis_inverse(&name##_basis, fit, now, target, out);                                       \
    }                                                                                              \
    static double name##_log_predictive(const tti_fit *fit, double clock, double y,                \
                                        double variance)                                           \
    {                                                                                              \
        return tti_default_log_predictive(&tti_family_##name, fit, clock, y, variance);            \
    }                                                                                              \
    const tti_family tti_family_##name = {                                                         \
        #name,       weight, name##_fit, name##_predict, name##_inverse, name##_log_predictive,    \
        basis_floor, NULL};

// Gradient descent on smooth convex losses falls as 1 / k, with a fixed step near the minimum as an
// exponential: likely before any evidence.
BASIS_FAMILY(expfloor, 3)
BASIS_FAMILY(sublinear, 3)
BASIS_FAMILY(power, 1)
BASIS_FAMILY(expfloor_late, 1)
BASIS_FAMILY(power_late, 0.3)
BASIS_FAMILY(sublinear_late, 0.5)
BASIS_FAMILY(steep_late, 0.5)
