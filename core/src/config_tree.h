// Private to the configuration: the tree that libyaml's events become, and the list of faults.
#ifndef TTI_CONFIG_TREE_H
#define TTI_CONFIG_TREE_H

#include "tt/core_config.h"
#include "tt/core_mem.h"

enum { TTI_CONFIG_DEPTH_MAX = 64, TTI_CONFIG_PATH_MAX = 256, TTI_CONFIG_FILE_BYTES_MAX = 4 << 20 };

typedef struct tti_config_place {
    const char *text;              // "job.yaml:12:3", "--set a.b=c"
    uint32_t source, line, column; // order of printing; source counts loads and overrides from 1
} tti_config_place;

typedef struct tti_config_entry {
    const char *key; // NULL in a sequence
    const tti_config_place *key_place;
    tt_config_node *value;
} tti_config_entry;

struct tt_config_node {
    tt_config_node_kind kind;
    int quoted;    // a scalar in quotes is text even when it looks like null
    int is_null;   // plain `null` or `~`; lives only until it is merged
    int is_faulty; // already reported: readers pass over it
    const char *text;
    const char *directory;     // of the file that says it, "" for the working directory
    const char *resolved_path; // set when it was read as a PATH
    const tti_config_place *place;
    tti_config_entry *entries;
    size_t count, capacity;
};

typedef struct tti_config_error {
    tti_config_place place;
    const char *what, *advice;
    size_t sequence;
} tti_config_error;

struct tt_config {
    tt_arena arena;
    tt_config_node *root;
    const char *first_name; // of the first source
    uint32_t source_count;
    tti_config_error *errors;
    size_t error_count, error_capacity;
    int sorted;
    int broken;  // a source could not be used: absent keys prove nothing
    int starved; // memory ran out while recording a fault
};

// ---- tree
// ----------------------------------------------------------------------------------------

char *tti_config_printf(tt_config *cfg, const char *format, ...) TT_PRINTF(2, 3);
tt_config_node *
tti_config_node_new(tt_config *cfg, tt_config_node_kind kind, const tti_config_place *place);
TT_NODISCARD tt_status tti_config_append(tt_config *cfg,
                                         tt_config_node *parent,
                                         const tti_config_entry *entry);
tti_config_entry *tti_config_entry_find(const tt_config_node *mapping, const char *key);
void tti_config_entry_remove(tt_config_node *mapping, const char *key);
// Lays `upper` over the mapping `lower`; null takes an entry away.
TT_NODISCARD tt_status tti_config_merge(tt_config *cfg,
                                        tt_config_node *lower,
                                        const tt_config_node *upper);
// The node at `path` below `node`, or, when `nearest` is given, also the deepest mapping on the
// way.
const tt_config_node *
tti_config_walk(const tt_config_node *node, const char *path, const tt_config_node **nearest);
// "a mapping", "a sequence", "text".
const char *tti_config_kind_text(tt_config_node_kind kind);

// ---- faults
// --------------------------------------------------------------------------------------

void tti_config_fault(tt_config *cfg,
                      const tti_config_place *place,
                      const char *advice,
                      const char *format,
                      ...) TT_PRINTF(4, 5);
void tti_config_fault_v(tt_config *cfg,
                        const tti_config_place *place,
                        const char *advice,
                        const char *format,
                        va_list arguments) TT_PRINTF(4, 0);
// Index into words[0..count) of the nearest to `word`, or -1.
int tti_config_nearest_index(const char *word, const char *const *words, size_t count);

// Replaces ${NAME} and its forms in a scalar's text; a variable that is not set is a fault of the
// node. errors TT_NOMEM
TT_NODISCARD tt_status tti_config_expand(tt_config *cfg, tt_config_node *node);

// ---- values
// --------------------------------------------------------------------------------------

// Parses a scalar's text as one key into the field at `out`. On failure `what` says what was
// expected
// ("must be ..., not ...") and `advice` may offer something.
TT_NODISCARD int tti_config_parse_value(tt_config *cfg,
                                        const tt_config_key *key,
                                        const tt_config_node *node,
                                        void *out,
                                        char what[400],
                                        char advice[200]);
// The value a key has when it is absent: its default, or the kind's own.
void tti_config_set_default(tt_config *cfg, const tt_config_key *key, void *out);
// 1 when the field holds the kind's own "absent".
int tti_config_is_absent(const tt_config_key *key, const void *field);
// One path as its file means it: relative ones belong to the file that says them.
const char *tti_config_resolve_path(tt_config *cfg, const char *directory, const char *text);
// A PATHS key's node -> the files; NULL when there was a fault, which is recorded.
const tt_config_paths *
tti_config_read_paths(tt_config *cfg, const tt_config_key *key, const tt_config_node *node);
// TT_CONFIG_SHORTHAND, below `base`.
TT_NODISCARD tt_status tti_config_spell_out(tt_config *cfg,
                                            const tt_config_node *base,
                                            const tt_config_key *keys,
                                            size_t count);
// Text that parses back to the same field.
const char *tti_config_format_value(tt_config *cfg, const tt_config_key *key, const void *field);

#endif
