// IDX files (the format of MNIST: big-endian header, then bytes) -> dense data set of bytes.
#include "data_internal.h"
#include "data_source.h"
#include "idx_stream.h"
#include <string.h>

enum { IDX_UBYTE = 0x08, DIMENSIONS_MAX = 8, READ_STEP_BYTES = 1 << 22 };

struct idx_header {
    uint32_t dimension_count;
    uint32_t header_bytes;
    uint64_t item_count; // the first dimension
    uint64_t item_bytes; // the others multiplied
};

struct idx_file {
    const char *path;
    tti_source *source;
    struct idx_header header; // of this file
    uint8_t *bytes;           // the items of all files so far
    size_t used;              // of `bytes`, before this file
    tt_error *err;
};

static void
place_at(const struct idx_file *file, uint64_t offset, char place[TTI_PLACE_SIZE])
{
    tti_place(place, file->path, " byte %llu", (unsigned long long)offset);
}

static tt_status
fail_at(const struct idx_file *file,
        uint64_t offset,
        tt_status status,
        const char *advice,
        const char *what)
{
    char place[TTI_PLACE_SIZE];
    place_at(file, offset, place);
    return tt_error_set(file->err, status, place, advice, "%s", what);
}

static uint32_t
big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static tt_status
read_dimensions(struct idx_file *file)
{
    struct idx_header *header = &file->header;
    unsigned char raw[4 * DIMENSIONS_MAX];
    char what[160];
    size_t got, wanted = 4 * header->dimension_count;
    TT_TRY(tti_source_read(file->source, raw, wanted, &got, file->err));
    if (got < wanted)
        return fail_at(file, 4 + got, TT_SYNTAX, "fetch the file again",
                       "the file ends inside the IDX header");
    header->header_bytes = (uint32_t)(4 + wanted);
    header->item_count = big_endian(raw);
    header->item_bytes = 1;
    for (uint32_t i = 1; i < header->dimension_count; i++) {
        header->item_bytes *= big_endian(raw + 4 * (size_t)i); // below 2^31 before, 2^63 after
        if (header->item_bytes > 0 && header->item_bytes <= TTI_FEATURES_MAX)
            continue;
        (void)snprintf(what, sizeof what, "dimension %u is %u; an item must have 1 to %u bytes",
                       i + 1, big_endian(raw + 4 * (size_t)i), TTI_FEATURES_MAX);
        return fail_at(file, 4 + 4 * (uint64_t)i, TT_RANGE, "check that this is an IDX file", what);
    }
    uint64_t total;
    if (__builtin_mul_overflow(header->item_count, header->item_bytes, &total) ||
        total > SIZE_MAX / 2)
        return fail_at(file, 4, TT_RANGE, "check that this is an IDX file",
                       "the dimensions multiply to more than memory can hold");
    if (header->item_count == 0)
        return fail_at(file, 4, TT_INVALID, "check that this is the right file",
                       "no items: the first dimension is 0");
    return TT_OK;
}

static tt_status
read_header(struct idx_file *file, const char *expected, int is_labels)
{
    unsigned char magic[4];
    char what[160];
    size_t got;
    TT_TRY(tti_source_read(file->source, magic, sizeof magic, &got, file->err));
    if (got == 0)
        return tt_error_set(file->err, TT_INVALID, file->path, "check that this is the right file",
                            "the file is empty; expected IDX data");
    if (got < sizeof magic)
        return fail_at(file, got, TT_SYNTAX, "fetch the file again",
                       "the file ends inside the IDX header");
    uint32_t dimensions = magic[3];
    int fits = magic[0] == 0 && magic[1] == 0 && magic[2] == IDX_UBYTE && dimensions >= 1 &&
               dimensions <= DIMENSIONS_MAX && (!is_labels || dimensions == 1);
    if (!fits) {
        (void)snprintf(what, sizeof what, "magic number 0x%08x; expected %s", big_endian(magic),
                       expected);
        return fail_at(file, 0, TT_SYNTAX,
                       is_labels ? "name the IDX file of labels here"
                                 : "name an IDX file of unsigned bytes here",
                       what);
    }
    file->header.dimension_count = dimensions;
    return read_dimensions(file);
}

static tt_status
ends_early(const struct idx_file *file, uint64_t used)
{
    const struct idx_header *header = &file->header;
    const uint64_t total = header->item_count * header->item_bytes;
    char what[160];
    (void)snprintf(what, sizeof what,
                   "the file ends here; its header says %llu items of %llu bytes, %llu bytes",
                   (unsigned long long)header->item_count, (unsigned long long)header->item_bytes,
                   (unsigned long long)(header->header_bytes + total));
    return fail_at(file, header->header_bytes + used, TT_SYNTAX, "fetch the file again", what);
}

static tt_status
check_end(const struct idx_file *file)
{
    const struct idx_header *header = &file->header;
    unsigned char extra;
    size_t got;
    TT_TRY(tti_source_read(file->source, &extra, 1, &got, file->err));
    if (got == 0)
        return TT_OK;
    return fail_at(file, header->header_bytes + header->item_count * header->item_bytes, TT_SYNTAX,
                   "check that the file was not joined with another",
                   "bytes follow the last item that the header announces");
}

// Reads the items. Memory grows with what is there, not with what the header claims.
static tt_status
read_items(struct idx_file *file)
{
    const struct idx_header *header = &file->header;
    size_t total = header->item_count * header->item_bytes, used = 0, room = 0;
    while (used < total) {
        if (used == room) {
            room = TT_MIN(total, TT_MAX(2 * room, (size_t)READ_STEP_BYTES));
            uint8_t *grown = tt_mem_realloc(file->bytes, file->used + room);
            if (grown == NULL)
                return tt_error_set(file->err, TT_NOMEM, file->path, "use more memory",
                                    "no memory for %zu bytes", file->used + room);
            file->bytes = grown;
        }
        size_t got;
        TT_TRY(tti_source_read(file->source, file->bytes + file->used + used, room - used, &got,
                               file->err));
        used += got;
        if (used < room)
            return ends_early(file, used);
    }
    return check_end(file);
}

// Damage of a compressed file comes before what was made of it.
static tt_status
verify(const struct idx_file *file, tt_status status)
{
    tt_error damage;
    if (status == TT_OK || status == TT_NOMEM || file->source == NULL ||
        tti_source_verify(file->source, &damage) != TT_CORRUPT)
        return status;
    if (file->err != NULL)
        *file->err = damage;
    return TT_CORRUPT;
}

static tt_status
read_idx(struct idx_file *file, const char *expected, int is_labels)
{
    tt_status status = tti_source_open(file->path, &file->source, file->err);
    if (status == TT_OK)
        status = read_header(file, expected, is_labels);
    if (status == TT_OK)
        status = read_items(file);
    status = verify(file, status);
    tti_source_close(file->source);
    file->source = NULL;
    return status;
}

static tt_status
find_classes(const struct idx_file *labels, const char *place, tt_dataset *out)
{
    int present[256] = {0};
    for (uint64_t row = 0; row < out->row_count; row++)
        present[labels->bytes[row]] = 1;
    for (int label = 0; label < 256; label++)
        if (present[label])
            out->class_label[out->class_count++] = label;
    if (out->class_count == 1)
        return tt_error_set(labels->err, TT_INVALID, place,
                            "training needs items of at least two classes",
                            "only one label value (%.0f) in all %llu items", out->class_label[0],
                            (unsigned long long)out->row_count);
    return TT_OK;
}

static tt_status
set_labels(const struct idx_file *labels, const tt_data_spec *spec, tt_dataset *out)
{
    const tt_dataset *like = spec->like;
    char place[TTI_PLACE_SIZE];
    tti_place_of_all(place, spec->label_paths, spec->label_path_count);
    if (like != NULL) {
        out->class_count = like->class_count;
        memcpy(out->class_label, like->class_label, sizeof out->class_label);
    } else {
        TT_TRY(find_classes(labels, place, out));
    }
    uint16_t class_of[256]; // read_pairs has refused labels that have none
    for (int label = 0; label < 256; label++)
        class_of[label] = (uint16_t)TT_MAX(tti_class_of(out, label), 0);
    out->label = tt_mem_alloc(out->row_count * sizeof *out->label);
    if (out->label == NULL)
        return tt_error_set(labels->err, TT_NOMEM, place, NULL, "no memory for the labels");
    for (uint64_t row = 0; row < out->row_count; row++)
        out->label[row] = class_of[labels->bytes[row]];
    return TT_OK;
}

// Labels of this file that the training data have not.
static void
count_unknown_labels(const struct idx_file *labels,
                     const tt_dataset *like,
                     tti_unknown_label *unknown)
{
    for (uint64_t item = 0; item < labels->header.item_count; item++) {
        uint8_t label = labels->bytes[labels->used + item];
        if (tti_class_of(like, label) >= 0)
            continue;
        if (unknown->place[0] == '\0') {
            place_at(labels, labels->header.header_bytes + item, unknown->place);
            unknown->label = label;
        }
        tti_unknown_label_add(unknown, label, 1);
    }
}

static tt_status
check_width(const struct idx_file *images, const tt_data_spec *spec, const tt_dataset *out)
{
    uint64_t width = images->header.item_bytes;
    if (spec->like != NULL && spec->like->layout != TT_DATA_DENSE_U8)
        return tt_error_set(images->err, TT_INVALID, images->path, "read both in one format",
                            "is dense (IDX) while the training data is not");
    if (out->row_count > 0 && out->feature_count != width)
        return tt_error_set(images->err, TT_INVALID, images->path,
                            "name files with items of one size",
                            "an item has %llu bytes; those of %.200s have %u",
                            (unsigned long long)width, spec->paths[0], out->feature_count);
    uint32_t wanted = spec->like != NULL ? spec->like->feature_count : spec->feature_count;
    if (wanted != 0 && wanted != width)
        return tt_error_set(images->err, TT_INVALID, images->path,
                            spec->like != NULL ? "train and test with items of one size"
                                               : "correct data.features or leave it out",
                            "an item has %llu bytes; expected %u features",
                            (unsigned long long)width, wanted);
    return TT_OK;
}

static tt_status
check_counts(const struct idx_file *images, const struct idx_file *labels)
{
    if (images->header.item_count == labels->header.item_count)
        return TT_OK;
    return tt_error_set(
        images->err, TT_INVALID, labels->path, "name the images and labels that belong together",
        "%llu labels for %llu items in %s", (unsigned long long)labels->header.item_count,
        (unsigned long long)images->header.item_count, images->path);
}

static const char images_expected[] = "0x00000803 (images) or another 0x000008nn";

// One file of items and its labels, behind those before them.
static tt_status
read_pair(const tt_data_spec *spec,
          size_t pair,
          struct idx_file *images,
          struct idx_file *labels,
          tti_unknown_label *unknown,
          tt_dataset *out)
{
    images->path = spec->paths[pair];
    labels->path = spec->label_paths[pair];
    TT_TRY(read_idx(images, images_expected, 0));
    TT_TRY(check_width(images, spec, out));
    TT_TRY(read_idx(labels, "0x00000801 (labels)", 1));
    TT_TRY(check_counts(images, labels));
    if (spec->like != NULL)
        count_unknown_labels(labels, spec->like, unknown);
    out->row_count += images->header.item_count;
    out->feature_count = (uint32_t)images->header.item_bytes;
    images->used += images->header.item_count * images->header.item_bytes;
    labels->used += labels->header.item_count;
    return TT_OK;
}

// All pairs in order.
static tt_status
read_pairs(const tt_data_spec *spec,
           struct idx_file *images,
           struct idx_file *labels,
           tt_dataset *out,
           tt_error *err)
{
    tti_unknown_label unknown = {0};
    tt_status status = TT_OK;
    for (size_t pair = 0; status == TT_OK && pair < spec->path_count; pair++)
        status = read_pair(spec, pair, images, labels, &unknown, out);
    if (unknown.place[0] != '\0') // before what ended the reading
        return tti_unknown_label_report(&unknown, status != TT_OK, err);
    return status;
}

tt_status
tti_idx_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err)
{
    if (spec->label_path_count == 0 || spec->label_paths[0][0] == '\0')
        return tt_error_set(err, TT_INVALID, spec->path, "set data.labels to the file of labels",
                            "IDX data needs a second file with the labels");
    if (spec->label_path_count != spec->path_count)
        return tt_error_set(
            err, TT_INVALID, spec->path, "name as many files of labels, in the same order",
            "%zu files of items and %zu files of labels", spec->path_count, spec->label_path_count);
    struct idx_file images = {.err = err}, labels = {.err = err};
    tt_status status = read_pairs(spec, &images, &labels, out, err);
    if (status == TT_OK) {
        out->layout = TT_DATA_DENSE_U8;
        out->nonzero_count = out->row_count * out->feature_count;
        out->scale = 1.0f / 255.0f;
        out->bytes = images.bytes;
        images.bytes = NULL; // now the data set's
        status = set_labels(&labels, spec, out);
    }
    tt_mem_free(images.bytes);
    tt_mem_free(labels.bytes);
    return status;
}

// ---- item by item -----------------------------------------------------------------------------

struct tti_idx_stream {
    struct idx_file file;
    uint64_t items_read;
};

tt_status
tti_idx_stream_open(const char *path, const tt_dataset *like, tti_idx_stream **out, tt_error *err)
{
    *out = NULL;
    tti_idx_stream *stream = tt_mem_zalloc(1, sizeof *stream);
    if (stream == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to read the file");
    const tt_data_spec spec = {.like = like};
    const tt_dataset nothing = {0};
    stream->file = (struct idx_file){.path = path, .err = err};
    tt_status status = tti_source_open(path, &stream->file.source, err);
    if (status == TT_OK)
        status = verify(&stream->file, read_header(&stream->file, images_expected, 0));
    if (status == TT_OK)
        status = check_width(&stream->file, &spec, &nothing);
    if (status != TT_OK) {
        tti_idx_stream_close(stream);
        return status;
    }
    *out = stream;
    return TT_OK;
}

uint32_t
tti_idx_stream_width(const tti_idx_stream *stream)
{
    return (uint32_t)stream->file.header.item_bytes;
}

tt_status
tti_idx_stream_read(tti_idx_stream *stream, uint8_t *items, size_t max, size_t *got, tt_error *err)
{
    struct idx_file *file = &stream->file;
    const size_t width = tti_idx_stream_width(stream);
    uint64_t left = file->header.item_count - stream->items_read;
    size_t wanted = (size_t)TT_MIN(left, (uint64_t)max), bytes = 0;
    file->err = err;
    tt_status status = tti_source_read(file->source, items, wanted * width, &bytes, err);
    *got = bytes / width;
    if (status == TT_OK && *got < wanted)
        status = ends_early(file, stream->items_read * width + bytes);
    stream->items_read += *got;
    if (status == TT_OK && wanted < max)
        status = check_end(file);
    return verify(file, status);
}

void
tti_idx_stream_close(tti_idx_stream *stream)
{
    if (stream == NULL)
        return;
    tti_source_close(stream->file.source);
    tt_mem_free(stream);
}
