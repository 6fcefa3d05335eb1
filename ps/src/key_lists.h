// Lists of keys that are sent once (sparse tables): a worker gives each list a number, and a server
// keeps where its rows are. Numbers are a worker's own, counted up by its process and never used
// again, so that two lists cannot be taken for one another.
#ifndef TTI_KEY_LISTS_H
#define TTI_KEY_LISTS_H

#include <stdint.h>

// Shorter parts are as well sent; a worker has at most so many lists kept, of so many keys.
enum { TTI_LIST_KEYS_MIN = 2, TTI_LIST_KEYS_MAX = 1 << 18, TTI_LISTS_KEPT = 32 };

// What a payload begins with in place of keys, when the frame has TT_FRAME_NAMED.
typedef struct tti_list_name {
    uint64_t number;
    uint32_t is_kept;  // it comes again; else it is kept until the next such one
    uint32_t has_keys; // they follow
} tti_list_name;
_Static_assert(sizeof(tti_list_name) == 16, "the wire format is fixed");

#endif
