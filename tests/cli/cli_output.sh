#!/usr/bin/env bash
# Goal: progress and events are on standard error, results on standard output, -q means nothing but results, colour is for
# terminals without NO_COLOR, and two runs never share a directory. Method: `script` gives a terminal where there is one.
. "$(dirname "$0")/outside.sh" "$@"

ends 0 "$trimtab" run quick.yaml
check 'the run is announced on standard error' says '^run [0-9]{8}-[0-9]{6}-quick   \(runs/[0-9]{8}-[0-9]{6}-quick\)$' err
check 'the result is on standard output' says '^stopped \(max_epochs 3 reached\): loss 0\.[0-9]{4} after ' out
check 'the result names the test' says 'test loss 0\.[0-9]{4}, accuracy 0\.[0-9]{4}, auc 0\.[0-9]{4}$' out
check 'no progress line where there is no terminal' silent $'\r|\033' err
check 'the next command is named' says '^report: trimtab report runs/' out
ends 0 "$trimtab" run quick.yaml --quiet
check '--quiet: nothing on standard error' [ ! -s err ]
check '--quiet: the result is there' says '^stopped ' out
ends 0 "$trimtab" run quick.yaml -q --json
check '-q --json: nothing on standard error' [ ! -s err ]
ends 0 "$trimtab" run quick.yaml -v
check '-v: more events than without' [ -s err ]

# Three at the same moment, in one directory.
for i in 1 2 3; do "$trimtab" run quick.yaml --runs together --json >"out.$i" 2>"err.$i" & done
wait
check 'three runs, three directories' [ "$(cat out.? | grep '"run_dir"' | sort -u | wc -l)" -eq 3 ]
check 'each with its model' [ "$(find together -name model.safetensors | wc -l)" -eq 3 ]

# What a run writes is enough to do it again, from wherever one stands, whatever the job says.
awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) printf "%s 1:%.2f %d:1\n", i % 2 ? "-1" : "+1", rand(), 2 + i % 7 }' >rows.svm
cat >files.yaml <<'END'
data: {format: libsvm, train: rows.svm, test: {file: rows.svm}}
model: {kind: linear_svm}
stop: {max_epochs: 3, objective: 0.01}
cluster: {nodes: 4}
setting: {pinning: on}
knobs: {chunk_bytes: {range: [16KiB, 64KiB]}, servers: {start: 2}}
END
mkdir -p elsewhere
again() { # again ARGS...: a run, and the run that its directory describes
    rm -rf again
    ends 0 "$trimtab" run "$@" -q --runs again
    check "job.yaml of run $*" [ -s again/*/job.yaml ]
    cd elsewhere || exit 1
    ends 0 "$trimtab" run ../again/*/job.yaml ../again/*/setting.yaml -q --runs ../again
    cd ..
    check "job.yaml and setting.yaml of run $* are a job" [ "$(find again -name run.db | wc -l)" -eq 2 ]
    [ -s elsewhere/err ] && head -5 elsewhere/err
}
again quick.yaml
again files.yaml
again files.yaml --set consistency=bsp
again files.yaml --set consistency=ssp --set optimizer.schedule=inverse --set optimizer.decay=1e-3
again files.yaml --set optimizer.kind=adam --set optimizer.schedule=exponential --set optimizer.decay=0.1 --set optimizer.decay_per=epoch
again files.yaml --set optimizer.kind=ftrl --set optimizer.l1=0.01 --set optimizer.clip_norm=10
again files.yaml --set cluster.driver=in_place --set cluster.nodes=1 --set 'knobs={}'
again quick.yaml --set 'tuner.script=[{iteration: 5, servers: 2}]'
again quick.yaml --set stop.loss=0.69 --set stop.max_time=20s

if script -qec true /dev/null >/dev/null 2>&1; then
    on_terminal() { TERM=xterm script -qec "$1" /dev/null >out </dev/null; }
    on_terminal "'$trimtab' run long.yaml --set stop.max_time=1s"
    check 'a terminal has a progress line' says $'\r\033\\[K.*loss [0-9.]+  [0-9]+ ex/s  epoch' out
    on_terminal "'$trimtab' run long.yaml --set stop.max_time=1s -q"
    check '-q on a terminal: no progress line' silent 'ex/s  epoch' out
    on_terminal "'$trimtab' report"
    check 'a report on a terminal has emphasis' says $'\033\\[[0-9;]+m' out
    on_terminal "NO_COLOR=1 '$trimtab' report"
    check 'NO_COLOR: none' silent $'\033\\[[0-9;]*m' out
    on_terminal "NO_COLOR=1 '$trimtab' run long.yaml --set stop.max_time=1s"
    check 'NO_COLOR: none in a run' silent $'\033\\[[0-9;]*m' out
    on_terminal "NO_COLOR= '$trimtab' report"
    check 'an empty NO_COLOR is none' says $'\033\\[[0-9;]+m' out
else
    echo "no terminal to be had (script): those checks are left out"
fi

finish
