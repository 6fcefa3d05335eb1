#!/usr/bin/python3
"""bench/run selftune: what self-tuning is worth on configs/clicklog.yaml, from a cold start.

    selftune.py [--mode full|paper] [--seeds N] [--settings N] [--results FILE] [--quick]
    selftune.py --warm ...                      what the memory of earlier runs is worth: selftune_warm.py beside this file

Compared is train_seconds, the time until the job's loss is reached, of
  random     settings drawn from the job's search space (uniform on each knob's scale and grid), fixed, one run each, cut
             off at four times the default's time and then counted as that
  reference  the default setting, untuned, once every ten random settings
  best       the three fastest random settings, each run again for every seed; the smallest of their medians counts
  default    the default setting, untuned, for every seed
  tuned      the job as it is, tuned from a cold start, for every seed
  in_place   the default setting without messages (cluster.driver: in_place), for every seed
The last four take turns, so that a machine that drifts hits all alike. A run's seed is the job's (data, their order,
tuner), and seeds need more or fewer epochs: reference and random have seed 1, and average/tuned is average/reference
over tuned/default. tuned/best is the median of the ratios of equal seeds, which ran one after the other; other ratios of
several seeds are of medians, and their quartiles of the runs of equal seeds.

Every finished run is appended to FILE (bench/results/selftune.jsonl); started again, the bench goes on where it
stopped. Another program or job file starts afresh. Run directories of tuned jobs stay beside FILE for trimtab report.
--mode paper: only default, tuned and, in turns with them,
  paper      the job tuned by the paper's tuner and estimator (tuner.model: paper, see docs/paper-mode.md), cut off at four
             times the default's time and then counted as that
with 3 seeds, in about a quarter of an hour; finished runs are kept in bench/results/selftune-paper.jsonl.
--quick: a tenth of the data, 6 settings, 2 seeds, tuned jobs cut off at 30 s: whether the bench works, nothing else.
"""
import argparse
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import trimtab_runs as runs  # noqa: E402  (beside this file)
from trimtab_runs import say  # noqa: E402

CONFIG = "configs/clicklog.yaml"
CUT = 4.0  # a fixed setting is cut off at so many times the default's time
REFERENCE_EVERY = 10  # random settings between two runs of the default
BEST = 3
DRAW_SEED = 20200406
UNTUNED = {"tuner.enabled": "off"}
PAPER = {"tuner.enabled": "on", "tuner.compare": "off", "tuner.model": "paper", "tuner.estimator": "paper"}
QUICK = {"data.rows": 100000, "data.columns": 100000, "stop.loss": 0.27}
BARS = {  # ratio: (bound, whether it bounds from above)
    "tuned/best": (1.15, True),
    "tuned/default": (1.10, True),
    "reconfiguring": (0.05, True),
    "average/default": (1.2, False),
}


# ---- settings --------------------------------------------------------------------------------------------------------

def search_space(sets, config=CONFIG):
    """[(knob, list of its values or (low, high, scale))] of the knobs the job leaves free."""
    job, refused = runs.plan(config, sets)
    if job is None:
        sys.exit(refused)
    kinds, space, wide = runs.knob_kinds(), [], {}
    for knob in job["knobs"]:
        if knob["fixed"] or knob["absent"]:
            continue
        kind = kinds[knob["id"]]
        if kind["kind"] == "bool":
            space.append((knob["id"], ["off", "on"]))
        elif kind["kind"] == "enum":
            names = kind["values"]
            space.append((knob["id"], names[names.index(knob["min"]):names.index(knob["max"]) + 1]))
        else:
            low, high = runs.number_of(knob["min"]), runs.number_of(knob["max"])
            space.append((knob["id"], (low, high, knob["scale"], kind["kind"])))
            if knob["scale"] == "log2" and 1 <= low and 3 * low < high:
                wide[knob["id"]] = 3 * low
    powers = powers_of_two(wide, sets, config)
    return [(knob, [int(values[0]) << i for i in range(int(math.log2(values[1] / values[0])) + 1)])
            if knob in powers else (knob, values) for knob, values in space]


def powers_of_two(tripled, sets, config):
    """Those of the knobs {id: three times its least value} that take powers of two only: three times a value is none."""
    _, refused = runs.plan(config, {**sets, **runs.setting_keys(tripled)})
    return {knob for knob in tripled if re.search(rf"\b{knob} must be a power of two", refused)}


def draw(space, rng):
    setting = {}
    for knob, values in space:
        if isinstance(values, list):
            setting[knob] = rng.choice(values)
            continue
        low, high, scale, kind = values
        if scale == "log2":
            shift = 1 if low < 1 else 0  # zero is the neighbour of one
            value = math.exp(rng.uniform(math.log(low + shift), math.log(high + shift))) - shift
        elif kind == "int":
            value = rng.randint(low, high)
        else:
            value = rng.uniform(low, high)
        setting[knob] = min(max(round(value), low), high) if kind == "int" else value
    return setting


# ---- runs that are done ----------------------------------------------------------------------------------------------

class Ledger:
    """The runs done so far, one JSON line each in a file; only lines with this fingerprint count."""

    def __init__(self, path, fingerprint):
        self.path, self.fingerprint, self.rows = path, fingerprint, {}
        lines = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                lines = [line for line in map(read_line, file) if line is not None]
        kept = [line for line in lines if line["fingerprint"] == fingerprint]
        if len(kept) < len(lines):
            os.replace(path, path + ".old")
            say(f"program or job changed since {len(lines) - len(kept)} of the runs in {path}: starting afresh "
                f"(they are in {path}.old now)")
            kept = []
        elif kept:
            say(f"going on after {len(kept)} runs in {path}")
        self.rows = {line["key"]: line for line in kept}

    def add(self, row):
        row["fingerprint"] = self.fingerprint
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows[row["key"]] = row

    def seconds(self, kind):
        return [row["seconds"] for row in self.rows.values() if row["kind"] == kind]


def read_line(line):
    """The object of a line; None for the half-written last line of a bench that was killed."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def fingerprint_of(extra):
    digest = hashlib.sha256(json.dumps([DRAW_SEED, CUT, extra], sort_keys=True).encode())
    for path in (runs.PROGRAM, CONFIG):
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


# ---- the protocol ----------------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, options):
        self.options = options
        self.base = dict(QUICK) if options.quick else {}
        self.ledger = Ledger(options.results, fingerprint_of(self.base))
        self.tuned_dir = os.path.splitext(options.results)[0] + "-runs"
        if options.mode == "paper":
            self.total = 1 + 3 * options.seeds
            return
        self.total = options.settings + -(-options.settings // REFERENCE_EVERY) + (3 + BEST) * options.seeds

    def once(self, key, kind, seed, sets, cut=None, setting=None, runs_dir=None):
        """Runs the job unless the ledger has it. A run that ends without its loss took for ever (seconds: null)."""
        if key in self.ledger.rows:
            return
        sets = {**self.base, "seed": seed, **sets, **runs.setting_keys(setting or {})}
        if cut is not None:
            sets["stop.max_time"] = f"{cut:.3f}s"
        result = runs.run(CONFIG, sets, runs_dir, timeout=1800)
        reached = result["status"] == "converged" and (cut is None or result["train_seconds"] <= cut)
        row = {"key": key, "kind": kind, "seed": seed, "seconds": result["train_seconds"] if reached else None, "cut": cut}
        for name in ("status", "stop_reason", "train_seconds", "loss", "epochs", "iterations", "generations",
                     "reconfigure_seconds", "explore_seconds", "setting", "others"):
            row[name] = result.get(name)
        row["run"] = os.path.basename(result["run_dir"]) if runs_dir else None
        self.ledger.add(row)
        what = f"{row['seconds']:7.2f} s" if reached else f"not reached in {row['train_seconds']:.1f} s"
        say(f"[{len(self.ledger.rows)}/{self.total}] {key:16} {what}, {row['epochs']:.1f} epochs"
            + (f", others used {row['others']:.0%} of the machine" if row["others"] > 0.05 else ""))

    def cut(self):
        return CUT * runs.quartiles([math.inf if s is None else s for s in self.ledger.seconds("reference")])[1]

    def random_settings(self):
        space = search_space(self.base)
        rng = random.Random(DRAW_SEED)
        for i in range(self.options.settings):
            setting = draw(space, rng)
            if i % REFERENCE_EVERY == 0:
                self.once(f"reference:{i // REFERENCE_EVERY}", "reference", 1, UNTUNED)
            if not math.isfinite(self.cut()):
                sys.exit("the default setting does not reach the loss: see its line in " + self.ledger.path)
            self.once(f"random:{i}", "random", 1, UNTUNED, cut=self.cut(), setting=setting)

    def best_settings(self):
        """The rows of the fastest random settings, the fastest first."""
        rows = [self.ledger.rows[f"random:{i}"] for i in range(self.options.settings)]
        reached = sorted((row for row in rows if row["seconds"] is not None), key=lambda row: row["seconds"])
        return reached[:BEST]

    def taking_turns(self):
        best = self.best_settings()
        for seed in range(1, self.options.seeds + 1):
            turns = [lambda: self.once(f"default:{seed}", "default", seed, UNTUNED),
                     lambda: self.tuned(seed)]
            turns += [lambda row=row: self.once(f"best:{row['key']}:{seed}", "best:" + row["key"], seed, UNTUNED,
                                                cut=self.cut(), setting=written(row["setting"])) for row in best]
            turns += [lambda: self.once(f"in_place:{seed}", "in_place", seed,
                                        {**UNTUNED, "cluster.driver": "in_place"})]
            first = seed % len(turns)  # nobody is always the one after the tuned job
            for turn in turns[first:] + turns[:first]:
                turn()

    def paper_turns(self):
        self.once("reference:0", "reference", 1, UNTUNED)
        if not math.isfinite(self.cut()):
            sys.exit("the default setting does not reach the loss: see its line in " + self.ledger.path)
        for seed in range(1, self.options.seeds + 1):
            turns = [lambda: self.once(f"default:{seed}", "default", seed, UNTUNED), lambda: self.tuned(seed),
                     lambda: self.once(f"paper:{seed}", "paper", seed, PAPER, cut=self.cut(), runs_dir=self.tuned_dir)]
            first = seed % len(turns)
            for turn in turns[first:] + turns[:first]:
                turn()

    def tuned(self, seed):
        limit = {"stop.max_time": "30s"} if self.options.quick else {}
        self.once(f"tuned:{seed}", "tuned", seed, {"tuner.enabled": "on", "tuner.compare": "off", **limit},
                  runs_dir=self.tuned_dir)


def written(setting):
    """A setting of a run's JSON as --set takes it."""
    return {knob: ("off", "on")[value] if isinstance(value, bool) else value for knob, value in setting.items()}


# ---- figures ---------------------------------------------------------------------------------------------------------

def by_seed(one, other):
    """Ratios of the runs of equal seeds; what never got there is infinitely slow."""
    return [a / b if a < math.inf else math.inf for a, b in zip(one, other)]


class Figures:
    def __init__(self, bench):
        self.bench, self.rows = bench, bench.ledger.rows
        self.seeds = range(1, bench.options.seeds + 1)
        extra = " ".join(f"{key}={value}" for key, value in bench.base.items())
        self.params = f"{CONFIG} {extra}".strip()
        references = -(-bench.options.settings // REFERENCE_EVERY)
        self.reference = self.times(f"reference:{i}" for i in range(references))
        self.default = self.times(f"default:{seed}" for seed in self.seeds)
        self.tuned = self.times(f"tuned:{seed}" for seed in self.seeds)
        self.in_place = self.times(f"in_place:{seed}" for seed in self.seeds)
        cut = CUT * runs.quartiles(self.reference)[1]
        self.random = [min(t, cut) for t in self.times(f"random:{i}" for i in range(bench.options.settings))]
        self.cut_off = sum(t >= cut for t in self.random)
        best = [(row["key"], self.times(f"best:{row['key']}:{seed}" for seed in self.seeds))
                for row in bench.best_settings()]
        self.best_key, self.best = min(best, key=lambda one: runs.quartiles(one[1])[1], default=(None, [math.inf]))
        self.table = []

    def times(self, keys):
        rows = [self.rows[key] for key in keys]
        return [math.inf if row["seconds"] is None else row["seconds"] for row in rows]

    def time(self, case, values, **more):
        seed = "1" if case in ("reference", "random") else f"1-{len(values)}"
        runs.print_line("selftune", case, self.params, seed, values, "s", **more)
        low, middle, high = runs.quartiles(values)
        self.table.append(f"  {case:12} n {len(values):2}   median {middle:7.2f} s   p25 {low:7.2f}   p75 {high:7.2f}"
                          + "".join(f"   {key} {value}" for key, value in more.items()))

    def ratio(self, case, value, spread, judged=True, **more):
        """`value` is judged; `spread` are the same ratio by seed."""
        low, _, high = runs.quartiles(spread)
        verdict, passed = "", None
        if judged and case in BARS:
            bound, above = BARS[case]
            passed = bool(value <= bound if above else value >= bound)
            verdict = f"   {'PASS' if passed else 'FAIL'} (bar {'<=' if above else '>='} {bound:g})"
        line = {"bench": "selftune", "case": case, "params": self.params, "seed": f"1-{len(self.seeds)}",
                "n": len(spread), "median": runs.finite(value), "p25": runs.finite(low), "p75": runs.finite(high),
                "unit": "ratio", **more}
        if passed is not None:
            line.update({"bar": BARS[case][0], "pass": passed})
        print(json.dumps(line), flush=True)
        self.table.append(f"  {case:18} {value:7.3f}   p25 {low:7.3f}   p75 {high:7.3f}{verdict}")
        return passed is not False

    def show(self):
        middle = {name: runs.quartiles(getattr(self, name))[1]
                  for name in ("reference", "default", "tuned", "best", "in_place")}
        average = sum(self.random) / len(self.random)
        share = [self.rows[f"tuned:{seed}"]["reconfigure_seconds"] / self.rows[f"tuned:{seed}"]["train_seconds"]
                 for seed in self.seeds]
        explore = [self.rows[f"tuned:{seed}"]["explore_seconds"] / self.rows[f"tuned:{seed}"]["train_seconds"]
                   for seed in self.seeds]
        self.time("reference", self.reference)
        self.time("random", self.random, mean=round(average, 3), cut_off=self.cut_off)
        self.time("default", self.default)
        self.time("tuned", self.tuned)
        self.time("best", self.best, setting=self.best_key)
        self.time("in_place", self.in_place)
        passed = [
            self.ratio("tuned/best", runs.quartiles(by_seed(self.tuned, self.best))[1], by_seed(self.tuned, self.best)),
            self.ratio("tuned/default", middle["tuned"] / middle["default"], by_seed(self.tuned, self.default)),
            self.ratio("reconfiguring", runs.quartiles(share)[1], share),
            self.ratio("average/default", average / middle["reference"], [average / t for t in self.reference]),
        ]
        self.ratio("exploring", runs.quartiles(explore)[1], explore)
        tuned = by_seed(self.tuned, self.default)
        for case, slow in (("average/tuned", average), ("worst/tuned", max(self.random))):
            slow /= middle["reference"]
            self.ratio(case, slow * middle["default"] / middle["tuned"], [slow / t for t in tuned])
        self.ratio("best/default", middle["best"] / middle["default"], by_seed(self.best, self.default))
        self.ratio("in_place/tuned", middle["in_place"] / middle["tuned"], by_seed(self.in_place, self.tuned))
        self.ratio("default/reference", middle["default"] / middle["reference"],
                   [t / middle["reference"] for t in self.default])
        others = [row["others"] for row in self.rows.values()]
        faster = sum(t < middle["tuned"] for t in self.random)
        say("\n".join([f"\nselftune, {self.params}: seconds to the loss", *self.table]))
        say(f"  {faster} of {len(self.random)} random settings were faster than the tuned job; {self.cut_off} were cut off"
            f" at {CUT:g} x the default\n  other processes used {runs.quartiles(others)[1]:.0%} of the machine (median of"
            f" all runs), {max(others):.0%} in the worst run")
        if self.bench.options.quick:
            say("  --quick: these figures mean nothing")
        say("PASS" if all(passed) else "FAIL")


class PaperFigures(Figures):
    """Of --mode paper: no bars, for nothing is promised of the paper's tuner."""

    def __init__(self, bench):  # pylint: disable=super-init-not-called
        self.bench, self.rows = bench, bench.ledger.rows
        self.seeds = range(1, bench.options.seeds + 1)
        extra = " ".join(f"{key}={value}" for key, value in bench.base.items())
        self.params = f"{CONFIG} {extra} mode=paper".replace("  ", " ")
        self.default, self.tuned = (self.times(f"{kind}:{seed}" for seed in self.seeds) for kind in ("default", "tuned"))
        self.cut_off, self.table = 0, []
        self.paper = []
        for seed in self.seeds:
            row = self.rows[f"paper:{seed}"]
            self.cut_off += row["seconds"] is None
            self.paper.append(row["cut"] if row["seconds"] is None else row["seconds"])

    def show(self):
        self.time("default", self.default)
        self.time("tuned", self.tuned)
        self.time("paper", self.paper, cut_off=self.cut_off)
        middle = {name: runs.quartiles(getattr(self, name))[1] for name in ("default", "tuned", "paper")}
        for one, other in (("tuned", "default"), ("paper", "default"), ("paper", "tuned")):
            self.ratio(f"{one}/{other}", middle[one] / middle[other], by_seed(getattr(self, one), getattr(self, other)),
                       judged=False)
        for kind in ("tuned", "paper"):
            rows = [self.rows[f"{kind}:{seed}"] for seed in self.seeds]
            for what in ("reconfigure", "explore"):
                share = [row[f"{what}_seconds"] / row["train_seconds"] for row in rows]
                self.ratio(f"{kind} {what}", runs.quartiles(share)[1], share)
        others = [row["others"] for row in self.rows.values()]
        say("\n".join([f"\nselftune, {self.params}: seconds to the loss", *self.table]))
        say(f"  {self.cut_off} of {len(self.paper)} paper runs were cut off at {CUT:g} x the default (then the ratios are "
            f"at least these)\n  other processes used {runs.quartiles(others)[1]:.0%} of the machine (median of all runs), "
            f"{max(others):.0%} in the worst run")
        if self.bench.options.quick:
            say("  --quick: these figures mean nothing")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run selftune", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mode", choices=("full", "paper"), default="full",
                        help="paper: the paper's tuner beside the default one and the untuned job (a quarter of an hour)")
    parser.add_argument("--seeds", type=int, help="seeds of the tuned job, the default and the best (5; 3 in mode paper)")
    parser.add_argument("--settings", type=int, help="random fixed settings (40)")
    parser.add_argument("--results", help="where finished runs are kept (bench/results/selftune.jsonl)")
    parser.add_argument("--quick", action="store_true", help="little data, few settings: a smoke test")
    parser.add_argument("--warm", action="store_true", help="a bench of its own: see --warm --help")
    options = parser.parse_args(arguments)
    paper = options.mode == "paper"
    options.seeds = options.seeds or (2 if options.quick else 3 if paper else 5)
    options.settings = options.settings or (6 if options.quick else 40)
    if options.seeds < 1 or options.settings < BEST:
        parser.error(f"at least 1 seed and {BEST} settings")
    options.results = os.path.abspath(
        options.results or os.path.join(runs.ROOT, "bench", "results", f"selftune{'-paper' * paper}{'-quick' * options.quick}.jsonl"))
    return options


def main(arguments):
    if "--warm" in arguments:
        import selftune_warm  # it imports this file
        return selftune_warm.main([word for word in arguments if word != "--warm"])
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the job that runs ends too
    runs.need_program()
    os.chdir(runs.ROOT)
    os.makedirs(os.path.dirname(options.results), exist_ok=True)
    runs.keep_program(os.path.splitext(options.results)[0] + "-trimtab")
    bench = Bench(options)
    paper = options.mode == "paper"
    try:
        if paper:
            bench.paper_turns()
        else:
            bench.random_settings()
            bench.taking_turns()
    except runs.RunFailed as failure:
        say(f"bench/run selftune: a run failed: {failure}")
        return 1
    except KeyboardInterrupt:
        say(f"\nstopped; the same command goes on after the {len(bench.ledger.rows)} runs in {options.results}")
        return 130
    (PaperFigures if paper else Figures)(bench).show()
    if options.quick:
        shutil.rmtree(bench.tuned_dir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
