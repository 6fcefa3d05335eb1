// The resolved configuration as YAML, through libyaml's emitter, which knows what needs quotes.
#include "config_tree.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct writer {
    tt_config *cfg;
    const tt_config_key *keys;
    size_t count;
    const char *values; // the caller's struct
    FILE *out;
    yaml_emitter_t emitter;
    int failed; // out of memory or a write failed; the rest is skipped
} writer;

static int
write_bytes(void *self, unsigned char *buffer, size_t size)
{
    return fwrite(buffer, 1, size, ((writer *)self)->out) == size;
}

// Takes over the event, as libyaml does, also when it could not be made.
static void
emit(writer *w, int made, yaml_event_t *event)
{
    if (!made || w->failed || !yaml_emitter_emit(&w->emitter, event)) {
        if (made && w->failed)
            yaml_event_delete(event);
        w->failed = 1;
    }
}

// "${" as "$${", so that it is not taken for a variable when it is read again.
static const char *
protect(writer *w, const char *text)
{
    const char *at = text != NULL ? strstr(text, "${") : NULL;
    if (at == NULL)
        return text;
    const char *rest = protect(w, at + 2);
    return rest == NULL ? NULL
                        : tti_config_printf(w->cfg, "%.*s$${%s", (int)(at - text), text, rest);
}

static void
emit_scalar(writer *w, const char *text, int quoted)
{
    text = protect(w, text);
    yaml_event_t event;
    yaml_scalar_style_t style = quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE;
    int made =
        text != NULL && yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                                     (int)strlen(text), 1, 1, style);
    emit(w, made, &event);
}

static void
emit_mapping_start(writer *w)
{
    yaml_event_t event;
    emit(w, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE),
         &event);
}

static void
emit_mapping_end(writer *w)
{
    yaml_event_t event;
    emit(w, yaml_mapping_end_event_initialize(&event), &event);
}

// ---- subtrees as given
// ---------------------------------------------------------------------------

static void
emit_node(writer *w, const tt_config_node *node)
{
    yaml_event_t event;
    if (node->kind == TT_CONFIG_SCALAR) {
        tt_config_key path = {.kind = TT_CONFIG_PATH};
        const char *text = node->resolved_path == NULL
                               ? node->text
                               : tti_config_format_value(w->cfg, &path, &node->resolved_path);
        emit_scalar(w, text, node->quoted);
        return;
    }
    if (node->kind == TT_CONFIG_SEQUENCE)
        emit(w,
             yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE),
             &event);
    else
        emit_mapping_start(w);
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == TT_CONFIG_MAPPING)
            emit_scalar(w, node->entries[i].key, 0);
        emit_node(w, node->entries[i].value);
    }
    if (node->kind == TT_CONFIG_SEQUENCE)
        emit(w, yaml_sequence_end_event_initialize(&event), &event);
    else
        emit_mapping_end(w);
}

// ---- the table
// -----------------------------------------------------------------------------------

// "" when the key has nothing to say.
static int
has_value(const writer *w, const tt_config_key *key)
{
    if (!tti_config_is_absent(key, w->values + key->offset) || (key->flags & TT_CONFIG_AUTO))
        return 1;
    // Zero is "absent" for these, but also a value like any other.
    int countable =
        key->kind == TT_CONFIG_BOOL || key->kind == TT_CONFIG_INT || key->kind == TT_CONFIG_BYTES;
    return countable && (key->default_text != NULL || tt_config_given(w->cfg, key->path));
}

static int
is_below(const char *path, const char *prefix, size_t length)
{
    return length == 0 || (strncmp(path, prefix, length) == 0 && path[length] == '.');
}

// The NODE key at exactly this path, and the mapping it holds.
static const tt_config_node *
node_at(const writer *w, const char *path, size_t length)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->keys[i].kind == TT_CONFIG_NODE && strlen(w->keys[i].path) == length &&
            strncmp(w->keys[i].path, path, length) == 0)
            return *(const tt_config_node *const *)(const void *)(w->values + w->keys[i].offset);
    return NULL;
}

static void
emit_paths(writer *w, const tt_config_paths *paths)
{
    static const tt_config_key key = {.kind = TT_CONFIG_PATH};
    yaml_event_t event;
    if (paths->count > 1)
        emit(w,
             yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE),
             &event);
    for (size_t i = 0; i < paths->count; i++)
        emit_scalar(w, tti_config_format_value(w->cfg, &key, &paths->path[i]), 0);
    if (paths->count > 1)
        emit(w, yaml_sequence_end_event_initialize(&event), &event);
}

static void
emit_key_value(writer *w, const tt_config_key *key)
{
    const void *field = w->values + key->offset;
    if (key->kind == TT_CONFIG_PATHS) {
        emit_paths(w, *(const tt_config_paths *const *)field);
        return;
    }
    if (key->kind == TT_CONFIG_NODE) {
        emit_node(w, *(const tt_config_node *const *)field);
        return;
    }
    int is_auto = (key->flags & TT_CONFIG_AUTO) && tti_config_is_absent(key, field);
    const char *text = is_auto ? "auto" : tti_config_format_value(w->cfg, key, field);
    int is_text = key->kind == TT_CONFIG_STRING || key->kind == TT_CONFIG_PATH;
    int looks_null = is_text && text != NULL &&
                     (text[0] == '\0' || text[0] == '~' || strcasecmp(text, "null") == 0);
    emit_scalar(w, text, looks_null);
}

static int
group_has_value(const writer *w, const char *prefix, size_t length)
{
    for (size_t i = 0; i < w->count; i++)
        if (is_below(w->keys[i].path, prefix, length) && has_value(w, &w->keys[i]))
            return 1;
    return 0;
}

// Was the name at keys[index].path[skip..skip+length) met before under the same prefix?
static int
is_repeated(const writer *w, size_t index, size_t end)
{
    const char *path = w->keys[index].path;
    for (size_t i = 0; i < index; i++) {
        const char *other = w->keys[i].path;
        if (strncmp(other, path, end) == 0 && (other[end] == '.' || other[end] == '\0'))
            return 1;
    }
    return 0;
}

static int
is_in_table(const writer *w, const char *prefix, size_t length, const char *name)
{
    size_t skip = length > 0 ? length + 1 : 0, name_length = strlen(name);
    for (size_t i = 0; i < w->count; i++) {
        const char *path = w->keys[i].path;
        if (is_below(path, prefix, length) && strncmp(path + skip, name, name_length) == 0 &&
            (path[skip + name_length] == '.' || path[skip + name_length] == '\0'))
            return 1;
    }
    return 0;
}

// The mapping of all keys below prefix[0..length): the table's in its order, then what a NODE key
// there holds besides.
static void
emit_group(writer *w, const char *prefix, size_t length)
{
    emit_mapping_start(w);
    size_t skip = length > 0 ? length + 1 : 0;
    for (size_t i = 0; i < w->count; i++) {
        const tt_config_key *key = &w->keys[i];
        if (!is_below(key->path, prefix, length))
            continue;
        size_t end = skip + strcspn(key->path + skip, ".");
        if (is_repeated(w, i, end))
            continue;
        char name[TTI_CONFIG_PATH_MAX];
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - skip), key->path + skip);
        int is_group = 0;
        for (size_t j = 0; j < w->count; j++)
            is_group |= is_below(w->keys[j].path, key->path, end);
        if (is_group && group_has_value(w, key->path, end)) {
            emit_scalar(w, name, 0);
            emit_group(w, key->path, end);
        } else if (key->path[end] == '\0' && has_value(w, key)) {
            emit_scalar(w, name, 0);
            emit_key_value(w, key);
        }
    }
    const tt_config_node *given = length > 0 ? node_at(w, prefix, length) : NULL;
    for (size_t i = 0; given != NULL && given->kind == TT_CONFIG_MAPPING && i < given->count; i++)
        if (!is_in_table(w, prefix, length, given->entries[i].key)) {
            emit_scalar(w, given->entries[i].key, 0);
            emit_node(w, given->entries[i].value);
        }
    emit_mapping_end(w);
}

// One document: what `emit_content` writes.
static int
write_document(writer *w, void (*emit_content)(writer *w, const void *self), const void *self)
{
    yaml_event_t event;
    if (!yaml_emitter_initialize(&w->emitter))
        return 0;
    yaml_emitter_set_output(&w->emitter, write_bytes, w);
    yaml_emitter_set_unicode(&w->emitter, 1);
    yaml_emitter_set_width(&w->emitter, -1);
    emit(w, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    emit(w, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    emit_content(w, self);
    emit(w, yaml_document_end_event_initialize(&event, 1), &event);
    emit(w, yaml_stream_end_event_initialize(&event), &event);
    yaml_emitter_delete(&w->emitter);
    return 1;
}

static void
emit_whole(writer *w, const void *self)
{
    TT_UNUSED(self);
    emit_group(w, "", 0);
}

static void
emit_one(writer *w, const void *self)
{
    emit_node(w, self);
}

tt_status
tt_config_write_resolved(tt_config *cfg,
                         const tt_config_key *keys,
                         size_t count,
                         const void *values,
                         FILE *out,
                         tt_error *err)
{
    writer w = {.cfg = cfg, .keys = keys, .count = count, .values = values, .out = out};
    if (!write_document(&w, emit_whole, NULL))
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to write the configuration");
    if (w.failed || fflush(out) != 0 || ferror(out))
        return tt_error_set(err, TT_IO, NULL, "check the free space (df -h)",
                            "cannot write the resolved configuration: %s", tt_errno_text(errno));
    return TT_OK;
}

// A subtree on one line.
static const char *
node_text(tt_config *cfg, const tt_config_node *node)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return NULL;
    writer w = {.cfg = cfg, .out = stream};
    int written = write_document(&w, emit_one, node);
    const char *kept = NULL;
    if (fclose(stream) == 0 && written && !w.failed) {
        while (bytes > 0 && text[bytes - 1] == '\n')
            text[--bytes] = '\0';
        for (size_t i = 0; i < bytes; i++)
            if (text[i] == '\n')
                text[i] = ';';
        kept = tti_config_printf(cfg, "%s", text);
    }
    free(text);
    return kept;
}

const char *
tt_config_value_text(tt_config *cfg, const tt_config_key *key, const void *values)
{
    const char *field = (const char *)values + key->offset;
    if (key->kind == TT_CONFIG_NODE) {
        const tt_config_node *node = *(const tt_config_node *const *)(const void *)field;
        return node != NULL ? node_text(cfg, node) : "";
    }
    int countable =
        key->kind == TT_CONFIG_BOOL || key->kind == TT_CONFIG_INT || key->kind == TT_CONFIG_BYTES;
    if (tti_config_is_absent(key, field) && !countable)
        return "";
    return tti_config_format_value(cfg, key, field);
}
