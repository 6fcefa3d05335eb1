// Which column of a table is the label, and what the others are good for.
#include "data_internal.h"
#include "data_look_internal.h"
#include <stdlib.h>
#include <string.h>

enum { CLASSES_LIKELY = 30, ROWS_TELLING = 50 };

static int
is_numeric(const tt_look_column *column)
{
    return column->values > 0 && column->numbers == column->values;
}

// Numbers that repeat: classes, and not a measure of something. Whole ones, or a few such as 0.5.
static int
tells_classes(const tt_look_column *column, uint32_t classes_max)
{
    return is_numeric(column) && column->missing == 0 && column->distinct >= 2 &&
           column->distinct <= classes_max &&
           (column->wholes == column->numbers || column->distinct <= 5) &&
           2 * column->distinct <= column->values;
}

static tt_look_label
kind_of_label(const tt_look_column *column)
{
    if (column->numbers == 0)
        return TT_LOOK_LABEL_TEXT;
    return tells_classes(column, TTI_CLASSES_MAX) ? TT_LOOK_LABEL_CLASSES
           : is_numeric(column)                   ? TT_LOOK_LABEL_REGRESSION
                                                  : TT_LOOK_LABEL_TEXT;
}

static int
has_label_name(const tt_look_column *column)
{
    static const char *const names[] = {"label",    "target",    "class",   "y",        "click",
                                        "clicked",  "labels",    "targets", "classes",  "outcome",
                                        "response", "is_click",  "churn",   "survived", "income",
                                        "default",  "diagnosis", "species", "quality",  "price"};
    for (size_t i = 0; i < TT_COUNT_OF(names); i++)
        if (strcasecmp(column->name, names[i]) == 0)
            return 1;
    return 0;
}

static tt_status
find_wanted(const tt_look *look, const char *wanted, uint32_t *column, tt_error *err)
{
    char *end;
    unsigned long number = strtoul(wanted, &end, 10);
    for (uint32_t i = 0; look->header && i < look->column_count; i++)
        if (strcmp(look->column[i].name, wanted) == 0) {
            *column = i;
            return TT_OK;
        }
    if (end != wanted && *end == '\0' && number >= 1 && number <= look->column_count) {
        *column = (uint32_t)number - 1;
        return TT_OK;
    }
    return tt_error_set(err, TT_INVALID, NULL,
                        look->header ? "name one by the header, or by number from 1"
                                     : "the file has no header: give its number, from 1",
                        "there is no column '%.60s' among %u", wanted, look->column_count);
}

tt_status
tt_look_choose_label(
    const tt_look *look, const char *wanted, uint32_t *column, tt_look_label *out, tt_error *err)
{
    uint32_t last = look->column_count - 1;
    *column = 0;
    if (wanted != NULL) {
        TT_TRY(find_wanted(look, wanted, column, err));
        *out = kind_of_label(&look->column[*column]);
        return TT_OK;
    }
    // From the back: of several such names the last is more often the label.
    for (uint32_t i = look->column_count; i-- > 0;)
        if (has_label_name(&look->column[i])) {
            *column = i;
            *out = kind_of_label(&look->column[i]);
            return TT_OK;
        }
    *out = TT_LOOK_LABEL_CLASSES;
    if (tells_classes(&look->column[0], CLASSES_LIKELY))
        return TT_OK;
    *column = last;
    if (tells_classes(&look->column[last], CLASSES_LIKELY))
        return TT_OK;
    const tt_look_column *end = &look->column[last];
    *out = end->numbers == 0 && end->distinct >= 2 && end->distinct <= CLASSES_LIKELY
               ? TT_LOOK_LABEL_TEXT
               : TT_LOOK_LABEL_NONE;
    return TT_OK;
}

tt_look_use
tt_look_column_use(const tt_look *look, uint32_t at)
{
    const tt_look_column *column = &look->column[at];
    int enough = look->lines >= ROWS_TELLING;
    if (column->distinct < 2 && enough)
        return TT_LOOK_IGNORE;
    if (is_numeric(column) || column->values == 0)
        return enough && column->increasing && column->wholes == column->numbers ? TT_LOOK_IGNORE
                                                                                 : TT_LOOK_NUMERIC;
    int all_differ = column->distinct == TT_MIN(column->values, (uint32_t)TT_LOOK_DISTINCT_MAX);
    return enough && all_differ && column->distinct == column->values ? TT_LOOK_IGNORE
                                                                      : TT_LOOK_CATEGORICAL;
}
