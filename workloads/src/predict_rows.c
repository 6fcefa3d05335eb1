// Scores, classes and their text.
#include "predict_rows.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ROWS = 1024, NUMBER_BYTES = 24 };

// ---- life -------------------------------------------------------------------------------------

// The shortest of two ways to write a label that reads back as itself.
static void
name_labels(tti_predictor *self)
{
    const tt_dataset *like = self->spec->like;
    for (uint32_t i = 0; i < like->class_count; i++) {
        char *text = self->label[i];
        (void)snprintf(text, TTI_LABEL_BYTES, "%.15g", like->class_label[i]);
        if (strtod(text, NULL) != like->class_label[i])
            (void)snprintf(text, TTI_LABEL_BYTES, "%.17g", like->class_label[i]);
        self->label_bytes[i] = strlen(text);
    }
}

tt_status
tti_predictor_open(const tt_predict_spec *spec,
                   tti_predictor *out,
                   tt_predict_result *result,
                   tt_error *err)
{
    *out = (tti_predictor){.spec = spec, .ops = tt_vec_best(), .result = result};
    name_labels(out);
    const char *kind = tt_model_kind(spec->model);
    if (spec->columns == TT_PREDICT_PROBABILITIES && strcmp(kind, "linear_svm") == 0)
        return tt_error_set(err, TT_INVALID, NULL, "ask for decision values (scores) instead",
                            "%s has no probabilities", kind);
    size_t numbers = spec->columns == TT_PREDICT_LABEL           ? 0
                     : spec->columns == TT_PREDICT_PROBABILITIES ? spec->like->class_count
                                                                 : tt_model_width(spec->model);
    out->line_bytes_max = TTI_LABEL_BYTES + numbers * NUMBER_BYTES + 2;
    return spec->output_path != NULL ? tti_whole_file_open(&out->file, spec->output_path, err)
                                     : TT_OK;
}

tt_status
tti_predictor_close(tti_predictor *self, tt_status status, tt_error *err)
{
    if (status == TT_OK && self->spec->output_path != NULL)
        status = tti_whole_file_commit(&self->file, err);
    tti_whole_file_close(&self->file);
    return status;
}

void
tti_predicted_free(tti_predicted *lines)
{
    tt_mem_free(lines->text);
    tt_mem_free(lines->row_begin);
    tt_mem_free(lines->scores);
    tt_mem_free(lines->workspace);
    *lines = (tti_predicted){0};
}

// ---- text -------------------------------------------------------------------------------------

static char *
put_number(char *to, double value)
{
    *to++ = ' ';
    return to + snprintf(to, NUMBER_BYTES - 1, "%.9g", value);
}

// Of the classes in ascending order. logistic: 1 / (1 + exp(-z)) is the larger label's.
static char *
put_probabilities(char *to, const float *scores, size_t width)
{
    if (width == 1) {
        to = put_number(to, 1 / (1 + exp((double)scores[0])));
        return put_number(to, 1 / (1 + exp(-(double)scores[0])));
    }
    double top = (double)scores[0], sum = 0;
    for (size_t k = 1; k < width; k++)
        top = TT_MAX(top, (double)scores[k]);
    for (size_t k = 0; k < width; k++)
        sum += exp((double)scores[k] - top);
    for (size_t k = 0; k < width; k++)
        to = put_number(to, exp((double)scores[k] - top) / sum);
    return to;
}

static void
put_lines(const tti_predictor *self, const float *scores, size_t n, tti_predicted *out)
{
    const size_t width = tt_model_width(self->spec->model);
    char *to = out->text + out->text_bytes;
    for (size_t i = 0; i < n; i++, scores += width) {
        size_t best = tti_model_choose(scores, width);
        memcpy(to, self->label[best], TTI_LABEL_BYTES);
        to += self->label_bytes[best];
        if (self->spec->columns == TT_PREDICT_PROBABILITIES)
            to = put_probabilities(to, scores, width);
        for (size_t k = 0; self->spec->columns == TT_PREDICT_SCORES && k < width; k++)
            to = put_number(to, (double)scores[k]);
        *to++ = '\n';
    }
    out->text_bytes = (size_t)(to - out->text);
}

// Room for the lines of `rows` rows and for one chunk of scores.
static int
reserve(const tti_predictor *self, size_t rows, int dense, tti_predicted *out)
{
    const tt_model *model = self->spec->model;
    const size_t width = tt_model_width(model), bytes = rows * self->line_bytes_max;
    out->text_bytes = 0;
    out->status = TT_NOMEM;
    if (bytes > out->text_capacity) {
        tt_mem_free(out->text);
        out->text_capacity = 0;
        out->text = tt_mem_alloc(bytes);
        if (out->text == NULL)
            return 0;
        out->text_capacity = bytes;
    }
    if (out->scores == NULL)
        out->scores = tt_mem_zalloc_vector(CHUNK_ROWS * width, sizeof *out->scores);
    if (dense && width > 1 && out->workspace == NULL)
        out->workspace =
            tt_mem_zalloc_vector((size_t)model->features * width, sizeof *out->workspace);
    if (out->scores == NULL || (dense && width > 1 && out->workspace == NULL))
        return 0;
    out->status = TT_OK;
    return 1;
}

// ---- scores -----------------------------------------------------------------------------------

static int
reserve_rows(const uint32_t *row_length, size_t row_count, tti_predicted *out)
{
    if (row_count + 1 > out->row_capacity) {
        tt_mem_free(out->row_begin);
        out->row_capacity = 0;
        out->row_begin = tt_mem_alloc((row_count + 1) * sizeof *out->row_begin);
        if (out->row_begin == NULL) {
            out->status = TT_NOMEM;
            return 0;
        }
        out->row_capacity = row_count + 1;
    }
    out->row_begin[0] = 0;
    for (size_t i = 0; i < row_count; i++)
        out->row_begin[i + 1] = out->row_begin[i] + row_length[i];
    return 1;
}

static void
finish_chunk(const tti_predictor *self, size_t n, tti_predicted *out)
{
    const tt_model *model = self->spec->model;
    tti_model_add_bias(model, self->spec->params, model->rows - 1, out->scores, n);
    put_lines(self, out->scores, n, out);
}

void
tti_predict_sparse(const tti_predictor *self,
                   const uint32_t *row_length,
                   size_t row_count,
                   const uint32_t *index,
                   const float *value,
                   tti_predicted *out)
{
    if (!reserve(self, row_count, 0, out) || !reserve_rows(row_length, row_count, out))
        return;
    const size_t width = tt_model_width(self->spec->model);
    for (size_t first = 0; first < row_count; first += CHUNK_ROWS) {
        size_t n = TT_MIN(row_count - first, (size_t)CHUNK_ROWS);
        const tt_vec_csr rows = {out->row_begin, index, value, NULL, first, n};
        self->ops->csr_dot(&rows, self->spec->params, width, out->scores);
        finish_chunk(self, n, out);
    }
}

void
tti_predict_dense(const tti_predictor *self,
                  const uint8_t *bytes,
                  size_t row_count,
                  tti_predicted *out)
{
    if (!reserve(self, row_count, 1, out))
        return;
    const tt_dataset *like = self->spec->like;
    const size_t width = tt_model_width(self->spec->model);
    for (size_t first = 0; first < row_count; first += CHUNK_ROWS) {
        size_t n = TT_MIN(row_count - first, (size_t)CHUNK_ROWS);
        const tt_vec_dense rows = {bytes, NULL, like->scale, like->feature_count, NULL, first, n};
        self->ops->dense_dot(&rows, self->spec->params, width, out->scores, out->workspace);
        finish_chunk(self, n, out);
    }
}

// ---- output -----------------------------------------------------------------------------------

tt_status
tti_predicted_write(tti_predictor *self, const tti_predicted *lines, tt_error *err)
{
    if (lines->status != TT_OK)
        return tt_error_set(err, lines->status, self->spec->paths[0], "use fewer threads",
                            "no memory for the predictions of a block");
    if (self->spec->output_path != NULL)
        return tti_whole_file_write(&self->file, lines->text, lines->text_bytes, err);
    for (size_t done = 0; done < lines->text_bytes;) {
        ssize_t n = write(STDOUT_FILENO, lines->text + done, lines->text_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tt_error_set(err, TT_IO, "standard output", NULL, "cannot write: %s",
                                tt_errno_text(errno));
        done += (size_t)n;
    }
    return TT_OK;
}
