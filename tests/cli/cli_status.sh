#!/usr/bin/env bash
# Goal: trimtab status says how a run stands while it goes on, and that it does not when it has ended or was killed. Method: jobs of
# threads and of processes, looked at while they run; a node and the program killed.
. "$(dirname "$0")/outside.sh" "$@"

ends 2 "$trimtab" status
check 'no runs' says 'no run found here' err

await_status() { # [PATTERN]: till the run that was begun last has one, and it says PATTERN
    for _ in $(seq 200); do
        "$trimtab" status >out 2>err && grep -Eq -- "${1:-}" out && return 0
        sleep 0.1
    done
    return 1
}

"$trimtab" run long.yaml -q >/dev/null 2>&1 &
check 'it is going on' await_status
check 'the job' says ' iterations, epoch .*, loss .*, asp on engine threads$' out
check 'a server' says '^ +0 +server +alive +[0-9]+ partitions +[0-9.]+ ([KMG]iB|bytes)' out
check 'workers' test "$(grep -cE '^ +[0-9] +worker +alive +[0-9]+ iterations, +[0-9]+ behind' out)" -ge 1
kill -9 $!
wait 2>/dev/null
ends 1 "$trimtab" status
check 'it was killed' says 'is not going on; what it did: trimtab report' out
ends 1 "$trimtab" status --json
check 'so for programs' says '"going_on": false' out
rm -rf runs

"$trimtab" run long.yaml -q --set cluster.engine=local --set cluster.replicas=1 --set stop.max_time=15s >/dev/null 2>&1 &
job=$!
check 'processes' await_status
check 'where they are' says 'this host, process [0-9]+, heard [0-9.]+ s ago' out
check 'copies' await_status '0 partitions on their way, 0 without a copy' # the first status may come before them
pkill -9 -P "$(pgrep -P $job -x trimtab-host)" -x trimtab-n1
check 'the death is told' bash -c "for _ in \$(seq 50); do '$trimtab' status | grep -q '1 deaths, 1 returns' && exit 0; sleep 0.1; done; exit 1"
ends 0 "$trimtab" status --json
check 'so for programs' says '"going_on": true' out
check 'its nodes' test "$(grep -c '"heard_seconds_ago"' out)" -eq 4
wait $job
ends 1 "$trimtab" status
check 'nothing is left of it' test -z "$(find runs -name 'status.json*')"
finish
