#!/usr/bin/python3
"""bench/run knobs: what each knob does to two workloads, that is whether there is a needle it moves.

    knobs.py [--knob ID] [--repeats N]

Every knob is set to its lowest, its start and its highest value, all others staying at the start setting, untuned, over
a fixed number of epochs (equal work); the values take turns, N times (5). Workloads, both with messages on 8 nodes:
  fashion    softmax regression on Fashion-MNIST (configs/quickstart.yaml), dense
  clicklog   logistic regression on a small generated click log (configs/clicklog.yaml), keyed
(staleness: under ssp, pinned, for equally fast workers never meet the bound; chunk_bytes: whole tables are pulled, for
keyed messages are smaller than any chunk).
Each value gets a line of train_seconds, with the counter the knob should move (counts are per iteration). The verdict
of a knob on a workload looks at every two of its values: it moves a figure when at least 95 % of the pairs of runs lie
on the same side (5 runs a value: all 25 pairs or 24 of them) and the medians differ by at least 3 %.
A knob that moves neither its counter nor the time on any workload must not ship.
"""
import argparse
import difflib
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import trimtab_runs as runs  # noqa: E402  (beside this file)
from trimtab_runs import say  # noqa: E402

UNTUNED = {"tuner.enabled": "off", "tuner.compare": "off", "stop.loss": "0", "stop.max_time": "60s"}
WORKLOADS = {
    "fashion": ("configs/quickstart.yaml", {**UNTUNED, "stop.max_epochs": 4}),
    "clicklog": ("configs/clicklog.yaml",
                 {**UNTUNED, "stop.max_epochs": 3, "data.rows": 100000, "data.columns": 100000}),
}
CONDITIONS = {  # what a knob needs to be in the job, or to have something to do
    "staleness": {"consistency": "ssp", "setting.pinning": "on"},  # pinned: workers are not equally fast
    "chunk_bytes": {"model.pull": "whole"},
}
COUNTERS = {  # the counter a knob should move; any other knob is judged by the time alone
    "servers": "staleness_mean",
    "compute_threads": "cpu_seconds",
    "kernel": "cpu_seconds",
    "pinning": "sleeps",
    "bf16_transfer": "bytes",
    "chunk_bytes": "chunks",
    "spin": "sleeps",
    "in_flight": "sleeps",
    "prefetch": "batches_waited",
    "push_aggregation": "pushes",
    "staleness": "staleness_mean",
}
MEANS = ("staleness_mean",)  # counters that are no counts
SAME_SIDE = 0.95
DIFFERENCE = 0.03


def values_of(knob):
    """{"low": ..., "start": ..., "high": ...} as plan writes them, without those equal to the start."""
    values = {"low": knob["min"], "start": knob["start"], "high": knob["max"]}
    return {name: value for name, value in values.items() if name == "start" or value != knob["start"]}


def as_set(text):
    """A value of plan as --set takes it: "64 KiB" and "100 pauses" become numbers, names stay."""
    return runs.number_of(text) if text[0].isdigit() else text


def separated(one, other):
    """Whether two samples differ beyond their spread."""
    below = sum(a < b for a in one for b in other) / (len(one) * len(other))
    above = sum(a > b for a in one for b in other) / (len(one) * len(other))
    low, high = sorted((runs.quartiles(one)[1], runs.quartiles(other)[1]))
    return max(below, above) >= SAME_SIDE and high - low > DIFFERENCE * high


def moves(samples):
    """The largest ratio of medians to that of the start among samples that differ from another; None when none does."""
    start = runs.quartiles(samples["start"])[1]
    names = list(samples)
    ratios = [runs.quartiles(samples[name])[1] / start if start else float("inf")
              for name in names if name != "start"
              and any(separated(samples[name], samples[other]) for other in names if other != name)]
    return max(ratios, key=lambda ratio: max(ratio, 1 / ratio) if ratio else float("inf"), default=None)


class Turns:
    """The runs of one knob on one workload."""

    def __init__(self, workload, knob, repeats):
        self.workload, self.id, self.values = workload, knob["id"], values_of(knob)
        self.counter = COUNTERS.get(self.id)
        self.results = {name: [] for name in self.values}
        self.config, sets = WORKLOADS[workload]
        self.sets = {**sets, **CONDITIONS.get(self.id, {})}
        names = list(self.values)
        for i in range(repeats):
            for name in names if i % 2 == 0 else names[::-1]:
                setting = runs.setting_keys({self.id: as_set(self.values[name])})
                self.results[name].append(runs.run(self.config, {**self.sets, "seed": 1, **setting}, timeout=120))

    def sample(self, name, figure):
        """The figure of each run; counts per iteration."""
        def value(result):
            if figure in result["counters"]:
                count = result["counters"][figure]
                return count if figure in MEANS else count / result["iterations"]
            return result[figure]

        return [value(result) for result in self.results[name]]

    def samples(self, figure):
        return {name: self.sample(name, figure) for name in self.values}

    def show(self):
        """Prints lines and table; returns the verdict."""
        params = f"{self.config} max_epochs={self.sets['stop.max_epochs']}"
        start = runs.quartiles(self.sample("start", "train_seconds"))[1]
        for name, value in self.values.items():
            times, more, counted = self.sample(name, "train_seconds"), {}, ""
            if self.counter:
                low, middle, high = runs.quartiles(self.sample(name, self.counter))
                more = {"counter": self.counter, "counter_median": middle, "counter_p25": low, "counter_p75": high}
                counted = f"{self.counter} {middle:11.5g} ({low:.5g} .. {high:.5g})"
            middle = runs.quartiles(times)[1]
            runs.print_line("knobs", f"{self.workload}/{self.id}={value}", params, 1, times, "s",
                            baseline=start, ratio=middle / start, **more)
            low, _, high = runs.quartiles(times)
            say(f"  {self.workload:9} {name:5} {value:14} {middle:7.3f} s ({low:.3f} .. {high:.3f})  {counted}")
        return self.verdict(params)

    def verdict(self, params):
        time = moves(self.samples("train_seconds"))
        counter = moves(self.samples(self.counter)) if self.counter else None
        said = [f"moves {what} x{ratio:.3g}" for what, ratio in ((self.counter, counter), ("time", time))
                if ratio is not None]
        print(json.dumps({"bench": "knobs", "case": f"{self.workload}/{self.id}", "params": params,
                          "moves_counter": counter is not None, "moves_time": time is not None,
                          "counter_ratio": runs.finite(counter), "time_ratio": runs.finite(time)}), flush=True)
        say(f"  {self.workload:9} {self.id}: {' and '.join(said) or 'moves neither counter nor time'}")
        return bool(said)


def knobs_of(workload, knob_id):
    """The knobs the workload has, as plan reports them under the condition the knob needs."""
    config, sets = WORKLOADS[workload]
    job, refused = runs.plan(config, {**sets, **CONDITIONS.get(knob_id, {})})
    if job is None:
        sys.exit(refused)
    return {knob["id"]: knob for knob in job["knobs"] if not knob["absent"] and knob["min"] != knob["max"]}


def parse(arguments, ids):
    parser = argparse.ArgumentParser(prog="bench/run knobs", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--knob", metavar="ID", help="this knob only: " + ", ".join(ids))
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="runs of each value (5)")
    options = parser.parse_args(arguments)
    if options.knob is not None and options.knob not in ids:
        near = difflib.get_close_matches(options.knob, ids, 1)
        parser.error(f"there is no knob '{options.knob}'" + (f"; did you mean '{near[0]}'?" if near else
                                                            "; there are: " + ", ".join(ids)))
    if options.repeats < 1:
        parser.error("at least one repeat")
    return options


def main(arguments):
    runs.need_program()
    os.chdir(runs.ROOT)
    ids = list(runs.knob_kinds())
    options = parse(arguments, ids)
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        runs.keep_program(os.path.join(scratch, "trimtab"))
        return measure(ids, options)


def measure(ids, options):
    idle, others = [], []
    for knob_id in [options.knob] if options.knob else ids:
        say(f"{knob_id}:")
        needed = False
        for workload in WORKLOADS:
            knob = knobs_of(workload, knob_id).get(knob_id)
            if knob is None:
                say(f"  {workload:9} not in this job")
                continue
            turns = Turns(workload, knob, options.repeats)
            needed = turns.show() or needed
            others += [result["others"] for results in turns.results.values() for result in results]
        if not needed:
            idle.append(knob_id)
    if others:
        say(f"other processes used {runs.quartiles(others)[1]:.0%} of the machine (median of {len(others)} runs)")
    say(f"move neither counter nor time anywhere: {', '.join(idle)}: these must not ship" if idle else
        "every knob measured moves its counter or the time on a workload")
    return 0


if __name__ == "__main__":
    runs.end_with(main, "knobs")
