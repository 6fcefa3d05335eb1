// Area under the ROC curve by sorting.
#include "model_auc.h"
#include "radix_sort.h"
#include <math.h>
#include <string.h>

enum { KEY_SHIFT = 1 }; // the label is below the score

// Unsigned order of the result is the order of the floats; -0 is made +0, with which it ties.
static uint32_t
ordered_bits(float x)
{
    uint32_t u;
    x = x + 0.0F;
    memcpy(&u, &x, sizeof u);
    return (u & 0x80000000U) != 0 ? ~u : u | 0x80000000U;
}

// items: score << 1 | positive, sorted by score.
static double
area(const uint64_t *items, size_t n)
{
    double pairs = 0, negatives = 0, positives = 0;
    for (size_t i = 0; i < n;) {
        size_t tied_positive = 0, end = i;
        for (; end < n && items[end] >> KEY_SHIFT == items[i] >> KEY_SHIFT; end++)
            tied_positive += items[end] & 1U;
        const double tied = (double)tied_positive, tied_negative = (double)(end - i) - tied;
        pairs += tied * (negatives + tied_negative / 2);
        negatives += tied_negative;
        positives += tied;
        i = end;
    }
    return positives > 0 && negatives > 0 ? pairs / (positives * negatives) : (double)NAN;
}

tt_status
tti_model_auc(const float *score, const uint8_t *positive, size_t n, double *auc)
{
    *auc = (double)NAN;
    if (n == 0)
        return TT_OK;
    uint64_t *items = tt_mem_zalloc(n, 2 * sizeof *items);
    if (items == NULL)
        return TT_NOMEM;
    int numbers = 1;
    for (size_t i = 0; i < n; i++) {
        numbers &= !isnan(score[i]);
        items[i] = (uint64_t)ordered_bits(score[i]) << KEY_SHIFT | (positive[i] != 0);
    }
    const uint64_t *sorted = tti_radix_sort(items, items + n, n, KEY_SHIFT, 32);
    if (numbers)
        *auc = area(sorted, n);
    tt_mem_free(items);
    return TT_OK;
}
