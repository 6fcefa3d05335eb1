// Payloads as LZ4 blocks, for what goes from host to host: the number of bytes of the payload (32
// bits, little endian), and a block of them, the first bytes of all whole fours before all second,
// third and fourth ones, and what is left over of fours behind. A frame with such a payload has the
// flag TT_FRAME_PACKED.
#ifndef TT_COMM_PACK_H
#define TT_COMM_PACK_H

#include "tt/core.h"

typedef struct tt_span tt_span;

enum { TT_PACK_LEAST = 512 }; // bytes; shorter payloads are not looked at

// Memory for one payload at a time; zero-initialised it holds none, and it grows as it is needed.
// One thread uses it.
typedef struct tt_packer {
    uint8_t *text, *shuffled, *block;
    size_t text_capacity, shuffled_capacity, block_capacity;
} tt_packer;

// The payload in these pieces, packed; *out lies in the packer until its next use. 0: it is too
// short, or would hardly get shorter, or there is no memory.
int tt_packer_pack(tt_packer *packer, const tt_span *pieces, uint32_t count, tt_span *out);
// What was packed into these bytes; likewise. Survives any bytes, and takes no more memory than
// twice 255 times their size, which is what LZ4 can make of them. errors TT_CORRUPT; TT_NOMEM
TT_NODISCARD tt_status tt_packer_unpack(tt_packer *packer,
                                        const uint8_t *bytes,
                                        size_t size,
                                        tt_span *out);
void tt_packer_free(tt_packer *packer);

#endif
