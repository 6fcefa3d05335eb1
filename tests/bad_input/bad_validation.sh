#!/usr/bin/env bash
# Goal: a validation split that leaves no rows, patience without rows to validate on and the like are refused at their place;
# early stopping stops and keeps the best model. Method: as in bad_config.sh.
. "$(dirname "$0")/refusals.sh" "$1"
fresh

sed -i 's/max_epochs: 2/max_epochs: 2, patience: 3/' job.yaml
refused 2 'job.yaml:3:33: stop.patience needs rows to validate on; add data.validation: 10%, or the files to validate on
1 error, nothing was run.' run job.yaml
fresh
refused 2 '--set stop.patience=3: stop.patience needs rows to validate on; add data.validation: 10%, or the files to validate on
1 error, nothing was run.' run job.yaml --set stop.patience=3
refused 2 '--set data.validation=0.001%: holding out 0.001 % of 200 rows leaves none to validate on; hold out a larger share, or name files to validate on' \
    run job.yaml --set data.validation=0.001%
refused 2 '--set data.validation=99.999%: holding out 99.999 % of 200 rows leaves none to train on; hold out a smaller share, or name files to validate on' \
    run job.yaml --set data.validation=99.999%
refused 2 '--set data.validation=100%: data.validation.fraction must be above 0 and below 1, not 100%
1 error, nothing was run.' run job.yaml --set data.validation=100%
refused 2 '--set data.validation=10: data.validation.fraction must be above 0 and below 1, not 10
1 error, nothing was run.' run job.yaml --set data.validation=10
refused 2 '--set data.validation={file: train.svm, fraction: 10%}: data.validation.fraction and data.validation.file exclude each other; keep one of them, or set the other one to null
1 error, nothing was run.' run job.yaml --set 'data.validation={file: train.svm, fraction: 10%}'
refused 2 '--set data.validation=none.svm: data.validation.file is for data in files, clicklog is generated; take the line out, or set data.format to what the file holds
1 error, nothing was run.' run job.yaml --set data.format=clicklog --set data.train=null --set data.validation=none.svm
refused 2 'none.svm: cannot open the data file: No such file or directory; check the path; it is relative to the job file' \
    run job.yaml --set data.validation=none.svm
printf '7 1:1\n' >other.svm
refused 2 'other.svm:1:1: label 7 does not occur in the training data (1 row has it); train and test with the same labels' \
    run job.yaml --set data.validation=other.svm
refused 2 '--set stop.min_delta=0.1: stop.min_delta has no effect without stop.patience; take the line out, or set stop.patience
1 error, nothing was run.' run job.yaml --set stop.min_delta=0.1
refused 2 '--set stop.evaluate_every=2: stop.evaluate_every has no effect without data.validation; take the line out, or add data.validation: 10%
1 error, nothing was run.' run job.yaml --set stop.evaluate_every=2
refused 2 '--set stop.patience=0: stop.patience must be from 1 to 1000000 evaluations, not 0
1 error, nothing was run.' run job.yaml --set stop.patience=0 --set data.validation=10%

# ---- and what is right: labels drawn by chance are learnt by heart, so the validation loss soon rises
fresh
awk 'BEGIN { srand(5); for (row = 0; row < 400; row++) {
    line = rand() < 0.5 ? "-1" : "+1"
    for (i = 1; i <= 300; i += 1 + int(20 * rand())) line = line sprintf(" %d:%.3f", i, rand())
    print line } }' >train.svm
accepted run job.yaml --json --set data.validation=25% --set stop.patience=4 --set stop.max_epochs=null --set stop.max_time=60s \
    --set optimizer.kind=adagrad
grep -q '"status": "stopped"' "$box/stdout" || fault 'it did not stop' patience
grep -qE '"stop_reason": "no better validation loss in 4 evaluations; the best, 0\.[0-9]+, was evaluation [0-9]+ of [0-9]+ at epoch [0-9.]+"' "$box/stdout" ||
    fault "the reason does not say which evaluation was best: $(grep stop_reason "$box/stdout")" patience
grep -q '"saved_best": true' "$box/stdout" || fault 'the model saved is not the best one' patience
db=$(echo runs/*/run.db)
if command -v sqlite3 >/dev/null; then
    [ "$(sqlite3 "$db" 'SELECT count(*) FROM validation WHERE saved')" = 1 ] || fault 'one evaluation is the saved one' run.db
    [ "$(sqlite3 "$db" 'SELECT ordinal = (SELECT ordinal FROM validation ORDER BY loss LIMIT 1) FROM validation WHERE saved')" = 1 ] ||
        fault 'the saved one has not the lowest loss' run.db
fi
# The resolved job file is a job file itself, the split in it.
accepted run runs/*/job.yaml -q --set stop.max_time=5s

finish
