// Life of a Gaussian process and its rows.
#include "gp_internal.h"
#include <cblas.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <string.h>

// Nothing is known yet.
static void
begin(tt_gp *gp, const tt_gp_options *options)
{
    gp->options = *options;
    for (uint32_t d = 0; d < options->dims && options->trend_sd > 0; d++)
        gp->trend_lines += options->kind[d] == TT_GP_LINE;
    gp->y_scale = 1;
    gp->log_posterior = NAN;
}

tt_status
tt_gp_open(const tt_gp_options *options, tt_gp **out, tt_error *err)
{
    *out = NULL;
    if (options->dims < 1 || options->dims > TT_GP_DIMS_MAX)
        return tt_error_set(err, TT_INVALID, "tuner", NULL,
                            "a Gaussian process has 1 to %d dimensions, not %u", TT_GP_DIMS_MAX,
                            options->dims);
    // GSL would abort the process where a number is merely out of range, and threads of OpenBLAS
    // would fight with the trainers.
    gsl_set_error_handler_off();
    openblas_set_num_threads(1);
    tt_gp *gp = tt_mem_zalloc(1, sizeof *gp);
    if (gp == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a Gaussian process");
    begin(gp, options);
    *out = gp;
    return TT_OK;
}

void
tt_gp_restart(tt_gp *gp, uint64_t seed)
{
    tt_gp kept = *gp;
    *gp = (tt_gp){.x = kept.x,
                  .stage = kept.stage,
                  .y = kept.y,
                  .noise = kept.noise,
                  .repeats = kept.repeats,
                  .chol = kept.chol,
                  .alpha = kept.alpha,
                  .capacity = kept.capacity,
                  .scratch = kept.scratch,
                  .scratch_size = kept.scratch_size};
    kept.options.seed = seed;
    begin(gp, &kept.options);
}

double *
tti_gp_scratch(tt_gp *gp, size_t count)
{
    if (gp->scratch_size < count) {
        // Half as much again: there is a row more at every fit.
        const size_t size = count + count / 2;
        double *grown = tt_mem_alloc(size * sizeof *grown);
        if (grown == NULL)
            return NULL;
        tt_mem_free(gp->scratch);
        gp->scratch = grown;
        gp->scratch_size = size;
    }
    return gp->scratch;
}

void
tt_gp_close(tt_gp *gp)
{
    if (gp == NULL)
        return;
    tt_mem_free(gp->x);
    tt_mem_free(gp->stage);
    tt_mem_free(gp->y);
    tt_mem_free(gp->noise);
    tt_mem_free(gp->repeats);
    tt_mem_free(gp->chol);
    tt_mem_free(gp->alpha);
    tt_mem_free(gp->scratch);
    tt_mem_free(gp);
}

static tt_status
check_row(const double *x, uint32_t dims, const tt_gp_row *row, tt_error *err)
{
    const char *what = NULL;
    if (!isfinite(row->y))
        what = "its value";
    else if (!isfinite(row->stage))
        what = "its stage";
    else if (!isfinite(row->noise_var) || row->noise_var < 0)
        what = "the variance of its noise";
    else if (!isfinite(row->repeats) || row->repeats < 0)
        what = "the number of its repeats";
    for (uint32_t d = 0; d < dims && what == NULL; d++)
        if (!isfinite(x[d]))
            what = "a coordinate";
    if (what != NULL)
        return tt_error_set(err, TT_INVALID, "tuner", "tell finite numbers, variances not negative",
                            "the row is refused: %s is not a usable number", what);
    return TT_OK;
}

// Moves `old` (used x width values at leading dimension width) into a zeroed array of capacity x
// new_width.
static tt_status
regrow(double **old, uint32_t used, size_t width, uint32_t capacity, size_t new_width)
{
    double *grown = tt_mem_zalloc_vector((size_t)capacity * new_width, sizeof *grown);
    if (grown == NULL)
        return TT_NOMEM;
    for (uint32_t i = 0; i < used; i++)
        memcpy(grown + i * new_width, *old + i * width, width * sizeof *grown);
    tt_mem_free(*old);
    *old = grown;
    return TT_OK;
}

static tt_status
reserve(tt_gp *gp)
{
    if (gp->rows < gp->capacity)
        return TT_OK;
    uint32_t capacity = gp->capacity > 0 ? gp->capacity * 2 : 32, n = gp->rows;
    size_t dims = gp->options.dims;
    // Each array that has grown stays larger than capacity says when a later one fails: harmless.
    // The factor is kept last, for its leading dimension is the capacity.
    TT_TRY(regrow(&gp->x, n, dims, capacity, dims));
    TT_TRY(regrow(&gp->stage, n, 1, capacity, 1));
    TT_TRY(regrow(&gp->y, n, 1, capacity, 1));
    TT_TRY(regrow(&gp->noise, n, 1, capacity, 1));
    TT_TRY(regrow(&gp->repeats, n, 1, capacity, 1));
    TT_TRY(regrow(&gp->alpha, n, 1, capacity, 1));
    TT_TRY(regrow(&gp->chol, n, gp->capacity, capacity, capacity));
    gp->capacity = capacity;
    return TT_OK;
}

static void
set_row(tt_gp *gp, uint32_t index, const tt_gp_row *row)
{
    gp->stage[index] = row->stage;
    gp->y[index] = row->y;
    gp->noise[index] = row->noise_var;
    gp->repeats[index] = row->repeats > 0 ? row->repeats : 1;
}

tt_status
tt_gp_add(tt_gp *gp, const double *x, const tt_gp_row *row, tt_error *err)
{
    uint32_t dims = gp->options.dims;
    TT_TRY(check_row(x, dims, row, err));
    if (reserve(gp) != TT_OK)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for row %u", gp->rows);
    double *point = gp->x + (size_t)gp->rows * dims;
    memcpy(point, x, dims * sizeof *point);
    set_row(gp, gp->rows, row);
    gp->rows++;
    return TT_OK;
}

tt_status
tt_gp_replace(tt_gp *gp, uint32_t index, const tt_gp_row *row, tt_error *err)
{
    TT_ASSERT(index < gp->rows);
    TT_TRY(check_row(NULL, 0, row, err));
    set_row(gp, index, row);
    gp->stale = gp->stale || index < gp->factored;
    return TT_OK;
}

void
tt_gp_shift(tt_gp *gp, double shift, double extra_var)
{
    TT_ASSERT(isfinite(shift) && extra_var >= 0);
    for (uint32_t i = 0; i < gp->rows; i++) {
        gp->y[i] += shift;
        gp->noise[i] += extra_var;
        gp->repeats[i] = 1;
    }
    gp->stale = 1;
}

uint32_t
tt_gp_rows(const tt_gp *gp)
{
    return gp->rows;
}

void
tt_gp_get_params(const tt_gp *gp, tt_gp_params *out)
{
    *out = gp->params;
}

double
tt_gp_noise_var(const tt_gp *gp)
{
    return gp->fitted ? exp(gp->params.noise) * gp->y_scale * gp->y_scale : 0;
}

double
tt_gp_log_posterior(const tt_gp *gp)
{
    return gp->log_posterior;
}
