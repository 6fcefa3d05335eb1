// Goal: shards are a balanced random partition of the rows, with an order per epoch that depends on
// nothing but the seed, also when slices walk through groups of them.
// Method: count every row for many (rows, shards, slices); ask for the same positions in different
// pieces and by different caches; compare with the random streams the header names.
#include "tt/workloads_shards.h"

// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static tt_shards *
open_shards(uint64_t rows, uint32_t shard_count, uint64_t seed)
{
    const tt_dataset data = {.row_count = rows};
    tt_shards *shards;
    tt_error err = {0};
    assert_int_equal(tt_shards_open(&data, shard_count, seed, &shards, &err), TT_OK);
    return shards;
}

static void
shards_partition_the_rows(void **state)
{
    TT_UNUSED(state);
    static const uint32_t cases[][2] = {{1, 1},     {7, 7},         {1000, 1},
                                        {1003, 96}, {65535, 65535}, {70001, 97}};
    for (size_t c = 0; c < TT_COUNT_OF(cases); c++) {
        uint32_t rows = cases[c][0], count = cases[c][1];
        tt_shards *shards = open_shards(rows, count, 31 + c);
        uint8_t *seen = calloc(rows, 1);
        uint32_t *got = malloc(rows * sizeof *got);
        uint64_t total = 0, in_place = 0;
        tt_shard_cache cache;
        assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
        for (uint32_t shard = 0; shard < count; shard++) {
            uint32_t size = tt_shards_size(shards, shard);
            assert_in_range(size, rows / count, (rows + count - 1) / count);
            tt_shards_rows(shards, &cache, shard, 5, 0, size, got);
            for (uint32_t i = 0; i < size; i++) {
                assert_true(got[i] < rows);
                assert_int_equal(seen[got[i]]++, 0);
                in_place += got[i] == total + i;
            }
            total += size;
        }
        assert_int_equal(total, rows);
        assert_true(rows < 100 || in_place < 10); // 1 expected of a random permutation
        tt_shard_cache_fini(&cache);
        free(seen);
        free(got);
        tt_shards_close(shards);
    }
}

static void
an_epochs_order_is_the_named_stream(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 503, SHARDS = 5 };
    tt_shards *shards = open_shards(ROWS, SHARDS, 0x123456789abcdefu);
    uint32_t permuted[ROWS], rows[ROWS], again[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        permuted[i] = i;
    tt_rng rng;
    tt_rng_init(&rng, 0x123456789abcdefu, TT_RNG_DATA_ORDER, 0);
    tt_rng_shuffle_u32(&rng, permuted, ROWS);
    tt_shard_cache cache, other;
    assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
    assert_int_equal(tt_shard_cache_init(&other, shards), TT_OK);
    uint32_t begin = 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        uint32_t size = tt_shards_size(shards, shard);
        uint64_t epoch = 3 + (uint64_t)shard * 1000000007u;
        tt_shards_rows(shards, &cache, shard, epoch, 0, size, rows);
        tt_rng_init(&rng, 0x123456789abcdefu, TT_RNG_SHARD_ORDER, epoch * SHARDS + shard);
        tt_rng_shuffle_u32(&rng, permuted + begin, size);
        assert_memory_equal(rows, permuted + begin, size * sizeof *rows);
        // any piece, from another cache that was elsewhere before
        tt_shards_rows(shards, &other, (shard + 1) % SHARDS, epoch, 1, 3, again);
        tt_shards_rows(shards, &other, shard, epoch, 17, 31, again);
        assert_memory_equal(again, rows + 17, 31 * sizeof *rows);
        tt_shards_rows(shards, &other, shard, epoch + 1, 0, size, again);
        assert_memory_not_equal(again, rows, size * sizeof *rows);
        begin += size;
    }
    tt_shard_cache_fini(&cache);
    tt_shard_cache_fini(&other);
    tt_shards_close(shards);
}

static void
slices_walk_their_shards_epoch_after_epoch(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 1234, SHARDS = 17, EPOCHS = 3 };
    tt_shards *shards = open_shards(ROWS, SHARDS, 99);
    tt_shard_cache cache;
    assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
    static uint32_t walk[EPOCHS * ROWS], piece[200];
    tt_rng rng;
    tt_rng_init(&rng, 4, TT_RNG_TEST, 0);
    for (uint32_t slice_count = 1; slice_count <= SHARDS; slice_count++) {
        uint8_t seen[EPOCHS][ROWS] = {0};
        uint64_t total = 0;
        for (uint32_t slice = 0; slice < slice_count; slice++) {
            uint64_t size = tt_shards_slice_size(shards, slice_count, slice);
            total += size;
            tt_shards_slice_rows(shards, &cache, slice_count, slice, 0, (uint32_t)(EPOCHS * size),
                                 walk);
            for (uint64_t i = 0; i < EPOCHS * size; i++)
                assert_int_equal(seen[i / size][walk[i]]++, 0);
            assert_memory_not_equal(walk, walk + size, size * sizeof *walk);
            for (int i = 0; i < 20; i++) {
                uint32_t count = (uint32_t)tt_rng_below(&rng, TT_MIN(size, (uint64_t)200) + 1);
                uint64_t first = tt_rng_below(&rng, EPOCHS * size - count + 1);
                tt_shards_slice_rows(shards, &cache, slice_count, slice, first, count, piece);
                assert_memory_equal(piece, walk + first, count * sizeof *piece);
            }
        }
        assert_int_equal(total, ROWS);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
            for (uint32_t row = 0; row < ROWS; row++)
                assert_int_equal(seen[epoch][row], 1);
    }
    tt_shard_cache_fini(&cache);
    tt_shards_close(shards);
}

static void
a_slice_meets_its_shards_in_a_new_order_each_epoch(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 340, SHARDS = 17, SIZE = 20, EPOCHS = 4 };
    tt_shards *shards = open_shards(ROWS, SHARDS, 5);
    tt_shard_cache cache;
    assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
    uint32_t shard_of[ROWS], rows[ROWS], order[EPOCHS][SHARDS];
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        tt_shards_rows(shards, &cache, shard, 0, 0, SIZE, rows);
        for (uint32_t i = 0; i < SIZE; i++)
            shard_of[rows[i]] = shard;
    }
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        tt_shards_slice_rows(shards, &cache, 1, 0, (uint64_t)epoch * ROWS, ROWS, rows);
        for (uint32_t i = 0; i < ROWS; i++) {
            order[epoch][i / SIZE] = shard_of[rows[i]];
            assert_int_equal(shard_of[rows[i]], shard_of[rows[i / SIZE * SIZE]]);
        }
        for (uint32_t before = 0; before < epoch; before++)
            assert_memory_not_equal(order[epoch], order[before], sizeof order[0]);
    }
    tt_shard_cache_fini(&cache);
    tt_shards_close(shards);
}

static void
impossible_counts_are_refused(void **state)
{
    TT_UNUSED(state);
    const tt_dataset data = {.row_count = 10}, huge = {.row_count = UINT32_MAX},
                     many = {.row_count = 100000};
    tt_shards *shards;
    tt_error err = {0};
    assert_int_equal(tt_shards_open(&data, 0, 1, &shards, &err), TT_RANGE);
    assert_int_equal(tt_shards_open(&data, 11, 1, &shards, &err), TT_RANGE);
    assert_string_equal(err.what, "the number of shards must be from 1 to 10 (10 rows), not 11");
    assert_int_equal(tt_shards_open(&many, 65536, 1, &shards, &err), TT_RANGE);
    assert_int_equal(tt_shards_open(&huge, 4, 1, &shards, &err), TT_RANGE);
    assert_null(shards);
    for (uint64_t n = 1; n <= 2; n++) {
        tt_mem_fail_nth(n);
        assert_int_equal(tt_shards_open(&data, 2, 1, &shards, &err), TT_NOMEM);
        assert_false(tt_mem_fail_pending());
    }
    shards = open_shards(10, 2, 1);
    tt_shard_cache cache;
    for (uint64_t n = 1; n <= 3; n++) {
        tt_mem_fail_nth(n);
        assert_int_equal(tt_shard_cache_init(&cache, shards), TT_NOMEM);
        assert_null(cache.order);
    }
    tt_shards_close(shards);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_partition_the_rows),
        cmocka_unit_test(an_epochs_order_is_the_named_stream),
        cmocka_unit_test(slices_walk_their_shards_epoch_after_epoch),
        cmocka_unit_test(a_slice_meets_its_shards_in_a_new_order_each_epoch),
        cmocka_unit_test(impossible_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
