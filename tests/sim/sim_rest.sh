#!/usr/bin/env bash
# Goal: a worker that sleeps through the end of one rest and the beginning of the next is not taken for resting: a checkpoint of
# a round under way is none. Method: jobs with a checkpoint every millisecond whose hosts stand still for moments at random, as
# nodes on a crowded machine do; each trains the model of the job left alone, and is resumed from the last checkpoint. And: a restart
# waits until it is known what servers have trained when they were workers. Method: jobs whose workers become servers just before
# a restart, while messages are lost; each comes to its end.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 600, columns: 200, fields: 6}
model: {kind: logistic_regression, l2: 1e-4}
optimizer: {kind: sgd, learning_rate: 0.05, batch_size: 24}
stop: {max_epochs: 12}
bsp_slices: 6
cluster: {engine: simulated, nodes: 4}
tuner: {enabled: off}
checkpoint: {every: 1ms, keep: 1}
END
pauses() { # pauses SEED: a file of 300, half a millisecond to 6 ms
    RANDOM=$1
    echo 'simulation:'
    echo '  faults:'
    for ((i = 0; i < 300; i++)); do
        echo "    - {kind: pause, from: $((1 + RANDOM % 3)), at: $((RANDOM % 1500)).$((RANDOM % 1000))ms, for: $((RANDOM % 6)).5ms}"
    done
}
[ -w /dev/shm ] && runs=$(mktemp -d /dev/shm/sim-rest-XXXXXX) || runs=runs
trap 'rm -rf "$box" "$runs"' EXIT
mkdir -p "$runs"
for consistency in bsp asp; do
    for ((seed = 1; seed <= 15; seed++)); do
        sets=(--set "seed=$seed" --set "consistency=$consistency")
        pauses "$seed" >pauses.yaml
        ends 0 "$trimtab" run job.yaml pauses.yaml "${sets[@]}" --runs "$runs/paused" --json
        check "$consistency, seed $seed: an epoch was not trained" says '"epochs": (12|11\.99)' out
        if [ "$consistency" = bsp ]; then
            ends 0 "$trimtab" run job.yaml "${sets[@]}" --runs "$runs/alone" --set checkpoint.keep=0
            check "$consistency, seed $seed: another model" cmp -s "$runs"/alone/*/model.safetensors "$runs"/paused/*/model.safetensors
        fi
        rm -rf "$runs"/*
    done
done

cat >restart.yaml <<'END'
data: {format: clicklog, rows: 392, columns: 240, fields: 3}
model: {kind: linear_svm, l2: 1e-4, pull: keyed}
optimizer: {kind: ftrl, learning_rate: 0.05, batch_size: 24}
stop: {max_epochs: 2, max_time: 60s}
consistency: bsp
bsp_slices: 2
cluster: {engine: simulated, nodes: 6, retry: 19ms}
checkpoint: {keep: 0}
setting: {prefetch: 0}
knobs: {servers: {start: 1}}
tuner: {script: [{iteration: 1, servers: 4}, {iteration: 2, servers: 3, method: checkpoint}]}
simulation:
  network: {latency: 247us}
  faults: [{kind: drop, share: 3%}, {kind: reorder, share: 5%, by: 29ms}]
END
for ((seed = 1; seed <= 150; seed++)); do
    ends 0 "$trimtab" run restart.yaml --set "seed=$seed" --runs "$runs/restart" --json
    check "restart, seed $seed: its epochs are trained" says '"epochs": 2\.0' out
    rm -rf "$runs"/*
done
finish
