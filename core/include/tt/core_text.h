// Figures as people read them.
#ifndef TT_CORE_TEXT_H
#define TT_CORE_TEXT_H

#include <stddef.h>

// "31.2 KiB", with three digits; up to GiB. Returns `out`; 24 bytes are enough.
char *tt_text_bytes(double bytes, char *out, size_t size);

// Whether text is a word of [a-z0-9_], not empty, and begins with a letter unless a digit may be
// first: what names of knobs, curve families and their values are made of.
int tt_text_is_word(const char *text, int may_begin_with_digit);

#endif
