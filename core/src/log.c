// The log: one line a call, to standard error or a sink.
#include "tt/core_log.h"
#include <pthread.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static tt_log_level threshold = TT_LOG_INFO;                           // set before threads start
static void (*sink)(void *self, tt_log_level level, const char *line); // set before threads start
static void *sink_self;

void
tt_log_set_level(tt_log_level level)
{
    threshold = level;
}

tt_log_level
tt_log_get_level(void)
{
    return threshold;
}

void
tt_log_set_sink(void (*new_sink)(void *self, tt_log_level level, const char *line), void *self)
{
    sink = new_sink;
    sink_self = self;
}

void
tt_log(tt_log_level level, const char *format, ...)
{
    if (level > threshold)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&mu);
    if (sink != NULL)
        sink(sink_self, level, line);
    else
        (void)fprintf(stderr, "%s%s\n",
                      level == TT_LOG_ERROR  ? "error: "
                      : level == TT_LOG_WARN ? "warning: "
                                             : "",
                      line);
    pthread_mutex_unlock(&mu);
}
