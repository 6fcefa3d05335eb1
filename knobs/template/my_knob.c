// my_knob: an example that remembers a number. Copy the directory, rename, and make commit do
// something. The rules are in tt/knob.h.
#include "tt/knob.h"
#include <stdio.h>
#include <stdlib.h>

struct my_knob { // one per node
    double in_force, prepared;
};

static void *
my_open(const tt_knob_host *host)
{
    (void)host; // ask it for extensions here: host->get_extension(host, TT_KNOB_RUNTIME)
    return calloc(1, sizeof(struct my_knob));
}

static int
my_prepare(void *self, double value, char *reason, size_t reason_size)
{
    if (!(value >= 1 && value <= 64)) {
        (void)snprintf(reason, reason_size, "%g is not between 1 and 64", value);
        return 1;
    }
    ((struct my_knob *)self)->prepared = value;
    return 0;
}

static void
my_commit(void *self)
{
    ((struct my_knob *)self)->in_force = ((struct my_knob *)self)->prepared;
}

static void
my_rollback(void *self)
{
    ((struct my_knob *)self)->prepared = ((struct my_knob *)self)->in_force;
}

static const tt_knob my_knob = {.struct_size = sizeof(tt_knob), .id = "my_knob",
    .help = "an example that changes nothing", .unit = "things", .kind = TT_KNOB_INT,
    .scale = TT_KNOB_LOG2, .min = 1, .max = 64, .default_value = 8, .open = my_open,
    .prepare = my_prepare, .commit = my_commit, .rollback = my_rollback, .close = free};

TT_KNOB_PLUGIN(&my_knob)
