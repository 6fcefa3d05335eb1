#!/usr/bin/env bash
# Goal: whatever is wrong with the repository of earlier runs, a run goes on cold with one warning that names the file and says
# what to do, ends well, and leaves the file as it was. Method: noise, other people's databases, another schema, directories
# and missing parents in its place, a process that holds the lock, a full disk (where a tmpfs can be mounted); Debian's python3
# with its sqlite3 module makes the files, without it those cases are skipped.
if [ "${TRIMTAB_OWN_MOUNTS:-}" != yes ] && [ "${TRIMTAB_OWN_MOUNTS:-}" != no ]; then
    for flags in -m -rm; do
        if unshare $flags sh -c 'd=$(mktemp -d) && mount -t tmpfs -o size=64k t "$d" && umount "$d" && rmdir "$d"' 2>/dev/null; then
            TRIMTAB_OWN_MOUNTS=yes exec unshare $flags "$BASH" "$0" "$@"
        fi
    done
    export TRIMTAB_OWN_MOUNTS=no
fi
. "$(dirname "$0")/refusals.sh" "$1"
fresh
cat >tuned.yaml <<'END'
data: {format: clicklog, rows: 20000, columns: 5000, fields: 8}
model: {kind: logistic_regression}
stop: {max_epochs: 30}
cluster: {nodes: 4}
END
sqlite() { # sqlite FILE SQL...: with python3's module; false without it
    /usr/bin/python3 - "$@" 2>/dev/null <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for sql in sys.argv[2:]:
    db.execute(sql)
END
}
# goes_on_cold PATTERN [FILE [ARGS...]]: a tuned run with repository FILE (./r.db) says PATTERN as its one warning.
goes_on_cold() {
    local pattern=$1 file=${2:-r.db} code=0 before
    shift; shift
    cases=$((cases + 1))
    before=$(cksum "$file" 2>/dev/null)
    limited run tuned.yaml --set "repository=$file" --json "$@" || code=$?
    [ $code -eq 0 ] || fault "exit code $code, expected 0" "repository $file"
    [ "$(grep -c '^warning: ' "$box/stderr")" -eq 1 ] || fault "not one warning" "repository $file"
    grep -qE -- "^warning: $pattern" "$box/stderr" || fault "expected a warning like: $pattern" "repository $file"
    grep -q '"started_from": \[\]' "$box/stdout" || fault 'it did not begin cold' "repository $file"
    [ -z "$before" ] || [ "$(cksum "$file" 2>/dev/null)" = "$before" ] || fault 'the file is not what it was' "repository $file"
}

accepted run tuned.yaml --set repository=r.db # a sound one, to spoil
cp r.db sound.db
head -c 5000 /dev/zero | tr '\0' 'x' >r.db
goes_on_cold 'r.db: this is not a repository of trimtab.*; move it aside and a new one is begun, or set .repository.' r.db
head -c 40000 sound.db | { head -c 4096; tail -c +4097 | tr '\0-\377' 'y'; } >r.db
goes_on_cold 'r.db: .*damaged.*; move it aside' r.db
head -c 3000 sound.db >r.db # cut off
goes_on_cold 'r.db: .*; move it aside' r.db
mkdir directory
goes_on_cold 'directory: this is not a file; set .repository. to another file, or to off' directory
goes_on_cold 'later runs cannot learn from this one: /proc/a/b.db: cannot make the directory /proc/a: .*; check that you may write there' /proc/a/b.db
: >file
goes_on_cold 'file/b.db: there is no repository: Not a directory; set .repository.' file/b.db
if sqlite other.db 'CREATE TABLE t (x)'; then
    goes_on_cold 'other.db: this is not a repository of trimtab; move it aside' other.db
    cp sound.db r.db
    sqlite r.db 'PRAGMA user_version = 7'
    goes_on_cold 'r.db: this repository has schema 7, this trimtab knows schema 1; update trimtab, or set' r.db
    cp sound.db r.db
    sqlite r.db 'DROP TABLE setting'
    goes_on_cold 'r.db: .*no such table: setting; move it aside' r.db
    # Held for as long as the run asks: what it learned is lost, and said.
    cp sound.db r.db
    /usr/bin/python3 -c '
import sqlite3, sys
db = sqlite3.connect("r.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open("held", "w").close()
sys.stdin.read()' < <(while [ ! -e let_go ]; do sleep 0.1; done) &
    holder=$!
    for ((i = 0; i < 200; i++)); do
        [ -e held ] && break
        sleep 0.05
    done
    goes_on_cold 'later runs cannot learn from this one: r.db: another program holds it locked while .*; see which \(fuser FILE\)' r.db --cold
    : >let_go
    wait $holder
fi
if [ "$TRIMTAB_OWN_MOUNTS" = yes ]; then
    mkdir disk
    mount -t tmpfs -o size=64k t disk
    cat /dev/zero >disk/filler 2>/dev/null
    goes_on_cold 'later runs cannot learn from this one: disk/r.db: .*(full|cannot open).*; ' disk/r.db
    umount disk
    mkdir readonly
    cp sound.db readonly/r.db
    mount --bind readonly readonly && mount -o remount,ro,bind readonly
    code=0
    cases=$((cases + 1))
    "$trimtab" run tuned.yaml --set repository=readonly/r.db --json >"$box/stdout" 2>"$box/stderr" || code=$?
    [ $code -eq 0 ] && [ "$(grep -c '^warning: ' "$box/stderr")" -eq 1 ] || fault "exit code $code, or not one warning" 'read-only repository'
    umount readonly
fi

# plan says it as well, and refuses nothing; a sound file goes on to be used; nonsense is refused.
printf 'x%.0s' {1..600} >r.db
cases=$((cases + 1))
"$trimtab" plan tuned.yaml --set repository=r.db >"$box/stdout" 2>"$box/stderr" || fault 'plan fails' plan
grep -q 'r.db: this is not a repository of trimtab' "$box/stdout" || fault 'plan does not say it' plan
accepted run tuned.yaml --set repository=sound.db
refused 2 "trimtab repository: expected 'list', not 'lst'; see trimtab repository --help" repository lst
refused 2 'trimtab repository: forget which run? name one, or --all; see trimtab repository --help' repository forget
refused 2 "trimtab repository: the repository is off; name one with --file; see trimtab repository --help" repository list
refused_like 2 'r.db: this is not a repository of trimtab.*' repository list --file r.db
refused 2 "none.db: there is no repository: No such file or directory" repository forget x --file none.db
refused 2 "sound.db: it knows no run 'x'; trimtab repository list shows what it has" repository forget x --file sound.db

finish
