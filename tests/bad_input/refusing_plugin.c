// A knob plugin that is well formed and of no use: with REFUSE_OPEN it gives no instance, otherwise
// it takes no value.
#include "tt/knob.h"
#include <stdio.h>

static void *
refuse_open(const tt_knob_host *host)
{
    (void)host;
#ifdef REFUSE_OPEN
    return NULL;
#else
    static int instance;
    return &instance;
#endif
}

static int
refuse_value(void *self, double value, char *reason, size_t reason_size)
{
    (void)self;
    (void)snprintf(reason, reason_size, "%g is not to my taste", value);
    return -1;
}

static void
leave(void *self)
{
    (void)self;
}

static const tt_knob refusing = {.struct_size = sizeof(tt_knob),
                                 .id = "refusing",
                                 .help = "a knob for tests that refuses",
                                 .kind = TT_KNOB_INT,
                                 .min = 1,
                                 .max = 64,
                                 .default_value = 8,
                                 .open = refuse_open,
                                 .prepare = refuse_value,
                                 .commit = leave,
                                 .rollback = leave,
                                 .close = leave};

TT_KNOB_PLUGIN(&refusing)
