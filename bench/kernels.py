#!/usr/bin/python3
"""bench/run kernels: the kernels (kernels_bench), the readers (reader_bench), whole jobs in place (kernels_in_place.py), then
their peers (kernels_peers.py), in the same sitting; at the end what is asked of each, and its ratios.

    kernels.py [--no-peers] [options of kernels_bench]

Rates depend on the machine: they are scaled by 960 M / CAL, CAL being the steps of a plain generator a CPU-second here, before
they are held against their bars. Exit code 1: a bar is missed. With --only nothing but the kernels run, and no bar is looked at.
"""
import contextlib
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import kernels_in_place  # noqa: E402  (beside this file)
import kernels_peers  # noqa: E402

REFERENCE_CAL = 960e6
# what is asked, of the best of these cases, least rate at the reference, the peer it is compared with
BARS = [
    ("logistic regression, kernel", "logr_a9a_", 20e6, "sklearn_sgd_a9a"),
    ("logistic regression, in place", "in_place_logr_a9a_batch64", 5e6, "sklearn_sgd_a9a"),
    ("softmax regression, kernel", "softmax_fashion_", 700e3, "sklearn_softmax_fashion"),
    ("softmax regression, in place", "in_place_softmax_fashion_batch128", 300e3, "sklearn_softmax_fashion"),
    ("LIBSVM reader, a9a, MB", "read_a9a_repeated", 500, "sklearn_read_a9a"),
    ("LIBSVM reader, click log, MB", "read_clicklog", 500, "sklearn_read_a9a"),
]


class Tee:
    """Standard output that remembers the JSON lines written to it."""

    def __init__(self, out):
        self.out, self.rows, self.rest = out, [], ""

    def write(self, text):
        self.out.write(text)
        *lines, self.rest = (self.rest + text).split("\n")
        self.rows.extend(json.loads(line) for line in lines if line.startswith("{"))
        return len(text)

    def flush(self):
        self.out.flush()


def run_program(name, arguments, tee):
    program = os.path.join(here, "..", "build", "release", "bin", name)
    if not os.path.exists(program):
        print(f"{name} is not built: cmake --preset release && cmake --build --preset release", file=sys.stderr)
        return 1
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout:
            tee.write(line)
            tee.flush()
    return bench.returncode


def best_of(rows, prefix):
    fitting = [row for row in rows if row["case"].startswith(prefix) and "threads=2" not in row.get("params", "")]
    return max(fitting, key=lambda row: row["median"], default=None)


def judge(rows, cal):
    """Prints the bars; how many are missed."""
    missed = 0
    print(f"\nCAL {cal / 1e6:.0f} M; rates a CPU-second, scaled to {REFERENCE_CAL / 1e6:.0f} M", file=sys.stderr)
    for what, prefix, bar, peer_case in BARS:
        row, peer = best_of(rows, prefix), best_of(rows, peer_case)
        if row is None:
            print(f"  {what:32} not measured: its data is not there", file=sys.stderr)
            continue
        scaled = row["median"] * REFERENCE_CAL / cal
        missed += scaled < bar
        to_peer = f"{row['median'] / peer['median']:6.1f} x scikit-learn" if peer is not None else ""
        roof = f", {row['ratio']:.2f} of the plain C roof" if "ratio" in row and not prefix.startswith("read") else ""
        print(f"  {what:32} {scaled:12,.0f}  bar {bar:12,.0f}  {'PASS' if scaled >= bar else 'MISSED'}  {to_peer}{roof}",
              file=sys.stderr)
    return missed


def main(arguments):
    peers = "--no-peers" not in arguments
    arguments = [a for a in arguments if a != "--no-peers"]
    tee = Tee(sys.stdout)
    code = run_program("kernels_bench", arguments, tee)
    if code != 0 or "--only" in arguments:
        return code
    cal = next(row["cal"] for row in tee.rows if "cal" in row)
    shared = []
    for name in ("--data", "--repeats", "--seed"):
        if name in arguments:
            shared += [name, arguments[arguments.index(name) + 1]]
    code = run_program("reader_bench", shared, tee)
    with contextlib.redirect_stdout(tee):
        kernels_in_place.main([*shared, "--cal", str(cal)])
        if peers:
            kernels_peers.main([*shared, "--cal", str(cal)])
    return code or int(judge(tee.rows, cal) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
