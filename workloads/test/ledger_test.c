// Goal: every example is taken exactly once per epoch whatever owners, leases and stops happen, no
// shard runs more than one epoch ahead, and owners change as little as balance allows.
// Method: scripted takes with known outcome; threads that take while others assign and release at
// random, all rows counted; plans compared with an independent count of the fewest moves.
#include "tt/workloads_shards.h"

// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static tt_shards *
open_shards(uint64_t rows, uint32_t shard_count)
{
    const tt_dataset data = {.row_count = rows};
    tt_shards *shards;
    tt_error err = {0};
    assert_int_equal(tt_shards_open(&data, shard_count, 77, &shards, &err), TT_OK);
    return shards;
}

static tt_ledger *
open_ledger(const tt_shards *shards, uint32_t node_count)
{
    tt_ledger *ledger;
    tt_error err = {0};
    assert_int_equal(tt_ledger_open(shards, node_count, &ledger, &err), TT_OK);
    return ledger;
}

// The shard that holds each row, found by asking for all of them.
static uint32_t *
shard_of_row(const tt_shards *shards)
{
    uint32_t *shard_of = calloc(tt_shards_row_count(shards), sizeof *shard_of);
    uint32_t *rows = malloc(tt_shards_row_count(shards) * sizeof *rows);
    tt_shard_cache cache;
    assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
    for (uint32_t shard = 0; shard < tt_shards_count(shards); shard++) {
        tt_shards_rows(shards, &cache, shard, 0, 0, tt_shards_size(shards, shard), rows);
        for (uint32_t i = 0; i < tt_shards_size(shards, shard); i++)
            shard_of[rows[i]] = shard;
    }
    tt_shard_cache_fini(&cache);
    free(rows);
    return shard_of;
}

static void
nodes_take_their_own_then_others_then_the_next_epoch(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(40, 4); // shards of 10
    tt_ledger *ledger = open_ledger(shards, 2);
    uint32_t *shard_of = shard_of_row(shards), rows[200];
    const uint16_t owner[4] = {0, 1, 1, 0};
    assert_int_equal(tt_ledger_assign(ledger, owner), 4);
    assert_int_equal(tt_ledger_assign(ledger, owner), 0);
    // node 0 holds shard 0 or 3 and stays there until it is finished
    assert_int_equal(tt_ledger_take(ledger, 0, 4, rows), 4);
    uint32_t first = shard_of[rows[0]];
    assert_true(first == 0 || first == 3);
    assert_int_equal(tt_ledger_take(ledger, 0, 8, rows), 8);
    for (int i = 0; i < 6; i++)
        assert_int_equal(shard_of[rows[i]], first);
    assert_int_equal(shard_of[rows[7]], 3 - first);
    // node 1 leases one of its own; node 0 finishes its second and steals the other
    assert_int_equal(tt_ledger_take(ledger, 1, 3, rows), 3);
    uint32_t leased = shard_of[rows[0]];
    assert_true(leased == 1 || leased == 2);
    assert_int_equal(tt_ledger_take(ledger, 0, 18, rows), 18);
    for (int i = 8; i < 18; i++)
        assert_int_equal(shard_of[rows[i]], 3 - leased);
    tt_ledger_stats stats = tt_ledger_read(ledger);
    assert_int_equal(stats.examples_taken, 33);
    assert_int_equal(stats.examples_stolen, 10);
    assert_int_equal(stats.epochs_finished, 0);
    // All but the shard that node 1 leases are finished: node 0 goes one epoch ahead with its own,
    // then with the unleased one, and then finishes node 1's instead of a third epoch.
    assert_int_equal(tt_ledger_take(ledger, 0, 30, rows), 30);
    for (int i = 0; i < 20; i++)
        assert_true(shard_of[rows[i]] == 0 || shard_of[rows[i]] == 3);
    for (int i = 20; i < 30; i++)
        assert_int_equal(shard_of[rows[i]], 3 - leased);
    assert_int_equal(tt_ledger_take(ledger, 0, 7, rows), 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(shard_of[rows[i]], leased);
    stats = tt_ledger_read(ledger);
    assert_int_equal(stats.epochs_finished, 1);
    assert_int_equal(stats.examples_stolen, 27);
    assert_true(stats.epochs == 70.0 / 40 && tt_ledger_epochs(ledger) == stats.epochs);
    assert_int_equal(tt_ledger_examples(ledger), 70);
    // the second epoch has only that shard left, for whoever asks
    assert_int_equal(tt_ledger_take(ledger, 1, 10, rows), 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(shard_of[rows[i]], leased);
    assert_int_equal(tt_ledger_read(ledger).epochs_finished, 2);
    free(shard_of);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

static void
a_leased_shard_passes_on_with_its_cursor(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(30, 3);
    tt_ledger *ledger = open_ledger(shards, 3);
    uint32_t *shard_of = shard_of_row(shards), rows[30], in_order[10];
    tt_shard_cache cache;
    assert_int_equal(tt_shard_cache_init(&cache, shards), TT_OK);
    uint16_t owner[3] = {0, 1, 2};
    (void)tt_ledger_assign(ledger, owner);
    (void)tt_ledger_take(ledger, 0, 4, rows);
    assert_int_equal(shard_of[rows[0]], 0);
    // shard 0 goes to node 1, which has finished its own shard
    owner[0] = 1;
    assert_int_equal(tt_ledger_assign(ledger, owner), 1);
    (void)tt_ledger_take(ledger, 1, 13, rows + 4);
    tt_shards_rows(shards, &cache, 0, 0, 0, 10, in_order);
    for (int i = 4; i < 14; i++)
        if (shard_of[rows[i]] == 0)
            assert_int_equal(rows[i], in_order[i < 7 ? i : i - 10 + 4]);
    assert_int_equal(tt_ledger_read(ledger).examples_stolen, 0);
    // node 1 stops: whoever steals goes on at its cursor
    tt_ledger_release(ledger, 1);
    tt_ledger_release(ledger, 1);
    owner[0] = owner[1] = owner[2] = 0;
    (void)tt_ledger_assign(ledger, owner);
    (void)tt_ledger_take(ledger, 0, 13, rows + 17);
    uint8_t seen[30] = {0};
    for (int i = 0; i < 30; i++)
        assert_int_equal(seen[rows[i]]++, 0);
    assert_int_equal(tt_ledger_read(ledger).epochs_finished, 1);
    tt_shard_cache_fini(&cache);
    free(shard_of);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

// Whoever is quick helps with what is left of the last epoch and finds nothing after it.
static void
every_example_is_taken_as_often_as_the_limit_says(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 37, EPOCHS = 3 };
    tt_shards *shards = open_shards(ROWS, 5);
    tt_ledger *ledger = open_ledger(shards, 2);
    uint32_t rows[ROWS], total = 0, times[ROWS] = {0};
    tt_ledger_set_limit(ledger, EPOCHS);
    for (uint32_t turn = 0, took = 1; took > 0; turn++) {
        took = tt_ledger_take(ledger, turn % 4 == 0, 7, rows);
        for (uint32_t i = 0; i < took; i++)
            times[rows[i]]++;
        total += took;
        assert_true(took == 7 || total == EPOCHS * ROWS);
    }
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(times[i], EPOCHS);
    assert_int_equal(tt_ledger_take(ledger, 1, 1, rows), 0);
    tt_ledger_set_limit(ledger, EPOCHS + 1);
    assert_int_equal(tt_ledger_take(ledger, 1, ROWS, rows), ROWS);
    assert_int_equal(tt_ledger_take(ledger, 0, 1, rows), 0);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

static void
a_batch_may_exceed_the_data(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(101, 50);
    tt_ledger *ledger = open_ledger(shards, 4);
    uint32_t rows[505];
    assert_int_equal(tt_ledger_take(ledger, 3, 505, rows), 505);
    for (int epoch = 0; epoch < 5; epoch++) {
        uint8_t seen[101] = {0};
        for (int i = 0; i < 101; i++)
            assert_int_equal(seen[rows[epoch * 101 + i]]++, 0);
    }
    // nobody owns anything, so nothing was stolen
    assert_int_equal(tt_ledger_read(ledger).examples_stolen, 0);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

// ---- Plans ----

static void
plans_are_balanced_with_the_fewest_moves(void **state)
{
    TT_UNUSED(state);
    enum { SHARDS = 29, NODES = 9 };
    tt_shards *shards = open_shards(1000, SHARDS);
    tt_ledger *ledger = open_ledger(shards, NODES);
    tt_rng rng;
    tt_rng_init(&rng, 8, TT_RNG_TEST, 0);
    for (int round = 0; round < 2000; round++) {
        uint16_t before[SHARDS], after[SHARDS];
        uint8_t is_worker[NODES] = {0};
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            before[shard] =
                tt_rng_below(&rng, 12) == 0
                    ? TT_LEDGER_NOBODY
                    : (uint16_t)(tt_rng_below(&rng, NODES) * tt_rng_below(&rng, NODES) / NODES);
        (void)tt_ledger_assign(ledger, before);
        uint32_t rows[8], workers = 0, own[NODES] = {0}, target[NODES] = {0};
        (void)tt_ledger_take(ledger, (uint32_t)round % NODES, 8, rows);
        is_worker[tt_rng_below(&rng, NODES)] = 1;
        for (uint32_t node = 0; node < NODES; node++)
            workers += is_worker[node] |= (uint8_t)tt_rng_below(&rng, 2);
        uint32_t moved = tt_ledger_plan(ledger, is_worker, after), differs = 0, kept_most = 0,
                 extra;
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
            assert_true(after[shard] < NODES && is_worker[after[shard]]);
            target[after[shard]]++;
            differs += after[shard] != before[shard];
            if (before[shard] != TT_LEDGER_NOBODY)
                own[before[shard]]++;
        }
        assert_int_equal(moved, differs);
        // The most that any balanced plan keeps: everybody up to floor, and one more for as many of
        // those who own more as there are ceilings.
        extra = SHARDS % workers;
        for (uint32_t node = 0; node < NODES; node++) {
            if (!is_worker[node])
                continue;
            assert_in_range(target[node], SHARDS / workers, (SHARDS + workers - 1) / workers);
            kept_most += TT_MIN(own[node], SHARDS / workers);
            if (own[node] > SHARDS / workers && extra > 0) {
                kept_most++;
                extra--;
            }
        }
        assert_int_equal(moved, SHARDS - kept_most);
    }
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

static void
a_plan_leaves_working_nodes_where_they_are(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(600, 6);
    tt_ledger *ledger = open_ledger(shards, 3);
    uint16_t owner[6] = {0, 0, 0, 0, 0, 0}, after[6];
    uint32_t rows[250], *shard_of = shard_of_row(shards);
    (void)tt_ledger_assign(ledger, owner);
    (void)tt_ledger_take(ledger, 0, 250, rows);
    uint8_t is_worker[3] = {1, 1, 1};
    assert_int_equal(tt_ledger_plan(ledger, is_worker, after), 4);
    assert_int_equal(after[shard_of[rows[249]]], 0);
    free(shard_of);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

// ---- Threads ----

enum { THREAD_ROWS = 20011, THREAD_SHARDS = 53, THREAD_NODES = 5, EPOCHS = 6 };

struct shared {
    tt_ledger *ledger;
    uint32_t *taken; // times each row was taken
    uint32_t started, ended;
};

struct taker {
    struct shared *shared;
    uint32_t node;
    tt_thread thread;
};

static void *
take_until_the_last_epoch(void *self)
{
    struct taker *taker = self;
    struct shared *shared = taker->shared;
    tt_rng rng;
    tt_rng_init(&rng, 21, TT_RNG_TEST, taker->node);
    uint32_t rows[300];
    // all at once, or the first would be through before the last begins
    (void)tt_add_acq_rel(&shared->started, 1u);
    while (tt_load_acquire(&shared->started) < THREAD_NODES)
        (void)sched_yield();
    while (tt_ledger_read(shared->ledger).epochs_finished < EPOCHS) {
        uint32_t count = 1 + (uint32_t)tt_rng_below(&rng, TT_COUNT_OF(rows));
        (void)tt_ledger_take(shared->ledger, taker->node, count, rows);
        for (uint32_t i = 0; i < count; i++)
            (void)tt_add_relaxed(&shared->taken[rows[i]], 1u);
        if (tt_rng_below(&rng, 10) == 0)
            tt_ledger_release(shared->ledger, taker->node);
    }
    (void)tt_add_acq_rel(&shared->ended, 1u); // acquired by the meddler
    return NULL;
}

// Reassigns at random, by plan and by whim, and releases others' leases, until all takers ended.
static void
meddle(struct shared *shared)
{
    tt_rng rng;
    tt_rng_init(&rng, 22, TT_RNG_TEST, 0);
    uint16_t owner[THREAD_SHARDS];
    while (tt_load_acquire(&shared->ended) < THREAD_NODES) {
        uint8_t is_worker[THREAD_NODES] = {0};
        is_worker[tt_rng_below(&rng, THREAD_NODES)] = 1;
        for (uint32_t node = 0; node < THREAD_NODES; node++)
            is_worker[node] |= (uint8_t)tt_rng_below(&rng, 2);
        (void)tt_ledger_plan(shared->ledger, is_worker, owner);
        if (tt_rng_below(&rng, 3) == 0)
            for (uint32_t shard = 0; shard < THREAD_SHARDS; shard++)
                owner[shard] = (uint16_t)tt_rng_below(&rng, THREAD_NODES);
        (void)tt_ledger_assign(shared->ledger, owner);
        tt_ledger_release(shared->ledger, (uint32_t)tt_rng_below(&rng, THREAD_NODES));
    }
}

static void
threads_take_each_example_once_an_epoch(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(THREAD_ROWS, THREAD_SHARDS);
    struct shared shared = {.ledger = open_ledger(shards, THREAD_NODES),
                            .taken = calloc(THREAD_ROWS, sizeof(uint32_t))};
    uint16_t owner[THREAD_SHARDS];
    for (uint32_t shard = 0; shard < THREAD_SHARDS; shard++)
        owner[shard] = (uint16_t)(shard % THREAD_NODES);
    assert_int_equal(tt_ledger_assign(shared.ledger, owner), THREAD_SHARDS);
    struct taker takers[THREAD_NODES] = {0};
    tt_error err = {0};
    for (uint32_t node = 0; node < THREAD_NODES; node++) {
        takers[node].shared = &shared;
        takers[node].node = node;
        assert_int_equal(tt_thread_start(&takers[node].thread, "taker", take_until_the_last_epoch,
                                         &takers[node], &err),
                         TT_OK);
    }
    meddle(&shared);
    for (uint32_t node = 0; node < THREAD_NODES; node++)
        tt_thread_join(&takers[node].thread);
    // Every row EPOCHS times, and at most once more per epoch that was begun since: the last epoch
    // finished may be a little past EPOCHS, one more is begun, and one may be ahead of that.
    tt_ledger_stats stats = tt_ledger_read(shared.ledger);
    uint64_t total = 0;
    for (uint32_t row = 0; row < THREAD_ROWS; row++) {
        assert_in_range(shared.taken[row], stats.epochs_finished, stats.epochs_finished + 2);
        total += shared.taken[row];
    }
    assert_in_range(stats.epochs_finished, EPOCHS, EPOCHS + 1);
    assert_int_equal(total, stats.examples_taken);
    assert_true(stats.examples_stolen > 0);
    free(shared.taken);
    tt_ledger_close(shared.ledger);
    tt_shards_close(shards);
}

// One thread plays all nodes at random; after every take, the rows taken in each epoch are checked
// to be a set, and no row to be taken twice more than another plus one.
static void
no_row_is_more_than_one_epoch_ahead(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 211, SHARDS = 13, NODES = 4 };
    tt_shards *shards = open_shards(ROWS, SHARDS);
    tt_ledger *ledger = open_ledger(shards, NODES);
    tt_rng rng;
    tt_rng_init(&rng, 23, TT_RNG_TEST, 0);
    uint32_t taken[ROWS] = {0}, rows[64];
    for (int step = 0; step < 20000; step++) {
        uint32_t node = (uint32_t)tt_rng_below(&rng, NODES),
                 count = 1 + (uint32_t)tt_rng_below(&rng, 64);
        if (tt_rng_below(&rng, 7) == 0) {
            uint16_t owner[SHARDS];
            for (uint32_t shard = 0; shard < SHARDS; shard++)
                owner[shard] = (uint16_t)tt_rng_below(&rng, NODES);
            (void)tt_ledger_assign(ledger, owner);
        }
        // node 3 takes one row in a long while and keeps its lease: a straggler
        if (node == 3)
            count = step % 50 == 0;
        (void)tt_ledger_take(ledger, node, count, rows);
        for (uint32_t i = 0; i < count; i++)
            taken[rows[i]]++;
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t row = 0; row < ROWS; row++) {
            least = TT_MIN(least, taken[row]);
            most = TT_MAX(most, taken[row]);
        }
        assert_int_equal(least, tt_ledger_read(ledger).epochs_finished);
        assert_true(most <= least + 2);
    }
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

// As a checkpoint has it, and owners and leases behind it.
static tt_ledger *
copy_of(tt_ledger *ledger, const tt_shards *shards, uint32_t node_count)
{
    tt_archive out = {0}, in;
    tt_ledger_save(ledger, &out);
    tt_ledger_save_owners(ledger, &out);
    assert_int_equal(out.status, TT_OK);
    tt_ledger *copy = open_ledger(shards, node_count);
    tt_archive_read(&in, out.bytes, out.count);
    assert_int_equal(tt_ledger_load(copy, &in), TT_OK);
    assert_int_equal(tt_ledger_load_owners(copy, &in), TT_OK);
    tt_archive_fini(&out);
    return copy;
}

static void
a_copy_goes_on_as_the_ledger_does(void **state)
{
    TT_UNUSED(state);
    enum { NODES = 5 };
    tt_shards *shards = open_shards(500, 13);
    tt_ledger *ledger = open_ledger(shards, NODES);
    uint8_t is_worker[NODES] = {1, 1, 0, 1, 1};
    uint16_t owner[13];
    uint32_t rows[2][40];
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 0);
    for (int i = 0; i < 300; i++) {
        tt_ledger *copy = copy_of(ledger, shards, NODES);
        for (int k = 0; k < 10; k++) {
            uint32_t node = (uint32_t)tt_rng_below(&rng, NODES);
            uint32_t count = 1 + (uint32_t)tt_rng_below(&rng, 40);
            assert_int_equal(tt_ledger_take(ledger, node, count, rows[0]), count);
            assert_int_equal(tt_ledger_take(copy, node, count, rows[1]), count);
            assert_memory_equal(rows[0], rows[1], count * sizeof rows[0][0]);
        }
        tt_ledger_close(copy);
        tt_ledger_release(ledger, (uint32_t)tt_rng_below(&rng, NODES));
        is_worker[tt_rng_below(&rng, NODES)] ^= 1;
        is_worker[0] = 1;
        (void)tt_ledger_plan(ledger, is_worker, owner);
        (void)tt_ledger_assign(ledger, owner);
    }
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

static void
owners_that_make_no_sense_are_refused(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(60, 6);
    tt_ledger *ledger = open_ledger(shards, 2);
    tt_archive out = {0}, in;
    uint32_t rows[7];
    assert_int_equal(tt_ledger_take(ledger, 1, 7, rows), 7);
    tt_ledger_save_owners(ledger, &out);
    for (size_t at = 0; at < out.count; at++) {
        uint8_t before = out.bytes[at];
        out.bytes[at] = before == 7 ? 8 : 7; // a node that is not there, or another tag
        tt_archive_read(&in, out.bytes, out.count);
        assert_int_equal(tt_ledger_load_owners(ledger, &in), TT_CORRUPT);
        out.bytes[at] = before;
    }
    tt_archive_fini(&out);
    tt_ledger_close(ledger);
    tt_shards_close(shards);
}

static void
memory_and_counts_are_checked(void **state)
{
    TT_UNUSED(state);
    tt_shards *shards = open_shards(30, 3);
    tt_ledger *ledger;
    tt_error err = {0};
    assert_int_equal(tt_ledger_open(shards, 0, &ledger, &err), TT_RANGE);
    assert_int_equal(tt_ledger_open(shards, 65535, &ledger, &err), TT_RANGE);
    uint64_t n = 1;
    for (;; n++) {
        tt_mem_fail_nth(n);
        tt_status status = tt_ledger_open(shards, 2, &ledger, &err);
        if (status == TT_OK)
            break;
        assert_int_equal(status, TT_NOMEM);
        assert_null(ledger);
    }
    tt_mem_fail_nth(0);
    assert_int_equal(n,
                     9); // itself, five arrays, one for each of two nodes; the next is not reached
    tt_ledger_close(ledger);
    tt_ledger_close(NULL);
    tt_shards_close(shards);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_take_their_own_then_others_then_the_next_epoch),
        cmocka_unit_test(a_leased_shard_passes_on_with_its_cursor),
        cmocka_unit_test(every_example_is_taken_as_often_as_the_limit_says),
        cmocka_unit_test(a_batch_may_exceed_the_data),
        cmocka_unit_test(plans_are_balanced_with_the_fewest_moves),
        cmocka_unit_test(a_plan_leaves_working_nodes_where_they_are),
        cmocka_unit_test(threads_take_each_example_once_an_epoch),
        cmocka_unit_test(no_row_is_more_than_one_epoch_ahead),
        cmocka_unit_test(a_copy_goes_on_as_the_ledger_does),
        cmocka_unit_test(owners_that_make_no_sense_are_refused),
        cmocka_unit_test(memory_and_counts_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
