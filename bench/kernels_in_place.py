#!/usr/bin/python3
"""Whole jobs in place: examples a second through pull, gradient and push, one worker, untuned. Used by kernels.py.

    kernels_in_place.py [--data DIR] [--repeats N] [--cal STEPS]

Per CPU-second: each measurement is the difference of a long and a short job, so that reading the data does not count and a busy
machine does not either. The worker is one thread; the master beside it, which only looks on, is paid for too.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "build", "release", "bin", "trimtab")
FASHION = "/usr/share/datasets/fashion-mnist"
COMMON = ["tuner.enabled=off", "cluster.driver=in_place", "cluster.nodes=1", "consistency=asp"]


def cpu_of_job(config, sets, epochs, runs_dir):
    """CPU-seconds of the whole process, and the examples it trained on."""
    arguments = [PROGRAM, "run", os.path.join(ROOT, "configs", config), "--json", "-q", "--runs", runs_dir]
    for item in COMMON + sets + [f"stop.max_epochs={epochs}"]:
        arguments += ["--set", item]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{config}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu, result["examples_per_second"] * result["train_seconds"]


def rate(config, sets, epochs, runs_dir):
    short_cpu, short_examples = cpu_of_job(config, sets, epochs // 10, runs_dir)
    long_cpu, long_examples = cpu_of_job(config, sets, epochs, runs_dir)
    return (long_examples - short_examples) / (long_cpu - short_cpu)


def measure(case, config, sets, epochs, floor, options):
    with tempfile.TemporaryDirectory() as runs_dir:
        rates = sorted(rate(config, sets, epochs, runs_dir) for _ in range(options.repeats))
    low, median, high = statistics.quantiles(rates, n=4)
    line = {"bench": "kernels", "case": case, "params": " ".join(sets), "seed": 1, "n": len(rates),
            "median": median, "p25": low, "p75": high, "unit": "examples/CPU-s", "bar_at_960M": floor}
    if options.cal:
        line["cal"] = options.cal
        line["scaled"] = median * 960e6 / options.cal
    print(json.dumps(line), flush=True)


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cal", type=float)
    options, _ = parser.parse_known_args(arguments)
    a9a = os.path.join(options.data, "a9a.xz")
    if os.path.exists(a9a):
        for batch in (64, 256):
            measure(f"in_place_logr_a9a_batch{batch}", "a9a-logr.yaml",
                    [f"data.train={a9a}", "data.test.file=null", "optimizer.kind=sgd", "optimizer.averaging=off",
                     "optimizer.learning_rate=0.5", f"optimizer.batch_size={batch}"], 1000, 5e6, options)
    else:
        print(f"a9a is not in {options.data}: left out", file=sys.stderr)
    if os.path.isdir(FASHION):
        measure("in_place_softmax_fashion_batch128", "quickstart.yaml",
                ["optimizer.batch_size=128", "stop.loss=null"], 40, 3e5, options)
    else:
        print("Fashion-MNIST is not installed (dataset-fashion-mnist): left out", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
