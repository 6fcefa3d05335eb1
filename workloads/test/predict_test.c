// Goal: predictions are those of the formula, row for row, whatever the format, the number of
// threads and the length of the file; what the model cannot use is counted; faults have a place.
// Method: models with weights from a seed, rows built together with the expected lines in double,
// texts of many blocks, shapes that went through tt_csv_layout_of, failing allocations.
#include "temporary_file.h"
#include "tt/workloads.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

enum { FEATURES = 40, CLASSES = 3 };
static const double labels[CLASSES] = {-1, 2.5, 7};
enum { INPUTS = 3 };
static char directory[64], inputs[INPUTS][96], output[96];
static char *const input = inputs[0];
static const char *const input_list[INPUTS] = {inputs[0], inputs[1], inputs[2]};
static size_t input_count = 1;
static float params[(FEATURES + 1) * CLASSES];

static int
setup(void **state)
{
    TT_UNUSED(state);
    tt_rng rng;
    tt_rng_init(&rng, 907, TT_RNG_TEST, 0);
    for (size_t i = 0; i < TT_COUNT_OF(params); i++)
        params[i] = (float)tt_rng_normal(&rng);
    (void)make_directory(directory);
    for (int i = 0; i < INPUTS; i++)
        (void)snprintf(inputs[i], sizeof inputs[i], "%s/data%d", directory, i);
    input_count = 1;
    (void)snprintf(output, sizeof output, "%s/labels", directory);
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    for (int i = 0; i < INPUTS; i++)
        (void)unlink(inputs[i]);
    (void)unlink(output);
    return rmdir(directory); // fails when something was left behind
}

static tt_dataset *
shape_of(tt_data_layout layout, uint32_t classes)
{
    tt_data_shape shape = {.layout = layout,
                           .feature_count = FEATURES,
                           .class_count = classes,
                           .class_label = labels,
                           .scale = 0.25F};
    tt_dataset *out;
    tt_error err = {0};
    assert_int_equal(tt_dataset_shape_open(&shape, "model", &out, &err), TT_OK);
    return out;
}

// Predicts the input files into the output file.
static tt_status
predict(const char *kind,
        const char *format,
        const tt_dataset *like,
        tt_predict_columns columns,
        int threads,
        tt_predict_result *result,
        tt_error *err)
{
    tt_model_config config = {.kind = kind, .bias = 1, .trained = 1};
    tt_model *model;
    assert_int_equal(tt_model_open(&config, like, &model, err), TT_OK);
    tt_predict_spec spec = {.model = model,
                            .params = params,
                            .like = like,
                            .format = format,
                            .paths = input_list,
                            .path_count = input_count,
                            .output_path = output,
                            .columns = columns,
                            .threads = threads};
    tt_status status = tt_predict(&spec, result, err);
    tt_model_close(model);
    return status;
}

// ---- rows and what is expected of them --------------------------------------------------------

static char *text;
static size_t text_bytes;
static double *scores; // [rows][width]

static void
add_row(tt_rng *rng, size_t row, size_t width, int label, uint64_t *unknown)
{
    double *score = scores + row * width;
    for (size_t k = 0; k < width; k++)
        score[k] = (double)params[FEATURES * width + k];
    if (label)
        text_bytes += (size_t)sprintf(text + text_bytes, "%d", (int)tt_rng_below(rng, 3) - 1);
    for (uint32_t f = 0; f < FEATURES + 9; f++) {
        if (tt_rng_below(rng, 4) != 0 && f != row % FEATURES)
            continue;
        int quarter = (int)tt_rng_below(rng, 9) - 4;
        text_bytes += (size_t)sprintf(text + text_bytes, "%s%u:%g",
                                      text_bytes > 0 && text[text_bytes - 1] != '\n' ? " " : "",
                                      f + 1, quarter / 4.0);
        *unknown += f >= FEATURES;
        for (size_t k = 0; f < FEATURES && k < width; k++)
            score[k] += quarter / 4.0 * (double)params[f * width + k];
    }
    text[text_bytes++] = '\n';
}

static uint64_t
make_rows(size_t rows, size_t width, int with_labels)
{
    uint64_t unknown = 0;
    tt_rng rng;
    tt_rng_init(&rng, 31, TT_RNG_TEST, rows);
    text = malloc(rows * 400);
    scores = malloc(rows * width * sizeof *scores);
    assert_non_null(text);
    assert_non_null(scores);
    text_bytes = 0;
    for (size_t row = 0; row < rows; row++)
        add_row(&rng, row, width, with_labels, &unknown);
    write_file(input, text, text_bytes);
    return unknown;
}

static void
forget_rows(void)
{
    free(text);
    free(scores);
}

// The next number of a line, which must be near the expected one: the sums are in float32.
static const char *
check_number(const char *p, double expected)
{
    char *end;
    assert_int_equal(*p, ' ');
    double value = strtod(p + 1, &end);
    if (!(fabs(value - expected) <= 2e-5 * (1 + fabs(expected))))
        fail_msg("%.9g, expected %.9g", value, expected);
    return end;
}

// Lines that agree with scores[rows][width]; where two classes tie within rounding, either will do.
static void
check_lines(size_t rows, size_t width, tt_predict_columns columns)
{
    size_t size;
    char *lines = (char *)read_file(output, &size);
    lines[size] = '\0';
    const char *p = lines;
    for (size_t row = 0; row < rows; row++) {
        const double *score = scores + row * width;
        char *end;
        double label = strtod(p, &end), sum = 0;
        size_t said = label == labels[0] ? 0 : label == labels[1] ? 1 : 2;
        assert_true(label == labels[said]);
        p = end;
        for (size_t k = 0; k < width && width > 1; k++)
            assert_true(score[said] >= score[k] - 1e-4);
        if (width == 1)
            assert_true(said == 1 ? score[0] > -1e-4 : score[0] < 1e-4);
        for (size_t k = 0; k < width; k++)
            sum += exp(score[k]);
        if (columns == TT_PREDICT_SCORES)
            for (size_t k = 0; k < width; k++)
                p = check_number(p, score[k]);
        if (columns == TT_PREDICT_PROBABILITIES && width > 1)
            for (size_t k = 0; k < width; k++)
                p = check_number(p, exp(score[k]) / sum);
        if (columns == TT_PREDICT_PROBABILITIES && width == 1)
            p = check_number(check_number(p, 1 / (1 + exp(score[0]))), 1 / (1 + exp(-score[0])));
        assert_int_equal(*p++, '\n');
    }
    assert_int_equal(*p, '\0');
    free(lines);
}

// ---- tests ------------------------------------------------------------------------------------

static void
libsvm_rows_are_predicted(void **state)
{
    TT_UNUSED(state);
    const struct {
        const char *kind;
        uint32_t width;
    } kinds[] = {{"logistic_regression", 1}, {"linear_svm", 1}, {"softmax_regression", CLASSES}};
    for (size_t i = 0; i < TT_COUNT_OF(kinds); i++)
        for (int round = 0; round < 6; round++) {
            size_t rows = round < 4 ? 57 : 9000; // about 1.4 MB: three blocks
            tt_predict_columns columns = (tt_predict_columns)(round % 3);
            if (i == 1 && columns == TT_PREDICT_PROBABILITIES)
                continue;
            uint64_t unknown = make_rows(rows, kinds[i].width, round % 2);
            tt_dataset *like = shape_of(TT_DATA_SPARSE, kinds[i].width == 1 ? 2 : CLASSES);
            tt_predict_result result;
            tt_error err = {0};
            tt_status status =
                predict(kinds[i].kind, "libsvm", like, columns, 1 + round % 3, &result, &err);
            if (status != TT_OK)
                fail_msg("%s: %s", err.where, err.what);
            assert_int_equal(result.rows, rows);
            assert_int_equal(result.unknown_entries, unknown);
            assert_in_range(result.unknown_rows, rows / 2, rows);
            check_lines(rows, kinds[i].width, columns);
            tt_dataset_close(like);
            forget_rows();
        }
}

static void
idx_items_are_predicted(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 30011 }; // 1.2 MB: three blocks
    unsigned char *file = malloc(16 + (size_t)ROWS * FEATURES);
    assert_non_null(file);
    static const unsigned char header[16] = {0, 0, 8, 3, 0, 0, ROWS >> 8, ROWS & 255,
                                             0, 0, 0, 5, 0, 0, 0,         8};
    memcpy(file, header, 16);
    scores = malloc(ROWS * CLASSES * sizeof *scores);
    assert_non_null(scores);
    tt_rng rng;
    tt_rng_init(&rng, 5, TT_RNG_TEST, 0);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t f = 0; f < FEATURES; f++) {
            unsigned char byte = (unsigned char)tt_rng_below(&rng, 9);
            file[16 + row * FEATURES + f] = byte;
            for (size_t k = 0; k < CLASSES; k++)
                scores[row * CLASSES + k] =
                    0.25 * byte * (double)params[f * CLASSES + k] +
                    (f > 0 ? scores[row * CLASSES + k] : (double)params[FEATURES * CLASSES + k]);
        }
    tt_dataset *like = shape_of(TT_DATA_DENSE_U8, CLASSES);
    tt_predict_result result;
    tt_error err = {0};
    write_file(input, file, 16 + (size_t)ROWS * FEATURES);
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(
            predict("softmax_regression", "idx", like, TT_PREDICT_SCORES, threads, &result, &err),
            TT_OK);
        assert_int_equal(result.rows, ROWS);
        check_lines(ROWS, CLASSES, TT_PREDICT_SCORES);
    }
    unsigned char part[2][16];
    const size_t cut = 10007, rest = ROWS - cut; // the same items in two files
    for (size_t i = 0; i < 2; i++) {
        memcpy(part[i], header, 16);
        part[i][6] = (unsigned char)((i == 0 ? cut : rest) >> 8);
        part[i][7] = (unsigned char)((i == 0 ? cut : rest) & 255);
    }
    memcpy(file, part[0], 16);
    write_file(inputs[0], file, 16 + cut * FEATURES);
    memcpy(file + cut * FEATURES, part[1], 16); // over items that are written by now
    write_file(inputs[1], file + cut * FEATURES, 16 + rest * FEATURES);
    input_count = 2;
    assert_int_equal(
        predict("softmax_regression", "idx", like, TT_PREDICT_SCORES, 2, &result, &err), TT_OK);
    assert_int_equal(result.rows, ROWS);
    check_lines(ROWS, CLASSES, TT_PREDICT_SCORES);
    input_count = 1;
    memcpy(file, header, 16);
    (void)unlink(output);
    write_file(input, file, 16 + (size_t)ROWS * FEATURES - 1);
    assert_int_equal(predict("softmax_regression", "idx", like, TT_PREDICT_LABEL, 2, &result, &err),
                     TT_SYNTAX);
    assert_non_null(strstr(err.what, "the file ends here"));
    assert_int_equal(access(output, F_OK), -1); // no half a file
    file[15] = 9;
    write_file(input, file, 16 + (size_t)ROWS * FEATURES);
    assert_int_equal(predict("softmax_regression", "idx", like, TT_PREDICT_LABEL, 2, &result, &err),
                     TT_INVALID);
    assert_non_null(strstr(err.what, "an item has 45 bytes; expected 40 features"));
    tt_dataset_close(like);
    free(file);
    free(scores);
}

// Files are predicted as their texts joined are, whatever they were packed with; what is wrong in
// one names it.
static void
several_files_follow_one_another(void **state)
{
    TT_UNUSED(state);
    enum { ROWS = 9000 };
    uint64_t unknown = make_rows(ROWS, CLASSES, 1);
    size_t first = (size_t)(strchr(text + 700, '\n') - text) + 1,
           second = (size_t)(strchr(text + text_bytes / 3 * 2, '\n') - text) + 1;
    tt_dataset *like = shape_of(TT_DATA_SPARSE, CLASSES);
    tt_predict_result result;
    tt_error err = {0};
    input_count = INPUTS;
    write_file(inputs[0], text, first - 1); // the last newline is missing
    write_file(inputs[1], text + first, second - first);
    write_file(inputs[2], text + second, text_bytes - second);
    for (int threads = 1; threads <= 3; threads++) {
        tt_status status = predict("softmax_regression", "libsvm", like, TT_PREDICT_SCORES, threads,
                                   &result, &err);
        if (status != TT_OK)
            fail_msg("%s: %s", err.where, err.what);
        assert_int_equal(result.rows, ROWS);
        assert_int_equal(result.unknown_entries, unknown);
        check_lines(ROWS, CLASSES, TT_PREDICT_SCORES);
    }
    (void)unlink(output);
    write_file(inputs[2], "1 1:1\n2 1:x\n", 12);
    assert_int_equal(
        predict("softmax_regression", "libsvm", like, TT_PREDICT_LABEL, 2, &result, &err),
        TT_SYNTAX);
    assert_memory_equal(err.where, inputs[2], strlen(inputs[2]));
    assert_string_equal(err.where + strlen(inputs[2]), ":2:5");
    assert_int_equal(access(output, F_OK), -1);
    tt_dataset_close(like);
    forget_rows();
}

static void
malformed_rows_have_a_place(void **state)
{
    TT_UNUSED(state);
    tt_dataset *like = shape_of(TT_DATA_SPARSE, 2);
    tt_predict_result result;
    tt_error err = {0};
    static const struct {
        const char *text, *place, *what;
    } cases[] = {{"1 3:1\n-1 4:x\n", ":2:6", "value 'x' is not a number"},
                 {"3:1 2:1\n", ":1:5", "index 2 after index 3"},
                 {"1 77:1 78:y\n", ":1:11", "value 'y' is not a number"},
                 {"1 77:1 77:2\n", ":1:8", "index 77 occurs twice"},
                 {"1 3:1 2147483647:1\n", ":1:7", "index 2147483647 is too large"},
                 {"", "", "the file is empty; expected rows of LIBSVM text"},
                 {"\n# nothing\n", "", "no rows, only blank lines and comments"}};
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++) {
        write_file(input, cases[i].text, strlen(cases[i].text));
        tt_status status =
            predict("linear_svm", "libsvm", like, TT_PREDICT_LABEL, 1, &result, &err);
        assert_int_equal(tt_status_exit_code(status), 2);
        assert_string_equal(err.where + strlen(input), cases[i].place);
        assert_non_null(strstr(err.what, cases[i].what));
        assert_int_equal(access(output, F_OK), -1);
    }
    assert_int_equal(
        predict("linear_svm", "libsvm", like, TT_PREDICT_PROBABILITIES, 1, &result, &err),
        TT_INVALID);
    assert_string_equal(err.what, "linear_svm has no probabilities");
    tt_dataset_close(like);
}

// ---- csv --------------------------------------------------------------------------------------

// The shape of the training data, by way of its layout in words.
static tt_dataset *
shape_of_csv(const char *training, const tt_csv_spec *csv)
{
    tt_dataset *data, *out;
    tt_csv_layout *layout;
    tt_error err = {0};
    write_file(input, training, strlen(training));
    tt_data_spec spec = {.format = "csv", .path = input, .csv = csv};
    assert_int_equal(tt_dataset_open(&spec, &data, &err), TT_OK);
    assert_int_equal(tt_csv_layout_of(data, &layout), TT_OK);
    tt_data_shape shape = {.layout = TT_DATA_SPARSE,
                           .feature_count = data->feature_count,
                           .class_count = data->class_count,
                           .class_label = data->class_label,
                           .csv = layout};
    tt_status status = tt_dataset_shape_open(&shape, "model", &out, &err);
    if (status != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    shape.feature_count++;
    tt_dataset *other;
    assert_int_equal(tt_dataset_shape_open(&shape, "model", &other, &err), TT_INVALID);
    tt_csv_layout_free(layout);
    tt_dataset_close(data);
    return out;
}

// The rows of a text are predicted as those of the training text, line for line.
static void
same_lines(const tt_dataset *like, const char *csv, const char *expected, uint32_t unknown_columns)
{
    tt_predict_result result;
    tt_error err = {0};
    write_file(input, csv, strlen(csv));
    tt_status status =
        predict("logistic_regression", "csv", like, TT_PREDICT_SCORES, 1, &result, &err);
    if (status != TT_OK)
        fail_msg("%s: %s: %s", csv, err.where, err.what);
    assert_int_equal(result.unknown_columns, unknown_columns);
    size_t size;
    char *lines = (char *)read_file(output, &size);
    lines[size] = '\0';
    assert_string_equal(lines, expected);
    free(lines);
}

static void
csv_is_read_as_in_training(void **state)
{
    TT_UNUSED(state);
    static const tt_csv_spec csv = {.hash_bits = 5, .label = "y", .ignore = "id"};
    static const char training[] = "id,age,y,city\n7,30,1,Oslo\n8,20,0,Bergen\n9,,1,Oslo\n";
    tt_dataset *like = shape_of_csv(training, &csv);
    char expected[256];
    // age is feature 0, the city one of 32 from 1 on: the rows tell by their scores
    tt_predict_result result;
    tt_error err = {0};
    assert_int_equal(
        predict("logistic_regression", "csv", like, TT_PREDICT_SCORES, 1, &result, &err), TT_OK);
    size_t size;
    char *lines = (char *)read_file(output, &size);
    lines[size] = '\0';
    (void)snprintf(expected, sizeof expected, "%s", lines);
    free(lines);
    double first = strtod(strchr(expected, ' '), NULL),
           third = strtod(strrchr(expected, ' '), NULL);
    assert_true(fabs(first - third - 30 * (double)params[0]) < 1e-4);

    same_lines(like, training, expected, 0);
    // without the label; in another order; with a label that is no number; with columns besides
    same_lines(like, "id,age,city\n7,30,Oslo\n8,20,Bergen\n9,,Oslo\n", expected, 0);
    same_lines(like, "city,age\nOslo,30\nBergen,20\nOslo,\n", expected, 0);
    same_lines(like, "y,city,x,age,z\n?,Oslo,1,30,u\nyes,Bergen,2,20,v\n,Oslo,3,,w\n", expected, 2);
    // without a header: by number, with the label's column and without
    same_lines(like, "7,30,1,Oslo\n8,20,0,Bergen\n9,,1,Oslo\n", expected, 0);
    same_lines(like, "7,30,Oslo\n8,20,Bergen\n9,,Oslo\n", expected, 0);
    static const char narrow[] = "30,Oslo\n";
    write_file(input, narrow, strlen(narrow));
    assert_int_equal(
        predict("logistic_regression", "csv", like, TT_PREDICT_LABEL, 1, &result, &err),
        TT_INVALID);
    assert_string_equal(err.what, "2 columns; the training data has 4, or 3 without the label");
    // in two files, each with its header or none
    static const char second[] = "city,age\nOslo,\n", bare[] = "9,,Oslo\n";
    write_file(inputs[1], second, strlen(second));
    input_count = 2;
    same_lines(like, "city,age\nOslo,30\nBergen,20\n", expected, 0);
    write_file(inputs[1], bare, strlen(bare));
    same_lines(like, "7,30,Oslo\n8,20,Bergen\n", expected, 0);
    write_file(inputs[1], second, strlen(second));
    assert_int_equal(
        predict("logistic_regression", "csv", like, TT_PREDICT_LABEL, 1, &result, &err),
        TT_INVALID);
    assert_memory_equal(err.where, inputs[1], strlen(inputs[1]));
    assert_string_equal(err.where + strlen(inputs[1]), ":1");
    assert_memory_equal(err.what, "the columns are named here", 26);
    tt_dataset_close(like);
}

// Words alone: a first row is no header where training had none.
static void
csv_rows_of_words_are_not_taken_for_a_header(void **state)
{
    TT_UNUSED(state);
    static const tt_csv_spec csv = {.hash_bits = 4, .label = "3", .categorical = "1,2"};
    tt_dataset *like = shape_of_csv("Oslo,red,1\nBergen,blue,0\nOslo,blue,1\n", &csv);
    tt_predict_result result;
    tt_error err = {0};
    static const char rows[] = "Oslo,blue\nBergen,blue\n";
    write_file(input, rows, strlen(rows));
    assert_int_equal(
        predict("logistic_regression", "csv", like, TT_PREDICT_LABEL, 1, &result, &err), TT_OK);
    assert_int_equal(result.rows, 2);
    tt_dataset_close(like);
}

static void
failing_allocations_are_survived(void **state)
{
    TT_UNUSED(state);
    int failed = 0;
    (void)make_rows(200, 1, 1);
    tt_dataset *like = shape_of(TT_DATA_SPARSE, 2);
    tt_model_config config = {.kind = "linear_svm", .bias = 1, .trained = 1};
    tt_model *model;
    tt_error err = {0};
    assert_int_equal(tt_model_open(&config, like, &model, &err), TT_OK);
    tt_predict_spec spec = {.model = model,
                            .params = params,
                            .like = like,
                            .format = "libsvm",
                            .paths = input_list,
                            .path_count = input_count,
                            .output_path = output,
                            .threads = 2};
    for (int n = 1; n < 40; n++) {
        tt_predict_result result;
        tt_mem_fail_nth((uint64_t)n);
        tt_status status = tt_predict(&spec, &result, &err);
        tt_mem_fail_nth(0);
        assert_true(status == TT_OK || status == TT_NOMEM);
        assert_int_equal(access(output, F_OK) == 0, status == TT_OK);
        (void)unlink(output);
        failed += status == TT_NOMEM;
    }
    assert_true(failed >= 5);
    tt_model_close(model);
    tt_dataset_close(like);
    forget_rows();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(libsvm_rows_are_predicted, setup, teardown),
        cmocka_unit_test_setup_teardown(idx_items_are_predicted, setup, teardown),
        cmocka_unit_test_setup_teardown(several_files_follow_one_another, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_rows_have_a_place, setup, teardown),
        cmocka_unit_test_setup_teardown(csv_is_read_as_in_training, setup, teardown),
        cmocka_unit_test_setup_teardown(csv_rows_of_words_are_not_taken_for_a_header, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(failing_allocations_are_survived, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
