// Looking for what earlier runs of like jobs taught: which runs, which setting to begin with, which
// measurements to give to the tuner.
#include "job_internal.h"
#include "training.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A run this far away says nothing (see tti_warm_distance).
static const double CUT_OFF = 1;
// Runs this close are equally like: the newest of them counts.
static const double TIE = 0.1;
// Spread of the differences between settings in log, from one job to another: least, and by
// distance; and for each knob that is fixed to another value here.
static const double UNLIKE_LEAST = 0.08, UNLIKE_BY_DISTANCE = 0.35, UNLIKE_FIXED = 0.2;
// Of the earlier run's knobs: at most this share of those free here may be unknown to it.
static const double MISSING_MOST = 0.5, MISSING_WEIGHT = 0.5;
// A run is too short to have chosen its last setting when it is shorter than this share of the
// longest among those equally like.
static const double LONG_ENOUGH = 0.25;
enum { SETTINGS_LEAST = 3, ROWS_FIRST_RUN = 24, ROWS_OTHER_RUN = 8 };

typedef struct candidate {
    const tt_repository_run *run;
    const tt_repository_row *rows;
    uint32_t row_count;
    double distance;
    int chose; // its last setting is the outcome of a search
    char differs[200];
} candidate;

// ---- one setting -----------------------------------------------------------------------------

static const tt_repository_value *
value_of(const tt_repository_row *row, const char *knob)
{
    for (uint32_t i = 0; i < row->value_count; i++)
        if (strcmp(row->values[i].knob, knob) == 0)
            return &row->values[i];
    return NULL;
}

// The value in the knob's unit here: an enum may have its names in another order. NAN: unknown.
static double
translate(const tt_space_knob *knob, const tt_repository_value *value)
{
    if (knob->knob->kind != TT_KNOB_ENUM)
        return value->value;
    for (int i = 0; knob->knob->values[i] != NULL; i++)
        if (value->name != NULL && strcmp(knob->knob->values[i], value->name) == 0)
            return i;
    return NAN;
}

static void
project_free(const tt_space_knob *knob, double value, tti_warm_projection *out, double *to)
{
    char from[64], clip[64];
    double inside = tt_space_snap(knob, fmin(fmax(value, knob->min), knob->max));
    *to = inside;
    if (inside == value)
        return;
    size_t used = strlen(out->clips);
    out->clipped = 1;
    (void)snprintf(out->clips + used, sizeof out->clips - used, "%s%s %s instead of %s",
                   used > 0 ? ", " : "", knob->knob->id,
                   tt_space_format(knob, inside, clip, sizeof clip),
                   tt_space_format(knob, value, from, sizeof from));
}

void
tti_warm_project(const tt_space *space, const tt_repository_row *row, tti_warm_projection *out)
{
    *out = (tti_warm_projection){.usable = 1};
    tt_space_start(space, &out->setting);
    for (uint32_t k = 0; k < space->count; k++) {
        const tt_space_knob *knob = &space->knob[k];
        const tt_repository_value *value = value_of(row, knob->knob->id);
        if (knob->absent)
            continue;
        double there = value != NULL ? translate(knob, value) : NAN;
        if (isnan(there)) {
            out->usable &= value == NULL; // an enum's value that is not known here
            out->missing += !knob->fixed;
        } else if (knob->fixed) {
            out->fixed += there != knob->start;
        } else {
            project_free(knob, there, out, &out->setting.value[k]);
        }
    }
    out->usable &= tt_space_valid(space, &out->setting);
}

// ---- which runs ------------------------------------------------------------------------------

static const tt_repository_row *
row_of(const candidate *c, int64_t id)
{
    for (uint32_t i = 0; i < c->row_count && id >= 0; i++)
        if (c->rows[i].setting.id == id)
            return &c->rows[i];
    return NULL;
}

static int
measured(const tt_repository_row *row)
{
    const tt_repository_setting *s = &row->setting;
    return s->windows > 0 && s->seconds_per_iteration > 0 && isfinite(s->log_se) && s->log_se >= 0;
}

// The last setting counts when it was chosen: out of several, or by a run that itself began warm.
static int
has_chosen(const candidate *c)
{
    const tt_repository_run *run = c->run;
    const tt_repository_row *best = row_of(c, run->best_setting);
    return run->tuned && best != NULL && measured(best) && !best->setting.refused &&
           (run->settings >= SETTINGS_LEAST || run->started_from != NULL) && run->status != NULL &&
           strcmp(run->status, "failed") != 0;
}

// Adds to the distance what the knobs of the two jobs differ in.
static void
judge_knobs(const tt_job *job, candidate *c)
{
    tti_warm_projection p;
    const tt_repository_row *any = c->row_count > 0 ? &c->rows[0] : NULL;
    uint32_t free_knobs = tt_space_free_count(&job->space);
    if (any == NULL || free_knobs == 0) {
        c->distance = INFINITY;
        return;
    }
    tti_warm_project(&job->space, any, &p);
    double missing = (double)p.missing / free_knobs;
    c->distance = missing > MISSING_MOST ? INFINITY : hypot(c->distance, MISSING_WEIGHT * missing);
    size_t used = strlen(c->differs);
    if (p.missing > 0)
        (void)snprintf(c->differs + used, sizeof c->differs - used,
                       "%s%u of %u knobs unknown there", used > 0 ? ", " : "", p.missing,
                       free_knobs);
}

// Runs that chose come first, then the nearest; equally near ones as they came, the newest first.
static int
goes_before(const candidate *a, const candidate *b)
{
    if (a->chose != b->chose)
        return a->chose;
    return floor(a->distance / TIE) < floor(b->distance / TIE);
}

static void
insert(candidate *list, uint32_t *count, const candidate *c)
{
    uint32_t at = *count;
    while (at > 0 && goes_before(c, &list[at - 1]))
        at--;
    if (at >= TTI_WARM_RUNS)
        return;
    uint32_t last = TT_MIN(*count, (uint32_t)TTI_WARM_RUNS - 1);
    memmove(&list[at + 1], &list[at], (last - at) * sizeof *list);
    list[at] = *c;
    *count = last + 1;
}

static tt_status
find_like(const tt_job *job,
          tt_repository *repository,
          candidate *list,
          uint32_t *count,
          uint32_t *there,
          tt_error *err)
{
    const tt_repository_run *runs;
    tt_repository_run self;
    char space[24];
    tti_warm_describe(job, &self, space);
    *count = 0;
    TT_TRY(tt_repository_runs(repository, &runs, there, err));
    for (uint32_t i = 0; i < *there; i++) {
        candidate c = {.run = &runs[i]};
        c.distance = tti_warm_distance(&self, &runs[i], c.differs, sizeof c.differs);
        const candidate *last = *count == TTI_WARM_RUNS ? &list[*count - 1] : NULL;
        if (c.distance > CUT_OFF || (last != NULL && last->chose && last->distance < TIE))
            continue; // (nothing is before those)
        TT_TRY(tt_repository_rows(repository, runs[i].key, &c.rows, &c.row_count, err));
        judge_knobs(job, &c);
        c.chose = has_chosen(&c);
        if (c.distance <= CUT_OFF)
            insert(list, count, &c);
    }
    return TT_OK;
}

// Puts the run to begin with in front: the newest of the nearest that was long enough to choose.
static int
put_first(candidate *list, uint32_t count)
{
    int64_t longest = 0;
    double nearest = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].chose)
            nearest = fmin(nearest, list[i].distance);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].chose && list[i].distance <= nearest + TIE)
            longest = TT_MAX(longest, list[i].run->iterations);
    for (uint32_t i = 0; i < count; i++) {
        candidate c = list[i];
        if (!c.chose || c.distance > nearest + TIE ||
            (double)c.run->iterations < LONG_ENOUGH * (double)longest)
            continue;
        memmove(&list[1], &list[0], i * sizeof *list);
        list[0] = c;
        return 1;
    }
    return 0;
}

// ---- what is taken from them -----------------------------------------------------------------

static int
by_speed(const void *a, const void *b)
{
    const tt_repository_row *const *x = a, *const *y = b;
    double p = (*x)->setting.seconds_per_iteration, q = (*y)->setting.seconds_per_iteration;
    return (p > q) - (p < q);
}

// Rows that put the run on this job's scale come first: settings this run will be in as well.
static int
is_anchor(const candidate *c, const tt_repository_row *row)
{
    int64_t id = row->setting.id;
    return id == c->run->best_setting || id == c->run->own_setting || id == c->run->start_setting;
}

static void
take_row(const tt_job *job,
         tti_warm *warm,
         const candidate *c,
         uint32_t run,
         const tt_repository_row *row)
{
    tti_warm_projection p;
    tti_warm_project(&job->space, row, &p);
    if (!p.usable || p.clipped || warm->prior_count == TT_TUNER_PRIOR_ROWS)
        return;
    double unlike = UNLIKE_LEAST + UNLIKE_BY_DISTANCE * c->distance;
    double log_se = row->setting.log_se;
    warm->prior[warm->prior_count++] =
        (tt_tuner_prior){.setting = p.setting,
                         .run = run,
                         .log_s = log(row->setting.seconds_per_iteration),
                         .var = log_se * log_se,
                         .unlike_var = unlike * unlike + UNLIKE_FIXED * UNLIKE_FIXED * p.fixed};
    warm->runs[run].settings++;
}

// The anchors, the fastest half of what room there is, and the rest at even steps.
static void
take_rows(const tt_job *job, tti_warm *warm, const candidate *c, uint32_t run, uint32_t room)
{
    const tt_repository_row **sorted = tt_mem_zalloc(c->row_count, sizeof(void *));
    uint32_t count = 0, before = warm->prior_count;
    for (uint32_t i = 0; i < c->row_count && sorted != NULL; i++) {
        if (!measured(&c->rows[i]))
            continue;
        if (is_anchor(c, &c->rows[i]))
            take_row(job, warm, c, run, &c->rows[i]);
        else
            sorted[count++] = &c->rows[i];
    }
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, by_speed);
    uint32_t left = room - TT_MIN(room, warm->prior_count - before);
    uint32_t fast = TT_MIN(count, (left + 1) / 2), slow = TT_MIN(count - fast, left - fast);
    for (uint32_t i = 0; i < fast; i++)
        take_row(job, warm, c, run, sorted[i]);
    for (uint32_t i = 0; i < slow; i++)
        take_row(job, warm, c, run, sorted[fast + (size_t)i * (count - fast) / slow]);
    tt_mem_free(sorted);
}

static int
accepted(const tt_job *job, const tt_setting *setting, tt_error *err)
{
    tt_knob_set *set = NULL;
    int yes = tt_knob_set_open(&job->space, tti_checker_host(), &set, err) == TT_OK &&
              tt_knob_set_prepare(set, setting, err) == TT_OK;
    if (yes)
        tt_knob_set_rollback(set);
    tt_knob_set_close(set);
    return yes;
}

// Where tuning begins in this job file (knobs.ID.start) is the user's word.
static void
keep_own_starts(const tt_job *job, tt_setting *setting)
{
    for (uint32_t k = 0; k < job->space.count; k++)
        if (job->start_given[k])
            setting->value[k] = job->space.knob[k].start;
}

static void
take_bests(const tt_job *job, tti_warm *warm, const candidate *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tti_warm_projection p;
        tt_error err;
        if (!list[i].chose)
            continue;
        tti_warm_project(&job->space, row_of(&list[i], list[i].run->best_setting), &p);
        keep_own_starts(job, &p.setting);
        if (!p.usable || !tt_space_valid(&job->space, &p.setting) ||
            !accepted(job, &p.setting, &err))
            continue;
        warm->runs[i].has_best = 1;
        warm->runs[i].best = p.setting;
        if (i == 0)
            (void)snprintf(warm->clipped, sizeof warm->clipped, "%s", p.clips);
        else if (warm->other_count < TTI_WARM_OTHERS)
            warm->others[warm->other_count++] = p.setting;
    }
}

static void
take(const tt_job *job, tti_warm *warm, candidate *list, uint32_t count)
{
    warm->run_count = count;
    for (uint32_t i = 0; i < count; i++) {
        tti_warm_run *run = &warm->runs[i];
        *run = (tti_warm_run){.distance = list[i].distance};
        (void)snprintf(run->id, sizeof run->id, "%s",
                       list[i].run->id != NULL ? list[i].run->id : "?");
        (void)snprintf(run->name, sizeof run->name, "%s",
                       list[i].run->name != NULL ? list[i].run->name : "?");
        (void)snprintf(run->differs, sizeof run->differs, "%s", list[i].differs);
        take_rows(job, warm, &list[i], i, i == 0 ? ROWS_FIRST_RUN : ROWS_OTHER_RUN);
    }
    take_bests(job, warm, list, count);
    tt_setting own;
    tt_space_start(&job->space, &own);
    warm->begins = warm->runs[0].has_best && !tt_setting_equal(&own, &warm->runs[0].best);
    if (warm->begins)
        warm->start = warm->runs[0].best;
    const char *differs = warm->runs[0].differs[0] != '\0' ? warm->runs[0].differs : "same job";
    (void)snprintf(warm->reason, sizeof warm->reason,
                   "%s run %.160s, %s (%.180s); %u measurements of %u run%s",
                   warm->begins ? "begins with the best setting of"
                                : "begins with its own start setting, and what was measured in",
                   warm->runs[0].id, warm->begins ? "the most like" : "for one", differs,
                   warm->prior_count, count, count == 1 ? "" : "s");
}

static void
search(const tt_job *job, tti_warm *warm, tt_repository *repository, tt_error *err)
{
    candidate list[TTI_WARM_RUNS + 1];
    uint32_t count;
    if (find_like(job, repository, list, &count, &warm->runs_there, err) != TT_OK) {
        warm->trouble_status = err->status;
        return;
    }
    if (count == 0 || !put_first(list, count))
        (void)snprintf(warm->reason, sizeof warm->reason,
                       count == 0 ? "begins cold: none of the %u runs there is like this job"
                                  : "begins cold: of the %u runs there, none that is like this "
                                    "job compared settings for long enough",
                       warm->runs_there);
    else
        take(job, warm, list, count);
}

// ---- the repository --------------------------------------------------------------------------

static void
keep_trouble(tti_warm *warm, const tt_error *err)
{
    warm->trouble_status = err->status;
    (void)snprintf(warm->trouble, sizeof warm->trouble, "%s: %s%s%s", err->where, err->what,
                   err->advice[0] != '\0' ? "; " : "", err->advice);
    (void)snprintf(warm->reason, sizeof warm->reason, "begins cold: the repository cannot be used");
}

static void
look(const tt_job *job, tti_warm *warm)
{
    tt_error err = {0};
    tt_repository *repository = NULL;
    tt_status status = tt_repository_open_read(warm->path, &repository, &err);
    if (status == TT_NOTFOUND) {
        (void)snprintf(warm->reason, sizeof warm->reason, "begins cold: it does not exist yet");
        return;
    }
    if (status == TT_OK)
        search(job, warm, repository, &err);
    tt_repository_close(repository);
    if (status != TT_OK || warm->trouble_status != TT_OK)
        keep_trouble(warm, &err);
}

void
tti_warm_find(tt_job *job, int cold)
{
    tti_warm *warm = &job->warm;
    tt_error err = {0};
    *warm = (tti_warm){.cold = cold};
    const char *why = NULL;
    // What a model of hosts says is no experience, but for other jobs on such hosts.
    if (job->spec.engine == TTI_ENGINE_SIMULATED && strcmp(job->spec.repository, "auto") == 0) {
        (void)snprintf(warm->reason, sizeof warm->reason,
                       "nothing is taken from it or kept in it: the hosts are simulated");
        return;
    }
    if (tt_repository_choose_path(job->spec.repository, warm->path, sizeof warm->path, &err) !=
        TT_OK) {
        warm->path[0] = '\0';
        keep_trouble(warm, &err);
        return;
    }
    if (warm->path[0] == '\0')
        why = "begins cold: the repository is off";
    else if (!job->spec.tuner_enabled || job->script_count > 0)
        why = "nothing is taken from it: tuning is off";
    else if (tt_space_free_count(&job->space) == 0)
        why = "nothing is taken from it: every knob is fixed";
    else if (job->spec.tuner_model == TT_TUNER_MODEL_PAPER)
        why = "nothing is taken from it: the paper's tuner begins cold";
    else if (cold)
        why = "begins cold, as asked for";
    if (why != NULL)
        (void)snprintf(warm->reason, sizeof warm->reason, "%s", why);
    else
        look(job, warm);
}

int
tti_warm_used(const tt_job *job)
{
    return job->warm.begins || job->warm.prior_count > 0;
}

void
tti_warm_begin(const tt_job *job, int tuned, tt_setting *out)
{
    tt_space_start(&job->space, out);
    if (tuned && job->warm.begins)
        *out = job->warm.start;
}
