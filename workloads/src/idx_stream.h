// The items of an IDX file one after the other, without holding them all.
#ifndef TTI_IDX_STREAM_H
#define TTI_IDX_STREAM_H

#include "data_internal.h"

typedef struct tti_idx_stream tti_idx_stream;

// Items of the size of those of `like`. errors and places as tt_dataset_open
TT_NODISCARD tt_status tti_idx_stream_open(const char *path,
                                           const tt_dataset *like,
                                           tti_idx_stream **out,
                                           tt_error *err);
uint32_t tti_idx_stream_width(const tti_idx_stream *stream);
// Fills items[0 .. max) and sets *got; *got < max only at the end, where nothing may follow. On
// failure *got items are whole.
TT_NODISCARD tt_status
tti_idx_stream_read(tti_idx_stream *stream, uint8_t *items, size_t max, size_t *got, tt_error *err);
void tti_idx_stream_close(tti_idx_stream *stream);

#endif
