// Click logs into files and memory: blocks of rows are made by all threads, and written (and their
// losses summed) in order. A block's bytes, and a gzip member's, depend on the block alone.
#include "clicklog_rows.h"
#include "data_internal.h"
#include "ordered_pipeline.h"
#include "whole_file.h"
#include <math.h>
#include <string.h>
#define ZLIB_CONST // next_in points to const
#include <zlib.h>

enum { BLOCK_ROWS = 1024 };

struct block {
    uint64_t first_row, end_row;
    tt_status status; // of the work
    char *text;       // a file's: the rows
    size_t text_bytes;
    unsigned char *packed; // gzip: the text compressed
    size_t packed_bytes;
    double entropy, surprise; // sums over the rows
    uint64_t positives;
};

struct generator {
    tti_clicklog clicks;
    tt_error *err;
    tt_dataset *data;    // destination in memory, or
    tti_whole_file file; // on the disk,
    int gzip;            // compressed
    uint64_t next_row;
    size_t text_capacity, packed_capacity; // of a block
    double entropy, surprise;
    uint64_t positives;
};

static int
fill(void *self, void *slot)
{
    struct generator *generator = self;
    struct block *block = slot;
    block->first_row = generator->next_row;
    block->end_row = TT_MIN(block->first_row + BLOCK_ROWS, generator->clicks.spec.row_count);
    generator->next_row = block->end_row;
    return block->first_row < block->end_row;
}

// ---- Work: rows to text or arrays ----

static char *
put_number(char *p, uint32_t number)
{
    char digits[10];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *p++ = digits[--count];
    return p;
}

static char *
put_row(char *p, const tti_clicklog_row *row, uint32_t field_count)
{
    *p++ = (char)('0' + row->label);
    for (uint32_t f = 0; f < field_count; f++) {
        *p++ = ' ';
        p = put_number(p, row->index[f] + 1);
        *p++ = ':';
        uint32_t hundredths = row->hundredths[f];
        *p++ = (char)('0' + hundredths / 100); // at most 9.99
        if (hundredths % 100 == 0)
            continue;
        *p++ = '.';
        *p++ = (char)('0' + hundredths / 10 % 10);
        if (hundredths % 10 != 0)
            *p++ = (char)('0' + hundredths % 10);
    }
    *p++ = '\n';
    return p;
}

static void
store_row(tt_dataset *data, uint64_t row_number, const tti_clicklog_row *row, uint32_t field_count)
{
    uint64_t begin = row_number * field_count;
    data->label[row_number] = (uint16_t)row->label;
    data->row_begin[row_number + 1] = begin + field_count;
    memcpy(data->index + begin, row->index, field_count * sizeof *data->index);
    for (uint32_t f = 0; data->value != NULL && f < field_count; f++)
        data->value[begin + f] = (float)(row->hundredths[f] / 100.0);
}

static void
add_losses(struct block *block, const tti_clicklog_row *row)
{
    double p = row->probability, q = 1.0 - p;
    block->entropy -= (p > 0 ? p * log(p) : 0.0) + (q > 0 ? q * log(q) : 0.0);
    block->surprise -= log(row->label ? p : q);
    block->positives += (uint64_t)row->label;
}

static tt_status
pack(struct block *block, size_t capacity)
{
    enum { WINDOW_BITS = 15, GZIP_WRAPPER = 16, MEMORY_LEVEL = 8 };
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS + GZIP_WRAPPER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return TT_NOMEM;
    stream.next_in = (const unsigned char *)block->text;
    stream.avail_in = (uInt)block->text_bytes;
    stream.next_out = block->packed;
    stream.avail_out = (uInt)capacity;
    int rc = deflate(&stream, Z_FINISH);
    block->packed_bytes = capacity - stream.avail_out;
    (void)deflateEnd(&stream);
    TT_ASSERT(rc == Z_STREAM_END); // the capacity is deflateBound's
    return TT_OK;
}

static void
work(void *self, void *slot)
{
    const struct generator *generator = self;
    struct block *block = slot;
    tti_clicklog_row row;
    uint32_t field_count = generator->clicks.spec.field_count;
    char *p = block->text;
    block->entropy = block->surprise = 0;
    block->positives = 0;
    block->status = TT_OK;
    for (uint64_t i = block->first_row; i < block->end_row; i++) {
        tti_clicklog_make_row(&generator->clicks, i, &row);
        add_losses(block, &row);
        if (generator->data != NULL)
            store_row(generator->data, i, &row, field_count);
        else
            p = put_row(p, &row, field_count);
    }
    block->text_bytes = (size_t)(p - block->text);
    TT_ASSERT(block->text_bytes <= generator->text_capacity);
    if (generator->gzip)
        block->status = pack(block, generator->packed_capacity);
}

// ---- Drain: out and summed, in order ----

static tt_status
drain(void *self, void *slot)
{
    struct generator *generator = self;
    const struct block *block = slot;
    TT_TRY(block->status);
    if (generator->gzip)
        TT_TRY(tti_whole_file_write(&generator->file, block->packed, block->packed_bytes,
                                    generator->err));
    else if (generator->data == NULL)
        TT_TRY(
            tti_whole_file_write(&generator->file, block->text, block->text_bytes, generator->err));
    generator->entropy += block->entropy;
    generator->surprise += block->surprise;
    generator->positives += block->positives;
    return TT_OK;
}

// ---- The whole ----

static tt_status
no_memory(const struct generator *generator)
{
    return tt_error_set(generator->err, TT_NOMEM, "generate", "use fewer rows or threads",
                        "no memory for generated rows");
}

static tt_status
make_blocks(struct generator *generator, struct block *blocks, uint32_t block_count)
{
    if (generator->data != NULL)
        return TT_OK;
    // a label, fields like " 2147483646:9.99", a newline
    generator->text_capacity = BLOCK_ROWS * (2 + 16 * (size_t)generator->clicks.spec.field_count);
    generator->packed_capacity =
        generator->gzip ? compressBound((uLong)generator->text_capacity) + 64 : 0;
    for (uint32_t i = 0; i < block_count; i++) {
        blocks[i].text = tt_mem_alloc(generator->text_capacity);
        blocks[i].packed = generator->gzip ? tt_mem_alloc(generator->packed_capacity) : NULL;
        if (blocks[i].text == NULL || (generator->gzip && blocks[i].packed == NULL))
            return TT_NOMEM;
    }
    return TT_OK;
}

static tt_status
run(struct generator *generator)
{
    static const tti_pipeline_ops ops = {fill, work, drain};
    int threads = tti_thread_count(generator->clicks.spec.threads);
    uint32_t block_count = tti_pipeline_slots(threads);
    struct block *blocks = tt_mem_zalloc(block_count, sizeof *blocks);
    if (blocks == NULL)
        return no_memory(generator);
    tt_status status = make_blocks(generator, blocks, block_count);
    if (status == TT_OK)
        status = tti_pipeline_run(&ops, generator, blocks, sizeof *blocks, block_count, threads);
    for (uint32_t i = 0; i < block_count; i++) {
        tt_mem_free(blocks[i].text);
        tt_mem_free(blocks[i].packed);
    }
    tt_mem_free(blocks);
    return status == TT_NOMEM ? no_memory(generator) : status;
}

static tt_status
open_generator(const tt_clicklog_spec *spec, struct generator **out, tt_error *err)
{
    struct generator *generator = tt_mem_zalloc(1, sizeof *generator);
    *out = generator;
    if (generator == NULL)
        return tt_error_set(err, TT_NOMEM, "generate", NULL, "no memory for generated rows");
    generator->err = err;
    return tti_clicklog_init(&generator->clicks, spec, err);
}

static void
tell_truth(const struct generator *generator, tt_clicklog_truth *truth)
{
    double rows = (double)generator->clicks.spec.row_count;
    if (truth != NULL)
        *truth = (tt_clicklog_truth){
            .intercept = generator->clicks.intercept,
            .bayes_loss = generator->entropy / rows,
            .true_loss = generator->surprise / rows,
            .positive_rate = (double)generator->positives / rows,
            .nonzero_count = generator->clicks.spec.row_count * generator->clicks.spec.field_count,
        };
}

static int
ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

tt_status
tt_generate_clicklog(const tt_clicklog_spec *spec, tt_clicklog_truth *truth, tt_error *err)
{
    if (spec->path == NULL || spec->path[0] == '\0')
        return tt_error_set(err, TT_INVALID, "generate", "name the file to write",
                            "no path for generated rows");
    struct generator *generator;
    tt_status status = open_generator(spec, &generator, err);
    if (status == TT_OK) {
        generator->gzip = ends_with(spec->path, ".gz");
        status = tti_whole_file_open(&generator->file, spec->path, err);
    }
    if (status == TT_OK)
        status = run(generator);
    if (status == TT_OK)
        status = tti_whole_file_commit(&generator->file, err);
    if (status == TT_OK)
        tell_truth(generator, truth);
    if (generator != NULL)
        tti_whole_file_close(&generator->file);
    tt_mem_free(generator);
    return status;
}

static tt_status
allocate_dataset(struct generator *generator)
{
    const tt_clicklog_spec *spec = &generator->clicks.spec;
    tt_dataset *data = generator->data = tt_mem_zalloc(1, sizeof *data);
    if (data == NULL)
        return no_memory(generator);
    data->layout = TT_DATA_SPARSE;
    data->row_count = spec->row_count;
    data->feature_count = spec->feature_count;
    data->nonzero_count = spec->row_count * spec->field_count;
    data->class_count = 2;
    data->class_label[1] = 1;
    data->label = tt_mem_alloc(data->row_count * sizeof *data->label);
    data->row_begin = tt_mem_alloc((data->row_count + 1) * sizeof *data->row_begin);
    data->index = tt_mem_alloc(data->nonzero_count * sizeof *data->index);
    if (spec->numeric_field_count > 0)
        data->value = tt_mem_alloc(data->nonzero_count * sizeof *data->value);
    if (data->label == NULL || data->row_begin == NULL || data->index == NULL ||
        (spec->numeric_field_count > 0 && data->value == NULL))
        return no_memory(generator);
    data->row_begin[0] = 0;
    return TT_OK;
}

// As a reader leaves it: no values when all are 1, and two classes.
static tt_status
finish_dataset(struct generator *generator)
{
    tt_dataset *data = generator->data;
    uint64_t i = 0;
    while (data->value != NULL && i < data->nonzero_count && data->value[i] == 1.0f)
        i++;
    if (i == data->nonzero_count) {
        tt_mem_free(data->value);
        data->value = NULL;
    }
    if (generator->positives == 0 || generator->positives == data->row_count)
        return tt_error_set(generator->err, TT_INVALID, "generate",
                            "make more rows, or a positive rate nearer to 0.5",
                            "all %llu labels came out the same",
                            (unsigned long long)data->row_count);
    return TT_OK;
}

tt_status
tt_generate_clicklog_dataset(const tt_clicklog_spec *spec,
                             tt_dataset **out,
                             tt_clicklog_truth *truth,
                             tt_error *err)
{
    *out = NULL;
    struct generator *generator;
    tt_status status = open_generator(spec, &generator, err);
    if (status == TT_OK)
        status = allocate_dataset(generator);
    if (status == TT_OK)
        status = run(generator);
    if (status == TT_OK)
        status = finish_dataset(generator);
    if (status == TT_OK) {
        tell_truth(generator, truth);
        *out = generator->data;
        generator->data = NULL;
    }
    if (generator != NULL)
        tt_dataset_close(generator->data);
    tt_mem_free(generator);
    return status;
}
