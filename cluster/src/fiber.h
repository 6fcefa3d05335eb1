// A stack of one's own: what a fiber is made of, and how one changes over to it and back.
#ifndef TTI_FIBER_H
#define TTI_FIBER_H

#include "tt/core.h"
#include <ucontext.h>

typedef struct tti_fiber_stack {
    ucontext_t context;
    void *bottom;
    size_t bytes;
    void *fake;   // the address sanitizer's
    void *thread; // the thread sanitizer's
} tti_fiber_stack;

// `entry` is called on the first change over; it must never return.
TT_NODISCARD tt_status tti_fiber_open(tti_fiber_stack *stack, size_t bytes, void (*entry)(void));
void tti_fiber_close(tti_fiber_stack *stack);
// The stack of the caller, that fibers change back to.
void tti_fiber_adopt(tti_fiber_stack *stack);
// Goes on in `to`; returns when somebody changes over to `from`. last: nobody ever will.
void tti_fiber_change(tti_fiber_stack *from, tti_fiber_stack *to, int last);
// The first thing `entry` does; `from` is who changed over.
void tti_fiber_entered(tti_fiber_stack *from);

#endif
