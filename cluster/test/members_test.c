// Goal: who is silent for the time-out is declared dead, and nobody else; what a dead process says
// is refused; its successor begins under a new attempt, and only after the burial. Method: the two
// state machines against each other, step by step and over a network that loses, doubles and
// delays, with pauses and crashes drawn from a seed. A host knows by how much its clock is ahead,
// as well as the way there and back allows.
#include "tt/cluster_members.h"
#include "tt/core.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 5, MS = 1000000 };

static tt_frame answer;

static int
say(tt_members *m, uint32_t node, uint32_t attempt, uint64_t now_ns)
{
    tt_frame beat = {.kind = TT_FRAME_HEARTBEAT, .sender = (uint16_t)node, .attempt = attempt};
    answer = (tt_frame){0};
    return tt_members_receive(m, &beat, now_ns, &answer);
}

static tt_members
members_at(uint64_t now_ns)
{
    tt_members m;
    assert_int_equal(tt_members_open(NODES, 3000ull * MS, NULL, NULL, now_ns, &m), TT_OK);
    return m;
}

static void
silence_is_death(void **state)
{
    TT_UNUSED(state);
    tt_members m = members_at(0);
    for (uint32_t t = 250; t <= 3250; t += 250) {
        for (uint32_t n = 0; n < NODES; n++)
            if (n != 2)
                assert_true(say(&m, n, 1, t * (uint64_t)MS) && answer.flags == 0);
        assert_int_equal(tt_members_tick(&m, t * (uint64_t)MS), t > 3000);
    }
    assert_int_equal(m.member[2].state, TT_MEMBER_DEAD);
    assert_true(say(&m, 2, 1, 3300ull * MS) && answer.flags == TT_FRAME_REFUSED);
    assert_true(say(&m, 2, 0, 3400ull * MS) && answer.flags == 0); // not before the burial
    tt_members_buried(&m);
    assert_int_equal(m.member[2].state, TT_MEMBER_GONE);
    assert_true(say(&m, 2, 0, 3500ull * MS) && answer.flags == TT_FRAME_WELCOME);
    assert_int_equal(answer.detail, 2);
    assert_true(say(&m, 2, 0, 3600ull * MS) && answer.detail == 2); // the answer was lost
    assert_true(say(&m, 2, 1, 3600ull * MS) && answer.flags == TT_FRAME_REFUSED);
    assert_true(say(&m, 2, 2, 3700ull * MS) && answer.flags == 0);
    assert_int_equal(m.member[2].state, TT_MEMBER_BACK);
    tt_members_taken_up(&m);
    assert_int_equal(m.member[2].state, TT_MEMBER_HERE);
    assert_false(say(&m, NODES, 1, 0)); // no member
    tt_members_close(&m);
}

static void
who_is_excused_is_not_missed(void **state)
{
    TT_UNUSED(state);
    tt_members m = members_at(0);
    tt_members_excuse(&m, 1, 2500ull * MS);
    assert_int_equal(tt_members_tick(&m, 3001ull * MS), NODES - 1);
    assert_int_equal(m.member[1].state, TT_MEMBER_HERE);
    tt_members_excuse(&m, 2, 3001ull * MS); // too late
    assert_int_equal(m.member[2].state, TT_MEMBER_DEAD);
    assert_int_equal(tt_members_tick(&m, 5501ull * MS), NODES);
    tt_members_close(&m);
}

static void
another_process_in_its_place_is_death(void **state)
{
    TT_UNUSED(state);
    tt_members m = members_at(0);
    assert_true(say(&m, 1, 0, 100ull * MS) && answer.flags == 0);
    assert_int_equal(tt_members_tick(&m, 100ull * MS), 1);
    assert_true(m.member[1].replaced);
    tt_members_buried(&m);
    assert_true(say(&m, 1, 0, 200ull * MS) && answer.detail == 2);
    assert_true(say(&m, 1, 2, 300ull * MS));
    // It is gone again before it was given work: nothing to bury, yet its attempt is over.
    assert_true(say(&m, 1, 0, 400ull * MS) && answer.flags == TT_FRAME_WELCOME);
    assert_int_equal(answer.detail, 3);
    assert_int_equal(tt_members_tick(&m, 400ull * MS), 0);
    assert_true(say(&m, 1, 2, 500ull * MS) && answer.flags == TT_FRAME_REFUSED);
    tt_members_close(&m);
}

// A beat that is sent at `sent_ns` of the master's clock, by a host that is `ahead_ns` of it.
static void
exchange(
    tt_pulse *p, tt_members *m, uint64_t sent_ns, int64_t ahead_ns, uint64_t there, uint64_t back)
{
    tt_frame beat;
    p->next_ns = 0;
    assert_true(tt_pulse_due(p, sent_ns + (uint64_t)ahead_ns, &beat));
    assert_true(tt_members_receive(m, &beat, sent_ns + there, &answer));
    (void)tt_pulse_receive(p, &answer, sent_ns + there + back + (uint64_t)ahead_ns);
}

static void
clocks_are_compared(void **state)
{
    tt_members m;
    tt_rng rng;
    TT_UNUSED(state);
    tt_rng_init(&rng, 3, TT_RNG_SIMULATION, 1);
    m = members_at(0);
    for (int turn = 0; turn < 200; turn++) {
        tt_pulse p = tt_pulse_begin(1, 1, 250ull * MS, 0);
        int64_t ahead_ns = turn % 4 == 0 ? 0 : (int64_t)tt_rng_below(&rng, 10000) * MS;
        uint64_t least_trip = UINT64_MAX;
        assert_true(tt_pulse_ahead_ns(&p) == 0); // nothing known
        for (uint32_t i = 0; i < 20; i++) {
            if (i == 10 && turn % 4 != 0) {
                ahead_ns += 5000ll * MS;
                least_trip = UINT64_MAX;
            }
            uint64_t there = tt_rng_below(&rng, 2 * MS), back = tt_rng_below(&rng, 2 * MS);
            least_trip = TT_MIN(least_trip, there + back);
            exchange(&p, &m, (1 + i) * 250ull * MS, ahead_ns, there, back);
            // What is not of the last eight exchanges is forgotten.
            int64_t error = tt_pulse_ahead_ns(&p) - ahead_ns;
            assert_true(ahead_ns != 0 || error == 0);
            assert_true(llabs(error) <= (int64_t)(i < 8 ? least_trip + 1 : 4 * MS));
        }
    }
    tt_members_close(&m);
}

// Answers that belong to another heartbeat say nothing.
static void
late_answers_are_not_used(void **state)
{
    tt_pulse p = tt_pulse_begin(1, 1, 250ull * MS, 0);
    tt_frame beat, late = {.kind = TT_FRAME_HEARTBEAT_REPLY, .attempt = 1};
    TT_UNUSED(state);
    assert_true(tt_pulse_due(&p, 1000ull * MS, &beat));
    late.clock = beat.clock;
    p.next_ns = 0;
    assert_true(tt_pulse_due(&p, 2000ull * MS, &beat));
    late.sequence = 1;
    (void)tt_pulse_receive(&p, &late, 2001ull * MS);
    assert_true(tt_pulse_ahead_ns(&p) == 0);
    late.clock = beat.clock;
    (void)tt_pulse_receive(&p, &late, 2001ull * MS);
    assert_true(tt_pulse_ahead_ns(&p) > 1999ll * MS);
}

static void
a_pulse_keeps_its_period(void **state)
{
    TT_UNUSED(state);
    tt_frame beat;
    tt_pulse p = tt_pulse_begin(3, 7, 250ull * MS, 1000ull * MS);
    assert_true(tt_pulse_due(&p, 1000ull * MS, &beat));
    assert_true(beat.sender == 3 && beat.attempt == 7 && beat.kind == TT_FRAME_HEARTBEAT);
    assert_false(tt_pulse_due(&p, 1249ull * MS, &beat));
    assert_true(tt_pulse_due(&p, 1260ull * MS, &beat));
    assert_int_equal(p.next_ns, 1500ull * MS);
    assert_true(tt_pulse_due(&p, 9000ull * MS, &beat)); // it stood still
    assert_false(tt_pulse_due(&p, 8999ull * MS, &beat));
    tt_frame other = {.kind = TT_FRAME_HEARTBEAT_REPLY, .attempt = 6, .flags = TT_FRAME_REFUSED};
    assert_int_equal(tt_pulse_receive(&p, &other, 0), TT_PULSE_FINE); // of an earlier process
    other.attempt = 7;
    assert_int_equal(tt_pulse_receive(&p, &other, 0), TT_PULSE_REFUSED);
    assert_int_equal(p.attempt, 0);
    other = (tt_frame){.kind = TT_FRAME_HEARTBEAT_REPLY, .flags = TT_FRAME_WELCOME, .detail = 8};
    assert_int_equal(tt_pulse_receive(&p, &other, 0), TT_PULSE_WELCOME);
    assert_int_equal(p.attempt, 8);
    assert_int_equal(tt_pulse_receive(&p, &other, 0), TT_PULSE_FINE); // it came twice
}

// ---- a story from a seed -----------------------------------------------------------------------

typedef struct letter {
    uint64_t at_ns;
    tt_frame frame;
    int to_master;
} letter;

typedef struct host {
    tt_pulse pulse;
    uint64_t paused_until_ns, down_until_ns;
    uint32_t works_under; // attempt; 0: it does no work
} host;

typedef struct town {
    tt_rng rng;
    tt_members m;
    host hosts[NODES];
    letter post[512];
    uint32_t post_count, deaths;
    uint64_t now_ns;
} town;

static void
mail(town *t, uint32_t node, tt_frame frame, int to_master)
{
    frame.sender = (uint16_t)node;
    for (int copies = 1 + (tt_rng_below(&t->rng, 10) == 0); copies > 0; copies--) {
        if (tt_rng_below(&t->rng, 10) == 0)
            continue; // lost
        assert_true(t->post_count < TT_COUNT_OF(t->post));
        uint64_t late = tt_rng_below(&t->rng, 8) == 0 ? tt_rng_below(&t->rng, 500) : 1;
        t->post[t->post_count++] = (letter){t->now_ns + late * MS, frame, to_master};
    }
}

static void
deliver(town *t)
{
    for (uint32_t i = 0; i < t->post_count;) {
        letter item = t->post[i];
        uint32_t node = item.frame.sender;
        host *h = &t->hosts[node];
        if (item.at_ns > t->now_ns || (!item.to_master && h->paused_until_ns > t->now_ns)) {
            i++;
            continue;
        }
        t->post[i] = t->post[--t->post_count];
        tt_frame reply;
        if (item.to_master) {
            if (tt_members_receive(&t->m, &item.frame, t->now_ns, &reply))
                mail(t, node, reply, 0);
        } else if (h->down_until_ns <= t->now_ns) {
            tt_pulse_verdict verdict = tt_pulse_receive(&h->pulse, &item.frame, t->now_ns);
            if (verdict != TT_PULSE_FINE)
                h->works_under = verdict == TT_PULSE_WELCOME ? h->pulse.attempt : 0;
        }
    }
}

static void
live(town *t, uint32_t n)
{
    host *h = &t->hosts[n];
    uint64_t now = t->now_ns;
    tt_frame beat;
    if (h->down_until_ns > now)
        return;
    if (h->down_until_ns != 0) { // a new process
        h->down_until_ns = 0;
        h->pulse = tt_pulse_begin(n, 0, 250ull * MS, now);
    }
    if (h->paused_until_ns > now)
        return;
    if (tt_rng_below(&t->rng, 20000) == 0) {
        h->paused_until_ns = now + tt_rng_below(&t->rng, 6000) * MS;
        return;
    }
    if (tt_rng_below(&t->rng, 40000) == 0) {
        h->down_until_ns = now + (1 + tt_rng_below(&t->rng, 6000)) * MS;
        h->works_under = 0;
        return;
    }
    if (tt_pulse_due(&h->pulse, now, &beat))
        mail(t, n, beat, 1);
}

// Nobody works under an attempt that the master has not given out.
static void
check(const town *t)
{
    for (uint32_t n = 0; n < NODES; n++)
        if (t->hosts[n].works_under > t->m.member[n].attempt)
            fail_msg("node %u works under attempt %u, the master knows of %u", n,
                     t->hosts[n].works_under, t->m.member[n].attempt);
}

static void
run_town(uint64_t seed)
{
    town t = {0};
    tt_rng_init(&t.rng, seed, TT_RNG_SCHEDULE, 7);
    t.m = members_at(0);
    for (uint32_t n = 0; n < NODES; n++) {
        t.hosts[n].pulse = tt_pulse_begin(n, 1, 250ull * MS, 0);
        t.hosts[n].works_under = 1;
    }
    for (uint32_t ms = 0; ms < 60000; ms++) {
        t.now_ns = (uint64_t)ms * MS;
        for (uint32_t n = 0; n < NODES; n++)
            live(&t, n);
        deliver(&t);
        uint32_t dead = tt_members_tick(&t.m, t.now_ns);
        t.deaths += dead;
        if (dead > 0)
            tt_members_buried(&t.m);
        tt_members_taken_up(&t.m);
        check(&t);
    }
    // From here on nothing happens but heartbeats: everybody is back within seconds.
    for (uint32_t ms = 60000; ms < 80000; ms++) {
        t.now_ns = (uint64_t)ms * MS;
        for (uint32_t n = 0; n < NODES; n++) {
            tt_frame beat;
            host *h = &t.hosts[n];
            if (h->down_until_ns > t.now_ns || h->paused_until_ns > t.now_ns)
                continue;
            if (h->down_until_ns != 0) {
                h->down_until_ns = 0;
                h->pulse = tt_pulse_begin(n, 0, 250ull * MS, t.now_ns);
            }
            if (tt_pulse_due(&h->pulse, t.now_ns, &beat))
                mail(&t, n, beat, 1);
        }
        deliver(&t);
        if (tt_members_tick(&t.m, t.now_ns) > 0)
            tt_members_buried(&t.m);
        tt_members_taken_up(&t.m);
    }
    for (uint32_t n = 0; n < NODES; n++)
        if (t.m.member[n].state != TT_MEMBER_HERE ||
            t.hosts[n].works_under != t.m.member[n].attempt)
            fail_msg("seed %llu: node %u is not back", (unsigned long long)seed, n);
    assert_true(t.deaths > 0);
    tt_members_close(&t.m);
}

static void
everybody_comes_back_under_a_new_attempt(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_town(seed);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_death),
        cmocka_unit_test(who_is_excused_is_not_missed),
        cmocka_unit_test(another_process_in_its_place_is_death),
        cmocka_unit_test(a_pulse_keeps_its_period),
        cmocka_unit_test(clocks_are_compared),
        cmocka_unit_test(late_answers_are_not_used),
        cmocka_unit_test(everybody_comes_back_under_a_new_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
