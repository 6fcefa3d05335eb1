// Maximum of an acquisition function over a mixed space.
#include "search_internal.h"
#include "tuner_boxmin.h"
#include <math.h>
#include <string.h>

enum {
    CANDIDATES_DEFAULT = 1500,
    AROUND_DEFAULT = 100,
    STARTS_DEFAULT = 8,
    ANCHORS_MAX = 5,
    STARTS_MAX = 32,
    ROUNDS_MAX = 24,
    POLISHES = 3,
    POLISH_EVALUATIONS = 25,
};
static const double START_DISTANCE = 0.1, STEP_FIRST = 0.25, STEP_LAST = 0.004;

typedef struct hunt {
    const tt_search_space *search;
    const tt_search_target *target;
    const tt_search_options *options;
    tt_search_result *result;
    uint32_t dims, count, capacity;
    double *x, *score;         // capacity x dims, capacity
    double from[TT_KNOBS_MAX]; // where options->from is
    tt_rng rng;
} hunt;

static const tt_space_knob *
knob_of(const hunt *h, uint32_t d)
{
    return &h->search->space->knob[h->search->knob[d]];
}

// tt_search_class of a point on the grid and h->options->from: there equal values, and only these,
// have equal coordinates.
static unsigned
class_of(const hunt *h, const double *x)
{
    unsigned flags = 0;
    for (uint32_t d = 0; d < h->dims && h->options->from != NULL; d++)
        if (x[d] != h->from[d])
            flags |= knob_of(h, d)->knob->effect;
    return flags & (TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL);
}

// Keeps a scored point when it is the best of its class and may be proposed.
static void
consider(hunt *h, const double *x, double score)
{
    tt_search_result *r = h->result;
    const unsigned class = class_of(h, x);
    if (!(score > (r->found[class] ? r->score[class] : -INFINITY)))
        return;
    tt_setting setting;
    tt_search_decode(h->search, x, &setting);
    if (tti_search_taken(&setting, h->options->taken, h->options->taken_count) ||
        !tt_space_valid(h->search->space, &setting))
        return;
    r->found[class] = 1;
    r->score[class] = score;
    r->setting[class] = setting;
}

static void
score_points(hunt *h, uint32_t from)
{
    if (h->count == from)
        return;
    h->target->score(h->target->self, h->x + (size_t)from * h->dims, h->count - from,
                     h->score + from);
    h->result->evaluations += h->count - from;
    for (uint32_t i = from; i < h->count; i++)
        consider(h, h->x + (size_t)i * h->dims, h->score[i]);
}

static void
push_point(hunt *h, const tt_setting *setting)
{
    if (h->count < h->capacity)
        tt_search_encode(h->search, setting, h->x + (size_t)h->count++ * h->dims);
}

// ---- candidates ------------------------------------------------------------------------------

// Sobol points; every fourth keeps what would move data or parameters as it is, so that the cheap
// class is searched too.
static tt_status
add_sobol(hunt *h, uint32_t wanted)
{
    gsl_qrng *sobol = gsl_qrng_alloc(gsl_qrng_sobol, h->dims);
    if (sobol == NULL)
        return TT_NOMEM;
    double shift[TT_KNOBS_MAX];
    tt_setting point;
    tti_search_shift(h->search, &h->rng, shift);
    for (uint32_t draw = 0; draw < wanted; draw++) {
        int valid = tti_search_sobol(h->search, sobol, shift, &point);
        if (h->options->from != NULL && draw % 4 == 0) {
            for (uint32_t d = 0; d < h->dims; d++)
                if (knob_of(h, d)->knob->effect != TT_KNOB_EFFECT_SETTING)
                    point.value[h->search->knob[d]] = h->options->from->value[h->search->knob[d]];
            valid = tt_space_valid(h->search->space, &point);
        }
        if (valid)
            push_point(h, &point);
    }
    gsl_qrng_free(sobol);
    return TT_OK;
}

// The next value of an int in a direction, or the same at the end of its range.
static double
int_neighbour(const tt_space_knob *knob, double value, int up)
{
    double next = tt_space_snap(knob, up ? value + 1 : value - 1);
    return next != value ? next : tt_space_snap(knob, up ? value * 2 : value / 2);
}

// One knob moved by `step` in unit coordinates, at least to its neighbour.
static double
moved(const tt_space_knob *knob, double value, double step)
{
    double to = tt_space_decode(knob, tt_space_encode(knob, value) + step);
    if (to == value && knob->knob->kind == TT_KNOB_INT)
        to = int_neighbour(knob, value, step > 0);
    return to;
}

static double
perturbed(hunt *h, const tt_space_knob *knob, double value)
{
    tt_knob_kind kind = knob->knob->kind;
    if (kind == TT_KNOB_BOOL || kind == TT_KNOB_ENUM)
        return tt_space_decode(knob, tt_rng_uniform(&h->rng));
    // Steps of all sizes: near ones refine, far ones escape.
    double size = exp(log(0.02) + tt_rng_uniform(&h->rng) * log(25));
    return moved(knob, value, tt_rng_uniform(&h->rng) < 0.5 ? -size : size);
}

static void
add_around(hunt *h, const tt_setting *anchor, uint32_t wanted)
{
    for (uint32_t i = 0; i < wanted; i++) {
        tt_setting point = *anchor;
        // One to four knobs at a time.
        uint32_t changes = 1 + (uint32_t)tt_rng_below(&h->rng, 4);
        for (uint32_t j = 0; j < changes; j++) {
            uint32_t d = (uint32_t)tt_rng_below(&h->rng, h->dims);
            double *value = &point.value[h->search->knob[d]];
            *value = perturbed(h, knob_of(h, d), *value);
        }
        if (tt_space_valid(h->search->space, &point))
            push_point(h, &point);
    }
}

// ---- neighbourhood search --------------------------------------------------------------------

static void
add_neighbour(hunt *h, const tt_setting *at, uint32_t d, double value)
{
    tt_setting point = *at;
    point.value[h->search->knob[d]] = value;
    if (value != at->value[h->search->knob[d]] && tt_space_valid(h->search->space, &point))
        push_point(h, &point);
}

static void
add_neighbours(hunt *h, const tt_setting *at, double step)
{
    for (uint32_t d = 0; d < h->dims; d++) {
        const tt_space_knob *knob = knob_of(h, d);
        double value = at->value[h->search->knob[d]];
        if (knob->knob->kind == TT_KNOB_ENUM || knob->knob->kind == TT_KNOB_BOOL) {
            for (double other = knob->min; other <= knob->max; other++)
                add_neighbour(h, at, d, other);
        } else {
            add_neighbour(h, at, d, moved(knob, value, step));
            add_neighbour(h, at, d, moved(knob, value, -step));
        }
    }
}

// Climbs from a start; leaves the top in x and returns its score. The points above h->count are
// scratch.
static double
climb(hunt *h, double *x, double score)
{
    uint32_t base = h->count;
    double step = STEP_FIRST;
    tt_setting at;
    for (int round = 0; round < ROUNDS_MAX && step > STEP_LAST; round++) {
        tt_search_decode(h->search, x, &at);
        add_neighbours(h, &at, step);
        score_points(h, base);
        uint32_t best = base;
        for (uint32_t i = base + 1; i < h->count; i++)
            if (h->score[i] > h->score[best])
                best = i;
        int better = h->count > base && h->score[best] > score;
        if (better) {
            score = h->score[best];
            memcpy(x, h->x + (size_t)best * h->dims, h->dims * sizeof *x);
        } else {
            step /= 2;
        }
        h->count = base;
    }
    return score;
}

// ---- polish ----------------------------------------------------------------------------------

typedef struct polish {
    hunt *hunt;
    double x[TT_KNOBS_MAX];
    uint32_t count, dim[TT_KNOBS_MAX]; // the reals
} polish;

static double
polish_value(void *self, const double *reals, double *gradient)
{
    polish *p = self;
    double full[TT_KNOBS_MAX];
    for (uint32_t i = 0; i < p->count; i++)
        p->x[p->dim[i]] = reals[i];
    double value = p->hunt->target->gradient(p->hunt->target->self, p->x, full);
    p->hunt->result->evaluations++;
    for (uint32_t i = 0; i < p->count; i++)
        gradient[i] = -full[p->dim[i]];
    return isfinite(value) ? -value : INFINITY;
}

static void
polish_reals(hunt *h, const double *x)
{
    polish p = {.hunt = h};
    double lower[TT_KNOBS_MAX] = {0}, upper[TT_KNOBS_MAX], reals[TT_KNOBS_MAX];
    memcpy(p.x, x, h->dims * sizeof *x);
    for (uint32_t d = 0; d < h->dims; d++)
        if (knob_of(h, d)->knob->kind == TT_KNOB_REAL) {
            reals[p.count] = x[d];
            upper[p.count] = 1;
            p.dim[p.count++] = d;
        }
    if (p.count == 0)
        return;
    tti_boxmin_problem problem = {.n = p.count,
                                  .lower = lower,
                                  .upper = upper,
                                  .function = polish_value,
                                  .self = &p,
                                  .evaluations_max = POLISH_EVALUATIONS,
                                  .gradient_tolerance = 1e-6,
                                  .step_max = 0.2};
    double value = tti_boxmin(&problem, reals, NULL);
    for (uint32_t i = 0; i < p.count; i++)
        p.x[p.dim[i]] = reals[i];
    if (isfinite(value))
        consider(h, p.x, -value);
}

// ---- the whole -------------------------------------------------------------------------------

// The best scored points that are far enough from each other. Returns their number; starts: indices
// into h->x.
static uint32_t
choose_starts(const hunt *h, uint32_t wanted, uint32_t *starts)
{
    uint32_t count = 0;
    while (count < wanted) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < h->count; i++) {
            if (!(h->score[i] > (best == UINT32_MAX ? -INFINITY : h->score[best])))
                continue;
            int far = 1;
            for (uint32_t s = 0; s < count && far; s++)
                far = tti_search_distance(h->search, h->x + (size_t)i * h->dims,
                                          h->x + (size_t)starts[s] * h->dims) > START_DISTANCE;
            best = far ? i : best;
        }
        if (best == UINT32_MAX)
            break;
        starts[count++] = best;
    }
    return count;
}

static void
climb_all(hunt *h)
{
    uint32_t starts[STARTS_MAX];
    uint32_t wanted = h->options->starts > 0 ? h->options->starts : STARTS_DEFAULT;
    uint32_t count = choose_starts(h, TT_MIN(wanted, (uint32_t)STARTS_MAX), starts);
    double top[STARTS_MAX];
    for (uint32_t s = 0; s < count; s++)
        top[s] = climb(h, h->x + (size_t)starts[s] * h->dims, h->score[starts[s]]);
    for (int c = 0; c < TT_SEARCH_CLASSES; c++) {
        double x[TT_KNOBS_MAX];
        if (!h->result->found[c])
            continue;
        tt_search_encode(h->search, &h->result->setting[c], x);
        (void)climb(h, x, h->result->score[c]);
    }
    for (int i = 0; i < POLISHES && h->target->gradient != NULL && count > 0; i++) {
        uint32_t best = 0;
        for (uint32_t s = 1; s < count; s++)
            if (top[s] > top[best])
                best = s;
        if (!isfinite(top[best]))
            break;
        polish_reals(h, h->x + (size_t)starts[best] * h->dims);
        top[best] = -INFINITY;
    }
}

// Where the settings are listed they are all looked at, and there is nothing between them.
static void
score_listed(hunt *h)
{
    for (uint32_t i = 0; i < h->search->listed_count; i++) {
        push_point(h, &h->search->listed[i]);
        if (h->count < h->capacity && i + 1 < h->search->listed_count)
            continue;
        score_points(h, 0);
        h->count = 0;
    }
}

static tt_status
run(hunt *h)
{
    const tt_search_options *o = h->options;
    if (h->search->listed_count > 0) {
        score_listed(h);
        return TT_OK;
    }
    uint32_t around = o->around > 0 ? o->around : AROUND_DEFAULT;
    TT_TRY(add_sobol(h, o->candidates > 0 ? o->candidates : CANDIDATES_DEFAULT));
    for (uint32_t a = 0; a < TT_MIN(o->anchor_count, (uint32_t)ANCHORS_MAX); a++)
        add_around(h, &o->anchors[a], around);
    score_points(h, 0);
    climb_all(h);
    return TT_OK;
}

tt_status
tt_search_maximize(const tt_search_space *search,
                   const tt_search_target *target,
                   const tt_search_options *options,
                   tt_search_result *out,
                   tt_error *err)
{
    *out = (tt_search_result){0};
    if (search->dims == 0)
        return TT_OK;
    hunt h = {.search = search,
              .target = target,
              .options = options,
              .result = out,
              .dims = search->dims};
    h.capacity = (options->candidates > 0 ? options->candidates : CANDIDATES_DEFAULT) +
                 ANCHORS_MAX * (options->around > 0 ? options->around : AROUND_DEFAULT) +
                 h.dims * TT_KNOB_VALUES_MAX;
    tt_rng_init(&h.rng, options->seed, TT_RNG_TUNER, TTI_SEARCH_STREAM_MAXIMIZE);
    if (options->from != NULL)
        tt_search_encode(search, options->from, h.from);
    h.x = tt_mem_zalloc_vector((size_t)h.capacity * h.dims, sizeof *h.x);
    h.score = tt_mem_zalloc_vector(h.capacity, sizeof *h.score);
    tt_status status = h.x != NULL && h.score != NULL ? run(&h) : TT_NOMEM;
    tt_mem_free(h.x);
    tt_mem_free(h.score);
    if (status != TT_OK)
        return tt_error_set(err, status, "tuner", NULL, "no memory to search for a setting");
    return TT_OK;
}
