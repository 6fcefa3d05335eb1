// A worker's lists of keys: which it has had before, and what of them servers know. A list that is
// seen for the second time is kept, with its keys dealt out to partitions, and found again by its
// keys, all of them; a list that is seen once costs a look at a few of its keys. In both cases the
// push that follows a pull names the list that the pull has brought.
//
// A server that does not know a list says so, and is sent the keys: it may have dropped it, have
// begun anew, or be another than before. So a list may be named wherever one likes, and what is
// sent again goes with its keys.
#include "client_core.h"
#include <string.h>

enum { SAMPLES = 64 };

static const uint8_t *
keys_of(const tt_ps_client *client, size_t *bytes)
{
    const tt_ps_keys *keys = &client->keys;
    *bytes = keys->count * (keys->keys != NULL ? sizeof *keys->keys : sizeof *keys->rows);
    return keys->keys != NULL ? (const uint8_t *)keys->keys : (const uint8_t *)keys->rows;
}

// Of some of the keys; says only which lists are worth comparing.
static uint64_t
sample_of(const tt_ps_client *client)
{
    const tt_ps_keys *keys = &client->keys;
    uint64_t sample = keys->count;
    uint32_t step = keys->count / SAMPLES + 1;
    for (uint32_t i = 0; i < keys->count; i += step) {
        sample ^= keys->keys != NULL ? keys->keys[i] : keys->rows[i];
        sample *= UINT64_C(0x9E3779B97F4A7C15);
        sample ^= sample >> 29;
    }
    return sample;
}

static int
was_recent(tt_ps_client *client, uint64_t sample)
{
    tti_client_lists *lists = &client->lists;
    for (uint32_t i = 0; i < TTI_LISTS_RECENT; i++)
        if (lists->recent[i] == sample)
            return 1;
    lists->recent[lists->recent_next++ % TTI_LISTS_RECENT] = sample;
    return 0;
}

// ---- lists that are kept -----------------------------------------------------------------------

static tti_client_list *
find(tt_ps_client *client, uint64_t sample)
{
    size_t bytes;
    const uint8_t *keys = keys_of(client, &bytes);
    for (uint32_t i = 0; i < TTI_LISTS_KEPT; i++) {
        tti_client_list *list = &client->lists.kept[i];
        if (list->number != 0 && list->sample == sample && list->key_bytes == bytes &&
            memcmp(list->keys, keys, bytes) == 0)
            return list;
    }
    return NULL;
}

static void
free_list(tti_client_list *list)
{
    tt_mem_free(list->keys);
    tt_mem_free(list->wire_keys);
    tt_mem_free(list->order);
    tt_mem_free(list->requests);
    tt_mem_free(list->told);
    *list = (tti_client_list){0};
}

// Room for the current keys; what it has is used again when it is enough.
static tt_status
reserve(const tt_ps_client *client, tti_client_list *list)
{
    uint32_t count = client->keys.count, partitions = client->table->partition_count;
    if (count <= list->capacity)
        return TT_OK;
    free_list(list);
    list->keys = tt_mem_alloc(count * sizeof(uint64_t));
    list->wire_keys = tt_mem_alloc(count * sizeof(uint64_t));
    list->order = tt_mem_alloc(count * sizeof *list->order);
    list->requests = tt_mem_alloc(partitions * sizeof *list->requests);
    list->told = tt_mem_alloc(partitions * sizeof *list->told);
    if (list->keys == NULL || list->wire_keys == NULL || list->order == NULL ||
        list->requests == NULL || list->told == NULL) {
        free_list(list);
        return TT_NOMEM;
    }
    list->capacity = count;
    return TT_OK;
}

// In place of the one that was not used for longest. NULL without memory.
static tti_client_list *
begin_to_keep(tt_ps_client *client, uint64_t sample)
{
    tti_client_list *list = &client->lists.kept[0];
    for (uint32_t i = 1; i < TTI_LISTS_KEPT; i++)
        if (client->lists.kept[i].used < list->used)
            list = &client->lists.kept[i];
    list->number = 0;
    if (reserve(client, list) != TT_OK)
        return NULL;
    const uint8_t *keys = keys_of(client, &list->key_bytes);
    memcpy(list->keys, keys, list->key_bytes);
    list->sample = sample;
    list->request_count = 0;
    return list;
}

static void
take_requests(tt_ps_client *client, const tti_client_list *list)
{
    for (uint32_t i = 0; i < list->request_count; i++) {
        const tti_request *request = &list->requests[i];
        (void)tti_client_add_request(client, request->partition, request->begin, request->count);
    }
}

int
tti_client_choose_list(tt_ps_client *client)
{
    uint32_t count = client->keys.count;
    tti_client_list *list = NULL;
    client->list = &client->lists.scratch;
    client->list->number = 0;
    if (count < TTI_LIST_KEYS_MIN || client->lists.are_off)
        return 0;
    uint64_t sample = sample_of(client);
    if (count <= TTI_LIST_KEYS_MAX) {
        list = find(client, sample);
        if (list == NULL && was_recent(client, sample))
            list = begin_to_keep(client, sample);
    }
    int is_known = list != NULL && list->number != 0;
    if (list != NULL)
        client->list = list;
    client->list->used = ++client->lists.uses;
    if (is_known) {
        take_requests(client, list);
        tti_count(&client->counters.lists_again, 1);
        return 1;
    }
    client->list->number = client->lists.uses; // counted up with each use: no other has it
    memset(client->list->told, 0, client->table->partition_count * sizeof *client->list->told);
    return 0;
}

void
tti_client_keep_requests(tt_ps_client *client)
{
    tti_client_list *list = client->list;
    if (list == &client->lists.scratch)
        return;
    memcpy(list->requests, client->requests, client->request_count * sizeof *list->requests);
    list->request_count = client->request_count;
}

// ---- sending -----------------------------------------------------------------------------------

int
tti_client_name(tt_ps_client *client, const tti_request *request, uint32_t to, tti_list_name *out)
{
    tti_client_list *list = client->list;
    if (tti_client_is_whole(client) || list->number == 0 || request->count < TTI_LIST_KEYS_MIN)
        return 0;
    uint16_t *told = &list->told[request->partition];
    int knows = *told == to + 1 && request->sends == 0;
    *told = (uint16_t)(to + 1);
    *out = (tti_list_name){
        .number = list->number, .is_kept = list != &client->lists.scratch, .has_keys = !knows};
    return 1;
}

// ---- life cycle --------------------------------------------------------------------------------

tt_status
tti_client_lists_open(tt_ps_client *client)
{
    tti_client_list *scratch = &client->lists.scratch;
    // Not zeroed: pages are taken as far as they are used.
    size_t keys = (size_t)client->max_keys + 1;
    client->list = scratch;
    scratch->wire_keys = tt_mem_alloc(keys * sizeof(uint64_t));
    scratch->order = tt_mem_alloc(keys * sizeof *scratch->order);
    scratch->told = tt_mem_zalloc(client->table->partition_count, sizeof *scratch->told);
    return scratch->wire_keys != NULL && scratch->order != NULL && scratch->told != NULL ? TT_OK
                                                                                         : TT_NOMEM;
}

void
tti_client_lists_close(tt_ps_client *client)
{
    free_list(&client->lists.scratch);
    for (uint32_t i = 0; i < TTI_LISTS_KEPT; i++)
        free_list(&client->lists.kept[i]);
}
