// Private to report: pieces of its JSON that several objects have.
#ifndef TTI_REPORT_JSON_H
#define TTI_REPORT_JSON_H

#include "report_model.h"
#include <jansson.h>

// null for what is not finite.
json_t *tti_json_real(double value);
// A knob's value with the type it has: true, 3, 0.25, "avx2"; null for NAN.
json_t *tti_json_knob_value(const tt_store_knob *knob, double value);

#endif
