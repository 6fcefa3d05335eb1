// Goal: logistic regression and SVM on a9a reach liblinear's optimum within a relative 1e-3, tuning
// on, under every consistency and with both drivers. Method: whole jobs from configs/; the optima
// 10529.5626 and 11434.04 are published figures. SKIP where the data are not there.
#include "job_test_util.h"

static char *
read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = tt_mem_zalloc(16384, 1);
    assert_true(fread(text, 1, 16383, file) > 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void
reach(const char *config, double optimum)
{
    static const char *const drivers[] = {"cluster.driver=messages", "cluster.driver=in_place"};
    static const char *const consistencies[] = {"consistency=asp", "consistency=ssp",
                                                "consistency=bsp"};
    if (access(TT_SOURCE_DIR "/../shared/data/a9a.xz", R_OK) != 0) {
        print_message("SKIP: a9a is not there\n");
        skip();
    }
    char *text = read_text(config);
    for (size_t d = 0; d < 2; d++)
        for (size_t c = 0; c < 3; c++) {
            const char *const overrides[] = {"data.train=" TT_SOURCE_DIR "/../shared/data/a9a.xz",
                                             "data.test.file=" TT_SOURCE_DIR
                                             "/../shared/data/a9a.t.xz",
                                             drivers[d], consistencies[c], NULL};
            static tt_job_result result;
            tt_error err = {0};
            if (run_job(text, overrides, &result, NULL, NULL, &err) != TT_OK)
                fail_msg("%s: %s", err.where, err.what);
            double relative = 32561 * result.objective / optimum - 1;
            print_message("%s %s: N x objective is %.2e above the optimum after %.2f s\n",
                          drivers[d], consistencies[c], relative, result.train_seconds);
            assert_true(relative < 1e-3 && relative > -1e-4);
        }
    tt_mem_free(text);
}

static void
logistic_regression_reaches_the_optimum(void **state)
{
    TT_UNUSED(state);
    reach(TT_SOURCE_DIR "/configs/a9a-logr.yaml", 10529.5626);
}

static void
svm_reaches_the_optimum(void **state)
{
    TT_UNUSED(state);
    reach(TT_SOURCE_DIR "/configs/a9a-svm.yaml", 11434.04);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_regression_reaches_the_optimum),
        cmocka_unit_test(svm_reaches_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
