// The curve families of loaded plug-ins: see tt/estimator_curves.h.
#include "est_family.h"
#include "tt/core.h"
#include "tt/core_plugin.h"
#include "tt/estimator_curves.h"
#include <string.h>

// The structs of interface 1.0 end with these fields: no plug-in has smaller ones.
enum {
    PLUGIN_BYTES_LEAST = offsetof(tt_curve_plugin, build) + sizeof(const char *),
    CURVE_BYTES_LEAST = offsetof(tt_curve, floor) + sizeof(double (*)(const double *))
};

struct tt_curves {
    tti_families families;             // all names there are, and where they came from
    tt_curve curve[TT_EST_CURVES_MAX]; // our copies; strings and functions stay in the plug-in
    const tt_curve *list[TT_EST_CURVES_MAX]; // to them
    const char *build[TT_EST_CURVES_MAX];
    tt_plugin object[TT_EST_CURVES_MAX]; // each brings a family at least
    uint32_t object_count;
};

tt_status
tt_curves_open(tt_curves **out, tt_error *err)
{
    *out = NULL;
    tt_curves *curves = tt_mem_zalloc(1, sizeof *curves);
    if (curves == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the list of curves");
    tti_families_init(&curves->families);
    for (uint32_t c = 0; c < TT_EST_CURVES_MAX; c++)
        curves->list[c] = &curves->curve[c];
    *out = curves;
    return TT_OK;
}

static tt_status
add_curve(tt_curves *curves,
          const tt_curve_plugin *plugin,
          uint32_t index,
          const char *where,
          tt_error *err)
{
    const uint32_t place = tt_curves_count(curves);
    if (plugin->curves[index] == NULL ||
        !tt_plugin_copy_struct(&curves->curve[place], sizeof *curves->curve, plugin->curves[index],
                               CURVE_BYTES_LEAST))
        return tt_error_set(err, TT_INVALID, where, "set .struct_size = sizeof(tt_curve)",
                            "curve %u of this plugin has no valid struct_size", index + 1);
    curves->build[place] = plugin->build != NULL ? plugin->build : "";
    return tti_families_add(&curves->families, &curves->curve[place], where, err);
}

static tt_status
add_plugin(tt_curves *curves, const tt_curve_plugin *theirs, const char *where, tt_error *err)
{
    tt_curve_plugin plugin;
    if (theirs == NULL ||
        !tt_plugin_copy_struct(&plugin, sizeof plugin, theirs, PLUGIN_BYTES_LEAST) ||
        plugin.abi_major != TT_CURVE_ABI_MAJOR || plugin.curve_size < CURVE_BYTES_LEAST ||
        plugin.curves == NULL || plugin.curve_count == 0)
        return tt_error_set(err, TT_INVALID, where, "write it with the macro TT_CURVE_PLUGIN",
                            "the plugin's table does not follow tt/curve.h");
    if (plugin.curve_count > TT_EST_CURVES_MAX - tt_curves_count(curves))
        return tt_error_set(err, TT_RANGE, where, "load fewer plugins",
                            "more than %d curves from plugins", TT_EST_CURVES_MAX);
    const uint32_t before = curves->families.count;
    tt_status status = TT_OK;
    for (uint32_t i = 0; i < plugin.curve_count && status == TT_OK; i++)
        status = add_curve(curves, &plugin, i, where, err);
    if (status != TT_OK)
        curves->families.count = before;
    return status;
}

tt_status
tt_curves_load(tt_curves *curves, const char *path, tt_error *err)
{
    static const tt_plugin_kind kind = {.noun = "curve",
                                        .stem = "tt_curve_plugin_abi",
                                        .major = TT_CURVE_ABI_MAJOR,
                                        .header = "tt/curve.h",
                                        .macro = "TT_CURVE_PLUGIN(&curve)",
                                        .example = "estimator/template"};
    tt_plugin object;
    const tt_curve_plugin *(*function)(void);
    TT_TRY(tt_plugin_open(&kind, path, &object, err));
    memcpy(&function, &object.entry, sizeof object.entry);
    const tt_status status = add_plugin(curves, function(), object.path, err);
    if (status == TT_OK)
        curves->object[curves->object_count++] = object;
    else
        tt_plugin_close(&object);
    return status;
}

uint32_t
tt_curves_count(const tt_curves *curves)
{
    return curves->families.count - TTI_FAMILIES;
}

const tt_curve *const *
tt_curves_list(const tt_curves *curves)
{
    return curves->list;
}

const char *
tt_curves_origin(const tt_curves *curves, uint32_t index)
{
    TT_ASSERT(index < tt_curves_count(curves));
    return curves->families.origin[TTI_FAMILIES + index];
}

const char *
tt_curves_build(const tt_curves *curves, uint32_t index)
{
    TT_ASSERT(index < tt_curves_count(curves));
    return curves->build[index];
}

void
tt_curves_close(tt_curves *curves)
{
    if (curves == NULL)
        return;
    while (curves->object_count > 0)
        tt_plugin_close(&curves->object[--curves->object_count]);
    tt_mem_free(curves);
}
