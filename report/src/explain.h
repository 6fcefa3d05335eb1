// Private to report: what trimtab explain says of a run, in numbers.
#ifndef TTI_EXPLAIN_H
#define TTI_EXPLAIN_H

#include "report_model.h"

// What all windows of a setting say together.
typedef struct tti_measured_setting {
    const tti_setting *setting;
    double log_t, se; // log of seconds per iteration; of that. NAN: not measured
    int64_t windows, iterations;
    int64_t stays; // times it came into force and was measured
} tti_measured_setting;

typedef enum tti_knob_verdict {
    TTI_KNOB_FIXED,
    TTI_KNOB_MATTERS,  // the interval of its effect leaves out "none"
    TTI_KNOB_FLAT,     // no value of it would change the time by more than 1 % (95 %)
    TTI_KNOB_NOT_TOLD, // its effect may be anything: too little was measured
} tti_knob_verdict;

// A knob at the setting the run ended in, by a Gaussian process over all settings measured.
typedef struct tti_knob_effect {
    const tt_store_knob *knob;
    size_t index;
    tti_knob_verdict verdict;
    double from;          // its value in the start setting
    int changed;          // it ended elsewhere
    double gain, gain_sd; // log(time with it back at its start / time now), the rest as it is
    double other;         // of its values, the one expected to change the time most
    double other_gain, other_sd; // log(time there / time now)
    int64_t tried, values;       // different values measured; values it has (0: a real)
} tti_knob_effect;

// What the run said of the time left beside what it was, asked when 20, 30, ... 90 % of its
// iterations were done: the last it had said then.
typedef struct tti_eta_judgement {
    int64_t asked, good, inside; // good: within a factor of two; inside: in the 80 % interval
    const tt_store_eta *half;    // said half-way; NULL: nothing
    double half_left_s;          // what it was
} tti_eta_judgement;

typedef struct tti_explanation {
    const tti_report *report;
    tti_measured_setting *settings; // in the order of the report's
    size_t setting_count;
    const tti_measured_setting *start, *end; // NULL: none
    const tti_measured_setting *rival;       // the other one likeliest to be faster; NULL: none
    double end_beats_start;                  // probability that it takes less time
    double end_beats_rival;
    int64_t rivals; // others that were measured: the fastest of many was lucky, too
    tti_knob_effect *knobs;
    size_t knob_count;
    // Trials with a prediction and a measurement
    int64_t judged, inside; // inside: the measurement lay in the 80 % interval
    double typical_error;   // median of |log(measured / predicted)|; NAN
    int64_t trials, better; // trials; those that were faster than what they were compared with
    const tt_store_proposal *last; // decision not to try anything; NULL: none
    // Iterations by which gradients may lag, as much as the loss bent last, where that rules out
    // some settings; else NAN.
    double lag_borne;
    tti_eta_judgement eta; // nothing was asked of a run that did not reach its loss
} tti_explanation;

TT_NODISCARD tt_status tti_explain(const tti_report *report, tti_explanation *out, tt_error *err);
void tti_explain_fini(tti_explanation *explanation);
// Fills in the knobs. errors TT_NOMEM
TT_NODISCARD tt_status tti_explain_knobs(tti_explanation *explanation, tt_error *err);

// Fills in `eta` (explain_eta.c).
void tti_explain_eta(tti_explanation *explanation);

// The text of trimtab explain (explain_text.c).
void tti_print_explanation(const tti_printer *p, const tti_explanation *explanation);

#endif
