// Checkpoint files and the directory of them.
#include "checkpoint_file.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { VERSION = 1, FILES_MAX = 4096 };

#define TIME_S_MAX 1e10 // what nanoseconds of it can be counted

typedef struct file_header {
    char magic[8];
    uint32_t version, section_count;
    uint64_t bytes, iteration;
    double time_s;
    int64_t written_at;
    uint64_t table_hash, header_hash;
} file_header;

typedef struct file_section {
    char name[TTI_CHECKPOINT_NAME_BYTES];
    uint64_t offset, bytes, hash;
} file_section;

static_assert(sizeof(file_header) == 64 && sizeof(file_section) == 40, "part of the format");
static_assert(sizeof(tti_checkpoint_head) ==
                  sizeof(file_header) + TTI_CHECKPOINT_SECTIONS_MAX * sizeof(file_section),
              "holds what stands before the sections");
static const char magic[8] = {'T', 'T', 'C', 'K', 'P', 'T', '\r', '\n'};

static uint64_t
hash(const void *bytes, size_t count)
{
    return XXH3_64bits(bytes, count);
}

// ---- writing ----------------------------------------------------------------------------------

static void
describe(const tti_checkpoint *c, file_header *header, file_section *table)
{
    size_t table_bytes = c->section_count * sizeof *table;
    uint64_t at = sizeof *header + table_bytes;
    memset(table, 0, table_bytes);
    for (uint32_t i = 0; i < c->section_count; i++) {
        memcpy(table[i].name, c->sections[i].name, sizeof table[i].name);
        table[i].offset = at;
        table[i].bytes = c->sections[i].count;
        table[i].hash = hash(c->sections[i].bytes, c->sections[i].count);
        at += table[i].bytes;
    }
    *header = (file_header){.version = VERSION,
                            .section_count = c->section_count,
                            .bytes = at,
                            .iteration = c->iteration,
                            .time_s = c->time_s,
                            .written_at = c->written_at,
                            .table_hash = hash(table, table_bytes)};
    memcpy(header->magic, magic, sizeof magic);
    header->header_hash = hash(header, offsetof(file_header, header_hash));
}

// 0, or -1 with errno.
static int
write_bytes(int file, const void *bytes, uint64_t count)
{
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t written = write(file, at, count < (1u << 30) ? (size_t)count : 1u << 30);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        at += written;
        count -= (uint64_t)written;
    }
    return 0;
}

uint32_t
tti_checkpoint_pieces(const tti_checkpoint *c,
                      tti_checkpoint_head *head,
                      tt_span pieces[TTI_CHECKPOINT_PIECES_MAX])
{
    file_header header;
    file_section table[TTI_CHECKPOINT_SECTIONS_MAX];
    size_t table_bytes = c->section_count * sizeof *table;
    TT_ASSERT(c->section_count <= TTI_CHECKPOINT_SECTIONS_MAX);
    describe(c, &header, table);
    memcpy(head->bytes, &header, sizeof header);
    memcpy(head->bytes + sizeof header, table, table_bytes);
    pieces[0] = (tt_span){head->bytes, sizeof header};
    pieces[1] = (tt_span){head->bytes + sizeof header, table_bytes};
    for (uint32_t i = 0; i < c->section_count; i++)
        pieces[i + 2] = (tt_span){c->sections[i].bytes, c->sections[i].count};
    return c->section_count + 2;
}

void
tti_checkpoint_add(tti_checkpoint *c, const char *name, const void *bytes, uint64_t count)
{
    TT_ASSERT(c->section_count < TTI_CHECKPOINT_SECTIONS_MAX);
    tti_checkpoint_section *section = &c->sections[c->section_count++];
    *section = (tti_checkpoint_section){.bytes = bytes, .count = count};
    (void)snprintf(section->name, sizeof section->name, "%s", name);
}

static int
write_file(const char *path, const tti_checkpoint *c)
{
    tti_checkpoint_head head;
    tt_span pieces[TTI_CHECKPOINT_PIECES_MAX];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return -1;
    uint32_t count = tti_checkpoint_pieces(c, &head, pieces);
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < count; i++)
        result = write_bytes(file, pieces[i].bytes, pieces[i].size);
    if (result == 0)
        result = fsync(file);
    int reason = errno;
    if (close(file) != 0 && result == 0) {
        result = -1;
        reason = errno;
    }
    errno = reason;
    return result;
}

// A rename is on the disk when its directory is.
static void
sync_directory(const char *directory)
{
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return;
    (void)fsync(file); // some file systems refuse: then they order it themselves
    (void)close(file);
}

void
tti_checkpoint_path(const char *directory, uint64_t iteration, char *out, size_t size)
{
    (void)snprintf(out, size, "%.600s/%012" PRIu64 ".ttck", directory, iteration);
}

tt_status
tti_checkpoint_write(const char *directory, const tti_checkpoint *checkpoint, tt_error *err)
{
    char path[700], beside[720];
    TT_ASSERT(checkpoint->section_count <= TTI_CHECKPOINT_SECTIONS_MAX);
    tti_checkpoint_path(directory, checkpoint->iteration, path, sizeof path);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    if ((mkdir(directory, 0777) == 0 || errno == EEXIST) && write_file(beside, checkpoint) == 0 &&
        rename(beside, path) == 0) {
        sync_directory(directory);
        return TT_OK;
    }
    int reason = errno;
    (void)unlink(beside);
    (void)rmdir(directory); // if it is empty
    return tt_error_set(err, TT_IO, path,
                        reason == ENOSPC || reason == EDQUOT
                            ? "free some space (df -h); older checkpoints are kept"
                            : "check the disk; older checkpoints are kept",
                        "cannot write the checkpoint: %s", tt_errno_text(reason));
}

// ---- reading ----------------------------------------------------------------------------------

static tt_status
damaged(const char *path, tt_error *err, const char *how)
{
    return tt_error_set(err, TT_CORRUPT, path, NULL, "the checkpoint is damaged: %s", how);
}

static tt_status
load_file(const char *path, tti_checkpoint *out, uint64_t *count, tt_error *err)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) != 0) {
        int reason = errno;
        if (file >= 0)
            (void)close(file);
        return tt_error_set(err, reason == ENOENT ? TT_NOTFOUND : TT_IO, path, NULL,
                            "cannot read the checkpoint: %s", tt_errno_text(reason));
    }
    tt_status status = TT_OK;
    *count = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    out->file = tt_mem_alloc(*count > 0 ? *count : 1);
    if (out->file == NULL)
        status = tt_error_set(err, TT_NOMEM, path, NULL, "no memory to read the checkpoint");
    for (uint64_t done = 0; status == TT_OK && done < *count;) {
        ssize_t got = read(file, out->file + done, *count - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = tt_error_set(err, TT_IO, path, "check the disk",
                                  "cannot read the checkpoint: %s", tt_errno_text(errno));
        else if (got == 0)
            status = damaged(path, err, "it became shorter while it was read");
        else
            done += (uint64_t)got;
    }
    (void)close(file);
    return status;
}

static tt_status
check_header(const char *path, const file_header *header, uint64_t count, tt_error *err)
{
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return damaged(path, err, "it does not begin like one");
    if (header->header_hash != hash(header, offsetof(file_header, header_hash)))
        return damaged(path, err, "the checksum of its header is wrong");
    if (header->version != VERSION)
        return tt_error_set(err, TT_UNSUPPORTED, path, "resume with the trimtab that wrote it",
                            "this checkpoint has version %u, this trimtab reads version %d",
                            header->version, VERSION);
    if (header->bytes != count)
        return damaged(path, err, header->bytes > count ? "its end is missing" : "it is too long");
    if (header->section_count > TTI_CHECKPOINT_SECTIONS_MAX)
        return damaged(path, err, "it has too many sections");
    if (!(header->time_s >= 0 && header->time_s <= TIME_S_MAX))
        return damaged(path, err, "its time is none");
    return TT_OK;
}

static tt_status
check_sections(const char *path, uint64_t count, tti_checkpoint *out, tt_error *err)
{
    file_header header;
    if (count < sizeof header)
        return damaged(path, err, "its end is missing");
    memcpy(&header, out->file, sizeof header);
    TT_TRY(check_header(path, &header, count, err));
    size_t table_bytes = header.section_count * sizeof(file_section);
    if (count - sizeof header < table_bytes ||
        hash(out->file + sizeof header, table_bytes) != header.table_hash)
        return damaged(path, err, "the checksum of its table is wrong");
    out->iteration = header.iteration;
    out->time_s = header.time_s;
    out->written_at = header.written_at;
    out->section_count = header.section_count;
    for (uint32_t i = 0; i < header.section_count; i++) {
        file_section section;
        memcpy(&section, out->file + sizeof header + i * sizeof section, sizeof section);
        if (section.offset > count || count - section.offset < section.bytes ||
            hash(out->file + section.offset, section.bytes) != section.hash)
            return damaged(path, err, "the checksum of a section is wrong");
        tti_checkpoint_section *to = &out->sections[i];
        memcpy(to->name, section.name, sizeof to->name);
        to->name[sizeof to->name - 1] = '\0';
        to->bytes = out->file + section.offset;
        to->count = section.bytes;
    }
    return TT_OK;
}

tt_status
tti_checkpoint_parse(
    uint8_t *bytes, uint64_t count, const char *path, tti_checkpoint *out, tt_error *err)
{
    *out = (tti_checkpoint){.file = bytes};
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    tt_status status = check_sections(path, count, out, err);
    if (status != TT_OK)
        tti_checkpoint_fini(out);
    return status;
}

tt_status
tti_checkpoint_read(const char *path, tti_checkpoint *out, tt_error *err)
{
    uint64_t count = 0;
    *out = (tti_checkpoint){0};
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    tt_status status = load_file(path, out, &count, err);
    if (status == TT_OK)
        status = check_sections(path, count, out, err);
    if (status != TT_OK)
        tti_checkpoint_fini(out);
    return status;
}

void
tti_checkpoint_fini(tti_checkpoint *checkpoint)
{
    tt_mem_free(checkpoint->file);
    checkpoint->file = NULL;
    checkpoint->section_count = 0;
}

const uint8_t *
tti_checkpoint_find(const tti_checkpoint *checkpoint, const char *name, uint64_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < checkpoint->section_count; i++)
        if (strcmp(checkpoint->sections[i].name, name) == 0) {
            *count = checkpoint->sections[i].count;
            return checkpoint->sections[i].bytes;
        }
    return NULL;
}

// ---- the directory ----------------------------------------------------------------------------

static int
descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// Iterations of the files there are, newest first. Half-written ones are removed when `clean`.
static uint32_t
list(const char *directory, int clean, uint64_t *iterations)
{
    uint32_t count = 0;
    DIR *stream = opendir(directory);
    if (stream == NULL)
        return 0;
    // one thread reads this stream
    for (struct dirent *entry;
         (entry = readdir(stream)) != NULL;) { // NOLINT(concurrency-mt-unsafe)
        char *end;
        uint64_t iteration = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name)
            continue;
        if (clean && strcmp(end, ".ttck.new") == 0)
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
        if (strcmp(end, ".ttck") == 0 && count < FILES_MAX)
            iterations[count++] = iteration;
    }
    (void)closedir(stream);
    qsort(iterations, count, sizeof *iterations, descending);
    return count;
}

tt_status
tti_checkpoint_newest(const char *directory, tti_checkpoint *out, uint32_t *skipped, tt_error *err)
{
    *skipped = 0;
    *out = (tti_checkpoint){0};
    uint64_t *iterations = tt_mem_alloc(FILES_MAX * sizeof *iterations);
    if (iterations == NULL)
        return tt_error_set(err, TT_NOMEM, directory, NULL, "no memory to look for checkpoints");
    uint32_t count = list(directory, 0, iterations);
    tt_status status = TT_NOTFOUND;
    for (uint32_t i = 0; i < count && status != TT_OK; i++) {
        char path[700], aside[720];
        tti_checkpoint_path(directory, iterations[i], path, sizeof path);
        status = tti_checkpoint_read(path, out, err);
        if (status == TT_UNSUPPORTED || status == TT_NOMEM || status == TT_IO)
            break; // it may be good: who resumes must know
        if (status != TT_CORRUPT)
            continue;
        (*skipped)++;
        (void)snprintf(aside, sizeof aside, "%s.damaged", path);
        (void)rename(path, aside);
        status = TT_NOTFOUND;
    }
    tt_mem_free(iterations);
    return status;
}

void
tti_checkpoint_prune(const char *directory, uint32_t keep)
{
    uint64_t *iterations = tt_mem_alloc(FILES_MAX * sizeof *iterations);
    if (iterations == NULL)
        return;
    uint32_t count = list(directory, 1, iterations);
    for (uint32_t i = keep; i < count; i++) {
        char path[700];
        tti_checkpoint_path(directory, iterations[i], path, sizeof path);
        (void)unlink(path);
    }
    tt_mem_free(iterations);
}
