// Goal: no file, however broken, makes a reader crash, hang, read out of bounds or accept what it
// must not; and the outcome does not depend on the number of threads.
// Method: good files mutated from a seed (bytes flipped, cut, doubled, spliced with tokens that
// matter), read under the sanitizers; accepted data is checked for its invariants.
#include "temporary_file.h"
#include "tt/workloads_data.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>
#include <zlib.h>

#ifdef TT_TSAN
enum { ROUNDS = 800 }; // ten times slower, and the threads are few
#else
enum { ROUNDS = 4000 };
#endif
enum { BYTES_MAX = 8192 };

static char directory[64], path[96], labels[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/data", make_directory(directory));
    (void)snprintf(labels, sizeof labels, "%s/labels", directory);
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    (void)unlink(labels);
    return rmdir(directory);
}

struct bytes {
    unsigned char at[BYTES_MAX];
    size_t size;
};

static void
splice(struct bytes *bytes, size_t at, const void *piece, size_t size)
{
    if (bytes->size + size > sizeof bytes->at)
        return;
    memmove(bytes->at + at + size, bytes->at + at, bytes->size - at);
    memcpy(bytes->at + at, piece, size);
    bytes->size += size;
}

static const char *const tokens[] = {
    "qid:1",
    "nan",
    "-inf",
    "1e999",
    ":",
    "::",
    "#",
    "\r\n",
    "\r",
    "\n",
    "\0",
    " ",
    "\t",
    "+",
    "-",
    ".",
    "e",
    "1e-400",
    "0:1",
    "-1:1",
    "1:",
    ":1",
    "2147483647",
    "99999999999999999999",
    "\xff",
    "\xef\xbb\xbf",
    "1.2.3",
    "0x10",
    "1:1 1:1",
    "00000000000000000001:1",
    "123456789012345678901234567890.5e-20",
    "1234567.12345678",
    "12345678:12345678.5",
    ",",
    "\"",
    "\"\"",
    "NA",
};

static void
mutate(tt_rng *rng, struct bytes *bytes)
{
    for (uint64_t times = 1 + tt_rng_below(rng, 4); times > 0 && bytes->size > 0; times--) {
        size_t at = tt_rng_below(rng, bytes->size), size = bytes->size - at;
        size_t drawn = tt_rng_below(rng, 64); // TT_MIN reads its arguments twice
        unsigned char piece[64];
        switch (tt_rng_below(rng, 6)) {
        case 0:
            bytes->at[at] ^= (unsigned char)(1u << tt_rng_below(rng, 8));
            break;
        case 1:
            bytes->at[at] = (unsigned char)tt_rng_u32(rng);
            break;
        case 2: // cut the end off
            bytes->size = at;
            break;
        case 3: // take a piece out
            size = TT_MIN(size, drawn / 3);
            memmove(bytes->at + at, bytes->at + at + size, bytes->size - at - size);
            bytes->size -= size;
            break;
        case 4: // double a piece
            size = TT_MIN(size, drawn);
            memcpy(piece, bytes->at + at, size);
            splice(bytes, at, piece, size);
            break;
        default: {
            const char *token = tokens[tt_rng_below(rng, TT_COUNT_OF(tokens))];
            splice(bytes, at, token, strlen(token) + (token[0] == '\0'));
        }
        }
    }
}

static void
check_invariants(const tt_dataset *data)
{
    assert_in_range(data->class_count, 2, 256);
    assert_true(data->row_count > 0 && data->feature_count > 0);
    for (uint32_t i = 1; i < data->class_count; i++)
        assert_true(data->class_label[i - 1] < data->class_label[i]);
    for (uint64_t row = 0; row < data->row_count; row++)
        assert_true(data->label[row] < data->class_count);
    if (data->layout != TT_DATA_SPARSE)
        return;
    assert_int_equal(data->row_begin[0], 0);
    assert_int_equal(data->row_begin[data->row_count], data->nonzero_count);
    for (uint64_t row = 0; row < data->row_count; row++)
        for (uint64_t i = data->row_begin[row]; i < data->row_begin[row + 1]; i++) {
            assert_true(data->index[i] < data->feature_count);
            assert_true(i == data->row_begin[row] || data->index[i - 1] < data->index[i]);
            assert_true(data->value == NULL || isfinite(data->value[i]));
        }
}

// Opens with one and, every fourth round, with three threads, which must agree; whether it opened.
static int
open_and_check(const char *format, int round)
{
    tt_status status[2];
    tt_error err[2] = {{0}};
    int runs = round % 4 == 0 ? 2 : 1;
    for (int i = 0; i < runs; i++) {
        tt_dataset *data = NULL;
        tt_data_spec spec = {
            .format = format, .path = path, .labels = labels, .threads = 1 + 2 * i};
        status[i] = tt_dataset_open(&spec, &data, &err[i]);
        assert_int_equal(data != NULL, status[i] == TT_OK);
        if (status[i] == TT_OK)
            check_invariants(data);
        else
            assert_true(err[i].what[0] != '\0' && err[i].status == status[i]);
        tt_dataset_close(data);
    }
    assert_int_equal(status[0], status[runs - 1]);
    assert_string_equal(err[0].where, err[runs - 1].where);
    assert_string_equal(err[0].what, err[runs - 1].what);
    return status[0] == TT_OK;
}

static void
make_good_text(struct bytes *bytes)
{
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_TEST, 1);
    bytes->size = 0;
    while (bytes->size < 1500) {
        char line[64];
        uint32_t a = 1 + (uint32_t)tt_rng_below(&rng, 1000), b = a + 7;
        splice(bytes, bytes->size, line,
               (size_t)snprintf(line, sizeof line, "%d %u:1 %u:%.4g%s", (int)tt_rng_below(&rng, 3),
                                a, b, tt_rng_normal(&rng), a % 5 == 0 ? " # x\r\n" : "\n"));
    }
}

static void
make_good_csv(struct bytes *bytes)
{
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_TEST, 3);
    bytes->size = 0;
    splice(bytes, 0, "y,a,b,c\n", 8);
    while (bytes->size < 1500) {
        char line[64];
        uint32_t a = (uint32_t)tt_rng_below(&rng, 1000);
        splice(bytes, bytes->size, line,
               (size_t)snprintf(line, sizeof line, "%u,%.4g,w%u,%s%s", a % 2, tt_rng_normal(&rng),
                                a, a % 7 == 0 ? "\"x,\"\"y\"" : "", a % 5 == 0 ? "\r\n" : "\n"));
    }
}

static void
mutate_text(const char *format, const struct bytes *good)
{
    struct bytes bytes;
    tt_rng rng;
    tt_rng_init(&rng, 2, TT_RNG_TEST, 2);
    int opened = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bytes = *good;
        mutate(&rng, &bytes);
        write_file(path, bytes.at, bytes.size);
        opened += open_and_check(format, round);
    }
    // both outcomes are frequent, else the mutations test nothing
    assert_in_range(opened, ROUNDS / 20, ROUNDS * 19 / 20);
}

static void
mutated_text_never_harms(void **state)
{
    TT_UNUSED(state);
    struct bytes good;
    make_good_text(&good);
    mutate_text("libsvm", &good);
    make_good_csv(&good);
    mutate_text("csv", &good);
}

static void
mutated_gzip_never_harms(void **state)
{
    TT_UNUSED(state);
    struct bytes good, packed, bytes;
    make_good_text(&good);
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, good.at, (unsigned)good.size), good.size);
    assert_int_equal(gzclose(file), Z_OK);
    unsigned char *raw = read_file(path, &packed.size);
    memcpy(packed.at, raw, packed.size);
    free(raw);
    tt_rng rng;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 3);
    int opened = 0;
    for (int round = 0; round < ROUNDS / 2; round++) {
        bytes = packed;
        mutate(&rng, &bytes);
        write_file(path, bytes.at, bytes.size);
        opened += open_and_check("libsvm", round);
    }
    // The checksum catches nearly everything: only header fields without meaning may change, or
    // the magic bytes (then it is no text either).
    assert_in_range(opened, ROUNDS >= 4000, ROUNDS / 20);
}

static void
mutated_idx_never_harms(void **state)
{
    TT_UNUSED(state);
    static const unsigned char head[16] = {0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 5, 0, 0, 0, 4},
                               label_head[8] = {0, 0, 8, 1, 0, 0, 0, 40};
    struct bytes images = {.size = 16 + 800}, label_file = {.size = 8 + 40}, bytes;
    tt_rng rng;
    tt_rng_init(&rng, 4, TT_RNG_TEST, 4);
    memcpy(images.at, head, sizeof head);
    memcpy(label_file.at, label_head, sizeof label_head);
    for (size_t i = 16; i < images.size; i++)
        images.at[i] = (unsigned char)tt_rng_u32(&rng);
    for (size_t i = 8; i < label_file.size; i++)
        label_file.at[i] = (unsigned char)tt_rng_below(&rng, 10);
    int opened = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct bytes header = {.size = round % 2 == 0 ? 24 : 12};
        bytes = round % 2 == 0 ? images : label_file;
        // mostly in the header, where it matters
        if (tt_rng_below(&rng, 4) > 0) {
            memcpy(header.at, bytes.at, header.size);
            size_t before = header.size;
            mutate(&rng, &header);
            memmove(bytes.at + header.size, bytes.at + before, bytes.size - before);
            memcpy(bytes.at, header.at, header.size);
            bytes.size += header.size - before;
        } else {
            mutate(&rng, &bytes);
        }
        write_file(path, round % 2 == 0 ? bytes.at : images.at,
                   round % 2 == 0 ? bytes.size : images.size);
        write_file(labels, round % 2 == 0 ? label_file.at : bytes.at,
                   round % 2 == 0 ? label_file.size : bytes.size);
        opened += open_and_check("idx", round / 2);
    }
    assert_in_range(opened, ROUNDS / 50, ROUNDS / 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutated_text_never_harms),
        cmocka_unit_test(mutated_gzip_never_harms),
        cmocka_unit_test(mutated_idx_never_harms),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
