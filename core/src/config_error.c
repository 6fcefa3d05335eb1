// The list of faults: recorded in any order, printed in the order of the text.
#include "config_tree.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int
is_recorded(const tt_config *cfg, const char *place, const char *what)
{
    for (size_t i = 0; i < cfg->error_count; i++)
        if (strcmp(cfg->errors[i].place.text, place) == 0 && strcmp(cfg->errors[i].what, what) == 0)
            return 1;
    return 0;
}

void
tti_config_fault_v(tt_config *cfg,
                   const tti_config_place *place,
                   const char *advice,
                   const char *format,
                   va_list arguments)
{
    tti_config_place whole = {.text = cfg->first_name != NULL ? cfg->first_name : "configuration"};
    if (place == NULL)
        place = &whole;
    char what[sizeof((tt_error *)0)->what];
    (void)vsnprintf(what, sizeof what, format, arguments);
    if (is_recorded(cfg, place->text, what))
        return;
    tti_config_error fault = {.place = *place, .sequence = cfg->error_count};
    fault.what = tt_arena_strdup(&cfg->arena, what);
    fault.advice = advice != NULL ? tt_arena_strdup(&cfg->arena, advice) : "";
    if (fault.what == NULL || fault.advice == NULL ||
        tt_mem_grow((void **)&cfg->errors, &cfg->error_capacity, cfg->error_count, sizeof fault) !=
            TT_OK) {
        cfg->starved = 1;
        return;
    }
    cfg->errors[cfg->error_count++] = fault;
    cfg->sorted = 0;
}

void
tti_config_fault(
    tt_config *cfg, const tti_config_place *place, const char *advice, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tti_config_fault_v(cfg, place, advice, format, arguments);
    va_end(arguments);
}

void
tt_config_complain(
    tt_config *cfg, const tt_config_node *node, const char *advice, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tti_config_fault_v(cfg, node != NULL ? node->place : NULL, advice, format, arguments);
    va_end(arguments);
}

void
tt_config_complain_key(
    tt_config *cfg, const char *path, const char *advice, const char *format, ...)
{
    const tt_config_node *nearest = NULL;
    const tt_config_node *node = tti_config_walk(cfg->root, path, &nearest);
    if (node == NULL)
        node = nearest;
    va_list arguments;
    va_start(arguments, format);
    // The root begins wherever the first key happens to stand: no place to point at.
    int at_root = node == NULL || node == cfg->root;
    tti_config_fault_v(cfg, at_root ? NULL : node->place, advice, format, arguments);
    va_end(arguments);
}

// ---- did you mean
// --------------------------------------------------------------------------------

enum { WORD_MAX = 63 };

static int
lower(char c)
{
    int letter = tolower((unsigned char)c);
    return letter == '-' ? '_' : letter;
}

// Optimal string alignment distance (Damerau 1964; insert, delete, replace, swap neighbours), three
// rows of the table at a time.
static size_t
edit_distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > WORD_MAX || columns > WORD_MAX)
        return SIZE_MAX;
    size_t table[3][WORD_MAX + 1];
    for (size_t j = 0; j <= columns; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t *now = table[i % 3], *up = table[(i + 2) % 3], *up2 = table[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            int same = lower(a[i - 1]) == lower(b[j - 1]);
            size_t best = TT_MIN(up[j] + 1, now[j - 1] + 1);
            best = TT_MIN(best, up[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                best = TT_MIN(best, up2[j - 2] + 1);
            now[j] = best;
        }
    }
    return table[rows % 3][columns];
}

static size_t
common_prefix(const char *a, const char *b)
{
    size_t length = 0;
    while (a[length] != '\0' && lower(a[length]) == lower(b[length]))
        length++;
    return length;
}

int
tti_config_nearest_index(const char *word, const char *const *words, size_t count)
{
    size_t length = strlen(word), best = SIZE_MAX;
    int index = -1;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, words[i]);
        size_t allowed = (TT_MIN(length, strlen(words[i])) + 1) / 3;
        // "chunks" for "chunk_bytes": nearly all of the word begins the other one.
        if (distance > allowed && length >= 4 && common_prefix(word, words[i]) + 1 >= length)
            distance = WORD_MAX;
        else if (distance > allowed)
            continue;
        if (distance < best) {
            best = distance;
            index = (int)i;
        }
    }
    return index;
}

static size_t
count_words(const char *const *known)
{
    size_t count = 0;
    while (known[count] != NULL)
        count++;
    return count;
}

const char *
tt_config_nearest(const char *word, const char *const *known)
{
    int index = tti_config_nearest_index(word, known, count_words(known));
    return index >= 0 ? known[index] : NULL;
}

void
tt_config_complain_unknown(tt_config *cfg,
                           const tt_config_node *mapping,
                           size_t index,
                           const char *const *known)
{
    TT_ASSERT(index < mapping->count && mapping->kind == TT_CONFIG_MAPPING);
    const tti_config_entry *entry = &mapping->entries[index];
    const char *nearest = tt_config_nearest(entry->key, known);
    char advice[300];
    if (nearest != NULL)
        (void)snprintf(advice, sizeof advice, "did you mean '%s'?", nearest);
    else {
        size_t used = (size_t)snprintf(advice, sizeof advice, "known here:");
        for (size_t i = 0; known[i] != NULL && used + strlen(known[i]) + 8 < sizeof advice; i++)
            used += (size_t)snprintf(advice + used, sizeof advice - used, "%s %s", i > 0 ? "," : "",
                                     known[i]);
    }
    tti_config_fault(cfg, entry->key_place, advice, "unknown key '%.80s'", entry->key);
}

// ---- the list
// ------------------------------------------------------------------------------------

static int
compare_places(const void *left, const void *right)
{
    const tti_config_error *a = left, *b = right;
    if (a->place.source != b->place.source)
        return a->place.source < b->place.source ? -1 : 1;
    if (a->place.line != b->place.line)
        return a->place.line < b->place.line ? -1 : 1;
    if (a->place.column != b->place.column)
        return a->place.column < b->place.column ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static void
sort_faults(tt_config *cfg)
{
    if (!cfg->sorted && cfg->error_count > 1)
        qsort(cfg->errors, cfg->error_count, sizeof *cfg->errors, compare_places);
    cfg->sorted = 1;
}

size_t
tt_config_error_count(const tt_config *cfg)
{
    return cfg->error_count + (cfg->starved ? 1 : 0);
}

int
tt_config_error_get(tt_config *cfg, size_t index, tt_error *out)
{
    sort_faults(cfg);
    if (index >= tt_config_error_count(cfg))
        return -1;
    if (index == cfg->error_count) {
        (void)tt_error_set(out, TT_NOMEM, NULL, NULL, "no memory to report every fault");
        return 0;
    }
    const tti_config_error *fault = &cfg->errors[index];
    (void)tt_error_set(out, TT_INVALID, fault->place.text, fault->advice, "%s", fault->what);
    return 0;
}

void
tt_config_errors_print(tt_config *cfg, FILE *out)
{
    size_t count = tt_config_error_count(cfg);
    tt_error fault;
    for (size_t i = 0; tt_config_error_get(cfg, i, &fault) == 0; i++)
        tt_error_print(out, &fault);
    if (count > 0)
        (void)fprintf(out, "%zu error%s, nothing was run.\n", count, count > 1 ? "s" : "");
}
