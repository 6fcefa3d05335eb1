// Validation of frames.
#include "tt/comm.h"
#include <string.h>

tt_status
tt_frame_check(const void *bytes, size_t size)
{
    tt_frame frame;
    if (size < sizeof frame)
        return TT_CORRUPT;
    memcpy(&frame, bytes, sizeof frame);
    if (frame.magic != TT_FRAME_MAGIC || frame.version != TT_FRAME_VERSION)
        return TT_CORRUPT;
    if (frame.kind == TT_FRAME_NONE || frame.kind >= TT_FRAME_KIND_COUNT)
        return TT_CORRUPT;
    if (frame.payload_bytes > TT_FRAME_PAYLOAD_MAX || frame.payload_bytes != size - sizeof frame)
        return TT_CORRUPT;
    return TT_OK;
}
