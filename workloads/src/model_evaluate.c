// Evaluation on a whole data set: fixed chunks, any number of threads, sums in chunk order.
#include "model_auc.h"
#include "model_internal.h"
#include <math.h>
#include <string.h>

enum { CHUNK_ROWS = 1024, THREADS_MAX = 64 };

typedef struct chunk_sums {
    double loss;
    uint64_t correct;
} chunk_sums;

typedef struct evaluation {
    const tt_model *model;
    const tt_vec_ops *ops;
    const tt_dataset *data;
    const float *weights;             // [data features or more][width]
    const float *params;              // the caller's, for the bias
    uint16_t class_of[256];           // class in data -> class of the model
    chunk_sums *chunks;               // [chunk_count], each written by the thread that took it
    float *score;                     // binary and ranked: [row_count]
    uint8_t *positive;                // binary: [row_count]
    int unranked;                     // 1: without score and positive, for the AUC
    float *padded;                    // weights when the data have more features than the model
    uint64_t chunk_count, next_chunk; // next_chunk: taken by tt_add_relaxed
} evaluation;

// What one thread works in.
typedef struct evaluator {
    const evaluation *plan;
    uint64_t *next_chunk;
    float *scores;    // [CHUNK_ROWS][width]
    float *workspace; // dense and wide: [features][width]
    float sign[CHUNK_ROWS];
    uint16_t label[CHUNK_ROWS];
    tt_thread thread;
} evaluator;

static void
score_rows(evaluator *e, uint64_t first, size_t n)
{
    const evaluation *plan = e->plan;
    const tt_dataset *data = plan->data;
    const size_t width = plan->model->width;
    if (data->layout == TT_DATA_SPARSE) {
        const tt_vec_csr rows = {data->row_begin, data->index, data->value, NULL, first, n};
        plan->ops->csr_dot(&rows, plan->weights, width, e->scores);
    } else {
        const uint8_t *bytes = data->layout == TT_DATA_DENSE_U8 ? data->bytes : NULL;
        const tt_vec_dense rows = {
            bytes, data->floats, data->scale, data->feature_count, NULL, first, n};
        plan->ops->dense_dot(&rows, plan->weights, width, e->scores, e->workspace);
    }
    tti_model_add_bias(plan->model, plan->params, plan->model->rows - 1, e->scores, n);
}

size_t
tti_model_choose(const float *scores, size_t width)
{
    if (width == 1)
        return scores[0] > 0;
    size_t best = 0;
    for (size_t k = 1; k < width; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}

static void
evaluate_chunk(evaluator *e, uint64_t chunk)
{
    const evaluation *plan = e->plan;
    const tt_model *model = plan->model;
    const uint64_t first = chunk * CHUNK_ROWS;
    const size_t n = (size_t)TT_MIN((uint64_t)CHUNK_ROWS, plan->data->row_count - first);
    const size_t width = model->width;
    score_rows(e, first, n);
    chunk_sums sums = {0, 0};
    for (size_t i = 0; i < n; i++) {
        e->label[i] = plan->class_of[plan->data->label[first + i]];
        e->sign[i] = e->label[i] != 0 ? 1.0F : -1.0F;
        sums.correct += tti_model_choose(e->scores + i * width, width) == e->label[i];
    }
    if (plan->score != NULL)
        for (size_t i = 0; i < n; i++) {
            plan->score[first + i] = e->scores[i];
            plan->positive[first + i] = e->label[i] != 0;
        }
    sums.loss = model->kind->loss(plan->ops, e->scores, e->sign, e->label, 1.0F, NULL, n, width);
    plan->chunks[chunk] = sums;
}

static void *
evaluate_chunks(void *self)
{
    evaluator *e = self;
    for (;;) { // ends when the chunks are used up
        const uint64_t chunk = tt_add_relaxed(e->next_chunk, 1);
        if (chunk >= e->plan->chunk_count)
            return NULL;
        evaluate_chunk(e, chunk);
    }
}

// Labels are matched by their value in the file.
static tt_status
match_classes(evaluation *plan, tt_error *err)
{
    const tt_dataset *train = plan->model->train, *data = plan->data;
    for (uint32_t c = 0; c < data->class_count; c++) {
        uint32_t k = 0;
        while (k < train->class_count && train->class_label[k] != data->class_label[c])
            k++;
        if (k == train->class_count)
            return tt_error_set(err, TT_INVALID, "evaluation", "check that both files label alike",
                                "label %g is not among the %u labels of the training data",
                                data->class_label[c], train->class_count);
        plan->class_of[c] = (uint16_t)k;
    }
    return TT_OK;
}

static tt_status
check_shape(const evaluation *plan, tt_error *err)
{
    const tt_dataset *train = plan->model->train, *data = plan->data;
    if (data->layout != train->layout)
        return tt_error_set(err, TT_INVALID, "evaluation", "use the same format for both",
                            "the model was trained on data of another layout");
    if (data->layout != TT_DATA_SPARSE && data->feature_count != plan->model->features)
        return tt_error_set(err, TT_INVALID, "evaluation", "check the files",
                            "rows have %u features, the training data have %u", data->feature_count,
                            plan->model->features);
    if (data->class_count == 0 || data->row_count == 0)
        return tt_error_set(err, TT_INVALID, "evaluation", "check the file", "the data have %s",
                            data->row_count == 0 ? "no rows" : "no classes");
    return TT_OK;
}

// Features that the model has not seen weigh nothing: zero rows behind the table.
static tt_status
pad_weights(evaluation *plan)
{
    const tt_model *model = plan->model;
    plan->weights = plan->params;
    if (plan->data->feature_count <= model->features)
        return TT_OK;
    const size_t width = model->width;
    plan->padded = tt_mem_zalloc_vector(plan->data->feature_count * width, sizeof(float));
    if (plan->padded == NULL)
        return TT_NOMEM;
    memcpy(plan->padded, plan->params, model->features * width * sizeof(float));
    plan->weights = plan->padded;
    return TT_OK;
}

static tt_status
alloc_plan(evaluation *plan)
{
    const uint64_t rows = plan->data->row_count;
    plan->chunk_count = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    plan->chunks = tt_mem_zalloc(plan->chunk_count, sizeof *plan->chunks);
    if (plan->chunks == NULL)
        return TT_NOMEM;
    if (plan->model->kind->binary && !plan->unranked) {
        plan->score = tt_mem_zalloc(rows, sizeof *plan->score);
        plan->positive = tt_mem_zalloc(rows, sizeof *plan->positive);
        if (plan->score == NULL || plan->positive == NULL)
            return TT_NOMEM;
    }
    return pad_weights(plan);
}

static void
free_evaluators(evaluator *evaluators, size_t count)
{
    for (size_t t = 0; evaluators != NULL && t < count; t++) {
        tt_mem_free(evaluators[t].scores);
        tt_mem_free(evaluators[t].workspace);
    }
    tt_mem_free(evaluators);
}

static tt_status
alloc_evaluators(evaluation *plan, size_t count, evaluator **out)
{
    const size_t width = plan->model->width;
    const int wide = plan->data->layout != TT_DATA_SPARSE && width > 1;
    *out = tt_mem_zalloc(count, sizeof **out);
    if (*out == NULL)
        return TT_NOMEM;
    for (size_t t = 0; t < count; t++) {
        evaluator *e = *out + t;
        e->plan = plan;
        e->next_chunk = &plan->next_chunk;
        e->scores = tt_mem_zalloc_vector(CHUNK_ROWS * width, sizeof(float));
        if (wide)
            e->workspace = tt_mem_zalloc_vector(plan->model->features * width, sizeof(float));
        if (e->scores == NULL || (wide && e->workspace == NULL)) {
            free_evaluators(*out, count);
            *out = NULL;
            return TT_NOMEM;
        }
    }
    return TT_OK;
}

// The calling thread works too; helpers are joined whatever happens.
static tt_status
run_evaluators(evaluator *evaluators, size_t count, tt_error *err)
{
    tt_status status = TT_OK;
    for (size_t t = 1; t < count && status == TT_OK; t++)
        status = tt_thread_start(&evaluators[t].thread, "tt-evaluate", evaluate_chunks,
                                 &evaluators[t], err);
    (void)evaluate_chunks(&evaluators[0]);
    for (size_t t = 1; t < count; t++)
        if (evaluators[t].thread.running)
            tt_thread_join(&evaluators[t].thread);
    return status;
}

double
tt_model_regulariser(const tt_model *model, const float *params)
{
    const size_t weights = (size_t)model->features * model->width;
    return model->l2 > 0 ? model->l2 / 2 * tt_vec_best()->sum_squares(params, weights) : 0;
}

static tt_status
sum_up(const evaluation *plan, tt_model_metrics *out)
{
    const tt_model *model = plan->model;
    const double rows = (double)plan->data->row_count;
    double loss = 0;
    uint64_t correct = 0;
    for (uint64_t c = 0; c < plan->chunk_count; c++) {
        loss += plan->chunks[c].loss;
        correct += plan->chunks[c].correct;
    }
    const size_t weights = (size_t)model->features * model->width;
    const double squares = plan->ops->sum_squares(plan->params, weights);
    double bias_squares = 0;
    if (model->bias)
        bias_squares = plan->ops->sum_squares(plan->params + weights, model->width);
    out->rows = plan->data->row_count;
    out->loss = loss / rows;
    out->objective = out->loss + model->l2 / 2 * squares;
    out->accuracy = (double)correct / rows;
    out->finite = isfinite(loss) && isfinite(squares) && isfinite(bias_squares);
    out->auc = (double)NAN;
    if (plan->score == NULL)
        return TT_OK;
    return tti_model_auc(plan->score, plan->positive, (size_t)plan->data->row_count, &out->auc);
}

static tt_status
evaluate(evaluation *plan, int threads, tt_model_metrics *out, tt_error *err)
{
    TT_TRY(alloc_plan(plan));
    uint64_t count = TT_MIN((uint64_t)TT_MAX(threads, 1), plan->chunk_count);
    count = TT_MIN(count, (uint64_t)THREADS_MAX);
    evaluator *evaluators;
    TT_TRY(alloc_evaluators(plan, (size_t)count, &evaluators));
    tt_status status = run_evaluators(evaluators, (size_t)count, err);
    free_evaluators(evaluators, (size_t)count);
    return status == TT_OK ? sum_up(plan, out) : status;
}

static tt_status
evaluate_plan(evaluation *plan, int threads, tt_model_metrics *out, tt_error *err)
{
    *out = (tt_model_metrics){0};
    TT_TRY(check_shape(plan, err));
    TT_TRY(match_classes(plan, err));
    tt_status status = evaluate(plan, threads, out, err);
    if (status == TT_NOMEM)
        (void)tt_error_set(err, TT_NOMEM, "evaluation", NULL, "no memory for the evaluation");
    tt_mem_free(plan->chunks);
    tt_mem_free(plan->score);
    tt_mem_free(plan->positive);
    tt_mem_free(plan->padded);
    return status;
}

tt_status
tt_model_evaluate(const tt_model *model,
                  const tt_dataset *data,
                  const float *params,
                  int threads,
                  tt_model_metrics *out,
                  tt_error *err)
{
    evaluation plan = {.model = model, .ops = tt_vec_best(), .data = data, .params = params};
    return evaluate_plan(&plan, threads, out, err);
}

tt_status
tt_model_evaluate_loss(const tt_model *model,
                       const tt_dataset *data,
                       const float *params,
                       tt_model_metrics *out,
                       tt_error *err)
{
    evaluation plan = {
        .model = model, .ops = tt_vec_best(), .data = data, .params = params, .unranked = 1};
    return evaluate_plan(&plan, 1, out, err);
}
