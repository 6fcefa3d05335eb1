// A file of memory: see memory_file.h.
#include "memory_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *
memory_file(int *descriptor)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (descriptor != NULL)
        *descriptor = file;
    return path;
}

void
memory_file_set(const void *bytes, size_t size)
{
    int file;
    (void)memory_file(&file);
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size ||
        lseek(file, 0, SEEK_SET) != 0)
        abort(); // no memory for an input
}
