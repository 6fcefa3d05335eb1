// Seeded shards of random rows, and their order in every epoch.
#include "shards_internal.h"
#include <string.h>

#define SHARDS_MAX 65535u
#define ROWS_MAX   (UINT32_MAX - 1)

static tt_status
check_counts(uint64_t row_count, uint32_t shard_count, tt_error *err)
{
    if (row_count == 0 || row_count > ROWS_MAX)
        return tt_error_set(err, TT_RANGE, NULL, "use a data set of 1 to 4,294,967,294 rows",
                            "cannot cut %llu rows into shards", (unsigned long long)row_count);
    if (shard_count == 0 || shard_count > TT_MIN(row_count, (uint64_t)SHARDS_MAX))
        return tt_error_set(err, TT_RANGE, NULL, "set data.shards to auto or to a smaller number",
                            "the number of shards must be from 1 to %llu (%llu rows), not %u",
                            (unsigned long long)TT_MIN(row_count, (uint64_t)SHARDS_MAX),
                            (unsigned long long)row_count, shard_count);
    return TT_OK;
}

tt_status
tt_shards_open(
    const tt_dataset *data, uint32_t shard_count, uint64_t seed, tt_shards **out, tt_error *err)
{
    *out = NULL;
    TT_TRY(check_counts(data->row_count, shard_count, err));
    tt_shards *shards = tt_mem_zalloc(1, sizeof *shards);
    uint32_t *row = tt_mem_alloc(data->row_count * sizeof *row);
    if (shards == NULL || row == NULL) {
        tt_mem_free(shards);
        tt_mem_free(row);
        return tt_error_set(err, TT_NOMEM, NULL, "use fewer rows or more memory",
                            "no memory for the order of %llu rows",
                            (unsigned long long)data->row_count);
    }
    *shards = (tt_shards){seed, data->row_count, shard_count, 0, row};
    shards->largest = tt_shards_size(shards, 0);
    for (uint32_t i = 0; i < data->row_count; i++)
        row[i] = i;
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_DATA_ORDER, 0);
    tt_rng_shuffle_u32(&rng, row, data->row_count);
    *out = shards;
    return TT_OK;
}

void
tt_shards_close(tt_shards *shards)
{
    if (shards == NULL)
        return;
    tt_mem_free(shards->row);
    tt_mem_free(shards);
}

uint32_t
tt_shards_count(const tt_shards *shards)
{
    return shards->shard_count;
}

uint64_t
tt_shards_row_count(const tt_shards *shards)
{
    return shards->row_count;
}

uint32_t
tt_shards_size(const tt_shards *shards, uint32_t shard)
{
    TT_ASSERT(shard < shards->shard_count);
    return (uint32_t)(tti_shard_begin(shards, shard + 1) - tti_shard_begin(shards, shard));
}

tt_status
tt_shard_cache_init(tt_shard_cache *cache, const tt_shards *shards)
{
    *cache = (tt_shard_cache){0};
    cache->order = tt_mem_alloc(shards->largest * sizeof *cache->order);
    cache->group = tt_mem_alloc(shards->shard_count * sizeof *cache->group);
    cache->group_end = tt_mem_alloc(shards->shard_count * sizeof *cache->group_end);
    if (cache->order != NULL && cache->group != NULL && cache->group_end != NULL)
        return TT_OK;
    tt_shard_cache_fini(cache);
    return TT_NOMEM;
}

void
tt_shard_cache_fini(tt_shard_cache *cache)
{
    tt_mem_free(cache->order);
    tt_mem_free(cache->group);
    tt_mem_free(cache->group_end);
    *cache = (tt_shard_cache){0};
}

void
tt_shards_rows(const tt_shards *shards,
               tt_shard_cache *cache,
               uint32_t shard,
               uint64_t epoch,
               uint32_t begin,
               uint32_t count,
               uint32_t *rows)
{
    uint32_t size = tt_shards_size(shards, shard);
    TT_ASSERT(begin <= size);
    TT_ASSERT(count <= size - begin);
    if (!cache->filled || cache->shard != shard || cache->epoch != epoch) {
        memcpy(cache->order, shards->row + tti_shard_begin(shards, shard),
               size * sizeof *cache->order);
        tt_rng rng;
        tt_rng_init(&rng, shards->seed, TT_RNG_SHARD_ORDER, epoch * shards->shard_count + shard);
        tt_rng_shuffle_u32(&rng, cache->order, size);
        cache->shard = shard;
        cache->epoch = epoch;
        cache->filled = 1;
    }
    memcpy(rows, cache->order + begin, count * sizeof *rows);
}

uint64_t
tt_shards_slice_size(const tt_shards *shards, uint32_t slice_count, uint32_t slice)
{
    TT_ASSERT(slice_count >= 1 && slice_count <= shards->shard_count);
    TT_ASSERT(slice < slice_count);
    uint32_t members = (shards->shard_count - slice + slice_count - 1) / slice_count;
    uint64_t base = shards->row_count / shards->shard_count,
             extra = shards->row_count % shards->shard_count;
    // the shards below `extra` have one row more
    uint64_t larger = extra > slice ? (extra - slice + slice_count - 1) / slice_count : 0;
    return members * base + larger;
}

// Fills cache->group with the slice's shards in the order of `epoch`. The stream shares its role
// with the global permutation (rank 0), from which epoch + 1 keeps it apart.
static void
order_group(const tt_shards *shards,
            tt_shard_cache *cache,
            uint32_t slice_count,
            uint32_t slice,
            uint64_t epoch)
{
    if (cache->group_filled && cache->slice_count == slice_count && cache->slice == slice &&
        cache->group_epoch == epoch)
        return;
    uint32_t count = 0;
    for (uint32_t shard = slice; shard < shards->shard_count; shard += slice_count)
        cache->group[count++] = shard;
    tt_rng rng;
    tt_rng_init(&rng, shards->seed, TT_RNG_DATA_ORDER,
                (epoch + 1) << 32 | (uint64_t)slice_count << 16 | slice);
    tt_rng_shuffle_u32(&rng, cache->group, count);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++)
        cache->group_end[i] = end += tt_shards_size(shards, cache->group[i]);
    cache->group_count = count;
    cache->slice_count = slice_count;
    cache->slice = slice;
    cache->group_epoch = epoch;
    cache->group_filled = 1;
}

// Index of the shard in cache->group that holds `position` of the group's epoch.
static uint32_t
find_in_group(const tt_shard_cache *cache, uint64_t position)
{
    uint32_t low = 0, high = cache->group_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cache->group_end[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void
tt_shards_slice_rows(const tt_shards *shards,
                     tt_shard_cache *cache,
                     uint32_t slice_count,
                     uint32_t slice,
                     uint64_t first_position,
                     uint32_t count,
                     uint32_t *rows)
{
    uint64_t size = tt_shards_slice_size(shards, slice_count, slice);
    for (uint32_t done = 0; done < count;) {
        uint64_t epoch = (first_position + done) / size, at = (first_position + done) % size;
        order_group(shards, cache, slice_count, slice, epoch);
        uint32_t i = find_in_group(cache, at);
        uint64_t begin = i > 0 ? cache->group_end[i - 1] : 0;
        uint32_t part = (uint32_t)TT_MIN(cache->group_end[i] - at, (uint64_t)(count - done));
        tt_shards_rows(shards, cache, cache->group[i], epoch, (uint32_t)(at - begin), part,
                       rows + done);
        done += part;
    }
}
