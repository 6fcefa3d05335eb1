// How fast LIBSVM text is read and written, in MB (1e6 bytes) per CPU-second of all threads
// together, beside CAL: steps per CPU-second of a dependent 64-bit multiply-add, measured in the
// same run, by which figures travel between machines. One JSON line a case.
//
//     reader_bench [--data DIR] [--mb SIZE] [--repeats N] [--seed N]
//
// DIR holds a9a.xz; SIZE is that of each text file, written to $TMPDIR and removed.
#include "tt/workloads.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPEATS_MAX = 99 };

struct options {
    const char *data;
    double megabytes;
    int repeats;
    uint64_t seed;
};

static double calibration; // CAL, million steps per CPU-second

static _Noreturn void
stop(const tt_error *err)
{
    tt_error_print(stderr, err);
    exit(tt_status_exit_code(err->status));
}

static double
measure_calibration(void)
{
    const uint64_t steps = 100000000;
    volatile uint64_t sink;
    uint64_t x = 1, begin = tt_clock_cpu_ns();
    for (uint64_t i = 0; i < steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x; // so that the loop is not removed
    (void)sink;
    return (double)steps * 1e3 / (double)(tt_clock_cpu_ns() - begin);
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
print_line(const char *name, const char *params, const struct options *options, double *rates)
{
    int n = options->repeats;
    qsort(rates, (size_t)n, sizeof *rates, compare);
    double median = rates[n / 2];
    (void)printf("{\"bench\": \"reader\", \"case\": \"%s\", \"params\": \"%s\", \"seed\": %llu, "
                 "\"n\": %d, \"median\": %.1f, \"p25\": %.1f, \"p75\": %.1f, "
                 "\"unit\": \"MB per CPU-second\", \"baseline\": %.1f, \"ratio\": %.4f}\n",
                 name, params, (unsigned long long)options->seed, n, median, rates[n / 4],
                 rates[n * 3 / 4], calibration, median / calibration);
    (void)fflush(stdout);
}

static double
megabytes_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (double)info.st_size / 1e6 : 0.0;
}

// Reads `path` and prints a line. The first reading, which fills the page cache, does not count.
static void
bench_reading(const char *name, const char *path, int threads, const struct options *options)
{
    double rates[REPEATS_MAX], megabytes = megabytes_of(path);
    char params[128] = "";
    for (int i = -1; i < options->repeats; i++) {
        tt_data_spec spec = {.format = "libsvm", .path = path, .threads = threads};
        tt_dataset *data;
        tt_error err = {0};
        uint64_t begin = tt_clock_cpu_ns();
        if (tt_dataset_open(&spec, &data, &err) != TT_OK)
            stop(&err);
        double seconds = (double)(tt_clock_cpu_ns() - begin) / 1e9;
        if (i >= 0)
            rates[i] = megabytes / seconds;
        (void)snprintf(params, sizeof params, "threads=%d MB=%.0f rows=%llu nonzeros=%llu", threads,
                       megabytes, (unsigned long long)data->row_count,
                       (unsigned long long)data->nonzero_count);
        tt_dataset_close(data);
    }
    print_line(name, params, options, rates);
}

// Writes a9a's rows again and again as text; 0 when a9a is not there.
static int
write_a9a(const char *path, const struct options *options)
{
    char source[512];
    (void)snprintf(source, sizeof source, "%s/a9a.xz", options->data);
    tt_data_spec spec = {.format = "libsvm", .path = source};
    tt_dataset *data;
    tt_error err = {0};
    if (tt_dataset_open(&spec, &data, &err) != TT_OK) {
        tt_error_print(stderr, &err);
        return 0;
    }
    FILE *file = fopen(path, "w");
    for (double left = options->megabytes * 1e6; file != NULL && left > 0;)
        for (uint64_t row = 0; row < data->row_count; row++) {
            left -= fprintf(file, "%+.0f ", data->class_label[data->label[row]]);
            for (uint64_t i = data->row_begin[row]; i < data->row_begin[row + 1]; i++)
                left -= fprintf(file, "%u:1 ", data->index[i] + 1);
            left -= fprintf(file, "\n");
        }
    tt_dataset_close(data);
    return file != NULL && fclose(file) == 0;
}

static void
write_clicklog(const char *name, const char *path, uint32_t numeric, const struct options *options)
{
    double rates[REPEATS_MAX];
    tt_clicklog_spec spec = {.row_count = (uint64_t)(options->megabytes * 1e6 / 335) + 1,
                             .feature_count = 2000000,
                             .numeric_field_count = numeric,
                             .seed = options->seed,
                             .threads = 1,
                             .path = path};
    for (int i = 0; i < options->repeats; i++) {
        tt_error err = {0};
        uint64_t begin = tt_clock_cpu_ns();
        if (tt_generate_clicklog(&spec, NULL, &err) != TT_OK)
            stop(&err);
        rates[i] = megabytes_of(path) / ((double)(tt_clock_cpu_ns() - begin) / 1e9);
    }
    print_line(name, "threads=1", options, rates);
}

static void
run(const struct options *options)
{
    char path[256];
    const char *directory = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%.200s/reader-bench-%ld.svm",
                   directory != NULL ? directory : "/tmp", (long)getpid());
    double rates[REPEATS_MAX];
    for (int i = 0; i < options->repeats; i++)
        rates[i] = measure_calibration();
    qsort(rates, (size_t)options->repeats, sizeof *rates, compare);
    calibration = rates[options->repeats / 2];
    (void)printf(
        "{\"bench\": \"reader\", \"case\": \"calibration\", \"params\": \"\", \"seed\": 0, "
        "\"n\": %d, \"median\": %.1f, \"p25\": %.1f, \"p75\": %.1f, "
        "\"unit\": \"million LCG steps per CPU-second\"}\n",
        options->repeats, calibration, rates[options->repeats / 4],
        rates[options->repeats * 3 / 4]);
    if (write_a9a(path, options)) {
        bench_reading("read_a9a_repeated", path, 1, options);
        bench_reading("read_a9a_repeated", path, 2, options);
    }
    write_clicklog("write_clicklog", path, 0, options);
    bench_reading("read_clicklog", path, 1, options);
    bench_reading("read_clicklog", path, 2, options);
    write_clicklog("write_clicklog_decimals", path, 13, options);
    bench_reading("read_clicklog_decimals", path, 1, options);
    (void)unlink(path);
}

int
main(int argc, char **argv)
{
    struct options options = {TT_SOURCE_DIR "/../shared/data", 100, 7, 1};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value != NULL && strcmp(argv[i], "--data") == 0)
            options.data = value;
        else if (value != NULL && strcmp(argv[i], "--mb") == 0)
            options.megabytes = strtod(value, NULL);
        else if (value != NULL && strcmp(argv[i], "--repeats") == 0)
            options.repeats = (int)strtol(value, NULL, 10);
        else if (value != NULL && strcmp(argv[i], "--seed") == 0)
            options.seed = strtoull(value, NULL, 10);
        else {
            (void)fprintf(stderr, "usage: reader_bench [--data DIR] [--mb SIZE] [--repeats N] "
                                  "[--seed N]\n");
            return 2;
        }
    }
    options.repeats = TT_MIN(TT_MAX(options.repeats, 1), (int)REPEATS_MAX);
    options.megabytes = TT_MAX(options.megabytes, 1.0);
    run(&options);
    return 0;
}
