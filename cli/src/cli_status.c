// trimtab status.
#include "cli_internal.h"
#include "tt/core_lock.h"
#include <jansson.h>
#include <string.h>
#include <time.h>

static double
number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *
text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static void
print_node(const json_t *node)
{
    const char *role = text(node, "role");
    char sent[24];
    (void)printf("%4.0f  %-6s  %-7s", number(node, "node"), role, text(node, "state"));
    if (strcmp(text(node, "state"), "dead") == 0)
        (void)printf("  %-34s", "");
    else if (strcmp(role, "worker") == 0)
        (void)printf("  %10.0f iterations, %5.0f behind", number(node, "iterations"),
                     number(node, "behind"));
    else
        (void)printf("  %10.0f partitions %12s", number(node, "partitions"), "");
    (void)printf("%12s", tt_text_bytes(number(node, "bytes_sent"), sent, sizeof sent));
    if (json_object_get(node, "host") != NULL)
        (void)printf("  %s, process %.0f, heard %.1f s ago", text(node, "host"),
                     number(node, "pid"), number(node, "heard_seconds_ago"));
    (void)printf("\n");
}

static void
print_text(const json_t *status)
{
    const json_t *nodes = json_object_get(status, "nodes");
    char unbacked[60] = "";
    if (json_object_get(status, "partitions_unbacked") != NULL)
        (void)snprintf(unbacked, sizeof unbacked, ", %.0f without a copy",
                       number(status, "partitions_unbacked"));
    (void)printf("%s: %.1f s, %.0f iterations, epoch %.1f, loss %.4f, %s on engine %s\n",
                 text(status, "run"), number(status, "elapsed_seconds"),
                 number(status, "iterations"), number(status, "epochs"), number(status, "loss"),
                 text(status, "consistency"), text(status, "engine"));
    (void)printf("setting: %s\n", text(status, "setting"));
    (void)printf("generation %.0f, %.0f partitions on their way%s, staleness %.1f on average, %.0f "
                 "deaths, %.0f returns; %.0f s ago\n",
                 number(status, "generation"), number(status, "partitions_moving"), unbacked,
                 number(status, "staleness_mean"), number(status, "deaths"),
                 number(status, "returns"), (double)time(NULL) - number(status, "written_at"));
    if (number(status, "connections_refused") > 0)
        (void)printf(
            "%.0f connections refused: they did not show the job's key, or sent nonsense\n",
            number(status, "connections_refused"));
    (void)printf("\nnode  role    state    %-34s %12s\n", "how far", "sent");
    for (size_t i = 0; i < json_array_size(nodes); i++)
        print_node(json_array_get(nodes, i));
}

static int
show(const char *run, int json)
{
    char path[1200];
    (void)snprintf(path, sizeof path, "%s/lock", run);
    int is_going = tt_lock_ask(path) != TT_LOCK_FREE;
    (void)snprintf(path, sizeof path, "%s/status.json", run);
    json_t *status = is_going ? json_load_file(path, 0, NULL) : NULL;
    if (status == NULL) {
        if (json)
            (void)printf("{\"going_on\": false}\n");
        else
            (void)printf("%s is not going on; what it did: trimtab report %s\n", run, run);
        return 1;
    }
    (void)json_object_set_new(status, "going_on", json_true());
    if (json) {
        (void)json_dumpf(status, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        (void)printf("\n");
    } else
        print_text(status);
    json_decref(status);
    return 0;
}

int
tti_cli_status(int argc, char **argv)
{
    const char *name = NULL, *runs_dir = "runs";
    char run[1024];
    int json = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 == argc)
            return tti_cli_bad_usage("status", "--runs needs a value");
        else if (strcmp(argv[i], "--runs") == 0)
            runs_dir = argv[++i];
        else if (argv[i][0] == '-')
            return tti_cli_unknown_option("status", argv[i]);
        else if (name != NULL)
            return tti_cli_bad_usage("status", "one run at a time, not '%s' and '%s'", name,
                                     argv[i]);
        else
            name = argv[i];
    }
    int code = tti_cli_find_run(name, runs_dir, run, sizeof run);
    if (code != 0)
        return code;
    code = show(run, json);
    int flushed = tti_cli_flush();
    return flushed != 0 ? flushed : code;
}
