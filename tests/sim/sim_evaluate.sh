#!/usr/bin/env bash
# Goal: simulation.evaluate_pushes looks at a job without touching it, and stops it by its own rule. Method: jobs of each
# consistency, with moves and with a restart, run with and without it: the same end on the virtual clock, byte-equal models
# and samples; the iterations at which it looked, and where the target was first held twice in a row, are read in the run
# store.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"
command -v python3 >/dev/null || exit 77 # to read run stores

cat >job.yaml <<'END'
data: {format: clicklog, rows: 4000, columns: 3000, fields: 12}
model: {kind: logistic_regression, l2: 1e-5}
optimizer: {kind: sgd, learning_rate: 2, batch_size: 40}
stop: {max_epochs: 6}
cluster: {engine: simulated, nodes: 8}
simulation: {cores: 2}
tuner: {enabled: off}
END
number() { sed -n "s/^ *\"$1\": \\([0-9.e-]*\\),*\$/\\1/p" "$2" | head -n 1; }
store() { # store RUNS QUERY: its rows, a value a word
    python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*map(repr, row))' "$1"/*/run.db "$2"
}
script='tuner.script=[{iteration: 40, servers: 5}, {iteration: 60, servers: 2, push_aggregation: 3}, {iteration: 120, servers: 4, method: checkpoint}, {iteration: 150, move: 4}]'
count=0
for kind in consistency=asp consistency=ssp consistency=bsp 'model.table=sparse' optimizer.averaging=on "$script" "consistency=ssp $script"; do
    sets=()
    case $kind in
    *' tuner'*) sets=(--set "${kind%% *}" --set "$script" --set tuner.enabled=null) ;;
    tuner*) sets=(--set "$script" --set tuner.enabled=null) ;;
    *) sets=(--set "$kind") ;;
    esac
    name=pair$((++count))
    every=25
    ends 0 "$trimtab" run job.yaml --json --runs $name.plain "${sets[@]}"
    mv out $name.plain.json
    ends 0 "$trimtab" run job.yaml --json --runs $name.seen "${sets[@]}" --set simulation.evaluate_pushes=$every
    check "$kind: another end" [ "$(number train_seconds $name.plain.json)" = "$(number train_seconds out)" ]
    check "$kind: another model" cmp $name.plain/*/model.safetensors $name.seen/*/model.safetensors
    for query in 'SELECT * FROM sample' 'SELECT * FROM "window"' 'SELECT * FROM reconfiguration'; do
        store $name.plain "$query" >plain.rows
        store $name.seen "$query" >seen.rows
        check "$kind: $query differs" cmp plain.rows seen.rows
    done
    # One look for each multiple (merged pushes may pass it by some iterations), and the one of the end.
    looks=$(store $name.seen 'SELECT count(*) FROM progress')
    last=$(store $name.seen 'SELECT max(iteration) FROM progress')
    check "$kind: $looks looks at $last iterations" [ "$looks" = $((last / every + 1)) ]
    check "$kind: $looks looks only" [ "$looks" -ge 20 ]
    case $kind in
    *tuner*) ;; # three merged iterations pass a multiple by
    *) check "$kind: it looks elsewhere" [ "$(store $name.seen "SELECT count(*) FROM progress WHERE iteration % $every != 0")" = 0 ] ;;
    esac
    # What is read out of the servers' memory is the model: the last look agrees with the evaluation of the end.
    check "$kind: it sees another model" [ "$(store $name.seen "SELECT count(*), max(abs(loss - (SELECT loss FROM progress
        ORDER BY rowid DESC LIMIT 1))) < 1e-12 FROM progress WHERE iteration = $last")" = '2 1' ]
done

# ---- while partitions are on their way
moves='tuner.script=[{iteration: 40, servers: 3}, {iteration: 150, servers: 1}, {iteration: 300, servers: 2, method: drain}, {iteration: 450, move: 6}]'
for kind in model.table=dense model.table=sparse; do
    ends 0 "$trimtab" run job.yaml --json --runs transit.$kind --set tuner.enabled=null --set "$moves" --set $kind --set cluster.nodes=4 \
        --set data.columns=1000000 --set model.pull=keyed --set optimizer.learning_rate=1 --set simulation.network.rate=20MB \
        --set simulation.evaluate_pushes=1
    check "$kind: nothing was on its way" [ "$(store transit.$kind 'SELECT count(*) FROM progress, reconfiguration
        WHERE progress.time_s > start_s AND progress.time_s < start_s + duration_s')" -ge 5 ]
    # Rows read at the wrong server, or not at all, would take the loss back by a tenth.
    check "$kind: the loss leaps" [ "$(store transit.$kind 'SELECT max(abs(b.loss - a.loss)) < 0.01 FROM progress a, progress b
        WHERE b.iteration = a.iteration + 1 AND a.iteration >= 40')" = 1 ]
done

# ---- what workers measured, line by line
ends 0 "$trimtab" run job.yaml --json --runs sampled --set simulation.samples=samples.txt
check 'the samples change the end' [ "$(number train_seconds out)" = "$(number train_seconds pair1.plain.json)" ]
check 'a sample is missing' [ "$(grep -c '^[0-9]' samples.txt)" = "$(number iterations out)" ]
ends 1 "$trimtab" run job.yaml --runs unwritten --set simulation.samples=nowhere/samples.txt
check 'where they go is said' says 'nowhere/samples.txt: cannot write the samples' err

# ---- the stop rule
target=$(store pair1.seen 'SELECT round(loss, 4) FROM progress ORDER BY time_s LIMIT 1 OFFSET 10')
ends 0 "$trimtab" run job.yaml --json --runs stopped --set simulation.evaluate_pushes=25 --set stop.loss="$target"
check 'it converges' says '"status": "converged"' out
first=$(store stopped "SELECT min(time_s) FROM progress a WHERE loss <= $target AND (SELECT loss FROM progress b
    WHERE b.time_s > a.time_s ORDER BY time_s LIMIT 1) <= $target")
# As numbers: one writes 17 digits, the other as few as tell it.
check "it ends at $first, the first of two" [ "$(store stopped "SELECT $first = $(number train_seconds out)")" = 1 ]
check 'it stops at the second' [ "$(store stopped "SELECT count(*) FROM progress WHERE time_s > $first")" = 1 ]
check 'another loss' [ "$(store stopped "SELECT abs(loss - $(number loss out)) < 1e-12 FROM progress WHERE time_s = $first")" = 1 ]
ends 0 "$trimtab" run job.yaml --json --runs limited --set simulation.evaluate_pushes=25 --set stop.loss=0.001 --set stop.max_time=5ms
check 'a limit holds' says '"stop_reason": "max_time 0.005 s reached"' out
ends 0 "$trimtab" run job.yaml --json --runs objective --set simulation.evaluate_pushes=25 --set stop.objective="$target"
check 'an objective' says '"status": "converged"' out

# ---- on real threads there is no clock that waits
ends 2 "$trimtab" run job.yaml --set cluster.engine=threads --set simulation=null --set simulation.evaluate_pushes=25
check 'it is refused' says 'is for simulated hosts' err
finish
