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
A machine that others use is faster at one minute than at another, by half and more, while the passes over the data that a
setting needs to the loss differ by some hundredths from run to run. So the time is taken as their product: passes from one
run to the loss, and seconds a pass from short runs, each beside one of the reference, a setting that stays the same, the
one that goes first changing; what counts is the median ratio of these pairs. The settings that look best are measured
with fresh pairs before they are called so: the least of many figures is too good to be true.
A run that never enters a good setting counts with its whole time when it is cold, and as infinitely slow when it is warm.

Every finished run is appended to FILE (bench/results/selftune-warm.jsonl); started again, the bench goes on where it
stopped. --quick: a tenth of the data, 2 seeds: whether the bench works, nothing else.
"""
import argparse
import json
import math
import os
import shutil
import signal
import sqlite3

import selftune
import trimtab_runs as runs  # beside this file
from trimtab_runs import say

BAR = 0.5  # warm / cold, medians
GOOD = 1.10
SCREEN = 1.6
PAIRS = 8  # of short runs of a setting and of the reference
SHORT_S = 1.5  # of training
HOPELESS = {2: 1.6, 4: 1.3}  # after so many pairs, a setting with more than this ratio is left at that
FRESH = 3  # settings that look best and are measured anew
CUT = 3.0  # a run to the loss ends after so many passes of the reference's
TEACH_SEED = 1001
TUNED = {"tuner.enabled": "on", "tuner.compare": "off"}


def name_of(setting):
    """A setting as the key of its fixed runs."""
    return json.dumps(setting, sort_keys=True)


class Visit:
    """One setting a run was in: when it came into force, its values as --set takes them, whether it may be good."""

    def __init__(self, start_s, setting, slow):
        self.start_s, self.setting, self.slow = start_s, setting, slow


def visits_of(run_db):
    """The settings a run entered, in order; from its run store."""
    with sqlite3.connect(f"file:{run_db}?mode=ro", uri=True) as db:
        knobs = {ordinal: (knob, kind, (names or "").split(",")) for ordinal, knob, kind, names, reason, fixed in
                 db.execute("SELECT ordinal, id, kind, value_names, reason, fixed FROM knob") if not fixed}
        settings = {}
        for setting, ordinal, value in db.execute("SELECT setting, knob, value FROM setting_value"):
            if ordinal in knobs:
                knob, kind, names = knobs[ordinal]
                settings.setdefault(setting, {})[knob] = (
                    names[int(value)] if kind == "enum" else ("off", "on")[int(value)] if kind == "bool"
                    else int(value) if kind == "int" else value)
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
        visits.append(Visit(start_s, settings[setting], slow))
    return visits, settings[last]


class Bench:
    def __init__(self, options):
        self.options = options
        self.base = dict(selftune.QUICK) if options.quick else {}
        self.stem = os.path.splitext(options.results)[0]
        self.ledger = selftune.Ledger(options.results, selftune.fingerprint_of(["warm, by ratio", self.base]))
        if not self.ledger.rows:
            shutil.rmtree(self.stem + "-runs", ignore_errors=True)
        self.reference = None  # the first setting that find_best wants
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
        for name in ("status", "train_seconds", "epochs", "generations", "explore_seconds", "setting", "start_setting",
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
        return visits_of(os.path.join(self.runs_dir, self.ledger.rows[key]["run"], "run.db"))

    # ---- settings on their own ----

    def run_fixed(self, setting, limit, seed=1):
        return runs.run(selftune.CONFIG, {**self.base, **selftune.UNTUNED, "tuner.compare": "off", "seed": seed,
                                          **runs.setting_keys(setting), **limit}, timeout=1800)

    def passes(self, setting):
        """Passes over the data to the loss; infinite when it does not get there."""
        key = f"whole:{name_of(setting)}"
        if key not in self.ledger.rows:
            is_reference = setting == self.reference
            limit = {} if is_reference else {"stop.max_epochs": f"{CUT * self.passes(self.reference):.3f}"}
            result = self.run_fixed(setting, limit)
            reached = result["status"] == "converged"
            if is_reference and not reached:
                raise runs.RunFailed(f"the reference does not reach the loss: {name_of(setting)}")
            self.ledger.add({"key": key, "kind": "whole", "others": result["others"],
                             "epochs": result["epochs"] if reached else None})
        epochs = self.ledger.rows[key]["epochs"]
        return math.inf if epochs is None else epochs

    def pairs(self, setting, kind="pair"):
        """Seconds a pass over the reference's, of each pair so far."""
        prefix = f"{kind}:{name_of(setting)}:"
        return [row["ratio"] for key, row in self.ledger.rows.items() if key.startswith(prefix)]

    def pair(self, setting, kind):
        number = len(self.pairs(setting, kind))
        limit, speed, others = {"stop.max_time": f"{SHORT_S}s"}, {}, []
        order = [("setting", setting), ("reference", self.reference)]
        for which, one in order if number % 2 else order[::-1]:
            result = self.run_fixed(one, limit, seed=1 + number)
            speed[which] = result["examples_per_second"]
            others.append(result["others"])
        self.ledger.add({"key": f"{kind}:{name_of(setting)}:{number}", "kind": kind, "others": max(others),
                         "ratio": speed["reference"] / speed["setting"]})

    def ratio(self, setting, kind="pair"):
        """Its time to the loss over the reference's."""
        if setting == self.reference:
            return 1.0
        while True:
            ratios = self.pairs(setting, kind)
            middle = runs.quartiles(ratios)[1] if ratios else math.nan
            if len(ratios) >= PAIRS or middle > HOPELESS.get(len(ratios), math.inf):
                break
            self.pair(setting, kind)
        if len(ratios) < PAIRS:
            return middle
        known = f"whole:{name_of(setting)}" in self.ledger.rows
        found = middle * self.passes(setting) / self.passes(self.reference)
        if not known:
            say(f"[{len(self.ledger.rows)}] {found:5.2f} x the reference's time, {middle:.2f} x its seconds a pass   "
                f"{name_of(setting)}")
        return found

    def measured(self):
        """Settings that were measured on their own, best first."""
        names = {key.split(":", 1)[1] for key, row in self.ledger.rows.items() if row["kind"] == "whole"}
        return sorted((json.loads(name) for name in names), key=self.ratio)

    def best(self):
        """Of those that look best, by fresh pairs."""
        return min(1.0 if one == self.reference else self.ratio(one, "fresh") for one in self.measured()[:FRESH])

    def is_good(self, setting):
        return self.ratio(setting) <= GOOD * self.best()

    def find_best(self):
        """Fixed times of where the runs ended, and of the best of the plain bench, so that there is a best."""
        wanted = self.plain_best()
        for key in self.keys("cold") + self.keys("warm"):
            setting = self.visits(key)[1]
            if setting not in wanted:
                wanted.append(setting)
        self.reference = wanted[0]
        self.passes(self.reference)
        for setting in wanted:
            self.ratio(setting)

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

    def first_good(self, key):
        """When the run first entered a good setting; None: it never did."""
        for visit in self.visits(key)[0]:
            if not visit.slow and self.is_good(visit.setting):
                return visit.start_s
        return None

    def all_first_good(self):
        """A later setting may beat the best and make an earlier one not good: until nothing changes any more."""
        while True:
            best = self.best()
            found = {key: self.first_good(key) for kind in ("warm", "cold") for key in self.keys(kind)}
            if self.best() == best:
                return found


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
                        never=sum(found[key] is None for key in bench.keys(kind)), best_over_reference=bench.best())
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
        f"({bench.best():.2f} x the reference)",
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
