// State written to bytes and read back by the same visits.
#include "tt/core_archive.h"
#include "tt/core_mem.h"
#include <string.h>

void
tt_archive_write(tt_archive *archive, size_t capacity)
{
    *archive = (tt_archive){0};
    if (capacity == 0)
        return;
    archive->bytes = tt_mem_alloc(capacity);
    archive->capacity = archive->bytes != NULL ? capacity : 0;
    archive->status = archive->bytes != NULL ? TT_OK : TT_NOMEM;
}

void
tt_archive_rewind(tt_archive *archive)
{
    archive->count = archive->cursor = 0;
    archive->status = TT_OK;
}

void
tt_archive_read(tt_archive *archive, const void *bytes, size_t count)
{
    *archive = (tt_archive){.count = count, .reading = 1};
    archive->bytes = (uint8_t *)(uintptr_t)bytes; // never written to: see `reading`
}

void
tt_archive_fini(tt_archive *archive)
{
    if (!archive->reading)
        tt_mem_free(archive->bytes);
    *archive = (tt_archive){0};
}

void *
tt_archive_room(tt_archive *archive, size_t size)
{
    TT_ASSERT(!archive->reading);
    if (archive->status != TT_OK)
        return NULL;
    if (archive->capacity - archive->count < size) {
        size_t capacity = TT_MAX(2 * archive->capacity, archive->count + size);
        uint8_t *grown = tt_mem_realloc(archive->bytes, capacity);
        if (grown == NULL) {
            archive->status = TT_NOMEM;
            return NULL;
        }
        archive->bytes = grown;
        archive->capacity = capacity;
    }
    archive->count += size;
    return archive->bytes + archive->count - size;
}

const void *
tt_archive_borrow(tt_archive *archive, size_t size)
{
    TT_ASSERT(archive->reading);
    if (archive->status == TT_OK && archive->count - archive->cursor < size)
        archive->status = TT_CORRUPT;
    if (archive->status != TT_OK)
        return NULL;
    archive->cursor += size;
    return archive->bytes + archive->cursor - size;
}

void
tt_archive_field(tt_archive *archive, void *field, size_t size)
{
    if (archive->reading) {
        const void *bytes = tt_archive_borrow(archive, size);
        if (bytes != NULL && size > 0)
            memcpy(field, bytes, size);
        return;
    }
    void *room = tt_archive_room(archive, size);
    if (room != NULL && size > 0)
        memcpy(room, field, size);
}

void
tt_archive_tag(tt_archive *archive, uint64_t tag)
{
    uint64_t found = tag;
    TT_ARCHIVE(archive, found);
    if (found != tag)
        tt_archive_damaged(archive);
}

void
tt_archive_damaged(tt_archive *archive)
{
    if (archive->status == TT_OK)
        archive->status = TT_CORRUPT;
}
