#!/usr/bin/python3
"""bench/run tune: the optimiser at its own game, beside Optuna TPE, NLopt DIRECT and BOBYQA, and a scikit-learn GP-EI.

    tune.py [--seeds N] [--only METHODS] [--problems NAMES] [--results FILE] [--random N] [--quick]

Problems (tune_problems.py): branin, hartmann3, hartmann6, ackley5, levy5, rosenbrock4, and three mixed ones with noise, one of them
recorded from a job of ours. 50 evaluations for each of N seeds (20); per seed every range is moved a little, the same for all. Printed
is the regret after 30 and 50: the true value of the setting that the method then names the best of those it has evaluated, less the
least there is. With noise, what has a model names the one of which it expects least (ours: `{"best": 1}`, and the GP), all others the
one with the least observed value; without noise all do that. For the mixed problems also in how many seeds ours is better than each
peer, and in how many equal. Then what a tell and an ask take together at 50 and at 500 results with 12 knobs, and N random problems
(--random, 1,000): constant, duplicate, failing, steep ones, of one knob to twenty.

Every finished run is appended to FILE (bench/results/tune.jsonl); started again, the bench goes on where it stopped.
"""
import argparse
import hashlib
import importlib
import math
import os
import random
import statistics
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selftune  # noqa: E402  (beside this file)
import trimtab_runs as runs  # noqa: E402
import tune_peers as peers  # noqa: E402
import tune_problems as problems  # noqa: E402
from trimtab_runs import say  # noqa: E402

EVALUATIONS, MARKS = 50, (30, 50)
BARS = {"branin": (None, 1.0e-4), "hartmann3": (None, 6.6e-6), "hartmann6": (0.097, 6.1e-4), "ackley5": (None, 2.5)}
WINS = 0.75  # of the seeds, against each peer


class Observer:
    """Evaluates settings, and notes the regret at the marks: of the setting that the method names the best of those it has
    evaluated then, or else of the one with the least observed value."""

    def __init__(self, problem, seed):
        self.problem, self.rng = problem, random.Random(f"noise:{problem.name}:{seed}")
        self.count, self.best, self.regrets = 0, (math.inf, None), {}

    def __call__(self, setting):
        y = self.problem.observe(setting, self.rng)
        self.count += 1
        if y < self.best[0]:
            self.best = (y, setting)
        if self.count in MARKS:
            self.name_best(self.best[1])
        return y

    def asks(self):
        """Whether a method with a model should now name its best: what is exact needs no model."""
        return self.count in MARKS and self.problem.noise is not None

    def name_best(self, setting):
        self.regrets[self.count] = self.problem.value(setting) - self.problem.least


def one_run(method, problem, seed):
    """Regrets at the marks."""
    moved = problem.of_seed(seed)
    observer = Observer(moved, seed)
    peers.METHODS[method](moved, seed, EVALUATIONS, observer)
    return [observer.regrets[mark] for mark in MARKS]


class Table:
    """All regrets, from the ledgers."""

    def __init__(self, options):
        self.options, self.ledgers = options, {}

    def ledger(self, method):
        """Ours is measured anew with another program, a peer with another version; both with other problems or another judge."""
        if method not in self.ledgers:
            mark = hashlib.sha256()
            for name in ("tune.py", "tune_problems.py", "tune_peers.py", "tune_recorded.csv"):
                path = os.path.join(problems.HERE, name)
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        mark.update(file.read())
            if method == "ours":
                with open(runs.PROGRAM, "rb") as file:
                    mark.update(file.read())
            elif method in peers.MODULES:
                mark.update(str(importlib.import_module(peers.MODULES[method]).__version__).encode())
            self.ledgers[method] = selftune.Ledger(self.options.results.replace(".jsonl", f"-{method}.jsonl"), mark.hexdigest()[:16])
        return self.ledgers[method]

    def regrets(self, method, problem, seed):
        ledger, key = self.ledger(method), f"{problem.name}:{seed}"
        if key not in ledger.rows:
            ledger.add({"key": key, "regret": one_run(method, problem, seed)})
        return ledger.rows[key]["regret"]


def bar_text(name, mark, median):
    bar = BARS.get(name, (None, None))[MARKS.index(mark)]
    return "" if bar is None else f"  bar {bar:g} {'holds' if median <= bar else 'FAILS'}"


def show_problem(table, problem, methods, seeds, is_mixed):
    at_mark = {}
    for method in methods:
        rows = [table.regrets(method, problem, seed) for seed in range(1, seeds + 1)]
        for i, mark in enumerate(MARKS):
            values = [row[i] for row in rows]
            at_mark[method, mark] = values
            runs.print_line("tune", f"{method}@{mark}", {"problem": problem.name}, "1-", values, "regret")
            quartiles = runs.quartiles(values)
            say(f"{problem.name:12} {method:7} @{mark}: {quartiles[1]:10.3g} ({quartiles[0]:.3g} .. {quartiles[2]:.3g})"
                + (bar_text(problem.name, mark, quartiles[1]) if method == "ours" else ""))
    others = [method for method in methods if method not in ("ours", "random")]
    if is_mixed and others and "ours" in methods:  # without a peer nothing holds
        show_wins(problem, at_mark, others, seeds)


def show_wins(problem, at_mark, others, seeds):
    own = {mark: statistics.median(at_mark["ours", mark]) for mark in MARKS}
    for mark, verb in ((30, "no worse"), (50, "better")):
        least = min(statistics.median(at_mark[other, mark]) for other in others)
        holds = own[mark] <= least if mark == 30 else own[mark] < least
        say(f"{problem.name:12} ours @{mark} {verb} than the best peer ({own[mark]:.3g}, {least:.3g}): {'holds' if holds else 'FAILS'}")
    for other in others:
        wins = sum(a < b for a, b in zip(at_mark["ours", 50], at_mark[other, 50]))
        equal = sum(a == b for a, b in zip(at_mark["ours", 50], at_mark[other, 50]))
        say(f"{problem.name:12} ours @50 better than {other} in {wins} of {seeds}, equal in {equal}: "
            f"{'holds' if wins >= WINS * seeds else 'FAILS'}")


# ---- time ------------------------------------------------------------------------------------------------------------

def show_time(results, limit_ms):
    """Seconds of one tell and the ask after it."""
    knobs = problems.reals(12, 0, 1)
    problem = problems.Problem("time", knobs, None, 0, [])
    rng = random.Random(results)
    tuner = peers.Tuner(problem, 1)

    def value(setting):
        return sum((v - 0.3) ** 2 * (1 + i) for i, v in enumerate(setting.values())) + rng.gauss(0, 0.01)

    for _ in range(results - 10):
        setting = peers.decode(problem, [rng.random() for _ in knobs])
        tuner.request({"tell": {"setting": setting, "y": value(setting)}})
    asked, took = tuner.request({"ask": 1}), []
    for _ in range(20):
        y = value(asked["setting"])
        begin = time.perf_counter()
        tuner.request({"tell": {"id": asked["id"], "y": y}})
        asked = tuner.request({"ask": 1})
        took.append(time.perf_counter() - begin)
    tuner.close()
    median = 1000 * statistics.median(took)
    runs.print_line("tune", "tell_and_ask", {"results": results, "knobs": 12}, "1", [1000 * t for t in took], "ms")
    say(f"tell and ask at {results} results, 12 knobs: {median:.1f} ms, at most {1000 * max(took):.1f} (bar {limit_ms} ms): "
        f"{'holds' if median <= limit_ms else 'FAILS'}")


# ---- random problems -------------------------------------------------------------------------------------------------

def random_problem(seed):
    rng = random.Random(seed)
    count, knobs = rng.choice([1, 1, 2, 3, 5, 8, 12, 20]), []
    for i in range(count):
        kind = rng.choice(["real", "wide", "log", "int", "logint", "bool", "enum"])
        low = rng.uniform(-1e3, 1e3)
        knobs.append({"real": lambda: problems.Knob(f"k{i}", "real", low, low + rng.uniform(1e-3, 1e3)),
                      "wide": lambda: problems.Knob(f"k{i}", "real", -1e6, 1e6),
                      "log": lambda: problems.Knob(f"k{i}", "real", 1e-9, 1e3, log=True),
                      "int": lambda: problems.Knob(f"k{i}", "int", int(low), int(low) + rng.randint(0, 40)),
                      "logint": lambda: problems.Knob(f"k{i}", "int", 0, 1 << 30, log=True),
                      "bool": lambda: problems.Knob(f"k{i}", "bool"),
                      "enum": lambda: problems.Knob(f"k{i}", "enum", values=[f"v{j}" for j in range(rng.randint(1, 16))])}[kind]())
    return problems.Problem("random", knobs, None, 0, []), rng


def run_random(seed):
    """What went wrong, or None."""
    problem, rng = random_problem(seed)
    kind = rng.choice(["constant", "smooth", "noise", "steep", "failing", "huge", "two values"])
    tuner = peers.Tuner(problem, seed)
    for _ in range(rng.randint(6, 26)):
        asked = tuner.request({"ask": 1})
        for knob in problem.knobs:
            value = asked["setting"][knob.name]
            inside = value in knob.values if knob.kind == "enum" else knob.low <= value <= knob.high
            if not inside:
                return f"{knob.name} = {value}"
        share = [zlib.crc32(f"{seed}:{v}".encode()) % 1000 / 1000 if not isinstance(v, float) else (v - k.low) / (k.high - k.low)
                 for k, v in zip(problem.knobs, asked["setting"].values())]
        smooth = sum((s - 0.4) ** 2 for s in share)
        y = {"constant": 3.0, "smooth": smooth, "noise": rng.gauss(0, 1), "steep": math.exp(12 * smooth), "failing": smooth,
             "huge": 1e12 * smooth - 1e12, "two values": float(smooth > 0.2)}[kind]
        body = {"id": asked["id"], "y": y}
        if kind == "failing" and rng.random() < 0.5:
            body = {"id": asked["id"], "failed": True}
        if rng.random() < 0.1:  # told once more, as something else
            tuner.request({"tell": {"setting": asked["setting"], "y": y, "noise": 0.1}})
            continue
        tuner.request({"tell": body})
    tuner.close()
    return None


def show_random(count):
    failures = []
    for seed in range(1, count + 1):
        try:
            fault = run_random(seed)
        except (runs.RunFailed, ValueError) as failure:
            fault = str(failure)
        if fault is not None:
            failures.append((seed, fault))
    for seed, fault in failures[:10]:
        say(f"random problem {seed}: {fault}")
    runs.print_line("tune", "random_failures", {"problems": count}, "1-", [float(len(failures))], "problems")
    say(f"{count} random problems: {len(failures)} failures: {'holds' if not failures else 'FAILS'}")


# ---- the whole -------------------------------------------------------------------------------------------------------

def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run tune", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default=",".join(peers.METHODS), help="methods")
    parser.add_argument("--problems", default="", help="their names (all)")
    parser.add_argument("--results", default=os.path.join(runs.ROOT, "bench", "results", "tune.jsonl"))
    parser.add_argument("--random", type=int, default=1000, help="random problems")
    parser.add_argument("--quick", action="store_true", help="whether the bench works, nothing else")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.random, options.results = 2, 20, options.results.replace(".jsonl", "-quick.jsonl")
        options.problems = options.problems or "branin,cluster"
    return options


def present(methods):
    """Those whose library is there; the others are said to be missing."""
    there = []
    for method in methods:
        if method not in peers.METHODS:
            sys.exit(f"bench/run tune: no method is called '{method}'; there are {', '.join(peers.METHODS)}")
        try:
            importlib.import_module(peers.MODULES.get(method, "json"))
            there.append(method)
        except ImportError:
            say(f"{method} is missing: no Python module {peers.MODULES[method]}")
    return there


def main(arguments):
    options = parse(arguments)
    runs.need_program()
    os.makedirs(os.path.dirname(options.results), exist_ok=True)
    every = {**problems.SMOOTH, **problems.mixed()}
    if "recorded" not in every:
        say("recorded is missing: bench/tune_record.py makes it")
    chosen = [name for name in options.problems.split(",") if name] or list(every)
    unknown = [name for name in chosen if name not in every]
    if unknown:
        sys.exit(f"bench/run tune: no problem is called '{unknown[0]}'; there are {', '.join(every)}")
    methods, table = present(options.only.split(",")), Table(options)
    for name in chosen:
        show_problem(table, every[name], methods, options.seeds, name not in problems.SMOOTH)
    if "ours" in methods and not options.problems:
        show_time(50, 20)
        show_time(500, 200)
    if "ours" in methods and options.random > 0 and (options.quick or not options.problems):
        show_random(options.random)
    return 0


if __name__ == "__main__":
    runs.end_with(main, "tune")
