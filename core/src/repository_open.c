// The repository's life: where it is, its schema, and every way in which a file can be the wrong
// one.
#include "repository_private.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { APPLICATION_ID = 0x74727265 }; // "trre"

// Documented in docs/repository.md.
static const char schema[] =
    "CREATE TABLE run (key INTEGER PRIMARY KEY AUTOINCREMENT, ended_at INTEGER, id TEXT, name TEXT,"
    " run_dir TEXT, program_version TEXT, status TEXT, engine TEXT, driver TEXT, consistency TEXT,"
    " model TEXT, optimizer TEXT, pull TEXT, table_kind TEXT, batch_size INTEGER, nodes INTEGER,"
    " rows INTEGER, features INTEGER, classes INTEGER, nonzeros REAL, cpu TEXT, processors INTEGER,"
    " memory_bytes INTEGER, knob_space TEXT, tuned INTEGER, train_seconds REAL, iterations INTEGER,"
    " settings INTEGER, start_setting INTEGER, own_setting INTEGER, best_setting INTEGER,"
    " started_from TEXT);"
    "CREATE TABLE setting (run INTEGER, id INTEGER, seconds_per_iteration REAL, log_se REAL,"
    " windows INTEGER, iterations INTEGER, log_rate REAL, log_rate_sd REAL, abandoned INTEGER,"
    " refused INTEGER, diverged INTEGER, PRIMARY KEY (run, id)) WITHOUT ROWID;"
    "CREATE TABLE setting_value (run INTEGER, setting INTEGER, knob TEXT, value REAL, name TEXT,"
    " PRIMARY KEY (run, setting, knob)) WITHOUT ROWID;";

// ---- errors ----------------------------------------------------------------------------------

typedef struct fault {
    int code;
    tt_status status;
    const char *what, *advice;
} fault;

#define ELSEWHERE "set 'repository' to another file, or to off"

static const fault faults[] = {
    {SQLITE_FULL, TT_IO, "the disk is full", "free some space (df -h), or " ELSEWHERE},
    {SQLITE_IOERR, TT_IO, "the disk failed or is full", "check it (df -h, dmesg), or " ELSEWHERE},
    {SQLITE_CORRUPT, TT_CORRUPT, "the file is damaged",
     "move it aside and a new one is begun; `sqlite3 FILE .recover` may save most of it"},
    {SQLITE_NOTADB, TT_INVALID, "this is not a repository of trimtab",
     "move it aside and a new one is begun, or " ELSEWHERE},
    {SQLITE_BUSY, TT_BUSY, "another program holds it locked",
     "see which (fuser FILE) and end it, or " ELSEWHERE},
    {SQLITE_NOMEM, TT_NOMEM, "out of memory", NULL},
    {SQLITE_CANTOPEN, TT_IO, "cannot open it",
     "check that you may write to its directory, or " ELSEWHERE},
    {SQLITE_PERM, TT_IO, "not permitted", "check the owner of the file, or " ELSEWHERE},
    {SQLITE_READONLY, TT_IO, "it may only be read",
     "make it and its directory writable, or " ELSEWHERE},
};

tt_status
tti_repository_fail(tt_repository *repository, int code, const char *doing, tt_error *err)
{
    const char *detail =
        repository->db != NULL ? sqlite3_errmsg(repository->db) : sqlite3_errstr(code);
    for (size_t i = 0; i < TT_COUNT_OF(faults); i++)
        if (faults[i].code == (code & 0xff))
            return tt_error_set(err, faults[i].status, repository->path, faults[i].advice,
                                "%s while %s (%.200s)", faults[i].what, doing, detail);
    // A table or column that should be there and is not, above all.
    return tt_error_set(err, TT_CORRUPT, repository->path,
                        "move it aside and a new one is begun, or " ELSEWHERE, "%s failed: %.200s",
                        doing, detail);
}

tt_status
tti_repository_exec(tt_repository *repository, const char *sql, const char *doing, tt_error *err)
{
    int code = sqlite3_exec(repository->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? TT_OK : tti_repository_fail(repository, code, doing, err);
}

// ---- where -----------------------------------------------------------------------------------

tt_status
tt_repository_default_path(char *out, size_t size, tt_error *err)
{
    // The environment is set before threads start. A relative XDG_DATA_HOME is to be ignored, says
    // the XDG base directory specification.
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME"), *below = "";
    if (data == NULL || data[0] != '/') {
        data = home;
        below = "/.local/share";
    }
    if (data == NULL || data[0] == '\0')
        return tt_error_set(err, TT_NOTFOUND, "repository", "name a file with 'repository: PATH'",
                            "neither XDG_DATA_HOME nor HOME is set");
    int length = snprintf(out, size, "%s%s/trimtab/repository.db", data, below);
    if (length < 0 || (size_t)length >= size)
        return tt_error_set(err, TT_RANGE, "repository", "name a file with 'repository: PATH'",
                            "the path of the user's data directory is too long");
    return TT_OK;
}

tt_status
tt_repository_choose_path(const char *wanted, char *out, size_t size, tt_error *err)
{
    const char *named = getenv("TRIMTAB_REPOSITORY"), *home = getenv("HOME");
    if (strcmp(wanted, "auto") == 0 && named != NULL && named[0] != '\0')
        wanted = named;
    if (strcmp(wanted, "auto") == 0)
        return tt_repository_default_path(out, size, err);
    if (strcmp(wanted, "off") == 0)
        wanted = "";
    int expand = wanted[0] == '~' && wanted[1] == '/' && home != NULL;
    int length = snprintf(out, size, "%s%s", expand ? home : "", expand ? wanted + 1 : wanted);
    if (length >= 0 && (size_t)length < size)
        return TT_OK;
    return tt_error_set(err, TT_RANGE, "repository", "name a file with a shorter path",
                        "the path is too long");
}

// The directories that lead to a file, as mkdir -p makes them; the user's own, so for nobody else.
static tt_status
make_directories(const char *path, tt_error *err)
{
    char part[4096];
    if (strlen(path) >= sizeof part)
        return tt_error_set(err, TT_RANGE, path, ELSEWHERE, "the path is too long");
    (void)snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            int cause = errno;
            struct stat info;
            if (stat(part, &info) != 0 || !S_ISDIR(info.st_mode))
                return tt_error_set(
                    err, TT_IO, path, "check that you may write there, or " ELSEWHERE,
                    "cannot make the directory %.200s: %s", part, tt_errno_text(cause));
        }
        *slash = '/';
    }
    return TT_OK;
}

// ---- opening ---------------------------------------------------------------------------------

void
tt_repository_close(tt_repository *repository)
{
    if (repository == NULL)
        return;
    int code = sqlite3_close(repository->db);
    TT_ASSERT(code == SQLITE_OK); // a statement was forgotten
    tt_arena_fini(&repository->arena);
    tt_mem_free(repository->path);
    tt_mem_free(repository);
}

static tt_status
connect_to(const char *path, int flags, tt_repository **out, tt_error *err)
{
    tt_repository *r = tt_mem_zalloc(1, sizeof *r);
    char *copy = tt_mem_strdup(path);
    if (r == NULL || copy == NULL) {
        tt_mem_free(r);
        tt_mem_free(copy);
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for the repository");
    }
    r->path = copy;
    tt_arena_init(&r->arena, 16384);
    *out = r;
    int code = sqlite3_open_v2(path, &r->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK)
        return tti_repository_fail(r, code, "opening it", err);
    (void)sqlite3_extended_result_codes(r->db, 1);
    (void)sqlite3_busy_timeout(r->db, TT_REPOSITORY_BUSY_MS);
    return TT_OK;
}

// One number or word from a PRAGMA or SELECT. `text` may be NULL.
static tt_status
ask(tt_repository *r, const char *sql, int64_t *number, char *text, size_t size, tt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW && number != NULL)
        *number = sqlite3_column_int64(statement, 0);
    if (code == SQLITE_ROW && text != NULL) {
        const char *value = (const char *)sqlite3_column_text(statement, 0);
        (void)snprintf(text, size, "%s", value != NULL ? value : "");
    }
    tt_status status = TT_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = tti_repository_fail(r, code, "reading it", err);
    (void)sqlite3_finalize(statement);
    return status;
}

static tt_status
check_identity(tt_repository *r, tt_error *err)
{
    int64_t application = 0, version = 0;
    TT_TRY(ask(r, "PRAGMA application_id", &application, NULL, 0, err));
    if (application != APPLICATION_ID)
        return tt_error_set(err, TT_INVALID, r->path,
                            "move it aside and a new one is begun, or " ELSEWHERE,
                            "this is not a repository of trimtab");
    TT_TRY(ask(r, "PRAGMA user_version", &version, NULL, 0, err));
    if (version == TT_REPOSITORY_SCHEMA_VERSION)
        return TT_OK;
    int newer = version > TT_REPOSITORY_SCHEMA_VERSION;
    return tt_error_set(err, TT_UNSUPPORTED, r->path,
                        newer ? "update trimtab, or " ELSEWHERE
                              : "move it aside and a new one is begun, or " ELSEWHERE,
                        "this repository has schema %" PRId64 ", this trimtab knows schema %d",
                        version, (int)TT_REPOSITORY_SCHEMA_VERSION);
}

static tt_status
check_pages(tt_repository *r, tt_error *err)
{
    char answer[300] = "ok";
    TT_TRY(ask(r, "PRAGMA quick_check(1)", NULL, answer, sizeof answer, err));
    if (strcmp(answer, "ok") == 0)
        return TT_OK;
    for (char *c = answer; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return tt_error_set(err, TT_CORRUPT, r->path,
                        "move it aside and a new one is begun; `sqlite3 FILE .recover` may save "
                        "most of it",
                        "the file is damaged: %s", answer);
}

static tt_status
finish_open(tt_repository *r, tt_status status, tt_repository **out, tt_error *err)
{
    if (status == TT_OK)
        status = check_identity(r, err);
    if (status == TT_OK)
        status = check_pages(r, err);
    if (status != TT_OK) {
        tt_repository_close(r);
        return status;
    }
    *out = r;
    return TT_OK;
}

tt_status
tt_repository_open_read(const char *path, tt_repository **out, tt_error *err)
{
    *out = NULL;
    struct stat info;
    if (stat(path, &info) != 0) {
        int none = errno == ENOENT;
        return tt_error_set(err, none ? TT_NOTFOUND : TT_IO, path, none ? NULL : ELSEWHERE,
                            "there is no repository: %s", tt_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode))
        return tt_error_set(err, TT_INVALID, path, ELSEWHERE, "this is not a file");
    // An empty file is one that another run has just made.
    if (info.st_size == 0)
        return tt_error_set(err, TT_NOTFOUND, path, NULL, "the repository is empty");
    // Not read-only: the last reader then clears the journal's files away, if it may write.
    tt_repository *r = NULL;
    tt_status status = connect_to(path, SQLITE_OPEN_READWRITE, &r, err);
    if (r == NULL)
        return status;
    return finish_open(r, status, out, err);
}

// Who comes first makes the tables, in one transaction; who comes second finds them.
static tt_status
set_up(tt_repository *r, tt_error *err)
{
    int64_t tables = 0;
    TT_TRY(ask(r, "SELECT count(*) FROM sqlite_master", &tables, NULL, 0, err));
    if (tables > 0)
        return TT_OK;
    // Where another process is just doing the same this may fail: then it is done by that one.
    (void)sqlite3_exec(r->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    TT_TRY(tti_repository_exec(r, "BEGIN IMMEDIATE", "making it", err));
    tt_status status = ask(r, "SELECT count(*) FROM sqlite_master", &tables, NULL, 0, err);
    char sql[160];
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d;",
                   (int)APPLICATION_ID, (int)TT_REPOSITORY_SCHEMA_VERSION);
    if (status == TT_OK && tables == 0)
        status = tti_repository_exec(r, sql, "making it", err);
    if (status == TT_OK && tables == 0)
        status = tti_repository_exec(r, schema, "making it", err);
    if (status == TT_OK)
        return tti_repository_exec(r, "COMMIT", "making it", err);
    (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

tt_status
tt_repository_open_write(const char *path, tt_repository **out, tt_error *err)
{
    *out = NULL;
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return tt_error_set(err, TT_INVALID, path, ELSEWHERE, "this is not a file");
    TT_TRY(make_directories(path, err));
    tt_repository *r = NULL;
    tt_status status = connect_to(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &r, err);
    if (r == NULL)
        return status;
    if (status == TT_OK)
        status = set_up(r, err);
    return finish_open(r, status, out, err);
}
