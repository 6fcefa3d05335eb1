// Radix sort, least significant digit first.
#include "radix_sort.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS }; // counters of a pass stay in the first cache

static void
sort_by_digit(const uint64_t *source, uint64_t *target, size_t n, int shift, uint64_t mask)
{
    size_t at[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[(source[i] >> shift) & mask]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const size_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        target[at[(source[i] >> shift) & mask]++] = source[i];
}

uint64_t *
tti_radix_sort(uint64_t *items, uint64_t *spare, size_t n, int shift, int bits)
{
    while (bits > 0) {
        const int digit = bits < DIGIT_BITS ? bits : DIGIT_BITS;
        sort_by_digit(items, spare, n, shift, (UINT64_C(1) << digit) - 1);
        uint64_t *sorted = spare;
        spare = items;
        items = sorted;
        shift += digit;
        bits -= digit;
    }
    return items;
}
