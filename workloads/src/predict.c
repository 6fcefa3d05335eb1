// Predictions for text: the reader's blocks, each scored where it was parsed.
#include "csv_columns.h"
#include "libsvm_parse.h"
#include "predict_rows.h"
#include "text_reader.h"
#include <string.h>

static void
work(void *self, tti_text_block *block)
{
    if (block->product == NULL)
        block->product = tt_mem_zalloc(1, sizeof(tti_predicted));
    if (block->product == NULL)
        return; // drain tells
    tti_predict_sparse(self, block->row_length, block->row_count, block->index,
                       block->all_ones ? NULL : block->value, block->product);
}

static tt_status
drain(void *self, tti_text_block *block, tt_error *err)
{
    tti_predictor *predictor = self;
    static const tti_predicted none = {.status = TT_NOMEM};
    TT_TRY(tti_predicted_write(predictor, block->product != NULL ? block->product : &none, err));
    predictor->result->rows += block->row_count;
    predictor->result->unknown_entries += block->unknown_entries;
    predictor->result->unknown_rows += block->unknown_rows;
    return TT_OK;
}

static void
fini(tti_text_block *block)
{
    if (block->product != NULL)
        tti_predicted_free(block->product);
    tt_mem_free(block->product);
    block->product = NULL;
}

static tt_status
predict_text(tti_predictor *self, tt_error *err)
{
    const tt_predict_spec *spec = self->spec;
    tt_data_spec data = {.format = spec->format,
                         .path = spec->paths[0],
                         .paths = spec->paths,
                         .path_count = spec->path_count,
                         .threads = spec->threads,
                         .like = spec->like,
                         .ignore_unknown = 1};
    tti_text_consumer consumer = {self, work, drain, fini};
    tt_dataset nothing = {0};
    tt_status status = strcmp(spec->format, "csv") == 0
                           ? tti_csv_read(&data, &consumer, &nothing, err)
                           : tti_libsvm_read(&data, &consumer, &nothing, err);
    const char *names;
    self->result->unknown_columns = tt_dataset_unknown_columns(&nothing, &names);
    (void)snprintf(self->result->unknown_names, sizeof self->result->unknown_names, "%s", names);
    tti_csv_columns_close(nothing.columns);
    return status;
}

tt_status
tt_predict(const tt_predict_spec *spec, tt_predict_result *result, tt_error *err)
{
    *result = (tt_predict_result){0};
    tti_predictor *self = tt_mem_zalloc(1, sizeof *self);
    if (self == NULL)
        return tt_error_set(err, TT_NOMEM, spec->paths[0], NULL, "no memory to predict");
    tt_status status = tti_predictor_open(spec, self, result, err);
    if (status == TT_OK)
        status =
            strcmp(spec->format, "idx") == 0 ? tti_predict_idx(self, err) : predict_text(self, err);
    status = tti_predictor_close(self, status, err);
    tt_mem_free(self);
    return status;
}
