// Making and checking of frames.
#include "tt/comm.h"
#include "tt/core.h"
#include <string.h>

size_t
tt_frame_complete(tt_frame *frame, uint32_t sender, const tt_span *spans, uint32_t span_count)
{
    size_t payload = 0;
    for (uint32_t i = 0; i < span_count; i++)
        payload += spans[i].size;
    TT_ASSERT(payload <= TT_FRAME_PAYLOAD_MAX);
    frame->magic = TT_FRAME_MAGIC;
    frame->version = TT_FRAME_VERSION;
    frame->sender = (uint16_t)sender;
    frame->payload_bytes = (uint32_t)payload;
    return sizeof *frame + payload;
}

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
