// A stack of one's own: what a fiber is made of, and how one changes over to it and back.
//
// swapcontext saves and restores the signal mask by a system call each time; nobody here changes
// it. On x86-64 a change is some instructions instead. A click log on 100 nodes: 1.7 s instead
// of 3.2.
#ifndef TTI_FIBER_H
#define TTI_FIBER_H

#include "tt/core.h"
#include <ucontext.h> // where there is no jump of our own

#if defined(__x86_64__) && !defined(__SHSTK__) && !defined(TTI_FIBER_PORTABLE)
#define TTI_FIBER_JUMP 1
#endif

typedef struct tti_fiber_stack {
#ifdef TTI_FIBER_JUMP
    void *top; // of what was saved there, while it rests
#else
    ucontext_t context;
#endif
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
