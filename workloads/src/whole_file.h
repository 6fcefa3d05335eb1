// A file that appears complete or not at all: written under another name beside it and renamed.
#ifndef TTI_WHOLE_FILE_H
#define TTI_WHOLE_FILE_H

#include "tt/core.h"

typedef struct tti_whole_file {
    int fd; // -1: not open
    const char *path;
    char *temporary;
} tti_whole_file;

// `path` must outlive the file. errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_whole_file_open(tti_whole_file *file, const char *path, tt_error *err);
TT_NODISCARD tt_status tti_whole_file_write(tti_whole_file *file,
                                            const void *bytes,
                                            size_t size,
                                            tt_error *err);
// Makes the file appear under its name, flushed to the disk.
TT_NODISCARD tt_status tti_whole_file_commit(tti_whole_file *file, tt_error *err);
// Removes what was not committed. Call in any case; a zeroed path means never opened.
void tti_whole_file_close(tti_whole_file *file);

#endif
