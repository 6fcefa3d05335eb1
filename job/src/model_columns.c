// The columns of CSV data as JSON. JSON is UTF-8 and headers need not be: names that are not are
// written as Latin-1, byte by byte, and "names_are" says so.
#include "model_file.h"
#include "tt/core.h"
#include <string.h>

// The bytes of a name as code points below 256.
static json_t *
latin1(const char *name)
{
    size_t size = strlen(name), used = 0;
    char *text = tt_mem_alloc(2 * size + 1);
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        unsigned byte = (unsigned char)name[i];
        if (byte >= 0x80)
            text[used++] = (char)(0xc0 | byte >> 6);
        text[used++] = (char)(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
    json_t *item = json_stringn(text, used);
    tt_mem_free(text);
    return item;
}

// The way back, in place.
static void
from_latin1(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        unsigned byte = (unsigned char)*from;
        if (byte >= 0xc0 && from[1] != '\0')
            byte = (byte & 3) << 6 | ((unsigned char)*++from & 0x3f);
        *to++ = (char)byte;
    }
    *to = '\0';
}

static int
all_utf8(const tt_csv_layout *layout)
{
    for (uint32_t i = 0; i < layout->column_count; i++) {
        json_t *item = json_string(layout->names[i]);
        if (item == NULL)
            return 0;
        json_decref(item);
    }
    return 1;
}

json_t *
tti_columns_to_json(const tt_csv_layout *layout)
{
    const tt_csv_spec *spec = &layout->spec;
    char delimiter[2] = {spec->delimiter, '\0'};
    json_t *object = json_pack(
        "{s:I, s:s, s:s, s:s, s:s, s:I, s:b}", "columns", (json_int_t)layout->column_count, "label",
        spec->label, "numeric", spec->numeric, "categorical", spec->categorical, "delimiter",
        delimiter, "hash_bits", (json_int_t)spec->hash_bits, "log_numeric", spec->log_numeric);
    if (object == NULL || layout->names == NULL)
        return object;
    int utf8 = all_utf8(layout);
    json_t *names = json_array();
    int failed = json_object_set_new(object, "names_are", json_string(utf8 ? "utf-8" : "latin-1"));
    for (uint32_t i = 0; i < layout->column_count; i++)
        failed |= json_array_append_new(names, utf8 ? json_string(layout->names[i])
                                                    : latin1(layout->names[i]));
    failed |= json_object_set_new(object, "names", names);
    if (failed == 0)
        return object;
    json_decref(object);
    return NULL;
}

static char *
copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *out = tt_mem_alloc(size);
    if (out != NULL)
        memcpy(out, text, size);
    return out;
}

static int
take_names(const json_t *object, tt_csv_layout *layout)
{
    const json_t *names = json_object_get(object, "names");
    const char *are = json_string_value(json_object_get(object, "names_are"));
    if (names == NULL)
        return 1;
    if (json_array_size(names) != layout->column_count)
        return 0;
    layout->names = tt_mem_zalloc(layout->column_count, sizeof *layout->names);
    for (uint32_t i = 0; layout->names != NULL && i < layout->column_count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        char *own = name != NULL ? copy(name) : NULL;
        if (own == NULL)
            return 0;
        if (are != NULL && strcmp(are, "latin-1") == 0)
            from_latin1(own);
        layout->names[i] = own;
    }
    return layout->names != NULL;
}

tt_csv_layout *
tti_columns_from_json(const json_t *object)
{
    json_int_t count, hash_bits;
    const char *label, *numeric, *categorical, *delimiter;
    int log_numeric;
    if (json_unpack((json_t *)(uintptr_t)object, "{s:I, s:s, s:s, s:s, s:s, s:I, s:b}", "columns",
                    &count, "label", &label, "numeric", &numeric, "categorical", &categorical,
                    "delimiter", &delimiter, "hash_bits", &hash_bits, "log_numeric",
                    &log_numeric) != 0)
        return NULL;
    if (count < 1 || count > UINT32_MAX || hash_bits < 1 || hash_bits > TT_CSV_HASH_BITS_MAX ||
        strlen(delimiter) != 1)
        return NULL;
    tt_csv_layout *layout = tt_mem_zalloc(1, sizeof *layout);
    if (layout == NULL)
        return NULL;
    layout->column_count = (uint32_t)count;
    layout->spec = (tt_csv_spec){.label = copy(label),
                                 .numeric = copy(numeric),
                                 .categorical = copy(categorical),
                                 .delimiter = delimiter[0],
                                 .hash_bits = (uint32_t)hash_bits,
                                 .log_numeric = log_numeric};
    if (layout->spec.label != NULL && layout->spec.numeric != NULL &&
        layout->spec.categorical != NULL && take_names(object, layout))
        return layout;
    tt_csv_layout_free(layout);
    return NULL;
}
