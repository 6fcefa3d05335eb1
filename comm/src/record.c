// Encrypted records: see record.h. Nonces are the records' numbers.
#include "record.h"
#include <sodium.h>
#include <string.h>

_Static_assert(crypto_aead_aes256gcm_ABYTES == TTI_RECORD_TAG &&
                   crypto_aead_chacha20poly1305_ietf_ABYTES == TTI_RECORD_TAG &&
                   crypto_aead_aes256gcm_NPUBBYTES == crypto_aead_chacha20poly1305_ietf_NPUBBYTES &&
                   sizeof(crypto_aead_aes256gcm_state) == sizeof((tti_cipher *)0)->schedule,
               "both ciphers have records of one form");

int
tti_cipher_has_aes(void)
{
    return crypto_aead_aes256gcm_is_available();
}

void
tti_cipher_open(tti_cipher *cipher, tti_cipher_kind kind, const uint8_t key[32])
{
    *cipher = (tti_cipher){.kind = kind};
    memcpy(cipher->key, key, sizeof cipher->key);
    if (kind == TTI_CIPHER_AES)
        (void)crypto_aead_aes256gcm_beforenm(
            (crypto_aead_aes256gcm_state *)(void *)cipher->schedule, key);
}

void
tti_cipher_forget(tti_cipher *cipher)
{
    sodium_memzero(cipher, sizeof *cipher);
}

typedef struct nonce {
    uint8_t bytes[crypto_aead_aes256gcm_NPUBBYTES];
} nonce;

static nonce
next_nonce(tti_cipher *cipher)
{
    nonce out = {{0}};
    memcpy(out.bytes, &cipher->number, sizeof cipher->number);
    cipher->number++;
    return out;
}

void
tti_record_seal(tti_cipher *cipher, uint8_t *out, const uint8_t *text, uint32_t size)
{
    TT_ASSERT(size > 0 && size <= TTI_RECORD_TEXT_MAX && cipher->kind != TTI_CIPHER_NONE);
    nonce number = next_nonce(cipher);
    unsigned long long length;
    memcpy(out, &size, TTI_RECORD_HEAD);
    uint8_t *body = out + TTI_RECORD_HEAD;
    if (cipher->kind == TTI_CIPHER_AES)
        (void)crypto_aead_aes256gcm_encrypt_afternm(
            body, &length, text, size, out, TTI_RECORD_HEAD, NULL, number.bytes,
            (const crypto_aead_aes256gcm_state *)(const void *)cipher->schedule);
    else
        (void)crypto_aead_chacha20poly1305_ietf_encrypt(
            body, &length, text, size, out, TTI_RECORD_HEAD, NULL, number.bytes, cipher->key);
}

uint32_t
tti_record_size(const uint8_t head[TTI_RECORD_HEAD])
{
    uint32_t size;
    memcpy(&size, head, sizeof size);
    return size <= TTI_RECORD_TEXT_MAX ? size : 0;
}

tt_status
tti_record_read(tti_cipher *cipher, uint8_t *text, const uint8_t *record, uint32_t size)
{
    nonce number = next_nonce(cipher);
    unsigned long long length;
    const uint8_t *body = record + TTI_RECORD_HEAD;
    uint64_t body_size = (uint64_t)size + TTI_RECORD_TAG;
    int fault;
    if (cipher->kind == TTI_CIPHER_AES)
        fault = crypto_aead_aes256gcm_decrypt_afternm(
            text, &length, NULL, body, body_size, record, TTI_RECORD_HEAD, number.bytes,
            (const crypto_aead_aes256gcm_state *)(const void *)cipher->schedule);
    else
        fault =
            crypto_aead_chacha20poly1305_ietf_decrypt(text, &length, NULL, body, body_size, record,
                                                      TTI_RECORD_HEAD, number.bytes, cipher->key);
    return fault == 0 ? TT_OK : TT_CORRUPT;
}
