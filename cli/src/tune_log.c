// The log of trimtab tune: what was asked and told, one JSON object a line, and back.
#include "tt/core_lock.h"
#include "tune.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 1 };

struct tti_tune_log {
    FILE *file;
    int lock;
    char *path;
    const tt_space *space;
    uint64_t print;
};

// What replaying goes by.
typedef struct replay {
    tti_tune_log *log;
    const tt_minimizer_options *options;
    tt_minimizer *minimizer;
    uint32_t line;
} replay;

static tt_status
log_error(const tti_tune_log *log, tt_status status, const char *what, tt_error *err)
{
    return tt_error_set(err, status, log->path, NULL, "%s: %s", what, tt_errno_text(errno));
}

// ---- writing ---------------------------------------------------------------------------------

// Takes `object` over.
static tt_status
append(tti_tune_log *log, json_t *object, tt_error *err)
{
    if (object == NULL)
        return tt_error_set(err, TT_NOMEM, log->path, NULL, "no memory for a line of the log");
    int failed = json_dumpf(object, log->file, JSON_COMPACT | JSON_REAL_PRECISION(17)) != 0 ||
                 fputc('\n', log->file) == EOF || fflush(log->file) != 0 ||
                 fdatasync(fileno(log->file)) != 0;
    json_decref(object);
    if (failed)
        return log_error(log, TT_IO, "cannot write the log", err);
    return TT_OK;
}

static json_t *
memory_json(const tt_minimizer_memory *memory, uint32_t knobs)
{
    json_t *length = json_array();
    for (uint32_t d = 0; d < knobs; d++)
        (void)json_array_append_new(length, json_real(memory->params.length[d]));
    return json_pack("{s:b, s:f, s:f, s:o, s:f, s:f}", "fitted", memory->fitted, "lambda",
                     memory->lambda, "share", memory->share, "length", length, "signal",
                     memory->params.signal, "noise", memory->params.noise);
}

tt_status
tti_tune_log_asked(tti_tune_log *log, const tt_minimizer_proposal *p, tt_error *err)
{
    if (log == NULL)
        return TT_OK;
    return append(
        log,
        json_pack("{s:{s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s}}", "asked", "id",
                  (json_int_t)p->id, "setting", tti_tune_setting_json(log->space, &p->setting),
                  "phase", tt_minimizer_phase_name(p->phase), "predicted",
                  tti_tune_number(p->predicted), "low", tti_tune_number(p->low), "high",
                  tti_tune_number(p->high), "log_ei", tti_tune_number(p->log_ei), "memory",
                  memory_json(&p->memory, log->space->count), "reason", p->reason),
        err);
}

tt_status
tti_tune_log_told(tti_tune_log *log,
                  uint64_t id,
                  const tt_setting *setting,
                  const tt_minimizer_result *result,
                  tt_error *err)
{
    if (log == NULL)
        return TT_OK;
    json_t *told =
        json_pack("{s:b, s:o, s:f}", "failed", result->failed, "y",
                  result->failed ? json_null() : json_real(result->y), "noise", result->noise);
    if (told != NULL && id > 0)
        (void)json_object_set_new(told, "id", json_integer((json_int_t)id));
    else if (told != NULL)
        (void)json_object_set_new(told, "setting", tti_tune_setting_json(log->space, setting));
    return append(log, json_pack("{s:o}", "told", told), err);
}

static json_t *
header_json(const tti_tune_log *log, const tt_minimizer_options *options)
{
    char print[20];
    (void)snprintf(print, sizeof print, "%016llx", (unsigned long long)log->print);
    return json_pack("{s:i, s:s, s:I, s:i}", "trimtab_tune", FORMAT, "space", print, "seed",
                     (json_int_t)options->seed, "initial", (int)options->initial);
}

// ---- reading ---------------------------------------------------------------------------------

static tt_status
damaged(const replay *r, const char *what, tt_error *err)
{
    return tt_error_set(err, TT_CORRUPT, r->log->path, "restore it, or begin another log",
                        "line %u of the log is damaged: %s", r->line, what);
}

static tt_status
check_header(const replay *r, const json_t *line, tt_error *err)
{
    static const char *const keys[] = {"trimtab_tune", "space", "seed", "initial"};
    static const char *const what[] = {"format", "space", "seed", "number of initial settings"};
    json_t *own = header_json(r->log, r->options);
    tt_status status = own != NULL ? TT_OK : TT_NOMEM;
    for (size_t i = 0; i < TT_COUNT_OF(keys) && status == TT_OK; i++)
        if (!json_equal(json_object_get(own, keys[i]), json_object_get(line, keys[i])))
            status =
                tt_error_set(err, TT_INVALID, r->log->path, "name another file, or the same space",
                             "the log was begun with another %s", what[i]);
    json_decref(own);
    return status;
}

static int
read_memory(const json_t *object, uint32_t knobs, tt_minimizer_memory *out)
{
    const json_t *length = json_object_get(object, "length");
    *out = (tt_minimizer_memory){.fitted = json_is_true(json_object_get(object, "fitted")),
                                 .lambda = json_number_value(json_object_get(object, "lambda")),
                                 .share = json_number_value(json_object_get(object, "share"))};
    out->params.signal = json_number_value(json_object_get(object, "signal"));
    out->params.noise = json_number_value(json_object_get(object, "noise"));
    for (uint32_t d = 0; d < knobs; d++)
        out->params.length[d] = json_number_value(json_array_get(length, d));
    return json_array_size(length) == knobs && fabs(out->lambda) <= 2 && out->share > 0 &&
           out->share <= 1;
}

static tt_status
replay_asked(const replay *r, const json_t *asked, tt_error *err)
{
    tt_minimizer_proposal proposal = {
        .id = (uint64_t)json_integer_value(json_object_get(asked, "id"))};
    tt_error why = {0};
    const tt_space *space = r->log->space;
    if (tti_tune_setting_read(space, json_object_get(asked, "setting"), &proposal.setting, &why) !=
        TT_OK)
        return damaged(r, why.what, err);
    if (!read_memory(json_object_get(asked, "memory"), space->count, &proposal.memory))
        return damaged(r, "it does not say what the model had learned", err);
    if (tt_minimizer_restore(r->minimizer, &proposal, &why) != TT_OK)
        return damaged(r, why.what, err);
    return TT_OK;
}

static tt_status
replay_told(const replay *r, const json_t *told, tt_error *err)
{
    const json_t *id = json_object_get(told, "id");
    tt_minimizer_result result = {
        .y = json_number_value(json_object_get(told, "y")),
        .noise = json_number_value(json_object_get(told, "noise")),
        .failed = json_is_true(json_object_get(told, "failed")),
    };
    tt_setting setting;
    tt_error why = {0};
    tt_status status = TT_OK;
    if (id == NULL)
        status =
            tti_tune_setting_read(r->log->space, json_object_get(told, "setting"), &setting, &why);
    if (status == TT_OK)
        status = tt_minimizer_tell(r->minimizer, (uint64_t)json_integer_value(id), &setting,
                                   &result, &why);
    return status == TT_OK ? TT_OK : damaged(r, why.what, err);
}

static tt_status
replay_line(const replay *r, const char *text, tt_error *err)
{
    json_error_t fault;
    json_t *line = json_loads(text, 0, &fault);
    tt_status status;
    if (line == NULL)
        return damaged(r, fault.text, err);
    if (r->line == 1)
        status = check_header(r, line, err);
    else if (json_object_get(line, "asked") != NULL)
        status = replay_asked(r, json_object_get(line, "asked"), err);
    else if (json_object_get(line, "told") != NULL)
        status = replay_told(r, json_object_get(line, "told"), err);
    else
        status = damaged(r, "it is neither asked nor told", err);
    json_decref(line);
    return status;
}

// Reads all whole lines; *good: bytes up to the end of the last one.
static tt_status
replay_all(replay *r, off_t *good, tt_error *err)
{
    char *text = NULL;
    size_t capacity = 0;
    tt_status status = TT_OK;
    *good = 0;
    for (ssize_t length; status == TT_OK &&
                         (length = getline(&text, &capacity, r->log->file)) > 0 &&
                         text[length - 1] == '\n';) {
        r->line++;
        status = replay_line(r, text, err);
        *good += length;
    }
    free(text);
    if (status == TT_OK && ferror(r->log->file))
        return log_error(r->log, TT_IO, "cannot read the log", err);
    return status;
}

// ---- life ------------------------------------------------------------------------------------

static tt_status
begin(tti_tune_log *log, replay *r, tt_error *err)
{
    off_t good;
    TT_TRY(tt_lock_take(log->path, &log->lock, err));
    log->file = fopen(log->path, "r+");
    if (log->file == NULL)
        return log_error(log, TT_IO, "cannot open the log", err);
    TT_TRY(replay_all(r, &good, err));
    // What was cut off while it was written was not answered either.
    if (fseeko(log->file, good, SEEK_SET) != 0 || ftruncate(fileno(log->file), good) != 0)
        return log_error(log, TT_IO, "cannot take away a line that was cut off", err);
    return r->line == 0 ? append(log, header_json(log, r->options), err) : TT_OK;
}

tt_status
tti_tune_log_open(const char *path,
                  const tt_space_file *space,
                  const tt_minimizer_options *options,
                  tt_minimizer *minimizer,
                  tti_tune_log **out,
                  uint32_t *events,
                  tt_error *err)
{
    *out = NULL;
    *events = 0;
    tti_tune_log *log = tt_mem_zalloc(1, sizeof *log);
    if (log == NULL)
        return tt_error_set(err, TT_NOMEM, path, NULL, "no memory for a log");
    log->lock = -1;
    log->space = tt_space_file_space(space);
    log->print = tt_space_file_print(space);
    log->path = tt_mem_strdup(path);
    replay r = {.log = log, .options = options, .minimizer = minimizer};
    tt_status status = log->path != NULL ? begin(log, &r, err)
                                         : tt_error_set(err, TT_NOMEM, path, NULL, "no memory");
    if (status != TT_OK) {
        tti_tune_log_close(log);
        return status;
    }
    *events = r.line > 0 ? r.line - 1 : 0;
    *out = log;
    return TT_OK;
}

void
tti_tune_log_close(tti_tune_log *log)
{
    if (log == NULL)
        return;
    if (log->file != NULL)
        (void)fclose(log->file); // every line was flushed when it was written
    if (log->lock >= 0)
        (void)close(log->lock);
    tt_mem_free(log->path);
    tt_mem_free(log);
}
