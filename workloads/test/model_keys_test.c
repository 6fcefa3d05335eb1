// Goal: the keys of a batch are its distinct features, ascending, and each entry finds its own.
// Method: random lists of several densities against sorting, through the bitmap and the radix path.
#include "model_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ENTRIES_MAX = 4096 };

static int
by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void
check_list(tti_keys *assigner, const uint32_t *list, size_t n)
{
    static uint32_t sorted[ENTRIES_MAX], index[ENTRIES_MAX], keys[ENTRIES_MAX];
    memcpy(sorted, list, n * sizeof *list);
    memcpy(index, list, n * sizeof *list);
    qsort(sorted, n, sizeof *sorted, by_value);
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            sorted[distinct++] = sorted[i];
    assert_int_equal(tti_keys_assign(assigner, index, n, keys), distinct);
    assert_memory_equal(keys, sorted, distinct * sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        assert_true(index[i] < distinct);
        assert_int_equal(keys[index[i]], list[i]);
    }
}

static void
keys_equal_sorting(void **state)
{
    TT_UNUSED(state);
    // around word and summary borders; the last three go by radix
    static const uint32_t features[] = {
        1,        2,          63, 64, 65, 4095, 4096, 4097, 100003, 1U << 24, (1U << 24) + 1U,
        1U << 30, 2147483646U};
    tt_rng rng;
    tt_rng_init(&rng, 31, TT_RNG_TEST, 0);
    static uint32_t list[ENTRIES_MAX];
    for (size_t f = 0; f < TT_COUNT_OF(features); f++) {
        tti_keys *assigner;
        assert_int_equal(tti_keys_alloc(features[f], ENTRIES_MAX, &assigner), TT_OK);
        for (int round = 0; round < 12; round++) {
            const size_t n = round < 3 ? (size_t)round : tt_rng_below(&rng, ENTRIES_MAX + 1);
            const uint64_t span = round % 2 == 0 ? features[f] : 1 + features[f] / 97;
            for (size_t i = 0; i < n; i++) // even rounds the whole range, odd ones its upper end
                list[i] = features[f] - 1 - (uint32_t)tt_rng_below(&rng, span);
            check_list(assigner, list, n);
        }
        tti_keys_free(assigner);
    }
}

static void
memory_may_be_short(void **state)
{
    TT_UNUSED(state);
    static const uint32_t features[] = {1000, 1U << 28};
    for (size_t f = 0; f < TT_COUNT_OF(features); f++)
        for (uint64_t n = 1;; n++) {
            tti_keys *assigner = NULL;
            tt_mem_fail_nth(n);
            const tt_status status = tti_keys_alloc(features[f], 100, &assigner);
            const int waiting = tt_mem_fail_pending();
            tt_mem_fail_nth(0);
            tti_keys_free(assigner);
            if (waiting) {
                assert_true(n > 2);
                break;
            }
            assert_int_equal(status, TT_NOMEM);
            assert_null(assigner);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_equal_sorting),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
