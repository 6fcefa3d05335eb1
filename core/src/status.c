// Status names, error texts, assertions.
#include "tt/core_status.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define NAME(name, text) #name,
    TT_STATUS_LIST(NAME)
#undef NAME
};
static const char *const texts[] = {
#define TEXT(name, text) text,
    TT_STATUS_LIST(TEXT)
#undef TEXT
};

const char *
tt_status_name(tt_status status)
{
    return (unsigned)status < TT_STATUS_COUNT ? names[status] : "?";
}

const char *
tt_status_text(tt_status status)
{
    return (unsigned)status < TT_STATUS_COUNT ? texts[status] : "unknown status";
}

tt_status
tt_error_set(
    tt_error *err, tt_status status, const char *where, const char *advice, const char *format, ...)
{
    if (err == NULL)
        return status;
    err->status = status;
    (void)snprintf(err->where, sizeof err->where, "%s", where != NULL ? where : "");
    (void)snprintf(err->advice, sizeof err->advice, "%s", advice != NULL ? advice : "");
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(err->what, sizeof err->what, format, arguments);
    va_end(arguments);
    return status;
}

void
tt_error_print(FILE *out, const tt_error *err)
{
    const char *what = err->what[0] != '\0' ? err->what : tt_status_text(err->status);
    (void)fprintf(out, "%s%s%s%s%s\n", err->where, err->where[0] != '\0' ? ": " : "", what,
                  err->advice[0] != '\0' ? "; " : "", err->advice);
}

int
tt_status_exit_code(tt_status status)
{
    switch (status) {
    case TT_OK:
        return 0;
    case TT_INVALID:
    case TT_SYNTAX:
    case TT_RANGE:
    case TT_NOTFOUND:
    case TT_EXISTS:
    case TT_CORRUPT:
        return 2;
    default:
        return 1;
    }
}

const char *
tt_errno_text(int error_number)
{
    static _Thread_local char buffer[128];
    return strerror_r(error_number, buffer, sizeof buffer);
}

void
tt_assert_fail(const char *expression, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: this is a bug in trimtab: '%s' does not hold\n", file, line,
                  expression);
    abort();
}
