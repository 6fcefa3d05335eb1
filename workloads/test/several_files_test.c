// Goal: several files give the rows that one file of their texts joined gives, whatever their
// compression and the number of threads, and what is wrong in one is told with its name and line.
// Method: a text cut at random rows (a seed) into files of which some are compressed and some lack
// the last newline; small files with one fault each.
#include "temporary_file.h"
#include "tt/workloads_data.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <zlib.h>

enum { FILES_MAX = 12, ROWS = 120000, TEXT_BYTES = ROWS * 64 };

static char directory[64], paths[FILES_MAX][96];
static const char *list[FILES_MAX];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)make_directory(directory);
    for (int i = 0; i < FILES_MAX; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/part-%02d", directory, i);
        list[i] = paths[i];
    }
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    for (int i = 0; i < FILES_MAX; i++)
        (void)unlink(paths[i]);
    return rmdir(directory);
}

static void
put(int file, const char *text)
{
    write_file(paths[file], text, strlen(text));
}

static void
put_packed(int file, const char *text, size_t size)
{
    gzFile out = gzopen(paths[file], "wb1");
    assert_non_null(out);
    assert_int_equal(gzwrite(out, text, (unsigned)size), (int)size);
    assert_int_equal(gzclose(out), Z_OK);
}

static tt_dataset *
read_files(const tt_data_spec *spec)
{
    tt_dataset *data;
    tt_error err = {0};
    if (tt_dataset_open(spec, &data, &err) != TT_OK)
        fail_msg("%s: %s; %s", err.where, err.what, err.advice);
    return data;
}

static void
expect_equal(const tt_dataset *a, const tt_dataset *b)
{
    assert_int_equal(a->row_count, b->row_count);
    assert_int_equal(a->nonzero_count, b->nonzero_count);
    assert_int_equal(a->feature_count, b->feature_count);
    assert_int_equal(a->class_count, b->class_count);
    assert_int_equal(a->category_count, b->category_count);
    assert_memory_equal(a->label, b->label, a->row_count * sizeof *a->label);
    assert_memory_equal(a->row_begin, b->row_begin, (a->row_count + 1) * sizeof *a->row_begin);
    assert_memory_equal(a->index, b->index, a->nonzero_count * sizeof *a->index);
    assert_memory_equal(a->value, b->value, a->nonzero_count * sizeof *a->value);
}

static size_t
write_rows(tt_rng *rng, int csv, char *text)
{
    size_t used = 0;
    for (int row = 0; row < ROWS; row++) {
        unsigned label = tt_rng_u32(rng) % 3, feature = 1 + tt_rng_u32(rng) % 900,
                 city = tt_rng_u32(rng) % 5000;
        double value = tt_rng_uniform(rng) + 0.25;
        int length = csv ? snprintf(text + used, 64, "%u,%.3f,city%u\n", label, value, city)
                         : snprintf(text + used, 64, "%u %u:%.3f %u:1\n", label, feature, value,
                                    feature + 1 + city % 17);
        used += (size_t)length;
    }
    return used;
}

// Cuts behind newlines into files 1 .. 6.
static void
cut(tt_rng *rng, const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    for (int file = 1; file <= 6; file++) {
        size_t rest = (size_t)(end - at);
        // Some files are smaller than a block of the reader, some larger.
        size_t piece = file == 6 ? rest : TT_MIN(rest / 2, tt_rng_u32(rng) % 1500000 + 20);
        if (piece < rest)
            piece = (size_t)((const char *)memchr(at + piece, '\n', rest - piece) - at) + 1;
        if (file % 2 == 0)
            put_packed(file, at, piece);
        else
            write_file(paths[file], at, piece - (size_t)(file == 3)); // without the last newline
        at += piece;
    }
}

static void
files_joined_are_one(const char *format, int csv)
{
    char *text = tt_mem_alloc(TEXT_BYTES);
    assert_non_null(text);
    tt_rng rng;
    tt_rng_init(&rng, 20261, TT_RNG_TEST, (uint64_t)csv);
    size_t size = write_rows(&rng, csv, text);
    write_file(paths[0], text, size);
    cut(&rng, text, size);
    tt_dataset *whole = read_files(&(tt_data_spec){.format = format, .path = paths[0]});
    for (int threads = 1; threads <= 3; threads++) {
        tt_dataset *parts = read_files(&(tt_data_spec){
            .format = format, .paths = list + 1, .path_count = 6, .threads = threads});
        expect_equal(parts, whole);
        tt_dataset_close(parts);
    }
    tt_dataset_close(whole);
    tt_mem_free(text);
}

static void
libsvm_files_joined_are_one(void **state)
{
    TT_UNUSED(state);
    files_joined_are_one("libsvm", 0);
}

static void
csv_files_joined_are_one(void **state)
{
    TT_UNUSED(state);
    files_joined_are_one("csv", 1);
}

static void
every_csv_file_has_its_header(void **state)
{
    TT_UNUSED(state);
    put(0, "click,age,city\n1,2.5,Oslo\n0,3.5,Rome\n");
    put(1, "\xef\xbb\xbf"
           "click,age,city\n0,4.5,Bonn\n");
    tt_dataset *data = read_files(&(tt_data_spec){.format = "csv", .paths = list, .path_count = 2});
    assert_int_equal(data->row_count, 3);
    assert_int_equal(data->category_count, 3);
    tt_dataset_close(data);
}

// ---- faults -----------------------------------------------------------------------------------

static void
expect_fault(const tt_data_spec *spec, const char *where, const char *what)
{
    for (int threads = 1; threads <= 3; threads++) {
        tt_dataset *data;
        tt_error err = {0};
        tt_data_spec here = *spec;
        char place[400];
        here.threads = threads;
        assert_int_not_equal(tt_dataset_open(&here, &data, &err), TT_OK);
        assert_null(data);
        assert_memory_equal(err.where, directory, strlen(directory));
        (void)snprintf(place, sizeof place, "%s", err.where + strlen(directory) + 1);
        assert_string_equal(place, where);
        assert_non_null(strstr(err.what, what));
    }
}

static void
csv_fault(const char *second, const char *where, const char *what)
{
    put(0, "click,age,city\n1,2.5,Oslo\n0,3.5,Rome\n");
    put(1, second);
    expect_fault(&(tt_data_spec){.format = "csv", .paths = list, .path_count = 2}, where, what);
}

static void
faults_name_the_file(void **state)
{
    TT_UNUSED(state);
    csv_fault("click,town,city\n1,2,Rome\n", "part-01:1", "column 2 is 'town'; in ");
    csv_fault("click,age\n1,2\n", "part-01:1", "2 columns ('city' is missing); ");
    csv_fault("click,age,city,zip\n1,2,a,b\n", "part-01:1", "4 columns ('zip' is one more); ");
    csv_fault("1,2,Rome\n", "part-01:1", "no header; ");
    csv_fault("click,age,city\n1,2,a\n0,x,b\n", "part-01:3:3", "value 'x' is not a number");
    csv_fault("", "part-01", "the file is empty; expected rows of CSV text");
    csv_fault("click,age,city\n", "part-01", "no rows, only a header and blank lines");
    put(0, "1,2,3\n0,4,5\n");
    put(1, "1,2\n");
    expect_fault(&(tt_data_spec){.format = "csv", .paths = list, .path_count = 2}, "part-01:1",
                 "2 columns; ");
    put(1, "y,a,b\n1,2,3\n");
    expect_fault(&(tt_data_spec){.format = "csv", .paths = list, .path_count = 2}, "part-01:1",
                 "the columns are named here; ");
    put(0, "1 1:1\n-1 2:1\n");
    put(1, "1 1:1\n\n-1 3:x\n");
    put(2, "nonsense");
    expect_fault(&(tt_data_spec){.format = "libsvm", .paths = list, .path_count = 3}, "part-01:3:6",
                 "value 'x' is not a number");
    put(1, "1 1:1\n");
    (void)unlink(paths[2]);
    expect_fault(&(tt_data_spec){.format = "libsvm", .paths = list, .path_count = 3}, "part-02",
                 "cannot open the data file");
    put(0, "1 1:1\n");
    expect_fault(&(tt_data_spec){.format = "libsvm", .paths = list, .path_count = 2},
                 "part-00 and 1 more file", "only one label value (1) in all 2 rows");
}

static void
damage_is_told_of_the_file_that_has_it(void **state)
{
    TT_UNUSED(state);
    enum { SIZE = 400000 };
    char *text = tt_mem_alloc(SIZE);
    size_t size;
    for (int i = 0; i < SIZE; i += 8)
        memcpy(text + i, i / 8 % 2 ? "1 7:0.5\n" : "2 9:0.5\n", 8);
    put_packed(0, text, SIZE);
    put_packed(1, text, SIZE);
    unsigned char *packed = read_file(paths[1], &size);
    packed[size / 2] ^= 0x55;
    write_file(paths[1], packed, size);
    put_packed(2, text, SIZE);
    for (int threads = 1; threads <= 3; threads++) {
        tt_dataset *data;
        tt_error err = {0};
        tt_data_spec spec = {
            .format = "libsvm", .paths = list, .path_count = 3, .threads = threads};
        assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_CORRUPT);
        assert_non_null(strstr(err.where, "part-01"));
    }
    free(packed);
    tt_mem_free(text);
}

// The training data have labels 1 and 2; reading goes on behind others, which are counted.
static void
unknown_labels_are_counted_over_all_files(void **state)
{
    TT_UNUSED(state);
    put(0, "1 1:1\n2 2:1\n");
    tt_dataset *like = read_files(&(tt_data_spec){.format = "libsvm", .path = paths[0]});
    tt_data_spec spec = {.format = "libsvm", .paths = list, .path_count = 4, .like = like};
    put(1, "\n1 1:1\n5 2:1\n");
    put(2, "4 1:1\n5 1:1\n2 1:1\n");
    put(3, "5 1:1");
    expect_fault(&spec, "part-01:3:1",
                 "label 5 does not occur in the training data (3 rows have it; 1 more with other "
                 "such labels)");
    // Whatever ends the reading comes behind them.
    static const char at_least[] = "label 5 does not occur in the training data (at least 2 rows "
                                   "have it; 1 more with other such labels)";
    put(3, "1 1:x\n");
    expect_fault(&spec, "part-01:3:1", at_least);
    put(3, "# nothing\n");
    expect_fault(&spec, "part-01:3:1", at_least);
    put(3, "");
    expect_fault(&spec, "part-01:3:1", at_least);
    (void)unlink(paths[3]);
    expect_fault(&spec, "part-01:3:1", at_least);
    write_file(paths[3], "\x1f\x8b\x08 no gzip data", 16);
    expect_fault(&spec, "part-01:3:1", at_least);
    put(1, "1 1:1\n5 2:x\n");
    expect_fault(&spec, "part-01:2:1", "(at least 1 row has it)");
    tt_dataset_close(like);
}

// ---- idx --------------------------------------------------------------------------------------

static void
put_idx(int file, unsigned count, unsigned width, unsigned char first)
{
    unsigned char bytes[256] = {0, 0, 8, (unsigned char)(width > 0 ? 2 : 1),
                                0, 0, 0, (unsigned char)count,
                                0, 0, 0, (unsigned char)width};
    size_t header = width > 0 ? 12 : 8, items = count * TT_MAX(width, 1u);
    for (size_t i = 0; i < items; i++)
        bytes[header + i] = (unsigned char)(first + i % 3);
    write_file(paths[file], bytes, header + items);
}

static void
idx_files_are_paired_by_order(void **state)
{
    TT_UNUSED(state);
    put_idx(0, 5, 4, 10);
    put_idx(1, 7, 4, 90);
    put_idx(2, 5, 0, 0);
    put_idx(3, 7, 0, 1);
    tt_data_spec spec = {.format = "idx",
                         .paths = list,
                         .path_count = 2,
                         .label_paths = list + 2,
                         .label_path_count = 2};
    tt_dataset *data = read_files(&spec);
    assert_int_equal(data->row_count, 12);
    assert_int_equal(data->class_count, 4);
    assert_int_equal(data->bytes[0], 10);
    assert_int_equal(data->bytes[5 * 4], 90);
    assert_int_equal(data->label[4], 1); // 0 1 2 0 1 | 1 2 3 1 2 3 1
    assert_int_equal(data->label[7], 3);
    put_idx(3, 6, 0, 1);
    expect_fault(&spec, "part-03", "6 labels for 7 items in ");
    put_idx(3, 7, 0, 1);
    put_idx(1, 7, 5, 90);
    expect_fault(&spec, "part-01", "an item has 5 bytes; those of ");
    put_idx(1, 7, 4, 90);
    spec.label_path_count = 1;
    expect_fault(&spec, "part-00", "2 files of items and 1 files of labels");
    spec.label_path_count = 2;
    spec.like = data;
    put_idx(3, 7, 0, 2);
    expect_fault(&spec, "part-03: byte 10",
                 "label 4 does not occur in the training data (2 rows have it)");
    put_idx(2, 5, 0, 3);
    expect_fault(&spec, "part-02: byte 9",
                 "label 4 does not occur in the training data (4 rows have it; 1 more with other "
                 "such labels)");
    put_idx(3, 6, 0, 2);
    expect_fault(&spec, "part-02: byte 9", "(at least 2 rows have it; 1 more");
    tt_dataset_close(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libsvm_files_joined_are_one),
        cmocka_unit_test(csv_files_joined_are_one),
        cmocka_unit_test(every_csv_file_has_its_header),
        cmocka_unit_test(faults_name_the_file),
        cmocka_unit_test(damage_is_told_of_the_file_that_has_it),
        cmocka_unit_test(unknown_labels_are_counted_over_all_files),
        cmocka_unit_test(idx_files_are_paired_by_order),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
