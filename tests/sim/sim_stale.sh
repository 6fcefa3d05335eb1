#!/usr/bin/env bash
# Goal: where the step size is near the limit of what stale gradients bear, and settings that make them staler are faster an
# iteration, tuning makes a job no slower: not by a loss that explodes, nor by one that ends above its target. Method: two such
# jobs on 36 simulated hosts, tuned and at their start setting; virtual times, so that a seed always gives the same ones.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"
root=$(realpath "$3")

seconds() { sed -n 's/^  "train_seconds": \([0-9.e-]*\),*$/\1/p' "$1"; }
job() { # job NAME MODEL RATE TARGET
    cat >"$1.yaml" <<END
data: {format: clicklog, rows: 20000, columns: 256, fields: 16, seed: 1}
model: $2
optimizer: {kind: sgd, learning_rate: $3, batch_size: 200}
stop: {objective: $4, max_epochs: 1e9, max_time: 120s}
simulation: {evaluate_pushes: 25}
checkpoint: {keep: 0}
tuner: {compare: off}
END
}
job svm "{kind: linear_svm, l2: 1e-4}" 0.005 0.5002
job logr "{kind: logistic_regression}" 0.05 0.463
export TRIMTAB_REPOSITORY=off
# logr, seed 3: after a rise the setting that the job goes back to does not bear its delay either.
for name in svm logr; do
    for seed in 1 2 3; do
        for tuned in off on; do
            ends 0 "$trimtab" run $name.yaml "$root/bench/paper_cluster.yaml" "$root/bench/paper_space.yaml" --set seed=$seed \
                --set tuner.enabled=$tuned --json -q
            check "$name, seed $seed, tuner $tuned: the target was not reached" says '"status": "converged"' out
            seconds out >$tuned
        done
        echo "$name, seed $seed: $(cat on) s tuned, $(cat off) s at the start setting"
        check "$name, seed $seed: slower than the start setting" awk -v on="$(cat on)" -v off="$(cat off)" 'BEGIN { exit !(on <= 1.1 * off) }'
    done
done
finish
