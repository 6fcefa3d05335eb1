#!/usr/bin/python3
"""bench/run reconfigure: what one reconfiguration costs, on demand, by draining, and by checkpoint and restart.

    reconfigure.py [--engine threads|local] [--table dense|sparse] [--repeats N] [--pause SECONDS]

One job a table, with messages on 8 nodes as threads or processes, reconfigured by a script, the methods taking turns. Tables:
  dense      1,000,000 parameters (processes: 10,000,000) pulled and pushed whole, SGD
  sparse     about 1,000,000 rows, keyed, AdaGrad: the rows of a generated click log, touched before the first change
Kinds:
  setting    in_flight changes: nothing moves
  data       a server becomes a worker (3 servers to 2): data shards change owner, its partitions leave it
  model      one more server (2 to 3): partitions leave their servers
  mixture    a server more or less, and in_flight and prefetch besides
The figure is the mean training time lost by a reconfiguration: its duration less the iterations done meanwhile times
the time per iteration after it (run.db, reconfiguration.lost_s; not floored at zero). N (30; processes 8) of each kind and
method, PAUSE (0.25) seconds apart: about seven minutes. The bar: on demand at most 1/5 of checkpoint and restart, of
processes 1/10. Of processes a job that is reconfigured on demand alone tells how long workers waited for answers on moving
partitions: the 99th percentile at most two iterations of a worker, in an undisturbed run. Six workers have one under way each, so that is
six times the job's time per iteration, of which the figure is printed besides. Exit code 1 when a bar is missed.
"""
import argparse
import os
import sqlite3
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import trimtab_runs as runs  # noqa: E402  (beside this file)
from trimtab_runs import say  # noqa: E402

METHODS = ("on_demand", "drain", "checkpoint")
KINDS = ("setting", "data", "model", "mixture")
BAR = {"threads": 1 / 5, "local": 1 / 10}
REPEATS = {"threads": 30, "local": 8}
NODES, SERVERS = 8, 2  # at first
WAIT_BAR = 2  # iterations of a worker, undisturbed
COMMON = """job: reconfigure
seed: 1
data: {format: clicklog, rows: %(rows)d, columns: %(columns)d, fields: 37}
model: {kind: logistic_regression, table: %(table)s, pull: %(pull)s}
optimizer: {kind: %(optimizer)s, learning_rate: 0.05, batch_size: %(batch)d}
stop: {max_epochs: %(epochs).6f}
cluster: {engine: %(engine)s, driver: messages, nodes: %(nodes)d}
checkpoint: {keep: 0}
"""
TABLES = {
    "dense": {"rows": 100000, "columns": 1000000, "table": "dense", "pull": "whole", "optimizer": "sgd", "batch": 512},
    # 400,000 rows of 37 fields touch about 1,000,000 of 1,800,000 columns.
    "sparse": {"rows": 400000, "columns": 1800000, "table": "sparse", "pull": "keyed", "optimizer": "adagrad",
               "batch": 512},
}


def shape_of(table, engine):
    larger = {"rows": 20000, "columns": 10000000} if (table, engine) == ("dense", "local") else {}
    return {**TABLES[table], **larger, "engine": engine}


def write_job(path, shape, epochs, script):
    with open(path, "w", encoding="utf-8") as job:
        job.write(COMMON % {**shape, "epochs": epochs, "nodes": NODES})
        job.write(f"tuner: {{script: [{', '.join(script)}]}}\n" if script else "tuner: {enabled: off}\n")


def epoch_iterations(shape):
    return shape["rows"] / shape["batch"]


def iteration_seconds(shape, scratch):
    """Time per iteration at the start setting, from a short run."""
    path = os.path.join(scratch, "calm.yaml")
    write_job(path, shape, 1.5, [])
    result = runs.run(path, {}, timeout=300)
    return result["train_seconds"] / result["iterations"]


def cycle(turn):
    """[(kind, changes)]: from 2 servers back to 2 servers, one of each kind and a mixture each way every other turn."""
    up = {"servers": 3, "in_flight": 8, "prefetch": 2}
    down = {"servers": 2, "in_flight": 4, "prefetch": 1}
    steps = [("model", {"servers": 3}), ("setting", {"in_flight": 8}), ("data", {"servers": 2}),
             ("setting", {"in_flight": 4})]
    return steps[:3 + turn % 2] + ([("mixture", up), ("mixture", down)] if turn % 2 == 0 else [])


def make_script(repeats, first, gap, methods):
    """(steps as YAML, [(kind, method)] in their order). Methods take turns cycle by cycle, in changing order."""
    script, order, iteration = [], [], first
    count = {(kind, method): 0 for kind in KINDS for method in methods}
    turn = 0
    while min(count.values()) < repeats:
        shift = turn // 2 % len(methods)
        for method in methods[shift:] + methods[:shift]:
            for kind, changes in cycle(turn):
                values = ", ".join(f"{knob}: {value}" for knob, value in changes.items())
                script.append(f"{{iteration: {iteration}, {values}, method: {method}}}")
                order.append((kind, method))
                count[kind, method] += 1
                iteration += gap
        turn += 1
    return script, order, iteration + gap


def reconfigured(table, options, scratch, methods):
    """(result, its reconfigurations as rows, [(kind, method)] of the steps)."""
    shape = shape_of(table, options.engine)
    calm = iteration_seconds(shape, scratch)
    gap = max(int(options.pause / calm), 20)
    first = int(epoch_iterations(shape)) + gap  # every row has been touched once
    script, order, last = make_script(options.repeats, first, gap, methods)
    say(f"{table}, {options.engine}: {1e3 * calm:.2f} ms an iteration, {len(script)} reconfigurations "
        f"{' and '.join(methods)}, {gap} iterations apart")
    path = os.path.join(scratch, f"{table}.yaml")
    write_job(path, shape, last / epoch_iterations(shape), script)
    result = runs.run(path, {}, runs_dir=scratch, timeout=3600)
    with sqlite3.connect(os.path.join(result["run_dir"], "run.db")) as store:
        rows = store.execute("SELECT to_setting, lost_s, checkpoint_s, restart_s, model_s, data_s FROM reconfiguration "
                             "ORDER BY ordinal").fetchall()
    return result, rows, order, calm


def measure(table, options, scratch):
    """{(kind, method): [lost seconds]}, {part: [seconds]} of restarts, and the share of the machine others used."""
    result, rows, order, _ = reconfigured(table, options, scratch, METHODS)
    lost = {(kind, method): [] for kind in KINDS for method in METHODS}
    parts = {"checkpoint": [], "nodes": [], "parameters": [], "data": []}
    for to_setting, seconds, *times in rows:
        lost[order[to_setting - 1]].append(seconds)  # step n of the script is setting n
        if times[0] is not None:
            for name, value in zip(parts, times):
                parts[name].append(value)
    return lost, parts, result["others"]


def measure_waits(table, options, scratch):
    """How long answers on moving partitions took; whether the bar is held."""
    result, _, _, calm = reconfigured(table, options, scratch, METHODS[:1])
    counters = result["counters"]
    waits, iteration = counters["moving_wait_p99_s"], calm * (NODES - SERVERS)
    ratio = waits / iteration
    runs.print_line("reconfigure", f"{table}/waits", {**shape_of(table, options.engine), "nodes": NODES}, 1, [waits], "s",
                    mean=waits, baseline=iteration, ratio=ratio)
    say(f"  waits on moving partitions: {counters['moving_waits']}, 99th percentile {1e3 * waits:.1f} ms, {ratio:.2f} iterations of a "
        f"worker, at most {WAIT_BAR} ({waits / calm:.1f} of the job)  {'PASS' if ratio <= WAIT_BAR else 'MISSED'}")
    return ratio <= WAIT_BAR


def show(table, options, lost, parts):
    """Prints the lines; returns whether the bar is held everywhere."""
    held, bar = True, BAR[options.engine]
    params = {**shape_of(table, options.engine), "nodes": NODES}
    for name, values in parts.items():
        if values:
            runs.print_line("reconfigure", f"{table}/restart/{name}", params, 1, values, "s", mean=statistics.fmean(values))
    for kind in KINDS:
        means = {method: statistics.fmean(lost[kind, method]) for method in METHODS}
        for method in METHODS:
            runs.print_line("reconfigure", f"{table}/{kind}/{method}", params, 1, lost[kind, method], "s lost",
                            mean=means[method], baseline=means["checkpoint"], ratio=means[method] / means["checkpoint"])
        ratio = means["on_demand"] / means["checkpoint"]
        good = means["checkpoint"] > 0 and ratio <= bar
        held = held and good
        say(f"  {kind:8} lost on demand {1e3 * means['on_demand']:7.2f} ms, drained {1e3 * means['drain']:7.2f} ms, "
            f"by checkpoint {1e3 * means['checkpoint']:7.1f} ms: {ratio:6.3f} of it, at most {bar:g}  "
            f"{'PASS' if good else 'MISSED'}")
    say("  a restart: " + ", ".join(f"{name} {1e3 * statistics.fmean(values):.1f} ms"
                                    for name, values in parts.items() if values))
    return held


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run reconfigure", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--table", choices=sorted(TABLES), help="this one only")
    parser.add_argument("--engine", choices=sorted(BAR), default="threads", help="threads, or processes (local)")
    parser.add_argument("--repeats", type=int, metavar="N", help="of each kind and method (30; processes 8)")
    parser.add_argument("--pause", type=float, default=0.25, metavar="SECONDS", help="between two of them (0.25)")
    options = parser.parse_args(arguments)
    options.repeats = REPEATS[options.engine] if options.repeats is None else options.repeats
    if options.repeats < 1 or not options.pause > 0:
        parser.error("at least one repeat, and a pause")
    return options


def main(arguments):
    options = parse(arguments)
    runs.need_program()
    os.chdir(runs.ROOT)
    held, others = True, []
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        runs.keep_program(os.path.join(scratch, "trimtab"))
        for table in [options.table] if options.table else TABLES:
            lost, parts, busy = measure(table, options, scratch)
            held = show(table, options, lost, parts) and held
            if options.engine == "local":
                held = measure_waits(table, options, scratch) and held
            others.append(busy)
    say(f"other processes used {max(others):.0%} of the machine")
    return 0 if held else 1


if __name__ == "__main__":
    runs.end_with(main, "reconfigure")
