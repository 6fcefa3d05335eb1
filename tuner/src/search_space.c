// Settings and unit coordinates, classes of switches, spread-out points.
#include "search_internal.h"
#include <gsl/gsl_qrng.h>
#include <math.h>
#include <string.h>

enum { SHIFTS = 64, DRAWS_MAX = 4096 };

void
tt_search_space_init(tt_search_space *search, const tt_space *space)
{
    *search = (tt_search_space){.space = space};
    for (uint32_t k = 0; k < space->count; k++)
        if (!space->knob[k].fixed)
            search->knob[search->dims++] = k;
    tt_space_start(space, &search->base);
}

void
tt_search_encode(const tt_search_space *search, const tt_setting *setting, double *x)
{
    for (uint32_t d = 0; d < search->dims; d++)
        x[d] =
            tt_space_encode(&search->space->knob[search->knob[d]], setting->value[search->knob[d]]);
}

void
tt_search_decode(const tt_search_space *search, const double *x, tt_setting *out)
{
    *out = search->base;
    for (uint32_t d = 0; d < search->dims; d++)
        out->value[search->knob[d]] = tt_space_decode(&search->space->knob[search->knob[d]], x[d]);
}

unsigned
tt_search_class(const tt_search_space *search, const tt_setting *a, const tt_setting *b)
{
    unsigned flags = 0;
    for (uint32_t d = 0; d < search->dims; d++) {
        uint32_t k = search->knob[d];
        if (a->value[k] != b->value[k])
            flags |= search->space->knob[k].knob->effect;
    }
    return flags & (TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL);
}

double
tti_search_distance(const tt_search_space *search, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t d = 0; d < search->dims; d++) {
        tt_knob_kind kind = search->space->knob[search->knob[d]].knob->kind;
        if (kind == TT_KNOB_ENUM || kind == TT_KNOB_BOOL)
            sum += a[d] != b[d];
        else
            sum += (a[d] - b[d]) * (a[d] - b[d]);
    }
    return sqrt(sum);
}

int
tti_search_taken(const tt_setting *setting, const tt_setting *taken, uint32_t taken_count)
{
    for (uint32_t i = 0; i < taken_count; i++)
        if (tt_setting_equal(setting, &taken[i]))
            return 1;
    return 0;
}

void
tti_search_shift(const tt_search_space *search, tt_rng *rng, double *shift)
{
    for (uint32_t d = 0; d < search->dims; d++)
        shift[d] = tt_rng_uniform(rng);
}

// One Sobol point under a shift (Cranley-Patterson), on the grid, as a setting; 0 when it is not
// valid.
int
tti_search_sobol(const tt_search_space *search,
                 gsl_qrng *sobol,
                 const double *shift,
                 tt_setting *out)
{
    double x[TT_KNOBS_MAX];
    gsl_qrng_get(sobol, x);
    for (uint32_t d = 0; d < search->dims; d++) {
        x[d] += shift[d];
        x[d] -= floor(x[d]);
    }
    tt_search_decode(search, x, out);
    return tt_space_valid(search->space, out);
}

typedef struct spread {
    uint32_t count;
    double nearest;
    tt_setting *points;
} spread;

// The first valid new points under one shift, and the least distance among them and to the taken
// ones.
static void
spread_once(const tt_search_space *search,
            gsl_qrng *sobol,
            const double *shift,
            const tt_setting *taken,
            uint32_t taken_count,
            uint32_t count,
            spread *out)
{
    double x[TT_KNOBS_MAX], other[TT_KNOBS_MAX];
    out->count = 0;
    out->nearest = INFINITY;
    gsl_qrng_init(sobol);
    for (uint32_t draw = 0; draw < DRAWS_MAX && out->count < count; draw++) {
        tt_setting *point = &out->points[out->count];
        if (!tti_search_sobol(search, sobol, shift, point) ||
            tti_search_taken(point, taken, taken_count) ||
            tti_search_taken(point, out->points, out->count))
            continue;
        tt_search_encode(search, point, x);
        for (uint32_t i = 0; i < taken_count + out->count; i++) {
            tt_search_encode(search, i < taken_count ? &taken[i] : &out->points[i - taken_count],
                             other);
            out->nearest = fmin(out->nearest, tti_search_distance(search, x, other));
        }
        out->count++;
    }
}

// Of listed settings: one after the other the one that is farthest from all before it.
static uint32_t
spread_listed(const tt_search_space *search,
              const tt_setting *taken,
              uint32_t taken_count,
              uint32_t count,
              tt_setting *out)
{
    uint32_t found = 0;
    while (found < count) {
        double farthest = -1;
        for (uint32_t i = 0; i < search->listed_count; i++) {
            const tt_setting *point = &search->listed[i];
            double x[TT_KNOBS_MAX], other[TT_KNOBS_MAX], nearest = INFINITY;
            if (tti_search_taken(point, taken, taken_count) || tti_search_taken(point, out, found))
                continue;
            tt_search_encode(search, point, x);
            for (uint32_t k = 0; k < taken_count + found; k++) {
                tt_search_encode(search, k < taken_count ? &taken[k] : &out[k - taken_count],
                                 other);
                nearest = fmin(nearest, tti_search_distance(search, x, other));
            }
            if (nearest > farthest) {
                farthest = nearest;
                out[found] = *point;
            }
        }
        if (farthest < 0)
            break;
        found++;
    }
    return found;
}

uint32_t
tt_search_spread(const tt_search_space *search,
                 uint64_t seed,
                 const tt_setting *taken,
                 uint32_t taken_count,
                 uint32_t count,
                 tt_setting *out)
{
    if (search->dims == 0 || count == 0)
        return 0;
    if (search->listed_count > 0)
        return spread_listed(search, taken, taken_count, count, out);
    gsl_qrng *sobol = gsl_qrng_alloc(gsl_qrng_sobol, search->dims);
    tt_setting *room = tt_mem_zalloc(count, sizeof *room);
    spread trial = {.points = room}, best = {.nearest = -1};
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TUNER, TTI_SEARCH_STREAM_SPREAD);
    for (int round = 0; round < SHIFTS && sobol != NULL && room != NULL; round++) {
        double shift[TT_KNOBS_MAX];
        tti_search_shift(search, &rng, shift);
        spread_once(search, sobol, shift, taken, taken_count, count, &trial);
        if (trial.count > best.count ||
            (trial.count == best.count && trial.nearest > best.nearest)) {
            best = trial;
            memcpy(out, room, trial.count * sizeof *room);
        }
    }
    if (sobol != NULL)
        gsl_qrng_free(sobol);
    tt_mem_free(room);
    return best.count;
}
