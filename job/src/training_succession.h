// What a master leaves to its successor besides its nodes: its books (books.h) and what the
// training has learned, anew every second, in the form of a checkpoint without parameters; those
// are where they are.
#ifndef TTI_TRAINING_SUCCESSION_H
#define TTI_TRAINING_SUCCESSION_H

#include "journal.h"
#include "training_checkpoint.h"

typedef struct tti_succession {
    tti_journal journal;
    int is_bequeathed; // with the nodes of the present runtime
    int failed;        // said once
    tt_archive books;
    tti_knowledge knowledge;
    // Of a successor: the setting that its tuner knows, until it is in force again.
    int returns;
    double alone_s; // without a master
} tti_succession;

#endif
