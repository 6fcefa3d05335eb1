// Goal: bf16 encoding and decoding give the same bits in all variants, and the right ones.
// Method: all 2^16 values decoded; 2^24 + patterns encoded (every upper half with halfway, beside
// halfway and random lower halves), compared with a reference that searches for the nearest value.
#include "tt/core.h"
#include "tt/core_vec.h"
#include "vec_variants.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static float
float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t
bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// The variants by number, and after them AVX-512 without the processor's own encoding, which
// tt_vec_ops_for never gives where the processor has one.
enum { TABLES = TT_VEC_VARIANT_COUNT + 1 };

static const tt_vec_ops *
table_of(int v)
{
#if defined(__x86_64__)
    if (v == TT_VEC_VARIANT_COUNT && tt_vec_best()->variant == TT_VEC_AVX512)
        return &tti_vec_avx512;
#endif
    return tt_vec_ops_for((tt_vec_variant)v);
}

// Written from the definition and not as the kernels are: the two neighbours of |x| in bf16, the
// nearer one wins, on a tie the one whose last bit is 0.
static uint16_t
encode_reference(uint32_t u)
{
    const uint16_t sign = (uint16_t)((u >> 16) & 0x8000U);
    const uint32_t size = u & 0x7fffffffU;
    const uint16_t below = (uint16_t)(size >> 16);
    if (size > 0x7f800000U)
        return (uint16_t)(sign | below | 0x40U);
    if (size < 0x00800000U)
        return sign;
    if (size == 0x7f800000U)
        return (uint16_t)(sign | 0x7f80U);
    const uint32_t above = below + 1U; // infinity after the largest
    const double x = (double)float_of(size), low = (double)float_of((uint32_t)below << 16);
    const double high =
        above == 0x7f80U ? ldexp(1, 128) : (double)float_of(above << 16); // as if in range
    if (x - low < high - x || (x - low == high - x && below % 2 == 0))
        return (uint16_t)(sign | below);
    return (uint16_t)(sign | above);
}

static void
decode_is_exact(void **state)
{
    TT_UNUSED(state);
    static tt_bf16 all[65536];
    static float out[65536];
    for (uint32_t i = 0; i < 65536; i++)
        all[i].bits = (uint16_t)i;
    for (int v = 0; v < TABLES; v++) {
        const tt_vec_ops *ops = table_of(v);
        ops->bf16_decode(all, out, 65536);
        for (uint32_t i = 0; i < 65536; i++)
            assert_int_equal(bits_of(out[i]), i << 16);
        for (size_t n = 0; n <= 70; n++) {
            out[n] = 0.125F;
            ops->bf16_decode(all + 16000 + n % 5, out, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(bits_of(out[i]), (16000 + n % 5 + i) << 16);
            assert_true(out[n] == 0.125F);
        }
    }
}

static void
known_values_encode(void **state)
{
    TT_UNUSED(state);
    static const uint32_t in[] = {0x3f800000, 0x3f808000, 0x3f818000, 0x3f808001,
                                  0x7f7fffff, 0x00000001, 0x807fffff, 0x00800000,
                                  0x7f800001, 0xffc01234, 0xff800000, 0x80000000};
    static const uint16_t out[] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x0000,
                                   0x8000, 0x0080, 0x7fc0, 0xffc0, 0xff80, 0x8000};
    for (int v = 0; v < TABLES; v++) {
        float x[TT_COUNT_OF(in)];
        tt_bf16 y[TT_COUNT_OF(in)];
        memcpy(x, in, sizeof x);
        table_of(v)->bf16_encode(x, y, TT_COUNT_OF(in));
        for (size_t i = 0; i < TT_COUNT_OF(in); i++)
            assert_int_equal(y[i].bits, out[i]);
    }
}

// Lower halves tried with each upper half: ends, halfway and its neighbours, and 249 drawn ones.
enum { LOWER_COUNT = 257 };

static void
fill_lower(tt_rng *rng, uint32_t upper, uint32_t *u)
{
    static const uint32_t fixed[] = {0, 1, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
    for (size_t i = 0; i < LOWER_COUNT; i++) {
        uint32_t lower = i < TT_COUNT_OF(fixed) ? fixed[i] : tt_rng_u32(rng) & 0xffffU;
        u[i] = upper << 16 | lower;
    }
}

static void
encode_rounds_to_nearest_even(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 19, TT_RNG_TEST, 0);
    uint32_t u[LOWER_COUNT];
    float x[LOWER_COUNT];
    tt_bf16 y[LOWER_COUNT];
    uint64_t wrong = 0;
    for (uint32_t upper = 0; upper < 65536; upper++) {
        fill_lower(&rng, upper, u);
        memcpy(x, u, sizeof x);
        uint16_t expected[LOWER_COUNT];
        for (size_t i = 0; i < LOWER_COUNT; i++)
            expected[i] = encode_reference(u[i]);
        for (int v = 0; v < TABLES; v++) {
            table_of(v)->bf16_encode(x, y, LOWER_COUNT);
            for (size_t i = 0; i < LOWER_COUNT; i++)
                wrong += y[i].bits != expected[i];
        }
    }
    assert_int_equal(wrong, 0);
}

static void
encode_keeps_to_its_length(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 20, TT_RNG_TEST, 0);
    float x[80];
    tt_bf16 y[80];
    for (size_t i = 0; i < 80; i++)
        x[i] = (float)tt_rng_normal(&rng);
    for (int v = 0; v < TABLES; v++)
        for (size_t n = 0; n <= 70; n++) {
            memset(y, 0xab, sizeof y);
            table_of(v)->bf16_encode(x + n % 5, y + n % 3, n);
            for (size_t i = 0; i < 80 - n % 3; i++)
                assert_int_equal(y[i + n % 3].bits,
                                 i < n ? encode_reference(bits_of(x[i + n % 5])) : 0xabab);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_is_exact),
        cmocka_unit_test(known_values_encode),
        cmocka_unit_test(encode_rounds_to_nearest_even),
        cmocka_unit_test(encode_keeps_to_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
