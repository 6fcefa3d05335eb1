// Typed rows into the run store.
#include "store_private.h"
#include "tt/core_clock.h"
#include <math.h>
#include <string.h>

// ---- one statement
// -------------------------------------------------------------------------------

static const struct {
    int parameters;
    const char *sql, *name;
} statements[] = {
#define STATEMENT(name, parameters, sql) {parameters, sql, #name},
    TTI_STORE_STATEMENTS(STATEMENT)
#undef STATEMENT
};

static int
prepare(tt_store *store, tti_store_statement which)
{
    if (store->statements[which] != NULL)
        return SQLITE_OK;
    char sql[256];
    size_t used = (size_t)snprintf(sql, sizeof sql, "%s", statements[which].sql);
    for (int i = 0; i < statements[which].parameters; i++)
        used += (size_t)snprintf(sql + used, sizeof sql - used, "%s", i == 0 ? " (?" : ",?");
    if (statements[which].parameters > 0)
        used += (size_t)snprintf(sql + used, sizeof sql - used, ")");
    TT_ASSERT(used < sizeof sql);
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &store->statements[which], NULL);
}

static int
bind(sqlite3_stmt *statement, int parameter, const tti_store_cell *cell)
{
    switch (cell->type) {
    case TTI_CELL_INT:
        if (cell->integer < 0 && !cell->is_signed)
            return sqlite3_bind_null(statement, parameter);
        return sqlite3_bind_int64(statement, parameter, cell->integer);
    case TTI_CELL_REAL:
        if (isnan(cell->real))
            return sqlite3_bind_null(statement, parameter);
        return sqlite3_bind_double(statement, parameter, cell->real);
    case TTI_CELL_TEXT:
        // Borrowed for the call: the statement is stepped before it ends. NULL binds NULL.
        return sqlite3_bind_text(statement, parameter, cell->text, -1, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

// A batch that a fault of the disk or of memory touched is given up as a whole, so that what is in
// the file is always the state of some commit.
static void
give_up_batch(tt_store *store, int code)
{
    int primary = code & 0xff;
    if (primary == SQLITE_FULL || primary == SQLITE_IOERR || primary == SQLITE_NOMEM ||
        primary == SQLITE_CORRUPT || sqlite3_get_autocommit(store->db))
        tti_store_abandon(store);
}

tt_status
tti_store_write(tt_store *store,
                tti_store_statement which,
                const tti_store_cell *cells,
                size_t count,
                tt_error *err)
{
    if (store->behind != NULL)
        return tti_store_row_behind(store, which, cells, count, err);
    return tti_store_write_now(store, which, cells, count, err);
}

tt_status
tti_store_write_now(tt_store *store,
                    tti_store_statement which,
                    const tti_store_cell *cells,
                    size_t count,
                    tt_error *err)
{
    TT_ASSERT(store->writable);
    TT_ASSERT(statements[which].parameters == 0 || (size_t)statements[which].parameters == count);
    int code = prepare(store, which);
    sqlite3_stmt *statement = store->statements[which];
    for (size_t i = 0; i < count && code == SQLITE_OK; i++)
        code = bind(statement, (int)i + 1, &cells[i]);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_DONE || code == SQLITE_ROW) {
        code = sqlite3_reset(statement);
        (void)sqlite3_clear_bindings(statement);
    }
    if (code == SQLITE_OK)
        return TT_OK;
    char doing[48];
    (void)snprintf(doing, sizeof doing, "writing %s", statements[which].name);
    tt_status status = tti_store_fail(store, code, doing, err);
    if (statement != NULL) {
        (void)sqlite3_reset(statement);
        (void)sqlite3_clear_bindings(statement);
    }
    give_up_batch(store, code);
    return status;
}

// ---- rows
// ----------------------------------------------------------------------------------------

void
tt_store_run_init(tt_store_run *run)
{
    double unknown = (double)NAN;
    *run = (tt_store_run){.started_at = -1,
                          .nodes = -1,
                          .data_rows = -1,
                          .data_features = -1,
                          .target_loss = unknown,
                          .loss = unknown,
                          .objective = unknown,
                          .iterations = -1,
                          .epochs = unknown,
                          .train_seconds = unknown,
                          .wall_seconds = unknown,
                          .examples_per_second = unknown,
                          .generations = -1,
                          .reconfigure_seconds = unknown,
                          .explore_seconds = unknown,
                          .start_setting = -1,
                          .final_setting = -1,
                          .untuned_seconds = unknown};
}

tt_status
tt_store_put_run(tt_store *store, const tt_store_run *r, tt_error *err)
{
    TT_ASSERT(r->id != NULL);
    int64_t seed;
    memcpy(&seed, &r->seed, sizeof seed);
    const tti_store_cell cells[] = {
        TTI_TEXT(r->id),
        TTI_TEXT(r->name),
        TTI_TEXT(r->program_version),
        TTI_INT(r->started_at),
        TTI_INT(tt_clock_wall_seconds()),
        TTI_SIGNED(seed),
        TTI_TEXT(r->driver),
        TTI_TEXT(r->consistency),
        TTI_INT(r->nodes),
        TTI_TEXT(r->model),
        TTI_INT(r->data_rows),
        TTI_INT(r->data_features),
        TTI_REAL(r->target_loss),
        TTI_TEXT(r->status),
        TTI_TEXT(r->stop_reason),
        TTI_REAL(r->loss),
        TTI_REAL(r->objective),
        TTI_INT(r->iterations),
        TTI_REAL(r->epochs),
        TTI_REAL(r->train_seconds),
        TTI_REAL(r->wall_seconds),
        TTI_REAL(r->examples_per_second),
        TTI_INT(r->generations),
        TTI_REAL(r->reconfigure_seconds),
        TTI_REAL(r->explore_seconds),
        TTI_INT(r->start_setting),
        TTI_INT(r->final_setting),
        TTI_REAL(r->untuned_seconds),
        TTI_TEXT(r->engine),
        TTI_TEXT(r->started_from),
        TTI_TEXT(r->tuner),
    };
    return tti_store_write(store, TTI_STORE_RUN, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_metric(tt_store *store, const char *name, double value, tt_error *err)
{
    const tti_store_cell cells[] = {TTI_TEXT(name), TTI_REAL(value)};
    return tti_store_write(store, TTI_STORE_METRIC, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_knob(tt_store *store, const tt_store_knob *k, tt_error *err)
{
    const tti_store_cell cells[] = {
        TTI_INT(k->ordinal), TTI_TEXT(k->id),     TTI_TEXT(k->kind),  TTI_TEXT(k->unit),
        TTI_REAL(k->min),    TTI_REAL(k->max),    TTI_REAL(k->start), TTI_INT(k->fixed != 0),
        TTI_TEXT(k->reason), TTI_TEXT(k->effect), TTI_TEXT(k->scale), TTI_TEXT(k->values),
    };
    return tti_store_write(store, TTI_STORE_KNOB, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_setting(
    tt_store *store, int64_t id, const double *values, uint32_t count, tt_error *err)
{
    TT_ASSERT(id >= 0);
    // One transaction of its own when none is open: a setting without its values means nothing.
    int own = !tt_store_in_transaction(store);
    if (own)
        TT_TRY(tt_store_begin(store, err));
    const tti_store_cell setting = TTI_INT(id);
    tt_status status = tti_store_write(store, TTI_STORE_SETTING, &setting, 1, err);
    for (uint32_t i = 0; i < count && status == TT_OK; i++) {
        const tti_store_cell cells[] = {TTI_INT(id), TTI_INT(i), TTI_REAL(values[i])};
        status = tti_store_write(store, TTI_STORE_SETTING_VALUE, cells, TT_COUNT_OF(cells), err);
    }
    if (own && status == TT_OK)
        status = tt_store_commit(store, err);
    if (own && status != TT_OK && store->behind != NULL)
        tti_store_abandon_behind(store);
    else if (own && status != TT_OK)
        tti_store_abandon(store);
    return status;
}

static const char *const phases[] = {"start", "explore", "settled", "fixed", "transition"};

const char *
tt_store_phase_text(tt_store_phase phase)
{
    TT_ASSERT((size_t)phase < TT_COUNT_OF(phases));
    return phases[phase];
}

tt_status
tt_store_put_window(tt_store *store, const tt_store_window *w, tt_error *err)
{
    const tti_store_cell cells[] = {
        TTI_INT(w->ordinal),
        TTI_INT(w->generation),
        TTI_INT(w->setting),
        TTI_TEXT(tt_store_phase_text(w->phase)),
        TTI_INT(w->first_iteration),
        TTI_INT(w->last_iteration),
        TTI_REAL(w->start_s),
        TTI_REAL(w->end_s),
        TTI_INT(w->kept),
        TTI_REAL(w->seconds_per_iteration),
        TTI_REAL(w->time_cv),
        TTI_REAL(w->loss_before),
        TTI_REAL(w->loss_after),
        TTI_REAL(w->noise),
        TTI_REAL(w->slope),
        TTI_REAL(w->slope_se),
        TTI_INT(w->flags),
        TTI_INT(w->abandoned != 0),
        TTI_REAL(w->staleness),
        TTI_REAL(w->lag_borne),
    };
    return tti_store_write(store, TTI_STORE_WINDOW, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_reconfiguration(tt_store *store, const tt_store_reconfiguration *r, tt_error *err)
{
    const tti_store_cell cells[] = {
        TTI_INT(r->ordinal),
        TTI_INT(r->generation),
        TTI_INT(r->from_setting),
        TTI_INT(r->to_setting),
        TTI_TEXT(r->kind),
        TTI_TEXT(r->method),
        TTI_REAL(r->start_s),
        TTI_REAL(r->duration_s),
        TTI_REAL(r->lost_s),
        TTI_INT(r->partitions_moved),
        TTI_INT(r->bytes_carried),
        TTI_INT(r->bytes_drained),
        TTI_REAL(r->last_key_live_s),
        TTI_INT(r->iterations_during),
        TTI_REAL(r->longest_wait_s),
        TTI_REAL(r->checkpoint_s),
        TTI_REAL(r->restart_s),
        TTI_REAL(r->model_s),
        TTI_REAL(r->data_s),
    };
    return tti_store_write(store, TTI_STORE_RECONFIGURATION, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_proposal(tt_store *store, const tt_store_proposal *p, tt_error *err)
{
    const tti_store_cell cells[] = {
        TTI_INT(p->ordinal),          TTI_REAL(p->time_s),         TTI_TEXT(p->phase),
        TTI_INT(p->setting),          TTI_INT(p->current_setting), TTI_REAL(p->log_ratio),
        TTI_REAL(p->log_ratio_sd),    TTI_REAL(p->ei_seconds),     TTI_REAL(p->cost_seconds),
        TTI_REAL(p->remaining_s),     TTI_TEXT(p->decision),       TTI_TEXT(p->reason),
        TTI_REAL(p->realised_gain_s), TTI_REAL(p->predicted_s),    TTI_REAL(p->guard_left_s),
        TTI_TEXT(p->proposed),        TTI_REAL(p->realised_ratio),
    };
    return tti_store_write(store, TTI_STORE_PROPOSAL, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_set_realised(
    tt_store *store, int64_t ordinal, int64_t setting, double gain_s, double ratio, tt_error *err)
{
    const tti_store_cell cells[] = {TTI_INT(ordinal), TTI_REAL(gain_s), TTI_REAL(ratio),
                                    TTI_INT(setting)};
    TT_TRY(tti_store_write(store, TTI_STORE_GAIN, cells, TT_COUNT_OF(cells), err));
    if (store->behind != NULL || sqlite3_changes(store->db) == 1)
        return TT_OK;
    return tt_error_set(err, TT_NOTFOUND, store->path, NULL, "there is no proposal %lld",
                        (long long)ordinal);
}

tt_status
tt_store_put_event(
    tt_store *store, double time_s, const char *level, const char *text, tt_error *err)
{
    const tti_store_cell cells[] = {TTI_REAL(time_s), TTI_TEXT(level), TTI_TEXT(text)};
    return tti_store_write(store, TTI_STORE_EVENT, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_progress(tt_store *store, const tt_store_progress *p, tt_error *err)
{
    const tti_store_cell cells[] = {TTI_REAL(p->time_s), TTI_INT(p->iteration), TTI_REAL(p->epoch),
                                    TTI_REAL(p->loss), TTI_REAL(p->objective)};
    return tti_store_write(store, TTI_STORE_PROGRESS, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_eta(tt_store *store, const tt_store_eta *e, tt_error *err)
{
    const tti_store_cell cells[] = {TTI_REAL(e->time_s),      TTI_INT(e->iteration),
                                    TTI_REAL(e->seconds_p10), TTI_REAL(e->seconds_median),
                                    TTI_REAL(e->seconds_p90), TTI_INT(e->flags)};
    return tti_store_write(store, TTI_STORE_ETA, cells, TT_COUNT_OF(cells), err);
}

tt_status
tt_store_put_validation(tt_store *store, const tt_store_validation *v, tt_error *err)
{
    const tti_store_cell cells[] = {
        TTI_INT(v->ordinal), TTI_REAL(v->time_s),     TTI_INT(v->iteration),
        TTI_REAL(v->epoch),  TTI_REAL(v->loss),       TTI_REAL(v->accuracy),
        TTI_REAL(v->auc),    TTI_REAL(v->prior_loss), TTI_INT(v->saved)};
    return tti_store_write(store, TTI_STORE_VALIDATION, cells, TT_COUNT_OF(cells), err);
}
