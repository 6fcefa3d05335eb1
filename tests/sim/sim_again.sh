#!/usr/bin/env bash
# Goal: under BSP, a worker that dies when it has just come back, before anything was heard from it, costs what any other death
# does: the others ask for the last rounds whether they lack something, not for all since the job began. Method: jobs of 500 rounds
# and a millisecond of latency whose third worker dies after 200 rounds, and again at every millisecond around its return; all take
# the same virtual time, but for a fifth of what asking for 200 rounds takes, and train the model of the job left alone.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 600, columns: 200, fields: 6}
model: {kind: logistic_regression, l2: 1e-4}
optimizer: {kind: sgd, learning_rate: 0.05, batch_size: 24}
stop: {max_epochs: 20}
consistency: bsp
bsp_slices: 6
cluster: {engine: simulated, nodes: 4, failure_timeout: 100ms, heartbeat: 5ms}
tuner: {enabled: off}
checkpoint: {keep: 0}
simulation: {network: {latency: 1ms}}
END
seconds() { # seconds: virtual, of the run that was last
    sed -n 's/.*"train_seconds": \([0-9.]*\).*/\1/p' out
}
mkdir runs
ends 0 "$trimtab" run job.yaml --runs runs/alone --json
alone=$(seconds)
least=1e9 most=0 twice=0
for ((at = 3200; at <= 3212; at++)); do
    cat >deaths.yaml <<END
simulation: {faults: [{kind: crash, from: 3, at: 3s, for: 200ms}, {kind: crash, from: 3, at: ${at}ms, for: 200ms}]}
END
    ends 0 "$trimtab" run job.yaml deaths.yaml --runs "runs/$at" --json
    check "a death at $at ms: another model" cmp -s runs/alone/*/model.safetensors "runs/$at"/*/model.safetensors
    grep -q '"returns": 2' out || continue # it was not back yet
    twice=$((twice + 1))
    read -r least most < <(awk -v s="$(seconds)" -v a="$least" -v b="$most" 'BEGIN { print (s < a ? s : a), (s > b ? s : b) }')
done
echo "alone $alone s; with two deaths, $twice times: $least to $most s"
check "in fewer than eight runs the worker died twice" [ "$twice" -ge 8 ]
check "a death took longer than another, by more than 0.1 s" awk -v a="$least" -v b="$most" 'BEGIN { exit !(b - a < 0.1) }'
finish
