// Sentences for people.
#include "tuner_internal.h"
#include <math.h>
#include <stdarg.h>

char *
tti_tuner_seconds(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds))
        (void)snprintf(out, size, "an unknown time");
    else if (fabs(seconds) < 0.0995)
        (void)snprintf(out, size, "%.*f ms", fabs(seconds) < 0.00995 ? 1 : 0, seconds * 1e3);
    else if (fabs(seconds) < 60)
        (void)snprintf(out, size, "%.1f s", seconds);
    else
        (void)snprintf(out, size, "%d:%02d", (int)fmin(seconds / 60, 1e6),
                       (int)fmod(fabs(seconds), 60));
    return out;
}

void
tti_tuner_event(const tt_tuner *t, const char *format, ...)
{
    if (t->callbacks.on_event == NULL)
        return;
    char text[TT_TUNER_REASON_MAX * 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    t->callbacks.on_event(t->callbacks.self, t->now_s, text);
}

const char *
tt_tuner_phase_name(tt_tuner_phase phase)
{
    static const char *const names[] = {"idle", "start", "explore", "settled", "off"};
    return (size_t)phase < TT_COUNT_OF(names) ? names[phase] : "unknown";
}

const char *
tt_tuner_decision_name(tt_tuner_decision decision)
{
    static const char *const names[] = {"stay", "try", "move", "abandon", "held", "quit"};
    return (size_t)decision < TT_COUNT_OF(names) ? names[decision] : "unknown";
}
