#include "row_losses.h"
#include <math.h>
#include <string.h>

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

static uint32_t
float_bits(float value)
{
    uint32_t bits;
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
        all->last[i] = float_bits(NAN);
    all->base = bits_of(NAN);
    return TT_OK;
}

void
tti_row_losses_close(tti_row_losses *all)
{
    tt_mem_free(all->last);
    *all = (tti_row_losses){0};
}

static double
add_to_sum(tti_row_losses *all, double more)
{
    uint64_t seen = tt_load_relaxed(&all->sum);
    while (!tt_cas_acq_rel(&all->sum, &seen, bits_of(double_of(seen) + more)))
        continue; // seen is what another worker made of it
    return double_of(seen) + more;
}

// Two workers have one row at a time at most where an epoch ends, or after a death: then one of the
// two losses may be counted as the other's, which moves G by their difference over all rows.
static float
replace(uint32_t *last, float loss)
{
    const uint32_t before = tt_load_relaxed(last);
    float value;
    tt_store_relaxed(last, float_bits(loss));
    memcpy(&value, &before, sizeof value);
    return value;
}

// An epoch's worth of examples is done: what the next one is compared with.
static void
end_epoch(tti_row_losses *all, double sum)
{
    const uint64_t known = tt_load_relaxed(&all->known);
    if (known > 0)
        tt_store_relaxed(&all->base, bits_of(sum / (double)known));
}

double
tti_row_losses_note(tti_row_losses *all, const uint32_t *rows, const float *losses, uint32_t count)
{
    double change = 0, fresh = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(losses[i]))
            return NAN;
    for (uint32_t i = 0; i < count; i++) {
        const double now = losses[i], before = replace(&all->last[rows[i]], losses[i]);
        if (isnan(before)) {
            fresh += now;
            continue;
        }
        change += now - before;
        known++;
    }
    const double base = double_of(tt_load_relaxed(&all->base));
    (void)tt_add_relaxed(&all->known, count - known);
    const double sum = add_to_sum(all, change + fresh);
    const uint64_t before = tt_add_relaxed(&all->examples, count);
    if (before / all->rows != (before + count) / all->rows)
        end_epoch(all, sum);
    return 2 * known >= count && known > 0 ? base + change / known : NAN;
}
