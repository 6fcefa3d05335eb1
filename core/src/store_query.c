// Reading the run store: a prepared SELECT with typed columns.
#include "store_private.h"
#include <math.h>

struct tt_store_query {
    tt_store *store;
    sqlite3_stmt *statement;
};

tt_status
tt_store_query_open(tt_store *store, const char *sql, tt_store_query **out, tt_error *err)
{
    *out = NULL;
    tt_store_query *query = tt_mem_zalloc(1, sizeof *query);
    if (query == NULL)
        return tt_error_set(err, TT_NOMEM, store->path, NULL, "no memory for a query");
    query->store = store;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &query->statement, NULL);
    if (code != SQLITE_OK) {
        tt_mem_free(query);
        return tti_store_fail(store, code, "preparing a query", err);
    }
    TT_ASSERT(sqlite3_stmt_readonly(query->statement));
    *out = query;
    return TT_OK;
}

tt_status
tt_store_query_bind_int(tt_store_query *query, int parameter, int64_t value, tt_error *err)
{
    int code = sqlite3_bind_int64(query->statement, parameter, value);
    return code == SQLITE_OK ? TT_OK : tti_store_fail(query->store, code, "binding a query", err);
}

tt_status
tt_store_query_bind_text(tt_store_query *query, int parameter, const char *value, tt_error *err)
{
    int code = sqlite3_bind_text(query->statement, parameter, value, -1, SQLITE_TRANSIENT);
    return code == SQLITE_OK ? TT_OK : tti_store_fail(query->store, code, "binding a query", err);
}

tt_status
tt_store_query_next(tt_store_query *query, int *has_row, tt_error *err)
{
    int code = sqlite3_step(query->statement);
    *has_row = code == SQLITE_ROW;
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return TT_OK;
    return tti_store_fail(query->store, code, "reading it", err);
}

int
tt_store_query_is_null(const tt_store_query *query, int column)
{
    // A store of an older trimtab lacks the latest columns.
    return column >= sqlite3_column_count(query->statement) ||
           sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

int64_t
tt_store_query_int(const tt_store_query *query, int column)
{
    return tt_store_query_is_null(query, column) ? -1
                                                 : sqlite3_column_int64(query->statement, column);
}

double
tt_store_query_real(const tt_store_query *query, int column)
{
    return tt_store_query_is_null(query, column) ? (double)NAN
                                                 : sqlite3_column_double(query->statement, column);
}

const char *
tt_store_query_text(const tt_store_query *query, int column)
{
    return tt_store_query_is_null(query, column)
               ? NULL
               : (const char *)sqlite3_column_text(query->statement, column);
}

void
tt_store_query_close(tt_store_query *query)
{
    if (query == NULL)
        return;
    (void)sqlite3_finalize(query->statement);
    tt_mem_free(query);
}
