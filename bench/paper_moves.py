"""What one reconfiguration costs in a cell of bench/run paper, on demand and by checkpoint and restart (the paper's
Table V). Used by paper_protocol.py.

One job a cell, changed by a script around the default setting, the methods taking turns. The figure is the training time
lost (run.db, reconfiguration.lost_s). On simulated hosts, writing and reading the file and starting processes take no
virtual time: what a restart costs there is the waiting, the messages and the cold start, so that the ratio is a lower bound.
"""
import os
import shutil
import sqlite3
import statistics
import tempfile

import paper_cells as cells
import trimtab_runs as runs
from trimtab_runs import say

METHODS = ("on_demand", "checkpoint")
KINDS = ("setting", "data", "model", "mixture")
GAP = 250  # iterations between two of them
KEY = "moves"


def cycle():
    """From the default setting back to it."""
    return [("model", {"servers": 12}), ("setting", {"in_flight": 8}), ("data", {"servers": 9}),
            ("setting", {"in_flight": 4}), ("mixture", {"servers": 14, "in_flight": 8, "prefetch": 2}),
            ("mixture", {"servers": 9, "in_flight": 4, "prefetch": 1})]


def make_script(repeats):
    """(steps as YAML, [(kind, method)] in their order, the last iteration)."""
    steps, order, iteration = [], [], 4 * GAP
    for turn in range(repeats):
        for method in METHODS[turn % 2:] + METHODS[:turn % 2]:
            for kind, changes in cycle():
                values = ", ".join(f"{knob}: {value}" for knob, value in changes.items())
                steps.append(f"{{iteration: {iteration}, {values}, method: {method}}}")
                order.append((kind, method))
                iteration += GAP
    return steps, order, iteration + GAP


def measure(bench):
    if KEY in bench.ledger.rows:
        return
    steps, order, last = make_script(bench.options.repeats)
    epochs = last * cells.BATCH[bench.cell.data] / cells.ROWS[bench.cell.data]
    directory = tempfile.mkdtemp(dir=bench.scratch)
    result = runs.run(bench.files, {"seed": 1, "tuner.script": f"[{', '.join(steps)}]", "stop.objective": "null",
                                    "simulation.evaluate_pushes": "null", "stop.max_epochs": f"{epochs:.4f}"},
                      directory, timeout=3600)
    with sqlite3.connect(os.path.join(result["run_dir"], "run.db")) as store:
        rows = store.execute("SELECT to_setting, lost_s, duration_s FROM reconfiguration ORDER BY ordinal").fetchall()
    shutil.rmtree(directory)
    costs = {f"{kind} {method}": [] for kind in KINDS for method in METHODS}
    for to_setting, lost, duration in rows:
        kind, method = order[to_setting - 1]
        if lost is not None:
            costs[f"{kind} {method}"].append([lost, duration])
    bench.ledger.add({"key": KEY, "kind": KEY, "seed": 1, "costs": costs,
                      "iteration_s": result["train_seconds"] / result["iterations"]})


def summary(bench):
    """{kind: {method: (mean seconds lost, mean duration, n)}} and the seconds per iteration."""
    row = bench.ledger.rows[KEY]
    means = {}
    for name, values in row["costs"].items():
        kind, method = name.rsplit(" ", 1)
        if values:
            means.setdefault(kind, {})[method] = (statistics.fmean(v[0] for v in values),
                                                  statistics.fmean(v[1] for v in values), len(values))
    return means, row["iteration_s"]


def show(bench):
    means, each = summary(bench)
    table = [f"  a reconfiguration, training time lost (an iteration is {1e3 * each:.3f} ms):"]
    for kind, methods in means.items():
        for method, (lost, duration, count) in methods.items():
            values = [v[0] for v in bench.ledger.rows[KEY]["costs"][f"{kind} {method}"]]
            runs.print_line("paper", f"reconfiguration {kind} {method}", {"cell": bench.cell.name}, 1, values, "s lost",
                            mean=lost, duration=duration)
        if len(methods) == 2:
            on_demand, restart = methods["on_demand"][0], methods["checkpoint"][0]
            table.append(f"    {kind:8} on demand {1e3 * on_demand:8.3f} ms   checkpoint and restart {1e3 * restart:8.3f} ms"
                         f"   n {methods['on_demand'][2]}")
    say("\n".join(table))
