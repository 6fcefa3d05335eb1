// reconfig: from one setting to another while training goes on. A plan is the difference of two
// settings: which knobs change, what that sets in motion, and the placement that follows. A
// transition watches a published plan until every node has adopted it and every partition has left
// its old server, and says what it cost; a cost table remembers that by method and kind.
//
// Both are state machines: no thread, no clock, no message. The job publishes the plan's view, the
// servers move the partitions (ps), the ledger hands over data shards.
//
// Caveats: one transition at a time. A plan may be refused (a knob's prepare, too few nodes) and
// then nothing has changed.
#ifndef TT_RECONFIG_H
#define TT_RECONFIG_H

#include "tt/core.h"
#include "tt/knobs.h"
#include "tt/ps.h"

// How a plan is carried out.
typedef enum tt_reconfig_method {
    TT_RECONFIG_ON_DEMAND, // parameters travel with the workers that touch them, the rest behind
    TT_RECONFIG_DRAIN,     // servers copy them to one another, workers carry nothing
    // Everything stops: a checkpoint is written, all nodes are started anew and load it. What
    // systems without relocation do: the baseline of Section VI.
    TT_RECONFIG_CHECKPOINT,
    TT_RECONFIG_METHODS
} tt_reconfig_method;

enum { TT_RECONFIG_KINDS = 4 }; // combinations of TT_KNOB_MOVES_DATA and TT_KNOB_MOVES_MODEL

// The difference of two settings.
typedef struct tt_reconfig_plan {
    tt_setting from, to;
    unsigned effect; // flags of tt_knob_effect of the knobs that change
    uint32_t knobs_changed;
    uint32_t servers_from, servers_to;
    uint32_t partitions_moved;
    tt_reconfig_method method; // on demand unless tt_reconfig_plan_by says otherwise
    tt_ps_view
        *view; // the generation to publish; owned by the plan until tt_reconfig_plan_take_view
} tt_reconfig_plan;

// The first `servers` nodes serve that are there (is_gone[node_count]; NULL: all are), but one
// works: a change of the split flips |difference| nodes.
void tt_reconfig_roles(uint32_t servers,
                       uint32_t node_count,
                       const uint8_t *is_gone,
                       uint8_t *is_server);
// Value of knob "servers" in a setting of this space, 0 when the space has none.
uint32_t tt_reconfig_servers(const tt_space *space, const tt_setting *setting);
// Plans the way from the setting and view in force to `to`. checker: knob instances of the master,
// which may refuse. join_clock: the SSP clock with which joining workers begin; effective_round:
// BSP, the round from which it holds. errors TT_INVALID a knob refuses or the setting is not in the
// space; nothing is published and nothing has changed.
TT_NODISCARD tt_status tt_reconfig_plan_make(const tt_space *space,
                                             tt_knob_set *checker,
                                             const tt_setting *from,
                                             const tt_setting *to,
                                             const tt_ps_view *view,
                                             uint32_t join_clock,
                                             uint32_t effective_round,
                                             tt_reconfig_plan *out,
                                             tt_error *err);
// Moves `count` further partitions (those after the last moved, going round) to the next server in
// turn: a scripted change of placement alone. Only in a plan that keeps the roles.
void tt_reconfig_plan_rotate(tt_reconfig_plan *plan, const tt_ps_view *view, uint32_t count);
// How the plan is to be carried out; after the last change of its placement.
void tt_reconfig_plan_by(tt_reconfig_plan *plan, tt_reconfig_method method);
// "setting", "data", "model", "data and model".
const char *tt_reconfig_kind(unsigned effect);
// "on demand", "drain", "checkpoint".
const char *tt_reconfig_method_name(tt_reconfig_method method);
tt_ps_view *tt_reconfig_plan_take_view(tt_reconfig_plan *plan);
void tt_reconfig_plan_fini(tt_reconfig_plan *plan);

// What one reconfiguration cost.
typedef struct tt_reconfig_cost {
    unsigned effect;
    tt_reconfig_method method;
    uint32_t generation, partitions_moved, shards_moved;
    double start_s, duration_s; // published .. all adopted and retired
    double last_key_live_s;     // published .. last partition complete at its new server
    uint64_t iterations_during;
    uint64_t bytes_carried, bytes_drained; // fetched bytes count as drained
    double longest_wait_s;                 // of a worker on a moving partition
    // Parts of the duration of a restart, else NAN: checkpoint (CKP), nodes and their setting
    // (SSR), parameters (MDR), position in the data (TDR).
    double checkpoint_s, restart_s, model_s, data_s;
} tt_reconfig_cost;

typedef struct tt_reconfig_transition {
    int active;
    uint32_t node_count, adopted, retired;
    uint64_t iterations_start;
    uint64_t carried_start, drained_start;
    tt_reconfig_cost cost;
} tt_reconfig_transition;

void tt_reconfig_begin(tt_reconfig_transition *transition,
                       const tt_reconfig_plan *plan,
                       uint32_t generation,
                       uint32_t node_count,
                       uint32_t shards_moved,
                       double now_s,
                       uint64_t iterations,
                       uint64_t bytes_carried,
                       uint64_t bytes_drained);
// The transition began with a restart, of which these parts are known; what remains of it when it
// ends is the nodes'.
void tt_reconfig_restarted(tt_reconfig_transition *transition,
                           double checkpoint_s,
                           double model_s,
                           double data_s);
// So many nodes have adopted the generation by now; a partition has left its old server.
void tt_reconfig_adopted(tt_reconfig_transition *transition, uint32_t nodes);
void tt_reconfig_retired(tt_reconfig_transition *transition, double now_s);
// True once, when the transition has ended; then cost is complete.
int tt_reconfig_finished(tt_reconfig_transition *transition,
                         double now_s,
                         uint64_t iterations,
                         uint64_t bytes_carried,
                         uint64_t bytes_drained,
                         double longest_wait_s);
// Training seconds lost: duration - iterations done in it x seconds per iteration after it. Not
// floored.
double tt_reconfig_lost_s(const tt_reconfig_cost *cost, double seconds_per_iteration_after);
// What was done in the end: the method's name, or "publish" when nothing had to move or restart.
const char *tt_reconfig_done_by(const tt_reconfig_cost *cost);

// What reconfigurations have cost so far, by the method in force and by what moved.
typedef struct tt_reconfig_sum {
    uint32_t count;
    double lost_s, duration_s; // sums; lost_s is not floored
} tt_reconfig_sum;

typedef struct tt_reconfig_costs {
    tt_reconfig_sum of[TT_RECONFIG_METHODS][TT_RECONFIG_KINDS]; // kind: flags of tt_knob_effect
} tt_reconfig_costs;

void tt_reconfig_costs_add(tt_reconfig_costs *costs, const tt_reconfig_cost *cost, double lost_s);

#endif
