// A file as a stream of bytes, decompressed when its first bytes say that it is compressed.
#ifndef TTI_DATA_SOURCE_H
#define TTI_DATA_SOURCE_H

#include "tt/core.h"

typedef struct tti_source tti_source;

// errors   TT_NOTFOUND no such file; TT_INVALID a directory; TT_IO not readable; TT_UNSUPPORTED a
//          compression that is not read; TT_NOMEM
// owns     *out: release with tti_source_close; NULL on failure. `path` is kept and must outlive it
TT_NODISCARD tt_status tti_source_open(const char *path, tti_source **out, tt_error *err);
// Fills buffer[0..size) and sets *got; *got < size only at the end of the data.
// errors   TT_CORRUPT damaged or truncated compressed data, with the offset in the file; TT_IO
TT_NODISCARD tt_status
tti_source_read(tti_source *source, void *buffer, size_t size, size_t *got, tt_error *err);
// Size of a plain file, for estimates; 0 when it is compressed or not known.
uint64_t tti_source_plain_bytes(const tti_source *source);
// Compressed data that is damaged may still decompress, to nonsense: when a reader does not
// understand a compressed file, this reads the rest of it and says whether the file is whole.
TT_NODISCARD tt_status tti_source_verify(tti_source *source, tt_error *err);
// "gzip", "xz", "zstd", or "plain".
const char *tti_source_compression(const tti_source *source);
void tti_source_close(tti_source *source);

// ---- Decompressors: one constant table each ----

typedef enum tti_decoded {
    TTI_DECODED_SOME,      // progress was made; call again with more input or room
    TTI_DECODED_END,       // the data is complete: all input is used and none is to follow
    TTI_DECODED_TRUNCATED, // the input has ended and the data has not
    TTI_DECODED_DAMAGED,   // *why says how
    TTI_DECODED_NOMEM,
} tti_decoded;

typedef struct tti_decode_io {
    const unsigned char *in;
    size_t in_left;
    unsigned char *out;
    size_t out_left;
} tti_decode_io;

typedef struct tti_decoder {
    const char *name;       // as in "gzip data"
    const char *check;      // command that tests a file, for advice
    unsigned char magic[6]; // first bytes of such a file
    size_t magic_bytes;
    void *(*open)(void); // NULL: no memory
    tti_decoded (*decode)(void *state, tti_decode_io *io, int input_ended, const char **why);
    void (*close)(void *state);
} tti_decoder;

extern const tti_decoder tti_decoder_gzip;
extern const tti_decoder tti_decoder_xz;
extern const tti_decoder tti_decoder_zstd;

#endif
