#!/usr/bin/env bash
# Goal: whenever a run is killed, its --resume ends where an uninterrupted run ends: bit by bit under BSP with scripted
# settings, within ASP's noise with the tuner on; and no run is ever unreadable. Method: RESUME_KILLS jobs killed at random
# moments, or at the n-th rename, fsync, write or SQLite write (killer.c), while they checkpoint every few milliseconds and
# move partitions; each is resumed, some are killed again while they resume.
killer=$(realpath "$4")
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"
kills=${RESUME_KILLS:-16}
RANDOM=${RESUME_SEED:-4711}
noise=${ASP_NOISE:-0.01} # share of the loss; five uninterrupted runs of this job lie within 0.2 %

cat >bsp.yaml <<'END'
data: {format: clicklog, rows: 6000, columns: 3000, fields: 11}
model: {kind: logistic_regression, l2: 1e-4, bias: on}
optimizer: {kind: adam, learning_rate: 0.01, batch_size: 96, averaging: on}
stop: {max_epochs: 9}
cluster: {nodes: 6}
consistency: bsp
checkpoint: {every: 15ms, keep: 2}
tuner:
  script: [{iteration: 10, servers: 3}, {iteration: 60, servers: 1, chunk_bytes: 4KiB}, {iteration: 120, move: 9},
           {iteration: 180, servers: 5, in_flight: 1}, {iteration: 240, servers: 2, prefetch: 4, move: 5},
           {iteration: 300, servers: 4}, {iteration: 360, move: 7}, {iteration: 420, move: 7}, {iteration: 480, servers: 1},
           {iteration: 520, servers: 3}]
END
cat >asp.yaml <<'END'
data: {format: clicklog, rows: 6000, columns: 3000, fields: 11}
model: {kind: logistic_regression, l2: 1e-3, bias: on}
optimizer: {kind: adagrad, learning_rate: 0.1, batch_size: 16}
stop: {max_epochs: 120}
cluster: {nodes: 6}
checkpoint: {every: 20ms, keep: 2}
END
loss_of() { sed -n 's/^  "loss": \([0-9.e-]*\),*$/\1/p' "$1"; }
near() { awk -v a="$1" -v b="$2" -v n="$noise" 'BEGIN { d = (a - b) / b; exit !(d < n && d > -n) }'; }
reference() { # reference NAME: an uninterrupted run: $NAME.safetensors, $NAME.loss, $NAME.ms
    local began=$(date +%s%N)
    ends 0 "$trimtab" run "$1.yaml" --runs "ref-$1" --json
    echo $((($(date +%s%N) - began) / 1000000)) >"$1.ms"
    cp ref-"$1"/*/model.safetensors "$1.safetensors"
    loss_of out >"$1.loss"
}
# killed COMMAND...: dies by itself (KILL_CALL) or is killed after a random part of the run's time
killed() {
    local delay job
    if [ -n "${KILL_CALL:-}" ]; then
        LD_PRELOAD=$killer timeout 60 "$@" >out 2>err </dev/null
        return
    fi
    delay=$((RANDOM % ($(cat "$name.ms") + 20)))
    "$@" >out 2>err </dev/null &
    job=$!
    sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
    kill -KILL $job
    wait $job
} 2>/dev/null
one() { # one NAME: a run that is killed and resumed
    local what="$1, ${KILL_CALL:-random} ${KILL_NTH:-} ${KILL_AFTER:+after}" run again
    name=$1
    rm -rf runs
    killed "$trimtab" run "$1.yaml" --json
    run=$(find runs -mindepth 1 -maxdepth 1 2>/dev/null)
    [ -n "$run" ] || return 0 # killed before it began
    if [ ! -s "$run/job.yaml" ]; then
        early=$((early + 1))
        return 0 # killed while it began: nothing was trained
    fi
    [ -e "$run/run.db" ] && [ -s "$run/run.db" ] && ends 0 "$trimtab" report "$run"
    again=$((RANDOM % 4))
    if [ $again -eq 0 ]; then
        killed "$trimtab" run --resume "$run" --json
        twice=$((twice + 1))
    fi
    ends 0 "$trimtab" run --resume "$run" --json
    grep -q "resumed from the checkpoint" err && resumed=$((resumed + 1))
    if [ "$1" = bsp ]; then
        check "$what: another model" cmp -s "$1.safetensors" "$run/model.safetensors"
    else
        check "$what: loss $(loss_of out), uninterrupted $(cat asp.loss)" near "$(loss_of out)" "$(cat asp.loss)"
    fi
    ends 0 "$trimtab" report "$run"
    check "$what: half-written files stay" [ -z "$(find "$run" -name '*.new' -o -name '*.part-*')" ]
}

reference bsp
reference asp
early=0 twice=0 resumed=0
for ((k = 0; k < kills; k++)); do
    unset KILL_CALL KILL_NTH KILL_AFTER
    case $((k % 8)) in
    2) export KILL_CALL=rename KILL_NTH=$((1 + RANDOM % 30)) ;;
    3) export KILL_CALL=rename KILL_NTH=$((1 + RANDOM % 30)) KILL_AFTER=1 ;;
    4) export KILL_CALL=fsync KILL_NTH=$((1 + RANDOM % 60)) ;;
    5) export KILL_CALL=write KILL_NTH=$((1 + RANDOM % 300)) ;;
    6) export KILL_CALL=pwrite KILL_NTH=$((1 + RANDOM % 100)) ;;
    esac
    if [ $((k % 2)) -eq $((k / 8 % 2)) ]; then one bsp; else one asp; fi
    unset KILL_CALL KILL_NTH KILL_AFTER
done
echo "$kills kills: $resumed resumed from a checkpoint, $twice killed again while resuming, $early before the run began"
check "too few resumed from a checkpoint: $resumed of $kills" [ $((3 * resumed)) -gt "$kills" ]
finish
