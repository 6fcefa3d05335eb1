// Target: whoever reads a model that somebody has saved, or says that he has.
//
// Input: a byte; if it is even a file, else the JSON of a header, to which weights of the announced
// shape and the right checksum are added.
#include "fuzz.h"
#include "memory_file.h"
#include "model_file.h"
#include "tt/core.h"
#include "tt/job_saved.h"
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 64 << 10 };

static void
open_model(const void *file, size_t size)
{
    tt_job_model *model;
    memory_file_set(file, size);
    if (tt_job_model_open(memory_file(NULL), &model, NULL) != TT_OK)
        return;
    TT_ASSERT(strlen(tt_job_model_kind(model)) < 64 && tt_job_model_features(model) > 0);
    tt_job_model_close(model);
}

static size_t
dimension(const json_t *header, const char *tensor, size_t i)
{
    const json_t *shape = json_object_get(json_object_get(header, tensor), "shape");
    json_int_t value = json_integer_value(json_array_get(shape, i));
    return value > 0 && value < FILE_MAX ? (size_t)value : 0;
}

// The file of a header, with zeros for weights.
static void
complete(json_t *header)
{
    static uint8_t file[FILE_MAX];
    static const float zeros[FILE_MAX / sizeof(float)];
    json_t *metadata = json_object_get(header, "__metadata__");
    size_t floats = dimension(header, "weight", 0) * dimension(header, "weight", 1) +
                    dimension(header, "bias", 0);
    size_t bytes = floats * sizeof(float);
    if (bytes > sizeof file / 2)
        return;
    char sum[16];
    (void)snprintf(sum, sizeof sum, "%08x", tti_model_checksum(metadata, zeros, bytes));
    (void)json_object_set_new(metadata, "crc32", json_string(sum));
    char *text = json_dumps(header, JSON_COMPACT);
    uint64_t length = text != NULL ? strlen(text) : 0;
    if (length > 0 && length < sizeof file / 4) {
        memcpy(file, &length, sizeof length);
        memcpy(file + sizeof length, text, length);
        memset(file + sizeof length + length, 0, bytes);
        open_model(file, sizeof length + length + bytes);
    }
    free(text); // jansson's
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] % 2 == 0) {
        open_model(data + 1, size - 1);
        return 0;
    }
    json_t *header = json_loadb((const char *)data + 1, size - 1, 0, NULL);
    if (json_is_object(header) && json_is_object(json_object_get(header, "__metadata__")))
        complete(header);
    json_decref(header);
    return 0;
}
