// The beginning of a file, for those who look at it.
#ifndef TTI_DATA_LOOK_INTERNAL_H
#define TTI_DATA_LOOK_INTERNAL_H

#include "tt/workloads_look.h"

enum { TTI_LOOK_LINES_MAX = 4000, TTI_LOOK_COLUMNS_MAX = 10000 };

// Text of whole lines: text[0..size), the last byte is '\n', padding readable behind it. 1: it is
// LIBSVM text, or something of its kind that is not read; `look` says which.
int tti_look_libsvm(const char *text, size_t size, tt_look *look);
// 1: a table, `look` has its columns; 0: it is none. The text is unquoted where it stands.
// errors   TT_NOMEM
TT_NODISCARD tt_status tti_look_table(char *text, size_t size, tt_look *look, int *is_table);

#endif
