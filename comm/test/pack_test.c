// Goal: what is packed comes out again, byte for byte; what would hardly get shorter is left alone;
// no bytes do harm when they are unpacked. Method: payloads of gradients, zeros and noise, in one
// piece and in several; packed ones with bits flipped, cut short, and with sizes that lie.
#include "tt/comm.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { FLOATS = 4096, BYTES = FLOATS * 4 };

// Every other run of eight is noise, the rest zeros.
static void
half_zero(uint8_t *bytes, uint64_t seed)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_SIMULATION, 1);
    for (uint32_t i = 0; i < FLOATS; i++) {
        float value = i / 8 % 2 == 0 ? (float)tt_rng_normal(&rng) : 0;
        memcpy(bytes + i * sizeof value, &value, sizeof value);
    }
}

static void
comes_out_as_it_went_in(void **state)
{
    TT_UNUSED(state);
    static uint8_t bytes[BYTES];
    tt_packer packer = {0}, unpacker = {0};
    for (uint32_t seed = 1; seed <= 20; seed++) {
        half_zero(bytes, seed);
        const size_t cut = seed * 97, size = BYTES - 13 * seed;
        const tt_span whole = {bytes, size},
                      pieces[] = {{bytes, cut}, {NULL, 0}, {bytes + cut, size - cut}};
        tt_span packed, out;
        assert_true(tt_packer_pack(&packer, seed % 2 ? pieces : &whole, seed % 2 ? 3 : 1, &packed));
        assert_true(packed.size < size * 3 / 4);
        assert_int_equal(tt_packer_unpack(&unpacker, packed.bytes, packed.size, &out), TT_OK);
        assert_int_equal(out.size, size);
        assert_memory_equal(out.bytes, bytes, size);
    }
    tt_packer_free(&packer);
    tt_packer_free(&unpacker);
}

// Numbers of which only the lower bytes differ.
static void
sorted_keys_get_shorter(void **state)
{
    TT_UNUSED(state);
    static uint32_t keys[FLOATS];
    tt_packer packer = {0}, unpacker = {0};
    tt_span packed, out;
    tt_rng rng;
    tt_rng_init(&rng, 4, TT_RNG_SIMULATION, 1);
    for (uint32_t i = 1; i < FLOATS; i++)
        keys[i] = keys[i - 1] + 1 + (uint32_t)tt_rng_below(&rng, 200);
    assert_true(tt_packer_pack(&packer, &(tt_span){keys, sizeof keys}, 1, &packed));
    assert_true(packed.size < sizeof keys * 11 / 20);
    assert_int_equal(tt_packer_unpack(&unpacker, packed.bytes, packed.size, &out), TT_OK);
    assert_int_equal(out.size, sizeof keys);
    assert_memory_equal(out.bytes, keys, sizeof keys);
    tt_packer_free(&packer);
    tt_packer_free(&unpacker);
}

static void
what_is_not_worth_it_is_left(void **state)
{
    TT_UNUSED(state);
    static uint8_t bytes[BYTES];
    tt_packer packer = {0};
    tt_span packed;
    tt_rng rng;
    tt_rng_init(&rng, 2, TT_RNG_SIMULATION, 1);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)tt_rng_u32(&rng);
    assert_false(tt_packer_pack(&packer, &(tt_span){bytes, BYTES}, 1, &packed)); // noise
    memset(bytes, 0, sizeof bytes);
    assert_false(tt_packer_pack(&packer, &(tt_span){bytes, 100}, 1, &packed)); // short
    assert_false(tt_packer_pack(&packer, NULL, 0, &packed));
    assert_true(tt_packer_pack(&packer, &(tt_span){bytes, BYTES}, 1, &packed));
    tt_packer_free(&packer);
}

static void
no_bytes_do_harm(void **state)
{
    TT_UNUSED(state);
    static uint8_t bytes[BYTES], harmed[BYTES];
    tt_packer packer = {0}, unpacker = {0};
    tt_span packed, out;
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_SIMULATION, 1);
    half_zero(bytes, 3);
    assert_true(tt_packer_pack(&packer, &(tt_span){bytes, BYTES}, 1, &packed));
    for (uint32_t i = 0; i < 20000; i++) {
        size_t size = i % 3 == 0 ? tt_rng_below(&rng, (uint32_t)packed.size) : packed.size;
        memcpy(harmed, packed.bytes, size);
        for (uint32_t flips = i % 4; flips > 0 && size > 0; flips--)
            harmed[tt_rng_below(&rng, (uint32_t)size)] ^= (uint8_t)(1u << tt_rng_below(&rng, 8));
        if (tt_packer_unpack(&unpacker, harmed, size, &out) == TT_OK)
            assert_true(out.size <= 255 * size);
    }
    // A size that the rest cannot be worth takes no memory.
    tt_packer fresh = {0};
    const uint32_t most = TT_FRAME_PAYLOAD_MAX;
    memcpy(harmed, packed.bytes, packed.size);
    memcpy(harmed, &most, sizeof most);
    assert_int_equal(tt_packer_unpack(&fresh, harmed, packed.size, &out), TT_CORRUPT);
    assert_int_equal(fresh.text_capacity, 0);
    tt_packer_free(&fresh);
    tt_packer_free(&packer);
    tt_packer_free(&unpacker);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),
        cmocka_unit_test(sorted_keys_get_shorter),
        cmocka_unit_test(what_is_not_worth_it_is_left),
        cmocka_unit_test(no_bytes_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
