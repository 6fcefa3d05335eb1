// Decimal numbers in text, eight digits at a time. All functions may read TTI_TEXT_PADDING bytes
// behind the number and stop at the first byte that does not belong to it.
#ifndef TTI_NUMBER_PARSE_H
#define TTI_NUMBER_PARSE_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read as little-endian words");

static inline uint64_t
tti_load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

// One bit (the highest of its byte) for each byte of the word that is no digit, given the word xor
// "00000000". Right for the first such byte, and for those behind a point too.
static inline uint64_t
tti_other_than_digits(uint64_t x)
{
    // A digit xor '0' is 0..9, which 0x76 does not lift to 0x80. Only a byte of 0x8a or more
    // carries into the next one, and that byte is no digit itself and no point.
    return ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
}

// Leading decimal digits among the eight at p: 0 to 8.
static inline uint32_t
tti_digit_count8(const char *p)
{
    uint64_t other = tti_other_than_digits(tti_load8(p) ^ 0x3030303030303030u);
    return other == 0 ? 8 : (uint32_t)__builtin_ctzll(other) >> 3;
}

// Value of the first `count` bytes of a word of digits xor '0', count from 1 to 8: pairs, then
// fours, then all, in three multiplications.
static inline uint32_t
tti_digits_value(uint64_t x, uint32_t count)
{
    x <<= 64 - 8 * count;
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffu;
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffu;
    return (uint32_t)(x * 10000 + (x >> 32));
}

static inline uint32_t
tti_digits8(const char *p, uint32_t count)
{
    return tti_digits_value(tti_load8(p) ^ 0x3030303030303030u, count);
}

// Any decimal number (sign, digits, point, exponent), correctly rounded to double as strtod does;
// returns the first byte behind it, or p itself when there is no number (which "nan", "inf" and
// hexadecimal are not). Overflow gives an infinity.
const char *tti_number_parse(const char *p, double *value);

// The frequent case inline: at most 7 digits with or without a point among them, no exponent, all
// in one word. Returns NULL when the number is not of this kind; then tti_number_parse knows.
static inline __attribute__((always_inline)) const char *
tti_number_parse_short(const char *p, double *value)
{
    static const double power[8] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    uint64_t negative = *p == '-';
    p += negative;
    uint64_t x = tti_load8(p) ^ 0x3030303030303030u, other = tti_other_than_digits(x);
    if (other == 0)
        return NULL;
    uint32_t size = (uint32_t)__builtin_ctzll(other) >> 3, whole = size, fraction = 0;
    if (p[size] == '.') {
        other &= other - 1;
        if (other == 0)
            return NULL;
        size = (uint32_t)__builtin_ctzll(other) >> 3;
        fraction = size - whole - 1;
        uint64_t before = ((uint64_t)1 << 8 * whole) - 1;
        x = (x & before) | (x >> 8 & ~before); // closes the gap of the point
    }
    if (whole + fraction == 0)
        return NULL;
    // Both are exact, and so the one rounding is right.
    double result = tti_digits_value(x, whole + fraction) / power[fraction];
    uint64_t bits;
    memcpy(&bits, &result, sizeof bits);
    bits |= negative << 63;
    memcpy(value, &bits, sizeof bits);
    p += size;
    return *p == '.' || (*p | 0x20) == 'e' ? NULL : p; // a second point, an exponent
}

#endif
