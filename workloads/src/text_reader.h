// A text format as a data set: what LIBSVM and CSV have in common.
#ifndef TTI_TEXT_READER_H
#define TTI_TEXT_READER_H

#include "text_block.h"

typedef struct tti_text_format {
    const char *what;           // "LIBSVM text"
    const char *lines;          // what a file without rows may have: "blank lines and comments"
    const char *feature_advice; // where no row has a feature
    void (*parse)(tti_text_block *block);
    // Looks at the first block of each file before any is parsed, and sets its `format`, which all
    // later blocks get (it is NULL before the first file); NULL: nothing to prepare. Called in the
    // order of the files, by one thread at a time.
    tt_status (*prepare)(void *self, tti_text_block *block, const char *path, tt_error *err);
    // The rows of a block were appended; NULL: nobody wants to know. In order, one at a time.
    tt_status (*appended)(void *self, const tti_text_block *block, tt_error *err);
    int tokens; // blocks have room for `token`
} tti_text_format;

// Takes the rows instead of a data set: block by block, so that memory does not grow with the file.
typedef struct tti_text_consumer {
    void *self;
    // After a block is parsed, on whichever thread did it.
    void (*work)(void *self, tti_text_block *block);
    // In order, one at a time; the rows before a problem too, which is reported then.
    tt_status (*drain)(void *self, tti_text_block *block, tt_error *err);
    // Frees block->product.
    void (*fini)(tti_text_block *block);
} tti_text_consumer;

typedef struct tti_text_job {
    const tti_text_format *format;
    void *self;
    const tt_data_spec *spec;
    const tti_text_consumer *consumer; // NULL: a data set is wanted. Else labels may be missing
    tt_dataset *out;                   // empty; filled (with a consumer: row_count alone)
} tti_text_job;

// errors   as tt_dataset_open
tt_status tti_text_read(const tti_text_job *job, tt_error *err);
// libsvm_reader.c, csv_reader.c: consumer NULL: into a data set.
tt_status tti_libsvm_read(const tt_data_spec *spec,
                          const tti_text_consumer *consumer,
                          tt_dataset *out,
                          tt_error *err);
tt_status tti_csv_read(const tt_data_spec *spec,
                       const tti_text_consumer *consumer,
                       tt_dataset *out,
                       tt_error *err);

#endif
