// Stacks by mmap with a guard page below; sanitizers are told when they are changed.
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
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TTI_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// ---- changing over -----------------------------------------------------------------------------

#ifdef TTI_FIBER_JUMP

// Saves what a callee must keep (System V ABI: six registers, the control words of SSE and x87) on
// the stack it is called on, leaves its top at *from, and goes on with what lies at `to`.
void tti_fiber_jump(void **from, void *to);
__asm__(".pushsection .text\n"
        ".hidden tti_fiber_jump\n"
        ".globl tti_fiber_jump\n"
        ".type tti_fiber_jump, @function\n"
        ".balign 16\n"
        "tti_fiber_jump:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size tti_fiber_jump, . - tti_fiber_jump\n"
        ".popsection\n");

enum { SAVED_REGISTERS = 6 };

// As if `entry` had just been called, from nowhere, and had changed over: at its first instruction
// the stack pointer is 8 below a multiple of 16.
static tt_status
prepare(tti_fiber_stack *stack, void (*entry)(void))
{
    uint64_t *at = (uint64_t *)(void *)((uint8_t *)stack->bottom + stack->bytes);
    uint32_t *control;
    *--at = 0; // nowhere to return to
    *--at = (uint64_t)(uintptr_t)entry;
    for (int i = 0; i < SAVED_REGISTERS; i++)
        *--at = 0;
    control = (uint32_t *)(void *)--at;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(control[0]), "=m"(control[1]));
    stack->top = at;
    return TT_OK;
}

static void
change(tti_fiber_stack *from, tti_fiber_stack *to)
{
    tti_fiber_jump(&from->top, to->top);
}

#else

static tt_status
prepare(tti_fiber_stack *stack, void (*entry)(void))
{
    if (getcontext(&stack->context) != 0)
        return TT_NOMEM;
    stack->context.uc_stack.ss_sp = stack->bottom;
    stack->context.uc_stack.ss_size = stack->bytes;
    makecontext(&stack->context, entry, 0);
    return TT_OK;
}

static void
change(tti_fiber_stack *from, tti_fiber_stack *to)
{
    int changed = swapcontext(&from->context, &to->context);
    TT_ASSERT(changed == 0);
}

#endif

// ---- stacks ------------------------------------------------------------------------------------

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
    stack->bottom = map + page;
    if (mprotect(map, page, PROT_NONE) != 0 || prepare(stack, entry) != TT_OK) {
        (void)munmap(map, stack->bytes + page);
        stack->bottom = NULL;
        return TT_NOMEM;
    }
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
#ifdef TTI_ASAN
    // One that was killed never left its functions: their marks would stay on whoever comes here.
    __asan_unpoison_memory_region(stack->bottom, stack->bytes);
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
    change(from, to);
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
