// Saving a model as safetensors: an 8-byte little-endian length, a JSON header, raw float32.
// Written beside its place and then renamed, so that a reader finds the old file or the new one.
#include "job_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static tt_status
write_failed(const char *path, tt_error *err)
{
    return tt_error_set(err, TT_IO, path,
                        errno == ENOSPC ? "free some space (df -h) and run again"
                                        : "check the directory's permissions",
                        "cannot write the model: %s", tt_errno_text(errno));
}

static int
header_text(const tt_job *job, char *out, size_t size)
{
    unsigned long long rows = job->table.rows, width = job->table.width;
    uint64_t features = rows - (job->spec.bias ? 1 : 0),
             weight_bytes = features * width * sizeof(float);
    char bias[160] = "";
    if (job->spec.bias)
        (void)snprintf(
            bias, sizeof bias,
            ",\"bias\":{\"dtype\":\"F32\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}", width,
            (unsigned long long)weight_bytes,
            (unsigned long long)(weight_bytes + width * sizeof(float)));
    int length = snprintf(
        out, size,
        "{\"__metadata__\":{\"format\":\"trimtab\",\"model\":\"%s\",\"version\":\"%s\"},"
        "\"weight\":{\"dtype\":\"F32\",\"shape\":[%llu,%llu],\"data_offsets\":[0,%llu]}%s}",
        tt_model_kind(job->model), tt_job_version(), (unsigned long long)features, width,
        (unsigned long long)weight_bytes, bias);
    // The data begins 8-byte aligned: the header is padded with spaces.
    while (length > 0 && length % 8 != 0 && (size_t)length + 1 < size)
        out[length++] = ' ';
    return length;
}

// 0, or -1 with errno.
static int
write_file(const char *path, const tt_job *job, const float *params)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return -1;
    char header[1024];
    uint64_t length = (uint64_t)header_text(job, header, sizeof header);
    size_t floats = (size_t)job->table.rows * job->table.width;
    int good = fwrite(&length, sizeof length, 1, file) == 1 &&
               fwrite(header, length, 1, file) == 1 &&
               fwrite(params, sizeof(float), floats, file) == floats && fflush(file) == 0 &&
               fsync(fileno(file)) == 0;
    int reason = errno;
    if (fclose(file) != 0 && good) {
        good = 0;
        reason = errno;
    }
    errno = reason;
    return good ? 0 : -1;
}

tt_status
tti_model_save(const char *path, const tt_job *job, const float *params, tt_error *err)
{
    char beside[1024];
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    if (write_file(beside, job, params) == 0 && rename(beside, path) == 0)
        return TT_OK;
    tt_status status = write_failed(path, err);
    (void)unlink(beside);
    return status;
}
