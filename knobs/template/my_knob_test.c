// Goal: the knob keeps the promises of tt/knob.h. Method: play the host, without trimtab.
#include "tt/knob.h"
#include <stdio.h>
#include <string.h>

const tt_knob_plugin *tt_knob_plugin_abi1(void); // linked in, not loaded

#define CHECK(x) ((x) ? (void)0 : (void)(failures++, fprintf(stderr, "fails: %s\n", #x)))

static const void *
no_extension(const tt_knob_host *host, const char *name)
{
    (void)host;
    (void)name;
    return NULL; // a knob must live with "not here"
}

int
main(void)
{
    const tt_knob *knob = tt_knob_plugin_abi1()->knobs[0];
    const tt_knob_host host = {sizeof host, NULL, no_extension};
    char reason[100] = "";
    int failures = 0;
    void *self = knob->open(&host);
    CHECK(self != NULL);
    CHECK(knob->prepare(self, knob->max + 1, reason, sizeof reason) != 0 && strlen(reason) > 0);
    CHECK(knob->prepare(self, knob->max, reason, sizeof reason) == 0);
    knob->rollback(self);
    CHECK(knob->prepare(self, knob->default_value, reason, sizeof reason) == 0);
    knob->commit(self);
    knob->close(self);
    return failures > 0;
}
