// Synthetic data whose truth is known: sparse click logs of any size.
//
// Row i is a function of (seed, i) and the other fields of the spec; the thread count and the
// destination (file, gzip file, memory) change nothing. Every field of a row is one feature: fields
// share [0, feature_count) in disjoint ranges of very different widths, the value inside a range is
// Zipf-like (probability about 1 / rank), and hot values are scattered over the range as hashing
// scatters them. With z = intercept + sum of weight[feature] * value,
// P(label = 1) = (1 - label_noise) * sigma(z) + label_noise * (1 - sigma(z)).
#ifndef TT_WORKLOADS_GENERATE_H
#define TT_WORKLOADS_GENERATE_H

#include "tt/workloads_data.h"

typedef struct tt_clicklog_spec {
    uint64_t row_count;           // 1 .. 2^32 - 2
    uint64_t first_row;           // rows first_row .. first_row + row_count - 1 of the endless log:
                                  // a test set is what follows the training rows
    uint32_t feature_count;       // at least field_count, at most 2^31 - 2
    uint32_t field_count;         // non-zeros a row; 0 = 37; at most 1024
    uint32_t numeric_field_count; // of these, how many are one feature with a decimal value
                                  // (0.01 .. 9.99) instead of a category with value 1
    uint64_t seed;
    double positive_rate; // share of label 1 aimed at, in (0, 1); 0 = 0.25
    double label_noise;   // share of labels flipped, in [0, 0.5)
    int threads;          // 0 = as many as processors
    const char *path;     // for tt_generate_clicklog: compressed with gzip when it ends in ".gz"
} tt_clicklog_spec;

typedef struct tt_clicklog_truth {
    double intercept;
    double bayes_loss;    // mean over the rows of the entropy of P(label): the floor on fresh data
    double true_loss;     // mean of -log P(label of this row): the truth's loss on these very rows,
                          // which training may undercut by fitting noise
    double positive_rate; // share of rows with label 1
    uint64_t nonzero_count;
} tt_clicklog_truth;

// Writes LIBSVM text (labels 0 and 1, indices from 1) to spec->path by way of a temporary file in
// the same directory: the file is there complete or not at all, an existing one is replaced only on
// success. `truth` may be NULL.
// errors   TT_RANGE a field of the spec; TT_IO the directory cannot be written or is full; TT_NOMEM
// memory   a few MiB a thread, whatever the size
// thread   [control]; starts threads and joins them
TT_NODISCARD tt_status tt_generate_clicklog(const tt_clicklog_spec *spec,
                                            tt_clicklog_truth *truth,
                                            tt_error *err);

// The same rows as a data set in memory, equal to reading the file (with spec->feature_count as the
// width). `path` is not used. owns `*out`: release with tt_dataset_close; NULL on failure.
// errors   as above, and TT_INVALID when all labels came out the same
TT_NODISCARD tt_status tt_generate_clicklog_dataset(const tt_clicklog_spec *spec,
                                                    tt_dataset **out,
                                                    tt_clicklog_truth *truth,
                                                    tt_error *err);

// The true weight of a feature (0-based): symmetric about 0, with standard deviation 1.5 /
// sqrt(fields) (a fifth of it for the features of numeric fields, which are 0 ..
// numeric_field_count - 1).
double tt_clicklog_weight(const tt_clicklog_spec *spec, uint32_t feature);

#endif
