#!/usr/bin/env bash
# Goal: trimtab doctor finds what a job lacks before it runs, and finds nothing where nothing is missing. Method: jobs that are fine,
# and the same with a place that cannot be written, limits that are too low, and a model that no machine has room for.
. "$(dirname "$0")/outside.sh" "$@"

ends 0 "$trimtab" doctor quick.yaml
check 'every line is fine' silent '^(fault|doubtful)' out
check 'the data is described' says '^ok +data +2000 rows, 500 features' out
check 'nothing is trained or written' test ! -e runs
ends 0 "$trimtab" doctor quick.yaml --set cluster.engine=local --json
check 'shared memory is looked at' says '"check": "shared memory"' out
check 'the verdict' says '"fit": true' out

echo >occupied
ends 1 "$trimtab" doctor quick.yaml --runs occupied/runs
check 'a place that cannot be written' says '^fault +runs +nothing can be written to occupied: Not a directory' out
check 'what to do' says 'choose another place with --runs' out
ends 1 bash -c "ulimit -n 40 && exec '$trimtab' doctor quick.yaml --set cluster.engine=local"
check 'too few open files' says '^fault +open files +about 80 are needed, the limit is 40' out
ends 1 "$trimtab" doctor quick.yaml --set data.columns=2000000000 --set cluster.nodes=2000
check 'too little memory' says '^fault +memory +about .* GiB are needed beside the data' out
check 'too many nodes' says '^doubtful +processors ' out

ends 2 "$trimtab" doctor quick.yaml --set model.kind=none
check 'a job that is wrong' says 'model.kind' err
ends 2 "$trimtab" doctor
check 'no job' says 'which job' err
ends 2 "$trimtab" doctor quick.yaml --resume x
check 'no other options' says 'unknown option' err
finish
