// Zstandard: any number of frames, one after the other. A frame without a checksum (the library's
// default, not the program's) may be damaged without being noticed here.
#include "data_source.h"
#include <zstd.h>
#include <zstd_errors.h>

struct zstd {
    ZSTD_DStream *stream;
    int between; // a frame has ended and no other has begun
};

static void *
zstd_open(void)
{
    struct zstd *zstd = tt_mem_zalloc(1, sizeof *zstd);
    if (zstd == NULL)
        return NULL;
    zstd->between = 1;
    zstd->stream = ZSTD_createDStream(); // windows up to 128 MiB, the library's limit
    if (zstd->stream != NULL)
        return zstd;
    tt_mem_free(zstd);
    return NULL;
}

static tti_decoded
zstd_decode(void *state, tti_decode_io *io, int input_ended, const char **why)
{
    struct zstd *zstd = state;
    if (io->in_left == 0 && input_ended && zstd->between)
        return TTI_DECODED_END;
    ZSTD_inBuffer in = {io->in, io->in_left, 0};
    ZSTD_outBuffer out = {io->out, io->out_left, 0};
    size_t rc = ZSTD_decompressStream(zstd->stream, &out, &in);
    io->in += in.pos;
    io->in_left -= in.pos;
    io->out += out.pos;
    io->out_left -= out.pos;
    if (ZSTD_isError(rc)) {
        *why = ZSTD_getErrorName(rc);
        return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? TTI_DECODED_NOMEM
                                                                     : TTI_DECODED_DAMAGED;
    }
    if (in.pos > 0 || out.pos > 0)
        zstd->between = rc == 0;
    else if (input_ended && io->in_left == 0 && io->out_left > 0)
        return TTI_DECODED_TRUNCATED;
    return TTI_DECODED_SOME;
}

static void
zstd_close(void *state)
{
    struct zstd *zstd = state;
    (void)ZSTD_freeDStream(zstd->stream);
    tt_mem_free(zstd);
}

const tti_decoder tti_decoder_zstd = {
    .name = "zstd",
    .check = "zstd -t",
    .magic = {0x28, 0xb5, 0x2f, 0xfd},
    .magic_bytes = 4,
    .open = zstd_open,
    .decode = zstd_decode,
    .close = zstd_close,
};
