// trimtab run, plan, schema and node.
#include "cli_job.h"
#include "cli_internal.h"
#include "tt/job.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// RUN is a directory, or a name below the runs. Without a job file the run's own is taken.
static void
find_resumed(tti_job_arguments *out)
{
    struct stat info;
    size_t length = strlen(out->resume);
    while (length > 1 && out->resume[length - 1] == '/')
        length--;
    if (stat(out->resume, &info) == 0)
        (void)snprintf(out->resume_dir, sizeof out->resume_dir, "%.*s", (int)length, out->resume);
    else
        (void)snprintf(out->resume_dir, sizeof out->resume_dir, "%.250s/%.250s",
                       out->runs_dir != NULL ? out->runs_dir : "runs", out->resume);
    (void)snprintf(out->resume_file, sizeof out->resume_file, "%s/job.yaml", out->resume_dir);
    if (out->source.file_count == 0)
        out->files[out->source.file_count++] = out->resume_file;
}

int
tti_job_parse(const char *command, int argc, char **argv, tti_job_arguments *out)
{
    // What only one of them has.
    int runs = strcmp(command, "run") == 0, plans = strcmp(command, "plan") == 0;
    int examines = strcmp(command, "doctor") == 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        int wants_value = strcmp(word, "--set") == 0 || (plans && strcmp(word, "--seeds") == 0) ||
                          ((runs || examines) && strcmp(word, "--runs") == 0) ||
                          (runs && strcmp(word, "--resume") == 0);
        if (wants_value && i + 1 == argc)
            return tti_cli_bad_usage(command, "%s needs a value", word);
        if (out->source.override_count == TTI_LIST_MAX || out->source.file_count == TTI_LIST_MAX)
            return tti_cli_bad_usage(command, "more than %d files or overrides", TTI_LIST_MAX);
        if (strcmp(word, "--set") == 0)
            out->overrides[out->source.override_count++] = argv[++i];
        else if (strncmp(word, "--set=", 6) == 0)
            out->overrides[out->source.override_count++] = word + 6;
        else if ((runs || examines) && strcmp(word, "--runs") == 0)
            out->runs_dir = argv[++i];
        else if (runs && strcmp(word, "--resume") == 0)
            out->resume = argv[++i];
        else if (plans && strcmp(word, "--seeds") == 0)
            out->seeds = argv[++i];
        else if (plans && strcmp(word, "--simulate") == 0)
            out->simulate = 1;
        else if (!examines && strcmp(word, "--cold") == 0)
            out->source.cold = 1;
        else if (strcmp(word, "--json") == 0)
            out->json = 1;
        else if (runs && (strcmp(word, "-q") == 0 || strcmp(word, "--quiet") == 0))
            out->quiet = 1;
        else if (runs && (strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0))
            out->verbose = 1;
        else if (word[0] == '-' && word[1] != '\0')
            return tti_cli_unknown_option(command, word);
        else
            out->files[out->source.file_count++] = word;
    }
    if (out->runs_dir != NULL && out->runs_dir[0] == '\0')
        return tti_cli_bad_usage(command, "--runs needs a directory");
    if (out->resume != NULL)
        find_resumed(out);
    if (out->source.file_count == 0)
        return tti_cli_bad_usage(command, "which job? name its YAML file");
    out->source.files = out->files;
    out->source.overrides = out->overrides;
    return 0;
}

int
tti_job_open(const tti_job_arguments *arguments, tt_job **job)
{
    tt_error err = {0};
    tt_status status = tt_job_open(&arguments->source, stderr, job, &err);
    if (status == TT_OK)
        return 0;
    // The faults of a configuration were all printed already.
    if (strstr(err.what, "errors in the configuration") == NULL)
        tt_error_print(stderr, &err);
    return tti_cli_exit_code(status);
}

static void
on_interrupt(int signal_number)
{
    static volatile sig_atomic_t count;
    if (++count > 1)
        _exit(128 + signal_number); // the second one: at once
    tt_job_interrupt();
}

static void
catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static int
count_seeds(const tti_job_arguments *arguments, uint32_t *out)
{
    char *end = NULL;
    *out = 1;
    if (arguments->seeds == NULL)
        return 0;
    if (!arguments->simulate)
        return tti_cli_bad_usage("plan", "--seeds is for --simulate");
    long seeds = strtol(arguments->seeds, &end, 10);
    if (end == arguments->seeds || *end != '\0' || seeds < 1 || seeds > 100)
        return tti_cli_bad_usage("plan", "--seeds must be a number from 1 to 100, not '%s'",
                                 arguments->seeds);
    *out = (uint32_t)seeds;
    return 0;
}

static int
simulate(const tti_job_arguments *arguments, uint32_t seeds)
{
    const tt_job_forecast_options options = {
        .seeds = seeds, .json = arguments->json, .progress = isatty(STDERR_FILENO)};
    tt_error err = {0};
    int reached;
    tt_log_set_level(TT_LOG_WARN);
    catch_interrupts();
    tt_status status =
        tt_job_forecast(&arguments->source, &options, stderr, stdout, &reached, &err);
    if (status != TT_OK && strstr(err.what, "errors in the configuration") != NULL)
        return tti_cli_exit_code(status); // they were all printed already
    if (status == TT_CANCELLED)
        return 130;
    if (status != TT_OK)
        return tti_cli_fail(&err);
    int flushed = tti_cli_flush();
    if (reached)
        return flushed;
    (void)fprintf(stderr, "trimtab plan: the job's end was not reached in any simulated run; ask "
                          "for less (stop.loss) or allow more (stop.max_epochs, stop.max_time)\n");
    return 1;
}

int
tti_cli_plan(int argc, char **argv)
{
    static tti_job_arguments arguments;
    tt_job *job;
    uint32_t seeds;
    int code = tti_job_parse("plan", argc, argv, &arguments);
    if (code == 0)
        code = count_seeds(&arguments, &seeds);
    if (code != 0)
        return code;
    if (arguments.simulate)
        return simulate(&arguments, seeds);
    code = tti_job_open(&arguments, &job);
    if (code != 0)
        return code;
    (void)(arguments.json ? tt_job_plan_json(job, stdout) : tt_job_plan_text(job, stdout));
    tt_job_close(job);
    return tti_cli_flush();
}

int
tti_cli_schema(int argc, char **argv)
{
    if (argc > 0 && argv[0][0] == '-')
        return tti_cli_unknown_option("schema", argv[0]);
    if (argc > 0)
        return tti_cli_bad_usage("schema", "unexpected '%s'", argv[0]);
    (void)tt_job_schema_json(stdout);
    return tti_cli_flush();
}

// ---- run --------------------------------------------------------------------------------------

static void
print_seconds(double seconds)
{
    if (seconds < 60)
        (void)printf("%.1f s", seconds);
    else
        (void)printf("%.0f:%02.0f", floor(seconds / 60), fmod(seconds, 60));
}

static void
print_gain(const tt_job_result *result)
{
    if (!isfinite(result->untuned_seconds))
        return;
    double saved = result->untuned_seconds - result->train_seconds;
    (void)printf("Without tuning this job takes ");
    print_seconds(result->untuned_seconds);
    (void)printf(" (measured just now): ");
    print_seconds(fabs(saved));
    (void)printf(" %s, %.2fx.\n", saved >= 0 ? "saved" : "lost",
                 result->untuned_seconds / result->train_seconds);
}

static int
was_restarted(const tt_job_result *result)
{
    int restarted = 0;
    for (uint32_t i = 0; i < result->reconfiguration_kinds; i++)
        restarted |= strcmp(result->reconfigurations[i].method, "checkpoint") == 0;
    return restarted;
}

static void
print_validation(const tt_job_result *result)
{
    if (result->validations == 0)
        return;
    (void)printf("validation");
    for (uint32_t i = 0; i < result->validation_count; i++)
        (void)printf("%s %s %.4f", i > 0 ? "," : "", result->validation[i].name,
                     result->validation[i].value);
    (void)printf(" (the classes' shares alone: loss %.4f).  ", result->prior_loss);
    if (result->saved_best)
        (void)printf("Saved is the best model, of evaluation %u of %u, epoch %.1f.\n",
                     result->best_validation, result->validations, result->best_epoch);
    else if (result->best_validation == result->validations)
        (void)printf("The last of %u evaluations was the best.\n", result->validations);
    else
        (void)printf("The best of %u evaluations was %.4f at epoch %.1f: stop.patience would have "
                     "kept that model.\n",
                     result->validations, result->best_validation_loss, result->best_epoch);
}

static void
print_result(const tt_job_result *result)
{
    static const char *const outcomes[] = {"converged", "stopped", "interrupted", "failed"};
    (void)printf("%s (%s): loss %.4f after ", outcomes[result->outcome], result->stop_reason,
                 result->loss);
    print_seconds(result->train_seconds);
    (void)printf(", %.1f epochs, %.0f examples/s.", result->epochs, result->examples_per_second);
    for (uint32_t i = 0; i < result->test_count; i++)
        (void)printf("%s %s %.4f", i == 0 ? "  test" : ",", result->test[i].name,
                     result->test[i].value);
    (void)printf("\n");
    print_validation(result);
    if (result->deaths > 0)
        (void)printf("nodes: %u died, %u came back.\n", result->deaths, result->returns);
    if (result->takeovers > 0)
        (void)printf("nodes: taken over from a master that had died.\n");
    if (result->setting_changes > 0)
        (void)printf("tuning: %u changes of setting%s, %.1f s spent exploring, "
                     "%.2f s lost reconfiguring.  "
                     "Final setting: %s/setting.yaml\n",
                     result->setting_changes, was_restarted(result) ? "" : " without a pause",
                     result->explore_seconds, result->reconfigure_seconds, result->run_dir);
    print_gain(result);
    (void)printf("model:  %s/model.safetensors\nreport: trimtab report %s\n", result->run_dir,
                 result->run_dir);
}

int
tti_cli_run(int argc, char **argv)
{
    static tti_job_arguments arguments;
    static tt_job_result result;
    tt_error err = {0};
    tt_job *job;
    int code = tti_job_parse("run", argc, argv, &arguments);
    if (code != 0)
        return code;
    tt_log_set_level(arguments.quiet     ? TT_LOG_ERROR
                     : arguments.verbose ? TT_LOG_DEBUG
                                         : TT_LOG_INFO);
    code = tti_job_open(&arguments, &job);
    if (code != 0)
        return code;
    catch_interrupts();
    tt_job_run_options options = {.runs_dir = arguments.runs_dir,
                                  .resume = arguments.resume != NULL ? arguments.resume_dir : NULL,
                                  .progress = !arguments.quiet && isatty(STDERR_FILENO),
                                  .events = !arguments.quiet};
    tt_status status = tt_job_run(job, &options, &result, &err);
    if (arguments.json)
        (void)tt_job_result_json(job, &result, stdout);
    else if (status == TT_OK)
        print_result(&result);
    tt_job_close(job);
    int flushed = tti_cli_flush();
    if (status != TT_OK && strstr(err.what, "errors in the configuration") != NULL)
        return tti_cli_exit_code(status); // they were all printed already
    if (status != TT_OK)
        return tti_cli_fail(&err);
    return result.outcome == TT_JOB_INTERRUPTED ? 130 : flushed;
}

int
tti_cli_node(int argc, char **argv)
{
    tt_error err = {0};
    if (argc > 0)
        return tti_cli_expected("node", argv[0], "nothing");
    return tt_job_serve_host(&err) == TT_OK ? 0 : tti_cli_fail(&err);
}
