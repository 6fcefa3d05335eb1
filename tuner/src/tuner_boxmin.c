// Projected L-BFGS with Armijo backtracking.
#include "tuner_boxmin.h"
#include <math.h>
#include <string.h>

enum { MEMORY = 8, BACKTRACKS_MAX = 20 };

typedef struct history {
    uint32_t count, next;
    double s[MEMORY][TTI_BOXMIN_DIMS_MAX], y[MEMORY][TTI_BOXMIN_DIMS_MAX], rho[MEMORY];
} history;

typedef struct state {
    const tti_boxmin_problem *problem;
    history memory;
    double f, x[TTI_BOXMIN_DIMS_MAX], g[TTI_BOXMIN_DIMS_MAX];
    int pinned[TTI_BOXMIN_DIMS_MAX]; // at a bound with the descent pointing out of the box
    uint32_t used;
} state;

static double
dot(uint32_t n, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double
clamp(const tti_boxmin_problem *p, uint32_t i, double value)
{
    return fmin(fmax(value, p->lower[i]), p->upper[i]);
}

// Marks the pinned coordinates and returns the largest component of the projected gradient.
static double
mark_pinned(state *s)
{
    const tti_boxmin_problem *p = s->problem;
    double largest = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        s->pinned[i] =
            (s->x[i] <= p->lower[i] && s->g[i] > 0) || (s->x[i] >= p->upper[i] && s->g[i] < 0);
        if (!s->pinned[i])
            largest = fmax(largest, fabs(s->g[i]));
    }
    return largest;
}

// d := - H g over the free coordinates, by the two-loop recursion (Nocedal & Wright,
// Algorithm 7.4).
static void
direction(const state *s, double *d)
{
    uint32_t n = s->problem->n;
    const history *h = &s->memory;
    double alpha[MEMORY];
    for (uint32_t i = 0; i < n; i++)
        d[i] = s->pinned[i] ? 0 : -s->g[i];
    for (uint32_t k = 0; k < h->count; k++) {
        uint32_t at = (h->next + MEMORY - 1 - k) % MEMORY;
        alpha[at] = h->rho[at] * dot(n, h->s[at], d);
        for (uint32_t i = 0; i < n; i++)
            d[i] -= alpha[at] * h->y[at][i];
    }
    if (h->count > 0) {
        uint32_t last = (h->next + MEMORY - 1) % MEMORY;
        double scale = 1 / (h->rho[last] * dot(n, h->y[last], h->y[last]));
        for (uint32_t i = 0; i < n; i++)
            d[i] *= scale;
    }
    for (uint32_t k = h->count; k-- > 0;) {
        uint32_t at = (h->next + MEMORY - 1 - k) % MEMORY;
        double beta = h->rho[at] * dot(n, h->y[at], d);
        for (uint32_t i = 0; i < n; i++)
            d[i] += (alpha[at] - beta) * h->s[at][i];
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->pinned[i])
            d[i] = 0;
}

static void
remember(state *s, const double *x, const double *g)
{
    uint32_t n = s->problem->n, at = s->memory.next;
    history *h = &s->memory;
    for (uint32_t i = 0; i < n; i++) {
        h->s[at][i] = x[i] - s->x[i];
        h->y[at][i] = g[i] - s->g[i];
    }
    double curvature = dot(n, h->s[at], h->y[at]);
    if (!(curvature > 1e-12 * dot(n, h->y[at], h->y[at])))
        return;
    h->rho[at] = 1 / curvature;
    h->next = (at + 1) % MEMORY;
    h->count = TT_MIN(h->count + 1, (uint32_t)MEMORY);
}

// One step along d with projection; 0 when no decrease was found.
static int
line_search(state *s, const double *d, double step)
{
    const tti_boxmin_problem *p = s->problem;
    double x[TTI_BOXMIN_DIMS_MAX], g[TTI_BOXMIN_DIMS_MAX];
    for (int round = 0; round < BACKTRACKS_MAX && s->used < p->evaluations_max; round++) {
        double expected = 0, moved = 0;
        for (uint32_t i = 0; i < p->n; i++) {
            x[i] = clamp(p, i, s->x[i] + step * d[i]);
            expected += s->g[i] * (x[i] - s->x[i]);
            moved = fmax(moved, fabs(x[i] - s->x[i]));
        }
        if (moved < 1e-14)
            return 0;
        double f = p->function(p->self, x, g);
        s->used++;
        if (isfinite(f) && f <= s->f + 1e-4 * expected) {
            remember(s, x, g);
            s->f = f;
            memcpy(s->x, x, p->n * sizeof *x);
            memcpy(s->g, g, p->n * sizeof *g);
            return 1;
        }
        step *= isfinite(f) ? 0.4 : 0.1;
    }
    return 0;
}

static double
first_step(const state *s, const double *d)
{
    double largest = 0;
    for (uint32_t i = 0; i < s->problem->n; i++)
        largest = fmax(largest, fabs(d[i]));
    // Without curvature the length of the gradient means nothing: begin with a tenth of a unit.
    double step = s->memory.count == 0 && largest > 0 ? fmin(1, 0.1 / largest) : 1;
    double limit = s->problem->step_max;
    return limit > 0 && largest * step > limit ? limit / largest : step;
}

double
tti_boxmin(const tti_boxmin_problem *problem, double *x, uint32_t *evaluations)
{
    TT_ASSERT(problem->n >= 1 && problem->n <= TTI_BOXMIN_DIMS_MAX);
    state s = {.problem = problem};
    for (uint32_t i = 0; i < problem->n; i++)
        s.x[i] = clamp(problem, i, x[i]);
    s.f = problem->function(problem->self, s.x, s.g);
    s.used = 1;
    double d[TTI_BOXMIN_DIMS_MAX];
    while (isfinite(s.f) && s.used < problem->evaluations_max &&
           mark_pinned(&s) > problem->gradient_tolerance) {
        direction(&s, d);
        if (!(dot(problem->n, d, s.g) < 0)) {
            s.memory.count = 0;
            direction(&s, d);
        }
        double before = s.f;
        if (!line_search(&s, d, first_step(&s, d))) {
            if (s.memory.count == 0)
                break;
            s.memory.count = 0; // once more along the plain gradient
        } else if (before - s.f < 1e-10 * (fabs(s.f) + 1e-10)) {
            break;
        }
    }
    memcpy(x, s.x, problem->n * sizeof *x);
    if (evaluations != NULL)
        *evaluations = s.used;
    return isfinite(s.f) ? s.f : INFINITY;
}
