// Encrypted records of a connection: bytes, authenticated together with their number, so that
// nothing can be changed, left out, said again or put elsewhere. A record is its length (4 bytes,
// little-endian, of the text), the text, and a tag.
#ifndef TTI_RECORD_H
#define TTI_RECORD_H

#include "tt/core.h"

enum { TTI_RECORD_HEAD = 4, TTI_RECORD_TAG = 16, TTI_RECORD_TEXT_MAX = 64 << 10 };
enum { TTI_RECORD_EXTRA = TTI_RECORD_HEAD + TTI_RECORD_TAG };

typedef enum tti_cipher_kind {
    TTI_CIPHER_NONE,   // no records: the bytes as they are
    TTI_CIPHER_CHACHA, // ChaCha20-Poly1305 (RFC 8439)
    TTI_CIPHER_AES,    // AES-256-GCM, where both processors have instructions for it
} tti_cipher_kind;

// Of one direction of one connection.
typedef struct tti_cipher {
    _Alignas(16) uint8_t schedule[512]; // of AES
    uint8_t key[32];                    // of ChaCha20
    uint64_t number;                    // of the next record; never used twice with a key
    tti_cipher_kind kind;
} tti_cipher;

// Whether AES is fast here.
int tti_cipher_has_aes(void);
void tti_cipher_open(tti_cipher *cipher, tti_cipher_kind kind, const uint8_t key[32]);
void tti_cipher_forget(tti_cipher *cipher);
// out[size + TTI_RECORD_EXTRA]. 0 < size <= TTI_RECORD_TEXT_MAX
void tti_record_seal(tti_cipher *cipher, uint8_t *out, const uint8_t *text, uint32_t size);
// Length of the text of a record that begins with these bytes; 0: no record does.
uint32_t tti_record_size(const uint8_t head[TTI_RECORD_HEAD]);
// text[size], from a whole record of that size of text. errors TT_CORRUPT
TT_NODISCARD tt_status tti_record_read(tti_cipher *cipher,
                                       uint8_t *text,
                                       const uint8_t *record,
                                       uint32_t size);

#endif
