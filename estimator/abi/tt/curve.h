// SPDX-License-Identifier: MIT
//
// tt/curve.h: the one header a curve plugin needs. It includes only the C library, and a plugin
// links nothing of trimtab.
//
// A curve family is a form the loss of a training job may follow: loss = f(p, clock), with up to
// six numbers p that are fitted while the job trains. The host (trimtab) asks every family how many
// iterations are left until the loss meets a target, and weighs the families by how well each one
// foretold the losses that came next. A family that does not fit the job soon has no say; one
// that does makes the time left, and so the tuner's decisions, better.
//
// The author writes f, a first guess of p and, where there is one, the floor f cannot pass. The
// host does the rest: it fits by weighted, robust least squares, finds the errors of p, inverts f,
// and scores.
//
//     static const tt_curve my_curve = {.struct_size = sizeof(tt_curve), .name = "my_curve", ...};
//     TT_CURVE_PLUGIN(&my_curve)
//
// Compile with -fPIC -shared into a file my_curve.ttc and link with -Wl,-z,defs, which proves that
// nothing of the host is needed. `estimator/template/` is such a plugin with its build file and a
// test.
//
// Caveats. The host loads a plugin into its own process: a plugin that crashes or does not return
// takes the job along. The functions are called tens of thousands of times whenever the host has
// seen a few per cent more of the job: they must be pure (no memory between calls, no input or
// output) and take well under a microsecond. The host differentiates by steps of six millionths of
// a parameter's size, at least 1e-9: choose units in which f is smooth over such a step.
//
// Words. Host: the program that loads this plugin. Clock: iterations since the first one whose loss
// the host knows, at the pace of an average setting; an iteration is one push of gradients, or one
// round where workers wait for each other. Loss: mean example loss of a minibatch, with the
// regulariser where the job's target has it; in whatever unit the model has, and not always above
// 0.
#ifndef TT_CURVE_H
#define TT_CURVE_H

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
#define TT_CURVE_ABI_MAJOR 1
#define TT_CURVE_ABI_MINOR 0
// Name of the exported function, as text for dlsym.
#define TT_CURVE_SYMBOL "tt_curve_plugin_abi1"

// Numbers a family may have fitted.
#define TT_CURVE_PARAMETERS_MAX 6

// ---- a family --------------------------------------------------------------------------------
//
// The host reads the description right after loading and keeps pointing into its strings until the
// plugin is unloaded. Its functions may be called from any thread, several at the same moment.
//
// p always has `parameters` numbers. A result that is not finite says that p is outside of the
// family's domain: the fit then stays away from there, and a family without any p inside is left
// out until more is known. There is no other way to fail, and none is needed: return NAN.
typedef struct tt_curve {
    uint32_t struct_size; // sizeof(tt_curve) where the plugin was compiled
    uint32_t parameters;  // 1 to TT_CURVE_PARAMETERS_MAX
    const char *name;     // stable for ever: [a-z][a-z0-9_]*, at most 40 characters
    const char *help;     // one line for people
    double prior; // weight before any evidence, against 1 of most built-in families; above 0,
                  // at most 10. Under 1 for a form that another family has as a special
                  // case, which would count twice, or that bends a lot on little data

    // A first guess of p from `count` points: mean losses of blocks of iterations, by increasing
    // clock, the noise still in them. target: the loss the job is to reach, NAN when there is none;
    // it may be ignored. 0: too few points, or nothing to tell; p need not be written then. The
    // guess need not be good, but f must be finite there. [any thread; microseconds]
    int (*guess)(const double *clock, const double *loss, uint32_t count, double target, double *p);
    // f: the expected loss after `clock` iterations, 0 <= clock <= 1e10. [any thread; well under a
    // microsecond]
    double (*loss)(const double *p, double clock);

    // Optional, may be NULL from here on.

    // The loss f never passes however long it goes on; where it lies above the target, the target
    // cannot be reached. NULL: none is known, and f at 1e9 iterations from now stands for it. [any
    // thread; nanoseconds]
    double (*floor)(const double *p);
} tt_curve;

// ---- plugin ----------------------------------------------------------------------------------

// What the exported function returns: constant, valid while the plugin is loaded. The macro below
// fills it. The size lets the host tell a plugin compiled with a broken copy of this header.
typedef struct tt_curve_plugin {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    uint32_t curve_size;
    uint32_t curve_count;
    uint32_t reserved; // zero
    const tt_curve *const *curves;
    const char *build; // fingerprint: compiler and target, for reports of trouble
} tt_curve_plugin;

#if defined(__x86_64__)
#define TT_CURVE_TARGET_ "x86-64"
#elif defined(__aarch64__)
#define TT_CURVE_TARGET_ "aarch64"
#elif defined(__riscv)
#define TT_CURVE_TARGET_ "riscv"
#else
#define TT_CURVE_TARGET_ "other"
#endif
#define TT_CURVE_BUILD_ "header 1.0, " TT_CURVE_TARGET_ ", compiler " __VERSION__

#ifdef __cplusplus
#define TT_CURVE_EXTERN_ extern "C"
#else
#define TT_CURVE_EXTERN_ extern
#endif

// Writes the one exported symbol. Arguments: addresses of the plugin's families, at least one. Once
// per plugin, at file scope, no semicolon needed.
#define TT_CURVE_PLUGIN(...)                                                                       \
    TT_CURVE_EXTERN_ __attribute__((visibility("default"))) const tt_curve_plugin *                \
    tt_curve_plugin_abi1(void);                                                                    \
    const tt_curve_plugin *tt_curve_plugin_abi1(void)                                              \
    {                                                                                              \
        static const tt_curve *const curves_[] = {__VA_ARGS__};                                    \
        static const tt_curve_plugin plugin_ = {sizeof(tt_curve_plugin),                           \
                                                TT_CURVE_ABI_MAJOR,                                \
                                                TT_CURVE_ABI_MINOR,                                \
                                                sizeof(tt_curve),                                  \
                                                sizeof curves_ / sizeof curves_[0],                \
                                                0,                                                 \
                                                curves_,                                           \
                                                TT_CURVE_BUILD_};                                  \
        return &plugin_;                                                                           \
    }

// ---- layout ----------------------------------------------------------------------------------
//
// Both sides compile these: a compiler that would lay the structs out differently (a packing pragma
// before the include) stops here and not in a running job.
#ifdef __cplusplus
#define TT_CURVE_LAYOUT_(condition) static_assert(condition, "tt/curve.h: layout of " #condition)
#else
#define TT_CURVE_LAYOUT_(condition) _Static_assert(condition, "tt/curve.h: layout of " #condition)
#endif
#if UINTPTR_MAX == UINT64_MAX
TT_CURVE_LAYOUT_(offsetof(tt_curve, parameters) == 4);
TT_CURVE_LAYOUT_(offsetof(tt_curve, name) == 8);
TT_CURVE_LAYOUT_(offsetof(tt_curve, prior) == 24);
TT_CURVE_LAYOUT_(offsetof(tt_curve, guess) == 32);
TT_CURVE_LAYOUT_(offsetof(tt_curve, loss) == 40);
TT_CURVE_LAYOUT_(offsetof(tt_curve, floor) == 48);
TT_CURVE_LAYOUT_(sizeof(tt_curve) == 56);
TT_CURVE_LAYOUT_(offsetof(tt_curve_plugin, curves) == 24);
TT_CURVE_LAYOUT_(sizeof(tt_curve_plugin) == 40);
#endif

#ifdef __cplusplus
}
#endif
#endif
