// Goal: the knob really moves glibc's border between mapped and kept blocks.
// Method: commit a value, allocate a block, and count the mapped blocks with mallinfo2. Linked with
// the plugin's source; no sanitizer, because those bring a malloc of their own.
#include "tt/knob.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tt_knob_plugin *tt_knob_plugin_abi1(void);

static const void *
no_extension(const tt_knob_host *host, const char *name)
{
    (void)host;
    (void)name;
    return NULL;
}

static int
commit(const tt_knob *knob, void *self, double value)
{
    char reason[128] = "";
    if (knob->prepare(self, value, reason, sizeof reason) != 0) {
        (void)fprintf(stderr, "refused: %s\n", reason);
        return 1;
    }
    knob->commit(self);
    return 0;
}

// 1 when a block of this size is mapped for itself.
static int
is_mapped(size_t bytes)
{
    size_t before = mallinfo2().hblks;
    volatile char *block = malloc(bytes);
    size_t after = mallinfo2().hblks;
    if (block != NULL)
        block[4097] = 1;
    free((void *)block);
    return after > before;
}

int
main(void)
{
    const tt_knob *knob = tt_knob_plugin_abi1()->knobs[0];
    const tt_knob_host host = {sizeof host, NULL, no_extension};
    char reason[128] = "";
    int failures = 0;
    void *self = knob->open(&host);
    if (self == NULL)
        return 1;
    failures += commit(knob, self, 131072) || !is_mapped(1048576);
    failures += commit(knob, self, 33554432) || is_mapped(1048576);
    // larger than what the line above left at the top of the heap, which malloc uses up first
    failures += commit(knob, self, 524288) || !is_mapped(3145728);
    failures += knob->prepare(self, 67108864, reason, sizeof reason) == 0;
    failures += strstr(reason, "6.71089e+07 is not a number of bytes") == NULL;
    knob->close(self);
    if (failures > 0)
        (void)fprintf(stderr, "%d of 5 checks failed; last reason: %s\n", failures, reason);
    return failures > 0;
}
