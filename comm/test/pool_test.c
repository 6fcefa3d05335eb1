// Goal: memory of a pool is lent to whom it is lent, once, and never changes under who reads it;
// what changed while it was read is thrown away; a process that follows another finds nothing of it
// that can be read. Method: two and three views of one shared memory, as processes have them; two
// processes, of which one changes what the other reads as fast as both can.
#include "tt/comm.h"
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { OWNER, READER, ENDS, WORDS = 5000, ROUNDS = 20000 };

typedef struct views {
    int fd;
    tt_mesh *mesh[3]; // the last one is of the owner's successor
    tt_pool *owner, *reader, *successor;
} views;

static tt_pool *
pool_of(tt_mesh *mesh, uint32_t end)
{
    tt_outbox outbox = tt_mesh_outbox(mesh, end);
    return tt_outbox_pool(&outbox, OWNER);
}

static int
set_up(void **state)
{
    static views v;
    tt_error err = {0};
    assert_int_equal(tt_mesh_share(ENDS, &v.fd, &err), TT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tt_mesh_attach(v.fd, &v.mesh[i], &err), TT_OK);
    v.owner = pool_of(v.mesh[0], OWNER);
    v.reader = pool_of(v.mesh[1], READER);
    v.successor = pool_of(v.mesh[2], OWNER);
    assert_non_null(v.owner);
    *state = &v;
    return 0;
}

static int
tear_down(void **state)
{
    views *v = *state;
    for (int i = 0; i < 3; i++)
        tt_mesh_close(v->mesh[i]);
    (void)close(v->fd);
    return 0;
}

static void
memory_is_taken_and_given_back(void **state)
{
    views *v = *state;
    uint64_t offset, second;
    uint8_t *a = tt_pool_take(v->owner, 10000), *b = tt_pool_take(v->owner, 1),
            *c = tt_pool_take(v->owner, 4096);
    assert_non_null(a);
    assert_true((uintptr_t)a % 4096 == 0 && b == a + 12288 && c == b + 4096);
    memset(a, 7, 10000);
    memset(c, 8, 4096);
    assert_true(tt_pool_find(v->owner, a + 100, 9900, &offset));
    assert_true(tt_pool_find(v->owner, c, 4096, &second));
    assert_false(tt_pool_find(v->owner, c, 4097, &second));
    assert_false(tt_pool_find(v->owner, &offset, 8, &offset));
    const uint8_t *seen = tt_pool_see(v->reader, OWNER, offset, 9900);
    assert_true(seen != a && seen[0] == 7 && seen[9899] == 7);
    tt_pool_give_back(v->owner, a);
    assert_false(tt_pool_find(v->owner, a, 1, &offset));
    assert_int_equal(seen[0], 0); // gone
    assert_ptr_equal(tt_pool_take(v->owner, 12288), a);
    assert_int_equal(c[5], 8);
    tt_pool_give_back(v->owner, NULL);
    assert_null(tt_pool_see(v->reader, ENDS, 0, 1));
    assert_null(tt_pool_see(v->reader, OWNER, TT_POOL_BYTES, 1));
    assert_null(tt_pool_see(v->reader, OWNER, 8, UINT64_MAX));
    assert_non_null(tt_pool_see(v->reader, OWNER, TT_POOL_BYTES - 1, 1));
}

static void
no_more_is_given_than_there_is(void **state)
{
    views *v = *state;
    uint8_t *most = tt_pool_take(v->owner, TT_POOL_BYTES - 4096);
    assert_non_null(most);
    assert_null(tt_pool_take(v->owner, 4097));
    assert_non_null(tt_pool_take(v->owner, 4096));
    assert_null(tt_pool_take(v->owner, 1));
    tt_pool_give_back(v->owner, most);
    assert_non_null(tt_pool_take(v->owner, 1));
    assert_null(tt_pool_take(v->owner, SIZE_MAX));
    assert_null(tt_pool_take(v->owner, 0));
    assert_non_null(tt_pool_take(v->reader, TT_POOL_BYTES)); // each has its own
}

static void
a_mesh_of_one_process_shares_nothing(void **state)
{
    TT_UNUSED(state);
    tt_mesh *mesh;
    tt_error err = {0};
    assert_int_equal(tt_mesh_open(ENDS, &mesh, &err), TT_OK);
    assert_null(pool_of(mesh, OWNER));
    tt_mesh_close(mesh);
}

static void
a_ticket_is_borrowed_once(void **state)
{
    views *v = *state;
    uint64_t ticket = tt_pool_lend(v->owner, 3);
    assert_false(tt_pool_borrow(v->reader, OWNER, 4, ticket));
    assert_false(tt_pool_borrow(v->reader, READER, 3, ticket));
    assert_false(tt_pool_borrow(v->reader, ENDS, 3, ticket));
    assert_false(tt_pool_borrow(v->reader, OWNER, TT_POOL_WORDS, ticket));
    assert_true(tt_pool_borrow(v->reader, OWNER, 3, ticket));
    assert_false(tt_pool_borrow(v->reader, OWNER, 3, ticket));
    tt_pool_return(v->reader, OWNER, 3, ticket);
    assert_false(tt_pool_borrow(v->reader, OWNER, 3, ticket));
    assert_true(tt_pool_recall(v->owner, 3, ticket));
}

static void
what_was_recalled_is_not_borrowed(void **state)
{
    views *v = *state;
    uint64_t ticket = tt_pool_lend(v->owner, 0);
    assert_true(tt_pool_recall(v->owner, 0, ticket));
    assert_false(tt_pool_borrow(v->reader, OWNER, 0, ticket));
    uint64_t next = tt_pool_lend(v->owner, 0);
    assert_true(next != ticket);
    assert_false(tt_pool_borrow(v->reader, OWNER, 0, ticket));
    assert_true(tt_pool_borrow(v->reader, OWNER, 0, next));
}

static void
what_is_read_is_not_recalled(void **state)
{
    views *v = *state;
    uint64_t ticket = tt_pool_lend(v->owner, 0);
    assert_true(tt_pool_borrow(v->reader, OWNER, 0, ticket));
    assert_false(tt_pool_recall(v->owner, 0, ticket));
    assert_false(tt_pool_recall(v->owner, 0, ticket));
    tt_pool_return(v->reader, OWNER, 0, ticket);
    assert_true(tt_pool_recall(v->owner, 0, ticket));
}

// The borrower has said in a message that he is done, and comes to return it after the next loan.
static void
a_late_return_ends_no_other_loan(void **state)
{
    views *v = *state;
    uint64_t ticket = tt_pool_lend(v->owner, 0);
    assert_true(tt_pool_borrow(v->reader, OWNER, 0, ticket));
    uint64_t next = tt_pool_lend(v->owner, 0);
    tt_pool_return(v->reader, OWNER, 0, ticket);
    assert_true(tt_pool_borrow(v->reader, OWNER, 0, next));
    assert_false(tt_pool_recall(v->owner, 0, next));
    tt_pool_return(v->reader, OWNER, 0, next);
    assert_true(tt_pool_recall(v->owner, 0, next));
}

static void
what_changed_is_not_read(void **state)
{
    views *v = *state;
    uint32_t *words = tt_pool_take(v->owner, 4 * sizeof *words), got[4] = {0};
    uint64_t offset;
    assert_non_null(words);
    words[2] = 2385;
    assert_true(tt_pool_find(v->owner, words, sizeof got, &offset));
    tt_pool_guard_begin(v->owner, 9);
    uint64_t first = tt_pool_guard(v->owner, 9);
    assert_true(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 0, got));
    assert_int_equal(got[2], 2385);
    tt_pool_guard_change(v->owner, 9);
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 0, got));
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 1, got));
    words[2] = 17;
    tt_pool_guard_changed(v->owner, 9);
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 0, got));
    assert_true(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 1, got));
    assert_int_equal(got[2], 17);
    assert_false(tt_pool_copy(v->reader, OWNER, TT_POOL_WORDS, first, offset, 16, 1, got));
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, TT_POOL_BYTES, 16, 1, got));
    tt_pool_guard_end(v->owner, 9);
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 1, got));
    tt_pool_guard_begin(v->owner, 9); // for something else
    assert_false(tt_pool_copy(v->reader, OWNER, 9, first, offset, sizeof got, 1, got));
}

static void
a_successor_takes_back_what_was_lent(void **state)
{
    views *v = *state;
    uint64_t offset, got, *words = tt_pool_take(v->owner, sizeof *words);
    assert_non_null(words);
    words[0] = 5;
    assert_true(tt_pool_find(v->owner, words, sizeof *words, &offset));
    tt_pool_guard_begin(v->owner, 1);
    uint64_t ticket = tt_pool_lend(v->owner, 2), guard = tt_pool_guard(v->owner, 1);
    assert_true(tt_pool_copy(v->reader, OWNER, 1, guard, offset, sizeof got, 0, &got));
    const uint64_t *again = tt_pool_take(v->successor, sizeof *again);
    assert_non_null(again);
    assert_true(*again == 0);
    assert_false(tt_pool_borrow(v->reader, OWNER, 2, ticket));
    assert_false(tt_pool_copy(v->reader, OWNER, 1, guard, offset, sizeof got, 1, &got));
    tt_pool_guard_begin(v->successor, 1);
    assert_false(tt_pool_copy(v->reader, OWNER, 1, guard, offset, sizeof got, 1, &got));
}

static void
a_successor_leaves_alone_what_is_read(void **state)
{
    views *v = *state;
    uint64_t *words = tt_pool_take(v->owner, sizeof *words);
    assert_non_null(words);
    words[0] = 5;
    uint64_t ticket = tt_pool_lend(v->owner, 2);
    assert_true(tt_pool_borrow(v->reader, OWNER, 2, ticket));
    assert_null(tt_pool_take(v->successor, sizeof *words));
    assert_true(words[0] == 5);
    tt_pool_return(v->reader, OWNER, 2, ticket);
    assert_null(tt_pool_take(v->successor, sizeof *words)); // once and for all
}

static _Noreturn void
change_for_ever(int fd)
{
    tt_mesh *mesh;
    tt_error err = {0};
    if (tt_mesh_attach(fd, &mesh, &err) != TT_OK)
        _exit(9);
    tt_pool *pool = pool_of(mesh, OWNER);
    uint32_t *words = tt_pool_take(pool, WORDS * sizeof *words);
    if (words == NULL)
        _exit(9);
    tt_pool_guard_begin(pool, 0);
    for (uint32_t round = 1;; round++) {
        tt_pool_guard_change(pool, 0);
        for (uint32_t i = 0; i < WORDS; i++)
            ((volatile uint32_t *)words)[i] = round;
        tt_pool_guard_changed(pool, 0);
        for (uint32_t i = 0; i < round % 2000; i++)
            tt_cpu_pause();
    }
}

static void
what_is_read_is_of_one_moment(void **state)
{
    views *v = *state;
    static uint32_t words[WORDS];
    pid_t child = fork();
    if (child == 0)
        change_for_ever(v->fd);
    uint32_t good = 0, last = 0;
    const uint64_t beginning = UINT64_C(1) << 32;
    // Who changes them may wait for this very processor, in the middle of a change.
    const uint64_t end_ns = tt_clock_monotonic_ns() + UINT64_C(60000000000);
    while ((good < ROUNDS || last < 2) && tt_clock_monotonic_ns() < end_ns) {
        if (!tt_pool_copy(v->reader, OWNER, 0, beginning, 0, sizeof words, 1, words)) {
            (void)sched_yield();
            continue;
        }
        good++;
        assert_true(words[0] >= last);
        last = words[0];
        for (uint32_t i = 1; i < WORDS; i++)
            assert_true(words[i] == words[0]);
    }
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    assert_true(good > 100 && last > 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_is_taken_and_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_is_given_than_there_is, set_up, tear_down),
        cmocka_unit_test(a_mesh_of_one_process_shares_nothing),
        cmocka_unit_test_setup_teardown(a_ticket_is_borrowed_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_recalled_is_not_borrowed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_read_is_not_recalled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_return_ends_no_other_loan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_changed_is_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_successor_takes_back_what_was_lent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_successor_leaves_alone_what_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_read_is_of_one_moment, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
