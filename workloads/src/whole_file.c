// Temporary name, write, flush, rename.
#include "whole_file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static tt_status
failed(const tti_whole_file *file, int error_number, const char *doing, tt_error *err)
{
    const char *advice = "check the directory and its permissions";
    if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG)
        advice = "free some space, or write smaller or compressed data (.gz)";
    return tt_error_set(err, TT_IO, file->path, advice, "cannot %s: %s; nothing was left behind",
                        doing, tt_errno_text(error_number));
}

tt_status
tti_whole_file_open(tti_whole_file *file, const char *path, tt_error *err)
{
    enum { NAMES_MAX = 100 };
    *file = (tti_whole_file){.fd = -1, .path = path};
    size_t size = strlen(path) + 40;
    file->temporary = tt_mem_alloc(size);
    if (file->temporary == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for a file name");
    for (int i = 0; i < NAMES_MAX && file->fd < 0; i++) {
        (void)snprintf(file->temporary, size, "%s.part-%ld-%d", path, (long)getpid(), i);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd < 0 && errno != EEXIST)
            break;
    }
    return file->fd >= 0 ? TT_OK : failed(file, errno, "create the file", err);
}

tt_status
tti_whole_file_write(tti_whole_file *file, const void *bytes, size_t size, tt_error *err)
{
    const char *p = bytes;
    while (size > 0) {
        ssize_t n = write(file->fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(file, errno, "write the file", err);
        p += n;
        size -= (size_t)n;
    }
    return TT_OK;
}

tt_status
tti_whole_file_commit(tti_whole_file *file, tt_error *err)
{
    if (fdatasync(file->fd) != 0)
        return failed(file, errno, "flush the file", err);
    if (rename(file->temporary, file->path) != 0)
        return failed(file, errno, "rename the finished file", err);
    (void)close(file->fd);
    file->fd = -1;
    return TT_OK;
}

void
tti_whole_file_close(tti_whole_file *file)
{
    if (file->path == NULL)
        return;
    int reason = errno; // of the failure that brings us here
    if (file->fd >= 0) {
        (void)close(file->fd);
        (void)unlink(file->temporary);
    }
    tt_mem_free(file->temporary);
    *file = (tti_whole_file){.fd = -1};
    errno = reason;
}
