// The job file that trimtab init proposes, with a comment wherever one may want to change it.
#include "init_internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    const tti_init *init;
    FILE *out;
    int absolute; // paths: the job file is in another directory
} writer;

// Text as a YAML scalar: in double quotes unless it is plainly a word.
static void
put_text(FILE *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
    if (text[0] != '\0' && strspn(text, plain) == strlen(text) && strpbrk(text, "./_-") != NULL &&
        text[0] != '-') {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            (void)fputc('\\', out);
        if (c[0] == '$' && c[1] == '{') // no variable
            (void)fputc('$', out);
        (void)fputc(*c, out);
    }
    (void)fputc('"', out);
}

static void
put_path(const writer *w, const char *path)
{
    char *whole = w->absolute ? realpath(path, NULL) : NULL;
    put_text(w->out, whole != NULL ? whole : path);
    free(whole); // realpath's own
}

static void
put_files(const writer *w, int indent, const char *key, const tti_init_files *files)
{
    if (files->count == 0)
        return;
    (void)fprintf(w->out, "%*s%s:", indent, "", key);
    for (size_t i = 0; i < files->count; i++) {
        if (files->count == 1)
            (void)fputc(' ', w->out);
        else
            (void)fprintf(w->out, "\n%*s- ", indent + 2, "");
        put_path(w, files->path[i]);
    }
    (void)fputc('\n', w->out);
}

static void
put_list(FILE *out, const char *key, const char *list, const char *remark)
{
    if (list[0] != '\0')
        (void)fprintf(out, "    %s: '%s'%s%s\n", key, list, remark[0] != '\0' ? "  # " : "",
                      remark);
}

static void
put_csv(const writer *w)
{
    const tti_init *init = w->init;
    static const struct {
        char delimiter;
        const char *name;
    } names[] = {{'\t', "tab"}, {',', "comma"}, {';', "semicolon"}, {'|', "bar"}, {' ', "blank"}};
    (void)fprintf(w->out,
                  "  csv:                       # columns by number from 1, or by header name\n"
                  "    label: %s\n",
                  init->csv_label);
    put_list(w->out, "numeric", init->numeric, "");
    put_list(w->out, "categorical", init->categorical, "hashed to features");
    put_list(w->out, "ignore", init->ignored, "row numbers, names, constants: nothing to learn");
    for (size_t i = 0; i < TT_COUNT_OF(names); i++)
        if (names[i].delimiter == init->look->delimiter)
            (void)fprintf(w->out, "    delimiter: %s\n", names[i].name);
    (void)fprintf(w->out, "    header: %s\n", init->look->header ? "on" : "off");
    if (init->csv.log_numeric)
        (void)fprintf(w->out, "    log_numeric: on          # sign(x) log(1 + |x|): some numbers "
                              "are large\n");
    if (init->data->category_count > 0)
        (void)fprintf(w->out, "    hash_bits: %u            # 2^%u features for %llu categories\n",
                      init->hash_bits, init->hash_bits,
                      (unsigned long long)init->data->category_count);
}

static void
put_data(const writer *w)
{
    const tti_init *init = w->init;
    (void)fprintf(w->out, "data:\n  format: %s\n", init->look->format);
    put_files(w, 2, "train", &init->files);
    put_files(w, 2, "labels", &init->labels);
    if (init->validation > 0)
        (void)fprintf(w->out,
                      "  validation: %g%%            # rows held out to judge the model by; or "
                      "name a file\n",
                      100 * init->validation);
    if (init->test_labels.count > 0) {
        (void)fprintf(w->out, "  test:                      # evaluated once at the end\n");
        put_files(w, 4, "file", &init->test);
        put_files(w, 4, "labels", &init->test_labels);
    } else {
        put_files(w, 2, "test", &init->test);
    }
    if (strcmp(init->look->format, "csv") == 0)
        put_csv(w);
}

static void
put_training(const writer *w)
{
    const tti_init *init = w->init;
    (void)fprintf(w->out,
                  "model:\n"
                  "  kind: %s  # %u classes%s\n"
                  "  bias: on                   # a constant feature, not regularised\n"
                  "  l2: 0                      # 1e-6 .. 1e-3 where the validation loss soon "
                  "rises again\n",
                  init->model, init->data->class_count,
                  init->data->class_count == 2 ? "; or linear_svm" : "");
    (void)fprintf(w->out,
                  "optimizer:\n"
                  "  kind: adagrad              # a rate of its own for every weight\n"
                  "  learning_rate: %g%*s# fitted to the size of a row; try a few others\n"
                  "  batch_size: %u%*s# examples a push\n",
                  init->learning_rate, init->learning_rate < 0.001 ? 7 : 8, "", init->batch_size,
                  init->batch_size < 100 ? 13 : 12, "");
    (void)fprintf(w->out, "stop:\n");
    if (init->validation > 0)
        (void)fprintf(w->out,
                      "  patience: %u                # early stopping: after so many epochs "
                      "without a better validation loss;\n"
                      "                             # the best model is saved\n",
                      init->patience);
    (void)fprintf(w->out,
                  "  max_epochs: 200            # passes over the data at most\n"
                  "  max_time: 10m\n"
                  "cluster:\n"
                  "  nodes: 8                   # servers and workers together, as threads; the "
                  "tuner divides them\n"
                  "tuner:\n"
                  "  enabled: on                # looks for faster settings while it trains\n");
}

int
tti_init_write(const tti_init *init, FILE *out)
{
    // Paths in a job file are relative to it.
    writer w = {init, out, strchr(init->out, '/') != NULL};
    const tt_dataset *data = init->data;
    (void)fprintf(out,
                  "# Written by trimtab init: %llu rows, %u features, %u classes. The classes' "
                  "shares alone have a loss of %.4f.\n"
                  "# Every key: docs/job-file.md.  Check: trimtab plan.  Train: trimtab run.\n",
                  (unsigned long long)data->row_count, init->feature_count, data->class_count,
                  init->prior_loss);
    put_data(&w);
    put_training(&w);
    return ferror(out) ? -1 : 0;
}
