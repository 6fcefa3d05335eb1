// What a machine has: see machine.h.
#include "machine.h"
#include <stdio.h>

uint64_t
tti_memory_available(void)
{
    char line[200];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    (void)fclose(file);
    return 1024 * (uint64_t)kib;
}
