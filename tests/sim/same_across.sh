#!/usr/bin/env bash
# same_across.sh TRIMTAB OTHER: a simulated job with portable kernels gives the same run store and the same model, to the last bit,
# with two builds of the program (gcc and clang): tuned under each consistency, and with nodes that die.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=("$(readlink -f "$1")" "$(readlink -f "$2")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TRIMTAB_REPOSITORY=off
cat >job.yaml <<'END'
data: {format: clicklog, rows: 4000, columns: 3000, fields: 12}
model: {kind: logistic_regression, l2: 1e-5, pull: keyed}
optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 40}
stop: {max_epochs: 12}
cluster: {engine: simulated, nodes: 12, failure_timeout: 100ms, heartbeat: 10ms}
setting: {kernel: portable}
simulation: {stragglers: 20%, cores: 2}
tuner: {compare: off}
END
failed=0
crash='simulation.faults=[{kind: crash, from: 7, at: 20ms, for: 200ms}]'
for kind in 'consistency=asp' 'consistency=ssp' 'consistency=bsp' "$crash"; do
    for i in 0 1; do
        rm -rf "runs$i"
        "${programs[i]}" run job.yaml --json --runs "runs$i" --set "$kind" >"out$i" 2>"err$i" || { cat "err$i" >&2; exit 1; }
        python3 "$here/store_contents.py" "runs$i"/*/run.db >"store$i"
    done
    if cmp -s store0 store1 && cmp -s runs0/*/model.safetensors runs1/*/model.safetensors; then
        echo "$kind: the same, $(wc -l <store0) rows"
    else
        echo "$kind: differs"
        failed=1
    fi
done
exit $failed
