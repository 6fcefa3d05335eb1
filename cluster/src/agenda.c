// The agenda: a binary heap by time, then by order of arrival.
#include "sim.h"

static int
before(const tti_entry *a, const tti_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void
tti_agenda_put(tti_agenda *agenda,
               uint64_t at_ns,
               void (*act)(void *self, uint64_t tag),
               void *self,
               uint64_t tag)
{
    if (agenda->count == agenda->capacity) {
        size_t wanted = TT_MAX(2 * agenda->capacity, (size_t)256);
        tti_entry *grown = tt_mem_realloc(agenda->heap, wanted * sizeof *grown);
        TT_ASSERT(grown != NULL);
        agenda->heap = grown;
        agenda->capacity = wanted;
    }
    tti_entry entry = {at_ns, agenda->order++, act, self, tag};
    size_t place = agenda->count++;
    while (place > 0 && before(&entry, &agenda->heap[(place - 1) / 2])) {
        agenda->heap[place] = agenda->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    agenda->heap[place] = entry;
}

void
tti_agenda_nothing(void *self, uint64_t tag)
{
    TT_UNUSED(self);
    TT_UNUSED(tag);
}

int
tti_agenda_take(tti_agenda *agenda, tti_entry *out)
{
    if (agenda->count == 0)
        return 0;
    *out = agenda->heap[0];
    tti_entry last = agenda->heap[--agenda->count];
    size_t place = 0;
    for (;;) { // down to where `last` belongs
        size_t child = 2 * place + 1;
        if (child >= agenda->count)
            break;
        if (child + 1 < agenda->count && before(&agenda->heap[child + 1], &agenda->heap[child]))
            child++;
        if (!before(&agenda->heap[child], &last))
            break;
        agenda->heap[place] = agenda->heap[child];
        place = child;
    }
    agenda->heap[place] = last;
    return 1;
}
