"""Jobs on simulated hosts, drawn from a seed, for the benches of the online tuner (guard, drift, stage, rules); running them, two at a
time, resumable. Nothing to run by itself.

A job is a dict: `text` (YAML; None: of the file `config`), `over` (files laid over it), `start` (setting that tuning begins in and the untuned run keeps), `sets` (further keys). Its time is
the virtual time at which the whole training objective was at its target, looked at off the clock (simulation.evaluate_pushes), for
tuned and untuned runs alike.
"""
import argparse
import concurrent.futures
import hashlib
import math
import os
import random
import shutil
import sqlite3
import tempfile
import threading

import selftune
import trimtab_runs as runs
from trimtab_runs import say

UNTUNED = {"tuner.enabled": "off"}
TUNED = {"tuner.enabled": "on", "tuner.compare": "off"}
LOOKS = 200  # evaluations on the way to the target
EVENT_CHANGED = "the machine has changed"


# ---- drawing ---------------------------------------------------------------------------------------------------------

def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def draw_cluster(rng):
    nodes = rng.randint(4, 24)
    slow = rng.random() < 0.3
    return f"""cluster: {{engine: simulated, nodes: {nodes}, retry: 60s}}
simulation:
  cores: {rng.choice([1, 2, 4, 8])}
  jitter: {rng.uniform(0.02, 0.3):.3f}
  stragglers: {rng.uniform(0.1, 0.3) if slow else 0:.3f}
  straggler_speed: {rng.uniform(0.3, 0.8):.3f}
  network: {{rate: {log_uniform(rng, 10e6, 1250e6):.0f}, latency: {log_uniform(rng, 20, 500):.0f}us, jitter: 0.1}}
  costs:
    message: {log_uniform(rng, 1, 100):.1f}us
    example: {log_uniform(rng, 0.1, 50):.2f}us
    wake: {log_uniform(rng, 10, 100):.0f}us
"""


def draw_work(rng):
    columns = int(log_uniform(rng, 64, 8192))
    fields = rng.randint(4, min(32, columns // 4))
    kind = rng.choice(["logistic_regression", "logistic_regression", "linear_svm", "softmax_regression"])
    optimizer = rng.choice(["sgd", "sgd", "adagrad"])
    rate = log_uniform(rng, 0.005, 0.05)
    rows = int(log_uniform(rng, 2000, 10000))
    pull = rng.choice(["whole", "keyed"])
    return f"""data: {{format: clicklog, rows: {rows}, columns: {columns}, fields: {fields}, seed: {rng.randint(1, 10**6)}}}
model: {{kind: {kind}, pull: {pull}}}
optimizer: {{kind: {optimizer}, learning_rate: {rate:.5f}, batch_size: {int(log_uniform(rng, 20, 200))}}}
consistency: {rng.choice(["asp", "asp", "asp", "ssp", "bsp"])}
"""


def draw_job(name):
    """Model, data, cluster of the job called so."""
    rng = random.Random(name)
    text = f"job: {name}\n" + draw_work(rng) + draw_cluster(rng) + "checkpoint: {keep: 0}\nsetting: {kernel: portable}\n"
    return {"name": name, "text": text, "iterations": int(log_uniform(rng, 3000, 20000)), "start": {}, "sets": {}, "rng": rng}


# ---- running ---------------------------------------------------------------------------------------------------------

class Bench:
    """Jobs and what is known of their runs."""

    def __init__(self, path, options):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(runs.PROGRAM, "rb") as program:
            fingerprint = hashlib.sha256(program.read()).hexdigest()[:16]
        self.ledger = selftune.Ledger(path, fingerprint)
        self.options, self.lock = options, threading.Lock()
        self.scratch = tempfile.mkdtemp(prefix="trimtab-bench-")

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def file_of(self, job):
        """Path of the job's file, or paths of several that are laid over each other."""
        if job["text"] is None:
            return os.path.join(runs.ROOT, job["config"])
        path = os.path.join(self.scratch, job["name"] + ".yaml")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(job["text"])
        return [path, *job.get("over", [])]

    def space(self, job):
        return selftune.search_space(job["sets"], self.file_of(job))

    def once(self, job, key, seed, sets, setting=None, read=None):
        """The row of a run, from the ledger when it is there. read(store) -> more columns, out of run.db."""
        key = f"{job['name']}:{key}:{seed}"
        if key in self.ledger.rows:
            return self.ledger.rows[key]
        directory = tempfile.mkdtemp(dir=self.scratch)
        keys = {"seed": seed, **job["sets"], **{f"knobs.{knob}.start": value for knob, value in job["start"].items()}, **sets,
                **runs.setting_keys(setting or {})}
        result = runs.run(self.file_of(job), keys, directory, timeout=1200)
        row = {"key": key, "kind": key.split(":")[1], "seed": seed, "status": result["status"], "seconds": result["train_seconds"]}
        row.update({name: result.get(name) for name in ("iterations", "epochs", "setting", "generations", "wall_seconds")})
        with sqlite3.connect(os.path.join(result["run_dir"], "run.db")) as store:
            row["tried"] = store.execute('SELECT count(DISTINCT setting) FROM "window"').fetchone()[0]
            row.update(read(store) if read is not None else {})
        shutil.rmtree(directory)
        with self.lock:
            self.ledger.add(row)
            say(f"[{len(self.ledger.rows)}] {key:32} {row['status']:10} {row['seconds']:9.3f} s, {row['iterations']:7d} iterations, "
                f"{row['tried']} settings, wall {row['wall_seconds']:.1f} s")
        return row

    def together(self, tasks):
        """Does the tasks, options.jobs at a time; their results in order."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            futures = [pool.submit(task) for task in tasks]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise


def parser_of(name, doc):
    """The options that these benches share; the rest is for the caller to add."""
    parser = argparse.ArgumentParser(prog="bench/run " + name, description=doc.split("\n", 1)[0])
    parser.add_argument("--jobs", type=int, default=2, help="simulated runs at a time (2)")
    parser.add_argument("--results", default=os.path.join(runs.ROOT, "bench", "results", name + ".jsonl"))
    parser.add_argument("--quick", action="store_true", help="little of it: a smoke test")
    return parser


def epochs_of(job, iterations):
    batch, rows = (int(job["text"].split(word)[1].split(",")[0].split("}")[0]) for word in ("batch_size: ", "rows: "))
    return iterations * batch / rows


def objective(store):
    """Columns of the last look at the whole training set, and of the first."""
    rows = store.execute("SELECT objective FROM progress WHERE objective IS NOT NULL ORDER BY time_s, iteration").fetchall()
    return {"first_objective": rows[0][0] if rows else None, "objective": rows[-1][0] if rows else None}


def aim(bench, job):
    """Gives the job its target: where its start setting is after job["iterations"]. Whether it got anywhere."""
    every = max(job["iterations"] // LOOKS, 1)
    epochs = epochs_of(job, job["iterations"])
    row = bench.once(job, "aim", 1, {**UNTUNED, "simulation.evaluate_pushes": every, "stop.max_epochs": epochs}, read=objective)
    first, last = row["first_objective"], row["objective"]
    if first is None or last is None or not last < 0.98 * first:
        return False
    job["sets"] = {**job["sets"], "stop.objective": f"{last + 0.01 * (first - last):.6g}", "simulation.evaluate_pushes": every,
                   "stop.max_epochs": f"{4 * epochs:.6g}", "stop.max_time": f"{20 * row['seconds']:.6g}s"}
    return True


def time_of(row, limit):
    """Seconds to the target; a run that did not arrive counts as `limit`."""
    return min(row["seconds"], limit) if row["status"] == "converged" else limit
