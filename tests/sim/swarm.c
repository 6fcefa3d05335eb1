// swarm FIRST COUNT [TRACE]: jobs on simulated hosts, everything about each drawn from its
// seed: data, model, optimiser, consistency, hosts, network, a script of reconfigurations by random
// methods, and faults. Each is compared with the same job left alone on a network without faults:
//
//     bsp, and one worker under asp or ssp   the same model, to the last bit
//     many workers under asp or ssp          every example once an epoch, a loss not much worse;
//                                            of every other, which is a sum of integers, the same
//                                            model, to the last bit
//     all                                    the script's steps are taken, nobody waits for ever
//     every other of the first               also when it is stopped at any moment and resumed
//
// In a third of all the master dies, up to three times, and another takes its place.
// Half of them keep every partition on two nodes. In a third of the jobs nodes die: hosts crash,
// some come back, and the time after which a silent node is dead is so short that pauses and late
// messages are now and then taken for deaths. Then
//
//     bsp                                    the same model, to the last bit
//     asp, ssp                               every example once an epoch; what a server held begins
//                                            anew, so that the loss is only that of some training;
//                                            sums of integers are right unless that has happened
//     fewer than two nodes left              the job says so and fails
//
// Prints the seeds that fail, each as a command that replays it, and the job it drew. Exit status 1
// when one did. TRACE: a file for every message of the last job. It ends at a seed that takes a
// minute: somebody waits for ever.
#include "sim_jobs.h"
#include <time.h>
#include <unistd.h>

enum { EPOCHS = 3, STEPS_MAX = 4, FAULTS_MAX = 5, MERGED_MAX = 4, MASTERS_MAX = 3 };

static const char *
one_of(tt_rng *rng, const char *const *words, size_t count)
{
    return words[tt_rng_below(rng, count)];
}
#define ONE_OF(rng, ...)                                                                           \
    one_of(rng, (const char *const[]){__VA_ARGS__},                                                \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static uint32_t
between(tt_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)tt_rng_below(rng, high - low + 1);
}

// ---- a job -------------------------------------------------------------------------------------

typedef enum check { SAME_MODEL, SAME_SUMS, SAME_EXAMPLES, SOME_TRAINING } check;

typedef struct drawn {
    text job, moving; // the job left alone; what is laid over it
    check check;
    uint32_t nodes, batch, rows, steps, masters;
    const char *consistency;
    int one_worker, mortal, replicas;
} drawn;

static int
merges(const drawn *d)
{
    return strcmp(d->consistency, "bsp") != 0 && !d->one_worker && d->check != SAME_SUMS;
}

static void
draw_step(tt_rng *rng, drawn *d, uint32_t iteration)
{
    text *t = &d->moving;
    add(t, "%s{iteration: %u", d->steps++ > 0 ? ", " : "", iteration);
    if (!d->one_worker && tt_rng_below(rng, 2))
        add(t, ", servers: %u", between(rng, 1, d->nodes - 1));
    if (tt_rng_below(rng, 2))
        add(t, ", move: %u", between(rng, 1, 12));
    add(t, ", in_flight: %u, chunk_bytes: %uKiB, prefetch: %u", between(rng, 1, 16),
        4u << tt_rng_below(rng, 6), between(rng, 0, 4));
    // It changes the model, as more workers do; and so does the time that a second copy takes.
    if (merges(d)) {
        uint32_t merged = between(rng, 1, MERGED_MAX);
        add(t, ", push_aggregation: %u", d->replicas ? TT_MIN(merged, 2u) : merged);
    }
    add(t, ", method: %s}", ONE_OF(rng, "on_demand", "drain", "checkpoint"));
}

static void
draw_fault(tt_rng *rng, drawn *d)
{
    text *t = &d->moving;
    const char *kind =
        ONE_OF(rng, "drop", "duplicate", "delay", "reorder", "cut_off", "pause", "slow", "skew");
    uint32_t host = between(rng, 0, d->nodes - 1);
    add(t, "{kind: %s", kind);
    if (strcmp(kind, "cut_off") == 0 || strcmp(kind, "pause") == 0)
        add(t, ", from: %u, at: %ums, for: %ums", host, between(rng, 0, 400), between(rng, 1, 200));
    else if (strcmp(kind, "slow") == 0)
        add(t, ", from: %u, factor: %u, at: %ums", host, between(rng, 2, 10), between(rng, 0, 200));
    else if (strcmp(kind, "skew") == 0)
        add(t, ", from: %u, by: %ums, drift: %.3f, at: %ums", host, between(rng, 0, 5000),
            0.001 * between(rng, 0, 100), between(rng, 0, 400));
    else
        add(t, ", share: %u%%, by: %ums", between(rng, 1, 8), between(rng, 1, 30));
    add(t, "}");
}

static void
draw_crash(tt_rng *rng, drawn *d)
{
    text *t = &d->moving;
    add(t, "{kind: crash, from: %u", between(rng, 0, d->nodes - 1));
    if (tt_rng_below(rng, 2))
        add(t, ", after: %u", between(rng, 1, 3000));
    else
        add(t, ", at: %ums", between(rng, 0, 600));
    if (tt_rng_below(rng, 4) > 0)
        add(t, ", for: %ums", between(rng, 1, 400));
    add(t, "}");
}

// Masters that die, and how long there is none; of numbers of their own.
static void
draw_masters(uint64_t seed, drawn *d, int is_first)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 6);
    if (tt_rng_below(&rng, 3) > 0)
        return;
    for (uint32_t i = between(&rng, 1, MASTERS_MAX); i > 0; i--, is_first = 0) {
        d->masters++;
        add(&d->moving, "%s{kind: master, at: %ums, for: %ums}", is_first ? "" : ", ",
            between(&rng, 0, 600), tt_rng_below(&rng, 2) ? between(&rng, 0, 100) : 0);
    }
}

// Half of those that are not the same to the last bit anyway.
static int
is_of_sums(uint64_t seed, const drawn *d)
{
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 7);
    return (d->check == SAME_EXAMPLES || d->check == SOME_TRAINING) && tt_rng_below(&rng, 2);
}

// Hinge loss with steps so short that no example gets to the right side of the margin: the gradient
// is its features with the sign of its label, whatever the parameters are, and the model a sum that
// floats hold. Pushes may come in any order, but none may be missing or there twice.
static void
draw_sums(drawn *d, uint32_t columns, uint32_t fields, const char *pull, const char *table)
{
    text *t = &d->job;
    d->check = SAME_SUMS;
    d->batch = 32;
    d->rows -= d->rows % d->batch; // whole batches
    add(t, "data: {format: clicklog, rows: %u, columns: %u, fields: %u}\n", d->rows, columns,
        fields);
    add(t, "model: {kind: linear_svm, l2: 0, pull: %s, table: %s}\n", pull, table);
    add(t, "optimizer: {kind: sgd, learning_rate: %.17g, batch_size: %u}\n", 1.0 / (1 << 30),
        d->batch);
}

static void
draw_model(tt_rng *rng, uint64_t seed, drawn *d)
{
    int keyed = tt_rng_below(rng, 3) > 0, sparse = keyed && tt_rng_below(rng, 2);
    const char *pull = keyed ? "keyed" : "whole", *table = sparse ? "sparse" : "dense";
    uint32_t columns = between(rng, 100, 800), fields = between(rng, 3, 12);
    const char *kind = ONE_OF(rng, "logistic_regression", "linear_svm");
    // With many stale workers momentum and adam go astray by themselves.
    const char *optimizer = d->check == SAME_MODEL
                                ? ONE_OF(rng, "sgd", "adagrad", "adam", "momentum", "ftrl")
                                : ONE_OF(rng, "sgd", "adagrad", "ftrl");
    int averages = tt_rng_below(rng, 3) == 0;
    text *t = &d->job;
    if (is_of_sums(seed, d)) {
        draw_sums(d, columns, fields, pull, table);
        return;
    }
    add(t, "data: {format: clicklog, rows: %u, columns: %u, fields: %u}\n", d->rows, columns,
        fields);
    add(t, "model: {kind: %s, l2: 1e-4, pull: %s, table: %s}\n", kind, pull, table);
    add(t, "optimizer: {kind: %s, learning_rate: 0.05, batch_size: %u%s}\n", optimizer, d->batch,
        averages ? ", averaging: on" : "");
}

static void
draw_job(tt_rng *rng, uint64_t seed, drawn *d)
{
    d->nodes = between(rng, 3, 8);
    d->consistency = ONE_OF(rng, "bsp", "bsp", "asp", "ssp");
    d->one_worker = strcmp(d->consistency, "bsp") != 0 && tt_rng_below(rng, 2);
    int bsp = strcmp(d->consistency, "bsp") == 0;
    d->mortal = seed % 3 == 0;
    d->replicas = seed / 3 % 2;
    d->check = bsp             ? SAME_MODEL
               : d->mortal     ? SOME_TRAINING
               : d->one_worker ? SAME_MODEL
                               : SAME_EXAMPLES;
    d->rows = between(rng, 300, 1000);
    d->batch = between(rng, 16, 40);
    text *t = &d->job;
    add(t, "job: swarm\nseed: %llu\n", (unsigned long long)seed);
    draw_model(rng, seed, d);
    add(t, "stop: {max_epochs: %d, max_time: 1000s}\nconsistency: %s\n", EPOCHS, d->consistency);
    add(t, "cluster: {engine: simulated, nodes: %u, retry: %ums}\n", d->nodes, between(rng, 5, 50));
    add(t, "simulation: {cores: %u, network: {latency: %uus, rate: %uMB}}\n", between(rng, 1, 4),
        between(rng, 5, 500), between(rng, 10, 1250));
    if (d->one_worker)
        add(t, "setting: {servers: %u}\n", d->nodes - 1);
    add(t, "tuner: {enabled: off}\ncheckpoint: {keep: 0}\nbsp_slices: %u\n", between(rng, 2, 12));
    uint32_t iterations = EPOCHS * d->rows / d->batch, at = 1;
    add(&d->moving, "tuner: {script: [");
    for (uint32_t i = between(rng, 1, STEPS_MAX); i > 0 && at < iterations / 2; i--) {
        draw_step(rng, d, at);
        at += between(rng, 1, iterations / 5);
    }
    add(&d->moving, "]}\n");
    if (d->mortal) {
        uint32_t heartbeat = between(rng, 5, 20), timeout = between(rng, 200, 500);
        add(&d->moving, "cluster: {heartbeat: %ums, failure_timeout: %ums, replicas: %d}\n",
            heartbeat, timeout, d->replicas);
    } else {
        add(&d->moving, "cluster: {replicas: %d}\n", d->replicas);
    }
    if (d->mortal && tt_rng_below(rng, 2))
        add(&d->moving, "checkpoint: {every: %ums, keep: 2}\n", between(rng, 20, 500));
    add(&d->moving, "simulation:\n  faults: [");
    uint32_t faults = between(rng, 0, FAULTS_MAX);
    for (uint32_t i = 0; i < faults; i++) {
        add(&d->moving, "%s", i > 0 ? ", " : "");
        if (d->mortal && tt_rng_below(rng, 2))
            draw_crash(rng, d);
        else
            draw_fault(rng, d);
    }
    draw_masters(seed, d, faults == 0);
    add(&d->moving, "]\n");
}

// ---- judging it --------------------------------------------------------------------------------

static int
is_deserted(const outcome *out)
{
    return out->status == TT_PEER && strstr(out->err.what, "two nodes left") != NULL;
}

// What went back to a checkpoint lacks what others do not.
static int
is_exact(const drawn *d, const outcome *out)
{
    return d->check == SAME_SUMS && out->result.restored == 0;
}

// Why it fails, or NULL.
static const char *
judge(const drawn *d, const outcome *alone, const outcome *moved)
{
    static char why[700];
    if (alone->status == TT_OK && d->mortal && is_deserted(moved))
        return NULL;
    if (alone->status != TT_OK || moved->status != TT_OK) {
        (void)snprintf(why, sizeof why, "%s: %s", alone->status != TT_OK ? "alone" : "moved",
                       alone->status != TT_OK ? alone->err.what : moved->err.what);
        return why;
    }
    // A step that a fault holds up may leave the job's end to the next one.
    // Of those before the last master nobody knows, and each successor may change one back.
    uint32_t least = !d->mortal && d->masters == 0, steps = d->steps + d->masters;
    if (moved->result.setting_changes < least || moved->result.setting_changes > steps) {
        (void)snprintf(why, sizeof why, "%u steps, but %u changes of setting", d->steps,
                       moved->result.setting_changes);
        return why;
    }
    if (strstr(moved->result.stop_reason, "max_epochs") == NULL)
        return "it does not come to its end";
    if (!d->mortal && moved->result.deaths > 0)
        return "a node was declared dead";
    uint64_t examples = (uint64_t)EPOCHS * d->rows;
    if (d->check == SAME_MODEL || is_exact(d, moved)) {
        if (alone->bytes == 0 || alone->bytes != moved->bytes ||
            memcmp(alone->model, moved->model, alone->bytes) != 0)
            return "another model";
        return NULL;
    }
    // What a worker that died had under way may count and be trained once more.
    uint64_t merged = merges(d) ? MERGED_MAX : 1;
    uint64_t most = examples + (d->mortal ? merged * d->batch * d->nodes : 0);
    if (moved->result.examples < examples || moved->result.examples > most) {
        (void)snprintf(why, sizeof why, "%llu examples instead of %llu to %llu",
                       (unsigned long long)moved->result.examples, (unsigned long long)examples,
                       (unsigned long long)most);
        return why;
    }
    double limit = d->mortal ? 1.5 : 1.3 * alone->result.loss + 0.1;
    if (!(moved->result.loss < limit)) { // stale steps are another path
        (void)snprintf(why, sizeof why, "loss %g instead of %g", moved->result.loss,
                       alone->result.loss);
        return why;
    }
    return NULL;
}

// The moving job once more, stopped at a random moment, with checkpoints before; then resumed.
static const char *
stop_and_resume(tt_rng *rng, const char *const *files, const char *directory, const outcome *whole)
{
    static outcome stopped, resumed;
    static char why[700];
    char end[64], every[64], run_dir[600];
    double seconds = whole->result.train_seconds;
    (void)snprintf(end, sizeof end, "stop.max_time=%.6fs", seconds * tt_rng_uniform(rng) + 1e-4);
    (void)snprintf(every, sizeof every, "checkpoint.every=%.6fs",
                   seconds * (0.02 + 0.2 * tt_rng_uniform(rng)));
    const char *const first[] = {end, every, "checkpoint.keep=1"};
    const char *const then[] = {"stop.max_time=1000s"};
    run((tt_job_source){.files = files, .file_count = 2, .overrides = first, .override_count = 3},
        directory, NULL, &stopped);
    free(stopped.model);
    (void)snprintf(run_dir, sizeof run_dir, "%s", stopped.result.run_dir);
    char job[640];
    (void)snprintf(job, sizeof job, "%s/job.yaml", run_dir);
    const char *const again[] = {job};
    if (stopped.status == TT_OK)
        run(
            (tt_job_source){
                .files = again, .file_count = 1, .overrides = then, .override_count = 1},
            directory, run_dir, &resumed);
    const char *what = NULL;
    // Resumed, the hosts' time begins anew, and so do their crashes.
    if (is_deserted(&stopped) || (stopped.status == TT_OK && is_deserted(&resumed)))
        return NULL;
    if (stopped.status != TT_OK || resumed.status != TT_OK)
        what = stopped.status != TT_OK ? stopped.err.what : resumed.err.what;
    else if (stopped.result.restored + resumed.result.restored == 0 &&
             (resumed.bytes != whole->bytes ||
              memcmp(resumed.model, whole->model, whole->bytes) != 0))
        what = "another model";
    free(resumed.model);
    resumed.model = NULL;
    if (what == NULL)
        return NULL;
    (void)snprintf(why, sizeof why, "stopped (%s, %s) and resumed: %.500s", end, every, what);
    return why;
}

static uint64_t deaths, returns, takeovers, sums;

static int
run_seed(const char *program, uint64_t seed, const char *trace, double *virtual_s)
{
    static drawn d;
    static outcome alone, moved;
    d = (drawn){0};
    char directory[512], job[600], moving[600];
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 5);
    draw_job(&rng, seed, &d);
    char *here = getcwd(NULL, 0);
    if (trace != NULL && here != NULL)
        add(&d.moving, "  trace: %s%s%s\n", trace[0] != '/' ? here : "", trace[0] != '/' ? "/" : "",
            trace);
    free(here);
    set_alarm_for("seed %llu fails", (unsigned long long)seed);
    alarmed_about[0] = &d.job;
    alarmed_about[1] = &d.moving;
    if (!make_directory(directory, sizeof directory))
        return 0;
    (void)snprintf(job, sizeof job, "%s/job.yaml", directory);
    (void)snprintf(moving, sizeof moving, "%s/moving.yaml", directory);
    const char *files[] = {job, moving};
    int written = write_file(job, &d.job) && write_file(moving, &d.moving);
    TT_ASSERT(written);
    run((tt_job_source){.files = files, .file_count = 1}, directory, NULL, &alone);
    run((tt_job_source){.files = files, .file_count = 2}, directory, NULL, &moved);
    const char *why = judge(&d, &alone, &moved);
    int is_same = d.check == SAME_MODEL || is_exact(&d, &moved);
    if (why == NULL && is_same && moved.status == TT_OK && tt_rng_below(&rng, 2))
        why = stop_and_resume(&rng, files, directory, &moved);
    if (why != NULL)
        printf("seed %llu fails: %s\nreplay: %s %llu 1 trace.txt\n%s# laid over it\n%s\n",
               (unsigned long long)seed, why, program, (unsigned long long)seed, d.job.bytes,
               d.moving.bytes);
    *virtual_s += moved.result.train_seconds;
    deaths += moved.result.deaths;
    returns += moved.result.returns;
    takeovers += moved.result.takeovers;
    sums += is_exact(&d, &moved) && moved.result.deaths > 0;
    free(alone.model);
    free(moved.model);
    remove_directory(directory);
    return why == NULL;
}

int
main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: swarm FIRST COUNT [TRACE]\n");
        return 2;
    }
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), failed = 0;
    double virtual_s = 0;
    (void)setenv("TRIMTAB_REPOSITORY", "off", 1);
    tt_clock clock = tt_clock_monotonic();
    uint64_t begin = tt_clock_now(&clock);
    for (uint64_t seed = first; seed < first + count; seed++)
        failed += !run_seed(argv[0], seed, argc > 3 ? argv[3] : NULL, &virtual_s);
    printf(
        "%llu seeds, %llu failed; %llu deaths, %llu returns, %llu takeovers, %llu exact sums with "
        "deaths; %.0f s simulated, "
        "%.3f s a seed\n",
        (unsigned long long)count, (unsigned long long)failed, (unsigned long long)deaths,
        (unsigned long long)returns, (unsigned long long)takeovers, (unsigned long long)sums,
        virtual_s,
        1e-9 * (double)(tt_clock_now(&clock) - begin) / (double)TT_MAX(count, (uint64_t)1));
    return failed > 0;
}
