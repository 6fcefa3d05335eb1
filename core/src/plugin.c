// Opening plug-ins: see tt/core_plugin.h.
#include "tt/core_mem.h"
#include "tt/core_plugin.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OTHER_MAJORS_TRIED = 32, SYMBOL_BYTES_MAX = 64 };

int
tt_plugin_copy_struct(void *ours, size_t our_size, const void *theirs, size_t least)
{
    uint32_t their_size;
    memcpy(&their_size, theirs, sizeof their_size);
    memset(ours, 0, our_size);
    if (their_size < least)
        return 0;
    memcpy(ours, theirs, TT_MIN(our_size, (size_t)their_size));
    uint32_t size = (uint32_t)our_size;
    memcpy(ours, &size, sizeof size);
    return 1;
}

static tt_status
open_object(const tt_plugin_kind *kind, const char *path, tt_plugin *out, tt_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return tt_error_set(err, errno == ENOENT || errno == ENOTDIR ? TT_NOTFOUND : TT_IO, path,
                            "check the path (it is relative to the file that names it)",
                            "cannot open the %s plugin: %s", kind->noun, tt_errno_text(errno));
    if (!S_ISREG(info.st_mode))
        return tt_error_set(err, TT_INVALID, path, NULL, "is not a file");
    // An absolute path, so that dlopen opens this file and does not search for its name.
    char resolved[PATH_MAX];
    if (realpath(path, resolved) == NULL)
        return tt_error_set(err, TT_IO, path, NULL, "cannot resolve the path: %s",
                            tt_errno_text(errno));
    out->path = tt_mem_strdup(path);
    if (out->path == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory to load the plugin");
    out->handle = dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
    if (out->handle == NULL) {
        const char *fault = dlerror();
        char advice[160];
        (void)snprintf(advice, sizeof advice, "build it as %s does", kind->example);
        return tt_error_set(err, TT_INVALID, path, advice, "not a loadable %s plugin: %s",
                            kind->noun, fault != NULL ? fault : "?");
    }
    return TT_OK;
}

static void *
entry_of(const tt_plugin_kind *kind, void *handle, unsigned major)
{
    char symbol[SYMBOL_BYTES_MAX];
    (void)snprintf(symbol, sizeof symbol, "%s%u", kind->stem, major);
    return dlsym(handle, symbol);
}

static tt_status
find_entry(const tt_plugin_kind *kind, tt_plugin *plugin, tt_error *err)
{
    char advice[160];
    plugin->entry = entry_of(kind, plugin->handle, kind->major);
    if (plugin->entry != NULL)
        return TT_OK;
    for (unsigned major = 0; major < OTHER_MAJORS_TRIED; major++) {
        if (entry_of(kind, plugin->handle, major) == NULL)
            continue;
        (void)snprintf(advice, sizeof advice, "compile it with this trimtab's %s", kind->header);
        return tt_error_set(err, TT_INVALID, plugin->path, advice,
                            "speaks version %u of the %s interface, this trimtab speaks %u", major,
                            kind->noun, kind->major);
    }
    (void)snprintf(advice, sizeof advice, "a plugin ends with %s", kind->macro);
    return tt_error_set(err, TT_INVALID, plugin->path, advice,
                        "not a %s plugin: it does not export %s%u", kind->noun, kind->stem,
                        kind->major);
}

tt_status
tt_plugin_open(const tt_plugin_kind *kind, const char *path, tt_plugin *out, tt_error *err)
{
    *out = (tt_plugin){0};
    tt_status status = open_object(kind, path, out, err);
    if (status == TT_OK)
        status = find_entry(kind, out, err);
    if (status != TT_OK)
        tt_plugin_close(out);
    return status;
}

void
tt_plugin_close(tt_plugin *plugin)
{
    if (plugin->handle != NULL)
        (void)dlclose(plugin->handle);
    tt_mem_free(plugin->path);
    *plugin = (tt_plugin){0};
}
