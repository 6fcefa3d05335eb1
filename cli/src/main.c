// trimtab: the program. Finds the command and hands over.
#include "cli_internal.h"
#include "tt/core_config.h"
#include "tt/job.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const tti_command tti_commands[] = {
    {"run", "train a model, tuning while it trains",
     "usage: trimtab run JOB.yaml [MORE.yaml ...] [--set a.b=c ...] [options]\n"
     "       trimtab run --resume RUN [--set a.b=c ...] [options]\n"
     "\n"
     "Trains the model that the job file describes. Later files are laid over earlier ones.\n"
     "Progress goes to standard error, results to standard output and into runs/ID.\n"
     "\n"
     "  --set a.b=c    override one key, for instance --set optimizer.learning_rate=0.05\n"
     "  --runs DIR     where the run directory is made (default: run.dir of the job, ./runs)\n"
     "  --cold         begin with nothing that earlier runs learned (docs/repository.md)\n"
     "  --json         print one JSON object about the finished run on standard output\n"
     "  --resume RUN   go on with a run (its directory, or its name below --runs) from its newest\n"
     "                 checkpoint; keys that do not change the training may be changed by --set\n"
     "  -q, --quiet    no progress and no events\n"
     "  -v, --verbose  more events\n"
     "\n"
     "Ctrl-C finishes the iteration, saves model, checkpoint and report and exits with 130; a "
     "second\n"
     "one\n"
     "stops at once. Exit code 0: done; 1: the job failed; 2: the input is wrong.\n"
     "\n"
     "example: trimtab run configs/quickstart.yaml --set cluster.nodes=4\n",
     tti_cli_run, .only_prints = 0},
    {"plan", "show what a job would do and what would be tuned",
     "usage: trimtab plan JOB.yaml [MORE.yaml ...] [--set a.b=c ...] [--cold] [--json]\n"
     "       trimtab plan --simulate JOB.yaml [MORE.yaml ...] [--seeds N] [--set a.b=c ...] "
     "[--json]\n"
     "\n"
     "Reads the job and its data, checks everything, and shows the resolved job and its search\n"
     "space: every knob with its range, where it starts, what a change of it moves, or why it is\n"
     "fixed; and what a run would begin with of what earlier runs learned, and why. Nothing is\n"
     "trained and nothing is written.\n"
     "\n"
     "  --set a.b=c    override one key\n"
     "  --cold         as if nothing had been learned\n"
     "  --json         the same as one JSON object\n"
     "  --simulate     predict instead how long the job takes on the simulated hosts it describes\n"
     "                 (cluster.engine does not matter): at its start setting, tuned, and at the\n"
     "                 setting that the tuner ends in; and how far the cost model may be off\n"
     "  --seeds N      with N seeds, from the job's own on (default 1)\n"
     "\n"
     "Exit code with --simulate 1: no simulated run got to the job's loss.\n"
     "\n"
     "example: trimtab plan configs/a9a-logr.yaml\n",
     tti_cli_plan, .only_prints = 1},
    {"doctor", "look whether a job can run, here and on its hosts",
     "usage: trimtab doctor JOB.yaml [MORE.yaml ...] [--set a.b=c ...] [--runs DIR] [--json]\n"
     "\n"
     "Reads the job and its data and looks at what it needs: memory, processors, limits, a place\n"
     "for its runs; with cluster.engine: ssh it starts trimtab node on each host as a run would,\n"
     "and says of each whether it has the program, the data, memory and a way back, and how far\n"
     "its clock is off. Nothing is trained.\n"
     "\n"
     "  --set a.b=c    override one key\n"
     "  --runs DIR     where the run directory would be made\n"
     "  --json         the checks as one JSON object\n"
     "\n"
     "Exit code 0: it can run; 1: something is missing; 2: the job file or its data is wrong.\n"
     "\n"
     "example: trimtab doctor configs/a9a-logr.yaml\n",
     tti_cli_doctor, .only_prints = 0},
    {"init", "look at data and write a job file for it",
     "usage: trimtab init FILE... [-o JOB.yaml] [--label COLUMN] [--labels FILE] [--test FILE]\n"
     "                    [--test-labels FILE] [--force]\n"
     "\n"
     "Looks at what the files hold, by their content: LIBSVM text, CSV text with or without a\n"
     "header, IDX; plain, .gz, .xz or .zst. Says on standard error what it saw, and writes a job\n"
     "file with comments that can be run at once: model, optimiser, learning rate, validation\n"
     "rows and a stop rule that suit the data. Nothing is trained.\n"
     "\n"
     "  -o FILE        the job file (default job.yaml; - is standard output)\n"
     "  --label COL    CSV: column of the label, by name or number from 1 (default: by name and\n"
     "                 content)\n"
     "  --labels FILE  IDX: labels, once for each file (default: images -> labels in the name)\n"
     "  --test FILE    test data, evaluated once at the end; may be given several times\n"
     "  --test-labels FILE  IDX: their labels\n"
     "  --force        overwrite a job file that is there\n"
     "\n"
     "Exit code 2: the data is not read here, or no model fits it; nothing is written then.\n"
     "\n"
     "example: trimtab init a9a.xz --test a9a.t.xz -o adult.yaml && trimtab run adult.yaml\n",
     tti_cli_init, .only_prints = 0},
    {"bench", "measure this machine",
     "usage: trimtab bench calibrate [FILE] [--check]\n"
     "\n"
     "calibrate  measures what gradients, messages and waits cost on this machine, in some\n"
     "           seconds, and writes it as a job file for simulated hosts, to FILE or to standard\n"
     "           output (docs/simulation.md). What else the machine does meanwhile hardly\n"
     "           matters: the least of several measurements counts.\n"
     "\n"
     "  --check        runs a small job under 12 random settings besides, and simulates them: how\n"
     "                 far that is off goes into the file; what plan predicts says it\n"
     "\n"
     "example: trimtab bench calibrate machine.yaml\n",
     tti_cli_bench, .only_prints = 0},
    {"node", "be a host of a job (trimtab run starts it)",
     "usage: trimtab node\n"
     "\n"
     "Started by trimtab run, through the remote shell, on each host of a job with "
     "cluster.engine:\n"
     "ssh (docs/engines.md). Reads the job and its key from standard input, calls the program "
     "that\n"
     "runs the job, and starts nodes as it asks. Ends with the job, and when standard input is\n"
     "closed.\n"
     "\n"
     "example: trimtab node </dev/null\n",
     tti_cli_node, .only_prints = 0},
    {"schema", "print the JSON Schema of job files, for editors",
     "usage: trimtab schema\n"
     "\n"
     "Prints the schema of a whole job file, with every key's meaning, default and range. An "
     "editor\n"
     "with a YAML language server completes and checks job files with it: save it beside them and\n"
     "begin them with  # yaml-language-server: $schema=trimtab.schema.json\n"
     "\n"
     "example: trimtab schema > trimtab.schema.json\n",
     tti_cli_schema, .only_prints = 1},
    {"report", "say what tuning did in a run and what it was worth",
     "usage: trimtab report [RUN] [--all] [--json] [--runs DIR]\n"
     "\n"
     "RUN is a run directory, or its name below ./runs; without it the newest run there.\n"
     "Works while the run is going on.\n"
     "\n"
     "  --all          every setting, decision and event, not only the last ones\n"
     "  --json         the same as one JSON object (docs/report.md)\n"
     "  --runs DIR     where to look for RUN (default ./runs)\n"
     "\n"
     "example: trimtab report\n",
     tti_cli_report, .only_prints = 1},
    {"explain", "tell why a run ended in its setting, and whether to trust it",
     "usage: trimtab explain [RUN] [--all] [--json] [--runs DIR]\n"
     "\n"
     "RUN is a run directory, or its name below ./runs; without it the newest run there. Tells in\n"
     "sentences with numbers: was tuning worth it; should this setting be trusted; why this one\n"
     "and what it was expected to save and did save; why exploring stopped; which knobs mattered,\n"
     "with intervals; what was never tried.\n"
     "\n"
     "  --all          every trial and move, not only those that were an improvement\n"
     "  --json         the same as one JSON object (docs/report.md)\n"
     "  --runs DIR     where to look for RUN (default ./runs)\n"
     "\n"
     "example: trimtab explain\n",
     tti_cli_explain, .only_prints = 1},
    {"replay", "run other tuners on what a run measured",
     "usage: trimtab replay [RUN] [--tuner KEY=VALUE[,...] ...] [--seeds N] [--json] [--runs DIR]\n"
     "\n"
     "RUN is a run directory, or its name below ./runs; without it the newest run there. Runs the\n"
     "job again in virtual time, among the settings that were measured, each as fast as it was, "
     "and\n"
     "says how long it takes with each tuner: to compare options and versions without training.\n"
     "The same arguments give the same answer.\n"
     "\n"
     "  --tuner OPTIONS  model=time|sum|product|paper, enabled=on|off, initial_settings=N,\n"
     "                   window=N, guard=P%, without=RULE[+RULE] (docs/report.md); several times:\n"
     "                   each is one tuner (default model=time)\n"
     "  --seeds N        seeds of each (default 5)\n"
     "  --json           the same as one JSON object (docs/report.md)\n"
     "  --runs DIR       where to look for RUN (default ./runs)\n"
     "\n"
     "example: trimtab replay --tuner model=time --tuner model=sum,guard=5%\n",
     tti_cli_replay, .only_prints = 1},
    {"status", "say how a run stands that is going on: who is alive, where, how far",
     "usage: trimtab status [RUN] [--runs DIR] [--json]\n"
     "\n"
     "RUN is a run directory, or its name below ./runs; without it the newest run there. Says how\n"
     "far the run is, its setting, and of each node whether it is alive, where it is and since\n"
     "when it was not heard from, how many iterations a worker is behind the first, how many\n"
     "partitions a server has, and what each has sent. At most a second old.\n"
     "\n"
     "  --runs DIR     where to look for RUN (default ./runs)\n"
     "  --json         the same as one JSON object\n"
     "\n"
     "Exit code 0: the run is going on; 1: it is not.\n"
     "\n"
     "example: trimtab status\n",
     tti_cli_status, .only_prints = 1},
    {"runs", "list the runs there are",
     "usage: trimtab runs [--runs DIR] [--json]\n"
     "\n"
     "Lists the runs below DIR, the newest first: when each started, how it ended, how long it\n"
     "trained, its loss, and how many times as long it would have taken untuned.\n"
     "\n"
     "  --runs DIR     where the runs are (default ./runs)\n"
     "  --json         the same as one JSON list\n"
     "\n"
     "example: trimtab runs\n",
     tti_cli_runs, .only_prints = 1},
    {"compare", "put two runs side by side",
     "usage: trimtab compare A B [--runs DIR]\n"
     "\n"
     "A and B are run directories, or their names below ./runs. Says which was faster to the loss\n"
     "that both reached, and lists what came out, how the jobs differ and where each setting "
     "ended.\n"
     "\n"
     "  --runs DIR     where to look for A and B (default ./runs)\n"
     "\n"
     "example: trimtab compare 20261121-082029-clicklog 20261121-082053-clicklog\n",
     tti_cli_compare, .only_prints = 1},
    {"eval", "measure a saved model on data",
     "usage: trimtab eval MODEL FILE... [--joined] [--format F] [--labels FILE] [--json]\n"
     "                    [--threads N] [--runs DIR]\n"
     "\n"
     "MODEL is a model.safetensors, a run directory, or its name below ./runs. Prints for each "
     "FILE\n"
     "(- is standard input) what trimtab run prints for its test data: mean loss, accuracy, and "
     "AUC\n"
     "where there are two classes. The model knows how its training data were read. Features that\n"
     "it has not weigh nothing and are counted; a label that it has not is an error.\n"
     "\n"
     "  --joined       all FILEs are one data set, as the parts of test data in a job file\n"
     "  --format F     libsvm, csv or idx (default: as the training data)\n"
     "  --labels FILE  idx: the labels, once for each FILE\n"
     "  --json         one JSON object instead (docs/commands.md)\n"
     "  --threads N    (default: one a processor)\n"
     "  --runs DIR     where to look for MODEL (default ./runs)\n"
     "\n"
     "example: trimtab eval 20261121-082029-clicklog test.svm\n",
     tti_cli_eval, .only_prints = 1},
    {"predict", "predict labels with a saved model",
     "usage: trimtab predict MODEL [FILE...] [--proba] [--scores] [-o FILE] [--format F]\n"
     "                       [--threads N] [--runs DIR]\n"
     "\n"
     "MODEL is a model.safetensors, a run directory, or its name below ./runs. Reads the FILEs "
     "one\n"
     "after the other (default -, standard input; plain, gzip, xz or zstd) and prints one line a\n"
     "row: the predicted label. Labels in the data are not looked at and may be missing, in CSV\n"
     "with their column. Memory does not grow with the data. Features that the model has not "
     "weigh\n"
     "nothing and are counted.\n"
     "\n"
     "  --proba            behind the label, the probability of each class, in ascending order\n"
     "  --scores           behind the label, the decision value (softmax: one a class)\n"
     "  -o, --output FILE  write there, complete or not at all (default -, standard output)\n"
     "  --format F         libsvm, csv or idx (default: as the training data)\n"
     "  --threads N        (default: one a processor)\n"
     "  --runs DIR         where to look for MODEL (default ./runs)\n"
     "\n"
     "example: trimtab predict 20261121-082029-clicklog new.svm.gz > labels.txt\n",
     tti_cli_predict, .only_prints = 1},
    {"knobs", "list what can be tuned",
     "usage: trimtab knobs list [PLUGIN.ttk ...] [--json]\n"
     "\n"
     "Lists the built-in knobs, and those of the plugins named, with kind, range, default, unit\n"
     "and what changing them moves.\n"
     "\n"
     "  --json         the same as one JSON list\n"
     "\n"
     "example: trimtab knobs list\n",
     tti_cli_knobs, .only_prints = 1},
    {"tune", "tune anything: ask for settings, tell what came of them",
     "usage: trimtab tune --space SPACE.yaml [--seed N] [--initial N] [--log FILE]\n"
     "\n"
     "The tuner without a job: minimises what somebody else measures. Reads requests from "
     "standard\n"
     "input and answers on standard output, one JSON object a line (docs/tune.md):\n"
     "\n"
     "  {\"ask\": 1}                                         a setting to evaluate\n"
     "  {\"tell\": {\"id\": 1, \"y\": 3.2, \"noise\": 0.1}}        what came of it\n"
     "  {\"tell\": {\"setting\": {\"workers\": 4}, \"y\": 3.0}}   of one that was not asked for\n"
     "  {\"tell\": {\"id\": 2, \"failed\": true}}              it could not be evaluated\n"
     "  {\"best\": 1}                                        the best setting so far\n"
     "  {\"pending\": 1}                                     what was asked for and not told\n"
     "\n"
     "  --space FILE   knobs, their ranges and constraints\n"
     "  --seed N       (default 1) the same seed and requests give the same answers\n"
     "  --initial N    spread-out settings before the model proposes (default: by the knobs)\n"
     "  --log FILE     keeps what was asked and told in FILE, and goes on with what is there\n"
     "\n"
     "example: trimtab tune --space examples/tune/space.yaml --log tuning.jsonl\n",
     tti_cli_tune, .only_prints = 0},
    {"repository", "list or forget what runs have learned",
     "usage: trimtab repository list [--file FILE] [--json]\n"
     "       trimtab repository forget RUN|--all [--file FILE]\n"
     "\n"
     "Runs leave what they measured in a repository, and later ones of like jobs begin with it. "
     "Lists\n"
     "the runs it knows, the newest first, or forgets RUN (its name) or all of them.\n"
     "\n"
     "  --file FILE    another repository than the user's own (docs/repository.md)\n"
     "  --all          forget everything\n"
     "  --json         the same as one JSON list\n"
     "\n"
     "example: trimtab repository list\n",
     tti_cli_repository, .only_prints = 0},
    {"data", "generate training data",
     "usage: trimtab data make FILE [--rows N] [--features N] [--fields N] [--seed N]\n"
     "                         [--positive RATE] [--noise RATE] [--threads N] [--first-row N]\n"
     "\n"
     "Writes seeded, sparse, click-log-like data with known truth as LIBSVM text; FILE.gz is\n"
     "compressed. The same seed gives the same bytes whatever the number of threads.\n"
     "\n"
     "  --rows N       rows (default 100000, up to 4294967294)\n"
     "  --features N   width (default 100000)\n"
     "  --fields N     non-zeros in a row (default 37)\n"
     "  --seed N       (default 1)\n"
     "  --positive P   share of label 1 aimed at (default 0.25)\n"
     "  --noise P      share of labels flipped (default 0)\n"
     "  --first-row N  begin at this row of the endless log: a test set that follows a training\n"
     "                 set of N rows (default 0)\n"
     "  --threads N    (default: one a processor)\n"
     "\n"
     "example: trimtab data make clicks.svm.gz --rows 1000000 --seed 7\n",
     tti_cli_data, .only_prints = 0},
    {0},
};

int
tti_cli_bad_usage(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "trimtab%s%s: ", command != NULL ? " " : "",
                  command != NULL ? command : "");
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (command != NULL)
        (void)fprintf(stderr, "; see trimtab %s --help\n", command);
    else
        (void)fprintf(stderr, "; see trimtab --help\n");
    return 2;
}

enum { OPTIONS_MAX = 32, OPTION_BYTES = 24 };

// The options of a help text: its lines that begin with two blanks and a dash.
static void
list_options(const char *usage, char names[][OPTION_BYTES], const char **known)
{
    size_t count = 0;
    for (const char *line = usage; (line = strstr(line, "\n  -")) != NULL; line++) {
        const char *word = line + 3;
        while (word[0] == '-' && count < OPTIONS_MAX) {
            size_t length = strcspn(word, ", \n");
            (void)snprintf(names[count], OPTION_BYTES, "%.*s", (int)length, word);
            known[count] = names[count];
            count++;
            word += length + strspn(word + length, ", "); // "-q, --quiet"
        }
    }
}

static const tti_command *
find_command(const char *name)
{
    for (const tti_command *command = tti_commands; command->name != NULL; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

int
tti_cli_unknown_option(const char *command, const char *word)
{
    char names[OPTIONS_MAX][OPTION_BYTES];
    const char *known[OPTIONS_MAX + 1] = {NULL};
    list_options(find_command(command)->usage, names, known);
    const char *near = tt_config_nearest(word, known);
    if (near != NULL)
        return tti_cli_bad_usage(command, "unknown option '%s', did you mean '%s'?", word, near);
    return tti_cli_bad_usage(command, "unknown option '%s'", word);
}

int
tti_cli_expected(const char *command, const char *word, const char *expected)
{
    if (word == NULL)
        return tti_cli_bad_usage(command, "expected '%s'", expected);
    return tti_cli_bad_usage(command, "expected '%s', not '%s'", expected, word);
}

int
tti_cli_exit_code(tt_status status)
{
    return status == TT_UNSUPPORTED ? 2 : tt_status_exit_code(status);
}

int
tti_cli_fail(const tt_error *err)
{
    tt_error_print(stderr, err);
    return tti_cli_exit_code(err->status);
}

int
tti_cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    (void)fprintf(stderr, "trimtab: cannot write to standard output: %s\n", tt_errno_text(errno));
    return 1;
}

static void
print_help(FILE *out)
{
    (void)fprintf(out,
                  "trimtab %s: a self-tuning parameter server\n\nusage: trimtab COMMAND ...\n\n",
                  tt_job_version());
    for (const tti_command *command = tti_commands; command->name != NULL; command++)
        (void)fprintf(out, "  %-10s %s\n", command->name, command->summary);
    (void)fprintf(out,
                  "\ntrimtab COMMAND --help tells more. trimtab --version prints the version.\n"
                  "First steps: trimtab run configs/quickstart.yaml, then trimtab report.\n");
}

static int
unknown_command(const char *name)
{
    const char *known[32] = {NULL};
    for (size_t i = 0; tti_commands[i].name != NULL; i++)
        known[i] = tti_commands[i].name;
    const char *near = tt_config_nearest(name, known);
    if (near != NULL)
        return tti_cli_bad_usage(NULL, "unknown command '%s', did you mean '%s'?", name, near);
    return tti_cli_bad_usage(NULL, "unknown command '%s'", name);
}

// 1 when one of the words asks for help.
static int
asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
    return 0;
}

// trimtab help [COMMAND]
static int
help(const char *name)
{
    const tti_command *command = name != NULL ? find_command(name) : NULL;
    if (name != NULL && command == NULL)
        return unknown_command(name);
    (void)signal(SIGPIPE, SIG_DFL); // it only prints
    if (command != NULL)
        (void)fputs(command->usage, stdout);
    else
        print_help(stdout);
    return tti_cli_flush();
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    // A closed pipe is an error of one write, reported by tti_cli_flush; but see only_prints.
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); // a file too large for the user's limit is an error like others
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(NULL);
    if (strcmp(name, "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0) {
        (void)printf("trimtab %s\n", tt_job_version());
        return tti_cli_flush();
    }
    const tti_command *command = find_command(name);
    if (command == NULL)
        return unknown_command(name);
    if (asks_for_help(argc - 2, argv + 2))
        return help(name);
    if (command->only_prints)
        (void)signal(SIGPIPE, SIG_DFL);
    return command->run(argc - 2, argv + 2);
}
