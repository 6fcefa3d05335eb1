// Goal: a heap gives back what it was given, the least first, whatever comes in between. Method:
// random puts and takes beside a sorted array, with many equal keys; keys at the ends of the range.
#include "heap.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 400 };

typedef struct model {
    tti_item items[MOST]; // the greatest first
    uint32_t count;
} model;

static void
insert(model *m, const tti_item *item)
{
    uint32_t at = m->count++;
    for (; at > 0; at--) {
        const tti_item *other = &m->items[at - 1];
        if (other->key > item->key || (other->key == item->key && other->order > item->order))
            break;
        m->items[at] = *other;
    }
    m->items[at] = *item;
}

static void
comes_out_in_order(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 0; seed < 200; seed++) {
        static model m;
        tti_heap heap = {0};
        tt_rng rng;
        tt_rng_init(&rng, seed, TT_RNG_TEST, 1);
        m.count = 0;
        uint64_t range = seed % 3 == 0 ? 3 : 1000; // often equal keys: the order decides
        for (uint64_t step = 0; step < 3000; step++) {
            int puts = m.count == 0 || (m.count < MOST && tt_rng_below(&rng, 100) < 50 + seed % 9);
            tti_item item = {.key = tt_rng_below(&rng, range), .order = step, .tag = step ^ 7};
            if (puts) {
                insert(&m, &item);
                tti_heap_put(&heap, &item);
                continue;
            }
            tti_heap_take(&heap, &item);
            const tti_item *wanted = &m.items[--m.count];
            if (item.key != wanted->key || item.order != wanted->order || item.tag != wanted->tag)
                fail_msg("seed %d, step %d", (int)seed, (int)step);
        }
        assert_int_equal(heap.count, m.count);
        tti_heap_free(&heap);
    }
}

static void
keeps_what_it_carries(void **state)
{
    TT_UNUSED(state);
    tti_heap heap = {0};
    tti_item item = {.key = UINT64_MAX, .order = 0, .self = &heap};
    tti_heap_put(&heap, &item);
    tti_heap_put(&heap, &(tti_item){.key = 0, .order = UINT64_MAX, .self = &item});
    tti_heap_put(&heap, &(tti_item){.key = UINT64_MAX, .order = 1});
    tti_heap_take(&heap, &item);
    assert_ptr_equal(item.self, &item);
    tti_heap_take(&heap, &item);
    assert_ptr_equal(item.self, &heap);
    tti_heap_take(&heap, &item);
    assert_null(item.self);
    assert_int_equal(heap.count, 0);
    tti_heap_free(&heap);
    assert_null(heap.items);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_in_order),
        cmocka_unit_test(keeps_what_it_carries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
