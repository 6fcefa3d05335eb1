// SPDX-License-Identifier: MIT
//
// tt/knob.h: the one header a knob plugin needs. It includes only the C library, and a plugin links
// nothing of trimtab.
//
// A knob is one thing about a running training job that can be turned: a number, a switch, or one
// of several names. A plugin describes its knobs and carries a change out on one node; the host
// (trimtab) decides when to turn which knob, and to what.
//
//     static const tt_knob my_knob = {.struct_size = sizeof(tt_knob), .id = "my_knob", ...};
//     TT_KNOB_PLUGIN(&my_knob)
//
// Compile with -fPIC -shared into a file my_knob.ttk and link with -Wl,-z,defs, which proves that
// nothing of the host is needed. `knobs/template/` is such a plugin with its build file and a test.
//
// Caveats. The host loads a plugin into its own process: a plugin that crashes takes the job along.
// One process may hold several nodes (one thread each), so state that belongs to a node lives in
// the instance that `open` returns, and static variables are shared by all of them. The host never
// changes the description it was given and never calls a knob from two threads at once through one
// instance; two instances of one knob may be called at the same moment from two threads.
//
// Words. Host: the program that loads this plugin. Node: one server or worker of the job.
// Instance: what `open` returned, one knob on one node. Iteration boundary: the moment between two
// iterations of a node, when it touches no parameter and waits for nobody; changes happen there.
#ifndef TT_KNOB_H
#define TT_KNOB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- versions --------------------------------------------------------------------------------
//
// The major number is part of the name of the one symbol a plugin exports, so that a plugin of
// another major is recognised before a byte of it is read. Within a major, structs only grow at
// their end. Each begins with its size as its author's compiler saw it; whoever receives one
// copies what both sides know into a zeroed struct of its own and leaves the rest zero. Therefore
// zero must mean "not there" or "as before" in every field to come, and no struct that may grow is
// ever embedded in another: they are reached by pointer.
//
// New abilities come as named extensions ("tt.runtime/1"), asked for by name in both directions.
// A NULL answer means "not here", and both sides must then do without.
#define TT_KNOB_ABI_MAJOR 1
#define TT_KNOB_ABI_MINOR 0
// Name of the exported function, as text for dlsym.
#define TT_KNOB_SYMBOL "tt_knob_plugin_abi1"

// ---- description -----------------------------------------------------------------------------

// What kind of value a knob has. All travel as a double: a bool as 0 or 1, an enum as the index of
// its name, an int exactly (at most 2^53 in magnitude).
typedef enum tt_knob_kind {
    TT_KNOB_BOOL = 0,
    TT_KNOB_INT = 1,
    TT_KNOB_REAL = 2,
    TT_KNOB_ENUM = 3
} tt_knob_kind;

// How distances are judged. On a LOG2 scale from 1 to 2 is as far as from 64 to 128: use it where
// ratios matter (sizes, counts, rates). A real on a LOG2 scale needs min > 0. An int may begin at 0
// there: its coordinate is then log2(1 + x), so that 0 and 1 are neighbours. Bool and enum have no
// scale: leave it 0.
typedef enum tt_knob_scale { TT_KNOB_LINEAR = 0, TT_KNOB_LOG2 = 1 } tt_knob_scale;

// Which values of an int's range are meant: all of them, or the powers of two only (min, max and
// default must then be powers of two).
typedef enum tt_knob_grid { TT_KNOB_EVERY = 0, TT_KNOB_POWERS_OF_TWO = 1 } tt_knob_grid;

// What a change sets in motion, as flags; the host prices a change by them (the kinds II, I-a and
// I-b of "Towards Self-Tuning Parameter Servers", arXiv 1810.02935).
typedef enum tt_knob_effect {
    TT_KNOB_EFFECT_SETTING = 0, // each node changes a setting at its next iteration boundary
    TT_KNOB_MOVES_DATA = 1,     // shards of the training data change owner
    TT_KNOB_MOVES_MODEL = 2     // partitions of the model change server
} tt_knob_effect;

// What a change does to the number of iterations training needs, beside their time.
typedef enum tt_knob_statistics {
    TT_KNOB_TIME_ONLY = 0,  // nothing: threads, buffers, sizes of pieces
    TT_KNOB_STATISTICS = 1, // it may take more or fewer: staleness, what is merged
    TT_KNOB_LOSSY = 2       // the greater the value (enum: the later) the more is lost, so it may
                            // take more, never fewer: rounding
} tt_knob_statistics;

// ---- host ------------------------------------------------------------------------------------

// What the host offers to an instance. It stays valid, at the same address, from `open` until
// `close` has returned, so an instance may keep the pointer.
typedef struct tt_knob_host {
    uint32_t struct_size;
    void *impl; // the host's own; hand it back in the calls of an extension
    // The table of the extension `name`, or NULL: "not here". The table is valid as long as the
    // host. Cheap enough to be called in `open`. [any thread; nanoseconds]
    const void *(*get_extension)(const struct tt_knob_host *host, const char *name);
} tt_knob_host;

// Extension "tt.runtime/1": named numbers of the node that opened the knob. The host's own knobs
// act through it and through nothing else: "servers", "compute_threads", "bf16_transfer",
// "chunk_bytes", "spin", "in_flight", "prefetch", "push_aggregation", "staleness", "kernel",
// "pinning". Which names exist depends on the job and the node: ask with get in `prepare`, where a
// refusal is still possible.
#define TT_KNOB_RUNTIME "tt.runtime/1"
typedef struct tt_knob_runtime {
    uint32_t struct_size;
    // Gives the number `name` the value from the node's next iteration on. 0, or -1 when there is
    // no such number here. A name that get knew a moment ago in the same prepare/commit pair does
    // not get lost. [node thread, in commit; microseconds]
    int (*set)(void *impl, const char *name, double value);
    // Reads it into *out. 0, or -1 when there is no such number here; *out is then unchanged.
    // [node thread or control, in prepare or commit; microseconds]
    int (*get)(void *impl, const char *name, double *out);
} tt_knob_runtime;

// ---- a knob ----------------------------------------------------------------------------------
//
// The first half describes; the host reads it right after loading, without opening anything, and
// keeps pointing into its strings until the plugin is unloaded. The second half acts.
//
// The life of an instance, on one node:
//
//     open -> { prepare -> commit | prepare -> rollback } ... -> close
//
// A change is made in two steps so that a change of many knobs on many nodes happens as a whole or
// not at all. `prepare` does everything that can fail: checks, allocates, asks the runtime. It
// either refuses with a sentence and leaves no trace, or it is ready. After that exactly one of
// `commit` and `rollback` follows; neither may fail. `prepare` is called with values of the
// knob's range and, on purpose, sometimes with values outside it, which it must refuse. It is also
// called only to find out whether a value is possible: a rollback may follow at once.
//
// No instance is told the value it starts with: the first prepare/commit brings it.
//
// Thread tags: [control] the job's control thread while the node does not run; [node] the node's
// own thread at an iteration boundary. Time budgets are what the host plans with: a commit that
// needs longer than its budget delays training on this node and shows up in the job's report.
typedef struct tt_knob {
    uint32_t struct_size; // sizeof(tt_knob) where the plugin was compiled
    const char *id;       // stable for ever: [a-z][a-z0-9_]*, at most 40 characters
    const char *help;     // one line for people
    const char *unit;     // "bytes", "threads", "requests", "" or NULL; "bytes" reads as KiB, MiB
    tt_knob_kind kind;
    tt_knob_scale scale;
    uint32_t effect;             // flags of tt_knob_effect
    uint32_t changes_statistics; // one of tt_knob_statistics
    double min, max;             // both included; the host fills them in for bool and enum
    double default_value;        // in range, on the grid; enum: an index
    const char *const *values;   // enum: 1 to 16 different names [a-z0-9_]+, ended by NULL

    // An instance for one node. NULL refuses (out of memory); the job then does not start.
    // [control; milliseconds]
    void *(*open)(const tt_knob_host *host);
    // 0: ready, commit or rollback follows. Otherwise a sentence for the user has been written to
    // reason (at most reason_size bytes with its NUL; the host has put an empty string there) and
    // nothing has changed. [node or control; milliseconds]
    int (*prepare)(void *self, double value, char *reason, size_t reason_size);
    // Makes the prepared value the one in force. May not fail, wait or allocate. [node;
    // microseconds]
    void (*commit)(void *self);
    // Forgets the prepared value. May not fail. [node or control; microseconds]
    void (*rollback)(void *self);
    // Releases the instance, never between prepare and commit. What it changed may stay changed:
    // the job ends. [control; milliseconds]
    void (*close)(void *self);

    // Optional, may be NULL from here on.

    // Extensions of the plugin, asked for by the host. [any thread; nanoseconds]
    const void *(*get_extension)(const char *name);
    // For knobs that should be changed together: when several prepared knobs of one node have the
    // same function here, the host calls it once, with their instances in the order of the
    // plugin's list, in place of their commits. When only some of them changed, only those are
    // handed over. Same rules as commit. [node; microseconds]
    void (*commit_together)(void *const *selves, uint32_t count);
    tt_knob_grid grid; // ints only; 0 means every integer
    uint32_t reserved; // zero
} tt_knob;

// ---- plugin ----------------------------------------------------------------------------------

// What the exported function returns: constant, valid while the plugin is loaded. The macro below
// fills it. The sizes let the host tell a plugin compiled with a broken copy of this header.
typedef struct tt_knob_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    uint32_t knob_size, host_size, runtime_size;
    uint32_t knob_count;
    uint32_t reserved; // zero
    const tt_knob *const *knobs;
    const char *build; // fingerprint: compiler and target, for reports of trouble
} tt_knob_plugin;

#if defined(__x86_64__)
#define TT_KNOB_TARGET_ "x86-64"
#elif defined(__aarch64__)
#define TT_KNOB_TARGET_ "aarch64"
#elif defined(__riscv)
#define TT_KNOB_TARGET_ "riscv"
#else
#define TT_KNOB_TARGET_ "other"
#endif
#define TT_KNOB_BUILD_ "header 1.0, " TT_KNOB_TARGET_ ", compiler " __VERSION__

#ifdef __cplusplus
#define TT_KNOB_EXTERN_ extern "C"
#else
#define TT_KNOB_EXTERN_ extern
#endif

// Writes the one exported symbol. Arguments: addresses of the plugin's knobs, at least one. Once
// per plugin, at file scope, no semicolon needed.
#define TT_KNOB_PLUGIN(...)                                                                        \
    TT_KNOB_EXTERN_ __attribute__((visibility("default"))) const tt_knob_plugin *                  \
    tt_knob_plugin_abi1(void);                                                                     \
    const tt_knob_plugin *tt_knob_plugin_abi1(void)                                                \
    {                                                                                              \
        static const tt_knob *const knobs_[] = {__VA_ARGS__};                                      \
        static const tt_knob_plugin plugin_ = {sizeof(tt_knob_plugin),                             \
                                               TT_KNOB_ABI_MAJOR,                                  \
                                               TT_KNOB_ABI_MINOR,                                  \
                                               sizeof(tt_knob),                                    \
                                               sizeof(tt_knob_host),                               \
                                               sizeof(tt_knob_runtime),                            \
                                               sizeof knobs_ / sizeof knobs_[0],                   \
                                               0,                                                  \
                                               knobs_,                                             \
                                               TT_KNOB_BUILD_};                                    \
        return &plugin_;                                                                           \
    }

// ---- layout ----------------------------------------------------------------------------------
//
// Both sides compile these: a compiler that would lay the structs out differently (short enums, a
// packing pragma before the include) stops here and not in a running job.
#ifdef __cplusplus
#define TT_KNOB_LAYOUT_(condition) static_assert(condition, "tt/knob.h: layout of " #condition)
#else
#define TT_KNOB_LAYOUT_(condition) _Static_assert(condition, "tt/knob.h: layout of " #condition)
#endif
#if UINTPTR_MAX == UINT64_MAX
TT_KNOB_LAYOUT_(sizeof(tt_knob_kind) == 4);
TT_KNOB_LAYOUT_(offsetof(tt_knob_host, impl) == 8);
TT_KNOB_LAYOUT_(offsetof(tt_knob_host, get_extension) == 16);
TT_KNOB_LAYOUT_(sizeof(tt_knob_host) == 24);
TT_KNOB_LAYOUT_(offsetof(tt_knob_runtime, set) == 8);
TT_KNOB_LAYOUT_(offsetof(tt_knob_runtime, get) == 16);
TT_KNOB_LAYOUT_(sizeof(tt_knob_runtime) == 24);
TT_KNOB_LAYOUT_(offsetof(tt_knob, id) == 8);
TT_KNOB_LAYOUT_(offsetof(tt_knob, kind) == 32);
TT_KNOB_LAYOUT_(offsetof(tt_knob, changes_statistics) == 44);
TT_KNOB_LAYOUT_(offsetof(tt_knob, min) == 48);
TT_KNOB_LAYOUT_(offsetof(tt_knob, values) == 72);
TT_KNOB_LAYOUT_(offsetof(tt_knob, open) == 80);
TT_KNOB_LAYOUT_(offsetof(tt_knob, close) == 112);
TT_KNOB_LAYOUT_(offsetof(tt_knob, get_extension) == 120);
TT_KNOB_LAYOUT_(offsetof(tt_knob, commit_together) == 128);
TT_KNOB_LAYOUT_(offsetof(tt_knob, grid) == 136);
TT_KNOB_LAYOUT_(sizeof(tt_knob) == 144);
TT_KNOB_LAYOUT_(offsetof(tt_knob_plugin, knobs) == 32);
TT_KNOB_LAYOUT_(sizeof(tt_knob_plugin) == 48);
#endif

#ifdef __cplusplus
}
#endif
#endif
