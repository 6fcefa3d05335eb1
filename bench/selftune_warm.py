"""bench/run selftune --warm: what the memory of earlier runs is worth on configs/clicklog.yaml.

    selftune.py --warm [--seeds N] [--results FILE] [--quick]

Compared is the time from the start of a tuned job until it first enters a good setting, of
  cold   the job from a cold start, for every seed
  warm   the job with the repository that the cold runs of the seeds before have left, and one of yet another seed,
         `teach`: data and their order differ from all of them
Both take turns, the one that goes first changing from seed to seed. A setting is good when its own time to the loss,
fixed and untuned, is within 10 % of the best of all that are measured so: the settings in which the runs ended, the best
of plain `bench/run selftune` of this program if it was run, and then, for each run and in the order in which it entered
them, its settings until a good one is found. Settings that the run itself measured at more than 1.6 times the seconds per
iteration of its last one are not good and not measured.
A machine that others use is faster at one minute than at another, by half and more, and one process is faster than the
next, while the passes over the data that a setting needs to the loss differ by some hundredths from run to run. So a
setting's time is the product of its passes, from one run of its own to the loss, and of its seconds an iteration, from
rounds: untuned jobs that a script moves through all settings in question in random order, half a pass over the data in
each, the time of moving left out. What counts is the median over 20 rounds of its seconds over those of the settings in
which the tuned runs ended, which are in every round. The best is chosen by every other round and timed by the rest: the
least of many figures is too good to be true.
A run that never enters a good setting counts with its whole time when it is cold, and as infinitely slow when it is warm.

Every finished run is appended to FILE (bench/results/selftune-warm.jsonl); started again, the bench goes on where it
stopped. --quick: a tenth of the data, 2 seeds: whether the bench works, nothing else.
"""
import argparse
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import statistics
import tempfile

import selftune
import trimtab_runs as runs  # beside this file
from trimtab_runs import say

BAR = 0.5  # warm / cold, medians
GOOD = 1.10
SCREEN = 1.6
STRETCH = 0.5  # of a pass over the data, in each setting and round
ROUGH, FULL = 4, 20  # rounds until a setting may be called too slow, until it may be called good
MARGIN = 1.2  # more than so much above good after ROUGH rounds: too slow
JOB_ROUNDS = 4  # of one job
WAVE = 6  # settings of each run that are measured at a time
TEACH_SEED = 1001
TUNED = {"tuner.enabled": "on", "tuner.compare": "off"}


def name_of(setting):
    """A setting as the key of its fixed runs."""
    return json.dumps(setting, sort_keys=True)


class Visit:
    """One setting a run was in: when it came into force, its name (name_of), whether it cannot be good."""

    def __init__(self, start_s, name, slow):
        self.start_s, self.name, self.slow = start_s, name, slow


def visits_of(run_db):
    """The settings a run entered, in order; from its run store."""
    with sqlite3.connect(f"file:{run_db}?mode=ro", uri=True) as db:
        settings = runs.settings_of(db)
        times = dict(db.execute("SELECT setting, sum(kept * seconds_per_iteration) / sum(kept) FROM window "
                                "WHERE seconds_per_iteration IS NOT NULL AND kept > 0 GROUP BY setting"))
        last, = db.execute("SELECT final_setting FROM run").fetchone()
        entered = [(0.0, 0)] + db.execute("SELECT start_s, to_setting FROM reconfiguration ORDER BY start_s").fetchall()
    limit = SCREEN * times.get(last, math.inf)
    seen, visits = set(), []
    for start_s, setting in entered:
        if setting in seen or setting not in settings:
            continue
        seen.add(setting)
        # Never measured: gone before a window was full.
        slow = times.get(setting, math.inf) > limit and math.isfinite(limit)
        visits.append(Visit(start_s, name_of(settings[setting]), slow))
    return visits, settings[last]


def paces_of(run_db, steps, stretch):
    """{step of the script: seconds an iteration}, without the time in which something moved."""
    with sqlite3.connect(f"file:{run_db}?mode=ro", uri=True) as db:
        # Step n, from 0, is setting n + 1: every step counts as one of its own.
        moves = {setting - 1: row for setting, *row in db.execute(
            "SELECT to_setting, start_s, duration_s, iterations_during FROM reconfiguration")}
    paces = {}
    for step in range(steps - 1):
        if step in moves and step + 1 in moves:
            (start_s, duration_s, during), (end_s, _, _) = moves[step], moves[step + 1]
            if during < stretch / 2:
                paces[step] = (end_s - start_s - duration_s) / (stretch - during)
    return paces


class Bench:
    def __init__(self, options):
        self.options = options
        self.base = dict(selftune.QUICK) if options.quick else {}
        self.stem = os.path.splitext(options.results)[0]
        self.ledger = selftune.Ledger(options.results, selftune.fingerprint_of(["warm, by rounds", self.base]))
        if not self.ledger.rows:
            shutil.rmtree(self.stem + "-runs", ignore_errors=True)
        self.anchors = []  # names of the settings in which the runs ended
        self.seen = {}  # visits of a run
        self.runs_dir = self.stem + "-runs"
        os.makedirs(self.runs_dir, exist_ok=True)

    # ---- tuned runs ----

    def lesson(self, key):
        return os.path.join(self.runs_dir, f"lesson-{key}.db")

    def tuned(self, key, kind, seed, repository, cold=False):
        if key in self.ledger.rows:
            return
        limit = {"stop.max_time": "30s"} if self.options.quick else {}
        result = runs.run(selftune.CONFIG, {**self.base, **TUNED, **limit, "seed": seed}, self.runs_dir, timeout=1800,
                          repository=repository, cold=cold)
        row = {"key": key, "kind": kind, "seed": seed, "run": os.path.basename(result["run_dir"])}
        for name in ("status", "train_seconds", "epochs", "iterations", "generations", "explore_seconds", "setting", "start_setting",
                     "started_from", "others"):
            row[name] = result[name]
        if cold and row["started_from"]:
            raise runs.RunFailed(f"{key} began from {row['started_from']}: that is no cold start")
        self.ledger.add(row)
        say(f"[{len(self.ledger.rows)}] {key:8} {row['train_seconds']:7.2f} s, {row['generations']} generations, "
            f"others used {row['others']:.0%} of the machine"
            + ("" if cold or row["started_from"] else "; nothing was there to begin from, so it began cold"))

    def cold(self, key, seed):
        self.tuned(key, "cold", seed, self.lesson("all"), cold=True)

    def warm(self, key, seed):
        self.tuned(key, "warm", seed, self.lesson(key))

    def tuned_runs(self):
        self.cold("teach", TEACH_SEED)
        for seed in range(1, self.options.seeds + 1):
            cold, warm = f"cold:{seed}", f"warm:{seed}"
            if cold not in self.ledger.rows and warm not in self.ledger.rows:
                # Before the cold run of this seed adds its own lesson, whoever goes first.
                shutil.copy(self.lesson("all"), self.lesson(warm))
            turns = [lambda: self.cold(cold, seed), lambda: self.warm(warm, seed)]
            for turn in turns if seed % 2 else turns[::-1]:
                turn()

    def keys(self, kind):
        return [f"{kind}:{seed}" for seed in range(1, self.options.seeds + 1)]

    def visits(self, key):
        if key not in self.seen:
            self.seen[key] = visits_of(os.path.join(self.runs_dir, self.ledger.rows[key]["run"], "run.db"))
        return self.seen[key]

    # ---- settings on their own ----

    def play(self, names, rounds):
        """One job that goes through the settings and the anchors, so many rounds; a row of the ledger for each."""
        number = sum(row["kind"] == "round" for row in self.ledger.rows.values())
        order = random.Random(number)
        names = sorted(set(names) | set(self.anchors))
        stretch = max(round(STRETCH * self.pass_iterations()), 1)
        visits = []
        for _ in range(rounds):
            visits += order.sample(names, len(names))
        visits.append(order.choice(names))  # ends the last that counts
        steps = [f"{{iteration: {stretch * (i + 1)}, "
                 + ", ".join(f"{knob}: {value}" for knob, value in json.loads(name).items()) + "}"
                 for i, name in enumerate(visits)]
        end = stretch * (len(visits) + 2) / self.pass_iterations()
        with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
            script = os.path.join(scratch, "rounds.yaml")
            with open(script, "w", encoding="utf-8") as file:
                file.write("tuner: {script: [" + ",\n".join(steps) + "]}\n")
            limits = {"stop.loss": "null", "stop.max_time": "1h", "stop.max_epochs": f"{end:.6f}"}
            result = runs.run([selftune.CONFIG, script], {**self.base, **selftune.UNTUNED, "tuner.compare": "off",
                                                          "seed": 1 + number, **limits}, scratch, timeout=3600)
            paces = paces_of(os.path.join(result["run_dir"], "run.db"), len(visits), stretch)
        for first in range(0, rounds * len(names), len(names)):
            seconds = {visits[i]: paces[i] for i in range(first, first + len(names)) if i in paces}
            self.ledger.add({"key": f"round:{number}", "kind": "round", "others": result["others"], "seconds": seconds})
            number += 1

    def pass_iterations(self):
        row = self.ledger.rows["teach"]
        return row["iterations"] / row["epochs"]

    def ratios(self, name):
        """Its seconds an iteration over the anchors' in each round it was in."""
        return [row["seconds"][name] / statistics.median(row["seconds"][anchor] for anchor in self.anchors
                                                         if anchor in row["seconds"])
                for row in self.ledger.rows.values() if row["kind"] == "round" and name in row["seconds"]]

    def pace(self, name):
        return statistics.median(self.ratios(name))

    def play_until(self, names, rounds):
        while True:
            missing = [name for name in names if len(self.ratios(name)) < rounds]
            if not missing:
                return
            self.play(missing, JOB_ROUNDS)
            say(f"[{len(self.ledger.rows)}] {len(missing)} settings measured in {JOB_ROUNDS} more rounds")

    def passes(self, name):
        """Passes over the data to the loss, infinite: too many to be good; None: not known yet."""
        row = self.ledger.rows.get(f"whole:{name}")
        return None if row is None else math.inf if row["epochs"] is None else row["epochs"]

    def find_passes(self, name, limit):
        limits = {} if math.isinf(limit) else {"stop.max_epochs": f"{limit:.3f}"}
        result = runs.run(selftune.CONFIG, {**self.base, **selftune.UNTUNED, "tuner.compare": "off", "seed": 1,
                                            **runs.setting_keys(json.loads(name)), **limits}, timeout=1800)
        reached = result["status"] == "converged"
        if not reached and math.isinf(limit):
            raise runs.RunFailed(f"a setting in which a run ended does not reach the loss: {name}")
        self.ledger.add({"key": f"whole:{name}", "kind": "whole", "others": result["others"],
                         "epochs": result["epochs"] if reached else None})
        say(f"[{len(self.ledger.rows)}] {self.pace(name):5.2f} x the anchors' seconds an iteration, "
            + (f"{result['epochs']:.1f} passes" if reached else f"more than {limit:.1f} passes") + f"   {name}")

    def measured(self):
        """Names of the settings whose time to the loss is known."""
        return [name for name in map(lambda key: key.partition(":")[2], self.ledger.rows)
                if self.passes(name) is not None and len(self.ratios(name)) >= FULL]

    def best(self):
        """Time to the loss of the best, in passes at the anchors' seconds an iteration; and its name."""
        names = self.measured()
        chosen = min(names, key=lambda name: statistics.median(self.ratios(name)[::2]) * self.passes(name))
        return statistics.median(self.ratios(chosen)[1::2]) * self.passes(chosen), chosen

    def is_good(self, name, best):
        """None: not known yet."""
        ratios, passes = self.ratios(name), self.passes(name)
        if len(ratios) < ROUGH:
            return None
        limit, least = GOOD * best, min(self.passes(one) for one in self.measured())
        if statistics.median(ratios) * least > limit * (MARGIN if len(ratios) < FULL else 1.0):
            return False  # whatever its passes
        if len(ratios) < FULL or passes is None:
            return None
        return statistics.median(ratios) * passes <= limit

    def find_best(self):
        """The anchors, where the runs ended, and the best of the plain bench, so that there is a best."""
        for key in self.keys("cold") + self.keys("warm"):
            name = name_of(self.visits(key)[1])
            if name not in self.anchors:
                self.anchors.append(name)
        names = self.anchors + [name_of(setting) for setting in self.plain_best()]
        self.play_until(names, FULL)
        for name in names:
            if self.passes(name) is None:
                self.find_passes(name, math.inf)

    def plain_best(self):
        path = os.path.join(os.path.dirname(self.options.results), f"selftune{'-quick' * self.options.quick}.jsonl")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            rows = [row for row in map(selftune.read_line, file) if row is not None]
        reached = sorted((row for row in rows if row.get("kind") == "random" and row.get("seconds") is not None
                          and row.get("fingerprint") == selftune.fingerprint_of(self.base)),
                         key=lambda row: row["seconds"])
        if not reached:
            say(f"{path} is of another program: its best setting is not taken")
        return [selftune.written(row["setting"]) for row in reached[:selftune.BEST]]

    def first_good(self, key, best):
        """(when the run first entered a good setting, None when it never did; settings to be measured before it is known)"""
        unknown = []
        for visit in self.visits(key)[0]:
            good = False if visit.slow else self.is_good(visit.name, best)
            if good and not unknown:
                return visit.start_s, []
            if good or len(unknown) == WAVE:
                break
            if good is None:
                unknown.append(visit.name)
        return None, unknown

    def all_first_good(self):
        """Rough rounds for the settings the runs entered first, more for those that may be good, and their passes: until
        nothing is unknown. A later setting may beat the best and make an earlier one not good."""
        keys = self.keys("warm") + self.keys("cold")
        while True:
            best = self.best()[0]
            found = {key: self.first_good(key, best) for key in keys}
            unknown = sorted(set().union(*(names for _, names in found.values())))
            if not unknown:
                return {key: start_s for key, (start_s, _) in found.items()}
            self.play_until(unknown, ROUGH)
            hopeful = [name for name in unknown if self.is_good(name, best) is None]
            self.play_until(hopeful, FULL)
            for name in hopeful:
                if self.is_good(name, best) is None:
                    self.find_passes(name, 1.05 * GOOD * best / self.pace(name))

def show(bench):
    found = bench.all_first_good()
    row, table = bench.ledger.rows, []
    params = " ".join([selftune.CONFIG] + [f"{key}={value}" for key, value in bench.base.items()])
    times = {"cold": [], "warm": []}
    for kind, never in (("cold", None), ("warm", math.inf)):
        for key in bench.keys(kind):
            at = found[key]
            times[kind].append(at if at is not None else row[key]["train_seconds"] if never is None else never)
            table.append(f"  {key:8} good setting " + (f"after {at:7.2f} s" if at is not None else "never          ")
                         + f"   whole run {row[key]['train_seconds']:7.2f} s")
        runs.print_line("selftune", f"time_to_good/{kind}", params, f"1-{bench.options.seeds}", times[kind], "s",
                        never=sum(found[key] is None for key in bench.keys(kind)), settings=len(bench.measured()))
        runs.print_line("selftune", f"whole/{kind}", params, f"1-{bench.options.seeds}",
                        [row[key]["train_seconds"] for key in bench.keys(kind)], "s")
    middle = {kind: runs.quartiles(times[kind])[1] for kind in times}
    ratio = middle["warm"] / middle["cold"] if middle["cold"] > 0 else math.inf
    passed = ratio <= BAR
    whole = {kind: runs.quartiles([row[key]["train_seconds"] for key in bench.keys(kind)])[1] for kind in times}
    print(json.dumps({"bench": "selftune", "case": "time_to_good warm/cold", "params": params,
                      "seed": f"1-{bench.options.seeds}", "n": bench.options.seeds, "median": runs.finite(ratio),
                      "unit": "ratio", "bar": BAR, "pass": passed}), flush=True)
    say("\n".join([
        f"\nselftune --warm, {params}: seconds until a setting within {GOOD - 1:.0%} of the best "
        f"of {len(bench.measured())} measured, {bench.best()[1]}",
        *table, f"  medians: cold {middle['cold']:.2f} s, warm {middle['warm']:.2f} s: {ratio:.2f} (bar <= {BAR:g})",
        f"  whole runs, medians: cold {whole['cold']:.2f} s, warm {whole['warm']:.2f} s: "
        f"{whole['warm'] / whole['cold']:.2f}"]))
    others = [one["others"] for one in row.values()]
    say(f"  other processes used {runs.quartiles(others)[1]:.0%} of the machine (median of all runs), {max(others):.0%} in"
        " the worst run")
    if bench.options.quick:
        say("  --quick: these figures mean nothing")
    say("PASS" if passed else "FAIL")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run selftune --warm", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, help="seeds of the cold and the warm job (5)")
    parser.add_argument("--results", help="where finished runs are kept (bench/results/selftune-warm.jsonl)")
    parser.add_argument("--quick", action="store_true", help="little data, 2 seeds: a smoke test")
    options = parser.parse_args(arguments)
    options.seeds = options.seeds or (2 if options.quick else 5)
    if options.seeds < 1:
        parser.error("at least 1 seed")
    options.results = os.path.abspath(options.results or os.path.join(
        runs.ROOT, "bench", "results", f"selftune-warm{'-quick' * options.quick}.jsonl"))
    return options


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the job that runs ends too
    runs.need_program()
    os.chdir(runs.ROOT)
    os.makedirs(os.path.dirname(options.results), exist_ok=True)
    runs.keep_program(os.path.splitext(options.results)[0] + "-trimtab")
    bench = Bench(options)
    try:
        bench.tuned_runs()
        bench.find_best()
        show(bench)
    except runs.RunFailed as failure:
        say(f"bench/run selftune --warm: a run failed: {failure}")
        return 1
    except KeyboardInterrupt:
        say(f"\nstopped; the same command goes on after the {len(bench.ledger.rows)} runs in {options.results}")
        return 130
    return 0
