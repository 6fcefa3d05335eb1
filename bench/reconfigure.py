#!/usr/bin/python3
"""bench/run reconfigure: what one reconfiguration costs, on demand, by draining, and by checkpoint and restart.

    reconfigure.py [--table dense|sparse] [--repeats N] [--pause SECONDS]

One job a table, with messages on 8 nodes as threads, reconfigured by a script, the methods taking turns. Tables:
  dense      1,000,000 parameters pulled and pushed whole, SGD
  sparse     about 1,000,000 rows, keyed, AdaGrad: the rows of a generated click log, touched before the first change
Kinds:
  setting    in_flight changes: nothing moves
  data       a server becomes a worker (3 servers to 2): data shards change owner, its partitions leave it
  model      one more server (2 to 3): partitions leave their servers
  mixture    a server more or less, and in_flight and prefetch besides
The figure is the mean training time lost by a reconfiguration: its duration less the iterations done meanwhile times
the time per iteration after it (run.db, reconfiguration.lost_s; not floored at zero). N (30) of each kind and method,
PAUSE (0.25) seconds apart: about seven minutes. The bar: on demand at most 1/5 of checkpoint and restart.
Exit code 1 when it is missed.
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
BAR = 1 / 5
COMMON = """job: reconfigure
seed: 1
data: {format: clicklog, rows: %(rows)d, columns: %(columns)d, fields: 37}
model: {kind: logistic_regression, table: %(table)s, pull: %(pull)s}
optimizer: {kind: %(optimizer)s, learning_rate: 0.05, batch_size: %(batch)d}
stop: {max_epochs: %(epochs).6f}
cluster: {driver: messages, nodes: 8}
checkpoint: {keep: 0}
"""
TABLES = {
    "dense": {"rows": 100000, "columns": 1000000, "table": "dense", "pull": "whole", "optimizer": "sgd", "batch": 512},
    # 400,000 rows of 37 fields touch about 1,000,000 of 1,800,000 columns.
    "sparse": {"rows": 400000, "columns": 1800000, "table": "sparse", "pull": "keyed", "optimizer": "adagrad",
               "batch": 512},
}


def write_job(path, table, epochs, script):
    with open(path, "w", encoding="utf-8") as job:
        job.write(COMMON % {**TABLES[table], "epochs": epochs})
        job.write(f"tuner: {{script: [{', '.join(script)}]}}\n" if script else "tuner: {enabled: off}\n")


def epoch_iterations(table):
    return TABLES[table]["rows"] / TABLES[table]["batch"]


def iteration_seconds(table, scratch):
    """Time per iteration at the start setting, from a short run."""
    path = os.path.join(scratch, "calm.yaml")
    write_job(path, table, 1.5, [])
    result = runs.run(path, {}, timeout=300)
    return result["train_seconds"] / result["iterations"]


def cycle(turn):
    """[(kind, changes)]: from 2 servers back to 2 servers, one of each kind and a mixture each way every other turn."""
    up = {"servers": 3, "in_flight": 8, "prefetch": 2}
    down = {"servers": 2, "in_flight": 4, "prefetch": 1}
    steps = [("model", {"servers": 3}), ("setting", {"in_flight": 8}), ("data", {"servers": 2}),
             ("setting", {"in_flight": 4})]
    return steps[:3 + turn % 2] + ([("mixture", up), ("mixture", down)] if turn % 2 == 0 else [])


def make_script(repeats, first, gap):
    """(steps as YAML, [(kind, method)] in their order). Methods take turns cycle by cycle, in changing order."""
    script, order, iteration = [], [], first
    count = {(kind, method): 0 for kind in KINDS for method in METHODS}
    turn = 0
    while min(count.values()) < repeats:
        shift = turn // 2 % len(METHODS)
        for method in METHODS[shift:] + METHODS[:shift]:
            for kind, changes in cycle(turn):
                values = ", ".join(f"{knob}: {value}" for knob, value in changes.items())
                script.append(f"{{iteration: {iteration}, {values}, method: {method}}}")
                order.append((kind, method))
                count[kind, method] += 1
                iteration += gap
        turn += 1
    return script, order, iteration + gap


def measure(table, options, scratch):
    """{(kind, method): [lost seconds]}, {part: [seconds]} of restarts, and the share of the machine others used."""
    calm = iteration_seconds(table, scratch)
    gap = max(int(options.pause / calm), 20)
    first = int(epoch_iterations(table)) + gap  # every row has been touched once
    script, order, last = make_script(options.repeats, first, gap)
    say(f"{table}: {1e3 * calm:.2f} ms an iteration, {len(script)} reconfigurations {gap} iterations apart")
    path = os.path.join(scratch, f"{table}.yaml")
    write_job(path, table, last / epoch_iterations(table), script)
    result = runs.run(path, {}, runs_dir=scratch, timeout=3600)
    with sqlite3.connect(os.path.join(result["run_dir"], "run.db")) as store:
        rows = store.execute("SELECT to_setting, lost_s, checkpoint_s, restart_s, model_s, data_s FROM reconfiguration "
                             "ORDER BY ordinal").fetchall()
    lost = {(kind, method): [] for kind in KINDS for method in METHODS}
    parts = {"checkpoint": [], "nodes": [], "parameters": [], "data": []}
    for to_setting, seconds, *times in rows:
        lost[order[to_setting - 1]].append(seconds)  # step n of the script is setting n
        if times[0] is not None:
            for name, value in zip(parts, times):
                parts[name].append(value)
    return lost, parts, result["others"]


def show(table, lost, parts):
    """Prints the lines; returns whether the bar is held everywhere."""
    held = True
    params = {**TABLES[table], "nodes": 8}
    for name, values in parts.items():
        if values:
            runs.print_line("reconfigure", f"{table}/restart/{name}", params, 1, values, "s", mean=statistics.fmean(values))
    for kind in KINDS:
        means = {method: statistics.fmean(lost[kind, method]) for method in METHODS}
        for method in METHODS:
            runs.print_line("reconfigure", f"{table}/{kind}/{method}", params, 1, lost[kind, method], "s lost",
                            mean=means[method], baseline=means["checkpoint"], ratio=means[method] / means["checkpoint"])
        ratio = means["on_demand"] / means["checkpoint"]
        good = means["checkpoint"] > 0 and ratio <= BAR
        held = held and good
        say(f"  {kind:8} lost on demand {1e3 * means['on_demand']:7.2f} ms, drained {1e3 * means['drain']:7.2f} ms, "
            f"by checkpoint {1e3 * means['checkpoint']:7.1f} ms: {ratio:6.3f} of it, at most {BAR:g}  "
            f"{'PASS' if good else 'MISSED'}")
    say("  a restart: " + ", ".join(f"{name} {1e3 * statistics.fmean(values):.1f} ms"
                                    for name, values in parts.items() if values))
    return held


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run reconfigure", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--table", choices=sorted(TABLES), help="this one only")
    parser.add_argument("--repeats", type=int, default=30, metavar="N", help="of each kind and method (30)")
    parser.add_argument("--pause", type=float, default=0.25, metavar="SECONDS", help="between two of them (0.25)")
    options = parser.parse_args(arguments)
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
            held = show(table, lost, parts) and held
            others.append(busy)
    say(f"other processes used {max(others):.0%} of the machine")
    return 0 if held else 1


if __name__ == "__main__":
    runs.end_with(main, "reconfigure")
