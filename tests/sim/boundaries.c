// boundaries [STEP]: a node crashes after each number of messages that it sends or handles in a
// whole job (each STEP-th). Whenever that is, of a worker that never comes back
//
//     asp, ssp   the job goes on: every example is trained, in no more time than the job needs
//                without that worker from the beginning, and the failure time-out, and five round
//                trips to ask what is in already
//     bsp        the same, and the model is the same to the last bit; nothing goes back
//     bsp, while another one is away and comes back
//                so that it crashes while roles are being dealt out anew, too: all may go back to
//                the beginning then, but the model is the same to the last bit
//
// and of a server, with replicas and no checkpoint to go back to:
//
//     asp, ssp with one worker, bsp
//                the model is the same to the last bit
//     asp, and it comes back and is given partitions again, while messages are lost
//                the same
//     bsp, while partitions move
//                the same
//
// Prints what fails, each as the fault that does it. Exit status 1 when something did.
#include "sim_jobs.h"

enum { NODES = 5, TIMEOUT_MS = 100, HEARTBEAT_MS = 10, LATENCY_US = 200 };

typedef struct form {
    const char *name, *consistency;
    uint32_t epochs, servers;
    uint32_t dies;     // node
    const char *other; // fault besides
    const char *steps; // of a script
    const char *back;  // of the crash: when it ends; NULL: never
} form;

static const form forms[] = {
    {"asp", "asp", 3, 2, NODES - 1, NULL, NULL, NULL},
    {"ssp", "ssp", 3, 2, NODES - 1, NULL, NULL, NULL},
    {"bsp", "bsp", 3, 2, NODES - 1, NULL, NULL, NULL},
    {"bsp, another away", "bsp", 5, 2, NODES - 1, "{kind: crash, from: 3, at: 20ms, for: 60ms}, ",
     NULL, NULL},
    {"asp, a server", "asp", 3, NODES - 1, 0, NULL, NULL, NULL},
    {"asp, a server, back", "asp", 9, NODES - 1, 0, "{kind: drop, share: 15%}, ", NULL,
     ", for: 30ms"},
    {"ssp, a server", "ssp", 3, NODES - 1, 1, NULL, NULL, NULL},
    {"bsp, a server", "bsp", 3, 2, 0, NULL, NULL, NULL},
    {"bsp, a server, moving", "bsp", 3, 2, 0, NULL,
     "{iteration: 4, servers: 3}, {iteration: 9, move: 9}, {iteration: 16, servers: 2}", NULL},
};

static int
is_of_a_server(const form *f)
{
    return f->dies < f->servers;
}

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
    add(&t, " failure_timeout: %dms, replicas: %d}\n", TIMEOUT_MS, is_of_a_server(f));
    if (f->steps == NULL)
        add(&t, "setting: {servers: %u, prefetch: 1}\ntuner: {enabled: off}\n", f->servers);
    else
        add(&t, "knobs: {servers: {start: %u}}\ntuner: {enabled: off, script: [%s]}\n", f->servers,
            f->steps);
    add(&t, "checkpoint: {keep: 0}\nbsp_slices: 6\n");
    add(&t, "simulation: {network: {latency: %dus}", LATENCY_US);
    if (after > 0)
        add(&t, ", faults: [%s{kind: crash, from: %u, after: %llu%s}]",
            f->other != NULL ? f->other : "", f->dies, (unsigned long long)after,
            f->back != NULL ? f->back : "");
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
    set_alarm_for("%s, {kind: crash, from: %u, after: %llu}", f->name, f->dies,
                  (unsigned long long)after);
    run((tt_job_source){.files = files, .file_count = 1}, directory, NULL, out);
}

// Why it fails, or NULL.
static const char *
judge(const form *f, const outcome *whole, const outcome *fewer, const outcome *got)
{
    static char why[200];
    int same = strcmp(f->consistency, "bsp") == 0 || is_of_a_server(f);
    int timed = f->other == NULL && !is_of_a_server(f);
    double limit = 1.02 * fewer->result.train_seconds + 1e-3 * TIMEOUT_MS + 5 * 2e-6 * LATENCY_US;
    if (got->status != TT_OK)
        (void)snprintf(why, sizeof why, "%.180s", got->err.what);
    else if (got->result.examples < whole->result.examples)
        (void)snprintf(why, sizeof why, "%llu examples instead of %llu",
                       (unsigned long long)got->result.examples,
                       (unsigned long long)whole->result.examples);
    else if (timed && got->result.train_seconds > limit)
        (void)snprintf(why, sizeof why, "%.4f s, more than %.4f s", got->result.train_seconds,
                       limit);
    else if (same && (got->bytes != whole->bytes || whole->bytes == 0 ||
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
    run_job(directory, f, is_of_a_server(f) ? NODES : NODES - 1, 0, &fewer);
    for (uint64_t after = 1; failed < 10; after += step) {
        run_job(directory, f, NODES, after, &got);
        const char *why = judge(f, &whole, &fewer, &got);
        free(got.model);
        if (why != NULL) {
            printf("%s, {kind: crash, from: %u, after: %llu}: %s\n", f->name, f->dies,
                   (unsigned long long)after, why);
            failed++;
        }
        tried++;
        longest_s = TT_MAX(longest_s, got.result.train_seconds);
        int others = f->other != NULL && strstr(f->other, "crash") != NULL;
        if (got.status == TT_OK && got.result.deaths == (uint32_t)others)
            break; // it had nothing to do any more, or never came so far
    }
    printf("%s: %u crashes, %u failed; %.3f s alone, %.3f s without a worker, at most %.3f s\n",
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
