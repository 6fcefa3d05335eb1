// Private to report: the world of a replay made from a run store.
#ifndef TTI_REPLAY_WORLD_H
#define TTI_REPLAY_WORLD_H

#include "report_model.h"
#include "tt/tuner_replay.h"

typedef struct tti_replay_world {
    const tti_report *report;
    tt_arena world_arena;
    tt_knob knobs[TT_KNOBS_MAX];
    tt_space space;
    tt_replay_world world;
    int64_t *ids;             // of the world's settings
    int servers, aggregation; // indices of these knobs, -1: not there
    uint32_t nodes;
    int bulk_synchronous;
    double start_s,
        best_s; // what the job takes under the start, and the fastest, setting throughout
    uint32_t best;
} tti_replay_world;

// errors TT_INVALID there is too little in the run for a replay, and why; TT_NOMEM
TT_NODISCARD tt_status tti_replay_world_open(const tti_report *report,
                                             tti_replay_world *out,
                                             tt_error *err);
void tti_replay_world_close(tti_replay_world *world);
// Fills in what of the options depends on the world.
void tti_replay_world_options(tti_replay_world *world, tt_tuner_options *options);

#endif
