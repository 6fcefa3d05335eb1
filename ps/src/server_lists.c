// What a server keeps of the keys that workers have named: for each partition and worker, the rows
// of the lists that come again and of the last one that may not. Rows stay where they are as long
// as a partition is here, so that a list is good for as long; with the partition its lists go.
#include "server_core.h"
#include <string.h>

// One partition's part of a list. Keys without a row, in a pull of what was never pushed, are
// looked up again when there are more rows than there were.
typedef struct key_list {
    uint64_t number, used; // number 0: none
    uint32_t count, missing_count;
    uint32_t rows_then;   // rows there were when the missing ones were last looked up
    uint32_t *rows;       // [count], TTI_NO_ROW where missing
    uint32_t *missing_at; // [missing_count] positions
    uint64_t *missing;    // [missing_count] their keys
    size_t row_capacity, missing_capacity;
} key_list;

typedef struct sender_lists {
    uint32_t attempt; // of the process whose numbers these are
    uint64_t uses;
    key_list last;
    key_list kept[TTI_LISTS_KEPT];
} sender_lists;

struct tti_lists {
    sender_lists *of[1]; // [node_count]
};

// ---- life cycle --------------------------------------------------------------------------------

static void
free_list(key_list *list)
{
    tt_mem_free(list->rows);
    tt_mem_free(list->missing_at);
    tt_mem_free(list->missing);
    *list = (key_list){0};
}

static void
free_sender(sender_lists *lists)
{
    if (lists == NULL)
        return;
    free_list(&lists->last);
    for (uint32_t i = 0; i < TTI_LISTS_KEPT; i++)
        free_list(&lists->kept[i]);
    tt_mem_free(lists);
}

void
tti_lists_free(tti_lists *lists, uint32_t node_count)
{
    for (uint32_t n = 0; lists != NULL && n < node_count; n++)
        free_sender(lists->of[n]);
    tt_mem_free(lists);
}

static sender_lists *
lists_of(tt_ps_server *server, const tt_frame *frame)
{
    tti_lists **lists = &server->lists[frame->partition];
    size_t size = sizeof **lists + server->node_count * sizeof(sender_lists *);
    if (*lists == NULL)
        *lists = tt_mem_zalloc(1, size);
    if (*lists == NULL)
        return NULL;
    sender_lists **of = &(*lists)->of[frame->sender];
    if (*of != NULL && (*of)->attempt != frame->attempt) { // another process's numbers
        free_sender(*of);
        *of = NULL;
    }
    if (*of == NULL)
        *of = tt_mem_zalloc(1, sizeof **of);
    if (*of != NULL)
        (*of)->attempt = frame->attempt;
    return *of;
}

// ---- finding -----------------------------------------------------------------------------------

static key_list *
find(sender_lists *lists, uint64_t number)
{
    if (lists->last.number == number)
        return &lists->last;
    for (uint32_t i = 0; i < TTI_LISTS_KEPT; i++)
        if (lists->kept[i].number == number)
            return &lists->kept[i];
    return NULL;
}

static key_list *
least_used(sender_lists *lists)
{
    key_list *least = &lists->kept[0];
    for (uint32_t i = 1; i < TTI_LISTS_KEPT; i++)
        if (lists->kept[i].used < least->used)
            least = &lists->kept[i];
    return least;
}

static void *
room(void *old, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return old;
    tt_mem_free(old);
    *capacity = count + count / 4;
    void *grown = tt_mem_alloc(*capacity * size);
    *capacity = grown != NULL ? *capacity : 0;
    return grown;
}

static int
reserve_missing(key_list *list, uint32_t count)
{
    size_t capacity = list->missing_capacity;
    list->missing_at = room(list->missing_at, &capacity, count, sizeof *list->missing_at);
    list->missing = room(list->missing, &list->missing_capacity, count, sizeof *list->missing);
    if (count > 0 && (list->missing_at == NULL || list->missing == NULL))
        list->missing_capacity = 0;
    return count <= list->missing_capacity;
}

static int
keep_missing(key_list *list, const uint8_t *keys)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += list->rows[i] == TTI_NO_ROW;
    if (!reserve_missing(list, count))
        return 0;
    list->missing_count = count;
    for (uint32_t i = 0, at = 0; at < count; i++)
        if (list->rows[i] == TTI_NO_ROW) {
            list->missing_at[at] = i;
            memcpy(&list->missing[at++], keys + i * sizeof(uint64_t), sizeof(uint64_t));
        }
    return 1;
}

// The list becomes the one of these keys. Without memory it is none.
static int
learn(key_list *list,
      const tti_partition *partition,
      const tti_list_name *name,
      const uint8_t *keys,
      uint32_t count)
{
    list->number = 0;
    list->rows = room(list->rows, &list->row_capacity, count, sizeof *list->rows);
    if (list->rows == NULL)
        return 0;
    list->count = count;
    tti_partition_find_all(partition, keys, count, list->rows);
    if (!keep_missing(list, keys))
        return 0;
    list->number = name->number;
    list->rows_then = partition->rows;
    return 1;
}

// Rows that were missing and may be here by now, or are to be created. False without memory for
// them.
static int
complete(key_list *list, tti_partition *partition, int creates)
{
    uint32_t left = 0;
    int is_whole = 1;
    if (list->missing_count == 0 || (!creates && list->rows_then == partition->rows))
        return 1;
    for (uint32_t i = 0; i < list->missing_count; i++) {
        uint64_t key = list->missing[i];
        uint32_t row = creates ? tti_partition_find_or_create(partition, key)
                               : tti_partition_find(partition, key);
        list->rows[list->missing_at[i]] = row;
        if (row != TTI_NO_ROW)
            continue;
        is_whole = 0;
        list->missing_at[left] = list->missing_at[i];
        list->missing[left++] = key;
    }
    list->missing_count = left;
    list->rows_then = partition->rows;
    return is_whole || !creates;
}

const uint32_t *
tti_server_named_rows(tt_ps_server *server,
                      const tti_slot *slot,
                      const tt_frame *frame,
                      const uint8_t *payload,
                      size_t *name_bytes)
{
    int creates = frame->kind == TT_FRAME_PUSH;
    tti_list_name name;
    *name_bytes = 0;
    if (frame->payload_bytes < sizeof name || frame->count == 0)
        return NULL; // nothing of ours sends it
    memcpy(&name, payload, sizeof name);
    *name_bytes = sizeof name + (name.has_keys ? frame->count * sizeof(uint64_t) : 0);
    if (frame->payload_bytes < *name_bytes || server->table->kind != TT_PS_SPARSE)
        return NULL;
    sender_lists *lists = lists_of(server, frame);
    key_list *list = lists != NULL ? find(lists, name.number) : NULL;
    if (list == NULL && lists != NULL && name.has_keys) {
        int is_kept = name.is_kept && frame->count <= TTI_LIST_KEYS_MAX;
        list = is_kept ? least_used(lists) : &lists->last;
        if (!learn(list, slot->partition, &name, payload + sizeof name, frame->count))
            list = NULL;
    }
    if (list == NULL || list->count != frame->count) {
        if (!name.has_keys)
            tti_server_want_keys(server, slot, frame);
        return NULL;
    }
    list->used = ++lists->uses;
    return complete(list, slot->partition, creates) ? list->rows : NULL;
}

int
tti_server_spell_out(tt_ps_server *server,
                     const tti_slot *slot,
                     const tt_frame *frame,
                     const uint8_t **payload,
                     tt_frame *out)
{
    tti_list_name name;
    *out = *frame;
    if ((frame->flags & TT_FRAME_NAMED) == 0)
        return 1;
    if (frame->payload_bytes < sizeof name)
        return 0; // nothing of ours sends it
    memcpy(&name, *payload, sizeof name);
    if (!name.has_keys) {
        tti_server_want_keys(server, slot, frame);
        return 0;
    }
    out->flags &= (uint16_t)~TT_FRAME_NAMED;
    out->payload_bytes -= (uint32_t)sizeof name;
    *payload += sizeof name;
    return 1;
}
