// A heap: what comes next by (key, order), the least first. The agenda of a simulation is one.
//
// No two items have equal (key, order), so the order in which they come out does not depend on how
// they lie inside.
#ifndef TTI_HEAP_H
#define TTI_HEAP_H

#include "tt/core.h"

typedef struct tti_item {
    uint64_t key, order;
    void *self;
    void (*act)(void *self, uint64_t tag); // the agenda's
    uint64_t tag;
} tti_item;

typedef struct tti_heap {
    tti_item *items; // in the order of a heap: [0] is the least
    size_t count, capacity;
} tti_heap;

// Aborts without memory: what the heap orders could not go on.
void tti_heap_put(tti_heap *heap, const tti_item *item);
// The heap must not be empty.
void tti_heap_take(tti_heap *heap, tti_item *out);
void tti_heap_free(tti_heap *heap);

#endif
