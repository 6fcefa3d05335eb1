// Plug-ins: shared objects that bring something to the program through a C interface of their own
// (knobs, curve families). Here is what all kinds have in common: opening the file, finding the
// entry of this major, and copying structs that may have grown since one side was compiled.
//
// Caveats: loading runs the file's constructors in this process. Nothing here looks at what the
// plug-in describes; whoever knows the interface does.
#ifndef TT_CORE_PLUGIN_H
#define TT_CORE_PLUGIN_H

#include "tt/core_status.h"
#include <stdint.h>

// One kind of plug-in. Texts are for messages and for the name of the entry.
typedef struct tt_plugin_kind {
    const char *noun;    // "knob": messages speak of a knob plugin and of the knob interface
    const char *stem;    // "tt_knob_plugin_abi": the entry is this and the major
    unsigned major;      // of the interface this program speaks
    const char *header;  // "tt/knob.h"
    const char *macro;   // "TT_KNOB_PLUGIN(&knob)": what a source ends with
    const char *example; // "knobs/template": how one is built
} tt_plugin_kind;

typedef struct tt_plugin {
    void *handle;
    char *path; // as given
    // The exported function, to be copied into a pointer of its own type (memcpy: POSIX promises
    // that this conversion works, ISO C has no cast for it).
    void *entry;
} tt_plugin;

// Opens the file at `path` and finds its entry. On failure *out is zero.
//
// errors   TT_NOTFOUND no such file; TT_IO it cannot be read; TT_INVALID not a shared object, not a
//          plug-in of this kind, or of another major; TT_NOMEM
// owns     *out until tt_plugin_close
// thread   [control]; runs the plug-in's constructors if it has any
TT_NODISCARD tt_status tt_plugin_open(const tt_plugin_kind *kind,
                                      const char *path,
                                      tt_plugin *out,
                                      tt_error *err);
// Unloads it: nothing it handed out may be used any more. A zeroed one is fine.
void tt_plugin_close(tt_plugin *plugin);

// Copies what both sides of an interface know: `theirs` begins with its uint32_t struct_size.
// ours is zeroed first and gets its own size. False when theirs is smaller than `least` bytes.
int tt_plugin_copy_struct(void *ours, size_t our_size, const void *theirs, size_t least);

#endif
