# Sourced by ./quickstart, ./check and bench/run: Debian packages and builds, saying what is done. bash.
# Nothing here runs by being sourced except the choice of the source tree and of sudo.

tt_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What a build and the tests need, and the data of configs/quickstart.yaml. (libc6-dev: gcc only recommends it.)
tt_build_packages=(
    gcc libc6-dev make cmake pkg-config
    libyaml-dev libsqlite3-dev zlib1g-dev liblzma-dev libzstd-dev liblz4-dev libxxhash-dev libgsl-dev
    libjansson-dev liblapacke-dev libopenblas-dev libsodium-dev libcmocka-dev
    dataset-fashion-mnist
)

tt_say() {
    printf '== %s\n' "$*"
}

tt_fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Runs a command with its output in file $1; shows the end of it when the command fails.
tt_quietly() {
    local log=$1 status=0
    shift
    "$@" >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        tail -n 60 "$log" >&2
        printf '%s: "%s" failed with status %d (all of its output: %s)\n' "${0##*/}" "$*" $status "$log" >&2
    fi
    return $status
}

tt_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | cut -c1-2)" = ii ]
}

# Installs those of the packages $@ that are missing; without network when none is.
tt_need_packages() {
    local package missing=() as_root=()
    if ! command -v dpkg-query >/dev/null; then
        tt_say "not a Debian system: going on without looking for the packages $*"
        return
    fi
    for package in "$@"; do
        tt_installed "$package" || missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        tt_say "all $# Debian packages it needs are installed"
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            tt_fail "needs root or sudo for: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    tt_say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    local log
    log=$(mktemp)
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    tt_quietly "$log" "${apt[@]}" update || tt_say "apt-get update failed; trying with the lists there are"
    tt_quietly "$log" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
        tt_fail "these packages could not be installed: ${missing[*]}"
    rm -f "$log"
}

# tt_build PRESET [CMAKE_OPTION...]: configures and builds into build/PRESET.
tt_build() {
    local preset=$1 began=$SECONDS
    shift
    mkdir -p "$tt_root/build/$preset"
    tt_say "building preset $preset into build/$preset with $(nproc) jobs"
    (
        cd "$tt_root" || exit
        tt_quietly "build/$preset/configure.log" cmake --preset "$preset" "$@" &&
            tt_quietly "build/$preset/build.log" cmake --build "build/$preset" --parallel "$(nproc)"
    ) || return 1
    tt_say "built in $((SECONDS - began)) s"
}
