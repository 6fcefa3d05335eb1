# Shared by the bad_*.sh tests: every case runs trimtab in a directory of its own that holds a small sound job, and states the
# exit code and what stands on standard error. A refusal prints nothing on standard output and writes nothing.
#
#   . refusals.sh TRIMTAB
#   fresh                      a new directory with job.yaml, train.svm (200 rows, 20 features), images and labels (idx)
#   refused CODE TEXT ARGS...  `trimtab ARGS` ends with CODE and TEXT is its first line (all lines where TEXT has several)
#   refused_like CODE RE ...   the same with a regular expression for the whole first line
#   finish                     says how it went and exits
set -u
export LC_ALL=C
unset NO_COLOR TRIMTAB_RUNS
export TRIMTAB_REPOSITORY=off # no test learns from another, or from the user
trimtab=$(realpath "$1")
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cases=0 failures=0

# Rows whose label depends on a feature; awk's rand has a fixed seed.
sound_rows() {
    awk 'BEGIN { srand(17); for (row = 0; row < 200; row++) {
        line = row % 2 ? "-1" : "+1"
        for (i = 1 + row % 2; i <= 20; i += 1 + int(4 * rand()))
            line = line sprintf(" %d:%.3f", i, 0.1 + rand())
        print line } }'
}

# bytes NUMBER...
bytes() {
    local octal
    printf -v octal '\\%03o' "$@"
    printf "$octal"
}
# idx SIZE...: the header of an idx file of bytes with these dimensions.
idx() {
    local size
    bytes 0 0 8 $#
    for size; do
        bytes $((size >> 24 & 255)) $((size >> 16 & 255)) $((size >> 8 & 255)) $((size & 255))
    done
}
# pixels COUNT and labels COUNT CLASSES: the bytes that follow such a header.
pixels() {
    local i
    for ((i = 0; i < $1; i++)); do bytes $((i * 73 % 251)); done
}
labels() {
    local i
    for ((i = 0; i < $1; i++)); do bytes $((i % $2)); done
}

mkdir "$box/sound"
sound_rows >"$box/sound/train.svm"
{ idx 60 4 4 && pixels 960; } >"$box/sound/images"
{ idx 60 && labels 60 3; } >"$box/sound/labels"
cat >"$box/sound/job.yaml" <<'END'
data: {format: libsvm, train: train.svm}
model: {kind: logistic_regression}
stop: {max_epochs: 2}
cluster: {nodes: 8}
tuner: {enabled: off}
END
cat >"$box/sound/idx.yaml" <<'END'
data: {format: idx, train: images, labels: labels}
model: {kind: softmax_regression}
stop: {max_epochs: 2}
cluster: {nodes: 3}
tuner: {enabled: off}
END

fresh() {
    rm -rf "$box/case"
    cp -r "$box/sound" "$box/case"
    cd "$box/case" || exit 1
}

fault() { # fault WHAT ARGS...
    local what=$1
    shift
    printf 'trimtab %s\n    %s\n' "$*" "$what"
    sed 's/^/    stderr: /' "$box/stderr" | head -40
    sed 's/^/    stdout: /' "$box/stdout" | head -10
    failures=$((failures + 1))
}

# limited ARGS...: `trimtab ARGS` for a minute at most, then 124. Of one that is still at it, standard error says where its threads
# stand: name, state, clock ticks of user time, and what it waits for in the kernel.
limited() {
    local job code=0 thread
    "$trimtab" "$@" >"$box/stdout" 2>"$box/stderr" </dev/null &
    job=$!
    if ! timeout 60 tail --pid=$job -s 0.01 -f /dev/null; then
        for thread in /proc/$job/task/*; do
            echo "thread $(sed 's/.*(\(.*\)) \(.\) /\1 \2 /' "$thread/stat" | cut -d' ' -f 1,2,13) $(cat "$thread/wchan")" >>"$box/stderr"
        done
        kill -KILL $job
        code=124
    fi
    wait $job 2>>"$box/stderr" || code=$((code > 0 ? code : $?))
    return $code
}

# attempt CODE ARGS...: runs, and checks everything but the words.
attempt() {
    local expected=$1 code=0 before
    shift
    cases=$((cases + 1))
    before=$(find . | sort)
    limited "$@" || code=$?
    [ $code -eq "$expected" ] || fault "exit code $code, expected $expected" "$@"
    [ ! -s "$box/stdout" ] || fault "it prints on standard output: $(head -c 200 "$box/stdout")" "$@"
    [ "$(find . | sort)" = "$before" ] || fault "it left files: $(find . | sort | comm -13 <(echo "$before") - | tr '\n' ' ')" "$@"
}

refused() {
    local code=$1 text=$2 said
    shift 2
    attempt "$code" "$@"
    said=$(head -n 1 "$box/stderr")
    case $text in *$'\n'*) said=$(cat "$box/stderr") ;; esac
    [ "$said" = "$text" ] || fault "expected: $text" "$@"
}

refused_like() {
    local code=$1 pattern=$2
    shift 2
    attempt "$code" "$@"
    head -n 1 "$box/stderr" | grep -qxE -- "$pattern" || fault "expected like: $pattern" "$@"
}

# accepted ARGS...: the opposite, so that a test cannot pass by refusing everything.
accepted() {
    local code=0
    cases=$((cases + 1))
    limited "$@" || code=$?
    [ $code -eq 0 ] || fault "exit code $code, expected 0" "$@"
}

finish() {
    echo "$cases cases, $failures faults"
    [ $failures -eq 0 ]
    exit
}
