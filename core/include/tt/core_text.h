// Figures as people read them.
#ifndef TT_CORE_TEXT_H
#define TT_CORE_TEXT_H

#include <stddef.h>

// "31.2 KiB", with three digits; up to GiB. Returns `out`; 24 bytes are enough.
char *tt_text_bytes(double bytes, char *out, size_t size);

#endif
