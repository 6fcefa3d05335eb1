// xz by liblzma: any number of streams, one after the other.
#include "data_source.h"
#include <lzma.h>

struct xz {
    lzma_stream stream;
    lzma_allocator allocator;
};

static void *
xz_alloc(void *opaque, size_t items, size_t size)
{
    TT_UNUSED(opaque);
    return tt_mem_zalloc(items, size);
}

static void
xz_free(void *opaque, void *memory)
{
    TT_UNUSED(opaque);
    tt_mem_free(memory);
}

static void *
xz_open(void)
{
    // `xz -9` needs 65 MiB; a header that asks for more than this is not honest.
    const uint64_t memory_limit = (uint64_t)1 << 29;
    struct xz *xz = tt_mem_zalloc(1, sizeof *xz);
    if (xz == NULL)
        return NULL;
    xz->allocator = (lzma_allocator){xz_alloc, xz_free, NULL};
    xz->stream = (lzma_stream)LZMA_STREAM_INIT;
    xz->stream.allocator = &xz->allocator;
    if (lzma_stream_decoder(&xz->stream, memory_limit, LZMA_CONCATENATED) == LZMA_OK)
        return xz;
    lzma_end(&xz->stream);
    tt_mem_free(xz);
    return NULL;
}

static const char *
xz_why(lzma_ret rc)
{
    switch (rc) {
    case LZMA_DATA_ERROR:
        return "the data or its checksum is wrong";
    case LZMA_FORMAT_ERROR:
        return "no stream header";
    case LZMA_OPTIONS_ERROR:
        return "unknown options in a header";
    case LZMA_MEMLIMIT_ERROR:
        return "decompressing it needs more than 512 MiB";
    default:
        return "unexpected data";
    }
}

static tti_decoded
xz_decode(void *state, tti_decode_io *io, int input_ended, const char **why)
{
    lzma_stream *stream = &((struct xz *)state)->stream;
    stream->next_in = io->in;
    stream->avail_in = io->in_left;
    stream->next_out = io->out;
    stream->avail_out = io->out_left;
    lzma_ret rc = lzma_code(stream, input_ended ? LZMA_FINISH : LZMA_RUN);
    *io = (tti_decode_io){stream->next_in, stream->avail_in, stream->next_out, stream->avail_out};
    switch (rc) {
    case LZMA_OK:
        return TTI_DECODED_SOME;
    case LZMA_STREAM_END:
        return TTI_DECODED_END;
    case LZMA_MEM_ERROR:
        return TTI_DECODED_NOMEM;
    case LZMA_BUF_ERROR: // no progress was possible
        return input_ended && io->in_left == 0 && io->out_left > 0 ? TTI_DECODED_TRUNCATED
                                                                   : TTI_DECODED_SOME;
    default:
        *why = xz_why(rc);
        return TTI_DECODED_DAMAGED;
    }
}

static void
xz_close(void *state)
{
    struct xz *xz = state;
    lzma_end(&xz->stream);
    tt_mem_free(xz);
}

const tti_decoder tti_decoder_xz = {
    .name = "xz",
    .check = "xz -t",
    .magic = {0xfd, '7', 'z', 'X', 'Z', 0x00},
    .magic_bytes = 6,
    .open = xz_open,
    .decode = xz_decode,
    .close = xz_close,
};
