// knobs: what can be turned. Descriptions of knobs (built in and from plugins), the registry, and
// the search space of one job: which knobs are tuned, over which range, where they start, which are
// fixed and by whom.
//
// Caveats: a setting is meaningful only together with its space. This folder turns nothing itself;
// reconfig does, through the knob instances opened here.
#ifndef TT_KNOBS_H
#define TT_KNOBS_H

#include "tt/core.h"
#include "tt/knob.h" // the plugin header: tt_knob, tt_knob_kind, tt_knob_effect, tt_knob_host ...

enum { TT_KNOBS_MAX = 32, TT_KNOB_VALUES_MAX = 16 };

// One value per knob, in the order of the space. Ints and enum indices are exact in a double; bool
// is 0 or 1.
typedef struct tt_setting {
    uint32_t count;
    double value[TT_KNOBS_MAX];
} tt_setting;

// ---- registry --------------------------------------------------------------------------------

typedef struct tt_knob_registry tt_knob_registry;

// A registry with the built-in knobs. thread [control]
TT_NODISCARD tt_status tt_knob_registry_open(tt_knob_registry **out, tt_error *err);
// Loads a plugin (.ttk, a shared object). All its knobs are taken or none.
//
// errors   TT_NOTFOUND no such file; TT_INVALID not a plugin, another ABI major, or a description
//          that breaks the header's rules; TT_EXISTS an id is taken; TT_RANGE more than
//          TT_KNOBS_MAX knobs; TT_NOMEM
// owns     the plugin stays loaded until close
// thread   [control]; runs the plugin's constructors if it has any
TT_NODISCARD tt_status tt_knob_registry_load(tt_knob_registry *registry,
                                             const char *path,
                                             tt_error *err);
uint32_t tt_knob_registry_count(const tt_knob_registry *registry);
// Borrowed until close. NULL when there is none.
const tt_knob *tt_knob_registry_at(const tt_knob_registry *registry, uint32_t index);
const tt_knob *tt_knob_registry_find(const tt_knob_registry *registry, const char *id);
// "built in" or the plugin's path.
const char *tt_knob_registry_origin(const tt_knob_registry *registry, uint32_t index);
// The build fingerprint of a plugin (header version, target, compiler); "" for the built-in ones.
const char *tt_knob_registry_build(const tt_knob_registry *registry, uint32_t index);
// Unloads the plugins: no description, space or instance of them may be used after it.
void tt_knob_registry_close(tt_knob_registry *registry);

// ---- search space ----------------------------------------------------------------------------

typedef struct tt_space_knob {
    const tt_knob *knob; // description, borrowed from the registry
    double min, max;     // the job's range (enum: 0 .. values - 1; bool: 0 .. 1)
    double start;        // where tuning begins, or the fixed value
    int log_scale;       // encode by logarithm
    int fixed;           // not tuned
    char reason[120];    // why it is fixed: "by you (job.yaml:14)", ... or why the range shrank
    int absent;          // not part of this job ("in_place has no servers"): fixed as well, no
                         // instance is opened and nobody is asked to change it
} tt_space_knob;

typedef struct tt_space {
    uint32_t count;
    tt_space_knob knob[TT_KNOBS_MAX];
    // Optional further condition on whole settings (the safe set); NULL accepts all. Pure, thread
    // [any].
    int (*accept)(void *self, const tt_setting *setting);
    void *accept_self;
} tt_space;

// All knobs of the registry over their own ranges, starting at their defaults, none fixed.
void tt_space_init(tt_space *space, const tt_knob_registry *registry);
// Index of a knob by id, or -1.
int tt_space_find(const tt_space *space, const char *id);
// Gives knob `index` the range [min, max] inside its present one, with `reason` (may be NULL) for
// people: "nodes is 8 and at least one must work". The start moves to the nearest value inside.
// Both ends are snapped inwards to the grid.
// where (may be NULL): the place for the message. errors TT_RANGE: nothing of it is in the range.
TT_NODISCARD tt_status tt_space_narrow(tt_space *space,
                                       uint32_t index,
                                       double min,
                                       double max,
                                       const char *reason,
                                       const char *where,
                                       tt_error *err);
// Starts knob `index` at `value`; fixes it there with the reason when `reason` is not NULL.
// errors TT_RANGE: not in the range or not on the grid; nothing changed.
TT_NODISCARD tt_status tt_space_start_at(tt_space *space,
                                         uint32_t index,
                                         double value,
                                         const char *reason,
                                         const char *where,
                                         tt_error *err);
// Knob `index` is not part of this job, for `reason`: fixed and absent.
void tt_space_drop(tt_space *space, uint32_t index, const char *reason);
// Number of knobs that are not fixed.
uint32_t tt_space_free_count(const tt_space *space);
// Natural log of the number of settings; reals count as 1,000 values.
double tt_space_log_size(const tt_space *space);
void tt_space_start(const tt_space *space, tt_setting *out);

// [0, 1] coordinate of a value and back, snapped to the knob's grid and range; NaN becomes the
// range's lower end. min lies at 0 and max at 1, and a range of one value at 0.
//
//   linear          u = (x - min) / (max - min)
//   log             u = log((x + s) / (min + s)) / log((max + s) / (min + s)),
//                   s = 1 for an int whose description begins at 0, else 0
//   back            bool, enum, linear int, powers of two: n cells of equal width, so that uniform
//                   u gives each value the same chance; log int: rounded; real: exact up to
//                   rounding
//
// decode(encode(x)) == x for every value on an int, enum or bool grid (for log ints up to 2^40).
double tt_space_encode(const tt_space_knob *knob, double value);
double tt_space_decode(const tt_space_knob *knob, double unit);
double tt_space_snap(const tt_space_knob *knob, double value);
// In range, on the grid, and accepted.
int tt_space_valid(const tt_space *space, const tt_setting *setting);
int tt_setting_equal(const tt_setting *a, const tt_setting *b);
// Text to value: "on", "off", "64KiB", "64 KiB", "3", "3 requests", "avx2". where (may be NULL):
// the place for the message. errors TT_INVALID not a value of this kind, TT_RANGE.
TT_NODISCARD tt_status tt_space_parse(
    const tt_space_knob *knob, const char *text, const char *where, double *out, tt_error *err);
// Value to text with its unit ("256 KiB", "on", "avx2", "3", "4 requests"), such that parse reads
// it back to the same value. The unit is left out where the id ends with it
// ("compute_threads 2"). Cut off when out is too small. Returns out.
char *tt_space_format(const tt_space_knob *knob, double value, char *out, size_t size);
// "servers 1, chunk_bytes 256 KiB": the knobs in which a differs from b ("" when in none), or all
// free knobs when b is NULL. Ends in "..." when out is too small. Returns out.
char *tt_setting_format(
    const tt_space *space, const tt_setting *a, const tt_setting *b, char *out, size_t size);

// ---- instances -------------------------------------------------------------------------------

// All knobs of a space opened for one node (or for the master, to check proposals). thread: one
// thread at a time.
typedef struct tt_knob_set tt_knob_set;

// The space is copied; host and the registry behind the space must live until close. Nothing is in
// force yet: the first prepare asks every knob that is not absent, fixed ones included.
// errors TT_NOMEM, also when a knob's open refuses.
TT_NODISCARD tt_status tt_knob_set_open(const tt_space *space,
                                        const tt_knob_host *host,
                                        tt_knob_set **out,
                                        tt_error *err);
// Asks every knob that differs from the setting in force; a refusal rolls all back and says which
// and why. TT_INVALID then; TT_RANGE when the target is not of the space. Must be followed by
// commit or rollback when it succeeds.
TT_NODISCARD tt_status tt_knob_set_prepare(tt_knob_set *set,
                                           const tt_setting *target,
                                           tt_error *err);
// After a successful prepare: makes it the setting in force. May not fail.
void tt_knob_set_commit(tt_knob_set *set);
// After a successful prepare: forgets it.
void tt_knob_set_rollback(tt_knob_set *set);
// The setting in force, or NULL before the first commit. Borrowed until the next commit or close.
const tt_setting *tt_knob_set_current(const tt_knob_set *set);
// Rolls back what is prepared, then closes all instances. NULL is fine.
void tt_knob_set_close(tt_knob_set *set);

#endif
