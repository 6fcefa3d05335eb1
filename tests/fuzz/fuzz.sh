#!/usr/bin/env bash
# fuzz.sh [--runs N] [--target NAME] [--merge]: builds preset `fuzz` and runs each fuzz target (or the one named) for N
# executions (10000000), beginning with tests/fuzz/corpus/NAME, with what fuzz_seeds makes, and with what earlier calls have
# found: build/fuzz/corpus-NAME grows, and a call that was ended is gone on with by the next. Prints a line a target; exits 1
# when there was a finding, whose input is build/fuzz/finding-NAME-*. --merge: writes the least inputs that reach as much to
# tests/fuzz/corpus/NAME instead, beside the findings of before (found-*).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
targets=(wire handshake ps control checkpoint model)
runs=10000000
merge=0
while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=${2:?} && shift ;;
    --target) targets=("${2:?}") && shift ;;
    --merge) merge=1 ;;
    *)
        sed -n '2,6s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
# Longest input of a target: long enough for all that it reads, and short, so that much is tried.
declare -A length=([wire]=1024 [handshake]=384 [ps]=192 [control]=1600 [checkpoint]=1200 [model]=1600)

mkdir -p build/fuzz
if ! { cmake --preset fuzz && cmake --build --preset fuzz; } >build/fuzz/build.log 2>&1; then
    tail -n 40 build/fuzz/build.log >&2
    exit 1
fi
seeds=build/fuzz/seeds
rm -rf "$seeds"
build/fuzz/test-bin/fuzz_seeds "$seeds" || exit 1
# Little is kept of what was freed: memory that comes back at once is as quick as it can be here.
export ASAN_OPTIONS=quarantine_size_mb=2:malloc_context_size=2 UBSAN_OPTIONS=print_stacktrace=1

fuzz() {
    local name=$1 log=build/fuzz/fuzz-$1.log corpus=build/fuzz/corpus-$1 status=0
    mkdir -p "$corpus"
    "build/fuzz/test-bin/fuzz_$name" "$corpus" "tests/fuzz/corpus/$name" "$seeds/$name" -runs="$runs" \
        -max_len="${length[$name]}" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -entropic=0 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/finding-$name-" >"$log" 2>&1 || status=$?
    awk -v name="$name" -v status=$status '
        $2 == "cov:" || $3 == "cov:" { for (i = 1; i < NF; i++) { if ($i == "cov:") edges = $(i + 1); if ($i == "corp:") corpus = $(i + 1) } }
        /stat::number_of_executed_units/ { executions = $2 }
        /stat::average_exec_per_sec/ { rate = $2 }
        END { printf "%-10s %9d executions (%d a second), %5d edges, corpus %s: %s\n", name, executions, rate, edges, corpus,
                     status == 0 ? "no finding" : "A FINDING" }' "$log"
    [ $status -eq 0 ] || grep -m 3 -E 'ERROR|runtime error|this is a bug|SUMMARY' "$log" >&2
    return $status
}

# Into an empty directory, and then in place of what was there.
merge() {
    local name=$1 least=build/fuzz/least-$1
    rm -rf "$least"
    mkdir -p "$least" "build/fuzz/corpus-$name"
    "build/fuzz/test-bin/fuzz_$name" -set_cover_merge=1 -use_counters=0 -max_len="${length[$name]}" "$least" "tests/fuzz/corpus/$name" "$seeds/$name" \
        "build/fuzz/corpus-$name" >"build/fuzz/merge-$name.log" 2>&1 || return 1
    find "tests/fuzz/corpus/$name" -type f ! -name 'found-*' -delete
    cp "$least"/* "tests/fuzz/corpus/$name/"
    printf '%-10s %d inputs, %d bytes\n' "$name" "$(find "$least" -type f | wc -l)" "$(cat "$least"/* | wc -c)"
}

failed=0
for name in "${targets[@]}"; do
    if [ $merge -eq 1 ]; then merge "$name"; else fuzz "$name"; fi || failed=1
done
exit $failed
