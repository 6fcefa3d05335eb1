// Private to the repository.
#ifndef TTI_REPOSITORY_PRIVATE_H
#define TTI_REPOSITORY_PRIVATE_H

#include "tt/core_mem.h"
#include "tt/core_repository.h"
#include <sqlite3.h>

struct tt_repository {
    sqlite3 *db;
    char *path;
    tt_arena arena; // of what was read
};

// Turns SQLite's code into a status with advice.
tt_status
tti_repository_fail(tt_repository *repository, int code, const char *doing, tt_error *err);
TT_NODISCARD tt_status tti_repository_exec(tt_repository *repository,
                                           const char *sql,
                                           const char *doing,
                                           tt_error *err);

#endif
