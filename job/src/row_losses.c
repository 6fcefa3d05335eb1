#include "row_losses.h"
#include <math.h>
#include <string.h>

// A row's last loss and the piece of the course it is of.
typedef struct noted {
    float loss;
    uint32_t piece;
} noted;

static double
double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t
bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t
noted_bits(noted value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

tt_status
tti_row_losses_open(tti_row_losses *all, uint32_t rows)
{
    *all = (tti_row_losses){.rows = rows};
    all->last = tt_mem_zalloc(TT_MAX(rows, 1u), sizeof *all->last);
    if (all->last == NULL)
        return TT_NOMEM;
    for (uint32_t i = 0; i < rows; i++)
        all->last[i] = noted_bits((noted){.loss = NAN});
    tti_loss_course_open(&all->course, rows);
    return TT_OK;
}

void
tti_row_losses_close(tti_row_losses *all)
{
    if (all->last == NULL)
        return;
    tti_loss_course_close(&all->course);
    tt_mem_free(all->last);
    *all = (tti_row_losses){0};
}

static double
add_to_sum(uint64_t *sum, double more)
{
    uint64_t seen = tt_load_relaxed(sum);
    while (!tt_cas_acq_rel(sum, &seen, bits_of(double_of(seen) + more)))
        continue; // seen is what another worker made of it
    return double_of(seen) + more;
}

// Two workers have one row at a time at most where an epoch ends, or after a death: then one of the
// two losses may be counted as the other's, which moves the course by their difference over all
// rows.
static noted
replace(uint64_t *last, noted value)
{
    const uint64_t bits = tt_load_relaxed(last);
    noted before;
    tt_store_relaxed(last, noted_bits(value));
    memcpy(&before, &bits, sizeof before);
    return before;
}

// What a batch changes.
typedef struct change {
    double last, trained; // of the sums
    uint64_t pieces;      // modulo 2^64
    uint32_t fresh;       // rows that had no loss
    double told;          // sum over the rows of now - last time + L(last time)
    uint32_t compared;
} change;

static change
replace_all(
    tti_row_losses *all, uint64_t piece, const uint32_t *rows, const float *losses, uint32_t count)
{
    change c = {0};
    for (uint32_t i = 0; i < count; i++) {
        const noted now = {losses[i], (uint32_t)piece};
        const noted before = replace(&all->last[rows[i]], now);
        c.trained += (double)now.loss;
        if (isnan(before.loss)) {
            c.fresh++;
            c.last += (double)now.loss;
            c.pieces += now.piece;
            continue;
        }
        const double fell = (double)now.loss - (double)before.loss;
        const double then = tti_loss_course_at(&all->course, before.piece);
        c.last += fell;
        c.pieces += (uint64_t)now.piece - before.piece;
        if (isnan(then))
            continue;
        c.told += fell + then;
        c.compared++;
    }
    return c;
}

// A piece has ended. The sums lack what other workers are just adding, one after the other: of rows
// that two of them share they may be far off, even below zero, but no row's loss is of later than
// now. (A course that believed it would tell of pieces that are yet to come, for ever.)
static void
extend(tti_row_losses *all, uint64_t examples, double last, double trained)
{
    const double known = (double)tt_load_relaxed(&all->known);
    const double pieces = (double)(int64_t)tt_load_relaxed(&all->pieces);
    const double end = (double)examples / all->course.piece_rows;
    if (known == 0)
        return; // the next piece's end makes up for this one's
    const tti_loss_course_totals now = {.pieces = end,
                                        .trained = trained,
                                        .last = last / known,
                                        .when = TT_MIN(TT_MAX(pieces / known + 0.5, 0.0), end)};
    tti_loss_course_extend(&all->course, &now);
}

double
tti_row_losses_note(tti_row_losses *all, const uint32_t *rows, const float *losses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(losses[i]))
            return NAN;
    const uint64_t before = tt_add_relaxed(&all->examples, count);
    const uint64_t piece = (uint64_t)((double)before / all->course.piece_rows);
    const change c = replace_all(all, piece, rows, losses, count);
    (void)tt_add_relaxed(&all->known, c.fresh);
    (void)tt_add_relaxed(&all->pieces, c.pieces);
    const double last = add_to_sum(&all->sum, c.last);
    const double trained = add_to_sum(&all->trained, c.trained);
    if (piece != (uint64_t)((double)(before + count) / all->course.piece_rows))
        extend(all, before + count, last, trained);
    return 2 * c.compared >= count && c.compared > 0 ? c.told / c.compared : NAN;
}
