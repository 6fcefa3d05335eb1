// workloads: what is trained on and what is trained. Data readers, shards and the ledger of who
// reads which rows, generated data with known truth, models (loss and gradient), predictions, and
// tensors in files.
//
// Caveats: knows no network, no parameter server and no clock. Third-party types (zlib, liblzma,
// BLAS) never appear in these headers.
#ifndef TT_WORKLOADS_H
#define TT_WORKLOADS_H

#include "tt/workloads_data.h"
#include "tt/workloads_generate.h"
#include "tt/workloads_look.h"
#include "tt/workloads_model.h"
#include "tt/workloads_predict.h"
#include "tt/workloads_shards.h"
#include "tt/workloads_tensor.h"

#endif
