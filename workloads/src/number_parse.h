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

// Leading decimal digits among the eight at p: 0 to 8.
static inline uint32_t
tti_digit_count8(const char *p)
{
    // A digit xor '0' is 0..9, which 0x76 does not lift to 0x80. A carry out of a byte that is no
    // digit reaches later bytes only, which do not count any more.
    uint64_t x = tti_load8(p) ^ 0x3030303030303030u;
    uint64_t other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    return other == 0 ? 8 : (uint32_t)__builtin_ctzll(other) >> 3;
}

// Value of the `count` digits at p, count from 1 to 8: pairs, then fours, then all (three
// multiplies).
static inline uint32_t
tti_digits8(const char *p, uint32_t count)
{
    uint64_t x = (tti_load8(p) ^ 0x3030303030303030u) << (64 - 8 * count);
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffu;
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffu;
    return (uint32_t)(x * 10000 + (x >> 32));
}

// Any decimal number (sign, digits, point, exponent), correctly rounded to double as strtod does;
// returns the first byte behind it, or p itself when there is no number (which "nan", "inf" and
// hexadecimal are not). Overflow gives an infinity.
const char *tti_number_parse(const char *p, double *value);

// The frequent case inline: up to 8 digits, or up to 8 + 7 around a point, no exponent. Returns
// NULL when the number is not of this kind; then tti_number_parse knows.
static inline const char *
tti_number_parse_short(const char *p, double *value)
{
    static const double power[8] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    int negative = *p == '-';
    p += negative;
    uint32_t count = tti_digit_count8(p);
    if (count == 0)
        return NULL;
    double result = tti_digits8(p, count);
    p += count;
    if (*p == '.') {
        uint32_t fraction_count = tti_digit_count8(++p);
        if (fraction_count == 0 || fraction_count > 7)
            return NULL;
        // Below 1e15 both steps before the division are exact, and so the one rounding is right.
        result = result * power[fraction_count] + tti_digits8(p, fraction_count);
        result /= power[fraction_count];
        p += fraction_count;
    }
    *value = negative ? -result : result;
    // Another digit, a second point, an exponent: not this kind.
    return (unsigned char)(*p - '0') <= 9 || *p == '.' || (*p | 0x20) == 'e' ? NULL : p;
}

#endif
