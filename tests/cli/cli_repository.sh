#!/usr/bin/env bash
# Goal: what a run learned is used by the next one like it, and only there; the user's word on knobs stands; runs that end at
# the same time all leave their lesson; --cold, repository: off and the variables choose the file. Method: whole runs of a small
# tuned job, their JSON and what plan and report say. Which settings are good is not looked at: they differ from machine to
# machine.
. "$(dirname "$0")/outside.sh" "$@"
export TRIMTAB_REPOSITORY=$box/r.db
cat >job.yaml <<'END'
data: {format: clicklog, rows: 20000, columns: 5000, fields: 8}
model: {kind: logistic_regression}
stop: {max_epochs: 100}
cluster: {nodes: 4}
END
runs_of() { "$trimtab" repository list --json --file "$1" | grep -c '"run":'; }
began_cold() { says '"started_from": \[\]' out; }
part() { sed -n "/\"$1\": {/,/}/p" "$2" | tr -d ' ,'; } # part setting FILE: without blanks and commas

# ---- cold, then warm
ends 0 "$trimtab" plan job.yaml
check 'plan knows that there is none' says "^repository +$box/r.db: begins cold: it does not exist yet" out
# How many settings a run comes to is up to the machine; a start takes a run that compared three.
for ((i = 0; i < 8; i++)); do
    rm -f r.db
    ends 0 "$trimtab" run job.yaml --json --set "stop.max_epochs=$((100 << i))"
    [ "$("$trimtab" repository list --json --file r.db | sed -n 's/.*"settings": \([0-9]*\),/\1/p')" -ge 3 ] && break
done
check 'the first run begins cold' began_cold
check 'and says where it keeps what it measured' says "what was measured under [0-9]+ settings is kept in $box/r.db" err
first=$(sed -n 's/.*"run": "\(.*\)",/\1/p' out)
cp r.db first.db
ends 0 "$trimtab" plan job.yaml
check 'plan names the run' says "run $first, .*same job" out
check 'plan says what of it' says "^  $first +distance 0.00, [0-9]+ measurements; same job" out
ends 0 "$trimtab" plan job.yaml --json
check 'plan --json has the same' "$tools/json_shape" repository.path:string repository.used:bool repository.reason:string \
    repository.runs.run:string repository.runs.distance:number repository.runs.measurements:int repository.clipped:string \
    repository.trouble:string repository.runs_there:int repository.start_setting.servers:int <out
part start_setting out >planned
ends 0 "$trimtab" run job.yaml --json
check 'the second run begins with the first' says "\"$first\"" out
part start_setting out >began
check 'start_setting is what plan said' diff planned began
check 'it says why' says "$first, .*same job" err
second=$(sed -n 's/.*"run": "\(.*\)",/\1/p' out)
ends 0 "$trimtab" report "$second"
check 'the report says so' says "$first" out
ends 0 "$trimtab" report "$second" --json
check 'report --json says so' says "\"started_from\": \".*$first" out
ends 0 "$trimtab" repository list
check 'list has both' [ "$(grep -cE "^($first|$second) " out)" -eq 2 ]
ends 0 "$trimtab" run job.yaml --json --cold
check '--cold begins cold' began_cold
check '--cold stores all the same' [ "$(runs_of r.db)" -eq 3 ]
ends 0 "$trimtab" run job.yaml --json --set repository=off
check 'off begins cold' began_cold
check 'off stores nothing' [ "$(runs_of r.db)" -eq 3 ]

# ---- the user's word stands
ends 0 "$trimtab" plan job.yaml --json --set setting.push_aggregation=3 --set setting.kernel=portable
check 'what is fixed stays fixed' says '^      "push_aggregation": 3,?$' out
check 'what is fixed stays fixed (kernel)' says '^      "kernel": "portable",?$' out
ends 0 "$trimtab" plan job.yaml --json --set 'knobs.prefetch={start: 5}'
check 'a start that is given stays' says '^      "prefetch": 5,?$' out

# ---- a lesson made to measure: one long and one unlike run, and a setting outside of the ranges
if /usr/bin/python3 -c 'import sqlite3' 2>/dev/null; then
    /usr/bin/python3 - "$box/r.db" "$first" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
key, best = db.execute("SELECT key, best_setting FROM run WHERE id = ?", (sys.argv[2],)).fetchone()
db.execute("DELETE FROM run WHERE key <> ?", (key,))
db.execute("UPDATE setting_value SET value = 3 WHERE run = ? AND setting = ? AND knob = 'servers'", (key, best))
db.execute("UPDATE setting_value SET value = 7 WHERE run = ? AND setting = ? AND knob = 'push_aggregation'", (key, best))
db.commit()
END
    ends 0 "$trimtab" plan job.yaml
    check 'the remembered setting is taken' says 'own start: servers 3' out
    ends 0 "$trimtab" plan job.yaml --set 'knobs.servers={range: [1, 2]}' --set 'knobs.push_aggregation={range: [1, 4]}'
    check 'what does not fit is clipped, and said' says "outside this job's ranges, so servers 2 instead of 3, push_aggregation 4 iterations instead of 7" out
    ends 0 "$trimtab" run job.yaml --json --set 'knobs.servers={range: [1, 2]}'
    check 'the run says it too' says "outside this job's ranges, so servers 2 instead of 3" err
    check 'and begins inside' says '^"servers":2$' <(part start_setting out)
fi
cp first.db r.db
ends 0 "$trimtab" plan job.yaml --set cluster.nodes=8
check 'an unlike job is still near' says 'nodes 4 there, 8 here' out
for unlike in consistency=bsp cluster.driver=in_place optimizer.batch_size=4096 model.kind=linear_svm; do
    ends 0 "$trimtab" plan job.yaml --set "$unlike"
    check "$unlike is another job" says "begins cold: none of the 1 runs there is like this job" out
done
ends 0 "$trimtab" plan job.yaml --set tuner.enabled=off
check 'without tuning nothing is taken' says 'nothing is taken from it: tuning is off' out
ends 0 "$trimtab" plan job.yaml --set tuner.model=paper
check "the paper's tuner takes nothing" says "nothing is taken from it: the paper's tuner begins cold" out
check "the paper's tuner starts cold" says 'starts cold; model paper, estimator paper' out

# ---- simulated hosts: only in a file that the job names
simulated=(--set cluster.engine=simulated --set stop.max_epochs=20)
kept=$(runs_of r.db)
ends 0 "$trimtab" plan job.yaml "${simulated[@]}"
check 'plan says that nothing is taken' says 'nothing is taken from it or kept in it: the hosts are simulated' out
ends 0 "$trimtab" run job.yaml --json "${simulated[@]}"
check "a model of hosts leaves nothing in the user's own" [ "$(runs_of r.db)" -eq "$kept" ]
ends 0 "$trimtab" run job.yaml --json "${simulated[@]}" --set repository=simulated.db
check 'the first begins cold' began_cold
check 'a file that is named keeps it' [ "$(runs_of simulated.db)" -eq 1 ]
first=$(sed -n 's/.*"run": "\(.*\)",/\1/p' out)
ends 0 "$trimtab" run job.yaml --json "${simulated[@]}" --set repository=simulated.db
check 'and the next begins with it' says "\"$first\"" out

# ---- runs at the same time
for i in 1 2 3; do
    "$trimtab" run job.yaml -q --json --set repository=together.db --runs "runs$i" >"out.$i" 2>"err.$i" &
done
wait
check 'three at once: no complaint' [ ! -s err.1 -a ! -s err.2 -a ! -s err.3 ]
check 'three at once: three lessons' [ "$(runs_of together.db)" -eq 3 ]
for i in 1 2 3; do
    check "three at once: that of run $i" says "\"$(sed -n 's/.*"run": "\(.*\)",/\1/p' "out.$i")\"" <("$trimtab" repository list --json --file together.db)
done

# ---- an interrupted run leaves what it had measured
cases=$(runs_of together.db)
"$trimtab" run long.yaml -q --json --set repository=together.db >interrupted 2>err &
job=$!
for ((i = 0; i < 400; i++)); do # until it has measured something
    "$trimtab" report --json 2>/dev/null >so_far
    says '"name": "long"' so_far && says '"seconds_per_iteration": [0-9]' so_far && break
    sleep 0.05
done
kill -INT $job
wait $job
check 'an interrupted run is kept' [ "$(runs_of together.db)" -eq $((cases + 1)) ]

# ---- where it is
unset TRIMTAB_REPOSITORY
export XDG_DATA_HOME=$box/data
ends 0 "$trimtab" run quick.yaml -q --set stop.max_epochs=300
check 'XDG_DATA_HOME' [ -f data/trimtab/repository.db ]
unset XDG_DATA_HOME
HOME=$box/home ends 0 "$trimtab" run quick.yaml -q --set stop.max_epochs=300
check '~/.local/share' [ -f home/.local/share/trimtab/repository.db ]
HOME=$box/home ends 0 "$trimtab" repository list
check 'list shows it' says '-quick' out
HOME=$box/home ends 0 "$trimtab" repository forget "$(sed -n '2s/ .*//p' out)"
check 'forget says how many' says '^1 run forgotten$' out

finish
