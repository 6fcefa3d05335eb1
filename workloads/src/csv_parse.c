// One block of CSV text -> rows. Pure: no file, no thread, no global state.
#include "csv_columns.h"
#include "feature_hash.h"
#include "number_parse.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_ROW = 48 };

static const char quote_advice[] =
    "close it, and double quotes inside; line breaks inside fields are not read";

static const char *
fail_quote(tti_text_block *block, const tti_csv_field *field)
{
    return tti_text_fail(block, field->begin, TT_SYNTAX, quote_advice,
                         field->quoted ? "text behind a closing quote"
                                       : "a quoted field does not end on its line");
}

static const char *
fail_count(tti_text_block *block, const char *at, uint32_t found, const char *more)
{
    const struct tt_csv_columns *columns = block->format;
    return tti_text_fail(block, at, TT_SYNTAX, "every row has the columns of the first line",
                         "%s%u fields; expected %u", more, found, columns->count);
}

static const char *
fail_number(tti_text_block *block, const tti_csv_field *field, const char *what, const char *advice)
{
    double parsed;
    int size = (int)TT_MIN(field->size, (size_t)31);
    const char *end = tti_number_parse(field->begin, &parsed);
    if (field->size > 0 && end == field->begin + field->size)
        return tti_text_fail(block, field->begin, TT_RANGE,
                             "scale the data; float32 holds up to 3.4e38", "%s '%.*s' is too large",
                             what, size, field->begin);
    return tti_text_fail(block, field->begin, TT_SYNTAX, advice, "%s '%.*s' is not a number", what,
                         size, field->begin);
}

static void
put(tti_text_block *block, uint32_t index, float value)
{
    block->index[block->entry_count] = index;
    block->value[block->entry_count++] = value;
}

// ---- one field --------------------------------------------------------------------------------

static const char *
parse_label(tti_text_block *block, const tti_csv_field *field, uint32_t *label)
{
    double value;
    if (tti_csv_missing(field))
        return tti_text_fail(block, field->begin, TT_SYNTAX,
                             "every row needs a label; name its column in data.csv.label",
                             "no label");
    if (!tti_csv_number(field, &value))
        return fail_number(
            block, field, "label",
            "write classes as numbers, or name the label's column in data.csv.label");
    *label = tti_text_label(block, field->begin, value);
    return field->begin;
}

static const char *
parse_numeric(tti_text_block *block, const tti_csv_field *field, const tti_csv_column *column)
{
    const struct tt_csv_columns *columns = block->format;
    double value;
    if (tti_csv_missing(field))
        return field->begin;
    if (!tti_csv_number(field, &value))
        return fail_number(block, field, "value",
                           "name the column in data.csv.categorical if it is none of numbers");
    if (columns->log_numeric)
        value = copysign(log1p(fabs(value)), value);
    if (value != 0)
        put(block, column->feature, (float)value);
    return field->begin;
}

static void
parse_category(tti_text_block *block, const tti_csv_field *field, const tti_csv_column *column)
{
    const struct tt_csv_columns *columns = block->format;
    if (field->size == 0)
        return;
    uint64_t token = tti_category_token(field->begin, field->size, column->seed);
    uint32_t mask = (uint32_t)(((uint64_t)1 << columns->hash_bits) - 1);
    block->token[block->token_count++] = token;
    put(block, columns->numeric_count + ((uint32_t)token & mask), 1.0f);
}

static const char *
parse_field(tti_text_block *block, const tti_csv_field *field, uint32_t at, uint32_t *label)
{
    const struct tt_csv_columns *columns = block->format;
    const tti_csv_column *column = &columns->column[at];
    switch (column->kind) {
    case TTI_CSV_LABEL:
        return parse_label(block, field, label);
    case TTI_CSV_NUMERIC:
        return parse_numeric(block, field, column);
    case TTI_CSV_CATEGORICAL:
        parse_category(block, field, column);
        break;
    case TTI_CSV_IGNORED:
        break;
    }
    return field->begin;
}

// ---- one row ----------------------------------------------------------------------------------

static int
by_index(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void
sort_long(uint32_t *index, float *value, size_t count)
{
    uint64_t *pairs = tt_mem_alloc(count * sizeof *pairs);
    TT_ASSERT(pairs != NULL); // smaller than the block's own arrays
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        pairs[i] = (uint64_t)index[i] << 32 | bits;
    }
    qsort(pairs, count, sizeof *pairs, by_index);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)pairs[i];
        index[i] = (uint32_t)(pairs[i] >> 32);
        memcpy(&value[i], &bits, sizeof bits);
    }
    tt_mem_free(pairs);
}

static void
sort_short(uint32_t *index, float *value, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t x = index[i];
        float v = value[i];
        size_t j = i;
        for (; j > 0 && index[j - 1] > x; j--) {
            index[j] = index[j - 1];
            value[j] = value[j - 1];
        }
        index[j] = x;
        value[j] = v;
    }
}

// Ascending, one entry a feature: what collides adds up.
static void
finish_row(tti_text_block *block, size_t first, uint32_t label)
{
    const struct tt_csv_columns *columns = block->format;
    uint32_t *index = block->index + first;
    float *value = block->value + first;
    size_t count = block->entry_count - first, kept = 0;
    (count > SHORT_ROW ? sort_long : sort_short)(index, value, count);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && index[kept - 1] == index[i]) {
            value[kept - 1] += value[i];
            continue;
        }
        index[kept] = index[i];
        value[kept++] = value[i];
    }
    for (size_t i = 0; i < kept; i++)
        block->all_ones &= value[i] == 1.0f;
    block->entry_count = first + kept;
    block->row_length[block->row_count] = (uint32_t)kept;
    block->label[block->row_count++] = (uint16_t)label;
    block->width = columns->width;
}

static int
is_blank_line(const char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

// The line at p; returns the next, or NULL and a problem (or one label too many).
static char *
parse_line(tti_text_block *block, char *p)
{
    const struct tt_csv_columns *columns = block->format;
    uint32_t found = 0, label = 0;
    size_t first = block->entry_count;
    for (;; p++) {
        tti_csv_field field;
        char *end = tti_csv_take(p, columns->delimiter, &field);
        if (end == NULL)
            return (void)fail_quote(block, &field), NULL;
        if (found == columns->count)
            return (void)fail_count(block, p, found, "more than "), NULL;
        if (parse_field(block, &field, found++, &label) == NULL || label == TTI_CLASSES_MAX)
            return NULL;
        p = end;
        if (*p == '\n')
            break;
    }
    if (found < columns->count)
        return (void)fail_count(block, p, found, ""), NULL;
    finish_row(block, first, label);
    block->line_count++;
    return p + 1;
}

static char *
next_line(tti_text_block *block, char *p)
{
    block->line_count++;
    return (char *)memchr(p, '\n', (size_t)(block->text + block->text_bytes - p)) + 1;
}

void
tti_csv_parse(tti_text_block *block)
{
    const struct tt_csv_columns *columns = block->format;
    tti_text_block_reset(block);
    char *p = block->text, *end = block->text + block->text_bytes;
    int header = block->first && columns->header;
    while (p != NULL && p < end)
        if (is_blank_line(p)) {
            p = next_line(block, p);
        } else if (header) {
            p = next_line(block, p);
            header = 0;
        } else {
            p = parse_line(block, p);
        }
}
