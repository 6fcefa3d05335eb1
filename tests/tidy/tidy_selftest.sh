#!/usr/bin/env bash
# Goal: tidy.sh finds what it promises to find, and nothing in an orderly tree. Method: a small orderly tree in a temporary
# directory; one fault at a time is put in, must be reported in the expected words, and is taken out again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export GIT_CEILING_DIRECTORIES=${tree%/*} # the tree is not part of a repository around it
failures=0

reset_tree() {
    rm -rf "${tree:?}"/*
    for room in core knobs tuner; do
        mkdir -p "$tree/$room/include/tt" "$tree/$room/src" "$tree/$room/test"
        echo "# $room" >"$tree/$room/README.md"
        echo "void tt_$room(void);" >"$tree/$room/include/tt/$room.h"
        printf '#include "tt/%s.h"\n#include "tt/core.h"\nvoid\ntt_%s(void)\n{\n}\n' $room $room >"$tree/$room/src/$room.c"
        echo "#include \"tt/$room.h\"" >"$tree/$room/test/${room}_test.c"
        printf 'tt_module(%s\n    SOURCES %s.c%s)\ntt_test(%s %s_test)\n' $room $room "$1" $room $room >"$tree/$room/CMakeLists.txt"
        set -- ' PUBLIC tt::core'
    done
}
# expect TEXT: tidy.sh fails and says TEXT. expect "": it finds nothing.
expect() {
    local said status=0
    said=$("$here/tidy.sh" "$tree" 2>&1) || status=$?
    if [ -z "$1" ] && [ $status -ne 0 ] || [ -n "$1" ] && { [ $status -ne 1 ] || ! grep -qF -- "$1" <<<"$said"; }; then
        printf 'expected "%s", got status %d and:\n%s\n' "$1" "$status" "$said"
        failures=$((failures + 1))
    fi
    reset_tree ''
}

reset_tree ''
expect ''
cp "$tree/core/src/core.c" "$tree/tuner/src/core.c"
expect 'the name is taken by core/src/core.c'
echo '#include "tt/knobs.h"' >>"$tree/tuner/src/tuner.c"
expect 'tuner/src/tuner.c:7: includes "tt/knobs.h" of knobs, which tuner does not link'
sed -i 's/PUBLIC tt::core/PUBLIC tt::core PRIVATE tt::knobs/' "$tree/tuner/CMakeLists.txt"
echo '#include "tt/knobs.h"' >>"$tree/tuner/src/tuner.c"
expect ''
sed -i 's/PUBLIC tt::core/PUBLIC tt::core PRIVATE tt::knobs/' "$tree/tuner/CMakeLists.txt"
echo '#include "tt/knobs.h"' >>"$tree/tuner/include/tt/tuner.h"
expect 'tuner/include/tt/tuner.h:2: includes "tt/knobs.h"'
sed -i 's/PUBLIC tt::core/PUBLIC tt::tuner/' "$tree/knobs/CMakeLists.txt"
expect 'knobs/CMakeLists.txt: links tt::tuner'
echo '#include <sqlite3.h>' >>"$tree/core/include/tt/core.h"
expect 'must not include an outside library'
rm "$tree/core/README.md"
expect 'core: has no README.md'
echo 'int x;' >"$tree/core/src/forgotten.c"
expect 'core/src/forgotten.c: is not in core/CMakeLists.txt'
echo 'int x;' >"$tree/core/test/lost_test.c"
expect 'core/test/lost_test.c: is not in core/CMakeLists.txt'
printf '// %098d\n' 0 >>"$tree/core/src/core.c"
expect 'core/src/core.c:7: more than 100 columns'
printf '// %97s\n' é >>"$tree/core/src/core.c" # 100 characters, 101 bytes
expect ''
{ printf 'void\nlong_one(void)\n{\n'; yes '    x++;' | head -n 69; echo '}'; } >>"$tree/core/src/core.c"
expect 'core/src/core.c:9: long_one has 71 lines'
half=TO
echo "// ${half}DO later" >>"$tree/core/src/core.c"
expect 'finish it or say it differently'

[ $failures -eq 0 ] && echo "tidy_selftest: all faults are found"
exit $((failures > 0))
