// Goal: looking up the keys of a request together finds and creates the rows that one after the
// other would, in dense and sparse partitions, with keys that are missing, come twice or collide;
// memory that is short is said. Method: random keys against the single look-ups on a second
// partition; injected failures of memory.
#include "partition.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 1000 };

static tti_partition *
partition_of(tt_ps_table *table, tt_ps_table_kind kind)
{
    tti_partition *partition;
    *table = (tt_ps_table){.kind = kind,
                           .rows = 700,
                           .width = 3,
                           .partition_count = 1,
                           .consistency = TT_PS_ASP,
                           .optimizer = TT_PS_ADD};
    assert_int_equal(tti_partition_alloc(table, 0, NULL, &partition), TT_OK);
    return partition;
}

static void
sparse_rows_are_those_of_single_look_ups(void **state)
{
    tt_ps_table table;
    tt_rng rng;
    tti_partition *one = partition_of(&table, TT_PS_SPARSE),
                  *all = partition_of(&table, TT_PS_SPARSE);
    static uint8_t bytes[KEYS * sizeof(uint64_t) + 4];
    uint32_t rows[KEYS];
    TT_UNUSED(state);
    tt_rng_init(&rng, 2, TT_RNG_TEST, 0);
    for (int turn = 0; turn < 200; turn++) {
        uint32_t count = (uint32_t)tt_rng_below(&rng, KEYS + 1);
        uint64_t keys[KEYS], range = (uint64_t)1 << (1 + tt_rng_below(&rng, 20));
        uint8_t *wire = bytes + 4 * (turn % 2); // not aligned to a key
        for (uint32_t i = 0; i < count; i++)    // a stride of 2^32: the hash's halves meet
            keys[i] = tt_rng_below(&rng, range) << (turn % 3 == 0 ? 32 : 0);
        memcpy(wire, keys, count * sizeof *keys);
        tti_partition_find_all(all, wire, count, rows);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(rows[i], tti_partition_find(one, keys[i]));
        if (turn % 2 == 0)
            continue;
        assert_int_equal(tti_partition_find_or_create_all(all, wire, count, rows), count);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(rows[i], tti_partition_find_or_create(one, keys[i]));
        assert_int_equal(one->rows, all->rows);
    }
    assert_true(one->rows > 10000);
    tti_partition_free(one);
    tti_partition_free(all);
}

static void
dense_rows_out_of_range_are_none(void **state)
{
    tt_ps_table table;
    tti_partition *partition = partition_of(&table, TT_PS_DENSE);
    const uint32_t keys[] = {0, 699, 700, 5, UINT32_MAX};
    uint32_t rows[5];
    TT_UNUSED(state);
    tti_partition_find_all(partition, (const uint8_t *)keys, 5, rows);
    assert_true(rows[0] == 0 && rows[1] == 699 && rows[3] == 5);
    assert_true(rows[2] == TTI_NO_ROW && rows[4] == TTI_NO_ROW);
    assert_int_equal(tti_partition_find_or_create_all(partition, (const uint8_t *)keys, 5, rows),
                     2);
    tti_partition_free(partition);
}

static void
short_memory_is_said(void **state)
{
    tt_ps_table table;
    tti_partition *partition = partition_of(&table, TT_PS_SPARSE);
    uint64_t keys[KEYS];
    uint32_t rows[KEYS];
    TT_UNUSED(state);
    for (uint32_t i = 0; i < KEYS; i++)
        keys[i] = i * 77;
    tt_mem_fail_nth(1);
    uint32_t found = tti_partition_find_or_create_all(partition, (const uint8_t *)keys, KEYS, rows);
    tt_mem_fail_nth(0);
    assert_true(found > 0 && found < KEYS);
    assert_int_equal(tti_partition_find_or_create_all(partition, (const uint8_t *)keys, KEYS, rows),
                     KEYS);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(rows[i], tti_partition_find(partition, keys[i]));
    tti_partition_free(partition);
}

static void
single_weights_step_like_stretches(void **state)
{
    static const tt_ps_optimizer_kind kinds[] = {TT_PS_SGD,      TT_PS_ADAGRAD, TT_PS_ADD,
                                                 TT_PS_MOMENTUM, TT_PS_ADAM,    TT_PS_FTRL};
    enum { WEIGHTS = 40 };
    tt_rng rng;
    TT_UNUSED(state);
    tt_rng_init(&rng, 3, TT_RNG_TEST, 0);
    for (size_t k = 0; k < TT_COUNT_OF(kinds); k++) {
        tt_ps_table table = {.optimizer = kinds[k],
                             .width = 1,
                             .learning_rate = 0.1,
                             .epsilon = 1e-6,
                             .momentum = 0.9,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .l1 = 0.01,
                             .ftrl_beta = 1};
        float a[4][WEIGHTS], b[4][WEIGHTS], g[WEIGHTS];
        uint32_t indices[WEIGHTS];
        for (uint32_t i = 0; i < WEIGHTS; i++) {
            indices[i] = (i * 7) % WEIGHTS;
            g[i] = (float)tt_rng_normal(&rng);
            for (int array = 0; array < 4; array++)
                a[array][i] = b[array][i] = (float)tt_rng_uniform(&rng);
        }
        tti_cells x = {a[0], a[1], a[2], a[3]}, y = {b[0], b[1], b[2], b[3]};
        tti_step step = tti_step_at(&table, 5, 5);
        tti_step_apply_each(&step, &x, indices, g, WEIGHTS);
        for (uint32_t i = 0; i < WEIGHTS; i++) {
            tti_cells cells = tti_cells_at(&y, indices[i]);
            tti_step_apply(&step, tt_vec_best(), &cells, &g[i], 1);
        }
        assert_memory_equal(a, b, sizeof a);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparse_rows_are_those_of_single_look_ups),
        cmocka_unit_test(dense_rows_out_of_range_are_none),
        cmocka_unit_test(short_memory_is_said),
        cmocka_unit_test(single_weights_step_like_stretches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
