// Reading a model back: every byte of the file is accounted for before one of them is used.
#include "model_file.h"
#include "tt/core.h"
#include "tt/job.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES_MAX ((uint64_t)100 << 20) // as the reference implementation has it

static const char not_a_model[] =
    "name a model.safetensors that trimtab run saved, or its run directory";
static const char fetch_again[] =
    "copy it again from where it was trained, or train again: trimtab run RUN/job.yaml";

typedef struct model_loader {
    const char *path;
    int fd;
    uint64_t file_bytes, data_begin;
    char *text; // of the header
    json_t *header;
    const json_t *metadata; // lent by it
    tti_saved_model *out;
    tt_error *err;
} model_loader;

static tt_status
damaged(const model_loader *load, const char *what)
{
    return tt_error_set(load->err, TT_CORRUPT, load->path, fetch_again, "the model is damaged: %s",
                        what);
}

static tt_status
open_model(model_loader *load)
{
    struct stat info;
    load->fd = open(load->path, O_RDONLY | O_CLOEXEC);
    if (load->fd < 0) {
        int reason = errno;
        tt_status status = reason == ENOENT || reason == ENOTDIR ? TT_NOTFOUND
                           : reason == EACCES                    ? TT_INVALID
                                                                 : TT_IO;
        return tt_error_set(load->err, status, load->path,
                            status == TT_NOTFOUND ? "trimtab runs lists the runs there are"
                                                  : "make it readable",
                            "cannot open the model: %s", tt_errno_text(reason));
    }
    if (fstat(load->fd, &info) != 0 || S_ISDIR(info.st_mode))
        return tt_error_set(load->err, TT_INVALID, load->path, not_a_model, "is a directory");
    load->file_bytes = (uint64_t)info.st_size;
    return TT_OK;
}

static tt_status
read_bytes(const model_loader *load, void *buffer, size_t size)
{
    char *to = buffer;
    while (size > 0) {
        ssize_t n = read(load->fd, to, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tt_error_set(load->err, TT_IO, load->path, "check the disk or the network share",
                                "cannot read the model: %s", tt_errno_text(errno));
        if (n == 0)
            return damaged(load, "the file ends in the middle");
        to += n;
        size -= (size_t)n;
    }
    return TT_OK;
}

// ---- the header -------------------------------------------------------------------------------

static tt_status
read_header(model_loader *load)
{
    uint64_t length = 0;
    if (load->file_bytes >= sizeof length)
        TT_TRY(read_bytes(load, &length, sizeof length));
    if (length < 2 || length > HEADER_BYTES_MAX)
        return tt_error_set(load->err, TT_INVALID, load->path, not_a_model,
                            load->file_bytes == 0 ? "the file is empty"
                                                  : "is not a model: no safetensors header");
    load->data_begin = sizeof length + length;
    if (load->data_begin > load->file_bytes)
        return damaged(load, "the file ends inside its header");
    load->text = tt_mem_zalloc((size_t)length + 1, 1);
    if (load->text == NULL)
        return tt_error_set(load->err, TT_NOMEM, load->path, NULL, "no memory for the model");
    TT_TRY(read_bytes(load, load->text, (size_t)length));
    load->header = json_loadb(load->text, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(load->header))
        return load->text[0] == '{' ? damaged(load, "its header is not JSON")
                                    : tt_error_set(load->err, TT_INVALID, load->path, not_a_model,
                                                   "is not a model: no safetensors header");
    load->metadata = json_object_get(load->header, "__metadata__");
    return TT_OK;
}

static const char *
text_of(const model_loader *load, const char *key)
{
    return json_string_value(json_object_get(load->metadata, key));
}

static tt_status
check_version(const model_loader *load)
{
    const char *format = text_of(load, "format"), *version = text_of(load, "format_version");
    const char *program = text_of(load, "trimtab_version");
    if (format == NULL || strcmp(format, "trimtab") != 0)
        return tt_error_set(load->err, TT_INVALID, load->path, not_a_model,
                            "holds tensors, but not a model of trimtab");
    if (version == NULL)
        return tt_error_set(load->err, TT_UNSUPPORTED, load->path,
                            "train again with this trimtab: trimtab run RUN/job.yaml",
                            "was saved by a trimtab whose models did not say how to use them");
    if (strcmp(version, TTI_MODEL_FORMAT_VERSION) != 0)
        return tt_error_set(load->err, TT_UNSUPPORTED, load->path,
                            "use that trimtab or a newer one, or train again with this one",
                            "has model format %.20s, saved by trimtab %.20s; this trimtab (%s) "
                            "reads format " TTI_MODEL_FORMAT_VERSION,
                            version, program != NULL ? program : "of unknown version",
                            tt_job_version());
    return TT_OK;
}

// ---- what the metadata say --------------------------------------------------------------------

static tt_status
read_classes(const model_loader *load)
{
    const char *text = text_of(load, "classes");
    json_t *list = text != NULL ? json_loads(text, 0, NULL) : NULL;
    size_t count = json_array_size(list), good = 0;
    for (size_t i = 0; i < count && count <= TT_COUNT_OF(load->out->class_label); i++) {
        const json_t *label = json_array_get(list, i);
        load->out->class_label[i] = json_number_value(label);
        good += json_is_number(label);
    }
    json_decref(list);
    load->out->shape.class_count = (uint32_t)good;
    load->out->shape.class_label = load->out->class_label;
    return count >= 2 && good == count ? TT_OK : damaged(load, "its classes are not numbers");
}

static int
read_number(const model_loader *load, const char *key, double min, double max, double *value)
{
    const char *text = text_of(load, key);
    char *end;
    *value = text != NULL ? strtod(text, &end) : -1;
    return text != NULL && end != text && *end == '\0' && *value >= min && *value <= max;
}

static tt_status
read_data(const model_loader *load)
{
    tti_saved_model *out = load->out;
    const char *format = text_of(load, "data_format"), *csv = text_of(load, "csv");
    double scale = 0;
    if (format == NULL || strlen(format) >= sizeof out->data_format)
        return damaged(load, "its data format is not there");
    (void)snprintf(out->data_format, sizeof out->data_format, "%s", format);
    if (json_object_get(load->metadata, "scale") != NULL) {
        out->shape.layout = TT_DATA_DENSE_U8;
        if (!read_number(load, "scale", 0, 1e30, &scale))
            return damaged(load, "its scale is not a number");
        out->shape.scale = (float)scale;
    }
    if ((strcmp(format, "csv") == 0) != (csv != NULL))
        return damaged(load, "its columns are not there");
    if (csv == NULL)
        return TT_OK;
    json_t *columns = json_loads(csv, JSON_REJECT_DUPLICATES, NULL);
    out->csv = tti_columns_from_json(columns);
    json_decref(columns);
    out->shape.csv = out->csv;
    return out->csv != NULL ? TT_OK : damaged(load, "its columns cannot be understood");
}

static tt_status
read_metadata(const model_loader *load)
{
    tti_saved_model *out = load->out;
    const char *kind = text_of(load, "model"), *bias = text_of(load, "bias");
    double features;
    if (kind == NULL || strlen(kind) >= sizeof out->kind)
        return damaged(load, "its kind is not there");
    (void)snprintf(out->kind, sizeof out->kind, "%s", kind);
    if (bias == NULL || (strcmp(bias, "on") != 0 && strcmp(bias, "off") != 0))
        return damaged(load, "it does not say whether there is a bias");
    out->bias = strcmp(bias, "on") == 0;
    if (!read_number(load, "features", 1, 2147483646, &features))
        return damaged(load, "its number of features is not there");
    out->shape.feature_count = (uint32_t)features;
    if (!read_number(load, "l2", 0, 1e300, &out->l2))
        return damaged(load, "its l2 is not a number");
    TT_TRY(read_classes(load));
    return read_data(load);
}

// ---- the tensors ------------------------------------------------------------------------------

// Whether tensor `name` is float32 [rows][width] (or [width] when rows is 0) at `begin`.
static int
has_tensor(
    const model_loader *load, const char *name, uint64_t rows, uint64_t width, uint64_t begin)
{
    const json_t *tensor = json_object_get(load->header, name);
    const json_t *shape = json_object_get(tensor, "shape"),
                 *offsets = json_object_get(tensor, "data_offsets");
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    size_t rank = rows > 0 ? 2 : 1;
    uint64_t bytes = (rows > 0 ? rows : 1) * width * sizeof(float);
    if (type == NULL || strcmp(type, "F32") != 0 || json_array_size(shape) != rank ||
        json_array_size(offsets) != 2)
        return 0;
    return (rank == 1 || (uint64_t)json_integer_value(json_array_get(shape, 0)) == rows) &&
           (uint64_t)json_integer_value(json_array_get(shape, rank - 1)) == width &&
           (uint64_t)json_integer_value(json_array_get(offsets, 0)) == begin &&
           (uint64_t)json_integer_value(json_array_get(offsets, 1)) == begin + bytes;
}

static tt_status
read_params(const model_loader *load)
{
    tti_saved_model *out = load->out;
    const json_t *shape = json_object_get(json_object_get(load->header, "weight"), "shape");
    json_int_t width = json_integer_value(json_array_get(shape, 1));
    uint64_t features = out->shape.feature_count;
    if (width < 1 || width > (json_int_t)out->shape.class_count)
        return damaged(load, "the shape of its weights is not that of its classes");
    out->width = (uint32_t)width;
    uint64_t weights = features * out->width, floats = weights + (out->bias ? out->width : 0);
    if (!has_tensor(load, "weight", features, out->width, 0) ||
        (out->bias && !has_tensor(load, "bias", 0, out->width, weights * sizeof(float))))
        return damaged(load, "its tensors are not laid out as it says");
    char what[128];
    (void)snprintf(what, sizeof what, "%llu bytes of weights; its header announces %llu",
                   (unsigned long long)(load->file_bytes - load->data_begin),
                   (unsigned long long)(floats * sizeof(float)));
    if (load->file_bytes - load->data_begin != floats * sizeof(float))
        return damaged(load, what);
    out->params = tt_mem_zalloc_vector((size_t)floats, sizeof *out->params);
    if (out->params == NULL)
        return tt_error_set(load->err, TT_NOMEM, load->path, NULL, "no memory for %llu weights",
                            (unsigned long long)floats);
    TT_TRY(read_bytes(load, out->params, (size_t)floats * sizeof *out->params));
    const char *expected = text_of(load, "crc32");
    char actual[16];
    (void)snprintf(
        actual, sizeof actual, "%08x",
        tti_model_checksum(load->metadata, out->params, (size_t)floats * sizeof *out->params));
    if (expected == NULL || strcmp(expected, actual) != 0)
        return damaged(load, "its bytes are not those that were saved (checksum)");
    return TT_OK;
}

tt_status
tti_saved_model_open(const char *path, tti_saved_model *out, tt_error *err)
{
    *out = (tti_saved_model){.shape.layout = TT_DATA_SPARSE};
    model_loader load = {.path = path, .fd = -1, .out = out, .err = err};
    tt_status status = open_model(&load);
    if (status == TT_OK)
        status = read_header(&load);
    if (status == TT_OK)
        status = check_version(&load);
    if (status == TT_OK)
        status = read_metadata(&load);
    if (status == TT_OK)
        status = read_params(&load);
    json_decref(load.header);
    tt_mem_free(load.text);
    if (load.fd >= 0)
        (void)close(load.fd);
    return status;
}

void
tti_saved_model_close(tti_saved_model *model)
{
    tt_mem_free(model->params);
    tt_csv_layout_free(model->csv);
    *model = (tti_saved_model){0};
}
