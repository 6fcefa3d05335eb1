// A host for tests: offers "tt.runtime/1" with a few named numbers and writes down who set what.
#ifndef TT_TEST_FAKE_RUNTIME_H
#define TT_TEST_FAKE_RUNTIME_H

#include "tt/knob.h"
#include <string.h>

enum { FAKE_NUMBERS_MAX = 24 };

typedef struct fake_runtime {
    tt_knob_host host;
    tt_knob_runtime table;
    int offers_runtime;
    uint32_t count, set_count;
    const char *name[FAKE_NUMBERS_MAX];
    double value[FAKE_NUMBERS_MAX];
} fake_runtime;

static int
fake_find(const fake_runtime *fake, const char *name)
{
    for (uint32_t i = 0; i < fake->count; i++)
        if (strcmp(fake->name[i], name) == 0)
            return (int)i;
    return -1;
}

static int
fake_set(void *impl, const char *name, double value)
{
    fake_runtime *fake = impl;
    int i = fake_find(fake, name);
    if (i < 0)
        return -1;
    fake->value[i] = value;
    fake->set_count++;
    return 0;
}

static int
fake_get(void *impl, const char *name, double *out)
{
    fake_runtime *fake = impl;
    int i = fake_find(fake, name);
    if (i < 0)
        return -1;
    *out = fake->value[i];
    return 0;
}

static const void *
fake_extension(const tt_knob_host *host, const char *name)
{
    fake_runtime *fake = host->impl;
    return fake->offers_runtime && strcmp(name, TT_KNOB_RUNTIME) == 0 ? &fake->table : NULL;
}

// A node that knows `count` numbers, all 0.
static void
fake_init(fake_runtime *fake, const char *const *names, uint32_t count)
{
    memset(fake, 0, sizeof *fake);
    fake->host = (tt_knob_host){sizeof(tt_knob_host), fake, fake_extension};
    fake->table = (tt_knob_runtime){sizeof(tt_knob_runtime), fake_set, fake_get};
    fake->offers_runtime = 1;
    fake->count = count;
    for (uint32_t i = 0; i < count; i++)
        fake->name[i] = names[i];
}

#endif
