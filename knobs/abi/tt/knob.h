// SPDX-License-Identifier: MIT
// tt/knob.h: the one header a knob plugin needs. It includes only the C library and a plugin links nothing of trimtab.
#ifndef TT_KNOB_H
#define TT_KNOB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_KNOB_ABI_MAJOR 1

typedef enum tt_knob_kind { TT_KNOB_BOOL = 0, TT_KNOB_INT = 1, TT_KNOB_REAL = 2, TT_KNOB_ENUM = 3 } tt_knob_kind;
typedef enum tt_knob_scale { TT_KNOB_LINEAR = 0, TT_KNOB_LOG2 = 1 } tt_knob_scale;

// What a change sets in motion (the paper's Type II, I-a, I-b); flags.
typedef enum tt_knob_effect {
    TT_KNOB_EFFECT_SETTING = 0,   // nodes change a setting at their next iteration boundary
    TT_KNOB_MOVES_DATA     = 1,   // training data shards change owner
    TT_KNOB_MOVES_MODEL    = 2,   // partitions of the model change server
} tt_knob_effect;

// What the host offers. get_extension returns a table named in this header, or NULL: "not here".
typedef struct tt_knob_host {
    uint32_t struct_size;
    void *impl;
    const void *(*get_extension)(const struct tt_knob_host *host, const char *name);
} tt_knob_host;

// Extension "tt.runtime/1": named numbers of the node that opened the knob. set returns 0, or -1 when there is no such number
// here. [node thread, at an iteration boundary; microseconds]
#define TT_KNOB_RUNTIME "tt.runtime/1"
typedef struct tt_knob_runtime {
    uint32_t struct_size;
    int (*set)(void *impl, const char *name, double value);
    int (*get)(void *impl, const char *name, double *out);
} tt_knob_runtime;

typedef struct tt_knob {
    uint32_t struct_size;
    const char *id;                  // stable, [a-z][a-z0-9_]*
    const char *help;                // one line
    const char *unit;                // "bytes", "threads", "" ...
    tt_knob_kind kind;
    tt_knob_scale scale;
    uint32_t effect;                 // flags of tt_knob_effect
    uint32_t changes_statistics;     // 1: can change the number of iterations needed, not only their time
    double min, max, default_value;  // enum: indices into values
    const char *const *values;       // enum: names, ended by NULL
    // An instance for one node; NULL refuses (out of memory). [control]
    void *(*open)(const tt_knob_host *host);
    // 0 = ready; otherwise a sentence in reason and nothing has changed. [node thread or control; milliseconds]
    int (*prepare)(void *self, double value, char *reason, size_t reason_size);
    void (*commit)(void *self);      // may not fail [node thread, at an iteration boundary; microseconds]
    void (*rollback)(void *self);    // undoes a prepare
    void (*close)(void *self);
    // Extensions of the plugin, asked for by the host; may be NULL.
    const void *(*get_extension)(const char *name);
} tt_knob;

#ifdef __cplusplus
}
#endif
#endif
