// How fast the kernels of training are on one core: local steps of the models (fill a batch, loss
// and gradient, update; no server), bf16 against memcpy, all per CPU-second and per kernel variant.
// The baseline of logistic regression and SVM is a bare C loop of SGD over the same rows, compiled
// here. Baseline and kernel alternate within one sitting. One JSON line a case; `cal` is CAL (steps
// per CPU-second of a dependent 64-bit multiply-add) of the same run, `scaled` = median * 960e6 /
// cal, by which figures travel between machines.
//
//     kernels_bench [--data DIR] [--repeats N] [--seed N] [--rows N] [--only TEXT]
//
// DIR holds a9a.xz and fashion-mnist/; --rows is that of the generated click log of 1 M features
// (0: leave it out); --only runs the cases whose name contains TEXT.
#include "tt/workloads.h"
#include "tt/workloads_model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 99 };

static struct options {
    const char *data, *only;
    int repeats;
    uint64_t seed, rows;
} options = {TT_SOURCE_DIR "/../shared/data", "", 7, 1, 1000000};

static double calibration; // steps per CPU-second

static _Noreturn void
stop(const tt_error *err)
{
    tt_error_print(stderr, err);
    exit(tt_status_exit_code(err->status));
}

static _Noreturn void
stop_memory(void)
{
    stop(&(tt_error){.status = TT_NOMEM, .where = "kernels_bench", .what = "out of memory"});
}

static int
compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
sort_rates(double *rates)
{
    qsort(rates, (size_t)options.repeats, sizeof *rates, compare);
}

static double
measure_calibration(void)
{
    const uint64_t steps = 50000000;
    volatile uint64_t sink;
    uint64_t x = 1;
    const uint64_t begin = tt_clock_cpu_ns();
    for (uint64_t i = 0; i < steps; i++)
        x = x * 6364136223846793005U + 1442695040888963407U;
    sink = x; // so that the loop is not removed
    (void)sink;
    return (double)steps * 1e9 / (double)(tt_clock_cpu_ns() - begin);
}

// A thing to measure: does its work once and says how many units that was.
typedef struct job {
    double (*run)(void *self);
    void *self;
} job;

static double
rate_of(const job *j)
{
    const uint64_t begin = tt_clock_cpu_ns();
    const double units = j->run(j->self);
    return units * 1e9 / (double)(tt_clock_cpu_ns() - begin);
}

// Measures `subject` and, alternating with it, `baseline` (may be NULL), after a round that does
// not count. Prints the line.
static void
measure(const char *name, const char *params, const char *unit, job *subject, job *baseline)
{
    double rates[REPEATS_MAX], base[REPEATS_MAX] = {0};
    if (strstr(name, options.only) == NULL)
        return;
    for (int i = -1; i < options.repeats; i++) {
        const double b = baseline != NULL ? rate_of(baseline) : 0, r = rate_of(subject);
        if (i < 0)
            continue;
        rates[i] = r;
        base[i] = b;
    }
    sort_rates(rates), sort_rates(base);
    const int n = options.repeats;
    const double median = rates[n / 2];
    (void)printf("{\"bench\": \"kernels\", \"case\": \"%s\", \"params\": \"%s\", \"seed\": %llu, "
                 "\"n\": %d, \"median\": %.6g, \"p25\": %.6g, \"p75\": %.6g, \"unit\": \"%s\", ",
                 name, params, (unsigned long long)options.seed, n, median, rates[n / 4],
                 rates[n * 3 / 4], unit);
    if (baseline != NULL)
        (void)printf("\"baseline\": %.6g, \"ratio\": %.4f, ", base[n / 2], median / base[n / 2]);
    (void)printf("\"cal\": %.4g, \"scaled\": %.6g}\n", calibration, median * 960e6 / calibration);
    (void)fflush(stdout);
}

// ---- models

// Local SGD with a model: one epoch in a fixed random order, in batches.
typedef struct trainer {
    const tt_dataset *data;
    const tt_vec_ops *ops;
    tt_model *model;
    tt_batch *batch;
    tt_model_scratch *scratch;
    uint32_t batch_rows, *order;
    float rate, *table, *pulled, *gradient; // pulled: rows of the batch when keyed, else the table
    double loss;                            // mean over the last epoch
} trainer;

static void
trainer_open(trainer *t, const tt_dataset *data, const tt_model_config *config, uint32_t batch_rows)
{
    tt_error err = {0};
    memset(t, 0, sizeof *t);
    t->data = data;
    t->batch_rows = batch_rows;
    if (tt_model_open(config, data, &t->model, &err) != TT_OK)
        stop(&err);
    const size_t size = (size_t)tt_model_rows(t->model) * tt_model_width(t->model);
    t->order = tt_mem_alloc(data->row_count * sizeof *t->order);
    t->table = tt_mem_zalloc_vector(size, sizeof *t->table);
    t->gradient = tt_mem_zalloc_vector(size, sizeof *t->gradient);
    t->pulled = tt_model_keyed(t->model) ? tt_mem_zalloc_vector(size, sizeof(float)) : t->table;
    if (t->order == NULL || t->table == NULL || t->gradient == NULL || t->pulled == NULL ||
        tt_batch_alloc(t->model, data, batch_rows, &t->batch) != TT_OK ||
        tt_model_scratch_alloc(t->model, batch_rows, &t->scratch) != TT_OK)
        stop_memory();
    for (uint32_t i = 0; i < data->row_count; i++)
        t->order[i] = i;
    tt_rng rng;
    tt_rng_init(&rng, options.seed, TT_RNG_SHARD_ORDER, 0);
    tt_rng_shuffle_u32(&rng, t->order, (size_t)data->row_count);
}

static void
trainer_close(trainer *t)
{
    tt_model_scratch_free(t->scratch);
    tt_batch_free(t->batch);
    tt_mem_free(t->order);
    tt_mem_free(t->gradient);
    if (t->pulled != t->table)
        tt_mem_free(t->pulled);
    tt_mem_free(t->table);
    tt_model_close(t->model);
}

static void
trainer_step(trainer *t, const uint32_t *rows, uint32_t n)
{
    const size_t width = tt_model_width(t->model);
    uint32_t count;
    tt_batch_fill(t->batch, rows, n);
    const uint32_t *keys = tt_batch_keys(t->batch, &count);
    if (keys != NULL) // width 1 in this program
        for (uint32_t j = 0; j < count; j++)
            t->pulled[j] = t->table[keys[j]];
    memset(t->gradient, 0, count * width * sizeof *t->gradient);
    t->loss += tt_model_loss_gradient(t->model, t->ops, t->batch, 0, n, 1.0F / (float)n, t->pulled,
                                      t->gradient, NULL, t->scratch);
    tt_model_regularise(t->model, t->batch, t->pulled, t->gradient);
    if (keys == NULL)
        t->ops->sgd_step(t->table, t->gradient, count * width, t->rate);
    else
        for (uint32_t j = 0; j < count; j++)
            t->table[keys[j]] -= t->rate * t->gradient[j];
}

static double
trainer_epoch(void *self)
{
    trainer *t = self;
    const uint32_t rows = (uint32_t)t->data->row_count;
    t->loss = 0;
    for (uint32_t begin = 0; begin < rows;) {
        const uint32_t n = TT_MIN(t->batch_rows, rows - begin);
        trainer_step(t, t->order + begin, n);
        begin += n;
    }
    t->loss /= rows;
    return rows;
}

// The roof: plain C, no regulariser, no batches, an update after every row.
typedef struct bare_loop {
    const trainer *like;
    float *w;
    int hinge;
} bare_loop;

static double
bare_epoch(void *self)
{
    const bare_loop *b = self;
    const tt_dataset *data = b->like->data;
    float *w = b->w;
    for (uint64_t i = 0; i < data->row_count; i++) {
        const uint32_t row = b->like->order[i];
        const float y = data->label[row] != 0 ? 1.0F : -1.0F;
        float m = 0;
        for (uint64_t j = data->row_begin[row]; j < data->row_begin[row + (uint64_t)1]; j++)
            m += w[data->index[j]];
        const float slope = b->hinge ? (y * m < 1 ? -y : 0) : -y / (1 + expf(y * m));
        for (uint64_t j = data->row_begin[row]; j < data->row_begin[row + (uint64_t)1]; j++)
            w[data->index[j]] -= 0.01F * slope;
    }
    return (double)data->row_count;
}

// Every variant that this processor runs, as long as the case is wanted.
static void
measure_variants(const char *name, trainer *t, job *baseline)
{
    const size_t size = (size_t)tt_model_rows(t->model) * tt_model_width(t->model);
    for (int v = 0; v < TT_VEC_VARIANT_COUNT; v++) {
        t->ops = tt_vec_ops_for((tt_vec_variant)v);
        if ((int)t->ops->variant != v)
            continue;
        char full[64], params[128];
        (void)snprintf(full, sizeof full, "%s_%s", name, t->ops->name);
        (void)snprintf(params, sizeof params, "batch=%u rows=%llu features=%u nonzeros=%llu",
                       t->batch_rows, (unsigned long long)t->data->row_count,
                       t->data->feature_count, (unsigned long long)t->data->nonzero_count);
        memset(t->table, 0, size * sizeof *t->table);
        job subject = {trainer_epoch, t};
        measure(full, params, "examples per CPU-second", &subject, baseline);
    }
    (void)fprintf(stderr, "%s: mean loss of the last epoch %.4f\n", name, t->loss);
}

static int
wanted(const char *name)
{
    return strstr(name, options.only) != NULL || strstr(options.only, name) != NULL;
}

static void
measure_sparse(const char *name, const tt_dataset *data, const char *kind, uint32_t batch_rows)
{
    if (!wanted(name))
        return;
    trainer t;
    const tt_model_config config = {
        .kind = kind, .l2 = 1 / (double)data->row_count, .batch_hint = batch_rows};
    trainer_open(&t, data, &config, batch_rows);
    t.rate = 0.5F;
    bare_loop bare = {&t, tt_mem_zalloc_vector(data->feature_count, sizeof(float)),
                      strcmp(kind, "linear_svm") == 0};
    if (bare.w == NULL)
        stop_memory();
    job baseline = {bare_epoch, &bare};
    measure_variants(name, &t, data->value == NULL ? &baseline : NULL);
    tt_mem_free(bare.w);
    trainer_close(&t);
}

static tt_dataset *
open_data(const char *format, const char *file, const char *labels)
{
    char path[512], label_path[512];
    (void)snprintf(path, sizeof path, "%s/%s", options.data, file);
    (void)snprintf(label_path, sizeof label_path, "%s/%s", options.data,
                   labels != NULL ? labels : "");
    const tt_data_spec spec = {
        .format = format, .path = path, .labels = labels != NULL ? label_path : NULL};
    tt_dataset *data = NULL;
    tt_error err = {0};
    if (tt_dataset_open(&spec, &data, &err) != TT_OK)
        tt_error_print(stderr, &err); // these cases are left out
    return data;
}

static void
bench_a9a(void)
{
    if (!wanted("logr_a9a") && !wanted("svm_a9a"))
        return;
    tt_dataset *data = open_data("libsvm", "a9a.xz", NULL);
    if (data == NULL)
        return;
    measure_sparse("logr_a9a", data, "logistic_regression", 256);
    measure_sparse("svm_a9a", data, "linear_svm", 256);
    tt_dataset_close(data);
}

static void
bench_clicklog(void)
{
    if (!wanted("logr_clicklog") || options.rows == 0)
        return;
    const tt_clicklog_spec spec = {
        .row_count = options.rows, .feature_count = 1000000, .seed = options.seed};
    tt_dataset *data;
    tt_error err = {0};
    if (tt_generate_clicklog_dataset(&spec, &data, NULL, &err) != TT_OK)
        stop(&err);
    measure_sparse("logr_clicklog", data, "logistic_regression", 1024);
    tt_dataset_close(data);
}

static void
bench_fashion(void)
{
    if (!wanted("softmax_fashion"))
        return;
    tt_dataset *data = open_data("idx", "fashion-mnist/train-images-idx3-ubyte.gz",
                                 "fashion-mnist/train-labels-idx1-ubyte.gz");
    if (data == NULL)
        return;
    trainer t;
    const tt_model_config config = {.kind = "softmax_regression", .l2 = 1e-4, .bias = 1};
    trainer_open(&t, data, &config, 128);
    t.rate = 0.05F;
    measure_variants("softmax_fashion", &t, NULL);
    trainer_close(&t);
    tt_dataset_close(data);
}

// ---- bf16

enum { BF16_FLOATS = 16384, BF16_ROUNDS = 4000 }; // 64 KiB of floats, the chunk of a link

typedef struct converter {
    const tt_vec_ops *ops; // NULL: memcpy of the floats
    int decode;
    float *floats, *copy;
    tt_bf16 *halves;
} converter;

static double
convert(void *self)
{
    converter *c = self;
    for (int i = 0; i < BF16_ROUNDS; i++) {
        if (c->ops == NULL)
            memcpy(c->copy, c->floats, BF16_FLOATS * sizeof(float));
        else if (c->decode)
            c->ops->bf16_decode(c->halves, c->copy, BF16_FLOATS);
        else
            c->ops->bf16_encode(c->floats, c->halves, BF16_FLOATS);
        __asm__ volatile("" ::: "memory"); // each round writes memory that is looked at
    }
    return (double)BF16_ROUNDS * BF16_FLOATS * sizeof(float) / 1e9;
}

static void
bench_bf16(void)
{
    converter copy = {0}, c = {0};
    float *floats = tt_mem_zalloc_vector(BF16_FLOATS, sizeof(float));
    float *target = tt_mem_zalloc_vector(BF16_FLOATS, sizeof(float));
    tt_bf16 *halves = tt_mem_zalloc_vector(BF16_FLOATS, sizeof *halves);
    if (floats == NULL || target == NULL || halves == NULL)
        stop_memory();
    tt_rng rng;
    tt_rng_init(&rng, options.seed, TT_RNG_GENERATOR, 0);
    for (size_t i = 0; i < BF16_FLOATS; i++)
        floats[i] = (float)tt_rng_normal(&rng);
    copy = (converter){NULL, 0, floats, target, halves};
    job subject = {convert, &c}, baseline = {convert, &copy};
    for (int v = 0; v < TT_VEC_VARIANT_COUNT; v++)
        for (int decode = 0; decode < 2; decode++) {
            c = (converter){tt_vec_ops_for((tt_vec_variant)v), decode, floats, target, halves};
            if ((int)c.ops->variant != v)
                continue;
            char name[64];
            (void)snprintf(name, sizeof name, "bf16_%s_%s", decode ? "decode" : "encode",
                           c.ops->name);
            measure(name, "KiB=64 baseline=memcpy", "GB of float32 per CPU-second", &subject,
                    &baseline);
        }
    tt_mem_free(floats);
    tt_mem_free(target);
    tt_mem_free(halves);
}

static void
calibrate(void)
{
    double rates[REPEATS_MAX];
    for (int i = 0; i < options.repeats; i++)
        rates[i] = measure_calibration();
    sort_rates(rates);
    const int n = options.repeats;
    calibration = rates[n / 2];
    (void)printf("{\"bench\": \"kernels\", \"case\": \"calibration\", \"params\": \"\", "
                 "\"seed\": 0, \"n\": %d, \"median\": %.6g, \"p25\": %.6g, \"p75\": %.6g, "
                 "\"unit\": \"LCG steps per CPU-second\", \"cal\": %.6g, \"scaled\": 9.6e8}\n",
                 n, calibration, rates[n / 4], rates[n * 3 / 4], calibration);
    (void)fflush(stdout);
}

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value != NULL && strcmp(argv[i], "--data") == 0)
            options.data = value;
        else if (value != NULL && strcmp(argv[i], "--only") == 0)
            options.only = value;
        else if (value != NULL && strcmp(argv[i], "--repeats") == 0)
            options.repeats = (int)strtol(value, NULL, 10);
        else if (value != NULL && strcmp(argv[i], "--seed") == 0)
            options.seed = strtoull(value, NULL, 10);
        else if (value != NULL && strcmp(argv[i], "--rows") == 0)
            options.rows = strtoull(value, NULL, 10);
        else {
            (void)fprintf(stderr, "usage: kernels_bench [--data DIR] [--repeats N] [--seed N] "
                                  "[--rows N] [--only TEXT]\n");
            return 2;
        }
    }
    options.repeats = TT_MIN(TT_MAX(options.repeats, 1), (int)REPEATS_MAX);
    calibrate();
    bench_bf16();
    bench_a9a();
    bench_fashion();
    bench_clicklog();
    return 0;
}
