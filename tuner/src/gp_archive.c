// The Gaussian process as bytes and back: rows and hyperparameters; the factor is made anew.
#include "gp_internal.h"
#include "tt/core_archive.h"

void
tt_gp_save(const tt_gp *gp, tt_archive *out)
{
    uint32_t rows = gp->rows, fits = gp->fits;
    int fitted = gp->fitted;
    tt_gp_params params = gp->params;
    tt_archive_tag(out, gp->options.dims);
    TT_ARCHIVE(out, rows);
    TT_ARCHIVE(out, fits);
    TT_ARCHIVE(out, fitted);
    TT_ARCHIVE(out, params);
    for (uint32_t i = 0; i < rows; i++) {
        tt_gp_row row = {gp->stage[i], gp->y[i], gp->noise[i], gp->repeats[i]};
        tt_archive_field(out, gp->x + (size_t)i * gp->options.dims,
                         gp->options.dims * sizeof(double));
        TT_ARCHIVE(out, row);
    }
}

tt_status
tt_gp_load(tt_gp *gp, tt_archive *in, tt_error *err)
{
    uint32_t rows = 0, fits = 0;
    int fitted = 0;
    tt_gp_params params = {0};
    TT_ASSERT(gp->rows == 0);
    tt_archive_tag(in, gp->options.dims);
    TT_ARCHIVE(in, rows);
    TT_ARCHIVE(in, fits);
    TT_ARCHIVE(in, fitted);
    TT_ARCHIVE(in, params);
    for (uint32_t i = 0; i < rows && in->status == TT_OK; i++) {
        double x[TT_GP_DIMS_MAX];
        tt_gp_row row = {0};
        tt_archive_field(in, x, gp->options.dims * sizeof(double));
        TT_ARCHIVE(in, row);
        if (in->status == TT_OK)
            TT_TRY(tt_gp_add(gp, x, &row, err));
    }
    if (in->status != TT_OK)
        return tt_error_set(err, in->status, "tuner", NULL, "what the tuner learned is damaged");
    gp->fits = fits;
    return fitted && rows > 0 ? tt_gp_set_params(gp, &params, err) : TT_OK;
}
