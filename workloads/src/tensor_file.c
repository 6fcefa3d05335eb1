// Tensors as safetensors: a 64-bit little-endian length, a JSON header, raw numbers.
#include "tt/workloads_tensor.h"
#include "whole_file.h"
#include <errno.h>
#include <string.h>
#include <zlib.h>

enum { NAMES_MAX = 16, ENTRY_BYTES = 200, HEADER_ALIGNMENT = 8 };

uint64_t
tt_tensor_bytes(const tt_tensor *tensor)
{
    static const uint64_t sizes[] = {sizeof(float), sizeof(double)};
    if (tensor->type == TT_TENSOR_TEXT)
        return strlen(tensor->data);
    uint64_t count = 1;
    for (uint32_t d = 0; d < tensor->rank; d++)
        count *= tensor->shape[d];
    return count * sizes[tensor->type];
}

uint32_t
tt_tensor_crc32(uint32_t crc, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc, bytes, size);
}

static size_t
header_entry(const tt_tensor *tensor, uint64_t begin, char *text, size_t size)
{
    static const char *const types[] = {"F32", "F64"};
    char shape[64] = "";
    size_t used = 0;
    for (uint32_t d = 0; d < tensor->rank; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%llu", d > 0 ? "," : "",
                                 (unsigned long long)tensor->shape[d]);
    int n = snprintf(text, size,
                     ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}",
                     tensor->name, types[tensor->type], shape, (unsigned long long)begin,
                     (unsigned long long)(begin + tt_tensor_bytes(tensor)));
    TT_ASSERT(n > 0 && (size_t)n < size);
    return (size_t)n;
}

// The header's text, for the caller to free; the data begin aligned: it is padded with blanks.
static char *
header_text(const char *metadata, const tt_tensor *tensors, size_t count, size_t *length)
{
    size_t size = strlen(metadata) + count * ENTRY_BYTES + 64;
    char *text = tt_mem_alloc(size);
    if (text == NULL)
        return NULL;
    size_t used = (size_t)snprintf(text, size, "{\"__metadata__\":%s", metadata);
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        used += header_entry(&tensors[i], offset, text + used, size - used);
        offset += tt_tensor_bytes(&tensors[i]);
    }
    text[used++] = '}';
    while (used % HEADER_ALIGNMENT != 0)
        text[used++] = ' ';
    *length = used;
    return text;
}

tt_status
tt_tensors_save_safetensors(
    const char *path, const char *metadata, const tt_tensor *tensors, size_t count, tt_error *err)
{
    TT_ASSERT(count <= NAMES_MAX);
    size_t length;
    char *header = header_text(metadata, tensors, count, &length);
    if (header == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for the header of the file");
    uint64_t prefix = length;
    tti_whole_file file = {0};
    tt_status status = tti_whole_file_open(&file, path, err);
    if (status == TT_OK)
        status = tti_whole_file_write(&file, &prefix, sizeof prefix, err);
    if (status == TT_OK)
        status = tti_whole_file_write(&file, header, length, err);
    for (size_t i = 0; i < count && status == TT_OK; i++)
        status =
            tti_whole_file_write(&file, tensors[i].data, (size_t)tt_tensor_bytes(&tensors[i]), err);
    if (status == TT_OK)
        status = tti_whole_file_commit(&file, err);
    tti_whole_file_close(&file);
    int reason = errno;
    tt_mem_free(header);
    errno = reason;
    return status;
}
