// Looking at a data file: its compression, its magic number, and whether it is text.
#include "data_internal.h"
#include "data_look_internal.h"
#include "data_source.h"
#include "text_block.h"
#include <string.h>

#define HEAD_BYTES ((size_t)4 << 20)

static const struct {
    const char *what, *advice, *magic;
    size_t magic_bytes;
} known[] = {
    {"a Parquet file", "write it as CSV, for instance with pandas or duckdb", "PAR1", 4},
    {"an HDF5 file", "write it as CSV or LIBSVM text", "\x89HDF", 4},
    {"a NumPy array", "write it as CSV (numpy.savetxt) or LIBSVM text", "\x93NUMPY", 6},
    {"an Arrow file", "write it as CSV", "ARROW1", 6},
    {"an SQLite database", "select what is needed into CSV (sqlite3 -csv)", "SQLite format 3", 15},
    {"JSON", "write it as CSV, for instance with jq -r '@csv'", "{", 1},
    {"JSON", "write it as CSV, for instance with jq -r '@csv'", "[", 1},
    {"XML or HTML", "write the data as CSV", "<", 1},
    {"an ARFF file", "take the lines with @ off and keep the rows as CSV", "@relation", 9},
    {"an ARFF file", "take the lines with @ off and keep the rows as CSV", "@RELATION", 9},
};

static void
say_unread(tt_look *look, const char *what, const char *advice)
{
    look->kind = TT_LOOK_UNREAD;
    look->what = what;
    look->advice = advice;
}

static int
look_at_idx(const unsigned char *bytes, size_t size, tt_look *look)
{
    if (size < 8 || bytes[0] != 0 || bytes[1] != 0 || bytes[2] < 8 || bytes[3] < 1 || bytes[3] > 8)
        return 0;
    if (bytes[2] != 8) {
        say_unread(look, "an IDX file of numbers larger than a byte",
                   "IDX files of unsigned bytes are read (magic 0x000008nn)");
        return 1;
    }
    look->kind = bytes[3] == 1 ? TT_LOOK_IDX_LABELS : TT_LOOK_IDX_ITEMS;
    look->format = "idx";
    look->what = bytes[3] == 1 ? "IDX labels" : "IDX items";
    return 1;
}

static int
is_binary(const unsigned char *bytes, size_t size)
{
    size_t odd = 0, looked = TT_MIN(size, (size_t)65536);
    for (size_t i = 0; i < looked; i++)
        odd += bytes[i] < 32 && bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != '\t';
    return odd * 50 > looked || memchr(bytes, 0, size) != NULL;
}

// Cuts the head behind its last whole line, of at most TTI_LOOK_LINES_MAX; the size that is left.
static size_t
whole_lines(char *text, size_t size, int ended)
{
    if (ended && size > 0 && text[size - 1] != '\n')
        text[size++] = '\n';
    size_t end = 0;
    for (int line = 0; line < TTI_LOOK_LINES_MAX && end < size; line++) {
        const char *newline = memchr(text + end, '\n', size - end);
        if (newline == NULL)
            break;
        end = (size_t)(newline + 1 - text);
    }
    memset(text + end, 0, TTI_TEXT_PADDING);
    return end;
}

static tt_status
look_at_text(char *text, size_t size, tt_look *look)
{
    int is_table = 0;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { // byte order mark
        text += 3;
        size -= 3;
    }
    for (size_t i = 0; i < TT_COUNT_OF(known); i++)
        if (size > known[i].magic_bytes &&
            memcmp(text, known[i].magic, known[i].magic_bytes) == 0) {
            say_unread(look, known[i].what, known[i].advice);
            return TT_OK;
        }
    if (tti_look_libsvm(text, size, look))
        return TT_OK;
    TT_TRY(tti_look_table(text, size, look, &is_table));
    if (!is_table)
        say_unread(look, "text of no format that is read",
                   "LIBSVM text has `label index:value ...` lines, CSV text the same number of "
                   "fields on every line");
    return TT_OK;
}

static tt_status
look_at(const char *path, tti_source *source, char *head, tt_look *look, tt_error *err)
{
    size_t size;
    TT_TRY(tti_source_read(source, head, HEAD_BYTES, &size, err));
    look->compression = tti_source_compression(source);
    if (size == 0)
        return tt_error_set(err, TT_INVALID, path, "check that this is the right file",
                            "the file is empty");
    if (look_at_idx((unsigned char *)head, size, look))
        return TT_OK;
    for (size_t i = 0; i < TT_COUNT_OF(known); i++)
        if (known[i].magic_bytes > 2 && size > known[i].magic_bytes &&
            memcmp(head, known[i].magic, known[i].magic_bytes) == 0) {
            say_unread(look, known[i].what, known[i].advice);
            return TT_OK;
        }
    if (is_binary((unsigned char *)head, size)) {
        say_unread(look, "binary data of no format that is read",
                   "LIBSVM text, CSV text and IDX files of bytes are read");
        return TT_OK;
    }
    tt_status status = look_at_text(head, whole_lines(head, size, size < HEAD_BYTES), look);
    if (status == TT_NOMEM)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to look at the file");
    return status;
}

tt_status
tt_data_look(const char *path, tt_look **out, tt_error *err)
{
    *out = NULL;
    tti_source *source = NULL;
    tt_look *look = tt_mem_zalloc(1, sizeof *look);
    char *head = tt_mem_alloc(HEAD_BYTES + 1 + TTI_TEXT_PADDING);
    tt_status status = look != NULL && head != NULL ? tti_source_open(path, &source, err)
                                                    : tt_error_set(err, TT_NOMEM, path, NULL,
                                                                   "no memory to look at the file");
    if (status == TT_OK)
        status = look_at(path, source, head, look, err);
    tti_source_close(source);
    tt_mem_free(head);
    if (status != TT_OK) {
        tt_look_close(look);
        return status;
    }
    *out = look;
    return TT_OK;
}

void
tt_look_close(tt_look *look)
{
    if (look == NULL)
        return;
    tt_mem_free(look->column);
    tt_mem_free(look);
}
