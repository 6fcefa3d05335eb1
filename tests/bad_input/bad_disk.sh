#!/usr/bin/env bash
# Goal: a disk that is full before, during or at the end of a run is said, costs what could not be written and nothing else,
# and leaves nothing half-written. Method: a small tmpfs in a mount namespace of our own, filled to the brim on purpose;
# waiting is for lines on standard error, with a deadline.
if [ "${TRIMTAB_OWN_MOUNTS:-}" != yes ]; then
    for flags in -m -rm; do
        if unshare $flags sh -c 'd=$(mktemp -d) && mount -t tmpfs -o size=64k t "$d" && umount "$d" && rmdir "$d"' 2>/dev/null; then
            TRIMTAB_OWN_MOUNTS=yes exec unshare $flags "$BASH" "$0" "$@"
        fi
    done
    echo "SKIP: no tmpfs can be mounted here"
    exit 77
fi
. "$(dirname "$0")/refusals.sh" "$1"
trap 'umount "$box/case/disk" 2>/dev/null; rm -rf "$box"' EXIT

disk() { # disk SIZE: a new one of this size at ./disk
    umount "$box/case/disk" 2>/dev/null
    fresh
    mkdir disk
    mount -t tmpfs -o "size=$1" t disk
    cat >clicks.yaml <<'END'
data: {format: clicklog, rows: 20000, columns: 5000, fields: 10}
model: {kind: logistic_regression}
stop: {max_time: 3s, max_epochs: 1e9}
cluster: {nodes: 4}
run: {dir: disk}
END
}
fill() { cat /dev/zero >disk/filler 2>/dev/null; }
wait_for() { # wait_for PATTERN: until a line of standard error has it, for at most 20 s
    local i
    for ((i = 0; i < 400; i++)); do
        grep -q -- "$1" "$box/stderr" && return
        sleep 0.05
    done
    fault "it never says: $1" "run on a full disk"
    kill "$job"
}
left() { (cd disk && find . -mindepth 2 | sed 's|^\./[^/]*/||' | sort | tr '\n' ' '); }
expect() { # expect WHAT IS SHOULD
    [ "$2" = "$3" ] || fault "$1 is '$2', expected '$3'" "run on a full disk"
}

# ---- no room to begin: the run directory goes away again
disk 64k
fill
refused_like 1 'disk/[^/]*/job.yaml: cannot write.*: No space left on device; .*' run clicks.yaml
disk 4k # job.yaml fits and nothing more
refused_like 1 'disk/[^/]*/run.db: the disk is full while .*; free some space .*' run clicks.yaml
disk 120k # the run store is begun
refused_like 1 'disk/[^/]*/run.db: the disk is full while .*; free some space .*' run clicks.yaml

# ---- full during the run and at its end: training goes on, the model is saved elsewhere
start() {
    disk 16m
    cases=$((cases + 1))
    : >"$box/stderr"
    TMPDIR=$PWD "$trimtab" run clicks.yaml --json >"$box/stdout" 2>"$box/stderr" &
    job=$!
    wait_for '^run '
    fill
    wait_for '^warning: the run store is no longer written: disk/.*: the disk is full .*; training goes on, the report will end here$'
}
start
code=0
wait $job || code=$?
expect 'exit code' $code 1
tail -n 1 "$box/stderr" | grep -qxE 'disk/[^/]*/model.safetensors: cannot write the model: No space left on device; it was saved as .*/trimtab-.*-model.safetensors instead: move it' ||
    fault "the last line does not say where the model is" "run on a full disk"
expect 'size of the model saved elsewhere' "$(($(stat -c %s trimtab-*-model.safetensors) / 1000))" 20 # 5,000 floats
expect 'number of warnings' "$(grep -c '^warning' "$box/stderr")" 1
grep -q '"stop_reason": "cannot write the model: No space left on device"' "$box/stdout" || fault "the JSON has no reason" "run on a full disk"
grep -q '"epochs": [1-9]' "$box/stdout" || fault "it did not go on training" "run on a full disk"
expect 'what is left' "$(left | sed 's/run.db-[a-z]* *//g')" 'job.yaml lock run.db '
"$trimtab" report --runs disk >"$box/report" 2>&1 || fault "no report: $(cat "$box/report")" "report on a full disk"

# ---- room again before the end: only the records of that time are missing
start
rm disk/filler
code=0
wait $job || code=$?
expect 'exit code' $code 0
grep -q '"status": "stopped"' "$box/stdout" || fault "the JSON does not say stopped" "run on a full disk"
expect 'what is left' "$(left | sed 's/[0-9]*[.]ttck/N.ttck/')" \
    'checkpoints checkpoints/N.ttck job.yaml lock model.safetensors run.db setting.yaml '
"$trimtab" report --runs disk >"$box/report" 2>&1 || fault "no report: $(cat "$box/report")" "report after a full disk"
grep -q '^stopped: max_time 3 s reached' "$box/report" || fault "the report does not know the end" "report after a full disk"

# ---- generated data
disk 64k
refused_like 1 'disk/clicks.svm: cannot write.*: No space left on device; nothing was left behind; .*' data make disk/clicks.svm

umount disk
cd /
finish
