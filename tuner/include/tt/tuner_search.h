// Expected improvement and its maximum over a search space.
//
// Points are the free knobs of a space in unit coordinates: x[0 .. dims), each tt_space_encode of
// its knob. Every point made here lies on its knob's grid, in its range, and is accepted by the
// space (the safe set); constraints hold by construction.
//
// Caveats: a space so constrained that thousands of draws find nothing valid yields no points, and
// that is reported, not mended.
#ifndef TT_TUNER_SEARCH_H
#define TT_TUNER_SEARCH_H

#include "tt/core.h"
#include "tt/knobs.h"

enum {
    TT_SEARCH_CLASSES = 4
}; // flags of tt_knob_effect: setting only, data moves, model moves, both

// ---- expected improvement --------------------------------------------------------------------

// log h(z), h(z) = phi(z) + z Phi(z): log EI = log s + log h((y_best - m) / s) when y is normal and
// minimised. Accurate to about 1e-10 for every finite z; -INFINITY at -INFINITY.
//
// source   Ament et al., "Unexpected improvements to expected improvement", NeurIPS 2023, eq. 9
double tt_ei_log_h(double z);
// log EI of N(mean, sd^2) under `best`, and its derivatives in mean and sd (NULL = not wanted). sd
// = 0: the certain improvement.
double tt_ei_log(double mean, double sd, double best, double *d_mean, double *d_sd);
// log of E[(1 - e^D)^+] for D ~ N(mean, sd^2): the expected share of the remaining time that is
// saved. Derivatives as above.
//     Phi(d) - exp(mean + sd^2/2) Phi(d - sd),  d = -mean/sd
double tt_ei_log_saved(double mean, double sd, double *d_mean, double *d_sd);
// S.d. of the change that one more measurement with noise of variance `noise_var` brings about in
// the mean of a value of variance `var`: var / sqrt(var + noise_var), and its derivative in var
// (NULL = not wanted). What is known far better than it can be measured will hardly change. 0 where
// var is.
//
// source   Frazier, Powell & Dayanik, "The knowledge-gradient policy for correlated normal
//          beliefs", INFORMS Journal on Computing 2009
double tt_ei_told(double var, double noise_var, double *d_var);
// Standard normal distribution function.
double tt_ei_phi(double z);

// ---- points ----------------------------------------------------------------------------------

typedef struct tt_search_space {
    const tt_space *space;       // borrowed
    uint32_t dims;               // free knobs
    uint32_t knob[TT_KNOBS_MAX]; // their indices
    tt_setting base;             // start setting: values of the fixed ones
    // The only settings there are, where that is so (borrowed); 0: all that the space accepts.
    const tt_setting *listed;
    uint32_t listed_count;
} tt_search_space;

void tt_search_space_init(tt_search_space *search, const tt_space *space);
void tt_search_encode(const tt_search_space *search, const tt_setting *setting, double *x);
void tt_search_decode(const tt_search_space *search, const double *x, tt_setting *out);
// Flags of tt_knob_effect of the knobs in which a and b differ.
unsigned tt_search_class(const tt_search_space *search, const tt_setting *a, const tt_setting *b);

// `count` spread-out settings, none equal to one of `taken` or to another: the first valid points
// of a Sobol sequence under the random shift, out of 64, whose points keep farthest from each other
// and from `taken`. Returns how many were found.
uint32_t tt_search_spread(const tt_search_space *search,
                          uint64_t seed,
                          const tt_setting *taken,
                          uint32_t taken_count,
                          uint32_t count,
                          tt_setting *out);

// ---- maximum ---------------------------------------------------------------------------------

// What is maximised. self is handed back.
typedef struct tt_search_target {
    void *self;
    // Scores of `count` points (count x dims, row-major, on the grid); larger is better, -INFINITY
    // forbids.
    void (*score)(void *self, const double *x, uint32_t count, double *out);
    // Score and gradient at one point, for the reals; NULL = no polish.
    double (*gradient)(void *self, const double *x, double *grad);
} tt_search_target;

typedef struct tt_search_options {
    uint64_t seed;
    uint32_t candidates;       // Sobol points; 0 = 1500
    uint32_t around;           // perturbations of each of the 5 best anchors; 0 = 100
    uint32_t starts;           // of the neighbourhood search; 0 = 8
    const tt_setting *anchors; // good settings, best first; at most 5 are used
    uint32_t anchor_count;
    const tt_setting *taken; // never proposed again
    uint32_t taken_count;
    const tt_setting *from; // where a switch would start, for the classes; NULL = one class
} tt_search_options;

// Best point of each class of switch; found[] says which exist.
typedef struct tt_search_result {
    int found[TT_SEARCH_CLASSES];
    double score[TT_SEARCH_CLASSES];
    tt_setting setting[TT_SEARCH_CLASSES];
    uint32_t evaluations;
} tt_search_result;

// Candidates (scrambled Sobol, and around the anchors), then a neighbourhood search with shrinking
// steps from the best that are at least 0.1 apart, then the reals by gradient within the box.
// errors   TT_NOMEM. Nothing found is a result.
TT_NODISCARD tt_status tt_search_maximize(const tt_search_space *search,
                                          const tt_search_target *target,
                                          const tt_search_options *options,
                                          tt_search_result *out,
                                          tt_error *err);

#endif
