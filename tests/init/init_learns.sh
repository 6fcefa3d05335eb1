#!/usr/bin/env bash
# Goal: for every data set there is that a model exists for, trimtab init writes a job that runs as it is and whose model is
# better than the best constant answer (the classes' shares) on rows it was not trained on: the validation rows, and the test
# file where the set has one. What no model exists for is refused with words. Method: init, then run with at most 5 s of
# training; the losses are printed side by side.
#
#   init_learns.sh TRIMTAB DATA-DIRECTORY
set -u
export LC_ALL=C TRIMTAB_REPOSITORY=off # no test learns from another, or from the user
trimtab=$(realpath "$1") data=$(realpath -m "$2")
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cd "$box" || exit 1
jobs=0 faults=0
fault() {
    echo "fault: $1"
    sed 's/^/    /' err | tail -5
    faults=$((faults + 1))
}
value() { sed -n "/\"$1\": {/,/}/s/^ *\"$2\": \([-0-9.e+]*\),*\$/\1/p" out | head -n 1; } # value OBJECT KEY of ./out
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }'; }

learns() { # learns NAME INIT-ARGUMENTS...
    local name=$1 prior loss test
    shift
    jobs=$((jobs + 1))
    "$trimtab" init "$@" -o "$name.yaml" 2>err || { fault "$name: init refuses it"; return; }
    "$trimtab" run "$name.yaml" -q --json --set stop.max_time=5s >out 2>err || { fault "$name: the job does not run"; return; }
    prior=$(value validation prior_loss) loss=$(value validation loss) test=$(value test loss)
    printf '%-22s validation loss %-8.4f the shares alone %-8.4f test loss %-8s best epoch %.1f\n' "$name" "${loss:-0}" "${prior:-0}" \
        "$([ -n "$test" ] && printf %.4f "$test" || echo -)" "$(value validation best_epoch)"
    below "$loss" "$prior" || fault "$name: no better than the shares alone"
    [ -z "$test" ] || below "$test" "$prior" || fault "$name: on the test file no better than the shares alone"
}
refuses() { # refuses FILE PATTERN
    jobs=$((jobs + 1))
    local code=0
    "$trimtab" init "$data/$1" -o refused.yaml 2>err || code=$?
    [ $code -eq 2 ] || fault "$1: exit code $code, expected 2"
    grep -qE "$2" err || fault "$1: nothing is said of $2"
    [ ! -e refused.yaml ] || fault "$1: a job file was written"
}

if [ -r "$data/a9a.xz" ]; then
    learns a9a "$data/a9a.xz" --test "$data/a9a.t.xz"
    learns a9a.t "$data/a9a.t.xz"
    learns dna "$data/dna.train.svm.xz" --test "$data/dna.test.svm.xz"
    learns dna.test "$data/dna.test.svm.xz"
    learns criteo8k "$data/criteo8k.train.tsv.xz" --test "$data/criteo8k.dev.tsv.xz" --test "$data/criteo8k.test.tsv.xz"
    learns criteo8k.together "$data"/criteo8k.*.tsv.xz
    refuses ml-100k.u.data.xz 'no column looks like the label'
    refuses ap.dat.xz 'LDA-C'
    refuses ap.vocab.txt.xz 'no format that is read'
    refuses cifar10_test2k.bin.xz 'binary data'
fi
for fashion in "$data/fashion-mnist" /usr/share/datasets/fashion-mnist; do
    if [ -r "$fashion/train-images-idx3-ubyte.gz" ]; then
        learns fashion-mnist "$fashion/train-images-idx3-ubyte.gz" --test "$fashion/t10k-images-idx3-ubyte.gz"
        break
    fi
done
[ $jobs -gt 0 ] || { echo "SKIP: no data sets in $data"; exit 77; }
echo "$jobs data sets, $faults faults"
[ $faults -eq 0 ]
