// trimtab doctor.
#include "cli_internal.h"
#include "cli_job.h"
#include "tt/job.h"
#include <jansson.h>
#include <string.h>

static const char *const healths[] = {"ok", "doubtful", "fault"};

static void
print_json(const tt_job_check *checks, uint32_t count, int is_fit)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "check", checks[i].what,
                                                    "health", healths[checks[i].health], "found",
                                                    checks[i].found, "advice", checks[i].advice));
    json_t *all = json_pack("{s:b, s:o}", "fit", is_fit, "checks", list);
    (void)json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    (void)printf("\n");
    json_decref(all);
}

static void
print_text(const tt_job_check *checks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)printf("%-8s  %-14s  %s\n", healths[checks[i].health], checks[i].what,
                     checks[i].found);
        if (checks[i].advice[0] != '\0')
            (void)printf("%26s%s\n", "", checks[i].advice);
    }
}

int
tti_cli_doctor(int argc, char **argv)
{
    static tti_job_arguments arguments;
    static tt_job_check checks[TT_JOB_CHECKS_MAX];
    tt_job *job;
    int is_fit = 1, code = tti_job_parse("doctor", argc, argv, &arguments);
    if (code == 0)
        code = tti_job_open(&arguments, &job);
    if (code != 0)
        return code;
    uint32_t count = tt_job_examine(job, arguments.runs_dir, checks);
    for (uint32_t i = 0; i < count; i++)
        is_fit &= checks[i].health != TT_JOB_FAULTY;
    if (arguments.json)
        print_json(checks, count, is_fit);
    else
        print_text(checks, count);
    tt_job_close(job);
    int flushed = tti_cli_flush();
    return is_fit ? flushed : 1;
}
