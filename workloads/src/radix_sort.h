// Sorting by part of a word, linear in the items.
#ifndef TTI_RADIX_SORT_H
#define TTI_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

// Sorts items[0 .. n) by the `bits` bits of each from `shift` on, stable, least digit first, going
// back and forth between items and spare [n]; returns the one of the two that holds the result.
uint64_t *tti_radix_sort(uint64_t *items, uint64_t *spare, size_t n, int shift, int bits);

#endif
