// Goal: the small things everything stands on do what their headers say.
// Method: published known answers for Philox, provoked allocation failures, threads that wait on an
// event.
#include "tt/core.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
philox_gives_the_published_answers(void **state)
{
    TT_UNUSED(state);
    // Random123's kat_vectors, philox4x32 with 10 rounds.
    uint32_t out[4];
    const uint32_t zero[4] = {0};
    tt_rng_philox(zero, zero, out);
    const uint32_t expected_zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    assert_memory_equal(out, expected_zero, sizeof out);
    const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   pi_key[2] = {0xa4093822, 0x299f31d0};
    tt_rng_philox(pi, pi_key, out);
    const uint32_t expected_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    assert_memory_equal(out, expected_pi, sizeof out);
}

static void
streams_differ_and_repeat(void **state)
{
    TT_UNUSED(state);
    tt_rng a, b, c;
    tt_rng_init(&a, 42, TT_RNG_TEST, 7);
    tt_rng_init(&b, 42, TT_RNG_TEST, 7);
    tt_rng_init(&c, 42, TT_RNG_TEST, 8);
    int same = 0;
    double sum = 0, sum_squares = 0;
    enum { DRAWS = 20000 };
    for (int i = 0; i < DRAWS; i++) {
        double x = tt_rng_normal(&a);
        assert_true(x == tt_rng_normal(&b));
        same += x == tt_rng_normal(&c);
        sum += x;
        sum_squares += x * x;
        assert_true(tt_rng_below(&a, 13) < 13);
        (void)tt_rng_below(&b, 13);
    }
    assert_int_equal(same, 0);
    // five standard errors of mean and variance over 20,000 draws
    assert_true(sum / DRAWS > -0.036 && sum / DRAWS < 0.036);
    assert_true(sum_squares / DRAWS > 0.95 && sum_squares / DRAWS < 1.05);
}

static void
shuffle_is_a_permutation(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 0);
    uint32_t items[97], seen[97] = {0};
    for (uint32_t i = 0; i < 97; i++)
        items[i] = i;
    tt_rng_shuffle_u32(&rng, items, 97);
    int moved = 0;
    for (uint32_t i = 0; i < 97; i++) {
        assert_int_equal(seen[items[i]]++, 0);
        moved += items[i] != i;
    }
    assert_true(moved > 80);
}

static void
nth_allocation_fails(void **state)
{
    TT_UNUSED(state);
    tt_mem_fail_nth(2);
    void *first = tt_mem_alloc(10), *second = tt_mem_alloc(10), *third = tt_mem_alloc(10);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_false(tt_mem_fail_pending());
    tt_mem_free(first);
    tt_mem_free(third);
}

static void
arena_reuses_its_blocks(void **state)
{
    TT_UNUSED(state);
    tt_arena arena;
    tt_arena_init(&arena, 256);
    unsigned char *before = tt_arena_alloc(&arena, 100);
    memset(before, 0xa5, 100);
    assert_non_null(tt_arena_alloc(&arena, 1000));
    tt_arena_reset(&arena);
    unsigned char *after = tt_arena_alloc(&arena, 100);
    assert_ptr_equal(before, after);
    assert_int_equal(after[99], 0);
    assert_string_equal(tt_arena_strdup(&arena, "trim"), "trim");
    tt_arena_fini(&arena);
}

struct ping {
    tt_event event;
    uint32_t value;
};

static void *
ping_body(void *self)
{
    struct ping *ping = self;
    for (int i = 0; i < 1000; i++) {
        tt_store_relaxed(&ping->value, (uint32_t)i + 1);
        tt_event_signal(&ping->event); // acquired by event_wakes_a_sleeper
    }
    return NULL;
}

static void
event_wakes_a_sleeper(void **state)
{
    TT_UNUSED(state);
    struct ping ping = {0};
    tt_thread thread = {0};
    tt_error err = {0};
    assert_int_equal(tt_thread_start(&thread, "ping", ping_body, &ping, &err), TT_OK);
    uint32_t seen = 0;
    for (int guard = 0; tt_load_relaxed(&ping.value) < 1000 && guard < 100000; guard++) {
        (void)tt_event_wait(&ping.event, seen, 0, 1000000000u);
        seen = tt_event_read(&ping.event);
    }
    tt_thread_join(&thread);
    assert_int_equal(ping.value, 1000);
    assert_false(tt_event_wait(&ping.event, tt_event_read(&ping.event), 3, 1000000u));
}

static void
errors_say_where_what_and_advice(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    assert_int_equal(tt_error_set(&err, TT_RANGE, "job.yaml:3:9", "use a smaller one",
                                  "rate %d is too large", 50),
                     TT_RANGE);
    char text[256] = {0};
    FILE *file = fmemopen(text, sizeof text, "w");
    tt_error_print(file, &err);
    (void)fclose(file);
    assert_string_equal(text, "job.yaml:3:9: rate 50 is too large; use a smaller one\n");
    assert_int_equal(tt_status_exit_code(TT_RANGE), 2);
    assert_int_equal(tt_status_exit_code(TT_DIVERGED), 1);
}

// A fork holds it, says so, and is killed.
static void
a_lock_goes_with_its_process(void **state)
{
    TT_UNUSED(state);
    char directory[] = P_tmpdir "/tt-lock-XXXXXX", path[64], nowhere[64];
    tt_error err = {0};
    int own = -1, again = -1, ready[2], child_status;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/lock", directory);
    (void)snprintf(nowhere, sizeof nowhere, "%s/none/lock", directory);
    assert_int_equal(tt_lock_ask(path), TT_LOCK_UNKNOWN);
    assert_int_equal(tt_lock_take(nowhere, &own, &err), TT_NOTFOUND);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char said = tt_lock_take(path, &own, &err) == TT_OK ? 'y' : 'n';
        (void)!write(ready[1], &said, 1);
        for (;;)
            (void)pause();
    }
    char said;
    assert_int_equal(read(ready[0], &said, 1), 1);
    assert_int_equal(said, 'y');
    for (int i = 0; i < 3; i++) // asking takes nothing
        assert_int_equal(tt_lock_ask(path), TT_LOCK_HELD);
    assert_int_equal(tt_lock_take(path, &own, &err), TT_BUSY);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(tt_lock_ask(path), TT_LOCK_FREE);
    assert_int_equal(tt_lock_take(path, &own, &err), TT_OK);
    assert_int_equal(tt_lock_take(path, &again, &err), TT_BUSY);
    (void)close(own);
    assert_int_equal(tt_lock_ask(path), TT_LOCK_FREE);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)unlink(path);
    (void)rmdir(directory);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_goes_with_its_process),
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(streams_differ_and_repeat),
        cmocka_unit_test(shuffle_is_a_permutation),
        cmocka_unit_test(nth_allocation_fails),
        cmocka_unit_test(arena_reuses_its_blocks),
        cmocka_unit_test(event_wakes_a_sleeper),
        cmocka_unit_test(errors_say_where_what_and_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
