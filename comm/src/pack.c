// LZ4 blocks: see tt/comm_pack.h. LZ4 finds bytes that come again. In float32 values and in sorted
// keys those are the upper bytes, which are alike but stand apart: so all first bytes of fours go
// before all second ones (the shuffle of Blosc and of HDF5).
#include "tt/comm.h"
#include <lz4.h>
#include <string.h>

enum { HEAD = sizeof(uint32_t), WORST_RATIO = 255 };

static tt_status
reserve(uint8_t **bytes, size_t *capacity, size_t size)
{
    if (size <= *capacity)
        return TT_OK;
    uint8_t *grown = tt_mem_zalloc_vector(size, 1);
    if (grown == NULL)
        return TT_NOMEM;
    tt_mem_free(*bytes);
    *bytes = grown;
    *capacity = size;
    return TT_OK;
}

// What is left over of fours stays behind.
static void
shuffle(const uint8_t *from, uint8_t *to, size_t size)
{
    size_t fours = size / 4;
    for (size_t i = 0; i < fours; i++) {
        uint32_t word;
        memcpy(&word, from + 4 * i, sizeof word);
        to[i] = (uint8_t)word;
        to[fours + i] = (uint8_t)(word >> 8);
        to[2 * fours + i] = (uint8_t)(word >> 16);
        to[3 * fours + i] = (uint8_t)(word >> 24);
    }
    memcpy(to + 4 * fours, from + 4 * fours, size % 4);
}

static void
unshuffle(const uint8_t *from, uint8_t *to, size_t size)
{
    size_t fours = size / 4;
    for (size_t i = 0; i < fours; i++) {
        uint32_t word = (uint32_t)from[i] | (uint32_t)from[fours + i] << 8 |
                        (uint32_t)from[2 * fours + i] << 16 | (uint32_t)from[3 * fours + i] << 24;
        memcpy(to + 4 * i, &word, sizeof word);
    }
    memcpy(to + 4 * fours, from + 4 * fours, size % 4);
}

// The pieces one behind the other; NULL without memory.
static const uint8_t *
gather(tt_packer *packer, const tt_span *pieces, uint32_t count, size_t size)
{
    if (count == 1)
        return pieces[0].bytes;
    if (reserve(&packer->text, &packer->text_capacity, size) != TT_OK)
        return NULL;
    uint8_t *at = packer->text;
    for (uint32_t i = 0; i < count; i++) {
        if (pieces[i].size > 0)
            memcpy(at, pieces[i].bytes, pieces[i].size);
        at += pieces[i].size;
    }
    return packer->text;
}

int
tt_packer_pack(tt_packer *packer, const tt_span *pieces, uint32_t count, tt_span *out)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += pieces[i].size;
    // Less than a sixteenth shorter is not worth unpacking.
    size_t room = size - size / 16;
    if (size < TT_PACK_LEAST || size > TT_FRAME_PAYLOAD_MAX)
        return 0;
    const uint8_t *text = gather(packer, pieces, count, size);
    if (text == NULL || reserve(&packer->shuffled, &packer->shuffled_capacity, size) != TT_OK ||
        reserve(&packer->block, &packer->block_capacity, room) != TT_OK)
        return 0;
    shuffle(text, packer->shuffled, size);
    int packed = LZ4_compress_default((const char *)packer->shuffled, (char *)packer->block + HEAD,
                                      (int)size, (int)(room - HEAD));
    if (packed <= 0)
        return 0;
    const uint32_t head = (uint32_t)size;
    memcpy(packer->block, &head, sizeof head);
    *out = (tt_span){packer->block, HEAD + (size_t)packed};
    return 1;
}

tt_status
tt_packer_unpack(tt_packer *packer, const uint8_t *bytes, size_t size, tt_span *out)
{
    uint32_t whole;
    if (size <= HEAD || size > TT_FRAME_PAYLOAD_MAX)
        return TT_CORRUPT;
    memcpy(&whole, bytes, sizeof whole);
    if (whole > TT_FRAME_PAYLOAD_MAX || whole > WORST_RATIO * (size - HEAD))
        return TT_CORRUPT;
    size_t room = TT_MAX((size_t)whole, (size_t)1);
    TT_TRY(reserve(&packer->shuffled, &packer->shuffled_capacity, room));
    TT_TRY(reserve(&packer->text, &packer->text_capacity, room));
    int unpacked = LZ4_decompress_safe((const char *)bytes + HEAD, (char *)packer->shuffled,
                                       (int)(size - HEAD), (int)whole);
    if (unpacked < 0 || (uint32_t)unpacked != whole)
        return TT_CORRUPT;
    unshuffle(packer->shuffled, packer->text, whole);
    *out = (tt_span){packer->text, whole};
    return TT_OK;
}

void
tt_packer_free(tt_packer *packer)
{
    tt_mem_free(packer->text);
    tt_mem_free(packer->shuffled);
    tt_mem_free(packer->block);
    *packer = (tt_packer){0};
}
