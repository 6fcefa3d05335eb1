// Runs a fuzz target over the files of the directories (or files) given as arguments: what a fuzzer
// has found to be worth keeping is tried again by every compiler and sanitizer, in seconds and
// without libFuzzer. Says how many there were; that none of them harms is the point.
#include "fuzz.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char current[4096]; // the input that is being tried, for a debugger

static int
replay_file(const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)fprintf(stderr, "replay: cannot read %s\n", path);
        if (file != NULL)
            (void)fclose(file);
        return 0;
    }
    // As large as the input and no larger, so that a sanitizer sees what is read behind it.
    size_t size = (size_t)info.st_size;
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    int is_read = bytes != NULL && fread(bytes, 1, size, file) == size;
    (void)fclose(file);
    (void)snprintf(current, sizeof current, "%s", path);
    if (is_read)
        (void)LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return is_read;
}

// How many inputs there were, or -1.
static int
replay_directory(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), tried = 0, failed = count < 0;
    for (int i = 0; i < count; i++) {
        char file[sizeof current];
        (void)snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            failed |= !replay_file(file);
            tried++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed ? -1 : tried;
}

int
main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        int is_directory = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        int tried = is_directory ? replay_directory(argv[i]) : replay_file(argv[i]) - 1;
        failed |= tried < 0 || (is_directory && tried == 0);
        (void)printf("%s: %d inputs\n", argv[i], is_directory ? tried : tried + 1);
    }
    if (argc < 2)
        (void)fprintf(stderr, "usage: %s DIRECTORY_OR_FILE...\n", argv[0]);
    return failed || argc < 2;
}
