// A byte buffer that grows and is kept: bytes [begin, end) of it are in use.
#ifndef TTI_BYTE_QUEUE_H
#define TTI_BYTE_QUEUE_H

#include "tt/core.h"
#include <string.h>

typedef struct tti_byte_queue {
    uint8_t *bytes;
    size_t capacity, begin, end;
} tti_byte_queue;

static inline size_t
tti_bytes_waiting(const tti_byte_queue *queue)
{
    return queue->end - queue->begin;
}

// Moves what is in use to the front.
static inline void
tti_bytes_pack(tti_byte_queue *queue)
{
    if (queue->begin == 0)
        return;
    size_t size = tti_bytes_waiting(queue);
    if (size > 0)
        memmove(queue->bytes, queue->bytes + queue->begin, size);
    queue->begin = 0;
    queue->end = size;
}

// Room for `size` more behind the end. errors TT_NOMEM
TT_NODISCARD static inline tt_status
tti_bytes_reserve(tti_byte_queue *queue, size_t size)
{
    if (queue->begin == queue->end)
        queue->begin = queue->end = 0;
    if (queue->end + size > queue->capacity && queue->begin > queue->capacity / 2)
        tti_bytes_pack(queue);
    if (queue->end + size <= queue->capacity)
        return TT_OK;
    size_t wanted = TT_MAX(2 * queue->capacity, queue->end + size + 4096);
    uint8_t *grown = tt_mem_realloc(queue->bytes, wanted);
    if (grown == NULL)
        return TT_NOMEM;
    queue->bytes = grown;
    queue->capacity = wanted;
    return TT_OK;
}

TT_NODISCARD static inline tt_status
tti_bytes_append(tti_byte_queue *queue, const void *bytes, size_t size)
{
    TT_TRY(tti_bytes_reserve(queue, size));
    if (size > 0)
        memcpy(queue->bytes + queue->end, bytes, size);
    queue->end += size;
    return TT_OK;
}

static inline void
tti_bytes_free(tti_byte_queue *queue)
{
    tt_mem_free(queue->bytes);
    *queue = (tti_byte_queue){0};
}

#endif
