#!/usr/bin/python3
"""Records the problem `recorded` of bench/run tune: microseconds per iteration of a real job under every setting of a grid.

    tune_record.py [--repeats N] [--out FILE]

The job is configs/clicklog.yaml, smaller, on 8 nodes that are threads of one process. A script takes it through all settings in random
order, some hundred milliseconds each, N times (3), each time in another order; the iterations of which its run store has samples
are its measurement of that time. Nothing is left out or smoothed: the noise is the machine's.
"""
import argparse
import csv
import itertools
import json
import os
import random
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import trimtab_runs as runs  # noqa: E402  (beside this file)
from trimtab_runs import say  # noqa: E402

GRID = {
    "servers": [1, 2, 3, 4, 5, 6],
    "compute_threads": [1, 2],
    "kernel": ["portable", "avx2"],
    "bf16_transfer": ["off", "on"],
    "push_aggregation": [1, 2, 4, 8],
    "prefetch": [0, 1, 4],
    "in_flight": [1, 4],
}
ROWS, BATCH = 200000, 64
JOB = {"data.rows": ROWS, "data.columns": 200000, "tuner.enabled": "off", "tuner.compare": "off", "stop.loss": 0,
       "optimizer.batch_size": BATCH, "stop.max_time": "20m"}
STEP, WARM = 1000, 1000  # iterations of a setting, and before the first


def measure(settings, seed):
    """[microseconds per iteration] of the settings, in one run that goes through them."""
    script = [{"iteration": WARM + STEP * i, **setting} for i, setting in enumerate(settings)]
    epochs = (WARM + STEP * (len(settings) + 1)) * BATCH / ROWS
    sets = {**JOB, "seed": seed, "stop.max_epochs": epochs}
    with tempfile.TemporaryDirectory(prefix="trimtab-record-") as directory:
        through = os.path.join(directory, "script.yaml")  # too long for an argument
        with open(through, "w", encoding="utf-8") as file:
            json.dump({"tuner": {"script": script}}, file)
        result = runs.run(["configs/clicklog.yaml", through], sets, runs_dir=directory, timeout=1800)
        return read_times(os.path.join(result["run_dir"], "run.db"), len(settings))


def read_times(path, count):
    """Of each step, from its samples after the first third (a switch goes on for a while); None where a step has too few."""
    store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    per_step = [[] for _ in range(count)]
    for iteration, seconds in store.execute("select iteration_first, time_s from sample order by iteration_first"):
        step, place = divmod(iteration - WARM, STEP)
        if 0 <= step < count and place >= STEP / 3:
            per_step[step].append((iteration, seconds))
    return [1e6 * (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0]) if len(rows) > 1 else None for rows in per_step]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", default=os.path.join(runs.ROOT, "bench", "tune_recorded.csv"))
    options = parser.parse_args(arguments)
    runs.need_program()
    os.chdir(runs.ROOT)
    every = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    table = {json.dumps(setting): [] for setting in every}
    for repeat in range(options.repeats):
        left = [setting for setting in every if len(table[json.dumps(setting)]) <= repeat]
        rng = random.Random(repeat)
        while left:
            rng.shuffle(left)
            for setting, time in zip(left, measure(left, 1 + repeat)):
                if time is not None:
                    table[json.dumps(setting)].append(time)
            left = [setting for setting in every if len(table[json.dumps(setting)]) <= repeat]
            say(f"repeat {repeat + 1}: {len(left)} settings left")
    with open(options.out, "w", encoding="utf-8", newline="") as file:
        file.write("# Microseconds per iteration of configs/clicklog.yaml on 8 threads, measured by tune_record.py.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*GRID, *(f"us{i + 1}" for i in range(options.repeats))])
        for setting in every:
            writer.writerow([*setting.values(), *(f"{time:.2f}" for time in table[json.dumps(setting)])])
    return 0


if __name__ == "__main__":
    runs.end_with(main, "tune_record")
