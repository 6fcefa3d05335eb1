// Tensors as npz: a zip archive (PKWARE APPNOTE 6.3, sections 4.3 and 4.5.3) of .npy files (numpy
// format 1.0). One way of writing for all sizes: stored members with 64-bit sizes.
#include "tt/workloads_tensor.h"
#include "whole_file.h"
#include <string.h>

enum {
    MEMBERS_MAX = 16,
    NAME_BYTES = 64,
    NPY_HEADER_BYTES = 128,
    NPY_ALIGNMENT = 64,
    ZIP_VERSION = 45, // the first with 64-bit sizes
    ZIP_DATE = 0x21,  // 1980-01-01: files of equal models are equal
    ZIP64 = 1         // the extra field of 64-bit sizes
};
#define IN_EXTRA 0xffffffffu

typedef struct npz_member {
    char name[NAME_BYTES];
    char npy[NPY_HEADER_BYTES];
    size_t npy_bytes;
    uint64_t offset, bytes; // in the archive: of the local header; of header and data
    uint32_t crc;
} npz_member;

typedef struct npz_writer {
    tti_whole_file file;
    tt_error *err;
    uint64_t offset;
    tt_status status; // the first that was not TT_OK; nothing is written after it
} npz_writer;

static void
put(npz_writer *writer, const void *bytes, size_t size)
{
    if (writer->status == TT_OK)
        writer->status = tti_whole_file_write(&writer->file, bytes, size, writer->err);
    writer->offset += size;
}

// Little-endian fields of a zip record, put together and written at once.
typedef struct zip_record {
    unsigned char bytes[128];
    size_t size;
} zip_record;

static void
field(zip_record *record, uint64_t value, size_t size)
{
    TT_ASSERT(record->size + size <= sizeof record->bytes);
    for (size_t i = 0; i < size; i++)
        record->bytes[record->size++] = (unsigned char)(value >> 8 * i);
}

// Magic, version 1.0, length, a Python dictionary padded so that the data begin aligned.
static void
npy_header(const tt_tensor *tensor, npz_member *member)
{
    char shape[48] = "()", type[24] = "<f4", text[NPY_HEADER_BYTES];
    if (tensor->type == TT_TENSOR_F64)
        (void)snprintf(type, sizeof type, "<f8");
    if (tensor->type == TT_TENSOR_TEXT)
        (void)snprintf(type, sizeof type, "|S%zu", strlen(tensor->data));
    if (tensor->rank == 1)
        (void)snprintf(shape, sizeof shape, "(%llu,)", (unsigned long long)tensor->shape[0]);
    if (tensor->rank == 2)
        (void)snprintf(shape, sizeof shape, "(%llu, %llu)", (unsigned long long)tensor->shape[0],
                       (unsigned long long)tensor->shape[1]);
    int length = snprintf(text, sizeof text,
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    TT_ASSERT(length > 0 && 10 + (size_t)length + 1 <= NPY_HEADER_BYTES);
    size_t whole = 10 + (size_t)length + 1;
    whole = (whole + NPY_ALIGNMENT - 1) / NPY_ALIGNMENT * NPY_ALIGNMENT;
    memset(member->npy, ' ', sizeof member->npy);
    memcpy(member->npy, "\x93NUMPY\x01", 8);
    member->npy[8] = (char)(whole - 10);
    member->npy[9] = 0;
    memcpy(member->npy + 10, text, (size_t)length);
    member->npy[whole - 1] = '\n';
    member->npy_bytes = whole;
}

// What local and central headers have in common.
static void
common_fields(zip_record *record, const npz_member *member, size_t extra_bytes)
{
    field(record, ZIP_VERSION, 2);
    field(record, 0, 2); // flags
    field(record, 0, 2); // stored
    field(record, 0, 2); // time
    field(record, ZIP_DATE, 2);
    field(record, member->crc, 4);
    field(record, IN_EXTRA, 4);
    field(record, IN_EXTRA, 4);
    field(record, strlen(member->name), 2);
    field(record, extra_bytes + 4, 2);
}

static void
sizes_extra(zip_record *record, const npz_member *member, size_t extra_bytes)
{
    field(record, ZIP64, 2);
    field(record, extra_bytes, 2);
    field(record, member->bytes, 8);
    field(record, member->bytes, 8);
}

static void
write_member(npz_writer *writer, const tt_tensor *tensor, npz_member *member)
{
    size_t data_bytes = (size_t)tt_tensor_bytes(tensor);
    (void)snprintf(member->name, sizeof member->name, "%.50s.npy", tensor->name);
    npy_header(tensor, member);
    member->crc = tt_tensor_crc32(0, member->npy, member->npy_bytes);
    member->crc = tt_tensor_crc32(member->crc, tensor->data, data_bytes);
    member->bytes = member->npy_bytes + data_bytes;
    member->offset = writer->offset;
    zip_record local = {.size = 0}, extra = {.size = 0};
    field(&local, 0x04034b50, 4);
    common_fields(&local, member, 16);
    sizes_extra(&extra, member, 16);
    put(writer, local.bytes, local.size);
    put(writer, member->name, strlen(member->name));
    put(writer, extra.bytes, extra.size);
    put(writer, member->npy, member->npy_bytes);
    put(writer, tensor->data, data_bytes);
}

static void
write_central(npz_writer *writer, const npz_member *member)
{
    zip_record central = {.size = 0}, extra = {.size = 0};
    field(&central, 0x02014b50, 4);
    field(&central, ZIP_VERSION, 2); // made by
    common_fields(&central, member, 24);
    field(&central, 0, 2);        // comment
    field(&central, 0, 2);        // disk
    field(&central, 0, 2);        // internal attributes
    field(&central, 0, 4);        // external attributes
    field(&central, IN_EXTRA, 4); // offset
    sizes_extra(&extra, member, 24);
    field(&extra, member->offset, 8);
    put(writer, central.bytes, central.size);
    put(writer, member->name, strlen(member->name));
    put(writer, extra.bytes, extra.size);
}

static void
write_end(npz_writer *writer, uint64_t central_offset, size_t count)
{
    uint64_t central_bytes = writer->offset - central_offset, end_offset = writer->offset;
    zip_record end = {.size = 0};
    field(&end, 0x06064b50, 4); // the 64-bit end of the directory
    field(&end, 44, 8);         // bytes that follow
    field(&end, ZIP_VERSION, 2);
    field(&end, ZIP_VERSION, 2);
    field(&end, 0, 4 + 4); // disks
    field(&end, count, 8);
    field(&end, count, 8);
    field(&end, central_bytes, 8);
    field(&end, central_offset, 8);
    field(&end, 0x07064b50, 4); // where it is
    field(&end, 0, 4);
    field(&end, end_offset, 8);
    field(&end, 1, 4); // disks
    field(&end, 0x06054b50, 4);
    field(&end, 0, 2 + 2); // disks
    field(&end, count, 2);
    field(&end, count, 2);
    field(&end, IN_EXTRA, 4);
    field(&end, IN_EXTRA, 4);
    field(&end, 0, 2); // comment
    put(writer, end.bytes, end.size);
}

tt_status
tt_tensors_save_npz(const char *path, const tt_tensor *tensors, size_t count, tt_error *err)
{
    TT_ASSERT(count <= MEMBERS_MAX);
    npz_member members[MEMBERS_MAX];
    npz_writer writer = {.err = err};
    memset(members, 0, sizeof members);
    writer.status = tti_whole_file_open(&writer.file, path, err);
    for (size_t i = 0; i < count; i++)
        write_member(&writer, &tensors[i], &members[i]);
    uint64_t central_offset = writer.offset;
    for (size_t i = 0; i < count; i++)
        write_central(&writer, &members[i]);
    write_end(&writer, central_offset, count);
    if (writer.status == TT_OK)
        writer.status = tti_whole_file_commit(&writer.file, err);
    tti_whole_file_close(&writer.file);
    return writer.status;
}
