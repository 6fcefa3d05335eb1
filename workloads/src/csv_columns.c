// What the columns of CSV text are: from the specification, the header and the first rows.
#include "csv_columns.h"
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_LINES = 512, COLUMNS_MAX = 1 << 20 };

typedef struct planner {
    const tt_data_spec *spec;
    tt_csv_spec csv;
    struct tt_csv_columns *out;
    tt_error *err;
    int unlabelled;   // the label's column may be missing
    char *text, *end; // a copy of the first lines; unquoted as it is looked at
    char *rows;       // behind the header
} planner;

static void
free_columns(struct tt_csv_columns *columns)
{
    for (uint32_t i = 0; columns->column != NULL && i < columns->count; i++)
        tt_mem_free(columns->column[i].name);
    tt_mem_free(columns->column);
}

void
tti_csv_columns_close(struct tt_csv_columns *columns)
{
    if (columns == NULL)
        return;
    free_columns(columns);
    tt_mem_free(columns);
}

static tt_status
no_memory(const planner *plan)
{
    return tt_error_set(plan->err, TT_NOMEM, plan->spec->path, NULL, "no memory for the columns");
}

// ---- the first lines --------------------------------------------------------------------------

static tt_status
copy_sample(planner *plan, const tti_text_block *block)
{
    const char *end = block->text, *last = block->text + block->text_bytes;
    while (end < last && (*end == '\n' || *end == '\r'))
        end++; // blank lines
    const char *begin = end;
    for (int line = 0; line < SAMPLE_LINES && end < last; line++)
        end = (const char *)memchr(end, '\n', (size_t)(last - end)) + 1;
    size_t size = (size_t)(end - begin);
    if (size == 0)
        return tt_error_set(plan->err, TT_INVALID, plan->spec->path,
                            "check that this is the right file", "no rows, only blank lines");
    plan->text = tt_mem_zalloc(size + TTI_TEXT_PADDING, 1);
    if (plan->text == NULL)
        return no_memory(plan);
    memcpy(plan->text, begin, size);
    plan->end = plan->text + size;
    return TT_OK;
}

char
tti_csv_guess_delimiter(const char *line)
{
    static const char candidates[] = {'\t', ',', ';', '|'};
    char best = ',';
    size_t most = 0;
    for (size_t i = 0; i < TT_COUNT_OF(candidates); i++) {
        size_t count = 0;
        int quoted = 0;
        for (const char *p = line; *p != '\n'; p++) {
            quoted ^= *p == '"';
            count += !quoted && *p == candidates[i];
        }
        if (count > most) {
            most = count;
            best = candidates[i];
        }
    }
    return best;
}

// Visits the fields of the line at p, at most `limit`; returns the next line, NULL when a quote is
// wrong.
static char *
for_fields(const planner *plan,
           char *p,
           uint32_t limit,
           void (*visit)(void *self, const tti_csv_field *field, uint32_t at),
           void *self)
{
    for (uint32_t at = 0;; at++, p++) {
        tti_csv_field field;
        p = tti_csv_take(p, plan->out->delimiter, &field);
        if (p == NULL)
            return NULL;
        if (at < limit)
            visit(self, &field, at);
        if (*p == '\n')
            return p + 1;
    }
}

static void
count_field(void *self, const tti_csv_field *field, uint32_t at)
{
    uint32_t *seen = self; // fields, numbers
    double value;
    seen[0] = at + 1;
    seen[1] += (uint32_t)tti_csv_number(field, &value);
}

static void
name_column(void *self, const tti_csv_field *field, uint32_t at)
{
    struct tt_csv_columns *columns = self;
    columns->column[at].name = tt_mem_zalloc(field->size + 1, 1);
    if (columns->column[at].name != NULL)
        memcpy(columns->column[at].name, field->begin, field->size);
}

static uint32_t
find_name(const struct tt_csv_columns *columns, const char *name, size_t size)
{
    for (uint32_t i = 0; i < columns->count; i++)
        if (columns->column[i].name != NULL && strlen(columns->column[i].name) == size &&
            memcmp(columns->column[i].name, name, size) == 0)
            return i;
    return UINT32_MAX;
}

// Whether the first line has every name that the training data go by.
static int
has_names(const struct tt_csv_columns *out, const struct tt_csv_columns *like)
{
    for (uint32_t i = 0; i < like->count; i++) {
        const char *name = like->column[i].name;
        if (like->column[i].kind == TTI_CSV_NUMERIC || like->column[i].kind == TTI_CSV_CATEGORICAL)
            if (name == NULL || find_name(out, name, strlen(name)) == UINT32_MAX)
                return 0;
    }
    return like->header;
}

// A line without a number. Where the label's column is missing and all others hold words, rows
// have no number either; then there is a header when there was one in training.
static int
looks_like_header(const planner *plan, uint32_t numbers)
{
    const struct tt_csv_columns *like = plan->spec->like != NULL ? plan->spec->like->columns : NULL;
    if (like != NULL && has_names(plan->out, like))
        return 1;
    return numbers == 0 && (like == NULL || like->header || like->numeric_count > 0 ||
                            like->count == plan->out->count);
}

static void
forget_names(struct tt_csv_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        tt_mem_free(columns->column[i].name);
        columns->column[i].name = NULL;
    }
}

// Names the columns by the first line, of which `line` is a copy, if that is a header.
static void
name_columns(planner *plan, char *line, uint32_t numbers)
{
    struct tt_csv_columns *out = plan->out;
    int given = plan->csv.header == TT_CSV_HEADER_YES;
    int named = plan->spec->like != NULL && plan->spec->like->columns->header;
    if (given || (plan->csv.header == TT_CSV_HEADER_AUTO && (named || numbers == 0))) {
        (void)for_fields(plan, line, out->count, name_column, out);
        out->header = given || looks_like_header(plan, numbers);
    }
    if (!out->header)
        forget_names(out);
}

static void
choose_delimiter(planner *plan)
{
    struct tt_csv_columns *out = plan->out;
    out->delimiter = plan->csv.delimiter;
    if (out->delimiter == 0 && plan->spec->like != NULL)
        out->delimiter = plan->spec->like->columns->delimiter;
    if (out->delimiter == 0)
        out->delimiter = tti_csv_guess_delimiter(plan->text);
}

// `line` has room for the first line, whose fields are unquoted as they are looked at.
static tt_status
look_at_first_line(planner *plan, char *line, size_t size)
{
    struct tt_csv_columns *out = plan->out;
    uint32_t seen[2] = {0};
    memcpy(line, plan->text, size);
    char *next = for_fields(plan, line, COLUMNS_MAX + 1, count_field, seen);
    char place[TTI_PLACE_SIZE];
    tti_place(place, plan->spec->path, "1");
    if (next == NULL || seen[0] > COLUMNS_MAX)
        return tt_error_set(plan->err, TT_SYNTAX, place, "check data.csv.delimiter",
                            next == NULL ? "a quoted field does not end on its line"
                                         : "more than %d columns",
                            COLUMNS_MAX);
    if (seen[0] < 2 && !plan->unlabelled)
        return tt_error_set(plan->err, TT_SYNTAX, place,
                            "set data.csv.delimiter if the file has another one",
                            "one field only; expected several, separated by tabs, commas, "
                            "semicolons or bars");
    out->count = seen[0];
    out->column = tt_mem_zalloc(out->count, sizeof *out->column);
    if (out->column == NULL)
        return no_memory(plan);
    memcpy(line, plan->text, size);
    name_columns(plan, line, seen[1]);
    plan->rows = plan->text + (out->header ? size : 0);
    return TT_OK;
}

static tt_status
read_first_line(planner *plan)
{
    choose_delimiter(plan);
    size_t size = (size_t)((char *)memchr(plan->text, '\n', (size_t)(plan->end - plan->text)) + 1 -
                           plan->text);
    char *line = tt_mem_zalloc(size + TTI_TEXT_PADDING, 1);
    if (line == NULL)
        return no_memory(plan);
    tt_status status = look_at_first_line(plan, line, size);
    tt_mem_free(line);
    return status;
}

// ---- naming columns ---------------------------------------------------------------------------

static tt_status
no_column(const planner *plan, const char *key, const char *item, int size)
{
    const struct tt_csv_columns *out = plan->out;
    char advice[200];
    size_t used =
        (size_t)snprintf(advice, sizeof advice, "columns have numbers from 1 to %u", out->count);
    for (uint32_t i = 0; out->header && i < out->count && used < sizeof advice; i++)
        used += (size_t)snprintf(advice + used, sizeof advice - used, "%s%s",
                                 i > 0 ? ", " : " and these names: ",
                                 out->column[i].name != NULL ? out->column[i].name : "");
    if (!out->header)
        (void)snprintf(advice + used, sizeof advice - used, " and no names without a header");
    return tt_error_set(plan->err, TT_INVALID, plan->spec->path, advice, "no column '%.*s' (%s)",
                        size, item, key);
}

// "7" or "2-14": columns from 1; 0: it is neither.
static int
parse_range(const char *item, size_t size, unsigned long *from, unsigned long *to)
{
    char *end;
    if (item[0] < '0' || item[0] > '9')
        return 0;
    *from = *to = strtoul(item, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *to = strtoul(end + 1, &end, 10);
    return end == item + size;
}

static tt_status
mark(planner *plan, const char *key, uint32_t at, tti_csv_kind kind)
{
    static const char *const kinds[] = {"data.csv.ignore", "data.csv.label", "data.csv.numeric",
                                        "data.csv.categorical"};
    tti_csv_column *column = &plan->out->column[at];
    if (column->seed != 0 && column->kind != kind)
        return tt_error_set(plan->err, TT_INVALID, plan->spec->path, "name it once",
                            "column %u is in %s and in %s", at + 1, kinds[column->kind], key);
    column->kind = kind;
    column->seed = at + 1; // marks it as spoken for
    return TT_OK;
}

static tt_status
mark_item(planner *plan, const char *key, const char *item, size_t size, tti_csv_kind kind)
{
    unsigned long from, to;
    uint32_t named = find_name(plan->out, item, size);
    if (named != UINT32_MAX)
        return mark(plan, key, named, kind);
    if (!parse_range(item, size, &from, &to) || from < 1 || to < from || to > plan->out->count)
        return no_column(plan, key, item, (int)size);
    for (unsigned long i = from; i <= to; i++)
        TT_TRY(mark(plan, key, (uint32_t)i - 1, kind));
    return TT_OK;
}

static tt_status
mark_list(planner *plan, const char *key, const char *list, tti_csv_kind kind)
{
    for (const char *item = list; item != NULL && *item != '\0';) {
        while (*item == ' ')
            item++;
        size_t size = strcspn(item, ","), next = size + (item[size] == ',');
        const char *behind = item + next;
        while (size > 0 && item[size - 1] == ' ')
            size--;
        TT_TRY(mark_item(plan, key, item, size, kind));
        item = behind;
    }
    return TT_OK;
}

// ---- by content -------------------------------------------------------------------------------

static void
look_at_field(void *self, const tti_csv_field *field, uint32_t at)
{
    tti_csv_column *column = &((struct tt_csv_columns *)self)->column[at];
    double value;
    if (column->seed == 0 && !tti_csv_missing(field) && !tti_csv_number(field, &value))
        column->kind = TTI_CSV_CATEGORICAL;
}

static void
choose_by_content(planner *plan)
{
    struct tt_csv_columns *out = plan->out;
    for (uint32_t i = 0; i < out->count; i++)
        if (out->column[i].seed == 0)
            out->column[i].kind = TTI_CSV_NUMERIC;
    // A wrong quote is reported when the block is parsed.
    for (char *p = plan->rows; p != NULL && p < plan->end;)
        p = for_fields(plan, p, out->count, look_at_field, out);
}

static tt_status
number_features(planner *plan)
{
    struct tt_csv_columns *out = plan->out;
    int categories = 0;
    out->hash_bits = plan->csv.hash_bits > 0 ? plan->csv.hash_bits : (uint32_t)TT_CSV_HASH_BITS;
    out->log_numeric = plan->csv.log_numeric;
    for (uint32_t i = 0; i < out->count; i++) {
        tti_csv_column *column = &out->column[i];
        column->seed = i + 1;
        if (column->kind == TTI_CSV_NUMERIC)
            column->feature = out->numeric_count++;
        categories |= column->kind == TTI_CSV_CATEGORICAL;
    }
    out->width = out->numeric_count + (categories ? 1u << out->hash_bits : 0);
    if (out->width > 0)
        return TT_OK;
    return tt_error_set(plan->err, TT_INVALID, plan->spec->path,
                        "name columns in data.csv.numeric or data.csv.categorical",
                        "no column is left to be a feature");
}

static tt_status
plan_training(planner *plan)
{
    const tt_csv_spec *csv = &plan->csv;
    TT_TRY(mark_list(plan, "data.csv.label", csv->label != NULL ? csv->label : "1", TTI_CSV_LABEL));
    uint32_t labels = 0;
    for (uint32_t i = 0; i < plan->out->count; i++)
        labels += plan->out->column[i].kind == TTI_CSV_LABEL;
    if (labels != 1)
        return tt_error_set(plan->err, TT_INVALID, plan->spec->path,
                            "name one column in data.csv.label", "%u columns are labels", labels);
    TT_TRY(mark_list(plan, "data.csv.ignore", csv->ignore, TTI_CSV_IGNORED));
    TT_TRY(mark_list(plan, "data.csv.numeric", csv->numeric, TTI_CSV_NUMERIC));
    TT_TRY(mark_list(plan, "data.csv.categorical", csv->categorical, TTI_CSV_CATEGORICAL));
    if (csv->numeric == NULL && csv->categorical == NULL)
        choose_by_content(plan);
    return number_features(plan);
}

// ---- test data --------------------------------------------------------------------------------

// The column of training that this one is, told by number: without its label, the columns behind it
// move up.
static uint32_t
by_number(const planner *plan, uint32_t column)
{
    const struct tt_csv_columns *like = plan->spec->like->columns;
    if (plan->out->count == like->count)
        return column;
    for (uint32_t i = 0; i < column; i++)
        if (like->column[i].kind == TTI_CSV_LABEL)
            return column - 1;
    return column;
}

static tt_status
check_count(const planner *plan)
{
    uint32_t count = plan->out->count, expected = plan->spec->like->columns->count;
    if (count == expected || (plan->unlabelled && count + 1 == expected))
        return TT_OK;
    char without[64] = "";
    if (plan->unlabelled)
        (void)snprintf(without, sizeof without, ", or %u without the label", expected - 1);
    return tt_error_set(plan->err, TT_INVALID, plan->spec->path,
                        "write the same columns in both files",
                        "%u columns; the training data has %u%s", count, expected, without);
}

// Columns by name that training does not know at all.
static void
list_unknown(struct tt_csv_columns *out, const struct tt_csv_columns *like)
{
    size_t used = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        const char *name = out->column[i].name != NULL ? out->column[i].name : "";
        if (out->column[i].seed != 0 || find_name(like, name, strlen(name)) != UINT32_MAX)
            continue;
        int n = snprintf(out->unknown_names + used, sizeof out->unknown_names - used, "%s%s",
                         out->unknown_count++ > 0 ? ", " : "", name);
        used = TT_MIN(used + (size_t)n, sizeof out->unknown_names - 1);
    }
}

// As in training, column by column: by name where both files have a header, else by number.
static tt_status
plan_test(planner *plan)
{
    struct tt_csv_columns *out = plan->out;
    const struct tt_csv_columns *like = plan->spec->like->columns;
    int by_name = out->header && like->header;
    if (!by_name)
        TT_TRY(check_count(plan));
    for (uint32_t i = 0; i < like->count; i++) {
        const tti_csv_column *column = &like->column[i];
        int is_label = column->kind == TTI_CSV_LABEL;
        if (column->kind == TTI_CSV_IGNORED || (is_label && plan->unlabelled))
            continue;
        const char *name = column->name != NULL ? column->name : "";
        uint32_t at = by_name ? find_name(out, name, strlen(name)) : by_number(plan, i);
        if (at == UINT32_MAX)
            return tt_error_set(plan->err, TT_INVALID, plan->spec->path,
                                "write the same columns in both files",
                                "no column '%s', which the training data has", name);
        out->column[at].kind = column->kind;
        out->column[at].feature = column->feature;
        out->column[at].seed = column->seed;
    }
    if (by_name)
        list_unknown(out, like);
    out->log_numeric = like->log_numeric;
    out->numeric_count = like->numeric_count;
    out->hash_bits = like->hash_bits;
    out->width = like->width;
    return TT_OK;
}

tt_status
tti_csv_columns_plan(const tt_data_spec *spec,
                     const tti_text_block *block,
                     struct tt_csv_columns *out,
                     tt_error *err)
{
    planner plan = {.spec = spec, .out = out, .err = err, .unlabelled = block->unlabelled};
    if (spec->csv != NULL)
        plan.csv = *spec->csv;
    if (spec->like != NULL && spec->like->columns == NULL)
        return tt_error_set(err, TT_INVALID, spec->path, "read both in one format",
                            "is CSV text, which the training data is not");
    tt_status status = copy_sample(&plan, block);
    if (status == TT_OK)
        status = read_first_line(&plan);
    if (status == TT_OK)
        status = spec->like != NULL ? plan_test(&plan) : plan_training(&plan);
    tt_mem_free(plan.text);
    return status;
}

// ---- further files ----------------------------------------------------------------------------

static const char *
name_of(const struct tt_csv_columns *columns, uint32_t at)
{
    return columns->column[at].name != NULL ? columns->column[at].name : "";
}

static tt_status
compare_columns(const planner *plan, const struct tt_csv_columns *first)
{
    static const char advice[] = "write the same columns in the same order in all files";
    const struct tt_csv_columns *out = plan->out;
    const char *first_path = plan->spec->paths[0];
    char place[TTI_PLACE_SIZE], missing[96] = "";
    tti_place(place, plan->spec->path, "1");
    if (out->header != first->header)
        return tt_error_set(plan->err, TT_INVALID, place,
                            "write a header in all files or in none, or set data.csv.header",
                            out->header ? "the columns are named here; %.200s has no header"
                                        : "no header; %.200s has one",
                            first_path);
    uint32_t both = TT_MIN(out->count, first->count);
    for (uint32_t i = 0; out->header && i < both; i++)
        if (strcmp(name_of(out, i), name_of(first, i)) != 0)
            return tt_error_set(plan->err, TT_INVALID, place, advice,
                                "column %u is '%.60s'; in %.200s it is '%.60s'", i + 1,
                                name_of(out, i), first_path, name_of(first, i));
    if (out->count == first->count)
        return TT_OK;
    if (out->header)
        (void)snprintf(missing, sizeof missing, " ('%.60s' is %s)",
                       name_of(out->count < first->count ? first : out, both),
                       out->count < first->count ? "missing" : "one more");
    return tt_error_set(plan->err, TT_INVALID, place, advice, "%u columns%s; %.200s has %u",
                        out->count, missing, first_path, first->count);
}

tt_status
tti_csv_columns_check(const tt_data_spec *spec,
                      const char *path,
                      const tti_text_block *block,
                      const struct tt_csv_columns *planned,
                      tt_error *err)
{
    tt_data_spec here = *spec;
    struct tt_csv_columns columns = {0};
    planner plan = {.spec = &here, .out = &columns, .err = err, .unlabelled = block->unlabelled};
    here.path = path;
    if (spec->csv != NULL)
        plan.csv = *spec->csv;
    plan.csv.delimiter = planned->delimiter;
    tt_status status = copy_sample(&plan, block);
    if (status == TT_OK)
        status = read_first_line(&plan);
    if (status == TT_OK)
        status = compare_columns(&plan, planned);
    tt_mem_free(plan.text);
    free_columns(&columns);
    return status;
}

// ---- a saved layout ---------------------------------------------------------------------------

static tt_status
copy_names(planner *plan, const tt_csv_layout *layout)
{
    for (uint32_t i = 0; layout->names != NULL && i < layout->column_count; i++) {
        tti_csv_field field = {.begin = (char *)(uintptr_t)layout->names[i],
                               .size = strlen(layout->names[i])};
        name_column(plan->out, &field, i);
        if (plan->out->column[i].name == NULL)
            return no_memory(plan);
    }
    return TT_OK;
}

tt_status
tti_csv_columns_restore(const tt_csv_layout *layout,
                        const char *where,
                        struct tt_csv_columns *out,
                        tt_error *err)
{
    tt_data_spec spec = {.path = where};
    planner plan = {.spec = &spec, .csv = layout->spec, .out = out, .err = err};
    if (layout->column_count < 2 || layout->column_count > COLUMNS_MAX ||
        layout->spec.hash_bits < 1 || layout->spec.hash_bits > TT_CSV_HASH_BITS_MAX ||
        layout->spec.delimiter == 0 || layout->spec.numeric == NULL ||
        layout->spec.categorical == NULL)
        return tt_error_set(err, TT_INVALID, where, NULL, "the columns of the data are not whole");
    out->count = layout->column_count;
    out->delimiter = layout->spec.delimiter;
    out->header = layout->names != NULL;
    out->column = tt_mem_zalloc(out->count, sizeof *out->column);
    if (out->column == NULL)
        return no_memory(&plan);
    TT_TRY(plan_training(&plan)); // by number: there are no names yet
    return copy_names(&plan, layout);
}
