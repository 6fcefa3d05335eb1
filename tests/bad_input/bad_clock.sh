#!/usr/bin/env bash
# Goal: a wall clock that is set while a job runs, forwards or backwards, changes nothing but the dates it stands for.
# Method: a preloaded clock that jumps after a number of readings; times of the run, its report, its resumption.
shim=$(realpath "$2/../test-bin/clock_jump.so")
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2/../test-bin" "$2"
[ -e "$shim" ] || exit 77

field() { sed -n "s/^ *\"$1\": \"*\\([^\",]*\\)\"*,*\$/\\1/p" out | head -n 1; }
between() { awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x > a && x < b) }'; }
sed -i 's/max_time: 60s/max_time: 1500ms/' long.yaml
while read -r jump after; do
    what="the clock jumps by $jump s after $after readings"
    rm -rf runs
    LD_PRELOAD=$shim CLOCK_JUMP=$jump CLOCK_JUMP_CALLS=$after ends 0 "$trimtab" run long.yaml --json
    check "$what: status $(field status)" [ "$(field stop_reason)" = 'max_time 1.5 s reached' ]
    check "$what: train_seconds $(field train_seconds)" between "$(field train_seconds)" 1 10
    check "$what: wall_seconds $(field wall_seconds)" between "$(field wall_seconds)" 1 20
    run=$(echo runs/*)
    ends 0 "$trimtab" report "$run"
    check "$what: the report" says '^stopped: max_time 1.5 s reached' out
    ends 0 "$trimtab" runs
    LD_PRELOAD=$shim CLOCK_JUMP=$jump CLOCK_JUMP_CALLS=$after \
        ends 0 "$trimtab" run --resume "$run" --set stop.max_time=2s --json
    check "$what: resumed, train_seconds $(field train_seconds)" between "$(field train_seconds)" 1.5 10
done <<'END'
-86400 1
31536000 3
-1800000000 0
END
finish
