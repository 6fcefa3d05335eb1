// Goal: a wrong job file is answered with every fault, its place and advice; a right one is read
// into a struct exactly, and written back to the same struct. Method: small texts with one provoked
// fault each and the exact expected line; a job like the design's sketch; failed allocations;
// mutated texts from a seed, which must never crash.
#include "tt/core.h"
#include "tt/core_config.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct job {
    const char *name, *train;
    int64_t nodes;
    int optimizer, tuner;
    double rate, guard, time_limit, loss;
    int64_t chunk, window;
    const tt_config_node *setting, *model;
    int model_kind;
} job;

static const char *const optimizers[] = {"sgd", "momentum", "adam", NULL};
static const char *const models[] = {"softmax_regression", "mlp", NULL};
#define FIELD(name) .offset = offsetof(job, name)
static const tt_config_key keys[] = {
    {.path = "job", .kind = TT_CONFIG_STRING, FIELD(name), .default_text = "job"},
    {.path = "data.train",
     .kind = TT_CONFIG_PATH,
     FIELD(train),
     .flags = TT_CONFIG_REQUIRED,
     .help = "the training file"},
    {.path = "model", .kind = TT_CONFIG_NODE, FIELD(model)},
    {.path = "model.kind",
     .kind = TT_CONFIG_ENUM,
     FIELD(model_kind),
     .values = models,
     .default_text = "softmax_regression"},
    {.path = "optimizer.kind",
     .kind = TT_CONFIG_ENUM,
     FIELD(optimizer),
     .values = optimizers,
     .default_text = "sgd"},
    {.path = "optimizer.learning_rate",
     .kind = TT_CONFIG_REAL,
     FIELD(rate),
     .min = 0,
     .max = 1e6,
     .flags = TT_CONFIG_ABOVE_MIN},
    {.path = "stop.max_time",
     .kind = TT_CONFIG_DURATION,
     FIELD(time_limit),
     .min = 0,
     .max = INFINITY},
    {.path = "stop.loss", .kind = TT_CONFIG_REAL, FIELD(loss)},
    {.path = "cluster.nodes",
     .kind = TT_CONFIG_INT,
     FIELD(nodes),
     .min = 2,
     .max = 4096,
     .default_text = "8",
     .unit = "nodes"},
    {.path = "cluster.chunk",
     .kind = TT_CONFIG_BYTES,
     FIELD(chunk),
     .min = 1024,
     .max = 1 << 20,
     .default_text = "64KiB"},
    {.path = "tuner.enabled", .kind = TT_CONFIG_BOOL, FIELD(tuner), .default_text = "on"},
    {.path = "tuner.guard",
     .kind = TT_CONFIG_REAL,
     FIELD(guard),
     .min = 0,
     .max = 1,
     .default_text = "10%",
     .flags = TT_CONFIG_PERCENT},
    {.path = "tuner.window",
     .kind = TT_CONFIG_INT,
     FIELD(window),
     .min = 12,
     .max = 1e9,
     .flags = TT_CONFIG_AUTO},
    {.path = "setting", .kind = TT_CONFIG_NODE, FIELD(setting)},
};

static tt_config *
open_config(void)
{
    tt_config *cfg;
    assert_int_equal(tt_config_open(&cfg, NULL), TT_OK);
    return cfg;
}

// All faults as printed, in a buffer that lives until the next call.
static const char *
faults(tt_config *cfg)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    tt_config_errors_print(cfg, out);
    (void)fclose(out);
    if (tt_config_error_count(cfg) == 0)
        text[0] = '\0';
    return text;
}

// Loads `text` as job.yaml, reads it, and expects exactly `lines` (the last line is made here).
static void
expect_faults(const char *text, const char *lines)
{
    tt_config *cfg = open_config();
    job j;
    tt_error err = {0};
    (void)tt_config_load_text(cfg, "job.yaml", text, &err);
    (void)tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j);
    size_t count = 0;
    for (const char *c = lines; *c != '\0'; c++)
        count += *c == '\n';
    char expected[4096];
    (void)snprintf(expected, sizeof expected, "%s%zu error%s, nothing was run.\n", lines, count,
                   count > 1 ? "s" : "");
    assert_string_equal(faults(cfg), expected);
    tt_config_close(cfg);
}

#define DATA "data: {train: a.svm}\n"

static void
a_right_job_is_read(void **state)
{
    TT_UNUSED(state);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_text(cfg, "conf/job.yaml",
                                         "job: off\n"
                                         "data:\n  train: ../data/a9a.xz\n"
                                         "model: {kind: mlp, layers: [784, 300, 10]}\n"
                                         "optimizer: {kind: adam, learning_rate: 3.7e-3}\n"
                                         "stop: {max_time: 1h30m}\n"
                                         "cluster: {chunk: 1.5 KiB}\n"
                                         "tuner: {enabled: No, guard: 12.5%, window: auto}\n"
                                         "setting: {bf16_transfer: off}\n",
                                         &err),
                     TT_OK);
    job j;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_OK);
    assert_string_equal(faults(cfg), "");
    assert_string_equal(j.name, "off");
    assert_string_equal(j.train, "conf/../data/a9a.xz");
    assert_int_equal(j.optimizer, 2);
    assert_int_equal(j.model_kind, 1);
    assert_true(j.rate == 3.7e-3);
    assert_true(j.time_limit == 5400);
    assert_true(isnan(j.loss));
    assert_int_equal(j.nodes, 8);
    assert_int_equal(j.chunk, 1536);
    assert_int_equal(j.tuner, 0);
    assert_true(j.guard == 0.125);
    assert_int_equal(j.window, 0);
    assert_true(tt_config_given(cfg, "optimizer.learning_rate"));
    assert_true(tt_config_given(cfg, "tuner.window"));
    assert_false(tt_config_given(cfg, "stop.loss"));
    assert_false(tt_config_given(cfg, "cluster.nodes"));
    const tt_config_node *layers = tt_config_find(cfg, j.model, "layers");
    assert_int_equal(tt_config_node_kind_of(layers), TT_CONFIG_SEQUENCE);
    assert_int_equal(tt_config_node_count(layers), 3);
    assert_string_equal(tt_config_node_place(tt_config_node_at(layers, 1)), "conf/job.yaml:4:34");
    const tt_config_key layer = {.path = "layers", .kind = TT_CONFIG_INT, .min = 1, .max = 400};
    int64_t width;
    assert_int_equal(tt_config_read_one(cfg, tt_config_node_at(layers, 1), &layer, &width), TT_OK);
    assert_int_equal(width, 300);
    assert_int_equal(tt_config_read_one(cfg, tt_config_node_at(layers, 0), &layer, &width),
                     TT_INVALID);
    assert_string_equal(tt_config_node_key(j.setting, 0), "bf16_transfer");
    assert_string_equal(tt_config_node_text(tt_config_node_at(j.setting, 0)), "off");
    tt_config_close(cfg);
}

static void
every_fault_at_once_in_order(void **state)
{
    TT_UNUSED(state);
    expect_faults("job: a\n"
                  "optimiser: {kind: sgd}\n"
                  "cluster:\n"
                  "  nodes: 1\n"
                  "  chunk: 2 GiB\n"
                  "stop:\n"
                  "  loss: 0.4\n"
                  "  loss: 0.5\n"
                  "tuner: {enabled: maybe, guard: 1.5}\n",
                  "job.yaml: data.train is missing; add it: a path, the training file\n"
                  "job.yaml:2:1: unknown key 'optimiser'; did you mean 'optimizer'?\n"
                  "job.yaml:4:10: cluster.nodes must be from 2 to 4096 nodes, not 1\n"
                  "job.yaml:5:10: cluster.chunk must be from 1 KiB to 1 MiB, not 2 GiB\n"
                  "job.yaml:8:3: duplicate key 'loss' (first at 7:3); keep one of them\n"
                  "job.yaml:9:18: tuner.enabled must be on or off, not 'maybe'\n"
                  "job.yaml:9:32: tuner.guard must be from 0 to 1, not 1.5\n");
}

static void
unknown_keys_are_guided(void **state)
{
    TT_UNUSED(state);
    expect_faults(DATA "learning_rate: 3\n",
                  "job.yaml:2:1: unknown key 'learning_rate' here; did you "
                  "mean 'optimizer.learning_rate'?\n");
    expect_faults(DATA "optimizer: {lerning-rate: 3}\n",
                  "job.yaml:2:13: unknown key 'lerning-rate'; did you mean 'learning_rate'?\n");
    expect_faults(DATA "stop: {xyzzy: 3}\n",
                  "job.yaml:2:8: unknown key 'xyzzy'; known here: max_time, loss\n");
    expect_faults(DATA "stop.loss: 3\n",
                  "job.yaml:2:1: unknown key 'stop.loss'; dots are for --set; in "
                  "a file nest: a: {b: 1}\n");
    const char *const known[] = {"servers", "chunk_bytes", "in_flight", NULL};
    assert_string_equal(tt_config_nearest("chunks", known), "chunk_bytes");
    assert_string_equal(tt_config_nearest("Severs", known), "servers");
    assert_string_equal(tt_config_nearest("in_fligth", known), "in_flight");
    assert_null(tt_config_nearest("epochs", known));
}

static void
wrong_types_are_told(void **state)
{
    TT_UNUSED(state);
    expect_faults(DATA "stop: 3\n",
                  "job.yaml:2:7: stop must be a mapping of keys, not text; write `key: "
                  "value` lines below it\n");
    expect_faults("data: [a, b]\n",
                  "job.yaml:1:7: data must be a mapping of keys, not a sequence; write "
                  "`key: value` lines below it\n");
    expect_faults(DATA "job: {a: b}\n",
                  "job.yaml:2:6: job must be one value, not a mapping; write one value\n");
    expect_faults(
        DATA "optimizer: {kind: adma}\n",
        "job.yaml:2:19: optimizer.kind must be one of sgd, momentum, adam, not 'adma'; did you "
        "mean 'adam'?\n");
    expect_faults(
        DATA "optimizer: {learning_rate: 0}\n",
        "job.yaml:2:28: optimizer.learning_rate must be above 0 and at most 1000000, not 0\n");
    static const char *const not_numbers[] = {"abc", "0x10",  "nan", ".inf",
                                              "1,5", "1e999", "--3", "3 4"};
    for (size_t i = 0; i < TT_COUNT_OF(not_numbers); i++) {
        char text[200], line[300];
        (void)snprintf(text, sizeof text, DATA "stop:\n  loss: %s\n", not_numbers[i]);
        (void)snprintf(line, sizeof line, "job.yaml:3:9: stop.loss must be a number, not '%s'\n",
                       not_numbers[i]);
        expect_faults(text, line);
    }
    expect_faults(DATA "cluster: {nodes: 2.5}\n",
                  "job.yaml:2:18: cluster.nodes must be a whole number, not '2.5'\n");
    expect_faults(DATA "tuner: {window: never}\n",
                  "job.yaml:2:17: tuner.window must be a whole number or auto, not 'never'\n");
    expect_faults(DATA "stop: {max_time: 10 parsecs}\n",
                  "job.yaml:2:18: stop.max_time must be a duration such as 90s or 1h30m, not '10 "
                  "parsecs'\n");
    expect_faults(DATA "stop: {max_time: -3s}\n",
                  "job.yaml:2:18: stop.max_time must be at least 0 s, not -3s\n");
    expect_faults(DATA "cluster: {chunk: 1.0001KiB}\n",
                  "job.yaml:2:18: cluster.chunk must be a size such as 64KiB, not '1.0001KiB'\n");
}

static void
odd_yaml_is_refused(void **state)
{
    TT_UNUSED(state);
    expect_faults(
        "data: {train: &x a.svm}\njob: *x\n",
        "job.yaml:1:15: anchors (&name) are not used here; write the value out where it is "
        "needed\n"
        "job.yaml:2:6: aliases (*name) are not used here; write the value out\n");
    expect_faults(DATA "job: !!str x\n",
                  "job.yaml:2:6: tags (!name) are not used here; leave the tag "
                  "out; a value has the type of its key\n");
    expect_faults(DATA "---\njob: b\n",
                  "job.yaml:2:1: a second document starts here; keep one document "
                  "a file; give several files instead\n");
    expect_faults(DATA "? [a, b]\n: c\n",
                  "job.yaml:2:3: a key must be a word, not a sequence; write `key: value`\n");
    expect_faults(
        DATA "job:\n",
        "job.yaml:2:5: there is no value here; write a value, or `null` for the default\n");
    expect_faults(DATA "job: \"a\\0b\"\n",
                  "job.yaml:2:6: the text contains a NUL character; leave the \\0 out\n");
    expect_faults("", "job.yaml: there is nothing in this file; describe a job in it\n");
    expect_faults("# only a comment\n",
                  "job.yaml: there is nothing in this file; describe a job in it\n");
    expect_faults("- a\n- b\n",
                  "job.yaml:1:1: expected a mapping of keys, found a sequence; write `key: "
                  "value` lines\n");
    expect_faults("job: a\x01"
                  "b\n",
                  "job.yaml:1:7: this is not text: control characters are not "
                  "allowed; save the file as plain UTF-8 text\n");
    expect_faults(
        "job: a\n\tdata: b\n",
        "job.yaml:2:1: malformed YAML: found a tab character that violates indentation, while "
        "scanning a plain scalar that starts at 1:6; YAML indents with spaces, not with tabs\n");
    char deep[400];
    memset(deep, '[', 200);
    deep[200] = '\0';
    expect_faults(
        deep, "job.yaml:1:66: nested more than 64 levels deep; a job needs about four levels\n");
}

static void
malformed_yaml_has_its_place(void **state)
{
    TT_UNUSED(state);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_text(cfg, "j.yaml", "a: 1\nb: [1, 2\nc: 3\n", &err), TT_SYNTAX);
    assert_string_equal(err.where, "j.yaml:3:2");
    assert_non_null(strstr(err.what, "malformed YAML"));
    assert_non_null(strstr(err.what, "starts at 2:4"));
    // nothing of it is read, and nothing is said to be missing
    job j;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_OK);
    assert_int_equal(tt_config_error_count(cfg), 1);
    assert_int_equal(j.nodes, 8);
    tt_config_close(cfg);
}

static void
overrides_replace_and_make(void **state)
{
    TT_UNUSED(state);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_text(cfg, "d/job.yaml", DATA "stop: {loss: 0.3}\n", &err),
                     TT_OK);
    static const char *const overrides[] = {
        "optimizer.learning_rate=0.25",
        "stop.loss=null",
        "setting={servers: 3, gone: null}",
        "setting.threads=2",
        "data.train=b=c.svm",
        "cluster.nodes=12",
    };
    for (size_t i = 0; i < TT_COUNT_OF(overrides); i++)
        assert_int_equal(tt_config_override(cfg, overrides[i], &err), TT_OK);
    job j;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_OK);
    assert_true(j.rate == 0.25);
    assert_true(isnan(j.loss));
    assert_int_equal(j.nodes, 12);
    assert_string_equal(j.train, "b=c.svm");
    assert_int_equal(tt_config_node_count(j.setting), 2);
    assert_string_equal(tt_config_node_place(tt_config_node_at(j.setting, 1)),
                        "--set setting.threads=2");
    tt_config_close(cfg);
}

static void
wrong_overrides_are_told(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *set, *line;
    } cases[] = {
        {"nodes", "--set nodes: expected KEY=VALUE with a dotted key; for example --set "
                  "optimizer.learning_rate=0.3\n"},
        {"a..b=1", "--set a..b=1: expected KEY=VALUE with a dotted key; for example --set "
                   "optimizer.learning_rate=0.3\n"},
        {"job=", "--set job=: there is no value; give one, or `null` for the default\n"},
        {"job.x=1",
         "--set job.x=1: 'job' is text (job.yaml:2:6), nothing can be set inside it; give the "
         "whole value instead\n"},
        {"setting=a: 1",
         "--set setting=a: 1: the value is not a scalar or a flow collection; write {key: "
         "value} or [1, 2]\n"},
        {"job=*x",
         "--set job=*x: aliases (*name) are not used here; quote the value: a leading * means "
         "an alias in YAML\n"},
        {"cluster.nodes=9999",
         "--set cluster.nodes=9999: cluster.nodes must be from 2 to 4096 nodes, not 9999\n"},
        {"cluster.node=3", "--set cluster.node=3: unknown key 'node'; did you mean 'nodes'?\n"},
        {"setting={a: 1, a: 2}",
         "--set setting={a: 1, a: 2}: duplicate key 'a'; keep one of them\n"},
        {"setting=[1",
         "--set setting=[1: malformed YAML: did not find expected ',' or ']'; quote the "
         "value for YAML, for example --set 'a.b=\"text\"'\n"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_config *cfg = open_config();
        tt_error err = {0};
        job j;
        assert_int_equal(tt_config_load_text(cfg, "job.yaml", DATA "job: x\n", &err), TT_OK);
        (void)tt_config_override(cfg, cases[i].set, &err);
        (void)tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j);
        assert_int_equal(tt_config_error_count(cfg), 1);
        assert_memory_equal(faults(cfg), cases[i].line, strlen(cases[i].line));
        tt_config_close(cfg);
    }
}

static void
files_lie_over_each_other(void **state)
{
    TT_UNUSED(state);
    char directory[] = P_tmpdir "/tt-config-XXXXXX", first[64], second[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(first, sizeof first, "%s/first.yaml", directory);
    (void)snprintf(second, sizeof second, "%s/second.yaml", directory);
    FILE *file = fopen(first, "w");
    assert_non_null(file);
    assert_true(
        fputs("data: {train: x.gz}\nstop: {loss: 0.4, max_time: 90}\nsetting: {a: 1}\n", file) > 0);
    assert_int_equal(fclose(file), 0);
    file = fopen(second, "w");
    assert_non_null(file);
    assert_true(fputs("stop: {loss: 0.2}\nsetting: null\ncluster: {nodes: 1}\n", file) > 0);
    assert_int_equal(fclose(file), 0);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_file(cfg, first, &err), TT_OK);
    assert_int_equal(tt_config_load_file(cfg, second, &err), TT_OK);
    job j;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_INVALID);
    assert_true(j.loss == 0.2 && j.time_limit == 90);
    assert_null(j.setting);
    char expected[128];
    (void)snprintf(expected, sizeof expected, "%s/x.gz", directory);
    assert_string_equal(j.train, expected);
    tt_error fault;
    assert_int_equal(tt_config_error_get(cfg, 0, &fault), 0);
    (void)snprintf(expected, sizeof expected, "%s:3:18", second);
    assert_string_equal(fault.where, expected);
    tt_config_close(cfg);
    // a directory and a missing file
    cfg = open_config();
    assert_int_equal(tt_config_load_file(cfg, directory, &err), TT_IO);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(tt_config_load_file(cfg, first, &err), TT_NOTFOUND);
    assert_string_equal(err.where, first);
    assert_string_equal(err.advice, "check the path");
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_OK);
    assert_int_equal(tt_config_error_count(cfg), 2);
    tt_config_close(cfg);
    assert_int_equal(unlink(second), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void
callers_add_their_own_faults(void **state)
{
    TT_UNUSED(state);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(
        tt_config_load_text(cfg, "job.yaml", DATA "stop: {loss: 1}\nsetting: {sevrers: 9}\n", &err),
        TT_OK);
    const tt_config_node *setting = tt_config_find(cfg, NULL, "setting");
    const char *const known[] = {"servers", "threads", NULL};
    tt_config_complain_unknown(cfg, setting, 0, known);
    for (int twice = 0; twice < 2; twice++)
        tt_config_complain(cfg, tt_config_node_at(setting, 0), NULL, "servers must be from 1 to %d",
                           7);
    tt_config_complain_key(cfg, "stop.max_epochs", "add one", "nothing ends this job");
    tt_config_complain_key(cfg, "stop.loss", NULL, "unreachable");
    tt_config_complain(cfg, NULL, NULL, "as a whole");
    assert_string_equal(faults(cfg),
                        "job.yaml: as a whole\n"
                        "job.yaml:2:7: nothing ends this job; add one\n"
                        "job.yaml:2:14: unreachable\n"
                        "job.yaml:3:11: unknown key 'sevrers'; did you mean 'servers'?\n"
                        "job.yaml:3:20: servers must be from 1 to 7\n"
                        "5 errors, nothing was run.\n");
    tt_config_close(cfg);
}

static void
parts_are_read_by_their_own_tables(void **state)
{
    TT_UNUSED(state);
    typedef struct mlp {
        double l2;
        int64_t hidden;
    } mlp;
    static const tt_config_key mlp_keys[] = {
        {.path = "l2", .kind = TT_CONFIG_REAL, .offset = offsetof(mlp, l2), .default_text = "0"},
        {.path = "hidden",
         .kind = TT_CONFIG_INT,
         .offset = offsetof(mlp, hidden),
         .flags = TT_CONFIG_REQUIRED},
        {.path = "kind", .kind = TT_CONFIG_NODE, .offset = offsetof(mlp, hidden)},
    };
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_text(cfg, "j.yaml", DATA "model: {l2: 0.5, layers: 3}\n", &err),
                     TT_OK);
    mlp m;
    job j;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j), TT_OK);
    assert_int_equal(tt_config_read_at(cfg, j.model, mlp_keys, 2, &m), TT_INVALID);
    assert_true(m.l2 == 0.5);
    assert_string_equal(faults(cfg), "j.yaml:2:8: hidden is missing; add it: a whole number\n"
                                     "j.yaml:2:18: unknown key 'layers'; known here: l2, hidden\n"
                                     "2 errors, nothing was run.\n");
    assert_int_equal(tt_config_read_at(cfg, NULL, mlp_keys, 2, &m), TT_INVALID);
    assert_true(m.l2 == 0);
    tt_config_close(cfg);
}

static void
resolved_reads_back_the_same(void **state)
{
    TT_UNUSED(state);
    tt_config *cfg = open_config();
    tt_error err = {0};
    assert_int_equal(tt_config_load_text(cfg, "/etc/jobs/j.yaml",
                                         "job: '~'\n"
                                         "data: {train: \"we ird: #$${x}$${.svm\"}\n"
                                         "model: {l2: 1e-4, list: [a, {b: 'null'}]}\n"
                                         "optimizer: {learning_rate: 0.1000000000000000055}\n"
                                         "stop: {max_time: 100ms}\n"
                                         "tuner: {enabled: off}\n"
                                         "cluster: {chunk: 3000}\n",
                                         &err),
                     TT_OK);
    job a, b;
    assert_int_equal(tt_config_read(cfg, keys, TT_COUNT_OF(keys), &a), TT_OK);
    a.rate = 0.1 + 0.2;
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_int_equal(tt_config_write_resolved(cfg, keys, TT_COUNT_OF(keys), &a, out, &err), TT_OK);
    assert_int_equal(fclose(out), 0);
    tt_config *again = open_config();
    assert_int_equal(tt_config_load_text(again, "runs/x/job.yaml", text, &err), TT_OK);
    assert_int_equal(tt_config_read(again, keys, TT_COUNT_OF(keys), &b), TT_OK);
    assert_string_equal(b.name, "~");
    assert_string_equal(b.train, "/etc/jobs/we ird: #${x}${.svm");
    assert_true(a.rate == b.rate && a.guard == b.guard && a.time_limit == b.time_limit);
    assert_true(isnan(b.loss));
    assert_int_equal(b.chunk, 3000);
    assert_int_equal(b.window, 0);
    assert_int_equal(b.nodes, 8);
    assert_int_equal(b.tuner, 0);
    assert_int_equal(b.model_kind, 0);
    assert_string_equal(tt_config_node_text(tt_config_find(again, b.model, "l2")), "1e-4");
    // the table's default is written beside what was given
    assert_string_equal(tt_config_node_text(tt_config_find(again, b.model, "kind")),
                        "softmax_regression");
    const tt_config_node *list = tt_config_find(again, b.model, "list");
    assert_string_equal(tt_config_node_text(tt_config_find(again, tt_config_node_at(list, 1), "b")),
                        "null");
    tt_config_close(again);
    // a device that refuses
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        assert_int_equal(tt_config_write_resolved(cfg, keys, TT_COUNT_OF(keys), &a, full, &err),
                         TT_IO);
        (void)fclose(full);
    }
    tt_config_close(cfg);
}

static const char sample[] = "job: fashion-mlr\n"
                             "data:\n  train: a.svm\n"
                             "model: {kind: mlp, layers: [784, \"3\\x41\", 'it''s']}\n"
                             "optimizer: {kind: adam, learning_rate: 3.7e-3}\n"
                             "stop:\n  max_time: 1h30m\n  loss: 0.4 # target\n"
                             "cluster:\n  chunk: 64KiB\n  nodes: 8\n"
                             "tuner: {enabled: on, guard: 10%, window: auto}\n"
                             "setting:\n  - a\n  - b: |\n      text\n";

static void
short_memory_is_an_error(void **state)
{
    TT_UNUSED(state);
    int failures = 0;
    for (uint64_t nth = 1; nth < 200; nth++) {
        tt_mem_fail_nth(nth);
        tt_config *cfg = NULL;
        tt_error err = {0};
        job j;
        tt_status status = tt_config_open(&cfg, &err);
        if (status == TT_OK)
            status = tt_config_load_text(cfg, "job.yaml", sample, &err);
        if (status == TT_OK)
            status = tt_config_override(cfg, "stop.loss=[0.3", &err) == TT_NOMEM ? TT_NOMEM : TT_OK;
        if (status == TT_OK)
            status = tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j);
        int pending = tt_mem_fail_pending();
        tt_mem_fail_nth(0);
        if (!pending) {
            failures++;
            assert_true(status != TT_OK || tt_config_error_count(cfg) > 0);
        }
        tt_config_close(cfg);
    }
    assert_true(failures >= 3);
}

static size_t
mutate(tt_rng *rng, char *text, size_t length, size_t capacity)
{
    static const char pool[] = " \n\t:,[]{}&*!|>'\"%@`#-?~0e.\\\x80\xff\x01"
                               "abAZ";
    size_t at = tt_rng_below(rng, length), run = 1 + tt_rng_below(rng, 6);
    switch (tt_rng_below(rng, 4)) {
    case 0:
        text[at] = pool[tt_rng_below(rng, sizeof pool - 1)];
        return length;
    case 1:
        run = TT_MIN(run, length - at);
        memmove(text + at, text + at + run, length - at - run);
        return TT_MAX(length - run, 1);
    case 2:
        if (length + run >= capacity)
            return length;
        memmove(text + at + run, text + at, length - at);
        for (size_t i = 0; i < run; i++)
            text[at + i] = pool[tt_rng_below(rng, sizeof pool - 1)];
        return length + run;
    default:
        run = TT_MIN(run * 4, TT_MIN(length - at, capacity - 1 - length));
        memmove(text + at + run, text + at, length - at);
        return length + run;
    }
}

static void
variables_stand_for_their_values(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *written, *name;
    } cases[] = {
        {"${TT_TEST}", "value"},
        {"a-${TT_TEST}-${TT_TEST}b", "a-value-valueb"},
        {"${TT_TEST:-other}", "value"},
        {"${TT_NONE:-other}", "other"},
        {"${TT_NONE-other}", "other"},
        {"${TT_EMPTY:-other}", "other"},
        {"x${TT_EMPTY-other}", "x"},
        {"\"${TT_TEST} ${TT_NONE-}\"", "value "},
        {"${TT_TEST:?must be set}", "value"},
        {"$${TT_TEST} and $5", "${TT_TEST} and $5"},
    };
    assert_int_equal(setenv("TT_TEST", "value", 1) | setenv("TT_EMPTY", "", 1), 0);
    assert_int_equal(unsetenv("TT_NONE"), 0);
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_config *cfg = open_config();
        tt_error err = {0};
        char text[200];
        (void)snprintf(text, sizeof text, DATA "job: %s\n", cases[i].written);
        assert_int_equal(tt_config_load_text(cfg, "job.yaml", text, &err), TT_OK);
        job j;
        (void)tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j);
        assert_string_equal(faults(cfg), "");
        assert_string_equal(j.name, cases[i].name);
        tt_config_close(cfg);
    }
    expect_faults(
        DATA "job: ${TT_NONE}\n",
        "job.yaml:2:6: the variable TT_NONE is not set; export TT_NONE, or write a default: "
        "${TT_NONE:-value}\n");
    expect_faults(DATA "job: ${TT_EMPTY:?name the job}\n",
                  "job.yaml:2:6: the variable TT_EMPTY is empty: name the job\n");
    expect_faults(DATA "job: ${TT TEST}\n",
                  "job.yaml:2:6: expected ${NAME}, ${NAME:-default} or ${NAME:?message}, not "
                  "'${TT TEST}'; write $${ for a plain ${\n");
    expect_faults(
        DATA "job: ${TT_EMPTY}\n",
        "job.yaml:2:6: there is no value here; write a value, or `null` for the default\n");
}

static void
mutated_texts_never_crash(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 20240611, TT_RNG_TEST, 0);
    size_t refused = 0, accepted = 0;
    for (int round = 0; round < 6000; round++) {
        char text[1024];
        size_t length = sizeof sample - 1;
        memcpy(text, sample, length);
        for (uint64_t n = 1 + tt_rng_below(&rng, 5); n > 0; n--)
            length = mutate(&rng, text, length, sizeof text);
        text[length] = '\0';
        tt_config *cfg = open_config();
        tt_error err = {0};
        job j;
        tt_status status = tt_config_load_text(cfg, "job.yaml", text, &err);
        assert_true(status == TT_OK || status == TT_SYNTAX);
        text[TT_MIN(length, 60)] = '\0';
        (void)tt_config_override(cfg, text, &err);
        (void)tt_config_read(cfg, keys, TT_COUNT_OF(keys), &j);
        if (status == TT_SYNTAX)
            assert_true(tt_config_error_count(cfg) > 0);
        (void)faults(cfg);
        refused += status != TT_OK;
        accepted += status == TT_OK;
        tt_config_close(cfg);
    }
    // both sides of the border are visited
    assert_true(refused > 600 && accepted > 600);
}

// ---- several files ----------------------------------------------------------------------------

typedef struct sources {
    const tt_config_paths *train, *test;
    double share;
} sources;

static const tt_config_key source_keys[] = {
    {.path = "data.train", .kind = TT_CONFIG_PATHS, .offset = offsetof(sources, train)},
    {.path = "data.test.share",
     .kind = TT_CONFIG_REAL,
     .offset = offsetof(sources, share),
     .min = 0,
     .max = 1,
     .flags = TT_CONFIG_PERCENT | TT_CONFIG_SHORTHAND},
    {.path = "data.test.file",
     .kind = TT_CONFIG_PATHS,
     .offset = offsetof(sources, test),
     .flags = TT_CONFIG_SHORTHAND},
};

static void
touch(const char *directory, const char *name)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void
patterns_become_files_in_the_order_of_bytes(void **state)
{
    TT_UNUSED(state);
    static const char *const names[] = {"p-10.csv", "p-2.csv", "p-1.csv", "q.csv", "odd[1].csv"};
    char directory[] = "/tmp/tt-config-XXXXXX", job_path[64];
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < TT_COUNT_OF(names); i++)
        touch(directory, names[i]);
    (void)snprintf(job_path, sizeof job_path, "%s/job.yaml", directory);
    FILE *file = fopen(job_path, "w");
    assert_non_null(file);
    (void)fprintf(file, "data: {train: [q.csv, 'p-*.csv', 'odd[1].csv'], test: gone.csv}\n");
    assert_int_equal(fclose(file), 0);
    tt_config *cfg = open_config();
    sources found;
    assert_int_equal(tt_config_load_file(cfg, job_path, NULL), TT_OK);
    assert_int_equal(tt_config_read(cfg, source_keys, TT_COUNT_OF(source_keys), &found), TT_OK);
    static const char *const expected[] = {"q.csv", "p-1.csv", "p-10.csv", "p-2.csv", "odd[1].csv"};
    assert_int_equal(found.train->count, TT_COUNT_OF(expected));
    for (size_t i = 0; i < TT_COUNT_OF(expected); i++)
        assert_string_equal(found.train->path[i] + strlen(directory) + 1, expected[i]);
    assert_true(strstr(found.train->place[1], "job.yaml:1:23") != NULL);
    // What is written resolved reads back to the same files.
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_int_equal(
        tt_config_write_resolved(cfg, source_keys, TT_COUNT_OF(source_keys), &found, out, NULL),
        TT_OK);
    assert_int_equal(fclose(out), 0);
    tt_config *again = open_config();
    sources second;
    assert_int_equal(tt_config_load_text(again, "r.yaml", text, NULL), TT_OK);
    assert_int_equal(tt_config_read(again, source_keys, TT_COUNT_OF(source_keys), &second), TT_OK);
    assert_int_equal(second.train->count, found.train->count);
    for (size_t i = 0; i < found.train->count; i++)
        assert_string_equal(second.train->path[i], found.train->path[i]);
    assert_string_equal(second.test->path[0], found.test->path[0]);
    tt_config_close(again);
    tt_config_close(cfg);
    for (size_t i = 0; i < TT_COUNT_OF(names); i++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(unlink(job_path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void
expect_source_fault(const char *text, const char *line)
{
    tt_config *cfg = open_config();
    sources found;
    (void)tt_config_load_text(cfg, "job.yaml", text, NULL);
    (void)tt_config_read(cfg, source_keys, TT_COUNT_OF(source_keys), &found);
    char expected[1024];
    (void)snprintf(expected, sizeof expected, "%s\n1 error, nothing was run.\n", line);
    assert_string_equal(faults(cfg), expected);
    tt_config_close(cfg);
}

static void
lists_of_files_are_checked(void **state)
{
    TT_UNUSED(state);
    expect_source_fault("data:\n  train: [a.svm, nothing-*.svm]\n",
                        "job.yaml:2:18: data.train: no file matches 'nothing-*.svm'; check the "
                        "pattern (ls shows what it matches); it is relative to the file that says "
                        "it");
    expect_source_fault("data: {train: [a.svm, b.svm, a.svm]}\n",
                        "job.yaml:1:15: data.train: 'a.svm' is in the list twice; name each file "
                        "once");
    expect_source_fault("data: {train: []}\n",
                        "job.yaml:1:15: data.train is an empty list; name a file");
    expect_source_fault("data: {train: [{a: 1}]}\n",
                        "job.yaml:1:16: data.train must be a path, not a mapping; write a path, or "
                        "a list of paths: [a.csv, b.csv]");
    expect_source_fault("data: {test: 130%}\n",
                        "job.yaml:1:14: data.test.share must be from 0 to 1, not 130%");
}

static void
short_forms_are_spelt_out(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *text, *override;
        double share;
        const char *file;
    } cases[] = {
        {"data: {test: 12.5%}", NULL, 0.125, NULL},
        {"data: {test: 0.25}", NULL, 0.25, NULL},
        {"data: {test: 2024-11}", NULL, NAN, "2024-11"},
        {"data: {test: '0.25'}", NULL, NAN, "0.25"},
        {"data: {test: a.svm}", NULL, NAN, "a.svm"},
        {"data: {test: a.svm}", "data.test.file=b.svm", NAN, "b.svm"},
        {"data: {test: a.svm}", "data.test=10%", 0.1, NULL},
        {"data: {test: {file: a.svm}}", "data.test=[b.svm]", NAN, "b.svm"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        tt_config *cfg = open_config();
        sources found;
        (void)tt_config_load_text(cfg, "job.yaml", cases[i].text, NULL);
        assert_int_equal(tt_config_spell_out(cfg, source_keys, TT_COUNT_OF(source_keys)), TT_OK);
        if (cases[i].override != NULL)
            (void)tt_config_override(cfg, cases[i].override, NULL);
        (void)tt_config_read(cfg, source_keys, TT_COUNT_OF(source_keys), &found);
        assert_string_equal(faults(cfg), "");
        assert_true(isnan(cases[i].share) ? isnan(found.share) : found.share == cases[i].share);
        if (cases[i].file == NULL)
            assert_null(found.test);
        else
            assert_string_equal(found.test->path[0], cases[i].file);
        tt_config_close(cfg);
    }
}

static void
lists_survive_failed_allocations(void **state)
{
    TT_UNUSED(state);
    for (uint64_t nth = 1; nth < 40; nth++) {
        tt_config *cfg;
        sources found;
        if (tt_config_open(&cfg, NULL) != TT_OK)
            continue;
        tt_mem_fail_nth(nth);
        (void)tt_config_load_text(cfg, "job.yaml",
                                  "data: {train: [a, b, c, d, e, f, g, h, i, j], test: 5%}", NULL);
        tt_status status = tt_config_read(cfg, source_keys, TT_COUNT_OF(source_keys), &found);
        tt_mem_fail_nth(0);
        assert_true(status != TT_OK || found.train->count == 10);
        tt_config_close(cfg);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_job_is_read),
        cmocka_unit_test(every_fault_at_once_in_order),
        cmocka_unit_test(unknown_keys_are_guided),
        cmocka_unit_test(wrong_types_are_told),
        cmocka_unit_test(odd_yaml_is_refused),
        cmocka_unit_test(malformed_yaml_has_its_place),
        cmocka_unit_test(overrides_replace_and_make),
        cmocka_unit_test(wrong_overrides_are_told),
        cmocka_unit_test(files_lie_over_each_other),
        cmocka_unit_test(callers_add_their_own_faults),
        cmocka_unit_test(parts_are_read_by_their_own_tables),
        cmocka_unit_test(resolved_reads_back_the_same),
        cmocka_unit_test(short_memory_is_an_error),
        cmocka_unit_test(variables_stand_for_their_values),
        cmocka_unit_test(mutated_texts_never_crash),
        cmocka_unit_test(patterns_become_files_in_the_order_of_bytes),
        cmocka_unit_test(lists_of_files_are_checked),
        cmocka_unit_test(short_forms_are_spelt_out),
        cmocka_unit_test(lists_survive_failed_allocations),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
