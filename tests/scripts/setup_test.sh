#!/usr/bin/env bash
# Goal: scripts/setup.sh installs what is missing and only that, touches no network when nothing is, and says why it gives
# up. Method: dpkg-query, apt-get, id and sudo of our own in front of the PATH; apt-get writes down how it was called.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
mkdir "$box/bin"
cat >"$box/bin/dpkg-query" <<'END'
#!/bin/sh
for package; do :; done
grep -qx "$package" "$BOX/installed" && printf 'ii '
END
cat >"$box/bin/apt-get" <<'END'
#!/bin/sh
printf '%s\n' "$*" >>"$BOX/calls"
case "$*" in
*" update") exit "$UPDATE_STATUS" ;;
*) echo "E: Unable to locate package" ; exit "$INSTALL_STATUS" ;;
esac
END
cat >"$box/bin/id" <<'END'
#!/bin/sh
echo "$USER_ID"
END
cat >"$box/bin/sudo" <<'END'
#!/bin/sh
echo sudo >>"$BOX/calls"
exec "$@"
END
chmod +x "$box"/bin/*
printf 'gcc\ncmake\n' >"$box/installed"
export BOX=$box
failures=0

# need STATUS UPDATE INSTALL USER PACKAGES...: the exit status that tt_need_packages must have; its words land in $said.
need() {
    local expected=$1 status
    : >"$box/calls"
    export UPDATE_STATUS=$2 INSTALL_STATUS=$3 USER_ID=$4
    shift 4
    said=$(PATH="$box/bin:$PATH" bash -c '. "$0/scripts/setup.sh"; tt_need_packages "$@"' "$root" "$@" 2>&1)
    status=$?
    calls=$(cat "$box/calls")
    [ $status -eq "$expected" ] || complain "status $status, not $expected: $said"
}
complain() {
    printf '%s\n' "$*" >&2
    failures=$((failures + 1))
}
says() {
    case $said in *"$1"*) ;; *) complain "does not say '$1': $said" ;; esac
}
called() {
    case $calls in *"$1"*) ;; *) complain "did not call '$1': $calls" ;; esac
}

need 0 0 0 0 gcc cmake
says 'all 2 Debian packages it needs are installed'
[ -z "$calls" ] || complain "apt-get was called for nothing: $calls"

need 0 0 0 0 gcc libyaml-dev cmake libgsl-dev
says 'installing 2 Debian packages: libyaml-dev libgsl-dev'
called ' update'
called ' install -y --no-install-recommends libyaml-dev libgsl-dev'
case $calls in *sudo*) complain "root needs no sudo: $calls" ;; esac

need 0 0 0 1000 libyaml-dev
called sudo

need 0 100 0 0 libyaml-dev # no network, but the lists and the package are at hand
says 'apt-get update failed; trying with the lists there are'
called ' install '

need 1 0 100 0 libyaml-dev
says 'E: Unable to locate package'
says 'these packages could not be installed: libyaml-dev'

rm "$box/bin/sudo"
if ! command -v sudo >/dev/null; then # a machine without sudo, such as a container
    need 1 0 0 1000 libyaml-dev
    says 'needs root or sudo for: apt-get install libyaml-dev'
fi

[ $failures -eq 0 ] && echo "setup_test: in order"
exit $((failures > 0))
