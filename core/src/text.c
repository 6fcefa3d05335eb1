// Figures as people read them: see tt/core_text.h.
#include "tt/core_text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

char *
tt_text_bytes(double bytes, char *out, size_t size)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 1024}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (fabs(bytes) >= units[i].bytes) {
            double count = bytes / units[i].bytes;
            int digits = fabs(count) < 9.995 ? 2 : fabs(count) < 99.95 ? 1 : 0;
            (void)snprintf(out, size, "%.*f %s", digits, count, units[i].name);
            return out;
        }
    (void)snprintf(out, size, "%.4g bytes", bytes);
    return out;
}

int
tt_text_is_word(const char *text, int may_begin_with_digit)
{
    if (*text == '\0' || (!may_begin_with_digit && !(*text >= 'a' && *text <= 'z')))
        return 0;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}
