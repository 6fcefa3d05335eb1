// Locks of open file descriptions, by fcntl.
#include "tt/core_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

tt_status
tt_lock_take(const char *path, int *out, tt_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return tt_error_set(err, errno == ENOENT || errno == ENOTDIR ? TT_NOTFOUND : TT_IO, path,
                            "free some space (df -h) or check its permissions",
                            "cannot make or open it: %s", tt_errno_text(errno));
    if (fcntl(file, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES)) {
        (void)close(file);
        return tt_error_set(err, TT_BUSY, path, NULL, "another process holds it");
    }
    *out = file;
    return TT_OK;
}

tt_lock_state
tt_lock_ask(const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return TT_LOCK_UNKNOWN;
    int answered = fcntl(file, F_OFD_GETLK, &whole) == 0;
    (void)close(file);
    if (!answered)
        return TT_LOCK_UNKNOWN;
    return whole.l_type == F_UNLCK ? TT_LOCK_FREE : TT_LOCK_HELD;
}
