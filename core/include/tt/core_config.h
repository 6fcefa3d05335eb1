// Strict YAML configuration. Callers describe their keys in a static table; reading checks the
// whole text against it and collects every fault at once, each as "file:line:col: what; advice".
//
//     typedef struct job { double learning_rate; int kind; const char *train; } job;
//     static const char *const kinds[] = {"sgd", "adam", NULL};
//     static const tt_config_key keys[] = {
//         {.path = "data.train", .kind = TT_CONFIG_PATH, .offset = offsetof(job, train),
//          .flags = TT_CONFIG_REQUIRED, .help = "training data"},
//         {.path = "optimizer.kind", .kind = TT_CONFIG_ENUM, .offset = offsetof(job, kind),
//          .values = kinds, .default_text = "sgd"},
//         {.path = "optimizer.learning_rate", .kind = TT_CONFIG_REAL, .min = 0, .max = 1e6,
//          .offset = offsetof(job, learning_rate), .flags = TT_CONFIG_ABOVE_MIN},
//     };
//     tt_config_open(&cfg, err); tt_config_load_file(cfg, "job.yaml", err);
//     tt_config_override(cfg, "optimizer.learning_rate=0.3", err);
//     tt_config_read(cfg, keys, TT_COUNT_OF(keys), &job);
//     if (job.kind == 1 && ...) tt_config_complain_key(cfg, "optimizer", "use sgd", "adam needs
//     ..."); if (tt_config_error_count(cfg) > 0) { tt_config_errors_print(cfg, stderr); exit 2 }
//
// Every fault is in the list, running out of memory too, so that the statuses of load, override and
// read may be left unread until the count is asked for.
//
// Caveats: one document of mappings, sequences and scalars; anchors, aliases and tags are refused.
// Scalars are typed by the key that reads them, never guessed: `name: off` is the text "off" where
// a string is expected. Everything handed out (strings, nodes) lives in the configuration until
// close. One owner thread.
#ifndef TT_CORE_CONFIG_H
#define TT_CORE_CONFIG_H

#include "tt/core_status.h"
#include <stdint.h>

// What the field at `offset` is, and what it holds when the key is absent and has no default.
typedef enum tt_config_kind {
    TT_CONFIG_STRING,   // const char *; NULL
    TT_CONFIG_PATH,     // const char *; NULL. Relative to the file that says it (--set: to ".")
    TT_CONFIG_BOOL,     // int; 0. on, off, true, false, yes, no
    TT_CONFIG_INT,      // int64_t; 0
    TT_CONFIG_REAL,     // double; NAN
    TT_CONFIG_BYTES,    // int64_t; 0. "64KiB", "1.5 MB", 4096
    TT_CONFIG_DURATION, // double, seconds; NAN. "10m", "1h30m", "250ms", 90
    TT_CONFIG_ENUM,     // int, index into values; -1
    TT_CONFIG_NODE,     // const tt_config_node *; NULL. Any value, left for the caller to walk
    TT_CONFIG_PATHS,    // const tt_config_paths *; NULL. One path or a list; * ? [...] match files
} tt_config_kind;

typedef enum tt_config_flag {
    TT_CONFIG_REQUIRED = 1 << 0,  // absent is a fault
    TT_CONFIG_ABOVE_MIN = 1 << 1, // min itself is out of range
    TT_CONFIG_BELOW_MAX = 1 << 2, // max itself is out of range
    TT_CONFIG_AUTO = 1 << 3,      // the word `auto` stands for "absent, no default"
    TT_CONFIG_PERCENT = 1 << 4,   // REAL: "10%" is 0.1
    // A value in place of the mapping that holds this key is this key's: `test: a.svm` is `test:
    // {file: a.svm}`. Of a REAL key and another one, numbers go to the REAL.
    TT_CONFIG_SHORTHAND = 1 << 5,
} tt_config_flag;

// Files in the order of the list; what one pattern matches, in the order of bytes (as LC_ALL=C ls
// has it). A pattern that matches nothing, and a file that is there twice, are faults; a plain path
// is not looked for.
typedef struct tt_config_paths {
    size_t count; // at least 1
    const char *const *path;
    const char *const *place; // of the element that says it: "job.yaml:12:18"
} tt_config_paths;

typedef struct tt_config_key {
    const char *path; // "optimizer.learning_rate", relative to the mapping that is read
    tt_config_kind kind;
    size_t offset;
    double min, max;           // INT, REAL, BYTES, DURATION; min >= max means no bounds
    const char *default_text;  // as one would write it; NULL = none
    const char *const *values; // ENUM: names, ended by NULL
    const char *unit;          // for messages: "iterations"; NULL = none
    const char *help;          // one line, no full stop
    unsigned flags;            // tt_config_flag
} tt_config_key;

typedef struct tt_config tt_config;
typedef struct tt_config_node tt_config_node;

// ---- life
// ----------------------------------------------------------------------------------------

TT_NODISCARD tt_status tt_config_open(tt_config **out, tt_error *err);
void tt_config_close(tt_config *cfg);

// Adds a file (or a text called `name`); a later one is laid over an earlier one: mappings merge,
// everything else is replaced, `null` takes a key back.
// errors   TT_NOTFOUND, TT_IO unreadable; TT_SYNTAX malformed YAML; TT_NOMEM. Such a fault is also
// in
//          the list of errors. Faults that leave a usable tree (a duplicate key) are in the list
//          only, and the call returns TT_OK.
tt_status tt_config_load_file(tt_config *cfg, const char *path, tt_error *err);
tt_status tt_config_load_text(tt_config *cfg, const char *name, const char *text, tt_error *err);
// "a.b=c": c is a YAML scalar or flow collection and replaces what was there; missing mappings on
// the way are made; `a.b=null` takes the key back. Its place in messages is "--set a.b=c". errors
// as above; a malformed override changes nothing.
tt_status tt_config_override(tt_config *cfg, const char *assignment, tt_error *err);

// ---- reading
// -------------------------------------------------------------------------------------

// Fills the struct at `out` from the whole configuration, and reports every key the table does not
// know (nothing is reported under a NODE key: that part belongs to whoever walks it). Fields of
// faulty keys hold their default, so that checks across keys may go on. errors   TT_INVALID this
// call recorded faults; TT_NOMEM
tt_status tt_config_read(tt_config *cfg, const tt_config_key *keys, size_t count, void *out);
// The same for one mapping, paths relative to it. A NULL node is an empty mapping.
tt_status tt_config_read_at(
    tt_config *cfg, const tt_config_node *node, const tt_config_key *keys, size_t count, void *out);
// One node as one key (its offset is ignored): for elements of a sequence.
tt_status
tt_config_read_one(tt_config *cfg, const tt_config_node *node, const tt_config_key *key, void *out);
// Writes out what was said in short (TT_CONFIG_SHORTHAND), so that an override can go inside.
// Reading does it as well. errors TT_NOMEM
tt_status tt_config_spell_out(tt_config *cfg, const tt_config_key *keys, size_t count);
// 1 when the file, text or an override gives this key (whatever its value is, except null).
int tt_config_given(const tt_config *cfg, const char *path);

// ---- walking
// -------------------------------------------------------------------------------------

typedef enum tt_config_node_kind {
    TT_CONFIG_SCALAR,
    TT_CONFIG_SEQUENCE,
    TT_CONFIG_MAPPING,
} tt_config_node_kind;

// NULL when nothing was loaded yet.
const tt_config_node *tt_config_root(const tt_config *cfg);
// "a.b" below `node` (NULL = the root); NULL when absent or null.
const tt_config_node *
tt_config_find(const tt_config *cfg, const tt_config_node *node, const char *path);
tt_config_node_kind tt_config_node_kind_of(const tt_config_node *node);
// Entries of a mapping or elements of a sequence; 0 for a scalar. (Entries set to null are not
// counted.)
size_t tt_config_node_count(const tt_config_node *node);
const tt_config_node *tt_config_node_at(const tt_config_node *node, size_t index);
// Key of entry `index` of a mapping, and where the key stands.
const char *tt_config_node_key(const tt_config_node *node, size_t index);
const char *tt_config_node_key_place(const tt_config_node *node, size_t index);
// Text of a scalar; NULL for a collection.
const char *tt_config_node_text(const tt_config_node *node);
// "job.yaml:12:18" or "--set a.b=c": where the value stands.
const char *tt_config_node_place(const tt_config_node *node);

// ---- errors
// --------------------------------------------------------------------------------------

// Adds a fault found by the caller, at a node's value (NULL: at the configuration as a whole).
// Equal faults at one place are kept once. advice may be NULL.
void tt_config_complain(tt_config *cfg,
                        const tt_config_node *node,
                        const char *advice,
                        const char *format,
                        ...) TT_PRINTF(4, 5);
// At the value of a key, or, where it is absent, at the nearest mapping above it.
void tt_config_complain_key(
    tt_config *cfg, const char *path, const char *advice, const char *format, ...) TT_PRINTF(4, 5);
// At the key of entry `index` of a mapping, offering the nearest of `known` (ended by NULL):
// "unknown key 'chunks'; did you mean 'chunk_bytes'?". For parts the caller walks itself.
void tt_config_complain_unknown(tt_config *cfg,
                                const tt_config_node *mapping,
                                size_t index,
                                const char *const *known);
size_t tt_config_error_count(const tt_config *cfg);
// Fault `index` in the order of printing. 0, or -1 when there is no such fault.
int tt_config_error_get(tt_config *cfg, size_t index, tt_error *out);
// All faults in the order of the files, lines and overrides, and a last line "3 errors, nothing was
// run.". Prints nothing when there are none.
void tt_config_errors_print(tt_config *cfg, FILE *out);

// The nearest of `known` (ended by NULL) to a misspelt word, or NULL when none is near.
const char *tt_config_nearest(const char *word, const char *const *known);

// ---- writing
// -------------------------------------------------------------------------------------

// Writes the struct at `values` as YAML with every key of the table, in its order; reading it back
// with the same table gives the same struct. Keys without a value (see tt_config_kind) are left
// out; NODE subtrees are written as given. errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tt_config_write_resolved(tt_config *cfg,
                                                const tt_config_key *keys,
                                                size_t count,
                                                const void *values,
                                                FILE *out,
                                                tt_error *err);

// A key's value in a struct as text, for comparing and naming it: "" when it has none, a
// subtree on one line, NULL without memory. Lives as long as the configuration.
const char *tt_config_value_text(tt_config *cfg, const tt_config_key *key, const void *values);

#endif
