// Goal: a connection opens only between two who hold the job's key and speak of the same thing, and
// no record passes that was changed, left out, repeated or put elsewhere. Method: every bit of
// every message of a handshake flipped, one at a time; other keys, jobs and ends; messages said
// again; records flipped, swapped, repeated and sent back.
#include "handshake.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { ENDS = 5, CALLER = 3, ANSWERER = 1, MESH = 2 };
#define JOB UINT64_C(0x1122334455667788)

static const tti_introduction call_of = {JOB, MESH, CALLER, ANSWERER};
static const tti_introduction answer_of = {JOB, MESH, 0, ANSWERER};

typedef struct sides {
    tt_net_key key;
    tti_handshake caller, answerer;
    tti_cipher out, in;
    uint8_t confirmation[TTI_CONFIRM_BYTES];
} sides;

static void
flip(void *bytes, size_t bit)
{
    ((uint8_t *)bytes)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void
shake_hands(sides *s, int flags)
{
    tt_net_key_draw(&s->key);
    tti_handshake_call(&s->caller, &s->key, call_of, flags);
    assert_int_equal(
        tti_handshake_answer(&s->answerer, &s->key, answer_of, ENDS, flags, &s->caller.mine),
        TT_OK);
    assert_int_equal(
        tti_handshake_confirm(&s->caller, &s->key, &s->answerer.mine, s->confirmation, &s->out),
        TT_OK);
    assert_int_equal(tti_handshake_check(&s->answerer, s->confirmation, &s->in), TT_OK);
}

static void
test_both_have_the_same_key(void **state)
{
    TT_UNUSED(state);
    static const int flags[] = {0, TTI_HELLO_SEALED, TTI_HELLO_SEALED | TTI_HELLO_AES};
    static const tti_cipher_kind kinds[] = {TTI_CIPHER_NONE, TTI_CIPHER_CHACHA, TTI_CIPHER_AES};
    for (size_t i = 0; i < TT_COUNT_OF(flags); i++) {
        if (kinds[i] == TTI_CIPHER_AES && !tti_cipher_has_aes())
            continue;
        sides s;
        shake_hands(&s, flags[i]);
        assert_int_equal(s.out.kind, kinds[i]);
        assert_memory_equal(&s.out, &s.in, sizeof s.out);
    }
}

static void
test_two_handshakes_have_two_keys(void **state)
{
    TT_UNUSED(state);
    sides s;
    shake_hands(&s, TTI_HELLO_SEALED);
    tti_cipher before = s.out;
    tti_handshake_call(&s.caller, &s.key, call_of, TTI_HELLO_SEALED);
    assert_int_equal(tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, TTI_HELLO_SEALED,
                                          &s.caller.mine),
                     TT_OK);
    assert_int_equal(
        tti_handshake_confirm(&s.caller, &s.key, &s.answerer.mine, s.confirmation, &s.out), TT_OK);
    assert_memory_not_equal(before.key, s.out.key, sizeof before.key);
}

// A downgrade would be such a flip, too.
static void
test_every_flipped_bit_is_refused(void **state)
{
    TT_UNUSED(state);
    sides s;
    shake_hands(&s, TTI_HELLO_SEALED);
    tti_handshake_call(&s.caller, &s.key, call_of, TTI_HELLO_SEALED);
    for (size_t bit = 0; bit < 8 * sizeof(tti_hello); bit++) {
        tti_hello call = s.caller.mine;
        flip(&call, bit);
        assert_int_equal(
            tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, TTI_HELLO_SEALED, &call),
            TT_PEER);
    }
    assert_int_equal(tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, TTI_HELLO_SEALED,
                                          &s.caller.mine),
                     TT_OK);
    for (size_t bit = 0; bit < 8 * sizeof(tti_hello); bit++) {
        tti_hello answer = s.answerer.mine;
        flip(&answer, bit);
        assert_int_equal(tti_handshake_confirm(&s.caller, &s.key, &answer, s.confirmation, &s.out),
                         TT_PEER);
    }
    assert_int_equal(
        tti_handshake_confirm(&s.caller, &s.key, &s.answerer.mine, s.confirmation, &s.out), TT_OK);
    for (size_t bit = 0; bit < 8 * sizeof s.confirmation; bit++) {
        flip(s.confirmation, bit);
        assert_int_equal(tti_handshake_check(&s.answerer, s.confirmation, &s.in), TT_PEER);
        flip(s.confirmation, bit);
    }
}

static void
test_others_are_refused(void **state)
{
    TT_UNUSED(state);
    static const tti_introduction wrong[] = {{JOB + 1, MESH, CALLER, ANSWERER},
                                             {JOB, MESH + 1, CALLER, ANSWERER},
                                             {JOB, MESH, ENDS, ANSWERER},
                                             {JOB, MESH, ANSWERER, ANSWERER},
                                             {JOB, MESH, CALLER, ANSWERER + 1}};
    sides s;
    shake_hands(&s, 0);
    for (size_t i = 0; i < TT_COUNT_OF(wrong); i++) {
        tti_handshake_call(&s.caller, &s.key, wrong[i], 0);
        assert_int_equal(
            tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, 0, &s.caller.mine), TT_PEER);
    }
    tt_net_key other;
    tt_net_key_draw(&other);
    tti_handshake_call(&s.caller, &other, call_of, 0);
    assert_int_equal(tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, 0, &s.caller.mine),
                     TT_PEER);
}

// Who has recorded a connection can say all of it again, and opens nothing.
static void
test_what_is_said_again_opens_nothing(void **state)
{
    TT_UNUSED(state);
    sides s;
    shake_hands(&s, TTI_HELLO_SEALED);
    tti_hello call = s.caller.mine, answer = s.answerer.mine;
    assert_int_equal(
        tti_handshake_answer(&s.answerer, &s.key, answer_of, ENDS, TTI_HELLO_SEALED, &call), TT_OK);
    assert_int_equal(tti_handshake_check(&s.answerer, s.confirmation, &s.in), TT_PEER);
    // Nor can it be the answerer.
    tti_handshake_call(&s.caller, &s.key, call_of, TTI_HELLO_SEALED);
    assert_int_equal(tti_handshake_confirm(&s.caller, &s.key, &answer, s.confirmation, &s.out),
                     TT_PEER);
}

// ---- records -----------------------------------------------------------------------------------

enum { TEXT = 100, RECORD = TEXT + TTI_RECORD_EXTRA };

static void
for_each_cipher(void (*test)(tti_cipher *out, tti_cipher *in))
{
    for (tti_cipher_kind kind = TTI_CIPHER_CHACHA; kind <= TTI_CIPHER_AES; kind++) {
        tti_cipher out, in;
        static const uint8_t key[32] = {3, 1, 4, 1, 5};
        if (kind == TTI_CIPHER_AES && !tti_cipher_has_aes())
            continue;
        tti_cipher_open(&out, kind, key);
        tti_cipher_open(&in, kind, key);
        test(&out, &in);
    }
}

static void
make_text(uint8_t *text, uint32_t size, uint32_t seed)
{
    for (uint32_t i = 0; i < size; i++)
        text[i] = (uint8_t)(i * 7 + seed);
}

static void
check_sizes(tti_cipher *out, tti_cipher *in)
{
    static uint8_t text[TTI_RECORD_TEXT_MAX], back[TTI_RECORD_TEXT_MAX];
    static uint8_t record[TTI_RECORD_TEXT_MAX + TTI_RECORD_EXTRA];
    static const uint32_t sizes[] = {1, 15, 16, 17, 4096, TTI_RECORD_TEXT_MAX};
    for (size_t i = 0; i < TT_COUNT_OF(sizes); i++) {
        make_text(text, sizes[i], (uint32_t)i);
        tti_record_seal(out, record, text, sizes[i]);
        assert_int_equal(tti_record_size(record), sizes[i]);
        assert_int_equal(tti_record_read(in, back, record, sizes[i]), TT_OK);
        assert_memory_equal(back, text, sizes[i]);
    }
}

static void
check_flips(tti_cipher *out, tti_cipher *in)
{
    uint8_t text[TEXT], record[RECORD], back[TEXT];
    make_text(text, TEXT, 1);
    tti_record_seal(out, record, text, TEXT);
    for (size_t bit = 0; bit < 8 * sizeof record; bit++) {
        tti_cipher fresh = *in;
        flip(record, bit);
        assert_int_equal(tti_record_read(&fresh, back, record, TEXT), TT_CORRUPT);
        flip(record, bit);
    }
    assert_int_equal(tti_record_read(in, back, record, TEXT), TT_OK);
}

static void
check_order(tti_cipher *out, tti_cipher *in)
{
    uint8_t text[TEXT], record[3][RECORD], back[TEXT];
    for (uint32_t i = 0; i < 3; i++) {
        make_text(text, TEXT, i);
        tti_record_seal(out, record[i], text, TEXT);
    }
    tti_cipher fresh = *in;
    assert_int_equal(tti_record_read(&fresh, back, record[1], TEXT), TT_CORRUPT); // left out
    assert_int_equal(tti_record_read(in, back, record[0], TEXT), TT_OK);
    fresh = *in;
    assert_int_equal(tti_record_read(&fresh, back, record[0], TEXT), TT_CORRUPT); // said again
    assert_int_equal(tti_record_read(in, back, record[1], TEXT), TT_OK);
    assert_int_equal(tti_record_read(in, back, record[2], TEXT), TT_OK);
}

static void
test_records_carry_any_size(void **state)
{
    TT_UNUSED(state);
    for_each_cipher(check_sizes);
}

static void
test_every_flipped_bit_of_a_record_is_found(void **state)
{
    TT_UNUSED(state);
    for_each_cipher(check_flips);
}

static void
test_records_have_an_order(void **state)
{
    TT_UNUSED(state);
    for_each_cipher(check_order);
}

static void
test_lengths_are_bounded(void **state)
{
    TT_UNUSED(state);
    static const uint32_t sizes[] = {0, TTI_RECORD_TEXT_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < TT_COUNT_OF(sizes); i++)
        assert_int_equal(tti_record_size((const uint8_t *)&sizes[i]), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_have_the_same_key),
        cmocka_unit_test(test_two_handshakes_have_two_keys),
        cmocka_unit_test(test_every_flipped_bit_is_refused),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_what_is_said_again_opens_nothing),
        cmocka_unit_test(test_records_carry_any_size),
        cmocka_unit_test(test_every_flipped_bit_of_a_record_is_found),
        cmocka_unit_test(test_records_have_an_order),
        cmocka_unit_test(test_lengths_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
