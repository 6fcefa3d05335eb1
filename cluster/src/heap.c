// A binary heap.
#include "heap.h"

enum { COUNT_FIRST = 8 };

static int
before(const tti_item *a, const tti_item *b)
{
    return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void
grow(tti_heap *heap)
{
    size_t wanted = TT_MAX(2 * heap->capacity, (size_t)COUNT_FIRST);
    tti_item *grown = tt_mem_realloc(heap->items, wanted * sizeof *grown);
    TT_ASSERT(grown != NULL);
    heap->items = grown;
    heap->capacity = wanted;
}

void
tti_heap_put(tti_heap *heap, const tti_item *item)
{
    if (heap->count == heap->capacity)
        grow(heap);
    size_t place = heap->count++;
    while (place > 0 && before(item, &heap->items[(place - 1) / 2])) {
        heap->items[place] = heap->items[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap->items[place] = *item;
}

void
tti_heap_take(tti_heap *heap, tti_item *out)
{
    TT_ASSERT(heap->count > 0);
    *out = heap->items[0];
    const tti_item *last = &heap->items[--heap->count];
    size_t place = 0;
    while (2 * place + 1 < heap->count) { // down to where `last` belongs
        size_t child = 2 * place + 1;
        if (child + 1 < heap->count && before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!before(&heap->items[child], last))
            break;
        heap->items[place] = heap->items[child];
        place = child;
    }
    heap->items[place] = *last;
}

void
tti_heap_free(tti_heap *heap)
{
    tt_mem_free(heap->items);
    *heap = (tti_heap){0};
}
