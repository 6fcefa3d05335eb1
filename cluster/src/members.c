// Heartbeats and the rules of death: what the master holds of its nodes, and what a node's process
// holds of itself.
#include "tt/cluster_members.h"
#include <stdlib.h>

// ---- the master's side -------------------------------------------------------------------------

tt_status
tt_members_open(uint32_t count,
                uint64_t timeout_ns,
                const uint32_t *attempts,
                const uint8_t *is_gone,
                uint64_t now_ns,
                tt_members *out)
{
    *out = (tt_members){.count = count, .timeout_ns = timeout_ns};
    out->member = tt_mem_zalloc(count, sizeof *out->member);
    if (out->member == NULL)
        return TT_NOMEM;
    for (uint32_t n = 0; n < count; n++) {
        int gone = is_gone != NULL && is_gone[n];
        out->member[n] = (tt_member){.state = gone ? TT_MEMBER_GONE : TT_MEMBER_HERE,
                                     .attempt = attempts != NULL ? attempts[n] : 1,
                                     .heard_at_ns = now_ns};
    }
    return TT_OK;
}

void
tt_members_close(tt_members *members)
{
    tt_mem_free(members->member);
    *members = (tt_members){0};
}

static int
lives(const tt_member *member)
{
    return member->state == TT_MEMBER_HERE || member->state == TT_MEMBER_BACK ||
           member->state == TT_MEMBER_INVITED;
}

// One that was invited and has not come has nothing that could be lost: it is gone again.
static void
declare_dead(tt_member *member, int replaced)
{
    int had_work = member->state == TT_MEMBER_HERE;
    member->state = had_work ? TT_MEMBER_DEAD : TT_MEMBER_GONE;
    member->replaced = replaced;
    if (!had_work)
        member->attempt++; // what it may have sent is refused
}

// A process without an attempt. Its predecessor, if it was thought alive, is dead.
static void
greet(tt_member *member, uint64_t now_ns, tt_frame *answer)
{
    if (lives(member) && member->state != TT_MEMBER_INVITED)
        declare_dead(member, 1);
    if (member->state != TT_MEMBER_GONE && member->state != TT_MEMBER_INVITED)
        return; // answered with nothing: it asks again, after the burial
    member->state = TT_MEMBER_INVITED;
    member->heard_at_ns = now_ns;
    answer->flags = TT_FRAME_WELCOME;
    answer->detail = member->attempt;
}

int
tt_members_receive(tt_members *members, const tt_frame *frame, uint64_t now_ns, tt_frame *answer)
{
    if (frame->kind != TT_FRAME_HEARTBEAT || frame->sender >= members->count)
        return 0;
    tt_member *member = &members->member[frame->sender];
    *answer = (tt_frame){.kind = TT_FRAME_HEARTBEAT_REPLY,
                         .attempt = frame->attempt,
                         .clock = frame->clock,
                         .sequence = now_ns};
    if (frame->attempt == 0) {
        greet(member, now_ns, answer);
        return 1;
    }
    if (frame->attempt != member->attempt || !lives(member)) {
        answer->flags = TT_FRAME_REFUSED;
        return 1;
    }
    member->heard_at_ns = now_ns;
    if (member->state == TT_MEMBER_INVITED)
        member->state = TT_MEMBER_BACK;
    return 1;
}

uint32_t
tt_members_tick(tt_members *members, uint64_t now_ns)
{
    uint32_t dead = 0;
    for (uint32_t n = 0; n < members->count; n++) {
        tt_member *member = &members->member[n];
        if (lives(member) && now_ns - member->heard_at_ns > members->timeout_ns)
            declare_dead(member, 0);
        dead += member->state == TT_MEMBER_DEAD;
    }
    return dead;
}

void
tt_members_lost(tt_members *members, uint32_t n)
{
    if (lives(&members->member[n]))
        declare_dead(&members->member[n], 0);
}

void
tt_members_excuse(tt_members *members, uint32_t n, uint64_t now_ns)
{
    if (lives(&members->member[n]))
        members->member[n].heard_at_ns = now_ns;
}

uint64_t
tt_members_next_ns(const tt_members *members)
{
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t n = 0; n < members->count; n++)
        if (lives(&members->member[n]))
            next_ns = TT_MIN(next_ns, members->member[n].heard_at_ns + members->timeout_ns + 1);
    return next_ns;
}

void
tt_members_buried(tt_members *members)
{
    for (uint32_t n = 0; n < members->count; n++)
        if (members->member[n].state == TT_MEMBER_DEAD) {
            members->member[n].state = TT_MEMBER_GONE;
            members->member[n].attempt++;
        }
}

void
tt_members_taken_up(tt_members *members)
{
    for (uint32_t n = 0; n < members->count; n++)
        if (members->member[n].state == TT_MEMBER_BACK)
            members->member[n].state = TT_MEMBER_HERE;
}

// ---- the node's side ---------------------------------------------------------------------------

tt_pulse
tt_pulse_begin(uint32_t node, uint32_t attempt, uint64_t period_ns, uint64_t now_ns)
{
    return (tt_pulse){.node = node, .attempt = attempt, .period_ns = period_ns, .next_ns = now_ns};
}

int
tt_pulse_due(tt_pulse *pulse, uint64_t now_ns, tt_frame *out)
{
    if (now_ns < pulse->next_ns)
        return 0;
    // One that stood still does not make up for what it has missed.
    pulse->next_ns = TT_MAX(pulse->next_ns + pulse->period_ns, now_ns);
    pulse->sent_ns = now_ns;
    *out = (tt_frame){.kind = TT_FRAME_HEARTBEAT,
                      .sender = (uint16_t)pulse->node,
                      .attempt = pulse->attempt,
                      .clock = ++pulse->beats};
    return 1;
}

// The exchange of the shortest round trip, or NULL.
static const tt_pulse_exchange *
best_exchange(const tt_pulse *pulse)
{
    uint32_t count = TT_MIN(pulse->exchange_count, (uint32_t)TT_PULSE_EXCHANGES);
    const tt_pulse_exchange *best = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (best == NULL || pulse->exchange[i].trip_ns < best->trip_ns)
            best = &pulse->exchange[i];
    return best;
}

static void
compare_clocks(tt_pulse *pulse, const tt_frame *frame, uint64_t now_ns)
{
    if (frame->clock != pulse->beats || pulse->beats == 0 || now_ns < pulse->sent_ns)
        return; // the answer to an earlier one: when that was sent is forgotten
    tt_pulse_exchange one = {.trip_ns = now_ns - pulse->sent_ns};
    one.ahead_ns = (int64_t)(pulse->sent_ns + one.trip_ns / 2 - frame->sequence);
    const tt_pulse_exchange *best = best_exchange(pulse);
    // Both cannot be true of one clock: it has jumped, or gains, and what was known is of no use.
    if (best != NULL &&
        llabs(one.ahead_ns - best->ahead_ns) > (int64_t)(one.trip_ns / 2 + best->trip_ns / 2))
        pulse->exchange_count = 0;
    pulse->exchange[pulse->exchange_count++ % TT_PULSE_EXCHANGES] = one;
}

int64_t
tt_pulse_ahead_ns(const tt_pulse *pulse)
{
    const tt_pulse_exchange *best = best_exchange(pulse);
    if (best == NULL || llabs(best->ahead_ns) <= (int64_t)(best->trip_ns / 2 + 1))
        return 0;
    return best->ahead_ns;
}

tt_pulse_verdict
tt_pulse_receive(tt_pulse *pulse, const tt_frame *frame, uint64_t now_ns)
{
    if (frame->kind != TT_FRAME_HEARTBEAT_REPLY || frame->attempt != pulse->attempt)
        return TT_PULSE_FINE; // of an earlier one
    compare_clocks(pulse, frame, now_ns);
    if ((frame->flags & TT_FRAME_WELCOME) != 0 && pulse->attempt == 0) {
        pulse->attempt = frame->detail;
        pulse->next_ns = now_ns;
        return TT_PULSE_WELCOME;
    }
    if ((frame->flags & TT_FRAME_REFUSED) == 0 || pulse->attempt == 0)
        return TT_PULSE_FINE;
    pulse->attempt = 0;
    pulse->next_ns = now_ns;
    return TT_PULSE_REFUSED;
}
