#!/usr/bin/env bash
# Goal: `trimtab report`, `runs` and `compare` tell of a run that ended well, was interrupted, failed, was killed or goes on, found by name, by
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
ends 0 "$trimtab" explain "$finished"
check 'explain answers whether tuning was worth it' says '^Was tuning worth it' out
check 'explain answers whether to trust the setting' says '^Should I trust this setting' out
mkdir -p other/known-law
ends 0 "$tools/known_run" other/known-law/run.db
tuned=other/known-law
ends 0 "$trimtab" replay "$tuned" --tuner model=time --tuner model=sum,guard=5% --tuner enabled=off --seeds 3
check 'a replay has a line for each tuner' [ "$(grep -cE '^  (model=time|model=sum,guard=5%|enabled=off) ' out)" -eq 3 ]
mv out replayed
ends 0 "$trimtab" replay "$tuned" --tuner model=time --tuner model=sum,guard=5% --tuner enabled=off --seeds 3
check 'a replay is the same every time' cmp -s out replayed
ends 0 "$trimtab" replay "$tuned" --json
check 'a replay as JSON' "$tools/json_shape" replay_version:int settings:int tuners.tuner:string tuners.tried:number <out
ends 2 "$trimtab" replay "$failed"
check 'what cannot be replayed is said' says 'cannot be replayed' err
ends 2 "$trimtab" replay "$tuned" --tuner model=best
check 'a model that is none' says 'model is time, sum, product or paper' err
ends 0 "$trimtab" replay "$tuned" --tuner model=time --tuner without=spread+guard --seeds 2
check 'rules left out' says '^  without=spread.guard ' out
ends 2 "$trimtab" replay "$tuned" --tuner without=luck
check 'a rule that is none' says 'without is rules with . between them' err
for run in "$finished" "$failed" "$going"; do
    ends 0 "$trimtab" explain "$run" --all
    ends 0 "$trimtab" explain "$run" --json
    check "$run explained as JSON" "$tools/json_shape" explain_version:int run:string trials.count:int <out
    ends 0 "$trimtab" report "$run" --json
    check "$run as JSON" "$tools/json_shape" report_version:int run.status:string verdict.basis:string <out
    ends 0 "$trimtab" report "$run" --all
done

# ---- runs: all of them, the newest first
ends 0 "$trimtab" runs
check 'the list begins with the newest' says "^$(basename "$going") .* killed " out
check 'the list has the failed run' says "^$(basename "$failed") .* failed " out
check 'the list has a head' says '^run  *started  *status ' out
ends 0 "$trimtab" runs --json
check 'the list as JSON' grep -q '"status": "converged"' out
mkdir -p runs/20990101-000000-damaged
echo 'not a database' >runs/20990101-000000-damaged/run.db
ends 0 "$trimtab" runs
check 'a damaged run does not hide the others' says "^$(basename "$finished") .* converged " out
check 'a damaged run says so' says '^20990101-000000-damaged .* not readable: ' out
ends 0 "$trimtab" runs --json
check 'a damaged run says so as JSON' grep -q '"error": ' out
rm -r runs/20990101-000000-damaged
ends 0 "$trimtab" runs --runs nowhere
check 'no runs: says where it looked' says '^nowhere: no run found here' err

# ---- compare
ends 0 "$trimtab" run quick.yaml --json --set stop.loss=0.69 --set tuner.enabled=off --set setting.servers=1
other=$(run_of out)
ends 0 "$trimtab" compare "$finished" "$(basename "$other")"
check 'which was faster to the same loss' says '^Loss [0-9.]* was first seen after .* in A and after .* in B: ' out
check 'the settings side by side' says '^  servers  *[0-9]+  *1 ' out
ends 0 "$trimtab" compare "$failed" "$other"
ends 0 "$trimtab" compare "$going" "$other"
ends 2 "$trimtab" compare "$finished"
check 'one run is not enough' says "^trimtab compare: expected two runs; see trimtab compare --help" err
ends 2 "$trimtab" compare "$finished" nowhere
check 'the missing run is named' says '^runs/nowhere' err
# A reader that has seen enough is no fault.
for words in "explain $finished --all" "report $finished --json" "compare $finished $failed" schema "run --help"; do
    # shellcheck disable=SC2086
    { sleep 0.2 && "$trimtab" $words 2>err; } | true
    code=${PIPESTATUS[0]}
    check "$words, read by nobody: ends with $code, not by the signal" [ "$code" -eq 141 ]
    check "$words, read by nobody: says something" [ ! -s err ]
done
mv runs elsewhere
ends 0 "$trimtab" report --runs elsewhere "$(basename "$failed")"
check 'a run elsewhere' says '^failed: ' out
: >"elsewhere/$(basename "$failed")/run.db"
ends 2 "$trimtab" report --runs elsewhere "$(basename "$failed")"

finish
