// A data set without rows: what data of a kind look like.
#include "csv_columns.h"
#include <math.h>
#include <string.h>

static tt_status
check(const tt_data_shape *shape, const char *where, tt_error *err)
{
    if (shape->feature_count == 0 || shape->feature_count > TTI_FEATURES_MAX)
        return tt_error_set(err, TT_INVALID, where, NULL, "data cannot have %u features",
                            shape->feature_count);
    if (shape->class_count < 2 || shape->class_count > TTI_CLASSES_MAX)
        return tt_error_set(err, TT_INVALID, where, NULL, "data cannot have %u classes",
                            shape->class_count);
    for (uint32_t i = 0; i < shape->class_count; i++)
        if (!isfinite(shape->class_label[i]) ||
            (i > 0 && shape->class_label[i] <= shape->class_label[i - 1]))
            return tt_error_set(err, TT_INVALID, where, NULL,
                                "the labels of the classes do not ascend");
    if (shape->layout == TT_DATA_DENSE_U8 && !(isfinite(shape->scale) && shape->scale > 0))
        return tt_error_set(err, TT_INVALID, where, NULL, "bytes cannot be scaled by %g",
                            (double)shape->scale);
    return TT_OK;
}

static tt_status
restore_columns(const tt_data_shape *shape, const char *where, tt_dataset *data, tt_error *err)
{
    data->columns = tt_mem_zalloc(1, sizeof *data->columns);
    if (data->columns == NULL)
        return tt_error_set(err, TT_NOMEM, where, NULL, "no memory for the columns");
    TT_TRY(tti_csv_columns_restore(shape->csv, where, data->columns, err));
    if (data->columns->width == shape->feature_count)
        return TT_OK;
    return tt_error_set(err, TT_INVALID, where, NULL, "the columns make %u features, not %u",
                        data->columns->width, shape->feature_count);
}

tt_status
tt_dataset_shape_open(const tt_data_shape *shape,
                      const char *where,
                      tt_dataset **out,
                      tt_error *err)
{
    *out = NULL;
    TT_TRY(check(shape, where, err));
    tt_dataset *data = tt_mem_zalloc(1, sizeof *data);
    if (data == NULL)
        return tt_error_set(err, TT_NOMEM, where, NULL, "no memory for a data set");
    data->layout = shape->layout;
    data->feature_count = shape->feature_count;
    data->class_count = shape->class_count;
    data->scale = shape->scale;
    memcpy(data->class_label, shape->class_label, shape->class_count * sizeof(double));
    tt_status status = TT_OK;
    if (shape->csv != NULL)
        status = restore_columns(shape, where, data, err);
    if (status != TT_OK) {
        tt_dataset_close(data);
        return status;
    }
    *out = data;
    return TT_OK;
}
