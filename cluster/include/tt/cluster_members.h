// Who is there: heartbeats and the rules of death, as two state machines. Nodes say every period
// that they live (the pulse); the master declares dead who has not been heard from for a time-out
// (members), refuses what such a process says later, and takes a new one in its place under the
// next attempt.
//
// Neither has a thread, a socket or a clock: frames and times come in, frames go out. Source: the
// lease rule of distributed systems (Gray, Cheriton 1989), with attempts as in SALMON and TonY.
//
// A node's process, seen by the master:
//
//     HERE --silent for the time-out, or another process says hello--> DEAD --hello--> INVITED
//     INVITED --first heartbeat under the new attempt--> BACK --taken up by the caller--> HERE
//
// The caller publishes a death before it calls tt_members_buried: only then is a successor let in,
// so that whoever hands out its work has already refused the dead one (ps: rule 8).
#ifndef TT_CLUSTER_MEMBERS_H
#define TT_CLUSTER_MEMBERS_H

#include "tt/comm.h"

typedef enum tt_member_state {
    TT_MEMBER_HERE,
    TT_MEMBER_DEAD,    // declared, and not yet buried
    TT_MEMBER_GONE,    // buried
    TT_MEMBER_INVITED, // a successor was given the next attempt
    TT_MEMBER_BACK,    // it lives, and has no work yet
} tt_member_state;

typedef struct tt_member {
    tt_member_state state;
    uint32_t attempt;
    int replaced;         // died because another process says that it is this node
    uint64_t heard_at_ns; // last heartbeat
} tt_member;

typedef struct tt_members {
    uint32_t count;
    uint64_t timeout_ns;
    tt_member *member; // [count]
} tt_members;

// All are here, under attempts[count] (NULL: 1), unless is_gone[count] says that they are not
// (NULL: all are). errors TT_NOMEM
TT_NODISCARD tt_status tt_members_open(uint32_t count,
                                       uint64_t timeout_ns,
                                       const uint32_t *attempts,
                                       const uint8_t *is_gone,
                                       uint64_t now_ns,
                                       tt_members *out);
void tt_members_close(tt_members *members);
// A heartbeat, and the answer to it. False when there is none to send: not of a member.
int
tt_members_receive(tt_members *members, const tt_frame *frame, uint64_t now_ns, tt_frame *answer);
// Declares dead who was silent for too long; returns how many are dead and not buried.
uint32_t tt_members_tick(tt_members *members, uint64_t now_ns);
// Its process is known to have ended: dead without waiting.
void tt_members_lost(tt_members *members, uint32_t n);
// It is not missed: as if something had just been heard from it.
void tt_members_excuse(tt_members *members, uint32_t n, uint64_t now_ns);
// When the next one would be dead that is not heard from until then; UINT64_MAX: nobody.
uint64_t tt_members_next_ns(const tt_members *members);
// The death of all that are dead was published; their next attempt is attempt + 1.
void tt_members_buried(tt_members *members);
// Those that are back have been given work.
void tt_members_taken_up(tt_members *members);

// ---- the pulse of a node's process ------------------------------------------------------------

// What a heartbeat and its answer say of this host's clock: by how much it is ahead of the
// master's, give or take half the round trip.
typedef struct tt_pulse_exchange {
    int64_t ahead_ns;
    uint64_t trip_ns;
} tt_pulse_exchange;

enum { TT_PULSE_EXCHANGES = 8 };

typedef struct tt_pulse {
    uint32_t node;
    uint32_t attempt; // 0: a new process that has not been told its own
    uint64_t period_ns, next_ns;
    uint32_t beats;   // heartbeats sent
    uint64_t sent_ns; // the last of them
    uint32_t exchange_count;
    tt_pulse_exchange exchange[TT_PULSE_EXCHANGES]; // the last ones, in a ring
} tt_pulse;

typedef enum tt_pulse_verdict {
    TT_PULSE_FINE,
    TT_PULSE_WELCOME, // begin to work, under pulse->attempt
    TT_PULSE_REFUSED, // this process was declared dead: end all work; it is a new one from now on
} tt_pulse_verdict;

tt_pulse tt_pulse_begin(uint32_t node, uint32_t attempt, uint64_t period_ns, uint64_t now_ns);
// True when a heartbeat is due: *out is to be sent.
int tt_pulse_due(tt_pulse *pulse, uint64_t now_ns, tt_frame *out);
tt_pulse_verdict tt_pulse_receive(tt_pulse *pulse, const tt_frame *frame, uint64_t now_ns);
// By how much this host's clock is ahead of the master's: of the last exchanges, what the one of
// the shortest round trip says (Cristian 1989; the clock filter of NTP, RFC 5905). 0 when the
// clocks may be equal for all that is known. The error is at most that round trip. A clock that has
// jumped is known from the next heartbeat on.
int64_t tt_pulse_ahead_ns(const tt_pulse *pulse);

#endif
