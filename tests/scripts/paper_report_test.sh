#!/usr/bin/env bash
# Goal: docs/experiments is what bench/run paper writes from the summaries that are kept there: neither edited by hand nor of
# another version of the report; and the revision that it names is marked as changed by the source alone. Method: it is written
# once more, elsewhere, and compared; the revision is asked for in a small repository whose files are changed in turn.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
/usr/bin/python3 -B -c '
import sys
sys.path.insert(0, sys.argv[1])
import paper_report
sys.exit(0 if paper_report.write(sys.argv[2]) else "no summaries in " + paper_report.DIRECTORY)
' "$root/bench" "$box" || exit 1
cp "$root"/docs/experiments/paper-*.json "$box" # what it is written from
# rules.md is of another bench, and has no summaries beside it.
diff -rq --exclude=rules.md "$box" "$root/docs/experiments" || {
    echo "docs/experiments differs from what its summaries make: write it again with bench/run paper"
    exit 1
}

# What is named as the revision of that repository: "unknown", "clean" or "changed".
named() {
    /usr/bin/python3 -B -c '
import sys
sys.path.insert(0, sys.argv[1])
import paper_report
paper_report.runs.ROOT = sys.argv[2]
name = paper_report.revision()
print(name if name == "unknown" else "changed" if name.endswith("+") else "clean")
' "$root/bench" "$repo"
}
expect() {
    local got
    got=$(named)
    [ "$got" = "$1" ] || { echo "$2: the revision is $got, not $1"; exit 1; }
}
repo=$box/repository
mkdir -p "$repo/docs/experiments"
export GIT_CEILING_DIRECTORIES=$box # no repository around it is asked
expect unknown "no repository"
echo 1 > "$repo/source.c"
echo 1 > "$repo/docs/experiments/paper.md"
git -C "$repo" init -q && git -C "$repo" add . &&
    git -C "$repo" -c user.name=test -c user.email=test@localhost commit -qm first || exit 1
expect clean "nothing changed"
echo 2 > "$repo/docs/experiments/paper.md"
expect clean "the report changed"
echo 2 > "$repo/source.c"
expect changed "the source changed"
