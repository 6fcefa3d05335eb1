"""bench/run selftune --warm: what the memory of earlier runs is worth on configs/clicklog.yaml.

    selftune.py --warm [--seeds N] [--results FILE] [--quick]

Compared is the time from the start of a tuned job until it first enters a good setting, of
  cold   the job from a cold start, for every seed
  warm   the job with the repository that the cold runs of the seeds before have left, and one of yet another seed,
         `teach`: data and their order differ from all of them
Both take turns, the one that goes first changing from seed to seed. A setting is good when its own time to the loss,
fixed, untuned and at seed 1, is within 10 % of the best of all that are measured so: the settings in which the runs
ended, the best of plain `bench/run selftune` of this program if it was run, and then, for each run and in the order in
which it entered them, its settings until a good one is found. Settings that the run itself measured at more than 1.6
times the seconds per iteration of its last one are not good and not measured.
The machine is not as fast at all times: one setting, the reference, is run again after every three others, and what
counts of a fixed run is its ratio to the last run of the reference before it. Fixed runs are cut off at 1.3 times the best
ratio so far, and repeated where one run cannot tell (within 0.95 to 1.3 of the best).
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
CUT = 1.3
REFERENCE_EVERY = 3  # fixed runs of others between two of the reference
UNSURE = (0.95, 1.3)
REPEATS = 3  # of a fixed setting, where one run cannot tell
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
        self.reference_setting = None  # the first that find_best wants
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

    # ---- fixed runs ----

    def fixed_rows(self):
        return [row for row in self.ledger.rows.values() if row["kind"] == "fixed"]

    def ratios(self, setting):
        """Times of the fixed runs of a setting so far, over the reference's; infinite where it did not get there."""
        return [math.inf if row["seconds"] is None else row["seconds"] / row["reference"] for row in self.fixed_rows()
                if row["name"] == name_of(setting)]

    def middle(self, setting):
        ratios = self.ratios(setting)
        return runs.quartiles(ratios)[1] if ratios else math.inf

    def measured(self):
        return [json.loads(name) for name in {row["name"] for row in self.fixed_rows()}]

    def best(self):
        return min((self.middle(setting) for setting in self.measured()), default=math.inf)

    def run_fixed(self, setting, cut=None):
        limit = {} if cut is None else {"stop.max_time": f"{cut:.3f}s"}
        return runs.run(selftune.CONFIG, {**self.base, **selftune.UNTUNED, "tuner.compare": "off", "seed": 1,
                                          **runs.setting_keys(setting), **limit}, timeout=1800)

    def reference(self):
        """Seconds of the reference as of now; runs it when it is its turn. The first setting asked for is it."""
        rows = list(self.ledger.rows.values())
        past = [i for i, row in enumerate(rows) if row["kind"] == "reference"]
        if past and len(rows) - past[-1] <= REFERENCE_EVERY:
            return rows[past[-1]]["seconds"]
        setting = self.reference_setting
        result = self.run_fixed(setting)
        if result["status"] != "converged":
            raise runs.RunFailed(f"the reference setting does not reach the loss: {name_of(setting)}")
        self.ledger.add({"key": f"reference:{len(past)}", "kind": "reference", "name": name_of(setting),
                         "others": result["others"], "seconds": result["train_seconds"]})
        say(f"[{len(self.ledger.rows)}] reference {result['train_seconds']:6.2f} s")
        return result["train_seconds"]

    def fixed(self, setting):
        reference, best = self.reference(), self.best()
        cut = CUT * reference * (best if math.isfinite(best) else 4)
        result = self.run_fixed(setting, cut)
        reached = result["status"] == "converged"
        name, number = name_of(setting), len(self.ratios(setting))
        self.ledger.add({"key": f"fixed:{name}:{number}", "kind": "fixed", "name": name, "others": result["others"],
                         "seconds": result["train_seconds"] if reached else None, "cut": cut, "reference": reference})
        ratio = f"{result['train_seconds'] / reference:.2f}" if reached else f"more than {cut / reference:.2f}"
        say(f"[{len(self.ledger.rows)}] fixed    {ratio} x the reference   best {self.best():.2f}   {name}")

    def is_good(self, setting):
        """Whether its time is within 10 % of the best; runs it as often as it takes to tell, at most REPEATS times."""
        while True:
            ratios, best = self.ratios(setting), self.best()
            if ratios:
                ratio = self.middle(setting) / best if math.isfinite(best) else math.inf
                if len(ratios) >= REPEATS or not UNSURE[0] <= ratio <= UNSURE[1]:
                    return ratio <= GOOD
            self.fixed(setting)

    def find_best(self):
        """Fixed times of where the runs ended, and of the best of the plain bench, so that there is a best."""
        wanted = self.plain_best()
        for key in self.keys("cold") + self.keys("warm"):
            setting = self.visits(key)[1]
            if setting not in wanted:
                wanted.append(setting)
        self.reference_setting = wanted[0]
        for setting in wanted:
            if not self.ratios(setting):
                self.fixed(setting)
        for setting in wanted:
            self.is_good(setting)

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
        """A later fixed run may beat the best and make an earlier one not good: until nothing changes any more."""
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
