// Hashing of categories, and counting what shares a feature.
#ifndef TTI_FEATURE_HASH_H
#define TTI_FEATURE_HASH_H

#include "tt/core.h"

// MurmurHash3_x86_32 (Appleby, public domain) of bytes[0..size): the feature of a category is its
// hash, seeded with the number of its column (from 1), modulo the features there are.
uint32_t tti_murmur32(const void *bytes, size_t size, uint32_t seed);
// Tells categories apart: the hash above and one of another seed.
uint64_t tti_category_token(const void *bytes, size_t size, uint32_t seed);

// The distinct tokens seen, and the features they fall on.
typedef struct tti_category_set tti_category_set;
TT_NODISCARD tt_status tti_category_set_open(uint32_t bits, tti_category_set **out);
// errors   TT_NOMEM
TT_NODISCARD tt_status tti_category_set_add(tti_category_set *set, uint64_t token);
uint64_t tti_category_set_count(const tti_category_set *set);
// Categories that share their feature with an earlier one.
uint64_t tti_category_set_collisions(const tti_category_set *set);
void tti_category_set_close(tti_category_set *set);

#endif
