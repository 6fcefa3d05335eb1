// The simulation's insides: the agenda, fibers, the processors of a host. One thread uses all of
// it.
#ifndef TTI_SIM_H
#define TTI_SIM_H

#include "fiber.h"
#include "heap.h"
#include "tt/cluster.h"

// ---- the agenda: what happens next -------------------------------------------------------------

typedef struct tti_agenda {
    tti_heap heap; // by time in nanoseconds; equal times: first come, first served
    uint64_t order;
} tti_agenda;

// Without memory for it the simulation cannot go on.
void tti_agenda_put(tti_agenda *agenda,
                    uint64_t at_ns,
                    void (*act)(void *self, uint64_t tag),
                    void *self,
                    uint64_t tag);
// The same in two steps: a place in the order now, the entry itself some time before at_ns.
uint64_t tti_agenda_order(tti_agenda *agenda);
void tti_agenda_put_as(tti_agenda *agenda, const tti_item *item);
// For an entry that is no longer wanted.
void tti_agenda_nothing(void *self, uint64_t tag);
int tti_agenda_take(tti_agenda *agenda, tti_item *out);

// ---- processors --------------------------------------------------------------------------------

typedef struct tti_fiber tti_fiber;

typedef enum tti_task_kind { TTI_TASK_WORK, TTI_TASK_SPIN, TTI_TASK_WAKE } tti_task_kind;

typedef struct tti_task {
    double left_s; // of work, of spinning, or until it is awake
    tti_fiber *fiber;
    tti_task_kind kind;
    uint64_t queued_ns; // since when it waits for a core
} tti_task;

typedef struct tti_core {
    struct tti_processors *host;
    int busy;
    tti_task task;
    double slice_s; // left of the turn
    uint64_t updated_ns;
    uint64_t version;          // of its entry in the agenda
    const tti_fiber *kept_for; // who has just finished here, while it goes on
    tti_task *queue;           // a ring of those that wait for it
    uint32_t first, count, capacity;
} tti_core;

typedef struct tti_processors {
    struct tt_sim *sim;
    int is_down; // it has crashed
    double cores, speed;
    tti_core *core; // [core_count]; a fraction of a core makes all of them slower
    uint32_t core_count, queued;
    double busy_s;              // of all cores so far
    double load, window_busy_s; // busy share in the last window; busy_s when this one began
    uint64_t window_ns;
    double sent_s, received_s; // of its network card
    double slowness;           // of faults; 1
    uint64_t paused_until_ns;  // 0: it goes on
} tti_processors;

TT_NODISCARD tt_status tti_processors_open(tti_processors *p,
                                           struct tt_sim *sim,
                                           const tt_sim_host *host);
void tti_processors_close(tti_processors *p);
// The fiber works, spins or wakes on so many cores at once, so long on each.
void tti_processors_begin(
    tti_processors *p, tti_fiber *fiber, double seconds, uint32_t threads, tti_task_kind kind);
// What it spins for is there: it goes on as soon as it has a core.
void tti_processors_spin_over(tti_processors *p, tti_fiber *fiber);
// Whether a fiber that sleeps would find the core idle on which it goes on.
int tti_processors_would_be_idle(tti_processors *p, const tti_fiber *fiber);
double tti_processors_busy_s(const tti_processors *p);
// A fault begins or ends.
void tti_processors_slow(tti_processors *p, double slowness);
void tti_processors_pause(tti_processors *p, uint64_t until_ns);
// What this fiber works is left undone. Of all fibers of a host that crashed: everything.
void tti_processors_drop(tti_processors *p, const tti_fiber *fiber);
void tti_processors_clear(tti_processors *p);

// ---- faults ------------------------------------------------------------------------------------

// Enters those of hosts into the agenda.
void tti_faults_begin(struct tt_sim *sim);
// By how much the host's clock is ahead now.
uint64_t tti_faults_skew_ns(const struct tt_sim *sim, uint32_t host);
// Seconds that a byte takes through the host's network card, over those without faults.
double tti_faults_narrowness(const struct tt_sim *sim, uint32_t host);
// What happens to a message from one host to another now.
typedef struct tti_fate {
    int dropped, duplicated, overtaken;
    double delay_s, duplicate_s; // the second copy's
} tti_fate;
tti_fate tti_faults_draw(struct tt_sim *sim, tt_rng *rng, uint32_t from, uint32_t to);
// A host has sent or handled one more message; the running fiber does not come back from this if
// that was the last one.
void tti_faults_count(struct tt_sim *sim, uint32_t host);

// ---- fibers ------------------------------------------------------------------------------------

// Ends a fiber's waits when their time has come. Most end long before: an entry that is there for
// an earlier wait is left there until its time, and only then another is made for the wait that is
// found. Otherwise the agenda of 1,000 nodes would be full of what nobody heeds.
typedef struct tti_alarm {
    tti_fiber *fiber;
    uint64_t until_ns, until_order;
    uint64_t entered_ns, entered_order; // not later than `until`
    int entered;
} tti_alarm;

struct tti_fiber {
    tti_fiber_stack stack;
    struct tt_sim *sim;
    void *(*body)(void *argument);
    void *argument;
    uint32_t host;
    double owed_s;
    uint64_t waits;             // begun; an entry of the agenda is for one of them
    const tt_event *waiting_on; // NULL: for time or work alone
    tt_event *sleeps_on;        // that counts it among its waiters
    tti_core *core;             // of its host, where it was last; NULL: nowhere yet
    uint32_t works;             // tasks on its host's processors that it waits for
    int spins, spin_over;       // one of them is a spinning wait; it need not go on
    tti_fiber *next_waiting;    // in its bucket
    tti_alarm spinning, sleeping;
    const tti_alarm *timed; // of these, the one of the wait it is in; NULL: that has no end
    tt_event ended;
    int done;
    tti_fiber *previous, *next; // of all fibers
};

enum { TTI_BUCKET_BITS = 13, TTI_BUCKETS = 1 << TTI_BUCKET_BITS };

struct tt_sim {
    tti_agenda agenda;
    uint64_t now_ns;
    tti_fiber_stack loop;
    tti_fiber *running;              // NULL: the loop
    tti_fiber *first;                // of all that are not yet joined
    tti_fiber *buried;               // joined ones
    tti_fiber *buckets[TTI_BUCKETS]; // those that wait for an event, by its address
    tti_processors *hosts;
    tt_sim_options options;
    tt_sim_fault *faults;  // [options.fault_count]
    uint64_t *fault_count; // [options.fault_count] messages counted
    int counts_messages;   // some fault does
    int skews_clocks;      // some fault does
    int narrows;           // some fault slows network cards down
    void (*on_host)(void *self, uint32_t host, int up);
    void *on_host_self;
    struct sim_mesh *meshes; // open ones
    uint64_t meshes_opened;
    tt_thread_turns turns;
    tt_sim_counters counters;
};

// The running fiber rests until tti_fiber_wake.
void tti_fiber_rest(tti_fiber *fiber);
// For the wait it is in; `act` of an agenda's entry, too (tag: fiber->waits).
void tti_fiber_wake(void *fiber, uint64_t wait);
void tti_event_raise(struct tt_sim *sim, tt_event *event);
// Not the running one.
void tti_fiber_kill(tti_fiber *fiber);
void tti_sim_crash(struct tt_sim *sim, uint32_t host);
// What lies at the ends of a host that has crashed is lost.
void tti_mesh_crash(struct sim_mesh *meshes, uint32_t host);
// Works off what the running fiber owes.
void tti_fiber_settle(tti_fiber *fiber);
uint64_t tti_sim_after(const struct tt_sim *sim, double seconds);

#endif
