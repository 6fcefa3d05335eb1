// Text -> data set: blocks of whole lines are cut off the source in order, parsed by all
// threads, and appended to the final arrays in order. Problems are reported when their block's turn
// comes, hence always the first in the file.
#include "text_reader.h"
#include "data_source.h"
#include "ordered_pipeline.h"
#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES    ((size_t)512 * 1024)
#define LINE_BYTES_MAX ((size_t)1 << 30)

struct item {
    tti_text_block block;
    size_t file;           // whose text this is
    int last;              // of its file
    tt_status fill_status; // not TT_OK: reading failed behind the block's text
    tt_error fill_error;
};

struct reader {
    const tti_text_format *format;
    void *self; // the format's
    const tt_data_spec *spec;
    const void *prepared; // by the format from the first block
    uint64_t plain_bytes; // of all files, for estimates; 0: not known
    const tti_text_consumer *consumer;
    tt_error *err;
    // fill
    size_t source_file; // the file that `source` reads
    tti_source *source; // NULL: the next file is not open yet
    char *carry;        // the beginning of a line whose end is not read yet
    size_t carry_bytes, carry_capacity;
    int begun, handed_on; // with this file
    int ended;            // all files are read
    // drain
    tt_dataset *data;
    size_t row_capacity, entry_capacity, value_capacity;
    size_t fault_file;              // whose text a fault is in
    uint64_t line_count, file_rows; // before this block, in its file
    uint32_t width;
    tti_unknown_label unknown; // a label that `like` has not
    size_t unknown_file;       // where it is
    uint32_t label_count;      // in order of first occurrence, until sort_classes
    double label_value[TTI_CLASSES_MAX];
};

// ---- Fill: whole lines from the source ----

static int
fill_failed(struct reader *reader, struct item *item, tt_status status)
{
    item->fill_status = status;
    item->block.text_bytes = 0;
    reader->ended = 1;
    return 1;
}

static const char *
path_of(const struct reader *reader, size_t file)
{
    return reader->spec->paths[file];
}

static int
fill_no_memory(struct reader *reader, struct item *item)
{
    return fill_failed(reader, item,
                       tt_error_set(&item->fill_error, TT_NOMEM, path_of(reader, item->file),
                                    "use fewer data.threads or more memory",
                                    "no memory for a block of text"));
}

static void
skip_byte_order_mark(tti_text_block *block)
{
    if (block->text_bytes < 3 || memcmp(block->text, "\xef\xbb\xbf", 3) != 0)
        return;
    block->text_bytes -= 3;
    memmove(block->text, block->text + 3, block->text_bytes);
}

// Keeps what is behind the last newline for the next block; 0 when there is no memory.
static int
carry_over(struct reader *reader, tti_text_block *block, size_t whole_bytes)
{
    size_t rest = block->text_bytes - whole_bytes;
    if (rest > reader->carry_capacity) {
        char *carry = tt_mem_realloc(reader->carry, rest);
        if (carry == NULL)
            return 0;
        reader->carry = carry;
        reader->carry_capacity = rest;
    }
    if (rest > 0)
        memcpy(reader->carry, block->text + whole_bytes, rest);
    reader->carry_bytes = rest;
    block->text_bytes = whole_bytes;
    return 1;
}

// At the end of a file: the last line may lack its newline. Room for it is always reserved.
static void
finish_text(struct reader *reader, struct item *item)
{
    tti_text_block *block = &item->block;
    item->last = 1;
    reader->carry_bytes = 0;
    if (block->text_bytes > 0 && block->text[block->text_bytes - 1] != '\n')
        block->text[block->text_bytes++] = '\n';
    memset(block->text + block->text_bytes, 0, TTI_TEXT_PADDING);
}

static tt_status
open_file(struct reader *reader, tt_error *err)
{
    if (reader->source != NULL)
        return TT_OK;
    reader->begun = reader->handed_on = 0;
    return tti_source_open(path_of(reader, reader->source_file), &reader->source, err);
}

// The next item is of the next file.
static void
close_file(struct reader *reader)
{
    tti_source_close(reader->source);
    reader->source = NULL;
    reader->ended = ++reader->source_file == reader->spec->path_count;
}

// Whole lines are in the block: the first one of a file is shown to the format. Always 1.
static int
hand_on(struct reader *reader, struct item *item)
{
    tti_text_block *block = &item->block;
    block->first = !reader->handed_on;
    if (block->first && block->text_bytes > 0 && reader->format->prepare != NULL) {
        block->format = reader->prepared;
        tt_status status = reader->format->prepare(reader->self, block, path_of(reader, item->file),
                                                   &item->fill_error);
        if (status != TT_OK)
            return fill_failed(reader, item, status);
        reader->prepared = block->format;
    }
    reader->handed_on = 1;
    block->format = reader->prepared;
    if (item->last)
        close_file(reader);
    return 1;
}

static int
fill(void *self, void *slot)
{
    struct reader *reader = self;
    struct item *item = slot;
    tti_text_block *block = &item->block;
    item->fill_status = TT_OK;
    item->file = reader->source_file;
    item->last = 0;
    block->text_bytes = 0;
    if (reader->ended)
        return 0;
    tt_status status = open_file(reader, &item->fill_error);
    if (status != TT_OK)
        return fill_failed(reader, item, status);
    size_t wanted = reader->carry_bytes + BLOCK_BYTES;
    for (;;) {
        if (tti_text_block_reserve(block, wanted + 1, reader->format->tokens) != TT_OK)
            return fill_no_memory(reader, item);
        if (block->text_bytes == 0 && reader->carry_bytes > 0)
            memcpy(block->text, reader->carry, block->text_bytes = reader->carry_bytes);
        size_t got;
        status = tti_source_read(reader->source, block->text + block->text_bytes,
                                 wanted - block->text_bytes, &got, &item->fill_error);
        if (status != TT_OK)
            return fill_failed(reader, item, status);
        size_t fresh = block->text_bytes;
        block->text_bytes += got;
        if (!reader->begun)
            skip_byte_order_mark(block);
        reader->begun = 1;
        if (got < wanted - fresh) {
            finish_text(reader, item);
            return hand_on(reader, item);
        }
        const char *newline = memrchr(block->text, '\n', block->text_bytes);
        if (newline != NULL) {
            if (!carry_over(reader, block, (size_t)(newline + 1 - block->text)))
                return fill_no_memory(reader, item);
            return hand_on(reader, item);
        }
        if (wanted >= LINE_BYTES_MAX)
            return fill_failed(reader, item,
                               tt_error_set(&item->fill_error, TT_SYNTAX,
                                            path_of(reader, item->file),
                                            "check that this is text with one row a line",
                                            "a line is longer than 1 GiB"));
        wanted *= 2;
    }
}

static void
work(void *self, void *slot)
{
    const struct reader *reader = self;
    struct item *item = slot;
    if (item->block.text_bytes > 0)
        reader->format->parse(&item->block);
    else
        tti_text_block_reset(&item->block);
    if (reader->consumer != NULL)
        reader->consumer->work(reader->consumer->self, &item->block);
}

// ---- Drain: append in order ----

static int
has_unknown_label(const struct reader *reader)
{
    return reader->unknown.place[0] != '\0';
}

static void
place_in(const struct reader *reader,
         size_t file,
         uint64_t line,
         uint64_t column,
         char place[TTI_PLACE_SIZE])
{
    tti_place(place, path_of(reader, file), "%llu:%llu",
              (unsigned long long)(reader->line_count + line), (unsigned long long)column);
}

static tt_status
report(struct reader *reader,
       size_t file,
       uint64_t line,
       uint64_t column,
       tt_status status,
       const char *advice,
       const char *what)
{
    char place[TTI_PLACE_SIZE];
    place_in(reader, file, line, column, place);
    return tt_error_set(reader->err, status, place, advice, "%s", what);
}

static tt_status
report_no_memory(struct reader *reader)
{
    return tt_error_set(reader->err, TT_NOMEM, reader->spec->path, "use fewer rows or more memory",
                        "no memory for %llu entries so far",
                        (unsigned long long)reader->data->nonzero_count);
}

// Asks for huge pages, which take a large part of the cost of touching memory for the first time
// (and of the training's translation misses); a system that refuses costs speed only. The whole
// mapping behind a large allocation is named, its bookkeeping included: a mapping split into parts
// of different kinds could no longer be grown without copying.
static void
ask_for_huge_pages(void *memory, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t worth_it = (size_t)8 << 20;
    if (bytes < worth_it)
        return;
    uintptr_t begin = (uintptr_t)memory & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + malloc_usable_size(memory) + page - 1) & ~(page - 1);
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

// Grows by a quarter, so that capacity that is not used stays small; large blocks are remapped by
// the C library, not copied, and what is not touched is not resident.
static int
reserve(void **items, size_t *capacity, size_t wanted, size_t item_size)
{
    if (wanted <= *capacity)
        return 1;
    size_t grown = TT_MAX(wanted, *capacity + *capacity / 4 + 4096);
    void *memory = tt_mem_realloc(*items, grown * item_size);
    if (memory == NULL)
        return 0;
    ask_for_huge_pages(memory, grown * item_size);
    *items = memory;
    *capacity = grown;
    return 1;
}

// Values exist from the first one that is not 1 on; those before are filled in then.
static int
append_values(struct reader *reader, const tti_text_block *block)
{
    tt_dataset *data = reader->data;
    if (data->value == NULL && block->all_ones)
        return 1;
    int first = data->value == NULL;
    size_t entries = TT_MAX(data->nonzero_count + block->entry_count, reader->entry_capacity);
    if (!reserve((void **)&data->value, &reader->value_capacity, entries, sizeof *data->value))
        return 0;
    for (uint64_t i = 0; first && i < data->nonzero_count; i++)
        data->value[i] = 1.0f;
    memcpy(data->value + data->nonzero_count, block->value,
           block->entry_count * sizeof *block->value);
    return 1;
}

// How many of what a block holds `count` of the whole file will hold, a little more than that, from
// the first block; the count itself when the size of the data is not known. Memory reserved too
// much is not touched and given back at the end.
static size_t
expect(const struct reader *reader, const tti_text_block *block, size_t count)
{
    uint64_t total = reader->plain_bytes;
    if (reader->data->row_count > 0 || total <= block->text_bytes || block->text_bytes == 0)
        return count;
    return count + (size_t)((double)count * (1.03 * (double)total / (double)block->text_bytes));
}

static int
append_rows(struct reader *reader, const tti_text_block *block, const uint16_t *class_of_label)
{
    tt_dataset *data = reader->data;
    size_t rows = data->row_count + block->row_count;
    size_t entries = data->nonzero_count + block->entry_count;
    size_t label_capacity = reader->row_capacity; // both arrays of rows grow together
    size_t row_room = expect(reader, block, rows + 1), entry_room = expect(reader, block, entries);
    if (!reserve((void **)&data->label, &label_capacity, row_room, sizeof *data->label) ||
        !reserve((void **)&data->row_begin, &reader->row_capacity, row_room,
                 sizeof *data->row_begin) ||
        !reserve((void **)&data->index, &reader->entry_capacity, entry_room, sizeof *data->index) ||
        !append_values(reader, block))
        return 0;
    if (block->entry_count > 0)
        memcpy(data->index + data->nonzero_count, block->index,
               block->entry_count * sizeof *block->index);
    uint64_t end = data->nonzero_count;
    uint64_t *row_end = data->row_begin + data->row_count + 1;
    uint16_t *label = data->label + data->row_count;
    data->row_begin[0] = 0;
    for (size_t i = 0; i < block->row_count; i++) {
        row_end[i] = end += block->row_length[i];
        label[i] = class_of_label[block->label[i]];
    }
    TT_ASSERT(end == entries);
    data->row_count = rows;
    data->nonzero_count = end;
    reader->width = TT_MAX(reader->width, block->width);
    return 1;
}

// Finds or adds a label; the index of a class of `like`, or a provisional one. -1: refused.
static int
merge_label(struct reader *reader, double label)
{
    if (reader->spec->like != NULL)
        return tti_class_of(reader->spec->like, label);
    for (uint32_t i = 0; i < reader->label_count; i++)
        if (reader->label_value[i] == label)
            return (int)i;
    if (reader->label_count == TTI_CLASSES_MAX)
        return -1;
    reader->label_value[reader->label_count] = label;
    return (int)reader->label_count++;
}

// Reading goes on, so that the message can say how many rows there are of it.
static void
count_unknown_label(struct reader *reader, const struct item *item, uint32_t label)
{
    const tti_text_block *block = &item->block;
    uint64_t rows = 0;
    for (size_t row = 0; row < block->row_count; row++)
        rows += block->label[row] == label;
    if (!has_unknown_label(reader)) {
        place_in(reader, item->file, block->label_line[label], block->label_column[label],
                 reader->unknown.place);
        reader->unknown.label = block->label_value[label];
        reader->unknown_file = item->file;
    }
    // A row with a problem behind its label is not among those of the block.
    tti_unknown_label_add(&reader->unknown, block->label_value[label], TT_MAX(rows, 1u));
}

// It was met before what ends the reading.
static tt_status
report_unknown_label(struct reader *reader)
{
    reader->fault_file = reader->unknown_file;
    return tti_unknown_label_report(&reader->unknown, 1, reader->err);
}

static tt_status
merge_labels(struct reader *reader, const struct item *item, uint16_t *class_of_label)
{
    const tti_text_block *block = &item->block;
    for (uint32_t i = 0; i < block->label_count; i++) {
        int class_index = merge_label(reader, block->label_value[i]);
        class_of_label[i] = (uint16_t)TT_MAX(class_index, 0);
        if (class_index >= 0)
            continue;
        if (reader->spec->like != NULL) {
            count_unknown_label(reader, item, i);
            continue;
        }
        char what[128];
        (void)snprintf(what, sizeof what,
                       "too many distinct labels: %.9g would be number %u of at most %u",
                       block->label_value[i], TTI_CLASSES_MAX + 1, TTI_CLASSES_MAX);
        return report(reader, item->file, block->label_line[i], block->label_column[i], TT_RANGE,
                      "the label must be a class; real-valued targets are not trained", what);
    }
    return TT_OK;
}

// A file without rows is a mistake even where others have some.
static tt_status
end_file(struct reader *reader, size_t file)
{
    const tti_text_format *format = reader->format;
    if (reader->file_rows == 0 && has_unknown_label(reader))
        return report_unknown_label(reader);
    if (reader->file_rows == 0 && reader->line_count > 0)
        return tt_error_set(reader->err, TT_INVALID, path_of(reader, file),
                            "check that this is the right file", "no rows, only %s", format->lines);
    if (reader->file_rows == 0)
        return tt_error_set(reader->err, TT_INVALID, path_of(reader, file),
                            "check that this is the right file",
                            "the file is empty; expected rows of %s", format->what);
    reader->line_count = reader->file_rows = 0;
    return TT_OK;
}

static tt_status
drain(void *self, void *slot)
{
    struct reader *reader = self;
    struct item *item = slot;
    tti_text_block *block = &item->block;
    uint16_t class_of_label[TTI_CLASSES_MAX + 1];
    reader->fault_file = item->file;
    if (reader->consumer != NULL)
        TT_TRY(reader->consumer->drain(reader->consumer->self, block, reader->err));
    TT_TRY(merge_labels(reader, item, class_of_label));
    const tti_problem *problem = &block->problem;
    int stops = problem->status != TT_OK || block->label_count > TTI_CLASSES_MAX;
    if (has_unknown_label(reader) && (stops || item->fill_status != TT_OK))
        return report_unknown_label(reader);
    if (problem->status != TT_OK)
        return report(reader, item->file, problem->line, problem->column, problem->status,
                      problem->advice, problem->what);
    if (item->fill_status != TT_OK) {
        if (reader->err != NULL)
            *reader->err = item->fill_error;
        return item->fill_status;
    }
    if (reader->consumer != NULL)
        reader->data->row_count += block->row_count;
    else if (!append_rows(reader, block, class_of_label))
        return report_no_memory(reader);
    reader->data->unknown_entries += block->unknown_entries;
    reader->data->unknown_rows += block->unknown_rows;
    reader->line_count += block->line_count;
    reader->file_rows += block->row_count;
    if (reader->format->appended != NULL)
        TT_TRY(reader->format->appended(reader->self, block, reader->err));
    return item->last ? end_file(reader, item->file) : TT_OK;
}

// ---- The whole ----

// Classes ascend; labels were numbered by first occurrence.
static void
sort_classes(struct reader *reader)
{
    tt_dataset *data = reader->data;
    uint16_t rank[TTI_CLASSES_MAX] = {0};
    for (uint32_t i = 0; i < reader->label_count; i++) {
        for (uint32_t j = 0; j < reader->label_count; j++)
            rank[i] = (uint16_t)(rank[i] + (reader->label_value[j] < reader->label_value[i]));
        data->class_label[rank[i]] = reader->label_value[i];
    }
    data->class_count = reader->label_count;
    for (uint64_t row = 0; row < data->row_count; row++)
        data->label[row] = rank[data->label[row]];
}

// Gives back unused capacity; keeping it is no failure.
static void
shrink(void **items, size_t wanted_bytes)
{
    void *memory = *items != NULL ? tt_mem_realloc(*items, wanted_bytes) : NULL;
    if (memory != NULL)
        *items = memory;
}

static tt_status
finish(struct reader *reader)
{
    const tt_data_spec *spec = reader->spec;
    tt_dataset *data = reader->data;
    char place[TTI_PLACE_SIZE];
    tti_place_of_all(place, spec->paths, spec->path_count);
    if (has_unknown_label(reader))
        return tti_unknown_label_report(&reader->unknown, 0, reader->err);
    if (reader->consumer != NULL)
        return TT_OK;
    if (spec->like != NULL) {
        data->class_count = spec->like->class_count;
        memcpy(data->class_label, spec->like->class_label, sizeof data->class_label);
        data->feature_count = spec->like->feature_count;
    } else {
        if (reader->label_count == 1)
            return tt_error_set(reader->err, TT_INVALID, place,
                                "training needs rows of at least two classes",
                                "only one label value (%.9g) in all %llu rows",
                                reader->label_value[0], (unsigned long long)data->row_count);
        sort_classes(reader);
        data->feature_count = spec->feature_count > 0 ? spec->feature_count : reader->width;
    }
    if (data->feature_count == 0)
        return tt_error_set(reader->err, TT_INVALID, place, reader->format->feature_advice,
                            "no row has a feature");
    shrink((void **)&data->label, data->row_count * sizeof *data->label);
    shrink((void **)&data->row_begin, (data->row_count + 1) * sizeof *data->row_begin);
    shrink((void **)&data->index, data->nonzero_count * sizeof *data->index);
    shrink((void **)&data->value, data->nonzero_count * sizeof *data->value);
    return TT_OK;
}

static void
set_limits(const struct reader *reader, tti_text_block *block)
{
    const tt_data_spec *spec = reader->spec;
    block->unlabelled = reader->consumer != NULL;
    block->ignore_unknown = spec->like != NULL && spec->ignore_unknown;
    uint32_t width = spec->like != NULL ? spec->like->feature_count : spec->feature_count;
    block->index_limit = width > 0 ? width : TTI_FEATURES_MAX;
    if (block->ignore_unknown)
        block->limit_advice = NULL;
    else if (spec->like != NULL)
        block->limit_advice = "the training data is narrower; raise data.features to this number";
    else if (width > 0)
        block->limit_advice = "raise data.features or leave it out";
}

static tt_status
read_all(struct reader *reader)
{
    static const tti_pipeline_ops ops = {fill, work, drain};
    int threads = tti_thread_count(reader->spec->threads);
    uint32_t slot_count = tti_pipeline_slots(threads);
    struct item *items = tt_mem_zalloc(slot_count, sizeof *items);
    if (items == NULL)
        return report_no_memory(reader);
    for (uint32_t i = 0; i < slot_count; i++)
        set_limits(reader, &items[i].block);
    tt_status status = tti_pipeline_run(&ops, reader, items, sizeof *items, slot_count, threads);
    if (status == TT_NOMEM)
        status = report_no_memory(reader);
    for (uint32_t i = 0; i < slot_count; i++) {
        if (reader->consumer != NULL)
            reader->consumer->fini(&items[i].block);
        tti_text_block_fini(&items[i].block);
    }
    tt_mem_free(items);
    return status;
}

// Compressed data that is damaged may have decompressed to nonsense. Only the file being read can
// be: those before it were read to their ends, check sums and all.
static tt_status
blame_damage(struct reader *reader, tt_status status)
{
    tt_error damage;
    if (status == TT_NOMEM || reader->source == NULL || reader->fault_file != reader->source_file ||
        tti_source_verify(reader->source, &damage) != TT_CORRUPT)
        return status;
    if (reader->err != NULL)
        *reader->err = damage;
    return TT_CORRUPT;
}

// Bytes of all files when they are plain, for an estimate: 0 when the first one, which is open, is
// not. A file that is not there is met when it is read.
static uint64_t
plain_bytes(const struct reader *reader)
{
    struct stat info;
    uint64_t sum = tti_source_plain_bytes(reader->source);
    for (size_t i = 1; sum > 0 && i < reader->spec->path_count; i++)
        if (stat(path_of(reader, i), &info) == 0 && S_ISREG(info.st_mode))
            sum += (uint64_t)info.st_size;
    return sum;
}

tt_status
tti_text_read(const tti_text_job *job, tt_error *err)
{
    const tt_data_spec *spec = job->spec;
    struct reader *reader = tt_mem_zalloc(1, sizeof *reader);
    if (reader == NULL)
        return tt_error_set(err, TT_NOMEM, spec->path, NULL, "no memory to read the file");
    reader->format = job->format;
    reader->self = job->self;
    reader->spec = spec;
    reader->err = err;
    reader->data = job->out;
    reader->consumer = job->consumer;
    job->out->layout = TT_DATA_SPARSE;
    tt_status status = TT_OK;
    if (spec->like != NULL && spec->like->layout != TT_DATA_SPARSE)
        status = tt_error_set(err, TT_INVALID, spec->path, "read both in one format",
                              "is sparse (%s) while the training data is dense", job->format->what);
    if (status == TT_OK)
        status = open_file(reader, err);
    if (status == TT_OK) {
        reader->plain_bytes = plain_bytes(reader);
        status = read_all(reader);
        if (status == TT_OK)
            status = finish(reader);
        else
            status = blame_damage(reader, status);
    }
    tti_source_close(reader->source);
    tt_mem_free(reader->carry);
    tt_mem_free(reader);
    return status;
}
