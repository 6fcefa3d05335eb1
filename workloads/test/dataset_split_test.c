// Goal: a split takes about the share asked for, loses and doubles no row, and depends on nothing
// but seed and row number. Method: rows that carry their own number, in every layout; the same rows
// with more behind them.
#include "tt/workloads_data.h"
#include "tt/workloads_model.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <math.h>

enum { ROWS = 20011, WIDTH = 5 };

// Row i has i % 4 entries (sparse) and its number in the first of them, and class i % 3.
static tt_dataset *
numbered_rows(tt_data_layout layout, uint64_t rows)
{
    tt_dataset *data = tt_mem_zalloc(1, sizeof *data);
    data->layout = layout;
    data->class_count = 3;
    data->feature_count = WIDTH;
    data->label = tt_mem_zalloc(rows, sizeof *data->label);
    data->row_begin = layout == TT_DATA_SPARSE ? tt_mem_zalloc(rows + 1, sizeof(uint64_t)) : NULL;
    data->index = layout == TT_DATA_SPARSE ? tt_mem_zalloc(4 * rows, sizeof(uint32_t)) : NULL;
    data->value = layout == TT_DATA_SPARSE ? tt_mem_zalloc(4 * rows, sizeof(float)) : NULL;
    data->floats = layout == TT_DATA_DENSE_F32 ? tt_mem_zalloc(WIDTH * rows, sizeof(float)) : NULL;
    data->bytes = layout == TT_DATA_DENSE_U8 ? tt_mem_zalloc(WIDTH * rows, 1) : NULL;
    for (uint64_t i = 0; i < rows; i++) {
        data->label[i] = (uint16_t)(i % 3);
        uint64_t entries = layout == TT_DATA_SPARSE ? 1 + i % 4 : WIDTH;
        for (uint64_t k = 0; k < entries; k++, data->nonzero_count++) {
            if (data->index != NULL)
                data->index[data->nonzero_count] = (uint32_t)k;
            if (data->value != NULL)
                data->value[data->nonzero_count] = (float)(i + k);
            if (data->floats != NULL)
                data->floats[data->nonzero_count] = (float)(i + k);
            if (data->bytes != NULL)
                data->bytes[data->nonzero_count] = (uint8_t)(i + k);
        }
        data->row_count++;
        if (data->row_begin != NULL)
            data->row_begin[i + 1] = data->nonzero_count;
    }
    return data;
}

// The number a row carries; in bytes only its last eight bits.
static uint64_t
number_of(const tt_dataset *data, uint64_t row)
{
    uint64_t begin = data->layout == TT_DATA_SPARSE ? data->row_begin[row] : row * WIDTH;
    return data->value != NULL    ? (uint64_t)data->value[begin]
           : data->floats != NULL ? (uint64_t)data->floats[begin]
                                  : data->bytes[begin];
}

static void
check_layout(tt_data_layout layout)
{
    tt_dataset *data = numbered_rows(layout, ROWS), *held;
    assert_int_equal(tt_dataset_split(data, 0.137, 5, &held, NULL), TT_OK);
    assert_int_equal(data->row_count + held->row_count, ROWS);
    // four standard deviations of a binomial count
    double expected = 0.137 * ROWS, sd = sqrt(expected * (1 - 0.137));
    assert_true(fabs((double)held->row_count - expected) < 4 * sd);
    uint64_t kept = 0, taken = 0, mask = layout == TT_DATA_DENSE_U8 ? 255 : UINT64_MAX;
    for (uint64_t i = 0; i < ROWS; i++) {
        int is_kept = kept < data->row_count && number_of(data, kept) == (i & mask) &&
                      data->label[kept] == i % 3;
        int is_taken = !is_kept && taken < held->row_count &&
                       number_of(held, taken) == (i & mask) && held->label[taken] == i % 3;
        assert_true(is_kept || is_taken);
        kept += (uint64_t)is_kept;
        taken += (uint64_t)is_taken;
    }
    if (layout == TT_DATA_SPARSE) {
        assert_int_equal(data->row_begin[data->row_count], data->nonzero_count);
        assert_int_equal(held->row_begin[held->row_count], held->nonzero_count);
    }
    tt_dataset_close(held);
    tt_dataset_close(data);
}

static void
no_row_is_lost_or_doubled(void **state)
{
    TT_UNUSED(state);
    check_layout(TT_DATA_SPARSE);
    check_layout(TT_DATA_DENSE_F32);
    check_layout(TT_DATA_DENSE_U8);
}

static void
only_seed_and_row_number_decide(void **state)
{
    TT_UNUSED(state);
    tt_dataset *few = numbered_rows(TT_DATA_SPARSE, 4000),
               *many = numbered_rows(TT_DATA_SPARSE, 9000),
               *other = numbered_rows(TT_DATA_SPARSE, 4000), *of_few, *of_many, *of_other;
    assert_int_equal(tt_dataset_split(few, 0.25, 7, &of_few, NULL), TT_OK);
    assert_int_equal(tt_dataset_split(many, 0.25, 7, &of_many, NULL), TT_OK);
    assert_int_equal(tt_dataset_split(other, 0.25, 8, &of_other, NULL), TT_OK);
    uint64_t same = 0;
    for (uint64_t i = 0; i < of_few->row_count; i++)
        assert_int_equal(number_of(of_few, i), number_of(of_many, i));
    for (uint64_t i = 0; i < TT_MIN(of_few->row_count, of_other->row_count); i++)
        same += number_of(of_few, i) == number_of(of_other, i);
    assert_true(same < of_few->row_count / 2);
    tt_dataset *all[] = {few, many, other, of_few, of_many, of_other};
    for (size_t i = 0; i < TT_COUNT_OF(all); i++)
        tt_dataset_close(all[i]);
}

static void
running_out_of_memory_changes_nothing(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data = numbered_rows(TT_DATA_SPARSE, 500), *held;
    for (int nth = 1; nth <= 5; nth++) {
        tt_mem_fail_nth((uint64_t)nth);
        assert_int_equal(tt_dataset_split(data, 0.5, 1, &held, NULL), TT_NOMEM);
        tt_mem_fail_nth(0);
        assert_null(held);
        assert_int_equal(data->row_count, 500);
    }
    assert_int_equal(tt_dataset_split(data, 0.5, 1, &held, NULL), TT_OK);
    tt_dataset_close(held);
    tt_dataset_close(data);
}

static void
prior_loss_is_the_entropy_of_the_shares(void **state)
{
    TT_UNUSED(state);
    tt_dataset *data = numbered_rows(TT_DATA_DENSE_F32, 3000);
    tt_model *model;
    tt_model_config config = {.kind = "softmax_regression"};
    tt_error err = {0};
    assert_int_equal(tt_model_open(&config, data, &model, &err), TT_OK);
    // three classes of equal share; the sum of 3000 terms is exact to 1e-12
    assert_true(fabs(tt_model_prior_loss(model, data, data) - log(3)) < 1e-12);
    tt_model_close(model);
    tt_dataset_close(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_is_lost_or_doubled),
        cmocka_unit_test(only_seed_and_row_number_decide),
        cmocka_unit_test(running_out_of_memory_changes_nothing),
        cmocka_unit_test(prior_loss_is_the_entropy_of_the_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
