// Status codes, user-facing errors and assertions.
#ifndef TT_CORE_STATUS_H
#define TT_CORE_STATUS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define TT_NODISCARD    __attribute__((warn_unused_result))
#define TT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TT_UNUSED(x)    ((void)(x))

// The one list of codes: name, short text. Everything else is made from it.
#define TT_STATUS_LIST(X)                                                                          \
    X(OK, "done")                                                                                  \
    X(NOMEM, "out of memory")                                                                      \
    X(INVALID, "the input is not valid")                                                           \
    X(SYNTAX, "the input is malformed")                                                            \
    X(RANGE, "a value is out of range")                                                            \
    X(NOTFOUND, "not found")                                                                       \
    X(EXISTS, "exists already")                                                                    \
    X(IO, "reading or writing failed")                                                             \
    X(CORRUPT, "stored data is damaged")                                                           \
    X(DIVERGED, "training diverged")                                                               \
    X(BUSY, "busy, try again")                                                                     \
    X(PEER, "a peer does not answer")                                                              \
    X(CANCELLED, "stopped on request")                                                             \
    X(UNSUPPORTED, "not supported here")                                                           \
    X(NUMERIC, "a numerical method failed")

typedef enum tt_status {
#define TT_STATUS_ENUM(name, text) TT_##name,
    TT_STATUS_LIST(TT_STATUS_ENUM)
#undef TT_STATUS_ENUM
        TT_STATUS_COUNT
} tt_status;

// What a person reads when something went wrong. Fixed size, no allocation, owned by the caller,
// zero to begin with. where: "job.yaml:12:3", "data/a9a.xz:48211:112" or ""; what: the fault and
// what was expected; advice: what to do, or "".
typedef struct tt_error {
    tt_status status;
    char where[320];
    char what[512];
    char advice[320];
} tt_error;

const char *tt_status_name(tt_status status);
const char *tt_status_text(tt_status status);

// Fills *err (err may be NULL, where and advice may be NULL) and returns `status`, so that callers
// can write `return tt_error_set(err, TT_IO, path, "check the path", "cannot open: %s",
// strerror(errno));`
tt_status tt_error_set(
    tt_error *err, tt_status status, const char *where, const char *advice, const char *format, ...)
    TT_PRINTF(5, 6);

// Prints "where: what.  advice" on one line to `out`.
void tt_error_print(FILE *out, const tt_error *err);

// 2 when the user's input is at fault, 1 when the job failed, 0 for TT_OK: the program's exit
// codes.
int tt_status_exit_code(tt_status status);

// strerror without its thread hazard; the text lives in a thread-local buffer until the next call
// on this thread.
const char *tt_errno_text(int error_number);

#define TT_TRY(expr)                                                                               \
    do {                                                                                           \
        tt_status tt_try_status_ = (expr);                                                         \
        if (tt_try_status_ != TT_OK)                                                               \
            return tt_try_status_;                                                                 \
    } while (0)

_Noreturn void tt_assert_fail(const char *expression, const char *file, int line);
// TT_ASSERT is for our own bugs and stays on in release; TT_DASSERT is for per-element loops and
// is_valid walks.
#define TT_ASSERT(x) ((x) ? (void)0 : tt_assert_fail(#x, __FILE__, __LINE__))
#ifdef TT_DEBUG_ASSERTS
#define TT_DASSERT(x) TT_ASSERT(x)
#else
#define TT_DASSERT(x) ((void)sizeof(x))
#endif

#define TT_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
// Each argument may be evaluated twice: no calls with effects in them.
#define TT_MIN(a, b)   ((a) < (b) ? (a) : (b))
#define TT_MAX(a, b)   ((a) > (b) ? (a) : (b))

#endif
