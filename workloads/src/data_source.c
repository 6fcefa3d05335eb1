// Reading a file, plain or compressed, and saying well why it cannot be read.
#include "data_source.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 6, INPUT_BYTES = 128 * 1024 };

struct tti_source {
    const char *path;
    int fd;
    int input_ended; // the file, not the data in it
    int ended;
    const tti_decoder *decoder; // NULL: plain
    void *decoder_state;
    uint64_t file_bytes; // read from the file so far
    uint64_t file_size;  // 0: not a regular file
    tt_error failure;    // the first one; reading on meets it again
    size_t in_begin, in_end;
    unsigned char in[INPUT_BYTES]; // the head of the file; compressed: what is not decoded yet
};

static const tti_decoder *const decoders[] = {&tti_decoder_gzip, &tti_decoder_xz,
                                              &tti_decoder_zstd};

// Recognised so that the message can say more than "expected a label".
static const struct {
    const char *name, *advice;
    unsigned char magic[4];
    size_t magic_bytes;
} unread[] = {
    {"bzip2", "unpack it (bzip2 -d) or pack it as .zst, .xz or .gz", {'B', 'Z', 'h', 0}, 3},
    {"zip", "unpack it (unzip) or pack the one file as .zst, .xz or .gz", {'P', 'K', 3, 4}, 4},
    {"lz4", "unpack it (lz4 -d) or pack it as .zst, .xz or .gz", {0x04, 0x22, 0x4d, 0x18}, 4},
};

const char tt_data_standard_input[] = "standard input";

static tt_status
open_file(tti_source *source, tt_error *err)
{
    if (source->path == tt_data_standard_input)
        source->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    else
        source->fd = open(source->path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0) {
        int missing = errno == ENOENT || errno == ENOTDIR, denied = errno == EACCES;
        tt_status status = missing ? TT_NOTFOUND : denied ? TT_INVALID : TT_IO;
        return tt_error_set(err, status, source->path,
                            missing ? "check the path; it is relative to the job file"
                                    : "make it readable for the user who runs the job",
                            "cannot open the data file: %s", tt_errno_text(errno));
    }
    struct stat info;
    if (fstat(source->fd, &info) != 0)
        return TT_OK; // reading will tell
    source->file_size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    if (S_ISDIR(info.st_mode))
        return tt_error_set(err, TT_INVALID, source->path, "name one file in it",
                            "is a directory; expected a data file");
    return TT_OK;
}

// Reads until `size` bytes or the end of the file.
static tt_status
read_file(tti_source *source, unsigned char *buffer, size_t size, size_t *got, tt_error *err)
{
    *got = 0;
    while (*got < size && !source->input_ended) {
        ssize_t n = read(source->fd, buffer + *got, size - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tt_error_set(err, TT_IO, source->path, "check the disk or the network share",
                                "reading failed at byte %llu: %s",
                                (unsigned long long)source->file_bytes, tt_errno_text(errno));
        source->input_ended = n == 0;
        *got += (size_t)n;
        source->file_bytes += (uint64_t)n;
    }
    return TT_OK;
}

static tt_status
choose_decoder(tti_source *source, tt_error *err)
{
    for (size_t i = 0; i < TT_COUNT_OF(unread); i++)
        if (source->in_end >= unread[i].magic_bytes &&
            memcmp(source->in, unread[i].magic, unread[i].magic_bytes) == 0)
            return tt_error_set(err, TT_UNSUPPORTED, source->path, unread[i].advice,
                                "is compressed with %s; plain, gzip, xz and zstd files are read",
                                unread[i].name);
    for (size_t i = 0; i < TT_COUNT_OF(decoders); i++)
        if (source->in_end >= decoders[i]->magic_bytes &&
            memcmp(source->in, decoders[i]->magic, decoders[i]->magic_bytes) == 0)
            source->decoder = decoders[i];
    if (source->decoder == NULL)
        return TT_OK;
    source->decoder_state = source->decoder->open();
    if (source->decoder_state == NULL)
        return tt_error_set(err, TT_NOMEM, source->path, NULL, "no memory to decompress %s data",
                            source->decoder->name);
    return TT_OK;
}

tt_status
tti_source_open(const char *path, tti_source **out, tt_error *err)
{
    *out = NULL;
    tti_source *source = tt_mem_alloc(sizeof *source);
    if (source == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to read the file");
    memset(source, 0, offsetof(tti_source, in));
    source->path = path;
    tt_status status = open_file(source, err);
    if (status == TT_OK)
        status = read_file(source, source->in, HEAD_BYTES, &source->in_end, err);
    if (status == TT_OK)
        status = choose_decoder(source, err);
    if (status != TT_OK) {
        tti_source_close(source);
        return status;
    }
    *out = source;
    return TT_OK;
}

void
tti_source_close(tti_source *source)
{
    if (source == NULL)
        return;
    if (source->decoder_state != NULL)
        source->decoder->close(source->decoder_state);
    if (source->fd >= 0)
        (void)close(source->fd);
    tt_mem_free(source);
}

uint64_t
tti_source_plain_bytes(const tti_source *source)
{
    return source->decoder == NULL ? source->file_size : 0;
}

const char *
tti_source_compression(const tti_source *source)
{
    return source->decoder == NULL ? "plain" : source->decoder->name;
}

static tt_status
read_plain(tti_source *source, unsigned char *buffer, size_t size, size_t *got, tt_error *err)
{
    size_t head = TT_MIN(size, source->in_end - source->in_begin), more = 0;
    memcpy(buffer, source->in + source->in_begin, head);
    source->in_begin += head;
    TT_TRY(read_file(source, buffer + head, size - head, &more, err));
    *got = head + more;
    return TT_OK;
}

static tt_status
decode_failed(const tti_source *source, tti_decoded result, const char *why, tt_error *err)
{
    const char *name = source->decoder->name;
    unsigned long long at = source->file_bytes - (source->in_end - source->in_begin);
    char advice[128];
    (void)snprintf(advice, sizeof advice, "fetch the file again; '%s' tells whether it is whole",
                   source->decoder->check);
    if (result == TTI_DECODED_NOMEM)
        return tt_error_set(err, TT_NOMEM, source->path, NULL, "no memory to decompress %s data",
                            name);
    if (result == TTI_DECODED_TRUNCATED)
        return tt_error_set(err, TT_CORRUPT, source->path, advice,
                            "the %s data stops in the middle, at byte %llu; expected more", name,
                            at);
    return tt_error_set(err, TT_CORRUPT, source->path, advice,
                        "the %s data is damaged near byte %llu: %s", name, at, why);
}

static tt_status
read_decoded(tti_source *source, unsigned char *buffer, size_t size, size_t *got, tt_error *err)
{
    size_t left = size;
    while (left > 0 && !source->ended) {
        if (source->in_begin == source->in_end && !source->input_ended) {
            source->in_begin = 0;
            TT_TRY(read_file(source, source->in, sizeof source->in, &source->in_end, err));
        }
        tti_decode_io io = {source->in + source->in_begin, source->in_end - source->in_begin,
                            buffer + (size - left), left};
        const char *why = "";
        tti_decoded result =
            source->decoder->decode(source->decoder_state, &io, source->input_ended, &why);
        source->in_begin = source->in_end - io.in_left;
        left = io.out_left;
        if (result == TTI_DECODED_END)
            source->ended = 1;
        else if (result != TTI_DECODED_SOME)
            return decode_failed(source, result, why, err);
    }
    *got = size - left;
    return TT_OK;
}

tt_status
tti_source_read(tti_source *source, void *buffer, size_t size, size_t *got, tt_error *err)
{
    *got = 0;
    tt_error *failure = &source->failure;
    if (failure->status == TT_OK)
        failure->status = source->decoder == NULL
                              ? read_plain(source, buffer, size, got, failure)
                              : read_decoded(source, buffer, size, got, failure);
    if (failure->status != TT_OK && err != NULL)
        *err = *failure;
    return failure->status;
}

tt_status
tti_source_verify(tti_source *source, tt_error *err)
{
    if (source->decoder == NULL)
        return TT_OK;
    unsigned char scratch[8192];
    size_t got = sizeof scratch;
    while (got == sizeof scratch)
        TT_TRY(tti_source_read(source, scratch, sizeof scratch, &got, err));
    return TT_OK;
}
