// Named tensors in a file, as other programs read them: safetensors, and npz for numpy.
//
// Caveats: little-endian machines. Files appear complete or not at all, under their own name; a
// process that is killed meanwhile leaves NAME.part-PID-N beside it. npz members are stored, not
// compressed (weights hardly compress), with 64-bit sizes throughout.
#ifndef TT_WORKLOADS_TENSOR_H
#define TT_WORKLOADS_TENSOR_H

#include "tt/core.h"

typedef enum tt_tensor_type {
    TT_TENSOR_F32,
    TT_TENSOR_F64,
    TT_TENSOR_TEXT // bytes, rank 0; npz only
} tt_tensor_type;

// Row-major. Everything is borrowed for the call.
typedef struct tt_tensor {
    const char *name; // letters, digits and underscores
    tt_tensor_type type;
    uint32_t rank;
    uint64_t shape[2];
    const void *data; // text: ended by a zero byte
} tt_tensor;

// `metadata` is a JSON object of strings.
// errors   TT_IO the directory cannot be written or is full (errno says why), nothing is left
//          behind; TT_NOMEM
TT_NODISCARD tt_status tt_tensors_save_safetensors(
    const char *path, const char *metadata, const tt_tensor *tensors, size_t count, tt_error *err);
TT_NODISCARD tt_status tt_tensors_save_npz(const char *path,
                                           const tt_tensor *tensors,
                                           size_t count,
                                           tt_error *err);

uint64_t tt_tensor_bytes(const tt_tensor *tensor);
// CRC-32 (ISO 3309, as in zip and gzip) of more bytes; 0 to begin with.
uint32_t tt_tensor_crc32(uint32_t crc, const void *bytes, size_t size);

#endif
