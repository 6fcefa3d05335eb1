// Goal: every slice of every round counts once, whoever says that it was applied, in whatever
// order and however often; and no row that came back is lost. Method: random reports against a
// plain table of what was said, drawn from printed seeds.
#include "tt/core.h"
#include "work.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 400, KNOWN = 64, EXAMPLES = 23 };

// What one slice's workers said, beside what the work counted of it.
typedef struct told {
    tti_work work;
    unsigned char rounds[ROUNDS];
    uint32_t first; // the oldest round that is not counted
    uint64_t count;
} told;

// A round near the oldest one missing: nobody is further ahead than the window, and some reports
// come long after.
static uint32_t
draw_round(const told *t, tt_rng *rng)
{
    enum { LATE = 100 };
    uint32_t round = t->first + (uint32_t)tt_rng_below(rng, LATE + KNOWN);
    return TT_MIN(round > LATE ? round - LATE : 0, (uint32_t)ROUNDS - 1);
}

static void
note(told *t, uint32_t round)
{
    t->count += t->rounds[round] == 0;
    t->rounds[round] = 1;
    while (t->first < ROUNDS && t->rounds[t->first])
        t->first++;
}

static void
assert_counted(told *t)
{
    assert_int_equal(tt_load_relaxed(&t->work.applied), t->count);
    assert_int_equal(tt_load_relaxed(&t->work.examples_trained), t->count * EXAMPLES);
}

static void
every_slice_of_a_round_counts_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        told t = {0};
        tt_rng rng;
        tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
        while (t.first < ROUNDS) {
            uint32_t round = draw_round(&t, &rng);
            if (tt_rng_below(&rng, 40) == 0) { // its worker died: what is over was applied
                tti_work_count_slice_before(&t.work, 3, round, EXAMPLES);
                for (uint32_t r = 0; r < round; r++)
                    note(&t, r);
            } else {
                assert_int_equal(tti_work_count_slice(&t.work, 3, round, EXAMPLES) <= t.count, 1);
                note(&t, round);
            }
            if (t.work.applied != t.count)
                print_error("seed %lu, round %u\n", (unsigned long)seed, round);
            assert_counted(&t);
        }
    }
}

static void
the_rounds_of_the_dead_are_counted_from_the_first(void **state)
{
    (void)state;
    told t = {0};
    tti_work_count_slice_before(&t.work, 0, 0, EXAMPLES); // died before a round was over
    assert_counted(&t);
    (void)tti_work_count_slice(&t.work, 0, 2, EXAMPLES);
    tti_work_count_slice_before(&t.work, 0, 3, EXAMPLES);
    t.count = 3;
    assert_counted(&t);
    tti_work_count_slice_before(&t.work, 0, 3, EXAMPLES);
    assert_counted(&t);
    tti_work_count_slice_before(&t.work, 1, 150, EXAMPLES); // more than the window holds
    t.count = 153;
    assert_counted(&t);
}

static void
rounds_before_the_checkpoint_count_no_more(void **state)
{
    (void)state;
    told t = {0};
    tti_work_begin_at_round(&t.work, 100);
    (void)tti_work_count_slice(&t.work, 5, 99, EXAMPLES);
    (void)tti_work_count_slice(&t.work, 5, 12, EXAMPLES); // a late report, from before
    tti_work_count_slice_before(&t.work, 5, 100, EXAMPLES);
    assert_counted(&t);
    tti_work_count_slice_before(&t.work, 5, 102, EXAMPLES);
    t.count = 2;
    assert_counted(&t);
}

static void
rows_that_came_back_go_out_first(void **state)
{
    (void)state;
    enum { ROWS = 37 };
    tt_dataset data = {.row_count = ROWS};
    tt_shards *shards;
    tti_work work;
    tt_error err = {0};
    assert_int_equal(tt_shards_open(&data, 3, 5, &shards, &err), TT_OK);
    assert_int_equal(tti_work_open(shards, 2, 2, &work, &err), TT_OK);
    tt_ledger_set_limit(work.ledger, 1);
    uint32_t taken[ROWS];
    unsigned char trained[ROWS] = {0};
    assert_int_equal(tti_work_take(&work, 0, 9, taken), 9);
    tti_work_return(&work, taken, 9); // more than room was reserved for
    uint32_t again[ROWS];
    assert_int_equal(tti_work_take(&work, 1, 4, again), 4);
    assert_int_equal(tti_work_take(&work, 1, 5, again + 4), 5);
    for (uint32_t i = 0; i < 9; i++)
        trained[again[i]]++;
    while (tti_work_take(&work, 1, 1, again) == 1)
        trained[again[0]]++;
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(trained[i], 1);
    tti_work_close(&work);
    tt_shards_close(shards);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slice_of_a_round_counts_once),
        cmocka_unit_test(the_rounds_of_the_dead_are_counted_from_the_first),
        cmocka_unit_test(rounds_before_the_checkpoint_count_no_more),
        cmocka_unit_test(rows_that_came_back_go_out_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
