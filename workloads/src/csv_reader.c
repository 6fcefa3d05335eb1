// CSV text -> data set.
#include "csv_columns.h"
#include "feature_hash.h"
#include "text_reader.h"

typedef struct csv_job {
    const tt_data_spec *spec;
    tt_dataset *out;
    tti_category_set *categories; // training data only
} csv_job;

static tt_status
prepare(void *self, tti_text_block *block, const char *path, tt_error *err)
{
    csv_job *job = self;
    if (block->format != NULL) // planned by the first file
        return tti_csv_columns_check(job->spec, path, block, block->format, err);
    struct tt_csv_columns *columns = tt_mem_zalloc(1, sizeof *columns);
    if (columns == NULL)
        return tt_error_set(err, TT_NOMEM, job->spec->path, NULL, "no memory for the columns");
    job->out->columns = columns; // closed with the data set
    TT_TRY(tti_csv_columns_plan(job->spec, block, columns, err));
    block->format = columns;
    if (job->spec->like == NULL && columns->width > columns->numeric_count &&
        tti_category_set_open(columns->hash_bits, &job->categories) != TT_OK)
        return tt_error_set(err, TT_NOMEM, job->spec->path, "lower data.csv.hash_bits",
                            "no memory to count the categories");
    return TT_OK;
}

static tt_status
appended(void *self, const tti_text_block *block, tt_error *err)
{
    csv_job *job = self;
    for (size_t i = 0; job->categories != NULL && i < block->token_count; i++)
        if (tti_category_set_add(job->categories, block->token[i]) != TT_OK)
            return tt_error_set(err, TT_NOMEM, job->spec->path,
                                "ignore columns whose values are all different",
                                "no memory to count the categories");
    return TT_OK;
}

tt_status
tti_csv_read(const tt_data_spec *spec,
             const tti_text_consumer *consumer,
             tt_dataset *out,
             tt_error *err)
{
    static const tti_text_format format = {
        .what = "CSV text",
        .lines = "a header and blank lines",
        .feature_advice = "name columns in data.csv.numeric or data.csv.categorical",
        .parse = tti_csv_parse,
        .prepare = prepare,
        .appended = appended,
        .tokens = 1,
    };
    csv_job self = {.spec = spec, .out = out};
    tti_text_job job = {
        .format = &format, .self = &self, .spec = spec, .consumer = consumer, .out = out};
    tt_status status = tti_text_read(&job, err);
    if (status == TT_OK && self.categories != NULL) {
        out->category_count = tti_category_set_count(self.categories);
        out->category_collisions = tti_category_set_collisions(self.categories);
    }
    tti_category_set_close(self.categories);
    return status;
}

tt_status
tti_csv_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err)
{
    return tti_csv_read(spec, NULL, out, err);
}
