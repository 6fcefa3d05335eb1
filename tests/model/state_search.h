// All states of a small world, breadth first, and the shortest way to a fault.
#ifndef TT_MODEL_STATE_SEARCH_H
#define TT_MODEL_STATE_SEARCH_H

#include <stdint.h>

// States are compared byte by byte: a world writes what it does not use as zero, padding included.
typedef struct search_world {
    uint32_t state_bytes;
    void (*begin)(void);                               // reaches the first state
    void (*expand)(const void *state);                 // reaches every state that may follow
    const char *(*look_for_faults)(const void *state); // NULL: none
    int (*is_finished)(const void *state);             // nothing is looked for beyond it
    void (*print)(const void *state);                  // on a line of its own
} search_world;

// A state that follows the one being expanded.
void search_reach(const void *state);
// What is wrong with the step being taken, beyond what a state shows. The search ends.
void search_fault(const char *what);
// Prints a line that begins with `name`, and with a fault that is not expected the way to it.
// Returns the number of states; 0: some state is faulty, or cannot come to an end.
uint32_t search_explore(const search_world *world, const char *name, int expects_fault);
void search_free(void);

#endif
