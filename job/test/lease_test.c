// Goal: whatever is lost, late or said twice on the way, every leased row is taken once and in
// order, what is to be done again as one batch under its name, and of what was not trained the
// master knows every row. Method: an account and a lease,
// with random deliveries between them, in one thread and in two.
#include "lease.h"
#include "tt/core.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 7 };

// The master's account and the node's lease of one node, with a number for each row granted.
typedef struct pair {
    tti_account account;
    tti_lease lease;
    uint32_t next_row, next_taken;
    uint32_t agains, agains_taken; // others' batches
} pair;

static void
open_pair(pair *p)
{
    memset(p, 0, sizeof *p);
    assert_int_equal(tti_account_open(&p->account, BATCH), TT_OK);
    assert_int_equal(tti_lease_open(&p->lease, BATCH), TT_OK);
    p->lease.ahead = 3;
    p->lease.unit = BATCH;
}

static void
close_pair(pair *p)
{
    tti_account_close(&p->account);
    tti_lease_close(&p->lease);
}

static void
grant(pair *p, uint32_t count)
{
    uint32_t rows[64];
    count = TT_MIN(count, tti_account_room(&p->account));
    for (uint32_t i = 0; i < count; i++)
        rows[i] = p->next_row++;
    // Rows of a batch that somebody else had begun, now and then; its name ends as its rows do.
    if (p->account.again.batch.rows == 0 && count > 0 && p->next_row % 5 == 3) {
        count = TT_MIN(count, (uint32_t)BATCH);
        p->next_row = rows[0] + count;
        p->account.again = (tti_again){.at = p->account.granted,
                                       .batch = {.end = p->next_row, .rows = count, .attempt = 3},
                                       .worker = 2};
        p->agains++;
    }
    tti_account_grant(&p->account, rows, count);
}

// As the books do (tti_left_trained).
static void
trained(pair *p, uint32_t count)
{
    tti_again *again = &p->account.again;
    tti_account_trained(&p->account, count);
    if (p->account.trained >= again->at + again->batch.rows)
        *again = (tti_again){0};
}

// What was taken next to `first`, the next row; returns 1 if it is another's batch.
static int
is_anothers(const tti_again *again, uint32_t first, uint32_t count)
{
    if (again->batch.rows == 0)
        return 0;
    assert_int_equal(again->batch.rows, count);
    assert_int_equal(again->batch.end, first + count);
    assert_int_equal(again->batch.attempt, 3);
    assert_int_equal(again->worker, 2);
    return 1;
}

static void
deliver(pair *p, uint64_t first, int dry)
{
    const uint32_t *rows;
    uint32_t count = tti_account_rows(&p->account, first, &rows);
    tti_lease_receive(&p->lease, p->account.number, first, rows, count, dry, &p->account.again);
}

static uint32_t
take(pair *p, int *later)
{
    uint32_t rows[BATCH];
    tti_again again;
    uint32_t count = tti_lease_take(&p->lease, BATCH, rows, later, &again);
    p->agains_taken += (uint32_t)is_anothers(&again, p->next_taken, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rows[i], p->next_taken++);
    return count;
}

static void
rows_come_once_and_in_order(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        pair p;
        tt_rng rng;
        int later;
        uint32_t untrained;
        open_pair(&p);
        tt_rng_init(&rng, seed, TT_RNG_SCHEDULE, 7);
        for (int step = 0; step < 3000; step++) {
            uint64_t wanted = tti_lease_wanted(&p.lease);
            switch (tt_rng_below(&rng, 4)) {
            case 0:
                if (wanted > p.account.granted)
                    grant(&p, TT_MIN((uint32_t)(wanted - p.account.granted), 64u));
                break;
            case 1: // from anywhere: what is known again, or with a gap
                untrained = (uint32_t)tti_account_untrained(&p.account);
                deliver(&p, p.account.granted - tt_rng_below(&rng, 1 + TT_MIN(60u, untrained)), 0);
                break;
            case 2: // what the node says it has
                deliver(&p, p.lease.received, 0);
                break;
            default:
                trained(&p, take(&p, &later));
                break;
            }
        }
        assert_true(p.next_taken > 1000);
        assert_true(p.agains > 50 && p.agains - p.agains_taken <= 1);
        assert_int_equal(p.next_row - p.next_taken, tti_account_untrained(&p.account));
        close_pair(&p);
    }
}

static void
a_batch_waits_until_it_is_whole(void **state)
{
    TT_UNUSED(state);
    pair p;
    int later;
    open_pair(&p);
    assert_int_equal(take(&p, &later), 0);
    assert_true(later);
    grant(&p, BATCH - 2);
    deliver(&p, 0, 0);
    assert_int_equal(take(&p, &later), 0);
    assert_true(later);
    deliver(&p, p.account.granted, 1); // there will be no more
    assert_int_equal(take(&p, &later), BATCH - 2);
    assert_false(later);
    assert_int_equal(take(&p, &later), 0);
    assert_false(later);
    close_pair(&p);
}

static void
what_is_given_back_is_taken_by_nobody(void **state)
{
    TT_UNUSED(state);
    pair p;
    int later;
    open_pair(&p);
    grant(&p, 3 * BATCH);
    deliver(&p, 0, 0);
    tti_account_trained(&p.account, take(&p, &later));
    tti_lease_give_back(&p.lease);
    assert_int_equal(tti_lease_wanted(&p.lease), p.lease.received);
    assert_int_equal(take(&p, &later), 0);
    assert_true(later);
    assert_int_equal(tti_account_untrained(&p.account), 2 * BATCH);
    tti_account_next(&p.account);
    assert_int_equal(tti_account_untrained(&p.account), 0);
    deliver(&p, 0, 0);
    assert_int_equal(tti_lease_wanted(&p.lease), 0); // a server has no use for rows
    assert_int_equal(take(&p, &later), 0);
    assert_true(later); // it works again
    assert_true(tti_lease_wanted(&p.lease) == 0);
    p.lease.ahead = 2;
    p.next_taken = p.next_row;
    grant(&p, 2 * BATCH);
    deliver(&p, 0, 0);
    assert_int_equal(take(&p, &later), BATCH);
    close_pair(&p);
}

static void
an_older_lease_is_ignored(void **state)
{
    TT_UNUSED(state);
    pair p;
    uint32_t rows[BATCH] = {0};
    int later;
    open_pair(&p);
    tti_lease_give_back(&p.lease);
    tti_account_next(&p.account);
    deliver(&p, 0, 0);
    tti_lease_receive(&p.lease, 1, 0, rows, BATCH, 0, &p.account.again);
    assert_int_equal(take(&p, &later), 0);
    close_pair(&p);
}

// A node's thread, which takes rows and at times gives back what is left of a lease.
typedef struct taker {
    tti_lease *lease;
    uint64_t seed;
    uint32_t taken;      // in order, since the beginning; release
    uint32_t wrong;      // rows that were not the next one
    uint32_t given_back; // leases
    uint32_t agains;     // batches of others
} taker;

enum { ROWS_OF_TWO_THREADS = 100000 };

static void *
take_and_give_back(void *self)
{
    taker *t = self;
    tt_rng rng;
    uint32_t rows[BATCH];
    tti_again again;
    int later;
    tt_rng_init(&rng, t->seed, TT_RNG_SCHEDULE, 8);
    while (t->taken < ROWS_OF_TWO_THREADS) {
        tt_store_relaxed(&t->lease->ahead, 3u);
        (void)tti_lease_is_low(t->lease);
        uint32_t count = tti_lease_take(t->lease, BATCH, rows, &later, &again);
        t->wrong += again.batch.rows > 0 &&
                    (again.batch.rows != count || again.batch.end != t->taken + count);
        t->agains += again.batch.rows > 0;
        for (uint32_t i = 0; i < count; i++)
            t->wrong += rows[i] != t->taken + i;
        tt_store_release(&t->taken, t->taken + count); // acquired in keep_the_books
        if (count == 0)
            sched_yield();
        else if (tt_rng_below(&rng, 50) == 0) {
            t->given_back++;
            tti_lease_give_back(t->lease);
        }
    }
    return NULL;
}

// The master's side and the agent's, beside that thread; deliveries start anywhere.
static void
keep_the_books(pair *p, taker *t, tt_rng *rng)
{
    uint32_t booked = 0;
    while (booked < ROWS_OF_TWO_THREADS) {
        int is_closed = tt_load_acquire(&p->lease.closed) == p->lease.number;
        uint32_t taken = tt_load_acquire(&t->taken); // all of a lease when it is closed
        trained(p, taken - booked);
        booked = taken;
        if (is_closed) {
            p->next_row = taken; // somebody else's in a job; here the same node's again
            tti_account_next(&p->account);
        }
        uint64_t wanted = tti_lease_wanted(&p->lease);
        if (!is_closed && wanted > p->account.granted)
            grant(p, TT_MIN((uint32_t)(wanted - p->account.granted), 64u));
        uint64_t untrained = tti_account_untrained(&p->account);
        uint64_t back = tt_rng_below(rng, 1 + (uint32_t)TT_MIN(60u, untrained));
        deliver(p, p->account.granted - back, 0);
        if (tt_rng_below(rng, 8) == 0)
            sched_yield();
    }
}

static void
rows_come_once_between_two_threads(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        pair p;
        tt_rng rng;
        tt_thread thread;
        open_pair(&p);
        taker t = {.lease = &p.lease, .seed = seed};
        tt_rng_init(&rng, seed, TT_RNG_SCHEDULE, 9);
        assert_int_equal(tt_thread_start(&thread, "taker", take_and_give_back, &t, NULL), TT_OK);
        keep_the_books(&p, &t, &rng);
        tt_thread_join(&thread);
        assert_int_equal(t.wrong, 0);
        assert_true(t.given_back > 100 && t.agains > 100);
        close_pair(&p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_once_and_in_order),
        cmocka_unit_test(a_batch_waits_until_it_is_whole),
        cmocka_unit_test(what_is_given_back_is_taken_by_nobody),
        cmocka_unit_test(an_older_lease_is_ignored),
        cmocka_unit_test(rows_come_once_between_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
