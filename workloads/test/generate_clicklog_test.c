// Goal: generated click logs are what their header says: the same bytes from any number of threads,
// the same rows in memory as in the file, the declared truth, and no half-written file.
// Method: files compared byte by byte and read back; losses and rates recomputed from the data and
// tt_clicklog_weight; failures provoked (missing directory, size limit, memory).
#include "temporary_file.h"
#include "tt/workloads.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char directory[64], path[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/clicks.svm", make_directory(directory));
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    return rmdir(directory);
}

static const tt_clicklog_spec small = {.row_count = 5003,
                                       .feature_count = 100003,
                                       .field_count = 17,
                                       .numeric_field_count = 3,
                                       .seed = 20261121,
                                       .positive_rate = 0.3,
                                       .label_noise = 0.05};

// Files in the test's directory; what is left behind shows here.
static int
count_files(void)
{
    DIR *open = opendir(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) // NOLINT: one thread
        count += entry->d_name[0] != '.';
    (void)closedir(open);
    return count;
}

static void
bytes_do_not_depend_on_threads(void **state)
{
    TT_UNUSED(state);
    static const char *const suffixes[] = {"", ".gz"};
    for (size_t s = 0; s < TT_COUNT_OF(suffixes); s++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[s]);
        unsigned char *first = NULL;
        size_t first_size = 0;
        tt_clicklog_truth first_truth = {0};
        for (int threads = 1; threads <= 4; threads++) {
            tt_clicklog_spec spec = small;
            tt_clicklog_truth truth;
            tt_error err = {0};
            spec.threads = threads;
            spec.path = name;
            assert_int_equal(tt_generate_clicklog(&spec, &truth, &err), TT_OK);
            size_t size;
            unsigned char *bytes = read_file(name, &size);
            if (threads == 1) {
                first = bytes;
                first_size = size;
                first_truth = truth;
                assert_int_equal(bytes[0] == 0x1f, s == 1);
                continue;
            }
            assert_int_equal(size, first_size);
            assert_memory_equal(bytes, first, size);
            assert_memory_equal(&truth, &first_truth, sizeof truth);
            free(bytes);
        }
        free(first);
        (void)unlink(name);
    }
    assert_int_equal(count_files(), 0);
}

static void
assert_datasets_equal(const tt_dataset *a, const tt_dataset *b)
{
    assert_int_equal(a->layout, b->layout);
    assert_int_equal(a->row_count, b->row_count);
    assert_int_equal(a->feature_count, b->feature_count);
    assert_int_equal(a->nonzero_count, b->nonzero_count);
    assert_int_equal(a->class_count, b->class_count);
    assert_memory_equal(a->class_label, b->class_label, sizeof a->class_label);
    assert_memory_equal(a->label, b->label, a->row_count * sizeof *a->label);
    assert_memory_equal(a->row_begin, b->row_begin, (a->row_count + 1) * sizeof *a->row_begin);
    assert_memory_equal(a->index, b->index, a->nonzero_count * sizeof *a->index);
    assert_int_equal(a->value == NULL, b->value == NULL);
    if (a->value != NULL)
        assert_memory_equal(a->value, b->value, a->nonzero_count * sizeof *a->value);
}

static void
memory_equals_file(void **state)
{
    TT_UNUSED(state);
    for (int numeric = 0; numeric <= 3; numeric += 3) {
        tt_clicklog_spec spec = small;
        tt_clicklog_truth truth, file_truth;
        tt_error err = {0};
        char name[128];
        (void)snprintf(name, sizeof name, "%s.gz", path);
        spec.path = name;
        spec.numeric_field_count = (uint32_t)numeric;
        tt_dataset *data, *read;
        assert_int_equal(tt_generate_clicklog_dataset(&spec, &data, &truth, &err), TT_OK);
        assert_int_equal(tt_generate_clicklog(&spec, &file_truth, &err), TT_OK);
        assert_memory_equal(&truth, &file_truth, sizeof truth);
        tt_data_spec reading = {
            .format = "libsvm", .path = name, .feature_count = spec.feature_count};
        assert_int_equal(tt_dataset_open(&reading, &read, &err), TT_OK);
        assert_datasets_equal(data, read);
        assert_int_equal(data->value != NULL, numeric > 0);
        tt_dataset_close(data);
        tt_dataset_close(read);
        (void)unlink(name);
    }
}

static void
the_truth_is_true(void **state)
{
    TT_UNUSED(state);
    tt_clicklog_spec spec = small;
    spec.row_count = 60000;
    tt_clicklog_truth truth;
    tt_dataset *data;
    tt_error err = {0};
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &data, &truth, &err), TT_OK);
    double entropy = 0, surprise = 0, positives = 0, z_squares = 0;
    for (uint64_t row = 0; row < data->row_count; row++) {
        double z = 0;
        for (uint64_t i = data->row_begin[row]; i < data->row_begin[row + 1]; i++)
            z += tt_clicklog_weight(&spec, data->index[i]) * (double)data->value[i];
        z_squares += z * z;
        double p = 1 / (1 + exp(-z - truth.intercept));
        p = p * (1 - spec.label_noise) + (1 - p) * spec.label_noise;
        entropy -= p * log(p) + (1 - p) * log(1 - p);
        surprise -= log(data->label[row] ? p : 1 - p);
        positives += data->label[row];
    }
    double rows = (double)data->row_count;
    // float values against exact hundredths: 1e-7 relative each
    assert_true(fabs(entropy / rows - truth.bayes_loss) < 1e-6);
    assert_true(fabs(surprise / rows - truth.true_loss) < 1e-6);
    assert_true(positives / rows == truth.positive_rate);
    // Five standard errors: of the realised loss, whose deviation per row is below 1, and of the
    // rate over rows and over the calibration sample of 4,096.
    assert_true(fabs(truth.bayes_loss - truth.true_loss) < 5 / sqrt(rows));
    assert_true(fabs(truth.positive_rate - 0.3) < 5 * 0.46 / sqrt(4096));
    // labels are neither noise nor plain: between the coin's loss at this rate and a clean split
    assert_in_range((int)(truth.bayes_loss * 1000), 300, 600);
    assert_true(z_squares / rows > 0.3);
    tt_dataset_close(data);
}

static void
weights_have_the_declared_spread(void **state)
{
    TT_UNUSED(state);
    double sum = 0, squares = 0, count = small.feature_count - 3;
    for (uint32_t feature = 3; feature < small.feature_count; feature++) {
        double w = tt_clicklog_weight(&small, feature) * sqrt(17) / 1.5;
        sum += w;
        squares += w * w;
    }
    // five standard errors over 100,000 weights of variance 1 and fourth moment 2.7
    assert_true(fabs(sum / count) < 5 / sqrt(count));
    assert_true(fabs(squares / count - 1) < 5 * sqrt(1.7 / count));
    double numeric = 0;
    for (uint32_t feature = 0; feature < 3; feature++)
        numeric = TT_MAX(numeric, fabs(tt_clicklog_weight(&small, feature)));
    // the sum of four uniforms ends at 2 sqrt(3) deviations
    assert_true(numeric > 0 && numeric <= 2 * sqrt(3) * 0.2 * 1.5 / sqrt(17));
}

static void
categories_follow_zipf_in_disjoint_ranges(void **state)
{
    TT_UNUSED(state);
    tt_clicklog_spec spec = small;
    spec.row_count = 20000;
    spec.numeric_field_count = 0;
    tt_dataset *data;
    tt_error err = {0};
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &data, NULL, &err), TT_OK);
    uint32_t *count = calloc(spec.feature_count, sizeof *count), last = 0, used = 0;
    for (uint32_t f = 0; f < 17; f++) {
        uint32_t low = UINT32_MAX, high = 0, hottest = 0;
        for (uint64_t row = 0; row < data->row_count; row++) {
            uint32_t index = data->index[row * 17 + f];
            low = TT_MIN(low, index);
            high = TT_MAX(high, index);
            count[index]++;
            hottest = TT_MAX(hottest, count[index]);
        }
        assert_true(f == 0 || low > last);
        last = high;
        // The hottest category has the share log 2 / log(width + 1), where the width is at least
        // what was seen of it and at most all features.
        double share = (double)hottest / (double)data->row_count, slack = 0.02;
        assert_true(share < log(2) / log(2.0 + high - low) + slack);
        assert_true(share > log(2) / log(spec.feature_count) - slack);
    }
    for (uint32_t i = 0; i < spec.feature_count; i++)
        used += count[i] > 0;
    assert_in_range(used, 10000, spec.feature_count); // the tail is long
    free(count);
    tt_dataset_close(data);
}

static void
rows_do_not_depend_on_how_many_there_are(void **state)
{
    TT_UNUSED(state);
    tt_clicklog_spec spec = small;
    tt_dataset *many, *few;
    tt_error err = {0};
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &many, NULL, &err), TT_OK);
    spec.row_count = 1500;
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &few, NULL, &err), TT_OK);
    assert_memory_equal(few->index, many->index, few->nonzero_count * sizeof *few->index);
    assert_memory_equal(few->label, many->label, few->row_count * sizeof *few->label);
    tt_dataset_close(few);
    spec.seed++;
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &few, NULL, &err), TT_OK);
    assert_memory_not_equal(few->index, many->index, few->nonzero_count * sizeof *few->index);
    tt_dataset_close(few);
    tt_dataset_close(many);
}

// In a child whose files may not exceed 100 kB: fails with TT_IO and leaves the old file alone.
static int
write_over_the_limit(const tt_clicklog_spec *spec)
{
    const struct rlimit limit = {100000, 100000};
    if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 2;
    tt_error err = {0};
    tt_status status = tt_generate_clicklog(spec, NULL, &err);
    return status == TT_IO && strstr(err.what, "File too large") != NULL &&
                   strstr(err.advice, "free some space") != NULL
               ? 0
               : 1;
}

static void
nothing_half_written_is_left(void **state)
{
    TT_UNUSED(state);
    tt_clicklog_spec spec = small;
    spec.path = path;
    write_file(path, "old", 3);
    pid_t child = fork();
    if (child == 0)
        _exit(write_over_the_limit(&spec));
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    size_t size;
    unsigned char *bytes = read_file(path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "old", 3);
    free(bytes);
    assert_int_equal(count_files(), 1);
    tt_error err = {0};
    assert_int_equal(tt_generate_clicklog(&spec, NULL, &err), TT_OK);
    bytes = read_file(path, &size);
    assert_true(size > 500000);
    free(bytes);
    assert_int_equal(unlink(path), 0);
    spec.path = "/nonexistent/clicks.svm";
    assert_int_equal(tt_generate_clicklog(&spec, NULL, &err), TT_IO);
    assert_string_equal(err.where, spec.path);
    assert_string_equal(
        err.what, "cannot create the file: No such file or directory; nothing was left behind");
}

static void
every_allocation_may_fail(void **state)
{
    TT_UNUSED(state);
    char name[128];
    (void)snprintf(name, sizeof name, "%s.gz", path);
    for (int in_memory = 0; in_memory <= 1; in_memory++) {
        tt_status status = TT_NOMEM;
        uint64_t n = 1;
        for (; status != TT_OK; n++) {
            tt_clicklog_spec spec = small;
            spec.row_count = 3000;
            spec.path = name;
            spec.threads = 1;
            tt_dataset *data = NULL;
            tt_error err = {0};
            tt_mem_fail_nth(n);
            status = in_memory ? tt_generate_clicklog_dataset(&spec, &data, NULL, &err)
                               : tt_generate_clicklog(&spec, NULL, &err);
            tt_mem_fail_nth(0);
            assert_true(status == TT_OK || (status == TT_NOMEM && err.what[0] != '\0'));
            assert_true(in_memory || count_files() == (status == TT_OK));
            tt_dataset_close(data);
        }
        assert_in_range(n, 7, 12);
    }
    (void)unlink(name);
}

static void
impossible_specs_are_refused(void **state)
{
    TT_UNUSED(state);
    static const struct {
        tt_clicklog_spec spec;
        tt_status status;
        const char *what;
    } cases[] = {
        {{.row_count = 0, .feature_count = 100}, TT_RANGE, "the number of rows"},
        {{.row_count = UINT32_MAX, .feature_count = 100}, TT_RANGE, "the number of rows"},
        {{.row_count = 9, .feature_count = 36}, TT_RANGE, "from 37 (the fields)"},
        {{.row_count = 9, .feature_count = UINT32_MAX}, TT_RANGE, "the number of features"},
        {{.row_count = 9, .feature_count = 5000, .field_count = 1025}, TT_RANGE, "fields must be"},
        {{.row_count = 9, .feature_count = 50, .numeric_field_count = 38}, TT_RANGE, "numeric"},
        {{.row_count = 9, .feature_count = 50, .label_noise = 0.5}, TT_RANGE, "label noise"},
        {{.row_count = 9, .feature_count = 50, .label_noise = NAN}, TT_RANGE, "label noise"},
        {{.row_count = 9, .feature_count = 50, .positive_rate = 1}, TT_RANGE, "positive rate"},
        {{.row_count = 9, .feature_count = 50, .positive_rate = 0.1, .label_noise = 0.2},
         TT_RANGE,
         "the positive rate must be between 0.2 and 0.8, not 0.1"},
        {{.row_count = 1, .feature_count = 50}, TT_INVALID, "all 1 labels came out the same"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_dataset *data = (tt_dataset *)&data;
        tt_error err = {0};
        assert_int_equal(tt_generate_clicklog_dataset(&cases[i].spec, &data, NULL, &err),
                         cases[i].status);
        assert_non_null(strstr(err.what, cases[i].what));
        assert_null(data);
    }
    tt_error err = {0};
    assert_int_equal(tt_generate_clicklog(&small, NULL, &err), TT_INVALID);
}

static void
later_rows_of_the_same_log_follow(void **state)
{
    TT_UNUSED(state);
    tt_clicklog_spec spec = {.row_count = 300, .feature_count = 5000, .field_count = 11, .seed = 9};
    tt_clicklog_truth truth;
    tt_error err = {0};
    tt_dataset *all, *tail;
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &all, &truth, &err), TT_OK);
    spec.first_row = 190;
    spec.row_count = 110;
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &tail, &truth, &err), TT_OK);
    for (uint64_t i = 0; i < 110; i++) {
        assert_int_equal(tail->label[i], all->label[190 + i]);
        assert_memory_equal(tail->index + tail->row_begin[i], all->index + all->row_begin[190 + i],
                            11 * sizeof(uint32_t));
    }
    tt_dataset_close(all);
    tt_dataset_close(tail);
    spec.first_row = UINT32_MAX - 50;
    assert_int_equal(tt_generate_clicklog_dataset(&spec, &tail, &truth, &err), TT_RANGE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_threads),
        cmocka_unit_test(memory_equals_file),
        cmocka_unit_test(later_rows_of_the_same_log_follow),
        cmocka_unit_test(the_truth_is_true),
        cmocka_unit_test(weights_have_the_declared_spread),
        cmocka_unit_test(categories_follow_zipf_in_disjoint_ranges),
        cmocka_unit_test(rows_do_not_depend_on_how_many_there_are),
        cmocka_unit_test(nothing_half_written_is_left),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(impossible_specs_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
