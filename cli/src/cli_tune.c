// trimtab tune: ask and tell on standard input and output.
#include "cli_internal.h"
#include "tune.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ASKS_MAX = 1000, INITIAL_MAX = 24 };

typedef struct tune {
    const char *space_path, *log_path;
    tt_minimizer_options options;
    tt_space_file *file;
    const tt_space *space;
    tt_minimizer *minimizer;
    tti_tune_log *log;
} tune;

// ---- answers ---------------------------------------------------------------------------------

// Prints one object and takes it over. 0, or 1 when it did not get there.
static int
answer(json_t *object)
{
    if (object == NULL) {
        (void)fprintf(stderr, "trimtab tune: no memory for an answer\n");
        return 1;
    }
    (void)json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
    (void)putchar('\n');
    json_decref(object);
    return tti_cli_flush();
}

static int
answer_error(const tt_error *err)
{
    char text[sizeof err->what + sizeof err->advice + 4];
    (void)snprintf(text, sizeof text, "%s%s%s", err->what, err->advice[0] != '\0' ? "; " : "",
                   err->advice);
    return answer(json_pack("{s:s}", "error", text));
}

static int
answer_fault(const char *fault)
{
    return answer(json_pack("{s:s}", "error", fault));
}

// What could not be written down did not happen: the program ends, and a resumed one agrees.
static int
log_failed(const tt_error *err)
{
    (void)answer_error(err);
    return tti_cli_fail(err);
}

// ---- requests --------------------------------------------------------------------------------

static int
ask_once(tune *t)
{
    tt_minimizer_proposal p;
    tt_error err = {0};
    if (tt_minimizer_ask(t->minimizer, &p, &err) != TT_OK)
        return answer_error(&err);
    if (tti_tune_log_asked(t->log, &p, &err) != TT_OK)
        return log_failed(&err);
    return answer(json_pack("{s:I, s:o, s:s, s:s, s:o, s:[o, o]}", "id", (json_int_t)p.id,
                            "setting", tti_tune_setting_json(t->space, &p.setting), "phase",
                            tt_minimizer_phase_name(p.phase), "reason", p.reason, "predicted",
                            tti_tune_number(p.predicted), "interval80", tti_tune_number(p.low),
                            tti_tune_number(p.high)));
}

static int
do_ask(tune *t, const json_t *body)
{
    json_int_t count = json_integer_value(body);
    if (!json_is_integer(body) || count < 1 || count > ASKS_MAX)
        return answer_fault("ask for a number of settings from 1 to 1000");
    int code = 0;
    for (json_int_t i = 0; i < count && code == 0; i++)
        code = ask_once(t);
    return code;
}

// What a tell says of the value: y, or that there is none.
static const char *
read_result(const json_t *body, tt_minimizer_result *out)
{
    const json_t *y = json_object_get(body, "y"), *noise = json_object_get(body, "noise"),
                 *failed = json_object_get(body, "failed");
    *out = (tt_minimizer_result){.failed = json_is_true(failed)};
    if (failed != NULL && !json_is_boolean(failed))
        return "failed must be true or false";
    if (out->failed)
        return y == NULL || json_is_null(y) ? NULL : "what has failed has no y";
    if (!json_is_number(y))
        return "y must be a number; of a failed evaluation tell \"failed\": true";
    if (noise != NULL && !json_is_null(noise) && !json_is_number(noise))
        return "noise must be a number, the standard deviation of y";
    out->y = json_number_value(y);
    out->noise = json_number_value(noise);
    return NULL;
}

static const char *
check_tell(const json_t *body)
{
    static const char *const known[] = {"id", "setting", "y", "noise", "failed", NULL};
    if (!json_is_object(body))
        return "tell an object: {\"id\": 1, \"y\": 3.2}";
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)body, name, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], name) != 0)
            i++;
        if (known[i] == NULL)
            return "tell takes id or setting, and y and noise, or failed";
    }
    const json_t *id = json_object_get(body, "id");
    if ((id != NULL) == (json_object_get(body, "setting") != NULL))
        return "tell either the id of a proposal or a setting";
    if (id != NULL && (!json_is_integer(id) || json_integer_value(id) < 1))
        return "an id is a positive whole number";
    return NULL;
}

static int
do_tell(tune *t, const json_t *body)
{
    tt_minimizer_result result;
    tt_setting setting;
    tt_error err = {0};
    const char *fault = check_tell(body);
    if (fault == NULL)
        fault = read_result(body, &result);
    if (fault != NULL)
        return answer_fault(fault);
    const json_t *id_value = json_object_get(body, "id"), *given = json_object_get(body, "setting");
    uint64_t id = (uint64_t)json_integer_value(id_value);
    if (given != NULL && tti_tune_setting_read(t->space, given, &setting, &err) != TT_OK)
        return answer_error(&err);
    if (tt_minimizer_tell(t->minimizer, id, &setting, &result, &err) != TT_OK)
        return answer_error(&err);
    if (tti_tune_log_told(t->log, id, &setting, &result, &err) != TT_OK)
        return log_failed(&err);
    return answer(json_pack("{s:i}", "ok", 1));
}

static int
do_best(tune *t, const json_t *body)
{
    tt_minimizer_best best;
    TT_UNUSED(body);
    if (tt_minimizer_best_setting(t->minimizer, &best) != 0)
        return answer_fault("nothing was told yet");
    return answer(json_pack("{s:o, s:f, s:i, s:o}", "setting",
                            tti_tune_setting_json(t->space, &best.setting), "y", best.y,
                            "evaluations", (int)best.evaluations, "predicted",
                            tti_tune_number(best.predicted)));
}

static int
do_pending(tune *t, const json_t *body)
{
    TT_UNUSED(body);
    json_t *list = json_array();
    uint64_t id = 0;
    const tt_setting *setting;
    while ((setting = tt_minimizer_next_pending(t->minimizer, &id)) != NULL)
        (void)json_array_append_new(list, json_pack("{s:I, s:o}", "id", (json_int_t)id, "setting",
                                                    tti_tune_setting_json(t->space, setting)));
    return answer(json_pack("{s:o}", "pending", list));
}

static int
do_line(tune *t, const char *line, unsigned long number)
{
    static const struct {
        const char *name;
        int (*run)(tune *t, const json_t *body);
    } requests[] = {{"ask", do_ask}, {"tell", do_tell}, {"best", do_best}, {"pending", do_pending}};
    json_error_t fault;
    char text[sizeof fault.text + 64];
    json_t *request = json_loads(line, JSON_REJECT_DUPLICATES, &fault);
    if (request == NULL) {
        (void)snprintf(text, sizeof text, "line %lu is not a JSON object: %s", number, fault.text);
        return answer_fault(text);
    }
    int code = -1;
    for (size_t i = 0; i < TT_COUNT_OF(requests) && code < 0; i++) {
        const json_t *body = json_object_get(request, requests[i].name);
        if (body != NULL && json_object_size(request) == 1)
            code = requests[i].run(t, body);
    }
    json_decref(request);
    return code >= 0 ? code : answer_fault("a request is one of ask, tell, best and pending");
}

static int
serve(tune *t)
{
    char *line = NULL;
    size_t capacity = 0;
    int code = 0;
    for (unsigned long number = 1; code == 0 && getline(&line, &capacity, stdin) > 0; number++)
        if (line[strspn(line, " \t\r\n")] != '\0')
            code = do_line(t, line, number);
    free(line);
    return code;
}

// ---- the command -----------------------------------------------------------------------------

static int
whole_number(const char *text, unsigned long long max, unsigned long long *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= max;
}

static int
parse(int argc, char **argv, tune *t)
{
    t->options.seed = 1;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        unsigned long long number = 0;
        int takes = strcmp(word, "--space") == 0 || strcmp(word, "--log") == 0 ||
                    strcmp(word, "--seed") == 0 || strcmp(word, "--initial") == 0;
        if (!takes && word[0] == '-')
            return tti_cli_unknown_option("tune", word);
        if (!takes)
            return tti_cli_bad_usage("tune", "unexpected '%s'", word);
        if (i + 1 == argc || argv[i + 1][0] == '\0')
            return tti_cli_bad_usage("tune", "%s needs a value", word);
        const char *value = argv[++i];
        if (strcmp(word, "--space") == 0)
            t->space_path = value;
        else if (strcmp(word, "--log") == 0)
            t->log_path = value;
        else if (!whole_number(value, word[2] == 's' ? INT64_MAX : INITIAL_MAX, &number))
            return tti_cli_bad_usage("tune", "%s: '%s' is not a whole number%s", word, value,
                                     word[2] == 's' ? "" : " up to 24");
        else if (word[2] == 's')
            t->options.seed = number;
        else
            t->options.initial = (uint32_t)number;
    }
    if (t->space_path == NULL)
        return tti_cli_bad_usage("tune", "--space is missing");
    return 0;
}

static int
read_space(tune *t)
{
    tt_config *config;
    tt_error err = {0};
    if (tt_config_open(&config, &err) != TT_OK)
        return tti_cli_fail(&err);
    (void)tt_config_load_file(config, t->space_path, NULL);
    int code = 0;
    tt_status status =
        tt_config_error_count(config) == 0 ? tt_space_file_read(config, &t->file) : TT_INVALID;
    if (status != TT_OK) {
        tt_config_errors_print(config, stderr);
        code = tti_cli_exit_code(status);
    } else {
        t->space = tt_space_file_space(t->file);
        t->options.use_start = tt_space_file_has_start(t->file);
    }
    tt_config_close(config);
    return code;
}

static int
open_all(tune *t)
{
    tt_error err = {0};
    uint32_t events = 0;
    int code = read_space(t);
    if (code != 0)
        return code;
    if (tt_minimizer_open(t->space, &t->options, &t->minimizer, &err) != TT_OK)
        return tti_cli_fail(&err);
    if (t->log_path == NULL)
        return 0;
    if (tti_tune_log_open(t->log_path, t->file, &t->options, t->minimizer, &t->log, &events,
                          &err) != TT_OK)
        return tti_cli_fail(&err);
    if (events > 0)
        (void)fprintf(stderr, "trimtab tune: goes on with %u results in %s\n",
                      tt_minimizer_evaluations(t->minimizer), t->log_path);
    return 0;
}

int
tti_cli_tune(int argc, char **argv)
{
    tune t = {.space_path = NULL};
    int code = parse(argc, argv, &t);
    if (code == 0)
        code = open_all(&t);
    if (code == 0)
        code = serve(&t);
    tti_tune_log_close(t.log);
    tt_minimizer_close(t.minimizer);
    tt_space_file_close(t.file);
    return code;
}
