#!/usr/bin/env bash
# Goal: a job on 1,000 simulated hosts is a job: each example is trained once an epoch, it learns, and it repeats to the last
# bit; and it takes little memory. Method: 970 workers and 30 servers for two epochs, twice; the models are compared, and the
# address space is limited.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 12000, columns: 4000, fields: 12}
model: {kind: logistic_regression, table: sparse, pull: keyed}
optimizer: {kind: adagrad, learning_rate: 0.05, batch_size: 8}
stop: {max_epochs: 2}
consistency: asp
cluster: {engine: simulated, nodes: 1000}
setting: {servers: 30}
tuner: {enabled: off}
checkpoint: {keep: 0}
END
number() { sed -n "s/^ *\"$1\": \\([0-9.e-]*\\),*\$/\\1/p" "$2" | head -n 1; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
# KiB of addresses; of these the stacks of 2,000 fibers have 1 MiB each.
limited=(bash -c 'ulimit -v 4000000 && exec "$@"' limited)
for turn in 1 2; do
    ends 0 "${limited[@]}" "$trimtab" run job.yaml --json --runs "$turn"
    mv out "$turn.json"
done
check 'every example, once an epoch' [ "$(number epochs 1.json)" = 2.0 ]
check 'one push a batch' [ "$(number iterations 1.json)" = 3000 ]
check 'it learns' less "$(number loss 1.json)" 0.66
check 'another model' cmp -s 1/*/model.safetensors 2/*/model.safetensors
for key in events switches fibers frames; do
    check "other $key" [ "$(number $key 1.json)" = "$(number $key 2.json)" ]
done
check 'two fibers a node' less 2000 "$(number fibers 1.json)"

# ---- what simulating took is said only where something was simulated
ends 0 "$trimtab" run job.yaml --json --runs threads --set cluster.engine=threads --set cluster.nodes=3 --set setting.servers=1
check 'threads are no simulation' silent '"simulation"' out
finish
