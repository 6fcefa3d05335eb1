// One block of LIBSVM text -> rows. Pure: no file, no thread, no global state.
#ifndef TTI_LIBSVM_PARSE_H
#define TTI_LIBSVM_PARSE_H

#include "text_block.h"

// Parses the text; stops at the first problem.
void tti_libsvm_parse(tti_text_block *block);

#endif
