// trimtab init: looks at data, says what it saw, writes a job file for it.
#include "cli_internal.h"
#include "init_internal.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

// ---- what is asked for ------------------------------------------------------------------------

static int
add_file(tti_init_files *files, const char *path)
{
    if (files->count == TTI_INIT_FILES_MAX)
        return tti_cli_bad_usage("init", "more than %d files", TTI_INIT_FILES_MAX);
    files->path[files->count++] = path;
    return 0;
}

static int
parse(int argc, char **argv, tti_init *init)
{
    int code = 0;
    init->out = "job.yaml";
    for (int i = 0; i < argc && code == 0; i++) {
        const char *word = argv[i];
        const struct {
            const char *option;
            const char **value;
            tti_init_files *list;
        } with_value[] = {
            {"-o", &init->out, NULL},
            {"--label", &init->label, NULL},
            {"--labels", NULL, &init->labels},
            {"--test", NULL, &init->test},
            {"--test-labels", NULL, &init->test_labels},
        };
        size_t k = 0;
        while (k < TT_COUNT_OF(with_value) && strcmp(word, with_value[k].option) != 0)
            k++;
        if (k < TT_COUNT_OF(with_value) && i + 1 == argc)
            return tti_cli_bad_usage("init", "%s needs a value", word);
        if (k < TT_COUNT_OF(with_value) && with_value[k].value != NULL)
            *with_value[k].value = argv[++i];
        else if (k < TT_COUNT_OF(with_value))
            code = add_file(with_value[k].list, argv[++i]);
        else if (strcmp(word, "--force") == 0)
            init->force = 1;
        else if (word[0] == '-')
            return tti_cli_unknown_option("init", word);
        else
            code = add_file(&init->files, word);
    }
    if (code == 0 && init->files.count == 0)
        return tti_cli_bad_usage("init", "which data? name its file");
    return code;
}

static int
refuse_overwriting(const tti_init *init)
{
    if (init->force || strcmp(init->out, "-") == 0 || access(init->out, F_OK) != 0)
        return 0;
    tt_error err = {0};
    (void)tt_error_set(&err, TT_EXISTS, init->out, "choose another name with -o, or add --force",
                       "is there already");
    (void)tti_cli_fail(&err);
    return 2;
}

// ---- what the files are -----------------------------------------------------------------------

static int
refuse(const char *path, const char *advice, const char *what)
{
    tt_error err = {0};
    (void)tt_error_set(&err, TT_INVALID, path, advice, "%s", what);
    return tti_cli_fail(&err);
}

// The name of the labels that go with a file of images, as the sets of the MNIST family have them.
// NULL: there is none of that name. Never freed: a command runs once.
static const char *
labels_of(const char *path)
{
    const char *images = strstr(path, "images");
    for (const char *next = images; next != NULL; next = strstr(next + 1, "images"))
        images = next;
    if (images == NULL)
        return NULL;
    size_t size = strlen(path) + 1;
    char *labels = tt_mem_zalloc(size, 1);
    if (labels == NULL)
        return NULL;
    (void)snprintf(labels, size, "%.*slabels%s", (int)(images - path), path, images + 6);
    char *dimensions = strstr(labels, "idx3");
    if (dimensions != NULL)
        dimensions[3] = '1';
    if (access(labels, R_OK) == 0)
        return labels;
    tt_mem_free(labels);
    return NULL;
}

static int
pair_labels(tti_init_files *files, tti_init_files *labels, const char *option)
{
    char advice[64];
    for (size_t i = labels->count; i < files->count; i++) {
        const char *found = labels_of(files->path[i]);
        (void)snprintf(advice, sizeof advice, "name it: %s FILE", option);
        if (found == NULL)
            return refuse(files->path[i], advice, "IDX items; a second file has their labels");
        if (add_file(labels, found) != 0)
            return 2;
    }
    return 0;
}

// Files of labels among the others are taken for what they are.
static int
sort_idx_files(tti_init *init)
{
    size_t kept = 0;
    for (size_t i = 0; i < init->files.count; i++) {
        tt_look *look;
        tt_error err = {0};
        const char *path = init->files.path[i];
        if (tt_data_look(path, &look, &err) != TT_OK)
            return tti_cli_fail(&err);
        int is_labels = look->kind == TT_LOOK_IDX_LABELS;
        tt_look_close(look);
        if (!is_labels)
            init->files.path[kept++] = path;
        else if (add_file(&init->labels, path) != 0)
            return 2;
    }
    init->files.count = kept;
    if (kept == 0)
        return refuse(init->labels.path[0], "name the file of the items too",
                      "IDX labels, without the items they belong to");
    int code = pair_labels(&init->files, &init->labels, "--labels");
    return code != 0 ? code : pair_labels(&init->test, &init->test_labels, "--test-labels");
}

static int
choose_label(tti_init *init)
{
    const tt_look *look = init->look;
    const char *path = init->files.path[0];
    tt_look_label kind;
    tt_error err = {0};
    char what[320];
    if (tt_look_choose_label(look, init->label, &init->label_column, &kind, &err) != TT_OK) {
        (void)snprintf(err.where, sizeof err.where, "%.300s", path);
        return tti_cli_fail(&err);
    }
    const tt_look_column *column = &look->column[init->label_column];
    (void)snprintf(what, sizeof what, "column %u%s%s%s (%s, %s, %s ...)", init->label_column + 1,
                   column->name[0] != '\0' ? " '" : "", column->name,
                   column->name[0] != '\0' ? "'" : "", column->sample[0], column->sample[1],
                   column->sample[2]);
    size_t used = strlen(what);
    char *rest = what + used;
    switch (kind) {
    case TT_LOOK_LABEL_CLASSES:
        tti_init_plan_columns(init);
        return 0;
    case TT_LOOK_LABEL_TEXT:
        (void)snprintf(rest, sizeof what - used, " would be the label, but is text");
        return refuse(path, "labels must be numbers: write 0, 1, ... for the classes", what);
    case TT_LOOK_LABEL_REGRESSION:
        (void)snprintf(rest, sizeof what - used,
                       " is a real-valued target: there is no regression model here");
        return refuse(path, "name a column of classes: --label COLUMN; or make classes of it",
                      what);
    case TT_LOOK_LABEL_NONE:
        break;
    }
    return refuse(path,
                  "name it: --label COLUMN. There is no regression model and no matrix "
                  "factorisation here",
                  "no column looks like the label of a class");
}

static int
look_at_files(tti_init *init)
{
    tt_error err = {0};
    if (tt_data_look(init->files.path[0], &init->look, &err) != TT_OK)
        return tti_cli_fail(&err);
    switch (init->look->kind) {
    case TT_LOOK_IDX_ITEMS:
    case TT_LOOK_IDX_LABELS:
        return sort_idx_files(init);
    case TT_LOOK_CSV:
        return choose_label(init);
    case TT_LOOK_LIBSVM:
        return 0;
    case TT_LOOK_UNREAD:
        break;
    }
    return refuse(init->files.path[0], init->look->advice, init->look->what);
}

// ---- reading ----------------------------------------------------------------------------------

static tt_status
read_set(const tti_init *init,
         const tti_init_files *files,
         const tti_init_files *labels,
         const tt_dataset *like,
         tt_dataset **out,
         tt_error *err)
{
    tt_data_spec spec = {.format = init->look->format,
                         .paths = files->path,
                         .path_count = files->count,
                         .label_paths = labels->count > 0 ? labels->path : NULL,
                         .label_path_count = labels->count,
                         .csv = &init->csv,
                         .like = like};
    return tt_dataset_open(&spec, out, err);
}

static int
read_data(tti_init *init)
{
    tt_error err = {0};
    tt_dataset *test = NULL;
    tt_status status = read_set(init, &init->files, &init->labels, NULL, &init->data, &err);
    if (status == TT_OK && init->test.count > 0)
        status = read_set(init, &init->test, &init->test_labels, init->data, &test, &err);
    if (status == TT_RANGE && strstr(err.what, "too many distinct labels") != NULL)
        (void)snprintf(err.advice, sizeof err.advice,
                       "this looks like a real-valued target: there is no regression model here");
    if (status != TT_OK)
        return tti_cli_fail(&err);
    init->test_rows = test != NULL ? test->row_count : 0;
    tt_dataset_close(test);
    tti_init_propose(init);
    return 0;
}

// Labels such as 2.37 that happen to be few enough.
static int
refuse_targets(const tti_init *init)
{
    const tt_dataset *data = init->data;
    uint32_t broken = 0;
    for (uint32_t c = 0; c < data->class_count; c++)
        broken += data->class_label[c] != floor(data->class_label[c]);
    if (data->class_count <= 5 || 2 * broken < data->class_count)
        return 0;
    char what[160];
    (void)snprintf(what, sizeof what,
                   "%u different labels such as %.6g look like a real-valued target: there is no "
                   "regression model here",
                   data->class_count, data->class_label[data->class_count / 2]);
    return refuse(init->files.path[0], "make classes of it", what);
}

// ---- saying what was seen ---------------------------------------------------------------------

static void
say_classes(const tti_init *init)
{
    enum { SHOWN = 10 };
    const tt_dataset *data = init->data;
    (void)fprintf(stderr, "labels        %u classes:", data->class_count);
    for (uint32_t c = 0; c < data->class_count && c < SHOWN; c++)
        (void)fprintf(stderr, "%s %.6g (%.1f %%)", c > 0 ? "," : "", data->class_label[c],
                      100 * (double)init->class_rows[c] / (double)data->row_count);
    (void)fprintf(stderr, "%s; these shares alone have a loss of %.4f\n",
                  data->class_count > SHOWN ? ", ..." : "", init->prior_loss);
}

static void
say_columns(const tti_init *init)
{
    const tt_look *look = init->look;
    static const struct {
        char delimiter;
        const char *name;
    } names[] = {
        {'\t', "tabs"}, {',', "commas"}, {';', "semicolons"}, {'|', "bars"}, {' ', "blanks"}};
    for (size_t i = 0; i < TT_COUNT_OF(names); i++)
        if (names[i].delimiter == look->delimiter)
            (void)fprintf(stderr, "columns       %u, between %s, %s header\n", look->column_count,
                          names[i].name, look->header ? "with a" : "without");
    (void)fprintf(stderr, "              label %u%s%s\n", init->label_column + 1,
                  look->header ? ": " : "", look->column[init->label_column].name);
    if (init->numeric[0] != '\0')
        (void)fprintf(stderr, "              numeric %.200s%s\n", init->numeric,
                      init->csv.log_numeric ? " (as logarithms: some are large)" : "");
    if (init->categorical[0] != '\0')
        (void)fprintf(stderr,
                      "              categorical %.200s: %llu categories, hashed to 2^%u "
                      "features\n",
                      init->categorical, (unsigned long long)init->data->category_count,
                      init->hash_bits);
    if (init->ignored[0] != '\0')
        (void)fprintf(stderr, "              not used %.200s: they tell nothing\n", init->ignored);
}

static void
say(const tti_init *init)
{
    const tt_dataset *data = init->data;
    double a_row = (double)data->nonzero_count / (double)data->row_count;
    (void)fprintf(stderr, "%s", init->files.path[0]);
    if (init->files.count > 1)
        (void)fprintf(stderr, " and %zu more", init->files.count - 1);
    (void)fprintf(stderr, "   %s, %s\n", init->look->what, init->look->compression);
    (void)fprintf(stderr,
                  "rows          %llu, %u features, %.1f non-zeros a row (%.3g %% dense), largest "
                  "%.4g\n",
                  (unsigned long long)data->row_count, init->feature_count, a_row,
                  100 * a_row / (double)init->feature_count, init->largest);
    for (size_t i = 0; i < init->labels.count; i++)
        (void)fprintf(stderr, "              labels: %s\n", init->labels.path[i]);
    if (init->test_rows > 0)
        (void)fprintf(stderr, "              %llu test rows\n",
                      (unsigned long long)init->test_rows);
    if (strcmp(init->look->format, "csv") == 0)
        say_columns(init);
    say_classes(init);
    (void)fprintf(stderr, "proposed      %s, adagrad, learning rate %g, %u examples a push\n",
                  init->model, init->learning_rate, init->batch_size);
    if (init->validation > 0)
        (void)fprintf(stderr,
                      "              %g %% of the rows held out; stops after %u validations "
                      "without improvement\n",
                      100 * init->validation, init->patience);
    else
        (void)fprintf(stderr, "              too few rows to hold some out for validation\n");
}

// ---- writing ----------------------------------------------------------------------------------

static int
write_job(const tti_init *init)
{
    if (strcmp(init->out, "-") == 0) {
        (void)tti_init_write(init, stdout);
        return tti_cli_flush();
    }
    FILE *file = fopen(init->out, init->force ? "w" : "wx"); // x: never over a file
    int failed = file == NULL || tti_init_write(init, file) != 0;
    int reason = errno;
    if (file != NULL && fclose(file) != 0) {
        failed = 1;
        reason = errno;
    }
    if (!failed) {
        (void)fprintf(stderr, "wrote %s; next: trimtab run %s\n", init->out, init->out);
        return 0;
    }
    tt_error err = {0};
    (void)tt_error_set(&err, reason == ENOSPC || reason == EIO ? TT_IO : TT_INVALID, init->out,
                       "choose another place with -o", "cannot write it: %s",
                       tt_errno_text(reason));
    return tti_cli_fail(&err);
}

int
tti_cli_init(int argc, char **argv)
{
    static tti_init init;
    int code = parse(argc, argv, &init);
    if (code == 0)
        code = refuse_overwriting(&init);
    if (code == 0)
        code = look_at_files(&init);
    if (code == 0)
        code = read_data(&init);
    if (code == 0)
        code = refuse_targets(&init);
    if (code == 0) {
        say(&init);
        code = write_job(&init);
    }
    tt_dataset_close(init.data);
    tt_look_close(init.look);
    return code;
}
