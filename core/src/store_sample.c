// Iteration samples, thinned into blocks so that a run of any length fits a bounded table.
#include "store_private.h"
#include <inttypes.h>
#include <math.h>

// ---- blocks
// --------------------------------------------------------------------------------------

// Mean and sum of squared deviations of both together (Chan, Golub, LeVeque 1983, eq. 2.1).
static void
join(tti_store_block *into, const tti_store_block *more)
{
    if (more->finite > 0) {
        int64_t finite = into->finite + more->finite;
        double share = (double)more->finite / (double)finite, delta = more->mean - into->mean;
        if (into->finite == 0) {
            into->mean = more->mean;
            into->m2 = more->m2;
        } else {
            into->m2 += more->m2 + delta * delta * share * (double)into->finite;
            into->mean += delta * share;
        }
        into->finite = finite;
    }
    into->count += more->count;
    into->time_s = more->time_s;
    into->staleness_sum += more->staleness_sum;
    if (into->setting != more->setting)
        into->setting = -1;
}

static size_t
merge_pass(tti_store_block *blocks, size_t count, int64_t size, int across_settings)
{
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) {
        tti_store_block *last = &blocks[kept];
        if (last->count + blocks[i].count <= size &&
            (across_settings || last->setting == blocks[i].setting))
            join(last, &blocks[i]);
        else
            blocks[++kept] = blocks[i];
    }
    return count > 0 ? kept + 1 : 0;
}

size_t
tti_store_merge_blocks(tti_store_block *blocks, size_t count, size_t keep, int64_t *block_size)
{
    TT_ASSERT(keep > 0);
    // Ends: the size doubles until one block could hold everything.
    while (count > keep) {
        *block_size *= 2;
        count = merge_pass(blocks, count, *block_size, 0);
        if (count > keep)
            count = merge_pass(blocks, count, *block_size, 1);
    }
    return count;
}

// ---- table
// ---------------------------------------------------------------------------------------

static tt_status
insert_block(tt_store *store, const tti_store_block *b, tt_error *err)
{
    double unknown = (double)NAN;
    const tti_store_cell cells[] = {
        TTI_INT(b->first),
        TTI_INT(b->count),
        TTI_REAL(b->time_s),
        TTI_REAL(b->finite > 0 ? b->mean : unknown),
        TTI_REAL(b->finite > 0 ? sqrt(b->m2 / (double)b->finite) : unknown),
        TTI_INT(b->setting),
        TTI_REAL(b->staleness_sum / (double)b->count),
        TTI_INT(b->count - b->finite),
    };
    return tti_store_write_now(store, TTI_STORE_SAMPLE, cells, TT_COUNT_OF(cells), err);
}

static tt_status
count_rows(tt_store *store, tt_error *err)
{
    tt_store_query *query;
    int has_row = 0;
    TT_TRY(tt_store_query_open(store, "SELECT count(*) FROM sample", &query, err));
    tt_status status = tt_store_query_next(query, &has_row, err);
    if (status == TT_OK)
        store->sample_rows = tt_store_query_int(query, 0);
    tt_store_query_close(query);
    return status;
}

static tt_status
load_blocks(tt_store *store, tti_store_block *blocks, size_t capacity, size_t *count, tt_error *err)
{
    tt_store_query *q;
    *count = 0;
    TT_TRY(tt_store_query_open(store,
                               "SELECT iteration_first, count, time_s, loss_mean, loss_sd, setting,"
                               " staleness_mean, not_finite FROM sample ORDER BY iteration_first",
                               &q, err));
    int has_row = 1;
    tt_status status;
    while ((status = tt_store_query_next(q, &has_row, err)) == TT_OK && has_row) {
        TT_ASSERT(*count < capacity);
        tti_store_block *b = &blocks[(*count)++];
        double sd = tt_store_query_real(q, 4);
        *b = (tti_store_block){.first = tt_store_query_int(q, 0),
                               .count = tt_store_query_int(q, 1),
                               .time_s = tt_store_query_real(q, 2),
                               .mean = tt_store_query_real(q, 3),
                               .setting = tt_store_query_int(q, 5)};
        b->finite = b->count - tt_store_query_int(q, 7);
        b->m2 = sd * sd * (double)b->finite;
        b->staleness_sum = tt_store_query_real(q, 6) * (double)b->count;
    }
    tt_store_query_close(q);
    return status;
}

static tt_status
rewrite_blocks(tt_store *store, const tti_store_block *blocks, size_t count, tt_error *err)
{
    TT_TRY(tti_store_exec(store, "DELETE FROM sample", err));
    for (size_t i = 0; i < count; i++)
        TT_TRY(insert_block(store, &blocks[i], err));
    return TT_OK;
}

// All or nothing: inside the open batch, or in one of its own.
static tt_status
halve_table(tt_store *store, tt_error *err)
{
    size_t capacity = (size_t)store->sample_rows, count = 0;
    tti_store_block *blocks = tt_mem_zalloc(capacity, sizeof *blocks);
    if (blocks == NULL)
        return tt_error_set(err, TT_NOMEM, store->path, NULL, "no memory to thin the samples");
    int own = !store->in_transaction;
    int64_t block_size = store->block_size;
    tt_status status = own ? tti_store_begin_now(store, err) : TT_OK;
    if (status == TT_OK)
        status = load_blocks(store, blocks, capacity, &count, err);
    if (status == TT_OK) {
        count =
            tti_store_merge_blocks(blocks, count, TT_STORE_SAMPLE_ROWS_MAX * 3 / 4, &block_size);
        status = rewrite_blocks(store, blocks, count, err);
    }
    if (status == TT_OK && own)
        status = tti_store_commit_now(store, err);
    if (status == TT_OK) {
        store->block_size = block_size;
        store->sample_rows = (int64_t)count;
    } else
        tti_store_abandon(store); // half a table must never be committed
    tt_mem_free(blocks);
    return status;
}

static tt_status
write_block(tt_store *store, const tti_store_block *block, tt_error *err)
{
    if (store->sample_rows < 0)
        TT_TRY(count_rows(store, err));
    if (store->sample_rows >= TT_STORE_SAMPLE_ROWS_MAX)
        TT_TRY(halve_table(store, err));
    TT_TRY(insert_block(store, block, err));
    store->sample_rows++;
    return TT_OK;
}

tt_status
tti_store_flush_samples(tt_store *store, tt_error *err)
{
    if (store->block.count == 0)
        return TT_OK;
    tt_status status = write_block(store, &store->block, err);
    // A block that cannot be written is given up: trying again at each iteration would slow
    // training.
    store->block.count = 0;
    store->samples_off = status != TT_OK;
    return status;
}

tt_status
tti_store_check_order(const tt_store *store, int64_t *last, const tt_store_sample *s, tt_error *err)
{
    if (s->iteration <= *last)
        return tt_error_set(err, TT_INVALID, store->path, "put samples in the order of application",
                            "sample of iteration %" PRId64 " after %" PRId64, s->iteration, *last);
    *last = s->iteration;
    return TT_OK;
}

tt_status
tt_store_put_sample(tt_store *store, const tt_store_sample *sample, tt_error *err)
{
    if (store->behind != NULL)
        return tti_store_sample_behind(store, sample, err);
    return tti_store_put_sample_now(store, sample, err);
}

tt_status
tti_store_put_sample_now(tt_store *store, const tt_store_sample *s, tt_error *err)
{
    TT_TRY(tti_store_check_order(store, &store->last_iteration, s, err));
    if (store->samples_off)
        return TT_OK;
    if (store->block.count > 0 && store->block.setting != s->setting)
        TT_TRY(tti_store_flush_samples(store, err));
    int finite = isfinite(s->loss);
    tti_store_block one = {.first = s->iteration,
                           .count = 1,
                           .finite = finite,
                           .mean = finite ? s->loss : 0,
                           .time_s = s->time_s,
                           .setting = s->setting,
                           .staleness_sum = s->staleness};
    if (store->block.count == 0)
        store->block = one;
    else
        join(&store->block, &one);
    return store->block.count >= store->block_size ? tti_store_flush_samples(store, err) : TT_OK;
}
