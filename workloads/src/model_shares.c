#include "model_shares.h"
#include <pthread.h>

struct tti_shares {
    pthread_mutex_t lock;
    uint32_t *rows_with; // [features], under lock until it is there
};

tt_status
tti_shares_open(tti_shares **out)
{
    tti_shares *shares = tt_mem_zalloc(1, sizeof *shares);
    *out = shares;
    if (shares == NULL)
        return TT_NOMEM;
    (void)pthread_mutex_init(&shares->lock, NULL);
    return TT_OK;
}

void
tti_shares_close(tti_shares *shares)
{
    if (shares == NULL)
        return;
    (void)pthread_mutex_destroy(&shares->lock);
    tt_mem_free(shares->rows_with);
    tt_mem_free(shares);
}

static uint32_t *
rows_with_features(const tt_dataset *train)
{
    // Not touched where no row has a feature: no pages are taken there.
    uint32_t *rows_with = tt_mem_zalloc(train->feature_count, sizeof *rows_with);
    if (rows_with == NULL)
        return NULL;
    for (uint64_t i = 0; i < train->row_begin[train->row_count]; i++)
        rows_with[train->index[i]]++;
    return rows_with;
}

tt_status
tti_shares_count(tti_shares *shares, const tt_dataset *train)
{
    (void)pthread_mutex_lock(&shares->lock);
    if (shares->rows_with == NULL)
        shares->rows_with = rows_with_features(train);
    const int there = shares->rows_with != NULL;
    (void)pthread_mutex_unlock(&shares->lock);
    return there ? TT_OK : TT_NOMEM;
}

const uint32_t *
tti_shares_rows_with(const tti_shares *shares)
{
    return shares->rows_with;
}
