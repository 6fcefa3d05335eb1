#!/usr/bin/env bash
# Goal: a place where no run directory can be made is refused before training, with the place named, and --json still prints
# its one object. Method: files and missing parents in its place (the tests may run as root, whom no permission stops).
. "$(dirname "$0")/refusals.sh" "$1"
fresh
: >file
advice='choose another place with --runs DIR or run.dir'

refused 2 "/proc/x: cannot make the run directory: No such file or directory (its parent is not there); $advice" run job.yaml --runs /proc/x
refused 2 "a/b: cannot make the run directory: No such file or directory (its parent is not there); $advice" run job.yaml --runs a/b
refused 2 "a/b: cannot make the run directory: No such file or directory (its parent is not there); $advice" run job.yaml --set run.dir=a/b
refused 2 "file: cannot make the run directory: Not a directory; $advice" run job.yaml --runs file
refused 2 "file/x: cannot make the run directory: Not a directory; $advice" run job.yaml --runs file/x
refused 2 "trimtab run: --runs needs a directory; see trimtab run --help" run job.yaml --runs ''
name=$(printf 'x%.0s' {1..300})
refused_like 2 "x+: cannot make the run directory: File name too long; $advice" run job.yaml --runs "$name"
# A path so long that it would not fit is refused, not shortened.
deep=.
for _ in {1..10}; do deep=$deep/$(printf 'd%.0s' {1..40}); done
mkdir -p "$deep"
refused_like 2 ".*: cannot make the run directory: File name too long; $advice" run job.yaml --runs "$deep"

code=0
"$trimtab" run job.yaml --json --runs /proc/x >"$box/stdout" 2>"$box/stderr" || code=$?
cases=$((cases + 1))
[ $code -eq 2 ] && [ "$(wc -l <"$box/stderr")" -eq 1 ] || fault "exit code $code, expected 2 and one line" "run --json"
for line in '"status": "failed"' '"run_dir": ""' '"stop_reason": "cannot make the run directory: No such file or directory (its parent is not there)"'; do
    grep -qF -- "$line" "$box/stdout" || fault "expected in the JSON: $line" "run --json"
done

finish
