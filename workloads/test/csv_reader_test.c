// Goal: CSV text becomes the features the documentation says, whatever the delimiter, the quoting,
// the number of threads and the order of a test file's columns. Method: small texts with known
// rows, the published vectors of the hash, and a long text beside its own parser.
#include "csv_columns.h"
#include "feature_hash.h"
#include "temporary_file.h"
#include "tt/workloads_data.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>

static char directory[64], path[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/data.csv", make_directory(directory));
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    return rmdir(directory);
}

static tt_dataset *
read_text(const char *text, const tt_csv_spec *csv, const tt_dataset *like, int threads)
{
    tt_dataset *data;
    tt_error err = {0};
    write_file(path, text, strlen(text));
    tt_data_spec spec = {
        .format = "csv", .path = path, .csv = csv, .like = like, .threads = threads};
    if (tt_dataset_open(&spec, &data, &err) != TT_OK)
        fail_msg("%s: %s; %s", err.where, err.what, err.advice);
    return data;
}

// The value of a feature in a row, 0 when it is not stored.
static double
at(const tt_dataset *data, uint64_t row, uint32_t feature)
{
    for (uint64_t i = data->row_begin[row]; i < data->row_begin[row + 1]; i++)
        if (data->index[i] == feature)
            return data->value != NULL ? (double)data->value[i] : 1;
    return 0;
}

static uint32_t
category(const tt_dataset *data, const char *text, uint32_t column)
{
    uint32_t numeric = data->columns->numeric_count, bits = data->columns->hash_bits;
    return numeric + (tti_murmur32(text, strlen(text), column) & ((1u << bits) - 1));
}

static void
hash_is_murmur3(void **state)
{
    TT_UNUSED(state);
    assert_int_equal(tti_murmur32("", 0, 0), 0);
    assert_int_equal(tti_murmur32("", 0, 1), 0x514e28b7);
    assert_int_equal(tti_murmur32("", 0, 0xffffffff), 0x81f16f39);
    assert_int_equal(tti_murmur32("hello", 5, 0), 0x248bfa47);
    assert_int_equal(tti_murmur32("hello, world", 12, 0), 0x149bbb7f);
    assert_int_equal(tti_murmur32("The quick brown fox jumps over the lazy dog", 43, 0),
                     0x2e4ff723);
}

static void
columns_are_told_by_content(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data = read_text("click,age,city,clicks\r\n"
                                 "1, 30 ,Oslo,2\r\n"
                                 "\r\n"
                                 "0,-2.5e1,\"Bergen, \"\"Vest\"\"\",NA\r\n"
                                 "1,,Oslo,\"12\"",
                                 NULL, NULL, 1);
    assert_int_equal(data->row_count, 3);
    assert_int_equal(data->feature_count, 2 + (1 << 18));
    assert_int_equal(data->class_count, 2);
    assert_true(at(data, 0, 0) == 30 && at(data, 1, 0) == -25 && at(data, 2, 0) == 0);
    assert_true(at(data, 0, 1) == 2 && at(data, 1, 1) == 0 && at(data, 2, 1) == 12);
    assert_true(at(data, 0, category(data, "Oslo", 3)) == 1);
    assert_true(at(data, 1, category(data, "Bergen, \"Vest\"", 3)) == 1);
    assert_int_equal(data->category_count, 2);
    assert_int_equal(data->label[1], 0);
    tt_dataset_close(data);
}

static void
columns_are_named_numbered_and_ignored(void **state)
{
    TT_UNUSED(state);
    const char *text = "7;1;5;x;3\n8;0;6;y;4\n";
    tt_csv_spec csv = {.label = "2", .categorical = "1,3", .numeric = "5", .hash_bits = 10};
    tt_dataset *data = read_text(text, &csv, NULL, 1);
    assert_int_equal(data->feature_count, 1 + (1 << 10));
    assert_true(at(data, 0, 0) == 3 && at(data, 0, category(data, "7", 1)) == 1 &&
                at(data, 1, category(data, "6", 3)) == 1);
    assert_int_equal(data->nonzero_count, 6);
    tt_dataset_close(data);
    csv = (tt_csv_spec){.label = "2", .ignore = "4", .log_numeric = 1};
    data = read_text(text, &csv, NULL, 1);
    assert_int_equal(data->feature_count, 3);
    assert_true(fabs(at(data, 0, 0) - log(8)) < 1e-6);
    tt_dataset_close(data);
}

static void
test_data_follow_training_by_name(void **state)
{
    TT_UNUSED(state);
    tt_dataset *train = read_text("y\tage\tcity\n1\t30\tOslo\n0\t20\tRome\n", NULL, NULL, 1);
    tt_dataset *test = read_text("city\tid\ty\tage\nRome\t9\t1\t41\n", NULL, train, 1);
    assert_int_equal(test->feature_count, train->feature_count);
    assert_int_equal(test->label[0], 1);
    assert_true(at(test, 0, 0) == 41 && at(test, 0, category(train, "Rome", 3)) == 1);
    tt_dataset_close(test);
    tt_dataset_close(train);
}

static void
collisions_add_up_and_are_counted(void **state)
{
    TT_UNUSED(state);
    tt_csv_spec csv = {.hash_bits = 1, .categorical = "2-5"};
    tt_dataset *data = read_text("1,a,b,c,d\n0,e,f,g,h\n", &csv, NULL, 1);
    assert_int_equal(data->feature_count, 2);
    assert_true(at(data, 0, 0) + at(data, 0, 1) == 4 && at(data, 1, 0) + at(data, 1, 1) == 4);
    assert_int_equal(data->category_count, 8);
    assert_int_equal(data->category_collisions, 6);
    tt_dataset_close(data);
}

static void
long_texts_and_threads_agree(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 40000, COLUMNS = 60 }; // more columns than a short row sorts
    size_t room = (size_t)ROWS * COLUMNS * 8, used = 0;
    char *text = malloc(room);
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            used += (size_t)snprintf(text + used, room - used, c < 30 ? "%u%c" : "v%u%c",
                                     c == 0 ? row % 3 : (row * 7 + c * c) % 97,
                                     c == COLUMNS - 1 ? '\n' : '|');
    tt_dataset *one = read_text(text, NULL, NULL, 1), *four = read_text(text, NULL, NULL, 4);
    assert_int_equal(one->row_count, ROWS);
    assert_int_equal(one->category_count, 30 * 97);
    assert_int_equal(one->category_collisions, four->category_collisions);
    assert_int_equal(one->nonzero_count, four->nonzero_count);
    assert_memory_equal(one->index, four->index, one->nonzero_count * sizeof *one->index);
    assert_memory_equal(one->value, four->value, one->nonzero_count * sizeof *one->value);
    for (uint64_t row = 0; row < ROWS; row += 997) {
        char word[16];
        (void)snprintf(word, sizeof word, "v%u", (unsigned)((row * 7 + 59 * 59) % 97));
        assert_int_equal(one->label[row], row % 3);
        assert_true(at(one, row, 4) == (double)((row * 7 + 25) % 97));
        assert_true(at(one, row, category(one, word, 60)) >= 1);
    }
    tt_dataset_close(one);
    tt_dataset_close(four);
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_murmur3),
        cmocka_unit_test(columns_are_told_by_content),
        cmocka_unit_test(columns_are_named_numbered_and_ignored),
        cmocka_unit_test(test_data_follow_training_by_name),
        cmocka_unit_test(collisions_add_up_and_are_counted),
        cmocka_unit_test(long_texts_and_threads_agree),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
