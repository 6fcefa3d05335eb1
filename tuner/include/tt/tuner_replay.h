// A tuner at work on what an earlier run measured, in virtual time: to compare versions and options
// of the tuner without training anything.
//
// The job of the replay has the settings that were measured and no others; each takes the time an
// iteration that its windows took, at the same stage of the job; the loss falls as it fell, by
// iterations. Workers have noisy cycles as measured, switches cost what they cost. So it tells how
// a tuner finds its way among known settings. It cannot tell what an untried one would have been,
// and supposes that an iteration is worth the same under all settings.
//
// The same world, options and seed give the same replay, bit by bit, on one machine. No clock, no
// thread, no file.
#ifndef TT_TUNER_REPLAY_H
#define TT_TUNER_REPLAY_H

#include "tt/tuner.h"

// One point of a recorded curve.
typedef struct tt_replay_point {
    double iteration, value;
} tt_replay_point;

typedef struct tt_replay_setting {
    tt_setting setting;
    const tt_replay_point *log_t; // log of seconds per iteration, by iteration, ascending
    uint32_t log_t_count;         // at least 1
    double cv;                    // coefficient of variation of a worker's cycle
} tt_replay_setting;

// All borrowed.
typedef struct tt_replay_world {
    const tt_space *space;
    const tt_replay_setting *settings;
    uint32_t setting_count;            // at least 1
    uint32_t start;                    // index of the one training starts under
    const tt_replay_point *loss;       // mean minibatch loss, by iteration, ascending
    uint32_t loss_count;               // at least 1
    double loss_noise;                 // s.d. of a minibatch's loss, relative
    double target_loss;                // NAN: none, then the iterations are the budget
    double iterations;                 // that the job takes
    double switch_s[TT_TUNER_CLASSES]; // seconds a switch loses, by class
} tt_replay_world;

typedef struct tt_replay_result {
    double seconds; // of the job
    tt_tuner_summary summary;
    tt_setting best;
    uint32_t final; // index of the setting in force at the end
} tt_replay_result;

// Runs the job. options: as for tt_tuner_open; its space is the world's, its start setting the
// world's. callbacks may be NULL. enabled 0: the start setting throughout.
//
// errors   TT_INVALID as tt_tuner_open; a setting is not of the space; TT_NOMEM
TT_NODISCARD tt_status tt_replay_run(const tt_replay_world *world,
                                     const tt_tuner_options *options,
                                     const tt_tuner_callbacks *callbacks,
                                     tt_replay_result *out,
                                     tt_error *err);

#endif
