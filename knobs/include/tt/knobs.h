// knobs: what can be turned. Descriptions of knobs (built in and from plugins), the registry, and the search space of one job:
// which knobs are tuned, over which range, where they start, which are fixed and by whom.
//
// Caveats: a setting is meaningful only together with its space. This folder turns nothing itself; reconfig does, through the
// knob instances opened here.
#ifndef TT_KNOBS_H
#define TT_KNOBS_H

#include "tt/core.h"
#include "tt/knob.h" // the plugin header: tt_knob_kind, tt_knob_scale, tt_knob_effect, tt_knob, tt_knob_host

enum { TT_KNOBS_MAX = 32, TT_KNOB_VALUES_MAX = 16 };

// One value per knob, in the order of the space. Ints and enum indices are exact in a double; bool is 0 or 1.
typedef struct tt_setting {
    uint32_t count;
    double value[TT_KNOBS_MAX];
} tt_setting;

// ---- registry ------------------------------------------------------------------------------------------------------------

typedef struct tt_knob_registry tt_knob_registry;

// A registry with the built-in knobs. thread [control]
TT_NODISCARD tt_status tt_knob_registry_open(tt_knob_registry **out, tt_error *err);
// Loads a plugin (.ttk, a shared object). errors: TT_NOTFOUND no such file, TT_INVALID not a plugin or another ABI major, or a
// description that breaks the header's rules, TT_EXISTS an id is taken. The plugin stays loaded until close.
TT_NODISCARD tt_status tt_knob_registry_load(tt_knob_registry *registry, const char *path, tt_error *err);
uint32_t tt_knob_registry_count(const tt_knob_registry *registry);
// Borrowed until close. NULL when there is none.
const tt_knob *tt_knob_registry_at(const tt_knob_registry *registry, uint32_t index);
const tt_knob *tt_knob_registry_find(const tt_knob_registry *registry, const char *id);
// "built in" or the plugin's path.
const char *tt_knob_registry_origin(const tt_knob_registry *registry, uint32_t index);
void tt_knob_registry_close(tt_knob_registry *registry);

// ---- search space --------------------------------------------------------------------------------------------------------

typedef struct tt_space_knob {
    const tt_knob *knob; // description, borrowed from the registry
    double min, max;     // the job's range (enum: 0 .. values - 1; bool: 0 .. 1)
    double start;        // where tuning begins, or the fixed value
    int log_scale;       // encode by logarithm
    int fixed;           // not tuned
    char reason[120];    // why it is fixed: "by you (job.yaml:14)", "in_place has no servers", ... or why the range shrank
} tt_space_knob;

typedef struct tt_space {
    uint32_t count;
    tt_space_knob knob[TT_KNOBS_MAX];
    // Optional further condition on whole settings (the safe set); NULL accepts all. Pure, thread [any].
    int (*accept)(void *self, const tt_setting *setting);
    void *accept_self;
} tt_space;

// All knobs of the registry over their own ranges, starting at their defaults, none fixed.
void tt_space_init(tt_space *space, const tt_knob_registry *registry);
// Index of a knob by id, or -1.
int tt_space_find(const tt_space *space, const char *id);
// Number of knobs that are not fixed.
uint32_t tt_space_free_count(const tt_space *space);
// Natural log of the number of settings; reals count as 1,000 values.
double tt_space_log_size(const tt_space *space);
void tt_space_start(const tt_space *space, tt_setting *out);
// [0, 1] coordinate of a value (log scale where the knob says so) and back, snapped to the knob's grid and range.
double tt_space_encode(const tt_space_knob *knob, double value);
double tt_space_decode(const tt_space_knob *knob, double unit);
double tt_space_snap(const tt_space_knob *knob, double value);
// In range, on the grid, and accepted.
int tt_space_valid(const tt_space *space, const tt_setting *setting);
int tt_setting_equal(const tt_setting *a, const tt_setting *b);
// Text to value: "on", "off", "64KiB", "3", "avx2". where: the place for the message. errors TT_INVALID, TT_RANGE.
TT_NODISCARD tt_status tt_space_parse(const tt_space_knob *knob, const char *text, const char *where, double *out, tt_error *err);
// Value to text with its unit ("256 KiB", "on", "avx2", "3"). Returns out.
char *tt_space_format(const tt_space_knob *knob, double value, char *out, size_t size);
// "servers 1, chunk_bytes 256 KiB": the knobs in which a differs from b, or all free knobs when b is NULL. Returns out.
char *tt_setting_format(const tt_space *space, const tt_setting *a, const tt_setting *b, char *out, size_t size);

// ---- instances -----------------------------------------------------------------------------------------------------------

// All knobs of a space opened for one node (or for the master, to check proposals). thread: one thread at a time.
typedef struct tt_knob_set tt_knob_set;
TT_NODISCARD tt_status tt_knob_set_open(const tt_space *space, const tt_knob_host *host, tt_knob_set **out, tt_error *err);
// Asks every knob that differs from the setting in force; a refusal rolls all back and says which and why. TT_INVALID then.
TT_NODISCARD tt_status tt_knob_set_prepare(tt_knob_set *set, const tt_setting *target, tt_error *err);
// After a successful prepare: makes it the setting in force. May not fail.
void tt_knob_set_commit(tt_knob_set *set);
void tt_knob_set_rollback(tt_knob_set *set);
void tt_knob_set_close(tt_knob_set *set);

#endif
