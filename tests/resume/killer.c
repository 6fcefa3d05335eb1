// Preloaded into trimtab: kills the process, as `kill -9` does, at the KILL_NTH-th call of
// KILL_CALL (rename, fsync, write, pwrite), before it is made or, with KILL_AFTER set, when it is
// done. `write` is counted for files only; half of a killed write's bytes are written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

// 1 when this call is the one.
static int
is_due(const char *name)
{
    const char *call = getenv("KILL_CALL"), *nth = getenv("KILL_NTH");
    if (call == NULL || nth == NULL || strcmp(call, name) != 0)
        return 0;
    return atomic_fetch_add(&calls, 1) + 1 == atoi(nth);
}

static void
die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

static int
is_file(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

int
rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    int due = is_due("rename");
    if (due && getenv("KILL_AFTER") == NULL)
        die();
    int result = real(from, to);
    if (due)
        die();
    return result;
}

int
fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    if (is_due("fsync"))
        die();
    return real(fd);
}

int
fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (is_due("fsync"))
        die();
    return real(fd);
}

ssize_t
write(int fd, const void *bytes, size_t count)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (is_file(fd) && is_due("write")) {
        (void)real(fd, bytes, count / 2);
        die();
    }
    return real(fd, bytes, count);
}

ssize_t
pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    if (is_due("pwrite")) {
        (void)real(fd, bytes, count / 2, at);
        die();
    }
    return real(fd, bytes, count, at);
}

ssize_t
pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}
