#!/usr/bin/env bash
# Goal: every command explains itself, with every option it takes and an example. Method: the commands are those that
# `trimtab --help` lists; the options are probed: what a help text names must be taken, and what is taken must be named.
. "$(dirname "$0")/outside.sh" "$@"

ends 0 "$trimtab" --help
check '--help lists the commands' says '^  run  ' out
mapfile -t commands < <(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' out)
check 'at least five commands' [ ${#commands[@]} -ge 5 ]
cp out general
for same in -h help; do
    ends 0 "$trimtab" $same
    check "$same is --help" cmp -s out general
done
ends 2 "$trimtab"
check 'without a command the help is on standard error' cmp -s err general
ends 0 "$trimtab" --version
check '--version prints the version' says '^trimtab [0-9]+\.[0-9]+\.[0-9]+$' out

for command in "${commands[@]}"; do
    ends 0 "$trimtab" "$command" --help
    check "$command --help is on standard output alone" [ -s out -a ! -s err ]
    check "$command --help begins with its usage" says "^usage: trimtab $command( |\$)" out
    check "$command --help ends with an example" says '^example: trimtab ' out
    check "$command --help fits into 100 columns" silent '.{101}' out
    cp out own
    for same in "$command -h" "help $command" "$command x --help"; do
        # shellcheck disable=SC2086
        ends 0 "$trimtab" $same
        check "$same is $command --help" cmp -s out own
    done
    # Every option in the usage line is explained.
    for option in $(grep -oE -- '--[a-z-]+' own | sort -u); do
        check "$command --help explains $option" says "^  (-[a-z], )?$option( |$)" own
    done
done

# Every word that the sources compare with an argument is in the help of its commands.
for pair in run,plan:cli_job.c report:cli_report.c knobs:cli_knobs.c data:cli_data.c init:cli_init.c; do
    for command in $(tr ',' ' ' <<<"${pair%%:*}"); do "$trimtab" "$command" --help; done >own
    for option in $(grep -oE '"--?[a-z-]+"' "$sources/cli/src/${pair#*:}" | tr -d '"' | sort -u); do
        check "${pair%%:*} --help names $option" says "(^|[ ,[])$option([ ,=]|$)" own
    done
done

finish
