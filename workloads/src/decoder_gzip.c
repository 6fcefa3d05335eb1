// gzip by zlib: any number of members, one after the other.
#include "data_source.h"
#define ZLIB_CONST // next_in points to const
#include <zlib.h>

struct gzip {
    z_stream stream;
    int between; // a member has ended and no other has begun
};

static voidpf
gzip_alloc(voidpf opaque, uInt items, uInt size)
{
    TT_UNUSED(opaque);
    return tt_mem_zalloc(items, size);
}

static void
gzip_free(voidpf opaque, voidpf memory)
{
    TT_UNUSED(opaque);
    tt_mem_free(memory);
}

static void *
gzip_open(void)
{
    enum { WINDOW_BITS = 15, GZIP_WRAPPER = 16 };
    struct gzip *gzip = tt_mem_zalloc(1, sizeof *gzip);
    if (gzip == NULL)
        return NULL;
    gzip->stream.zalloc = gzip_alloc;
    gzip->stream.zfree = gzip_free;
    gzip->between = 1;
    if (inflateInit2(&gzip->stream, WINDOW_BITS + GZIP_WRAPPER) == Z_OK)
        return gzip;
    tt_mem_free(gzip);
    return NULL;
}

static tti_decoded
gzip_decode(void *state, tti_decode_io *io, int input_ended, const char **why)
{
    struct gzip *gzip = state;
    z_stream *stream = &gzip->stream;
    if (io->in_left == 0 && input_ended && gzip->between)
        return TTI_DECODED_END;
    gzip->between = 0;
    stream->next_in = io->in;
    stream->avail_in = (uInt)TT_MIN(io->in_left, (size_t)UINT32_MAX);
    stream->next_out = io->out;
    stream->avail_out = (uInt)TT_MIN(io->out_left, (size_t)UINT32_MAX);
    int rc = inflate(stream, Z_NO_FLUSH);
    size_t used = (size_t)(stream->next_in - io->in), made = (size_t)(stream->next_out - io->out);
    io->in += used;
    io->in_left -= used;
    io->out += made;
    io->out_left -= made;
    if (rc == Z_STREAM_END) {
        gzip->between = 1;
        rc = inflateReset(stream);
    }
    if (rc == Z_MEM_ERROR)
        return TTI_DECODED_NOMEM;
    if (rc == Z_BUF_ERROR || (rc == Z_OK && used == 0 && made == 0))
        return input_ended && io->in_left == 0 && io->out_left > 0 ? TTI_DECODED_TRUNCATED
                                                                   : TTI_DECODED_SOME;
    if (rc == Z_OK)
        return TTI_DECODED_SOME;
    *why = stream->msg != NULL ? stream->msg : "unexpected data";
    return TTI_DECODED_DAMAGED;
}

static void
gzip_close(void *state)
{
    struct gzip *gzip = state;
    (void)inflateEnd(&gzip->stream);
    tt_mem_free(gzip);
}

const tti_decoder tti_decoder_gzip = {
    .name = "gzip",
    .check = "gzip -t",
    .magic = {0x1f, 0x8b},
    .magic_bytes = 2,
    .open = gzip_open,
    .decode = gzip_decode,
    .close = gzip_close,
};
