// The rules of the tuner's own way that can be left out, by name.
#include "tuner_internal.h"
#include <string.h>

static const char *const names[TT_TUNER_RULES] = {
    [TT_TUNER_RULE_SPREAD] = "spread",       [TT_TUNER_RULE_COST] = "cost",
    [TT_TUNER_RULE_ABANDON] = "abandon",     [TT_TUNER_RULE_GUARD] = "guard",
    [TT_TUNER_RULE_SHARE] = "share",         [TT_TUNER_RULE_HYSTERESIS] = "hysteresis",
    [TT_TUNER_RULE_REPLICATE] = "replicate", [TT_TUNER_RULE_REST] = "rest",
    [TT_TUNER_RULE_RATE] = "rate",           [TT_TUNER_RULE_DELAY] = "delay",
    [TT_TUNER_RULE_DRIFT] = "drift",         [TT_TUNER_RULE_CURVATURE] = "curvature",
    [TT_TUNER_RULE_TREND] = "trend",         [TT_TUNER_RULE_CREDIT] = "credit",
    [TT_TUNER_RULE_NOISE] = "noise",
};

const char *
tt_tuner_rule_name(tt_tuner_rule rule)
{
    return rule < TT_TUNER_RULES ? names[rule] : "unknown";
}

int
tt_tuner_rules_read(const char *text, unsigned *out)
{
    *out = 0;
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "+"), rule = 0;
        while (rule < TT_TUNER_RULES &&
               (strlen(names[rule]) != length || strncmp(names[rule], at, length) != 0))
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
