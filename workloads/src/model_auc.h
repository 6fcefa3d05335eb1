// Area under the ROC curve.
#ifndef TTI_MODEL_AUC_H
#define TTI_MODEL_AUC_H

#include "tt/core.h"

// The share of (positive, negative) pairs whose positive has the higher score, ties counted half
// (the Mann-Whitney statistic; Hanley and McNeil, Radiology 143, 1982). NaN in *auc when a class is
// missing or a score is not a number. Sorts by radix in 16 bytes a row. errors TT_NOMEM
TT_NODISCARD tt_status tti_model_auc(const float *score,
                                     const uint8_t *positive,
                                     size_t n,
                                     double *auc);

#endif
