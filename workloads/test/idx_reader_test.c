// Goal: IDX images and labels are read exactly, and every fault of either file is told with its
// offset.
// Method: small files built by hand, a table of faults, real data when it is there, and failing
// allocations.
#include "temporary_file.h"
#include "tt/workloads_data.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char directory[64], images[96], labels[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(images, sizeof images, "%s/images.idx", make_directory(directory));
    (void)snprintf(labels, sizeof labels, "%s/labels.idx", directory);
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(images);
    (void)unlink(labels);
    return rmdir(directory);
}

// Writes a big-endian header of `count` words and a body.
static void
write_idx(const char *path, const uint32_t *words, size_t count, const char *body, size_t size)
{
    unsigned char bytes[256];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes[used++] = (unsigned char)(words[i] >> shift);
    memcpy(bytes + used, body, size);
    write_file(path, bytes, used + size);
}

static const uint32_t image_words[] = {0x803, 3, 2, 2}, label_words[] = {0x801, 3};
static const char image_body[] = "\x00\x10\x20\xff"
                                 "abcd"
                                 "\x7f\x80\x01\x02";
static const char label_body[] = "\x07\x03\x07";

static void
write_good_files(void)
{
    write_idx(images, image_words, 4, image_body, 12);
    write_idx(labels, label_words, 2, label_body, 3);
}

static tt_status
open_idx(const tt_dataset *like, tt_dataset **out, tt_error *err)
{
    tt_data_spec spec = {.format = "idx", .path = images, .labels = labels, .like = like};
    *err = (tt_error){0};
    return tt_dataset_open(&spec, out, err);
}

static void
images_and_labels_are_read_exactly(void **state)
{
    TT_UNUSED(state);
    write_good_files();
    tt_dataset *data;
    tt_error err;
    assert_int_equal(open_idx(NULL, &data, &err), TT_OK);
    assert_int_equal(data->layout, TT_DATA_DENSE_U8);
    assert_int_equal(data->row_count, 3);
    assert_int_equal(data->feature_count, 4);
    assert_int_equal(data->nonzero_count, 12);
    assert_memory_equal(data->bytes, image_body, 12);
    assert_true(data->scale == 1.0f / 255.0f);
    assert_int_equal(data->class_count, 2);
    assert_true(data->class_label[0] == 3 && data->class_label[1] == 7);
    const uint16_t expected[3] = {1, 0, 1};
    assert_memory_equal(data->label, expected, sizeof expected);
    // a test set may have one class only, but no new one
    write_idx(labels, label_words, 2, "\x07\x07\x07", 3);
    tt_dataset *test;
    assert_int_equal(open_idx(data, &test, &err), TT_OK);
    assert_int_equal(test->class_count, 2);
    assert_int_equal(test->label[2], 1);
    tt_dataset_close(test);
    write_idx(labels, label_words, 2, "\x07\x03\x04", 3);
    assert_int_equal(open_idx(data, &test, &err), TT_INVALID);
    assert_string_equal(err.what, "label 4 does not occur in the training data (1 row has it)");
    assert_string_equal(err.where + strlen(labels), ": byte 10");
    tt_dataset_close(data);
}

static void
vectors_of_any_rank_are_read(void **state)
{
    TT_UNUSED(state);
    for (uint32_t rank = 1; rank <= 8; rank++) {
        const uint32_t words[9] = {0x800 | rank, 3, rank > 1 ? 4 : 0, 1, 1, 1, 1, 1, 1};
        write_idx(images, words, rank + 1, image_body, rank > 1 ? 12 : 3);
        write_idx(labels, label_words, 2, label_body, 3);
        tt_dataset *data;
        tt_error err;
        assert_int_equal(open_idx(NULL, &data, &err), TT_OK);
        assert_int_equal(data->feature_count, rank > 1 ? 4 : 1);
        tt_dataset_close(data);
    }
}

static void
faults_are_told_with_their_offset(void **state)
{
    TT_UNUSED(state);
    static const struct {
        int in_labels;
        uint32_t words[10];
        size_t count, body;
        tt_status status;
        const char *place, *what;
    } faults[] = {
        {0, {0}, 0, 0, TT_INVALID, "", "the file is empty"},
        {0, {0x803}, 1, 2, TT_SYNTAX, ": byte 6", "ends inside the IDX header"},
        {0, {0x903, 3, 2, 2}, 4, 12, TT_SYNTAX, ": byte 0", "magic number 0x00000903; expected"},
        {0, {0x80003, 3, 2, 2}, 4, 12, TT_SYNTAX, ": byte 0", "magic number 0x00080003"},
        {0, {0x800, 3}, 2, 12, TT_SYNTAX, ": byte 0", "magic number"},
        {0, {0x809, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 1, TT_SYNTAX, ": byte 0", "magic number"},
        {0, {0x803, 0, 2, 2}, 4, 0, TT_INVALID, ": byte 4", "the first dimension is 0"},
        {0, {0x803, 3, 0, 2}, 4, 0, TT_RANGE, ": byte 8", "dimension 2 is 0"},
        {0, {0x803, 3, 65536, 65536}, 4, 0, TT_RANGE, ": byte 12", "dimension 3 is 65536"},
        {0, {0x804, 3, 1 << 30, 1, 3}, 5, 0, TT_RANGE, ": byte 16", "dimension 4 is 3"},
        {0, {0x803, 0xffffffff, 2, 2}, 4, 12, TT_SYNTAX, ": byte 28", "the file ends here"},
        {0, {0x803, 3, 2, 2}, 4, 11, TT_SYNTAX, ": byte 27", "its header says 3 items of 4 bytes"},
        {0, {0x803, 3, 2, 2}, 4, 13, TT_SYNTAX, ": byte 28", "bytes follow the last item"},
        {1, {0x803, 3, 1, 1}, 4, 3, TT_SYNTAX, ": byte 0", "expected 0x00000801 (labels)"},
        {1, {0x801}, 1, 0, TT_SYNTAX, ": byte 4", "ends inside the IDX header"},
        {1, {0x801, 3}, 2, 2, TT_SYNTAX, ": byte 10", "the file ends here"},
        {1, {0x801, 3}, 2, 4, TT_SYNTAX, ": byte 11", "bytes follow"},
        {1, {0x801, 2}, 2, 2, TT_INVALID, "", "2 labels for 3 items in "},
        {1, {0x801, 3}, 2, 3, TT_INVALID, "", "only one label value (97) in all 3 items"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(faults); i++) {
        write_good_files();
        const char *path = faults[i].in_labels ? labels : images;
        write_idx(path, faults[i].words, faults[i].count, "aaaaaaaaaaaaaaaa", faults[i].body);
        tt_dataset *data = (tt_dataset *)&data;
        tt_error err;
        tt_status status = open_idx(NULL, &data, &err);
        if (status != faults[i].status || strcmp(err.where + strlen(path), faults[i].place) != 0 ||
            strstr(err.what, faults[i].what) == NULL)
            fail_msg("fault %zu gave %s at '%s': %s", i, tt_status_name(status), err.where,
                     err.what);
        assert_memory_equal(err.where, path, strlen(path));
        assert_int_not_equal(err.advice[0], 0);
        assert_null(data);
    }
}

static void
widths_and_formats_must_agree(void **state)
{
    TT_UNUSED(state);
    write_good_files();
    tt_dataset *data, *other;
    tt_error err = {0};
    tt_data_spec spec = {.format = "idx", .path = images};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_INVALID);
    assert_string_equal(err.what, "IDX data needs a second file with the labels");
    spec.labels = labels;
    spec.feature_count = 5;
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_INVALID);
    assert_string_equal(err.what, "an item has 4 bytes; expected 5 features");
    spec.feature_count = 4;
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_OK);
    const uint32_t wide[] = {0x803, 3, 3, 2};
    write_idx(images, wide, 4, "aaaaaaaaaaaaaaaaaa", 18);
    assert_int_equal(open_idx(data, &other, &err), TT_INVALID);
    assert_string_equal(err.what, "an item has 6 bytes; expected 4 features");
    write_file(images, "1 1:1\n0 1:1\n", 12);
    tt_data_spec text = {.format = "libsvm", .path = images, .like = data};
    assert_int_equal(tt_dataset_open(&text, &other, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "is sparse (LIBSVM text) while the training data is dense"));
    text.like = NULL;
    assert_int_equal(tt_dataset_open(&text, &other, &err), TT_OK);
    tt_dataset_close(data);
    write_good_files();
    assert_int_equal(open_idx(other, &data, &err), TT_INVALID);
    assert_string_equal(err.what, "is dense (IDX) while the training data is not");
    tt_dataset_close(other);
}

static void
every_allocation_may_fail(void **state)
{
    TT_UNUSED(state);
    write_good_files();
    tt_status status = TT_NOMEM;
    uint64_t n = 1;
    for (; status != TT_OK; n++) {
        tt_dataset *data;
        tt_error err;
        tt_mem_fail_nth(n);
        status = open_idx(NULL, &data, &err);
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK || (status == TT_NOMEM && data == NULL));
        tt_dataset_close(data);
    }
    assert_in_range(n, 7, 10);
}

static void
real_data_has_its_published_figures(void **state)
{
    TT_UNUSED(state);
    static const char *const places[] = {"/usr/share/datasets/fashion-mnist",
                                         TT_SOURCE_DIR "/../shared/data/fashion-mnist"};
    char image_path[256], label_path[256];
    size_t place = 0;
    for (; place < TT_COUNT_OF(places); place++) {
        (void)snprintf(image_path, sizeof image_path, "%s/t10k-images-idx3-ubyte.gz",
                       places[place]);
        (void)snprintf(label_path, sizeof label_path, "%s/t10k-labels-idx1-ubyte.gz",
                       places[place]);
        if (access(image_path, R_OK) == 0)
            break;
    }
    if (place == TT_COUNT_OF(places)) {
        print_message("SKIP Fashion-MNIST is not here\n");
        return;
    }
    tt_data_spec spec = {.format = "idx", .path = image_path, .labels = label_path};
    tt_dataset *data;
    tt_error err = {0};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_OK);
    assert_int_equal(data->row_count, 10000);
    assert_int_equal(data->feature_count, 784);
    assert_int_equal(data->class_count, 10);
    uint32_t count[10] = {0};
    for (uint32_t row = 0; row < 10000; row++)
        count[data->label[row]]++;
    for (int i = 0; i < 10; i++)
        assert_int_equal(count[i], 1000);
    tt_dataset_close(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_and_labels_are_read_exactly),
        cmocka_unit_test(vectors_of_any_rank_are_read),
        cmocka_unit_test(faults_are_told_with_their_offset),
        cmocka_unit_test(widths_and_formats_must_agree),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(real_data_has_its_published_figures),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
