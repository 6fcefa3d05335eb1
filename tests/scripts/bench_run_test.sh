#!/usr/bin/env bash
# Goal: bench/run lists, dispatches and refuses as it says. Method: a copy of it in a temporary tree with benchmarks of our
# own, one of each kind.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/bench/folder "$tree"/scripts "$tree"/build/release/bin
cp "$root/bench/run" "$tree/bench/"
cp "$root/scripts/setup.sh" "$tree/scripts/"
printf '# name | what | packages\nfolder | one | \nprogram | two words |\n' >"$tree/bench/benches.txt"
cat >"$tree/bench/folder/run" <<'END'
#!/bin/sh
printf '{"bench":"folder","arguments":"%s"}\n' "$*"
END
cat >"$tree/build/release/bin/program_bench" <<'END'
#!/bin/sh
echo '{"bench":"program"}'
exit 7
END
cp "$tree/bench/folder/run" "$tree/build/release/bin/trimtab"
chmod +x "$tree/bench/folder/run" "$tree"/build/release/bin/*
failures=0

# expect STATUS OUTPUT ARGUMENTS...: exit status and standard output (or, when it fails with 2, a part of the message).
expect() {
    local status=$1 output=$2 said actual=0
    shift 2
    said=$("$tree/bench/run" "$@" 2>"$tree/stderr") || actual=$?
    [ "$status" -ne 2 ] || said=$(cat "$tree/stderr")
    if [ $actual -ne "$status" ] || [[ $said != *"$output"* ]]; then
        printf 'bench/run %s: status %d, "%s"; expected %d, "%s"\n' "$*" $actual "$said" "$status" "$output" >&2
        cat "$tree/stderr" >&2
        failures=$((failures + 1))
    fi
}

expect 0 $'folder     one\nprogram    two words' list
expect 0 '{"bench":"folder","arguments":"--seed 3 x y"}' folder --seed 3 'x y'
expect 7 '{"bench":"program"}' program
expect 2 "there is no benchmark 'progam'; did you mean 'program'?" progam
expect 2 'there are: folder program' tea
expect 2 'usage: bench/run NAME' # no argument at all
expect 2 'usage: bench/run NAME' list more

[ $failures -eq 0 ] && echo "bench_run_test: in order"
exit $((failures > 0))
