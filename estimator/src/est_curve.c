// Families of plug-ins: loss = f(p, x), x the clock since the first block's beginning, fitted by
// weighted least squares (Levenberg-Marquardt of GSL, which is met here) with Huber's weights;
// errors of what follows from p by the delta method, s.d.^2 = g' C g, g the derivatives by p and C
// the covariance of p.
#include "est_curve.h"
#include "est_robust.h"
#include "tt/core.h"
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

enum {
    LEAST_POINTS = 4,
    HUBER_ROUNDS = 3,
    STEPS_MAX = 40, // of Levenberg-Marquardt, in each round
    HALVINGS = 48,
    PARAMETERS = TT_CURVE_PARAMETERS_MAX
};
static const double MOST = 1e100;     // larger losses would overflow when squared
static const double OUTSIDE = 1e8;    // residual of a p outside of the domain, of its loss's size
static const double LOG_SD_MOST = 3;  // as of the other families
static const double LOG_SD_NEVER = 2; // likewise

// --- derivatives

// Something that depends on p: a loss at x, the mean loss of a block about x, the floor.
typedef double value_of(const tt_curve *curve, const double *p, double x, double width);

static double
loss_at(const tt_curve *curve, const double *p, double x, double width)
{
    TT_UNUSED(width);
    return curve->loss(p, x);
}

// By Gauss' two points, exact up to a cubic: late in a job the first blocks are wide and bent.
static double
block_loss(const tt_curve *curve, const double *p, double x, double width)
{
    const double reach = 0.28867513459481288225 * width;
    return 0.5 * (curve->loss(p, fmax(x - reach, 0)) + curve->loss(p, x + reach));
}

// The lowest loss there can be; without a floor, what is left after as long as can be told.
static double
floor_at(const tt_curve *curve, const double *p, double x, double width)
{
    TT_UNUSED(width);
    return curve->floor ? curve->floor(p) : curve->loss(p, x + TTI_ITERATIONS_MAX);
}

// Central differences by each p, one-sided at the edge of the domain. 0: not finite even so.
static int
differentiate(
    const tt_curve *curve, value_of *value, const double *p, double x, double width, double *out)
{
    double q[PARAMETERS] = {0};
    int good = 1;
    memcpy(q, p, curve->parameters * sizeof *q);
    for (uint32_t k = 0; k < curve->parameters; k++) {
        const double step = fmax(6e-6 * fabs(p[k]), 1e-9);
        double low = p[k] - step, high = p[k] + step;
        q[k] = low;
        double under = value(curve, q, x, width);
        q[k] = high;
        double over = value(curve, q, x, width);
        q[k] = p[k];
        if (!isfinite(under)) {
            low = p[k];
            under = value(curve, q, x, width);
        } else if (!isfinite(over)) {
            high = p[k];
            over = value(curve, q, x, width);
        }
        out[k] = (over - under) / (high - low);
        good &= isfinite(out[k]) != 0;
    }
    return good;
}

// a' C b.
static double
product(const tt_curve *curve, const tti_curve_fit *fit, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t r = 0; r < curve->parameters; r++)
        for (uint32_t c = 0; c < curve->parameters; c++)
            sum += a[r] * fit->covariance[r][c] * b[c];
    return sum;
}

// --- fit

void
tti_curve_prepare(void)
{
    (void)gsl_set_error_handler_off();
}

typedef struct problem {
    const tt_curve *curve;
    uint32_t n;
    double x[TTI_CURVE_POINTS]; // since the origin
    const double *width, *y, *variance;
    double trust[TTI_CURVE_POINTS];  // weights before the outliers are known
    double weight[TTI_CURVE_POINTS]; // with them
} problem;

static int
residuals(const gsl_vector *at, void *self, gsl_vector *out)
{
    const problem *b = self;
    double p[PARAMETERS];
    for (uint32_t k = 0; k < b->curve->parameters; k++)
        p[k] = gsl_vector_get(at, k);
    for (uint32_t i = 0; i < b->n; i++) {
        const double loss = block_loss(b->curve, p, b->x[i], b->width[i]);
        // A step out of the domain must look bad, not end the search: it is then made shorter.
        const int inside = isfinite(loss) && fabs(loss) < MOST;
        gsl_vector_set(out, i, inside ? loss - b->y[i] : OUTSIDE * (1 + fabs(b->y[i])));
    }
    return GSL_SUCCESS;
}

static int
jacobian(const gsl_vector *at, void *self, gsl_matrix *out)
{
    const problem *b = self;
    double p[PARAMETERS], row[PARAMETERS];
    for (uint32_t k = 0; k < b->curve->parameters; k++)
        p[k] = gsl_vector_get(at, k);
    for (uint32_t i = 0; i < b->n; i++) {
        if (!differentiate(b->curve, block_loss, p, b->x[i], b->width[i], row))
            return GSL_EBADFUNC;
        for (uint32_t k = 0; k < b->curve->parameters; k++)
            gsl_matrix_set(out, i, k, row[k]);
    }
    return GSL_SUCCESS;
}

// Least squares with the weights there are, from p to p.
static int
minimise(const problem *b, gsl_multifit_nlinear_workspace *work, double *p)
{
    gsl_multifit_nlinear_fdf functions = {.f = residuals,
                                          .df = jacobian,
                                          .n = b->n,
                                          .p = b->curve->parameters,
                                          .params = (void *)(uintptr_t)b};
    const gsl_vector_const_view from = gsl_vector_const_view_array(p, b->curve->parameters);
    const gsl_vector_const_view weights = gsl_vector_const_view_array(b->weight, b->n);
    int why;
    if (gsl_multifit_nlinear_winit(&from.vector, &weights.vector, &functions, work) != GSL_SUCCESS)
        return 0;
    const int status =
        gsl_multifit_nlinear_driver(STEPS_MAX, 1e-6, 1e-9, 0, NULL, NULL, &why, work);
    // Too many steps, or none that is better: the best point so far is what there is.
    if (status != GSL_SUCCESS && status != GSL_EMAXITER && status != GSL_ENOPROG)
        return 0;
    for (uint32_t k = 0; k < b->curve->parameters; k++)
        p[k] = gsl_vector_get(gsl_multifit_nlinear_position(work), k);
    return 1;
}

// Residuals in units of the blocks' own s.d. 0: not all of them are numbers.
static int
standardise(const problem *b, const double *p, double *r)
{
    int good = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        const double loss = block_loss(b->curve, p, b->x[i], b->width[i]);
        r[i] = (b->y[i] - loss) / sqrt(b->variance[i]);
        good &= isfinite(loss) && fabs(loss) < MOST;
    }
    return good;
}

static int
fit_robustly(problem *b, double *p, double *noise_factor)
{
    double r[TTI_CURVE_POINTS], h[TTI_CURVE_POINTS];
    if (!standardise(b, p, r))
        return 0;
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &options, b->n, b->curve->parameters);
    int good = work != NULL;
    memcpy(b->weight, b->trust, b->n * sizeof *b->weight);
    for (int round = 0; round < HUBER_ROUNDS && good; round++) {
        for (uint32_t i = 0; i < b->n && round > 0; i++)
            b->weight[i] = h[i] * b->trust[i];
        good = minimise(b, work, p) && standardise(b, p, r);
        if (good)
            *noise_factor = tti_residual_factor(r, b->n, b->curve->parameters, h);
    }
    if (work != NULL)
        gsl_multifit_nlinear_free(work);
    return good;
}

// (J' W J / factor + P)^-1, W the weights. P says that before any data a parameter is known to
// three times its own size, or to what would move the losses by three times their range: what the
// data do not tell must not count as known.
static int
fill_covariance(const problem *b, const double *p, double factor, tti_curve_fit *out)
{
    const uint32_t m = b->curve->parameters;
    double rows[(TTI_CURVE_POINTS + PARAMETERS) * PARAMETERS] = {0};
    double c[PARAMETERS * PARAMETERS], steepest[PARAMETERS] = {0};
    double low = b->y[0], high = b->y[0];
    for (uint32_t i = 0; i < b->n; i++) {
        double *row = &rows[i * m];
        if (!differentiate(b->curve, block_loss, p, b->x[i], b->width[i], row))
            return 0;
        for (uint32_t k = 0; k < m; k++) {
            steepest[k] = fmax(steepest[k], fabs(row[k]));
            row[k] *= sqrt(b->weight[i] / factor);
        }
        low = fmin(low, b->y[i]);
        high = fmax(high, b->y[i]);
    }
    const double range = fmax(high - low, 1e-9 * (1 + fabs(low)));
    for (uint32_t k = 0; k < m; k++)
        rows[(b->n + k) * m + k] =
            1 / (3 * fmax(fabs(p[k]), steepest[k] > 0 ? range / steepest[k] : 1));
    const gsl_matrix_const_view j = gsl_matrix_const_view_array(rows, b->n + m, m);
    gsl_matrix_view covariance = gsl_matrix_view_array(c, m, m);
    if (gsl_multifit_nlinear_covar(&j.matrix, 0, &covariance.matrix) != GSL_SUCCESS)
        return 0;
    int good = 1;
    for (uint32_t k = 0; k < m * m; k++) {
        out->covariance[k / m][k % m] = c[k];
        good &= isfinite(c[k]) != 0;
    }
    return good;
}

// What the fit will be asked for must be there.
static int
is_whole(const tt_curve *curve, const double *p, double last)
{
    for (uint32_t k = 0; k < curve->parameters; k++)
        if (!isfinite(p[k]))
            return 0;
    return isfinite(curve->loss(p, 0)) && isfinite(curve->loss(p, last + TTI_ITERATIONS_MAX)) &&
           isfinite(floor_at(curve, p, last, 0));
}

void
tti_curve_fit_points(const tt_curve *curve,
                     const tti_curve_data *data,
                     uint32_t count,
                     tti_fit *out)
{
    memset(out, 0, sizeof *out);
    if (count < LEAST_POINTS || count <= curve->parameters || !(data->x[count - 1] > data->x[0]))
        return;
    problem b = {
        .curve = curve, .n = count, .width = data->width, .y = data->y, .variance = data->variance};
    double p[PARAMETERS] = {0};
    const double origin = data->x[0] - 0.5 * data->width[0];
    for (uint32_t i = 0; i < count; i++)
        b.x[i] = data->x[i] - origin;
    if (!curve->guess(b.x, data->y, count, data->target, p))
        return;
    tti_trust_weights(data, b.x, count, b.trust);
    if (!fit_robustly(&b, p, &out->noise_factor) || !is_whole(curve, p, b.x[count - 1]))
        return;
    memcpy(out->curve.p, p, sizeof p);
    out->curve.origin = origin;
    out->ok = fill_covariance(&b, p, out->noise_factor, &out->curve);
}

// --- answers

double
tti_curve_predict(const tt_curve *curve, const tti_fit *fit, double clock, double *sd)
{
    const double x = fmax(clock - fit->curve.origin, 0);
    double gradient[PARAMETERS];
    if (!differentiate(curve, loss_at, fit->curve.p, x, 0, gradient)) {
        *sd = NAN;
        return NAN;
    }
    *sd = sqrt(fmax(product(curve, &fit->curve, gradient, gradient), 0));
    return curve->loss(fit->curve.p, x);
}

// Log of the iterations from x on until the curve meets the target, by bisection. Under half a per
// cent of the way gone "left" is noise of the fit.
static double
log_left(const tt_curve *curve, const double *p, double x, double target)
{
    double low = tti_log_iterations(0.005 * x), high = log(TTI_ITERATIONS_MAX);
    if (curve->loss(p, x + exp(low)) <= target)
        return low;
    if (!(curve->loss(p, x + exp(high)) <= target))
        return high;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        if (curve->loss(p, x + exp(middle)) <= target)
            high = middle;
        else
            low = middle;
    }
    return 0.5 * (low + high);
}

// Its variance given the floor. d log k / dp = -(df/dp) / (k df/dx) where the target is met; toward
// is the change of p with the floor, so that what p and the floor have in common can be taken off.
static double
log_left_variance(const tt_curve *curve,
                  const tti_curve_fit *fit,
                  const double *p,
                  double x,
                  double log_k,
                  const double *toward,
                  double floor_sd)
{
    const double k = exp(log_k), h = 1e-3 * k;
    if (log_k >= log(TTI_ITERATIONS_MAX))
        return LOG_SD_NEVER * LOG_SD_NEVER;
    const double fall = (curve->loss(p, x + k - h) - curve->loss(p, x + k + h)) / (2 * h);
    double gradient[PARAMETERS], along = 0;
    if (!(fall > 0) || !differentiate(curve, loss_at, p, x + k, 0, gradient))
        return LOG_SD_MOST * LOG_SD_MOST;
    for (uint32_t i = 0; i < curve->parameters; i++)
        along += gradient[i] * toward[i] * floor_sd;
    const double of_loss = fmax(product(curve, fit, gradient, gradient) - along * along, 0);
    return fmin(of_loss / (fall * k * fall * k), LOG_SD_MOST * LOG_SD_MOST);
}

// The floor, its s.d., and how p moves with it: C g / (g' C g), the regression of p on the floor.
static int
floor_and_direction(const tt_curve *curve,
                    const tti_curve_fit *fit,
                    double x,
                    double *floor,
                    double *sd,
                    double *toward)
{
    double gradient[PARAMETERS];
    *floor = floor_at(curve, fit->p, x, 0);
    if (!isfinite(*floor) || !differentiate(curve, floor_at, fit->p, x, 0, gradient))
        return 0;
    const double variance = product(curve, fit, gradient, gradient);
    *sd = sqrt(fmax(variance, 0));
    for (uint32_t r = 0; r < curve->parameters; r++) {
        toward[r] = 0;
        for (uint32_t c = 0; c < curve->parameters && variance > 0; c++)
            toward[r] += fit->covariance[r][c] * gradient[c] / variance;
    }
    return isfinite(*sd) != 0;
}

// The floor is normal about its fit, with prior odds of 4 to 1 that it is under the target: a
// person who names one believes in it. What is left is averaged over five quantiles of the floors
// under the target, p moving along with the floor; beside that spread each has its own by the delta
// method.
void
tti_curve_inverse(
    const tt_curve *curve, const tti_fit *fit, double now, double target, tti_left *out)
{
    static const double quantile[5] = {0.1, 0.3, 0.5, 0.7, 0.9};
    const tti_curve_fit *own = &fit->curve;
    const double x = fmax(now - own->origin, 0);
    double floor, sd, toward[PARAMETERS] = {0}, n = 0, mean = 0, squares = 0, within = 0;
    *out = (tti_left){.log_mean = log(TTI_ITERATIONS_MAX), .log_sd = LOG_SD_NEVER};
    if (!fit->ok || !floor_and_direction(curve, own, x, &floor, &sd, toward))
        return;
    out->ok = 1;
    const double least = fmax(sd, 1e-12 + 1e-9 * fabs(floor)); // a floor that is given is certain
    const double under = tti_normal_cdf((target - floor) / least);
    out->unreachable = (1 - under) / (TTI_REACHABLE_ODDS * under + 1 - under);
    if (!(under > 1e-12)) {
        out->unreachable = 1;
        return;
    }
    for (int i = 0; i < 5; i++) {
        const double z = sd > 0 ? tti_normal_quantile(quantile[i] * under) : 0;
        double p[PARAMETERS];
        for (uint32_t k = 0; k < curve->parameters; k++)
            p[k] = own->p[k] + toward[k] * sd * z;
        if (!isfinite(curve->loss(p, x)) || !isfinite(curve->loss(p, x + TTI_ITERATIONS_MAX)))
            continue; // the straight line has left the domain
        const double log_k = log_left(curve, p, x, target);
        n += 1;
        mean += log_k;
        squares += log_k * log_k;
        within += log_left_variance(curve, own, p, x, log_k, toward, sd);
    }
    out->ok = n > 0;
    if (!out->ok)
        return;
    out->log_mean = mean / n;
    const double between = fmax(squares / n - out->log_mean * out->log_mean, 0);
    out->log_sd = fmin(sqrt(between + within / n), LOG_SD_MOST);
}
