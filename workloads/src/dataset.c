// Opening a data set by format, and its end of life.
#include "data_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const tti_reader readers[] = {
    {"libsvm", tti_libsvm_open},
    {"csv", tti_csv_open},
    {"idx", tti_idx_open},
};

const char *
tt_data_format_name(size_t format_index)
{
    return format_index < TT_COUNT_OF(readers) ? readers[format_index].name : NULL;
}

static const tti_reader *
find_reader(const char *name)
{
    for (size_t i = 0; i < TT_COUNT_OF(readers); i++)
        if (name != NULL && strcmp(readers[i].name, name) == 0)
            return &readers[i];
    return NULL;
}

static void
list_formats(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < TT_COUNT_OF(readers) && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", readers[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

// One file as a list of one. 0: no file, or one without a name.
static int
list_paths(tt_data_spec *spec)
{
    if (spec->paths == NULL) {
        spec->paths = &spec->path;
        spec->path_count = 1;
    }
    if (spec->label_paths == NULL && spec->labels != NULL) {
        spec->label_paths = &spec->labels;
        spec->label_path_count = 1;
    }
    for (size_t i = 0; i < spec->path_count; i++)
        if (spec->paths[i] == NULL || spec->paths[i][0] == '\0')
            return 0;
    spec->path = spec->path_count > 0 ? spec->paths[0] : NULL;
    return spec->path_count > 0;
}

tt_status
tt_dataset_open(const tt_data_spec *given, tt_dataset **out, tt_error *err)
{
    *out = NULL;
    tt_data_spec listed = *given, *spec = &listed;
    int has_files = list_paths(spec);
    const tti_reader *reader = find_reader(spec->format);
    if (reader == NULL) {
        char names[128];
        list_formats(names, sizeof names);
        return tt_error_set(err, TT_INVALID, spec->path, NULL,
                            "data format must be one of %s, not '%s'", names,
                            spec->format != NULL ? spec->format : "");
    }
    if (!has_files)
        return tt_error_set(err, TT_INVALID, NULL, "name the file to read", "no data file given");
    if (spec->feature_count > TTI_FEATURES_MAX)
        return tt_error_set(err, TT_RANGE, spec->path, NULL,
                            "the number of features must be at most %u, not %u", TTI_FEATURES_MAX,
                            spec->feature_count);
    tt_dataset *data = tt_mem_zalloc(1, sizeof *data);
    if (data == NULL)
        return tt_error_set(err, TT_NOMEM, spec->path, NULL, "no memory for a data set");
    tt_status status = reader->open(spec, data, err);
    if (status != TT_OK) {
        tt_dataset_close(data);
        return status;
    }
    *out = data;
    return TT_OK;
}

void
tt_dataset_close(tt_dataset *data)
{
    if (data == NULL)
        return;
    tt_mem_free(data->label);
    tt_mem_free(data->row_begin);
    tt_mem_free(data->index);
    tt_mem_free(data->value);
    tt_mem_free(data->bytes);
    tt_mem_free(data->floats);
    tti_csv_columns_close(data->columns);
    tt_mem_free(data);
}

int
tti_thread_count(int threads)
{
    enum { THREADS_MAX = 256 };
    int count = threads > 0 ? threads : tt_thread_processor_count();
    return TT_MIN(count, (int)THREADS_MAX);
}

void
tti_place(char place[TTI_PLACE_SIZE], const char *path, const char *suffix_format, ...)
{
    char suffix[96];
    va_list args;
    va_start(args, suffix_format);
    (void)vsnprintf(suffix, sizeof suffix, suffix_format, args);
    va_end(args);
    size_t room = TTI_PLACE_SIZE - 1 - strlen(suffix) - 1, length = strlen(path);
    const char *dots = length > room ? "..." : "";
    const char *tail = length > room ? path + length - (room - 3) : path;
    (void)snprintf(place, TTI_PLACE_SIZE, "%s%s%s%s", dots, tail, suffix[0] != '\0' ? ":" : "",
                   suffix);
}

void
tti_place_of_all(char place[TTI_PLACE_SIZE], const char *const *paths, size_t path_count)
{
    if (path_count > 1)
        (void)snprintf(place, TTI_PLACE_SIZE, "%.280s and %zu more file%s", paths[0],
                       path_count - 1, path_count > 2 ? "s" : "");
    else
        (void)snprintf(place, TTI_PLACE_SIZE, "%s", paths[0]);
}

void
tti_unknown_label_add(tti_unknown_label *unknown, double label, uint64_t rows)
{
    *(unknown->label == label ? &unknown->rows : &unknown->other_rows) += rows;
}

tt_status
tti_unknown_label_report(const tti_unknown_label *unknown, int cut_short, tt_error *err)
{
    char others[64] = "";
    if (unknown->other_rows > 0)
        (void)snprintf(others, sizeof others, "; %llu more with other such labels",
                       (unsigned long long)unknown->other_rows);
    return tt_error_set(err, TT_INVALID, unknown->place, "train and test with the same labels",
                        "label %.9g does not occur in the training data (%s%llu %s it%s)",
                        unknown->label, cut_short ? "at least " : "",
                        (unsigned long long)unknown->rows,
                        unknown->rows == 1 ? "row has" : "rows have", others);
}

int
tti_class_of(const tt_dataset *classes, double label)
{
    for (uint32_t i = 0; i < classes->class_count; i++)
        if (classes->class_label[i] == label)
            return (int)i;
    return -1;
}
