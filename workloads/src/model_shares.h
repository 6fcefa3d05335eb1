// In how many training rows each feature is: what the lazy regulariser of keyed models divides by.
#ifndef TTI_MODEL_SHARES_H
#define TTI_MODEL_SHARES_H

#include "tt/workloads_data.h"

typedef struct tti_shares tti_shares;

// Holds nothing yet: a model is opened by many who never train, and may have billions of features.
// errors   TT_NOMEM
TT_NODISCARD tt_status tti_shares_open(tti_shares **out);
void tti_shares_close(tti_shares *shares);

// Counts, when nobody has. thread any, at the same time too. errors TT_NOMEM
TT_NODISCARD tt_status tti_shares_count(tti_shares *shares, const tt_dataset *train);

// [features] training rows that have the feature. After tti_shares_count.
const uint32_t *tti_shares_rows_with(const tti_shares *shares);

#endif
