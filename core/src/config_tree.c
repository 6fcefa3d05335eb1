// The configuration as a tree: making, finding, laying one over another.
#include "config_tree.h"
#include <string.h>

tt_status
tt_config_open(tt_config **out, tt_error *err)
{
    *out = tt_mem_zalloc(1, sizeof **out);
    if (*out == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the configuration");
    tt_arena_init(&(*out)->arena, 16384);
    return TT_OK;
}

void
tt_config_close(tt_config *cfg)
{
    if (cfg == NULL)
        return;
    tt_arena_fini(&cfg->arena);
    tt_mem_free(cfg->errors);
    tt_mem_free(cfg);
}

char *
tti_config_printf(tt_config *cfg, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length >= 0 ? tt_arena_alloc(&cfg->arena, (size_t)length + 1) : NULL;
    if (text != NULL)
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

tt_config_node *
tti_config_node_new(tt_config *cfg, tt_config_node_kind kind, const tti_config_place *place)
{
    tt_config_node *node = tt_arena_alloc(&cfg->arena, sizeof *node);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->place = place;
    node->text = "";
    node->directory = "";
    return node;
}

tt_status
tti_config_append(tt_config *cfg, tt_config_node *parent, const tti_config_entry *entry)
{
    if (parent->count == parent->capacity) {
        // The old array stays in the arena: at most as much again as the final one.
        size_t wanted = parent->capacity > 0 ? 2 * parent->capacity : 4;
        tti_config_entry *grown = tt_arena_alloc(&cfg->arena, wanted * sizeof *grown);
        if (grown == NULL)
            return TT_NOMEM;
        if (parent->count > 0)
            memcpy(grown, parent->entries, parent->count * sizeof *grown);
        parent->entries = grown;
        parent->capacity = wanted;
    }
    parent->entries[parent->count++] = *entry;
    return TT_OK;
}

tti_config_entry *
tti_config_entry_find(const tt_config_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->kind != TT_CONFIG_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->entries[i].key, key) == 0)
            return &mapping->entries[i];
    return NULL;
}

void
tti_config_entry_remove(tt_config_node *mapping, const char *key)
{
    tti_config_entry *entry = tti_config_entry_find(mapping, key);
    if (entry == NULL)
        return;
    size_t after = mapping->count - (size_t)(entry - mapping->entries) - 1;
    memmove(entry, entry + 1, after * sizeof *entry);
    mapping->count--;
}

// A copy of a collection without its nulls, so that a tree never shares nodes with another.
static tt_status
merged_copy(tt_config *cfg, const tt_config_node *upper, tt_config_node **out)
{
    *out = tti_config_node_new(cfg, upper->kind, upper->place);
    if (*out == NULL)
        return TT_NOMEM;
    (*out)->is_faulty = upper->is_faulty;
    (*out)->directory = upper->directory;
    return tti_config_merge(cfg, *out, upper);
}

tt_status
tti_config_merge(tt_config *cfg, tt_config_node *lower, const tt_config_node *upper)
{
    for (size_t i = 0; i < upper->count; i++) {
        tti_config_entry entry = upper->entries[i];
        tti_config_entry *old = NULL;
        if (lower->kind == TT_CONFIG_MAPPING) {
            if (entry.value->is_null) {
                tti_config_entry_remove(lower, entry.key);
                continue;
            }
            old = tti_config_entry_find(lower, entry.key);
        }
        if (entry.value->kind != TT_CONFIG_SCALAR) {
            if (old != NULL && old->value->kind == TT_CONFIG_MAPPING &&
                entry.value->kind == TT_CONFIG_MAPPING) {
                TT_TRY(tti_config_merge(cfg, old->value, entry.value));
                continue;
            }
            TT_TRY(merged_copy(cfg, entry.value, &entry.value));
        }
        if (old != NULL)
            *old = entry;
        else
            TT_TRY(tti_config_append(cfg, lower, &entry));
    }
    return TT_OK;
}

const tt_config_node *
tti_config_walk(const tt_config_node *node, const char *path, const tt_config_node **nearest)
{
    char key[TTI_CONFIG_PATH_MAX];
    while (node != NULL) {
        if (nearest != NULL)
            *nearest = node;
        size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = '\0';
        const tti_config_entry *entry = tti_config_entry_find(node, key);
        node = entry != NULL ? entry->value : NULL;
        if (path[length] == '\0')
            return node;
        path += length + 1;
    }
    return NULL;
}

const char *
tti_config_kind_text(tt_config_node_kind kind)
{
    return kind == TT_CONFIG_MAPPING    ? "a mapping"
           : kind == TT_CONFIG_SEQUENCE ? "a sequence"
                                        : "text";
}

// ---- what callers walk
// ---------------------------------------------------------------------------

const tt_config_node *
tt_config_root(const tt_config *cfg)
{
    return cfg->root;
}

const tt_config_node *
tt_config_find(const tt_config *cfg, const tt_config_node *node, const char *path)
{
    return tti_config_walk(node != NULL ? node : cfg->root, path, NULL);
}

int
tt_config_given(const tt_config *cfg, const char *path)
{
    return tt_config_find(cfg, NULL, path) != NULL;
}

tt_config_node_kind
tt_config_node_kind_of(const tt_config_node *node)
{
    return node->kind;
}

size_t
tt_config_node_count(const tt_config_node *node)
{
    return node->count;
}

const tt_config_node *
tt_config_node_at(const tt_config_node *node, size_t index)
{
    TT_ASSERT(index < node->count);
    return node->entries[index].value;
}

const char *
tt_config_node_key(const tt_config_node *node, size_t index)
{
    TT_ASSERT(index < node->count && node->kind == TT_CONFIG_MAPPING);
    return node->entries[index].key;
}

const char *
tt_config_node_key_place(const tt_config_node *node, size_t index)
{
    TT_ASSERT(index < node->count && node->kind == TT_CONFIG_MAPPING);
    return node->entries[index].key_place->text;
}

const char *
tt_config_node_text(const tt_config_node *node)
{
    return node->kind == TT_CONFIG_SCALAR ? node->text : NULL;
}

const char *
tt_config_node_place(const tt_config_node *node)
{
    return node->place->text;
}
