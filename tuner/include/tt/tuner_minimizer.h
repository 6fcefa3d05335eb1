// Ask and tell: minimises a function that is expensive to evaluate over a search space, noisy or
// not, by a Gaussian process and expected improvement; the same process (tt/tuner_gp.h) and search
// (tt/tuner_search.h) that find settings for running jobs, without a job.
//
//     tt_minimizer_open(space, options, &minimizer, err)
//     for (;;) {
//         tt_minimizer_ask(minimizer, &proposal, err);
//         ... evaluate proposal.setting, which may take days ...
//         tt_minimizer_tell(minimizer, proposal.id, NULL, &result, err);
//     }
//     tt_minimizer_best(minimizer, &best);
//
// Several proposals may be out at once: the model expects of them what it predicted. What was told
// need not have been asked for.
//
// The same seed, space and sequence of calls give equal proposals, bit by bit, on one machine.
// A proposal holds all that its making changed: handed to tt_minimizer_restore in place of asking,
// it brings a minimizer to the state of then without computing anything.
//
// Caveats: an ask fits the model and takes about 10 ms at 50 results, 0.1 s at 500. Not thread
// safe: one owner. Nothing here blocks or touches a file.
#ifndef TT_TUNER_MINIMIZER_H
#define TT_TUNER_MINIMIZER_H

#include "tt/core.h"
#include "tt/knobs.h"
#include "tt/tuner_gp.h"

enum { TT_MINIMIZER_REASON_MAX = 256 };

typedef enum tt_minimizer_phase {
    TT_MINIMIZER_START = 0, // the setting the caller starts from
    TT_MINIMIZER_SPREAD,    // spread-out points, before the model
    TT_MINIMIZER_MODEL,     // the highest expected improvement
    TT_MINIMIZER_REPEAT,    // hardly anything new is hoped of: the most promising once more
} tt_minimizer_phase;

typedef struct tt_minimizer_options {
    uint64_t seed;
    int use_start;    // ask for the space's start setting first
    uint32_t initial; // settings tried before the model proposes; 0 = by the number of knobs
} tt_minimizer_options;

// What the model keeps from one proposal to the next.
typedef struct tt_minimizer_memory {
    int fitted;
    tt_gp_params params;
    double lambda, share; // of the output warping
} tt_minimizer_memory;

typedef struct tt_minimizer_proposal {
    uint64_t id; // 1, 2, ...
    tt_setting setting;
    tt_minimizer_phase phase;
    double predicted, low, high; // median and 80 % interval of y; NAN before the model
    double log_ei;               // of the warped y; NAN before the model
    tt_minimizer_memory memory;
    char reason[TT_MINIMIZER_REASON_MAX]; // for people, one sentence
} tt_minimizer_proposal;

typedef struct tt_minimizer_result {
    double y;     // to be minimised
    double noise; // its standard deviation; 0 = none known (the model learns one)
    int failed;   // no y: the evaluation failed. Counted as the worst that was seen
} tt_minimizer_result;

typedef struct tt_minimizer_best {
    tt_setting setting;
    double y;             // the mean of what was told of it
    uint32_t evaluations; // of this setting
    double predicted;     // the model's median of it; NAN before the model
} tt_minimizer_best;

typedef struct tt_minimizer tt_minimizer;

// errors   TT_INVALID no knob is free, or thousands of draws found no setting that the space
//          accepts; TT_NOMEM
// owns     `space` is borrowed until close
TT_NODISCARD tt_status tt_minimizer_open(const tt_space *space,
                                         const tt_minimizer_options *options,
                                         tt_minimizer **out,
                                         tt_error *err);
void tt_minimizer_close(tt_minimizer *minimizer);

// errors   TT_NOMEM; TT_NUMERIC the model could not be fitted (never seen)
TT_NODISCARD tt_status tt_minimizer_ask(tt_minimizer *minimizer,
                                        tt_minimizer_proposal *out,
                                        tt_error *err);
// Takes a proposal of an earlier life in place of tt_minimizer_ask. errors TT_INVALID its id is not
// the next, or its setting not of the space; TT_NOMEM
TT_NODISCARD tt_status tt_minimizer_restore(tt_minimizer *minimizer,
                                            const tt_minimizer_proposal *proposal,
                                            tt_error *err);
// What came of proposal `id`; or of any setting of the space, with id 0. A setting told again is
// averaged.
//
// errors   TT_INVALID y is not finite, the noise negative or not finite, or the setting not of the
//          space; TT_NOTFOUND no proposal has that id; TT_EXISTS it was told already; TT_NOMEM.
//          Nothing has changed then.
TT_NODISCARD tt_status tt_minimizer_tell(tt_minimizer *minimizer,
                                         uint64_t id,
                                         const tt_setting *setting,
                                         const tt_minimizer_result *result,
                                         tt_error *err);
// The setting to use: where the model expects the least y of those that were evaluated, or where
// the least y was seen as long as there is no model. 0, or -1 when there is none yet.
int tt_minimizer_best_setting(const tt_minimizer *minimizer, tt_minimizer_best *out);
// Results told so far, failures among them.
uint32_t tt_minimizer_evaluations(const tt_minimizer *minimizer);

// The first proposal after *id that was not told, whose id *id becomes; NULL when there is none.
// Borrowed until the next call.
const tt_setting *tt_minimizer_next_pending(const tt_minimizer *minimizer, uint64_t *id);

const char *tt_minimizer_phase_name(tt_minimizer_phase phase);

#endif
