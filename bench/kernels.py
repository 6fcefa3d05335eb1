#!/usr/bin/python3
"""bench/run kernels: the kernels (kernels_bench), whole jobs in place (kernels_in_place.py), then their peers
(kernels_peers.py), in the same sitting.

    kernels.py [--no-peers] [options of kernels_bench]
"""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import kernels_in_place  # noqa: E402  (beside this file)
import kernels_peers  # noqa: E402


def main(arguments):
    program = os.path.join(here, "..", "build", "release", "bin", "kernels_bench")
    if not os.path.exists(program):
        print("kernels_bench is not built: cmake --preset release && cmake --build --preset release", file=sys.stderr)
        return 1
    peers = "--no-peers" not in arguments
    arguments = [a for a in arguments if a != "--no-peers"]
    cal = None
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            cal = json.loads(line).get("cal", cal)
    if bench.returncode != 0:
        return bench.returncode
    if "--only" not in arguments:
        shared = []
        for name in ("--data", "--repeats", "--seed"):
            if name in arguments:
                shared += [name, arguments[arguments.index(name) + 1]]
        kernels_in_place.main([*shared, "--cal", str(cal)])
        if peers:
            kernels_peers.main([*shared, "--cal", str(cal)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
