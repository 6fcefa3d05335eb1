// Goal: under a checkpoint's name there is a whole file or none, a file damaged at any byte is
// found out, and the newest whole one is what is used; old ones go by the rule. Method: small
// checkpoints in a directory of our own, cut and changed at every byte.
#include "checkpoint_file.h"

// cmocka wants setjmp.h before it
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

static char directory[128];

static void
path_of(uint64_t iteration, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%012llu.ttck", directory, (unsigned long long)iteration);
}

static void
write_one(uint64_t iteration)
{
    static const uint8_t first[] = "parameters, optimiser state", second[] = "";
    tti_checkpoint c = {.iteration = iteration,
                        .time_s = 2.385 * (double)iteration,
                        .written_at = 1700000000,
                        .section_count = 2,
                        .sections = {{"runtime", first, sizeof first}, {"tuner", second, 0}}};
    tt_error err = {0};
    assert_int_equal(tti_checkpoint_write(directory, &c, &err), TT_OK);
}

static void
fresh(void)
{
    char command[200];
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static size_t
read_whole(const char *path, uint8_t *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(out, 1, size, file);
    (void)fclose(file);
    return count;
}

static void
write_whole(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    (void)fclose(file);
}

static int
exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void
what_is_written_is_read(void **state)
{
    TT_UNUSED(state);
    char path[200];
    uint64_t count;
    tti_checkpoint c;
    fresh();
    write_one(4711);
    path_of(4711, path, sizeof path);
    assert_int_equal(tti_checkpoint_read(path, &c, NULL), TT_OK);
    assert_int_equal(c.iteration, 4711);
    assert_float_equal(c.time_s, 2.385 * 4711, 0);
    assert_int_equal(c.written_at, 1700000000);
    assert_string_equal((const char *)tti_checkpoint_find(&c, "runtime", &count),
                        "parameters, optimiser state");
    assert_int_equal(count, 28);
    assert_non_null(tti_checkpoint_find(&c, "tuner", &count));
    assert_int_equal(count, 0);
    assert_null(tti_checkpoint_find(&c, "nobody", &count));
    tti_checkpoint_fini(&c);
}

static void
damage_at_any_byte_is_found(void **state)
{
    TT_UNUSED(state);
    char path[200];
    uint8_t bytes[1024];
    tti_checkpoint c;
    fresh();
    write_one(12);
    path_of(12, path, sizeof path);
    size_t count = read_whole(path, bytes, sizeof bytes);
    assert_true(count > 64 && count < sizeof bytes);
    for (size_t cut = 0; cut < count; cut++) {
        write_whole(path, bytes, cut);
        assert_int_equal(tti_checkpoint_read(path, &c, NULL), TT_CORRUPT);
    }
    for (size_t i = 0; i < count; i++) {
        bytes[i] ^= 0x20;
        write_whole(path, bytes, count);
        assert_int_equal(tti_checkpoint_read(path, &c, NULL), TT_CORRUPT);
        bytes[i] ^= 0x20;
    }
    bytes[count] = 0;
    write_whole(path, bytes, count + 1);
    assert_int_equal(tti_checkpoint_read(path, &c, NULL), TT_CORRUPT);
    write_whole(path, bytes, count);
    assert_int_equal(tti_checkpoint_read(path, &c, NULL), TT_OK);
    tti_checkpoint_fini(&c);
}

// After power loss at any byte of the newest, the one before it is used, and that is said.
static void
the_newest_whole_one_is_used(void **state)
{
    TT_UNUSED(state);
    char path[200], aside[220];
    uint8_t bytes[1024];
    uint32_t skipped;
    tti_checkpoint c;
    tt_error err = {0};
    fresh();
    write_one(100);
    write_one(2000);
    path_of(2000, path, sizeof path);
    (void)snprintf(aside, sizeof aside, "%s.damaged", path);
    size_t count = read_whole(path, bytes, sizeof bytes);
    for (size_t cut = 0; cut < count; cut++) {
        (void)unlink(aside);
        write_whole(path, bytes, cut);
        assert_int_equal(tti_checkpoint_newest(directory, &c, &skipped, &err), TT_OK);
        assert_int_equal(c.iteration, 100);
        assert_int_equal(skipped, 1);
        assert_non_null(strstr(err.what, "damaged"));
        assert_true(exists(aside) && !exists(path)); // kept, and never taken for the newest again
        tti_checkpoint_fini(&c);
    }
    write_one(2000);
    assert_int_equal(tti_checkpoint_newest(directory, &c, &skipped, &err), TT_OK);
    assert_int_equal(c.iteration, 2000);
    assert_int_equal(skipped, 0);
    tti_checkpoint_fini(&c);
}

static void
none_is_not_found(void **state)
{
    TT_UNUSED(state);
    uint32_t skipped;
    tti_checkpoint c;
    fresh();
    assert_int_equal(tti_checkpoint_newest(directory, &c, &skipped, NULL), TT_NOTFOUND);
    assert_int_equal(skipped, 0);
    char path[200];
    write_one(7);
    path_of(7, path, sizeof path);
    write_whole(path, (const uint8_t *)"x", 1);
    assert_int_equal(tti_checkpoint_newest(directory, &c, &skipped, NULL), TT_NOTFOUND);
    assert_int_equal(skipped, 1);
}

// Whoever goes on counts nanoseconds from it.
static void
a_time_that_is_none_is_found(void **state)
{
    static const double none[] = {NAN, INFINITY, -0.5, 1e30};
    TT_UNUSED(state);
    for (size_t i = 0; i < TT_COUNT_OF(none); i++) {
        char path[200];
        tti_checkpoint c = {.iteration = 5, .time_s = none[i]};
        tt_error err = {0};
        assert_int_equal(tti_checkpoint_write(directory, &c, &err), TT_OK);
        path_of(5, path, sizeof path);
        assert_int_equal(tti_checkpoint_read(path, &c, &err), TT_CORRUPT);
    }
}

static void
old_ones_go(void **state)
{
    TT_UNUSED(state);
    char path[200], half[220];
    fresh();
    for (uint64_t i = 1; i <= 5; i++)
        write_one(i * 999); // 4995 sorts by number
    path_of(1, half, sizeof half);
    (void)strncat(half, ".new", 5);
    write_whole(half, (const uint8_t *)"half", 4);
    tti_checkpoint_prune(directory, 2);
    for (uint64_t i = 1; i <= 5; i++) {
        path_of(i * 999, path, sizeof path);
        assert_int_equal(exists(path), i >= 4);
    }
    assert_false(exists(half));
}

// A newer program's file is whole, and neither used nor put aside.
static void
a_newer_version_is_refused(void **state)
{
    TT_UNUSED(state);
    char path[200];
    uint8_t bytes[1024];
    uint32_t skipped;
    tti_checkpoint c;
    fresh();
    write_one(3);
    path_of(3, path, sizeof path);
    size_t count = read_whole(path, bytes, sizeof bytes);
    bytes[8] = 9; // the version
    uint64_t hash = XXH3_64bits(bytes, 56);
    memcpy(bytes + 56, &hash, sizeof hash);
    write_whole(path, bytes, count);
    assert_int_equal(tti_checkpoint_newest(directory, &c, &skipped, NULL), TT_UNSUPPORTED);
    assert_int_equal(skipped, 0);
    assert_true(exists(path));
}

static void
failures_leave_what_was_there(void **state)
{
    TT_UNUSED(state);
    char path[200];
    tti_checkpoint c = {.iteration = 5};
    tt_error err = {0};
    fresh();
    write_whole(directory, (const uint8_t *)"a file", 6); // where the directory should be
    assert_int_equal(tti_checkpoint_write(directory, &c, &err), TT_IO);
    assert_non_null(strstr(err.what, "cannot write the checkpoint"));
    path_of(5, path, sizeof path);
    assert_false(exists(path));
    (void)unlink(directory);
}

int
main(void)
{
    char base[] = "/tmp/checkpoint-file-test-XXXXXX";
    if (mkdtemp(base) == NULL)
        return 1;
    (void)snprintf(directory, sizeof directory, "%s/checkpoints", base);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(damage_at_any_byte_is_found),
        cmocka_unit_test(the_newest_whole_one_is_used),
        cmocka_unit_test(none_is_not_found),
        cmocka_unit_test(a_time_that_is_none_is_found),
        cmocka_unit_test(old_ones_go),
        cmocka_unit_test(a_newer_version_is_refused),
        cmocka_unit_test(failures_leave_what_was_there),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fresh();
    (void)rmdir(base);
    return failed;
}
