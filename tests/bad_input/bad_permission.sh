#!/usr/bin/env bash
# Goal: what may not be read or written is named, with advice, before anything is trained; what there is stays as it was.
# Method: modes taken away, as a user whom they stop (root becomes nobody for this).
if [ "$(id -u)" -eq 0 ]; then
    open=$(mktemp -d) && chmod 755 "$open" && cp "$1" "$open/trimtab" && cp "$(dirname "$0")"/{bad_permission,refusals}.sh "$open/" || exit 1
    chmod -R a+rX "$open"
    code=77
    if setpriv --reuid 65534 --regid 65534 --clear-groups "$open/trimtab" --version >/dev/null 2>&1; then
        code=0
        TMPDIR=/tmp setpriv --reuid 65534 --regid 65534 --clear-groups "$BASH" "$open/bad_permission.sh" "$open/trimtab" || code=$?
    else
        echo "SKIP: root cannot become another user here"
    fi
    rm -rf "$open"
    exit $code
fi
. "$(dirname "$0")/refusals.sh" "$1"
trap 'chmod -R u+rwX "$box"; rm -rf "$box"' EXIT

fresh
chmod 000 job.yaml
refused_like 2 'job.yaml: cannot .*: Permission denied.*' run job.yaml
chmod 644 job.yaml
chmod 000 train.svm
refused_like 2 'train.svm: cannot open the data file: Permission denied; make it readable .*' run job.yaml
refused_like 2 'train.svm: cannot open the data file: Permission denied; make it readable .*' plan job.yaml
chmod 644 train.svm

mkdir closed
chmod 555 closed
refused_like 2 'closed: cannot make the run directory: Permission denied; choose another place with --runs DIR or run.dir' run job.yaml --runs closed
refused_like 1 'closed/x.svm: cannot create the file: Permission denied; nothing was left behind; .*' data make closed/x.svm

# ---- a run one may not write to, or whose parts one may not read
"$trimtab" run job.yaml -q >/dev/null 2>&1
run=$(echo runs/*)
chmod 000 "$run/run.db"
refused_like 1 "$run/run.db: cannot open.*" report "$run"
chmod 644 "$run/run.db"
chmod 555 "$run"
refused_like 1 "$run/run.db: the file may only be read while .*; check the owner of the file" run --resume "$run"
chmod 755 "$run"
chmod 000 "$run"/checkpoints/*
refused_like 1 "$run/checkpoints/.*.ttck: cannot read the checkpoint: Permission denied.*" run --resume "$run"
chmod 644 "$run"/checkpoints/*
cases=$((cases + 1))
"$trimtab" run --resume "$run" -q >/dev/null 2>&1 || fault "it does not resume when it may" "run --resume"
finish
