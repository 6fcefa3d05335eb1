// A knob whose value is a named number of the node's runtime.
#include "builtin_number.h"
#include "tt/core_mem.h"
#include <math.h>
#include <stdio.h>

struct instance {
    const tt_knob *knob;
    const tt_knob_host *host;
    const tt_knob_runtime *runtime; // NULL: this host offers none
    double prepared;
};

void *
tti_builtin_open(const tt_knob *knob, const tt_knob_host *host)
{
    struct instance *self = tt_mem_zalloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->knob = knob;
    self->host = host;
    self->runtime = host->get_extension(host, TT_KNOB_RUNTIME);
    return self;
}

int
tti_builtin_prepare(void *self_, double value, char *reason, size_t reason_size)
{
    struct instance *self = self_;
    const tt_knob *knob = self->knob;
    double present;
    if (!(value >= knob->min && value <= knob->max)) {
        (void)snprintf(reason, reason_size, "%g is not between %g and %g", value, knob->min,
                       knob->max);
        return -1;
    }
    if (value != nearbyint(value)) {
        (void)snprintf(reason, reason_size, "%g is not a whole number", value);
        return -1;
    }
    if (self->runtime == NULL) {
        (void)snprintf(reason, reason_size, "this host does not offer %s", TT_KNOB_RUNTIME);
        return -1;
    }
    if (self->runtime->get(self->host->impl, knob->id, &present) != 0) {
        (void)snprintf(reason, reason_size, "this node has nothing called %s", knob->id);
        return -1;
    }
    self->prepared = value;
    return 0;
}

void
tti_builtin_commit(void *self_)
{
    struct instance *self = self_;
    // The name was there in prepare, and the extension promises that it stays until commit.
    (void)self->runtime->set(self->host->impl, self->knob->id, self->prepared);
}

void
tti_builtin_rollback(void *self_)
{
    (void)self_; // a prepare leaves no trace outside `prepared`, which the next one overwrites
}

void
tti_builtin_close(void *self)
{
    tt_mem_free(self);
}
