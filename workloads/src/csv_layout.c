// The columns of CSV text in words, to be saved with a model.
#include "csv_columns.h"
#include <string.h>

enum { RANGE_BYTES = 24 }; // "1048576-1048576,"

// The columns of a kind as numbers and ranges from 1: "2-14,16".
static char *
list_columns(const struct tt_csv_columns *columns, tti_csv_kind kind)
{
    uint32_t ranges = 1;
    for (uint32_t i = 1; i < columns->count; i++)
        ranges += columns->column[i].kind == kind && columns->column[i - 1].kind != kind;
    size_t size = (size_t)(ranges + 1) * RANGE_BYTES, used = 0;
    char *list = tt_mem_zalloc(size, 1);
    for (uint32_t i = 0; list != NULL && i < columns->count; i++) {
        uint32_t begin = i;
        if (columns->column[i].kind != kind)
            continue;
        while (i + 1 < columns->count && columns->column[i + 1].kind == kind)
            i++;
        used += (size_t)snprintf(list + used, size - used, "%s%u", used > 0 ? "," : "", begin + 1);
        if (i > begin)
            used += (size_t)snprintf(list + used, size - used, "-%u", i + 1);
    }
    return list;
}

static int
copy_names(const struct tt_csv_columns *columns, tt_csv_layout *layout)
{
    if (!columns->header)
        return 1;
    layout->names = tt_mem_zalloc(columns->count, sizeof *layout->names);
    for (uint32_t i = 0; layout->names != NULL && i < columns->count; i++) {
        const char *name = columns->column[i].name != NULL ? columns->column[i].name : "";
        size_t size = strlen(name) + 1;
        char *copy = tt_mem_alloc(size);
        if (copy == NULL)
            return 0;
        memcpy(copy, name, size);
        layout->names[i] = copy;
    }
    return layout->names != NULL;
}

tt_status
tt_csv_layout_of(const tt_dataset *data, tt_csv_layout **out)
{
    *out = NULL;
    const struct tt_csv_columns *columns = data->columns;
    if (columns == NULL)
        return TT_INVALID;
    tt_csv_layout *layout = tt_mem_zalloc(1, sizeof *layout);
    if (layout == NULL)
        return TT_NOMEM;
    layout->column_count = columns->count;
    layout->spec = (tt_csv_spec){.label = list_columns(columns, TTI_CSV_LABEL),
                                 .numeric = list_columns(columns, TTI_CSV_NUMERIC),
                                 .categorical = list_columns(columns, TTI_CSV_CATEGORICAL),
                                 .delimiter = columns->delimiter,
                                 .hash_bits = columns->hash_bits,
                                 .log_numeric = columns->log_numeric};
    if (layout->spec.label == NULL || layout->spec.numeric == NULL ||
        layout->spec.categorical == NULL || !copy_names(columns, layout)) {
        tt_csv_layout_free(layout);
        return TT_NOMEM;
    }
    *out = layout;
    return TT_OK;
}

static void
free_text(const char *text)
{
    tt_mem_free((void *)(uintptr_t)text); // ours, const for those who read it
}

void
tt_csv_layout_free(tt_csv_layout *layout)
{
    if (layout == NULL)
        return;
    for (uint32_t i = 0; layout->names != NULL && i < layout->column_count; i++)
        free_text(layout->names[i]);
    tt_mem_free(layout->names);
    free_text(layout->spec.label);
    free_text(layout->spec.numeric);
    free_text(layout->spec.categorical);
    tt_mem_free(layout);
}

uint32_t
tt_dataset_unknown_columns(const tt_dataset *data, const char **names)
{
    *names = data->columns != NULL ? data->columns->unknown_names : "";
    return data->columns != NULL ? data->columns->unknown_count : 0;
}
