// Text -> tree: libyaml's events with their marks, and everything of YAML that is refused here.
#include "config_tree.h"
#include <errno.h>
#include <string.h>
#include <yaml.h>

typedef struct builder {
    tt_config *cfg;
    yaml_parser_t parser;
    const char *text;
    size_t text_bytes;
    const char *name, *directory;        // of the file
    const tti_config_place *fixed_place; // an override has one place; NULL for files
    uint32_t source;
    tt_status status; // the first hard fault
} builder;

static const tti_config_place *
place_at(builder *b, size_t line, size_t column)
{
    if (b->fixed_place != NULL)
        return b->fixed_place;
    tti_config_place *place = tt_arena_alloc(&b->cfg->arena, sizeof *place);
    if (place == NULL)
        return NULL;
    place->source = b->source;
    place->line = (uint32_t)(line + 1);
    place->column = (uint32_t)(column + 1);
    place->text = tti_config_printf(b->cfg, "%s:%u:%u", b->name, (unsigned)place->line,
                                    (unsigned)place->column);
    return place->text != NULL ? place : NULL;
}

static const tti_config_place *
place_of(builder *b, yaml_mark_t mark)
{
    return place_at(b, mark.line, mark.column);
}

// ---- malformed text
// ------------------------------------------------------------------------------

// A reader's fault (encoding, control character) has an offset instead of a mark.
static void
place_of_offset(const builder *b, size_t offset, size_t *line, size_t *column)
{
    *line = *column = 0;
    for (size_t i = 0; i < offset && i < b->text_bytes; i++) {
        if (b->text[i] == '\n') {
            *line += 1;
            *column = 0;
        } else if (((unsigned char)b->text[i] & 0xc0) != 0x80)
            *column += 1;
    }
}

static const char *
advice_for(const builder *b, size_t index)
{
    if (b->fixed_place != NULL)
        return "quote the value for YAML, for example --set 'a.b=\"text\"'";
    if (index < b->text_bytes && b->text[index] == '\t')
        return "YAML indents with spaces, not with tabs";
    return "look at indentation, quotes and brackets here and just above";
}

static tt_status
report_malformed(builder *b)
{
    const yaml_parser_t *parser = &b->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return TT_NOMEM;
    size_t line = parser->problem_mark.line, column = parser->problem_mark.column;
    if (parser->error == YAML_READER_ERROR) {
        place_of_offset(b, parser->problem_offset, &line, &column);
        tti_config_fault(b->cfg, place_at(b, line, column), "save the file as plain UTF-8 text",
                         "this is not text: %s", parser->problem);
        return TT_SYNTAX;
    }
    char context[160] = "";
    if (parser->context != NULL && b->fixed_place == NULL)
        (void)snprintf(context, sizeof context, ", %s that starts at %zu:%zu", parser->context,
                       parser->context_mark.line + 1, parser->context_mark.column + 1);
    tti_config_fault(b->cfg, place_at(b, line, column), advice_for(b, parser->problem_mark.index),
                     "malformed YAML: %s%s", parser->problem, context);
    return TT_SYNTAX;
}

// The next event; 0 when there is none because of a hard fault.
static int
next_event(builder *b, yaml_event_t *event)
{
    if (b->status != TT_OK)
        return 0;
    if (yaml_parser_parse(&b->parser, event))
        return 1;
    b->status = report_malformed(b);
    return 0;
}

// ---- nodes
// ---------------------------------------------------------------------------------------

static tt_config_node *build_node(builder *b, const yaml_event_t *event, int depth);

static tt_config_node *
out_of_memory(builder *b)
{
    if (b->status == TT_OK)
        b->status = TT_NOMEM;
    return NULL;
}

static tt_config_node *
new_node(builder *b, tt_config_node_kind kind, const yaml_event_t *event)
{
    const tti_config_place *place = place_of(b, event->start_mark);
    tt_config_node *node = place != NULL ? tti_config_node_new(b->cfg, kind, place) : NULL;
    if (node == NULL)
        return out_of_memory(b);
    node->directory = b->directory;
    return node;
}

static void
refuse(builder *b, tt_config_node *node, const char *advice, const char *what)
{
    node->is_faulty = 1;
    tti_config_fault(b->cfg, node->place, advice, "%s", what);
}

static void
refuse_decoration(builder *b,
                  tt_config_node *node,
                  const yaml_char_t *anchor,
                  const yaml_char_t *tag)
{
    if (anchor != NULL)
        refuse(b, node, "write the value out where it is needed",
               "anchors (&name) are not used here");
    if (tag != NULL)
        refuse(b, node, "leave the tag out; a value has the type of its key",
               "tags (!name) are not used here");
}

static int
is_null_word(const char *text)
{
    return strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static tt_config_node *
build_scalar(builder *b, const yaml_event_t *event)
{
    tt_config_node *node = new_node(b, TT_CONFIG_SCALAR, event);
    if (node == NULL)
        return NULL;
    node->text = tt_arena_strdup(&b->cfg->arena, (const char *)event->data.scalar.value);
    if (node->text == NULL || tti_config_expand(b->cfg, node) != TT_OK)
        return out_of_memory(b);
    const char *value = node->text;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    refuse_decoration(b, node, event->data.scalar.anchor, event->data.scalar.tag);
    if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
        refuse(b, node, "leave the \\0 out", "the text contains a NUL character");
    if (!node->quoted && !node->is_faulty && value[0] == '\0')
        refuse(b, node, "write a value, or `null` for the default", "there is no value here");
    node->is_null = !node->quoted && is_null_word(value);
    return node;
}

static tt_config_node *
build_sequence(builder *b, const yaml_event_t *start, int depth)
{
    tt_config_node *node = new_node(b, TT_CONFIG_SEQUENCE, start);
    if (node == NULL)
        return NULL;
    refuse_decoration(b, node, start->data.sequence_start.anchor, start->data.sequence_start.tag);
    yaml_event_t event;
    while (next_event(b, &event)) {
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return node;
        }
        tti_config_entry entry = {.value = build_node(b, &event, depth + 1)};
        yaml_event_delete(&event);
        if (entry.value == NULL)
            return NULL;
        if (entry.value->is_null)
            refuse(b, entry.value, "leave the element out",
                   "an element of a sequence cannot be null");
        if (tti_config_append(b->cfg, node, &entry) != TT_OK)
            return out_of_memory(b);
    }
    return NULL;
}

// The key of one entry. 0: not usable, reported (or a hard fault, see status).
static int
build_key(builder *b, const yaml_event_t *event, int depth, tti_config_entry *out)
{
    const tt_config_node *key = build_node(b, event, depth + 1);
    if (key == NULL)
        return 0;
    out->key = key->text;
    out->key_place = key->place;
    if (key->is_faulty)
        return 0;
    if (key->kind == TT_CONFIG_SCALAR && key->text[0] != '\0')
        return 1;
    tti_config_fault(b->cfg, key->place, "write `key: value`", "a key must be a word, not %s",
                     key->kind == TT_CONFIG_SCALAR ? "empty" : tti_config_kind_text(key->kind));
    return 0;
}

static void
report_duplicate(builder *b, const tti_config_entry *again, const tti_config_entry *first)
{
    char where[64] = "";
    if (b->fixed_place == NULL)
        (void)snprintf(where, sizeof where, " (first at %u:%u)", (unsigned)first->key_place->line,
                       (unsigned)first->key_place->column);
    tti_config_fault(b->cfg, again->key_place, "keep one of them", "duplicate key '%.80s'%s",
                     again->key, where);
}

static tt_config_node *
build_mapping(builder *b, const yaml_event_t *start, int depth)
{
    tt_config_node *node = new_node(b, TT_CONFIG_MAPPING, start);
    if (node == NULL)
        return NULL;
    refuse_decoration(b, node, start->data.mapping_start.anchor, start->data.mapping_start.tag);
    yaml_event_t event;
    while (next_event(b, &event)) {
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            return node;
        }
        tti_config_entry entry = {0};
        int usable = build_key(b, &event, depth, &entry);
        yaml_event_delete(&event);
        if (!next_event(b, &event))
            return NULL;
        entry.value = build_node(b, &event, depth + 1);
        yaml_event_delete(&event);
        if (entry.value == NULL)
            return NULL;
        const tti_config_entry *first = usable ? tti_config_entry_find(node, entry.key) : NULL;
        if (first != NULL)
            report_duplicate(b, &entry, first);
        else if (usable && tti_config_append(b->cfg, node, &entry) != TT_OK)
            return out_of_memory(b);
    }
    return NULL;
}

static tt_config_node *
build_alias(builder *b, const yaml_event_t *event)
{
    tt_config_node *node = new_node(b, TT_CONFIG_SCALAR, event);
    if (node != NULL)
        refuse(b, node,
               b->fixed_place != NULL ? "quote the value: a leading * means an alias in YAML"
                                      : "write the value out",
               "aliases (*name) are not used here");
    return node;
}

static tt_config_node *
build_node(builder *b, const yaml_event_t *event, int depth)
{
    if (depth > TTI_CONFIG_DEPTH_MAX) {
        tti_config_fault(b->cfg, place_of(b, event->start_mark), "a job needs about four levels",
                         "nested more than %d levels deep", TTI_CONFIG_DEPTH_MAX);
        b->status = TT_SYNTAX;
        return NULL;
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return build_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return build_sequence(b, event, depth);
    case YAML_MAPPING_START_EVENT:
        return build_mapping(b, event, depth);
    case YAML_ALIAS_EVENT:
        return build_alias(b, event);
    default:
        tt_assert_fail("libyaml's grammar allows a node here", __FILE__, __LINE__);
    }
}

// ---- documents
// -----------------------------------------------------------------------------------

// What comes after the first document: the end, or a fault.
static void
expect_end(builder *b)
{
    yaml_event_t event;
    while (next_event(b, &event)) {
        yaml_event_type_t type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT) {
            tti_config_fault(b->cfg, place_of(b, event.start_mark),
                             "keep one document a file; give several files instead",
                             "a second document starts here");
            b->status = TT_SYNTAX;
        }
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return;
    }
}

// The tree of the only document; NULL with status TT_OK when there is none.
static tt_config_node *
build_document(builder *b)
{
    tt_config_node *root = NULL;
    yaml_event_t event;
    int done = 0;
    while (!done && next_event(b, &event)) {
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT:
            break;
        case YAML_STREAM_END_EVENT:
            done = 1;
            break;
        default:
            root = build_node(b, &event, 0);
            done = 1;
            if (root != NULL)
                expect_end(b);
        }
        yaml_event_delete(&event);
    }
    return b->status == TT_OK ? root : NULL;
}

static tt_config_node *
parse(builder *b)
{
    if (!yaml_parser_initialize(&b->parser))
        return out_of_memory(b);
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)b->text, b->text_bytes);
    tt_config_node *root = build_document(b);
    yaml_parser_delete(&b->parser);
    return root;
}

// ---- sources
// -------------------------------------------------------------------------------------

// The hard fault just recorded, for the caller's err.
static tt_status
hard_fault(tt_config *cfg, tt_status status, tt_error *err)
{
    cfg->broken = 1;
    cfg->starved |= status == TT_NOMEM;
    if (status == TT_NOMEM || cfg->error_count == 0)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the configuration");
    const tti_config_error *fault = &cfg->errors[0];
    for (size_t i = 1; i < cfg->error_count; i++)
        if (cfg->errors[i].sequence > fault->sequence)
            fault = &cfg->errors[i];
    return tt_error_set(err, status, fault->place.text, fault->advice, "%s", fault->what);
}

static const char *
directory_of(tt_config *cfg, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return "";
    return tti_config_printf(cfg, "%.*s", (int)(slash - path + 1), path);
}

static tt_status
begin_source(tt_config *cfg, const char *name, builder *b, tt_error *err)
{
    *b = (builder){.cfg = cfg, .source = ++cfg->source_count};
    b->name = tt_arena_strdup(&cfg->arena, name);
    b->directory = b->name != NULL ? directory_of(cfg, b->name) : NULL;
    if (b->directory == NULL)
        return hard_fault(cfg, TT_NOMEM, err);
    if (cfg->first_name == NULL)
        cfg->first_name = b->name;
    return TT_OK;
}

static tt_status
load_source(builder *b, const char *text, size_t bytes, tt_error *err)
{
    tt_config *cfg = b->cfg;
    b->text = text;
    b->text_bytes = bytes;
    tt_config_node *root = parse(b);
    tti_config_place name = {.text = b->name, .source = b->source};
    if (b->status == TT_OK && root == NULL) {
        tti_config_fault(cfg, &name, "describe a job in it", "there is nothing in this file");
        b->status = TT_SYNTAX;
    } else if (b->status == TT_OK && root->kind != TT_CONFIG_MAPPING) {
        if (!root->is_faulty)
            tti_config_fault(cfg, root->place, "write `key: value` lines",
                             "expected a mapping of keys, found %s",
                             tti_config_kind_text(root->kind));
        b->status = TT_SYNTAX;
    }
    if (b->status == TT_OK && cfg->root == NULL) {
        cfg->root = tti_config_node_new(cfg, TT_CONFIG_MAPPING, root->place);
        b->status = cfg->root != NULL ? TT_OK : TT_NOMEM;
    }
    if (b->status == TT_OK)
        b->status = tti_config_merge(cfg, cfg->root, root);
    return b->status == TT_OK ? TT_OK : hard_fault(cfg, b->status, err);
}

tt_status
tt_config_load_text(tt_config *cfg, const char *name, const char *text, tt_error *err)
{
    builder b;
    TT_TRY(begin_source(cfg, name, &b, err));
    return load_source(&b, text, strlen(text), err);
}

static tt_status
unreadable(builder *b, int error_number, const char *what, tt_error *err)
{
    tti_config_place name = {.text = b->name, .source = b->source};
    int missing = error_number == ENOENT || error_number == ENOTDIR;
    const char *advice = missing ? "check the path" : "check that it is a file you may read";
    if (error_number == EFBIG)
        advice = "a job file is a few kilobytes of text; is this the data?";
    tti_config_fault(b->cfg, &name, advice, "%s: %s", what,
                     missing ? "there is no such file" : tt_errno_text(error_number));
    return hard_fault(b->cfg, missing ? TT_NOTFOUND : TT_IO, err);
}

tt_status
tt_config_load_file(tt_config *cfg, const char *path, tt_error *err)
{
    builder b;
    TT_TRY(begin_source(cfg, path, &b, err));
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return unreadable(&b, errno, "cannot open", err);
    char *text = tt_mem_alloc(TTI_CONFIG_FILE_BYTES_MAX + 1);
    tt_status status;
    if (text == NULL)
        status = hard_fault(cfg, TT_NOMEM, err);
    else {
        size_t bytes = fread(text, 1, TTI_CONFIG_FILE_BYTES_MAX + 1, file);
        if (ferror(file))
            status = unreadable(&b, errno, "cannot read", err);
        else if (bytes > TTI_CONFIG_FILE_BYTES_MAX)
            status = unreadable(&b, EFBIG, "will not read", err);
        else
            status = load_source(&b, text, bytes, err);
    }
    tt_mem_free(text);
    (void)fclose(file);
    return status;
}

// ---- overrides
// -----------------------------------------------------------------------------------

static int
is_dotted_path(const char *path)
{
    size_t length = strlen(path);
    return length > 0 && length < TTI_CONFIG_PATH_MAX && path[0] != '.' &&
           path[length - 1] != '.' && strstr(path, "..") == NULL && strpbrk(path, " \t\n") == NULL;
}

// The mapping that holds the last word of `path`, made where it is missing.
static tt_status
parent_mapping(builder *b, const char *path, tt_config_node **out, const char **last)
{
    tt_config *cfg = b->cfg;
    tt_config_node *node = cfg->root;
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        tti_config_entry made = {.key_place = b->fixed_place};
        made.key = tti_config_printf(cfg, "%.*s", (int)(dot - path), path);
        if (made.key == NULL)
            return TT_NOMEM;
        tti_config_entry *entry = tti_config_entry_find(node, made.key);
        if (entry == NULL) {
            made.value = tti_config_node_new(cfg, TT_CONFIG_MAPPING, b->fixed_place);
            if (made.value == NULL)
                return TT_NOMEM;
            TT_TRY(tti_config_append(cfg, node, &made));
            entry = &node->entries[node->count - 1];
        }
        if (entry->value->kind != TT_CONFIG_MAPPING) {
            tti_config_fault(cfg, b->fixed_place, "give the whole value instead",
                             "'%s' is %s (%s), nothing can be set inside it", made.key,
                             tti_config_kind_text(entry->value->kind), entry->value->place->text);
            return TT_SYNTAX;
        }
        node = entry->value;
    }
    *out = node;
    *last = path;
    return TT_OK;
}

static tt_status
apply_override(builder *b, const char *path, tt_config_node *value)
{
    tt_config *cfg = b->cfg;
    if (cfg->root == NULL)
        cfg->root = tti_config_node_new(cfg, TT_CONFIG_MAPPING, b->fixed_place);
    if (cfg->root == NULL)
        return TT_NOMEM;
    tt_config_node *parent;
    tti_config_entry entry = {.key_place = b->fixed_place, .value = value};
    TT_TRY(parent_mapping(b, path, &parent, &entry.key));
    tti_config_entry_remove(parent, entry.key);
    // Merging a mapping of this one entry strips nulls inside the value, and a null value itself.
    tt_config_node *wrapper = tti_config_node_new(cfg, TT_CONFIG_MAPPING, b->fixed_place);
    if (wrapper == NULL)
        return TT_NOMEM;
    TT_TRY(tti_config_append(cfg, wrapper, &entry));
    return tti_config_merge(cfg, parent, wrapper);
}

static tt_status
refuse_override(builder *b, const char *advice, const char *what, tt_error *err)
{
    tti_config_fault(b->cfg, b->fixed_place, advice, "%s", what);
    return hard_fault(b->cfg, TT_SYNTAX, err);
}

tt_status
tt_config_override(tt_config *cfg, const char *assignment, tt_error *err)
{
    builder b;
    char *name = tti_config_printf(cfg, "--set %s", assignment);
    tti_config_place *place = tt_arena_alloc(&cfg->arena, sizeof *place);
    char *path = tt_arena_strdup(&cfg->arena, assignment);
    if (name == NULL || place == NULL || path == NULL)
        return hard_fault(cfg, TT_NOMEM, err);
    *place = (tti_config_place){.text = name, .source = cfg->source_count + 1};
    b = (builder){.cfg = cfg,
                  .source = ++cfg->source_count,
                  .name = name,
                  .directory = "",
                  .fixed_place = place};
    char *equals = strchr(path, '=');
    if (equals != NULL)
        *equals = '\0';
    if (equals == NULL || !is_dotted_path(path))
        return refuse_override(&b, "for example --set optimizer.learning_rate=0.3",
                               "expected KEY=VALUE with a dotted key", err);
    b.text = equals + 1;
    b.text_bytes = strlen(b.text);
    tt_config_node *value = parse(&b);
    if (b.status != TT_OK)
        return hard_fault(cfg, b.status, err);
    if (value == NULL)
        return refuse_override(&b, "give one, or `null` for the default", "there is no value", err);
    if (value->is_faulty)
        return hard_fault(cfg, TT_SYNTAX, err);
    if (value->kind != TT_CONFIG_SCALAR && b.text[strspn(b.text, " ")] != '{' &&
        b.text[strspn(b.text, " ")] != '[')
        return refuse_override(&b, "write {key: value} or [1, 2]",
                               "the value is not a scalar or a flow collection", err);
    b.status = apply_override(&b, path, value);
    return b.status == TT_OK ? TT_OK : hard_fault(cfg, b.status, err);
}
