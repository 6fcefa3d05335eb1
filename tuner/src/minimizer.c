// Ask and tell: what was asked and told, and which kind of proposal is due.
#include "minimizer_internal.h"
#include <math.h>
#include <string.h>

// Where nothing new is better with more than this probability, measuring again is worth more.
static const double REPEAT_BELOW = 0.1;
static const char EVERY_ONE_TRIED[] = "every setting was tried";

// ---- life ------------------------------------------------------------------------------------

const char *
tt_minimizer_phase_name(tt_minimizer_phase phase)
{
    static const char *const names[] = {"start", "spread", "model", "repeat"};
    return names[phase];
}

// Enough points to see each knob move, few enough to leave most evaluations to the model.
static uint32_t
initial_of(const tt_minimizer *o)
{
    uint32_t wanted = o->options.initial > 0 ? o->options.initial : o->search.dims + 1;
    return TT_MIN(TT_MAX(wanted, 4u), (uint32_t)TTI_MINIMIZER_SPREAD_MAX);
}

// The start setting, if it is one, and spread-out points.
static void
plan(tt_minimizer *o)
{
    uint32_t wanted = initial_of(o), taken = 0;
    if (o->options.use_start && tt_space_valid(o->space, &o->search.base))
        o->spread[taken++] = o->search.base;
    o->spread_count = taken + tt_search_spread(&o->search, o->options.seed, o->spread, taken,
                                               wanted - taken, o->spread + taken);
}

tt_status
tt_minimizer_open(const tt_space *space,
                  const tt_minimizer_options *options,
                  tt_minimizer **out,
                  tt_error *err)
{
    *out = NULL;
    tt_minimizer *o = tt_mem_zalloc(1, sizeof *o);
    if (o == NULL)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a minimizer");
    o->space = space;
    o->options = *options;
    o->memory.lambda = 1;
    o->memory.share = 0.5;
    tt_search_space_init(&o->search, space);
    int free = o->search.dims > 0;
    if (free)
        plan(o);
    if (o->spread_count == 0) {
        tt_mem_free(o);
        return tt_error_set(err, TT_INVALID, "tuner",
                            free ? "loosen the constraints, or write them into the ranges"
                                 : "leave a knob free",
                            free ? "thousands of random settings all break the constraints"
                                 : "there is nothing to tune");
    }
    *out = o;
    return TT_OK;
}

void
tt_minimizer_close(tt_minimizer *minimizer)
{
    if (minimizer == NULL)
        return;
    tt_mem_free(minimizer->rows);
    tt_mem_free(minimizer->asked);
    tt_gp_close(minimizer->gp);
    tt_mem_free(minimizer);
}

// ---- tell ------------------------------------------------------------------------------------

// The row of a setting, or NULL.
static tti_minimizer_row *
find_row(const tt_minimizer *o, const tt_setting *setting)
{
    for (size_t i = 0; i < o->row_count; i++)
        if (tt_setting_equal(&o->rows[i].setting, setting))
            return &o->rows[i];
    return NULL;
}

static tt_status
check_result(const tt_minimizer_result *result, tt_error *err)
{
    if (result->failed)
        return TT_OK;
    if (!isfinite(result->y))
        return tt_error_set(err, TT_INVALID, "tuner", "tell that the evaluation failed instead",
                            "y is not a finite number");
    if (!isfinite(result->noise) || result->noise < 0)
        return tt_error_set(err, TT_INVALID, "tuner", "leave it out when it is not known",
                            "noise is the standard deviation of y: finite and not negative");
    return TT_OK;
}

// A running mean; the noise of a mean of equally weighted evaluations.
static void
enter(tti_minimizer_row *row, const tt_minimizer_result *result)
{
    if (result->failed)
        return;
    double n = row->evaluations, off = result->y - row->y;
    row->squares += off * off * n / (n + 1);
    row->y += off / (n + 1);
    row->noise_var = (row->noise_var * n * n + result->noise * result->noise) / ((n + 1) * (n + 1));
    row->evaluations++;
}

tt_status
tt_minimizer_tell(tt_minimizer *o,
                  uint64_t id,
                  const tt_setting *setting,
                  const tt_minimizer_result *result,
                  tt_error *err)
{
    TT_TRY(check_result(result, err));
    if (id > o->asked_count)
        return tt_error_set(err, TT_NOTFOUND, "tuner", "tell the setting instead",
                            "no proposal has the id %llu", (unsigned long long)id);
    if (id > 0 && o->asked[id - 1].told)
        return tt_error_set(err, TT_EXISTS, "tuner", "to tell it once more, tell the setting",
                            "proposal %llu was told already", (unsigned long long)id);
    if (id > 0)
        setting = &o->asked[id - 1].setting;
    else if (!tt_space_valid(o->space, setting))
        return tt_error_set(err, TT_INVALID, "tuner", NULL,
                            "the setting is outside a range or breaks a constraint");
    tti_minimizer_row *row = find_row(o, setting);
    if (row == NULL) {
        if (tt_mem_grow((void **)&o->rows, &o->row_capacity, o->row_count, sizeof *o->rows) !=
            TT_OK)
            return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a result");
        row = &o->rows[o->row_count++];
        *row = (tti_minimizer_row){.setting = *setting};
    }
    enter(row, result);
    // Also what is told without its id answers the question.
    for (size_t i = 0; i < o->asked_count; i++)
        if (id > 0 ? i + 1 == id : tt_setting_equal(&o->asked[i].setting, setting))
            o->asked[i].told = 1;
    o->evaluations++;
    return TT_OK;
}

uint32_t
tt_minimizer_evaluations(const tt_minimizer *minimizer)
{
    return minimizer->evaluations;
}

// ---- ask -------------------------------------------------------------------------------------

static int
is_asked(const tt_minimizer *o, const tt_setting *setting)
{
    for (size_t i = 0; i < o->asked_count; i++)
        if (tt_setting_equal(&o->asked[i].setting, setting))
            return 1;
    return 0;
}

static uint32_t
measured_rows(const tt_minimizer *o)
{
    uint32_t count = 0;
    for (size_t i = 0; i < o->row_count; i++)
        count += o->rows[i].evaluations > 0;
    return count;
}

static uint32_t
waiting(const tt_minimizer *o)
{
    uint32_t count = 0;
    for (size_t i = 0; i < o->asked_count; i++)
        count += !o->asked[i].told;
    return count;
}

// The next planned point that is new, while there are too few results for a model.
static int
propose_planned(const tt_minimizer *o, tt_minimizer_proposal *out)
{
    if (measured_rows(o) + waiting(o) >= o->spread_count && measured_rows(o) > 0)
        return 0;
    for (uint32_t i = 0; i < o->spread_count; i++) {
        if (is_asked(o, &o->spread[i]) || find_row(o, &o->spread[i]) != NULL)
            continue;
        int start =
            i == 0 && o->options.use_start && tt_setting_equal(&o->spread[0], &o->search.base);
        out->setting = o->spread[i];
        out->phase = start ? TT_MINIMIZER_START : TT_MINIMIZER_SPREAD;
        (void)snprintf(out->reason, sizeof out->reason,
                       start ? "the setting to start from"
                             : "spread-out point %u of %u, before the model has enough to go by",
                       i + 1, o->spread_count);
        return 1;
    }
    return 0;
}

// Nothing is known yet of anything (all failed, or are still out): another point of the sequence.
static int
propose_further(const tt_minimizer *o, tt_minimizer_proposal *out)
{
    uint64_t seed = o->options.seed + 1 + o->asked_count;
    for (size_t i = 0; i < 64; i++) {
        if (tt_search_spread(&o->search, seed + (i << 32), NULL, 0, 1, &out->setting) == 0)
            return 0;
        if (is_asked(o, &out->setting) || find_row(o, &out->setting) != NULL)
            continue;
        out->phase = TT_MINIMIZER_SPREAD;
        (void)snprintf(out->reason, sizeof out->reason,
                       "a random point: nothing has been measured yet");
        return 1;
    }
    return 0;
}

// Of all measured settings the one whose repetition tells most about which is best.
static const tti_minimizer_row *
most_promising(const tt_minimizer *o, const tti_minimizer_model *model)
{
    const tti_minimizer_row *best = o->row_count > 0 ? &o->rows[0] : NULL;
    double least = INFINITY;
    for (size_t i = 0; i < o->row_count && model != NULL; i++) {
        double mean, sd;
        if (o->rows[i].evaluations == 0)
            continue;
        tti_minimizer_expect(o, model, &o->rows[i].setting, &mean, &sd);
        if (mean - sd < least) { // lower confidence bound
            least = mean - sd;
            best = &o->rows[i];
        }
    }
    return best;
}

static void
propose_repeat(const tt_minimizer *o,
               const tti_minimizer_model *model,
               const char *why,
               tt_minimizer_proposal *out)
{
    const tti_minimizer_row *best = most_promising(o, model);
    out->setting = best != NULL ? best->setting : o->asked[0].setting;
    out->phase = TT_MINIMIZER_REPEAT;
    out->predicted = out->low = out->high = out->log_ei = (double)NAN;
    (void)snprintf(out->reason, sizeof out->reason,
                   "%s: the most promising one once more, against noise", why);
}

// Whether there is no noise: a setting that was evaluated again gave the very same.
static int
is_exact(const tt_minimizer *o)
{
    for (size_t i = 0; i < o->row_count; i++)
        if (o->rows[i].evaluations > 1 && o->rows[i].squares == 0)
            return 1;
    return 0;
}

// Where hardly anything is hoped of a new setting, every other time the most promising one once
// more in its place: what was lucky once shows, and whether there is noise at all, which a model
// that takes noise for the function's shape does not know. Not before the model has proposed as
// many as were spread: it is not to be believed so early.
static int
is_repeat_due(const tt_minimizer *o, double chance)
{
    return chance < REPEAT_BELOW && o->asked_count % 2 == 1 && waiting(o) == 0 &&
           o->row_count >= 2 * (size_t)o->spread_count && !is_exact(o);
}

static void
prefer_repeat(const tt_minimizer *o, const tti_minimizer_model *model, tt_minimizer_proposal *out)
{
    char why[96];
    const double chance = tti_minimizer_chance(o, model, &out->setting);
    if (!is_repeat_due(o, chance))
        return;
    (void)snprintf(why, sizeof why, "nothing new is better with a probability above %.2g", chance);
    propose_repeat(o, model, why, out);
}

static tt_status
propose_by_model(tt_minimizer *o, tt_minimizer_proposal *out, tt_error *err)
{
    tti_minimizer_model model;
    TT_TRY(tti_minimizer_model_open(o, 1, &model, err));
    out->phase = TT_MINIMIZER_REPEAT;
    tt_status status = tti_minimizer_improve(o, &model, out, err);
    if (status == TT_OK && out->phase == TT_MINIMIZER_REPEAT)
        propose_repeat(o, &model, EVERY_ONE_TRIED, out);
    else if (status == TT_OK)
        prefer_repeat(o, &model, out);
    tti_minimizer_model_close(&model);
    return status;
}

static tt_status
record(tt_minimizer *o, const tt_minimizer_proposal *proposal, tt_error *err)
{
    if (tt_mem_grow((void **)&o->asked, &o->asked_capacity, o->asked_count, sizeof *o->asked) !=
        TT_OK)
        return tt_error_set(err, TT_NOMEM, "tuner", NULL, "no memory for a proposal");
    o->asked[o->asked_count++] = (tti_minimizer_asked){.setting = proposal->setting};
    o->memory = proposal->memory;
    return TT_OK;
}

tt_status
tt_minimizer_ask(tt_minimizer *o, tt_minimizer_proposal *out, tt_error *err)
{
    *out = (tt_minimizer_proposal){.id = o->asked_count + 1,
                                   .predicted = (double)NAN,
                                   .low = (double)NAN,
                                   .high = (double)NAN,
                                   .log_ei = (double)NAN};
    if (!propose_planned(o, out)) {
        if (measured_rows(o) > 0)
            TT_TRY(propose_by_model(o, out, err));
        else if (!propose_further(o, out))
            propose_repeat(o, NULL, EVERY_ONE_TRIED, out);
    }
    out->memory = o->memory;
    return record(o, out, err);
}

tt_status
tt_minimizer_restore(tt_minimizer *o, const tt_minimizer_proposal *proposal, tt_error *err)
{
    if (proposal->id != o->asked_count + 1 || !tt_space_valid(o->space, &proposal->setting))
        return tt_error_set(err, TT_INVALID, "tuner", NULL,
                            "proposal %llu does not follow what went before, or its setting is not "
                            "of the space",
                            (unsigned long long)proposal->id);
    return record(o, proposal, err);
}

const tt_setting *
tt_minimizer_next_pending(const tt_minimizer *o, uint64_t *id)
{
    for (uint64_t i = *id; i < o->asked_count; i++)
        if (!o->asked[i].told) {
            *id = i + 1;
            return &o->asked[i].setting;
        }
    return NULL;
}

int
tt_minimizer_best_setting(const tt_minimizer *o, tt_minimizer_best *out)
{
    const tti_minimizer_row *best = NULL;
    *out = (tt_minimizer_best){.predicted = (double)NAN};
    for (size_t i = 0; i < o->row_count; i++)
        if (o->rows[i].evaluations > 0 && (best == NULL || o->rows[i].y < best->y))
            best = &o->rows[i];
    if (best == NULL)
        return -1;
    // The model is only looked at: asking for the best changes no later proposal.
    tt_minimizer shadow = *o;
    shadow.gp = NULL;
    tti_minimizer_model model;
    if (o->memory.fitted && tti_minimizer_model_open(&shadow, 0, &model, NULL) == TT_OK) {
        best = &o->rows[model.best_i];
        out->predicted = tti_warp_inverse(&model.warp, model.best);
        tti_minimizer_model_close(&model);
    }
    tt_gp_close(shadow.gp);
    out->setting = best->setting;
    out->y = best->y;
    out->evaluations = best->evaluations;
    return 0;
}
