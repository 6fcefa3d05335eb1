// The families of an estimator: the built-in ones, those of plug-ins behind them, and one way to
// call either.
#include "est_curve.h"
#include "est_family.h"
#include "tt/core.h"
#include <math.h>
#include <string.h>

enum { NAME_LENGTH_MAX = 40 };
static const double PRIOR_MAX = 10;

// A new built-in family is one line here (and TT_EST_FAMILIES_MAX).
static const tti_family *const builtin[] = {
    &tti_family_hogwild,        &tti_family_expfloor,      &tti_family_sublinear,
    &tti_family_power,          &tti_family_expfloor_late, &tti_family_power_late,
    &tti_family_sublinear_late, &tti_family_steep_late,    &tti_family_slaq,
    &tti_family_locallin,       &tti_family_hwonly,
};
_Static_assert(TT_COUNT_OF(builtin) == TTI_FAMILIES, "TT_EST_FAMILIES_MAX counts the table");

void
tti_families_init(tti_families *families)
{
    memset(families, 0, sizeof *families);
    for (uint32_t f = 0; f < TTI_FAMILIES; f++) {
        families->list[f] = builtin[f];
        families->origin[f] = "built in";
    }
    families->count = TTI_FAMILIES;
}

static const char *
fault_of(const tt_curve *curve)
{
    if (curve->name == NULL)
        return "has no name";
    if (!tt_text_is_word(curve->name, 0))
        return "the name must be [a-z][a-z0-9_]*";
    if (strlen(curve->name) > NAME_LENGTH_MAX)
        return "the name is longer than 40 characters";
    if (curve->help == NULL || curve->help[0] == '\0')
        return "has no help line";
    if (strchr(curve->help, '\n') != NULL)
        return "help must be one line";
    if (curve->parameters < 1 || curve->parameters > TT_CURVE_PARAMETERS_MAX)
        return "parameters must be 1 to 6";
    if (!(curve->prior > 0) || !(curve->prior <= PRIOR_MAX))
        return "prior must be above 0 and at most 10";
    if (curve->guess == NULL || curve->loss == NULL)
        return "needs both guess and loss";
    return NULL;
}

tt_status
tti_families_add(tti_families *families, const tt_curve *curve, const char *origin, tt_error *err)
{
    const char *fault = fault_of(curve);
    if (fault != NULL)
        return tt_error_set(err, TT_INVALID, origin,
                            "tell the author of the curve (rules: tt/curve.h)", "curve '%.*s': %s",
                            NAME_LENGTH_MAX, curve->name != NULL ? curve->name : "(no name)",
                            fault);
    for (uint32_t f = 0; f < families->count; f++)
        if (strcmp(families->list[f]->name, curve->name) == 0)
            return tt_error_set(err, TT_EXISTS, origin, "give it another name",
                                "curve '%s' exists already (%s)", curve->name, families->origin[f]);
    if (families->count == TT_EST_FAMILIES_MAX)
        return tt_error_set(err, TT_RANGE, origin, "load fewer plugins",
                            "more than %d curves from plugins", TT_EST_CURVES_MAX);
    tti_family *family = &families->curves[families->count - TTI_FAMILIES];
    *family = (tti_family){.name = curve->name, .prior = curve->prior, .curve = curve};
    families->list[families->count] = family;
    families->origin[families->count++] = origin;
    tti_curve_prepare();
    return TT_OK;
}

// FNV-1a over the names with the zero behind each, so that where one ends counts.
uint64_t
tti_families_print(const tti_families *families)
{
    uint64_t print = 14695981039346656037u;
    for (uint32_t f = 0; f < families->count; f++) {
        const char *c = families->list[f]->name;
        do
            print = (print ^ (uint8_t)*c) * 1099511628211u;
        while (*c++ != '\0');
    }
    return print;
}

// --- calls

void
tti_family_fit(const tti_family *family, const tti_curve_data *data, uint32_t count, tti_fit *out)
{
    if (family->curve)
        tti_curve_fit_points(family->curve, data, count, out);
    else
        family->fit(data, count, out);
}

double
tti_family_predict(const tti_family *family, const tti_fit *fit, double clock, double *sd)
{
    return family->curve ? tti_curve_predict(family->curve, fit, clock, sd)
                         : family->predict(fit, clock, sd);
}

void
tti_family_inverse(
    const tti_family *family, const tti_fit *fit, double now, double target, tti_left *out)
{
    if (family->curve)
        tti_curve_inverse(family->curve, fit, now, target, out);
    else
        family->inverse(fit, now, target, out);
}

double
tti_family_log_predictive(
    const tti_family *family, const tti_fit *fit, double clock, double y, double variance)
{
    return family->curve ? tti_default_log_predictive(family, fit, clock, y, variance)
                         : family->log_predictive(fit, clock, y, variance);
}

double
tti_family_floor(const tti_family *family, const tti_fit *fit)
{
    if (!family->curve)
        return family->floor(fit);
    return family->curve->floor ? family->curve->floor(fit->curve.p) : NAN;
}
