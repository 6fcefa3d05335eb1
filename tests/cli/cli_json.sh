#!/usr/bin/env bash
# Goal: what programs read keeps its keys and types, is alone on standard output, and is documented. Method: json_shape (a
# strict parser) on every --json; the keys of run and plan are looked up in docs/.
. "$(dirname "$0")/outside.sh" "$@"
shape() { # shape WHAT KEY:TYPE...: of ./out
    local what=$1
    shift
    check "$what has the shape promised" "$tools/json_shape" "$@" <out
}
documented() { # documented PAGE WHAT: every key of ./out stands in docs/PAGE as `key`
    local key
    for key in $("$tools/json_shape" --keys <out); do
        check "docs/$1 explains $2's $key" says "\`$key\`" "$sources/docs/$1"
    done
}

ends 0 "$trimtab" run quick.yaml --json
cp out run.json
shape 'run --json' run:string run_dir:string status:string stop_reason:string loss:number objective:number iterations:int \
    epochs:number train_seconds:number wall_seconds:number examples_per_second:number generations:int \
    reconfigure_seconds:number explore_seconds:number untuned_seconds:number? setting:object start_setting:object test:object \
    counters:object setting.servers:int setting.bf16_transfer:bool setting.kernel:string start_setting.chunk_bytes:int \
    test.loss:number test.accuracy:number test.auc:number counters.frames:int counters.staleness_mean:number
documented run-json.md 'run --json'
check 'run --json says stopped' says '"status": "stopped"' out
check 'run --json names its directory' [ -d "$(sed -n 's/.*"run_dir": "\(.*\)",/\1/p' out)" ]
for counter in $(sed -n '/"counters"/,/}/s/^    "\([a-z0-9_]*\)":.*/\1/p' out); do
    check "docs/run-json.md explains counters.$counter" says "\`$counter\`" "$sources/docs/run-json.md"
done
ends 0 "$trimtab" run quick.yaml --json -q --set stop.loss=0.69
check 'run --json says converged' says '"status": "converged"' out
ends 2 "$trimtab" run quick.yaml --json --runs /proc/x
shape 'run --json of a run that could not begin' status:string stop_reason:string loss:number? setting:object
ends 2 "$trimtab" run none.yaml --json
check 'a job that cannot be read prints no JSON' [ ! -s out ]

ends 0 "$trimtab" plan quick.yaml --json
shape 'plan --json' job:string model:string rows:int test_rows:int features:int classes:int partitions:int driver:string \
    consistency:string nodes:int stop_loss:number? stop_objective:number? max_epochs:number max_time:number? tuned:bool \
    free_knobs:int log_settings:number knobs:array knobs.id:string knobs.min:string knobs.max:string knobs.start:string \
    knobs.fixed:bool knobs.absent:bool knobs.scale:string knobs.effect:string knobs.reason:string
documented plan.md 'plan --json'
for key in $(sed -n '/"knobs"/,$s/^      "\([a-z_]*\)":.*/\1/p' out | sort -u); do
    check "docs/plan.md explains knobs' $key" says "\`$key\`" "$sources/docs/plan.md"
done
check 'plan writes nothing' [ "$(find . -name '*.db' -newer out | wc -l)" -eq 0 ]

ends 0 "$trimtab" knobs list --json
shape 'knobs list --json' id:string kind:string help:string unit:string min:number max:number default:number scale:string \
    effect:string changes_statistics:bool lossy:bool values:array origin:string
documented knobs.md 'knobs list --json'

ends 0 "$trimtab" report --json
shape 'report --json' report_version:int run:object verdict:object time:object knobs:array settings:array events:array

finish
