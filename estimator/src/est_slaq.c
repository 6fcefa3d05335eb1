// slaq: loss = floor + 1 / (a x^2 + b x + d), a, b, d >= 0: SLAQ's curve for first-order methods,
// which begins like 1/x and may bend to 1/x^2. Linear in z = 1/(y - floor) once the floor is given:
// weighted non-negative least squares for each floor of a grid, weights e^4 (estimator-math,
// section 6).
//
// source  Zhang, Stafman, Or and Freedman, SLAQ: Quality-Driven Scheduling, SoCC 2017, section 3
#include "est_family.h"
#include "est_robust.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

enum { TERMS = 3 }; // x^2, x, 1

typedef struct problem {
    uint32_t n;
    double u[TTI_CURVE_POINTS]; // clock since the first block, in units of the last
    const double *y;
    double w[TTI_CURVE_POINTS]; // of y
} problem;

typedef struct solution {
    double c[TERMS]; // a, b, d
    double information[TERMS][TERMS];
    double squares; // in y
} solution;

static double
terms(const double *c, double u)
{
    return (c[0] * u + c[1]) * u + c[2];
}

// Normal equations of z on the terms; weights are those of z = 1/e: w e^4, e of the curve before.
static void
normal_equations(const problem *p, double floor, const double *before, solution *out, double *right)
{
    memset(out->information, 0, sizeof out->information);
    memset(right, 0, TERMS * sizeof *right);
    for (uint32_t i = 0; i < p->n; i++) {
        const double e = p->y[i] - floor;
        const double at = before ? 1 / terms(before, p->u[i]) : e;
        // beyond the linear range of 1/e the tangent at the curve stands in for it
        const double z = before ? 1 / at - (e - at) / (at * at) : 1 / e;
        const double w = p->w[i] * at * at * at * at;
        const double row[TERMS] = {p->u[i] * p->u[i], p->u[i], 1};
        for (int r = 0; r < TERMS; r++) {
            right[r] += w * row[r] * z;
            for (int c = 0; c < TERMS; c++)
                out->information[r][c] += w * row[r] * row[c];
        }
    }
}

// Non-negative least squares in three unknowns: of the seven sets of unknowns that are not 0 the
// best whose solution is not negative. d must be one of them: it is 1/e at the beginning.
static int
solve_bounded(solution *s, const double *right)
{
    double most = -INFINITY;
    for (int set = 0; set < 4; set++) { // bit 0: a, bit 1: b; d always
        double m[TERMS][TERMS] = {{0}}, inverse[TERMS][TERMS], c[TERMS] = {0}, gain = 0;
        const int in[TERMS] = {set & 1, (set >> 1) & 1, 1};
        for (int r = 0; r < TERMS; r++)
            for (int k = 0; k < TERMS; k++)
                m[r][k] = in[r] && in[k] ? s->information[r][k] * (r == k ? 1 + 1e-10 : 1) : 0;
        if (!tti_invert3((const double(*)[3])m, inverse))
            continue;
        int negative = 0;
        for (int r = 0; r < TERMS; r++) {
            for (int k = 0; k < TERMS; k++)
                c[r] += inverse[r][k] * right[k];
            negative |= c[r] < 0 || !isfinite(c[r]);
            gain += c[r] * right[r];
        }
        if (negative || !(c[2] > 0) || gain <= most)
            continue;
        most = gain;
        memcpy(s->c, c, sizeof c);
    }
    return most > -INFINITY;
}

static int
solve_floor(const problem *p, double floor, solution *out)
{
    double right[TERMS];
    normal_equations(p, floor, NULL, out, right);
    if (!solve_bounded(out, right))
        return 0;
    for (int pass = 0; pass < 3; pass++) {
        const solution before = *out;
        normal_equations(p, floor, before.c, out, right);
        if (!solve_bounded(out, right)) {
            *out = before;
            break;
        }
    }
    out->squares = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const double r = p->y[i] - floor - 1 / terms(out->c, p->u[i]);
        out->squares += p->w[i] * r * r;
    }
    return isfinite(out->squares);
}

// As in est_basis.c: blocks weigh by how far they are along the way, scaled to their effective
// number.
static void
set_weights(const tti_curve_data *data, const double *huber, problem *p)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const double trust = p->u[i] * sqrt(p->u[i]);
        sum += trust;
        squares += trust * trust;
    }
    for (uint32_t i = 0; i < p->n; i++)
        p->w[i] = huber[i] * p->u[i] * sqrt(p->u[i]) * sum / squares / data->variance[i];
}

static double
grid_floor(const tti_fit *fit, double top, int i)
{
    return fit->floor_least + (top - fit->floor_least) * i / (TTI_FIT_NODES - 1);
}

// All floors; the best one's solution in *best, its place returned, -1 = none.
static int
sweep(const problem *p, double top, tti_fit *out, solution *best)
{
    int at = -1;
    for (int i = 0; i < TTI_FIT_NODES; i++) {
        solution s;
        tti_fit_node *node = &out->nodes[i];
        *node = (tti_fit_node){.floor = grid_floor(out, top, i), .weight = INFINITY};
        if (!solve_floor(p, node->floor, &s))
            continue;
        node->shape = s.c[0];
        node->amplitude = s.c[1];
        node->amplitude_per_floor = s.c[2];
        node->weight = s.squares;
        if (at < 0 || s.squares < best->squares) {
            *best = s;
            at = i;
        }
    }
    return at;
}

// p = {a, b, d, clock of the beginning}; a node keeps a, b, d as shape, amplitude and
// amplitude_per_floor.
static void
slaq_fit(const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count < 4 || !(data->x[count - 1] > data->x[0]))
        return;
    problem p = {.n = count, .y = data->y};
    const double origin = data->x[0] - 0.5 * data->width[0];
    double low = INFINITY, h[TTI_CURVE_POINTS], r[TTI_CURVE_POINTS];
    out->unit = data->x[count - 1] - origin;
    out->floor_least = tti_floor_least(data, count);
    out->floor_most = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        p.u[i] = (data->x[i] - origin) / out->unit;
        low = fmin(low, data->y[i]);
        out->floor_most = fmin(out->floor_most, data->y[i] + 2 * sqrt(data->variance[i]));
        h[i] = 1;
    }
    const double top = out->floor_least + 0.98 * (low - out->floor_least);
    solution best = {.squares = INFINITY};
    int at = -1;
    for (int pass = 0; pass < 2; pass++) {
        set_weights(data, h, &p);
        at = sweep(&p, top, out, &best);
        if (at < 0)
            return;
        for (uint32_t i = 0; i < count; i++)
            r[i] = (data->y[i] - out->nodes[at].floor - 1 / terms(best.c, p.u[i])) /
                   sqrt(data->variance[i]);
        out->noise_factor = tti_residual_factor(r, count, 3, h);
    }
    out->node_count = TTI_FIT_NODES;
    for (int i = 0; i < TTI_FIT_NODES; i++) // from squares to weights
        out->nodes[i].weight =
            exp(-0.5 * fmax(out->nodes[i].weight - best.squares, 0) / out->noise_factor);
    memcpy(out->p, best.c, sizeof best.c);
    out->p[3] = origin;
    for (int k = 0; k < TERMS; k++)
        best.information[k][k] *= 1 + 1e-9;
    out->ok = tti_invert3((const double(*)[3])best.information, out->covariance);
    for (int k = 0; k < TERMS * TERMS; k++)
        out->covariance[k / TERMS][k % TERMS] *= out->noise_factor;
}

// s.d. of a u^2 + b u + d.
static double
terms_sd(const tti_fit *fit, double u)
{
    const double row[TERMS] = {u * u, u, 1};
    double variance = 0;
    for (int r = 0; r < TERMS; r++)
        for (int c = 0; c < TERMS; c++)
            variance += row[r] * fit->covariance[r][c] * row[c];
    return sqrt(fmax(variance, 0));
}

static double
slaq_floor(const tti_fit *fit)
{
    const tti_fit_node *best = &fit->nodes[0];
    for (uint32_t i = 1; i < fit->node_count; i++)
        if (fit->nodes[i].weight > best->weight)
            best = &fit->nodes[i];
    return best->floor;
}

static double
slaq_predict(const tti_fit *fit, double clock, double *sd)
{
    const double u = fmax(clock - fit->p[3], 0) / fit->unit, z = terms(fit->p, u);
    *sd = terms_sd(fit, u) / (z * z);
    return slaq_floor(fit) + 1 / z;
}

// The u at which a u^2 + b u + d = z; INFINITY when it never is.
static double
solve_u(const double *c, double z)
{
    const double rest = z - c[2];
    if (rest <= 0)
        return 0;
    if (c[0] > 0)
        return 2 * rest / (c[1] + sqrt(c[1] * c[1] + 4 * c[0] * rest)); // no cancellation
    return c[1] > 0 ? rest / c[1] : INFINITY;
}

// As in est_basis.c the floor is uniform a priori on either side of the target, 0.8 for the
// reachable side.
static void
slaq_inverse(const tti_fit *fit, double now, double target, tti_left *out)
{
    *out = (tti_left){.ok = fit->ok, .log_mean = log(TTI_ITERATIONS_MAX), .log_sd = 2};
    const double gone = now - fit->p[3];
    double under = 0, over = 0, mean = 0, squares = 0, within = 0, span_under = 0, span_over = 0;
    for (uint32_t i = 0; i < fit->node_count; i++) {
        const tti_fit_node *node = &fit->nodes[i];
        const double c[TERMS] = {node->shape, node->amplitude, node->amplitude_per_floor};
        if (node->floor >= target) {
            over += node->weight;
            span_over += 1;
            continue;
        }
        span_under += 1;
        const double u = solve_u(c, 1 / (target - node->floor));
        const double left = fmax(u * fit->unit - gone, 0.005 * gone);
        const double steep = 2 * c[0] * u + c[1];
        const double sd = steep > 0 ? terms_sd(fit, u) / steep * fit->unit / left : 2;
        const double x = tti_log_iterations(left);
        under += node->weight;
        mean += node->weight * x;
        squares += node->weight * x * x;
        within += node->weight * fmin(sd * sd, 4);
    }
    if (!(under > 0)) {
        out->unreachable = 1;
        return;
    }
    const double low_density = 0.8 * under / span_under;
    const double high_density = span_over > 0 ? 0.2 * over / span_over : 0;
    out->unreachable = high_density / (low_density + high_density);
    out->log_mean = tti_clamp(mean / under, 0, log(TTI_ITERATIONS_MAX));
    const double spread = squares / under - out->log_mean * out->log_mean;
    out->log_sd = fmin(sqrt(fmax(spread, 0) + within / under), 3);
}

static double
slaq_log_predictive(const tti_fit *fit, double clock, double y, double variance)
{
    return tti_default_log_predictive(&tti_family_slaq, fit, clock, y, variance);
}

// Prior 0.1: with a = 0 it is sublinear, which would count twice, and its free bend costs where
// data are few (asynchronous logistic regression, median and p90 of the time left's error: without
// it x1.347 and x3.88, prior 1 x1.391 and x4.34, 0.3 x1.386 and x3.90, 0.1 x1.355 and x3.75).
const tti_family tti_family_slaq = {
    "slaq", 0.1, slaq_fit, slaq_predict, slaq_inverse, slaq_log_predictive, slaq_floor, NULL};
