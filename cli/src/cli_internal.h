// The program's commands: each takes what follows its name and returns the exit code.
#ifndef TTI_CLI_INTERNAL_H
#define TTI_CLI_INTERNAL_H

#include "tt/core.h"

typedef struct tti_command {
    const char *name;
    const char *summary; // one line
    const char *usage;   // the whole help text
    int (*run)(int argc, char **argv);
    int only_prints; // a reader that has seen enough (| head) ends it, silently
} tti_command;

extern const tti_command tti_commands[]; // ended by a NULL name

int tti_cli_run(int argc, char **argv);
int tti_cli_plan(int argc, char **argv);
int tti_cli_schema(int argc, char **argv);
int tti_cli_eval(int argc, char **argv);
int tti_cli_predict(int argc, char **argv);
int tti_cli_report(int argc, char **argv);
int tti_cli_explain(int argc, char **argv);
int tti_cli_replay(int argc, char **argv);
int tti_cli_runs(int argc, char **argv);
int tti_cli_compare(int argc, char **argv);
int tti_cli_knobs(int argc, char **argv);
int tti_cli_tune(int argc, char **argv);
int tti_cli_repository(int argc, char **argv);
int tti_cli_data(int argc, char **argv);
int tti_cli_init(int argc, char **argv);
int tti_cli_bench(int argc, char **argv);
int tti_cli_status(int argc, char **argv);
int tti_cli_doctor(int argc, char **argv);
int tti_cli_node(int argc, char **argv);

// Prints "trimtab: what; advice" and returns 2.
int tti_cli_bad_usage(const char *command, const char *format, ...) TT_PRINTF(2, 3);
// The same for an option that `command` does not have, offering the nearest of those in its help.
int tti_cli_unknown_option(const char *command, const char *word);
// The same for a word (NULL: none) where only `expected` may stand.
int tti_cli_expected(const char *command, const char *word, const char *expected);
// 0, 1 or 2. A file of a kind that is not read (zstd, a newer run store) is wrong input.
int tti_cli_exit_code(tt_status status);
// Prints an error and returns its exit code.
int tti_cli_fail(const tt_error *err);
// The directory of a run: of that name, or the newest below runs_dir (NULL). Returns 0, or the exit
// code after a message.
int tti_cli_find_run(const char *name, const char *runs_dir, char *out, size_t size);
// Results went to standard output: 0, or 1 with a message when they did not get there.
int tti_cli_flush(void);

#endif
