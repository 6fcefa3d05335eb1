// trimtab init: what was asked for, what was seen, what is proposed.
#ifndef TTI_INIT_INTERNAL_H
#define TTI_INIT_INTERNAL_H

#include "tt/workloads_look.h"

enum { TTI_INIT_FILES_MAX = 4096, TTI_INIT_LIST_BYTES = 65536 };

typedef struct tti_init_files {
    const char *path[TTI_INIT_FILES_MAX];
    size_t count;
} tti_init_files;

typedef struct tti_init {
    // asked for
    tti_init_files files, labels, test, test_labels;
    const char *out, *label; // column
    int force;
    // seen
    tt_look *look;         // of the first file
    uint32_t label_column; // CSV, from 0
    // CSV: columns as data.csv has them, "2-14,17"
    char csv_label[16];
    char numeric[TTI_INIT_LIST_BYTES], categorical[TTI_INIT_LIST_BYTES];
    char ignored[TTI_INIT_LIST_BYTES];
    tt_csv_spec csv;
    tt_dataset *data;
    uint64_t class_rows[256];
    double prior_loss;  // of the classes' shares
    double row_weight;  // mean over rows of the sum of |x|
    double largest;     // largest |x|
    uint64_t test_rows; // 0: none
    // proposed
    const char *model;
    double validation; // share held out; 0: too few rows
    double learning_rate;
    uint32_t batch_size, patience;
    uint32_t hash_bits, feature_count; // with as many bits
} tti_init;

// init_proposal.c: columns and log_numeric of CSV text, before it is read.
void tti_init_plan_columns(tti_init *init);
// Figures of the data that was read, and what follows from them.
void tti_init_propose(tti_init *init);
// init_write.c: the job file. 0, or -1 with errno.
int tti_init_write(const tti_init *init, FILE *out);

#endif
