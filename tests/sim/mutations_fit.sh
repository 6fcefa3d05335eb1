#!/usr/bin/env bash
# Goal: the bugs that show whether the simulations bite still name what the sources say (tests/sim/mutations.py).
#
#   mutations_fit.sh SOURCES
command -v python3 >/dev/null || {
    echo "SKIP: python3 is not installed"
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$1/tests/sim/mutations.py" --fit "$1"
