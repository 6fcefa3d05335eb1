// Making the run directory, and the run's row in its store.
#include "run_record.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void
tti_record_failed(tti_training *tr, const tt_error *err)
{
    // Training goes on: the model is worth more than its records. Said once.
    tr->store = NULL;
    tti_training_progress_clear(tr);
    tt_log(TT_LOG_WARN,
           "the run store is no longer written: %s: %s; training goes on, the report will end here",
           err->where, err->what);
}

enum { RUNS_DIR_BYTES_MAX = 340 }; // with the run's name it fits into tt_job_result

// A full or failing disk is nobody's typing error; any other place that will not do is.
static tt_status
cannot_make(const char *path, int reason, tt_error *err)
{
    int disk = reason == ENOSPC || reason == EDQUOT || reason == EIO;
    const char *missing = reason == ENOENT ? " (its parent is not there)" : "";
    return tt_error_set(err, disk ? TT_IO : TT_INVALID, path,
                        disk ? "free some space (df -h) or choose another place with --runs DIR"
                             : "choose another place with --runs DIR or run.dir",
                        "cannot make the run directory: %s%s", tt_errno_text(reason), missing);
}

static tt_status
cannot_write(const char *path, int reason, tt_error *err)
{
    return tt_error_set(err, TT_IO, path, "free some space (df -h) or check the disk",
                        "cannot write it: %s", tt_errno_text(reason));
}

static tt_status
make_directory(const char *runs_dir, const char *name, tt_job_result *result, tt_error *err)
{
    struct stat info;
    if (strlen(runs_dir) > RUNS_DIR_BYTES_MAX)
        return cannot_make(runs_dir, ENAMETOOLONG, err);
    if (mkdir(runs_dir, 0777) != 0 && errno != EEXIST)
        return cannot_make(runs_dir, errno, err);
    if (stat(runs_dir, &info) == 0 && !S_ISDIR(info.st_mode))
        return cannot_make(runs_dir, ENOTDIR, err);
    time_t now = (time_t)tt_clock_wall_seconds();
    struct tm local;
    char stamp[32];
    (void)localtime_r(&now, &local);
    (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    for (int copy = 1; copy < 1000; copy++) { // two runs in one second
        char suffix[8] = "";
        if (copy > 1)
            (void)snprintf(suffix, sizeof suffix, "-%d", copy);
        (void)snprintf(result->run_id, sizeof result->run_id, "%s-%.96s%s", stamp, name, suffix);
        (void)snprintf(result->run_dir, sizeof result->run_dir, "%.*s/%s", RUNS_DIR_BYTES_MAX,
                       runs_dir, result->run_id);
        if (mkdir(result->run_dir, 0777) == 0)
            return TT_OK;
        if (errno != EEXIST)
            break;
    }
    return cannot_make(runs_dir, errno, err);
}

tt_status
tti_job_resolved_text(const tt_job *job, char **out, size_t *bytes, tt_error *err)
{
    *out = NULL;
    FILE *stream = open_memstream(out, bytes);
    if (stream == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the resolved job");
    tt_status status = tt_config_write_resolved(job->config, tti_job_keys, tti_job_key_count,
                                                &job->spec, stream, err);
    if (fclose(stream) != 0 && status == TT_OK)
        status = tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the resolved job");
    if (status != TT_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

// Written beside its place and renamed: a run that is killed here can still be resumed.
static tt_status
write_job_file(const tt_job *job, const char *run_dir, tt_error *err)
{
    char path[600], beside[620], *text;
    size_t bytes;
    (void)snprintf(path, sizeof path, "%s/job.yaml", run_dir);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    TT_TRY(tti_job_resolved_text(job, &text, &bytes, err));
    FILE *file = fopen(beside, "w");
    int good = file != NULL && fwrite(text, 1, bytes, file) == bytes;
    int reason = errno;
    if (file != NULL && fclose(file) != 0 && good) {
        good = 0;
        reason = errno;
    }
    free(text);
    if (good && rename(beside, path) == 0)
        return TT_OK;
    reason = good ? errno : reason;
    (void)unlink(beside);
    return cannot_write(path, reason, err);
}

static const char *
kind_name(tt_knob_kind kind)
{
    static const char *const names[] = {"bool", "int", "real", "enum"};
    return names[kind];
}

static tt_status
put_knobs(tt_store *store, const tt_job *job, tt_error *err)
{
    for (uint32_t k = 0; k < job->space.count; k++) {
        const tt_space_knob *knob = &job->space.knob[k];
        char values[512] = "";
        size_t used = 0;
        for (uint32_t v = 0;
             knob->knob->values != NULL && knob->knob->values[v] != NULL && used < sizeof values;
             v++)
            used += (size_t)snprintf(values + used, sizeof values - used, "%s%s", v > 0 ? "," : "",
                                     knob->knob->values[v]);
        static const char *const effects[] = {"setting", "moves data", "moves model",
                                              "moves data and model"};
        tt_store_knob row = {.ordinal = k,
                             .id = knob->knob->id,
                             .kind = kind_name(knob->knob->kind),
                             .unit = knob->knob->unit,
                             .min = knob->min,
                             .max = knob->max,
                             .start = knob->start,
                             .fixed = knob->fixed,
                             .reason = knob->reason,
                             .effect = effects[knob->knob->effect & 3],
                             .scale = knob->log_scale ? "log2" : "linear",
                             .values = values};
        TT_TRY(tt_store_put_knob(store, &row, err));
    }
    return TT_OK;
}

tt_status
tti_run_update(tt_store *store,
               const tt_job *job,
               const tt_job_result *result,
               const char *status,
               uint32_t final_setting,
               tt_error *err)
{
    const tti_spec *spec = &job->spec;
    tt_store_run run;
    tt_store_run_init(&run);
    run.id = result->run_id;
    run.name = job->name;
    run.program_version = tt_job_version();
    run.started_at = result->started_at;
    run.seed = (uint64_t)spec->seed;
    run.driver = tti_driver_names[spec->driver];
    run.consistency = tti_consistency_names[spec->consistency];
    run.nodes = job->node_count;
    run.model = tti_model_names[spec->model];
    run.data_rows = (int64_t)job->train->row_count;
    run.data_features = job->train->feature_count;
    run.target_loss = isfinite(spec->stop_objective) ? spec->stop_objective : spec->stop_loss;
    run.status = status;
    run.stop_reason = result->stop_reason;
    run.loss = result->loss;
    run.objective = result->objective;
    run.iterations = (int64_t)result->iterations;
    run.epochs = result->epochs;
    run.train_seconds = result->train_seconds;
    run.wall_seconds = result->wall_seconds_before + result->wall_seconds;
    run.examples_per_second = result->examples_per_second;
    run.generations = (int64_t)result->generations;
    run.reconfigure_seconds = result->reconfigure_seconds;
    run.explore_seconds = result->explore_seconds;
    run.start_setting = 0;
    run.final_setting = final_setting;
    run.untuned_seconds = result->untuned_seconds;
    run.engine = tti_engine_names[spec->engine];
    run.started_from = tti_warm_used(job) ? job->warm.reason : NULL;
    char tuner[TTI_TUNER_TEXT_BYTES];
    run.tuner = tti_job_tuner_text(job, tuner, sizeof tuner);
    return tt_store_put_run(store, &run, err);
}

static tt_status
fill_directory(tt_job *job, tt_job_result *result, tt_store **store, tt_error *err)
{
    char path[600];
    TT_TRY(write_job_file(job, result->run_dir, err));
    (void)snprintf(path, sizeof path, "%s/run.db", result->run_dir);
    TT_TRY(tt_store_create(path, store, err));
    TT_TRY(put_knobs(*store, job, err));
    tt_setting start;
    int tuned = job->spec.tuner_enabled && job->script_count == 0;
    tti_warm_begin(job, tuned, &start);
    TT_TRY(tt_store_put_setting(*store, 0, start.value, start.count, err));
    return tti_run_update(*store, job, result, "running", 0, err);
}

// The run directory is ours while we hold this: a second process that resumes the run is refused,
// and a report sees that a run's process is gone.
static tt_status
lock_directory(tt_job *job, const char *run_dir, tt_error *err)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/lock", run_dir);
    tt_status status = tt_lock_take(path, &job->run_lock, err);
    if (status == TT_NOTFOUND)
        return tt_error_set(err, TT_NOTFOUND, run_dir,
                            "check the run's name; trimtab runs shows what there is",
                            "there is no such run");
    if (status == TT_BUSY)
        return tt_error_set(err, TT_BUSY, run_dir, "wait for it to end, or stop it (Ctrl-C)",
                            "this run is going on in another process");
    return status;
}

// A run that could not begin leaves nothing behind.
static void
remove_directory(tt_job_result *result, tt_store **store)
{
    static const char *const names[] = {"job.yaml",       "run.db-wal", "run.db-shm",
                                        "run.db-journal", "run.db",     "lock"};
    char path[600];
    if (*store != NULL)
        (void)tt_store_close(*store, NULL);
    *store = NULL;
    for (size_t i = 0; i < TT_COUNT_OF(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", result->run_dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(result->run_dir);
    result->run_id[0] = result->run_dir[0] = '\0';
}

void
tti_record_running(tti_training *tr)
{
    tt_job_result now = *tr->identity;
    tt_error err = {0};
    now.loss = tr->last_loss;
    now.iterations = tr->iterations;
    now.epochs = tti_training_epochs(tr);
    now.train_seconds = tr->last_push_s;
    now.wall_seconds = tti_training_now(tr) - tr->resumed_s;
    now.examples_per_second =
        now.epochs * (double)tr->job->train->row_count / fmax(tr->last_push_s, 1e-9);
    now.generations = tr->rt->newest->view->generation;
    now.reconfigure_seconds = tr->reconfigure_s;
    if (tti_run_update(tr->store, tr->job, &now, "running", tr->setting_id, &err) != TT_OK)
        tti_record_failed(tr, &err);
}

tt_status
tti_run_begin(
    tt_job *job, const char *runs_dir, tt_job_result *result, tt_store **store, tt_error *err)
{
    *store = NULL;
    tt_status status = make_directory(runs_dir, job->name, result, err);
    if (status != TT_OK) {
        result->run_id[0] = result->run_dir[0] = '\0';
        return status;
    }
    status = lock_directory(job, result->run_dir, err);
    if (status == TT_OK)
        status = fill_directory(job, result, store, err);
    if (status != TT_OK)
        remove_directory(result, store);
    return status;
}

// A damaged store, or one of another search space, is kept under another name.
static tt_status
put_aside(const char *path, const char *ending, const char *why)
{
    static const char *const parts[] = {"", "-wal", "-shm"};
    char from[640], to[680];
    for (size_t i = 0; i < TT_COUNT_OF(parts); i++) {
        (void)snprintf(from, sizeof from, "%s%s", path, parts[i]);
        (void)snprintf(to, sizeof to, "%s.%s%s", path, ending, parts[i]);
        if (rename(from, to) != 0 && i == 0)
            return TT_IO;
    }
    tt_log(TT_LOG_WARN, "%s: %s; it is kept as run.db.%s, the report begins anew", path, why,
           ending);
    return TT_OK;
}

// When the run began, and how long earlier processes took.
static void
recall_start(tt_store *store, tt_job_result *result)
{
    tt_store_query *query;
    int has_row = 0;
    if (tt_store_query_open(store, "SELECT started_at, wall_seconds FROM run", &query, NULL) !=
        TT_OK)
        return;
    if (tt_store_query_next(query, &has_row, NULL) == TT_OK && has_row) {
        double before = tt_store_query_real(query, 1);
        if (tt_store_query_int(query, 0) > 0)
            result->started_at = tt_store_query_int(query, 0);
        result->wall_seconds_before = isfinite(before) ? before : 0;
    }
    tt_store_query_close(query);
}

static tt_status
open_store_again(tt_job *job,
                 const tti_resume *resume,
                 int same_space,
                 tt_job_result *result,
                 tt_store **store,
                 tt_error *err)
{
    char path[600];
    tt_error why = {0};
    (void)snprintf(path, sizeof path, "%s/run.db", result->run_dir);
    tt_status status = tt_store_open_again(path, store, &why);
    if (status == TT_OK && !same_space) {
        (void)tt_store_close(*store, NULL);
        *store = NULL;
        (void)put_aside(path, "before", "it is of another search space or way to tune");
        status = TT_NOTFOUND;
    } else if (status == TT_CORRUPT || status == TT_INVALID) {
        (void)put_aside(path, "damaged", why.what);
        status = TT_NOTFOUND;
    }
    if (status == TT_NOTFOUND)
        return fill_directory(job, result, store, err);
    if (status != TT_OK) {
        if (err != NULL)
            *err = why;
        return status;
    }
    recall_start(*store, result);
    TT_TRY(write_job_file(job, result->run_dir, err));
    return tt_store_forget_after(*store, resume->file.time_s, (int64_t)resume->file.iteration, err);
}

// Models that were being written (tt/workloads_tensor.h).
static void
remove_half_models(const char *run_dir)
{
    DIR *stream = opendir(run_dir);
    if (stream == NULL)
        return;
    // one thread reads this stream
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) // NOLINT(concurrency-mt-unsafe)
        if (strncmp(entry->d_name, "model.", 6) == 0 && strstr(entry->d_name, ".part-") != NULL)
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    (void)closedir(stream);
}

static void
remove_half_written(const char *run_dir)
{
    static const char *const names[] = {"job.yaml.new", "run.db.new", "run.db.new-journal"};
    remove_half_models(run_dir);
    char path[600];
    for (size_t i = 0; i < TT_COUNT_OF(names); i++) {
        (void)snprintf(path, sizeof path, "%.500s/%s", run_dir, names[i]);
        (void)unlink(path);
    }
}

// From what another master has left, if its nodes are there and it is enough; else they end, and it
// is the last checkpoint. They wait for another try if this job is not to go on with them.
static tt_status
open_resume(tt_job *job, const char *run_dir, tti_resume *resume, tt_error *err)
{
    tt_error why = {0};
    tti_starter *starter = job->starter;
    if (starter != NULL && starter->inherits) {
        if (tti_resume_inherit(job, &starter->journal, resume, &why) == TT_OK)
            return TT_OK;
        if (why.status == TT_INVALID || why.status == TT_NOMEM) {
            tti_processes_release(job);
            if (err != NULL)
                *err = why;
            return why.status;
        }
        tt_log(TT_LOG_WARN, "the nodes of this run cannot be taken over: %s", why.what);
        tti_processes_close(job);
        TT_TRY(tti_processes_open(job, NULL, err));
    }
    return tti_resume_open(job, run_dir, resume, err);
}

tt_status
tti_run_continue(tt_job *job,
                 const char *run_dir,
                 tti_resume *resume,
                 tt_job_result *result,
                 tt_store **store,
                 tt_error *err)
{
    const char *slash = strrchr(run_dir, '/');
    *store = NULL;
    (void)snprintf(result->run_dir, sizeof result->run_dir, "%s", run_dir);
    (void)snprintf(result->run_id, sizeof result->run_id, "%.150s",
                   slash != NULL ? slash + 1 : run_dir);
    TT_TRY(lock_directory(job, run_dir, err));
    remove_half_written(run_dir);
    TT_TRY(open_resume(job, run_dir, resume, err));
    int same_space = !resume->found || tti_resume_same_space(job, resume);
    return open_store_again(job, resume, same_space, result, store, err);
}

tt_status
tti_run_write_setting(const tt_job *job, const tt_job_result *result, tt_error *err)
{
    char path[600], value[96];
    (void)snprintf(path, sizeof path, "%s/setting.yaml", result->run_dir);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return cannot_write(path, errno, err);
    (void)fprintf(
        file,
        "# The setting in force when the job ended. As a start for another run of such a job:\n"
        "#   trimtab run job.yaml setting.yaml\n"
        "knobs:\n");
    for (uint32_t k = 0; k < job->space.count; k++) {
        const tt_space_knob *knob = &job->space.knob[k];
        if (!knob->fixed)
            (void)fprintf(file, "  %s: {start: %s}\n", knob->knob->id,
                          tt_space_format(knob, result->setting.value[k], value, sizeof value));
    }
    if (fclose(file) == 0)
        return TT_OK;
    tt_status status = cannot_write(path, errno, err);
    (void)unlink(path);
    return status;
}
