#!/usr/bin/env bash
# Goal: `trimtab report` tells of a run that ended well, was interrupted, failed, was killed or goes on, found by name, by
# path or as the newest. Method: one run of each kind.
. "$(dirname "$0")/outside.sh" "$@"
run_of() { sed -n 's/.*"run_dir": "\(.*\)",/\1/p' "$1"; }

ends 2 "$trimtab" report
check 'no run yet: says where it looked' says '^runs: no run found here' err

ends 0 "$trimtab" run quick.yaml --json --set stop.loss=0.69
finished=$(run_of out)
ends 1 "$trimtab" run quick.yaml --json --set model.l2=0.1 --set optimizer.learning_rate=1e6 --set stop.max_epochs=1e6
failed=$(run_of out)
"$trimtab" run long.yaml --json >killed.json 2>killed.err &
job=$!
for ((i = 0; i < 400; i++)); do
    grep -q '^run ' killed.err && break
    sleep 0.05
done
going=$(sed -n 's/^run .*(\(.*\))$/\1/p' killed.err)
ends 0 "$trimtab" report "$going"
check 'a run that goes on' says '^running: ' out
ends 0 "$trimtab" report "$going" --json
check 'a run that goes on, as JSON' "$tools/json_shape" verdict.in_progress:bool run.status:string <out
kill -KILL $job
wait $job 2>/dev/null

for how in "$going" "$(basename "$going")" ''; do # the newest is the one that was killed
    # shellcheck disable=SC2086
    ends 0 "$trimtab" report $how
    check "the killed run, found by '$how'" says "^run $(basename "$going") " out
done
ends 0 "$trimtab" report "$finished"
check 'a finished run' says '^converged: ' out
check 'what tuning was worth' says '^Was tuning worth it' out
ends 0 "$trimtab" report "$finished/run.db"
check 'a finished run, by its store' says '^converged: ' out
ends 0 "$trimtab" report "$failed"
check 'a failed run' says '^failed: loss became NaN or infinite' out
for run in "$finished" "$failed" "$going"; do
    ends 0 "$trimtab" report "$run" --json
    check "$run as JSON" "$tools/json_shape" report_version:int run.status:string verdict.basis:string <out
    ends 0 "$trimtab" report "$run" --all
done
mv runs elsewhere
ends 0 "$trimtab" report --runs elsewhere "$(basename "$failed")"
check 'a run elsewhere' says '^failed: ' out
: >"elsewhere/$(basename "$failed")/run.db"
ends 2 "$trimtab" report --runs elsewhere "$(basename "$failed")"

finish
