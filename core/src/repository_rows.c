// Runs and settings into the repository and out of it.
#include "repository_private.h"
#include "tt/core_clock.h"
#include <math.h>
#include <string.h>

// ---- writing ---------------------------------------------------------------------------------

// A statement with the next parameter to bind and the first thing that went wrong.
typedef struct row_writer {
    tt_repository *repository;
    sqlite3_stmt *statement;
    int at, code;
} row_writer;

static row_writer
prepare(tt_repository *repository, const char *sql)
{
    row_writer w = {.repository = repository};
    w.code = sqlite3_prepare_v2(repository->db, sql, -1, &w.statement, NULL);
    return w;
}

static void
put_int(row_writer *w, int64_t value)
{
    w->at++;
    if (w->code == SQLITE_OK)
        w->code = value < 0 ? sqlite3_bind_null(w->statement, w->at)
                            : sqlite3_bind_int64(w->statement, w->at, value);
}

static void
put_real(row_writer *w, double value)
{
    w->at++;
    if (w->code == SQLITE_OK)
        w->code = isfinite(value) ? sqlite3_bind_double(w->statement, w->at, value)
                                  : sqlite3_bind_null(w->statement, w->at);
}

static void
put_text(row_writer *w, const char *value)
{
    w->at++;
    if (w->code == SQLITE_OK) // borrowed for the call: the statement is stepped before it ends
        w->code = sqlite3_bind_text(w->statement, w->at, value, -1, SQLITE_STATIC);
}

// Writes the row; the statement can take another one then.
static void
step(row_writer *w)
{
    w->at = 0;
    if (w->code != SQLITE_OK)
        return;
    int code = sqlite3_step(w->statement);
    w->code = sqlite3_reset(w->statement);
    if (w->code == SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        w->code = code;
}

static tt_status
finish(row_writer *w, tt_error *err)
{
    tt_status status = TT_OK;
    if (w->code != SQLITE_OK)
        status = tti_repository_fail(w->repository, w->code, "storing a run", err);
    (void)sqlite3_finalize(w->statement);
    return status;
}

static tt_status
put_run(tt_repository *repository, const tt_repository_run *r, int64_t *key, tt_error *err)
{
    row_writer w = prepare(repository,
                           "INSERT INTO run VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
                           "?,?,?,?,?,?,?,?,?,?)");
    put_int(&w, tt_clock_wall_seconds());
    const char *const texts[] = {r->id,     r->name,      r->run_dir, r->program_version,
                                 r->status, r->engine,    r->driver,  r->consistency,
                                 r->model,  r->optimizer, r->pull,    r->table_kind};
    for (size_t i = 0; i < TT_COUNT_OF(texts); i++)
        put_text(&w, texts[i]);
    const int64_t shape[] = {r->batch_size, r->nodes, r->rows, r->features, r->classes};
    for (size_t i = 0; i < TT_COUNT_OF(shape); i++)
        put_int(&w, shape[i]);
    put_real(&w, r->nonzeros);
    put_text(&w, r->cpu);
    put_int(&w, r->processors);
    put_int(&w, r->memory_bytes);
    put_text(&w, r->knob_space);
    put_int(&w, r->tuned != 0);
    put_real(&w, r->train_seconds);
    const int64_t outcome[] = {r->iterations, r->settings, r->start_setting, r->own_setting,
                               r->best_setting};
    for (size_t i = 0; i < TT_COUNT_OF(outcome); i++)
        put_int(&w, outcome[i]);
    put_text(&w, r->started_from);
    step(&w);
    *key = sqlite3_last_insert_rowid(repository->db);
    return finish(&w, err);
}

static tt_status
put_setting(tt_repository *repository, int64_t run, const tt_repository_row *row, tt_error *err)
{
    const tt_repository_setting *s = &row->setting;
    row_writer w = prepare(repository, "INSERT INTO setting VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    put_int(&w, run);
    put_int(&w, s->id);
    put_real(&w, s->seconds_per_iteration);
    put_real(&w, s->log_se);
    put_int(&w, s->windows);
    put_int(&w, s->iterations);
    put_real(&w, s->log_rate);
    put_real(&w, s->log_rate_sd);
    put_int(&w, s->abandoned != 0);
    put_int(&w, s->refused != 0);
    put_int(&w, s->diverged != 0);
    step(&w);
    TT_TRY(finish(&w, err));
    w = prepare(repository, "INSERT INTO setting_value VALUES (?,?,?,?,?)");
    for (uint32_t i = 0; i < row->value_count; i++) {
        put_int(&w, run);
        put_int(&w, s->id);
        put_text(&w, row->values[i].knob);
        put_real(&w, row->values[i].value);
        put_text(&w, row->values[i].name);
        step(&w);
    }
    return finish(&w, err);
}

// Deletes the runs that `which` (a condition on run.key) selects, with their settings.
static tt_status
delete_runs(tt_repository *repository, const char *which, const char *id, tt_error *err)
{
    static const char *const tables[][2] = {
        {"setting_value", "run"}, {"setting", "run"}, {"run", "key"}};
    for (size_t i = 0; i < TT_COUNT_OF(tables); i++) {
        char sql[300];
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s IN (SELECT key FROM run %s)",
                       tables[i][0], tables[i][1], which);
        row_writer w = prepare(repository, sql);
        if (id != NULL)
            put_text(&w, id);
        step(&w);
        TT_TRY(finish(&w, err));
    }
    return TT_OK;
}

static tt_status
put_all(tt_repository *repository,
        const tt_repository_run *run,
        const tt_repository_row *rows,
        uint32_t count,
        tt_error *err)
{
    int64_t key;
    char which[80];
    TT_TRY(put_run(repository, run, &key, err));
    for (uint32_t i = 0; i < count; i++)
        TT_TRY(put_setting(repository, key, &rows[i], err));
    (void)snprintf(which, sizeof which, "ORDER BY key DESC LIMIT -1 OFFSET %d",
                   (int)TT_REPOSITORY_RUNS_MAX);
    return delete_runs(repository, which, NULL, err);
}

// Commits, or takes everything back.
static tt_status
end_transaction(tt_repository *repository, tt_status status, tt_error *err)
{
    if (status == TT_OK)
        status = tti_repository_exec(repository, "COMMIT", "storing a run", err);
    if (status != TT_OK && !sqlite3_get_autocommit(repository->db))
        (void)sqlite3_exec(repository->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

tt_status
tt_repository_put(tt_repository *repository,
                  const tt_repository_run *run,
                  const tt_repository_row *rows,
                  uint32_t count,
                  tt_error *err)
{
    TT_TRY(tti_repository_exec(repository, "BEGIN IMMEDIATE", "storing a run", err));
    return end_transaction(repository, put_all(repository, run, rows, count, err), err);
}

tt_status
tt_repository_forget(tt_repository *repository, const char *id, uint32_t *forgotten, tt_error *err)
{
    *forgotten = 0;
    TT_TRY(tti_repository_exec(repository, "BEGIN IMMEDIATE", "forgetting", err));
    tt_status status = delete_runs(repository, id != NULL ? "WHERE id = ?1" : "", id, err);
    if (status == TT_OK) // of the last of the statements, which is that of table run
        *forgotten = (uint32_t)sqlite3_changes(repository->db);
    return end_transaction(repository, status, err);
}

// ---- reading ---------------------------------------------------------------------------------

void
tt_repository_run_init(tt_repository_run *run)
{
    double unknown = (double)NAN;
    *run = (tt_repository_run){.key = -1,
                               .ended_at = -1,
                               .batch_size = -1,
                               .nodes = -1,
                               .rows = -1,
                               .features = -1,
                               .classes = -1,
                               .nonzeros = unknown,
                               .processors = -1,
                               .memory_bytes = -1,
                               .train_seconds = unknown,
                               .iterations = -1,
                               .settings = -1,
                               .start_setting = -1,
                               .own_setting = -1,
                               .best_setting = -1};
}

// The columns of a row one after the other.
typedef struct row_reader {
    tt_repository *repository;
    sqlite3_stmt *statement;
    int at;
    int starved;
} row_reader;

static int64_t
get_int(row_reader *r)
{
    int at = r->at++;
    return sqlite3_column_type(r->statement, at) == SQLITE_NULL
               ? -1
               : sqlite3_column_int64(r->statement, at);
}

static double
get_real(row_reader *r)
{
    int at = r->at++;
    return sqlite3_column_type(r->statement, at) == SQLITE_NULL
               ? (double)NAN
               : sqlite3_column_double(r->statement, at);
}

static const char *
get_text(row_reader *r)
{
    const char *text = (const char *)sqlite3_column_text(r->statement, r->at++);
    if (text == NULL)
        return NULL;
    const char *copy = tt_arena_strdup(&r->repository->arena, text);
    r->starved |= copy == NULL;
    return copy;
}

static void
get_run(row_reader *r, tt_repository_run *out)
{
    *out = (tt_repository_run){0};
    out->key = get_int(r);
    out->ended_at = get_int(r);
    const char **const texts[] = {
        &out->id,     &out->name,      &out->run_dir, &out->program_version,
        &out->status, &out->engine,    &out->driver,  &out->consistency,
        &out->model,  &out->optimizer, &out->pull,    &out->table_kind};
    for (size_t i = 0; i < TT_COUNT_OF(texts); i++)
        *texts[i] = get_text(r);
    int64_t *const shape[] = {&out->batch_size, &out->nodes, &out->rows, &out->features,
                              &out->classes};
    for (size_t i = 0; i < TT_COUNT_OF(shape); i++)
        *shape[i] = get_int(r);
    out->nonzeros = get_real(r);
    out->cpu = get_text(r);
    out->processors = get_int(r);
    out->memory_bytes = get_int(r);
    out->knob_space = get_text(r);
    out->tuned = get_int(r) == 1;
    out->train_seconds = get_real(r);
    int64_t *const outcome[] = {&out->iterations, &out->settings, &out->start_setting,
                                &out->own_setting, &out->best_setting};
    for (size_t i = 0; i < TT_COUNT_OF(outcome); i++)
        *outcome[i] = get_int(r);
    out->started_from = get_text(r);
}

static tt_status
no_memory(tt_repository *repository, tt_error *err)
{
    return tt_error_set(err, TT_NOMEM, repository->path, NULL, "no memory for the repository");
}

// Ends a reading statement: what stopped it, if not the end of the rows.
static tt_status
finish_reading(row_reader *r, int code, tt_error *err)
{
    tt_status status = TT_OK;
    if (r->starved)
        status = no_memory(r->repository, err);
    else if (code != SQLITE_DONE)
        status = tti_repository_fail(r->repository, code, "reading it", err);
    (void)sqlite3_finalize(r->statement);
    return status;
}

tt_status
tt_repository_runs(tt_repository *repository,
                   const tt_repository_run **out,
                   uint32_t *count,
                   tt_error *err)
{
    tt_repository_run *runs =
        tt_arena_alloc(&repository->arena, TT_REPOSITORY_RUNS_MAX * sizeof *runs);
    if (runs == NULL)
        return no_memory(repository, err);
    row_reader r = {.repository = repository};
    *count = 0;
    *out = runs;
    int code = sqlite3_prepare_v2(repository->db, "SELECT * FROM run ORDER BY key DESC", -1,
                                  &r.statement, NULL);
    if (code != SQLITE_OK)
        return finish_reading(&r, code, err);
    while (*count < TT_REPOSITORY_RUNS_MAX && !r.starved &&
           (code = sqlite3_step(r.statement)) == SQLITE_ROW) {
        r.at = 0;
        get_run(&r, &runs[(*count)++]);
    }
    return finish_reading(&r, code == SQLITE_ROW ? SQLITE_DONE : code, err);
}

enum { VALUES_MAX = 64 }; // of one setting

typedef struct gathered {
    void *items;
    size_t capacity, count;
} gathered;

// The values of one setting.
static tt_status
get_values(tt_repository *repository,
           sqlite3_stmt *statement,
           int64_t key,
           tt_repository_row *row,
           tt_error *err)
{
    tt_repository_value *values = tt_arena_alloc(&repository->arena, VALUES_MAX * sizeof *values);
    row_reader r = {.repository = repository, .statement = statement};
    int code = values == NULL ? SQLITE_NOMEM : sqlite3_bind_int64(statement, 1, key);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(statement, 2, row->setting.id);
    while (code == SQLITE_OK && !r.starved && row->value_count < VALUES_MAX) {
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
            break;
        code = SQLITE_OK;
        r.at = 0;
        tt_repository_value *value = &values[row->value_count];
        value->knob = get_text(&r);
        value->value = get_real(&r);
        value->name = get_text(&r);
        row->value_count += value->knob != NULL && isfinite(value->value);
    }
    (void)sqlite3_reset(statement);
    row->values = values;
    if (r.starved)
        return no_memory(repository, err);
    if (code != SQLITE_DONE && code != SQLITE_OK)
        return tti_repository_fail(repository, code, "reading it", err);
    return TT_OK;
}

static void
get_setting(row_reader *r, tt_repository_setting *out)
{
    r->at = 0;
    out->id = get_int(r);
    out->seconds_per_iteration = get_real(r);
    out->log_se = get_real(r);
    out->windows = get_int(r);
    out->iterations = get_int(r);
    out->log_rate = get_real(r);
    out->log_rate_sd = get_real(r);
    out->abandoned = get_int(r) == 1;
    out->refused = get_int(r) == 1;
    out->diverged = get_int(r) == 1;
}

static tt_status
gather_settings(tt_repository *repository, int64_t key, gathered *all, tt_error *err)
{
    row_reader r = {.repository = repository};
    int code = sqlite3_prepare_v2(repository->db,
                                  "SELECT id, seconds_per_iteration, log_se, windows, iterations, "
                                  "log_rate, log_rate_sd, abandoned, refused, diverged FROM "
                                  "setting WHERE run = ?1 ORDER BY id",
                                  -1, &r.statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_int64(r.statement, 1, key);
    while (code == SQLITE_OK && (code = sqlite3_step(r.statement)) == SQLITE_ROW) {
        code =
            tt_mem_grow(&all->items, &all->capacity, all->count, sizeof(tt_repository_row)) == TT_OK
                ? SQLITE_OK
                : SQLITE_NOMEM;
        if (code != SQLITE_OK)
            break;
        tt_repository_row *row = (tt_repository_row *)all->items + all->count++;
        *row = (tt_repository_row){0};
        get_setting(&r, &row->setting);
    }
    return finish_reading(&r, code, err);
}

static tt_status
gather_values(tt_repository *repository, int64_t key, gathered *all, tt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(repository->db,
                                  "SELECT knob, value, name FROM setting_value WHERE run = ?1 AND "
                                  "setting = ?2 ORDER BY knob",
                                  -1, &statement, NULL);
    tt_status status = TT_OK;
    if (code != SQLITE_OK)
        status = tti_repository_fail(repository, code, "reading it", err);
    for (size_t i = 0; i < all->count && status == TT_OK; i++)
        status = get_values(repository, statement, key, (tt_repository_row *)all->items + i, err);
    (void)sqlite3_finalize(statement);
    return status;
}

tt_status
tt_repository_rows(tt_repository *repository,
                   int64_t key,
                   const tt_repository_row **out,
                   uint32_t *count,
                   tt_error *err)
{
    gathered all = {0};
    *out = NULL;
    *count = 0;
    tt_status status = gather_settings(repository, key, &all, err);
    if (status == TT_OK)
        status = gather_values(repository, key, &all, err);
    if (status == TT_OK && all.count > 0) {
        tt_repository_row *rows =
            tt_arena_alloc(&repository->arena, all.count * sizeof(tt_repository_row));
        if (rows == NULL)
            status = no_memory(repository, err);
        else
            memcpy(rows, all.items, all.count * sizeof *rows);
        *out = rows;
        *count = rows != NULL ? (uint32_t)all.count : 0;
    }
    tt_mem_free(all.items);
    return status;
}
