// Checkpoint files: sections of bytes, each with its checksum, written beside their place, synced
// and renamed, so that under a name there is a whole file or none; and the directory of them.
//
// Layout, little-endian: 64 bytes of header (magic "TTCKPT\r\n", u32 version, u32 sections, u64
// bytes of the whole file, u64 iteration, f64 seconds on the job's clock, i64 seconds since 1970,
// u64 XXH3 of the section table, u64 XXH3 of the header's first 56 bytes); for each section 40
// bytes (16 of name, u64 offset, u64 bytes, u64 XXH3); the sections.
#ifndef TTI_CHECKPOINT_FILE_H
#define TTI_CHECKPOINT_FILE_H

#include "tt/comm.h"
#include "tt/core.h"

enum { TTI_CHECKPOINT_SECTIONS_MAX = 8, TTI_CHECKPOINT_NAME_BYTES = 16 };

typedef struct tti_checkpoint_section {
    char name[TTI_CHECKPOINT_NAME_BYTES]; // ends with 0
    const uint8_t *bytes;
    uint64_t count;
} tti_checkpoint_section;

typedef struct tti_checkpoint {
    uint64_t iteration;
    double time_s;      // on the job's clock
    int64_t written_at; // seconds since 1970
    uint32_t section_count;
    tti_checkpoint_section sections[TTI_CHECKPOINT_SECTIONS_MAX];
    uint8_t *file; // reading: owns what the sections point into
    char path[700];
} tti_checkpoint;

// directory/ITERATION.ttck
void tti_checkpoint_path(const char *directory, uint64_t iteration, char *out, size_t size);
// Writes directory/ITERATION.ttck; makes the directory. On failure what was there before is
// untouched. errors TT_IO
TT_NODISCARD tt_status tti_checkpoint_write(const char *directory,
                                            const tti_checkpoint *checkpoint,
                                            tt_error *err);
// The same bytes as pieces, without a file; the first two lie in *head.
enum { TTI_CHECKPOINT_PIECES_MAX = TTI_CHECKPOINT_SECTIONS_MAX + 2 };
typedef struct tti_checkpoint_head {
    uint8_t bytes[64 + 40 * TTI_CHECKPOINT_SECTIONS_MAX];
} tti_checkpoint_head;
uint32_t tti_checkpoint_pieces(const tti_checkpoint *checkpoint,
                               tti_checkpoint_head *head,
                               tt_span pieces[TTI_CHECKPOINT_PIECES_MAX]);
// Checks such bytes, which it takes; `path` is for messages. errors TT_CORRUPT, TT_UNSUPPORTED
TT_NODISCARD tt_status tti_checkpoint_parse(
    uint8_t *bytes, uint64_t count, const char *path, tti_checkpoint *out, tt_error *err);
// One more section, whose bytes stay where they are.
void
tti_checkpoint_add(tti_checkpoint *checkpoint, const char *name, const void *bytes, uint64_t count);
// Reads and checks one file. errors TT_NOTFOUND, TT_IO, TT_CORRUPT, TT_UNSUPPORTED a newer version
TT_NODISCARD tt_status tti_checkpoint_read(const char *path, tti_checkpoint *out, tt_error *err);
void tti_checkpoint_fini(tti_checkpoint *checkpoint);
// The section's bytes, or NULL with *count 0.
const uint8_t *
tti_checkpoint_find(const tti_checkpoint *checkpoint, const char *name, uint64_t *count);

// The newest one that is whole. Those found damaged get the ending .damaged; `skipped` counts them
// and err says why the last of them was, also on success. errors TT_NOTFOUND there is none
TT_NODISCARD tt_status tti_checkpoint_newest(const char *directory,
                                             tti_checkpoint *out,
                                             uint32_t *skipped,
                                             tt_error *err);
// Keeps the newest `keep` files and takes the others away, and what a killed process left half
// written.
void tti_checkpoint_prune(const char *directory, uint32_t keep);

#endif
