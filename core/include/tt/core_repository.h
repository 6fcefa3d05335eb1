// The repository: one SQLite file a user, repository.db, in which every run leaves what it learned,
// so that a later job that is like it need not begin from nothing. Its tables are documented column
// by column in docs/repository.md; the structs below are their rows.
//
// Several processes may read and write it at once: it is in WAL mode, a run is stored in one short
// transaction, and who finds it locked waits a little (TT_REPOSITORY_BUSY_MS).
//
// Rules for every row: as in tt/core_store.h, a NULL string, a NAN, an id or count below 0 mean
// "not known". Strings read are the repository's own until it is closed.
//
// Caveats: one open repository is owned by one thread. A file that is damaged, of another schema or
// locked is an error with advice, never mended or removed here: it is the user's.
#ifndef TT_CORE_REPOSITORY_H
#define TT_CORE_REPOSITORY_H

#include "tt/core_status.h"
#include <stdint.h>

enum {
    TT_REPOSITORY_SCHEMA_VERSION = 1, // PRAGMA user_version
    TT_REPOSITORY_RUNS_MAX = 500,     // older runs go when newer ones come
    TT_REPOSITORY_BUSY_MS = 3000,
};

typedef struct tt_repository tt_repository;

// What a job was and how its run ended.
typedef struct tt_repository_run {
    int64_t key;      // given by put
    int64_t ended_at; // seconds since 1970, given by put
    const char *id;   // name of the run
    const char *name; // of the job
    const char *run_dir, *program_version, *status;
    // likeness
    const char *engine, *driver, *consistency, *model, *optimizer, *pull, *table_kind;
    int64_t batch_size, nodes, rows, features, classes;
    double nonzeros; // per row
    const char *cpu; // model of the processor
    int64_t processors, memory_bytes;
    const char *knob_space; // fingerprint of knobs, ranges and what is fixed
    // outcome
    int tuned; // whether settings were searched for
    double train_seconds;
    int64_t iterations, settings; // settings measured
    int64_t start_setting;        // the one it began with
    int64_t own_setting;          // the one the job itself asks for; -1 = not measured
    int64_t best_setting;         // tried, with the least time left by the tuner's model
    const char *started_from;     // ids of the runs it began with, separated by blanks
} tt_repository_run;

// A setting as it was measured, all its windows together.
typedef struct tt_repository_setting {
    int64_t id; // in its run, 0 = the one it began with
    double seconds_per_iteration;
    double log_se; // standard error of its logarithm
    int64_t windows, iterations;
    double log_rate, log_rate_sd; // progress an iteration, relative to the run's others
    int abandoned, refused, diverged;
} tt_repository_setting;

// One knob's value in a setting.
typedef struct tt_repository_value {
    const char *knob; // id
    double value;     // in the knob's unit; enum: index, and its name:
    const char *name; // NULL unless enum
} tt_repository_value;

// A setting with its values, as read.
typedef struct tt_repository_row {
    tt_repository_setting setting;
    const tt_repository_value *values;
    uint32_t value_count;
} tt_repository_row;

// All "not known".
void tt_repository_run_init(tt_repository_run *run);

// Where the user's repository is: $XDG_DATA_HOME/trimtab/repository.db, without that variable
// ~/.local/share/... errors TT_NOTFOUND neither that variable nor HOME is set; TT_RANGE longer than
// `out`
TT_NODISCARD tt_status tt_repository_default_path(char *out, size_t size, tt_error *err);

// The file that `wanted` means: "off" gives "", "auto" what the variable TRIMTAB_REPOSITORY says (a
// file or off), else the default path; anything else is a file (~/ is the home directory). errors
// as above
TT_NODISCARD tt_status tt_repository_choose_path(const char *wanted,
                                                 char *out,
                                                 size_t size,
                                                 tt_error *err);

// Opens to read. errors: TT_NOTFOUND there is none (yet); TT_INVALID not a repository;
// TT_UNSUPPORTED another schema; TT_CORRUPT damaged; TT_BUSY locked; TT_IO; TT_NOMEM
TT_NODISCARD tt_status tt_repository_open_read(const char *path,
                                               tt_repository **out,
                                               tt_error *err);
// Opens to write; makes the file and its directory when they are not there. errors likewise
TT_NODISCARD tt_status tt_repository_open_write(const char *path,
                                                tt_repository **out,
                                                tt_error *err);
void tt_repository_close(tt_repository *repository);

// Stores a run, all of it or nothing. rows[i].setting.id must differ. errors TT_BUSY, TT_IO, ...
TT_NODISCARD tt_status tt_repository_put(tt_repository *repository,
                                         const tt_repository_run *run,
                                         const tt_repository_row *rows,
                                         uint32_t count,
                                         tt_error *err);
// The runs there are, the newest first, at most TT_REPOSITORY_RUNS_MAX. *out is the repository's.
TT_NODISCARD tt_status tt_repository_runs(tt_repository *repository,
                                          const tt_repository_run **out,
                                          uint32_t *count,
                                          tt_error *err);
// The settings of run `key` in the order of their ids.
TT_NODISCARD tt_status tt_repository_rows(tt_repository *repository,
                                          int64_t key,
                                          const tt_repository_row **out,
                                          uint32_t *count,
                                          tt_error *err);
// Forgets the runs named `id`, or all when it is NULL. *forgotten: how many.
TT_NODISCARD tt_status tt_repository_forget(tt_repository *repository,
                                            const char *id,
                                            uint32_t *forgotten,
                                            tt_error *err);

#endif
