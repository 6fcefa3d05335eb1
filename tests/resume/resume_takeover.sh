#!/usr/bin/env bash
# Goal: a program that is killed leaves its nodes, on this host or on others, to the one that resumes the run, where they are and for as long as the job says;
# whoever comes with another job gets nothing, or is told what that costs; nobody is left behind. Method: kill -9 of jobs whose nodes
# are processes; under bsp the model must be that of an undisturbed run, byte for byte, without a checkpoint.
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"
export TAKEOVER_MARK="takeover-$$"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 6000, columns: 3000, fields: 11}
model: {kind: logistic_regression, l2: 1e-4, bias: on}
optimizer: {kind: adam, learning_rate: 0.01, batch_size: 96}
stop: {max_epochs: 40}
consistency: bsp
cluster: {engine: local, nodes: 4}
checkpoint: {keep: 0}
tuner:
  script: [{iteration: 50, servers: 3}, {iteration: 200, servers: 1}, {iteration: 400, move: 9}, {iteration: 600, servers: 2}]
END
# The processes of this test's jobs, by what they have in their environment.
left() { grep -lsz "^TAKEOVER_MARK=$TAKEOVER_MARK\$" /proc/[0-9]*/environ | while read -r file; do
    case $(cat "${file%environ}comm" 2>/dev/null) in trimtab*) echo "${file//[!0-9]/}" ;; esac
done; }
names() { for process in $(left); do cat "/proc/$process/comm"; done; }
gone_within() { # gone_within SECONDS
    local turns=$(($1 * 20))
    while [ "$(left | wc -l)" -gt 0 ]; do
        [ $((turns--)) -gt 0 ] || return 1
        sleep 0.05
    done
}
# begin_and_kill SECONDS FILE ARGUMENTS...: a run that is killed so long after the file is there; $run is its directory
begin_and_kill() {
    local seconds=$1 file=$2 job
    shift 2
    rm -rf runs
    "$trimtab" run job.yaml "$@" >out 2>err </dev/null &
    job=$!
    until [ -n "$(find runs -name "$file" 2>/dev/null)" ]; do
        kill -0 $job || break
        sleep 0.02
    done
    sleep "$seconds"
    kill -KILL $job
    wait $job
    run=$(find runs -mindepth 1 -maxdepth 1)
} 2>/dev/null
# killed ARGUMENTS...: a run of no end, killed while it trains
killed() { begin_and_kill 0.3 status.json --set stop.max_epochs=1000000 "$@"; }

ends 0 "$trimtab" run job.yaml --runs undisturbed -q
begin_and_kill 0.3 run.db
ends 0 "$trimtab" run --resume "$run" --json
check "the nodes are taken over" says 'took over from a process that died' err
check "and counted" says '"takeovers": 1' out
check "the model is that of an undisturbed run" cmp -s "$run/model.safetensors" undisturbed/*/model.safetensors
check "nobody is left behind" gone_within 2

killed --set consistency=asp --set cluster.master_timeout=0s
check "without patience all end with the program" gone_within 2
ends 0 "$trimtab" run --resume "$run" -q --set stop.max_epochs=3
check "and the run begins again" silent 'took over' err

killed --set consistency=asp --set cluster.master_timeout=5s
check "they wait" test "$(left | wc -l)" -eq 5
check "and no longer than they should" gone_within 8

killed --set consistency=asp
ends 2 "$trimtab" run --resume "$run" --set optimizer.learning_rate=0.3
check "another job is refused" says 'that is another job' err
check "and takes nothing away" test "$(left | wc -l)" -eq 5
ends 0 "$trimtab" run --resume "$run" --json --set stop.max_time=2s
check "the same with another limit takes them over" says 'took over from a process that died' err
check "nobody is left behind" gone_within 2

killed --set consistency=asp
ends 0 "$trimtab" run --resume "$run" --set cluster.nodes=5 --set stop.max_time=1s
check "other nodes: it says what that costs" says 'cannot be taken over: there are 4 of them, the job has 5' err
check "nobody is left behind" gone_within 2

killed --set consistency=asp
for host in $(left); do
    [ "$(cat "/proc/$host/comm" 2>/dev/null)" != trimtab-host ] || kill -KILL "$host"
done
check "nodes end with the process that started them" gone_within 2
ends 0 "$trimtab" run --resume "$run" --set stop.max_time=1s
check "then it is the checkpoint, or the beginning" says 'the run begins again' err

# As if of two hosts, over TCP: a process beside the program keeps the lines to them.
ssh=(--set cluster.engine=ssh --set 'cluster.hosts=[127.0.0.1, localhost]' --set cluster.encryption=on
    --set "cluster.remote_shell=$here/../hosts/this_host.sh")
begin_and_kill 0.3 run.db "${ssh[@]}"
ends 0 "$trimtab" run --resume "$run" --json
check "nodes of other hosts are taken over" says 'took over from a process that died' err
check "the model is that of an undisturbed run" cmp -s "$run/model.safetensors" undisturbed/*/model.safetensors
check "nobody is left behind" gone_within 2

killed "${ssh[@]}" --set consistency=asp --set cluster.master_timeout=2s
check "hosts wait" test "$(names | grep -c '^trimtab-node$')" -eq 2
check "and no longer than they should" gone_within 6

killed "${ssh[@]}" --set consistency=asp
for host in $(left); do
    [ "$(cat "/proc/$host/comm" 2>/dev/null)" != trimtab-node ] || break
done
kill -KILL "$host"
ends 0 "$trimtab" run --resume "$run" --json --set stop.max_time=8s
check "a host that ended meanwhile is launched anew" says 'took over from a process that died' err
check "with its nodes" says '"returns": 2' out
check "nobody is left behind" gone_within 2

killed "${ssh[@]}" --set consistency=asp
ends 0 "$trimtab" run --resume "$run" --set cluster.nodes=6 --set stop.max_time=1s
check "other nodes: they end, and others begin" says 'the run begins again' err
check "nobody is left behind" gone_within 2
finish
