#!/usr/bin/python3
"""bench/run simcheck: the calibrated simulation against the threads engine on this machine.

    simcheck.py [--settings N] [--repeats N] [--seconds S] [--costs FILE] [--jobs NAMES]

Measures the constants once (`trimtab bench calibrate`), then draws random settings of 8 nodes (seeded; every knob that
the job leaves free, uniform on its scale) and takes turns: a short real run on threads, the same setting on one
simulated host with the cores of this machine (pinning is not simulated, and off).

Compared are seconds an iteration, train_seconds / iterations, of an untuned run of S seconds (1.5). What other programs
do makes a real run slower, and the model knows nothing of them: a run beside which they took more than a tenth of the
machine is done again (at most 4 N times), and of N runs (3) of a setting the fastest counts, as in the calibration. A
check with `others` above 0.1 says little.
Beside that the processor seconds of an iteration are compared, of the whole process with threads and of the busy cores
with simulated ones: other programs hardly change them, so they tell how good the constants are on a machine that is
not idle.

    keyed   logistic regression on a small generated click log, keyed pulls, ssp (all knobs are in the space)
    dense   softmax regression on Fashion-MNIST, whole tables, asp (if it is installed)

The bar is for `keyed`: median absolute error <= 25 %, rank correlation (Spearman) >= 0.9; the error's 90th percentile
is printed beside them. An error is |simulated / real - 1|. Exit code 1: a bar was missed.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selftune  # noqa: E402  (beside this file)
import trimtab_runs as runs  # noqa: E402
from trimtab_runs import say  # noqa: E402

SEED = 20200406
QUIET = 0.1  # share of the machine
BARS = {"error_median": (0.25, True), "rank_correlation": (0.9, False)}
FIXED = {"tuner.enabled": "off", "tuner.compare": "off", "stop.max_epochs": 100000, "cluster.nodes": 8,
         "checkpoint.keep": 0}
JOBS = {
    "keyed": ("configs/clicklog.yaml", {**FIXED, "stop.loss": 0.001, "data.rows": 50000, "data.columns": 100000,
                                        "optimizer.learning_rate": 0.1, "consistency": "ssp"}),
    "dense": ("configs/quickstart.yaml", {**FIXED, "stop.loss": 0.001, "data.test.file": "null", "data.test.labels": "null"}),
}
HOST = {"cluster.engine": "simulated", "simulation.hosts": 1, "simulation.jitter": 0,
        "simulation.network.local_latency": "0s"}


def simulate(config, sets):
    """Seconds an iteration, and processor seconds."""
    command = [runs.PROGRAM, "plan", "--simulate", *runs.arguments_of(config, sets), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=runs.environment())
    if done.returncode not in (0, 1) or not done.stdout:
        raise runs.RunFailed(f"exit status {done.returncode}: {' '.join(command)}\n{done.stderr.strip()}")
    row = json.loads(done.stdout)["start"]
    return row["seconds_per_iteration"], row["seconds_per_iteration"] * row["cores_busy"] * sets["simulation.cores"]


def begin_seconds(config, sets):
    """Processor seconds before and after training: reading, the last evaluation."""
    return min(runs.run(config, {**sets, "stop.max_time": "1ms"})["cpu_seconds"] for _ in range(3))


def calibrate(path):
    done = subprocess.run([runs.PROGRAM, "bench", "calibrate", path], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)


def compare(name, setting, costs, before, options):
    """One setting: {"real": [...], "simulated": ..., "others": [...]}, seconds an iteration."""
    config, sets = JOBS[name]
    sets = {**sets, **runs.setting_keys(setting)}
    limit = {"stop.max_time": f"{options.seconds}s"}
    row = {"setting": setting}
    simulated = {**sets, **HOST, "stop.max_time": f"{options.seconds / 3}s", "simulation.cores": os.cpu_count()}
    done = []
    while len(done) < 5 * options.repeats and sum(one[0] <= QUIET for one in done) < options.repeats:  # quiet ones
        result = runs.run(config, {**sets, **limit})
        iterations = max(result["iterations"], 1)
        done.append((result["others"], result["train_seconds"] / iterations, (result["cpu_seconds"] - before) / iterations))
        if len(done) == 1:
            row["simulated"], row["simulated_cpu"] = simulate(config, {**simulated, **costs})
    done = sorted(done)[:options.repeats]
    row["real"] = [seconds for _, seconds, _ in done]
    row["real_cpu"] = min(cpu for _, _, cpu in done)
    row["others"] = [round(others, 2) for others, _, _ in done]
    row["error"] = row["simulated"] / min(row["real"]) - 1
    return row


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [0.0] * len(values)
    for place, index in enumerate(order):
        places[index] = place
    return places


def rank_correlation(one, other):
    """Spearman's; times are hardly ever equal."""
    a, b = ranks(one), ranks(other)
    middle = statistics.mean(a)
    spread = sum((x - middle) ** 2 for x in a)
    return sum((x - middle) * (y - middle) for x, y in zip(a, b)) / spread if spread else 1.0


def percentile(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


def costs_of(path):
    """{key: value} of a file of constants."""
    costs, group = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            text = line.split("#")[0].rstrip()
            if text == "  costs:":
                group = "simulation.costs."
            elif group and text.startswith("    "):
                key, value = text.strip().split(":", 1)
                costs[group + key] = value.strip()
            elif text and not text.startswith("    "):
                group = None
    return costs


def found(real, simulated):
    """How far the one is from the other: the figures of the bars, with the 90th percentile and the bias."""
    errors = [one / other - 1 for one, other in zip(simulated, real)]
    sizes = [abs(error) for error in errors]
    return sizes, {"error_median": statistics.median(sizes), "error_p90": percentile(sizes, 0.9),
                   "rank_correlation": rank_correlation(real, simulated), "bias": statistics.median(errors)}


def judge(name, rows, options):
    params = f"{len(rows)} settings, {options.repeats} x {options.seconds} s"
    others = statistics.median(share for row in rows for share in row["others"])
    sizes, cpu = found([row["real_cpu"] for row in rows], [row["simulated_cpu"] for row in rows])
    runs.print_line("simcheck", f"{name} processor", params, SEED, sizes,
                    "absolute error of processor seconds an iteration", **cpu, others=others)
    sizes, wall = found([min(row["real"]) for row in rows], [row["simulated"] for row in rows])
    passed = all(wall[key] <= bound if above else wall[key] >= bound for key, (bound, above) in BARS.items())
    runs.print_line("simcheck", name, params, SEED, sizes, "absolute error of seconds an iteration", **wall, others=others,
                    passed=passed)
    say(f"{'PASS' if passed else 'FAIL'} {name}: error of seconds an iteration: median {100 * wall['error_median']:.0f} % "
        f"(bar 25), p90 {100 * wall['error_p90']:.0f} %; rank correlation {wall['rank_correlation']:.2f} (bar 0.9)")
    say(f"     {name}: error of processor seconds an iteration: median {100 * cpu['error_median']:.0f} %, p90 "
        f"{100 * cpu['error_p90']:.0f} %; rank correlation {cpu['rank_correlation']:.2f}; other programs took "
        f"{100 * others:.0f} % of the machine{', which spoils the first line' if others > QUIET else ''}")
    return passed


def check_job(name, costs, options):
    config, sets = JOBS[name]
    selftune.CONFIG = config
    space = selftune.search_space(sets)
    rng, rows, before = random.Random(SEED), [], begin_seconds(config, sets)
    for index in range(options.settings):
        setting = {knob: value for knob, value in selftune.draw(space, rng).items() if knob != "pinning"}
        try:
            row = compare(name, setting, costs, before, options)
        except runs.RunFailed as failed:
            sys.exit(str(failed))
        rows.append(row)
        line = {"bench": "simcheck", "case": f"{name} setting {index + 1}", "params": setting, "seed": SEED,
                "n": len(row["real"]), "median": runs.finite(statistics.median(row["real"])),
                "p25": runs.finite(min(row["real"])), "p75": runs.finite(max(row["real"])), "unit": "s an iteration",
                "simulated": runs.finite(row["simulated"]), "error": runs.finite(row["error"]), "others": row["others"],
                "processor": runs.finite(row["real_cpu"]), "simulated_processor": runs.finite(row["simulated_cpu"])}
        print(json.dumps(line), flush=True)
    return judge(name, rows, options)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a real run")
    parser.add_argument("--costs", help="constants measured before, instead of measuring them now")
    parser.add_argument("--jobs", default="keyed,dense")
    options = parser.parse_args(arguments)
    runs.need_program()
    os.chdir(runs.ROOT)
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        runs.keep_program(os.path.join(scratch, "trimtab"))
        path = options.costs or os.path.join(scratch, "machine.yaml")
        if not options.costs:
            calibrate(path)
        costs = costs_of(path)
        names = options.jobs.split(",")
        if "dense" in names and runs.plan(*JOBS["dense"])[0] is None:
            say("Fashion-MNIST is not installed (dataset-fashion-mnist): dense is left out")
            names.remove("dense")
        passed = {name: check_job(name, costs, options) for name in names}
    return 0 if passed.get("keyed", True) else 1


if __name__ == "__main__":
    runs.end_with(main, "simcheck")
