#!/usr/bin/env bash
# Goal: plan --simulate predicts, for people and for programs, keeps nothing, repeats, and refuses what has no end to predict.
# Method: a small job on whatever engine it names, with and without a file of costs.
. "$(dirname "$0")/outside.sh" "$@"

cat >job.yaml <<'END'
job: small
data: {format: clicklog, rows: 4000, columns: 1000, fields: 8}
model: {kind: logistic_regression, l2: 1e-5}
optimizer: {kind: sgd, learning_rate: 0.5}
stop: {loss: 0.6, max_epochs: 60}
cluster: {nodes: 4}
END
cat >machine.yaml <<'END'
simulation:
  hosts: 2
  cores: 2
  measured: {machine: "a machine", at: "2020-04-06", settings: 12, error_median: 18%, error_p90: 40%}
  costs: {message: 1us}
END
export TRIMTAB_REPOSITORY=$box/repository.db
before=$(ls -A)

ends 0 "$trimtab" plan --simulate job.yaml
check 'the start setting' says '^  start setting, fixed  +[0-9]' out
check 'the tuned run' says '^  tuned while it trains  +[0-9]' out
check 'what it ended in' says '^  what it ended in, fixed  +[0-9]' out
check 'the target' says 'to training loss <= 0.6' out
check 'assumptions are said' says 'assumed: a host a node, 4 cores a host' out
check 'the error is unknown' says '^error +unknown: the costs are the defaults' out
check 'how long it took' says '^simulated +in ' out
ends 0 "$trimtab" plan --simulate job.yaml machine.yaml --seeds 2
check 'what was measured is said' says 'off by 18 % \(median; 40 % in nine of ten\) in 12 settings .*a machine, 2020-04-06' out
check 'what is given is not assumed' silent 'a host a node|cores a host,' out
check 'a spread' says '^  start setting, fixed .*\(.* \.\. .*\)' out
check 'the tuner with each seed' says 'with seed 2: ' out

ends 0 "$trimtab" plan job.yaml machine.yaml --simulate --json --seeds 2
check 'the keys' "$tools/json_shape" job:string target:string seeds:int cluster:object start_setting:object start:object \
    tuned:object best:object model_error:object wall_seconds:number <out
for key in reached seconds seconds_least seconds_most iterations seconds_per_iteration loss cores_busy network_busy runs \
    stop_reason setting known median p90 settings machine at assumed hosts nodes cores rate latency; do
    check "the key $key" says "\"$key\":" out
done
plain() { grep -v wall_seconds "$1"; }
plain out >first
ends 0 "$trimtab" plan job.yaml machine.yaml --simulate --json --seeds 2
check 'the same numbers again' diff first <(plain out)
ends 0 "$trimtab" plan job.yaml machine.yaml --simulate --json --seeds 2 --set seed=7
check 'other numbers with another seed' [ "$(diff first <(plain out) | wc -l)" -gt 0 ]

rm -f out err first
check 'nothing is left behind' [ "$before" = "$(ls -A)" ]

ends 1 "$trimtab" plan --simulate job.yaml --set stop.loss=1e-6 --set stop.max_epochs=2
check 'what was not reached' says 'not reached: start, seed 1: max_epochs 2 reached' out
check 'what to do' says 'ask for less' err
ends 2 "$trimtab" plan --simulate job.yaml --set stop.loss=null --set stop.max_epochs=null --set stop.max_time=1s
check 'no end' says 'the job has no end to predict the time to; set stop.loss' err
ends 2 "$trimtab" plan --simulate job.yaml --seeds none
ends 2 "$trimtab" plan job.yaml --seeds 2
ends 2 "$trimtab" plan --simulate job.yaml --set optimizer.kind=sgdd
check 'faults as everywhere' says "did you mean 'sgd'" err
ends 2 "$trimtab" plan --simulate gone.yaml

finish
