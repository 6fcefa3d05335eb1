// A table of keys against the tree: typed values out, and every fault of the text in.
#include "config_tree.h"
#include <string.h>

// ---- one value
// -----------------------------------------------------------------------------------

static void
read_value(tt_config *cfg, const tt_config_key *key, const tt_config_node *node, void *out)
{
    tti_config_set_default(cfg, key, out);
    if (node->is_faulty)
        return;
    if (key->kind == TT_CONFIG_NODE) {
        *(const tt_config_node **)out = node;
        return;
    }
    if (key->kind == TT_CONFIG_PATHS) {
        *(const tt_config_paths **)out = tti_config_read_paths(cfg, key, node);
        return;
    }
    if (node->kind != TT_CONFIG_SCALAR) {
        tti_config_fault(cfg, node->place, "write one value", "%s must be one value, not %s",
                         key->path, tti_config_kind_text(node->kind));
        return;
    }
    char what[400], advice[200];
    if (!tti_config_parse_value(cfg, key, node, out, what, advice)) {
        tti_config_set_default(cfg, key, out);
        tti_config_fault(cfg, node->place, advice, "%s", what);
    } else if (key->kind == TT_CONFIG_PATH)
        // The node is the configuration's own; callers only see it as const. Kept for writing.
        ((tt_config_node *)(uintptr_t)node)->resolved_path = *(const char **)out;
}

static const char *
kind_example(const tt_config_key *key)
{
    switch (key->kind) {
    case TT_CONFIG_PATH:
    case TT_CONFIG_PATHS:
        return "a path";
    case TT_CONFIG_BOOL:
        return "on or off";
    case TT_CONFIG_INT:
        return "a whole number";
    case TT_CONFIG_REAL:
        return "a number";
    case TT_CONFIG_BYTES:
        return "a size";
    case TT_CONFIG_DURATION:
        return "a duration";
    case TT_CONFIG_ENUM:
        return key->values[0];
    default:
        return "text";
    }
}

static void
report_missing(tt_config *cfg, const tt_config_node *base, const tt_config_key *key)
{
    const tt_config_node *nearest = NULL;
    (void)tti_config_walk(base, key->path, &nearest);
    if (cfg->broken ||
        (nearest != NULL && (nearest->kind != TT_CONFIG_MAPPING || nearest->is_faulty)))
        return; // the cause is reported already
    char advice[240];
    (void)snprintf(advice, sizeof advice, "add it: %s%s%s", kind_example(key),
                   key->help != NULL ? ", " : "", key->help != NULL ? key->help : "");
    int at_root = nearest == NULL || nearest == cfg->root;
    tti_config_fault(cfg, at_root ? NULL : nearest->place, advice, "%s is missing", key->path);
}

// ---- unknown keys
// --------------------------------------------------------------------------------

typedef struct table {
    const tt_config_key *keys;
    size_t count;
} table;

typedef enum known { KNOWN_NOT, KNOWN_KEY, KNOWN_GROUP } known;

// Length of `prefix` as the beginning of dotted paths below it: "a.b" -> 4, "" -> 0.
static size_t
prefix_length(const char *prefix)
{
    size_t length = strlen(prefix);
    return length > 0 ? length + 1 : 0;
}

static known
look_up(table t, const char *path)
{
    size_t length = strlen(path);
    known found = KNOWN_NOT;
    for (size_t i = 0; i < t.count; i++) {
        if (strcmp(t.keys[i].path, path) == 0)
            return KNOWN_KEY;
        if (strncmp(t.keys[i].path, path, length) == 0 && t.keys[i].path[length] == '.')
            found = KNOWN_GROUP;
    }
    return found;
}

enum { NAMES_MAX = 64, NAME_BYTES = 64 };

// The names a mapping at `prefix` may have, in the table's order, without repetition.
static size_t
names_below(table t, const char *prefix, char names[NAMES_MAX][NAME_BYTES])
{
    size_t skip = prefix_length(prefix), count = 0;
    for (size_t i = 0; i < t.count && count < NAMES_MAX; i++) {
        const char *path = t.keys[i].path;
        if (skip > 0 && (strncmp(path, prefix, skip - 1) != 0 || path[skip - 1] != '.'))
            continue;
        size_t length = TT_MIN(strcspn(path + skip, "."), NAME_BYTES - 1), j = 0;
        while (j < count &&
               (strncmp(names[j], path + skip, length) != 0 || names[j][length] != '\0'))
            j++;
        if (j < count)
            continue;
        memcpy(names[count], path + skip, length);
        names[count++][length] = '\0';
    }
    return count;
}

// A key that exists, but in another mapping: "learning_rate" -> "optimizer.learning_rate".
static const char *
same_name_elsewhere(table t, const char *name)
{
    for (size_t i = 0; i < t.count; i++) {
        const char *dot = strrchr(t.keys[i].path, '.');
        if (dot != NULL && strcmp(dot + 1, name) == 0)
            return t.keys[i].path;
    }
    return NULL;
}

static void
report_unknown(
    tt_config *cfg, table t, const char *prefix, const tt_config_node *mapping, size_t index)
{
    char names[NAMES_MAX][NAME_BYTES];
    const char *words[NAMES_MAX + 1] = {NULL};
    size_t count = names_below(t, prefix, names);
    for (size_t i = 0; i < count; i++)
        words[i] = names[i];
    const tti_config_entry *entry = &mapping->entries[index];
    const char *elsewhere = NULL;
    if (tt_config_nearest(entry->key, words) == NULL)
        elsewhere = strchr(entry->key, '.') == NULL ? same_name_elsewhere(t, entry->key) : NULL;
    if (strchr(entry->key, '.') != NULL)
        tti_config_fault(cfg, entry->key_place, "dots are for --set; in a file nest: a: {b: 1}",
                         "unknown key '%.80s'", entry->key);
    else if (elsewhere != NULL)
        tti_config_fault(cfg, entry->key_place,
                         tti_config_printf(cfg, "did you mean '%s'?", elsewhere),
                         "unknown key '%.80s' here", entry->key);
    else
        tt_config_complain_unknown(cfg, mapping, index, words);
}

static void
check_known(tt_config *cfg, table t, const char *prefix, const tt_config_node *mapping)
{
    for (size_t i = 0; i < mapping->count; i++) {
        const tti_config_entry *entry = &mapping->entries[i];
        char path[TTI_CONFIG_PATH_MAX];
        int length =
            snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", entry->key);
        int fits = length > 0 && (size_t)length < sizeof path && strchr(entry->key, '.') == NULL;
        known kind = fits ? look_up(t, path) : KNOWN_NOT;
        if (kind == KNOWN_NOT)
            report_unknown(cfg, t, prefix, mapping, i);
        else if (kind == KNOWN_GROUP && entry->value->kind == TT_CONFIG_MAPPING)
            check_known(cfg, t, path, entry->value);
        else if (kind == KNOWN_GROUP && !entry->value->is_faulty)
            tti_config_fault(cfg, entry->value->place, "write `key: value` lines below it",
                             "%s must be a mapping of keys, not %s", path,
                             tti_config_kind_text(entry->value->kind));
    }
}

// ---- reading
// -------------------------------------------------------------------------------------

static tt_status
read_status(const tt_config *cfg, size_t faults_before)
{
    if (cfg->starved)
        return TT_NOMEM;
    return cfg->error_count > faults_before ? TT_INVALID : TT_OK;
}

tt_status
tt_config_read_at(
    tt_config *cfg, const tt_config_node *node, const tt_config_key *keys, size_t count, void *out)
{
    size_t faults_before = cfg->error_count;
    TT_TRY(tti_config_spell_out(cfg, node, keys, count));
    if (node != NULL && node->kind != TT_CONFIG_MAPPING) {
        if (!node->is_faulty)
            tti_config_fault(cfg, node->place, "write `key: value` lines below it",
                             "expected a mapping of keys, found %s",
                             tti_config_kind_text(node->kind));
    } else if (node != NULL)
        check_known(cfg, (table){keys, count}, "", node);
    for (size_t i = 0; i < count; i++) {
        void *field = (char *)out + keys[i].offset;
        const tt_config_node *value = tti_config_walk(node, keys[i].path, NULL);
        if (value != NULL) {
            read_value(cfg, &keys[i], value, field);
            continue;
        }
        tti_config_set_default(cfg, &keys[i], field);
        if (keys[i].flags & TT_CONFIG_REQUIRED)
            report_missing(cfg, node, &keys[i]);
    }
    return read_status(cfg, faults_before);
}

tt_status
tt_config_read(tt_config *cfg, const tt_config_key *keys, size_t count, void *out)
{
    return tt_config_read_at(cfg, cfg->root, keys, count, out);
}

tt_status
tt_config_read_one(tt_config *cfg, const tt_config_node *node, const tt_config_key *key, void *out)
{
    size_t faults_before = cfg->error_count;
    read_value(cfg, key, node, out);
    return read_status(cfg, faults_before);
}
