#!/usr/bin/env bash
# Goal: Ctrl-C ends a run with its model, report and code 130; a second one ends it at once, and reports of both still work.
# Method: signals to a run that has begun; the two of the second case are both pending while the process is stopped, so that
# no time passes between them.
. "$(dirname "$0")/outside.sh" "$@"

begin() { # a run in the background that has had some time to train: $job, $run
    rm -rf runs
    : >err
    "$trimtab" run long.yaml --json >out 2>err &
    job=$!
    local i
    for ((i = 0; i < 400; i++)); do
        run=$(sed -n 's/^run .*(\(.*\))$/\1/p' err)
        [ -n "$run" ] && sleep 0.5 && return
        sleep 0.05
    done
    fault "the run does not begin"
    kill -KILL $job
    finish
}
end_of() { # code of the job, or a fault after $1 seconds
    local i
    code=none
    for ((i = 0; i < $1 * 20; i++)); do
        kill -0 $job 2>/dev/null || break
        sleep 0.05
    done
    kill -0 $job 2>/dev/null && fault "it still runs after $1 s" && kill -KILL $job
    code=0
    wait $job || code=$?
}

for signal in INT TERM; do
    begin
    kill -$signal $job
    end_of 30
    check "SIG$signal: the code is 130, not $code" [ $code -eq 130 ]
    check "SIG$signal: one JSON object" "$tools/json_shape" status:string stop_reason:string loss:number epochs:number setting.servers:int <out
    check "SIG$signal: it says so" says '"stop_reason": "interrupted"' out
    for file in model.safetensors setting.yaml run.db job.yaml checkpoints/*.ttck; do # and the lock, which is empty
        check "SIG$signal: $file is there" [ -s "$(echo "$run"/$file)" ]
    done
    check "SIG$signal: nothing else is" [ "$(find "$run" -type f | wc -l)" -eq 6 ]
    ends 0 "$trimtab" report "$run"
    check "SIG$signal: the report says interrupted" says '^stopped: interrupted; loss 0\.' out
done

begin
kill -STOP $job
kill -INT $job
kill -TERM $job # 15 > 2: whichever comes second, both are there when it goes on
before=$(date +%s%N)
kill -CONT $job
end_of 10
after=$(date +%s%N)
check "two signals: the code is 130 or 143, not $code" [ $code -eq 130 -o $code -eq 143 ]
# A second, and one for a machine with other things to do; the thread sanitizer hands signals on late.
check "two signals: at once, not after $(((after - before) / 1000000)) ms" [ $((after - before)) -lt $((${SLOWNESS:-1} * 2000000000)) ]
check 'two signals: no model is saved' [ ! -e "$run/model.safetensors" ]
check 'two signals: no half of a model' [ -z "$(find "$run" -name 'model.*.part-*')" ]
ends 0 "$trimtab" report "$run"

begin
kill -INT $job
for _ in {1..200}; do kill -INT $job 2>/dev/null || break; done
end_of 10
check "a burst of SIGINT: the code is 130, not $code" [ $code -eq 130 ]

finish
