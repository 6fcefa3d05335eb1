// Files for tests: written under the build's temporary directory, removed by the test.
#ifndef TT_TEST_TEMPORARY_FILE_H
#define TT_TEST_TEMPORARY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A new directory, unique to this process; remove with remove_directory.
static inline char *
make_directory(char path[64])
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, 64, "%.40s/tt-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(path) == NULL)
        abort();
    return path;
}

static inline void
write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

// All bytes of a file, for the caller to free; *size says how many.
static inline unsigned char *
read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        abort();
    long end = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc((size_t)end + 1);
    if (end < 0 || bytes == NULL || fread(bytes, 1, (size_t)end, file) != (size_t)end)
        abort();
    (void)fclose(file);
    *size = (size_t)end;
    return bytes;
}

#endif
