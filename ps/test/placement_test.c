// Goal: as long as a partition and its backup lie on two hosts, one host that dies takes nothing
// with it: not while the partition moves, wherever it goes, and not before another backup is made.
// Method: views by seed, with servers that come and go; of each, for every host, the view without
// it. Plus the cases by hand.
#include "tt/ps.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 8, PARTITIONS_MAX = 12, SEEDS = 4000, STEPS = 12 };

typedef struct world {
    tt_rng rng;
    tt_ps_table table;
    uint32_t nodes, hosts;
    tt_ps_view *view;
    uint8_t is_backed[PARTITIONS_MAX], moving[PARTITIONS_MAX];
    uint32_t looked_at; // partitions of hosts that died
} world;

static uint32_t
pick(world *w, uint32_t bound)
{
    return (uint32_t)tt_rng_below(&w->rng, bound);
}

static void
choose_servers(world *w, uint8_t *is_server)
{
    uint32_t servers = 1 + pick(w, w->nodes - 1);
    memset(is_server, 0, TT_PS_NODES_MAX);
    while (servers > 0) {
        uint32_t n = pick(w, w->nodes);
        servers -= !is_server[n];
        is_server[n] = 1;
    }
}

static void
open_world(world *w, uint64_t seed)
{
    uint8_t is_server[TT_PS_NODES_MAX];
    uint16_t host[NODES_MAX];
    memset(w, 0, sizeof *w);
    tt_rng_init(&w->rng, seed, TT_RNG_TEST, 11);
    w->nodes = 3 + pick(w, NODES_MAX - 2);
    w->hosts = 2 + pick(w, 3);
    w->table = (tt_ps_table){.kind = TT_PS_DENSE,
                             .rows = 100,
                             .width = 1,
                             .partition_count = 1 + pick(w, PARTITIONS_MAX),
                             .replicas = 1};
    choose_servers(w, is_server);
    assert_int_equal(tt_ps_view_first(&w->table, w->nodes, is_server, &w->view), TT_OK);
    for (uint32_t n = 0; n < w->nodes; n++)
        host[n] = (uint16_t)pick(w, w->hosts);
    tt_ps_view_set_hosts(w->view, host);
    memset(w->is_backed, 1, sizeof w->is_backed);
}

static void
put_in_force(world *w, tt_ps_view *next)
{
    for (uint32_t p = 0; p < next->partition_count; p++) {
        w->is_backed[p] = (uint8_t)tt_ps_view_is_backed(w->view, next, p, w->is_backed[p]);
        w->moving[p] = next->moved_at[p] == next->generation;
    }
    tt_ps_view_free(w->view);
    w->view = next;
}

static int
is_on_two_hosts(const tt_ps_view *view, uint32_t p)
{
    uint16_t backup = view->backup[p];
    return backup != TT_PS_NOBODY && view->host[backup] != view->host[view->owner[p]];
}

// What the death of a host takes with it of the partitions that were safe before.
static void
lose_each_host(world *w, const uint8_t *was_safe)
{
    for (uint32_t h = 0; h < w->hosts; h++) {
        uint8_t is_dead[NODES_MAX] = {0};
        uint32_t left = 0;
        tt_ps_view *after;
        for (uint32_t n = 0; n < w->nodes; n++) {
            is_dead[n] = w->view->host[n] == h;
            left += !is_dead[n];
        }
        if (left < 2 || left == w->nodes)
            continue;
        assert_int_equal(tt_ps_view_without(w->view, is_dead, w->moving, w->is_backed, 1, &after),
                         TT_OK);
        for (uint32_t p = 0; p < w->table.partition_count; p++) {
            w->looked_at += was_safe[p];
            if (was_safe[p])
                assert_true(after->restored_at[p] < after->generation);
        }
        tt_ps_view_free(after);
    }
}

// A generation that follows when all have settled; NULL: there is nothing to change.
static tt_ps_view *
next_view(world *w)
{
    uint8_t is_server[TT_PS_NODES_MAX];
    tt_ps_view *next = NULL;
    if (pick(w, 3) == 0) {
        assert_int_equal(tt_ps_view_protect(w->view, w->is_backed, &next), TT_OK);
        return next;
    }
    choose_servers(w, is_server);
    assert_int_equal(tt_ps_view_next(w->view, is_server, &next), TT_OK);
    return next;
}

static void
one_host_takes_nothing_with_it(void **state)
{
    TT_UNUSED(state);
    uint32_t looked_at = 0, on_two = 0, partitions = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        open_world(&w, seed);
        for (uint32_t step = 0; step < STEPS; step++) {
            uint8_t was_safe[PARTITIONS_MAX];
            for (uint32_t p = 0; p < w.table.partition_count; p++)
                was_safe[p] = (uint8_t)is_on_two_hosts(w.view, p);
            tt_ps_view *next = next_view(&w);
            if (next != NULL)
                put_in_force(&w, next);
            lose_each_host(&w, was_safe);
            for (uint32_t p = 0; p < w.table.partition_count; p++) {
                on_two += (uint32_t)is_on_two_hosts(w.view, p);
                partitions++;
            }
            // All of it arrives, and every backup has its copy.
            memset(w.moving, 0, sizeof w.moving);
            memset(w.is_backed, 1, sizeof w.is_backed);
            lose_each_host(&w, was_safe);
        }
        looked_at += w.looked_at;
        tt_ps_view_free(w.view);
    }
    assert_true(looked_at > 100000);
    assert_true(on_two > partitions * 9 / 10); // of those that can be, few are not for a while
}

static tt_ps_view *
view_of(const uint16_t *host, uint32_t nodes, uint32_t servers)
{
    static const tt_ps_table table = {
        .kind = TT_PS_DENSE, .rows = 10, .width = 1, .partition_count = 1, .replicas = 1};
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    tt_ps_view *view;
    memset(is_server, 1, servers);
    assert_int_equal(tt_ps_view_first(&table, nodes, is_server, &view), TT_OK);
    tt_ps_view_set_hosts(view, host);
    return view;
}

// The next generation, in which the only partition goes to node `to`.
static tt_ps_view *
given_to(tt_ps_view *view, uint16_t to)
{
    tt_ps_view *next;
    assert_int_equal(tt_ps_view_next(view, NULL, &next), TT_OK);
    tt_ps_view_give(next, 0, to);
    tt_ps_view_free(view);
    return next;
}

static void
expect(const tt_ps_view *view, uint16_t owner, uint16_t backup, uint16_t spare)
{
    assert_int_equal(view->owner[0], owner);
    assert_int_equal(view->backup[0], backup);
    assert_int_equal(view->spare[0], spare);
}

static void
the_old_owner_stays_where_no_copy_would_be_left(void **state)
{
    TT_UNUSED(state);
    static const uint16_t two[] = {0, 1, 1, 0}, three[] = {0, 1, 2, 0};
    tt_ps_view *view = view_of(two, 4, 4);
    expect(view, 0, 1, TT_PS_NOBODY);
    view = given_to(view, 2); // to the host of its backup
    expect(view, 2, 0, 1);
    tt_ps_view_free(view);
    view = given_to(view_of(two, 4, 4), 3); // on the host where it is
    expect(view, 3, 1, TT_PS_NOBODY);
    tt_ps_view_free(view);
    view = given_to(view_of(two, 4, 4), 1); // to its backup
    expect(view, 1, 0, 1);
    tt_ps_view_free(view);
    view = given_to(view_of(three, 4, 4), 2); // to a host that has nothing of it
    expect(view, 2, 1, TT_PS_NOBODY);
    tt_ps_view_free(view);
}

static void
a_backup_is_on_another_host_first_and_a_server_second(void **state)
{
    TT_UNUSED(state);
    static const uint16_t host[] = {0, 0, 0, 1, 1}, one[] = {0, 0, 0, 0, 0};
    tt_ps_view *view = view_of(host, 5, 2);
    expect(view, 0, 3, TT_PS_NOBODY); // a worker
    tt_ps_view_free(view);
    view = view_of(host, 5, 5);
    expect(view, 0, 3, TT_PS_NOBODY);
    tt_ps_view_free(view);
    view = view_of(one, 5, 2);
    expect(view, 0, 1, TT_PS_NOBODY);
    tt_ps_view_free(view);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host_takes_nothing_with_it),
        cmocka_unit_test(the_old_owner_stays_where_no_copy_would_be_left),
        cmocka_unit_test(a_backup_is_on_another_host_first_and_a_server_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
