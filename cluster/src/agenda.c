// The agenda: a heap by time, then by order of arrival.
#include "sim.h"

void
tti_agenda_put(tti_agenda *agenda,
               uint64_t at_ns,
               void (*act)(void *self, uint64_t tag),
               void *self,
               uint64_t tag)
{
    tti_heap_put(&agenda->heap, &(tti_item){at_ns, agenda->order++, self, act, tag});
}

uint64_t
tti_agenda_order(tti_agenda *agenda)
{
    return agenda->order++;
}

void
tti_agenda_put_as(tti_agenda *agenda, const tti_item *item)
{
    TT_DASSERT(item->order < agenda->order);
    tti_heap_put(&agenda->heap, item);
}

void
tti_agenda_nothing(void *self, uint64_t tag)
{
    TT_UNUSED(self);
    TT_UNUSED(tag);
}

int
tti_agenda_take(tti_agenda *agenda, tti_item *out)
{
    if (agenda->heap.count == 0)
        return 0;
    tti_heap_take(&agenda->heap, out);
    return 1;
}
