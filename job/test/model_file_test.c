// Goal: a model that was saved is read back as it was, and no damage of its file passes for a
// model. Method: a small model of each layout written with its checksum, then every byte of the
// file changed, every length cut, every allocation failed.
#include "model_file.h"
#include "tt/job_saved.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/tt-model-test-XXXXXX";
static const float params[8] = {2.385F, -1.5F, 0.0F, 3e-5F, 1e30F, -0.25F, 7.0F, -2.0F};

static const char *const libsvm_metadata =
    "{\"format\": \"trimtab\", \"format_version\": \"1\", \"trimtab_version\": \"0.1.0\", "
    "\"model\": \"softmax_regression\", \"bias\": \"on\", \"l2\": \"0.0001\", "
    "\"features\": \"3\", \"classes\": \"[-1, 2.5]\", \"data_format\": \"libsvm\"}";

static int
setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int
teardown(void **state)
{
    (void)state;
    return unlink(path);
}

// Saves weights [3][2] and bias [2] with these metadata and the checksum that belongs to them.
static void
save(const char *text)
{
    static const tt_tensor tensors[] = {{"weight", TT_TENSOR_F32, 2, {3, 2}, params},
                                        {"bias", TT_TENSOR_F32, 1, {2, 0}, params + 6}};
    json_t *metadata = json_loads(text, 0, NULL);
    assert_non_null(metadata);
    char crc[16];
    (void)snprintf(crc, sizeof crc, "%08x", tti_model_checksum(metadata, params, sizeof params));
    assert_int_equal(json_object_set_new(metadata, "crc32", json_string(crc)), 0);
    char *whole = json_dumps(metadata, 0);
    tt_error err = {0};
    assert_int_equal(tt_tensors_save_safetensors(path, whole, tensors, 2, &err), TT_OK);
    free(whole);
    json_decref(metadata);
}

static void
a_model_is_read_as_it_was_saved(void **state)
{
    (void)state;
    tti_saved_model model;
    tt_error err = {0};
    save(libsvm_metadata);
    if (tti_saved_model_open(path, &model, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    assert_string_equal(model.kind, "softmax_regression");
    assert_string_equal(model.data_format, "libsvm");
    assert_int_equal(model.bias, 1);
    assert_true(model.l2 == 0.0001);
    assert_int_equal(model.width, 2);
    assert_int_equal(model.shape.layout, TT_DATA_SPARSE);
    assert_int_equal(model.shape.feature_count, 3);
    assert_int_equal(model.shape.class_count, 2);
    assert_true(model.class_label[0] == -1 && model.class_label[1] == 2.5);
    assert_memory_equal(model.params, params, sizeof params);
    tti_saved_model_close(&model);
}

static unsigned char *
read_all(size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 16);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 16, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void
write_all(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void
expect_refusal(const char *what, size_t at)
{
    tt_job_model *model;
    tt_error err = {0};
    tt_status status = tt_job_model_open(path, &model, &err);
    if (status == TT_OK || (tt_status_exit_code(status) != 2 && status != TT_UNSUPPORTED) ||
        model != NULL || err.what[0] == '\0' || err.advice[0] == '\0')
        fail_msg("%s at byte %zu: %s: %s", what, at, tt_status_name(status), err.what);
}

static void
every_damage_is_noticed(void **state)
{
    (void)state;
    save(libsvm_metadata);
    size_t size;
    unsigned char *bytes = read_all(&size);
    static const unsigned char changes[] = {0x01, 0x10, 0x80};
    for (size_t at = 0; at < size; at++)
        for (size_t i = 0; i < TT_COUNT_OF(changes); i++) {
            bytes[at] ^= changes[i];
            write_all(bytes, size);
            expect_refusal("a changed bit", at);
            bytes[at] ^= changes[i];
        }
    for (size_t length = 0; length < size; length++) {
        write_all(bytes, length);
        expect_refusal("the end", length);
    }
    bytes[size] = 0;
    write_all(bytes, size + 1);
    expect_refusal("one more", size);
    free(bytes);
}

static void
columns_go_through_json(void **state)
{
    (void)state;
    static const char *names[] = {"y", "age", "caf\xe9", "\xff\xc3\x28"};
    tt_csv_layout layout = {.spec = {.label = "1",
                                     .numeric = "2",
                                     .categorical = "3-4",
                                     .delimiter = '\t',
                                     .hash_bits = 7,
                                     .log_numeric = 1},
                            .column_count = 4,
                            .names = names};
    for (int utf8 = 0; utf8 < 2; utf8++) {
        if (utf8) {
            names[2] = "caf\xc3\xa9";
            names[3] = "\xe6\x97\xa5";
        }
        json_t *object = tti_columns_to_json(&layout);
        assert_non_null(object);
        char *text = json_dumps(object, 0);
        json_decref(object);
        object = json_loads(text, 0, NULL);
        free(text);
        tt_csv_layout *back = tti_columns_from_json(object);
        json_decref(object);
        assert_non_null(back);
        assert_int_equal(back->column_count, 4);
        assert_string_equal(back->spec.label, "1");
        assert_string_equal(back->spec.numeric, "2");
        assert_string_equal(back->spec.categorical, "3-4");
        assert_int_equal(back->spec.delimiter, '\t');
        assert_int_equal(back->spec.hash_bits, 7);
        assert_int_equal(back->spec.log_numeric, 1);
        for (size_t i = 0; i < 4; i++)
            assert_string_equal(back->names[i], names[i]);
        tt_csv_layout_free(back);
    }
}

// Headers whose checksum is right and whose words make no model.
static void
nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"[-1, 2.5]", "[2.5, -1]"},
        {"[-1, 2.5]", "[-1]"},
        {"[-1, 2.5]", "[-1, null]"},
        {"\"3\"", "\"4\""},
        {"\"3\"", "\"0\""},
        {"\"3\"", "\"1e99\""},
        {"softmax_", "softmin_"},
        {"\"bias\": \"on\"", "\"bias\": \"off\""},
        {"\"libsvm\"", "\"csv\""},
        {"softmax_regression", "linear_svm"},
        {"\"libsvm\"", "\"idx\", \"scale\": \"-1\""},
        {"\"libsvm\"", "\"csv\", \"csv\": \"{}\""},
        {"0.0001", "-1"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(changes); i++) {
        char text[1024];
        const char *at = strstr(libsvm_metadata, changes[i][0]);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - libsvm_metadata), libsvm_metadata,
                       changes[i][1], at + strlen(changes[i][0]));
        save(text);
        tt_job_model *model;
        tt_error err = {0};
        tt_status status = tt_job_model_open(path, &model, &err);
        static tt_job_evaluation evaluation;
        if (status == TT_OK) { // what only the use of it can tell
            static const char *const files[] = {"/dev/null"};
            tt_job_use use = {.files = files, .file_count = 1};
            status = tt_job_model_evaluate(model, &use, &evaluation, &err);
            assert_null(strstr(err.what, "the file is empty"));
            tt_job_model_close(model);
        }
        if (tt_status_exit_code(status) != 2)
            fail_msg("'%s' passes: %s", changes[i][1], err.what);
    }
}

static void
failing_allocations_are_survived(void **state)
{
    (void)state;
    int failed = 0;
    save(libsvm_metadata);
    for (uint64_t n = 1; n < 12; n++) {
        tt_job_model *model;
        tt_error err = {0};
        tt_mem_fail_nth(n);
        tt_status status = tt_job_model_open(path, &model, &err);
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK ? model != NULL : status == TT_NOMEM && model == NULL);
        failed += status == TT_NOMEM;
        tt_job_model_close(model);
    }
    assert_true(failed >= 4);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_read_as_it_was_saved),
        cmocka_unit_test(every_damage_is_noticed),
        cmocka_unit_test(columns_go_through_json),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
