// What servers read from a view about a move.
#ifndef TTI_PLACEMENT_H
#define TTI_PLACEMENT_H

#include "tt/ps.h"

// Whether a partition that moves goes to its new owner in one piece: where that has a copy of it,
// or where the old one stays as its backup, for the partition moves to its backup or to that one's
// host. Whichever later generation it is read from, as long as the move lasts.
int tti_ps_view_hands_over(const tt_ps_view *view, uint32_t partition);
// Whether the old owner of a partition that moves serves it until the new one asks, if both see the
// same memory.
int tti_ps_view_offers(const tt_ps_view *view, const tt_ps_table *table, uint32_t partition);

#endif
