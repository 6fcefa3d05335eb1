#!/usr/bin/python3
"""bench/run hosts: what tuning is worth on several hosts, and how its choices depend on the network between them.

    hosts.py [--settings N] [--seeds N] [--rates LIST] [--results FILE] [--quick]

Four emulated hosts of this machine (network namespaces; root, and TRIMTAB_EMULATED_HOSTS is the directory of hosts_up.sh; else it says
why and does nothing), 8 nodes, cluster.engine: ssh. Two jobs, at each rate of LIST (200mbit,0: unlimited):

    softmax   configs/quickstart.yaml, Fashion-MNIST, to a loss of 0.50 (half a minute at 200 Mbit/s)
    clicklog  configs/clicklog.yaml with a fifth of its rows and columns

For each: the default setting, N random ones (20; uniform on each knob's scale, one run each, cut off at twice the default's time and
then counted as that), and in turns for every seed (3) the default, the job tuned from a cold start, and the three fastest random ones again,
of which the one of the least median is the best. Compared is train_seconds, the time until the job's loss is reached. Printed with the
ratios are the settings that the tuned jobs ended in: with a slow network 16-bit transfer and another number of servers should pay.

Every finished run is appended to FILE (bench/results/hosts.jsonl); started again, the bench goes on where it stopped. --quick: the
clicklog job, a tenth of it, 3 settings, one seed: whether the bench works, nothing else.
"""
import argparse
import hashlib
import json
import math
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selftune  # noqa: E402  (beside this file)
import trimtab_runs as runs  # noqa: E402
from trimtab_runs import say  # noqa: E402

COUNT, NODES, BEST, CUT = 4, 8, 3, 2.0
JOBS = {
    "softmax": ("configs/quickstart.yaml", {"tuner.compare": "off", "data.test": "null", "stop.loss": 0.50}),
    "clicklog": ("configs/clicklog.yaml", {"tuner.compare": "off", "data.rows": 200000, "data.columns": 200000, "stop.loss": 0.26}),
}
QUICK = {"data.rows": 20000, "data.columns": 20000, "stop.loss": 0.4}


class Hosts:
    """Emulated ones, all at one rate at a time."""

    def __init__(self, scripts):
        self.scripts, self.id = scripts, os.environ.setdefault("HOSTS_ID", "9")

    def up(self, rate):
        self.down()
        subprocess.run([os.path.join(self.scripts, "hosts_up.sh"), str(COUNT), *([rate] if rate != "0" else [])], check=True,
                       stdout=subprocess.DEVNULL)

    def down(self):
        subprocess.run([os.path.join(self.scripts, "hosts_down.sh")], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def keys(self):
        return {"cluster.engine": "ssh", "cluster.nodes": NODES, "cluster.hosts": "[" + ", ".join(f"h{k}" for k in range(COUNT)) + "]",
                "cluster.remote_shell": os.path.join(self.scripts, "host_rsh"), "cluster.address": f"10.{200 + int(self.id)}.0.1"}


class Cell:
    """One job at one rate."""

    def __init__(self, name, rate, hosts, options, ledger):
        self.name, self.rate, self.options, self.ledger = f"{name}-{rate}", rate, options, ledger
        self.config, sets = JOBS[name]
        self.base = {**sets, **(QUICK if options.quick else {}), **hosts.keys()}

    def once(self, kind, seed, sets, cut=None, setting=None):
        key = f"{self.name}:{kind}:{seed}"
        if key in self.ledger.rows:
            return self.ledger.rows[key]
        sets = {**self.base, "seed": seed, **sets, **runs.setting_keys(setting or {})}
        if cut is not None:
            sets["stop.max_time"] = f"{cut:.3f}s"
        result = runs.run(self.config, sets, timeout=1800)
        reached = result["status"] == "converged" and (cut is None or result["train_seconds"] <= cut)
        row = {"key": key, "kind": kind, "seed": seed, "seconds": result["train_seconds"] if reached else None}
        row.update({name: result.get(name) for name in ("iterations", "epochs", "setting", "others", "generations", "status")})
        self.ledger.add(row)
        say(f"{key:36} " + (f"{row['seconds']:7.2f} s" if reached else f"not reached in {result['train_seconds']:.1f} s")
            + f", others used {row['others']:.0%} of the machine")
        return row

    def measure(self):
        untuned = {"tuner.enabled": "off"}
        default = self.once("default", 1, untuned)["seconds"]
        if default is None:
            sys.exit(f"{self.name}: the default setting does not reach the loss")
        space = selftune.search_space(self.base, self.config)
        rng = random.Random(selftune.DRAW_SEED)
        drawn = [selftune.draw(space, rng) for _ in range(self.options.settings)]
        rows = [self.once(f"random:{i}", 1, untuned, CUT * default, setting) for i, setting in enumerate(drawn)]
        order = sorted((row["seconds"], i) for i, row in enumerate(rows) if row["seconds"] is not None)[:BEST]
        for seed in range(1, self.options.seeds + 1):
            self.once("default", seed, untuned)
            self.once("tuned", seed, {"tuner.enabled": "on"})
            for _, i in order:
                self.once(f"best:{i}", seed, untuned, CUT * default, drawn[i])
        return default, rows, [i for _, i in order], drawn

    def times(self, kind):
        rows = [self.ledger.rows[f"{self.name}:{kind}:{seed}"] for seed in range(1, self.options.seeds + 1)]
        return [math.inf if row["seconds"] is None else row["seconds"] for row in rows]

    def show(self):
        default, rows, order, drawn = self.measure()
        params = {"cell": self.name, "nodes": NODES, "hosts": COUNT, "rate": self.rate}
        middle = lambda values: runs.quartiles(values)[1]  # noqa: E731
        best = min(order, key=lambda i: middle(self.times(f"best:{i}")), default=None)
        slow = [CUT * default if row["seconds"] is None else row["seconds"] for row in rows]
        tuned, start = self.times("tuned"), self.times("default")
        runs.print_line("hosts", "default", params, "1-", start, "s")
        runs.print_line("hosts", "tuned", params, "1-", tuned, "s")
        runs.print_line("hosts", "random", params, "1", slow, "s")
        runs.print_line("hosts", "tuned/default", params, "1-", [t / d for t, d in zip(tuned, start)], "ratio")
        if best is not None:
            fastest = self.times(f"best:{best}")
            runs.print_line("hosts", "best", params, "1-", fastest, "s")
            runs.print_line("hosts", "tuned/best", params, "1-", [t / b for t, b in zip(tuned, fastest)], "ratio")
            say(f"{self.name}: best   {json.dumps(drawn[best])}")
        for seed in range(1, self.options.seeds + 1):
            say(f"{self.name}: tuned  {json.dumps(self.ledger.rows[f'{self.name}:tuned:{seed}']['setting'])}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run hosts", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--settings", type=int, default=20, help="random settings (20)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of what takes turns (3)")
    parser.add_argument("--rates", default="200mbit,0", help="of the links (200mbit,0)")
    parser.add_argument("--results", default=os.path.join(runs.ROOT, "bench", "results", "hosts.jsonl"))
    parser.add_argument("--quick", action="store_true", help="whether the bench works, nothing else")
    options = parser.parse_args(arguments)
    if options.quick:
        options.settings, options.seeds, options.results = 3, 1, options.results + ".quick"
    return options


def main(arguments):
    options = parse(arguments)
    scripts = os.environ.get("TRIMTAB_EMULATED_HOSTS", "")
    if os.geteuid() != 0 or not os.path.exists(os.path.join(scripts, "hosts_up.sh")):
        say("skipped: emulated hosts need root, and TRIMTAB_EMULATED_HOSTS, the directory of hosts_up.sh")
        return 0
    runs.need_program()
    os.chdir(runs.ROOT)
    os.makedirs(os.path.dirname(options.results), exist_ok=True)
    with open(runs.PROGRAM, "rb") as program:
        fingerprint = hashlib.sha256(program.read() + json.dumps([JOBS, COUNT, NODES, CUT]).encode()).hexdigest()[:16]
    ledger, hosts = selftune.Ledger(options.results, fingerprint), Hosts(scripts)
    try:
        for rate in options.rates.split(","):
            hosts.up(rate)
            for name in ["clicklog"] if options.quick else JOBS:
                Cell(name, rate, hosts, options, ledger).show()
    finally:
        hosts.down()
    return 0


if __name__ == "__main__":
    runs.end_with(main, "hosts")
