// Whether text is LIBSVM text or a table, and what is in the table's columns.
#include "csv_columns.h"
#include "data_look_internal.h"
#include "feature_hash.h"
#include "number_parse.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- LIBSVM text ------------------------------------------------------------------------------

typedef struct svm_lines {
    uint32_t rows, rows_counted; // of these, the label is the number of pairs
    uint64_t pairs;
    int whole_values, lists, queries;
} svm_lines;

static const char *
skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

static int
is_end(const char *p)
{
    return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n');
}

// "index:value" at p; what follows, or NULL.
static const char *
pair_at(const char *p, svm_lines *seen)
{
    double value;
    const char *colon = p;
    while (*colon >= '0' && *colon <= '9')
        colon++;
    if (strncmp(p, "qid:", 4) == 0) {
        seen->queries = 1;
        colon = p + 3;
    } else if (colon == p || *colon != ':') {
        return NULL;
    }
    const char *end = tti_number_parse(colon + 1, &value);
    if (end == colon + 1)
        return NULL;
    seen->whole_values &= value == floor(value) && value >= 1;
    return end;
}

// One line at p; 0: it is no row of LIBSVM text.
static int
svm_line(const char *p, svm_lines *seen)
{
    double label;
    uint64_t pairs = 0;
    p = skip_blanks(p);
    if (is_end(p))
        return 1;
    const char *end = tti_number_parse(p, &label);
    while (end != NULL && end != p && *end == ',') { // several labels a row
        seen->lists = 1;
        p = end + 1;
        end = tti_number_parse(p, &label);
    }
    if (end == p || (*end != ' ' && *end != '\t' && !is_end(end)))
        return 0;
    for (p = skip_blanks(end); !is_end(p); p = skip_blanks(p)) {
        p = pair_at(p, seen);
        if (p == NULL || (*p != ' ' && *p != '\t' && !is_end(p)))
            return 0;
        pairs++;
    }
    seen->rows++;
    seen->rows_counted += label == (double)pairs;
    seen->pairs += pairs;
    return 1;
}

int
tti_look_libsvm(const char *text, size_t size, tt_look *look)
{
    svm_lines seen = {.whole_values = 1};
    for (const char *p = text; p < text + size; p = strchr(p, '\n') + 1)
        if (!svm_line(p, &seen))
            return 0;
    if (seen.rows == 0 || seen.pairs == 0)
        return 0;
    look->lines = seen.rows;
    look->kind = TT_LOOK_UNREAD;
    if (seen.rows_counted == seen.rows && seen.whole_values && seen.rows > 1) {
        look->what = "bags of words in LDA-C's format (number of terms, then term:count)";
        look->advice = "there is no topic model here";
    } else if (seen.lists) {
        look->what = "LIBSVM text with several labels a row";
        look->advice = "write one label a row: a file for each label";
    } else if (seen.queries) {
        look->what = "LIBSVM text of queries (qid:)";
        look->advice = "there is no ranking model here";
    } else {
        look->kind = TT_LOOK_LIBSVM;
        look->format = "libsvm";
        look->what = "LIBSVM text";
    }
    return 1;
}

// ---- tables -----------------------------------------------------------------------------------

enum { SLOTS = 2 * TT_LOOK_DISTINCT_MAX };

typedef struct table {
    tt_look *look;
    uint64_t *slots; // [columns][SLOTS]: tokens of the values seen; 0 is empty
    double *last;    // [columns]: the number of the line before
} table;

// 1: not seen before.
static int
is_new(uint64_t *slots, uint64_t token)
{
    token = token != 0 ? token : 1;
    size_t at = token % SLOTS;
    while (slots[at] != 0 && slots[at] != token)
        at = (at + 1) % SLOTS;
    int found = slots[at] == token;
    slots[at] = token;
    return !found;
}

static void
note_distinct(table *t, uint32_t at, const tti_csv_field *field)
{
    tt_look_column *column = &t->look->column[at];
    if (column->distinct == TT_LOOK_DISTINCT_MAX ||
        !is_new(t->slots + (size_t)at * SLOTS, tti_category_token(field->begin, field->size, 1)))
        return;
    column->distinct++;
    if (column->sample_count < TT_LOOK_SAMPLES)
        (void)snprintf(column->sample[column->sample_count++], sizeof column->sample[0], "%.*s",
                       (int)TT_MIN(field->size, (size_t)23), field->begin);
}

static void
note_field(table *t, uint32_t at, const tti_csv_field *field)
{
    tt_look_column *column = &t->look->column[at];
    double value;
    if (tti_csv_missing(field)) {
        column->missing++;
        return;
    }
    column->values++;
    note_distinct(t, at, field);
    if (!tti_csv_number(field, &value))
        return;
    column->increasing &= column->numbers == 0 || value > t->last[at];
    t->last[at] = value;
    column->min = column->numbers == 0 ? value : TT_MIN(column->min, value);
    column->max = column->numbers == 0 ? value : TT_MAX(column->max, value);
    column->numbers++;
    column->wholes += value == floor(value);
}

// Fields of the line at p, and how many of them are numbers; 0: a quote is wrong. Unquotes.
static uint32_t
count_fields(char *p, char delimiter, uint32_t *numbers)
{
    double value;
    *numbers = 0;
    for (uint32_t count = 1;; count++, p++) {
        tti_csv_field field;
        p = tti_csv_take(p, delimiter, &field);
        if (p == NULL)
            return 0;
        *numbers += (uint32_t)tti_csv_number(&field, &value);
        if (*p == '\n')
            return count;
    }
}

// Reads one line into the columns; 0: it has another number of fields.
static int
note_line(table *t, char *p, int is_header)
{
    for (uint32_t at = 0;; at++, p++) {
        tti_csv_field field;
        p = tti_csv_take(p, t->look->delimiter, &field);
        if (p == NULL || at == t->look->column_count)
            return 0;
        if (is_header)
            (void)snprintf(t->look->column[at].name, TT_LOOK_NAME_BYTES, "%.*s",
                           (int)TT_MIN(field.size, (size_t)TT_LOOK_NAME_BYTES - 1), field.begin);
        else
            note_field(t, at, &field);
        if (*p == '\n')
            return at + 1 == t->look->column_count;
    }
}

// The first line that is not blank, copied: counting unquotes it.
static tt_status
look_at_first(const char *text, tt_look *look)
{
    size_t size = (size_t)(strchr(text, '\n') + 1 - text);
    char *line = tt_mem_zalloc(size + TTI_TEXT_PADDING, 1);
    uint32_t numbers;
    if (line == NULL)
        return TT_NOMEM;
    memcpy(line, text, size);
    look->delimiter = tti_csv_guess_delimiter(line);
    if (strchr(line, look->delimiter) == NULL)
        look->delimiter = ' ';
    look->column_count = count_fields(line, look->delimiter, &numbers);
    look->header = numbers == 0;
    tt_mem_free(line);
    return TT_OK;
}

static tt_status
look_at_lines(char *text, size_t size, table *t, int *is_table)
{
    tt_look *look = t->look;
    uint32_t odd = 0;
    int header = look->header;
    for (char *p = text, *next; p < text + size; p = next) {
        next = strchr(p, '\n') + 1;
        if (*p == '\n' || (*p == '\r' && p[1] == '\n'))
            continue;
        odd += (uint32_t)!note_line(t, p, header);
        look->lines += (uint32_t)!header;
        header = 0;
    }
    *is_table = look->lines > 0 && odd * 10 <= look->lines;
    return TT_OK;
}

tt_status
tti_look_table(char *text, size_t size, tt_look *look, int *is_table)
{
    *is_table = 0;
    while (size > 0 && (*text == '\n' || *text == '\r')) {
        text++;
        size--;
    }
    if (size == 0)
        return TT_OK;
    TT_TRY(look_at_first(text, look));
    if (look->column_count < 2 || look->column_count > TTI_LOOK_COLUMNS_MAX)
        return TT_OK;
    table t = {.look = look};
    look->column = tt_mem_zalloc(look->column_count, sizeof *look->column);
    t.slots = tt_mem_zalloc((size_t)look->column_count * SLOTS, sizeof *t.slots);
    t.last = tt_mem_zalloc(look->column_count, sizeof *t.last);
    tt_status status = look->column != NULL && t.slots != NULL && t.last != NULL ? TT_OK : TT_NOMEM;
    for (uint32_t i = 0; status == TT_OK && i < look->column_count; i++)
        look->column[i].increasing = 1;
    if (status == TT_OK)
        status = look_at_lines(text, size, &t, is_table);
    tt_mem_free(t.slots);
    tt_mem_free(t.last);
    if (*is_table) {
        look->kind = TT_LOOK_CSV;
        look->format = "csv";
        look->what = "CSV text";
    }
    return status;
}
