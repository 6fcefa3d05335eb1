// An archive: bytes that state is written into and read back from, by one function for both
// directions, so that the two cannot drift apart. Whoever owns a state visits its fields in order;
// when writing they are appended, when reading they are filled.
//
// Caveats: plain memory images, little-endian, of this build's structs: an archive that has to
// outlive a version says so by fixed-width fields or by a tag that is checked (tt_archive_tag).
// Faults stick: after the first one every further call does nothing, and the status says why, so a
// visit is written without a check a line. What was to be read stays as it was then.
#ifndef TT_CORE_ARCHIVE_H
#define TT_CORE_ARCHIVE_H

#include "tt/core_status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct tt_archive {
    uint8_t *bytes; // writing: owned; reading: borrowed
    size_t count, capacity;
    size_t cursor; // reading: next byte
    int reading;
    tt_status status; // TT_OK, TT_NOMEM, TT_CORRUPT: ends too early or a tag differs
} tt_archive;

// Writing, with room for `capacity` bytes (it grows). A zeroed archive will do, too.
void tt_archive_write(tt_archive *archive, size_t capacity);
// Empties it and keeps its memory.
void tt_archive_rewind(tt_archive *archive);
// Reading bytes that must stay while it is used.
void tt_archive_read(tt_archive *archive, const void *bytes, size_t count);
// Releases what was written. Nothing for one that reads.
void tt_archive_fini(tt_archive *archive);

// One field of `size` bytes.
void tt_archive_field(tt_archive *archive, void *field, size_t size);
#define TT_ARCHIVE(archive, lvalue) tt_archive_field((archive), &(lvalue), sizeof(lvalue))
// A number that must be the same when read: a size, a version, a count that is given.
void tt_archive_tag(tt_archive *archive, uint64_t tag);
// The next `size` bytes as they lie in a reading archive, or NULL when there are not so many; for
// large arrays.
const void *tt_archive_borrow(tt_archive *archive, size_t size);
// Room for `size` bytes at the end of a writing archive, to be filled before the next call, or NULL
// when there is no memory.
void *tt_archive_room(tt_archive *archive, size_t size);
// Marks the archive as damaged (a value that was read makes no sense).
void tt_archive_damaged(tt_archive *archive);

#endif
