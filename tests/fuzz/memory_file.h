// A file of memory with a name, for readers that open files.
#ifndef TT_MEMORY_FILE_H
#define TT_MEMORY_FILE_H

#include <stddef.h>

// Its path, and its descriptor; made when first asked for.
const char *memory_file(int *descriptor);
// It holds these bytes and nothing else; it is read from its beginning.
void memory_file_set(const void *bytes, size_t size);

#endif
