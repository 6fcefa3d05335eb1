// Dealing the keys of an operation out to one request a partition.
#include "client_core.h"
#include <string.h>

int
tti_client_is_whole(const tt_ps_client *client)
{
    return client->keys.rows == NULL && client->keys.keys == NULL;
}

tti_request *
tti_client_add_request(tt_ps_client *client, uint32_t partition, uint32_t begin, uint32_t count)
{
    tti_request *request = &client->requests[client->request_count];
    *request = (tti_request){.partition = partition, .begin = begin, .count = count};
    client->routes[partition].request = client->request_count++;
    return request;
}

static void
group_dense(tt_ps_client *client)
{
    const uint32_t *rows = client->keys.rows;
    uint32_t *wire = (uint32_t *)(void *)client->list->wire_keys;
    uint32_t i = 0;
    while (i < client->keys.count) {
        uint32_t p = tt_ps_partition_of(client->table, rows[i]), begin = i;
        uint32_t first = (uint32_t)tt_ps_partition_first(client->table, p);
        uint32_t end_row = (uint32_t)tt_ps_partition_first(client->table, p + 1);
        for (; i < client->keys.count && rows[i] < end_row; i++) {
            TT_DASSERT(i == 0 || rows[i] > rows[i - 1]);
            wire[i] = rows[i] - first;
        }
        tti_client_add_request(client, p, begin, i - begin);
    }
}

static uint64_t
key_of(const tt_ps_client *client, uint32_t i)
{
    return client->keys.keys != NULL ? client->keys.keys[i] : client->keys.rows[i];
}

// Counting sort of the keys by partition.
static void
group_sparse(tt_ps_client *client)
{
    uint32_t partition_count = client->table->partition_count, begin = 0;
    uint64_t *wire = (uint64_t *)(void *)client->list->wire_keys;
    for (uint32_t p = 0; p < partition_count; p++)
        client->requests[p].count = 0;
    for (uint32_t i = 0; i < client->keys.count; i++) {
        uint32_t p = tt_ps_partition_of(client->table, key_of(client, i));
        client->partition_of_key[i] = p;
        client->requests[p].count++;
    }
    uint32_t starts[1024 + 1];
    TT_ASSERT(partition_count <= 1024);
    for (uint32_t p = 0; p < partition_count; p++) {
        starts[p] = begin;
        begin += client->requests[p].count;
    }
    starts[partition_count] = begin;
    for (uint32_t i = 0; i < client->keys.count; i++) {
        uint32_t at = starts[client->partition_of_key[i]]++;
        client->list->order[at] = i;
        wire[at] = key_of(client, i);
    }
    begin = 0;
    for (uint32_t p = 0; p < partition_count; p++) {
        if (starts[p] > begin)
            tti_client_add_request(client, p, begin, starts[p] - begin);
        begin = starts[p];
    }
}

void
tti_client_group(tt_ps_client *client)
{
    client->request_count = 0;
    for (uint32_t p = 0; p < client->table->partition_count; p++)
        client->routes[p].request = UINT32_MAX;
    if (!tti_client_is_whole(client)) {
        TT_ASSERT(client->keys.count <= client->max_keys);
        client->list = &client->lists.scratch;
        if (client->table->kind == TT_PS_DENSE) {
            group_dense(client);
        } else if (!tti_client_choose_list(client)) {
            group_sparse(client);
            tti_client_keep_requests(client);
        }
        return;
    }
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        uint32_t first = (uint32_t)tt_ps_partition_first(client->table, p);
        tti_client_add_request(client, p, first,
                               (uint32_t)tt_ps_partition_first(client->table, p + 1) - first);
    }
}

size_t
tti_client_position(const tt_ps_client *client, const tti_request *request, uint32_t i)
{
    if (tti_client_is_whole(client) || client->table->kind == TT_PS_DENSE)
        return request->begin + i;
    return client->list->order[request->begin + i];
}

void
tti_client_gather(const tt_ps_client *client,
                  const tti_request *request,
                  const float *from,
                  float *packed)
{
    size_t width = client->table->width;
    const uint32_t *order = client->list->order + request->begin;
    if (width == 1)
        for (uint32_t i = 0; i < request->count; i++)
            packed[i] = from[order[i]];
    else
        for (uint32_t i = 0; i < request->count; i++)
            memcpy(packed + i * width, from + order[i] * width, width * sizeof(float));
}

void
tti_client_scatter(const tt_ps_client *client,
                   const tti_request *request,
                   const float *packed,
                   float *to)
{
    size_t width = client->table->width;
    const uint32_t *order = client->list->order + request->begin;
    if (width == 1)
        for (uint32_t i = 0; i < request->count; i++)
            to[order[i]] = packed[i];
    else
        for (uint32_t i = 0; i < request->count; i++)
            memcpy(to + order[i] * width, packed + i * width, width * sizeof(float));
}
