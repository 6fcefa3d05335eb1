// A block of whole lines of a text format and the rows parsed from it; what parsers share.
#ifndef TTI_TEXT_BLOCK_H
#define TTI_TEXT_BLOCK_H

#include "data_internal.h"

// Readable bytes behind the text, so that a parser may load eight at a time.
enum { TTI_TEXT_PADDING = 16 };

// What is wrong with a text and where; line and column count from 1, lines within the block.
typedef struct tti_problem {
    tt_status status; // TT_OK: nothing
    uint64_t line, column;
    char what[160];
    const char *advice;
} tti_problem;

typedef struct tti_text_block {
    // In: text[0..text_bytes), whole lines, the last byte is '\n', padding readable behind it.
    char *text;
    size_t text_bytes;
    int first;                // a file begins here
    uint32_t index_limit;     // the largest index (1-based) allowed
    const char *limit_advice; // what to do about a larger one
    int ignore_unknown;       // nothing: it is left out and counted
    int unlabelled;           // labels do not count and may be missing; `label` is all 0
    const void *format;       // what the format's parser needs to know besides; shared, read-only
    // Out; the arrays have room for the worst case (tti_text_block_reserve).
    uint32_t *index;      // 0-based, [entry_count]
    float *value;         // [entry_count]
    uint64_t *token;      // hashed categories as they stood, [token_count]; NULL: nobody counts
    uint32_t *row_length; // entries of a row, [row_count]
    uint16_t *label;      // index into label_value, [row_count]
    size_t row_count, entry_count, token_count;
    uint64_t line_count;
    uint64_t unknown_entries, unknown_rows; // left out, and rows that had some
    uint32_t width;                         // largest index + 1
    int all_ones;                           // every value is 1
    // The distinct labels in the order of their first line. One more than is allowed, so that the
    // place of the one too many is known.
    uint32_t label_count;
    double label_value[TTI_CLASSES_MAX + 1];
    uint64_t label_line[TTI_CLASSES_MAX + 1];   // first occurrence, from 1
    uint64_t label_column[TTI_CLASSES_MAX + 1]; // likewise
    tti_problem problem;                        // the first one; rows before it are valid
    size_t text_capacity;
    void *product; // a consumer's (tti_text_consumer), kept from one use of the block to the next
} tti_text_block;

// Makes room for `text_bytes` of text (plus padding) and what can be in it; keeps the text. tokens:
// the format hashes categories.
TT_NODISCARD tt_status tti_text_block_reserve(tti_text_block *block, size_t text_bytes, int tokens);
void tti_text_block_fini(tti_text_block *block);
// Forgets what was parsed before.
void tti_text_block_reset(tti_text_block *block);

// Records a problem at `at` on the line being read and returns NULL for the caller to return.
const char *tti_text_fail(tti_text_block *block,
                          const char *at,
                          tt_status status,
                          const char *advice,
                          const char *format,
                          ...) TT_PRINTF(5, 6);
// A number that cannot be used; parsed: its value, should it be infinite; missing_advice: what to
// do where there is none. Returns NULL.
const char *tti_text_fail_number(tti_text_block *block,
                                 const char *at,
                                 const char *what,
                                 double parsed,
                                 const char *missing_advice);
// The word at p for a message: printable, at most 31 bytes.
void tti_text_word(char word[32], const char *p);
// Index of `label` in the block's table, or TTI_CLASSES_MAX when it is one too many.
uint32_t tti_text_label(tti_text_block *block, const char *at, double label);

#endif
