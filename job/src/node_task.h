// What a node's process does, from its beginning to its end.
#ifndef TTI_NODE_TASK_H
#define TTI_NODE_TASK_H

#include "tt/comm.h"

struct tt_job;

enum { TTI_TASK_FAILED = 1, TTI_TASK_EXPELLED = 3 }; // its exit codes, besides 0

// The content of a file; *bytes is the caller's. errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_task_read(int descriptor, uint8_t **bytes, size_t *size, tt_error *err);
// A file of memory that holds the pieces, or -1.
int tti_task_write(const tt_span *pieces, uint32_t count);

// Node n's whole life, in this process, which has one thread. begin: its attempt (uint32_t) and,
// unless that is 0, the order under which it begins to work (control.h); with attempt 0 it asks the
// master for both.
TT_NODISCARD tt_status tti_node_run(const struct tt_job *job,
                                    uint32_t n,
                                    tt_mesh *mesh,
                                    tt_mesh *control,
                                    const uint8_t *begin,
                                    size_t size,
                                    tt_error *err);

#endif
