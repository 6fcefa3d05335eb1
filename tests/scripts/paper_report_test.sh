#!/usr/bin/env bash
# Goal: docs/experiments is what bench/run paper writes from the summaries that are kept there: neither edited by hand nor of
# another version of the report. Method: it is written once more, elsewhere, and compared.
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
