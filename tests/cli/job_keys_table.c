// Prints the keys of a job file as the table of docs/job-file.md; cli_docs.sh compares the two.
#include "job_internal.h"
#include <stdio.h>

static void
print_kind(const tt_config_key *key)
{
    static const char *const kinds[] = {"text",
                                        "path",
                                        "on or off",
                                        "whole number",
                                        "number",
                                        "size",
                                        "duration (`10m`)",
                                        "one of",
                                        "mapping, list",
                                        "path, list of paths"};
    const char *kind = kinds[key->kind];
    if (key->kind == TT_CONFIG_REAL && (key->flags & TT_CONFIG_PERCENT) != 0)
        kind = "number or percentage";
    (void)printf(" %s", kind);
    for (size_t i = 0; key->kind == TT_CONFIG_ENUM && key->values[i] != NULL; i++)
        (void)printf("%s `%s`", i > 0 ? "," : "", key->values[i]);
    (void)printf(" |");
}

static void
print_range(const tt_config_key *key)
{
    const char *unit = key->unit != NULL ? key->unit : key->kind == TT_CONFIG_DURATION ? "s" : "";
    const char *above = (key->flags & TT_CONFIG_ABOVE_MIN) != 0 ? "above " : "";
    const char *below = (key->flags & TT_CONFIG_BELOW_MAX) != 0 ? "below " : "";
    if (key->min < key->max)
        (void)printf(" %s%.10g .. %s%.10g%s%s", above, key->min, below, key->max,
                     *unit != '\0' ? " " : "", unit);
    (void)printf(" |");
}

static void
print_default(const tt_config_key *key)
{
    if ((key->flags & TT_CONFIG_REQUIRED) != 0)
        (void)printf(" required");
    else if (key->default_text != NULL)
        (void)printf(" `%s`", key->default_text);
    else if ((key->flags & TT_CONFIG_AUTO) != 0)
        (void)printf(" `auto`");
    (void)printf(" |");
}

// A bar would end the cell.
static void
print_help(const tt_config_key *key)
{
    (void)printf(" ");
    for (const char *c = key->help; *c != '\0'; c++)
        (void)printf(*c == '|' ? "\\%c" : "%c", *c);
    (void)printf(" |\n");
}

int
main(void)
{
    (void)printf("| key | kind | default | range | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < tti_job_key_count; i++) {
        const tt_config_key *key = &tti_job_keys[i];
        (void)printf("| `%s` |", key->path);
        print_kind(key);
        print_default(key);
        print_range(key);
        print_help(key);
    }
    return 0;
}
