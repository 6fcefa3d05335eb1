// Goal: an invitation arrives as it was sent, and whatever else comes is refused with a sentence
// and without harm. Method: one sent through a pipe and compared; cut at every byte; every byte
// changed; another version.
#include "invitation.h"
#include "tt/job.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODES = 5, HOSTS = 2, VERSION_AT = 8 };

static void
write_one(tt_archive *out)
{
    uint32_t host_of[NODES] = {0, 1, 0, 1, 0};
    uint16_t port[2 * NODES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 65535};
    char directory[] = "/home/somebody", text[] = "job: one\nseed: 2\n";
    tti_invitation in = {.job_id = 77,
                         .host = 1,
                         .host_count = HOSTS,
                         .node_count = NODES,
                         .timeout_s = 2.5,
                         .master = {.port = 4000, .family = 4},
                         .host_of = host_of,
                         .port = port,
                         .directory = directory,
                         .text = text};
    memset(&in.key, 0x5a, sizeof in.key);
    tti_invitation_write(&in, out);
    assert_int_equal(out->status, TT_OK);
}

static tt_status
read_bytes(const uint8_t *bytes, size_t count, tti_invitation *out, tt_error *err)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, count), (ssize_t)count);
    (void)close(ends[1]);
    tt_status status = tti_invitation_read(ends[0], out, err);
    (void)close(ends[0]);
    return status;
}

static void
test_it_arrives(void **state)
{
    TT_UNUSED(state);
    tt_archive bytes = {0};
    tti_invitation in;
    tt_error err = {0};
    write_one(&bytes);
    assert_int_equal(read_bytes(bytes.bytes, bytes.count, &in, &err), TT_OK);
    assert_int_equal(in.job_id, 77);
    assert_int_equal(in.node_count, NODES);
    assert_int_equal(in.host_of[3], 1);
    assert_int_equal(in.port[2 * NODES - 1], 65535);
    assert_int_equal(in.master.port, 4000);
    assert_string_equal(in.directory, "/home/somebody");
    assert_string_equal(in.text, "job: one\nseed: 2\n");
    assert_int_equal(in.key.bytes[31], 0x5a);
    tti_invitation_fini(&in);
    tt_archive_fini(&bytes);
}

static void
test_a_part_is_refused(void **state)
{
    TT_UNUSED(state);
    tt_archive bytes = {0};
    tti_invitation in;
    write_one(&bytes);
    for (size_t count = 0; count < bytes.count; count++) {
        tt_error err = {0};
        assert_int_equal(read_bytes(bytes.bytes, count, &in, &err), TT_IO);
        assert_non_null(strstr(err.what, "no job was received"));
    }
    tt_archive_fini(&bytes);
}

// It has no checksum: the remote shell brings it whole. What it says is checked as far as it could
// do harm.
static void
test_changed_bytes_do_no_harm(void **state)
{
    TT_UNUSED(state);
    tt_archive bytes = {0};
    write_one(&bytes);
    for (size_t at = 0; at < bytes.count; at++)
        for (uint32_t flip = 1; flip < 256; flip *= 2) {
            tti_invitation in;
            tt_error err = {0};
            bytes.bytes[at] ^= (uint8_t)flip;
            if (read_bytes(bytes.bytes, bytes.count, &in, &err) == TT_OK) {
                for (uint32_t n = 0; n < in.node_count; n++)
                    assert_true(in.host_of[n] < in.host_count);
                tti_invitation_fini(&in);
            } else
                assert_true(err.what[0] != '\0');
            bytes.bytes[at] ^= (uint8_t)flip;
        }
    tt_archive_fini(&bytes);
}

// It becomes nanoseconds, and they numbers of 64 bits.
static void
test_no_time_is_refused(void **state)
{
    static const double none[] = {NAN, INFINITY, -1, 0, 1e30};
    TT_UNUSED(state);
    for (size_t i = 0; i < TT_COUNT_OF(none); i++) {
        tt_archive bytes = {0};
        tti_invitation in;
        tt_error err = {0};
        uint32_t host_of[1] = {0};
        uint16_t port[2] = {0};
        char text[] = "";
        const tti_invitation out = {.host_count = 1,
                                    .node_count = 1,
                                    .timeout_s = none[i],
                                    .host_of = host_of,
                                    .port = port,
                                    .directory = text,
                                    .text = text};
        tti_invitation_write(&out, &bytes);
        assert_int_equal(read_bytes(bytes.bytes, bytes.count, &in, &err), TT_CORRUPT);
        tt_archive_fini(&bytes);
    }
}

static void
test_another_version_is_named(void **state)
{
    TT_UNUSED(state);
    tt_archive bytes = {0};
    tti_invitation in;
    tt_error err = {0};
    write_one(&bytes);
    memcpy(bytes.bytes + VERSION_AT, "9.9.9", 6);
    assert_int_equal(read_bytes(bytes.bytes, bytes.count, &in, &err), TT_UNSUPPORTED);
    assert_non_null(strstr(err.what, "trimtab 9.9.9"));
    assert_non_null(strstr(err.what, tt_job_version()));
    tt_archive_fini(&bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_arrives),
        cmocka_unit_test(test_a_part_is_refused),
        cmocka_unit_test(test_changed_bytes_do_no_harm),
        cmocka_unit_test(test_no_time_is_refused),
        cmocka_unit_test(test_another_version_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
