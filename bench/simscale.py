#!/usr/bin/python3
"""bench/run simscale: what simulating costs, and how that grows with hosts, messages and their size.

    simscale.py [--quick] [--repeats N]

Jobs on simulated hosts, one node on each; real gradients, real messages, virtual time. Three series:
  hosts      4 to 1,000 hosts (one in 32 serves), a keyed click log in 32 partitions: about 128 messages a push
  bytes      36 hosts, a dense table pulled and pushed whole, 1,000 to 1,000,000 parameters
  chunks     16 hosts, 1,000,000 parameters in 60 partitions, messages in chunks of 4 KiB to 1 MiB
The lines are of events per second; beside them messages per second, real seconds per virtual second and per 1,000 pushes,
and the largest memory the program took. The table ends with exponents, fitted by least squares on logarithms: seconds
over hosts with the same number of messages a host (1: each costs the same however many hosts there are) and peak memory
over hosts; and with what a message costs, and what its bytes add. Bars: the first at most 1.35, and 1,000 hosts in at
most 4 GB. Exit code 1 when one is missed. N (3) runs each, medians; at most 5 minutes, --quick (one run of a quarter) at
most half a minute.
"""
import argparse
import concurrent.futures
import math
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import trimtab_runs as runs  # noqa: E402  (beside this file)
from trimtab_runs import say  # noqa: E402

EXPONENT_MAX = 1.35
BYTES_MAX = 4e9
BATCH = 20
KEYED = """data: {format: clicklog, rows: 30000, columns: 512, fields: 20}
model: {kind: logistic_regression, table: sparse, pull: keyed}
"""
WHOLE = """data: {format: clicklog, rows: 4000, columns: %d, fields: 20}
model: {kind: logistic_regression, table: dense, pull: whole}
"""
COMMON = """job: simscale
seed: 1
optimizer: {kind: adagrad, learning_rate: 0.05, batch_size: %d}
stop: {max_epochs: %.9f}
consistency: asp
cluster: {engine: simulated, driver: messages, nodes: %d}
setting: {servers: %d, chunk_bytes: %d}
simulation: {cores: 4, network: {rate: 1250MB, latency: 40us}}
tuner: {enabled: off}
checkpoint: {keep: 0}
"""


def run_and_measure(config, timeout):
    """In a process of its own, whose children are this one run: its result, and its largest memory in bytes."""
    result = runs.run(config, {}, timeout=timeout)
    return result, 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def run_alone(config):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(run_and_measure, config, 240).result()


def case(series, name, hosts, pushes, columns=None, chunk=64 << 10):
    """One row of the table, to be measured. columns: of a dense table; None: the keyed one."""
    return {"series": series, "name": name, "hosts": hosts, "pushes": pushes, "columns": columns, "chunk": chunk}


def cases(quick):
    """Few hosts do more pushes each, so that opening the job is a small part of the time everywhere; cost is put in
    proportion to messages."""
    share = 4 if quick else 1
    rows = [case("hosts", f"{hosts} hosts", hosts, max(30 * hosts, 12000) // share)
            for hosts in (4, 16, 36, 100, 300, 1000)]
    rows += [case("bytes", f"{columns} parameters", 36, pushes // share, columns)
             for columns, pushes in ((1000, 8000), (10000, 4000), (100000, 2000), (1000000, 400))]
    rows += [case("chunks", f"{chunk >> 10} KiB chunks", 16, 400 // share, 1000000, chunk)
             for chunk in (4 << 10, 64 << 10, 1 << 20)]
    return rows


def write_job(path, row):
    data, rows = (KEYED, 30000) if row["columns"] is None else (WHOLE % row["columns"], 4000)
    servers = max(round(row["hosts"] / 32), 1)
    with open(path, "w", encoding="utf-8") as job:
        job.write(data + COMMON % (BATCH, row["pushes"] * BATCH / rows, row["hosts"], servers, row["chunk"]))


def figures(result, peak):
    """What one run says. It is one thread: where others took its processor meanwhile, its processor seconds count."""
    counters = result["counters"]
    simulation = counters["simulation"]
    seconds = min(simulation["wall_seconds"], result["cpu_seconds"])
    return {"events_per_s": simulation["events"] / seconds, "frames_per_s": counters["frames"] / seconds,
            "real_per_virtual": seconds / simulation["virtual_seconds"],
            "seconds_per_1000_pushes": 1000 * seconds / counters["pushes"],
            "seconds_per_frame": seconds / counters["frames"], "peak_bytes": peak, "seconds": seconds,
            "switches_per_event": simulation["switches"] / simulation["events"],
            "bytes_per_frame": counters["bytes"] / counters["frames"],
            "chunks_per_frame": counters["chunks"] / counters["frames"], "frames": counters["frames"]}


def measure(row, repeats, scratch):
    path = os.path.join(scratch, "job.yaml")
    write_job(path, row)
    taken, busy = [], []
    for _ in range(repeats):
        result, peak = run_alone(path)
        taken.append(figures(result, peak))
        busy.append(result["others"])
    middle = {key: statistics.median(one[key] for one in taken) for key in taken[0]}
    params = {key: row[key] for key in ("hosts", "pushes", "columns", "chunk")}
    runs.print_line("simscale", f"{row['series']}/{row['name']}", params, 1, [one["events_per_s"] for one in taken],
                    "events/s", **{key: value for key, value in middle.items() if key != "events_per_s"})
    say(f"  {row['series']:7} {row['name']:19} {middle['events_per_s'] / 1e3:7.0f} {middle['frames_per_s'] / 1e3:7.0f} "
        f"{middle['real_per_virtual']:9.3g} {middle['seconds_per_1000_pushes']:9.3f} {1e6 * middle['seconds_per_frame']:7.2f} "
        f"{middle['bytes_per_frame']:8.0f} {middle['chunks_per_frame']:6.2f} {middle['peak_bytes'] / 1e6:7.0f}")
    return middle, max(busy)


def exponent(points):
    """b of y = a x^b, by least squares on logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    middle_x, middle_y = (statistics.fmean(values) for values in zip(*logs))
    return (sum((x - middle_x) * (y - middle_y) for x, y in logs) / sum((x - middle_x) ** 2 for x, _ in logs))


def conclude(measured):
    """Says how cost grows; whether the bars are held."""
    of = {series: [(row, got) for row, got in measured if row["series"] == series] for series in ("hosts", "bytes")}
    # Hosts times seconds a message: the time of runs with the same number of messages a host.
    time = exponent([(row["hosts"], row["hosts"] * got["seconds_per_frame"]) for row, got in of["hosts"]])
    memory = exponent([(row["hosts"], got["peak_bytes"]) for row, got in of["hosts"]])
    small, large = of["bytes"][0][1], of["bytes"][-1][1]
    byte_s = ((large["seconds_per_frame"] - small["seconds_per_frame"]) /
              (large["bytes_per_frame"] - small["bytes_per_frame"]))
    message_s = small["seconds_per_frame"] - byte_s * small["bytes_per_frame"]
    most = max(got["peak_bytes"] for _, got in of["hosts"])
    for name, value, unit in (("seconds over hosts", time, "exponent"), ("memory over hosts", memory, "exponent"),
                              ("a message", message_s, "s"), ("a byte", byte_s, "s")):
        runs.print_line("simscale", f"cost/{name}", {}, 1, [value], unit)
    good = time <= EXPONENT_MAX and most <= BYTES_MAX
    say(f"seconds with the same messages a host grow as hosts^{time:.2f} (at most {EXPONENT_MAX:g}), memory as "
        f"hosts^{memory:.2f} (to {most / 1e6:.0f} MB); a message {1e6 * message_s:.2f} us and {1e9 * byte_s:.2f} ns a byte: "
        f"{'PASS' if good else 'MISSED'}")
    return good


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run simscale", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one run each, a quarter as long")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each (3; quick: 1)")
    options = parser.parse_args(arguments)
    options.repeats = options.repeats or (1 if options.quick else 3)
    if options.repeats < 1:
        parser.error("at least one repeat")
    return options


def main(arguments):
    options = parse(arguments)
    runs.need_program()
    os.chdir(runs.ROOT)
    measured, others = [], []
    say(f"  {'':27} {'1000 ev.':>7} {'1000 m.':>7} {'real s':>9} {'s / 1000':>9} {'us /':>7} {'bytes /':>8} "
        f"{'chunks':>6} {'peak':>7}")
    say(f"  {'':27} {'/ s':>7} {'/ s':>7} {'/ virt. s':>9} {'pushes':>9} {'message':>7} {'message':>8} {'/ m.':>6} {'MB':>7}")
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        runs.keep_program(os.path.join(scratch, "trimtab"))
        for row in cases(options.quick):
            got, busy = measure(row, options.repeats, scratch)
            measured.append((row, got))
            others.append(busy)
    held = conclude(measured)
    say(f"other processes used {max(others):.0%} of the machine")
    return 0 if held else 1


if __name__ == "__main__":
    runs.end_with(main, "simscale")
