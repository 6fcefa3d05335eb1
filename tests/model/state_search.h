// All states of a small world, breadth first, and the shortest way to a fault.
#ifndef TT_MODEL_STATE_SEARCH_H
#define TT_MODEL_STATE_SEARCH_H

#include <stddef.h>
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
// Messages under way, as a world has them: bag[slots], each `size` bytes of which the first is 0
// where there is none. Puts one in as long as there are fewer than `most`; else it is lost, as any
// may be. So is one that lies there already: what comes twice is another matter.
void search_bag_put(void *bag, uint32_t slots, uint32_t size, uint32_t most, const void *message);
// In one order, so that equal bags are equal bytes.
void search_bag_order(void *bag, uint32_t slots, uint32_t size);

// What a program of a model does: without arguments it explores all small worlds, in which there
// may be no fault, and one for each rule that is left out, in which there must be one; with
// `large`, the large worlds; with the name of a rule, the way to the fault without it.
typedef struct search_plan {
    const search_world *world;
    uint32_t limits_bytes;              // of one world's limits
    const void *small, *large, *broken; // [small_count], [large_count], [rule_count]
    uint32_t small_count, large_count, rule_count;
    void (*set_limits)(const void *limits, char *name, size_t size); // in force from here on
    const char *const *rules;
    int *has_rule;
} search_plan;
// The program's exit status.
int search_main(const search_plan *plan, int argc, char **argv);

#endif
