// Plugins that the registry must refuse, one per value of BAD_PLUGIN: 0 exports nothing, 1 speaks
// another major, 2 has a bad second knob, 3 takes an id of a built-in knob, 4 lies about its size.
#include "tt/knob.h"
#include <stdio.h>
#include <stdlib.h>

static void *
open_any(const tt_knob_host *host)
{
    return malloc(sizeof host);
}

static int
prepare_any(void *self, double value, char *reason, size_t reason_size)
{
    (void)self;
    (void)snprintf(reason, reason_size, "never ready for %g", value);
    return 1;
}

static void
nothing(void *self)
{
    (void)self;
}

#define KNOB(size, name, high)                                                                     \
    {                                                                                              \
        .struct_size = (size), .id = (name), .help = "a switch", .kind = TT_KNOB_INT,              \
        .max = (high), .open = open_any, .prepare = prepare_any, .commit = nothing,                \
        .rollback = nothing, .close = free                                                         \
    }

#if BAD_PLUGIN == 0
extern const tt_knob bad_unreachable;
__attribute__((visibility("default"))) const tt_knob bad_unreachable =
    KNOB(sizeof(tt_knob), "a", 1);
#elif BAD_PLUGIN == 1
__attribute__((visibility("default"))) const void *tt_knob_plugin_abi7(void);
static const tt_knob knob = KNOB(sizeof(tt_knob), "from_the_future", 1);
const void *
tt_knob_plugin_abi7(void)
{
    return &knob;
}
#elif BAD_PLUGIN == 2
static const tt_knob good = KNOB(sizeof(tt_knob), "good_one", 1);
static const tt_knob bad = KNOB(sizeof(tt_knob), "upside_down", -1);
TT_KNOB_PLUGIN(&good, &bad)
#elif BAD_PLUGIN == 3
static const tt_knob good = KNOB(sizeof(tt_knob), "good_two", 1);
static const tt_knob taken = KNOB(sizeof(tt_knob), "spin", 1);
TT_KNOB_PLUGIN(&good, &taken)
#elif BAD_PLUGIN == 4
static const tt_knob knob = KNOB(16, "too_short", 1);
TT_KNOB_PLUGIN(&knob)
#endif
