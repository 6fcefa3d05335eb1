// The estimator's state as bytes and back, for checkpoints: memory images of this build's structs,
// guarded by their sizes. Who cannot read them begins anew.
#include "est_state.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

enum { ARCHIVE_VERSION = 8 };

static size_t
image_bytes(void)
{
    return sizeof(tt_estimator) + TTI_RECENT_LOSSES * sizeof(double) + 2 * sizeof(tti_mix) +
           sizeof(tti_plateau);
}

void
tt_estimator_save(const tt_estimator *est, tt_archive *out)
{
    tt_estimator image = *est;
    tt_archive_tag(out, ARCHIVE_VERSION);
    tt_archive_tag(out, image_bytes());
    tt_archive_tag(out, tti_families_print(&est->families));
    TT_ARCHIVE(out, image);
    tt_archive_field(out, est->recent, TTI_RECENT_LOSSES * sizeof *est->recent);
    tt_archive_field(out, est->mix, sizeof *est->mix);
    tt_archive_field(out, est->low_mix, sizeof *est->low_mix);
    tt_archive_field(out, est->plateau, sizeof *est->plateau);
}

tt_status
tt_estimator_load(tt_estimator *est, tt_archive *in)
{
    tt_archive_tag(in, ARCHIVE_VERSION);
    tt_archive_tag(in, image_bytes());
    tt_archive_tag(in, tti_families_print(&est->families)); // whose fits and weights these are
    if (in->status == TT_OK && in->count - in->cursor < image_bytes())
        tt_archive_damaged(in);
    if (in->status != TT_OK)
        return in->status;
    const tt_estimator own = *est;
    TT_ARCHIVE(in, *est); // nothing below can fail
    // Each method leaves to the others what all share, and has its own from its own windows.
    if (est->options.method != own.options.method)
        est->paper = (tti_paper){.loss_before = NAN};
    est->options = own.options;
    est->rate.lossy = own.rate.lossy;
    est->families = own.families;
    est->method = own.method;
    est->recent = own.recent;
    est->mix = own.mix;
    est->low_mix = own.low_mix;
    est->plateau = own.plateau;
    est->told = own.told;
    est->told[0].known = est->told[1].known = 0;
    est->rate_now = own.rate_now;
    est->rate_now->known = 0;
    est->cycles = own.cycles; // of the window that was open: it ends here
    tt_archive_field(in, est->recent, TTI_RECENT_LOSSES * sizeof *est->recent);
    tt_archive_field(in, est->mix, sizeof *est->mix);
    tt_archive_field(in, est->low_mix, sizeof *est->low_mix);
    tt_archive_field(in, est->plateau, sizeof *est->plateau);
    tt_est_window ignored;
    tt_estimator_end(est, 1, &ignored);
    return TT_OK;
}
