// See state_search.h. States lie one behind another in the order in which they were found; a hash
// table finds those that are known. Edges are kept to look backwards from the ends.
#include "state_search.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    uint32_t from, to;
} edge;

static const search_world *world;
static uint8_t *states;
static uint32_t *parent, *slots, state_count, state_capacity, slot_count;
static edge *edges;
static size_t edge_count, edge_capacity;
static uint32_t expanding; // the state whose successors are looked for
static const char *fault;

static const uint8_t *
state_at(uint32_t index)
{
    return states + (size_t)index * world->state_bytes;
}

static void *
grow(void *memory, size_t size)
{
    void *grown = realloc(memory, size);
    if (grown == NULL) {
        (void)fprintf(stderr, "no memory for %u states\n", state_count);
        exit(2);
    }
    return grown;
}

static uint64_t
hash_of(const uint8_t *state)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < world->state_bytes; i++)
        hash = (hash ^ state[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static uint32_t *
slot_of(const uint8_t *state)
{
    size_t at = (size_t)hash_of(state) & (slot_count - 1);
    while (slots[at] != 0 && memcmp(state_at(slots[at] - 1), state, world->state_bytes) != 0)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

static void
make_room(void)
{
    if (state_count < state_capacity)
        return;
    state_capacity = state_capacity > 0 ? 2 * state_capacity : 1 << 16;
    states = grow(states, (size_t)state_capacity * world->state_bytes);
    parent = grow(parent, state_capacity * sizeof *parent);
    slot_count = 2 * state_capacity;
    slots = grow(slots, slot_count * sizeof *slots);
    memset(slots, 0, slot_count * sizeof *slots);
    for (uint32_t i = 0; i < state_count; i++)
        *slot_of(state_at(i)) = i + 1;
}

void
search_reach(const void *state)
{
    make_room();
    uint32_t *slot = slot_of(state);
    if (*slot == 0) {
        memcpy(states + (size_t)state_count * world->state_bytes, state, world->state_bytes);
        parent[state_count] = expanding;
        *slot = ++state_count;
    }
    if (edge_count == edge_capacity) {
        edge_capacity = edge_capacity > 0 ? 2 * edge_capacity : 1 << 20;
        edges = grow(edges, edge_capacity * sizeof *edges);
    }
    edges[edge_count++] = (edge){expanding, *slot - 1};
}

void
search_fault(const char *what)
{
    fault = what;
}

static void
print_way(uint32_t last)
{
    if (last != parent[last])
        print_way(parent[last]);
    world->print(state_at(last));
}

// Whether each state can still come to an end. Backwards from the ends until nothing changes.
static int
all_can_finish(int expects_fault)
{
    uint8_t *can = calloc(state_count, 1);
    uint32_t cannot = state_count;
    if (can == NULL)
        return 0;
    for (uint32_t i = 0; i < state_count; i++)
        can[i] = (uint8_t)world->is_finished(state_at(i));
    for (int changed = 1; changed;) {
        changed = 0;
        for (size_t e = edge_count; e > 0; e--)
            if (can[edges[e - 1].to] && !can[edges[e - 1].from])
                changed = can[edges[e - 1].from] = 1;
    }
    for (uint32_t i = 0; i < state_count; i++)
        cannot -= can[i];
    if (cannot > 0 && !expects_fault) {
        (void)printf("    from %u states no end can be reached; the way to the first of them\n",
                     cannot);
        print_way((uint32_t)((const uint8_t *)memchr(can, 0, state_count) - can));
    }
    free(can);
    return cannot == 0;
}

static void
free_states(void)
{
    free(states);
    free(parent);
    free(slots);
    free(edges);
    states = NULL;
    parent = slots = NULL;
    edges = NULL;
    state_capacity = slot_count = 0;
    edge_capacity = 0;
}

static void
begin(const search_world *w)
{
    if (world != NULL && w->state_bytes != world->state_bytes)
        free_states();
    world = w;
    state_count = 0;
    edge_count = 0;
    expanding = 0;
    fault = NULL;
    if (slots != NULL)
        memset(slots, 0, slot_count * sizeof *slots);
    w->begin();
}

// Prints a line that begins with `name`, and with a fault that is not expected the way to it.
// Returns the number of states; 0: some state is faulty, or cannot come to an end.
static uint32_t
explore(const search_world *w, const char *name, int expects_fault)
{
    uint8_t *state = grow(NULL, w->state_bytes); // for `states` moves when it grows
    begin(w);
    for (; expanding < state_count && fault == NULL; expanding++) {
        memcpy(state, state_at(expanding), w->state_bytes);
        const char *here = w->look_for_faults(state);
        if (here != NULL) {
            fault = here;
            break;
        }
        if (!w->is_finished(state))
            w->expand(state);
        if (fault != NULL)
            break;
    }
    free(state);
    if (fault != NULL) {
        (void)printf("%-48s %s, after %u states\n", name, fault, state_count);
        if (!expects_fault)
            print_way(expanding);
        return 0;
    }
    int fine = all_can_finish(expects_fault);
    (void)printf("%-48s %u states, %s\n", name, state_count,
                 fine ? "no fault" : "some have no end");
    return fine ? state_count : 0;
}

// ---- messages ----------------------------------------------------------------------------------

static uint32_t message_bytes; // of those being ordered

static int
compare_messages(const void *a, const void *b)
{
    return memcmp(a, b, message_bytes);
}

void
search_bag_order(void *bag, uint32_t slots, uint32_t size)
{
    message_bytes = size;
    qsort(bag, slots, size, compare_messages);
}

void
search_bag_put(void *bag, uint32_t slots, uint32_t size, uint32_t most, const void *message)
{
    uint32_t taken = 0;
    uint8_t *place = NULL;
    for (uint8_t *at = bag, *end = at + slots * size; at < end; at += size) {
        if (memcmp(at, message, size) == 0)
            return;
        taken += *at != 0;
        if (*at == 0)
            place = at;
    }
    if (taken < most)
        memcpy(place, message, size);
}

// ---- programs ----------------------------------------------------------------------------------

static const void *
limits_at(const search_plan *plan, const void *limits, uint32_t index)
{
    return (const uint8_t *)limits + (size_t)index * plan->limits_bytes;
}

static int
explore_worlds(const search_plan *plan, const void *worlds, uint32_t count)
{
    int failures = 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[100];
        plan->set_limits(limits_at(plan, worlds, i), name, sizeof name);
        failures += explore(plan->world, name, 0) == 0;
    }
    return failures;
}

// only: the name of one; NULL: each.
static int
leave_rules_out(const search_plan *plan, const char *only)
{
    int failures = 0;
    for (uint32_t r = 0; r < plan->rule_count; r++) {
        char name[100];
        if (only != NULL && strcmp(only, plan->rules[r]) != 0)
            continue;
        plan->set_limits(limits_at(plan, plan->broken, r), name, sizeof name);
        plan->has_rule[r] = 0;
        failures += explore(plan->world, plan->rules[r], only == NULL) != 0;
        plan->has_rule[r] = 1;
    }
    return failures;
}

int
search_main(const search_plan *plan, int argc, char **argv)
{
    int failures = 0;
    for (uint32_t r = 0; r < plan->rule_count; r++)
        plan->has_rule[r] = 1;
    if (argc > 1 && strcmp(argv[1], "large") == 0)
        failures = explore_worlds(plan, plan->large, plan->large_count);
    else if (argc > 1)
        failures = leave_rules_out(plan, argv[1]);
    else
        failures =
            explore_worlds(plan, plan->small, plan->small_count) + leave_rules_out(plan, NULL);
    free_states();
    return failures > 0;
}
