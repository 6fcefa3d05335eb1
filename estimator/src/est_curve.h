// What the host does for a plug-in's family (tt/curve.h), with a fit's numbers in tti_fit.curve.
// Numbers of a plug-in that are not finite make a fit that is not ok, a loss that is NAN, or no
// answer; never more.
#ifndef TT_EST_CURVE_H
#define TT_EST_CURVE_H

#include "est_family.h"

// Once before the first fit: an error of GSL would end the process otherwise.
void tti_curve_prepare(void);
// As the functions of tti_family.
void tti_curve_fit_points(const tt_curve *curve,
                          const tti_curve_data *data,
                          uint32_t count,
                          tti_fit *out);
double tti_curve_predict(const tt_curve *curve, const tti_fit *fit, double clock, double *sd);
void tti_curve_inverse(
    const tt_curve *curve, const tti_fit *fit, double now, double target, tti_left *out);

#endif
