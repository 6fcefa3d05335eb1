// A row is drawn from the generator stream of its own rank; features, fields and the calibration
// sample have ranks above all rows'.
#include "clicklog_rows.h"
#include "data_internal.h"
#include <math.h>
#include <string.h>

enum rank_space { RANK_ROW = 0, RANK_FEATURE, RANK_FIELD, RANK_SAMPLE };

static void
open_stream(tt_rng *rng, uint64_t seed, enum rank_space space, uint64_t rank)
{
    tt_rng_init(rng, seed, TT_RNG_GENERATOR, (uint64_t)space << 32 | rank);
}

static double
sigma(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

// Sum of four uniforms, centred and scaled: bounded, close to normal, and one Philox block a
// feature, so that no table of weights is needed.
static double
true_weight(uint64_t seed, uint32_t feature, double deviation)
{
    tt_rng rng;
    open_stream(&rng, seed, RANK_FEATURE, feature);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)tt_rng_u32(&rng) * 0x1p-32;
    return (sum - 2.0) * sqrt(3.0) * deviation; // the sum has variance 4/12
}

static double
deviation_of(uint32_t field_count)
{
    return 1.5 / sqrt(field_count); // z then has a standard deviation of about 1.5
}

static uint32_t
fields_of(const tt_clicklog_spec *spec)
{
    return spec->field_count > 0 ? spec->field_count : 37;
}

double
tt_clicklog_weight(const tt_clicklog_spec *spec, uint32_t feature)
{
    // Numeric fields come first and are one feature each; their values have a mean of 5.
    double scale = feature < spec->numeric_field_count ? 0.2 : 1.0;
    return true_weight(spec->seed, feature, scale * deviation_of(fields_of(spec)));
}

static tt_status
check_spec(const tt_clicklog_spec *spec, tt_error *err)
{
    const char *place = "generate";
    if (spec->row_count == 0 || spec->row_count > UINT32_MAX - 1)
        return tt_error_set(err, TT_RANGE, place, NULL,
                            "the number of rows must be from 1 to 4,294,967,294, not %llu",
                            (unsigned long long)spec->row_count);
    if (spec->first_row > UINT32_MAX - 1 - spec->row_count)
        return tt_error_set(err, TT_RANGE, place, NULL,
                            "first row and rows together must be at most 4,294,967,294, not %llu",
                            (unsigned long long)(spec->first_row + spec->row_count));
    if (spec->field_count < 1 || spec->field_count > TTI_FIELDS_MAX)
        return tt_error_set(err, TT_RANGE, place, NULL,
                            "the number of fields must be from 1 to %d, not %u", TTI_FIELDS_MAX,
                            spec->field_count);
    if (spec->numeric_field_count > spec->field_count)
        return tt_error_set(err, TT_RANGE, place, NULL,
                            "the numeric fields must be at most all %u fields, not %u",
                            spec->field_count, spec->numeric_field_count);
    if (spec->feature_count < spec->field_count || spec->feature_count > TTI_FEATURES_MAX)
        return tt_error_set(err, TT_RANGE, place, "every field needs a feature of its own",
                            "the number of features must be from %u (the fields) to %u, not %u",
                            spec->field_count, TTI_FEATURES_MAX, spec->feature_count);
    if (!(spec->label_noise >= 0.0 && spec->label_noise < 0.5))
        return tt_error_set(err, TT_RANGE, place, NULL, "label noise must be in [0, 0.5), not %g",
                            spec->label_noise);
    if (!(spec->positive_rate > spec->label_noise && spec->positive_rate < 1.0 - spec->label_noise))
        return tt_error_set(err, TT_RANGE, place,
                            "flipped labels alone make a share as large as the label noise",
                            "the positive rate must be between %g and %g, not %g",
                            spec->label_noise, 1.0 - spec->label_noise, spec->positive_rate);
    return TT_OK;
}

static uint32_t
greatest_common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// A stride near the golden section of the width, so that neighbouring ranks land far apart.
static uint32_t
choose_stride(uint32_t width)
{
    uint32_t stride = (uint32_t)(0.6180339887498949 * width) | 1;
    while (greatest_common_divisor(stride, width) != 1)
        stride += 2; // ends at width + 1 or width + 2 at the latest; both give a coprime
    return stride;
}

// Numeric fields take one feature each; the others share the rest, their widths spread evenly over
// three orders of magnitude (in the logarithm).
static void
lay_out_fields(tti_clicklog *clicks)
{
    const tt_clicklog_spec *spec = &clicks->spec;
    double share[TTI_FIELDS_MAX], total = 0, before = 0;
    uint32_t first = spec->numeric_field_count, count = spec->field_count;
    for (uint32_t f = first; f < count; f++) {
        tt_rng rng;
        open_stream(&rng, spec->seed, RANK_FIELD, f);
        total += share[f] = pow(1000.0, tt_rng_uniform(&rng));
    }
    double spare = spec->feature_count - count;
    uint32_t base = 0;
    for (uint32_t f = 0; f < count; f++) {
        uint32_t width = 1;
        if (f >= first) {
            uint32_t begin = (uint32_t)(spare * (before / total));
            before += share[f];
            uint32_t end = f + 1 < count ? (uint32_t)(spare * (before / total)) : (uint32_t)spare;
            width += end - begin;
        }
        clicks->field[f] =
            (tti_clicklog_field){base, width, choose_stride(width), log(1.0 + width)};
        base += width;
    }
    TT_ASSERT(first == count || base == spec->feature_count);
}

// Draws the features and values of a row, and z without the intercept.
static double
draw_features(const tti_clicklog *clicks, tt_rng *rng, tti_clicklog_row *row)
{
    const tt_clicklog_spec *spec = &clicks->spec;
    double z = 0;
    for (uint32_t f = 0; f < spec->field_count; f++) {
        const tti_clicklog_field *field = &clicks->field[f];
        double u = (double)tt_rng_u32(rng) * 0x1p-32;
        if (f < spec->numeric_field_count) {
            uint32_t hundredths = 1 + (uint32_t)(u * 999);
            row->index[f] = field->base;
            row->hundredths[f] = hundredths;
            z += true_weight(spec->seed, field->base, 0.2 * clicks->weight_deviation) * hundredths /
                 100;
            continue;
        }
        // floor(exp(u log(width + 1))) is r with probability log((r + 1) / r) / log(width + 1),
        // about 1 / r: Zipf's law.
        uint32_t rank = (uint32_t)exp(u * field->log_width);
        rank = TT_MIN(rank, field->width) - 1;
        row->index[f] = field->base + (uint32_t)((uint64_t)rank * field->stride % field->width);
        row->hundredths[f] = 100;
        z += true_weight(spec->seed, row->index[f], clicks->weight_deviation);
    }
    return z;
}

static double
with_noise(const tti_clicklog *clicks, double p)
{
    return (1.0 - clicks->spec.label_noise) * p + clicks->spec.label_noise * (1.0 - p);
}

// The intercept that gives the wanted share of positives over a sample of rows.
static void
find_intercept(tti_clicklog *clicks)
{
    enum { SAMPLE = 4096, HALVINGS = 50 };
    double z[SAMPLE], low = -60, high = 60;
    tti_clicklog_row row;
    for (uint32_t i = 0; i < SAMPLE; i++) {
        tt_rng rng;
        open_stream(&rng, clicks->spec.seed, RANK_SAMPLE, i);
        z[i] = draw_features(clicks, &rng, &row);
    }
    for (int halving = 0; halving < HALVINGS; halving++) {
        double middle = (low + high) / 2, sum = 0;
        for (uint32_t i = 0; i < SAMPLE; i++)
            sum += with_noise(clicks, sigma(middle + z[i]));
        if (sum / SAMPLE < clicks->spec.positive_rate)
            low = middle;
        else
            high = middle;
    }
    clicks->intercept = (low + high) / 2;
}

tt_status
tti_clicklog_init(tti_clicklog *clicks, const tt_clicklog_spec *spec, tt_error *err)
{
    clicks->spec = *spec;
    clicks->spec.field_count = fields_of(spec);
    if (spec->positive_rate == 0.0)
        clicks->spec.positive_rate = 0.25;
    TT_TRY(check_spec(&clicks->spec, err));
    clicks->weight_deviation = deviation_of(clicks->spec.field_count);
    lay_out_fields(clicks);
    find_intercept(clicks);
    return TT_OK;
}

void
tti_clicklog_make_row(const tti_clicklog *clicks, uint64_t row_number, tti_clicklog_row *row)
{
    tt_rng rng;
    open_stream(&rng, clicks->spec.seed, RANK_ROW, clicks->spec.first_row + row_number);
    double p = sigma(clicks->intercept + draw_features(clicks, &rng, row));
    int clean = tt_rng_uniform(&rng) < p, flipped = tt_rng_uniform(&rng) < clicks->spec.label_noise;
    row->label = clean != flipped;
    row->probability = with_noise(clicks, p);
}
