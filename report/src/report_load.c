// Run store -> memory, in one snapshot, so that a report of a running job does not contradict
// itself.
#include "report_model.h"
#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Reads one row of a query into the report.
typedef tt_status (*row_reader)(tti_report *report, const tt_store_query *row);

static tt_status
push(tti_array *array, const void *item, size_t item_bytes)
{
    TT_TRY(tt_mem_grow(&array->items, &array->capacity, array->count, item_bytes));
    memcpy((char *)array->items + array->count++ * item_bytes, item, item_bytes);
    return TT_OK;
}

// NULL stays NULL; running out of memory shows as NULL too and *status says so.
static const char *
text(tti_report *report, const tt_store_query *row, int column, tt_status *status)
{
    const char *value = tt_store_query_text(row, column);
    if (value == NULL)
        return NULL;
    const char *copy = tt_arena_strdup(&report->arena, value);
    if (copy == NULL)
        *status = TT_NOMEM;
    return copy;
}

#define INT(column)  tt_store_query_int(row, column)
#define REAL(column) tt_store_query_real(row, column)
#define TEXT(column) text(report, row, column, &status)

static tt_status
read_run(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    int64_t seed = INT(5);
    tt_store_run *r = &report->run;
    *r = (tt_store_run){.id = TEXT(0),
                        .name = TEXT(1),
                        .program_version = TEXT(2),
                        .started_at = INT(3),
                        .driver = TEXT(6),
                        .consistency = TEXT(7),
                        .nodes = INT(8),
                        .model = TEXT(9),
                        .data_rows = INT(10),
                        .data_features = INT(11),
                        .target_loss = REAL(12),
                        .status = TEXT(13),
                        .stop_reason = TEXT(14),
                        .loss = REAL(15),
                        .objective = REAL(16),
                        .iterations = INT(17),
                        .epochs = REAL(18),
                        .train_seconds = REAL(19),
                        .wall_seconds = REAL(20),
                        .examples_per_second = REAL(21),
                        .generations = INT(22),
                        .reconfigure_seconds = REAL(23),
                        .explore_seconds = REAL(24),
                        .start_setting = INT(25),
                        .final_setting = INT(26),
                        .untuned_seconds = REAL(27),
                        .engine = TEXT(28),
                        .started_from = TEXT(29),
                        .tuner = TEXT(30)};
    memcpy(&r->seed, &seed, sizeof seed);
    report->updated_at = INT(4);
    report->has_run = 1;
    return status;
}

static tt_status
read_metric(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    const tti_metric metric = {TEXT(0), REAL(1)};
    return status == TT_OK ? push(&report->metrics, &metric, sizeof metric) : status;
}

static tt_status
read_knob(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    const tt_store_knob knob = {.ordinal = INT(0),
                                .id = TEXT(1),
                                .kind = TEXT(2),
                                .unit = TEXT(3),
                                .min = REAL(4),
                                .max = REAL(5),
                                .start = REAL(6),
                                .fixed = INT(7) == 1,
                                .reason = TEXT(8),
                                .effect = TEXT(9),
                                .scale = TEXT(10),
                                .values = TEXT(11)};
    // The ordinal is an index into a setting's values: rows with another one are not ours.
    if (knob.ordinal != (int64_t)report->knobs.count || knob.ordinal >= TTI_KNOBS_MAX ||
        knob.id == NULL)
        return status == TT_OK ? TT_CORRUPT : status;
    return status == TT_OK ? push(&report->knobs, &knob, sizeof knob) : status;
}

static tt_status
read_setting(tti_report *report, const tt_store_query *row)
{
    double unknown = (double)NAN;
    tti_setting setting = {
        .id = INT(0), .seconds_per_iteration = unknown, .log_se = unknown, .trial_ratio = unknown};
    size_t knobs = report->knobs.count;
    setting.values = tt_arena_alloc(&report->arena, (knobs > 0 ? knobs : 1) * sizeof(double));
    if (setting.values == NULL)
        return TT_NOMEM;
    for (size_t i = 0; i < knobs; i++)
        setting.values[i] = unknown;
    return push(&report->settings, &setting, sizeof setting);
}

static tti_setting *
setting_by_id(const tti_report *report, int64_t id)
{
    size_t low = 0, high = report->settings.count;
    while (low < high) { // sorted by id
        size_t middle = low + (high - low) / 2;
        tti_setting *setting = TTI_AT(report->settings, tti_setting, middle);
        if (setting->id == id)
            return setting;
        if (setting->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

double
tti_report_last_loss(const tti_report *report)
{
    const tti_report *r = report;
    if (isfinite(r->run.loss) || r->progress.count == 0)
        return r->run.loss;
    return TTI_AT(r->progress, tt_store_progress, r->progress.count - 1)->loss;
}

const tti_setting *
tti_report_setting(const tti_report *report, int64_t id)
{
    return setting_by_id(report, id);
}

static tt_status
read_setting_value(tti_report *report, const tt_store_query *row)
{
    tti_setting *setting = setting_by_id(report, INT(0));
    int64_t knob = INT(1);
    if (setting != NULL && knob >= 0 && (size_t)knob < report->knobs.count)
        setting->values[knob] = REAL(2);
    return TT_OK;
}

static tt_store_phase
phase_of(const char *word)
{
    for (int i = 0; i < TTI_PHASES; i++)
        if (word != NULL && strcmp(word, tt_store_phase_text((tt_store_phase)i)) == 0)
            return (tt_store_phase)i;
    return TT_STORE_TRANSITION; // a word of a later trimtab: counted as nobody's measurement
}

static tt_status
read_window(tti_report *report, const tt_store_query *row)
{
    const tt_store_window window = {.ordinal = INT(0),
                                    .generation = INT(1),
                                    .setting = INT(2),
                                    .phase = phase_of(tt_store_query_text(row, 3)),
                                    .first_iteration = INT(4),
                                    .last_iteration = INT(5),
                                    .start_s = REAL(6),
                                    .end_s = REAL(7),
                                    .kept = INT(8),
                                    .seconds_per_iteration = REAL(9),
                                    .time_cv = REAL(10),
                                    .loss_before = REAL(11),
                                    .loss_after = REAL(12),
                                    .noise = REAL(13),
                                    .slope = REAL(14),
                                    .slope_se = REAL(15),
                                    .flags = (unsigned)TT_MAX(INT(16), 0),
                                    .abandoned = INT(17) == 1,
                                    .staleness = REAL(18),
                                    .lag_borne = REAL(19)};
    return push(&report->windows, &window, sizeof window);
}

static tt_status
read_move(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    const tt_store_reconfiguration move = {.ordinal = INT(0),
                                           .generation = INT(1),
                                           .from_setting = INT(2),
                                           .to_setting = INT(3),
                                           .kind = TEXT(4),
                                           .method = TEXT(5),
                                           .start_s = REAL(6),
                                           .duration_s = REAL(7),
                                           .lost_s = REAL(8),
                                           .partitions_moved = INT(9),
                                           .bytes_carried = INT(10),
                                           .bytes_drained = INT(11),
                                           .last_key_live_s = REAL(12),
                                           .iterations_during = INT(13),
                                           .longest_wait_s = REAL(14),
                                           .checkpoint_s = REAL(15),
                                           .restart_s = REAL(16),
                                           .model_s = REAL(17),
                                           .data_s = REAL(18)};
    return status == TT_OK ? push(&report->moves, &move, sizeof move) : status;
}

static tt_status
read_proposal(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    const tt_store_proposal proposal = {.ordinal = INT(0),
                                        .time_s = REAL(1),
                                        .phase = TEXT(2),
                                        .setting = INT(3),
                                        .current_setting = INT(4),
                                        .log_ratio = REAL(5),
                                        .log_ratio_sd = REAL(6),
                                        .ei_seconds = REAL(7),
                                        .cost_seconds = REAL(8),
                                        .remaining_s = REAL(9),
                                        .decision = TEXT(10),
                                        .reason = TEXT(11),
                                        .realised_gain_s = REAL(12),
                                        .predicted_s = REAL(13),
                                        .guard_left_s = REAL(14),
                                        .proposed = TEXT(15),
                                        .realised_ratio = REAL(16)};
    return status == TT_OK ? push(&report->proposals, &proposal, sizeof proposal) : status;
}

static tt_status
read_event(tti_report *report, const tt_store_query *row)
{
    tt_status status = TT_OK;
    const tti_event_row event = {REAL(0), TEXT(1), TEXT(2)};
    return status == TT_OK ? push(&report->events, &event, sizeof event) : status;
}

static tt_status
read_progress(tti_report *report, const tt_store_query *row)
{
    const tt_store_progress progress = {REAL(0), INT(1), REAL(2), REAL(3), REAL(4)};
    return push(&report->progress, &progress, sizeof progress);
}

static tt_status
read_validation(tti_report *report, const tt_store_query *row)
{
    const tt_store_validation validation = {INT(0),  REAL(1), INT(2),  REAL(3),    REAL(4),
                                            REAL(5), REAL(6), REAL(7), INT(8) == 1};
    return push(&report->validations, &validation, sizeof validation);
}

static tt_status
read_sample_totals(tti_report *report, const tt_store_query *row)
{
    report->curve_end_s = REAL(0);
    report->sampled_iterations = TT_MAX(INT(1), 0);
    report->not_finite = TT_MAX(INT(2), 0);
    return TT_OK;
}

static tt_status
read_eta(tti_report *report, const tt_store_query *row)
{
    const tt_store_eta eta = {REAL(0), INT(1), REAL(2), REAL(3), REAL(4), (unsigned)INT(5)};
    return push(&report->etas, &eta, sizeof eta);
}

// Blocks fall into the bin of their last iteration, weighted by what they hold. The curve holds
// sums and the weights share the arena until all rows are read.
static tt_status
read_curve(tti_report *report, const tt_store_query *row)
{
    int64_t bin = INT(0);
    if (bin >= 0 && bin < TTI_CURVE_BINS)
        report->curve_loss[bin] = REAL(1);
    return TT_OK;
}

// ---- everything
// ----------------------------------------------------------------------------------

static tt_status
read_rows(tti_report *report, tt_store *store, const char *sql, row_reader read, tt_error *err)
{
    tt_store_query *query;
    int has_row = 0;
    TT_TRY(tt_store_query_open(store, sql, &query, err));
    tt_status status;
    while ((status = tt_store_query_next(query, &has_row, err)) == TT_OK && has_row) {
        status = read != NULL ? read(report, query) : TT_OK;
        if (status != TT_OK) {
            status = tt_error_set(err, status, report->source, NULL,
                                  status == TT_NOMEM ? "no memory for the report"
                                                     : "the knobs of this run are not in order");
            break;
        }
    }
    tt_store_query_close(query);
    return status;
}

// Runs of older programs lack some.
static tt_status
read_tables(tti_report *report, const tt_store_query *row)
{
    report->has_validations = INT(0) > 0;
    report->has_etas = INT(1) > 0;
    return TT_OK;
}

static const struct {
    const char *sql;
    row_reader read;
} parts[] = {
    {"BEGIN", NULL}, // one snapshot for all that follows
    {"SELECT * FROM run ORDER BY started_at DESC LIMIT 1", read_run},
    {"SELECT name, value FROM run_metric ORDER BY name", read_metric},
    {"SELECT * FROM knob ORDER BY ordinal", read_knob},
    {"SELECT id FROM setting ORDER BY id", read_setting},
    {"SELECT setting, knob, value FROM setting_value", read_setting_value},
    {"SELECT * FROM window ORDER BY ordinal", read_window},
    {"SELECT * FROM reconfiguration ORDER BY ordinal", read_move},
    {"SELECT * FROM proposal ORDER BY ordinal", read_proposal},
    {"SELECT time_s, level, text FROM event ORDER BY time_s, rowid", read_event},
    {"SELECT time_s, iteration, epoch, loss, objective FROM progress ORDER BY time_s",
     read_progress},
    {"SELECT sum(name = 'validation'), sum(name = 'eta') FROM sqlite_master", read_tables},
    {"SELECT ordinal, time_s, iteration, epoch, loss, accuracy, auc, prior_loss, saved"
     " FROM validation ORDER BY ordinal",
     read_validation},
    {"SELECT time_s, iteration, seconds_p10, seconds_median, seconds_p90, flags FROM eta"
     " ORDER BY time_s",
     read_eta},
    {"SELECT max(time_s), sum(count), sum(not_finite) FROM sample", read_sample_totals},
    {"SELECT min(119, CAST(time_s / (SELECT max(time_s) FROM sample) * 120 AS INTEGER)) AS bin,"
     " sum(loss_mean * (count - not_finite)) / sum(count - not_finite)"
     " FROM sample WHERE loss_mean IS NOT NULL GROUP BY bin",
     read_curve},
    {"COMMIT", NULL},
};
static_assert(TTI_CURVE_BINS == 120, "the query above divides time into 120 bins");

static int
is_there(const tti_report *report, row_reader read)
{
    return (read != read_validation || report->has_validations) &&
           (read != read_eta || report->has_etas);
}

// ---- what follows from it
// ------------------------------------------------------------------------

static void
add_window(tti_report *report, const tt_store_window *w)
{
    double duration = w->end_s - w->start_s;
    if (isfinite(duration) && duration > 0)
        report->phase_s[w->phase] += duration;
    tti_setting *setting = setting_by_id(report, w->setting);
    if (setting == NULL || w->phase == TT_STORE_TRANSITION)
        return;
    setting->windows++;
    setting->abandoned += w->abandoned;
    if (isfinite(duration) && duration > 0)
        setting->seconds += duration;
    if (w->kept <= 0 || !isfinite(w->seconds_per_iteration))
        return;
    setting->measured++;
    setting->kept += w->kept;
    setting->sum_time += (double)w->kept * w->seconds_per_iteration;
    if (isfinite(w->time_cv)) {
        setting->sum_variance += (double)w->kept * w->time_cv * w->time_cv;
        setting->kept_with_cv += w->kept;
    }
}

const tt_store_validation *
tti_report_validation(const tti_report *report)
{
    const tt_store_validation *found = NULL;
    for (size_t i = 0; i < report->validations.count; i++) {
        const tt_store_validation *row = TTI_AT(report->validations, tt_store_validation, i);
        if (found == NULL || row->saved || !found->saved)
            found = row;
    }
    return found;
}

const tt_store_validation *
tti_report_best_validation(const tti_report *report)
{
    const tt_store_validation *best = NULL;
    for (size_t i = 0; i < report->validations.count; i++) {
        const tt_store_validation *row = TTI_AT(report->validations, tt_store_validation, i);
        if (isfinite(row->loss) && (best == NULL || row->loss < best->loss))
            best = row;
    }
    return best;
}

static void
finish_settings(tti_report *report)
{
    for (size_t i = 0; i < report->settings.count; i++) {
        tti_setting *s = TTI_AT(report->settings, tti_setting, i);
        if (s->kept > 0)
            s->seconds_per_iteration = s->sum_time / (double)s->kept;
        // Standard error of a mean of kept_with_cv cycles, relative to the mean; of so many
        // windows.
        if (s->kept_with_cv > 1)
            s->log_se = fmax(sqrt(s->sum_variance) / (double)s->kept_with_cv,
                             sqrt(report->window_variance / (double)s->measured));
    }
}

static tti_move_kind *
kind_entry(tti_report *report, const char *kind, const char *method, tt_status *status)
{
    for (size_t i = 0; i < report->move_kinds.count; i++) {
        tti_move_kind *entry = TTI_AT(report->move_kinds, tti_move_kind, i);
        if (strcmp(entry->kind, kind) == 0 && strcmp(entry->method, method) == 0)
            return entry;
    }
    const tti_move_kind entry = {.kind = kind, .method = method};
    *status = push(&report->move_kinds, &entry, sizeof entry);
    return *status == TT_OK
               ? TTI_AT(report->move_kinds, tti_move_kind, report->move_kinds.count - 1)
               : NULL;
}

static double
known(double value)
{
    return isfinite(value) ? value : 0;
}

static tt_status
add_moves(tti_report *report)
{
    report->lost_moving_s = 0;
    for (size_t i = 0; i < report->moves.count; i++) {
        const tt_store_reconfiguration *m = TTI_AT(report->moves, tt_store_reconfiguration, i);
        tt_status status = TT_OK;
        tti_move_kind *kind = kind_entry(report, m->kind != NULL ? m->kind : "not known",
                                         m->method != NULL ? m->method : "not known", &status);
        if (kind == NULL)
            return status;
        kind->count++;
        kind->partitions += TT_MAX(m->partitions_moved, 0);
        kind->bytes += TT_MAX(m->bytes_carried, 0) + TT_MAX(m->bytes_drained, 0);
        kind->lost_s += known(m->lost_s);
        kind->checkpoint_s += known(m->checkpoint_s);
        kind->restart_s += known(m->restart_s);
        kind->model_s += known(m->model_s);
        kind->data_s += known(m->data_s);
        kind->duration_s += known(m->duration_s);
        kind->longest_duration_s = TT_MAX(kind->longest_duration_s, known(m->duration_s));
        kind->longest_wait_s = TT_MAX(kind->longest_wait_s, known(m->longest_wait_s));
        report->lost_moving_s += known(m->lost_s);
    }
    return TT_OK;
}

static void
find_extent(tti_report *report)
{
    const tt_store_run *run = &report->run;
    report->elapsed_s = run->train_seconds;
    report->iterations = run->iterations;
    report->current_setting = run->final_setting;
    double last_s = report->curve_end_s;
    int64_t iterations = report->sampled_iterations > 0 ? report->sampled_iterations : -1;
    for (size_t i = 0; i < report->windows.count; i++) {
        const tt_store_window *w = TTI_AT(report->windows, tt_store_window, i);
        last_s = fmax(last_s, w->end_s);
        iterations = TT_MAX(iterations, w->last_iteration + 1);
        if (run->final_setting < 0 && w->setting >= 0)
            report->current_setting = w->setting;
    }
    for (size_t i = 0; i < report->progress.count; i++)
        last_s = fmax(last_s, TTI_AT(report->progress, tt_store_progress, i)->time_s);
    if (isnan(report->elapsed_s))
        report->elapsed_s = last_s;
    if (report->iterations < 0)
        report->iterations = iterations;
    if (report->current_setting < 0)
        report->current_setting = run->start_setting;
}

// Of a trial that a resumed job made again, the later one's ratio.
static void
note_trials(tti_report *report)
{
    for (size_t i = 0; i < report->proposals.count; i++) {
        const tt_store_proposal *p = TTI_AT(report->proposals, tt_store_proposal, i);
        tti_setting *setting = setting_by_id(report, p->setting);
        if (setting != NULL && tti_is(p->decision, "try"))
            setting->trial_ratio = p->realised_ratio;
    }
}

// Seconds that trials took beyond what the best setting known before them takes for as much; those
// that were faster lost nothing. A trial lasts until the tuner has made up its mind what is next.
// NAN where no trial was measured.
static double
lost_exploring(const tti_report *report)
{
    double lost = 0;
    int any = 0;
    for (size_t i = 0; i < report->windows.count; i++) {
        const tt_store_window *w = TTI_AT(report->windows, tt_store_window, i);
        const tti_setting *setting = setting_by_id(report, w->setting);
        if (w->phase != TT_STORE_EXPLORE || setting == NULL || !(setting->trial_ratio > 0))
            continue;
        const double end_s = i + 1 < report->windows.count ? (w + 1)->start_s : w->end_s;
        lost += fmax(end_s - w->start_s, 0) * fmax(1 - 1 / setting->trial_ratio, 0);
        any = 1;
    }
    return any ? lost : (double)NAN;
}

static tt_status
derive(tti_report *report)
{
    for (size_t i = 0; i < report->windows.count; i++)
        add_window(report, TTI_AT(report->windows, tt_store_window, i));
    TT_TRY(tti_report_window_variance(report, &report->window_variance));
    finish_settings(report);
    TT_TRY(add_moves(report));
    find_extent(report);
    if (isfinite(report->run.reconfigure_seconds))
        report->lost_moving_s = report->run.reconfigure_seconds;
    note_trials(report);
    report->lost_exploring_s = lost_exploring(report);
    return TT_OK;
}

// A run holds its directory's lock while its process lives.
static int
is_abandoned(const char *run)
{
    char path[4200];
    struct stat info;
    int is_file = stat(run, &info) == 0 && !S_ISDIR(info.st_mode);
    const char *slash = is_file ? strrchr(run, '/') : NULL;
    const char *directory = is_file && slash == NULL ? "." : run;
    int length = slash != NULL ? (int)(slash - run) : (int)strlen(directory);
    if ((size_t)snprintf(path, sizeof path, "%.*s/lock", length, directory) >= sizeof path)
        return 0;
    return tt_lock_ask(path) == TT_LOCK_FREE;
}

static void
note_abandoned(tti_report *report, const char *run)
{
    tt_store_run *r = &report->run;
    if (!report->has_run || r->status == NULL || strcmp(r->status, "running") != 0 ||
        !is_abandoned(run))
        return;
    char reason[600];
    (void)snprintf(reason, sizeof reason,
                   "its process is gone; `trimtab run --resume %.400s` goes on from the last "
                   "checkpoint",
                   run);
    const char *kept = tt_arena_strdup(&report->arena, reason);
    r->status = "killed";
    r->stop_reason = kept != NULL ? kept : "its process is gone";
}

static tt_status
open_run(const char *run, tt_store **out, tt_error *err)
{
    struct stat info;
    if (stat(run, &info) != 0 || !S_ISDIR(info.st_mode))
        return tt_store_open_read(run, out, err);
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/run.db", run) >= sizeof path)
        return tt_error_set(err, TT_INVALID, run, "give a shorter path", "the path is too long");
    return tt_store_open_read(path, out, err);
}

tt_status
tti_report_load(tti_report *report, const char *run, tt_error *err)
{
    *report = (tti_report){.source = run, .updated_at = -1, .curve_end_s = (double)NAN};
    tt_arena_init(&report->arena, 65536);
    tt_store_run_init(&report->run);
    for (size_t i = 0; i < TTI_CURVE_BINS; i++)
        report->curve_loss[i] = (double)NAN;
    tt_store *store;
    TT_TRY(open_run(run, &store, err));
    tt_status status = TT_OK;
    for (size_t i = 0; i < TT_COUNT_OF(parts) && status == TT_OK; i++)
        if (is_there(report, parts[i].read))
            status = read_rows(report, store, parts[i].sql, parts[i].read, err);
    tt_status closed = tt_store_close(store, status == TT_OK ? err : NULL);
    if (status == TT_OK)
        status = closed;
    if (status == TT_OK)
        note_abandoned(report, run);
    if (status == TT_OK && derive(report) != TT_OK)
        status = tt_error_set(err, TT_NOMEM, run, NULL, "no memory for the report");
    return status;
}

void
tti_report_fini(tti_report *report)
{
    tti_array *const arrays[] = {&report->metrics,     &report->knobs,  &report->settings,
                                 &report->windows,     &report->moves,  &report->move_kinds,
                                 &report->proposals,   &report->events, &report->progress,
                                 &report->validations, &report->etas};
    for (size_t i = 0; i < TT_COUNT_OF(arrays); i++)
        tt_mem_free(arrays[i]->items);
    tt_arena_fini(&report->arena);
}
