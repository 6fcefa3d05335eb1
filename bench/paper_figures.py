"""Figures of bench/run paper: what the runs of a cell say, as numbers, and printed. Used by paper.py."""
import json
import random

import paper_eta
import paper_moves
import paper_protocol as protocol
import paper_rank
import trimtab_runs as runs
from trimtab_runs import say

RESAMPLES = 10000


def bootstrap(values):
    """The 95 % percentile interval of the median, from resampled values."""
    if len(values) < 2:
        return values[0], values[0]
    rng = random.Random(len(values))
    medians = sorted(runs.quartiles(rng.choices(values, k=len(values)))[1] for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]


class Figures:
    """A cell's figures; `ratios` is {name: (values by seed)}."""

    def __init__(self, bench):
        self.bench, self.cell, self.rows = bench, bench.cell, bench.ledger.rows
        self.seeds = list(bench.fresh_seeds())
        self.best_index = bench.best()
        self.cap = bench.cap()
        first = bench.first_pass()
        self.fixed = [time for time, _ in first]
        self.capped = sum(capped for _, capped in first)
        self.average = sum(self.fixed) / len(self.fixed)
        self.worst = max(self.fixed)
        self.selection_default = self.rows[f"default:{protocol.SELECTION_SEEDS[0]}"]["seconds"]
        keys = {"default": "default:{}", "best": f"fixed:{self.best_index}:{{}}", "tuned": "tuned:{}", "warm": "warm:{}",
                "paper": "paper:{}"}
        self.keys = {kind: [key.format(seed) for seed in self.seeds] for kind, key in keys.items()}
        clipped = {kind: [bench.clipped(key) for key in names] for kind, names in self.keys.items()}
        self.times = {kind: [time for time, _ in values] for kind, values in clipped.items()}
        self.cut = {kind: sum(capped for _, capped in values) for kind, values in clipped.items()}
        self.ratios = self.make_ratios()

    def make_ratios(self):
        t = self.times
        # Average and Worst are of the first selection seed; the default links that seed to the others.
        link = [time / self.selection_default for time in t["default"]]
        ratios = {f"{a}/{b}": [x / y for x, y in zip(t[a], t[b])]
                  for a, b in (("tuned", "best"), ("warm", "best"), ("paper", "best"), ("tuned", "default"),
                               ("paper", "default"), ("warm", "tuned"), ("paper", "tuned"), ("best", "default"))}
        for name, value in (("average", self.average), ("worst", self.worst)):
            for kind in ("tuned", "paper", "best"):
                ratios[f"{name}/{kind}"] = [value * scale / time for scale, time in zip(link, t[kind])]
        for kind in ("tuned", "warm", "paper"):
            ratios[f"{kind} reconfiguring"] = [self.rows[key]["reconfigure_seconds"] / self.rows[key]["train_seconds"]
                                               for key in self.keys[kind]]
        return ratios

    def per_iteration(self, kind):
        """(median iterations, median seconds per iteration) of the runs of one kind: the paper's Table III."""
        rows = [self.rows[key] for key in self.keys[kind]]
        counts = [row["iterations"] for row in rows]
        each = [(row["seconds"] or row["train_seconds"]) / row["iterations"] for row in rows]
        return runs.quartiles(counts)[1], runs.quartiles(each)[1]

    def switches(self):
        """Iterations that each switch of the tuned jobs cost: training time lost, over the job's time an iteration."""
        return [cost[2] * row["iterations"] / (row["seconds"] or row["train_seconds"])
                for row in (self.rows[key] for key in self.keys["tuned"]) for cost in row["costs"] if cost[2] is not None]

    def best_pushes(self):
        """Pushes that the best setting takes, each of the iterations that it merges."""
        return self.per_iteration("best")[0] / self.rows[self.keys["best"][0]]["merged"]

    def summary(self):
        """All that the report needs, as JSON."""
        near = min(range(len(self.fixed)), key=lambda i: abs(self.fixed[i] - self.average))
        first = {kind: self.rows[keys[0]] for kind, keys in self.keys.items()}
        curves = {kind: first[kind]["curve"] for kind in ("default", "paper", "tuned", "best")}
        curves["average"] = self.rows[f"fixed:{near}:{protocol.SELECTION_SEEDS[0]}"]["curve"]
        means, each = paper_moves.summary(self.bench)
        ranks = paper_rank.ranks(self.bench)
        return {"cell": self.cell.name, "step": self.cell.step, "target": self.cell.target, "settings": len(self.fixed),
                "seeds": len(self.seeds), "cap": self.cap, "capped": self.capped, "average": self.average,
                "worst": self.worst, "times": self.times, "cut": self.cut, "ratios": self.ratios, "curves": curves,
                "switches": runs.quartiles(self.switches() or [float("nan")]), "switch_count": len(self.switches()),
                "best_pushes": self.best_pushes(),
                "iterations": {kind: self.per_iteration(kind) for kind in self.keys},
                "chosen": {kind: first[kind]["setting"] for kind in ("best", "default", "tuned", "paper")},
                "eta": paper_eta.summary(self.bench), "moves": means, "iteration_s": each,
                "stages": max((len(values) for values in ranks.values()), default=0),
                "ranks": {f"{estimator}|{pushes}|{spread or 'all'}": values for (estimator, pushes, spread), values in ranks.items()}}

    def show(self):
        params = {"cell": self.cell.name, "settings": len(self.fixed), "target": self.cell.target}
        seeds = f"{self.seeds[0]}-{self.seeds[-1]}"
        table = [f"\n{self.cell.name}: virtual seconds to the objective {self.cell.target}, {len(self.fixed)} settings, "
                 f"{len(self.seeds)} fresh seeds",
                 f"  fixed settings: worst {self.worst:.2f}, average {self.average:.2f} s; {self.capped} of them capped at "
                 f"{self.cap:.2f} s (20 x the fastest); the best takes {self.best_pushes():.0f} pushes"]
        runs.print_line("paper", "fixed", params, 1, self.fixed, "s", mean=self.average, capped=self.capped, cap=self.cap)
        for kind in ("best", "default", "tuned", "warm", "paper"):
            count, each = self.per_iteration(kind)
            values = self.times[kind]
            runs.print_line("paper", kind, params, seeds, values, "s", capped=self.cut[kind], iterations=count,
                            seconds_per_iteration=each)
            low, middle, high = runs.quartiles(values)
            table.append(f"  {kind:8} median {middle:8.2f} s  p25 {low:8.2f}  p75 {high:8.2f}   {count:8.0f} iterations of "
                         f"{1e3 * each:.3f} ms" + (f"   {self.cut[kind]} capped" if self.cut[kind] else ""))
        for name, values in self.ratios.items():
            low, high = bootstrap(values)
            runs.print_line("paper", name, params, seeds, values, "ratio", bootstrap_low=low, bootstrap_high=high)
            p25, middle, p75 = runs.quartiles(values)
            table.append(f"  {name:20} {middle:8.3f}  p25 {p25:8.3f}  p75 {p75:8.3f}   bootstrap {low:.3f} .. {high:.3f}")
        costs = self.switches()
        if costs:
            runs.print_line("paper", "a switch of tuned jobs", params, seeds, costs, "iterations lost")
            table.append(f"  a switch of tuned jobs costs {runs.quartiles(costs)[1]:.2f} iterations (median of {len(costs)})")
        for kind in ("best", "default", "tuned", "warm", "paper"):
            table.append(f"  setting of {kind:8} {json.dumps(self.rows[self.keys[kind][0]]['setting'])}")
        say("\n".join(table))
