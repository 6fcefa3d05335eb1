// The registry: the built-in knobs and those of loaded plugins.
#include "knobs_internal.h"
#include "tt/core_plugin.h"
#include <string.h>

// The structs of interface 1.0 end with these fields: no plugin has smaller ones.
enum {
    PLUGIN_BYTES_LEAST = offsetof(tt_knob_plugin, build) + sizeof(const char *),
    KNOB_BYTES_LEAST = offsetof(tt_knob, reserved) + sizeof(uint32_t)
};

struct loaded {
    tt_plugin object; // zero for the built-in knobs
    const char *build;
};

struct entry {
    tt_knob knob; // our copy; its strings stay in the plugin
    uint32_t loaded_index;
};

struct tt_knob_registry {
    uint32_t count, loaded_count;
    struct entry entry[TT_KNOBS_MAX];
    struct loaded loaded[TT_KNOBS_MAX + 1];
};

// Checks knob `index` of a plugin and puts it behind the registered ones without counting it yet.
static tt_status
stage(tt_knob_registry *registry,
      const tt_knob_plugin *plugin,
      uint32_t index,
      const char *where,
      tt_error *err)
{
    struct entry *entry = &registry->entry[registry->count + index];
    if (plugin->knobs[index] == NULL ||
        !tt_plugin_copy_struct(&entry->knob, sizeof entry->knob, plugin->knobs[index],
                               KNOB_BYTES_LEAST))
        return tt_error_set(err, TT_INVALID, where, "set .struct_size = sizeof(tt_knob)",
                            "knob %u of this plugin has no valid struct_size", index + 1);
    TT_TRY(tti_knob_check(&entry->knob, where, err));
    for (uint32_t i = 0; i < registry->count + index; i++)
        if (strcmp(registry->entry[i].knob.id, entry->knob.id) == 0) {
            const char *origin = i < registry->count ? tt_knob_registry_origin(registry, i) : where;
            return tt_error_set(err, TT_EXISTS, where, "give it another id",
                                "knob '%s' exists already (%s)", entry->knob.id, origin);
        }
    entry->loaded_index = registry->loaded_count;
    return TT_OK;
}

static tt_status
add_plugin(tt_knob_registry *registry,
           const tt_knob_plugin *theirs,
           const char *where,
           tt_error *err)
{
    tt_knob_plugin plugin;
    if (theirs == NULL ||
        !tt_plugin_copy_struct(&plugin, sizeof plugin, theirs, PLUGIN_BYTES_LEAST) ||
        plugin.abi_major != TT_KNOB_ABI_MAJOR || plugin.knob_size < KNOB_BYTES_LEAST ||
        plugin.knobs == NULL || plugin.knob_count == 0)
        return tt_error_set(err, TT_INVALID, where, "write it with the macro TT_KNOB_PLUGIN",
                            "the plugin's table does not follow tt/knob.h");
    if (plugin.knob_count > TT_KNOBS_MAX - registry->count)
        return tt_error_set(err, TT_RANGE, where, "load fewer plugins", "more than %d knobs in all",
                            TT_KNOBS_MAX);
    for (uint32_t i = 0; i < plugin.knob_count; i++)
        TT_TRY(stage(registry, &plugin, i, where, err));
    registry->loaded[registry->loaded_count].build = plugin.build != NULL ? plugin.build : "";
    registry->loaded_count++;
    registry->count += plugin.knob_count;
    return TT_OK;
}

tt_status
tt_knob_registry_open(tt_knob_registry **out, tt_error *err)
{
    *out = NULL;
    tt_knob_registry *registry = tt_mem_zalloc(1, sizeof *registry);
    if (registry == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the list of knobs");
    tt_status status = add_plugin(registry, tti_knob_builtins(), "built in", err);
    if (status != TT_OK) {
        tt_knob_registry_close(registry);
        return status;
    }
    registry->loaded[0].build = "";
    *out = registry;
    return TT_OK;
}

tt_status
tt_knob_registry_load(tt_knob_registry *registry, const char *path, tt_error *err)
{
    static const tt_plugin_kind kind = {.noun = "knob",
                                        .stem = "tt_knob_plugin_abi",
                                        .major = TT_KNOB_ABI_MAJOR,
                                        .header = "tt/knob.h",
                                        .macro = "TT_KNOB_PLUGIN(&knob)",
                                        .example = "knobs/template"};
    tt_plugin object;
    const tt_knob_plugin *(*function)(void);
    TT_TRY(tt_plugin_open(&kind, path, &object, err));
    memcpy(&function, &object.entry, sizeof object.entry);
    tt_status status = add_plugin(registry, function(), path, err);
    if (status != TT_OK) {
        tt_plugin_close(&object);
        return status;
    }
    registry->loaded[registry->loaded_count - 1].object = object;
    return TT_OK;
}

uint32_t
tt_knob_registry_count(const tt_knob_registry *registry)
{
    return registry->count;
}

const tt_knob *
tt_knob_registry_at(const tt_knob_registry *registry, uint32_t index)
{
    return index < registry->count ? &registry->entry[index].knob : NULL;
}

const tt_knob *
tt_knob_registry_find(const tt_knob_registry *registry, const char *id)
{
    for (uint32_t i = 0; i < registry->count; i++)
        if (strcmp(registry->entry[i].knob.id, id) == 0)
            return &registry->entry[i].knob;
    return NULL;
}

const char *
tt_knob_registry_origin(const tt_knob_registry *registry, uint32_t index)
{
    TT_ASSERT(index < registry->count);
    const char *path = registry->loaded[registry->entry[index].loaded_index].object.path;
    return path != NULL ? path : "built in";
}

const char *
tt_knob_registry_build(const tt_knob_registry *registry, uint32_t index)
{
    TT_ASSERT(index < registry->count);
    return registry->loaded[registry->entry[index].loaded_index].build;
}

void
tt_knob_registry_close(tt_knob_registry *registry)
{
    if (registry == NULL)
        return;
    for (uint32_t i = registry->loaded_count; i-- > 0;)
        tt_plugin_close(&registry->loaded[i].object);
    tt_mem_free(registry);
}
