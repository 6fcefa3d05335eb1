// The distinct features of a batch in ascending order, and the place of each entry among them.
#ifndef TTI_MODEL_KEYS_H
#define TTI_MODEL_KEYS_H

#include "tt/core.h"

typedef struct tti_keys tti_keys;

// For lists of up to entries_max indices below `features`. TT_NOMEM
TT_NODISCARD tt_status tti_keys_alloc(uint32_t features, size_t entries_max, tti_keys **out);
// One more who uses it, never at the same time as the others; each frees it.
tti_keys *tti_keys_share(tti_keys *keys);
void tti_keys_free(tti_keys *keys);
// Writes the distinct values of index[0 .. n) ascending to keys[] and replaces each index by its
// place there; returns how many there are. Never allocates.
uint32_t tti_keys_assign(tti_keys *self, uint32_t *index, size_t n, uint32_t *keys);

#endif
