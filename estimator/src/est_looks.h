// Looks at what the target is about, the loss or the objective over all rows. Minibatch losses tell
// of it with an offset: a row is measured just before it is trained on again, an epoch after the
// last time, while a look finds rows that were trained on a moment ago, too (progressive validation
// against training loss: Blum, Kalai and Langford, COLT 1999). Near the end of a job that offset is
// as large as what is still to fall. The average of the iterates has a loss of its own besides.
#ifndef TT_EST_LOOKS_H
#define TT_EST_LOOKS_H

#include <stdint.h>

enum { TTI_LOOKS = 64 };

// Without pointers: it is archived. All zero: nothing is known.
typedef struct tti_looks {
    double levels, level_count; // what minibatches said, summed since the last look
    double last;                // what it found
    double offset[TTI_LOOKS];   // of the minibatches between the newest looks, a ring
    uint32_t count, offsets;    // ever
} tti_looks;

// What the minibatches say, of one iteration.
void tti_looks_hear(tti_looks *looks, double level);
// loss: no number is not heard.
void tti_looks_add(tti_looks *looks, double loss);
// By how much minibatches say too much; 0 as far as it is within its standard error.
double tti_looks_offset(const tti_looks *looks);

#endif
