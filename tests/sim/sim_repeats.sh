#!/usr/bin/env bash
# Goal: a job on simulated hosts is the job: it trains, tunes and moves parameters; and it repeats to the last bit, whatever the
# machine does meanwhile. Method: jobs of each consistency, tuned and with scripted moves, run twice; run stores and models
# are compared byte for byte, but for the wall clock's columns. Faster hosts and networks must finish sooner.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 4000, columns: 3000, fields: 12, test: {rows: 500}}
model: {kind: logistic_regression, l2: 1e-5, pull: keyed}
optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 40}
stop: {max_epochs: 20}
cluster: {engine: simulated, nodes: 12}
simulation: {stragglers: 20%, cores: 2}
tuner: {compare: off}
END
number() { sed -n "s/^ *\"$1\": \\([0-9.e-]*\\),*\$/\\1/p" "$2" | head -n 1; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
contents() { python3 "$(dirname "$0")/store_contents.py" "$1"; }
script='tuner.script=[{iteration: 40, servers: 5}, {iteration: 150, servers: 2, in_flight: 16}, {iteration: 300, move: 4}]'
drain='reconfig.method=drain'
count=0
for kind in 'consistency=asp' 'consistency=ssp' 'consistency=bsp' "consistency=asp $drain" "consistency=bsp $script" "consistency=ssp $script"; do
    runs=pair$((++count))
    mkdir $runs
    sets=()
    case $kind in
    *script*) sets=(--set "${kind%% *}" --set "$script") ;;
    *) for assignment in $kind; do sets+=(--set "$assignment"); done ;;
    esac
    for turn in 1 2; do
        ends 0 "$trimtab" run job.yaml --json --runs "$runs/$turn" "${sets[@]}"
        mv out "$runs.$turn.json"
    done
    check "$kind: it learns" less "$(number loss "$runs.1.json")" 0.6
    check "$kind: it is reconfigured" [ "$(number generations "$runs.1.json")" -gt 1 ]
    check "$kind: another model" cmp -s $runs/1/*/model.safetensors $runs/2/*/model.safetensors
    if command -v python3 >/dev/null; then
        for turn in 1 2; do contents $runs/$turn/*/run.db >$runs.$turn.store; done
        check "$kind: nothing is recorded" [ "$(wc -l <$runs.1.store)" -gt 20 ]
        check "$kind: another run store" cmp $runs.1.store $runs.2.store
    fi
    ends 0 "$trimtab" report $runs/1/*
done
check 'another seed is another run' [ "$(number train_seconds pair1.1.json)" != "$(
    "$trimtab" run job.yaml --json -q --runs other --set seed=2 >other.json && number train_seconds other.json
)" ]

# ---- time is what the hosts and the network are
seconds() { # seconds ASSIGNMENT...: training time, untuned
    local sets=()
    for assignment in "$@"; do sets+=(--set "$assignment"); done
    "$trimtab" run job.yaml --json -q --runs timed --set tuner.enabled=off "${sets[@]}" >timed.json
    number train_seconds timed.json
}
plain=$(seconds)
check 'hosts twice as fast' less "$(seconds simulation.speed=2)" "$plain"
check 'a slow network' less "$plain" "$(seconds simulation.network.rate=1MB)"
check 'a long way' less "$plain" "$(seconds simulation.network.latency=5ms)"
check 'one core for twelve nodes' less "$plain" "$(seconds simulation.hosts=1 simulation.cores=1 simulation.network.local_latency=50us)"
check 'a narrow switch' less "$plain" "$(seconds simulation.network.oversubscription=1000)"

# ---- stopped and resumed
ends 0 "$trimtab" run job.yaml --runs resumed --set stop.max_epochs=3
ends 0 "$trimtab" run --resume resumed/* --set stop.max_epochs=6 --json
check 'it goes on where it was' less 5.9 "$(number epochs out)"

# ---- constants of this machine
ends 0 "$trimtab" bench calibrate machine.yaml
for key in example nonzero cell prepare key value apply bf16 message chunk byte helper serial pause wake signal; do
    check "no $key is measured" says "^    $key: " machine.yaml
done
check 'a gradient costs nothing' silent 'nonzero:.*: 0ns' machine.yaml
check 'a message costs nothing' silent 'message: 0ns' machine.yaml
ends 0 "$trimtab" run job.yaml machine.yaml --runs measured
ends 2 "$trimtab" bench calibrate nowhere/machine.yaml
ends 2 "$trimtab" bench
ends 2 "$trimtab" bench calibrate a b

# ---- what would be simulated is said
ends 0 "$trimtab" plan job.yaml
check 'plan names the hosts' says '12 nodes on 12 simulated hosts of 2 cores' out

# ---- what cannot be simulated
ends 2 "$trimtab" run job.yaml --set cluster.driver=in_place
check 'in place is refused' says 'simulated hosts have no memory in common; set cluster.driver: messages' err
finish
