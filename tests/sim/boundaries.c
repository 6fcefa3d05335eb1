// boundaries [STEP]: a worker crashes after each number of messages that it sends or handles in a
// whole job (each STEP-th), and never comes back. Whenever that is,
//
//     asp, ssp   the job goes on: every example is trained, in no more time than the job needs
//                without that worker from the beginning, and the failure time-out, and five round
//                trips to ask what is in already
//     bsp        the same, and the model is the same to the last bit; nothing goes back
//     bsp, while another one is away and comes back
//                so that it crashes while roles are being dealt out anew, too: all may go back to
//                the beginning then, but the model is the same to the last bit
//
// Prints what fails, each as the fault that does it. Exit status 1 when something did.
#include "sim_jobs.h"

enum { NODES = 5, SERVERS = 2, TIMEOUT_MS = 100, HEARTBEAT_MS = 10, LATENCY_US = 200 };

typedef struct form {
    const char *name, *consistency;
    uint32_t epochs;
    const char *other; // fault of another worker
} form;

static const form forms[] = {
    {"asp", "asp", 3, NULL},
    {"ssp", "ssp", 3, NULL},
    {"bsp", "bsp", 3, NULL},
    {"bsp, another away", "bsp", 5, "{kind: crash, from: 3, at: 20ms, for: 60ms}, "},
};

static void
write_job(const char *path, const form *f, uint32_t nodes, uint64_t after)
{
    static text t;
    t.used = 0;
    add(&t, "job: boundaries\nseed: 7\n");
    add(&t, "data: {format: clicklog, rows: 240, columns: 120, fields: 6}\n");
    add(&t, "model: {kind: logistic_regression, l2: 1e-4, pull: keyed}\n");
    add(&t, "optimizer: {kind: adagrad, learning_rate: 0.05, batch_size: 24}\n");
    add(&t, "stop: {max_epochs: %u, max_time: 100s}\nconsistency: %s\n", f->epochs, f->consistency);
    add(&t, "cluster: {engine: simulated, nodes: %u, retry: 5ms, heartbeat: %dms,", nodes,
        HEARTBEAT_MS);
    add(&t, " failure_timeout: %dms}\n", TIMEOUT_MS);
    add(&t, "setting: {servers: %d, prefetch: 1}\n", SERVERS);
    add(&t, "tuner: {enabled: off}\ncheckpoint: {keep: 0}\nbsp_slices: 6\n");
    add(&t, "simulation: {network: {latency: %dus}", LATENCY_US);
    if (after > 0)
        add(&t, ", faults: [%s{kind: crash, from: %u, after: %llu}]",
            f->other != NULL ? f->other : "", nodes - 1, (unsigned long long)after);
    add(&t, "}\n");
    int written = write_file(path, &t);
    TT_ASSERT(written);
}

static void
run_job(const char *directory, const form *f, uint32_t nodes, uint64_t after, outcome *out)
{
    char job[600];
    (void)snprintf(job, sizeof job, "%s/job.yaml", directory);
    write_job(job, f, nodes, after);
    const char *const files[] = {job};
    run((tt_job_source){.files = files, .file_count = 1}, directory, NULL, out);
}

// Why it fails, or NULL.
static const char *
judge(const form *f, const outcome *whole, const outcome *fewer, const outcome *got)
{
    static char why[200];
    int bsp = strcmp(f->consistency, "bsp") == 0;
    double limit = 1.02 * fewer->result.train_seconds + 1e-3 * TIMEOUT_MS + 5 * 2e-6 * LATENCY_US;
    if (got->status != TT_OK)
        (void)snprintf(why, sizeof why, "%.180s", got->err.what);
    else if (got->result.examples < whole->result.examples)
        (void)snprintf(why, sizeof why, "%llu examples instead of %llu",
                       (unsigned long long)got->result.examples,
                       (unsigned long long)whole->result.examples);
    else if (f->other == NULL && got->result.train_seconds > limit)
        (void)snprintf(why, sizeof why, "%.4f s, more than %.4f s", got->result.train_seconds,
                       limit);
    else if (bsp && (got->bytes != whole->bytes || whole->bytes == 0 ||
                     memcmp(got->model, whole->model, whole->bytes) != 0))
        (void)snprintf(why, sizeof why, "another model");
    else
        return NULL;
    return why;
}

// Until the crash comes after the last message. Returns how many fail.
static uint32_t
try_all(const char *directory, const form *f, uint32_t step)
{
    static outcome whole, fewer, got;
    uint32_t failed = 0, tried = 0;
    double longest_s = 0;
    run_job(directory, f, NODES, 0, &whole);
    run_job(directory, f, NODES - 1, 0, &fewer);
    for (uint64_t after = 1; failed < 10; after += step) {
        run_job(directory, f, NODES, after, &got);
        const char *why = judge(f, &whole, &fewer, &got);
        free(got.model);
        if (why != NULL) {
            printf("%s, {kind: crash, from: %d, after: %llu}: %s\n", f->name, NODES - 1,
                   (unsigned long long)after, why);
            failed++;
        }
        tried++;
        longest_s = TT_MAX(longest_s, got.result.train_seconds);
        if (got.status == TT_OK && got.result.deaths == (f->other != NULL))
            break; // it had nothing to do any more, or never came so far
    }
    printf("%s: %u crashes, %u failed; %.3f s alone, %.3f s without the worker, at most %.3f s\n",
           f->name, tried - 1, failed, whole.result.train_seconds, fewer.result.train_seconds,
           longest_s);
    free(whole.model);
    free(fewer.model);
    return failed + (tried < 10);
}

int
main(int argc, char **argv)
{
    char directory[512];
    uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, failed = 0;
    (void)setenv("TRIMTAB_REPOSITORY", "off", 1);
    if (!make_directory(directory, sizeof directory))
        return 2;
    for (size_t i = 0; i < TT_COUNT_OF(forms); i++)
        failed += try_all(directory, &forms[i], TT_MAX(step, 1u));
    remove_directory(directory);
    return failed > 0;
}
