// Predictions for the items of IDX files: blocks of items, scored by all threads, in order.
#include "idx_stream.h"
#include "ordered_pipeline.h"
#include "predict_rows.h"
#include <string.h>

#define BLOCK_BYTES ((size_t)512 * 1024)

typedef struct dense_block {
    uint8_t *bytes;
    size_t row_count;
    tt_status fill_status; // not TT_OK: reading failed behind these rows
    tt_error fill_error;
    tti_predicted lines;
} dense_block;

typedef struct dense_job {
    tti_predictor *predictor;
    const char *path;
    tti_idx_stream *stream;
    size_t block_rows;
    int ended;
    tt_error *err;
} dense_job;

static int
fill(void *self, void *slot)
{
    dense_job *job = self;
    dense_block *block = slot;
    block->row_count = 0;
    block->fill_status = TT_OK;
    if (job->ended)
        return 0;
    if (block->bytes == NULL)
        block->bytes = tt_mem_alloc(job->block_rows * tti_idx_stream_width(job->stream));
    if (block->bytes == NULL)
        block->fill_status = tt_error_set(&block->fill_error, TT_NOMEM, job->path,
                                          "use fewer threads", "no memory for a block of items");
    else
        block->fill_status = tti_idx_stream_read(job->stream, block->bytes, job->block_rows,
                                                 &block->row_count, &block->fill_error);
    job->ended = block->fill_status != TT_OK || block->row_count < job->block_rows;
    return block->row_count > 0 || block->fill_status != TT_OK;
}

static void
work(void *self, void *slot)
{
    const dense_job *job = self;
    dense_block *block = slot;
    tti_predict_dense(job->predictor, block->bytes, block->row_count, &block->lines);
}

static tt_status
drain(void *self, void *slot)
{
    dense_job *job = self;
    dense_block *block = slot;
    TT_TRY(tti_predicted_write(job->predictor, &block->lines, job->err));
    job->predictor->result->rows += block->row_count;
    if (block->fill_status != TT_OK && job->err != NULL)
        *job->err = block->fill_error;
    return block->fill_status;
}

static tt_status
run(dense_job *job)
{
    static const tti_pipeline_ops ops = {fill, work, drain};
    int threads = tti_thread_count(job->predictor->spec->threads);
    uint32_t slot_count = tti_pipeline_slots(threads);
    dense_block *blocks = tt_mem_zalloc(slot_count, sizeof *blocks);
    if (blocks == NULL)
        return tt_error_set(job->err, TT_NOMEM, job->path, NULL, "no memory to predict");
    tt_status status = tti_pipeline_run(&ops, job, blocks, sizeof *blocks, slot_count, threads);
    for (uint32_t i = 0; i < slot_count; i++) {
        tti_predicted_free(&blocks[i].lines);
        tt_mem_free(blocks[i].bytes);
    }
    tt_mem_free(blocks);
    return status;
}

static tt_status
predict_file(tti_predictor *self, const char *path, tt_error *err)
{
    dense_job job = {.predictor = self, .path = path, .err = err};
    TT_TRY(tti_idx_stream_open(path, self->spec->like, &job.stream, err));
    job.block_rows = TT_MAX(BLOCK_BYTES / tti_idx_stream_width(job.stream), (size_t)1);
    tt_status status = run(&job);
    tti_idx_stream_close(job.stream);
    return status;
}

tt_status
tti_predict_idx(tti_predictor *self, tt_error *err)
{
    for (size_t i = 0; i < self->spec->path_count; i++)
        TT_TRY(predict_file(self, self->spec->paths[i], err));
    return TT_OK;
}
