#!/usr/bin/env bash
# Goal: job files lie over one another from left to right, --set on top; faults name the file that says it; paths belong to the
# file that says them; the run's job.yaml has everything and is a job file by itself. Method: three files in three directories.
. "$(dirname "$0")/outside.sh" "$@"

mkdir -p base/data site mine
awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) print (i % 2 ? "1" : "-1"), 1 + i % 2 ":" 0.5 + rand(), "3:" rand() }' >base/data/part-1.svm
cp base/data/part-1.svm base/data/part-2.svm
cp base/data/part-1.svm site/held.svm
cp base/data/part-1.svm mine/test.svm
cat >base/job.yaml <<'END'
job: layered
data: {format: libsvm, train: 'data/part-*.svm', test: data/part-1.svm}
model: {kind: logistic_regression, l2: 1e-4}
optimizer: {kind: adagrad, learning_rate: 0.5, batch_size: 32}
stop: {max_epochs: 4}
cluster: {nodes: 4}
knobs: {servers: {start: 2}, chunk_bytes: {range: [16KiB, 64KiB]}}
END
cat >site/site.yaml <<'END'
data: {validation: held.svm}
optimizer: {learning_rate: 0.05}
knobs: {chunk_bytes: {range: [16KiB, 32KiB]}}
tuner: {enabled: off}
END
cat >mine/mine.yaml <<'END'
data: {test: test.svm}
stop: {max_epochs: 2, patience: 3}
optimizer: {batch_size: 16}
model: {l2: null}
END

ends 0 "$trimtab" run base/job.yaml site/site.yaml mine/mine.yaml --set optimizer.batch_size=8 --json -q
cp out run.json
run=$(sed -n 's/.*"run_dir": "\(.*\)",/\1/p' run.json)
has() { check "the resolved job has $1" says "^ *$1\$" "$run/job.yaml"; }
has 'job: layered'
has 'learning_rate: 0.05'
has 'batch_size: 8'
has 'max_epochs: 2'
has 'patience: 3'
has 'l2: 0'
has 'enabled: off'
has 'start: 2'
has 'range: \[16KiB, 32KiB\]'
has "- $box/base/data/part-1.svm"
has "- $box/base/data/part-2.svm"
has "file: $box/site/held.svm"
has "file: $box/mine/test.svm"
check 'no pattern is left' silent 'part-\*' "$run/job.yaml"

# By itself, from elsewhere: the same plan.
ends 0 "$trimtab" plan base/job.yaml site/site.yaml mine/mine.yaml --set optimizer.batch_size=8 --json
cp out plan.json
mkdir elsewhere
ends 0 env -C elsewhere "$trimtab" plan "../$run/job.yaml" --json
plain() { sed 's|"[^"]*base/data|"DATA|; s|"[^"]*mine/|"|; s|by you (.*)|by you|' "$1"; } # without places
check 'the resolved job means the same' diff <(plain plan.json) <(plain out)
# Further layers on a resolved job.
ends 0 "$trimtab" plan "$run/job.yaml" site/site.yaml --set data.validation=20% --json
check '--set is last' says '"validation_rows": [0-9]+' out

# Faults of several files at once, each in its place, in the order of the files.
printf 'optimizer: {kind: adagrat}\ndata: {validation: gone-*.svm}\n' >site/site.yaml
printf 'stop:\n  patience: never\n' >mine/mine.yaml
ends 2 "$trimtab" run base/job.yaml site/site.yaml mine/mine.yaml --set optimizer.batch_size=none
cat >expected <<'END'
site/site.yaml:1:19: optimizer.kind must be one of sgd, adagrad, momentum, adam, ftrl, not 'adagrat'; did you mean 'adagrad'?
site/site.yaml:2:20: data.validation.file: no file matches 'gone-*.svm'; check the pattern (ls shows what it matches); it is relative to the file that says it
mine/mine.yaml:2:13: stop.patience must be a whole number, not 'never'
--set optimizer.batch_size=none: optimizer.batch_size must be a whole number, not 'none'
4 errors, nothing was run.
END
check 'every fault names its file' diff expected err

# Generated rows have a seed of their own: the least loss that any model can have tells rows apart.
bayes() { "$trimtab" plan quick.yaml "$@" | grep 'no model can have'; }
check 'no other rows under another seed' [ "$(bayes --set seed=1)" != "$(bayes --set seed=2)" ]
check 'the job seed is not that of the rows' [ "$(bayes --set seed=1)" = "$(bayes --set seed=2 --set data.seed=1)" ]

finish
