// How the master reaches nodes that do not share its memory: it sends them what is on the board,
// hears how they stand, grants them rows and counts what they have trained. What of that may not be
// forgotten is in its books (books.h).
//
// Thread: the master's.
#ifndef TTI_COMMAND_H
#define TTI_COMMAND_H

#include "control.h"

struct tti_runtime;

// One node, under its present attempt.
typedef struct tti_reach {
    uint64_t rows_sent, rows_heard; // of those granted
    uint64_t wanted;
    uint32_t unit;
    int dry;
    tti_order last; // as it was sent last
    uint64_t heard; // number of the last order that it has heard
    uint64_t sent_ns, rows_ns,
        told_ns;            // when something was last sent: an order, rows, a generation
    uint64_t report_number; // of the last one heard
    int owes;               // an answer to it
    uint32_t generation, told_generation; // newest that it knows; that it was told
} tti_reach;

typedef struct tti_command {
    tti_reach *nodes; // [node_count]
    // Records that came since they were last counted.
    tti_record *pending;
    size_t pending_count, pending_capacity;
    uint32_t *rows; // of the largest batch, and losses of them
    float *losses;
    tt_archive out;
} tti_command;

TT_NODISCARD tt_status tti_command_open(struct tti_runtime *rt, tt_error *err);
void tti_command_close(struct tti_runtime *rt);
// To nodes that other masters have ordered about: its orders are newer than theirs.
void tti_command_succeed(struct tti_runtime *rt);
// Sends an order to every node that is told something new, or has not heard the last one for a
// while.
void tti_command_send(struct tti_runtime *rt);
// What node n is told when it begins, with the newest generation; it knows it from then on.
tti_order tti_command_first(struct tti_runtime *rt, uint32_t n);
// A report.
void
tti_command_hear(struct tti_runtime *rt, uint32_t n, const tt_frame *frame, const uint8_t *payload);
// Node n's process is dead: what it has recorded and not reported, where that can be seen.
void tti_command_hear_last(struct tti_runtime *rt, uint32_t n);
// Counts the records that have come.
void tti_command_count(struct tti_runtime *rt);
// Node n has died, of which the newest generation tells: what it had and has not trained is for
// others, from when all know it.
void tti_command_bury(struct tti_runtime *rt, uint32_t n);
// Gives rows to those who want some.
void tti_command_grant(struct tti_runtime *rt);
#endif
