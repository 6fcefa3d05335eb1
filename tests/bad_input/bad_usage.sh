#!/usr/bin/env bash
# Goal: a command line that is wrong exits with 2, says which word, and offers the nearest right one. Method: as in
# bad_config.sh.
. "$(dirname "$0")/refusals.sh" "$1"
fresh

refused 2 "trimtab: unknown command 'rnu', did you mean 'run'?; see trimtab --help" rnu job.yaml
refused 2 "trimtab: unknown command 'zzzz'; see trimtab --help" zzzz
refused 2 "trimtab: unknown command '--json'; see trimtab --help" --json
refused 2 "trimtab: unknown command 'rnu', did you mean 'run'?; see trimtab --help" help rnu
refused_like 2 'trimtab [0-9.]+: a self-tuning parameter server'

refused 2 "trimtab run: which job? name its YAML file; see trimtab run --help" run
refused 2 "trimtab plan: which job? name its YAML file; see trimtab plan --help" plan --json
refused 2 "trimtab run: unknown option '--jsn', did you mean '--json'?; see trimtab run --help" run job.yaml --jsn
refused 2 "trimtab run: unknown option '--quite', did you mean '--quiet'?; see trimtab run --help" run job.yaml --quite
refused 2 "trimtab run: unknown option '--zebra'; see trimtab run --help" run --zebra job.yaml
refused 2 "trimtab run: --set needs a value; see trimtab run --help" run job.yaml --set
refused 2 "trimtab run: --runs needs a value; see trimtab run --help" run job.yaml --runs
refused 2 "trimtab plan: unknown option '--foo'; see trimtab plan --help" plan job.yaml --foo

refused 2 "trimtab knobs: expected 'list'; see trimtab knobs --help" knobs
refused 2 "trimtab knobs: expected 'list', not 'lst'; see trimtab knobs --help" knobs lst
refused 2 "trimtab knobs: unknown option '--jsn', did you mean '--json'?; see trimtab knobs --help" knobs list --jsn

refused 2 "trimtab data: expected 'make'; see trimtab data --help" data
refused 2 "trimtab data: which file is to be written?; see trimtab data --help" data make
refused 2 "trimtab data: one file at a time, not 'a' and 'b'; see trimtab data --help" data make a b
refused 2 "trimtab data: unknown option '--row', did you mean '--rows'?; see trimtab data --help" data make x --row 5
refused 2 "trimtab data: --rows needs a value; see trimtab data --help" data make x --rows
refused 2 "trimtab data: --rows needs a whole number, not 'many'; see trimtab data --help" data make x --rows many
refused 2 "trimtab data: --rows must be from 1 to 4294967294, not 0; see trimtab data --help" data make x --rows 0
refused 2 "trimtab data: --noise must be from 0 to 0.499, not 0.5; see trimtab data --help" data make x --noise 0.5

refused 2 'runs: no run found here; train one first (trimtab run JOB.yaml) or name a run directory' report
refused 2 'runs/nope: there is no run store here: No such file or directory; check the run'"'s name; "'`ls runs` shows what there is' report nope
refused 2 "trimtab report: one run at a time, not 'a' and 'b'; see trimtab report --help" report a b
refused 2 "trimtab report: unknown option '--al', did you mean '--all'?; see trimtab report --help" report --al
refused 2 "trimtab report: --runs needs a value; see trimtab report --help" report --runs
mkdir fake
: >fake/run.db
refused_like 2 'fake/run.db: this is not a run store.*' report fake
echo 'no database, long enough to be looked at as if it were one, but it is not: 0123456789012345678901234567890123456789' >fake/run.db
refused_like 2 'fake/run.db: this is not a run store.*' report fake

# Results that cannot be written are not silently lost.
for words in --help --version 'plan job.yaml' 'knobs list --json'; do
    cases=$((cases + 1))
    code=0
    # shellcheck disable=SC2086
    "$trimtab" $words >/dev/full 2>"$box/stderr" || code=$?
    [ $code -eq 1 ] && [ "$(cat "$box/stderr")" = 'trimtab: cannot write to standard output: No space left on device' ] ||
        fault "exit code $code on a full standard output, expected 1" "$words"
done

finish
