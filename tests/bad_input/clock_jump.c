// Preloaded into trimtab: the wall clock jumps by CLOCK_JUMP seconds after CLOCK_JUMP_CALLS
// readings, as when somebody sets it; the monotonic clock goes on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static atomic_int calls;

static long
jump(void)
{
    const char *seconds = getenv("CLOCK_JUMP"), *after = getenv("CLOCK_JUMP_CALLS");
    if (seconds == NULL || atomic_fetch_add(&calls, 1) < (after != NULL ? atoi(after) : 0))
        return 0;
    return atol(seconds);
}

int
clock_gettime(clockid_t id, struct timespec *out)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, out);
    if (id == CLOCK_REALTIME)
        out->tv_sec += jump();
    return result;
}

time_t
time(time_t *out)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
