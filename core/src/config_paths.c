// Keys that name several files: lists and patterns; and what is said in short in place of a
// mapping.
#include "config_tree.h"
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- files ------------------------------------------------------------------------------------

typedef struct collector {
    tt_config *cfg;
    const tt_config_key *key;
    const char **path, **place;
    size_t count, capacity;
    int failed;
} collector;

static void
no_memory(collector *c)
{
    c->cfg->starved = c->failed = 1;
}

// The old arrays stay in the arena: at most as much again as the final ones.
static int
grow(collector *c)
{
    size_t wanted = c->capacity > 0 ? 2 * c->capacity : 8;
    const char **path = tt_arena_alloc(&c->cfg->arena, wanted * sizeof *path);
    const char **place = tt_arena_alloc(&c->cfg->arena, wanted * sizeof *place);
    if (path == NULL || place == NULL)
        return 0;
    for (size_t i = 0; i < c->count; i++) {
        path[i] = c->path[i];
        place[i] = c->place[i];
    }
    c->path = path;
    c->place = place;
    c->capacity = wanted;
    return 1;
}

static void
add(collector *c, const tt_config_node *node, const char *path)
{
    const char *copy = tt_arena_strdup(&c->cfg->arena, path);
    if (copy == NULL || (c->count == c->capacity && !grow(c))) {
        no_memory(c);
        return;
    }
    c->path[c->count] = copy;
    c->place[c->count++] = node->place->text;
}

// A directory that is not there matches nothing; one that cannot be read is a fault.
static int
directory_failed(const char *path, int error_number)
{
    TT_UNUSED(path);
    return error_number != ENOENT && error_number != ENOTDIR;
}

static void
add_matches(collector *c, const tt_config_node *node, const char *pattern)
{
    glob_t found;
    // In the order of bytes, for the program keeps the C locale.
    int result = glob(pattern, 0, directory_failed, &found);
    for (size_t i = 0; result == 0 && i < found.gl_pathc; i++)
        add(c, node, found.gl_pathv[i]);
    if (result == GLOB_NOSPACE)
        no_memory(c);
    else if (result != 0) {
        c->failed = 1;
        tti_config_fault(c->cfg, node->place,
                         "check the pattern (ls shows what it matches); it is relative to the "
                         "file that says it",
                         result == GLOB_NOMATCH ? "%s: no file matches '%.200s'"
                                                : "%s: cannot read the directory of '%.200s'",
                         c->key->path, node->text);
    }
    if (result == 0)
        globfree(&found);
}

static void
add_element(collector *c, const tt_config_node *node)
{
    if (node->is_faulty) {
        c->failed = 1;
        return;
    }
    if (node->kind != TT_CONFIG_SCALAR || node->text[0] == '\0') {
        c->failed = 1;
        tti_config_fault(c->cfg, node->place, "write a path, or a list of paths: [a.csv, b.csv]",
                         "%s must be a path, not %s", c->key->path,
                         node->kind == TT_CONFIG_SCALAR ? "''" : tti_config_kind_text(node->kind));
        return;
    }
    const char *path = tti_config_resolve_path(c->cfg, node->directory, node->text);
    if (path == NULL)
        no_memory(c);
    else if (strpbrk(node->text, "*?[") != NULL && access(path, F_OK) != 0)
        add_matches(c, node, path);
    else // a plain path, or a file whose name has such a character
        add(c, node, path);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Overlapping patterns would count rows twice without a word.
static void
refuse_repetition(collector *c, const tt_config_node *node)
{
    const char **sorted = c->count > 1 ? tt_mem_alloc(c->count * sizeof *sorted) : NULL;
    if (sorted == NULL) {
        if (c->count > 1)
            no_memory(c);
        return;
    }
    for (size_t i = 0; i < c->count; i++)
        sorted[i] = c->path[i];
    qsort(sorted, c->count, sizeof *sorted, by_text);
    for (size_t i = 1; i < c->count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            c->failed = 1;
            tti_config_fault(c->cfg, node->place, "name each file once",
                             "%s: '%.200s' is in the list twice", c->key->path, sorted[i]);
            break;
        }
    tt_mem_free(sorted);
}

const tt_config_paths *
tti_config_read_paths(tt_config *cfg, const tt_config_key *key, const tt_config_node *node)
{
    collector c = {.cfg = cfg, .key = key};
    if (node->kind == TT_CONFIG_SEQUENCE)
        for (size_t i = 0; i < node->count; i++)
            add_element(&c, node->entries[i].value);
    else
        add_element(&c, node);
    if (c.count == 0 && !c.failed) {
        c.failed = 1;
        tti_config_fault(cfg, node->place, "name a file", "%s is an empty list", key->path);
    }
    refuse_repetition(&c, node);
    tt_config_paths *out = c.failed ? NULL : tt_arena_alloc(&cfg->arena, sizeof *out);
    if (out != NULL)
        *out = (tt_config_paths){c.count, c.path, c.place};
    else if (!c.failed)
        no_memory(&c);
    return out;
}

// ---- short forms ------------------------------------------------------------------------------

static int
is_number(const tt_config_node *node)
{
    char *rest;
    if (node->kind != TT_CONFIG_SCALAR || node->quoted || strspn(node->text, "0123456789.+-") == 0)
        return 0;
    (void)strtod(node->text, &rest);
    rest += strspn(rest, " ");
    return rest > node->text && (*rest == '\0' || strcmp(rest, "%") == 0);
}

// The key that a value in place of the mapping at prefix[0..length) is for, or NULL.
static const tt_config_key *
key_meant(const tt_config_key *keys,
          size_t count,
          const char *prefix,
          size_t length,
          const tt_config_node *value)
{
    const tt_config_key *meant = NULL;
    for (size_t i = 0; i < count; i++) {
        const tt_config_key *key = &keys[i];
        if ((key->flags & TT_CONFIG_SHORTHAND) == 0 || strncmp(key->path, prefix, length) != 0 ||
            key->path[length] != '.' || strchr(key->path + length + 1, '.') != NULL)
            continue;
        if (meant == NULL || (key->kind == TT_CONFIG_REAL) == is_number(value))
            meant = key;
    }
    return meant;
}

tt_status
tti_config_spell_out(tt_config *cfg,
                     const tt_config_node *base,
                     const tt_config_key *keys,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *dot = strrchr(keys[i].path, '.');
        if ((keys[i].flags & TT_CONFIG_SHORTHAND) == 0 || dot == NULL)
            continue;
        char prefix[TTI_CONFIG_PATH_MAX];
        size_t length = (size_t)(dot - keys[i].path);
        (void)snprintf(prefix, sizeof prefix, "%.*s", (int)length, keys[i].path);
        // The node is the configuration's own; readers only see it as const.
        tt_config_node *node = (tt_config_node *)(uintptr_t)tti_config_walk(base, prefix, NULL);
        if (node == NULL || node->kind == TT_CONFIG_MAPPING || node->is_faulty)
            continue;
        tt_config_node *value = tti_config_node_new(cfg, node->kind, node->place);
        if (value == NULL)
            return TT_NOMEM;
        *value = *node;
        const tt_config_key *meant = key_meant(keys, count, prefix, length, value);
        *node = (tt_config_node){.kind = TT_CONFIG_MAPPING,
                                 .place = value->place,
                                 .text = "",
                                 .directory = value->directory};
        tti_config_entry entry = {meant->path + length + 1, value->place, value};
        TT_TRY(tti_config_append(cfg, node, &entry));
    }
    return TT_OK;
}

tt_status
tt_config_spell_out(tt_config *cfg, const tt_config_key *keys, size_t count)
{
    return tti_config_spell_out(cfg, cfg->root, keys, count);
}
