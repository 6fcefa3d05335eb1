// Goal: LIBSVM text is read exactly, and every fault is told with its place, whatever the number of
// threads, the size of the file or its compression.
// Method: small texts with known rows, a table of faulty texts, texts of many blocks built from a
// seed, real data when it is there, and failing allocations.
#include "libsvm_parse.h"
#include "number_parse.h"
#include "temporary_file.h"
#include "tt/workloads_data.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <lzma.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

static char directory[64], path[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/data.svm", make_directory(directory));
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    return rmdir(directory);
}

static tt_status
open_with(const char *text, size_t size, tt_data_spec spec, tt_dataset **out, tt_error *err)
{
    write_file(path, text, size);
    spec.format = "libsvm";
    spec.path = path;
    *err = (tt_error){0};
    return tt_dataset_open(&spec, out, err);
}

static tt_dataset *
open_text(const char *text, tt_data_spec spec)
{
    tt_dataset *data;
    tt_error err;
    tt_status status = open_with(text, strlen(text), spec, &data, &err);
    if (status != TT_OK)
        tt_error_print(stderr, &err);
    assert_int_equal(status, TT_OK);
    return data;
}

// The error for a text: its place behind the path, and the whole of what and advice.
static void
expect_error(const char *text,
             size_t size,
             tt_data_spec spec,
             tt_status status,
             const char *place,
             const char *what)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        tt_dataset *data = (tt_dataset *)&data;
        tt_error err;
        spec.threads = threads;
        tt_status got = open_with(text, size, spec, &data, &err);
        assert_null(data);
        if (got != status || strcmp(err.where + strlen(path), place) != 0 ||
            strstr(err.what, what) == NULL)
            fail_msg("'%s' gave %s at '%s': %s; expected %s at '%s': %s", size < 100 ? text : "...",
                     tt_status_name(got), err.where, err.what, tt_status_name(status), place, what);
        assert_memory_equal(err.where, path, strlen(path));
        assert_int_not_equal(err.advice[0], 0);
    }
}

static void
rows_are_read_exactly(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data = open_text("# a comment\n"
                                 "+1 3:0.25 17:-2.385e2 # the rest\r\n"
                                 "\n"
                                 "  -1\t1:1\t 4:.5 1234567:3. \n"
                                 "2.5\n"
                                 "-1 2:123456789.123456789 3:1e-3 5:0.30000001192092896#x\r\n"
                                 "+1 9:+4 10:00012.50",
                                 (tt_data_spec){0});
    assert_int_equal(data->layout, TT_DATA_SPARSE);
    assert_int_equal(data->row_count, 5);
    assert_int_equal(data->feature_count, 1234567);
    assert_int_equal(data->class_count, 3);
    const double labels[3] = {-1, 1, 2.5};
    assert_memory_equal(data->class_label, labels, sizeof labels);
    const uint16_t label[5] = {1, 0, 2, 0, 1};
    assert_memory_equal(data->label, label, sizeof label);
    const uint64_t row_begin[6] = {0, 2, 5, 5, 8, 10};
    assert_memory_equal(data->row_begin, row_begin, sizeof row_begin);
    const uint32_t index[10] = {2, 16, 0, 3, 1234566, 1, 2, 4, 8, 9};
    assert_memory_equal(data->index, index, sizeof index);
    const float value[10] = {0.25f, -238.5f, 1, 0.5f, 3, 123456789.123456789f,
                             1e-3f, 0.3f,    4, 12.5f};
    assert_memory_equal(data->value, value, sizeof value);
    tt_dataset_close(data);
}

static void
ones_need_no_values(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data = open_text("\xef\xbb\xbf"
                                 "1 2:1 4:1.0\n0 5:1e0\n",
                                 (tt_data_spec){.feature_count = 9});
    assert_null(data->value);
    assert_int_equal(data->nonzero_count, 3);
    assert_int_equal(data->feature_count, 9);
    tt_dataset_close(data);
}

static void
faults_are_told_with_their_place(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *text;
        tt_status status;
        const char *place, *what;
    } faults[] = {
        {"1 1:1\n0 0:1\n", TT_RANGE, ":2:3", "index 0"},
        {"1 1:1\n0 90:1 17:1\n", TT_SYNTAX, ":2:8", "index 17 after index 90"},
        {"1 5:1 6:1 6:2", TT_SYNTAX, ":1:11", "index 6 occurs twice"},
        {"1 2147483647:1\n", TT_RANGE, ":1:3", "index 2147483647 is too large"},
        {"1 99999999999999999999999:1\n", TT_RANGE, ":1:3", "is too large"},
        {"\n#\n\r\n1 12 13:1\n", TT_SYNTAX, ":4:3", "expected index:value, found '12'"},
        {"1 1:1 abc\n", TT_SYNTAX, ":1:7", "expected index:value, found 'abc'"},
        {"1 -3:1\n", TT_SYNTAX, ":1:3", "expected index:value, found '-3:1'"},
        {"1 1:\n", TT_SYNTAX, ":1:5", "expected a value after the colon"},
        {"1 1: 2:1\n", TT_SYNTAX, ":1:5", "expected a value after the colon"},
        {"1 1:1.2.3\n", TT_SYNTAX, ":1:5", "value '1.2.3' is not a number"},
        {"1 1:1:1\n", TT_SYNTAX, ":1:5", "value '1:1' is not a number"},
        {"1 1:0x1p3\n", TT_SYNTAX, ":1:5", "value '0x1p3' is not a number"},
        {"1 1:1e\n", TT_SYNTAX, ":1:5", "value '1e' is not a number"},
        {"1 1:-\n", TT_SYNTAX, ":1:5", "value '-' is not a number"},
        {"1 1:.\n", TT_SYNTAX, ":1:5", "value '.' is not a number"},
        {"1 1:nan\n", TT_RANGE, ":1:5", "value 'nan' is not finite"},
        {"1 1:-Inf\n", TT_RANGE, ":1:5", "value '-Inf' is not finite"},
        {"1 1:1e39\n", TT_RANGE, ":1:5", "value '1e39' is too large"},
        {"1 1:1e999\n", TT_RANGE, ":1:5", "value '1e999' is too large"},
        {"3:1 4:1\n", TT_SYNTAX, ":1:1", "expected a label before the first index:value"},
        {"1 2:1\n 2:1\n", TT_SYNTAX, ":2:2", "expected a label before the first index:value"},
        {"cat 2:1\n", TT_SYNTAX, ":1:1", "label 'cat' is not a number"},
        {"nan 2:1\n", TT_RANGE, ":1:1", "label 'nan' is not finite"},
        {"+-1 2:1\n", TT_SYNTAX, ":1:1", "label '+-1' is not a number"},
        {"1e400 2:1\n", TT_RANGE, ":1:1", "label '1e400' is too large"},
        {"1 qid:3 2:1\n", TT_UNSUPPORTED, ":1:3", "qid:3"},
        {"1 2:1\r3:1\n", TT_SYNTAX, ":1:6", "carriage return"},
        {"1 2:1,3:1\n", TT_SYNTAX, ":1:5", "value '1,3:1' is not a number"},
        {"1 \x01\x02 \n", TT_SYNTAX, ":1:3", "found '\?\?'"},
        {"", TT_INVALID, "", "the file is empty"},
        {"\n# nothing\n", TT_INVALID, "", "no rows"},
        {"1 2:1\n1 3:1\n", TT_INVALID, "", "only one label value (1) in all 2 rows"},
        {"1\n2\n", TT_INVALID, "", "no row has a feature"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(faults); i++)
        expect_error(faults[i].text, strlen(faults[i].text), (tt_data_spec){0}, faults[i].status,
                     faults[i].place, faults[i].what);
    expect_error("1 2:1\0\n0 1:1\n", 14, (tt_data_spec){0}, TT_SYNTAX, ":1:5", "is not a number");
    expect_error("1 2:1\n0 1:1 11:1\n", 17, (tt_data_spec){.feature_count = 10}, TT_RANGE, ":2:7",
                 "index 11 is beyond the 10 features");
}

static void
a_test_set_follows_the_training_set(void **state)
{
    TT_UNUSED(state);
    tt_dataset *train = open_text("7 3:1\n3 120:1\n5 1:1\n", (tt_data_spec){0});
    tt_data_spec like = {.like = train};
    // one class only is fine here, and the width is the training set's
    tt_dataset *test = open_text("5 4:1\n5 2:1\n", like);
    assert_int_equal(test->feature_count, 120);
    assert_int_equal(test->class_count, 3);
    assert_int_equal(test->label[0], 1);
    assert_true(test->class_label[2] == 7);
    tt_dataset_close(test);
    const char unseen[] = "5 1:1\n3 4:1\n  4 4:1\n", wide[] = "5 1:1 121:1\n";
    expect_error(unseen, strlen(unseen), like, TT_INVALID, ":3:3",
                 "label 4 does not occur in the training data");
    expect_error(wide, strlen(wide), like, TT_RANGE, ":1:7",
                 "index 121 is beyond the 120 features");
    tt_dataset_close(train);
}

static void
the_257th_label_is_refused_where_it_stands(void **state)
{
    TT_UNUSED(state);
    char *text = malloc(1 << 20);
    size_t used = 0;
    for (int i = 0; i < 600; i++)
        used += (size_t)sprintf(text + used, "%d.5 1:1\n", (i * 37) % 256);
    expect_error(text, used + (size_t)sprintf(text + used, "256.5 1:1\nx\n"), (tt_data_spec){0},
                 TT_RANGE, ":601:1",
                 "too many distinct labels: 256.5 would be number 257 of at most 256");
    tt_dataset *data;
    tt_error err;
    assert_int_equal(open_with(text, used, (tt_data_spec){0}, &data, &err), TT_OK);
    assert_int_equal(data->class_count, 256);
    for (uint32_t row = 0; row < data->row_count; row++)
        assert_int_equal(data->label[row], row * 37 % 256);
    tt_dataset_close(data);
    free(text);
}

// Numbers as strtod reads them, in many shapes.
static void
numbers_agree_with_strtod(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 11, TT_RNG_TEST, 1);
    uint32_t taken_short = 0;
    enum { NUMBERS = 100000 };
    for (int i = 0; i < NUMBERS; i++) {
        char text[96] = {0};
        int kind = (int)tt_rng_below(&rng, 5), digits = (int)tt_rng_below(&rng, 12);
        double x = (tt_rng_uniform(&rng) - 0.5) * pow(10, (double)tt_rng_below(&rng, 12) - 4);
        if (kind == 0)
            (void)snprintf(text, sizeof text, "%.*f", digits, x);
        else if (kind == 1)
            (void)snprintf(text, sizeof text, "%.*e", digits * 2, x);
        else if (kind == 2)
            (void)snprintf(text, sizeof text, "%.*g", digits + 1, x);
        else if (kind == 3)
            (void)snprintf(text, sizeof text, "%.17ge%d", x, (int)tt_rng_below(&rng, 640) - 330);
        else
            (void)snprintf(text, sizeof text, "%llu.%llu",
                           (unsigned long long)tt_rng_u64(&rng) >> digits * 5,
                           (unsigned long long)tt_rng_u64(&rng) >> digits * 5);
        if (kind == 3 && strchr(strchr(text, 'e') + 1, 'e') != NULL)
            continue;
        double expected = strtod(text, NULL), got = -1;
        const char *end = tti_number_parse(text, &got);
        assert_ptr_equal(end, text + strlen(text));
        assert_memory_equal(&got, &expected, sizeof got);
        end = tti_number_parse_short(text, &got);
        if (end == NULL)
            continue;
        assert_ptr_equal(end, text + strlen(text));
        assert_memory_equal(&got, &expected, sizeof got);
        taken_short++;
    }
    assert_in_range(taken_short, NUMBERS / 8, NUMBERS);
}

// Rows of a text that is many blocks long, written and remembered from a seed.
struct big {
    char *text;
    size_t size;
    uint32_t rows;
};

static struct big
make_big(uint32_t rows, int with_values)
{
    struct big big = {malloc((size_t)rows * 700), 0, rows};
    tt_rng rng;
    tt_rng_init(&rng, 5, TT_RNG_TEST, with_values ? 1 : 0);
    for (uint32_t row = 0; row < rows; row++) {
        big.size += (size_t)sprintf(big.text + big.size, "%d", (int)(tt_rng_below(&rng, 3)) - 1);
        uint32_t index = 0, entries = (uint32_t)tt_rng_below(&rng, 40);
        for (uint32_t i = 0; i < entries; i++) {
            index += 1 + (uint32_t)tt_rng_below(&rng, 30000);
            if (with_values && row > rows / 2)
                big.size += (size_t)sprintf(big.text + big.size, " %u:%.3f", index,
                                            tt_rng_uniform(&rng) * 10);
            else
                big.size += (size_t)sprintf(big.text + big.size, " %u:1", index);
        }
        big.text[big.size++] = '\n';
    }
    return big;
}

// Reads the text by sscanf-like means and compares.
static void
compare_with_text(const tt_dataset *data, const struct big *big)
{
    char *p = big->text;
    uint64_t entry = 0;
    assert_int_equal(data->row_count, big->rows);
    for (uint32_t row = 0; row < big->rows; row++) {
        assert_true(data->class_label[data->label[row]] == strtod(p, &p));
        for (; *p == ' '; entry++) {
            assert_int_equal(data->index[entry], strtoul(p, &p, 10) - 1);
            float value = (float)strtod(p + 1, &p);
            assert_true(data->value != NULL ? data->value[entry] == value : value == 1.0f);
        }
        p++;
        assert_int_equal(data->row_begin[row + 1], entry);
    }
    assert_int_equal(data->nonzero_count, entry);
}

static void
gzip_write(const char *text, size_t size, size_t member_bytes)
{
    // one member after the other
    for (size_t at = 0; at < size; at += member_bytes) {
        gzFile file = gzopen(path, at == 0 ? "wb1" : "ab1");
        size_t part = TT_MIN(member_bytes, size - at);
        assert_int_equal(gzwrite(file, text + at, (unsigned)part), part);
        assert_int_equal(gzclose(file), Z_OK);
    }
}

static size_t
xz_pack(const char *text, size_t size, size_t stream_bytes, unsigned char **out)
{
    size_t room = size + 65536, used = 0;
    *out = malloc(room);
    for (size_t at = 0; at < size; at += stream_bytes)
        assert_int_equal(
            lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text + at,
                                    TT_MIN(stream_bytes, size - at), *out, &used, room),
            LZMA_OK);
    return used;
}

static size_t
zstd_pack(const char *text, size_t size, size_t frame_bytes, unsigned char **out)
{
    size_t room = size + 65536, used = 0;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    assert_int_equal(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)), 0);
    *out = malloc(room);
    for (size_t at = 0; at < size; at += frame_bytes) {
        size_t made = ZSTD_compress2(context, *out + used, room - used, text + at,
                                     TT_MIN(frame_bytes, size - at));
        assert_int_equal(ZSTD_isError(made), 0);
        used += made;
    }
    (void)ZSTD_freeCCtx(context);
    return used;
}

static void
many_blocks_threads_and_compressions_agree(void **state)
{
    TT_UNUSED(state);
    for (int with_values = 0; with_values <= 1; with_values++) {
        struct big big = make_big(30000, with_values);
        assert_true(big.size > 4u << 20);
        for (int form = 0; form < 4; form++) {
            unsigned char *packed = NULL;
            if (form == 0)
                write_file(path, big.text, big.size);
            else if (form == 1)
                gzip_write(big.text, big.size, 1234567);
            else {
                size_t size =
                    (form == 2 ? xz_pack : zstd_pack)(big.text, big.size, 1234567, &packed);
                write_file(path, packed, size);
            }
            free(packed);
            for (int threads = 1; threads <= 4; threads += 3) {
                tt_data_spec spec = {.format = "libsvm", .path = path, .threads = threads};
                tt_dataset *data;
                tt_error err = {0};
                tt_status status = tt_dataset_open(&spec, &data, &err);
                if (status != TT_OK)
                    tt_error_print(stderr, &err);
                assert_int_equal(status, TT_OK);
                assert_int_equal(data->value != NULL, with_values);
                compare_with_text(data, &big);
                tt_dataset_close(data);
            }
        }
        free(big.text);
    }
}

static void
the_first_fault_in_the_file_is_reported(void **state)
{
    TT_UNUSED(state);
    struct big big = make_big(20000, 0);
    // faults in several blocks; the place of the first is known
    size_t at = big.size / 3;
    while (big.text[at - 1] != '\n')
        at++;
    for (size_t spot = at; spot < big.size - 40; spot += 300007)
        big.text[spot] = 'x';
    uint64_t line = 1;
    for (size_t i = 0; i < at; i++)
        line += big.text[i] == '\n';
    char place[32];
    (void)snprintf(place, sizeof place, ":%llu:1", (unsigned long long)line);
    for (int repeat = 0; repeat < 5; repeat++)
        expect_error(big.text, big.size, (tt_data_spec){0}, TT_SYNTAX, place, "is not a number");
    free(big.text);
}

static void
a_line_longer_than_a_block_is_read(void **state)
{
    TT_UNUSED(state);
    size_t entries = 400000, used = 0;
    char *text = malloc(entries * 16);
    used += (size_t)sprintf(text, "1");
    for (size_t i = 1; i <= entries; i++)
        used += (size_t)sprintf(text + used, " %zu:1", i * 3);
    used += (size_t)sprintf(text + used, "\n0 7:1\n1 8:0.5");
    assert_true(used > 3u << 20);
    for (int threads = 1; threads <= 3; threads++) {
        tt_dataset *data;
        tt_error err;
        assert_int_equal(open_with(text, used, (tt_data_spec){.threads = threads}, &data, &err),
                         TT_OK);
        assert_int_equal(data->row_count, 3);
        assert_int_equal(data->row_begin[1], entries);
        assert_int_equal(data->index[entries - 1], entries * 3 - 1);
        assert_true(data->value[0] == 1.0f && data->value[entries + 1] == 0.5f);
        tt_dataset_close(data);
    }
    free(text);
}

static void
expect_damage(const unsigned char *bytes, size_t size, tt_status status, const char *what)
{
    tt_dataset *data;
    tt_error err;
    tt_status got = open_with((const char *)bytes, size, (tt_data_spec){.threads = 2}, &data, &err);
    if (got != status || strstr(err.what, what) == NULL)
        fail_msg("gave %s: %s; expected %s: %s", tt_status_name(got), err.what,
                 tt_status_name(status), what);
    assert_string_equal(err.where, path);
    assert_int_not_equal(err.advice[0], 0);
    assert_null(data);
}

static void
damaged_compression_is_told_with_its_offset(void **state)
{
    TT_UNUSED(state);
    struct big big = make_big(5000, 0);
    size_t size;
    unsigned char *packed;
    char what[64];
    gzip_write(big.text, big.size, big.size);
    packed = read_file(path, &size);
    (void)snprintf(what, sizeof what, "the gzip data stops in the middle, at byte %zu", size / 2);
    expect_damage(packed, size / 2, TT_CORRUPT, what);
    (void)snprintf(what, sizeof what, "stops in the middle, at byte %zu", size - 3);
    expect_damage(packed, size - 3, TT_CORRUPT, what);
    packed[size - 6] ^= 0x10; // in the checksum
    expect_damage(packed, size, TT_CORRUPT, "incorrect data check");
    packed[size - 6] ^= 0x10;
    memset(packed + size / 2, 0xff, 64);
    expect_damage(packed, size, TT_CORRUPT, "the gzip data is damaged near byte ");
    free(packed);
    size = xz_pack(big.text, big.size, big.size, &packed);
    (void)snprintf(what, sizeof what, "the xz data stops in the middle, at byte %zu", size / 2);
    expect_damage(packed, size / 2, TT_CORRUPT, what);
    packed[size / 2] ^= 0x10;
    expect_damage(packed, size, TT_CORRUPT, "the xz data is damaged near byte ");
    free(packed);
    size = zstd_pack(big.text, big.size, big.size, &packed);
    (void)snprintf(what, sizeof what, "the zstd data stops in the middle, at byte %zu", size / 2);
    expect_damage(packed, size / 2, TT_CORRUPT, what);
    packed[size - 2] ^= 0x10; // in the checksum
    expect_damage(packed, size, TT_CORRUPT, "the zstd data is damaged near byte ");
    free(packed);
    expect_damage((const unsigned char *)"BZh91AY", 7, TT_UNSUPPORTED, "compressed with bzip2");
    free(big.text);
}

// Fails when the file can be opened by a user without rights; runs in a child that gives up root.
static int
unreadable_in_child(void)
{
    if (geteuid() == 0 && setuid(65534) != 0)
        return 77;
    tt_dataset *data;
    tt_error err = {0};
    tt_data_spec spec = {.format = "libsvm", .path = path};
    tt_status status = tt_dataset_open(&spec, &data, &err);
    return status == TT_INVALID && strstr(err.what, "Permission denied") != NULL ? 0 : 1;
}

static void
files_that_cannot_be_read_are_explained(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data;
    tt_error err = {0};
    tt_data_spec spec = {.format = "libsvm", .path = directory};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_INVALID);
    assert_string_equal(err.what, "is a directory; expected a data file");
    char missing[128];
    (void)snprintf(missing, sizeof missing, "%s/absent.svm", directory);
    spec.path = missing;
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_NOTFOUND);
    assert_string_equal(err.where, missing);
    assert_string_equal(err.what, "cannot open the data file: No such file or directory");
    write_file(path, "1 1:1\n0 1:1\n", 12);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(directory, 0755), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(unreadable_in_child());
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(chmod(path, 0644), 0);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 77)
        print_message("SKIP unreadable file: cannot give up root here\n");
    else
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    spec = (tt_data_spec){.format = "libsmv", .path = path};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_INVALID);
    assert_string_equal(err.what, "data format must be one of libsvm, csv, idx, not 'libsmv'");
    spec = (tt_data_spec){.format = "libsvm"};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_INVALID);
}

static void
long_paths_keep_line_and_column(void **state)
{
    TT_UNUSED(state);
    char place[TTI_PLACE_SIZE], long_path[1000];
    memset(long_path, 'd', sizeof long_path - 1);
    memcpy(long_path + sizeof long_path - 11, "/train.svm", 11);
    tti_place(place, long_path, "%d:%d", 48211, 112);
    assert_int_equal(strlen(place), TTI_PLACE_SIZE - 1);
    assert_string_equal(place + strlen(place) - 20, "/train.svm:48211:112");
    assert_memory_equal(place, "...d", 4);
}

static void
every_allocation_may_fail(void **state)
{
    TT_UNUSED(state);
    struct big big = make_big(300, 1);
    gzip_write(big.text, big.size, 3000);
    int refused = 0;
    for (uint64_t n = 1;; n++) {
        tt_data_spec spec = {.format = "libsvm", .path = path, .threads = 1};
        tt_dataset *data;
        tt_error err = {0};
        tt_mem_fail_nth(n);
        tt_status status = tt_dataset_open(&spec, &data, &err);
        int pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        if (status == TT_OK) {
            compare_with_text(data, &big);
            tt_dataset_close(data);
            if (pending)
                break;
            continue; // giving back unused memory failed, which is no failure
        }
        assert_int_equal(status, TT_NOMEM);
        assert_int_not_equal(err.what[0], 0);
        assert_null(data);
        refused++;
    }
    assert_in_range(refused, 12, 100);
    free(big.text);
}

static void
real_data_has_its_published_figures(void **state)
{
    TT_UNUSED(state);
    const char *a9a = TT_SOURCE_DIR "/../shared/data/a9a.xz";
    if (access(a9a, R_OK) != 0) {
        print_message("SKIP a9a is not here\n");
        return;
    }
    tt_data_spec spec = {.format = "libsvm", .path = a9a};
    tt_dataset *train, *test;
    tt_error err = {0};
    assert_int_equal(tt_dataset_open(&spec, &train, &err), TT_OK);
    assert_int_equal(train->row_count, 32561);
    assert_int_equal(train->feature_count, 123);
    assert_int_equal(train->nonzero_count, 451592);
    assert_null(train->value);
    uint64_t positive = 0;
    for (uint64_t row = 0; row < train->row_count; row++)
        positive += train->class_label[train->label[row]] == 1;
    assert_int_equal(positive, 7841);
    spec.path = TT_SOURCE_DIR "/../shared/data/a9a.t.xz";
    spec.like = train;
    assert_int_equal(tt_dataset_open(&spec, &test, &err), TT_OK);
    assert_int_equal(test->row_count, 16281);
    assert_int_equal(test->feature_count, 123);
    tt_dataset_close(test);
    tt_dataset_close(train);
    spec = (tt_data_spec){.format = "libsvm",
                          .path = TT_SOURCE_DIR "/../shared/data/dna.train.svm.xz"};
    assert_int_equal(tt_dataset_open(&spec, &train, &err), TT_OK);
    assert_int_equal(train->row_count, 2000);
    assert_int_equal(train->class_count, 3);
    tt_dataset_close(train);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_exactly),
        cmocka_unit_test(ones_need_no_values),
        cmocka_unit_test(faults_are_told_with_their_place),
        cmocka_unit_test(a_test_set_follows_the_training_set),
        cmocka_unit_test(the_257th_label_is_refused_where_it_stands),
        cmocka_unit_test(numbers_agree_with_strtod),
        cmocka_unit_test(many_blocks_threads_and_compressions_agree),
        cmocka_unit_test(the_first_fault_in_the_file_is_reported),
        cmocka_unit_test(a_line_longer_than_a_block_is_read),
        cmocka_unit_test(damaged_compression_is_told_with_its_offset),
        cmocka_unit_test(files_that_cannot_be_read_are_explained),
        cmocka_unit_test(long_paths_keep_line_and_column),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(real_data_has_its_published_figures),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
