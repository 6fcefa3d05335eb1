// One block of LIBSVM text -> rows. Pure: no file, no thread, no global state.
#ifndef TTI_LIBSVM_PARSE_H
#define TTI_LIBSVM_PARSE_H

#include "data_internal.h"

// Readable bytes behind the text, so that the parser may load eight at a time.
enum { TTI_TEXT_PADDING = 16 };

// What is wrong with a text and where; line and column count from 1, lines within the block.
typedef struct tti_problem {
    tt_status status; // TT_OK: nothing
    uint64_t line, column;
    char what[160];
    const char *advice;
} tti_problem;

typedef struct tti_libsvm_block {
    // In: text[0..text_bytes), whole lines, the last byte is '\n', padding readable behind it.
    char *text;
    size_t text_bytes;
    uint32_t index_limit;     // the largest index (1-based) allowed
    const char *limit_advice; // what to do about a larger one
    // Out; the arrays have room for the worst case (tti_libsvm_block_reserve).
    uint32_t *index;      // 0-based, [entry_count]
    float *value;         // [entry_count]
    uint32_t *row_length; // entries of a row, [row_count]
    uint16_t *label;      // index into label_value, [row_count]
    size_t row_count, entry_count;
    uint64_t line_count;
    uint32_t width; // largest index + 1
    int all_ones;   // every value is 1
    // The distinct labels in the order of their first line. One more than is allowed, so that the
    // place of the one too many is known.
    uint32_t label_count;
    double label_value[TTI_CLASSES_MAX + 1];
    uint64_t label_line[TTI_CLASSES_MAX + 1];   // first occurrence, from 1
    uint64_t label_column[TTI_CLASSES_MAX + 1]; // likewise
    tti_problem problem;                        // the first one; rows before it are valid
    size_t text_capacity;
} tti_libsvm_block;

// Makes room for `text_bytes` of text (plus padding) and what can be in it; keeps the text.
TT_NODISCARD tt_status tti_libsvm_block_reserve(tti_libsvm_block *block, size_t text_bytes);
void tti_libsvm_block_fini(tti_libsvm_block *block);
// Parses the text; stops at the first problem.
void tti_libsvm_parse(tti_libsvm_block *block);

#endif
