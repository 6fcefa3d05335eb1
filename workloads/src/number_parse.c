// The general case of decimal numbers. Up to 19 digits with a small exponent are exact by one
// multiplication or division (Clinger, "How to read floating point numbers accurately", PLDI 1990,
// section 3); strtod does the rest, in the C locale whatever the program's.
#include "number_parse.h"
#include "tt/core.h"
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void
make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    TT_ASSERT(c_locale != (locale_t)0);
}

// Adds the digits at *p to *mantissa as long as 19 in all fit; returns how many there are.
static uint32_t
read_digits(const char **p, uint64_t *mantissa, uint32_t *digits_used)
{
    uint32_t count = 0;
    for (; (unsigned char)(**p - '0') <= 9; (*p)++, count++)
        if (*digits_used < 19) {
            *mantissa = *mantissa * 10 + (uint64_t)(**p - '0');
            *digits_used += *mantissa > 0;
        } else {
            *digits_used = 20; // too many for an exact mantissa
        }
    return count;
}

// Reads "e+12"; leaves *p alone when no digits follow. The exponent saturates at 99,999.
static int
read_exponent(const char **p)
{
    const char *at = *p;
    if ((*at | 0x20) != 'e')
        return 0;
    at++;
    int negative = *at == '-', exponent = 0;
    at += *at == '-' || *at == '+';
    if ((unsigned char)(*at - '0') > 9)
        return 0;
    for (; (unsigned char)(*at - '0') <= 9; at++)
        exponent = TT_MIN(exponent * 10 + (*at - '0'), 99999);
    *p = at;
    return negative ? -exponent : exponent;
}

const char *
tti_number_parse(const char *p, double *value)
{
    static const double power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *start = p;
    int negative = *p == '-';
    p += *p == '-' || *p == '+';
    uint64_t mantissa = 0;
    uint32_t used = 0, whole = read_digits(&p, &mantissa, &used), fraction = 0;
    if (*p == '.') {
        p++;
        fraction = read_digits(&p, &mantissa, &used);
    }
    if (whole + fraction == 0)
        return start;
    int64_t exponent = (int64_t)read_exponent(&p) - fraction;
    if (used <= 19 && mantissa <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        double exact = (double)mantissa;
        exact = exponent < 0 ? exact / power[-exponent] : exact * power[exponent];
        *value = negative ? -exact : exact;
        return p;
    }
    (void)pthread_once(&c_locale_once, make_c_locale);
    *value = strtod_l(start, NULL, c_locale);
    return p;
}
