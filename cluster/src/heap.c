// A heap of four children a node: half as deep as a binary one, and the children it compares lie
// beside each other.
#include "heap.h"

enum { CHILDREN = 4, COUNT_FIRST = 8 };

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
    while (place > 0 && before(item, &heap->items[(place - 1) / CHILDREN])) {
        heap->items[place] = heap->items[(place - 1) / CHILDREN];
        place = (place - 1) / CHILDREN;
    }
    heap->items[place] = *item;
}

static size_t
least_child(const tti_heap *heap, size_t place)
{
    size_t least = CHILDREN * place + 1, end = TT_MIN(least + CHILDREN, heap->count);
    for (size_t child = least + 1; child < end; child++)
        if (before(&heap->items[child], &heap->items[least]))
            least = child;
    return least;
}

void
tti_heap_take(tti_heap *heap, tti_item *out)
{
    TT_ASSERT(heap->count > 0);
    *out = heap->items[0];
    const tti_item *last = &heap->items[--heap->count];
    size_t place = 0;
    while (CHILDREN * place + 1 < heap->count) { // down to where `last` belongs
        size_t child = least_child(heap, place);
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
