// Saving a model: tensors, and in words what is needed to use them without the training data.
#include "model_file.h"
#include "job_internal.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tt_status
write_failed(const char *path, tt_error *err)
{
    return tt_error_set(err, TT_IO, path,
                        errno == ENOSPC ? "free some space (df -h) and run again"
                                        : "check the directory's permissions",
                        "cannot write the model: %s", tt_errno_text(errno));
}

static tt_status
no_memory(const char *path, tt_error *err)
{
    return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to save the model");
}

// The classes as the data label them, in the order of the columns: "[-1, 1]".
static char *
class_list(const tt_dataset *data)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < data->class_count; i++) {
        double label = data->class_label[i];
        int whole = label == floor(label) && fabs(label) < 9e15;
        (void)json_array_append_new(list,
                                    whole ? json_integer((json_int_t)label) : json_real(label));
    }
    char *text = json_dumps(list, 0);
    json_decref(list);
    return text;
}

static void set_text(json_t *metadata, const char *key, const char *format, ...) TT_PRINTF(3, 4);

static void
set_text(json_t *metadata, const char *key, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)json_object_set_new(metadata, key, json_string(text));
}

// How the data were read. Generated data are as LIBSVM text of the same rows would be.
static int
set_data(json_t *metadata, const tt_job *job)
{
    const tt_dataset *data = job->train;
    int format = job->spec.format == TTI_FORMAT_CLICKLOG ? TTI_FORMAT_LIBSVM : job->spec.format;
    char *classes = class_list(data);
    set_text(metadata, "features", "%u", data->feature_count);
    (void)json_object_set_new(metadata, "classes", json_string(classes));
    free(classes); // jansson's
    set_text(metadata, "data_format", "%s", tti_format_names[format]);
    if (data->layout == TT_DATA_DENSE_U8)
        set_text(metadata, "scale", "%.9g", (double)data->scale);
    if (data->columns == NULL)
        return 1;
    tt_csv_layout *layout;
    if (tt_csv_layout_of(data, &layout) != TT_OK)
        return 0;
    json_t *columns = tti_columns_to_json(layout);
    tt_csv_layout_free(layout);
    char *text = json_dumps(columns, JSON_COMPACT);
    int failed = json_object_set_new(metadata, "csv", json_string(text));
    json_decref(columns);
    free(text);
    return failed == 0;
}

uint32_t
tti_model_checksum(const json_t *metadata, const float *params, size_t bytes)
{
    uint32_t crc = tt_tensor_crc32(0, params, bytes);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        const char *text = json_string_value(value);
        if (text == NULL || strcmp(key, "crc32") == 0)
            continue;
        crc = tt_tensor_crc32(crc, key, strlen(key) + 1);
        crc = tt_tensor_crc32(crc, text, strlen(text) + 1);
    }
    return crc;
}

// A JSON object of strings, to be freed with free(); NULL: no memory.
static char *
metadata_text(const tt_job *job, const float *params)
{
    json_t *metadata = json_object();
    size_t bytes = (size_t)job->table.rows * job->table.width * sizeof *params;
    set_text(metadata, "format", "trimtab");
    set_text(metadata, "format_version", "%s", TTI_MODEL_FORMAT_VERSION);
    set_text(metadata, "trimtab_version", "%s", tt_job_version());
    set_text(metadata, "model", "%s", tt_model_kind(job->model));
    set_text(metadata, "bias", "%s", job->spec.bias ? "on" : "off");
    set_text(metadata, "l2", "%.17g", job->spec.l2);
    char *text = NULL;
    if (set_data(metadata, job)) {
        set_text(metadata, "crc32", "%08x", tti_model_checksum(metadata, params, bytes));
        text = json_dumps(metadata, 0);
    }
    json_decref(metadata);
    return text;
}

// Fills tensors[2]: weights, and a bias where there is one.
static size_t
parameter_tensors(const tt_job *job, const float *params, tt_tensor *tensors)
{
    uint64_t width = job->table.width, features = job->table.rows - (job->spec.bias ? 1u : 0u);
    tensors[0] = (tt_tensor){"weight", TT_TENSOR_F32, 2, {features, width}, params};
    tensors[1] = (tt_tensor){"bias", TT_TENSOR_F32, 1, {width, 0}, params + features * width};
    return job->spec.bias ? 2 : 1;
}

static tt_status
save(const char *path, int npz, const tt_job *job, const float *params, tt_error *err)
{
    tt_tensor tensors[4];
    char *metadata = metadata_text(job, params);
    if (metadata == NULL)
        return no_memory(path, err);
    size_t count = parameter_tensors(job, params, tensors);
    tt_status status;
    if (npz) {
        tensors[count++] = (tt_tensor){
            "classes", TT_TENSOR_F64, 1, {job->train->class_count, 0}, job->train->class_label};
        tensors[count++] = (tt_tensor){"metadata", TT_TENSOR_TEXT, 0, {0, 0}, metadata};
        status = tt_tensors_save_npz(path, tensors, count, err);
    } else {
        status = tt_tensors_save_safetensors(path, metadata, tensors, count, err);
    }
    if (status == TT_IO)
        status = write_failed(path, err);
    free(metadata); // jansson's
    return status;
}

tt_status
tti_model_save(const char *path, const tt_job *job, const float *params, tt_error *err)
{
    return save(path, 0, job, params, err);
}

tt_status
tti_model_save_npz(const char *path, const tt_job *job, const float *params, tt_error *err)
{
    return save(path, 1, job, params, err);
}
