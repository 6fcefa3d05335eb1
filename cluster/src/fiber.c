// Stacks by mmap with a guard page below, changed by swapcontext; sanitizers are told.
#include "fiber.h"
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TTI_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TTI_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TTI_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TTI_TSAN 1
#endif
#ifdef TTI_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TTI_TSAN
#include <sanitizer/tsan_interface.h>
#endif

tt_status
tti_fiber_open(tti_fiber_stack *stack, size_t bytes, void (*entry)(void))
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *stack = (tti_fiber_stack){.bytes = (bytes + page - 1) / page * page};
    // Pages that are never touched take no memory.
    uint8_t *map = mmap(NULL, stack->bytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return TT_NOMEM;
    if (mprotect(map, page, PROT_NONE) != 0 || getcontext(&stack->context) != 0) {
        (void)munmap(map, stack->bytes + page);
        return TT_NOMEM;
    }
    stack->bottom = map + page;
    stack->context.uc_stack.ss_sp = stack->bottom;
    stack->context.uc_stack.ss_size = stack->bytes;
    makecontext(&stack->context, entry, 0);
#ifdef TTI_TSAN
    stack->thread = __tsan_create_fiber(0);
#endif
    return TT_OK;
}

void
tti_fiber_close(tti_fiber_stack *stack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (stack->bottom == NULL)
        return;
#ifdef TTI_TSAN
    __tsan_destroy_fiber(stack->thread);
#endif
    (void)munmap((uint8_t *)stack->bottom - page, stack->bytes + page);
    *stack = (tti_fiber_stack){0};
}

void
tti_fiber_adopt(tti_fiber_stack *stack)
{
    *stack = (tti_fiber_stack){0};
#ifdef TTI_TSAN
    stack->thread = __tsan_get_current_fiber();
#endif
}

void
tti_fiber_change(tti_fiber_stack *from, tti_fiber_stack *to, int last)
{
    TT_UNUSED(last);
#ifdef TTI_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake, to->bottom, to->bytes);
#endif
#ifdef TTI_TSAN
    __tsan_switch_to_fiber(to->thread, 0);
#endif
    int changed = swapcontext(&from->context, &to->context);
    TT_ASSERT(changed == 0);
#ifdef TTI_ASAN
    __sanitizer_finish_switch_fiber(from->fake, (const void **)&to->bottom, &to->bytes);
#endif
}

void
tti_fiber_entered(tti_fiber_stack *from)
{
    TT_UNUSED(from);
#ifdef TTI_ASAN
    __sanitizer_finish_switch_fiber(NULL, (const void **)&from->bottom, &from->bytes);
#endif
}
