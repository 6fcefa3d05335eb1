// A plugin for the tests: a real on a log scale, a knob that refuses, and two that commit together.
#include "tt/knob.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct instance {
    const tt_knob_host *host;
    const tt_knob_runtime *runtime;
    double prepared;
    int is_prepared;
};

static void *
open_any(const tt_knob_host *host)
{
    struct instance *self = calloc(1, sizeof *self);
    if (self != NULL) {
        self->host = host;
        self->runtime = host->get_extension(host, TT_KNOB_RUNTIME);
    }
    return self;
}

static int
prepare_any(void *self_, double value, char *reason, size_t reason_size)
{
    struct instance *self = self_;
    double present;
    if (self->is_prepared) // the host must commit or roll back first
        abort();
    if (self->runtime == NULL || self->runtime->get(self->host->impl, "test_rate", &present) != 0) {
        (void)snprintf(reason, reason_size, "no test_rate here");
        return -1;
    }
    self->prepared = value;
    self->is_prepared = 1;
    return 0;
}

static int
prepare_moody(void *self, double value, char *reason, size_t reason_size)
{
    if (value == 7) { // a badly written plugin: fills the whole buffer and forgets the NUL
        memset(reason, 'x', reason_size);
        return 1;
    }
    if (value > 5) {
        (void)snprintf(reason, reason_size, "more than 5 is too much for me");
        return 1;
    }
    return value == 3 ? 1 : prepare_any(self, value, reason, reason_size);
}

static void
commit_rate(void *self_)
{
    struct instance *self = self_;
    self->is_prepared = 0;
    (void)self->runtime->set(self->host->impl, "test_rate", self->prepared);
}

static void
commit_moody(void *self_)
{
    ((struct instance *)self_)->is_prepared = 0;
}

static void
commit_pair(void *const *selves, uint32_t count)
{
    double sum = 0;
    struct instance *self = selves[0];
    for (uint32_t i = 0; i < count; i++) {
        struct instance *one = selves[i];
        one->is_prepared = 0;
        sum = 100 * sum + one->prepared;
    }
    (void)self->runtime->set(self->host->impl, "test_pair", sum);
}

static void
rollback_any(void *self)
{
    ((struct instance *)self)->is_prepared = 0;
}

static const tt_knob rate = {.struct_size = sizeof(tt_knob),
                             .id = "test_rate",
                             .help = "a real number on a log scale",
                             .unit = "1/s",
                             .kind = TT_KNOB_REAL,
                             .scale = TT_KNOB_LOG2,
                             .min = 1e-4,
                             .max = 10,
                             .default_value = 0.037,
                             .open = open_any,
                             .prepare = prepare_any,
                             .commit = commit_rate,
                             .rollback = rollback_any,
                             .close = free};
static const tt_knob moody = {.struct_size = sizeof(tt_knob),
                              .id = "test_moody",
                              .help = "refuses 3 without a word, and what is above 5",
                              .kind = TT_KNOB_INT,
                              .min = 0,
                              .max = 9,
                              .default_value = 2,
                              .open = open_any,
                              .prepare = prepare_moody,
                              .commit = commit_moody,
                              .rollback = rollback_any,
                              .close = free};
static const tt_knob left = {.struct_size = sizeof(tt_knob),
                             .id = "test_left",
                             .help = "committed together with test_right",
                             .unit = "ms",
                             .kind = TT_KNOB_INT,
                             .min = 0,
                             .max = 99,
                             .default_value = 11,
                             .open = open_any,
                             .prepare = prepare_any,
                             .commit = commit_moody,
                             .rollback = rollback_any,
                             .close = free,
                             .commit_together = commit_pair};
static const tt_knob right = {.struct_size = sizeof(tt_knob),
                              .id = "test_right",
                              .help = "committed together with test_left",
                              .unit = "ms",
                              .kind = TT_KNOB_INT,
                              .min = 0,
                              .max = 99,
                              .default_value = 22,
                              .open = open_any,
                              .prepare = prepare_any,
                              .commit = commit_moody,
                              .rollback = rollback_any,
                              .close = free,
                              .commit_together = commit_pair};

TT_KNOB_PLUGIN(&rate, &moody, &left, &right)
