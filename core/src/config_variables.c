// ${NAME} in values: the environment's word for it, as docker compose reads it.
#include "config_tree.h"
#include <stdlib.h>
#include <string.h>

typedef struct expansion {
    tt_config *cfg;
    tt_config_node *node;
    char *out; // grown as needed
    size_t used, capacity;
    int starved;
} expansion;

// One ${...}: its name, and what stands behind it.
typedef struct variable {
    const char *name, *word; // word: the default or the message, NULL without one
    size_t name_size, word_size;
    int empty_counts_as_unset, is_required;
} variable;

static void
put(expansion *e, const char *text, size_t size)
{
    if (e->used + size + 1 > e->capacity) {
        size_t capacity = 2 * (e->used + size + 1);
        char *grown = tt_mem_realloc(e->out, capacity);
        if (grown == NULL) {
            e->starved = 1;
            return;
        }
        e->out = grown;
        e->capacity = capacity;
    }
    memcpy(e->out + e->used, text, size);
    e->used += size;
}

static size_t
name_length(const char *text)
{
    size_t length = 0;
    for (; text[length] == '_' || (text[length] >= 'A' && text[length] <= 'Z') ||
           (text[length] >= 'a' && text[length] <= 'z') ||
           (length > 0 && text[length] >= '0' && text[length] <= '9');
         length++) {
    }
    return length;
}

// Parses what stands behind "${"; returns what follows the closing brace, NULL when it is no
// variable.
static const char *
parse_variable(const char *p, variable *v)
{
    *v = (variable){.name = p, .name_size = name_length(p)};
    p += v->name_size;
    if (v->name_size == 0)
        return NULL;
    if (*p == '}')
        return p + 1;
    v->empty_counts_as_unset = *p == ':';
    p += *p == ':';
    const char *end = strchr(p, '}');
    if ((*p != '-' && *p != '?') || end == NULL)
        return NULL;
    v->is_required = *p == '?';
    v->word = p + 1;
    v->word_size = (size_t)(end - v->word);
    return end + 1;
}

static void
put_variable(expansion *e, const variable *v)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", (int)v->name_size, v->name);
    const char *value = getenv(name); // set before threads start
    if (value != NULL && !(v->empty_counts_as_unset && value[0] == '\0')) {
        put(e, value, strlen(value));
        return;
    }
    if (v->word != NULL && !v->is_required) {
        put(e, v->word, v->word_size);
        return;
    }
    const char *state = value != NULL ? "empty" : "not set";
    e->node->is_faulty = 1;
    if (v->word_size > 0)
        tti_config_fault(e->cfg, e->node->place, NULL, "the variable %s is %s: %.*s", name, state,
                         (int)v->word_size, v->word);
    else
        tti_config_fault(
            e->cfg, e->node->place,
            tti_config_printf(e->cfg, "export %s, or write a default: ${%s:-value}", name, name),
            "the variable %s is %s", name, state);
}

static void
expand_at(expansion *e, const char **p)
{
    variable v;
    const char *end = parse_variable(*p + 2, &v);
    if (end != NULL) {
        put_variable(e, &v);
        *p = end;
        return;
    }
    e->node->is_faulty = 1;
    tti_config_fault(e->cfg, e->node->place, "write $${ for a plain ${",
                     "expected ${NAME}, ${NAME:-default} or ${NAME:?message}, not '%.40s'", *p);
    *p += strlen(*p);
}

tt_status
tti_config_expand(tt_config *cfg, tt_config_node *node)
{
    if (strstr(node->text, "${") == NULL)
        return TT_OK;
    expansion e = {.cfg = cfg, .node = node};
    for (const char *p = node->text; *p != '\0';) {
        size_t plain = strcspn(p, "$");
        put(&e, p, plain);
        p += plain;
        if (strncmp(p, "$${", 3) == 0) {
            put(&e, "${", 2);
            p += 3;
        } else if (strncmp(p, "${", 2) == 0) {
            expand_at(&e, &p);
        } else if (*p != '\0') {
            put(&e, p++, 1);
        }
    }
    put(&e, "", 0);
    if (!e.starved) {
        e.out[e.used] = '\0';
        node->text = tt_arena_strdup(&cfg->arena, e.out);
    }
    tt_mem_free(e.out);
    return e.starved || node->text == NULL ? TT_NOMEM : TT_OK;
}
