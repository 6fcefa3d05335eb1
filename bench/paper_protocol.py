"""The protocol of bench/run paper for one cell: which runs there are, and doing them, two at a time. Used by paper.py."""
import concurrent.futures
import math
import os
import random
import shutil
import sqlite3
import tempfile
import threading

import paper_cells as cells
import paper_eta
import paper_moves
import paper_rank
import selftune  # settings drawn from a search space; the ledger of runs that are done
import trimtab_runs as runs
from trimtab_runs import say

SELECTION_SEEDS = (1, 2, 3)  # all settings on the first; the top on the others, too
FRESH_SEED = 101             # the first of those on which what is compared is timed
MEMORY_SEED = 201            # of the cold run that a single fresh seed's warm one remembers
TOP = 10
CAP = 20.0                   # times Best's time, as it is known from the first selection seed
CURVE_POINTS = 60
UNTUNED = {"tuner.enabled": "off"}
TUNED = {"tuner.enabled": "on", "tuner.compare": "off"}
PAPER = {**TUNED, "tuner.model": "paper", "tuner.estimator": "paper"}


def first_held(rows, target):
    """The row (time_s, iteration, objective) of the first of two in a row that hold the target, or None."""
    for row, after in zip(rows, rows[1:]):
        if row[2] <= target and after[2] <= target:
            return row
    return None


def thinned(rows):
    if len(rows) <= CURVE_POINTS:
        return rows
    step = (len(rows) - 1) / (CURVE_POINTS - 1)
    return [rows[round(i * step)] for i in range(CURVE_POINTS)]


def first_at(rows, loss):
    """When the objective was first at most `loss`, or None."""
    return next((row[0] for row in rows if row[2] <= loss), None)


def read_store(path, cell):
    """What the run store knows beyond the run's JSON."""
    target = cell.target
    with sqlite3.connect(path) as store:
        rows = store.execute("SELECT time_s, iteration, objective FROM progress WHERE objective IS NOT NULL "
                             "ORDER BY time_s, iteration").fetchall()
        costs = store.execute("SELECT kind, method, lost_s, duration_s FROM reconfiguration ORDER BY ordinal").fetchall()
        tried = store.execute("SELECT count(DISTINCT setting) FROM \"window\"").fetchone()[0]
        held = first_held(rows, target)
        eta = paper_eta.read(store, held)
    levels = [0.0] + [first_at(rows, loss) for loss in cell.levels()[1:]]
    if held is not None:
        rows = [row for row in rows if row[0] <= held[0]]
    return {"held": held, "curve": thinned([[round(t, 5), i, round(loss, 6)] for t, i, loss in rows]), "costs": costs,
            "tried": tried, "levels": levels, "eta": eta}


class Bench:
    """One cell: its job files, its settings, the runs that are done."""

    def __init__(self, cell, data, options, ledger):
        self.cell, self.options, self.ledger = cell, options, ledger
        self.scratch = tempfile.mkdtemp(prefix="trimtab-paper-")
        self.files = cells.write_job(cell, data, self.scratch)
        self.memories = os.path.splitext(ledger.path)[0] + "-memories"
        os.makedirs(self.memories, exist_ok=True)
        self.lock = threading.Lock()
        rng = random.Random(selftune.DRAW_SEED)
        space = selftune.search_space({}, self.files)
        self.settings = [selftune.draw(space, rng) for _ in range(options.settings)]

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    # ---- one run -------------------------------------------------------------------------------------------------------

    def once(self, key, kind, seed, sets, cap=None, setting=None, memory=None, cold=False):
        """Runs the job unless the ledger has it. A run that did not arrive within `cap` seconds has none (null). memory: its
        repository, which a cold run only writes."""
        if key in self.ledger.rows:
            return
        sets = {"seed": seed, **sets, **runs.setting_keys(setting or {})}
        if cap is not None:
            sets["stop.max_time"] = f"{cap:.6f}s"
        directory = tempfile.mkdtemp(dir=self.scratch)
        result = runs.run(self.files, {**sets, "repository": memory or "off"}, directory, timeout=3600, cold=cold)
        seen = read_store(os.path.join(result["run_dir"], "run.db"), self.cell)
        held = seen["held"]
        shutil.rmtree(directory)
        reached = held is not None and (cap is None or held[0] <= cap)
        row = {"key": key, "kind": kind, "seed": seed, "cap": cap, "seconds": held[0] if reached else None,
               "iterations": held[1] if reached else result["iterations"], "tried": seen["tried"], "curve": seen["curve"],
               "levels": seen["levels"], "eta": seen["eta"], "costs": seen["costs"] if kind in ("tuned", "warm", "paper") else None}
        for name in ("status", "stop_reason", "train_seconds", "wall_seconds", "generations", "reconfigure_seconds",
                     "explore_seconds", "setting"):
            row[name] = result.get(name)
        row["merged"] = result["setting"].get("push_aggregation", 1)
        row["staleness"] = result["counters"]["staleness_mean"]
        with self.lock:
            self.ledger.add(row)
            what = (f"{row['seconds']:8.2f} s, {row['iterations']:7d} iterations" if reached
                    else f"not reached in {row['train_seconds']:.1f} s ({row['status']})")
            say(f"[{self.cell.name} {len(self.ledger.rows)}] {key:16} {what}, wall {row['wall_seconds']:.1f} s")

    def together(self, tasks):
        """Does the tasks, options.jobs at a time, in their order."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            futures = [pool.submit(task) for task in tasks]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    # ---- fixed settings ------------------------------------------------------------------------------------------------

    def fixed(self, index, seed):
        self.once(f"fixed:{index}:{seed}", "fixed", seed, UNTUNED, self.cap(), self.settings[index])

    def default(self, seed):
        self.once(f"default:{seed}", "default", seed, UNTUNED, self.limit())

    # ---- tuned jobs ----------------------------------------------------------------------------------------------------

    def memory_of(self, seed):
        return os.path.join(self.memories, f"{seed}.db")

    def tuned(self, seed):
        """Cold; what it learned is kept."""
        key, path = f"tuned:{seed}", self.memory_of(seed)
        if key not in self.ledger.rows and os.path.exists(path):
            os.remove(path)
        self.once(key, "tuned", seed, TUNED, self.cap(), memory=path, cold=True)

    def warm(self, seed, memory_seed):
        """With what the cold run of another seed has left. It leaves that as it was."""
        key = f"warm:{seed}"
        if key in self.ledger.rows:
            return
        if not os.path.exists(self.memory_of(memory_seed)):
            raise runs.RunFailed(f"{self.memory_of(memory_seed)} is missing: remove {self.ledger.path} and begin anew")
        copy = os.path.join(self.scratch, f"memory-{seed}.db")
        shutil.copy(self.memory_of(memory_seed), copy)
        self.once(key, "warm", seed, TUNED, self.cap(), memory=copy)

    def limit(self):
        return self.options.limit

    def fastest(self):
        """The least time on the first selection seed, of those that are done."""
        times = [row["seconds"] for row in list(self.ledger.rows.values())
                 if row["kind"] in ("fixed", "default") and row["seed"] == SELECTION_SEEDS[0] and row["seconds"] is not None]
        return min(times, default=math.inf)

    def cap(self):
        """What is known of the cap: it only falls while settings are tried, so that no run is cut off too soon."""
        cap = CAP * self.fastest()
        limit = self.limit()
        if limit is not None:
            cap = min(cap, limit)
        return cap if math.isfinite(cap) else None

    def clipped(self, key):
        """(time, whether it was capped) of a run; a capped one counts as the cap."""
        cap = self.cap()
        seconds = self.ledger.rows[key]["seconds"]
        if seconds is None or seconds > cap:
            return cap, True
        return seconds, False

    def first_pass(self):
        return [self.clipped(f"fixed:{i}:{SELECTION_SEEDS[0]}") for i in range(len(self.settings))]

    def top(self):
        """The fastest settings of the first pass that arrived, the fastest first."""
        times = sorted((time, i) for i, (time, capped) in enumerate(self.first_pass()) if not capped)
        return [i for _, i in times[:min(TOP, len(times))]]

    def best(self):
        """The setting with the least mean over the selection seeds."""
        def mean(index):
            return sum(self.clipped(f"fixed:{index}:{seed}")[0] for seed in SELECTION_SEEDS)
        return min(self.top(), key=mean)

    # ---- the whole of it -----------------------------------------------------------------------------------------------

    @staticmethod
    def selection_seeds():
        return SELECTION_SEEDS

    def fresh_seeds(self):
        return range(FRESH_SEED, FRESH_SEED + self.options.seeds)

    def select(self):
        self.default(SELECTION_SEEDS[0])
        if self.ledger.rows[f"default:{SELECTION_SEEDS[0]}"]["seconds"] is None:
            raise runs.RunFailed(f"{self.cell.name}: the default setting does not reach {self.cell.target}")
        self.together([lambda i=i: self.fixed(i, SELECTION_SEEDS[0]) for i in range(len(self.settings))])
        self.together([lambda i=i, s=s: self.fixed(i, s) for s in SELECTION_SEEDS[1:] for i in self.top()])

    def compare(self):
        best, seeds, tasks = self.best(), list(self.fresh_seeds()), []
        for seed in seeds:
            tasks += [lambda s=seed: self.tuned(s), lambda s=seed: self.fixed(best, s), lambda s=seed: self.default(s)]
        if len(seeds) == 1:
            tasks.append(lambda: self.tuned(MEMORY_SEED))
        self.together(tasks)
        remembered = seeds[-1:] + seeds[:-1] if len(seeds) > 1 else [MEMORY_SEED]
        self.together([lambda s=s, m=m: self.warm(s, m) for s, m in zip(seeds, remembered)])
        self.together([lambda s=s: self.once(f"paper:{s}", "paper", s, PAPER, self.cap()) for s in seeds])

    def oracle(self):
        """Settings that arrived on the first seed, on the others, too: what the estimators' choices are judged by."""
        arrived = [i for i, (_, capped) in enumerate(self.first_pass()) if not capped]
        self.together([lambda i=i, s=s: self.fixed(i, s) for i in arrived for s in SELECTION_SEEDS[1:]])

    def run(self):
        self.select()
        self.compare()
        paper_moves.measure(self)
        self.oracle()
        paper_rank.measure(self)
