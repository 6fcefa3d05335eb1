// Goal: files of tensors are what the formats say, byte by byte, and are whole or not there.
// Method: the known check value of CRC-32, files taken apart with plain offsets (safetensors as its
// README tells, zip as APPNOTE 6.3 does), provoked failures. numpy reads them in tests/cli.
#include "temporary_file.h"
#include "tt/workloads_tensor.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdint.h>
#include <unistd.h>

static char directory[64], path[96];
static const float weight[6] = {2.385F, -1.5F, 0.0F, 3e-5F, 1e30F, -0.25F};
static const double classes[2] = {-1, 2.5};
static const tt_tensor tensors[] = {
    {"weight", TT_TENSOR_F32, 2, {3, 2}, weight},
    {"bias", TT_TENSOR_F32, 1, {2, 0}, weight + 2},
    {"classes", TT_TENSOR_F64, 1, {2, 0}, classes},
    {"metadata", TT_TENSOR_TEXT, 0, {0, 0}, "{\"a\": \"b\"}"},
};

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/model", make_directory(directory));
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    return rmdir(directory); // fails when something was left behind
}

static uint64_t
little(const unsigned char *p, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static void
crc_is_that_of_zip(void **state)
{
    TT_UNUSED(state);
    // the check value of CRC-32/ISO-HDLC
    assert_int_equal(tt_tensor_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(tt_tensor_crc32(tt_tensor_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void
safetensors_is_header_and_bytes(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    assert_int_equal(tt_tensors_save_safetensors(path, "{\"k\":\"v\"}", tensors, 3, &err), TT_OK);
    size_t size;
    unsigned char *bytes = read_file(path, &size);
    uint64_t length = little(bytes, 8);
    assert_int_equal(length % 8, 0);
    assert_int_equal(size, 8 + length + 24 + 8 + 16);
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},"
        "\"weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
        "\"bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]},"
        "\"classes\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[32,48]}}";
    assert_memory_equal(bytes + 8, header, sizeof header - 1);
    for (size_t i = 8 + sizeof header - 1; i < 8 + length; i++)
        assert_int_equal(bytes[i], ' ');
    assert_memory_equal(bytes + 8 + length, weight, 24);
    assert_memory_equal(bytes + 8 + length + 24, weight + 2, 8);
    assert_memory_equal(bytes + 8 + length + 32, classes, 16);
    free(bytes);
}

// One member at *at of the archive; its central header at *central. Moves both on.
static void
check_member(
    const unsigned char *zip, const tt_tensor *tensor, const char *npy, size_t *at, size_t *central)
{
    const unsigned char *p = zip + *at, *c = zip + *central;
    char name[64];
    (void)snprintf(name, sizeof name, "%s.npy", tensor->name);
    assert_int_equal(little(p, 4), 0x04034b50);
    assert_int_equal(little(p + 8, 2), 0); // stored
    assert_int_equal(little(p + 26, 2), strlen(name));
    assert_int_equal(little(p + 28, 2), 20);
    assert_memory_equal(p + 30, name, strlen(name));
    const unsigned char *extra = p + 30 + strlen(name), *data = extra + 20;
    assert_int_equal(little(extra, 2), 1);
    uint64_t bytes = little(extra + 4, 8);
    assert_int_equal(little(extra + 12, 8), bytes);
    assert_int_equal(little(p + 14, 4), tt_tensor_crc32(0, data, bytes));
    // npy: magic, version, length, the dictionary, data at a multiple of 64
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    uint64_t header = 10 + little(data + 8, 2);
    assert_int_equal(header % 64, 0);
    assert_memory_equal(data + 10, npy, strlen(npy));
    assert_int_equal(data[header - 1], '\n');
    assert_int_equal(bytes, header + tt_tensor_bytes(tensor));
    assert_memory_equal(data + header, tensor->data, (size_t)tt_tensor_bytes(tensor));
    // the same once more in the directory
    assert_int_equal(little(c, 4), 0x02014b50);
    assert_memory_equal(c + 6, p + 4, 22);
    const unsigned char *sizes = c + 46 + strlen(name);
    assert_memory_equal(c + 46, name, strlen(name));
    assert_int_equal(little(sizes + 2, 2), 24);
    assert_int_equal(little(sizes + 4, 8), bytes);
    assert_int_equal(little(sizes + 20, 8), *at);
    *at = (size_t)(data + bytes - zip);
    *central += 46 + strlen(name) + 28;
}

static void
npz_is_a_zip_of_npy(void **state)
{
    TT_UNUSED(state);
    static const char *const npy[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|S10', 'fortran_order': False, 'shape': (), }",
    };
    tt_error err = {0};
    assert_int_equal(tt_tensors_save_npz(path, tensors, 4, &err), TT_OK);
    size_t size;
    unsigned char *zip = read_file(path, &size);
    const unsigned char *end = zip + size - 22, *where = end - 20, *end64 = where - 56;
    assert_int_equal(little(end, 4), 0x06054b50);
    assert_int_equal(little(end + 10, 2), 4);
    assert_int_equal(little(where, 4), 0x07064b50);
    assert_int_equal(little(where + 8, 8), (uint64_t)(end64 - zip));
    assert_int_equal(little(end64, 4), 0x06064b50);
    assert_int_equal(little(end64 + 32, 8), 4);
    size_t at = 0, central = (size_t)little(end64 + 48, 8);
    const size_t directory_begin = central;
    assert_int_equal(directory_begin + little(end64 + 40, 8), (uint64_t)(end64 - zip));
    for (size_t i = 0; i < 4; i++)
        check_member(zip, &tensors[i], npy[i], &at, &central);
    assert_int_equal(at, directory_begin);
    assert_int_equal(central, (size_t)(end64 - zip));
    free(zip);
}

// Whatever allocation fails and wherever the file cannot be made, nothing is left (teardown).
static void
failures_leave_nothing(void **state)
{
    TT_UNUSED(state);
    tt_error err = {0};
    char missing[128];
    (void)snprintf(missing, sizeof missing, "%s/no/model", directory);
    assert_int_equal(tt_tensors_save_npz(missing, tensors, 4, &err), TT_IO);
    assert_int_equal(tt_tensors_save_safetensors(missing, "{}", tensors, 3, &err), TT_IO);
    assert_int_not_equal(err.advice[0], 0);
    int failed = 0;
    for (int n = 1; n < 20; n++)
        for (int npz = 0; npz < 2; npz++) {
            tt_mem_fail_nth((uint64_t)n);
            tt_status status = npz ? tt_tensors_save_npz(path, tensors, 4, &err)
                                   : tt_tensors_save_safetensors(path, "{}", tensors, 3, &err);
            tt_mem_fail_nth(0);
            failed += status == TT_NOMEM;
            assert_true(status == TT_OK || status == TT_NOMEM);
            assert_int_equal(access(path, F_OK) == 0, status == TT_OK);
            (void)unlink(path);
        }
    assert_true(failed >= 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_is_that_of_zip),
        cmocka_unit_test_setup_teardown(safetensors_is_header_and_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(npz_is_a_zip_of_npy, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_leave_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
