# Shared by the cli_*.sh tests: a box to run in, jobs for it, and the count of faults.
#
#   . outside.sh TRIMTAB TOOLS SOURCES   -> $trimtab, $tools (json_shape and others), $sources; the working directory is a box
#                                           with quick.yaml (ends at once) and long.yaml (a minute)
#   check WHAT COMMAND...                a fault named WHAT unless COMMAND succeeds
#   ends CODE COMMAND...                 a fault unless COMMAND ends with CODE; its output is in ./out and ./err
#   $SLOWNESS                            times the allowed time, of presets with sanitizers
#   finish                               says how it went and exits
set -u
export LC_ALL=C
unset NO_COLOR
export TRIMTAB_REPOSITORY=off # no test learns from another, or from the user
trimtab=$(realpath "$1") tools=$(realpath "$2") sources=$(realpath "$3")
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cd "$box" || exit 1
checks=0 faults=0

cat >quick.yaml <<'END'
data: {format: clicklog, rows: 2000, columns: 500, fields: 8, test: {rows: 500}}
model: {kind: logistic_regression, l2: 1e-5}
stop: {max_epochs: 3}
cluster: {nodes: 4}
END
cat >long.yaml <<'END'
data: {format: clicklog, rows: 2000, columns: 500, fields: 8}
model: {kind: logistic_regression}
stop: {max_time: 60s, max_epochs: 1e9}
cluster: {nodes: 4}
END

fault() {
    echo "fault: $1"
    faults=$((faults + 1))
}
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fault "$what"
}
ends() {
    local expected=$1 code=0
    shift
    checks=$((checks + 1))
    timeout $((120 * ${SLOWNESS:-1})) "$@" >out 2>err </dev/null || code=$?
    [ $code -eq "$expected" ] || {
        fault "$* ends with $code, expected $expected"
        head -n 5 err
        [ "$(wc -l <err)" -le 5 ] || tail -n 3 err # what it died of comes last
    }
}
says() { grep -qE -- "$1" "$2"; }     # says PATTERN FILE
silent() { ! grep -qE -- "$1" "$2"; } # the opposite
finish() {
    echo "$checks checks, $faults faults"
    [ $faults -eq 0 ]
    exit
}
