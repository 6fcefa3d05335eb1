#!/usr/bin/env bash
# Goal: a checkpoint goes on elsewhere: the model of a sparse AdaGrad job on 2 servers is the same on 1, on 5, on a cluster of
# another size and in place, and all of them train on from there. Method: a run that ends on 2 servers; copies of it are
# resumed with a limit that is reached already, which saves the model as restored, and then with more epochs.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 8000, columns: 6000, fields: 12, test: {rows: 1000}}
model: {kind: logistic_regression, l2: 1e-5, table: sparse}
optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 32}
stop: {max_epochs: 3}
cluster: {nodes: 7}
setting: {servers: 2}
tuner: {enabled: off}
END
metric() { sed -n "s/^ *\"$1\": \\([0-9.e-]*\\),*\$/\\1/p" out | head -n 1; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

ends 0 "$trimtab" run job.yaml --json
run=$(echo runs/*)
before=$(metric loss) auc=$(metric auc)
cp "$run/model.safetensors" whole
count=0
for place in setting.servers=1 setting.servers=5 'cluster.nodes=3' 'cluster.nodes=20 setting.servers=15' \
    'cluster.driver=in_place setting.servers=null'; do
    copy=copies/$((++count))
    mkdir -p copies
    cp -r "$run" "$copy"
    sets=()
    for assignment in $place; do sets+=(--set "$assignment"); done
    ends 0 "$trimtab" run --resume "$copy" --json "${sets[@]}"
    check "$place: it says what changed" says 'changed: |search space or the way to tune is another' err
    check "$place: no iteration was trained" [ "$(metric iterations)" = 750 ]
    check "$place: another model" cmp -s whole "$copy/model.safetensors"
    check "$place: AUC $(metric auc) instead of $auc" [ "$(metric auc)" = "$auc" ]
    ends 0 "$trimtab" run --resume "$copy" --json --set stop.max_epochs=6 "${sets[@]}"
    check "$place: it trained on, to 6 epochs" says '"epochs": (6|5\.99|6\.0)' out
    check "$place: the loss went on falling, $before to $(metric loss)" below "$(metric loss)" "$before"
    ends 0 "$trimtab" report "$copy"
done
finish
