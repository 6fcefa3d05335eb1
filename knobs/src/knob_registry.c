// The registry: the built-in knobs and those of loaded plugins.
#include "knobs_internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The structs of interface 1.0 end with these fields: no plugin has smaller ones.
enum {
    PLUGIN_BYTES_LEAST = offsetof(tt_knob_plugin, build) + sizeof(const char *),
    KNOB_BYTES_LEAST = offsetof(tt_knob, reserved) + sizeof(uint32_t),
    OTHER_MAJORS_TRIED = 32
};

struct loaded {
    void *handle; // NULL for the built-in knobs
    char *path;
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
        !tti_knob_copy_struct(&entry->knob, sizeof entry->knob, plugin->knobs[index],
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
        !tti_knob_copy_struct(&plugin, sizeof plugin, theirs, PLUGIN_BYTES_LEAST) ||
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

static tt_status
open_object(const char *path, char **full_path, void **handle, tt_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return tt_error_set(err, errno == ENOENT || errno == ENOTDIR ? TT_NOTFOUND : TT_IO, path,
                            "check the path (it is relative to the file that names it)",
                            "cannot open the knob plugin: %s", tt_errno_text(errno));
    if (!S_ISREG(info.st_mode))
        return tt_error_set(err, TT_INVALID, path, NULL, "is not a file");
    // An absolute path, so that dlopen opens this file and does not search for its name.
    char resolved[PATH_MAX];
    if (realpath(path, resolved) == NULL)
        return tt_error_set(err, TT_IO, path, NULL, "cannot resolve the path: %s",
                            tt_errno_text(errno));
    *full_path = tt_mem_strdup(path);
    if (*full_path == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to load the plugin");
    *handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        const char *fault = dlerror();
        return tt_error_set(err, TT_INVALID, path, "build it as knobs/template does",
                            "not a loadable knob plugin: %s", fault != NULL ? fault : "?");
    }
    return TT_OK;
}

typedef const tt_knob_plugin *(*plugin_function)(void);

static tt_status
find_entry(void *handle, const char *path, plugin_function *out, tt_error *err)
{
    void *symbol = dlsym(handle, TT_KNOB_SYMBOL);
    if (symbol != NULL) {
        // POSIX promises that this conversion works; ISO C has no cast for it.
        memcpy(out, &symbol, sizeof symbol);
        return TT_OK;
    }
    for (unsigned major = 0; major < OTHER_MAJORS_TRIED; major++) {
        char name[64];
        (void)snprintf(name, sizeof name, "tt_knob_plugin_abi%u", major);
        if (dlsym(handle, name) != NULL)
            return tt_error_set(err, TT_INVALID, path, "compile it with this trimtab's tt/knob.h",
                                "speaks version %u of the knob interface, this trimtab speaks %d",
                                major, TT_KNOB_ABI_MAJOR);
    }
    return tt_error_set(err, TT_INVALID, path, "a plugin ends with TT_KNOB_PLUGIN(&knob)",
                        "not a knob plugin: it does not export %s", TT_KNOB_SYMBOL);
}

tt_status
tt_knob_registry_load(tt_knob_registry *registry, const char *path, tt_error *err)
{
    void *handle = NULL;
    char *kept_path = NULL;
    plugin_function function = NULL;
    tt_status status = open_object(path, &kept_path, &handle, err);
    if (status == TT_OK)
        status = find_entry(handle, path, &function, err);
    if (status == TT_OK)
        status = add_plugin(registry, function(), path, err);
    if (status != TT_OK) {
        if (handle != NULL)
            (void)dlclose(handle);
        tt_mem_free(kept_path);
        return status;
    }
    struct loaded *loaded = &registry->loaded[registry->loaded_count - 1];
    loaded->handle = handle;
    loaded->path = kept_path;
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
    const char *path = registry->loaded[registry->entry[index].loaded_index].path;
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
    for (uint32_t i = registry->loaded_count; i-- > 0;) {
        if (registry->loaded[i].handle != NULL)
            (void)dlclose(registry->loaded[i].handle);
        tt_mem_free(registry->loaded[i].path);
    }
    tt_mem_free(registry);
}
