// The rules of the tuner's own way that can be left out, by name.
#include "tuner_internal.h"
#include <string.h>

static const struct {
    const char *name, *help;
} rules[TT_TUNER_RULES] = {
    [TT_TUNER_RULE_SPREAD] = {"spread", "settings spread over the space before the model decides"},
    [TT_TUNER_RULE_COST] = {"cost", "what it costs to find out counts against what it may save"},
    [TT_TUNER_RULE_ABANDON] = {"abandon", "a trial that is much slower is broken off"},
    [TT_TUNER_RULE_GUARD] = {"guard", "trials wait while tuning has cost what it may"},
    [TT_TUNER_RULE_SHARE] = {"share", "trials wait while switching has cost its share of the job"},
    [TT_TUNER_RULE_HYSTERESIS] = {"hysteresis", "back to a known setting only when clearly better"},
    [TT_TUNER_RULE_CONTROL] = {"control",
                               "the best and the start setting are measured now and then"},
    [TT_TUNER_RULE_REPLICATE] = {"replicate", "the best is measured several times before a rest"},
    [TT_TUNER_RULE_REST] = {"rest", "pauses that grow while nothing is worth trying"},
    [TT_TUNER_RULE_RATE] = {"rate", "progress an iteration makes under a setting counts"},
    [TT_TUNER_RULE_DELAY] = {"delay", "gradients grow staler by steps from what was borne"},
    [TT_TUNER_RULE_DRIFT] = {"drift", "a change of the machine reopens exploring"},
};

const char *
tt_tuner_rule_name(tt_tuner_rule rule)
{
    return rule < TT_TUNER_RULES ? rules[rule].name : "unknown";
}

const char *
tt_tuner_rule_help(tt_tuner_rule rule)
{
    return rule < TT_TUNER_RULES ? rules[rule].help : "unknown";
}

int
tt_tuner_rules_read(const char *text, unsigned *out)
{
    *out = 0;
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "+"), rule = 0;
        while (rule < TT_TUNER_RULES &&
               (strlen(rules[rule].name) != length || strncmp(rules[rule].name, at, length) != 0))
            rule++;
        if (rule == TT_TUNER_RULES || (at[length] == '+' && at[length + 1] == '\0'))
            return 0;
        *out |= 1u << rule;
        at += length + (at[length] == '+');
    }
    return *out != 0;
}

uint32_t
tti_tuner_replicates(const tt_tuner *t)
{
    return tti_tuner_follows(t, TT_TUNER_RULE_REPLICATE) ? TTI_REPLICATES : 1;
}

int
tti_tuner_follows(const tt_tuner *t, tt_tuner_rule rule)
{
    return (t->options.without >> rule & 1) == 0;
}
