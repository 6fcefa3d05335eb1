#include "loss_course.h"
#include <math.h>
#include <string.h>

void
tti_loss_course_open(tti_loss_course *course, uint32_t rows)
{
    *course = (tti_loss_course){.piece_rows = TT_MAX(rows, 1u) / (double)TTI_LOSS_COURSE_PIECES};
    (void)pthread_mutex_init(&course->lock, NULL);
}

void
tti_loss_course_close(tti_loss_course *course)
{
    (void)pthread_mutex_destroy(&course->lock);
}

// Sum of the losses after `pieces`, of which all were seen.
static double
trained_until(const tti_loss_course *course, double pieces)
{
    const uint32_t i = (uint32_t)pieces;
    const double share = pieces - i;
    return share > 0 ? course->trained[i] + share * (course->trained[i + 1] - course->trained[i])
                     : course->trained[i];
}

static void
tell(tti_loss_course *course, double loss)
{
    uint64_t bits;
    memcpy(&bits, &loss, sizeof bits);
    tt_store_relaxed(&course->loss[course->told % TTI_LOSS_COURSE_KEPT], bits);
    (void)tt_add_acq_rel(&course->told, 1); // acquired in tti_loss_course_at
}

// The end of a piece, and all it tells of: of the first epoch's pieces those that it is half as
// long again after, of later ones those that rows' last losses are of, in the mean.
static void
cut(tti_loss_course *course,
    const tti_loss_course_totals *before,
    const tti_loss_course_totals *now)
{
    const double end = now->pieces;
    if (course->cuts < TT_COUNT_OF(course->trained))
        course->trained[course->cuts] = now->trained;
    for (;;) {
        const double piece = (double)course->told + 0.5;
        if (course->told < TTI_LOSS_COURSE_PIECES) {
            if (1.5 * piece > end)
                return;
            tell(course, (trained_until(course, 1.5 * piece) - trained_until(course, 0.5 * piece)) /
                             (piece * course->piece_rows));
        } else {
            if (!(now->when >= piece))
                return;
            const double over = now->when - before->when;
            const double share = over > 0 ? TT_MIN((now->when - piece) / over, 1.0) : 0;
            tell(course, now->last - share * (now->last - before->last));
        }
    }
}

void
tti_loss_course_extend(tti_loss_course *course, const tti_loss_course_totals *now)
{
    TT_ASSERT(now->when <= now->pieces); // else cut would not end
    if (pthread_mutex_trylock(&course->lock) != 0)
        return;
    while ((double)(course->cuts + 1) <= now->pieces) {
        const tti_loss_course_totals before = course->seen;
        const double share =
            ((double)++course->cuts - before.pieces) / (now->pieces - before.pieces);
        course->seen = (tti_loss_course_totals){
            .pieces = (double)course->cuts,
            .trained = before.trained + share * (now->trained - before.trained),
            .last = before.pieces > 0 ? before.last + share * (now->last - before.last) : now->last,
            .when = before.when + share * (now->when - before.when)};
        cut(course, &before, &course->seen);
    }
    (void)pthread_mutex_unlock(&course->lock);
}

double
tti_loss_course_at(const tti_loss_course *course, uint64_t piece)
{
    const uint64_t told = tt_load_acquire(&course->told); // tell releases it
    if (told == 0 || told > piece + TTI_LOSS_COURSE_KEPT)
        return NAN;
    const uint64_t bits =
        tt_load_relaxed(&course->loss[TT_MIN(piece, told - 1) % TTI_LOSS_COURSE_KEPT]);
    double loss;
    memcpy(&loss, &bits, sizeof loss);
    return loss;
}
