#!/usr/bin/env bash
# Goal: the rules of the house that no compiler checks. Method: reads the committed files of the tree given as $1 and the
# rooms' CMakeLists.txt, prints one line per fault, exits 1 when there is any. Needs bash, grep, awk, sort; takes a second.
#
#   names      file names are unique in the tree, so that a log line or a stack names one place
#   arrows     CMake links only what arrows.txt allows; sources include only headers of rooms that are linked, public
#              headers only those of rooms linked PUBLIC, and no public header includes one of an outside library
#   complete   every room has a README.md; its sources and tests are listed in its CMakeLists.txt
#   text       lines within 100 columns and functions within 70 lines (.c, .h); no word that marks something half done
set -u
export LC_ALL=C.UTF-8
root=${1:?usage: tidy.sh SOURCE_TREE}
here=$(cd "$(dirname "$0")" && pwd)
cd "$root" || exit 2

shared_names='README.md|run|CMakeLists.txt|LICENSE|package.json|.gitignore'
outside_headers='yaml|sqlite3|zlib|lzma|gsl/|jansson|hwloc|cblas|lapacke|cmocka|nanomsg/|sodium|zstd|lz4|xxhash|microhttpd'
half_done='TODO|FIXME|XXX|HACK|unimplemented|not implemented'

list_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files
    else # an unpacked archive
        find . -type f -not -path './.git/*' -not -path './build/*' -not -path './runs/*' | sed 's|^\./||'
    fi | while IFS= read -r file; do [ -f "$file" ] && printf '%s\n' "$file"; done
}
mapfile -t files < <(list_files)
mapfile -t code < <(printf '%s\n' "${files[@]}" | grep -E '\.[ch]$')
rooms=()
while IFS=: read -r room _; do
    case $room in '#'* | '') continue ;; esac
    [ -f "$room/CMakeLists.txt" ] && rooms+=("$room")
done <"$here/arrows.txt"

check_names() {
    printf '%s\n' "${files[@]}" | awk -F/ -v shared="$shared_names" '
        BEGIN { n = split(shared, names, "|"); for (i = 1; i <= n; i++) skip[names[i]] = 1 }
        $NF in skip { next }
        $NF in first { print $0 ": the name is taken by " first[$NF]; next }
        { first[$NF] = $0 }'
}

# ---- arrows ----------------------------------------------------------------------------------------------------------
# links ROOM PUBLIC|PRIVATE|LINK: the rooms its CMakeLists.txt names behind that word (LINK: of tests).
links() {
    sed 's/#.*//' "$1/CMakeLists.txt" | tr '()\n\t' '    ' | tr -s ' ' '\n' | awk -v want="$2" '
        /^(PUBLIC|PRIVATE|INTERFACE|LINK|SOURCES|LABELS|TIMEOUT|DEFINES)$/ { mode = $0; next }
        /^(tt_|target_|add_|set_)[a-z_]*$/ { mode = "" }
        mode == want && /^tt::/ { sub(/^tt::/, ""); print }'
}
declare -A public_of private_of test_of allowed room_of
for room in "${rooms[@]}"; do
    public_of[$room]=$(links "$room" PUBLIC | grep -vxE '(knob|curve)_abi' | tr '\n' ' ')
    private_of[$room]=$(links "$room" PRIVATE | grep -vxE '(knob|curve)_abi' | tr '\n' ' ')
    test_of[$room]=$(links "$room" LINK | tr '\n' ' ')
    allowed[$room]=$(sed -n "s/^$room: *//p" "$here/arrows.txt")
    for header in "$room"/include/tt/*.h "$room"/abi/tt/*.h; do
        [ -f "$header" ] && room_of[${header#"$room"/*/}]=$room
    done
done
# What a room sees through the rooms $@: they and all that they link PUBLIC.
closure() {
    local seen=" " queue=("$@") room
    while [ ${#queue[@]} -gt 0 ]; do
        room=${queue[0]}
        queue=("${queue[@]:1}")
        case $seen in *" $room "*) continue ;; esac
        seen="$seen$room "
        # shellcheck disable=SC2206
        queue+=(${public_of[$room]:-})
    done
    printf '%s' "$seen"
}

check_links() {
    local room other
    for room in "${rooms[@]}"; do
        for other in ${public_of[$room]} ${private_of[$room]}; do
            case " ${allowed[$room]} " in
            *" $other "*) ;;
            *) echo "$room/CMakeLists.txt: links tt::$other, which tests/tidy/arrows.txt does not allow" ;;
            esac
        done
    done
}

# includes_of FILES...: "file:line header" for every #include "tt/...".
includes_of() {
    [ $# -gt 0 ] && grep -HnoE '^ *# *include +"tt/[^"]+"' "$@" | sed -E 's/: *# *include +"/ /; s/"$//'
}

# shellcheck disable=SC2086 # the lists of rooms are meant to fall apart into words
check_includes() {
    local room visible place header owner
    for room in "${rooms[@]}"; do
        mapfile -t own < <(printf '%s\n' "${code[@]}" | grep -E "^$room/(include|abi|src|test)/")
        while read -r place header; do
            owner=${room_of[$header]:-}
            case $place in
            $room/include/* | $room/abi/*) visible=$(closure "$room" ${public_of[$room]}) ;;
            $room/test/*) visible=$(closure "$room" ${public_of[$room]} ${private_of[$room]} ${test_of[$room]}) ;;
            *) visible=$(closure "$room" ${public_of[$room]} ${private_of[$room]}) ;;
            esac
            case $visible in
            *" ${owner:-?} "*) ;;
            *) echo "$place: includes \"$header\" of ${owner:-no room}, which $room does not link" ;;
            esac
        done < <(includes_of "${own[@]}")
    done
    printf '%s\n' "${code[@]}" | grep -E '^[a-z]+/(include|abi)/' |
        xargs -r -d '\n' grep -HnE "^ *# *include +<($outside_headers)" |
        sed 's/$/: a public header must not include an outside library/'
}

check_complete() {
    local room file
    for room in "${rooms[@]}"; do
        [ -f "$room/README.md" ] || echo "$room: has no README.md"
        for file in $(printf '%s\n' "${code[@]}" | grep -E "^$room/(src/[^/]+\.c|test/[^/]+_test\.c)$"); do
            local name=${file##*/}
            case $file in */test/*) name=${name%.c} ;; esac
            grep -qw -- "$name" "$room/CMakeLists.txt" || echo "$file: is not in $room/CMakeLists.txt"
        done
    done
}

# ---- text ------------------------------------------------------------------------------------------------------------
check_text() {
    [ ${#code[@]} -gt 0 ] || return
    grep -HnE '^.{101,}' "${code[@]}" | sed -E 's/^([^:]+:[0-9]+):.*/\1: more than 100 columns/'
    # With the return type on its own line, a function is what stands between a lone { and a lone }.
    awk 'FNR == 1 { start = 0 }
        /^[a-z_][A-Za-z0-9_]*\(/ { name = $0; sub(/\(.*/, "", name) }
        /^\{$/ { start = FNR }
        /^\}$/ { if (start && FNR - start + 1 > 70)
                     print FILENAME ":" start ": " name " has " FNR - start + 1 " lines, more than 70"; start = 0 }' "${code[@]}"
    printf '%s\n' "${files[@]}" | grep -vE '^(tests/tidy/|LICENSE$)' |
        xargs -r -d '\n' grep -HnIwE "$half_done" | sed 's/$/   <- finish it or say it differently/'
}

report=$(
    check_names
    check_links
    check_includes
    check_complete
    check_text
)
echo "tidy: ${#files[@]} files, ${#code[@]} of them C, ${#rooms[@]} rooms"
if [ -n "$report" ]; then
    printf '%s\n' "$report"
    echo "tidy: $(printf '%s\n' "$report" | wc -l) faults"
    exit 1
fi
echo "tidy: in order"
